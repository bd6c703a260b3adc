/* Updating: weights and sums against arithmetic written out; runs invented by the simulator on a device whose speeds
 * are known, which an update must find again; what it does not measure goes along in proportion; files. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost/profile.h"
#include "planc/check.h"
#include "planc/policy.h"
#include "planc/simulate.h"
#include "planc/update.h"
#include "tests/support/plan_view.h"
#include "tests/support/randgraph.h"
#include "tests/support/tables.h"
#include "tests/support/unit.h"

enum { MOST_TIMED = 8192, MOST_PERIODS = 4, PPM = 1000000 };

static planc_profile *k40m;

static void set_up(void) {
  ok(planc_profile_read("profiles/k40m.json", &k40m));
}
static void tear_down(void) {
  planc_profile_free(k40m);
}

/* --- Timelines ------------------------------------------------------------------------------------------------ */

/* A timeline made by hand: spans[p * n_timed + k]. */
typedef struct sheet {
  planc_timeline timeline;
  int32_t instrs[MOST_TIMED];
  planc_span spans[MOST_TIMED * MOST_PERIODS];
} sheet;

static sheet *sheet_of(const planc_plan *plan, int32_t n_periods) {
  sheet *s = calloc(1, sizeof *s);
  ck_assert(s != NULL);
  for (int32_t i = 0; i < plan->body.n; i++) {
    if (!planc_instr_is_timed(&plan->body.instrs[i])) continue;
    ck_assert_int_lt(s->timeline.n_timed, MOST_TIMED);
    s->instrs[s->timeline.n_timed++] = i;
  }
  s->timeline.n_periods = n_periods;
  s->timeline.instrs = s->instrs;
  s->timeline.spans = s->spans;
  return s;
}

typedef struct recording {
  const planc_plan *plan;
  sheet *sheet;
  int32_t *timed_of;
} recording;

static void record(void *user, const planc_plan *plan, const planc_instr *instr, int64_t start, int64_t end) {
  recording *r = user;
  r->sheet->spans[r->timed_of[instr - plan->body.instrs]] = (planc_span){start, end};
}

/* What the simulator says of a plan, period after period. */
static sheet *run_of(const planc_plan *plan) {
  planc_simulation simulation;
  sheet *s = sheet_of(plan, MOST_PERIODS);
  recording r = {plan, s, calloc((size_t)plan->body.n + 1, sizeof(int32_t))};
  ck_assert(r.timed_of != NULL);
  for (int32_t k = 0; k < s->timeline.n_timed; k++) r.timed_of[s->instrs[k]] = k;
  ok(planc_simulate(plan, &(planc_simulate_options){.visitor = record, .user = &r}, &simulation));
  for (int32_t p = 1; p < MOST_PERIODS; p++)
    for (int32_t k = 0; k < s->timeline.n_timed; k++)
      s->spans[p * s->timeline.n_timed + k] = (planc_span){s->spans[k].begin_ns + p * simulation.iteration_ns,
                                                           s->spans[k].end_ns + p * simulation.iteration_ns};
  free(r.timed_of);
  return s;
}

static planc_update *update_of(const planc_plan *plan, const sheet *run, const planc_profile *profile,
                               int64_t weight_ppm) {
  planc_update *update;
  planc_update_options options = {
      .plan = plan, .timeline = &run->timeline, .profile = profile, .weight_ppm = weight_ppm};
  ok(planc_update_make(&options, &update));
  return update;
}

/* --- Plans ---------------------------------------------------------------------------------------------------- */

static const char *const policies[] = {"vdnn-all", "modnn", "none", "chen", "naive", "tensile"};
enum { N_POLICIES = sizeof policies / sizeof *policies };

static planc_problem problem_of(const planc_graph *graph, const planc_profile *profile, int64_t batch) {
  return (planc_problem){
      .graph = graph, .profile = profile, .batch = batch, .budget_bytes = INT64_C(1) << 40, .host_budget_bytes = -1};
}

/* Without launches: what waits for them cannot be told from what waits for a hand-over. */
static planc_plan *plan_of(const planc_problem *problem, const char *policy) {
  planc_plan *plan;
  ok(planc_make_plan(problem, planc_policy_find(policy), &plan));
  plan->device.launch_ns = 0;
  return plan;
}

/* The same plan for a machine where op o takes `percent[o]` of its time, sums of gradients percent[n_ops], and copies
 * by each route what the next ones say. */
static planc_plan *on_another_machine(const planc_plan *plan, const int64_t *percent) {
  char *text;
  size_t length;
  planc_plan *out;
  planc_trace *trace;
  ok(planc_plan_print(plan, &text, &length));
  ok(planc_plan_parse(text, length, "copy", &out));
  free(text);
  ok(planc_expand(out->jobs, out->n_jobs, &trace));
  int32_t n_ops = out->jobs[0].graph->n_ops;
  for (int32_t i = 0; i < out->body.n; i++) {
    planc_instr *instr = (planc_instr *)&out->body.instrs[i];
    if (instr->op != PLANC_INSTR_exec) continue;
    const planc_instance *instance = &trace->instances[instr->id];
    instr->time_ns = instr->time_ns * percent[instance->role == PLANC_ROLE_OP ? instance->op : n_ops] / 100;
  }
  for (int32_t l = 0; l < out->n_links; l++) {
    planc_link *link = &out->links[l].cost;
    int64_t takes = percent[n_ops + 1 + out->links[l].engine];
    link->bytes_per_second = link->bytes_per_second * 100 / takes;
    link->latency_ns = link->latency_ns * takes / 100;
  }
  planc_trace_free(trace);
  return out;
}

/* What copies by a route cost: plans that are made have an engine for each, in this order. */
static const planc_link *link_of(const planc_plan *plan, planc_route route) {
  int32_t l = 0;
  while (l < plan->n_links && plan->links[l].engine != (int32_t)route) l++;
  ck_assert_int_lt(l, plan->n_links);
  return &plan->links[l].cost;
}

static int64_t *draw_percents(uint64_t *state, const planc_graph *graph, int64_t least, int64_t most) {
  int32_t n = graph->n_ops + 1 + PLANC_N_ROUTES;
  int64_t *percent = calloc((size_t)n, sizeof *percent);
  ck_assert(percent != NULL);
  for (int32_t o = 0; o < n; o++) percent[o] = least + rand_below(state, most - least + 1);
  return percent;
}

/* --- Weights -------------------------------------------------------------------------------------------------- */

/* Instructions one after the other, so that none is slowed. The first period is out of the ordinary as runs' first
 * ones are, and so is one of the three behind it. */
static void invent(sheet *s, const int64_t *durations) {
  int64_t now = 0;
  for (int32_t p = 0; p < MOST_PERIODS; p++) {
    for (int32_t k = 0; k < s->timeline.n_timed; k++) {
      int64_t took = p % 2 == 0 ? durations[k] * 100 + 7 : durations[k];
      s->spans[p * s->timeline.n_timed + k] = (planc_span){now, now + took};
      now += took;
    }
  }
}

static const planc_variant *cost_of(const planc_costs *costs, int32_t op, int64_t batch, const char *algorithm) {
  int32_t count;
  const planc_variant *variants = planc_costs_variants(costs, op, planc_costs_batch(costs, batch), &count);
  for (int32_t v = 0; v < count; v++)
    if (strcmp(variants[v].algorithm, algorithm) == 0) return &variants[v];
  ck_abort_msg("op %d: no algorithm %s", op, algorithm);
  return NULL;
}

static int64_t mean(int64_t old_ns, int64_t measured_ns, int64_t weight_ppm) {
  return llround((double)measured_ns * (double)weight_ppm / PPM + (double)old_ns * (double)(PPM - weight_ppm) / PPM);
}

static double apart(const planc_latency_sum *sum) {
  return fabs((double)sum->new_ns - (double)sum->old_ns);
}

static void assert_sums(const planc_plan *plan, const sheet *s, const int64_t *durations, int64_t weight_ppm,
                        const planc_update *update) {
  planc_latency_sum ops = {0}, copies[PLANC_N_ROUTES] = {0};
  for (int32_t k = 0; k < s->timeline.n_timed; k++) {
    const planc_instr *instr = &plan->body.instrs[s->instrs[k]];
    planc_route route = copies_on(plan, instr, "h2d") ? PLANC_ROUTE_H2D : PLANC_ROUTE_D2H;
    bool exec = instr->op == PLANC_INSTR_exec;
    planc_latency_sum *sum = exec ? &ops : &copies[route];
    int64_t old_ns = exec ? instr->time_ns : planc_link_ns(link_of(plan, route), instr->bytes);
    sum->count++;
    sum->old_ns += old_ns;
    sum->measured_ns += durations[k];
    sum->new_ns += mean(old_ns, durations[k], weight_ppm);
  }
  ck_assert_mem_eq(&ops, &update->ops, sizeof ops);
  double most = apart(&update->ops);
  for (int r = 0; r < PLANC_N_ROUTES; r++) { /* hand-overs come on top */
    const planc_latency_sum *found = &update->copies[r];
    ck_assert_int_eq(found->count, copies[r].count);
    ck_assert_int_eq(found->old_ns, copies[r].old_ns);
    ck_assert_int_ge(found->measured_ns, copies[r].measured_ns);
    ck_assert_int_le(llabs(found->new_ns - mean(found->old_ns, found->measured_ns, weight_ppm)), 4);
    most = fmax(most, apart(found));
  }
  ck_assert_int_eq(update->change_ppm, (int64_t)floor(most * PPM / (double)ops.old_ns));
}

START_TEST(weights_are_what_they_say) {
  static const int64_t weights[] = {0, 1, 250000, 900000, 1000000};
  uint64_t state = (uint64_t)_i;
  planc_plan *plan;
  ok(planc_plan_read("tests/data/timeline/tiny.plan", &plan));
  sheet *s = sheet_of(plan, MOST_PERIODS);
  int64_t *durations = calloc((size_t)s->timeline.n_timed, sizeof *durations);
  ck_assert(durations != NULL);
  for (int32_t k = 0; k < s->timeline.n_timed; k++) durations[k] = rand_below(&state, 20000);
  invent(s, durations);
  for (size_t w = 0; w < sizeof weights / sizeof *weights; w++) {
    planc_update *update = update_of(plan, s, NULL, weights[w]);
    planc_costs *costs;
    ok(planc_costs_make(update->profile, plan->jobs[0].graph, 1, &plan->jobs[0].batch, &costs));
    for (int32_t k = 0; k < s->timeline.n_timed; k++) {
      const planc_instr *instr = &plan->body.instrs[s->instrs[k]];
      if (instr->op != PLANC_INSTR_exec) continue;
      const planc_variant *cost = cost_of(costs, instr->id, plan->jobs[0].batch, "default");
      ck_assert_int_eq(cost->time_ns, mean(instr->time_ns, durations[k], weights[w]));
      ck_assert_int_eq(cost->busy_ppm, instr->busy_ppm);
    }
    assert_sums(plan, s, durations, weights[w], update);
    planc_costs_free(costs);
    planc_update_free(update);
  }
  free(durations);
  free(s);
  planc_plan_free(plan);
}
END_TEST

/* In this trace every copy takes 2 ns a byte, with half a microsecond before everything. */
START_TEST(hand_overs_count_with_copies) {
  planc_plan *plan;
  planc_timeline *timeline;
  planc_update *update;
  ok(planc_plan_read("tests/data/timeline/tiny.plan", &plan));
  ok(planc_timeline_read("tests/data/timeline/tiny.json", plan, &timeline));
  planc_update_options options = {.plan = plan, .timeline = timeline, .weight_ppm = PPM};
  ok(planc_update_make(&options, &update));
  ck_assert_int_le(
      llabs(update->copies[PLANC_ROUTE_H2D].measured_ns - (2 * plan->predicted.jobs[0].h2d_bytes + 4 * 1000)), 100);
  ck_assert_int_le(
      llabs(update->copies[PLANC_ROUTE_D2H].measured_ns - (2 * plan->predicted.jobs[0].d2h_bytes + 3 * 1000)), 100);
  planc_update_free(update);
  planc_timeline_free(timeline);
  planc_plan_free(plan);
}
END_TEST

/* --- Machines that are known ---------------------------------------------------------------------------------- */

static void assert_near(int64_t got, int64_t want, double share, int64_t ns) {
  ck_assert_msg(llabs(got - want) <= ns + (int64_t)(share * (double)want), "%lld instead of %lld", (long long)got,
                (long long)want);
}

/* The times that the other machine's plan has are those that an update of this one's gives. */
static void assert_found(const planc_plan *other, const planc_update *update) {
  int64_t adds_ns = 0, wanted_ns = 0, adds = 0;
  const planc_job *job = &other->jobs[0];
  planc_trace *trace;
  planc_costs *costs;
  int64_t batches[] = {job->batch, job->rounds[0], job->rounds[job->n_rounds - 1]};
  ok(planc_costs_make(update->profile, job->graph, 3, batches, &costs));
  ok(planc_expand(other->jobs, 1, &trace));
  for (int32_t i = 0; i < other->body.n; i++) {
    const planc_instr *instr = &other->body.instrs[i];
    if (instr->op != PLANC_INSTR_exec) continue;
    const planc_instance *instance = &trace->instances[instr->id];
    if (instance->role == PLANC_ROLE_ACCUMULATE) {
      int64_t bytes = trace->buffers[trace->accesses[instance->first_access].buffer].bytes;
      adds_ns += planc_costs_add_ns(update->profile, bytes);
      wanted_ns += instr->time_ns;
      adds++;
    } else {
      const planc_variant *cost = cost_of(costs, instance->op, instance->batch, other->algorithms[instr->aux]);
      assert_near(cost->time_ns, instr->time_ns, 0, 2);
      ck_assert_int_eq(cost->busy_ppm, instr->busy_ppm);
      ck_assert_int_eq(cost->workspace_bytes, instr->bytes);
    }
  }
  assert_near(adds_ns, wanted_ns, 1e-3, 3 * adds);
  const planc_device *device = planc_profile_device(update->profile);
  const planc_link *got[PLANC_N_ROUTES] = {&device->h2d, &device->d2h, &device->store, &device->load};
  for (int r = 0; r < PLANC_N_ROUTES; r++) {
    if (update->copies[r].count == 0) continue;
    const planc_link *want = link_of(other, (planc_route)r);
    assert_near(got[r]->bytes_per_second, want->bytes_per_second, 1e-3, 1);
    assert_near(got[r]->latency_ns, want->latency_ns, 1e-3, 2);
  }
  planc_costs_free(costs);
  planc_trace_free(trace);
}

START_TEST(another_machine_is_found) {
  uint64_t state = (uint64_t)_i + 1;
  planc_graph *graph;
  ok(randgraph_make((uint64_t)_i, &(randgraph_options){.max_ops = 24, .max_elements = 4096}, &graph));
  for (int32_t p = 0; p < N_POLICIES; p++) {
    planc_problem problem = problem_of(graph, k40m, 64);
    problem.sub_batch = _i % 3 == 0 ? 24 : 0;
    planc_plan *plan;
    plan = plan_of(&problem, policies[p]);
    int64_t *percent = draw_percents(&state, graph, 30, 600);
    planc_plan *other = on_another_machine(plan, percent);
    sheet *run = run_of(other);
    planc_update *update = update_of(plan, run, NULL, PPM);
    assert_found(other, update);
    planc_update_free(update);
    update = update_of(plan, run, k40m, PPM);
    assert_found(other, update);
    planc_update_free(update);
    free(run);
    free(percent);
    planc_plan_free(other);
    planc_plan_free(plan);
  }
  planc_graph_free(graph);
}
END_TEST

static bool has_origin(const planc_profile *profile, const char *of) {
  for (int32_t o = 0; o < profile->n_origins; o++)
    if (strcmp(profile->origins[o].of, of) == 0) return true;
  return false;
}

/* A plan that stores half of what it offloads, on a machine whose storage is another, too. */
START_TEST(another_storage_is_found) {
  int32_t n_stores = 0;
  planc_profile *with_storage;
  ok(planc_profile_read("profiles/k40m.json", &with_storage));
  with_storage->device.store = (planc_link){.bytes_per_second = 1000000000, .latency_ns = 20000};
  with_storage->device.load = (planc_link){.bytes_per_second = 2000000000, .latency_ns = 10000};
  for (uint64_t seed = 0; seed < 20; seed++) {
    uint64_t state = seed + 1;
    planc_graph *graph;
    ok(randgraph_make(seed, &(randgraph_options){.max_ops = 24, .max_elements = 4096}, &graph));
    planc_problem problem = problem_of(graph, with_storage, 64);
    planc_plan *whole = plan_of(&problem, "naive");
    problem.host_budget_bytes = host_of(whole)->arena_bytes / 2;
    problem.storage_budget_bytes = INT64_C(1) << 40;
    planc_plan *plan = NULL;
    planc_status status = planc_make_plan(&problem, planc_policy_find("naive"), &plan);
    if (!status) {
      plan->device.launch_ns = 0;
      int64_t *percent = draw_percents(&state, graph, 30, 600);
      planc_plan *other = on_another_machine(plan, percent);
      sheet *run = run_of(other);
      for (int with_base = 0; with_base < 2; with_base++) {
        planc_update *update = update_of(plan, run, with_base ? with_storage : NULL, PPM);
        assert_found(other, update);
        n_stores += update->copies[PLANC_ROUTE_STORE].count;
        ck_assert_int_eq(has_origin(update->profile, "device.storage"),
                         update->copies[PLANC_ROUTE_STORE].count + update->copies[PLANC_ROUTE_LOAD].count > 0);
        planc_update_free(update);
      }
      free(run);
      free(percent);
      planc_plan_free(other);
      planc_plan_free(plan);
    }
    planc_status_free(status);
    planc_plan_free(whole);
    planc_graph_free(graph);
  }
  ck_assert_int_gt(n_stores, 40);
  planc_profile_free(with_storage);
}
END_TEST

/* --- In proportion -------------------------------------------------------------------------------------------- */

/* Algorithms and batches that did not run become as much slower as their op. */
START_TEST(what_did_not_run_goes_along) {
  static const int64_t batches[] = {1, 4, 16, 32};
  static const char *const sources[] = {"profiles/k40m.json", "tests/data/profile/toy.json"};
  uint64_t state = (uint64_t)_i;
  planc_graph *graph;
  planc_profile *base;
  const char *derived;
  planc_plan *plan;
  planc_costs *before, *after;
  ok(planc_profile_read(sources[_i % 2], &base));
  ok(planc_graph_prepare("graphs/vgg16.yaml", NULL, false, &graph, &derived));
  planc_problem problem = problem_of(graph, base, 32);
  plan = plan_of(&problem, "vdnn-all");
  int64_t *percent = draw_percents(&state, graph, 50, 300);
  planc_plan *other = on_another_machine(plan, percent);
  sheet *run = run_of(other);
  planc_update *update = update_of(plan, run, base, PPM);
  ok(planc_costs_make(base, graph, 4, batches, &before));
  ok(planc_costs_make(update->profile, graph, 4, batches, &after));
  for (int32_t o = 0; o < graph->n_ops; o++) {
    for (int32_t b = 0; b < 4; b++) {
      int32_t n, m;
      const planc_variant *was = planc_costs_variants(before, o, b, &n);
      (void)planc_costs_variants(after, o, b, &m);
      ck_assert_int_eq(n, m);
      for (int32_t v = 0; v < n; v++) {
        const planc_variant *is = cost_of(after, o, batches[b], was[v].algorithm);
        assert_near(is->time_ns, was[v].time_ns * percent[o] / 100, 1e-3, 2);
        ck_assert_int_eq(is->workspace_bytes, was[v].workspace_bytes);
        ck_assert_int_eq(is->busy_ppm, was[v].busy_ppm);
      }
    }
  }
  planc_costs_free(before);
  planc_costs_free(after);
  planc_update_free(update);
  free(run);
  free(percent);
  planc_plan_free(other);
  planc_plan_free(plan);
  planc_profile_free(base);
  planc_graph_free(graph);
}
END_TEST

/* --- Workspaces ----------------------------------------------------------------------------------------------- */

/* An op's at `batch` by an algorithm; -1: it is not offered there. */
static int64_t workspace_of(const planc_profile *profile, const planc_graph *graph, int32_t op, int64_t batch,
                            const char *algorithm) {
  planc_costs *costs;
  int32_t count;
  int64_t bytes = -1;
  ok(planc_costs_make(profile, graph, 1, &batch, &costs));
  const planc_variant *variants = planc_costs_variants(costs, op, 0, &count);
  for (int32_t v = 0; v < count; v++)
    if (strcmp(variants[v].algorithm, algorithm) == 0) bytes = variants[v].workspace_bytes;
  planc_costs_free(costs);
  return bytes;
}

/* A plan of tiny.yaml in rounds of 3 and 1, whose second op runs with another algorithm in the last round. */
typedef struct mixed {
  planc_graph *graph;
  planc_plan *made;
  planc_plan plan;
  const char *algorithms[8];
} mixed;

enum { SECOND = 1, NARROW_BYTES = 9344, WIDE_BYTES = 512 };

static void mixed_make(mixed *m) {
  planc_trace *trace;
  ok(planc_graph_read("tests/golden/inputs/tiny.yaml", &m->graph));
  planc_problem problem = problem_of(m->graph, k40m, 4);
  problem.sub_batch = 3;
  m->made = plan_of(&problem, "modnn");
  ck_assert_int_eq(m->made->jobs[0].n_rounds, 2);
  m->plan = *m->made;
  ck_assert_int_lt(m->plan.n_algorithms, 8);
  memcpy(m->algorithms, m->plan.algorithms, (size_t)m->plan.n_algorithms * sizeof *m->algorithms);
  m->algorithms[m->plan.n_algorithms] = "wide";
  m->plan.algorithms = m->algorithms;
  ok(planc_expand(m->plan.jobs, 1, &trace));
  for (int32_t i = 0; i < m->plan.body.n; i++) {
    planc_instr *instr = (planc_instr *)&m->plan.body.instrs[i];
    if (instr->op != PLANC_INSTR_exec) continue;
    const planc_instance *instance = &trace->instances[instr->id];
    if (instance->role != PLANC_ROLE_OP || instance->op != SECOND) continue;
    instr->bytes = instance->batch == 3 ? NARROW_BYTES : WIDE_BYTES;
    if (instance->batch == 1) instr->aux = m->plan.n_algorithms;
  }
  m->plan.n_algorithms++;
  planc_trace_free(trace);
}

static void mixed_free(mixed *m) {
  planc_plan_free(m->made);
  planc_graph_free(m->graph);
}

/* How much an algorithm needs in rounds in which the plan ran another is not known, and smaller ones than it ran need
 * not take less. */
START_TEST(algorithms_are_offered_where_they_ran) {
  mixed m;
  planc_profile *read;
  char *text;
  size_t length;
  mixed_make(&m);
  sheet *run = run_of(&m.plan);
  planc_update *update = update_of(&m.plan, run, NULL, PPM);
  ok(planc_update_print(update, &text, &length));
  ok(planc_profile_parse(text, length, "update", &read));
  const planc_profile *both[] = {update->profile, read};
  for (int p = 0; p < 2; p++) {
    ck_assert_int_eq(workspace_of(both[p], m.graph, SECOND, 3, "default"), NARROW_BYTES);
    ck_assert_int_eq(workspace_of(both[p], m.graph, SECOND, 3, "wide"), -1);
    ck_assert_int_eq(workspace_of(both[p], m.graph, SECOND, 1, "default"), -1);
    ck_assert_int_eq(workspace_of(both[p], m.graph, SECOND, 1, "wide"), WIDE_BYTES);
    ck_assert_int_eq(workspace_of(both[p], m.graph, SECOND, 2, "default"), NARROW_BYTES);
    ck_assert_int_eq(workspace_of(both[p], m.graph, SECOND, 4, "default"), NARROW_BYTES * 4 / 3);
    for (int64_t batch = 1; batch <= 4; batch++)
      ck_assert_int_eq(planc_profile_lists_workspace(both[p], "second", "default", batch), batch % 2 == 1);
  }
  free(text);
  planc_profile_free(read);
  planc_update_free(update);
  free(run);
  mixed_free(&m);
}
END_TEST

/* An update of tiny.plan, which runs everything at a batch of 4 without workspaces, with a table of its second op. */
static planc_update *update_with_table(const pl_measured_variant *variant) {
  pl_measured_op op = {.name = "second", .n_variants = 1, .variants = variant};
  planc_profile with = *k40m;
  planc_plan *plan;
  with.measured = (pl_measured){.n_ops = 1, .ops = &op};
  ok(pl_map_put(&with.measured.by_name, op.name, strlen(op.name), 0));
  ok(planc_plan_read("tests/data/timeline/tiny.plan", &plan));
  sheet *run = run_of(plan);
  planc_update *update = update_of(plan, run, &with, PPM);
  pl_map_free(&with.measured.by_name);
  free(run);
  planc_plan_free(plan);
  return update;
}

/* A run tells of the workspace at its own batch, not of those between it and the points of a table. */
START_TEST(workspaces_of_other_batches_stay) {
  static const pl_point points[] = {{.batch = 2, .time_ns = 100, .workspace_bytes = 200, .busy_ppm = 1},
                                    {.batch = 8, .time_ns = 100, .workspace_bytes = 800, .busy_ppm = 1}};
  static const pl_measured_workspace listed[] = {{4, 50}, {6, 900}};
  static const int64_t want[] = {100, 200, 300, 0, 500, 900, 700, 800};
  pl_measured_variant variant = {
      .algorithm = "default", .n_points = 2, .points = points, .n_workspaces = 2, .workspaces = listed};
  planc_graph *graph;
  ok(planc_graph_read("tests/golden/inputs/tiny.yaml", &graph));
  planc_update *update = update_with_table(&variant);
  for (int64_t batch = 1; batch <= 8; batch++) {
    ck_assert_int_eq(workspace_of(update->profile, graph, SECOND, batch, "default"), want[batch - 1]);
    ck_assert(planc_profile_lists_workspace(update->profile, "second", "default", batch));
  }
  planc_update_free(update);
  planc_graph_free(graph);
}
END_TEST

/* Up to its last point a table has workspaces; what ran beyond tells nothing of batches between. */
START_TEST(nothing_is_known_below_a_run_beyond_the_table) {
  static const pl_point points[] = {{.batch = 1, .time_ns = 100, .workspace_bytes = 200, .busy_ppm = 1},
                                    {.batch = 2, .time_ns = 100, .workspace_bytes = 400, .busy_ppm = 1}};
  static const pl_measured_workspace listed[] = {{1, 250}};
  pl_measured_variant variant = {
      .algorithm = "default", .n_points = 2, .points = points, .n_workspaces = 1, .workspaces = listed};
  planc_update *update = update_with_table(&variant);
  static const bool known[] = {true, true, false, true};
  for (int64_t batch = 1; batch <= 4; batch++)
    ck_assert_int_eq(planc_profile_lists_workspace(update->profile, "second", "default", batch), known[batch - 1]);
  planc_update_free(update);
}
END_TEST

/* --- Results -------------------------------------------------------------------------------------------------- */

START_TEST(ops_with_other_algorithms_are_counted) {
  mixed m;
  planc_plan *whole;
  int32_t n;
  mixed_make(&m);
  ok(planc_update_other_algorithms(&m.plan, &m.plan, &n));
  ck_assert_int_eq(n, 0);
  planc_plan renamed = m.plan;
  const char *names[8];
  memcpy(names, m.algorithms, sizeof names);
  names[m.plan.n_algorithms - 1] = "default";
  renamed.algorithms = names;
  ok(planc_update_other_algorithms(&m.plan, &renamed, &n));
  ck_assert_int_eq(n, 1);
  ok(planc_update_other_algorithms(&renamed, &m.plan, &n));
  ck_assert_int_eq(n, 1);
  planc_problem problem = problem_of(m.graph, k40m, 4);
  problem.sub_batch = 4;
  whole = plan_of(&problem, "modnn");
  ok(planc_update_other_algorithms(&m.plan, whole, &n));
  ck_assert_int_eq(n, -1);
  planc_plan_free(whole);
  mixed_free(&m);
}
END_TEST

/* --- From plan to plan ---------------------------------------------------------------------------------------- */

static void assert_same_plan(planc_plan *a, planc_plan *b, bool same_ideal) {
  char *ours, *theirs;
  size_t our_length, their_length;
  if (!same_ideal) a->predicted.jobs[0].ideal_ns = b->predicted.jobs[0].ideal_ns;
  ok(planc_plan_print(a, &ours, &our_length));
  ok(planc_plan_print(b, &theirs, &their_length));
  ck_assert_str_eq(ours, theirs);
  free(ours);
  free(theirs);
}

/* What nothing new is known of gives the same plan again: a plan holds what it takes to make it. */
START_TEST(a_plan_holds_what_it_was_made_with) {
  planc_graph *graph;
  ok(randgraph_make((uint64_t)_i, &(randgraph_options){.max_ops = 24, .max_elements = 4096}, &graph));
  for (int32_t p = 0; p < N_POLICIES; p++) {
    planc_problem problem = problem_of(graph, k40m, 64);
    problem.sub_batch = _i % 3 == 0 ? 24 : 64;
    planc_plan *plan, *again;
    ok(planc_make_plan(&problem, planc_policy_find(policies[p]), &plan));
    bool adds = false;
    for (int32_t a = 0; a < plan->n_algorithms; a++) adds |= strcmp(plan->algorithms[a], "add") == 0;
    sheet *run = run_of(plan);
    planc_update *update = update_of(plan, run, NULL, 0);
    ck_assert_int_eq(update->change_ppm, 0);
    problem.profile = update->profile;
    ok(planc_make_plan(&problem, planc_policy_find(policies[p]), &again));
    /* How long sums of gradients take is a line through those of all sizes. */
    if (!adds) assert_same_plan(again, plan, problem.sub_batch == 64);
    planc_plan_free(again);
    planc_update_free(update);
    free(run);
    planc_plan_free(plan);
  }
  planc_graph_free(graph);
}
END_TEST

/* Whatever device the algorithms come from, the plan's own has the memory. */
START_TEST(the_memory_is_that_of_the_plan) {
  planc_graph *graph;
  planc_profile *h100;
  ok(planc_profile_read("profiles/h100.json", &h100));
  ok(randgraph_make(1, &(randgraph_options){.max_ops = 24, .max_elements = 4096}, &graph));
  planc_problem problem = problem_of(graph, h100, 64);
  planc_plan *plan = plan_of(&problem, "none");
  sheet *run = run_of(plan);
  planc_update *update = update_of(plan, run, k40m, PLANC_UPDATE_WEIGHT_PPM);
  const planc_device *device = planc_profile_device(update->profile);
  ck_assert_str_eq(device->name, plan->device.name);
  ck_assert_int_gt(device_of(plan)->reserved_bytes, 0);
  ck_assert_int_ne(device_of(plan)->reserved_bytes, planc_profile_device(k40m)->reserved_bytes);
  ck_assert_int_eq(device->reserved_bytes, device_of(plan)->reserved_bytes);
  ck_assert_int_eq(device->memory_bytes, device_of(plan)->bytes);
  ck_assert_int_eq(device->in_flight, planc_profile_device(k40m)->in_flight);
  planc_update_free(update);
  free(run);
  planc_plan_free(plan);
  planc_graph_free(graph);
  planc_profile_free(h100);
}
END_TEST

/* The profile's part of what a plan reserves stays apart from the code of the plan's algorithms. */
START_TEST(code_stays_with_its_algorithms) {
  static const pl_labelled code[] = {{"default", 4096}, {"gemm", 70000}, {"implicit-gemm", 30000}};
  planc_graph *graph;
  ok(randgraph_make(1, &(randgraph_options){.max_ops = 24, .max_elements = 4096}, &graph));
  planc_profile with = *k40m;
  with.device.reserved_bytes = 12345;
  with.code = (pl_labels){3, code};
  planc_problem problem = problem_of(graph, &with, 64);
  planc_plan *plan = plan_of(&problem, "none"), *next;
  ck_assert_int_ge(device_of(plan)->reserved_bytes, 12345 + 4096);
  sheet *run = run_of(plan);
  planc_update *update = update_of(plan, run, &with, PLANC_UPDATE_WEIGHT_PPM);
  ck_assert_int_eq(planc_profile_device(update->profile)->reserved_bytes, 12345);
  ck_assert_int_eq(planc_profile_code(update->profile, "gemm"), 70000);
  planc_profile *read;
  char *text;
  size_t length;
  ok(planc_update_print(update, &text, &length));
  ok(planc_profile_parse(text, length, "update", &read));
  ck_assert_int_eq(planc_profile_code_of_all(read), planc_profile_code_of_all(&with));
  free(text);
  problem.profile = read;
  ok(planc_make_plan(&problem, planc_policy_find("none"), &next));
  ck_assert_int_eq(device_of(next)->reserved_bytes, device_of(plan)->reserved_bytes);
  planc_plan_free(next);
  planc_profile_free(read);
  planc_update_free(update);
  update = update_of(plan, run, NULL, PLANC_UPDATE_WEIGHT_PPM);
  ck_assert_int_eq(planc_profile_device(update->profile)->reserved_bytes, device_of(plan)->reserved_bytes);
  ck_assert_int_eq(planc_profile_code_of_all(update->profile), 0);
  planc_update_free(update);
  free(run);
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

START_TEST(profiles_survive_their_file) {
  uint64_t state = (uint64_t)_i;
  planc_graph *graph;
  ok(randgraph_make((uint64_t)_i, &(randgraph_options){.max_ops = 24, .max_elements = 4096}, &graph));
  planc_problem problem = problem_of(graph, k40m, 64);
  problem.sub_batch = 24;
  planc_plan *plan, *direct, *by_file;
  const planc_policy *policy = planc_policy_find(policies[_i % N_POLICIES]);
  ok(planc_make_plan(&problem, policy, &plan));
  int64_t *percent = draw_percents(&state, graph, 30, 600);
  planc_plan *other = on_another_machine(plan, percent);
  sheet *run = run_of(other);
  for (int with_base = 0; with_base < 2; with_base++) {
    planc_update *update = update_of(plan, run, with_base ? k40m : NULL, PLANC_UPDATE_WEIGHT_PPM);
    planc_profile *read;
    char *text;
    size_t length;
    ok(planc_update_print(update, &text, &length));
    ok(planc_profile_parse(text, length, "update", &read));
    free(text);
    problem.profile = update->profile;
    ok(planc_make_plan(&problem, policy, &direct));
    problem.profile = read;
    ok(planc_make_plan(&problem, policy, &by_file));
    assert_same_plan(by_file, direct, true);
    planc_plan_free(direct);
    planc_plan_free(by_file);
    planc_profile_free(read);
    planc_update_free(update);
  }
  free(run);
  free(percent);
  planc_plan_free(other);
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

/* --- What cannot be updated ----------------------------------------------------------------------------------- */

START_TEST(other_plans_are_refused) {
  planc_plan *plan;
  planc_update *update;
  ok(planc_plan_read("tests/data/timeline/tiny.plan", &plan));
  sheet *run = run_of(plan);
  planc_update_options options = {.plan = plan, .timeline = &run->timeline, .weight_ppm = PPM + 1};
  assert_fails(planc_update_make(&options, &update), PLANC_USAGE, "weight");
  options.weight_ppm = PPM;
  planc_plan two = *plan;
  planc_memory memories[] = {plan->memories[0], plan->memories[0], plan->memories[1], plan->memories[2]};
  planc_plan_link links[6];
  ck_assert_int_eq(plan->n_links, 6);
  for (int32_t l = 0; l < 6; l++) {
    links[l] = plan->links[l];
    links[l].from += links[l].from > 0;
    links[l].to += links[l].to > 0;
  }
  two.n_memories = 4;
  two.memories = memories;
  two.links = links;
  ck_assert_int_eq(planc_plan_gpus(&two), 2);
  options.plan = &two;
  assert_fails(planc_update_make(&options, &update), PLANC_USAGE, "one job");
  options.plan = plan;
  tables_links(plan, (planc_link){0}, *link_of(plan, PLANC_ROUTE_D2H));
  assert_fails(planc_update_make(&options, &update), PLANC_INVALID_PLAN, "k40m");
  tables_links(plan, (planc_link){.bytes_per_second = 1}, *link_of(plan, PLANC_ROUTE_D2H));
  for (int32_t i = 0; i < plan->body.n; i++)
    if (plan->body.instrs[i].op == PLANC_INSTR_exec) ((planc_instr *)&plan->body.instrs[i])->id = 1 << 20;
  assert_fails(planc_update_make(&options, &update), PLANC_INVALID_PLAN, "no instance");
  free(run);
  planc_plan_free(plan);
}
END_TEST

/* Whatever a trace may say, and a plan as well, gives a profile that can be read again. */
START_TEST(extremes_stay_within_the_format) {
  static const int64_t extremes[] = {0, 1, 2, PLANC_TIMELINE_LONGEST_NS / 7, PLANC_TIMELINE_LONGEST_NS};
  enum { N = sizeof extremes / sizeof *extremes };
  uint64_t state = (uint64_t)_i;
  planc_plan *plan;
  planc_profile *read;
  ok(planc_plan_read("tests/data/timeline/tiny.plan", &plan));
  for (int32_t i = 0; i < plan->body.n; i++)
    if (plan->body.instrs[i].op == PLANC_INSTR_exec && rand_chance(&state, 50))
      ((planc_instr *)&plan->body.instrs[i])->time_ns = (INT64_C(1) << 53) - rand_below(&state, 2);
  if (rand_chance(&state, 30)) tables_links(plan, (planc_link){1, INT64_C(1) << 53}, *link_of(plan, PLANC_ROUTE_D2H));
  if (rand_chance(&state, 30)) plan->device.slowdown_ppm = 1000 * (int64_t)PPM;
  sheet *s = sheet_of(plan, MOST_PERIODS);
  for (int32_t i = 0; i < MOST_PERIODS * s->timeline.n_timed; i++) {
    int64_t begin = extremes[rand_below(&state, N)];
    s->spans[i] = (planc_span){begin, begin + extremes[rand_below(&state, N)]};
  }
  for (int with_base = 0; with_base < 2; with_base++) {
    planc_update *update = update_of(plan, s, with_base ? k40m : NULL, rand_below(&state, PPM + 1));
    char *text;
    size_t length;
    ok(planc_update_print(update, &text, &length));
    ok(planc_profile_parse(text, length, "update", &read));
    planc_profile_free(read);
    free(text);
    ck_assert_int_ge(update->change_ppm, 0);
    ck_assert_int_ge(update->ops.new_ns, 0);
    planc_update_free(update);
  }
  free(s);
  planc_plan_free(plan);
}
END_TEST

/* --- The plan to go on with ----------------------------------------------------------------------------------- */

static void assert_valid(const planc_plan *plan) {
  ok(planc_check(plan, NULL, NULL));
}

/* Where each instruction's data is, is what it was: only times may differ. */
static void assert_same_decisions(const planc_plan *a, const planc_plan *b) {
  ck_assert_int_eq(a->body.n, b->body.n);
  for (int32_t i = 0; i < a->body.n; i++) {
    planc_instr left = a->body.instrs[i], right = b->body.instrs[i];
    left.time_ns = right.time_ns = left.busy_ppm = right.busy_ppm = 0;
    ck_assert_mem_eq(&left, &right, sizeof left);
  }
}

/* How updates ended: planned anew, or kept for lack of room or of speed. */
typedef struct endings {
  int32_t anew, for_room, for_speed;
} endings;

/* The old decisions at the new times are written out here: as the update's profile has them. */
static void assert_at_worst_the_old(const planc_plan *plan, const planc_problem *problem, const planc_policy *policy,
                                    endings *seen) {
  planc_replanned next;
  planc_retimed retimed;
  planc_simulation old_simulated, next_simulated;
  ok_in(planc_replan(problem, policy, plan, &next), policy->name);
  const planc_plan *chosen = planc_replanned_plan(&next);
  assert_valid(chosen);
  ck_assert_int_eq(device_of(chosen)->budget_bytes, device_of(plan)->budget_bytes);
  ck_assert_int_le(chosen->predicted.peak_bytes[PLANC_MEMORY_DEVICE], device_of(plan)->budget_bytes);
  ok(planc_retime(plan, problem->profile, &retimed));
  ok(planc_simulate(&retimed.plan, NULL, &old_simulated));
  ok(planc_simulate(chosen, NULL, &next_simulated));
  ck_assert_int_eq(chosen->predicted.iteration_ns, next_simulated.iteration_ns);
  ck_assert_int_le(chosen->predicted.iteration_ns, old_simulated.iteration_ns);
  if (next.keeps) {
    assert_same_decisions(chosen, plan);
    ck_assert_int_eq(chosen->predicted.iteration_ns, old_simulated.iteration_ns);
    if (next.made) ck_assert_int_gt(next.made->predicted.iteration_ns, chosen->predicted.iteration_ns);
  }
  seen->anew += !next.keeps;
  seen->for_room += next.keeps && !next.made;
  seen->for_speed += next.keeps && next.made;
  planc_retimed_free(&retimed);
  planc_replanned_free(&next);
}

/* A plan in the least budget that there is one for, run where every op and copy takes up to 20 times as long or short.
 */
START_TEST(an_update_is_at_worst_the_old_decisions) {
  static const char *const tight[] = {"tensile", "modnn", "capuchin", "vdnn-all"};
  enum { N_GRAPHS = 24, N_TIGHT = sizeof tight / sizeof *tight };
  uint64_t state = 1;
  endings seen = {0};
  for (uint64_t seed = 0; seed < N_GRAPHS; seed++) {
    planc_graph *graph;
    ok(randgraph_make(seed, &(randgraph_options){.max_ops = 24, .max_elements = 4096}, &graph));
    const planc_policy *policy = planc_policy_find(tight[seed % N_TIGHT]);
    planc_problem problem = problem_of(graph, k40m, 64);
    ok(planc_least_budget(&problem, policy, &problem.budget_bytes));
    planc_plan *plan = plan_of(&problem, policy->name);
    for (int with_base = 0; with_base < 2; with_base++) {
      int64_t *percent = draw_percents(&state, graph, 5, 2000);
      planc_plan *other = on_another_machine(plan, percent);
      sheet *run = run_of(other);
      planc_update *update = update_of(plan, run, with_base ? k40m : NULL, PPM);
      problem.profile = update->profile;
      problem.sub_batch = with_base ? 0 : plan->jobs[0].rounds[0];
      assert_at_worst_the_old(plan, &problem, policy, &seen);
      planc_update_free(update);
      free(run);
      free(percent);
      planc_plan_free(other);
    }
    planc_plan_free(plan);
    planc_graph_free(graph);
  }
  ck_assert_msg(seen.anew > 0 && seen.for_room > 0 && seen.for_speed > 0, "%d anew, %d for room, %d for speed",
                seen.anew, seen.for_room, seen.for_speed);
}
END_TEST

/* In less memory than it takes, or where they are not what is asked for, old decisions are no answer. */
START_TEST(old_decisions_answer_their_own_budgets) {
  planc_replanned next;
  planc_graph *graph;
  ok(planc_graph_read("tests/golden/inputs/tiny.yaml", &graph));
  const planc_policy *policy = planc_policy_find("vdnn-all");
  planc_problem problem = problem_of(graph, k40m, 4);
  planc_plan *plan = plan_of(&problem, "vdnn-all");
  sheet *run = run_of(plan);
  planc_update *update = update_of(plan, run, NULL, PPM);
  problem.profile = update->profile;
  /* Another policy that is slower; the host budget is the new one. */
  problem.host_budget_bytes = host_of(plan)->arena_bytes;
  ok(planc_replan(&problem, planc_policy_find("naive"), plan, &next));
  ck_assert(next.keeps);
  ck_assert_int_eq(host_of(planc_replanned_plan(&next))->budget_bytes, host_of(plan)->arena_bytes);
  assert_valid(planc_replanned_plan(&next));
  planc_replanned_free(&next);
  ok(planc_replan(&problem, policy, NULL, &next));
  ck_assert(!next.keeps && next.made);
  planc_replanned_free(&next);
  ck_assert_int_gt(host_of(plan)->arena_bytes, 0);
  problem.host_budget_bytes = 0;
  assert_fails(planc_replan(&problem, policy, plan, &next), PLANC_INFEASIBLE, "host memory");
  ck_assert_ptr_null(planc_replanned_plan(&next));
  problem.host_budget_bytes = -1;
  problem.budget_bytes = plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE] - 1;
  assert_fails(planc_replan(&problem, policy, plan, &next), PLANC_INFEASIBLE, "vdnn-all");
  planc_update_free(update);
  free(run);
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("update");
  TCase *all = tcase_create("all");
  tcase_add_unchecked_fixture(all, set_up, tear_down);
  tcase_set_timeout(all, 60);
  tcase_add_loop_test(all, weights_are_what_they_say, 0, 10);
  tcase_add_test(all, hand_overs_count_with_copies);
  tcase_add_loop_test(all, another_machine_is_found, 0, 30);
  tcase_add_test(all, another_storage_is_found);
  tcase_add_loop_test(all, what_did_not_run_goes_along, 0, 2);
  tcase_add_test(all, algorithms_are_offered_where_they_ran);
  tcase_add_test(all, workspaces_of_other_batches_stay);
  tcase_add_test(all, nothing_is_known_below_a_run_beyond_the_table);
  tcase_add_test(all, ops_with_other_algorithms_are_counted);
  tcase_add_loop_test(all, a_plan_holds_what_it_was_made_with, 0, 30);
  tcase_add_test(all, the_memory_is_that_of_the_plan);
  tcase_add_test(all, code_stays_with_its_algorithms);
  tcase_add_loop_test(all, profiles_survive_their_file, 0, 20);
  tcase_add_test(all, other_plans_are_refused);
  tcase_add_loop_test(all, extremes_stay_within_the_format, 0, 200);
  tcase_add_test(all, an_update_is_at_worst_the_old_decisions);
  tcase_add_test(all, old_decisions_answer_their_own_budgets);
  suite_add_tcase(suite, all);
  return run_suite(suite);
}
