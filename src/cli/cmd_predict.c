/* `planc predict`: how long ops take that were never run; and the models that say so. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "planc/predict.h"
#include "program/print.h"
#include "util/arena.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/label.h"
#include "util/size.h"

static const prog_option options[] = {
    {"device", 'd', "NAME|FILE", "device description, or model of a device (default: the graph's header, else h100)"},
    {"batch", 'b', "N", "largest batch to predict (default: the graph's header, else 32)"},
    {"load", 0, "SHARE", "share of the time that others keep the device busy, 0 to 1 (default: 0)"},
    {"profile", 'p', "FILE", "take algorithms and workspaces from this profile, and predict their times"},
    {"output", 'o', "FILE",
     "the profile or model, - for standard output (default: predicted.json, with --fit model.json)"},
    {"optimizer", 0, "NAME",
     "sgd, momentum or adam, where a graph has no backward ops (default: its header's, else sgd)"},
    {"inference", 0, NULL, "take graphs as they stand, without deriving training"},
    {"fit", 0, NULL, "fit a model to measured profiles, the operands"},
    {"graphs", 0, "GRAPH,...", "with --fit: the graphs that were measured, in the order of the profiles"},
    {"name", 0, "NAME", "with --fit: of the device in the model (default: the first profile's)"},
    {"json", 0, NULL, "what was done as one line of JSON"},
    {0},
};

static planc_status run(const prog_arguments *arguments);
static planc_status list_files(const prog_arguments *arguments, prog_used_files *files);
static planc_status fit(const prog_arguments *arguments);
static planc_status predict(const prog_arguments *arguments);

const prog_subcommand cli_cmd_predict = {
    {"predict", "GRAPH | --fit PROFILE...", "predict how long ops take that were never run", options, 1,
     PROG_MAX_OPERANDS},
    run,
    list_files};

static planc_status run(const prog_arguments *arguments) {
  return prog_option_given(arguments, "fit") ? fit(arguments) : predict(arguments);
}

/* --- Files -------------------------------------------------------------------------------------------------------- */

enum { PATH_ROOM = 4096 };

/* The next path of --graphs; *at is NULL behind the last one. */
static planc_status next_path(const char **at, char out[PATH_ROOM]) {
  size_t length = strcspn(*at, ",");
  if (length == 0 || length >= PATH_ROOM) return planc_error(PLANC_USAGE, "--graphs takes paths with commas");
  memcpy(out, *at, length);
  out[length] = '\0';
  *at = (*at)[length] ? *at + length + 1 : NULL;
  return NULL;
}

static const char *output_of(const prog_arguments *arguments) {
  const char *output = prog_option_value(arguments, "output");
  return output ? output : prog_option_given(arguments, "fit") ? "model.json" : "predicted.json";
}

static planc_status list_files(const prog_arguments *arguments, prog_used_files *files) {
  for (int32_t i = 0; i < arguments->n_operands; i++) PLANC_TRY(prog_used_files_read(files, arguments->operands[i]));
  PLANC_TRY(prog_used_files_read(files, prog_option_value(arguments, "profile")));
  for (const char *at = prog_option_value(arguments, "graphs"); at;) {
    char path[PATH_ROOM];
    PLANC_TRY(next_path(&at, path));
    PLANC_TRY(prog_used_files_read(files, path));
  }
  return prog_used_files_write(files, output_of(arguments));
}

/* --- Fitting ------------------------------------------------------------------------------------------------------ */

typedef struct fitting {
  pl_arena memory;
  const prog_arguments *arguments;
  int32_t n;
  planc_fit_case *cases;
  planc_graph **graphs;
  planc_profile **profiles;
  planc_profile *device; /* of --device, or NULL */
  planc_model *model;
  planc_fit_report report;
  int64_t took_ns;
} fitting;

static planc_status read_cases(fitting *f);
static planc_status read_graphs(fitting *f);
static planc_status fit_and_write(fitting *f);
static planc_status report_fit(const fitting *f, const char *output);
static void report_error_json(cJSON *object, const char *key, const planc_fit_error *error);
static void print_error(const char *what, const planc_fit_error *error);

static planc_status fit(const prog_arguments *arguments) {
  static const char *const predicting_only[] = {"batch", "load", "profile"};
  for (size_t i = 0; i < sizeof predicting_only / sizeof *predicting_only; i++)
    if (prog_option_given(arguments, predicting_only[i]))
      return planc_error(PLANC_USAGE, "--fit and --%s exclude each other", predicting_only[i]);
  const char *name = prog_option_value(arguments, "name"), *fault = name ? pl_label_fault(name) : NULL;
  if (fault) return planc_error(PLANC_USAGE, "--name: %s", fault);
  fitting f = {.arguments = arguments};
  planc_status status = read_cases(&f);
  if (!status) status = fit_and_write(&f);
  for (int32_t i = 0; i < f.n; i++) {
    if (f.graphs) planc_graph_free(f.graphs[i]);
    if (f.profiles) planc_profile_free(f.profiles[i]);
  }
  planc_model_free(f.model);
  planc_profile_free(f.device);
  pl_arena_free(&f.memory);
  return status;
}

static planc_status read_cases(fitting *f) {
  const prog_arguments *arguments = f->arguments;
  const char *device = prog_option_value(arguments, "device");
  f->n = arguments->n_operands;
  PLANC_TRY(PL_NEW(&f->memory, &f->cases, f->n));
  PLANC_TRY(PL_NEW(&f->memory, &f->graphs, f->n));
  PLANC_TRY(PL_NEW(&f->memory, &f->profiles, f->n));
  PLANC_TRY(read_graphs(f));
  for (int32_t i = 0; i < f->n; i++) {
    PLANC_TRY(planc_profile_read(arguments->operands[i], &f->profiles[i]));
    f->cases[i] = (planc_fit_case){f->graphs[i], f->profiles[i], arguments->operands[i]};
  }
  return device ? cli_setup_device(arguments, device, &f->device) : NULL;
}

/* The graphs of --graphs, as many as there are profiles. */
static planc_status read_graphs(fitting *f) {
  const prog_arguments *arguments = f->arguments;
  const char *list = prog_option_value(arguments, "graphs"), *optimizer = prog_option_value(arguments, "optimizer");
  bool inference = prog_option_given(arguments, "inference");
  int32_t n = 0;
  for (const char *at = list; at; n++) {
    char path[PATH_ROOM];
    const char *derived;
    if (n == f->n) return planc_error(PLANC_USAGE, "--graphs names more than the %d profiles", f->n);
    PLANC_TRY(next_path(&at, path));
    PLANC_TRY(planc_graph_prepare(path, optimizer, inference, &f->graphs[n], &derived));
  }
  return n == f->n ? NULL : planc_error(PLANC_USAGE, "--graphs must name the graph of each profile, in their order");
}

static planc_status fit_and_write(fitting *f) {
  const planc_profile *base = f->device ? f->device : f->profiles[0];
  const char *output = output_of(f->arguments);
  char *text;
  size_t length;
  int64_t began_ns = pl_now_ns();
  PLANC_TRY(planc_model_fit(base, f->cases, f->n, &f->model, &f->report));
  f->took_ns = pl_now_ns() - began_ns;
  PLANC_TRY(planc_model_print(base, f->model, prog_option_value(f->arguments, "name"), &text, &length));
  planc_status status = pl_file_write(output, text, length);
  free(text);
  return status ? status : report_fit(f, output);
}

static planc_status report_fit(const fitting *f, const char *output) {
  const planc_fit_report *r = &f->report;
  char text[PL_SIZE_TEXT];
  if (strcmp(output, "-") == 0) return NULL;
  if (prog_option_given(f->arguments, "json")) {
    cJSON *object = cJSON_CreateObject();
    pl_json_add_string(object, "planc", "predict-fit/1");
    pl_json_add_int(object, "groups", r->n_groups);
    pl_json_add_int(object, "times", r->n_times);
    report_error_json(object, "held_out_ops", &r->ops);
    if (r->n_graphs > 1) report_error_json(object, "held_out_graphs", &r->graphs);
    pl_json_add_int(object, "repeated", r->n_repeated);
    pl_json_add_int(object, "repeat_median_ppm", r->repeat_median_ppm);
    pl_json_add_int(object, "fit_ns", f->took_ns);
    return prog_print_json(stdout, object);
  }
  prog_print_text(stdout, output);
  printf(": %d types and algorithms from %" PRId64 " times, fitted and judged in %s\n", r->n_groups, r->n_times,
         pl_time_format(f->took_ns, text));
  print_error("ops held out", &r->ops);
  if (r->n_graphs > 1) print_error("graphs held out", &r->graphs);
  printf("  measurements of one shape differ by %.1f %%, median of %" PRId64 " times\n",
         (double)r->repeat_median_ppm / 1e4, r->n_repeated);
  return NULL;
}

static void report_error_json(cJSON *object, const char *key, const planc_fit_error *error) {
  cJSON *json = pl_json_add_object(object, key);
  pl_json_add_int(json, "n", error->n);
  pl_json_add_int(json, "unknown", error->n_unknown);
  pl_json_add_int(json, "median_ppm", error->median_ppm);
  pl_json_add_int(json, "p90_ppm", error->p90_ppm);
  pl_json_add_int(json, "roofline_median_ppm", error->roofline_median_ppm);
}

static void print_error(const char *what, const planc_fit_error *error) {
  printf("  %-20s median error %5.1f %%, 90 %% below %5.1f %%; roofline %5.1f %%; %" PRId64 " times", what,
         (double)error->median_ppm / 1e4, (double)error->p90_ppm / 1e4, (double)error->roofline_median_ppm / 1e4,
         error->n);
  if (error->n_unknown > 0) printf(", %" PRId64 " more not predicted", error->n_unknown);
  printf("\n");
}

/* --- Predicting --------------------------------------------------------------------------------------------------- */

enum { MAX_BATCHES = 64 };

typedef struct predicting {
  const prog_arguments *arguments;
  planc_graph *graph;
  planc_profile *device, *listed;
  int64_t batches[MAX_BATCHES];
  planc_predict_options options;
  planc_predicted_costs *costs;
  int64_t took_ns;
} predicting;

static planc_status read_problem(predicting *p);
static planc_status choose_batches(predicting *p);
static planc_status predict_and_write(predicting *p);
static planc_status report_prediction(const predicting *p, const char *output);
static int64_t total_ns(const planc_predicted_costs *of);

static planc_status predict(const prog_arguments *arguments) {
  static const char *const fitting_only[] = {"graphs", "name"};
  for (size_t i = 0; i < sizeof fitting_only / sizeof *fitting_only; i++)
    if (prog_option_given(arguments, fitting_only[i]))
      return planc_error(PLANC_USAGE, "--%s needs --fit", fitting_only[i]);
  if (arguments->n_operands > 1) return planc_error(PLANC_USAGE, "predict takes one graph");
  predicting p = {.arguments = arguments};
  planc_status status = read_problem(&p);
  if (!status) status = predict_and_write(&p);
  planc_predicted_costs_free(p.costs);
  planc_profile_free(p.device);
  planc_profile_free(p.listed);
  planc_graph_free(p.graph);
  return status;
}

static planc_status read_problem(predicting *p) {
  const prog_arguments *arguments = p->arguments;
  const char *listed = prog_option_value(arguments, "profile");
  bool inference = prog_option_given(arguments, "inference");
  PLANC_TRY(cli_setup_share(arguments, "load", 1, 0, &p->options.load_ppm));
  PLANC_TRY(cli_setup_graph(arguments->operands[0], prog_option_value(arguments, "optimizer"), inference, CLI_AS_IT_IS,
                            &p->graph));
  PLANC_TRY(cli_setup_device_for(arguments, p->graph, &p->device));
  if (!planc_profile_model(p->device))
    cli_note("device %s has no model: times are those of its constants", planc_profile_device(p->device)->name);
  if (listed) PLANC_TRY(cli_setup_measured(listed, p->graph, &p->listed));
  p->options.graph = p->graph;
  p->options.profile = p->device;
  p->options.listed = p->listed;
  return choose_batches(p);
}

/* Between powers of two times are linear in the batch to what a prediction can tell. */
static planc_status choose_batches(predicting *p) {
  int64_t batch;
  PLANC_TRY(prog_option_int(p->arguments, "batch", 1, INT32_MAX, 0, &batch));
  PLANC_TRY(cli_setup_batch(p->graph, "--batch", batch, &batch));
  p->options.batches = p->batches;
  for (int64_t b = planc_graph_has_samples(p->graph) ? 1 : batch; b < batch; b *= 2)
    p->batches[p->options.n_batches++] = b;
  p->batches[p->options.n_batches++] = batch;
  return NULL;
}

static planc_status predict_and_write(predicting *p) {
  const char *output = output_of(p->arguments);
  char *text;
  size_t length;
  int64_t began_ns = pl_now_ns();
  PLANC_TRY(planc_predict(&p->options, &p->costs));
  p->took_ns = pl_now_ns() - began_ns;
  PLANC_TRY(planc_predicted_costs_print(p->costs, &text, &length));
  planc_status status = pl_file_write(output, text, length);
  free(text);
  return status ? status : report_prediction(p, output);
}

static planc_status report_prediction(const predicting *p, const char *output) {
  const planc_predicted_costs *of = p->costs;
  int64_t batch = of->batches[of->n_batches - 1];
  char a[PL_SIZE_TEXT], b[PL_SIZE_TEXT], c[CLI_BATCH_TEXT];
  if (strcmp(output, "-") == 0) return NULL;
  if (prog_option_given(p->arguments, "json")) {
    cJSON *object = cJSON_CreateObject();
    pl_json_add_string(object, "planc", "predict/1");
    pl_json_add_string(object, "device", planc_profile_device(p->device)->name);
    pl_json_add_int(object, "ops", p->graph->n_ops);
    pl_json_add_int(object, "modelled", of->n_modelled);
    pl_json_add_int(object, "load_ppm", of->load_ppm);
    cli_report_batch(object, p->graph, batch);
    pl_json_add_int(object, "compute_ns", total_ns(of));
    pl_json_add_int(object, "predict_ns", p->took_ns);
    return prog_print_json(stdout, object);
  }
  prog_print_text(stdout, output);
  printf(": %d ops on %s, %d of them by its model, predicted in %s\n", p->graph->n_ops,
         planc_profile_device(p->device)->name, of->n_modelled, pl_time_format(p->took_ns, a));
  printf("  compute   %s at %s, with the fastest algorithms\n", pl_time_format(total_ns(of), b),
         cli_batch_format(p->graph, batch, c));
  return NULL;
}

/* The time of an iteration of the largest batch with the fastest algorithm of every op. */
static int64_t total_ns(const planc_predicted_costs *of) {
  int64_t sum = 0;
  for (int32_t o = 0; o < of->graph->n_ops; o++) {
    const int32_t *first = &of->first[(int64_t)o * of->n_batches + of->n_batches - 1];
    int64_t least = INT64_MAX;
    for (int32_t v = first[0]; v < first[1]; v++)
      if (of->variants[v].time_ns < least) least = of->variants[v].time_ns;
    if (first[1] > first[0] && __builtin_add_overflow(sum, least, &sum)) return INT64_MAX;
  }
  return sum;
}
