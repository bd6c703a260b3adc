/* The ops of a profile: those of its pieces, which have a batch or a pass each, algorithm by algorithm (profile_ops.h).
 */
#include "runtime/profile/profile_ops.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/profile/profile_file.h"
#include "runtime/profile/profile_json.h"
#include "util/json_tree.h"
#include "util/math.h"

static bool add_pieces(const planc_graph *graph, const cJSON *pieces, int64_t load_ppm, cJSON **ops);
static void add_point(cJSON *op, int64_t batch, const cJSON *time);
static cJSON *find_or_add(cJSON *variants, const char *algorithm);
static cJSON *add_variant(cJSON *variant, const cJSON *time);
static void add_absence(cJSON *variant, int64_t batch);
static void raise_workspace(cJSON *variant, int64_t bytes);
static int64_t clamp_ppm(int64_t busy_ppm);
static void insert_point(cJSON *points, cJSON *point);

cJSON *rt_profile_ops(const planc_graph *graph, const cJSON *pieces, int64_t load_ppm) {
  cJSON **ops = calloc((size_t)graph->n_ops + 1, sizeof *ops), *array = cJSON_CreateArray();
  bool merged = ops && pl_json_is_whole(pieces) && add_pieces(graph, pieces, load_ppm, ops);
  for (int32_t o = 0; ops && o < graph->n_ops; o++)
    if (ops[o]) pl_json_add(array, NULL, ops[o]);
  free((void *)ops);
  if (merged) return array;
  cJSON_Delete(array);
  return NULL;
}

/* The pieces of ops at one load, added to entries by op; each has its ops in the graph's order. False: no memory. */
static bool add_pieces(const planc_graph *graph, const cJSON *pieces, int64_t load_ppm, cJSON **ops) {
  const cJSON *piece, *time;
  cJSON_ArrayForEach(piece, pieces) {
    if (rt_piece_is_of_links(piece) || rt_get_int(piece, "load_ppm") != load_ppm) continue;
    int32_t o = 0;
    cJSON_ArrayForEach(time, cJSON_GetObjectItemCaseSensitive(piece, "times")) {
      while (o < graph->n_ops && strcmp(graph->ops[o].name, rt_get_string(time, "op")) != 0) o++;
      if (o == graph->n_ops) break;
      if (rt_pieces_ended_at(pieces, graph->ops[o].name, rt_get_string(time, "algorithm"))) continue;
      if (!ops[o]) {
        ops[o] = cJSON_CreateObject();
        pl_json_add_string(ops[o], "op", graph->ops[o].name);
      }
      if (!ops[o]) return false;
      add_point(ops[o], rt_get_int(piece, "batch"), time);
    }
  }
  return true;
}

static void add_point(cJSON *op, int64_t batch, const cJSON *time) {
  cJSON *variants = cJSON_GetObjectItemCaseSensitive(op, "variants");
  if (!variants) variants = pl_json_add_array(op, "variants");
  cJSON *variant = find_or_add(variants, rt_get_string(time, "algorithm"));
  cJSON *points = cJSON_GetObjectItemCaseSensitive(variant, "points");
  if (!points) points = add_variant(variant, time);
  if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(time, "absent"))) {
    add_absence(variant, batch);
    return;
  }
  raise_workspace(variant, rt_get_int(time, "workspace_bytes"));
  cJSON *point = cJSON_CreateObject();
  pl_json_add_int(point, "batch", batch);
  pl_json_add_int(point, "time_ns", rt_get_int(time, "time_ns"));
  pl_json_add_int(point, "workspace_bytes", rt_get_int(time, "workspace_bytes"));
  pl_json_add_int(point, "busy_ppm", clamp_ppm(rt_get_int(time, "busy_ppm")));
  if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(time, "predicted")))
    pl_json_add_int(point, "spread_ns", rt_get_int(time, "spread_ns"));
  insert_point(points, point);
}

/* cJSON_InsertItemInArray refuses all places but the first and the last in a version of cJSON that Debian 12 has. */
static cJSON *insert_at(cJSON *array, int position, cJSON *item) {
  int behind = cJSON_GetArraySize(array) - position;
  item = pl_json_add(array, NULL, item);
  for (int i = 0; item && i < behind; i++) pl_json_add(array, NULL, cJSON_DetachItemFromArray(array, position));
  return item;
}

/* The variant of that name; a new one if there is none. They are in the order of their names, whatever order they were
 * measured in. */
static cJSON *find_or_add(cJSON *variants, const char *algorithm) {
  cJSON *entry;
  int position = 0;
  cJSON_ArrayForEach(entry, variants) {
    int order = strcmp(rt_get_string(entry, "algorithm"), algorithm);
    if (order == 0) return entry;
    position += order < 0;
  }
  entry = cJSON_CreateObject();
  pl_json_add_string(entry, "algorithm", algorithm);
  return insert_at(variants, position, entry);
}

/* What was not measured counts as all of the device. */
static int64_t clamp_ppm(int64_t busy_ppm) {
  return busy_ppm >= 1 && busy_ppm <= PL_PPM ? busy_ppm : PL_PPM;
}

/* Points ascend by batch. */
static void insert_point(cJSON *points, cJSON *point) {
  int position = 0;
  const cJSON *other;
  cJSON_ArrayForEach(other, points) position += rt_get_int(other, "batch") < rt_get_int(point, "batch");
  insert_at(points, position, point);
}

static void add_notes(cJSON *variant, uint32_t notes) {
  static const char *const names[] = {
#define X(id, name) name,
      RT_NOTES(X)
#undef X
  };
  cJSON *array = notes ? pl_json_add_array(variant, "notes") : NULL;
  for (int n = 0; array && n < RT_N_NOTES; n++)
    if (notes >> n & 1) pl_json_add_string(array, NULL, names[n]);
}

/* What holds for all points of a variant, and the largest workspace of any. */
static cJSON *add_variant(cJSON *variant, const cJSON *time) {
  pl_json_add_bool(variant, "deterministic", cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(time, "deterministic")));
  if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(time, "predicted"))) pl_json_add_bool(variant, "predicted", true);
  add_notes(variant, (uint32_t)rt_get_int(time, "notes"));
  pl_json_add_int(variant, "workspace_bytes", 0);
  return pl_json_add_array(variant, "points");
}

static void raise_workspace(cJSON *variant, int64_t bytes) {
  if (bytes > rt_get_int(variant, "workspace_bytes"))
    cJSON_SetNumberValue(cJSON_GetObjectItemCaseSensitive(variant, "workspace_bytes"), (double)bytes);
}

/* At batches at which an algorithm does not run it has no point. */
static void add_absence(cJSON *variant, int64_t batch) {
  cJSON *workspaces = cJSON_GetObjectItemCaseSensitive(variant, "workspaces"), *absence = cJSON_CreateObject();
  if (!workspaces) workspaces = pl_json_add_array(variant, "workspaces");
  pl_json_add_int(absence, "batch", batch);
  pl_json_add_int(absence, "bytes", -1);
  pl_json_add(workspaces, NULL, absence);
}
