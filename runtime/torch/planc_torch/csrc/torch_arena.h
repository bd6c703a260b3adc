/* Memory at a plan's addresses (planrt/follow.h): an arena of the plan's size, of which storages have extents, and what
 * is beside it of a followed step. An extent is given to one storage at a time, whatever is asked for.
 *
 * What frees memory is told an address only. So the process has one list of arenas, and one allocator, which PyTorch
 * does not let go of any more: it stands before the one that was there and gives what that gives, but while a call of a
 * followed step runs in this thread (placing.h). */
#ifndef PLANC_TORCH_TORCH_ARENA_H
#define PLANC_TORCH_TORCH_ARENA_H

#include <c10/core/Allocator.h>
#include <c10/core/StorageImpl.h>
#include <pthread.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

using StorageRef = c10::intrusive_ptr<c10::StorageImpl>;

/* A reference that does not keep a storage's memory. */
class Weak {
 public:
  Weak() = default;
  explicit Weak(c10::StorageImpl *storage) : storage_(storage) {
    if (storage_) c10::raw::weak_intrusive_ptr::incref(storage_);
  }
  Weak(Weak &&other) noexcept : storage_(std::exchange(other.storage_, nullptr)) {}
  Weak &operator=(Weak &&other) noexcept {
    std::swap(storage_, other.storage_);
    return *this;
  }
  ~Weak() {
    if (storage_) c10::raw::weak_intrusive_ptr::decref(storage_);
  }
  StorageRef lock() const {
    return storage_ ? StorageRef::reclaim(c10::raw::weak_intrusive_ptr::lock(storage_)) : StorageRef();
  }

 private:
  c10::StorageImpl *storage_ = nullptr;
};

/* What a followed step has beside the arena: bytes, and the most that they have been. */
struct Beside {
  int64_t bytes = 0, peak = 0;
};

struct Extent {
  int64_t bytes;
  bool is_reserved; /* nobody has it yet */
  bool is_fixed;    /* who has it knows where it is */
  Weak storage;     /* that has it, if that is known */
};

/* All below `mutex` of the list of arenas. */
struct Arena {
  char *base;
  int64_t bytes;
  bool poisons = false, is_closed = false;
  std::map<int64_t, Extent> extents; /* by address */

  explicit Arena(int64_t size) : base(nullptr), bytes(size) {
    void *memory = nullptr;
    if (posix_memalign(&memory, 4096, static_cast<size_t>(size))) throw std::bad_alloc();
    base = static_cast<char *>(memory);
  }
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;
  ~Arena() { free(base); }

  bool has(const void *data) const {
    return static_cast<const char *>(data) >= base && static_cast<const char *>(data) < base + bytes;
  }
  /* The first extent that ends behind an address. */
  std::map<int64_t, Extent>::iterator behind(int64_t address) {
    auto at = extents.upper_bound(address);
    if (at == extents.begin()) return at;
    auto before = std::prev(at);
    return before->first + before->second.bytes > address ? before : at;
  }
  bool is_free(int64_t address, int64_t size) {
    auto at = behind(address);
    return address >= 0 && size <= bytes - address && (at == extents.end() || at->first >= address + size);
  }
  bool take(int64_t address, int64_t size, bool reserves) {
    if (!is_free(address, size)) return false;
    extents.emplace(address, Extent{size, reserves, false, Weak()});
    return true;
  }
  /* An address between two where so many bytes are free, -1. */
  int64_t gap(int64_t from, int64_t to, int64_t size) {
    constexpr int64_t ALIGNMENT = 64;
    int64_t address = from;
    for (auto at = behind(from); at != extents.end() && at->first < address + size; ++at)
      address = (at->first + at->second.bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return address + size <= to ? address : -1;
  }
  void drop(int64_t address) {
    auto at = extents.find(address);
    if (at == extents.end()) return;
    if (poisons) memset(base + address, 0xFF, static_cast<size_t>(at->second.bytes));
    extents.erase(at);
  }
};

/* --- All of the process ------------------------------------------------------------------------------------------- */

struct Block {
  int64_t bytes;
  std::shared_ptr<Beside> beside;
};

struct Arenas {
  std::mutex mutex;
  std::map<char *, std::shared_ptr<Arena>> by_base;
  std::unordered_map<void *, Block> blocks; /* beside them */
  c10::Allocator *before = nullptr;

  std::shared_ptr<Arena> *find(const void *data) {
    auto at = by_base.upper_bound(static_cast<char *>(const_cast<void *>(data)));
    if (at == by_base.begin()) return nullptr;
    --at;
    return at->second->has(data) ? &at->second : nullptr;
  }
};

/* Not freed: storages may outlive all else. */
Arenas &arenas() {
  static Arenas *all = new Arenas;
  return *all;
}

void forget_if_empty(Arenas &all, const std::shared_ptr<Arena> &arena, std::shared_ptr<Arena> *gone) {
  if (!arena->is_closed || !arena->extents.empty()) return;
  *gone = arena;
  all.by_base.erase(gone->get()->base);
}

/* placing.h: what is told of the allocations of this thread. */
void tell_allocated(void *data, size_t bytes);
void tell_freed(void *data);

void free_memory(void *data) {
  Arenas &all = arenas();
  std::shared_ptr<Arena> gone;
  tell_freed(data);
  {
    std::lock_guard<std::mutex> lock(all.mutex);
    if (std::shared_ptr<Arena> *arena = all.find(data)) {
      (*arena)->drop(static_cast<char *>(data) - (*arena)->base);
      forget_if_empty(all, *arena, &gone);
      return;
    }
    auto block = all.blocks.find(data);
    if (block != all.blocks.end()) {
      block->second.beside->bytes -= block->second.bytes;
      all.blocks.erase(block);
    }
  }
  all.before->raw_deleter()(data);
}

c10::DataPtr owned(void *data) {
  return {data, data, free_memory, c10::Device(c10::DeviceType::CPU)};
}

c10::DataPtr allocate_beside(const std::shared_ptr<Beside> &beside, int64_t bytes) {
  Arenas &all = arenas();
  if (bytes == 0) return {nullptr, c10::Device(c10::DeviceType::CPU)};
  void *data = all.before->raw_allocate(static_cast<size_t>(bytes));
  std::lock_guard<std::mutex> lock(all.mutex);
  all.blocks[data] = {bytes, beside};
  beside->bytes += bytes;
  if (beside->bytes > beside->peak) beside->peak = beside->bytes;
  return owned(data);
}

/* --- The allocator ------------------------------------------------------------------------------------------------ */

bool is_placing();                      /* placing.h: whether a call of a followed step runs in this thread */
c10::DataPtr allocate_for_call(size_t); /* then */

class PlacingAllocator final : public c10::Allocator {
 public:
  /* One of these two is PyTorch's, according to its version. */
  c10::DataPtr allocate(size_t bytes) const { return get(bytes); }
  c10::DataPtr allocate(size_t bytes) { return get(bytes); }
  c10::DeleterFnPtr raw_deleter() const override { return free_memory; }
  void copy_data(void *to, const void *from, std::size_t bytes) const { memcpy(to, from, bytes); }

 private:
  static c10::DataPtr get(size_t bytes) {
    if (bytes > 0 && is_placing()) return allocate_for_call(bytes);
    c10::DataPtr data = arenas().before->allocate(bytes);
    bool is_ours = data.compare_exchange_deleter(arenas().before->raw_deleter(), free_memory);
    (void)is_ours; /* else it is freed as it was to be */
    tell_allocated(data.get(), bytes);
    return data;
  }
};

/* False: what PyTorch has does not free by address. */
bool install_allocator() {
  constexpr uint8_t PRIORITY = 255;
  Arenas &all = arenas();
  if (all.before) return true;
  c10::Allocator *before = c10::GetAllocator(c10::DeviceType::CPU);
  if (!before || !before->raw_deleter()) return false;
  all.before = before;
  /* A child's other threads, one of which may have it locked, are none. */
  pthread_atfork([] { arenas().mutex.lock(); }, [] { arenas().mutex.unlock(); }, [] { arenas().mutex.unlock(); });
  c10::SetAllocator(c10::DeviceType::CPU, new PlacingAllocator, PRIORITY);
  return true;
}

}  // namespace

#endif
