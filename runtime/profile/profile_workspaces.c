/* Exact workspaces in a profile (profile_file.h). A library's workspace is no line in the batch, and a plan that has
 * less than an op needs is refused where it is run. */
#include <stdlib.h>
#include <string.h>

#include "planc/cost.h"
#include "runtime/profile/profile_file.h"
#include "runtime/profile/profile_json.h"
#include "runtime/stop.h"
#include "util/ascending.h"
#include "util/json_tree.h"
#include "util/vec.h"

/* What a backend has said of a variant. */
typedef struct workspace_answer {
  int64_t batch, bytes;
  bool off; /* the line between the points gives another */
} workspace_answer;

typedef struct asking {
  cJSON *variant;
  bool skipped; /* there are batches at which it was not asked about */
  VEC(workspace_answer) answers;
} asking;

/* The profile's variants, op by op in the graph's order. */
typedef struct workspaces {
  const rt_list_options *options;
  const planc_profile *profile; /* as it is before any is added */
  int32_t *first;               /* of each op, and behind the last */
  asking *variants;
} workspaces;

static planc_status add(workspaces *w, const cJSON *root, const rt_batches *batches);
static void free_variants(workspaces *w);
static planc_status find_variants(workspaces *w, const cJSON *root);
static planc_status ask_all(const workspaces *w, const rt_batches *batches);
static void write_answers(const asking *of);

planc_status rt_profile_add_workspaces(cJSON *root, const rt_list_options *options, const rt_batches *batches) {
  char *text;
  size_t length;
  PLANC_TRY(pl_json_print(root, PL_JSON_LINE, &text, &length));
  planc_profile *profile;
  planc_status status = planc_profile_parse(text, length, "profile", &profile);
  free(text);
  PLANC_TRY(status);
  workspaces w = {.options = options, .profile = profile};
  status = add(&w, root, batches);
  free_variants(&w);
  planc_profile_free(profile);
  return status;
}

static planc_status add(workspaces *w, const cJSON *root, const rt_batches *batches) {
  PLANC_TRY(find_variants(w, root));
  PLANC_TRY(ask_all(w, batches));
  for (int32_t v = 0; v < w->first[w->options->graph->n_ops]; v++) write_answers(&w->variants[v]);
  return NULL;
}

/* The profile's entry of each op, NULL where it has none; both are in the graph's order. */
static planc_status find_variants(workspaces *w, const cJSON *root) {
  const planc_graph *graph = w->options->graph;
  const cJSON *ops = cJSON_GetObjectItemCaseSensitive(root, "ops"), *op;
  int32_t room = 1;
  cJSON_ArrayForEach(op, ops) room += cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(op, "variants"));
  w->first = calloc((size_t)graph->n_ops + 1, sizeof *w->first);
  w->variants = calloc((size_t)room, sizeof *w->variants);
  if (!w->first || !w->variants) return planc_error(PLANC_OUT_OF_MEMORY, "workspaces");
  op = ops ? ops->child : NULL;
  int32_t n = 0;
  for (int32_t o = 0; o < graph->n_ops; o++) {
    cJSON *variant;
    w->first[o] = n;
    if (!op || strcmp(rt_get_string(op, "op"), graph->ops[o].name) != 0) continue;
    cJSON_ArrayForEach(variant, cJSON_GetObjectItemCaseSensitive(op, "variants")) w->variants[n++].variant = variant;
    op = op->next;
  }
  w->first[graph->n_ops] = n;
  return NULL;
}

static void free_variants(workspaces *w) {
  if (w->first && w->variants)
    for (int32_t v = 0; v < w->first[w->options->graph->n_ops]; v++) VEC_FREE(&w->variants[v].answers);
  free(w->first);
  free(w->variants);
}

/* --- Asking ------------------------------------------------------------------------------------------------------- */

static planc_status ask(const workspaces *w, int64_t batch, bool slow);
static planc_status compare(const workspaces *w, const planc_costs *costs, bool slow, int64_t *exact);
static asking *find(const workspaces *w, int32_t op, const char *algorithm);

/* At these batches and, up to `all_up_to`, at those between. */
static planc_status ask_all(const workspaces *w, const rt_batches *batches) {
  enum { MOST = 4096 };
  int64_t before = 0;
  bool up_to_it = batches->all_up_to <= MOST;
  for (int32_t i = 0; i < batches->n; before = batches->sizes[i++]) {
    int64_t size = batches->sizes[i];
    for (int64_t at = up_to_it && size <= batches->all_up_to ? before + 1 : size; at <= size; at++) {
      if (rt_is_stopped(w->options->stop)) return NULL;
      PLANC_TRY(ask(w, at, at == size && batches->slow));
    }
    if (batches->progress) batches->progress(batches->user, i, batches->n);
  }
  for (int32_t v = 0; !up_to_it && v < w->first[w->options->graph->n_ops]; v++) w->variants[v].skipped = true;
  return NULL;
}

static planc_status ask(const workspaces *w, int64_t batch, bool slow) {
  planc_costs *costs;
  PLANC_TRY(planc_costs_make(w->profile, w->options->graph, 1, &batch, &costs));
  int64_t *exact = calloc((size_t)costs->first[costs->graph->n_ops] + 1, sizeof *exact);
  planc_status status = exact ? compare(w, costs, slow, exact) : planc_error(PLANC_OUT_OF_MEMORY, "workspaces");
  free(exact);
  planc_costs_free(costs);
  return status;
}

/* Compares what planc would take at the batch of `costs` with what the backend has. */
static planc_status compare(const workspaces *w, const planc_costs *costs, bool slow, int64_t *exact) {
  PLANC_TRY(rt_list_workspaces(w->options, costs, slow, exact));
  for (int32_t o = 0; o < costs->graph->n_ops; o++)
    for (int32_t v = costs->first[o]; v < costs->first[o + 1]; v++) {
      asking *variant = find(w, o, costs->variants[v].algorithm);
      if (variant && exact[v] == RT_NOT_ASKED) variant->skipped = true;
      if (!variant || exact[v] == RT_NOT_ASKED) continue;
      workspace_answer given = {costs->batches[0], exact[v], exact[v] != costs->variants[v].workspace_bytes};
      VEC_PUSH(&variant->answers, given);
    }
  return NULL;
}

static asking *find(const workspaces *w, int32_t op, const char *algorithm) {
  for (int32_t v = w->first[op]; v < w->first[op + 1]; v++)
    if (strcmp(rt_get_string(w->variants[v].variant, "algorithm"), algorithm) == 0) return &w->variants[v];
  return NULL;
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

static void add_exact(cJSON *variant, const workspace_answer *given) {
  cJSON *array = cJSON_GetObjectItemCaseSensitive(variant, "workspaces");
  if (!array) array = pl_json_add_array(variant, "workspaces");
  cJSON *workspace = cJSON_CreateObject();
  pl_json_add_int(workspace, "batch", given->batch);
  pl_json_add_int(workspace, "bytes", given->bytes);
  pl_json_add(array, NULL, workspace);
}

static bool is_contradicted(const asking *of);
static bool tells(const asking *of, const workspace_answer *given);
static bool is_beyond(const asking *of, const workspace_answer *given);
static void add_points(cJSON *variant);

/* All answers of a variant that is not on the line and was not asked about everywhere: between them nothing is known.
 * Of others, those that the line does not give, and those beyond the last point, where nothing else is known; none
 * where all of these are that there is no workspace. Without any answer the points have them; and where these say
 * otherwise than an answer, no answer is to be believed. */
static void write_answers(const asking *of) {
  if (is_contradicted(of)) {
    pl_json_add_bool(of->variant, "sampled", true);
    add_points(of->variant);
    return;
  }
  bool off = of->answers.len == 0, telling = false;
  for (int64_t i = 0; i < of->answers.len; i++) {
    off = off || of->answers.data[i].off;
    telling = telling || tells(of, &of->answers.data[i]);
  }
  bool sampled = of->skipped && off;
  if (sampled) pl_json_add_bool(of->variant, "sampled", true);
  for (int64_t i = 0; i < of->answers.len; i++) {
    const workspace_answer *given = &of->answers.data[i];
    if (sampled || given->off || (telling && is_beyond(of, given))) add_exact(of->variant, given);
  }
}

/* Whether an answer says more than the line does, and than that an op without a workspace has none. */
static bool tells(const asking *of, const workspace_answer *given) {
  return given->off || (given->bytes != 0 && is_beyond(of, given));
}

static bool is_beyond(const asking *of, const workspace_answer *given) {
  const cJSON *points = cJSON_GetObjectItemCaseSensitive(of->variant, "points"), *point;
  cJSON_ArrayForEach(point, points) {
    if (rt_get_int(point, "batch") >= given->batch) return false;
  }
  return true;
}

/* A device that is described does not always give what the real one has needed. */
static bool is_contradicted(const asking *of) {
  const cJSON *points = cJSON_GetObjectItemCaseSensitive(of->variant, "points"), *point;
  cJSON_ArrayForEach(point, points) {
    for (int64_t i = 0; i < of->answers.len; i++) {
      const workspace_answer *given = &of->answers.data[i];
      if (given->batch == rt_get_int(point, "batch") && given->bytes != rt_get_int(point, "workspace_bytes"))
        return true;
    }
  }
  return false;
}

static void add_points(cJSON *variant) {
  const cJSON *points = cJSON_GetObjectItemCaseSensitive(variant, "points"), *point;
  cJSON_ArrayForEach(point, points) {
    workspace_answer measured = {.batch = rt_get_int(point, "batch"), .bytes = rt_get_int(point, "workspace_bytes")};
    add_exact(variant, &measured);
  }
}

/* --- Batches ------------------------------------------------------------------------------------------------------ */

typedef VEC(int64_t) size_list;

/* Each number of rounds up to the square root has sizes of its own, and those beyond have sizes up to it. */
static planc_status add_sizes(int64_t batch, size_list *out) {
  for (int64_t k = 1; k - 1 <= batch / k && k <= batch; k++) {
    int64_t size = (batch + k - 1) / k, last = batch - (k - 1) * size;
    VEC_PUSH(out, size);
    VEC_PUSH(out, batch / k);
    if (last > 0) VEC_PUSH(out, last);
    VEC_PUSH(out, k);
  }
  return NULL;
}

planc_status rt_round_sizes(int32_t n, const int64_t *batches, rt_batches *out) {
  size_list sizes = {0};
  planc_status status = NULL;
  *out = (rt_batches){0};
  for (int32_t b = 0; !status && b < n; b++) status = add_sizes(batches[b], &sizes);
  out->sizes = sizes.data;
  PLANC_TRY(status);
  if (sizes.len > 0) qsort(sizes.data, (size_t)sizes.len, sizeof *sizes.data, pl_ascending);
  for (int64_t i = 0; i < sizes.len; i++)
    if (i == 0 || sizes.data[i] != out->sizes[out->n - 1]) out->sizes[out->n++] = sizes.data[i];
  out->all_up_to = out->n > 0 ? out->sizes[out->n - 1] : 0;
  return NULL;
}
