/* The largest batch that a policy can plan (policy.h).
 *
 * Most need more memory the larger the batch, but nothing makes them: heuristics may fail where they succeed with a few
 * samples more. So the border that bisection finds is checked: batches spread evenly below it must have plans, those
 * above it none. Where one above has, the search goes on from there; the least one below that has none is reported. The
 * problem's own batch is tried as well, so that the answer never contradicts it. */
#include "plan/one_job.h"
#include "planc/policy.h"

enum { LARGEST = INT32_MAX, CHECKS = 7, IN_A_ROW = 2, MANY_ROUNDS = 64 };

typedef struct batch_search {
  const planc_problem *problem;
  const planc_policy *policy;
  planc_batch_visitor visitor;
  void *user;
  planc_largest_batch *found;
  int64_t least;         /* the smallest that there is: one round of the size asked for */
  int64_t least_failing; /* of those tried; 0: none failed */
  bool knows_own;        /* the problem's own batch was tried */
} batch_search;

/* A batch that was tried. */
typedef struct attempt {
  bool fits;
  int32_t rounds; /* 0: it does not fit */
  int64_t peaks[PLANC_N_BUDGETS];
} attempt;

static planc_status bracket_with_own(batch_search *s, int64_t *out_over);
static planc_status bisect(batch_search *s, int64_t over);
static planc_status check_above(batch_search *s, int64_t over, int64_t *out_over);
static planc_status check_below(batch_search *s);
static planc_status bracket(batch_search *s, int64_t from, int64_t *out_over);
static planc_status try_batch(batch_search *s, int64_t batch, attempt *out);

planc_status planc_find_largest_batch(const planc_problem *problem, const planc_policy *policy,
                                      planc_batch_visitor visitor, void *user, planc_largest_batch *out) {
  *out = (planc_largest_batch){0};
  batch_search s = {.problem = problem, .policy = policy, .visitor = visitor, .user = user, .found = out};
  s.least = problem->job.sub_batch > 0 ? problem->job.sub_batch : 1;
  if (policy->supports & PLANC_POLICY_SIMULATED) {
    out->unbounded = true;
    return NULL;
  }
  int64_t over;
  PLANC_TRY(bracket_with_own(&s, &over));
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

/* Brackets the border with the problem's own batch on the right side of it. *out_over is 0 where nothing beyond what
 * fits failed. */
static planc_status bracket_with_own(batch_search *s, int64_t *out_over) {
  int64_t own = s->problem->job.batch;
  attempt it;
  *out_over = 0;
  PLANC_TRY(bracket(s, s->least, out_over));
  if (s->knows_own || own < s->least) return NULL;
  PLANC_TRY(try_batch(s, own, &it));
  if (it.fits) return !s->found->unbounded && own > *out_over ? bracket(s, 2 * own, out_over) : NULL;
  if (!s->found->unbounded || own <= s->found->batch) return NULL;
  s->found->unbounded = false;
  *out_over = own;
  return NULL;
}

/* Keeps the largest. */
static void note_fit(planc_largest_batch *found, int64_t batch, const planc_plan *plan) {
  if (batch <= found->batch) return;
  found->batch = batch;
  found->iteration_ns = plan->predicted.period_ns;
}

static void read_plan(const planc_plan *plan, attempt *out) {
  out->fits = true;
  out->rounds = pl_plan_job(plan)->n_rounds;
  for (int32_t m = 0; m < PLANC_N_BUDGETS; m++) out->peaks[m] = plan->predicted.peak_bytes[m];
}

/* A batch that overflows sizes or times has no plan. */
static planc_status try_batch(batch_search *s, int64_t batch, attempt *out) {
  if (s->visitor) s->visitor(s->user, batch);
  planc_problem at = *s->problem;
  at.job.batch = batch;
  planc_plan *plan = NULL;
  planc_status status = planc_make_plan(&at, s->policy, &plan);
  s->found->tried++;
  if (batch == s->problem->job.batch) s->knows_own = true;
  *out = (attempt){.fits = false};
  if (!status) {
    read_plan(plan, out);
    note_fit(s->found, batch, plan);
    planc_plan_free(plan);
    return NULL;
  }
  planc_code code = planc_status_code(status);
  if (code != PLANC_INFEASIBLE && code != PLANC_USAGE && code != PLANC_BAD_INPUT) return status;
  planc_status_free(status);
  if (s->least_failing == 0 || batch < s->least_failing) s->least_failing = batch;
  return NULL;
}

/* Whether one needs more than the other of a memory that has a limit. */
static bool needs_more(const planc_problem *problem, const attempt *one, const attempt *other) {
  for (int32_t m = 0; m < PLANC_N_BUDGETS; m++)
    if (problem->terms.budgets[m] >= 0 && one->peaks[m] > other->peaks[m]) return true;
  return false;
}

/* Doubles the batch until two in a row have no plan, or have one in rounds and the larger needs no more memory: more
 * samples are then more rounds. Of many rounds the memory is not asked about: still more take long to plan. *out_over
 * is the first that fails beyond all that fit. */
static planc_status bracket(batch_search *s, int64_t from, int64_t *out_over) {
  int32_t misses = 0, in_rounds = 0;
  attempt now = {.fits = false}, before;
  for (int64_t batch = from; misses < IN_A_ROW && in_rounds < IN_A_ROW && batch <= LARGEST; batch *= 2) {
    before = now;
    PLANC_TRY(try_batch(s, batch, &now));
    if (!now.fits && misses == 0) *out_over = batch;
    misses = now.fits ? 0 : misses + 1;
    if (in_rounds > 0 && now.rounds < MANY_ROUNDS && needs_more(s->problem, &now, &before)) in_rounds = 0;
    in_rounds = now.rounds > 1 ? in_rounds + 1 : 0;
  }
  s->found->unbounded = misses == 0;
  return NULL;
}

/* Closes in on a border between the largest batch that has a plan and `over`, which has none. */
static planc_status bisect(batch_search *s, int64_t over) {
  attempt it;
  while (over - s->found->batch > 1) {
    int64_t middle = s->found->batch + (over - s->found->batch) / 2;
    PLANC_TRY(try_batch(s, middle, &it));
    if (!it.fits) over = middle;
  }
  return NULL;
}

/* Goes down from `over` to the border. *out_over is the batch below which the search has to go on, 0 if nothing above
 * the border has a plan. */
static planc_status check_above(batch_search *s, int64_t over, int64_t *out_over) {
  int64_t border = s->found->batch, failing = over;
  attempt it = {.fits = false};
  *out_over = 0;
  for (int32_t k = CHECKS; k > 0 && !it.fits; k--) {
    int64_t batch = border + (over - border) * k / (CHECKS + 1);
    if (batch >= failing || batch <= border + 1) continue; /* the one above the border is known */
    PLANC_TRY(try_batch(s, batch, &it));
    if (it.fits) *out_over = failing;
    failing = batch;
  }
  return NULL;
}

static planc_status check_below(batch_search *s) {
  int64_t border = s->found->batch, before = 0;
  attempt it;
  for (int32_t k = 1; k <= CHECKS; k++) {
    int64_t batch = border * k / (CHECKS + 1);
    if (batch == before || batch < s->least) continue;
    before = batch;
    PLANC_TRY(try_batch(s, batch, &it));
  }
  return NULL;
}
