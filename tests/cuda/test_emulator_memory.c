/* The emulated device's memory, and copies to and from it. */
#include <cuda.h>
#include <stdbool.h>

#include "tests/cuda/emulated.h"

enum { SEEDS = 40 };

static void seed(int n) {
  emulator_seed((uint64_t)n * 7919 + 1);
}

/* --- Memory ------------------------------------------------------------------------------------------------------- */

enum { BYTES = 1000 };

/* A pageable source is read at the call, a pinned one when the copy runs. */
START_TEST(pageable_sources_are_read_at_once_pinned_ones_later) {
  bool late = false, early = false, torn[2] = {false, false};
  char pageable[BYTES], back[BYTES], *pinned;
  cuda_ok(cudaMallocHost((void **)&pinned, BYTES));
  char *device = new_memory(2 * BYTES);
  for (int i = 0; i < 4 * SEEDS; i++) {
    seed(i);
    cudaStream_t stream = new_stream();
    memset(pageable, 1, BYTES);
    memset(pinned, 1, BYTES);
    cuda_ok(cudaMemcpyAsync(device, pageable, BYTES, cudaMemcpyHostToDevice, stream));
    cuda_ok(cudaMemcpyAsync(device + BYTES, pinned, BYTES, cudaMemcpyDefault, stream));
    memset(pageable, 2, BYTES);
    memset(pinned, 2, BYTES);
    cuda_ok(cudaMemcpyAsync(back, device, BYTES, cudaMemcpyDeviceToHost, stream)); /* waits */
    for (int k = 0; k < BYTES; k++) ck_assert_int_eq(back[k], 1);
    cuda_ok(cudaMemcpyAsync(back, device + BYTES, BYTES, cudaMemcpyDeviceToHost, stream));
    early = early || (back[0] == 1 && back[BYTES - 1] == 1);
    late = late || (back[0] == 2 && back[BYTES - 1] == 2);
    torn[0] = torn[0] || back[0] < back[BYTES - 1];
    torn[1] = torn[1] || back[0] > back[BYTES - 1];
    free_stream(stream);
  }
  ck_assert(early && late && torn[0] && torn[1]);
  cuda_ok(cudaFree(device));
  cuda_ok(cudaFreeHost(pinned));
}
END_TEST

START_TEST(copies_within_host_memory_are_over_at_once) {
  char *pinned, *to;
  cuda_ok(cudaMallocHost((void **)&pinned, 2 * BYTES));
  to = pinned + BYTES;
  memset(pinned, 1, BYTES);
  for (int i = 0; i < SEEDS; i++) {
    seed(i);
    cudaStream_t stream = new_stream();
    memset(to, 0, BYTES);
    cuda_ok(cudaMemcpyAsync(to, pinned, BYTES, cudaMemcpyHostToHost, stream));
    ck_assert_int_eq(memcmp(to, pinned, BYTES), 0);
    free_stream(stream);
  }
  cuda_ok(cudaFreeHost(pinned));
}
END_TEST

START_TEST(copies_keep_to_memory_that_there_is) {
  static char host[2 * BYTES], other[BYTES];
  cudaStream_t stream = new_stream();
  char *device = new_memory(BYTES);
  const cudaError_t invalid = cudaErrorInvalidValue;
  cuda_ok(cudaMemcpyAsync(device, host, BYTES, cudaMemcpyHostToDevice, stream));
  cuda_gives(cudaMemcpyAsync(device, host, BYTES + 1, cudaMemcpyHostToDevice, stream), invalid);
  cuda_gives(cudaMemcpyAsync(device + 1, host, BYTES, cudaMemcpyHostToDevice, stream), invalid);
  cuda_gives(cudaMemcpyAsync(device, host, BYTES, cudaMemcpyDeviceToDevice, stream), invalid);
  cuda_gives(cudaMemcpyAsync(other, host, BYTES, cudaMemcpyHostToDevice, stream), invalid);
  cuda_gives(cudaMemcpyAsync(device, device + 10, 100, cudaMemcpyDeviceToDevice, stream), invalid);
  cuda_gives(cudaMemsetAsync(host, 0, BYTES, stream), invalid);
  cuda_gives(cudaGetLastError(), invalid);
  cuda_gives(cudaGetLastError(), cudaSuccess);
  /* Only a part is registered. */
  cuda_ok(cudaHostRegister(host, BYTES, cudaHostRegisterDefault));
  cuda_gives(cudaHostRegister(host + 10, BYTES, 0), cudaErrorHostMemoryAlreadyRegistered);
  cuda_gives(cudaMemcpyAsync(host + 500, device, BYTES, cudaMemcpyDeviceToHost, stream), invalid);
  cuda_ok(cudaHostUnregister(host));
  cuda_gives(cudaHostUnregister(host), cudaErrorHostMemoryNotRegistered);
  ck_assert_int_eq(emulator_misuses(), 8);
  cuda_ok(cudaFree(device));
  cuda_gives(cudaFree(device), invalid);
  free_stream(stream);
}
END_TEST

/* To unregister memory that a copy still needs is found out when the copy runs. */
START_TEST(memory_that_goes_too_early_is_told) {
  static char host[BYTES];
  bool told = false;
  for (int i = 0; i < SEEDS && !told; i++) {
    seed(i);
    cudaStream_t stream = new_stream();
    char *device = new_memory(BYTES);
    cuda_ok(cudaHostRegister(host, BYTES, 0));
    cuda_ok(cudaMemcpyAsync(host, device, BYTES, cudaMemcpyDeviceToHost, stream));
    cuda_ok(cudaHostUnregister(host));
    told = cudaStreamSynchronize(stream) != cudaSuccess;
    if (told) break; /* nothing works from here on */
    cuda_ok(cudaFree(device));
    free_stream(stream);
  }
  ck_assert(told);
  cuda_gives(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
}
END_TEST

START_TEST(memory_is_finite_and_accounted) {
  size_t before, after, total;
  void *large;
  int64_t calls = emulator_allocations();
  cuda_ok(cudaMemGetInfo(&before, &total));
  ck_assert_int_eq((int64_t)total, 1 << 30);
  cuda_gives(cudaMalloc(&large, total), cudaErrorMemoryAllocation);
  large = new_memory(total / 2);
  cuda_ok(cudaMemGetInfo(&after, &total));
  ck_assert_uint_eq(before - after, total / 2);
  cuda_ok(cudaFree(large));
  cuda_ok(cudaMemGetInfo(&after, &total));
  ck_assert_uint_eq(before, after);
  ck_assert_int_eq(emulator_allocations() - calls, 3);
}
END_TEST

/* --- Virtual memory ----------------------------------------------------------------------------------------------- */

/* Puts the driver's function into a pointer to one. */
static void find(const char *name, void *out) {
  void *found;
  enum cudaDriverEntryPointQueryResult status;
  cuda_ok(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &status));
  ck_assert_int_eq(status, cudaDriverEntryPointSuccess);
  memcpy(out, &found, sizeof found);
}

typedef CUresult (*granularity_function)(size_t *, const CUmemAllocationProp *, CUmemAllocationGranularity_flags);
typedef CUresult (*reserve_function)(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
typedef CUresult (*create_function)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
                                    unsigned long long);
typedef CUresult (*map_function)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long);
typedef CUresult (*access_function)(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t);
typedef CUresult (*range_function)(CUdeviceptr, size_t);
typedef CUresult (*release_function)(CUmemGenericAllocationHandle);

START_TEST(chunks_can_be_seen_at_several_addresses) {
  granularity_function granularity;
  reserve_function reserve;
  create_function create;
  map_function map;
  access_function set_access;
  range_function unmap, give_back;
  release_function release;
  find("cuMemGetAllocationGranularity", &granularity);
  find("cuMemAddressReserve", &reserve);
  find("cuMemCreate", &create);
  find("cuMemMap", &map);
  find("cuMemSetAccess", &set_access);
  find("cuMemUnmap", &unmap);
  find("cuMemAddressFree", &give_back);
  find("cuMemRelease", &release);

  const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
  const CUmemAccessDesc readwrite = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                                     .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  size_t g;
  CUdeviceptr at;
  CUmemGenericAllocationHandle chunk[2];
  ck_assert_int_eq(granularity(&g, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM), CUDA_SUCCESS);
  ck_assert_int_eq(reserve(&at, 3 * g + 1, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
  ck_assert_int_eq(reserve(&at, 4 * g, 0, 0, 0), CUDA_SUCCESS);
  for (int i = 0; i < 2; i++) ck_assert_int_eq(create(&chunk[i], g, &prop, 0), CUDA_SUCCESS);
  /* Addresses: chunk 0, chunk 1, chunk 0 again, nothing. */
  for (int i = 0; i < 3; i++) ck_assert_int_eq(map(at + (size_t)i * g, g, 0, chunk[i % 2], 0), CUDA_SUCCESS);
  ck_assert_int_eq(map(at, g, 0, chunk[1], 0), CUDA_ERROR_INVALID_VALUE);

  cudaStream_t stream = new_stream();
  char *memory = (char *)at; /* NOLINT: an address */
  char back[2];
  cuda_gives(cudaMemsetAsync(memory, 1, g, stream), cudaErrorInvalidValue); /* no access yet */
  ck_assert_int_eq(set_access(at, 3 * g, &readwrite, 1), CUDA_SUCCESS);
  cuda_ok(cudaMemsetAsync(memory, 1, 2 * g, stream));
  cuda_ok(cudaMemsetAsync(memory + 2 * g, 2, g, stream));
  cuda_gives(cudaMemsetAsync(memory + 2 * g, 2, g + 1, stream), cudaErrorInvalidValue);
  cuda_ok(cudaMemcpyAsync(back, memory + g - 1, 2, cudaMemcpyDeviceToHost, stream));
  ck_assert_int_eq(back[0], 2);
  ck_assert_int_eq(back[1], 1);

  for (int i = 0; i < 2; i++) ck_assert_int_eq(release(chunk[i]), CUDA_SUCCESS);
  ck_assert_int_eq(unmap(at, g / 2), CUDA_ERROR_INVALID_VALUE);
  ck_assert_int_eq(unmap(at, 3 * g), CUDA_SUCCESS);
  ck_assert_int_eq(give_back(at, 4 * g), CUDA_SUCCESS);
  free_stream(stream);
}
END_TEST

static void small_memory(void) {
  setenv("EMULATED_CUDA_MEMORY", "1073741824", 1);
}

int main(void) {
  Suite *suite = suite_create("emulator_memory");
  TCase *memory = tcase_create("memory");
  tcase_add_checked_fixture(memory, small_memory, NULL);
  tcase_add_test(memory, pageable_sources_are_read_at_once_pinned_ones_later);
  tcase_add_test(memory, copies_within_host_memory_are_over_at_once);
  tcase_add_test(memory, copies_keep_to_memory_that_there_is);
  tcase_add_test(memory, memory_that_goes_too_early_is_told);
  tcase_add_test(memory, memory_is_finite_and_accounted);
  tcase_add_test(memory, chunks_can_be_seen_at_several_addresses);
  suite_add_tcase(suite, memory);
  return run_suite(suite);
}
