/* Gaps of a plan: what became of data between two uses, and what a reader needs to see why. */
#ifndef PLANC_PLAN_GAPS_H
#define PLANC_PLAN_GAPS_H

#include "planc/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What became of the data: X(id, word). */
#define PLANC_GAP_WAYS(X)                                                       \
  X(KEPT, "kept")     /* it kept its place on the device, or was moved there */ \
  X(COPIED, "copied") /* it left the device and was copied in again */          \
  X(AGAIN, "again")   /* it left, and the op that wrote it ran again */
typedef enum planc_gap_way {
#define X(id, word) PLANC_GAP_##id,
  PLANC_GAP_WAYS(X)
#undef X
      PLANC_N_GAP_WAYS
} planc_gap_way;

/* Data of one buffer between two ops that use it, behind each other in the body; what persists has one more, from its
 * last use to the first one of the next period. Names are borrowed from the plan; of one with several jobs they have
 * the job before them. Times are those of a steady period as simulated. */
typedef struct planc_plan_gap {
  const char *name;       /* the storage */
  int32_t buffer;         /* of the plan's trace */
  int32_t job, iteration; /* iteration and round: -1 where the buffer spans all of them */
  int32_t round;
  int64_t bytes;
  int32_t from, to; /* the uses: execs, as indices into the body; to <= from: of the next period */
  const char *from_op, *to_op;
  planc_gap_way way;
  int64_t between_ns; /* from the end of the one use to the start of the other */
  int64_t away_ns;    /* that it had no place on the device; 0 of what is kept */
  int64_t copies_ns;  /* a copy in, and one out unless the host has it, each alone on its link: made, or forgone */
  int64_t again_ns; /* of running the op that wrote it again, alone; -1: that would not restore it. Of what was computed
                       again: of the ops that wrote it, those left out that restore their inputs */
  int64_t waited_ns;   /* compute waited so long for the copy in */
  int64_t free_bytes;  /* the least that is left of the device's budget at any op while it is away, or, of what is kept,
                          between the uses */
  const char *free_op; /* there */
} planc_plan_gap;

typedef struct planc_plan_gaps {
  int32_t n;
  const planc_plan_gap *gaps; /* by bytes times between_ns, most first; those without an op in between are not there */
} planc_plan_gaps;

/* Of a plan that planc_check accepts. USAGE and BAD_INPUT as planc_simulate. */
planc_status planc_plan_gaps_of(const planc_plan *plan, planc_plan_gaps **out);
void planc_plan_gaps_free(planc_plan_gaps *gaps);
const char *planc_gap_way_name(planc_gap_way way);

#ifdef __cplusplus
}
#endif

#endif
