/* Prints profiles, planc-profile(5): what they all begin with, and tables of measured ops. */
#include "cost/profile_print.h"

#include <stdlib.h>
#include <string.h>

#include "cost/routes.h"

static void emit_device(pl_emit *emit, const planc_device *device, const char *name);
static void emit_compute(pl_emit *emit, const pl_compute *compute);
static void emit_rates(pl_emit *emit, const planc_profile *profile);
static void emit_labels(pl_emit *emit, const char *section, const pl_labels *labels);
static void emit_cache(pl_emit *emit, const pl_cache_rate *cache);
static void emit_occupancy(pl_emit *emit, const pl_occupancy *occupancy);
static bool is_of_head(const pl_origin *origin);

void pl_profile_emit_head(pl_emit *emit, const planc_profile *profile, const char *name, const char *section,
                          const char *origin) {
  EMIT(emit, "{\"planc-profile\":1,\n");
  emit_device(emit, &profile->device, name);
  emit_compute(emit, &profile->compute);
  emit_rates(emit, profile);
  emit_labels(emit, "code", &profile->code);
  emit_cache(emit, &profile->cache);
  emit_occupancy(emit, &profile->occupancy);
  emit_labels(emit, "types", &profile->types);
  emit_labels(emit, "rates", &profile->rates);
  EMIT(emit, "\"origin\":{");
  for (int32_t o = 0; o < profile->n_origins; o++) {
    if (!is_of_head(&profile->origins[o])) continue;
    pl_emit_string(emit, profile->origins[o].of);
    EMIT(emit, ":");
    pl_emit_string(emit, profile->origins[o].text);
    EMIT(emit, ",");
  }
  pl_emit_string(emit, section);
  EMIT(emit, ":");
  pl_emit_string(emit, origin);
  EMIT(emit, "},\n");
}

void pl_profile_emit_graph(pl_emit *emit, uint64_t graph_hash) {
  EMIT(emit, "\"graph_hash\":");
  pl_emit_hash(emit, graph_hash);
  EMIT(emit, ",\n");
}

/* --- What all profiles have --------------------------------------------------------------------------------------- */

static void emit_link(pl_emit *emit, const planc_link *link) {
  EMIT_INT(emit, "{\"bytes_per_second\":", link->bytes_per_second);
  EMIT_INT(emit, ",\"latency_ns\":", link->latency_ns);
  EMIT(emit, "}");
}

static void emit_device(pl_emit *emit, const planc_device *device, const char *name) {
  EMIT(emit, "\"device\":{\"name\":");
  pl_emit_string(emit, name ? name : device->name);
  EMIT_INT(emit, ",\"memory_bytes\":", device->memory_bytes);
  EMIT_INT(emit, ",\"reserved_bytes\":", device->reserved_bytes);
  EMIT_INT(emit, ",\"launch_ns\":", device->launch_ns);
  EMIT_INT(emit, ",\"in_flight\":", device->in_flight);
  EMIT(emit, ",\"h2d\":");
  emit_link(emit, &device->links[PLANC_ROUTE_H2D]);
  EMIT(emit, ",\"d2h\":");
  emit_link(emit, &device->links[PLANC_ROUTE_D2H]);
  if (pl_device_reaches(device, PLANC_MEMORY_STORAGE)) {
    EMIT(emit, ",\"storage\":{\"write\":");
    emit_link(emit, &device->links[PLANC_ROUTE_STORE]);
    EMIT(emit, ",\"read\":");
    emit_link(emit, &device->links[PLANC_ROUTE_LOAD]);
    EMIT(emit, "}");
  }
  EMIT_INT(emit, ",\"duplex_ppm\":", device->duplex_ppm);
  EMIT_INT(emit, ",\"slowdown_ppm\":", device->slowdown_ppm);
  if (device->paging_ppm > 0) EMIT_INT(emit, ",\"paging_ppm\":", device->paging_ppm);
  EMIT(emit, "},\n");
}

static void emit_compute(pl_emit *emit, const pl_compute *compute) {
  EMIT_INT(emit, "\"compute\":{\"flops_per_second\":", compute->flops_per_second);
  EMIT_INT(emit, ",\"half_flops_per_second\":", compute->half_flops_per_second);
  EMIT_INT(emit, ",\"memory_bytes_per_second\":", compute->memory_bytes_per_second);
  EMIT_INT(emit, ",\"processors\":", compute->processors);
  EMIT_INT(emit, ",\"kernel_ns\":", compute->kernel_ns);
  EMIT_INT(emit, ",\"split_depth\":", compute->split_depth);
  if (compute->sustained_ppm) EMIT_INT(emit, ",\"sustained_ppm\":", compute->sustained_ppm);
  if (compute->tf32_flops_per_second) EMIT_INT(emit, ",\"tf32_flops_per_second\":", compute->tf32_flops_per_second);
  EMIT(emit, "},\n");
}

static void emit_rates(pl_emit *emit, const planc_profile *profile) {
  static const char *const products[PL_N_MULTIPLIES] = {
#define X(id, name) name,
      PL_MULTIPLIES(X)
#undef X
  };
  EMIT(emit, "\"efficiency\":{");
  for (int32_t c = 0; c < PL_N_CLASSES; c++) {
    if (c > 0) EMIT(emit, ",");
    pl_emit_string(emit, pl_class_name((planc_class)c));
    EMIT_INT(emit, ":", profile->efficiency_ppm[c]);
  }
  EMIT(emit, "},\n\"multiply\":{");
  for (int32_t m = 0; m < PL_N_MULTIPLIES; m++) {
    if (!profile->multiply[m].tile) continue;
    if (m > 0) EMIT(emit, ",");
    pl_emit_string(emit, products[m]);
    EMIT_INT(emit, ":{\"flops_ppm\":", profile->multiply[m].flops_ppm);
    EMIT_INT(emit, ",\"tile\":", profile->multiply[m].tile);
    EMIT_INT(emit, ",\"depth_overhead\":", profile->multiply[m].depth_overhead);
    if (profile->multiply[m].small_tile) {
      EMIT_INT(emit, ",\"small_tile\":", profile->multiply[m].small_tile);
      EMIT_INT(emit, ",\"small_flops_ppm\":", profile->multiply[m].small_flops_ppm);
    }
    EMIT(emit, "}");
  }
  EMIT(emit, "},\n");
}

static void emit_labels(pl_emit *emit, const char *section, const pl_labels *labels) {
  if (labels->n == 0) return;
  pl_emit_string(emit, section);
  EMIT(emit, ":{");
  for (int32_t i = 0; i < labels->n; i++) {
    if (i > 0) EMIT(emit, ",");
    pl_emit_string(emit, labels->of[i].label);
    EMIT_INT(emit, ":", labels->of[i].value);
  }
  EMIT(emit, "},\n");
}

static void emit_cache(pl_emit *emit, const pl_cache_rate *cache) {
  if (!cache->bytes) return;
  EMIT_INT(emit, "\"cache\":{\"bytes\":", cache->bytes);
  EMIT_INT(emit, ",\"bytes_per_second\":", cache->bytes_per_second);
  EMIT(emit, "},\n");
}

static void emit_occupancy(pl_emit *emit, const pl_occupancy *occupancy) {
  if (!occupancy->threads) return;
  EMIT_INT(emit, "\"occupancy\":{\"threads\":", occupancy->threads);
  EMIT_INT(emit, ",\"thread_elements\":", occupancy->thread_elements);
  EMIT_INT(emit, ",\"norm_threads\":", occupancy->norm_threads);
  EMIT_INT(emit, ",\"result_threads\":", occupancy->result_threads);
  EMIT_INT(emit, ",\"outputs\":", occupancy->outputs);
  EMIT(emit, "},\n");
}

/* True for the origin of a part that all profiles have. */
static bool is_of_head(const pl_origin *origin) {
  static const char *const sections[] = {"device",    "compute", "efficiency", "multiply", "cache",
                                         "occupancy", "types",   "rates",      "code"};
  size_t length = strcspn(origin->of, ".");
  for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
    if (strlen(sections[i]) == length && strncmp(sections[i], origin->of, length) == 0) return true;
  return false;
}

/* --- Measured ops ------------------------------------------------------------------------------------------------- */

static void emit_op(pl_emit *emit, const pl_measured_op *op);
static void emit_variant(pl_emit *emit, const pl_measured_variant *variant);

planc_status pl_profile_print_ops(const planc_profile *profile, const char *origin, char **out_text,
                                  size_t *out_length) {
  pl_emit emit = {0};
  pl_profile_emit_head(&emit, profile, NULL, "ops", origin);
  if (profile->has_graph_hash) pl_profile_emit_graph(&emit, profile->graph_hash);
  EMIT(&emit, "\"ops\":[");
  for (int32_t o = 0; o < profile->measured.n_ops; o++) {
    if (o > 0) EMIT(&emit, ",");
    EMIT(&emit, "\n ");
    emit_op(&emit, &profile->measured.ops[o]);
  }
  EMIT(&emit, "]}\n");
  return pl_emit_take(&emit, out_text, out_length);
}

static void emit_op(pl_emit *emit, const pl_measured_op *op) {
  EMIT(emit, "{\"op\":");
  pl_emit_string(emit, op->name);
  EMIT(emit, ",\"variants\":[");
  for (int32_t v = 0; v < op->n_variants; v++) {
    if (v > 0) EMIT(emit, ",");
    emit_variant(emit, &op->variants[v]);
  }
  EMIT(emit, "]}");
}

static void emit_point(pl_emit *emit, const pl_point *point) {
  EMIT_INT(emit, "{\"batch\":", point->batch);
  EMIT_INT(emit, ",\"time_ns\":", point->time_ns);
  EMIT_INT(emit, ",\"workspace_bytes\":", point->workspace_bytes);
  EMIT_INT(emit, ",\"busy_ppm\":", point->busy_ppm);
  if (point->spread_ns > 0) EMIT_INT(emit, ",\"spread_ns\":", point->spread_ns);
  if (point->scaled_from > 0) EMIT_INT(emit, ",\"scaled_from\":", point->scaled_from);
  EMIT(emit, "}");
}

static void emit_workspaces(pl_emit *emit, const pl_measured_variant *variant) {
  EMIT(emit, ",\"workspaces\":[");
  for (int32_t w = 0; w < variant->n_workspaces; w++) {
    if (w > 0) EMIT(emit, ",");
    EMIT_INT(emit, "{\"batch\":", variant->workspaces[w].batch);
    EMIT_INT(emit, ",\"bytes\":", variant->workspaces[w].bytes);
    EMIT(emit, "}");
  }
  EMIT(emit, "]");
}

static void emit_variant(pl_emit *emit, const pl_measured_variant *variant) {
  EMIT(emit, "{\"algorithm\":");
  pl_emit_string(emit, variant->algorithm);
  if (variant->deterministic) {
    EMIT(emit, ",\"deterministic\":true");
  } else {
    EMIT(emit, ",\"deterministic\":false");
  }
  if (variant->predicted) EMIT(emit, ",\"predicted\":true");
  if (variant->sampled) EMIT(emit, ",\"sampled\":true");
  EMIT(emit, ",\"points\":[");
  for (int32_t p = 0; p < variant->n_points; p++) {
    if (p > 0) EMIT(emit, ",");
    emit_point(emit, &variant->points[p]);
  }
  EMIT(emit, "]");
  if (variant->n_workspaces > 0) emit_workspaces(emit, variant);
  EMIT(emit, "}");
}
