/* `lms`: Large Model Support for TensorFlow (Le et al., ISMM 2019, as Out-of-core training, 2, describes it), its
 * second version, whose code settles what the descriptions leave open.
 *
 * Distances are between levels: an op is one level above the highest writer of what it reads. A buffer is swapped out
 * as soon as it is made when a reader is more than `threshold` levels away; readers up to there use what is on the
 * device. A reader farther away has it swapped back in, sharing that with the one before when the two are at most
 * `groupby` levels apart. The swap-in begins when an op has run that leads to the reader and is more than `ahead`
 * levels below it; a synchronised one when the reader's other inputs have been made, though other ops may run before
 * the reader. Parameters, state, inputs and vectors are not swapped.
 *
 * The four parameters are tuned by playing the iteration through as far as memory is concerned, in nine tenths of what
 * parameters leave: no swapping, if that fits; else the first way to synchronise under which threshold 1 fits, and then
 * by bisection the greatest threshold, the greatest `ahead`, and a `groupby`: all of the graph, or the first that fits
 * on the way of a bisection.
 *
 * Where the code takes any op of a level, the one on the longest path to the reader is taken here; there always is one,
 * which branches do not change. A swap-in that would begin before the swap-out has left the device makes the buffer
 * stay. Where no parameters fit in nine tenths, the least ones are taken (threshold and `ahead` 1, all synchronised).
 *
 * Addresses are those of TensorFlow's allocator as data comes and goes (bfc.h); what persists comes first. A
 * convolution whose workspace finds no place there takes the next algorithm, as in TensorFlow. Playing through counts
 * bytes and not addresses, so that what passes may still be out of memory: then it is tuned again for less, as its
 * users would. A copy out that nobody waits for has the time of the next op to end in, if memory suffices; where it
 * does not, TensorFlow's allocator waits, and here the next op does.
 */

#include "planner/base/code.h"
#include "planner/choose/absences.h"
#include "planner/choose/gaps.h"
#include "planner/choose/room_search.h"
#include "planner/policies/policies.h"
#include "util/math.h"
#include "util/size.h"

typedef enum lms_sync { SYNC_NONE, SYNC_OUT, SYNC_IN, SYNC_BOTH, N_SYNCS } lms_sync;

typedef struct lms_parameters {
  int32_t threshold, ahead, groupby;
  lms_sync sync;
} lms_parameters;

typedef struct lms {
  const planc_trace *trace;
  const planc_order *order;
  int32_t n_levels;
  int32_t *level; /* per position */
  /* The longest path to every position: the position before it there, and one farther back, so that any level of the
   * path is found in logarithmic time. Both are the position itself at level 0. */
  int32_t *below, *far_below;
  int32_t *last, *before_last; /* per position: of the writers of what it reads those that run last; -1 = none */
  int64_t *workspace;          /* per position, of the baseline algorithm */
  int64_t *live;               /* per position, scratch */
  int64_t room;                /* to play in */
  bool lag;                    /* copies out that nobody waits for leave memory one op later */
  pl_absence *items;
} lms;

static planc_status choose(const void *context, const pl_walk *walk, pl_arena *arena, pl_absences *out);
static planc_status find_room(const planc_evaluator *evaluator, planc_candidate *out);
static planc_status set_up(lms *l, const pl_walk *walk, pl_arena *arena);
static planc_status tune(const lms *l, lms_parameters *p);
static pl_absences swaps_of(const lms *l, const lms_parameters *p);
static planc_status explain(const lms_parameters *p, pl_arena *arena, pl_absences *out);
static planc_status try_room(const planc_evaluator *evaluator, int64_t room, planc_candidate *out, bool *out_lag,
                             int64_t *out_excess);

planc_status pl_policy_lms(const planc_evaluator *evaluator, planc_candidate *out) {
  bool fits, lag = true;
  pl_walk_room room;
  pl_absence_rule rule = {.choose = choose, .context = &lag, .online = true};
  PLANC_TRY(pl_walk_try(evaluator, pl_make_absences, &rule, PL_ROOM_UNLIMITED, out, &room, &fits));
  return fits ? NULL : find_room(evaluator, out);
}

static planc_status choose(const void *context, const pl_walk *walk, pl_arena *arena, pl_absences *out) {
  const bool *lag = context;
  lms l;
  PLANC_TRY(set_up(&l, walk, arena));
  lms_parameters p = {.threshold = 1, .ahead = 1, .sync = SYNC_BOTH};
  if (walk->room != PL_ROOM_NONE) PLANC_TRY(tune(&l, &p));
  l.lag = *lag;
  *out = swaps_of(&l, &p);
  return explain(&p, arena, out);
}

/* Leaves the candidate of the largest room found that fits the budget, else that of the least parameters. */
static planc_status find_room(const planc_evaluator *evaluator, planc_candidate *out) {
  int64_t room = pl_arena_room(&evaluator->problem->terms, evaluator->problem->job.profile);
  pl_room_search search = pl_room_search_from(room, PL_ROOM_NONE, PLANC_ALIGNMENT);
  int64_t excess;
  bool lag = true;
  char whole[PL_SIZE_TEXT];
  do {
    planc_candidate tried = {0};
    bool lags;
    planc_status status = try_room(evaluator, search.room, &tried, &lags, &excess);
    bool keep = !status && (excess == 0 || search.fits < 0);
    planc_candidate_free(keep ? out : &tried);
    if (keep) *out = tried;
    if (keep) lag = lags;
    PLANC_TRY(status);
  } while (pl_room_search_on(&search, excess));
  char text[PL_SIZE_TEXT];
  if (search.fits < 0) return NULL;
  pl_absence_rule rule = {.choose = choose, .context = &lag, .online = true};
  pl_walk_room by = {search.fits, PL_RECEIVES_LATE};
  PLANC_TRY(pl_walk_receive(evaluator, pl_make_absences, &rule, out, &by));
  return planc_candidate_explain(out, "tuned for %s of %s, the most found with which addresses fit",
                                 pl_size_format(search.fits, text), pl_size_format(room, whole));
}

/* Tunes for a room, with copies out that lag and, where that does not fit, without; *out_excess is what the result
 * takes beyond the budget. */
static planc_status try_room(const planc_evaluator *evaluator, int64_t room, planc_candidate *out, bool *out_lag,
                             int64_t *out_excess) {
  int64_t budget = evaluator->problem->terms.budgets[PLANC_MEMORY_DEVICE], peak;
  *out_excess = 1;
  for (int lags = 1; *out_excess > 0 && lags >= 0; lags--) {
    *out_lag = lags;
    pl_absence_rule rule = {.choose = choose, .context = out_lag, .online = true};
    planc_candidate_free(out);
    PLANC_TRY(pl_make_absences(evaluator->problem, &rule, (pl_walk_room){room, PL_RECEIVES_LATE}, out));
    PLANC_TRY(evaluator->peak(evaluator, out, &peak));
    *out_excess = peak > budget ? peak - budget : 0;
  }
  return NULL;
}

/* --- Set-up ------------------------------------------------------------------------------------------------------- */

static planc_status find_levels(lms *l, pl_arena *arena);
static int64_t room_to_play(const pl_walk *walk);

static planc_status set_up(lms *l, const pl_walk *walk, pl_arena *arena) {
  int32_t n = walk->order->n;
  *l = (lms){.trace = walk->trace, .order = walk->order, .room = room_to_play(walk)};
  PLANC_TRY(PL_NEW(arena, &l->level, n));
  PLANC_TRY(PL_NEW(arena, &l->below, n));
  PLANC_TRY(PL_NEW(arena, &l->far_below, n));
  PLANC_TRY(PL_NEW(arena, &l->last, n));
  PLANC_TRY(PL_NEW(arena, &l->before_last, n));
  PLANC_TRY(pl_walk_workspaces(walk, 0, arena, &l->workspace));
  PLANC_TRY(PL_NEW(arena, &l->live, n));
  PLANC_TRY(PL_NEW(arena, &l->items, walk->trace->n_accesses));
  return find_levels(l, arena);
}

/* Nine tenths of what parameters leave, and they. */
static int64_t room_to_play(const pl_walk *walk) {
  int64_t parameters = 0;
  for (int32_t b = 0; b < walk->trace->n_buffers; b++) {
    const planc_buffer *buffer = &walk->trace->buffers[b];
    if (buffer->kind == PLANC_KIND_param) parameters = pl_add_saturate(parameters, pl_walk_bytes(buffer));
  }
  return walk->room <= parameters ? walk->room : parameters + (walk->room - parameters) / 10 * 9;
}

/* --- Levels ------------------------------------------------------------------------------------------------------- */

static void note_input(lms *l, int32_t position, int32_t writer);
static bool is_higher(const lms *l, int32_t writer, int32_t than);
static void put_on_path(lms *l, int32_t position, int32_t below);

/* Of several highest writers the one that runs last is on the path. */
static planc_status find_levels(lms *l, pl_arena *arena) {
  const planc_trace *trace = l->trace;
  int32_t *writer; /* per buffer, so far */
  PLANC_TRY(PL_NEW(arena, &writer, trace->n_buffers));
  for (int32_t b = 0; b < trace->n_buffers; b++) writer[b] = -1;
  l->n_levels = 1;
  for (int32_t p = 0; p < l->order->n; p++) {
    const planc_instance *in = planc_order_instance(l->order, p);
    const planc_access *accesses = &trace->accesses[in->first_access];
    int32_t highest = -1;
    l->last[p] = l->before_last[p] = -1;
    for (int32_t a = 0; a < in->n_accesses; a++) {
      int32_t input = accesses[a].read >= 0 ? writer[accesses[a].buffer] : -1;
      if (input < 0) continue;
      note_input(l, p, input);
      if (is_higher(l, input, highest)) highest = input;
    }
    put_on_path(l, p, highest);
    for (int32_t a = 0; a < in->n_accesses; a++) {
      if (accesses[a].write >= 0) writer[accesses[a].buffer] = p;
    }
  }
  return NULL;
}

static void note_input(lms *l, int32_t position, int32_t writer) {
  if (writer > l->last[position]) {
    l->before_last[position] = l->last[position];
    l->last[position] = writer;
  } else if (writer > l->before_last[position] && writer < l->last[position]) {
    l->before_last[position] = writer;
  }
}

static bool is_higher(const lms *l, int32_t writer, int32_t than) {
  return than < 0 || l->level[writer] > l->level[than] || (l->level[writer] == l->level[than] && writer > than);
}

static void put_on_path(lms *l, int32_t position, int32_t below) {
  if (below < 0) {
    l->below[position] = l->far_below[position] = position;
    return;
  }
  int32_t far = l->far_below[below];
  bool even = l->level[below] - l->level[far] == l->level[far] - l->level[l->far_below[far]];
  l->level[position] = l->level[below] + 1;
  l->below[position] = below;
  l->far_below[position] = even ? l->far_below[far] : below;
  if (l->level[position] >= l->n_levels) l->n_levels = l->level[position] + 1;
}

/* --- Swaps -------------------------------------------------------------------------------------------------------- */

static bool is_candidate(const lms *l, const planc_buffer *buffer);
static void swap_buffer(const lms *l, const lms_parameters *p, int32_t b, pl_absences *out);
static bool share_swap_in(const lms *l, const lms_parameters *p, int32_t writer, int32_t from, int32_t to);
static int32_t fetch_of(const lms *l, const lms_parameters *p, int32_t writer, int32_t to);
static int32_t path_at(const lms *l, int32_t position, int32_t level);

static pl_absences swaps_of(const lms *l, const lms_parameters *p) {
  pl_absences out = {.items = l->items};
  for (int32_t b = 0; b < l->trace->n_buffers; b++) {
    if (is_candidate(l, &l->trace->buffers[b])) swap_buffer(l, p, b, &out);
  }
  return out;
}

static bool is_candidate(const lms *l, const planc_buffer *buffer) {
  const planc_graph *graph = l->trace->jobs[buffer->job].graph;
  return !planc_kind_exists_before(buffer->kind) && graph->tensors[graph->storages[buffer->storage].tensor].rank > 1;
}

static void swap_buffer(const lms *l, const lms_parameters *p, int32_t b, pl_absences *out) {
  const planc_order *order = l->order;
  int32_t writer = -1;
  bool out_already = false;
  for (int32_t u = order->first_use[b]; u + 1 < order->first_use[b + 1]; u++) {
    planc_gap gap;
    bool is_read = pl_gap_ends(order, b, u + 1, &gap);
    if (planc_order_access(order, u)->write >= 0) {
      writer = gap.from;
      out_already = false;
    }
    if (!is_read || writer < 0 || l->level[gap.to] - l->level[writer] <= p->threshold) continue;
    if (share_swap_in(l, p, writer, gap.from, gap.to)) continue;
    bool delayed = l->lag && !out_already && (p->sync == SYNC_NONE || p->sync == SYNC_IN);
    pl_absence absence = {.buffer = b,
                          .version = gap.version,
                          .copy = writer,
                          .leave = gap.from + delayed,
                          .fetch = fetch_of(l, p, writer, gap.to),
                          .wait = p->sync == SYNC_OUT || p->sync == SYNC_BOTH};
    if (absence.leave >= absence.fetch) continue;
    l->items[out->n++] = absence;
    out_already = true;
  }
}

static bool share_swap_in(const lms *l, const lms_parameters *p, int32_t writer, int32_t from, int32_t to) {
  if (from == writer || l->level[from] - l->level[writer] <= p->threshold) return false;
  int32_t apart = l->level[to] - l->level[from];
  return p->groupby > 0 && apart <= p->groupby && -apart <= p->groupby;
}

/* The position ahead of which the swap-in for reader `to` of what `writer` made begins. */
static int32_t fetch_of(const lms *l, const lms_parameters *p, int32_t writer, int32_t to) {
  if (p->sync >= SYNC_IN) {
    int32_t latest = l->last[to] == writer ? l->before_last[to] : l->last[to];
    return latest > writer ? latest + 1 : to;
  }
  int32_t trigger_level = l->level[to] - p->ahead - 1;
  if (trigger_level <= l->level[writer]) return writer + 1;
  return path_at(l, to, trigger_level) + 1;
}

/* The position at `level` on the longest path to `position`, whose level is not below. */
static int32_t path_at(const lms *l, int32_t position, int32_t level) {
  while (l->level[position] > level) {
    int32_t far = l->far_below[position];
    position = l->level[far] >= level ? far : l->below[position];
  }
  return position;
}

/* --- Tuning ------------------------------------------------------------------------------------------------------- */

static planc_status play(const lms *l, const lms_parameters *p, bool *out_passed) {
  pl_absences absences = swaps_of(l, p);
  return pl_absences_fit(l->order, &absences, l->workspace, l->room, l->live, out_passed);
}

/* Bisects *value, a member of *p, for the greatest up to the number of levels that passes, as if all below one that
 * passes did; with `first`, for any that does. Keeps what it was where none passes. */
static planc_status bisect(const lms *l, lms_parameters *p, int32_t *value, int32_t low, bool first) {
  int32_t high = l->n_levels, best = *value;
  while (low <= high) {
    bool passed;
    *value = low + (high - low) / 2;
    PLANC_TRY(play(l, p, &passed));
    if (passed) {
      best = *value;
      if (first) break;
      low = best + 1;
    } else {
      high = *value - 1;
    }
  }
  *value = best;
  return NULL;
}

static planc_status tune(const lms *l, lms_parameters *p) {
  bool passed;
  *p = (lms_parameters){.threshold = l->n_levels, .ahead = 1};
  PLANC_TRY(play(l, p, &passed));
  if (passed) return NULL;
  p->threshold = 1;
  for (int32_t sync = SYNC_NONE; sync < N_SYNCS && !passed; sync++) {
    p->sync = (lms_sync)sync;
    PLANC_TRY(play(l, p, &passed));
  }
  if (!passed) return NULL;
  PLANC_TRY(bisect(l, p, &p->threshold, 1, false));
  if (p->sync >= SYNC_IN) return NULL;
  PLANC_TRY(bisect(l, p, &p->ahead, 1, false));
  p->groupby = l->n_levels;
  PLANC_TRY(play(l, p, &passed));
  if (passed) return NULL;
  p->groupby = 0;
  return bisect(l, p, &p->groupby, 0, true);
}

/* --- What is told ------------------------------------------------------------------------------------------------- */

static planc_status explain(const lms_parameters *p, pl_arena *arena, pl_absences *out) {
  static const char *const waited_for[N_SYNCS] = {"no swap", "swap-outs", "swap-ins", "every swap"};
  if (out->n == 0) return pl_absences_explain(out, arena, "nothing is swapped");
  return pl_absences_explain(out, arena,
                             "tensors are swapped for readers more than %d levels on, back in %d levels ahead, one "
                             "swap-in for readers within %d, and %s is waited for",
                             p->threshold, p->ahead, p->groupby, waited_for[p->sync]);
}
