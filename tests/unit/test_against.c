/* Predicted against measured: by hand on scripted plans, and on random plans with the simulator's own prediction as the
 * measurement, which must come out as predicted. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "planc/policy.h"
#include "tests/support/graphtext.h"
#include "tests/support/least.h"
#include "tests/support/plan_tables.h"
#include "tests/support/randgraph.h"
#include "tests/support/script.h"
#include "tests/support/sheet.h"
#include "tests/support/unit.h"

/* --- By hand ------------------------------------------------------------------------------------------------------ */

static const char graph_text[] =
    "planc-graph: 1\nname: chain\nloss: z\ntensors:\n"
    "  x: input f32[N,1225]\n  y: f32[N,1]\n  z: f32[]\n"
    "ops:\n"
    "  - {op: a, type: t.a, in: [x], out: [y], traffic: 0}\n"
    "  - {op: b, type: t.b, in: [y], out: [z], traffic: 0}\n";

/* x comes in, a reads it; y leaves and comes back, b reads it. The next body's x does not wait. */
static const char script[] =
    "body\nacquire 0 x 0\nacquire 1 y 8192\nacquire 2 z 9216\nacquire 3 y 12288\nacquire 4 y 0 host\n"
    "copy 0 user on 1\nrecord 0 on 1\nwait 0 on 0\nexec a use 0 1\nrecord 1 on 0\n"
    "wait 1 on 2\ncopy 4 1 on 2\nrecord 2 on 2\nwait 2 on 1\ncopy 3 4 on 1\nrecord 3 on 1\n"
    "wait 3 on 0\nexec b use 3 2\nrelease 0\nrelease 1\nrelease 2\nrelease 3\nrelease 4\n";

static const int64_t one[] = {1};
static planc_graph *graph;
static planc_plan *plan;

static void set_up(void) {
  graph = graph_of(graph_text);
  planc_job job = {.graph = graph, .batch = 1, .n_rounds = 1, .rounds = one, .iterations = 1};
  ok(script_make(script, &job, 1, 1 << 20, 1 << 20, &plan));
  plan->device.launch_ns = 0;
  plan->device.in_flight = 1000;
  plan->device.slowdown_ppm = 0;
  plan->device.duplex_ppm = 1000000;
  const planc_link link = {.bytes_per_second = 1000000000, .latency_ns = 100};
  tables_links(plan, link, link);
  for (int32_t i = 0; i < plan->body.n; i++)
    if (plan->body.instrs[i].op == PLANC_INSTR_exec) ((planc_instr *)&plan->body.instrs[i])->time_ns = 1000;
}
static void tear_down(void) {
  planc_plan_free(plan);
  planc_graph_free(graph);
}

/* In the order of the body: x in, a, y out, y in, b. */
static void put(sheet *s, int32_t period, const planc_span spans[5]) {
  ck_assert_int_eq(s->timeline.n_timed, 5);
  for (int k = 0; k < 5; k++) s->spans[period * 5 + k] = spans[k];
}

static void assert_idle(const int64_t *idle_ns, int64_t in, int64_t out, int64_t compute, int64_t other) {
  ck_assert_int_eq(idle_ns[PLANC_IDLE_H2D], in);
  ck_assert_int_eq(idle_ns[PLANC_IDLE_D2H], out);
  ck_assert_int_eq(idle_ns[PLANC_IDLE_COMPUTE], compute);
  ck_assert_int_eq(idle_ns[PLANC_IDLE_OTHER], other);
}

static const planc_class_times *find(const planc_comparison *c, const char *name) {
  for (int32_t k = 0; k < c->n_classes; k++)
    if (strcmp(c->classes[k].name, name) == 0) return &c->classes[k];
  ck_abort_msg("no class %s", name);
  return NULL;
}

/* a ends at 10520; y is on its way out from 10620 to 11520, in from 11570 to 12520, b starts at 12550. The hand-overs,
 * 100 ahead of the copy out, 50 ahead of that in and 30 behind it, are the copies', as they are in a link's latency;
 * x, which comes in by the same link, has that behind it as well: nothing waits for it alone, for a starts 20 after b.
 * It comes right behind what it awaits. */
START_TEST(idle_times_are_put_down_to_what_was_awaited) {
  sheet *s = sheet_of(plan, 2);
  planc_comparison *c;
  put(s, 0, (planc_span[]){{0, 5000}, {5000, 7000}, {7100, 8000}, {8050, 9000}, {9030, 9500}});
  put(s, 1, (planc_span[]){{9000, 9400}, {9520, 10520}, {10620, 11520}, {11570, 12520}, {12550, 13000}});
  ok(planc_timeline_compare(plan, &s->timeline, &c));
  ck_assert_int_eq(c->n_streams, 1);
  ck_assert_int_eq(c->streams[0].stream, 0);
  ck_assert_int_eq(c->streams[0].measured_busy_ns, 1450);
  assert_idle(c->streams[0].measured_idle_ns, 50 + 950 + 30, 100 + 900, 0, 20);
  ck_assert_int_eq(c->measured_ns, 13000 - 9520); /* the first one does not count */
  ck_assert_int_eq(find(c, "copy in")->measured_ns, (400 + 30) + (50 + 950 + 30));
  ck_assert_int_eq(find(c, "copy in")->count, 2);
  ck_assert_int_eq(find(c, "copy out")->measured_ns, 100 + 900);
  ck_assert_int_eq(find(c, "t.a")->measured_ns, 1000);
  ck_assert_int_eq(find(c, "t.b")->measured_ns, 450);
  planc_comparison_free(c);
  free(s);
}
END_TEST

/* A run that takes what is predicted, where what a profile counts as the links' latency of 100 is 70 ahead of each copy
 * and 30 ahead of the ops behind it: both sides are the same. */
START_TEST(copies_have_their_hand_overs_on_both_sides) {
  planc_simulation simulation;
  planc_comparison *c;
  sheet *s = sheet_replay(plan, &simulation);
  for (int32_t k = 0; k < 4 * s->timeline.n_timed; k++) {
    const planc_instr *instr = &plan->body.instrs[s->instrs[k % s->timeline.n_timed]];
    if (instr->op == PLANC_INSTR_exec) continue;
    s->spans[k].start_ns += 70;
    if (instr->stream == 1) s->spans[k].end_ns -= 30; /* in */
  }
  ok(planc_timeline_compare(plan, &s->timeline, &c));
  ck_assert_int_eq(find(c, "copy in")->predicted_ns, 5000 + 104);
  ck_assert_int_eq(find(c, "copy in")->measured_ns, 5000 + 104);
  ck_assert_int_eq(find(c, "copy out")->measured_ns, 104);
  for (int g = 0; g < PLANC_N_IDLE_CAUSES; g++)
    ck_assert_int_eq(c->streams[0].measured_idle_ns[g], c->streams[0].predicted_idle_ns[g]);
  planc_comparison_free(c);
  free(s);
}
END_TEST

/* A host so slow that ops are launched well after the copies that they await have ended: both sides show that, as time
 * of the stream and not of the copies. */
START_TEST(late_launches_are_no_hand_overs) {
  planc_simulation simulation;
  planc_comparison *c;
  plan->device.launch_ns = 2000;
  sheet *s = sheet_replay(plan, &simulation);
  ok(planc_timeline_compare(plan, &s->timeline, &c));
  ck_assert_int_gt(c->streams[0].predicted_idle_ns[PLANC_IDLE_OTHER], 0);
  for (int g = 0; g < PLANC_N_IDLE_CAUSES; g++)
    ck_assert_int_eq(c->streams[0].measured_idle_ns[g], c->streams[0].predicted_idle_ns[g]);
  ck_assert_int_eq(find(c, "copy in")->measured_ns, 5000 + 104);
  ck_assert_int_eq(find(c, "copy out")->measured_ns, 104);
  planc_comparison_free(c);
  free(s);
}
END_TEST

/* One period: what came before a is not known; from its first op to its last end. */
START_TEST(a_single_period) {
  sheet *s = sheet_of(plan, 1);
  planc_comparison *c;
  put(s, 0, (planc_span[]){{0, 5000}, {6000, 7000}, {7000, 8000}, {8000, 9000}, {9000, 9500}});
  ok(planc_timeline_compare(plan, &s->timeline, &c));
  assert_idle(c->streams[0].measured_idle_ns, 1000, 1000, 0, 0);
  ck_assert_int_eq(c->measured_ns, 3500);
  ck_assert_int_eq(c->least_ns, 3500);
  ck_assert_int_eq(c->most_ns, 3500);
  planc_comparison_free(c);
  free(s);
}
END_TEST

/* The simulator's steady period, by hand: on the link y comes in at 100 + 4 ns after it left in 104, then x for the
 * next body in 5000 takes over while b runs. */
START_TEST(the_prediction_is_summed_up_the_same_way) {
  sheet *s = sheet_of(plan, 1);
  planc_comparison *c;
  planc_simulation simulation;
  ok(planc_simulate(plan, NULL, &simulation));
  ok(planc_timeline_compare(plan, &s->timeline, &c));
  ck_assert_int_eq(c->predicted_ns, simulation.period_ns);
  ck_assert_int_eq(c->predicted_ns, 5000 + 1000 + 104 + 104);
  ck_assert_int_eq(c->streams[0].predicted_busy_ns, 2000);
  assert_idle(c->streams[0].predicted_idle_ns, 4000 + 104, 104, 0, 0);
  ck_assert_int_eq(simulation.stall_ns[PLANC_STALL_H2D], 4000 + 104);
  ck_assert_int_eq(simulation.stall_ns[PLANC_STALL_D2H], 104);
  ck_assert_int_eq(find(c, "copy in")->predicted_ns, 5000 + 104);
  planc_comparison_free(c);
  free(s);
}
END_TEST

START_TEST(medians_leave_outliers_out) {
  static const int64_t lengths[] = {9000, 9100, 60000, 9050, 8900, 9200};
  sheet *s = sheet_of(plan, 7);
  planc_comparison *c;
  int64_t start = 0;
  for (int32_t p = 0; p < 7; p++) {
    put(s, p,
        (planc_span[]){{start, start + 1000 + p},
                       {start + 2000, start + 3000},
                       {start + 3000, start + 4000},
                       {start + 4000, start + 5000},
                       {start + 5000, start + 5001 + 10 * p}});
    start += lengths[p < 6 ? p : 0];
  }
  ok(planc_timeline_compare(plan, &s->timeline, &c));
  ck_assert_int_eq(c->measured_ns, 9100);
  ck_assert_int_eq(c->least_ns, 8900);
  ck_assert_int_eq(c->most_ns, 60000);
  ck_assert_int_eq(find(c, "t.b")->measured_ns, 36); /* between those of the periods 3 and 4 */
  planc_comparison_free(c);
  free(s);
}
END_TEST

/* As in the rest of the table: what a run's first period took is no matter. */
START_TEST(a_first_period_does_not_count) {
  static const planc_span warm[] = {{19000, 19400}, {19500, 20500}, {20600, 21500}, {21570, 22520}, {22550, 23000}};
  sheet *both = sheet_of(plan, 2), *second = sheet_of(plan, 1);
  planc_comparison *of_both, *of_second;
  put(both, 0, (planc_span[]){{0, 5000}, {5000, 12000}, {12100, 15000}, {15000, 16000}, {16000, 19000}});
  put(both, 1, warm);
  put(second, 0, warm);
  ok(planc_timeline_compare(plan, &both->timeline, &of_both));
  ok(planc_timeline_compare(plan, &second->timeline, &of_second));
  ck_assert_int_eq(of_both->predicted_as_measured_ns, of_second->predicted_as_measured_ns);
  ck_assert_int_eq(find(of_both, "t.a")->measured_ns, 1000);
  const planc_comparison *those[] = {of_both, of_second};
  for (int c = 0; c < 2; c++) {
    ck_assert_int_eq(those[c]->measured_ns, 23000 - 19500);
    ck_assert_int_eq(those[c]->least_ns, 23000 - 19500);
    ck_assert_int_eq(those[c]->most_ns, 23000 - 19500);
  }
  planc_comparison_free(of_both);
  planc_comparison_free(of_second);
  free(both);
  free(second);
}
END_TEST

/* Two jobs on streams 0 and 3: the second one's a begins 40 after the first one's has ended. */
START_TEST(a_stream_waits_for_another) {
  static const char two[] =
      "body\nacquire 0 x 0\nacquire 1 y 8192\nacquire 2 x#1 16384\nacquire 3 y#1 24576\nacquire 4 z 32768\n"
      "acquire 5 z#1 40960\nexec a use 0 1\nrecord 0 on 0\nexec b use 1 4\nexec a#1 on 3 use 2 3\nwait 0 on 3\n"
      "exec b#1 on 3 use 3 5\nrelease 0\nrelease 1\nrelease 2\nrelease 3\nrelease 4\nrelease 5\n";
  const planc_job job = {.graph = graph, .batch = 1, .n_rounds = 1, .rounds = one, .iterations = 1};
  planc_plan *of;
  planc_comparison *c;
  ok(script_make(two, (planc_job[]){job, job}, 2, 1 << 20, 1 << 20, &of));
  of->device = plan->device;
  sheet *s = sheet_of(of, 1);
  s->spans[0] = (planc_span){0, 900};    /* a on 0 */
  s->spans[1] = (planc_span){900, 1000}; /* b on 0 */
  s->spans[2] = (planc_span){0, 100};    /* a#1 on 3 */
  s->spans[3] = (planc_span){940, 1000}; /* b#1 on 3 */
  ok(planc_timeline_compare(of, &s->timeline, &c));
  ck_assert_int_eq(c->n_streams, 2);
  assert_idle(c->streams[0].measured_idle_ns, 0, 0, 0, 0);
  ck_assert_int_eq(c->streams[1].stream, 3);
  assert_idle(c->streams[1].measured_idle_ns, 0, 0, 800, 40);
  ck_assert_int_eq(c->streams[1].measured_busy_ns, 160);
  planc_comparison_free(c);
  planc_plan_free(of);
  free(s);
}
END_TEST

/* y goes on to storage and comes back before b: idle for 400 while it leaves, 300 to storage, 200 back, 100 in. */
START_TEST(storage_has_idle_causes_of_its_own) {
  static const char stored[] =
      "storage 65536\nbody\nacquire 0 x 0\nacquire 1 y 8192\nacquire 2 z 9216\nacquire 3 y 12288\n"
      "acquire 4 y 0 host\nacquire 5 y 0 storage\nacquire 6 y 1024 host\n"
      "exec a use 0 1\nrecord 1 on 0\nwait 1 on 2\ncopy 4 1 on 2\nrecord 2 on 2\nwait 2 on 3\ncopy 5 4 on 3\n"
      "record 3 on 3\nwait 3 on 4\ncopy 6 5 on 4\nrecord 4 on 4\nwait 4 on 1\ncopy 3 6 on 1\nrecord 5 on 1\n"
      "wait 5 on 0\nexec b use 3 2\nrelease 0\nrelease 1\nrelease 2\nrelease 3\nrelease 4\nrelease 5\n"
      "release 6\n";
  const planc_job job = {.graph = graph, .batch = 1, .n_rounds = 1, .rounds = one, .iterations = 1};
  planc_plan *of;
  planc_comparison *c;
  ok(script_make(stored, &job, 1, 1 << 20, 1 << 20, &of));
  of->device = plan->device;
  sheet *s = sheet_of(of, 1);
  const planc_span spans[] = {{0, 1000}, {1000, 1400}, {1400, 1700}, {1700, 1900}, {1900, 2000}, {2000, 3000}};
  ck_assert_int_eq(s->timeline.n_timed, 6);
  memcpy(s->spans, spans, sizeof spans);
  ok(planc_timeline_compare(of, &s->timeline, &c));
  const int64_t *idle_ns = c->streams[0].measured_idle_ns;
  assert_idle(idle_ns, 100, 400, 0, 0);
  ck_assert_int_eq(idle_ns[PLANC_IDLE_STORE], 300);
  ck_assert_int_eq(idle_ns[PLANC_IDLE_LOAD], 200);
  ck_assert_int_eq(find(c, "copy to storage")->measured_ns, 300);
  ck_assert_int_eq(find(c, "copy from storage")->measured_ns, 200);
  planc_comparison_free(c);
  planc_plan_free(of);
  free(s);
}
END_TEST

/* In one period of six, b waits for the copy that left behind a in the period before: its hand-over of 2900 is no
 * matter of the others, for which nothing waits. */
START_TEST(what_is_seldom_awaited_tells_nothing_of_others) {
  static const char leaving[] =
      "body\nacquire 0 x 0\nacquire 1 y 8192\nacquire 2 z 9216\nacquire 3 y 0 host\n"
      "exec a use 0 1\nrecord 1 on 0\nwait 2 lag 1 on 0\nexec b use 1 2\nwait 1 on 2\ncopy 3 1 on 2\nrecord 2 on 2\n"
      "release 0\nrelease 1\nrelease 2\nrelease 3\n";
  enum { N = 6, LATE = 3, PERIOD = 10000 };
  const planc_job job = {.graph = graph, .batch = 1, .n_rounds = 1, .rounds = one, .iterations = 1};
  planc_plan *of;
  planc_comparison *c;
  ok(script_make(leaving, &job, 1, 1 << 20, 1 << 20, &of));
  of->device = plan->device;
  sheet *s = sheet_of(of, N);
  ck_assert_int_eq(s->timeline.n_timed, 3);
  for (int32_t p = 0; p < N; p++) {
    int64_t from = p * PERIOD, b = from + (p == LATE ? 4000 : 1000);
    int64_t copied = from + (p == LATE - 1 ? PERIOD + 1100 : p == LATE ? 1250 : 1100);
    s->spans[3 * p] = (planc_span){from, from + 1000};
    s->spans[3 * p + 1] = (planc_span){b, b + 500};
    s->spans[3 * p + 2] = (planc_span){copied - 100, copied};
  }
  ok(planc_timeline_compare(of, &s->timeline, &c));
  ck_assert_int_eq(find(c, "copy out")->measured_ns, 100);
  planc_comparison_free(c);
  planc_plan_free(of);
  free(s);
}
END_TEST

/* --- The prediction as a measurement ------------------------------------------------------------------------------ */

static void assert_as_predicted(const planc_plan *of) {
  planc_simulation simulation;
  planc_comparison *c;
  sheet *s = sheet_replay(of, &simulation);
  ok(planc_timeline_compare(of, &s->timeline, &c));
  ck_assert_int_eq(c->measured_ns, c->predicted_ns);
  ck_assert_int_eq(c->least_ns, c->most_ns);
  int32_t count = 0;
  for (int32_t k = 0; k < c->n_classes; k++) {
    ck_assert_int_eq(c->classes[k].measured_ns, c->classes[k].predicted_ns);
    if (k) ck_assert_int_le(c->classes[k].predicted_ns, c->classes[k - 1].predicted_ns);
    count += c->classes[k].count;
  }
  ck_assert_int_eq(count, s->timeline.n_timed);
  ck_assert_int_eq(c->n_streams, 1);
  int64_t all = c->streams[0].predicted_busy_ns;
  for (int g = 0; g < PLANC_N_IDLE_CAUSES; g++) {
    ck_assert_int_eq(c->streams[0].measured_idle_ns[g], c->streams[0].predicted_idle_ns[g]);
    all += c->streams[0].predicted_idle_ns[g];
  }
  ck_assert_int_eq(all, c->predicted_ns); /* a period of the stream is its work and its idle times */
  ck_assert_int_eq(c->streams[0].predicted_idle_ns[PLANC_IDLE_COMPUTE], 0); /* there is no other stream to wait for */
  planc_comparison_free(c);
  free(s);
}

/* A run in which every op takes twice its time, as the simulator has it, of the plan that knows nothing of that. */
static void assert_ops_are_told_apart(const planc_plan *of) {
  planc_plan slow = *of;
  planc_instr *instrs = calloc((size_t)of->body.n + 1, sizeof *instrs);
  planc_simulation simulation;
  planc_comparison *c;
  ck_assert_ptr_nonnull(instrs);
  for (int32_t i = 0; i < of->body.n; i++) {
    instrs[i] = of->body.instrs[i];
    instrs[i].time_ns *= 2;
  }
  slow.body.instrs = instrs;
  sheet *s = sheet_replay(&slow, &simulation);
  ok(planc_timeline_compare(of, &s->timeline, &c));
  /* Slow-downs are taken off and put on again, each rounded. */
  ck_assert_int_le(llabs(c->predicted_as_measured_ns - simulation.period_ns), s->timeline.n_timed);
  ck_assert_int_gt(c->predicted_as_measured_ns, c->predicted_ns);
  planc_comparison_free(c);
  free(s);
  free(instrs);
}

START_TEST(a_run_as_predicted_is_as_predicted) {
  static const char *const policies[] = {"vdnn-all", "modnn", "none"};
  planc_profile *profile;
  planc_graph *random;
  ok(planc_profile_read("profiles/k40m.json", &profile));
  ok(randgraph_make((uint64_t)_i, &(randgraph_options){.max_ops = 24, .max_elements = 4096}, &random));
  for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
    planc_problem problem = {
        .job.graph = random, .job.profile = profile, .job.batch = 64, .terms.budgets[PLANC_MEMORY_HOST] = -1};
    planc_plan *made;
    const planc_policy *policy = planc_policy_find(policies[p]);
    ok(find_least_bytes(&problem, policy, &problem.terms.budgets[PLANC_MEMORY_DEVICE]));
    ok(planc_make_plan(&problem, policy, &made));
    assert_as_predicted(made);
    assert_ops_are_told_apart(made);
    planc_plan_free(made);
  }
  planc_graph_free(random);
  planc_profile_free(profile);
}
END_TEST

/* A run in which copies and ops take up part of the time that is predicted, most of them little, period after period
 * the same. */
static sheet *run_in_part(const planc_plan *of, uint64_t *state, planc_simulation *simulation) {
  sheet *s = sheet_replay(of, simulation);
  int32_t n = s->timeline.n_timed;
  for (int32_t k = 0; k < n; k++) {
    int64_t length_ns = s->spans[k].end_ns - s->spans[k].start_ns;
    int64_t least_ns = rand_chance(state, 70) ? length_ns * 9 / 10 : 0;
    int64_t off_ns = least_ns + rand_below(state, length_ns - least_ns + 1), front_ns = rand_below(state, off_ns + 1);
    for (int32_t p = 0; p < s->timeline.n_periods; p++) {
      s->spans[p * n + k].start_ns += front_ns;
      s->spans[p * n + k].end_ns -= off_ns - front_ns;
    }
  }
  return s;
}

/* Copies of a route follow each other on one stream, which has no more time than a period. */
START_TEST(copies_take_no_longer_than_there_was_time) {
  uint64_t state = (uint64_t)_i + 1;
  planc_profile *profile;
  planc_graph *random;
  planc_plan *made;
  planc_simulation simulation;
  planc_comparison *c;
  ok(planc_profile_read("profiles/k40m.json", &profile));
  ok(randgraph_make((uint64_t)_i, &(randgraph_options){.max_ops = 24, .max_elements = 4096}, &random));
  planc_problem problem = {.job.graph = random,
                           .job.profile = profile,
                           .job.batch = 64,
                           .terms.budgets[PLANC_MEMORY_DEVICE] = INT64_C(1) << 40,
                           .terms.budgets[PLANC_MEMORY_HOST] = -1};
  ok(planc_make_plan(&problem, planc_policy_find("naive"), &made));
  sheet *s = run_in_part(made, &state, &simulation);
  ok(planc_timeline_compare(made, &s->timeline, &c));
  ck_assert_int_gt(find(c, "copy in")->count, 1);
  ck_assert_int_le(find(c, "copy in")->measured_ns, simulation.period_ns);
  ck_assert_int_le(find(c, "copy out")->measured_ns, simulation.period_ns);
  planc_comparison_free(c);
  free(s);
  planc_plan_free(made);
  planc_graph_free(random);
  planc_profile_free(profile);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("against");
  TCase *by_hand = tcase_create("by hand");
  tcase_add_checked_fixture(by_hand, set_up, tear_down);
  tcase_add_test(by_hand, idle_times_are_put_down_to_what_was_awaited);
  tcase_add_test(by_hand, copies_have_their_hand_overs_on_both_sides);
  tcase_add_test(by_hand, late_launches_are_no_hand_overs);
  tcase_add_test(by_hand, a_single_period);
  tcase_add_test(by_hand, the_prediction_is_summed_up_the_same_way);
  tcase_add_test(by_hand, a_stream_waits_for_another);
  tcase_add_test(by_hand, storage_has_idle_causes_of_its_own);
  tcase_add_test(by_hand, what_is_seldom_awaited_tells_nothing_of_others);
  tcase_add_test(by_hand, medians_leave_outliers_out);
  tcase_add_test(by_hand, a_first_period_does_not_count);
  suite_add_tcase(suite, by_hand);
  TCase *replayed = tcase_create("replayed");
  tcase_add_loop_test(replayed, a_run_as_predicted_is_as_predicted, 0, 30);
  tcase_add_loop_test(replayed, copies_take_no_longer_than_there_was_time, 0, 30);
  suite_add_tcase(suite, replayed);
  return run_suite(suite);
}
