/* A call as a sequence of steps over buffers: oneDNN primitives, reorders around them, and own code where oneDNN's
 * operands are not ours. Built once for its workspace's size, built again and made ready to run it.
 *
 * A buffer is an operand or a piece of the workspace. Behind the pieces lies one scratchpad that all primitives share:
 * they run one after the other. */
#ifndef PLANRT_HOST_DNNL_BUILD_H
#define PLANRT_HOST_DNNL_BUILD_H

#include <oneapi/dnnl/dnnl.h>

#include "runtime/host/dnnl.h"
#include "runtime/host/host_kernels.h"

enum { RT_DNNL_MAX_BUFFERS = 14, RT_DNNL_MAX_STEPS = 5, RT_DNNL_MAX_DESCS = 6, RT_DNNL_MAX_ARGS = 10 };

struct rt_dnnl_engine {
  dnnl_engine_t cpu;
  dnnl_primitive_attr_t attr, adding; /* strict f32, scratchpad from the workspace; with beta = 1 */
};

typedef struct rt_dnnl_buffer {
  dnnl_memory_desc_t desc;
  const rt_operand *operand; /* NULL: a piece of the workspace */
  int64_t offset;            /* of the piece */
} rt_dnnl_buffer;

typedef struct rt_dnnl_arg {
  int32_t name; /* DNNL_ARG_...; of own code any */
  int32_t buffer;
} rt_dnnl_arg;

/* Own code; data[i] is its i-th argument's. */
typedef void (*rt_dnnl_work)(const rt_call *call, float *const *data);

typedef struct rt_dnnl_step {
  dnnl_primitive_desc_t desc; /* NULL: */
  rt_dnnl_work work;
  int32_t n_args;
  rt_dnnl_arg args[RT_DNNL_MAX_ARGS];
} rt_dnnl_step;

/* Which outputs are added to (beta = 1): those that the call says, or all or none of those that can be. */
typedef enum rt_dnnl_adding {
  RT_DNNL_AS_CALLED,
  RT_DNNL_NONE,
  RT_DNNL_ALL,
} rt_dnnl_adding;

typedef struct rt_dnnl_build {
  const rt_dnnl_engine *engine;
  const rt_call *call;
  const char *algorithm;
  rt_dnnl_adding adding;
  int32_t n_descs, n_buffers, n_steps;
  dnnl_primitive_desc_t descs[RT_DNNL_MAX_DESCS]; /* all that were made */
  rt_dnnl_buffer buffers[RT_DNNL_MAX_BUFFERS];
  rt_dnnl_step steps[RT_DNNL_MAX_STEPS];
  int64_t pieces_bytes, scratchpad_bytes;
  /* Runs the call of an inference pass in place of the steps; NULL: they do as well. */
  void (*inference)(const rt_call *call, const rt_launch *launch);
} rt_dnnl_build;

/* One file per family: each adds the steps of build->call with build->algorithm. DEVICE when oneDNN has none. */
planc_status rt_dnnl_conv(rt_dnnl_build *build);
planc_status rt_dnnl_matmul(rt_dnnl_build *build);
planc_status rt_dnnl_matmul_batched(rt_dnnl_build *build);
planc_status rt_dnnl_norm(rt_dnnl_build *build);
planc_status rt_dnnl_layernorm(rt_dnnl_build *build);
planc_status rt_dnnl_pool(rt_dnnl_build *build);

/* --- Adding to a build -------------------------------------------------------------------------------------------- */

/* The operand's memory from its first byte on, as `desc`. */
planc_status rt_dnnl_operand(rt_dnnl_build *build, const rt_operand *operand, const dnnl_memory_desc_t *desc,
                             int32_t *out);
planc_status rt_dnnl_piece(rt_dnnl_build *build, const dnnl_memory_desc_t *desc, int32_t *out);
planc_status rt_dnnl_primitive(rt_dnnl_build *build, dnnl_primitive_desc_t desc, const rt_dnnl_arg *args,
                               int32_t n_args);
planc_status rt_dnnl_own(rt_dnnl_build *build, rt_dnnl_work work, const int32_t *buffers, int32_t n_buffers);

/* An input that lies in memory as `ours`, in the layout `wanted`: itself, or a reordered copy. */
planc_status rt_dnnl_input(rt_dnnl_build *build, const rt_operand *operand, const dnnl_memory_desc_t *ours,
                           const dnnl_memory_desc_t *wanted, int32_t *out);
/* The buffer to compute an output in: itself, or a piece that rt_dnnl_store then reorders or adds to it. */
planc_status rt_dnnl_output(rt_dnnl_build *build, const rt_operand *operand, const dnnl_memory_desc_t *ours,
                            const dnnl_memory_desc_t *wanted, int32_t *out);
planc_status rt_dnnl_store(rt_dnnl_build *build, const rt_operand *operand, const dnnl_memory_desc_t *ours,
                           int32_t buffer);
bool rt_dnnl_adds(const rt_dnnl_build *build, const rt_operand *operand);

/* --- Descriptions ------------------------------------------------------------------------------------------------- */

/* DEVICE, or OUT_OF_MEMORY, saying what failed. */
planc_status rt_dnnl_status(dnnl_status_t status, const char *what);
/* An f32 tensor by its dimensions and strides, in elements. */
planc_status rt_dnnl_strided(int32_t rank, const int64_t *dims, const int64_t *strides, dnnl_memory_desc_t *out);
planc_status rt_dnnl_vector(int64_t elements, dnnl_memory_desc_t *out);
planc_status rt_dnnl_image(const rt_call *call, const rt_operand *operand, dnnl_memory_desc_t *out);
/* The same tensor in whatever layout suits oneDNN best. */
dnnl_memory_desc_t rt_dnnl_any_layout(dnnl_memory_desc_t desc);
/* oneDNN's first choice for an operation; the build's. */
planc_status rt_dnnl_describe(rt_dnnl_build *build, const void *operation, dnnl_primitive_desc_t hint,
                              const_dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out);
/* Makes `desc` the build's, also when it fails. */
planc_status rt_dnnl_keep(rt_dnnl_build *build, dnnl_primitive_desc_t desc);

/* --- Using a build ------------------------------------------------------------------------------------------------ */

int64_t rt_dnnl_workspace(const rt_dnnl_build *build);
/* Creates primitives and memories; touches none of the call's memory. */
planc_status rt_dnnl_realise(const rt_dnnl_build *build, rt_dnnl **out);
void rt_dnnl_build_free(rt_dnnl_build *build);

/* oneDNN creates and runs primitives for as many threads as OpenMP gives the calling one: one, until `leave`, which
 * takes what `enter` gave. */
int rt_dnnl_enter(void);
void rt_dnnl_leave(int threads);

#endif
