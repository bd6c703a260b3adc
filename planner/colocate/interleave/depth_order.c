/* Depths (depth_order.h). */
#include "planner/colocate/interleave/depth_order.h"

#include "util/arena.h"

/* What is known of a buffer so far. */
typedef struct met {
  int32_t written; /* the depth of who made the version there is, -1 = nobody in this period */
  int32_t deepest; /* the depth of the deepest that met it, -1 = nobody */
} met;

typedef struct deepening {
  const planc_trace *trace;
  pl_arena arena;
  met *buffers;
  int32_t *depth;   /* by instance */
  int32_t *n_at;    /* by depth */
  int32_t *numbers; /* by position */
} deepening;

static planc_status find_order(deepening *d, planc_order **out);

planc_status pl_depth_order(const planc_trace *trace, planc_order **out) {
  deepening d = {.trace = trace};
  *out = NULL;
  planc_status status = find_order(&d, out);
  pl_arena_free(&d.arena);
  return status;
}

static int32_t depth_of(const deepening *d, const planc_instance *instance) {
  int32_t depth = 0;
  for (int32_t a = instance->first_access; a < instance->first_access + instance->n_accesses; a++) {
    const planc_access *access = &d->trace->accesses[a];
    const met *buffer = &d->buffers[access->buffer];
    if (access->read >= 0 && buffer->written >= depth) depth = buffer->written + 1;
    if (access->write >= 0 && buffer->deepest >= depth) depth = buffer->deepest + 1;
  }
  return depth;
}

static void meet(deepening *d, const planc_instance *instance, int32_t depth) {
  for (int32_t a = instance->first_access; a < instance->first_access + instance->n_accesses; a++) {
    met *buffer = &d->buffers[d->trace->accesses[a].buffer];
    if (d->trace->accesses[a].write >= 0) buffer->written = depth;
    if (depth > buffer->deepest) buffer->deepest = depth;
  }
}

/* Sorted by counting. */
static planc_status find_order(deepening *d, planc_order **out) {
  const planc_trace *trace = d->trace;
  PLANC_TRY(PL_NEW(&d->arena, &d->buffers, trace->n_buffers));
  PLANC_TRY(PL_NEW(&d->arena, &d->depth, trace->n_instances));
  PLANC_TRY(PL_NEW(&d->arena, &d->n_at, (int64_t)trace->n_instances + 1));
  PLANC_TRY(PL_NEW(&d->arena, &d->numbers, trace->n_instances));
  for (int32_t b = 0; b < trace->n_buffers; b++) d->buffers[b] = (met){-1, -1};
  for (int32_t i = 0; i < trace->n_instances; i++) {
    d->depth[i] = depth_of(d, &trace->instances[i]);
    meet(d, &trace->instances[i], d->depth[i]);
    d->n_at[d->depth[i] + 1]++;
  }
  for (int32_t k = 0; k < trace->n_instances; k++) d->n_at[k + 1] += d->n_at[k];
  for (int32_t i = 0; i < trace->n_instances; i++) d->numbers[d->n_at[d->depth[i]]++] = i;
  return planc_order_of_instances(trace, d->numbers, out);
}
