/* The driver's virtual memory management: reserved addresses, physical chunks, mappings, several of one chunk too. The
 * chunks are files in memory. */
#include <cuda.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "internal.h"

namespace emulator {

namespace {

constexpr size_t granularity = size_t{2} << 20;

struct Chunk {
  static constexpr const char *kind = "physical allocation";
  int file;
  size_t bytes;
  ~Chunk() {
    close(file);
    take_device_bytes(-static_cast<int64_t>(bytes));
  }
};

struct Mapping {
  size_t bytes;
  std::shared_ptr<Chunk> chunk;  // its memory lives while it is mapped
  bool accessible;
};

struct Space {
  std::map<const char *, size_t> reservations;
  std::map<const char *, Mapping> mappings;
};

Space &space() {
  static Space *const the = new Space;
  return *the;
}

char *address(CUdeviceptr at) {
  return reinterpret_cast<char *>(at);
}

bool within_reservation(const char *at, size_t bytes) {
  auto next = space().reservations.upper_bound(at);
  if (next == space().reservations.begin()) return false;
  auto [begin, size] = *std::prev(next);
  size_t offset = static_cast<size_t>(at - begin);
  return offset < size && bytes <= size - offset;
}

/* The mappings that a range is made of, whole ones without gaps; false when it is anything else. */
bool exact_mappings(const char *at, size_t bytes, std::vector<const char *> *out) {
  const char *end = at + bytes;
  while (at < end) {
    auto found = space().mappings.find(at);
    if (found == space().mappings.end() || found->second.bytes > static_cast<size_t>(end - at)) return false;
    out->push_back(at);
    at += found->second.bytes;
  }
  return true;
}

bool any_mapping_in(const char *at, size_t bytes) {
  auto next = space().mappings.lower_bound(at + bytes);
  if (next == space().mappings.begin()) return false;
  const auto &[begin, mapping] = *std::prev(next);
  return begin + mapping.bytes > at;
}

CUresult result(const Call &call) {
  switch (static_cast<int>(call.error())) {
    case cudaErrorMemoryAllocation:
      return CUDA_ERROR_OUT_OF_MEMORY;
    case cudaErrorStreamCaptureUnsupported:
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    case cudaErrorNotPermitted:
      return CUDA_ERROR_NOT_PERMITTED;
    case cudaErrorNoDevice:
      return CUDA_ERROR_NO_DEVICE;
    case cudaErrorInsufficientDriver:
      return CUDA_ERROR_NOT_INITIALIZED;
    default:
      return CUDA_ERROR_UNKNOWN;
  }
}

#define DRIVER_CALL(...)                      \
  Call call(__func__, unsigned{__VA_ARGS__}); \
  if (call.error() != cudaSuccess) return result(call)

CUresult cuMemGetAllocationGranularity(size_t *out, const CUmemAllocationProp *, CUmemAllocationGranularity_flags) {
  DRIVER_CALL();
  *out = granularity;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *out, size_t size, size_t align, CUdeviceptr, unsigned long long flags) {
  DRIVER_CALL(allocates);
  if (size == 0 || size % granularity != 0 || (align & (align - 1)) != 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  align = std::max(align, granularity);
  void *all = mmap(nullptr, size + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  char *first = static_cast<char *>(all);
  size_t before = align - reinterpret_cast<uintptr_t>(all) % align;
  munmap(first, before);
  char *begin = first + before;
  if (before < align) munmap(begin + size, align - before);
  space().reservations[begin] = size;
  *out = reinterpret_cast<CUdeviceptr>(begin);
  return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr at, size_t size) {
  DRIVER_CALL(allocates);
  auto found = space().reservations.find(address(at));
  if (found == space().reservations.end() || found->second != size || any_mapping_in(address(at), size)) {
    misuse("not a whole reservation without mappings");
    return CUDA_ERROR_INVALID_VALUE;
  }
  munmap(address(at), size);
  space().reservations.erase(found);
  return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t size, const CUmemAllocationProp *prop,
                     unsigned long long flags) {
  DRIVER_CALL(allocates);
  if (prop == nullptr || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
      prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE || prop->location.id != 0 || flags != 0 || size == 0 ||
      size % granularity != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (!device_has(size)) return CUDA_ERROR_OUT_OF_MEMORY;
  int file = memfd_create("chunk", MFD_CLOEXEC);
  if (file < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  take_device_bytes(static_cast<int64_t>(size));
  auto chunk = std::make_shared<Chunk>();
  chunk->file = file;
  chunk->bytes = size;
  if (ftruncate(file, static_cast<off_t>(size)) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = reinterpret_cast<CUmemGenericAllocationHandle>(hold(std::move(chunk)));
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  DRIVER_CALL(allocates);
  const void *label = reinterpret_cast<const void *>(handle);
  if (held<Chunk>(label) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  drop_label(label);
  return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr at, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  DRIVER_CALL(allocates);
  auto chunk = held<Chunk>(reinterpret_cast<const void *>(handle));
  if (chunk == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (offset != 0 || flags != 0 || size == 0 || size % granularity != 0 || at % granularity != 0 ||
      size > chunk->bytes || !within_reservation(address(at), size) || any_mapping_in(address(at), size)) {
    misuse("not an unmapped, reserved range that the allocation fills");
    return CUDA_ERROR_INVALID_VALUE;
  }
  mmap(address(at), size, PROT_NONE, MAP_SHARED | MAP_FIXED, chunk->file, 0);
  space().mappings[address(at)] = {size, chunk, false};
  return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr at, size_t size, const CUmemAccessDesc *desc, size_t count) {
  DRIVER_CALL(allocates);
  std::vector<const char *> mappings;
  if (desc == nullptr || count != 1 || desc->location.type != CU_MEM_LOCATION_TYPE_DEVICE || desc->location.id != 0 ||
      desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE || !exact_mappings(address(at), size, &mappings))
    return CUDA_ERROR_INVALID_VALUE;
  for (const char *begin : mappings) space().mappings[begin].accessible = true;
  if (memory_is_open()) mprotect(address(at), size, PROT_READ | PROT_WRITE);
  return CUDA_SUCCESS;
}

/* Unlike cudaFree this does not wait for the device. */
CUresult cuMemUnmap(CUdeviceptr at, size_t size) {
  DRIVER_CALL(allocates | unsafe);
  std::vector<const char *> mappings;
  if (!exact_mappings(address(at), size, &mappings)) {
    misuse("not whole mappings");
    return CUDA_ERROR_INVALID_VALUE;
  }
  mmap(address(at), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  for (const char *begin : mappings) space().mappings.erase(begin);
  return CUDA_SUCCESS;
}

/* One more context is all that it takes. */
struct Context {
  static constexpr const char *kind = "context";
};

CUresult create_context(CUcontext *out, unsigned flags, CUdevice device) {
  DRIVER_CALL(allocates | unsafe);
  if (flags != 0 || device != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!device_has(static_cast<size_t>(context_bytes))) return CUDA_ERROR_OUT_OF_MEMORY;
  take_device_bytes(context_bytes);
  *out = static_cast<CUcontext>(hold(std::make_shared<Context>()));
  return CUDA_SUCCESS;
}

CUresult destroy_context(CUcontext context) {
  DRIVER_CALL(allocates | unsafe);
  if (held<Context>(context) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  take_device_bytes(-context_bytes);
  drop_label(context);
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **out) {
  *out = cudaGetErrorName(static_cast<cudaError_t>(error));
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **out) {
  *out = cudaGetErrorString(static_cast<cudaError_t>(error));
  return CUDA_SUCCESS;
}

void *driver_function(const std::string &name) {
  static const std::map<std::string, void *> functions = {
#define FUNCTION(f) {#f, reinterpret_cast<void *>(f)}
      FUNCTION(cuMemGetAllocationGranularity),
      FUNCTION(cuMemAddressReserve),
      FUNCTION(cuMemAddressFree),
      FUNCTION(cuMemCreate),
      FUNCTION(cuMemRelease),
      FUNCTION(cuMemMap),
      FUNCTION(cuMemSetAccess),
      FUNCTION(cuMemUnmap),
      {"cuCtxCreate", reinterpret_cast<void *>(create_context)},
      {"cuCtxDestroy", reinterpret_cast<void *>(destroy_context)},
      FUNCTION(cuGetErrorName),
      FUNCTION(cuGetErrorString),
  };
  auto found = functions.find(name);
  return found == functions.end() ? nullptr : found->second;
}

}  // namespace

bool in_reservation(const void *at) {
  return within_reservation(static_cast<const char *>(at), 1);
}

bool mapping_covers(const void *at, size_t bytes) {
  const char *from = static_cast<const char *>(at), *end = from + bytes;
  while (from < end) {
    auto next = space().mappings.upper_bound(from);
    if (next == space().mappings.begin()) return false;
    const auto &[begin, mapping] = *std::prev(next);
    if (begin + mapping.bytes <= from || !mapping.accessible) return false;
    from = begin + mapping.bytes;
  }
  return true;
}

void open_mappings(bool open) {
  for (const auto &[begin, mapping] : space().mappings)
    if (mapping.accessible)
      mprotect(const_cast<char *>(begin), mapping.bytes, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

void add_mapping_images(std::vector<Image> *to) {
  for (const auto &[begin, mapping] : space().mappings)
    if (mapping.accessible) to->push_back({const_cast<char *>(begin), std::string(begin, mapping.bytes)});
}

void report_mapping_leaks() {
  if (!space().mappings.empty()) misuse("%zu mappings never unmapped", space().mappings.size());
  if (!space().reservations.empty()) misuse("%zu reservations never freed", space().reservations.size());
}

}  // namespace emulator

using namespace emulator;

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **out, unsigned int, unsigned long long,
                                             cudaDriverEntryPointQueryResult *status) {
  EMULATOR_CALL();
  *out = driver_function(symbol);
  if (*out == nullptr) misuse("%s is not emulated", symbol);
  if (status != nullptr) *status = *out == nullptr ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
  return *out == nullptr ? call.end(cudaErrorSymbolNotFound) : cudaSuccess;
}
