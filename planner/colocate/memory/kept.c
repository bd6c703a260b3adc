/* What a job keeps (kept.h). */
#include "planner/colocate/memory/kept.h"

#include "util/math.h"

planc_status pl_place_kept(pl_arena *arena, const planc_candidate *candidate, int64_t *residencies, int64_t *top) {
  const planc_schedule *s = candidate->schedule;
  int64_t *of_buffer;
  PLANC_TRY(PL_NEW(arena, &of_buffer, candidate->trace->n_buffers));
  for (int32_t b = 0; b < candidate->trace->n_buffers; b++) of_buffer[b] = PLANC_BLANK;
  for (int32_t r = 0; r < planc_schedule_n_residencies(s); r++) {
    const planc_residency *of = &planc_schedule_residencies(s)[r];
    int32_t buffer = of->buffer;
    if (planc_schedule_is_away(s, r) || !(candidate->trace->buffers[buffer].flags & PLANC_BUFFER_PERSISTENT)) continue;
    if (of_buffer[buffer] == PLANC_BLANK) {
      of_buffer[buffer] = *top;
      *top = pl_align_up(pl_add_saturate(*top, planc_schedule_bytes(s, r)), PLANC_ALIGNMENT);
    }
    residencies[r] = of_buffer[buffer];
  }
  return NULL;
}
