/* `planrun exec` between its files: cmd_exec.c has the command line, cmd_exec_data.c whose data there is,
 * cmd_exec_run.c the run, cmd_exec_epochs.c how far it is, cmd_exec_change.c its changes of plans, cmd_exec_hand_on.c
 * what jobs hand on between periods, cmd_exec_report.c what it ends with. */
#ifndef PLANRT_CMD_EXEC_H
#define PLANRT_CMD_EXEC_H

#include "planrt/data.h"
#include "planrt/planrt.h"
#include "runtime/cli/job_key.h"
#include "runtime/cli/losses.h"
#include "runtime/cli/planrun.h"
#include "runtime/cli/watch.h"

enum { RUN_WHOLE_EPOCHS = -1 };

/* Data of the command line. */
typedef struct run_execution_data {
  run_job_key whose; /* what stands before the file */
  const char *path;
  planrt_data *data;
  int32_t row;  /* of its job in the plan that the run begins with; -1: that has none of the name */
  bool is_used; /* a job has it */
} run_execution_data;

/* What a run has of each job that there is, or was. */
typedef struct run_execution_job {
  planrt_data *data; /* or NULL */
  run_losses losses;
  int64_t epoch_begin; /* the iteration that the run's epoch began with */
  double accuracy;     /* NaN: not known */
  bool failed_before;  /* in the checkpoint that the run goes on from */
} run_execution_job;

/* A value that goes from a storage of one graph to one of another. */
typedef struct run_handed_value {
  int32_t from, to;
  int64_t bytes;
} run_handed_value;

/* A value of --hand-on. */
typedef struct run_hand_on {
  int32_t from, to; /* jobs of the plan */
  int64_t every;    /* iterations of `from`; 0: every period */
  int64_t done;     /* of them when it was last looked whether this is due */
  void *room;       /* for the largest of the values; owned */
  VEC(run_handed_value) values;
} run_hand_on;

typedef struct run_execution {
  /* What the command line says; paths that it does not name are NULL. */
  const char *path; /* of the plan that the run begins with */
  const char *resume, *save, *trace;
  const prog_arguments *arguments;
  run_watch watch; /* its path NULL: nothing is watched */
  planrt_options options;
  int64_t epochs;     /* in all, where iterations are not given */
  int64_t iterations; /* in all; RUN_WHOLE_EPOCHS: those of the epochs */
  int64_t interleave; /* the seed, -1 = none */
  bool json, check_nan;
  bool has_data; /* of a job at least */

  /* The run. */
  planc_plan *plan; /* that it has now */
  VEC(run_execution_data) data;
  VEC(run_execution_job) jobs; /* by number in the training */
  VEC(run_hand_on) hand_ons;
  planrt_session *session;
  planc_plan *next;    /* found by the watch, and to be changed to; or NULL */
  int64_t begun;       /* iterations done before it, as run_execution_done counts them: those of the checkpoint */
  int64_t adopted;     /* plans changed to */
  int64_t periods;     /* run with the plan */
  int64_t all_periods; /* run with all plans */
  int64_t handed_on;   /* how often some job has handed on its parameters */
  int64_t run_ns;      /* in planrt_run: prologues, bodies, epilogues */
} run_execution;

/* The signal that came: the period that runs is the last. */
static inline bool run_execution_stopped(const run_execution *e) {
  return *e->options.stop != 0;
}
/* A job of the plan that runs. */
static inline planrt_job run_execution_job_at(const run_execution *e, int32_t row) {
  return planrt_job_of(e->session, planrt_job_number(e->session, row));
}
static inline run_execution_job *run_execution_of(const run_execution *e, int32_t row) {
  return &e->jobs.data[planrt_job_number(e->session, row)];
}
/* Jobs come and go, and may have different numbers of iterations in a period. What the command line counts are those
 * that every job of the plan has done since its own training began. */
static inline int64_t run_execution_done(const run_execution *e) {
  int64_t fewest = INT64_MAX;
  for (int32_t j = 0; j < e->plan->n_jobs; j++) {
    int64_t done = run_execution_job_at(e, j).iterations;
    if (done < fewest) fewest = done;
  }
  return fewest;
}
/* By what messages call a job. */
/* How many it has done: of one that has failed those before it did. */
static inline int64_t run_execution_iterations(const planrt_job *job) {
  return job->why ? job->failed_at : job->iterations;
}
static inline const char *run_execution_name(const planrt_job *job) {
  return job->name ? job->name : job->graph;
}

/* --- cmd_exec_data.c ---------------------------------------------------------------------------------------------- */

/* The file of a value of --data. */
const char *run_execution_data_file(const char *value, run_job_key *out_key);
/* Reads all data, and binds what jobs of the plan have. */
planc_status run_execution_read_data(run_execution *e);
/* Gives the jobs of the session's plan their data. */
planc_status run_execution_give_data(run_execution *e);
/* Whether data that waits for its job has it in a plan whose jobs would get these numbers. */
planc_status run_execution_check_data(const run_execution *e, const planc_plan *next, const int32_t *numbers);

/* --- cmd_exec_epochs.c -------------------------------------------------------------------------------------------- */

/* Periods of the plan until the end of all that was asked for. Iterations count from the start of each job's training,
 * those before the checkpoint included. */
int64_t run_execution_periods_left(const run_execution *e);
/* Until the end of the epoch as well. Without data all is one. */
int64_t run_execution_periods_of_epoch(const run_execution *e);
/* How many iterations an epoch of a job of the plan has; 0: it has no data. */
int64_t run_execution_per_epoch(const run_execution *e, int32_t row);
/* How often every job that has data has gone through it. */
int64_t run_execution_epochs_done(const run_execution *e);
/* From here on losses are of a new epoch. */
void run_execution_begin_epoch(run_execution *e);
/* The losses of the plan's jobs are complete. */
planc_status run_execution_end_losses(run_execution *e);
/* Tells people of the losses of an epoch at its end; 0: no period of it has run, so that it has no mean. */
void run_execution_tell_epoch(const run_execution *e, int64_t epoch);

/* --- cmd_exec_change.c -------------------------------------------------------------------------------------------- */

/* For planrt_options.pause: whether there is a plan to change to. */
bool run_execution_look(void *user);
planc_status run_execution_adopt(run_execution *e);
/* Makes place for jobs that are new, and has all of the plan's counted from where they are. */
planc_status run_execution_place_jobs(run_execution *e);
/* Tells which of the checkpoint's jobs and the plan's are not in both. */
void run_execution_note_resumed(const run_execution *e);

/* --- cmd_exec_hand_on.c ------------------------------------------------------------------------------------------- */

/* Reads --hand-on, for the jobs of the plan. */
planc_status run_execution_read_hand_ons(run_execution *e);
/* Before the first period: hands on from the jobs that have not begun to train. */
planc_status run_execution_begin_hand_on(run_execution *e);
/* Hands on what is due behind the last period that has run. */
planc_status run_execution_hand_on(run_execution *e);
/* How many periods until something is due next. */
int64_t run_execution_periods_to_hand_on(const run_execution *e);
void run_execution_free_hand_ons(run_execution *e);

/* --- cmd_exec_run.c ----------------------------------------------------------------------------------------------- */

/* Reads the data, opens a session for the plan and sets it where the run begins. */
planc_status run_execution_open(run_execution *e);
/* Runs all epochs, and writes what is to be written. */
planc_status run_execution_run(run_execution *e);
/* After a failure too. */
void run_execution_close(run_execution *e);

/* --- cmd_exec_report.c -------------------------------------------------------------------------------------------- */

/* A loss as text, whether it is a finite number or not. */
enum { RUN_LOSS_TEXT = 32 };
const char *run_execution_loss(double loss, char out[RUN_LOSS_TEXT]);
/* JOB_FAILED, saying which jobs have failed, where and why; NULL where none has. */
planc_status run_execution_failures(const run_execution *e);
/* Prints how the run went. `verified` is false where it differs from the reference. */
planc_status run_execution_report(const run_execution *e, bool verified);

#endif
