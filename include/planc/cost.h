/* Costs: how long each op takes with each algorithm, what workspace it needs, how long a transfer takes.
 * They also say over which links data is copied.
 *
 * A profile describes a device (planc-profile(5)): from its constants every op gets a roofline time; measured tables,
 * where the profile has them, override. Times are int64 nanoseconds, sizes int64 bytes; both are piecewise linear in
 * the batch. Fractions are parts per million (ppm). */
#ifndef PLANC_COST_H
#define PLANC_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planc/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a copy over a link takes: latency + bytes / bandwidth. */
typedef struct planc_link {
  int64_t bytes_per_second, latency_ns;
} planc_link;

/* The links of a machine by which data is copied from memory to memory. The two ends of a copy say which it takes: a
 * copy to storage takes STORE and one from storage LOAD, whatever its other end is; any other copy to a GPU takes H2D,
 * and any other from a GPU D2H. So a copy from GPU to GPU takes H2D, and none by D2H ends on a GPU. A copy between the
 * user's memory and the host's takes H2D from the user and D2H to the user.
 *
 * X(id, name, memory, arrives, sums, waits, verb, where): with `arrives` the link leads to memories of the kind
 * `memory`, else away from them. In files and reports it is `name`, its copies are summed up as `sums`, and `waits` is
 * for how long compute waits for them. To people one of its copies is a `verb`, and all of them are copies `where`:
 * H2D leads to a GPU, its bytes are "copies_in", waits are "wait_in_ns", and people read "copy in" and "waits for
 * copies in". */
#define PLANC_ROUTES(X)                                                              \
  X(H2D, "h2d", DEVICE, true, "copies_in", "wait_in_ns", "copy in", "in")            \
  X(D2H, "d2h", DEVICE, false, "copies_out", "wait_out_ns", "copy out", "out")       \
  X(STORE, "store", STORAGE, true, "stores", "wait_store_ns", "store", "to storage") \
  X(LOAD, "load", STORAGE, false, "loads", "wait_load_ns", "load", "from storage")
typedef enum planc_route {
#define X(id, ...) PLANC_ROUTE_##id,
  PLANC_ROUTES(X)
#undef X
      PLANC_N_ROUTES,
  PLANC_NO_ROUTE = PLANC_N_ROUTES /* of a copy inside a memory, and of what is no copy */
} planc_route;

typedef struct planc_device {
  const char *name;
  int64_t memory_bytes;   /* of the card */
  int64_t reserved_bytes; /* charged to every plan's peak: context and libraries; of a plan its algorithms' code too */
  int64_t launch_ns;      /* host time to launch one op */
  int32_t in_flight;      /* launched ops that may wait on the device */
  planc_link links[PLANC_N_ROUTES]; /* a rate of 0: there is no such memory, or it is not known */
  int64_t duplex_ppm;               /* a copy's speed while the other direction copies too */
  int64_t slowdown_ppm;             /* how much longer compute takes while copies run, in one direction or both */
  int64_t paging_ppm; /* the part of the rate to the device at which pages migrate on demand; 0: it does not page, or
                         not known */
} planc_device;

/* One way to run an op at one batch. */
typedef struct planc_variant {
  const char *algorithm; /* "implicit-gemm", "gemm", "winograd", "fft", ...; "default" where there is no choice */
  int64_t time_ns;
  int64_t workspace_bytes;
  int64_t busy_ppm; /* share of the GPU it keeps busy; 1,000,000 = all */
  bool deterministic, measured;
} planc_variant;

typedef struct planc_profile planc_profile;

/* Reads planc-profile(5), JSON. Errors name the place ("path: ops[3].variants[0]: ..."). */
planc_status planc_profile_read(const char *path, planc_profile **out);
planc_status planc_profile_parse(const char *text, size_t length, const char *path, planc_profile **out);
void planc_profile_free(planc_profile *profile);
const planc_device *planc_profile_device(const planc_profile *profile);
/* The host's time to launch an op, in place of what the profile says: for a host that launches slower or faster than
 * the one where it was made. USAGE below 0 or beyond PLANC_LAUNCH_MAX_NS. */
enum { PLANC_LAUNCH_MAX_NS = 1000000000 };
planc_status planc_profile_set_launch(planc_profile *profile, int64_t launch_ns);
/* What is reserved on the device beside plans, in place of what the profile says. USAGE below 0 or beyond its memory.
 */
planc_status planc_profile_set_reserved(planc_profile *profile, int64_t bytes);
/* What the device takes for an algorithm's code beside reserved_bytes once it has run; 0 where none is listed. */
int64_t planc_profile_code(const planc_profile *profile, const char *algorithm);
/* For the code of all algorithms together. */
int64_t planc_profile_code_of_all(const planc_profile *profile);
/* Whether the profile was made for this graph, as far as it tells; *out_listed is how many of its ops it lists, by
 * name.
 */
typedef enum planc_profile_of { PLANC_OF_THIS, PLANC_OF_ANOTHER, PLANC_OF_UNKNOWN } planc_profile_of;
planc_profile_of planc_profile_is_of(const planc_profile *profile, const planc_graph *graph, int32_t *out_listed);
/* False when the profile lists workspaces of an op's algorithm, and none for this batch: what is planned with is then
 * a guess. */
bool planc_profile_lists_workspace(const planc_profile *profile, const char *op, const char *algorithm, int64_t batch);

/* The order of variants where nothing else tells them apart: less workspace first, then less time, then those that give
 * the same bits every time, then by algorithm name. */
bool planc_variant_precedes(const planc_variant *a, const planc_variant *b);

/* All variants of every op of a graph at the given batches: first the baseline, which precedes all others
 * (planc_variant_precedes), then the others by algorithm name. */
typedef struct planc_costs {
  const planc_graph *graph;
  const planc_profile *profile;
  planc_device device;
  int32_t n_batches;
  const int64_t *batches; /* ascending, distinct */
  /* Variants of op o at batch index k: variants[first[o * n_batches + k]] up to, not including, the next first. */
  const int32_t *first;
  const planc_variant *variants;
} planc_costs;

/* Makes the table; *out borrows `graph` and `profile`. `batches` need be neither sorted nor distinct. */
planc_status planc_costs_make(const planc_profile *profile, const planc_graph *graph, int32_t n_batches,
                              const int64_t *batches, planc_costs **out);
void planc_costs_free(planc_costs *costs);

/* moDNN's ideal (V): the sum of the ops' times, fastest algorithms, whole batch, all data resident; 0 for a batch that
 * the costs were not made for. */
int64_t planc_costs_ideal(const planc_costs *costs, const planc_graph *graph, int64_t batch);
/* Index of `batch` in costs->batches, or -1. */
int32_t planc_costs_batch(const planc_costs *costs, int64_t batch);
static inline const planc_variant *planc_costs_variants(const planc_costs *costs, int32_t op, int32_t batch_index,
                                                        int32_t *out_count) {
  const int32_t *first = &costs->first[(int64_t)op * costs->n_batches + batch_index];
  *out_count = first[1] - first[0];
  return &costs->variants[first[0]];
}
/* Index of the fastest variant whose workspace is at most `limit`, of several the one that precedes the others
 * (planc_variant_precedes); -1 if none. */
int32_t planc_variant_fastest(const planc_variant *variants, int32_t count, int64_t limit);
/* How a library's kernel multiplies, as far as the library tells. */
typedef enum planc_method {
  PLANC_METHOD_PLAIN,  /* nothing is told: at the rate of the op's type */
  PLANC_METHOD_SCALAR, /* without tensor cores: f16 and bf16 at f32's rate */
  PLANC_METHOD_TENSOR_CORE,
  PLANC_METHOD_WINOGRAD,
  PLANC_METHOD_FFT
} planc_method;
/* Time and busy share that the device's constants give an op by such a kernel, measured tables left aside. For ops
 * other than convolutions the method makes no difference. BAD_INPUT when the figures are beyond 2^53. */
planc_status planc_cost_roofline(const planc_profile *profile, const planc_graph *graph, int32_t op, int64_t batch,
                                 planc_method method, planc_variant *out);
/* Time of one add of two buffers of `bytes` on the device: what accumulating a gradient through a temporary costs. */
int64_t planc_costs_add_ns(const planc_profile *profile, int64_t bytes);
/* The same of copying `bytes` from one place on the device to another: they are read and written. */
int64_t planc_costs_move_ns(const planc_profile *profile, int64_t bytes);

/* Time of a copy of `bytes` over the link while its engine and its bus do nothing else. */
int64_t planc_link_ns(const planc_link *link, int64_t bytes);

#ifdef __cplusplus
}
#endif

#endif
