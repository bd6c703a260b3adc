/* Analysis of an order: lifetimes, gaps, ideal memory, peaks; moDNN's lower bound. */
#ifndef PLANC_ANALYSIS_H
#define PLANC_ANALYSIS_H

#include "planc/cost.h"
#include "planc/order.h"
#include "planc/plan.h"
#include "planc/simulate.h"
#include "planc/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The stretch between two consecutive uses of a version of which the second reads: before one that only writes no
 * version has to survive. For a persistent buffer the last one wraps around to the next period's first use, whatever
 * that does: the user keeps the last version. */
typedef struct planc_gap {
  int32_t buffer, version; /* the version that must survive it */
  int32_t from, to;        /* positions; to <= from when it wraps */
  bool wraps;
} planc_gap;

typedef struct planc_gaps {
  int32_t n;
  const planc_gap *gaps; /* by buffer, in time order */
} planc_gaps;
planc_status planc_gaps_make(const planc_order *order, planc_gaps **out);
void planc_gaps_free(planc_gaps *gaps);

typedef struct planc_memory_needs {
  int64_t sum_bytes;      /* all data of the trace at once, as moDNN counts the ideal case (papers/004, V-A) */
  int64_t liveness_bytes; /* peak of live buffers, from first to last use, persistent ones always; without workspace */
  int32_t liveness_instance; /* the first to run where that peak is, -1 where nothing runs */
  int64_t persistent_bytes;
} planc_memory_needs;
planc_status planc_memory_needs_of(const planc_order *order, planc_memory_needs *out);

/* moDNN, Eq. 1 without workspace: bytes of instance's inputs and outputs other than always-resident ones (params,
 * state, gradients). */
int64_t planc_instance_bytes(const planc_trace *trace, int32_t instance);
/* S_W: bytes of params, state and gradients; gradients once, however many iterations the period has. */
int64_t planc_resident_bytes(const planc_trace *trace);
/* moDNN's lower bound on memory, Eq. 2: S_W + max over ops at batch 1 with the baseline algorithm; *out_op is the op.
 */
planc_status planc_lower_bound(const planc_graph *graph, int64_t *out_bytes, int32_t *out_op);

/* --- How long tensors live ---------------------------------------------------------------------------------------- */

/* Tensors by why they live as long as they do (Zico, papers/000, 6.2). A feature map is made by a forward op, or fed,
 * and read by a backward one; a gradient map is read, too, but not made by a forward op; all else is temporary.
 * Parameters and state are kept. The optimizer counts as backward here. */
typedef enum planc_tensor_class {
  PLANC_TENSOR_KEPT,
  PLANC_TENSOR_TEMPORARY,
  PLANC_TENSOR_FEATURE,
  PLANC_TENSOR_GRADIENT,
  PLANC_N_TENSOR_CLASSES
} planc_tensor_class;
planc_tensor_class planc_tensor_class_of(const planc_trace *trace, int32_t buffer);
const char *planc_tensor_class_name(planc_tensor_class tensor_class);

/* Of the tensors of a job that are of a class, in a steady period as simulated: one lives from the start of the first
 * op or copy that its place on the device has, to the end of the last. What leaves and comes back lives twice.
 * Workspaces are no tensors. */
typedef struct planc_lifespan {
  int64_t n, bytes; /* tensors, and their sum */
  int64_t mean_ns, median_ns, longest_ns;
} planc_lifespan;
typedef struct planc_lifespans {
  int32_t n_jobs;
  const planc_lifespan (*of)[PLANC_N_TENSOR_CLASSES]; /* by job, by class; of what is kept there is nothing */
} planc_lifespans;
/* USAGE, BAD_INPUT and INVALID_PLAN as planc_simulate. */
planc_status planc_lifespans_of(const planc_plan *plan, planc_lifespans **out);
void planc_lifespans_free(planc_lifespans *lifespans);

/* --- Memory without a plan ---------------------------------------------------------------------------------------- */

/* When an allocator that knows no plan takes memory to be free (Waterwave, papers/003, 3.2): as soon as the last op
 * that uses it has been launched, which is safe on one stream; or when that op has ended. Either takes memory when the
 * first one is about to be launched. */
typedef enum planc_free_at { PLANC_FREE_AT_SCHEDULE, PLANC_FREE_AT_COMPLETION } planc_free_at;

/* Live bytes of a plan's body under such an allocator, on its GPU: what is there over periods always counts, and
 * workspaces do while their ops do. Times are from the first launch of a period, of which none begins before the one
 * before it has ended. */
enum { PLANC_FOOTPRINT_PARTS = 100 };
typedef struct planc_footprint {
  int64_t peak_bytes, peak_ns; /* the first time at which so much is live */
  int64_t mean_bytes, period_ns;
  int64_t backward_ns;                       /* start of the first backward op, -1 where there is none */
  int64_t most_bytes[PLANC_FOOTPRINT_PARTS]; /* the most in each of so many equal parts of the period */
} planc_footprint;
/* `options` say how hosts launch and have no visitors. USAGE where they launch a body as a whole or map memory in it,
 * and of a plan for several GPUs; else as planc_simulate. */
planc_status planc_footprint_of(const planc_plan *plan, const planc_simulate_options *options, planc_free_at free_at,
                                planc_footprint *out);

/* --- What binds a plan's peak ----------------------------------------------------------------------------------- */

typedef struct planc_peak_entry {
  const char *name; /* storage, or "workspace" */
  int64_t bytes;
} planc_peak_entry;

/* The moment of the body at which open residencies and workspace are largest, in a memory of a kind. Names are borrowed
 * from the plan; of one with several jobs they have the job before them, "job 1: conv". */
typedef struct planc_peak {
  int64_t bytes;
  int32_t instr;  /* index into the body */
  const char *op; /* the op that runs there, or the next one; NULL if none follows */
  int32_t n;
  const planc_peak_entry *entries; /* largest first; equal names summed */
} planc_peak;
planc_status planc_peak_of(const planc_plan *plan, planc_memory_kind memory, planc_peak **out);
void planc_peak_free(planc_peak *peak);

/* --- What of the arena is lost ------------------------------------------------------------------------------------ */

typedef struct planc_fragmentation {
  int64_t live_bytes; /* the most that residencies and workspace ask for at a time */
  int64_t lost_bytes; /* the arena beyond that */
  /* Of virtual memory (papers: out-of-core, 4), else 0. What is larger than a chunk has chunks of its own: */
  int64_t inside_bytes; /* the most that is lost at a time in them, */
  int64_t most_at_once; /* such residencies and workspaces, the boundary as one, and */
  int64_t bound_bytes;  /* that many chunks: no more can be lost in them (Eqs. 1 and 2) */
  int64_t shared_bytes; /* the most that is lost at a time in chunks that hold something smaller */
} planc_fragmentation;
planc_status planc_fragmentation_of(const planc_plan *plan, planc_fragmentation *out);

#ifdef __cplusplus
}
#endif

#endif
