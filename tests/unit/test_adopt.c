/* Changing plans in the middle of a run: the same bits as without, under all policies; what cannot be adopted leaves
 * the run as it was; runs that end where they are asked to; watched files. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "planc/policy.h"
#include "planrt/planrt.h"
#include "runtime/cli/watch.h"
#include "tests/support/forge.h"
#include "tests/support/graphtext.h"
#include "tests/support/nets.h"
#include "tests/support/plan_view.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"
#include "tests/support/weave.h"
#include "util/file.h"

static const char text[] = NARROW_NET("small");

/* --- Plans and runs ----------------------------------------------------------------------------------------------- */

enum { MOST_LOSSES = 64, MOST_VALUES = 4096 };

/* What came out of a run, and where it is to pause. */
typedef struct run {
  float losses[MOST_LOSSES];
  char values[MOST_VALUES];
  int64_t asked, pause_at; /* periods that pause was asked about; the first at which it says so, -1: never */
} run;

static planc_graph *graph;

static planc_status take(void *user, const planrt_result *result) {
  run *r = user;
  if (result->bytes == sizeof(float) && result->iteration < MOST_LOSSES)
    memcpy(&r->losses[result->iteration], result->data, sizeof(float));
  return NULL;
}

static bool pause_there(void *user) {
  run *r = user;
  return r->asked++ == r->pause_at;
}

static void set_up(void) {
  planc_graph *forward = graph_of(text);
  ok(planc_graph_train(forward, PLANC_ADAM, &graph));
  planc_graph_free(forward);
}
static void tear_down(void) {
  planc_graph_free(graph);
}

static void weave_plan(weave_mode mode, int64_t batch, woven *out) {
  static int64_t rounds;
  rounds = batch;
  planc_job job = {.graph = graph, .batch = batch, .n_rounds = 1, .rounds = &rounds, .iterations = 1};
  ok(weave(&job, mode, 0, out));
}

static planrt_session *open_session(const planc_plan *plan, run *r, bool concurrent) {
  planrt_options options = {
      .seed = 7, .concurrent = concurrent, .verify = true, .sink = take, .user = r, .pause = pause_there};
  planrt_session *session;
  r->pause_at = -1;
  ok(planrt_session_new(plan, &options, &session));
  ok(planrt_init(session));
  return session;
}

static void read_values(const planrt_session *session, run *r) {
  int64_t at = 0;
  for (int32_t s = 0; s < graph->n_storages; s++) {
    const planc_storage *storage = &graph->storages[s];
    if (storage->kind != PLANC_KIND_param && storage->kind != PLANC_KIND_state) continue;
    ck_assert_int_le(at + storage->bytes.fixed, MOST_VALUES);
    ok(planrt_read(session, 0, 0, s, r->values + at, storage->bytes.fixed));
    at += storage->bytes.fixed;
  }
  ck_assert_int_gt(at, 300);
}

static void assert_same(const run *a, const run *b) {
  ck_assert_mem_eq(a->losses, b->losses, sizeof a->losses);
  ck_assert_mem_eq(a->values, b->values, sizeof a->values);
}

/* --- Adopting ----------------------------------------------------------------------------------------------------- */

/* Adam and dropout depend on the step, and the data on the iteration. */
START_TEST(an_adopted_plan_goes_on) {
  run whole = {0}, changed = {0};
  woven resident, swapping;
  weave_plan(WEAVE_RESIDENT, 4, &resident);
  weave_plan(WEAVE_SWAP, 4, &swapping);
  planrt_session *session = open_session(&resident.plan, &whole, false);
  ok(planrt_run(session, 9));
  read_values(session, &whole);
  planrt_session_free(session);

  session = open_session(&resident.plan, &changed, _i);
  ok(planrt_run(session, 3));
  ok(planrt_adopt(&session, &swapping.plan));
  ck_assert_int_eq(planrt_get_step(session).period, 3);
  ok(planrt_run(session, 4));
  ok(planrt_adopt(&session, &swapping.plan));
  ok(planrt_adopt(&session, &resident.plan));
  ok(planrt_run(session, 2));
  read_values(session, &changed);
  planrt_session_free(session);
  assert_same(&whole, &changed);
  woven_free(&resident);
  woven_free(&swapping);
}
END_TEST

/* The step given by the user and the seed of a checkpoint go along. */
START_TEST(step_and_seed_go_along) {
  run r = {0};
  char path[64];
  woven resident, swapping;
  weave_plan(WEAVE_RESIDENT, 4, &resident);
  weave_plan(WEAVE_SWAP, 4, &swapping);
  planrt_session *session = open_session(&resident.plan, &r, false), *other;
  planrt_options options = {.seed = 99, .sink = take, .user = &r};
  snprintf(path, sizeof path, "/tmp/planc-adopt-%ld", (long)getpid());
  ok(planrt_run(session, 2));
  ok(planrt_save(session, path));
  planrt_session_free(session);
  ok(planrt_session_new(&resident.plan, &options, &other));
  ok(planrt_resume(other, path));
  planrt_set_step(other, (planrt_step){.learning_rate = 0.5, .period = 2});
  ok(planrt_adopt(&other, &swapping.plan));
  ck_assert_uint_eq(planrt_seed(other), 7);
  ck_assert_int_eq(planrt_get_step(other).period, 2);
  ck_assert_double_eq(planrt_get_step(other).learning_rate, 0.5);
  planrt_session_free(other);
  unlink(path);
  woven_free(&resident);
  woven_free(&swapping);
}
END_TEST

/* On random graphs by stand-ins for ops, which put out hashes of all that they read: every step is compared with the
 * reference. */
START_TEST(policies_take_turns) {
  static const char *const policies[] = {"none", "vdnn-all", "cheap", "naive", "lms", "tensile"};
  enum { N = sizeof policies / sizeof *policies };
  planc_profile *profile;
  planc_graph *random;
  planc_plan *plans[N];
  ok(planc_profile_read("profiles/k40m.json", &profile));
  ok(randgraph_make((uint64_t)_i, &(randgraph_options){.max_ops = 24}, &random));
  planc_problem problem = {.job.graph = random,
                           .job.profile = profile,
                           .job.batch = 3,
                           .terms.budgets[PLANC_MEMORY_DEVICE] = planc_profile_device(profile)->memory_bytes,
                           .terms.budgets[PLANC_MEMORY_HOST] = -1};
  for (int p = 0; p < N; p++) ok(planc_make_plan(&problem, planc_policy_find(policies[p]), &plans[p]));
  planrt_options options = {.synthetic = true, .verify = true, .poison = true, .concurrent = _i % 2};
  planrt_session *session;
  ok(planrt_session_new(plans[0], &options, &session));
  ok(planrt_init(session));
  for (int p = 1; p < 2 * N; p++) {
    ok_in(planrt_run(session, p % 3), policies[(p - 1) % N]);
    ok(planrt_adopt(&session, plans[p % N]));
  }
  ok(planrt_run(session, 2));
  planrt_session_free(session);
  for (int p = 0; p < N; p++) planc_plan_free(plans[p]);
  planc_graph_free(random);
  planc_profile_free(profile);
}
END_TEST

/* --- What cannot be adopted --------------------------------------------------------------------------------------- */

/* Not by a hash, which another graph may have as well. */
START_TEST(forged_graphs_are_refused) {
  run r = {0};
  woven own, other;
  forged f;
  planc_graph *forward = graph_of(text), *trained;
  ok(planc_graph_train(forward, PLANC_SGD, &trained));
  forge(trained, &f);
  int64_t batch = 4;
  planc_job job = {.graph = trained, .batch = 4, .n_rounds = 1, .rounds = &batch, .iterations = 1};
  ok(weave(&job, WEAVE_SWAP, 0, &own));
  job.graph = &f.graph;
  ok(weave(&job, WEAVE_RESIDENT, 0, &other));
  planrt_session *session = open_session(&own.plan, &r, false);
  assert_fails(planrt_can_adopt(session, &other.plan, NULL), PLANC_STALE, "made from another graph");
  planrt_session_free(session);
  woven_free(&other);
  woven_free(&own);
  forged_free(&f);
  planc_graph_free(trained);
  planc_graph_free(forward);
}
END_TEST

/* Tries to change to `plan` after three periods, which fails, and runs six more. */
static void run_on(const planc_plan *own, const planc_plan *plan, planc_code code, const char *message, run *out) {
  planrt_session *session = open_session(own, out, true);
  ok(planrt_run(session, 3));
  if (plan) assert_fails(planrt_adopt(&session, plan), code, message);
  ck_assert(planrt_can_run(session));
  ok(planrt_run(session, 6));
  read_values(session, out);
  planrt_session_free(session);
}

START_TEST(others_are_refused) {
  run whole = {0}, tried = {0};
  woven own, other;
  weave_plan(WEAVE_SWAP, 4, &own);
  run_on(&own.plan, NULL, PLANC_OK, NULL, &whole);

  weave_plan(WEAVE_RESIDENT, 5, &other);
  run_on(&own.plan, &other.plan, PLANC_STALE, "made for 5 samples in a batch, the run has 4", &tried);
  assert_same(&whole, &tried);
  woven_free(&other);

  planc_graph *kept = graph, *forward = graph_of(text);
  ok(planc_graph_train(forward, PLANC_MOMENTUM, &graph));
  weave_plan(WEAVE_RESIDENT, 4, &other);
  planc_graph *momentum = graph;
  graph = kept;
  run_on(&own.plan, &other.plan, PLANC_STALE, "made from another graph", &tried);
  assert_same(&whole, &tried);
  woven_free(&other);
  planc_graph_free(momentum);
  planc_graph_free(forward);

  weave_plan(WEAVE_RESIDENT, 4, &other);
  device_of(&other.plan)->budget_bytes = 16;
  run_on(&own.plan, &other.plan, PLANC_INFEASIBLE, "budget", &tried);
  assert_same(&whole, &tried);
  device_of(&other.plan)->budget_bytes = INT64_C(1) << 60;
  other.plan.body.n--;
  run_on(&own.plan, &other.plan, PLANC_INVALID_PLAN, "", &tried);
  assert_same(&whole, &tried);
  woven_free(&other);
  woven_free(&own);
}
END_TEST

/* A plan that passes and for which the device has no memory: the old one gets it back. */
START_TEST(the_old_plan_comes_back) {
  run whole = {0}, tried = {0};
  woven own, huge;
  weave_plan(WEAVE_SWAP, 4, &own);
  weave_plan(WEAVE_RESIDENT, 4, &huge);
  device_of(&huge.plan)->arena_bytes = INT64_C(1) << 50;
  device_of(&huge.plan)->budget_bytes = INT64_C(1) << 51;
  huge.plan.predicted.peak_bytes[PLANC_MEMORY_DEVICE] =
      device_of(&huge.plan)->arena_bytes + device_of(&huge.plan)->reserved_bytes;
  run_on(&own.plan, NULL, PLANC_OK, NULL, &whole);
  planrt_session *session = open_session(&own.plan, &tried, true);
  ok(planrt_run(session, 3));
  planc_status status = planrt_adopt(&session, &huge.plan);
  ck_assert(status != NULL);
  ck_assert_msg(planc_status_code(status) == PLANC_DEVICE || planc_status_code(status) == PLANC_OUT_OF_MEMORY, "%s",
                planc_status_message(status));
  planc_status_free(status);
  ok(planrt_run(session, 6));
  read_values(session, &tried);
  planrt_session_free(session);
  assert_same(&whole, &tried);
  woven_free(&own);
  woven_free(&huge);
}
END_TEST

/* --- Pausing ------------------------------------------------------------------------------------------------------ */

/* A verified run has windows of PLANRT_VERIFY_PERIODS: a pause in the third is one like any other. */
START_TEST(a_run_ends_where_it_is_asked_to) {
  static const int64_t pauses[] = {0, 1, 5, 2 * PLANRT_VERIFY_PERIODS, 2 * PLANRT_VERIFY_PERIODS + 3};
  run r = {0};
  woven own;
  weave_plan(WEAVE_SWAP, 4, &own);
  planrt_session *session = open_session(&own.plan, &r, _i);
  int64_t done = 0;
  for (size_t p = 0; p < sizeof pauses / sizeof *pauses; p++) {
    r.asked = 0;
    r.pause_at = pauses[p];
    ok(planrt_run(session, 40));
    done += pauses[p];
    ck_assert_int_eq(planrt_get_step(session).period, done);
    ck_assert_int_eq(r.asked, pauses[p] + 1);
  }
  r.pause_at = -1;
  ok(planrt_run(session, 4));
  ck_assert_int_eq(planrt_get_step(session).period, done + 4);
  planrt_session_free(session);
  woven_free(&own);
}
END_TEST

/* --- Watching ----------------------------------------------------------------------------------------------------- */

static char folder[] = "/tmp/test_adopt.XXXXXX";
static char file[64];

static void make_folder(void) {
  set_up();
  strcpy(folder, "/tmp/test_adopt.XXXXXX");
  ck_assert(mkdtemp(folder) != NULL);
  snprintf(file, sizeof file, "%s/x.plan", folder);
}
static void remove_folder(void) {
  unlink(file);
  rmdir(folder);
  tear_down();
}

static void put_plan(const planc_plan *plan) {
  char *printed;
  size_t length;
  ok(planc_plan_print(plan, &printed, &length));
  ok(pl_file_write(file, printed, length));
  free(printed);
}

static void assert_nothing(run_watch *watch, const planrt_session *session, const planc_plan *runs) {
  planc_plan *plan;
  ok(run_watch_look(watch, session, runs, &plan));
  ck_assert_ptr_null(plan);
}

static void assert_found(run_watch *watch, const planrt_session *session, const planc_plan *runs,
                         const planc_plan *want) {
  planc_plan *plan;
  uint64_t ours, theirs;
  ok(run_watch_look(watch, session, runs, &plan));
  ck_assert_ptr_nonnull(plan);
  ok(planc_plan_hash(plan, &ours));
  ok(planc_plan_hash(want, &theirs));
  ck_assert_uint_eq(ours, theirs);
  planc_plan_free(plan);
  assert_nothing(watch, session, runs);
}

static void assert_told_once(run_watch *watch, const planrt_session *session, const planc_plan *runs, planc_code code) {
  planc_plan *plan;
  assert_fails(run_watch_look(watch, session, runs, &plan), code, file);
  ck_assert_ptr_null(plan);
  assert_nothing(watch, session, runs);
}

START_TEST(what_appears_or_changes_is_found_once) {
  run r = {0};
  woven own, other;
  run_watch watch;
  weave_plan(WEAVE_SWAP, 4, &own);
  weave_plan(WEAVE_RESIDENT, 4, &other);
  planrt_session *session = open_session(&own.plan, &r, false);
  ok(run_watch_start(&watch, file));
  assert_nothing(&watch, session, &own.plan);
  put_plan(&other.plan);
  assert_found(&watch, session, &own.plan, &other.plan);
  put_plan(&other.plan); /* another file, if of the same content */
  assert_found(&watch, session, &own.plan, &other.plan);
  put_plan(&own.plan); /* which runs already */
  assert_nothing(&watch, session, &own.plan);
  unlink(file);
  assert_nothing(&watch, session, &own.plan);
  put_plan(&other.plan);
  assert_found(&watch, session, &own.plan, &other.plan);
  ok(run_watch_start(&watch, file)); /* what is there already is not new */
  assert_nothing(&watch, session, &own.plan);
  unlink(file);
  ck_assert_int_eq(mkfifo(file, 0600), 0); /* nobody writes: opening it would never end */
  assert_told_once(&watch, session, &own.plan, PLANC_BAD_INPUT);
  unlink(file);
  ck_assert_int_eq(mkdir(file, 0700), 0);
  assert_told_once(&watch, session, &own.plan, PLANC_BAD_INPUT);
  assert_fails(run_watch_start(&watch, file), PLANC_USAGE, "is a directory");
  rmdir(file);
  planrt_session_free(session);
  woven_free(&own);
  woven_free(&other);
}
END_TEST

START_TEST(bad_files_are_told_once) {
  run r = {0};
  woven own, other;
  run_watch watch;
  char *printed;
  size_t length;
  weave_plan(WEAVE_SWAP, 4, &own);
  weave_plan(WEAVE_RESIDENT, 4, &other);
  planrt_session *session = open_session(&own.plan, &r, false);
  ok(run_watch_start(&watch, file));
  ok(planc_plan_print(&other.plan, &printed, &length));
  for (size_t end = 0; end + 1 < length; end += 31) {
    ok(pl_file_write(file, printed, end));
    assert_told_once(&watch, session, &own.plan, PLANC_BAD_INPUT);
  }
  free(printed);
  device_of(&other.plan)->budget_bytes = 16;
  put_plan(&other.plan);
  assert_told_once(&watch, session, &own.plan, PLANC_INFEASIBLE);
  woven_free(&other);
  weave_plan(WEAVE_RESIDENT, 8, &other);
  put_plan(&other.plan);
  assert_told_once(&watch, session, &own.plan, PLANC_STALE);
  planrt_session_free(session);
  woven_free(&own);
  woven_free(&other);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("adopt");
  TCase *adopting = tcase_create("adopting");
  tcase_add_checked_fixture(adopting, set_up, tear_down);
  tcase_set_timeout(adopting, 60);
  tcase_add_loop_test(adopting, an_adopted_plan_goes_on, 0, 2);
  tcase_add_test(adopting, step_and_seed_go_along);
  tcase_add_loop_test(adopting, policies_take_turns, 0, 12);
  tcase_add_test(adopting, others_are_refused);
  tcase_add_test(adopting, forged_graphs_are_refused);
  tcase_add_test(adopting, the_old_plan_comes_back);
  tcase_add_loop_test(adopting, a_run_ends_where_it_is_asked_to, 0, 2);
  suite_add_tcase(suite, adopting);
  TCase *watching = tcase_create("watching");
  tcase_add_checked_fixture(watching, make_folder, remove_folder);
  tcase_set_timeout(watching, 60);
  tcase_add_test(watching, what_appears_or_changes_is_found_once);
  tcase_add_test(watching, bad_files_are_told_once);
  suite_add_tcase(suite, watching);
  return run_suite(suite);
}
