/* Measuring for profiles: statistics, the line through a link's times, and that everything there is gets measured. No
 * time is judged. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/passes.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

/* --- Statistics --------------------------------------------------------------------------------------------------- */

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
  rt_statistic got = rt_statistic_of(sorted, n);
  ck_assert(is_median(values, n, (double)got.median_ns) || is_median(values, n, (double)got.median_ns + 0.5));
  for (int32_t i = 0; i < n; i++) distances[i] = llabs(values[i] - got.median_ns);
  ck_assert(is_median(distances, n, (double)got.spread_ns) || is_median(distances, n, (double)got.spread_ns + 0.5));
}
END_TEST

/* --- Links -------------------------------------------------------------------------------------------------------- */

START_TEST(a_line_is_found_again) {
  static const planc_link links[] = {{1000000000, 20000}, {12000000000, 5000}, {200000000, 0}, {90000000, 3000000}};
  int64_t times[RT_LINK_SIZES], misfit;
  for (int32_t s = 0; s < RT_LINK_SIZES; s++) times[s] = planc_link_ns(&links[_i % 4], rt_link_sizes[s]);
  planc_link got = rt_fit_link(_i < 4 ? RT_LINK_SIZES : 5, rt_link_sizes, times, &misfit);
  ck_assert_int_le(misfit, 1000);
  ck_assert_int_le(llabs(got.bytes_per_second - links[_i % 4].bytes_per_second), links[_i % 4].bytes_per_second / 1000);
  ck_assert_int_le(llabs(got.latency_ns - links[_i % 4].latency_ns), 10 + links[_i % 4].latency_ns / 1000);
}
END_TEST

/* Whatever the times, a link can be planned with. */
START_TEST(any_times_make_a_link) {
  uint64_t state = (uint64_t)_i;
  int64_t times[RT_LINK_SIZES], misfit;
  for (int32_t s = 0; s < RT_LINK_SIZES; s++) times[s] = rand_below(&state, INT64_C(1) << (1 + _i % 40));
  planc_link got = rt_fit_link(2 + _i % (RT_LINK_SIZES - 1), rt_link_sizes, times, &misfit);
  ck_assert_int_ge(got.bytes_per_second, 1);
  ck_assert_int_ge(got.latency_ns, 0);
  ck_assert_int_ge(misfit, 0);
}
END_TEST

START_TEST(links_are_measured) {
  rt_link_times times = {0};
  ok(rt_measure_links(&rt_host_backend, INT64_C(8) << 30, NULL, &times));
  ck_assert_int_eq(rt_link_sizes[times.n_sizes - 1], 64 << 20);
  for (int d = 0; d < 2; d++) {
    for (int32_t s = 0; s < times.n_sizes; s++) ck_assert_int_gt(times.alone_ns[d][s], 0);
    /* 64 MiB at 8 GiB/s take 1/128 s: a pace is never exceeded. */
    ck_assert_int_ge(times.alone_ns[d][times.n_sizes - 1], 7812500);
    ck_assert_int_ge(times.both_ns[d], 7812500);
    ck_assert_int_ge(times.under_load_ns[d], 7812500);
  }
  ck_assert_int_gt(times.memory_bytes_per_s, 0);
}
END_TEST

static rt_device_options asked;

static planc_status refuse_to_open(const rt_device_options *options, rt_device **out) {
  *out = NULL;
  asked = *options;
  return planc_error(PLANC_DEVICE, "not now");
}

/* Copies within the device have two blocks there; of the host's memory each direction that copies at once has one. */
/* At this rate the smallest copy would take four seconds, and all of them days. */
START_TEST(links_are_left_when_it_is_asked_for) {
  volatile sig_atomic_t stop = 1;
  rt_link_times times = {0};
  ok(rt_measure_links(&rt_host_backend, 1000, &stop, &times));
  ck_assert_int_eq(times.alone_ns[RT_H2D][0], 0);
}
END_TEST

START_TEST(memory_that_copies_need) {
  planrt_backend backend = rt_host_backend;
  rt_link_times times;
  rt_link_rates rates;
  backend.open = refuse_to_open;
  assert_fails(rt_measure_links(&backend, 0, NULL, &times), PLANC_DEVICE, "links: not now");
  ck_assert_int_eq(asked.arena_bytes, 128 << 20);
  ck_assert_int_eq(asked.host_arena_bytes, 64 << 20);
  assert_fails(rt_measure_rates(&backend, 0, 1, &rates), PLANC_DEVICE, "links: not now");
  ck_assert_int_eq(asked.arena_bytes, 128 << 20);
  ck_assert_int_eq(asked.host_arena_bytes, 128 << 20);
}
END_TEST

static planc_status info_of_large(rt_device_info *out) {
  *out = (rt_device_info){.memory_bytes = INT64_C(1) << 40, .cache_bytes = 10 << 20};
  return NULL;
}

/* Sizes go on until one is many times what a cache holds; little memory ends them sooner. */
START_TEST(sizes_are_beyond_caches) {
  planrt_backend large = rt_host_backend;
  large.info = info_of_large;
  rt_link_rates rates;
  int64_t largest = sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE) / 16 >= 256 << 20 ? 256 << 20 : 64 << 20;
  ok(rt_measure_rates(&large, 0, 1, &rates));
  ck_assert_int_eq(rates.memory_bytes, largest);
  ck_assert_int_eq(rates.bytes, largest);
}
END_TEST

static planc_status info_of_small(rt_device_info *out) {
  *out = (rt_device_info){.memory_bytes = 100 << 20};
  return NULL;
}

/* More than there is is not copied; whatever it is, the host's memory is the limit too. */
START_TEST(what_is_copied_has_bounds) {
  planrt_backend small = rt_host_backend, large = rt_host_backend;
  small.info = info_of_small;
  large.info = info_of_large;
  int64_t host = sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
  rt_link_rates rates;
  ok(rt_measure_rates(&small, 0, 100 << 20, &rates));
  assert_fails(rt_measure_rates(&small, 0, (100 << 20) + 1, &rates), PLANC_USAGE, "at most 100.00 MiB");
  assert_fails(rt_measure_rates(&small, 0, INT64_MAX, &rates), PLANC_USAGE, "cannot be copied");
  assert_fails(rt_measure_rates(&small, 0, 0, &rates), PLANC_USAGE, "at least 1 byte");
  if (host < INT64_C(1) << 40)
    assert_fails(rt_measure_rates(&large, 0, host + 1, &rates), PLANC_USAGE, "that both device and host have");
}
END_TEST

START_TEST(rates_are_of_all_bytes) {
  rt_link_rates rates;
  ok(rt_measure_rates(&rt_host_backend, INT64_C(8) << 30, INT64_C(130) << 20, &rates));
  ck_assert_int_eq(rates.bytes, 3 * (64 << 20));
  for (int d = 0; d < 2; d++) {
    ck_assert_int_gt(rates.alone_bytes_per_s[d], 0);
    ck_assert_int_le(rates.alone_bytes_per_s[d], (INT64_C(8) << 30) + 1);
  }
  ck_assert_int_gt(rates.both_bytes_per_s, 0);
  ck_assert_int_le(rates.both_bytes_per_s, 2 * ((INT64_C(8) << 30) + 1));
  ck_assert_int_gt(rates.memory_bytes_per_s, 0);
}
END_TEST

/* --- Ops ---------------------------------------------------------------------------------------------------------- */

START_TEST(every_op_is_measured_with_every_algorithm) {
  planc_graph *graph = passes_graph();
  rt_op_times listed = {0};
  passes all = {0};
  rt_op_options options = passes_options(&rt_host_backend, graph, &all);
  ok(rt_measure_ops(&options));
  ck_assert_int_eq(all.first, 0);
  ck_assert_int_eq(all.n, all.of);
  ck_assert_int_gt(all.n, 1);
  rt_op_times times = all.times;
  passes_list(graph, 4, &listed);
  ck_assert_int_eq(times.len, listed.len);
  bool *seen = calloc((size_t)graph->n_ops, sizeof *seen);
  for (int64_t i = 0; i < times.len; i++) {
    const rt_op_time *time = &times.data[i];
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

/* What passes had before comes again in no sitting, and all that is left comes. */
START_TEST(measuring_goes_on_at_a_pass) {
  planc_graph *graph = passes_graph();
  passes all = {0}, rest = {0};
  rt_op_options options = passes_options(&rt_host_backend, graph, &all);
  ok(rt_measure_ops(&options));
  options.user = &rest;
  options.first_pass = 1;
  ok(rt_measure_ops(&options));
  ck_assert_int_eq(rest.first, 1);
  ck_assert_int_eq(rest.n, all.n - 1);
  int64_t skipped = all.times.len - rest.times.len;
  ck_assert_int_gt(skipped, 0);
  for (int64_t i = 0; i < rest.times.len; i++) {
    ck_assert_int_eq(rest.times.data[i].op, all.times.data[skipped + i].op);
    ck_assert_str_eq(rest.times.data[i].variant.algorithm, all.times.data[skipped + i].variant.algorithm);
  }
  VEC_FREE(&all.times);
  VEC_FREE(&rest.times);
  planc_graph_free(graph);
}
END_TEST

/* The host's, counted. */
static _Atomic int64_t n_launches, n_timed, n_timed_before_rest, n_copies[3];

static planc_status count_launch(rt_device *device, int32_t stream, const rt_call *call, const rt_launch *launch,
                                 rt_span *span) {
  n_launches++;
  n_timed += span != NULL;
  return rt_host_backend.launch(device, stream, call, launch, span);
}

static planc_status count_copy(rt_device *device, int32_t stream, rt_direction direction, void *to, const void *from,
                               int64_t bytes, rt_span *span) {
  n_copies[direction]++;
  return rt_host_backend.copy(device, stream, direction, to, from, bytes, span);
}

static planc_status count_synchronize(rt_device *device) {
  if (n_timed_before_rest == 0) n_timed_before_rest = n_timed;
  return rt_host_backend.synchronize(device);
}

static planrt_backend counted(void) {
  planrt_backend backend = rt_host_backend;
  backend.launch = count_launch;
  backend.copy = count_copy;
  backend.synchronize = count_synchronize;
  n_launches = n_timed = n_timed_before_rest = 0;
  for (int d = 0; d < 3; d++) n_copies[d] = 0;
  return backend;
}

/* Iterations before those that are timed last as long as they are to, these follow without a rest, and all of them take
 * the samples and parameters that were brought once. */
START_TEST(iterations_run_back_to_back) {
  planc_graph *graph = passes_graph();
  planrt_backend backend = counted();
  passes all = {0};
  rt_op_options options = passes_options(&backend, graph, &all);
  options.repetitions = 3;
  options.most = 1;
  ok(rt_measure_ops(&options));
  ck_assert_int_eq(all.n, 1);
  int64_t launches = n_launches;
  ck_assert_int_eq(n_timed_before_rest, 3 * graph->n_ops);
  ck_assert_int_eq(n_copies[RT_H2D], 4); /* two inputs, two parameters */
  backend = counted();
  all.n = 0;
  options.warm_ns = 50000000;
  ok(rt_measure_ops(&options));
  ck_assert_int_eq(n_timed_before_rest, 3 * graph->n_ops);
  ck_assert_int_gt(n_launches, launches + 10 * graph->n_ops);
  ck_assert_int_eq(n_copies[RT_H2D], 4);
  VEC_FREE(&all.times);
  planc_graph_free(graph);
}
END_TEST

/* A backend whose own device can be described: what there is to measure is asked of such a device, and nothing of the
 * one that measures. */
static const rt_device *described;

static planc_status describe(char **out) {
  *out = strdup("a device");
  return *out ? NULL : planc_error(PLANC_OUT_OF_MEMORY, "properties");
}

static planc_status open_described(const rt_device_options *options, rt_device **out) {
  rt_device_options own = *options;
  if (own.properties) ck_assert_str_eq(own.properties, "a device");
  own.properties = NULL;
  PLANC_TRY(rt_host_backend.open(&own, out));
  if (options->properties) described = *out;
  return NULL;
}

static planc_status ask_described(rt_device *device, const rt_call *call, rt_variant *out, int32_t *count) {
  ck_assert_ptr_eq(device, described);
  return rt_host_backend.variants(device, call, out, count);
}

static void close_described(rt_device *device) {
  if (device == described) described = NULL;
  rt_host_backend.close(device);
}

START_TEST(what_there_is_is_asked_without_the_device) {
  planc_graph *graph = passes_graph();
  planrt_backend backend = rt_host_backend;
  passes all = {0};
  backend.properties = describe;
  backend.open = open_described;
  backend.close = close_described;
  backend.variants = ask_described;
  rt_op_options options = passes_options(&backend, graph, &all);
  ok(rt_measure_ops(&options));
  ck_assert_ptr_null(described);
  ck_assert_int_gt(all.times.len, 0);
  VEC_FREE(&all.times);
  planc_graph_free(graph);
}
END_TEST

/* Ops beside copies in both directions, by the algorithms that were chosen. */
START_TEST(a_run_is_measured) {
  planc_graph *graph = passes_graph();
  planrt_backend backend = counted();
  rt_op_times chosen = {0};
  rt_run_costs costs;
  rt_op_options options = {.backend = &backend, .graph = graph, .batch = 4, .repetitions = 3};
  passes_list(graph, 4, &chosen);
  ok(rt_measure_run(&options, &chosen, 0, &costs));
  ck_assert_int_gt(costs.launch_ns, 0);
  ck_assert_int_ge(costs.slowdown_ppm, 0);
  ck_assert_int_gt(n_copies[RT_H2D], 4);
  ck_assert_int_gt(n_copies[RT_D2H], 0);
  ck_assert_int_eq(n_timed, 2 * 3 * graph->n_ops);
  VEC_FREE(&chosen);
  planc_graph_free(graph);
}
END_TEST

/* --- Which are measured ------------------------------------------------------------------------------------------- */

static bool has(const rt_variant *variants, int32_t n, const char *algorithm) {
  for (int32_t v = 0; v < n; v++)
    if (strcmp(variants[v].algorithm, algorithm) == 0) return true;
  return false;
}

START_TEST(the_best_are_kept) {
  static const rt_variant all[] = {
      {.algorithm = "least", .workspace_bytes = 0, .rank = 9},
      {.algorithm = "sure, least", .workspace_bytes = 10, .rank = 8, .deterministic = true},
      {.algorithm = "beaten", .workspace_bytes = 40, .rank = 3},
      {.algorithm = "small", .workspace_bytes = 20, .rank = 2},
      {.algorithm = "sure, best", .workspace_bytes = 50, .rank = 6, .deterministic = true},
      {.algorithm = "sure", .workspace_bytes = 60, .rank = 7, .deterministic = true},
      {.algorithm = "best", .workspace_bytes = 70, .rank = 0},
      {.algorithm = "second", .workspace_bytes = 70, .rank = 1},
  };
  static const char *const in_turn[] = {"least", "sure, best", "sure, least", "best",
                                        "small", "second",     "beaten",      "sure"};
  enum { N = sizeof all / sizeof *all };
  for (int32_t most = 0; most <= N + 1; most++) {
    rt_variant variants[N];
    memcpy(variants, all, sizeof all);
    int32_t n = rt_shortlist(variants, N, most);
    ck_assert_int_eq(n, most == 0 || most > N ? N : most);
    for (int32_t v = 0; v < n; v++) ck_assert_msg(has(variants, n, in_turn[v]), "%s of %d", in_turn[v], most);
    for (int32_t v = 1, at = 0; v < n; v++) { /* as before */
      int32_t before = at;
      while (strcmp(all[at].algorithm, variants[v].algorithm) != 0) at++;
      ck_assert_int_gt(at, before - 1);
    }
  }
}
END_TEST

/* Of those with the least workspace one that gives the same bits every time. */
START_TEST(equals_that_are_deterministic_are_kept) {
  rt_variant variants[] = {{.algorithm = "unsure"}, {.algorithm = "sure", .deterministic = true, .rank = 1}};
  ck_assert_int_eq(rt_shortlist(variants, 2, 1), 1);
  ck_assert_str_eq(variants[0].algorithm, "sure");
}
END_TEST

START_TEST(stopping_and_too_little_memory) {
  planc_graph *graph = passes_graph();
  passes none = {0};
  volatile sig_atomic_t stop = 1;
  rt_op_options options = passes_options(&rt_host_backend, graph, &none);
  options.stop = &stop;
  ok(rt_measure_ops(&options));
  ck_assert_int_eq(none.n, 0);
  options.stop = NULL;
  options.batch = INT64_C(1) << 45;
  planc_status status = rt_measure_ops(&options);
  ck_assert_msg(planc_status_code(status) == PLANC_DEVICE || planc_status_code(status) == PLANC_OUT_OF_MEMORY, "%s",
                planc_status_message(status));
  ck_assert_ptr_nonnull(strstr(planc_status_message(status), "batch 35184372088832"));
  planc_status_free(status);
  planc_graph_free(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("measure");
  TCase *c = tcase_create("measure");
  tcase_set_timeout(c, 120);
  tcase_add_loop_test(c, medians, 0, 50);
  tcase_add_loop_test(c, a_line_is_found_again, 0, 8);
  tcase_add_loop_test(c, any_times_make_a_link, 0, 80);
  tcase_add_test(c, links_are_measured);
  tcase_add_test(c, links_are_left_when_it_is_asked_for);
  tcase_add_test(c, memory_that_copies_need);
  tcase_add_test(c, sizes_are_beyond_caches);
  tcase_add_test(c, rates_are_of_all_bytes);
  tcase_add_test(c, what_is_copied_has_bounds);
  tcase_add_test(c, every_op_is_measured_with_every_algorithm);
  tcase_add_test(c, measuring_goes_on_at_a_pass);
  tcase_add_test(c, iterations_run_back_to_back);
  tcase_add_test(c, what_there_is_is_asked_without_the_device);
  tcase_add_test(c, a_run_is_measured);
  tcase_add_test(c, the_best_are_kept);
  tcase_add_test(c, equals_that_are_deterministic_are_kept);
  tcase_add_test(c, stopping_and_too_little_memory);
  suite_add_tcase(suite, c);
  return run_suite(suite);
}
