/* Verification: the reference runs what the plan has run, and every bit that left the plan is compared. */
#include <stdio.h>
#include <string.h>

#include "runtime/session.h"

planc_status planrt_reference_open(planrt_session *session) {
  /* As each instance's first run; recomputes come later in the body. */
  planrt_choice *choices;
  PLANC_TRY(PLANC_NEW(&session->memory, &choices, session->trace->n_instances));
  const planrt_part *body = &session->parts[PLANRT_BODY];
  for (int32_t i = 0; i < body->n; i++) {
    const planrt_call *call = body->actions[i].call;
    if (call && !choices[call->instance].algorithm)
      choices[call->instance] = (planrt_choice){call->algorithm, call->workspace_bytes};
  }
  for (int32_t i = 0; i < session->trace->n_instances; i++)
    if (!choices[i].algorithm) choices[i].algorithm = "default";
  planrt_resident_options options = {.backend = session->backend,
                                     .trace = session->trace,
                                     .choices = choices,
                                     .synthetic = session->options.synthetic};
  return planc_context(planrt_resident_new(&options, &session->reference), "reference");
}

/* Compares `got`, which the plan made of a buffer, with the reference's. */
static planc_status compare(const planrt_session *session, int32_t buffer, const char *got, int64_t period) {
  const planc_trace *trace = session->trace;
  const planc_buffer *at = &trace->buffers[buffer];
  const planc_job *job = &trace->jobs[at->job];
  const char *want = session->staging;
  PLANC_TRY(planrt_resident_read(session->reference, buffer, session->staging));
  if (memcmp(got, want, (size_t)at->bytes) == 0) return NULL;

  int64_t byte = 0;
  while (got[byte] == want[byte]) byte++;
  char values[80] = "";
  if (job->graph->tensors[job->graph->storages[at->storage].tensor].dtype == PLANC_DTYPE_f32) {
    float ours, theirs;
    memcpy(&ours, got + byte / 4 * 4, sizeof ours);
    memcpy(&theirs, want + byte / 4 * 4, sizeof theirs);
    snprintf(values, sizeof values, ": %.9g instead of %.9g", (double)ours, (double)theirs);
  }
  int64_t iteration = period * job->iterations + (at->iteration < 0 ? 0 : at->iteration);
  char where[64] = "";
  if (at->round >= 0) snprintf(where, sizeof where, " round %d,", at->round);
  return planc_error(PLANC_INVALID_PLAN, "iteration %lld,%s %s differs from the reference at byte %lld%s",
                     (long long)iteration, where, planc_trace_buffer_name(trace, buffer), (long long)byte, values);
}

planc_status planrt_reference_compare(planrt_session *session, int64_t periods) {
  const planc_trace *trace = session->trace;
  planrt_launch launch = {.step = session->step, .seed = session->options.seed};
  for (int64_t p = 0; p < periods; p++, launch.step.period++) {
    PLANC_TRY(planc_context(
        planrt_resident_run(session->reference, session, &launch, session->feed, session->feed_user, NULL),
        "reference"));
    const char *results = session->results + launch.step.period % session->window * session->result_bytes;
    for (int32_t b = 0; b < trace->n_buffers; b++)
      if (session->result_at[b] >= 0)
        PLANC_TRY(compare(session, b, results + session->result_at[b], launch.step.period));
  }
  for (int32_t b = 0; b < trace->n_buffers; b++)
    if (trace->buffers[b].flags & PLANC_BUFFER_PERSISTENT)
      PLANC_TRY(compare(session, b, planrt_home(session, &trace->buffers[b]), launch.step.period - 1));
  return NULL;
}
