/* What the CUDA backend's kernels do beside ops of a graph, emulated: casts and sums of rounds, which dtypes are taken,
 * digests, stand-ins, the step. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/kernel_call.h"

/* --- Casts and sums of rounds ------------------------------------------------------------------------------------- */

START_TEST(casts) {
  seed_draws((uint64_t)_i << 32);
  planc_dtype from = _i & 1 ? PLANC_DTYPE_bf16 : PLANC_DTYPE_f32, to = _i & 2 ? PLANC_DTYPE_bf16 : PLANC_DTYPE_f32;
  bool accumulate = _i & 4;
  for (int64_t n = 1; n < 3000; n = n * 3 + 1) {
    int64_t offset = (int64_t)draw(4) * 4;
    buffer x = buffer_new(NULL, n * planc_dtype_bytes(from), offset, 0);
    buffer y = buffer_new(NULL, n * planc_dtype_bytes(to), (int64_t)draw(2) * offset, 0);
    float *want = calloc((size_t)n, sizeof *want);
    rt_operand in = {.data = x.data, .dtype = from, .rank = 1, .dims = {n}, .elements = n, .bytes = x.bytes};
    rt_operand out = {.data = y.data, .dtype = to, .rank = 1, .dims = {n}, .elements = n, .bytes = y.bytes};
    out.accumulate = accumulate;
    for (int64_t i = 0; i < n; i++) {
      float a = (float)draw(1 << 24) * 0x1p-20F - 8.0F, b = from_bf16(to_bf16((float)draw(999) * 0.37F));
      if (from == PLANC_DTYPE_bf16) a = from_bf16(((uint16_t *)x.data)[i] = to_bf16(a));
      if (from == PLANC_DTYPE_f32) ((float *)x.data)[i] = a;
      if (to == PLANC_DTYPE_bf16) ((uint16_t *)y.data)[i] = to_bf16(b);
      if (to == PLANC_DTYPE_f32) ((float *)y.data)[i] = b;
      want[i] = accumulate ? b + a : a;
    }
    rt_call call = {.in = &in, .out = &out, .n_in = 1, .n_out = 1};
    const rt_cuda_op *op = accumulate && from == to ? &rt_cuda_accumulate : rt_cuda_op_find(PL_OPTYPE_cast);
    ck_assert(rt_cuda_op_takes(op, &call));
    ck_assert(from == to || !rt_cuda_op_takes(&rt_cuda_accumulate, &call));
    ck_assert_int_eq(op->run(&call, &(rt_cuda_launch){0}), cudaSuccess);
    buffer_check(&y, "cast");
    check_output(&out, &(rt_operand){.data = want, .elements = n}, 0, "cast");
    free(want);
    free(x.memory);
    free(y.memory);
  }
}
END_TEST

/* What is half-way between two bf16 goes to the even one; infinities and what is not a number stay what they are. */
START_TEST(rounding) {
  const float x[] = {1.00390625F, 1.01171875F, -1.00390625F, 3.4e38F, INFINITY,
                     -INFINITY,   NAN,         0x1p-140F,    -0.0F,   1e-3F};
  enum { N = sizeof x / sizeof *x };
  uint16_t y[N];
  ck_assert_int_eq(rt_cuda_convert(NULL, RT_CUDA_F32, RT_CUDA_BF16, N, x, y, false), cudaSuccess);
  ck_assert_int_eq(y[0], 0x3f80);
  ck_assert_int_eq(y[1], 0x3f82);
  ck_assert_int_eq(y[2], 0xbf80);
  ck_assert_int_eq(y[3], 0x7f80);
  for (int k = 0; k < N; k++)
    ck_assert_msg(isnan(x[k]) ? isnan(from_bf16(y[k])) : y[k] == to_bf16(x[k]), "element %d", k);
}
END_TEST

START_TEST(dtypes_that_are_not_taken) {
  one_call one;
  const op_case bias = {
      "NCHW", "x: input f32[N,3]\nb: param f32[3]\ny: f32[N,3]", "type: bias, in: [x, b], out: [y]", "TPT", "u", 0, 0};
  open_case(&bias, &(sizes){{0}}, 2, &one);
  const rt_cuda_op *op = rt_cuda_op_find(PL_OPTYPE_bias);
  planc_dtype x = PLANC_DTYPE_f32, b = PLANC_DTYPE_f32, y = PLANC_DTYPE_f32;
  const struct {
    planc_dtype x, b, y;
    bool taken;
  } tries[] = {{x, b, y, true},
               {PLANC_DTYPE_bf16, b, PLANC_DTYPE_bf16, true},
               {PLANC_DTYPE_bf16, PLANC_DTYPE_bf16, PLANC_DTYPE_bf16, true},
               {PLANC_DTYPE_bf16, b, y, false},
               {x, PLANC_DTYPE_bf16, y, false},
               {PLANC_DTYPE_f16, PLANC_DTYPE_f16, PLANC_DTYPE_f16, false},
               {PLANC_DTYPE_i64, PLANC_DTYPE_i64, PLANC_DTYPE_i64, false}};
  for (size_t k = 0; k < sizeof tries / sizeof *tries; k++) {
    one.call.in[0].dtype = tries[k].x, one.call.in[1].dtype = tries[k].b, one.call.out[0].dtype = tries[k].y;
    ck_assert_int_eq(rt_cuda_op_takes(op, &one.call), tries[k].taken);
  }
  one_call_close(&one);
  static const pl_optype_id libraries[] = {PL_OPTYPE_FOREIGN,      PL_OPTYPE_conv2d, PL_OPTYPE_conv2d_dgrad,
                                           PL_OPTYPE_conv2d_wgrad, PL_OPTYPE_linear, PL_OPTYPE_linear_dgrad,
                                           PL_OPTYPE_linear_wgrad, PL_OPTYPE_matmul, PL_OPTYPE_matmul_nt,
                                           PL_OPTYPE_matmul_tn};
  for (size_t k = 0; k < sizeof libraries / sizeof *libraries; k++) ck_assert(!rt_cuda_op_find(libraries[k]));
}
END_TEST

/* --- Beside ops --------------------------------------------------------------------------------------------------- */

static uint64_t digest_of(uint64_t seed, const void *data, int64_t bytes) {
  uint64_t sum = 0;
  ck_assert_int_eq(rt_cuda_digest(NULL, seed, data, bytes, &sum), cudaSuccess);
  return sum;
}

/* Nothing but the bytes, their number and the seed counts. */
START_TEST(digests) {
  static const int64_t lengths[] = {0, 1, 7, 8, 9, 64, 1001, 30000};
  int64_t n = lengths[_i];
  char *data = calloc((size_t)n + 32, 1);
  for (int64_t i = 0; i < n; i++) data[i] = (char)draw(256);
  uint64_t digest = digest_of(1, data, n);
  ck_assert_uint_eq(digest_of(1, data, n), digest);
  ck_assert_uint_ne(digest_of(2, data, n), digest);
  ck_assert_uint_ne(digest_of(1, data, n + 1), digest);
  for (int64_t at = 0; at < n; at = at * 2 + 1) {
    data[at] ^= 0x10;
    ck_assert_uint_ne(digest_of(1, data, n), digest);
    data[at] ^= 0x10;
  }
  for (int64_t shift = 1; shift < 16; shift++) {
    memmove(data + shift, data + shift - 1, (size_t)n);
    ck_assert_uint_eq(digest_of(1, data + shift, n), digest);
  }
  free(data);
}
END_TEST

START_TEST(steps) {
  rt_cuda_step at = {0}, value = {0.5, 1234567890123, 42, -7};
  ck_assert_int_eq(rt_cuda_set_step(NULL, &at, &value), cudaSuccess);
  ck_assert_mem_eq(&at, &value, sizeof at);
  ck_assert_int_eq(rt_cuda_delay(NULL, 20000), cudaSuccess);
}
END_TEST

START_TEST(bias_of_a_convolution) {
  float y[2 * 3 * 5], b[3] = {1.0F, -2.0F, 0.5F};
  for (int nhwc = 0; nhwc < 2; nhwc++) {
    for (int i = 0; i < 30; i++) y[i] = (float)i;
    ck_assert_int_eq(rt_cuda_add_bias(NULL, PLANC_DTYPE_f32, y, b, PLANC_DTYPE_f32, nhwc ? 10 : 2, 3, nhwc ? 1 : 5),
                     cudaSuccess);
    for (int i = 0; i < 30; i++) ck_assert(y[i] == (float)i + b[nhwc ? i % 3 : i / 5 % 3]);
  }
}
END_TEST

/* A stand-in gives the same bytes again, wholly others when a byte of an input changes, and its side effects do not
 * come into it. */
static void run_stand_in(one_call *one, char *results, size_t size) {
  char workspace[300];
  uint64_t scratch;
  rt_cuda_launch launch = {.scratch = &scratch};
  memset(workspace, 1, sizeof workspace);
  one->call.workspace = workspace;
  one->call.workspace_bytes = sizeof workspace - 1;
  ck_assert_int_eq(rt_cuda_synthetic.run(&one->call, &launch), cudaSuccess);
  ck_assert(workspace[0] == (char)0xa5 && workspace[sizeof workspace - 2] == (char)0xa5 &&
            workspace[sizeof workspace - 1] == 1);
  size_t at = 0;
  for (int32_t i = 0; i < one->call.n_out; i++) {
    ck_assert_uint_le(at + (size_t)one->call.out[i].bytes, size);
    memcpy(results + at, one->call.out[i].data, (size_t)one->call.out[i].bytes);
    at += (size_t)one->call.out[i].bytes;
  }
}

static size_t differing(const char *a, const char *b, size_t size) {
  size_t count = 0;
  for (size_t i = 0; i < size; i++) count += a[i] != b[i];
  return count;
}

START_TEST(stand_ins) {
  enum { SIZE = 4 * (2 * 5 * 3 + 5 + 5) };
  char first[SIZE], again[SIZE], changed[SIZE], recomputed[SIZE], running[20];
  one_call one;
  const op_case norm = {"NCHW",
                        "x: input f32[N,5,3]\ng: param f32[5]\nb: param f32[5]\ny: f32[N,5,3]\nm: f32[5]\ns: f32[5]\n"
                        "rm: state f32[5]\nrv: state f32[5]",
                        "type: batchnorm, in: [x, g, b], out: [y, m, s], effects: [rm, rv]",
                        "TFFTFFFF",
                        "u",
                        0,
                        0};
  open_case(&norm, &(sizes){{0}}, 2, &one);
  run_stand_in(&one, first, SIZE);
  memcpy(running, one.call.effects[0].data, sizeof running);
  run_stand_in(&one, again, SIZE);
  ck_assert_mem_eq(first, again, SIZE);
  ck_assert_uint_gt(differing(running, one.call.effects[0].data, sizeof running), sizeof running / 2);
  const planc_instance *of = &one.trace->instances[one.call.instance];
  void *kept[ONE_CALL_MAX_ACCESSES];
  memcpy(kept, one.call.memory, (size_t)of->n_accesses * sizeof *kept);
  for (int32_t k = 0; k < of->n_accesses; k++)
    if (one.trace->accesses[of->first_access + k].effect) one.call.memory[k] = NULL;
  run_stand_in(&one, recomputed, SIZE);
  ck_assert_mem_eq(first, recomputed, SIZE);
  memcpy(one.call.memory, kept, (size_t)of->n_accesses * sizeof *kept);
  ((char *)one.call.in[0].data)[one.call.in[0].bytes - 1] ^= 1;
  run_stand_in(&one, changed, SIZE);
  ck_assert_uint_gt(differing(first, changed, SIZE), SIZE * 9 / 10);
  ck_assert_int_eq(rt_cuda_synthetic.run(&one.call, &(rt_cuda_launch){0}), cudaErrorInvalidValue);
  one_call_close(&one);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("cuda device");
  TCase *c = tcase_create("cuda device");
  tcase_set_timeout(c, 300);
  tcase_add_loop_test(c, casts, 0, 8);
  tcase_add_test(c, rounding);
  tcase_add_test(c, dtypes_that_are_not_taken);
  tcase_add_loop_test(c, digests, 0, 8);
  tcase_add_test(c, steps);
  tcase_add_test(c, bias_of_a_convolution);
  tcase_add_test(c, stand_ins);
  suite_add_tcase(suite, c);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? 1 : 0;
}
