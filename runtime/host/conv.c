/* Convolution and its data and weight gradients, directly: no workspace, any layout.
 *
 * All three are sums over tiles of TILE channels by TILE neighbouring positions of one image row. The TILE values of
 * the row that one filter tap meets are gathered once (zeros where padding, stride or the row's end leave none) and
 * used for all channels of the tile; the inner loop is TILE multiply-adds on local arrays, which compilers turn into
 * vector code without reordering any element's sum. */
#include <string.h>

#include "graph/optypes.h"
#include "runtime/host/kernels.h"

enum { TILE = 8 };

static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* Where in a row the TILE values of one tap lie: offsets in elements, -1 for none. */
typedef struct taps {
  int64_t offset[TILE];
  bool contiguous;
} taps;

static void finish_taps(taps *t) {
  t->contiguous = t->offset[0] >= 0;
  for (int j = 1; j < TILE; j++) t->contiguous = t->contiguous && t->offset[j] == t->offset[0] + j;
}

/* Inputs that filter column `s` meets for outputs q0 .. q0 + TILE - 1. */
static void forward_taps(const planc_conv *v, int64_t s, int64_t q0, int64_t sx, taps *out) {
  for (int j = 0; j < TILE; j++) {
    int64_t x = (q0 + j) * v->stride_w + s * v->dilation_w - v->pad_w;
    out->offset[j] = q0 + j < v->q && x >= 0 && x < v->w ? x * sx : -1;
  }
  finish_taps(out);
}

/* Outputs that filter column `s` made from inputs x0 .. x0 + TILE - 1. */
static void backward_taps(const planc_conv *v, int64_t s, int64_t x0, int64_t sx, taps *out) {
  for (int j = 0; j < TILE; j++) {
    int64_t q = x0 + j + v->pad_w - s * v->dilation_w;
    bool met = x0 + j < v->w && q >= 0 && q % v->stride_w == 0 && q / v->stride_w < v->q;
    out->offset[j] = met ? q / v->stride_w * sx : -1;
  }
  finish_taps(out);
}

/* The outputs q0 .. q0 + TILE - 1 themselves. */
static void output_taps(const planc_conv *v, int64_t q0, int64_t sx, taps *out) {
  for (int j = 0; j < TILE; j++) out->offset[j] = q0 + j < v->q ? (q0 + j) * sx : -1;
  finish_taps(out);
}

static inline void gather(const float *row, const taps *t, float *values) {
  if (t->contiguous) {
    memcpy(values, row + t->offset[0], TILE * sizeof *values);
    return;
  }
  for (int j = 0; j < TILE; j++) values[j] = t->offset[j] >= 0 ? row[t->offset[j]] : 0.0F;
}

/* --- Forward -------------------------------------------------------------------------------------------------- */

/* Sums up outputs (k0 .. k0 + kn - 1, p, q0 .. q0 + TILE - 1) of image n. */
static void forward_tile(const planc_conv *v, const planrt_image *x, const planrt_image *weights, int64_t n, int64_t k0,
                         int64_t kn, int64_t p, int64_t q0, float sum[TILE][TILE]) {
  int64_t cg = v->c / v->groups, group = k0 / (v->k / v->groups);
  const float *image = x->data + n * x->sn + group * cg * x->sc;
  for (int64_t r = 0; r < v->r; r++) {
    int64_t y = p * v->stride_h + r * v->dilation_h - v->pad_h;
    if (y < 0 || y >= v->h) continue;
    for (int64_t s = 0; s < v->s; s++) {
      taps t;
      float values[TILE];
      forward_taps(v, s, q0, x->sx, &t);
      const float *w = weights->data + k0 * weights->sn + r * weights->sy + s * weights->sx;
      for (int64_t c = 0; c < cg; c++) {
        gather(image + c * x->sc + y * x->sy, &t, values);
        for (int64_t k = 0; k < kn; k++) {
          float weight = w[k * weights->sn + c * weights->sc];
          for (int j = 0; j < TILE; j++) sum[k][j] += weight * values[j];
        }
      }
    }
  }
}

void planrt_conv2d(const planrt_call *call, const planrt_launch *launch) {
  (void)launch;
  planc_conv v;
  if (!planc_conv_of(call->graph, call->op, &v)) return;
  planrt_image x = planrt_image_of(call, &call->in[0]), y = planrt_image_of(call, &call->out[0]);
  planrt_image weights = planrt_image_of(call, &call->in[1]);
  const float *bias = call->n_in > 2 ? call->in[2].data : NULL;
  int64_t kg = v.k / v.groups;
  for (int64_t n = 0; n < y.n; n++)
    for (int64_t k0 = 0, kn; k0 < v.k; k0 += kn) {
      kn = smaller(TILE, kg - k0 % kg);
      for (int64_t p = 0; p < v.p; p++)
        for (int64_t q0 = 0; q0 < v.q; q0 += TILE) {
          float sum[TILE][TILE];
          for (int64_t k = 0; k < kn; k++)
            for (int j = 0; j < TILE; j++) sum[k][j] = bias ? bias[k0 + k] : 0.0F;
          forward_tile(&v, &x, &weights, n, k0, kn, p, q0, sum);
          float *row = y.data + n * y.sn + k0 * y.sc + p * y.sy + q0 * y.sx;
          for (int64_t k = 0; k < kn; k++)
            for (int64_t j = 0; j < smaller(TILE, v.q - q0); j++) row[k * y.sc + j * y.sx] = sum[k][j];
        }
    }
}

/* --- Data gradient -------------------------------------------------------------------------------------------- */

/* Sums up inputs (c0 .. c0 + cn - 1, y, x0 .. x0 + TILE - 1) of image n. */
static void backward_tile(const planc_conv *v, const planrt_image *dy, const planrt_image *weights, int64_t n,
                          int64_t c0, int64_t cn, int64_t y, int64_t x0, float sum[TILE][TILE]) {
  int64_t cg = v->c / v->groups, kg = v->k / v->groups, group = c0 / cg;
  const float *image = dy->data + n * dy->sn + group * kg * dy->sc;
  for (int64_t r = 0; r < v->r; r++) {
    int64_t p = y + v->pad_h - r * v->dilation_h;
    if (p < 0 || p % v->stride_h != 0 || p / v->stride_h >= v->p) continue;
    for (int64_t s = 0; s < v->s; s++) {
      taps t;
      float values[TILE];
      backward_taps(v, s, x0, dy->sx, &t);
      const float *w =
          weights->data + group * kg * weights->sn + c0 % cg * weights->sc + r * weights->sy + s * weights->sx;
      for (int64_t k = 0; k < kg; k++) {
        gather(image + k * dy->sc + p / v->stride_h * dy->sy, &t, values);
        for (int64_t c = 0; c < cn; c++) {
          float weight = w[k * weights->sn + c * weights->sc];
          for (int j = 0; j < TILE; j++) sum[c][j] += weight * values[j];
        }
      }
    }
  }
}

void planrt_conv2d_dgrad(const planrt_call *call, const planrt_launch *launch) {
  (void)launch;
  planc_conv v;
  if (!planc_conv_of(call->graph, call->op, &v)) return;
  planrt_image dy = planrt_image_of(call, &call->in[1]), dx = planrt_image_of(call, &call->out[0]);
  planrt_image weights = planrt_image_of(call, &call->in[0]);
  int64_t cg = v.c / v.groups;
  for (int64_t n = 0; n < dx.n; n++)
    for (int64_t c0 = 0, cn; c0 < v.c; c0 += cn) {
      cn = smaller(TILE, cg - c0 % cg);
      for (int64_t y = 0; y < v.h; y++)
        for (int64_t x0 = 0; x0 < v.w; x0 += TILE) {
          float sum[TILE][TILE] = {{0}};
          backward_tile(&v, &dy, &weights, n, c0, cn, y, x0, sum);
          float *row = dx.data + n * dx.sn + c0 * dx.sc + y * dx.sy + x0 * dx.sx;
          for (int64_t c = 0; c < cn; c++)
            for (int64_t j = 0; j < smaller(TILE, v.w - x0); j++) row[c * dx.sc + j * dx.sx] = sum[c][j];
        }
    }
}

/* --- Weight gradient ------------------------------------------------------------------------------------------ */

/* Sums up, in TILE partial sums by position, the gradients of weights (k0 .. k0 + kn - 1, c, r, s). */
static void weight_tile(const planc_conv *v, const planrt_image *x, const planrt_image *dy, int64_t k0, int64_t kn,
                        int64_t c, int64_t r, int64_t s, float sum[TILE][TILE]) {
  int64_t channel = k0 / (v->k / v->groups) * (v->c / v->groups) + c;
  for (int64_t q0 = 0; q0 < v->q; q0 += TILE) {
    taps in, out;
    float values[TILE], grads[TILE];
    forward_taps(v, s, q0, x->sx, &in);
    output_taps(v, q0, dy->sx, &out);
    for (int64_t n = 0; n < x->n; n++)
      for (int64_t p = 0; p < v->p; p++) {
        int64_t y = p * v->stride_h + r * v->dilation_h - v->pad_h;
        if (y < 0 || y >= v->h) continue;
        gather(x->data + n * x->sn + channel * x->sc + y * x->sy, &in, values);
        for (int64_t k = 0; k < kn; k++) {
          gather(dy->data + n * dy->sn + (k0 + k) * dy->sc + p * dy->sy, &out, grads);
          for (int j = 0; j < TILE; j++) sum[k][j] += grads[j] * values[j];
        }
      }
  }
}

void planrt_conv2d_wgrad(const planrt_call *call, const planrt_launch *launch) {
  (void)launch;
  planc_conv v;
  if (!planc_conv_of(call->graph, call->op, &v)) return;
  planrt_image x = planrt_image_of(call, &call->in[0]), dy = planrt_image_of(call, &call->in[1]);
  planrt_image dw = planrt_image_of(call, &call->out[0]);
  int64_t cg = v.c / v.groups, kg = v.k / v.groups;
  for (int64_t k0 = 0, kn; k0 < v.k; k0 += kn) {
    kn = smaller(TILE, kg - k0 % kg);
    for (int64_t c = 0; c < cg; c++)
      for (int64_t tap = 0; tap < v.r * v.s; tap++) {
        float sum[TILE][TILE] = {{0}};
        weight_tile(&v, &x, &dy, k0, kn, c, tap / v.s, tap % v.s, sum);
        for (int64_t k = 0; k < kn; k++) {
          float total = 0.0F;
          for (int j = 0; j < TILE; j++) total += sum[k][j];
          planrt_put(&call->out[0], (k0 + k) * dw.sn + c * dw.sc + tap / v.s * dw.sy + tap % v.s * dw.sx, total);
        }
      }
  }
}
