/* Times alone (alone.h): the simulator's slow-down taken back (simulate.c). While a copy runs compute is slowed by
 * slowdown_ppm, and while copies run in both directions each goes on at duplex_ppm of its speed. */
#include "planner/measured/alone.h"

#include <stdlib.h>

#include "planner/simulate/plan_streams.h"
#include "util/arena.h"
#include "util/math.h"
#include "util/median.h"
#include "util/vec.h"

enum { PPM = 1000000 };

/* The time that some spans cover: disjoint parts in order, and how much of it lies before each. */
typedef VEC(planc_span) span_list;
typedef struct cover {
  span_list parts;
  VEC(int64_t) before;
} cover;

/* Of copies in each direction, and of all these. */
enum { ANY = 2, N_COVERS };

/* --- Covers --------------------------------------------------------------------------------------------------- */

static int by_begin(const void *a, const void *b) {
  int64_t x = ((const planc_span *)a)->begin_ns, y = ((const planc_span *)b)->begin_ns;
  return (x > y) - (x < y);
}

/* Joins what overlaps, and sums up. */
static planc_status close_cover(cover *c) {
  span_list *parts = &c->parts;
  int64_t n = 0, covered = 0;
  if (parts->len > 0) qsort(parts->data, (size_t)parts->len, sizeof *parts->data, by_begin);
  for (int64_t i = 0; i < parts->len; i++) {
    if (n > 0 && parts->data[i].begin_ns <= parts->data[n - 1].end_ns) {
      if (parts->data[i].end_ns > parts->data[n - 1].end_ns) parts->data[n - 1].end_ns = parts->data[i].end_ns;
    } else {
      parts->data[n++] = parts->data[i];
    }
  }
  parts->len = n;
  for (int64_t i = 0; i < n; i++) {
    VEC_PUSH(&c->before, covered);
    covered += parts->data[i].end_ns - parts->data[i].begin_ns;
  }
  return NULL;
}

/* How much is covered before `at`. */
static int64_t covered_before(const cover *c, int64_t at) {
  int64_t low = 0, high = c->parts.len;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (c->parts.data[middle].begin_ns < at) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return 0;
  const planc_span *last = &c->parts.data[low - 1];
  return c->before.data[low - 1] + (at < last->end_ns ? at : last->end_ns) - last->begin_ns;
}

static planc_status cover_copies(const planc_timeline *timeline, const planc_plan *plan, const planc_acquired *acquired,
                                 cover covers[N_COVERS]) {
  for (int64_t p = 0; p < timeline->n_periods; p++) {
    for (int32_t k = 0; k < timeline->n_timed; k++) {
      const planc_instr *instr = &plan->body.instrs[timeline->instrs[k]];
      int direction = planc_instr_direction(plan, acquired, instr);
      if (direction < 0) continue;
      planc_span span = timeline->spans[p * timeline->n_timed + k];
      VEC_PUSH(&covers[direction].parts, span);
      VEC_PUSH(&covers[ANY].parts, span);
    }
  }
  for (int32_t c = 0; c < N_COVERS; c++) PLANC_TRY(close_cover(&covers[c]));
  return NULL;
}

/* --- Times ---------------------------------------------------------------------------------------------------- */

/* Copies that are neither to nor from a GPU are slowed by nothing that is known here. */
static int64_t alone(const planc_plan *plan, const planc_acquired *acquired, const planc_instr *instr, planc_span span,
                     const cover covers[N_COVERS]) {
  bool copy = planc_instr_is_copy(plan, instr);
  int direction = planc_instr_direction(plan, acquired, instr);
  if (copy && direction < 0) return span.end_ns - span.begin_ns;
  const cover *beside = &covers[copy ? !direction : ANY];
  int64_t both = covered_before(beside, span.end_ns) - covered_before(beside, span.begin_ns);
  int64_t worth = copy ? planc_muldiv_floor(both, plan->device.duplex_ppm, PPM)
                       : planc_muldiv_floor(both, PPM, PPM + plan->device.slowdown_ppm);
  return span.end_ns - span.begin_ns - both + worth;
}

static planc_status find_times(const planc_timeline *timeline, const planc_plan *plan, int32_t first,
                               cover covers[N_COVERS], planc_arena *scratch, int64_t *out_ns) {
  planc_acquired *acquired;
  int64_t *values;
  PLANC_TRY(planc_plan_acquired(plan, scratch, &acquired));
  PLANC_TRY(PLANC_NEW(scratch, &values, timeline->n_periods));
  PLANC_TRY(cover_copies(timeline, plan, acquired, covers));
  for (int32_t k = 0; k < timeline->n_timed; k++) {
    const planc_instr *instr = &plan->body.instrs[timeline->instrs[k]];
    for (int64_t p = first; p < timeline->n_periods; p++)
      values[p - first] = alone(plan, acquired, instr, timeline->spans[p * timeline->n_timed + k], covers);
    out_ns[k] = planc_median(values, timeline->n_periods - first);
  }
  return NULL;
}

planc_status planc_alone_times(const planc_timeline *timeline, const planc_plan *plan, int32_t first, int64_t *out_ns) {
  cover covers[N_COVERS] = {0};
  planc_arena scratch = {0};
  planc_status status = find_times(timeline, plan, first, covers, &scratch, out_ns);
  for (int32_t c = 0; c < N_COVERS; c++) {
    VEC_FREE(&covers[c].parts);
    VEC_FREE(&covers[c].before);
  }
  planc_arena_free(&scratch);
  return status;
}
