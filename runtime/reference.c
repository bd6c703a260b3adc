/* Verification: the reference runs what the plan has run, and every bit that left the plan is compared. */
#include <stdio.h>
#include <string.h>

#include "runtime/bf16.h"
#include "runtime/session.h"
#include "util/math.h"
#include "util/real.h"

planc_status rt_digests_new(planrt_session *session) {
  int64_t count;
  if (pl_mul_overflow(session->kept_periods + 1, session->parts[RT_BODY].n, &count))
    return planc_error(PLANC_OUT_OF_MEMORY, "digests");
  PLANC_TRY(PL_NEW(&session->memory, &session->digests, count));
  return PL_NEW(&session->memory, &session->wanted_digests,
                (int64_t)planc_trace_replicas(session->trace) * session->trace->n_instances);
}

planc_status rt_reference_open(planrt_session *session) {
  /* As each instance's first run; recomputes come later in the body, and replicas choose alike. */
  rt_choice *choices;
  PLANC_TRY(PL_NEW(&session->loaded, &choices, session->trace->n_instances));
  const rt_part *body = &session->parts[RT_BODY];
  for (int32_t i = 0; i < body->n; i++) {
    const rt_call *call = body->actions[i].call;
    if (call && !choices[call->instance].algorithm)
      choices[call->instance] = (rt_choice){call->algorithm, call->workspace_bytes};
  }
  for (int32_t i = 0; i < session->trace->n_instances; i++)
    if (!choices[i].algorithm) choices[i].algorithm = "default";
  rt_resident_options options = {.backend = session->backend,
                                 .trace = session->trace,
                                 .choices = choices,
                                 .synthetic = session->options.synthetic,
                                 .deterministic = session->options.deterministic};
  return planc_context(rt_resident_new(&options, &session->reference), "reference");
}

static planc_status compare_digests(const planrt_session *session, int64_t period);
static planc_status compare_results(const planrt_session *session, int32_t replica, int64_t period);
static planc_status compare_homes(const planrt_session *session, int32_t replica, int64_t period);
static bool has_failed(const planrt_session *session, int32_t buffer);
static planc_status compare(const planrt_session *session, int32_t replica, int32_t buffer, const char *got,
                            int64_t period);

planc_status rt_reference_compare(planrt_session *session, int64_t periods) {
  int32_t replicas = planc_trace_replicas(session->trace);
  rt_launch launch = {.step = session->step, .ahead = session->ahead, .seed = session->options.seed};
  for (int32_t j = 0; j < session->trace->n_jobs; j++)
    if (rt_failures_has(&session->failures, j)) rt_resident_leave_out(session->reference, j);
  for (int64_t p = 0; p < periods; p++, launch.step.period++) {
    PLANC_TRY(planc_context(rt_resident_run(session->reference, session, &launch, session->feed, session->feed_user,
                                            NULL, session->wanted_digests),
                            "reference"));
    PLANC_TRY(compare_digests(session, launch.step.period));
    for (int32_t r = 0; r < replicas; r++) PLANC_TRY(compare_results(session, r, launch.step.period));
  }
  for (int32_t r = 0; r < replicas; r++) PLANC_TRY(compare_homes(session, r, launch.step.period - 1));
  return NULL;
}

/* Compares a replica's results of a period. */
static planc_status compare_results(const planrt_session *session, int32_t replica, int64_t period) {
  for (int32_t b = 0; b < session->trace->n_buffers; b++) {
    if (session->result_at[b] < 0 || has_failed(session, b)) continue;
    const char *result = rt_result_slot(session, period % session->kept_periods, replica, b);
    PLANC_TRY(compare(session, replica, b, result, period));
  }
  return NULL;
}

/* Compares what of a replica persists. */
static planc_status compare_homes(const planrt_session *session, int32_t replica, int64_t period) {
  for (int32_t b = 0; b < session->trace->n_buffers; b++) {
    const planc_buffer *buffer = &session->trace->buffers[b];
    if (!(buffer->flags & PLANC_BUFFER_PERSISTENT) || has_failed(session, b)) continue;
    PLANC_TRY(compare(session, replica, b, rt_home(session, replica, buffer->job, buffer->storage), period));
  }
  return NULL;
}

/* " replica 1," where there are several. */
typedef struct whose {
  char text[24];
} whose;
static whose whose_of(const planrt_session *session, int32_t replica) {
  whose out = {""};
  if (planc_trace_replicas(session->trace) > 1) snprintf(out.text, sizeof out.text, " replica %d,", replica);
  return out;
}

/* Compares `got`, which the plan made of a replica's buffer, with the reference's. */
static planc_status compare(const planrt_session *session, int32_t replica, int32_t buffer, const char *got,
                            int64_t period) {
  enum { FLOAT_DIGITS = 9 };
  const planc_trace *trace = session->trace;
  const planc_buffer *at = &trace->buffers[buffer];
  const planc_job *job = &trace->jobs[at->job];
  const char *want = session->staging;
  PLANC_TRY(rt_resident_read(session->reference, replica, buffer, session->staging));
  if (memcmp(got, want, (size_t)at->bytes) == 0) return NULL;

  int64_t byte = 0;
  while (got[byte] == want[byte]) byte++;
  char values[80] = "";
  planc_dtype dtype = job->graph->tensors[job->graph->storages[at->storage].tensor].dtype;
  if (rt_is_real(dtype)) {
    int64_t element = byte / planc_dtype_bytes(dtype);
    char is[PL_NUMBER_TEXT], should[PL_NUMBER_TEXT];
    pl_real_rounded((double)rt_real_at(dtype, got, element), FLOAT_DIGITS, is);
    pl_real_rounded((double)rt_real_at(dtype, want, element), FLOAT_DIGITS, should);
    snprintf(values, sizeof values, ": %s instead of %s", is, should);
  }
  int64_t iteration = rt_buffer_iteration(session, at, period);
  char where[64] = "";
  if (at->round >= 0) snprintf(where, sizeof where, " round %d,", at->round);
  return planc_error(PLANC_INVALID_PLAN, "iteration %lld,%s%s %s differs from the reference at byte %lld%s",
                     (long long)iteration, whose_of(session, replica).text, where,
                     planc_trace_buffer_name(trace, buffer), (long long)byte, values);
}

/* Compares what every op of a period has put out, recomputes included. */
static planc_status compare_digests(const planrt_session *session, int64_t period) {
  const rt_part *body = &session->parts[RT_BODY];
  const uint64_t *digests = session->digests + period % session->kept_periods * body->n;
  for (int32_t a = 0; a < body->n; a++) {
    const rt_call *call = body->actions[a].call;
    if (!call) continue;
    int64_t which = (int64_t)call->replica * session->trace->n_instances + call->instance;
    if (digests[a] == session->wanted_digests[which]) continue;
    const planc_instance *at = &session->trace->instances[call->instance];
    if (rt_failures_has(&session->failures, at->job)) continue;
    int64_t iteration = rt_first_iteration(session, at->job, period) + at->iteration;
    return planc_error(
        PLANC_INVALID_PLAN, "body[%d],%s iteration %lld: what op %s puts out differs from the reference's",
        body->actions[a].instr, whose_of(session, call->replica).text, (long long)iteration, call->op->name);
  }
  return NULL;
}

/* Whether a buffer is of a job that has failed: of that nothing is compared. */
static bool has_failed(const planrt_session *session, int32_t buffer) {
  return rt_failures_has(&session->failures, session->trace->buffers[buffer].job);
}
