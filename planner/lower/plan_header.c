/* What of a plan its schedule and addresses say without any order: header, memories, links, jobs, streams, boundary. */
#include "planner/lower/plan_header.h"

#include <stdio.h>
#include <string.h>

#include "graph/spec.h"
#include "plan/owned.h"
#include "plan/tables.h"
#include "util/math.h"

typedef struct filling {
  const planc_target *target;
  const planc_schedule *schedule;
  const planc_trace *trace;
  const pl_addresses *addresses;
  const pl_memories *memories;
  planc_plan *plan;
  pl_arena *arena; /* the plan's */
} filling;

static planc_status fill(const filling *f, const char *policy, int16_t *stream_of);
static planc_status name_plan(const filling *f);
static planc_status make_memories(const filling *f);
static planc_status copy_jobs(const filling *f);
static planc_status make_streams(const filling *f, int16_t *stream_of);
static planc_status fill_boundary(const filling *f);

planc_status pl_fill_header(const planc_target *target, const char *policy, const planc_schedule *schedule,
                            const pl_addresses *addresses, planc_plan *plan, int16_t *stream_of) {
  filling f = {.target = target,
               .schedule = schedule,
               .trace = planc_schedule_trace(schedule),
               .addresses = addresses,
               .memories = &addresses->away.memories,
               .plan = plan,
               .arena = &plan->owned->arena};
  return fill(&f, policy, stream_of);
}

static planc_status fill(const filling *f, const char *policy, int16_t *stream_of) {
  const planc_device *device = planc_profile_device(f->target->profile);
  planc_plan *plan = f->plan;
  plan->device = (planc_plan_device){.launch_ns = device->launch_ns,
                                     .in_flight = device->in_flight,
                                     .duplex_ppm = device->duplex_ppm,
                                     .slowdown_ppm = device->slowdown_ppm};
  PLANC_TRY(pl_arena_strndup(f->arena, device->name, strlen(device->name), &plan->device.name));
  PLANC_TRY(name_plan(f));
  PLANC_TRY(pl_arena_strndup(f->arena, policy, strlen(policy), &plan->policy));
  plan->settings = f->target->settings;
  PLANC_TRY(PL_NEW(f->arena, &plan->predicted.jobs, f->trace->n_jobs));
  for (int32_t j = 0; j < f->trace->n_jobs; j++) {
    const planc_job *job = &f->trace->jobs[j];
    int64_t ns = planc_costs_ideal(planc_schedule_costs(f->schedule, j), job->graph, job->batch);
    plan->predicted.jobs[j].ideal_ns = pl_mul_saturate(ns, job->iterations);
    PLANC_TRY(pl_tables_check_predicted(plan->predicted.jobs[j].ideal_ns));
  }
  PLANC_TRY(make_memories(f));
  PLANC_TRY(pl_memories_link(f->memories, f->target->terms, f->target->profile, planc_trace_replicas(f->trace),
                             f->arena, &plan->links, &plan->n_links));
  PLANC_TRY(copy_jobs(f));
  PLANC_TRY(make_streams(f, stream_of));
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

/* Virtual memory is the device's. */
static planc_status make_memories(const filling *f) {
  const planc_virtual_memory *virtual = &f->addresses->virtual_memory;
  int32_t n = f->memories->n, device = planc_schedule_device(f->schedule);
  planc_memory *memories;
  PLANC_TRY(pl_arena_copy(f->arena, f->memories->rows, n, sizeof *memories, (void *)&memories));
  for (int32_t m = 0; m < n; m++) {
    memories[m].arena_bytes = pl_arena_of(f->addresses, m);
    memories[m].first_mapping = m <= device ? 0 : virtual->n;
  }
  memories[device].chunk_bytes = virtual->chunk_bytes;
  memories[device].paged = virtual->paged;
  memories[device].n_mappings = f->plan->n_mappings = virtual->n;
  f->plan->memories = memories;
  f->plan->n_memories = n;
  return pl_arena_copy(f->arena, virtual->mappings, virtual->n, sizeof *virtual->mappings, (void *)&f->plan->mappings);
}

/* --- Streams and boundary ----------------------------------------------------------------------------------------- */

static int32_t list_storage_routes(const filling *f, planc_route routes[PL_ROUTES_BEHIND_HOST]);

/* Behind the schedule's others are those of each job between host and storage, where anything is stored. Lowering may
 * store although the schedule has no storage: then they have the numbers that they would have. */
static planc_status make_streams(const filling *f, int16_t *stream_of) {
  planc_stream *streams;
  planc_route more[PL_ROUTES_BEHIND_HOST];
  int32_t n_jobs = f->trace->n_jobs, n_more = list_storage_routes(f, more), device = planc_schedule_device(f->schedule);
  int32_t first = planc_schedule_first_storage_stream(f->schedule), n = first + n_jobs * n_more;
  PLANC_TRY(PL_NEW(f->arena, &streams, n));
  for (int32_t j = 0; j < n_jobs; j++) {
    for (int32_t k = 0; k < planc_schedule_n_compute(f->schedule, j); k++)
      streams[planc_schedule_compute(f->schedule, j, k)] = (planc_stream){PLANC_STREAM_KIND_compute, j, device};
    for (int32_t route = 0; route < PLANC_N_ROUTES; route++) {
      int32_t stream = planc_schedule_stream(f->schedule, j, route);
      stream_of[j * PLANC_N_ROUTES + route] = (int16_t)(stream < first ? stream : -1);
    }
    for (int32_t k = 0; k < n_more; k++) stream_of[j * PLANC_N_ROUTES + more[k]] = (int16_t)(first + j * n_more + k);
    for (int32_t route = 0; route < PLANC_N_ROUTES; route++) {
      int32_t stream = stream_of[j * PLANC_N_ROUTES + route];
      if (stream >= 0) streams[stream] = (planc_stream){PLANC_STREAM_KIND_copy, j, pl_memories_engine(route)};
    }
  }
  f->plan->n_streams = n;
  f->plan->streams = streams;
  return NULL;
}

/* The routes between the host and storage, if anything is stored. */
static int32_t list_storage_routes(const filling *f, planc_route routes[PL_ROUTES_BEHIND_HOST]) {
  int32_t storage = pl_memories_behind_host(f->memories);
  bool stores = storage >= 0 && pl_arena_of(f->addresses, storage) > 0;
  return stores ? pl_memories_routes_behind_host(f->memories, routes) : 0;
}

static planc_status fill_boundary(const filling *f) {
  int32_t n = planc_schedule_n_boundary(f->schedule);
  planc_boundary *boundary;
  PLANC_TRY(PL_NEW(f->arena, &boundary, n));
  for (int32_t r = 0; r < n; r++) {
    const planc_residency *it = &planc_schedule_residencies(f->schedule)[r];
    boundary[r] = (planc_boundary){it->buffer, it->memory, f->addresses->residencies[r]};
    if (r >= planc_schedule_n_away(f->schedule)) continue;
    const pl_slot *slot = &f->addresses->away.slots[r];
    boundary[r] = (planc_boundary){it->buffer, slot->memory, slot->address};
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
