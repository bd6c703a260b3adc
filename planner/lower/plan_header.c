/* What of a plan its schedule and addresses say without any order: header, memories, links, jobs, streams, boundary. */
#include "planner/lower/plan_header.h"

#include <string.h>

#include "plan/layout.h"
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

/* --- Memories and links ------------------------------------------------------------------------------------------- */

/* Storage that the plan may use is in its tables, whether it does or not: who plans anew may use it as well. */
static bool may_store(const filling *f) {
  return f->problem->storage_budget_bytes > 0;
}

/* In the order of PLANC_IN_DEVICE and the others; the user's is the last. */
static planc_status make_memories(const filling *f) {
  enum { MOST = 4 };
  const planc_device *device = planc_profile_device(f->problem->profile);
  const planc_virtual_memory *virtual = planc_schedule_memory(f->schedule);
  int32_t n = 0;
  planc_memory *memories;
  PLANC_TRY(PLANC_NEW(f->memory, &memories, MOST));
  memories[n++] = (planc_memory){.kind = PLANC_MEMORY_DEVICE,
                                 .gpu = 0,
                                 .bytes = device->memory_bytes,
                                 .budget_bytes = f->problem->budget_bytes,
                                 .reserved_bytes = device->reserved_bytes,
                                 .arena_bytes = f->addresses->arena_bytes,
                                 .alignment = PLANC_PLAN_ALIGNMENT,
                                 .chunk_bytes = virtual->chunk_bytes,
                                 .paged = virtual->paged,
                                 .n_mappings = virtual->n};
  memories[n++] = (planc_memory){.kind = PLANC_MEMORY_HOST,
                                 .gpu = -1,
                                 .bytes = -1,
                                 .budget_bytes = f->problem->host_budget_bytes,
                                 .arena_bytes = f->addresses->away.host_bytes,
                                 .alignment = PLANC_PLAN_ALIGNMENT,
                                 .first_mapping = virtual->n};
  if (may_store(f)) {
    memories[n++] = (planc_memory){.kind = PLANC_MEMORY_STORAGE,
                                   .gpu = -1,
                                   .bytes = -1,
                                   .budget_bytes = f->problem->storage_budget_bytes,
                                   .arena_bytes = f->addresses->away.storage_bytes,
                                   .alignment = PLANC_STORAGE_ALIGNMENT,
                                   .first_mapping = virtual->n};
  }
  memories[n++] = (planc_memory){.kind = PLANC_MEMORY_USER,
                                 .gpu = -1,
                                 .bytes = -1,
                                 .budget_bytes = -1,
                                 .alignment = PLANC_PLAN_ALIGNMENT,
                                 .first_mapping = virtual->n};
  f->plan->memories = memories;
  f->plan->n_memories = n;
  f->plan->n_mappings = virtual->n;
  return planc_arena_copy(f->memory, virtual->mappings, virtual->n, sizeof *virtual->mappings,
                          (void *)&f->plan->mappings);
}

/* An engine for each direction of a GPU's link, and of the storage's. A bus is shared by all replicas. */
enum { ENGINE_H2D, ENGINE_D2H, ENGINE_STORE, ENGINE_LOAD };
enum { LINKS_OF_GPU = 6, LINKS_OF_STORAGE = 4 };

/* The storage's engines copy between it, the host's memory and the user's. It is there for all replicas. */
static int32_t link_storage(const filling *f, planc_plan_link *links) {
  const planc_device *device = planc_profile_device(f->problem->profile);
  const int32_t others[] = {PLANC_IN_HOST, f->plan->n_memories - 1};
  int32_t n = 0;
  for (int32_t load = 0; load < 2; load++) {
    for (int32_t k = 0; k < LINKS_OF_STORAGE / 2; k++) {
      links[n++] = (planc_plan_link){.from = load ? PLANC_IN_STORAGE : others[k],
                                     .to = load ? others[k] : PLANC_IN_STORAGE,
                                     .engine = ENGINE_STORE + load,
                                     .bus = planc_trace_replicas(f->trace) > 1 ? ENGINE_STORE + load : -1,
                                     .cost = load ? device->load : device->store};
    }
  }
  return n;
}

/* The GPU's engines copy between its memory, the host's and the user's. */
static planc_status make_links(const filling *f) {
  const planc_device *device = planc_profile_device(f->problem->profile);
  int32_t user = f->plan->n_memories - 1, n = 0;
  const int32_t ends[LINKS_OF_GPU / 2][2] = {
      {PLANC_IN_HOST, PLANC_IN_DEVICE}, {user, PLANC_IN_DEVICE}, {user, PLANC_IN_HOST}};
  planc_plan_link *links;
  PLANC_TRY(PLANC_NEW(f->memory, &links, LINKS_OF_GPU + LINKS_OF_STORAGE));
  for (int32_t out = 0; out < 2; out++) {
    for (int32_t k = 0; k < LINKS_OF_GPU / 2; k++) {
      links[n++] = (planc_plan_link){.from = ends[k][out],
                                     .to = ends[k][!out],
                                     .engine = ENGINE_H2D + out,
                                     .bus = f->problem->shared_link ? ENGINE_H2D + out : -1,
                                     .cost = out ? device->d2h : device->h2d};
    }
  }
  if (may_store(f)) n += link_storage(f, &links[n]);
  f->plan->links = links;
  f->plan->n_links = n;
  return NULL;
}

/* --- Streams and boundary ----------------------------------------------------------------------------------------- */

static planc_status make_streams(const filling *f) {
  planc_stream *streams;
  int32_t n_jobs = f->trace->n_jobs, n = n_jobs * PLANC_N_STREAMS;
  PLANC_TRY(PLANC_NEW(f->memory, &streams, (int64_t)n_jobs * (PLANC_N_STREAMS + PLANC_N_STORAGE_STREAMS)));
  for (int32_t j = 0; j < n_jobs; j++) {
    planc_stream *own = &streams[(int64_t)j * PLANC_N_STREAMS];
    own[PLANC_STREAM_COMPUTE] = (planc_stream){PLANC_STREAM_KIND_compute, j, PLANC_IN_DEVICE};
    own[PLANC_STREAM_H2D] = (planc_stream){PLANC_STREAM_KIND_copy, j, ENGINE_H2D};
    own[PLANC_STREAM_D2H] = (planc_stream){PLANC_STREAM_KIND_copy, j, ENGINE_D2H};
  }
  for (int32_t k = 0; planc_has_storage(f->addresses) && k < n_jobs * PLANC_N_STORAGE_STREAMS; k++) {
    streams[n++] =
        (planc_stream){PLANC_STREAM_KIND_copy, k / PLANC_N_STORAGE_STREAMS, ENGINE_STORE + k % PLANC_N_STORAGE_STREAMS};
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
    int32_t buffer = planc_schedule_residencies(f->schedule)[r].buffer;
    bool parked = r < planc_schedule_n_parked(f->schedule);
    boundary[r] =
        (planc_boundary){.buffer = buffer,
                         .memory = parked ? planc_memory_of_slot(f->addresses, r) : PLANC_IN_DEVICE,
                         .address = parked ? f->addresses->away.slots[r].address : f->addresses->residencies[r]};
  }
  f->plan->n_boundary = n;
  f->plan->boundary = boundary;
  return NULL;
}

/* --- All ---------------------------------------------------------------------------------------------------------- */

static planc_status fill(const filling *f, const char *policy) {
  const planc_problem *problem = f->problem;
  const planc_device *device = planc_profile_device(problem->profile);
  planc_plan *plan = f->plan;
  plan->device = (planc_plan_device){.launch_ns = device->launch_ns,
                                     .in_flight = device->in_flight,
                                     .duplex_ppm = device->duplex_ppm,
                                     .slowdown_ppm = device->slowdown_ppm};
  PLANC_TRY(planc_arena_strndup(f->memory, device->name, strlen(device->name), &plan->device.name));
  PLANC_TRY(planc_arena_strndup(f->memory, problem->graph->name, strlen(problem->graph->name), &plan->name));
  PLANC_TRY(planc_arena_strndup(f->memory, policy, strlen(policy), &plan->policy));
  plan->settings = problem->settings;
  plan->graph_hash = planc_graph_hash(problem->graph);
  for (int32_t j = 0; j < f->trace->n_jobs; j++) {
    const planc_job *job = &f->trace->jobs[j];
    int64_t ns = planc_costs_ideal(planc_schedule_costs(f->schedule, j), job->graph, job->batch);
    plan->predicted.ideal_ns = planc_add_saturate(plan->predicted.ideal_ns, planc_muldiv_ceil(ns, job->iterations, 1));
  }
  PLANC_TRY(make_memories(f));
  PLANC_TRY(make_links(f));
  PLANC_TRY(copy_jobs(f));
  PLANC_TRY(make_streams(f));
  PLANC_TRY(fill_boundary(f));
  planc_plan_find_peaks(plan);
  return NULL;
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
