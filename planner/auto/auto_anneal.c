/* Changes at random (auto_search.h). */
#include <string.h>

#include "planner/auto/auto_search.h"
#include "planner/base/goes_on.h"

/* A change is of three gaps, each with tails, or of MOST_AT_ONCE, the last of them with tails. */
enum { MOST_AT_ONCE = 12, MOST_CHANGED = 3 * (1 + PL_AUTO_MOST_INPUTS), BLOCKS = 50, ANYWHERE = -1 };
_Static_assert(MOST_AT_ONCE + PL_AUTO_MOST_INPUTS <= MOST_CHANGED, "a change has place for all");

typedef struct way_change {
  int32_t gaps[MOST_CHANGED];
  uint8_t ways[MOST_CHANGED]; /* as they were */
  int32_t n;
} way_change;

static void raise_prices(pl_auto_search *s);
static void find_lost(pl_auto_search *s);
static void change_some(pl_auto_search *s, way_change *out);
static void undo(pl_auto_search *s, const way_change *done);
static int64_t allowance_at(int64_t first, int64_t change_number, int64_t n_changes);
static int64_t most_kept(pl_auto_search *s, pl_auto_score before, int64_t allowance, int64_t times);

/* Bytes beyond the room are charged more times the longer it goes on. */
void pl_auto_search_improve(pl_auto_search *s, int64_t n_changes, int64_t first_part) {
  enum { FIRST_TIMES = 2, MORE_TIMES = 40 };
  int64_t block = n_changes / BLOCKS + 1, first = s->ideal_ns / first_part;
  find_lost(s);
  for (int64_t k = 0; k < n_changes && s->n_candidates > 0 && s->best_score.ns > s->least_ns; k++) {
    int64_t times = FIRST_TIMES + MORE_TIMES * k / n_changes;
    way_change done;
    if (!pl_goes_on(s->watch) || s->rehearsal.steps >= s->most_steps) break;
    if (k % block == block - 1) raise_prices(s);
    pl_auto_score before = s->score;
    int64_t most = most_kept(s, before, allowance_at(first, k, n_changes), times);
    change_some(s, &done);
    if (pl_auto_judge_within(s, times, most) && pl_auto_sum(s->score, times) <= most) {
      find_lost(s);
      continue;
    }
    undo(s, &done);
    s->score = before;
  }
}

void pl_auto_search_improve_often(pl_auto_search *s, int32_t times, int64_t n_changes, int64_t first_part) {
  const size_t n_gaps = (size_t)s->gaps->n;
  memcpy(s->kept, s->ways, n_gaps);
  for (int32_t k = 0; k < times; k++) {
    memcpy(s->ways, s->kept, n_gaps);
    memcpy(s->price, s->first_price, (size_t)s->gaps->order->n * sizeof *s->price);
    pl_auto_judge(s);
    pl_auto_search_improve(s, n_changes, first_part);
  }
  if (pl_auto_search_found(s)) memcpy(s->ways, s->best, n_gaps);
  pl_auto_judge(s);
}

/* Where bytes are beyond the room in the ways that are kept. */
static void raise_prices(pl_auto_search *s) {
  pl_auto_judge(s);
  for (int32_t p = 0; p < s->gaps->order->n; p++)
    if (pl_rehearsal_beyond(&s->rehearsal, p) > 0 && s->price[p] < PL_PRICE_ONE << 8)
      s->price[p] = 2 * s->price[p] + s->least_raise;
  pl_auto_judge(s);
}

/* Time is lost where ops wait, where something is computed again, and by algorithms for want of workspace. */
static void find_lost(pl_auto_search *s) {
  const pl_rehearsal *r = &s->rehearsal;
  int64_t before = s->times.begin_ns;
  for (int32_t p = 0; p < s->gaps->order->n; p++) {
    int64_t fastest = r->tables.choices[r->tables.first_choice[p]].ns;
    s->lost[p + 1] = s->lost[p] + pl_max(s->times.ends[p] - before - fastest, 0);
    before = s->times.ends[p];
  }
}

/* --- Changes ------------------------------------------------------------------------------------------------------ */

static uint32_t next_random(pl_auto_search *s);
static int32_t random_below(pl_auto_search *s, int32_t n);
static void change_any(pl_auto_search *s, way_change *out);
static bool change_lossy(pl_auto_search *s, way_change *out);
static bool change_as_bound(pl_auto_search *s, way_change *out);
static int32_t draw_candidate(pl_auto_search *s);
static int32_t any_candidate(pl_auto_search *s);
static void change_one(pl_auto_search *s, int32_t gap, way_change *out);
static int32_t find_gap(pl_auto_search *s, bool stays, int32_t position);
static void exchange(pl_auto_search *s, way_change *out);

/* One change in AS_BOUND is to ways of the plan that the bound's prices pay for. Of KINDS others the first LOST are
 * about where time is lost, and those from there to ANY are any. Of the rest, where too much is needed, most have
 * something more leave; where all fits, something comes back, and mostly something else leaves for it. */
static void change_some(pl_auto_search *s, way_change *out) {
  enum { AS_BOUND = 8, KINDS = 8, LOST = 2, ANY = 4, LEAVES = 2 };
  *out = (way_change){.n = 0};
  if (s->shares && random_below(s, AS_BOUND) == 0 && change_as_bound(s, out)) return;
  int32_t kind = random_below(s, KINDS);
  if (kind < LOST && change_lossy(s, out)) return;
  if (kind < ANY)
    change_any(s, out);
  else if (!pl_auto_fits(s->score) && kind < ANY + LEAVES)
    change_one(s, find_gap(s, true, s->fullest), out);
  else if (kind == ANY)
    change_one(s, find_gap(s, false, ANYWHERE), out);
  else
    exchange(s, out);
}

static void set_way(pl_auto_search *s, int32_t gap, uint8_t way, way_change *out) {
  out->gaps[out->n] = gap;
  out->ways[out->n++] = s->ways[gap];
  s->ways[gap] = way;
}

static bool comes_early(const pl_auto_search *s, int32_t gap);
static void keep_inputs(pl_auto_search *s, int32_t gap, way_change *out);

/* What comes back early stays for its own use or does not, as often as not; and what is computed again has what it
 * reads kept for that as often as not, as it may be dear without. */
static void change_one(pl_auto_search *s, int32_t gap, way_change *out) {
  bool twice = s->ways[gap] == PL_AUTO_AGAIN && comes_early(s, gap) && random_below(s, 2) == 0;
  uint8_t way = twice ? PL_AUTO_TWICE : (uint8_t)random_below(s, PL_AUTO_TWICE);
  while (!s->gaps->items[gap].open[way] || way == s->ways[gap]) way = (uint8_t)((way + 1) % PL_AUTO_TWICE);
  set_way(s, gap, way, out);
  const pl_auto_gap *of = &s->gaps->items[gap];
  bool again = way == PL_AUTO_AGAIN && s->rehearsal.has_tails && !of->is_tail;
  if (again && (of->needs_tails || random_below(s, 2) == 0)) keep_inputs(s, gap, out);
}

static void keep_inputs(pl_auto_search *s, int32_t gap, way_change *out) {
  int32_t tails[PL_AUTO_MOST_INPUTS], n = pl_auto_search_inputs(s, gap, tails);
  for (int32_t k = 0; k < n; k++) set_way(s, tails[k], PL_AUTO_STAYS, out);
}

static uint8_t way_as_bound(pl_auto_search *s, const pl_auto_gap *gap);

/* Gives one, two, four or eight gaps, in the order in which they begin, ways drawn from the shares that they have in
 * the plan that the bound's prices pay for. Several at once, since that plan may be far from where the search is: one
 * gap alone would not be better. False where those that are looked at have the drawn ways already. */
static bool change_as_bound(pl_auto_search *s, way_change *out) {
  enum { POWERS = 4, LOOKS = 4 /* gaps for each that is to change */ };
  _Static_assert((1 << (POWERS - 1)) + PL_AUTO_MOST_INPUTS <= MOST_CHANGED, "the last of them has place for its tails");
  int32_t most = 1 << random_below(s, POWERS), first = random_below(s, s->n_candidates);
  for (int32_t k = 0; k < LOOKS * most && k < s->n_candidates && out->n < most; k++) {
    int32_t g = s->candidates[(first + k) % s->n_candidates];
    const pl_auto_gap *gap = &s->gaps->items[g];
    if (gap->of_bound < 0) continue;
    uint8_t way = way_as_bound(s, gap), now = s->ways[g] == PL_AUTO_TWICE ? PL_AUTO_AGAIN : s->ways[g];
    if (way == now || !gap->open[way]) continue;
    set_way(s, g, way, out);
    bool again = way == PL_AUTO_AGAIN && s->rehearsal.has_tails;
    if (again && (gap->needs_tails || random_below(s, 2) == 0)) keep_inputs(s, g, out);
  }
  return out->n > 0;
}

static uint8_t way_as_bound(pl_auto_search *s, const pl_auto_gap *gap) {
  const pl_bound_shares *shares = &s->shares[gap->of_bound];
  int32_t at = random_below(s, PL_BOUND_WHOLE);
  if (at < shares->of[PL_BOUND_COPIED]) return PL_AUTO_COPIED;
  return at < shares->of[PL_BOUND_COPIED] + shares->of[PL_BOUND_AGAIN] ? PL_AUTO_AGAIN : PL_AUTO_STAYS;
}

/* Of two the one with more bytes: most of the time and of the room goes to few large ones. Which of the candidates it
 * is. */
static int32_t draw_candidate(pl_auto_search *s) {
  int32_t first = random_below(s, s->n_candidates), second = random_below(s, s->n_candidates);
  const pl_auto_gap *items = s->gaps->items;
  return items[s->candidates[second]].bytes > items[s->candidates[first]].bytes ? second : first;
}

/* But for tails that nothing that is computed again reads, unless only such are found soon. */
static int32_t any_candidate(pl_auto_search *s) {
  enum { TRIES = 8 };
  int32_t gap = 0;
  for (int32_t k = 0; k < TRIES; k++) {
    gap = s->candidates[draw_candidate(s)];
    if (!s->gaps->items[gap].is_tail || pl_rehearsal_wants(&s->rehearsal, gap)) break;
  }
  return gap;
}

/* It has run again for another version. */
static bool comes_early(const pl_auto_search *s, int32_t gap) {
  int32_t back = s->rehearsal.back[gap];
  return back >= 0 && back < s->gaps->items[gap].to;
}

/* One to three: those beside the first are of gaps that begin about when its does, or of any. */
static void change_any(pl_auto_search *s, way_change *out) {
  enum { NEAR = 8, SECOND = 3, THIRD = 5 };
  int32_t first = draw_candidate(s);
  int32_t n = 1 + (random_below(s, SECOND) == 0) + (random_below(s, THIRD) == 0);
  for (int32_t k = 0; k < n; k++) {
    int32_t at = first;
    if (k > 0 && random_below(s, 2) == 0)
      at = draw_candidate(s);
    else if (k > 0)
      at = (int32_t)pl_clamp(first + random_below(s, 2 * NEAR + 1) - NEAR, 0, s->n_candidates - 1);
    change_one(s, s->candidates[at], out);
  }
}

static bool is_around(const pl_auto_gap *gap, int32_t position) {
  return pl_auto_gap_wraps(gap) ? position > gap->from || position < gap->to
                                : position > gap->from && position < gap->to;
}

static int32_t position_in(pl_auto_search *s, int32_t gap);
static int32_t lossy_position(pl_auto_search *s);
static int32_t lossy_gap(pl_auto_search *s, int32_t position);
static bool make_room(pl_auto_search *s, int32_t position, way_change *out);

/* What an op waits for, or what is computed again for it, is had in another way; or something leaves ahead of it, so
 * that there is room for copies to be made in time; or as much leaves as a faster algorithm of it takes. */
static bool change_lossy(pl_auto_search *s, way_change *out) {
  enum { RARE = 4 };
  int32_t position = lossy_position(s);
  if (position < 0) return false;
  if (random_below(s, RARE) == 0 && make_room(s, position, out)) return true;
  int32_t gap = lossy_gap(s, position);
  if (gap < 0) return false;
  int32_t kind = random_below(s, 4);
  if (kind == 0) {
    change_one(s, find_gap(s, true, position > 0 ? position - 1 : 0), out);
    return true;
  }
  change_one(s, gap, out);
  if (s->ways[gap] != PL_AUTO_STAYS || kind == 1) return true;
  int32_t leaves = find_gap(s, true, position_in(s, gap));
  if (leaves != gap) change_one(s, leaves, out);
  return true;
}

/* A position, the more often the more is lost ahead of it; -1 where nothing is. */
static int32_t lossy_position(pl_auto_search *s) {
  int32_t low = 0, high = s->gaps->order->n;
  int64_t all = s->lost[high];
  if (all <= 0) return -1;
  int64_t at = pl_muldiv_floor(all, next_random(s) >> 1, INT64_C(1) << 31);
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (s->lost[middle + 1] > at)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/* One that ends there and is not spent on the device, -1 = none. */
static int32_t lossy_gap(pl_auto_search *s, int32_t position) {
  const planc_order *order = s->gaps->order;
  const planc_instance *in = planc_order_instance(order, position);
  int32_t found = -1, n = 0;
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    int32_t gap = s->gaps->of_access[a];
    if (gap < s->gaps->n_fed || s->ways[gap] == PL_AUTO_STAYS || s->fixed[gap] != PL_AUTO_ANY_WAY) continue;
    if (random_below(s, ++n) == 0) found = gap;
  }
  return found;
}

static const pl_op_choice *faster_than(const pl_rehearsal *r, int32_t position);

/* As much leaves at once as a faster algorithm of the op there takes: less is of no use to it. */
static bool make_room(pl_auto_search *s, int32_t position, way_change *out) {
  const pl_rehearsal *r = &s->rehearsal;
  const pl_op_choice *faster = faster_than(r, position);
  if (!faster) return false;
  int64_t lacking = faster->workspace_bytes - r->workspace[position] + pl_rehearsal_beyond(r, position);
  while (lacking > 0 && out->n < MOST_AT_ONCE) {
    int32_t gap = find_gap(s, true, position);
    if (s->ways[gap] != PL_AUTO_STAYS || !is_around(&s->gaps->items[gap], position)) break;
    change_one(s, gap, out);
    lacking -= s->gaps->items[gap].bytes;
  }
  if (lacking <= 0) return out->n > 0;
  undo(s, out);
  out->n = 0;
  return false;
}

/* The op's next faster algorithm, NULL = it has the fastest. */
static const pl_op_choice *faster_than(const pl_rehearsal *r, int32_t position) {
  const pl_op_choice *found = NULL;
  for (int32_t k = r->tables.first_choice[position]; k < r->tables.first_choice[position + 1]; k++) {
    if (r->tables.choices[k].ns >= r->op_ns[position]) break;
    found = &r->tables.choices[k];
  }
  return found;
}

/* One comes back, and another leaves for it. */
static void exchange(pl_auto_search *s, way_change *out) {
  int32_t back = find_gap(s, false, ANYWHERE);
  set_way(s, back, PL_AUTO_STAYS, out);
  int32_t leaves = find_gap(s, true, position_in(s, back));
  if (leaves != back) change_one(s, leaves, out);
}

/* A candidate that stays, or that does not, and whose gap is around a position; whichever where none is found soon. */
static int32_t find_gap(pl_auto_search *s, bool stays, int32_t position) {
  enum { TRIES = 12 };
  int32_t gap = 0;
  for (int32_t k = 0; k < TRIES; k++) {
    gap = any_candidate(s);
    bool fits = position == ANYWHERE || is_around(&s->gaps->items[gap], position);
    if (fits && stays == (s->ways[gap] == PL_AUTO_STAYS)) return gap;
  }
  return gap;
}

static int32_t position_in(pl_auto_search *s, int32_t gap) {
  const pl_auto_gap *of = &s->gaps->items[gap];
  int32_t n = s->gaps->order->n, inside = (pl_auto_gap_wraps(of) ? of->to + n : of->to) - of->from - 1;
  return (of->from + 1 + random_below(s, inside)) % n;
}

static void undo(pl_auto_search *s, const way_change *done) {
  for (int32_t k = done->n - 1; k >= 0; k--) s->ways[done->gaps[k]] = done->ways[k];
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
  uint32_t bits = next_random(s) | 1;
  int32_t zeros = __builtin_clz(bits);
  uint32_t behind = (uint32_t)((uint64_t)bits << (zeros + 1)) >> 16;
  int64_t halvings = ((int64_t)zeros << 16) + (0xFFFF - (int64_t)behind);
  return halvings * LN2 >> 16;
}

static int32_t random_below(pl_auto_search *s, int32_t n) {
  return (int32_t)(((uint64_t)next_random(s) * (uint64_t)n) >> 32);
}

/* xorshift64* (Vigna, 2016). */
static uint32_t next_random(pl_auto_search *s) {
  s->random ^= s->random >> 12;
  s->random ^= s->random << 25;
  s->random ^= s->random >> 27;
  return (uint32_t)(s->random * UINT64_C(2685821657736338717) >> 32);
}
