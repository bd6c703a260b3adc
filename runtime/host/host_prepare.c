/* Which kernel runs a call: one of oneDNN's where the plan names one, else a plain one. */
#include "runtime/host/host_prepare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/bf16.h"

static const char plain_algorithm[] = "plain";

static planc_status find_plain(const rt_preparer *preparer, const rt_call *call, const rt_kernel **out);
static bool takes_bf16(const rt_kernel *kernel);
static planc_status list_variants(rt_preparer *preparer, const rt_call *call, rt_variant *out, int32_t *out_count);

planc_status rt_host_variants(rt_preparer *preparer, const rt_call *call, rt_variant *out, int32_t *out_count) {
  const rt_kernel *plain;
  rt_widened *widened = NULL;
  PLANC_TRY(find_plain(preparer, call, &plain));
  if (!takes_bf16(plain)) PLANC_TRY(rt_widen(call, &widened));
  planc_status status = list_variants(preparer, widened ? rt_widened_call(widened) : call, out, out_count);
  for (int32_t v = 0; widened && !status && v < *out_count; v++)
    out[v].workspace_bytes = rt_widened_workspace(widened, out[v].workspace_bytes);
  rt_widened_free(widened);
  return status;
}

static bool has_dtypes(const rt_operand *operands, int32_t count) {
  for (int32_t i = 0; i < count; i++)
    if (!rt_is_real(operands[i].dtype) && operands[i].dtype != PLANC_DTYPE_i64) return false;
  return true;
}

/* The plain kernel for a call: any algorithm's, in one order of summation and without workspace. */
static planc_status find_plain(const rt_preparer *preparer, const rt_call *call, const rt_kernel **out) {
  *out = call->role == PLANC_ROLE_EXCHANGE ? &rt_exchange_kernel : &rt_accumulate_kernel;
  if (preparer->synthetic) {
    *out = &rt_synthetic_kernel;
    return NULL;
  }
  if (call->role == PLANC_ROLE_OP) *out = rt_kernel_find(pl_optype_of(call->op));
  if (!*out)
    return planc_refusal(PLANC_DEVICE, PLANC_REMEDY_SYNTHETIC, "the host has no kernel for %s", call->op->type);
  if (has_dtypes(call->in, call->n_in) && has_dtypes(call->out, call->n_out) &&
      has_dtypes(call->effects, call->n_effects))
    return NULL;
  return planc_refusal(PLANC_DEVICE, PLANC_REMEDY_SYNTHETIC, "the host has a kernel for %s in f32 and bf16 only",
                       call->op->type);
}

/* True for what looks at the types of its operands itself; for others bf16 operands are widened. */
static bool takes_bf16(const rt_kernel *kernel) {
  return kernel->run == rt_cast || kernel == &rt_synthetic_kernel;
}

/* The algorithms for a call on f32 operands. */
static planc_status list_variants(rt_preparer *preparer, const rt_call *call, rt_variant *out, int32_t *out_count) {
  *out_count = 0;
  if (!preparer->synthetic) PLANC_TRY(rt_dnnl_variants(preparer->engine, call, out, out_count));
  if (*out_count > 0) return NULL;
  *out_count = 1;
  out[0] = (rt_variant){.deterministic = true};
  snprintf(out[0].algorithm, sizeof out[0].algorithm, "%s", plain_algorithm);
  return NULL;
}

static planc_status fill_prepared(rt_preparer *preparer, const rt_call *call, rt_prepared *out);
static void free_prepared(rt_prepared *prepared);

planc_status rt_host_prepare(rt_preparer *preparer, rt_call *call) {
  rt_prepared *prepared = calloc(1, sizeof *prepared);
  if (!prepared) return planc_error(PLANC_OUT_OF_MEMORY, "prepared call");
  planc_status status = fill_prepared(preparer, call, prepared);
  if (status) {
    free_prepared(prepared);
    return status;
  }
  prepared->next = preparer->all;
  preparer->all = prepared;
  call->handle = prepared;
  return NULL;
}

static void free_prepared(rt_prepared *prepared) {
  rt_dnnl_free(prepared->dnnl);
  rt_widened_free(prepared->widened);
  free(prepared);
}

/* A plan made for another device states no workspace for what only the host needs; one of the host's algorithms comes
 * with its workspace. */
static planc_status prepare_widened(rt_preparer *preparer, const rt_call *call, rt_prepared *out) {
  bool fits;
  PLANC_TRY(rt_widened_bind(out->widened, call, &preparer->spare, &fits));
  PLANC_TRY(rt_dnnl_prepare(preparer->engine, rt_widened_call(out->widened), &out->dnnl));
  if (fits || (!out->dnnl && strcmp(call->algorithm, plain_algorithm) != 0)) return NULL;
  return planc_error(PLANC_DEVICE, "%s: needs a workspace of %lld bytes for bf16 operands, has %lld", call->algorithm,
                     (long long)rt_widened_workspace(out->widened, 0), (long long)call->workspace_bytes);
}

static planc_status fill_prepared(rt_preparer *preparer, const rt_call *call, rt_prepared *out) {
  PLANC_TRY(find_plain(preparer, call, &out->kernel));
  if (!takes_bf16(out->kernel)) PLANC_TRY(rt_widen(call, &out->widened));
  if (out->widened) return prepare_widened(preparer, call, out);
  return preparer->synthetic ? NULL : rt_dnnl_prepare(preparer->engine, call, &out->dnnl);
}

static planc_status run(const rt_prepared *prepared, const rt_call *call, const rt_launch *launch) {
  if (prepared->dnnl) return rt_dnnl_run(prepared->dnnl, launch);
  prepared->kernel->run(call, launch);
  return NULL;
}

planc_status rt_prepared_run(const rt_call *call, const rt_launch *launch) {
  const rt_prepared *prepared = call->handle;
  if (!prepared->widened) return run(prepared, call, launch);
  rt_widened_begin(prepared->widened);
  planc_status status = run(prepared, rt_widened_call(prepared->widened), launch);
  rt_widened_end(prepared->widened);
  return status;
}

planc_status rt_preparer_open(bool synthetic, rt_preparer *out) {
  *out = (rt_preparer){.synthetic = synthetic};
  rt_spare_open(&out->spare);
  return rt_dnnl_engine_new(&out->engine);
}

void rt_preparer_close(rt_preparer *preparer) {
  while (preparer->all) {
    rt_prepared *next = preparer->all->next;
    free_prepared(preparer->all);
    preparer->all = next;
  }
  rt_dnnl_engine_free(preparer->engine);
  rt_spare_close(&preparer->spare);
}
