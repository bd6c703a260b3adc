/* A device that does its work as it is enqueued, for tests of kernels by themselves. */
#include <string.h>

#include "tests/cuda/emulator/emulator.h"

cudaError_t emulator_enqueue(cudaStream_t, std::function<void()> work) {
  work();
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t) {
  memset(at, value, bytes);
  return cudaSuccess;
}
