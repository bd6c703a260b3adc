/* `planrun exec` between its files: cmd_exec.c has the command line, cmd_exec_run.c the run, cmd_exec_report.c what the
 * run ends with. */
#ifndef PLANRT_CMD_EXEC_H
#define PLANRT_CMD_EXEC_H

#include "planrt/data.h"
#include "planrt/planrt.h"
#include "runtime/losses.h"
#include "runtime/watch.h"

enum { RT_WHOLE_EPOCHS = -1 };

typedef struct rt_execution {
  /* What the command line says; paths that it does not name are NULL. */
  const char *path; /* of the plan that the run begins with */
  const char *data_path, *resume, *save, *trace;
  rt_watch watch; /* its path NULL: nothing is watched */
  planrt_options options;
  int64_t epochs;     /* in all, where iterations are not given */
  int64_t iterations; /* in all; RT_WHOLE_EPOCHS: those of the epochs */
  int64_t interleave; /* the seed, -1 = none */
  bool json;

  /* The run. */
  planc_plan *plan;  /* that it has now */
  planrt_data *data; /* or NULL */
  planrt_session *session;
  planc_plan *next;  /* found by the watch, and to be changed to; or NULL */
  int64_t per_epoch; /* iterations: as many as the data has batches for; without data all */
  int64_t in_all;    /* iterations, those before it included */
  int64_t begun;     /* iterations done before it, as rt_execution_done counts them: those of the checkpoint */
  int64_t adopted;   /* plans changed to */
  int64_t periods;   /* run with the plan */
  rt_losses *losses; /* by job */
  int64_t run_ns;    /* in planrt_run: prologues, bodies, epilogues */
  double accuracy;   /* NaN: not known */
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

/* Reads the data, opens a session for the plan and sets it where the run begins. */
planc_status rt_execution_open(rt_execution *e);
/* Runs all epochs, and writes what is to be written. */
planc_status rt_execution_run(rt_execution *e);
/* After a failure too. */
void rt_execution_close(rt_execution *e);

/* A loss as text, whether it is a finite number or not. */
enum { RT_LOSS_TEXT = 32 };
const char *rt_execution_loss(double loss, char out[RT_LOSS_TEXT]);
/* Prints how the run went. `verified` is false where it differs from the reference. */
planc_status rt_execution_report(const rt_execution *e, bool verified);

#endif
