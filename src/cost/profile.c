/* Reads device descriptions and measured profiles, planc-profile(5). */
#include "cost/profile.h"

#include <stdlib.h>
#include <string.h>

#include "cost/json.h"
#include "cost/predict_model.h"
#include "cost/profile_sections.h"
#include "util/file.h"
#include "util/label.h"
#include "util/math.h"
#include "util/number_set.h"

static planc_status read_profile(const pl_json *root, planc_profile *profile);
static planc_status check_version(const pl_json *root);
static planc_status read_origins(const pl_json *at, pl_map *seen, planc_profile *profile);
static planc_status read_code(const pl_json *at, planc_profile *profile);
static planc_status read_loads(const pl_json *at, planc_profile *profile);

planc_status planc_profile_parse(const char *text, size_t length, const char *path, planc_profile **out) {
  static const char plan[] = "{\"planc-plan\":";
  *out = NULL;
  if (length >= sizeof plan - 1 && memcmp(text, plan, sizeof plan - 1) == 0)
    return planc_error(PLANC_BAD_INPUT, "%s: a profile is asked for, and this is a plan", path);
  planc_profile *profile = calloc(1, sizeof *profile);
  if (!profile) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  cJSON *tree = NULL;
  planc_status status = pl_json_parse(text, length, path, &tree);
  if (!status) status = read_profile(&(pl_json){.value = tree, .name = path}, profile);
  if (!status) status = pl_json_check_plain(text, length, path);
  cJSON_Delete(tree);
  if (status) {
    planc_profile_free(profile);
    return status;
  }
  *out = profile;
  return NULL;
}

static planc_status read_profile(const pl_json *root, planc_profile *profile) {
  enum {
    VERSION,
    MACHINE,
    DEVICE,
    COMPUTE,
    EFFICIENCY,
    MULTIPLY,
    CACHE,
    OCCUPANCY,
    TYPES,
    RATES,
    ORIGIN,
    OPS,
    LINKS,
    LOADS,
    REFUSED,
    MODEL,
    CODE,
    GRAPH_HASH,
    N
  };
  static const pl_json_key keys[N] = {
      [VERSION] = {"planc-profile", false},
      [DEVICE] = {"device", false},
      [COMPUTE] = {"compute", false},
      [EFFICIENCY] = {"efficiency", false},
      [MULTIPLY] = {"multiply", false},
      [CACHE] = {"cache", true},
      [OCCUPANCY] = {"occupancy", true},
      [TYPES] = {"types", true},
      [RATES] = {"rates", true},
      [ORIGIN] = {"origin", true},
      [OPS] = {"ops", true},
      [MACHINE] = {"machine", true},
      [LINKS] = {"links", true},
      [LOADS] = {"loads", true},
      [REFUSED] = {"refused", true},
      [MODEL] = {"model", true},
      [CODE] = {"code", true},
      [GRAPH_HASH] = {"graph_hash", true},
  };
  pl_json members[N];
  PLANC_TRY(check_version(root));
  PLANC_TRY(pl_json_members(root, keys, N, members));
  PLANC_TRY(pl_read_device(&members[DEVICE], &profile->arena, &profile->device));
  PLANC_TRY(pl_read_compute(&members[COMPUTE], &profile->compute));
  PLANC_TRY(pl_read_efficiency(&members[EFFICIENCY], profile->efficiency_ppm));
  PLANC_TRY(pl_read_multiply(&members[MULTIPLY], profile->multiply));
  if (members[CACHE].value) PLANC_TRY(pl_read_cache(&members[CACHE], &profile->cache));
  if (members[OCCUPANCY].value) PLANC_TRY(pl_read_occupancy(&members[OCCUPANCY], &profile->occupancy));
  if (members[TYPES].value) PLANC_TRY(pl_labels_read(&members[TYPES], 1, PL_PPM, &profile->arena, &profile->types));
  if (members[RATES].value)
    PLANC_TRY(pl_labels_read(&members[RATES], 1, PL_JSON_MAX, &profile->arena, &profile->rates));
  if (members[ORIGIN].value) {
    pl_map seen = {0};
    planc_status status = read_origins(&members[ORIGIN], &seen, profile);
    pl_map_free(&seen);
    PLANC_TRY(status);
  }
  profile->has_graph_hash = members[GRAPH_HASH].value != NULL;
  if (profile->has_graph_hash) PLANC_TRY(pl_json_hash(&members[GRAPH_HASH], &profile->graph_hash));
  const char *machine;
  if (members[MACHINE].value) PLANC_TRY(pl_json_string(&members[MACHINE], &machine));
  if (members[LINKS].value) PLANC_TRY(pl_check_links(&members[LINKS]));
  if (members[CODE].value) PLANC_TRY(read_code(&members[CODE], profile));
  if (members[LOADS].value) PLANC_TRY(read_loads(&members[LOADS], profile));
  if (members[REFUSED].value) PLANC_TRY(pl_check_refused(&members[REFUSED]));
  if (members[MODEL].value) PLANC_TRY(pl_model_read(&members[MODEL], &profile->model));
  if (!members[OPS].value) return NULL;
  return pl_measured_read(&members[OPS], &profile->arena, &profile->measured);
}

/* --- Origins ------------------------------------------------------------------------------------------------------ */

/* True when `dotted`, such as "device.h2d.latency_ns", leads from `root` to a value. */
static bool leads_somewhere(const cJSON *root, const char *dotted) {
  const cJSON *value = root;
  for (const char *name = dotted; value; name++) {
    size_t length = strcspn(name, ".");
    const cJSON *member = value->child;
    while (member && !(member->string && strlen(member->string) == length && !strncmp(member->string, name, length))) {
      member = member->next;
    }
    value = member;
    name += length;
    if (!*name) break;
  }
  return value != NULL;
}

static planc_status keep_origin(pl_arena *arena, const char *name, const char *text, pl_origin *out) {
  PLANC_TRY(pl_arena_strndup(arena, name, strlen(name), &out->of));
  return pl_arena_strndup(arena, text, strlen(text), &out->text);
}

static planc_status read_origins(const pl_json *at, pl_map *seen, planc_profile *profile) {
  if (!cJSON_IsObject(at->value)) return pl_json_error(at, "must be an object");
  pl_origin *origins;
  profile->n_origins = cJSON_GetArraySize(at->value);
  PLANC_TRY(PL_NEW(&profile->arena, &origins, profile->n_origins));
  profile->origins = origins;
  for (pl_json entry = pl_json_first(at); entry.value; pl_json_next(&entry)) {
    const char *text;
    PLANC_TRY(pl_json_string(&entry, &text));
    if (!leads_somewhere(at->parent->value, entry.name)) return pl_json_error(&entry, "names nothing in this file");
    size_t length = strlen(entry.name);
    if (pl_map_get(seen, entry.name, length) >= 0) return pl_json_error(&entry, "the key stands twice");
    PLANC_TRY(pl_map_put(seen, entry.name, length, entry.index));
    PLANC_TRY(keep_origin(&profile->arena, entry.name, text, &origins[entry.index]));
  }
  return NULL;
}

/* --- Code --------------------------------------------------------------------------------------------------------- */

/* A plan that runs all of it reserves their sum. */
static planc_status read_code(const pl_json *at, planc_profile *profile) {
  PLANC_TRY(pl_labels_read(at, 0, PL_JSON_MAX, &profile->arena, &profile->code));
  if (profile->code.n == 0) return pl_json_error(at, "must not be empty");
  return pl_labels_sum(&profile->code) <= PL_JSON_MAX ? NULL : pl_json_error(at, "the sum is beyond 2^53");
}

/* --- Loads -------------------------------------------------------------------------------------------------------- */

static planc_status read_load(const pl_json *at, pl_arena *arena, pl_load *out) {
  enum { LOAD, OPS, N };
  static const pl_json_key keys[N] = {{"load_ppm", false}, {"ops", false}};
  pl_json members[N];
  PLANC_TRY(pl_json_members(at, keys, N, members));
  PLANC_TRY(pl_json_int(&members[LOAD], 1, PL_PPM, &out->load_ppm));
  return pl_measured_read(&members[OPS], arena, &out->ops);
}

static planc_status read_loads(const pl_json *at, planc_profile *profile) {
  PLANC_TRY(pl_json_array(at, &profile->n_loads));
  pl_number_set seen;
  PLANC_TRY(PL_NEW(&profile->arena, &profile->loads, profile->n_loads));
  PLANC_TRY(pl_number_set_make(&profile->arena, PL_PPM + 1, &seen));
  for (pl_json item = pl_json_first(at); item.value; pl_json_next(&item)) {
    PLANC_TRY(read_load(&item, &profile->arena, &profile->loads[item.index]));
    int32_t load_ppm = (int32_t)profile->loads[item.index].load_ppm;
    if (pl_number_set_below(&seen, load_ppm) == load_ppm)
      return pl_json_error(&item, "the load of %d ppm stands twice", load_ppm);
    pl_number_set_add(&seen, load_ppm);
  }
  return NULL;
}

/* --- The whole ---------------------------------------------------------------------------------------------------- */

/* Comes before all else, which another format may have otherwise. That the key is there is checked with the others. */
static planc_status check_version(const pl_json *root) {
  for (pl_json member = pl_json_first(root); member.value; pl_json_next(&member)) {
    if (!member.name || strcmp(member.name, "planc-profile") != 0) continue;
    int64_t version;
    PLANC_TRY(pl_json_int(&member, 0, PL_JSON_MAX, &version));
    if (version == 1) return NULL;
    return pl_json_error(&member, "profile format %lld is not known; this planc reads format 1", (long long)version);
  }
  return NULL;
}

void planc_profile_free(planc_profile *profile) {
  if (!profile) return;
  pl_measured_free(&profile->measured);
  for (int32_t l = 0; l < profile->n_loads && profile->loads; l++) pl_measured_free(&profile->loads[l].ops);
  planc_model_free(profile->model);
  pl_arena_free(&profile->arena);
  free(profile);
}

planc_status pl_profile_take_rates(planc_profile *out, const planc_profile *base) {
  out->compute = base->compute;
  out->cache = base->cache;
  out->occupancy = base->occupancy;
  memcpy(out->efficiency_ppm, base->efficiency_ppm, sizeof out->efficiency_ppm);
  memcpy(out->multiply, base->multiply, sizeof out->multiply);
  PLANC_TRY(pl_labels_copy(&out->arena, &base->types, &out->types));
  return pl_labels_copy(&out->arena, &base->rates, &out->rates);
}

const planc_model *planc_profile_model(const planc_profile *profile) {
  return profile->model;
}

const planc_device *planc_profile_device(const planc_profile *profile) {
  return &profile->device;
}

planc_status planc_profile_set_launch(planc_profile *profile, int64_t launch_ns) {
  if (launch_ns < 0 || launch_ns > PLANC_LAUNCH_MAX_NS)
    return planc_error(PLANC_USAGE, "launching an op takes from 0ns to %dms", (int)(PLANC_LAUNCH_MAX_NS / 1000000));
  profile->device.launch_ns = launch_ns;
  return NULL;
}

planc_status planc_profile_set_reserved(planc_profile *profile, int64_t bytes) {
  if (bytes < 0 || bytes > profile->device.memory_bytes)
    return planc_error(PLANC_USAGE, "device %s has %lld bytes", profile->device.name,
                       (long long)profile->device.memory_bytes);
  profile->device.reserved_bytes = bytes;
  return NULL;
}

int64_t planc_profile_code(const planc_profile *profile, const char *algorithm) {
  const pl_labelled *found = pl_labels_find(&profile->code, algorithm);
  return found ? found->value : 0;
}

int64_t planc_profile_code_of_all(const planc_profile *profile) {
  return pl_labels_sum(&profile->code);
}

planc_profile_of planc_profile_is_of(const planc_profile *profile, const planc_graph *graph, int32_t *out_listed) {
  *out_listed = 0;
  for (int32_t o = 0; o < graph->n_ops; o++)
    if (pl_measured_find(&profile->measured, graph->ops[o].name)) ++*out_listed;
  if (!profile->has_graph_hash) return PLANC_OF_UNKNOWN;
  return profile->graph_hash == planc_graph_hash(graph) ? PLANC_OF_THIS : PLANC_OF_ANOTHER;
}

bool planc_profile_lists_workspace(const planc_profile *profile, const char *op, const char *algorithm, int64_t batch) {
  const pl_measured_op *measured = pl_measured_find(&profile->measured, op);
  for (int32_t v = 0; measured && v < measured->n_variants; v++)
    if (strcmp(measured->variants[v].algorithm, algorithm) == 0)
      return pl_measured_is_listed(&measured->variants[v], batch);
  return true;
}

/* --- Files -------------------------------------------------------------------------------------------------------- */

enum { MAX_FILE_BYTES = 256 << 20 };

planc_status planc_profile_read(const char *path, planc_profile **out) {
  *out = NULL;
  char *text = NULL;
  size_t length = 0;
  PLANC_TRY(pl_file_read_text(path, MAX_FILE_BYTES, &text, &length));
  planc_status status = planc_profile_parse(text, length, path, out);
  free(text);
  return status;
}
