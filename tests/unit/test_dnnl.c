/* oneDNN's kernels against the plain ones, on random shapes in either layout: near results, the same bits wherever
 * the operands lie and whichever threads run it, nothing touched but results and the stated workspace. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "planrt/planrt.h"
#include "runtime/random.h"
#include "tests/support/forward.h"
#include "tests/support/rival.h"
#include "tests/support/unit.h"

static bool has_avx512(void) {
  return strstr(planrt_host_library(), "avx512") != NULL;
}

/* --- Random shapes ------------------------------------------------------------------------------------------------ */

typedef struct dice {
  uint64_t seed, thrown;
} dice;

static int from(dice *d, int low, int high) {
  return low + (int)(rt_random(d->seed, d->thrown++) % (uint64_t)(high - low + 1));
}

typedef struct shape {
  char text[64];
} shape;

/* "[n,c,h,w]" in the layout; a first dimension of 0 is the batch. */
static const char *image(shape *s, bool nhwc, int n, int c, int h, int w) {
  char first[16] = "N";
  if (n > 0) snprintf(first, sizeof first, "%d", n);
  if (nhwc)
    snprintf(s->text, sizeof s->text, "[%s,%d,%d,%d]", first, h, w, c);
  else
    snprintf(s->text, sizeof s->text, "[%s,%d,%d,%d]", first, c, h, w);
  return s->text;
}

static void fill_inputs(one_call *one, uint64_t seed) {
  for (int32_t k = 0; k < one->call.n_in; k++) one_call_fill(&one->call.in[k], seed + (uint64_t)k, -1.0F, 1.0F);
}

/* --- Convolution -------------------------------------------------------------------------------------------------- */

typedef struct conv_shape {
  int batch, groups, cg, kg, h, w, r, s, stride[2], pad[2], dilation[2], p, q;
} conv_shape;

static bool close_conv(conv_shape *v) {
  int height = v->h + 2 * v->pad[0] - v->dilation[0] * (v->r - 1) - 1;
  int width = v->w + 2 * v->pad[1] - v->dilation[1] * (v->s - 1) - 1;
  if (height < 0 || width < 0) return false;
  v->p = height / v->stride[0] + 1;
  v->q = width / v->stride[1] + 1;
  return true;
}

static conv_shape random_conv(dice *d) {
  conv_shape v;
  do {
    v = (conv_shape){.batch = from(d, 1, 4), .groups = from(d, 0, 3) ? 1 : from(d, 2, 4)};
    v.cg = from(d, 0, 1) ? from(d, 1, 7) : 16 * from(d, 1, 3),
    v.kg = from(d, 0, 1) ? from(d, 1, 9) : 16 * from(d, 1, 2);
    if (v.groups > 1 && from(d, 0, 2) == 0) v.groups = 16, v.cg = v.kg = 1; /* depthwise */
    v.h = from(d, 1, 13), v.w = from(d, 1, 13), v.r = from(d, 1, 4), v.s = from(d, 0, 2) ? v.r : from(d, 1, 5);
    for (int axis = 0; axis < 2; axis++) {
      v.stride[axis] = from(d, 0, 1) ? 1 : from(d, 1, 3);
      v.dilation[axis] = from(d, 0, 3) ? 1 : 2;
      v.pad[axis] = from(d, 0, 2);
    }
  } while (!close_conv(&v));
  return v;
}

static void open_conv(one_call *one, const conv_shape *v, bool nhwc, int direction) {
  static const char *const ops[] = {"type: conv2d, in: [x, w%s], out: [y]", "type: conv2d_dgrad, in: [w, y], out: [x]",
                                    "type: conv2d_wgrad, in: [x, y], out: [w]"};
  static const char *const kinds[3][3] = {{"input ", "param ", ""}, {"", "param ", "input "}, {"input ", "", "input "}};
  shape x, w, y;
  char tensors[512], op[512], attrs[256];
  int c = v->cg * v->groups, k = v->kg * v->groups;
  bool bias = direction == 0 && k % 2 == 0;
  int length = snprintf(tensors, sizeof tensors, "x: %sf32%s\nw: %sf32%s\ny: %sf32%s", kinds[direction][0],
                        image(&x, nhwc, 0, c, v->h, v->w), kinds[direction][1], image(&w, nhwc, k, v->cg, v->r, v->s),
                        kinds[direction][2], image(&y, nhwc, 0, k, v->p, v->q));
  if (bias) snprintf(tensors + length, sizeof tensors - (size_t)length, "\nb: param f32[%d]", k);
  snprintf(attrs, sizeof attrs, "stride: [%d, %d], pad: [%d, %d], dilation: [%d, %d], groups: %d", v->stride[0],
           v->stride[1], v->pad[0], v->pad[1], v->dilation[0], v->dilation[1], v->groups);
  length = direction == 0 ? snprintf(op, sizeof op, ops[0], bias ? ", b" : "")
                          : snprintf(op, sizeof op, "%s", ops[direction]);
  snprintf(op + length, sizeof op - (size_t)length, ", attrs: {%s}", attrs);
  one_call_open(one, nhwc ? "NHWC" : "NCHW", tensors, op, v->batch, false);
}

static void compare_conv(const conv_shape *v, bool nhwc, rival_seen *s) {
  for (int direction = 0; direction < 3; direction++)
    for (uint32_t adds = 0; adds <= (direction == 2); adds++) {
      one_call one;
      open_conv(&one, v, nhwc, direction);
      fill_inputs(&one, 11);
      rival_compare(&one, adds, RIVAL_PRODUCTS, s);
      one_call_close(&one);
    }
}

START_TEST(convolution) {
  dice d = {.seed = (uint64_t)_i + 1};
  rival_seen s = {0};
  for (int i = 0; i < 25; i++) {
    conv_shape v = random_conv(&d);
    compare_conv(&v, _i % 2, &s);
  }
  ck_assert_int_eq(s.gemm, 25 * 4); /* it has every shape */
  ck_assert_int_ge(s.direct, has_avx512() ? 25 : 4);
}
END_TEST

/* Shapes of whole vectors and several blocks, which every algorithm can have. */
START_TEST(blocked_convolution) {
  static const conv_shape shapes[] = {
      {1, 1, 64, 64, 14, 14, 3, 3, {1, 1}, {1, 1}, {1, 1}, 0, 0},
      {5, 1, 32, 128, 9, 11, 3, 3, {1, 1}, {1, 1}, {1, 1}, 0, 0},
      {3, 1, 128, 48, 8, 8, 1, 1, {1, 1}, {0, 0}, {1, 1}, 0, 0},
      {2, 1, 64, 128, 15, 15, 1, 1, {2, 2}, {0, 0}, {1, 1}, 0, 0},
      {2, 1, 3, 64, 32, 32, 7, 7, {2, 2}, {3, 3}, {1, 1}, 0, 0},
      {1, 1, 512, 512, 2, 2, 3, 3, {1, 1}, {1, 1}, {1, 1}, 0, 0},
  };
  rival_seen s = {0};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    conv_shape v = shapes[i];
    ck_assert(close_conv(&v));
    compare_conv(&v, _i, &s);
  }
  ck_assert_int_ge(s.direct, has_avx512() ? 24 : 6);
  ck_assert_int_eq(s.gemm, 24);
  if (has_avx512() && _i == 0) ck_assert_int_gt(s.winograd, 4);
}
END_TEST

/* --- Others ------------------------------------------------------------------------------------------------------- */

static void compare_one(const char *layout, const char *tensors, const char *op, int batch, uint32_t adds,
                        rival_allowance by, rival_seen *s) {
  one_call one;
  one_call_open(&one, layout, tensors, op, batch, false);
  fill_inputs(&one, 21);
  /* Variances and their likes are positive. */
  if (strstr(op, "batchnorm_infer")) one_call_fill(&one.call.in[4], 25, 0.5F, 1.5F);
  if (strstr(op, "norm_grad")) one_call_fill(&one.call.in[3], 25, 0.5F, 1.5F);
  rival_compare(&one, adds, by, s);
  one_call_close(&one);
}

START_TEST(linear) {
  dice d = {.seed = 3};
  rival_seen s = {0};
  for (int i = 0; i < 25; i++) {
    char tensors[256], rows[32] = "N";
    int batch = from(&d, 1, 40), in = from(&d, 1, 70), out = from(&d, 0, 3) ? from(&d, 1, 50) : 64;
    if (i % 4 == 0) snprintf(rows, sizeof rows, "N,%d,%d", from(&d, 1, 3), from(&d, 1, 4));
    snprintf(tensors, sizeof tensors, "x: input f32[%s,%d]\nw: param f32[%d,%d]\nb: param f32[%d]\ny: f32[%s,%d]", rows,
             in, out, in, out, rows, out);
    compare_one("NCHW", tensors, "type: linear, in: [x, w, b], out: [y]", batch, 0, RIVAL_PRODUCTS, &s);
    snprintf(tensors, sizeof tensors, "x: input f32[%s,%d]\nw: param f32[%d,%d]\ny: f32[%s,%d]", rows, in, out, in,
             rows, out);
    compare_one("NCHW", tensors, "type: linear, in: [x, w], out: [y]", batch, 0, RIVAL_PRODUCTS, &s);
    snprintf(tensors, sizeof tensors, "x: f32[%s,%d]\nw: param f32[%d,%d]\ny: input f32[%s,%d]", rows, in, out, in,
             rows, out);
    compare_one("NCHW", tensors, "type: linear_dgrad, in: [w, y], out: [x]", batch, 0, RIVAL_PRODUCTS, &s);
    snprintf(tensors, sizeof tensors, "x: input f32[%s,%d]\nw: f32[%d,%d]\ny: input f32[%s,%d]", rows, in, out, in,
             rows, out);
    for (uint32_t adds = 0; adds < 2; adds++)
      compare_one("NCHW", tensors, "type: linear_wgrad, in: [x, y], out: [w]", batch, adds, RIVAL_PRODUCTS, &s);
  }
  ck_assert_int_eq(s.other, 25 * 5);
  ck_assert_int_eq(s.plain, 0);
}
END_TEST

START_TEST(batched_products) {
  dice d = {.seed = 8};
  rival_seen s = {0};
  for (int i = 0; i < 25; i++) {
    char tensors[256], heads[32] = "N";
    int batch = from(&d, 1, 9), m = from(&d, 1, 40), k = from(&d, 1, 40), n = from(&d, 1, 40);
    if (i % 3) snprintf(heads, sizeof heads, "N,%d", from(&d, 1, 5));
    static const char *const ops[] = {"type: matmul, in: [a, b], out: [y], attrs: {scale: 0.25}",
                                      "type: matmul_nt, in: [a, b], out: [y], attrs: {scale: 3}",
                                      "type: matmul_tn, in: [a, b], out: [y]"};
    for (int form = 0; form < 3; form++) {
      snprintf(tensors, sizeof tensors, "a: input f32[%s,%d,%d]\nb: input f32[%s,%d,%d]\ny: f32[%s,%d,%d]", heads,
               form == 2 ? k : m, form == 2 ? m : k, heads, form == 1 ? n : k, form == 1 ? k : n, heads, m, n);
      compare_one("NCHW", tensors, ops[form], batch, 0, RIVAL_PRODUCTS, &s);
    }
  }
  ck_assert_int_eq(s.other, 25 * 3);
  ck_assert_int_eq(s.plain, 0);
}
END_TEST

START_TEST(batch_normalisation) {
  static const char *const ops[] = {
      "type: batchnorm, in: [x, g, b], out: [y, m, s], effects: [rm, rv], attrs: {momentum: 0.3, epsilon: 0.002}",
      "type: batchnorm_infer, in: [x, g, b, rm, rv], out: [y], attrs: {epsilon: 0.002}",
      "type: batchnorm_grad, in: [x, g, m, s, d], out: [y, dg, db]",
  };
  static const char *const vectors[] = {
      "g: param f32[%d]\nb: param f32[%d]\nm: f32[%d]\ns: f32[%d]\nrm: state f32[%d]\nrv: state f32[%d]",
      "g: param f32[%d]\nb: param f32[%d]\nrm: state f32[%d]\nrv: state f32[%d]",
      "g: param f32[%d]\nm: input f32[%d]\ns: input f32[%d]\ndg: f32[%d]\ndb: f32[%d]",
  };
  dice d = {.seed = 4};
  rival_seen s = {0};
  for (int i = 0; i < 30; i++) {
    int batch = from(&d, 2, 6), c = from(&d, 0, 1) ? from(&d, 1, 20) : 16 * from(&d, 1, 4);
    int h = from(&d, 1, 9), w = from(&d, 1, 9);
    char dims[64], tensors[512];
    bool nhwc = i % 3 == 0;
    shape of;
    snprintf(dims, sizeof dims, "%s", image(&of, nhwc, 0, c, h, w));
    if (i % 3 == 2) snprintf(dims, sizeof dims, "[N,%d]", c);
    for (int k = 0; k < 3; k++)
      for (uint32_t adds = 0; adds <= (k == 2 ? 6 : 0); adds += 2) {
        int length = snprintf(tensors, sizeof tensors, "x: input f32%s\ny: f32%s\n", dims, dims);
        length += snprintf(tensors + length, sizeof tensors - (size_t)length, vectors[k], c, c, c, c, c, c);
        if (k == 2) snprintf(tensors + length, sizeof tensors - (size_t)length, "\nd: input f32%s", dims);
        compare_one(nhwc ? "NHWC" : "NCHW", tensors, ops[k], batch, adds, RIVAL_VALUES, &s);
      }
  }
  ck_assert_int_eq(s.other, 30 * 6);
}
END_TEST

START_TEST(layer_normalisation) {
  dice d = {.seed = 9};
  rival_seen s = {0};
  for (int i = 0; i < 20; i++) {
    char tensors[512], rows[32] = "N";
    int batch = from(&d, 1, 9), c = from(&d, 2, 70);
    if (i % 3) snprintf(rows, sizeof rows, "N,%d", from(&d, 1, 9));
    snprintf(tensors, sizeof tensors,
             "x: input f32[%s,%d]\ng: param f32[%d]\nb: param f32[%d]\ny: f32[%s,%d]\nm: f32[%s]\ns: f32[%s]", rows, c,
             c, c, rows, c, rows, rows);
    compare_one("NCHW", tensors, "type: layernorm, in: [x, g, b], out: [y, m, s], attrs: {epsilon: 0.002}", batch, 0,
                RIVAL_VALUES, &s);
    snprintf(tensors, sizeof tensors,
             "x: input f32[%s,%d]\ng: param f32[%d]\nm: input f32[%s]\ns: input f32[%s]\nd: input f32[%s,%d]\n"
             "y: f32[%s,%d]\ndg: f32[%d]\ndb: f32[%d]",
             rows, c, c, rows, rows, rows, c, rows, c, c, c);
    for (uint32_t adds = 0; adds <= 6; adds += 2)
      compare_one("NCHW", tensors, "type: layernorm_grad, in: [x, g, m, s, d], out: [y, dg, db]", batch, adds,
                  RIVAL_VALUES, &s);
  }
  ck_assert_int_eq(s.other, 20 * 5);
  ck_assert_int_eq(s.plain, 0);
}
END_TEST

#define NORM_TENSORS                                                                                       \
  "x: input f32[N,20,3,3]\ng: param f32[20]\nb: param f32[20]\ny: f32[N,20,3,3]\nm: f32[20]\ns: f32[20]\n" \
  "rm: state f32[20]\nrv: state f32[20]"

/* A recompute leaves running statistics alone and gives the same results; an inference pass normalises by them. */
START_TEST(running_statistics) {
  one_call one;
  one_call_open(&one, "NCHW", NORM_TENSORS, "type: batchnorm, in: [x, g, b], out: [y, m, s], effects: [rm, rv]", 4,
                false);
  fill_inputs(&one, 31);
  rival_set_results(&one);
  rt_variant variants[RT_MAX_VARIANTS];
  ck_assert_int_eq(rival_variants(&one, variants), 1);
  rt_launch launch = one_call_launch();
  rival first, again, inference;
  rival_run(&one, &variants[0], &launch, &first);
  ck_assert_mem_ne(first.effects[0].data, one.call.effects[0].data, 80);

  void *running[2] = {one.call.effects[0].data, one.call.effects[1].data};
  one.call.effects[0].data = one.call.effects[1].data = NULL;
  rival_run(&one, &variants[0], &launch, &again);
  rival_assert_same_bits(first.out, again.out, 3);

  one.call.effects[0].data = running[0], one.call.effects[1].data = running[1];
  launch.inference = true;
  rival_run(&one, &variants[0], &launch, &inference);
  ck_assert_mem_eq(inference.effects[0].data, running[0], 80);
  one_call_run(&one, &launch);
  rival_assert_values(inference.out, one.call.out, 3);
  rt_block_free(&first.block);
  rt_block_free(&again.block);
  rt_block_free(&inference.block);
  one_call_close(&one);
}
END_TEST

/* Small integers, many of them equal, so that every sum is exact: the same elements must win and get the gradients. */
static void fill_integers(one_call *one, dice *d) {
  for (int32_t k = 0; k < one->call.n_in; k++)
    for (int64_t e = 0; e < one->call.in[k].elements; e++) ((float *)one->call.in[k].data)[e] = (float)from(d, -2, 2);
}

START_TEST(pooling) {
  static const char *const ops[] = {"maxpool2d, in: [x], out: [y]", "maxpool2d_grad, in: [x, y, d], out: [z]",
                                    "avgpool2d, in: [x], out: [y]", "avgpool2d_grad, in: [d], out: [z]"};
  static const char *const tensors[] = {"x: input f32%s\ny: f32%s",
                                        "x: input f32%s\ny: input f32%s\nd: input f32%s\nz: f32%s",
                                        "x: input f32%s\ny: f32%s", "z: f32%s\nd: input f32%s"};
  dice d = {.seed = (uint64_t)_i + 5};
  rival_seen s = {0};
  for (int i = 0; i < 25; i++) {
    conv_shape v;
    do {
      v = (conv_shape){.batch = from(&d, 1, 3), .groups = 1, .dilation = {1, 1}};
      v.cg = from(&d, 0, 1) ? from(&d, 1, 9) : 16 * from(&d, 1, 3);
      v.h = from(&d, 1, 12), v.w = from(&d, 1, 12), v.r = from(&d, 1, 4), v.s = from(&d, 1, 4);
      for (int axis = 0; axis < 2; axis++) {
        v.stride[axis] = from(&d, 1, 3);
        v.pad[axis] = from(&d, 0, (axis ? v.s : v.r) - 1);
      }
    } while (!close_conv(&v));
    shape x, y;
    image(&x, _i, 0, v.cg, v.h, v.w);
    image(&y, _i, 0, v.cg, v.p, v.q);
    for (int k = 0; k < 4; k++) {
      char text[512], op[256];
      one_call one;
      snprintf(text, sizeof text, tensors[k], x.text, y.text, y.text, x.text);
      snprintf(op, sizeof op, "type: %s, attrs: {kernel: [%d, %d], stride: [%d, %d], pad: [%d, %d]}", ops[k], v.r, v.s,
               v.stride[0], v.stride[1], v.pad[0], v.pad[1]);
      one_call_open(&one, _i ? "NHWC" : "NCHW", text, op, v.batch, false);
      fill_integers(&one, &d);
      rival_compare(&one, 0, RIVAL_VALUES, &s);
      one_call_close(&one);
    }
  }
  ck_assert_int_eq(s.other, 25 * 4);
}
END_TEST

/* --- What oneDNN does not run ------------------------------------------------------------------------------------- */

START_TEST(other_algorithms) {
  one_call one;
  conv_shape v = {.batch = 2,
                  .groups = 1,
                  .cg = 3,
                  .kg = 4,
                  .h = 6,
                  .w = 6,
                  .r = 3,
                  .s = 3,
                  .stride = {1, 1},
                  .pad = {1, 1},
                  .dilation = {1, 1}};
  ck_assert(close_conv(&v));
  open_conv(&one, &v, false, 0);
  fill_inputs(&one, 41);
  rt_launch launch = one_call_launch();
  one_call_run(&one, &launch);
  static const char *const names[] = {"default", "implicit-gemm", "plain", "dnnl", "dnnl-"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    rt_variant variant = {0};
    snprintf(variant.algorithm, sizeof variant.algorithm, "%s", names[i]);
    rival r;
    rival_run(&one, &variant, &launch, &r);
    rival_assert_same_bits(r.out, one.call.out, 1);
    rt_block_free(&r.block);
  }
  /* One of oneDNN's, for which it has no kernel of this stride. */
  one_call_close(&one);
  v.stride[0] = 2;
  ck_assert(close_conv(&v));
  open_conv(&one, &v, false, 0);
  rt_call call = one.call;
  call.algorithm = "dnnl-winograd";
  call.workspace_bytes = 1 << 30;
  planc_status status = rt_host_backend.prepare(one.device, &call);
  assert_fails(status, PLANC_DEVICE, "dnnl-winograd");
  one_call_close(&one);
}
END_TEST

START_TEST(other_ops) {
  one_call one;
  rt_variant variants[RT_MAX_VARIANTS];
  one_call_open(&one, "NCHW", "x: input f32[N,5]\ny: f32[N,5]", "type: relu, in: [x], out: [y]", 3, false);
  ck_assert_int_eq(rival_variants(&one, variants), 1);
  ck_assert_str_eq(variants[0].algorithm, "plain");
  ck_assert_int_eq(variants[0].workspace_bytes, 0);
  one_call_close(&one);
  /* Stand-ins need no oneDNN. */
  one_call_open(&one, "NCHW", "x: input f32[N,5]\nw: param f32[4,5]\ny: f32[N,4]", "type: linear, in: [x, w], out: [y]",
                3, true);
  ck_assert_int_eq(rival_variants(&one, variants), 1);
  ck_assert_str_eq(variants[0].algorithm, "plain");
  one_call_close(&one);
}
END_TEST

START_TEST(version) {
  int major, minor, patch, end = 0;
  ck_assert_int_eq(sscanf(planrt_host_library(), "oneDNN %d.%d.%d, %*[a-z0-9_]%n", &major, &minor, &patch, &end), 3);
  ck_assert_int_eq(end, (int)strlen(planrt_host_library()));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("dnnl");
  TCase *c = tcase_create("dnnl");
  tcase_set_timeout(c, 300);
  tcase_add_loop_test(c, convolution, 0, 2);
  tcase_add_loop_test(c, blocked_convolution, 0, 2);
  tcase_add_test(c, linear);
  tcase_add_test(c, batched_products);
  tcase_add_test(c, layer_normalisation);
  tcase_add_test(c, batch_normalisation);
  tcase_add_test(c, running_statistics);
  tcase_add_loop_test(c, pooling, 0, 2);
  tcase_add_test(c, other_algorithms);
  tcase_add_test(c, other_ops);
  tcase_add_test(c, version);
  suite_add_tcase(suite, c);
  return run_suite(suite);
}
