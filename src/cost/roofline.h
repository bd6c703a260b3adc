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
typedef struct pl_work {
  int64_t time_ns;
  int64_t busy_ns; /* time weighted by the share of the device kept busy */
} pl_work;

/* `count` products of [rows, depth] by [depth, columns]. */
typedef struct pl_product {
  int64_t rows, columns, depth, count;
  int64_t flops_per_step; /* of one multiply-add: 2, or 8 when complex */
  bool may_split;         /* along its depth */
} pl_product;

/* What a kernel moves. */
typedef struct pl_traffic {
  int64_t bytes;
  int64_t cached;          /* of them, those that the cache holds */
  int64_t efficiency_ppm;  /* share of the bandwidth that it reaches */
  int64_t most_per_second; /* that its instructions can ask for, wherever they are; 0: any */
} pl_traffic;

/* At which of a device's peaks a kernel computes; a device without TF32 does it in f32. */
typedef enum pl_rate { PL_RATE_F32, PL_RATE_TF32, PL_RATE_HALF } pl_rate;

/* How much of the device a kernel keeps busy: that of its multiprocessors which hold `items` when each has at most
 * `per_processor`. */
typedef struct pl_spread {
  int64_t items, per_processor;
} pl_spread;

static inline int64_t pl_div_ceil(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

/* Traffic at the efficiency of a class, all of it with the device's memory. */
pl_traffic pl_traffic_of(const planc_profile *profile, planc_class class_, int64_t bytes);
/* Of a kernel that moves so many bytes, from one tensor to another of its size. */
pl_spread pl_spread_of_bytes(const planc_profile *profile, int64_t bytes);
/* Adds one kernel that moves `traffic` and computes `flops` at a linear op's rate, without tiles. */
void pl_work_stream(pl_work *work, const planc_profile *profile, pl_rate rate, int64_t flops, pl_traffic traffic,
                    pl_spread spread);
/* Adds one kernel that computes `product` and moves its operands. */
void pl_work_multiply(pl_work *work, const planc_profile *profile, pl_multiply_kind kind, pl_rate rate,
                      const pl_product *product, pl_traffic traffic);
/* The work as a variant. */
planc_variant pl_work_variant(const pl_work *work, const char *algorithm, int64_t workspace_bytes);

#endif
