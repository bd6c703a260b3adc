/* What binds a plan's peak: the fullest moment of the body and what is live there, on the device or on the host. */
#include <stdlib.h>
#include <string.h>

#include "plan/plan_trace.h"
#include "planc/analysis.h"
#include "planner/simulate/plan_totals.h"
#include "util/arena.h"
#include "util/math.h"
#include "util/vec.h"

static int by_name(const void *a, const void *b) {
  const planc_peak_entry *x = a, *y = b;
  return strcmp(x->name, y->name);
}

static int by_size(const void *a, const void *b) {
  const planc_peak_entry *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return strcmp(x->name, y->name);
}

/* The op that runs at an instruction of the body, or next; NULL where none follows. */
static const char *next_op(const planc_plan *plan, const planc_trace *trace, int32_t at) {
  while (at < plan->body.n && plan->body.instrs[at].op != PLANC_INSTR_exec) at++;
  return at < plan->body.n ? planc_trace_op(trace, plan->body.instrs[at].id)->name : NULL;
}

/* Sums what has one name and sorts by size. */
static void merge(planc_peak_entry *entries, int32_t n, planc_peak *peak) {
  qsort(entries, (size_t)n, sizeof *entries, by_name);
  int32_t kept = 0;
  for (int32_t i = 0; i < n; i++) {
    if (kept && strcmp(entries[kept - 1].name, entries[i].name) == 0) {
      entries[kept - 1].bytes = planc_add_saturate(entries[kept - 1].bytes, entries[i].bytes);
    } else {
      entries[kept++] = entries[i];
    }
  }
  qsort(entries, (size_t)kept, sizeof *entries, by_size);
  peak->n = kept;
  peak->entries = entries;
}

static planc_status collect(const planc_plan *plan, const planc_trace *trace, const planc_gpus *gpus,
                            const planc_fullest *fullest, bool *open, planc_arena *arena, planc_peak *peak) {
  int32_t n_open = 0;
  int32_t *buffer_of;
  PLANC_TRY(PLANC_NEW(arena, &buffer_of, plan->n_residencies + 1));
  for (int32_t i = 0; i < plan->n_boundary; i++) {
    open[i] = !plan->boundary[i].home;
    buffer_of[i] = plan->boundary[i].buffer;
  }
  for (int32_t i = 0; i <= fullest->instr && i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (instr->op == PLANC_INSTR_acquire) buffer_of[instr->id] = instr->aux;
    if (instr->op == PLANC_INSTR_acquire || instr->op == PLANC_INSTR_release) {
      open[instr->id] = instr->op == PLANC_INSTR_acquire;
    }
  }
  for (int32_t r = 0; r < plan->n_residencies; r++) {
    open[r] &= gpus->of_residency[r] == fullest->gpu;
    n_open += open[r];
  }
  planc_peak_entry *entries;
  PLANC_TRY(PLANC_NEW(arena, &entries, n_open + 1));
  int32_t n = 0;
  for (int32_t r = 0; r < plan->n_residencies; r++) {
    if (!open[r]) continue;
    entries[n++] = (planc_peak_entry){.name = planc_trace_buffer_name(trace, buffer_of[r]),
                                      .bytes = trace->buffers[buffer_of[r]].bytes};
  }
  planc_instr at = {.op = PLANC_INSTR_acquire};
  if (fullest->instr < plan->body.n) at = plan->body.instrs[fullest->instr];
  if (at.op == PLANC_INSTR_exec && at.bytes) {
    entries[n++] = (planc_peak_entry){.name = "workspace", .bytes = at.bytes};
  }
  merge(entries, n, peak);
  peak->op = next_op(plan, trace, fullest->instr);
  return NULL;
}

/* --- Host --------------------------------------------------------------------------------------------------------- */

/* A copy on the host, from the instruction that makes it to the last that reads it. */
typedef struct copy {
  int32_t buffer, from, to;
} copy;

/* The copies of the body; what is at home is there before it, and behind it again. */
static planc_status find_copies(const planc_plan *plan, int32_t n_buffers, planc_arena *arena, copy **out,
                                int32_t *out_n) {
  int32_t *buffer_of, *newest, n = 0; /* newest: by buffer, its last copy so far, -1 = none */
  bool *home;                         /* by buffer */
  PLANC_TRY(PLANC_NEW(arena, &buffer_of, plan->n_residencies + 1));
  PLANC_TRY(PLANC_NEW(arena, &newest, n_buffers));
  PLANC_TRY(PLANC_NEW(arena, &home, n_buffers));
  PLANC_TRY(PLANC_NEW(arena, out, (int64_t)plan->n_boundary + plan->body.n));
  for (int32_t b = 0; b < n_buffers; b++) newest[b] = -1;
  for (int32_t i = 0; i < plan->n_boundary; i++) {
    int32_t b = buffer_of[i] = plan->boundary[i].buffer;
    if (!plan->boundary[i].home) continue;
    home[b] = true;
    newest[b] = n;
    (*out)[n++] = (copy){b, 0, 0};
  }
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (instr->op == PLANC_INSTR_acquire) buffer_of[instr->id] = instr->aux;
    bool offload = instr->op == PLANC_INSTR_offload, prefetch = instr->op == PLANC_INSTR_prefetch;
    if ((!offload && !prefetch) || instr->address < 0) continue;
    int32_t b = buffer_of[instr->id];
    if (offload) {
      newest[b] = n;
      (*out)[n++] = (copy){b, i, i};
    } else if (newest[b] >= 0) {
      (*out)[newest[b]].to = i;
    }
  }
  for (int32_t b = 0; b < n_buffers; b++) {
    if (home[b]) (*out)[newest[b]].to = plan->body.n - 1;
  }
  *out_n = n;
  return NULL;
}

static planc_status collect_copies(const planc_plan *plan, const planc_trace *trace, planc_arena *arena,
                                   planc_peak *peak) {
  copy *copies;
  int32_t n, n_live = 0;
  int64_t *change, bytes = 0;
  planc_peak_entry *entries;
  PLANC_TRY(find_copies(plan, trace->n_buffers, arena, &copies, &n));
  PLANC_TRY(PLANC_NEW(arena, &change, (int64_t)plan->body.n + 1));
  PLANC_TRY(PLANC_NEW(arena, &entries, n));
  for (int32_t k = 0; k < n; k++) {
    change[copies[k].from] += trace->buffers[copies[k].buffer].bytes;
    change[copies[k].to + 1] -= trace->buffers[copies[k].buffer].bytes;
  }
  for (int32_t i = 0; i < plan->body.n; i++) {
    bytes += change[i];
    if (bytes <= peak->bytes) continue;
    peak->bytes = bytes;
    peak->instr = i;
  }
  for (int32_t k = 0; k < n; k++) {
    if (peak->instr < copies[k].from || copies[k].to < peak->instr) continue;
    entries[n_live++] = (planc_peak_entry){.name = planc_trace_buffer_name(trace, copies[k].buffer),
                                           .bytes = trace->buffers[copies[k].buffer].bytes};
  }
  merge(entries, n_live, peak);
  peak->op = next_op(plan, trace, peak->instr);
  return NULL;
}

/* --- The whole ---------------------------------------------------------------------------------------------------- */

typedef struct owned_peak {
  planc_peak peak; /* first: what the caller holds */
  planc_arena arena;
} owned_peak;

typedef planc_status (*peak_finder)(const planc_plan *plan, const planc_trace *trace, owned_peak *out);

static planc_status find_on_device(const planc_plan *plan, const planc_trace *trace, owned_peak *out) {
  bool *open;
  planc_gpus gpus;
  planc_fullest fullest;
  PLANC_TRY(planc_gpus_find(plan, &out->arena, &gpus));
  PLANC_TRY(planc_find_fullest(plan, &gpus, &out->arena, &fullest));
  PLANC_TRY(PLANC_NEW(&out->arena, &open, plan->n_residencies + 1));
  out->peak.bytes = fullest.bytes;
  out->peak.instr = fullest.instr;
  return collect(plan, trace, &gpus, &fullest, open, &out->arena, &out->peak);
}

static planc_status find_on_host(const planc_plan *plan, const planc_trace *trace, owned_peak *out) {
  return collect_copies(plan, trace, &out->arena, &out->peak);
}

static planc_status find(const planc_plan *plan, peak_finder finder, planc_peak **out) {
  planc_trace *trace;
  owned_peak *owned = calloc(1, sizeof *owned);
  if (!owned) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  planc_status status = planc_plan_expand(plan, &trace);
  if (!status) {
    status = planc_plan_check_names(plan, trace);
    if (!status) status = finder(plan, trace, owned);
    planc_trace_free(trace);
  }
  if (status) {
    planc_peak_free(&owned->peak);
    return status;
  }
  *out = &owned->peak;
  return NULL;
}

planc_status planc_peak_of(const planc_plan *plan, planc_peak **out) {
  return find(plan, find_on_device, out);
}

planc_status planc_host_peak_of(const planc_plan *plan, planc_peak **out) {
  return find(plan, find_on_host, out);
}

void planc_peak_free(planc_peak *peak) {
  owned_peak *owned = (owned_peak *)peak;
  if (!owned) return;
  planc_arena_free(&owned->arena);
  free(owned);
}
