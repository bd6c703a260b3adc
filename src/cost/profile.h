/* What a profile holds in memory; the file's format, planc-profile(5), has the same sections. */
#ifndef PLANC_COST_PROFILE_H
#define PLANC_COST_PROFILE_H

#include "cost/labels.h"
#include "cost/measured.h"
#include "graph/optypes.h"
#include "planc/cost.h"
#include "planc/predict.h"
#include "util/arena.h"
#include "util/math.h"

/* The compute side of the device. */
typedef struct pl_compute {
  int64_t flops_per_second;      /* peak in f32 */
  int64_t half_flops_per_second; /* peak in f16 and bf16 */
  int64_t tf32_flops_per_second; /* peak in TF32; 0: the device has none, or none is told */
  int64_t memory_bytes_per_second;
  int64_t processors;    /* multiprocessors: each works on one tile of a matrix product at a time */
  int64_t kernel_ns;     /* of any kernel: start, ramp-up and drain */
  int64_t split_depth;   /* least depth of a slice where a matrix product is cut along its depth */
  int64_t sustained_ppm; /* share of the rate of products that lasts under load; 0: all of it */
} pl_compute;

/* The cache in front of the device's memory; no bytes: it is left out of account. */
typedef struct pl_cache_rate {
  int64_t bytes, bytes_per_second;
} pl_cache_rate;

/* What a multiprocessor holds of kernels at a time; no threads: it is not told. */
typedef struct pl_occupancy {
  int64_t threads;
  int64_t thread_elements; /* of a tensor, that a thread of a kernel takes which goes over it element by element */
  int64_t norm_threads;    /* for a channel of a batch norm, or a row of a layer norm */
  int64_t result_threads;  /* for a result of a reduction, or a row of a softmax */
  int64_t outputs;         /* results of matrix products that threads hold in registers */
} pl_occupancy;

/* How a family of matrix products runs: those of linear ops and the one inside each convolution algorithm. The last two
 * may be left out of a profile; their products then run as linear ones. */
#define PL_MULTIPLIES(X)            \
  X(LINEAR, "linear")               \
  X(IMPLICIT_GEMM, "implicit-gemm") \
  X(GEMM, "gemm")                   \
  X(WINOGRAD, "winograd")           \
  X(FFT, "fft")                     \
  X(LINEAR_BIAS, "linear-bias")     \
  X(BATCHED, "batched")
typedef enum pl_multiply_kind {
#define X(id, name) PL_MULTIPLY_##id,
  PL_MULTIPLIES(X)
#undef X
      PL_N_MULTIPLIES,
  PL_N_REQUIRED_MULTIPLIES = PL_MULTIPLY_LINEAR_BIAS
} pl_multiply_kind;

typedef struct pl_multiply {
  int64_t flops_ppm;       /* share of peak on full tiles of great depth */
  int64_t tile;            /* edge of an output tile; 0: the family is not told */
  int64_t depth_overhead;  /* what filling and draining the pipeline costs, in steps of depth */
  int64_t small_tile;      /* of other kernels, which are taken where they are sooner done; 0: there are none */
  int64_t small_flops_ppm; /* their share of peak */
} pl_multiply;

#define X(name) +1
enum { PL_N_CLASSES = 0 PLANC_CLASSES(X) };
#undef X

/* Ops measured while something else kept the device busy for a share of the time. */
typedef struct pl_load {
  int64_t load_ppm;
  pl_measured ops;
} pl_load;

/* Where a constant comes from: a dotted path, or a section, and free text. */
typedef struct pl_origin {
  const char *of, *text;
} pl_origin;

struct planc_profile {
  pl_arena arena;
  planc_device device;
  pl_compute compute;
  int64_t efficiency_ppm[PL_N_CLASSES]; /* share of the memory bandwidth reached, by class */
  pl_multiply multiply[PL_N_MULTIPLIES];
  pl_cache_rate cache;
  pl_occupancy occupancy;
  pl_labels types; /* share of the memory bandwidth that ops of a type reach, whatever their class, in ppm */
  pl_labels rates; /* bytes per second that ops of a type move at most, wherever they are */
  pl_measured measured;
  pl_labels code;      /* bytes that an algorithm's takes; none is listed: `reserved_bytes` has it all */
  bool baselines_only; /* costs have no other variants; never of a profile that was read */
  bool has_graph_hash;
  uint64_t graph_hash; /* of the graph whose ops are measured */
  int32_t n_origins, n_loads;
  const pl_origin *origins;
  pl_load *loads;
  planc_model *model; /* or NULL */
};

/* Gives `out` the constants of `base`, which times follow from that nobody measured. */
planc_status pl_profile_take_rates(planc_profile *out, const planc_profile *base);

/* A device's rates with the name and the memory of another, which a plan was made for; with that one's links where
 * the rates tell of none. */
static inline planc_device pl_device_for(const planc_device *rates, const planc_device *made_for) {
  planc_device device = *rates;
  device.name = made_for->name;
  device.memory_bytes = made_for->memory_bytes;
  device.reserved_bytes = made_for->reserved_bytes;
  for (int r = 0; r < PLANC_N_ROUTES; r++)
    if (device.links[r].bytes_per_second == 0) device.links[r] = made_for->links[r];
  return device;
}

#endif
