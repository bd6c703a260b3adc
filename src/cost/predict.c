/* Predicts the costs of a graph's ops (planc/predict.h). The model is asked once for each shape: graphs repeat
 * themselves. */
#include "planc/predict.h"

#include <stdlib.h>
#include <string.h>

#include "cost/predict_model.h"
#include "cost/profile.h"
#include "util/map.h"
#include "util/math.h"
#include "util/vec.h"

typedef VEC(planc_variant) predicted_list;
typedef VEC(int32_t) prediction_list;
typedef VEC(int64_t) distance_list;

/* What is known of a shape: variants of a group, and which groups of a type are nearest. */
typedef struct memory {
  pl_arena keys;
  pl_map by_key; /* bytes of group and features to an index of variants */
  predicted_list variants;
  pl_map by_shape;         /* bytes of a type's first group and features without roofline to an index of nearest */
  prediction_list nearest; /* how many groups, and they; the next */
  distance_list apart;
} memory;

typedef struct key {
  int64_t group;
  pl_features features;
} key;

typedef struct predicting_ops {
  const planc_predict_options *options;
  planc_predicted_costs *out;
  planc_profile bare; /* without measured ops */
  const planc_model *model;
  planc_costs *roofline; /* of all ops and batches */
  planc_costs *listed;   /* of `listed`, or NULL */
  predicted_list variants;
  prediction_list first;
  memory memory;
} predicting_ops;

/* The model's groups of an op's type: `count` from `first` on. A model names types as graphs do. */
typedef struct op_groups {
  int32_t first, count;
} op_groups;

static planc_status set_up(predicting_ops *p);
static planc_status fill(predicting_ops *p);
static void tear_down(predicting_ops *p);
static op_groups groups_of(const predicting_ops *p, int32_t op);
static planc_status add_op(predicting_ops *p, int32_t op, int32_t batch_index, op_groups groups, bool *out_modelled);
static int by_algorithm(const void *a, const void *b);
static void keep_rising(const predicting_ops *p, int64_t before, int64_t from, int64_t to);
static bool is_listed(const predicting_ops *p, int32_t op);
static planc_status add_listed(predicting_ops *p, int32_t op, int32_t batch_index, op_groups groups,
                               pl_features *features, bool *out_modelled);
static planc_status add_roofline(predicting_ops *p, int32_t op, int32_t batch_index);
static planc_status add_by_shape(predicting_ops *p, int32_t op, int64_t batch, op_groups groups, pl_features *features);

planc_status planc_predict(const planc_predict_options *options, planc_predicted_costs **out) {
  *out = NULL;
  planc_predicted_costs *costs = calloc(1, sizeof *costs);
  if (!costs) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  *costs = (planc_predicted_costs){
      .graph = options->graph, .profile = options->profile, .listed = options->listed, .load_ppm = options->load_ppm};
  predicting_ops p = {.options = options, .out = costs, .bare = *options->profile, .model = options->profile->model};
  p.bare.measured = (pl_measured){0};
  planc_status status = set_up(&p);
  if (!status) status = fill(&p);
  costs->first = p.first.data;
  costs->variants = p.variants.data;
  tear_down(&p);
  if (status) {
    planc_predicted_costs_free(costs);
    return status;
  }
  *out = costs;
  return NULL;
}

static planc_status fill(predicting_ops *p) {
  const planc_graph *graph = p->options->graph;
  for (int32_t o = 0; o < graph->n_ops; o++) {
    bool modelled = false;
    op_groups groups = groups_of(p, o);
    int64_t before = p->variants.len;
    for (int32_t b = 0; b < p->out->n_batches; b++) {
      int64_t from = p->variants.len;
      VEC_PUSH(&p->first, (int32_t)from);
      PLANC_TRY(add_op(p, o, b, groups, &modelled));
      int64_t n = p->variants.len - from;
      if (p->variants.len > INT32_MAX) return planc_error(PLANC_BAD_INPUT, "more than 2^31 costs");
      if (n > 1) qsort(p->variants.data + from, (size_t)n, sizeof *p->variants.data, by_algorithm);
      keep_rising(p, before, from, p->variants.len);
      before = from;
    }
    p->out->n_modelled += modelled;
  }
  VEC_PUSH(&p->first, (int32_t)p->variants.len);
  return NULL;
}

/* `*out_modelled` tells whether the model knows the op. */
static planc_status add_op(predicting_ops *p, int32_t op, int32_t batch_index, op_groups groups, bool *out_modelled) {
  const planc_graph *graph = p->options->graph;
  int64_t batch = p->out->batches[batch_index];
  *out_modelled = groups.count > 0;
  pl_features features;
  PLANC_TRY(pl_features_of(graph, &graph->ops[op], batch, p->options->load_ppm, &features));
  if (is_listed(p, op)) return add_listed(p, op, batch_index, groups, &features, out_modelled);
  if (groups.count == 0) return add_roofline(p, op, batch_index);
  return add_by_shape(p, op, batch, groups, &features);
}

void planc_predicted_costs_free(planc_predicted_costs *costs) {
  if (!costs) return;
  free((void *)costs->batches);
  free((void *)costs->first);
  free((void *)costs->variants);
  free(costs);
}

static op_groups groups_of(const predicting_ops *p, int32_t op) {
  op_groups out = {0};
  if (p->model) out.first = pl_model_groups_of(p->model, p->options->graph->ops[op].type, &out.count);
  return out;
}

/* --- One variant -------------------------------------------------------------------------------------------------- */

static planc_status put(memory *m, pl_map *map, const key *of, int64_t index) {
  const char *bytes;
  if (index > INT32_MAX) return planc_error(PLANC_BAD_INPUT, "more than 2^31 costs");
  PLANC_TRY(pl_arena_strndup(&m->keys, (const char *)of, sizeof *of, &bytes));
  return pl_map_put(map, bytes, sizeof *of, (int32_t)index);
}

static planc_status predict_variant(predicting_ops *p, int32_t group, const pl_features *features, planc_variant *out) {
  key of = {.group = group, .features = *features};
  int32_t known = pl_map_get(&p->memory.by_key, (const char *)&of, sizeof of);
  if (known >= 0) {
    *out = p->memory.variants.data[known];
    return NULL;
  }
  *out = pl_model_variant(&p->model->groups[group], features);
  PLANC_TRY(put(&p->memory, &p->memory.by_key, &of, p->memory.variants.len));
  VEC_PUSH(&p->memory.variants, *out);
  return NULL;
}

static planc_status add_modelled(predicting_ops *p, int32_t op, int64_t batch, int32_t group, pl_features *features) {
  const pl_model_group *by = &p->model->groups[group];
  int64_t roofline_ns;
  planc_variant variant;
  PLANC_TRY(
      pl_loaded_roofline(&p->bare, p->options->graph, op, batch, by->algorithm, p->options->load_ppm, &roofline_ns));
  features->at[PL_FEATURE_roofline] = pl_log2_fixed(roofline_ns);
  PLANC_TRY(predict_variant(p, group, features, &variant));
  /* Samples of an idle device tell nothing of shares: no op has more than one that would take all. */
  int64_t most_ppm = pl_muldiv_ceil(PL_PPM, PL_PPM, PL_PPM + p->options->load_ppm);
  if (variant.busy_ppm > most_ppm) variant.busy_ppm = most_ppm;
  VEC_PUSH(&p->variants, variant);
  return NULL;
}

/* --- One op at one batch ------------------------------------------------------------------------------------------ */

/* What an op and others would keep busy beyond all of the device they share in proportion: the op takes longer for the
 * same work. */
static planc_status add_loaded(predicting_ops *p, planc_variant variant) {
  int64_t wanted_ppm = variant.busy_ppm + p->options->load_ppm;
  if (wanted_ppm > PL_PPM) {
    variant.time_ns = pl_muldiv_ceil(variant.time_ns, wanted_ppm, PL_PPM);
    variant.busy_ppm = pl_muldiv_ceil(variant.busy_ppm, PL_PPM, wanted_ppm);
  }
  if (variant.time_ns > PL_JSON_MAX) variant.time_ns = PL_JSON_MAX;
  VEC_PUSH(&p->variants, variant);
  return NULL;
}

/* By the constants, as many kinds of kernel as those know. */
static planc_status add_roofline(predicting_ops *p, int32_t op, int32_t batch_index) {
  int32_t count;
  const planc_variant *variants = planc_costs_variants(p->roofline, op, batch_index, &count);
  for (int32_t v = 0; v < count; v++) PLANC_TRY(add_loaded(p, variants[v]));
  return NULL;
}

/* Of the type's groups those of which a sample is as near as any: an index of memory.nearest. */
static planc_status find_nearest(predicting_ops *p, op_groups groups, const pl_features *features, int32_t *out) {
  memory *m = &p->memory;
  key of = {.group = groups.first, .features = *features};
  of.features.at[PL_FEATURE_roofline] = 0;
  *out = pl_map_get(&m->by_shape, (const char *)&of, sizeof of);
  if (*out >= 0) return NULL;
  PLANC_TRY(put(m, &m->by_shape, &of, m->nearest.len));
  *out = (int32_t)m->nearest.len;
  int64_t nearest = INT64_MAX;
  m->apart.len = 0;
  for (int32_t g = groups.first; g < groups.first + groups.count; g++) {
    int64_t apart = pl_model_nearest(&p->model->groups[g], features);
    VEC_PUSH(&m->apart, apart);
    if (apart < nearest) nearest = apart;
  }
  VEC_PUSH(&m->nearest, 0);
  for (int32_t g = 0; g < groups.count; g++) {
    if (m->apart.data[g] != nearest) continue;
    m->nearest.data[*out]++;
    VEC_PUSH(&m->nearest, groups.first + g);
  }
  return NULL;
}

/* The algorithms that the nearest op was measured with. */
static planc_status add_by_shape(predicting_ops *p, int32_t op, int64_t batch, op_groups groups,
                                 pl_features *features) {
  int32_t at;
  PLANC_TRY(find_nearest(p, groups, features, &at));
  for (int32_t k = 1; k <= p->memory.nearest.data[at]; k++)
    PLANC_TRY(add_modelled(p, op, batch, p->memory.nearest.data[at + k], features));
  return NULL;
}

/* What the constants say of an algorithm that they know, or else of its kind. */
static planc_status add_by_constants(predicting_ops *p, int32_t op, int32_t batch_index, const char *algorithm) {
  int32_t count;
  const planc_variant *known = planc_costs_variants(p->roofline, op, batch_index, &count);
  for (int32_t v = 0; v < count; v++)
    if (strcmp(known[v].algorithm, algorithm) == 0) return add_loaded(p, known[v]);
  planc_variant variant;
  PLANC_TRY(planc_cost_roofline(&p->bare, p->options->graph, op, p->out->batches[batch_index], pl_method_of(algorithm),
                                &variant));
  variant.algorithm = algorithm;
  return add_loaded(p, variant);
}

/* The algorithms and workspaces that are listed. `*out_modelled` tells whether the model knows one of them. */
static planc_status add_listed(predicting_ops *p, int32_t op, int32_t batch_index, op_groups groups,
                               pl_features *features, bool *out_modelled) {
  int32_t n, end = groups.first + groups.count;
  const planc_variant *listed = planc_costs_variants(p->listed, op, batch_index, &n);
  *out_modelled = false;
  for (int32_t v = 0; v < n; v++) {
    int32_t g = groups.first;
    while (g < end && strcmp(p->model->groups[g].algorithm, listed[v].algorithm) != 0) g++;
    bool known = g < end;
    PLANC_TRY(known ? add_modelled(p, op, p->out->batches[batch_index], g, features)
                    : add_by_constants(p, op, batch_index, listed[v].algorithm));
    *out_modelled |= known;
    planc_variant *added = &p->variants.data[p->variants.len - 1];
    added->workspace_bytes = listed[v].workspace_bytes;
    added->deterministic = listed[v].deterministic;
  }
  return NULL;
}

static bool is_listed(const predicting_ops *p, int32_t op) {
  return p->listed && pl_measured_find(&p->options->listed->measured, p->options->graph->ops[op].name);
}

/* --- Variants of one batch ---------------------------------------------------------------------------------------- */

static int by_algorithm(const void *a, const void *b) {
  return strcmp(((const planc_variant *)a)->algorithm, ((const planc_variant *)b)->algorithm);
}

/* More samples are never faster, whatever two predictions say. */
static void keep_rising(const predicting_ops *p, int64_t before, int64_t from, int64_t to) {
  for (int64_t v = from; v < to; v++) {
    planc_variant *variant = &p->variants.data[v];
    for (int64_t w = before; w < from; w++) {
      const planc_variant *smaller = &p->variants.data[w];
      if (strcmp(smaller->algorithm, variant->algorithm) == 0 && smaller->time_ns > variant->time_ns)
        variant->time_ns = smaller->time_ns;
    }
  }
}

/* --- Set-up ------------------------------------------------------------------------------------------------------- */

/* Batches are those of the roofline's table, ascending and distinct. */
static planc_status set_up(predicting_ops *p) {
  const planc_predict_options *o = p->options;
  planc_costs *roofline;
  PLANC_TRY(planc_costs_make(&p->bare, o->graph, o->n_batches, o->batches, &roofline));
  p->roofline = roofline;
  p->out->batches = roofline->batches;
  p->out->n_batches = roofline->n_batches;
  return o->listed ? planc_costs_make(o->listed, o->graph, o->n_batches, o->batches, &p->listed) : NULL;
}

static void tear_down(predicting_ops *p) {
  if (p->roofline) p->roofline->batches = NULL; /* the costs' */
  planc_costs_free(p->roofline);
  planc_costs_free(p->listed);
  pl_arena_free(&p->memory.keys);
  pl_map_free(&p->memory.by_key);
  pl_map_free(&p->memory.by_shape);
  VEC_FREE(&p->memory.variants);
  VEC_FREE(&p->memory.nearest);
  VEC_FREE(&p->memory.apart);
}
