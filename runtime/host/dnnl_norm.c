/* Batch and layer normalisation by oneDNN. Where our operands are 1 / sqrt(variance + epsilon), oneDNN's are the
 * variance: that lies in the workspace, and own code converts. Running statistics follow our own rule (norm.c). */
#include <math.h>

#include "runtime/host/dnnl_build.h"

enum { AFFINE = dnnl_use_scale | dnnl_use_shift };

/* The descriptions that all directions need: of data, of scale and shift, of mean and variance. */
typedef struct layouts {
  dnnl_memory_desc_t data, vector, statistic;
} layouts;

static planc_status channel_layouts(const rt_call *call, layouts *out);
static planc_status forward(rt_dnnl_build *build, const layouts *l);
static planc_status infer(rt_dnnl_build *build, const layouts *l);
static planc_status backward(rt_dnnl_build *build, const layouts *l);

planc_status rt_dnnl_norm(rt_dnnl_build *build) {
  layouts l;
  PLANC_TRY(channel_layouts(build->call, &l));
  pl_optype_id type = pl_optype_of(build->call->op);
  if (type == PL_OPTYPE_batchnorm) return forward(build, &l);
  if (type == PL_OPTYPE_batchnorm_infer) return infer(build, &l);
  return backward(build, &l);
}

/* Results of a forward pass: the primitive, and own code that finishes what it leaves as the variance. */
static planc_status add_forward(rt_dnnl_build *build, const layouts *l, dnnl_primitive_desc_t desc,
                                rt_dnnl_work finish) {
  const rt_call *call = build->call;
  rt_dnnl_arg args[] = {{.name = DNNL_ARG_SRC}, {.name = DNNL_ARG_SCALE}, {.name = DNNL_ARG_SHIFT},
                        {.name = DNNL_ARG_DST}, {.name = DNNL_ARG_MEAN},  {.name = DNNL_ARG_VARIANCE}};
  PLANC_TRY(rt_dnnl_operand(build, &call->in[0], &l->data, &args[0].buffer));
  PLANC_TRY(rt_dnnl_operand(build, &call->in[1], &l->vector, &args[1].buffer));
  PLANC_TRY(rt_dnnl_operand(build, &call->in[2], &l->vector, &args[2].buffer));
  PLANC_TRY(rt_dnnl_operand(build, &call->out[0], &l->data, &args[3].buffer));
  PLANC_TRY(rt_dnnl_operand(build, &call->out[1], &l->statistic, &args[4].buffer));
  PLANC_TRY(rt_dnnl_piece(build, &l->statistic, &args[5].buffer));
  PLANC_TRY(rt_dnnl_primitive(build, desc, args, 6));
  return rt_dnnl_own(build, finish, &args[5].buffer, 1);
}

/* From (variance): what gives back our invstd when epsilon is 0. */
static void recover_variance(const rt_call *call, float *const *data) {
  const float *invstds = call->in[3].data;
  for (int64_t c = 0; c < call->in[3].elements; c++)
    data[0][c] = (float)(1.0 / ((double)invstds[c] * (double)invstds[c]));
}

static planc_status add_backward(rt_dnnl_build *build, const layouts *l, dnnl_primitive_desc_t desc) {
  const rt_call *call = build->call;
  rt_dnnl_arg args[] = {{.name = DNNL_ARG_SRC},        {.name = DNNL_ARG_SCALE},      {.name = DNNL_ARG_MEAN},
                        {.name = DNNL_ARG_VARIANCE},   {.name = DNNL_ARG_DIFF_DST},   {.name = DNNL_ARG_DIFF_SRC},
                        {.name = DNNL_ARG_DIFF_SCALE}, {.name = DNNL_ARG_DIFF_SHIFT}, {.name = DNNL_ARG_SHIFT}};
  const rt_operand *dgamma = &call->out[1], *dbeta = &call->out[2];
  PLANC_TRY(rt_dnnl_operand(build, &call->in[0], &l->data, &args[0].buffer));
  PLANC_TRY(rt_dnnl_operand(build, &call->in[1], &l->vector, &args[1].buffer));
  PLANC_TRY(rt_dnnl_operand(build, &call->in[2], &l->statistic, &args[2].buffer));
  PLANC_TRY(rt_dnnl_piece(build, &l->statistic, &args[3].buffer));
  PLANC_TRY(rt_dnnl_operand(build, &call->in[4], &l->data, &args[4].buffer));
  PLANC_TRY(rt_dnnl_operand(build, &call->out[0], &l->data, &args[5].buffer));
  PLANC_TRY(rt_dnnl_output(build, dgamma, &l->vector, &l->vector, &args[6].buffer));
  PLANC_TRY(rt_dnnl_output(build, dbeta, &l->vector, &l->vector, &args[7].buffer));
  args[8].buffer = args[1].buffer; /* asked for, though no gradient depends on the shift */
  PLANC_TRY(rt_dnnl_own(build, recover_variance, &args[3].buffer, 1));
  PLANC_TRY(rt_dnnl_primitive(build, desc, args, 9));
  PLANC_TRY(rt_dnnl_store(build, dgamma, &l->vector, args[6].buffer));
  return rt_dnnl_store(build, dbeta, &l->vector, args[7].buffer);
}

/* --- Batch normalisation ------------------------------------------------------------------------------------------ */

/* One number per channel. Positions are one dimension beside the channels, whatever the graph says of them. */
static planc_status channel_layouts(const rt_call *call, layouts *out) {
  rt_channels shape = rt_channels_of(call, &call->in[0]);
  PLANC_TRY(rt_dnnl_vector(shape.channels, &out->vector));
  out->statistic = out->vector;
  int64_t c = shape.channels;
  if (shape.inner == 1) /* channels last: rows of them */
    return rt_dnnl_strided(4, (int64_t[]){1, c, shape.outer, 1}, (int64_t[]){shape.outer * c, 1, c, c}, &out->data);
  return rt_dnnl_strided(4, (int64_t[]){shape.outer, c, shape.inner, 1},
                         (int64_t[]){c * shape.inner, shape.inner, 1, 1}, &out->data);
}

static float epsilon_of(const rt_call *call) {
  return (float)planc_op_real(call->op, "epsilon", 1e-5);
}

/* From (variance): invstd and, but for a recompute, running statistics. */
static void finish_statistics(const rt_call *call, float *const *data) {
  const float *variances = data[0], *means = call->out[1].data;
  float *invstds = call->out[2].data, *running_mean = call->effects[0].data, *running_var = call->effects[1].data;
  rt_channels shape = rt_channels_of(call, &call->in[0]);
  double count = (double)(shape.outer * shape.inner), epsilon = planc_op_real(call->op, "epsilon", 1e-5);
  double unbias = count > 1 ? count / (count - 1) : 1.0;
  float momentum = (float)planc_op_real(call->op, "momentum", 0.1);
  for (int64_t c = 0; c < shape.channels; c++) {
    invstds[c] = (float)(1.0 / sqrt((double)variances[c] + epsilon));
    if (!running_mean) continue;
    running_mean[c] += momentum * (means[c] - running_mean[c]);
    running_var[c] += momentum * ((float)((double)variances[c] * unbias) - running_var[c]);
  }
}

static planc_status forward(rt_dnnl_build *build, const layouts *l) {
  const rt_call *call = build->call;
  dnnl_batch_normalization_desc_t operation;
  dnnl_primitive_desc_t desc;
  PLANC_TRY(rt_dnnl_status(
      dnnl_batch_normalization_forward_desc_init(&operation, dnnl_forward_training, &l->data, epsilon_of(call), AFFINE),
      "batchnorm"));
  PLANC_TRY(rt_dnnl_describe(build, &operation, NULL, build->engine->attr, &desc));
  build->inference = rt_batchnorm;
  return add_forward(build, l, desc, finish_statistics);
}

static planc_status infer(rt_dnnl_build *build, const layouts *l) {
  const rt_call *call = build->call;
  dnnl_batch_normalization_desc_t operation;
  dnnl_primitive_desc_t desc;
  PLANC_TRY(rt_dnnl_status(dnnl_batch_normalization_forward_desc_init(&operation, dnnl_forward_inference, &l->data,
                                                                      epsilon_of(call), AFFINE | dnnl_use_global_stats),
                           "batchnorm"));
  PLANC_TRY(rt_dnnl_describe(build, &operation, NULL, build->engine->attr, &desc));
  rt_dnnl_arg args[] = {{.name = DNNL_ARG_SRC},  {.name = DNNL_ARG_SCALE},    {.name = DNNL_ARG_SHIFT},
                        {.name = DNNL_ARG_MEAN}, {.name = DNNL_ARG_VARIANCE}, {.name = DNNL_ARG_DST}};
  for (int32_t i = 0; i < 5; i++)
    PLANC_TRY(rt_dnnl_operand(build, &call->in[i], i == 0 ? &l->data : &l->vector, &args[i].buffer));
  PLANC_TRY(rt_dnnl_operand(build, &call->out[0], &l->data, &args[5].buffer));
  return rt_dnnl_primitive(build, desc, args, 6);
}

static planc_status backward(rt_dnnl_build *build, const layouts *l) {
  dnnl_batch_normalization_desc_t operation;
  dnnl_primitive_desc_t hint, desc;
  PLANC_TRY(rt_dnnl_status(
      dnnl_batch_normalization_forward_desc_init(&operation, dnnl_forward_training, &l->data, 0.0F, AFFINE),
      "batchnorm"));
  PLANC_TRY(rt_dnnl_describe(build, &operation, NULL, build->engine->attr, &hint));
  PLANC_TRY(rt_dnnl_status(
      dnnl_batch_normalization_backward_desc_init(&operation, dnnl_backward, &l->data, &l->data, 0.0F, AFFINE),
      "batchnorm_grad"));
  PLANC_TRY(rt_dnnl_describe(build, &operation, hint, build->engine->attr, &desc));
  return add_backward(build, l, desc);
}

/* --- Layer normalisation ------------------------------------------------------------------------------------------ */

static planc_status row_layouts(const rt_call *call, layouts *out);
static planc_status row_forward(rt_dnnl_build *build, const layouts *l);
static planc_status row_backward(rt_dnnl_build *build, const layouts *l);

planc_status rt_dnnl_layernorm(rt_dnnl_build *build) {
  layouts l;
  PLANC_TRY(row_layouts(build->call, &l));
  return pl_optype_of(build->call->op) == PL_OPTYPE_layernorm ? row_forward(build, &l) : row_backward(build, &l);
}

/* One number per row, scale and shift per element of one. */
static planc_status row_layouts(const rt_call *call, layouts *out) {
  int64_t width = call->in[0].dims[call->in[0].rank - 1], rows = call->in[0].elements / width;
  PLANC_TRY(rt_dnnl_vector(width, &out->vector));
  PLANC_TRY(rt_dnnl_vector(rows, &out->statistic));
  return rt_dnnl_strided(2, (int64_t[]){rows, width}, (int64_t[]){width, 1}, &out->data);
}

/* From (variance): invstd. */
static void finish_rows(const rt_call *call, float *const *data) {
  double epsilon = planc_op_real(call->op, "epsilon", 1e-5);
  float *invstds = call->out[2].data;
  for (int64_t r = 0; r < call->out[2].elements; r++) invstds[r] = (float)(1.0 / sqrt((double)data[0][r] + epsilon));
}

static planc_status row_forward(rt_dnnl_build *build, const layouts *l) {
  const rt_call *call = build->call;
  dnnl_layer_normalization_desc_t operation;
  dnnl_primitive_desc_t desc;
  PLANC_TRY(rt_dnnl_status(dnnl_layer_normalization_forward_desc_init(&operation, dnnl_forward_training, &l->data,
                                                                      &l->statistic, epsilon_of(call), AFFINE),
                           "layernorm"));
  PLANC_TRY(rt_dnnl_describe(build, &operation, NULL, build->engine->attr, &desc));
  return add_forward(build, l, desc, finish_rows);
}

static planc_status row_backward(rt_dnnl_build *build, const layouts *l) {
  dnnl_layer_normalization_desc_t operation;
  dnnl_primitive_desc_t hint, desc;
  PLANC_TRY(rt_dnnl_status(dnnl_layer_normalization_forward_desc_init(&operation, dnnl_forward_training, &l->data,
                                                                      &l->statistic, 0.0F, AFFINE),
                           "layernorm"));
  PLANC_TRY(rt_dnnl_describe(build, &operation, NULL, build->engine->attr, &hint));
  PLANC_TRY(rt_dnnl_status(dnnl_layer_normalization_backward_desc_init(&operation, dnnl_backward, &l->data, &l->data,
                                                                       &l->statistic, 0.0F, AFFINE),
                           "layernorm_grad"));
  PLANC_TRY(rt_dnnl_describe(build, &operation, hint, build->engine->attr, &desc));
  return add_backward(build, l, desc);
}
