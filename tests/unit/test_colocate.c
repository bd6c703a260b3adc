/* Mixes of random graphs by every policy for mixes: the plan passes the checker, keeps its budget, is the same twice,
 * and every job comes to the reference's bits, the first to those that it comes to alone, in file order, in any order
 * its events allow, and with its streams running at once under random delays. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost/profile.h"
#include "planc/check.h"
#include "planc/colocate.h"
#include "planc/simulate.h"
#include "planner/colocate/ratio.h"
#include "planrt/planrt.h"
#include "tests/support/randgraph.h"
#include "tests/support/runs.h"
#include "tests/support/unit.h"
#include "util/math.h"
#include "util/size.h"

enum { MIXES = 40, MIXES_RUN = 16, MOST_JOBS = 3, PERIODS = 2, INTERLEAVINGS = 6 };

/* --- Mixes -------------------------------------------------------------------------------------------------------- */

static planc_profile *profile;

static void read_profile(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
}
static void free_profile(void) {
  planc_profile_free(profile);
}

typedef struct random_mix {
  planc_graph *graphs[MOST_JOBS]; /* NULL: that of the job before */
  planc_workload jobs[MOST_JOBS];
  int32_t iterations[MOST_JOBS];
  planc_mix mix;
  char name[32];
} random_mix;

static void make_mix(int number, random_mix *out) {
  static const int64_t regions[] = {0, 256, 512, 4096};
  uint64_t seed = (uint64_t)number;
  *out = (random_mix){.mix = {.max_ratio = 3}};
  snprintf(out->name, sizeof out->name, "mix %d", number);
  out->mix.n_jobs = 2 + (int32_t)rand_below(&seed, MOST_JOBS - 1);
  for (int32_t j = 0; j < out->mix.n_jobs; j++) {
    randgraph_options options = {.max_ops = 14, .inference = rand_chance(&seed, 15)};
    bool again = j > 0 && rand_chance(&seed, 25);
    if (!again) ok(randgraph_make(rand_next(&seed), &options, &out->graphs[j]));
    out->jobs[j] = (planc_workload){.graph = again ? out->jobs[j - 1].graph : out->graphs[j], .profile = profile};
    out->jobs[j].batch = 1 + rand_below(&seed, 5);
    out->jobs[j].swap_rate = number % 6 == 5 ? 1 + rand_below(&seed, 999999) : 0;
    out->iterations[j] = (int32_t)rand_below(&seed, 4);
  }
  out->mix.terms = (planc_terms){
      .budgets = {planc_profile_device(profile)->memory_bytes, number % 8 == 7 ? 4096 * (number / 8) : -1},
      .settings = {.region = regions[number % 4],
                   .split_groups = number % 5 == 1 ? 6 : 0,
                   .split_size = number % 5 == 2 ? 1024 : 0,
                   .release_split = number % 7 == 3 ? 3000 : 0,
                   .split_relaxed = number % 4 == 1,
                   .split_variable = number % 4 == 2,
                   .pair_barriers = number % 3 == 1}};
  out->mix.jobs = out->jobs;
  out->mix.iterations = out->iterations;
}

static void free_mix(random_mix *m) {
  for (int32_t j = 0; j < m->mix.n_jobs; j++) planc_graph_free(m->graphs[j]);
}

static void set_budget(random_mix *m, int64_t bytes) {
  m->mix.terms.budgets[PLANC_MEMORY_DEVICE] = bytes;
}

static void set_host_budget(random_mix *m, int64_t bytes) {
  m->mix.terms.budgets[PLANC_MEMORY_HOST] = bytes;
}

/* --- Running ------------------------------------------------------------------------------------------------------ */

/* The first job comes to what it comes to alone, iteration for iteration; that the others come to what they should
 * `verify` sees. */
static void first_job_is_as_if_alone(const random_mix *m, const planc_plan *plan, const planrt_session *together) {
  planc_plan *alone;
  planrt_session *session;
  planc_problem problem = planc_mix_problem(&m->mix, 0);
  if (plan->jobs[0].n_rounds > 1) return; /* which differ from the whole batch by the number of the round */
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = planc_profile_device(profile)->memory_bytes;
  ok_in(planc_make_plan(&problem, planc_policy_find("none"), &alone), m->name);
  run_periods(alone, IN_ORDER, 0, (int64_t)PERIODS * plan->jobs[0].iterations, &session);
  assert_first_job_same(together, session, problem.job.graph, problem.job.batch, m->name);
  planrt_session_free(session);
  planc_plan_free(alone);
}

static void runs_right(const random_mix *m, const planc_plan *plan) {
  planrt_session *session;
  for (int how = 0; how < N_WAYS; how++) {
    for (uint64_t seed = 0; seed < (how == INTERLEAVED ? INTERLEAVINGS : 1); seed++) {
      run_periods(plan, (way)how, seed, PERIODS, &session);
      if (how != INTERLEAVED) first_job_is_as_if_alone(m, plan, session);
      planrt_session_free(session);
    }
  }
}

/* --- Plans -------------------------------------------------------------------------------------------------------- */

static char *bytes_of(const planc_plan *plan) {
  char *text;
  size_t length;
  ok(planc_plan_print(plan, &text, &length));
  return text;
}

/* No policy that may fall back is slower than what it falls back to. */
static bool turns_are_slower(const random_mix *m, const planc_plan *plan, planc_mix_share *shares) {
  planc_mix_share own[MOST_JOBS];
  planc_plan *turns;
  memcpy(own, shares, sizeof own);
  planc_status status = planc_colocate(&m->mix, planc_mix_policy_find("temporal"), own, &turns);
  bool slower = status || turns->predicted.period_ns >= plan->predicted.period_ns;
  planc_status_free(status);
  planc_plan_free(turns);
  return slower;
}

static void is_right(const random_mix *m, const planc_mix_policy *policy, planc_mix_share *shares) {
  planc_plan *plan, *again;
  planc_check_report report;
  ok_in(planc_colocate(&m->mix, policy, shares, &plan), m->name);
  ok_in(planc_check(plan, NULL, &report), m->name);
  ck_assert_int_le(report.peak_bytes[PLANC_MEMORY_DEVICE], m->mix.terms.budgets[PLANC_MEMORY_DEVICE]);
  if (m->mix.terms.budgets[PLANC_MEMORY_HOST] >= 0)
    ck_assert_int_le(report.peak_bytes[PLANC_MEMORY_HOST], m->mix.terms.budgets[PLANC_MEMORY_HOST]);
  if (policy->falls_back && !turns_are_slower(m, plan, shares)) ck_abort_msg("%s: %s is slower", m->name, policy->name);
  for (int32_t j = 0; j < plan->n_jobs; j++) {
    ck_assert_int_eq(plan->jobs[j].iterations, shares[j].iterations);
    ck_assert_int_gt(shares[j].speed_ppm, 0);
  }
  ok_in(planc_colocate(&m->mix, policy, shares, &again), m->name);
  char *a = bytes_of(plan), *b = bytes_of(again);
  ck_assert_str_eq(a, b);
  free(a);
  free(b);
  planc_plan_free(again);
  runs_right(m, plan);
  planc_plan_free(plan);
}

/* Of the first job, and none of the others. */
static const int64_t far_deadlines[MOST_JOBS] = {INT64_C(1) << 40};

/* With room for all, at the least budget, and not below. */
START_TEST(mixes_run_as_alone) {
  random_mix m;
  int number = 0;
  make_mix(_i, &m);
  for (const planc_mix_policy *policy = planc_mix_policies(); policy->name; policy++) {
    planc_mix_share shares[MOST_JOBS];
    planc_least least;
    planc_plan *plan;
    if (!policy->make || !is_sampled(_i + number++, 2)) continue;
    m.mix.deadlines_ns = policy->supports & PLANC_MIX_DEADLINES ? far_deadlines : NULL;
    set_budget(&m, planc_profile_device(profile)->memory_bytes);
    ok_in(planc_mix_resolve(&m.mix, shares), m.name);
    is_right(&m, policy, shares);
    ok_in(planc_mix_find_least(&m.mix, policy, shares, PLANC_MEMORY_DEVICE, NULL, &least), m.name);
    planc_plan_free(least.plan);
    set_budget(&m, least.bytes);
    is_right(&m, policy, shares);
    if (!least.is_least) continue;
    set_budget(&m, least.bytes - PLANC_ALIGNMENT);
    assert_fails(planc_colocate(&m.mix, policy, shares, &plan), PLANC_INFEASIBLE, "");
    ck_assert_ptr_null(plan);
  }
  free_mix(&m);
}
END_TEST

typedef struct seen_op {
  int32_t job, iteration;
  int64_t start_ns, end_ns;
} seen_op;
typedef struct seen_ops {
  const planc_trace *trace;
  int32_t n;
  seen_op of[4096];
} seen_ops;

static void see(void *user, const planc_plan *plan, const planc_instr *instr, int64_t start_ns, int64_t end_ns) {
  seen_ops *seen = user;
  bool in_body = instr >= plan->body.instrs && instr < plan->body.instrs + plan->body.n;
  if (!in_body || instr->op != PLANC_INSTR_exec) return;
  ck_assert_int_lt(seen->n, 4096);
  seen->of[seen->n++] =
      (seen_op){seen->trace->instances[instr->id].job, seen->trace->instances[instr->id].iteration, start_ns, end_ns};
}

static seen_ops seen;

/* Fills `seen`, and says how long the period is. */
static int64_t observe(const planc_plan *plan) {
  planc_trace *trace;
  planc_simulation simulation;
  ok(planc_expand(plan->jobs, plan->n_jobs, &trace));
  seen = (seen_ops){.trace = trace};
  ok(planc_simulate(plan, &(planc_simulate_options){.visitor = see, .user = &seen}, &simulation));
  ck_assert_int_eq(seen.n, trace->n_instances);
  planc_trace_free(trace);
  return simulation.period_ns;
}

/* No two jobs compute at a time, not even beyond the end of a period. */
START_TEST(turns_do_not_overlap) {
  random_mix m;
  planc_mix_share shares[MOST_JOBS];
  planc_plan *plan;
  make_mix(_i, &m);
  ok(planc_mix_resolve(&m.mix, shares));
  ok(planc_colocate(&m.mix, planc_mix_policy_find("temporal"), shares, &plan));
  int64_t period_ns = observe(plan);
  for (int32_t a = 0; a < seen.n; a++) {
    for (int32_t b = 0; b < seen.n; b++) {
      const seen_op *x = &seen.of[a], *y = &seen.of[b];
      if (x->job == y->job) continue;
      ck_assert(x->end_ns <= y->start_ns || y->end_ns <= x->start_ns);
      ck_assert_int_le(x->end_ns, y->start_ns + period_ns);
    }
  }
  planc_plan_free(plan);
  free_mix(&m);
}
END_TEST

/* When the ops of an iteration begin and end. */
static void find_iteration(int32_t job, int32_t iteration, int64_t *out_start, int64_t *out_end) {
  *out_start = INT64_MAX;
  *out_end = INT64_MIN;
  for (int32_t a = 0; a < seen.n; a++) {
    if (seen.of[a].job != job || seen.of[a].iteration != iteration) continue;
    if (seen.of[a].start_ns < *out_start) *out_start = seen.of[a].start_ns;
    if (seen.of[a].end_ns > *out_end) *out_end = seen.of[a].end_ns;
  }
}

/* Of one job or two, by a random number of its own iterations. */
static void set_deadlines(random_mix *m, int32_t seed, const planc_mix_share *shares, int64_t *deadlines) {
  int64_t all = 0;
  for (int32_t j = 0; j < m->mix.n_jobs; j++) all += shares[j].alone_ns;
  for (int32_t j = 0; j < m->mix.n_jobs; j++)
    deadlines[j] = j <= seed % 2 ? 2 * shares[j].alone_ns + all * (1 + seed % 5) / 3 : 0;
  m->mix.deadlines_ns = deadlines;
}

/* Requests take no longer than they may, nothing else computes while one is served, and results are those of each job
 * alone; or the plan is refused. */
START_TEST(requests_are_in_time) {
  random_mix m;
  planc_mix_share shares[MOST_JOBS];
  int64_t deadlines[MOST_JOBS];
  planc_plan *plan;
  planc_check_report report;
  make_mix(_i, &m);
  set_budget(&m, planc_profile_device(profile)->memory_bytes);
  ok_in(planc_mix_resolve(&m.mix, shares), m.name);
  set_deadlines(&m, _i, shares, deadlines);
  ok_in(planc_mix_resolve(&m.mix, shares), m.name);
  planc_status status = planc_colocate(&m.mix, planc_mix_policy_find("preemptive"), shares, &plan);
  if (planc_status_code(status) == PLANC_LATE) {
    ck_assert_int_lt(_i % 5, 3); /* else there is time for an iteration of each */
    assert_fails(status, PLANC_LATE, "the deadline is");
    ck_assert_ptr_null(plan);
    free_mix(&m);
    return;
  }
  ok_in(status, m.name);
  ok_in(planc_check(plan, NULL, &report), m.name);
  int64_t period_ns = observe(plan);
  for (int32_t j = 0; j < m.mix.n_jobs; j++) {
    ck_assert_int_eq(plan->jobs[j].iterations, shares[j].iterations);
    ck_assert_int_eq(shares[j].deadline_ns, deadlines[j]);
    for (int32_t k = 0; deadlines[j] > 0 && k < shares[j].iterations; k++) {
      int64_t start_ns, end_ns, next_ns, next_end_ns;
      find_iteration(j, k, &start_ns, &end_ns);
      find_iteration(j, (k + 1) % shares[j].iterations, &next_ns, &next_end_ns);
      if (k + 1 == shares[j].iterations) next_end_ns += period_ns;
      ck_assert_int_le(next_end_ns - start_ns, shares[j].response_ns);
      ck_assert_int_le(shares[j].response_ns, deadlines[j]);
      for (int32_t a = 0; a < seen.n; a++)
        for (int64_t shift = -period_ns; shift <= period_ns && seen.of[a].job != j; shift += period_ns)
          ck_assert(seen.of[a].end_ns + shift <= start_ns || end_ns <= seen.of[a].start_ns + shift);
    }
  }
  runs_right(&m, plan);
  planc_plan_free(plan);
  free_mix(&m);
}
END_TEST

/* No number of iterations helps where two of them alone are too long; nor is a deadline ever just passed over. */
START_TEST(late_requests_are_refused) {
  random_mix m;
  planc_mix_share shares[MOST_JOBS];
  int64_t deadlines[MOST_JOBS] = {1};
  planc_plan *plan;
  make_mix(_i, &m);
  set_budget(&m, planc_profile_device(profile)->memory_bytes);
  m.mix.max_ratio = 3;
  m.mix.deadlines_ns = deadlines;
  for (const planc_mix_policy *policy = planc_mix_policies(); policy->name; policy++) {
    if (!policy->make) continue;
    ok_in(planc_mix_resolve(&m.mix, shares), m.name);
    assert_fails(planc_colocate(&m.mix, policy, shares, &plan), PLANC_LATE, "job 0 (");
    ck_assert_ptr_null(plan);
  }
  m.mix.deadlines_ns = NULL;
  assert_fails(planc_colocate(&m.mix, planc_mix_policy_find("preemptive"), shares, &plan), PLANC_USAGE, "deadlines");
  deadlines[0] = -1;
  m.mix.deadlines_ns = deadlines;
  assert_fails(planc_mix_resolve(&m.mix, shares), PLANC_USAGE, "a deadline of -1 ns");
  free_mix(&m);
}
END_TEST

/* Turns in which no job has more iterations than its mix had at first. */
static planc_status make_seldom(const planc_mix_evaluator *evaluator, const planc_mix_share *shares,
                                planc_candidate *out) {
  for (int32_t j = 0; j < evaluator->mix->n_jobs; j++)
    if (shares[j].iterations > 2) return planc_error(PLANC_INFEASIBLE, "too often");
  return planc_mix_policy_find("temporal")->make(evaluator, shares, out);
}

/* Where more iterations than are late do not fit, the mix is late with those that do. */
START_TEST(a_late_mix_has_the_shares_of_its_plan) {
  static const planc_mix_policy seldom = {.name = "seldom", .make = make_seldom};
  random_mix m;
  planc_mix_share shares[MOST_JOBS];
  int64_t deadlines[MOST_JOBS] = {1};
  planc_plan *plan;
  char told[96], taken[PL_SIZE_TEXT];
  make_mix(_i, &m);
  m.mix.max_ratio = 0;
  m.mix.deadlines_ns = deadlines;
  for (int32_t j = 0; j < m.mix.n_jobs; j++) m.iterations[j] = j == 0 ? 0 : 2;
  ok(planc_mix_resolve(&m.mix, shares));
  shares[0].iterations = 2;
  planc_status status = planc_colocate(&m.mix, &seldom, shares, &plan);
  ck_assert_ptr_null(plan);
  ck_assert_int_eq(shares[0].iterations, 2);
  snprintf(told, sizeof told, "requests take up to %s, with 2 iterations in a period",
           pl_time_format(pl_align_up(shares[0].response_ns, 1000), taken));
  assert_fails(status, PLANC_LATE, told);
  free_mix(&m);
}
END_TEST

/* How many other jobs compute when an op begins, what reaches over from the period before included. */
static int32_t count_beside(const seen_op *op, int64_t period_ns) {
  bool beside[MOST_JOBS] = {false};
  int32_t n = 0;
  for (int32_t b = 0; b < seen.n; b++) {
    const seen_op *other = &seen.of[b];
    for (int64_t shift = -period_ns; shift <= 0; shift += period_ns)
      if (other->start_ns + shift <= op->start_ns && op->start_ns < other->end_ns + shift) beside[other->job] = true;
  }
  for (int32_t j = 0; j < MOST_JOBS; j++) n += beside[j] && j != op->job;
  return n;
}

/* With barriers between pairs no more than two jobs ever compute at a time. */
START_TEST(pairs_are_of_two) {
  random_mix m;
  planc_mix_share shares[MOST_JOBS];
  planc_plan *plan;
  make_mix(_i, &m);
  m.mix.terms.settings.pair_barriers = 1;
  ok(planc_mix_resolve(&m.mix, shares));
  ok(planc_colocate(&m.mix, planc_mix_policy_find("waterwave"), shares, &plan));
  int64_t period_ns = observe(plan);
  for (int32_t a = 0; a < seen.n; a++) ck_assert_int_le(count_beside(&seen.of[a], period_ns), 1);
  planc_plan_free(plan);
  free_mix(&m);
}
END_TEST

/* What Zico says of the shift of two jobs is so in its plan, and not in one that it gave up for less memory. */
START_TEST(shifts_are_those_of_the_plan) {
  random_mix m;
  planc_mix_share shares[MOST_JOBS];
  planc_plan *plan;
  make_mix(_i, &m);
  ok(planc_mix_resolve(&m.mix, shares));
  ok(planc_colocate(&m.mix, planc_mix_policy_find("zico"), shares, &plan));
  const char *told = strstr(plan->explanation, ": in every period");
  int64_t period_ns = observe(plan), starts[MOST_JOBS], end;
  for (int32_t j = 0; j < m.mix.n_jobs; j++) find_iteration(j, 0, &starts[j], &end);
  int64_t later = (starts[1] - starts[0]) % period_ns;
  if (later < 0) later += period_ns;
  bool ahead = later > period_ns - later;
  char expected[96], text[PL_SIZE_TEXT];
  snprintf(expected, sizeof expected, ": in every period job %d begins %s after job %d", ahead ? 0 : 1,
           pl_time_format(ahead ? period_ns - later : later, text), ahead ? 1 : 0);
  if (told) ck_assert_str_eq(told, expected);
  planc_plan_free(plan);
  free_mix(&m);
}
END_TEST

/* --- Memory of their own ------------------------------------------------------------------------------------------ */

/* The lowest and the highest address on the device that a job's data have. */
typedef struct extent {
  int64_t low, high;
} extent;

static void extend(const planc_plan *plan, const planc_trace *trace, int32_t memory, int32_t buffer, int64_t address,
                   extent *extents) {
  if (plan->memories[memory].kind != PLANC_MEMORY_DEVICE) return;
  extent *of = &extents[trace->buffers[buffer].job];
  if (address < of->low) of->low = address;
  if (address + trace->buffers[buffer].bytes > of->high) of->high = address + trace->buffers[buffer].bytes;
}

static const char *const apart[] = {"tensile", "vdnn-conv", "capuchin"};
enum { N_APART = sizeof apart / sizeof *apart };

/* No two jobs ever have the same address. */
START_TEST(jobs_have_memory_of_their_own) {
  random_mix m;
  planc_mix_share shares[MOST_JOBS];
  planc_plan *plan;
  planc_trace *trace;
  extent extents[MOST_JOBS];
  make_mix(_i / N_APART, &m);
  ok_in(planc_mix_resolve(&m.mix, shares), m.name);
  planc_status status = planc_colocate(&m.mix, planc_mix_policy_find(apart[_i % N_APART]), shares, &plan);
  if (planc_status_code(status) == PLANC_INFEASIBLE && m.mix.terms.budgets[PLANC_MEMORY_HOST] >= 0) {
    planc_status_free(status);
    free_mix(&m);
    return;
  }
  ok_in(status, m.name);
  ok(planc_expand(plan->jobs, plan->n_jobs, &trace));
  for (int32_t j = 0; j < MOST_JOBS; j++) extents[j] = (extent){INT64_MAX, 0};
  for (int32_t b = 0; b < plan->n_boundary; b++)
    extend(plan, trace, plan->boundary[b].memory, plan->boundary[b].buffer, plan->boundary[b].address, extents);
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (instr->op == PLANC_INSTR_acquire) extend(plan, trace, instr->memory, instr->aux, instr->address, extents);
  }
  for (int32_t j = 0; j + 1 < m.mix.n_jobs; j++) ck_assert_int_le(extents[j].high, extents[j + 1].low);
  planc_trace_free(trace);
  planc_plan_free(plan);
  free_mix(&m);
}
END_TEST

/* What a job needs where it neither swaps nor computes again. */
static int64_t need_of(planc_problem problem) {
  planc_plan *plan;
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = planc_profile_device(profile)->memory_bytes;
  ok(planc_make_plan(&problem, planc_policy_find("none"), &plan));
  int64_t need = plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE] - planc_profile_device(profile)->reserved_bytes;
  planc_plan_free(plan);
  return need;
}

/* How often ops of a job run in the body, recomputes included. */
static int64_t n_runs_of(const planc_plan *plan, int32_t job) {
  planc_trace *trace;
  int64_t n = 0;
  ok(planc_expand(plan->jobs, plan->n_jobs, &trace));
  for (int32_t i = 0; i < plan->body.n; i++)
    n += plan->body.instrs[i].op == PLANC_INSTR_exec && trace->instances[plan->body.instrs[i].id].job == job;
  planc_trace_free(trace);
  return n;
}

/* Within its part of the budget each job moves and computes again, in each iteration, what it does alone by the policy
 * of that name. Where one has no plan there, the mix has one only if another job does with less. */
START_TEST(baselines_plan_each_job_alone) {
  random_mix m;
  planc_mix_share shares[MOST_JOBS];
  planc_plan *plan, *alone[MOST_JOBS] = {NULL};
  int64_t needs[MOST_JOBS] = {0}, sum = 0, reserved = planc_profile_device(profile)->reserved_bytes;
  bool fit = true;
  const char *name = apart[1 + _i % 2];
  make_mix(_i / 2, &m);
  set_host_budget(&m, -1);
  for (int32_t j = 0; j < m.mix.n_jobs; j++) sum += needs[j] = need_of(planc_mix_problem(&m.mix, j));
  int64_t room = _i % 4 < 2 ? sum * 9 / 10 : sum * 6 / 5;
  for (int32_t j = 0; j < m.mix.n_jobs && fit; j++) {
    planc_problem problem = planc_mix_problem(&m.mix, j);
    problem.terms.budgets[PLANC_MEMORY_DEVICE] = room * needs[j] / sum / PLANC_ALIGNMENT * PLANC_ALIGNMENT + reserved;
    planc_status status = planc_make_plan(&problem, planc_policy_find(name), &alone[j]);
    fit = !status;
    ck_assert(fit || planc_status_code(status) == PLANC_INFEASIBLE);
    planc_status_free(status);
  }
  ok_in(planc_mix_resolve(&m.mix, shares), m.name);
  set_budget(&m, room + reserved);
  planc_status status = planc_colocate(&m.mix, planc_mix_policy_find(name), shares, &plan);
  if (fit) ck_assert(!status);
  ck_assert(!status || planc_status_code(status) == PLANC_INFEASIBLE);
  planc_status_free(status);
  for (int32_t j = 0; j < m.mix.n_jobs && fit; j++) {
    const planc_job_predictions *got = &plan->predicted.jobs[j], *want = &alone[j]->predicted.jobs[0];
    ck_assert_int_eq(got->copied_bytes[PLANC_ROUTE_D2H], want->copied_bytes[PLANC_ROUTE_D2H] * shares[j].iterations);
    ck_assert_int_eq(got->copied_bytes[PLANC_ROUTE_H2D], want->copied_bytes[PLANC_ROUTE_H2D] * shares[j].iterations);
    ck_assert_int_eq(n_runs_of(plan, j), n_runs_of(alone[j], 0) * shares[j].iterations);
  }
  for (int32_t j = 0; j < m.mix.n_jobs; j++) planc_plan_free(alone[j]);
  planc_plan_free(plan);
  free_mix(&m);
}
END_TEST

/* What is enough for each job is enough for all, however unequal the parts are by which they save. */
START_TEST(baselines_fit_what_their_jobs_take) {
  random_mix m;
  planc_mix_share shares[MOST_JOBS];
  planc_plan *plan;
  const char *name = apart[1 + _i % 2];
  int64_t reserved = planc_profile_device(profile)->reserved_bytes, budget = reserved;
  make_mix(_i / 2, &m);
  set_host_budget(&m, -1);
  for (int32_t j = 0; j < m.mix.n_jobs; j++) {
    const planc_problem problem = planc_mix_problem(&m.mix, j);
    planc_least least;
    ok_in(planc_find_least_device(&problem, planc_policy_find(name), NULL, &least), m.name);
    budget += least.bytes - reserved;
    planc_plan_free(least.plan);
  }
  set_budget(&m, budget);
  ok_in(planc_mix_resolve(&m.mix, shares), m.name);
  ok_in(planc_colocate(&m.mix, planc_mix_policy_find(name), shares, &plan), m.name);
  planc_plan_free(plan);
  free_mix(&m);
}
END_TEST

/* Of two jobs that are alike, the one that may swap fewer tensors moves fewer bytes; with the same rate they take the
 * same memory. */
START_TEST(rates_are_priorities) {
  planc_graph *graph;
  const char *derived;
  planc_plan *plan, *even;
  planc_mix_share shares[2];
  int32_t iterations[2] = {1, 1};
  ok(planc_graph_prepare("graphs/resnet50.yaml", NULL, false, &graph, &derived));
  planc_workload jobs[2] = {{.graph = graph, .profile = profile, .batch = 32}};
  planc_mix mix = {.terms.budgets = {INT64_C(12) << 30, -1}, .n_jobs = 2, .jobs = jobs, .iterations = iterations};
  const planc_mix_policy *tensile = planc_mix_policy_find("tensile");
  jobs[1] = jobs[0];
  ok(planc_mix_resolve(&mix, shares));
  ok(planc_colocate(&mix, tensile, shares, &even));
  jobs[1].swap_rate = 2000;
  ok(planc_colocate(&mix, tensile, shares, &plan));
  ck_assert_int_eq(even->predicted.jobs[0].copied_bytes[PLANC_ROUTE_D2H],
                   even->predicted.jobs[1].copied_bytes[PLANC_ROUTE_D2H]);
  ck_assert_int_gt(plan->predicted.jobs[1].copied_bytes[PLANC_ROUTE_D2H], 0);
  ck_assert_int_lt(plan->predicted.jobs[1].copied_bytes[PLANC_ROUTE_D2H],
                   plan->predicted.jobs[0].copied_bytes[PLANC_ROUTE_D2H] / 2);
  ck_assert_int_lt(even->predicted.peak_bytes[PLANC_MEMORY_DEVICE], plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE]);
  planc_plan_free(plan);
  planc_plan_free(even);
  planc_graph_free(graph);
}
END_TEST

/* --- Ratios ------------------------------------------------------------------------------------------------------- */

static int64_t lack_ppm(const pl_ratio_job *jobs, int32_t n, const int32_t *iterations) {
  int64_t least = INT64_MAX, most = 0;
  for (int32_t j = 0; j < n; j++) {
    int64_t ns = jobs[j].alone_ns * iterations[j];
    least = ns < least ? ns : least;
    most = ns > most ? ns : most;
  }
  return (most - least) * 1000000 / most;
}

START_TEST(ratios_fill_the_period) {
  static const struct {
    int64_t ns[3];
    int32_t given[3], most, want[3];
  } cases[] = {
      {{100, 350, 0}, {0, 0}, 8, {7, 2}},        {{100, 301, 0}, {0, 0}, 8, {3, 1}},
      {{100, 100, 100}, {0}, 8, {1, 1, 1}},      {{1, 1000, 0}, {0, 0}, 8, {8, 1}},
      {{100, 350, 0}, {0, 0}, 3, {3, 1}},        {{100, 350, 0}, {2, 0}, 8, {2, 1}},
      {{100, 350, 50}, {0, 2, 0}, 8, {7, 2, 8}}, {{100, 350, 0}, {12, 0}, 8, {12, 3}},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    pl_ratio_job jobs[3];
    int32_t got[3], n = cases[c].ns[2] > 0 ? 3 : 2;
    for (int32_t j = 0; j < n; j++) jobs[j] = (pl_ratio_job){cases[c].ns[j], cases[c].given[j]};
    pl_choose_ratio(jobs, n, cases[c].most, got);
    for (int32_t j = 0; j < n; j++) ck_assert_msg(got[j] == cases[c].want[j], "case %zu, job %d: %d", c, j, got[j]);
  }
}
END_TEST

/* No pair of iterations within the most lacks much less, unless what was chosen lacks little and is shorter. */
START_TEST(ratios_are_the_best) {
  enum { MOST = 6, LITTLE = 100000, MUCH = 20000 };
  uint64_t seed = 3;
  for (int k = 0; k < 2000; k++) {
    pl_ratio_job jobs[2] = {{1 + rand_below(&seed, 1000), 0}, {1 + rand_below(&seed, 1000), 0}};
    int32_t got[2], at[2];
    pl_choose_ratio(jobs, 2, MOST, got);
    int64_t lacks = lack_ppm(jobs, 2, got);
    for (at[0] = 1; at[0] <= MOST; at[0]++)
      for (at[1] = 1; at[1] <= MOST; at[1]++)
        ck_assert_msg(lacks <= LITTLE + 1 || lack_ppm(jobs, 2, at) >= lacks - MUCH,
                      "%lld, %lld: %d, %d, and %d, %d is better", (long long)jobs[0].alone_ns,
                      (long long)jobs[1].alone_ns, got[0], got[1], at[0], at[1]);
  }
}
END_TEST

/* --- Budgets and devices ------------------------------------------------------------------------------------------ */

/* So that most mixes are asked for one unit less above. */
START_TEST(least_budgets_are_known) {
  int32_t n = 0, n_least = 0;
  for (int number = 0; number < MIXES; number++) {
    random_mix m;
    planc_mix_share shares[MOST_JOBS];
    planc_least least;
    if (!is_sampled(number, 3)) continue;
    make_mix(number, &m);
    ok_in(planc_mix_resolve(&m.mix, shares), m.name);
    ok_in(planc_mix_find_least(&m.mix, planc_mix_policy_find("temporal"), shares, PLANC_MEMORY_DEVICE, NULL, &least),
          m.name);
    ck_assert_int_le(least.tried, PLANC_LEAST_PLANS);
    n++;
    n_least += least.is_least;
    planc_plan_free(least.plan);
    free_mix(&m);
  }

  ck_assert_int_ge(n_least, n * 9 / 10);
}
END_TEST

/* What the first job's profile says of the device is so for all jobs, whatever theirs say. */
START_TEST(one_device_serves_all) {
  random_mix m;
  planc_mix_share shares[MOST_JOBS], others[MOST_JOBS];
  planc_plan *plan, *same;
  planc_profile *other;
  make_mix(_i, &m);
  ok(planc_profile_read("profiles/k40m.json", &other));
  other->device.launch_ns *= 1000;
  other->device.links[PLANC_ROUTE_H2D].bytes_per_second /= 7;
  ok_in(planc_mix_resolve(&m.mix, shares), m.name);
  ok_in(planc_colocate(&m.mix, planc_mix_policy_find("temporal"), shares, &plan), m.name);
  for (int32_t j = 1; j < m.mix.n_jobs; j++) m.jobs[j].profile = other;
  ok_in(planc_mix_resolve(&m.mix, others), m.name);
  ok_in(planc_colocate(&m.mix, planc_mix_policy_find("temporal"), others, &same), m.name);
  char *a = bytes_of(plan), *b = bytes_of(same);
  ck_assert_str_eq(a, b);
  for (int32_t j = 0; j < m.mix.n_jobs; j++) ck_assert_int_eq(shares[j].alone_ns, others[j].alone_ns);
  free(a);
  free(b);
  planc_plan_free(plan);
  planc_plan_free(same);
  planc_profile_free(other);
  free_mix(&m);
}
END_TEST

/* What is reserved is the most that any profile says, what copies cost ops the mean. */
START_TEST(devices_are_joined) {
  random_mix m;
  planc_mix_share shares[MOST_JOBS];
  planc_plan *plan, *same;
  planc_profile *other, *joined;
  int64_t own = profile->device.slowdown_ppm, more = own + 600000;
  make_mix(_i, &m);
  ok(planc_profile_read("profiles/k40m.json", &other));
  ok(planc_profile_read("profiles/k40m.json", &joined));
  other->device.reserved_bytes = joined->device.reserved_bytes = profile->device.reserved_bytes + 4096;
  other->device.slowdown_ppm = more;
  joined->device.slowdown_ppm = (own + more * (m.mix.n_jobs - 1)) / m.mix.n_jobs;
  for (int32_t j = 1; j < m.mix.n_jobs; j++) m.jobs[j].profile = other;
  ok_in(planc_mix_resolve(&m.mix, shares), m.name);
  ok_in(planc_colocate(&m.mix, planc_mix_policy_find("temporal"), shares, &plan), m.name);
  for (int32_t j = 0; j < m.mix.n_jobs; j++) m.jobs[j].profile = joined;
  ok_in(planc_mix_resolve(&m.mix, shares), m.name);
  ok_in(planc_colocate(&m.mix, planc_mix_policy_find("temporal"), shares, &same), m.name);
  char *a = bytes_of(plan), *b = bytes_of(same);
  ck_assert_str_eq(a, b);
  free(a);
  free(b);
  planc_plan_free(plan);
  planc_plan_free(same);
  planc_profile_free(other);
  planc_profile_free(joined);
  free_mix(&m);
}
END_TEST

/* --- Without a plan ----------------------------------------------------------------------------------------------- */

/* What the ops of a period read and write, by the trace. */
static int64_t touched_bytes(const planc_mix *mix, const planc_mix_share *shares) {
  int64_t sum = 0;
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    planc_trace *trace;
    const int64_t rounds[] = {mix->jobs[j].batch};
    planc_job job = {.graph = mix->jobs[j].graph,
                     .batch = mix->jobs[j].batch,
                     .n_rounds = 1,
                     .rounds = rounds,
                     .iterations = shares[j].iterations,
                     .replicas = 1};
    ok(planc_expand(&job, 1, &trace));
    for (int32_t a = 0; a < trace->n_accesses; a++) sum += trace->buffers[trace->accesses[a].buffer].bytes;
    planc_trace_free(trace);
  }
  return sum;
}

static int64_t pools_of(const planc_mix *mix) {
  int64_t reserved = planc_profile_device(profile)->reserved_bytes, sum = reserved;
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    planc_plan *plan;
    const planc_problem problem = planc_mix_problem(mix, j);
    ok(planc_make_plan(&problem, planc_policy_find("none"), &plan));
    sum += plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE] - reserved;
    planc_plan_free(plan);
  }
  return sum;
}

/* Speed is beside the job alone with all memory of the device, however small the budget. Returns how many jobs the
 * budget makes slower alone. */
static int32_t speed_is_beside_the_whole(random_mix *m) {
  const planc_mix_policy *temporal = planc_mix_policy_find("temporal");
  planc_mix_share whole[MOST_JOBS], tight[MOST_JOBS];
  planc_least least;
  planc_plan *plan;
  int32_t n_slower = 0;
  ok_in(planc_mix_resolve(&m->mix, whole), m->name);
  ok_in(planc_mix_find_least(&m->mix, temporal, whole, PLANC_MEMORY_DEVICE, NULL, &least), m->name);
  planc_plan_free(least.plan);
  set_budget(m, least.bytes);
  ok_in(planc_mix_resolve(&m->mix, tight), m->name);
  ok_in(planc_colocate(&m->mix, temporal, tight, &plan), m->name);
  for (int32_t j = 0; j < m->mix.n_jobs; j++) {
    ck_assert_int_eq(whole[j].whole_ns, whole[j].alone_ns);
    ck_assert_str_eq(whole[j].whole_policy, whole[j].alone_policy);
    ck_assert_int_eq(tight[j].whole_ns, whole[j].alone_ns);
    ck_assert_str_eq(tight[j].whole_policy, whole[j].alone_policy);
    ck_assert_int_eq(tight[j].speed_ppm, tight[j].whole_ns * tight[j].iterations * 1000000 / plan->predicted.period_ns);
    n_slower += tight[j].alone_ns > tight[j].whole_ns;
  }
  planc_plan_free(plan);
  return n_slower;
}

START_TEST(speeds_are_beside_the_whole_device) {
  int32_t n = 0, n_slower = 0;
  for (int k = 0; k < MIXES; k++) {
    random_mix m;
    if (!is_sampled(k, 3)) continue;
    n++;
    make_mix(k, &m);
    set_host_budget(&m, -1);
    n_slower += speed_is_beside_the_whole(&m);
    free_mix(&m);
  }
  ck_assert_int_gt(n_slower, n / 2);
}
END_TEST

/* Side by side where the pools fit, never slower than in turns; beyond that the part of what is touched that has no
 * room comes over the link. */
START_TEST(pools_migrate) {
  random_mix m;
  planc_mix_share shares[MOST_JOBS];
  planc_mix_estimate roomy, tight;
  planc_plan *turns;
  const planc_mix_policy *mps = planc_mix_policy_find("mps");
  make_mix(_i, &m);
  m.mix.terms.budgets[PLANC_MEMORY_HOST] = -1;
  profile->device.paging_ppm = 500000;
  ok_in(planc_mix_resolve(&m.mix, shares), m.name);
  ok_in(planc_mix_estimate_by(&m.mix, mps, shares, &roomy), m.name);
  ck_assert_int_eq(roomy.pools_bytes, pools_of(&m.mix));
  ck_assert_int_eq(roomy.migrated_bytes, 0);
  for (int32_t j = 0; j < m.mix.n_jobs; j++)
    ck_assert_int_eq(shares[j].speed_ppm, shares[j].whole_ns * shares[j].iterations * 1000000 / roomy.period_ns);
  ok_in(planc_colocate(&m.mix, planc_mix_policy_find("temporal"), shares, &turns), m.name);
  ck_assert_int_le(roomy.period_ns, turns->predicted.period_ns);
  planc_plan_free(turns);
  int64_t reserved = planc_profile_device(profile)->reserved_bytes;
  int64_t budget = roomy.pools_bytes - 1 - (roomy.pools_bytes - reserved) / 3;
  int64_t beyond = roomy.pools_bytes - budget;
  set_budget(&m, budget);
  ok_in(planc_mix_estimate_by(&m.mix, mps, shares, &tight), m.name);
  ck_assert_int_eq(tight.pools_bytes, roomy.pools_bytes);
  double part = (double)beyond / (double)(roomy.pools_bytes - reserved),
         rate = (double)profile->device.links[PLANC_ROUTE_H2D].bytes_per_second / 2;
  ck_assert_double_eq_tol((double)tight.migrated_bytes, part * (double)touched_bytes(&m.mix, shares), 1.5);
  ck_assert_double_eq_tol((double)(tight.period_ns - roomy.period_ns), (double)tight.migrated_bytes * 1e9 / rate, 1.5);
  set_budget(&m, reserved);
  assert_fails(planc_mix_estimate_by(&m.mix, mps, shares, &tight), PLANC_INFEASIBLE, "leaves no room for the jobs");
  set_budget(&m, budget);
  m.mix.terms.budgets[PLANC_MEMORY_HOST] = beyond - 1;
  assert_fails(planc_mix_estimate_by(&m.mix, mps, shares, &tight), PLANC_INFEASIBLE, "more than the host budget");
  profile->device.paging_ppm = 0;
  assert_fails(planc_mix_estimate_by(&m.mix, mps, shares, &tight), PLANC_INFEASIBLE, "page on demand");
  assert_fails(planc_colocate(&m.mix, mps, shares, &turns), PLANC_USAGE, "mps has no plan");
  ck_assert_ptr_null(turns);
  free_mix(&m);
}
END_TEST

/* --- What is no mix ----------------------------------------------------------------------------------------------- */

/* Whoever is asked refuses it. */
static void assert_no_mix(const planc_mix *mix, const char *why) {
  const planc_mix_policy *temporal = planc_mix_policy_find("temporal");
  planc_mix_share shares[PLANC_MIX_MAX_JOBS + 1] = {{0}};
  planc_least least, known = {.bytes = PLANC_ALIGNMENT, .is_least = true};
  planc_mix_estimate estimate;
  planc_replanned replanned;
  planc_plan *plan;
  assert_fails(planc_mix_resolve(mix, shares), PLANC_USAGE, why);
  assert_fails(planc_colocate(mix, temporal, shares, &plan), PLANC_USAGE, why);
  assert_fails(planc_mix_replan(mix, temporal, NULL, shares, &replanned), PLANC_USAGE, why);
  assert_fails(planc_mix_estimate_by(mix, planc_mix_policy_find("mps"), shares, &estimate), PLANC_USAGE, why);
  for (int32_t open = 0; open < 2; open++) {
    const planc_mix_share *asked = open ? NULL : shares;
    assert_fails(planc_mix_find_least(mix, temporal, asked, PLANC_MEMORY_DEVICE, NULL, &least), PLANC_USAGE, why);
    assert_fails(planc_mix_find_least_beside(mix, temporal, asked, &known, &least), PLANC_USAGE, why);
  }
}

START_TEST(misuse) {
  random_mix m;
  planc_mix_share shares[MOST_JOBS];
  planc_profile *other;
  make_mix(1, &m);
  ok(planc_profile_read("profiles/v100-32g.json", &other));
  planc_mix mix = m.mix;
  mix.n_jobs = 0;
  assert_no_mix(&mix, "0 jobs: a mix has from 1 to 64");
  mix.n_jobs = PLANC_MIX_MAX_JOBS + 1;
  assert_no_mix(&mix, "65 jobs");
  m.iterations[1] = PLANC_MIX_MAX_ITERATIONS + 1;
  assert_no_mix(&m.mix, "1025 iterations in a period");
  m.iterations[1] = -1;
  assert_no_mix(&m.mix, "-1 iterations in a period");
  m.iterations[1] = 1;
  m.jobs[1].profile = other;
  assert_no_mix(&m.mix, "jobs that share a GPU have one device");
  m.jobs[1].profile = profile;
  m.mix.terms.gpus = 2;
  assert_no_mix(&m.mix, "a mix shares one GPU, and 2 are asked for");
  m.mix.terms.gpus = 1;
  m.mix.terms.budgets[PLANC_MEMORY_STORAGE] = 4096;
  assert_no_mix(&m.mix, "a mix takes no storage, and 4096 bytes of it are there");
  m.mix.terms.budgets[PLANC_MEMORY_STORAGE] = -1;
  assert_no_mix(&m.mix, "a mix takes no storage");
  m.mix.terms.budgets[PLANC_MEMORY_STORAGE] = 0;
  m.mix.terms.budgets[PLANC_MEMORY_HOST] = -2;
  assert_no_mix(&m.mix, "a budget of -2 bytes: from 0 to 2^53, or -1 for none");
  m.mix.terms.budgets[PLANC_MEMORY_HOST] = -1;
  m.jobs[1].priority = PLANC_MAX_PRIORITY + 1;
  assert_no_mix(&m.mix, "a priority of 6: from 0 to 5");
  m.jobs[1].priority = 0;
  m.mix.terms.settings.region = 257;
  assert_no_mix(&m.mix, "regions of 257 bytes: their size must be a multiple of 256");
  m.mix.terms.settings.region = 0;
  set_budget(&m, 1);
  assert_fails(planc_mix_resolve(&m.mix, shares), PLANC_INFEASIBLE, "job 0");
  planc_profile_free(other);
  free_mix(&m);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("colocate");
  TCase *mixes = tcase_create("mixes");
  tcase_add_unchecked_fixture(mixes, read_profile, free_profile);
  tcase_set_timeout(mixes, 0);
  tcase_add_loop_test(mixes, mixes_run_as_alone, 0, sampled(MIXES_RUN));
  tcase_add_loop_test(mixes, turns_do_not_overlap, 0, sampled(MIXES));
  tcase_add_loop_test(mixes, requests_are_in_time, 0, sampled(2 * MIXES));
  tcase_add_loop_test(mixes, late_requests_are_refused, 0, 10);
  tcase_add_loop_test(mixes, a_late_mix_has_the_shares_of_its_plan, 0, 10);
  tcase_add_loop_test(mixes, jobs_have_memory_of_their_own, 0, sampled(N_APART * MIXES));
  tcase_add_loop_test(mixes, baselines_plan_each_job_alone, 0, sampled(2 * MIXES));
  tcase_add_loop_test(mixes, baselines_fit_what_their_jobs_take, 0, sampled(2 * MIXES));
  tcase_add_test(mixes, rates_are_priorities);
  tcase_add_loop_test(mixes, pairs_are_of_two, 0, sampled(MIXES));
  tcase_add_loop_test(mixes, shifts_are_those_of_the_plan, 0, sampled(4 * MIXES));
  tcase_add_test(mixes, least_budgets_are_known);
  tcase_add_loop_test(mixes, one_device_serves_all, 0, 10);
  tcase_add_loop_test(mixes, devices_are_joined, 0, 10);
  tcase_add_test(mixes, speeds_are_beside_the_whole_device);
  tcase_add_loop_test(mixes, pools_migrate, 0, sampled(MIXES));
  tcase_add_test(mixes, misuse);
  suite_add_tcase(suite, mixes);
  TCase *ratios = tcase_create("ratios");
  tcase_add_test(ratios, ratios_fill_the_period);
  tcase_add_test(ratios, ratios_are_the_best);
  suite_add_tcase(suite, ratios);
  return run_suite(suite);
}
