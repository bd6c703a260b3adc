/* A trainer and a sampler of one model share a GPU, each with parameters of its own. A program hands them on between
 * two runs: what the sampler comes to then is what a session of its own comes to that has had them from the start. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "planc/colocate.h"
#include "planc/policy.h"
#include "planrt/planrt.h"
#include "tests/support/graphtext.h"
#include "tests/support/nets.h"
#include "tests/support/runs.h"
#include "tests/support/unit.h"

enum { TRAINER, SAMPLER, JOBS };
enum { BATCH = 8, BEFORE = 2, AFTER = 2, PERIODS = BEFORE + AFTER };

static const char *const policies[] = {"temporal", "zico", "waterwave", "tensile"};
enum { N_POLICIES = sizeof policies / sizeof *policies };

static planc_graph *forward, *trained;
static planc_profile *profile;

static void set_up(void) {
  forward = graph_of(WIDE_NET);
  ok(planc_graph_train(forward, PLANC_ADAM, &trained));
  ok(planc_profile_read("profiles/k40m.json", &profile));
}
static void tear_down(void) {
  planc_profile_free(profile);
  planc_graph_free(trained);
  planc_graph_free(forward);
}

/* Losses of a plan's last job, by iteration. */
typedef struct losses {
  int32_t job;
  float of[PERIODS];
} losses;

static planc_status take(void *user, const planrt_result *result) {
  losses *to = user;
  if (result->job != to->job || result->storage != forward->tensors[forward->loss].storage) return NULL;
  ck_assert_int_lt(result->iteration, PERIODS);
  memcpy(&to->of[result->iteration], result->data, sizeof(float));
  return NULL;
}

static planrt_session *open_session(const planc_plan *plan, bool concurrent, losses *out) {
  planrt_options options = {.seed = 3, .feed = feed_numbers, .sink = take, .user = out, .poison = true};
  options.concurrent = concurrent;
  planrt_session *session;
  *out = (losses){.job = plan->n_jobs - 1};
  ok(planrt_session_new(plan, &options, &session));
  ok(planrt_init(session));
  return session;
}

/* The trainer's parameters become those of a job that samples. */
static void hand_on(const planrt_session *from, planrt_session *to, int32_t job) {
  int32_t n = 0;
  for (int32_t t = 0; t < forward->n_tensors; t++) {
    const planc_storage *storage = &forward->storages[forward->tensors[t].storage];
    if (storage->kind != PLANC_KIND_param) continue;
    int64_t bytes = storage->bytes.fixed;
    char *value = malloc((size_t)bytes);
    ck_assert_ptr_nonnull(value);
    ok(planrt_read(from, 0, TRAINER, storage_named(trained, forward->tensors[t].name), value, bytes));
    ok(planrt_write(to, 0, job, forward->tensors[t].storage, value, bytes));
    free(value);
    n++;
  }
  ck_assert_int_gt(n, 0);
}

static planc_plan *plan_both(const char *policy) {
  const planc_workload jobs[JOBS] = {[TRAINER] = {.graph = trained, .profile = profile, .batch = BATCH},
                                     [SAMPLER] = {.graph = forward, .profile = profile, .batch = BATCH}};
  const int32_t iterations[JOBS] = {1, 1};
  planc_mix mix = {.terms.budgets = {INT64_C(1) << 30, -1}, .n_jobs = JOBS, .jobs = jobs, .iterations = iterations};
  planc_mix_share shares[JOBS];
  planc_plan *plan;
  ok(planc_mix_resolve(&mix, shares));
  ok(planc_colocate(&mix, planc_mix_policy_find(policy), shares, &plan));
  return plan;
}

static planc_plan *plan_sampler(void) {
  const planc_problem problem = {.terms.budgets = {INT64_C(1) << 30, -1},
                                 .job = {.graph = forward, .profile = profile, .batch = BATCH}};
  planc_plan *plan;
  ok(planc_make_plan(&problem, planc_policy_find("none"), &plan));
  return plan;
}

START_TEST(a_sampler_has_what_it_is_handed) {
  planc_plan *both = plan_both(policies[_i]), *alone = plan_sampler();
  losses got, own, handed;
  planrt_session *session = open_session(both, true, &got), *plain = open_session(alone, false, &own);
  planrt_session *from_start = open_session(alone, false, &handed);
  ok(planrt_run(session, BEFORE));
  hand_on(session, session, SAMPLER);
  hand_on(session, from_start, 0);
  ok(planrt_run(session, AFTER));
  ok(planrt_run(plain, PERIODS));
  ok(planrt_run(from_start, PERIODS));
  for (int32_t k = 0; k < PERIODS; k++) {
    ck_assert_float_ne(own.of[k], handed.of[k]);
    ck_assert_float_eq(got.of[k], k < BEFORE ? own.of[k] : handed.of[k]);
  }
  planrt_session_free(from_start);
  planrt_session_free(plain);
  planrt_session_free(session);
  planc_plan_free(alone);
  planc_plan_free(both);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("sampler");
  TCase *cases = tcase_create("all");
  tcase_add_unchecked_fixture(cases, set_up, tear_down);
  tcase_add_loop_test(cases, a_sampler_has_what_it_is_handed, 0, N_POLICIES);
  suite_add_tcase(suite, cases);
  return run_suite(suite);
}
