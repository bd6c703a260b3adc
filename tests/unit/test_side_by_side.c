/* Rounds of one job side by side: of random graphs, in any number of rounds, with room for all, with less and less, and
 * beside another job, the plan passes the checker, keeps its budget, is no slower than the rounds one after the other
 * and comes to their bits, in file order, in any order its events allow, and with its streams running at once under
 * random delays. In time, rounds overlap, and add to a gradient in their order. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost/profile.h"
#include "planc/check.h"
#include "planc/colocate.h"
#include "planc/simulate.h"
#include "planrt/planrt.h"
#include "tests/support/randgraph.h"
#include "tests/support/runs.h"
#include "tests/support/unit.h"

enum { GRAPHS = 60, PERIODS = 2, INTERLEAVINGS = 4, JOBS = 2 };

static planc_profile *profile;

/* Of a device that launches at once, so that nothing but ops and memory makes rounds slow. */
static void read_profile(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
  profile->device.launch_ns = 0;
}
static void free_profile(void) {
  planc_profile_free(profile);
}

/* --- Jobs --------------------------------------------------------------------------------------------------------- */

typedef struct accumulating {
  planc_graph *graphs[JOBS];
  planc_workload jobs[JOBS];
  int32_t iterations[JOBS];
  planc_mix mix;
  char name[32];
} accumulating;

static int64_t whole_device(void) {
  return planc_profile_device(profile)->memory_bytes;
}

static void set_budget(accumulating *a, int64_t bytes) {
  a->mix.terms.budgets[PLANC_MEMORY_DEVICE] = bytes;
}

static void make_job(int number, int32_t n_jobs, accumulating *out) {
  uint64_t seed = (uint64_t)number;
  *out = (accumulating){.mix = {.n_jobs = n_jobs, .max_ratio = 2}};
  snprintf(out->name, sizeof out->name, "graph %d", number);
  for (int32_t j = 0; j < n_jobs; j++) {
    randgraph_options options = {.max_ops = 24, .max_elements = 64 << rand_below(&seed, 8)};
    int32_t k = j == 0 ? 2 + (int32_t)rand_below(&seed, 4) : (int32_t)rand_below(&seed, 3);
    int64_t sub_batch = 1 + rand_below(&seed, 4);
    ok(randgraph_make(rand_next(&seed), &options, &out->graphs[j]));
    out->iterations[j] = 1 + (int32_t)rand_below(&seed, 2);
    out->jobs[j] = (planc_workload){.graph = out->graphs[j],
                                    .profile = profile,
                                    .batch = sub_batch * (k > 0 ? k : 1),
                                    .sub_batch = k > 0 ? sub_batch : 0,
                                    .side_by_side = k};
  }
  out->mix.terms = (planc_terms){.budgets[PLANC_MEMORY_HOST] = -1, .settings = {.region = 512}};
  set_budget(out, whole_device());
  out->mix.jobs = out->jobs;
  out->mix.iterations = out->iterations;
}

static void free_job(accumulating *a) {
  for (int32_t j = 0; j < a->mix.n_jobs; j++) planc_graph_free(a->graphs[j]);
}

/* By any policy for single jobs: the rounds one after the other. */
static void plan_one_by_one(const planc_mix *mix, planc_plan **out) {
  const planc_problem problem = planc_mix_problem(mix, 0);
  ok(planc_make_plan(&problem, planc_policy_find("none"), out));
}

static int32_t count_compute(const planc_plan *plan) {
  int32_t n = 0;
  for (int32_t s = 0; s < plan->n_streams; s++) n += plan->streams[s].kind == PLANC_STREAM_KIND_compute;
  return n;
}

/* --- Running ------------------------------------------------------------------------------------------------------ */

static void runs_right(const accumulating *a, const planc_plan *plan, const planrt_session *one_by_one) {
  planrt_session *session;
  for (int how = 0; how < N_WAYS; how++) {
    for (uint64_t seed = 0; seed < (how == INTERLEAVED ? INTERLEAVINGS : 1); seed++) {
      run_periods(plan, (way)how, seed, PERIODS, &session);
      if (one_by_one && how != INTERLEAVED)
        assert_first_job_same(session, one_by_one, a->jobs[0].graph, a->jobs[0].batch, a->name);
      planrt_session_free(session);
    }
  }
}

static void is_right(const accumulating *a, const planc_plan *plan) {
  planc_check_report report;
  ok_in(planc_check(plan, NULL, &report), a->name);
  ck_assert_int_le(report.peak_bytes[PLANC_MEMORY_DEVICE], a->mix.terms.budgets[PLANC_MEMORY_DEVICE]);
  for (int32_t j = 0; j < plan->n_jobs; j++) {
    ck_assert_int_eq(plan->jobs[j].n_rounds, a->jobs[j].side_by_side > 0 ? a->jobs[j].side_by_side : 1);
    ck_assert_int_eq(plan->jobs[j].iterations, a->iterations[j]);
  }
}

/* --- In time ------------------------------------------------------------------------------------------------------ */

enum { MOST_RUNS = 4096 };
typedef struct seen_run {
  int32_t instance;
  int64_t start_ns, end_ns;
} seen_run;
typedef struct seen_runs {
  int32_t n;
  seen_run of[MOST_RUNS];
} seen_runs;

static void see(void *user, const planc_plan *plan, const planc_instr *instr, int64_t start_ns, int64_t end_ns) {
  seen_runs *seen = user;
  (void)plan;
  if (instr->op != PLANC_INSTR_exec) return;
  ck_assert_int_lt(seen->n, MOST_RUNS);
  seen->of[seen->n++] = (seen_run){instr->id, start_ns, end_ns};
}

static const planc_access *find_write(const planc_trace *trace, const seen_run *run, int32_t buffer) {
  const planc_instance *it = &trace->instances[run->instance];
  for (int32_t k = it->first_access; k < it->first_access + it->n_accesses; k++)
    if (trace->accesses[k].buffer == buffer && trace->accesses[k].write >= 0) return &trace->accesses[k];
  return NULL;
}

/* Of two writes of one buffer the one of the earlier version has ended when the other begins. */
static void writes_are_in_order(const planc_trace *trace, const seen_runs *seen, int32_t buffer) {
  const seen_run *last = NULL;
  for (int32_t version = 1; version <= trace->buffers[buffer].last_version; version++) {
    const seen_run *found = NULL;
    for (int32_t k = 0; k < seen->n && !found; k++) {
      const planc_access *write = find_write(trace, &seen->of[k], buffer);
      if (write && write->write == version) found = &seen->of[k];
    }
    ck_assert_ptr_nonnull(found);
    if (last) ck_assert_int_le(last->end_ns, found->start_ns);
    last = found;
  }
}

/* Whether an op of one round runs while one of another does. */
static bool rounds_overlap(const planc_trace *trace, const seen_runs *seen) {
  for (int32_t a = 0; a < seen->n; a++)
    for (int32_t b = 0; b < seen->n; b++)
      if (trace->instances[seen->of[a].instance].round < trace->instances[seen->of[b].instance].round &&
          seen->of[a].start_ns < seen->of[b].end_ns && seen->of[b].start_ns < seen->of[a].end_ns)
        return true;
  return false;
}

/* Whether rounds overlap: where they do not, one is faster for its samples come sooner. Either way each adds to a
 * gradient behind the one before. */
static bool overlaps_in_order(const planc_plan *plan) {
  static seen_runs seen;
  planc_simulation simulation;
  planc_trace *trace;
  seen.n = 0;
  ok(planc_expand(plan->jobs, plan->n_jobs, &trace));
  ok(planc_simulate(plan, &(planc_simulate_options){.visitor = see, .user = &seen}, &simulation));
  ck_assert_int_eq(seen.n, trace->n_instances);
  bool overlap = rounds_overlap(trace, &seen);
  for (int32_t b = 0; b < trace->n_buffers; b++)
    if (trace->buffers[b].kind == PLANC_KIND_grad) writes_are_in_order(trace, &seen, b);
  planc_trace_free(trace);
  return overlap;
}

/* --- Tests -------------------------------------------------------------------------------------------------------- */

static void make_plan(const accumulating *a, planc_plan **out) {
  planc_mix_share shares[JOBS];
  ok_in(planc_mix_resolve(&a->mix, shares), a->name);
  ok_in(planc_colocate(&a->mix, planc_mix_policy_find("zico"), shares, out), a->name);
}

/* Within a budget, which the rounds one after the other keep, too. Whether they overlap. */
static bool keeps_budget(accumulating *a, int64_t budget, const planc_plan *one_by_one, const planrt_session *done) {
  planc_plan *plan;
  set_budget(a, budget);
  make_plan(a, &plan);
  is_right(a, plan);
  int64_t ns = one_by_one->predicted.period_ns * a->iterations[0];
  ck_assert_msg(plan->predicted.period_ns <= ns + ns / 1000, "%s: %lld ns, one by one %lld", a->name,
                (long long)plan->predicted.period_ns, (long long)ns);
  bool are = count_compute(plan) > 1;
  if (are) ck_assert_int_eq(count_compute(plan), a->jobs[0].side_by_side);
  bool overlap = are && overlaps_in_order(plan);
  runs_right(a, plan, done);
  planc_plan_free(plan);
  return overlap;
}

/* With all memory, with what rounds side by side take there and a little less, and with what they take one by one. */
START_TEST(rounds_come_to_the_bits_of_one_after_the_other) {
  int tried = 0, overlapping = 0;
  for (int number = _i; number < GRAPHS; number += 4) {
    accumulating a;
    planc_plan *one_by_one, *plan;
    planrt_session *done;
    make_job(number, 1, &a);
    plan_one_by_one(&a.mix, &one_by_one);
    run_periods(one_by_one, IN_ORDER, 0, (int64_t)PERIODS * a.iterations[0], &done);
    make_plan(&a, &plan);
    int64_t most = plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE];
    int64_t least = one_by_one->predicted.peak_bytes[PLANC_MEMORY_DEVICE];
    planc_plan_free(plan);
    const int64_t budgets[] = {whole_device(), most, least + (most - least) * 2 / 3, least + (most - least) / 3, least};
    for (size_t k = 0; k < sizeof budgets / sizeof *budgets; k++) {
      if ((k > 0 && most < least) || !is_sampled((int)k + number / 4, 2)) continue;
      overlapping += keeps_budget(&a, budgets[k], one_by_one, done);
      tried++;
    }
    planrt_session_free(done);
    planc_plan_free(one_by_one);
    free_job(&a);
  }
  ck_assert_msg(overlapping > tried / 4, "rounds overlap in %d of %d plans", overlapping, tried);
}
END_TEST

START_TEST(rounds_share_with_other_jobs) {
  int side_by_side = 0;
  for (int number = _i; number < GRAPHS / 2; number += 4) {
    if (!is_sampled(number / 4, 2)) continue;
    accumulating a;
    planc_plan *plan;
    make_job(1000 + number, JOBS, &a);
    make_plan(&a, &plan);
    is_right(&a, plan);
    side_by_side += count_compute(plan) > JOBS;
    runs_right(&a, plan, NULL);
    int64_t peak = plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE];
    planc_plan_free(plan);
    set_budget(&a, peak);
    make_plan(&a, &plan);
    is_right(&a, plan);
    runs_right(&a, plan, NULL);
    planc_plan_free(plan);
    free_job(&a);
  }
  ck_assert_int_gt(side_by_side, 0);
}
END_TEST

/* Of as many jobs as a mix may have, each has few streams enough. */
static void many_rounds(const planc_workload *job) {
  planc_workload jobs[PLANC_MIX_MAX_JOBS];
  planc_mix_share shares[PLANC_MIX_MAX_JOBS];
  int32_t iterations[PLANC_MIX_MAX_JOBS] = {0};
  planc_mix mix = {.n_jobs = PLANC_MIX_MAX_JOBS, .jobs = jobs, .iterations = iterations};
  for (int32_t j = 0; j < PLANC_MIX_MAX_JOBS; j++) {
    jobs[j] = *job;
    jobs[j].batch = jobs[j].side_by_side = 16;
    jobs[j].sub_batch = 1;
  }
  assert_fails(planc_mix_resolve(&mix, shares), PLANC_USAGE, "the jobs have 1152 streams, and a plan at most 1024");
}

/* What is no number of rounds, or has none to accumulate, is refused. */
START_TEST(misuse) {
  accumulating a;
  planc_mix_share shares[JOBS];
  randgraph_options forward = {.inference = true}, coupled = {.allow_batch_coupled = true};
  make_job(1, 1, &a);
  a.jobs[0].side_by_side = PLANC_MIX_MAX_ROUNDS + 1;
  assert_fails(planc_mix_resolve(&a.mix, shares), PLANC_USAGE, "65 rounds side by side: from 1 to 64");
  a.jobs[0].side_by_side = -1;
  assert_fails(planc_mix_resolve(&a.mix, shares), PLANC_USAGE, "-1 rounds side by side: from 1 to 64");
  a.jobs[0].batch = 6;
  a.jobs[0].sub_batch = 1;
  a.jobs[0].side_by_side = 4;
  assert_fails(planc_mix_resolve(&a.mix, shares), PLANC_USAGE, "a batch of 6 is not 4 rounds of equal size");
  a.jobs[0].side_by_side = 3;
  assert_fails(planc_mix_resolve(&a.mix, shares), PLANC_USAGE, "a batch of 6 is not 3 rounds of equal size");
  a.jobs[0].sub_batch = 2;
  ok(planc_mix_resolve(&a.mix, shares));
  many_rounds(&a.jobs[0]);
  free_job(&a);

  make_job(1, 1, &a);
  planc_graph_free(a.graphs[0]);
  ok(randgraph_make(1, &forward, &a.graphs[0]));
  a.jobs[0].graph = a.graphs[0];
  assert_fails(planc_mix_resolve(&a.mix, shares), PLANC_USAGE, "it is for inference: there are no gradients");
  free_job(&a);

  make_job(1, 1, &a);
  for (uint64_t seed = 0; !planc_graph_is_batch_coupled(a.graphs[0]); seed++) {
    planc_graph_free(a.graphs[0]);
    ok(randgraph_make(seed, &coupled, &a.graphs[0]));
  }
  a.jobs[0].graph = a.graphs[0];
  assert_fails(planc_mix_resolve(&a.mix, shares), PLANC_USAGE, "ops that couple the samples of a batch");
  a.jobs[0].split_batch_norm = true;
  planc_plan *plan;
  make_plan(&a, &plan);
  is_right(&a, plan);
  runs_right(&a, plan, NULL);
  planc_plan_free(plan);
  free_job(&a);
}
END_TEST

/* Other policies run rounds one after the other; so does a job with another number of streams than a plan may have. */
START_TEST(other_policies_have_one_round_at_a_time) {
  accumulating a;
  make_job(3, JOBS, &a);
  for (const planc_mix_policy *policy = planc_mix_policies(); policy->name; policy++) {
    planc_mix_share shares[JOBS];
    planc_plan *plan;
    if (!policy->make || (policy->supports & (PLANC_MIX_ROUNDS | PLANC_MIX_DEADLINES))) continue;
    ok(planc_mix_resolve(&a.mix, shares));
    ok_in(planc_colocate(&a.mix, policy, shares, &plan), policy->name);
    is_right(&a, plan);
    ck_assert_int_eq(count_compute(plan), JOBS);
    planc_plan_free(plan);
  }
  free_job(&a);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("side_by_side");
  TCase *tests = tcase_create("all");
  tcase_add_checked_fixture(tests, read_profile, free_profile);
  tcase_set_timeout(tests, 240);
  tcase_add_loop_test(tests, rounds_come_to_the_bits_of_one_after_the_other, 0, 4);
  tcase_add_loop_test(tests, rounds_share_with_other_jobs, 0, 4);
  tcase_add_test(tests, misuse);
  tcase_add_test(tests, other_policies_have_one_round_at_a_time);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
