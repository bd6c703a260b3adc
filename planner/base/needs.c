/* Gaps of an order and what is live; moDNN's lower bound; classes of tensors (planc/needs.h). */
#include "planc/needs.h"

#include <assert.h>
#include <stdlib.h>

#include "util/arena.h"
#include "util/math.h"

enum { NONE = -1 };

/* --- Gaps --------------------------------------------------------------------------------------------------------- */

/* Gaps with the memory they own. */
typedef struct gaps_memory {
  planc_gaps gaps;
  pl_arena arena;
} gaps_memory;

static planc_status find_gaps(const planc_order *order, gaps_memory *memory);

planc_status planc_gaps_make(const planc_order *order, planc_gaps **out) {
  *out = NULL;
  gaps_memory *memory = calloc(1, sizeof *memory);
  if (!memory) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  planc_status status = find_gaps(order, memory);
  if (status) {
    planc_gaps_free(&memory->gaps);
    return status;
  }
  *out = &memory->gaps;
  return NULL;
}

void planc_gaps_free(planc_gaps *gaps) {
  if (!gaps) return;
  gaps_memory *memory = (gaps_memory *)gaps;
  pl_arena_free(&memory->arena);
  free(memory);
}

/* The gaps of a buffer go behind the first *n. last[v] is where version v was used last, if it was. */
static void find_gaps_of(const planc_order *order, int32_t b, int32_t *last, planc_gap *gaps, int32_t *n) {
  const planc_buffer *buffer = &order->trace->buffers[b];
  for (int32_t v = 0; v <= buffer->last_version; v++) last[v] = NONE;
  for (int32_t u = order->first_use[b]; u < order->first_use[b + 1]; u++) {
    const planc_access *access = planc_order_access(order, u);
    int32_t at = order->uses[u].position, version = access->read;
    if (version >= 0 && last[version] != NONE)
      gaps[(*n)++] = (planc_gap){.buffer = b, .version = version, .from = last[version], .to = at};
    if (version >= 0) last[version] = at;
    if (access->write >= 0) last[access->write] = at;
  }
  if (!(buffer->flags & PLANC_BUFFER_PERSISTENT) || planc_order_first(order, b) == NONE) return;
  assert(last[buffer->last_version] != NONE);
  gaps[(*n)++] = (planc_gap){.buffer = b,
                             .version = buffer->last_version,
                             .from = last[buffer->last_version],
                             .to = planc_order_first(order, b),
                             .wraps = true};
}

static planc_status find_gaps(const planc_order *order, gaps_memory *memory) {
  const planc_trace *trace = order->trace;
  planc_gap *gaps;
  int32_t *last, n = 0, most_versions = 0;
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    if (trace->buffers[b].last_version >= most_versions) most_versions = trace->buffers[b].last_version + 1;
  }
  PLANC_TRY(PL_NEW(&memory->arena, &last, most_versions));
  /* A use ends one gap at most, a buffer's first one that which wraps. */
  PLANC_TRY(PL_NEW(&memory->arena, &gaps, order->first_use[trace->n_buffers]));
  for (int32_t b = 0; b < trace->n_buffers; b++) find_gaps_of(order, b, last, gaps, &n);
  memory->gaps = (planc_gaps){.n = n, .gaps = gaps};
  return NULL;
}

/* --- What is live ------------------------------------------------------------------------------------------------- */

static planc_status measure(const planc_order *order, pl_arena *scratch, planc_memory_needs *needs);

planc_status planc_memory_needs_of(const planc_order *order, planc_memory_needs *out) {
  *out = (planc_memory_needs){.liveness_instance = NONE};
  pl_arena scratch = {0};
  planc_status status = measure(order, &scratch, out);
  pl_arena_free(&scratch);
  return status;
}

static planc_status measure(const planc_order *order, pl_arena *scratch, planc_memory_needs *needs) {
  const planc_trace *trace = order->trace;
  int64_t *born, *dead; /* by position: bytes of the buffers whose life begins there, ends there */
  PLANC_TRY(PL_NEW(scratch, &born, order->n));
  PLANC_TRY(PL_NEW(scratch, &dead, order->n));
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    if (pl_add_overflow(needs->sum_bytes, buffer->bytes, &needs->sum_bytes))
      return planc_error(PLANC_BAD_INPUT, "the sizes of all tensors together overflow");
    if (buffer->flags & PLANC_BUFFER_PERSISTENT) {
      needs->persistent_bytes += buffer->bytes;
    } else if (planc_order_first(order, b) != NONE) {
      born[planc_order_first(order, b)] += buffer->bytes;
      dead[planc_order_last(order, b)] += buffer->bytes;
    }
  }
  needs->liveness_bytes = needs->persistent_bytes;
  int64_t live = needs->persistent_bytes;
  for (int32_t p = 0; p < order->n; p++) {
    live += born[p];
    if (live > needs->liveness_bytes || p == 0) {
      needs->liveness_bytes = live;
      needs->liveness_instance = order->runs[p].instance;
    }
    live -= dead[p];
  }
  return NULL;
}

/* --- moDNN's lower bound (papers/004, IV-A) ----------------------------------------------------------------------- */

int64_t planc_instance_bytes(const planc_trace *trace, int32_t instance) {
  const planc_instance *of = &trace->instances[instance];
  int64_t bytes = 0;
  for (int32_t a = of->first_access; a < of->first_access + of->n_accesses; a++) {
    const planc_buffer *buffer = &trace->buffers[trace->accesses[a].buffer];
    if (!planc_is_always_resident(buffer->kind)) bytes = pl_add_saturate(bytes, buffer->bytes);
  }
  return bytes;
}

/* S_W of a trace of one iteration. */
static int64_t always_resident_bytes(const planc_trace *trace) {
  int64_t bytes = 0;
  for (int32_t b = 0; b < trace->n_buffers; b++)
    if (planc_is_always_resident(trace->buffers[b].kind)) bytes = pl_add_saturate(bytes, trace->buffers[b].bytes);
  return bytes;
}

planc_status planc_lower_bound(const planc_graph *graph, int64_t *out_bytes, int32_t *out_op) {
  *out_bytes = 0;
  *out_op = -1;
  int64_t one_sample = 1;
  planc_job job = {.graph = graph, .batch = 1, .n_rounds = 1, .rounds = &one_sample, .iterations = 1};
  planc_trace *trace;
  PLANC_TRY(planc_expand(&job, 1, &trace));
  int64_t most = 0;
  for (int32_t i = 0; i < trace->n_instances; i++) {
    int64_t bytes = planc_instance_bytes(trace, i);
    if (bytes <= most && i > 0) continue;
    most = bytes;
    *out_op = trace->instances[i].op;
  }
  bool overflow = pl_add_overflow(always_resident_bytes(trace), most, out_bytes);
  planc_trace_free(trace);
  return overflow || *out_bytes == INT64_MAX
             ? planc_error(PLANC_BAD_INPUT, "the least memory to run the graph overflows")
             : NULL;
}

/* --- Classes of tensors ------------------------------------------------------------------------------------------- */

/* The conditions (i) to (iii) of 6.2. What the user feeds counts as made by a forward op. */
planc_tensor_class planc_tensor_class_of(const planc_trace *trace, int32_t b) {
  const planc_buffer *buffer = &trace->buffers[b];
  bool read = false, forward = buffer->flags & PLANC_BUFFER_FED, read_backward = false;
  int32_t writer = -1;
  if (buffer->flags & PLANC_BUFFER_PERSISTENT) return PLANC_TENSOR_KEPT;
  for (int32_t k = buffer->first_access; k < buffer->first_access + buffer->n_accesses; k++) {
    const planc_access *access = &trace->accesses[trace->by_buffer[k]];
    bool is_forward = planc_trace_phase(trace, access->instance) == PLANC_PHASE_forward;
    if (access->read >= 0 && access->instance != writer) read = true;
    if (access->read >= 0 && !is_forward) read_backward = true;
    if (access->write >= 0 && writer < 0) {
      writer = access->instance;
      forward |= is_forward;
    }
  }
  if (forward) return read_backward ? PLANC_TENSOR_FEATURE : PLANC_TENSOR_TEMPORARY;
  return read ? PLANC_TENSOR_GRADIENT : PLANC_TENSOR_TEMPORARY;
}

const char *planc_tensor_class_name(planc_tensor_class tensor_class) {
  static const char *const names[] = {"kept", "temporary", "feature map", "gradient map"};
  return names[tensor_class];
}
