/* Policies that keep everything on the device: `none`, the plan without any swapping, and `ideal`, moDNN's yardstick of
 * a device on which all data fits (V), which is only ever simulated. */
#include "planner/choose/sub_batch.h"
#include "planner/choose/walk.h"
#include "planner/policies/policies.h"

/* What of a job is planned: rounds of so many samples, in the order that `orderer` makes of them. */
typedef struct asked {
  int64_t sub_batch;
  pl_orderer orderer; /* NULL: the trace's */
} asked;

static planc_status make(const planc_problem *problem, const void *context, pl_walk_room room, planc_candidate *out);
static planc_status set_order(const asked *a, planc_candidate *out);
static planc_status run(pl_walk *walk, void *context);

planc_status pl_make_resident(const planc_evaluator *evaluator, int64_t sub_batch, pl_orderer orderer,
                              planc_candidate *out) {
  asked a = {.sub_batch = sub_batch, .orderer = orderer};
  return pl_walk_fit(evaluator, make, &a, out);
}

static planc_status make(const planc_problem *problem, const void *context, pl_walk_room room, planc_candidate *out) {
  const asked *a = context;
  pl_walk walk;
  PLANC_TRY(planc_candidate_rounds(problem, a->sub_batch, out));
  PLANC_TRY(set_order(a, out));
  PLANC_TRY(pl_walk_start(&walk, problem, room, out));
  return pl_walk_run(&walk, run, NULL);
}

static planc_status set_order(const asked *a, planc_candidate *out) {
  if (!a->orderer) return NULL;
  planc_order_free(out->order);
  out->order = NULL;
  return a->orderer(out->trace, &out->order);
}

static planc_status run(pl_walk *walk, void *context) {
  (void)context;
  PLANC_TRY(pl_walk_boundary(walk, NULL));
  for (int32_t p = 0; p < walk->order->n; p++) {
    const planc_instance *in = planc_order_instance(walk->order, p);
    PLANC_TRY(pl_walk_reach(walk, p));
    for (int32_t k = 0; k < in->n_accesses; k++)
      PLANC_TRY(pl_walk_make_ready(walk, &walk->trace->accesses[in->first_access + k]));
    PLANC_TRY(pl_walk_exec(walk, walk->order->runs[p].instance, false));
    PLANC_TRY(pl_walk_close_dead(walk, p));
  }
  return planc_schedule_finish(walk->schedule);
}

planc_status pl_policy_none(const planc_evaluator *evaluator, planc_candidate *out) {
  return pl_make_resident(evaluator, pl_sub_batch_asked(evaluator->problem), NULL, out);
}

planc_status pl_policy_ideal(const planc_evaluator *evaluator, planc_candidate *out) {
  asked a = {.sub_batch = pl_sub_batch_asked(evaluator->problem)};
  return make(evaluator->problem, &a, (pl_walk_room){PL_ROOM_UNLIMITED, PL_RECEIVES_AT_ONCE}, out);
}
