/* Times and peaks of an iteration that swaps nothing (unswapped.h). */
#include "planner/choose/unswapped.h"

#include "planner/choose/absences.h"
#include "util/math.h"

planc_status pl_unswapped_make(const pl_walk *walk, int64_t timed_room, int64_t live_room, pl_arena *arena,
                               pl_unswapped *out) {
  int32_t n = walk->order->n;
  int64_t *live;
  pl_absences none = {0};
  PLANC_TRY(PL_NEW(arena, &out->start, (int64_t)n + 1));
  PLANC_TRY(PL_NEW(arena, &live, n));
  PLANC_TRY(pl_absences_held(walk->order, &none, live));
  for (int32_t p = 0; p < n; p++) {
    int32_t instance = walk->order->runs[p].instance;
    out->start[p + 1] = pl_add_saturate(out->start[p], pl_walk_variant(walk, instance, timed_room).time_ns);
    live[p] = pl_add_saturate(live[p], pl_walk_variant(walk, instance, live_room).workspace_bytes);
    if (live[p] > INT64_MAX / 2) return planc_error(PLANC_BAD_INPUT, "the sizes of all tensors together overflow");
  }
  return pl_peaks_make(arena, live, n, &out->peaks);
}

int32_t pl_unswapped_last(const pl_unswapped *unswapped, int32_t from, int32_t to, int64_t ns) {
  while (from < to) {
    int32_t middle = from + (to - from + 1) / 2;
    if (unswapped->start[middle] <= ns) {
      from = middle;
    } else {
      to = middle - 1;
    }
  }
  return from;
}
