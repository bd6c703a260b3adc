/* The inference pass of a job of a session: its forward ops, everything resident. */
#ifndef PLANRT_INFERENCE_H
#define PLANRT_INFERENCE_H

#include "runtime/session.h"

typedef struct rt_inference {
  const planc_job *training; /* the session's job that it is of */
  int32_t job;               /* its number */
  int64_t batch;             /* of an iteration of the training, all replicas */
  int64_t rounds[1];         /* of it at once */
  int64_t bytes;             /* of the device */
  planc_trace *trace;        /* of the pass alone, which is its job 0 */
  rt_choice *choices;
  rt_resident *resident; /* while it runs */
  /* Of the last softmax_xent: tensors and buffers of probabilities and labels, and the buffers' host copies. */
  int32_t probs, labels, probs_buffer, labels_buffer;
  char *probs_copy, *labels_copy;
  pl_arena memory; /* of these and the choices */
} rt_inference;

/* Makes the pass of a job, with what its first replica has trained, in parts of the whole batch that the plan's budget
 * has room for. It takes nothing of the device. To be freed after a failure too. */
planc_status rt_inference_make(const planrt_session *session, int32_t job, rt_inference *out);
void rt_inference_free(rt_inference *inference);

/* How the pass runs, and what the plan's budget has for its tensors. */
rt_resident_options rt_inference_options(const planrt_session *session, const rt_inference *inference);
int64_t rt_inference_room(const planrt_session *session);

#endif
