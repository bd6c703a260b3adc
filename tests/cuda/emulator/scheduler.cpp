/* The device: a thread that does the streams' work, in an order that only streams and events restrict.
 *
 * It works when it is granted steps: some at each enqueue, as many as it takes when a call synchronises. A caller waits
 * until its grant is used up, so that the order depends on the seed alone; it does not wait for long while a host
 * function runs, which may in turn wait for the caller. A program that makes no calls for a while gets everything
 * done, since it may wait for a host function.
 *
 * Host functions of all streams run on one more thread, one after the other, as CUDA's may. The device waits for one
 * that is quick, so that the order still depends on the seed alone, and goes on with other streams' work beside one
 * that is not. */
#include <unistd.h>

#include <algorithm>

#include "device_clock.h"
#include "internal.h"

namespace emulator {

namespace {

constexpr auto patience = std::chrono::milliseconds(20), quick = std::chrono::milliseconds(500);
constexpr size_t queue_limit = 1024;

/* A task whose turn it can be. */
struct Candidate {
  Stream *stream;
  Entry *entry;
  Task *task;
  size_t node;  // of the entry's graph
  uint64_t weight;
};

struct Device {
  std::thread thread, host_thread;
  std::condition_variable wakes, callers, host_wakes;
  std::deque<Task *> host_functions;  // the first of them runs
  std::vector<std::shared_ptr<Stream>> streams;
  uint64_t grant = 0;
  Gate goal;              // reached: the grant ends
  uint64_t activity = 0;  // grows with every call that enqueues or waits
  size_t pending = 0;     // entries
  uint64_t burst = 1;     // what an enqueue grants at most, less 1
  pid_t process = 0;      // the one that the thread is in; 0: not started
  bool stop = false;
  bool stalled = false;  // nothing can be done beside a host function that is not quick
};

Device &device() {
  static Device *const the = new Device;
  return *the;
}

uint64_t draw_weight() {
  static constexpr uint64_t weights[] = {1, 8, 8, 64};
  return weights[random_below(4)];
}

bool passed(const std::vector<Gate> &gates) {
  return std::all_of(gates.begin(), gates.end(), [](const Gate &gate) { return gate->done; });
}

void complete(const Gate &gate) {
  gate->done = true;
  gate->at = now();
}

std::vector<Candidate> candidates() {
  std::vector<Candidate> found;
  for (const auto &stream : device().streams) {
    if (stream->entries.empty()) continue;
    Entry &entry = stream->entries.front();
    if (!passed(entry.task.after) || entry.task.handed) continue;
    if (entry.graph == nullptr || entry.graph->left == 0) {
      found.push_back({stream.get(), &entry, &entry.task, 0, stream->weight});
      continue;
    }
    GraphRun &run = *entry.graph;
    for (size_t i = 0; i < run.tasks.size(); i++)
      if (run.blocked_by[i] == 0 && !run.tasks[i].done->done && !run.tasks[i].handed && passed(run.tasks[i].after))
        found.push_back({stream.get(), &entry, &run.tasks[i], i, run.weights[i]});
  }
  return found;
}

/* Leaves those of the highest priority. */
void keep_first(std::vector<Candidate> &all) {
  int first = all.front().stream->priority;
  for (const Candidate &candidate : all) first = std::min(first, candidate.stream->priority);
  all.erase(std::remove_if(all.begin(), all.end(), [first](const auto &c) { return c.stream->priority > first; }),
            all.end());
}

const Candidate &draw(const std::vector<Candidate> &from) {
  uint64_t total = 0;
  for (const Candidate &candidate : from) total += candidate.weight;
  uint64_t at = random_below(total);
  for (const Candidate &candidate : from) {
    if (at < candidate.weight) return candidate;
    at -= candidate.weight;
  }
  return from.back();
}

/* The thread of host functions. */
void run_host_functions() {
  Device &d = device();
  std::unique_lock<std::mutex> lock(mutex());
  while (!d.stop) {
    if (d.host_functions.empty()) {
      d.host_wakes.wait(lock);
      continue;
    }
    Task *task = d.host_functions.front();
    if (sticky() == cudaSuccess) {
      Doing doing(task->work->what.c_str(), true);
      lock.unlock();
      task->work->steps[0]();
      lock.lock();
    }
    task->handed = false;
    task->step = 1;
    d.host_functions.pop_front();
    d.wakes.notify_one();
  }
}

/* Leaves a task to that thread; false when it is not quick about it. */
bool hand_over(std::unique_lock<std::mutex> &lock, Task &task) {
  Device &d = device();
  bool first = d.host_functions.empty();
  task.handed = true;
  d.host_functions.push_back(&task);
  d.host_wakes.notify_one();
  if (first) d.wakes.wait_for(lock, quick, [&] { return !task.handed; });
  return !task.handed;
}

/* False when it is not over: then another thread has it. After an error of the device nothing is done any more, not
 * even host functions. */
bool run(std::unique_lock<std::mutex> &lock, Task &task) {
  std::shared_ptr<const Work> work = task.work;
  bool callback = work->kind == Kind::callback;
  if (sticky() != cudaSuccess) {
    task.step = work->steps.size();
    return true;
  }
  open_memory(!callback);
  if (callback) return hand_over(lock, task);
  Doing doing(work->what.c_str(), false);
  const std::function<void()> &step = work->steps[task.step++];
  lock.unlock();
  if (work->kind == Kind::kernel)
    run_kernel(work->what, step);
  else
    step();
  lock.lock();
  return true;
}

/* What follows when a task has ended. */
void retire(const Candidate &chosen) {
  complete(chosen.task->done);
  if (chosen.task != &chosen.entry->task) {
    GraphRun &graph = *chosen.entry->graph;
    graph.left--;
    for (size_t i = chosen.node + 1; i < graph.tasks.size(); i++) {
      const std::vector<size_t> &after = graph.graph->nodes[i].after;
      graph.blocked_by[i] -= static_cast<size_t>(std::count(after.begin(), after.end(), chosen.node));
    }
    return;
  }
  Stream *stream = chosen.stream;
  stream->entries.pop_front();
  device().pending--;
  if (!stream->gone || !stream->entries.empty()) return;
  auto &all = device().streams;
  all.erase(std::find_if(all.begin(), all.end(), [stream](const auto &s) { return s.get() == stream; }));
}

/* One step of one task; false when there is nothing to do. */
bool step(std::unique_lock<std::mutex> &lock) {
  std::vector<Candidate> all = candidates();
  if (all.empty()) return false;
  if (settings().by_priority) keep_first(all);
  const Candidate chosen = draw(all);
  Task &task = *chosen.task;
  if (task.work != nullptr && task.step < task.work->steps.size()) {
    if (!run(lock, task) || task.step < task.work->steps.size()) return true;
  }
  retire(chosen);
  return true;
}

void work() {
  Device &d = device();
  std::unique_lock<std::mutex> lock(mutex());
  bool idle = false;  // the program makes no calls
  uint64_t seen = 0;
  while (!d.stop) {
    if (d.grant > 0) {
      idle = false;
      bool did = step(lock);
      if (!did && !d.host_functions.empty()) {
        d.stalled = true;
        d.callers.notify_all();
        d.wakes.wait(lock);
        d.stalled = false;
        continue;
      }
      bool more = did && !(d.goal != nullptr && d.goal->done);
      d.grant = more && d.grant > 0 ? d.grant - 1 : 0;
      if (d.grant > 0) continue;
      d.goal = nullptr;
      open_memory(false);
      d.callers.notify_all();
    } else if (idle && seen == d.activity) {
      idle = step(lock);
      open_memory(false);
    } else if (d.pending == 0) {
      idle = false;
      d.wakes.wait(lock);
    } else {
      seen = d.activity;
      idle = d.wakes.wait_for(lock, patience) == std::cv_status::timeout;
    }
  }
}

}  // namespace

void draw_habits() {
  static constexpr uint64_t bursts[] = {1, 2, 4, 16, 256};
  device().burst = bursts[random_below(5)];
  for (const auto &stream : device().streams) stream->weight = draw_weight();
}

void advance(Call &call, uint64_t n) {
  Device &d = device();
  d.activity++;
  d.wakes.notify_one();
  if (d.pending == 0) return;
  d.grant += n;
  while (d.grant > 0 && !d.stalled)
    if (d.callers.wait_for(call.lock, patience) == std::cv_status::timeout && (!d.host_functions.empty() || hangs()))
      return;
}

std::shared_ptr<Stream> make_stream(int priority) {
  Device &d = device();
  if (d.process == 0) {
    d.process = getpid();
    open_memory(false);
    draw_habits();
    d.thread = std::thread(work);
    d.host_thread = std::thread(run_host_functions);
  }
  auto stream = std::make_shared<Stream>();
  stream->weight = draw_weight();
  stream->priority = priority;
  d.streams.push_back(stream);
  return stream;
}

void forget_stream(const std::shared_ptr<Stream> &stream) {
  stream->gone = true;
  auto &all = device().streams;
  if (stream->entries.empty()) all.erase(std::find(all.begin(), all.end(), stream));
}

void enqueue(Call &call, Stream &stream, Entry entry) {
  Device &d = device();
  stream.last = entry.task.done;
  stream.entries.push_back(std::move(entry));
  d.pending++;
  advance(call, d.pending > queue_limit ? queue_limit / 2 : random_below(d.burst));
}

cudaError_t finish(Call &call, const Gate &gate) {
  Device &d = device();
  while (gate != nullptr && !gate->done && sticky() == cudaSuccess) {
    d.activity++;
    d.goal = gate;
    d.grant = std::max<uint64_t>(d.grant, uint64_t{1} << 32);
    d.wakes.notify_one();
    d.callers.wait(call.lock);
  }
  return sticky();
}

cudaError_t finish_all(Call &call) {
  std::vector<Gate> gates;
  for (const auto &stream : device().streams) gates.push_back(stream->last);
  for (const Gate &gate : gates) finish(call, gate);
  return sticky();
}

void stop_device() {
  Device &d = device();
  {
    std::lock_guard<std::mutex> lock(mutex());
    if (d.process != getpid() || d.stop) return;
    if (hangs()) {
      d.thread.detach();
      return d.host_thread.detach();
    }
    if (d.pending > 0 && sticky() == cudaSuccess) misuse("%zu pieces of work have not been waited for", d.pending);
    d.stop = true;
    d.wakes.notify_all();
    d.host_wakes.notify_all();
  }
  d.thread.join();
  d.host_thread.join();
}

}  // namespace emulator
