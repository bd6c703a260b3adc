/* The host's kernels: plain C, one thread, one order of summation, so that the same operands give the same bits
 * wherever they lie. f32, labels i64. Shapes are those the graph's checks admit (planc-graph(5), "Op types"). */
#ifndef PLANRT_HOST_KERNELS_H
#define PLANRT_HOST_KERNELS_H

#include "runtime/call.h"

typedef struct planrt_kernel {
  const char *type;
  void (*run)(const planrt_call *call, const planrt_launch *launch);
} planrt_kernel;

/* The kernel for an op type, or NULL. */
const planrt_kernel *planrt_kernel_find(const char *type);
extern const planrt_kernel planrt_accumulate_kernel; /* for the role ACCUMULATE */
extern const planrt_kernel planrt_synthetic_kernel;  /* the stand-in for any op */

/* One file per family. */
void planrt_conv2d(const planrt_call *call, const planrt_launch *launch);
void planrt_conv2d_dgrad(const planrt_call *call, const planrt_launch *launch);
void planrt_conv2d_wgrad(const planrt_call *call, const planrt_launch *launch);
void planrt_linear(const planrt_call *call, const planrt_launch *launch);
void planrt_linear_dgrad(const planrt_call *call, const planrt_launch *launch);
void planrt_linear_wgrad(const planrt_call *call, const planrt_launch *launch);
void planrt_linear_bgrad(const planrt_call *call, const planrt_launch *launch);
void planrt_bias(const planrt_call *call, const planrt_launch *launch);
void planrt_bias_grad(const planrt_call *call, const planrt_launch *launch);
void planrt_relu(const planrt_call *call, const planrt_launch *launch);
void planrt_relu_grad(const planrt_call *call, const planrt_launch *launch);
void planrt_add(const planrt_call *call, const planrt_launch *launch);
void planrt_concat(const planrt_call *call, const planrt_launch *launch);
void planrt_concat_grad(const planrt_call *call, const planrt_launch *launch);
void planrt_dropout(const planrt_call *call, const planrt_launch *launch);
void planrt_maxpool2d(const planrt_call *call, const planrt_launch *launch);
void planrt_maxpool2d_grad(const planrt_call *call, const planrt_launch *launch);
void planrt_avgpool2d(const planrt_call *call, const planrt_launch *launch);
void planrt_avgpool2d_grad(const planrt_call *call, const planrt_launch *launch);
void planrt_batchnorm(const planrt_call *call, const planrt_launch *launch);
void planrt_batchnorm_grad(const planrt_call *call, const planrt_launch *launch);
void planrt_batchnorm_infer(const planrt_call *call, const planrt_launch *launch);
void planrt_upsample(const planrt_call *call, const planrt_launch *launch);
void planrt_upsample_grad(const planrt_call *call, const planrt_launch *launch);
void planrt_layernorm(const planrt_call *call, const planrt_launch *launch);
void planrt_layernorm_grad(const planrt_call *call, const planrt_launch *launch);
void planrt_gelu(const planrt_call *call, const planrt_launch *launch);
void planrt_gelu_grad(const planrt_call *call, const planrt_launch *launch);
void planrt_matmul(const planrt_call *call, const planrt_launch *launch);
void planrt_matmul_nt(const planrt_call *call, const planrt_launch *launch);
void planrt_matmul_tn(const planrt_call *call, const planrt_launch *launch);
void planrt_softmax(const planrt_call *call, const planrt_launch *launch);
void planrt_softmax_grad(const planrt_call *call, const planrt_launch *launch);
void planrt_embedding(const planrt_call *call, const planrt_launch *launch);
void planrt_embedding_grad(const planrt_call *call, const planrt_launch *launch);
void planrt_position(const planrt_call *call, const planrt_launch *launch);
void planrt_position_grad(const planrt_call *call, const planrt_launch *launch);
void planrt_mean(const planrt_call *call, const planrt_launch *launch);
void planrt_mean_grad(const planrt_call *call, const planrt_launch *launch);
void planrt_transpose(const planrt_call *call, const planrt_launch *launch);
void planrt_softmax_xent(const planrt_call *call, const planrt_launch *launch);
void planrt_softmax_xent_grad(const planrt_call *call, const planrt_launch *launch);
void planrt_sgd(const planrt_call *call, const planrt_launch *launch);
void planrt_momentum(const planrt_call *call, const planrt_launch *launch);
void planrt_adam(const planrt_call *call, const planrt_launch *launch);

/* --- Shapes --------------------------------------------------------------------------------------------------- */

/* A rank-4 tensor whatever its layout, weights (K, c, R, S) included: element (n, c, y, x) is data[n * sn + c * sc + y
 * * sy + x * sx]. */
typedef struct planrt_image {
  float *data;
  int64_t n, c, h, w, sn, sc, sy, sx;
} planrt_image;

static inline planrt_image planrt_image_of(const planrt_call *call, const planrt_operand *operand) {
  const int64_t *d = operand->dims;
  planrt_image image = {.data = operand->data, .n = d[0]};
  if (call->graph->layout == PLANC_LAYOUT_NHWC) {
    image.h = d[1], image.w = d[2], image.c = d[3];
    image.sc = 1, image.sx = d[3], image.sy = d[2] * d[3];
  } else {
    image.c = d[1], image.h = d[2], image.w = d[3];
    image.sx = 1, image.sy = d[3], image.sc = d[2] * d[3];
  }
  image.sn = image.c * image.h * image.w;
  return image;
}

/* A tensor with a channel dimension: element (o, c, i) is data[(o * channels + c) * inner + i]. */
typedef struct planrt_channels {
  int64_t outer, channels, inner;
} planrt_channels;

static inline planrt_channels planrt_channels_of(const planrt_call *call, const planrt_operand *operand) {
  bool last = operand->rank == 2 || call->graph->layout == PLANC_LAYOUT_NHWC;
  planrt_channels shape = {.channels = operand->dims[last ? operand->rank - 1 : 1], .inner = 1};
  for (int32_t d = 2; !last && d < operand->rank; d++) shape.inner *= operand->dims[d];
  int64_t block = shape.channels * shape.inner;
  shape.outer = block > 0 ? operand->elements / block : 0;
  return shape;
}

/* Stores, or adds to, an element of an output. */
static inline void planrt_put(const planrt_operand *out, int64_t index, float value) {
  float *at = (float *)out->data + index;
  *at = out->accumulate ? *at + value : value;
}

#endif
