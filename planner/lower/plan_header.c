/* What of a plan its schedule and addresses say without any order: header, memories, links, jobs, streams, boundary. */
#include "planner/lower/plan_header.h"

#include <stdio.h>
#include <string.h>

#include "graph/spec.h"
#include "plan/owned.h"
#include "plan/routes.h"
#include "plan/tables.h"
#include "util/math.h"

typedef struct filling {
  const planc_problem *problem;
  const planc_schedule *schedule;
  const planc_trace *trace;
  const pl_addresses *addresses;
  planc_plan *plan;
  pl_arena *arena; /* the plan's */
} filling;

static planc_status fill(const filling *f, const char *policy);
static planc_status name_plan(const filling *f);
static planc_status make_memories(const filling *f);
static planc_status make_links(const filling *f);
static planc_status copy_jobs(const filling *f);
static planc_status make_streams(const filling *f);
static planc_status fill_boundary(const filling *f);

planc_status pl_fill_header(const planc_problem *problem, const char *policy, const planc_schedule *schedule,
                            const pl_addresses *addresses, planc_plan *plan) {
  filling f = {.problem = problem,
               .schedule = schedule,
               .trace = planc_schedule_trace(schedule),
               .addresses = addresses,
               .plan = plan,
               .arena = &plan->owned->arena};
  return fill(&f, policy);
}

static planc_status fill(const filling *f, const char *policy) {
  const planc_problem *problem = f->problem;
  const planc_device *device = planc_profile_device(problem->profile);
  planc_plan *plan = f->plan;
  plan->device = (planc_plan_device){.launch_ns = device->launch_ns,
                                     .in_flight = device->in_flight,
                                     .duplex_ppm = device->duplex_ppm,
                                     .slowdown_ppm = device->slowdown_ppm};
  PLANC_TRY(pl_arena_strndup(f->arena, device->name, strlen(device->name), &plan->device.name));
  PLANC_TRY(name_plan(f));
  PLANC_TRY(pl_arena_strndup(f->arena, policy, strlen(policy), &plan->policy));
  plan->settings = problem->settings;
  PLANC_TRY(PL_NEW(f->arena, &plan->predicted.jobs, f->trace->n_jobs));
  for (int32_t j = 0; j < f->trace->n_jobs; j++) {
    const planc_job *job = &f->trace->jobs[j];
    int64_t ns = planc_costs_ideal(planc_schedule_costs(f->schedule, j), job->graph, job->batch);
    plan->predicted.jobs[j].ideal_ns = pl_muldiv_ceil(ns, job->iterations, 1);
    PLANC_TRY(pl_tables_check_predicted(plan->predicted.jobs[j].ideal_ns));
  }
  PLANC_TRY(make_memories(f));
  PLANC_TRY(make_links(f));
  PLANC_TRY(copy_jobs(f));
  PLANC_TRY(make_streams(f));
  return fill_boundary(f);
}

static planc_status copy_jobs(const filling *f) {
  planc_job *jobs;
  PLANC_TRY(pl_arena_copy(f->arena, f->trace->jobs, f->trace->n_jobs, sizeof *jobs, (void *)&jobs));
  for (int32_t j = 0; j < f->trace->n_jobs; j++) {
    PLANC_TRY(
        pl_arena_copy(f->arena, jobs[j].rounds, jobs[j].n_rounds, sizeof *jobs[j].rounds, (void *)&jobs[j].rounds));
    if (!jobs[j].order) continue;
    PLANC_TRY(
        pl_arena_copy(f->arena, jobs[j].order, jobs[j].graph->n_ops, sizeof *jobs[j].order, (void *)&jobs[j].order));
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

/* In the order of PL_IN_DEVICE and the others; the user's is the last. */
static planc_status make_memories(const filling *f) {
  enum { MOST = 4 };
  const planc_device *device = planc_profile_device(f->problem->profile);
  const planc_virtual_memory *virtual = planc_schedule_memory(f->schedule);
  int32_t n = 0;
  planc_memory *memories;
  PLANC_TRY(PL_NEW(f->arena, &memories, MOST));
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
                                   .alignment = PL_STORAGE_ALIGNMENT,
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
  return pl_arena_copy(f->arena, virtual->mappings, virtual->n, sizeof *virtual->mappings, (void *)&f->plan->mappings);
}

/* An engine for each route: its number. The bus of a GPU's engines is shared where the problem says so. Storage is
 * there for all replicas, so its engines' are. */
static planc_plan_link link_between(const filling *f, int32_t from, int32_t to) {
  planc_device device = *planc_profile_device(f->problem->profile);
  planc_route route = pl_route_between(f->plan->memories[from].kind, f->plan->memories[to].kind);
  bool of_storage = route == PLANC_ROUTE_STORE || route == PLANC_ROUTE_LOAD;
  bool shared = of_storage ? planc_trace_replicas(f->trace) > 1 : f->problem->shared_link;
  return (planc_plan_link){.from = from,
                           .to = to,
                           .engine = (int32_t)route,
                           .bus = shared ? (int32_t)route : -1,
                           .cost = *pl_route_link(&device, route)};
}

static planc_status make_links(const filling *f) {
  enum { WITHOUT_STORAGE = 6, MOST = 10 };
  const int32_t user = f->plan->n_memories - 1;
  const int32_t ends[MOST][2] = {{PL_IN_HOST, PL_IN_DEVICE},  {user, PL_IN_DEVICE},  {user, PL_IN_HOST},
                                 {PL_IN_DEVICE, PL_IN_HOST},  {PL_IN_DEVICE, user},  {PL_IN_HOST, user},
                                 {PL_IN_HOST, PL_IN_STORAGE}, {user, PL_IN_STORAGE}, {PL_IN_STORAGE, PL_IN_HOST},
                                 {PL_IN_STORAGE, user}};
  int32_t n = may_store(f) ? MOST : WITHOUT_STORAGE;
  planc_plan_link *links;
  PLANC_TRY(PL_NEW(f->arena, &links, n));
  for (int32_t l = 0; l < n; l++) links[l] = link_between(f, ends[l][0], ends[l][1]);
  f->plan->links = links;
  f->plan->n_links = n;
  return NULL;
}

/* --- Streams and boundary ----------------------------------------------------------------------------------------- */

static planc_status make_streams(const filling *f) {
  planc_stream *streams;
  int32_t n_jobs = f->trace->n_jobs, n = planc_schedule_n_streams(f->schedule);
  PLANC_TRY(PL_NEW(f->arena, &streams, n + (int64_t)n_jobs * PL_N_STORAGE_STREAMS));
  for (int32_t j = 0; j < n_jobs; j++) {
    for (int32_t k = 0; k < planc_schedule_n_compute(f->schedule, j); k++)
      streams[planc_schedule_compute(f->schedule, j, k)] = (planc_stream){PLANC_STREAM_KIND_compute, j, PL_IN_DEVICE};
    for (int32_t route = 0; route < PLANC_N_ROUTES; route++) {
      int32_t stream = planc_schedule_stream(f->schedule, j, route);
      if (stream >= 0) streams[stream] = (planc_stream){PLANC_STREAM_KIND_copy, j, route};
    }
  }
  for (int32_t k = 0; pl_has_storage(f->addresses) && k < n_jobs * PL_N_STORAGE_STREAMS; k++) {
    streams[n++] =
        (planc_stream){PLANC_STREAM_KIND_copy, k / PL_N_STORAGE_STREAMS, PLANC_ROUTE_STORE + k % PL_N_STORAGE_STREAMS};
  }
  f->plan->n_streams = n;
  f->plan->streams = streams;
  return NULL;
}

static planc_status fill_boundary(const filling *f) {
  int32_t n = planc_schedule_n_boundary(f->schedule);
  planc_boundary *boundary;
  PLANC_TRY(PL_NEW(f->arena, &boundary, n));
  for (int32_t r = 0; r < n; r++) {
    int32_t buffer = planc_schedule_residencies(f->schedule)[r].buffer;
    bool parked = r < planc_schedule_n_parked(f->schedule);
    boundary[r] =
        (planc_boundary){.buffer = buffer,
                         .memory = parked ? pl_memory_of_slot(f->addresses, r) : PL_IN_DEVICE,
                         .address = parked ? f->addresses->away.slots[r].address : f->addresses->residencies[r]};
  }
  f->plan->n_boundary = n;
  f->plan->boundary = boundary;
  return NULL;
}

/* --- Name --------------------------------------------------------------------------------------------------------- */

/* A mix is named by its jobs' graphs, "resnet50+gnmt"; where that is too long for a name, by the first ones and how
 * many more there are, "resnet50+gnmt+62-more". */
static planc_status name_plan(const filling *f) {
  enum { MORE = 16 };
  int32_t n_jobs = f->trace->n_jobs;
  char name[PL_NAME_MAX + 1] = "";
  size_t length = 0;
  for (int32_t j = 0; j < n_jobs; j++) {
    const char *own = f->trace->jobs[j].graph->name;
    size_t room = sizeof name - (j + 1 < n_jobs ? MORE : 0), needs = length + (j > 0) + strlen(own) + 1;
    if (j > 0 && needs > room) {
      snprintf(name + length, sizeof name - length, "+%d-more", n_jobs - j);
      break;
    }
    length += (size_t)snprintf(name + length, sizeof name - length, "%s%s", j > 0 ? "+" : "", own);
    if (length >= sizeof name - MORE && j + 1 < n_jobs)
      length = sizeof name - MORE; /* the first one's end is cut off */
  }
  return pl_arena_strndup(f->arena, name, strlen(name), &f->plan->name);
}
