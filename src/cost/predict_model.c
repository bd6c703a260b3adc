/* Evaluates a model (predict_model.h): integers only. */
#include "cost/predict_model.h"

#include <stdlib.h>
#include <string.h>

#include "cost/profile.h"
#include "util/math.h"

void planc_model_free(planc_model *model) {
  if (!model) return;
  pl_arena_free(&model->arena);
  free(model);
}

int32_t planc_model_n_groups(const planc_model *model) {
  return model->n_groups;
}

int32_t pl_model_groups_of(const planc_model *model, const char *type, int32_t *out_count) {
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

static int64_t distance(const pl_features *a, const pl_features *b);

int64_t pl_model_nearest(const pl_model_group *group, const pl_features *at) {
  int64_t nearest = INT64_MAX;
  for (int32_t s = 0; s < group->n_samples; s++) {
    int64_t apart = distance(&group->samples[s].features, at);
    if (apart < nearest) nearest = apart;
  }
  return nearest;
}

/* --- Distances ---------------------------------------------------------------------------------------------------- */

/* Squares of distances have this many bits after the point. */
enum { DISTANCE_BITS = 16, DISTANCE_SHIFT = PL_LOG_BITS - DISTANCE_BITS / 2 };
#define DISTANCE_ONE (INT64_C(1) << DISTANCE_BITS)

static int64_t distance(const pl_features *a, const pl_features *b) {
  static const int64_t nearness[PL_N_FEATURES] = {
#define X(name, nearness) nearness,
      PL_FEATURES(X)
#undef X
  };
  int64_t sum = 0;
  for (int32_t f = 0; f < PL_N_FEATURES; f++) {
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
  const pl_model_sample *of[NEIGHBOURS];
} neighbours;

static void add_neighbour(neighbours *to, const pl_model_sample *sample, int64_t apart) {
  if (to->n == NEIGHBOURS && apart >= to->distance[NEIGHBOURS - 1]) return;
  int32_t at = to->n < NEIGHBOURS ? to->n++ : NEIGHBOURS - 1;
  for (; at > 0 && to->distance[at - 1] > apart; at--) {
    to->distance[at] = to->distance[at - 1];
    to->of[at] = to->of[at - 1];
  }
  to->distance[at] = apart;
  to->of[at] = sample;
}

static neighbours find_neighbours(const pl_model_group *group, const pl_features *at) {
  neighbours out = {0};
  for (int32_t s = 0; s < group->n_samples; s++)
    add_neighbour(&out, &group->samples[s], distance(&group->samples[s].features, at));
  return out;
}

/* --- Time --------------------------------------------------------------------------------------------------------- */

int64_t pl_model_line(const pl_model_group *group, const pl_features *at) {
  int64_t sum = 0;
  for (int32_t f = 0; f < PL_N_FEATURES; f++) sum += group->weights[f] * (at->at[f] - group->mean[f]);
  int64_t line = group->bias + sum / PL_LOG_ONE;
  if (line < group->low) line = group->low;
  if (line > group->high) line = group->high;
  return at->at[PL_FEATURE_roofline] + line;
}

/* --- Variants ----------------------------------------------------------------------------------------------------- */

static bool was_loaded(const pl_model_group *group);
static int64_t deviation(const neighbours *near);
static int64_t workspace(const neighbours *near, const pl_features *at);

planc_variant pl_model_variant(const pl_model_group *group, const pl_features *at) {
  pl_features alone = *at; /* workspaces do not depend on the load */
  alone.at[PL_FEATURE_load] = 0;
  neighbours unloaded = find_neighbours(group, &alone);
  neighbours near = was_loaded(group) ? find_neighbours(group, at) : unloaded;
  int64_t time_ns = pl_exp2_fixed(pl_model_line(group, at) + deviation(&near));
  return (planc_variant){.algorithm = group->algorithm,
                         .time_ns = time_ns < PL_JSON_MAX ? time_ns : PL_JSON_MAX,
                         .workspace_bytes = workspace(&unloaded, at),
                         .busy_ppm = near.n > 0 ? near.of[0]->busy_ppm : PL_PPM,
                         .deterministic = group->deterministic};
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

/* --- Workspace ---------------------------------------------------------------------------------------------------- */

/* The most by which any product of dimensions has grown from one shape to another. */
static int64_t growth(const pl_features *from, const pl_features *to) {
  static const pl_feature dims[] = {PL_FEATURE_images,  PL_FEATURE_channels, PL_FEATURE_filters, PL_FEATURE_plane,
                                    PL_FEATURE_columns, PL_FEATURE_window,   PL_FEATURE_stride,  PL_FEATURE_element};
  int64_t sum = 0;
  for (size_t d = 0; d < sizeof dims / sizeof *dims; d++)
    if (to->at[dims[d]] > from->at[dims[d]]) sum += to->at[dims[d]] - from->at[dims[d]];
  return sum;
}

/* What a sample's workspace may have become: it is made of products of dimensions, each times a constant, and does not
 * shrink below what a sample of another shape had. An eighth is for padding and rounding. */
static int64_t grown(const pl_model_sample *sample, const pl_features *at) {
  enum { POINT = 16 };
  int64_t factor = pl_exp2_fixed(growth(&sample->features, at) + (int64_t)POINT * PL_LOG_ONE);
  int64_t bytes = pl_muldiv_ceil(sample->workspace_bytes, factor, 1 << POINT);
  return pl_add_saturate(bytes, bytes / 8);
}

/* The least that follows from any near sample that has one, since each gives a bound; but what the very nearest have.
 */
static int64_t workspace(const neighbours *near, const pl_features *at) {
  enum { NEAREST = 4 };
  int64_t least = INT64_MAX, own = 0;
  for (int32_t i = 0; i < near->n; i++) {
    if (near->distance[i] == 0) return near->of[i]->workspace_bytes;
    int64_t bytes = grown(near->of[i], at);
    if (bytes > 0 && bytes < least) least = bytes;
    if (i < NEAREST && near->of[i]->workspace_bytes > own) own = near->of[i]->workspace_bytes;
  }
  if (least == INT64_MAX || own > least) return own;
  return least < PL_JSON_MAX ? least : PL_JSON_MAX;
}

/* Where all samples had the device for themselves they are no farther from an op that has not. */
static bool was_loaded(const pl_model_group *group) {
  for (int32_t s = 0; s < group->n_samples; s++)
    if (group->samples[s].features.at[PL_FEATURE_load] != 0) return true;
  return false;
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

static planc_status check_features(const pl_json *at);
static planc_status read_groups(const pl_json *at, planc_model *model);
static planc_status read_group(const pl_json *at, pl_arena *arena, pl_model_group *out);
static planc_status read_name(const pl_json *at, pl_arena *arena, const char **out);
static planc_status read_row(const pl_json *at, int32_t n, int64_t most, int64_t *out);
static planc_status read_sample(const pl_json *at, pl_model_sample *out);

planc_status pl_model_read(const pl_json *at, planc_model **out) {
  enum { FEATURES, GROUPS, N };
  static const pl_json_key keys[N] = {{"features", false}, {"groups", false}};
  pl_json members[N];
  PLANC_TRY(pl_json_members(at, keys, N, members));
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

static planc_status read_groups(const pl_json *at, planc_model *model) {
  PLANC_TRY(pl_json_array(at, &model->n_groups));
  if (model->n_groups > PL_MODEL_MAX_GROUPS) return pl_json_error(at, "has more than %d", PL_MODEL_MAX_GROUPS);
  pl_model_group *groups;
  PLANC_TRY(PL_NEW(&model->arena, &groups, model->n_groups));
  model->groups = groups;
  for (pl_json item = pl_json_first(at); item.value; pl_json_next(&item)) {
    pl_model_group *group = &groups[item.index];
    PLANC_TRY(read_group(&item, &model->arena, group));
    int order = item.index > 0 ? strcmp(group[-1].type, group->type) : -1;
    if (order == 0) order = strcmp(group[-1].algorithm, group->algorithm);
    if (order >= 0) return pl_json_error(&item, "groups must ascend by type and algorithm");
  }
  return NULL;
}

static planc_status read_group(const pl_json *at, pl_arena *arena, pl_model_group *out) {
  enum { TYPE, ALGORITHM, DETERMINISTIC, BIAS, LOW, HIGH, MEAN, WEIGHTS, SAMPLES, N };
  static const pl_json_key keys[N] = {{"type", false}, {"algorithm", false}, {"deterministic", false},
                                      {"bias", false}, {"low", false},       {"high", false},
                                      {"mean", false}, {"weights", false},   {"samples", false}};
  pl_json members[N];
  PLANC_TRY(pl_json_members(at, keys, N, members));
  PLANC_TRY(read_name(&members[TYPE], arena, &out->type));
  PLANC_TRY(read_name(&members[ALGORITHM], arena, &out->algorithm));
  PLANC_TRY(pl_json_bool(&members[DETERMINISTIC], &out->deterministic));
  PLANC_TRY(pl_json_int(&members[BIAS], -PL_MODEL_MAX_LOG, PL_MODEL_MAX_LOG, &out->bias));
  PLANC_TRY(pl_json_int(&members[LOW], -PL_MODEL_MAX_LOG, PL_MODEL_MAX_LOG, &out->low));
  PLANC_TRY(pl_json_int(&members[HIGH], out->low, PL_MODEL_MAX_LOG, &out->high));
  PLANC_TRY(read_row(&members[MEAN], PL_N_FEATURES, PL_MODEL_MAX_LOG, out->mean));
  PLANC_TRY(read_row(&members[WEIGHTS], PL_N_FEATURES, PL_MODEL_MAX_WEIGHT, out->weights));
  PLANC_TRY(pl_json_array(&members[SAMPLES], &out->n_samples));
  if (out->n_samples > PL_MODEL_MAX_SAMPLES)
    return pl_json_error(&members[SAMPLES], "has more than %d", PL_MODEL_MAX_SAMPLES);
  pl_model_sample *samples;
  PLANC_TRY(PL_NEW(arena, &samples, out->n_samples));
  out->samples = samples;
  for (pl_json item = pl_json_first(&members[SAMPLES]); item.value; pl_json_next(&item))
    PLANC_TRY(read_sample(&item, &samples[item.index]));
  return NULL;
}

/* A model of another version of planc has other features. */
static planc_status check_features(const pl_json *at) {
  int32_t count;
  PLANC_TRY(pl_json_array(at, &count));
  if (count != PL_N_FEATURES) return pl_json_error(at, "must have %d names", PL_N_FEATURES);
  for (pl_json item = pl_json_first(at); item.value; pl_json_next(&item)) {
    const char *name;
    PLANC_TRY(pl_json_string(&item, &name));
    if (strcmp(name, pl_feature_names[item.index]) != 0)
      return pl_json_error(&item, "must be %s: the model is of another version", pl_feature_names[item.index]);
  }
  return NULL;
}

/* `n` integers in [-most, most]. */
static planc_status read_row(const pl_json *at, int32_t n, int64_t most, int64_t *out) {
  int32_t count;
  PLANC_TRY(pl_json_array(at, &count));
  if (count != n) return pl_json_error(at, "must have %d integers", n);
  for (pl_json item = pl_json_first(at); item.value; pl_json_next(&item))
    PLANC_TRY(pl_json_int(&item, -most, most, &out[item.index]));
  return NULL;
}

/* Features, then residual, workspace and busy share. */
static planc_status read_sample(const pl_json *at, pl_model_sample *out) {
  enum { RESIDUAL = PL_N_FEATURES, WORKSPACE, BUSY, N };
  int64_t row[N] = {0};
  PLANC_TRY(read_row(at, N, PL_JSON_MAX, row));
  for (int32_t i = 0; i <= RESIDUAL; i++)
    if (llabs(row[i]) > PL_MODEL_MAX_LOG) return pl_json_error(at, "has a logarithm that is too large");
  if (row[WORKSPACE] < 0) return pl_json_error(at, "has a workspace below 0");
  if (row[BUSY] < 1 || row[BUSY] > PL_PPM) return pl_json_error(at, "has a busy share beyond 1 to 1000000");
  memcpy(out->features.at, row, sizeof out->features.at);
  out->residual = row[RESIDUAL];
  out->workspace_bytes = row[WORKSPACE];
  out->busy_ppm = row[BUSY];
  return NULL;
}

static planc_status read_name(const pl_json *at, pl_arena *arena, const char **out) {
  const char *name;
  PLANC_TRY(pl_json_name(at, &name));
  return pl_arena_strndup(arena, name, strlen(name), out);
}
