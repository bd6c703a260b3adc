/* Matrix products by oneDNN: fully connected layers, whose leading dimensions are rows, and batched products of
 * activations. A transposed factor is the same memory with its strides exchanged. */
#include "graph/optypes.h"
#include "runtime/host/dnnl_build.h"

/* An operand as rows x columns, or its transpose. */
static planc_status matrix(const rt_operand *operand, bool transposed, dnnl_memory_desc_t *out) {
  int64_t columns = operand->dims[operand->rank - 1], rows = operand->elements / columns;
  if (transposed) return rt_dnnl_strided(2, (int64_t[]){columns, rows}, (int64_t[]){1, columns}, out);
  return rt_dnnl_strided(2, (int64_t[]){rows, columns}, (int64_t[]){columns, 1}, out);
}

planc_status rt_dnnl_matmul(rt_dnnl_build *build) {
  const rt_call *call = build->call;
  const rt_operand *first = &call->in[0], *second = &call->in[1], *out = &call->out[0];
  const rt_operand *a = first, *b = second, *bias = NULL;
  bool transpose_a = false, transpose_b = false;
  if (pl_optype_of(call->op) == PL_OPTYPE_linear) { /* y = x w' + b */
    transpose_b = true;
    if (call->n_in > 2) bias = &call->in[2];
  } else if (pl_optype_of(call->op) == PL_OPTYPE_linear_dgrad) { /* dx = dy w */
    a = second, b = first;
  } else { /* dw = dy' x */
    a = second, b = first;
    transpose_a = true;
  }
  dnnl_memory_desc_t a_desc, b_desc, out_desc, bias_desc;
  PLANC_TRY(matrix(a, transpose_a, &a_desc));
  PLANC_TRY(matrix(b, transpose_b, &b_desc));
  PLANC_TRY(matrix(out, false, &out_desc));
  if (bias) PLANC_TRY(rt_dnnl_strided(2, (int64_t[]){1, bias->elements}, (int64_t[]){bias->elements, 1}, &bias_desc));
  dnnl_matmul_desc_t operation;
  dnnl_primitive_desc_t desc;
  PLANC_TRY(rt_dnnl_status(dnnl_matmul_desc_init(&operation, &a_desc, &b_desc, bias ? &bias_desc : NULL, &out_desc),
                           "matrix product"));
  PLANC_TRY(rt_dnnl_describe(build, &operation, NULL,
                             rt_dnnl_adds(build, out) ? build->engine->adding : build->engine->attr, &desc));
  rt_dnnl_arg args[] = {
      {.name = DNNL_ARG_SRC}, {.name = DNNL_ARG_WEIGHTS}, {.name = DNNL_ARG_DST}, {.name = DNNL_ARG_BIAS}};
  PLANC_TRY(rt_dnnl_operand(build, a, &a_desc, &args[0].buffer));
  PLANC_TRY(rt_dnnl_operand(build, b, &b_desc, &args[1].buffer));
  PLANC_TRY(rt_dnnl_operand(build, out, &out_desc, &args[2].buffer));
  if (bias) PLANC_TRY(rt_dnnl_operand(build, bias, &bias_desc, &args[3].buffer));
  return rt_dnnl_primitive(build, desc, args, bias ? 4 : 3);
}

/* --- Batched products --------------------------------------------------------------------------------------------- */

/* An operand's last two dimensions as matrices, or their transposes; all others count them. */
static planc_status matrices(const rt_operand *operand, bool transposed, dnnl_memory_desc_t *out) {
  int64_t columns = operand->dims[operand->rank - 1], rows = operand->dims[operand->rank - 2];
  int64_t count = operand->elements / (rows * columns);
  if (transposed)
    return rt_dnnl_strided(3, (int64_t[]){count, columns, rows}, (int64_t[]){rows * columns, 1, columns}, out);
  return rt_dnnl_strided(3, (int64_t[]){count, rows, columns}, (int64_t[]){rows * columns, columns, 1}, out);
}

static planc_status scaled(const rt_dnnl_build *build, dnnl_primitive_attr_t *out) {
  float scale = (float)planc_op_real(build->call->op, "scale", 1.0);
  PLANC_TRY(rt_dnnl_status(dnnl_primitive_attr_clone(out, build->engine->attr), "attributes"));
  dnnl_status_t status = dnnl_primitive_attr_set_output_scales(*out, 1, 0, &scale);
  if (status != dnnl_success) dnnl_primitive_attr_destroy(*out);
  return rt_dnnl_status(status, "attributes");
}

planc_status rt_dnnl_matmul_batched(rt_dnnl_build *build) {
  const rt_call *call = build->call;
  pl_optype_id type = pl_optype_of(call->op);
  const rt_operand *operands[] = {&call->in[0], &call->in[1], &call->out[0]};
  dnnl_memory_desc_t descs[3];
  PLANC_TRY(matrices(operands[0], type == PL_OPTYPE_matmul_tn, &descs[0]));
  PLANC_TRY(matrices(operands[1], type == PL_OPTYPE_matmul_nt, &descs[1]));
  PLANC_TRY(matrices(operands[2], false, &descs[2]));
  dnnl_matmul_desc_t operation;
  dnnl_primitive_desc_t desc;
  dnnl_primitive_attr_t attr;
  PLANC_TRY(rt_dnnl_status(dnnl_matmul_desc_init(&operation, &descs[0], &descs[1], NULL, &descs[2]), "matrix product"));
  PLANC_TRY(scaled(build, &attr));
  planc_status status = rt_dnnl_describe(build, &operation, NULL, attr, &desc);
  dnnl_primitive_attr_destroy(attr);
  PLANC_TRY(status);
  rt_dnnl_arg args[] = {{.name = DNNL_ARG_SRC}, {.name = DNNL_ARG_WEIGHTS}, {.name = DNNL_ARG_DST}};
  for (int i = 0; i < 3; i++) PLANC_TRY(rt_dnnl_operand(build, operands[i], &descs[i], &args[i].buffer));
  return rt_dnnl_primitive(build, desc, args, 3);
}
