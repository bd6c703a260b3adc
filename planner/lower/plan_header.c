/* What of a plan its schedule and addresses say without any order: header, jobs, streams, boundary, uses. */
#include "planner/lower/plan_header.h"

#include <string.h>

#include "plan/plan_memory.h"
#include "util/math.h"

typedef struct filling {
  const planc_problem *problem;
  const planc_schedule *schedule;
  const planc_trace *trace;
  const planc_addresses *addresses;
  planc_plan *plan;
  planc_arena *memory; /* the plan's */
} filling;

static planc_status copy_jobs(const filling *f) {
  planc_job *jobs;
  PLANC_TRY(planc_arena_copy(f->memory, f->trace->jobs, f->trace->n_jobs, sizeof *jobs, (void *)&jobs));
  for (int32_t j = 0; j < f->trace->n_jobs; j++) {
    PLANC_TRY(
        planc_arena_copy(f->memory, jobs[j].rounds, jobs[j].n_rounds, sizeof *jobs[j].rounds, (void *)&jobs[j].rounds));
    if (!jobs[j].order) continue;
    PLANC_TRY(planc_arena_copy(f->memory, jobs[j].order, jobs[j].graph->n_ops, sizeof *jobs[j].order,
                               (void *)&jobs[j].order));
  }
  f->plan->n_jobs = f->trace->n_jobs;
  f->plan->jobs = jobs;
  return NULL;
}

static planc_status make_streams(const filling *f) {
  static const planc_stream_kind kinds[PLANC_N_STREAMS] = {[PLANC_STREAM_COMPUTE] = PLANC_STREAM_KIND_compute,
                                                           [PLANC_STREAM_H2D] = PLANC_STREAM_KIND_h2d,
                                                           [PLANC_STREAM_D2H] = PLANC_STREAM_KIND_d2h};
  planc_stream *streams;
  int32_t n = f->trace->n_jobs * PLANC_N_STREAMS;
  PLANC_TRY(PLANC_NEW(f->memory, &streams, n));
  for (int32_t t = 0; t < n; t++) {
    int32_t job = t / PLANC_N_STREAMS;
    streams[t] = (planc_stream){.kind = kinds[t % PLANC_N_STREAMS], .job = job, .gpu = planc_gpu_of(f->trace, job)};
  }
  f->plan->n_streams = n;
  f->plan->streams = streams;
  return NULL;
}

static planc_status fill_boundary(const filling *f) {
  int32_t n = planc_schedule_n_boundary(f->schedule);
  planc_boundary *boundary;
  PLANC_TRY(PLANC_NEW(f->memory, &boundary, n));
  for (int32_t r = 0; r < n; r++) {
    bool home = r < planc_schedule_n_homes(f->schedule);
    boundary[r] = (planc_boundary){.buffer = planc_schedule_residencies(f->schedule)[r].buffer,
                                   .home = home,
                                   .address = home ? f->addresses->homes[r] : f->addresses->residencies[r]};
  }
  f->plan->n_boundary = n;
  f->plan->boundary = boundary;
  f->plan->n_residencies = planc_schedule_n_residencies(f->schedule);
  return NULL;
}

static planc_status copy_uses(const filling *f) {
  for (int32_t c = 0; c < planc_schedule_n_commands(f->schedule); c++) {
    const planc_command *command = &planc_schedule_commands(f->schedule)[c];
    if (command->kind != PLANC_CMD_EXEC) continue;
    f->plan->n_uses = command->first_use + f->trace->instances[command->instance].n_accesses;
  }
  return planc_arena_copy(f->memory, planc_schedule_uses(f->schedule), f->plan->n_uses, sizeof(int32_t),
                          (void *)&f->plan->uses);
}

static planc_status fill(const filling *f, const char *policy) {
  const planc_problem *problem = f->problem;
  planc_plan *plan = f->plan;
  plan->device = *planc_profile_device(problem->profile);
  PLANC_TRY(planc_arena_strndup(f->memory, plan->device.name, strlen(plan->device.name), &plan->device.name));
  PLANC_TRY(planc_arena_strndup(f->memory, problem->graph->name, strlen(problem->graph->name), &plan->name));
  PLANC_TRY(planc_arena_strndup(f->memory, policy, strlen(policy), &plan->policy));
  plan->settings = problem->settings;
  plan->budget_bytes = problem->budget_bytes;
  plan->host_budget_bytes = problem->host_budget_bytes;
  plan->arena_bytes = f->addresses->arena_bytes;
  plan->host_arena_bytes = f->addresses->host_arena_bytes;
  const planc_virtual_memory *memory = planc_schedule_memory(f->schedule);
  plan->chunk_bytes = memory->chunk_bytes;
  plan->paged = memory->paged;
  plan->n_mappings = memory->n;
  PLANC_TRY(
      planc_arena_copy(f->memory, memory->mappings, memory->n, sizeof *memory->mappings, (void *)&plan->mappings));
  plan->gpus = f->addresses->gpus;
  plan->shared_link = problem->shared_link;
  plan->graph_hash = planc_graph_hash(problem->graph);
  plan->predicted.ideal_ns = planc_costs_ideal(planc_schedule_costs(f->schedule), problem->graph, problem->batch);
  plan->predicted.host_peak_bytes = plan->host_arena_bytes;
  PLANC_TRY(copy_jobs(f));
  PLANC_TRY(make_streams(f));
  PLANC_TRY(fill_boundary(f));
  return copy_uses(f);
}

planc_status planc_fill_header(const planc_problem *problem, const char *policy, const planc_schedule *schedule,
                               const planc_addresses *addresses, planc_plan *plan) {
  filling f = {.problem = problem,
               .schedule = schedule,
               .trace = planc_schedule_trace(schedule),
               .addresses = addresses,
               .plan = plan,
               .memory = &plan->memory->arena};
  return fill(&f, policy);
}
