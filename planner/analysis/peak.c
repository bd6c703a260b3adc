/* What binds a plan's peak: the fullest moment of the body and what is live there, in a memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/plan_trace.h"
#include "planc/analysis.h"
#include "planner/analysis/plan_live.h"
#include "util/math.h"

typedef struct owned_peak {
  planc_peak peak; /* first: what the caller holds */
  pl_arena arena;
} owned_peak;

static planc_status find(const planc_plan *plan, const planc_trace *trace, planc_memory_kind memory, owned_peak *out);
static planc_status collect(const planc_plan *plan, const planc_trace *trace, const pl_acquired *acquired,
                            const pl_fullest *fullest, pl_arena *arena, planc_peak *peak);
static void find_open(const planc_plan *plan, const pl_acquired *acquired, const pl_fullest *fullest, bool *is_open);
static bool is_there(const planc_plan *plan, const pl_acquired *acquired, const pl_fullest *fullest,
                     const planc_instr *instr);
static void merge(planc_peak_entry *entries, int32_t n, planc_peak *peak);
static planc_status find_next_op(const planc_plan *plan, const planc_trace *trace, int32_t at, pl_arena *arena,
                                 const char **out);

planc_status planc_peak_of(const planc_plan *plan, planc_memory_kind memory, planc_peak **out) {
  planc_trace *trace;
  owned_peak *owned = calloc(1, sizeof *owned);
  if (!owned) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  planc_status status = pl_plan_expand(plan, &trace);
  if (!status) {
    status = find(plan, trace, memory, owned);
    planc_trace_free(trace);
  }
  if (status) {
    planc_peak_free(&owned->peak);
    return status;
  }
  *out = &owned->peak;
  return NULL;
}

static planc_status find(const planc_plan *plan, const planc_trace *trace, planc_memory_kind memory, owned_peak *out) {
  pl_acquired *acquired;
  pl_fullest fullest;
  PLANC_TRY(pl_plan_check_names(plan, trace));
  PLANC_TRY(pl_plan_acquired(plan, &out->arena, &acquired));
  PLANC_TRY(pl_find_fullest(plan, memory, acquired, &out->arena, &fullest));
  out->peak.bytes = fullest.bytes;
  out->peak.instr = fullest.instr;
  return collect(plan, trace, acquired, &fullest, &out->arena, &out->peak);
}

static planc_status collect(const planc_plan *plan, const planc_trace *trace, const pl_acquired *acquired,
                            const pl_fullest *fullest, pl_arena *arena, planc_peak *peak) {
  bool *is_open;
  planc_peak_entry *entries;
  int32_t n = 0;
  PLANC_TRY(PL_NEW(arena, &is_open, plan->n_residencies));
  find_open(plan, acquired, fullest, is_open);
  for (int32_t r = 0; r < plan->n_residencies; r++) n += is_open[r];
  PLANC_TRY(PL_NEW(arena, &entries, (int64_t)n + 1));
  n = 0;
  for (int32_t r = 0; r < plan->n_residencies; r++) {
    if (!is_open[r]) continue;
    int32_t buffer = acquired[r].buffer;
    entries[n].bytes = trace->buffers[buffer].bytes;
    PLANC_TRY(pl_buffer_in_plan(plan, trace, buffer, arena, &entries[n++].name));
  }
  planc_instr at = {.op = PLANC_INSTR_acquire};
  if (fullest->instr < plan->body.n) at = plan->body.instrs[fullest->instr];
  if (at.op == PLANC_INSTR_exec && at.bytes && is_there(plan, acquired, fullest, &at))
    entries[n++] = (planc_peak_entry){.name = "workspace", .bytes = at.bytes};
  merge(entries, n, peak);
  return find_next_op(plan, trace, fullest->instr, arena, &peak->op);
}

void planc_peak_free(planc_peak *peak) {
  owned_peak *owned = (owned_peak *)peak;
  if (!owned) return;
  pl_arena_free(&owned->arena);
  free(owned);
}

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
static planc_status find_next_op(const planc_plan *plan, const planc_trace *trace, int32_t at, pl_arena *arena,
                                 const char **out) {
  *out = NULL;
  while (at < plan->body.n && plan->body.instrs[at].op != PLANC_INSTR_exec) at++;
  if (at == plan->body.n) return NULL;
  return pl_op_in_plan(plan, trace, plan->body.instrs[at].id, arena, out);
}

/* Sums what has one name and sorts by size. */
static void merge(planc_peak_entry *entries, int32_t n, planc_peak *peak) {
  qsort(entries, (size_t)n, sizeof *entries, by_name);
  int32_t kept = 0;
  for (int32_t i = 0; i < n; i++) {
    if (kept && strcmp(entries[kept - 1].name, entries[i].name) == 0) {
      entries[kept - 1].bytes = pl_add_saturate(entries[kept - 1].bytes, entries[i].bytes);
    } else {
      entries[kept++] = entries[i];
    }
  }
  qsort(entries, (size_t)kept, sizeof *entries, by_size);
  peak->n = kept;
  peak->entries = entries;
}

/* Whether an instruction is about the memory that is fullest. */
static bool is_there(const planc_plan *plan, const pl_acquired *acquired, const pl_fullest *fullest,
                     const planc_instr *instr) {
  int32_t memory = pl_memory_at(plan, acquired, instr);
  return memory >= 0 && memory == fullest->memory;
}

/* By residency, whether it is open at the fullest moment. Where the boundary is fullest, the instruction that is named
 * may release some of it. */
static void find_open(const planc_plan *plan, const pl_acquired *acquired, const pl_fullest *fullest, bool *is_open) {
  for (int32_t r = 0; r < plan->n_boundary; r++) is_open[r] = acquired[r].memory == fullest->memory;
  for (int32_t i = 0; i <= fullest->instr && i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (instr->op == PLANC_INSTR_exec || !is_there(plan, acquired, fullest, instr)) continue;
    bool acquires = instr->op == PLANC_INSTR_acquire;
    if (acquires || i < fullest->instr) is_open[instr->id] = acquires;
  }
}
