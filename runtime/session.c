/* The session: everything a run needs, made once; runs; the user's own memory. */
#include "runtime/session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/mapping.h"
#include "plan/memories.h"
#include "runtime/random.h"
#include "runtime/room.h"
#include "runtime/stop.h"
#include "util/math.h"
#include "util/size.h"

static planc_status build(planrt_session *session, const planc_check_report *checked);
static planc_status check_bare(const planrt_options *options);
static planc_status check_memories(const planrt_session *session);
static planc_status take_device(planrt_session *session);
static planc_status count_streams(planrt_session *session, rt_device_options *out);
static planc_status give_priorities(planrt_session *session, rt_device_options *out);
static planc_status part_device(planrt_session *session, rt_device_options *out);
static planc_status find_memory(planrt_session *session);
static int64_t others_of(planrt_session *session);
static planc_status open_device(planrt_session *session, const rt_device_options *options);
static planc_status explain(planrt_session *session, planc_status failure);

planc_status planrt_session_new(const planc_plan *plan, const planrt_options *options, planrt_session **out) {
  return rt_session_new_checked(plan, options, NULL, out);
}

planc_status rt_session_new_checked(const planc_plan *plan, const planrt_options *options,
                                    const planc_check_report *checked, planrt_session **out) {
  planrt_session *session = calloc(1, sizeof *session);
  if (!session) return planc_error(PLANC_OUT_OF_MEMORY, "session");
  session->plan = plan;
  session->options = *options;
  session->options.deterministic |= options->verify;
  session->backend = options->backend ? options->backend : &rt_host_backend;
  session->feed = options->feed ? options->feed : rt_random_feed;
  session->feed_user = options->feed ? options->user : session;
  if (options->bare) {
    session->options.concurrent = session->options.same_samples = true;
    session->options.sink = NULL;
  }
  session->step.learning_rate = NAN;
  session->others_bytes = -1;
  planc_status status = build(session, checked);
  if (status)
    planrt_session_free(session);
  else
    *out = session;
  return status;
}

static planc_status build(planrt_session *session, const planc_check_report *checked) {
  const planc_plan *plan = session->plan;
  const planrt_options *options = &session->options;
  PLANC_TRY(check_bare(options));
  if (checked) {
    session->report = *checked;
  } else if (!session->options.unchecked) {
    PLANC_TRY(planc_check(plan, NULL, &session->report));
  }
  PLANC_TRY(planc_expand(plan->jobs, plan->n_jobs, &session->trace));
  PLANC_TRY(rt_failures_open(plan->n_jobs, &session->failures));
  PLANC_TRY(rt_room_check(session));
  PLANC_TRY(rt_jobs_open(session));
  PLANC_TRY(rt_user_open(session));
  PLANC_TRY(pl_mappings_check(plan));
  PLANC_TRY(check_memories(session));
  return take_device(session);
}

/* The device with the plan on it, and the reference beside it. */
static planc_status take_device(planrt_session *session) {
  const planc_plan *plan = session->plan;
  const planc_memory *memory = planc_plan_memory(plan, PLANC_MEMORY_DEVICE);
  rt_device_options device = {.arena_bytes = memory->arena_bytes,
                              .host_arena_bytes = planc_plan_memory(plan, PLANC_MEMORY_HOST)->arena_bytes,
                              .storage_bytes = planc_plan_memory(plan, PLANC_MEMORY_STORAGE)->arena_bytes,
                              .storage_path = session->options.storage_path,
                              .chunk_bytes = memory->chunk_bytes,
                              .n_mappings = memory->n_mappings,
                              .mappings = plan->mappings,
                              .concurrent = session->options.concurrent,
                              .synthetic = session->options.synthetic,
                              .deterministic = session->options.deterministic,
                              .timed = session->options.timeline > 0,
                              .link_bytes_per_s = session->options.link_bytes_per_s,
                              .jitter = session->options.jitter};
  PLANC_TRY(count_streams(session, &device));
  PLANC_TRY(give_priorities(session, &device));
  PLANC_TRY(part_device(session, &device));
  PLANC_TRY(find_memory(session));
  /* A context can be measured while there is room for another one. */
  if (device.arena_bytes > session->device_bytes - 2 * session->before_bytes) (void)others_of(session);
  planc_status status = open_device(session, &device);
  if (status) return explain(session, status);
  return session->options.verify ? rt_reference_open(session) : NULL;
}

void rt_session_give_up_device(planrt_session *session) {
  rt_resident_free(session->reference);
  if (session->device) session->backend->close(session->device);
  session->reference = NULL;
  session->device = NULL;
  session->gave_up_device = true;
}

void rt_session_close_device(planrt_session *session) {
  rt_session_give_up_device(session);
  session->gave_up_device = false;
}

void planrt_session_free(planrt_session *session) {
  if (!session) return;
  rt_session_close_device(session);
  rt_user_close(session);
  rt_jobs_close(session);
  rt_failures_close(&session->failures);
  planc_trace_free(session->trace);
  pl_arena_free(&session->loaded);
  pl_arena_free(&session->memory);
  free(session);
}

static planc_status make_spans(planrt_session *session) {
  int64_t count;
  if (pl_mul_overflow(session->options.timeline, session->n_spans, &count))
    return planc_error(PLANC_OUT_OF_MEMORY, "timeline");
  return PL_NEW(&session->memory, &session->spans, count);
}

/* --- Memory of the device ----------------------------------------------------------------------------------------- */

static planc_status find_memory(planrt_session *session) {
  int64_t left = 0;
  if (!session->backend->memory) return NULL;
  PLANC_TRY(
      planc_context(session->backend->memory(&session->device_bytes, &left), "backend %s", session->backend->name));
  session->before_bytes = session->device_bytes - left;
  return NULL;
}

/* What was taken when the session began, but for the process's own context, which the plan reserves memory for: by
 * other processes, and by the code of plans that this one ran before. Where there is no room to find out how large a
 * context is, it counts as others'. */
static int64_t others_of(planrt_session *session) {
  int64_t context = 0;
  if (session->others_bytes >= 0) return session->others_bytes;
  session->others_bytes = 0;
  if (session->device_bytes == 0) return 0;
  planc_status_free(session->backend->context_bytes(&context));
  if (context < session->before_bytes) session->others_bytes = session->before_bytes - context;
  return session->others_bytes;
}

/* How many GPUs the device stands for: those of each replica. */
static int32_t count_parts(const planrt_session *session) {
  int32_t gpus = planc_plan_gpus(session->plan);
  return (gpus > 1 ? gpus : 1) * planc_trace_replicas(session->trace);
}

/* The largest budget that the device has memory for, on it an arena for each GPU. */
static int64_t most_budget(planrt_session *session) {
  int64_t reserved = planc_plan_memory(session->plan, PLANC_MEMORY_DEVICE)->reserved_bytes;
  int64_t left = session->device_bytes - others_of(session) - reserved;
  return left > 0 ? left / count_parts(session) + reserved : 0;
}

/* Where the plan needs more than the device has for it: how much that is. */
static planc_status explain(planrt_session *session, planc_status failure) {
  enum { MIB = 1 << 20 };
  const planc_memory *memory = planc_plan_memory(session->plan, PLANC_MEMORY_DEVICE);
  planc_code code = planc_status_code(failure);
  if (session->device_bytes == 0 || (code != PLANC_DEVICE && code != PLANC_OUT_OF_MEMORY)) return failure;
  rt_session_close_device(session);
  char needs[PL_SIZE_TEXT], all[PL_SIZE_TEXT], others[PL_SIZE_TEXT], advice[96] = "no budget will do";
  int64_t most = most_budget(session), peak = pl_memory_peak(session->plan, memory);
  if (peak <= most) return failure;
  if (most > 0) snprintf(advice, sizeof advice, "plan for a budget of %lldM", (long long)(most / MIB));
  return planc_context(failure, "the plan takes %s of a device with %s, %s of them taken already: %s",
                       pl_size_format(peak, needs), pl_size_format(session->device_bytes, all),
                       pl_size_format(session->others_bytes, others), advice);
}

/* What context, libraries and code take on the device is charged to the plan; more would make a plan that fits fail. */
static planc_status check_taken(planrt_session *session) {
  int64_t reserved = planc_plan_memory(session->plan, PLANC_MEMORY_DEVICE)->reserved_bytes;
  PLANC_TRY(session->backend->taken(session->device, &session->taken_bytes));
  if (session->taken_bytes > reserved) session->taken_bytes -= others_of(session);
  if (session->taken_bytes <= reserved) return NULL;
  return planc_error(PLANC_DEVICE,
                     "%lld bytes of the device are taken beside the arena, and the plan reserves %lld: profile this "
                     "device, or end what else runs on it",
                     (long long)session->taken_bytes, (long long)reserved);
}

/* A bare run has no use for lanes. */
static bool has_lanes(const planrt_session *session) {
  return session->n_handovers > 0 && !session->options.bare;
}

/* The streams and events of all replicas, and behind them those of the lanes. */
static planc_status count_streams(planrt_session *session, rt_device_options *out) {
  int64_t replicas = planc_trace_replicas(session->trace);
  int64_t streams = replicas * session->plan->n_streams, events = replicas * session->plan->n_events;
  int64_t all_streams = streams, all_events = events;
  if (has_lanes(session)) {
    all_streams += RT_N_LANES;
    all_events += (int64_t)session->n_handovers * RT_HANDOVER_EVENTS;
  }
  if (all_streams > INT32_MAX || all_events > INT32_MAX)
    return planc_error(PLANC_DEVICE, "more than 2^31 events or streams");
  session->n_streams = (int32_t)streams;
  session->n_events = (int32_t)events;
  out->n_streams = session->options.bare ? 1 : (int32_t)all_streams;
  out->n_events = session->options.bare ? 0 : (int32_t)all_events;
  return NULL;
}

/* A job's streams have its priority, the lanes none. */
static planc_status give_priorities(planrt_session *session, rt_device_options *out) {
  const planc_plan *plan = session->plan;
  int32_t *priorities;
  PLANC_TRY(PL_NEW(&session->loaded, &priorities, out->n_streams));
  for (int32_t s = 0; s < session->n_streams && s < out->n_streams; s++)
    priorities[s] = plan->jobs[plan->streams[s % plan->n_streams].job].priority;
  out->priorities = priorities;
  return NULL;
}

/* An arena of each replica, each at an aligned address. */
static planc_status repeat_arena(const planrt_session *session, int64_t *bytes) {
  int64_t before, replicas = planc_trace_replicas(session->trace);
  if (*bytes == 0) return NULL;
  if (pl_mul_overflow(pl_align_up(*bytes, RT_ALIGNMENT), replicas - 1, &before) ||
      pl_add_overflow(before, *bytes, bytes))
    return planc_error(PLANC_DEVICE, "the arenas of %lld replicas exceed 64 bits", (long long)replicas);
  return NULL;
}

/* Puts the arena of a GPU, and with virtual memory its range of addresses, behind those of the GPUs before. */
static planc_status add_part(const planc_plan *plan, int32_t gpu, planc_mapping *mappings, rt_device_options *out) {
  const planc_memory *memory = &plan->memories[gpu];
  for (int32_t k = 0; k < memory->n_mappings; k++) {
    mappings[out->n_mappings] = plan->mappings[memory->first_mapping + k];
    mappings[out->n_mappings++].first += out->arena_bytes / memory->chunk_bytes;
  }
  int64_t arena = pl_align_up(memory->arena_bytes, RT_ALIGNMENT);
  if (!pl_add_overflow(out->arena_bytes, arena, &out->arena_bytes)) return NULL;
  return planc_error(PLANC_DEVICE, "the arenas of all GPUs exceed 64 bits");
}

/* Each GPU is a part of the device: those of the first replica, then those of the next. */
static planc_status part_device(planrt_session *session, rt_device_options *out) {
  const planc_plan *plan = session->plan;
  int32_t gpus = planc_plan_gpus(plan), replicas = planc_trace_replicas(session->trace);
  int64_t n_mappings = (int64_t)replicas * plan->n_mappings;
  planc_mapping *mappings;
  if (count_parts(session) < 2) return NULL;
  if (!session->backend->parts)
    return planc_error(PLANC_DEVICE, "the plan is for %d GPUs, backend %s runs on one", count_parts(session),
                       session->backend->name);
  for (int32_t g = 1; g < gpus; g++)
    if (plan->memories[g].chunk_bytes != plan->memories[0].chunk_bytes)
      return planc_error(PLANC_DEVICE, "backend %s has no chunks of several sizes", session->backend->name);
  if (n_mappings > INT32_MAX) return planc_error(PLANC_DEVICE, "more than 2^31 mappings");
  PLANC_TRY(PL_NEW(&session->loaded, &mappings, n_mappings));
  out->mappings = mappings;
  out->arena_bytes = out->n_mappings = 0;
  for (int32_t r = 0; r < replicas; r++)
    for (int32_t g = 0; g < gpus; g++) PLANC_TRY(add_part(plan, g, mappings, out));
  PLANC_TRY(repeat_arena(session, &out->host_arena_bytes));
  return repeat_arena(session, &out->storage_bytes);
}

/* --- Making ------------------------------------------------------------------------------------------------------- */

/* Everything that takes memory of the device. */
static planc_status open_device(planrt_session *session, const rt_device_options *options) {
  PLANC_TRY(session->backend->open(options, &session->device));
  PLANC_TRY(session->backend->pin(session->device, session->user_memory, session->user_bytes));
  PLANC_TRY(rt_load(session));
  if (session->options.timeline > 0 && !session->spans) PLANC_TRY(make_spans(session));
  if (session->options.verify && !session->digests) PLANC_TRY(rt_digests_new(session));
  if (session->options.replay) PLANC_TRY(rt_capture(session));
  return check_taken(session);
}

/* A bare run has nothing but calls and copies, which make the same values again and again. */
static planc_status check_bare(const planrt_options *options) {
  bool more = options->verify || options->evaluate || options->replay || options->timeline > 0 || options->poison ||
              options->jitter;
  if (!options->bare || !more) return NULL;
  return planc_error(PLANC_USAGE,
                     "a bare run is neither verified, evaluated, captured, poisoned nor delayed, and has "
                     "no timeline");
}

/* What the plan was loaded to serves what has run until then. */
static planc_status take_device_again(planrt_session *session) {
  pl_arena_free(&session->loaded);
  planc_status status = take_device(session);
  if (status) rt_session_close_device(session);
  return status;
}

/* What the plan's memories ask of the backend. */
static planc_status check_memories(const planrt_session *session) {
  const planrt_backend *backend = session->backend;
  char text[PL_SIZE_TEXT];
  for (int32_t m = 0; m < session->plan->n_memories; m++) {
    const planc_memory *memory = &session->plan->memories[m];
    bool stored = memory->kind == PLANC_MEMORY_STORAGE && memory->arena_bytes > 0;
    if (stored && !backend->storage)
      return planc_error(PLANC_DEVICE, "backend %s has no storage, which the plan keeps data in", backend->name);
    if (stored && !session->options.storage_path)
      return planc_refusal(PLANC_USAGE, PLANC_REMEDY_STORAGE,
                           "the plan keeps %s in storage, and no directory is given for it",
                           pl_size_format(rt_arenas(session->plan, PLANC_MEMORY_STORAGE), text));
    if (memory->chunk_bytes > 0 && !backend->maps)
      return planc_error(PLANC_DEVICE, "backend %s has no virtual memory, which the plan places in", backend->name);
  }
  return NULL;
}

/* --- Running ------------------------------------------------------------------------------------------------------ */

bool planrt_can_run(const planrt_session *session) {
  return session->device != NULL || session->gave_up_device;
}

static planc_status run(planrt_session *session, int64_t periods, const uint64_t *seed) {
  if (!rt_jobs_can_run(session, periods))
    return planc_error(PLANC_USAGE, "%lld periods from %lld on", (long long)periods, (long long)session->step.period);
  if (session->options.bare && periods < 2)
    return planc_error(PLANC_USAGE, "a bare run times what comes after its first period: it takes two periods or more");
  if (!planrt_can_run(session)) return planc_error(PLANC_DEVICE, "the session has no device left");
  if (!session->device) PLANC_TRY(take_device_again(session));
  session->period_ns = 0;
  int64_t most = session->reference ? session->kept_periods : periods;
  int64_t left = periods, now, done;
  do {
    now = done = left < most ? left : most;
    if (session->reference) PLANC_TRY(rt_resident_load(session->reference, session));
    PLANC_TRY(seed ? rt_interleave(session, now, rt_mix(*seed + (uint64_t)(periods - left)), &done)
                   : rt_interpret(session, now, &done));
    if (session->reference) PLANC_TRY(rt_reference_compare(session, done));
    session->step.period += done;
    left -= done;
  } while (left > 0 && done == now && !rt_is_stopped(session->options.stop));
  return NULL;
}

planc_status planrt_run(planrt_session *session, int64_t periods) {
  return run(session, periods, NULL);
}

planc_status planrt_run_interleaved(planrt_session *session, int64_t periods, uint64_t seed) {
  if (session->options.concurrent)
    return planc_error(PLANC_USAGE, "a session with concurrent streams cannot choose their order");
  return run(session, periods, &seed);
}

planrt_step planrt_get_step(const planrt_session *session) {
  return session->step;
}
void planrt_set_step(planrt_session *session, planrt_step step) {
  session->step = step;
}
int64_t planrt_taken(const planrt_session *session) {
  return session->taken_bytes;
}
int64_t planrt_period(const planrt_session *session) {
  return session->period_ns;
}
void planrt_streams_of(const planrt_session *session, int32_t *out_streams, int32_t *out_told_apart) {
  const planrt_backend *backend = session->backend;
  const planrt_options *options = &session->options;
  int32_t lanes = has_lanes(session) ? RT_N_LANES : 0;
  *out_streams = options->concurrent && !options->bare ? session->n_streams + lanes : 1;
  *out_told_apart = backend->queues ? backend->queues() : *out_streams;
}
uint64_t planrt_seed(const planrt_session *session) {
  return session->options.seed;
}
const planc_check_report *planrt_report(const planrt_session *session) {
  return &session->report;
}
