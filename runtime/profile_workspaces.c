/* Exact workspaces in a profile (profile_file.h). A library's workspace is no line in the batch, and a plan that has
 * less than an op needs is refused where it is run; asking costs little, so every batch is asked for. */
#include <stdlib.h>
#include <string.h>

#include "planc/cost.h"
#include "runtime/profile_file.h"

static const char *string_of(const cJSON *object, const char *key) {
  const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
  return value ? value : "";
}

/* The profile's entry of each op, NULL where it has none; both are in the graph's order. NULL when memory is short. */
static cJSON **find_entries(const cJSON *profile, const planc_graph *graph) {
  cJSON **entries = calloc((size_t)graph->n_ops + 1, sizeof(cJSON *));
  cJSON *ops = cJSON_GetObjectItemCaseSensitive(profile, "ops"), *at = ops ? ops->child : NULL;
  for (int32_t o = 0; entries && o < graph->n_ops && at; o++) {
    if (strcmp(string_of(at, "op"), graph->ops[o].name) != 0) continue;
    entries[o] = at;
    at = at->next;
  }
  return entries;
}

static cJSON *find_variant(const cJSON *entry, const char *algorithm) {
  cJSON *variant;
  cJSON_ArrayForEach(variant, cJSON_GetObjectItemCaseSensitive(entry, "variants")) {
    if (strcmp(string_of(variant, "algorithm"), algorithm) == 0) return variant;
  }
  return NULL;
}

static void add_exact(cJSON *variant, int64_t batch, int64_t bytes) {
  cJSON *workspaces = cJSON_GetObjectItemCaseSensitive(variant, "workspaces");
  if (!workspaces) workspaces = cJSON_AddArrayToObject(variant, "workspaces");
  cJSON *workspace = cJSON_CreateObject();
  cJSON_AddNumberToObject(workspace, "batch", (double)batch);
  cJSON_AddNumberToObject(workspace, "bytes", (double)bytes);
  cJSON_AddItemToArray(workspaces, workspace);
}

/* The workspace of an op's algorithm in `found`, sorted by op; -1 if it is not there. `*from` is where the op begins.
 */
static int64_t exact_bytes(const planrt_op_times *found, int64_t *from, int32_t op, const char *algorithm) {
  while (*from < found->len && found->data[*from].op < op) ++*from;
  for (int64_t i = *from; i < found->len && found->data[i].op == op; i++)
    if (strcmp(found->data[i].variant.algorithm, algorithm) == 0) return found->data[i].variant.workspace_bytes;
  return -1;
}

/* Compares what planc would take at the batches of `costs` with what the backend has. */
static planc_status compare(cJSON *const *entries, const planc_costs *costs, const planrt_backend *backend) {
  planrt_op_times found = {0};
  int64_t from = 0;
  planc_status status = planrt_list_variants(backend, costs->graph, costs->batches[0], &found);
  for (int32_t o = 0; !status && o < costs->graph->n_ops; o++) {
    int32_t count;
    const planc_variant *variants = planc_costs_variants(costs, o, 0, &count);
    for (int32_t v = 0; entries[o] && v < count; v++) {
      cJSON *variant = find_variant(entries[o], variants[v].algorithm);
      int64_t bytes = exact_bytes(&found, &from, o, variants[v].algorithm);
      if (variant && bytes != variants[v].workspace_bytes) add_exact(variant, costs->batches[0], bytes);
    }
  }
  VEC_FREE(&found);
  return status;
}

static planc_status add(cJSON *const *entries, const planc_profile *profile, const planrt_backend *backend,
                        const planc_graph *graph, int64_t most) {
  for (int64_t batch = 1; batch <= most; batch++) {
    planc_costs *costs;
    PLANC_TRY(planc_costs_make(profile, graph, 1, &batch, &costs));
    planc_status status = compare(entries, costs, backend);
    planc_costs_free(costs);
    PLANC_TRY(status);
  }
  return NULL;
}

planc_status planrt_profile_add_workspaces(cJSON *root, const planrt_backend *backend, const planc_graph *graph,
                                           int64_t most) {
  char *text = cJSON_PrintUnformatted(root);
  if (!text) return planc_error(PLANC_OUT_OF_MEMORY, "profile");
  planc_profile *profile;
  planc_status status = planc_profile_parse(text, strlen(text), "profile", &profile);
  cJSON_free(text);
  PLANC_TRY(status);
  cJSON **entries = find_entries(root, graph);
  status = entries ? add(entries, profile, backend, graph, most) : planc_error(PLANC_OUT_OF_MEMORY, "profile");
  free(entries);
  planc_profile_free(profile);
  return status;
}
