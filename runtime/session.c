/* The session: everything a run needs, made once; runs; the user's own memory. */
#include "runtime/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/mapping.h"
#include "runtime/random.h"
#include "util/math.h"

static planc_status make_spans(planrt_session *session) {
  int64_t count;
  if (planc_mul_overflow(session->options.timeline, session->parts[PLANRT_BODY].n, &count))
    return planc_error(PLANC_OUT_OF_MEMORY, "timeline");
  return PLANC_NEW(&session->memory, &session->spans, count);
}

/* What context, libraries and code take on the device is charged to the plan; more would make a plan that fits fail. */
static planc_status check_taken(planrt_session *session) {
  int64_t reserved = session->plan->device.reserved_bytes;
  PLANC_TRY(session->backend->taken(session->device, &session->taken_bytes));
  if (session->taken_bytes <= reserved) return NULL;
  return planc_error(PLANC_DEVICE,
                     "%lld bytes of the device are taken beside the arena, and the plan reserves %lld: profile this "
                     "device, or end what else runs on it",
                     (long long)session->taken_bytes, (long long)reserved);
}

/* Behind the plan's streams and events those of the lanes. */
static planc_status add_lanes(const planrt_session *session, planrt_device_options *out) {
  int64_t events = out->n_events + (int64_t)session->n_handovers * PLANRT_HANDOVER_EVENTS;
  if (session->n_handovers == 0) return NULL;
  if (events > INT32_MAX || out->n_streams > INT32_MAX - PLANRT_N_LANES)
    return planc_error(PLANC_DEVICE, "more than 2^31 events or streams");
  out->n_events = (int32_t)events;
  out->n_streams += PLANRT_N_LANES;
  return NULL;
}

/* Each GPU of the plan is a part of the device: its arena, and with virtual memory its range of addresses. */
static planc_status part_device(planrt_session *session, planrt_device_options *out) {
  const planc_plan *plan = session->plan;
  int32_t n_chunks = 0;
  planc_mapping *mappings;
  if (plan->gpus > 1 && !session->backend->parts) {
    return planc_error(PLANC_DEVICE, "the plan is for %d GPUs, backend %s runs on one", plan->gpus,
                       session->backend->name);
  }
  bool mapped = plan->chunk_bytes > 0;
  int64_t arena = mapped ? plan->arena_bytes : planc_align_up(plan->arena_bytes, PLANRT_ALIGNMENT);
  session->gpu_bytes = mapped ? planc_plan_range(plan) : arena;
  if (plan->gpus < 2) return NULL;
  if (planc_mul_overflow(arena, plan->gpus, &out->arena_bytes) ||
      planc_mul_overflow(plan->n_mappings, plan->gpus, &arena) || arena > INT32_MAX)
    return planc_error(PLANC_DEVICE, "the arenas of %d GPUs exceed 64 bits", plan->gpus);
  PLANC_TRY(PLANC_NEW(&session->memory, &mappings, arena));
  for (int32_t g = 0; g < plan->gpus; g++) {
    for (int32_t k = 0; k < plan->n_mappings; k++) {
      mappings[n_chunks] = plan->mappings[k];
      mappings[n_chunks++].first += g * (plan->arena_bytes / plan->chunk_bytes);
    }
  }
  out->mappings = mappings;
  out->n_mappings = n_chunks;
  return NULL;
}

/* --- Making --------------------------------------------------------------------------------------------------- */

static planc_status build(planrt_session *session) {
  const planc_plan *plan = session->plan;
  if (!session->options.unchecked) {
    planc_check_options own = {.budget_bytes = -1, .host_budget_bytes = -1};
    PLANC_TRY(planc_check(plan, &own, &session->report));
  }
  PLANC_TRY(planc_expand(plan->jobs, plan->n_jobs, &session->trace));
  PLANC_TRY(planrt_user_open(session));
  PLANC_TRY(planc_mappings_check(plan));
  if (plan->chunk_bytes > 0 && !session->backend->maps) {
    return planc_error(PLANC_DEVICE, "backend %s has no virtual memory, which the plan places in",
                       session->backend->name);
  }
  planrt_device_options device = {.arena_bytes = plan->arena_bytes,
                                  .host_arena_bytes = plan->host_arena_bytes,
                                  .chunk_bytes = plan->chunk_bytes,
                                  .n_mappings = plan->n_mappings,
                                  .mappings = plan->mappings,
                                  .n_streams = plan->n_streams,
                                  .n_events = plan->n_events,
                                  .concurrent = session->options.concurrent,
                                  .synthetic = session->options.synthetic,
                                  .deterministic = session->options.deterministic,
                                  .link_bytes_per_s = session->options.link_bytes_per_s,
                                  .jitter = session->options.jitter};
  PLANC_TRY(add_lanes(session, &device));
  PLANC_TRY(part_device(session, &device));
  PLANC_TRY(session->backend->open(&device, &session->device));
  PLANC_TRY(session->backend->pin(session->device, session->user_memory, session->user_bytes));
  PLANC_TRY(planrt_load(session));
  if (session->options.timeline > 0) PLANC_TRY(make_spans(session));
  if (session->options.verify) PLANC_TRY(planrt_digests_new(session));
  if (session->options.replay) PLANC_TRY(planrt_capture(session));
  PLANC_TRY(check_taken(session));
  if (session->options.verify) PLANC_TRY(planrt_reference_open(session));
  return session->options.evaluate ? planrt_inference_open(session) : NULL;
}

planc_status planrt_session_new(const planc_plan *plan, const planrt_options *options, planrt_session **out) {
  planrt_session *session = calloc(1, sizeof *session);
  if (!session) return planc_error(PLANC_OUT_OF_MEMORY, "session");
  session->plan = plan;
  session->options = *options;
  session->options.deterministic |= options->verify;
  session->backend = options->backend ? options->backend : &planrt_host_backend;
  session->feed = options->feed ? options->feed : planrt_random_feed;
  session->feed_user = options->feed ? options->user : session;
  session->step.learning_rate = NAN;
  planc_status status = build(session);
  if (status)
    planrt_session_free(session);
  else
    *out = session;
  return status;
}

void planrt_session_park(planrt_session *session) {
  planrt_resident_free(session->reference);
  planrt_inference_free(session->inference);
  if (session->device) session->backend->close(session->device);
  session->reference = NULL;
  session->inference = NULL;
  session->device = NULL;
}

void planrt_session_free(planrt_session *session) {
  if (!session) return;
  planrt_session_park(session);
  planrt_user_close(session);
  planc_trace_free(session->trace);
  planc_arena_free(&session->memory);
  free(session);
}

/* --- Running -------------------------------------------------------------------------------------------------- */

static planc_status run(planrt_session *session, int64_t periods, const uint64_t *seed) {
  if (periods < 0 || session->step.period < 0 || session->step.period > INT64_MAX - periods)
    return planc_error(PLANC_USAGE, "%lld periods from %lld on", (long long)periods, (long long)session->step.period);
  if (!planrt_can_run(session)) return planc_error(PLANC_DEVICE, "the session has no device left");
  int64_t most = session->reference ? session->window : periods;
  int64_t left = periods, now, done;
  do {
    now = done = left < most ? left : most;
    if (session->reference) PLANC_TRY(planrt_resident_load(session->reference, session));
    PLANC_TRY(seed ? planrt_interleave(session, now, planrt_mix(*seed + (uint64_t)(periods - left)))
                   : planrt_interpret(session, now, &done));
    if (session->reference) PLANC_TRY(planrt_reference_compare(session, done));
    session->step.period += done;
    left -= done;
  } while (left > 0 && done == now);
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
void planrt_streams_of(const planrt_session *session, int32_t *out_streams, int32_t *out_told_apart) {
  const planrt_backend *backend = session->backend;
  int32_t lanes = session->n_handovers > 0 ? PLANRT_N_LANES : 0;
  *out_streams = session->options.concurrent ? session->plan->n_streams + lanes : 1;
  *out_told_apart = backend->queues ? backend->queues() : *out_streams;
}
uint64_t planrt_seed(const planrt_session *session) {
  return session->options.seed;
}
const planc_check_report *planrt_report(const planrt_session *session) {
  return &session->report;
}
