/* What a model sees of an op: its roofline time, its sizes and its shape, each as a logarithm to base 2. */
#ifndef PLANC_COST_PREDICT_FEATURES_H
#define PLANC_COST_PREDICT_FEATURES_H

#include "planc/cost.h"

/* Logarithms are fixed-point numbers with so many bits after the point. */
enum { PL_LOG_BITS = 16, PL_LOG_ONE = 1 << PL_LOG_BITS };

/* X(name, nearness): a factor of 2 in the feature puts two ops sqrt(nearness) apart. What makes a library take another
 * kernel (window, stride, element type) outweighs sizes; the roofline follows from the others. */
#define PL_FEATURES(X) \
  X(roofline, 0)       \
  X(flops, 1)          \
  X(traffic, 1)        \
  X(input, 1)          \
  X(operand, 1)        \
  X(result, 1)         \
  X(images, 1)         \
  X(columns, 1)        \
  X(channels, 1)       \
  X(filters, 1)        \
  X(plane, 1)          \
  X(window, 16)        \
  X(stride, 16)        \
  X(groups, 4)         \
  X(element, 16)       \
  X(layout, 16)        \
  X(load, 4)
typedef enum pl_feature {
#define X(name, nearness) PL_FEATURE_##name,
  PL_FEATURES(X)
#undef X
      PL_N_FEATURES
} pl_feature;
extern const char *const pl_feature_names[PL_N_FEATURES];

typedef struct pl_features {
  int64_t at[PL_N_FEATURES];
} pl_features;

/* Logarithm of a number that is at least 1; of less it is 0. Off by less than 2^-15. */
int64_t pl_log2_fixed(int64_t value);
/* 2 to that power, rounded down; 0 for what is negative, at most 2^62. */
int64_t pl_exp2_fixed(int64_t log);
/* All that does not depend on the algorithm: everything but the roofline. BAD_INPUT when figures are beyond 2^53. */
planc_status pl_features_of(const planc_graph *graph, const planc_op *op, int64_t batch, int64_t load_ppm,
                            pl_features *out);
/* The method that an algorithm's name tells of. */
planc_method pl_method_of(const char *algorithm);
/* The roofline of op `op` by an algorithm, beside others that keep the device busy for `load_ppm` of the time: above 1
 * in total both slow down in proportion. */
planc_status pl_loaded_roofline(const planc_profile *profile, const planc_graph *graph, int32_t op, int64_t batch,
                                const char *algorithm, int64_t load_ppm, int64_t *out_ns);

#endif
