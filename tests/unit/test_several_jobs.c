/* Plans of several jobs: each job is trained, saved, judged and reported as if it were alone. The plans are woven job
 * by job and joined here: every job has its own part of each memory, and their instructions take turns. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "planc/timeline.h"
#include "planrt/data.h"
#include "planrt/planrt.h"
#include "tests/support/graphtext.h"
#include "tests/support/judge.h"
#include "tests/support/nets.h"
#include "tests/support/plan_tables.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"
#include "tests/support/weave.h"
#include "util/file.h"
#include "util/json_tree.h"

enum { DEVICE, HOST };
enum { BODY = 1, SECTIONS = 3 };
enum { JOBS = 2, STREAMS = 3, PERIODS = 6 };

/* --- Joining ------------------------------------------------------------------------------------------------------ */

typedef struct joined {
  planc_graph *graphs[JOBS];
  woven parts[JOBS];
  planc_plan plan; /* not to be freed by planc_plan_free */
  pl_arena arena;
  VEC(planc_instr) sections[SECTIONS];
  VEC(int32_t) uses;
} joined;

/* Where the numbers of a job's own plan are in the joined one. */
typedef struct offsets {
  int32_t instances, buffers, events, boundary;
  int64_t address[2];   /* by memory */
  int32_t *residencies; /* by residency of the job's own plan */
} offsets;

static int32_t residency_of(const offsets *of, int32_t residency) {
  return residency == PLANC_USER ? PLANC_USER : of->residencies[residency];
}

static void join_exec(joined *all, const woven *part, const offsets *of, planc_instr *exec) {
  int32_t first = exec->first_use, n = part->trace->instances[exec->id].n_accesses;
  exec->id += of->instances;
  exec->first_use = (int32_t)all->uses.len;
  if (exec->bytes > 0) exec->address += of->address[DEVICE];
  ok(VEC_RESERVE(&all->uses, all->uses.len + n));
  for (int32_t k = 0; k < n; k++) all->uses.data[all->uses.len++] = residency_of(of, part->uses.data[first + k]);
}

static void join_instr(joined *all, int32_t job, const offsets *of, int32_t section, planc_instr instr) {
  const woven *part = &all->parts[job];
  bool on_stream = instr.op != PLANC_INSTR_acquire && instr.op != PLANC_INSTR_release;
  if (on_stream) instr.stream = (int16_t)(instr.stream + STREAMS * job);
  if (instr.op == PLANC_INSTR_record || instr.op == PLANC_INSTR_wait) instr.id += of->events;
  if (instr.op == PLANC_INSTR_acquire) {
    if (instr.id >= part->plan.n_boundary) of->residencies[instr.id] = all->plan.n_residencies++;
    instr.aux += of->buffers;
    instr.address += of->address[instr.memory];
  }
  if (instr.op == PLANC_INSTR_copy) instr.aux = residency_of(of, instr.aux);
  if (!on_stream || instr.op == PLANC_INSTR_copy) instr.id = residency_of(of, instr.id);
  if (instr.op == PLANC_INSTR_exec) join_exec(all, part, of, &instr);
  ok(VEC_RESERVE(&all->sections[section], all->sections[section].len + 1));
  all->sections[section].data[all->sections[section].len++] = instr;
}

/* In the body the jobs take turns at random, each in its own order. Around it one comes after the other: what is parked
 * is acquired in the order of the boundary's rows. */
static void join_section(joined *all, const offsets *of, int32_t section) {
  uint64_t seed = 1;
  int64_t at[JOBS] = {0}, left = 0;
  for (int32_t j = 0; j < JOBS; j++) left += all->parts[j].sections[section].len;
  for (; left > 0; left--) {
    int32_t j = section == BODY ? (int32_t)rand_below(&seed, JOBS) : 0;
    while (at[j] == all->parts[j].sections[section].len) j = (j + 1) % JOBS;
    join_instr(all, j, &of[j], section, all->parts[j].sections[section].data[at[j]++]);
  }
}

/* A part's rows of the boundary become rows of the joined one. */
static void join_boundary(joined *all, int32_t job, offsets *of, planc_boundary *rows) {
  const planc_plan *part = &all->parts[job].plan;
  ok(PL_NEW(&all->arena, &of->residencies, part->n_residencies));
  for (int32_t b = 0; b < part->n_boundary; b++) {
    planc_boundary *row = &rows[of->boundary + b];
    *row = part->boundary[b];
    row->buffer += of->buffers;
    row->address += of->address[row->memory];
    of->residencies[b] = of->boundary + b;
  }
}

static offsets behind(const offsets *of, const woven *part) {
  offsets next = {.instances = of->instances + part->trace->n_instances,
                  .buffers = of->buffers + part->trace->n_buffers,
                  .events = of->events + part->plan.n_events,
                  .boundary = of->boundary + part->plan.n_boundary};
  for (int m = 0; m < 2; m++) next.address[m] = of->address[m] + part->plan.memories[m].arena_bytes;
  return next;
}

static void join(joined *all, const planc_job *jobs) {
  static const char *const algorithms[] = {"default"};
  offsets of[JOBS + 1] = {{0}};
  planc_plan *plan = &all->plan;
  for (int32_t j = 0; j < JOBS; j++) of[j + 1] = behind(&of[j], &all->parts[j]);
  *plan = (planc_plan){.name = "joined", .policy = "none", .n_jobs = JOBS, .n_algorithms = 1, .algorithms = algorithms};
  plan->device.name = "host";
  ok(pl_arena_copy(&all->arena, jobs, JOBS, sizeof *jobs, (void *)&plan->jobs));
  ok(tables_make(plan, &all->arena, NULL, false));
  tables_arenas(plan, of[JOBS].address[DEVICE], of[JOBS].address[HOST]);
  tables_budgets(plan, of[JOBS].address[DEVICE], -1);
  planc_boundary *rows;
  ok(PL_NEW(&all->arena, &rows, of[JOBS].boundary));
  for (int32_t j = 0; j < JOBS; j++) join_boundary(all, j, &of[j], rows);
  plan->boundary = rows;
  plan->n_boundary = plan->n_residencies = of[JOBS].boundary;
  plan->n_events = of[JOBS].events;
  planc_section *sections[] = {&plan->prologue, &plan->body, &plan->epilogue};
  for (int32_t s = 0; s < SECTIONS; s++) {
    join_section(all, of, s);
    *sections[s] = (planc_section){(int32_t)all->sections[s].len, all->sections[s].data};
  }
  plan->n_uses = (int32_t)all->uses.len;
  plan->uses = all->uses.data;
}

/* --- Two jobs ----------------------------------------------------------------------------------------------------- */

static const char *const texts[JOBS] = {
    NARROW_NET("narrow"),
    "planc-graph: 1\nname: wide\nloss: loss\ntensors:\n"
    "  x: input f32[N,6]\n  labels: input i64[N]\n  w: param f32[64,6]\n  h: f32[N,64]\n  r: f32[N,64] of h\n"
    "  v: param f32[3,64]\n  z: f32[N,3]\n  loss: f32[]\n  probs: f32[N,3]\n"
    "ops:\n"
    "  - {op: h, type: linear, in: [x, w], out: [h]}\n"
    "  - {op: r, type: relu, in: [h], out: [r]}\n"
    "  - {op: z, type: linear, in: [r, v], out: [z]}\n"
    "  - {op: l, type: softmax_xent, in: [z, labels], out: [loss, probs]}\n"};
static const planc_optimizer optimizers[JOBS] = {PLANC_ADAM, PLANC_MOMENTUM};
static const int64_t batches[JOBS] = {4, 7};
static const int32_t iterations[JOBS] = {3, 2};

static planc_job job_of(const planc_graph *graph, int32_t job) {
  return (planc_job){
      .graph = graph, .batch = batches[job], .n_rounds = 1, .rounds = &batches[job], .iterations = iterations[job]};
}

static void make_joined(weave_mode mode, joined *out) {
  planc_job jobs[JOBS];
  *out = (joined){.uses = {0}};
  for (int32_t j = 0; j < JOBS; j++) {
    planc_graph *forward = graph_of(texts[j]);
    ok(planc_graph_train(forward, optimizers[j], &out->graphs[j]));
    planc_graph_free(forward);
    jobs[j] = job_of(out->graphs[j], j);
    ok(weave(&jobs[j], mode, 256, &out->parts[j]));
  }
  join(out, jobs);
}

static void free_joined(joined *all) {
  for (int32_t s = 0; s < SECTIONS; s++) VEC_FREE(&all->sections[s]);
  VEC_FREE(&all->uses);
  pl_arena_free(&all->arena);
  for (int32_t j = 0; j < JOBS; j++) {
    woven_free(&all->parts[j]);
    planc_graph_free(all->graphs[j]);
  }
}

/* --- Running ------------------------------------------------------------------------------------------------------ */

/* The label is which of the first three values is the largest. What is asked for does not depend on the job, so that
 * one that runs alone gets the same. */
static planc_status feed(void *user, const planrt_feed_request *request) {
  (void)user;
  for (int64_t i = 0; i < request->count; i++) {
    uint64_t seed = (uint64_t)(request->iteration * 1000 + request->offset + i);
    float values[6];
    int64_t label = 0;
    for (int k = 0; k < 6; k++) values[k] = (float)rand_below(&seed, 1000) / 1000.0F;
    for (int64_t k = 1; k < 3; k++)
      if (values[k] > values[label]) label = k;
    if (request->bytes == request->count * (int64_t)sizeof label)
      ((int64_t *)request->out)[i] = label;
    else
      memcpy((float *)request->out + i * 6, values, sizeof values);
  }
  return NULL;
}

/* The same for a pass over one job alone. */
static planc_status feed_judged(void *user, const planrt_feed_request *request) {
  ck_assert_int_eq(request->job, *(const int32_t *)user);
  return feed(NULL, request);
}

/* What a job has come to. */
typedef struct outcome {
  float losses[PERIODS * 3]; /* by iteration */
  int64_t bytes;
  char values[16384]; /* all that persists */
  double accuracy;
} outcome;

typedef struct watched {
  const planc_plan *plan;
  outcome *outcomes; /* by job */
} watched;

static planc_status take(void *user, const planrt_result *result) {
  const watched *to = user;
  const planc_graph *graph = to->plan->jobs[result->job].graph;
  if (result->storage != graph->tensors[graph->loss].storage) return NULL;
  ck_assert_int_lt(result->iteration, PERIODS * 3);
  memcpy(&to->outcomes[result->job].losses[result->iteration], result->data, sizeof(float));
  return NULL;
}

typedef enum way { IN_ORDER, CONCURRENT, INTERLEAVED, N_WAYS } way;

static planrt_session *open_session(watched *w, way how) {
  planrt_options options = {
      .seed = 3, .feed = feed, .sink = take, .user = w, .verify = true, .evaluate = true, .poison = true};
  options.concurrent = how == CONCURRENT;
  planrt_session *session;
  ok(planrt_session_new(w->plan, &options, &session));
  ok(planrt_init(session));
  return session;
}

static void run(planrt_session *session, way how, int64_t periods) {
  ok(how == INTERLEAVED ? planrt_run_interleaved(session, periods, 7) : planrt_run(session, periods));
}

static void read_values(const planrt_session *session, const planc_plan *plan, int32_t job, outcome *out) {
  const planc_graph *graph = plan->jobs[job].graph;
  out->bytes = 0;
  for (int32_t s = 0; s < graph->n_storages; s++) {
    if (!planc_kind_persists(graph->storages[s].kind)) continue;
    int64_t bytes = graph->storages[s].bytes.fixed;
    ck_assert_int_le(out->bytes + bytes, (int64_t)sizeof out->values);
    ok(planrt_read(session, 0, job, s, out->values + out->bytes, bytes));
    out->bytes += bytes;
  }
}

static void finish(planrt_session *session, const watched *w) {
  enum { SAMPLES = 50 };
  for (int32_t j = 0; j < w->plan->n_jobs; j++) {
    read_values(session, w->plan, j, &w->outcomes[j]);
    ok(planrt_evaluate(session, j, feed_judged, &j, SAMPLES, &w->outcomes[j].accuracy));
  }
  planrt_session_free(session);
}

/* Each job by itself. */
static void run_alone(const joined *all, outcome *out) {
  for (int32_t j = 0; j < JOBS; j++) {
    watched w = {&all->parts[j].plan, &out[j]};
    planrt_session *session = open_session(&w, IN_ORDER);
    run(session, IN_ORDER, PERIODS);
    finish(session, &w);
  }
}

static void assert_same(const outcome *got, const outcome *want) {
  for (int32_t j = 0; j < JOBS; j++) {
    ck_assert_int_gt(want[j].bytes, 100);
    ck_assert_int_eq(got[j].bytes, want[j].bytes);
    ck_assert_mem_eq(got[j].values, want[j].values, (size_t)want[j].bytes);
    ck_assert_mem_eq(got[j].losses, want[j].losses, sizeof want[j].losses);
    ck_assert_double_eq(got[j].accuracy, want[j].accuracy);
  }
  ck_assert_double_ne(want[0].accuracy, want[1].accuracy);
}

/* --- Tests -------------------------------------------------------------------------------------------------------- */

static char path[64];

static void name_file(void) {
  snprintf(path, sizeof path, "/tmp/planc-several-jobs-%ld", (long)getpid());
}
static void remove_file(void) {
  unlink(path);
}

START_TEST(each_job_is_as_if_alone) {
  static outcome want[JOBS], got[JOBS];
  joined all;
  make_joined(_i % 2 ? WEAVE_SWAP : WEAVE_RESIDENT, &all);
  run_alone(&all, want);
  watched w = {&all.plan, got};
  planrt_session *session = open_session(&w, (way)(_i / 2));
  run(session, (way)(_i / 2), PERIODS);
  finish(session, &w);
  assert_same(got, want);
  free_joined(&all);
}
END_TEST

/* Through a checkpoint, and with another plan from the middle on. */
START_TEST(runs_go_on) {
  static outcome want[JOBS], got[JOBS];
  joined first, second;
  make_joined(WEAVE_SWAP, &first);
  make_joined(WEAVE_RESIDENT, &second);
  run_alone(&first, want);
  watched w = {&first.plan, got};
  planrt_session *session = open_session(&w, CONCURRENT);
  run(session, CONCURRENT, PERIODS / 2);
  if (_i == 0) {
    ok(planrt_adopt(&session, &second.plan));
  } else {
    ok(planrt_save(session, path));
    planrt_session_free(session);
    w.plan = &second.plan;
    session = open_session(&w, CONCURRENT);
    ok(planrt_resume(session, path));
    for (int32_t j = 0; j < second.plan.n_jobs; j++)
      ck_assert_int_ne(planrt_resumed_samples(session, j), PLANRT_SAMPLES_UNKNOWN);
  }
  run(session, CONCURRENT, PERIODS - PERIODS / 2);
  finish(session, &w);
  assert_same(got, want);
  free_joined(&first);
  free_joined(&second);
}
END_TEST

/* --- Traces ------------------------------------------------------------------------------------------------------- */

/* The file's text with the first `from` in it replaced, read as a trace of the plan. */
static planc_status read_with(const planc_plan *plan, const char *from, const char *to) {
  char *text, *edited;
  size_t length;
  planc_timeline *timeline;
  ok(pl_file_read_text(path, 1 << 20, &text, &length));
  edited = judge_edited(text, from, to);
  planc_status status = planc_timeline_parse(edited, strlen(edited), "t", plan, &timeline);
  planc_timeline_free(timeline);
  free(edited);
  free(text);
  return status;
}

START_TEST(a_trace_is_of_all_jobs_graphs) {
  joined all;
  char hashes[JOBS][24], both[64];
  make_joined(WEAVE_SWAP, &all);
  planrt_options options = {.feed = feed, .timeline = 2};
  planrt_session *session;
  ok(planrt_session_new(&all.plan, &options, &session));
  ok(planrt_init(session));
  ok(planrt_run(session, 2));
  ok(planrt_timeline_write(session, path));
  planrt_session_free(session);

  for (int32_t j = 0; j < JOBS; j++)
    snprintf(hashes[j], sizeof hashes[j], "\"%016llx\"", (unsigned long long)planc_graph_hash(all.plan.jobs[j].graph));
  snprintf(both, sizeof both, "[%s,%s]", hashes[0], hashes[1]);
  ok(read_with(&all.plan, both, both));
  assert_fails(read_with(&all.plan, hashes[1], hashes[0]), PLANC_BAD_INPUT,
               "t: otherData.graph_hashes[1]: is not what the plan's graphs have");
  all.plan.name = "another";
  assert_fails(read_with(&all.plan, both, both), PLANC_STALE, "another plan of the same graphs");
  planc_status status = read_with(&all.plan, hashes[1], hashes[0]);
  ck_assert_int_eq(planc_status_code(status), PLANC_STALE);
  ck_assert_ptr_null(strstr(planc_status_message(status), "same"));
  planc_status_free(status);
  free_joined(&all);
}
END_TEST

START_TEST(misuse) {
  static outcome out[JOBS];
  joined all;
  double accuracy;
  make_joined(WEAVE_RESIDENT, &all);
  watched w = {&all.plan, out};
  planrt_session *session = open_session(&w, IN_ORDER);
  assert_fails(planrt_evaluate(session, JOBS, feed, NULL, 1, &accuracy), PLANC_USAGE, "there is no job 2");
  assert_fails(planrt_evaluate(session, -1, feed, NULL, 1, &accuracy), PLANC_USAGE, "there is no job -1");
  planrt_session_free(session);
  free_joined(&all);
}
END_TEST

/* --- planrun ------------------------------------------------------------------------------------------------------ */

/* Runs the planrun of this build; what it prints, standard error included, and its exit code. */
static int exec_plan(const char *arguments, char *out, size_t room) {
  char self[512], command[1024];
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  ck_assert_int_gt(length, 0);
  self[length] = 0;
  for (int up = 0; up < 2; up++) *strrchr(self, '/') = 0;
  snprintf(command, sizeof command, "%s/planrun exec %s %s 2>&1", self, path, arguments);
  FILE *file = popen(command, "r"); /* NOLINT(cert-env33-c): the test's own words */
  ck_assert_ptr_nonnull(file);
  out[fread(out, 1, room - 1, file)] = 0;
  int status = pclose(file);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void write_plan(const planc_plan *plan) {
  char *text;
  size_t length;
  ok(planc_plan_print(plan, &text, &length));
  ok(pl_file_write(path, text, length));
  free(text);
}

static int number(const cJSON *object, const char *key) {
  return cJSON_GetObjectItemCaseSensitive(object, key)->valueint;
}

/* Iterations are those of the job that has the fewest in a period, here two: five of them take three periods. */
START_TEST(planrun_reports_each_job) {
  joined all;
  char out[4096];
  make_joined(WEAVE_SWAP, &all);
  write_plan(&all.plan);
  ck_assert_int_eq(exec_plan("-n 5 --verify", out, sizeof out), 0);
  ck_assert_ptr_nonnull(strstr(out, "job 0: narrow, iterations 9, loss "));
  ck_assert_ptr_nonnull(strstr(out, "job 1: wide, iterations 6, loss "));
  ck_assert_ptr_nonnull(strstr(out, "verified: "));
  ck_assert_int_eq(exec_plan("-n 5 --json", out, sizeof out), 0);
  cJSON *report;
  const char *line = strstr(out, "{\"planrun\"");
  ck_assert_ptr_nonnull(line);
  ok(pl_json_tree(line, strlen(line), NULL, &report));
  ck_assert_int_eq(number(report, "iterations"), 6);
  ck_assert(cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(report, "loss")));
  const cJSON *jobs = cJSON_GetObjectItemCaseSensitive(report, "jobs");
  ck_assert_int_eq(cJSON_GetArraySize(jobs), JOBS);
  for (int32_t j = 0; j < JOBS; j++) {
    const cJSON *job = cJSON_GetArrayItem(jobs, j);
    ck_assert_int_eq(number(job, "iterations"), 3 * iterations[j]);
    ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(job, "losses")), 3 * iterations[j]);
  }
  cJSON_Delete(report);
  free_joined(&all);
}
END_TEST

START_TEST(planrun_asks_whose_data_it_is) {
  joined all;
  char out[1024];
  make_joined(WEAVE_RESIDENT, &all);
  write_plan(&all.plan);
  ck_assert_int_eq(exec_plan("--data tests/data/digits/digits.csv.gz", out, sizeof out), 2);
  ck_assert_ptr_nonnull(strstr(out, " has 2 jobs: say whose data it is, --data 0:"));
  ck_assert_int_eq(exec_plan("--data 1:tests/data/digits/digits.csv.gz", out, sizeof out), 3);
  ck_assert_ptr_nonnull(strstr(out, "digits.csv.gz: input x: the data has 64 pixels"));
  free_joined(&all);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("several_jobs");
  TCase *cases = tcase_create("all");
  tcase_add_checked_fixture(cases, name_file, remove_file);
  tcase_add_loop_test(cases, each_job_is_as_if_alone, 0, 2 * N_WAYS);
  tcase_add_loop_test(cases, runs_go_on, 0, 2);
  tcase_add_test(cases, a_trace_is_of_all_jobs_graphs);
  tcase_add_test(cases, misuse);
  tcase_add_test(cases, planrun_reports_each_job);
  tcase_add_test(cases, planrun_asks_whose_data_it_is);
  suite_add_tcase(suite, cases);
  return run_suite(suite);
}
