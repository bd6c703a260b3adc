/* What hosts have to do in a body, and hosts that do otherwise than the executor's (sim_program.h): that track memory,
 * or of which one serves all jobs. */
#include <string.h>

#include "planner/simulate/sim_program.h"
#include "util/math.h"

int64_t sim_host_ns(const sim_program *program, int32_t host) {
  const sim_section *body = &program->sections[SIM_BODY];
  int64_t sum = 0;
  for (int32_t i = body->first_launch[host]; i < body->n; i = body->next_launch[i]) {
    sum = pl_add_saturate(sum, sim_launch_ns(program, &body->steps[i]));
    if (program->captured) break;
  }
  return sum;
}

/* What is acquired is for the next kernel in the plan's order, and its job. */
static void mark(const planc_plan *plan, int64_t every_bytes, int64_t *acquired, sim_step *steps,
                 const sim_program *program) {
  int64_t next = 0;
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (instr->op == PLANC_INSTR_acquire && plan->memories[instr->memory].kind == PLANC_MEMORY_DEVICE)
      next = pl_add_saturate(next, instr->bytes);
    if (steps[i].stream < 0 || steps[i].kind != SIM_KERNEL) continue;
    int64_t *sum = &acquired[program->streams[steps[i].stream].job];
    *sum = pl_add_saturate(*sum, next);
    next = 0;
    steps[i].tracked = *sum >= every_bytes;
    if (steps[i].tracked) *sum = 0;
  }
}

planc_status sim_track(const planc_plan *plan, int64_t track_ns, int64_t every_bytes, pl_arena *arena,
                       sim_program *program) {
  sim_section *body = &program->sections[SIM_BODY];
  sim_step *steps;
  int64_t *acquired;
  PLANC_TRY(PL_NEW(arena, &steps, body->n));
  PLANC_TRY(PL_NEW(arena, &acquired, plan->n_jobs));
  if (body->n > 0) memcpy(steps, body->steps, (size_t)body->n * sizeof *steps);
  mark(plan, every_bytes, acquired, steps, program);
  body->steps = steps;
  program->track_ns = track_ns;
  return NULL;
}

planc_status sim_share_host(sim_program *program, pl_arena *arena) {
  sim_stream *streams;
  PLANC_TRY(PL_NEW(arena, &streams, program->n_streams));
  for (int32_t s = 0; s < program->n_streams; s++) {
    streams[s] = program->streams[s];
    streams[s].host = 0;
  }
  program->streams = streams;
  return sim_prepare(program, arena);
}
