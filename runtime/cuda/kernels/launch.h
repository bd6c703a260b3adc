/* How kernels are launched: the step, which C sees too, and the launch itself. */
#ifndef PLANRT_CUDA_LAUNCH_H
#define PLANRT_CUDA_LAUNCH_H

#include <cuda_runtime_api.h>
#include <stdint.h>

/* What changes from one launch of an op to the next. */
typedef struct rt_cuda_step {
  double learning_rate; /* NaN: the op's own */
  int64_t period;
  uint64_t seed;
  int64_t ahead; /* by how much the job's iterations are ahead of its periods */
} rt_cuda_step;

/* The step of a launch. A captured launch finds it in device memory, which a replay rewrites before it begins. */
typedef struct rt_cuda_step_source {
  rt_cuda_step value;
  const rt_cuda_step *at; /* device memory; NULL: `value` holds */
} rt_cuda_step_source;

/* What is no call of a library. An emulation of the device brings its own. */
#if defined(__CUDACC__) && !defined(RT_LAUNCH)
/* Enqueues kernel(...); its cudaError_t is the expression's value. */
#define RT_LAUNCH(kernel, grid, block, shared, stream, ...) \
  (kernel<<<(grid), (block), (shared), (stream)>>>(__VA_ARGS__), cudaGetLastError())
/* Declares `name` as `count` elements in the block's shared memory. */
#define RT_SHARED(type, name, count) __shared__ type name[count]
/* Nanoseconds of the device's clock, to a uint64_t. */
#define RT_CLOCK(to) asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(to))
#endif

#endif
