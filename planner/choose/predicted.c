#include "planner/choose/predicted.h"

#include "planner/choose/absences.h"
#include "util/math.h"

planc_status planc_predicted_make(const planc_walk *walk, int64_t timed_room, int64_t live_room, planc_arena *arena,
                                  planc_predicted *out) {
  int32_t n = walk->trace->n_instances;
  int64_t *live;
  planc_absences none = {0};
  PLANC_TRY(PLANC_NEW(arena, &out->start, (int64_t)n + 1));
  PLANC_TRY(PLANC_NEW(arena, &live, n));
  PLANC_TRY(planc_absences_live(walk->trace, &none, live));
  for (int32_t i = 0; i < n; i++) {
    out->start[i + 1] = planc_add_saturate(out->start[i], planc_walk_variant(walk, i, timed_room).time_ns);
    live[i] = planc_add_saturate(live[i], planc_walk_variant(walk, i, live_room).workspace_bytes);
    if (live[i] > INT64_MAX / 2) return planc_error(PLANC_BAD_INPUT, "the sizes of all tensors together overflow");
  }
  return planc_peaks_make(arena, live, n, &out->peaks);
}

int32_t planc_predicted_last(const planc_predicted *predicted, int32_t from, int32_t to, int64_t ns) {
  while (from < to) {
    int32_t middle = from + (to - from + 1) / 2;
    if (predicted->start[middle] <= ns) {
      from = middle;
    } else {
      to = middle - 1;
    }
  }
  return from;
}
