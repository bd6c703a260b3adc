/* Occupancy (occupancy.h). */
#include "cost/occupancy.h"

static int64_t results_of(const planc_graph *graph, const planc_op *op, int64_t batch);
static int64_t channels_of(const planc_graph *graph, const planc_op *op, int64_t batch);
static int64_t elements_of(const planc_tensor *tensor, int64_t batch);
static int64_t most_elements(const planc_graph *graph, const planc_op *op, int64_t batch);
static int64_t with(int64_t threads, int64_t each);

pl_spread pl_spread_of_op(const planc_profile *profile, const planc_graph *graph, const planc_op *op, int64_t batch,
                          int64_t bytes) {
  const pl_occupancy *by = &profile->occupancy;
  if (!by->threads || !op->known || op->n_out == 0) return pl_spread_of_bytes(profile, bytes);
  switch (pl_op_class(op)) {
    case PLANC_CLASS_norm:
      if (op->known->id == PL_OPTYPE_batchnorm_infer) break;
      return (pl_spread){channels_of(graph, op, batch), with(by->threads, by->norm_threads)};
    case PLANC_CLASS_reduction:
      return (pl_spread){results_of(graph, op, batch), with(by->threads, by->result_threads)};
    case PLANC_CLASS_pool:
      return (pl_spread){elements_of(&graph->tensors[op->out[0]], batch), by->threads};
    default:
      break;
  }
  return (pl_spread){most_elements(graph, op, batch), by->threads * by->thread_elements};
}

/* How many groups of `each` threads there are in `threads`; at least one. */
static int64_t with(int64_t threads, int64_t each) {
  return threads > each ? threads / each : 1;
}

static int64_t elements_of(const planc_tensor *tensor, int64_t batch) {
  int64_t product = 1;
  for (int32_t d = 0; d < tensor->rank; d++) {
    int64_t size = planc_law_at(tensor->dims[d], batch);
    product = size < 0 ? INT64_MAX : pl_mul_saturate(product, size);
  }
  return product;
}

static int64_t most_elements(const planc_graph *graph, const planc_op *op, int64_t batch) {
  int64_t most = 0;
  for (int32_t i = 0; i < op->n_in + op->n_out; i++) {
    int64_t n = elements_of(&graph->tensors[i < op->n_in ? op->in[i] : op->out[i - op->n_in]], batch);
    if (n > most) most = n;
  }
  return most;
}

static int64_t rows_of(const planc_tensor *tensor, int64_t batch) {
  int64_t columns = tensor->rank > 0 ? planc_law_at(tensor->dims[tensor->rank - 1], batch) : 1;
  return columns > 0 ? elements_of(tensor, batch) / columns : INT64_MAX;
}

/* A softmax, by itself or in a loss, goes by rows. */
static int64_t results_of(const planc_graph *graph, const planc_op *op, int64_t batch) {
  switch (op->known->id) {
    case PL_OPTYPE_softmax:
    case PL_OPTYPE_softmax_grad:
    case PL_OPTYPE_softmax_xent:
      return rows_of(&graph->tensors[op->in[0]], batch);
    default:
      return elements_of(&graph->tensors[op->out[0]], batch);
  }
}

/* A batch norm reduces each channel, a layer norm each row. */
static int64_t channels_of(const planc_graph *graph, const planc_op *op, int64_t batch) {
  bool by_rows = op->known->id == PL_OPTYPE_layernorm || op->known->id == PL_OPTYPE_layernorm_grad;
  return by_rows ? rows_of(&graph->tensors[op->in[0]], batch) : elements_of(&graph->tensors[op->in[1]], batch);
}
