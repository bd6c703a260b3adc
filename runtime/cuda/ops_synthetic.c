/* Stand-ins for ops: integrity without numerics, as runtime/host/synthetic.c has them. An op's results are drawn from a
 * hash of the op and of every byte it reads. They read before they write, repeat their bits when run again, and let
 * side effects influence nothing but themselves. The workspace is filled with garbage before the reads and after the
 * writes, so that one that overlaps an operand shows. */
#include "runtime/cuda/op_families.h"
#include "runtime/random.h"

/* Which op it is, whatever it reads. */
static uint64_t identity_of(const planc_instance *of) {
  const int64_t parts[] = {of->job, of->op, of->round, of->role, of->accumulates};
  uint64_t hash = 0;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) hash = planrt_random(hash, (uint64_t)parts[i]);
  return hash;
}

/* Adds up in *scratch a hash of the op and of what it reads. */
static cudaError_t hash_inputs(const planrt_call *call, const planrt_cuda_launch *launch) {
  const planc_instance *of = &call->trace->instances[call->instance];
  cudaError_t code = planrt_cuda_set_word(launch->stream, launch->scratch, identity_of(of));
  for (int32_t k = 0; k < of->n_accesses && code == cudaSuccess; k++) {
    const planc_access *access = &call->trace->accesses[of->first_access + k];
    if (access->read < 0 || access->effect) continue;
    code = planrt_cuda_digest(launch->stream, (uint64_t)k, call->memory[k], call->trace->buffers[access->buffer].bytes,
                              launch->scratch);
  }
  return code;
}

static cudaError_t draw_outputs(const planrt_call *call, const planrt_cuda_launch *launch) {
  const planc_instance *of = &call->trace->instances[call->instance];
  cudaError_t code = cudaSuccess;
  /* Side effects last: the hash takes them in. */
  for (int effects = 0; effects < 2; effects++)
    for (int32_t k = 0; k < of->n_accesses && code == cudaSuccess; k++) {
      const planc_access *access = &call->trace->accesses[of->first_access + k];
      int64_t bytes = call->trace->buffers[access->buffer].bytes;
      if (access->write < 0 || !call->memory[k] || access->effect != (effects == 1)) continue;
      if (access->effect)
        code = planrt_cuda_digest(launch->stream, (uint64_t)k, call->memory[k], bytes, launch->scratch);
      if (code == cudaSuccess)
        code = planrt_cuda_draw(launch->stream, launch->scratch, (uint64_t)k, call->memory[k], bytes);
    }
  return code;
}

static cudaError_t soil_workspace(const planrt_call *call, const planrt_cuda_launch *launch) {
  enum { GARBAGE = 0xa5 };
  if (call->workspace_bytes <= 0) return cudaSuccess;
  return cudaMemsetAsync(call->workspace, GARBAGE, (size_t)call->workspace_bytes, launch->stream);
}

PLANRT_CUDA_RUN(synthetic) {
  if (!launch->scratch) return cudaErrorInvalidValue;
  cudaError_t code = soil_workspace(call, launch);
  if (code == cudaSuccess) code = hash_inputs(call, launch);
  if (code == cudaSuccess) code = draw_outputs(call, launch);
  return code == cudaSuccess ? soil_workspace(call, launch) : code;
}
