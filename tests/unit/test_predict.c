/* Predicted costs: the fixed-point arithmetic against libm; models fitted to times that a known device would have, so
 * that what they should say is known; what they are fitted to in any order; files. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost/predict_features.h"
#include "planc/predict.h"
#include "tests/support/unit.h"

static const char toy_path[] = "tests/data/profile/toy.json";

/* --- Arithmetic --------------------------------------------------------------------------------------------------- */

static double real(int64_t log) {
  return (double)log / PL_LOG_ONE;
}

START_TEST(logarithms_are_close_and_rise) {
  int64_t before = -1;
  for (int64_t value = 1; value < INT64_MAX / 3; value += value / 7 + 1) {
    int64_t log = pl_log2_fixed(value);
    ck_assert_double_le(fabs(real(log) - log2((double)value)), ldexp(1, -15));
    ck_assert_int_ge(log, before);
    before = log;
  }
  ck_assert_int_eq(pl_log2_fixed(0), 0);
  ck_assert_int_eq(pl_log2_fixed(-5), 0);
  ck_assert_int_eq(pl_log2_fixed(INT64_MAX), 63 * PL_LOG_ONE - 1);
}
END_TEST

START_TEST(powers_undo_logarithms) {
  for (int64_t value = 1; value < INT64_C(1) << 61; value += value / 5 + 1) {
    int64_t back = pl_exp2_fixed(pl_log2_fixed(value));
    ck_assert_double_le(fabs((double)(back - value)), 1.0 + 1e-4 * (double)value);
  }
  for (int64_t log = 0; log < (INT64_C(63) << PL_LOG_BITS); log += 9973)
    ck_assert_int_le(pl_exp2_fixed(log), pl_exp2_fixed(log + 1));
  ck_assert_int_eq(pl_exp2_fixed(-1), 0);
  ck_assert_int_eq(pl_exp2_fixed(5 * PL_LOG_ONE), 32);
  ck_assert_int_eq(pl_exp2_fixed(INT64_MAX), INT64_C(1) << 62);
}
END_TEST

/* --- A device that is known --------------------------------------------------------------------------------------- */

static planc_graph *train(const char *path) {
  planc_graph *graph;
  const char *derived;
  ok(planc_graph_prepare(path, NULL, false, &graph, &derived));
  return graph;
}

static planc_profile *read_profile(const char *path) {
  planc_profile *profile;
  ok(planc_profile_read(path, &profile));
  return profile;
}

static planc_profile *parse(const char *text, size_t length) {
  planc_profile *profile;
  ok(planc_profile_parse(text, length, "text", &profile));
  return profile;
}

/* Takes `part` out of the text wherever it stands. */
static void remove_all(char *text, const char *part) {
  char *to = text;
  size_t length = strlen(part);
  for (const char *at = text; *at;) {
    if (strncmp(at, part, length) == 0) {
      at += length;
    } else {
      *to++ = *at++;
    }
  }
  *to = '\0';
}

static planc_predicted_costs *predict(const planc_predict_options *options) {
  planc_predicted_costs *costs;
  ok(planc_predict(options, &costs));
  return costs;
}

static const int64_t batches[] = {2, 8, 32};
enum { N_BATCHES = 3 };

/* The profile that measuring a graph on the device of `path` would give: the times of its constants. */
static planc_profile *measure(const planc_graph *graph, const char *path) {
  planc_profile *device = read_profile(path);
  planc_predicted_costs *costs =
      predict(&(planc_predict_options){.profile = device, .graph = graph, .n_batches = N_BATCHES, .batches = batches});
  char *text;
  size_t length;
  ok(planc_predicted_costs_print(costs, &text, &length));
  remove_all(text, "\"predicted\":true,");
  planc_profile *measured = parse(text, strlen(text));
  free(text);
  planc_predicted_costs_free(costs);
  planc_profile_free(device);
  return measured;
}

/* Two graphs measured on one device, and a model with the constants of another. */
static struct {
  planc_graph *graphs[2];
  planc_profile *base, *profiles[2];
  planc_fit_case cases[2];
  planc_model *model;
  planc_fit_report report;
} fitted;

static char *print_model(const planc_model *model, size_t *out_length) {
  char *text;
  ok(planc_model_print(fitted.base, model, "fitted", &text, out_length));
  return text;
}

static planc_profile *with_model(const planc_model *model) {
  size_t length;
  char *text = print_model(model, &length);
  planc_profile *profile = parse(text, length);
  free(text);
  return profile;
}

static void set_up(void) {
  static const char *const graphs[] = {"graphs/resnet50.yaml", "graphs/resnet34.yaml"};
  fitted.base = read_profile(toy_path);
  for (int i = 0; i < 2; i++) {
    fitted.graphs[i] = train(graphs[i]);
    fitted.profiles[i] = measure(fitted.graphs[i], "profiles/p100.json");
    fitted.cases[i] = (planc_fit_case){fitted.graphs[i], fitted.profiles[i], graphs[i]};
  }
  ok(planc_model_fit(fitted.base, fitted.cases, 2, &fitted.model, &fitted.report));
}

static void tear_down(void) {
  for (int i = 0; i < 2; i++) {
    planc_profile_free(fitted.profiles[i]);
    planc_graph_free(fitted.graphs[i]);
  }
  planc_model_free(fitted.model);
  planc_profile_free(fitted.base);
}

/* The toy's constants are nothing like a P100; the model makes up for that. */
START_TEST(model_knows_what_it_has_not_seen) {
  const planc_fit_error *ops = &fitted.report.ops, *graphs = &fitted.report.graphs;
  ck_assert_int_gt(ops->n, 1000);
  ck_assert_int_eq(ops->n + ops->n_unknown, fitted.report.n_times);
  ck_assert_int_eq(graphs->n + graphs->n_unknown, fitted.report.n_times);
  ck_assert_int_gt(ops->roofline_median_ppm, 300000);
  ck_assert_int_lt(ops->median_ppm, 20000);
  ck_assert_int_lt(graphs->median_ppm, 150000);
  ck_assert_int_le(ops->median_ppm, ops->p90_ppm);
  ck_assert_int_eq(planc_model_n_groups(fitted.model), fitted.report.n_groups);
}
END_TEST

static const planc_variant *find(const planc_variant *variants, int32_t count, const char *algorithm) {
  for (int32_t v = 0; v < count; v++)
    if (strcmp(variants[v].algorithm, algorithm) == 0) return &variants[v];
  return NULL;
}

static planc_costs *costs_of(const planc_profile *profile, const planc_graph *graph) {
  planc_costs *costs;
  ok(planc_costs_make(profile, graph, N_BATCHES, batches, &costs));
  return costs;
}

/* Every op was seen: its algorithms are those that it was measured with, at nearly their times, with exactly their
 * workspaces. */
START_TEST(what_was_seen_is_remembered) {
  planc_profile *device = with_model(fitted.model);
  const planc_graph *graph = fitted.graphs[0];
  planc_predicted_costs *of =
      predict(&(planc_predict_options){.profile = device, .graph = graph, .n_batches = N_BATCHES, .batches = batches});
  planc_costs *measured = costs_of(fitted.profiles[0], graph);
  ck_assert_int_eq(of->n_modelled, graph->n_ops);
  ck_assert_int_eq(of->n_batches, N_BATCHES);
  for (int32_t o = 0; o < graph->n_ops; o++) {
    for (int32_t b = 0; b < N_BATCHES; b++) {
      const int32_t *first = &of->first[o * N_BATCHES + b];
      int32_t count;
      const planc_variant *expected = planc_costs_variants(measured, o, b, &count);
      ck_assert_int_eq(first[1] - first[0], count);
      for (int32_t v = first[0]; v < first[1]; v++) {
        const planc_variant *one = find(expected, count, of->variants[v].algorithm);
        ck_assert_ptr_nonnull(one);
        double ratio = (double)of->variants[v].time_ns / (double)one->time_ns;
        ck_assert_double_le(fabs(ratio - 1), 0.05);
        ck_assert_int_eq(of->variants[v].workspace_bytes, one->workspace_bytes);
        ck_assert_int_eq(of->variants[v].deterministic, one->deterministic);
      }
    }
  }
  planc_costs_free(measured);
  planc_predicted_costs_free(of);
  planc_profile_free(device);
}
END_TEST

/* The same model, byte for byte, whatever the order of the profiles; and the same errors. */
START_TEST(order_of_profiles_makes_no_difference) {
  planc_fit_case turned[] = {fitted.cases[1], fitted.cases[0]};
  planc_model *model;
  planc_fit_report report;
  ok(planc_model_fit(fitted.base, turned, 2, &model, &report));
  size_t length, turned_length;
  char *text = print_model(fitted.model, &length), *turned_text = print_model(model, &turned_length);
  ck_assert(strcmp(text, turned_text) == 0);
  ck_assert_int_eq(report.graphs.median_ppm, fitted.report.graphs.median_ppm);
  ck_assert_int_eq(report.ops.p90_ppm, fitted.report.ops.p90_ppm);
  free(text);
  free(turned_text);
  planc_model_free(model);
}
END_TEST

START_TEST(model_survives_its_file) {
  size_t length, again_length;
  char *text = print_model(fitted.model, &length);
  planc_profile *device = parse(text, length);
  char *again = print_model(planc_profile_model(device), &again_length);
  ck_assert(strcmp(text, again) == 0);
  ck_assert_str_eq(planc_profile_device(device)->name, "fitted");
  free(text);
  free(again);
  planc_profile_free(device);
}
END_TEST

/* --- Predictions -------------------------------------------------------------------------------------------------- */

/* A graph with shapes that were not seen: what is printed is read as it was predicted. */
START_TEST(prediction_survives_its_file) {
  planc_profile *device = with_model(fitted.model);
  planc_graph *graph = train("graphs/vgg16.yaml");
  planc_predicted_costs *of =
      predict(&(planc_predict_options){.profile = device, .graph = graph, .n_batches = N_BATCHES, .batches = batches});
  char *text;
  size_t length;
  ok(planc_predicted_costs_print(of, &text, &length));
  planc_profile *printed = parse(text, length);
  planc_costs *costs = costs_of(printed, graph);
  for (int32_t o = 0; o < graph->n_ops; o++) {
    for (int32_t b = 0; b < N_BATCHES; b++) {
      const int32_t *first = &of->first[o * N_BATCHES + b];
      int32_t count;
      const planc_variant *variants = planc_costs_variants(costs, o, b, &count);
      for (int32_t v = first[0]; v < first[1]; v++) {
        const planc_variant *one = find(variants, count, of->variants[v].algorithm);
        ck_assert_ptr_nonnull(one);
        ck_assert_int_eq(one->time_ns, of->variants[v].time_ns);
        ck_assert_int_eq(one->workspace_bytes, of->variants[v].workspace_bytes);
        ck_assert_int_eq(one->busy_ppm, of->variants[v].busy_ppm);
        ck_assert(!one->measured);
      }
    }
  }
  planc_costs_free(costs);
  planc_profile_free(printed);
  free(text);
  planc_predicted_costs_free(of);
  planc_graph_free(graph);
  planc_profile_free(device);
}
END_TEST

/* More samples take no less time, and a busy device takes longer than a free one: by at most a factor of 2, when others
 * take all of the time as well. */
static void assert_orderly(const planc_profile *device, const planc_graph *graph) {
  static const int64_t many[] = {64, 1, 2, 16, 4, 8, 32, 64};
  planc_predict_options options = {.profile = device, .graph = graph, .n_batches = 8, .batches = many};
  planc_predicted_costs *alone = predict(&options);
  options.load_ppm = 1000000;
  planc_predicted_costs *beside = predict(&options);
  ck_assert_int_eq(alone->n_batches, 7);
  for (int32_t c = 0; c < graph->n_ops * 7; c++) {
    ck_assert_int_eq(alone->first[c], beside->first[c]);
    for (int32_t v = alone->first[c]; v < alone->first[c + 1]; v++) {
      const planc_variant *one = &alone->variants[v];
      ck_assert_int_ge(beside->variants[v].time_ns + 1, one->time_ns);
      ck_assert_int_le(beside->variants[v].time_ns, 2 * one->time_ns + one->time_ns / 4 + 2);
      ck_assert_int_le(beside->variants[v].busy_ppm, one->busy_ppm < 500000 ? one->busy_ppm : 500000);
      for (int32_t w = alone->first[c - (c % 7 > 0)]; c % 7 > 0 && w < alone->first[c]; w++)
        if (strcmp(alone->variants[w].algorithm, one->algorithm) == 0)
          ck_assert_int_le(alone->variants[w].time_ns, one->time_ns);
    }
  }
  planc_predicted_costs_free(alone);
  planc_predicted_costs_free(beside);
}

START_TEST(times_rise_with_batch_and_load) {
  planc_profile *device = with_model(fitted.model);
  planc_graph *graph = train("graphs/vgg16.yaml");
  assert_orderly(device, graph);
  assert_orderly(fitted.base, graph);
  planc_graph_free(graph);
  planc_profile_free(device);
}
END_TEST

/* By the constants an op has the same work to do on a device that others use, in more time with less of the device. */
START_TEST(shares_fall_as_times_rise) {
  static const int64_t two[] = {1, 32}, loads[] = {1, 250000, 1000000};
  planc_graph *graph = train("graphs/vgg16.yaml");
  planc_predict_options options = {.profile = fitted.base, .graph = graph, .n_batches = 2, .batches = two};
  planc_predicted_costs *alone = predict(&options);
  int32_t shared = 0;
  for (int l = 0; l < 3; l++) {
    options.load_ppm = loads[l];
    planc_predicted_costs *beside = predict(&options);
    for (int32_t v = 0; v < alone->first[graph->n_ops * 2]; v++) {
      const planc_variant *a = &alone->variants[v], *b = &beside->variants[v];
      ck_assert_double_le(fabs((double)b->time_ns * (double)b->busy_ppm - (double)a->time_ns * (double)a->busy_ppm),
                          (double)b->time_ns + (double)b->busy_ppm + 1);
      shared += b->busy_ppm < a->busy_ppm;
      if (a->busy_ppm + loads[l] > 1000000) ck_assert_int_le(b->busy_ppm, 1000000 - loads[l] / 2 + 1);
    }
    planc_predicted_costs_free(beside);
  }
  ck_assert_int_gt(shared, 100);
  planc_predicted_costs_free(alone);
  planc_graph_free(graph);
}
END_TEST

/* What another file lists is offered with exactly its workspaces, at batches between as well. */
START_TEST(listed_workspaces_are_kept) {
  planc_profile *device = with_model(fitted.model);
  planc_profile *listed = fitted.profiles[1];
  const planc_graph *graph = fitted.graphs[1];
  planc_predicted_costs *of = predict(&(planc_predict_options){
      .profile = device, .listed = listed, .graph = graph, .n_batches = N_BATCHES, .batches = batches});
  char *text;
  size_t length;
  ok(planc_predicted_costs_print(of, &text, &length));
  planc_profile *printed = parse(text, length);
  static const int64_t between[] = {3, 17, 32};
  planc_costs *expected, *found;
  ok(planc_costs_make(listed, graph, 3, between, &expected));
  ok(planc_costs_make(printed, graph, 3, between, &found));
  int32_t n = expected->first[graph->n_ops * 3];
  ck_assert_int_eq(found->first[graph->n_ops * 3], n);
  for (int32_t v = 0; v < n; v++) {
    ck_assert_str_eq(found->variants[v].algorithm, expected->variants[v].algorithm);
    ck_assert_int_eq(found->variants[v].workspace_bytes, expected->variants[v].workspace_bytes);
  }
  planc_costs_free(expected);
  planc_costs_free(found);
  planc_profile_free(printed);
  free(text);
  planc_predicted_costs_free(of);
  planc_profile_free(device);
}
END_TEST

/* What a file lists without the model knowing it has the times of the device and its load, not those listed. */
START_TEST(listed_times_are_not_kept) {
  const planc_graph *graph = fitted.graphs[1];
  planc_profile *device = read_profile("profiles/k40m.json");
  planc_predict_options options = {.profile = device, .graph = graph, .n_batches = N_BATCHES, .batches = batches};
  for (int64_t load_ppm = 0; load_ppm <= 500000; load_ppm += 500000) {
    options.load_ppm = load_ppm;
    options.listed = NULL;
    planc_predicted_costs *expected = predict(&options);
    options.load_ppm = 900000;
    planc_predicted_costs *slow = predict(&options);
    char *text;
    size_t length;
    ok(planc_predicted_costs_print(slow, &text, &length));
    planc_profile *listed = parse(text, length);
    options.load_ppm = load_ppm;
    options.listed = listed;
    planc_predicted_costs *found = predict(&options);
    int32_t n = expected->first[graph->n_ops * N_BATCHES];
    ck_assert_int_eq(found->first[graph->n_ops * N_BATCHES], n);
    ck_assert_int_eq(found->n_modelled, 0);
    for (int32_t v = 0; v < n; v++) {
      ck_assert_str_eq(found->variants[v].algorithm, expected->variants[v].algorithm);
      ck_assert_int_eq(found->variants[v].time_ns, expected->variants[v].time_ns);
      ck_assert_int_eq(found->variants[v].busy_ppm, expected->variants[v].busy_ppm);
    }
    planc_predicted_costs_free(found);
    planc_profile_free(listed);
    free(text);
    planc_predicted_costs_free(slow);
    planc_predicted_costs_free(expected);
  }
  planc_profile_free(device);
}
END_TEST

/* --- Loads -------------------------------------------------------------------------------------------------------- */

static const char load_graph[] =
    "planc-graph: 1\n"
    "name: loads\n"
    "tensors: {a: 'input f32[N,64]', b: 'f32[N,64]', c: 'f32[N,64]'}\n"
    "ops:\n"
    "  - {op: one, type: relu, in: [a], out: [b]}\n"
    "  - {op: two, type: relu, in: [b], out: [c]}\n";

#define POINT(op, ns)                                                                          \
  "{\"op\":\"" op                                                                              \
  "\",\"variants\":[{\"algorithm\":\"plain\",\"deterministic\":true,\"points\":[{\"batch\":4," \
  "\"time_ns\":" ns ",\"workspace_bytes\":0,\"busy_ppm\":1000000}]}]}"

/* The toy's constants with these sections behind them, instead of its ops. */
static planc_profile *toy_with(const char *sections) {
  static const char ops[] = "\"ops\":[" POINT("one", "1") "]}\n";
  planc_profile *toy = read_profile(toy_path);
  planc_graph *graph;
  ok(planc_graph_parse(load_graph, strlen(load_graph), "graph", &graph));
  planc_predicted_costs *of =
      predict(&(planc_predict_options){.profile = toy, .graph = graph, .n_batches = 1, .batches = batches});
  char *text;
  size_t length;
  ok(planc_predicted_costs_print(of, &text, &length));
  char *at = strstr(text, "\"ops\":[");
  ck_assert_ptr_nonnull(at);
  size_t room = (size_t)(at - text) + strlen(sections) + sizeof ops;
  char *whole = malloc(room);
  snprintf(whole, room, "%.*s%s", (int)(at - text), text, sections);
  planc_profile *out = parse(whole, strlen(whole));
  free(whole);
  free(text);
  planc_predicted_costs_free(of);
  planc_graph_free(graph);
  planc_profile_free(toy);
  return out;
}

static int64_t relu_ns(const planc_profile *device, const planc_graph *graph, int64_t load_ppm) {
  static const int64_t four = 4;
  planc_predicted_costs *of = predict(&(planc_predict_options){
      .profile = device, .graph = graph, .n_batches = 1, .batches = &four, .load_ppm = load_ppm});
  int64_t time_ns = of->variants[0].time_ns;
  planc_predicted_costs_free(of);
  return time_ns;
}

START_TEST(loads_are_learnt) {
  planc_graph *graph;
  ok(planc_graph_parse(load_graph, strlen(load_graph), "graph", &graph));
  planc_profile *profile = toy_with("\"ops\":[" POINT("one", "4000") "," POINT(
      "two", "4000") "],"
                     "\"loads\":[{\"load_ppm\":500000,\"ops\":[" POINT("one", "40000") "," POINT("two",
                                                                                                 "40000") "]}]}\n");
  planc_model *model;
  planc_fit_report report;
  ok(planc_model_fit(profile, &(planc_fit_case){graph, profile, "profile"}, 1, &model, &report));
  ck_assert_int_eq(report.n_times, 4);
  ck_assert_int_eq(report.graphs.n, 0);
  planc_profile *device = with_model(model);
  int64_t free_ns = relu_ns(device, graph, 0), half_ns = relu_ns(device, graph, 500000);
  int64_t quarter_ns = relu_ns(device, graph, 250000);
  ck_assert_double_le(fabs((double)free_ns / 4000 - 1), 0.05);
  ck_assert_double_le(fabs((double)half_ns / 40000 - 1), 0.05);
  ck_assert_int_gt(quarter_ns, free_ns);
  ck_assert_int_lt(quarter_ns, half_ns);
  planc_profile_free(device);
  planc_model_free(model);
  planc_profile_free(profile);
  planc_graph_free(graph);
}
END_TEST

/* --- Misuse and bad files ----------------------------------------------------------------------------------------- */

START_TEST(profile_of_another_graph_is_refused) {
  planc_fit_case wrong = {fitted.graphs[1], fitted.profiles[0], "r50.json"};
  planc_model *model;
  planc_fit_report report;
  assert_fails(planc_model_fit(fitted.base, &wrong, 1, &model, &report), PLANC_BAD_INPUT, "r50.json: op ");
  ck_assert_ptr_null(model);
}
END_TEST

START_TEST(nothing_measured_is_refused) {
  planc_fit_case bare = {fitted.graphs[0], fitted.base, "toy"};
  planc_profile *device = read_profile("profiles/k40m.json");
  planc_model *model;
  planc_fit_report report;
  bare.profile = device;
  assert_fails(planc_model_fit(fitted.base, &bare, 1, &model, &report), PLANC_BAD_INPUT, "no measured times");
  planc_profile_free(device);
}
END_TEST

/* A model of one group with one sample, and what is wrong with each variation of it. */
#define MODEL_HEAD                                                                                           \
  "\"model\":{\"features\":[\"roofline\",\"flops\",\"traffic\",\"input\",\"operand\",\"result\",\"images\"," \
  "\"columns\",\"channels\",\"filters\",\"plane\",\"window\",\"stride\",\"groups\",\"element\",\"layout\",\"load\"],"
#define ROW_17 "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"
#define GROUP(type, mean, sample)                                                               \
  "{\"type\":\"" type                                                                           \
  "\",\"algorithm\":\"plain\",\"deterministic\":true,\"bias\":0,\"low\":-65536,\"high\":65536," \
  "\"mean\":[" mean "],\"weights\":[" ROW_17 "],\"samples\":[[" sample "]]}"
static const struct {
  const char *sections, *message;
} bad_models[] = {
    {"\"model\":{\"features\":[\"roofline\"],\"groups\":[]}}", "model.features: must have 17 names"},
    {MODEL_HEAD "\"groups\":[]}}", "model.groups: must not be empty"},
    {MODEL_HEAD "\"groups\":[" GROUP("relu", "1,2", ROW_17 ",0,0,1") "]}}", "mean: must have 17 integers"},
    {MODEL_HEAD "\"groups\":[" GROUP("relu", ROW_17, ROW_17 ",0,0") "]}}", "samples[0]: must have 20 integers"},
    {MODEL_HEAD "\"groups\":[" GROUP("relu", ROW_17, ROW_17 ",0,-1,1") "]}}", "has a workspace below 0"},
    {MODEL_HEAD "\"groups\":[" GROUP("relu", ROW_17, ROW_17 ",0,0,0") "]}}", "has a busy share beyond"},
    {MODEL_HEAD "\"groups\":[" GROUP("relu", ROW_17, ROW_17 ",99999999,0,1") "]}}", "logarithm that is too large"},
    {MODEL_HEAD "\"groups\":[" GROUP("relu", ROW_17, ROW_17 ",0,0,1") "," GROUP("relu", ROW_17, ROW_17 ",0,0,1") "]}}",
     "groups[1]: groups must ascend"},
};

START_TEST(bad_model_is_refused) {
  planc_profile *toy = read_profile(toy_path), *profile = NULL;
  char *text;
  size_t length;
  ok(planc_model_print(toy, fitted.model, NULL, &text, &length));
  char *at = strstr(text, "\"model\":{");
  ck_assert_ptr_nonnull(at);
  char whole[8192];
  snprintf(whole, sizeof whole, "%.*s%s\n", (int)(at - text), text, bad_models[_i].sections);
  assert_fails(planc_profile_parse(whole, strlen(whole), "f", &profile), PLANC_BAD_INPUT, bad_models[_i].message);
  ck_assert_ptr_null(profile);
  free(text);
  planc_profile_free(toy);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("predict");
  TCase *arithmetic = tcase_create("arithmetic");
  tcase_add_test(arithmetic, logarithms_are_close_and_rise);
  tcase_add_test(arithmetic, powers_undo_logarithms);
  suite_add_tcase(suite, arithmetic);
  TCase *models = tcase_create("models");
  tcase_add_unchecked_fixture(models, set_up, tear_down);
  tcase_set_timeout(models, 60);
  tcase_add_test(models, model_knows_what_it_has_not_seen);
  tcase_add_test(models, what_was_seen_is_remembered);
  tcase_add_test(models, order_of_profiles_makes_no_difference);
  tcase_add_test(models, model_survives_its_file);
  tcase_add_test(models, prediction_survives_its_file);
  tcase_add_test(models, times_rise_with_batch_and_load);
  tcase_add_test(models, shares_fall_as_times_rise);
  tcase_add_test(models, listed_workspaces_are_kept);
  tcase_add_test(models, listed_times_are_not_kept);
  tcase_add_test(models, loads_are_learnt);
  tcase_add_test(models, profile_of_another_graph_is_refused);
  tcase_add_test(models, nothing_measured_is_refused);
  tcase_add_loop_test(models, bad_model_is_refused, 0, (int)(sizeof bad_models / sizeof *bad_models));
  suite_add_tcase(suite, models);
  return run_suite(suite);
}
