/* How fast kernels and copies go beside each other, by what runs at the moment (sim_machine.h says the rates). The
 * machine asks this as it runs, and who takes a measured run apart asks the same. */
#ifndef PLANC_SIMULATE_SIM_RATES_H
#define PLANC_SIMULATE_SIM_RATES_H

#include "planner/simulate/sim_program.h"
#include "util/math.h"
#include "util/number_set.h"

__extension__ typedef unsigned __int128 sim_wide;

/* A kernel that runs on a stream; without, all is 0. */
typedef struct sim_kernel {
  int64_t time_ns; /* alone */
  int32_t busy_ppm;
  bool runs, is_whole; /* it gets all that it can use, although the GPU is crowded */
} sim_kernel;

typedef struct sim_gpu {
  int64_t busy_ppm;    /* shares of the kernels that run: beyond 1,000,000 it is crowded */
  int32_t n_computing; /* kernels that run */
  int32_t n_copying;   /* engines of it that copy */
  /* Where it is crowded, the kernels that are not whole: those of the highest priority among them have what is left,
   * and a sum of shares times time alone; those below have nothing. */
  int32_t priority;
  int64_t left_ppm;
  sim_wide wanted;
} sim_gpu;

typedef struct sim_copier {
  bool copies;
  int32_t n_on_bus; /* of the bus that goes by this engine's number: engines on it that copy */
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

/* Work that is done in a ns, alone and at most. */
static inline int64_t sim_full_copy_rate(void) {
  return PL_PPM;
}
static inline int64_t sim_full_kernel_rate(const sim_program *program) {
  return PL_PPM + program->device.slowdown_ppm;
}
/* Work that is done now, at least 1. */
int64_t sim_copy_rate(const sim_program *program, const sim_activity *activity, int32_t engine);
int64_t sim_kernel_rate(const sim_program *program, const sim_activity *activity, int32_t stream);

#endif
