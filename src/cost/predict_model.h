/* The model: for each type of op and algorithm a line and the samples it was fitted to.
 *
 * The logarithm of an op's time is that of its roofline, plus a linear function of its features, plus what the nearest
 * samples deviate from both. The first is right about what grows with what, the second about how the library differs
 * from the constants, the third about the shapes that were seen: caches, tails, special kernels. Far from all samples
 * the third vanishes. */
#ifndef PLANC_COST_PREDICT_MODEL_H
#define PLANC_COST_PREDICT_MODEL_H

#include "cost/json.h"
#include "cost/predict_features.h"
#include "planc/predict.h"
#include "util/arena.h"
#include "util/map.h"

/* One shape; several measurements of it are one sample. Logarithms as in predict_features.h. */
typedef struct pl_model_sample {
  pl_features features;
  int64_t residual; /* of the time, from roofline and line */
  int64_t workspace_bytes, busy_ppm;
} pl_model_sample;

typedef struct pl_model_group {
  const char *type, *algorithm;
  bool deterministic;
  int64_t bias;                   /* mean of time over roofline */
  int64_t low, high;              /* least and most that the line may give, bias included */
  int64_t mean[PL_N_FEATURES];    /* of the samples' features */
  int64_t weights[PL_N_FEATURES]; /* of the distance from the mean, PL_LOG_ONE = 1 */
  int32_t n_samples;
  const pl_model_sample *samples;
} pl_model_group;

/* Groups of one type stand together, by algorithm; types by name. */
struct planc_model {
  pl_arena arena;
  int32_t n_groups;
  const pl_model_group *groups;
};

/* Limits of a file; a logarithm has 6 bits before the point. */
enum { PL_MODEL_MAX_GROUPS = 4096, PL_MODEL_MAX_SAMPLES = 65536 };
#define PL_MODEL_MAX_LOG (INT64_C(64) << PL_LOG_BITS)
#define PL_MODEL_MAX_WEIGHT (INT64_C(1) << 30)

/* The groups of a type: *out_count from the returned index on. */
int32_t pl_model_groups_of(const planc_model *model, const char *type, int32_t *out_count);
/* How far the nearest sample of a group is. */
int64_t pl_model_nearest(const pl_model_group *group, const pl_features *at);
/* What roofline (its feature must be set) and line say of a time, as a logarithm. */
int64_t pl_model_line(const pl_model_group *group, const pl_features *at);
/* The variant of an op: time, a workspace on the safe side of the nearest samples' (theirs, where the shape is the
 * same), busy share. */
planc_variant pl_model_variant(const pl_model_group *group, const pl_features *at);

/* Reads section model of a profile. */
planc_status pl_model_read(const pl_json *at, planc_model **out);

#endif
