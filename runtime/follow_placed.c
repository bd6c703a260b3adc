/* What of the framework's memory is where in its arena: the buffers that are, by address. */
#include <string.h>

#include "runtime/follower.h"

int32_t rt_address_first_behind(const planrt_follow *f, int64_t address) {
  int32_t low = 0, high = f->n_placed;
  while (low < high) {
    int32_t k = low + (high - low) / 2, buffer = f->placed[k];
    if (f->addresses[buffer] + f->trace->buffers[buffer].bytes > address)
      high = k;
    else
      low = k + 1;
  }
  return low;
}

void rt_address_set(planrt_follow *f, int32_t buffer, int64_t address) {
  int64_t old = f->addresses[buffer];
  if (old == address) return;
  if (old != RT_NOTHING) {
    int32_t k = rt_address_first_behind(f, old);
    memmove(&f->placed[k], &f->placed[k + 1], (size_t)(--f->n_placed - k) * sizeof *f->placed);
  }
  if (address != RT_NOTHING) {
    int32_t k = rt_address_first_behind(f, address);
    memmove(&f->placed[k + 1], &f->placed[k], (size_t)(f->n_placed++ - k) * sizeof *f->placed);
    f->placed[k] = buffer;
  }
  f->addresses[buffer] = address;
}
