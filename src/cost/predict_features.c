/* Features of ops (predict_features.h), and the logarithms they are made of. */
#include "cost/predict_features.h"

#include <string.h>

#include "cost/roofline.h"
#include "graph/optypes.h"

const char *const pl_feature_names[PL_N_FEATURES] = {
#define X(name, nearness) #name,
    PL_FEATURES(X)
#undef X
};

/* --- Logarithms --------------------------------------------------------------------------------------------------- */

/* The mantissa is squared; whenever it passes 2 the next bit of the logarithm is 1. */
int64_t pl_log2_fixed(int64_t value) {
  enum { POINT = 31 };
  if (value < 1) return 0;
  int whole = 63 - __builtin_clzll((unsigned long long)value);
  uint64_t mantissa = whole > POINT ? (uint64_t)value >> (whole - POINT) : (uint64_t)value << (POINT - whole);
  int64_t log = whole;
  for (int bit = 0; bit < PL_LOG_BITS; bit++) {
    mantissa = mantissa * mantissa >> POINT;
    bool passes = mantissa >> (POINT + 1);
    mantissa >>= passes;
    log = log * 2 + passes;
  }
  return log;
}

/* 2^(1/2), 2^(1/4), ... 2^(2^-16), with 30 bits after the point. */
static const uint64_t roots[PL_LOG_BITS] = {
    1518500250u, 1276901417u, 1170923762u, 1121280436u, 1097253708u, 1085434106u, 1079572136u, 1076653033u,
    1075196443u, 1074468888u, 1074105294u, 1073923544u, 1073832680u, 1073787251u, 1073764537u, 1073753181u,
};

int64_t pl_exp2_fixed(int64_t log) {
  enum { POINT = 30, MOST = 62 };
  if (log < 0) return 0;
  int64_t whole = log >> PL_LOG_BITS;
  if (whole >= MOST) return INT64_C(1) << MOST;
  uint64_t mantissa = UINT64_C(1) << POINT;
  for (int bit = 0; bit < PL_LOG_BITS; bit++)
    if (log >> (PL_LOG_BITS - 1 - bit) & 1) mantissa = mantissa * roots[bit] >> POINT;
  return (int64_t)(whole > POINT ? mantissa << (whole - POINT) : mantissa >> (POINT - whole));
}

/* Figures of one op at one batch, before their logarithms. */
typedef struct measures {
  int64_t of[PL_N_FEATURES];
} measures;

/* --- Shapes ------------------------------------------------------------------------------------------------------- */

static int64_t bytes_of(const planc_graph *graph, const int32_t *tensors, int32_t n, int32_t which, int64_t batch);
static void measure_windows(const planc_op *op, measures *out);
static void measure_tensors(const planc_graph *graph, const planc_op *op, int64_t batch, measures *out);
static void measure_conv(const planc_graph *graph, const planc_op *op, int64_t batch, const pl_conv *conv,
                         measures *out);

planc_status pl_features_of(const planc_graph *graph, const planc_op *op, int64_t batch, int64_t load_ppm,
                            pl_features *out) {
  measures found = {0};
  found.of[PL_FEATURE_flops] = planc_law_at(op->flops, batch);
  found.of[PL_FEATURE_traffic] = planc_law_at(op->traffic, batch);
  found.of[PL_FEATURE_input] = bytes_of(graph, op->in, op->n_in, 0, batch);
  found.of[PL_FEATURE_operand] = bytes_of(graph, op->in, op->n_in, 1, batch);
  found.of[PL_FEATURE_result] = bytes_of(graph, op->out, op->n_out, 0, batch);
  measure_windows(op, &found);
  measure_tensors(graph, op, batch, &found);
  pl_conv conv;
  if (pl_conv_of(graph, op, &conv)) measure_conv(graph, op, batch, &conv, &found);
  for (int32_t f = 0; f < PL_N_FEATURES; f++) {
    if (found.of[f] < 0) return planc_error(PLANC_BAD_INPUT, "op %s: its sizes are beyond 2^53", op->name);
    out->at[f] = pl_log2_fixed(found.of[f]);
  }
  out->at[PL_FEATURE_layout] = graph->layout == PLANC_LAYOUT_NHWC ? PL_LOG_ONE : 0;
  out->at[PL_FEATURE_load] = pl_log2_fixed(PL_PPM + load_ppm) - pl_log2_fixed(PL_PPM);
  return NULL;
}

static int64_t bytes_of(const planc_graph *graph, const int32_t *tensors, int32_t n, int32_t which, int64_t batch) {
  return which < n ? planc_law_at(graph->tensors[tensors[which]].bytes, batch) : 0;
}

static int64_t dim_at(const planc_tensor *tensor, int32_t d, int64_t batch) {
  return d < tensor->rank ? planc_law_at(tensor->dims[d], batch) : 1;
}

/* Dimensions in the order N, C, H, W, whatever the layout. */
static void measure_tensors(const planc_graph *graph, const planc_op *op, int64_t batch, measures *out) {
  const planc_tensor *result = op->n_out > 0 ? &graph->tensors[op->out[0]] : NULL;
  const planc_tensor *input = op->n_in > 0 ? &graph->tensors[op->in[0]] : result;
  if (!result) result = input;
  if (!result) return;
  out->of[PL_FEATURE_element] = planc_dtype_bytes(result->dtype);
  out->of[PL_FEATURE_columns] = result->rank > 0 ? dim_at(result, result->rank - 1, batch) : 1;
  bool last = graph->layout == PLANC_LAYOUT_NHWC && input->rank == 4;
  out->of[PL_FEATURE_images] = dim_at(input, 0, batch);
  out->of[PL_FEATURE_channels] = dim_at(input, last ? 3 : 1, batch);
  out->of[PL_FEATURE_plane] = pl_mul_saturate(dim_at(input, last ? 1 : 2, batch), dim_at(input, last ? 2 : 3, batch));
  out->of[PL_FEATURE_filters] = dim_at(result, last && result->rank == 4 ? 3 : 1, batch);
}

/* The product of an attribute's two numbers. */
static int64_t area_of(const planc_op *op, const char *key) {
  int64_t height = planc_op_int(op, key, 0, 1), width = planc_op_int(op, key, 1, height);
  return height > 0 && width > 0 ? pl_mul_saturate(height, width) : 0;
}

static void measure_windows(const planc_op *op, measures *out) {
  out->of[PL_FEATURE_window] = area_of(op, "kernel");
  out->of[PL_FEATURE_stride] = area_of(op, "stride");
}

/* A convolution's gradients have the geometry of the convolution. */
static void measure_conv(const planc_graph *graph, const planc_op *op, int64_t batch, const pl_conv *conv,
                         measures *out) {
  const planc_tensor *images = &graph->tensors[op->in[conv->direction == PL_CONV_DGRAD ? 1 : 0]];
  out->of[PL_FEATURE_images] = planc_law_at(images->dims[0], batch);
  out->of[PL_FEATURE_channels] = conv->c;
  out->of[PL_FEATURE_filters] = conv->k;
  out->of[PL_FEATURE_plane] = pl_mul_saturate(conv->p, conv->q);
  out->of[PL_FEATURE_columns] = 1;
  out->of[PL_FEATURE_window] = pl_mul_saturate(conv->r, conv->s);
  out->of[PL_FEATURE_stride] = pl_mul_saturate(conv->stride_h, conv->stride_w);
  out->of[PL_FEATURE_groups] = conv->groups;
}

/* --- Roofline ----------------------------------------------------------------------------------------------------- */

planc_method pl_method_of(const char *algorithm) {
  if (strstr(algorithm, "winograd")) return PLANC_METHOD_WINOGRAD;
  return strstr(algorithm, "fft") ? PLANC_METHOD_FFT : PLANC_METHOD_PLAIN;
}

planc_status pl_loaded_roofline(const planc_profile *profile, const planc_graph *graph, int32_t op, int64_t batch,
                                const char *algorithm, int64_t load_ppm, int64_t *out_ns) {
  planc_variant alone;
  PLANC_TRY(planc_cost_roofline(profile, graph, op, batch, pl_method_of(algorithm), &alone));
  int64_t wanted_ppm = alone.busy_ppm + load_ppm;
  *out_ns = wanted_ppm > PL_PPM ? pl_muldiv_ceil(alone.time_ns, wanted_ppm, PL_PPM) : alone.time_ns;
  return NULL;
}
