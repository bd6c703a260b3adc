/* The CUDA backend between its files. Each of them calls only those after it:
 *  - plugin.c is the door,
 *  - replay.c captures bodies and replays them,
 *  - device.c opens and closes the device,
 *  - work.c enqueues,
 *  - captured.c is what a captured body has of its own,
 *  - completions.c brings times and digests back,
 *  - pinned.c registers host memory,
 *  - cuda_prepare.c chooses how a call runs,
 *  - cudnn*.c and cublaslt.c are the libraries,
 *  - vmm.c maps chunks. */
#ifndef PLANRT_CUDA_CUDA_H
#define PLANRT_CUDA_CUDA_H

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <pthread.h>

#include "runtime/backend.h"
#include "runtime/cuda/ops.h"

/* --- Statuses ----------------------------------------------------------------------------------------------------- */

/* DEVICE (of the libraries OUT_OF_MEMORY where they lack memory), with the library's own words; where the device lacks
 * memory, with what it has free. */
planc_status rt_cuda_status(cudaError_t code, const char *what);
planc_status rt_cudnn_status(cudnnStatus_t code, const char *what);
planc_status rt_cublas_status(cublasStatus_t code, const char *what);

/* Puts an entry point of the driver, as of CUDA 10.2, into a pointer to a function. */
planc_status rt_cuda_driver(const char *name, void *out);

#define CUDA_TRY(call) PLANC_TRY(rt_cuda_status((call), #call))

/* --- Prepared calls ----------------------------------------------------------------------------------------------- */

typedef struct rt_cudnn rt_cudnn;           /* the library, for a device or one described by its properties */
typedef struct rt_cudnn_plan rt_cudnn_plan; /* a convolution ready to run */
typedef struct rt_cublas rt_cublas;
typedef struct rt_cublas_plan rt_cublas_plan; /* a matrix product ready to run */

/* What a call's handle points to: one of the three. */
typedef struct rt_cuda_prepared {
  int32_t job; /* of the call */
  const rt_cuda_op *op;
  rt_cudnn_plan *convolution;
  rt_cublas_plan *product;
  void *scratch; /* device memory of the call's own, or NULL */
  struct rt_cuda_prepared *next;
} rt_cuda_prepared;

/* --- vmm.c -------------------------------------------------------------------------------------------------------- */

typedef struct rt_cuda_range rt_cuda_range;
/* The arena in chunks, mapped as the options say. */
planc_status rt_cuda_range_open(const rt_device_options *options, rt_cuda_range **out);
char *rt_cuda_range_at(const rt_cuda_range *range, int64_t *out_bytes);
void rt_cuda_range_close(rt_cuda_range *range);

/* --- The device --------------------------------------------------------------------------------------------------- */

/* Something that comes back to the host when the device has got there: a span between two events, or a digest. */
typedef struct rt_completion {
  cudaEvent_t begin, end;
  rt_span *span;
  int32_t stream;   /* of the span */
  bool launch;      /* the span is a launch's, from which `stamps_ns` is taken */
  uint64_t *digest; /* where it goes; NULL: a span */
} rt_completion;

enum { RT_COMPLETIONS = 4096, RT_HOST_WORKS = 1024 };

/* Host work on its way: the user's, or what the backend itself does in host memory. A captured one stays. */
typedef struct rt_cuda_host_work {
  rt_device *device;
  rt_host_work work;
  void *user;
  const void *what;
  int64_t period; /* of captured work that of its next run */
  void *to;
  const void *from; /* NULL: poison */
  int64_t bytes;
  bool captured;
  struct rt_cuda_host_work *next; /* of the free ones, or of the captured ones */
} rt_cuda_host_work;

typedef struct rt_cuda_capture {
  bool recording;
  cudaGraphExec_t graph; /* NULL: none */
  cudaEvent_t fork;
  cudaEvent_t *joins; /* by stream */
  bool outside;       /* the other streams are behind the last replay */
  int32_t n_steps;
  rt_cuda_step *steps;     /* device memory that captured launches read, by job */
  int64_t next_period;     /* that captured host work counts on to */
  int32_t n_digests;       /* captured */
  uint64_t **digests;      /* where each goes */
  uint64_t *sums, *pinned; /* device memory; where the host finds them */
  int32_t digests_room;
  rt_cuda_host_work *host_works; /* captured */
} rt_cuda_capture;

struct rt_device {
  rt_device_options options;
  bool present; /* else described by its properties */
  int32_t arch; /* 90: sm_90 */
  char *arena, *host_arena;
  rt_cuda_range *range; /* whose addresses the arena has; NULL: the arena is one allocation */
  int64_t host_map_bytes;
  int32_t n_streams;
  cudaStream_t *streams;
  cudaEvent_t *events;
  int64_t *generations; /* by event, of its last record */
  bool *in_capture;     /* by event: recorded while capturing */
  rt_cudnn *cudnn;
  rt_cublas *cublas;
  rt_cuda_prepared *prepared;
  int32_t n_pinned, pinned_room;
  void **pinned;

  /* completions.c */
  rt_completion *completions; /* a ring */
  int64_t first, n_completions;
  uint64_t *sums, *sums_pinned; /* of the digests in the ring: device memory, and pinned */
  uint64_t *words;              /* device memory: one for the stand-ins of each stream */
  cudaEvent_t base;             /* the clock's: this event was recorded at base_ns */
  int64_t base_ns;
  int64_t *ended_ns; /* by stream: where its last span ended */
  int64_t stamps_ns; /* by how much a launch takes longer between two time stamps than among its like */
  bool idle;         /* nothing has been enqueued since the device was last synchronised */

  /* Host work: `user` is held while one runs, `lock` for what is below it. */
  pthread_mutex_t user, lock;
  pthread_cond_t returned; /* its clock is CLOCK_MONOTONIC */
  rt_cuda_host_work *works, *free_works;
  int32_t n_running;    /* host works that have begun */
  bool closing;         /* what has not begun is dropped */
  planc_status failure; /* of host work */
  uint64_t *draws;      /* jitter: by stream */

  rt_cuda_capture capture;
};

/* --- device.c ----------------------------------------------------------------------------------------------------- */

planc_status rt_cuda_info(rt_device_info *out);
int32_t rt_cuda_queues(void);
planc_status rt_cuda_open(const rt_device_options *options, rt_device **out);
void rt_cuda_close(rt_device *device);
planc_status rt_cuda_pin(rt_device *device, void *memory, int64_t bytes);
/* Pinned memory, zeroed, which `free` takes once the device's has been given back. */
planc_status rt_cuda_pinned_new(rt_device *device, int64_t bytes, uint64_t **out);
planc_status rt_cuda_memory(int64_t *out_total, int64_t *out_free);
planc_status rt_cuda_context_bytes(int64_t *out_bytes);
planc_status rt_cuda_taken(const rt_device *device, int64_t *out_bytes);

/* --- work.c ------------------------------------------------------------------------------------------------------- */

planc_status rt_cuda_run(rt_device *device, int32_t stream, const rt_call *call, const rt_launch *launch,
                         rt_span *span);
planc_status rt_cuda_copy(rt_device *device, int32_t stream, rt_direction direction, void *to, const void *from,
                          int64_t bytes, rt_span *span);
planc_status rt_cuda_host(rt_device *device, int32_t stream, rt_host_work work, void *user, const void *what,
                          int64_t period);
planc_status rt_cuda_digest_call(rt_device *device, int32_t stream, const rt_call *call, uint64_t *out);
planc_status rt_cuda_poison(rt_device *device, int32_t stream, void *to, int64_t bytes);
planc_status rt_cuda_record(rt_device *device, int32_t stream, int32_t event, int64_t generation);
planc_status rt_cuda_wait(rt_device *device, int32_t stream, int32_t event, int64_t generation);
bool rt_cuda_reached(const rt_device *device, int32_t event, int64_t generation);
void rt_cuda_forget(rt_device *device);
planc_status rt_cuda_synchronize(rt_device *device);
bool rt_cuda_drops(rt_device *device);
/* The device's stream for one of the plan's. */
static inline cudaStream_t rt_cuda_stream(const rt_device *device, int32_t stream) {
  return device->streams[device->options.concurrent ? stream : 0];
}
static inline uint64_t *rt_cuda_word(const rt_device *device, int32_t stream) {
  return &device->words[device->options.concurrent ? stream : 0];
}

/* --- completions.c ------------------------------------------------------------------------------------------------ */

planc_status rt_completions_open(rt_device *device);
void rt_completions_close(rt_device *device);
/* Finds `stamps_ns`, on a device that has nothing to do. */
planc_status rt_completions_measure(rt_device *device);
/* Between the two, work of a span is enqueued: a launch, or a copy. */
planc_status rt_span_begin(rt_device *device, int32_t stream, bool launch, rt_span *span);
planc_status rt_span_end(rt_device *device, int32_t stream);
/* Where a digest is to be summed up in device memory, then sent on its way to `out`. */
planc_status rt_digest_begin(rt_device *device, cudaStream_t stream, uint64_t *out, uint64_t **out_sum);
planc_status rt_digest_end(rt_device *device, cudaStream_t stream);
/* The one that was sent `back` before the last; NULL where it has been taken in. */
const rt_completion *rt_completion_before(const rt_device *device, int64_t back);
/* Waits for all of them and fills what they are for. */
planc_status rt_completions_drain(rt_device *device);

/* --- captured.c --------------------------------------------------------------------------------------------------- */

/* Everything that a capture of the calls prepared by now will need. To be closed after a failure too. */
planc_status rt_captured_open(rt_device *device);
void rt_captured_close(rt_device *device);
/* The other streams go on behind what the first has been given; the first behind what the others have been given. */
planc_status rt_captured_fork(rt_device *device);
planc_status rt_captured_join(rt_device *device);
/* Work outside a replay is about to be enqueued: puts the streams behind the last replay. */
planc_status rt_captured_leave(rt_device *device);
/* Where a digest that goes to `out` is summed up in device memory. */
uint64_t *rt_captured_digest(rt_device *device, uint64_t *out);
/* On the first stream: all sums become zero; all sums go to the host, where the last step takes them out. */
planc_status rt_captured_digests_clear(rt_device *device);
planc_status rt_captured_digests_send(rt_device *device);
void rt_captured_digests_deliver(const rt_device *device);

/* --- replay.c ----------------------------------------------------------------------------------------------------- */

planc_status rt_cuda_capture_begin(rt_device *device);
planc_status rt_cuda_capture_end(rt_device *device);
planc_status rt_cuda_replay(rt_device *device, const rt_launch *launch, int64_t period);

/* --- cuda_prepare.c ----------------------------------------------------------------------------------------------- */

planc_status rt_cuda_variants(rt_device *device, const rt_call *call, rt_variant *out, int32_t *out_count);
planc_status rt_cuda_workspace(rt_device *device, const rt_call *call, int64_t *out_bytes);
/* Whether rt_cuda_workspace takes long: for cuDNN's algorithms it builds a plan. */
bool rt_cuda_slow_workspace(const rt_device *device, const rt_call *call);
planc_status rt_cuda_prepare(rt_device *device, rt_call *call);
void rt_cuda_prepared_free(rt_device *device);
/* Enqueues a prepared call. */
planc_status rt_cuda_prepared_run(const rt_device *device, const rt_call *call, const rt_cuda_launch *launch);

/* --- cudnn.c ------------------------------------------------------------------------------------------------------ */

/* For the present device, or for the one that `properties`, cuDNN's own JSON, describes. */
planc_status rt_cudnn_open(const char *properties, rt_cudnn **out);
void rt_cudnn_close(rt_cudnn *cudnn);
int32_t rt_cudnn_arch(const rt_cudnn *cudnn);
/* cuDNN's JSON for the present device. Malloc'ed. */
planc_status rt_cudnn_properties(char **out);

typedef struct rt_cudnn_filter {
  bool deterministic; /* admit only engines without the non-determinism note */
} rt_cudnn_filter;

/* Every engine configuration that cuDNN's heuristics give for a convolution, with exact workspaces, in cuDNN's order;
 * as many as there is room for. */
planc_status rt_cudnn_variants(rt_cudnn *cudnn, const rt_cudnn_filter *filter, const rt_call *call, rt_variant *out,
                               int32_t room, int32_t *out_count);
/* Makes a convolution ready to run by the configuration that its algorithm names. DEVICE when the name is another
 * version's or architecture's, when cuDNN cannot build it, or when the call's workspace is too small. With `out` NULL
 * only the workspace is wanted. */
planc_status rt_cudnn_prepare(rt_cudnn *cudnn, const rt_cudnn_filter *filter, const rt_call *call, rt_cudnn_plan **out,
                              int64_t *out_workspace);
planc_status rt_cudnn_run(const rt_cudnn *cudnn, const rt_cudnn_plan *plan, const rt_call *call, cudaStream_t stream);
void rt_cudnn_plan_free(rt_cudnn_plan *plan);

/* --- cublaslt.c --------------------------------------------------------------------------------------------------- */

/* `present` false: only the variants can be asked for. */
planc_status rt_cublas_open(bool present, rt_cublas **out);
void rt_cublas_close(rt_cublas *cublas);
/* True for what is a matrix product (products.h). */
bool rt_cublas_takes(const rt_call *call);
enum { RT_MAX_PRODUCTS = 3 }; /* algorithms of a product */
/* None for a call that it does not take. */
void rt_cublas_variants(const rt_call *call, rt_variant *out, int32_t *out_count);
/* Whether a name is of those that algorithms have here, whichever call has it. */
bool rt_cublas_has(const char *algorithm);
/* -1 where the call has no such algorithm. */
int64_t rt_cublas_workspace(const rt_call *call, const char *algorithm);
planc_status rt_cublas_prepare(rt_cublas *cublas, const rt_call *call, rt_cublas_plan **out);
planc_status rt_cublas_run(const rt_cublas *cublas, const rt_cublas_plan *plan, const rt_call *call,
                           cudaStream_t stream);
void rt_cublas_plan_free(rt_cublas_plan *plan);

#endif
