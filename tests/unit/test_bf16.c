/* bf16 on the host: rounding, casts, every op on bf16 operands against itself on f32 ones, and training. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/optypes.h"
#include "runtime/bf16.h"
#include "runtime/host/host_kernels.h"
#include "runtime/random.h"
#include "tests/support/graphtext.h"
#include "tests/support/rival.h"
#include "tests/support/unit.h"
#include "tests/support/weave.h"

/* --- Rounding ----------------------------------------------------------------------------------------------------- */

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* By distance: the differences are exact in double, and beyond the largest number comes 2^128. */
static uint16_t rounded(float value) {
  if (isinf(value)) return signbit(value) ? 0xff80 : 0x7f80;
  uint16_t sign = signbit(value) ? 0x8000 : 0, below = (uint16_t)(bits_of(fabsf(value)) >> 16);
  double low = (double)float_of((uint32_t)below << 16), size = fabs((double)value);
  double high = below == 0x7f7f ? 0x1p128 : (double)float_of(((uint32_t)below + 1) << 16);
  bool up = size - low > high - size || (size - low == high - size && below % 2 == 1);
  return (uint16_t)(sign | (below + up));
}

static void assert_rounds(uint32_t bits) {
  float value = float_of(bits);
  uint16_t got = rt_to_bf16(value);
  if (isnan(value)) {
    ck_assert_msg(isnan(rt_from_bf16(got)), "NaN %08x becomes %04x", bits, got);
    return;
  }
  ck_assert_msg(got == rounded(value), "%08x becomes %04x, should be %04x", bits, got, rounded(value));
}

/* All bf16 numbers stay themselves; halfway between two, a step off, and anywhere else the nearest is taken. */
START_TEST(rounding) {
  static const uint32_t between[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
  for (uint32_t number = 0; number < 0x10000; number++) {
    float value = rt_from_bf16((uint16_t)number);
    ck_assert_uint_eq(bits_of(value), number << 16);
    if (!isnan(value)) ck_assert_uint_eq(rt_to_bf16(value), number);
    for (size_t i = 0; i < sizeof between / sizeof *between; i++) assert_rounds(number << 16 | between[i]);
  }
  for (uint64_t i = 0; i < 200000; i++) assert_rounds((uint32_t)rt_random(1, i));
}
END_TEST

/* --- The cast op -------------------------------------------------------------------------------------------------- */

static void fill(const rt_operand *operand, uint64_t seed, float low, float high) {
  for (int64_t i = 0; i < operand->elements; i++)
    rt_real_put(operand->dtype, operand->data, i, low + (high - low) * rt_uniform(seed, (uint64_t)i));
}

START_TEST(casts) {
  static const char *const types[] = {"f32", "bf16"};
  const char *from = types[_i & 1], *to = types[_i >> 1 & 1];
  bool adds = _i >> 2;
  char tensors[128];
  (void)snprintf(tensors, sizeof tensors, "x: state %s[3,257]\ny: %s%s[3,257]", from, adds ? "grad " : "", to);
  one_call one;
  one_call_open(&one, "NCHW", tensors, "type: cast, in: [x], out: [y]", 3, false);
  const rt_operand *x = &one.call.in[0], *y = &one.call.out[0];
  one.call.out[0].accumulate = adds;
  fill(x, 1, -3.0F, 3.0F);
  fill(y, 2, -3.0F, 3.0F);
  float *before = malloc((size_t)y->elements * sizeof *before);
  ck_assert(before);
  for (int64_t i = 0; i < y->elements; i++) before[i] = adds ? rt_real_at(y->dtype, y->data, i) : 0.0F;
  rt_launch launch = one_call_launch();
  one_call_run(&one, &launch);
  for (int64_t i = 0; i < y->elements; i++) {
    float want = rt_real_at(x->dtype, x->data, i) + before[i];
    if (y->dtype == PLANC_DTYPE_bf16) want = rt_from_bf16(rounded(want));
    ck_assert_float_eq(rt_real_at(y->dtype, y->data, i), want);
  }
  free(before);
  one_call_close(&one);
}
END_TEST

/* --- Every other op ----------------------------------------------------------------------------------------------- */

/* An op with '@' for the type in question; bit k of `adds`: result k is added to. */
typedef struct twin_case {
  const char *layout, *tensors, *op;
  uint32_t adds;
} twin_case;

#define POOL "attrs: {kernel: [3, 2], stride: [2, 1], pad: [1, 0]}"
#define NORM "gamma: param f32[4]\nbeta: param f32[4]\nmean: f32[4]\ninvstd: f32[4]\n"

static const twin_case cases[] = {
    {"NCHW", "a: input @[N,5,7]\nb: input @[N,5,7]\ny: @[N,5,7]", "type: add, in: [a, b], out: [y]", 0},
    {"NCHW", "a: state @[4,7]\nb: state @[4,7]", "type: add, in: [a, b], out: [a]", 0},
    {"NCHW", "a: input @[N,7]\ny: @[N,7]", "type: add, in: [a, a], out: [y]", 0},
    {"NCHW", "x: input @[N,3,9,8]\ny: @[N,3,5,7]", "type: avgpool2d, in: [x], out: [y], " POOL, 0},
    {"NCHW", "dy: input @[N,3,5,7]\ndx: @[N,3,9,8]", "type: avgpool2d_grad, in: [dy], out: [dx], " POOL, 0},
    {"NCHW", "x: input @[N,4,5,3]\ny: @[N,4,5,3]\n" NORM "rm: state f32[4]\nrv: state f32[4]",
     "type: batchnorm, in: [x, gamma, beta], out: [y, mean, invstd], effects: [rm, rv]", 0},
    {"NHWC",
     "x: input @[N,5,3,4]\ny: @[N,5,3,4]\ngamma: param @[4]\nbeta: param @[4]\nmean: @[4]\ninvstd: @[4]\n"
     "rm: state @[4]\nrv: state @[4]",
     "type: batchnorm, in: [x, gamma, beta], out: [y, mean, invstd], effects: [rm, rv]", 0},
    {"NCHW",
     "x: input @[N,4,5]\ngamma: param f32[4]\nmean: input f32[4]\ninvstd: input f32[4]\ndy: input @[N,4,5]\n"
     "dx: @[N,4,5]\ndgamma: grad f32[4]\ndbeta: grad f32[4]",
     "type: batchnorm_grad, in: [x, gamma, mean, invstd, dy], out: [dx, dgamma, dbeta]", 6},
    {"NCHW", "x: input @[N,4,5]\ng: param f32[4]\nb: param f32[4]\nm: state f32[4]\nv: state f32[4]\ny: @[N,4,5]",
     "type: batchnorm_infer, in: [x, g, b, m, v], out: [y]", 0},
    {"NCHW", "x: state @[3,4,5]\nb: param f32[4]", "type: bias, in: [x, b], out: [x]", 0},
    {"NCHW", "dy: input @[N,4,5]\ndb: grad f32[4]", "type: bias_grad, in: [dy], out: [db]", 1},
    {"NCHW", "a: input @[N,2,3]\nb: input @[N,4,3]\ny: @[N,6,3]",
     "type: concat, in: [a, b], out: [y], attrs: {axis: 1}", 0},
    {"NCHW", "dy: input @[N,6,3]\nda: @[N,4,3]", "type: concat_grad, in: [dy], out: [da], attrs: {axis: 1, offset: 2}",
     0},
    {"NCHW", "x: input @[N,16,7,6]\nw: param @[32,16,3,3]\nb: param f32[32]\ny: @[N,32,7,6]",
     "type: conv2d, in: [x, w, b], out: [y], attrs: {pad: [1, 1]}", 0},
    {"NHWC", "x: input @[N,7,6,4]\nw: param @[6,3,3,2]\ny: @[N,5,4,6]",
     "type: conv2d, in: [x, w], out: [y], attrs: {groups: 2, tf32: 1}", 0},
    {"NCHW", "dy: input @[N,6,5,4]\ndb: grad f32[6]", "type: conv2d_bgrad, in: [dy], out: [db]", 1},
    {"NCHW", "w: param @[6,4,3,3]\ndy: input @[N,6,5,4]\ndx: @[N,4,7,6]", "type: conv2d_dgrad, in: [w, dy], out: [dx]",
     0},
    {"NCHW", "x: input @[N,4,7,6]\ndy: input @[N,6,5,4]\ndw: grad @[6,4,3,3]",
     "type: conv2d_wgrad, in: [x, dy], out: [dw]", 1},
    {"NCHW", "x: input @[N,4,7,6]\ndy: input @[N,6,5,4]\ndw: @[6,4,3,3]", "type: conv2d_wgrad, in: [x, dy], out: [dw]",
     0},
    {"NCHW", "x: state @[3,50]", "type: dropout, in: [x], out: [x], attrs: {p: 0.5, seed: 3}", 0},
    {"NCHW", "dy: input @[N,50]\ndx: @[N,50]", "type: dropout_grad, in: [dy], out: [dx], attrs: {p: 0.5, seed: 3}", 0},
    {"NCHW", "ids: input i64[N,6]\nw: param @[5,4]\ny: @[N,6,4]", "type: embedding, in: [ids, w], out: [y]", 0},
    {"NCHW", "ids: input i64[N,6]\ndy: input @[N,6,4]\ndw: grad @[5,4]",
     "type: embedding_grad, in: [ids, dy], out: [dw]", 1},
    {"NCHW", "x: input @[N,5]\ny: @[N,7,5]", "type: expand, in: [x], out: [y]", 0},
    {"NCHW", "dy: input @[N,7,5]\ndx: @[N,5]", "type: expand_grad, in: [dy], out: [dx]", 0},
    {"NCHW", "x: input @[N,50]\ny: @[N,50]", "type: affine, in: [x], out: [y], attrs: {scale: -1, shift: 1}", 0},
    {"NCHW", "dy: state @[3,50]", "type: affine_grad, in: [dy], out: [dy], attrs: {scale: 3}", 0},
    {"NCHW", "x: input @[N,9,2]\nt: input @[N,9,2]\nloss: f32[]", "type: mse, in: [x, t], out: [loss]", 0},
    {"NCHW", "x: input @[N,50]\nt: input @[N,50]\ndx: @[N,50]", "type: mse_grad, in: [x, t], out: [dx]", 0},
    {"NCHW", "x: input @[N,50]\ny: @[N,50]", "type: gelu, in: [x], out: [y]", 0},
    {"NCHW", "x: state @[3,50]\ndy: state @[3,50]", "type: gelu_grad, in: [x, dy], out: [dy]", 0},
    {"NCHW", "x: input @[N,3,4]\n" NORM "y: @[N,3,4]\nm: f32[N,3]\ns: f32[N,3]",
     "type: layernorm, in: [x, gamma, beta], out: [y, m, s]", 0},
    {"NCHW",
     "x: input @[N,4]\ngamma: param f32[4]\nm: input f32[N]\ns: input f32[N]\ndy: input @[N,4]\ndx: @[N,4]\n"
     "dgamma: grad f32[4]\ndbeta: grad f32[4]",
     "type: layernorm_grad, in: [x, gamma, m, s, dy], out: [dx, dgamma, dbeta]", 6},
    {"NCHW", "x: input @[N,3,9]\nw: param @[5,9]\nb: param f32[5]\ny: @[N,3,5]",
     "type: linear, in: [x, w, b], out: [y]", 0},
    {"NCHW", "dy: input @[N,3,5]\ndb: grad f32[5]", "type: linear_bgrad, in: [dy], out: [db]", 1},
    {"NCHW", "w: param @[5,9]\ndy: input @[N,3,5]\ndx: @[N,3,9]", "type: linear_dgrad, in: [w, dy], out: [dx]", 0},
    {"NCHW", "x: input @[N,3,9]\ndy: input @[N,3,5]\ndw: grad @[5,9]", "type: linear_wgrad, in: [x, dy], out: [dw]", 1},
    {"NCHW", "a: input @[N,3,4]\nb: input @[N,4,5]\ny: @[N,3,5]",
     "type: matmul, in: [a, b], out: [y], attrs: {scale: 0.5}", 0},
    {"NCHW", "a: input @[N,3,4]\ny: @[N,3,3]", "type: matmul_nt, in: [a, a], out: [y]", 0},
    {"NCHW", "a: input @[N,4,3]\nb: input @[N,4,5]\ny: @[N,3,5]", "type: matmul_tn, in: [a, b], out: [y]", 0},
    {"NHWC", "x: input @[N,9,8,3]\ny: @[N,5,7,3]", "type: maxpool2d, in: [x], out: [y], " POOL, 0},
    {"NCHW", "x: input @[N,3,9,8]\ny: input @[N,3,5,7]\ndy: input @[N,3,5,7]\ndx: @[N,3,9,8]",
     "type: maxpool2d_grad, in: [x, y, dy], out: [dx], " POOL, 0},
    {"NCHW", "x: input @[N,6,4]\ny: @[N,4]", "type: mean, in: [x], out: [y]", 0},
    {"NCHW", "dy: input @[N,4]\ndx: @[N,6,4]", "type: mean_grad, in: [dy], out: [dx]", 0},
    {"NCHW", "a: input @[N,50]\nb: input @[N,50]\ny: @[N,50]", "type: mul, in: [a, b], out: [y]", 0},
    {"NCHW", "x: state @[3,5,4]\np: param @[5,4]", "type: position, in: [x, p], out: [x]", 0},
    {"NCHW", "dy: input @[N,5,4]\ndp: grad @[5,4]", "type: position_grad, in: [dy], out: [dp]", 1},
    {"NCHW", "x: input @[N,50]\ny: @[N,50]", "type: relu, in: [x], out: [y]", 0},
    {"NCHW", "y: input @[N,50]\ndy: input @[N,50]\ndx: @[N,50]", "type: relu_grad, in: [y, dy], out: [dx]", 0},
    {"NCHW", "x: input @[N,50]\ny: @[N,50]", "type: sigmoid, in: [x], out: [y]", 0},
    {"NCHW", "y: input @[N,50]\ndy: input @[N,50]\ndx: @[N,50]", "type: sigmoid_grad, in: [y, dy], out: [dx]", 0},
    {"NCHW", "x: input @[N,7,3]\na: @[N,4,3]\nb: @[N,3,3]", "type: split, in: [x], out: [a, b], attrs: {axis: 1}", 0},
    {"NCHW", "x: state @[3,50]", "type: tanh, in: [x], out: [x]", 0},
    {"NCHW", "y: input @[N,50]\ndy: input @[N,50]\ndx: @[N,50]", "type: tanh_grad, in: [y, dy], out: [dx]", 0},
    {"NCHW", "x: state @[6,9]", "type: softmax, in: [x], out: [x]", 0},
    {"NCHW", "y: input @[N,9]\ndy: input @[N,9]\ndx: @[N,9]", "type: softmax_grad, in: [y, dy], out: [dx]", 0},
    {"NCHW", "z: input @[N,9,2]\nlabels: input i64[N,2]\nloss: f32[]\nprobs: f32[N,9,2]",
     "type: softmax_xent, in: [z, labels], out: [loss, probs]", 0},
    {"NCHW", "probs: input f32[N,9]\nlabels: input i64[N]\ndz: @[N,9]",
     "type: softmax_xent_grad, in: [probs, labels], out: [dz]", 0},
    {"NCHW", "x: input @[N,4,5]\ny: @[N,5,4]", "type: transpose, in: [x], out: [y], attrs: {axis: 1}", 0},
    {"NCHW", "x: input @[N,3,4,5]\ny: @[N,3,8,10]",
     "type: upsample, in: [x], out: [y], attrs: {scale: 2, mode: bilinear}", 0},
    {"NCHW", "dy: input @[N,3,8,10]\ndx: @[N,3,4,5]", "type: upsample_grad, in: [dy], out: [dx], attrs: {scale: 2}", 0},
    /* No graph that planc makes has weights that are bf16, but one may. */
    {"NCHW", "w: state @[9]\nd: input f32[9]", "phase: optimizer, type: sgd, in: [w, d], out: [w]", 0},
    {"NCHW", "w: state @[9]\nd: input @[9]\nv: state f32[9]",
     "phase: optimizer, type: momentum, in: [w, d, v], out: [w, v]", 0},
    {"NCHW", "w: state @[9]\nd: input @[9]\nm: state f32[9]\nv: state @[9]",
     "phase: optimizer, type: adam, in: [w, d, m, v], out: [w, m, v]", 0},
};
enum { N_CASES = sizeof cases / sizeof *cases };

START_TEST(every_kernel_has_a_case) {
  int32_t n_types;
  const planc_optype *types = pl_optypes(&n_types);
  for (int32_t t = 0; t < n_types; t++) {
    char words[64];
    bool found = strcmp(types[t].name, "cast") == 0;
    (void)snprintf(words, sizeof words, "type: %s,", types[t].name);
    for (int i = 0; i < N_CASES; i++) found |= strstr(cases[i].op, words) != NULL;
    ck_assert_msg(found || !rt_kernel_find(types[t].id), "%s", types[t].name);
  }
}
END_TEST

static void open_twin(one_call *one, const twin_case *of, const char *dtype) {
  char tensors[512];
  size_t length = 0;
  for (const char *c = of->tensors; *c; c++)
    length +=
        (size_t)snprintf(tensors + length, sizeof tensors - length, *c == '@' ? "%s" : "%.1s", *c == '@' ? dtype : c);
  one_call_open(one, of->layout, tensors, of->op, 3, false);
}

/* The same numbers, all of them bf16's, for both; integers are below 5. */
static void fill_both(const rt_operand *bf16, const rt_operand *f32, uint64_t seed, float low) {
  if (bf16->dtype == PLANC_DTYPE_i64) {
    for (int64_t i = 0; i < bf16->elements; i++)
      ((int64_t *)bf16->data)[i] = ((int64_t *)f32->data)[i] = (int64_t)(rt_random(seed, (uint64_t)i) % 5);
    return;
  }
  fill(bf16, seed, low, 1.5F);
  for (int64_t i = 0; i < bf16->elements; i++) {
    float value = rt_from_bf16(rt_to_bf16(rt_real_at(bf16->dtype, bf16->data, i)));
    rt_real_put(bf16->dtype, bf16->data, i, value);
    rt_real_put(f32->dtype, f32->data, i, value);
  }
}

static void assert_twins(const rt_operand *bf16, const rt_operand *f32, int32_t count, const char *what) {
  for (int32_t k = 0; k < count; k++)
    for (int64_t i = 0; i < bf16[k].elements; i++) {
      float want = rt_real_at(f32[k].dtype, f32[k].data, i), got = rt_real_at(bf16[k].dtype, bf16[k].data, i);
      if (bf16[k].dtype == PLANC_DTYPE_bf16) want = rt_from_bf16(rt_to_bf16(want));
      ck_assert_msg(got == want, "%s, result %d[%ld]: %.9g, should be %.9g", what, k, (long)i, (double)got,
                    (double)want);
    }
}

static const rt_variant *variant_called(const rt_variant *variants, int32_t count, const char *algorithm) {
  for (int32_t v = 0; v < count; v++)
    if (strcmp(variants[v].algorithm, algorithm) == 0) return &variants[v];
  ck_abort_msg("no algorithm %s", algorithm);
}

static void assert_refused(one_call *one, const rt_variant *variant) {
  rt_call call = one->call;
  call.algorithm = variant->algorithm;
  call.workspace_bytes = variant->workspace_bytes - 1;
  call.workspace = malloc((size_t)variant->workspace_bytes);
  assert_fails(rt_host_backend.prepare(one->device, &call), PLANC_DEVICE, "workspace");
  free(call.workspace);
}

/* By every algorithm, and by one that the host does not know and that comes without a workspace, results are those of
 * the f32 op, rounded; nothing but them and the stated workspace is touched. */
START_TEST(results_are_rounded) {
  const twin_case *of = &cases[_i];
  one_call bf16, f32;
  open_twin(&bf16, of, "bf16");
  open_twin(&f32, of, "f32");
  for (int32_t k = 0; k < bf16.call.n_in; k++)
    fill_both(&bf16.call.in[k], &f32.call.in[k], (uint64_t)k + 1, k >= 3 ? 0.5F : -1.0F);
  for (int32_t k = 0; k < bf16.call.n_effects; k++)
    fill_both(&bf16.call.effects[k], &f32.call.effects[k], (uint64_t)k + 9, 0.5F);
  for (int32_t k = 0; k < bf16.call.n_out; k++) {
    bf16.call.out[k].accumulate = f32.call.out[k].accumulate = of->adds >> k & 1;
    if (of->adds >> k & 1) fill_both(&bf16.call.out[k], &f32.call.out[k], (uint64_t)k + 20, -1.0F);
  }
  rt_variant variants[RT_MAX_VARIANTS + 1], known[RT_MAX_VARIANTS + 1];
  int32_t count = rival_variants(&bf16, variants), n_known = rival_variants(&f32, known);
  ck_assert_int_eq(count, n_known);
  variants[count++] = known[n_known++] = (rt_variant){.algorithm = "default", .deterministic = true};
  rt_launch launch = one_call_launch();
  for (int32_t v = 0; v < count; v++) {
    if (v + 1 < count) ck_assert_int_gt(variants[v].workspace_bytes, 0);
    rival got, want;
    rival_run(&bf16, &variants[v], &launch, &got);
    rival_run(&f32, variant_called(known, n_known, variants[v].algorithm), &launch, &want);
    assert_twins(got.out, want.out, got.call.n_out, bf16.call.op->type);
    assert_twins(got.effects, want.effects, got.call.n_effects, bf16.call.op->type);
    rt_block_free(&got.block);
    rt_block_free(&want.block);
    if (variants[v].workspace_bytes > 0) assert_refused(&bf16, &variants[v]);
  }
  one_call_close(&bf16);
  one_call_close(&f32);
}
END_TEST

START_TEST(a_recompute_leaves_running_statistics) {
  one_call one;
  open_twin(&one, &cases[6], "bf16");
  for (int32_t k = 0; k < one.call.n_in; k++) fill(&one.call.in[k], (uint64_t)k + 1, -1.0F, 1.0F);
  for (int32_t k = 0; k < one.call.n_effects; k++) one.call.effects[k].data = NULL;
  rt_variant plain = {.algorithm = "default"};
  rt_launch launch = one_call_launch();
  rival got;
  rival_run(&one, &plain, &launch, &got);
  ck_assert_ptr_null(got.effects[0].data);
  rt_block_free(&got.block);
  one_call_close(&one);
}
END_TEST

/* A weight that two ops share has a second gradient in every round, which is added to the first by an instance without
 * an op of its own. */
START_TEST(gradients_add_up) {
  static const int64_t rounds[] = {2, 1};
  planc_graph *forward = graph_of(
                  "planc-graph: 1\nname: shared\nloss: loss\ntensors:\n"
                  "  x: input bf16[N,5]\n  labels: input i64[N]\n  w: param bf16[5,5]\n"
                  "  y: bf16[N,5]\n  z: bf16[N,5]\n  loss: f32[]\n  probs: f32[N,5]\nops:\n"
                  "  - {op: y, type: linear, in: [x, w], out: [y]}\n"
                  "  - {op: z, type: linear, in: [y, w], out: [z]}\n"
                  "  - {op: l, type: softmax_xent, in: [z, labels], out: [loss, probs]}\n"),
              *graph;
  ok(planc_graph_train(forward, PLANC_SGD, &graph));
  planc_job job = {.graph = graph, .batch = 3, .n_rounds = 2, .rounds = rounds, .iterations = 1};
  planc_trace *trace;
  ok(planc_expand(&job, 1, &trace));
  int32_t at = 0;
  while (trace->instances[at].role != PLANC_ROLE_ACCUMULATE) ck_assert_int_lt(++at, trace->n_instances);
  uint16_t round[25], sum[25], before[25];
  for (uint64_t i = 0; i < 25; i++) {
    round[i] = rt_to_bf16(rt_uniform(1, i));
    sum[i] = before[i] = rt_to_bf16(rt_uniform(2, i) - 0.5F);
  }
  rt_device_options options = {.n_streams = 1};
  rt_device *device;
  rt_call call;
  pl_arena arena = {0};
  rt_launch launch = one_call_launch();
  ok(rt_host_backend.open(&options, &device));
  ok(rt_call_make(&arena, trace, 0, at, (void *[]){round, sum}, &call));
  call.algorithm = "default";
  ok(rt_host_backend.prepare(device, &call));
  ok(rt_host_backend.launch(device, 0, &call, &launch, NULL));
  for (int i = 0; i < 25; i++) ck_assert_uint_eq(sum[i], rounded(rt_from_bf16(before[i]) + rt_from_bf16(round[i])));
  rt_host_backend.close(device);
  pl_arena_free(&arena);
  planc_trace_free(trace);
  planc_graph_free(graph);
  planc_graph_free(forward);
}
END_TEST

/* --- Training ----------------------------------------------------------------------------------------------------- */

typedef struct trained {
  planc_graph *graph;
  double loss;
  int32_t n;
  float *state[64]; /* by storage, of the momentum: after one iteration the gradient */
  int64_t elements[64];
} trained;

static planc_status add_loss(void *user, const planrt_result *result) {
  trained *to = user;
  if (result->storage == to->graph->tensors[to->graph->loss].storage) to->loss += (double)*(const float *)result->data;
  return NULL;
}

/* One iteration on random samples, in two rounds, with everything moved about and verified. */
static void train_once(const planc_graph *forward, planc_precision precision, trained *out) {
  static const int64_t rounds[] = {7, 5};
  planc_graph *converted;
  *out = (trained){0};
  ok(planc_graph_convert(forward, precision, &converted));
  ok(planc_graph_train(converted, PLANC_MOMENTUM, &out->graph));
  planc_graph_free(converted);
  planc_job job = {.graph = out->graph, .batch = 12, .n_rounds = 2, .rounds = rounds, .iterations = 1};
  woven w;
  ok(weave(&job, WEAVE_SWAP, 0, &w));
  planrt_options options = {.verify = true, .poison = true, .sink = add_loss, .user = out, .seed = 3};
  planrt_session *session;
  ok(planrt_session_new(&w.plan, &options, &session));
  ok(planrt_init(session));
  ok(planrt_run(session, 1));
  for (int32_t s = 0; s < out->graph->n_storages; s++) {
    const planc_storage *storage = &out->graph->storages[s];
    const char *name = out->graph->tensors[storage->tensor].name;
    if (storage->kind != PLANC_KIND_state || strcmp(name + strlen(name) - 2, ".v") != 0) continue;
    ck_assert_int_lt(out->n, 64);
    ck_assert_int_eq(out->graph->tensors[storage->tensor].dtype, PLANC_DTYPE_f32);
    out->elements[out->n] = storage->bytes.fixed / (int64_t)sizeof(float);
    out->state[out->n] = malloc((size_t)storage->bytes.fixed);
    ok(planrt_read(session, 0, 0, s, out->state[out->n++], storage->bytes.fixed));
  }
  planrt_session_free(session);
  woven_free(&w);
}

static void trained_free(trained *of) {
  for (int32_t k = 0; k < of->n; k++) free(of->state[k]);
  planc_graph_free(of->graph);
}

static double norm(const float *numbers, const float *less, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; i++) {
    double number = (double)numbers[i] - (less ? (double)less[i] : 0);
    sum += number * number;
  }
  return sqrt(sum);
}

/* Gradients of equal weights and samples differ by roundings that add up over the layers: their norms by at most 10
 * units of 2^-8, the spacing of bf16 numbers near 1, and the loss by one. Where terms cancel out (of the gradient of an
 * attention's key bias nothing is left) the error is small beside the largest gradient. TF32 changes nothing here. */
START_TEST(gradients_are_near_those_of_f32) {
  static const char *const graphs[] = {"graphs/lenet-digits.yaml", "graphs/tiny-transformer.yaml"};
  const double unit = 0x1p-8;
  planc_graph *forward;
  trained f32, tf32, bf16;
  ok(planc_graph_read(graphs[_i], &forward));
  train_once(forward, PLANC_F32, &f32);
  train_once(forward, PLANC_TF32, &tf32);
  train_once(forward, PLANC_BF16, &bf16);
  ck_assert_int_eq(f32.n, bf16.n);
  ck_assert_int_ge(f32.n, 8);
  ck_assert_double_eq(f32.loss, tf32.loss);
  ck_assert_double_eq_tol(f32.loss, bf16.loss, unit * f32.loss);
  double largest = 0;
  for (int32_t k = 0; k < f32.n; k++) largest = fmax(largest, norm(f32.state[k], NULL, f32.elements[k]));
  for (int32_t k = 0; k < f32.n; k++) {
    ck_assert_mem_eq(f32.state[k], tf32.state[k], (size_t)f32.elements[k] * sizeof(float));
    double size = norm(f32.state[k], NULL, f32.elements[k]);
    double error = norm(f32.state[k], bf16.state[k], f32.elements[k]);
    ck_assert_double_gt(error, 0);
    ck_assert_double_le(error, fmax(10 * unit * size, unit / 64 * largest));
  }
  trained_free(&f32);
  trained_free(&tf32);
  trained_free(&bf16);
  planc_graph_free(forward);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("bf16");
  TCase *tests = tcase_create("all");
  tcase_set_timeout(tests, 120);
  tcase_add_test(tests, rounding);
  tcase_add_loop_test(tests, casts, 0, 8);
  tcase_add_test(tests, every_kernel_has_a_case);
  tcase_add_loop_test(tests, results_are_rounded, 0, N_CASES);
  tcase_add_test(tests, a_recompute_leaves_running_statistics);
  tcase_add_test(tests, gradients_add_up);
  tcase_add_loop_test(tests, gradients_are_near_those_of_f32, 0, 2);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
