/* Fully connected layers as matrix products by oneDNN. Leading dimensions are rows; a transposed factor is the same
 * memory with its strides exchanged. */
#include <string.h>

#include "runtime/host/dnnl_build.h"

/* An operand as rows x columns, or its transpose. */
static planc_status matrix(const planrt_operand *operand, bool transposed, dnnl_memory_desc_t *out) {
  int64_t columns = operand->dims[operand->rank - 1], rows = operand->elements / columns;
  if (transposed) return planrt_dnnl_strided(2, (int64_t[]){columns, rows}, (int64_t[]){1, columns}, out);
  return planrt_dnnl_strided(2, (int64_t[]){rows, columns}, (int64_t[]){columns, 1}, out);
}

planc_status planrt_dnnl_matmul(planrt_dnnl_build *build) {
  const planrt_call *call = build->call;
  const planrt_operand *first = &call->in[0], *second = &call->in[1], *out = &call->out[0];
  const planrt_operand *a = first, *b = second, *bias = NULL;
  bool transpose_a = false, transpose_b = false;
  if (strcmp(call->op->type, "linear") == 0) { /* y = x w' + b */
    transpose_b = true;
    if (call->n_in > 2) bias = &call->in[2];
  } else if (strcmp(call->op->type, "linear_dgrad") == 0) { /* dx = dy w */
    a = second, b = first;
  } else { /* dw = dy' x */
    a = second, b = first;
    transpose_a = true;
  }
  dnnl_memory_desc_t a_desc, b_desc, out_desc, bias_desc;
  PLANC_TRY(matrix(a, transpose_a, &a_desc));
  PLANC_TRY(matrix(b, transpose_b, &b_desc));
  PLANC_TRY(matrix(out, false, &out_desc));
  if (bias)
    PLANC_TRY(planrt_dnnl_strided(2, (int64_t[]){1, bias->elements}, (int64_t[]){bias->elements, 1}, &bias_desc));
  dnnl_matmul_desc_t operation;
  dnnl_primitive_desc_t desc;
  PLANC_TRY(planrt_dnnl_status(dnnl_matmul_desc_init(&operation, &a_desc, &b_desc, bias ? &bias_desc : NULL, &out_desc),
                               "matrix product"));
  PLANC_TRY(planrt_dnnl_describe(build, &operation, NULL,
                                 planrt_dnnl_adds(build, out) ? build->engine->adding : build->engine->attr, &desc));
  planrt_dnnl_arg args[] = {
      {.name = DNNL_ARG_SRC}, {.name = DNNL_ARG_WEIGHTS}, {.name = DNNL_ARG_DST}, {.name = DNNL_ARG_BIAS}};
  PLANC_TRY(planrt_dnnl_operand(build, a, &a_desc, &args[0].buffer));
  PLANC_TRY(planrt_dnnl_operand(build, b, &b_desc, &args[1].buffer));
  PLANC_TRY(planrt_dnnl_operand(build, out, &out_desc, &args[2].buffer));
  if (bias) PLANC_TRY(planrt_dnnl_operand(build, bias, &bias_desc, &args[3].buffer));
  return planrt_dnnl_primitive(build, desc, args, bias ? 4 : 3);
}
