/* One change (auto_changes.h). */
#include "planner/auto/auto_changes.h"

enum { ANYWHERE = -1 };

static int32_t random_below(pl_auto_search *s, int32_t n);
static void change_any(pl_auto_search *s, pl_auto_change *out);
static bool change_lossy(pl_auto_search *s, pl_auto_change *out);
static bool change_as_bound(pl_auto_search *s, pl_auto_change *out);
static int32_t draw_candidate(pl_auto_search *s);
static int32_t any_candidate(pl_auto_search *s);
static void change_one(pl_auto_search *s, int32_t gap, pl_auto_change *out);
static int32_t find_gap(pl_auto_search *s, bool stays, int32_t position);
static int32_t find_leaving(pl_auto_search *s, int32_t position, int64_t lacking);
static void exchange(pl_auto_search *s, pl_auto_change *out);

/* One change in AS_BOUND is to ways of the plan that the bound's prices pay for. Of the others BLIND in as many as
 * there are candidates are any: of many gaps hardly one that is drawn so is worth it. Of the rest LOST in KINDS are
 * about where time is lost. Where too much is needed, some have something more leave; the others bring something back,
 * or have it come back in another way, and others leave for it. */
void pl_auto_change_some(pl_auto_search *s, pl_auto_change *out) {
  enum { AS_BOUND = 4, BLIND = 40, KINDS = 8, LOST = 2, LEAVES = 2 };
  *out = (pl_auto_change){.n = 0};
  if (s->shares && random_below(s, AS_BOUND) == 0 && change_as_bound(s, out)) return;
  if (random_below(s, s->n_candidates) < BLIND) {
    change_any(s, out);
    return;
  }
  int32_t kind = random_below(s, KINDS);
  if (kind < LOST && change_lossy(s, out)) return;
  if (!pl_auto_fits(s->score) && kind < LOST + LEAVES)
    change_one(s, find_gap(s, true, s->fullest), out);
  else if (kind == LOST)
    change_one(s, find_gap(s, false, ANYWHERE), out);
  else
    exchange(s, out);
}

static void set_way(pl_auto_search *s, int32_t gap, uint8_t way, pl_auto_change *out) {
  out->gaps[out->n] = gap;
  out->ways[out->n++] = s->ways[gap];
  s->ways[gap] = way;
}

/* For one more, with its tails. */
static bool has_place(const pl_auto_change *change) {
  return change->n + 1 + PL_AUTO_MOST_INPUTS <= PL_AUTO_MOST_CHANGED;
}

static bool comes_early(const pl_auto_search *s, int32_t gap);
static void keep_inputs(pl_auto_search *s, int32_t gap, pl_auto_change *out);

/* What comes back early stays for its own use or does not, as often as not. */
static void change_one(pl_auto_search *s, int32_t gap, pl_auto_change *out) {
  if (s->fixed[gap] != PL_AUTO_ANY_WAY) return;
  bool twice = s->ways[gap] == PL_AUTO_AGAIN && comes_early(s, gap) && random_below(s, 2) == 0;
  uint8_t way = twice ? PL_AUTO_TWICE : (uint8_t)random_below(s, PL_AUTO_TWICE);
  while (!s->gaps->items[gap].open[way] || way == s->ways[gap]) way = (uint8_t)((way + 1) % PL_AUTO_TWICE);
  pl_auto_change_to(s, gap, way, out);
}

/* What is computed again has what it reads kept for that as often as not, as it may be dear without. */
void pl_auto_change_to(pl_auto_search *s, int32_t gap, uint8_t way, pl_auto_change *out) {
  const pl_auto_gap *of = &s->gaps->items[gap];
  set_way(s, gap, way, out);
  bool again = way == PL_AUTO_AGAIN && s->rehearsal.has_tails && !of->is_tail;
  if (again && (of->needs_tails || random_below(s, 2) == 0)) keep_inputs(s, gap, out);
}

static void keep_inputs(pl_auto_search *s, int32_t gap, pl_auto_change *out) {
  int32_t tails[PL_AUTO_MOST_INPUTS], n = pl_auto_search_inputs(s, gap, tails);
  for (int32_t k = 0; k < n; k++) set_way(s, tails[k], PL_AUTO_STAYS, out);
}

static uint8_t way_as_bound(pl_auto_search *s, const pl_auto_gap *gap);

/* Gives one, two, four or eight gaps, or fewer where tails are kept for them, in the order in which they begin, ways
 * drawn from the shares that they have in the plan that the bound's prices pay for. Several at once, since that plan
 * may be far from where the search is: one gap alone would not be better. False where those that are looked at have the
 * drawn ways already. */
static bool change_as_bound(pl_auto_search *s, pl_auto_change *out) {
  enum { POWERS = 4, LOOKS = 4 /* gaps for each that is to change */ };
  _Static_assert((1 << (POWERS - 1)) + PL_AUTO_MOST_INPUTS <= PL_AUTO_MOST_CHANGED,
                 "the last of them has place for its tails");
  int32_t most = 1 << random_below(s, POWERS), first = random_below(s, s->n_candidates);
  for (int32_t k = 0; k < LOOKS * most && k < s->n_candidates && out->n < most; k++) {
    int32_t g = s->candidates[(first + k) % s->n_candidates];
    const pl_auto_gap *gap = &s->gaps->items[g];
    if (gap->of_bound < 0 || s->fixed[g] != PL_AUTO_ANY_WAY) continue;
    uint8_t way = way_as_bound(s, gap), now = s->ways[g] == PL_AUTO_TWICE ? PL_AUTO_AGAIN : s->ways[g];
    if (way != now && gap->open[way]) pl_auto_change_to(s, g, way, out);
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
static void change_any(pl_auto_search *s, pl_auto_change *out) {
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

static int32_t lossy_position(pl_auto_search *s);
static int32_t lossy_gap(pl_auto_search *s, int32_t position);
static bool make_room(pl_auto_search *s, int32_t position, pl_auto_change *out);
static void leave_for(pl_auto_search *s, int32_t back, pl_auto_change *out);
static void unburden(pl_auto_search *s, int32_t copied, pl_auto_change *out);

/* What an op waits for, or what is computed again for it, is had in another way; or something leaves ahead of it, so
 * that there is room for copies to be made in time; or as much leaves as a faster algorithm of it takes. What is copied
 * in place of being computed again takes the time of the link from others as often as not: those that are cheap to
 * compute again may have it while what is dear has none. */
static bool change_lossy(pl_auto_search *s, pl_auto_change *out) {
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
  bool was_again = s->ways[gap] != PL_AUTO_COPIED;
  change_one(s, gap, out);
  if (s->ways[gap] == PL_AUTO_STAYS && kind != 1) leave_for(s, gap, out);
  if (was_again && s->ways[gap] == PL_AUTO_COPIED && random_below(s, 2) == 0) unburden(s, gap, out);
  return true;
}

/* A position, the more often the more is lost ahead of it; -1 where nothing is. */
static int32_t lossy_position(pl_auto_search *s) {
  int32_t low = 0, high = s->gaps->order->n;
  int64_t all = s->kept.lost[high];
  if (all <= 0) return -1;
  int64_t at = pl_muldiv_floor(all, pl_auto_random(s) >> 1, INT64_C(1) << 31);
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (s->kept.lost[middle + 1] > at)
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

static const pl_op_choice *faster_at(const pl_auto_search *s, int32_t position);

/* As much leaves at once as a faster algorithm of the op there takes: less is of no use to it. */
static bool make_room(pl_auto_search *s, int32_t position, pl_auto_change *out) {
  const pl_auto_kept *kept = &s->kept;
  const pl_op_choice *faster = faster_at(s, position);
  if (!faster) return false;
  int64_t lacking = faster->workspace_bytes - kept->workspace[position] +
                    pl_rehearsal_excess(&s->rehearsal, kept->held[position], position);
  while (lacking > 0 && has_place(out)) {
    int32_t gap = find_leaving(s, position, lacking);
    if (gap < 0) break;
    change_one(s, gap, out);
    lacking -= s->gaps->items[gap].bytes;
  }
  if (lacking <= 0) return out->n > 0;
  pl_auto_change_undo(s, out);
  out->n = 0;
  return false;
}

/* The op's next faster algorithm, NULL = it has the fastest. */
static const pl_op_choice *faster_at(const pl_auto_search *s, int32_t position) {
  const pl_rehearsal *r = &s->rehearsal;
  const pl_op_choice *found = NULL;
  for (int32_t k = r->tables.first_choice[position]; k < r->tables.first_choice[position + 1]; k++) {
    if (r->tables.choices[k].ns >= s->kept.op_ns[position]) break;
    found = &r->tables.choices[k];
  }
  return found;
}

/* One comes back, and others leave for it. */
static void exchange(pl_auto_search *s, pl_auto_change *out) {
  int32_t back = find_gap(s, false, ANYWHERE);
  if (s->ways[back] == PL_AUTO_STAYS || s->fixed[back] != PL_AUTO_ANY_WAY) return;
  set_way(s, back, PL_AUTO_STAYS, out);
  leave_for(s, back, out);
}

static void add_inside(pl_auto_search *s, const pl_auto_gap *gap, int64_t bytes);
static int32_t fullest_inside(const pl_auto_search *s, const pl_auto_gap *gap);

/* Inside a gap that is spent on the device from now on: as large tensors differ, it may take several for one. What runs
 * again and faster algorithms are taken to need as much as before. */
static void leave_for(pl_auto_search *s, int32_t back, pl_auto_change *out) {
  enum { TRIES = 12 };
  const pl_auto_gap *gap = &s->gaps->items[back];
  for (int32_t p = 0; p < s->gaps->order->n; p++) s->beyond[p] = pl_rehearsal_excess(&s->rehearsal, s->kept.held[p], p);
  add_inside(s, gap, gap->bytes);
  for (int32_t k = 0; k < TRIES && has_place(out); k++) {
    int32_t position = fullest_inside(s, gap);
    if (position < 0) return;
    int32_t leaves = find_leaving(s, position, s->beyond[position]);
    if (leaves < 0) return;
    if (leaves == back) continue;
    change_one(s, leaves, out);
    add_inside(s, &s->gaps->items[leaves], -s->gaps->items[leaves].bytes);
  }
}

static int32_t copy_ahead_of(const pl_auto_search *s, int32_t position);

/* As much as is copied for a gap that has come to be copied is computed again instead, of what is copied about when it
 * is needed. */
static void unburden(pl_auto_search *s, int32_t copied, pl_auto_change *out) {
  enum { TRIES = 8, NEAR = 8, SMALL = 8 /* part of the gap's copy that is not worth it */ };
  const int32_t n_in = s->times.n_in, middle = copy_ahead_of(s, s->gaps->items[copied].to);
  const int64_t copy_ns = s->gaps->items[copied].in_ns;
  int64_t left_ns = copy_ns;
  for (int32_t k = 0; k < TRIES && left_ns > 0 && has_place(out); k++) {
    int32_t at = middle + random_below(s, 2 * NEAR + 1) - NEAR;
    if (at < 0 || at >= n_in) continue;
    int32_t other = s->times.in_order[at];
    const pl_auto_gap *gap = &s->gaps->items[other];
    bool is_free = other != copied && s->fixed[other] == PL_AUTO_ANY_WAY && s->ways[other] == PL_AUTO_COPIED;
    if (!is_free || !gap->open[PL_AUTO_AGAIN] || gap->in_ns < copy_ns / SMALL) continue;
    pl_auto_change_to(s, other, PL_AUTO_AGAIN, out);
    left_ns -= gap->in_ns;
  }
}

/* How many of the copies in that were judged last are needed ahead of a position. */
static int32_t copy_ahead_of(const pl_auto_search *s, int32_t position) {
  int32_t low = 0, high = s->times.n_in;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (s->rehearsal.need[s->times.in_order[middle]] >= position)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

typedef struct gap_part {
  int32_t first, end;
} gap_part;

/* The positions inside a gap: what is left of the period, and what of the next one. */
static void parts_of(const pl_auto_search *s, const pl_auto_gap *gap, gap_part out[2]) {
  bool wraps = pl_auto_gap_wraps(gap);
  out[0] = (gap_part){gap->from + 1, wraps ? s->gaps->order->n : gap->to};
  out[1] = (gap_part){0, wraps ? gap->to : 0};
}

static void add_inside(pl_auto_search *s, const pl_auto_gap *gap, int64_t bytes) {
  gap_part of[2];
  parts_of(s, gap, of);
  for (int k = 0; k < 2; k++)
    for (int32_t p = of[k].first; p < of[k].end; p++) s->beyond[p] += bytes;
}

/* Where most bytes are too many; -1 = nowhere. */
static int32_t fullest_inside(const pl_auto_search *s, const pl_auto_gap *gap) {
  gap_part of[2];
  int32_t fullest = -1;
  int64_t most = 0;
  parts_of(s, gap, of);
  for (int k = 0; k < 2; k++) {
    for (int32_t p = of[k].first; p < of[k].end; p++) {
      if (s->beyond[p] <= most) continue;
      most = s->beyond[p];
      fullest = p;
    }
  }
  return fullest;
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

/* What it takes at least not to have a version through a gap, whatever waits for that. */
static int64_t least_cost(const pl_auto_search *s, const pl_auto_gap *gap) {
  int64_t copies_ns = gap->open[PL_AUTO_COPIED] ? gap->in_ns + gap->out_ns : INT64_MAX;
  if (!gap->open[PL_AUTO_AGAIN]) return copies_ns;
  return pl_min(copies_ns, s->kept.op_ns[pl_auto_writer_position(&s->rehearsal, gap)]);
}

/* Of a few of all that may leave and stay around a position, but tails, the one that costs least for each byte of those
 * that are lacking there: where few are, something large may cost much more than it is of use. -1 = there is none. */
static int32_t find_leaving(pl_auto_search *s, int32_t position, int64_t lacking) {
  enum { FEW = 4 };
  int32_t drawn[FEW], n = 0, found = -1;
  pl_signed_wide cost = 0, bytes = 1; /* of the one that is found */
  for (int32_t k = 0; k < s->n_candidates; k++) {
    int32_t g = s->candidates[k];
    const pl_auto_gap *gap = &s->gaps->items[g];
    bool may_leave = s->ways[g] == PL_AUTO_STAYS && s->fixed[g] == PL_AUTO_ANY_WAY && !gap->is_tail;
    if (!may_leave || !is_around(gap, position)) continue;
    int32_t at = n < FEW ? n : random_below(s, n + 1);
    if (at < FEW) drawn[at] = g;
    n++;
  }
  for (int32_t k = 0; k < n && k < FEW; k++) {
    const pl_auto_gap *gap = &s->gaps->items[drawn[k]];
    const int64_t own_cost = least_cost(s, gap), own_bytes = pl_min(gap->bytes, lacking);
    if (found >= 0 && own_cost * bytes >= cost * own_bytes) continue;
    found = drawn[k];
    cost = own_cost;
    bytes = own_bytes;
  }
  return found;
}

void pl_auto_change_undo(pl_auto_search *s, const pl_auto_change *done) {
  for (int32_t k = done->n - 1; k >= 0; k--) s->ways[done->gaps[k]] = done->ways[k];
}

static int32_t random_below(pl_auto_search *s, int32_t n) {
  return (int32_t)(((uint64_t)pl_auto_random(s) * (uint64_t)n) >> 32);
}
