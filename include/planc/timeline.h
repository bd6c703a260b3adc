/* Timelines: when each timed instruction of a plan's body (exec, copy) ran in several periods that
 * planrun measured, and how that compares with what the simulator predicts. Form of the file: planrun(1), RUN TRACE. */
#ifndef PLANC_TIMELINE_H
#define PLANC_TIMELINE_H

#include "planc/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline bool planc_instr_is_timed(const planc_instr *instr) {
  return instr->op == PLANC_INSTR_exec || instr->op == PLANC_INSTR_copy;
}

typedef struct planc_span {
  int64_t start_ns, end_ns;
} planc_span;

/* The form of the file, which its header names: only this one is read. */
#define PLANC_TIMELINE_VERSION "trace/2"

/* A timeline spans at most 2^42 microseconds, 51 days: up to there doubles of microseconds, which is what readers of
 * JSON make of them, tell nanoseconds apart. */
#define PLANC_TIMELINE_MAX_NS (INT64_C(1000) << 42)
/* The most bytes of a file. */
#define PLANC_TIMELINE_MAX_BYTES (INT64_C(1) << 28)

typedef struct planc_timeline {
  int64_t first_period;
  int32_t n_periods;       /* consecutive, at least 1 */
  int32_t n_timed;         /* timed instructions of the body, at least 1 */
  const int32_t *instrs;   /* their indices in the body, ascending */
  const planc_span *spans; /* of period p and timed instruction k: spans[(int64_t)p * n_timed + k] */
} planc_timeline;

/* The first period that tells how long things take. Of several the first is not steady: what a run sets up is in it,
 * and what ran beside its beginning is not known. */
static inline int32_t planc_timeline_first_steady(const planc_timeline *timeline) {
  return timeline->n_periods > 1;
}

/* Reads a timeline that was measured with `plan`. BAD_INPUT: "path: place: what"; STALE when it belongs to another
 * plan. On each stream spans follow each other in the plan's order without overlap. */
planc_status planc_timeline_read(const char *path, const planc_plan *plan, planc_timeline **out);
planc_status planc_timeline_parse(const char *text, size_t length, const char *path, const planc_plan *plan,
                                  planc_timeline **out);
void planc_timeline_free(planc_timeline *timeline);

/* --- Predicted and measured --------------------------------------------------------------------------------------- */

/* Ops of a type, or copies of a direction with the hand-overs around them: the sum over a period. */
typedef struct planc_class_times {
  const char *name; /* of the op type, borrowed from the plan; or "accumulate", "move", "copy in", "copy out",
                       "copy to storage", "copy from storage", "copy" */
  int32_t count;    /* instructions of a period */
  int64_t predicted_ns, measured_ns;
} planc_class_times;

/* What a compute stream did while nothing ran on it: it waited for a copy, by its route and with that route's number,
 * or for another compute stream; the rest is launches, other hand-overs between streams, and what cannot be known. */
typedef enum planc_idle_cause {
#define X(id, ...) PLANC_IDLE_##id = PLANC_ROUTE_##id,
  PLANC_ROUTES(X)
#undef X
      PLANC_IDLE_COMPUTE = PLANC_N_ROUTES, /* another compute stream; the number behind the routes' */
  PLANC_IDLE_OTHER,
  PLANC_N_IDLE_CAUSES
} planc_idle_cause;

typedef struct planc_stream_times {
  int32_t stream; /* a compute stream of the plan */
  int64_t predicted_busy_ns, measured_busy_ns;
  int64_t predicted_idle_ns[PLANC_N_IDLE_CAUSES], measured_idle_ns[PLANC_N_IDLE_CAUSES];
} planc_stream_times;

/* Measured times are medians over the periods from the first steady one on. A period starts with its first work on a
 * compute stream (where there is none, on any) and lasts until the next one starts, which of the last is not known: it
 * counts only where no other steady one is there, and lasts until its last work ends. Idle times before a single
 * period's first work on a stream are not known and count nothing. */
typedef struct planc_comparison {
  int64_t predicted_ns, measured_ns, least_ns, most_ns; /* of a period; measured: median, least, most */
  int64_t predicted_as_measured_ns;                     /* a period as simulated with the ops' measured times */
  int32_t n_classes, n_streams;
  const planc_class_times *classes;  /* by predicted time, longest first */
  const planc_stream_times *streams; /* by stream */
} planc_comparison;

planc_status planc_timeline_compare(const planc_plan *plan, const planc_timeline *timeline, planc_comparison **out);
void planc_comparison_free(planc_comparison *comparison);

#ifdef __cplusplus
}
#endif

#endif
