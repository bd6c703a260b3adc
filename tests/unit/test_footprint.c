/* Memory without a plan: of random plans against what launches and ends say of every buffer, moment by moment; and that
 * giving back later never needs less. */
#include <check.h>
#include <stdlib.h>

#include "planc/lifespans.h"
#include "planc/policy.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

enum { GRAPHS = 60, MOST_LIVES = 8192, RULES = 2 };

static planc_profile *profile;
static void read_profile(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
}
static void free_profile(void) {
  planc_profile_free(profile);
}

/* A buffer, or the workspace of an instance. */
typedef struct life {
  int64_t bytes, from_ns, until_ns;
  bool used;
} life;

typedef struct seen {
  const planc_plan *plan;
  const planc_trace *trace;
  planc_free_at rule;
  int32_t buffer_of[MOST_LIVES];
  life lives[MOST_LIVES]; /* by buffer, and behind them by instance */
  int64_t first_ns, end_ns, backward_ns;
} seen;

static void note(life *of, int64_t from_ns, int64_t until_ns) {
  if (!of->used || from_ns < of->from_ns) of->from_ns = from_ns;
  if (!of->used || until_ns > of->until_ns) of->until_ns = until_ns;
  of->used = true;
}

static void note_all(seen *s, const planc_instr *instr, int64_t from_ns, int64_t until_ns) {
  if (instr->op != PLANC_INSTR_exec) {
    note(&s->lives[s->buffer_of[instr->id >= 0 ? instr->id : instr->aux]], from_ns, until_ns);
    return;
  }
  const planc_instance *in = &s->trace->instances[instr->id];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++)
    note(&s->lives[s->trace->accesses[a].buffer], from_ns, until_ns);
  life *workspace = &s->lives[s->trace->n_buffers + instr->id];
  workspace->bytes = instr->bytes;
  note(workspace, from_ns, until_ns);
}

static void see_launch(void *user, const planc_plan *plan, const planc_instr *instr, int64_t start_ns, int64_t end_ns) {
  seen *s = user;
  (void)plan;
  if (start_ns < s->first_ns) s->first_ns = start_ns;
  note_all(s, instr, start_ns, s->rule == PLANC_FREE_AT_SCHEDULE ? end_ns : start_ns);
}

static void see_end(void *user, const planc_plan *plan, const planc_instr *instr, int64_t start_ns, int64_t end_ns) {
  seen *s = user;
  (void)plan;
  if (end_ns > s->end_ns) s->end_ns = end_ns;
  bool op = instr->op == PLANC_INSTR_exec;
  if (op && planc_trace_op(s->trace, instr->id)->phase == PLANC_PHASE_backward && start_ns < s->backward_ns)
    s->backward_ns = start_ns;
  if (s->rule == PLANC_FREE_AT_COMPLETION) note_all(s, instr, end_ns, end_ns);
}

static bool is_live(const seen *s, int32_t of, int64_t now) {
  bool stays = of < s->trace->n_buffers && (s->trace->buffers[of].flags & PLANC_BUFFER_PERSISTENT) != 0;
  const life *at = &s->lives[of];
  return stays || (at->used && at->from_ns <= now && now < at->until_ns);
}

/* The most bytes that are live where something is taken, or at the start, and the first time of that. */
static int64_t peak_of(const seen *s, int64_t *out_ns) {
  int32_t n = s->trace->n_buffers + s->trace->n_instances;
  int64_t peak = 0;
  *out_ns = 0;
  for (int32_t k = -1; k < n; k++) {
    int64_t now = k < 0 ? s->first_ns : s->lives[k].from_ns, live = 0;
    if (k >= 0 && !s->lives[k].used) continue;
    for (int32_t of = 0; of < n; of++) live += is_live(s, of, now) ? s->lives[of].bytes : 0;
    if (live < peak || (live == peak && now - s->first_ns >= *out_ns && peak > 0)) continue;
    peak = live;
    *out_ns = now - s->first_ns;
  }
  return peak;
}

static void simulate(const planc_plan *plan, const planc_trace *trace, planc_free_at rule, seen *out) {
  planc_simulation simulation;
  *out = (seen){.plan = plan, .trace = trace, .rule = rule, .first_ns = INT64_MAX, .backward_ns = INT64_MAX};
  ck_assert_int_lt(plan->n_residencies, MOST_LIVES);
  ck_assert_int_lt(trace->n_buffers + trace->n_instances, MOST_LIVES);
  for (int32_t r = 0; r < plan->n_boundary; r++) out->buffer_of[r] = plan->boundary[r].buffer;
  for (int32_t b = 0; b < trace->n_buffers; b++) out->lives[b].bytes = trace->buffers[b].bytes;
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (instr->op == PLANC_INSTR_acquire) out->buffer_of[instr->id] = instr->aux;
  }
  ok(planc_simulate(
      plan, &(planc_simulate_options){.apart = true, .visitor = see_end, .launch_visitor = see_launch, .user = out},
      &simulation));
}

static planc_plan *make_plan(uint64_t *seed, const planc_graph *graph) {
  planc_plan *plan;
  planc_problem problem = {.job.graph = graph,
                           .job.profile = profile,
                           .job.batch = 1 + rand_below(seed, 40),
                           .terms.budgets[PLANC_MEMORY_DEVICE] = planc_profile_device(profile)->memory_bytes,
                           .terms.budgets[PLANC_MEMORY_HOST] = -1};
  ok(planc_make_plan(&problem, planc_policy_find("none"), &plan));
  plan->device.launch_ns = 1 + rand_below(seed, 40000);
  return plan;
}

START_TEST(memory_is_as_launches_and_ends_say) {
  static seen s;
  uint64_t seed = (uint64_t)_i;
  planc_graph *graph;
  planc_trace *trace;
  int64_t peaks[RULES];
  randgraph_options options = {.max_ops = 50, .inference = rand_chance(&seed, 10)};
  ok(randgraph_make(rand_next(&seed), &options, &graph));
  planc_plan *plan = make_plan(&seed, graph);
  ok(planc_expand(plan->jobs, plan->n_jobs, &trace));
  for (int k = 0; k < RULES; k++) {
    planc_footprint footprint;
    int64_t at_ns, most = 0;
    ok(planc_footprint_of(plan, &(planc_simulate_options){0}, (planc_free_at)k, &footprint));
    simulate(plan, trace, (planc_free_at)k, &s);
    peaks[k] = peak_of(&s, &at_ns);
    ck_assert_int_eq(footprint.peak_bytes, peaks[k]);
    ck_assert_int_eq(footprint.peak_ns, at_ns);
    ck_assert_int_eq(footprint.period_ns, s.end_ns - s.first_ns);
    ck_assert_int_eq(footprint.backward_ns, s.backward_ns == INT64_MAX ? -1 : s.backward_ns - s.first_ns);
    for (int part = 0; part < PLANC_FOOTPRINT_PARTS; part++)
      if (footprint.most_bytes[part] > most) most = footprint.most_bytes[part];
    ck_assert_int_eq(most, peaks[k]);
    ck_assert_int_le(footprint.mean_bytes, most);
  }
  ck_assert_int_le(peaks[PLANC_FREE_AT_SCHEDULE], peaks[PLANC_FREE_AT_COMPLETION]);
  planc_trace_free(trace);
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

/* The host does not wait for copies that it has launched. */
static int64_t copied_bytes(const planc_plan *plan) {
  int64_t sum = 0;
  for (int32_t i = 0; i < plan->body.n; i++)
    if (plan->body.instrs[i].op == PLANC_INSTR_copy) sum += plan->body.instrs[i].bytes;
  return sum;
}

/* Where each launch begins when the op before it has ended, what is in use is all that is live, as the plan has it, but
 * for what is copied. */
START_TEST(sequential_scheduling_takes_what_the_plan_does) {
  uint64_t seed = (uint64_t)_i;
  planc_graph *graph;
  planc_footprint footprint;
  planc_simulation simulation;
  ok(randgraph_make(rand_next(&seed), &(randgraph_options){.max_ops = 50}, &graph));
  planc_plan *plan = make_plan(&seed, graph);
  planc_simulate_options sequential = {.in_flight = 1};
  ok(planc_simulate(plan, &sequential, &simulation));
  ok(planc_footprint_of(plan, &sequential, PLANC_FREE_AT_COMPLETION, &footprint));
  ck_assert_int_le(footprint.peak_bytes, simulation.live_peak_bytes + copied_bytes(plan));
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("footprint");
  TCase *tests = tcase_create("footprint");
  tcase_add_unchecked_fixture(tests, read_profile, free_profile);
  tcase_add_loop_test(tests, memory_is_as_launches_and_ends_say, 0, GRAPHS);
  tcase_add_loop_test(tests, sequential_scheduling_takes_what_the_plan_does, 0, GRAPHS);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
