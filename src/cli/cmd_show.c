/* `planc show`: what is in a graph, or in a plan and what binds its peak. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "graph/op_place.h"
#include "planc/analysis.h"
#include "planc/lifespans.h"
#include "planc/needs.h"
#include "program/print.h"
#include "util/file.h"
#include "util/math.h"
#include "util/size.h"

/* What a graph needs when one iteration runs in one round. */
typedef struct needs {
  planc_memory_needs memory;
  const planc_op *liveness_op; /* NULL in a graph without ops */
  int64_t bound;
  int32_t bound_op;
} needs;

static const prog_option options[] = {
    {"batch", 'b', "N", "batch for sizes of a graph (default: its header's, else 1)"},
    {"lifespans", 0, NULL, "of a plan, how long tensors live, by job and class"},
    {"json", 0, NULL, "the same as one line of JSON"},
    {0},
};

static planc_status run(const prog_arguments *arguments);
static planc_status show_plan_text(const prog_arguments *arguments, const char *text, size_t length);
static planc_status show_graph_text(const prog_arguments *arguments, const char *text, size_t length);

const prog_subcommand cli_cmd_show = {
    {"show", "GRAPH|PLAN", "show what is in a graph or a plan", options, 1, 1}, run, NULL};

static planc_status run(const prog_arguments *arguments) {
  const char *path = arguments->operands[0];
  char *text;
  size_t length;
  PLANC_TRY(pl_file_read_text(path, PLANC_PLAN_MAX_BYTES, &text, &length));
  /* A plan's first byte is its header's brace; a graph is YAML with a key there. */
  planc_status status =
      *text == '{' ? show_plan_text(arguments, text, length) : show_graph_text(arguments, text, length);
  free(text);
  return status;
}

/* --- Graphs ------------------------------------------------------------------------------------------------------- */

static planc_status show_graph(const prog_arguments *arguments, const planc_graph *graph);

static planc_status show_graph_text(const prog_arguments *arguments, const char *text, size_t length) {
  planc_graph *graph;
  if (prog_option_given(arguments, "lifespans"))
    return planc_error(PLANC_USAGE, "--lifespans is for plans, and this is a graph: plan it first");
  PLANC_TRY(planc_graph_parse(text, length, arguments->operands[0], &graph));
  planc_status status = show_graph(arguments, graph);
  planc_graph_free(graph);
  return status;
}

typedef struct totals {
  int64_t ops[3], flops[3]; /* by phase */
  int64_t parameters;       /* elements */
} totals;

static planc_status show_graph_as(const planc_graph *graph, const planc_graph *train, int64_t batch, bool json);
static planc_status find_needs(const planc_graph *graph, int64_t batch, needs *out);
static totals count(const planc_graph *graph, int64_t batch);
static int64_t plus(int64_t sum, int64_t value);
static void report_needs(cJSON *object, const char *key, const needs *n);
static void print_needs(const char *what, const needs *n, const planc_graph *graph);

/* A forward graph with a loss is also shown as it would be trained. */
static planc_status show_graph(const prog_arguments *arguments, const planc_graph *graph) {
  int64_t batch;
  PLANC_TRY(prog_option_int(arguments, "batch", 1, INT32_MAX, graph->batch ? graph->batch : 1, &batch));
  if (prog_option_given(arguments, "batch")) PLANC_TRY(cli_setup_batch(graph, "--batch", batch, &batch));
  planc_graph *train = NULL;
  planc_status status = NULL;
  if (!planc_graph_has_backward(graph) && graph->loss >= 0) status = planc_graph_train(graph, PLANC_SGD, &train);
  if (planc_status_code(status) == PLANC_OUT_OF_MEMORY) return status;
  planc_status_free(status); /* what cannot be trained is shown without */
  status = show_graph_as(graph, train, batch, prog_option_given(arguments, "json"));
  planc_graph_free(train);
  return status;
}

static planc_status show_graph_as(const planc_graph *graph, const planc_graph *train, int64_t batch, bool json) {
  needs own, training;
  char text[CLI_BATCH_TEXT];
  PLANC_TRY(find_needs(graph, batch, &own));
  if (train) PLANC_TRY(find_needs(train, batch, &training));
  totals t = count(graph, batch);
  if (json) {
    cJSON *object = cJSON_CreateObject();
    pl_json_add_string(object, "planc", "show/1");
    pl_json_add_string(object, "graph", graph->name);
    cli_report_batch(object, graph, batch);
    pl_json_add_int(object, "ops", graph->n_ops);
    pl_json_add_int(object, "storages", graph->n_storages);
    pl_json_add_int(object, "parameters", t.parameters);
    pl_json_add_int(object, "flops", plus(plus(t.flops[0], t.flops[1]), t.flops[2]));
    pl_json_add_bool(object, "batch_coupled", planc_graph_is_batch_coupled(graph));
    report_needs(object, "memory", &own);
    if (train) report_needs(object, "training", &training);
    return prog_print_json(stdout, object);
  }
  printf("graph %s, %s\n", graph->name, graph->layout == PLANC_LAYOUT_NCHW ? "NCHW" : "NHWC");
  if (graph->origin) prog_print_line(stdout, "origin: %s", graph->origin);
  for (int32_t phase = 0; phase < 3; phase++) {
    if (!t.ops[phase]) continue;
    printf("%-9s %6lld ops, %.3f GFLOP at %s\n", planc_phase_name((planc_phase)phase), (long long)t.ops[phase],
           (double)t.flops[phase] / 1e9, cli_batch_format(graph, batch, text));
  }
  printf("%d tensors in %d storages, %lld parameters%s\n", graph->n_tensors, graph->n_storages, (long long)t.parameters,
         planc_graph_is_batch_coupled(graph) ? ", batch-coupled" : "");
  print_needs("memory", &own, graph);
  if (train) print_needs("trained with sgd", &training, train);
  return NULL;
}

static planc_status find_needs(const planc_graph *graph, int64_t batch, needs *out) {
  planc_job job = {.graph = graph, .batch = batch, .n_rounds = 1, .rounds = &batch, .iterations = 1};
  planc_trace *trace;
  planc_order *order = NULL;
  PLANC_TRY(planc_expand(&job, 1, &trace));
  planc_status status = planc_order_of_trace(trace, &order);
  if (!status) status = planc_memory_needs_of(order, &out->memory);
  out->liveness_op = NULL;
  if (!status && trace->n_instances) out->liveness_op = planc_trace_op(trace, out->memory.liveness_instance);
  planc_order_free(order);
  planc_trace_free(trace);
  return status ? status : planc_lower_bound(graph, &out->bound, &out->bound_op);
}

static totals count(const planc_graph *graph, int64_t batch) {
  totals t = {0};
  for (int32_t o = 0; o < graph->n_ops; o++) {
    t.ops[graph->ops[o].phase]++;
    int64_t *flops = &t.flops[graph->ops[o].phase];
    *flops = plus(*flops, planc_law_at(graph->ops[o].flops, batch));
  }
  for (int32_t i = 0; i < graph->n_storages; i++) {
    const planc_storage *s = &graph->storages[i];
    if (s->kind == PLANC_KIND_param) {
      t.parameters = plus(t.parameters, s->bytes.fixed / planc_dtype_bytes(graph->tensors[s->tensor].dtype));
    }
  }
  return t;
}

/* `value` is -1 where it exceeds 64 bits. */
static int64_t plus(int64_t sum, int64_t value) {
  return value < 0 ? INT64_MAX : pl_add_saturate(sum, value);
}

static void report_needs(cJSON *object, const char *key, const needs *n) {
  cJSON *json = pl_json_add_object(object, key);
  pl_json_add_int(json, "all_data_bytes", n->memory.sum_bytes);
  pl_json_add_int(json, "liveness_bytes", n->memory.liveness_bytes);
  pl_json_add_int(json, "persistent_bytes", n->memory.persistent_bytes);
  pl_json_add_int(json, "lower_bound_bytes", n->bound);
}

static void print_op(const planc_op *op) {
  char place[PL_PLACE_TEXT];
  printf(" at op %s", op->name);
  prog_print_text(stdout, pl_op_place(op, place));
}

static void print_needs(const char *what, const needs *n, const planc_graph *graph) {
  char a[PL_SIZE_TEXT], b[PL_SIZE_TEXT];
  printf("%s: all data %s, most live at once %s", what, pl_size_format(n->memory.sum_bytes, a),
         pl_size_format(n->memory.liveness_bytes, b));
  if (n->liveness_op) print_op(n->liveness_op);
  /* A graph of one batch size has no smaller rounds. */
  printf("; with parameters, state and gradients kept%s at least %s",
         planc_graph_has_samples(graph) ? ", in rounds of one sample" : "", pl_size_format(n->bound, a));
  if (n->bound_op >= 0) print_op(&graph->ops[n->bound_op]);
  printf("\n");
}

/* --- Plans -------------------------------------------------------------------------------------------------------- */

static planc_status show_lifespans(const planc_plan *plan, bool json);
static planc_status show_plan(const planc_plan *plan, bool json);

static planc_status show_plan_text(const prog_arguments *arguments, const char *text, size_t length) {
  planc_plan *plan;
  if (prog_option_given(arguments, "batch")) return planc_error(PLANC_USAGE, "--batch: a plan has its own");
  PLANC_TRY(planc_plan_parse(text, length, arguments->operands[0], &plan));
  bool json = prog_option_given(arguments, "json");
  planc_status status = prog_option_given(arguments, "lifespans") ? show_lifespans(plan, json) : show_plan(plan, json);
  status = planc_context(status, "%s", arguments->operands[0]);
  planc_plan_free(plan);
  return status;
}

static void report_fragmentation(const planc_plan *plan, const planc_fragmentation *f, cJSON *object);
static void print_fragmentation(const planc_plan *plan, const planc_fragmentation *f);

static planc_status show_plan(const planc_plan *plan, bool json) {
  const planc_job *job = cli_only_job(plan);
  int64_t period_ns = plan->predicted.period_ns, ideal_ns = planc_plan_predicted_total(plan).ideal_ns;
  const planc_memory *device = planc_plan_memory(plan, PLANC_MEMORY_DEVICE);
  bool stores = plan->predicted.peak_bytes[PLANC_MEMORY_STORAGE] > 0;
  planc_fragmentation lost;
  PLANC_TRY(planc_fragmentation_of(plan, &lost));
  if (json) {
    cJSON *object = cJSON_CreateObject();
    pl_json_add_string(object, "planc", "show/1");
    pl_json_add_string(object, "plan", plan->name);
    pl_json_add_string(object, "policy", plan->policy);
    pl_json_add_string(object, "device", plan->device.name);
    cli_report_work(plan, object);
    pl_json_add_known(object, "budget_bytes", device->budget_bytes >= 0, device->budget_bytes);
    pl_json_add_int(object, "arena_bytes", device->arena_bytes);
    pl_json_add_int(object, "reserved_bytes", device->reserved_bytes);
    pl_json_add_int(object, "host_arena_bytes", plan->predicted.peak_bytes[PLANC_MEMORY_HOST]);
    pl_json_add_int(object, "storage_arena_bytes", plan->predicted.peak_bytes[PLANC_MEMORY_STORAGE]);
    pl_json_add_int(object, "period_ns", period_ns);
    pl_json_add_int(object, "ideal_ns", ideal_ns);
    pl_json_add_int(object, "instructions", plan->body.n);
    report_fragmentation(plan, &lost, object);
    cli_report_jobs(plan, plan->predicted.jobs, object);
    cli_report_terms(plan, object);
    planc_status status = cli_report_peak(plan, PLANC_MEMORY_DEVICE, "peak", object);
    if (!status && stores) status = cli_report_peak(plan, PLANC_MEMORY_STORAGE, "storage_peak", object);
    if (!status) return prog_print_json(stdout, object);
    cJSON_Delete(object);
    return status;
  }
  char a[PL_SIZE_TEXT], b[PL_SIZE_TEXT], c[PL_SIZE_TEXT];
  printf("plan of %s, policy %s, device %s\n", plan->name, plan->policy, plan->device.name);
  cli_print_work(plan, true);
  if (job) printf("; %d op%s in the graph, ", job->graph->n_ops, job->graph->n_ops == 1 ? "" : "s");
  printf("%s%d instructions in the body\n", job ? "" : "; ", plan->body.n);
  printf("budget %s: arena %s, reserved %s", cli_budget_format(device->budget_bytes, a),
         pl_size_format(device->arena_bytes, b), pl_size_format(device->reserved_bytes, c));
  cli_print_away(plan);
  printf("\n");
  cli_print_links(plan);
  cli_print_settings(plan);
  printf("predicted %s %s, ideal %s\n", cli_period_word(plan), pl_time_format(period_ns, a),
         pl_time_format(ideal_ns, b));
  cli_print_jobs(plan, plan->predicted.jobs, true);
  print_fragmentation(plan, &lost);
  PLANC_TRY(cli_print_peak(plan, PLANC_MEMORY_DEVICE, stdout));
  return stores ? cli_print_peak(plan, PLANC_MEMORY_STORAGE, stdout) : NULL;
}

static void report_fragmentation(const planc_plan *plan, const planc_fragmentation *f, cJSON *object) {
  const planc_memory *device = planc_plan_memory(plan, PLANC_MEMORY_DEVICE);
  pl_json_add_int(object, "lost_bytes", f->lost_bytes);
  if (device->chunk_bytes == 0) return;
  pl_json_add_int(object, "chunk_bytes", device->chunk_bytes);
  pl_json_add_int(object, "mappings", device->n_mappings);
  pl_json_add_bool(object, "paged", device->paged);
  pl_json_add_int(object, "lost_inside_bytes", f->inside_bytes);
  pl_json_add_int(object, "lost_inside_bound_bytes", f->bound_bytes);
  pl_json_add_int(object, "lost_shared_bytes", f->shared_bytes);
}

static void print_fragmentation(const planc_plan *plan, const planc_fragmentation *f) {
  char a[PL_SIZE_TEXT], b[PL_SIZE_TEXT];
  const planc_memory *device = planc_plan_memory(plan, PLANC_MEMORY_DEVICE);
  if (device->chunk_bytes == 0) return;
  if (device->paged) {
    printf("pages of %s, %d mappings\n", pl_size_format(device->chunk_bytes, a), device->n_mappings);
    return;
  }
  printf("virtual memory in chunks of %s, %d mappings; ", pl_size_format(device->chunk_bytes, a), device->n_mappings);
  printf("at most %s lost inside chunks, bound %s of %lld chunks, ", pl_size_format(f->inside_bytes, a),
         pl_size_format(f->bound_bytes, b), (long long)f->most_at_once);
  printf("and %s in shared ones\n", pl_size_format(f->shared_bytes, a));
}

/* --- Lifespans ---------------------------------------------------------------------------------------------------- */

static void report_lifespans(const planc_lifespans *lifespans, cJSON *object);
static void print_lifespans(const planc_lifespans *lifespans);

static planc_status show_lifespans(const planc_plan *plan, bool json) {
  planc_lifespans *lifespans;
  planc_status status = NULL;
  PLANC_TRY(planc_lifespans_of(plan, &lifespans));
  if (json) {
    cJSON *object = cJSON_CreateObject();
    pl_json_add_string(object, "planc", "show/1");
    pl_json_add_string(object, "plan", plan->name);
    report_lifespans(lifespans, object);
    status = prog_print_json(stdout, object);
  } else {
    print_lifespans(lifespans);
  }
  planc_lifespans_free(lifespans);
  return status;
}

static void report_lifespans(const planc_lifespans *lifespans, cJSON *object) {
  cJSON *rows = pl_json_add_array(object, "lifespans");
  for (int32_t j = 0; j < lifespans->n_jobs; j++) {
    for (int32_t c = PLANC_TENSOR_KEPT + 1; c < PLANC_N_TENSOR_CLASSES; c++) {
      const planc_lifespan *of = &lifespans->of[j][c];
      cJSON *row = pl_json_add_object(rows, NULL);
      pl_json_add_int(row, "job", j);
      pl_json_add_string(row, "class", planc_tensor_class_name((planc_tensor_class)c));
      pl_json_add_int(row, "tensors", of->n);
      pl_json_add_int(row, "bytes", of->bytes);
      pl_json_add_int(row, "mean_ns", of->mean_ns);
      pl_json_add_int(row, "median_ns", of->median_ns);
      pl_json_add_int(row, "longest_ns", of->longest_ns);
    }
  }
}

static void print_lifespans(const planc_lifespans *lifespans) {
  printf("%-5s  %-12s %8s %12s %14s %14s %14s\n", "job", "lifespans of", "tensors", "bytes", "mean", "median",
         "longest");
  for (int32_t j = 0; j < lifespans->n_jobs; j++) {
    for (int32_t c = PLANC_TENSOR_KEPT + 1; c < PLANC_N_TENSOR_CLASSES; c++) {
      const planc_lifespan *of = &lifespans->of[j][c];
      char bytes[PL_SIZE_TEXT], mean[PL_SIZE_TEXT], median[PL_SIZE_TEXT], longest[PL_SIZE_TEXT];
      printf("%-5d  %-12s %8lld %12s %14s %14s %14s\n", j, planc_tensor_class_name((planc_tensor_class)c),
             (long long)of->n, pl_size_format(of->bytes, bytes), pl_time_format(of->mean_ns, mean),
             pl_time_format(of->median_ns, median), pl_time_format(of->longest_ns, longest));
    }
  }
}
