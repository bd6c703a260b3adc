/* What the simulator predicts of a plan's timed instructions. */
#ifndef PLANC_MEASURED_PREDICTED_H
#define PLANC_MEASURED_PREDICTED_H

#include "planc/timeline.h"
#include "util/arena.h"

/* The steady period: one before which the same has run. */
typedef struct pl_predicted {
  int64_t period_ns;
  planc_span *spans; /* by timed instruction */
} pl_predicted;

/* Of the timed instructions that a timeline of the plan has. */
planc_status pl_simulated_spans(const planc_plan *plan, const planc_timeline *timeline, pl_arena *arena,
                                pl_predicted *out);

#endif
