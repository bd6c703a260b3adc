/* What of an arena is lost: best fit leaves gaps, virtual memory the ends of last chunks. */
#include "planc/analysis.h"
#include "planner/plan_totals.h"
#include "util/arena.h"
#include "util/math.h"

typedef struct level {
  int64_t bytes, held; /* of what is open: asked for; taken up, in whole chunks with virtual memory */
  int64_t n;
} level;

/* In virtual memory the boundary is one block, and what lies between its buffers (*out_between) is asked for too. */
static level boundary_of(const planc_plan *plan, const planc_trace *trace, const planc_gpus *gpus, int32_t gpu,
                         int64_t *bytes, int64_t *out_between) {
  level all = {0};
  int64_t end = 0;
  for (int32_t r = 0; r < plan->n_boundary; r++) {
    if (plan->boundary[r].home || gpus->of_residency[r] != gpu) continue;
    all.n = 1;
    bytes[r] = trace->buffers[plan->boundary[r].buffer].bytes;
    all.bytes = planc_add_saturate(all.bytes, bytes[r]);
    if (planc_add_saturate(plan->boundary[r].address, bytes[r]) > end) end = plan->boundary[r].address + bytes[r];
  }
  *out_between = plan->chunk_bytes > 0 && end > all.bytes ? end - all.bytes : 0;
  all.bytes += *out_between;
  all.held = plan->chunk_bytes > 0 ? planc_align_up(end, plan->chunk_bytes) : all.bytes;
  return all;
}

static void note(const level *now, int64_t between, planc_fragmentation *out) {
  if (now->bytes - between > out->live_bytes) out->live_bytes = now->bytes - between;
  if (now->held - now->bytes > out->inside_bytes) out->inside_bytes = now->held - now->bytes;
  if (now->n > out->most_at_once) out->most_at_once = now->n;
}

static level with(level now, int64_t bytes, int64_t chunk_bytes, int sign) {
  int64_t held = chunk_bytes > 0 ? planc_align_up(bytes, chunk_bytes) : bytes;
  return (level){now.bytes + sign * bytes, now.held + sign * held, now.n + sign};
}

/* Follows what is on one GPU; `bytes` is by residency. */
static void follow(const planc_plan *plan, const planc_trace *trace, const planc_gpus *gpus, int32_t gpu,
                   int64_t *bytes, planc_fragmentation *out) {
  int64_t between;
  level now = boundary_of(plan, trace, gpus, gpu, bytes, &between);
  note(&now, between, out);
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (planc_gpus_at(gpus, instr) != gpu) continue;
    if (instr->op == PLANC_INSTR_acquire) {
      bytes[instr->id] = instr->bytes;
      now = with(now, instr->bytes, plan->chunk_bytes, 1);
      note(&now, between, out);
    } else if (instr->op == PLANC_INSTR_release) {
      bool own = plan->chunk_bytes == 0 || instr->id >= plan->n_boundary;
      level block = {now.bytes - bytes[instr->id], now.held, now.n}; /* keeps its chunks */
      now = own ? with(now, bytes[instr->id], plan->chunk_bytes, -1) : block;
    } else if (instr->op == PLANC_INSTR_exec && instr->bytes > 0) {
      level beside = with(now, instr->bytes, plan->chunk_bytes, 1);
      note(&beside, between, out);
    }
  }
}

static planc_status follow_all(const planc_plan *plan, const planc_trace *trace, planc_arena *arena,
                               planc_fragmentation *out) {
  int64_t *bytes;
  planc_gpus gpus;
  PLANC_TRY(planc_plan_check_names(plan, trace));
  PLANC_TRY(planc_gpus_find(plan, arena, &gpus));
  PLANC_TRY(PLANC_NEW(arena, &bytes, plan->n_residencies));
  for (int32_t g = 0; g < gpus.n; g++) follow(plan, trace, &gpus, g, bytes, out);
  out->lost_bytes = plan->arena_bytes > out->live_bytes ? plan->arena_bytes - out->live_bytes : 0;
  out->bound_bytes = plan->chunk_bytes * out->most_at_once;
  return NULL;
}

planc_status planc_fragmentation_of(const planc_plan *plan, planc_fragmentation *out) {
  planc_trace *trace;
  planc_arena arena = {0};
  *out = (planc_fragmentation){0};
  PLANC_TRY(planc_expand(plan->jobs, plan->n_jobs, &trace));
  planc_status status = follow_all(plan, trace, &arena, out);
  planc_arena_free(&arena);
  planc_trace_free(trace);
  return status;
}
