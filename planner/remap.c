#include "planner/remap.h"

#include <stdlib.h>

#include "plan/mapping.h"
#include "planner/chunks.h"
#include "planner/launch_queue.h"
#include "util/arena.h"

typedef struct remapping {
  const planc_plan *plan;
  int64_t range; /* of device addresses */
  planc_chunks chunks;
  planc_arena arena;
  int32_t *held; /* by residency: its range of chunks, -1 = none */
  int64_t seen;  /* chunks mapped and unmapped that have been counted */
} remapping;

static planc_status take(remapping *r, int64_t bytes, int32_t *out_range) {
  int64_t address;
  *out_range = -1;
  if (bytes <= 0 || bytes > r->range) {
    return planc_error(PLANC_INVALID_PLAN, "%lld bytes of %lld that are mapped", (long long)bytes, (long long)r->range);
  }
  return planc_chunks_take(&r->chunks, bytes, out_range, &address);
}

static planc_status follow_instr(remapping *r, const planc_instr *instr) {
  int32_t range;
  if (instr->op == PLANC_INSTR_exec && instr->bytes > 0) {
    PLANC_TRY(take(r, instr->bytes, &range));
    return planc_chunks_give(&r->chunks, range);
  }
  if (instr->op != PLANC_INSTR_acquire && instr->op != PLANC_INSTR_release) return NULL;
  if (instr->id < 0 || instr->id >= r->plan->n_residencies) {
    return planc_error(PLANC_INVALID_PLAN, "there is no residency %d", instr->id);
  }
  range = r->held[instr->id];
  r->held[instr->id] = -1;
  if (range >= 0) PLANC_TRY(planc_chunks_give(&r->chunks, range));
  return instr->op == PLANC_INSTR_acquire ? take(r, instr->bytes, &r->held[instr->id]) : NULL;
}

/* One period; what it maps is added to `out` where that is given. */
static planc_status follow_body(remapping *r, int64_t *out) {
  for (int32_t i = 0; i < r->plan->body.n; i++) {
    const planc_instr *instr = &r->plan->body.instrs[i];
    PLANC_TRY(follow_instr(r, instr));
    if (!planc_instr_is_copy(instr) && !planc_instr_is_kernel(instr)) continue;
    int64_t now = r->chunks.n_mapped + r->chunks.n_unmapped;
    if (out) out[i] = now - r->seen;
    r->seen = now;
  }
  return NULL;
}

/* The boundary is one block, which stays. The first period makes chunks and finds out which sizes there are. */
static planc_status follow(remapping *r, int64_t *out) {
  int64_t end = 0;
  int32_t block;
  PLANC_TRY(PLANC_NEW(&r->arena, &r->held, r->plan->n_residencies));
  for (int32_t i = 0; i < r->plan->n_residencies; i++) r->held[i] = -1;
  for (int32_t b = 0; b < r->plan->n_boundary; b++) {
    if (!r->plan->boundary[b].home && r->plan->boundary[b].address >= end) end = r->plan->boundary[b].address + 1;
  }
  if (end > 0) PLANC_TRY(take(r, end, &block));
  PLANC_TRY(follow_body(r, NULL));
  return follow_body(r, out);
}

planc_status planc_count_mappings(const planc_plan *plan, int64_t **out_mapped, int64_t *out_sum) {
  enum { MOST_CHUNKS = 1 << 24 };
  *out_mapped = NULL;
  *out_sum = 0;
  if (plan->chunk_bytes == 0) return planc_error(PLANC_USAGE, "the plan has no virtual memory");
  PLANC_TRY(planc_mappings_check(plan));
  remapping r = {.plan = plan, .range = planc_plan_range(plan), .chunks = {.chunk_bytes = plan->chunk_bytes}};
  if (r.range / plan->chunk_bytes > MOST_CHUNKS) return planc_error(PLANC_INVALID_PLAN, "too many chunks");
  int64_t *mapped = calloc((size_t)plan->body.n + 1, sizeof *mapped);
  if (!mapped) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  planc_status status = follow(&r, mapped);
  planc_chunks_free(&r.chunks);
  planc_arena_free(&r.arena);
  if (status) {
    free(mapped);
    return status;
  }
  for (int32_t i = 0; i < plan->body.n; i++) *out_sum += mapped[i];
  *out_mapped = mapped;
  return NULL;
}
