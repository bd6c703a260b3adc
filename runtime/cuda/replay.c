/* Capturing a body as a CUDA Graph, and replaying it. All streams are forked from the first and joined to it again
 * (captured.c). What differs from one replay to the next is in memory: the jobs' steps in the device's, written by
 * kernels before the graph begins, the period in the host's, written by host work. */
#include <assert.h>

#include "runtime/cuda/cuda.h"

/* --- Capturing ---------------------------------------------------------------------------------------------------- */

/* From here on CUDA keeps what is enqueued, all of it behind what comes first. */
static planc_status begin_recording(rt_device *device) {
  CUDA_TRY(cudaStreamBeginCapture(device->streams[0], cudaStreamCaptureModeThreadLocal));
  device->capture.recording = true;
  PLANC_TRY(rt_captured_digests_clear(device));
  return rt_captured_fork(device);
}

planc_status rt_cuda_capture_begin(rt_device *device) {
  if (device->capture.fork) return planc_error(PLANC_INTERNAL, "a device keeps one capture");
  PLANC_TRY(rt_captured_open(device));
  PLANC_TRY(rt_cuda_synchronize(device));
  planc_status status = begin_recording(device);
  if (status && device->capture.recording) planc_status_free(rt_cuda_capture_end(device));
  return status;
}

/* Ends what CUDA records, whatever has failed by then; *out is NULL where it has not come to a graph. */
static planc_status end_recording(rt_device *device, cudaGraph_t *out) {
  *out = NULL;
  planc_status status = rt_captured_join(device);
  if (!status) status = rt_captured_digests_send(device);
  planc_status ended = rt_cuda_status(cudaStreamEndCapture(device->streams[0], out), "cudaStreamEndCapture");
  device->capture.recording = false;
  device->capture.outside = true;
  for (int32_t e = 0; e < device->options.n_events; e++) device->in_capture[e] = false;
  if (!status) return ended;
  planc_status_free(ended);
  return status;
}

/* What the device needs of the graph is there before the first replay. */
static planc_status make_ready(rt_device *device, cudaGraph_t graph) {
  CUDA_TRY(cudaGraphInstantiate(&device->capture.graph, graph, 0));
  CUDA_TRY(cudaGraphUpload(device->capture.graph, device->streams[0]));
  return rt_cuda_status(cudaStreamSynchronize(device->streams[0]), "cudaGraphUpload");
}

planc_status rt_cuda_capture_end(rt_device *device) {
  cudaGraph_t graph;
  if (!device->capture.recording) return planc_error(PLANC_INTERNAL, "nothing is being captured");
  planc_status status = end_recording(device, &graph);
  if (!status) status = make_ready(device, graph);
  if (graph) cudaGraphDestroy(graph);
  return status;
}

/* --- Replaying ---------------------------------------------------------------------------------------------------- */

static planc_status begin_at(rt_device *device, int64_t period);
static planc_status set_steps(rt_device *device, const rt_launch *launch);

planc_status rt_cuda_replay(rt_device *device, const rt_launch *launch, int64_t period) {
  rt_cuda_capture *capture = &device->capture;
  assert(capture->graph && !capture->recording);
  if (rt_cuda_drops(device)) return NULL;
  if (capture->outside) PLANC_TRY(rt_captured_join(device));
  PLANC_TRY(begin_at(device, period));
  PLANC_TRY(set_steps(device, launch));
  CUDA_TRY(cudaGraphLaunch(capture->graph, device->streams[0]));
  capture->outside = false;
  return NULL;
}

/* Captured host work counts its own runs: it is told where to begin, in stream order, and only where the periods do not
 * go on from the last replay's. */
static planc_status set_period(void *user, const void *what, int64_t period) {
  rt_device *device = user;
  (void)what;
  for (rt_cuda_host_work *work = device->capture.host_works; work; work = work->next) work->period = period;
  return NULL;
}

static planc_status begin_at(rt_device *device, int64_t period) {
  rt_cuda_capture *capture = &device->capture;
  bool goes_on = !capture->outside && period == capture->next_period;
  capture->next_period = period + 1;
  if (goes_on || !capture->host_works) return NULL;
  /* Enqueued as outside a replay, on the stream that everything is behind already. */
  capture->outside = true;
  return rt_cuda_host(device, 0, set_period, device, NULL, period);
}

static planc_status set_steps(rt_device *device, const rt_launch *launch) {
  rt_cuda_step step = {
      .learning_rate = launch->step.learning_rate, .period = launch->step.period, .seed = launch->seed};
  for (int32_t j = 0; j < device->capture.n_steps; j++) {
    step.ahead = launch->ahead ? launch->ahead[j] : 0;
    CUDA_TRY(rt_cuda_set_step(device->streams[0], &device->capture.steps[j], &step));
  }
  return NULL;
}
