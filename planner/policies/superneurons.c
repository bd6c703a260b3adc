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

#include "graph/optypes.h"
#include "planc/analysis.h"
#include "planner/choose/absences.h"
#include "planner/choose/recompute.h"
#include "planner/policies/policies.h"
#include "util/math.h"

enum { LONGEST = 64 };

typedef struct superneurons {
  const planc_trace *trace;
  planc_drops drops;
  bool *base;       /* the same with all segments dropped, before what has to be kept as well */
  int32_t *segment; /* per buffer: of its last write in the forward pass, from 0 */
  int32_t n_segments;
  bool *swap;     /* per buffer: may be swapped */
  bool *brief;    /* per buffer: of a memory-centric segment */
  int32_t *need;  /* per buffer: find_need */
  int32_t *ahead; /* per instance: the first backward op of the convolution nearest ahead, -1 = there is none */
  planc_absence *items;
} superneurons;

static planc_class class_of(const planc_trace *trace, int32_t instance) {
  if (trace->instances[instance].role != PLANC_ROLE_OP) return PLANC_CLASS_elementwise;
  return planc_op_class(planc_trace_op(trace, instance));
}

static bool is_checkpoint(const planc_trace *trace, int32_t instance) {
  planc_class class_ = class_of(trace, instance);
  return class_ == PLANC_CLASS_conv || class_ == PLANC_CLASS_gemm;
}

/* --- Recompute ---------------------------------------------------------------------------------------------------- */

/* Keeps what checkpoints write, and what a cheap op reads that was written in another segment than its own. */
static void keep_checkpoints(superneurons *s) {
  const planc_trace *trace = s->trace;
  int32_t *written = s->segment, segment = 0; /* per buffer, the segment of its last write so far, -1 = none */
  for (int32_t b = 0; b < trace->n_buffers; b++) written[b] = -1;
  for (int32_t i = 0; i < trace->n_instances; i++) {
    if (planc_trace_phase(trace, i) != PLANC_PHASE_forward) continue;
    const planc_instance *in = &trace->instances[i];
    bool checkpoint = is_checkpoint(trace, i), conv = class_of(trace, i) == PLANC_CLASS_conv;
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

/* The first instance behind the forward pass that reads what that left in a buffer, or something restored from it;
 * PLANC_NEVER where that is overwritten first. */
static int32_t find_need(const superneurons *s, int32_t b) {
  const planc_trace *trace = s->trace;
  const planc_buffer *buffer = &trace->buffers[b];
  int32_t need = PLANC_NEVER;
  for (int32_t i = buffer->first_access; i < buffer->first_access + buffer->n_accesses; i++) {
    const planc_access *access = &trace->accesses[trace->by_buffer[i]];
    bool forward = planc_trace_phase(trace, access->instance) == PLANC_PHASE_forward;
    if (!forward && access->read < 0) return PLANC_NEVER;
    int32_t reads = forward ? s->drops.again[access->instance] : access->instance;
    if (forward && access->write >= 0) need = PLANC_NEVER;
    if ((!forward || (access->write < 0 && !access->effect)) && reads < need) need = reads;
    if (!forward) break;
  }
  return need;
}

static int64_t bottleneck(const planc_trace *trace) {
  int64_t most = 0;
  for (int32_t i = 0; i < trace->n_instances; i++) {
    int64_t bytes = planc_trace_phase(trace, i) == PLANC_PHASE_backward ? planc_instance_bytes(trace, i) : 0;
    if (bytes > most) most = bytes;
  }
  return most;
}

/* Bytes of the dropped buffers that an instance makes; marks them as brief where asked to. */
static int64_t dropped_bytes(superneurons *s, int32_t instance, bool brief) {
  const planc_instance *in = &s->trace->instances[instance];
  int64_t bytes = 0;
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &s->trace->accesses[a];
    if (access->write < 0 || access->read >= 0 || s->drops.keep[access->buffer]) continue;
    bytes = planc_add_saturate(bytes, s->trace->buffers[access->buffer].bytes);
    s->brief[access->buffer] |= brief;
  }
  return bytes;
}

static void find_memory_centric(superneurons *s) {
  int64_t most = bottleneck(s->trace), bytes = 0;
  int32_t first = 0;
  for (int32_t i = 0; i <= s->trace->n_instances; i++) {
    bool inside = i < s->trace->n_instances && planc_trace_phase(s->trace, i) == PLANC_PHASE_forward &&
                  !is_checkpoint(s->trace, i);
    if (inside) {
      bytes = planc_add_saturate(bytes, dropped_bytes(s, i, false));
      continue;
    }
    for (int32_t k = first; bytes > most && i - first <= LONGEST && k < i; k++) (void)dropped_bytes(s, k, true);
    first = i + 1;
    bytes = 0;
  }
}

/* A dropped buffer is away behind the forward pass; a brief one also between any two backward ops that read it. */
static void add_drops(superneurons *s, planc_absences *out) {
  const planc_trace *trace = s->trace;
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    for (int32_t i = buffer->first_access + 1; !s->drops.keep[b] && i < buffer->first_access + buffer->n_accesses;
         i++) {
      const planc_access *from = &trace->accesses[trace->by_buffer[i - 1]], *to = &trace->accesses[trace->by_buffer[i]];
      bool first = planc_trace_phase(trace, from->instance) == PLANC_PHASE_forward;
      if (to->read < 0 || planc_trace_phase(trace, to->instance) == PLANC_PHASE_forward || !(first || s->brief[b]))
        continue;
      s->items[out->n++] = (planc_absence){.buffer = b,
                                           .version = to->read,
                                           .copy = PLANC_NO_COPY,
                                           .leave = from->instance,
                                           .fetch = first && !s->brief[b] ? s->need[b] : to->instance};
    }
  }
}

/* --- Swapping ----------------------------------------------------------------------------------------------------- */

/* The gradients of one convolution read one buffer, its output's gradient, and are one layer. */
static void find_layers_ahead(superneurons *s) {
  const planc_trace *trace = s->trace;
  int32_t layer = -1, begin = -1, before = -1;
  for (int32_t i = 0; i < trace->n_instances; i++) {
    bool conv = planc_trace_phase(trace, i) == PLANC_PHASE_backward && class_of(trace, i) == PLANC_CLASS_conv;
    if (conv) {
      int32_t gradient = planc_output_gradient(trace, i);
      if (layer < 0 || gradient != layer) {
        before = begin;
        begin = i;
      }
      layer = gradient;
    }
    s->ahead[i] = conv ? before : begin;
  }
}

/* The version of a buffer behind the forward pass, and its writer and last reader there; false when it is not to be
 * swapped, or nothing reads it later. */
static bool find_output(const superneurons *s, int32_t b, planc_absence *out) {
  const planc_trace *trace = s->trace;
  const planc_buffer *buffer = &trace->buffers[b];
  *out = (planc_absence){.buffer = b, .version = -1};
  if (buffer->kind != PLANC_KIND_activation || (buffer->flags & PLANC_BUFFER_RESULT)) return false;
  if (!s->swap[b] || !s->drops.keep[b] || s->need[b] == PLANC_NEVER) return false;
  for (int32_t i = buffer->first_access; i < buffer->first_access + buffer->n_accesses; i++) {
    const planc_access *access = &trace->accesses[trace->by_buffer[i]];
    if (planc_trace_phase(trace, access->instance) != PLANC_PHASE_forward) break;
    if (access->write >= 0) {
      out->version = access->write;
      out->copy = access->instance;
    }
    out->leave = access->instance;
  }
  return out->version >= 0;
}

static int by_last_use(const void *left, const void *right) {
  const planc_absence *a = left, *b = right;
  if (a->leave != b->leave) return a->leave < b->leave ? -1 : 1;
  return (a->buffer > b->buffer) - (a->buffer < b->buffer);
}

/* What the code's cache evicts is copied ahead of that, beside the op behind the convolution at least. */
static int64_t add_outputs(superneurons *s, int64_t first) {
  int64_t n = first;
  for (int32_t b = 0; b < s->trace->n_buffers; b++) {
    planc_absence absence;
    if (!find_output(s, b, &absence)) continue;
    int32_t ahead = s->ahead[s->need[b]];
    absence.fetch = ahead > absence.leave ? ahead : s->need[b];
    if (absence.leave == absence.copy) absence.leave++;
    if (absence.leave < absence.fetch) s->items[n++] = absence;
  }
  if (n > first) qsort(&s->items[first], (size_t)(n - first), sizeof *s->items, by_last_use);
  return n;
}

/* --- What the budget asks for ------------------------------------------------------------------------------------- */

/* Whether the live data fits beside the workspace of the fastest algorithm of at most `limit`. */
static planc_status fits(const planc_walk *walk, const planc_absences *absences, int64_t limit, int64_t *live,
                         bool *out_fits) {
  PLANC_TRY(planc_absences_live(walk->trace, absences, live));
  *out_fits = true;
  for (int32_t i = 0; *out_fits && i < walk->trace->n_instances; i++) {
    *out_fits = planc_add_saturate(live[i], planc_walk_variant(walk, i, limit).workspace_bytes) <= walk->room;
  }
  return NULL;
}

/* The fewest of the outputs, taken in their order, with which the live data fits; as many as the host has room for
 * where it never does. */
static planc_status take_outputs(const planc_walk *walk, int64_t n_all, int64_t *live, planc_absences *out) {
  int64_t low = out->n, high = out->n, host = walk->swaps ? walk->host_room : -1;
  for (; high < n_all; high++) {
    int64_t bytes = planc_walk_room(&walk->trace->buffers[out->items[high].buffer]);
    if (bytes > host) break;
    host -= bytes;
  }
  while (low < high) {
    bool fit;
    out->n = low + (high - low) / 2;
    PLANC_TRY(fits(walk, out, 0, live, &fit));
    if (fit) {
      high = out->n;
    } else {
      low = out->n + 1;
    }
  }
  out->n = high;
  return NULL;
}

/* Drops the first segments. */
static planc_status drop_segments(superneurons *s, planc_arena *arena, int32_t n_dropped, planc_absences *out) {
  const planc_trace *trace = s->trace;
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    s->drops.keep[b] = s->base[b] || s->segment[b] >= n_dropped;
    s->brief[b] = false;
  }
  PLANC_TRY(planc_mark_drops(trace, arena, &s->drops));
  for (int32_t b = 0; b < trace->n_buffers; b++) s->need[b] = find_need(s, b);
  find_memory_centric(s);
  *out = (planc_absences){.items = s->items, .until = s->drops.until, .brief = s->brief};
  add_drops(s, out);
  return NULL;
}

/* The fewest of the segments with which the live data fits beside the fastest algorithms, all where it never does. */
static planc_status take_segments(const planc_walk *walk, superneurons *s, planc_arena *arena, int64_t *live,
                                  planc_absences *out, bool *out_fits) {
  int32_t low = 0, high = walk->recomputes ? s->n_segments : 0;
  PLANC_TRY(drop_segments(s, arena, high, out));
  PLANC_TRY(fits(walk, out, INT64_MAX, live, out_fits));
  while (*out_fits && low < high) {
    bool fit;
    int32_t middle = low + (high - low) / 2;
    PLANC_TRY(drop_segments(s, arena, middle, out));
    PLANC_TRY(fits(walk, out, INT64_MAX, live, &fit));
    if (fit) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return drop_segments(s, arena, high, out);
}

static planc_status choose(const void *context, const planc_walk *walk, planc_arena *arena, planc_absences *out) {
  (void)context;
  const planc_trace *trace = walk->trace;
  superneurons s = {.trace = trace};
  int64_t *live;
  bool fit;
  PLANC_TRY(planc_drops_new(trace, arena, &s.drops));
  PLANC_TRY(PLANC_NEW(arena, &s.base, trace->n_buffers));
  PLANC_TRY(PLANC_NEW(arena, &s.segment, trace->n_buffers));
  PLANC_TRY(PLANC_NEW(arena, &s.swap, trace->n_buffers));
  PLANC_TRY(PLANC_NEW(arena, &s.brief, trace->n_buffers));
  PLANC_TRY(PLANC_NEW(arena, &s.need, trace->n_buffers));
  PLANC_TRY(PLANC_NEW(arena, &s.ahead, trace->n_instances));
  PLANC_TRY(PLANC_NEW(arena, &s.items, (int64_t)trace->n_accesses + trace->n_buffers));
  PLANC_TRY(PLANC_NEW(arena, &live, trace->n_instances));
  keep_checkpoints(&s);
  find_layers_ahead(&s);
  PLANC_TRY(take_segments(walk, &s, arena, live, out, &fit));
  return fit ? NULL : take_outputs(walk, add_outputs(&s, out->n), live, out);
}

planc_status planc_policy_superneurons(const planc_evaluator *evaluator, planc_candidate *out) {
  planc_absence_rule rule = {.choose = choose};
  return planc_walk_fit(evaluator, planc_make_absences, &rule, out);
}
