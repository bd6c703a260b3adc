/* How long the jobs of a program compute, by body: a job computes while a kernel of it runs on a GPU, however many do
 * there; of several GPUs it has the sum. */
#ifndef PLANC_SIMULATE_SIM_BUSY_H
#define PLANC_SIMULATE_SIM_BUSY_H

#include "planner/simulate/sim_machine.h"

/* A site is a job on a GPU on which it has compute streams. */
typedef struct sim_busy {
  const sim_program *program;
  const sim_state *state;
  int32_t n_sites;
  int32_t *site_of;     /* by stream; -1: it copies */
  int32_t *job_of;      /* by site */
  int32_t *n_gpus;      /* by job: its sites */
  pl_number_set ran;    /* sites at which kernels have run since the machine last went on */
  int64_t *computed_ns; /* by job, so far */
  int64_t **at_end;     /* by body, by job: what it had computed at the body's end */
} sim_busy;

/* Of a program at the beginning of time. It must not outlive the program, the state and `arena`. */
planc_status sim_busy_make(const sim_program *program, const sim_state *state, pl_arena *arena, sim_busy *out);
/* For sim_observer.ended; the user is the sim_busy. */
void sim_busy_note_end(void *user, int32_t stage, int32_t step, int64_t start, int64_t end);
/* The machine has gone on by `ns`. Of the stages that have ended, those from `first_stage` on have just done so. */
void sim_busy_note_step(sim_busy *busy, int64_t ns, int32_t first_stage);
/* A job's mean of the bodies behind `from` up to `until`, and of its GPUs. */
int64_t sim_busy_of_job(const sim_busy *busy, int32_t job, int32_t from, int32_t until);

#endif
