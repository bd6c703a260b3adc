/* Measured times with the features of their ops: what a model is fitted to and judged by. */
#ifndef PLANC_COST_PREDICT_SAMPLES_H
#define PLANC_COST_PREDICT_SAMPLES_H

#include "cost/predict_features.h"
#include "planc/predict.h"
#include "util/vec.h"

typedef struct planc_sample {
  const char *type, *algorithm; /* of graph and profile */
  int32_t graph;                /* index of its case */
  int32_t fold;                 /* 0 to PLANC_FOLDS - 1, the same for all times of an op */
  bool deterministic;
  planc_features features;
  int64_t time_ns, workspace_bytes, busy_ppm;
} planc_sample;
typedef VEC(planc_sample) planc_samples;

enum { PLANC_FOLDS = 5 };

/* Appends all times of a case. */
planc_status planc_samples_collect(const planc_profile *base, const planc_fit_case *of, int32_t index,
                                   planc_samples *out);
/* By type, algorithm and features: what has the same of all stands together. */
void planc_samples_sort(planc_samples *samples);
bool planc_samples_same_group(const planc_sample *a, const planc_sample *b);
bool planc_samples_same_shape(const planc_sample *a, const planc_sample *b);

#endif
