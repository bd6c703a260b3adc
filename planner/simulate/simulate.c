/* The simulator: a plan's program on the machine until its bodies repeat themselves, and what that says of the plan.
 *
 * Bodies repeat themselves when the machine is at the end of one in the state that it was in at the end of one before
 * (sim_machine.h). Where it never is, within so many bodies, the second half of them is averaged. */
#include "planc/simulate.h"

#include <stdlib.h>

#include "planner/simulate/plan_totals.h"
#include "planner/simulate/remap.h"
#include "planner/simulate/sim_machine.h"

/* Jobs that share a GPU may take long to fall into step. The last bodies are not like others: nothing comes behind
 * them, and one of several jobs may have the GPU for itself. */
enum { MOST_BODIES = 8, MOST_OF_SEVERAL = SIM_MAX_BODIES, LAST_BODIES = 2 };

typedef struct simulation {
  const planc_plan *plan;
  sim_program program;
  sim_state state;
  planc_arena arena;
  bool captured;
  int64_t chunk_ns;    /* to map or unmap a chunk of virtual memory, -1 = all is mapped */
  sim_state *ends;     /* by body: the state at its end */
  bool repeats;        /* bodies do, the one after `from` as the one after `until` */
  int32_t from, until; /* what lies between the ends of these is averaged */
  planc_simulation_visitor visitor;
  void *user;
  int64_t origin;
} simulation;

/* Looks for a body before this one whose end was like its own. */
static planc_status note_end(simulation *s, int32_t body) {
  PLANC_TRY(sim_state_make(&s->program, &s->arena, &s->ends[body]));
  sim_state_copy(&s->program, &s->ends[body], &s->state);
  for (int32_t before = body - 1; before > 0 && !s->repeats; before--) {
    if (!s->ends[before].lanes) continue; /* it ended together with a later one */
    s->repeats = sim_is_repeated(&s->program, &s->ends[before], before, &s->ends[body], body);
    s->from = before;
  }
  if (!s->repeats) return NULL;
  s->until = body;
  s->state.last_body = s->state.n_entered - 1; /* no further ones */
  return NULL;
}

static planc_status run_until_repeated(simulation *s) {
  bool over = false;
  int32_t most = s->program.n_launchers > 1 ? MOST_OF_SEVERAL : MOST_BODIES;
  s->state.last_body = most;
  PLANC_TRY(PLANC_NEW(&s->arena, &s->ends, (int64_t)most + 1));
  while (!over) {
    int32_t closed = s->state.n_closed;
    PLANC_TRY(sim_advance(&s->program, &s->state, NULL, NULL, &over));
    int32_t body = s->state.n_closed - 1;
    bool ended = s->state.n_closed > closed && body > 0 && body < s->state.epilogue_phase;
    if (ended && !s->repeats) PLANC_TRY(note_end(s, body));
  }
  if (s->repeats) return NULL;
  s->from = most / 2;
  s->until = most - LAST_BODIES;
  return NULL;
}

static void visit(void *user, int32_t phase, int32_t step, int64_t start, int64_t end) {
  const simulation *s = user;
  if (phase == s->until) s->visitor(s->user, s->plan, &s->plan->body.instrs[step], start - s->origin, end - s->origin);
}

/* Which bodies repeat themselves is known only behind them: the same again, watched. */
static planc_status show(simulation *s) {
  bool over = false;
  int32_t last_body = s->state.last_body;
  s->origin = s->state.phases[s->until].start;
  sim_state_begin(&s->program, &s->state);
  s->state.last_body = last_body;
  while (!over) PLANC_TRY(sim_advance(&s->program, &s->state, visit, s, &over));
  return NULL;
}

static void report(const simulation *s, planc_simulation *out) {
  const sim_phase *phases = s->state.phases, *last = &phases[s->until], *first = &phases[s->from];
  int32_t n_gpus = s->program.n_gpus > 0 ? s->program.n_gpus : 1, epilogue = s->state.epilogue_phase;
  out->prologue_ns = phases[0].end;
  out->first_iteration_ns = phases[1].end - phases[0].end;
  out->iteration_ns = (last->end - first->end) / (s->until - s->from);
  out->epilogue_ns = phases[epilogue].end - phases[epilogue - 1].end;
  out->slowdown_ns = last->lost_ns / n_gpus;
  out->misses = last->misses;
  for (int i = 0; i < PLANC_N_STALLS; i++) out->stall_ns[i] = (last->stall_ns[i] - last[-1].stall_ns[i]) / n_gpus;
  out->h2d_ns = last->copy_ns[PLANC_COPY_IN] / n_gpus;
  out->d2h_ns = last->copy_ns[PLANC_COPY_OUT] / n_gpus;
}

static planc_status make_program(simulation *s, const planc_acquired *acquired, planc_simulation *out) {
  int64_t *mapped = NULL;
  if (s->chunk_ns >= 0) PLANC_TRY(planc_count_mappings(s->plan, &mapped, &out->mapped_chunks));
  planc_status status = sim_program_of_plan(s->plan, acquired, mapped, &s->arena, &s->program);
  free(mapped);
  s->program.captured = s->captured;
  s->program.chunk_ns = s->chunk_ns > 0 ? s->chunk_ns : 0;
  return status;
}

static planc_status simulate(simulation *s, planc_simulation *out) {
  planc_acquired *acquired;
  PLANC_TRY(planc_plan_acquired(s->plan, &s->arena, &acquired));
  PLANC_TRY(make_program(s, acquired, out));
  PLANC_TRY(planc_plan_totals(s->plan, acquired, out));
  PLANC_TRY(sim_state_make(&s->program, &s->arena, &s->state));
  PLANC_TRY(run_until_repeated(s));
  report(s, out);
  return s->visitor ? show(s) : NULL;
}

static planc_status simulate_as(simulation s, planc_simulation *out) {
  *out = (planc_simulation){0};
  planc_status status = simulate(&s, out);
  planc_arena_free(&s.arena);
  return planc_context(status, "simulation");
}

planc_status planc_simulate(const planc_plan *plan, planc_simulation_visitor visitor, void *user,
                            planc_simulation *out) {
  return simulate_as((simulation){.plan = plan, .chunk_ns = -1, .visitor = visitor, .user = user}, out);
}

planc_status planc_simulate_captured(const planc_plan *plan, planc_simulation *out) {
  return simulate_as((simulation){.plan = plan, .chunk_ns = -1, .captured = true}, out);
}

planc_status planc_simulate_mapping(const planc_plan *plan, int64_t chunk_ns, planc_simulation *out) {
  *out = (planc_simulation){0};
  if (planc_plan_gpus(plan) > 1) return planc_error(PLANC_USAGE, "mapping in the step is simulated on one GPU only");
  return simulate_as((simulation){.plan = plan, .chunk_ns = chunk_ns}, out);
}
