/* The roofline (roofline.h). */
#include "cost/roofline.h"

/* Where a profile does not tell of occupancy, a multiprocessor is busy with 2,048 threads of two 4-byte accesses each.
 */
enum { ACCESSES_BYTES = 8, BUSY_BYTES = 2048 * ACCESSES_BYTES };

typedef struct arithmetic {
  int64_t time_ns, busy_ppm;
  int64_t least_ns; /* of time_ns: without what last waves and tiles over the edge leave idle */
} arithmetic;

static int64_t time_at(int64_t amount, int64_t peak_per_second, int64_t share_ppm);
static int64_t peak_of(const pl_compute *compute, pl_rate rate);
static void add_kernel(pl_work *work, const planc_profile *profile, int64_t time_ns, int64_t busy_ppm,
                       int64_t least_ns);
static int64_t traffic_ns(const planc_profile *profile, pl_traffic traffic);
static int64_t least_traffic_ns(const planc_profile *profile, pl_traffic traffic);
static int64_t share_ppm(int64_t part, int64_t whole);

pl_traffic pl_traffic_of(const planc_profile *profile, planc_class class_, int64_t bytes) {
  return (pl_traffic){.bytes = bytes, .efficiency_ppm = profile->efficiency_ppm[class_]};
}

pl_spread pl_spread_of_bytes(const planc_profile *profile, int64_t bytes) {
  const pl_occupancy *occupancy = &profile->occupancy;
  if (!occupancy->threads) return (pl_spread){bytes, BUSY_BYTES};
  return (pl_spread){bytes, pl_mul_saturate(occupancy->threads, occupancy->thread_elements * ACCESSES_BYTES)};
}

void pl_work_stream(pl_work *work, const planc_profile *profile, pl_rate rate, int64_t flops, pl_traffic traffic,
                    pl_spread spread) {
  const pl_compute *compute = &profile->compute;
  int64_t flops_ns = time_at(flops, peak_of(compute, rate), profile->multiply[PL_MULTIPLY_LINEAR].flops_ppm);
  add_kernel(work, profile, pl_max(flops_ns, traffic_ns(profile, traffic)),
             share_ppm(spread.items, pl_mul_saturate(compute->processors, spread.per_processor)),
             pl_max(flops_ns, least_traffic_ns(profile, traffic)));
}

static arithmetic multiply_by(const planc_profile *profile, const pl_product *product, int64_t tile, int64_t flops_ppm,
                              int64_t depth_overhead, int64_t peak);

void pl_work_multiply(pl_work *work, const planc_profile *profile, pl_multiply_kind kind, pl_rate rate,
                      const pl_product *product, pl_traffic traffic) {
  const pl_compute *compute = &profile->compute;
  const pl_multiply *by = &profile->multiply[kind];
  int64_t peak = peak_of(compute, rate);
  if (compute->sustained_ppm) peak = pl_muldiv_ceil(peak, compute->sustained_ppm, PL_PPM);
  arithmetic flops = multiply_by(profile, product, by->tile, by->flops_ppm, by->depth_overhead, peak);
  if (by->small_tile) {
    arithmetic small = multiply_by(profile, product, by->small_tile, by->small_flops_ppm, by->depth_overhead, peak);
    if (small.time_ns < flops.time_ns) flops = small;
  }
  add_kernel(work, profile, pl_max(flops.time_ns, traffic_ns(profile, traffic)), flops.busy_ppm,
             pl_max(flops.least_ns, least_traffic_ns(profile, traffic)));
}

/* Time of `amount` at a share of a peak rate; an amount that is too large stays so. */
static int64_t time_at(int64_t amount, int64_t peak_per_second, int64_t share_ppm) {
  if (amount == INT64_MAX) return INT64_MAX;
  return pl_muldiv_ceil(amount, PL_NS, pl_muldiv_ceil(peak_per_second, share_ppm, PL_PPM));
}

static int64_t share_ppm(int64_t part, int64_t whole) {
  return part >= whole ? PL_PPM : pl_max(1, pl_muldiv_ceil(part, PL_PPM, whole));
}

/* `least_ns` is what the kernel's arithmetic takes at the rate that it reaches when it fills the device, since a
 * multiprocessor does not compute a kernel faster beside others, and its traffic at the full bandwidth, of which others
 * take what it leaves. Whatever processors it occupies, that part of the device's time is gone. */
static void add_kernel(pl_work *work, const planc_profile *profile, int64_t time_ns, int64_t busy_ppm,
                       int64_t least_ns) {
  int64_t kernel_ns = pl_add_saturate(profile->compute.kernel_ns, time_ns);
  busy_ppm = pl_max(busy_ppm, share_ppm(least_ns, kernel_ns));
  work->time_ns = pl_add_saturate(work->time_ns, kernel_ns);
  work->busy_ns = pl_add_saturate(work->busy_ns, pl_muldiv_ceil(kernel_ns, busy_ppm, PL_PPM));
}

static int64_t peak_of(const pl_compute *compute, pl_rate rate) {
  if (rate == PL_RATE_HALF) return compute->half_flops_per_second;
  return rate == PL_RATE_TF32 && compute->tf32_flops_per_second ? compute->tf32_flops_per_second
                                                                : compute->flops_per_second;
}

static int64_t traffic_ns(const planc_profile *profile, pl_traffic traffic) {
  int64_t memory_ns = time_at(traffic.bytes == INT64_MAX ? INT64_MAX : traffic.bytes - traffic.cached,
                              profile->compute.memory_bytes_per_second, traffic.efficiency_ppm);
  int64_t asked_ns = traffic.most_per_second > 0 ? time_at(traffic.bytes, traffic.most_per_second, PL_PPM) : 0;
  if (traffic.cached > 0)
    memory_ns =
        pl_add_saturate(memory_ns, time_at(traffic.cached, profile->cache.bytes_per_second, traffic.efficiency_ppm));
  return pl_max(memory_ns, asked_ns);
}

/* What it takes of the device's memory at the full bandwidth, or of its cache. */
static int64_t least_traffic_ns(const planc_profile *profile, pl_traffic traffic) {
  traffic.efficiency_ppm = PL_PPM;
  traffic.most_per_second = 0;
  return traffic_ns(profile, traffic);
}

static int64_t busy_with(const planc_profile *profile, const pl_product *product, int64_t tiles, int64_t tile);
static int64_t flops_of(const pl_product *product);

/* A product's arithmetic by kernels with square tiles of one size. */
static arithmetic multiply_by(const planc_profile *profile, const pl_product *product, int64_t tile, int64_t flops_ppm,
                              int64_t depth_overhead, int64_t peak) {
  const pl_compute *compute = &profile->compute;
  int64_t tiles = pl_mul_saturate(
      pl_mul_saturate(pl_div_ceil(product->rows, tile), pl_div_ceil(product->columns, tile)), product->count);
  int64_t depth = pl_add_saturate(product->depth, depth_overhead);
  /* Steps of depth that the busiest multiprocessor does, one tile after the other or, cut along the depth, evenly
   * shared. Both bounds grow with every dimension, so that a larger batch never comes out faster. */
  int64_t steps = pl_mul_saturate(pl_div_ceil(tiles, compute->processors), depth);
  int64_t busy_ppm = share_ppm(tiles, compute->processors);
  if (product->may_split) {
    int64_t shared = pl_muldiv_ceil(tiles, depth, compute->processors);
    steps = pl_min(steps, pl_max(shared, pl_min(depth, compute->split_depth)));
    busy_ppm = share_ppm(shared, steps);
  }
  if (profile->occupancy.threads) busy_ppm = busy_with(profile, product, tiles, tile);
  int64_t tile_flops = tile * tile * product->flops_per_step;
  int64_t flops = pl_mul_saturate(steps, compute->processors * tile_flops);
  return (arithmetic){time_at(flops, peak, flops_ppm), busy_ppm, time_at(flops_of(product), peak, flops_ppm)};
}

/* What the results of so many tiles keep busy, each of them in as many slices as the least depth allows: kernels that
 * cut a product do so to fill the device. */
static int64_t busy_with(const planc_profile *profile, const pl_product *product, int64_t tiles, int64_t tile) {
  int64_t results = pl_mul_saturate(tiles, tile * tile), slices = product->depth / profile->compute.split_depth;
  if (product->may_split && slices > 1) results = pl_mul_saturate(results, slices);
  return share_ppm(results, pl_mul_saturate(profile->compute.processors, profile->occupancy.outputs));
}

static int64_t flops_of(const pl_product *product) {
  int64_t steps = pl_mul_saturate(pl_mul_saturate(product->rows, product->columns), product->depth);
  return pl_mul_saturate(pl_mul_saturate(steps, product->count), product->flops_per_step);
}

planc_variant pl_work_variant(const pl_work *work, const char *algorithm, int64_t workspace_bytes) {
  return (planc_variant){.algorithm = algorithm,
                         .time_ns = work->time_ns,
                         .workspace_bytes = workspace_bytes,
                         .busy_ppm = share_ppm(work->busy_ns, pl_max(1, work->time_ns)),
                         .deterministic = true,
                         .measured = false};
}
