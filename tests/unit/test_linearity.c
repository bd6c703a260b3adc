/* The op table's word on what is linear, held against the kernels: results of sums are the sums of results where it
 * says so, and nowhere else. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/optypes.h"
#include "runtime/random.h"
#include "tests/support/one_call.h"
#include "tests/support/unit.h"

/* By type: operands and op. Types of which sums do not matter are left out: optimizers, which run once, and those that
 * couple samples or take means over them. */
#define ON_ONE "x: input f32[2,3]\ny: f32[2,3]"
#define ON_TWO "a: input f32[2,3]\nb: input f32[2,3]\ny: f32[2,3]"
#define ONE(type) \
  { type, ON_ONE, "type: " type ", in: [x], out: [y]" }
#define TWO(type) \
  { type, ON_TWO, "type: " type ", in: [a, b], out: [y]" }
#define IMAGE "x: input f32[2,3,4,4]\nz: input f32[2,3,2,2]\n"
#define POOL "attrs: {kernel: [2, 2], stride: [2, 2]}"
#define CONV_X "x: input f32[2,3,4,4]\n"
#define CONV_W "w: input f32[5,3,3,3]\n"
#define CONV_Y "v: input f32[5]\ndy: input f32[2,5,2,2]\n"
static const struct {
  const char *type, *tensors, *op;
} cases[] = {
    TWO("add"),
    {"affine", ON_ONE, "type: affine, in: [x], out: [y], attrs: {scale: 0.5}"},
    {"affine", ON_ONE, "type: affine, in: [x], out: [y], attrs: {scale: 0.5, shift: 0.25}"},
    {"affine_grad", ON_ONE, "type: affine_grad, in: [x], out: [y], attrs: {scale: 0.5, shift: 0.25}"},
    {"avgpool2d", IMAGE "y: f32[2,3,2,2]", "type: avgpool2d, in: [x], out: [y], " POOL},
    {"avgpool2d_grad", IMAGE "y: f32[2,3,4,4]", "type: avgpool2d_grad, in: [z], out: [y], " POOL},
    {"batchnorm_infer",
     "x: input f32[2,3]\ng: input f32[3]\nb: input f32[3]\nm: input f32[3]\nv: input f32[3]\ny: f32[2,3]",
     "type: batchnorm_infer, in: [x, g, b, m, v], out: [y]"},
    {"bias", "x: input f32[2,3]\nb: input f32[3]\ny: f32[2,3]", "type: bias, in: [x, b], out: [y]"},
    {"bias_grad", "x: input f32[2,3]\ny: f32[3]", "type: bias_grad, in: [x], out: [y]"},
    ONE("cast"),
    {"concat", "a: input f32[2,3]\nb: input f32[2,4]\ny: f32[2,7]",
     "type: concat, in: [a, b], out: [y], attrs: {axis: 1}"},
    {"concat_grad", "x: input f32[2,7]\ny: f32[2,3]",
     "type: concat_grad, in: [x], out: [y], attrs: {axis: 1, offset: 2}"},
    {"conv2d", CONV_X CONV_W "y: f32[2,5,2,2]", "type: conv2d, in: [x, w], out: [y]"},
    {"conv2d", CONV_X CONV_W CONV_Y "y: f32[2,5,2,2]", "type: conv2d, in: [x, w, v], out: [y]"},
    {"conv2d_bgrad", CONV_Y "y: f32[5]", "type: conv2d_bgrad, in: [dy], out: [y]"},
    {"conv2d_dgrad", CONV_W CONV_Y "y: f32[2,3,4,4]", "type: conv2d_dgrad, in: [w, dy], out: [y]"},
    {"conv2d_wgrad", CONV_X CONV_Y "y: f32[5,3,3,3]", "type: conv2d_wgrad, in: [x, dy], out: [y]"},
    {"embedding_grad", "i: input i64[4]\nx: input f32[4,3]\ny: f32[5,3]", "type: embedding_grad, in: [i, x], out: [y]"},
    {"expand", "x: input f32[2,3]\ny: f32[2,4,3]", "type: expand, in: [x], out: [y]"},
    {"expand_grad", "x: input f32[2,4,3]\ny: f32[2,3]", "type: expand_grad, in: [x], out: [y]"},
    ONE("gelu"),
    TWO("gelu_grad"),
    {"layernorm", "x: input f32[2,3]\ng: input f32[3]\nb: input f32[3]\ny: f32[2,3]\nm: f32[2]\nv: f32[2]",
     "type: layernorm, in: [x, g, b], out: [y, m, v]"},
    {"layernorm_grad",
     "x: input f32[2,3]\ng: input f32[3]\nm: input f32[2]\nv: input f32[2]\ndy: input f32[2,3]\ny: f32[2,3]\nh: "
     "f32[3]\nk: f32[3]",
     "type: layernorm_grad, in: [x, g, m, v, dy], out: [y, h, k]"},
    {"linear", "x: input f32[2,3]\nw: input f32[4,3]\ny: f32[2,4]", "type: linear, in: [x, w], out: [y]"},
    {"linear", "x: input f32[2,3]\nw: input f32[4,3]\nb: input f32[4]\ny: f32[2,4]",
     "type: linear, in: [x, w, b], out: [y]"},
    {"linear_bgrad", "x: input f32[2,3]\ny: f32[3]", "type: linear_bgrad, in: [x], out: [y]"},
    {"linear_dgrad", "w: input f32[4,3]\nx: input f32[2,4]\ny: f32[2,3]", "type: linear_dgrad, in: [w, x], out: [y]"},
    {"linear_wgrad", "x: input f32[2,3]\nz: input f32[2,4]\ny: f32[4,3]", "type: linear_wgrad, in: [x, z], out: [y]"},
    {"matmul", "a: input f32[2,3]\nb: input f32[3,4]\ny: f32[2,4]", "type: matmul, in: [a, b], out: [y]"},
    {"matmul_nt", "a: input f32[2,3]\nb: input f32[4,3]\ny: f32[2,4]", "type: matmul_nt, in: [a, b], out: [y]"},
    {"matmul_tn", "a: input f32[3,2]\nb: input f32[3,4]\ny: f32[2,4]", "type: matmul_tn, in: [a, b], out: [y]"},
    {"maxpool2d", IMAGE "y: f32[2,3,2,2]", "type: maxpool2d, in: [x], out: [y], " POOL},
    {"maxpool2d_grad", IMAGE "d: input f32[2,3,2,2]\ny: f32[2,3,4,4]",
     "type: maxpool2d_grad, in: [x, z, d], out: [y], " POOL},
    {"mean", "x: input f32[2,4,3]\ny: f32[2,3]", "type: mean, in: [x], out: [y]"},
    {"mean_grad", "x: input f32[2,3]\ny: f32[2,4,3]", "type: mean_grad, in: [x], out: [y]"},
    TWO("mul"),
    {"position", "x: input f32[2,3]\np: input f32[3]\ny: f32[2,3]", "type: position, in: [x, p], out: [y]"},
    {"position_grad", "x: input f32[2,3]\ny: f32[3]", "type: position_grad, in: [x], out: [y]"},
    ONE("relu"),
    TWO("relu_grad"),
    ONE("sigmoid"),
    TWO("sigmoid_grad"),
    ONE("softmax"),
    TWO("softmax_grad"),
    {"split", "x: input f32[2,7]\ny: f32[2,3]\nz: f32[2,4]", "type: split, in: [x], out: [y, z], attrs: {axis: 1}"},
    ONE("tanh"),
    TWO("tanh_grad"),
    {"transpose", "x: input f32[2,3,4]\ny: f32[2,4,3]", "type: transpose, in: [x], out: [y], attrs: {axis: 1}"},
    {"upsample", IMAGE "y: f32[2,3,4,4]", "type: upsample, in: [z], out: [y], attrs: {scale: 2}"},
    {"upsample_grad", IMAGE "y: f32[2,3,2,2]", "type: upsample_grad, in: [x], out: [y], attrs: {scale: 2}"},
};
enum { N_CASES = sizeof cases / sizeof *cases, MOST = 256 };

/* What is summed: one input, or all of them. */
enum { ALL = -1 };

static bool is_summed(int32_t input, int32_t which) {
  return which == ALL || input == which;
}

/* The results where the summed inputs are drawn with `seed`, or the sums of two draws. */
static int32_t results_of(one_call *one, int32_t which, uint64_t seed, uint64_t other, float out[MOST]) {
  int32_t n = 0;
  for (int32_t i = 0; i < one->call.n_in; i++) {
    const rt_operand *in = &one->call.in[i];
    float *data = in->data;
    if (in->dtype != PLANC_DTYPE_f32) continue;
    bool summed = is_summed(i, which);
    one_call_fill(in, (summed ? seed : 1) + 100 * (uint64_t)i, -1.0F, 1.0F);
    for (int64_t k = 0; summed && other && k < in->elements; k++)
      data[k] += -1.0F + 2.0F * rt_uniform(other + 100 * (uint64_t)i, (uint64_t)k);
  }
  rt_launch launch = one_call_launch();
  one_call_run(one, &launch);
  for (int32_t o = 0; o < one->call.n_out; o++) {
    ck_assert_int_le(n + one->call.out[o].elements, MOST);
    for (int64_t k = 0; k < one->call.out[o].elements; k++) out[n++] = ((const float *)one->call.out[o].data)[k];
  }
  return n;
}

static bool is_linear_in(one_call *one, int32_t which) {
  float a[MOST], b[MOST], sum[MOST];
  int32_t n = results_of(one, which, 11, 0, a);
  (void)results_of(one, which, 12, 0, b);
  (void)results_of(one, which, 11, 12, sum);
  for (int32_t k = 0; k < n; k++)
    if (!(fabsf(sum[k] - a[k] - b[k]) <= 1e-4F)) return false;
  return true;
}

START_TEST(the_table_says_what_kernels_do) {
  one_call one;
  one_call_open(&one, "NCHW", cases[_i].tensors, cases[_i].op, 1, false);
  const planc_op *op = &one.graph->ops[0];
  int32_t n = op->n_in, last = n - 1;
  bool each = n > 1, together = is_linear_in(&one, ALL);
  for (int32_t i = 0; i < n; i++) {
    each = is_linear_in(&one, i) && each;
    together = together && one.call.in[i].dtype == PLANC_DTYPE_f32; /* indices are no sums */
  }
  pl_linearity says = pl_op_linearity(op);
  ck_assert_str_eq(op->known->name, cases[_i].type);
  ck_assert_int_eq(says == PL_LINEAR_IN_ALL, together);
  ck_assert_int_eq(says == PL_LINEAR_IN_ONE, each);
  ck_assert_int_eq(says == PL_LINEAR_IN_LAST, n > 1 && !each && !together && is_linear_in(&one, last));
  one_call_close(&one);
}
END_TEST

static bool is_there(const char *type) {
  for (int32_t k = 0; k < N_CASES; k++)
    if (strcmp(cases[k].type, type) == 0) return true;
  return false;
}

/* A sum that goes to none of the others is refused, or no gradient. */
START_TEST(no_type_is_left_out) {
  int32_t n;
  const planc_optype *types = pl_optypes(&n);
  for (int32_t t = 0; t < n; t++) {
    bool matters = types[t].class_ != PLANC_CLASS_optimizer &&
                   !(types[t].flags & (PLANC_OP_BATCH_COUPLED | PLANC_OP_BATCH_MEAN | PLANC_OP_STOCHASTIC));
    if (types[t].id == PL_OPTYPE_embedding) matters = false; /* reads indices */
    if (matters) {
      ck_assert_msg(is_there(types[t].name), "%s", types[t].name);
    } else {
      ck_assert_msg(types[t].linear == PL_LINEAR_IN_NONE, "%s", types[t].name);
    }
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("linearity");
  TCase *all = tcase_create("linearity");
  tcase_add_loop_test(all, the_table_says_what_kernels_do, 0, N_CASES);
  tcase_add_test(all, no_type_is_left_out);
  suite_add_tcase(suite, all);
  return run_suite(suite);
}
