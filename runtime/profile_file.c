/* Pieces of a profile and the whole (profile_file.h). */
#include "runtime/profile_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/profile_json.h"
#include "runtime/profile_taken.h"
#include "util/math.h"

enum { PPM = 1000000, IN_FLIGHT = 1024 };

/* An integer in its plain form, which cJSON does not promise for large ones. */
static void add_int(cJSON *object, const char *key, int64_t value) {
  char text[24];
  snprintf(text, sizeof text, "%" PRId64, value);
  cJSON_AddRawToObject(object, key, text);
}

void planrt_add_graph_hash(cJSON *object, const planc_graph *graph) {
  char text[24];
  snprintf(text, sizeof text, "%016" PRIx64, planc_graph_hash(graph));
  cJSON_AddStringToObject(object, "graph_hash", text);
}

/* --- Pieces ----------------------------------------------------------------------------------------------------- */

static void add_number(cJSON *object, const char *key, int64_t value) {
  cJSON_AddNumberToObject(object, key, (double)value);
}

cJSON *planrt_piece_of_ops(const planc_graph *graph, int64_t load_ppm, int64_t batch, const planrt_op_times *times,
                           const planrt_memory_taken *taken) {
  cJSON *piece = cJSON_CreateObject();
  cJSON_AddStringToObject(piece, "piece", "ops");
  add_number(piece, "load_ppm", load_ppm);
  add_number(piece, "batch", batch);
  planrt_piece_add_taken(piece, taken);
  cJSON *array = cJSON_AddArrayToObject(piece, "times");
  for (int64_t i = 0; i < times->len; i++) {
    const planrt_op_time *time = &times->data[i];
    cJSON *entry = cJSON_CreateObject();
    cJSON_AddStringToObject(entry, "op", graph->ops[time->op].name);
    cJSON_AddStringToObject(entry, "algorithm", time->variant.algorithm);
    cJSON_AddBoolToObject(entry, "deterministic", time->variant.deterministic);
    add_number(entry, "notes", time->variant.notes);
    if (time->variant.workspace_bytes < 0) cJSON_AddTrueToObject(entry, "absent");
    add_number(entry, "workspace_bytes", time->variant.workspace_bytes);
    add_number(entry, "time_ns", time->time.median_ns);
    add_number(entry, "spread_ns", time->time.spread_ns);
    add_number(entry, "busy_ppm", time->busy_ppm);
    cJSON_AddBoolToObject(entry, "predicted", time->predicted);
    cJSON_AddItemToArray(array, entry);
  }
  return piece;
}

static void add_times(cJSON *object, const char *key, const int64_t *times, int32_t n) {
  cJSON *array = cJSON_AddArrayToObject(object, key);
  for (int32_t i = 0; i < n; i++) {
    cJSON_AddItemToArray(array, cJSON_CreateNumber((double)times[i]));
  }
}

cJSON *planrt_piece_of_links(const planrt_link_times *times, const planrt_run_costs *run) {
  cJSON *piece = cJSON_CreateObject();
  cJSON_AddStringToObject(piece, "piece", "links");
  add_times(piece, "h2d_ns", times->alone_ns[PLANRT_H2D], times->n_sizes);
  add_times(piece, "d2h_ns", times->alone_ns[PLANRT_D2H], times->n_sizes);
  add_times(piece, "both_ns", times->both_ns, 2);
  add_times(piece, "under_load_ns", times->under_load_ns, 2);
  add_number(piece, "launch_ns", run->launch_ns);
  add_number(piece, "memory_bytes_per_second", times->memory_bytes_per_s);
  add_number(piece, "slowdown_ppm", run->slowdown_ppm);
  return piece;
}

bool planrt_piece_is_of_ops(const cJSON *piece, int64_t load_ppm, int64_t batch) {
  return strcmp(get_string(piece, "piece"), "ops") == 0 && get_int(piece, "load_ppm") == load_ppm &&
         get_int(piece, "batch") == batch;
}
bool planrt_piece_is_of_links(const cJSON *piece) {
  return strcmp(get_string(piece, "piece"), "links") == 0;
}

/* --- Ops -------------------------------------------------------------------------------------------------------- */

/* cJSON_InsertItemInArray refuses all places but the first and the last in a version of cJSON that Debian 12 has. */
static void insert_at(cJSON *array, int position, cJSON *item) {
  int behind = cJSON_GetArraySize(array) - position;
  cJSON_AddItemToArray(array, item);
  for (int i = 0; i < behind; i++) cJSON_AddItemToArray(array, cJSON_DetachItemFromArray(array, position));
}

/* The variant of that name; a new one if there is none. They are in the order of their names, whatever order they were
 * measured in. */
static cJSON *find_or_add(cJSON *variants, const char *algorithm) {
  cJSON *entry;
  int position = 0;
  cJSON_ArrayForEach(entry, variants) {
    int order = strcmp(get_string(entry, "algorithm"), algorithm);
    if (order == 0) return entry;
    position += order < 0;
  }
  entry = cJSON_CreateObject();
  cJSON_AddStringToObject(entry, "algorithm", algorithm);
  insert_at(variants, position, entry);
  return entry;
}

/* What was not measured counts as all of the device. */
static int64_t clamp_ppm(int64_t busy_ppm) {
  return busy_ppm >= 1 && busy_ppm <= PPM ? busy_ppm : PPM;
}

/* Points ascend by batch. */
static void insert_point(cJSON *points, cJSON *point) {
  int position = 0;
  const cJSON *other;
  cJSON_ArrayForEach(other, points) position += get_int(other, "batch") < get_int(point, "batch");
  insert_at(points, position, point);
}

static void add_notes(cJSON *variant, uint32_t notes) {
  static const char *const names[] = {
#define X(id, name) name,
      PLANRT_NOTES(X)
#undef X
  };
  cJSON *array = notes ? cJSON_AddArrayToObject(variant, "notes") : NULL;
  for (int n = 0; array && n < PLANRT_N_NOTES; n++)
    if (notes >> n & 1) cJSON_AddItemToArray(array, cJSON_CreateString(names[n]));
}

/* What holds for all points of a variant, and the largest workspace of any. */
static cJSON *add_variant(cJSON *variant, const cJSON *time) {
  cJSON_AddBoolToObject(variant, "deterministic",
                        cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(time, "deterministic")));
  if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(time, "predicted")))
    cJSON_AddBoolToObject(variant, "predicted", true);
  add_notes(variant, (uint32_t)get_int(time, "notes"));
  cJSON_AddNumberToObject(variant, "workspace_bytes", 0);
  return cJSON_AddArrayToObject(variant, "points");
}

static void raise_workspace(cJSON *variant, int64_t bytes) {
  if (bytes > get_int(variant, "workspace_bytes"))
    cJSON_SetNumberValue(cJSON_GetObjectItemCaseSensitive(variant, "workspace_bytes"), (double)bytes);
}

/* At batches at which an algorithm does not run it has no point. */
static void add_absence(cJSON *variant, int64_t batch) {
  cJSON *workspaces = cJSON_GetObjectItemCaseSensitive(variant, "workspaces"), *absence = cJSON_CreateObject();
  if (!workspaces) workspaces = cJSON_AddArrayToObject(variant, "workspaces");
  cJSON_AddNumberToObject(absence, "batch", (double)batch);
  cJSON_AddNumberToObject(absence, "bytes", -1);
  cJSON_AddItemToArray(workspaces, absence);
}

static void add_point(cJSON *op, int64_t batch, const cJSON *time) {
  cJSON *variants = cJSON_GetObjectItemCaseSensitive(op, "variants");
  if (!variants) variants = cJSON_AddArrayToObject(op, "variants");
  cJSON *variant = find_or_add(variants, get_string(time, "algorithm"));
  cJSON *points = cJSON_GetObjectItemCaseSensitive(variant, "points");
  if (!points) points = add_variant(variant, time);
  if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(time, "absent"))) {
    add_absence(variant, batch);
    return;
  }
  raise_workspace(variant, get_int(time, "workspace_bytes"));
  cJSON *point = cJSON_CreateObject();
  cJSON_AddNumberToObject(point, "batch", (double)batch);
  cJSON_AddNumberToObject(point, "time_ns", (double)get_int(time, "time_ns"));
  cJSON_AddNumberToObject(point, "workspace_bytes", (double)get_int(time, "workspace_bytes"));
  cJSON_AddNumberToObject(point, "busy_ppm", (double)clamp_ppm(get_int(time, "busy_ppm")));
  if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(time, "predicted")))
    cJSON_AddNumberToObject(point, "spread_ns", (double)get_int(time, "spread_ns"));
  insert_point(points, point);
}

/* The pieces of ops at one load, added to entries by op; each has its ops in the graph's order. */
static void add_pieces(const planc_graph *graph, const cJSON *pieces, int64_t load_ppm, cJSON **ops) {
  const cJSON *piece, *time;
  cJSON_ArrayForEach(piece, pieces) {
    if (planrt_piece_is_of_links(piece) || get_int(piece, "load_ppm") != load_ppm) continue;
    int32_t o = 0;
    cJSON_ArrayForEach(time, cJSON_GetObjectItemCaseSensitive(piece, "times")) {
      while (o < graph->n_ops && strcmp(graph->ops[o].name, get_string(time, "op")) != 0) o++;
      if (o == graph->n_ops) break;
      bool tried;
      if (planrt_pieces_leave_out(pieces, graph->ops[o].name, get_string(time, "algorithm"), &tried)) continue;
      if (!ops[o]) {
        ops[o] = cJSON_CreateObject();
        cJSON_AddStringToObject(ops[o], "op", graph->ops[o].name);
      }
      add_point(ops[o], get_int(piece, "batch"), time);
    }
  }
}

/* All of these op by op, in the graph's order. */
static cJSON *merge_ops(const planc_graph *graph, const cJSON *pieces, int64_t load_ppm) {
  cJSON **ops = calloc((size_t)graph->n_ops + 1, sizeof *ops), *array = cJSON_CreateArray();
  if (ops) add_pieces(graph, pieces, load_ppm, ops);
  for (int32_t o = 0; ops && o < graph->n_ops; o++)
    if (ops[o]) cJSON_AddItemToArray(array, ops[o]);
  free((void *)ops);
  return array;
}

/* --- Device and compute ----------------------------------------------------------------------------------------- */

static void read_times(const cJSON *piece, const char *key, int64_t *out, int32_t n) {
  const cJSON *array = cJSON_GetObjectItemCaseSensitive(piece, key);
  for (int32_t i = 0; i < n; i++) {
    const cJSON *value = cJSON_GetArrayItem(array, i);
    out[i] = cJSON_IsNumber(value) && value->valuedouble > 0 ? (int64_t)value->valuedouble : 1;
  }
}

/* The links of a piece, fitted and as they were measured. */
typedef struct links {
  int32_t n_sizes;
  int64_t alone_ns[2][PLANRT_LINK_SIZES], both_ns[2], under_load_ns[2];
  planc_link fitted[2];
  int64_t misfit_ppm[2];
} links;

static const char *const directions[] = {[PLANRT_H2D] = "h2d", [PLANRT_D2H] = "d2h"};

static links read_links(const cJSON *piece) {
  links out;
  int n = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(piece, "h2d_ns"));
  out.n_sizes = n < 2 ? 2 : n > PLANRT_LINK_SIZES ? PLANRT_LINK_SIZES : n;
  read_times(piece, "h2d_ns", out.alone_ns[PLANRT_H2D], out.n_sizes);
  read_times(piece, "d2h_ns", out.alone_ns[PLANRT_D2H], out.n_sizes);
  read_times(piece, "both_ns", out.both_ns, 2);
  read_times(piece, "under_load_ns", out.under_load_ns, 2);
  for (int d = 0; d < 2; d++) out.fitted[d] = planrt_fit_link(out.n_sizes, out.alone_ns[d], &out.misfit_ppm[d]);
  return out;
}

static void add_device(cJSON *root, const planrt_profile_head *head, int64_t reserved, const cJSON *piece,
                       const links *l) {
  cJSON *device = cJSON_AddObjectToObject(root, "device");
  cJSON_AddStringToObject(device, "name", head->name);
  add_int(device, "memory_bytes", head->memory_bytes);
  add_int(device, "reserved_bytes", reserved);
  add_int(device, "launch_ns", get_int(piece, "launch_ns"));
  add_int(device, "in_flight", IN_FLIGHT);
  int64_t duplex = PPM;
  for (int d = 0; d < 2; d++) {
    cJSON *link = cJSON_AddObjectToObject(device, directions[d]);
    add_int(link, "bytes_per_second", l->fitted[d].bytes_per_second);
    add_int(link, "latency_ns", l->fitted[d].latency_ns);
    int64_t share = planc_muldiv_floor(l->alone_ns[d][l->n_sizes - 1], PPM, l->both_ns[d]);
    if (share < duplex) duplex = share > 0 ? share : 1;
  }
  add_int(device, "duplex_ppm", duplex);
  add_int(device, "slowdown_ppm", get_int(piece, "slowdown_ppm"));
}

/* The most FLOPs a second that any op reached, and the shortest time of any. */
static void find_extremes(const planc_graph *graph, const cJSON *pieces, double *out_flops, int64_t *out_kernel_ns) {
  *out_flops = 1;
  *out_kernel_ns = INT64_MAX;
  const cJSON *piece;
  cJSON_ArrayForEach(piece, pieces) {
    if (planrt_piece_is_of_links(piece) || get_int(piece, "load_ppm") != 0) continue;
    const cJSON *time;
    int32_t o = 0;
    cJSON_ArrayForEach(time, cJSON_GetObjectItemCaseSensitive(piece, "times")) {
      while (o < graph->n_ops && strcmp(graph->ops[o].name, get_string(time, "op")) != 0) o++;
      int64_t ns = get_int(time, "time_ns");
      if (o == graph->n_ops || ns <= 0) break;
      double rate = 1e9 * (double)planc_law_at(graph->ops[o].flops, get_int(piece, "batch")) / (double)ns;
      if (rate > *out_flops) *out_flops = rate;
      if (ns < *out_kernel_ns) *out_kernel_ns = ns;
    }
  }
  if (*out_kernel_ns > PPM) *out_kernel_ns = PPM;
}

/* What planc needs to predict ops that were not measured; half of what was reached at best is assumed of them. */
static void add_compute(cJSON *root, const planrt_profile_head *head, const planc_graph *graph, const cJSON *pieces,
                        const cJSON *piece) {
  static const char *const classes[] = {"conv", "gemm", "elementwise", "reduction",
                                        "norm", "pool", "optimizer",   "copy"};
  static const char *const products[] = {"linear", "implicit-gemm", "gemm", "winograd", "fft"};
  double flops;
  int64_t kernel_ns;
  find_extremes(graph, pieces, &flops, &kernel_ns);
  cJSON *compute = cJSON_AddObjectToObject(root, "compute");
  add_int(compute, "flops_per_second", (int64_t)flops);
  add_int(compute, "half_flops_per_second", (int64_t)flops);
  int64_t memory = get_int(piece, "memory_bytes_per_second");
  add_int(compute, "memory_bytes_per_second", memory > 0 ? memory : 1);
  add_int(compute, "processors", head->processors > 0 ? head->processors : 1);
  add_int(compute, "kernel_ns", kernel_ns);
  add_int(compute, "split_depth", 1);
  cJSON *efficiency = cJSON_AddObjectToObject(root, "efficiency");
  for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) add_int(efficiency, classes[i], PPM / 2);
  cJSON *multiply = cJSON_AddObjectToObject(root, "multiply");
  for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
    cJSON *product = cJSON_AddObjectToObject(multiply, products[i]);
    add_int(product, "flops_ppm", PPM / 2);
    add_int(product, "tile", 16);
    add_int(product, "depth_overhead", 0);
  }
}

static void add_origin(cJSON *root, const links *l) {
  char text[160];
  cJSON *origin = cJSON_AddObjectToObject(root, "origin");
  cJSON_AddStringToObject(
      origin, "device",
      "measured by planrun profile; reserved_bytes: taken beside the ops' memory and code, and room "
      "for what algorithms share, rounded up");
  for (int d = 0; d < 2; d++) {
    char key[16];
    snprintf(key, sizeof key, "device.%s", directions[d]);
    snprintf(text, sizeof text,
             "line through the times of section links, hand-over between streams included; off by %.1f %% at most",
             (double)l->misfit_ppm[d] / 1e4);
    cJSON_AddStringToObject(origin, key, text);
  }
  cJSON_AddStringToObject(origin, "compute",
                          "the best rate and the shortest time of any op measured; memory: a large copy");
  cJSON_AddStringToObject(origin, "efficiency", "assumed; for ops that were not measured");
  cJSON_AddStringToObject(origin, "multiply", "assumed; for ops that were not measured");
}

/* --- Links and loads -------------------------------------------------------------------------------------------- */

static void add_transfers(cJSON *link, const char *key, const int64_t *times, int32_t first, int32_t n) {
  cJSON *array = cJSON_AddArrayToObject(link, key);
  for (int32_t s = first; s < first + n; s++) {
    cJSON *transfer = cJSON_CreateObject();
    add_int(transfer, "bytes", planrt_link_sizes[s]);
    add_int(transfer, "ns", times[s - first]);
    cJSON_AddItemToArray(array, transfer);
  }
}

static void add_links(cJSON *root, const links *l) {
  cJSON *section = cJSON_AddObjectToObject(root, "links");
  for (int d = 0; d < 2; d++) {
    cJSON *link = cJSON_AddObjectToObject(section, directions[d]);
    add_transfers(link, "alone", l->alone_ns[d], 0, l->n_sizes);
    add_transfers(link, "both_ways", &l->both_ns[d], l->n_sizes - 1, 1);
    add_transfers(link, "under_load", &l->under_load_ns[d], l->n_sizes - 1, 1);
  }
}

static void add_loads(cJSON *root, const planc_graph *graph, const cJSON *pieces) {
  cJSON *loads = NULL;
  const cJSON *piece;
  int64_t last = 0;
  cJSON_ArrayForEach(piece, pieces) {
    int64_t load = get_int(piece, "load_ppm");
    if (planrt_piece_is_of_links(piece) || planrt_piece_is_trial(piece) || load == last || load == 0) continue;
    if (!loads) loads = cJSON_AddArrayToObject(root, "loads");
    cJSON *entry = cJSON_CreateObject();
    add_int(entry, "load_ppm", load);
    cJSON_AddItemToObject(entry, "ops", merge_ops(graph, pieces, load));
    cJSON_AddItemToArray(loads, entry);
    last = load;
  }
}

/* --- Refusals --------------------------------------------------------------------------------------------------- */

static bool is_told(const cJSON *array, const cJSON *refusal) {
  const cJSON *told;
  cJSON_ArrayForEach(told, array) {
    if (cJSON_Compare(told, refusal, true)) return true;
  }
  return false;
}

/* Each once: what a sitting has found another finds again. */
static void add_refusal(cJSON *array, cJSON *refusal) {
  if (is_told(array, refusal) || !cJSON_AddItemToArray(array, refusal)) cJSON_Delete(refusal);
}

static void add_refused(cJSON *root, const cJSON *pieces) {
  cJSON *array = cJSON_CreateArray();
  const cJSON *piece, *refusal;
  cJSON_ArrayForEach(piece, pieces) {
    if (planrt_trial_has_algorithm(piece)) add_refusal(array, planrt_trial_refusal(piece));
    cJSON_ArrayForEach(refusal, cJSON_GetObjectItemCaseSensitive(piece, "refused")) {
      add_refusal(array, cJSON_Duplicate(refusal, true));
    }
  }
  if (cJSON_GetArraySize(array) > 0)
    cJSON_AddItemToObject(root, "refused", array);
  else
    cJSON_Delete(array);
}

/* --- The whole -------------------------------------------------------------------------------------------------- */

planc_status planrt_profile_compose(const planrt_profile_head *head, const planc_graph *graph, const cJSON *pieces,
                                    cJSON **out) {
  const cJSON *piece, *of_links = NULL;
  cJSON_ArrayForEach(piece, pieces) {
    if (planrt_piece_is_of_links(piece)) of_links = piece;
  }
  if (!of_links) return planc_error(PLANC_INTERNAL, "profile without links");
  links l = read_links(of_links);
  cJSON *root = cJSON_CreateObject();
  cJSON_AddNumberToObject(root, "planc-profile", 1);
  cJSON_AddStringToObject(root, "machine", head->machine);
  planrt_add_graph_hash(root, graph);
  add_device(root, head, planrt_profile_reserved(pieces, head->memory_bytes), of_links, &l);
  add_compute(root, head, graph, pieces, of_links);
  add_origin(root, &l);
  planrt_profile_add_code(root, pieces);
  cJSON_AddItemToObject(root, "ops", merge_ops(graph, pieces, 0));
  add_links(root, &l);
  add_loads(root, graph, pieces);
  add_refused(root, pieces);
  *out = root;
  return NULL;
}

planc_status planrt_profile_compose_described(cJSON *description, const char *machine, const planc_graph *graph,
                                              const cJSON *pieces, cJSON **out) {
  cJSON *origin = cJSON_GetObjectItemCaseSensitive(description, "origin");
  if (!origin) origin = cJSON_AddObjectToObject(description, "origin");
  cJSON_AddStringToObject(origin, "ops",
                          "algorithms, workspaces and notes: the libraries' own, asked without the device; times: "
                          "predicted from the constants here");
  cJSON_AddStringToObject(description, "machine", machine);
  planrt_add_graph_hash(description, graph);
  cJSON_AddItemToObject(description, "ops", merge_ops(graph, pieces, 0));
  *out = description;
  return NULL;
}
