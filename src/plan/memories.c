/* Memories, GPUs and replicas of a plan (memories.h). */
#include "plan/memories.h"

#include "util/math.h"

const planc_memory *planc_plan_memory(const planc_plan *plan, planc_memory_kind kind) {
  static const planc_memory none = {.gpu = -1, .bytes = -1, .budget_bytes = -1, .alignment = PLANC_ALIGNMENT};
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
  return plan->n_jobs > 0 ? planc_job_replicas(&plan->jobs[0]) : 1;
}

static int32_t gpu_of_memory(const planc_plan *plan, int32_t memory) {
  return memory >= 0 && memory < plan->n_memories ? plan->memories[memory].gpu : -1;
}

int32_t pl_gpu_of_stream(const planc_plan *plan, int32_t stream) {
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

int64_t pl_memory_peak(const planc_plan *plan, const planc_memory *memory) {
  int64_t arenas = memory->kind == PLANC_MEMORY_DEVICE ? 1 : planc_plan_replicas(plan);
  return pl_add_saturate(pl_mul_saturate(memory->arena_bytes, arenas), memory->reserved_bytes);
}

const planc_memory *pl_plan_peak_memory(const planc_plan *plan, planc_memory_kind kind) {
  const planc_memory *largest = planc_plan_memory(plan, kind);
  for (int32_t m = 0; m < plan->n_memories; m++) {
    const planc_memory *memory = &plan->memories[m];
    if (memory->kind == kind && pl_memory_peak(plan, memory) > pl_memory_peak(plan, largest)) largest = memory;
  }
  return largest;
}

int64_t pl_plan_peak(const planc_plan *plan, planc_memory_kind kind) {
  return pl_memory_peak(plan, pl_plan_peak_memory(plan, kind));
}
