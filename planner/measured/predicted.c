/* Predicted spans (predicted.h). */
#include "planner/measured/predicted.h"

#include "planc/simulate.h"
#include "planner/measured/awaited.h"

typedef struct taking {
  int32_t *timed_of; /* by instruction of the body */
  planc_span *spans;
} taking;

static void take(void *user, const planc_plan *plan, const planc_instr *instr, int64_t start_ns, int64_t end_ns) {
  const taking *t = user;
  t->spans[t->timed_of[instr - plan->body.instrs]] = (planc_span){start_ns, end_ns};
}

planc_status pl_simulated_spans(const planc_plan *plan, const planc_timeline *timeline, pl_arena *arena,
                                pl_predicted *out) {
  taking t;
  planc_simulation simulation;
  PLANC_TRY(pl_timed_of(plan, timeline, arena, &t.timed_of));
  PLANC_TRY(PL_NEW(arena, &t.spans, timeline->n_timed));
  planc_simulate_options options = {.settled = plan->n_jobs > 1, .visitor = take, .user = &t};
  PLANC_TRY(planc_simulate(plan, &options, &simulation));
  *out = (pl_predicted){simulation.period_ns, t.spans};
  return NULL;
}
