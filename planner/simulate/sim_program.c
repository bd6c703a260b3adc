/* Sorting a program's steps by stream and by host (sim_program.h). */
#include "planner/simulate/sim_program.h"

/* Backwards: the last one seen comes next. */
static void link_steps(const sim_program *program, sim_section *section) {
  for (int32_t i = section->n - 1; i >= 0; i--) {
    const sim_step *step = &section->steps[i];
    if (step->stream < 0) continue;
    int32_t host = program->streams[step->stream].host;
    section->next[i] = section->first[step->stream];
    section->first[step->stream] = i;
    if (!sim_is_timed(step)) continue;
    section->next_launch[i] = section->first_launch[host];
    section->first_launch[host] = i;
    section->n_timed++;
  }
}

planc_status sim_link(const sim_program *program, pl_arena *arena, sim_section *section) {
  section->n_timed = 0;
  PLANC_TRY(PL_NEW(arena, &section->first, program->n_streams));
  PLANC_TRY(PL_NEW(arena, &section->next, section->n));
  PLANC_TRY(PL_NEW(arena, &section->first_launch, program->n_jobs));
  PLANC_TRY(PL_NEW(arena, &section->next_launch, section->n));
  for (int32_t s = 0; s < program->n_streams; s++) section->first[s] = section->n;
  for (int32_t j = 0; j < program->n_jobs; j++) section->first_launch[j] = section->n;
  link_steps(program, section);
  return NULL;
}

/* Any host will do to go through a program without streams. */
static planc_status find_launchers(sim_program *program, pl_arena *arena) {
  bool *has_streams;
  PLANC_TRY(PL_NEW(arena, &has_streams, program->n_jobs));
  PLANC_TRY(PL_NEW(arena, &program->launchers, (int64_t)program->n_streams + 1));
  program->n_launchers = 0;
  for (int32_t s = 0; s < program->n_streams; s++) {
    int32_t host = program->streams[s].host;
    if (!has_streams[host]) program->launchers[program->n_launchers++] = host;
    has_streams[host] = true;
  }
  if (program->n_launchers == 0) program->launchers[program->n_launchers++] = 0;
  return NULL;
}

planc_status sim_prepare(sim_program *program, pl_arena *arena) {
  const sim_section *body = &program->sections[SIM_BODY];
  for (int k = 0; k < SIM_N_SECTIONS; k++) PLANC_TRY(sim_link(program, arena, &program->sections[k]));
  PLANC_TRY(find_launchers(program, arena));
  PLANC_TRY(PL_NEW(arena, &program->recorder, program->n_events));
  for (int32_t e = 0; e < program->n_events; e++) program->recorder[e] = -1;
  for (int32_t i = 0; i < body->n; i++)
    if (body->steps[i].stream >= 0 && body->steps[i].kind == SIM_RECORD)
      program->recorder[body->steps[i].event] = body->steps[i].stream;
  return NULL;
}
