/* What the emulator's files share. One mutex guards all of its state; a Call holds it for the length of an API call,
 * and work runs without it. */
#ifndef TESTS_CUDA_EMULATOR_INTERNAL_H
#define TESTS_CUDA_EMULATOR_INTERNAL_H

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "emulator.h"

namespace emulator {

/* --- Settings, reports, calls (device.cpp) ------------------------------------------------------------------------ */

struct Settings {
  int devices = 1, driver = CUDART_VERSION, arch = 90;
  uint64_t seed = 1;
  size_t memory = size_t{16} << 30, others = 0;
  std::string fail;  // name of the function
  int64_t fail_at = 0;
  bool protect = false, strict = false;
  bool by_priority = false;
  int64_t stamp_us = 0;            // that a time stamp takes
  int64_t engine_that_fails = -1;  // of cuDNN
  std::string fault;               // kind of the kernel that goes wrong
  std::string fault_in;            // how its name begins
  int64_t fault_at = 0;
};
const Settings &settings();

/* Fills the first MiB and the last one: memory that nobody reads costs time only where it is written. */
void fill_ends(void *at, unsigned char value, size_t bytes);

/* Writes zeros, where pages are the process's own and many by giving them back: they come as zeros when they are
 * touched. */
void fill_with_zeros(char *at, size_t bytes);

std::mutex &mutex();

/* Says on stderr what the program did wrong, after the name of the call or of the work. Needs the mutex. */
void misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Makes every later call fail. */
void set_sticky(cudaError_t error);
cudaError_t sticky();

enum Trait : unsigned {
  anywhere = 1,  // needs no device
  unsafe = 2,    // not during a stream capture
  allocates = 4  // counted as an allocation
};

/* The frame of every API call: takes the mutex and finds out whether the call may go ahead. */
class Call {
 public:
  explicit Call(const char *name, unsigned traits = 0);
  ~Call();
  Call(const Call &) = delete;
  Call &operator=(const Call &) = delete;
  cudaError_t error() const { return error_; }
  /* Remembers a failure for cudaGetLastError. */
  cudaError_t end(cudaError_t result);

  std::unique_lock<std::mutex> lock;

 private:
  cudaError_t error_ = cudaSuccess;
  const char *outer_;
};

/* Work that the device thread does under a name, for reports; `callback`: it is user code, which must not call CUDA. */
class Doing {
 public:
  Doing(const char *what, bool callback);
  ~Doing();
  Doing(const Doing &) = delete;
  Doing &operator=(const Doing &) = delete;
};

/* Below `n`, from the seed. */
uint64_t random_below(uint64_t n);

/* --- Handles (handles.cpp) ---------------------------------------------------------------------------------------- */

/* A handle is the address of a label that is never used again: one that was destroyed stays known as such. */
void *add_label(const char *kind, std::shared_ptr<void> object);
/* The object; NULL, and misuse, where the handle is not a live one of the kind. */
std::shared_ptr<void> find_label(const char *kind, const void *handle);
void drop_label(const void *handle);
/* Reports what is live, for the end. */
void report_live_labels();

template <class T>
void *hold(std::shared_ptr<T> object) {
  return add_label(T::kind, std::move(object));
}
template <class T>
std::shared_ptr<T> held(const void *handle) {
  return std::static_pointer_cast<T>(find_label(T::kind, handle));
}

/* --- Memory (memory.cpp, vmm.cpp) --------------------------------------------------------------------------------- */

enum class Where { device, pinned, pageable, bad };
/* Where a range lies; bad: partly in a place or beyond its end. An empty range is pageable. */
Where where_is(const void *at, size_t bytes);
bool on_device(const void *at, size_t bytes);

/* Device memory that the driver and the libraries take for themselves. */
constexpr int64_t context_bytes = int64_t{200} << 20;
void take_device_bytes(int64_t bytes);
/* Takes memory for a kernel's code when it is asked for first, and gives it back never; false where none is left. */
bool load_code(const std::string &kernel, int64_t bytes);
/* Whether so much is left. */
bool device_has(size_t bytes);
void report_memory_leaks();
/* Under the setting `protect`: opens device memory to the work that comes, or closes it. */
void open_memory(bool open);
bool memory_is_open();
/* The device memory that kernels can write to, as it is now. */
struct Image {
  char *at;
  std::string bytes;
};
std::vector<Image> device_images();

/* Of vmm.cpp, for where_is and open_memory. */
bool in_reservation(const void *at);
bool mapping_covers(const void *at, size_t bytes);
void open_mappings(bool open);
void add_mapping_images(std::vector<Image> *to);
void report_mapping_leaks();

/* --- Streams and work (scheduler.cpp) ----------------------------------------------------------------------------- */

struct Completion {
  bool done = false;
  std::chrono::steady_clock::time_point at;
};
using Gate = std::shared_ptr<Completion>;

enum class Kind { copy, kernel, callback };  // a callback is the program's own code

struct Work {
  std::string what;
  std::vector<std::function<void()>> steps;  // in this order, other work between them
  Kind kind = Kind::copy;
};

struct Event;
struct Capture;

struct Node {
  Work work;
  std::vector<size_t> after;              // earlier nodes
  std::shared_ptr<Event> records, waits;  // an external record or wait
};
struct Graph {
  static constexpr const char *kind = "graph";
  std::vector<Node> nodes;
};
struct GraphExec {
  static constexpr const char *kind = "instantiated graph";
  std::shared_ptr<const Graph> graph;
  Gate last;  // of the launches
};

struct Task {
  std::shared_ptr<const Work> work;
  size_t step = 0;
  bool handed = false;  // to the thread of host functions, which has not done it yet
  std::vector<Gate> after;
  Gate done = std::make_shared<Completion>();
};
struct GraphRun {
  std::shared_ptr<const Graph> graph;
  std::vector<Task> tasks;
  std::vector<size_t> blocked_by;  // unfinished nodes before each
  std::vector<uint64_t> weights;
  size_t left = 0;
};
struct Entry {
  Task task;
  std::unique_ptr<GraphRun> graph;
};

struct Stream {
  static constexpr const char *kind = "stream";
  std::deque<Entry> entries;
  uint64_t weight = 1;  // how likely the device goes on here
  int priority = 0;     // the most is the least number
  bool gone = false;    // destroyed: forgotten when empty
  Gate last;            // of what was enqueued
  std::shared_ptr<Capture> capture;
  std::vector<size_t> tail;  // under capture: the nodes that the next one comes after
};

struct Event {
  static constexpr const char *kind = "event";
  bool timing = true;
  Gate record;  // the latest
  std::shared_ptr<Capture> capture;
  std::vector<size_t> nodes;  // of the capture
};

std::shared_ptr<Stream> make_stream(int priority);
/* Enqueues, and lets the device do some work. */
void enqueue(Call &call, Stream &stream, Entry entry);
/* Lets the device work until the gate is done; gives the device's error. */
cudaError_t finish(Call &call, const Gate &gate);
cudaError_t finish_all(Call &call);
/* Lets the device do up to `n` steps. */
void advance(Call &call, uint64_t n);
/* How eager the device is and which streams it favours, drawn anew. */
void draw_habits();
void forget_stream(const std::shared_ptr<Stream> &stream);
void stop_device();

/* --- Faults (faults.cpp) ------------------------------------------------------------------------------------------ */

/* Does a step of a kernel, unless it is the one that goes wrong. Without the mutex. */
void run_kernel(const std::string &name, const std::function<void()> &step);
/* Whether a kernel hangs. */
bool hangs();

/* --- Capture (capture.cpp) ---------------------------------------------------------------------------------------- */

/* Whether a call with the trait `unsafe` is refused now; the captures that refuse it become invalid. */
bool capture_refuses();
void invalidate(Capture &capture);
cudaError_t capture_work(Stream &stream, Node node);
cudaError_t capture_record(Stream &stream, Event &event);
/* For a stream and an event of which at least one is of a capture. */
cudaError_t capture_wait(const std::shared_ptr<Stream> &stream, const Event &event);

/* The stream of a handle; NULL, and misuse, for the legacy stream as well. */
std::shared_ptr<Stream> stream_of(cudaStream_t handle);
/* Work to a stream, captured or enqueued. */
cudaError_t submit(Call &call, Stream &stream, Work work);
cudaError_t unsupported_in_capture(Stream &stream);

}  // namespace emulator

/* Takes the mutex, and returns where the call may not go ahead. */
#define EMULATOR_CALL(...)                              \
  emulator::Call call(__func__, unsigned{__VA_ARGS__}); \
  if (call.error() != cudaSuccess) return call.end(call.error())

#endif
