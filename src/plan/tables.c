/* Memories, links and streams of a plan (tables.h). The reader of plan files checks some of this as well, but plans
 * also come from elsewhere. */
#include "plan/tables.h"

#include "plan/link_index.h"
#include "plan/mapping.h"
#include "plan/memories.h"
#include "plan/row.h"

static planc_status check(const planc_plan *plan, pl_arena *arena);
static planc_status check_engines(const planc_plan *plan, pl_arena *arena, int32_t *out_n);
static planc_status check_stream(const planc_plan *plan, int32_t s, int32_t n_engines);
static bool is_within(int64_t value, int64_t least, int64_t most);
static planc_status check_device(const planc_plan_device *device);
static planc_status check_memories(const planc_plan *plan);
static planc_status check_link(const planc_plan *plan, int32_t l);
static planc_status check_predictions(const planc_plan *plan);

planc_status pl_tables_check(const planc_plan *plan) {
  pl_arena arena = {0};
  planc_status status = check(plan, &arena);
  pl_arena_free(&arena);
  return status;
}

static planc_status check(const planc_plan *plan, pl_arena *arena) {
  int32_t n_engines = 0;
  pl_link_index links;
  PLANC_TRY(pl_tables_check_ranges(plan));
  PLANC_TRY(pl_mappings_check(plan));
  PLANC_TRY(check_engines(plan, arena, &n_engines));
  PLANC_TRY(pl_link_index_make(plan, arena, &links));
  for (int32_t s = 0; s < plan->n_streams; s++) PLANC_TRY(check_stream(plan, s, n_engines));
  return NULL;
}

planc_status pl_tables_check_ranges(const planc_plan *plan) {
  if (!is_within(plan->n_links, 0, PLANC_PLAN_MAX_LINKS))
    return planc_error(PLANC_INVALID_PLAN, "the number of links is out of range");
  PLANC_TRY(check_device(&plan->device));
  PLANC_TRY(check_memories(plan));
  for (int32_t l = 0; l < plan->n_links; l++) PLANC_TRY(check_link(plan, l));
  return check_predictions(plan);
}

static bool is_within(int64_t value, int64_t least, int64_t most) {
  return value >= least && value <= most;
}

/* --- Device, predictions ------------------------------------------------------------------------------------------ */

static planc_status check_device(const planc_plan_device *device) {
  if (!is_within(device->launch_ns, 0, PL_ROW_MAX) || device->in_flight < 0)
    return planc_error(PLANC_INVALID_PLAN, "device: launch or in_flight are out of range");
  if (!is_within(device->duplex_ppm, 1, PL_PPM))
    return planc_error(PLANC_INVALID_PLAN, "device: a duplex of %lld", (long long)device->duplex_ppm);
  if (is_within(device->slowdown_ppm, 0, PLANC_PLAN_MAX_SLOWDOWN)) return NULL;
  return planc_error(PLANC_INVALID_PLAN, "device: a slowdown of %lld", (long long)device->slowdown_ppm);
}

static planc_status check_prediction_range(int64_t number) {
  if (is_within(number, 0, PL_ROW_MAX)) return NULL;
  return planc_error(PLANC_INVALID_PLAN, "predictions: %lld is out of range", (long long)number);
}

static planc_status check_predictions(const planc_plan *plan) {
  const planc_predictions *predicted = &plan->predicted;
  PLANC_TRY(check_prediction_range(predicted->period_ns));
  PLANC_TRY(check_prediction_range(predicted->bound_ns));
  if (!predicted->jobs) return planc_error(PLANC_INVALID_PLAN, "predictions: there are none of the jobs");
  for (int32_t j = 0; j < plan->n_jobs; j++) {
    PLANC_TRY(check_prediction_range(predicted->jobs[j].ideal_ns));
    PLANC_TRY(check_prediction_range(predicted->jobs[j].busy_ns));
    PLANC_TRY(check_prediction_range(predicted->jobs[j].stall_ns));
  }
  return NULL;
}

planc_status pl_tables_check_predicted(int64_t ns) {
  if (is_within(ns, 0, PL_ROW_MAX)) return NULL;
  return planc_error(PLANC_BAD_INPUT, "the ops of a period take too long: together more than 2^53 ns");
}

/* --- Memories ----------------------------------------------------------------------------------------------------- */

/* Devices, the host, the storage or none, the user's. */
static bool is_in_order(const planc_plan *plan) {
  int32_t m = planc_plan_gpus(plan), n = plan->n_memories;
  if (m == 0 || m >= n || plan->memories[m++].kind != PLANC_MEMORY_HOST) return false;
  if (m < n && plan->memories[m].kind == PLANC_MEMORY_STORAGE) m++;
  return m == n - 1 && plan->memories[m].kind == PLANC_MEMORY_USER;
}

static planc_status check_memory(const planc_plan *plan, int32_t m) {
  const planc_memory *memory = &plan->memories[m];
  const int64_t sizes[] = {memory->arena_bytes, memory->reserved_bytes};
  bool device = memory->kind == PLANC_MEMORY_DEVICE;
  for (int i = 0; i < 2; i++) {
    if (is_within(sizes[i], 0, PL_ROW_MAX)) continue;
    return planc_error(PLANC_INVALID_PLAN, "memory %d: an arena or reserved memory of %lld bytes", m,
                       (long long)sizes[i]);
  }
  if (!is_within(memory->bytes, -1, PL_ROW_MAX) || !is_within(memory->budget_bytes, -1, PL_ROW_MAX))
    return planc_error(PLANC_INVALID_PLAN, "memory %d: its bytes or budget are out of range", m);
  if (!is_within(memory->alignment, PLANC_ALIGNMENT, PLANC_PLAN_MAX_ALIGNMENT) ||
      memory->alignment % PLANC_ALIGNMENT != 0)
    return planc_error(PLANC_INVALID_PLAN, "memory %d: an alignment of %lld", m, (long long)memory->alignment);
  if (memory->gpu != (device ? m : -1))
    return planc_error(PLANC_INVALID_PLAN, "memory %d: it belongs to GPU %d", m, memory->gpu);
  if (pl_memory_peak(plan, memory) > PL_ROW_MAX)
    return planc_error(PLANC_INVALID_PLAN, "memory %d: its arenas and reserved memory are beyond 2^53 bytes", m);
  bool bare = memory->kind != PLANC_MEMORY_USER || (memory->arena_bytes == 0 && memory->reserved_bytes == 0);
  if (bare && (device || memory->chunk_bytes == 0)) return NULL;
  return planc_error(PLANC_INVALID_PLAN, "memory %d: it has what only others have", m);
}

static planc_status check_memories(const planc_plan *plan) {
  if (plan->n_memories < 1 || plan->n_memories > PLANC_PLAN_MAX_MEMORIES || !is_in_order(plan))
    return planc_error(PLANC_INVALID_PLAN, "the memories are not those of devices, host, storage and user in order");
  for (int32_t m = 0; m < plan->n_memories; m++) PLANC_TRY(check_memory(plan, m));
  return NULL;
}

/* --- Links -------------------------------------------------------------------------------------------------------- */

static planc_status check_link(const planc_plan *plan, int32_t l) {
  const planc_plan_link *link = &plan->links[l];
  const char *what = NULL;
  if (link->from < 0 || link->from >= plan->n_memories || link->to < 0 || link->to >= plan->n_memories) {
    what = "it leads from or to a memory that there is not";
  } else if (link->engine < 0 || link->engine >= plan->n_links || link->bus < -1 || link->bus >= plan->n_links) {
    what = "engine or bus are out of range";
  } else if (!is_within(link->cost.bytes_per_second, 1, PL_ROW_MAX) ||
             !is_within(link->cost.latency_ns, 0, PL_ROW_MAX)) {
    what = "its rate or latency is out of range";
  }
  return what ? planc_error(PLANC_INVALID_PLAN, "link %d: %s", l, what) : NULL;
}

/* Engines are numbered without gaps, and all links of one have the same bus. */
static planc_status check_engines(const planc_plan *plan, pl_arena *arena, int32_t *out_n) {
  int32_t *first, n_engines = 0; /* first: by engine, its first link + 1 */
  PLANC_TRY(PL_NEW(arena, &first, plan->n_links));
  for (int32_t l = 0; l < plan->n_links; l++) {
    const planc_plan_link *link = &plan->links[l];
    if (link->from == link->to) return planc_error(PLANC_INVALID_PLAN, "link %d: it leads from a memory to itself", l);
    if (link->engine >= n_engines) n_engines = link->engine + 1;
    if (first[link->engine] == 0) first[link->engine] = l + 1;
    if (plan->links[first[link->engine] - 1].bus != link->bus)
      return planc_error(PLANC_INVALID_PLAN, "link %d: another link of its engine is on another bus", l);
  }
  for (int32_t e = 0; e < n_engines; e++)
    if (first[e] == 0) return planc_error(PLANC_INVALID_PLAN, "engine %d has no link, engine %d has", e, n_engines - 1);
  *out_n = n_engines;
  return NULL;
}

/* --- Streams ------------------------------------------------------------------------------------------------------ */

static planc_status check_stream(const planc_plan *plan, int32_t s, int32_t n_engines) {
  const planc_stream *stream = &plan->streams[s];
  if (stream->job < 0 || stream->job >= plan->n_jobs)
    return planc_error(PLANC_INVALID_PLAN, "stream %d: there is no job %d", s, stream->job);
  if (stream->kind == PLANC_STREAM_KIND_compute) {
    if (stream->on >= 0 && stream->on < planc_plan_gpus(plan)) return NULL;
    return planc_error(PLANC_INVALID_PLAN, "stream %d: memory %d is not a device's", s, stream->on);
  }
  if (stream->kind == PLANC_STREAM_KIND_copy && stream->on >= 0 && stream->on < n_engines) return NULL;
  return planc_error(PLANC_INVALID_PLAN, "stream %d: there is no engine %d", s, stream->on);
}
