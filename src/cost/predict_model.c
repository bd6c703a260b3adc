/* Evaluates a model (predict_model.h): integers only. */
#include "cost/predict_model.h"

#include <stdlib.h>
#include <string.h>

#include "cost/profile.h"
#include "util/math.h"

void planc_model_free(planc_model *model) {
  if (!model) return;
  planc_arena_free(&model->arena);
  free(model);
}

int32_t planc_model_n_groups(const planc_model *model) {
  return model->n_groups;
}

int32_t planc_model_groups_of(const planc_model *model, const char *type, int32_t *out_count) {
  int32_t low = 0, high = model->n_groups;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (strcmp(model->groups[middle].type, type) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  *out_count = 0;
  while (low + *out_count < model->n_groups && strcmp(model->groups[low + *out_count].type, type) == 0) ++*out_count;
  return low;
}

/* --- Distances ------------------------------------------------------------------------------------------------ */

/* Squares of distances have this many bits after the point. */
enum { DISTANCE_BITS = 16, DISTANCE_SHIFT = PLANC_LOG_BITS - DISTANCE_BITS / 2 };
#define DISTANCE_ONE (INT64_C(1) << DISTANCE_BITS)

static int64_t distance(const planc_features *a, const planc_features *b) {
  static const int64_t nearness[PLANC_N_FEATURES] = {
#define X(name, nearness) nearness,
      PLANC_FEATURES(X)
#undef X
  };
  int64_t sum = 0;
  for (int32_t f = 0; f < PLANC_N_FEATURES; f++) {
    int64_t apart = (a->at[f] - b->at[f]) / (1 << DISTANCE_SHIFT);
    sum += nearness[f] * apart * apart;
  }
  return sum;
}

enum { NEIGHBOURS = 8 };

/* The nearest samples, nearest first; of equally near ones those that stand first. */
typedef struct neighbours {
  int32_t n;
  int64_t distance[NEIGHBOURS];
  const planc_model_sample *of[NEIGHBOURS];
} neighbours;

static void add_neighbour(neighbours *to, const planc_model_sample *sample, int64_t apart) {
  if (to->n == NEIGHBOURS && apart >= to->distance[NEIGHBOURS - 1]) return;
  int32_t at = to->n < NEIGHBOURS ? to->n++ : NEIGHBOURS - 1;
  for (; at > 0 && to->distance[at - 1] > apart; at--) {
    to->distance[at] = to->distance[at - 1];
    to->of[at] = to->of[at - 1];
  }
  to->distance[at] = apart;
  to->of[at] = sample;
}

static neighbours find_neighbours(const planc_model_group *group, const planc_features *at) {
  neighbours out = {0};
  for (int32_t s = 0; s < group->n_samples; s++)
    add_neighbour(&out, &group->samples[s], distance(&group->samples[s].features, at));
  return out;
}

int64_t planc_model_nearest(const planc_model_group *group, const planc_features *at) {
  int64_t nearest = INT64_MAX;
  for (int32_t s = 0; s < group->n_samples; s++) {
    int64_t apart = distance(&group->samples[s].features, at);
    if (apart < nearest) nearest = apart;
  }
  return nearest;
}

/* --- Time ----------------------------------------------------------------------------------------------------- */

int64_t planc_model_line(const planc_model_group *group, const planc_features *at) {
  int64_t sum = 0;
  for (int32_t f = 0; f < PLANC_N_FEATURES; f++) sum += group->weights[f] * (at->at[f] - group->mean[f]);
  int64_t line = group->bias + sum / PLANC_LOG_ONE;
  if (line < group->low) line = group->low;
  if (line > group->high) line = group->high;
  return at->at[PLANC_FEATURE_roofline] + line;
}

/* The neighbours' residuals, weighted by the inverse square of distance. A neighbour at distance 1 counts as much as
 * the supposition that there is no deviation; what is nearer than 1/16 counts as equally near. */
static int64_t deviation(const neighbours *near) {
  enum { WEIGHT_BITS = 32 };
  const int64_t same = DISTANCE_ONE / 256, doubt = DISTANCE_ONE;
  int64_t total = (INT64_C(1) << WEIGHT_BITS) / (same + doubt), sum = 0;
  for (int32_t i = 0; i < near->n; i++) {
    int64_t weight = (INT64_C(1) << WEIGHT_BITS) / (same + near->distance[i]);
    total += weight;
    sum += weight * near->of[i]->residual;
  }
  return sum / total;
}

/* --- Workspace ------------------------------------------------------------------------------------------------ */

/* The most by which any product of dimensions has grown from one shape to another. */
static int64_t growth(const planc_features *from, const planc_features *to) {
  static const planc_feature dims[] = {PLANC_FEATURE_images, PLANC_FEATURE_channels, PLANC_FEATURE_filters,
                                       PLANC_FEATURE_plane,  PLANC_FEATURE_columns,  PLANC_FEATURE_window,
                                       PLANC_FEATURE_stride, PLANC_FEATURE_element};
  int64_t sum = 0;
  for (size_t d = 0; d < sizeof dims / sizeof *dims; d++)
    if (to->at[dims[d]] > from->at[dims[d]]) sum += to->at[dims[d]] - from->at[dims[d]];
  return sum;
}

/* What a sample's workspace may have become: it is made of products of dimensions, each times a constant, and does not
 * shrink below what a sample of another shape had. An eighth is for padding and rounding. */
static int64_t grown(const planc_model_sample *sample, const planc_features *at) {
  enum { POINT = 16 };
  int64_t factor = planc_exp2_fixed(growth(&sample->features, at) + (int64_t)POINT * PLANC_LOG_ONE);
  int64_t bytes = planc_muldiv_ceil(sample->workspace_bytes, factor, 1 << POINT);
  return planc_add_saturate(bytes, bytes / 8);
}

/* The least that follows from any near sample that has one, since each gives a bound; but what the very nearest have.
 */
static int64_t workspace(const neighbours *near, const planc_features *at) {
  enum { NEAREST = 4 };
  int64_t least = INT64_MAX, own = 0;
  for (int32_t i = 0; i < near->n; i++) {
    if (near->distance[i] == 0) return near->of[i]->workspace_bytes;
    int64_t bytes = grown(near->of[i], at);
    if (bytes > 0 && bytes < least) least = bytes;
    if (i < NEAREST && near->of[i]->workspace_bytes > own) own = near->of[i]->workspace_bytes;
  }
  if (least == INT64_MAX || own > least) return own;
  return least < PLANC_JSON_MAX ? least : PLANC_JSON_MAX;
}

/* --- Variants ------------------------------------------------------------------------------------------------- */

/* Where all samples had the device for themselves they are no farther from an op that has not. */
static bool was_loaded(const planc_model_group *group) {
  for (int32_t s = 0; s < group->n_samples; s++)
    if (group->samples[s].features.at[PLANC_FEATURE_load] != 0) return true;
  return false;
}

planc_variant planc_model_variant(const planc_model_group *group, const planc_features *at) {
  planc_features alone = *at; /* workspaces do not depend on the load */
  alone.at[PLANC_FEATURE_load] = 0;
  neighbours unloaded = find_neighbours(group, &alone);
  neighbours near = was_loaded(group) ? find_neighbours(group, at) : unloaded;
  int64_t time_ns = planc_exp2_fixed(planc_model_line(group, at) + deviation(&near));
  return (planc_variant){.algorithm = group->algorithm,
                         .time_ns = time_ns < PLANC_JSON_MAX ? time_ns : PLANC_JSON_MAX,
                         .workspace_bytes = workspace(&unloaded, at),
                         .busy_ppm = near.n > 0 ? near.of[0]->busy_ppm : PLANC_PPM,
                         .deterministic = group->deterministic};
}

/* --- Reading -------------------------------------------------------------------------------------------------- */

static const char *const feature_names[PLANC_N_FEATURES] = {
#define X(name, nearness) #name,
    PLANC_FEATURES(X)
#undef X
};

/* A model of another version of planc has other features. */
static planc_status check_features(const planc_json *at) {
  int32_t count;
  PLANC_TRY(planc_json_array(at, &count));
  if (count != PLANC_N_FEATURES) return planc_json_error(at, "must have %d names", PLANC_N_FEATURES);
  for (planc_json item = planc_json_first(at); item.value; planc_json_next(&item)) {
    const char *name;
    PLANC_TRY(planc_json_string(&item, &name));
    if (strcmp(name, feature_names[item.index]) != 0)
      return planc_json_error(&item, "must be %s: the model is of another version", feature_names[item.index]);
  }
  return NULL;
}

/* `n` integers in [-most, most]. */
static planc_status read_row(const planc_json *at, int32_t n, int64_t most, int64_t *out) {
  int32_t count;
  PLANC_TRY(planc_json_array(at, &count));
  if (count != n) return planc_json_error(at, "must have %d integers", n);
  for (planc_json item = planc_json_first(at); item.value; planc_json_next(&item))
    PLANC_TRY(planc_json_int(&item, -most, most, &out[item.index]));
  return NULL;
}

/* Features, then residual, workspace and busy share. */
static planc_status read_sample(const planc_json *at, planc_model_sample *out) {
  enum { RESIDUAL = PLANC_N_FEATURES, WORKSPACE, BUSY, N };
  int64_t row[N] = {0};
  PLANC_TRY(read_row(at, N, PLANC_JSON_MAX, row));
  for (int32_t i = 0; i <= RESIDUAL; i++)
    if (llabs(row[i]) > PLANC_MODEL_MAX_LOG) return planc_json_error(at, "has a logarithm that is too large");
  if (row[WORKSPACE] < 0) return planc_json_error(at, "has a workspace below 0");
  if (row[BUSY] < 1 || row[BUSY] > PLANC_PPM) return planc_json_error(at, "has a busy share beyond 1 to 1000000");
  memcpy(out->features.at, row, sizeof out->features.at);
  out->residual = row[RESIDUAL];
  out->workspace_bytes = row[WORKSPACE];
  out->busy_ppm = row[BUSY];
  return NULL;
}

static planc_status read_name(const planc_json *at, planc_arena *arena, const char **out) {
  const char *name;
  PLANC_TRY(planc_json_name(at, &name));
  return planc_arena_strndup(arena, name, strlen(name), out);
}

static planc_status read_group(const planc_json *at, planc_arena *arena, planc_model_group *out) {
  enum { TYPE, ALGORITHM, DETERMINISTIC, BIAS, LOW, HIGH, MEAN, WEIGHTS, SAMPLES, N };
  static const planc_json_key keys[N] = {{"type", false}, {"algorithm", false}, {"deterministic", false},
                                         {"bias", false}, {"low", false},       {"high", false},
                                         {"mean", false}, {"weights", false},   {"samples", false}};
  planc_json members[N];
  PLANC_TRY(planc_json_members(at, keys, N, members));
  PLANC_TRY(read_name(&members[TYPE], arena, &out->type));
  PLANC_TRY(read_name(&members[ALGORITHM], arena, &out->algorithm));
  PLANC_TRY(planc_json_bool(&members[DETERMINISTIC], &out->deterministic));
  PLANC_TRY(planc_json_int(&members[BIAS], -PLANC_MODEL_MAX_LOG, PLANC_MODEL_MAX_LOG, &out->bias));
  PLANC_TRY(planc_json_int(&members[LOW], -PLANC_MODEL_MAX_LOG, PLANC_MODEL_MAX_LOG, &out->low));
  PLANC_TRY(planc_json_int(&members[HIGH], out->low, PLANC_MODEL_MAX_LOG, &out->high));
  PLANC_TRY(read_row(&members[MEAN], PLANC_N_FEATURES, PLANC_MODEL_MAX_LOG, out->mean));
  PLANC_TRY(read_row(&members[WEIGHTS], PLANC_N_FEATURES, PLANC_MODEL_MAX_WEIGHT, out->weights));
  PLANC_TRY(planc_json_array(&members[SAMPLES], &out->n_samples));
  if (out->n_samples > PLANC_MODEL_MAX_SAMPLES)
    return planc_json_error(&members[SAMPLES], "has more than %d", PLANC_MODEL_MAX_SAMPLES);
  planc_model_sample *samples;
  PLANC_TRY(PLANC_NEW(arena, &samples, out->n_samples));
  out->samples = samples;
  for (planc_json item = planc_json_first(&members[SAMPLES]); item.value; planc_json_next(&item))
    PLANC_TRY(read_sample(&item, &samples[item.index]));
  return NULL;
}

static planc_status read_groups(const planc_json *at, planc_model *model) {
  PLANC_TRY(planc_json_array(at, &model->n_groups));
  if (model->n_groups > PLANC_MODEL_MAX_GROUPS) return planc_json_error(at, "has more than %d", PLANC_MODEL_MAX_GROUPS);
  planc_model_group *groups;
  PLANC_TRY(PLANC_NEW(&model->arena, &groups, model->n_groups));
  model->groups = groups;
  for (planc_json item = planc_json_first(at); item.value; planc_json_next(&item)) {
    planc_model_group *group = &groups[item.index];
    PLANC_TRY(read_group(&item, &model->arena, group));
    int order = item.index > 0 ? strcmp(group[-1].type, group->type) : -1;
    if (order == 0) order = strcmp(group[-1].algorithm, group->algorithm);
    if (order >= 0) return planc_json_error(&item, "groups must ascend by type and algorithm");
  }
  return NULL;
}

planc_status planc_model_read(const planc_json *at, planc_model **out) {
  enum { FEATURES, GROUPS, N };
  static const planc_json_key keys[N] = {{"features", false}, {"groups", false}};
  planc_json members[N];
  PLANC_TRY(planc_json_members(at, keys, N, members));
  PLANC_TRY(check_features(&members[FEATURES]));
  planc_model *model = calloc(1, sizeof *model);
  if (!model) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  planc_status status = read_groups(&members[GROUPS], model);
  if (status) {
    planc_model_free(model);
    return status;
  }
  *out = model;
  return NULL;
}
