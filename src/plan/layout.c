/* What stands where in a plan's file (layout.h). */
#include "plan/layout.h"

#include "util/math.h"

enum { SINGLE_ROWS = 3 }; /* header, device, predictions */

/* The header states how many there are of all jobs. */
static planc_status check_replicas(const planc_plan *plan) {
  int32_t n = planc_plan_replicas(plan);
  if (n > PLANC_PLAN_MAX_REPLICAS)
    return planc_error(PLANC_INVALID_PLAN, "%d replicas, at most %d are allowed", n, PLANC_PLAN_MAX_REPLICAS);
  for (int32_t j = 1; j < plan->n_jobs; j++) {
    int32_t of_job = plan->jobs[j].replicas > 1 ? plan->jobs[j].replicas : 1;
    if (of_job != n) return planc_error(PLANC_INVALID_PLAN, "job %d has %d replicas, job 0 has %d", j, of_job, n);
  }
  return NULL;
}

planc_status planc_plan_layout_make(const planc_plan *plan, planc_arena *arena, planc_plan_layout *out) {
  *out = (planc_plan_layout){0};
  if (plan->n_jobs < 0 || plan->n_jobs > PLANC_PLAN_MAX_JOBS) {
    return planc_error(PLANC_INVALID_PLAN, "%d jobs, at most %d are allowed", plan->n_jobs, PLANC_PLAN_MAX_JOBS);
  }
  PLANC_TRY(PLANC_NEW(arena, &out->graphs, plan->n_jobs));
  PLANC_TRY(PLANC_NEW(arena, &out->graph_of_job, plan->n_jobs));
  PLANC_TRY(check_replicas(plan));
  for (int32_t j = 0; j < plan->n_jobs; j++) {
    const planc_graph *graph = plan->jobs[j].graph;
    int32_t g = 0;
    while (g < out->n_graphs && out->graphs[g] != graph) g++;
    out->graph_of_job[j] = g;
    if (g < out->n_graphs) continue;
    out->graphs[out->n_graphs++] = graph;
    out->n_tensors += graph->n_tensors;
    out->n_ops += graph->n_ops;
  }
  out->n_instrs = (int64_t)plan->prologue.n + plan->body.n + plan->epilogue.n;
  out->first_instr_line = 1 + SINGLE_ROWS + plan->n_memories + plan->n_links + out->n_graphs + out->n_tensors +
                          out->n_ops + plan->n_jobs + plan->n_streams + plan->n_algorithms + plan->n_boundary +
                          plan->n_mappings;
  return NULL;
}

/* --- Memories and links ------------------------------------------------------------------------------------------- */

const planc_memory *planc_plan_memory(const planc_plan *plan, planc_memory_kind kind) {
  static const planc_memory none = {.gpu = -1, .bytes = -1, .budget_bytes = -1, .alignment = PLANC_PLAN_ALIGNMENT};
  for (int32_t m = 0; m < plan->n_memories; m++)
    if (plan->memories[m].kind == kind) return &plan->memories[m];
  return &none;
}

int32_t planc_plan_gpus(const planc_plan *plan) {
  int32_t n = 0;
  while (n < plan->n_memories && plan->memories[n].kind == PLANC_MEMORY_DEVICE) n++;
  return n;
}

int32_t planc_plan_replicas(const planc_plan *plan) {
  return plan->n_jobs > 0 && plan->jobs[0].replicas > 1 ? plan->jobs[0].replicas : 1;
}

static int32_t gpu_of_memory(const planc_plan *plan, int32_t memory) {
  return memory >= 0 && memory < plan->n_memories ? plan->memories[memory].gpu : -1;
}

int32_t planc_gpu_of_stream(const planc_plan *plan, int32_t stream) {
  const planc_stream *of = &plan->streams[stream];
  if (of->kind == PLANC_STREAM_KIND_compute) return gpu_of_memory(plan, of->on);
  for (int32_t l = 0; l < plan->n_links; l++) {
    const planc_plan_link *link = &plan->links[l];
    if (link->engine != of->on) continue;
    if (gpu_of_memory(plan, link->from) >= 0) return gpu_of_memory(plan, link->from);
    if (gpu_of_memory(plan, link->to) >= 0) return gpu_of_memory(plan, link->to);
  }
  return -1;
}

int64_t planc_memory_peak(const planc_plan *plan, const planc_memory *memory) {
  int64_t arenas = memory->kind == PLANC_MEMORY_DEVICE ? 1 : planc_plan_replicas(plan);
  return planc_add_saturate(planc_muldiv_ceil(memory->arena_bytes, arenas, 1), memory->reserved_bytes);
}

int64_t planc_plan_peak(const planc_plan *plan, planc_memory_kind kind) {
  int64_t peak = 0;
  for (int32_t m = 0; m < plan->n_memories; m++) {
    const planc_memory *memory = &plan->memories[m];
    int64_t own = planc_memory_peak(plan, memory);
    if (memory->kind == kind && own > peak) peak = own;
  }
  return peak;
}

void planc_plan_find_peaks(planc_plan *plan) {
  plan->predicted.peak_bytes = planc_plan_peak(plan, PLANC_MEMORY_DEVICE);
  plan->predicted.host_peak_bytes = planc_plan_peak(plan, PLANC_MEMORY_HOST);
}

/* The first link between the memories of the two kinds. */
static planc_link cost_of(const planc_plan *plan, planc_memory_kind from, planc_memory_kind to) {
  for (int32_t l = 0; l < plan->n_links; l++) {
    const planc_plan_link *link = &plan->links[l];
    if (plan->memories[link->from].kind == from && plan->memories[link->to].kind == to) return link->cost;
  }
  return (planc_link){0};
}

planc_device planc_plan_describe(const planc_plan *plan) {
  const planc_memory *memory = planc_plan_memory(plan, PLANC_MEMORY_DEVICE);
  planc_link store = cost_of(plan, PLANC_MEMORY_HOST, PLANC_MEMORY_STORAGE);
  planc_link load = cost_of(plan, PLANC_MEMORY_STORAGE, PLANC_MEMORY_HOST);
  bool both = store.bytes_per_second > 0 && load.bytes_per_second > 0;
  return (planc_device){.name = plan->device.name,
                        .memory_bytes = memory->bytes,
                        .reserved_bytes = memory->reserved_bytes,
                        .launch_ns = plan->device.launch_ns,
                        .in_flight = plan->device.in_flight,
                        .h2d = cost_of(plan, PLANC_MEMORY_HOST, PLANC_MEMORY_DEVICE),
                        .d2h = cost_of(plan, PLANC_MEMORY_DEVICE, PLANC_MEMORY_HOST),
                        .store = both ? store : (planc_link){0},
                        .load = both ? load : (planc_link){0},
                        .duplex_ppm = plan->device.duplex_ppm,
                        .slowdown_ppm = plan->device.slowdown_ppm};
}

/* --- Instructions ------------------------------------------------------------------------------------------------- */

planc_status planc_plan_acquired(const planc_plan *plan, planc_arena *arena, planc_acquired **out) {
  planc_acquired *all;
  PLANC_TRY(PLANC_NEW(arena, &all, plan->n_residencies));
  for (int32_t r = 0; r < plan->n_residencies; r++) all[r] = (planc_acquired){.buffer = -1, .memory = -1};
  for (int32_t b = 0; b < plan->n_boundary && b < plan->n_residencies; b++)
    all[b] = (planc_acquired){plan->boundary[b].buffer, plan->boundary[b].memory};
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    bool acquires = instr->op == PLANC_INSTR_acquire && instr->id >= 0 && instr->id < plan->n_residencies;
    if (acquires) all[instr->id] = (planc_acquired){instr->aux, instr->memory};
  }
  *out = all;
  return NULL;
}

const planc_instr *planc_plan_instr_at(const planc_plan *plan, int64_t index) {
  if (index < plan->prologue.n) return &plan->prologue.instrs[index];
  index -= plan->prologue.n;
  if (index < plan->body.n) return &plan->body.instrs[index];
  return &plan->epilogue.instrs[index - plan->body.n];
}

int32_t planc_plan_uses_at(const planc_plan *plan, int64_t index) {
  int64_t n_instrs = (int64_t)plan->prologue.n + plan->body.n + plan->epilogue.n;
  int32_t start = planc_plan_instr_at(plan, index)->first_use, end = plan->n_uses;
  for (int64_t next = index + 1; next < n_instrs; next++) {
    const planc_instr *instr = planc_plan_instr_at(plan, next);
    if (instr->op != PLANC_INSTR_exec) continue;
    end = instr->first_use;
    break;
  }
  return start < 0 || end < start || end > plan->n_uses ? -1 : end - start;
}
