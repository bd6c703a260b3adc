/* Measuring what may not be survived: what is tried is told before, what ended a process is left out, and a device that
 * is lost is no refusal. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "runtime/backend.h"
#include "tests/support/passes.h"
#include "tests/support/unit.h"

/* The trial that was told last, and what has been prepared and launched under which. */
static struct {
  char op[64], algorithm[128]; /* empty: no algorithm was told */
  int32_t n_named, n_only;
  const planc_op *launched; /* since the last time the device was waited for: the last one */
  bool apart;               /* no op ever ran beside another */
  const char *fails;        /* an algorithm that cannot be prepared */
  bool lost;                /* the device, with it */
  int32_t n_refused;
} told;

static planc_status take_trial(void *user, const rt_trial *trial) {
  (void)user;
  snprintf(told.op, sizeof told.op, "%s", trial->op ? trial->op : "");
  snprintf(told.algorithm, sizeof told.algorithm, "%s", trial->op ? trial->algorithm : "");
  told.n_named += trial->op != NULL;
  told.n_only += trial->only;
  return NULL;
}

static planc_status prepare_told(rt_device *device, rt_call *call) {
  if (*told.op) {
    ck_assert_str_eq(told.op, call->op->name);
    ck_assert_str_eq(told.algorithm, call->algorithm);
  }
  if (told.fails && strcmp(call->algorithm, told.fails) == 0) return planc_error(PLANC_DEVICE, "an illegal address");
  return rt_host_backend.prepare(device, call);
}

static planc_status launch_told(rt_device *device, int32_t stream, const rt_call *call, const rt_launch *launch,
                                rt_span *span) {
  bool alone = !told.launched || told.launched == call->op;
  if (*told.op) {
    ck_assert_str_eq(told.op, call->op->name);
    ck_assert(alone);
  }
  told.apart = told.apart && alone;
  told.launched = call->op;
  return rt_host_backend.launch(device, stream, call, launch, span);
}

static planc_status synchronize_told(rt_device *device) {
  told.launched = NULL;
  return rt_host_backend.synchronize(device);
}

static planc_status memory_told(int64_t *out_total, int64_t *out_free) {
  *out_total = *out_free = 0;
  return told.lost ? planc_error(PLANC_DEVICE, "an illegal address") : NULL;
}

static void count_refused(void *user, const char *op, const char *algorithm, planc_status why) {
  (void)user, (void)op, (void)algorithm, (void)why;
  told.n_refused++;
}

static planrt_backend telling(void) {
  planrt_backend backend = rt_host_backend;
  backend.prepare = prepare_told;
  backend.launch = launch_told;
  backend.synchronize = synchronize_told;
  backend.memory = memory_told;
  memset(&told, 0, sizeof told);
  told.apart = true;
  return backend;
}

/* Every algorithm is told before it is prepared and before it runs alone; with care nothing runs but alone. */
START_TEST(what_is_tried_is_told) {
  planc_graph *graph = passes_graph();
  planrt_backend backend = telling();
  passes all = {0};
  rt_op_options options = passes_options(&backend, graph, &all);
  options.trying = take_trial;
  options.careful = _i != 0;
  options.most = _i != 0 ? 1 : 0;
  ok(rt_measure_ops(&options));
  ck_assert_int_ge(told.n_named, 2 * all.times.len);
  ck_assert_int_gt(told.n_only, 0);
  ck_assert_int_eq(told.apart, options.careful);
  VEC_FREE(&all.times);
  planc_graph_free(graph);
}
END_TEST

static bool leave_out_conv(void *user, const char *op, const char *algorithm) {
  (void)user;
  return strcmp(op, "c") == 0 && strcmp(algorithm, "dnnl-direct") == 0;
}
static bool leave_out_all(void *user, const char *op, const char *algorithm) {
  (void)user, (void)op, (void)algorithm;
  return true;
}

START_TEST(what_ended_a_process_is_left_out) {
  planc_graph *graph = passes_graph();
  passes whole = {0}, some = {0}, none = {0};
  rt_op_options options = passes_options(&rt_host_backend, graph, &whole);
  ok(rt_measure_ops(&options));
  options.user = &some;
  options.left_out = leave_out_conv;
  ok(rt_measure_ops(&options));
  ck_assert_int_eq(some.times.len, whole.times.len - 1);
  for (int64_t i = 0; i < some.times.len; i++)
    ck_assert(!leave_out_conv(NULL, graph->ops[some.times.data[i].op].name, some.times.data[i].variant.algorithm));
  options.user = &none;
  options.left_out = leave_out_all; /* no op is left with none */
  ok(rt_measure_ops(&options));
  ck_assert_int_eq(none.times.len, whole.times.len);
  VEC_FREE(&whole.times);
  VEC_FREE(&some.times);
  VEC_FREE(&none.times);
  planc_graph_free(graph);
}
END_TEST

/* An algorithm that cannot be run is refused; one that loses the device ends it all, and the error names it. */
START_TEST(a_lost_device_is_no_refusal) {
  planc_graph *graph = passes_graph();
  planrt_backend backend = telling();
  passes all = {0};
  rt_op_options options = passes_options(&backend, graph, &all);
  options.refused = count_refused;
  told.fails = "dnnl-direct";
  told.lost = _i != 0;
  planc_status status = rt_measure_ops(&options);
  if (told.lost) {
    ck_assert_int_eq(planc_status_code(status), PLANC_DEVICE);
    ck_assert_int_eq(told.n_refused, 0);
    ck_assert_ptr_nonnull(strstr(planc_status_message(status), ", algorithm dnnl-direct: an illegal address"));
    planc_status_free(status);
  } else {
    ok(status);
    ck_assert_int_gt(told.n_refused, 0);
  }
  VEC_FREE(&all.times);
  planc_graph_free(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("trials");
  TCase *c = tcase_create("trials");
  tcase_set_timeout(c, 120);
  tcase_add_loop_test(c, what_is_tried_is_told, 0, 2);
  tcase_add_test(c, what_ended_a_process_is_left_out);
  tcase_add_loop_test(c, a_lost_device_is_no_refusal, 0, 2);
  suite_add_tcase(suite, c);
  return run_suite(suite);
}
