/* Capturing a body as a CUDA Graph, and replaying it. All streams are forked from the first and joined to it again.
 * What differs from one replay to the next is in memory: the step in the device's, written by a kernel before the graph
 * begins, the period in the host's, written by host work. */
#include <stdlib.h>

#include "runtime/cuda/cuda.h"

/* The other streams go on behind what the first has been given. */
static planc_status fork(planrt_device *device) {
  CUDA_TRY(cudaEventRecord(device->capture.fork, device->streams[0]));
  for (int32_t s = 1; s < device->n_streams; s++)
    CUDA_TRY(cudaStreamWaitEvent(device->streams[s], device->capture.fork, 0));
  return NULL;
}

/* The first stream goes on behind what the others have been given. */
static planc_status join(planrt_device *device) {
  for (int32_t s = 1; s < device->n_streams; s++) {
    CUDA_TRY(cudaEventRecord(device->capture.joins[s], device->streams[s]));
    CUDA_TRY(cudaStreamWaitEvent(device->streams[0], device->capture.joins[s], 0));
  }
  return NULL;
}

/* --- Capturing -------------------------------------------------------------------------------------------------- */

static planc_status allocate(planrt_device *device) {
  planrt_cuda_capture *capture = &device->capture;
  for (const planrt_cuda_prepared *p = device->prepared; p; p = p->next) capture->digests_room++;
  size_t sums = ((size_t)capture->digests_room + 1) * sizeof *capture->sums;
  capture->joins = calloc((size_t)device->n_streams, sizeof(cudaEvent_t));
  capture->digests = calloc((size_t)capture->digests_room + 1, sizeof *capture->digests);
  if (!capture->joins || !capture->digests) return planc_error(PLANC_OUT_OF_MEMORY, "capture");
  CUDA_TRY(cudaEventCreateWithFlags(&capture->fork, cudaEventDisableTiming));
  for (int32_t s = 1; s < device->n_streams; s++)
    CUDA_TRY(cudaEventCreateWithFlags(&capture->joins[s], cudaEventDisableTiming));
  CUDA_TRY(cudaMalloc((void **)&capture->step, sizeof *capture->step));
  CUDA_TRY(cudaMalloc((void **)&capture->sums, sums));
  return planrt_cuda_pinned_new(device, (int64_t)sums, &capture->pinned);
}

planc_status planrt_cuda_capture_begin(planrt_device *device) {
  planrt_cuda_capture *capture = &device->capture;
  if (capture->fork) return planc_error(PLANC_INTERNAL, "a device keeps one capture");
  PLANC_TRY(allocate(device));
  PLANC_TRY(planrt_cuda_synchronize(device));
  CUDA_TRY(cudaStreamBeginCapture(device->streams[0], cudaStreamCaptureModeThreadLocal));
  capture->recording = true;
  planc_status status =
      planrt_cuda_status(cudaMemsetAsync(capture->sums, 0, ((size_t)capture->digests_room + 1) * sizeof *capture->sums,
                                         device->streams[0]),
                         "capture");
  if (!status) status = fork(device);
  if (!status) return NULL;
  planc_status_free(planrt_cuda_capture_end(device));
  return status;
}

planc_status planrt_captured_digest(planrt_device *device, uint64_t *out, uint64_t **out_sum) {
  planrt_cuda_capture *capture = &device->capture;
  if (capture->n_digests == capture->digests_room) return planc_error(PLANC_INTERNAL, "more digests than calls");
  capture->digests[capture->n_digests] = out;
  *out_sum = &capture->sums[capture->n_digests++];
  return NULL;
}

static planc_status finish(planrt_device *device) {
  planrt_cuda_capture *capture = &device->capture;
  if (capture->n_digests == 0) return NULL;
  CUDA_TRY(cudaMemcpyAsync(capture->pinned, capture->sums, (size_t)capture->n_digests * sizeof *capture->sums,
                           cudaMemcpyDeviceToHost, device->streams[0]));
  return NULL;
}

planc_status planrt_cuda_capture_end(planrt_device *device) {
  planrt_cuda_capture *capture = &device->capture;
  cudaGraph_t graph = NULL;
  if (!capture->recording) return planc_error(PLANC_INTERNAL, "nothing is being captured");
  planc_status status = join(device);
  if (!status) status = finish(device);
  planc_status ended = planrt_cuda_status(cudaStreamEndCapture(device->streams[0], &graph), "cudaStreamEndCapture");
  capture->recording = false;
  for (int32_t e = 0; e < device->options.n_events; e++) device->in_capture[e] = false;
  if (status)
    planc_status_free(ended);
  else
    status = ended;
  if (!status) status = planrt_cuda_status(cudaGraphInstantiate(&capture->graph, graph, 0), "cudaGraphInstantiate");
  if (!status) status = planrt_cuda_status(cudaGraphUpload(capture->graph, device->streams[0]), "cudaGraphUpload");
  if (!status) status = planrt_cuda_status(cudaStreamSynchronize(device->streams[0]), "cudaGraphUpload");
  if (graph) cudaGraphDestroy(graph);
  capture->outside = true;
  return status;
}

/* --- Replaying -------------------------------------------------------------------------------------------------- */

/* Captured host work counts its own runs: it is told where to begin, in stream order, and only where the periods do not
 * go on from the last replay's. */
static planc_status set_period(void *user, const void *what, int64_t period) {
  planrt_device *device = user;
  (void)what;
  for (planrt_cuda_host_work *work = device->capture.host_works; work; work = work->next) work->period = period;
  return NULL;
}

static planc_status begin_at(planrt_device *device, int64_t period) {
  planrt_cuda_capture *capture = &device->capture;
  bool goes_on = !capture->outside && period == capture->next_period;
  capture->next_period = period + 1;
  if (goes_on || !capture->host_works) return NULL;
  /* Enqueued as outside a replay, on the stream that everything is behind already. */
  capture->outside = true;
  return planrt_cuda_host(device, 0, set_period, device, NULL, period);
}

planc_status planrt_cuda_replay(planrt_device *device, const planrt_launch *launch, int64_t period) {
  planrt_cuda_capture *capture = &device->capture;
  const planrt_cuda_step step = {
      .learning_rate = launch->step.learning_rate, .period = launch->step.period, .seed = launch->seed};
  if (planrt_cuda_drops(device)) return NULL;
  if (capture->outside) PLANC_TRY(join(device));
  PLANC_TRY(begin_at(device, period));
  CUDA_TRY(planrt_cuda_set_step(device->streams[0], capture->step, &step));
  CUDA_TRY(cudaGraphLaunch(capture->graph, device->streams[0]));
  capture->outside = false;
  return NULL;
}

planc_status planrt_cuda_leave_replay(planrt_device *device) {
  if (device->capture.recording || !device->capture.graph || device->capture.outside) return NULL;
  device->capture.outside = true;
  return fork(device);
}

void planrt_captured_digests_deliver(const planrt_device *device) {
  const planrt_cuda_capture *capture = &device->capture;
  for (int32_t i = 0; capture->graph && i < capture->n_digests; i++) *capture->digests[i] = capture->pinned[i];
}

void planrt_cuda_capture_free(planrt_device *device) {
  planrt_cuda_capture *capture = &device->capture;
  if (capture->graph) cudaGraphExecDestroy(capture->graph);
  if (capture->fork) cudaEventDestroy(capture->fork);
  for (int32_t s = 1; capture->joins && s < device->n_streams; s++)
    if (capture->joins[s]) cudaEventDestroy(capture->joins[s]);
  if (capture->step) cudaFree(capture->step);
  if (capture->sums) cudaFree(capture->sums);
  free(capture->pinned);
  free(capture->joins);
  free(capture->digests);
}
