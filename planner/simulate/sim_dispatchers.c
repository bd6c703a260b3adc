/* How long dispatchers need for a body; and one dispatcher for all jobs, where the executor has one for each
 * (sim_program.h). */
#include "planner/simulate/sim_program.h"
#include "util/math.h"

int64_t sim_dispatcher_ns(const sim_program *program, int32_t dispatcher) {
  const sim_section *body = &program->sections[SIM_BODY];
  int64_t sum = 0;
  for (int32_t i = body->first_launch[dispatcher]; i < body->n; i = body->next_launch[i]) {
    sum = pl_add_saturate(sum, sim_launch_ns(program, &body->steps[i]));
    if (program->captured) break;
  }
  return sum;
}

planc_status sim_share_dispatcher(sim_program *program, pl_arena *arena) {
  sim_stream *streams;
  PLANC_TRY(PL_NEW(arena, &streams, program->n_streams));
  for (int32_t s = 0; s < program->n_streams; s++) {
    streams[s] = program->streams[s];
    streams[s].dispatcher = 0;
  }
  program->streams = streams;
  return sim_prepare(program, arena);
}
