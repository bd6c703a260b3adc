/* How fast kernels and copies go beside each other, by what runs at the moment (sim_machine.h says the rates). The
 * machine asks this as it runs, and whoever finds times alone in a measured run asks the same. */
#ifndef PLANC_SIMULATE_SIM_RATES_H
#define PLANC_SIMULATE_SIM_RATES_H

#include "planner/simulate/sim_program.h"
#include "util/math.h"
#include "util/number_set.h"

__extension__ typedef unsigned __int128 sim_wide;

/* The kernel that runs on a stream; all is 0 where none does. */
typedef struct sim_kernel {
  int64_t time_ns; /* alone */
  int32_t busy_ppm;
  bool runs, is_whole; /* it gets all that it can use, although the GPU is crowded */
} sim_kernel;

typedef struct sim_gpu {
  int64_t busy_ppm;    /* shares of the kernels that run: beyond 1,000,000 it is crowded */
  int32_t n_computing; /* kernels that run */
  int32_t n_copying;   /* engines of it that copy */
  /* Where it is crowded: the highest priority of which some kernel is not whole. Of that one, all kernels that are not
   * whole share what is left to them, in proportion to their busy shares times their times alone, whose sum is
   * `wanted`. Kernels of lower priorities get nothing. */
  int32_t priority;
  int64_t left_ppm;
  sim_wide wanted;
} sim_gpu;

typedef struct sim_copier {
  bool copies;
  int32_t n_on_bus; /* engines that copy on the bus that has this engine's number */
} sim_copier;

/* What runs on a program's GPUs and engines. */
typedef struct sim_activity {
  sim_gpu *gpus;
  sim_kernel *kernels;     /* by stream */
  sim_copier *copiers;     /* by engine */
  pl_number_set computing; /* streams on which kernels run */
} sim_activity;

/* Nothing runs. It must not outlive `arena`. */
planc_status sim_activity_make(const sim_program *program, pl_arena *arena, sim_activity *out);
/* Both were made for programs with as many streams, GPUs and engines. */
void sim_activity_copy(const sim_program *program, sim_activity *to, const sim_activity *from);
void sim_activity_begin(const sim_program *program, sim_activity *activity);

/* An engine begins to copy, or ends. */
void sim_turn(const sim_program *program, sim_activity *activity, int32_t engine, bool copies);
/* A kernel begins on a compute stream, or the one that runs there ends (NULL). */
void sim_occupy(const sim_program *program, sim_activity *activity, int32_t stream, const sim_kernel *kernel);

/* The work that is done in a ns where nothing slows it. */
static inline int64_t sim_full_copy_rate(void) {
  return PL_PPM;
}
static inline int64_t sim_full_kernel_rate(const sim_program *program) {
  return PL_PPM + program->device.slowdown_ppm;
}
/* The work that is done in a ns while what runs now runs, at least 1. */
int64_t sim_copy_rate(const sim_program *program, const sim_activity *activity, int32_t engine);
int64_t sim_kernel_rate(const sim_program *program, const sim_activity *activity, int32_t stream);

#endif
