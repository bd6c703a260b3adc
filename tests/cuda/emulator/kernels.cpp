/* Runs the threads of a block. A fiber runs threads one after the other until one has to wait; then another fiber takes
 * the threads that have not begun. So a block without barriers needs a single fiber, and one with barriers a fiber per
 * thread. */
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#include <memory>
#include <vector>

#include "device_clock.h"
#include "emulated_kernels.h"

namespace emulator {

__thread Place place;

namespace {

constexpr size_t STACK_BYTES = size_t{256} << 10, SHARED_BYTES = size_t{48} << 10, GUARD_BYTES = 64;
constexpr unsigned WARP = 32, MOST_THREADS = 1024;
constexpr unsigned char UNWRITTEN = 0xff, GUARD = 0xa7;

[[noreturn]] void fail(const char *what) {
  fprintf(stderr, "emulator: block (%u, %u, %u): %s\n", place.block.x, place.block.y, place.block.z, what);
  abort();
}

enum class State { fresh, ready, at_barrier, at_exchange, ended };

struct Thread {
  State state = State::fresh;
  unsigned exchanges = 0;
  uint64_t posted[2] = {}; /* a lane may be one exchange ahead of another */
};

/* The compiler's own setjmp and longjmp, as the library's believes that a jump to another stack unwinds this one. */
struct Jump {
  void *at[5];
};

struct Fiber {
  std::unique_ptr<char[]> stack{new char[STACK_BYTES]};
  size_t stack_bytes; /* not quite all, so that stacks do not compete for the same lines of a cache */
  Jump at;
  bool begun = false;
  int thread = -1; /* that it runs */
};

struct Declaration {
  const void *key;
  size_t first, bytes;
};

/* The device, one for every thread of the host that runs kernels. */
struct Multiprocessor {
  std::vector<Thread> threads;
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<Fiber *> idle;
  std::vector<Fiber *> of_thread;
  unsigned next = 0; /* thread that has not begun */
  Fiber *running = nullptr;
  Jump scheduler;
  const std::function<void()> *body = nullptr;
  alignas(64) unsigned char shared[SHARED_BYTES + GUARD_BYTES];
  size_t shared_used = 0;
  std::vector<Declaration> declarations;

  void run_block(unsigned n, const std::function<void()> &thread);
  void resume(Fiber *fiber);
  void resume_thread(unsigned t);
  void run_warp(size_t first);
  bool release();
  void check_guards() const;
};

thread_local std::unique_ptr<Multiprocessor> device;
__thread Multiprocessor *present; /* the same, at hand */

Multiprocessor &here() {
  if (present) return *present;
  device.reset(new Multiprocessor);
  present = device.get();
  return *present;
}

void stand_at(unsigned t) {
  place.thread = {t, 0, 0};
}

/* --- Fibers ------------------------------------------------------------------------------------------------------- */

/* The address sanitizer would take what a jump leaves behind for dead. */
#define CHANGES_STACKS [[gnu::noinline, gnu::no_sanitize_address]]

[[noreturn]] CHANGES_STACKS void jump(Jump &to) {
  __builtin_longjmp(to.at, 1);
}

/* Back to the scheduler, until the fiber is resumed. */
CHANGES_STACKS void leave(Multiprocessor &mp) {
  if (__builtin_setjmp(mp.running->at.at) == 0) jump(mp.scheduler);
}

void fiber_main() {
  Multiprocessor &mp = here();
  for (;;) {
    Fiber *self = mp.running;
    while (mp.next < mp.threads.size()) {
      unsigned t = mp.next++;
      self->thread = static_cast<int>(t);
      mp.of_thread[t] = self;
      stand_at(t);
      (*mp.body)();
      mp.threads[t].state = State::ended;
    }
    mp.idle.push_back(self);
    leave(mp);
  }
}

/* Begins on a stack of its own. */
[[noreturn]] CHANGES_STACKS void begin(Fiber *fiber) {
  ucontext_t start;
  getcontext(&start);
  start.uc_stack.ss_sp = fiber->stack.get();
  start.uc_stack.ss_size = fiber->stack_bytes;
  start.uc_link = nullptr;
  makecontext(&start, fiber_main, 0);
  setcontext(&start);
  abort();
}

CHANGES_STACKS void Multiprocessor::resume(Fiber *fiber) {
  running = fiber;
  if (__builtin_setjmp(scheduler.at) != 0) return;
  if (fiber->begun) jump(fiber->at);
  fiber->begun = true;
  begin(fiber);
}

void Multiprocessor::resume_thread(unsigned t) {
  stand_at(t);
  resume(of_thread[t]);
}

void wait_as(State state) {
  Multiprocessor &mp = here();
  unsigned t = place.thread.x;
  mp.threads[t].state = state;
  leave(mp);
}

/* --- A block ------------------------------------------------------------------------------------------------------ */

/* Runs a warp as far as it goes without the others: what has to wait for them must say so. */
void Multiprocessor::run_warp(size_t first) {
  size_t lanes = std::min<size_t>(WARP, threads.size() - first), met;
  do {
    met = 0;
    for (size_t t = first; t < first + lanes; t++) {
      if (threads[t].state == State::ready) resume_thread(static_cast<unsigned>(t));
      met += threads[t].state == State::at_exchange;
    }
    if (met > 0 && met < lanes) fail("a shuffle that not all lanes reach");
    for (size_t t = first; met > 0 && t < first + lanes; t++) threads[t].state = State::ready;
  } while (met > 0);
}

/* Makes ready the threads of a block that has met at a barrier; false: all have ended. */
bool Multiprocessor::release() {
  size_t ended = 0;
  for (const Thread &thread : threads) ended += thread.state == State::ended;
  if (ended == threads.size()) return false;
  if (ended > 0) fail("a barrier that not all threads reach");
  for (Thread &thread : threads) thread.state = State::ready;
  return true;
}

void Multiprocessor::check_guards() const {
  for (const Declaration &of : declarations)
    for (size_t i = 0; i < GUARD_BYTES; i++)
      if (shared[of.first + of.bytes + i] != GUARD) fail("a write behind the end of shared memory");
}

void Multiprocessor::run_block(unsigned n, const std::function<void()> &thread) {
  body = &thread;
  threads.assign(n, Thread());
  of_thread.assign(n, nullptr);
  next = 0;
  declarations.clear();
  shared_used = 0;
  while (next < n) {
    if (idle.empty()) {
      fibers.emplace_back(new Fiber);
      fibers.back()->stack_bytes = STACK_BYTES - fibers.size() % 64 * 64;
      idle.push_back(fibers.back().get());
    }
    Fiber *fiber = idle.back();
    idle.pop_back();
    resume(fiber);
  }
  size_t warps = (n + WARP - 1) / WARP;
  do {
    for (size_t w = 0; w < warps; w++) run_warp((place.block.x % 2 ? warps - 1 - w : w) * WARP);
  } while (release());
  check_guards();
}

/* --- A grid ------------------------------------------------------------------------------------------------------- */

uint64_t greatest_divisor(uint64_t a, uint64_t b) {
  while (b != 0) std::swap(a %= b, b);
  return a;
}

/* Every block once, by a stride that has no divisor in common with their number, from a place that differs from launch
 * to launch. */
void run_grid(dim3 grid, dim3 block, const std::function<void()> &thread) {
  static __thread uint64_t launches;
  uint64_t blocks = uint64_t{grid.x} * grid.y * grid.z, stride = blocks / 2 + 1;
  while (greatest_divisor(stride, blocks) != 1) stride++;
  place.grid_size = {grid.x, grid.y, grid.z};
  place.block_size = {block.x, 1, 1};
  uint64_t at = launches++ * 7919 % blocks;
  for (uint64_t i = 0; i < blocks; i++, at = (at + stride) % blocks) {
    place.block = {static_cast<unsigned>(at % grid.x), static_cast<unsigned>(at / grid.x % grid.y),
                   static_cast<unsigned>(at / grid.x / grid.y)};
    here().run_block(block.x, thread);
  }
}

}  // namespace

cudaError_t launch_grid(dim3 grid, dim3 block, size_t shared, cudaStream_t stream, std::function<void()> thread) {
  constexpr unsigned MOST_ACROSS = 0x7fffffff, MOST_DOWN = 65535;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > MOST_ACROSS || grid.y > MOST_DOWN || grid.z > MOST_DOWN ||
      block.x == 0 || block.x > MOST_THREADS || block.y != 1 || block.z != 1 || shared != 0)
    return cudaErrorInvalidConfiguration;
  return emulator_enqueue(stream, [grid, block, thread] { run_grid(grid, block, thread); });
}

void *shared_memory(const void *key, size_t bytes) {
  Multiprocessor &mp = here();
  for (const Declaration &of : mp.declarations)
    if (of.key == key) return mp.shared + of.first;
  size_t first = (mp.shared_used + 63) / 64 * 64;
  if (first + bytes + GUARD_BYTES > sizeof mp.shared) fail("more shared memory than there is");
  mp.declarations.push_back({key, first, bytes});
  mp.shared_used = first + bytes + GUARD_BYTES;
  memset(mp.shared + first, UNWRITTEN, bytes);
  memset(mp.shared + first + bytes, GUARD, GUARD_BYTES);
  return mp.shared + first;
}

void barrier() {
  wait_as(State::at_barrier);
}

uint64_t exchange(uint64_t own, unsigned from) {
  Multiprocessor &mp = here();
  unsigned t = place.thread.x, first = t / WARP * WARP;
  unsigned turn = mp.threads[t].exchanges++ % 2;
  mp.threads[t].posted[turn] = own;
  wait_as(State::at_exchange);
  if (first + from >= mp.threads.size()) fail("a shuffle from a lane that is not there");
  return mp.threads[first + from].posted[turn];
}

uint64_t clock_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now().time_since_epoch()).count());
}

void sleep_ns(unsigned ns) {
  slept_ns += ns;
}

}  // namespace emulator
