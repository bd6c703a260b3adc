/* `planrun exec`: the run (cmd_exec.h), from the session's opening over epochs of whole periods to what it writes. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/optypes.h"
#include "runtime/backend.h"
#include "runtime/cmd_exec.h"
#include "runtime/foreign.h"
#include "runtime/room.h"
#include "util/clock.h"
#include "util/print.h"
#include "util/progress.h"
#include "util/size.h"

enum { MOST_JOB_DIGITS = 3 };

const char *rt_execution_data_file(const char *value, int32_t *out_job) {
  size_t digits = strspn(value, "0123456789");
  *out_job = -1;
  if (digits == 0 || digits > MOST_JOB_DIGITS || value[digits] != ':') return value;
  *out_job = (int32_t)strtol(value, NULL, 10);
  return value + digits + 1;
}

/* --- What comes in and goes out --------------------------------------------------------------------------------- */

static planc_status feed_data(void *user, const planrt_feed_request *request) {
  const rt_execution *e = user;
  planrt_data *data = e->jobs[request->job].data;
  return data ? planrt_data_feed(data, request) : planrt_feed_random(e->session, request);
}

static planc_status check_loss(const rt_execution *e, double loss) {
  char text[RT_LOSS_TEXT];
  if (!e->check_nan || isfinite(loss)) return NULL;
  return planc_error(PLANC_JOB_FAILED, "the loss is %s", rt_execution_loss(loss, text));
}

/* A loss is that of all replicas, an f32 number; stand-ins and bare runs have none. */
static planc_status take_result(void *user, const planrt_result *result) {
  rt_execution *e = user;
  const planc_graph *graph = e->plan->jobs[result->job].graph;
  if (e->options.synthetic || e->options.bare) return NULL;
  if (graph->loss < 0 || graph->tensors[graph->loss].storage != result->storage) return NULL;
  const planc_tensor *loss = &graph->tensors[graph->loss];
  float value;
  if (loss->dtype != PLANC_DTYPE_f32 || loss->bytes.per_sample != 0 || loss->bytes.fixed != sizeof value ||
      loss->offset.per_sample != 0)
    return NULL;
  memcpy(&value, (const char *)result->data + loss->offset.fixed, sizeof value);
  PLANC_TRY(check_loss(e, (double)value));
  return rt_losses_add(&e->jobs[result->job].losses, result->iteration, (double)value);
}

static planc_status start_jobs(rt_execution *e) {
  e->jobs = calloc((size_t)e->plan->n_jobs, sizeof *e->jobs);
  if (!e->jobs) return planc_error(PLANC_OUT_OF_MEMORY, "jobs");
  for (int32_t j = 0; j < e->plan->n_jobs; j++) {
    e->jobs[j].accuracy = NAN;
    PLANC_TRY(rt_losses_start(&e->jobs[j].losses, e->plan->jobs[j].iterations, e->json));
  }
  return NULL;
}

/* --- Changing plans --------------------------------------------------------------------------------------------- */

static void go_on(planc_status status) {
  if (status) pl_print_line(stderr, "planrun: note: %s: the run goes on as before", planc_status_message(status));
  planc_status_free(status);
}

static bool look_for_plan(void *user) {
  rt_execution *e = user;
  go_on(rt_watch_look(&e->watch, e->session, &e->next));
  return e->next != NULL;
}

static planc_status bind_data(const rt_execution *e, const planc_plan *plan) {
  for (int32_t j = 0; j < plan->n_jobs; j++)
    if (e->jobs[j].data)
      PLANC_TRY(planc_context(planrt_data_bind(e->jobs[j].data, j, &plan->jobs[j]), "%s", e->jobs[j].data_path));
  return NULL;
}

/* A plan that cannot be opened is left, and the run goes on; without any plan it cannot. */
static planc_status adopt(rt_execution *e) {
  planc_plan *next = e->next;
  e->next = NULL;
  planc_status status = planc_context(planrt_adopt(&e->session, next), "%s", e->watch.path);
  if (status) {
    planc_plan_free(next);
    if (!planrt_can_run(e->session)) return status;
    go_on(status);
    return NULL;
  }
  status = bind_data(e, next);
  planc_plan_free(e->plan);
  e->plan = next;
  e->periods = 0;
  e->adopted++;
  char text[PL_SIZE_TEXT];
  pl_print_line(stderr, "planrun: note: iteration %lld: changed to %s, policy %s in %s",
                (long long)rt_execution_done(e), e->watch.path, next->policy,
                pl_size_format(planrt_report(e->session)->peak_bytes[PLANC_MEMORY_DEVICE], text));
  return status;
}

/* --- Opening ---------------------------------------------------------------------------------------------------- */

static bool classifies(const planc_graph *graph) {
  for (int32_t o = 0; o < graph->n_ops; o++)
    if (pl_optype_of(&graph->ops[o]) == PL_OPTYPE_softmax_xent) return true;
  return false;
}

/* In how many periods a job goes through its data. */
static int64_t periods_of_data(const rt_execution *e, int32_t job) {
  int64_t per_period = e->plan->jobs[job].iterations;
  return (planrt_data_iterations(e->jobs[job].data) + per_period - 1) / per_period;
}

/* How many iterations an epoch has. Without data all of them are one; of several jobs it ends where each has gone
 * through its data, which those with fewer batches then have begun again. */
static int64_t count_epoch(const rt_execution *e) {
  int64_t most = 0;
  if (!e->has_data) return e->iterations;
  if (e->plan->n_jobs == 1) return planrt_data_iterations(e->jobs->data);
  for (int32_t j = 0; j < e->plan->n_jobs; j++)
    if (e->jobs[j].data && periods_of_data(e, j) > most) most = periods_of_data(e, j);
  return most * rt_execution_per_period(e);
}

static void count_iterations(rt_execution *e) {
  bool given = e->iterations != RT_WHOLE_EPOCHS;
  e->per_epoch = count_epoch(e);
  e->in_all = given ? e->iterations : e->epochs * e->per_epoch;
}

static planc_status open_data(rt_execution *e);
static planc_status open_session(rt_execution *e);
static void note_streams(const rt_execution *e);
static planc_status note_foreign(const rt_execution *e);
static planc_status resume(rt_execution *e);

planc_status rt_execution_open(rt_execution *e) {
  e->options.user = e;
  e->options.sink = take_result;
  if (e->watch.path) e->options.pause = look_for_plan;
  PLANC_TRY(start_jobs(e));
  PLANC_TRY(open_data(e));
  count_iterations(e);
  PLANC_TRY(open_session(e));
  note_streams(e);
  PLANC_TRY(note_foreign(e));
  return e->resume ? resume(e) : planrt_init(e->session);
}

static planc_status read_data(rt_execution *e, const char *value) {
  int32_t job;
  const char *path = rt_execution_data_file(value, &job);
  if (job < 0 && e->plan->n_jobs > 1)
    return planc_error(PLANC_USAGE, "--data: %s has %d jobs: say whose data it is, --data 0:%s", e->path,
                       e->plan->n_jobs, path);
  if (job < 0) job = 0;
  if (job >= e->plan->n_jobs) return planc_error(PLANC_USAGE, "--data: %s has no job %d", e->path, job);
  if (e->jobs[job].data) return planc_error(PLANC_USAGE, "--data: job %d has data already", job);
  e->jobs[job].data_path = path;
  PLANC_TRY(planrt_data_read(path, e->options.seed, &e->jobs[job].data));
  e->options.evaluate |= classifies(e->plan->jobs[job].graph) && planrt_data_held_out(e->jobs[job].data) > 0;
  return NULL;
}

static planc_status open_data(rt_execution *e) {
  const char *value;
  if (!e->has_data) return NULL;
  for (int32_t i = 0; (value = pl_option_repeated(e->arguments, "data", i)) != NULL; i++)
    PLANC_TRY(read_data(e, value));
  e->options.feed = feed_data;
  return bind_data(e, e->plan);
}

/* No plan knows how many queues a device has. */
static void note_streams(const rt_execution *e) {
  int32_t streams, queues;
  planrt_streams_of(e->session, &streams, &queues);
  if (streams <= queues) return;
  pl_print_line(stderr,
                "planrun: note: the run has %d streams, and the device %d hardware queues: some wait for each other; "
                "CUDA_DEVICE_MAX_CONNECTIONS gives it up to 32",
                streams, queues);
}

/* A plan made from a description, say, names algorithms that no library has. */
static planc_status note_foreign(const rt_execution *e) {
  enum { MOST = 4 };
  rt_names names = {0};
  char text[256] = "";
  size_t length = 0;
  planc_status status = rt_foreign_find(e->session, &names);
  for (int64_t i = 0; i < names.len && i < MOST && length < sizeof text; i++)
    length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", i == 0 ? "" : ", ", names.data[i]);
  if (!status && names.len > 0)
    pl_print_line(stderr,
                  "planrun: note: backend %s does not have the plan's algorithms %s%s: plain ones stand in, which may "
                  "take far longer; a profile of planrun profile has its own to plan with",
                  e->options.backend ? e->options.backend->name : "host", text, names.len > MOST ? ", ..." : "");
  VEC_FREE(&names);
  return status;
}

/* Iterations count from the start of training, those before the checkpoint included. */
static bool is_any_left(const rt_execution *e) {
  return e->begun < e->in_all;
}

/* Whoever forgets --data goes on with noise, where samples have been taken, or will be. */
static void note_other_samples(const rt_execution *e) {
  bool taken = e->has_data ? e->begun > 0 : is_any_left(e);
  if (!taken || !planrt_resumed_other_feed(e->session)) return;
  pl_print_line(stderr,
                e->has_data ? "planrun: note: %s is of a run without --data: up to iteration %lld it has trained on "
                              "pseudo-random samples"
                            : "planrun: note: %s is of a run with --data: from iteration %lld on it trains on "
                              "pseudo-random samples",
                e->resume, (long long)e->begun);
}

static planc_status resume(rt_execution *e) {
  PLANC_TRY(planrt_resume(e->session, e->resume));
  for (int32_t j = 0; j < e->plan->n_jobs; j++)
    if (e->jobs[j].data) planrt_data_reseed(e->jobs[j].data, planrt_seed(e->session));
  e->begun = rt_execution_done(e);
  note_other_samples(e);
  return NULL;
}

/* Filling memory takes a while where a plan stands for thousands of GPUs: who waits is told how much it is. */
static planc_status open_session(rt_execution *e) {
  char device[PL_SIZE_TEXT], host[PL_SIZE_TEXT];
  pl_progress(stderr, "%s: taking %s of device memory and %s of the host's", e->path,
              pl_size_format(rt_arenas(e->plan, PLANC_MEMORY_DEVICE), device),
              pl_size_format(rt_arenas(e->plan, PLANC_MEMORY_HOST), host));
  planc_status status = planrt_session_new(e->plan, &e->options, &e->session);
  pl_progress_end(stderr);
  return planc_context(status, "%s", e->path);
}

/* --- Running ---------------------------------------------------------------------------------------------------- */

static void note_what_is_left(const rt_execution *e);
static bool is_none_left(const rt_execution *e);
static planc_status run_epoch(rt_execution *e, int64_t epoch);
static bool is_any_whole(const rt_execution *e);
static planc_status write_trace(const rt_execution *e);
static planc_status judge(rt_execution *e);

planc_status rt_execution_run(rt_execution *e) {
  note_what_is_left(e);
  int64_t epoch = e->per_epoch > 0 ? e->begun / e->per_epoch : 0;
  bool none_left = is_none_left(e);
  if (none_left && e->save) PLANC_TRY(planrt_save(e->session, e->save));
  if (!none_left) {
    do PLANC_TRY(run_epoch(e, epoch++));
    while (rt_execution_done(e) < e->in_all && is_any_whole(e) && !rt_execution_stopped(e));
  }
  PLANC_TRY(write_trace(e));
  return judge(e);
}

static bool is_any_whole(const rt_execution *e) {
  planrt_failure failure;
  for (int32_t j = 0; j < e->plan->n_jobs; j++)
    if (!planrt_failed(e->session, j, &failure)) return true;
  return false;
}

/* Runs so many periods, with a plan or with several. */
static planc_status run_periods(rt_execution *e, int64_t periods, int64_t epoch) {
  int64_t left = periods;
  do {
    if (e->next) PLANC_TRY(adopt(e));
    int64_t before = planrt_get_step(e->session).period, begin_ns = pl_now_ns();
    PLANC_TRY(e->interleave >= 0 ? planrt_run_interleaved(e->session, left, (uint64_t)(e->interleave + epoch))
                                 : planrt_run(e->session, left));
    e->run_ns += pl_now_ns() - begin_ns;
    int64_t done = planrt_get_step(e->session).period - before;
    e->periods += done;
    left -= done;
  } while (e->next && left > 0 && is_any_whole(e) && !rt_execution_stopped(e));
  return NULL;
}

/* Told once, at the end of the epoch. */
static void note_not_finite(const rt_execution *e, int64_t before) {
  for (int32_t j = 0; j < e->plan->n_jobs; j++) {
    const rt_losses *losses = &e->jobs[j].losses;
    if (losses->not_finite < before * e->plan->jobs[j].iterations) continue;
    pl_print_line(stderr, "planrun: note: %s: the loss of iteration %lld is %s, the first that is no finite number",
                  e->plan->jobs[j].graph->name, (long long)losses->not_finite,
                  isnan(losses->not_finite_was) ? "nan" : "infinite");
  }
}

/* Data has epochs, which of several jobs none has to itself. What a run ends with may be a part of one. */
static void print_epoch(const rt_execution *e, int64_t epoch) {
  char text[RT_LOSS_TEXT];
  const rt_losses *losses = &e->jobs->losses;
  bool told = e->has_data && e->plan->n_jobs == 1;
  if (told && rt_execution_done(e) >= (epoch + 1) * e->per_epoch && losses->n > 0)
    printf("epoch %lld: loss %s\n", (long long)epoch + 1, rt_execution_loss(losses->mean, text));
  fflush(stdout);
}

/* Of an iteration in which a job fails some rounds may have given their part. */
static planc_status end_losses(rt_execution *e) {
  for (int32_t j = 0; j < e->plan->n_jobs; j++) {
    planrt_failure failure;
    bool failed = planrt_failed(e->session, j, &failure);
    PLANC_TRY(rt_losses_end(&e->jobs[j].losses, failed ? failure.iteration : INT64_MAX));
  }
  return NULL;
}

/* Runs up to the end of epoch `epoch`, or of all iterations, in whole periods: what an epoch runs too much the next one
 * runs less. */
static planc_status run_epoch(rt_execution *e, int64_t epoch) {
  int64_t per_period = rt_execution_per_period(e), before = planrt_get_step(e->session).period;
  int64_t end = (epoch + 1) * e->per_epoch;
  int64_t left = (end < e->in_all ? end : e->in_all) - rt_execution_done(e);
  int64_t periods = left > 0 ? (left + per_period - 1) / per_period : 0;
  for (int32_t j = 0; j < e->plan->n_jobs; j++) rt_losses_begin(&e->jobs[j].losses);
  PLANC_TRY(run_periods(e, periods, epoch));
  PLANC_TRY(end_losses(e));
  if (e->save) PLANC_TRY(planrt_save(e->session, e->save));
  note_not_finite(e, before);
  if (planrt_get_step(e->session).period > before) print_epoch(e, epoch);
  return NULL;
}

/* A run that nothing comes before has its prologue and epilogue, however few its iterations are. */
static bool is_none_left(const rt_execution *e) {
  return e->begun > 0 && !is_any_left(e);
}

static void note_what_is_left(const rt_execution *e) {
  if (!is_none_left(e)) return;
  pl_print_line(stderr,
                "planrun: note: the checkpoint is of iteration %lld, and %lld in all are asked for: none is left",
                (long long)e->begun, (long long)e->in_all);
}

/* Where nothing has run with the plan there is nothing to write: a file that is there already is of another run. */
static planc_status write_trace(const rt_execution *e) {
  if (!e->trace) return NULL;
  if (e->periods > 0) return planrt_timeline_write(e->session, e->trace);
  pl_print_line(stderr, "planrun: note: no period has run with the plan: %s is not written", e->trace);
  return NULL;
}

static bool is_judged(const rt_execution *e, int32_t job) {
  const planrt_data *data = e->jobs[job].data;
  planrt_failure failure;
  return data && classifies(e->plan->jobs[job].graph) && planrt_data_held_out(data) > 0 &&
         !planrt_failed(e->session, job, &failure);
}

/* What a job has trained, on what its data holds out. */
static planc_status judge_job(rt_execution *e, int32_t job) {
  rt_execution_job *of = &e->jobs[job];
  if (!is_judged(e, job)) return NULL;
  planc_status status = planrt_evaluate(e->session, job, planrt_data_feed_held_out, of->data,
                                        planrt_data_held_out(of->data), &of->accuracy);
  if (planc_status_code(status) != PLANC_INFEASIBLE) return status;
  pl_print_line(stderr, "planrun: note: %s: the accuracy is not known", planc_status_message(status));
  planc_status_free(status);
  return NULL;
}

static planc_status judge(rt_execution *e) {
  for (int32_t j = 0; j < e->plan->n_jobs; j++) PLANC_TRY(judge_job(e, j));
  return NULL;
}

/* --- Closing ---------------------------------------------------------------------------------------------------- */

void rt_execution_close(rt_execution *e) {
  planrt_session_free(e->session);
  for (int32_t j = 0; e->jobs && j < e->plan->n_jobs; j++) {
    planrt_data_free(e->jobs[j].data);
    rt_losses_free(&e->jobs[j].losses);
  }
  free(e->jobs);
  planc_plan_free(e->next);
  planc_plan_free(e->plan);
}
