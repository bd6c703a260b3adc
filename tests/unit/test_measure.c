/* Measuring for profiles: statistics, the line through a link's times, and that everything there is gets measured. No
 * time is judged. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "planc/cost.h"
#include "runtime/profile_file.h"
#include "runtime/profile_part.h"
#include "tests/support/graphtext.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"
#include "util/json_tree.h"

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
  for (int32_t s = 0; s < PLANRT_LINK_SIZES; s++) times[s] = planc_link_ns(&links[_i % 4], planrt_link_sizes[s]);
  planc_link got = planrt_fit_link(_i < 4 ? PLANRT_LINK_SIZES : 5, times, &misfit);
  ck_assert_int_le(misfit, 1000);
  ck_assert_int_le(llabs(got.bytes_per_second - links[_i % 4].bytes_per_second), links[_i % 4].bytes_per_second / 1000);
  ck_assert_int_le(llabs(got.latency_ns - links[_i % 4].latency_ns), 10 + links[_i % 4].latency_ns / 1000);
}
END_TEST

/* Whatever the times, a link can be planned with. */
START_TEST(any_times_make_a_link) {
  uint64_t state = (uint64_t)_i;
  int64_t times[PLANRT_LINK_SIZES], misfit;
  for (int32_t s = 0; s < PLANRT_LINK_SIZES; s++) times[s] = rand_below(&state, INT64_C(1) << (1 + _i % 40));
  planc_link got = planrt_fit_link(2 + _i % (PLANRT_LINK_SIZES - 1), times, &misfit);
  ck_assert_int_ge(got.bytes_per_second, 1);
  ck_assert_int_ge(got.latency_ns, 0);
  ck_assert_int_ge(misfit, 0);
}
END_TEST

START_TEST(links_are_measured) {
  planrt_link_times times = {0};
  ok(planrt_measure_links(&planrt_host_backend, INT64_C(8) << 30, &times));
  ck_assert_int_eq(planrt_link_sizes[times.n_sizes - 1], 64 << 20);
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

static planrt_device_options asked;

static planc_status refuse_to_open(const planrt_device_options *options, planrt_device **out) {
  *out = NULL;
  asked = *options;
  return planc_error(PLANC_DEVICE, "not now");
}

/* Copies within the device have two blocks there; of the host's memory each direction that copies at once has one. */
START_TEST(memory_that_copies_need) {
  planrt_backend backend = planrt_host_backend;
  planrt_link_times times;
  planrt_link_rates rates;
  backend.open = refuse_to_open;
  assert_fails(planrt_measure_links(&backend, 0, &times), PLANC_DEVICE, "links: not now");
  ck_assert_int_eq(asked.arena_bytes, 128 << 20);
  ck_assert_int_eq(asked.host_arena_bytes, 64 << 20);
  assert_fails(planrt_measure_rates(&backend, 0, 1, &rates), PLANC_DEVICE, "links: not now");
  ck_assert_int_eq(asked.arena_bytes, 128 << 20);
  ck_assert_int_eq(asked.host_arena_bytes, 128 << 20);
}
END_TEST

static planc_status info_of_large(planrt_device_info *out) {
  *out = (planrt_device_info){.memory_bytes = INT64_C(1) << 40, .cache_bytes = 10 << 20};
  return NULL;
}

/* Sizes go on until one is many times what a cache holds; little memory ends them sooner. */
START_TEST(sizes_are_beyond_caches) {
  planrt_backend large = planrt_host_backend;
  large.info = info_of_large;
  planrt_link_rates rates;
  int64_t largest = sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE) / 16 >= 256 << 20 ? 256 << 20 : 64 << 20;
  ok(planrt_measure_rates(&large, 0, 1, &rates));
  ck_assert_int_eq(rates.memory_bytes, largest);
  ck_assert_int_eq(rates.bytes, largest);
}
END_TEST

static planc_status info_of_small(planrt_device_info *out) {
  *out = (planrt_device_info){.memory_bytes = 100 << 20};
  return NULL;
}

/* More than there is is not copied; whatever it is, the host's memory is the limit too. */
START_TEST(what_is_copied_has_bounds) {
  planrt_backend small = planrt_host_backend, large = planrt_host_backend;
  small.info = info_of_small;
  large.info = info_of_large;
  int64_t host = sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
  planrt_link_rates rates;
  ok(planrt_measure_rates(&small, 0, 100 << 20, &rates));
  assert_fails(planrt_measure_rates(&small, 0, (100 << 20) + 1, &rates), PLANC_USAGE, "at most 100.00 MiB");
  assert_fails(planrt_measure_rates(&small, 0, INT64_MAX, &rates), PLANC_USAGE, "cannot be copied");
  assert_fails(planrt_measure_rates(&small, 0, 0, &rates), PLANC_USAGE, "at least 1 byte");
  if (host < INT64_C(1) << 40)
    assert_fails(planrt_measure_rates(&large, 0, host + 1, &rates), PLANC_USAGE, "that both device and host have");
}
END_TEST

START_TEST(rates_are_of_all_bytes) {
  planrt_link_rates rates;
  ok(planrt_measure_rates(&planrt_host_backend, INT64_C(8) << 30, INT64_C(130) << 20, &rates));
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

typedef struct passes {
  planrt_op_times times; /* of all */
  int32_t n, first, of;
} passes;

static planc_status take_pass(void *user, const planrt_pass *pass) {
  passes *all = user;
  if (all->n == 0) all->first = pass->number;
  ck_assert_int_eq(pass->number, all->first + all->n++);
  all->of = pass->of;
  for (int64_t i = 0; i < pass->times->len; i++) {
    if (i > 0) ck_assert_int_gt(pass->times->data[i].op, pass->times->data[i - 1].op);
    VEC_PUSH(&all->times, pass->times->data[i]);
  }
  return NULL;
}

static planrt_op_options options_of(const planrt_backend *backend, const planc_graph *graph, passes *into) {
  return (planrt_op_options){
      .backend = backend, .graph = graph, .batch = 4, .repetitions = 2, .passed = take_pass, .user = into};
}

START_TEST(every_op_is_measured_with_every_algorithm) {
  planc_graph *graph = net_graph();
  planrt_op_times listed = {0};
  passes all = {0};
  planrt_op_options options = options_of(&planrt_host_backend, graph, &all);
  ok(planrt_measure_ops(&options));
  ck_assert_int_eq(all.first, 0);
  ck_assert_int_eq(all.n, all.of);
  ck_assert_int_gt(all.n, 1);
  planrt_op_times times = all.times;
  list(graph, 4, &listed);
  ck_assert_int_eq(times.len, listed.len);
  bool *seen = calloc((size_t)graph->n_ops, sizeof *seen);
  for (int64_t i = 0; i < times.len; i++) {
    const planrt_op_time *time = &times.data[i];
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
  planc_graph *graph = net_graph();
  passes all = {0}, rest = {0};
  planrt_op_options options = options_of(&planrt_host_backend, graph, &all);
  ok(planrt_measure_ops(&options));
  options.user = &rest;
  options.first_pass = 1;
  ok(planrt_measure_ops(&options));
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

static planc_status count_launch(planrt_device *device, int32_t stream, const planrt_call *call,
                                 const planrt_launch *launch, planrt_span *span) {
  n_launches++;
  n_timed += span != NULL;
  return planrt_host_backend.launch(device, stream, call, launch, span);
}

static planc_status count_copy(planrt_device *device, int32_t stream, planrt_direction direction, void *to,
                               const void *from, int64_t bytes, planrt_span *span) {
  n_copies[direction]++;
  return planrt_host_backend.copy(device, stream, direction, to, from, bytes, span);
}

static planc_status count_synchronize(planrt_device *device) {
  if (n_timed_before_rest == 0) n_timed_before_rest = n_timed;
  return planrt_host_backend.synchronize(device);
}

static planrt_backend counted(void) {
  planrt_backend backend = planrt_host_backend;
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
  planc_graph *graph = net_graph();
  planrt_backend backend = counted();
  passes all = {0};
  planrt_op_options options = options_of(&backend, graph, &all);
  options.repetitions = 3;
  options.most = 1;
  ok(planrt_measure_ops(&options));
  ck_assert_int_eq(all.n, 1);
  int64_t launches = n_launches;
  ck_assert_int_eq(n_timed_before_rest, 3 * graph->n_ops);
  ck_assert_int_eq(n_copies[PLANRT_H2D], 4); /* two inputs, two parameters */
  backend = counted();
  all.n = 0;
  options.warm_ns = 50000000;
  ok(planrt_measure_ops(&options));
  ck_assert_int_eq(n_timed_before_rest, 3 * graph->n_ops);
  ck_assert_int_gt(n_launches, launches + 10 * graph->n_ops);
  ck_assert_int_eq(n_copies[PLANRT_H2D], 4);
  VEC_FREE(&all.times);
  planc_graph_free(graph);
}
END_TEST

/* A backend whose own device can be described: what there is to measure is asked of such a device, and nothing of the
 * one that measures. */
static const planrt_device *described;

static planc_status describe(char **out) {
  *out = strdup("a device");
  return *out ? NULL : planc_error(PLANC_OUT_OF_MEMORY, "properties");
}

static planc_status open_described(const planrt_device_options *options, planrt_device **out) {
  planrt_device_options own = *options;
  if (own.properties) ck_assert_str_eq(own.properties, "a device");
  own.properties = NULL;
  PLANC_TRY(planrt_host_backend.open(&own, out));
  if (options->properties) described = *out;
  return NULL;
}

static planc_status ask_described(planrt_device *device, const planrt_call *call, planrt_variant *out, int32_t *count) {
  ck_assert_ptr_eq(device, described);
  return planrt_host_backend.variants(device, call, out, count);
}

static void close_described(planrt_device *device) {
  if (device == described) described = NULL;
  planrt_host_backend.close(device);
}

START_TEST(what_there_is_is_asked_without_the_device) {
  planc_graph *graph = net_graph();
  planrt_backend backend = planrt_host_backend;
  passes all = {0};
  backend.properties = describe;
  backend.open = open_described;
  backend.close = close_described;
  backend.variants = ask_described;
  planrt_op_options options = options_of(&backend, graph, &all);
  ok(planrt_measure_ops(&options));
  ck_assert_ptr_null(described);
  ck_assert_int_gt(all.times.len, 0);
  VEC_FREE(&all.times);
  planc_graph_free(graph);
}
END_TEST

/* Ops beside copies in both directions, by the algorithms that were chosen. */
START_TEST(a_run_is_measured) {
  planc_graph *graph = net_graph();
  planrt_backend backend = counted();
  planrt_op_times chosen = {0};
  planrt_run_costs costs;
  planrt_op_options options = {.backend = &backend, .graph = graph, .batch = 4, .repetitions = 3};
  list(graph, 4, &chosen);
  ok(planrt_measure_run(&options, &chosen, 0, &costs));
  ck_assert_int_gt(costs.launch_ns, 0);
  ck_assert_int_ge(costs.slowdown_ppm, 0);
  ck_assert_int_gt(n_copies[PLANRT_H2D], 4);
  ck_assert_int_gt(n_copies[PLANRT_D2H], 0);
  ck_assert_int_eq(n_timed, 2 * 3 * graph->n_ops);
  VEC_FREE(&chosen);
  planc_graph_free(graph);
}
END_TEST

/* --- What may not be survived ----------------------------------------------------------------------------------- */

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

static planc_status take_trial(void *user, const planrt_trial *trial) {
  (void)user;
  snprintf(told.op, sizeof told.op, "%s", trial->op ? trial->op : "");
  snprintf(told.algorithm, sizeof told.algorithm, "%s", trial->op ? trial->algorithm : "");
  told.n_named += trial->op != NULL;
  told.n_only += trial->only;
  return NULL;
}

static planc_status prepare_told(planrt_device *device, planrt_call *call) {
  if (*told.op) {
    ck_assert_str_eq(told.op, call->op->name);
    ck_assert_str_eq(told.algorithm, call->algorithm);
  }
  if (told.fails && strcmp(call->algorithm, told.fails) == 0) return planc_error(PLANC_DEVICE, "an illegal address");
  return planrt_host_backend.prepare(device, call);
}

static planc_status launch_told(planrt_device *device, int32_t stream, const planrt_call *call,
                                const planrt_launch *launch, planrt_span *span) {
  bool alone = !told.launched || told.launched == call->op;
  if (*told.op) {
    ck_assert_str_eq(told.op, call->op->name);
    ck_assert(alone);
  }
  told.apart = told.apart && alone;
  told.launched = call->op;
  return planrt_host_backend.launch(device, stream, call, launch, span);
}

static planc_status synchronize_told(planrt_device *device) {
  told.launched = NULL;
  return planrt_host_backend.synchronize(device);
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
  planrt_backend backend = planrt_host_backend;
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
  planc_graph *graph = net_graph();
  planrt_backend backend = telling();
  passes all = {0};
  planrt_op_options options = options_of(&backend, graph, &all);
  options.trying = take_trial;
  options.careful = _i != 0;
  options.most = _i != 0 ? 1 : 0;
  ok(planrt_measure_ops(&options));
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
  planc_graph *graph = net_graph();
  passes whole = {0}, some = {0}, none = {0};
  planrt_op_options options = options_of(&planrt_host_backend, graph, &whole);
  ok(planrt_measure_ops(&options));
  options.user = &some;
  options.left_out = leave_out_conv;
  ok(planrt_measure_ops(&options));
  ck_assert_int_eq(some.times.len, whole.times.len - 1);
  for (int64_t i = 0; i < some.times.len; i++)
    ck_assert(!leave_out_conv(NULL, graph->ops[some.times.data[i].op].name, some.times.data[i].variant.algorithm));
  options.user = &none;
  options.left_out = leave_out_all; /* no op is left with none */
  ok(planrt_measure_ops(&options));
  ck_assert_int_eq(none.times.len, whole.times.len);
  VEC_FREE(&whole.times);
  VEC_FREE(&some.times);
  VEC_FREE(&none.times);
  planc_graph_free(graph);
}
END_TEST

/* An algorithm that cannot be run is refused; one that loses the device ends it all, and the error names it. */
START_TEST(a_lost_device_is_no_refusal) {
  planc_graph *graph = net_graph();
  planrt_backend backend = telling();
  passes all = {0};
  planrt_op_options options = options_of(&backend, graph, &all);
  options.refused = count_refused;
  told.fails = "dnnl-direct";
  told.lost = _i != 0;
  planc_status status = planrt_measure_ops(&options);
  if (told.lost) {
    ck_assert_int_eq(planc_status_code(status), PLANC_DEVICE);
    ck_assert_int_eq(told.n_refused, 0);
    ck_assert_ptr_nonnull(strstr(planc_status_message(status), ": dnnl-direct: an illegal address"));
    planc_status_free(status);
  } else {
    ok(status);
    ck_assert_int_gt(told.n_refused, 0);
  }
  VEC_FREE(&all.times);
  planc_graph_free(graph);
}
END_TEST

/* --- Which are measured ----------------------------------------------------------------------------------------- */

static bool has(const planrt_variant *variants, int32_t n, const char *algorithm) {
  for (int32_t v = 0; v < n; v++)
    if (strcmp(variants[v].algorithm, algorithm) == 0) return true;
  return false;
}

START_TEST(the_best_are_kept) {
  static const planrt_variant all[] = {
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
    planrt_variant variants[N];
    memcpy(variants, all, sizeof all);
    int32_t n = planrt_shortlist(variants, N, most);
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
  planrt_variant variants[] = {{.algorithm = "unsure"}, {.algorithm = "sure", .deterministic = true, .rank = 1}};
  ck_assert_int_eq(planrt_shortlist(variants, 2, 1), 1);
  ck_assert_str_eq(variants[0].algorithm, "sure");
}
END_TEST

START_TEST(stopping_and_too_little_memory) {
  planc_graph *graph = net_graph();
  passes none = {0};
  volatile sig_atomic_t stop = 1;
  planrt_op_options options = options_of(&planrt_host_backend, graph, &none);
  options.stop = &stop;
  ok(planrt_measure_ops(&options));
  ck_assert_int_eq(none.n, 0);
  options.stop = NULL;
  options.batch = INT64_C(1) << 45;
  planc_status status = planrt_measure_ops(&options);
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
    times.data[i].time = (planrt_statistic){.median_ns = 1000 * batch * batch + i, .spread_ns = 7};
    times.data[i].predicted = false;
  }
  cJSON_AddItemToArray(pieces, planrt_piece_of_ops(graph, load_ppm, batch, &times, NULL));
  VEC_FREE(&times);
}

static void add_links(cJSON *pieces) {
  planrt_link_times times = {
      .n_sizes = 7, .memory_bytes_per_s = 1000000000, .both_ns = {99, 98}, .under_load_ns = {97, 96}};
  for (int d = 0; d < 2; d++)
    for (int32_t s = 0; s < times.n_sizes; s++) times.alone_ns[d][s] = 1000 + planrt_link_sizes[s] / 10;
  cJSON_AddItemToArray(pieces, planrt_piece_of_links(&times, &(planrt_run_costs){90, 30000}));
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
  add_ops(pieces, graph, 0, _i ? 20 : 4);
  add_ops(pieces, graph, 500000, 4);
  add_ops(pieces, graph, 0, _i ? 4 : 20);
  add_ops(pieces, graph, 0, 12);
  if (!_i) add_links(pieces);
  planrt_profile_head head = {.name = "host", .machine = "a machine", .memory_bytes = INT64_C(1) << 34};
  ok(planrt_profile_compose(&head, graph, pieces, &tree));
  ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(tree, "loads")), 1);
  planc_profile *profile = parse(tree);
  const cJSON *alone = cJSON_GetObjectItem(cJSON_GetObjectItem(cJSON_GetObjectItem(tree, "links"), "d2h"), "alone");
  ck_assert_int_eq(cJSON_GetArraySize(alone), 7);
  ck_assert_int_eq(planc_profile_device(profile)->launch_ns, 90);
  ck_assert_int_eq(planc_profile_device(profile)->slowdown_ppm, 30000);
  for (int64_t batch = 4; batch <= 20; batch += 8) {
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
        ck_assert_int_eq(variants[v].time_ns, 1000 * batch * batch + i);
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

/* A pass as it is kept: each op's algorithm of that number, where it has so many. */
static cJSON *pass_of(const planc_graph *graph, int32_t number, int32_t of, const cJSON *refused) {
  planrt_op_times all = {0}, times = {0};
  list(graph, 4, &all);
  for (int64_t i = 0; i < all.len; i++) {
    planrt_op_time *time = &all.data[i];
    int64_t place = i;
    while (place > 0 && all.data[place - 1].op == time->op) place--;
    if (i - place != number) continue;
    time->time = (planrt_statistic){.median_ns = 1000 - 10 * number};
    time->predicted = false;
    ck_assert_ptr_null(VEC_RESERVE(&times, times.len + 1));
    times.data[times.len++] = *time;
  }
  cJSON *piece = planrt_piece_of_ops(graph, 0, 4, &times, 0);
  planrt_piece_of_pass(piece, number, of, refused);
  VEC_FREE(&all);
  VEC_FREE(&times);
  return piece;
}

/* Passes make the same profile in whatever order they come: that with the second algorithms lacks most ops. Each
 * refusal is told once. */
START_TEST(passes_are_merged) {
  planc_graph *graph = net_graph();
  char *texts[2];
  for (int turn = 0; turn < 2; turn++) {
    cJSON *pieces = cJSON_CreateArray(), *tree;
    cJSON *refused = cJSON_Parse("[{\"op\":\"c\",\"algorithm\":\"x\",\"batch\":4,\"reason\":\"a \\\"why\\\"\"}]");
    ck_assert_int_eq(planrt_pieces_next_pass(pieces, 0, 4), 0);
    for (int32_t k = 0; k < 2; k++) {
      cJSON_AddItemToArray(pieces, pass_of(graph, turn ? 1 - k : k, 2, refused));
      if (!turn) ck_assert_int_eq(planrt_pieces_next_pass(pieces, 0, 4), k == 0 ? 1 : -1);
    }
    ck_assert_int_eq(planrt_pieces_next_pass(pieces, 0, 8), 0);
    ck_assert_int_eq(planrt_pieces_next_pass(pieces, 500000, 4), 0);
    planrt_op_times fastest = {0};
    ok(planrt_pieces_fastest(pieces, graph, 4, &fastest));
    ck_assert_int_eq(fastest.len, graph->n_ops);
    for (int64_t i = 0; i < fastest.len; i++) ck_assert_int_eq(fastest.data[i].op, i);
    VEC_FREE(&fastest);
    add_links(pieces);
    planrt_profile_head head = {.name = "host", .machine = "a machine", .memory_bytes = INT64_C(1) << 34};
    ok(planrt_profile_compose(&head, graph, pieces, &tree));
    planc_profile_free(parse(tree));
    ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(tree, "refused")), 1);
    texts[turn] = cJSON_Print(tree);
    cJSON_Delete(refused);
    cJSON_Delete(tree);
    cJSON_Delete(pieces);
  }
  ck_assert_str_eq(texts[0], texts[1]);
  for (int turn = 0; turn < 2; turn++) cJSON_free(texts[turn]);
  planc_graph_free(graph);
}
END_TEST

/* Nothing is kept of what found no memory, with a file or without: a refusal, a mark, a piece. */
START_TEST(what_found_no_memory_is_not_kept) {
  planc_graph *graph = net_graph();
  cJSON *refused = cJSON_CreateArray();
  planc_json_add(refused, NULL, NULL);
  cJSON *piece = pass_of(graph, 0, 1, refused);
  ck_assert(!planc_json_is_whole(piece));
  cJSON_Delete(piece);
  char folder[] = "/tmp/planrt-kept-XXXXXX", output[64], part[80];
  ck_assert_ptr_nonnull(mkdtemp(folder));
  snprintf(output, sizeof output, "%s/out", folder);
  snprintf(part, sizeof part, "%s.part", output);
  for (int on_disk = 0; on_disk < 2; on_disk++) {
    planrt_kept kept = {.file = -1};
    cJSON *head = cJSON_CreateObject();
    ok(planrt_kept_open(&kept, on_disk ? output : NULL, head));
    int64_t end = kept.end;
    assert_fails(planrt_kept_mark(&kept, NULL, false), PLANC_OUT_OF_MEMORY, "");
    assert_fails(planrt_kept_add(&kept, pass_of(graph, 0, 1, refused)), PLANC_OUT_OF_MEMORY, "");
    ck_assert_int_eq(kept.end, end);
    planrt_kept_close(&kept);
    cJSON_Delete(head);
  }
  ck_assert_int_eq(unlink(part), 0);
  ck_assert_int_eq(rmdir(folder), 0);
  cJSON_Delete(refused);
  planc_graph_free(graph);
}
END_TEST

/* An algorithm that ended a process at an op is no variant of it, and is told as refused; one that did so at two ops is
 * tried with none. Without an algorithm, or where there was no other, nothing is left out and the pass is run with
 * care. */
START_TEST(ends_of_processes_are_pieces) {
  static const planrt_trial trials[] = {
      {.pass = 1, .op = "c", .algorithm = "dnnl-direct"}, {.pass = 2}, {.op = "r", .algorithm = "host", .only = true}};
  planc_graph *graph = net_graph();
  cJSON *pieces = cJSON_CreateArray(), *tree;
  add_ops(pieces, graph, 0, 4);
  add_links(pieces);
  for (int t = 0; t < 3; t++) cJSON_AddItemToArray(pieces, planrt_piece_of_trial(0, 4, &trials[t]));
  ck_assert(planrt_pieces_leave_out(pieces, "c", "dnnl-direct"));
  ck_assert(!planrt_pieces_leave_out(pieces, "z", "dnnl-direct"));
  ck_assert(!planrt_pieces_leave_out(pieces, "r", "host"));
  ck_assert(planrt_pieces_ended_in(pieces, 0, 4, 2) && planrt_pieces_ended_in(pieces, 0, 4, 0));
  ck_assert(!planrt_pieces_ended_in(pieces, 0, 4, 1) && !planrt_pieces_ended_in(pieces, 0, 8, 2));
  planrt_profile_head head = {.name = "host", .machine = "a machine", .memory_bytes = INT64_C(1) << 34};
  ok(planrt_profile_compose(&head, graph, pieces, &tree));
  planc_profile_free(parse(tree));
  const cJSON *refused = cJSON_GetObjectItem(tree, "refused"), *op, *variant;
  ck_assert_int_eq(cJSON_GetArraySize(refused), 1);
  ck_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(refused, 0), "op")), "c");
  int32_t n_direct = 0;
  cJSON_ArrayForEach(op, cJSON_GetObjectItem(tree, "ops")) {
    cJSON_ArrayForEach(variant, cJSON_GetObjectItem(op, "variants")) {
      bool direct = strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(variant, "algorithm")), "dnnl-direct") == 0;
      ck_assert(!direct || strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(op, "op")), "c") != 0);
      n_direct += direct;
    }
  }
  ck_assert_int_gt(n_direct, 0);
  cJSON_AddItemToArray(pieces,
                       planrt_piece_of_trial(0, 4, &(planrt_trial){.op = "c.wgrad", .algorithm = "dnnl-direct"}));
  ck_assert(planrt_pieces_leave_out(pieces, "z", "dnnl-direct"));
  ck_assert(!planrt_pieces_ended_at(pieces, "z", "dnnl-direct"));
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
  tcase_add_loop_test(c, a_line_is_found_again, 0, 8);
  tcase_add_loop_test(c, any_times_make_a_link, 0, 80);
  tcase_add_test(c, links_are_measured);
  tcase_add_test(c, memory_that_copies_need);
  tcase_add_test(c, sizes_are_beyond_caches);
  tcase_add_test(c, rates_are_of_all_bytes);
  tcase_add_test(c, what_is_copied_has_bounds);
  tcase_add_test(c, every_op_is_measured_with_every_algorithm);
  tcase_add_test(c, measuring_goes_on_at_a_pass);
  tcase_add_test(c, iterations_run_back_to_back);
  tcase_add_test(c, what_there_is_is_asked_without_the_device);
  tcase_add_test(c, a_run_is_measured);
  tcase_add_loop_test(c, what_is_tried_is_told, 0, 2);
  tcase_add_test(c, what_ended_a_process_is_left_out);
  tcase_add_loop_test(c, a_lost_device_is_no_refusal, 0, 2);
  tcase_add_test(c, ends_of_processes_are_pieces);
  tcase_add_test(c, the_best_are_kept);
  tcase_add_test(c, equals_that_are_deterministic_are_kept);
  tcase_add_test(c, passes_are_merged);
  tcase_add_test(c, what_found_no_memory_is_not_kept);
  tcase_add_test(c, stopping_and_too_little_memory);
  tcase_add_loop_test(c, profiles_hold_what_was_measured, 0, 2);
  tcase_add_test(c, workspaces_are_exact_at_every_batch);
  tcase_add_test(c, rounds_have_these_sizes);
  suite_add_tcase(suite, c);
  return run_suite(suite);
}
