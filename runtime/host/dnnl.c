/* Which calls oneDNN runs, by which algorithms. */
#include "runtime/host/dnnl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/optypes.h"
#include "planrt/planrt.h"
#include "runtime/host/dnnl_build.h"

static planc_status fill_engine(rt_dnnl_engine *engine);

planc_status rt_dnnl_engine_new(rt_dnnl_engine **out) {
  *out = NULL;
  rt_dnnl_engine *engine = calloc(1, sizeof *engine);
  if (!engine) return planc_error(PLANC_OUT_OF_MEMORY, "oneDNN");
  planc_status status = fill_engine(engine);
  if (status)
    rt_dnnl_engine_free(engine);
  else
    *out = engine;
  return status;
}

void rt_dnnl_engine_free(rt_dnnl_engine *engine) {
  if (!engine) return;
  if (engine->attr) dnnl_primitive_attr_destroy(engine->attr);
  if (engine->adding) dnnl_primitive_attr_destroy(engine->adding);
  if (engine->cpu) dnnl_engine_destroy(engine->cpu);
  free(engine);
}

/* --- Engine ------------------------------------------------------------------------------------------------------- */

static planc_status make_attr(bool adding, dnnl_primitive_attr_t *out) {
  PLANC_TRY(rt_dnnl_status(dnnl_primitive_attr_create(out), "attributes"));
  PLANC_TRY(rt_dnnl_status(dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user), "attributes"));
  PLANC_TRY(rt_dnnl_status(dnnl_primitive_attr_set_fpmath_mode(*out, dnnl_fpmath_mode_strict), "attributes"));
  if (!adding) return NULL;
  dnnl_post_ops_t sum;
  PLANC_TRY(rt_dnnl_status(dnnl_post_ops_create(&sum), "attributes"));
  dnnl_status_t status = dnnl_post_ops_append_sum(sum, 1.0F);
  if (status == dnnl_success) status = dnnl_primitive_attr_set_post_ops(*out, sum);
  dnnl_post_ops_destroy(sum);
  return rt_dnnl_status(status, "attributes");
}

static planc_status fill_engine(rt_dnnl_engine *engine) {
  PLANC_TRY(rt_dnnl_status(dnnl_engine_create(&engine->cpu, dnnl_cpu, 0), "engine"));
  PLANC_TRY(make_attr(false, &engine->attr));
  return make_attr(true, &engine->adding);
}

#define TEXT_OF(number) #number
#define DOTTED(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)
#define WITH(isa) "oneDNN " DOTTED(DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH) ", " isa

const char *planrt_host_library(void) {
  switch ((int)dnnl_get_effective_cpu_isa()) {
    case dnnl_cpu_isa_sse41:
      return WITH("sse41");
    case dnnl_cpu_isa_avx:
      return WITH("avx");
    case dnnl_cpu_isa_avx2:
      return WITH("avx2");
    case dnnl_cpu_isa_avx2_vnni:
      return WITH("avx2_vnni");
    case dnnl_cpu_isa_avx512_core:
      return WITH("avx512_core");
    case dnnl_cpu_isa_avx512_core_vnni:
      return WITH("avx512_core_vnni");
    case dnnl_cpu_isa_avx512_core_bf16:
      return WITH("avx512_core_bf16");
    case dnnl_cpu_isa_avx512_core_amx:
      return WITH("avx512_core_amx");
    default:
      return WITH("other");
  }
}

typedef struct family {
  planc_status (*build)(rt_dnnl_build *build);
  const char *algorithms[4]; /* ended by NULL */
} family;

/* --- Families ----------------------------------------------------------------------------------------------------- */

static const family *family_of(const rt_call *call);
static planc_status list_variants(const rt_dnnl_engine *engine, const rt_call *call, const family *of, rt_variant *out,
                                  int32_t *out_count);

planc_status rt_dnnl_variants(rt_dnnl_engine *engine, const rt_call *call, rt_variant *out, int32_t *out_count) {
  *out_count = 0;
  const family *of = family_of(call);
  if (!of) return NULL;
  int threads = rt_dnnl_enter();
  planc_status status = list_variants(engine, call, of, out, out_count);
  rt_dnnl_leave(threads);
  return status;
}

#define CONV                                    \
  rt_dnnl_conv, {                               \
    "dnnl-direct", "dnnl-gemm", "dnnl-winograd" \
  }
#define ONLY(build) \
  build, {          \
    "dnnl"          \
  }

static const family families[PL_N_OPTYPES] = {
    [PL_OPTYPE_avgpool2d] = {ONLY(rt_dnnl_pool)},
    [PL_OPTYPE_avgpool2d_grad] = {ONLY(rt_dnnl_pool)},
    [PL_OPTYPE_batchnorm] = {ONLY(rt_dnnl_norm)},
    [PL_OPTYPE_batchnorm_grad] = {ONLY(rt_dnnl_norm)},
    [PL_OPTYPE_batchnorm_infer] = {ONLY(rt_dnnl_norm)},
    [PL_OPTYPE_conv2d] = {CONV},
    [PL_OPTYPE_conv2d_dgrad] = {CONV},
    [PL_OPTYPE_conv2d_wgrad] = {CONV},
    [PL_OPTYPE_layernorm] = {ONLY(rt_dnnl_layernorm)},
    [PL_OPTYPE_layernorm_grad] = {ONLY(rt_dnnl_layernorm)},
    [PL_OPTYPE_linear] = {ONLY(rt_dnnl_matmul)},
    [PL_OPTYPE_linear_dgrad] = {ONLY(rt_dnnl_matmul)},
    [PL_OPTYPE_linear_wgrad] = {ONLY(rt_dnnl_matmul)},
    [PL_OPTYPE_matmul] = {ONLY(rt_dnnl_matmul_batched)},
    [PL_OPTYPE_matmul_nt] = {ONLY(rt_dnnl_matmul_batched)},
    [PL_OPTYPE_matmul_tn] = {ONLY(rt_dnnl_matmul_batched)},
    [PL_OPTYPE_maxpool2d] = {ONLY(rt_dnnl_pool)},
    [PL_OPTYPE_maxpool2d_grad] = {ONLY(rt_dnnl_pool)},
};

static bool has_elements(const rt_operand *operands, int32_t count) {
  for (int32_t i = 0; i < count; i++)
    if (operands[i].elements == 0) return false;
  return true;
}

/* NULL: oneDNN has nothing for the call. */
static const family *family_of(const rt_call *call) {
  if (call->role != PLANC_ROLE_OP) return NULL;
  if (!has_elements(call->in, call->n_in) || !has_elements(call->out, call->n_out)) return NULL;
  const family *of = &families[pl_optype_of(call->op)];
  return of->build ? of : NULL;
}

/* What a plan must provide: it states one workspace for an op, batch and algorithm, whether or not the op adds. */
static planc_status measure(const rt_dnnl_engine *engine, const rt_call *call, const family *of, const char *algorithm,
                            int64_t *out_bytes) {
  *out_bytes = 0;
  bool can_add = call->op->flags & PLANC_OP_ACCUMULATES;
  for (int adding = RT_DNNL_NONE; adding <= (can_add ? RT_DNNL_ALL : RT_DNNL_NONE); adding++) {
    rt_dnnl_build build = {.engine = engine, .call = call, .algorithm = algorithm, .adding = (rt_dnnl_adding)adding};
    planc_status status = of->build(&build);
    int64_t bytes = rt_dnnl_workspace(&build);
    rt_dnnl_build_free(&build);
    PLANC_TRY(status);
    if (bytes > *out_bytes) *out_bytes = bytes;
  }
  return NULL;
}

static planc_status list_variants(const rt_dnnl_engine *engine, const rt_call *call, const family *of, rt_variant *out,
                                  int32_t *out_count) {
  for (const char *const *algorithm = of->algorithms; *algorithm; algorithm++) {
    int64_t bytes;
    planc_status status = measure(engine, call, of, *algorithm, &bytes);
    if (status && planc_status_code(status) != PLANC_DEVICE) return status;
    if (status) {
      planc_status_free(status);
      continue;
    }
    int32_t at = (*out_count)++;
    for (; at > 0 && out[at - 1].workspace_bytes > bytes; at--) out[at] = out[at - 1];
    out[at] = (rt_variant){.workspace_bytes = bytes, .deterministic = true};
    snprintf(out[at].algorithm, sizeof out[at].algorithm, "%s", *algorithm);
  }
  return NULL;
}

static planc_status prepare(const rt_dnnl_engine *engine, const rt_call *call, const family *of, rt_dnnl **out) {
  int64_t need;
  PLANC_TRY(measure(engine, call, of, call->algorithm, &need));
  if (call->workspace_bytes < need)
    return planc_error(PLANC_DEVICE, "needs a workspace of %lld bytes, has %lld", (long long)need,
                       (long long)call->workspace_bytes);
  rt_dnnl_build build = {.engine = engine, .call = call, .algorithm = call->algorithm};
  planc_status status = of->build(&build);
  if (!status) status = rt_dnnl_realise(&build, out);
  rt_dnnl_build_free(&build);
  return status;
}

planc_status rt_dnnl_prepare(rt_dnnl_engine *engine, const rt_call *call, rt_dnnl **out) {
  *out = NULL;
  const family *of = family_of(call);
  if (!of) return NULL;
  const char *const *known = of->algorithms;
  while (*known && strcmp(*known, call->algorithm) != 0) known++;
  if (!*known) return NULL;
  int threads = rt_dnnl_enter();
  planc_status status = prepare(engine, call, of, out);
  rt_dnnl_leave(threads);
  return planc_context(status, "%s", call->algorithm);
}
