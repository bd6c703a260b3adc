/* Counting what would be mapped anew (remap.h): the allocator of virtual memory is led through two periods. */
#include "planner/analysis/remap.h"

#include <stdlib.h>

#include "plan/mapping.h"
#include "plan/tables.h"
#include "planner/analysis/plan_live.h"
#include "planner/memory/allocator.h"

typedef struct remapping {
  const planc_plan *plan;
  pl_acquired *acquired;
  int64_t range; /* of the device's addresses */
  pl_allocator allocator;
  pl_arena arena;
  int32_t *held; /* by residency: its handle, -1 = none */
  int64_t seen;  /* chunks mapped and unmapped that have been counted */
} remapping;

enum { DEVICE = 0, MAX_CHUNKS = 1 << 24 };

static planc_status follow(remapping *r, int64_t *out);
static planc_status take(remapping *r, int64_t bytes, int32_t *out_handle);
static planc_status follow_body(remapping *r, int64_t *out);

planc_status pl_count_mappings(const planc_plan *plan, int64_t **out_mapped, int64_t *out_sum) {
  *out_mapped = NULL;
  *out_sum = 0;
  const planc_memory *device = planc_plan_memory(plan, PLANC_MEMORY_DEVICE);
  if (device->chunk_bytes == 0 || device->paged) {
    return planc_error(PLANC_USAGE, "the plan has no %s",
                       device->paged ? "chunks of virtual memory, but pages" : "virtual memory");
  }
  PLANC_TRY(pl_tables_check(plan));
  remapping r = {.plan = plan, .range = pl_memory_range(plan, DEVICE)};
  if (r.range / device->chunk_bytes > MAX_CHUNKS) return planc_error(PLANC_INVALID_PLAN, "too many chunks");
  int64_t *mapped = calloc((size_t)plan->body.n + 1, sizeof *mapped);
  if (!mapped) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  planc_status status =
      pl_allocator_init_vmm(&r.allocator, device->chunk_bytes, device->arena_bytes / device->chunk_bytes);
  if (!status) status = follow(&r, mapped);
  pl_allocator_free(&r.allocator);
  pl_arena_free(&r.arena);
  if (status) {
    free(mapped);
    return status;
  }
  for (int32_t i = 0; i < plan->body.n; i++) *out_sum += mapped[i];
  *out_mapped = mapped;
  return NULL;
}

/* The boundary is one block, which stays. The first period makes chunks and finds out which sizes there are. */
static planc_status follow(remapping *r, int64_t *out) {
  int64_t end = 0;
  int32_t block;
  PLANC_TRY(pl_plan_acquired(r->plan, &r->arena, &r->acquired));
  PLANC_TRY(PL_NEW(&r->arena, &r->held, r->plan->n_residencies));
  for (int32_t i = 0; i < r->plan->n_residencies; i++) r->held[i] = -1;
  for (int32_t b = 0; b < r->plan->n_boundary; b++) {
    const planc_boundary *it = &r->plan->boundary[b];
    if (it->memory == DEVICE && it->address >= end) end = it->address + 1;
  }
  if (end > 0) PLANC_TRY(take(r, end, &block));
  PLANC_TRY(follow_body(r, NULL));
  return follow_body(r, out);
}

/* The plan's addresses fit its arena, but those that the allocator gives in later periods may leave other ranges free
 * where data shares chunks: then it gets as many chunks more as it needs. */
static planc_status take(remapping *r, int64_t bytes, int32_t *out_handle) {
  pl_chunks *chunks = &r->allocator.chunks;
  int64_t address;
  *out_handle = -1;
  if (bytes <= 0 || bytes > r->range) {
    return planc_error(PLANC_INVALID_PLAN, "%lld bytes of %lld that are mapped", (long long)bytes, (long long)r->range);
  }
  if (chunks->of.len > MAX_CHUNKS) return planc_error(PLANC_INVALID_PLAN, "chunks are mapped too often");
  PLANC_TRY(pl_allocator_take(&r->allocator, bytes, out_handle, &address));
  if (*out_handle >= 0) return NULL;
  chunks->most = chunks->n_used + pl_chunks_needed(chunks, bytes);
  return pl_allocator_take(&r->allocator, bytes, out_handle, &address);
}

static planc_status follow_instr(remapping *r, const planc_instr *instr) {
  int32_t handle;
  if (pl_memory_at(r->plan, r->acquired, instr) != DEVICE) return NULL;
  if (instr->op == PLANC_INSTR_exec) {
    if (instr->bytes <= 0) return NULL;
    PLANC_TRY(take(r, instr->bytes, &handle));
    return pl_allocator_give(&r->allocator, handle);
  }
  handle = r->held[instr->id];
  r->held[instr->id] = -1;
  if (handle >= 0) PLANC_TRY(pl_allocator_give(&r->allocator, handle));
  return instr->op == PLANC_INSTR_acquire ? take(r, instr->bytes, &r->held[instr->id]) : NULL;
}

/* One period; what it maps is added to `out` where that is given. */
static planc_status follow_body(remapping *r, int64_t *out) {
  for (int32_t i = 0; i < r->plan->body.n; i++) {
    const planc_instr *instr = &r->plan->body.instrs[i];
    PLANC_TRY(follow_instr(r, instr));
    if (instr->op != PLANC_INSTR_exec && instr->op != PLANC_INSTR_copy) continue;
    int64_t now = r->allocator.chunks.n_mapped + r->allocator.chunks.n_unmapped;
    if (out) out[i] = now - r->seen;
    r->seen = now;
  }
  return NULL;
}
