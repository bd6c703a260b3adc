/* Pieces of ops that are passes of a batch (profile_file.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/profile/profile_file.h"
#include "runtime/profile/profile_json.h"
#include "util/json_tree.h"

void rt_piece_of_pass(cJSON *piece, int32_t number, int32_t of, const cJSON *refused) {
  pl_json_add_int(piece, "pass", number);
  pl_json_add_int(piece, "passes", of);
  if (!pl_json_is_whole(refused) || refused->child) pl_json_add(piece, "refused", cJSON_Duplicate(refused, true));
}

int32_t rt_pieces_next_pass(const cJSON *pieces, int64_t load_ppm, int64_t batch) {
  const cJSON *piece;
  int64_t next = 0, of = -1;
  cJSON_ArrayForEach(piece, pieces) {
    if (!rt_piece_is_of_ops(piece, load_ppm, batch)) continue;
    next = rt_get_int(piece, "pass") + 1;
    of = rt_get_int(piece, "passes");
  }
  return next == of || next > INT32_MAX ? -1 : (int32_t)next;
}

static void take_fastest(const planc_graph *graph, const cJSON *pieces, const cJSON *piece, rt_op_time *best);

planc_status rt_pieces_fastest(const cJSON *pieces, const planc_graph *graph, int64_t batch, rt_op_times *out) {
  rt_op_time *best = calloc((size_t)graph->n_ops + 1, sizeof *best);
  if (!best) return planc_error(PLANC_OUT_OF_MEMORY, "profile");
  const cJSON *piece;
  cJSON_ArrayForEach(piece, pieces) {
    if (rt_piece_is_of_ops(piece, 0, batch)) take_fastest(graph, pieces, piece, best);
  }
  planc_status status = VEC_RESERVE(out, graph->n_ops);
  for (int32_t o = 0; !status && o < graph->n_ops; o++)
    if (*best[o].variant.algorithm) out->data[out->len++] = best[o];
  free(best);
  return status;
}

/* Whether `a` is the one to choose. */
static bool is_better(const rt_op_time *a, const rt_op_time *b) {
  if (a->time.median_ns != b->time.median_ns) return a->time.median_ns < b->time.median_ns;
  if (a->variant.deterministic != b->variant.deterministic) return a->variant.deterministic;
  return a->variant.workspace_bytes < b->variant.workspace_bytes;
}

static rt_op_time read_time(const cJSON *entry, int32_t op) {
  rt_op_time time = {.op = op, .time.median_ns = rt_get_int(entry, "time_ns")};
  snprintf(time.variant.algorithm, sizeof time.variant.algorithm, "%s", rt_get_string(entry, "algorithm"));
  time.variant.workspace_bytes = rt_get_int(entry, "workspace_bytes");
  time.variant.deterministic = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(entry, "deterministic"));
  return time;
}

/* Both are in the graph's order. */
static void take_fastest(const planc_graph *graph, const cJSON *pieces, const cJSON *piece, rt_op_time *best) {
  const cJSON *entry;
  int32_t o = 0;
  cJSON_ArrayForEach(entry, cJSON_GetObjectItemCaseSensitive(piece, "times")) {
    while (o < graph->n_ops && strcmp(graph->ops[o].name, rt_get_string(entry, "op")) != 0) o++;
    if (o == graph->n_ops) return;
    if (rt_pieces_ended_at(pieces, graph->ops[o].name, rt_get_string(entry, "algorithm"))) continue;
    rt_op_time time = read_time(entry, o);
    if (!*best[o].variant.algorithm || is_better(&time, &best[o])) best[o] = time;
  }
}
