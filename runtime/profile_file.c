/* The profile that is made of its pieces (profile_file.h). */
#include "runtime/profile_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/profile_json.h"
#include "runtime/profile_ops.h"
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
    cJSON_AddItemToObject(entry, "ops", planrt_profile_ops(graph, pieces, load));
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
  cJSON_AddItemToObject(root, "ops", planrt_profile_ops(graph, pieces, 0));
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
  cJSON_AddItemToObject(description, "ops", planrt_profile_ops(graph, pieces, 0));
  *out = description;
  return NULL;
}
