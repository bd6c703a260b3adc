/* Making the inference pass (inference.h). Samples do not depend on each other in it, so it takes as many at once as
 * the budget has room for. */
#include "runtime/inference.h"

#include <stdlib.h>
#include <string.h>

planrt_resident_options planrt_inference_options(const planrt_session *session) {
  const struct planrt_inference *inference = session->inference;
  return (planrt_resident_options){
      .backend = session->backend, .trace = inference->trace, .choices = inference->choices};
}

int64_t planrt_inference_room(const planrt_session *session) {
  const planc_memory *memory = planc_plan_memory(session->plan, PLANC_MEMORY_DEVICE);
  int64_t most = memory->budget_bytes >= 0 ? memory->budget_bytes : memory->bytes;
  return most >= 0 ? most - memory->reserved_bytes : INT64_MAX;
}

static planc_status find_classifier(planrt_session *session, struct planrt_inference *inference) {
  const planc_trace *trace = inference->trace;
  inference->probs = -1;
  for (int32_t i = 0; i < trace->n_instances; i++) {
    const planc_op *op = planc_trace_op(trace, i);
    if (trace->instances[i].role != PLANC_ROLE_OP || strcmp(op->type, "softmax_xent") != 0) continue;
    inference->labels = op->in[1];
    inference->probs = op->out[1];
    inference->labels_buffer = trace->accesses[planc_trace_access_of(trace, i, op->in[1])].buffer;
    inference->probs_buffer = trace->accesses[planc_trace_access_of(trace, i, op->out[1])].buffer;
  }
  if (inference->probs < 0) return NULL;
  PLANC_TRY(PLANC_NEW(&session->memory, &inference->probs_copy, trace->buffers[inference->probs_buffer].bytes));
  return PLANC_NEW(&session->memory, &inference->labels_copy, trace->buffers[inference->labels_buffer].bytes);
}

/* The pass over so many samples at once. */
static planc_status take_at_once(planrt_session *session, int64_t samples) {
  struct planrt_inference *inference = session->inference;
  planc_job job = session->trace->jobs[0];
  planc_trace_free(inference->trace);
  inference->trace = NULL;
  job.batch = inference->rounds[0] = samples;
  job.replicas = 0;
  job.n_rounds = 1;
  job.rounds = inference->rounds;
  job.iterations = 1;
  PLANC_TRY(planc_expand(&job, 1, &inference->trace));
  PLANC_TRY(PLANC_NEW(&session->memory, &inference->choices, inference->trace->n_instances));
  for (int32_t i = 0; i < inference->trace->n_instances; i++)
    if (planc_trace_op(inference->trace, i)->phase == PLANC_PHASE_forward) inference->choices[i].algorithm = "default";
  planrt_resident_options options = planrt_inference_options(session);
  return planrt_resident_bytes(&options, &inference->bytes);
}

/* The largest equal parts of a batch for which there is room; single samples where there is for none. */
static planc_status choose_parts(planrt_session *session) {
  struct planrt_inference *inference = session->inference;
  const planc_job *job = &session->trace->jobs[0];
  inference->batch = planc_job_whole_batch(job);
  for (int64_t parts = 1;;) {
    PLANC_TRY(take_at_once(session, inference->batch / parts));
    if (inference->bytes <= planrt_inference_room(session) || parts == inference->batch) return NULL;
    do parts++;
    while (inference->batch % parts != 0);
  }
}

planc_status planrt_inference_make(planrt_session *session) {
  struct planrt_inference *inference = calloc(1, sizeof *inference);
  if (!inference) return planc_error(PLANC_OUT_OF_MEMORY, "inference pass");
  session->inference = inference;
  PLANC_TRY(choose_parts(session));
  return find_classifier(session, inference);
}

void planrt_inference_free(struct planrt_inference *inference) {
  if (!inference) return;
  planrt_resident_free(inference->resident);
  planc_trace_free(inference->trace);
  free(inference);
}
