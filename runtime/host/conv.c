/* Convolution and its data and weight gradients, directly: no workspace, any layout.
 *
 * All three are sums over tiles of TILE channels by TILE neighbouring positions of an image, row after row. The TILE
 * values that one filter tap meets there are gathered once (zeros where padding, stride or the image's end leave none)
 * and used for all channels of the tile; the inner loop is TILE multiply-adds on local arrays, which compilers turn
 * into vector code without reordering any element's sum. */
#include <string.h>

#include "graph/optypes.h"
#include "runtime/host/host_kernels.h"
#include "util/math.h"

enum { TILE = 8 };

/* The TILE positions from `first` on of an image of `height` rows; rows beyond it are none. */
typedef struct positions {
  int64_t row[TILE], column[TILE], count;
} positions;

/* Where in a channel of an image the values of a tile lie: offsets in elements, -1 for none. */
typedef struct taps {
  int64_t offset[TILE];
  bool contiguous;
} taps;

/* --- Forward ------------------------------------------------------------------------------------------------------ */

static void forward_tile(const pl_conv *v, const rt_image *x, const rt_image *weights, int64_t n, int64_t k0,
                         int64_t kn, const positions *at, float sum[TILE][TILE]);
static void forward_taps(const pl_conv *v, const rt_image *x, const positions *at, int64_t r, int64_t s, taps *out);
static positions positions_from(int64_t first, int64_t height, int64_t width);
static void finish_taps(taps *t);
static inline void gather(const float *channel, const taps *t, float *values);
static void store(const rt_image *image, float *first, const positions *at, int64_t channels, float sum[TILE][TILE]);

void rt_conv2d(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  pl_conv v;
  if (!pl_conv_of(call->graph, call->op, &v)) return;
  rt_image x = rt_image_of(call, &call->in[0]), y = rt_image_of(call, &call->out[0]);
  rt_image weights = rt_image_of(call, &call->in[1]);
  const float *bias = call->n_in > 2 ? call->in[2].data : NULL;
  int64_t kg = v.k / v.groups;
  for (int64_t first = 0; first < v.p * v.q; first += TILE) {
    positions at = positions_from(first, v.p, v.q);
    for (int64_t n = 0; n < y.n; n++)
      for (int64_t k0 = 0, kn; k0 < v.k; k0 += kn) {
        kn = pl_min(TILE, kg - k0 % kg);
        float sum[TILE][TILE];
        for (int64_t k = 0; k < kn; k++)
          for (int j = 0; j < TILE; j++) sum[k][j] = bias ? bias[k0 + k] : 0.0F;
        forward_tile(&v, &x, &weights, n, k0, kn, &at, sum);
        store(&y, y.data + n * y.sn + k0 * y.sc, &at, kn, sum);
      }
  }
}

/* Adds up outputs k0 .. k0 + kn - 1 at `at` of image n. */
static void forward_tile(const pl_conv *v, const rt_image *x, const rt_image *weights, int64_t n, int64_t k0,
                         int64_t kn, const positions *at, float sum[TILE][TILE]) {
  int64_t cg = v->c / v->groups, group = k0 / (v->k / v->groups);
  const float *image = x->data + n * x->sn + group * cg * x->sc;
  for (int64_t r = 0; r < v->r; r++)
    for (int64_t s = 0; s < v->s; s++) {
      taps t;
      float values[TILE];
      forward_taps(v, x, at, r, s, &t);
      const float *w = weights->data + k0 * weights->sn + r * weights->sy + s * weights->sx;
      for (int64_t c = 0; c < cg; c++) {
        gather(image + c * x->sc, &t, values);
        for (int64_t k = 0; k < kn; k++) {
          float weight = w[k * weights->sn + c * weights->sc];
          for (int j = 0; j < TILE; j++) sum[k][j] += weight * values[j];
        }
      }
    }
}

/* Inputs that filter tap (r, s) meets for outputs `at`. */
static void forward_taps(const pl_conv *v, const rt_image *x, const positions *at, int64_t r, int64_t s, taps *out) {
  for (int j = 0; j < TILE; j++) {
    int64_t row = at->row[j] * v->stride_h + r * v->dilation_h - v->pad_h;
    int64_t column = at->column[j] * v->stride_w + s * v->dilation_w - v->pad_w;
    bool met = j < at->count && row >= 0 && row < v->h && column >= 0 && column < v->w;
    out->offset[j] = met ? row * x->sy + column * x->sx : -1;
  }
  finish_taps(out);
}

/* --- Data gradient ------------------------------------------------------------------------------------------------ */

static void backward_tile(const pl_conv *v, const rt_image *dy, const rt_image *weights, int64_t n, int64_t c0,
                          int64_t cn, const positions *at, float sum[TILE][TILE]);
static void backward_taps(const pl_conv *v, const rt_image *dy, const positions *at, int64_t r, int64_t s, taps *out);

void rt_conv2d_dgrad(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  pl_conv v;
  if (!pl_conv_of(call->graph, call->op, &v)) return;
  rt_image dy = rt_image_of(call, &call->in[1]), dx = rt_image_of(call, &call->out[0]);
  rt_image weights = rt_image_of(call, &call->in[0]);
  int64_t cg = v.c / v.groups;
  for (int64_t first = 0; first < v.h * v.w; first += TILE) {
    positions at = positions_from(first, v.h, v.w);
    for (int64_t n = 0; n < dx.n; n++)
      for (int64_t c0 = 0, cn; c0 < v.c; c0 += cn) {
        cn = pl_min(TILE, cg - c0 % cg);
        float sum[TILE][TILE] = {{0}};
        backward_tile(&v, &dy, &weights, n, c0, cn, &at, sum);
        store(&dx, dx.data + n * dx.sn + c0 * dx.sc, &at, cn, sum);
      }
  }
}

/* Adds up the gradients of inputs c0 .. c0 + cn - 1 at `at` of image n. */
static void backward_tile(const pl_conv *v, const rt_image *dy, const rt_image *weights, int64_t n, int64_t c0,
                          int64_t cn, const positions *at, float sum[TILE][TILE]) {
  int64_t cg = v->c / v->groups, kg = v->k / v->groups, group = c0 / cg;
  const float *image = dy->data + n * dy->sn + group * kg * dy->sc;
  for (int64_t r = 0; r < v->r; r++)
    for (int64_t s = 0; s < v->s; s++) {
      taps t;
      float values[TILE];
      backward_taps(v, dy, at, r, s, &t);
      const float *w =
          weights->data + group * kg * weights->sn + c0 % cg * weights->sc + r * weights->sy + s * weights->sx;
      for (int64_t k = 0; k < kg; k++) {
        gather(image + k * dy->sc, &t, values);
        for (int64_t c = 0; c < cn; c++) {
          float weight = w[k * weights->sn + c * weights->sc];
          for (int j = 0; j < TILE; j++) sum[c][j] += weight * values[j];
        }
      }
    }
}

/* Outputs that filter tap (r, s) made from inputs `at`. */
static void backward_taps(const pl_conv *v, const rt_image *dy, const positions *at, int64_t r, int64_t s, taps *out) {
  for (int j = 0; j < TILE; j++) {
    int64_t row = at->row[j] + v->pad_h - r * v->dilation_h, column = at->column[j] + v->pad_w - s * v->dilation_w;
    bool met = j < at->count && row >= 0 && column >= 0 && row < v->p * v->stride_h && column < v->q * v->stride_w;
    if (met && (v->stride_h > 1 || v->stride_w > 1)) {
      met = row % v->stride_h == 0 && column % v->stride_w == 0;
      row /= v->stride_h;
      column /= v->stride_w;
    }
    out->offset[j] = met ? row * dy->sy + column * dy->sx : -1;
  }
  finish_taps(out);
}

/* --- Weight gradient ---------------------------------------------------------------------------------------------- */

static void weight_tile(const pl_conv *v, const rt_image *x, const rt_image *dy, int64_t k0, int64_t kn, int64_t c,
                        int64_t r, int64_t s, float sum[TILE][TILE]);
static void own_taps(const rt_image *image, const positions *at, taps *out);

void rt_conv2d_wgrad(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  pl_conv v;
  if (!pl_conv_of(call->graph, call->op, &v)) return;
  rt_image x = rt_image_of(call, &call->in[0]), dy = rt_image_of(call, &call->in[1]);
  rt_image dw = rt_image_of(call, &call->out[0]);
  int64_t cg = v.c / v.groups, kg = v.k / v.groups;
  for (int64_t k0 = 0, kn; k0 < v.k; k0 += kn) {
    kn = pl_min(TILE, kg - k0 % kg);
    for (int64_t c = 0; c < cg; c++)
      for (int64_t tap = 0; tap < v.r * v.s; tap++) {
        float sum[TILE][TILE] = {{0}};
        weight_tile(&v, &x, &dy, k0, kn, c, tap / v.s, tap % v.s, sum);
        for (int64_t k = 0; k < kn; k++) {
          float total = 0.0F;
          for (int j = 0; j < TILE; j++) total += sum[k][j];
          rt_put(&call->out[0], (k0 + k) * dw.sn + c * dw.sc + tap / v.s * dw.sy + tap % v.s * dw.sx, total);
        }
      }
  }
}

/* Adds up, in TILE partial sums by position, the gradients of weights (k0 .. k0 + kn - 1, c, r, s). */
static void weight_tile(const pl_conv *v, const rt_image *x, const rt_image *dy, int64_t k0, int64_t kn, int64_t c,
                        int64_t r, int64_t s, float sum[TILE][TILE]) {
  int64_t channel = k0 / (v->k / v->groups) * (v->c / v->groups) + c;
  for (int64_t first = 0; first < v->p * v->q; first += TILE) {
    positions at = positions_from(first, v->p, v->q);
    taps in, out;
    float values[TILE], grads[TILE];
    forward_taps(v, x, &at, r, s, &in);
    own_taps(dy, &at, &out);
    for (int64_t n = 0; n < x->n; n++) {
      gather(x->data + n * x->sn + channel * x->sc, &in, values);
      for (int64_t k = 0; k < kn; k++) {
        gather(dy->data + n * dy->sn + (k0 + k) * dy->sc, &out, grads);
        for (int j = 0; j < TILE; j++) sum[k][j] += grads[j] * values[j];
      }
    }
  }
}

/* The positions themselves. */
static void own_taps(const rt_image *image, const positions *at, taps *out) {
  for (int j = 0; j < TILE; j++)
    out->offset[j] = j < at->count ? at->row[j] * image->sy + at->column[j] * image->sx : -1;
  finish_taps(out);
}

/* --- Tiles -------------------------------------------------------------------------------------------------------- */

static positions positions_from(int64_t first, int64_t height, int64_t width) {
  positions at;
  for (int j = 0; j < TILE; j++) {
    at.row[j] = (first + j) / width;
    at.column[j] = (first + j) % width;
  }
  at.count = pl_min(TILE, height * width - first);
  return at;
}

static void finish_taps(taps *t) {
  t->contiguous = t->offset[0] >= 0;
  for (int j = 1; j < TILE; j++) t->contiguous = t->contiguous && t->offset[j] == t->offset[0] + j;
}

static inline void gather(const float *channel, const taps *t, float *values) {
  if (t->contiguous) {
    memcpy(values, channel + t->offset[0], TILE * sizeof *values);
    return;
  }
  for (int j = 0; j < TILE; j++) values[j] = t->offset[j] >= 0 ? channel[t->offset[j]] : 0.0F;
}

/* Stores the sums of `channels` channels, of which `first` is the first. */
static void store(const rt_image *image, float *first, const positions *at, int64_t channels, float sum[TILE][TILE]) {
  for (int64_t k = 0; k < channels; k++)
    for (int64_t j = 0; j < at->count; j++)
      first[k * image->sc + at->row[j] * image->sy + at->column[j] * image->sx] = sum[k][j];
}
