/* A convolution as an operation graph of cuDNN's backend API. */
#ifndef PLANRT_CUDA_CUDNN_GRAPH_H
#define PLANRT_CUDA_CUDNN_GRAPH_H

#include "runtime/cuda/cuda.h"

/* Names of the operands in a variant pack. */
enum { PLANRT_CUDNN_X = 1, PLANRT_CUDNN_W, PLANRT_CUDNN_Y, PLANRT_CUDNN_OPERANDS = 3 };

/* The tensors of a convolution in whatever direction: image, filter, result, or their gradients. */
typedef struct planrt_cudnn_operands {
  const planrt_operand *x, *w, *y;
  const planrt_operand *bias;   /* or NULL: added by a kernel of our own */
  const planrt_operand *output; /* one of the three */
} planrt_cudnn_operands;
/* False when the call is no convolution, or one that cuDNN cannot take: other dtypes, nothing in an operand. */
bool planrt_cudnn_operands_of(const planrt_call *call, planrt_cudnn_operands *out);

/* Descriptors that are destroyed together, last first. */
typedef struct planrt_cudnn_pile {
  cudnnBackendDescriptor_t *all;
  int32_t n, room;
} planrt_cudnn_pile;
planc_status planrt_cudnn_new(planrt_cudnn_pile *pile, cudnnBackendDescriptorType_t type,
                              cudnnBackendDescriptor_t *out);
planc_status planrt_cudnn_set(cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                              cudnnBackendAttributeType_t type, int64_t count, const void *values);
/* `room` values at most; `out_count` may be NULL. */
planc_status planrt_cudnn_get(cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                              cudnnBackendAttributeType_t type, int64_t room, void *out, int64_t *out_count);
planc_status planrt_cudnn_finalize(cudnnBackendDescriptor_t descriptor, const char *what);
/* Destroys all but the first `keep`. */
void planrt_cudnn_cut(planrt_cudnn_pile *pile, int32_t keep);
void planrt_cudnn_pile_free(planrt_cudnn_pile *pile);

/* The call as an operation graph; `adds`: its output is added to. `handle` is NULL where the device is described only.
 */
planc_status planrt_cudnn_graph_of(planrt_cudnn_pile *pile, cudnnHandle_t handle, const planrt_call *call, bool adds,
                                   cudnnBackendDescriptor_t *out);

#endif
