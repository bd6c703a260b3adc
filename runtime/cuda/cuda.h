/* The CUDA backend between its files: device.c opens, work.c enqueues, completions.c brings times and digests back,
 * replay.c captures, prepare.c chooses how a call runs, cudnn*.c and cublaslt.c are the libraries. */
#ifndef PLANRT_CUDA_CUDA_H
#define PLANRT_CUDA_CUDA_H

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <pthread.h>

#include "runtime/backend.h"
#include "runtime/cuda/ops.h"

/* --- Statuses ------------------------------------------------------------------------------------------------- */

/* DEVICE (of the libraries OUT_OF_MEMORY where they lack memory), with the library's own words; where the device lacks
 * memory, with what it has free. */
planc_status planrt_cuda_status(cudaError_t code, const char *what);
planc_status planrt_cudnn_status(cudnnStatus_t code, const char *what);
planc_status planrt_cublas_status(cublasStatus_t code, const char *what);

/* Puts an entry point of the driver, as of CUDA 10.2, into a pointer to a function. */
planc_status planrt_cuda_driver(const char *name, void *out);

#define CUDA_TRY(call) PLANC_TRY(planrt_cuda_status((call), #call))

/* --- Prepared calls ------------------------------------------------------------------------------------------- */

typedef struct planrt_cudnn planrt_cudnn;           /* the library, for a device or one described by its properties */
typedef struct planrt_cudnn_plan planrt_cudnn_plan; /* a convolution ready to run */
typedef struct planrt_cublas planrt_cublas;
typedef struct planrt_cublas_plan planrt_cublas_plan; /* a matrix product ready to run */

/* What a call's handle points to: one of the three. */
typedef struct planrt_cuda_prepared {
  const planrt_cuda_op *op;
  planrt_cudnn_plan *convolution;
  planrt_cublas_plan *product;
  void *scratch; /* device memory of the call's own, or NULL */
  struct planrt_cuda_prepared *next;
} planrt_cuda_prepared;

/* --- vmm.c ---------------------------------------------------------------------------------------------------- */

typedef struct planrt_cuda_range planrt_cuda_range;
/* The arena in chunks, mapped as the options say. */
planc_status planrt_cuda_range_open(const planrt_device_options *options, planrt_cuda_range **out);
char *planrt_cuda_range_at(const planrt_cuda_range *range, int64_t *out_bytes);
void planrt_cuda_range_close(planrt_cuda_range *range);

/* --- The device ----------------------------------------------------------------------------------------------- */

/* Something that comes back to the host when the device has got there: a span between two events, or a digest. */
typedef struct planrt_completion {
  cudaEvent_t begin, end;
  planrt_span *span;
  int32_t stream;   /* of the span */
  uint64_t *digest; /* where it goes; NULL: a span */
} planrt_completion;

enum { PLANRT_COMPLETIONS = 4096, PLANRT_HOST_WORKS = 1024 };

/* Host work on its way: the user's, or what the backend itself does in host memory. A captured one stays. */
typedef struct planrt_cuda_host_work {
  planrt_device *device;
  planrt_host_work work;
  void *user;
  const void *what;
  int64_t period; /* of captured work that of its next run */
  void *to;
  const void *from; /* NULL: poison */
  int64_t bytes;
  bool captured;
  struct planrt_cuda_host_work *next; /* of the free ones, or of the captured ones */
} planrt_cuda_host_work;

typedef struct planrt_cuda_capture {
  bool recording;
  cudaGraphExec_t graph; /* NULL: none */
  cudaEvent_t fork;
  cudaEvent_t *joins;      /* by stream */
  bool outside;            /* the other streams are behind the last replay */
  planrt_cuda_step *step;  /* device memory that captured launches read */
  int64_t next_period;     /* that captured host work counts on to */
  int32_t n_digests;       /* captured */
  uint64_t **digests;      /* where each goes */
  uint64_t *sums, *pinned; /* device memory; where the host finds them */
  int32_t digests_room;
  planrt_cuda_host_work *host_works; /* captured */
} planrt_cuda_capture;

struct planrt_device {
  planrt_device_options options;
  bool present; /* else described by its properties */
  int32_t arch; /* 90: sm_90 */
  char *arena, *host_arena;
  planrt_cuda_range *range; /* whose addresses the arena has; NULL: the arena is one allocation */
  int64_t host_map_bytes;
  int32_t n_streams;
  cudaStream_t *streams;
  cudaEvent_t *events;
  int64_t *generations; /* by event, of its last record */
  bool *in_capture;     /* by event: recorded while capturing */
  planrt_cudnn *cudnn;
  planrt_cublas *cublas;
  planrt_cuda_prepared *prepared;
  int32_t n_pinned, pinned_room;
  void **pinned;

  /* completions.c */
  planrt_completion *completions; /* a ring */
  int64_t first, n_completions;
  uint64_t *sums, *sums_pinned; /* of the digests in the ring: device memory, and pinned */
  uint64_t *words;              /* device memory: one for the stand-ins of each stream */
  cudaEvent_t base;             /* the clock's: this event was recorded at base_ns */
  int64_t base_ns;
  int64_t *ended_ns; /* by stream: where its last span ended */
  bool idle;         /* nothing has been enqueued since the device was last synchronised */

  /* Host work: `user` is held while one runs, `lock` for what is below it. */
  pthread_mutex_t user, lock;
  pthread_cond_t returned; /* its clock is CLOCK_MONOTONIC */
  planrt_cuda_host_work *works, *free_works;
  int32_t n_running;    /* host works that have begun */
  bool closing;         /* what has not begun is dropped */
  planc_status failure; /* of host work */
  uint64_t *draws;      /* jitter: by stream */

  planrt_cuda_capture capture;
};

/* --- device.c ------------------------------------------------------------------------------------------------- */

planc_status planrt_cuda_info(planrt_device_info *out);
int32_t planrt_cuda_queues(void);
planc_status planrt_cuda_open(const planrt_device_options *options, planrt_device **out);
void planrt_cuda_close(planrt_device *device);
planc_status planrt_cuda_pin(planrt_device *device, void *memory, int64_t bytes);
/* Pinned memory, zeroed, which `free` takes once the device's has been given back. */
planc_status planrt_cuda_pinned_new(planrt_device *device, int64_t bytes, uint64_t **out);
planc_status planrt_cuda_memory(int64_t *out_total, int64_t *out_free);
planc_status planrt_cuda_context_bytes(int64_t *out_bytes);
planc_status planrt_cuda_taken(const planrt_device *device, int64_t *out_bytes);

/* --- work.c --------------------------------------------------------------------------------------------------- */

planc_status planrt_cuda_run(planrt_device *device, int32_t stream, const planrt_call *call,
                             const planrt_launch *launch, planrt_span *span);
planc_status planrt_cuda_copy(planrt_device *device, int32_t stream, planrt_direction direction, void *to,
                              const void *from, int64_t bytes, planrt_span *span);
planc_status planrt_cuda_host(planrt_device *device, int32_t stream, planrt_host_work work, void *user,
                              const void *what, int64_t period);
planc_status planrt_cuda_digest_call(planrt_device *device, int32_t stream, const planrt_call *call, uint64_t *out);
planc_status planrt_cuda_poison(planrt_device *device, int32_t stream, void *to, int64_t bytes);
planc_status planrt_cuda_record(planrt_device *device, int32_t stream, int32_t event, int64_t generation);
planc_status planrt_cuda_wait(planrt_device *device, int32_t stream, int32_t event, int64_t generation);
bool planrt_cuda_reached(const planrt_device *device, int32_t event, int64_t generation);
void planrt_cuda_forget(planrt_device *device);
planc_status planrt_cuda_synchronize(planrt_device *device);
bool planrt_cuda_drops(planrt_device *device);
/* The device's stream for one of the plan's. */
static inline cudaStream_t planrt_cuda_stream(const planrt_device *device, int32_t stream) {
  return device->streams[device->options.concurrent ? stream : 0];
}
static inline uint64_t *planrt_cuda_word(const planrt_device *device, int32_t stream) {
  return &device->words[device->options.concurrent ? stream : 0];
}

/* --- completions.c -------------------------------------------------------------------------------------------- */

planc_status planrt_completions_open(planrt_device *device);
void planrt_completions_close(planrt_device *device);
/* Between the two, work of a span is enqueued. */
planc_status planrt_span_begin(planrt_device *device, int32_t stream, planrt_span *span);
planc_status planrt_span_end(planrt_device *device, int32_t stream);
/* Where a digest is to be summed up in device memory, then sent on its way to `out`. */
planc_status planrt_digest_begin(planrt_device *device, cudaStream_t stream, uint64_t *out, uint64_t **out_sum);
planc_status planrt_digest_end(planrt_device *device, cudaStream_t stream);
/* The one that was sent `back` before the last; NULL where it has been taken in. */
const planrt_completion *planrt_completion_before(const planrt_device *device, int64_t back);
/* Waits for all of them and fills what they are for. */
planc_status planrt_completions_drain(planrt_device *device);

/* --- replay.c ------------------------------------------------------------------------------------------------- */

planc_status planrt_cuda_capture_begin(planrt_device *device);
planc_status planrt_cuda_capture_end(planrt_device *device);
planc_status planrt_cuda_replay(planrt_device *device, const planrt_launch *launch, int64_t period);
/* Work outside a replay is about to be enqueued: puts the streams behind the last replay. */
planc_status planrt_cuda_leave_replay(planrt_device *device);
planc_status planrt_captured_digest(planrt_device *device, uint64_t *out, uint64_t **out_sum);
void planrt_captured_digests_deliver(const planrt_device *device);
void planrt_cuda_capture_free(planrt_device *device);

/* --- prepare.c ------------------------------------------------------------------------------------------------ */

planc_status planrt_cuda_variants(planrt_device *device, const planrt_call *call, planrt_variant *out,
                                  int32_t *out_count);
planc_status planrt_cuda_workspace(planrt_device *device, const planrt_call *call, int64_t *out_bytes);
/* cuDNN's, which has to build a plan. */
bool planrt_cuda_slow_workspace(const planrt_device *device, const planrt_call *call);
planc_status planrt_cuda_prepare(planrt_device *device, planrt_call *call);
void planrt_cuda_prepared_free(planrt_device *device);
/* Enqueues a prepared call. */
planc_status planrt_cuda_prepared_run(const planrt_device *device, const planrt_call *call,
                                      const planrt_cuda_launch *launch);

/* --- cudnn.c -------------------------------------------------------------------------------------------------- */

/* For the present device, or for the one that `properties`, cuDNN's own JSON, describes. */
planc_status planrt_cudnn_open(const char *properties, planrt_cudnn **out);
void planrt_cudnn_close(planrt_cudnn *cudnn);
int32_t planrt_cudnn_arch(const planrt_cudnn *cudnn);
/* cuDNN's JSON for the present device. Malloc'ed. */
planc_status planrt_cudnn_properties(char **out);

typedef struct planrt_cudnn_filter {
  bool deterministic; /* admit only engines without the non-determinism note */
} planrt_cudnn_filter;

/* Every engine configuration that cuDNN's heuristics give for a convolution, with exact workspaces, in cuDNN's order;
 * as many as there is room for. */
planc_status planrt_cudnn_variants(planrt_cudnn *cudnn, const planrt_cudnn_filter *filter, const planrt_call *call,
                                   planrt_variant *out, int32_t room, int32_t *out_count);
/* Makes a convolution ready to run by the configuration that its algorithm names. DEVICE when the name is another
 * version's or architecture's, when cuDNN cannot build it, or when the call's workspace is too small. With `out` NULL
 * only the workspace is wanted. */
planc_status planrt_cudnn_prepare(planrt_cudnn *cudnn, const planrt_cudnn_filter *filter, const planrt_call *call,
                                  planrt_cudnn_plan **out, int64_t *out_workspace);
planc_status planrt_cudnn_run(const planrt_cudnn *cudnn, const planrt_cudnn_plan *plan, const planrt_call *call,
                              cudaStream_t stream);
void planrt_cudnn_plan_free(planrt_cudnn_plan *plan);

/* --- cublaslt.c ----------------------------------------------------------------------------------------------- */

/* `present` false: only the variants can be asked for. */
planc_status planrt_cublas_open(bool present, planrt_cublas **out);
void planrt_cublas_close(planrt_cublas *cublas);
/* True for linear ops, batched products and their gradients. */
bool planrt_cublas_takes(const planrt_call *call);
void planrt_cublas_variants(const planrt_call *call, planrt_variant *out, int32_t *out_count);
planc_status planrt_cublas_prepare(planrt_cublas *cublas, const planrt_call *call, planrt_cublas_plan **out);
planc_status planrt_cublas_run(const planrt_cublas *cublas, const planrt_cublas_plan *plan, const planrt_call *call,
                               cudaStream_t stream);
void planrt_cublas_plan_free(planrt_cublas_plan *plan);

#endif
