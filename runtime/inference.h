/* The inference pass of a job of a session: its forward ops, everything resident. */
#ifndef PLANRT_INFERENCE_H
#define PLANRT_INFERENCE_H

#include "runtime/session.h"

struct rt_inference {
  const planc_job *training; /* the session's job that it is of */
  int32_t job;               /* its number */
  int64_t batch;             /* of an iteration of the training, all replicas */
  int64_t rounds[1];         /* of it at once */
  int64_t bytes;             /* of the device */
  planc_trace *trace;        /* of the pass alone, which is its job 0 */
  rt_choice *choices;
  rt_resident *resident; /* while it is evaluated */
  /* Of the last softmax_xent: tensors and buffers of probabilities and labels, and the buffers' host copies. */
  int32_t probs, labels, probs_buffer, labels_buffer;
  char *probs_copy, *labels_copy;
};

/* How the pass runs, and what the plan's budget has for its tensors. */
rt_resident_options rt_inference_options(const planrt_session *session, const struct rt_inference *inference);
int64_t rt_inference_room(const planrt_session *session);

#endif
