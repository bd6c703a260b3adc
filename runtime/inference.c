/* Evaluation: the forward ops of job 0 over held-out samples, everything resident. Between two runs all that persists
 * is at home, so the pass has the device to itself: the plan's memory is given up for it and taken again by the next
 * run. Samples do not depend on each other in an inference pass, so it takes as many at once as the budget has room
 * for. */
#include <stdlib.h>
#include <string.h>

#include "runtime/bf16.h"
#include "runtime/session.h"
#include "util/size.h"

struct planrt_inference {
  int64_t batch;     /* of an iteration of the training, all replicas */
  int64_t rounds[1]; /* of it at once */
  int64_t bytes;     /* of the device */
  planc_trace *trace;
  planrt_choice *choices;
  planrt_resident *resident; /* while it is evaluated */
  /* Of the last softmax_xent: tensors and buffers of probabilities and labels, and the buffers' host copies. */
  int32_t probs, labels, probs_buffer, labels_buffer;
  char *probs_copy, *labels_copy;
};

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

static planrt_resident_options options_of(const planrt_session *session) {
  const struct planrt_inference *inference = session->inference;
  return (planrt_resident_options){
      .backend = session->backend, .trace = inference->trace, .choices = inference->choices};
}

/* What the plan's budget has for tensors. */
static int64_t room_of(const planrt_session *session) {
  return session->plan->budget_bytes - session->plan->device.reserved_bytes;
}

/* The pass over so many samples at once. */
static planc_status take_at_once(planrt_session *session, int64_t samples) {
  struct planrt_inference *inference = session->inference;
  planc_job job = session->trace->jobs[0];
  planc_trace_free(inference->trace);
  inference->trace = NULL;
  job.batch = inference->rounds[0] = samples;
  job.replica = job.replicas = 0;
  job.n_rounds = 1;
  job.rounds = inference->rounds;
  job.iterations = 1;
  PLANC_TRY(planc_expand(&job, 1, &inference->trace));
  PLANC_TRY(PLANC_NEW(&session->memory, &inference->choices, inference->trace->n_instances));
  for (int32_t i = 0; i < inference->trace->n_instances; i++)
    if (planc_trace_op(inference->trace, i)->phase == PLANC_PHASE_forward) inference->choices[i].algorithm = "default";
  planrt_resident_options options = options_of(session);
  return planrt_resident_bytes(&options, &inference->bytes);
}

/* The largest equal parts of a batch for which there is room; single samples where there is for none. */
static planc_status choose_parts(planrt_session *session) {
  struct planrt_inference *inference = session->inference;
  const planc_job *job = &session->trace->jobs[0];
  inference->batch = planc_job_whole_batch(job);
  for (int64_t parts = 1;;) {
    PLANC_TRY(take_at_once(session, inference->batch / parts));
    if (inference->bytes <= room_of(session) || parts == inference->batch) return NULL;
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

/* Counts the positions of the first `samples` samples whose most probable class (the first of equals) is their label.
 */
static void count_correct(const struct planrt_inference *inference, int64_t samples, int64_t *positions,
                          int64_t *correct) {
  const planc_job *job = &inference->trace->jobs[0];
  const planc_tensor *tensor = &job->graph->tensors[inference->probs];
  const planc_tensor *label_tensor = &job->graph->tensors[inference->labels];
  const char *probs = inference->probs_copy + planc_law_at(tensor->offset, job->batch);
  const int64_t *labels = (const int64_t *)(inference->labels_copy + planc_law_at(label_tensor->offset, job->batch));
  bool channels_last = tensor->rank == 2 || job->graph->layout == PLANC_LAYOUT_NHWC;
  int64_t classes = planc_law_at(tensor->dims[channels_last ? tensor->rank - 1 : 1], job->batch);
  int64_t per_sample = planc_law_at(label_tensor->bytes, job->batch) / (int64_t)sizeof *labels / job->batch;
  int64_t class_stride = channels_last ? 1 : per_sample;
  for (int64_t i = 0; i < samples * per_sample; i++) {
    int64_t first = channels_last ? i * classes : i / per_sample * classes * per_sample + i % per_sample, best = 0;
    float highest = planrt_real_at(tensor->dtype, probs, first);
    for (int64_t c = 1; c < classes; c++) {
      float p = planrt_real_at(tensor->dtype, probs, first + c * class_stride);
      if (p > highest) {
        highest = p;
        best = c;
      }
    }
    *correct += best == labels[i];
    ++*positions;
  }
}

/* A feed that gives parts of its batches. */
typedef struct part_feed {
  planrt_feed feed;
  void *user;
  int64_t batch, first; /* the first sample of the part, from the feed's first on */
} part_feed;

static planc_status feed_part(void *user, const planrt_feed_request *request) {
  const part_feed *part = user;
  planrt_feed_request asked = *request;
  asked.iteration = part->first / part->batch;
  asked.offset = part->first % part->batch;
  return part->feed(part->user, &asked);
}

/* What the session's run has left is at home, and the pass is all that is on the device. */
static planc_status evaluate(planrt_session *session, planrt_feed feed, void *user, int64_t samples,
                             double *out_accuracy) {
  struct planrt_inference *inference = session->inference;
  int64_t batch = inference->trace->jobs[0].batch, positions = 0, correct = 0;
  planrt_launch launch = {.step = session->step, .seed = session->options.seed, .inference = true};
  planrt_resident_options options = options_of(session);
  PLANC_TRY(planc_context(planrt_resident_new(&options, &inference->resident), "inference"));
  PLANC_TRY(planrt_resident_load(inference->resident, session));
  for (int64_t done = 0; done < samples; done += batch) {
    part_feed part = {.feed = feed, .user = user, .batch = inference->batch, .first = done};
    launch.step.period = done / inference->batch;
    PLANC_TRY(planrt_resident_run(inference->resident, session, &launch, feed_part, &part, NULL, NULL));
    PLANC_TRY(planrt_resident_read(inference->resident, inference->probs_buffer, inference->probs_copy));
    PLANC_TRY(planrt_resident_read(inference->resident, inference->labels_buffer, inference->labels_copy));
    count_correct(inference, samples - done < batch ? samples - done : batch, &positions, &correct);
  }
  *out_accuracy = positions > 0 ? (double)correct / (double)positions : 0.0;
  return NULL;
}

planc_status planrt_evaluate(planrt_session *session, planrt_feed feed, void *user, int64_t samples,
                             double *out_accuracy) {
  struct planrt_inference *inference = session->inference;
  char needs[PLANC_SIZE_TEXT], room[PLANC_SIZE_TEXT];
  if (!inference) return planc_error(PLANC_USAGE, "the session was not made for evaluation");
  if (inference->probs < 0) return planc_error(PLANC_BAD_INPUT, "the graph has no softmax_xent to judge");
  if (inference->bytes > room_of(session))
    return planc_error(PLANC_INFEASIBLE,
                       "an inference pass over one sample takes %s, the plan's budget has room for %s",
                       planc_size_format(inference->bytes, needs), planc_size_format(room_of(session), room));
  planrt_session_give_up_device(session);
  planc_status status = evaluate(session, feed, user, samples, out_accuracy);
  planrt_resident_free(inference->resident);
  inference->resident = NULL;
  return status;
}
