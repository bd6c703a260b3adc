/* The search for ways (auto_search.h): what is judged, and where it begins. */
#include "planner/auto/auto_search.h"

#include <stdlib.h>
#include <string.h>

#include "planner/base/goes_on.h"
#include "util/heap.h"

/* A way for a gap that stays as yet. */
typedef struct pl_auto_move {
  int64_t saved, costs; /* ns, of charges and of time, when it was last looked at; costs > 0 */
  int32_t gap, round;   /* how many moves had been made then; NOT_YET: it is an estimate */
  uint8_t way;
} pl_auto_move;

enum { NOT_YET = -1, LEAST_COST_NS = 100 };

/* What reads something that is nowhere; and what is taken for the best as long as nothing fits. */
static const pl_auto_score worst = {INT64_MAX / 4, INT64_MAX / 4}, nothing = {INT64_MAX, INT64_MAX};

static planc_status new_kept(int64_t n, pl_arena *arena, pl_auto_kept *out);
static planc_status weigh_gaps(pl_auto_search *s, pl_arena *arena);
static planc_status set_prices(const pl_bound_prices *prices, pl_arena *arena, pl_auto_search *s);
static void let_all_stay(pl_auto_search *s);

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
  PLANC_TRY(PL_NEW(arena, &out->kept, gaps->n));
  PLANC_TRY(PL_NEW(arena, &out->candidates, gaps->n));
  PLANC_TRY(PL_NEW(arena, &out->taken, gaps->n));
  PLANC_TRY(new_kept(gaps->order->n, arena, &out->outcome));
  PLANC_TRY(PL_NEW(arena, &out->prices_before, (int64_t)gaps->order->n + 1));
  PLANC_TRY(PL_NEW(arena, &out->beyond, gaps->order->n));
  PLANC_TRY(PL_NEW(arena, &out->price_kept, gaps->order->n));
  PLANC_TRY(PL_NEW(arena, &out->moves, 2 * (int64_t)gaps->n));
  PLANC_TRY(weigh_gaps(out, arena));
  let_all_stay(out);
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

static void keep_fixed(pl_auto_search *s) {
  for (int32_t g = s->gaps->n_fed; g < s->gaps->n; g++)
    if (s->fixed[g] != PL_AUTO_ANY_WAY) s->ways[g] = (uint8_t)s->fixed[g];
}

static void let_all_stay(pl_auto_search *s) {
  memset(s->ways, PL_AUTO_STAYS, (size_t)s->gaps->n);
  memset(s->ways, PL_AUTO_COPIED, (size_t)s->gaps->n_fed);
  for (int32_t g = s->gaps->n_fed; g < s->gaps->n; g++)
    if (s->gaps->items[g].is_tail) s->ways[g] = PL_AUTO_AGAIN;
  keep_fixed(s);
}

void pl_auto_search_fix(pl_auto_search *s, int32_t gap, int way) {
  s->fixed[gap] = (int8_t)way;
}

static void find_candidates(pl_auto_search *s);

void pl_auto_search_in(pl_auto_search *s, int64_t room, bool tails) {
  s->room = room;
  s->rehearsal.limit = room;
  s->best_score = nothing;
  keep_fixed(s);
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
  pl_auto_judge(s);
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
  pl_auto_kept *kept = &s->outcome;
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
  const pl_auto_kept *kept = &s->outcome;
  return kept->works ? charge_of(s, kept->held, kept->host_bytes) : worst.charge;
}

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
  let_all_stay(s);
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

/* Where the op stands that writes the version of a gap. */
int32_t pl_auto_writer_position(const pl_rehearsal *r, const pl_auto_gap *gap) {
  return r->gaps->order->first[r->tables.writer[r->gaps->first_version[gap->buffer] + gap->version]];
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

/* That its bytes are charged with where there are too many. */
static int64_t charge_within(const pl_auto_search *s, const pl_auto_gap *gap) {
  const int32_t n = s->gaps->order->n, end = pl_auto_gap_wraps(gap) ? gap->to + n : gap->to;
  pl_signed_wide sum = 0;
  for (int32_t at = gap->from + 1; at < end; at++) {
    int32_t p = at < n ? at : at - n;
    int64_t beyond = pl_rehearsal_beyond(&s->rehearsal, p);
    if (beyond > 0) sum += (pl_signed_wide)pl_min(beyond, gap->bytes) * s->price[p] >> PL_PRICE_BITS;
  }
  return sum > worst.charge ? worst.charge : (int64_t)sum;
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
  int64_t *before = s->prices_before;
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
  let_all_stay(s);
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
  memcpy(s->kept, s->ways, (size_t)s->gaps->n);
  for (int32_t reach = 1, n_cuts = 1; n_cuts > 0 && pl_goes_on(s->watch); reach *= 2) {
    n_cuts = pl_auto_segments_cut(&s->segments, reach);
    for (int32_t k = 0; k < 2 * (last_step + 1); k++) {
      let_all_stay(s);
      pl_auto_segments_set(&s->segments, k / 2 * (n_cuts + 1) / STEPS, k % 2 > 0, s->ways);
      keep_fixed(s);
      pl_auto_judge(s);
      keep_if_better(s, &best);
    }
    if (reach > s->gaps->order->n / 2) break;
  }
  memcpy(s->ways, s->kept, (size_t)s->gaps->n);
  pl_auto_judge(s);
}

static void keep_if_better(pl_auto_search *s, pl_auto_score *best) {
  enum { TIMES = 5 /* the charge: at first prices it is less than making it fit costs */ };
  if (pl_auto_sum(s->score, TIMES) >= pl_auto_sum(*best, TIMES)) return;
  *best = s->score;
  memcpy(s->kept, s->ways, (size_t)s->gaps->n);
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
    let_all_stay(s);
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
