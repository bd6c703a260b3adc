/* The inference pass of a session: the forward ops of job 0, everything resident. */
#ifndef PLANRT_INFERENCE_H
#define PLANRT_INFERENCE_H

#include "runtime/session.h"

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

/* How the pass runs, and what the plan's budget has for its tensors. */
planrt_resident_options planrt_inference_options(const planrt_session *session);
int64_t planrt_inference_room(const planrt_session *session);

#endif
