/* What comes back from the device after the work it is about: times, which two events have, and digests, which device
 * memory has. They wait in a ring for their turn; when it is full the oldest is waited for. */
#include <stdlib.h>

#include "runtime/cuda/cuda.h"
#include "util/clock.h"
#include "util/math.h"
#include "util/median.h"

planc_status rt_completions_open(rt_device *device) {
  device->completions = calloc(RT_COMPLETIONS, sizeof *device->completions);
  if (!device->completions) return planc_error(PLANC_OUT_OF_MEMORY, "CUDA device");
  for (int32_t i = 0; i < RT_COMPLETIONS; i++) {
    CUDA_TRY(cudaEventCreateWithFlags(&device->completions[i].begin, cudaEventDefault));
    CUDA_TRY(cudaEventCreateWithFlags(&device->completions[i].end, cudaEventDefault));
  }
  device->ended_ns = calloc((size_t)device->n_streams, sizeof *device->ended_ns);
  if (!device->ended_ns) return planc_error(PLANC_OUT_OF_MEMORY, "CUDA device");
  CUDA_TRY(cudaMalloc((void **)&device->sums, RT_COMPLETIONS * sizeof *device->sums));
  PLANC_TRY(rt_cuda_pinned_new(device, RT_COMPLETIONS * sizeof *device->sums_pinned, &device->sums_pinned));
  CUDA_TRY(cudaEventCreateWithFlags(&device->base, cudaEventDefault));
  CUDA_TRY(cudaEventRecord(device->base, device->streams[0]));
  CUDA_TRY(cudaEventSynchronize(device->base));
  device->base_ns = pl_now_ns();
  device->idle = true;
  return NULL;
}

void rt_completions_close(rt_device *device) {
  for (int32_t i = 0; device->completions && i < RT_COMPLETIONS; i++) {
    if (device->completions[i].begin) cudaEventDestroy(device->completions[i].begin);
    if (device->completions[i].end) cudaEventDestroy(device->completions[i].end);
  }
  if (device->base) cudaEventDestroy(device->base);
  if (device->sums) cudaFree(device->sums);
  free(device->sums_pinned);
  free(device->completions);
  free(device->ended_ns);
}

/* --- What time stamps cost ---------------------------------------------------------------------------------------- */

enum { ALIKE = 32 };

static planc_status time_alike(rt_device *device, rt_cuda_step *step, int64_t *out_ns, bool *out_at_once);
static planc_status enqueue_alike(rt_device *device, rt_cuda_step *step);
static planc_status nanoseconds(cudaEvent_t from, cudaEvent_t to, int64_t *out);

/* Between two time stamps a kernel begins only when the device has come to rest, and a stamp is taken when it rests
 * again; among others a kernel begins while the one before it ends. Of kernels that fill the device for long this is
 * less than of the short ones here, by a microsecond on an H100. */
planc_status rt_completions_measure(rt_device *device) {
  enum { TRIALS = 5 };
  int64_t trials[TRIALS], at_once[TRIALS];
  int32_t n_at_once = 0;
  rt_cuda_step *step;
  CUDA_TRY(cudaMalloc((void **)&step, sizeof *step));
  planc_status status = NULL;
  for (int32_t t = 0; !status && t < TRIALS; t++) {
    bool is_at_once;
    status = time_alike(device, step, &trials[t], &is_at_once);
    if (!status && is_at_once) at_once[n_at_once++] = trials[t];
  }
  if (!status) device->stamps_ns = pl_max(n_at_once > 0 ? pl_median(at_once, n_at_once) : pl_median(trials, TRIALS), 0);
  cudaFree(step);
  return status;
}

/* The same short kernel, each between two stamps, then all between two: by how much one takes longer in the former.
 * *out_at_once says that all were in the queue before the first began; else some may have waited for the host. */
static planc_status time_alike(rt_device *device, rt_cuda_step *step, int64_t *out_ns, bool *out_at_once) {
  enum { ENQUEUED_NS = 3000000 };
  cudaStream_t stream = device->streams[0];
  const rt_completion *each = device->completions, *all = &each[ALIKE];
  int64_t apart = 0, together, one, begin_ns = pl_now_ns();
  CUDA_TRY(rt_cuda_delay(stream, ENQUEUED_NS));
  PLANC_TRY(enqueue_alike(device, step));
  *out_at_once = pl_now_ns() - begin_ns < ENQUEUED_NS;
  CUDA_TRY(cudaStreamSynchronize(stream));
  for (int i = 0; i < ALIKE; i++) {
    PLANC_TRY(nanoseconds(each[i].begin, each[i].end, &one));
    apart += one;
  }
  PLANC_TRY(nanoseconds(all->begin, all->end, &together));
  /* Of ALIKE times what stamps add, and of once: the kernels themselves are in both. */
  *out_ns = (apart - together) / (ALIKE - 1);
  return NULL;
}

static planc_status enqueue_alike(rt_device *device, rt_cuda_step *step) {
  const rt_cuda_step nothing = {0};
  cudaStream_t stream = device->streams[0];
  const rt_completion *each = device->completions, *all = &each[ALIKE];
  for (int i = 0; i < ALIKE; i++) {
    CUDA_TRY(cudaEventRecord(each[i].begin, stream));
    CUDA_TRY(rt_cuda_set_step(stream, step, &nothing));
    CUDA_TRY(cudaEventRecord(each[i].end, stream));
  }
  CUDA_TRY(cudaEventRecord(all->begin, stream));
  for (int i = 0; i < ALIKE; i++) CUDA_TRY(rt_cuda_set_step(stream, step, &nothing));
  CUDA_TRY(cudaEventRecord(all->end, stream));
  return NULL;
}

/* --- Coming back -------------------------------------------------------------------------------------------------- */

static planc_status finish_oldest(rt_device *device);

planc_status rt_completions_drain(rt_device *device) {
  planc_status status = NULL;
  while (!status && device->n_completions > 0) status = finish_oldest(device);
  device->n_completions = 0;
  return status;
}

const rt_completion *rt_completion_before(const rt_device *device, int64_t back) {
  if (device->n_completions <= back) return NULL;
  return &device->completions[(device->first + device->n_completions - 1 - back) % RT_COMPLETIONS];
}

static planc_status nanoseconds(cudaEvent_t from, cudaEvent_t to, int64_t *out) {
  float milliseconds;
  CUDA_TRY(cudaEventElapsedTime(&milliseconds, from, to));
  *out = (int64_t)((double)milliseconds * 1e6);
  return NULL;
}

/* The clock is a chain of events: a float of milliseconds tells short distances only. */
static planc_status fill_span(rt_device *device, rt_completion *of) {
  enum { FAR_NS = 1000000000 };
  int64_t begin, end, *ended = &device->ended_ns[of->stream];
  PLANC_TRY(nanoseconds(device->base, of->begin, &begin));
  PLANC_TRY(nanoseconds(device->base, of->end, &end));
  int64_t start = of->launch ? pl_min(begin + device->stamps_ns, end) : begin;
  /* Rounding must not let a stream's spans overlap. */
  of->span->start_ns = pl_max(device->base_ns + start, *ended);
  of->span->end_ns = pl_max(device->base_ns + end, of->span->start_ns);
  *ended = of->span->end_ns;
  if (begin < FAR_NS) return NULL;
  cudaEvent_t next = of->begin;
  of->begin = device->base;
  device->base = next;
  device->base_ns += begin;
  return NULL;
}

static planc_status finish_oldest(rt_device *device) {
  int64_t slot = device->first % RT_COMPLETIONS;
  rt_completion *oldest = &device->completions[slot];
  device->first++;
  device->n_completions--;
  CUDA_TRY(cudaEventSynchronize(oldest->end));
  if (!oldest->digest) return fill_span(device, oldest);
  *oldest->digest = device->sums_pinned[slot];
  return NULL;
}

static planc_status take(rt_device *device, rt_completion **out) {
  if (device->n_completions == RT_COMPLETIONS) PLANC_TRY(finish_oldest(device));
  *out = &device->completions[(device->first + device->n_completions) % RT_COMPLETIONS];
  return NULL;
}

/* --- Sending ------------------------------------------------------------------------------------------------------ */

planc_status rt_span_begin(rt_device *device, int32_t stream, bool launch, rt_span *span) {
  rt_completion *next;
  PLANC_TRY(take(device, &next));
  next->span = span;
  next->launch = launch;
  next->stream = device->options.concurrent ? stream : 0;
  next->digest = NULL;
  return rt_cuda_status(cudaEventRecord(next->begin, rt_cuda_stream(device, stream)), "time stamp");
}

/* It counts from now on. */
static planc_status send(rt_device *device, cudaStream_t stream) {
  rt_completion *next = &device->completions[(device->first + device->n_completions) % RT_COMPLETIONS];
  CUDA_TRY(cudaEventRecord(next->end, stream));
  device->n_completions++;
  return NULL;
}

planc_status rt_span_end(rt_device *device, int32_t stream) {
  return send(device, rt_cuda_stream(device, stream));
}

planc_status rt_digest_begin(rt_device *device, cudaStream_t stream, uint64_t *out, uint64_t **out_sum) {
  rt_completion *next;
  PLANC_TRY(take(device, &next));
  next->digest = out;
  *out_sum = &device->sums[next - device->completions];
  return rt_cuda_status(cudaMemsetAsync(*out_sum, 0, sizeof **out_sum, stream), "digest");
}

planc_status rt_digest_end(rt_device *device, cudaStream_t stream) {
  int64_t slot = (device->first + device->n_completions) % RT_COMPLETIONS;
  CUDA_TRY(cudaMemcpyAsync(&device->sums_pinned[slot], &device->sums[slot], sizeof *device->sums,
                           cudaMemcpyDeviceToHost, stream));
  return send(device, stream);
}
