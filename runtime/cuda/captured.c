/* What a captured body has of its own beside the work that CUDA keeps: events that fork all streams from the first and
 * join them to it again, the steps that its kernels read, and its digests. work.c enqueues into it, replay.c runs it.
 */
#include <assert.h>
#include <stdlib.h>

#include "runtime/cuda/cuda.h"

planc_status rt_captured_open(rt_device *device) {
  rt_cuda_capture *capture = &device->capture;
  rt_captured_close(device);
  *capture = (rt_cuda_capture){0};
  capture->n_steps = 1;
  for (const rt_cuda_prepared *p = device->prepared; p; p = p->next) {
    capture->digests_room++;
    if (p->job >= capture->n_steps) capture->n_steps = p->job + 1;
  }
  size_t sums = ((size_t)capture->digests_room + 1) * sizeof *capture->sums;
  capture->joins = calloc((size_t)device->n_streams, sizeof(cudaEvent_t));
  capture->digests = calloc((size_t)capture->digests_room + 1, sizeof *capture->digests);
  if (!capture->joins || !capture->digests) return planc_error(PLANC_OUT_OF_MEMORY, "capture");
  CUDA_TRY(cudaEventCreateWithFlags(&capture->fork, cudaEventDisableTiming));
  for (int32_t s = 1; s < device->n_streams; s++)
    CUDA_TRY(cudaEventCreateWithFlags(&capture->joins[s], cudaEventDisableTiming));
  CUDA_TRY(cudaMalloc((void **)&capture->steps, (size_t)capture->n_steps * sizeof *capture->steps));
  CUDA_TRY(cudaMalloc((void **)&capture->sums, sums));
  return rt_cuda_pinned_new(device, (int64_t)sums, &capture->pinned);
}

void rt_captured_close(rt_device *device) {
  rt_cuda_capture *capture = &device->capture;
  if (capture->graph) cudaGraphExecDestroy(capture->graph);
  if (capture->fork) cudaEventDestroy(capture->fork);
  for (int32_t s = 1; capture->joins && s < device->n_streams; s++)
    if (capture->joins[s]) cudaEventDestroy(capture->joins[s]);
  if (capture->steps) cudaFree(capture->steps);
  if (capture->sums) cudaFree(capture->sums);
  free(capture->pinned);
  free(capture->joins);
  free(capture->digests);
}

/* --- Streams ------------------------------------------------------------------------------------------------------ */

planc_status rt_captured_fork(rt_device *device) {
  CUDA_TRY(cudaEventRecord(device->capture.fork, device->streams[0]));
  for (int32_t s = 1; s < device->n_streams; s++)
    CUDA_TRY(cudaStreamWaitEvent(device->streams[s], device->capture.fork, 0));
  return NULL;
}

planc_status rt_captured_join(rt_device *device) {
  for (int32_t s = 1; s < device->n_streams; s++) {
    CUDA_TRY(cudaEventRecord(device->capture.joins[s], device->streams[s]));
    CUDA_TRY(cudaStreamWaitEvent(device->streams[0], device->capture.joins[s], 0));
  }
  return NULL;
}

planc_status rt_captured_leave(rt_device *device) {
  if (device->capture.recording || !device->capture.graph || device->capture.outside) return NULL;
  device->capture.outside = true;
  return rt_captured_fork(device);
}

/* --- Digests ------------------------------------------------------------------------------------------------------ */

/* Each prepared call has one at most. */
uint64_t *rt_captured_digest(rt_device *device, uint64_t *out) {
  rt_cuda_capture *capture = &device->capture;
  assert(capture->recording && capture->n_digests < capture->digests_room);
  capture->digests[capture->n_digests] = out;
  return &capture->sums[capture->n_digests++];
}

planc_status rt_captured_digests_clear(rt_device *device) {
  rt_cuda_capture *capture = &device->capture;
  size_t bytes = ((size_t)capture->digests_room + 1) * sizeof *capture->sums;
  return rt_cuda_status(cudaMemsetAsync(capture->sums, 0, bytes, device->streams[0]), "capture");
}

planc_status rt_captured_digests_send(rt_device *device) {
  rt_cuda_capture *capture = &device->capture;
  if (capture->n_digests == 0) return NULL;
  CUDA_TRY(cudaMemcpyAsync(capture->pinned, capture->sums, (size_t)capture->n_digests * sizeof *capture->sums,
                           cudaMemcpyDeviceToHost, device->streams[0]));
  return NULL;
}

void rt_captured_digests_deliver(const rt_device *device) {
  const rt_cuda_capture *capture = &device->capture;
  for (int32_t i = 0; capture->graph && i < capture->n_digests; i++) *capture->digests[i] = capture->pinned[i];
}
