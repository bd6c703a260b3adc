/* `superneurons`: SuperNeurons (Wang et al., PPoPP 2018), details after its published code: convolutions are
 * checkpoints, and what they put out is swapped; what cheaper layers put out is computed again.
 *
 * Recompute: of all that the forward pass makes, outputs of convolutions and matrix products stay to be used by the
 * backward pass, the rest is dropped. A segment is what runs from one of those ops to the next. It is restored once,
 * for all its backward ops (speed-centric), unless its data exceeds the most that one backward op touches, the
 * bottleneck; then each backward op restores what it reads, and nothing else stays (memory-centric). That takes the
 * square of a segment's ops: one of more than LONGEST is restored once, whatever its data.
 *
 * No more segments are dropped than the budget asks for, the first ones, which are away longest: as few as leave room
 * for the fastest algorithms, all where that does not do. Nothing is swapped before.
 *
 * Swapping: the copy out of a convolution's output begins when the convolution ends; the data leaves behind its last
 * forward reader. It is copied back in beside the backward ops of the convolution that is nearest ahead of the op, or
 * the restore, that needs it. As in the tensor cache, which evicts what was used longest ago and only when memory runs
 * out, no more outputs are swapped than the budget asks for, those last used first. Algorithms of convolutions are the
 * fastest for which there is room.
 *
 * Choices where the sources are silent: outputs of matrix products are neither swapped, being small in the networks
 * studied, nor computed again. Branches: segments are cut in execution order. What a segment's cheap ops read of
 * another segment, as a join reads the shortcut of a residual block, stays and is swapped like a convolution's output,
 * so that a restore never goes beyond its segment. */
#include <stdlib.h>

#include "planc/needs.h"
#include "planner/choose/absences.h"
#include "planner/choose/recompute.h"
#include "planner/choose/ways_back.h"
#include "planner/policies/policies.h"
#include "util/math.h"

typedef struct superneurons {
  const planc_trace *trace;
  const planc_order *order;
  pl_drops drops;
  bool *base;       /* the same with all segments dropped, before what has to be kept as well */
  int32_t *segment; /* per buffer: of its last write in the forward pass, from 0 */
  int32_t n_segments, n_dropped;
  bool *swap;     /* per buffer: may be swapped */
  bool *brief;    /* per buffer: of a memory-centric segment */
  bool *apart;    /* the same by use of the order */
  int32_t *need;  /* per buffer: find_need */
  int32_t *ahead; /* per position: the first backward op of the convolution nearest ahead, -1 = there is none */
  int64_t *live;  /* per position, scratch */
  pl_absence *items;
} superneurons;

static planc_status choose(const void *context, const pl_walk *walk, pl_arena *arena, pl_absences *out);
static planc_status take_segments(const pl_walk *walk, superneurons *s, pl_arena *arena, pl_absences *out,
                                  bool *out_fits);
static planc_status take_outputs(const pl_walk *walk, const superneurons *s, int64_t n_all, pl_arena *arena,
                                 pl_absences *out);
static void keep_checkpoints(superneurons *s);
static void find_layers_ahead(superneurons *s);
static int64_t add_outputs(superneurons *s, int64_t first);

planc_status pl_policy_superneurons(const planc_evaluator *evaluator, planc_candidate *out) {
  pl_absence_rule rule = {.choose = choose};
  return pl_walk_fit(evaluator, pl_make_absences, &rule, out);
}

static planc_status choose(const void *context, const pl_walk *walk, pl_arena *arena, pl_absences *out) {
  (void)context;
  const planc_trace *trace = walk->trace;
  superneurons s = {.trace = trace, .order = walk->order};
  bool fit;
  PLANC_TRY(pl_drops_new(trace, arena, &s.drops));
  PLANC_TRY(PL_NEW(arena, &s.base, trace->n_buffers));
  PLANC_TRY(PL_NEW(arena, &s.segment, trace->n_buffers));
  PLANC_TRY(PL_NEW(arena, &s.swap, trace->n_buffers));
  PLANC_TRY(PL_NEW(arena, &s.brief, trace->n_buffers));
  PLANC_TRY(PL_NEW(arena, &s.apart, s.order->first_use[trace->n_buffers]));
  PLANC_TRY(PL_NEW(arena, &s.need, trace->n_buffers));
  PLANC_TRY(PL_NEW(arena, &s.ahead, walk->order->n));
  PLANC_TRY(PL_NEW(arena, &s.items, (int64_t)trace->n_accesses + trace->n_buffers));
  PLANC_TRY(PL_NEW(arena, &s.live, walk->order->n));
  keep_checkpoints(&s);
  find_layers_ahead(&s);
  PLANC_TRY(take_segments(walk, &s, arena, out, &fit));
  int64_t n_drops = out->n;
  if (!fit) PLANC_TRY(take_outputs(walk, &s, add_outputs(&s, n_drops), arena, out));
  return pl_absences_explain(out, arena,
                             "%d of %d segments are computed again and %lld outputs swapped, no more than the "
                             "budget asks for",
                             s.n_dropped, s.n_segments, (long long)(out->n - n_drops));
}

/* --- What the budget asks for ------------------------------------------------------------------------------------- */

static planc_status drop_segments(superneurons *s, pl_arena *arena, int32_t n_dropped, pl_absences *out);

/* The fewest of the segments with which the live data fits beside the fastest algorithms, all where it never does. */
static planc_status take_segments(const pl_walk *walk, superneurons *s, pl_arena *arena, pl_absences *out,
                                  bool *out_fits) {
  int32_t low = 0, high = walk->recomputes ? s->n_segments : 0;
  int64_t *fastest;
  PLANC_TRY(pl_walk_workspaces(walk, INT64_MAX, arena, &fastest));
  PLANC_TRY(drop_segments(s, arena, high, out));
  PLANC_TRY(pl_absences_fit(s->order, out, fastest, walk->room, s->live, out_fits));
  while (*out_fits && low < high) {
    bool fit;
    int32_t middle = low + (high - low) / 2;
    PLANC_TRY(drop_segments(s, arena, middle, out));
    PLANC_TRY(pl_absences_fit(s->order, out, fastest, walk->room, s->live, &fit));
    if (fit) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return drop_segments(s, arena, high, out);
}

/* The fewest of the outputs, taken in their order, with which the live data fits beside the baseline algorithms; as
 * many as the host has room for where it never does. */
static planc_status take_outputs(const pl_walk *walk, const superneurons *s, int64_t n_all, pl_arena *arena,
                                 pl_absences *out) {
  int64_t low = out->n, high = out->n, taken = 0, *baseline;
  PLANC_TRY(pl_walk_workspaces(walk, 0, arena, &baseline));
  for (; walk->swaps && high < n_all; high++) {
    pl_price price = pl_price_of_link(walk, out->items[high].buffer, out->items[high].version);
    if (!pl_host_has_room(walk, taken, &price)) break;
    taken += price.host_bytes;
  }
  while (low < high) {
    bool fit;
    out->n = low + (high - low) / 2;
    PLANC_TRY(pl_absences_fit(s->order, out, baseline, walk->room, s->live, &fit));
    if (fit) {
      high = out->n;
    } else {
      low = out->n + 1;
    }
  }
  out->n = high;
  return NULL;
}

/* --- Recompute ---------------------------------------------------------------------------------------------------- */

enum { LONGEST = 64 };

static bool is_checkpoint(const planc_trace *trace, int32_t instance);
static void find_memory_centric(superneurons *s);
static int64_t bottleneck(const planc_trace *trace);
static int64_t dropped_bytes(superneurons *s, int32_t position, bool brief);
static int32_t find_need(const superneurons *s, int32_t b);

/* Keeps what checkpoints write, and what a cheap op reads that was written in another segment than its own. */
static void keep_checkpoints(superneurons *s) {
  const planc_trace *trace = s->trace;
  int32_t *written = s->segment, segment = 0; /* per buffer, the segment of its last write so far, -1 = none */
  for (int32_t b = 0; b < trace->n_buffers; b++) written[b] = -1;
  for (int32_t p = 0; p < s->order->n; p++) {
    int32_t i = s->order->runs[p].instance;
    if (planc_trace_phase(trace, i) != PLANC_PHASE_forward) continue;
    const planc_instance *in = &trace->instances[i];
    bool checkpoint = is_checkpoint(trace, i), conv = pl_instance_class(trace, i) == PLANC_CLASS_conv;
    segment += checkpoint;
    for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
      const planc_access *access = &trace->accesses[a];
      int32_t from = written[access->buffer];
      bool crosses = !checkpoint && !access->effect && access->read >= 0 && from >= 0 && from != segment;
      bool made = checkpoint && access->write >= 0;
      s->base[access->buffer] |= crosses || made;
      s->swap[access->buffer] |= crosses || (made && conv);
      if (access->write >= 0) written[access->buffer] = segment;
    }
  }
  s->n_segments = segment + 1;
}

static bool is_checkpoint(const planc_trace *trace, int32_t instance) {
  planc_class class_ = pl_instance_class(trace, instance);
  return class_ == PLANC_CLASS_conv || class_ == PLANC_CLASS_gemm;
}

/* Drops the first segments. */
static planc_status drop_segments(superneurons *s, pl_arena *arena, int32_t n_dropped, pl_absences *out) {
  const planc_trace *trace = s->trace;
  s->n_dropped = n_dropped;
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    s->drops.keep[b] = s->base[b] || s->segment[b] >= n_dropped;
    s->brief[b] = false;
  }
  PLANC_TRY(pl_mark_drops(s->order, arena, &s->drops));
  for (int32_t b = 0; b < trace->n_buffers; b++) s->need[b] = find_need(s, b);
  find_memory_centric(s);
  for (int32_t b = 0; b < trace->n_buffers; b++)
    for (int32_t u = s->order->first_use[b]; u < s->order->first_use[b + 1]; u++) s->apart[u] = s->brief[b];
  *out = (pl_absences){.items = s->items, .until = s->drops.until, .apart = s->apart};
  out->n = pl_drop(s->order, &s->drops, s->brief, s->items);
  for (int64_t k = 0; k < out->n; k++)
    if (!s->brief[s->items[k].buffer]) s->items[k].fetch = s->need[s->items[k].buffer];
  return NULL;
}

static void find_memory_centric(superneurons *s) {
  int64_t most = bottleneck(s->trace), bytes = 0;
  int32_t first = 0;
  for (int32_t p = 0; p <= s->order->n; p++) {
    bool inside = p < s->order->n && planc_order_phase(s->order, p) == PLANC_PHASE_forward &&
                  !is_checkpoint(s->trace, s->order->runs[p].instance);
    if (inside) {
      bytes = pl_add_saturate(bytes, dropped_bytes(s, p, false));
      continue;
    }
    for (int32_t k = first; bytes > most && p - first <= LONGEST && k < p; k++) (void)dropped_bytes(s, k, true);
    first = p + 1;
    bytes = 0;
  }
}

static int64_t bottleneck(const planc_trace *trace) {
  int64_t most = 0;
  for (int32_t i = 0; i < trace->n_instances; i++) {
    int64_t bytes = planc_trace_phase(trace, i) == PLANC_PHASE_backward ? planc_instance_bytes(trace, i) : 0;
    if (bytes > most) most = bytes;
  }
  return most;
}

/* Bytes of the dropped buffers that are made at a position; marks them as brief where asked to. */
static int64_t dropped_bytes(superneurons *s, int32_t position, bool brief) {
  const planc_instance *in = planc_order_instance(s->order, position);
  int64_t bytes = 0;
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &s->trace->accesses[a];
    if (access->write < 0 || access->read >= 0 || s->drops.keep[access->buffer]) continue;
    bytes = pl_add_saturate(bytes, s->trace->buffers[access->buffer].bytes);
    s->brief[access->buffer] |= brief;
  }
  return bytes;
}

/* The first position behind the forward pass that reads what that left in a buffer, or something restored from it;
 * PL_NEVER where that is overwritten first. */
static int32_t find_need(const superneurons *s, int32_t b) {
  int32_t need = PL_NEVER;
  for (int32_t u = s->order->first_use[b]; u < s->order->first_use[b + 1]; u++) {
    const planc_access *access = planc_order_access(s->order, u);
    int32_t at = s->order->uses[u].position;
    bool forward = planc_order_phase(s->order, at) == PLANC_PHASE_forward;
    if (!forward && access->read < 0) return PL_NEVER;
    int32_t reads = forward ? s->drops.again[access->instance] : at;
    if (forward && access->write >= 0) need = PL_NEVER;
    if ((!forward || (access->write < 0 && !access->effect)) && reads < need) need = reads;
    if (!forward) break;
  }
  return need;
}

/* --- Swapping ----------------------------------------------------------------------------------------------------- */

/* The gradients of one convolution read one buffer, its output's gradient, and are one layer. */
static void find_layers_ahead(superneurons *s) {
  const planc_trace *trace = s->trace;
  int32_t layer = -1, begin = -1, before = -1;
  for (int32_t p = 0; p < s->order->n; p++) {
    int32_t i = s->order->runs[p].instance;
    bool conv = planc_trace_phase(trace, i) == PLANC_PHASE_backward && pl_instance_class(trace, i) == PLANC_CLASS_conv;
    if (conv) {
      int32_t gradient = pl_output_gradient(trace, i);
      if (layer < 0 || gradient != layer) {
        before = begin;
        begin = p;
      }
      layer = gradient;
    }
    s->ahead[p] = conv ? before : begin;
  }
}

/* The version of a buffer behind the forward pass, and its writer and last reader there; false when it is not to be
 * swapped, or nothing reads it later. */
static bool find_output(const superneurons *s, int32_t b, pl_absence *out) {
  const planc_buffer *buffer = &s->trace->buffers[b];
  *out = (pl_absence){.buffer = b, .version = -1};
  if (buffer->kind != PLANC_KIND_activation || (buffer->flags & PLANC_BUFFER_RESULT)) return false;
  if (!s->swap[b] || !s->drops.keep[b] || s->need[b] == PL_NEVER) return false;
  for (int32_t u = s->order->first_use[b]; u < s->order->first_use[b + 1]; u++) {
    int32_t at = s->order->uses[u].position, made = planc_order_access(s->order, u)->write;
    if (planc_order_phase(s->order, at) != PLANC_PHASE_forward) break;
    if (made >= 0) {
      out->version = made;
      out->copy = at;
    }
    out->leave = at;
  }
  return out->version >= 0;
}

static int by_last_use(const void *left, const void *right) {
  const pl_absence *a = left, *b = right;
  if (a->leave != b->leave) return a->leave < b->leave ? -1 : 1;
  return (a->buffer > b->buffer) - (a->buffer < b->buffer);
}

/* What the code's cache evicts is copied ahead of that, beside the op behind the convolution at least. */
static int64_t add_outputs(superneurons *s, int64_t first) {
  int64_t n = first;
  for (int32_t b = 0; b < s->trace->n_buffers; b++) {
    pl_absence absence;
    if (!find_output(s, b, &absence)) continue;
    int32_t ahead = s->ahead[s->need[b]];
    absence.fetch = ahead > absence.leave ? ahead : s->need[b];
    if (absence.leave == absence.copy) absence.leave++;
    if (absence.leave < absence.fetch) s->items[n++] = absence;
  }
  if (n > first) qsort(&s->items[first], (size_t)(n - first), sizeof *s->items, by_last_use);
  return n;
}
