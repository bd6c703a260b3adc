/* `naive`: everything is swapped around every op (Out-of-core training, 1: the naive strategy; its implementation runs
 * the first iteration so). Ahead of an op what it reads comes in, behind it what it touched goes out, and the op next
 * in line waits for both. It needs the least memory of all that only swap, and the most time.
 *
 * What the host has already, since nothing has written it, is dropped without a copy; what the user feeds, too.
 * Parameters and state are swapped as well, but are on the device when a period begins and ends. A gradient that is
 * written anew is dropped as well. Branches need no rule: every access is treated alike. */
#include "planner/choose/absences.h"
#include "planner/policies/policies.h"

static planc_status choose(const void *context, const pl_walk *walk, pl_arena *arena, pl_absences *out);
static bool leave_at_once(const planc_order *order, const planc_gap *gap, pl_absence *absence);

planc_status pl_policy_naive(const planc_evaluator *evaluator, planc_candidate *out) {
  pl_absence_rule rule = {.choose = choose};
  return pl_walk_fit(evaluator, pl_make_absences, &rule, out);
}

static planc_status choose(const void *context, const pl_walk *walk, pl_arena *arena, pl_absences *out) {
  (void)context;
  PLANC_TRY(pl_absences_of_gaps(walk->order, leave_at_once, arena, out));
  return pl_absences_explain(out, arena,
                             "all data leaves behind each op that uses it and is back for the next, %lld time%s",
                             (long long)out->n, out->n == 1 ? "" : "s");
}

static bool leave_at_once(const planc_order *order, const planc_gap *gap, pl_absence *absence) {
  (void)order;
  absence->copy = absence->leave = gap->from;
  absence->fetch = gap->to;
  absence->wait = true;
  return !gap->wraps;
}
