/* What the tensors of an order need, before anything is planned: gaps between uses, ideal memory, moDNN's lower bound,
 * and why each tensor lives as long as it does. */
#ifndef PLANC_NEEDS_H
#define PLANC_NEEDS_H

#include "planc/order.h"
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

/* What moDNN keeps on the device all the time (papers/004, II.2), its S_W: params, state, gradients. */
static inline bool planc_is_always_resident(planc_kind kind) {
  return planc_kind_persists(kind) || kind == PLANC_KIND_grad;
}
/* moDNN, Eq. 1 without workspace: bytes of instance's inputs and outputs other than always-resident ones. */
int64_t planc_instance_bytes(const planc_trace *trace, int32_t instance);
/* moDNN's lower bound on memory, Eq. 2: S_W and the most of any op at batch 1 with the baseline algorithm; *out_op is
 * that op. */
planc_status planc_lower_bound(const planc_graph *graph, int64_t *out_bytes, int32_t *out_op);

/* --- Classes of tensors ------------------------------------------------------------------------------------------- */

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

#ifdef __cplusplus
}
#endif

#endif
