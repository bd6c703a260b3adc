/* Up-sampling by an integer factor: nearest, or bilinear between pixel centres, the corners aligned or not. */
#include <string.h>

#include "graph/optypes.h"
#include "runtime/host/host_kernels.h"

/* One axis: an output is (1 - share) * in[low] + share * in[high]. */
typedef struct blend {
  int64_t low, high;
  float share;
} blend;

static blend blend_at(int64_t out, int64_t scale, int64_t size, pl_upsampling mode) {
  if (mode == PL_UPSAMPLE_NEAREST) return (blend){out / scale, out / scale, 0.0F};
  bool aligned = mode == PL_UPSAMPLE_ALIGNED;
  float centre = aligned ? (float)out / (float)scale : ((float)out + 0.5F) / (float)scale - 0.5F;
  if (centre < 0.0F) centre = 0.0F;
  blend b = {.low = (int64_t)centre};
  if (b.low > size - 1) b.low = size - 1;
  b.high = b.low < size - 1 ? b.low + 1 : b.low;
  b.share = centre - (float)b.low;
  return b;
}

void rt_upsample(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  rt_image x = rt_image_of(call, &call->in[0]), y = rt_image_of(call, &call->out[0]);
  int64_t scale = planc_op_int(call->op, "scale", 0, 1);
  pl_upsampling mode;
  (void)pl_upsampling_of(call->op, &mode);
  for (int64_t n = 0; n < y.n; n++)
    for (int64_t c = 0; c < y.c; c++) {
      const float *in = x.data + n * x.sn + c * x.sc;
      float *out = y.data + n * y.sn + c * y.sc;
      for (int64_t p = 0; p < y.h; p++) {
        blend v = blend_at(p, scale, x.h, mode);
        for (int64_t q = 0; q < y.w; q++) {
          blend h = blend_at(q, scale, x.w, mode);
          const float *low = in + v.low * x.sy, *high = in + v.high * x.sy;
          float upper = low[h.low * x.sx] * (1.0F - h.share) + low[h.high * x.sx] * h.share;
          float lower = high[h.low * x.sx] * (1.0F - h.share) + high[h.high * x.sx] * h.share;
          out[p * y.sy + q * y.sx] = upper * (1.0F - v.share) + lower * v.share;
        }
      }
    }
}

void rt_upsample_grad(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  rt_image dy = rt_image_of(call, &call->in[0]), dx = rt_image_of(call, &call->out[0]);
  int64_t scale = planc_op_int(call->op, "scale", 0, 1);
  pl_upsampling mode;
  (void)pl_upsampling_of(call->op, &mode);
  memset(dx.data, 0, (size_t)call->out[0].bytes);
  for (int64_t n = 0; n < dy.n; n++)
    for (int64_t c = 0; c < dy.c; c++) {
      float *in = dx.data + n * dx.sn + c * dx.sc;
      for (int64_t p = 0; p < dy.h; p++) {
        blend v = blend_at(p, scale, dx.h, mode);
        for (int64_t q = 0; q < dy.w; q++) {
          blend h = blend_at(q, scale, dx.w, mode);
          float grad = dy.data[n * dy.sn + c * dy.sc + p * dy.sy + q * dy.sx];
          float *low = in + v.low * dx.sy, *high = in + v.high * dx.sy;
          low[h.low * dx.sx] += grad * (1.0F - v.share) * (1.0F - h.share);
          low[h.high * dx.sx] += grad * (1.0F - v.share) * h.share;
          high[h.low * dx.sx] += grad * v.share * (1.0F - h.share);
          high[h.high * dx.sx] += grad * v.share * h.share;
        }
      }
    }
}
