/* From plans to programs of the machine (sim_program.h). */
#ifndef PLANC_SIMULATE_PROGRAM_OF_PLAN_H
#define PLANC_SIMULATE_PROGRAM_OF_PLAN_H

#include "plan/copies.h"
#include "planner/simulate/sim_program.h"

/* The program of a plan, whose residencies were acquired as `acquired` says; `mapped`, where it is given, has by
 * instruction of the body the chunks that are mapped for it. Step i of a section is its instruction i. INVALID_PLAN
 * when
 * - a stream is not of a job of the plan, or not on a device or an engine of it,
 * - an instruction names a stream or an event that there is not, or does what its stream does not,
 * - a copy has no link, or
 * - a number is out of range.
 * BAD_INPUT when a time is too long to simulate. */
planc_status sim_program_of_plan(const planc_plan *plan, const pl_acquired *acquired, const int64_t *mapped,
                                 pl_arena *arena, sim_program *out);
/* Has the body's dispatchers note behind kernels which memory is in use: behind each, or behind the one for which at
 * least `every_bytes` of device memory have been acquired for the job since the last. */
planc_status sim_track(const planc_plan *plan, int64_t track_ns, int64_t every_bytes, pl_arena *arena,
                       sim_program *program);
/* Makes a program without steps: device, streams, GPUs and engines of a plan. The plan's tables must be right. */
planc_status sim_machine_of_plan(const planc_plan *plan, pl_arena *arena, sim_program *out);
/* The engines of a plan (engines_of_plan.c), whose streams and links are right. */
planc_status sim_engines_of_plan(const planc_plan *plan, pl_arena *arena, sim_program *out);

/* The share of a GPU that a kernel keeps busy, of a plan that nobody has checked: all of it for a copy inside the
 * device. */
static inline int32_t sim_busy_ppm(const planc_instr *kernel) {
  enum { ALL = 1000000 };
  if (kernel->op == PLANC_INSTR_copy) return ALL;
  return kernel->busy_ppm < 0 ? 0 : kernel->busy_ppm > ALL ? ALL : (int32_t)kernel->busy_ppm;
}

#endif
