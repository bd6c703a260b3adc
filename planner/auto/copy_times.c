/* Copies in time (copy_times.h). */
#include "planner/auto/copy_times.h"

#include "util/math.h"

enum { NONE = -1 };

static planc_status find_fed(const planc_order *order, pl_arena *arena, pl_copy_times *out);

planc_status pl_copy_times_new(const pl_rehearsal *rehearsal, pl_arena *arena, pl_copy_times *out) {
  int64_t n = rehearsal->gaps->order->n, n_gaps = rehearsal->gaps->n;
  *out = (pl_copy_times){.rehearsal = rehearsal};
  PLANC_TRY(PL_NEW(arena, &out->copy, n_gaps));
  PLANC_TRY(PL_NEW(arena, &out->leave, n_gaps));
  PLANC_TRY(PL_NEW(arena, &out->fetch, n_gaps));
  PLANC_TRY(PL_NEW(arena, &out->in_order, n_gaps));
  PLANC_TRY(PL_NEW(arena, &out->start, n + 1));
  PLANC_TRY(PL_NEW(arena, &out->ends, n));
  PLANC_TRY(PL_NEW(arena, &out->slack, n));
  PLANC_TRY(PL_NEW(arena, &out->away, n_gaps));
  PLANC_TRY(PL_NEW(arena, &out->first_needed, n));
  PLANC_TRY(PL_NEW(arena, &out->also_needed, n_gaps));
  PLANC_TRY(PL_NEW(arena, &out->leaving, 2 * n_gaps));
  PLANC_TRY(PL_NEW(arena, &out->out_end, n_gaps));
  PLANC_TRY(PL_NEW(arena, &out->in_end, n_gaps));
  PLANC_TRY(pl_number_set_make(arena, (int32_t)n, &out->needed));
  for (int32_t p = 0; p < n; p++) out->first_needed[p] = NONE;
  for (int32_t g = 0; g < rehearsal->gaps->n_fed; g++) out->leave[g] = NONE;
  return find_fed(rehearsal->gaps->order, arena, out);
}

static planc_status find_fed(const planc_order *order, pl_arena *arena, pl_copy_times *out) {
  const planc_instance *first = order->n > 0 ? planc_order_instance(order, 0) : NULL;
  int32_t *fed;
  PLANC_TRY(PL_NEW(arena, &fed, first ? first->n_accesses : 0));
  for (int32_t k = 0; first && k < first->n_accesses; k++) {
    const planc_access *access = &order->trace->accesses[first->first_access + k];
    if (access->read == 0 && planc_user_holds(&order->trace->buffers[access->buffer], 0))
      fed[out->n_fed++] = access->buffer;
  }
  out->fed = fed;
  return NULL;
}

/* Times of a period that begins at `begin`, and when the links are free again; copies out of the period before that are
 * still made: from `first` up to `n` of leaving. */
typedef struct link_passage {
  int64_t begin, in_free, out_free;
  int32_t first, n;
} link_passage;

static void list_away(pl_copy_times *t);
static void find_needs(pl_copy_times *t);
static void find_fetches(pl_copy_times *t);
static void keep_order(pl_copy_times *t);
static int64_t go_through(pl_copy_times *t, link_passage *at);
static int64_t find_delay(const pl_copy_times *t, const uint8_t *ways, int64_t end, int64_t in_free);

/* Where copies are still made when the period ends, the next one tells how long one takes. */
void pl_copy_times_find(pl_copy_times *t, const uint8_t *ways) {
  link_passage at = {0};
  list_away(t);
  find_needs(t);
  find_fetches(t);
  keep_order(t);
  int64_t end = go_through(t, &at);
  if (at.in_free > end || at.out_free > end) {
    at.begin = end;
    end = go_through(t, &at);
  }
  t->begin_ns = at.begin;
  t->period_ns = end - at.begin + find_delay(t, ways, end, at.in_free);
}

static void list_away(pl_copy_times *t) {
  const pl_number_set *away = &t->rehearsal->movers.away;
  t->n_away = 0;
  for (int32_t g = pl_number_set_above(away, 0); g != NONE; g = pl_number_set_above(away, g + 1))
    t->away[t->n_away++] = g;
}

static void list_needed(pl_copy_times *t);

static void find_needs(pl_copy_times *t) {
  const pl_rehearsal *r = t->rehearsal;
  const int32_t n = r->gaps->order->n;
  t->start[0] = 0;
  for (int32_t p = 0; p < n; p++) {
    t->start[p + 1] = t->start[p] + r->op_ns[p] + r->again_ns[p];
    t->slack[p] = -pl_rehearsal_beyond(r, p);
  }
  list_needed(t);
  t->n_in = 0;
  for (int32_t p = pl_number_set_above(&t->needed, 0); p != NONE; p = pl_number_set_above(&t->needed, p + 1))
    for (int32_t g = t->first_needed[p]; g != NONE; g = t->also_needed[g]) t->in_order[t->n_in++] = g;
}

static void list_needed(pl_copy_times *t) {
  const pl_rehearsal *r = t->rehearsal;
  for (int32_t p = 0; (p = pl_number_set_above(&t->needed, p)) != NONE;) {
    t->first_needed[p] = NONE;
    pl_number_set_remove(&t->needed, p);
  }
  t->in_ns = t->out_ns = 0;
  for (int32_t k = t->n_away - 1; k >= 0; k--) {
    const int32_t g = t->away[k], need = r->need[g];
    if (r->sends[g]) t->out_ns += r->gaps->items[g].out_ns;
    if (need == NONE) continue;
    t->in_ns += r->gaps->items[g].in_ns;
    t->also_needed[g] = t->first_needed[need];
    t->first_needed[need] = g;
    pl_number_set_add(&t->needed, need);
  }
}

/* From the end on, each in time for its need and ahead of the next, unless memory has no room so early. */
static void find_fetches(pl_copy_times *t) {
  const pl_rehearsal *r = t->rehearsal;
  int64_t next_begins = INT64_MAX;
  for (int32_t k = t->n_in - 1; k >= 0; k--) {
    int32_t g = t->in_order[k], fetch = r->need[g];
    const pl_auto_gap *gap = &r->gaps->items[g];
    int32_t first = pl_auto_gap_wraps(gap) ? 0 : gap->from + 2;
    int64_t begin = pl_min(next_begins, t->start[fetch]) - gap->in_ns;
    while (fetch > first && t->start[fetch] > begin && t->slack[fetch - 1] >= gap->bytes)
      t->slack[--fetch] -= gap->bytes;
    t->fetch[g] = fetch;
    next_begins = pl_max(begin, t->start[fetch]);
  }
}

/* None is made ahead of one that is needed earlier: it would be in its way. */
static void keep_order(pl_copy_times *t) {
  for (int32_t k = 1; k < t->n_in; k++) {
    int32_t g = t->in_order[k], before = t->fetch[t->in_order[k - 1]];
    for (; t->fetch[g] < before; t->fetch[g]++) t->slack[t->fetch[g]] += t->rehearsal->gaps->items[g].bytes;
  }
}

/* By how much the next period begins late because the first op waits for what it is fed: that comes in as soon as the
 * data of this period has left its place and no op needs the room any more. */
static int64_t find_delay(const pl_copy_times *t, const uint8_t *ways, int64_t end, int64_t in_free) {
  const pl_auto_gaps *gaps = t->rehearsal->gaps;
  int64_t late = 0, fed_ns = 0, fed_bytes = 0;
  for (int32_t k = 0; k < t->n_fed; k++) {
    int32_t b = t->fed[k], last = planc_order_last(gaps->order, b);
    int32_t second = gaps->order->first_use[b] + 1;
    int32_t gap = second < gaps->order->first_use[b + 1] ? gaps->of_use[second] : NONE;
    if (gap != NONE && ways[gap] != PL_AUTO_STAYS) last = gaps->items[gap].from;
    fed_bytes += t->rehearsal->tables.bytes[b];
    fed_ns += planc_link_ns(&gaps->walk->links[PLANC_ROUTE_H2D], gaps->trace->buffers[b].bytes);
    for (int32_t p = gaps->order->n - 1; p > last; p--)
      if (t->slack[p] < fed_bytes) last = p;
    late = pl_max(late, pl_max(t->ends[last], in_free) + fed_ns - end);
  }
  return late;
}

/* --- A period ----------------------------------------------------------------------------------------------------- */

typedef struct traffic {
  int32_t next_in;        /* of in_order */
  int32_t next_away;      /* of away */
  int32_t first, n;       /* of leaving: from first up to n */
  int32_t n_before;       /* so many are of the period before */
  int32_t last_copy;      /* the position behind which the latest copy out begins, if nothing waits */
  int64_t now, lingering; /* bytes that are still being copied out */
} traffic;

static void wait_for_room(pl_copy_times *t, traffic *of, int32_t position);
static void fetch_at(pl_copy_times *t, traffic *of, int32_t position, link_passage *at);
static void leave_at(pl_copy_times *t, traffic *of, int32_t position, link_passage *at);
static int32_t pass_quiet(pl_copy_times *t, traffic *of, int32_t position);

static int64_t go_through(pl_copy_times *t, link_passage *at) {
  const pl_rehearsal *r = t->rehearsal;
  const pl_auto_gap *gaps = r->gaps->items;
  int32_t n = r->gaps->order->n;
  traffic of = {.now = at->begin, .first = at->first, .n = at->n, .n_before = at->n};
  for (int32_t k = of.first; k < of.n; k++) of.lingering += gaps[t->leaving[k]].bytes;
  while (of.next_away < t->n_away && gaps[t->away[of.next_away]].from < 0) of.next_away++;
  for (int32_t p = pass_quiet(t, &of, 0); p < n; p = pass_quiet(t, &of, p + 1)) {
    wait_for_room(t, &of, p);
    fetch_at(t, &of, p, at);
    for (int32_t g = t->first_needed[p]; g != NONE; g = t->also_needed[g]) of.now = pl_max(of.now, t->in_end[g]);
    of.now += r->again_ns[p] + r->op_ns[p];
    t->ends[p] = of.now;
    leave_at(t, &of, p, at);
  }
  at->first = of.first;
  at->n = of.n;
  for (int32_t k = of.first > of.n_before ? of.first : of.n_before; k < of.n; k++) t->leave[t->leaving[k]] = n - 1;
  return of.now;
}

static inline bool is_calm(const pl_copy_times *t, const traffic *of, int32_t position);

/* Up to the next position at which something comes, is needed or leaves, or a copy out ends or is waited for: ahead of
 * it nothing waits. */
static int32_t pass_quiet(pl_copy_times *t, traffic *of, int32_t position) {
  const int32_t n = t->rehearsal->gaps->order->n;
  if (position >= n) return n;
  int32_t p = position, end = pl_number_set_above(&t->needed, position);
  if (end == NONE) end = n;
  if (of->next_in < t->n_in) end = (int32_t)pl_clamp(t->fetch[t->in_order[of->next_in]], position, end);
  if (of->next_away < t->n_away) end = (int32_t)pl_min(end, t->rehearsal->gaps->items[t->away[of->next_away]].from);
  const int64_t waited = of->now - t->start[position];
  if (of->first == of->n)
    for (; p < end; p++) t->ends[p] = t->start[p + 1] + waited;
  else
    for (; p < end && is_calm(t, of, p); p++) of->now = t->ends[p] = t->start[p + 1] + waited;
  of->now = t->start[p] + waited;
  return p;
}

/* Where copies out are being made: none has ended, and there is room beside them. */
static inline bool is_calm(const pl_copy_times *t, const traffic *of, int32_t position) {
  return t->out_end[t->leaving[of->first]] > of->now && of->lingering <= t->slack[position];
}

static void wait_for_room(pl_copy_times *t, traffic *of, int32_t position) {
  while (of->first < of->n) {
    int32_t g = t->leaving[of->first];
    if (t->out_end[g] > of->now && of->lingering <= t->slack[position]) return;
    of->now = pl_max(of->now, t->out_end[g]);
    of->lingering -= t->rehearsal->gaps->items[g].bytes;
    if (of->first >= of->n_before) t->leave[g] = position - 1;
    of->first++;
  }
}

static void fetch_at(pl_copy_times *t, traffic *of, int32_t position, link_passage *at) {
  const pl_rehearsal *r = t->rehearsal;
  for (; of->next_in < t->n_in && t->fetch[t->in_order[of->next_in]] <= position; of->next_in++) {
    int32_t g = t->in_order[of->next_in];
    const pl_auto_gap *gap = &r->gaps->items[g];
    int64_t begin = pl_max(at->in_free, of->now);
    if (r->sends[g] && !pl_auto_gap_wraps(gap)) begin = pl_max(begin, t->out_end[g]);
    at->in_free = t->in_end[g] = begin + gap->in_ns;
  }
}

static void leave_at(pl_copy_times *t, traffic *of, int32_t position, link_passage *at) {
  const pl_rehearsal *r = t->rehearsal;
  for (; of->next_away < t->n_away; of->next_away++) {
    int32_t g = t->away[of->next_away];
    const pl_auto_gap *gap = &r->gaps->items[g];
    if (gap->from != position) return;
    t->leave[g] = position;
    if (!r->sends[g]) continue;
    of->last_copy = (int32_t)pl_max(of->last_copy, r->since[g]);
    t->copy[g] = of->last_copy;
    at->out_free = t->out_end[g] = pl_max(at->out_free, t->ends[of->last_copy]) + gap->out_ns;
    if (t->out_end[g] <= of->now) continue;
    t->leaving[of->n++] = g;
    of->lingering += gap->bytes;
  }
}
