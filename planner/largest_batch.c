/* The largest batch that a policy can plan (policy.h).
 *
 * Most need more memory the larger the batch, but nothing makes them: heuristics may fail where they succeed with a few
 * samples more. So the border that bisection finds is checked: batches spread evenly below it must have plans, those
 * above it none. Where one above has, the search goes on from there; the least one below that has none is reported. */
#include "planc/policy.h"

enum { LARGEST = INT32_MAX, CHECKS = 7, IN_A_ROW = 2 };

typedef struct search {
  const planc_problem *problem;
  const planc_policy *policy;
  planc_batch_visitor visitor;
  void *user;
  planc_largest_batch *found;
  int64_t least_failing; /* of those tried; 0: none failed */
} search;

/* Keeps the largest. */
static void note_fit(planc_largest_batch *found, int64_t batch, const planc_plan *plan) {
  if (batch <= found->batch) return;
  found->batch = batch;
  found->iteration_ns = plan->predicted.iteration_ns;
}

/* Whether there is a plan, and in how many rounds. A batch that overflows sizes or times has none. */
static planc_status try_batch(search *s, int64_t batch, bool *out_fits, int32_t *out_rounds) {
  if (s->visitor) s->visitor(s->user, batch);
  planc_problem at = *s->problem;
  at.batch = batch;
  if (at.sub_batch > batch) at.sub_batch = batch;
  planc_plan *plan = NULL;
  planc_status status = planc_make_plan(&at, s->policy, &plan);
  s->found->tried++;
  *out_fits = !status;
  *out_rounds = plan ? plan->jobs[0].n_rounds : 0;
  if (!status) note_fit(s->found, batch, plan);
  planc_plan_free(plan);
  if (!status) return NULL;
  planc_code code = planc_status_code(status);
  if (code != PLANC_INFEASIBLE && code != PLANC_USAGE && code != PLANC_BAD_INPUT) return status;
  planc_status_free(status);
  if (s->least_failing == 0 || batch < s->least_failing) s->least_failing = batch;
  return NULL;
}

/* Doubles the batch until two in a row have no plan, or have one in rounds: more samples are then more rounds.
 * *out_over is the first that fails beyond all that fit. */
static planc_status bracket(search *s, int64_t *out_over) {
  int32_t misses = 0, in_rounds = 0, rounds;
  bool fits;
  for (int64_t batch = 1; misses < IN_A_ROW && in_rounds < IN_A_ROW && batch <= LARGEST; batch *= 2) {
    PLANC_TRY(try_batch(s, batch, &fits, &rounds));
    if (!fits && misses == 0) *out_over = batch;
    misses = fits ? 0 : misses + 1;
    in_rounds = rounds > 1 ? in_rounds + 1 : 0;
  }
  s->found->unbounded = misses == 0;
  return NULL;
}

/* Closes in on a border between the largest batch that has a plan and `over`, which has none. */
static planc_status bisect(search *s, int64_t over) {
  int32_t rounds;
  bool fits;
  while (over - s->found->batch > 1) {
    int64_t middle = s->found->batch + (over - s->found->batch) / 2;
    PLANC_TRY(try_batch(s, middle, &fits, &rounds));
    if (!fits) over = middle;
  }
  return NULL;
}

/* Goes down from `over` to the border. *out_over is the batch below which the search has to go on, 0 if nothing above
 * the border has a plan. */
static planc_status check_above(search *s, int64_t over, int64_t *out_over) {
  int64_t border = s->found->batch, failing = over;
  int32_t rounds;
  bool fits = false;
  *out_over = 0;
  for (int32_t k = CHECKS; k > 0 && !fits; k--) {
    int64_t batch = border + (over - border) * k / (CHECKS + 1);
    if (batch >= failing || batch <= border + 1) continue; /* the one above the border is known */
    PLANC_TRY(try_batch(s, batch, &fits, &rounds));
    if (fits) *out_over = failing;
    failing = batch;
  }
  return NULL;
}

static planc_status check_below(search *s) {
  int64_t border = s->found->batch, before = 0;
  int32_t rounds;
  bool fits;
  for (int32_t k = 1; k <= CHECKS; k++) {
    int64_t batch = border * k / (CHECKS + 1);
    if (batch == before) continue;
    before = batch;
    PLANC_TRY(try_batch(s, batch, &fits, &rounds));
  }
  return NULL;
}

planc_status planc_find_largest_batch(const planc_problem *problem, const planc_policy *policy,
                                      planc_batch_visitor visitor, void *user, planc_largest_batch *out) {
  *out = (planc_largest_batch){0};
  search s = {.problem = problem, .policy = policy, .visitor = visitor, .user = user, .found = out};
  if (policy->supports & PLANC_POLICY_SIMULATED) {
    out->unbounded = true;
    return NULL;
  }
  int64_t over = 0;
  PLANC_TRY(bracket(&s, &over));
  if (!out->unbounded && out->batch > 0) {
    for (int64_t next = over; next > 0;) {
      PLANC_TRY(bisect(&s, next));
      PLANC_TRY(check_above(&s, over, &next));
    }
    PLANC_TRY(check_below(&s));
  }
  out->fails_at = s.least_failing < out->batch ? s.least_failing : 0;
  return NULL;
}
