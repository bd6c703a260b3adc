/* Stand-ins for ops: integrity without numerics, as runtime/host/synthetic.c has them. An op's results are drawn from a
 * hash of the op and of every byte it reads. They read before they write, repeat their bits when run again, and let
 * side effects influence nothing but themselves. They touch the bytes that the op touches and no others. The workspace
 * is filled with garbage before the reads and after the writes, so that one that overlaps an operand shows. */
#include "runtime/cuda/op_families.h"
#include "runtime/random.h"

static cudaError_t hash_inputs(const rt_call *call, const rt_cuda_launch *launch);
static cudaError_t draw_outputs(const rt_call *call, const rt_cuda_launch *launch);
static cudaError_t soil_workspace(const rt_call *call, const rt_cuda_launch *launch);

RT_CUDA_RUN(synthetic) {
  if (!launch->scratch) return cudaErrorInvalidValue;
  cudaError_t code = soil_workspace(call, launch);
  if (code == cudaSuccess) code = hash_inputs(call, launch);
  if (code == cudaSuccess) code = draw_outputs(call, launch);
  return code == cudaSuccess ? soil_workspace(call, launch) : code;
}

/* Which op it is, and of which replica, whatever it reads: a job is the same wherever it stands in a plan. */
static uint64_t identity_of(const rt_call *call) {
  const planc_instance *of = &call->trace->instances[call->instance];
  const int64_t parts[] = {of->op, of->round, of->role, of->accumulates};
  uint64_t hash = (uint64_t)call->replica;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) hash = rt_random(hash, (uint64_t)parts[i]);
  return hash;
}

/* Adds up in *scratch a hash of the op and of what it reads: its inputs, and outputs that it adds to. */
static cudaError_t hash_inputs(const rt_call *call, const rt_cuda_launch *launch) {
  cudaError_t code = rt_cuda_set_word(launch->stream, launch->scratch, identity_of(call));
  for (int32_t k = 0; k < call->n_in + call->n_out && code == cudaSuccess; k++) {
    const rt_operand *from = k < call->n_in ? &call->in[k] : &call->out[k - call->n_in];
    if (k >= call->n_in && !from->accumulate) continue;
    code = rt_cuda_digest(launch->stream, (uint64_t)k, from->data, from->bytes, launch->scratch);
  }
  return code;
}

static cudaError_t draw_outputs(const rt_call *call, const rt_cuda_launch *launch) {
  cudaError_t code = cudaSuccess;
  for (int32_t k = 0; k < call->n_out && code == cudaSuccess; k++)
    code = rt_cuda_draw(launch->stream, launch->scratch, (uint64_t)k, call->out[k].data, call->out[k].bytes);
  /* Side effects last: the hash takes them in. */
  for (int32_t k = 0; k < call->n_effects && code == cudaSuccess; k++) {
    const rt_operand *effect = &call->effects[k];
    uint64_t salt = (uint64_t)call->n_out + (uint64_t)k;
    if (!effect->data) continue; /* a recompute */
    code = rt_cuda_digest(launch->stream, salt, effect->data, effect->bytes, launch->scratch);
    if (code == cudaSuccess) code = rt_cuda_draw(launch->stream, launch->scratch, salt, effect->data, effect->bytes);
  }
  return code;
}

static cudaError_t soil_workspace(const rt_call *call, const rt_cuda_launch *launch) {
  enum { GARBAGE = 0xa5 };
  if (call->workspace_bytes <= 0) return cudaSuccess;
  return cudaMemsetAsync(call->workspace, GARBAGE, (size_t)call->workspace_bytes, launch->stream);
}
