/* Stand-ins for ops: integrity without numerics. An op's results are pseudo-random bytes drawn from a hash of the op
 * and of every byte it reads, so that one wrong byte anywhere changes everything computed from it.
 *
 * Like real ops they read before they write (in place is safe), repeat their bits when run again, and let side effects
 * influence nothing but themselves: a recompute, which skips them, gives the same results. The workspace is filled with
 * garbage before the reads and after the writes, so that one that overlaps an operand shows. */
#include <string.h>

#include "runtime/host/digest.h"
#include "runtime/host/kernels.h"
#include "runtime/random.h"

static void draw_bytes(uint64_t key, char *out, int64_t bytes) {
  uint64_t start = planrt_mix(key);
  for (int64_t i = 0; i < bytes; i += 8) {
    uint64_t word = planrt_mix(start + (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15));
    memcpy(out + i, &word, (size_t)(bytes - i < 8 ? bytes - i : 8));
  }
}

static uint64_t hash_inputs(const planrt_call *call, const planc_instance *instance) {
  const int64_t identity[] = {instance->job, instance->op, instance->round, instance->role, instance->accumulates};
  uint64_t hash = planrt_hash_bytes(0, (const char *)identity, sizeof identity);
  for (int32_t k = 0; k < instance->n_accesses; k++) {
    const planc_access *access = &call->trace->accesses[instance->first_access + k];
    if (access->read >= 0 && !access->effect)
      hash = planrt_hash_bytes(hash, call->memory[k], call->trace->buffers[access->buffer].bytes);
  }
  return hash;
}

static void stand_in(const planrt_call *call, const planrt_launch *launch) {
  (void)launch;
  const planc_instance *instance = &call->trace->instances[call->instance];
  enum { GARBAGE = 0xa5 };
  if (call->workspace_bytes > 0) memset(call->workspace, GARBAGE, (size_t)call->workspace_bytes);
  uint64_t hash = hash_inputs(call, instance);
  for (int32_t k = 0; k < instance->n_accesses; k++) {
    const planc_access *access = &call->trace->accesses[instance->first_access + k];
    int64_t bytes = call->trace->buffers[access->buffer].bytes;
    if (access->write < 0 || !call->memory[k]) continue;
    uint64_t key = planrt_random(hash, (uint64_t)k);
    if (access->effect) key = planrt_hash_bytes(key, call->memory[k], bytes);
    draw_bytes(key, call->memory[k], bytes);
  }
  if (call->workspace_bytes > 0) memset(call->workspace, GARBAGE, (size_t)call->workspace_bytes);
}

const planrt_kernel planrt_synthetic_kernel = {"synthetic", stand_in};
