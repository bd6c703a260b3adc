/* Busy shares by occupancy: by hand on the toy device, and that no time follows from it. */
#include <check.h>
#include <string.h>

#include "cost/profile.h"
#include "tests/support/randgraph.h"
#include "tests/support/toy.h"
#include "tests/support/unit.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static const char spread_graph[] =
    "planc-graph: 1\n"
    "name: spread\n"
    "layout: NCHW\n"
    "tensors:\n"
    "  x: input f32[N,8,4,4]\n"
    "  y: f32[N,8,4,4]\n"
    "  g: param f32[8]\n"
    "  b: param f32[8]\n"
    "  rm: state f32[8]\n"
    "  rv: state f32[8]\n"
    "  n: f32[N,8,4,4]\n"
    "  m: f32[8]\n"
    "  v: f32[8]\n"
    "  r: input f32[N,5,6]\n"
    "  s: f32[N,5,6]\n"
    "  lg: param f32[6]\n"
    "  lb: param f32[6]\n"
    "  l: f32[N,5,6]\n"
    "  lm: f32[N,5]\n"
    "  lv: f32[N,5]\n"
    "  p: f32[N,8,2,2]\n"
    "  w: param f32[8,1,3,3]\n"
    "  d: f32[N,8,4,4]\n"
    "  dw: grad f32[8,1,3,3]\n"
    "  dx: f32[N,8,4,4]\n"
    "  db: grad f32[8]\n"
    "ops:\n"
    "  - {op: relu, type: relu, in: [x], out: [y]}\n"
    "  - {op: bn, type: batchnorm, in: [x, g, b], out: [n, m, v], effects: [rm, rv]}\n"
    "  - {op: softmax, type: softmax, in: [r], out: [s]}\n"
    "  - {op: ln, type: layernorm, in: [r, lg, lb], out: [l, lm, lv]}\n"
    "  - {op: pool, type: maxpool2d, in: [x], out: [p], attrs: {kernel: [2, 2], stride: [2, 2]}}\n"
    "  - {op: depth, type: conv2d, in: [x, w], out: [d], attrs: {pad: [1, 1], groups: 8}}\n"
    "  - {op: depth.dw, type: conv2d_wgrad, phase: backward, in: [x, d], out: [dw], attrs: {pad: [1, 1], groups: 8}}\n"
    "  - {op: depth.dx, type: conv2d_dgrad, phase: backward, in: [w, d], out: [dx], attrs: {pad: [1, 1], groups: 8}}\n"
    "  - {op: depth.db, type: conv2d_bgrad, phase: backward, in: [d], out: [db]}\n";

/* Rounded up twice, the second time as a part of a time of more than a microsecond. */
static void assert_share(const planc_variant *of, int64_t items, int64_t all) {
  int64_t least = items >= all ? 1000000 : items * 1000000 / all;
  ck_assert_int_ge(of->busy_ppm, least);
  ck_assert_int_le(of->busy_ppm, least + 1000);
}

static const planc_variant *depthwise_or_only(const planc_costs *costs, int32_t op) {
  int32_t count;
  const planc_variant *variants = planc_costs_variants(costs, op, 0, &count);
  const planc_variant *depthwise = find_variant(variants, count, "depthwise");
  return depthwise ? depthwise : &variants[0];
}

#define OCCUPANCY                                                                                          \
  "\"occupancy\": {\"threads\": 64, \"thread_elements\": 4, \"norm_threads\": 16, \"result_threads\": 2, " \
  "\"outputs\": 512},"

/* Of ten processors, each with 64 threads. */
START_TEST(shares_by_hand) {
  planc_profile *profile = toy_with("", OCCUPANCY);
  planc_graph *graph = graph_of(spread_graph);
  planc_costs *costs = costs_of(profile, graph, 1, (int64_t[]){3});
  const struct {
    int64_t items, of_a_processor;
  } expected[] = {{3 * 128, 256}, {8, 4},  {3 * 5, 32},   {3 * 5, 4}, {3 * 32, 64},
                  {3 * 128, 64},  {72, 4}, {3 * 128, 64}, {8, 32}};
  for (int32_t op = 0; op < COUNT(expected); op++)
    assert_share(depthwise_or_only(costs, op), expected[op].items, 10 * expected[op].of_a_processor);
  planc_costs_free(costs);
  planc_graph_free(graph);

  /* 3 rows by 64 columns are 4 tiles of 16 x 16, 32 deep: four slices of 8, 4,096 results of 10 x 512; of 20 rows there
   * are twice as many. */
  graph = graph_of(toy_graph);
  costs = costs_of(profile, graph, 2, (int64_t[]){3, 20});
  int32_t count;
  assert_share(planc_costs_variants(costs, 0, 0, &count), 4 * 256 * 4, 5120);
  assert_share(planc_costs_variants(costs, 0, 1, &count), 8 * 256 * 4, 5120);
  planc_costs_free(costs);
  planc_graph_free(graph);
  planc_profile_free(profile);
}
END_TEST

/* Nothing but shares follows from it. */
START_TEST(occupancy_makes_no_time) {
  static const int64_t batches[] = {1, 7, 40};
  uint64_t seed = (uint64_t)_i;
  planc_graph *graph;
  planc_profile *plain = toy(), *told = toy_with("", OCCUPANCY);
  ok(randgraph_make(rand_next(&seed), &(randgraph_options){.max_ops = 40}, &graph));
  planc_costs *a = costs_of(plain, graph, COUNT(batches), batches), *b = costs_of(told, graph, COUNT(batches), batches);
  for (int32_t op = 0; op < graph->n_ops; op++) {
    for (int32_t k = 0; k < COUNT(batches); k++) {
      int32_t n, m;
      const planc_variant *x = planc_costs_variants(a, op, k, &n), *y = planc_costs_variants(b, op, k, &m);
      ck_assert_int_eq(n, m);
      for (int32_t v = 0; v < n; v++) {
        ck_assert_str_eq(x[v].algorithm, y[v].algorithm);
        ck_assert_int_eq(x[v].time_ns, y[v].time_ns);
        ck_assert_int_eq(x[v].workspace_bytes, y[v].workspace_bytes);
        ck_assert(y[v].busy_ppm >= 1 && y[v].busy_ppm <= 1000000);
      }
    }
  }
  planc_costs_free(a);
  planc_costs_free(b);
  planc_graph_free(graph);
  planc_profile_free(plain);
  planc_profile_free(told);
}
END_TEST

/* Of an algorithm that does the arithmetic that the op's FLOPs count. */
static bool is_direct(const planc_variant *of) {
  return strcmp(of->algorithm, "default") == 0 || strcmp(of->algorithm, "gemm") == 0 ||
         strcmp(of->algorithm, "implicit-gemm") == 0;
}

/* By these every op occupies next to nothing. */
#define SPARSE                                                                                                    \
  "\"occupancy\": {\"threads\": 1000000, \"thread_elements\": 1000, \"norm_threads\": 1, \"result_threads\": 1, " \
  "\"outputs\": 1000000000},"

/* The best efficiency of the toy device's products, of any kind. */
static double best_efficiency(const planc_profile *profile) {
  double best = 0;
  for (int32_t kind = 0; kind < COUNT(profile->multiply); kind++) {
    const pl_multiply *by = &profile->multiply[kind];
    int64_t ppm = by->flops_ppm > by->small_flops_ppm ? by->flops_ppm : by->small_flops_ppm;
    if ((double)ppm / 1e6 > best) best = (double)ppm / 1e6;
  }
  return best;
}

/* Whatever processors an op occupies: the part of the device that it keeps busy does its FLOPs no faster than kernels
 * that fill the device, and so do ops beside each other. */
START_TEST(no_share_computes_beyond_the_efficiency_alone) {
  static const char *const texts[] = {spread_graph, toy_graph};
  static const int64_t batches[] = {1, 40, 4000};
  planc_profile *told = toy_with("", SPARSE);
  planc_graph *graph = graph_of(texts[_i]);
  planc_costs *costs = costs_of(told, graph, COUNT(batches), batches);
  for (int32_t op = 0; op < graph->n_ops; op++) {
    for (int32_t k = 0; k < COUNT(batches); k++) {
      int32_t n;
      const planc_variant *of = planc_costs_variants(costs, op, k, &n);
      double flops = (double)planc_law_at(graph->ops[op].flops, batches[k]);
      double least_ns = flops / ((double)told->compute.flops_per_second * best_efficiency(told)) * 1e9;
      for (int32_t v = 0; v < n; v++)
        if (is_direct(&of[v]))
          ck_assert_msg((double)of[v].time_ns * (double)of[v].busy_ppm / 1e6 >= least_ns * 0.999, "%s by %s: %g of %g",
                        graph->ops[op].name, of[v].algorithm, (double)of[v].time_ns * (double)of[v].busy_ppm / 1e6,
                        least_ns);
    }
  }
  planc_costs_free(costs);
  planc_graph_free(graph);
  planc_profile_free(told);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("occupancy");
  TCase *cases = tcase_create("all");
  tcase_add_test(cases, shares_by_hand);
  tcase_add_loop_test(cases, occupancy_makes_no_time, 0, 40);
  tcase_add_loop_test(cases, no_share_computes_beyond_the_efficiency_alone, 0, 2);
  suite_add_tcase(suite, cases);
  return run_suite(suite);
}
