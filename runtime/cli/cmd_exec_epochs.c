/* `planrun exec`: how far a run is, in epochs and whole periods, and the losses of an epoch (cmd_exec.h). */
#include <math.h>
#include <stdio.h>

#include "program/print.h"
#include "runtime/cli/cmd_exec.h"

/* --- How far it is ------------------------------------------------------------------------------------------------ */

static int64_t periods_to_epochs(const run_execution *e, int64_t epochs);
static int64_t periods_to_iterations(const run_execution *e, int64_t iterations);

int64_t run_execution_periods_left(const run_execution *e) {
  return e->iterations == RUN_WHOLE_EPOCHS ? periods_to_epochs(e, e->epochs) : periods_to_iterations(e, e->iterations);
}

int64_t run_execution_periods_of_epoch(const run_execution *e) {
  int64_t all = run_execution_periods_left(e), epoch = all;
  if (e->has_data) epoch = periods_to_epochs(e, run_execution_epochs_done(e) + 1);
  return epoch > 0 && epoch < all ? epoch : all;
}

int64_t run_execution_per_epoch(const run_execution *e, int32_t row) {
  const planrt_data *data = run_execution_of(e, row)->data;
  return data ? planrt_data_iterations(data) : 0;
}

int64_t run_execution_epochs_done(const run_execution *e) {
  int64_t fewest = INT64_MAX;
  for (int32_t j = 0; j < e->plan->n_jobs; j++) {
    int64_t epoch = run_execution_per_epoch(e, j);
    if (epoch == 0) continue;
    int64_t epochs = run_execution_job_at(e, j).iterations / epoch;
    if (epochs < fewest) fewest = epochs;
  }
  return fewest == INT64_MAX ? 0 : fewest;
}

/* How many periods it takes a job of the plan to have done so many iterations. One that has failed counts as if it had
 * not, so that a run in parts ends where the run in one does. */
static int64_t periods_to(const run_execution *e, int32_t row, int64_t end) {
  int64_t left = end - run_execution_job_at(e, row).iterations, per_period = e->plan->jobs[row].iterations;
  return left > 0 ? left / per_period + (left % per_period != 0) : 0;
}

/* Until every job that has data has gone through it so often. */
static int64_t periods_to_epochs(const run_execution *e, int64_t epochs) {
  int64_t most = 0;
  for (int32_t j = 0; j < e->plan->n_jobs; j++) {
    int64_t periods = periods_to(e, j, epochs * run_execution_per_epoch(e, j));
    if (periods > most) most = periods;
  }
  return most;
}

/* Until every job has done so many iterations. */
static int64_t periods_to_iterations(const run_execution *e, int64_t iterations) {
  int64_t most = 0;
  for (int32_t j = 0; j < e->plan->n_jobs; j++) {
    int64_t periods = periods_to(e, j, iterations);
    if (periods > most) most = periods;
  }
  return most;
}

/* --- Losses ------------------------------------------------------------------------------------------------------- */

static void note_not_finite(const run_execution *e);
static void print_epoch(const run_execution *e, int64_t epoch);

void run_execution_begin_epoch(run_execution *e) {
  for (int64_t n = 0; n < e->jobs.len; n++) {
    planrt_job job = planrt_job_of(e->session, (int32_t)n);
    e->jobs.data[n].epoch_begin = job.iterations;
    if (job.job >= 0) run_losses_begin(&e->jobs.data[n].losses);
  }
}

/* Of an iteration in which a job fails some rounds may have given their part. */
planc_status run_execution_end_losses(run_execution *e) {
  for (int32_t j = 0; j < e->plan->n_jobs; j++) {
    planrt_failure failure;
    bool failed = planrt_failed(e->session, j, &failure);
    PLANC_TRY(run_losses_end(&run_execution_of(e, j)->losses, failed ? failure.iteration : INT64_MAX));
  }
  return NULL;
}

void run_execution_tell_epoch(const run_execution *e, int64_t epoch) {
  note_not_finite(e);
  if (epoch > 0) print_epoch(e, epoch);
}

/* Told once, at the end of the epoch. */
static void note_not_finite(const run_execution *e) {
  for (int64_t n = 0; n < e->jobs.len; n++) {
    const run_losses *losses = &e->jobs.data[n].losses;
    planrt_job job = planrt_job_of(e->session, (int32_t)n);
    if (losses->not_finite < e->jobs.data[n].epoch_begin) continue;
    char number[32] = "";
    if (e->jobs.len > 1) snprintf(number, sizeof number, "job %lld ", (long long)n);
    prog_print_line(stderr,
                    "planrun: note: %s%s%s%s: the loss of iteration %lld is %s, the first that is no finite number",
                    number, *number ? "(" : "", run_execution_name(&job), *number ? ")" : "",
                    (long long)losses->not_finite, isnan(losses->not_finite_was) ? "nan" : "infinite");
  }
}

/* Data has epochs, which of several jobs none has to itself. What a run ends with may be a part of one. */
static void print_epoch(const run_execution *e, int64_t epoch) {
  char text[RUN_LOSS_TEXT];
  const run_losses *losses = &e->jobs.data->losses;
  bool told = e->has_data && e->jobs.len == 1;
  if (told && run_execution_epochs_done(e) >= epoch && losses->n > 0)
    printf("epoch %lld: loss %s\n", (long long)epoch, run_execution_loss(losses->mean, text));
  fflush(stdout);
}
