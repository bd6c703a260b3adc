#include "plan/copies.h"

static bool is_of_kind(const planc_plan *plan, int32_t memory, planc_memory_kind kind) {
  return memory >= 0 && memory < plan->n_memories && plan->memories[memory].kind == kind;
}

int32_t planc_memory_of_side(const planc_plan *plan, const planc_acquired *acquired, int32_t side) {
  if (side == PLANC_USER) return plan->n_memories - 1;
  return side >= 0 && side < plan->n_residencies ? acquired[side].memory : -1;
}

planc_copy_way planc_way_of_copy(const planc_plan *plan, const planc_acquired *acquired, const planc_instr *instr) {
  int32_t from = planc_memory_of_side(plan, acquired, instr->aux);
  int32_t to = planc_memory_of_side(plan, acquired, instr->id);
  if (from == to && from >= 0) return PLANC_COPY_WITHIN;
  if (is_of_kind(plan, to, PLANC_MEMORY_DEVICE)) return PLANC_COPY_IN;
  return is_of_kind(plan, from, PLANC_MEMORY_DEVICE) ? PLANC_COPY_OUT : PLANC_COPY_PAST;
}

bool planc_side_is_in(const planc_plan *plan, const planc_acquired *acquired, int32_t side, planc_memory_kind kind) {
  return is_of_kind(plan, planc_memory_of_side(plan, acquired, side), kind);
}

bool planc_copy_touches(const planc_plan *plan, const planc_acquired *acquired, const planc_instr *instr,
                        planc_memory_kind kind) {
  return planc_side_is_in(plan, acquired, instr->aux, kind) || planc_side_is_in(plan, acquired, instr->id, kind);
}

const char *planc_copy_word(planc_copy_way way) {
  static const char *const words[PLANC_N_COPY_WAYS] = {[PLANC_COPY_IN] = "prefetch",
                                                       [PLANC_COPY_OUT] = "offload",
                                                       [PLANC_COPY_WITHIN] = "move",
                                                       [PLANC_COPY_PAST] = "copy"};
  return words[way];
}

const char *planc_stream_word(const planc_plan *plan, int32_t stream) {
  const planc_stream *of = &plan->streams[stream];
  bool in = false, out = false;
  if (of->kind == PLANC_STREAM_KIND_compute) return "compute";
  for (int32_t l = 0; l < plan->n_links; l++) {
    if (plan->links[l].engine != of->on) continue;
    in |= is_of_kind(plan, plan->links[l].to, PLANC_MEMORY_DEVICE);
    out |= is_of_kind(plan, plan->links[l].from, PLANC_MEMORY_DEVICE);
  }
  return in == out ? "copy" : in ? "h2d" : "d2h";
}
