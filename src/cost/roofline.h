/* The roofline: how long kernels take that only move memory or multiply matrices.
 *
 * A kernel takes kernel_ns plus the longest of its arithmetic, its memory traffic and the instructions that ask for it.
 * A matrix product is cut into square output tiles; each multiprocessor works on one tile at a time, so a last wave
 * that is not full, and tiles that hang over the edge, cost as much as full ones. That is why small batches are less
 * efficient. A product with few tiles and great depth (a weight gradient) may be cut along its depth, into slices of at
 * least split_depth. Where there are kernels with smaller tiles as well, those are taken that are sooner done. */
#ifndef PLANC_COST_ROOFLINE_H
#define PLANC_COST_ROOFLINE_H

#include "cost/profile.h"
#include "util/math.h"

/* Work of kernels run one after the other. INT64_MAX stands for any value that is too large. */
typedef struct planc_work {
  int64_t time_ns;
  int64_t busy_ns; /* time weighted by the share of the device kept busy */
} planc_work;

/* `count` products of [rows, depth] by [depth, columns]. */
typedef struct planc_product {
  int64_t rows, columns, depth, count;
  int64_t flops_per_step; /* of one multiply-add: 2, or 8 when complex */
  bool may_split;         /* along its depth */
} planc_product;

/* What a kernel moves. */
typedef struct planc_traffic {
  int64_t bytes;
  int64_t cached;          /* of them, those that the cache holds */
  int64_t efficiency_ppm;  /* share of the bandwidth that it reaches */
  int64_t most_per_second; /* that its instructions can ask for, wherever they are; 0: any */
} planc_traffic;

/* Product of non-negative numbers, saturating. */
static inline int64_t planc_mul_saturate(int64_t a, int64_t b) {
  int64_t product;
  return planc_mul_overflow(a, b, &product) ? INT64_MAX : product;
}
static inline int64_t planc_div_ceil(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

/* Traffic at the efficiency of a class, all of it with the device's memory. */
planc_traffic planc_traffic_of(const planc_profile *profile, planc_class class_, int64_t bytes);
/* Adds one kernel that moves `traffic` and computes `flops` at a linear op's rate, without tiles. */
void planc_work_stream(planc_work *work, const planc_profile *profile, bool half, int64_t flops, planc_traffic traffic);
/* Adds one kernel that computes `product` and moves its operands. */
void planc_work_multiply(planc_work *work, const planc_profile *profile, planc_multiply_kind kind, bool half,
                         const planc_product *product, planc_traffic traffic);
/* The work as a variant. */
planc_variant planc_work_variant(const planc_work *work, const char *algorithm, int64_t workspace_bytes);
/* True for the element types that run at half_flops_per_second. */
bool planc_is_half(planc_dtype dtype);

#endif
