/* `capuchin`: Capuchin (Peng et al., ASPLOS 2020) as TENSILE compares with it and reproduces it: swap and recompute of
 * single tensors, chosen by what the accesses of one measured iteration leave room for (capuchin_choose.c), then
 * corrected by feedback.
 *
 * The measured iteration has the profile's times of the fastest algorithms; how the first iteration itself gets by, by
 * swapping when memory runs out, is no plan and simulated apart (passive.c). No more is chosen than the budget asks
 * for. Feedback: when an op finds that a tensor it reads is still being swapped in, the in-trigger moves ahead by a
 * twentieth of the time of the swap-in. What takes an iteration each there is done here between runs of the simulator,
 * as many twentieths at once as the op had to wait for, for as long as the iteration gets shorter and the budget holds.
 */
#include "planner/policies/capuchin.h"

#include <stdlib.h>

#include "planc/simulate.h"
#include "planner/code.h"
#include "planner/policies/policies.h"
#include "planner/simulate/plan_streams.h"
#include "util/math.h"

enum { STEPS = 20, MOST_ROUNDS = 4 };

/* --- One run of the simulator ------------------------------------------------------------------------------------- */

typedef struct times {
  int64_t *end;     /* per instruction of the body */
  int32_t *pending; /* per residency: the copy to it that nothing has read yet, -1 = none */
} times;

static void note(void *user, const planc_plan *plan, const planc_instr *instr, int64_t start_ns, int64_t end_ns) {
  (void)start_ns;
  const times *t = user;
  if (instr >= plan->body.instrs && instr < plan->body.instrs + plan->body.n)
    t->end[instr - plan->body.instrs] = end_ns;
}

/* Moves ahead what exec `at` had to wait for when compute was free at `free_ns`. */
static void move_ahead(const planc_plan *plan, const planc_candidate *candidate, const times *t, const planc_instr *at,
                       int64_t free_ns, int64_t *leads) {
  const planc_instance *instance = &candidate->trace->instances[at->id];
  for (int32_t k = 0; k < instance->n_accesses; k++) {
    int32_t residency = plan->uses[at->first_use + k];
    int32_t prefetch = residency < 0 ? -1 : t->pending[residency];
    if (prefetch < 0) continue;
    t->pending[residency] = -1;
    int64_t step = planc_link_ns(&candidate->costs->device.h2d, plan->body.instrs[prefetch].bytes) / STEPS + 1;
    int64_t late = t->end[prefetch] - free_ns;
    if (late <= 0 || at->recompute) continue;
    int64_t steps = late / step + 1;
    leads[instance->first_access + k] += (steps > STEPS ? STEPS : steps) * step;
  }
}

static void correct(const planc_plan *plan, const planc_candidate *candidate, const times *t, int64_t *leads) {
  int64_t free_ns = 0;
  for (int32_t r = 0; r < plan->n_residencies; r++) t->pending[r] = -1;
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (planc_instr_direction(plan, instr) == PLANC_COPY_IN) t->pending[instr->id] = i;
    if (instr->op != PLANC_INSTR_exec) continue;
    move_ahead(plan, candidate, t, instr, free_ns, leads);
    free_ns = t->end[i];
  }
}

static planc_status simulate(const planc_plan *plan, const planc_candidate *candidate, int64_t *leads,
                             int64_t *out_ns) {
  planc_simulation simulation;
  planc_arena arena = {0};
  times t = {0};
  planc_status status = PLANC_NEW(&arena, &t.end, plan->body.n);
  if (!status) status = PLANC_NEW(&arena, &t.pending, plan->n_residencies);
  if (!status) status = planc_simulate(plan, note, &t, &simulation);
  if (!status) {
    *out_ns = simulation.iteration_ns;
    correct(plan, candidate, &t, leads);
  }
  planc_arena_free(&arena);
  return status;
}

/* Whether the candidate fits, how long it takes, and what to move ahead. */
static planc_status judge(const planc_problem *problem, const planc_candidate *candidate, int64_t *leads,
                          bool *out_fits, int64_t *out_ns) {
  planc_plan *plan;
  PLANC_TRY(planc_lower(problem, "capuchin", candidate, &plan));
  *out_fits = plan->predicted.peak_bytes <= problem->budget_bytes;
  planc_status status = *out_fits ? simulate(plan, candidate, leads, out_ns) : NULL;
  planc_plan_free(plan);
  return status;
}

/* --- Feedback ----------------------------------------------------------------------------------------------------- */

static planc_status feed_back(const planc_problem *problem, const capuchin *by, int64_t *leads, planc_candidate *out) {
  bool fits;
  int64_t ns = 0, next_ns = 0, room = *by->room;
  PLANC_TRY(judge(problem, out, leads, &fits, &ns));
  capuchin with = {.room = &room, .leads = leads, .alone = by->alone};
  planc_absence_rule rule = {.choose = capuchin_choose, .context = &with};
  for (int32_t round = 0; fits && round < MOST_ROUNDS; round++) {
    planc_candidate next = {0};
    planc_status status = planc_make_absences(problem, &rule, room, &next);
    if (!status) status = judge(problem, &next, leads, &fits, &next_ns);
    if (status || !fits || next_ns >= ns) {
      planc_candidate_free(&next);
      return status;
    }
    planc_candidate_free(out);
    *out = next;
    ns = next_ns;
  }
  return NULL;
}

/* Recompute takes memory as well, and where links are judged to be full there is more of it: what finds no room so may
 * find it by swaps that wait for each other. */
planc_status planc_policy_capuchin(const planc_problem *problem, planc_candidate *out) {
  int64_t room = 0;
  bool fits;
  capuchin by = {.room = &room};
  planc_absence_rule rule = {.choose = capuchin_choose, .context = &by};
  PLANC_TRY(planc_walk_try(problem, planc_make_absences, &rule, PLANC_ROOM_UNLIMITED, out, &fits));
  if (!fits) PLANC_TRY(planc_walk_try(problem, planc_make_absences, &rule, planc_arena_room(problem), out, &fits));
  by.alone = !fits;
  if (!fits) PLANC_TRY(planc_walk_try(problem, planc_make_absences, &rule, planc_arena_room(problem), out, &fits));
  if (!fits) PLANC_TRY(planc_make_absences(problem, &rule, PLANC_ROOM_NONE, out));
  int64_t *leads = calloc((size_t)out->trace->n_accesses + 1, sizeof *leads);
  if (!leads) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  planc_status status = feed_back(problem, &by, leads, out);
  free(leads);
  return status;
}
