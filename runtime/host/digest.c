/* Hashes of memory (digest.h). */
#include "runtime/host/digest.h"

#include <string.h>

#include "runtime/random.h"

/* Eight bytes at a time in four independent lanes. */
uint64_t rt_hash_bytes(uint64_t seed, const char *data, int64_t bytes) {
  enum { LANES = 4, STRIDE = LANES * 8 };
  uint64_t lanes[LANES], word;
  for (int k = 0; k < LANES; k++) lanes[k] = rt_random(seed, (uint64_t)k);
  int64_t i = 0;
  for (; i + STRIDE <= bytes; i += STRIDE)
    for (int k = 0; k < LANES; k++) {
      memcpy(&word, data + i + (ptrdiff_t)k * 8, sizeof word);
      lanes[k] = (lanes[k] ^ word) * UINT64_C(0x9e3779b97f4a7c15);
      lanes[k] ^= lanes[k] >> 29;
    }
  uint64_t hash = rt_mix((uint64_t)bytes + 1);
  for (; i < bytes; i += 8) {
    word = 0;
    memcpy(&word, data + i, (size_t)(bytes - i < 8 ? bytes - i : 8));
    hash = rt_mix(hash ^ word);
  }
  for (int k = 0; k < LANES; k++) hash = rt_mix(hash ^ lanes[k]);
  return hash;
}

uint64_t rt_digest_of(const rt_call *call) {
  uint64_t digest = 0;
  for (int32_t i = 0; i < call->n_out; i++)
    if (call->out[i].data) digest = rt_hash_bytes(digest + 1, call->out[i].data, call->out[i].bytes);
  return digest;
}
