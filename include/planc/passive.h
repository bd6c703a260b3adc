/* Passive swapping, which is only simulated: without any plan tensors are evicted when memory runs out and swapped in
 * when they are accessed, and compute waits for both (TENSILE, II, of Capuchin's first iteration). */
#ifndef PLANC_PASSIVE_H
#define PLANC_PASSIVE_H

#include "planc/problem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where the time of an iteration goes, which is all of it: time_ns is the sum of the other times. */
typedef struct planc_passive_iteration {
  int64_t time_ns;
  int64_t compute_ns;
  int64_t evict_ns, swap_in_ns; /* compute waits for evictions, for swap-ins */
  int64_t user_ns;              /* for inputs of the user and results for him */
  int64_t launch_ns;            /* for launches of ops and copies */
  int64_t evictions, swap_ins;  /* tensors */
  int64_t copied_out; /* evictions that were copied; of the others the host has the content, or nothing reads it */
  int64_t evicted_bytes, swapped_in_bytes; /* copied */
  int64_t copied_bytes[PLANC_N_ROUTES];    /* in all, what the user gives and gets included */
} planc_passive_iteration;

typedef struct planc_passive {
  int64_t prologue_ns;           /* parameters and state are loaded, as many as there is room for */
  planc_passive_iteration first; /* behind that */
  planc_passive_iteration steady;
  int64_t peak_bytes;      /* live data and workspace, each piece rounded up to PLANC_ALIGNMENT, plus reserved */
  int64_t host_peak_bytes; /* copies of what was evicted, other than inputs and parameters not yet written */
} planc_passive;

/* Simulates the problem's work under its budget, in rounds of its sub_batch, else in one. Pieces of data are counted,
 * not placed: nothing is lost to fragmentation. INFEASIBLE where an op's own operands do not fit, with the op and the
 * least budget, or the host budget does not suffice. */
planc_status planc_simulate_passive(const planc_problem *problem, planc_passive *out);

#ifdef __cplusplus
}
#endif

#endif
