/* Making the inference pass (inference.h). Samples do not depend on each other in it, so it takes as many at once as
 * the budget has room for. */
#include "runtime/inference.h"

#include "graph/optypes.h"

rt_resident_options rt_inference_options(const planrt_session *session, const rt_inference *inference) {
  return (rt_resident_options){.backend = session->backend,
                               .trace = inference->trace,
                               .first_job = inference->job,
                               .choices = inference->choices};
}

int64_t rt_inference_room(const planrt_session *session) {
  const planc_memory *memory = planc_plan_memory(session->plan, PLANC_MEMORY_DEVICE);
  int64_t most = memory->budget_bytes >= 0 ? memory->budget_bytes : memory->bytes;
  return most >= 0 ? most - memory->reserved_bytes : INT64_MAX;
}

static planc_status choose_parts(const planrt_session *session, rt_inference *inference);
static planc_status find_classifier(rt_inference *inference);

planc_status rt_inference_make(const planrt_session *session, int32_t job, rt_inference *out) {
  *out = (rt_inference){.training = &session->trace->jobs[job], .job = job};
  PLANC_TRY(choose_parts(session, out));
  return find_classifier(out);
}

void rt_inference_free(rt_inference *inference) {
  rt_resident_free(inference->resident);
  planc_trace_free(inference->trace);
  pl_arena_free(&inference->memory);
}

static planc_status find_classifier(rt_inference *inference) {
  const planc_trace *trace = inference->trace;
  inference->probs = -1;
  for (int32_t i = 0; i < trace->n_instances; i++) {
    const planc_op *op = planc_trace_op(trace, i);
    if (trace->instances[i].role != PLANC_ROLE_OP || pl_optype_of(op) != PL_OPTYPE_softmax_xent) continue;
    inference->labels = op->in[1];
    inference->probs = op->out[1];
    inference->labels_buffer = trace->accesses[planc_trace_access_of(trace, i, op->in[1])].buffer;
    inference->probs_buffer = trace->accesses[planc_trace_access_of(trace, i, op->out[1])].buffer;
  }
  if (inference->probs < 0) return NULL;
  PLANC_TRY(PL_NEW(&inference->memory, &inference->probs_copy, trace->buffers[inference->probs_buffer].bytes));
  return PL_NEW(&inference->memory, &inference->labels_copy, trace->buffers[inference->labels_buffer].bytes);
}

/* The pass over so many samples at once. */
static planc_status take_at_once(const planrt_session *session, rt_inference *inference, int64_t samples) {
  planc_job job = *inference->training;
  planc_trace_free(inference->trace);
  inference->trace = NULL;
  job.batch = inference->rounds[0] = samples;
  job.replicas = 0;
  job.n_rounds = 1;
  job.rounds = inference->rounds;
  job.iterations = 1;
  PLANC_TRY(planc_expand(&job, 1, &inference->trace));
  PLANC_TRY(PL_NEW(&inference->memory, &inference->choices, inference->trace->n_instances));
  for (int32_t i = 0; i < inference->trace->n_instances; i++)
    if (planc_trace_op(inference->trace, i)->phase == PLANC_PHASE_forward) inference->choices[i].algorithm = "default";
  rt_resident_options options = rt_inference_options(session, inference);
  return rt_resident_bytes(&options, &inference->bytes);
}

/* The largest equal parts of a batch for which there is room; single samples where there is for none. */
static planc_status choose_parts(const planrt_session *session, rt_inference *inference) {
  inference->batch = planc_job_whole_batch(inference->training);
  for (int64_t parts = 1;;) {
    PLANC_TRY(take_at_once(session, inference, inference->batch / parts));
    if (inference->bytes <= rt_inference_room(session) || parts == inference->batch) return NULL;
    do parts++;
    while (inference->batch % parts != 0);
  }
}
