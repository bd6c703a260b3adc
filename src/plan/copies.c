/* Which way copies go (copies.h): told from the memory of what each leaves and of where it arrives. */
#include "plan/copies.h"

#include "plan/memories.h"

planc_status pl_plan_acquired(const planc_plan *plan, pl_arena *arena, pl_acquired **out) {
  pl_acquired *all;
  PLANC_TRY(PL_NEW(arena, &all, plan->n_residencies));
  for (int32_t r = 0; r < plan->n_residencies; r++) all[r] = (pl_acquired){.buffer = -1, .memory = -1};
  for (int32_t b = 0; b < plan->n_boundary && b < plan->n_residencies; b++)
    all[b] = (pl_acquired){plan->boundary[b].buffer, plan->boundary[b].memory};
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    bool acquires = instr->op == PLANC_INSTR_acquire && instr->id >= 0 && instr->id < plan->n_residencies;
    if (acquires) all[instr->id] = (pl_acquired){instr->aux, instr->memory};
  }
  *out = all;
  return NULL;
}

static bool is_of_kind(const planc_plan *plan, int32_t memory, planc_memory_kind kind) {
  return memory >= 0 && memory < plan->n_memories && plan->memories[memory].kind == kind;
}

int32_t pl_memory_of_side(const planc_plan *plan, const pl_acquired *acquired, int32_t side) {
  if (side == PLANC_USER) return pl_user_memory(plan);
  return side >= 0 && side < plan->n_residencies ? acquired[side].memory : -1;
}

pl_copy_way pl_way_of_copy(const planc_plan *plan, const pl_acquired *acquired, const planc_instr *instr) {
  int32_t from = pl_memory_of_side(plan, acquired, instr->aux);
  int32_t to = pl_memory_of_side(plan, acquired, instr->id);
  if (from == to && from >= 0) return PL_COPY_WITHIN;
  if (is_of_kind(plan, to, PLANC_MEMORY_DEVICE)) return PL_COPY_IN;
  return is_of_kind(plan, from, PLANC_MEMORY_DEVICE) ? PL_COPY_OUT : PL_COPY_PAST;
}

bool pl_side_is_in(const planc_plan *plan, const pl_acquired *acquired, int32_t side, planc_memory_kind kind) {
  return is_of_kind(plan, pl_memory_of_side(plan, acquired, side), kind);
}

const char *pl_copy_word(pl_copy_way way) {
  static const char *const words[PL_N_COPY_WAYS] = {
      [PL_COPY_IN] = "prefetch", [PL_COPY_OUT] = "offload", [PL_COPY_WITHIN] = "move", [PL_COPY_PAST] = "copy"};
  return words[way];
}

const char *pl_stream_word(const planc_plan *plan, int32_t stream) {
  const planc_stream *of = &plan->streams[stream];
  bool in = false, out = false, store = false, load = false;
  if (of->kind == PLANC_STREAM_KIND_compute) return "compute";
  for (int32_t l = 0; l < plan->n_links; l++) {
    if (plan->links[l].engine != of->on) continue;
    in |= is_of_kind(plan, plan->links[l].to, PLANC_MEMORY_DEVICE);
    out |= is_of_kind(plan, plan->links[l].from, PLANC_MEMORY_DEVICE);
    store |= is_of_kind(plan, plan->links[l].to, PLANC_MEMORY_STORAGE);
    load |= is_of_kind(plan, plan->links[l].from, PLANC_MEMORY_STORAGE);
  }
  if (in != out) return in ? "h2d" : "d2h";
  if (in || store == load) return "copy";
  return store ? "store" : "load";
}
