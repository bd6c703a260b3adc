/* Max and average pooling over windows of a padded image. */
#include <string.h>

#include "runtime/host/host_kernels.h"

typedef struct pooling {
  int64_t kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;
} pooling;

/* The part of an output's window that lies in the image. */
typedef struct pool_window {
  int64_t top, bottom, left, right;
} pool_window;

static pooling pooling_of(const planc_op *op);
static pool_window window_at(const pooling *v, const rt_image *x, int64_t p, int64_t q);
static int64_t largest(const rt_image *x, const float *channel, const pool_window *w);

void rt_maxpool2d(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  pooling v = pooling_of(call->op);
  rt_image x = rt_image_of(call, &call->in[0]), y = rt_image_of(call, &call->out[0]);
  for (int64_t n = 0; n < y.n; n++)
    for (int64_t c = 0; c < y.c; c++) {
      const float *channel = x.data + n * x.sn + c * x.sc;
      for (int64_t p = 0; p < y.h; p++)
        for (int64_t q = 0; q < y.w; q++) {
          pool_window w = window_at(&v, &x, p, q);
          y.data[n * y.sn + c * y.sc + p * y.sy + q * y.sx] = channel[largest(&x, channel, &w)];
        }
    }
}

/* The maxima are sought again as the forward op did, so that among equals the same one gets the gradient. */
void rt_maxpool2d_grad(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  pooling v = pooling_of(call->op);
  rt_image x = rt_image_of(call, &call->in[0]), dy = rt_image_of(call, &call->in[2]);
  float *dx = call->out[0].data;
  memset(dx, 0, (size_t)call->out[0].bytes);
  for (int64_t n = 0; n < dy.n; n++)
    for (int64_t c = 0; c < dy.c; c++) {
      int64_t at = n * x.sn + c * x.sc;
      for (int64_t p = 0; p < dy.h; p++)
        for (int64_t q = 0; q < dy.w; q++) {
          pool_window w = window_at(&v, &x, p, q);
          dx[at + largest(&x, x.data + at, &w)] += dy.data[n * dy.sn + c * dy.sc + p * dy.sy + q * dy.sx];
        }
    }
}

void rt_avgpool2d(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  pooling v = pooling_of(call->op);
  rt_image x = rt_image_of(call, &call->in[0]), y = rt_image_of(call, &call->out[0]);
  float area = (float)(v.kernel_h * v.kernel_w);
  for (int64_t n = 0; n < y.n; n++)
    for (int64_t c = 0; c < y.c; c++) {
      const float *channel = x.data + n * x.sn + c * x.sc;
      for (int64_t p = 0; p < y.h; p++)
        for (int64_t q = 0; q < y.w; q++) {
          pool_window w = window_at(&v, &x, p, q);
          float sum = 0.0F;
          for (int64_t i = w.top; i < w.bottom; i++)
            for (int64_t j = w.left; j < w.right; j++) sum += channel[i * x.sy + j * x.sx];
          y.data[n * y.sn + c * y.sc + p * y.sy + q * y.sx] = sum / area;
        }
    }
}

void rt_avgpool2d_grad(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  pooling v = pooling_of(call->op);
  rt_image dy = rt_image_of(call, &call->in[0]), dx = rt_image_of(call, &call->out[0]);
  float area = (float)(v.kernel_h * v.kernel_w);
  memset(dx.data, 0, (size_t)call->out[0].bytes);
  for (int64_t n = 0; n < dy.n; n++)
    for (int64_t c = 0; c < dy.c; c++) {
      float *channel = dx.data + n * dx.sn + c * dx.sc;
      for (int64_t p = 0; p < dy.h; p++)
        for (int64_t q = 0; q < dy.w; q++) {
          pool_window w = window_at(&v, &dx, p, q);
          float share = dy.data[n * dy.sn + c * dy.sc + p * dy.sy + q * dy.sx] / area;
          for (int64_t i = w.top; i < w.bottom; i++)
            for (int64_t j = w.left; j < w.right; j++) channel[i * dx.sy + j * dx.sx] += share;
        }
    }
}

static pooling pooling_of(const planc_op *op) {
  pooling v = {.kernel_h = planc_op_int(op, "kernel", 0, 1), .kernel_w = planc_op_int(op, "kernel", 1, 1)};
  v.stride_h = planc_op_int(op, "stride", 0, 1), v.stride_w = planc_op_int(op, "stride", 1, 1);
  v.pad_h = planc_op_int(op, "pad", 0, 0), v.pad_w = planc_op_int(op, "pad", 1, 0);
  return v;
}

static pool_window window_at(const pooling *v, const rt_image *x, int64_t p, int64_t q) {
  pool_window w = {.top = p * v->stride_h - v->pad_h, .left = q * v->stride_w - v->pad_w};
  w.bottom = w.top + v->kernel_h, w.right = w.left + v->kernel_w;
  if (w.top < 0) w.top = 0;
  if (w.left < 0) w.left = 0;
  if (w.bottom > x->h) w.bottom = x->h;
  if (w.right > x->w) w.right = x->w;
  return w;
}

/* Offset in a channel of the window's largest element, the first of equals. */
static int64_t largest(const rt_image *x, const float *channel, const pool_window *w) {
  int64_t best = w->top * x->sy + w->left * x->sx;
  for (int64_t i = w->top; i < w->bottom; i++)
    for (int64_t j = w->left; j < w->right; j++)
      if (channel[i * x->sy + j * x->sx] > channel[best]) best = i * x->sy + j * x->sx;
  return best;
}
