/* Tables of a rehearsal (rehearsal_tables.h). */
#include "planner/auto/rehearsal_tables.h"

#include <stdlib.h>

#include "planner/choose/absences.h"
#include "util/vec.h"

enum { NONE = -1 };

static planc_status make_choices(const pl_auto_gaps *gaps, pl_arena *arena, pl_rehearsal_tables *out);
static planc_status find_writers(const pl_auto_gaps *gaps, pl_arena *arena, pl_rehearsal_tables *out);
static planc_status mark_leaves(const planc_order *order, pl_arena *arena, pl_rehearsal_tables *out);

planc_status pl_rehearsal_tables_make(const pl_auto_gaps *gaps, pl_arena *arena, pl_rehearsal_tables *out) {
  int64_t *bytes;
  PLANC_TRY(PL_NEW(arena, &bytes, gaps->trace->n_buffers));
  for (int32_t b = 0; b < gaps->trace->n_buffers; b++) bytes[b] = pl_walk_bytes(&gaps->trace->buffers[b]);
  out->bytes = bytes;
  PLANC_TRY(make_choices(gaps, arena, out));
  PLANC_TRY(find_writers(gaps, arena, out));
  return mark_leaves(gaps->order, arena, out);
}

/* --- Algorithms --------------------------------------------------------------------------------------------------- */

static int32_t count_choices(const pl_auto_gaps *gaps, int32_t position);
static int32_t add_choices(const pl_auto_gaps *gaps, int32_t position, pl_op_choice *choices);

static planc_status make_choices(const pl_auto_gaps *gaps, pl_arena *arena, pl_rehearsal_tables *out) {
  int32_t *first, n = 0;
  pl_op_choice *choices;
  int64_t most = 0;
  for (int32_t p = 0; p < gaps->order->n; p++) most += count_choices(gaps, p);
  PLANC_TRY(PL_NEW(arena, &choices, most));
  PLANC_TRY(PL_NEW(arena, &first, (int64_t)gaps->order->n + 1));
  for (int32_t p = 0; p < gaps->order->n; p++) {
    first[p] = n;
    n += add_choices(gaps, p, &choices[n]);
  }
  first[gaps->order->n] = n;
  out->choices = choices;
  out->first_choice = first;
  return NULL;
}

static int32_t count_choices(const pl_auto_gaps *gaps, int32_t position) {
  const planc_instance *instance = planc_order_instance(gaps->order, position);
  int32_t count = 1;
  if (instance->role == PLANC_ROLE_OP) (void)pl_variants_of(gaps->walk->costs, instance, &count);
  return count;
}

/* Those that the walk takes (pl_walk_variant) in some room: each the fastest with less than what the one before needs.
 */
static int32_t add_choices(const pl_auto_gaps *gaps, int32_t position, pl_op_choice *choices) {
  int32_t instance = gaps->order->runs[position].instance, n = 0;
  int64_t limit = PL_ROOM_UNLIMITED;
  for (;;) {
    planc_variant variant = pl_walk_variant(gaps->walk, instance, limit);
    if (n > 0 && variant.workspace_bytes > limit) return n; /* it has no less */
    choices[n++] = (pl_op_choice){variant.workspace_bytes, variant.time_ns};
    if (variant.workspace_bytes == 0) return n;
    limit = variant.workspace_bytes - 1;
  }
}

/* --- Versions and ways out ---------------------------------------------------------------------------------------- */

static planc_status find_writers(const pl_auto_gaps *gaps, pl_arena *arena, pl_rehearsal_tables *out) {
  const planc_trace *trace = gaps->trace;
  int32_t *writer, n = gaps->first_version[trace->n_buffers];
  PLANC_TRY(PL_NEW(arena, &writer, n));
  for (int32_t v = 0; v < n; v++) writer[v] = NONE;
  for (int32_t a = 0; a < trace->n_accesses; a++) {
    const planc_access *access = &trace->accesses[a];
    if (access->write >= 0) writer[gaps->first_version[access->buffer] + access->write] = access->instance;
  }
  out->writer = writer;
  return NULL;
}

/* The next use is that of a later position: an op may use a buffer twice. */
static planc_status mark_leaves(const planc_order *order, pl_arena *arena, pl_rehearsal_tables *out) {
  bool *leaves;
  PLANC_TRY(PL_NEW(arena, &leaves, order->trace->n_accesses));
  for (int32_t b = 0; b < order->trace->n_buffers; b++) {
    for (int32_t u = order->first_use[b], next = u; u < order->first_use[b + 1]; u++) {
      while (next < order->first_use[b + 1] && order->uses[next].position <= order->uses[u].position) next++;
      leaves[order->uses[u].access] =
          pl_leaves_until_written(order->trace, true, planc_order_access(order, u),
                                  next < order->first_use[b + 1] ? planc_order_access(order, next) : NULL);
    }
  }
  out->leaves = leaves;
  return NULL;
}
