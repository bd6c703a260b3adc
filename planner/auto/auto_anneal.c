/* Making changes at random and keeping some of them (auto_anneal.h). */
#include "planner/auto/auto_anneal.h"

#include <string.h>

#include "planner/auto/auto_changes.h"
#include "planner/base/goes_on.h"

static bool goes_on(const pl_auto_search *s);
static void raise_prices(pl_auto_search *s);
static int64_t allowance_at(int64_t first, int64_t change_number, int64_t n_changes);
static int64_t most_kept(pl_auto_search *s, pl_auto_score before, int64_t allowance, int64_t times);

/* Bytes beyond the room are charged more times the longer it goes on. */
void pl_auto_search_improve(pl_auto_search *s, int64_t n_changes, int64_t first_part) {
  enum { FIRST_TIMES = 2, MORE_TIMES = 40, BLOCKS = 50 };
  int64_t block = n_changes / BLOCKS + 1, first = s->ideal_ns / first_part;
  pl_auto_judge(s); /* what was judged last may be others' ways */
  pl_auto_note_kept(s);
  for (int64_t k = 0; k < n_changes && s->n_candidates > 0 && s->best_score.ns > s->least_ns; k++) {
    int64_t times = FIRST_TIMES + MORE_TIMES * k / n_changes;
    pl_auto_change done;
    if (!goes_on(s)) break;
    if (k % block == block - 1) raise_prices(s);
    pl_auto_score before = s->score;
    int64_t most = most_kept(s, before, allowance_at(first, k, n_changes), times);
    pl_auto_change_some(s, &done);
    if (pl_auto_judge_within(s, times, most) && pl_auto_sum(s->score, times) <= most) {
      pl_auto_note_kept(s);
      continue;
    }
    pl_auto_change_undo(s, &done);
    s->score = before;
  }
}

void pl_auto_search_improve_often(pl_auto_search *s, int32_t times, int64_t n_changes, int64_t first_part) {
  const size_t n_gaps = (size_t)s->gaps->n;
  memcpy(s->spare, s->ways, n_gaps);
  for (int32_t k = 0; k < times; k++) {
    memcpy(s->ways, s->spare, n_gaps);
    memcpy(s->price, s->first_price, (size_t)s->gaps->order->n * sizeof *s->price);
    pl_auto_search_improve(s, n_changes, first_part);
  }
  if (pl_auto_search_found(s)) memcpy(s->ways, s->best, n_gaps);
  pl_auto_judge(s);
}

static int64_t force_gap(pl_auto_search *s, int32_t gap, int64_t most, int64_t n_changes, int64_t first_part);

void pl_auto_search_force(pl_auto_search *s, int64_t times, int64_t n_changes, int64_t first_part) {
  const size_t prices = (size_t)s->gaps->order->n * sizeof *s->price;
  if (!pl_auto_search_found(s)) return;
  memcpy(s->price_begun, s->price, prices);
  for (int32_t k = 0, idle = 0; times > 0 && idle < s->n_heaviest && goes_on(s); k = (k + 1) % s->n_heaviest) {
    int64_t n_forced = force_gap(s, s->heaviest[k], times, n_changes, first_part);
    idle = n_forced > 0 ? 0 : idle + 1;
    times -= n_forced;
  }
  memcpy(s->ways, s->best, (size_t)s->gaps->n);
  memcpy(s->price, s->price_begun, prices);
  pl_auto_judge(s);
}

static bool goes_on(const pl_auto_search *s) {
  return pl_goes_on(s->watch) && s->rehearsal.steps < s->most_steps;
}

static void force(pl_auto_search *s, int32_t gap, uint8_t way, int64_t n_changes, int64_t first_part);

/* Into each of its other ways, but not so often as to make it more than `most`; returns how often. */
static int64_t force_gap(pl_auto_search *s, int32_t gap, int64_t most, int64_t n_changes, int64_t first_part) {
  int64_t n = 0;
  for (uint8_t way = PL_AUTO_STAYS; way < PL_AUTO_TWICE && n < most && goes_on(s); way++) {
    bool is_open = pl_auto_may_change(s, gap) && s->gaps->items[gap].open[way];
    if (!is_open || way == s->best[gap]) continue;
    force(s, gap, way, n_changes, first_part);
    n++;
  }
  return n;
}

static void force(pl_auto_search *s, int32_t gap, uint8_t way, int64_t n_changes, int64_t first_part) {
  pl_auto_change change = {.n = 0};
  memcpy(s->ways, s->best, (size_t)s->gaps->n);
  memcpy(s->price, s->price_begun, (size_t)s->gaps->order->n * sizeof *s->price);
  pl_auto_change_to(s, gap, way, &change);
  s->fixed[gap] = (int8_t)way;
  pl_auto_search_improve(s, n_changes, first_part);
  s->fixed[gap] = PL_AUTO_ANY_WAY;
}

/* Where bytes are beyond the room in the ways that are kept. */
static void raise_prices(pl_auto_search *s) {
  const pl_auto_kept *kept = &s->kept;
  for (int32_t p = 0; kept->works && p < s->gaps->order->n; p++)
    if (pl_rehearsal_excess(&s->rehearsal, kept->held[p], p) > 0 && s->price[p] < PL_PRICE_ONE << 8)
      s->price[p] = 2 * s->price[p] + s->least_raise;
  s->score.charge = pl_auto_charge_kept(s);
}

/* --- What is kept ------------------------------------------------------------------------------------------------- */

static int64_t random_exponent(pl_auto_search *s);

/* It halves nine times. */
static int64_t allowance_at(int64_t first, int64_t change_number, int64_t n_changes) {
  enum { HALVINGS = 9 };
  int64_t halvings = HALVINGS * change_number / n_changes;
  int64_t more = first >> halvings, less = first >> (halvings + 1);
  return more - pl_muldiv_floor(more - less, HALVINGS * change_number % n_changes, n_changes);
}

/* What a change may come to. */
static int64_t most_kept(pl_auto_search *s, pl_auto_score before, int64_t allowance, int64_t times) {
  return pl_auto_sum(before, times) + (int64_t)((pl_signed_wide)allowance * random_exponent(s) >> 16);
}

/* A number that is more than x with a chance of about e^-x, in parts of 2^16: the zeros in front of random bits count
 * halvings, and the bits behind them lie about between two. */
static int64_t random_exponent(pl_auto_search *s) {
  enum { LN2 = 45426 }; /* of 2^16 */
  uint32_t bits = pl_auto_random(s) | 1;
  int32_t zeros = __builtin_clz(bits);
  uint32_t behind = (uint32_t)((uint64_t)bits << (zeros + 1)) >> 16;
  int64_t halvings = ((int64_t)zeros << 16) + (0xFFFF - (int64_t)behind);
  return halvings * LN2 >> 16;
}
