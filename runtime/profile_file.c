/* Pieces of a profile and the whole (profile_file.h). */
#include "runtime/profile_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/profile_json.h"
#include "runtime/profile_taken.h"
#include "util/json_tree.h"
#include "util/math.h"

enum { PPM = 1000000, IN_FLIGHT = 1024 };

void planrt_add_graph_hash(cJSON *object, const planc_graph *graph) {
  char text[24];
  snprintf(text, sizeof text, "%016" PRIx64, planc_graph_hash(graph));
  planc_json_add_string(object, "graph_hash", text);
}

/* --- Pieces ----------------------------------------------------------------------------------------------------- */

cJSON *planrt_piece_of_ops(const planc_graph *graph, int64_t load_ppm, int64_t batch, const planrt_op_times *times,
                           const planrt_memory_taken *taken) {
  cJSON *piece = cJSON_CreateObject();
  planc_json_add_string(piece, "piece", "ops");
  planc_json_add_int(piece, "load_ppm", load_ppm);
  planc_json_add_int(piece, "batch", batch);
  planrt_piece_add_taken(piece, taken);
  cJSON *array = planc_json_add_array(piece, "times");
  for (int64_t i = 0; i < times->len; i++) {
    const planrt_op_time *time = &times->data[i];
    cJSON *entry = cJSON_CreateObject();
    planc_json_add_string(entry, "op", graph->ops[time->op].name);
    planc_json_add_string(entry, "algorithm", time->variant.algorithm);
    planc_json_add_bool(entry, "deterministic", time->variant.deterministic);
    planc_json_add_int(entry, "notes", time->variant.notes);
    if (time->variant.workspace_bytes < 0) planc_json_add_bool(entry, "absent", true);
    planc_json_add_int(entry, "workspace_bytes", time->variant.workspace_bytes);
    planc_json_add_int(entry, "time_ns", time->time.median_ns);
    planc_json_add_int(entry, "spread_ns", time->time.spread_ns);
    planc_json_add_int(entry, "busy_ppm", time->busy_ppm);
    planc_json_add_bool(entry, "predicted", time->predicted);
    planc_json_add(array, NULL, entry);
  }
  return piece;
}

static void add_times(cJSON *object, const char *key, const int64_t *times, int32_t n) {
  cJSON *array = planc_json_add_array(object, key);
  for (int32_t i = 0; i < n; i++) {
    planc_json_add_int(array, NULL, times[i]);
  }
}

cJSON *planrt_piece_of_links(const planrt_link_times *times, const planrt_run_costs *run) {
  cJSON *piece = cJSON_CreateObject();
  planc_json_add_string(piece, "piece", "links");
  add_times(piece, "h2d_ns", times->alone_ns[PLANRT_H2D], times->n_sizes);
  add_times(piece, "d2h_ns", times->alone_ns[PLANRT_D2H], times->n_sizes);
  add_times(piece, "both_ns", times->both_ns, 2);
  add_times(piece, "under_load_ns", times->under_load_ns, 2);
  planc_json_add_int(piece, "launch_ns", run->launch_ns);
  planc_json_add_int(piece, "memory_bytes_per_second", times->memory_bytes_per_s);
  planc_json_add_int(piece, "slowdown_ppm", run->slowdown_ppm);
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
static cJSON *insert_at(cJSON *array, int position, cJSON *item) {
  int behind = cJSON_GetArraySize(array) - position;
  item = planc_json_add(array, NULL, item);
  for (int i = 0; item && i < behind; i++) planc_json_add(array, NULL, cJSON_DetachItemFromArray(array, position));
  return item;
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
  planc_json_add_string(entry, "algorithm", algorithm);
  return insert_at(variants, position, entry);
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
  cJSON *array = notes ? planc_json_add_array(variant, "notes") : NULL;
  for (int n = 0; array && n < PLANRT_N_NOTES; n++)
    if (notes >> n & 1) planc_json_add_string(array, NULL, names[n]);
}

/* What holds for all points of a variant, and the largest workspace of any. */
static cJSON *add_variant(cJSON *variant, const cJSON *time) {
  planc_json_add_bool(variant, "deterministic", cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(time, "deterministic")));
  if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(time, "predicted")))
    planc_json_add_bool(variant, "predicted", true);
  add_notes(variant, (uint32_t)get_int(time, "notes"));
  planc_json_add_int(variant, "workspace_bytes", 0);
  return planc_json_add_array(variant, "points");
}

static void raise_workspace(cJSON *variant, int64_t bytes) {
  if (bytes > get_int(variant, "workspace_bytes"))
    cJSON_SetNumberValue(cJSON_GetObjectItemCaseSensitive(variant, "workspace_bytes"), (double)bytes);
}

/* At batches at which an algorithm does not run it has no point. */
static void add_absence(cJSON *variant, int64_t batch) {
  cJSON *workspaces = cJSON_GetObjectItemCaseSensitive(variant, "workspaces"), *absence = cJSON_CreateObject();
  if (!workspaces) workspaces = planc_json_add_array(variant, "workspaces");
  planc_json_add_int(absence, "batch", batch);
  planc_json_add_int(absence, "bytes", -1);
  planc_json_add(workspaces, NULL, absence);
}

static void add_point(cJSON *op, int64_t batch, const cJSON *time) {
  cJSON *variants = cJSON_GetObjectItemCaseSensitive(op, "variants");
  if (!variants) variants = planc_json_add_array(op, "variants");
  cJSON *variant = find_or_add(variants, get_string(time, "algorithm"));
  cJSON *points = cJSON_GetObjectItemCaseSensitive(variant, "points");
  if (!points) points = add_variant(variant, time);
  if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(time, "absent"))) {
    add_absence(variant, batch);
    return;
  }
  raise_workspace(variant, get_int(time, "workspace_bytes"));
  cJSON *point = cJSON_CreateObject();
  planc_json_add_int(point, "batch", batch);
  planc_json_add_int(point, "time_ns", get_int(time, "time_ns"));
  planc_json_add_int(point, "workspace_bytes", get_int(time, "workspace_bytes"));
  planc_json_add_int(point, "busy_ppm", clamp_ppm(get_int(time, "busy_ppm")));
  if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(time, "predicted")))
    planc_json_add_int(point, "spread_ns", get_int(time, "spread_ns"));
  insert_point(points, point);
}

/* The pieces of ops at one load, added to entries by op; each has its ops in the graph's order. False: no memory. */
static bool add_pieces(const planc_graph *graph, const cJSON *pieces, int64_t load_ppm, cJSON **ops) {
  const cJSON *piece, *time;
  cJSON_ArrayForEach(piece, pieces) {
    if (planrt_piece_is_of_links(piece) || get_int(piece, "load_ppm") != load_ppm) continue;
    int32_t o = 0;
    cJSON_ArrayForEach(time, cJSON_GetObjectItemCaseSensitive(piece, "times")) {
      while (o < graph->n_ops && strcmp(graph->ops[o].name, get_string(time, "op")) != 0) o++;
      if (o == graph->n_ops) break;
      if (!ops[o]) {
        ops[o] = cJSON_CreateObject();
        planc_json_add_string(ops[o], "op", graph->ops[o].name);
      }
      if (!ops[o]) return false;
      add_point(ops[o], get_int(piece, "batch"), time);
    }
  }
  return true;
}

/* All of these op by op, in the graph's order; NULL or spoilt where memory is short. */
static cJSON *merge_ops(const planc_graph *graph, const cJSON *pieces, int64_t load_ppm) {
  cJSON **ops = calloc((size_t)graph->n_ops + 1, sizeof *ops), *array = cJSON_CreateArray();
  bool merged = ops && planc_json_is_whole(pieces) && add_pieces(graph, pieces, load_ppm, ops);
  for (int32_t o = 0; ops && o < graph->n_ops; o++)
    if (ops[o]) planc_json_add(array, NULL, ops[o]);
  free((void *)ops);
  if (merged) return array;
  cJSON_Delete(array);
  return NULL;
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
  cJSON *device = planc_json_add_object(root, "device");
  planc_json_add_string(device, "name", head->name);
  planc_json_add_int(device, "memory_bytes", head->memory_bytes);
  planc_json_add_int(device, "reserved_bytes", reserved);
  planc_json_add_int(device, "launch_ns", get_int(piece, "launch_ns"));
  planc_json_add_int(device, "in_flight", IN_FLIGHT);
  int64_t duplex = PPM;
  for (int d = 0; d < 2; d++) {
    cJSON *link = planc_json_add_object(device, directions[d]);
    planc_json_add_int(link, "bytes_per_second", l->fitted[d].bytes_per_second);
    planc_json_add_int(link, "latency_ns", l->fitted[d].latency_ns);
    int64_t share = planc_muldiv_floor(l->alone_ns[d][l->n_sizes - 1], PPM, l->both_ns[d]);
    if (share < duplex) duplex = share > 0 ? share : 1;
  }
  planc_json_add_int(device, "duplex_ppm", duplex);
  planc_json_add_int(device, "slowdown_ppm", get_int(piece, "slowdown_ppm"));
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
  cJSON *compute = planc_json_add_object(root, "compute");
  planc_json_add_int(compute, "flops_per_second", (int64_t)flops);
  planc_json_add_int(compute, "half_flops_per_second", (int64_t)flops);
  int64_t memory = get_int(piece, "memory_bytes_per_second");
  planc_json_add_int(compute, "memory_bytes_per_second", memory > 0 ? memory : 1);
  planc_json_add_int(compute, "processors", head->processors > 0 ? head->processors : 1);
  planc_json_add_int(compute, "kernel_ns", kernel_ns);
  planc_json_add_int(compute, "split_depth", 1);
  cJSON *efficiency = planc_json_add_object(root, "efficiency");
  for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) planc_json_add_int(efficiency, classes[i], PPM / 2);
  cJSON *multiply = planc_json_add_object(root, "multiply");
  for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
    cJSON *product = planc_json_add_object(multiply, products[i]);
    planc_json_add_int(product, "flops_ppm", PPM / 2);
    planc_json_add_int(product, "tile", 16);
    planc_json_add_int(product, "depth_overhead", 0);
  }
}

static void add_origin(cJSON *root, const links *l) {
  char text[160];
  cJSON *origin = planc_json_add_object(root, "origin");
  planc_json_add_string(origin, "device",
                        "measured by planrun profile; reserved_bytes: taken beside the ops' memory and code, and room "
                        "for what algorithms share, rounded up");
  for (int d = 0; d < 2; d++) {
    char key[16];
    int64_t tenths = planc_muldiv_ceil(l->misfit_ppm[d], 1000, PPM); /* of a per cent */
    snprintf(key, sizeof key, "device.%s", directions[d]);
    snprintf(text, sizeof text,
             "line through the times of section links, hand-over between streams included; off by %" PRId64 ".%" PRId64
             " %% at most",
             tenths / 10, tenths % 10);
    planc_json_add_string(origin, key, text);
  }
  planc_json_add_string(origin, "compute",
                        "the best rate and the shortest time of any op measured; memory: a large copy");
  planc_json_add_string(origin, "efficiency", "assumed; for ops that were not measured");
  planc_json_add_string(origin, "multiply", "assumed; for ops that were not measured");
}

/* --- Links and loads -------------------------------------------------------------------------------------------- */

static void add_transfers(cJSON *link, const char *key, const int64_t *times, int32_t first, int32_t n) {
  cJSON *array = planc_json_add_array(link, key);
  for (int32_t s = first; s < first + n; s++) {
    cJSON *transfer = cJSON_CreateObject();
    planc_json_add_int(transfer, "bytes", planrt_link_sizes[s]);
    planc_json_add_int(transfer, "ns", times[s - first]);
    planc_json_add(array, NULL, transfer);
  }
}

static void add_links(cJSON *root, const links *l) {
  cJSON *section = planc_json_add_object(root, "links");
  for (int d = 0; d < 2; d++) {
    cJSON *link = planc_json_add_object(section, directions[d]);
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
    if (planrt_piece_is_of_links(piece) || load == last || load == 0) continue;
    if (!loads) loads = planc_json_add_array(root, "loads");
    cJSON *entry = cJSON_CreateObject();
    planc_json_add_int(entry, "load_ppm", load);
    planc_json_add(entry, "ops", merge_ops(graph, pieces, load));
    planc_json_add(loads, NULL, entry);
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
static void add_refused(cJSON *root, const cJSON *pieces) {
  cJSON *array = NULL;
  const cJSON *piece, *refusal;
  cJSON_ArrayForEach(piece, pieces) {
    cJSON_ArrayForEach(refusal, cJSON_GetObjectItemCaseSensitive(piece, "refused")) {
      if (!array) array = planc_json_add_array(root, "refused");
      if (!is_told(array, refusal)) planc_json_add(array, NULL, cJSON_Duplicate(refusal, true));
    }
  }
}

/* --- The whole -------------------------------------------------------------------------------------------------- */

planc_status planrt_profile_compose(const planrt_profile_head *head, const planc_graph *graph, const cJSON *pieces,
                                    cJSON **out) {
  const cJSON *piece, *of_links = NULL;
  cJSON_ArrayForEach(piece, pieces) {
    if (planrt_piece_is_of_links(piece)) of_links = piece;
  }
  if (!of_links) return planc_error(PLANC_INTERNAL, "profile without links");
  int64_t reserved;
  PLANC_TRY(planrt_profile_reserved(pieces, head->memory_bytes, &reserved));
  links l = read_links(of_links);
  cJSON *root = cJSON_CreateObject();
  planc_json_add_int(root, "planc-profile", 1);
  planc_json_add_string(root, "machine", head->machine);
  planrt_add_graph_hash(root, graph);
  add_device(root, head, reserved, of_links, &l);
  add_compute(root, head, graph, pieces, of_links);
  add_origin(root, &l);
  planrt_profile_add_code(root, pieces);
  planc_json_add(root, "ops", merge_ops(graph, pieces, 0));
  add_links(root, &l);
  add_loads(root, graph, pieces);
  add_refused(root, pieces);
  *out = root;
  return NULL;
}

planc_status planrt_profile_compose_described(cJSON *description, const char *machine, const planc_graph *graph,
                                              const cJSON *pieces, cJSON **out) {
  cJSON *origin = cJSON_GetObjectItemCaseSensitive(description, "origin");
  if (!origin) origin = planc_json_add_object(description, "origin");
  planc_json_add_string(origin, "ops",
                        "algorithms, workspaces and notes: the libraries' own, asked without the device; times: "
                        "predicted from the constants here");
  planc_json_add_string(description, "machine", machine);
  planrt_add_graph_hash(description, graph);
  planc_json_add(description, "ops", merge_ops(graph, pieces, 0));
  *out = description;
  return NULL;
}
