/* What values ops take of integer inputs (input_limits.h). */
#include "runtime/input_limits.h"

#include "graph/optypes.h"

bool rt_limits_input(const planc_graph *graph, const planc_op *op, int32_t *out_input, int64_t *out_limit) {
  bool labels = pl_optype_of(op) == PL_OPTYPE_softmax_xent;
  if (!labels && pl_optype_of(op) != PL_OPTYPE_embedding) return false;
  const planc_tensor *of = &graph->tensors[op->in[labels ? 0 : 1]];
  bool last = labels && (of->rank == 2 || graph->layout == PLANC_LAYOUT_NHWC);
  if (of->rank < 2) return false;
  *out_input = op->in[labels ? 1 : 0];
  *out_limit = of->dims[last ? of->rank - 1 : labels ? 1 : 0].fixed;
  return true;
}
