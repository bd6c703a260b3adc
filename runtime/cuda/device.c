/* Opening and closing a device: everything it will need is allocated here or when calls are prepared. */
#define _GNU_SOURCE /* MAP_ANONYMOUS, MADV_POPULATE_WRITE */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/cuda/cuda.h"
#include "util/math.h"

static planc_status find_device(void);
static planc_status check_cudnn(void);

planc_status rt_cuda_info(rt_device_info *out) {
  struct cudaDeviceProp properties;
  int driver = 0, runtime = 0;
  size_t cudnn = cudnnGetVersion(), blas = cublasLtGetVersion();
  PLANC_TRY(check_cudnn());
  PLANC_TRY(find_device());
  CUDA_TRY(cudaGetDeviceProperties(&properties, 0));
  CUDA_TRY(cudaDriverGetVersion(&driver));
  CUDA_TRY(cudaRuntimeGetVersion(&runtime));
  *out = (rt_device_info){.dtypes = "f32, bf16",
                          .memory_bytes = (int64_t)properties.totalGlobalMem,
                          .cache_bytes = properties.l2CacheSize,
                          .processors = properties.multiProcessorCount};
  snprintf(out->device, sizeof out->device, "%.120s", properties.name);
  snprintf(out->versions, sizeof out->versions,
           "sm_%d%d, CUDA %d.%d (driver %d.%d), cuDNN %zu.%zu.%zu, cuBLASLt %zu.%zu.%zu", properties.major,
           properties.minor, runtime / 1000, runtime % 1000 / 10, driver / 1000, driver % 1000 / 10, cudnn / 10000,
           cudnn / 100 % 100, cudnn % 100, blas / 10000, blas / 100 % 100, blas % 100);
  return NULL;
}

/* The connections of the CUDA C++ Programming Guide, "CUDA Environment Variables". */
int32_t rt_cuda_queues(void) {
  enum { LEAST = 1, DEFAULT = 8, MOST = 32 };
  const char *text = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  long given = text ? strtol(text, NULL, 10) : 0;
  return given < LEAST ? DEFAULT : given > MOST ? MOST : (int32_t)given;
}

/* --- What there is ------------------------------------------------------------------------------------------------ */

static planc_status find_device(void) {
  int driver = 0, devices = 0, runtime = 0;
  CUDA_TRY(cudaRuntimeGetVersion(&runtime));
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
    return planc_error(PLANC_DEVICE, "no NVIDIA driver; CUDA %d.%d needs one", runtime / 1000, runtime % 1000 / 10);
  cudaError_t code = cudaGetDeviceCount(&devices);
  if (code == cudaErrorInsufficientDriver)
    return planc_error(PLANC_DEVICE, "the NVIDIA driver is made for CUDA %d.%d, and this plug-in for %d.%d",
                       driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
  if (code == cudaErrorNoDevice || (code == cudaSuccess && devices == 0))
    return planc_error(PLANC_DEVICE, "an NVIDIA driver, but no device");
  return rt_cuda_status(code, "cudaGetDeviceCount");
}

/* cuDNN has one name for all releases of CUDA, and its packages stand in one place: it may be another's. */
static planc_status check_cudnn(void) {
  int runtime = 0;
  size_t made_for = cudnnGetCudartVersion();
  CUDA_TRY(cudaRuntimeGetVersion(&runtime));
  if ((int)made_for / 1000 == runtime / 1000) return NULL;
  return planc_error(PLANC_DEVICE, "cuDNN is made for CUDA %zu.%zu, and this plug-in for %d.%d", made_for / 1000,
                     made_for % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
}

/* --- Memory ------------------------------------------------------------------------------------------------------- */

planc_status rt_cuda_memory(int64_t *out_total, int64_t *out_free) {
  size_t free_bytes, total;
  PLANC_TRY(find_device());
  CUDA_TRY(cudaSetDevice(0));
  CUDA_TRY(cudaMemGetInfo(&free_bytes, &total));
  *out_total = (int64_t)total;
  *out_free = (int64_t)free_bytes;
  return NULL;
}

/* By making another one for a moment. */
planc_status rt_cuda_context_bytes(int64_t *out_bytes) {
  CUresult(CUDAAPI * create)(CUcontext *, unsigned, CUdevice) = NULL;
  CUresult(CUDAAPI * destroy)(CUcontext) = NULL;
  int64_t total, before;
  CUcontext context;
  PLANC_TRY(rt_cuda_driver("cuCtxCreate", (void *)&create));
  PLANC_TRY(rt_cuda_driver("cuCtxDestroy", (void *)&destroy));
  PLANC_TRY(rt_cuda_memory(&total, &before));
  if (!create || !destroy || create(&context, 0, 0) != CUDA_SUCCESS)
    return planc_error(PLANC_DEVICE, "CUDA: no context can be made");
  size_t left = 0, all;
  cudaError_t code = cudaMemGetInfo(&left, &all);
  if (destroy(context) != CUDA_SUCCESS) return planc_error(PLANC_DEVICE, "CUDA: a context cannot be given back");
  *out_bytes = before > (int64_t)left ? before - (int64_t)left : 0;
  return rt_cuda_status(code, "cudaMemGetInfo");
}

planc_status rt_cuda_taken(const rt_device *device, int64_t *out_bytes) {
  size_t free_bytes, total;
  CUDA_TRY(cudaMemGetInfo(&free_bytes, &total));
  *out_bytes = (int64_t)(total - free_bytes) - device->options.arena_bytes;
  return NULL;
}

/* --- Opening ------------------------------------------------------------------------------------------------------ */

static planc_status open_present(rt_device *device);
static planc_status read_arch(int32_t *out);
static planc_status open_streams(rt_device *device);
static planc_status open_host_works(rt_device *device);
static planc_status warm(rt_device *device);
static planc_status open_described(rt_device *device);
static void init_condition(pthread_cond_t *condition);
static planc_status open_arena(rt_device *device);
static planc_status open_host_arena(rt_device *device);

planc_status rt_cuda_open(const rt_device_options *options, rt_device **out) {
  *out = NULL;
  if (options->link_bytes_per_s > 0)
    return planc_error(PLANC_USAGE, "backend cuda: the link of a real device cannot be paced");
  rt_device *device = calloc(1, sizeof *device);
  if (!device) return planc_error(PLANC_OUT_OF_MEMORY, "CUDA device");
  device->options = *options;
  pthread_mutex_init(&device->user, NULL);
  pthread_mutex_init(&device->lock, NULL);
  init_condition(&device->returned);
  planc_status status = options->properties ? open_described(device) : open_present(device);
  if (status)
    rt_cuda_close(device);
  else
    *out = device;
  return planc_context(status, "backend cuda");
}

static planc_status open_present(rt_device *device) {
  PLANC_TRY(find_device());
  CUDA_TRY(cudaSetDevice(0));
  PLANC_TRY(read_arch(&device->arch));
  device->present = true;
  PLANC_TRY(open_streams(device));
  PLANC_TRY(open_host_works(device));
  PLANC_TRY(rt_completions_open(device));
  PLANC_TRY(open_host_arena(device));
  PLANC_TRY(open_arena(device));
  PLANC_TRY(rt_cudnn_open(NULL, &device->cudnn));
  PLANC_TRY(rt_cublas_open(true, &device->cublas));
  PLANC_TRY(warm(device));
  return device->options.timed ? rt_completions_measure(device) : NULL;
}

static planc_status read_arch(int32_t *out) {
  int major = 0, minor = 0;
  CUDA_TRY(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  CUDA_TRY(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0));
  *out = major * 10 + minor;
  return NULL;
}

static planc_status allocate(void *out, int64_t count, size_t size) {
  void *memory = calloc(count > 0 ? (size_t)count : 1, size);
  memcpy(out, &memory, sizeof memory);
  return memory ? NULL : planc_error(PLANC_OUT_OF_MEMORY, "CUDA device");
}

static planc_status open_streams(rt_device *device) {
  const rt_device_options *options = &device->options;
  int least, greatest; /* of CUDA's priorities: the least is the largest number */
  device->n_streams = options->concurrent && options->n_streams > 1 ? options->n_streams : 1;
  PLANC_TRY(allocate(&device->streams, device->n_streams, sizeof *device->streams));
  PLANC_TRY(allocate(&device->draws, options->n_streams, sizeof *device->draws));
  PLANC_TRY(allocate(&device->events, options->n_events, sizeof *device->events));
  PLANC_TRY(allocate(&device->generations, options->n_events, sizeof *device->generations));
  PLANC_TRY(allocate(&device->in_capture, options->n_events, sizeof *device->in_capture));
  CUDA_TRY(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  for (int32_t s = 0; s < device->n_streams; s++) {
    int of = least - (options->priorities ? options->priorities[s] : 0);
    CUDA_TRY(cudaStreamCreateWithPriority(&device->streams[s], cudaStreamNonBlocking, of < greatest ? greatest : of));
  }
  device->options.priorities = NULL;
  CUDA_TRY(cudaMalloc((void **)&device->words, (size_t)device->n_streams * sizeof *device->words));
  for (int32_t e = 0; e < options->n_events; e++)
    CUDA_TRY(cudaEventCreateWithFlags(&device->events[e], cudaEventDisableTiming));
  rt_cuda_forget(device);
  return NULL;
}

static planc_status open_host_works(rt_device *device) {
  PLANC_TRY(allocate(&device->works, RT_HOST_WORKS, sizeof *device->works));
  for (int32_t i = RT_HOST_WORKS; i-- > 0;) {
    device->works[i].device = device;
    device->works[i].next = device->free_works;
    device->free_works = &device->works[i];
  }
  return NULL;
}

/* Code that no call is prepared with is loaded now, not in a run. */
static planc_status warm(rt_device *device) {
  cudaStream_t stream = device->streams[0];
  const rt_cuda_step nothing = {0};
  rt_cuda_step *step;
  CUDA_TRY(cudaMalloc((void **)&step, sizeof *step));
  cudaError_t code = rt_cuda_set_step(stream, step, &nothing);
  if (code == cudaSuccess) code = rt_cuda_digest(stream, 0, step, sizeof *step, device->words);
  if (code == cudaSuccess) code = rt_cuda_delay(stream, 1);
  if (code == cudaSuccess) code = cudaStreamSynchronize(stream);
  cudaFree(step);
  return rt_cuda_status(code, "kernels");
}

static planc_status open_described(rt_device *device) {
  if (device->options.arena_bytes > 0 || device->options.host_arena_bytes > 0)
    return planc_error(PLANC_USAGE, "a device that is described has no memory");
  PLANC_TRY(rt_cudnn_open(device->options.properties, &device->cudnn));
  device->options.properties = NULL; /* which the caller may free */
  device->arch = rt_cudnn_arch(device->cudnn);
  return rt_cublas_open(false, &device->cublas);
}

/* Deadlines are of a clock that nobody sets. */
static void init_condition(pthread_cond_t *condition) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(condition, &attributes);
  pthread_condattr_destroy(&attributes);
}

/* --- Arenas ------------------------------------------------------------------------------------------------------- */

static void populate(char *at, int64_t bytes);
static void *populate_slice(void *argument);

/* One allocation, or chunks of it mapped to a range of addresses. */
static planc_status open_arena(rt_device *device) {
  int64_t bytes = device->options.arena_bytes;
  if (bytes == 0) return NULL;
  if (device->options.chunk_bytes > 0) {
    PLANC_TRY(rt_cuda_range_open(&device->options, &device->range));
    device->arena = rt_cuda_range_at(device->range, &bytes);
  } else {
    PLANC_TRY(planc_context(rt_cuda_status(cudaMalloc((void **)&device->arena, (size_t)bytes), "cudaMalloc"),
                            "arena of %lld bytes", (long long)bytes));
  }
  /* Prepared calls run once on whatever is here: numbers, and nothing that is not. */
  CUDA_TRY(cudaMemsetAsync(device->arena, 0, (size_t)bytes, device->streams[0]));
  return rt_cuda_status(cudaStreamSynchronize(device->streams[0]), "arena");
}

/* Exactly so many bytes, pinned once. */
static planc_status open_host_arena(rt_device *device) {
  int64_t bytes = device->options.host_arena_bytes;
  if (bytes == 0) return NULL;
  if (bytes > INT64_MAX - sysconf(_SC_PAGESIZE)) return planc_error(PLANC_DEVICE, "host memory beyond 2^63 bytes");
  device->host_map_bytes = pl_align_up(bytes, sysconf(_SC_PAGESIZE));
  void *map = mmap(NULL, (size_t)device->host_map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return planc_error(PLANC_DEVICE, "no memory for a host arena of %lld bytes", (long long)bytes);
  device->host_arena = map;
  (void)madvise(map, (size_t)device->host_map_bytes, MADV_HUGEPAGE); /* fewer pages to bring in, and to pin */
  populate(map, device->host_map_bytes);
  return planc_context(rt_cuda_pin(device, map, bytes), "host arena");
}

typedef struct slice {
  char *at;
  size_t bytes;
} slice;

/* Pages come in several times faster to several threads than to one that pins them. */
static void populate(char *at, int64_t bytes) {
  enum { THREADS = 8, PAGE = 4096 };
  pthread_t threads[THREADS];
  slice slices[THREADS];
  int started = 0;
  int64_t each = pl_align_up(bytes / THREADS + 1, PAGE);
  for (int t = 0; t < THREADS && t * each < bytes; t++) {
    int64_t left = bytes - t * each;
    slices[t] = (slice){at + t * each, (size_t)(left < each ? left : each)};
    if (pthread_create(&threads[started], NULL, populate_slice, &slices[t]) == 0) started++;
  }
  while (started > 0) pthread_join(threads[--started], NULL);
}

static void *populate_slice(void *argument) {
  const slice *s = argument;
  /* Where the system cannot, pinning brings the pages in. */
#ifdef MADV_POPULATE_WRITE
  (void)madvise(s->at, s->bytes, MADV_POPULATE_WRITE);
#else
  (void)s;
#endif
  return NULL;
}

/* --- Closing ------------------------------------------------------------------------------------------------------ */

static void close_streams(rt_device *device);
static void free_host_works(rt_device *device);
static bool end_work(rt_device *device);

void rt_cuda_close(rt_device *device) {
  if (!device) return;
  bool ended = !device->present || end_work(device);
  for (int32_t i = 0; i < device->n_pinned; i++) cudaHostUnregister(device->pinned[i]);
  free(device->pinned);
  rt_captured_close(device);
  rt_cuda_prepared_free(device);
  rt_completions_close(device);
  rt_cublas_close(device->cublas);
  rt_cudnn_close(device->cudnn);
  if (device->range)
    rt_cuda_range_close(device->range);
  else if (device->arena)
    cudaFree(device->arena);
  if (device->host_arena) munmap(device->host_arena, (size_t)device->host_map_bytes);
  close_streams(device);
  if (!ended) return; /* what it holds leads to the device */
  free_host_works(device);
  planc_status_free(device->failure);
  pthread_cond_destroy(&device->returned);
  pthread_mutex_destroy(&device->lock);
  pthread_mutex_destroy(&device->user);
  free(device);
}

static void close_streams(rt_device *device) {
  for (int32_t e = 0; device->events && e < device->options.n_events; e++)
    if (device->events[e]) cudaEventDestroy(device->events[e]);
  for (int32_t s = 0; device->streams && s < device->n_streams; s++)
    if (device->streams[s]) cudaStreamDestroy(device->streams[s]);
  if (device->words) cudaFree(device->words);
  free(device->streams);
  free(device->draws);
  free(device->events);
  free(device->generations);
  free(device->in_capture);
}

static void free_host_works(rt_device *device) {
  while (device->capture.host_works) {
    rt_cuda_host_work *next = device->capture.host_works->next;
    free(device->capture.host_works);
    device->capture.host_works = next;
  }
  free(device->works);
}

/* Drops host work that has not begun and waits for what has. False where the context is at its end: that does not wait
 * for host work, and then CUDA may hold some that it will not run. */
static bool end_work(rt_device *device) {
  pthread_mutex_lock(&device->lock);
  device->closing = true;
  pthread_mutex_unlock(&device->lock);
  bool ended = cudaDeviceSynchronize() == cudaSuccess;
  pthread_mutex_lock(&device->lock);
  while (device->n_running > 0) pthread_cond_wait(&device->returned, &device->lock);
  pthread_mutex_unlock(&device->lock);
  return ended;
}
