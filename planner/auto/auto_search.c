/* The search for ways (auto_search.h): what is judged, and what comes of it. */
#include "planner/auto/auto_search.h"

#include <stdlib.h>
#include <string.h>

/* What reads something that is nowhere; and what is taken for the best as long as nothing fits. */
static const pl_auto_score worst = {INT64_MAX / 4, PL_AUTO_MOST_CHARGE}, nothing = {INT64_MAX, INT64_MAX};

static planc_status new_kept(int64_t n, pl_arena *arena, pl_auto_kept *out);
static planc_status weigh_gaps(pl_auto_search *s, pl_arena *arena);
static planc_status set_prices(const pl_bound_prices *prices, pl_arena *arena, pl_auto_search *s);

planc_status pl_auto_search_new(const pl_auto_gaps *gaps, const pl_bound_prices *prices, const pl_bound_found *found,
                                pl_arena *arena, pl_auto_search *out) {
  *out = (pl_auto_search){.gaps = gaps,
                          .ideal_ns = found->ideal_ns,
                          .least_ns = found->ns,
                          .random = 1,
                          .best_score = nothing,
                          .most_steps = INT64_MAX};
  PLANC_TRY(pl_rehearsal_new(gaps, arena, &out->rehearsal));
  PLANC_TRY(pl_copy_times_new(&out->rehearsal, arena, &out->times));
  PLANC_TRY(pl_auto_segments_new(gaps, arena, &out->segments));
  PLANC_TRY(PL_NEW(arena, &out->ways, gaps->n));
  PLANC_TRY(PL_NEW(arena, &out->best, gaps->n));
  PLANC_TRY(PL_NEW(arena, &out->fixed, gaps->n));
  memset(out->fixed, PL_AUTO_ANY_WAY, (size_t)gaps->n);
  PLANC_TRY(PL_NEW(arena, &out->spare, gaps->n));
  PLANC_TRY(PL_NEW(arena, &out->candidates, gaps->n));
  PLANC_TRY(PL_NEW(arena, &out->taken, gaps->n));
  PLANC_TRY(new_kept(gaps->order->n, arena, &out->kept));
  PLANC_TRY(PL_NEW(arena, &out->price_sums, (int64_t)gaps->order->n + 1));
  PLANC_TRY(PL_NEW(arena, &out->beyond, gaps->order->n));
  PLANC_TRY(PL_NEW(arena, &out->price_begun, gaps->order->n));
  PLANC_TRY(PL_NEW(arena, &out->moves, 2 * (int64_t)gaps->n));
  PLANC_TRY(weigh_gaps(out, arena));
  pl_auto_let_all_stay(out);
  return set_prices(prices, arena, out);
}

static planc_status new_kept(int64_t n, pl_arena *arena, pl_auto_kept *out) {
  PLANC_TRY(PL_NEW(arena, &out->held, n));
  PLANC_TRY(PL_NEW(arena, &out->workspace, n));
  PLANC_TRY(PL_NEW(arena, &out->op_ns, n));
  return PL_NEW(arena, &out->lost, n + 1);
}

typedef struct weighed_gap {
  pl_signed_wide weight; /* bytes times ns */
  int32_t gap;
} weighed_gap;

static int by_weight(const void *left, const void *right) {
  const weighed_gap *a = left, *b = right;
  if (a->weight != b->weight) return a->weight > b->weight ? -1 : 1;
  return (a->gap > b->gap) - (a->gap < b->gap);
}

/* How long a gap is between its two uses. `before`: by position and one more, the time of the ops ahead of it. */
static int64_t time_of(const pl_auto_gap *gap, const int64_t *before, int32_t n) {
  int64_t ns = before[gap->to] - before[gap->from + 1];
  return pl_auto_gap_wraps(gap) ? ns + before[n] : ns;
}

static planc_status weigh_gaps(pl_auto_search *s, pl_arena *arena) {
  const pl_rehearsal_tables *tables = &s->rehearsal.tables;
  const int32_t n = s->gaps->order->n;
  int64_t *before;
  weighed_gap *weighed;
  int32_t *heaviest, n_weighed = 0;
  PLANC_TRY(PL_NEW(arena, &before, (int64_t)n + 1));
  PLANC_TRY(PL_NEW(arena, &weighed, s->gaps->n));
  PLANC_TRY(PL_NEW(arena, &heaviest, s->gaps->n));
  for (int32_t p = 0; p < n; p++) before[p + 1] = before[p] + tables->choices[tables->first_choice[p]].ns;
  for (int32_t g = s->gaps->n_fed; g < s->gaps->n; g++) {
    const pl_auto_gap *gap = &s->gaps->items[g];
    if (!gap->is_tail) weighed[n_weighed++] = (weighed_gap){(pl_signed_wide)gap->bytes * time_of(gap, before, n), g};
  }
  if (n_weighed > 0) qsort(weighed, (size_t)n_weighed, sizeof *weighed, by_weight);
  for (int32_t k = 0; k < n_weighed; k++) heaviest[k] = weighed[k].gap;
  s->heaviest = heaviest;
  s->n_heaviest = n_weighed;
  return NULL;
}

/* The bound takes a byte to be dear only where most are needed; here no position is free, so that none is forgotten. */
static planc_status set_prices(const pl_bound_prices *prices, pl_arena *arena, pl_auto_search *s) {
  enum { OF_MEAN = 3, RAISE = 10 };
  int32_t n = s->gaps->order->n;
  pl_signed_wide sum = 0, in = 0, out = 0;
  int64_t *first;
  PLANC_TRY(PL_NEW(arena, &s->price, n));
  PLANC_TRY(PL_NEW(arena, &first, n));
  for (int32_t p = 0; p < n; p++) {
    sum += prices->byte[p];
    in += prices->in[2 * (int64_t)p];
    out += prices->out[2 * (int64_t)p];
  }
  int32_t of = n > 0 ? n : 1;
  for (int32_t p = 0; p < n; p++) first[p] = prices->byte[p] + (int64_t)(sum / of / OF_MEAN) + 1;
  s->first_price = first;
  s->least_raise = (int64_t)(sum / of / RAISE) + 1;
  s->in_price = (int64_t)(in / of);
  s->out_price = (int64_t)(out / of);
  return NULL;
}

void pl_auto_keep_fixed(pl_auto_search *s) {
  for (int32_t g = s->gaps->n_fed; g < s->gaps->n; g++)
    if (s->fixed[g] != PL_AUTO_ANY_WAY) s->ways[g] = (uint8_t)s->fixed[g];
}

void pl_auto_let_all_stay(pl_auto_search *s) {
  memset(s->ways, PL_AUTO_STAYS, (size_t)s->gaps->n);
  memset(s->ways, PL_AUTO_COPIED, (size_t)s->gaps->n_fed);
  for (int32_t g = s->gaps->n_fed; g < s->gaps->n; g++)
    if (s->gaps->items[g].is_tail) s->ways[g] = PL_AUTO_AGAIN;
  pl_auto_keep_fixed(s);
}

void pl_auto_search_fix(pl_auto_search *s, int32_t gap, int way) {
  s->fixed[gap] = (int8_t)way;
}

static void find_candidates(pl_auto_search *s);

void pl_auto_search_in(pl_auto_search *s, int64_t room, bool tails) {
  s->room = room;
  s->rehearsal.limit = room;
  s->best_score = nothing;
  pl_auto_keep_fixed(s);
  memcpy(s->price, s->first_price, (size_t)s->gaps->order->n * sizeof *s->price);
  s->rehearsal.has_tails = tails && s->gaps->n_tails > 0;
  find_candidates(s);
  pl_auto_judge(s);
}

static void find_candidates(pl_auto_search *s) {
  s->n_candidates = 0;
  for (int32_t g = s->gaps->n_fed; g < s->gaps->n; g++)
    if (pl_auto_may_change(s, g)) s->candidates[s->n_candidates++] = g;
}

bool pl_auto_may_change(const pl_auto_search *s, int32_t gap) {
  enum { SMALL = 5000 };
  const pl_auto_gap *of = &s->gaps->items[gap];
  bool is_free = s->fixed[gap] == PL_AUTO_ANY_WAY && (s->rehearsal.has_tails || !of->is_tail);
  return is_free && of->bytes >= s->room / pl_max(SMALL, s->gaps->n);
}

void pl_auto_search_without(pl_auto_search *s, int64_t lacking) {
  s->rehearsal.limit = s->room - lacking;
  if (pl_auto_search_found(s)) memcpy(s->ways, s->best, (size_t)s->gaps->n);
  s->best_score = nothing;
}

/* --- What is judged ----------------------------------------------------------------------------------------------- */

static int64_t ops_ns(const pl_rehearsal *r);
static int64_t copying_ns(const pl_copy_times *t);
static int64_t charge_of(pl_auto_search *s, const int64_t *held, int64_t host_bytes);

void pl_auto_judge(pl_auto_search *s) {
  (void)pl_auto_judge_within(s, 0, INT64_MAX);
}

bool pl_auto_judge_within(pl_auto_search *s, int64_t times, int64_t most) {
  enum { PER_COPY_NS = 300, PER_BUSY = 1000 };
  const planc_device *device = s->gaps->walk->device;
  s->work += pl_rehearsal_work(&s->rehearsal);
  pl_rehearse(&s->rehearsal, s->ways);
  s->score = worst;
  if (!s->rehearsal.works) return true;
  int64_t charge = charge_of(s, s->rehearsal.held, s->rehearsal.host_bytes);
  if (most < INT64_MAX && ops_ns(&s->rehearsal) + (pl_signed_wide)times * charge > most) return false;
  pl_copy_times_find(&s->times, s->ways);
  int64_t copied = s->times.in_ns + s->times.out_ns;
  s->score.ns = s->times.period_ns + pl_muldiv_floor(copying_ns(&s->times), device->slowdown_ppm, PL_PPM) +
                copied / PER_BUSY + PER_COPY_NS * (int64_t)s->times.n_in;
  s->score.charge = charge;
  if (!pl_auto_fits(s->score) || s->score.ns >= s->best_score.ns) return true;
  s->best_score = s->score;
  memcpy(s->best, s->ways, (size_t)s->gaps->n);
  return true;
}

static int64_t ops_ns(const pl_rehearsal *r) {
  int64_t sum = 0;
  for (int32_t p = 0; p < r->gaps->order->n; p++) sum += r->op_ns[p] + r->again_ns[p];
  return sum;
}

/* How long one link at least is busy, if their times have nothing to do with each other. */
static int64_t copying_ns(const pl_copy_times *t) {
  if (t->period_ns <= 0) return 0;
  int64_t in = pl_min(t->in_ns, t->period_ns), out = pl_min(t->out_ns, t->period_ns);
  return in + out - pl_muldiv_floor(in, out, t->period_ns);
}

/* The least beyond the room is charged with a part of it, so that none is left; a byte that the host lacks, with twice
 * what copying it takes. */
static int64_t charge_of(pl_auto_search *s, const int64_t *held, int64_t host_bytes) {
  enum { LEAST = 500 };
  const pl_rehearsal *r = &s->rehearsal;
  int64_t host = host_bytes - s->gaps->walk->host_room, most = 0;
  pl_signed_wide sum =
      host > 0 ? 2 * (pl_signed_wide)planc_link_ns(&s->gaps->walk->links[PLANC_ROUTE_D2H], host) + 1 : 0;
  for (int32_t p = 0; p < s->gaps->order->n; p++) {
    int64_t beyond = pl_rehearsal_excess(r, held[p], p);
    if (beyond > most) {
      most = beyond;
      s->fullest = p;
    }
    if (beyond > 0) sum += ((pl_signed_wide)(beyond + s->room / LEAST) * s->price[p] >> PL_PRICE_BITS) + 1;
  }
  return sum > worst.charge ? worst.charge : (int64_t)sum;
}

/* Time is lost where ops wait, where something is computed again, and by algorithms for want of workspace. */
void pl_auto_note_kept(pl_auto_search *s) {
  const pl_rehearsal *r = &s->rehearsal;
  pl_auto_kept *kept = &s->kept;
  const size_t bytes = (size_t)s->gaps->order->n * sizeof *kept->held;
  int64_t before = s->times.begin_ns;
  kept->works = r->works;
  kept->host_bytes = r->host_bytes;
  memcpy(kept->held, r->held, bytes);
  memcpy(kept->workspace, r->workspace, bytes);
  memcpy(kept->op_ns, r->op_ns, bytes);
  for (int32_t p = 0; p < s->gaps->order->n; p++) {
    int64_t fastest = r->tables.choices[r->tables.first_choice[p]].ns;
    kept->lost[p + 1] = kept->lost[p] + pl_max(s->times.ends[p] - before - fastest, 0);
    before = s->times.ends[p];
  }
}

int64_t pl_auto_charge_kept(pl_auto_search *s) {
  const pl_auto_kept *kept = &s->kept;
  return kept->works ? charge_of(s, kept->held, kept->host_bytes) : worst.charge;
}

/* Where the op stands that writes the version of a gap. */
int32_t pl_auto_writer_position(const pl_rehearsal *r, const pl_auto_gap *gap) {
  return r->gaps->order->first[r->tables.writer[r->gaps->first_version[gap->buffer] + gap->version]];
}

int32_t pl_auto_search_inputs(const pl_auto_search *s, int32_t gap, int32_t tails[PL_AUTO_MOST_INPUTS]) {
  const pl_rehearsal *r = &s->rehearsal;
  const pl_auto_gap *of = &s->gaps->items[gap];
  const planc_trace *trace = s->gaps->trace;
  const int32_t *first_version = s->gaps->first_version;
  const planc_instance *in = &trace->instances[r->tables.writer[first_version[of->buffer] + of->version]];
  int32_t n = 0;
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses && n < PL_AUTO_MOST_INPUTS; a++) {
    const planc_access *access = &trace->accesses[a];
    if (access->effect || access->read < 0) continue;
    int32_t tail = r->wants.tail[first_version[access->buffer] + access->read];
    if (tail >= 0 && s->ways[tail] != PL_AUTO_STAYS) tails[n++] = tail;
  }
  return n;
}

/* --- What is stated ----------------------------------------------------------------------------------------------- */

planc_status pl_auto_search_state(pl_auto_search *s, pl_arena *arena, pl_absences *out) {
  const pl_rehearsal *r = &s->rehearsal;
  pl_absence *items;
  int32_t *number, *fetched, *until, n = 0, n_fetched = 0;
  bool *apart;
  int32_t n_uses = s->gaps->order->first_use[s->gaps->trace->n_buffers];
  PLANC_TRY(PL_NEW(arena, &items, s->gaps->n));
  PLANC_TRY(PL_NEW(arena, &fetched, s->gaps->n));
  PLANC_TRY(PL_NEW(arena, &number, s->gaps->n));
  PLANC_TRY(PL_NEW(arena, &apart, n_uses));
  PLANC_TRY(PL_NEW(arena, &until, s->gaps->trace->n_buffers));
  if (pl_auto_search_found(s)) memcpy(s->ways, s->best, (size_t)s->gaps->n);
  pl_auto_judge(s);
  if (!r->works) {
    pl_auto_let_all_stay(s);
    pl_auto_judge(s);
  }
  for (int32_t g = 0; g < s->gaps->n; g++) {
    const pl_auto_gap *gap = &s->gaps->items[g];
    bool comes = r->need[g] >= 0;
    if (s->ways[g] == PL_AUTO_STAYS || gap->is_tail) continue;
    int32_t fetch = comes ? s->times.fetch[g] : gap->to, leave = s->times.leave[g];
    int32_t back = !comes && r->back[g] >= 0 ? r->back[g] : fetch;
    if (!pl_auto_gap_wraps(gap) && leave >= back) leave = back - 1;
    if (!comes) fetched[n_fetched++] = n;
    number[g] = n;
    items[n++] = (pl_absence){.buffer = gap->buffer,
                              .version = gap->version,
                              .copy = r->sends[g] ? s->times.copy[g] : PL_NO_COPY,
                              .leave = leave,
                              .fetch = fetch};
  }
  for (int32_t k = 0; k < s->times.n_in; k++) fetched[n_fetched++] = number[s->times.in_order[k]];
  for (int32_t u = 0; u < n_uses; u++) apart[u] = s->gaps->of_use[u] >= 0 && r->apart[s->gaps->of_use[u]];
  for (int32_t b = 0; b < s->gaps->trace->n_buffers; b++) until[b] = pl_rehearsal_until(r, b);
  *out = (pl_absences){.n = n, .items = items, .fetched = fetched, .until = until, .apart = apart, .restores = true};
  return NULL;
}
