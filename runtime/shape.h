/* Operands seen as images or as channels, whatever the graph's layout. */
#ifndef PLANRT_SHAPE_H
#define PLANRT_SHAPE_H

#include "runtime/call.h"

/* A rank-4 tensor whatever its layout, weights (K, c, R, S) included: element (n, c, y, x) is data[n * sn + c * sc + y
 * * sy + x * sx]. */
typedef struct rt_image {
  float *data;
  int64_t n, c, h, w, sn, sc, sy, sx;
} rt_image;

static inline rt_image rt_image_of(const rt_call *call, const rt_operand *operand) {
  const int64_t *d = operand->dims;
  rt_image image = {.data = operand->data, .n = d[0]};
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
typedef struct rt_channels {
  int64_t outer, channels, inner;
} rt_channels;

static inline rt_channels rt_channels_of(const rt_call *call, const rt_operand *operand) {
  bool last = operand->rank == 2 || call->graph->layout == PLANC_LAYOUT_NHWC;
  rt_channels shape = {.channels = operand->dims[last ? operand->rank - 1 : 1], .inner = 1};
  for (int32_t d = 2; !last && d < operand->rank; d++) shape.inner *= operand->dims[d];
  int64_t block = shape.channels * shape.inner;
  shape.outer = block > 0 ? operand->elements / block : 0;
  return shape;
}

#endif
