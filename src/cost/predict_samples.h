/* Measured times with the features of their ops: what a model is fitted to and judged by. */
#ifndef PLANC_COST_PREDICT_SAMPLES_H
#define PLANC_COST_PREDICT_SAMPLES_H

#include "cost/predict_features.h"
#include "planc/predict.h"
#include "util/vec.h"

typedef struct pl_sample {
  const char *type, *algorithm; /* of graph and profile */
  int32_t graph;                /* index of its case */
  int32_t fold;                 /* 0 to PL_FOLDS - 1, the same for all times of an op */
  bool deterministic;
  pl_features features;
  int64_t time_ns, workspace_bytes, busy_ppm;
} pl_sample;
typedef VEC(pl_sample) pl_samples;

enum { PL_FOLDS = 5 };

/* Appends all times of a case. */
planc_status pl_samples_collect(const planc_profile *base, const planc_fit_case *of, int32_t index, pl_samples *out);
/* By type, algorithm and features: what has the same of all stands together. */
void pl_samples_sort(pl_samples *samples);
bool pl_samples_same_group(const pl_sample *a, const pl_sample *b);
bool pl_samples_same_shape(const pl_sample *a, const pl_sample *b);

#endif
