/* A convolution as an operation graph of cuDNN's backend API. */
#ifndef PLANRT_CUDA_CUDNN_GRAPH_H
#define PLANRT_CUDA_CUDNN_GRAPH_H

#include "runtime/cuda/cuda.h"

/* Names of the operands in a variant pack. */
enum { RT_CUDNN_X = 1, RT_CUDNN_W, RT_CUDNN_Y, RT_CUDNN_OPERANDS = 3 };

/* The tensors of a convolution in whatever direction: image, filter, result, or their gradients. */
typedef struct rt_cudnn_operands {
  const rt_operand *x, *w, *y;
  const rt_operand *bias;   /* or NULL: added by a kernel of our own */
  const rt_operand *output; /* one of the three */
} rt_cudnn_operands;
/* False when the call is no convolution, or one that cuDNN cannot take: other dtypes, nothing in an operand. */
bool rt_cudnn_operands_of(const rt_call *call, rt_cudnn_operands *out);

/* Descriptors that are destroyed together, last first. */
typedef struct rt_cudnn_pile {
  cudnnBackendDescriptor_t *all;
  int32_t n, room;
} rt_cudnn_pile;
planc_status rt_cudnn_new(rt_cudnn_pile *pile, cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out);
planc_status rt_cudnn_set(cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                          cudnnBackendAttributeType_t type, int64_t count, const void *values);
/* `room` values at most; `out_count` may be NULL. */
planc_status rt_cudnn_get(cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                          cudnnBackendAttributeType_t type, int64_t room, void *out, int64_t *out_count);
planc_status rt_cudnn_finalize(cudnnBackendDescriptor_t descriptor, const char *what);
/* Destroys all but the first `keep`. */
void rt_cudnn_cut(rt_cudnn_pile *pile, int32_t keep);
void rt_cudnn_pile_free(rt_cudnn_pile *pile);

/* The call as an operation graph; `adds`: its output is added to. `handle` is NULL where the device is described only.
 */
planc_status rt_cudnn_graph_of(rt_cudnn_pile *pile, cudnnHandle_t handle, const rt_call *call, bool adds,
                               cudnnBackendDescriptor_t *out);

#endif
