/* Enqueueing work: streams, events and copies as the plan has them. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/cuda/cuda.h"
#include "runtime/random.h"

enum { UNRECORDED = -2, MAX_JITTER_NS = 250000, START_NS = 2000000 };

/* After a failure of host work nothing is enqueued any more, until the device is synchronised. */
bool rt_cuda_drops(rt_device *device) {
  pthread_mutex_lock(&device->lock);
  bool failed = device->failure != NULL;
  pthread_mutex_unlock(&device->lock);
  return failed;
}

static planc_status begin(rt_device *device, int32_t stream);
static planc_status begin_timed(rt_device *device, int32_t stream, const rt_launch *launch, rt_span *span);

planc_status rt_cuda_run(rt_device *device, int32_t stream, const rt_call *call, const rt_launch *launch,
                         rt_span *span) {
  cudaStream_t on = rt_cuda_stream(device, stream);
  if (rt_cuda_drops(device)) return NULL;
  rt_cuda_launch how = {.stream = on, .scratch = rt_cuda_word(device, stream), .inference = launch->inference};
  how.step.value = (rt_cuda_step){.learning_rate = launch->step.learning_rate,
                                  .period = launch->step.period,
                                  .seed = launch->seed,
                                  .ahead = rt_launch_ahead(call, launch)};
  if (device->capture.recording) how.step.at = &device->capture.steps[rt_call_job(call)];
  PLANC_TRY(begin(device, stream));
  if (span) PLANC_TRY(begin_timed(device, stream, launch, span));
  PLANC_TRY(planc_context(rt_cuda_prepared_run(device, call, &how), "op %s", call->op->name));
  return span ? rt_span_end(device, stream) : NULL;
}

planc_status rt_cuda_digest_call(rt_device *device, int32_t stream, const rt_call *call, uint64_t *out) {
  cudaStream_t on = rt_cuda_stream(device, stream);
  uint64_t *sum = NULL;
  bool captured = device->capture.recording;
  if (rt_cuda_drops(device)) return NULL;
  PLANC_TRY(begin(device, stream));
  if (captured)
    sum = rt_captured_digest(device, out);
  else
    PLANC_TRY(rt_digest_begin(device, on, out, &sum));
  for (int32_t i = 0; i < call->n_out; i++)
    if (call->out[i].data) CUDA_TRY(rt_cuda_digest(on, (uint64_t)i + 1, call->out[i].data, call->out[i].bytes, sum));
  return captured ? NULL : rt_digest_end(device, on);
}

/* What comes before any piece of work. */
static planc_status begin(rt_device *device, int32_t stream) {
  PLANC_TRY(rt_captured_leave(device));
  if (!device->options.jitter) return NULL;
  uint64_t draw = rt_random(device->options.jitter + (uint64_t)stream, device->draws[stream]++);
  if (draw & 3) return NULL;
  return rt_cuda_status(rt_cuda_delay(rt_cuda_stream(device, stream), (int64_t)((draw >> 8) % MAX_JITTER_NS)), "delay");
}

/* Whether the device is about to be through with what it was given: an op's launch may take as long as some ops run. */
static bool runs_dry(const rt_device *device) {
  enum { FEW = 8 };
  const rt_completion *recent = rt_completion_before(device, FEW);
  if (!recent) return false;
  cudaError_t code = cudaEventQuery(recent->end);
  (void)cudaGetLastError(); /* that it is not over is no error of the next launch's */
  return code == cudaSuccess;
}

/* Work that is timed must not wait for the host to enqueue it: a device that has nothing to do is kept busy until there
 * is enough in its queue. In a run that is so at its beginning only; what is measured for its own sake is held back
 * wherever it would have to wait. `launch` is NULL for a copy. */
static planc_status begin_timed(rt_device *device, int32_t stream, const rt_launch *launch, rt_span *span) {
  bool measured = launch && launch->measured;
  if (device->idle || (measured && runs_dry(device))) CUDA_TRY(rt_cuda_delay(rt_cuda_stream(device, stream), START_NS));
  device->idle = false;
  return rt_span_begin(device, stream, launch != NULL, span);
}

/* --- Host work ---------------------------------------------------------------------------------------------------- */

static planc_status take(rt_device *device, rt_cuda_host_work **out);
static void CUDART_CB run_host_work(void *argument);

planc_status rt_cuda_host(rt_device *device, int32_t stream, rt_host_work work, void *user, const void *what,
                          int64_t period) {
  cudaStream_t on = rt_cuda_stream(device, stream);
  if (rt_cuda_drops(device)) return NULL;
  PLANC_TRY(begin(device, stream));
  if (!device->options.concurrent) {
    CUDA_TRY(cudaStreamSynchronize(on));
    return work(user, what, period);
  }
  rt_cuda_host_work *item;
  PLANC_TRY(take(device, &item));
  item->work = work;
  item->user = user;
  item->what = what;
  item->period = period;
  return rt_cuda_status(cudaLaunchHostFunc(on, run_host_work, item), "host work");
}

/* Whether host work is to be done; it then counts as running. */
static bool begin_host_work(rt_device *device) {
  pthread_mutex_lock(&device->lock);
  bool wanted = !device->failure && !device->closing;
  device->n_running += wanted;
  pthread_mutex_unlock(&device->lock);
  return wanted;
}

/* Keeps the first failure. */
static void end_host_work(rt_device *device, rt_cuda_host_work *work, bool ran, planc_status status) {
  pthread_mutex_lock(&device->lock);
  device->n_running -= ran;
  if (!device->failure)
    device->failure = status;
  else
    planc_status_free(status);
  if (!work->captured) {
    work->next = device->free_works;
    device->free_works = work;
  }
  pthread_cond_broadcast(&device->returned);
  pthread_mutex_unlock(&device->lock);
}

/* On a thread of CUDA's, in stream order. */
static void CUDART_CB run_host_work(void *argument) {
  rt_cuda_host_work *work = argument;
  rt_device *device = work->device;
  pthread_mutex_lock(&device->user);
  bool runs = begin_host_work(device);
  planc_status status = runs ? work->work(work->user, work->what, work->period) : NULL;
  if (work->captured) work->period++;
  pthread_mutex_unlock(&device->user);
  end_host_work(device, work, runs, status);
}

static planc_status take_captured(rt_device *device, rt_cuda_host_work **out);
static planc_status take_free(rt_device *device, rt_cuda_host_work **out);
static planc_status check_context(const rt_device *device);

static planc_status take(rt_device *device, rt_cuda_host_work **out) {
  *out = NULL;
  return device->capture.recording ? take_captured(device, out) : take_free(device, out);
}

static planc_status take_captured(rt_device *device, rt_cuda_host_work **out) {
  rt_cuda_host_work *work = *out = calloc(1, sizeof *work);
  if (!work) return planc_error(PLANC_OUT_OF_MEMORY, "captured host work");
  work->device = device;
  work->captured = true;
  work->next = device->capture.host_works;
  device->capture.host_works = work;
  return NULL;
}

static planc_status take_free(rt_device *device, rt_cuda_host_work **out) {
  enum { LOOK_NS = 50000000, SECOND_NS = 1000000000 };
  planc_status status = NULL;
  pthread_mutex_lock(&device->lock);
  while (!status && !device->free_works) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_NS;
    until.tv_sec += until.tv_nsec / SECOND_NS;
    until.tv_nsec %= SECOND_NS;
    if (pthread_cond_timedwait(&device->returned, &device->lock, &until) == 0) continue;
    pthread_mutex_unlock(&device->lock);
    status = check_context(device);
    pthread_mutex_lock(&device->lock);
  }
  *out = device->free_works;
  if (!status) device->free_works = device->free_works->next;
  pthread_mutex_unlock(&device->lock);
  return status;
}

/* After an error that is the context's end CUDA runs no more host functions, and nobody would say so. */
static planc_status check_context(const rt_device *device) {
  cudaError_t code = cudaStreamQuery(device->streams[0]);
  if (code != cudaErrorNotReady) return rt_cuda_status(code, "host work");
  (void)cudaGetLastError(); /* that there is more to do is no error of the next launch's */
  return NULL;
}

/* --- Memory ------------------------------------------------------------------------------------------------------- */

static planc_status enqueue_copy(rt_device *device, cudaStream_t on, rt_direction direction, void *to, const void *from,
                                 int64_t bytes);

planc_status rt_cuda_copy(rt_device *device, int32_t stream, rt_direction direction, void *to, const void *from,
                          int64_t bytes, rt_span *span) {
  cudaStream_t on = rt_cuda_stream(device, stream);
  if (rt_cuda_drops(device)) return NULL;
  PLANC_TRY(begin(device, stream));
  if (span) PLANC_TRY(begin_timed(device, stream, NULL, span));
  PLANC_TRY(enqueue_copy(device, on, direction, to, from, bytes));
  if (span) PLANC_TRY(rt_span_end(device, stream));
  /* Without streams of their own the two sides take turns. */
  if (device->options.concurrent || direction == RT_D2D) return NULL;
  return rt_cuda_status(cudaStreamSynchronize(on), "copy");
}

/* On a thread of CUDA's, in stream order. */
static void CUDART_CB run_in_host_memory(void *argument) {
  rt_cuda_host_work *work = argument;
  bool runs = begin_host_work(work->device);
  if (runs && work->from)
    memmove(work->to, work->from, (size_t)work->bytes);
  else if (runs)
    memset(work->to, 0xff, (size_t)work->bytes);
  end_host_work(work->device, work, runs, NULL);
}

/* CUDA's own copies within host memory are over when the call returns (CUDA Runtime API, "API synchronization
 * behavior"), which would hold up whoever enqueues. */
static planc_status enqueue_in_host_memory(rt_device *device, cudaStream_t on, void *to, const void *from,
                                           int64_t bytes) {
  rt_cuda_host_work *item;
  PLANC_TRY(take(device, &item));
  item->to = to;
  item->from = from;
  item->bytes = bytes;
  return rt_cuda_status(cudaLaunchHostFunc(on, run_in_host_memory, item), "host memory");
}

static planc_status enqueue_copy(rt_device *device, cudaStream_t on, rt_direction direction, void *to, const void *from,
                                 int64_t bytes) {
  static const enum cudaMemcpyKind kinds[] = {
      [RT_H2D] = cudaMemcpyHostToDevice, [RT_D2H] = cudaMemcpyDeviceToHost, [RT_D2D] = cudaMemcpyDeviceToDevice};
  if (bytes == 0) return NULL;
  if (direction == RT_H2H) return enqueue_in_host_memory(device, on, to, from, bytes);
  CUDA_TRY(cudaMemcpyAsync(to, from, (size_t)bytes, kinds[direction], on));
  return NULL;
}

static bool in_host_arena(const rt_device *device, const void *at) {
  uintptr_t begin = (uintptr_t)device->host_arena;
  return (uintptr_t)at >= begin && (uintptr_t)at - begin < (uintptr_t)device->host_map_bytes;
}

planc_status rt_cuda_poison(rt_device *device, int32_t stream, void *to, int64_t bytes) {
  cudaStream_t on = rt_cuda_stream(device, stream);
  if (bytes == 0 || rt_cuda_drops(device)) return NULL;
  PLANC_TRY(begin(device, stream));
  if (in_host_arena(device, to)) return enqueue_in_host_memory(device, on, to, NULL, bytes);
  return rt_cuda_status(cudaMemsetAsync(to, 0xff, (size_t)bytes, on), "poison");
}

/* --- Events ------------------------------------------------------------------------------------------------------- */

planc_status rt_cuda_record(rt_device *device, int32_t stream, int32_t event, int64_t generation) {
  if (rt_cuda_drops(device)) return NULL;
  PLANC_TRY(rt_captured_leave(device));
  CUDA_TRY(cudaEventRecord(device->events[event], rt_cuda_stream(device, stream)));
  if (device->capture.recording)
    device->in_capture[event] = true;
  else
    device->generations[event] = generation;
  return NULL;
}

planc_status rt_cuda_wait(rt_device *device, int32_t stream, int32_t event, int64_t generation) {
  if (rt_cuda_drops(device)) return NULL;
  PLANC_TRY(rt_captured_leave(device));
  if (device->capture.recording) {
    if (!device->in_capture[event]) return NULL;
  } else if (device->generations[event] < generation) {
    /* A replay records no event, and everything behind it is behind all of it. */
    if (device->capture.graph && generation >= 0) return NULL;
    return planc_error(PLANC_INVALID_PLAN, "stream %d waits for event %d, which has not been recorded", stream, event);
  }
  return rt_cuda_status(cudaStreamWaitEvent(rt_cuda_stream(device, stream), device->events[event], 0), "wait");
}

bool rt_cuda_reached(const rt_device *device, int32_t event, int64_t generation) {
  return device->generations[event] >= generation;
}

void rt_cuda_forget(rt_device *device) {
  for (int32_t e = 0; e < device->options.n_events; e++) device->generations[e] = UNRECORDED;
}

planc_status rt_cuda_synchronize(rt_device *device) {
  if (!device->present) return NULL;
  planc_status status = rt_completions_drain(device);
  for (int32_t s = 0; s < device->n_streams; s++) {
    planc_status ended = rt_cuda_status(cudaStreamSynchronize(device->streams[s]), "cudaStreamSynchronize");
    if (status)
      planc_status_free(ended);
    else
      status = ended;
  }
  if (!status) rt_captured_digests_deliver(device);
  device->idle = true;
  pthread_mutex_lock(&device->lock);
  planc_status failure = device->failure;
  device->failure = NULL;
  pthread_mutex_unlock(&device->lock);
  if (!failure) return status;
  device->capture.next_period = -1; /* host work that was dropped has not been told */
  planc_status_free(status);
  return failure;
}
