/* `planrun exec` between its files: cmd_exec.c has the command line, cmd_exec_run.c the run, cmd_exec_report.c what the
 * run ends with. */
#ifndef PLANRT_CMD_EXEC_H
#define PLANRT_CMD_EXEC_H

#include "planrt/data.h"
#include "planrt/planrt.h"
#include "runtime/losses.h"
#include "runtime/planrun.h"
#include "runtime/watch.h"

enum { RT_WHOLE_EPOCHS = -1 };

/* What a run has of each of its plan's jobs. */
typedef struct rt_execution_job {
  const char *data_path;
  planrt_data *data; /* or NULL */
  rt_losses losses;
  double accuracy; /* NaN: not known */
} rt_execution_job;

typedef struct rt_execution {
  /* What the command line says; paths that it does not name are NULL. */
  const char *path; /* of the plan that the run begins with */
  const char *resume, *save, *trace;
  const pl_arguments *arguments;
  rt_watch watch; /* its path NULL: nothing is watched */
  planrt_options options;
  int64_t epochs;     /* in all, where iterations are not given */
  int64_t iterations; /* in all; RT_WHOLE_EPOCHS: those of the epochs */
  int64_t interleave; /* the seed, -1 = none */
  bool json, check_nan;
  bool has_data; /* of a job at least */

  /* The run. */
  planc_plan *plan; /* that it has now */
  rt_execution_job *jobs;
  planrt_session *session;
  planc_plan *next;  /* found by the watch, and to be changed to; or NULL */
  int64_t per_epoch; /* iterations: as many as it takes for every job to go through its data; without data all */
  int64_t in_all;    /* iterations, those before it included */
  int64_t begun;     /* iterations done before it, as rt_execution_done counts them: those of the checkpoint */
  int64_t adopted;   /* plans changed to */
  int64_t periods;   /* run with the plan */
  int64_t run_ns;    /* in planrt_run: prologues, bodies, epilogues */
} rt_execution;

/* The signal that came: the period that runs is the last. */
static inline bool rt_execution_stopped(const rt_execution *e) {
  return *e->options.stop != 0;
}
/* Jobs may have different numbers of iterations in a period. What the command line counts are those of a job with the
 * fewest: every job has then done as many. */
static inline int64_t rt_execution_per_period(const rt_execution *e) {
  int64_t fewest = INT64_MAX;
  for (int32_t j = 0; j < e->plan->n_jobs; j++)
    if (e->plan->jobs[j].iterations < fewest) fewest = e->plan->jobs[j].iterations;
  return fewest;
}
/* How many have been done since training began. */
static inline int64_t rt_execution_done(const rt_execution *e) {
  return planrt_get_step(e->session).period * rt_execution_per_period(e);
}

/* The file of a value of --data, and the number of its job, -1 where it names none. */
const char *rt_execution_data_file(const char *value, int32_t *out_job);
/* Reads the data, opens a session for the plan and sets it where the run begins. */
planc_status rt_execution_open(rt_execution *e);
/* Runs all epochs, and writes what is to be written. */
planc_status rt_execution_run(rt_execution *e);
/* After a failure too. */
void rt_execution_close(rt_execution *e);

/* A loss as text, whether it is a finite number or not. */
enum { RT_LOSS_TEXT = 32 };
const char *rt_execution_loss(double loss, char out[RT_LOSS_TEXT]);
/* JOB_FAILED, saying which jobs have failed, where and why; NULL where none has. */
planc_status rt_execution_failures(const rt_execution *e);
/* Prints how the run went. `verified` is false where it differs from the reference. */
planc_status rt_execution_report(const rt_execution *e, bool verified);

#endif
