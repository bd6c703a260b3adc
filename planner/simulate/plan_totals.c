/* Sums over a plan's instructions (plan_totals.h). */
#include "planner/simulate/plan_totals.h"

#include "plan/layout.h"
#include "planner/simulate/plan_streams.h"
#include "util/math.h"

planc_status planc_gpus_find(const planc_plan *plan, planc_arena *arena, planc_gpus *out) {
  *out = (planc_gpus){.n = plan->gpus > 1 ? plan->gpus : 1, .plan = plan};
  PLANC_TRY(PLANC_NEW(arena, &out->of_residency, plan->n_residencies));
  int64_t n_instrs = (int64_t)plan->prologue.n + plan->body.n;
  for (int64_t i = 0; i < n_instrs && out->n > 1; i++) {
    const planc_instr *instr = planc_plan_instr_at(plan, i);
    int32_t gpu = planc_gpus_at(out, instr), n_uses = 0;
    if (instr->op == PLANC_INSTR_exec) n_uses = planc_plan_uses_at(plan, i);
    bool copies = planc_instr_is_copy(instr) || instr->op == PLANC_INSTR_move;
    if (copies && instr->id >= 0 && instr->id < plan->n_residencies) out->of_residency[instr->id] = gpu;
    for (int32_t k = 0; k < n_uses; k++) {
      int32_t residency = plan->uses[instr->first_use + k];
      if (residency >= 0 && residency < plan->n_residencies) out->of_residency[residency] = gpu;
    }
  }
  return NULL;
}

int32_t planc_gpus_at(const planc_gpus *gpus, const planc_instr *instr) {
  const planc_plan *plan = gpus->plan;
  int32_t gpu = 0;
  if (!planc_instr_has_stream(instr)) {
    if (instr->id >= 0 && instr->id < plan->n_residencies) gpu = gpus->of_residency[instr->id];
  } else if (instr->stream >= 0 && instr->stream < plan->n_streams) {
    gpu = plan->streams[instr->stream].gpu;
  }
  return gpu >= 0 && gpu < gpus->n ? gpu : 0;
}

/* The prologue leads to what is live at the boundary. */
planc_status planc_find_fullest(const planc_plan *plan, const planc_gpus *gpus, planc_arena *arena,
                                planc_fullest *out) {
  int64_t *bytes, *live; /* by residency; by GPU */
  *out = (planc_fullest){0};
  PLANC_TRY(PLANC_NEW(arena, &bytes, plan->n_residencies));
  PLANC_TRY(PLANC_NEW(arena, &live, gpus->n));
  const planc_section *sections[] = {&plan->prologue, &plan->body};
  for (int32_t k = 0; k < 2; k++) {
    for (int32_t i = 0; i < sections[k]->n; i++) {
      const planc_instr *instr = &sections[k]->instrs[i];
      int32_t gpu = planc_gpus_at(gpus, instr);
      int64_t *here = &live[gpu], now = *here;
      if (instr->op == PLANC_INSTR_exec) now = planc_add_saturate(now, instr->bytes);
      if ((instr->op == PLANC_INSTR_acquire || instr->op == PLANC_INSTR_release) && instr->id >= 0 &&
          instr->id < plan->n_residencies) {
        if (instr->op == PLANC_INSTR_acquire) bytes[instr->id] = instr->bytes;
        now = *here = instr->op == PLANC_INSTR_acquire ? planc_add_saturate(now, instr->bytes) : now - bytes[instr->id];
      }
      if (k == 1 && now > out->bytes) *out = (planc_fullest){.bytes = now, .instr = i, .gpu = gpu};
    }
    for (int32_t g = 0; g < gpus->n && k == 0; g++)
      if (live[g] > out->bytes) *out = (planc_fullest){.bytes = live[g], .gpu = g};
  }
  return NULL;
}

static planc_status find_live_peak(const planc_plan *plan, planc_arena *arena, planc_simulation *out) {
  planc_gpus gpus;
  planc_fullest fullest;
  PLANC_TRY(planc_gpus_find(plan, arena, &gpus));
  PLANC_TRY(planc_find_fullest(plan, &gpus, arena, &fullest));
  out->live_peak_bytes = fullest.bytes;
  out->live_peak_instr = fullest.instr;
  return NULL;
}

static void count_body(const planc_plan *plan, planc_simulation *out) {
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (planc_instr_is_kernel(instr)) out->compute_ns = planc_add_saturate(out->compute_ns, instr->time_ns);
    if (instr->op == PLANC_INSTR_exec && instr->recompute)
      out->recompute_ns = planc_add_saturate(out->recompute_ns, instr->time_ns);
    if (!planc_instr_is_copy(instr)) continue;
    int64_t *bytes = planc_instr_direction(instr) ? &out->d2h_bytes : &out->h2d_bytes;
    *bytes = planc_add_saturate(*bytes, instr->bytes);
  }
  if (plan->gpus > 1) {
    out->compute_ns /= plan->gpus;
    out->recompute_ns /= plan->gpus;
  }
}

planc_status planc_plan_totals(const planc_plan *plan, planc_simulation *out) {
  planc_arena arena = {0};
  count_body(plan, out);
  out->peak_bytes = planc_add_saturate(plan->arena_bytes, plan->device.reserved_bytes);
  planc_status status = find_live_peak(plan, &arena, out);
  planc_arena_free(&arena);
  return status;
}

static bool names_what_is_there(const planc_plan *plan, const planc_trace *trace, const planc_instr *instr) {
  bool residency = instr->id >= 0 && instr->id < plan->n_residencies;
  if (instr->op == PLANC_INSTR_exec) return instr->id >= 0 && instr->id < trace->n_instances;
  if (instr->op == PLANC_INSTR_acquire) return residency && instr->aux >= 0 && instr->aux < trace->n_buffers;
  return residency || instr->op != PLANC_INSTR_release;
}

planc_status planc_plan_check_names(const planc_plan *plan, const planc_trace *trace) {
  for (int32_t b = 0; b < plan->n_boundary; b++) {
    if (plan->boundary[b].buffer >= 0 && plan->boundary[b].buffer < trace->n_buffers) continue;
    return planc_error(PLANC_INVALID_PLAN, "boundary: row %d: there is no buffer %d", b, plan->boundary[b].buffer);
  }
  for (int32_t i = 0; i < plan->body.n; i++) {
    if (names_what_is_there(plan, trace, &plan->body.instrs[i])) continue;
    return planc_error(PLANC_INVALID_PLAN, "body: instruction %d names what there is not", i);
  }
  return NULL;
}
