/* Stream capture and graphs. A capture begins at one stream; another joins where it waits for an event that the capture
 * recorded, and has to be waited for in turn before the capture ends (CUDA C++ Programming Guide, "Creating a Graph
 * Using Stream Capture"). */
#include <algorithm>

#include "internal.h"

namespace emulator {

struct Capture {
  const Stream *origin;
  std::vector<std::shared_ptr<Stream>> streams;  // the origin and those that joined
  std::shared_ptr<Graph> graph;
  cudaStreamCaptureMode mode;
  std::thread::id thread;
  bool valid, active;
};

namespace {

std::vector<std::shared_ptr<Capture>> &captures() {
  static auto *const active = new std::vector<std::shared_ptr<Capture>>;
  return *active;
}

void unite(std::vector<size_t> *nodes, const std::vector<size_t> &more) {
  std::vector<size_t> all;
  std::set_union(nodes->begin(), nodes->end(), more.begin(), more.end(), std::back_inserter(all));
  *nodes = std::move(all);
}

/* Whether all that the capture's streams did comes before the end of its origin. */
bool joined(const Capture &capture) {
  const std::vector<Node> &nodes = capture.graph->nodes;
  std::vector<bool> before(nodes.size(), false);
  for (size_t node : capture.origin->tail) before[node] = true;
  for (size_t i = nodes.size(); i-- > 0;)
    if (before[i])
      for (size_t earlier : nodes[i].after) before[earlier] = true;
  return std::all_of(capture.streams.begin(), capture.streams.end(), [&](const auto &stream) {
    return std::all_of(stream->tail.begin(), stream->tail.end(), [&](size_t node) { return before[node]; });
  });
}

void close(const std::shared_ptr<Capture> &capture) {
  capture->active = false;
  for (const auto &stream : capture->streams) {
    stream->capture = nullptr;
    stream->tail.clear();
  }
  capture->streams.clear();
  captures().erase(std::find(captures().begin(), captures().end(), capture));
}

int64_t footprint(const Graph &graph) {
  return (int64_t{64} << 10) + static_cast<int64_t>(graph.nodes.size()) * 256;
}

}  // namespace

void invalidate(Capture &capture) {
  capture.valid = false;
}

bool capture_refuses() {
  bool refused = false;
  for (const auto &capture : captures()) {
    bool here = capture->thread == std::this_thread::get_id();
    if (capture->mode == cudaStreamCaptureModeGlobal || (capture->mode == cudaStreamCaptureModeThreadLocal && here)) {
      invalidate(*capture);
      refused = true;
    }
  }
  return refused;
}

cudaError_t capture_work(Stream &stream, Node node) {
  Capture &capture = *stream.capture;
  if (!capture.valid) return cudaErrorStreamCaptureInvalidated;
  node.after = stream.tail;
  stream.tail = {capture.graph->nodes.size()};
  capture.graph->nodes.push_back(std::move(node));
  return cudaSuccess;
}

cudaError_t capture_record(Stream &stream, Event &event) {
  if (!stream.capture->valid) return cudaErrorStreamCaptureInvalidated;
  event.capture = stream.capture;
  event.nodes = stream.tail;
  event.record = nullptr;
  return cudaSuccess;
}

cudaError_t capture_wait(const std::shared_ptr<Stream> &stream, const Event &event) {
  const std::shared_ptr<Capture> &of_event = event.capture;
  std::shared_ptr<Capture> &of_stream = stream->capture;
  auto fail = [&](cudaError_t error) {
    if (of_stream != nullptr) invalidate(*of_stream);
    if (of_event != nullptr) invalidate(*of_event);
    return error;
  };
  if (of_event == nullptr) return fail(cudaErrorStreamCaptureIsolation);
  if (!of_event->active) return fail(cudaErrorCapturedEvent);
  if (!of_event->valid) return cudaErrorStreamCaptureInvalidated;
  if (of_stream != nullptr && of_stream != of_event) return fail(cudaErrorStreamCaptureMerge);
  if (of_stream == nullptr) {
    of_stream = of_event;
    of_event->streams.push_back(stream);
  }
  unite(&stream->tail, event.nodes);
  return cudaSuccess;
}

cudaError_t unsupported_in_capture(Stream &stream) {
  invalidate(*stream.capture);
  return cudaErrorStreamCaptureUnsupported;
}

}  // namespace emulator

using namespace emulator;

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  EMULATOR_CALL();
  auto stream = stream_of(handle);
  if (stream == nullptr) return call.end(cudaErrorStreamCaptureUnsupported);
  if (stream->capture != nullptr) return call.end(cudaErrorIllegalState);
  auto graph = std::make_shared<Graph>();
  auto capture = std::make_shared<Capture>();
  *capture = {stream.get(), {stream}, std::move(graph), mode, std::this_thread::get_id(), true, true};
  stream->capture = capture;
  captures().push_back(capture);
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus *status) {
  EMULATOR_CALL();
  auto stream = stream_of(handle);
  if (stream == nullptr) return call.end(cudaErrorInvalidResourceHandle);
  *status = stream->capture == nullptr ? cudaStreamCaptureStatusNone
            : stream->capture->valid   ? cudaStreamCaptureStatusActive
                                       : cudaStreamCaptureStatusInvalidated;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *out) {
  EMULATOR_CALL();
  *out = nullptr;
  auto stream = stream_of(handle);
  if (stream == nullptr) return call.end(cudaErrorInvalidResourceHandle);
  std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr) return call.end(cudaErrorIllegalState);
  if (capture->origin != stream.get()) {
    invalidate(*capture);
    return call.end(cudaErrorStreamCaptureUnmatched);
  }
  if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id())
    return call.end(cudaErrorStreamCaptureWrongThread);
  cudaError_t error = !capture->valid     ? cudaErrorStreamCaptureInvalidated
                      : !joined(*capture) ? cudaErrorStreamCaptureUnjoined
                                          : cudaSuccess;
  if (error == cudaSuccess) *out = static_cast<cudaGraph_t>(hold(capture->graph));
  close(capture);
  return call.end(error);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t handle, cudaGraphNode_t *nodes, size_t *count) {
  EMULATOR_CALL();
  auto graph = held<Graph>(handle);
  if (graph == nullptr || nodes != nullptr) return call.end(cudaErrorInvalidValue);
  *count = graph->nodes.size();
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t handle) {
  EMULATOR_CALL();
  if (held<Graph>(handle) == nullptr) return call.end(cudaErrorInvalidValue);
  drop_label(handle);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t handle, unsigned long long) {
  EMULATOR_CALL(allocates);
  auto graph = held<Graph>(handle);
  if (graph == nullptr) return call.end(cudaErrorInvalidValue);
  auto exec = std::make_shared<GraphExec>();
  exec->graph = graph;
  take_device_bytes(footprint(*graph));
  *out = static_cast<cudaGraphExec_t>(hold(exec));
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiate(out, graph, flags);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t handle) {
  EMULATOR_CALL(allocates);
  auto exec = held<GraphExec>(handle);
  if (exec == nullptr) return call.end(cudaErrorInvalidValue);
  take_device_bytes(-footprint(*exec->graph));
  drop_label(handle);
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t handle, cudaStream_t stream) {
  EMULATOR_CALL();
  auto to = stream_of(stream);
  if (held<GraphExec>(handle) == nullptr || to == nullptr) return call.end(cudaErrorInvalidValue);
  return to->capture == nullptr ? cudaSuccess : call.end(unsupported_in_capture(*to));
}

/* Launches of one instantiated graph run one after the other, on whatever streams. */
cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t to) {
  EMULATOR_CALL();
  auto exec = held<GraphExec>(handle);
  auto stream = stream_of(to);
  if (exec == nullptr || stream == nullptr) return call.end(cudaErrorInvalidValue);
  if (stream->capture != nullptr) return call.end(unsupported_in_capture(*stream));
  Entry entry;
  if (exec->last != nullptr) entry.task.after = {exec->last};
  exec->last = entry.task.done;
  entry.graph = std::make_unique<GraphRun>();
  GraphRun &run = *entry.graph;
  run.graph = exec->graph;
  run.left = run.graph->nodes.size();
  for (const Node &node : run.graph->nodes) {
    Task &task = run.tasks.emplace_back();
    task.work = std::shared_ptr<const Work>(run.graph, &node.work);
    run.blocked_by.push_back(node.after.size());
    run.weights.push_back(uint64_t{1} << random_below(6));
    if (node.waits != nullptr && node.waits->record != nullptr) task.after = {node.waits->record};
    if (node.records != nullptr) node.records->record = task.done;
  }
  enqueue(call, *stream, std::move(entry));
  return cudaSuccess;
}
