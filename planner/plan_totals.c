/* Sums over a plan's instructions (plan_totals.h). */
#include "planner/plan_totals.h"

#include <stdlib.h>

#include "planner/launch_queue.h"
#include "util/math.h"

/* Follows the body's acquires and releases from the boundary on. */
static planc_status find_live_peak(const planc_plan *plan, planc_simulation *out) {
  int64_t *bytes = calloc((size_t)plan->n_residencies + 1, sizeof *bytes), live = 0;
  if (!bytes) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  const planc_section *sections[] = {&plan->prologue, &plan->body};
  for (int32_t k = 0; k < 2; k++) {
    for (int32_t i = 0; i < sections[k]->n; i++) {
      const planc_instr *instr = &sections[k]->instrs[i];
      int64_t now = live;
      if (instr->op == PLANC_INSTR_exec) now = planc_add_saturate(live, instr->bytes);
      if ((instr->op == PLANC_INSTR_acquire || instr->op == PLANC_INSTR_release) && instr->id >= 0 &&
          instr->id < plan->n_residencies) {
        if (instr->op == PLANC_INSTR_acquire) bytes[instr->id] = instr->bytes;
        now = live =
            instr->op == PLANC_INSTR_acquire ? planc_add_saturate(live, instr->bytes) : live - bytes[instr->id];
      }
      if (k == 0 || now <= out->live_peak_bytes) continue;
      out->live_peak_bytes = now;
      out->live_peak_instr = i;
    }
    if (k == 0) out->live_peak_bytes = live;
  }
  free(bytes);
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
}

planc_status planc_plan_totals(const planc_plan *plan, planc_simulation *out) {
  count_body(plan, out);
  out->peak_bytes = planc_add_saturate(plan->arena_bytes, plan->device.reserved_bytes);
  return find_live_peak(plan, out);
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
