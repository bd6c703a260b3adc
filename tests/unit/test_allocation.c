/* A run allocates nothing, a session only what runs need: malloc and its kin are counted from planrt_session_new on. */
#include <check.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "planc/policy.h"
#include "planrt/planrt.h"
#include "tests/support/unit.h"

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { COUNTED = 0 }; /* a sanitizer's allocator must stay in place */
static atomic_long allocations;
#else
enum { COUNTED = 1 };
static atomic_long allocations;

/* glibc's own, beneath the names that this file takes over. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t nmemb, size_t size);
void *__libc_realloc(void *ptr, size_t size);

void *malloc(size_t size) {
  atomic_fetch_add(&allocations, 1);
  return __libc_malloc(size);
}
void *calloc(size_t nmemb, size_t size) {
  atomic_fetch_add(&allocations, 1);
  return __libc_calloc(nmemb, size);
}
void *realloc(void *ptr, size_t size) {
  atomic_fetch_add(&allocations, 1);
  return __libc_realloc(ptr, size);
}
#endif

static planc_status take(void *user, const planrt_result *result) {
  *(int64_t *)user += result->bytes;
  return NULL;
}

static planc_profile *profile;
static planc_graph *graph;

static void set_up(void) {
  planc_graph *forward;
  ok(planc_profile_read("profiles/k40m.json", &profile));
  ok(planc_graph_read("graphs/lenet-digits.yaml", &forward));
  ok(planc_graph_train(forward, PLANC_MOMENTUM, &graph));
  planc_graph_free(forward);
}
static void tear_down(void) {
  planc_graph_free(graph);
  planc_profile_free(profile);
}

static planc_plan *make_plan(int64_t budget) {
  planc_problem problem = {.job.graph = graph,
                           .job.profile = profile,
                           .job.batch = 32,
                           .terms.budgets[PLANC_MEMORY_DEVICE] = budget,
                           .terms.budgets[PLANC_MEMORY_HOST] = -1};
  planc_plan *plan;
  ok(planc_make_plan(&problem, planc_policy_find("modnn"), &plan));
  return plan;
}

/* Resident and swapped, in file order and with concurrent streams. */
START_TEST(runs_allocate_nothing) {
  planc_plan *plan = make_plan(_i % 2 ? 300 << 10 : 16 << 20);
  int64_t taken = 0;
  planrt_options options = {.concurrent = _i / 2 == 1, .sink = take, .user = &taken};
  planrt_session *session;
  long before = atomic_load(&allocations);
  ok(planrt_session_new(plan, &options, &session));
  ck_assert(!COUNTED || atomic_load(&allocations) > before);
  before = atomic_load(&allocations);
  planc_status initialised = planrt_init(session), run = planrt_run(session, 3);
  long made = atomic_load(&allocations) - before; /* check's own macros allocate */
  ok(initialised);
  ok(run);
  ck_assert_int_eq(made, 0);
  ck_assert_int_gt(taken, 0);
  planrt_session_free(session);
  planc_plan_free(plan);
}
END_TEST

/* A session that may be evaluated makes nothing for that before it is. The first one of the process comes before those
 * that are held against each other: libraries keep what they make for it. */
START_TEST(inference_passes_are_made_on_demand) {
  planc_plan *plan = make_plan(16 << 20);
  long made[3];
  for (int k = 0; k < 3; k++) {
    planrt_options options = {.evaluate = k == 2};
    planrt_session *session;
    long before = atomic_load(&allocations);
    planc_status opened = planrt_session_new(plan, &options, &session);
    made[k] = atomic_load(&allocations) - before;
    ok(opened);
    planrt_session_free(session);
  }
  ck_assert_int_eq(made[2], made[1]);
  planc_plan_free(plan);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("allocation");
  TCase *c = tcase_create("allocation");
  tcase_set_timeout(c, 120);
  tcase_add_checked_fixture(c, set_up, tear_down);
  tcase_add_loop_test(c, runs_allocate_nothing, 0, 4);
  tcase_add_test(c, inference_passes_are_made_on_demand);
  suite_add_tcase(suite, c);
  return run_suite(suite);
}
