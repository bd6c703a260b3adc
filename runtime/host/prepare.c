/* Which kernel runs a call: one of oneDNN's where the plan names one, else a plain one. */
#include "runtime/host/prepare.h"

#include <stdio.h>
#include <stdlib.h>

static bool has_dtypes(const planrt_operand *operands, int32_t count) {
  for (int32_t i = 0; i < count; i++)
    if (operands[i].dtype != PLANC_DTYPE_f32 && operands[i].dtype != PLANC_DTYPE_i64) return false;
  return true;
}

/* The plain kernel for a call: any algorithm's, in one order of summation and without workspace. */
static planc_status find_plain(const planrt_preparer *preparer, const planrt_call *call, const planrt_kernel **out) {
  *out = &planrt_accumulate_kernel;
  if (preparer->synthetic) {
    *out = &planrt_synthetic_kernel;
    return NULL;
  }
  if (call->role == PLANC_ROLE_OP) *out = planrt_kernel_find(call->op->type);
  if (!*out) return planc_error(PLANC_DEVICE, "the host has no kernel for %s", call->op->type);
  if (has_dtypes(call->in, call->n_in) && has_dtypes(call->out, call->n_out) &&
      has_dtypes(call->effects, call->n_effects))
    return NULL;
  return planc_error(PLANC_DEVICE, "the host has a kernel for %s in f32 only", call->op->type);
}

planc_status planrt_host_variants(planrt_preparer *preparer, const planrt_call *call, planrt_variant *out,
                                  int32_t *out_count) {
  const planrt_kernel *plain;
  PLANC_TRY(find_plain(preparer, call, &plain));
  *out_count = 0;
  if (!preparer->synthetic) PLANC_TRY(planrt_dnnl_variants(preparer->engine, call, out, out_count));
  if (*out_count > 0) return NULL;
  *out_count = 1;
  out[0] = (planrt_variant){.deterministic = true};
  snprintf(out[0].algorithm, sizeof out[0].algorithm, "plain");
  return NULL;
}

planc_status planrt_host_prepare(planrt_preparer *preparer, planrt_call *call) {
  planrt_prepared found = {0};
  PLANC_TRY(find_plain(preparer, call, &found.kernel));
  if (!preparer->synthetic) PLANC_TRY(planrt_dnnl_prepare(preparer->engine, call, &found.dnnl));
  planrt_prepared *prepared = malloc(sizeof *prepared);
  if (!prepared) {
    planrt_dnnl_free(found.dnnl);
    return planc_error(PLANC_OUT_OF_MEMORY, "prepared call");
  }
  found.next = preparer->all;
  *prepared = found;
  preparer->all = prepared;
  call->handle = prepared;
  return NULL;
}

planc_status planrt_prepared_run(const planrt_call *call, const planrt_launch *launch) {
  const planrt_prepared *prepared = call->handle;
  if (prepared->dnnl) return planrt_dnnl_run(prepared->dnnl, launch);
  prepared->kernel->run(call, launch);
  return NULL;
}

planc_status planrt_preparer_open(bool synthetic, planrt_preparer *out) {
  *out = (planrt_preparer){.synthetic = synthetic};
  return planrt_dnnl_engine_new(&out->engine);
}

void planrt_preparer_close(planrt_preparer *preparer) {
  while (preparer->all) {
    planrt_prepared *next = preparer->all->next;
    planrt_dnnl_free(preparer->all->dnnl);
    free(preparer->all);
    preparer->all = next;
  }
  planrt_dnnl_engine_free(preparer->engine);
}
