/* Exact workspaces in a profile (profile_file.h). A library's workspace is no line in the batch, and a plan that has
 * less than an op needs is refused where it is run. */
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

/* Compares what planc would take at the batch of `costs` with what the backend has. */
static planc_status compare(cJSON *const *entries, const planc_costs *costs, const planrt_backend *backend,
                            planrt_device *device) {
  int64_t *exact = calloc((size_t)costs->first[costs->graph->n_ops] + 1, sizeof *exact);
  if (!exact) return planc_error(PLANC_OUT_OF_MEMORY, "workspaces");
  planc_status status = planrt_list_workspaces(backend, device, costs, exact);
  for (int32_t o = 0; !status && o < costs->graph->n_ops; o++)
    for (int32_t v = costs->first[o]; entries[o] && v < costs->first[o + 1]; v++) {
      cJSON *variant = find_variant(entries[o], costs->variants[v].algorithm);
      if (variant && exact[v] != costs->variants[v].workspace_bytes) add_exact(variant, costs->batches[0], exact[v]);
    }
  free(exact);
  return status;
}

static planc_status add(cJSON *const *entries, const planc_profile *profile, const planrt_backend *backend,
                        planrt_device *device, const planc_graph *graph, const planrt_batches *batches) {
  for (int32_t i = 0; i < batches->n; i++) {
    planc_costs *costs;
    if (batches->progress) batches->progress(batches->user, i, batches->n);
    PLANC_TRY(planc_costs_make(profile, graph, 1, &batches->sizes[i], &costs));
    planc_status status = compare(entries, costs, backend, device);
    planc_costs_free(costs);
    PLANC_TRY(status);
  }
  return NULL;
}

planc_status planrt_profile_add_workspaces(cJSON *root, const planrt_backend *backend, planrt_device *device,
                                           const planc_graph *graph, const planrt_batches *batches) {
  char *text = cJSON_PrintUnformatted(root);
  if (!text) return planc_error(PLANC_OUT_OF_MEMORY, "profile");
  planc_profile *profile;
  planc_status status = planc_profile_parse(text, strlen(text), "profile", &profile);
  cJSON_free(text);
  PLANC_TRY(status);
  cJSON **entries = find_entries(root, graph);
  status =
      entries ? add(entries, profile, backend, device, graph, batches) : planc_error(PLANC_OUT_OF_MEMORY, "profile");
  free(entries);
  planc_profile_free(profile);
  return status;
}

/* --- Batches ---------------------------------------------------------------------------------------------------- */

static int compare_sizes(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

planc_status planrt_round_sizes(int64_t most, planrt_batches *out) {
  int32_t n = 0;
  *out = (planrt_batches){0};
  /* Each number of rounds up to the square root has sizes of its own, and those beyond have sizes up to it. */
  int64_t root = 1;
  while (root <= most / root) root++;
  int64_t *sizes = calloc((size_t)(4 * (root + 1)), sizeof *sizes);
  if (!sizes) return planc_error(PLANC_OUT_OF_MEMORY, "batches");
  for (int64_t k = 1; k <= root && k <= most; k++) {
    int64_t size = (most + k - 1) / k, last = most - (k - 1) * size;
    sizes[n++] = size;
    sizes[n++] = most / k;
    if (last > 0) sizes[n++] = last;
    sizes[n++] = k;
  }
  qsort(sizes, (size_t)n, sizeof *sizes, compare_sizes);
  for (int32_t i = 0; i < n; i++)
    if (i == 0 || sizes[i] != sizes[out->n - 1]) sizes[out->n++] = sizes[i];
  out->sizes = sizes;
  return NULL;
}

planc_status planrt_all_sizes(int64_t most, planrt_batches *out) {
  *out = (planrt_batches){0};
  int64_t *sizes = calloc((size_t)most + 1, sizeof *sizes);
  if (!sizes) return planc_error(PLANC_OUT_OF_MEMORY, "batches");
  for (out->n = 0; out->n < most; out->n++) sizes[out->n] = out->n + 1;
  out->sizes = sizes;
  return NULL;
}
