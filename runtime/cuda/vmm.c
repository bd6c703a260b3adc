/* Virtual memory: a range of addresses whose chunks are mapped, once and before anything runs, to the arena's. Chunks
 * may be mapped to several addresses; the plan's events order who uses them. The driver's entry points are fetched at
 * run time, so that nothing is linked to the driver. */
#include <cuda.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda/cuda.h"
#include "util/math.h"

/* X(member, the driver's function, parameters) */
#define DRIVER(X)                                                                                                     \
  X(granularity, "cuMemGetAllocationGranularity",                                                                     \
    (size_t *, const CUmemAllocationProp *, CUmemAllocationGranularity_flags))                                        \
  X(reserve, "cuMemAddressReserve", (CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long))                 \
  X(release_range, "cuMemAddressFree", (CUdeviceptr, size_t))                                                         \
  X(create, "cuMemCreate", (CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long)) \
  X(release, "cuMemRelease", (CUmemGenericAllocationHandle))                                                          \
  X(map, "cuMemMap", (CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long))                 \
  X(unmap, "cuMemUnmap", (CUdeviceptr, size_t))                                                                       \
  X(allow, "cuMemSetAccess", (CUdeviceptr, size_t, const CUmemAccessDesc *, size_t))

typedef struct driver {
#define X(member, name, parameters) CUresult(CUDAAPI *member) parameters;
  DRIVER(X)
#undef X
} driver;

struct rt_cuda_range {
  driver driver;
  int64_t chunk_bytes, n_chunks, range_bytes;
  CUmemGenericAllocationHandle *chunks; /* those that have been made */
  int64_t n_made;
  CUdeviceptr at;       /* 0: not reserved */
  int64_t mapped_bytes; /* from its beginning */
};

static planc_status driver_status(CUresult code, const char *what);
static planc_status open_range(rt_cuda_range *range, const rt_device_options *options);
static planc_status fetch_all(driver *out);
static planc_status make_chunks(rt_cuda_range *range);
static planc_status map_chunks(rt_cuda_range *range, const planc_mapping *mappings, int32_t n);

#define DRIVER_TRY(call) PLANC_TRY(driver_status((call), #call))

planc_status rt_cuda_range_open(const rt_device_options *options, rt_cuda_range **out) {
  *out = NULL;
  rt_cuda_range *range = calloc(1, sizeof *range);
  if (!range) return planc_error(PLANC_OUT_OF_MEMORY, "virtual memory");
  planc_status status = open_range(range, options);
  if (status)
    rt_cuda_range_close(range);
  else
    *out = range;
  return planc_context(status, "arena of %lld bytes in chunks of %lld", (long long)options->arena_bytes,
                       (long long)options->chunk_bytes);
}

static planc_status open_range(rt_cuda_range *range, const rt_device_options *options) {
  PLANC_TRY(fetch_all(&range->driver));
  range->chunk_bytes = options->chunk_bytes;
  range->n_chunks = options->arena_bytes / options->chunk_bytes;
  for (int32_t m = 0; m < options->n_mappings; m++) range->range_bytes += options->mappings[m].n * options->chunk_bytes;
  PLANC_TRY(make_chunks(range));
  if (range->range_bytes == 0) return NULL;
  DRIVER_TRY(range->driver.reserve(&range->at, (size_t)range->range_bytes, 0, 0, 0));
  return map_chunks(range, options->mappings, options->n_mappings);
}

char *rt_cuda_range_at(const rt_cuda_range *range, int64_t *out_bytes) {
  *out_bytes = range->range_bytes;
  /* An address of the device's, which the host only adds to and hands back. */
  char *at;
  memcpy(&at, &range->at, sizeof at);
  return at;
}

void rt_cuda_range_close(rt_cuda_range *range) {
  if (!range) return;
  for (int64_t at = 0; at < range->mapped_bytes; at += range->chunk_bytes)
    range->driver.unmap(range->at + (CUdeviceptr)at, (size_t)range->chunk_bytes);
  if (range->at) range->driver.release_range(range->at, (size_t)range->range_bytes);
  for (int64_t c = 0; c < range->n_made; c++) range->driver.release(range->chunks[c]);
  free(range->chunks);
  free(range);
}

static planc_status fetch_all(driver *out) {
#define X(member, name, parameters) PLANC_TRY(rt_cuda_driver(name, (void *)&out->member));
  DRIVER(X)
#undef X
  return NULL;
}

static planc_status driver_status(CUresult code, const char *what) {
  if (code == CUDA_SUCCESS) return NULL;
  if (code == CUDA_ERROR_OUT_OF_MEMORY) return rt_cuda_status(cudaErrorMemoryAllocation, what);
  return planc_error(PLANC_DEVICE, "CUDA: %s: error %d", what, (int)code);
}

/* --- Chunks ------------------------------------------------------------------------------------------------------- */

static const CUmemAllocationProp on_device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                              .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};

static planc_status make_chunks(rt_cuda_range *range) {
  size_t step;
  DRIVER_TRY(range->driver.granularity(&step, &on_device, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  if (range->chunk_bytes % (int64_t)step != 0)
    return planc_error(PLANC_DEVICE, "chunks of %lld bytes: this device maps multiples of %lld",
                       (long long)range->chunk_bytes, (long long)step);
  range->chunks = calloc((size_t)range->n_chunks + 1, sizeof *range->chunks);
  if (!range->chunks) return planc_error(PLANC_OUT_OF_MEMORY, "chunks");
  for (; range->n_made < range->n_chunks; range->n_made++)
    DRIVER_TRY(range->driver.create(&range->chunks[range->n_made], (size_t)range->chunk_bytes, &on_device, 0));
  return NULL;
}

static planc_status map_chunks(rt_cuda_range *range, const planc_mapping *mappings, int32_t n) {
  for (int32_t m = 0; m < n; m++)
    for (int64_t c = 0; c < mappings[m].n; c++) {
      CUdeviceptr at = range->at + (CUdeviceptr)range->mapped_bytes;
      DRIVER_TRY(range->driver.map(at, (size_t)range->chunk_bytes, 0, range->chunks[mappings[m].first + c], 0));
      range->mapped_bytes += range->chunk_bytes;
    }
  const CUmemAccessDesc access = {.location = on_device.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  if (range->mapped_bytes > 0) DRIVER_TRY(range->driver.allow(range->at, (size_t)range->mapped_bytes, &access, 1));
  return NULL;
}
