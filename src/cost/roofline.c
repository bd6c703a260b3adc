/* The roofline (roofline.h). */
#include "cost/roofline.h"

/* A multiprocessor is busy with 2,048 threads of two 4-byte accesses each. */
enum { BUSY_BYTES = 16384 };

static int64_t min(int64_t a, int64_t b) {
  return a < b ? a : b;
}
static int64_t max(int64_t a, int64_t b) {
  return a > b ? a : b;
}

bool planc_is_half(planc_dtype dtype) {
  return dtype == PLANC_DTYPE_f16 || dtype == PLANC_DTYPE_bf16;
}

/* Time of `amount` at a share of a peak rate; an amount that is too large stays so. */
static int64_t time_at(int64_t amount, int64_t peak_per_second, int64_t share_ppm) {
  if (amount == INT64_MAX) return INT64_MAX;
  return planc_muldiv_ceil(amount, PLANC_NS, planc_muldiv_ceil(peak_per_second, share_ppm, PLANC_PPM));
}

static int64_t share_ppm(int64_t part, int64_t whole) {
  return part >= whole ? PLANC_PPM : max(1, planc_muldiv_ceil(part, PLANC_PPM, whole));
}

static void add_kernel(planc_work *work, const planc_profile *profile, int64_t time_ns, int64_t busy_ppm) {
  int64_t kernel_ns = planc_add_saturate(profile->compute.kernel_ns, time_ns);
  work->time_ns = planc_add_saturate(work->time_ns, kernel_ns);
  work->busy_ns = planc_add_saturate(work->busy_ns, planc_muldiv_ceil(kernel_ns, busy_ppm, PLANC_PPM));
}

static int64_t peak_of(const planc_compute *compute, bool half) {
  return half ? compute->half_flops_per_second : compute->flops_per_second;
}

static int64_t traffic_ns(const planc_profile *profile, planc_class class_, int64_t bytes) {
  return time_at(bytes, profile->compute.memory_bytes_per_second, profile->efficiency_ppm[class_]);
}

void planc_work_stream(planc_work *work, const planc_profile *profile, planc_class class_, bool half, int64_t flops,
                       int64_t bytes) {
  const planc_compute *compute = &profile->compute;
  int64_t flops_ns = time_at(flops, peak_of(compute, half), profile->multiply[PLANC_MULTIPLY_LINEAR].flops_ppm);
  add_kernel(work, profile, max(flops_ns, traffic_ns(profile, class_, bytes)),
             share_ppm(bytes, compute->processors * BUSY_BYTES));
}

void planc_work_multiply(planc_work *work, const planc_profile *profile, planc_multiply_kind kind, bool half,
                         const planc_product *product, int64_t bytes) {
  const planc_compute *compute = &profile->compute;
  const planc_multiply *multiply = &profile->multiply[kind];
  int64_t tiles = planc_mul_saturate(planc_mul_saturate(planc_div_ceil(product->rows, multiply->tile),
                                                        planc_div_ceil(product->columns, multiply->tile)),
                                     product->count);
  int64_t depth = planc_add_saturate(product->depth, multiply->depth_overhead);
  /* Steps of depth that the busiest multiprocessor does, one tile after the other or, cut along the depth, evenly
   * shared. Both bounds grow with every dimension, so that a larger batch is never predicted to be faster. */
  int64_t steps = planc_mul_saturate(planc_div_ceil(tiles, compute->processors), depth);
  int64_t busy_ppm = share_ppm(tiles, compute->processors);
  if (product->may_split) {
    int64_t shared = planc_muldiv_ceil(tiles, depth, compute->processors);
    steps = min(steps, max(shared, min(depth, compute->split_depth)));
    busy_ppm = share_ppm(shared, steps);
  }
  int64_t tile_flops = multiply->tile * multiply->tile * product->flops_per_step;
  int64_t flops = planc_mul_saturate(steps, compute->processors * tile_flops);
  int64_t flops_ns = time_at(flops, peak_of(compute, half), multiply->flops_ppm);
  planc_class class_ = kind == PLANC_MULTIPLY_LINEAR ? PLANC_CLASS_gemm : PLANC_CLASS_conv;
  add_kernel(work, profile, max(flops_ns, traffic_ns(profile, class_, bytes)), busy_ppm);
}

planc_variant planc_work_variant(const planc_work *work, const char *algorithm, int64_t workspace_bytes) {
  return (planc_variant){.algorithm = algorithm,
                         .time_ns = work->time_ns,
                         .workspace_bytes = workspace_bytes,
                         .busy_ppm = share_ppm(work->busy_ns, max(1, work->time_ns)),
                         .deterministic = true,
                         .measured = false};
}
