/* CUDA's errors as statuses, and functions of its driver (cuda.h). */
#include <cuda.h>
#include <string.h>

#include "runtime/cuda/cuda.h"

planc_status rt_cuda_status(cudaError_t code, const char *what) {
  size_t left, total;
  if (code == cudaSuccess) return NULL;
  /* Errors that are not the context's end would be told again by the next call. */
  (void)cudaGetLastError();
  if (code == cudaErrorMemoryAllocation && cudaMemGetInfo(&left, &total) == cudaSuccess)
    return planc_error(PLANC_DEVICE, "CUDA: %s: %s; the device has %zu of %zu bytes free", what,
                       cudaGetErrorString(code), left, total);
  return planc_error(PLANC_DEVICE, "CUDA: %s: %s", what, cudaGetErrorString(code));
}

planc_status rt_cuda_driver(const char *name, void *out) {
  enum { SINCE = 10020 };
  void *found = NULL;
  enum cudaDriverEntryPointQueryResult result;
  CUDA_TRY(cudaGetDriverEntryPointByVersion(name, &found, SINCE, cudaEnableDefault, &result));
  if (result != cudaDriverEntryPointSuccess || !found)
    return planc_error(PLANC_DEVICE, "CUDA: this driver has no %s", name);
  memcpy(out, &found, sizeof found);
  return NULL;
}
