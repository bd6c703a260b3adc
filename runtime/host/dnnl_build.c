/* Building sequences of oneDNN primitives, making them ready and running them. */
#include "runtime/host/dnnl_build.h"

#include <stdlib.h>
#include <string.h>

#include "util/math.h"

enum { PIECE_ALIGNMENT = 64 };

/* OpenMP's own, by its specification; the header that declares them comes with some compilers only. */
int omp_get_max_threads(void);
void omp_set_num_threads(int count);

int rt_dnnl_enter(void) {
  int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  return threads;
}

void rt_dnnl_leave(int threads) {
  omp_set_num_threads(threads);
}

/* --- Descriptions ------------------------------------------------------------------------------------------------- */

planc_status rt_dnnl_status(dnnl_status_t status, const char *what) {
  switch (status) {
    case dnnl_success:
      return NULL;
    case dnnl_out_of_memory:
      return planc_error(PLANC_OUT_OF_MEMORY, "oneDNN: %s", what);
    case dnnl_invalid_arguments:
      return planc_error(PLANC_DEVICE, "oneDNN: %s: invalid arguments", what);
    case dnnl_unimplemented:
      return planc_error(PLANC_DEVICE, "oneDNN: %s: not implemented for this processor", what);
    default:
      return planc_error(PLANC_DEVICE, "oneDNN: %s: status %d", what, (int)status);
  }
}

planc_status rt_dnnl_strided(int32_t rank, const int64_t *dims, const int64_t *strides, dnnl_memory_desc_t *out) {
  dnnl_dims_t all_dims = {0}, all_strides = {0};
  memcpy(all_dims, dims, (size_t)rank * sizeof *dims);
  memcpy(all_strides, strides, (size_t)rank * sizeof *strides);
  return rt_dnnl_status(dnnl_memory_desc_init_by_strides(out, rank, all_dims, dnnl_f32, all_strides), "tensor");
}

planc_status rt_dnnl_vector(int64_t elements, dnnl_memory_desc_t *out) {
  return rt_dnnl_strided(1, &elements, &(int64_t){1}, out);
}

planc_status rt_dnnl_image(const rt_call *call, const rt_operand *operand, dnnl_memory_desc_t *out) {
  rt_image image = rt_image_of(call, operand);
  return rt_dnnl_strided(4, (int64_t[]){image.n, image.c, image.h, image.w},
                         (int64_t[]){image.sn, image.sc, image.sy, image.sx}, out);
}

dnnl_memory_desc_t rt_dnnl_any_layout(dnnl_memory_desc_t desc) {
  dnnl_memory_desc_t any = desc;
  any.format_kind = dnnl_format_kind_any;
  memset(&any.format_desc, 0, sizeof any.format_desc);
  return any;
}

planc_status rt_dnnl_keep(rt_dnnl_build *build, dnnl_primitive_desc_t desc) {
  if (build->n_descs < RT_DNNL_MAX_DESCS) {
    build->descs[build->n_descs++] = desc;
    return NULL;
  }
  dnnl_primitive_desc_destroy(desc);
  return planc_error(PLANC_INTERNAL, "too many primitives");
}

planc_status rt_dnnl_describe(rt_dnnl_build *build, const void *operation, dnnl_primitive_desc_t hint,
                              const_dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out) {
  PLANC_TRY(rt_dnnl_status(dnnl_primitive_desc_create(out, operation, attr, build->engine->cpu, hint),
                           build->call->op->type));
  return rt_dnnl_keep(build, *out);
}

/* --- Adding to a build -------------------------------------------------------------------------------------------- */

static planc_status add_buffer(rt_dnnl_build *build, const rt_operand *operand, const dnnl_memory_desc_t *desc,
                               int64_t offset, int32_t *out) {
  if (build->n_buffers == RT_DNNL_MAX_BUFFERS) return planc_error(PLANC_INTERNAL, "too many buffers");
  *out = build->n_buffers++;
  build->buffers[*out] = (rt_dnnl_buffer){.desc = *desc, .operand = operand, .offset = offset};
  return NULL;
}

planc_status rt_dnnl_operand(rt_dnnl_build *build, const rt_operand *operand, const dnnl_memory_desc_t *desc,
                             int32_t *out) {
  if ((int64_t)dnnl_memory_desc_get_size(desc) > operand->bytes)
    return planc_error(PLANC_INTERNAL, "an operand is smaller than oneDNN takes it for");
  return add_buffer(build, operand, desc, 0, out);
}

planc_status rt_dnnl_piece(rt_dnnl_build *build, const dnnl_memory_desc_t *desc, int32_t *out) {
  int64_t offset = pl_align_up(build->pieces_bytes, PIECE_ALIGNMENT);
  PLANC_TRY(add_buffer(build, NULL, desc, offset, out));
  if (pl_add_overflow(offset, (int64_t)dnnl_memory_desc_get_size(desc), &build->pieces_bytes))
    return planc_error(PLANC_DEVICE, "the workspace does not fit 64 bits");
  return NULL;
}

static int64_t scratchpad_bytes(dnnl_primitive_desc_t desc);
static planc_status add_step(rt_dnnl_build *build, const rt_dnnl_step *step);

planc_status rt_dnnl_primitive(rt_dnnl_build *build, dnnl_primitive_desc_t desc, const rt_dnnl_arg *args,
                               int32_t n_args) {
  rt_dnnl_step step = {.desc = desc, .n_args = n_args};
  memcpy(step.args, args, (size_t)n_args * sizeof *args);
  int64_t bytes = scratchpad_bytes(desc);
  if (bytes > build->scratchpad_bytes) build->scratchpad_bytes = bytes;
  return add_step(build, &step);
}

planc_status rt_dnnl_own(rt_dnnl_build *build, rt_dnnl_work work, const int32_t *buffers, int32_t n_buffers) {
  rt_dnnl_step step = {.work = work, .n_args = n_buffers};
  for (int32_t i = 0; i < n_buffers; i++) step.args[i].buffer = buffers[i];
  return add_step(build, &step);
}

static planc_status add_step(rt_dnnl_build *build, const rt_dnnl_step *step) {
  if (build->n_steps == RT_DNNL_MAX_STEPS) return planc_error(PLANC_INTERNAL, "too many steps");
  build->steps[build->n_steps++] = *step;
  return NULL;
}

static const dnnl_memory_desc_t *scratchpad_of(dnnl_primitive_desc_t desc) {
  return dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
}

static int64_t scratchpad_bytes(dnnl_primitive_desc_t desc) {
  const dnnl_memory_desc_t *scratchpad = scratchpad_of(desc);
  return scratchpad ? (int64_t)dnnl_memory_desc_get_size(scratchpad) : 0;
}

static planc_status add_reorder(rt_dnnl_build *build, int32_t from, int32_t to, bool adding) {
  dnnl_engine_t cpu = build->engine->cpu;
  dnnl_primitive_desc_t desc;
  PLANC_TRY(rt_dnnl_status(
      dnnl_reorder_primitive_desc_create(&desc, &build->buffers[from].desc, cpu, &build->buffers[to].desc, cpu,
                                         adding ? build->engine->adding : build->engine->attr),
      "reorder"));
  PLANC_TRY(rt_dnnl_keep(build, desc));
  return rt_dnnl_primitive(build, desc, (rt_dnnl_arg[]){{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}, 2);
}

planc_status rt_dnnl_input(rt_dnnl_build *build, const rt_operand *operand, const dnnl_memory_desc_t *ours,
                           const dnnl_memory_desc_t *wanted, int32_t *out) {
  int32_t from = -1;
  PLANC_TRY(rt_dnnl_operand(build, operand, ours, &from));
  *out = from;
  if (dnnl_memory_desc_equal(ours, wanted)) return NULL;
  PLANC_TRY(rt_dnnl_piece(build, wanted, out));
  return add_reorder(build, from, *out, false);
}

bool rt_dnnl_adds(const rt_dnnl_build *build, const rt_operand *operand) {
  return build->adding == RT_DNNL_AS_CALLED ? operand->accumulate : build->adding == RT_DNNL_ALL;
}

planc_status rt_dnnl_output(rt_dnnl_build *build, const rt_operand *operand, const dnnl_memory_desc_t *ours,
                            const dnnl_memory_desc_t *wanted, int32_t *out) {
  if (dnnl_memory_desc_equal(ours, wanted) && !rt_dnnl_adds(build, operand))
    return rt_dnnl_operand(build, operand, ours, out);
  return rt_dnnl_piece(build, wanted, out);
}

planc_status rt_dnnl_store(rt_dnnl_build *build, const rt_operand *operand, const dnnl_memory_desc_t *ours,
                           int32_t buffer) {
  int32_t to = -1;
  if (build->buffers[buffer].operand) return NULL;
  PLANC_TRY(rt_dnnl_operand(build, operand, ours, &to));
  return add_reorder(build, buffer, to, rt_dnnl_adds(build, operand));
}

int64_t rt_dnnl_workspace(const rt_dnnl_build *build) {
  if (build->scratchpad_bytes == 0) return build->pieces_bytes;
  return pl_add_saturate(pl_align_up(build->pieces_bytes, PIECE_ALIGNMENT), build->scratchpad_bytes);
}

void rt_dnnl_build_free(rt_dnnl_build *build) {
  for (int32_t i = 0; i < build->n_descs; i++) dnnl_primitive_desc_destroy(build->descs[i]);
  build->n_descs = 0;
}

typedef struct ready_step {
  dnnl_primitive_t primitive; /* or */
  rt_dnnl_work work;
  int32_t n_args;
  union {
    dnnl_exec_arg_t args[RT_DNNL_MAX_ARGS + 1]; /* and the scratchpad */
    float *data[RT_DNNL_MAX_ARGS];
  } with;
} ready_step;

struct rt_dnnl {
  const rt_call *call;
  void (*inference)(const rt_call *call, const rt_launch *launch);
  dnnl_stream_t stream;
  int32_t n_memories, n_steps;
  dnnl_memory_t memories[RT_DNNL_MAX_BUFFERS + RT_DNNL_MAX_STEPS]; /* of buffers, then of scratchpads */
  ready_step steps[RT_DNNL_MAX_STEPS];
};

/* --- Ready to run ------------------------------------------------------------------------------------------------- */

static planc_status realise_all(const rt_dnnl_build *build, rt_dnnl *ready);
static planc_status add_memory(const rt_dnnl_build *build, const dnnl_memory_desc_t *desc, void *data, rt_dnnl *ready);
static void *address_of(const rt_dnnl_build *build, int32_t buffer);
static planc_status realise_primitive(const rt_dnnl_build *build, const rt_dnnl_step *from, ready_step *to,
                                      rt_dnnl *ready);

planc_status rt_dnnl_realise(const rt_dnnl_build *build, rt_dnnl **out) {
  rt_dnnl *ready = calloc(1, sizeof *ready);
  if (!ready) return planc_error(PLANC_OUT_OF_MEMORY, "prepared call");
  ready->call = build->call;
  ready->inference = build->inference;
  planc_status status = realise_all(build, ready);
  if (status)
    rt_dnnl_free(ready);
  else
    *out = ready;
  return status;
}

static planc_status realise_all(const rt_dnnl_build *build, rt_dnnl *ready) {
  PLANC_TRY(rt_dnnl_status(dnnl_stream_create(&ready->stream, build->engine->cpu, dnnl_stream_in_order), "stream"));
  for (int32_t b = 0; b < build->n_buffers; b++)
    PLANC_TRY(add_memory(build, &build->buffers[b].desc, address_of(build, b), ready));
  for (int32_t s = 0; s < build->n_steps; s++) {
    const rt_dnnl_step *from = &build->steps[s];
    ready_step *to = &ready->steps[ready->n_steps++];
    if (from->desc) {
      PLANC_TRY(realise_primitive(build, from, to, ready));
      continue;
    }
    to->work = from->work;
    to->n_args = from->n_args;
    for (int32_t a = 0; a < from->n_args; a++) to->with.data[a] = address_of(build, from->args[a].buffer);
  }
  return NULL;
}

void rt_dnnl_free(rt_dnnl *prepared) {
  if (!prepared) return;
  for (int32_t s = 0; s < prepared->n_steps; s++)
    if (prepared->steps[s].primitive) dnnl_primitive_destroy(prepared->steps[s].primitive);
  for (int32_t m = 0; m < prepared->n_memories; m++) dnnl_memory_destroy(prepared->memories[m]);
  if (prepared->stream) dnnl_stream_destroy(prepared->stream);
  free(prepared);
}

static void *address_of(const rt_dnnl_build *build, int32_t buffer) {
  const rt_dnnl_buffer *of = &build->buffers[buffer];
  return of->operand ? of->operand->data : (char *)build->call->workspace + of->offset;
}

static planc_status add_memory(const rt_dnnl_build *build, const dnnl_memory_desc_t *desc, void *data, rt_dnnl *ready) {
  PLANC_TRY(rt_dnnl_status(dnnl_memory_create(&ready->memories[ready->n_memories], desc, build->engine->cpu, data),
                           "memory"));
  ready->n_memories++;
  return NULL;
}

static planc_status realise_primitive(const rt_dnnl_build *build, const rt_dnnl_step *from, ready_step *to,
                                      rt_dnnl *ready) {
  PLANC_TRY(rt_dnnl_status(dnnl_primitive_create(&to->primitive, from->desc), "primitive"));
  for (int32_t a = 0; a < from->n_args; a++)
    to->with.args[to->n_args++] = (dnnl_exec_arg_t){from->args[a].name, ready->memories[from->args[a].buffer]};
  if (scratchpad_bytes(from->desc) == 0) return NULL;
  char *scratchpad = (char *)build->call->workspace + pl_align_up(build->pieces_bytes, PIECE_ALIGNMENT);
  PLANC_TRY(add_memory(build, scratchpad_of(from->desc), scratchpad, ready));
  to->with.args[to->n_args++] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, ready->memories[ready->n_memories - 1]};
  return NULL;
}

static planc_status run_steps(const rt_dnnl *prepared) {
  for (int32_t s = 0; s < prepared->n_steps; s++) {
    const ready_step *step = &prepared->steps[s];
    if (step->work)
      step->work(prepared->call, step->with.data);
    else
      PLANC_TRY(rt_dnnl_status(dnnl_primitive_execute(step->primitive, prepared->stream, step->n_args, step->with.args),
                               "execution"));
  }
  return rt_dnnl_status(dnnl_stream_wait(prepared->stream), "execution");
}

planc_status rt_dnnl_run(const rt_dnnl *prepared, const rt_launch *launch) {
  if (launch->inference && prepared->inference) {
    prepared->inference(prepared->call, launch);
    return NULL;
  }
  int threads = rt_dnnl_enter();
  planc_status status = run_steps(prepared);
  rt_dnnl_leave(threads);
  return status;
}
