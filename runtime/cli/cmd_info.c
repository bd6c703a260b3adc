/* `planrun info`: backends, devices, libraries, versions. */
#include <stdio.h>
#include <stdlib.h>

#include "planc/plan.h"
#include "planc/version.h"
#include "program/print.h"
#include "runtime/backend.h"
#include "runtime/cli/planrun.h"
#include "runtime/profile/profile_file.h"
#include "util/json_tree.h"

static const prog_option options[] = {
    {"json", 0, NULL, "one line of JSON"},
    {"properties", 0, NULL, "the GPU's properties, for --deviceless elsewhere"},
    {"links", 0, "SIZE", "copy so much each way between host and device, and tell the rates in one line of JSON"},
    {"backend", 0, "NAME", "whose links: host (default) or cuda"},
    {0},
};

static const char *const names[] = {"host", "cuda"};
enum { N_BACKENDS = sizeof names / sizeof *names };

/* A backend, and what it runs on or why it cannot. */
typedef struct info_entry {
  const char *name;
  rt_device_info info;
  int64_t free_bytes; /* of a device with memory of its own; else negative */
  planc_status missing;
} info_entry;

static planc_status run(const prog_arguments *arguments);
static planc_status print_links(const prog_arguments *arguments);
static planc_status print_properties(void);
static info_entry look_up(const char *name);
static planc_status take_want_of_memory(info_entry *e);
static planc_status print_json(const info_entry *entries);
static void print_text(const info_entry *e);

const prog_subcommand run_cmd_info = {{"info", "", "backends, devices and versions", options, 0, 0}, run, NULL};

static planc_status run(const prog_arguments *arguments) {
  if (prog_option_given(arguments, "links") && prog_option_given(arguments, "properties"))
    return planc_error(PLANC_USAGE, "--links and --properties exclude each other");
  if (prog_option_given(arguments, "links")) return print_links(arguments);
  if (prog_option_given(arguments, "backend")) return planc_error(PLANC_USAGE, "--backend goes with --links");
  if (prog_option_given(arguments, "properties")) return print_properties();
  info_entry entries[N_BACKENDS];
  planc_status status = NULL;
  for (int i = 0; i < N_BACKENDS; i++) entries[i] = look_up(names[i]);
  for (int i = 0; i < N_BACKENDS && !status; i++) status = take_want_of_memory(&entries[i]);
  if (status) {
    /* nothing is known of the backends */
  } else if (prog_option_given(arguments, "json")) {
    status = print_json(entries);
  } else {
    printf("planrun %s, plan format %d\n", PLANC_VERSION, PLANC_PLAN_VERSION);
    for (int i = 0; i < N_BACKENDS; i++) print_text(&entries[i]);
  }
  for (int i = 0; i < N_BACKENDS; i++) planc_status_free(entries[i].missing);
  return status;
}

static info_entry look_up(const char *name) {
  info_entry out = {.name = name, .free_bytes = -1};
  const planrt_backend *backend;
  int64_t total;
  out.missing = planrt_backend_find(name, &backend);
  if (!out.missing) out.missing = backend->info(&out.info);
  if (!out.missing && backend->memory) out.missing = backend->memory(&total, &out.free_bytes);
  return out;
}

/* A backend for which memory is short is not one that is missing. */
static planc_status take_want_of_memory(info_entry *e) {
  planc_status status = e->missing;
  if (planc_status_code(status) != PLANC_OUT_OF_MEMORY) return NULL;
  e->missing = NULL;
  return status;
}

static void print_text(const info_entry *e) {
  if (e->missing)
    prog_print_line(stdout, "backend %s: not available: %s", e->name, planc_status_message(e->missing));
  else
    prog_print_line(stdout, "backend %s: %s, %s; %s", e->name, e->info.device, e->info.versions, e->info.dtypes);
}

static void add_json(cJSON *array, const info_entry *e) {
  cJSON *object = cJSON_CreateObject();
  pl_json_add_string(object, "name", e->name);
  pl_json_add_bool(object, "available", !e->missing);
  if (e->missing) {
    pl_json_add_string(object, "missing", planc_status_message(e->missing));
  } else {
    pl_json_add_string(object, "device", e->info.device);
    pl_json_add_string(object, "library", e->info.versions);
    pl_json_add_string(object, "dtype", e->info.dtypes);
    pl_json_add_int(object, "memory_bytes", e->info.memory_bytes);
    if (e->free_bytes >= 0) pl_json_add_int(object, "free_bytes", e->free_bytes);
    pl_json_add_int(object, "processors", e->info.processors);
  }
  pl_json_add(array, NULL, object);
}

static planc_status print_json(const info_entry *entries) {
  cJSON *root = cJSON_CreateObject();
  pl_json_add_string(root, "planrun", "info/1");
  pl_json_add_string(root, "version", PLANC_VERSION);
  pl_json_add_int(root, "plan_format", PLANC_PLAN_VERSION);
  cJSON *array = pl_json_add_array(root, "backends");
  for (int i = 0; i < N_BACKENDS; i++) add_json(array, &entries[i]);
  return planc_context(prog_print_json(stdout, root), "info");
}

static planc_status print_properties(void) {
  const planrt_backend *backend;
  char *text;
  PLANC_TRY(planrt_backend_find("cuda", &backend));
  PLANC_TRY(rt_properties_print(backend, &text));
  printf("%s", text);
  free(text);
  return NULL;
}

static planc_status print_links(const prog_arguments *arguments) {
  const char *name = prog_option_value(arguments, "backend");
  const planrt_backend *backend;
  rt_device_info info;
  rt_link_rates rates;
  int64_t bytes;
  PLANC_TRY(prog_option_size(arguments, "links", 1, &bytes));
  PLANC_TRY(planrt_backend_find(name ? name : rt_host_backend.name, &backend));
  PLANC_TRY(backend->info(&info));
  PLANC_TRY(rt_measure_rates(backend, 0, bytes, &rates));
  cJSON *root = cJSON_CreateObject();
  pl_json_add_string(root, "planrun", "links/1");
  pl_json_add_string(root, "device", info.device);
  pl_json_add_int(root, "bytes", rates.bytes);
  pl_json_add_int(root, "h2d_bytes_per_second", rates.alone_bytes_per_s[RT_H2D]);
  pl_json_add_int(root, "d2h_bytes_per_second", rates.alone_bytes_per_s[RT_D2H]);
  pl_json_add_int(root, "both_bytes_per_second", rates.both_bytes_per_s);
  pl_json_add_int(root, "memory_bytes", rates.memory_bytes);
  pl_json_add_int(root, "memory_bytes_per_second", rates.memory_bytes_per_s);
  return planc_context(prog_print_json(stdout, root), "links");
}
