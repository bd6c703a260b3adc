/* What has been measured, as pieces of a profile (profile_file.h). */
#include <string.h>

#include "runtime/profile/profile_file.h"
#include "runtime/profile/profile_json.h"
#include "runtime/profile/profile_taken.h"
#include "util/json_tree.h"

cJSON *rt_piece_of_ops(const planc_graph *graph, int64_t load_ppm, int64_t batch, const rt_op_times *times,
                       const rt_memory_taken *taken) {
  cJSON *piece = cJSON_CreateObject();
  pl_json_add_string(piece, "piece", "ops");
  pl_json_add_int(piece, "load_ppm", load_ppm);
  pl_json_add_int(piece, "batch", batch);
  rt_piece_add_taken(piece, taken);
  cJSON *array = pl_json_add_array(piece, "times");
  for (int64_t i = 0; i < times->len; i++) {
    const rt_op_time *time = &times->data[i];
    cJSON *entry = cJSON_CreateObject();
    pl_json_add_string(entry, "op", graph->ops[time->op].name);
    pl_json_add_string(entry, "algorithm", time->variant.algorithm);
    pl_json_add_bool(entry, "deterministic", time->variant.deterministic);
    pl_json_add_int(entry, "notes", time->variant.notes);
    if (time->variant.workspace_bytes < 0) pl_json_add_bool(entry, "absent", true);
    pl_json_add_int(entry, "workspace_bytes", time->variant.workspace_bytes);
    pl_json_add_int(entry, "time_ns", time->time.median_ns);
    pl_json_add_int(entry, "spread_ns", time->time.spread_ns);
    pl_json_add_int(entry, "busy_ppm", time->busy_ppm);
    pl_json_add_bool(entry, "predicted", time->predicted);
    pl_json_add(array, NULL, entry);
  }
  return piece;
}

static void add_times(cJSON *object, const char *key, const int64_t *times, int32_t n) {
  cJSON *array = pl_json_add_array(object, key);
  for (int32_t i = 0; i < n; i++) {
    pl_json_add_int(array, NULL, times[i]);
  }
}

cJSON *rt_piece_of_links(const rt_link_times *times, const rt_run_costs *run) {
  cJSON *piece = cJSON_CreateObject();
  pl_json_add_string(piece, "piece", "links");
  add_times(piece, "h2d_ns", times->alone_ns[RT_H2D], times->n_sizes);
  add_times(piece, "d2h_ns", times->alone_ns[RT_D2H], times->n_sizes);
  add_times(piece, "both_ns", times->both_ns, 2);
  add_times(piece, "under_load_ns", times->under_load_ns, 2);
  pl_json_add_int(piece, "launch_ns", run->launch_ns);
  pl_json_add_int(piece, "memory_bytes_per_second", times->memory_bytes_per_s);
  pl_json_add_int(piece, "slowdown_ppm", run->slowdown_ppm);
  return piece;
}

cJSON *rt_piece_of_storage(const rt_storage_times *times) {
  cJSON *piece = cJSON_CreateObject();
  pl_json_add_string(piece, "piece", "storage");
  add_times(piece, "write_ns", times->ns[RT_STORE], times->n_sizes);
  add_times(piece, "read_ns", times->ns[RT_LOAD], times->n_sizes);
  return piece;
}

bool rt_piece_is_of_ops(const cJSON *piece, int64_t load_ppm, int64_t batch) {
  return strcmp(rt_get_string(piece, "piece"), "ops") == 0 && rt_get_int(piece, "load_ppm") == load_ppm &&
         rt_get_int(piece, "batch") == batch;
}
bool rt_piece_is_of_links(const cJSON *piece) {
  return strcmp(rt_get_string(piece, "piece"), "links") == 0;
}
bool rt_piece_is_of_storage(const cJSON *piece) {
  return strcmp(rt_get_string(piece, "piece"), "storage") == 0;
}
