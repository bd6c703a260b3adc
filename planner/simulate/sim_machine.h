/* The machine on which programs are timed: discrete events.
 *
 * A dispatcher launches the kernels and copies of a job in order; every job has its own, or one serves all jobs.
 * Launching takes launch_ns, and waits while in_flight kernels are launched and not finished. Streams are queues. An
 * engine makes one copy at a time; of several streams that want it at one time the lowest gets it. The prologue runs,
 * then bodies until the caller ends them, then the epilogue; nothing is awaited in between but what the program awaits.
 * Several jobs stay together, as one executor enqueues them: nothing of body k is launched before all jobs have ended
 * body k - 2.
 *
 * Rates are exact. A kernel of time t is t * (1,000,000 + slowdown_ppm) of work, done at 1,000,000 + slowdown_ppm per
 * ns alone and at 1,000,000 while an engine of its GPU copies. Where the busy shares of the GPU's kernels sum to more
 * than 1,000,000 they take turns, as kernels do whose blocks wait for those of others to end: that explains the times
 * of pairs that were measured far better than that all slow alike (tests/bench/bench_pairs.py). Each gets a part of the
 * GPU in proportion to its busy share and its time alone, as far as it can use it. It goes at that rate, rounded up.
 * Where jobs have priorities, those of the highest take their turns first, and what they leave is for the others. A
 * copy is its time alone * 1,000,000 of work, done at 1,000,000 per ns, and at duplex_ppm while an engine copies the
 * other way. Copies on one bus run at equal parts of that, rounded down. Ends are rounded up to whole ns.
 *
 * Where bodies are apart, nothing of one is launched before the one before it has ended, as by a framework that returns
 * from each step. From rest, that holds for the first body only: nothing of it is launched before the prologue has
 * ended, so that dispatchers have no lead when it begins.
 *
 * A captured body is launched as a whole: one launch_ns, nothing of it waits in a queue, and what follows it begins
 * when all of it has ended. Where chunks of virtual memory are mapped in the step, the dispatcher waits for the kernels
 * that it has launched, since what was freed may still be in use, and then takes its time for each chunk.
 *
 * The state is a value: it can be copied, and the copy runs on as the state itself would. A state knows steps by their
 * numbers, and asks the program which steps come next. So a program may be edited behind all that a state has launched
 * or run, and then the state runs on with what is new. */
#ifndef PLANC_SIMULATE_SIM_MACHINE_H
#define PLANC_SIMULATE_SIM_MACHINE_H

#include "planner/simulate/sim_rates.h"

/* Stage 0 is the prologue, stage k body k, the epilogue comes after the last body. There may be many bodies, since jobs
 * that share a GPU may take long to fall into step. A stage of a graph is another thing (planc_phase). */
enum { SIM_MAX_BODIES = 64, SIM_MAX_STAGES = SIM_MAX_BODIES + 2 };

typedef struct sim_stage {
  int32_t n_ended;                  /* its kernels and copies that have ended */
  int64_t start, end;               /* start: -1 before its first kernel or copy begins */
  int64_t stall_ns[PLANC_N_STALLS]; /* the state's when the stage ended */
  int64_t lost_ns;                  /* by kernels, to copies */
  int64_t misses;                   /* ops that began at the end of a copy to their GPU for which nothing computed */
  int64_t copy_ns[PLANC_N_ROUTES];
} sim_stage;

typedef struct sim_dispatcher {
  int32_t stage, launched; /* its last launch in the stage, -1 before the first */
  int32_t section;         /* of the stage */
  int32_t in_flight;       /* kernels that it has launched and that have not ended */
  bool launching, done;    /* done: it has launched the epilogue */
  int64_t free_at;         /* when what it is launching will be launched */
} sim_dispatcher;

/* How far a stream has come. */
typedef struct sim_lane {
  int32_t section;                       /* of the stage */
  int32_t stage, ended;                  /* the stream's last step that has ended in the stage, -1 before the first */
  int32_t running;                       /* the step that runs, -1 = none */
  int64_t start, work, rate, since, end; /* `work` is what was left at `since` */
  /* Of a kernel that runs: its GPU copies at the moment, and how long it did before `since`; since the kernel began,
   * the GPU has been crowded at some time. */
  bool beside, crowded;
  int64_t beside_ns;
} sim_lane;

typedef struct sim_state {
  int64_t now;
  int32_t last_body;                /* asked for by the caller; SIM_MAX_BODIES while it is open how many run */
  int32_t epilogue_stage;           /* SIM_MAX_STAGES while no dispatcher has come to it */
  int32_t n_entered, n_closed;      /* stages that dispatchers have come to; that have ended */
  bool changed;                     /* rates must be set anew */
  int64_t stall_ns[PLANC_N_STALLS]; /* since the beginning of time, of all GPUs */
  sim_stage stages[SIM_MAX_STAGES];
  sim_dispatcher *dispatchers; /* by number: that of its job */
  sim_lane *lanes;             /* by stream */
  sim_activity activity;
  /* Dispatchers and streams that are awake: they may be able to go on at this time, and the others need not be looked
   * at. Dispatchers go by their places (sim_program.place_of). */
  pl_number_set may_launch, may_begin;
  pl_number_set launching; /* dispatchers, by place */
  pl_number_set running;   /* streams */
  int64_t *awaited_until;  /* by GPU: the end of the last copy to it for which nothing computed, -1 before the first */
  int32_t *recorded;       /* by event: the last stage that recorded it, -1 if none */
} sim_state;

/* Called for a kernel or copy, with when it began and ended, or when its dispatcher began to launch it and had. */
typedef void (*sim_told)(void *user, int32_t stage, int32_t step, int64_t start, int64_t end);
/* Both are called in the order in which steps or launches end; either may be NULL. */
typedef struct sim_observer {
  sim_told ended, launched;
  void *user;
} sim_observer;

/* A state at the beginning of time. It must not outlive `arena`. */
planc_status sim_state_make(const sim_program *program, pl_arena *arena, sim_state *out);
void sim_state_begin(const sim_program *program, sim_state *state);
/* Both were made for programs with as many jobs, streams, GPUs, engines and events. */
void sim_state_copy(const sim_program *program, sim_state *to, const sim_state *from);

/* Goes on to the next time at which something ends; *out_over says that nothing is left. `observer` may be NULL.
 * INVALID_PLAN when streams wait for ever, BAD_INPUT when it takes too long to simulate. */
planc_status sim_advance(const sim_program *program, sim_state *state, const sim_observer *observer, bool *out_over);

/* Whether two states, `a` at the end of body `a_body` and `b` at the end of a later body `b_body`, differ in nothing
 * but that later time and body. Then what has happened between them happens again for ever. */
bool sim_is_repeated(const sim_program *program, const sim_state *a, int32_t a_body, const sim_state *b,
                     int32_t b_body);

#endif
