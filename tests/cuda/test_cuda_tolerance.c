/* What compare_backends lets pass, and what not. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/bf16.h"
#include "runtime/host/host_kernels.h"
#include "tests/cuda/tolerance.h"
#include "tests/support/one_call.h"

enum { MOST_RESULTS = 8 };

/* A call on the host with its operands as before, and its results. */
typedef struct example {
  one_call one;
  char *want[MOST_RESULTS], *got;
  tolerance of;
} example;

static void open_example(example *e, const char *tensors, const char *op, int64_t batch) {
  rt_launch launch = one_call_launch();
  one_call_open(&e->one, "NCHW", tensors, op, batch, false);
  rt_call *call = &e->one.call;
  for (int32_t i = 0; i < call->n_in; i++) one_call_fill(&call->in[i], (uint64_t)i, -1, 1);
  rt_kernel_find(pl_optype_of(call->op))->run(call, &launch);
  for (int32_t r = 0; r < call_results(call); r++) {
    const rt_operand *of = call_result(call, r);
    e->want[r] = malloc((size_t)of->bytes);
    memcpy(e->want[r], of->data, (size_t)of->bytes);
    memset(of->data, 0, (size_t)of->bytes);
  }
  e->got = malloc((size_t)call->out[0].bytes);
  memcpy(e->got, e->want[0], (size_t)call->out[0].bytes);
  ck_assert(tolerance_of(call, 0, e->want, &e->of));
}

static void close_example(example *e) {
  for (int32_t r = 0; r < call_results(&e->one.call); r++) free(e->want[r]);
  free(e->got);
  one_call_close(&e->one);
}

/* How far off the first result is when its first element is `value`. */
static double off_by(example *e, double value, uint32_t notes) {
  tolerance of = tolerance_noted(e->of, notes);
  ((float *)(void *)e->got)[0] = (float)value;
  return tolerance_compare(&of, &e->one.call.out[0], e->want[0], e->got).allowed;
}

static float first(const example *e) {
  return ((const float *)(const void *)e->want[0])[0];
}

START_TEST(same_operations_have_the_same_bits) {
  example e;
  open_example(&e, "x: input f32[N,9]\ny: input f32[N,9]\nz: f32[N,9]", "type: add, in: [x, y], out: [z]", 3);
  ck_assert(off_by(&e, (double)first(&e), 0) == 0);
  ck_assert(isinf(off_by(&e, (double)nextafterf(first(&e), 9), 0)));
  close_example(&e);
}
END_TEST

/* The room grows with the root of the depth, and a result that cancels has its terms' room. */
START_TEST(sums_have_room_by_their_depth) {
  example shallow, deep;
  const char *op = "type: linear, in: [x, w], out: [y]";
  open_example(&shallow, "x: input f32[N,16]\nw: param f32[5,16]\ny: f32[N,5]", op, 7);
  open_example(&deep, "x: input f32[N,1024]\nw: param f32[5,1024]\ny: f32[N,5]", op, 7);
  ck_assert(fabs(deep.of.share / shallow.of.share - 8) < 1e-9);
  ck_assert(deep.of.share < 1e-4);
  memset(deep.want[0], 0, (size_t)deep.one.call.out[0].bytes);
  ck_assert(tolerance_of(&deep.one.call, 0, deep.want, &deep.of));
  ck_assert(fabs(deep.of.scale / (sqrt(1024) / 3) - 1) < 0.1); /* uniform in [-1, 1): a mean square of 1/3 each */
  double most = shallow.of.share * shallow.of.scale;
  ck_assert(off_by(&shallow, (double)first(&shallow) + 0.9 * most, 0) < 1);
  ck_assert(off_by(&shallow, (double)first(&shallow) + 1.1 * most, 0) > 1);
  ck_assert(off_by(&shallow, (double)first(&shallow) + 1.1 * most, 1U << RT_NOTE_WINOGRAD) < 1);
  ck_assert(isinf(off_by(&shallow, NAN, 0)));
  close_example(&shallow);
  close_example(&deep);
}
END_TEST

START_TEST(tf32_rounds_factors) {
  example e;
  open_example(&e, "x: input f32[N,16]\nw: param f32[5,16]\ny: f32[N,5]",
               "type: linear, in: [x, w], out: [y], attrs: {tf32: 1}", 7);
  ck_assert(off_by(&e, (double)first(&e) + 0x1p-10 * e.of.scale, 0) < 1);
  ck_assert(off_by(&e, (double)first(&e) + 0x1p-8 * e.of.scale, 0) > 1);
  close_example(&e);
}
END_TEST

/* A neighbour passes, the next but one does not. */
START_TEST(bf16_may_be_the_neighbour) {
  example e;
  open_example(&e, "x: input f32[N,16,2]\ny: f32[N,2]", "type: mean, in: [x], out: [y]", 1);
  rt_operand *out = &e.one.call.out[0];
  uint16_t want[2] = {rt_to_bf16(0.3F), rt_to_bf16(-0.2F)}, got[2] = {(uint16_t)(want[0] + 1), want[1]};
  out->dtype = PLANC_DTYPE_bf16;
  out->bytes = sizeof want;
  memcpy(e.want[0], want, sizeof want);
  ck_assert(tolerance_of(&e.one.call, 0, e.want, &e.of));
  ck_assert(tolerance_compare(&e.of, out, (const char *)want, (const char *)got).allowed <= 1);
  got[0]++;
  ck_assert(tolerance_compare(&e.of, out, (const char *)want, (const char *)got).allowed > 1);
  close_example(&e);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("cuda tolerance");
  TCase *c = tcase_create("cuda tolerance");
  tcase_add_test(c, same_operations_have_the_same_bits);
  tcase_add_test(c, sums_have_room_by_their_depth);
  tcase_add_test(c, tf32_rounds_factors);
  tcase_add_test(c, bf16_may_be_the_neighbour);
  suite_add_tcase(suite, c);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? 1 : 0;
}
