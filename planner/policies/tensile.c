/* `tensile`: TENSILE (papers/002), Algorithm 3: swaps of single tensors, versions of buffers here, that cost no time,
 * across iterations too, and recompute where they do not suffice.
 *
 * All is decided on the predicted iteration: instances one after the other, with the profile's times. Rounds follow, in
 * each of which the instance with the most bytes is found (Algorithm 1) and one version that lives there is swapped
 * (tensile_swap.c). As much is saved as the link leaves time for, whatever the budget: only when no swap is left and
 * the peak is still beyond the room there is, versions are computed again (tensile_recompute.c). What nothing reads
 * again is released (absences.h).
 *
 * The paper states an event as an access and a delay behind it; here that is the boundary between ops at which the
 * delay is over by the predicted times, and events order what happens. Memory is counted accordingly: until the op
 * during which a swap-out ends (case 4 of IV-B), and, other than in the paper, from the op at which a swap-in begins,
 * since the place is needed then (case 3). A parameter is one buffer that is updated in place (case 2).
 *
 * Rounds end when nothing can be scheduled, or, in a rule of the authors' program, when there were more than 100 and
 * the peak hardly falls any more; here that is by less than 0.05 % in 100 rounds. Without a limit of memory the fastest
 * algorithms run and their workspace counts in the peak; in a room, workspace is what fits beside the data. */
#include "planner/policies/tensile.h"

#include "planner/policies/policies.h"
#include "util/math.h"

static planc_status swap_all(tensile *t);
static planc_status recompute_what_is_needed(tensile *t, pl_arena *arena);
static planc_status state(const tensile *t, pl_arena *arena, pl_absences *out);
static int64_t peak_bytes(const tensile *t);

planc_status pl_policy_tensile(const planc_evaluator *evaluator, planc_candidate *out) {
  pl_absence_rule rule = {.choose = tensile_choose, .context = evaluator->problem};
  return pl_walk_fit(evaluator, pl_make_absences, &rule, out);
}

planc_status tensile_choose(const void *context, const pl_walk *walk, pl_arena *arena, pl_absences *out) {
  const planc_problem *problem = context;
  tensile t = {.walk = walk, .trace = walk->trace, .order = walk->order};
  t.rate_ppm = problem->job.swap_rate ? problem->job.swap_rate : PLANC_STANDARD_swap_rate;
  planc_status status = tensile_make_unswapped(&t, arena);
  if (!status) status = tensile_set_up_swaps(&t, arena);
  if (!status && walk->swaps) status = swap_all(&t);
  if (!status && walk->recomputes) status = recompute_what_is_needed(&t, arena);
  if (!status) status = state(&t, arena, out);
  if (!status)
    status = pl_absences_explain(out, arena,
                                 "%lld tensors are swapped, as far as the link has time for, and %lld computed again",
                                 (long long)t.n_swapped, (long long)t.n_recomputed);
  tensile_free(&t);
  return status;
}

void tensile_free(tensile *t) {
  pl_covers_free(&t->by_size.covers);
  pl_covers_free(&t->by_saving.covers);
  pl_link_time_free(&t->link);
}

/* --- Rounds (IV-F) ------------------------------------------------------------------------------------------------ */

enum { PATIENCE = 100, LEAST_DROP_PPM = 500 };

static planc_status swap_all(tensile *t) {
  int64_t before = peak_bytes(t);
  bool taken = true;
  for (int64_t round = 1; taken && peak_bytes(t) > 0; round++) {
    PLANC_TRY(tensile_swap(t, tensile_peak(t), &taken));
    if (round % PATIENCE != 0) continue;
    if (before - peak_bytes(t) < pl_muldiv_floor(before, LEAST_DROP_PPM, PL_PPM)) break;
    before = peak_bytes(t);
  }
  return NULL;
}

static planc_status recompute_what_is_needed(tensile *t, pl_arena *arena) {
  bool taken = peak_bytes(t) > t->walk->room;
  if (taken) PLANC_TRY(tensile_set_up_recomputes(t, arena));
  while (taken && peak_bytes(t) > t->walk->room) PLANC_TRY(tensile_recompute(t, tensile_peak(t), &taken));
  return NULL;
}

static planc_status state(const tensile *t, pl_arena *arena, pl_absences *out) {
  tensile_rank *ranks;
  int32_t n = 0;
  pl_absence *items;
  PLANC_TRY(PL_NEW(arena, &ranks, t->n));
  PLANC_TRY(PL_NEW(arena, &items, t->n));
  /* In the order of their swap-ins, in which those at one op follow each other on the link. */
  for (int32_t k = 0; k < t->n; k++) {
    if (t->gaps[k].state == TENSILE_TAKEN) ranks[n++] = (tensile_rank){-t->gaps[k].in_start, k};
  }
  tensile_sort(ranks, n);
  for (int32_t k = 0; k < n; k++) items[k] = t->gaps[ranks[k].gap].absence;
  *out = (pl_absences){.n = n, .items = items};
  return NULL;
}

/* --- The predicted iteration and its peak (IV-A, IV-B) ------------------------------------------------------------ */

planc_status tensile_make_unswapped(tensile *t, pl_arena *arena) {
  int64_t room = t->walk->room;
  int64_t timed = room == PL_ROOM_NONE ? 0 : INT64_MAX, live = room == PL_ROOM_UNLIMITED ? INT64_MAX : 0;
  return pl_unswapped_make(t->walk, timed, live, arena, &t->unswapped);
}

int32_t tensile_peak(const tensile *t) {
  return pl_peaks_last_above(&t->unswapped.peaks, 0, t->order->n - 1, peak_bytes(t) - 1);
}

static int64_t peak_bytes(const tensile *t) {
  return t->unswapped.peaks.most[1];
}
