/* Where the calls of a followed step have their memory (torch_arena.h): the allocator sees the allocations of a call in
 * order, and that order is the one that it had when it was made before, at first when it was recorded. So what becomes
 * a result is put where the plan has it, and what is freed within the call, libraries' workspaces too, into the plan's
 * workspace or wherever the arena has nothing. Whatever is not as it was lies beside the arena until the call has run;
 * then results are moved to their places. */
#ifndef PLANC_TORCH_PLACING_H
#define PLANC_TORCH_PLACING_H

#include "torch_arena.h"

namespace {

/* planrt_rooms. */
struct Rooms {
  int32_t n;
  const int32_t *buffers;
  const int64_t *addresses;
  int64_t workspace, workspace_bytes;
};

constexpr int32_t SCRATCH = -1, KEPT = -2;

/* An allocation of a call: what becomes of it, SCRATCH, KEPT or the number of the result. */
struct Slot {
  int64_t bytes;
  int32_t use;
  bool operator==(const Slot &other) const { return bytes == other.bytes && use == other.use; }
};

struct Placing {
  std::shared_ptr<Arena> arena;
  std::shared_ptr<Beside> beside;
  std::vector<std::vector<Slot>> slots; /* by call */
  std::vector<int64_t> scratch; /* by call: what it freed itself and had beside the arena, when it was made last */
  int32_t n_running = 0;        /* calls that are being made */
  /* Results that were moved to their places, what was moved away as the plan needed its place, and places that were not
   * to be had. */
  int64_t moved_in = 0, moved_out = 0, refused = 0;
};

/* --- Extents ------------------------------------------------------------------------------------------------------ */

bool take(Placing *placing, int64_t address, int64_t bytes, bool reserves) {
  std::lock_guard<std::mutex> lock(arenas().mutex);
  return placing->arena->take(address, bytes, reserves);
}

/* Of a storage's memory; the list of arenas is locked. NULL: it is in none. */
Extent *extent_of(const c10::StorageImpl *storage) {
  const void *data = storage->data_ptr().get();
  std::shared_ptr<Arena> *arena = arenas().find(data);
  if (!arena) return nullptr;
  auto at = (*arena)->extents.find(static_cast<const char *>(data) - (*arena)->base);
  return at == (*arena)->extents.end() ? nullptr : &at->second;
}

/* The storage that has an extent, which is where its memory is. */
void name_extent(c10::StorageImpl *storage) {
  std::lock_guard<std::mutex> lock(arenas().mutex);
  if (Extent *extent = extent_of(storage)) extent->storage = Weak(storage);
}

/* Memory that stays where it is. */
void fix_extent(const c10::StorageImpl *storage) {
  std::lock_guard<std::mutex> lock(arenas().mutex);
  if (Extent *extent = extent_of(storage)) extent->is_fixed = true;
}

bool is_in(const Placing *placing, const c10::StorageImpl *storage) {
  return placing->arena->has(storage->data_ptr().get());
}

/* Gives a storage other memory with its data. */
void move_to(c10::StorageImpl *storage, c10::DataPtr memory) {
  memcpy(memory.get(), storage->data_ptr().get(), storage->nbytes());
  storage->set_data_ptr(std::move(memory));
  name_extent(storage);
}

bool move_out(Placing *placing, c10::StorageImpl *storage) {
  if (!is_in(placing, storage)) return false;
  move_to(storage, allocate_beside(placing->beside, static_cast<int64_t>(storage->nbytes())));
  return true;
}

/* The storages that have something of these bytes and may have it elsewhere; false: somebody else has. */
bool find_there(Placing *placing, int64_t address, int64_t bytes, std::vector<StorageRef> *there) {
  std::vector<StorageRef> others; /* let go of when the list is no longer locked */
  std::lock_guard<std::mutex> lock(arenas().mutex);
  Arena &arena = *placing->arena;
  bool is_known = true;
  for (auto at = arena.behind(address); at != arena.extents.end() && at->first < address + bytes; ++at) {
    StorageRef storage = at->second.storage.lock();
    bool is_its = storage && !at->second.is_fixed && storage->data_ptr().get() == arena.base + at->first;
    if (storage) (is_its ? *there : others).push_back(std::move(storage));
    is_known = is_known && is_its;
  }
  return is_known;
}

/* --- A call ------------------------------------------------------------------------------------------------------- */

class Session {
 public:
  Session(Placing *placing, const std::vector<Slot> &expected, bool is_again)
      : placing_(placing), expected_(expected), is_again_(is_again) {}
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;
  ~Session() {
    for (int64_t address : places_)
      if (address >= 0) give_up(address);
  }

  /* The places of the results in order, -1: it has none. Each is free. */
  void reserve(int64_t address, int64_t bytes) {
    bool has_place = address >= 0 && take(placing_, address, bytes, true);
    places_.push_back(has_place ? address : -1);
  }
  void have_workspace(int64_t address, int64_t bytes) {
    workspace_ = address;
    workspace_bytes_ = bytes;
  }

  c10::DataPtr allocate(int64_t bytes) {
    const Slot *slot = next_of(bytes);
    int32_t use = slot ? slot->use : KEPT;
    bool is_result = use >= 0 && static_cast<size_t>(use) < places_.size();
    int64_t place = is_result ? places_[static_cast<size_t>(use)] : -1;
    char *data = nullptr;
    if (place >= 0)
      data = occupy(place, bytes);
    else if (use == SCRATCH || (is_result && is_again_))
      data = find_scratch(bytes);
    c10::DataPtr memory = data ? owned(data) : allocate_beside(placing_->beside, bytes);
    events_.push_back({{bytes, KEPT}, memory.get(), false});
    return memory;
  }

  void freed(const void *data) {
    for (auto event = events_.rbegin(); event != events_.rend(); ++event) {
      if (event->data != data || event->is_freed) continue;
      event->is_freed = true;
      event->slot.use = SCRATCH;
      return;
    }
  }

  /* The call has given `storage` as its result of this number, which is new and has a place. */
  void made(int32_t result, c10::StorageImpl *storage) {
    const void *data = storage->data_ptr().get();
    bool is_new = false;
    for (Event &event : events_) {
      if (event.data != data || event.is_freed || event.slot.use != KEPT) continue;
      event.slot.use = result;
      is_new = true;
    }
    if (!is_new) return;
    name_extent(storage);
    int64_t place = places_[static_cast<size_t>(result)];
    char *there = place >= 0 ? occupy(place, static_cast<int64_t>(storage->nbytes())) : nullptr;
    if (!there) return;
    move_to(storage, owned(there));
    placing_->moved_in++;
  }

  /* What the call did, for when it is made again. */
  void learn(std::vector<Slot> *slots) const {
    bool is_same = events_.size() == slots->size();
    for (size_t i = 0; is_same && i < events_.size(); i++) is_same = events_[i].slot == (*slots)[i];
    if (is_same) return;
    slots->clear();
    for (const Event &event : events_) slots->push_back(event.slot);
  }

  int64_t scratch_beside() const {
    int64_t bytes = 0;
    for (const Event &event : events_)
      if (event.slot.use == SCRATCH && !placing_->arena->has(event.data)) bytes += event.slot.bytes;
    return bytes;
  }

 private:
  struct Event {
    Slot slot;
    const void *data;
    bool is_freed;
  };

  /* Among those that are expected, the next of this size. */
  const Slot *next_of(int64_t bytes) {
    for (size_t i = next_; i < expected_.size(); i++) {
      if (expected_[i].bytes != bytes) continue;
      next_ = i + 1;
      return &expected_[i];
    }
    return nullptr;
  }

  /* NULL: it is taken, or of another size. */
  char *occupy(int64_t address, int64_t bytes) {
    std::lock_guard<std::mutex> lock(arenas().mutex);
    auto at = placing_->arena->extents.find(address);
    if (at == placing_->arena->extents.end() || !at->second.is_reserved || at->second.bytes != bytes) return nullptr;
    at->second.is_reserved = false;
    return placing_->arena->base + address;
  }

  void give_up(int64_t address) {
    std::lock_guard<std::mutex> lock(arenas().mutex);
    auto at = placing_->arena->extents.find(address);
    if (at != placing_->arena->extents.end() && at->second.is_reserved) placing_->arena->extents.erase(at);
  }

  char *find_scratch(int64_t bytes) {
    std::lock_guard<std::mutex> lock(arenas().mutex);
    Arena &arena = *placing_->arena;
    int64_t address = workspace_bytes_ > 0 ? arena.gap(workspace_, workspace_ + workspace_bytes_, bytes) : -1;
    if (address < 0) address = arena.gap(0, arena.bytes, bytes);
    return address >= 0 && arena.take(address, bytes, false) ? arena.base + address : nullptr;
  }

  Placing *placing_;
  const std::vector<Slot> &expected_;
  bool is_again_;
  size_t next_ = 0;
  int64_t workspace_ = 0, workspace_bytes_ = 0;
  std::vector<int64_t> places_;
  std::vector<Event> events_;
};

thread_local Session *session = nullptr;

bool is_placing() {
  return session != nullptr;
}

c10::DataPtr allocate_for_call(size_t bytes) {
  return session->allocate(static_cast<int64_t>(bytes));
}

/* Allocations of a call that is recorded, in order. */
struct Change {
  void *data;
  int64_t bytes; /* 0: it is freed */
};
thread_local std::vector<Change> *changes = nullptr;

void tell_allocated(void *data, size_t bytes) {
  if (changes && bytes > 0) changes->push_back({data, static_cast<int64_t>(bytes)});
}

void tell_freed(void *data) {
  if (session) session->freed(data);
  if (changes) changes->push_back({data, 0});
}

/* Allocations in this thread are a call's, as long as it lives. */
class Armed {
 public:
  Armed(Session *with, int32_t *n_running) : outer_(session), n_running_(n_running) {
    session = with;
    ++*n_running_;
  }
  ~Armed() {
    session = outer_;
    --*n_running_;
  }
  Armed(const Armed &) = delete;
  Armed &operator=(const Armed &) = delete;

 private:
  Session *outer_;
  int32_t *n_running_;
};

}  // namespace

#endif
