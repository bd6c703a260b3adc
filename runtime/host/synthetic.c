/* Stand-ins for ops: integrity without numerics. An op's results are pseudo-random bytes drawn from a hash of the op
 * and of every byte it reads, so that one wrong byte anywhere changes everything computed from it. They touch the bytes
 * that the op touches and no others: of a storage written in part the rest stays.
 *
 * Like real ops they read before they write (in place is safe), repeat their bits when run again, and let side effects
 * influence nothing but themselves: a recompute, which skips them, gives the same results. The workspace is filled with
 * garbage before the reads and after the writes, so that one that overlaps an operand shows. */
#include <string.h>

#include "runtime/host/digest.h"
#include "runtime/host/host_kernels.h"
#include "runtime/random.h"

static void stand_in(const rt_call *call, const rt_launch *launch);
static void soil_workspace(const rt_call *call);
static uint64_t hash_inputs(const rt_call *call, const planc_instance *instance);
static void draw_bytes(uint64_t key, char *out, int64_t bytes);

const rt_kernel rt_synthetic_kernel = {stand_in};

static void stand_in(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  soil_workspace(call);
  uint64_t hash = hash_inputs(call, &call->trace->instances[call->instance]);
  for (int32_t k = 0; k < call->n_out; k++)
    draw_bytes(rt_random(hash, (uint64_t)k), call->out[k].data, call->out[k].bytes);
  for (int32_t k = 0; k < call->n_effects; k++) {
    const rt_operand *effect = &call->effects[k];
    if (!effect->data) continue; /* a recompute */
    uint64_t key = rt_random(hash, (uint64_t)call->n_out + (uint64_t)k);
    draw_bytes(rt_hash_bytes(key, effect->data, effect->bytes), effect->data, effect->bytes);
  }
  soil_workspace(call);
}

static void draw_bytes(uint64_t key, char *out, int64_t bytes) {
  uint64_t start = rt_mix(key);
  for (int64_t i = 0; i < bytes; i += 8) {
    uint64_t word = rt_mix(start + (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15));
    memcpy(out + i, &word, (size_t)(bytes - i < 8 ? bytes - i : 8));
  }
}

/* What it reads: its inputs, and outputs that it adds to. Replicas put out different things, so that one's in place of
 * another's shows; a job puts out the same wherever it stands in a plan. */
static uint64_t hash_inputs(const rt_call *call, const planc_instance *instance) {
  const int64_t identity[] = {instance->op, instance->round, instance->role, instance->accumulates};
  uint64_t hash = rt_hash_bytes((uint64_t)call->replica, (const char *)identity, sizeof identity);
  for (int32_t k = 0; k < call->n_in; k++) hash = rt_hash_bytes(hash, call->in[k].data, call->in[k].bytes);
  for (int32_t k = 0; k < call->n_out; k++)
    if (call->out[k].accumulate) hash = rt_hash_bytes(hash, call->out[k].data, call->out[k].bytes);
  return hash;
}

static void soil_workspace(const rt_call *call) {
  enum { GARBAGE = 0xa5 };
  if (call->workspace_bytes > 0) memset(call->workspace, GARBAGE, (size_t)call->workspace_bytes);
}
