/* Device memory, pinned and registered host memory: who lies where, what is free, what was touched that must not be. */
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "internal.h"

namespace emulator {

void fill_ends(void *at, unsigned char value, size_t bytes) {
  size_t end = std::min(bytes, size_t{1} << 20);
  memset(at, value, end);
  memset(static_cast<char *>(at) + bytes - end, value, end);
}

void fill_with_zeros(char *at, size_t bytes) {
  constexpr size_t large = size_t{2} << 20;
  auto first = reinterpret_cast<uintptr_t>(at);
  size_t before = (large - first % large) % large;
  if (bytes < before + large) {
    memset(at, 0, bytes);
    return;
  }
  size_t inside = (bytes - before) / large * large;
  memset(at, 0, before);
  if (madvise(at + before, inside, MADV_DONTNEED) != 0) memset(at + before, 0, inside);
  memset(at + before + inside, 0, bytes - before - inside);
}

namespace {

constexpr size_t unit = size_t{2} << 20;  // what is not small takes whole ones; so does code
constexpr size_t page = 4096, alignment = 256, filled = size_t{4} << 20;
constexpr unsigned char slack_byte = 0xc5, fresh_byte = 0xff;  // fresh memory: NaNs, whatever the type

/* Memory between two pages that fault. It ends where the mapping's accessible part ends, but for alignment. */
struct Block {
  Where where;
  char *begin;
  size_t bytes;
  char *pages;  // first accessible one; NULL: the program's own, registered memory
  size_t page_bytes;
};

struct Memory {
  std::map<const char *, Block> blocks;  // by their first byte
  int64_t taken = 0, code_left = 0;      // in the last block of code
  std::set<std::string> code;            // of these kernels
  bool open = true;
};

Memory &memory() {
  static Memory *const the = new Memory;
  return *the;
}

size_t round_up(size_t n, size_t to) {
  return (n + to - 1) / to * to;
}

/* What an allocation takes of the device. */
size_t room_of(size_t bytes) {
  return bytes < unit / 2 ? bytes : round_up(bytes, unit);
}

/* The block that a byte lies in. */
const Block *block_of(const char *at) {
  auto next = memory().blocks.upper_bound(at);
  if (next == memory().blocks.begin()) return nullptr;
  const Block &block = std::prev(next)->second;
  return static_cast<size_t>(at - block.begin) < block.bytes ? &block : nullptr;
}

bool any_block_in(const char *at, size_t bytes) {
  auto next = memory().blocks.lower_bound(at);
  return block_of(at) != nullptr || (next != memory().blocks.end() && next->first < at + bytes);
}

char *make_block(Where where, size_t bytes) {
  size_t inside = round_up(round_up(bytes, alignment), page);
  void *all = mmap(nullptr, inside + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  char *pages = static_cast<char *>(all) + page;
  mprotect(pages, inside, PROT_READ | PROT_WRITE);
  madvise(pages, inside, MADV_HUGEPAGE); /* it is protected, and not, at every piece of work */
  char *begin = pages + inside - round_up(bytes, alignment);
  memset(pages, slack_byte, static_cast<size_t>(begin - pages));
  memset(begin, fresh_byte, std::min(bytes, filled));
  memset(begin + bytes, slack_byte, static_cast<size_t>(pages + inside - begin) - bytes);
  if (where == Where::device && !memory().open) mprotect(pages, inside, PROT_NONE);
  memory().blocks[begin] = {where, begin, bytes, pages, inside};
  if (where == Where::device) take_device_bytes(static_cast<int64_t>(room_of(bytes)));
  return begin;
}

bool all_slack(const char *from, const char *to) {
  return std::all_of(from, to, [](char c) { return static_cast<unsigned char>(c) == slack_byte; });
}

void drop_block(const Block &block) {
  mprotect(block.pages, block.page_bytes, PROT_READ);
  const char *end = block.begin + block.bytes;
  if (!all_slack(block.pages, block.begin)) misuse("something was written before the %zu bytes", block.bytes);
  if (!all_slack(end, block.pages + block.page_bytes)) misuse("something was written after the %zu bytes", block.bytes);
  munmap(block.pages - page, block.page_bytes + 2 * page);
  if (block.where == Where::device) take_device_bytes(-static_cast<int64_t>(room_of(block.bytes)));
  memory().blocks.erase(block.begin);
}

cudaError_t allocate(Where where, void **out, size_t bytes) {
  if (out == nullptr) return cudaErrorInvalidValue;
  *out = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (bytes > PTRDIFF_MAX / 2 || (where == Where::device && !device_has(room_of(bytes))))
    return cudaErrorMemoryAllocation;
  *out = make_block(where, bytes);
  return *out == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

/* CUDA waits for the device before memory goes. */
cudaError_t release(Call &call, Where where, void *at) {
  if (at == nullptr) return cudaSuccess;
  finish_all(call);
  auto found = memory().blocks.find(static_cast<char *>(at));
  if (found == memory().blocks.end() || found->second.where != where || found->second.pages == nullptr) {
    misuse("%p was not allocated so, or is free already", at);
    return cudaErrorInvalidValue;
  }
  drop_block(found->second);
  return cudaSuccess;
}

}  // namespace

Where where_is(const void *at, size_t bytes) {
  const char *first = static_cast<const char *>(at);
  if (bytes == 0) return Where::pageable;
  if (const Block *block = block_of(first))
    return bytes <= block->bytes - static_cast<size_t>(first - block->begin) ? block->where : Where::bad;
  if (in_reservation(at)) return mapping_covers(at, bytes) ? Where::device : Where::bad;
  return at == nullptr || any_block_in(first, bytes) ? Where::bad : Where::pageable;
}

bool on_device(const void *at, size_t bytes) {
  return where_is(at, bytes) == Where::device;
}

void take_device_bytes(int64_t bytes) {
  memory().taken += bytes;
}

bool load_code(const std::string &kernel, int64_t bytes) {
  Memory &m = memory();
  if (m.code.count(kernel) != 0) return true;
  int64_t more =
      bytes <= m.code_left ? 0 : static_cast<int64_t>(round_up(static_cast<size_t>(bytes - m.code_left), unit));
  if (!device_has(static_cast<size_t>(more))) return false;
  m.code.insert(kernel);
  m.code_left += more - bytes;
  take_device_bytes(more);
  return true;
}

bool device_has(size_t bytes) {
  auto taken = static_cast<size_t>(memory().taken);
  return taken <= settings().memory && bytes <= settings().memory - taken;
}

void open_memory(bool open) {
  if (!settings().protect || memory().open == open) return;
  memory().open = open;
  for (const auto &[begin, block] : memory().blocks)
    if (block.where == Where::device)
      mprotect(block.pages, block.page_bytes, open ? PROT_READ | PROT_WRITE : PROT_NONE);
  open_mappings(open);
}

bool memory_is_open() {
  return memory().open;
}

std::vector<Image> device_images() {
  std::vector<Image> images;
  for (const auto &[begin, block] : memory().blocks)
    if (block.where == Where::device) images.push_back({block.begin, std::string(block.begin, block.bytes)});
  add_mapping_images(&images);
  return images;
}

void report_memory_leaks() {
  for (const auto &[begin, block] : memory().blocks)
    misuse("%zu bytes of %s memory never %s", block.bytes, block.where == Where::device ? "device" : "pinned",
           block.pages == nullptr ? "unregistered" : "freed");
}

}  // namespace emulator

using namespace emulator;

cudaError_t cudaMalloc(void **out, size_t size) {
  EMULATOR_CALL(unsafe | allocates);
  return call.end(allocate(Where::device, out, size));
}

cudaError_t cudaFree(void *at) {
  EMULATOR_CALL(unsafe | allocates);
  return call.end(release(call, Where::device, at));
}

cudaError_t cudaHostAlloc(void **out, size_t size, unsigned int) {
  EMULATOR_CALL(unsafe | allocates);
  return call.end(allocate(Where::pinned, out, size));
}

cudaError_t cudaMallocHost(void **out, size_t size) {
  EMULATOR_CALL(unsafe | allocates);
  return call.end(allocate(Where::pinned, out, size));
}

cudaError_t cudaFreeHost(void *at) {
  EMULATOR_CALL(unsafe | allocates);
  return call.end(release(call, Where::pinned, at));
}

cudaError_t cudaHostRegister(void *at, size_t size, unsigned int) {
  EMULATOR_CALL(unsafe | allocates);
  if (at == nullptr || size == 0) return call.end(cudaErrorInvalidValue);
  char *begin = static_cast<char *>(at);
  if (any_block_in(begin, size)) return call.end(cudaErrorHostMemoryAlreadyRegistered);
  memory().blocks[begin] = {Where::pinned, begin, size, nullptr, 0};
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *at) {
  EMULATOR_CALL(unsafe | allocates);
  auto found = memory().blocks.find(static_cast<char *>(at));
  if (found == memory().blocks.end() || found->second.pages != nullptr) {
    misuse("%p is not registered", at);
    return call.end(cudaErrorHostMemoryNotRegistered);
  }
  memory().blocks.erase(found);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  EMULATOR_CALL();
  *free = settings().memory - std::min(settings().memory, static_cast<size_t>(memory().taken));
  *total = settings().memory;
  return cudaSuccess;
}
