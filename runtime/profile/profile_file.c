/* The profile that is made of its pieces (profile_file.h). */
#include "runtime/profile/profile_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/profile/profile_json.h"
#include "runtime/profile/profile_ops.h"
#include "runtime/profile/profile_taken.h"
#include "util/json_tree.h"
#include "util/math.h"

enum { IN_FLIGHT = 1024, MOST_KERNEL_NS = 1000000 };

void rt_add_graph_hash(cJSON *object, const planc_graph *graph) {
  char text[24];
  snprintf(text, sizeof text, "%016" PRIx64, planc_graph_hash(graph));
  pl_json_add_string(object, "graph_hash", text);
}

/* The links of a piece, fitted and as they were measured. */
typedef struct links {
  int32_t n_sizes;
  int64_t alone_ns[2][RT_LINK_SIZES], both_ns[2], under_load_ns[2];
  planc_link fitted[2];
  int64_t misfit_ppm[2];
} links;

/* Storage of a piece, likewise. */
typedef struct storage {
  int32_t n_sizes; /* 0: there is none */
  int64_t ns[2][RT_STORED_SIZES];
  planc_link fitted[2];
  int64_t misfit_ppm[2];
} storage;

static links read_links(const cJSON *piece);
static storage read_storage(const cJSON *piece);
static void add_device(cJSON *root, const rt_profile_head *head, int64_t reserved, const cJSON *piece, const links *l,
                       const storage *s);
static void add_compute(cJSON *root, const rt_profile_head *head, const planc_graph *graph, const cJSON *pieces,
                        const cJSON *piece);
static void add_origin(cJSON *root, const links *l, const storage *s);
static void add_links(cJSON *root, const links *l, const storage *s);
static void add_loads(cJSON *root, const planc_graph *graph, const cJSON *pieces);
static void add_refused(cJSON *root, const cJSON *pieces);

planc_status rt_profile_compose(const rt_profile_head *head, const planc_graph *graph, const cJSON *pieces,
                                cJSON **out) {
  const cJSON *piece, *of_links = NULL, *of_storage = NULL;
  cJSON_ArrayForEach(piece, pieces) {
    if (rt_piece_is_of_links(piece)) of_links = piece;
    if (rt_piece_is_of_storage(piece)) of_storage = piece;
  }
  if (!of_links) return planc_error(PLANC_INTERNAL, "profile without links");
  int64_t reserved;
  PLANC_TRY(rt_profile_reserved(pieces, head->memory_bytes, &reserved));
  links l = read_links(of_links);
  storage s = read_storage(of_storage);
  cJSON *root = cJSON_CreateObject();
  pl_json_add_int(root, "planc-profile", 1);
  pl_json_add_string(root, "machine", head->machine);
  rt_add_graph_hash(root, graph);
  add_device(root, head, reserved, of_links, &l, &s);
  add_compute(root, head, graph, pieces, of_links);
  add_origin(root, &l, &s);
  rt_profile_add_code(root, pieces);
  pl_json_add(root, "ops", rt_profile_ops(graph, pieces, 0));
  add_links(root, &l, &s);
  add_loads(root, graph, pieces);
  add_refused(root, pieces);
  *out = root;
  return NULL;
}

planc_status rt_profile_compose_described(cJSON *description, const char *machine, const planc_graph *graph,
                                          const cJSON *pieces, cJSON **out) {
  cJSON *origin = cJSON_GetObjectItemCaseSensitive(description, "origin");
  if (!origin) origin = pl_json_add_object(description, "origin");
  pl_json_add_string(origin, "ops",
                     "algorithms, workspaces and notes: the libraries' own, asked without the device; times: "
                     "predicted from the constants here");
  pl_json_add_string(description, "machine", machine);
  rt_add_graph_hash(description, graph);
  pl_json_add(description, "ops", rt_profile_ops(graph, pieces, 0));
  *out = description;
  return NULL;
}

/* --- Device and compute ------------------------------------------------------------------------------------------- */

static void read_times(const cJSON *piece, const char *key, int64_t *out, int32_t n) {
  const cJSON *array = cJSON_GetObjectItemCaseSensitive(piece, key);
  for (int32_t i = 0; i < n; i++) {
    const cJSON *value = cJSON_GetArrayItem(array, i);
    out[i] = cJSON_IsNumber(value) && value->valuedouble > 0 ? (int64_t)value->valuedouble : 1;
  }
}

static const char *const directions[] = {[RT_H2D] = "h2d", [RT_D2H] = "d2h"};

static links read_links(const cJSON *piece) {
  links out;
  int n = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(piece, "h2d_ns"));
  out.n_sizes = n < 2 ? 2 : n > RT_LINK_SIZES ? RT_LINK_SIZES : n;
  read_times(piece, "h2d_ns", out.alone_ns[RT_H2D], out.n_sizes);
  read_times(piece, "d2h_ns", out.alone_ns[RT_D2H], out.n_sizes);
  read_times(piece, "both_ns", out.both_ns, 2);
  read_times(piece, "under_load_ns", out.under_load_ns, 2);
  for (int d = 0; d < 2; d++)
    out.fitted[d] = rt_fit_link(out.n_sizes, rt_link_sizes, out.alone_ns[d], &out.misfit_ppm[d]);
  return out;
}

static const char *const accesses[] = {[RT_STORE] = "write", [RT_LOAD] = "read"};

static storage read_storage(const cJSON *piece) {
  static const char *const keys[] = {[RT_STORE] = "write_ns", [RT_LOAD] = "read_ns"};
  storage out = {0};
  if (!piece) return out;
  int n = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(piece, keys[0]));
  out.n_sizes = n < 2 ? 2 : n > RT_STORED_SIZES ? RT_STORED_SIZES : n;
  for (int d = 0; d < 2; d++) {
    read_times(piece, keys[d], out.ns[d], out.n_sizes);
    out.fitted[d] = rt_fit_link(out.n_sizes, rt_link_sizes + RT_FIRST_STORED, out.ns[d], &out.misfit_ppm[d]);
  }
  return out;
}

static void add_link(cJSON *object, const char *key, const planc_link *fitted) {
  cJSON *link = pl_json_add_object(object, key);
  pl_json_add_int(link, "bytes_per_second", fitted->bytes_per_second);
  pl_json_add_int(link, "latency_ns", fitted->latency_ns);
}

static void add_device(cJSON *root, const rt_profile_head *head, int64_t reserved, const cJSON *piece, const links *l,
                       const storage *s) {
  cJSON *device = pl_json_add_object(root, "device");
  pl_json_add_string(device, "name", head->name);
  pl_json_add_int(device, "memory_bytes", head->memory_bytes);
  pl_json_add_int(device, "reserved_bytes", reserved);
  pl_json_add_int(device, "launch_ns", rt_get_int(piece, "launch_ns"));
  pl_json_add_int(device, "in_flight", IN_FLIGHT);
  int64_t duplex = PL_PPM;
  for (int d = 0; d < 2; d++) {
    add_link(device, directions[d], &l->fitted[d]);
    int64_t share = pl_muldiv_floor(l->alone_ns[d][l->n_sizes - 1], PL_PPM, l->both_ns[d]);
    if (share < duplex) duplex = share > 0 ? share : 1;
  }
  cJSON *tier = s->n_sizes > 0 ? pl_json_add_object(device, "storage") : NULL;
  for (int d = 0; tier && d < 2; d++) add_link(tier, accesses[d], &s->fitted[d]);
  pl_json_add_int(device, "duplex_ppm", duplex);
  pl_json_add_int(device, "slowdown_ppm", rt_get_int(piece, "slowdown_ppm"));
}

/* The most FLOPs a second that any op reached, and the shortest time of any. */
static void find_extremes(const planc_graph *graph, const cJSON *pieces, double *out_flops, int64_t *out_kernel_ns) {
  *out_flops = 1;
  *out_kernel_ns = INT64_MAX;
  const cJSON *piece;
  cJSON_ArrayForEach(piece, pieces) {
    if (rt_piece_is_of_links(piece) || rt_get_int(piece, "load_ppm") != 0) continue;
    const cJSON *time;
    int32_t o = 0;
    cJSON_ArrayForEach(time, cJSON_GetObjectItemCaseSensitive(piece, "times")) {
      while (o < graph->n_ops && strcmp(graph->ops[o].name, rt_get_string(time, "op")) != 0) o++;
      int64_t ns = rt_get_int(time, "time_ns");
      if (o == graph->n_ops) break;
      if (ns <= 0) continue;
      double rate = 1e9 * (double)planc_law_at(graph->ops[o].flops, rt_get_int(piece, "batch")) / (double)ns;
      if (rate > *out_flops) *out_flops = rate;
      if (ns < *out_kernel_ns) *out_kernel_ns = ns;
    }
  }
  if (*out_kernel_ns > MOST_KERNEL_NS) *out_kernel_ns = MOST_KERNEL_NS;
}

/* What planc needs to predict ops that were not measured; half of what was reached at best is assumed of them. */
static void add_compute(cJSON *root, const rt_profile_head *head, const planc_graph *graph, const cJSON *pieces,
                        const cJSON *piece) {
  static const char *const classes[] = {"conv", "gemm", "elementwise", "reduction",
                                        "norm", "pool", "optimizer",   "copy"};
  static const char *const products[] = {"linear", "implicit-gemm", "gemm", "winograd", "fft"};
  double flops;
  int64_t kernel_ns;
  find_extremes(graph, pieces, &flops, &kernel_ns);
  cJSON *compute = pl_json_add_object(root, "compute");
  pl_json_add_int(compute, "flops_per_second", (int64_t)flops);
  pl_json_add_int(compute, "half_flops_per_second", (int64_t)flops);
  int64_t memory = rt_get_int(piece, "memory_bytes_per_second");
  pl_json_add_int(compute, "memory_bytes_per_second", memory > 0 ? memory : 1);
  pl_json_add_int(compute, "processors", head->processors > 0 ? head->processors : 1);
  pl_json_add_int(compute, "kernel_ns", kernel_ns);
  pl_json_add_int(compute, "split_depth", 1);
  cJSON *efficiency = pl_json_add_object(root, "efficiency");
  for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) pl_json_add_int(efficiency, classes[i], PL_PPM / 2);
  cJSON *multiply = pl_json_add_object(root, "multiply");
  for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
    cJSON *product = pl_json_add_object(multiply, products[i]);
    pl_json_add_int(product, "flops_ppm", PL_PPM / 2);
    pl_json_add_int(product, "tile", 16);
    pl_json_add_int(product, "depth_overhead", 0);
  }
}

enum { TENTHS = 10 }; /* of a per cent */

static int64_t tenths_of(int64_t misfit_ppm) {
  return pl_muldiv_ceil(misfit_ppm, (int64_t)100 * TENTHS, PL_PPM);
}

static void add_origin_of_storage(cJSON *origin, const storage *s) {
  char text[240];
  int64_t write = tenths_of(s->misfit_ppm[RT_STORE]), read = tenths_of(s->misfit_ppm[RT_LOAD]);
  snprintf(text, sizeof text,
           "measured by planrun profile --storage: lines through the times of section links, to and from the disk, not "
           "the page cache; off by %" PRId64 ".%" PRId64 " %% and %" PRId64 ".%" PRId64 " %% at most",
           write / TENTHS, write % TENTHS, read / TENTHS, read % TENTHS);
  pl_json_add_string(origin, "device.storage", text);
}

static void add_origin(cJSON *root, const links *l, const storage *s) {
  char text[160];
  cJSON *origin = pl_json_add_object(root, "origin");
  pl_json_add_string(origin, "device",
                     "measured by planrun profile; reserved_bytes: taken beside the ops' memory and code, and room "
                     "for what algorithms share, rounded up");
  for (int d = 0; d < 2; d++) {
    char key[16];
    int64_t tenths = tenths_of(l->misfit_ppm[d]);
    snprintf(key, sizeof key, "device.%s", directions[d]);
    snprintf(text, sizeof text,
             "line through the times of section links, hand-over between streams included; off by %" PRId64 ".%" PRId64
             " %% at most",
             tenths / TENTHS, tenths % TENTHS);
    pl_json_add_string(origin, key, text);
  }
  if (s->n_sizes > 0) add_origin_of_storage(origin, s);
  pl_json_add_string(origin, "compute", "the best rate and the shortest time of any op measured; memory: a large copy");
  pl_json_add_string(origin, "efficiency", "assumed; for ops that were not measured");
  pl_json_add_string(origin, "multiply", "assumed; for ops that were not measured");
}

/* --- Links and loads ---------------------------------------------------------------------------------------------- */

static void add_transfers(cJSON *link, const char *key, const int64_t *times, int32_t first, int32_t n) {
  cJSON *array = pl_json_add_array(link, key);
  for (int32_t s = first; s < first + n; s++) {
    cJSON *transfer = cJSON_CreateObject();
    pl_json_add_int(transfer, "bytes", rt_link_sizes[s]);
    pl_json_add_int(transfer, "ns", times[s - first]);
    pl_json_add(array, NULL, transfer);
  }
}

static void add_links(cJSON *root, const links *l, const storage *s) {
  cJSON *section = pl_json_add_object(root, "links");
  for (int d = 0; d < 2; d++) {
    cJSON *link = pl_json_add_object(section, directions[d]);
    add_transfers(link, "alone", l->alone_ns[d], 0, l->n_sizes);
    add_transfers(link, "both_ways", &l->both_ns[d], l->n_sizes - 1, 1);
    add_transfers(link, "under_load", &l->under_load_ns[d], l->n_sizes - 1, 1);
  }
  cJSON *tier = s->n_sizes > 0 ? pl_json_add_object(section, "storage") : NULL;
  for (int d = 0; tier && d < 2; d++) add_transfers(tier, accesses[d], s->ns[d], RT_FIRST_STORED, s->n_sizes);
}

static bool has_load(const cJSON *loads, int64_t load_ppm) {
  const cJSON *entry;
  cJSON_ArrayForEach(entry, loads) {
    if (rt_get_int(entry, "load_ppm") == load_ppm) return true;
  }
  return false;
}

/* Each load once: sittings that measure several leave their pieces in any order. */
static void add_loads(cJSON *root, const planc_graph *graph, const cJSON *pieces) {
  cJSON *loads = NULL;
  const cJSON *piece;
  cJSON_ArrayForEach(piece, pieces) {
    int64_t load = rt_get_int(piece, "load_ppm");
    if (rt_piece_is_of_links(piece) || rt_piece_is_trial(piece) || load == 0 || has_load(loads, load)) continue;
    if (!loads) loads = pl_json_add_array(root, "loads");
    cJSON *entry = cJSON_CreateObject();
    pl_json_add_int(entry, "load_ppm", load);
    pl_json_add(entry, "ops", rt_profile_ops(graph, pieces, load));
    pl_json_add(loads, NULL, entry);
  }
}

/* --- Refusals ----------------------------------------------------------------------------------------------------- */

static bool is_told(const cJSON *array, const cJSON *refusal) {
  const cJSON *told;
  cJSON_ArrayForEach(told, array) {
    if (cJSON_Compare(told, refusal, true)) return true;
  }
  return false;
}

/* Each once: what a sitting has found another finds again. */
static void add_refusal(cJSON *root, cJSON *refusal) {
  cJSON *array = cJSON_GetObjectItemCaseSensitive(root, "refused");
  if (is_told(array, refusal)) {
    cJSON_Delete(refusal);
    return;
  }
  if (!array) array = pl_json_add_array(root, "refused");
  pl_json_add(array, NULL, refusal);
}

static void add_refused(cJSON *root, const cJSON *pieces) {
  const cJSON *piece, *refusal;
  cJSON_ArrayForEach(piece, pieces) {
    if (rt_trial_has_algorithm(piece)) add_refusal(root, rt_trial_refusal(piece));
    cJSON_ArrayForEach(refusal, cJSON_GetObjectItemCaseSensitive(piece, "refused")) {
      add_refusal(root, cJSON_Duplicate(refusal, true));
    }
  }
}
