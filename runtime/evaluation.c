/* Evaluation: the inference pass over held-out samples. Between two runs all that persists is at home, so the pass has
 * the device to itself: the plan's memory is given up for it and taken again by the next run. */
#include "runtime/bf16.h"
#include "runtime/inference.h"
#include "util/size.h"

static planc_status make_and_evaluate(planrt_session *session, int32_t job, planrt_feed feed, void *user,
                                      int64_t samples, rt_inference *inference, double *out_accuracy);
static planc_status evaluate(planrt_session *session, rt_inference *inference, planrt_feed feed, void *user,
                             int64_t samples, double *out_accuracy);

planc_status planrt_evaluate(planrt_session *session, int32_t job, planrt_feed feed, void *user, int64_t samples,
                             double *out_accuracy) {
  rt_inference inference;
  if (!session->options.evaluate) return planc_error(PLANC_USAGE, "the session was not made for evaluation");
  if (job < 0 || job >= session->trace->n_jobs) return planc_error(PLANC_USAGE, "there is no job %d", job);
  planc_status status = make_and_evaluate(session, job, feed, user, samples, &inference, out_accuracy);
  rt_inference_free(&inference);
  return status;
}

/* Makes the pass and runs it, where it has something to judge and room. */
static planc_status make_and_evaluate(planrt_session *session, int32_t job, planrt_feed feed, void *user,
                                      int64_t samples, rt_inference *inference, double *out_accuracy) {
  char needs[PL_SIZE_TEXT], room[PL_SIZE_TEXT];
  PLANC_TRY(planc_context(rt_inference_make(session, job, inference), "inference"));
  if (inference->probs < 0) return planc_error(PLANC_BAD_INPUT, "the graph has no softmax_xent to judge");
  if (inference->bytes > rt_inference_room(session))
    return planc_error(PLANC_INFEASIBLE,
                       "an inference pass over one sample takes %s, the plan's budget has room for %s",
                       pl_size_format(inference->bytes, needs), pl_size_format(rt_inference_room(session), room));
  rt_session_give_up_device(session);
  return evaluate(session, inference, feed, user, samples, out_accuracy);
}

/* Counts the positions of the first `samples` samples whose most probable class (the first of equals) is their label.
 */
static void count_correct(const rt_inference *inference, int64_t samples, int64_t *positions, int64_t *correct) {
  const planc_job *job = inference->trace->jobs; /* the only one */
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
    float highest = rt_real_at(tensor->dtype, probs, first);
    for (int64_t c = 1; c < classes; c++) {
      float p = rt_real_at(tensor->dtype, probs, first + c * class_stride);
      if (p > highest) {
        highest = p;
        best = c;
      }
    }
    *correct += best == labels[i];
    ++*positions;
  }
}

/* A feed that gives parts of its batches, and knows the job by the session's number. */
typedef struct part_feed {
  planrt_feed feed;
  void *user;
  int32_t job;
  int64_t batch, first; /* the first sample of the part, from the feed's first on */
} part_feed;

static planc_status feed_part(void *user, const planrt_feed_request *request) {
  const part_feed *part = user;
  planrt_feed_request asked = *request;
  asked.job = part->job;
  asked.iteration = part->first / part->batch;
  asked.offset = part->first % part->batch;
  return part->feed(part->user, &asked);
}

/* What the session's run has left is at home, and the pass is all that is on the device. */
static planc_status evaluate(planrt_session *session, rt_inference *inference, planrt_feed feed, void *user,
                             int64_t samples, double *out_accuracy) {
  int64_t batch = inference->rounds[0], positions = 0, correct = 0;
  rt_launch launch = {.step = session->step, .seed = session->options.seed, .inference = true};
  rt_resident_options options = rt_inference_options(session, inference);
  PLANC_TRY(planc_context(rt_resident_new(&options, &inference->resident), "inference"));
  PLANC_TRY(rt_resident_load(inference->resident, session));
  for (int64_t done = 0; done < samples; done += batch) {
    part_feed part = {.feed = feed, .user = user, .job = inference->job, .batch = inference->batch, .first = done};
    launch.step.period = done / inference->batch;
    PLANC_TRY(rt_resident_run(inference->resident, session, &launch, feed_part, &part, NULL, NULL));
    PLANC_TRY(rt_resident_read(inference->resident, 0, inference->probs_buffer, inference->probs_copy));
    PLANC_TRY(rt_resident_read(inference->resident, 0, inference->labels_buffer, inference->labels_copy));
    count_correct(inference, samples - done < batch ? samples - done : batch, &positions, &correct);
  }
  *out_accuracy = positions > 0 ? (double)correct / (double)positions : 0.0;
  return NULL;
}
