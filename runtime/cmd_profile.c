/* `planrun profile`: measures a graph's ops, the links and the launches on this machine.
 *
 * What has been measured is kept piece by piece beside the output (runtime/profile_part.h). An interrupted profile goes
 * on from there. */
#define _DEFAULT_SOURCE /* SA_RESTART */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cost/json.h"
#include "planc/cost.h"
#include "planc/version.h"
#include "planrt/planrt.h"
#include "runtime/cli.h"
#include "runtime/profile_file.h"
#include "runtime/profile_part.h"
#include "util/file.h"
#include "util/json_tree.h"
#include "util/progress.h"
#include "util/size.h"

static const planc_option options[] = {
    {"batches", 'b', "N,N,...", "batches to measure (default: the graph's header, else 32)"},
    {"output", 'o', "FILE", "the profile, - for standard output (default: profile.json)"},
    {"name", 0, "NAME", "of the device in the profile (default: the backend's name)"},
    {"backend", 0, "NAME", "what to measure: host (default) or cuda"},
    {"deviceless", 0, "DEVICE", "instead of measuring list the algorithms that the CUDA libraries have for DEVICE"},
    {"deterministic", 0, NULL, "only algorithms that give the same bits every time"},
    {"optimizer", 0, "NAME", "sgd, momentum or adam, where the graph has no backward ops"},
    {"inference", 0, NULL, "measure the graph as it stands, without deriving training"},
    {"most", 0, "N", "algorithms of each op, the best by the library's own ranking; 0: all (default 8, listed 0)"},
    {"repetitions", 'r', "N", "iterations measured with each algorithm (default 5)"},
    {"warm-up", 0, "MS", "run iterations for so long before those that are measured (default 1000, host 0)"},
    {"link", 0, "RATE", "pace copies between host and device, as exec does"},
    {"loads", 0, "N,N,...", "measure ops also while every processor is kept busy for this many per cent of the time"},
    {0},
};

enum { FALLBACK_BATCH = 32, MOST_BATCHES = 64, MOST_LOADS = 16, PERCENT = 10000 };
/* A GPU's clocks rise within some tenths of a second of work, and settle where power and heat allow. */
enum { MOST_MEASURED = 8, WARM_UP_MS = 1000, MS = 1000000 };

typedef struct profiling {
  const char *output;
  planc_graph *graph;
  int32_t n_batches, n_loads;
  int64_t batches[MOST_BATCHES], loads[MOST_LOADS + 1]; /* ppm; the first is 0 */
  int64_t repetitions, most, warm_up_ms, link_bytes_per_s;
  const planrt_backend *backend;
  const char *deviceless; /* the device that is described, or NULL */
  bool deterministic;
  planrt_device_info info;
  char machine[512];
  const char *name;
  planrt_kept kept;
  int64_t loaded_bytes; /* of code, by this process */
  cJSON *reasons;       /* for which ops have been left out: the keys of an object */
  cJSON *refused;       /* algorithms in the pass that runs: an array */
  char doing[64];
} profiling;

static volatile sig_atomic_t interrupted;

static void interrupt(int number) {
  interrupted = number;
}

/* --- Command line ----------------------------------------------------------------------------------------------- */

static planc_status read_list(const planc_arguments *arguments, const char *name, int64_t most, int32_t room,
                              int64_t *out, int32_t *out_count) {
  const char *text = planc_option_value(arguments, name);
  *out_count = 0;
  while (text) {
    char *end;
    errno = 0;
    int64_t value = strtoll(text, &end, 10);
    if (end == text || (*end && *end != ',') || errno || value < 1 || value > most)
      return planc_error(PLANC_USAGE, "--%s takes integers from 1 to %lld, with commas between them", name,
                         (long long)most);
    for (int32_t i = 0; i < *out_count; i++)
      if (out[i] == value) return planc_error(PLANC_USAGE, "--%s names %lld twice", name, (long long)value);
    if (*out_count == room) return planc_error(PLANC_USAGE, "--%s takes %d at most", name, room);
    out[(*out_count)++] = value;
    text = *end ? end + 1 : NULL;
  }
  return NULL;
}

/* A link that cannot be paced is told before anything is measured. */
static planc_status try_link(const profiling *p) {
  planrt_device *device;
  planrt_device_options how = {.link_bytes_per_s = p->link_bytes_per_s};
  if (p->link_bytes_per_s == 0) return NULL;
  PLANC_TRY(p->backend->open(&how, &device));
  p->backend->close(device);
  return NULL;
}

/* What a profile holds for. */
static planc_status describe_machine(profiling *p) {
  PLANC_TRY(p->backend->info(&p->info));
  snprintf(p->machine, sizeof p->machine, "%s, %d processors, %s, planrun %s", p->info.device, p->info.processors,
           p->info.versions, PLANC_VERSION);
  return NULL;
}

/* A described device is the CUDA libraries'; nothing on it is measured. */
static planc_status find_backend(profiling *p, const planc_arguments *arguments) {
  static const char *const measuring[] = {"backend", "name", "repetitions", "warm-up", "link", "loads"};
  const char *name = planc_option_value(arguments, "backend");
  p->deviceless = planc_option_value(arguments, "deviceless");
  for (size_t i = 0; p->deviceless && i < sizeof measuring / sizeof *measuring; i++)
    if (planc_option_given(arguments, measuring[i]))
      return planc_error(PLANC_USAGE, "--deviceless and --%s exclude each other", measuring[i]);
  PLANC_TRY(planrt_backend_find(p->deviceless ? "cuda" : name ? name : "host", &p->backend));
  bool host = p->backend == &planrt_host_backend;
  PLANC_TRY(planc_option_int(arguments, "most", 0, INT32_MAX, p->deviceless ? 0 : MOST_MEASURED, &p->most));
  PLANC_TRY(planc_option_int(arguments, "warm-up", 0, 60000, host ? 0 : WARM_UP_MS, &p->warm_up_ms));
  if (p->deviceless) return NULL;
  PLANC_TRY(try_link(p));
  return describe_machine(p);
}

static bool to_standard_output(const profiling *p) {
  return strcmp(p->output, "-") == 0;
}

static planc_status read_arguments(profiling *p, const planc_arguments *arguments) {
  const char *output = planc_option_value(arguments, "output"), *name = planc_option_value(arguments, "name");
  p->output = output ? output : "profile.json";
  p->name = name ? name : planc_option_value(arguments, "backend");
  if (!p->name) p->name = "host";
  const char *fault = name ? planc_label_fault(name) : NULL;
  if (fault) return planc_error(PLANC_USAGE, "--name: %s", fault);
  PLANC_TRY(planc_file_probe(p->output));
  PLANC_TRY(read_list(arguments, "batches", INT32_MAX, MOST_BATCHES, p->batches, &p->n_batches));
  PLANC_TRY(read_list(arguments, "loads", 100, MOST_LOADS, p->loads + 1, &p->n_loads));
  for (int32_t i = 1; i <= p->n_loads; i++) p->loads[i] *= PERCENT;
  p->n_loads++;
  PLANC_TRY(planc_option_int(arguments, "repetitions", 1, 1000, 5, &p->repetitions));
  PLANC_TRY(planrt_option_rate(arguments, "link", &p->link_bytes_per_s));
  p->deterministic = planc_option_given(arguments, "deterministic");
  return find_backend(p, arguments);
}

static planc_status read_graph(profiling *p, const planc_arguments *arguments) {
  const char *derived;
  PLANC_TRY(planc_graph_prepare(arguments->operands[0], planc_option_value(arguments, "optimizer"),
                                planc_option_given(arguments, "inference"), &p->graph, &derived));
  if (derived)
    fprintf(stderr, "planrun: note: %s has no backward ops: %s for training with %s\n", arguments->operands[0],
            p->deviceless ? "listed" : "measured", derived);
  if (p->n_batches > 0) return NULL;
  p->n_batches = 1;
  p->batches[0] = p->graph->batch > 0 ? p->graph->batch : FALLBACK_BATCH;
  fprintf(stderr, "planrun: note: batch %lld (%s)\n", (long long)p->batches[0],
          p->graph->batch > 0 ? "the graph's header" : "the fall-back");
  return NULL;
}

/* --- Pieces ----------------------------------------------------------------------------------------------------- */

/* What pieces belong to; another line means that they were measured otherwise. Malloc'ed. */
static planc_status describe_pieces(const profiling *p, char **out) {
  size_t length;
  cJSON *object = cJSON_CreateObject();
  planc_json_add_string(object, "planrun", "profile/2");
  planrt_add_graph_hash(object, p->graph);
  planc_json_add_string(object, "machine", p->machine);
  planc_json_add_int(object, "repetitions", p->repetitions);
  planc_json_add_int(object, "most", p->most);
  planc_json_add_int(object, "warm_up_ms", p->warm_up_ms);
  planc_json_add_int(object, "link_bytes_per_second", p->link_bytes_per_s);
  if (p->deterministic) planc_json_add_bool(object, "deterministic", true);
  planc_status status = planc_json_print(object, PLANC_JSON_LINE, out, &length);
  cJSON_Delete(object);
  return status;
}

static bool has_links(const profiling *p) {
  const cJSON *piece;
  cJSON_ArrayForEach(piece, p->kept.pieces) {
    if (planrt_piece_is_of_links(piece)) return true;
  }
  return false;
}

/* --- Measuring -------------------------------------------------------------------------------------------------- */

/* What is measured now, for those who are told of it. */
typedef struct measuring {
  profiling *p;
  int64_t load_ppm, batch;
  planrt_memory_taken taken; /* its code is the pass's */
} measuring;

static void note_refused(void *user, const char *op, const char *algorithm, planc_status why) {
  const measuring *m = user;
  cJSON *refusal = cJSON_CreateObject();
  planc_progress_end(stderr);
  fprintf(stderr, "planrun: note: op %s: %s cannot be run and is left out: %s\n", op, algorithm,
          planc_status_message(why));
  planc_json_add_string(refusal, "op", op);
  planc_json_add_string(refusal, "algorithm", algorithm);
  planc_json_add_int(refusal, "batch", m->batch);
  planc_json_add_string(refusal, "reason", planc_status_message(why));
  planc_json_add(m->p->refused, NULL, refusal);
}

static planc_status keep_pass(void *user, const planrt_pass *pass) {
  measuring *m = user;
  profiling *p = m->p;
  cJSON *piece = planrt_piece_of_ops(p->graph, m->load_ppm, m->batch, pass->times, m->load_ppm > 0 ? NULL : &m->taken);
  m->taken.code.len = 0;
  planrt_piece_of_pass(piece, pass->number, pass->of, p->refused);
  cJSON_Delete(p->refused);
  p->refused = cJSON_CreateArray();
  return planrt_kept_add(&p->kept, piece);
}

static void show_pass(void *user, int32_t done, int32_t of) {
  planc_progress(stderr, "%s: pass %d of %d", ((const measuring *)user)->p->doing, done + 1, of);
}

static planrt_op_options options_of(const profiling *p, int64_t batch) {
  return (planrt_op_options){.backend = p->backend,
                             .graph = p->graph,
                             .batch = batch,
                             .deterministic = p->deterministic,
                             .repetitions = (int32_t)p->repetitions,
                             .warm_ns = p->warm_up_ms * MS,
                             .most = (int32_t)p->most,
                             .stop = &interrupted};
}

/* From pass `first` on. */
static planc_status measure_batch(profiling *p, int64_t load_ppm, int64_t batch, int32_t first) {
  planrt_background *background;
  measuring now = {.p = p, .load_ppm = load_ppm, .batch = batch, .taken.loaded_bytes = p->loaded_bytes};
  planrt_op_options how = options_of(p, batch);
  how.first_pass = first;
  how.passed = keep_pass;
  how.progress = show_pass;
  how.refused = note_refused;
  how.user = &now;
  how.taken = load_ppm > 0 ? NULL : &now.taken;
  snprintf(p->doing, sizeof p->doing, "batch %lld, load %lld %%", (long long)batch, (long long)(load_ppm / PERCENT));
  PLANC_TRY(planrt_background_load(p->backend, load_ppm, &background));
  planc_status status = planrt_measure_ops(&how);
  planc_status stopped = planrt_background_stop(background);
  if (status)
    planc_status_free(stopped);
  else
    status = stopped;
  p->loaded_bytes = now.taken.loaded_bytes;
  VEC_FREE(&now.taken.code);
  return status;
}

/* What a run of the smallest batch costs beside its ops, each by its fastest algorithm, as plans without want of memory
 * have them. */
static planc_status measure_run(profiling *p, planrt_run_costs *out) {
  int64_t smallest = p->batches[0];
  for (int32_t i = 1; i < p->n_batches; i++)
    if (p->batches[i] < smallest) smallest = p->batches[i];
  planrt_op_options how = options_of(p, smallest);
  planrt_op_times chosen = {0};
  planc_progress(stderr, "launches, and ops beside copies");
  planc_status status = planrt_pieces_fastest(p->kept.pieces, p->graph, smallest, &chosen);
  if (!status) status = planrt_measure_run(&how, &chosen, p->link_bytes_per_s, out);
  VEC_FREE(&chosen);
  return status;
}

static planc_status measure_links(profiling *p) {
  planrt_run_costs run;
  planrt_link_times times;
  planc_progress(stderr, "links");
  PLANC_TRY(planrt_measure_links(p->backend, p->link_bytes_per_s, &times));
  if (interrupted) return NULL;
  PLANC_TRY(measure_run(p, &run));
  return interrupted ? NULL : planrt_kept_add(&p->kept, planrt_piece_of_links(&times, &run));
}

static planc_status measure_all(profiling *p) {
  for (int32_t l = 0; l < p->n_loads; l++)
    for (int32_t b = 0; b < p->n_batches && !interrupted; b++) {
      int32_t next = planrt_pieces_next_pass(p->kept.pieces, p->loads[l], p->batches[b]);
      if (next >= 0) PLANC_TRY(measure_batch(p, p->loads[l], p->batches[b], next));
    }
  return interrupted || has_links(p) ? NULL : measure_links(p);
}

/* --- The profile ------------------------------------------------------------------------------------------------ */

static void show_workspaces(void *user, int32_t done, int32_t of) {
  (void)user;
  planc_progress(stderr, "workspaces: batch %d of %d", done + 1, of);
}

static planc_status ask_workspaces(const profiling *p, cJSON *tree, const planrt_batches *batches) {
  planrt_device *device;
  PLANC_TRY(planrt_list_open(p->backend, p->deterministic, &device));
  planrt_list_options how = {.backend = p->backend, .device = device, .graph = p->graph, .stop = &interrupted};
  planc_status status = planrt_profile_add_workspaces(tree, &how, batches);
  p->backend->close(device);
  return status;
}

static planc_status add_workspaces(const profiling *p, cJSON *tree) {
  planrt_batches batches;
  planc_status status = planrt_round_sizes(p->n_batches, p->batches, &batches);
  batches.slow = true;
  batches.progress = show_workspaces;
  if (!status) status = ask_workspaces(p, tree, &batches);
  free(batches.sizes);
  planc_progress_end(stderr);
  return status;
}

/* Only a profile that planc can read leaves. */
static planc_status write_tree(const profiling *p, cJSON *tree) {
  char *text;
  size_t length;
  PLANC_TRY(planc_json_print(tree, PLANC_JSON_LINES, &text, &length));
  planc_profile *read = NULL;
  planc_status status = planc_profile_parse(text, length, p->output, &read);
  planc_profile_free(read);
  if (!status) status = planc_file_write(p->output, text, length);
  free(text);
  return status;
}

/* Beside the profile: by them a card's algorithms can be listed where it is not. */
static planc_status write_properties(const profiling *p) {
  char *text, path[4096];
  size_t length = strlen(p->output);
  if (length > 5 && strcmp(p->output + length - 5, ".json") == 0) length -= 5;
  if (!p->backend->properties || to_standard_output(p)) return NULL;
  if (snprintf(path, sizeof path, "%.*s.properties.json", (int)length, p->output) >= (int)sizeof path)
    return planc_error(PLANC_USAGE, "%s: path too long", p->output);
  PLANC_TRY(planrt_properties_print(p->backend, &text));
  planc_status status = planc_file_write(path, text, strlen(text));
  free(text);
  return status;
}

static planc_status write_measured(const profiling *p) {
  planrt_profile_head head = {.name = p->name,
                              .machine = p->machine,
                              .memory_bytes = p->info.memory_bytes,
                              .processors = p->backend == &planrt_host_backend ? 1 : p->info.processors};
  cJSON *tree;
  PLANC_TRY(planrt_profile_compose(&head, p->graph, p->kept.pieces, &tree));
  planc_status status = add_workspaces(p, tree);
  if (!status && !interrupted) status = write_tree(p, tree);
  cJSON_Delete(tree);
  if (status || interrupted) return status;
  PLANC_TRY(write_properties(p));
  return planrt_kept_remove(&p->kept);
}

static planc_status profile_measured(profiling *p) {
  char *head;
  PLANC_TRY(describe_pieces(p, &head));
  planc_status status = planrt_kept_open(&p->kept, to_standard_output(p) ? NULL : p->output, head);
  free(head);
  int32_t found = cJSON_GetArraySize(p->kept.pieces);
  if (!status && found > 0)
    fprintf(stderr, "planrun: note: going on from %s, which has %d measured parts\n", p->kept.path, found);
  if (!status) status = measure_all(p);
  planc_progress_end(stderr);
  PLANC_TRY(status);
  if (!interrupted) PLANC_TRY(write_measured(p));
  if (interrupted && p->kept.path && access(p->kept.path, F_OK) == 0)
    fprintf(stderr, "planrun: interrupted; the same command goes on from %s\n", p->kept.path);
  return NULL;
}

static void show_listing(void *user, int32_t done, int32_t of) {
  planc_progress(stderr, "%s: batch %d of %d", ((const profiling *)user)->deviceless, done + 1, of);
}

/* Once for each reason: what holds for one convolution holds for all. */
static void show_left_out(void *user, const char *op, planc_status why) {
  profiling *p = user;
  const char *reason = planc_status_message(why);
  if (cJSON_HasObjectItem(p->reasons, reason)) return;
  planc_json_add_bool(p->reasons, reason, true);
  planc_progress_end(stderr);
  fprintf(stderr, "planrun: note: op %s, and every other of which that holds, is left out: %s\n", op, reason);
}

static planc_status profile_described(profiling *p) {
  planrt_described_options how = {.backend = p->backend,
                                  .device = p->deviceless,
                                  .graph = p->graph,
                                  .n_batches = p->n_batches,
                                  .batches = p->batches,
                                  .deterministic = p->deterministic,
                                  .most = (int32_t)p->most,
                                  .stop = &interrupted,
                                  .progress = show_listing,
                                  .refused = show_left_out,
                                  .user = p};
  cJSON *tree;
  planc_status status = planrt_profile_described(&how, &tree);
  planc_progress_end(stderr);
  if (!status && tree) status = write_tree(p, tree);
  cJSON_Delete(tree);
  return status;
}

static planc_status profile(profiling *p, const planc_arguments *arguments) {
  PLANC_TRY(read_arguments(p, arguments));
  PLANC_TRY(read_graph(p, arguments));
  return p->deviceless ? profile_described(p) : profile_measured(p);
}

static planc_status run(const planc_arguments *arguments) {
  profiling p = {.reasons = cJSON_CreateObject(), .refused = cJSON_CreateArray()};
  struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  planc_status status = profile(&p, arguments);
  planrt_kept_close(&p.kept);
  cJSON_Delete(p.reasons);
  cJSON_Delete(p.refused);
  planc_graph_free(p.graph);
  if (!status && interrupted) raise(interrupted);
  return status;
}

const planc_subcommand planrt_cmd_profile = {
    {"profile", "GRAPH", "measure ops, links and launches on this machine", options, 1, 1}, run};
