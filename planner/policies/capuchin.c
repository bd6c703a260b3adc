/* `capuchin`: Capuchin (Peng et al., ASPLOS 2020) as TENSILE compares with it and reproduces it: swap and recompute of
 * single buffers, chosen by what the accesses of one measured iteration leave room for (capuchin_choose.c), then
 * corrected by feedback.
 *
 * The measured iteration has the profile's times of the fastest algorithms; how the first iteration itself gets by, by
 * swapping when memory runs out, is no plan and simulated apart (passive.c). No more is chosen than the budget asks
 * for. Feedback: when an op finds that a buffer it reads is still being swapped in, the in-trigger moves ahead by a
 * twentieth of the time of the swap-in. What takes an iteration each there is done here between runs of the simulator,
 * as many twentieths at once as the op had to wait for, for as long as the iteration gets shorter and the budget holds.
 */
#include "planner/policies/capuchin.h"

#include <stdlib.h>

#include "planner/base/code.h"
#include "planner/policies/policies.h"

enum { STEPS = 20, MAX_ROUNDS = 4 };

typedef struct correction {
  const planc_link *h2d;
  int64_t *leads;
} correction;

static planc_status feed_back(const planc_evaluator *evaluator, const capuchin *with, pl_walk_room room, int64_t *leads,
                              planc_candidate *out, int32_t *out_helped);
static planc_status explain(bool alone, int32_t helped, planc_candidate *out);
static planc_status judge(const planc_evaluator *evaluator, const planc_candidate *candidate, int64_t *leads,
                          bool *out_fits, int64_t *out_ns);
static planc_status correct(void *user, const planc_simulated *simulated);

/* Recompute takes memory as well, and where links are judged to be full there is more of it: what finds no room so may
 * find it by swaps that wait for each other. Where everything may be swapped, nothing takes less than that. */
planc_status pl_policy_capuchin(const planc_evaluator *evaluator, planc_candidate *out) {
  const planc_terms *terms = &evaluator->problem->terms;
  int64_t whole = pl_arena_room(terms, evaluator->problem->job.profile);
  bool swaps = !terms->settings.no_swap && planc_away_budget(terms) < 0;
  const capuchin beside = {.alone = false}, alone = {.alone = true};
  pl_absence_rule rules[] = {{.choose = pl_capuchin_choose, .context = &beside},
                             {.choose = pl_capuchin_choose, .context = &alone}};
  const pl_walk_attempt attempts[] = {
      {&rules[0], PL_ROOM_UNLIMITED, false}, {&rules[0], whole, swaps}, {&rules[1], whole, swaps}};
  pl_walk_found found;
  PLANC_TRY(pl_walk_first(evaluator, pl_make_absences, attempts, 3, out, &found));
  int64_t *leads = calloc((size_t)out->trace->n_accesses + 1, sizeof *leads);
  if (!leads) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  int32_t helped;
  capuchin with = {.leads = leads, .alone = found.number > 1};
  planc_status status = feed_back(evaluator, &with, found.room, leads, out, &helped);
  if (!status) status = explain(with.alone, helped, out);
  free(leads);
  return status;
}

/* `leads` are those of `with`; *out_helped is how often the iteration got shorter. */
static planc_status feed_back(const planc_evaluator *evaluator, const capuchin *with, pl_walk_room room, int64_t *leads,
                              planc_candidate *out, int32_t *out_helped) {
  bool fits;
  int64_t ns = 0, next_ns = 0;
  PLANC_TRY(judge(evaluator, out, leads, &fits, &ns));
  pl_absence_rule rule = {.choose = pl_capuchin_choose, .context = with};
  for (*out_helped = 0; fits && *out_helped < MAX_ROUNDS; ++*out_helped) {
    planc_candidate next = {0};
    planc_status status = pl_make_absences(evaluator->problem, &rule, room, &next);
    if (!status) status = judge(evaluator, &next, leads, &fits, &next_ns);
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

/* Whether the candidate fits, how long it takes, and what to move ahead. */
static planc_status judge(const planc_evaluator *evaluator, const planc_candidate *candidate, int64_t *leads,
                          bool *out_fits, int64_t *out_ns) {
  const planc_device *device = planc_profile_device(evaluator->problem->job.profile);
  correction c = {&device->links[PLANC_ROUTE_H2D], leads};
  planc_taken taken;
  PLANC_TRY(evaluator->simulate(evaluator, candidate, correct, &c, &taken));
  *out_fits = taken.fits;
  *out_ns = taken.period_ns;
  return NULL;
}

/* --- One run of the simulator ------------------------------------------------------------------------------------- */

/* Moves ahead what the run at `position` had to wait for when compute was free before; `pending` is by residency the
 * copy to it that nothing has read yet, -1 = none. */
static void move_ahead(const correction *c, const planc_simulated *simulated, int32_t *pending, int32_t position) {
  const planc_plan *plan = simulated->plan;
  const planc_instance *instance = planc_order_instance(simulated->order, position);
  const planc_instr *at = &plan->body.instrs[simulated->times[position].instr];
  int64_t free_ns = position > 0 ? simulated->times[position - 1].end_ns : 0;
  for (int32_t k = 0; k < instance->n_accesses; k++) {
    int32_t residency = plan->uses[at->first_use + k];
    int32_t prefetch = residency < 0 ? -1 : pending[residency];
    if (prefetch < 0) continue;
    pending[residency] = -1;
    int64_t step = planc_link_ns(c->h2d, plan->body.instrs[prefetch].bytes) / STEPS + 1;
    int64_t late = simulated->end_ns[prefetch] - free_ns;
    if (late <= 0 || simulated->order->runs[position].recompute) continue;
    int64_t steps = late / step + 1;
    c->leads[instance->first_access + k] += (steps > STEPS ? STEPS : steps) * step;
  }
}

/* By an engine, to where an op may read it: those to other memories are of no op. */
static bool comes_in(const planc_plan *plan, const planc_instr *instr) {
  return instr->op == PLANC_INSTR_copy && instr->id != PLANC_USER &&
         plan->streams[instr->stream].kind == PLANC_STREAM_KIND_copy;
}

static planc_status correct(void *user, const planc_simulated *simulated) {
  const correction *c = user;
  const planc_plan *plan = simulated->plan;
  int32_t *pending = malloc(((size_t)plan->n_residencies + 1) * sizeof *pending);
  if (!pending) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  for (int32_t r = 0; r < plan->n_residencies; r++) pending[r] = -1;
  int32_t i = 0;
  for (int32_t p = 0; p < simulated->order->n; p++) {
    for (; i < simulated->times[p].instr; i++) {
      if (comes_in(plan, &plan->body.instrs[i])) pending[plan->body.instrs[i].id] = i;
    }
    move_ahead(c, simulated, pending, p);
  }
  free(pending);
  return NULL;
}

/* --- What is told ------------------------------------------------------------------------------------------------- */

static planc_status explain(bool alone, int32_t helped, planc_candidate *out) {
  if (alone)
    PLANC_TRY(planc_candidate_explain(out, "swaps wait for each other, as nothing fits with them side by side"));
  if (helped > 0)
    PLANC_TRY(planc_candidate_explain(out, "feedback has made the iteration shorter %d time%s", helped,
                                      helped == 1 ? "" : "s"));
  return NULL;
}
