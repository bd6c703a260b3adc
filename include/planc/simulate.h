/* The simulator: one for every policy. Discrete events over a plan's instructions: dispatchers (launch cost,
 * in-flight limit), compute streams, the copy engines of the plan; copies slow compute, duplex slows copies, and so
 * does a bus that engines share. */
#ifndef PLANC_SIMULATE_H
#define PLANC_SIMULATE_H

#include "planc/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a GPU waits for: a copy, by its route and with that route's number, or its dispatcher. */
typedef enum planc_stall {
#define X(id, ...) PLANC_STALL_##id = PLANC_ROUTE_##id,
  PLANC_ROUTES(X)
#undef X
      PLANC_STALL_LAUNCH = PLANC_N_ROUTES, /* the dispatcher; its number is the one behind the routes' */
  PLANC_N_STALLS
} planc_stall;

/* Of several GPUs, bytes are those of all, but for peaks, and times that are spent on each GPU are means. */
typedef struct planc_simulation {
  int64_t prologue_ns, period_ns, epilogue_ns; /* period: steady state */
  int64_t first_period_ns;
  int32_t averaged;   /* periods whose mean the time is because none of them repeats; 0: they do repeat */
  int64_t compute_ns; /* of ops in one period, alone, recompute included */
  int64_t recompute_ns;
  int64_t slowdown_ns;              /* compute lost to copies beside it */
  int64_t stall_ns[PLANC_N_STALLS]; /* compute idle, by what it waited for */
  int64_t misses; /* ops for which a copy in came late: when all else was ready nothing computed until it ended */
  int64_t copied_bytes[PLANC_N_ROUTES]; /* per period, as of a job's predictions */
  int64_t copy_ns[PLANC_N_ROUTES];      /* per period: an engine is busy with that */
  int64_t peak_bytes;                   /* arena plus reserved */
  int64_t live_peak_bytes;              /* most bytes of open residencies and workspace at one time, on a GPU */
  int32_t live_peak_instr;              /* the body's instruction at which that is reached */
  int64_t mapped_chunks;                /* in one period, where maps_in_step: chunks mapped and unmapped */
} planc_simulation;

/* Called for every exec and copy of the steady-state period with its start and end, or when its dispatcher was at
 * launching it: from the start of the period's first exec or copy, before which the first launches are. */
typedef void (*planc_simulation_visitor)(void *user, const planc_plan *plan, const planc_instr *instr, int64_t start_ns,
                                         int64_t end_ns);

/* How a plan is simulated. All zero: as the executor runs it. */
typedef struct planc_simulate_options {
  /* The body is captured once and replayed as a whole (CUDA Graphs): bodies do not overlap each other, prologue or
   * epilogue, and a body costs one launch. */
  bool captured;
  /* Of a plan with virtual memory: nothing is mapped beforehand. The dispatcher maps and unmaps chunks as data comes
   * and goes, each in chunk_ns, before it launches what needs them and when all ops launched before have ended. */
  bool maps_in_step;
  int64_t chunk_ns;
  /* Work is launched by dispatchers on the host. One launches that of all jobs, in the plan's order, as a framework's
   * with one executor for several jobs; else each job has one of its own. */
  bool one_dispatcher;
  /* Nothing of a period is launched before the one before it has ended, as by a framework that returns from each step
   * (Waterwave, 3.1). */
  bool apart;
  /* Launched ops that may wait on the device, of each dispatcher; 0: as the plan's device has it. With 1 it begins to
   * launch an op when the one before it has ended: Waterwave's sequential scheduling (3.2). */
  int32_t in_flight;
  /* As an allocator without a plan has to, the dispatcher learns from CUDA events what memory is in use (Zico, 6.1):
   * track_ns of its time behind each op, or behind the first for which track_bytes have been allocated since, counted
   * anew in each body. */
  int64_t track_ns, track_bytes;
  /* Which period the visitors are told of. False: the first that ends in the state in which an earlier one ended, from
   * where on all periods are alike. With several jobs it may itself be unlike them at its beginning: where job B starts
   * on its part of period 5 while period 4 still runs, and periods are alike from the end of 5 on, B has its first ops
   * of period 5 at times of the run-in. True: the period behind that one, all of which is as it will always be. Where
   * only every few periods are alike, or none were until the last that is simulated (`averaged`), it is one of several
   * that differ. */
  bool settled;
  /* Nothing behind the period that visitors would be told of is simulated, where periods become alike: the epilogue's
   * time may then be 0, and all else is the same. */
  bool steady_only;
  planc_simulation_visitor visitor, launch_visitor; /* told in order of the ends; or NULL */
  void *user;
  planc_job_predictions *jobs; /* or NULL: by job of the plan; times busy and stalled are set */
} planc_simulate_options;

/* `options` may be NULL for all zero. The plan need not fit any budget. USAGE for options that do not suit the plan. */
planc_status planc_simulate(const planc_plan *plan, const planc_simulate_options *options, planc_simulation *out);
/* Simulates a plan, and its predictions become what comes out; ideal times and bound stay. */
planc_status planc_simulate_predictions(planc_plan *plan);
/* Whether `a` is the better of two plans of the same work: the faster one, the smaller one where both are as fast. */
bool planc_predictions_better(const planc_predictions *a, const planc_predictions *b);

/* A plan at the times of another profile: one that was measured, say, where the plan was made from predictions. */
typedef struct planc_retimed {
  /* Borrows all but memories, links, predictions and body from the plan it was made from; not for planc_plan_free. */
  planc_plan plan;
  int32_t n_ops, n_kept; /* that the body runs, sums of gradients left out; that keep their times */
  planc_memory *memories;
  planc_plan_link *links;
  planc_job_predictions *jobs;
  planc_instr *instrs; /* the body's; all four owned */
} planc_retimed;

/* Gives every op of the body the time and busy share that the profile lists for its algorithm at its batch. An op or
 * algorithm that it does not list keeps the plan's. Sums of gradients, moves on the device, speed of links and launches
 * are the profile's, too, and so is the ideal time but for ops of which a run keeps the plan's time: those count with
 * what the plan's rounds take. STALE when it lists none of what the plan runs. */
planc_status planc_retime(const planc_plan *plan, const planc_profile *profile, planc_retimed *out);
/* The same with a profile for each job; what the first one says of links and launches counts for all. */
planc_status planc_retime_jobs(const planc_plan *plan, const planc_profile *const *profiles, planc_retimed *out);
void planc_retimed_free(planc_retimed *retimed);

#ifdef __cplusplus
}
#endif

#endif
