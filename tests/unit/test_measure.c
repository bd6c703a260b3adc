/* Measuring for profiles: statistics, the line through a link's times, and that everything there is gets measured. No
 * time is judged. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planc/cost.h"
#include "runtime/profile_file.h"
#include "tests/support/graphtext.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

/* --- Statistics ------------------------------------------------------------------------------------------------- */

/* The median by counting: as many below as above. */
static bool is_median(const int64_t *values, int32_t n, double median) {
  int32_t below = 0, above = 0;
  for (int32_t i = 0; i < n; i++) {
    below += (double)values[i] < median;
    above += (double)values[i] > median;
  }
  return below <= n / 2 && above <= n / 2;
}

START_TEST(medians) {
  uint64_t state = (uint64_t)_i + 1;
  int64_t values[40], sorted[40], distances[40];
  int32_t n = (int32_t)rand_below(&state, 40) + 1;
  for (int32_t i = 0; i < n; i++) values[i] = sorted[i] = rand_below(&state, 50);
  planrt_statistic got = planrt_statistic_of(sorted, n);
  ck_assert(is_median(values, n, (double)got.median_ns) || is_median(values, n, (double)got.median_ns + 0.5));
  for (int32_t i = 0; i < n; i++) distances[i] = llabs(values[i] - got.median_ns);
  ck_assert(is_median(distances, n, (double)got.spread_ns) || is_median(distances, n, (double)got.spread_ns + 0.5));
}
END_TEST

/* --- Links ------------------------------------------------------------------------------------------------------ */

START_TEST(a_line_is_found_again) {
  static const planc_link links[] = {{1000000000, 20000}, {12000000000, 5000}, {200000000, 0}, {90000000, 3000000}};
  int64_t times[PLANRT_LINK_SIZES], misfit;
  for (int32_t s = 0; s < PLANRT_LINK_SIZES; s++) times[s] = planc_link_ns(&links[_i], planrt_link_sizes[s]);
  planc_link got = planrt_fit_link(times, &misfit);
  ck_assert_int_le(misfit, 1000);
  ck_assert_int_le(llabs(got.bytes_per_second - links[_i].bytes_per_second), links[_i].bytes_per_second / 1000);
  ck_assert_int_le(llabs(got.latency_ns - links[_i].latency_ns), 10 + links[_i].latency_ns / 1000);
}
END_TEST

/* Whatever the times, a link can be planned with. */
START_TEST(any_times_make_a_link) {
  uint64_t state = (uint64_t)_i;
  int64_t times[PLANRT_LINK_SIZES], misfit;
  for (int32_t s = 0; s < PLANRT_LINK_SIZES; s++) times[s] = rand_below(&state, INT64_C(1) << (1 + _i % 40));
  planc_link got = planrt_fit_link(times, &misfit);
  ck_assert_int_ge(got.bytes_per_second, 1);
  ck_assert_int_ge(got.latency_ns, 0);
  ck_assert_int_ge(misfit, 0);
}
END_TEST

START_TEST(links_are_measured) {
  planrt_link_times times = {0};
  ok(planrt_measure_links(&planrt_host_backend, INT64_C(8) << 30, &times));
  for (int d = 0; d < 2; d++) {
    for (int32_t s = 0; s < PLANRT_LINK_SIZES; s++) ck_assert_int_gt(times.alone_ns[d][s], 0);
    /* 64 MiB at 8 GiB/s take 1/128 s: a pace is never exceeded. */
    ck_assert_int_ge(times.alone_ns[d][PLANRT_LINK_SIZES - 1], 7812500);
    ck_assert_int_ge(times.both_ns[d], 7812500);
    ck_assert_int_ge(times.under_load_ns[d], 7812500);
  }
  ck_assert_int_gt(times.memory_bytes_per_s, 0);
}
END_TEST

/* --- Ops -------------------------------------------------------------------------------------------------------- */

static const char net[] =
    "planc-graph: 1\nname: net\nloss: loss\ntensors:\n  x: input f32[N,3,8,8]\n  labels: input i64[N]\n"
    "  w: param f32[16,3,3,3]\n  c: f32[N,16,8,8]\n  r: f32[N,16,8,8] of c\n  p: f32[N,16,4,4]\n"
    "  flat: f32[N,256] of p\n  v: param f32[5,256]\n  z: f32[N,5]\n  loss: f32[]\n  probs: f32[N,5]\nops:\n"
    "  - {op: c, type: conv2d, in: [x, w], out: [c], attrs: {pad: [1, 1]}}\n"
    "  - {op: r, type: relu, in: [c], out: [r]}\n"
    "  - {op: p, type: maxpool2d, in: [r], out: [p], attrs: {kernel: [2, 2], stride: [2, 2]}}\n"
    "  - {op: z, type: linear, in: [flat, v], out: [z]}\n"
    "  - {op: l, type: softmax_xent, in: [z, labels], out: [loss, probs]}\n";

static planc_graph *net_graph(void) {
  planc_graph *forward = graph_of(net), *graph;
  ok(planc_graph_train(forward, PLANC_SGD, &graph));
  planc_graph_free(forward);
  return graph;
}

/* What the host has for every op, with whatever times. */
static void list(const planc_graph *graph, int64_t batch, planrt_op_times *out) {
  planrt_device_options nothing = {0};
  planrt_device *device;
  planc_profile *described;
  ok(planc_profile_read("profiles/h100.json", &described));
  ok(planrt_host_backend.open(&nothing, &device));
  planrt_list_options how = {.backend = &planrt_host_backend, .device = device, .graph = graph, .described = described};
  ok(planrt_list_ops(&how, batch, out));
  planrt_host_backend.close(device);
  planc_profile_free(described);
}

START_TEST(every_op_is_measured_with_every_algorithm) {
  planc_graph *graph = net_graph();
  planrt_op_times times = {0}, listed = {0};
  planrt_op_options options = {.backend = &planrt_host_backend, .graph = graph, .batch = 4, .repetitions = 2};
  ok(planrt_measure_ops(&options, &times));
  list(graph, 4, &listed);
  ck_assert_int_eq(times.len, listed.len);
  bool *seen = calloc((size_t)graph->n_ops, sizeof *seen);
  for (int64_t i = 0; i < times.len; i++) {
    const planrt_op_time *time = &times.data[i];
    if (i > 0) ck_assert_int_ge(time->op, time[-1].op);
    seen[time->op] = true;
    int32_t found = 0;
    for (int64_t k = 0; k < listed.len; k++)
      if (listed.data[k].op == time->op && strcmp(listed.data[k].variant.algorithm, time->variant.algorithm) == 0) {
        found++;
        ck_assert_int_eq(listed.data[k].variant.workspace_bytes, time->variant.workspace_bytes);
      }
    ck_assert_int_eq(found, 1);
  }
  for (int32_t o = 0; o < graph->n_ops; o++) ck_assert_msg(seen[o], "%s", graph->ops[o].name);
  free(seen);
  VEC_FREE(&times);
  VEC_FREE(&listed);
  planc_graph_free(graph);
}
END_TEST

START_TEST(stopping_and_too_little_memory) {
  planc_graph *graph = net_graph();
  planrt_op_times times = {0};
  volatile sig_atomic_t stop = 1;
  planrt_op_options options = {
      .backend = &planrt_host_backend, .graph = graph, .batch = 4, .repetitions = 2, .stop = &stop};
  ok(planrt_measure_ops(&options, &times));
  ck_assert_int_eq(times.len, 0);
  options.stop = NULL;
  options.batch = INT64_C(1) << 45;
  planc_status status = planrt_measure_ops(&options, &times);
  ck_assert_msg(planc_status_code(status) == PLANC_DEVICE || planc_status_code(status) == PLANC_OUT_OF_MEMORY, "%s",
                planc_status_message(status));
  ck_assert_ptr_nonnull(strstr(planc_status_message(status), "batch 35184372088832"));
  planc_status_free(status);
  planc_graph_free(graph);
}
END_TEST

/* --- The profile ------------------------------------------------------------------------------------------------ */

static void add_ops(cJSON *pieces, const planc_graph *graph, int64_t load_ppm, int64_t batch) {
  planrt_op_times times = {0};
  list(graph, batch, &times);
  for (int64_t i = 0; i < times.len; i++) {
    times.data[i].time = (planrt_statistic){.median_ns = 1000 * batch + i, .spread_ns = 7};
    times.data[i].predicted = false;
  }
  cJSON_AddItemToArray(pieces, planrt_piece_of_ops(graph, load_ppm, batch, &times, NULL));
  VEC_FREE(&times);
}

static void add_links(cJSON *pieces) {
  planrt_link_times times = {
      .launch_ns = 90, .memory_bytes_per_s = 1000000000, .both_ns = {99, 98}, .under_load_ns = {97, 96}};
  for (int d = 0; d < 2; d++)
    for (int32_t s = 0; s < PLANRT_LINK_SIZES; s++) times.alone_ns[d][s] = 1000 + planrt_link_sizes[s] / 10;
  cJSON_AddItemToArray(pieces, planrt_piece_of_links(&times, 30000));
}

static planc_profile *parse(const cJSON *tree) {
  char *text = cJSON_Print(tree);
  planc_profile *profile;
  ok(planc_profile_parse(text, strlen(text), "composed", &profile));
  cJSON_free(text);
  return profile;
}

/* What planc reads at measured batches is what was measured, whatever order the pieces came in. */
START_TEST(profiles_hold_what_was_measured) {
  planc_graph *graph = net_graph();
  cJSON *pieces = cJSON_CreateArray(), *tree;
  if (_i) add_links(pieces);
  add_ops(pieces, graph, 0, _i ? 12 : 4);
  add_ops(pieces, graph, 500000, 4);
  add_ops(pieces, graph, 0, _i ? 4 : 12);
  if (!_i) add_links(pieces);
  planrt_profile_head head = {.name = "host", .machine = "a machine", .memory_bytes = INT64_C(1) << 34};
  ok(planrt_profile_compose(&head, graph, pieces, &tree));
  ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(tree, "loads")), 1);
  planc_profile *profile = parse(tree);
  ck_assert_int_eq(planc_profile_device(profile)->launch_ns, 90);
  ck_assert_int_eq(planc_profile_device(profile)->slowdown_ppm, 30000);
  for (int64_t batch = 4; batch <= 12; batch += 8) {
    planc_costs *costs;
    planrt_op_times listed = {0};
    ok(planc_costs_make(profile, graph, 1, &batch, &costs));
    list(graph, batch, &listed);
    for (int64_t i = 0; i < listed.len; i++) {
      int32_t count, found = 0;
      const planc_variant *variants = planc_costs_variants(costs, listed.data[i].op, 0, &count);
      for (int32_t v = 0; v < count; v++) {
        if (strcmp(variants[v].algorithm, listed.data[i].variant.algorithm) != 0) continue;
        found++;
        ck_assert_int_eq(variants[v].time_ns, 1000 * batch + i);
        ck_assert_int_eq(variants[v].workspace_bytes, listed.data[i].variant.workspace_bytes);
      }
      ck_assert_int_eq(found, 1);
    }
    VEC_FREE(&listed);
    planc_costs_free(costs);
  }
  planc_profile_free(profile);
  cJSON_Delete(tree);
  cJSON_Delete(pieces);
  planc_graph_free(graph);
}
END_TEST

/* With one point the line gives many workspaces wrongly; afterwards every batch has the backend's. */
START_TEST(workspaces_are_exact_at_every_batch) {
  enum { MOST = 24 };
  planc_graph *graph = net_graph();
  cJSON *pieces = cJSON_CreateArray(), *tree;
  add_ops(pieces, graph, 0, MOST);
  add_links(pieces);
  planrt_profile_head head = {.name = "host", .machine = "a machine", .memory_bytes = INT64_C(1) << 34};
  ok(planrt_profile_compose(&head, graph, pieces, &tree));
  planrt_batches batches;
  planrt_device *device;
  planrt_device_options nothing = {0};
  ok(planrt_round_sizes(1, (int64_t[]){MOST}, &batches));
  ok(planrt_host_backend.open(&nothing, &device));
  planrt_list_options how = {.backend = &planrt_host_backend, .device = device, .graph = graph};
  ok(planrt_profile_add_workspaces(tree, &how, &batches));
  planrt_host_backend.close(device);
  free(batches.sizes);
  planc_profile *profile = parse(tree);
  for (int64_t batch = 1; batch <= MOST; batch++) {
    planc_costs *costs;
    planrt_op_times listed = {0};
    ok(planc_costs_make(profile, graph, 1, &batch, &costs));
    list(graph, batch, &listed);
    int32_t compared = 0;
    for (int32_t o = 0; o < graph->n_ops; o++) {
      int32_t count;
      const planc_variant *variants = planc_costs_variants(costs, o, 0, &count);
      for (int32_t v = 0; v < count; v++)
        for (int64_t i = 0; i < listed.len; i++) {
          if (listed.data[i].op != o || strcmp(listed.data[i].variant.algorithm, variants[v].algorithm) != 0) continue;
          ck_assert_int_eq(variants[v].workspace_bytes, listed.data[i].variant.workspace_bytes);
          compared++;
        }
    }
    ck_assert_int_ge(compared, graph->n_ops);
    VEC_FREE(&listed);
    planc_costs_free(costs);
  }
  planc_profile_free(profile);
  cJSON_Delete(tree);
  cJSON_Delete(pieces);
  planc_graph_free(graph);
}
END_TEST

/* Every way to cut a batch into equal rounds, evenly or with a shorter last one, has its sizes among them, and nothing
 * is there that no cut has. */
START_TEST(rounds_have_these_sizes) {
  for (int64_t most = 1; most < 300; most++) {
    planrt_batches batches;
    bool wanted[301] = {0};
    ok(planrt_round_sizes(2, (int64_t[]){most, 1 + most / 2}, &batches));
    for (int64_t k = 1; k <= most; k++) wanted[(most + k - 1) / k] = wanted[most / k] = true;
    for (int64_t k = 1, other = 1 + most / 2; k <= other; k++) wanted[(other + k - 1) / k] = wanted[other / k] = true;
    for (int32_t i = 0; i < batches.n; i++) {
      if (i > 0) ck_assert_int_gt(batches.sizes[i], batches.sizes[i - 1]);
      ck_assert_int_ge(batches.sizes[i], 1);
      ck_assert_int_le(batches.sizes[i], most);
      wanted[batches.sizes[i]] = false;
    }
    for (int64_t size = 1; size <= most; size++) ck_assert_msg(!wanted[size], "%d of %d", (int)size, (int)most);
    ck_assert_int_le(batches.n, 4 * 18 + 4 * 13);
    free(batches.sizes);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("measure");
  TCase *c = tcase_create("measure");
  tcase_set_timeout(c, 120);
  tcase_add_loop_test(c, medians, 0, 50);
  tcase_add_loop_test(c, a_line_is_found_again, 0, 4);
  tcase_add_loop_test(c, any_times_make_a_link, 0, 80);
  tcase_add_test(c, links_are_measured);
  tcase_add_test(c, every_op_is_measured_with_every_algorithm);
  tcase_add_test(c, stopping_and_too_little_memory);
  tcase_add_loop_test(c, profiles_hold_what_was_measured, 0, 2);
  tcase_add_test(c, workspaces_are_exact_at_every_batch);
  tcase_add_test(c, rounds_have_these_sizes);
  suite_add_tcase(suite, c);
  return run_suite(suite);
}
