/* What the rounds of a job have in common, worked out before they are expanded: which storages an op touches and how,
 * how long each storage's buffers last, which gradients need a temporary. What does not depend on the job is worked out
 * once for all jobs of a graph; the rest takes no more than the job's ops have operands. */
#ifndef PLANC_GRAPH_JOBPLAN_H
#define PLANC_GRAPH_JOBPLAN_H

#include "planc/trace.h"
#include "util/arena.h"

/* What an op does with one storage in any round: its operands on that storage taken together. */
typedef struct pl_touch {
  int32_t slot; /* of the storage, see below */
  uint32_t how;
} pl_touch;
enum {
  PL_TOUCH_READ = 1,    /* an input */
  PL_TOUCH_WRITE = 2,   /* an output */
  PL_TOUCH_PARTIAL = 4, /* an output smaller than the storage: the rest must be kept */
  PL_TOUCH_EFFECT = 8   /* a side effect */
};

/* What the ops of a graph touch. Storages that no op touches are left out: the others have slots. */
typedef struct pl_touches {
  const planc_graph *graph;
  int32_t n_round_ops; /* forward and backward: the first ones of any order */
  int32_t n_touches, n_slots;
  int32_t *first_touch; /* of op o: touches[first_touch[o]] up to, not including, the next first */
  pl_touch *touches;
  int32_t *storages; /* by slot */
  bool *results;     /* by slot: a loss or output is in it */
} pl_touches;

/* How long a storage's buffers last. */
typedef enum pl_scope { PL_SCOPE_UNTOUCHED, PL_SCOPE_ROUND, PL_SCOPE_ITERATION, PL_SCOPE_PERIOD } pl_scope;

typedef struct pl_storage_use {
  pl_scope scope;
  bool adds_in_place;    /* gradient: a single op of a round touches it, and that op can add */
  bool redirected;       /* gradient: rounds after the first work on a temporary buffer */
  int32_t n_touches;     /* gradient: by forward and backward ops of a round */
  int32_t last_position; /* of these the last one's position in the order */
  int32_t last_writer;   /* of these the last op that writes */
} pl_storage_use;

/* A job as it is the same in all its rounds. */
typedef struct pl_job_plan {
  const planc_job *job;
  const pl_touches *of; /* of its graph */
  const int32_t *order;
  int32_t n_redirected;
  pl_storage_use *uses; /* by slot */
} pl_job_plan;

static inline const planc_storage *pl_slot_storage(const pl_job_plan *plan, int32_t slot) {
  return &plan->job->graph->storages[plan->of->storages[slot]];
}
static inline bool pl_touch_writes(const pl_touch *touch) {
  return touch->how & (PL_TOUCH_WRITE | PL_TOUCH_EFFECT);
}

planc_status pl_touches_make(pl_arena *arena, const planc_graph *graph, pl_touches *out);
/* Fills the zeroed *plan for a job whose numbers are checked; `of` is borrowed. Fails with BAD_INPUT on an illegal
 * order and on a graph that cannot be cut into the job's rounds. */
planc_status pl_job_plan_make(pl_arena *arena, const planc_job *job, const pl_touches *of, pl_job_plan *plan);

/* How long the arrays of a trace are; INT64_MAX stands for any number that is too large. */
typedef struct pl_trace_size {
  int64_t instances, accesses, buffers;
} pl_trace_size;
/* Adds what the job makes of it. */
void pl_job_plan_count(const pl_job_plan *plan, pl_trace_size *size);

#endif
