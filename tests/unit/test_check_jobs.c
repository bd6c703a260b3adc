/* The checker on hand-made plans: versions of one storage, several jobs, several GPUs. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/memories.h"
#include "planc/check.h"
#include "tests/support/judge.h"
#include "tests/support/script.h"
#include "tests/support/unit.h"

enum { ARENA = 4096 };
static const int64_t one_round[] = {2};

/* --- Versions ----------------------------------------------------------------------------------------------------- */

/* p adds to a in place, so b must be made before and c after; a copy of the old a may serve b still. */
static const char in_place[] =
    "planc-graph: 1\n"
    "name: in-place\n"
    "outputs: [b, c]\n"
    "tensors:\n"
    "  x: input f32[N,32]\n"
    "  a: f32[N,32]\n"
    "  b: f32[N,32]\n"
    "  c: f32[N,32]\n"
    "ops:\n"
    "  - {op: make, type: t.make, in: [x], out: [a]}\n"
    "  - {op: old, type: t.make, in: [a], out: [b]}\n"
    "  - {op: plus, type: t.make, in: [a], out: [a]}\n"
    "  - {op: new, type: t.make, in: [a], out: [c]}\n";

/* All on one address each and ordered by one event per body, so that only versions can be wrong. */
static const char in_place_script[] =
    "prologue\n"
    "record 0 on 2\n"
    "body\n"
    "wait 0 lag 1 on 1\n"
    "acquire 0 x 0\n"
    "copy 0 user on 1\n"
    "record 1 on 1\n"
    "wait 1 on 0\n"
    "acquire 1 a 256\n"
    "exec make use 0 1\n"
    "acquire 2 a 512\n"
    "copy 2 1 on 0\n"
    "acquire 3 b 768\n"
    "exec old use 1 3\n"
    "exec plus use 1\n"
    "acquire 4 c 1024\n"
    "exec new use 1 4\n"
    "record 2 on 0\n"
    "wait 2 on 2\n"
    "copy user 3 on 2\n"
    "copy user 4 on 2\n"
    "record 0 on 2\n"
    "release 0\n"
    "release 1\n"
    "release 2\n"
    "release 3\n"
    "release 4\n"
    "epilogue\n";

static const struct {
  const char *find, *replace, *message; /* message NULL: still valid */
} versions[] = {
    {"exec old use 1 3\nexec plus use 1\n", "exec plus use 1\nexec old use 1 3\n",
     "exec old: reads version 1 of a, but residency 1 holds version 2"},
    {"exec old use 1 3\nexec plus use 1\n", "exec plus use 1\nexec old use 2 3\n", NULL},
    {"exec new use 1 4\n", "exec new use 2 4\n", "exec new: reads version 2 of a, but residency 2 holds version 1"},
    {"exec plus use 1\n", "exec plus use 2\n", "exec new: reads version 2 of a, but residency 1 holds version 1"},
    /* Run again on the old version, make restores it. */
    {"exec plus use 1\n", "exec plus use 1\nexec make re use 0 2\nexec plus re use 2\n", NULL},
    {"exec plus use 1\n", "exec plus use 1\nexec plus re use 1\n",
     "exec plus: reads version 1 of a, but residency 1 holds version 2"},
    {"exec old use 1 3\n", "exec old use 1 3\nexec old re use 2 3\n", NULL},
};

START_TEST(versions_are_followed) {
  planc_graph *own = judge_graph(in_place);
  planc_job job = {.graph = own, .batch = 2, .n_rounds = 1, .rounds = one_round, .iterations = 1};
  char *text = judge_edited(in_place_script, versions[_i].find, versions[_i].replace);
  planc_plan *plan;
  ok(script_make(in_place_script, &job, 1, ARENA, 0, &plan));
  judge_expect(plan, PLANC_OK, "ok", "before the change");
  planc_plan_free(plan);
  ok(script_make(text, &job, 1, ARENA, 0, &plan));
  if (versions[_i].message) {
    judge_expect(plan, PLANC_INVALID_PLAN, versions[_i].message, versions[_i].find);
  } else {
    judge_expect(plan, PLANC_OK, "ok", versions[_i].find);
  }
  planc_plan_free(plan);
  free(text);
  planc_graph_free(own);
}
END_TEST

/* --- Several jobs ------------------------------------------------------------------------------------------------- */

static const char forward[] =
    "planc-graph: 1\n"
    "name: forward\n"
    "loss: l\n"
    "tensors:\n"
    "  x: input f32[N,32]\n"
    "  l: f32[]\n"
    "ops:\n"
    "  - {op: f, type: t.make, in: [x], out: [l]}\n";

/* Job 1 takes over job 0's bytes, and job 0 in the next body job 1's. */
static const char two_jobs[] =
    "prologue\n"
    "record 5 on 5\n"
    "body\n"
    "wait 5 lag 1 on 1\n"
    "acquire 0 x#0 0\n"
    "copy 0 user on 1\n"
    "record 0 on 1\n"
    "wait 0 on 0\n"
    "acquire 1 l#0 256\n"
    "exec f#0 use 0 1\n"
    "record 1 on 0\n"
    "wait 1 on 2\n"
    "copy user 1 on 2\n"
    "record 2 on 2\n"
    "release 0\n"
    "release 1\n"
    "wait 2 on 4\n"
    "acquire 2 x#1 0\n"
    "copy 2 user on 4\n"
    "record 3 on 4\n"
    "wait 3 on 3\n"
    "acquire 3 l#1 256\n"
    "exec f#1 on 3 use 2 3\n"
    "record 4 on 3\n"
    "wait 4 on 5\n"
    "copy user 3 on 5\n"
    "record 5 on 5\n"
    "release 2\n"
    "release 3\n"
    "epilogue\n";

static const struct {
  const char *find, *replace, *message;
} shared[] = {
    {"wait 2 on 4\n", "",
     "prefetch x of job 1: writes x of job 1, whose bytes prefetch at line 30 on stream h2d of job 0 may still be "
     "writing"},
    {"wait 5 lag 1 on 1\n", "",
     "prefetch x of job 0: writes x of job 0, whose bytes prefetch at line 42 of the body before on stream h2d of job "
     "1 may "
     "still be writing"},
    {"exec f#1 on 3", "exec f#1 on 0", "exec f of job 1: stream 0 belongs to job 0, the data to job 1"},
    {"copy 2 user on 4\n", "copy 2 user on 1\n", "stream 1 belongs to job 0, the data to job 1"},
};

START_TEST(jobs_share_memory_in_order_only) {
  planc_graph *own = judge_graph(forward);
  planc_job job = {.graph = own, .batch = 2, .n_rounds = 1, .rounds = one_round, .iterations = 1};
  const planc_job jobs[] = {job, job};
  char *text = judge_edited(two_jobs, shared[_i].find, shared[_i].replace);
  planc_plan *plan;
  ok(script_make(two_jobs, jobs, 2, 512, 0, &plan));
  judge_expect(plan, PLANC_OK, "ok", "before the change");
  planc_plan_free(plan);
  ok(script_make(text, jobs, 2, 512, 0, &plan));
  judge_expect(plan, PLANC_INVALID_PLAN, shared[_i].message, shared[_i].find);
  planc_plan_free(plan);
  free(text);
  planc_graph_free(own);
}
END_TEST

/* On two GPUs the same addresses are different bytes, and nothing need be ordered between the jobs: each waits for
 * itself alone. */
static const struct {
  const char *find, *replace, *message; /* message NULL: still valid */
} apart[] = {
    {"body\n", "body\n", NULL},
    {"wait 5 lag 1 on 4\n", "", "prefetch x of job 1: writes x of job 1, whose bytes exec at line"},
    {"wait 2 lag 1 on 1\n", "", "prefetch x of job 0: writes x of job 0, whose bytes exec at line"},
    {"acquire 2 x#1 0\n", "acquire 2 x#1 256 in 0\n",
     "prefetch x of job 1: stream 4 does not copy from the user to device 0"},
    {"acquire 3 l#1 256\n", "acquire 3 l#1 256 in 0\n",
     "exec f of job 1: wants l of job 1, but residency 3 is in memory 0"},
    {"acquire 3 l#1 256\n", "acquire 3 l#1 0\n", "acquire l of job 1: overlaps x of job 1 in residency 2"},
    {"copy 2 user on 4\n", "copy 2 user on 1\n", "stream 1 does not copy from the user to device 1"},
    {"copy user 3 on 5\n", "copy user 3 on 2\n", "stream 2 does not copy from device 1 to the user"},
    {"exec f#1 on 3", "exec f#1 on 0", "exec f of job 1: stream 0 belongs to job 0, the data to job 1"},
};

/* A plan for two jobs, each on a GPU of its own, with `replace` for `find`. */
static planc_plan *plan_of_two_gpus(const planc_graph *graph, const char *find, const char *replace) {
  planc_job job = {.graph = graph, .batch = 2, .n_rounds = 1, .rounds = one_round, .iterations = 1};
  const planc_job jobs[] = {job, job};
  char *halfway = judge_edited(two_jobs, "wait 2 on 4\n", "wait 5 lag 1 on 4\n");
  char *base = judge_edited(halfway, "prologue\nrecord 5 on 5\nbody\nwait 5 lag 1 on 1\n",
                            "gpus 0 1\nprologue\nrecord 5 on 5\nrecord 2 on 2\nbody\nwait 2 lag 1 on 1\n");
  char *text = judge_edited(base, find, replace);
  planc_plan *plan;
  ok(script_make(text, jobs, 2, 512, 0, &plan));
  free(text);
  free(base);
  free(halfway);
  return plan;
}

START_TEST(every_gpu_has_its_own_memory) {
  planc_graph *own = judge_graph(forward);
  planc_plan *plan = plan_of_two_gpus(own, apart[_i].find, apart[_i].replace);
  judge_expect(plan, apart[_i].message ? PLANC_INVALID_PLAN : PLANC_OK, apart[_i].message ? apart[_i].message : "ok",
               apart[_i].replace);
  planc_plan_free(plan);
  planc_graph_free(own);
}
END_TEST

/* The one that is fullest has the plan's peak, and a refusal names it. */
START_TEST(every_gpu_has_its_own_budget) {
  planc_graph *own = judge_graph(forward);
  planc_plan *plan = plan_of_two_gpus(own, apart[0].find, apart[0].replace);
  planc_memory *memories = (planc_memory *)plan->memories;
  memories[0].budget_bytes = 512;
  memories[1].arena_bytes = 1024;
  memories[1].budget_bytes = 2048;
  ok(planc_check(plan, NULL, NULL));
  ck_assert_int_eq(pl_plan_peak(plan, PLANC_MEMORY_DEVICE), 1024);
  ck_assert_int_eq(pl_plan_peak_memory(plan, PLANC_MEMORY_DEVICE)->budget_bytes, 2048);
  memories[1].budget_bytes = 1023;
  assert_fails(planc_check(plan, NULL, NULL), PLANC_INFEASIBLE, "needs 1024 bytes on GPU 1 (arena 1024, reserved 0)");
  planc_plan_free(plan);
  planc_graph_free(own);
}
END_TEST

/* One op that reads one tensor over and over, beside tensors that nothing touches. */
static char *crowded_graph(int32_t n_operands, int32_t n_unused) {
  size_t size = 256 + 3 * (size_t)n_operands + 24 * (size_t)n_unused, used;
  char *text = malloc(size);
  ck_assert_ptr_nonnull(text);
  used = (size_t)snprintf(text, size, "planc-graph: 1\nname: crowded\ntensors:\n  x: input f32[N]\n  y: f32[N]\n");
  for (int32_t i = 0; i < n_unused; i++) used += (size_t)snprintf(text + used, size - used, "  u%d: f32[N]\n", i);
  used += (size_t)snprintf(text + used, size - used, "ops:\n  - {op: f, type: t.make, out: [y], in: [x");
  for (int32_t i = 1; i < n_operands; i++) used += (size_t)snprintf(text + used, size - used, ",x");
  snprintf(text + used, size - used, "]}\n");
  return text;
}

/* What is the same for all jobs of a graph is worked out once: 256 times would be beyond time and memory. */
START_TEST(a_crowded_graph_is_read_once_for_all_its_jobs) {
  static planc_job jobs[PLANC_PLAN_MAX_JOBS];
  static const int32_t order[] = {0};
  static planc_instr body[PLANC_PLAN_MAX_JOBS];
  static int32_t uses[2 * PLANC_PLAN_MAX_JOBS];
  static planc_job_predictions predicted[PLANC_PLAN_MAX_JOBS];
  char *text = crowded_graph(200000, 50000);
  planc_graph *own = judge_graph(text);
  for (int32_t j = 0; j < PLANC_PLAN_MAX_JOBS; j++) {
    jobs[j] = (planc_job){.graph = own, .batch = 2, .n_rounds = 1, .rounds = one_round, .iterations = 1};
    if (j % 2) jobs[j].order = order;
  }
  planc_memory memories[] = {{.kind = PLANC_MEMORY_DEVICE, .gpu = 0, .alignment = PLANC_ALIGNMENT},
                             {.kind = PLANC_MEMORY_HOST, .gpu = -1, .alignment = PLANC_ALIGNMENT},
                             {.kind = PLANC_MEMORY_USER, .gpu = -1, .alignment = PLANC_ALIGNMENT}};
  planc_plan plan = {.name = "crowded",
                     .device = {.duplex_ppm = 1},
                     .policy = "hand",
                     .n_memories = 3,
                     .memories = memories,
                     .predicted.jobs = predicted,
                     .n_jobs = PLANC_PLAN_MAX_JOBS,
                     .jobs = jobs,
                     .body = {PLANC_PLAN_MAX_JOBS, body},
                     .n_uses = 2 * PLANC_PLAN_MAX_JOBS,
                     .uses = uses};
  planc_status status = planc_check(&plan, NULL, NULL);
  ck_assert_str_eq(planc_status_message(status), "line 50267: exec f of job 0: there is no stream 0");
  planc_status_free(status);
  plan.n_uses--;
  status = planc_check(&plan, NULL, NULL);
  ck_assert_str_eq(planc_status_message(status),
                   "the jobs have at least 256 instances and 512 accesses, the body has 256 instructions and 511 uses");
  planc_status_free(status);
  planc_graph_free(own);
  free(text);
}
END_TEST

/* --- Many streams ------------------------------------------------------------------------------------------------- */

/* What a job does in a section: with two residencies, three events and three streams. */
static void append_job(FILE *text, bool prologue, int32_t j) {
  int32_t r = 2 * j, e = 3 * j, s = 3 * j;
  if (prologue) {
    fprintf(text, "record %d on %d\n", e + 2, s + 2);
    return;
  }
  fprintf(text, "wait %d lag 1 on %d\nacquire %d x#%d %d\ncopy %d user on %d\n", e + 2, s + 1, r, j, 512 * j, r, s + 1);
  fprintf(text, "record %d on %d\nwait %d on %d\nacquire %d l#%d %d\n", e, s + 1, e, s, r + 1, j, 512 * j + 256);
  fprintf(text, "exec f#%d on %d use %d %d\nrecord %d on %d\nwait %d on %d\n", j, s, r, r + 1, e + 1, s, e + 1, s + 2);
  fprintf(text, "copy user %d on %d\nrecord %d on %d\nrelease %d\nrelease %d\n", r + 1, s + 2, e + 2, s + 2, r, r + 1);
}

/* As many as there may be, each with streams of its own. */
START_TEST(jobs_may_have_streams_of_their_own) {
  static planc_job jobs[PLANC_PLAN_MAX_JOBS];
  char *script;
  size_t length;
  planc_graph *own = judge_graph(forward);
  FILE *text = open_memstream(&script, &length);
  ck_assert_ptr_nonnull(text);
  for (int32_t j = 0; j < PLANC_PLAN_MAX_JOBS; j++)
    jobs[j] = (planc_job){.graph = own, .batch = 2, .n_rounds = 1, .rounds = one_round, .iterations = 1};
  fputs("prologue\n", text);
  for (int32_t j = 0; j < PLANC_PLAN_MAX_JOBS; j++) append_job(text, true, j);
  fputs("body\n", text);
  for (int32_t j = 0; j < PLANC_PLAN_MAX_JOBS; j++) append_job(text, false, j);
  fputs("epilogue\n", text);
  fclose(text);
  planc_plan *plan;
  ok(script_make(script, jobs, PLANC_PLAN_MAX_JOBS, 512 * PLANC_PLAN_MAX_JOBS, 0, &plan));
  ck_assert_int_eq(plan->n_streams, 3 * PLANC_PLAN_MAX_JOBS);
  judge_expect(plan, PLANC_OK, "ok", "all jobs");
  planc_plan_free(plan);
  planc_graph_free(own);
  free(script);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("check_jobs");
  TCase *cases = tcase_create("all");
  tcase_add_loop_test(cases, versions_are_followed, 0, sizeof versions / sizeof *versions);
  tcase_add_loop_test(cases, jobs_share_memory_in_order_only, 0, sizeof shared / sizeof *shared);
  tcase_add_loop_test(cases, every_gpu_has_its_own_memory, 0, sizeof apart / sizeof *apart);
  tcase_add_test(cases, every_gpu_has_its_own_budget);
  tcase_add_test(cases, a_crowded_graph_is_read_once_for_all_its_jobs);
  tcase_add_test(cases, jobs_may_have_streams_of_their_own);
  suite_add_tcase(suite, cases);
  return run_suite(suite);
}
