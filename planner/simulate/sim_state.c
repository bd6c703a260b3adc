/* The machine's state as a value (sim_machine.h): begun, copied, compared. */
#include <string.h>

#include "planner/simulate/sim_machine.h"

planc_status sim_state_make(const sim_program *program, pl_arena *arena, sim_state *out) {
  *out = (sim_state){0};
  PLANC_TRY(PL_NEW(arena, &out->hosts, program->n_jobs));
  PLANC_TRY(PL_NEW(arena, &out->lanes, program->n_streams));
  PLANC_TRY(PL_NEW(arena, &out->activity.gpus, program->n_gpus));
  PLANC_TRY(PL_NEW(arena, &out->activity.kernels, program->n_streams));
  PLANC_TRY(PL_NEW(arena, &out->activity.copiers, program->n_engines));
  PLANC_TRY(PL_NEW(arena, &out->awaited_until, program->n_gpus));
  PLANC_TRY(PL_NEW(arena, &out->recorded, program->n_events));
  sim_state_begin(program, out);
  return NULL;
}

void sim_state_begin(const sim_program *program, sim_state *state) {
  sim_state begun = {.last_body = SIM_MAX_BODIES, .epilogue_phase = SIM_MAX_PHASES, .n_entered = 1};
  begun.hosts = state->hosts;
  begun.lanes = state->lanes;
  begun.activity = state->activity;
  begun.awaited_until = state->awaited_until;
  begun.recorded = state->recorded;
  begun.phases[0].start = -1;
  *state = begun;
  for (int32_t j = 0; j < program->n_jobs; j++) state->hosts[j] = (sim_host){.launched = -1};
  for (int32_t i = 0; i < program->n_streams; i++) state->lanes[i] = (sim_lane){.ended = -1, .running = -1};
  for (int32_t i = 0; i < program->n_streams; i++) state->activity.kernels[i] = (sim_kernel){0};
  for (int32_t g = 0; g < program->n_gpus; g++) state->activity.gpus[g] = (sim_gpu){0};
  for (int32_t g = 0; g < program->n_gpus; g++) state->awaited_until[g] = -1;
  for (int32_t e = 0; e < program->n_engines; e++) state->activity.copiers[e] = (sim_copier){0};
  for (int32_t e = 0; e < program->n_events; e++) state->recorded[e] = -1;
}

void sim_state_copy(const sim_program *program, sim_state *to, const sim_state *from) {
  sim_state copied = *from;
  copied.hosts = to->hosts;
  copied.lanes = to->lanes;
  copied.activity = to->activity;
  copied.awaited_until = to->awaited_until;
  copied.recorded = to->recorded;
  *to = copied;
  memcpy(to->hosts, from->hosts, (size_t)program->n_jobs * sizeof *to->hosts);
  memcpy(to->lanes, from->lanes, (size_t)program->n_streams * sizeof *to->lanes);
  memcpy(to->activity.gpus, from->activity.gpus, (size_t)program->n_gpus * sizeof *to->activity.gpus);
  memcpy(to->activity.kernels, from->activity.kernels, (size_t)program->n_streams * sizeof *to->activity.kernels);
  memcpy(to->activity.copiers, from->activity.copiers, (size_t)program->n_engines * sizeof *to->activity.copiers);
  memcpy(to->awaited_until, from->awaited_until, (size_t)program->n_gpus * sizeof *to->awaited_until);
  memcpy(to->recorded, from->recorded, (size_t)program->n_events * sizeof *to->recorded);
}

static bool is_same_lane(const sim_state *a, const sim_lane *x, const sim_state *b, const sim_lane *y, int32_t apart);
static bool is_same_host(const sim_state *a, const sim_host *x, const sim_state *b, const sim_host *y, int32_t apart);
static int32_t relevant(int32_t recorded, int32_t body);

bool sim_is_repeated(const sim_program *program, const sim_state *a, int32_t a_body, const sim_state *b,
                     int32_t b_body) {
  int32_t apart = b_body - a_body;
  for (int32_t i = 0; i < program->n_streams; i++)
    if (!is_same_lane(a, &a->lanes[i], b, &b->lanes[i], apart)) return false;
  for (int32_t k = 0; k < program->n_launchers; k++) {
    int32_t job = program->launchers[k];
    if (!is_same_host(a, &a->hosts[job], b, &b->hosts[job], apart)) return false;
  }
  for (int32_t e = 0; e < program->n_events; e++)
    if (relevant(a->recorded[e], a_body) != relevant(b->recorded[e], b_body)) return false;
  return true;
}

/* --- Repetition --------------------------------------------------------------------------------------------------- */

/* What is left of the step that runs. Where nothing runs, nothing. */
static int64_t work_left(const sim_state *s, const sim_lane *l) {
  return l->running < 0 ? 0 : l->work - l->rate * (s->now - l->since);
}

static bool is_same_lane(const sim_state *a, const sim_lane *x, const sim_state *b, const sim_lane *y, int32_t apart) {
  return y->phase - x->phase == apart && x->ended == y->ended && x->running == y->running &&
         work_left(a, x) == work_left(b, y);
}

static bool is_same_host(const sim_state *a, const sim_host *x, const sim_state *b, const sim_host *y, int32_t apart) {
  if (x->done || y->done || x->launching != y->launching) return false;
  if (x->launching && x->free_at - a->now != y->free_at - b->now) return false;
  if (x->section != y->section) return false;
  return y->phase - x->phase == apart && x->launched == y->launched && x->in_flight == y->in_flight;
}

/* A wait looks one phase back at most, and streams are at most as far behind as the phase that has ended last. */
static int32_t relevant(int32_t recorded, int32_t body) {
  return recorded < body - 1 ? -2 : recorded - body;
}
