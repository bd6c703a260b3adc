/* Streams, events, and what is enqueued: copies, fills, host functions, kernels. */
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "internal.h"

namespace emulator {

std::shared_ptr<Stream> stream_of(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread) {
    misuse("uses a default stream, which waits for others");
    return nullptr;
  }
  return held<Stream>(handle);
}

cudaError_t submit(Call &call, Stream &stream, Work work) {
  if (stream.capture != nullptr) return capture_work(stream, Node{std::move(work), {}, nullptr, nullptr});
  Entry entry;
  entry.task.work = std::make_shared<const Work>(std::move(work));
  enqueue(call, stream, std::move(entry));
  return cudaSuccess;
}

namespace {

const char *name_of(Where where) {
  switch (where) {
    case Where::device:
      return "device";
    case Where::pinned:
      return "pinned";
    case Where::pageable:
      return "pageable";
    default:
      return "no known";
  }
}

struct Copy {
  char *to;
  const char *from;
  size_t bytes;
  Where to_where, from_where;
  std::shared_ptr<std::string> staged;  // what a pageable source held at the call
};

/* Memory that has been freed since the call is no longer what it was. */
bool still_there(const Copy &copy) {
  std::lock_guard<std::mutex> lock(mutex());
  if (where_is(copy.to, copy.bytes) == copy.to_where &&
      (copy.staged != nullptr || where_is(copy.from, copy.bytes) == copy.from_where))
    return true;
  misuse("memory was freed or unregistered before the work ran");
  set_sticky(cudaErrorIllegalAddress);
  return false;
}

void copy_part(const Copy &copy, size_t from, size_t to) {
  const char *source = copy.staged != nullptr ? copy.staged->data() : copy.from;
  if (from < to && still_there(copy)) memmove(copy.to + from, source + from, to - from);
}

constexpr int most_priority = -5;

/* In two parts and either order: what is enqueued elsewhere may see one without the other. */
Work copy_work(const Copy &copy) {
  size_t middle = random_below(copy.bytes + 1);
  bool last_first = random_below(2) == 1;
  auto head = [copy, middle] { copy_part(copy, 0, middle); };
  auto rest = [copy, middle] { copy_part(copy, middle, copy.bytes); };
  Work work{"copy", {head, rest}, Kind::copy};
  if (last_first) std::swap(work.steps[0], work.steps[1]);
  return work;
}

bool direction_fits(cudaMemcpyKind kind, const Copy &copy) {
  bool to_device = copy.to_where == Where::device, from_device = copy.from_where == Where::device;
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return to_device && !from_device;
    case cudaMemcpyDeviceToHost:
      return !to_device && from_device;
    case cudaMemcpyDeviceToDevice:
      return to_device && from_device;
    case cudaMemcpyHostToHost:
      return !to_device && !from_device;
    default:
      return true;
  }
}

cudaError_t check_copy(const Copy &copy, cudaMemcpyKind kind) {
  if (copy.to_where == Where::bad || copy.from_where == Where::bad || !direction_fits(kind, copy)) {
    misuse("%zu bytes from %s to %s memory", copy.bytes, name_of(copy.from_where), name_of(copy.to_where));
    return cudaErrorInvalidValue;
  }
  if (copy.to < copy.from + copy.bytes && copy.from < copy.to + copy.bytes) {
    misuse("source and destination overlap");
    return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

}  // namespace

}  // namespace emulator

using namespace emulator;

/* --- Streams ------------------------------------------------------------------------------------------------------ */

/* A priority out of range is the nearest one. */
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned int flags, int priority) {
  EMULATOR_CALL();
  if (out == nullptr || (flags != cudaStreamDefault && flags != cudaStreamNonBlocking))
    return call.end(cudaErrorInvalidValue);
  *out = static_cast<cudaStream_t>(hold(make_stream(std::clamp(priority, most_priority, 0))));
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned int flags) {
  return cudaStreamCreateWithPriority(out, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t *out) {
  return cudaStreamCreateWithFlags(out, cudaStreamDefault);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  EMULATOR_CALL();
  *least = 0;
  *greatest = most_priority;
  return cudaSuccess;
}

/* Work that is enqueued still runs. */
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  EMULATOR_CALL();
  auto stream = stream_of(handle);
  if (stream == nullptr) return call.end(cudaErrorInvalidResourceHandle);
  if (stream->capture != nullptr) {
    misuse("the stream is capturing");
    return call.end(unsupported_in_capture(*stream));
  }
  forget_stream(stream);
  drop_label(handle);
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  EMULATOR_CALL(unsafe);
  auto stream = stream_of(handle);
  if (stream == nullptr) return call.end(cudaErrorInvalidResourceHandle);
  if (stream->capture != nullptr) return call.end(unsupported_in_capture(*stream));
  return call.end(finish(call, stream->last));
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  EMULATOR_CALL(unsafe);
  auto stream = stream_of(handle);
  if (stream == nullptr) return call.end(cudaErrorInvalidResourceHandle);
  if (stream->capture != nullptr) return call.end(unsupported_in_capture(*stream));
  advance(call, random_below(3));
  return stream->last == nullptr || stream->last->done ? cudaSuccess : call.end(cudaErrorNotReady);
}

cudaError_t cudaDeviceSynchronize(void) {
  EMULATOR_CALL(unsafe);
  return call.end(finish_all(call));
}

/* --- Events ------------------------------------------------------------------------------------------------------- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned int flags) {
  EMULATOR_CALL();
  if (out == nullptr || (flags & ~unsigned{cudaEventBlockingSync | cudaEventDisableTiming}) != 0)
    return call.end(cudaErrorInvalidValue);
  auto event = std::make_shared<Event>();
  event->timing = (flags & cudaEventDisableTiming) == 0;
  *out = static_cast<cudaEvent_t>(hold(event));
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *out) {
  return cudaEventCreateWithFlags(out, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  EMULATOR_CALL();
  if (held<Event>(handle) == nullptr) return call.end(cudaErrorInvalidResourceHandle);
  drop_label(handle);
  return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t to, unsigned int flags) {
  EMULATOR_CALL();
  auto event = held<Event>(handle);
  auto stream = stream_of(to);
  if (event == nullptr || stream == nullptr) return call.end(cudaErrorInvalidResourceHandle);
  if (stream->capture != nullptr)
    return call.end(flags == cudaEventRecordExternal ? capture_work(*stream, Node{{}, {}, event, nullptr})
                                                     : capture_record(*stream, *event));
  if (flags != cudaEventRecordDefault) return call.end(cudaErrorInvalidValue);
  Entry entry;
  if (event->timing && settings().stamp_us > 0)
    entry.task.work = std::make_shared<Work>(
        Work{"time stamp",
             {[] { std::this_thread::sleep_for(std::chrono::microseconds(settings().stamp_us)); }},
             Kind::copy});
  event->record = entry.task.done;
  event->capture = nullptr;
  event->nodes.clear();
  enqueue(call, *stream, std::move(entry));
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

/* For the latest record at this moment; of an event that was never recorded, for nothing. */
cudaError_t cudaStreamWaitEvent(cudaStream_t to, cudaEvent_t handle, unsigned int flags) {
  EMULATOR_CALL();
  auto event = held<Event>(handle);
  auto stream = stream_of(to);
  if (event == nullptr || stream == nullptr) return call.end(cudaErrorInvalidResourceHandle);
  if (stream->capture != nullptr && flags == cudaEventWaitExternal)
    return call.end(capture_work(*stream, Node{{}, {}, nullptr, event}));
  if (flags != cudaEventWaitDefault) return call.end(cudaErrorInvalidValue);
  if (stream->capture != nullptr || event->capture != nullptr) return call.end(capture_wait(stream, *event));
  if (event->record == nullptr) return cudaSuccess;
  Entry entry;
  entry.task.after = {event->record};
  enqueue(call, *stream, std::move(entry));
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  EMULATOR_CALL(unsafe);
  auto event = held<Event>(handle);
  if (event == nullptr) return call.end(cudaErrorInvalidResourceHandle);
  if (event->capture != nullptr) {
    invalidate(*event->capture);
    return call.end(cudaErrorCapturedEvent);
  }
  advance(call, random_below(3));
  return event->record == nullptr || event->record->done ? cudaSuccess : call.end(cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  EMULATOR_CALL(unsafe);
  auto event = held<Event>(handle);
  if (event == nullptr) return call.end(cudaErrorInvalidResourceHandle);
  if (event->capture != nullptr) {
    invalidate(*event->capture);
    return call.end(cudaErrorCapturedEvent);
  }
  return call.end(finish(call, event->record));
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to) {
  EMULATOR_CALL();
  auto begin = held<Event>(from), end = held<Event>(to);
  if (begin == nullptr || end == nullptr) return call.end(cudaErrorInvalidResourceHandle);
  if (!begin->timing || !end->timing || begin->record == nullptr || end->record == nullptr) {
    misuse("an event without time, or never recorded");
    return call.end(cudaErrorInvalidResourceHandle);
  }
  if (!begin->record->done || !end->record->done) return call.end(cudaErrorNotReady);
  *ms = std::chrono::duration<float, std::milli>(end->record->at - begin->record->at).count();
  return cudaSuccess;
}

/* --- Work --------------------------------------------------------------------------------------------------------- */

cudaError_t emulator_enqueue(cudaStream_t to, std::function<void()> work) {
  Call call("kernel launch");
  if (call.error() != cudaSuccess) return call.end(call.error());
  auto stream = stream_of(to);
  if (stream == nullptr) return call.end(cudaErrorInvalidResourceHandle);
  return call.end(submit(call, *stream, Work{"kernel", {std::move(work)}, Kind::kernel}));
}

void emulator_add(cudaStream_t stream, uint32_t *words, size_t count, uint32_t n) {
  (void)emulator_enqueue(stream, [=] { std::for_each(words, words + count, [n](uint32_t &word) { word += n; }); });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t to, cudaHostFn_t function, void *user) {
  EMULATOR_CALL();
  auto stream = stream_of(to);
  if (stream == nullptr) return call.end(cudaErrorInvalidResourceHandle);
  return call.end(submit(call, *stream, Work{"host function", {[=] { function(user); }}, Kind::callback}));
}

/* Pageable memory: a source is read before the call returns, and a destination has been written then. A copy within
 * host memory is over then, pinned or not (CUDA Runtime API, "API synchronization behavior"). */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t handle) {
  EMULATOR_CALL();
  auto stream = stream_of(handle);
  if (stream == nullptr) return call.end(cudaErrorInvalidResourceHandle);
  if (bytes == 0) return cudaSuccess;
  Copy copy{static_cast<char *>(to), static_cast<const char *>(from), bytes,
            where_is(to, bytes),     where_is(from, bytes),           nullptr};
  cudaError_t error = check_copy(copy, kind);
  if (error != cudaSuccess) return call.end(error);
  bool pageable = copy.to_where == Where::pageable || copy.from_where == Where::pageable;
  if (pageable && stream->capture != nullptr) return call.end(unsupported_in_capture(*stream));
  if (copy.from_where == Where::pageable) copy.staged = std::make_shared<std::string>(copy.from, bytes);
  error = submit(call, *stream, copy_work(copy));
  bool within_host = copy.to_where != Where::device && copy.from_where != Where::device;
  bool waits = copy.to_where == Where::pageable || (within_host && stream->capture == nullptr);
  if (error == cudaSuccess && waits) error = finish(call, stream->last);
  return call.end(error);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t handle) {
  EMULATOR_CALL();
  auto stream = stream_of(handle);
  if (stream == nullptr) return call.end(cudaErrorInvalidResourceHandle);
  if (bytes == 0) return cudaSuccess;
  if (!on_device(to, bytes)) {
    misuse("%zu bytes at %p are not of device memory", bytes, to);
    return call.end(cudaErrorInvalidValue);
  }
  Copy fill{static_cast<char *>(to), nullptr, bytes, Where::device, Where::device, std::make_shared<std::string>()};
  bool own = !in_reservation(to);
  auto work = [fill, value, own] {
    if (!still_there(fill)) return;
    if (own && value == 0)
      fill_with_zeros(fill.to, fill.bytes);
    else
      memset(fill.to, value, fill.bytes);
  };
  return call.end(submit(call, *stream, Work{"fill", {work}, Kind::copy}));
}
