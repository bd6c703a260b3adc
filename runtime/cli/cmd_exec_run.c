/* `planrun exec`: the run (cmd_exec.h), from the session's opening over its epochs to what it writes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/optypes.h"
#include "program/print.h"
#include "program/progress.h"
#include "runtime/cli/cmd_exec.h"
#include "runtime/foreign.h"
#include "runtime/room.h"
#include "util/clock.h"
#include "util/math.h"
#include "util/size.h"

/* --- Opening and closing ------------------------------------------------------------------------------------------ */

static planc_status open_session(run_execution *e);
static void note_whole_periods(const run_execution *e);
static void note_streams(const run_execution *e);
static planc_status note_foreign(const run_execution *e);
static planc_status take_result(void *user, const planrt_result *result);
static void begin_resumed(run_execution *e);

planc_status run_execution_open(run_execution *e) {
  e->options.user = e;
  e->options.sink = take_result;
  if (e->watch.path) e->options.pause = run_execution_look;
  PLANC_TRY(run_execution_read_data(e));
  PLANC_TRY(run_execution_read_hand_ons(e));
  PLANC_TRY(open_session(e));
  note_streams(e);
  PLANC_TRY(note_foreign(e));
  PLANC_TRY(e->resume ? planrt_resume(e->session, e->resume) : planrt_init(e->session));
  PLANC_TRY(run_execution_place_jobs(e));
  PLANC_TRY(run_execution_give_data(e));
  PLANC_TRY(run_execution_begin_hand_on(e));
  if (e->resume) begin_resumed(e);
  if (e->iterations != RUN_WHOLE_EPOCHS) note_whole_periods(e);
  return NULL;
}

/* Filling memory takes a while where a plan stands for thousands of GPUs: who waits is told how much it is. */
static planc_status open_session(run_execution *e) {
  char device[PL_SIZE_TEXT], host[PL_SIZE_TEXT];
  prog_progress(stderr, "%s: taking %s of device memory and %s of the host's", e->path,
                pl_size_format(rt_arenas(e->plan, PLANC_MEMORY_DEVICE), device),
                pl_size_format(rt_arenas(e->plan, PLANC_MEMORY_HOST), host));
  planc_status status = planrt_session_new(e->plan, &e->options, &e->session);
  prog_progress_end(stderr);
  return planc_context(status, "%s", e->path);
}

/* Where no job comes to just as many as were asked for. */
static void note_whole_periods(const run_execution *e) {
  int64_t periods = run_execution_periods_left(e), fewest = INT64_MAX;
  if (periods == 0) return;
  for (int32_t j = 0; j < e->plan->n_jobs; j++) {
    int64_t done = run_execution_job_at(e, j).iterations;
    int64_t more = pl_mul_saturate(periods, e->plan->jobs[j].iterations), all = pl_add_saturate(done, more);
    if (all < fewest) fewest = all;
  }
  if (fewest <= e->iterations) return;
  prog_print_line(stderr, "planrun: note: a run is of whole periods: it ends after %s%lld iterations, not %lld",
                  e->plan->n_jobs > 1 ? "at least " : "", (long long)fewest, (long long)e->iterations);
}

/* No plan knows how many queues a device has. */
static void note_streams(const run_execution *e) {
  int32_t streams, queues;
  planrt_streams_of(e->session, &streams, &queues);
  if (streams <= queues) return;
  prog_print_line(stderr,
                  "planrun: note: the run has %d streams, and the device %d hardware queues: some wait for each other; "
                  "CUDA_DEVICE_MAX_CONNECTIONS gives it up to 32",
                  streams, queues);
}

/* A plan made from a description, say, names algorithms that no library has. */
static planc_status note_foreign(const run_execution *e) {
  enum { MOST = 4 };
  rt_names names = {0};
  char text[256] = "";
  size_t length = 0;
  planc_status status = rt_foreign_find(e->session, &names);
  for (int64_t i = 0; i < names.len && i < MOST && length < sizeof text; i++)
    length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", i == 0 ? "" : ", ", names.data[i]);
  if (!status && names.len > 0)
    prog_print_line(
        stderr,
        "planrun: note: backend %s does not have the plan's algorithms %s%s: plain ones stand in, which may "
        "take far longer; a profile of planrun profile has its own to plan with",
        e->options.backend ? e->options.backend->name : "host", text, names.len > MOST ? ", ..." : "");
  VEC_FREE(&names);
  return status;
}

void run_execution_close(run_execution *e) {
  planrt_session_free(e->session);
  for (int64_t d = 0; d < e->data.len; d++) planrt_data_free(e->data.data[d].data);
  for (int64_t n = 0; n < e->jobs.len; n++) run_losses_free(&e->jobs.data[n].losses);
  run_execution_free_hand_ons(e);
  VEC_FREE(&e->data);
  VEC_FREE(&e->jobs);
  planc_plan_free(e->next);
  planc_plan_free(e->plan);
}

/* --- What comes out ----------------------------------------------------------------------------------------------- */

static planc_status check_loss(const run_execution *e, double loss) {
  char text[RUN_LOSS_TEXT];
  if (!e->check_nan || isfinite(loss)) return NULL;
  return planc_error(PLANC_JOB_FAILED, "the loss is %s", run_execution_loss(loss, text));
}

/* A loss is that of all replicas, an f32 number; stand-ins and bare runs have none. */
static planc_status take_result(void *user, const planrt_result *result) {
  run_execution *e = user;
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
  return run_losses_add(&run_execution_of(e, result->job)->losses, result->iteration, (double)value);
}

/* --- Going on from a checkpoint ----------------------------------------------------------------------------------- */

/* Whoever forgets --data goes on with noise, where samples have been taken, or will be. */
static void note_other_samples(const run_execution *e, int32_t j) {
  bool has_data = run_execution_of(e, j)->data != NULL;
  planrt_job job = run_execution_job_at(e, j);
  bool taken = has_data ? job.iterations > 0 : run_execution_periods_left(e) > 0;
  planrt_samples before = planrt_resumed_samples(e->session, j);
  if (!taken || before != (has_data ? PLANRT_SAMPLES_RANDOM : PLANRT_SAMPLES_USER)) return;
  char whose[96] = "it";
  if (e->plan->n_jobs > 1)
    (void)snprintf(whose, sizeof whose, "job %d (%s)", planrt_job_number(e->session, j), run_execution_name(&job));
  prog_print_line(stderr,
                  has_data ? "planrun: note: %s is of a run without --data%s: up to iteration %lld %s has trained on "
                             "pseudo-random samples"
                           : "planrun: note: %s is of a run with --data%s: from iteration %lld on %s trains on "
                             "pseudo-random samples",
                  e->resume, e->plan->n_jobs > 1 ? " of that job" : "", (long long)job.iterations, whose);
}

/* Whose epochs are counted, where not all jobs have them. */
static void note_epochs(const run_execution *e) {
  for (int32_t j = 0; e->iterations == RUN_WHOLE_EPOCHS && e->jobs.len > 1 && j < e->plan->n_jobs; j++) {
    int64_t end = e->epochs * run_execution_per_epoch(e, j);
    planrt_job job = run_execution_job_at(e, j);
    if (end == 0 || job.why) continue;
    prog_print_line(
        stderr,
        "planrun: note: the epochs of job %d (%s) count: it is at iteration %lld, and %lld of them end with "
        "iteration %lld",
        planrt_job_number(e->session, j), run_execution_name(&job), (long long)job.iterations, (long long)e->epochs,
        (long long)end);
  }
}

static void begin_resumed(run_execution *e) {
  for (int64_t d = 0; d < e->data.len; d++) planrt_data_reseed(e->data.data[d].data, planrt_seed(e->session));
  e->begun = run_execution_done(e);
  for (int32_t n = 0; n < e->jobs.len; n++) e->jobs.data[n].failed_before = planrt_job_of(e->session, n).why != NULL;
  run_execution_note_resumed(e);
  for (int32_t j = 0; j < e->plan->n_jobs; j++) note_other_samples(e, j);
  note_epochs(e);
}

/* --- Running ------------------------------------------------------------------------------------------------------ */

static void note_unused_data(const run_execution *e);
static bool is_any_whole(const run_execution *e);
static planc_status run_epoch(run_execution *e);
static bool is_none_left(const run_execution *e);
static void note_what_is_left(const run_execution *e);
static void note_what_never_came(const run_execution *e);
static planc_status write_trace(const run_execution *e);
static planc_status judge(run_execution *e);
static planc_status judge_job(run_execution *e, int32_t job);
static bool is_judged(const run_execution *e, int32_t job);
static bool classifies(const planc_graph *graph);

planc_status run_execution_run(run_execution *e) {
  note_what_is_left(e);
  bool none_left = is_none_left(e);
  if (none_left && e->save) PLANC_TRY(planrt_save(e->session, e->save));
  if (!none_left) {
    do PLANC_TRY(run_epoch(e));
    while (run_execution_periods_left(e) > 0 && is_any_whole(e) && !run_execution_stopped(e));
  }
  note_unused_data(e);
  note_what_never_came(e);
  PLANC_TRY(write_trace(e));
  return judge(e);
}

/* Of a job that was to come, and that no plan has had. */
static void note_unused_data(const run_execution *e) {
  for (int64_t d = 0; d < e->data.len; d++) {
    const run_execution_data *of = &e->data.data[d];
    if (!of->is_used)
      prog_print_line(stderr, "planrun: note: --data: no job called %.*s has come: %s was not used",
                      (int)of->whose.length, of->whose.name, of->path);
  }
}

static bool is_any_whole(const run_execution *e) {
  planrt_failure failure;
  for (int32_t j = 0; j < e->plan->n_jobs; j++)
    if (!planrt_failed(e->session, j, &failure)) return true;
  return false;
}

/* Runs to the end of the epoch, with a plan or with several, or in parts between which jobs hand on parameters. */
static planc_status run_periods(run_execution *e) {
  int64_t left;
  do {
    if (e->next) PLANC_TRY(run_execution_adopt(e));
    int64_t before = planrt_get_step(e->session).period, start_ns = pl_now_ns();
    left = run_execution_periods_of_epoch(e);
    int64_t part = pl_min(left, run_execution_periods_to_hand_on(e));
    PLANC_TRY(e->interleave >= 0 ? planrt_run_interleaved(e->session, part, (uint64_t)e->interleave + (uint64_t)before)
                                 : planrt_run(e->session, part));
    e->run_ns += pl_now_ns() - start_ns;
    int64_t done = planrt_get_step(e->session).period - before;
    e->periods += done;
    e->all_periods += done;
    left -= done;
    if (done > 0) PLANC_TRY(run_execution_hand_on(e));
  } while ((e->next || e->hand_ons.len > 0) && left > 0 && is_any_whole(e) && !run_execution_stopped(e));
  return NULL;
}

/* Runs up to the end of an epoch, or of all iterations, in whole periods: what an epoch runs too much the next one
 * runs less. */
static planc_status run_epoch(run_execution *e) {
  int64_t epoch = run_execution_epochs_done(e) + 1, before = planrt_get_step(e->session).period;
  run_execution_begin_epoch(e);
  PLANC_TRY(run_periods(e));
  PLANC_TRY(run_execution_end_losses(e));
  if (e->save) PLANC_TRY(planrt_save(e->session, e->save));
  run_execution_tell_epoch(e, planrt_get_step(e->session).period > before ? epoch : 0);
  return NULL;
}

/* A run that nothing comes before has its prologue and epilogue, however few its iterations are. */
static bool is_none_left(const run_execution *e) {
  return e->begun > 0 && e->all_periods == 0 && run_execution_periods_left(e) == 0;
}

/* Of several jobs note_epochs has told what is asked for. */
static void note_what_is_left(const run_execution *e) {
  if (!is_none_left(e)) return;
  if (e->iterations == RUN_WHOLE_EPOCHS && e->jobs.len > 1) {
    prog_print_line(stderr, "planrun: note: none of the iterations that are asked for is left");
    return;
  }
  prog_print_line(
      stderr, "planrun: note: the checkpoint is of iteration %lld%s, and %lld in all are asked for: none is left",
      (long long)e->begun, e->jobs.len > 1 ? " of every job, or a later one" : "",
      (long long)(e->iterations == RUN_WHOLE_EPOCHS ? e->epochs * run_execution_per_epoch(e, 0) : e->iterations));
}

/* A path that is misspelt looks like one to which nothing has come. */
static void note_what_never_came(const run_execution *e) {
  if (e->watch.path && !e->watch.was_there)
    prog_print_line(stderr, "planrun: note: %s: there was no such file at any time", e->watch.path);
}

/* Where nothing has run with the plan there is nothing to write: a file that is there already is of another run. */
static planc_status write_trace(const run_execution *e) {
  if (!e->trace) return NULL;
  if (e->periods > 0) return planrt_timeline_write(e->session, e->trace);
  prog_print_line(stderr, "planrun: note: no period has run with the plan: %s is not written", e->trace);
  return NULL;
}

static planc_status judge(run_execution *e) {
  for (int32_t j = 0; j < e->plan->n_jobs; j++) PLANC_TRY(judge_job(e, j));
  return NULL;
}

/* What a job has trained, on what its data holds out. */
static planc_status judge_job(run_execution *e, int32_t job) {
  run_execution_job *of = run_execution_of(e, job);
  if (!is_judged(e, job)) return NULL;
  planc_status status = planrt_evaluate(e->session, job, planrt_data_feed_held_out, of->data,
                                        planrt_data_held_out(of->data), &of->accuracy);
  if (planc_status_code(status) != PLANC_INFEASIBLE) return status;
  prog_print_line(stderr, "planrun: note: %s: the accuracy is not known", planc_status_message(status));
  planc_status_free(status);
  return NULL;
}

static bool is_judged(const run_execution *e, int32_t job) {
  const planrt_data *data = run_execution_of(e, job)->data;
  planrt_failure failure;
  return data && classifies(e->plan->jobs[job].graph) && planrt_data_held_out(data) > 0 &&
         !planrt_failed(e->session, job, &failure);
}

static bool classifies(const planc_graph *graph) {
  for (int32_t o = 0; o < graph->n_ops; o++)
    if (pl_optype_of(&graph->ops[o]) == PL_OPTYPE_softmax_xent) return true;
  return false;
}
