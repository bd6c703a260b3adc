/* How `tensile` swaps (papers/002, IV-C, Algorithm 2; tensile.c).
 *
 * A swap is of the gap between two accesses around the peak. The swap-out is as early as possible behind the access
 * that generates the version, the swap-in as late as possible ahead of the access that ends the gap; neither runs
 * beside an access of the version. There is one link, which one copy has at a time in either direction, and on which
 * the copies of inputs and results are from the beginning. A swap whose copies find no time of which the peak is in
 * between is not scheduled; other versions are then tried by descending size. The host keeps what was copied out: later
 * gaps of the same version need a swap-in alone, and those that find time are scheduled along with the first (line
 * 34 of the algorithm).
 *
 * Across iterations: a parameter, or what else persists, is swapped out behind its update and swapped in ahead of the
 * next iteration's first access, also where the peak is behind that. At the end of an iteration nothing must be left on
 * the link (III-D), which is little time behind an update. A swap-out that does not end within the iteration begins in
 * the next one, behind its first op: the paper does not say so, but state of an optimizer would hardly ever leave
 * otherwise. What the period never writes has its copy on the host for good.
 *
 * The rate: the paper's is a job's share of all versions that are swapped, which limits nothing where there is one job;
 * here it is, as in the authors' program, the share of the job's versions that may be swapped. */
#include "planner/choose/gaps.h"
#include "planner/choose/restorable.h"
#include "planner/policies/tensile.h"
#include "util/math.h"

typedef struct swap {
  tensile_version *version; /* that is away */
  bool copies;              /* there is a swap-out, at out_start */
  int64_t out_start, in_start;
  int32_t copy, leave, fetch;
} swap;

static planc_status take_swap(tensile *t, tensile_gap *gap, int32_t peak, bool *out_taken);
static bool plan_parking(const tensile *t, tensile_gap *gap, swap *park, swap *in);
static bool note(tensile_gap *gap, const swap *s, int32_t peak);
static bool plan(const tensile *t, tensile_gap *gap, int32_t peak, swap *s);
static planc_status take(tensile *t, tensile_gap *gap, const swap *s);
static planc_status take_rest(tensile *t, const tensile_version *version);
static bool plan_across(const tensile *t, const tensile_gap *gap, swap *s);
static bool plan_within(const tensile *t, const tensile_gap *gap, swap *s);
static bool plan_next(const tensile *t, const tensile_gap *gap, swap *s);
static pl_cover relieved(const swap *s);

planc_status tensile_swap(tensile *t, int32_t peak, bool *out_taken) {
  return tensile_take_first(t, &t->by_size, peak, take_swap, out_taken);
}

static planc_status take_swap(tensile *t, tensile_gap *gap, int32_t peak, bool *out_taken) {
  swap s, in;
  gap->waits = !t->versions[gap->version].released && t->n_swapped >= t->most_swapped;
  if (gap->waits) return NULL;
  bool parks = plan_parking(t, gap, &s, &in);
  *out_taken = parks ? note(gap, &in, peak) : plan(t, gap, peak, &s);
  if (!*out_taken) return NULL;
  if (!s.version->released && !pl_host_has_room(t->walk, t->host_bytes, &s.version->swap)) {
    gap->state = TENSILE_HOPELESS;
    *out_taken = false;
    return NULL;
  }
  if (parks) gap = &t->gaps[t->versions[gap->version].across];
  PLANC_TRY(take(t, gap, &s));
  PLANC_TRY(take_rest(t, s.version));
  return gap->wraps ? take_rest(t, &t->versions[t->first_version[s.version->buffer]]) : NULL;
}

/* Plans the swap of a gap that relieves the peak. */
static bool plan(const tensile *t, tensile_gap *gap, int32_t peak, swap *s) {
  bool possible = gap->wraps ? plan_across(t, gap, s) : plan_within(t, gap, s);
  if (possible && note(gap, s, peak)) return true;
  if (gap->wraps && plan_next(t, gap, s)) return possible ? pl_cover_is_around(relieved(s), peak) : note(gap, s, peak);
  if (!possible) gap->state = TENSILE_HOPELESS;
  return false;
}

/* Takes all other gaps of a version that need a swap-in alone. */
static planc_status take_rest(tensile *t, const tensile_version *version) {
  for (int32_t k = version->first_gap; k < t->n && t->gaps[k].version == version - t->versions; k++) {
    swap s;
    tensile_gap *gap = &t->gaps[k];
    if (!version->on_host || gap->wraps || gap->state == TENSILE_TAKEN) continue;
    if (plan_within(t, gap, &s)) PLANC_TRY(take(t, gap, &s));
  }
  return NULL;
}

/* --- Times -------------------------------------------------------------------------------------------------------- */

static int32_t position_of(const tensile *t, int32_t use) {
  return t->order->uses[use].position;
}

/* --- Planning a swap ---------------------------------------------------------------------------------------------- */

/* Finds a swap-out ahead of the access behind `use`: between two accesses, the first of which is no later than
 * that. A version that is there before the period can also be copied ahead of its first access. The link only fills, so
 * that where nothing was found nothing is sought again. */
static bool find_out(const tensile *t, tensile_version *version, int32_t use, int64_t *out) {
  int32_t end = t->order->first_use[version->buffer + 1];
  for (; version->search <= use; version->search++) {
    int32_t behind = version->search < version->first ? 0 : position_of(t, version->search);
    int32_t ahead = version->search + 1 < end ? position_of(t, version->search + 1) : t->order->n;
    if (pl_link_time_earliest(&t->link, t->unswapped.start[behind + 1], t->unswapped.start[ahead],
                              tensile_out_ns(version), out))
      return true;
  }
  return false;
}

/* Plans to have the version on the host ahead of the access behind `use`, and gone between `from` and `to`. */
static bool plan_out(const tensile *t, int32_t use, int32_t from, int32_t to, swap *s) {
  s->copies = !s->version->on_host;
  int64_t end = s->version->host_ns;
  if (s->copies) {
    if (!find_out(t, s->version, use, &s->out_start)) return false;
    end = s->out_start + tensile_out_ns(s->version);
    s->copy = pl_unswapped_last(&t->unswapped, 1, to, s->out_start) - 1;
  }
  s->leave = pl_unswapped_last(&t->unswapped, from, to, end - 1);
  return true;
}

static bool plan_in(const tensile *t, const tensile_gap *gap, int64_t behind_ns, swap *s) {
  int64_t in_ns = tensile_in_ns(&t->versions[gap->version]);
  if (!pl_link_time_latest(&t->link, behind_ns, t->unswapped.start[gap->to], in_ns, &s->in_start)) return false;
  s->fetch = pl_unswapped_last(&t->unswapped, 0, gap->to, s->in_start);
  return true;
}

/* Plans the swap of a gap within the period; false when there is none and never will be. */
static bool plan_within(const tensile *t, const tensile_gap *gap, swap *s) {
  *s = (swap){.version = &t->versions[gap->version], .copy = PL_NO_COPY};
  return plan_in(t, gap, t->unswapped.start[gap->from + 1], s) && plan_out(t, gap->use, gap->from, gap->to - 1, s) &&
         s->fetch > s->leave + 1;
}

/* The same for a gap that wraps, with a swap-out that ends within the iteration. The swap-in is behind the first
 * op, whose own inputs come first. */
static bool plan_across(const tensile *t, const tensile_gap *gap, swap *s) {
  *s = (swap){.version = &t->versions[gap->version], .copy = PL_NO_COPY, .leave = gap->from};
  if (!plan_in(t, gap, t->unswapped.start[1], s)) return false;
  if (s->version->number == 0) return true;
  s->copy = s->version->copy;
  return plan_out(t, gap->use, gap->from, t->order->n - 1, s);
}

/* The same with a swap-out in the next iteration, of version 0. */
static bool plan_next(const tensile *t, const tensile_gap *gap, swap *s) {
  tensile_version *version = &t->versions[t->first_version[t->versions[gap->version].buffer]];
  *s = (swap){.version = version, .copy = PL_NO_COPY};
  return plan_in(t, gap, t->unswapped.start[1], s) && plan_out(t, version->first - 1, 0, gap->to - 1, s) &&
         s->fetch > s->leave + 1;
}

/* --- Taking it ---------------------------------------------------------------------------------------------------- */

/* Marks a version as away at some time; its gaps need not wait for that any more. */
static planc_status release(tensile *t, tensile_version *version) {
  version->released = true;
  for (int32_t k = version->first_gap; k < t->n && t->gaps[k].version == version - t->versions; k++) {
    tensile_gap *gap = &t->gaps[k];
    if (!gap->waits) continue;
    gap->waits = false;
    PLANC_TRY(pl_covers_set(&t->by_size.covers, gap->place, gap->relieves));
  }
  return NULL;
}

/* What is away when the iteration ends is away when the next one begins, as version 0, which the host then has. */
static planc_status wrap(tensile *t, const swap *s, int64_t bytes) {
  tensile_version *next = &t->versions[t->first_version[s->version->buffer]];
  next->on_host = true;
  pl_peaks_add(&t->unswapped.peaks, s->leave + 1, t->order->n - 1, -bytes);
  pl_peaks_add(&t->unswapped.peaks, 0, s->fetch - 1, -bytes);
  return release(t, next);
}

static planc_status take(tensile *t, tensile_gap *gap, const swap *s) {
  tensile_version *version = s->version;
  PLANC_TRY(pl_link_time_take(&t->link, s->in_start, tensile_in_ns(version)));
  if (!version->released) {
    t->n_swapped++;
    t->host_bytes = pl_add_saturate(t->host_bytes, version->swap.host_bytes);
  }
  PLANC_TRY(release(t, version));
  if (s->copies) {
    PLANC_TRY(pl_link_time_take(&t->link, s->out_start, tensile_out_ns(version)));
    version->on_host = true;
    version->host_ns = s->out_start + tensile_out_ns(version);
    version->copy = s->copy;
  }
  if (s->fetch <= s->leave) {
    PLANC_TRY(wrap(t, s, gap->bytes));
  } else {
    pl_peaks_add(&t->unswapped.peaks, s->leave + 1, s->fetch - 1, -gap->bytes);
  }
  gap->state = TENSILE_TAKEN;
  gap->in_start = s->in_start;
  gap->absence = (pl_absence){
      .buffer = version->buffer, .version = version->number, .copy = s->copy, .leave = s->leave, .fetch = s->fetch};
  return NULL;
}

static pl_cover relieved(const swap *s) {
  return (pl_cover){s->leave, s->fetch};
}

/* Notes which peaks a gap could relieve. */
static bool note(tensile_gap *gap, const swap *s, int32_t peak) {
  gap->relieves = relieved(s);
  return pl_cover_is_around(gap->relieves, peak);
}

/* Where a swap across iterations makes the gap need a swap-in alone: plans that one. False when there is none and
 * never will be. */
static bool plan_parking(const tensile *t, tensile_gap *gap, swap *park, swap *in) {
  const tensile_version *version = &t->versions[gap->version];
  if (gap->wraps || version->on_host || version->across < 0) return false;
  const tensile_gap *across = &t->gaps[version->across];
  *in = (swap){.leave = gap->from};
  return across->state == TENSILE_OPEN && plan_across(t, across, park) &&
         plan_in(t, gap, t->unswapped.start[gap->from + 1], in) && in->fetch > in->leave + 1;
}

/* --- Set-up ------------------------------------------------------------------------------------------------------- */

static planc_status reserve_users(tensile *t);
static planc_status find_versions(tensile *t, pl_arena *arena);
static planc_status find_gaps(tensile *t, pl_arena *arena);

planc_status tensile_set_up_swaps(tensile *t, pl_arena *arena) {
  tensile_rank *ranks;
  PLANC_TRY(pl_link_time_reset(&t->link));
  PLANC_TRY(reserve_users(t));
  PLANC_TRY(find_versions(t, arena));
  PLANC_TRY(find_gaps(t, arena));
  PLANC_TRY(PL_NEW(arena, &ranks, t->n));
  for (int32_t k = 0; k < t->n; k++) ranks[k] = (tensile_rank){t->gaps[k].bytes, k};
  return tensile_make_list(t, arena, ranks, t->n, &t->by_size);
}

/* When a gradient that other replicas get has been made. */
static int64_t made_ns(const tensile *t, int32_t gradient) {
  int32_t writer = pl_writer_of(t->trace, gradient, t->trace->buffers[gradient].sent);
  return t->unswapped.start[t->order->first[writer] + 1];
}

/* Inputs come in ahead of their first access, those of the first instance at the end of the iteration before; results
 * leave behind their last access. Gradients leave for other replicas when they are made, and theirs come in after. */
static planc_status reserve_users(tensile *t) {
  const pl_walk *walk = t->walk;
  int64_t end = t->unswapped.start[t->order->n], start;
  for (int32_t b = 0; b < t->trace->n_buffers; b++) {
    const planc_buffer *buffer = &t->trace->buffers[b];
    if (buffer->n_accesses == 0) continue;
    if (buffer->flags & PLANC_BUFFER_FED) {
      int64_t ns = pl_fetch_ns(walk->links, t->trace, b), to = t->unswapped.start[planc_order_first(t->order, b)];
      int64_t from = buffer->peer < 0 ? 0 : made_ns(t, buffer->peer);
      if (pl_link_time_latest(&t->link, from, to > 0 ? to : end, ns, &start))
        PLANC_TRY(pl_link_time_take(&t->link, start, ns));
    }
    if (buffer->sent >= 0) {
      int64_t ns = pl_offload_ns(walk->links, t->trace, b);
      if (pl_link_time_earliest(&t->link, made_ns(t, b), end, ns, &start))
        PLANC_TRY(pl_link_time_take(&t->link, start, ns));
    }
    if (buffer->flags & PLANC_BUFFER_RESULT) {
      int64_t ns = pl_offload_ns(walk->links, t->trace, b);
      if (pl_link_time_earliest(&t->link, t->unswapped.start[planc_order_last(t->order, b) + 1], end, ns, &start))
        PLANC_TRY(pl_link_time_take(&t->link, start, ns));
    }
  }
  return NULL;
}

static bool is_there_before(const planc_buffer *buffer) {
  return buffer->flags & (PLANC_BUFFER_PERSISTENT | PLANC_BUFFER_FED);
}

static planc_status find_versions(tensile *t, pl_arena *arena) {
  const planc_trace *trace = t->trace;
  const pl_walk *walk = t->walk;
  int32_t n = 0;
  int64_t n_with_content = 0;
  PLANC_TRY(PL_NEW(arena, &t->first_version, trace->n_buffers));
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    t->first_version[b] = n;
    n += trace->buffers[b].last_version + 1;
    n_with_content += trace->buffers[b].last_version + is_there_before(&trace->buffers[b]);
  }
  t->most_swapped = pl_muldiv_floor(n_with_content, t->rate_ppm, PL_PPM);
  PLANC_TRY(PL_NEW(arena, &t->versions, n));
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    tensile_version *versions = &t->versions[t->first_version[b]];
    for (int32_t v = 0; v <= buffer->last_version; v++) {
      versions[v] = (tensile_version){.buffer = b,
                                      .number = v,
                                      .first = t->order->first_use[b],
                                      .first_gap = INT32_MAX,
                                      .across = -1,
                                      .swap = pl_price_of_link(walk, b, v),
                                      .copy = PL_NO_COPY};
    }
    versions[0].on_host = planc_user_holds(buffer, 0);
    for (int32_t u = t->order->first_use[b]; u < t->order->first_use[b + 1]; u++) {
      const planc_access *access = planc_order_access(t->order, u);
      if (access->write >= 0) versions[access->write].first = u;
      if (access->write >= 0) versions[access->write].last = u;
      if (access->read >= 0) versions[access->read].last = u;
    }
    for (int32_t v = 0; v <= buffer->last_version; v++) versions[v].search = versions[v].first - (v == 0);
  }
  return NULL;
}

/* `use` is where it begins. */
static void add_gap(tensile *t, const planc_gap *gap, int32_t use) {
  int32_t version = t->first_version[gap->buffer] + gap->version;
  if (t->versions[version].first_gap == INT32_MAX) t->versions[version].first_gap = t->n;
  if (gap->wraps) t->versions[t->first_version[gap->buffer]].across = t->n;
  t->gaps[t->n++] = (tensile_gap){.version = version,
                                  .use = use,
                                  .from = gap->from,
                                  .to = gap->to,
                                  .wraps = gap->wraps,
                                  .relieves = {gap->from, gap->to},
                                  .bytes = pl_walk_bytes(&t->trace->buffers[gap->buffer])};
}

static planc_status find_gaps(tensile *t, pl_arena *arena) {
  const planc_trace *trace = t->trace;
  PLANC_TRY(PL_NEW(arena, &t->gaps, trace->n_accesses));
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    planc_gap gap;
    const planc_buffer *buffer = &trace->buffers[b];
    int32_t end = t->order->first_use[b + 1];
    for (int32_t u = t->order->first_use[b] + 1; u < end; u++)
      if (pl_gap_ends(t->order, b, u, &gap)) add_gap(t, &gap, u - 1);
    if (!(buffer->flags & PLANC_BUFFER_PERSISTENT) || buffer->n_accesses == 0) continue;
    gap = (planc_gap){b, buffer->last_version, position_of(t, end - 1), planc_order_first(t->order, b), true};
    add_gap(t, &gap, end - 1);
  }
  return NULL;
}
