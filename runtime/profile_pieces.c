/* What has been measured, as pieces of a profile (profile_file.h). */
#include <string.h>

#include "runtime/profile_file.h"
#include "runtime/profile_json.h"
#include "runtime/profile_taken.h"

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
