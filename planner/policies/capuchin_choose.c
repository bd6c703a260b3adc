/* How `capuchin` chooses (capuchin.c).
 *
 * Chosen from are the gaps between two accesses of a buffer, of which the second reads, within which more than the room
 * is live. Its free time is what it leaves between the end of a swap-out, begun at its start, and the beginning of a
 * swap-in over at its end. First those are swapped that cost nothing, the longest free time first. In either direction
 * the link is one copy's at a time: a swap costs nothing if its copies find time between those of the swaps chosen
 * before. They leave when the swap-out is over by the measured times, and the op that the swap-in begins beside, the
 * in-trigger, is the last one that begins early enough. When these do not suffice, of the remaining gap with the
 * longest free time and the one with the greatest memory saving per second the one is taken that costs less: the time
 * of its swap-in and of what that waits for on the link, or of its recompute. That includes the chain of whatever the
 * recompute reads that has been dropped for good or is itself to be computed again, and grows as more are chosen. A
 * swap that has to be waited for leaves at once, and its in-trigger is behind the last op at which memory is short.
 * Last, swaps that were to be hidden are treated so, while memory is still short in their course.
 *
 * Parameters and state do not take part; outputs that the user asked for, and what cannot be computed again, are only
 * swapped. Branches need no rule: a buffer's accesses are taken in the order in which they run, whoever makes them. */
#include <assert.h>
#include <stdlib.h>

#include "planner/choose/gaps.h"
#include "planner/choose/link_time.h"
#include "planner/choose/unswapped.h"
#include "planner/choose/ways_back.h"
#include "planner/policies/capuchin.h"
#include "util/heap.h"
#include "util/math.h"

typedef struct capuchin_gap {
  int32_t buffer, version;
  int32_t use;      /* the second access, of the order */
  int32_t from, to; /* positions */
  int64_t bytes, free_ns;
  pl_price swap;
  int64_t saving; /* bytes per second of recompute, -1 = cannot be computed again */
  pl_way chosen;
  int32_t leave, fetch;
} capuchin_gap;

typedef struct chooser {
  const capuchin *of;
  const pl_walk *walk;
  const planc_trace *trace;
  const planc_order *order;
  pl_unswapped unswapped;
  pl_link_time in, out;
  capuchin_gap *gaps;
  int32_t n;
  int32_t *by_free;   /* gaps by descending free time */
  int32_t *by_saving; /* a heap of gaps, the greatest saving on top */
  int32_t n_by_saving;
  int32_t *of_use; /* per use of the order: the gap that ends there, -1 = none */
  pl_ways_back ways;
  int32_t *in_slot;   /* per buffer: the version that takes room on the host and one, 0 = none does */
  int64_t host_bytes; /* that all of them take, were they there at the same time */
} chooser;

/* When the copies of a swap begin. */
typedef struct copies {
  int64_t out_start, in_start;
} copies;

static planc_status choose(chooser *c);
static planc_status swap_or_recompute(chooser *c);
static int32_t last_short(const chooser *c, const capuchin_gap *k);
static bool is_short(const chooser *c);
static bool may_swap(const chooser *c, const capuchin_gap *k);
static capuchin_gap *best_recompute(chooser *c, int64_t *out_ns);
static void take(chooser *c, capuchin_gap *k, pl_way chosen, int32_t leave, int32_t fetch);
static int64_t waiting_copies(const chooser *c, const capuchin_gap *k, copies *out);
static planc_status reserve(chooser *c, const capuchin_gap *k, const copies *at);
static planc_status swap_hidden(chooser *c);
static int32_t waiting_trigger(const chooser *c, const capuchin_gap *k);
static void stop_hiding(chooser *c);
static planc_status state(const chooser *c, pl_arena *arena, pl_absences *out);
static planc_status find_gaps(chooser *c, pl_arena *arena);

planc_status pl_capuchin_choose(const void *context, const pl_walk *walk, pl_arena *arena, pl_absences *out) {
  const capuchin *of = context;
  chooser c = {.of = of, .walk = walk, .trace = walk->trace, .order = walk->order};
  planc_status status = pl_unswapped_make(walk, INT64_MAX, 0, arena, &c.unswapped);
  if (!status) status = find_gaps(&c, arena);
  if (!status) status = choose(&c);
  if (!status) status = state(&c, arena, out);
  pl_link_time_free(&c.in);
  pl_link_time_free(&c.out);
  return status;
}

static planc_status choose(chooser *c) {
  if (c->walk->room == PL_ROOM_NONE) {
    /* Memory alone counts: nothing takes less than swaps on demand and, where those may not be, recompute. */
    for (int32_t i = 0; i < c->n; i++) {
      capuchin_gap *k = &c->gaps[i];
      if (may_swap(c, k) || k->saving >= 0) take(c, k, may_swap(c, k) ? PL_WAY_LINK : PL_WAY_RECOMPUTE, k->from, k->to);
    }
    return NULL;
  }
  PLANC_TRY(pl_link_time_reset(&c->out));
  PLANC_TRY(pl_link_time_reset(&c->in));
  PLANC_TRY(swap_hidden(c));
  PLANC_TRY(swap_or_recompute(c));
  stop_hiding(c);
  return NULL;
}

static planc_status swap_or_recompute(chooser *c) {
  int32_t next = 0;
  while (is_short(c)) {
    while (next < c->n && (c->gaps[c->by_free[next]].chosen != PL_WAY_NONE ||
                           last_short(c, &c->gaps[c->by_free[next]]) < 0 || !may_swap(c, &c->gaps[c->by_free[next]])))
      next++;
    capuchin_gap *away = next < c->n ? &c->gaps[c->by_free[next]] : NULL;
    int64_t recompute_ns = 0;
    capuchin_gap *recompute = best_recompute(c, &recompute_ns);
    if (!away && !recompute) return NULL;
    copies at;
    int64_t wait_ns = away ? waiting_copies(c, away, &at) : INT64_MAX;
    if (recompute && wait_ns >= recompute_ns) {
      take(c, recompute, PL_WAY_RECOMPUTE, recompute->from, recompute->to);
    } else {
      if (wait_ns < INT64_MAX) PLANC_TRY(reserve(c, away, &at));
      take(c, away, PL_WAY_LINK, away->from, waiting_trigger(c, away));
    }
  }
  return NULL;
}

/* --- Gaps --------------------------------------------------------------------------------------------------------- */

/* The last position at which memory is short within the gap, -1 if there is none. */
static int32_t last_short(const chooser *c, const capuchin_gap *k) {
  return pl_peaks_last_above(&c->unswapped.peaks, k->from + 1, k->to - 1, c->walk->room);
}

static bool is_short(const chooser *c) {
  return pl_peaks_last_above(&c->unswapped.peaks, 0, c->order->n - 1, c->walk->room) >= 0;
}

static int64_t out_ns(const capuchin_gap *k) {
  return k->swap.link_ns[PLANC_ROUTE_D2H];
}

static int64_t in_ns(const capuchin_gap *k) {
  return k->swap.link_ns[PLANC_ROUTE_H2D];
}

/* Whether the host gets nothing by the gap's swap that it has not anyway, or by a swap chosen before. */
static bool has_slot(const chooser *c, const capuchin_gap *k) {
  return k->swap.host_bytes == 0 || c->in_slot[k->buffer] == k->version + 1;
}

/* Whether the user and the room on the host allow a swap. */
static bool may_swap(const chooser *c, const capuchin_gap *k) {
  if (!pl_way_is_open(&c->ways, PL_WAY_LINK, k->buffer)) return false;
  return has_slot(c, k) || pl_host_has_room(c->walk, c->host_bytes, &k->swap);
}

/* --- What a recompute costs --------------------------------------------------------------------------------------- */

/* A pl_source_rule: where a recompute finds a version if all that is chosen so far comes true. */
static pl_source source_of(const void *context, const pl_wanted *wanted, const planc_access *access) {
  const chooser *c = context;
  if (c->trace->buffers[access->buffer].flags & (PLANC_BUFFER_PERSISTENT | PLANC_BUFFER_FED)) return PL_SOURCE_DEVICE;
  int32_t low = c->order->first_use[access->buffer], end = c->order->first_use[access->buffer + 1], high = end;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (c->order->uses[middle].position < wanted->to) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  bool alive = low < end && planc_order_access(c->order, low)->read == access->read;
  int32_t away = alive ? c->of_use[low] : -1;
  pl_way chosen = away < 0 ? PL_WAY_NONE : c->gaps[away].chosen;
  if (!alive || chosen == PL_WAY_RECOMPUTE) return PL_SOURCE_AGAIN;
  return chosen == PL_WAY_LINK && c->gaps[away].to > wanted->to ? PL_SOURCE_HOST : PL_SOURCE_DEVICE;
}

/* What it takes to restore the gap; less than that, but more than `limit_ns`, once it is beyond. */
static pl_price recompute_price(chooser *c, const capuchin_gap *k, int64_t limit_ns) {
  pl_wanted wanted = {k->buffer, k->version, k->to};
  return pl_price_of_recompute(&c->ways, &wanted, limit_ns, source_of, c);
}

/* What a recompute of the top may take if the top is to stay there. */
static int64_t longest_at_top(const chooser *c) {
  int64_t second = 0;
  for (int32_t child = 1; child <= 2 && child < c->n_by_saving; child++) {
    int64_t saving = c->gaps[c->by_saving[child]].saving;
    if (saving > second) second = saving;
  }
  if (second <= 0) return INT64_MAX;
  return pl_muldiv_floor(c->gaps[c->by_saving[0]].bytes, PL_NS, second);
}

static bool ranks_before(const chooser *c, int32_t left, int32_t right) {
  const capuchin_gap *a = &c->gaps[left], *b = &c->gaps[right];
  return a->saving != b->saving ? a->saving > b->saving : left < right;
}

PL_HEAP(gaps, int32_t, chooser, ranks_before)

/* The gap with the greatest saving of those within which memory is short, and its cost; NULL if there is none.
 * What is known of savings is what they are at most, and they only get smaller: the one on top is the greatest as soon
 * as it is up to date. */
static capuchin_gap *best_recompute(chooser *c, int64_t *out_ns) {
  while (c->n_by_saving > 0) {
    capuchin_gap *top = &c->gaps[c->by_saving[0]];
    if (top->chosen != PL_WAY_NONE || last_short(c, top) < 0) {
      c->by_saving[0] = c->by_saving[--c->n_by_saving];
      gaps_sink(c, c->by_saving, c->n_by_saving);
      continue;
    }
    pl_price price = recompute_price(c, top, longest_at_top(c));
    int64_t saving = pl_saving_per_second(top->bytes, &price);
    assert(saving <= top->saving);
    if (saving == top->saving) {
      *out_ns = pl_price_ns(&price);
      return top;
    }
    top->saving = saving;
    gaps_sink(c, c->by_saving, c->n_by_saving);
  }
  return NULL;
}

/* --- Swaps -------------------------------------------------------------------------------------------------------- */

static void take(chooser *c, capuchin_gap *k, pl_way chosen, int32_t leave, int32_t fetch) {
  k->chosen = chosen;
  k->leave = leave;
  k->fetch = fetch;
  if (chosen == PL_WAY_LINK && !has_slot(c, k)) {
    c->in_slot[k->buffer] = k->version + 1;
    c->host_bytes = pl_add_saturate(c->host_bytes, k->swap.host_bytes);
  }
  pl_peaks_add(&c->unswapped.peaks, leave + 1, fetch - 1, -k->bytes);
}

/* When the op behind the swap-in begins by what was measured, ahead of which feedback wants the swap-in to be over. */
static int64_t due_ns(const chooser *c, const capuchin_gap *k) {
  int64_t lead = c->of->leads ? c->of->leads[c->order->uses[k->use].access] : 0;
  return c->unswapped.start[k->to] - lead;
}

/* The copies of a swap that nothing waits for; false where the links have no time for them. */
static bool hidden_copies(const chooser *c, const capuchin_gap *k, copies *out) {
  int64_t from = c->unswapped.start[k->from + 1], to = due_ns(c, k);
  return pl_link_time_earliest(&c->out, from, to, out_ns(k), &out->out_start) &&
         pl_link_time_latest(&c->in, out->out_start + out_ns(k), to, in_ns(k), &out->in_start);
}

/* For how long what is behind a swap waits, with its copies as soon as the links have time for them; INT64_MAX where
 * they never have. */
static int64_t waiting_copies(const chooser *c, const capuchin_gap *k, copies *out) {
  int64_t from = c->unswapped.start[k->from + 1], to = c->unswapped.start[k->to];
  if (!pl_link_time_earliest(&c->out, from, INT64_MAX, out_ns(k), &out->out_start)) return INT64_MAX;
  from = out->out_start + out_ns(k);
  if (!pl_link_time_latest(&c->in, from, to, in_ns(k), &out->in_start) &&
      !pl_link_time_earliest(&c->in, from, INT64_MAX, in_ns(k), &out->in_start))
    return INT64_MAX;
  int64_t late = out->in_start + in_ns(k) - to;
  return late > in_ns(k) ? late : in_ns(k);
}

static planc_status reserve(chooser *c, const capuchin_gap *k, const copies *at) {
  if (c->of->alone) return NULL;
  PLANC_TRY(pl_link_time_take(&c->out, at->out_start, out_ns(k)));
  return pl_link_time_take(&c->in, at->in_start, in_ns(k));
}

static planc_status swap_hidden(chooser *c) {
  for (int32_t i = 0; i < c->n && is_short(c); i++) {
    capuchin_gap *k = &c->gaps[c->by_free[i]];
    copies at;
    if (k->free_ns < 0) break;
    if (!hidden_copies(c, k, &at)) continue;
    int32_t leave = pl_unswapped_last(&c->unswapped, k->from, k->to, at.out_start + out_ns(k) - 1);
    int32_t trigger = pl_unswapped_last(&c->unswapped, k->from, k->to, at.in_start);
    if (leave + 1 >= trigger || last_short(c, k) < 0 || !may_swap(c, k)) continue;
    PLANC_TRY(reserve(c, k, &at));
    take(c, k, PL_WAY_LINK, leave, trigger);
  }
  return NULL;
}

/* The in-trigger of a swap that has to be waited for. */
static int32_t waiting_trigger(const chooser *c, const capuchin_gap *k) {
  int32_t behind = last_short(c, k) + 1;
  int32_t trigger = pl_unswapped_last(&c->unswapped, k->from, k->to, due_ns(c, k) - in_ns(k));
  return behind > trigger ? behind : trigger;
}

static void stop_hiding(chooser *c) {
  for (int32_t i = 0; i < c->n && is_short(c); i++) {
    capuchin_gap *k = &c->gaps[c->by_free[i]];
    if (k->chosen != PL_WAY_LINK || last_short(c, k) < 0) continue;
    pl_peaks_add(&c->unswapped.peaks, k->leave + 1, k->fetch - 1, k->bytes);
    take(c, k, PL_WAY_LINK, k->from, waiting_trigger(c, k));
  }
}

/* --- Statement ---------------------------------------------------------------------------------------------------- */

static planc_status state(const chooser *c, pl_arena *arena, pl_absences *out) {
  pl_absence *items;
  int32_t n_swapped = 0;
  PLANC_TRY(PL_NEW(arena, &items, c->n));
  for (int32_t i = 0; i < c->n; i++) {
    const capuchin_gap *k = &c->gaps[i];
    if (k->chosen == PL_WAY_NONE || k->leave >= k->fetch) continue;
    bool copied = k->chosen == PL_WAY_LINK && k->swap.host_bytes > 0;
    n_swapped += k->chosen == PL_WAY_LINK;
    items[out->n++] = (pl_absence){.buffer = k->buffer,
                                   .version = k->version,
                                   .copy = copied ? k->from : PL_NO_COPY,
                                   .leave = k->leave,
                                   .fetch = k->fetch};
  }
  out->items = items;
  return pl_absences_explain(out, arena, "%d times tensors are swapped, %d times computed again", n_swapped,
                             (int32_t)out->n - n_swapped);
}

/* --- Set-up ------------------------------------------------------------------------------------------------------- */

typedef struct rank {
  int64_t first, second;
  int32_t gap;
} rank;

static void add_gap(chooser *c, int32_t b, int32_t use);
static int32_t rank_gaps(const chooser *c, bool savings, rank *ranks, int32_t *out);
static int by_rank(const void *left, const void *right);

static planc_status find_gaps(chooser *c, pl_arena *arena) {
  const planc_trace *trace = c->trace;
  rank *ranks;
  PLANC_TRY(PL_NEW(arena, &c->gaps, trace->n_accesses));
  PLANC_TRY(PL_NEW(arena, &c->of_use, trace->n_accesses));
  PLANC_TRY(PL_NEW(arena, &c->by_free, trace->n_accesses));
  PLANC_TRY(PL_NEW(arena, &c->by_saving, trace->n_accesses));
  PLANC_TRY(PL_NEW(arena, &ranks, trace->n_accesses));
  PLANC_TRY(PL_NEW(arena, &c->in_slot, trace->n_buffers));
  for (int32_t a = 0; a < trace->n_accesses; a++) c->of_use[a] = -1;
  PLANC_TRY(pl_ways_back_make(c->walk, c->unswapped.start, arena, &c->ways));
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    int32_t first = c->n;
    if (trace->buffers[b].flags & PLANC_BUFFER_PERSISTENT) continue;
    for (int32_t u = c->order->first_use[b] + 1; u < c->order->first_use[b + 1]; u++) add_gap(c, b, u);
    bool restores = c->n > first && pl_way_is_open(&c->ways, PL_WAY_RECOMPUTE, b);
    for (int32_t i = first; i < c->n; i++) {
      c->gaps[i].saving = -1;
      if (!restores) continue;
      pl_price price = recompute_price(c, &c->gaps[i], INT64_MAX);
      c->gaps[i].saving = pl_saving_per_second(c->gaps[i].bytes, &price);
    }
  }
  (void)rank_gaps(c, false, ranks, c->by_free);
  c->n_by_saving = rank_gaps(c, true, ranks, c->by_saving);
  return NULL;
}

static void add_gap(chooser *c, int32_t b, int32_t use) {
  const planc_trace *trace = c->trace;
  planc_gap gap;
  if (!pl_gap_ends(c->order, b, use, &gap)) return;
  capuchin_gap k = {.buffer = b, .version = gap.version, .use = use, .from = gap.from, .to = gap.to};
  if (last_short(c, &k) < 0) return;
  k.bytes = pl_walk_bytes(&trace->buffers[b]);
  k.swap = pl_price_of_link(c->walk, b, k.version);
  k.free_ns = c->unswapped.start[k.to] - c->unswapped.start[k.from + 1] - pl_price_ns(&k.swap);
  c->of_use[use] = c->n;
  c->gaps[c->n++] = k;
}

/* Sorts gaps by rank: all by free time, or those that have a saving by that; how many they are. */
static int32_t rank_gaps(const chooser *c, bool savings, rank *ranks, int32_t *out) {
  int32_t n = 0;
  for (int32_t i = 0; i < c->n; i++) {
    const capuchin_gap *k = &c->gaps[i];
    if (!savings || k->saving >= 0) ranks[n++] = (rank){savings ? k->saving : k->free_ns, k->bytes, i};
  }
  if (n > 0) qsort(ranks, (size_t)n, sizeof *ranks, by_rank);
  for (int32_t i = 0; i < n; i++) out[i] = ranks[i].gap;
  return n;
}

static int by_rank(const void *left, const void *right) {
  const rank *a = left, *b = right;
  if (a->first != b->first) return a->first > b->first ? -1 : 1;
  if (a->second != b->second) return a->second > b->second ? -1 : 1;
  return (a->gap > b->gap) - (a->gap < b->gap);
}
