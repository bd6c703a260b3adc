/* Tolerances (tolerance.h): by op type how many roundings, and of what size. */
#include "tests/cuda/tolerance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planc/trace.h"
#include "runtime/bf16.h"

#define UNIT 0x1p-24 /* an f32 rounding */
#define BF16_STEP 0x1p-7
#define TF32_SHARE 0x1p-9 /* two factors with 10 bits of mantissa, cut off */
/* Of sqrt(n) roundings: more than both sides' certain bounds together while n is at most 64. */
#define FACTOR 16
/* Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2016, table 3: F(4x4, 3x3) in f32 errs 7 times as
 * much as direct convolution on VGG; larger tiles and transforms err more. */
#define TRANSFORM_FACTOR 16

typedef enum kind {
  SAME,    /* the same bits */
  ROUNDED, /* functions of single elements */
  PRODUCT, /* as many terms as multiplications go into a result */
  WINDOW,  /* as many as a pooling window has places */
  SUM,     /* as many as elements of an input go into the result that has the fewest */
  ROWS     /* that, or the length of a row */
} kind;

/* Sorted by type. */
static const struct entry {
  const char *type;
  kind kind;
} table[] = {
    {"accumulate", SAME},
    {"adam", SAME},
    {"add", SAME},
    {"affine", ROUNDED},
    {"affine_grad", ROUNDED},
    {"avgpool2d", WINDOW},
    {"avgpool2d_grad", WINDOW},
    {"batchnorm", SUM},
    {"batchnorm_grad", SUM},
    {"batchnorm_infer", ROUNDED},
    {"bias", SAME},
    {"bias_grad", SUM},
    {"cast", SAME},
    {"concat", SAME},
    {"concat_grad", SAME},
    {"conv2d", PRODUCT},
    {"conv2d_bgrad", SUM},
    {"conv2d_dgrad", PRODUCT},
    {"conv2d_wgrad", PRODUCT},
    {"dropout", SAME},
    {"dropout_grad", SAME},
    {"embedding", SAME},
    {"embedding_grad", SUM},
    {"expand", SAME},
    {"expand_grad", SUM},
    {"gelu", ROUNDED},
    {"gelu_grad", ROUNDED},
    {"layernorm", SUM},
    {"layernorm_grad", ROWS},
    {"linear", PRODUCT},
    {"linear_bgrad", SUM},
    {"linear_dgrad", PRODUCT},
    {"linear_wgrad", PRODUCT},
    {"matmul", PRODUCT},
    {"matmul_nt", PRODUCT},
    {"matmul_tn", PRODUCT},
    {"maxpool2d", SAME},
    {"maxpool2d_grad", WINDOW},
    {"mean", SUM},
    {"mean_grad", SAME},
    {"momentum", SAME},
    {"mse", SUM},
    {"mse_grad", SAME},
    {"mul", SAME},
    {"position", SAME},
    {"position_grad", SUM},
    {"relu", SAME},
    {"relu_grad", SAME},
    {"sgd", SAME},
    {"sigmoid", ROUNDED},
    {"sigmoid_grad", ROUNDED},
    {"softmax", ROWS},
    {"softmax_grad", ROWS},
    {"softmax_xent", SUM},
    {"softmax_xent_grad", SAME},
    {"split", SAME},
    {"tanh", ROUNDED},
    {"tanh_grad", ROUNDED},
    {"transpose", SAME},
    {"upsample", SAME},
    {"upsample_grad", SAME},
};

static int compare_type(const void *type, const void *of) {
  return strcmp(type, ((const struct entry *)of)->type);
}

/* --- Numbers ------------------------------------------------------------------------------------------------------ */

static double element(const rt_operand *of, const char *data, int64_t index) {
  if (rt_is_real(of->dtype)) return (double)rt_real_at(of->dtype, data, index);
  return (double)((const int64_t *)(const void *)data)[index];
}

static double largest_in(const rt_operand *of, const char *data) {
  double largest = 0;
  for (int64_t i = 0; data && i < of->elements; i++) {
    double value = fabs(element(of, data, i));
    if (isfinite(value) && value > largest) largest = value;
  }
  return largest;
}

static double largest(const rt_operand *of) {
  return largest_in(of, of->data);
}

static double mean_square_root(const rt_operand *of) {
  double sum = 0;
  for (int64_t i = 0; i < of->elements; i++) {
    double value = element(of, of->data, i);
    if (isfinite(value)) sum += value * value;
  }
  return of->elements > 0 ? sqrt(sum / (double)of->elements) : 0;
}

/* --- How many terms ----------------------------------------------------------------------------------------------- */

static double width_of(const rt_operand *of) {
  return of->rank > 0 ? (double)of->dims[of->rank - 1] : 1;
}

static double terms_per_result(const rt_call *call) {
  double most = 1;
  for (int32_t i = 0; i < call->n_in; i++)
    for (int32_t r = 0; r < call->n_out; r++)
      if (rt_is_real(call->in[i].dtype) && call->out[r].elements > 0)
        most = fmax(most, (double)call->in[i].elements / (double)call->out[r].elements);
  return most;
}

static double depth_of(const rt_call *call, kind of) {
  switch (of) {
    case SAME:
      return 0;
    case ROUNDED:
      return 1;
    case PRODUCT:
      return (double)planc_law_at(call->op->flops, call->batch) / 2 / (double)call->out[0].elements;
    case WINDOW:
      return (double)(planc_op_int(call->op, "kernel", 0, 1) * planc_op_int(call->op, "kernel", 1, 1));
    case SUM:
      /* Into a row of the embedding's gradient all positions may go. */
      if (strcmp(call->op->type, "embedding_grad") == 0) return (double)call->in[0].elements;
      return terms_per_result(call);
    case ROWS:
      return fmax(terms_per_result(call), width_of(&call->in[0]));
  }
  return 0;
}

/* --- Of what size ------------------------------------------------------------------------------------------------- */

static bool is(const rt_call *call, const char *type) {
  return strcmp(call->op->type, type) == 0;
}

/* y = gamma (x - mean) invstd + beta; mean, invstd and the running statistics. */
static double norm_scale(const rt_call *call, int32_t index, char *const *want) {
  double x = largest(&call->in[0]);
  if (index == 0) return x * largest_in(&call->out[2], want[2]) * largest(&call->in[1]) + largest(&call->in[2]);
  return index == 1 || index == 3 ? x : index == 4 ? x * x : 0;
}

static double given_norm_scale(const rt_call *call) {
  double least = INFINITY;
  for (int64_t i = 0; i < call->in[4].elements; i++) least = fmin(least, element(&call->in[4], call->in[4].data, i));
  double spread = 1 / sqrt(fmax(least, 0) + planc_op_real(call->op, "epsilon", 1e-5));
  return (largest(&call->in[0]) + largest(&call->in[3])) * spread * largest(&call->in[1]) + largest(&call->in[2]);
}

/* dx = gamma invstd (dy - mean(dy) - xhat mean(dy xhat)), dgamma = sum(dy xhat), dbeta = sum(dy). */
static double norm_grad_scale(const rt_call *call, int32_t index, double depth) {
  double invstd = largest(&call->in[3]), xhat = (largest(&call->in[0]) + largest(&call->in[2])) * invstd;
  if (index == 0) return largest(&call->in[1]) * invstd * largest(&call->in[4]) * fmax(1, xhat);
  return sqrt(depth) * mean_square_root(&call->in[4]) * (index == 1 ? xhat : 1);
}

/* Of sums that come out small because they cancel: the size of partial sums, in which the terms' signs are random. */
static double terms_scale(const rt_call *call, kind of, int32_t index, double depth, char *const *want) {
  const rt_operand *last = &call->in[call->n_in - 1];
  if (of == PRODUCT) {
    double bias = call->n_in > 2 ? largest(last) : 0;
    double factor = fabs(planc_op_real(call->op, "scale", 1.0));
    return bias + factor * sqrt(depth) * mean_square_root(&call->in[0]) * mean_square_root(&call->in[1]);
  }
  if (is(call, "batchnorm") || is(call, "layernorm")) return norm_scale(call, index, want);
  if (is(call, "batchnorm_infer")) return given_norm_scale(call);
  if (is(call, "batchnorm_grad") || is(call, "layernorm_grad")) return norm_grad_scale(call, index, depth);
  if (is(call, "softmax_xent")) return index == 0 ? largest(&call->in[0]) : 1;
  if (is(call, "mse")) return pow(largest(&call->in[0]) + largest(last), 2);
  if (is(call, "softmax_grad")) return largest(&call->in[0]) * largest(last);
  if (of == SUM && !is(call, "mean")) return sqrt(depth) * mean_square_root(last);
  return largest(last);
}

bool tolerance_of(const rt_call *host, int32_t index, char *const *want, tolerance *out) {
  const char *type = planc_trace_type(host->trace, host->instance);
  const struct entry *entry = bsearch(type, table, sizeof table / sizeof *table, sizeof *table, compare_type);
  *out = (tolerance){0};
  if (!entry) return false;
  const rt_operand *result = call_result(host, index);
  double depth = depth_of(host, entry->kind);
  bool half = result->dtype == PLANC_DTYPE_bf16;
  out->scale = largest_in(result, want[index]);
  if (entry->kind == SAME) return true;
  out->scale = fmax(out->scale, terms_scale(host, entry->kind, index, depth, want));
  if (result->accumulate) out->scale = fmax(out->scale, largest(result));
  out->share = FACTOR * UNIT * sqrt(fmax(depth, 1));
  if (planc_op_int(host->op, "tf32", 0, 0) && !half) out->share += TF32_SHARE;
  if (half) out->each = BF16_STEP;
  /* A bias is added, and a sum added to, after a rounding in between. */
  if (half && entry->kind == PRODUCT && (host->n_in > 2 || result->accumulate)) out->share += BF16_STEP / 2;
  return true;
}

tolerance tolerance_noted(tolerance of, uint32_t notes) {
  if (notes & (1U << RT_NOTE_WINOGRAD | 1U << RT_NOTE_FFT)) of.share *= TRANSFORM_FACTOR;
  return of;
}

/* --- Comparing ---------------------------------------------------------------------------------------------------- */

difference tolerance_compare(const tolerance *of, const rt_operand *result, const char *want, const char *got) {
  difference worst = {0};
  if (memcmp(want, got, (size_t)result->bytes) == 0) return worst;
  for (int64_t i = 0; i < result->elements; i++) {
    double a = element(result, want, i), b = element(result, got, i);
    if (a == b || (isnan(a) && isnan(b))) continue;
    double off = isfinite(a) && isfinite(b) ? fabs(a - b) : INFINITY;
    double room = of->share * of->scale + of->each * fabs(a);
    worst.error = fmax(worst.error, of->scale > 0 ? off / of->scale : INFINITY);
    worst.allowed = fmax(worst.allowed, room > 0 ? off / room : INFINITY);
  }
  return worst;
}
