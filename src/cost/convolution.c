/* Convolution algorithms (convolution.h has the formulas). */
#include "cost/convolution.h"

#include <assert.h>

#include "cost/roofline.h"

static planc_variant implicit_gemm(const planc_profile *profile, const pl_conv_case *of);
static planc_variant gemm(const planc_profile *profile, const pl_conv_case *of);
static planc_variant depthwise(const planc_profile *profile, const pl_conv_case *of);
static bool takes_winograd(const pl_conv *conv);
static planc_variant winograd(const planc_profile *profile, const pl_conv_case *of);
static bool takes_fft(const pl_conv *conv);
static planc_variant fft(const planc_profile *profile, const pl_conv_case *of);

int32_t pl_conv_variants(const planc_profile *profile, const pl_conv_case *of,
                         planc_variant out[PL_MAX_CONV_VARIANTS]) {
  int32_t count = 0;
  out[count++] = implicit_gemm(profile, of);
  out[count++] = gemm(profile, of);
  if (pl_conv_is_depthwise(of->conv)) out[count++] = depthwise(profile, of);
  if (takes_winograd(of->conv)) out[count++] = winograd(profile, of);
  if (takes_fft(of->conv)) out[count++] = fft(profile, of);
  assert(count <= PL_MAX_CONV_VARIANTS);
  return count;
}

bool pl_conv_is_depthwise(const pl_conv *conv) {
  return conv->groups > 1 && conv->c == conv->groups;
}

static int64_t mul3(int64_t a, int64_t b, int64_t c) {
  return pl_mul_saturate(pl_mul_saturate(a, b), c);
}
static int64_t add3(int64_t a, int64_t b, int64_t c) {
  return pl_add_saturate(pl_add_saturate(a, b), c);
}

/* --- Sizes -------------------------------------------------------------------------------------------------------- */

/* Bytes of the three tensors, of which a direction reads two and writes the third. */
typedef struct sizes {
  int64_t data, filter, result;
} sizes;

static sizes sizes_of(const pl_conv_case *of) {
  const pl_conv *conv = of->conv;
  int64_t element = planc_dtype_bytes(of->dtype);
  int64_t per_image = pl_mul_saturate(of->images, element);
  return (sizes){
      .data = pl_mul_saturate(mul3(conv->c, conv->h, conv->w), per_image),
      .filter = mul3(mul3(conv->k, conv->c / conv->groups, element), conv->r, conv->s),
      .result = pl_mul_saturate(mul3(conv->k, conv->p, conv->q), per_image),
  };
}

static int64_t column_bytes(const pl_conv_case *of) {
  const pl_conv *conv = of->conv;
  int64_t rows = mul3(conv->c, conv->r, conv->s);
  int64_t columns = mul3(conv->p, conv->q, of->images);
  return mul3(rows, columns, planc_dtype_bytes(of->dtype));
}

/* What of the traffic of a convolution's kernels the cache holds is left out of account. */
static pl_traffic moves(const planc_profile *profile, int64_t bytes) {
  return pl_traffic_of(profile, PLANC_CLASS_conv, bytes);
}

/* A kernel that reads one thing and writes another. */
static void add_pass(pl_work *work, const planc_profile *profile, int64_t bytes) {
  pl_work_stream(work, profile, PL_RATE_F32, 0, moves(profile, bytes), pl_spread_of_bytes(profile, bytes));
}

/* --- Matrix products ---------------------------------------------------------------------------------------------- */

static bool is_plain_product(const pl_conv *conv) {
  return conv->r == 1 && conv->s == 1 && conv->stride_h == 1 && conv->stride_w == 1 && conv->pad_h == 0 &&
         conv->pad_w == 0;
}

/* The product that implicit GEMM computes. A strided data gradient falls apart into one product per phase of the
 * stride; together they have as many steps as the one given here. */
static pl_product implicit_product(const pl_conv_case *of) {
  const pl_conv *conv = of->conv;
  int64_t pixels = mul3(of->images, conv->p, conv->q);
  int64_t c = conv->c / conv->groups;
  int64_t k = conv->k / conv->groups;
  pl_product product = {.count = conv->groups, .flops_per_step = 2};
  switch (conv->direction) {
    case PL_CONV_FORWARD:
      product.rows = k, product.columns = pixels, product.depth = mul3(c, conv->r, conv->s);
      break;
    case PL_CONV_DGRAD:
      product.rows = c, product.columns = pixels, product.depth = mul3(k, conv->r, conv->s);
      break;
    case PL_CONV_WGRAD:
      product.rows = k, product.columns = mul3(c, conv->r, conv->s), product.depth = pixels;
      product.may_split = true;
      break;
  }
  return product;
}

static pl_rate rate_of(const pl_conv_case *of) {
  if (of->scalar) return PL_RATE_F32;
  if (planc_dtype_is_half(of->dtype)) return PL_RATE_HALF;
  return of->tf32 ? PL_RATE_TF32 : PL_RATE_F32;
}

static planc_variant implicit_gemm(const planc_profile *profile, const pl_conv_case *of) {
  pl_work work = {0};
  sizes bytes = sizes_of(of);
  pl_product product = implicit_product(of);
  pl_work_multiply(&work, profile, PL_MULTIPLY_IMPLICIT_GEMM, rate_of(of), &product,
                   moves(profile, add3(bytes.data, bytes.filter, bytes.result)));
  return pl_work_variant(&work, "implicit-gemm", 0);
}

/* A thread makes a result, several reduce what is in a weight's gradient. */
static pl_spread depthwise_spread(const planc_profile *profile, const pl_conv_case *of, int64_t bytes) {
  const pl_conv *conv = of->conv;
  const pl_occupancy *by = &profile->occupancy;
  if (!by->threads) return pl_spread_of_bytes(profile, bytes);
  switch (conv->direction) {
    case PL_CONV_FORWARD:
      return (pl_spread){pl_mul_saturate(mul3(conv->k, conv->p, conv->q), of->images), by->threads};
    case PL_CONV_DGRAD:
      return (pl_spread){pl_mul_saturate(mul3(conv->c, conv->h, conv->w), of->images), by->threads};
    default:
      return (pl_spread){mul3(conv->k, conv->r, conv->s), pl_div_ceil(by->threads, by->norm_threads)};
  }
}

static planc_variant depthwise(const planc_profile *profile, const pl_conv_case *of) {
  const pl_conv *conv = of->conv;
  pl_work work = {0};
  sizes bytes = sizes_of(of);
  int64_t steps = mul3(mul3(conv->k, conv->p, conv->q), pl_mul_saturate(conv->r, conv->s), of->images);
  int64_t moved = add3(bytes.data, bytes.filter, bytes.result);
  pl_rate rate = planc_dtype_is_half(of->dtype) ? rate_of(of) : PL_RATE_F32; /* no products: no tensor cores */
  pl_work_stream(&work, profile, rate, pl_mul_saturate(2, steps), moves(profile, moved),
                 depthwise_spread(profile, of, moved));
  return pl_work_variant(&work, "depthwise", 0);
}

planc_variant pl_conv_tensor_core(const planc_profile *profile, const pl_conv_case *of) {
  pl_work work = {0};
  sizes bytes = sizes_of(of);
  pl_product product = implicit_product(of);
  pl_rate rate = planc_dtype_is_half(of->dtype) ? PL_RATE_HALF : PL_RATE_TF32;
  pl_work_multiply(&work, profile, PL_MULTIPLY_IMPLICIT_GEMM, rate, &product,
                   moves(profile, add3(bytes.data, bytes.filter, bytes.result)));
  return pl_work_variant(&work, "tensor-core", 0);
}

/* --- Transforms --------------------------------------------------------------------------------------------------- */

static planc_variant gemm(const planc_profile *profile, const pl_conv_case *of) {
  const pl_conv *conv = of->conv;
  pl_work work = {0};
  sizes bytes = sizes_of(of);
  pl_product product = implicit_product(of);
  if (conv->direction == PL_CONV_DGRAD) { /* the product makes columns, with one step per output channel */
    product.rows = mul3(conv->c / conv->groups, conv->r, conv->s);
    product.depth = conv->k / conv->groups;
  }
  int64_t columns = 0;
  int64_t operand = bytes.data;
  if (!is_plain_product(conv)) {
    columns = operand = column_bytes(of);
    add_pass(&work, profile, pl_add_saturate(bytes.data, columns));
  } else if (of->layout == PLANC_LAYOUT_NCHW && conv->direction != PL_CONV_WGRAD) {
    product.columns = pl_mul_saturate(conv->p, conv->q);
    product.count = pl_mul_saturate(product.count, of->images);
  }
  pl_work_multiply(&work, profile, PL_MULTIPLY_GEMM, rate_of(of), &product,
                   moves(profile, add3(operand, bytes.filter, bytes.result)));
  return pl_work_variant(&work, "gemm", columns);
}

enum { WINOGRAD_TILE = 4, WINOGRAD_POINTS = 36, WINOGRAD_POINT_BYTES = 4, WINOGRAD_BATCH = 16, WINOGRAD_KERNEL = 3 };
enum { FFT_TILE = 32, FFT_POINTS = 32 * 17, FFT_POINT_BYTES = 8, FFT_TILES_AT_ONCE = 2 };

typedef struct transform {
  const char *algorithm;
  pl_multiply_kind kind;
  int64_t points, point_bytes, flops_per_step;
  int64_t tile_h, tile_w; /* of the result that one transform covers */
  int64_t images;         /* N, rounded up where the algorithm does */
  int64_t tiles_at_once;  /* of each image that the workspace holds */
} transform;

/* The plane that is cut into tiles. */
static int64_t tiles_of(const pl_conv *conv, int64_t tile_h, int64_t tile_w) {
  bool data = conv->direction == PL_CONV_DGRAD;
  return pl_mul_saturate(pl_div_ceil(data ? conv->h : conv->p, tile_h), pl_div_ceil(data ? conv->w : conv->q, tile_w));
}

/* Transforms both operands, multiplies them point by point, transforms the result back. */
static planc_variant transformed(const planc_profile *profile, const pl_conv_case *of, const transform *by) {
  const pl_conv *conv = of->conv;
  sizes plain = sizes_of(of);
  int64_t tiles = tiles_of(conv, by->tile_h, by->tile_w);
  int64_t of_point = by->points * by->point_bytes;
  int64_t columns = pl_mul_saturate(tiles, by->images);
  sizes inside = {
      .data = mul3(columns, conv->c, of_point),
      .filter = mul3(conv->c, conv->k, of_point),
      .result = mul3(columns, conv->k, of_point),
  };
  pl_product product = {.count = by->points, .flops_per_step = by->flops_per_step};
  switch (conv->direction) {
    case PL_CONV_FORWARD:
      product.rows = conv->k, product.columns = columns, product.depth = conv->c;
      break;
    case PL_CONV_DGRAD:
      product.rows = conv->c, product.columns = columns, product.depth = conv->k;
      break;
    case PL_CONV_WGRAD:
      product.rows = conv->k, product.columns = conv->c, product.depth = columns;
      product.may_split = true;
      break;
  }
  pl_work work = {0};
  add_pass(&work, profile, pl_add_saturate(plain.data, inside.data));
  add_pass(&work, profile, pl_add_saturate(plain.filter, inside.filter));
  pl_work_multiply(&work, profile, by->kind, PL_RATE_F32, &product,
                   moves(profile, add3(inside.data, inside.filter, inside.result)));
  add_pass(&work, profile, pl_add_saturate(plain.result, inside.result));

  int64_t held = tiles < by->tiles_at_once ? tiles : by->tiles_at_once;
  int64_t per_tile = mul3(by->images, pl_add_saturate(conv->c, conv->k), of_point);
  int64_t workspace = pl_add_saturate(pl_mul_saturate(held, per_tile), inside.filter);
  return pl_work_variant(&work, by->algorithm, workspace);
}

static bool is_dense(const pl_conv *conv) {
  return conv->groups == 1 && conv->stride_h == 1 && conv->stride_w == 1 && conv->dilation_h == 1 &&
         conv->dilation_w == 1 && conv->pad_h < conv->r && conv->pad_w < conv->s;
}

static bool takes_winograd(const pl_conv *conv) {
  return is_dense(conv) && conv->r == WINOGRAD_KERNEL && conv->s == WINOGRAD_KERNEL;
}

static planc_variant winograd(const planc_profile *profile, const pl_conv_case *of) {
  bool rounded = of->conv->direction != PL_CONV_WGRAD;
  return transformed(profile, of,
                     &(transform){.algorithm = "winograd",
                                  .kind = PL_MULTIPLY_WINOGRAD,
                                  .points = WINOGRAD_POINTS,
                                  .point_bytes = WINOGRAD_POINT_BYTES,
                                  .flops_per_step = 2,
                                  .tile_h = WINOGRAD_TILE,
                                  .tile_w = WINOGRAD_TILE,
                                  .images = rounded ? pl_align_up(of->images, WINOGRAD_BATCH) : of->images,
                                  .tiles_at_once = INT64_MAX});
}

static bool takes_fft(const pl_conv *conv) {
  return is_dense(conv) && conv->r < FFT_TILE && conv->s < FFT_TILE && (conv->r > 1 || conv->s > 1);
}

static planc_variant fft(const planc_profile *profile, const pl_conv_case *of) {
  return transformed(profile, of,
                     &(transform){.algorithm = "fft",
                                  .kind = PL_MULTIPLY_FFT,
                                  .points = FFT_POINTS,
                                  .point_bytes = FFT_POINT_BYTES,
                                  .flops_per_step = 8,
                                  .tile_h = FFT_TILE + 1 - of->conv->r,
                                  .tile_w = FFT_TILE + 1 - of->conv->s,
                                  .images = of->images,
                                  .tiles_at_once = FFT_TILES_AT_ONCE});
}
