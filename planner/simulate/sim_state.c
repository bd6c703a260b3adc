/* The machine's state as a value (sim_machine.h): begun, copied, compared. */
#include <string.h>

#include "planner/simulate/sim_machine.h"

static void keep_memory(sim_state *state, const sim_state *own);
static void find_who_goes_on(const sim_program *program, sim_state *state);

planc_status sim_state_make(const sim_program *program, pl_arena *arena, sim_state *out) {
  *out = (sim_state){0};
  PLANC_TRY(PL_NEW(arena, &out->dispatchers, program->n_jobs));
  PLANC_TRY(PL_NEW(arena, &out->lanes, program->n_streams));
  PLANC_TRY(sim_activity_make(program, arena, &out->activity));
  PLANC_TRY(pl_number_set_make(arena, program->n_dispatchers, &out->may_launch));
  PLANC_TRY(pl_number_set_make(arena, program->n_streams, &out->may_begin));
  PLANC_TRY(pl_number_set_make(arena, program->n_dispatchers, &out->launching));
  PLANC_TRY(pl_number_set_make(arena, program->n_streams, &out->running));
  PLANC_TRY(PL_NEW(arena, &out->awaited_until, program->n_gpus));
  PLANC_TRY(PL_NEW(arena, &out->recorded, program->n_events));
  sim_state_begin(program, out);
  return NULL;
}

void sim_state_begin(const sim_program *program, sim_state *state) {
  sim_state begun = {.last_body = SIM_MAX_BODIES, .epilogue_stage = SIM_MAX_STAGES, .n_entered = 1};
  keep_memory(&begun, state);
  begun.stages[0].start = -1;
  *state = begun;
  for (int32_t j = 0; j < program->n_jobs; j++) state->dispatchers[j] = (sim_dispatcher){.launched = -1};
  for (int32_t i = 0; i < program->n_streams; i++) state->lanes[i] = (sim_lane){.ended = -1, .running = -1};
  sim_activity_begin(program, &state->activity);
  for (int32_t g = 0; g < program->n_gpus; g++) state->awaited_until[g] = -1;
  for (int32_t e = 0; e < program->n_events; e++) state->recorded[e] = -1;
  find_who_goes_on(program, state);
}

void sim_state_copy(const sim_program *program, sim_state *to, const sim_state *from) {
  sim_state copied = *from;
  keep_memory(&copied, to);
  *to = copied;
  memcpy(to->dispatchers, from->dispatchers, (size_t)program->n_jobs * sizeof *to->dispatchers);
  memcpy(to->lanes, from->lanes, (size_t)program->n_streams * sizeof *to->lanes);
  sim_activity_copy(program, &to->activity, &from->activity);
  memcpy(to->awaited_until, from->awaited_until, (size_t)program->n_gpus * sizeof *to->awaited_until);
  memcpy(to->recorded, from->recorded, (size_t)program->n_events * sizeof *to->recorded);
  find_who_goes_on(program, to);
}

/* A state that becomes another one keeps its own memory. */
static void keep_memory(sim_state *state, const sim_state *own) {
  state->dispatchers = own->dispatchers;
  state->lanes = own->lanes;
  state->activity = own->activity;
  state->awaited_until = own->awaited_until;
  state->recorded = own->recorded;
  state->may_launch = own->may_launch;
  state->may_begin = own->may_begin;
  state->launching = own->launching;
  state->running = own->running;
}

/* Makes the sets of what the rest of the state says. All dispatchers and streams are awake: the program may have been
 * edited since, and what could not go on can. */
static void find_who_goes_on(const sim_program *program, sim_state *state) {
  for (int32_t k = 0; k < program->n_dispatchers; k++) {
    pl_number_set_put(&state->launching, k, state->dispatchers[program->dispatchers[k]].launching);
    pl_number_set_add(&state->may_launch, k);
  }
  for (int32_t s = 0; s < program->n_streams; s++) {
    pl_number_set_put(&state->running, s, state->lanes[s].running >= 0);
    pl_number_set_add(&state->may_begin, s);
  }
}

/* --- Repetition --------------------------------------------------------------------------------------------------- */

static bool is_same_lane(const sim_state *a, const sim_lane *x, const sim_state *b, const sim_lane *y, int32_t apart);
static int64_t work_left(const sim_state *s, const sim_lane *l);
static bool is_same_dispatcher(const sim_state *a, const sim_dispatcher *x, const sim_state *b, const sim_dispatcher *y,
                               int32_t apart);
static int32_t relevant(int32_t recorded, int32_t body);

bool sim_is_repeated(const sim_program *program, const sim_state *a, int32_t a_body, const sim_state *b,
                     int32_t b_body) {
  int32_t apart = b_body - a_body;
  for (int32_t i = 0; i < program->n_streams; i++)
    if (!is_same_lane(a, &a->lanes[i], b, &b->lanes[i], apart)) return false;
  for (int32_t k = 0; k < program->n_dispatchers; k++) {
    int32_t d = program->dispatchers[k];
    if (!is_same_dispatcher(a, &a->dispatchers[d], b, &b->dispatchers[d], apart)) return false;
  }
  for (int32_t e = 0; e < program->n_events; e++)
    if (relevant(a->recorded[e], a_body) != relevant(b->recorded[e], b_body)) return false;
  return true;
}

static bool is_same_lane(const sim_state *a, const sim_lane *x, const sim_state *b, const sim_lane *y, int32_t apart) {
  return y->stage - x->stage == apart && x->ended == y->ended && x->running == y->running &&
         work_left(a, x) == work_left(b, y);
}

/* What is left of the step that runs. Where nothing runs, nothing. */
static int64_t work_left(const sim_state *s, const sim_lane *l) {
  return l->running < 0 ? 0 : l->work - l->rate * (s->now - l->since);
}

static bool is_same_dispatcher(const sim_state *a, const sim_dispatcher *x, const sim_state *b, const sim_dispatcher *y,
                               int32_t apart) {
  if (x->done || y->done || x->launching != y->launching) return false;
  if (x->launching && x->free_at - a->now != y->free_at - b->now) return false;
  if (x->section != y->section) return false;
  return y->stage - x->stage == apart && x->launched == y->launched && x->in_flight == y->in_flight;
}

/* When an event was last recorded, counted from `body`, which has just ended. All streams are in that body or beyond
 * it, and a wait asks for a record of its own stage or the one before: older records are as good as none. */
static int32_t relevant(int32_t recorded, int32_t body) {
  return recorded < body - 1 ? -2 : recorded - body;
}
