/* `planrun exec`: the run (cmd_exec.h), from the session's opening over epochs of whole periods to what it writes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/optypes.h"
#include "runtime/backend.h"
#include "runtime/cli/cmd_exec.h"
#include "runtime/foreign.h"
#include "runtime/room.h"
#include "util/clock.h"
#include "util/print.h"
#include "util/progress.h"
#include "util/size.h"

/* --- Opening ---------------------------------------------------------------------------------------------------- */

static planc_status take_result(void *user, const planrt_result *result);
static planc_status open_session(rt_execution *e);
static void note_streams(const rt_execution *e);
static planc_status note_foreign(const rt_execution *e);
static void begin_resumed(rt_execution *e);

planc_status rt_execution_open(rt_execution *e) {
  e->options.user = e;
  e->options.sink = take_result;
  if (e->watch.path) e->options.pause = rt_execution_look;
  PLANC_TRY(rt_execution_read_data(e));
  PLANC_TRY(open_session(e));
  note_streams(e);
  PLANC_TRY(note_foreign(e));
  PLANC_TRY(e->resume ? planrt_resume(e->session, e->resume) : planrt_init(e->session));
  PLANC_TRY(rt_execution_place_jobs(e));
  PLANC_TRY(rt_execution_hand_data(e));
  if (e->resume) begin_resumed(e);
  return NULL;
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

/* --- What comes out ---------------------------------------------------------------------------------------------- */

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
  return rt_losses_add(&rt_execution_of(e, result->job)->losses, result->iteration, (double)value);
}

/* --- How far it is ---------------------------------------------------------------------------------------------- */

/* How many periods it takes a job of the plan to have done so many iterations. */
static int64_t periods_to(const rt_execution *e, int32_t row, int64_t end) {
  int64_t left = end - rt_execution_job_at(e, row).iterations, per_period = e->plan->jobs[row].iterations;
  return left > 0 ? left / per_period + (left % per_period != 0) : 0;
}

/* How many iterations an epoch of a job has; 0: it has no data. */
static int64_t per_epoch(const rt_execution *e, int32_t row) {
  const planrt_data *data = rt_execution_of(e, row)->data;
  return data ? planrt_data_iterations(data) : 0;
}

/* Until every job that has data has gone through it so often. */
static int64_t periods_to_epochs(const rt_execution *e, int64_t epochs) {
  int64_t most = 0;
  for (int32_t j = 0; j < e->plan->n_jobs; j++) {
    int64_t periods = periods_to(e, j, epochs * per_epoch(e, j));
    if (periods > most) most = periods;
  }
  return most;
}

/* Until every job has done so many iterations. */
static int64_t periods_to_iterations(const rt_execution *e, int64_t iterations) {
  int64_t most = 0;
  for (int32_t j = 0; j < e->plan->n_jobs; j++) {
    int64_t periods = periods_to(e, j, iterations);
    if (periods > most) most = periods;
  }
  return most;
}

/* How often every job that has data has gone through it. */
static int64_t epochs_done(const rt_execution *e) {
  int64_t fewest = INT64_MAX;
  for (int32_t j = 0; j < e->plan->n_jobs; j++) {
    int64_t epoch = per_epoch(e, j);
    if (epoch == 0) continue;
    int64_t epochs = rt_execution_job_at(e, j).iterations / epoch;
    if (epochs < fewest) fewest = epochs;
  }
  return fewest == INT64_MAX ? 0 : fewest;
}

/* Until the end of all that was asked for. Iterations count from the start of each job's training, those before the
 * checkpoint included. */
static int64_t periods_left(const rt_execution *e) {
  return e->iterations == RT_WHOLE_EPOCHS ? periods_to_epochs(e, e->epochs) : periods_to_iterations(e, e->iterations);
}

/* Until the end of the epoch as well. Without data all is one. */
static int64_t periods_of_epoch(const rt_execution *e) {
  int64_t all = periods_left(e), epoch = e->has_data ? periods_to_epochs(e, epochs_done(e) + 1) : all;
  return epoch > 0 && epoch < all ? epoch : all;
}

/* --- Going on from a checkpoint --------------------------------------------------------------------------------- */

/* Whoever forgets --data goes on with noise, where samples have been taken, or will be. */
static void note_other_samples(const rt_execution *e) {
  bool taken = e->has_data ? e->begun > 0 : periods_left(e) > 0;
  if (!taken || !planrt_resumed_other_feed(e->session)) return;
  pl_print_line(stderr,
                e->has_data ? "planrun: note: %s is of a run without --data: up to iteration %lld it has trained on "
                              "pseudo-random samples"
                            : "planrun: note: %s is of a run with --data: from iteration %lld on it trains on "
                              "pseudo-random samples",
                e->resume, (long long)e->begun);
}

static void begin_resumed(rt_execution *e) {
  for (int64_t d = 0; d < e->data.len; d++) planrt_data_reseed(e->data.data[d].data, planrt_seed(e->session));
  e->begun = rt_execution_done(e);
  rt_execution_note_resumed(e);
  note_other_samples(e);
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
static planc_status run_epoch(rt_execution *e);
static bool is_any_whole(const rt_execution *e);
static planc_status write_trace(const rt_execution *e);
static planc_status judge(rt_execution *e);

planc_status rt_execution_run(rt_execution *e) {
  note_what_is_left(e);
  bool none_left = is_none_left(e);
  if (none_left && e->save) PLANC_TRY(planrt_save(e->session, e->save));
  if (!none_left) {
    do PLANC_TRY(run_epoch(e));
    while (periods_left(e) > 0 && is_any_whole(e) && !rt_execution_stopped(e));
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

/* Runs to the end of the epoch, with a plan or with several. */
static planc_status run_periods(rt_execution *e, int64_t epoch) {
  int64_t left;
  do {
    if (e->next) PLANC_TRY(rt_execution_adopt(e));
    int64_t before = planrt_get_step(e->session).period, begin_ns = pl_now_ns();
    left = periods_of_epoch(e);
    PLANC_TRY(e->interleave >= 0 ? planrt_run_interleaved(e->session, left, (uint64_t)(e->interleave + epoch))
                                 : planrt_run(e->session, left));
    e->run_ns += pl_now_ns() - begin_ns;
    int64_t done = planrt_get_step(e->session).period - before;
    e->periods += done;
    e->all_periods += done;
    left -= done;
  } while (e->next && left > 0 && is_any_whole(e) && !rt_execution_stopped(e));
  return NULL;
}

/* Told once, at the end of the epoch. */
static void note_not_finite(const rt_execution *e) {
  for (int64_t n = 0; n < e->jobs.len; n++) {
    const rt_losses *losses = &e->jobs.data[n].losses;
    planrt_job job = planrt_job_of(e->session, (int32_t)n);
    if (losses->not_finite < e->jobs.data[n].epoch_begin) continue;
    pl_print_line(stderr, "planrun: note: %s: the loss of iteration %lld is %s, the first that is no finite number",
                  rt_execution_name(&job), (long long)losses->not_finite,
                  isnan(losses->not_finite_was) ? "nan" : "infinite");
  }
}

/* Data has epochs, which of several jobs none has to itself. What a run ends with may be a part of one. */
static void print_epoch(const rt_execution *e, int64_t epoch) {
  char text[RT_LOSS_TEXT];
  const rt_losses *losses = &e->jobs.data->losses;
  bool told = e->has_data && e->jobs.len == 1;
  if (told && epochs_done(e) >= epoch && losses->n > 0)
    printf("epoch %lld: loss %s\n", (long long)epoch, rt_execution_loss(losses->mean, text));
  fflush(stdout);
}

/* Of an iteration in which a job fails some rounds may have given their part. */
planc_status rt_execution_end_losses(rt_execution *e) {
  for (int32_t j = 0; j < e->plan->n_jobs; j++) {
    planrt_failure failure;
    bool failed = planrt_failed(e->session, j, &failure);
    PLANC_TRY(rt_losses_end(&rt_execution_of(e, j)->losses, failed ? failure.iteration : INT64_MAX));
  }
  return NULL;
}

static void begin_epoch(rt_execution *e) {
  for (int64_t n = 0; n < e->jobs.len; n++) {
    planrt_job job = planrt_job_of(e->session, (int32_t)n);
    e->jobs.data[n].epoch_begin = job.iterations;
    if (job.job >= 0) rt_losses_begin(&e->jobs.data[n].losses);
  }
}

/* Runs up to the end of an epoch, or of all iterations, in whole periods: what an epoch runs too much the next one
 * runs less. */
static planc_status run_epoch(rt_execution *e) {
  int64_t epoch = epochs_done(e) + 1, before = planrt_get_step(e->session).period;
  begin_epoch(e);
  PLANC_TRY(run_periods(e, epoch - 1));
  PLANC_TRY(rt_execution_end_losses(e));
  if (e->save) PLANC_TRY(planrt_save(e->session, e->save));
  note_not_finite(e);
  if (planrt_get_step(e->session).period > before) print_epoch(e, epoch);
  return NULL;
}

/* A run that nothing comes before has its prologue and epilogue, however few its iterations are. */
static bool is_none_left(const rt_execution *e) {
  return e->begun > 0 && e->all_periods == 0 && periods_left(e) == 0;
}

/* How many iterations were asked for: of several jobs with data those of the longest. */
static int64_t iterations_in_all(const rt_execution *e) {
  int64_t most = 0;
  if (e->iterations != RT_WHOLE_EPOCHS) return e->iterations;
  for (int32_t j = 0; j < e->plan->n_jobs; j++)
    if (e->epochs * per_epoch(e, j) > most) most = e->epochs * per_epoch(e, j);
  return most;
}

static void note_what_is_left(const rt_execution *e) {
  if (!is_none_left(e)) return;
  pl_print_line(stderr,
                "planrun: note: the checkpoint is of iteration %lld, and %lld in all are asked for: none is left",
                (long long)e->begun, (long long)iterations_in_all(e));
}

/* Where nothing has run with the plan there is nothing to write: a file that is there already is of another run. */
static planc_status write_trace(const rt_execution *e) {
  if (!e->trace) return NULL;
  if (e->periods > 0) return planrt_timeline_write(e->session, e->trace);
  pl_print_line(stderr, "planrun: note: no period has run with the plan: %s is not written", e->trace);
  return NULL;
}

static bool classifies(const planc_graph *graph) {
  for (int32_t o = 0; o < graph->n_ops; o++)
    if (pl_optype_of(&graph->ops[o]) == PL_OPTYPE_softmax_xent) return true;
  return false;
}

static bool is_judged(const rt_execution *e, int32_t job) {
  const planrt_data *data = rt_execution_of(e, job)->data;
  planrt_failure failure;
  return data && classifies(e->plan->jobs[job].graph) && planrt_data_held_out(data) > 0 &&
         !planrt_failed(e->session, job, &failure);
}

/* What a job has trained, on what its data holds out. */
static planc_status judge_job(rt_execution *e, int32_t job) {
  rt_execution_job *of = rt_execution_of(e, job);
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
  for (int64_t d = 0; d < e->data.len; d++) planrt_data_free(e->data.data[d].data);
  for (int64_t n = 0; n < e->jobs.len; n++) rt_losses_free(&e->jobs.data[n].losses);
  VEC_FREE(&e->data);
  VEC_FREE(&e->jobs);
  planc_plan_free(e->next);
  planc_plan_free(e->plan);
}
