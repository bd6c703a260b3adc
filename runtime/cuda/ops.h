/* Ops that run on the backend's own kernels: one entry per op type, as runtime/host/host_kernels.h has them for the
 * host. Convolutions and matrix products are the libraries' (cudnn.h, cublaslt.h). */
#ifndef PLANRT_CUDA_OPS_H
#define PLANRT_CUDA_OPS_H

#include "graph/optypes.h"
#include "runtime/call.h"
#include "runtime/cuda/cuda_kernels.h"

typedef struct rt_cuda_launch {
  cudaStream_t stream;
  rt_cuda_step_source step;
  bool inference;    /* running statistics, no dropout */
  uint64_t *scratch; /* a word of device memory for stand-ins, which nothing but this stream uses */
} rt_cuda_launch;

typedef struct rt_cuda_op {
  /* Bytes of call->workspace that `run` touches, in shapes and dtypes alone; NULL: none. */
  int64_t (*workspace)(const rt_call *call);
  /* Enqueues the call; operands are device memory. Equal operands give equal bits wherever they lie. */
  cudaError_t (*run)(const rt_call *call, const rt_cuda_launch *launch);
} rt_cuda_op;

/* The entry for an op type; NULL when there is none. */
const rt_cuda_op *rt_cuda_op_find(pl_optype_id type);
extern const rt_cuda_op rt_cuda_accumulate; /* for the role ACCUMULATE */
extern const rt_cuda_op rt_cuda_synthetic;  /* the stand-in for any op; its workspace is what the call has */

/* Whether the kernels take the call's dtypes. */
bool rt_cuda_op_takes(const rt_cuda_op *op, const rt_call *call);

/* --- Beside ops --------------------------------------------------------------------------------------------------- */

/* y[n, k, ...] += b[k] over `outer` x `channels` x `inner` elements of `dtype`, for convolutions with a bias; channels
 * last: inner is 1. */
cudaError_t rt_cuda_add_bias(cudaStream_t stream, planc_dtype dtype, void *y, const void *bias, planc_dtype bias_dtype,
                             int64_t outer, int64_t channels, int64_t inner);
/* Digests, delays and the step: runtime/cuda/cuda_kernels.h. */

#endif
