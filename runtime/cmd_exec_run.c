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

/* --- Iterations ------------------------------------------------------------------------------------------------- */

/* --- What comes in and goes out --------------------------------------------------------------------------------- */

static planc_status feed_data(void *user, const planrt_feed_request *request) {
  return planrt_data_feed(((rt_execution *)user)->data, request);
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
  return rt_losses_add(&e->losses[result->job], result->iteration, (double)value);
}

static planc_status start_losses(rt_execution *e) {
  e->losses = calloc((size_t)e->plan->n_jobs, sizeof *e->losses);
  if (!e->losses) return planc_error(PLANC_OUT_OF_MEMORY, "losses");
  for (int32_t j = 0; j < e->plan->n_jobs; j++)
    PLANC_TRY(rt_losses_start(&e->losses[j], e->plan->jobs[j].iterations, e->json));
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

/* Data feeds plans of one job only (open_data). */
static planc_status bind_data(rt_execution *e, const planc_plan *plan) {
  assert(plan->n_jobs == 1);
  return planrt_data_bind(e->data, 0, plan->jobs);
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
  if (e->data) status = bind_data(e, next);
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

/* How many iterations an epoch has, and how many there are in all. Without data all of them are one. */
static void count_iterations(rt_execution *e) {
  bool given = e->iterations != RT_WHOLE_EPOCHS;
  e->per_epoch = e->data ? planrt_data_iterations(e->data) : e->iterations;
  e->in_all = given ? e->iterations : e->epochs * e->per_epoch;
}

static planc_status open_data(rt_execution *e) {
  if (!e->data_path) return NULL;
  if (e->plan->n_jobs > 1)
    return planc_error(PLANC_USAGE, "--data feeds plans of one job, and %s has %d", e->path, e->plan->n_jobs);
  PLANC_TRY(planrt_data_read(e->data_path, e->options.seed, &e->data));
  PLANC_TRY(planc_context(bind_data(e, e->plan), "%s", e->data_path));
  e->options.feed = feed_data;
  e->options.evaluate = classifies(e->plan->jobs->graph) && planrt_data_held_out(e->data) > 0;
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

/* Iterations count from the start of training, those before the checkpoint included. */
static bool is_any_left(const rt_execution *e) {
  return e->begun < e->in_all;
}

/* Whoever forgets --data goes on with noise, where samples have been taken, or will be. */
static void note_other_samples(const rt_execution *e) {
  bool taken = e->data ? e->begun > 0 : is_any_left(e);
  if (!taken || !planrt_resumed_other_feed(e->session)) return;
  pl_print_line(stderr,
                e->data ? "planrun: note: %s is of a run without --data: up to iteration %lld it has trained on "
                          "pseudo-random samples"
                        : "planrun: note: %s is of a run with --data: from iteration %lld on it trains on "
                          "pseudo-random samples",
                e->resume, (long long)e->begun);
}

static planc_status resume(rt_execution *e) {
  PLANC_TRY(planrt_resume(e->session, e->resume));
  if (e->data) planrt_data_reseed(e->data, planrt_seed(e->session));
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

planc_status rt_execution_open(rt_execution *e) {
  e->options.user = e;
  e->options.sink = take_result;
  if (e->watch.path) e->options.pause = look_for_plan;
  PLANC_TRY(open_data(e));
  count_iterations(e);
  PLANC_TRY(open_session(e));
  PLANC_TRY(start_losses(e));
  note_streams(e);
  PLANC_TRY(note_foreign(e));
  return e->resume ? resume(e) : planrt_init(e->session);
}

/* --- Running ---------------------------------------------------------------------------------------------------- */

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
  } while (e->next && left > 0 && !rt_execution_stopped(e));
  return NULL;
}

/* Told once, at the end of the epoch. */
static void note_not_finite(const rt_execution *e, int64_t before) {
  for (int32_t j = 0; j < e->plan->n_jobs; j++) {
    const rt_losses *losses = &e->losses[j];
    if (losses->not_finite < before * e->plan->jobs[j].iterations) continue;
    pl_print_line(stderr, "planrun: note: %s: the loss of iteration %lld is %s, the first that is no finite number",
                  e->plan->jobs[j].graph->name, (long long)losses->not_finite,
                  isnan(losses->not_finite_was) ? "nan" : "infinite");
  }
}

/* Data has epochs, and feeds one job. What a run ends with may be a part of one. */
static void print_epoch(const rt_execution *e, int64_t epoch) {
  char text[RT_LOSS_TEXT];
  if (e->data && rt_execution_done(e) >= (epoch + 1) * e->per_epoch && e->losses->n > 0)
    printf("epoch %lld: loss %s\n", (long long)epoch + 1, rt_execution_loss(e->losses->mean, text));
  fflush(stdout);
}

/* Runs up to the end of epoch `epoch`, or of all iterations, in whole periods: what an epoch runs too much the next one
 * runs less. */
static planc_status run_epoch(rt_execution *e, int64_t epoch) {
  int64_t per_period = rt_execution_per_period(e), before = planrt_get_step(e->session).period;
  int64_t end = (epoch + 1) * e->per_epoch;
  int64_t left = (end < e->in_all ? end : e->in_all) - rt_execution_done(e);
  int64_t periods = left > 0 ? (left + per_period - 1) / per_period : 0;
  for (int32_t j = 0; j < e->plan->n_jobs; j++) rt_losses_begin(&e->losses[j]);
  PLANC_TRY(run_periods(e, periods, epoch));
  for (int32_t j = 0; j < e->plan->n_jobs; j++) PLANC_TRY(rt_losses_end(&e->losses[j]));
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

/* Of what the data's only job has trained. */
static planc_status judge(rt_execution *e) {
  if (!e->options.evaluate) return NULL;
  planc_status status =
      planrt_evaluate(e->session, 0, planrt_data_feed_held_out, e->data, planrt_data_held_out(e->data), &e->accuracy);
  if (planc_status_code(status) != PLANC_INFEASIBLE) return status;
  pl_print_line(stderr, "planrun: note: %s: the accuracy is not known", planc_status_message(status));
  planc_status_free(status);
  return NULL;
}

planc_status rt_execution_run(rt_execution *e) {
  note_what_is_left(e);
  int64_t epoch = e->per_epoch > 0 ? e->begun / e->per_epoch : 0;
  bool none_left = is_none_left(e);
  if (none_left && e->save) PLANC_TRY(planrt_save(e->session, e->save));
  if (!none_left) {
    do PLANC_TRY(run_epoch(e, epoch++));
    while (rt_execution_done(e) < e->in_all && !rt_execution_stopped(e));
  }
  PLANC_TRY(write_trace(e));
  return judge(e);
}

/* --- Closing ---------------------------------------------------------------------------------------------------- */

void rt_execution_close(rt_execution *e) {
  planrt_session_free(e->session);
  planrt_data_free(e->data);
  for (int32_t j = 0; e->losses && j < e->plan->n_jobs; j++) rt_losses_free(&e->losses[j]);
  free(e->losses);
  planc_plan_free(e->next);
  planc_plan_free(e->plan);
}
