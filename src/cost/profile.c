/* Reads device descriptions and measured profiles, planc-profile(5). */
#include "cost/profile.h"

#include <stdlib.h>
#include <string.h>

#include "cost/json.h"
#include "cost/predict_model.h"
#include "util/file.h"
#include "util/label.h"
#include "util/math.h"

#define COUNT(array) ((int32_t)(sizeof(array) / sizeof *(array)))

/* --- Sections ------------------------------------------------------------------------------------------------- */

static planc_status read_link(const planc_json *at, planc_link *out) {
  static const planc_json_field fields[] = {
      {"bytes_per_second", offsetof(planc_link, bytes_per_second), 1, PLANC_JSON_MAX},
      {"latency_ns", offsetof(planc_link, latency_ns), 0, PLANC_JSON_MAX},
  };
  return planc_json_struct(at, fields, COUNT(fields), out);
}

static planc_status read_device(const planc_json *at, planc_arena *arena, planc_device *out) {
  enum { NAME, MEMORY, RESERVED, LAUNCH, IN_FLIGHT, H2D, D2H, DUPLEX, SLOWDOWN, N };
  static const planc_json_key keys[N] = {
      [NAME] = {"name", false},        [MEMORY] = {"memory_bytes", false}, [RESERVED] = {"reserved_bytes", false},
      [LAUNCH] = {"launch_ns", false}, [IN_FLIGHT] = {"in_flight", false}, [H2D] = {"h2d", false},
      [D2H] = {"d2h", false},          [DUPLEX] = {"duplex_ppm", false},   [SLOWDOWN] = {"slowdown_ppm", false},
  };
  planc_json members[N];
  PLANC_TRY(planc_json_members(at, keys, N, members));
  const char *name;
  PLANC_TRY(planc_json_name(&members[NAME], &name));
  PLANC_TRY(planc_arena_strndup(arena, name, strlen(name), &out->name));
  PLANC_TRY(planc_json_int(&members[MEMORY], 1, PLANC_JSON_MAX, &out->memory_bytes));
  PLANC_TRY(planc_json_int(&members[RESERVED], 0, out->memory_bytes, &out->reserved_bytes));
  PLANC_TRY(planc_json_int(&members[LAUNCH], 0, PLANC_JSON_MAX, &out->launch_ns));
  int64_t in_flight;
  PLANC_TRY(planc_json_int(&members[IN_FLIGHT], 1, INT32_MAX, &in_flight));
  out->in_flight = (int32_t)in_flight;
  PLANC_TRY(read_link(&members[H2D], &out->h2d));
  PLANC_TRY(read_link(&members[D2H], &out->d2h));
  PLANC_TRY(planc_json_int(&members[DUPLEX], 1, PLANC_PPM, &out->duplex_ppm));
  return planc_json_int(&members[SLOWDOWN], 0, (int64_t)1000 * PLANC_PPM, &out->slowdown_ppm);
}

static planc_status read_compute(const planc_json *at, planc_compute *out) {
  static const planc_json_field fields[] = {
      {"flops_per_second", offsetof(planc_compute, flops_per_second), 1, PLANC_JSON_MAX},
      {"half_flops_per_second", offsetof(planc_compute, half_flops_per_second), 1, PLANC_JSON_MAX},
      {"memory_bytes_per_second", offsetof(planc_compute, memory_bytes_per_second), 1, PLANC_JSON_MAX},
      {"processors", offsetof(planc_compute, processors), 1, 1000000},
      {"kernel_ns", offsetof(planc_compute, kernel_ns), 1, PLANC_NS},
      {"split_depth", offsetof(planc_compute, split_depth), 1, 1000000},
      {"sustained_ppm", offsetof(planc_compute, sustained_ppm), 1, PLANC_PPM},
  };
  return planc_json_struct_partly(at, fields, COUNT(fields) - 1, COUNT(fields), out);
}

static planc_status read_efficiency(const planc_json *at, int64_t out[PLANC_N_CLASSES]) {
  static const planc_json_field fields[] = {
#define X(name) {#name, PLANC_CLASS_##name * sizeof(int64_t), 1, PLANC_PPM},
      PLANC_CLASSES(X)
#undef X
  };
  return planc_json_struct(at, fields, COUNT(fields), out);
}

static planc_status read_multiply(const planc_json *at, planc_multiply out[PLANC_N_MULTIPLIES]) {
  static const planc_json_key keys[] = {
#define X(id, name) {name, PLANC_MULTIPLY_##id >= PLANC_N_REQUIRED_MULTIPLIES},
      PLANC_MULTIPLIES(X)
#undef X
  };
  static const planc_json_field fields[] = {
      {"flops_ppm", offsetof(planc_multiply, flops_ppm), 1, PLANC_PPM},
      {"tile", offsetof(planc_multiply, tile), 1, 4096},
      {"depth_overhead", offsetof(planc_multiply, depth_overhead), 0, 1000000},
      {"small_tile", offsetof(planc_multiply, small_tile), 1, 4096},
      {"small_flops_ppm", offsetof(planc_multiply, small_flops_ppm), 1, PLANC_PPM},
  };
  enum { REQUIRED = 3 };
  planc_json members[PLANC_N_MULTIPLIES];
  PLANC_TRY(planc_json_members(at, keys, PLANC_N_MULTIPLIES, members));
  for (int32_t m = 0; m < PLANC_N_MULTIPLIES; m++) {
    if (!members[m].value) continue;
    PLANC_TRY(planc_json_struct_partly(&members[m], fields, REQUIRED, COUNT(fields), &out[m]));
    if (!out[m].small_tile != !out[m].small_flops_ppm)
      return planc_json_error(&members[m], "small_tile and small_flops_ppm stand together");
  }
  return NULL;
}

static planc_status read_cache(const planc_json *at, planc_cache_rate *out) {
  static const planc_json_field fields[] = {
      {"bytes", offsetof(planc_cache_rate, bytes), 1, INT64_C(1) << 40},
      {"bytes_per_second", offsetof(planc_cache_rate, bytes_per_second), 1, PLANC_JSON_MAX},
  };
  return planc_json_struct(at, fields, COUNT(fields), out);
}

static planc_status read_types(const planc_json *at, planc_profile *profile) {
  if (!cJSON_IsObject(at->value)) return planc_json_error(at, "must be an object");
  planc_type_rate *types;
  PLANC_TRY(PLANC_NEW(&profile->arena, &types, cJSON_GetArraySize(at->value)));
  profile->types = types;
  for (planc_json entry = planc_json_first(at); entry.value; planc_json_next(&entry)) {
    planc_type_rate *type = &types[profile->n_types];
    const char *fault = planc_label_fault(entry.name);
    if (fault) return planc_json_error(&entry, "%s", fault);
    for (int32_t t = 0; t < profile->n_types; t++)
      if (strcmp(types[t].type, entry.name) == 0) return planc_json_error(&entry, "the key stands twice");
    PLANC_TRY(planc_json_int(&entry, 1, PLANC_PPM, &type->efficiency_ppm));
    PLANC_TRY(planc_arena_strndup(&profile->arena, entry.name, strlen(entry.name), &type->type));
    profile->n_types++;
  }
  return NULL;
}

/* --- What is told but not planned with ------------------------------------------------------------------------- */

/* Transfers by size as they were measured; the device's links are the lines through them. */
static planc_status check_transfers(const planc_json *at) {
  typedef struct transfer {
    int64_t bytes, ns;
  } transfer;
  static const planc_json_field fields[] = {
      {"bytes", offsetof(transfer, bytes), 1, PLANC_JSON_MAX},
      {"ns", offsetof(transfer, ns), 0, PLANC_JSON_MAX},
  };
  int32_t count;
  PLANC_TRY(planc_json_array(at, &count));
  for (planc_json item = planc_json_first(at); item.value; planc_json_next(&item)) {
    transfer unused;
    PLANC_TRY(planc_json_struct(&item, fields, COUNT(fields), &unused));
  }
  return NULL;
}

static planc_status check_link(const planc_json *at) {
  enum { ALONE, BOTH, LOADED, N };
  static const planc_json_key keys[N] = {{"alone", false}, {"both_ways", false}, {"under_load", false}};
  planc_json members[N];
  PLANC_TRY(planc_json_members(at, keys, N, members));
  for (int32_t m = 0; m < N; m++) PLANC_TRY(check_transfers(&members[m]));
  return NULL;
}

static planc_status check_links(const planc_json *at) {
  static const planc_json_key keys[] = {{"h2d", false}, {"d2h", false}};
  planc_json members[COUNT(keys)];
  PLANC_TRY(planc_json_members(at, keys, COUNT(keys), members));
  PLANC_TRY(check_link(&members[0]));
  return check_link(&members[1]);
}

/* Algorithms that the device did not run. */
static planc_status check_refused(const planc_json *at) {
  enum { OP, ALGORITHM, BATCH, REASON, N };
  static const planc_json_key keys[N] = {{"op", false}, {"algorithm", false}, {"batch", false}, {"reason", false}};
  int32_t count;
  PLANC_TRY(planc_json_array(at, &count));
  for (planc_json item = planc_json_first(at); item.value; planc_json_next(&item)) {
    planc_json members[N];
    const char *text;
    int64_t batch;
    PLANC_TRY(planc_json_members(&item, keys, N, members));
    PLANC_TRY(planc_json_string(&members[OP], &text));
    PLANC_TRY(planc_json_string(&members[ALGORITHM], &text));
    PLANC_TRY(planc_json_int(&members[BATCH], 1, PLANC_JSON_MAX, &batch));
    PLANC_TRY(planc_json_string(&members[REASON], &text));
  }
  return NULL;
}

/* --- Origins -------------------------------------------------------------------------------------------------- */

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

static planc_status keep_origin(planc_arena *arena, const char *name, const char *text, planc_origin *out) {
  PLANC_TRY(planc_arena_strndup(arena, name, strlen(name), &out->of));
  return planc_arena_strndup(arena, text, strlen(text), &out->text);
}

static planc_status read_origins(const planc_json *at, planc_map *seen, planc_profile *profile) {
  if (!cJSON_IsObject(at->value)) return planc_json_error(at, "must be an object");
  planc_origin *origins;
  profile->n_origins = cJSON_GetArraySize(at->value);
  PLANC_TRY(PLANC_NEW(&profile->arena, &origins, profile->n_origins));
  profile->origins = origins;
  for (planc_json entry = planc_json_first(at); entry.value; planc_json_next(&entry)) {
    const char *text;
    PLANC_TRY(planc_json_string(&entry, &text));
    if (!leads_somewhere(at->parent->value, entry.name)) return planc_json_error(&entry, "names nothing in this file");
    size_t length = strlen(entry.name);
    if (planc_map_get(seen, entry.name, length) >= 0) return planc_json_error(&entry, "the key stands twice");
    PLANC_TRY(planc_map_put(seen, entry.name, length, entry.index));
    PLANC_TRY(keep_origin(&profile->arena, entry.name, text, &origins[entry.index]));
  }
  return NULL;
}

/* --- Code ----------------------------------------------------------------------------------------------------- */

static int by_algorithm(const void *a, const void *b) {
  const planc_code_size *x = a, *y = b;
  return strcmp(x->algorithm, y->algorithm);
}

static planc_status read_code_size(const planc_json *at, planc_arena *arena, planc_code_size *out) {
  const char *fault = planc_label_fault(at->name);
  if (fault) return planc_json_error(at, "the key %s", fault);
  PLANC_TRY(planc_json_int(at, 0, PLANC_JSON_MAX, &out->bytes));
  return planc_arena_strndup(arena, at->name, strlen(at->name), &out->algorithm);
}

static planc_status read_code(const planc_json *at, planc_profile *profile) {
  planc_code_size *code;
  int32_t count = cJSON_GetArraySize(at->value);
  if (!cJSON_IsObject(at->value)) return planc_json_error(at, "must be an object");
  if (count == 0) return planc_json_error(at, "must not be empty");
  PLANC_TRY(PLANC_NEW(&profile->arena, &code, count));
  for (planc_json item = planc_json_first(at); item.value; planc_json_next(&item))
    PLANC_TRY(read_code_size(&item, &profile->arena, &code[item.index]));
  qsort(code, (size_t)count, sizeof *code, by_algorithm);
  for (int32_t c = 1; c < count; c++)
    if (by_algorithm(&code[c - 1], &code[c]) == 0)
      return planc_json_error(at, "the key %s stands twice", code[c].algorithm);
  profile->code = code;
  profile->n_code = count;
  return NULL;
}

/* --- Loads ---------------------------------------------------------------------------------------------------- */

static planc_status read_load(const planc_json *at, planc_arena *arena, planc_load *out) {
  enum { LOAD, OPS, N };
  static const planc_json_key keys[N] = {{"load_ppm", false}, {"ops", false}};
  planc_json members[N];
  PLANC_TRY(planc_json_members(at, keys, N, members));
  PLANC_TRY(planc_json_int(&members[LOAD], 1, PLANC_PPM, &out->load_ppm));
  return planc_measured_read(&members[OPS], arena, &out->ops);
}

static planc_status read_loads(const planc_json *at, planc_profile *profile) {
  PLANC_TRY(planc_json_array(at, &profile->n_loads));
  PLANC_TRY(PLANC_NEW(&profile->arena, &profile->loads, profile->n_loads));
  for (planc_json item = planc_json_first(at); item.value; planc_json_next(&item))
    PLANC_TRY(read_load(&item, &profile->arena, &profile->loads[item.index]));
  return NULL;
}

/* --- The whole ------------------------------------------------------------------------------------------------ */

/* Comes before all else, which another format may have otherwise. That the key is there is checked with the others. */
static planc_status check_version(const planc_json *root) {
  for (planc_json member = planc_json_first(root); member.value; planc_json_next(&member)) {
    if (!member.name || strcmp(member.name, "planc-profile") != 0) continue;
    int64_t version;
    PLANC_TRY(planc_json_int(&member, 0, PLANC_JSON_MAX, &version));
    if (version == 1) return NULL;
    return planc_json_error(&member, "profile format %lld is not known; this planc reads format 1", (long long)version);
  }
  return NULL;
}

static planc_status read_profile(const planc_json *root, planc_profile *profile) {
  enum {
    VERSION,
    MACHINE,
    DEVICE,
    COMPUTE,
    EFFICIENCY,
    MULTIPLY,
    CACHE,
    TYPES,
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
  static const planc_json_key keys[N] = {
      [VERSION] = {"planc-profile", false},
      [DEVICE] = {"device", false},
      [COMPUTE] = {"compute", false},
      [EFFICIENCY] = {"efficiency", false},
      [MULTIPLY] = {"multiply", false},
      [CACHE] = {"cache", true},
      [TYPES] = {"types", true},
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
  planc_json members[N];
  PLANC_TRY(check_version(root));
  PLANC_TRY(planc_json_members(root, keys, N, members));
  PLANC_TRY(read_device(&members[DEVICE], &profile->arena, &profile->device));
  PLANC_TRY(read_compute(&members[COMPUTE], &profile->compute));
  PLANC_TRY(read_efficiency(&members[EFFICIENCY], profile->efficiency_ppm));
  PLANC_TRY(read_multiply(&members[MULTIPLY], profile->multiply));
  if (members[CACHE].value) PLANC_TRY(read_cache(&members[CACHE], &profile->cache));
  if (members[TYPES].value) PLANC_TRY(read_types(&members[TYPES], profile));
  if (members[ORIGIN].value) {
    planc_map seen = {0};
    planc_status status = read_origins(&members[ORIGIN], &seen, profile);
    planc_map_free(&seen);
    PLANC_TRY(status);
  }
  profile->has_graph_hash = members[GRAPH_HASH].value != NULL;
  if (profile->has_graph_hash) PLANC_TRY(planc_json_hash(&members[GRAPH_HASH], &profile->graph_hash));
  const char *machine;
  if (members[MACHINE].value) PLANC_TRY(planc_json_string(&members[MACHINE], &machine));
  if (members[LINKS].value) PLANC_TRY(check_links(&members[LINKS]));
  if (members[CODE].value) PLANC_TRY(read_code(&members[CODE], profile));
  if (members[LOADS].value) PLANC_TRY(read_loads(&members[LOADS], profile));
  if (members[REFUSED].value) PLANC_TRY(check_refused(&members[REFUSED]));
  if (members[MODEL].value) PLANC_TRY(planc_model_read(&members[MODEL], &profile->model));
  if (!members[OPS].value) return NULL;
  return planc_measured_read(&members[OPS], &profile->arena, &profile->measured);
}

planc_status planc_profile_parse(const char *text, size_t length, const char *path, planc_profile **out) {
  *out = NULL;
  planc_profile *profile = calloc(1, sizeof *profile);
  if (!profile) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  cJSON *tree = NULL;
  planc_status status = planc_json_parse(text, length, path, &tree);
  if (!status) status = read_profile(&(planc_json){.value = tree, .name = path}, profile);
  if (!status) status = planc_json_check_plain(text, length, path);
  cJSON_Delete(tree);
  if (status) {
    planc_profile_free(profile);
    return status;
  }
  *out = profile;
  return NULL;
}

void planc_profile_free(planc_profile *profile) {
  if (!profile) return;
  planc_measured_free(&profile->measured);
  for (int32_t l = 0; l < profile->n_loads && profile->loads; l++) planc_measured_free(&profile->loads[l].ops);
  planc_model_free(profile->model);
  planc_arena_free(&profile->arena);
  free(profile);
}

planc_status planc_profile_take_rates(planc_profile *out, const planc_profile *base) {
  planc_type_rate *types;
  out->compute = base->compute;
  out->cache = base->cache;
  memcpy(out->efficiency_ppm, base->efficiency_ppm, sizeof out->efficiency_ppm);
  memcpy(out->multiply, base->multiply, sizeof out->multiply);
  PLANC_TRY(PLANC_NEW(&out->arena, &types, base->n_types));
  for (int32_t t = 0; t < base->n_types; t++) {
    types[t].efficiency_ppm = base->types[t].efficiency_ppm;
    PLANC_TRY(planc_arena_strndup(&out->arena, base->types[t].type, strlen(base->types[t].type), &types[t].type));
  }
  out->types = types;
  out->n_types = base->n_types;
  return NULL;
}

const planc_model *planc_profile_model(const planc_profile *profile) {
  return profile->model;
}

const planc_device *planc_profile_device(const planc_profile *profile) {
  return &profile->device;
}

int64_t planc_profile_code(const planc_profile *profile, const char *algorithm) {
  if (profile->n_code == 0) return 0;
  const planc_code_size wanted = {.algorithm = algorithm};
  const planc_code_size *found =
      bsearch(&wanted, profile->code, (size_t)profile->n_code, sizeof *profile->code, by_algorithm);
  return found ? found->bytes : 0;
}

int64_t planc_profile_code_of_all(const planc_profile *profile) {
  int64_t sum = 0;
  for (int32_t c = 0; c < profile->n_code; c++) sum = planc_add_saturate(sum, profile->code[c].bytes);
  return sum;
}

planc_profile_of planc_profile_is_of(const planc_profile *profile, const planc_graph *graph, int32_t *out_listed) {
  *out_listed = 0;
  for (int32_t o = 0; o < graph->n_ops; o++)
    if (planc_measured_find(&profile->measured, graph->ops[o].name)) ++*out_listed;
  if (!profile->has_graph_hash) return PLANC_OF_UNKNOWN;
  return profile->graph_hash == planc_graph_hash(graph) ? PLANC_OF_THIS : PLANC_OF_ANOTHER;
}

bool planc_profile_lists_workspace(const planc_profile *profile, const char *op, const char *algorithm, int64_t batch) {
  const planc_measured_op *measured = planc_measured_find(&profile->measured, op);
  for (int32_t v = 0; measured && v < measured->n_variants; v++)
    if (strcmp(measured->variants[v].algorithm, algorithm) == 0)
      return planc_measured_is_listed(&measured->variants[v], batch);
  return true;
}

/* --- Files ---------------------------------------------------------------------------------------------------- */

enum { MAX_FILE_BYTES = 256 << 20 };

planc_status planc_profile_read(const char *path, planc_profile **out) {
  *out = NULL;
  char *text = NULL;
  size_t length = 0;
  PLANC_TRY(planc_file_read(path, MAX_FILE_BYTES, &text, &length));
  planc_status status = planc_profile_parse(text, length, path, out);
  free(text);
  return status;
}
