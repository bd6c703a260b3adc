/* One job of several fails: the others come to the bits that they come to alone, and it does nothing any more. By every
 * policy for mixes that has a plan, whichever job fails, in whichever iteration, and however its work is timed. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cost/profile.h"
#include "planc/colocate.h"
#include "planc/timeline.h"
#include "planrt/planrt.h"
#include "tests/support/graphtext.h"
#include "tests/support/nets.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"
#include "util/file.h"

enum { MOST_JOBS = 3, PERIODS = 5, ROUNDS = 2, MOST_LOSSES = 4 * PERIODS * ROUNDS };

/* --- Mixes -------------------------------------------------------------------------------------------------------- */

static const char *const texts[] = {NARROW_NET("narrow"), WIDE_NET};

static planc_profile *profile;
static planc_graph *graphs[2];
static char path[64];

static void set_up(void) {
  static const planc_optimizer optimizers[] = {PLANC_ADAM, PLANC_MOMENTUM};
  ok(planc_profile_read("profiles/k40m.json", &profile));
  profile->device.launch_ns = 0; /* small rounds are to be faster side by side */
  for (int g = 0; g < 2; g++) {
    planc_graph *forward = graph_of(texts[g]);
    ok(planc_graph_train(forward, optimizers[g], &graphs[g]));
    planc_graph_free(forward);
  }
  snprintf(path, sizeof path, "/tmp/planc-job-failures-%ld", (long)getpid());
}
static void tear_down(void) {
  for (int g = 0; g < 2; g++) planc_graph_free(graphs[g]);
  planc_profile_free(profile);
  unlink(path);
}

/* How a mix shares the GPU: with several rounds every job has them side by side. */
typedef struct sharing {
  const char *policy;
  int32_t rounds;
} sharing;
static const sharing sharings[] = {{"temporal", 1},    {"zico", 1},    {"waterwave", 1},
                                   {"waterwave-s", 1}, {"tensile", 1}, {"zico", ROUNDS}};
enum { N_SHARINGS = sizeof sharings / sizeof *sharings, TEMPORAL = 0, ZICO = 1 };

/* Jobs 0 and 2 are of one graph. Under the least budget that one job after the other fits, memory goes from job to job.
 * False where the policy has no plan for that. */
static bool make_plan(const sharing *by, int32_t n_jobs, bool tight, planc_plan **out) {
  static const int64_t batches[MOST_JOBS] = {4, 24, 6};
  int32_t iterations[MOST_JOBS] = {3, 1, 2};
  planc_workload jobs[MOST_JOBS];
  planc_mix_share shares[MOST_JOBS];
  planc_mix mix = {.terms.budgets = {planc_profile_device(profile)->memory_bytes, -1},
                   .n_jobs = n_jobs,
                   .jobs = jobs,
                   .iterations = iterations,
                   .max_ratio = 3};
  planc_least least = {0};
  for (int32_t j = 0; j < n_jobs; j++)
    jobs[j] = (planc_workload){.graph = graphs[j % 2],
                               .profile = profile,
                               .batch = batches[j],
                               .sub_batch = by->rounds > 1 ? batches[j] / by->rounds : 0,
                               .side_by_side = by->rounds};
  ok(planc_mix_resolve(&mix, shares));
  if (tight) {
    ok(planc_mix_find_least(&mix, planc_mix_policy_find("temporal"), shares, PLANC_MEMORY_DEVICE, NULL, &least));
    mix.terms.budgets[PLANC_MEMORY_DEVICE] = least.bytes + least.bytes / 8;
    planc_plan_free(least.plan);
  }
  planc_status status = planc_colocate(&mix, planc_mix_policy_find(by->policy), shares, out);
  if (planc_status_code(status) != PLANC_INFEASIBLE) {
    ok(status);
    if (by->rounds > 1 && !tight) ck_assert_int_gt((*out)->n_streams, n_jobs * PLANC_N_STREAMS);
    for (int32_t j = 0; j < n_jobs; j++) ck_assert_int_eq((*out)->jobs[j].n_rounds, by->rounds);
    return true;
  }
  planc_status_free(status);
  return false;
}

/* --- Failing ------------------------------------------------------------------------------------------------------ */

typedef enum cause { BAD_BATCH, NOT_FINITE, REFUSED, N_CAUSES } cause;

/* What jobs come to; of them `job` fails in `iteration`. */
typedef struct outcome {
  const planc_plan *plan;
  int32_t job; /* -1: none */
  int64_t iteration;
  cause why;
  float losses[MOST_JOBS][MOST_LOSSES]; /* by iteration and round */
  int32_t n_losses[MOST_JOBS];
  int64_t bytes[MOST_JOBS];
  char values[MOST_JOBS][1 << 17];
} outcome;

static planc_status feed(void *user, const planrt_feed_request *request) {
  const outcome *o = user;
  bool fails = request->job == o->job && request->iteration == o->iteration;
  bool labels = request->bytes == request->count * (int64_t)sizeof(int64_t);
  if (fails && o->why == BAD_BATCH && labels) return planc_error(PLANC_BAD_INPUT, "no such batch");
  for (int64_t i = 0; i < request->count; i++) {
    uint64_t seed = (uint64_t)(request->iteration * 1000 + request->offset + i);
    float values[6];
    int64_t label = 0;
    for (int k = 0; k < 6; k++) values[k] = (float)rand_below(&seed, 1000) / 1000.0F;
    for (int64_t k = 1; k < 3; k++)
      if (values[k] > values[label]) label = k;
    if (fails && o->why == NOT_FINITE) values[0] = NAN;
    if (labels)
      ((int64_t *)request->out)[i] = label;
    else
      memcpy((float *)request->out + i * 6, values, sizeof values);
  }
  return NULL;
}

static planc_status take(void *user, const planrt_result *result) {
  outcome *o = user;
  const planc_graph *graph = o->plan->jobs[result->job].graph;
  if (result->storage != graph->tensors[graph->loss].storage) return NULL;
  float loss;
  memcpy(&loss, result->data, sizeof loss);
  bool fails = result->job == o->job && result->iteration == o->iteration;
  if (fails && o->why == REFUSED) return planc_error(PLANC_JOB_FAILED, "refused");
  if (!isfinite(loss)) return planc_error(PLANC_JOB_FAILED, "the loss is no number");
  int64_t number = result->iteration * o->plan->jobs[result->job].n_rounds + result->round;
  ck_assert_int_lt(number, MOST_LOSSES);
  o->losses[result->job][number] = loss;
  o->n_losses[result->job]++;
  return NULL;
}

/* --- Running ------------------------------------------------------------------------------------------------------ */

typedef enum way { IN_ORDER, CONCURRENT, INTERLEAVED, N_WAYS } way;

static planrt_session *open_session(outcome *o, way how) {
  planrt_options options = {.seed = 3,
                            .feed = feed,
                            .sink = take,
                            .user = o,
                            .poison = true,
                            .verify = how == IN_ORDER,
                            .concurrent = how == CONCURRENT,
                            .jitter = how == CONCURRENT ? 7 : 0};
  planrt_session *session;
  ok(planrt_session_new(o->plan, &options, &session));
  ok(planrt_init(session));
  return session;
}

static void run_periods(planrt_session *session, way how, int64_t periods) {
  ok(how == INTERLEAVED ? planrt_run_interleaved(session, periods, 11) : planrt_run(session, periods));
}

static void read_values(const planrt_session *session, outcome *o) {
  for (int32_t j = 0; j < o->plan->n_jobs; j++) {
    const planc_graph *graph = o->plan->jobs[j].graph;
    o->bytes[j] = 0;
    for (int32_t s = 0; s < graph->n_storages; s++) {
      if (!planc_kind_persists(graph->storages[s].kind)) continue;
      int64_t bytes = graph->storages[s].bytes.fixed;
      ck_assert_int_le(o->bytes[j] + bytes, (int64_t)sizeof o->values[j]);
      ok(planrt_read(session, 0, j, s, o->values[j] + o->bytes[j], bytes));
      o->bytes[j] += bytes;
    }
  }
}

/* Each job of the mix by itself: at its beginning, and after so many periods. */
static void run_alone(const planc_plan *mix, outcome *initial, outcome *want) {
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    const planc_job *job = &mix->jobs[j];
    planc_problem problem = {.job.graph = job->graph,
                             .job.profile = profile,
                             .job.batch = job->batch,
                             .job.sub_batch = job->rounds[0],
                             .terms.budgets[PLANC_MEMORY_DEVICE] = planc_profile_device(profile)->memory_bytes,
                             .terms.budgets[PLANC_MEMORY_HOST] = -1};
    static outcome alone;
    planc_plan *plan;
    ok(planc_make_plan(&problem, planc_policy_find("none"), &plan));
    alone = (outcome){.plan = plan, .job = -1};
    planrt_session *session = open_session(&alone, IN_ORDER);
    read_values(session, &alone);
    initial->bytes[j] = alone.bytes[0];
    memcpy(initial->values[j], alone.values[0], sizeof alone.values[0]);
    run_periods(session, IN_ORDER, PERIODS * job->iterations);
    read_values(session, &alone);
    want->bytes[j] = alone.bytes[0];
    memcpy(want->values[j], alone.values[0], sizeof alone.values[0]);
    memcpy(want->losses[j], alone.losses[0], sizeof alone.losses[0]);
    planrt_session_free(session);
    planc_plan_free(plan);
  }
}

/* --- Checking ----------------------------------------------------------------------------------------------------- */

static void assert_failed(const planrt_session *session, const outcome *o) {
  static const char *const whys[] = {"no such batch", "the loss is no number", "refused"};
  char where[64];
  planrt_failure failure;
  for (int32_t j = 0; j < o->plan->n_jobs; j++) ck_assert_int_eq(planrt_failed(session, j, &failure), j == o->job);
  ck_assert(planrt_failed(session, o->job, &failure));
  ck_assert_int_eq(failure.iteration, o->iteration);
  ck_assert_ptr_nonnull(strstr(failure.why, whys[o->why]));
  snprintf(where, sizeof where, "job %d (%s): ", o->job, o->plan->jobs[o->job].graph->name);
  ck_assert_ptr_nonnull(strstr(failure.why, where));
  snprintf(where, sizeof where, "iteration %lld: ", (long long)o->iteration);
  ck_assert_ptr_nonnull(strstr(failure.why, where));
}

static void assert_outcome(const outcome *got, const outcome *initial, const outcome *want) {
  for (int32_t j = 0; j < got->plan->n_jobs; j++) {
    bool failed = j == got->job;
    int64_t n = failed ? got->iteration : (int64_t)PERIODS * got->plan->jobs[j].iterations;
    n *= got->plan->jobs[j].n_rounds;
    const outcome *values = failed ? initial : want;
    ck_assert_int_gt(want->bytes[j], 100);
    ck_assert_int_eq(got->bytes[j], values->bytes[j]);
    ck_assert_mem_eq(got->values[j], values->values[j], (size_t)values->bytes[j]);
    ck_assert_int_eq(got->n_losses[j], n);
    ck_assert_mem_eq(got->losses[j], want->losses[j], (size_t)n * sizeof(float));
  }
}

static outcome initial, want, got;

static void fail_once(const planc_plan *plan, int32_t job, int64_t iteration, cause why, way how) {
  got = (outcome){.plan = plan, .job = job, .iteration = iteration, .why = why};
  planrt_session *session = open_session(&got, how);
  run_periods(session, how, PERIODS);
  assert_failed(session, &got);
  read_values(session, &got);
  assert_outcome(&got, &initial, &want);
  planrt_session_free(session);
}

/* --- Tests -------------------------------------------------------------------------------------------------------- */

/* The first, a middle and the last iteration of each job, from each cause, in each way. */
static void fail_everywhere(const planc_plan *plan) {
  int turn = 0;
  for (int32_t job = 0; job < plan->n_jobs; job++) {
    int64_t n = (int64_t)PERIODS * plan->jobs[job].iterations, at[] = {0, n / 2, n - 1};
    for (int k = 0; k < 3; k++)
      for (int how = 0; how < N_WAYS; how++) fail_once(plan, job, at[k], (cause)(turn++ % N_CAUSES), (way)how);
    for (int why = 0; why < N_CAUSES; why++) fail_once(plan, job, n / 2, (cause)why, CONCURRENT);
  }
}

START_TEST(others_are_as_if_alone) {
  bool tight = _i % 2;
  int32_t n_jobs = 2 + _i / 2 % 2;
  planc_plan *plan;
  if (!is_sampled(_i / 4 + n_jobs + tight, 2)) return;
  if (!make_plan(&sharings[_i / 4], n_jobs, tight, &plan)) {
    ck_assert_msg(tight, "%s", sharings[_i / 4].policy);
    return;
  }
  run_alone(plan, &initial, &want);
  fail_everywhere(plan);
  planc_plan_free(plan);
}
END_TEST

/* Of two that fail the third goes on; where all do, the run ends. */
typedef struct several_fail {
  outcome *outcome;
  int32_t jobs;
} several_fail;

static planc_status feed_failing(void *user, const planrt_feed_request *request) {
  const several_fail *of = user;
  if (request->job < of->jobs && request->iteration == 1 + request->job)
    return planc_error(PLANC_BAD_INPUT, "no such batch");
  return feed(of->outcome, request);
}
static planc_status take_others(void *user, const planrt_result *result) {
  return take(((several_fail *)user)->outcome, result);
}

START_TEST(several_jobs_fail) {
  planc_plan *plan;
  planrt_session *session;
  planrt_failure failure;
  ck_assert(make_plan(&sharings[ZICO], MOST_JOBS, false, &plan));
  run_alone(plan, &initial, &want);
  for (int32_t n = 2; n <= MOST_JOBS; n++) {
    got = (outcome){.plan = plan, .job = -1};
    several_fail of = {&got, n};
    planrt_options options = {
        .seed = 3, .feed = feed_failing, .sink = take_others, .user = &of, .concurrent = true, .jitter = 5};
    ok(planrt_session_new(plan, &options, &session));
    ok(planrt_init(session));
    ok(planrt_run(session, PERIODS));
    read_values(session, &got);
    for (int32_t j = 0; j < MOST_JOBS; j++) {
      ck_assert_int_eq(planrt_failed(session, j, &failure), j < n);
      if (j < n) ck_assert_int_eq(failure.iteration, 1 + j);
      ck_assert_mem_eq(got.values[j], j < n ? initial.values[j] : want.values[j], (size_t)got.bytes[j]);
    }
    ck_assert_int_le(planrt_get_step(session).period, PERIODS);
    if (n < MOST_JOBS) ck_assert_int_eq(planrt_get_step(session).period, PERIODS);
    ok(planrt_init(session));
    ck_assert(!planrt_failed(session, 0, &failure));
    planrt_session_free(session);
  }
  planc_plan_free(plan);
}
END_TEST

/* Whatever is not one job's own ends the run. */
static planc_status feed_nothing(void *user, const planrt_feed_request *request) {
  (void)user;
  (void)request;
  return planc_error(PLANC_OUT_OF_MEMORY, "no memory");
}

START_TEST(other_failures_are_the_runs) {
  planc_plan *plan;
  planrt_session *session;
  planrt_options options = {.feed = feed_nothing, .concurrent = true};
  ck_assert(make_plan(&sharings[TEMPORAL], 2, false, &plan));
  ok(planrt_session_new(plan, &options, &session));
  ok(planrt_init(session));
  assert_fails(planrt_run(session, PERIODS), PLANC_OUT_OF_MEMORY, "no memory");
  planrt_session_free(session);
  planc_plan_free(plan);
}
END_TEST

START_TEST(only_job_fails_with_the_run) {
  planc_plan *plan;
  planc_problem problem = {.job.graph = graphs[0],
                           .job.profile = profile,
                           .job.batch = 4,
                           .terms.budgets[PLANC_MEMORY_DEVICE] = planc_profile_device(profile)->memory_bytes,
                           .terms.budgets[PLANC_MEMORY_HOST] = -1};
  planrt_failure failure;
  ok(planc_make_plan(&problem, planc_policy_find("none"), &plan));
  got = (outcome){.plan = plan, .iteration = 2, .why = REFUSED};
  planrt_session *session = open_session(&got, CONCURRENT);
  assert_fails(planrt_run(session, PERIODS), PLANC_JOB_FAILED, "job 0 (narrow): iteration 2: refused");
  ck_assert(!planrt_failed(session, 0, &failure));
  planrt_session_free(session);
  planc_plan_free(plan);
}
END_TEST

/* A checkpoint has the others as they are, and knows who has failed. */
START_TEST(runs_go_on_from_checkpoints) {
  planc_plan *plan;
  ck_assert(make_plan(&sharings[ZICO], MOST_JOBS, false, &plan));
  run_alone(plan, &initial, &want);
  got = (outcome){.plan = plan, .job = 1, .iteration = 1, .why = BAD_BATCH};
  planrt_session *session = open_session(&got, CONCURRENT);
  run_periods(session, CONCURRENT, PERIODS / 2);
  ok(planrt_save(session, path));
  planrt_session_free(session);
  session = open_session(&got, CONCURRENT);
  ok(planrt_resume(session, path));
  assert_failed(session, &got);
  run_periods(session, CONCURRENT, PERIODS - PERIODS / 2);
  assert_failed(session, &got);
  read_values(session, &got);
  assert_outcome(&got, &initial, &want);
  planrt_session_free(session);
  planc_plan_free(plan);
}
END_TEST

/* How often `part` stands in a text. */
static int count(const char *text, const char *part) {
  int n = 0;
  for (const char *at = text; (at = strstr(at, part)) != NULL; at++) n++;
  return n;
}

/* On one thread a failure is known before the next body: from there on the job has no calls and copies in the trace,
 * and the others have all of theirs. */
START_TEST(work_is_left_out) {
  enum { FAILED = 1, AT = 2 };
  planc_plan *plan;
  planrt_session *session;
  char *text, part[64];
  size_t length;
  ck_assert(make_plan(&sharings[_i], MOST_JOBS, false, &plan));
  got = (outcome){.plan = plan, .job = FAILED, .iteration = AT * plan->jobs[FAILED].iterations, .why = BAD_BATCH};
  planrt_options options = {.seed = 3, .feed = feed, .sink = take, .user = &got, .timeline = PERIODS};
  ok(planrt_session_new(plan, &options, &session));
  ok(planrt_init(session));
  ok(planrt_run(session, PERIODS));
  ok(planrt_timeline_write(session, path));
  planrt_session_free(session);
  ok(pl_file_read_text(path, 1 << 22, &text, &length));
  ck_assert_ptr_nonnull(strstr(text, "\"failed\":[{\"job\":1,\"period\":3}]"));
  for (int32_t j = 0; j < MOST_JOBS; j++)
    for (int period = 0; period < PERIODS; period++) {
      int first, n;
      snprintf(part, sizeof part, "\"period\":0,\"job\":%d,", j);
      first = count(text, part);
      snprintf(part, sizeof part, "\"period\":%d,\"job\":%d,", period, j);
      n = count(text, part);
      ck_assert_int_gt(first, 3);
      ck_assert_int_eq(n, j == FAILED && period > AT ? 0 : first);
    }
  free(text);
  planc_timeline *timeline;
  assert_fails(planc_timeline_read(path, plan, &timeline), PLANC_BAD_INPUT, "a job failed in this run");
  planc_plan_free(plan);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("job_failures");
  TCase *cases = tcase_create("all");
  tcase_add_checked_fixture(cases, set_up, tear_down);
  tcase_add_loop_test(cases, others_are_as_if_alone, 0, 4 * N_SHARINGS);
  tcase_add_test(cases, several_jobs_fail);
  tcase_add_test(cases, other_failures_are_the_runs);
  tcase_add_test(cases, only_job_fails_with_the_run);
  tcase_add_test(cases, runs_go_on_from_checkpoints);
  tcase_add_loop_test(cases, work_is_left_out, 0, N_SHARINGS);
  suite_add_tcase(suite, cases);
  return run_suite(suite);
}
