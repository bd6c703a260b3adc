/* Collects measured times (predict_samples.h). */
#include "cost/predict_samples.h"

#include <stdlib.h>
#include <string.h>

#include "cost/predict_model.h"
#include "cost/profile.h"
#include "util/hash.h"

/* Where the samples of an op go. */
typedef struct collecting {
  const planc_profile *base;
  const planc_fit_case *of;
  int32_t index, op, fold;
  int64_t load_ppm;
  pl_samples *out;
} collecting;

static planc_status collect(collecting *c, const pl_measured *measured, const pl_map *ops);

planc_status pl_samples_collect(const planc_profile *base, const planc_fit_case *of, int32_t index, pl_samples *out) {
  collecting c = {.base = base, .of = of, .index = index, .out = out};
  pl_map ops = {0};
  planc_status status = NULL;
  for (int32_t o = 0; !status && o < of->graph->n_ops; o++)
    status = pl_map_put(&ops, of->graph->ops[o].name, strlen(of->graph->ops[o].name), o);
  if (!status) status = collect(&c, &of->profile->measured, &ops);
  for (int32_t l = 0; !status && l < of->profile->n_loads; l++) {
    c.load_ppm = of->profile->loads[l].load_ppm;
    status = collect(&c, &of->profile->loads[l].ops, &ops);
  }
  pl_map_free(&ops);
  return status;
}

static planc_status add_point(const collecting *c, const pl_measured_variant *variant, const pl_point *point) {
  const planc_op *op = &c->of->graph->ops[c->op];
  pl_sample sample = {.type = op->type,
                      .algorithm = variant->algorithm,
                      .graph = c->index,
                      .fold = c->fold,
                      .deterministic = variant->deterministic,
                      .time_ns = point->time_ns > 0 ? point->time_ns : 1,
                      .workspace_bytes = point->workspace_bytes,
                      .busy_ppm = point->busy_ppm};
  int64_t roofline_ns;
  PLANC_TRY(pl_features_of(c->of->graph, op, point->batch, c->load_ppm, &sample.features));
  PLANC_TRY(
      pl_loaded_roofline(c->base, c->of->graph, c->op, point->batch, variant->algorithm, c->load_ppm, &roofline_ns));
  sample.features.at[PL_FEATURE_roofline] = pl_log2_fixed(roofline_ns);
  VEC_PUSH(c->out, sample);
  return NULL;
}

static planc_status add_op(const collecting *c, const pl_measured_op *measured) {
  for (int32_t v = 0; v < measured->n_variants; v++) {
    const pl_measured_variant *variant = &measured->variants[v];
    for (int32_t p = 0; p < variant->n_points && !variant->predicted; p++)
      PLANC_TRY(add_point(c, variant, &variant->points[p]));
  }
  return NULL;
}

static planc_status collect(collecting *c, const pl_measured *measured, const pl_map *ops) {
  for (int32_t m = 0; m < measured->n_ops; m++) {
    const char *name = measured->ops[m].name;
    size_t length = strlen(name);
    c->op = pl_map_get(ops, name, length);
    if (c->op < 0)
      return planc_error(PLANC_BAD_INPUT, "%s: op %s is not in graph %s", c->of->name, name, c->of->graph->name);
    uint64_t hash = PL_HASH_START;
    pl_hash_bytes(&hash, name, length);
    c->fold = (int32_t)(hash % PL_FOLDS);
    PLANC_TRY(add_op(c, &measured->ops[m]));
  }
  return NULL;
}

static int compare_samples(const void *left, const void *right);
static int compare_groups(const pl_sample *a, const pl_sample *b);
static int compare_shapes(const pl_sample *a, const pl_sample *b);
static int compare(int64_t a, int64_t b);

void pl_samples_sort(pl_samples *samples) {
  if (samples->len > 0) qsort(samples->data, (size_t)samples->len, sizeof *samples->data, compare_samples);
}

/* Whole, so that the order of the cases and of their ops makes no difference to the model. */
static int compare_samples(const void *left, const void *right) {
  const pl_sample *a = left, *b = right;
  int order = compare_groups(a, b);
  if (!order) order = compare_shapes(a, b);
  if (!order) order = compare(a->time_ns, b->time_ns);
  if (!order) order = compare(a->workspace_bytes, b->workspace_bytes);
  if (!order) order = compare(a->busy_ppm, b->busy_ppm);
  if (!order) order = compare(a->deterministic, b->deterministic);
  if (!order) order = compare(a->graph, b->graph);
  return order ? order : compare(a->fold, b->fold);
}

bool pl_samples_same_group(const pl_sample *a, const pl_sample *b) {
  return compare_groups(a, b) == 0;
}

bool pl_samples_same_shape(const pl_sample *a, const pl_sample *b) {
  return compare_groups(a, b) == 0 && compare_shapes(a, b) == 0;
}

/* --- Order -------------------------------------------------------------------------------------------------------- */

static int compare(int64_t a, int64_t b) {
  return (a > b) - (a < b);
}

static int compare_groups(const pl_sample *a, const pl_sample *b) {
  int order = strcmp(a->type, b->type);
  return order ? order : strcmp(a->algorithm, b->algorithm);
}

static int compare_shapes(const pl_sample *a, const pl_sample *b) {
  for (int32_t f = 0; f < PL_N_FEATURES; f++)
    if (a->features.at[f] != b->features.at[f]) return compare(a->features.at[f], b->features.at[f]);
  return 0;
}
