/* Where a search begins (auto_start.h). */
#include "planner/auto/auto_start.h"

#include <stdlib.h>
#include <string.h>

#include "planner/base/goes_on.h"
#include "util/heap.h"

enum { NOT_YET = -1, LEAST_COST_NS = 100 };

/* --- One way after the other -------------------------------------------------------------------------------------- */

static bool is_better_move(const pl_auto_search *s, pl_auto_move a, pl_auto_move b) {
  (void)s;
  pl_signed_wide first = (pl_signed_wide)a.saved * b.costs, second = (pl_signed_wide)b.saved * a.costs;
  if (first != second) return first > second;
  return a.gap != b.gap ? a.gap < b.gap : a.way < b.way;
}
PL_HEAP(moves, pl_auto_move, pl_auto_search, is_better_move)

static void start_one_by_one(pl_auto_search *s, int64_t most_work);
static void start_at_once(pl_auto_search *s, bool again);
static void start_in_segments(pl_auto_search *s, int64_t most_work);
static void look_at(pl_auto_search *s, pl_auto_move *move);
static void take(pl_auto_search *s, const pl_auto_move *move);
static int32_t list_moves(pl_auto_search *s);
static void take_back(pl_auto_search *s, int32_t n_taken);

void pl_auto_search_start(pl_auto_search *s, int64_t most_work) {
  enum { LOOKS = 4 };
  pl_auto_let_all_stay(s);
  pl_auto_judge(s);
  if (pl_mul_saturate(LOOKS * (int64_t)s->n_candidates, pl_rehearsal_work(&s->rehearsal)) > most_work)
    start_at_once(s, true);
  else
    start_one_by_one(s, most_work);
  if (!pl_auto_fits(s->score)) start_at_once(s, false);
  if (s->rehearsal.has_tails) start_in_segments(s, most_work);
}

static void start_one_by_one(pl_auto_search *s, int64_t most_work) {
  int64_t until = pl_add_saturate(s->work, most_work);
  int32_t n_taken = 0, n = list_moves(s);
  while (n > 0 && !pl_auto_fits(s->score) && s->work < until && s->rehearsal.steps < s->most_steps &&
         pl_goes_on(s->watch)) {
    pl_auto_move *first = &s->moves[0];
    bool is_new = first->round == n_taken, is_done = s->ways[first->gap] != PL_AUTO_STAYS;
    if (!is_done && !is_new) {
      first->round = n_taken;
      look_at(s, first);
      moves_sink(s, s->moves, n);
      continue;
    }
    if (!is_done && first->saved <= 0) break;
    if (!is_done) {
      take(s, first);
      s->taken[n_taken++] = first->gap;
      pl_auto_judge(s);
    }
    s->moves[0] = s->moves[--n];
    moves_sink(s, s->moves, n);
  }
  take_back(s, n_taken);
}

/* What is not needed after all, the latest first. */
static void take_back(pl_auto_search *s, int32_t n_taken) {
  for (int32_t k = n_taken - 1; k >= 0; k--) {
    uint8_t was = s->ways[s->taken[k]];
    pl_auto_score before = s->score;
    s->ways[s->taken[k]] = PL_AUTO_STAYS;
    pl_auto_judge(s);
    if (s->score.charge <= before.charge && s->score.ns <= before.ns) continue;
    s->ways[s->taken[k]] = was;
    s->score = before;
  }
}

static int64_t charge_within(const pl_auto_search *s, const pl_auto_gap *gap);
static int64_t links_cost(const pl_auto_search *s, const pl_auto_gap *gap);

/* What each saves and costs by itself: it is looked at when it comes first. */
static int32_t list_moves(pl_auto_search *s) {
  const pl_rehearsal *r = &s->rehearsal;
  int32_t n = 0;
  for (int32_t k = 0; k < s->n_candidates; k++) {
    const pl_auto_gap *gap = &s->gaps->items[s->candidates[k]];
    const int64_t saved = gap->is_tail ? 0 : charge_within(s, gap);
    for (int way = PL_AUTO_COPIED; saved > 0 && way <= PL_AUTO_AGAIN; way++) {
      if (!gap->open[way]) continue;
      int64_t costs = way == PL_AUTO_COPIED ? links_cost(s, gap) : r->op_ns[pl_auto_writer_position(r, gap)];
      s->moves[n++] = (pl_auto_move){.gap = s->candidates[k],
                                     .round = NOT_YET,
                                     .way = (uint8_t)way,
                                     .saved = saved,
                                     .costs = pl_max(costs, LEAST_COST_NS)};
      moves_rise(s, s->moves, n);
    }
  }
  return n;
}

/* That its bytes are charged with where there are too many; something wherever there are, as all charges are. */
static int64_t charge_within(const pl_auto_search *s, const pl_auto_gap *gap) {
  const int32_t n = s->gaps->order->n, end = pl_auto_gap_wraps(gap) ? gap->to + n : gap->to;
  const pl_signed_wide most = (pl_signed_wide)PL_AUTO_MOST_CHARGE << PL_PRICE_BITS;
  pl_signed_wide parts = 0;
  bool is_short = false;
  for (int32_t at = gap->from + 1; at < end && parts < most; at++) {
    int32_t p = at < n ? at : at - n;
    int64_t beyond = pl_rehearsal_beyond(&s->rehearsal, p);
    if (beyond <= 0) continue;
    is_short = true;
    parts += (pl_signed_wide)pl_min(beyond, gap->bytes) * s->price[p];
  }
  return parts < most ? (int64_t)(parts >> PL_PRICE_BITS) + is_short : PL_AUTO_MOST_CHARGE;
}

/* A copy costs the time of links that others want, even where nothing waits for it. */
static int64_t links_cost(const pl_auto_search *s, const pl_auto_gap *gap) {
  return pl_muldiv_floor(gap->in_ns, s->in_price, PL_PRICE_ONE) +
         pl_muldiv_floor(gap->out_ns, s->out_price, PL_PRICE_ONE);
}

static int32_t inputs_of(const pl_auto_search *s, const pl_auto_move *move, int32_t tails[PL_AUTO_MOST_INPUTS]);

/* What a move would save and cost now. */
static void look_at(pl_auto_search *s, pl_auto_move *move) {
  const pl_auto_gap *gap = &s->gaps->items[move->gap];
  pl_auto_score before = s->score;
  int32_t tails[PL_AUTO_MOST_INPUTS], n_tails = inputs_of(s, move, tails);
  take(s, move);
  pl_auto_judge(s);
  int64_t links_ns = move->way == PL_AUTO_COPIED ? links_cost(s, gap) : 0;
  move->saved = before.charge - s->score.charge;
  move->costs = pl_max(pl_max(s->score.ns - before.ns, links_ns), LEAST_COST_NS);
  s->ways[move->gap] = PL_AUTO_STAYS;
  for (int32_t k = 0; k < n_tails; k++) s->ways[tails[k]] = PL_AUTO_AGAIN;
  s->score = before;
}

/* Tails that stay for it may go on doing so: they do not where nothing that is computed again wants them. */
static void take(pl_auto_search *s, const pl_auto_move *move) {
  int32_t tails[PL_AUTO_MOST_INPUTS], n = inputs_of(s, move, tails);
  s->ways[move->gap] = move->way;
  for (int32_t k = 0; k < n; k++) s->ways[tails[k]] = PL_AUTO_STAYS;
}

/* Tails that have to stay for a move. */
static int32_t inputs_of(const pl_auto_search *s, const pl_auto_move *move, int32_t tails[PL_AUTO_MOST_INPUTS]) {
  bool needs_them = move->way == PL_AUTO_AGAIN && s->gaps->items[move->gap].needs_tails;
  return needs_them ? pl_auto_search_inputs(s, move->gap, tails) : 0;
}

/* --- All at once -------------------------------------------------------------------------------------------------- */

static int32_t estimate_moves(pl_auto_search *s, bool again);
static int by_worth(const void *left, const void *right);
static void take_first(pl_auto_search *s, int32_t n);

/* As many moves as are needed, by what they seem to be worth. What is copied takes no memory on its way back, as what
 * is computed again may: without that more fits. */
static void start_at_once(pl_auto_search *s, bool again) {
  take_first(s, 0);
  int32_t n = estimate_moves(s, again), low = 0, high = n;
  if (n > 0) qsort(s->moves, (size_t)n, sizeof *s->moves, by_worth);
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    take_first(s, middle);
    if (pl_auto_fits(s->score))
      high = middle;
    else
      low = middle + 1;
  }
  take_first(s, high);
}

/* Of each gap the way that costs less. A copy saves the bytes inside its gap wherever there are too many. */
static int32_t estimate_moves(pl_auto_search *s, bool again) {
  const pl_rehearsal *r = &s->rehearsal;
  int32_t n = 0, positions = s->gaps->order->n;
  int64_t *before = s->price_sums;
  before[0] = 0;
  for (int32_t p = 0; p < positions; p++)
    before[p + 1] = pl_add_saturate(before[p], pl_rehearsal_beyond(r, p) > 0 ? s->price[p] : 0);
  for (int32_t k = 0; k < s->n_candidates; k++) {
    int32_t g = s->candidates[k];
    const pl_auto_gap *gap = &s->gaps->items[g];
    if (gap->is_tail) continue;
    int64_t prices = pl_auto_gap_wraps(gap) ? before[positions] - before[gap->from + 1] + before[gap->to]
                                            : before[gap->to] - before[gap->from + 1];
    int64_t again_ns = gap->open[PL_AUTO_AGAIN] && !gap->needs_tails && (again || !gap->open[PL_AUTO_COPIED])
                           ? r->op_ns[pl_auto_writer_position(r, gap)]
                           : INT64_MAX;
    int64_t copies_ns = gap->open[PL_AUTO_COPIED] ? gap->in_ns / 2 + gap->out_ns / 2 : INT64_MAX;
    int64_t costs = pl_min(again_ns, copies_ns);
    if (prices <= 0 || costs == INT64_MAX) continue;
    s->moves[n++] = (pl_auto_move){.gap = g,
                                   .way = again_ns < copies_ns ? PL_AUTO_AGAIN : PL_AUTO_COPIED,
                                   .saved = pl_muldiv_floor(gap->bytes, prices, 1 << 16),
                                   .costs = pl_max(costs, 1)};
  }
  return n;
}

static int by_worth(const void *left, const void *right) {
  const pl_auto_move *a = left, *b = right;
  return is_better_move(NULL, *a, *b) ? -1 : is_better_move(NULL, *b, *a);
}

static void take_first(pl_auto_search *s, int32_t n) {
  pl_auto_let_all_stay(s);
  for (int32_t k = 0; k < n; k++) s->ways[s->moves[k].gap] = s->moves[k].way;
  pl_auto_judge(s);
}

/* --- Segments ----------------------------------------------------------------------------------------------------- */

static void keep_if_better(pl_auto_search *s, pl_auto_score *best);

/* Short ones and long ones, of which from none to all of those that come first are copied in place of staying, in a few
 * steps: the best, if that is better than what there is. Where even that takes more than `most_work` all stay, and are
 * of use only if nothing else fits. */
static void start_in_segments(pl_auto_search *s, int64_t most_work) {
  enum { STEPS = 4, REACHES = 16 };
  const int64_t all = pl_mul_saturate(INT64_C(2) * (STEPS + 1) * REACHES, pl_rehearsal_work(&s->rehearsal));
  const int32_t last_step = all <= most_work ? STEPS : 0;
  pl_auto_score best = s->score;
  if (last_step == 0 && pl_auto_fits(s->score)) return;
  memcpy(s->spare, s->ways, (size_t)s->gaps->n);
  for (int32_t reach = 1, n_cuts = 1; n_cuts > 0 && pl_goes_on(s->watch); reach *= 2) {
    n_cuts = pl_auto_segments_cut(&s->segments, reach);
    for (int32_t k = 0; k < 2 * (last_step + 1); k++) {
      pl_auto_let_all_stay(s);
      pl_auto_segments_set(&s->segments, k / 2 * (n_cuts + 1) / STEPS, k % 2 > 0, s->ways);
      pl_auto_keep_fixed(s);
      pl_auto_judge(s);
      keep_if_better(s, &best);
    }
    if (reach > s->gaps->order->n / 2) break;
  }
  memcpy(s->ways, s->spare, (size_t)s->gaps->n);
  pl_auto_judge(s);
}

static void keep_if_better(pl_auto_search *s, pl_auto_score *best) {
  enum { TIMES = 5 /* the charge: at first prices it is less than making it fit costs */ };
  if (pl_auto_sum(s->score, TIMES) >= pl_auto_sum(*best, TIMES)) return;
  *best = s->score;
  memcpy(s->spare, s->ways, (size_t)s->gaps->n);
}
