/* Analysis of a trace: lifetimes, gaps, memory needs, moDNN's lower bound (analysis.h). */
#include "planc/analysis.h"

#include <stdlib.h>

#include "util/arena.h"
#include "util/math.h"

/* --- Gaps ------------------------------------------------------------------------------------------------------- */

/* Gaps with the memory they own. */
typedef struct gaps_memory {
  planc_gaps gaps;
  planc_arena arena;
} gaps_memory;

static planc_status find_gaps(const planc_trace *trace, gaps_memory *memory);

planc_status planc_gaps_make(const planc_trace *trace, planc_gaps **out) {
  *out = NULL;
  gaps_memory *memory = calloc(1, sizeof *memory);
  if (!memory) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  planc_status status = find_gaps(trace, memory);
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
  planc_arena_free(&memory->arena);
  free(memory);
}

static planc_status find_gaps(const planc_trace *trace, gaps_memory *memory) {
  planc_gap *gaps;
  int32_t n = 0;
  /* A buffer has at most as many gaps as accesses, the one that wraps included. */
  PLANC_TRY(PLANC_NEW(&memory->arena, &gaps, trace->n_accesses));
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    if (buffer->n_accesses == 0) continue;
    const int32_t *accesses = &trace->by_buffer[buffer->first_access];
    for (int32_t k = 1; k < buffer->n_accesses; k++) {
      const planc_access *from = &trace->accesses[accesses[k - 1]], *to = &trace->accesses[accesses[k]];
      if (to->read < 0) continue;
      gaps[n++] = (planc_gap){.buffer = b, .version = to->read, .from = from->instance, .to = to->instance};
    }
    if (!(buffer->flags & PLANC_BUFFER_PERSISTENT)) continue;
    gaps[n++] = (planc_gap){.buffer = b,
                            .version = buffer->last_version,
                            .from = trace->accesses[accesses[buffer->n_accesses - 1]].instance,
                            .to = trace->accesses[accesses[0]].instance,
                            .wraps = true};
  }
  memory->gaps = (planc_gaps){.n = n, .gaps = gaps};
  return NULL;
}

/* --- What is live ----------------------------------------------------------------------------------------------- */

/* The instances between which a buffer is live, both included; of one that is never accessed the last is before the
 * first. */
static void lifetime(const planc_trace *trace, int32_t buffer, int32_t *first, int32_t *last) {
  const planc_buffer *of = &trace->buffers[buffer];
  *first = 0;
  *last = trace->n_instances - 1;
  if (of->flags & PLANC_BUFFER_PERSISTENT) return;
  *last = -1;
  if (of->n_accesses == 0) return;
  *first = trace->accesses[trace->by_buffer[of->first_access]].instance;
  *last = trace->accesses[trace->by_buffer[of->first_access + of->n_accesses - 1]].instance;
}

static planc_status measure(const planc_trace *trace, planc_arena *scratch, planc_memory_needs *needs);

planc_status planc_memory_needs_of(const planc_trace *trace, planc_memory_needs *out) {
  *out = (planc_memory_needs){.liveness_instance = -1};
  planc_arena scratch = {0};
  planc_status status = measure(trace, &scratch, out);
  planc_arena_free(&scratch);
  return status;
}

static planc_status measure(const planc_trace *trace, planc_arena *scratch, planc_memory_needs *needs) {
  int64_t *born, *dead; /* by instance: bytes of the buffers whose life begins there, ends there */
  PLANC_TRY(PLANC_NEW(scratch, &born, trace->n_instances));
  PLANC_TRY(PLANC_NEW(scratch, &dead, trace->n_instances));
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    if (planc_add_overflow(needs->sum_bytes, buffer->bytes, &needs->sum_bytes))
      return planc_error(PLANC_BAD_INPUT, "the sizes of all tensors together overflow");
    if (buffer->flags & PLANC_BUFFER_PERSISTENT) {
      needs->persistent_bytes += buffer->bytes;
      continue;
    }
    int32_t first, last;
    lifetime(trace, b, &first, &last);
    if (last < first) continue;
    born[first] += buffer->bytes;
    dead[last] += buffer->bytes;
  }
  needs->liveness_bytes = needs->persistent_bytes;
  int64_t live = needs->persistent_bytes;
  for (int32_t i = 0; i < trace->n_instances; i++) {
    live += born[i];
    if (live > needs->liveness_bytes || i == 0) {
      needs->liveness_bytes = live;
      needs->liveness_instance = i;
    }
    live -= dead[i];
  }
  return NULL;
}

/* --- moDNN's lower bound (papers/004, IV-A) ----------------------------------------------------------------------- */

static bool always_resident(const planc_buffer *buffer) {
  return planc_kind_persists(buffer->kind) || buffer->kind == PLANC_KIND_grad;
}

int64_t planc_instance_bytes(const planc_trace *trace, int32_t instance) {
  const planc_instance *of = &trace->instances[instance];
  int64_t bytes = 0;
  for (int32_t a = of->first_access; a < of->first_access + of->n_accesses; a++) {
    const planc_buffer *buffer = &trace->buffers[trace->accesses[a].buffer];
    if (!always_resident(buffer)) bytes = planc_add_saturate(bytes, buffer->bytes);
  }
  return bytes;
}

int64_t planc_resident_bytes(const planc_trace *trace) {
  int64_t bytes = 0;
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    /* The gradients of one iteration take the place of those of the one before. */
    if (always_resident(buffer) && buffer->iteration <= 0) bytes = planc_add_saturate(bytes, buffer->bytes);
  }
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
  bool overflow = planc_add_overflow(planc_resident_bytes(trace), most, out_bytes);
  planc_trace_free(trace);
  return overflow || *out_bytes == INT64_MAX
             ? planc_error(PLANC_BAD_INPUT, "the least memory to run the graph overflows")
             : NULL;
}
