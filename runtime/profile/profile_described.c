/* Profiles of devices that are not there (profile_file.h): what a backend's libraries have for them, asked through a
 * description of the device, with times that its constants predict. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planc/cost.h"
#include "planc/version.h"
#include "runtime/profile/profile_file.h"
#include "runtime/stop.h"
#include "util/file.h"
#include "util/json_tree.h"
#include "util/locate.h"

enum { MAX_NAME = 255 };

typedef struct described {
  const rt_described_options *options;
  cJSON *description;     /* the device's profile without ops */
  planc_profile *profile; /* the same, read */
  char *properties;       /* what the libraries take */
  rt_device *device;
  rt_list_options list;
  rt_batches rounds; /* the sizes of rounds of all batches */
  char machine[MAX_NAME];
} described;

planc_status rt_properties_print(const planrt_backend *backend, char **out) {
  rt_device_info info;
  char *properties, origin[sizeof info.device + sizeof info.versions + MAX_NAME];
  PLANC_TRY(backend->info(&info));
  PLANC_TRY(backend->properties(&properties));
  snprintf(origin, sizeof origin, "dumped from a card: %s, %s", info.device, info.versions);
  cJSON *root = cJSON_CreateObject();
  pl_json_add_string(root, "planrun", "device-properties/1");
  pl_json_add_string(root, "origin", origin);
  cJSON *tree;
  planc_status status = pl_json_tree(properties, strlen(properties), NULL, &tree);
  pl_json_add(root, "properties", tree);
  free(properties);
  size_t length;
  if (!status) status = pl_json_print(root, PL_JSON_LINES, out, &length);
  cJSON_Delete(root);
  return status;
}

static planc_status make(described *d, cJSON **out);
static bool stopped(const described *d);

planc_status rt_profile_described(const rt_described_options *options, cJSON **out) {
  described d = {.options = options};
  *out = NULL;
  planc_status status = make(&d, out);
  if (status || stopped(&d)) {
    cJSON_Delete(*out);
    *out = NULL;
  }
  if (d.device) options->backend->close(d.device);
  free(d.rounds.sizes);
  cJSON_free(d.properties);
  planc_profile_free(d.profile);
  cJSON_Delete(d.description);
  return status;
}

/* --- Listing ------------------------------------------------------------------------------------------------------ */

enum { PATH_ROOM = 4096 };

static planc_status compose(described *d, cJSON **out);
static planc_status add_pieces(described *d, cJSON *pieces);
static void choose_sizes(const described *d, bool *out);
static planc_status list_batches(described *d, rt_op_times *out);
static planc_status add_chosen(described *d, const rt_op_times *listed, const bool *chosen, cJSON *pieces);
static planc_status read_description(described *d, const char *path);
static planc_status read_properties(described *d, const char *path);

static planc_status make(described *d, cJSON **out) {
  const rt_described_options *options = d->options;
  char description[PATH_ROOM], properties[PATH_ROOM];
  PLANC_TRY(pl_locate_properties(options->device, description, properties, PATH_ROOM));
  PLANC_TRY(read_description(d, description));
  PLANC_TRY(read_properties(d, properties));
  PLANC_TRY(rt_round_sizes(options->n_batches, options->batches, &d->rounds));
  rt_device_options device = {.properties = d->properties, .deterministic = options->deterministic};
  PLANC_TRY(options->backend->open(&device, &d->device));
  d->list = (rt_list_options){.backend = options->backend,
                              .device = d->device,
                              .graph = options->graph,
                              .described = d->profile,
                              .most = options->most,
                              .stop = options->stop,
                              .refused = options->refused,
                              .user = options->user};
  PLANC_TRY(compose(d, out));
  return stopped(d) ? NULL : rt_profile_add_workspaces(*out, &d->list, &d->rounds);
}

static planc_status compose(described *d, cJSON **out) {
  cJSON *pieces = cJSON_CreateArray();
  planc_status status = add_pieces(d, pieces);
  if (!status && !stopped(d)) {
    status = rt_profile_compose_described(d->description, d->machine, d->options->graph, pieces, out);
    if (!status) d->description = NULL;
  }
  cJSON_Delete(pieces);
  return status;
}

/* Times are no line in the batch, and a prediction costs nothing: all that was found has points at several sizes. */
static planc_status add_pieces(described *d, cJSON *pieces) {
  rt_op_times listed = {0};
  bool *chosen = calloc((size_t)d->rounds.n + 1, sizeof *chosen);
  if (!chosen) return planc_error(PLANC_OUT_OF_MEMORY, "profile");
  choose_sizes(d, chosen);
  planc_status status = list_batches(d, &listed);
  if (!status) status = add_chosen(d, &listed, chosen, pieces);
  VEC_FREE(&listed);
  free(chosen);
  return status;
}

static bool stopped(const described *d) {
  return rt_is_stopped(d->options->stop);
}

static void show(const described *d, int32_t done) {
  const rt_described_options *options = d->options;
  if (options->progress) options->progress(options->user, done, options->n_batches + d->rounds.n);
}

/* What there is at the batches that were asked for. */
static planc_status list_batches(described *d, rt_op_times *out) {
  const rt_described_options *options = d->options;
  for (int32_t b = 0; b < options->n_batches && !stopped(d); b++) {
    show(d, b);
    PLANC_TRY(rt_list_ops(&d->list, options->batches[b], out));
  }
  rt_list_sort(out);
  return NULL;
}

static planc_status add_piece(described *d, int64_t size, const rt_op_times *listed, cJSON *pieces) {
  rt_op_times times = {0};
  planc_status status = rt_list_again(&d->list, size, listed, &times);
  if (!status) pl_json_add(pieces, NULL, rt_piece_of_ops(d->options->graph, 0, size, &times, NULL));
  VEC_FREE(&times);
  return status;
}

static bool is_asked_for(const described *d, int64_t size) {
  for (int32_t b = 0; b < d->options->n_batches; b++)
    if (d->options->batches[b] == size) return true;
  return false;
}

/* Whether there are points at the s-th size of rounds: at what was asked for, and from there down at sizes that are
 * half of the one before or less. */
static void choose_sizes(const described *d, bool *out) {
  int64_t chosen = INT64_MAX;
  for (int32_t s = d->rounds.n; s-- > 0;) {
    int64_t size = d->rounds.sizes[s];
    out[s] = size <= chosen / 2 || is_asked_for(d, size);
    if (out[s]) chosen = size;
  }
}

static planc_status add_chosen(described *d, const rt_op_times *listed, const bool *chosen, cJSON *pieces) {
  for (int32_t s = 0; s < d->rounds.n && !stopped(d); s++) {
    show(d, d->options->n_batches + s);
    if (chosen[s]) PLANC_TRY(add_piece(d, d->rounds.sizes[s], listed, pieces));
  }
  return NULL;
}

/* --- Descriptions ------------------------------------------------------------------------------------------------- */

enum { MAX_TEXT = 256 << 20 };

static planc_status read_json(const char *path, char **out_text, cJSON **out) {
  size_t length;
  PLANC_TRY(pl_file_read_text(path, MAX_TEXT, out_text, &length));
  planc_status status = pl_json_tree(*out_text, length, NULL, out);
  if (!status) return NULL;
  free(*out_text);
  *out_text = NULL;
  return planc_context(status, "%s", path);
}

/* Of a measured profile the constants count alone. */
static void leave_constants(cJSON *description) {
  static const char *const others[] = {"graph_hash", "machine", "ops", "links", "loads", "refused", "model"};
  cJSON *origin = cJSON_GetObjectItemCaseSensitive(description, "origin");
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    cJSON_DeleteItemFromObjectCaseSensitive(description, others[i]);
    cJSON *next;
    for (cJSON *of = origin ? origin->child : NULL; of; of = next) {
      size_t length = strlen(others[i]);
      next = of->next;
      if (strncmp(of->string, others[i], length) == 0 && (!of->string[length] || of->string[length] == '.'))
        cJSON_Delete(cJSON_DetachItemViaPointer(origin, of));
    }
  }
}

static planc_status read_description(described *d, const char *path) {
  char *text = NULL;
  planc_status status = read_json(path, &text, &d->description);
  if (!text) return status;
  status = planc_profile_parse(text, strlen(text), path, &d->profile);
  free(text);
  leave_constants(d->description);
  return status;
}

/* {"planrun": "device-properties/1", "origin": "...", "properties": {...}}; the last is cuDNN's. */
static planc_status read_properties(described *d, const char *path) {
  char *text = NULL;
  cJSON *file = NULL;
  PLANC_TRY(read_json(path, &text, &file));
  free(text);
  const char *format = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(file, "planrun"));
  const char *origin = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(file, "origin"));
  const cJSON *properties = cJSON_GetObjectItemCaseSensitive(file, "properties");
  planc_status status = NULL;
  if (!format || strcmp(format, "device-properties/1") != 0 || !origin || !cJSON_IsObject(properties)) {
    status = planc_error(PLANC_BAD_INPUT, "%s: no device-properties/1 with origin and properties", path);
  } else {
    size_t length;
    status = pl_json_print(properties, PL_JSON_LINE, &d->properties, &length);
    snprintf(d->machine, sizeof d->machine, "%s without the device; properties %s; planrun %s", d->options->device,
             origin, PLANC_VERSION);
  }
  cJSON_Delete(file);
  return status;
}
