/* Memory of the host that the device's copies reach: it is registered once, and given back with the device. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/cuda/cuda.h"
#include "util/math.h"

planc_status rt_cuda_pin(rt_device *device, void *memory, int64_t bytes) {
  if (bytes == 0) return NULL;
  if (device->n_pinned == device->pinned_room) {
    int32_t room = device->pinned_room ? 2 * device->pinned_room : 4;
    void *grown = realloc(device->pinned, (size_t)room * sizeof *device->pinned);
    if (!grown) return planc_error(PLANC_OUT_OF_MEMORY, "pinned memory");
    device->pinned = grown;
    device->pinned_room = room;
  }
  PLANC_TRY(planc_context(
      rt_cuda_status(cudaHostRegister(memory, (size_t)bytes, cudaHostRegisterDefault), "cudaHostRegister"),
      "%lld bytes", (long long)bytes));
  device->pinned[device->n_pinned++] = memory;
  return NULL;
}

/* The host's own allocation: it can be given back after any error. */
planc_status rt_cuda_pinned_new(rt_device *device, int64_t bytes, uint64_t **out) {
  int64_t page = sysconf(_SC_PAGESIZE), whole = pl_align_up(bytes, page);
  void *memory = NULL;
  if (posix_memalign(&memory, (size_t)page, (size_t)whole) != 0)
    return planc_error(PLANC_OUT_OF_MEMORY, "%lld bytes to be pinned", (long long)bytes);
  *out = memset(memory, 0, (size_t)whole);
  return rt_cuda_pin(device, memory, whole);
}
