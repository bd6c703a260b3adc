/* The table of costs: every op at every batch of interest, with each algorithm. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cost/convolution.h"
#include "cost/json.h"
#include "cost/occupancy.h"
#include "cost/profile.h"
#include "cost/reuse.h"
#include "cost/roofline.h"
#include "util/ascending.h"
#include "util/vec.h"

typedef VEC(planc_variant) variant_list;
typedef VEC(int32_t) index_list;

/* What of an op does not depend on the batch. */
typedef struct op_costs {
  const planc_op *op;
  int32_t index;                  /* in the graph */
  const pl_measured_op *measured; /* NULL: not measured */
  bool scales;                    /* with the batch */
  const pl_labelled *share;       /* of the bandwidth, by its type; NULL: that of its class */
  const pl_labelled *rate;        /* that its type moves at most; NULL: any */
  planc_class class_;
  planc_dtype dtype;
  bool is_conv;
  pl_conv conv;
  const planc_tensor *images;  /* of a convolution: the tensor whose first dimension counts its images */
  const planc_tensor *product; /* of a linear op or a matrix product: its result */
  const pl_reuse *reuse;       /* which has come to this op; NULL: no other op is asked about */
  pl_multiply_kind kind;       /* of the product: LINEAR, LINEAR_BIAS or BATCHED */
} op_costs;

static op_costs op_costs_of(const planc_profile *profile, const planc_graph *graph, int32_t index);
static planc_status overflow(const planc_op *op, int64_t batch);
static bool conv_case_of(const planc_graph *graph, const op_costs *of, int64_t batch, pl_conv_case *out);
static bool stream_variant(const planc_profile *profile, const planc_graph *graph, const op_costs *of, int64_t batch,
                           planc_variant *out);
static planc_variant roofline_conv(const planc_profile *profile, const pl_conv_case *at, planc_method method);

planc_status planc_cost_roofline(const planc_profile *profile, const planc_graph *graph, int32_t op, int64_t batch,
                                 planc_method method, planc_variant *out) {
  op_costs of = op_costs_of(profile, graph, op);
  pl_conv_case at;
  bool fits;
  if (of.is_conv) {
    fits = conv_case_of(graph, &of, batch, &at);
    if (fits) *out = roofline_conv(profile, &at, method);
  } else {
    fits = stream_variant(profile, graph, &of, batch, out);
  }
  return fits && out->time_ns <= PL_JSON_MAX ? NULL : overflow(of.op, batch);
}

/* --- One op ------------------------------------------------------------------------------------------------------- */

static planc_dtype dtype_of(const planc_graph *graph, const planc_op *op);
static pl_multiply_kind kind_of(const planc_graph *graph, const planc_op *op);
static bool is_batched_product(const planc_graph *graph, const planc_op *op);
static planc_variant roofline_variant(const planc_profile *profile, const planc_graph *graph, const op_costs *of,
                                      int64_t batch, int64_t flops, pl_traffic traffic, int64_t workspace);
static pl_product linear_product(const planc_tensor *result, bool batched, int64_t flops, int64_t batch);
static pl_traffic traffic_of(const planc_profile *profile, const planc_graph *graph, const op_costs *of, int64_t batch,
                             int64_t bytes);

/* A profile names types, foreign ones too: what it says of the op's is looked up here, once for all batches. */
static op_costs op_costs_of(const planc_profile *profile, const planc_graph *graph, int32_t index) {
  const planc_op *op = &graph->ops[index];
  op_costs out = {.op = op, .index = index, .scales = op->flops.per_sample != 0 || op->traffic.per_sample != 0};
  out.class_ = pl_op_class(op);
  out.dtype = dtype_of(graph, op);
  out.share = pl_labels_find(&profile->types, op->type);
  out.rate = pl_labels_find(&profile->rates, op->type);
  if (out.class_ == PLANC_CLASS_conv && pl_conv_of(graph, op, &out.conv)) {
    out.is_conv = true;
    out.images = &graph->tensors[op->in[out.conv.direction == PL_CONV_DGRAD ? 1 : 0]];
  } else if (out.class_ == PLANC_CLASS_gemm && op->known && op->n_out > 0) {
    out.product = &graph->tensors[op->out[0]];
    out.kind = kind_of(graph, op);
  }
  return out;
}

static planc_dtype dtype_of(const planc_graph *graph, const planc_op *op) {
  if (op->n_out > 0) return graph->tensors[op->out[0]].dtype;
  return op->n_in > 0 ? graph->tensors[op->in[0]].dtype : PLANC_DTYPE_f32;
}

/* A product with a bias ends by adding it. */
static pl_multiply_kind kind_of(const planc_graph *graph, const planc_op *op) {
  if (is_batched_product(graph, op)) return PL_MULTIPLY_BATCHED;
  return op->n_in == 3 ? PL_MULTIPLY_LINEAR_BIAS : PL_MULTIPLY_LINEAR;
}

/* One of the result's matrices for every pair of its operands'; else an operand, a weight, has fewer dimensions. */
static bool is_batched_product(const planc_graph *graph, const planc_op *op) {
  int32_t rank = graph->tensors[op->out[0]].rank;
  return rank > 2 && op->n_in >= 2 && graph->tensors[op->in[0]].rank == rank && graph->tensors[op->in[1]].rank == rank;
}

static planc_status overflow(const planc_op *op, int64_t batch) {
  return planc_error(PLANC_BAD_INPUT, "op %s: its costs at batch %" PRId64 " are beyond 2^53", op->name, batch);
}

/* Factors of a product, from f32 to TF32. */
static bool may_round(const planc_op *op) {
  return planc_op_int(op, "tf32", 0, 0) != 0;
}

/* False when its sizes are beyond 2^53. */
static bool conv_case_of(const planc_graph *graph, const op_costs *of, int64_t batch, pl_conv_case *out) {
  *out = (pl_conv_case){.conv = &of->conv,
                        .layout = graph->layout,
                        .dtype = of->dtype,
                        .tf32 = may_round(of->op),
                        .images = planc_law_at(of->images->dims[0], batch)};
  return out->images >= 0;
}

/* The one kernel of an op that is no convolution. */
static bool stream_variant(const planc_profile *profile, const planc_graph *graph, const op_costs *of, int64_t batch,
                           planc_variant *out) {
  int64_t flops = planc_law_at(of->op->flops, batch);
  int64_t traffic = planc_law_at(of->op->traffic, batch);
  int64_t workspace = planc_law_at(of->op->workspace, batch);
  if (flops < 0 || traffic < 0 || workspace < 0) return false;
  *out = roofline_variant(profile, graph, of, batch, flops, traffic_of(profile, graph, of, batch, traffic), workspace);
  return true;
}

static planc_variant roofline_variant(const planc_profile *profile, const planc_graph *graph, const op_costs *of,
                                      int64_t batch, int64_t flops, pl_traffic traffic, int64_t workspace) {
  pl_work work = {0};
  pl_rate rate = planc_dtype_is_half(of->dtype) ? PL_RATE_HALF : PL_RATE_F32;
  if (of->product) {
    if (rate == PL_RATE_F32 && may_round(of->op)) rate = PL_RATE_TF32;
    pl_product product = linear_product(of->product, of->kind == PL_MULTIPLY_BATCHED, flops, batch);
    bool told = profile->multiply[of->kind].tile > 0;
    product.may_split = !told || of->kind == PL_MULTIPLY_LINEAR;
    pl_work_multiply(&work, profile, told ? of->kind : PL_MULTIPLY_LINEAR, rate, &product, traffic);
  } else {
    pl_work_stream(&work, profile, rate, flops, traffic, pl_spread_of_op(profile, graph, of->op, batch, traffic.bytes));
  }
  return pl_work_variant(&work, "default", workspace);
}

/* The matrix product behind a linear op, as deep as its FLOPs say: its result's last dimension by all others or, where
 * it is batched, by the last but one, as often as the others say. */
static pl_product linear_product(const planc_tensor *result, bool batched, int64_t flops, int64_t batch) {
  pl_product product = {.rows = 1, .columns = 1, .count = 1, .flops_per_step = 2};
  for (int32_t d = 0; d < result->rank; d++) {
    int64_t size = planc_law_at(result->dims[d], batch);
    int64_t *edge = d + 1 == result->rank             ? &product.columns
                    : batched && d + 2 < result->rank ? &product.count
                                                      : &product.rows;
    *edge = size < 0 ? INT64_MAX : pl_mul_saturate(*edge, size);
  }
  int64_t elements = pl_mul_saturate(pl_mul_saturate(product.rows, product.columns), product.count);
  int64_t steps = pl_mul_saturate(elements, 2);
  product.depth = steps > 0 ? flops / steps : 0;
  return product;
}

/* What an op that is no convolution moves: at the share of its type, where the profile has one, else of its class. */
static pl_traffic traffic_of(const planc_profile *profile, const planc_graph *graph, const op_costs *of, int64_t batch,
                             int64_t bytes) {
  pl_traffic out = pl_traffic_of(profile, of->class_, bytes);
  assert(!of->reuse || of->reuse->op == of->index);
  out.cached = of->reuse ? pl_reused_bytes(of->reuse, batch) : pl_reused_by(profile, graph, of->index, batch);
  if (of->share) out.efficiency_ppm = of->share->value;
  if (of->rate) out.most_per_second = of->rate->value;
  return out;
}

/* --- One kernel --------------------------------------------------------------------------------------------------- */

static const char *algorithm_of(const pl_conv *conv, planc_method method) {
  if (pl_conv_is_depthwise(conv)) return "depthwise";
  switch (method) {
    case PLANC_METHOD_WINOGRAD:
      return "winograd";
    case PLANC_METHOD_FFT:
      return "fft";
    default:
      return "implicit-gemm";
  }
}

/* As a transform where the shape allows one, else as the direct product, or without one. */
static planc_variant roofline_conv(const planc_profile *profile, const pl_conv_case *at, planc_method method) {
  planc_variant found[PL_MAX_CONV_VARIANTS], out = {0};
  if (method == PLANC_METHOD_TENSOR_CORE) return pl_conv_tensor_core(profile, at);
  pl_conv_case as_told = *at;
  as_told.scalar = method == PLANC_METHOD_SCALAR;
  int32_t count = pl_conv_variants(profile, &as_told, found);
  for (int32_t v = 0; v < count; v++)
    if (!out.algorithm || strcmp(found[v].algorithm, algorithm_of(at->conv, method)) == 0) out = found[v];
  return out;
}

/* --- Order -------------------------------------------------------------------------------------------------------- */

bool planc_variant_precedes(const planc_variant *a, const planc_variant *b) {
  if (a->workspace_bytes != b->workspace_bytes) return a->workspace_bytes < b->workspace_bytes;
  if (a->time_ns != b->time_ns) return a->time_ns < b->time_ns;
  if (a->deterministic != b->deterministic) return a->deterministic;
  return strcmp(a->algorithm, b->algorithm) < 0;
}

int32_t planc_variant_fastest(const planc_variant *variants, int32_t count, int64_t limit) {
  int32_t best = -1;
  for (int32_t v = 0; v < count; v++) {
    const planc_variant *candidate = &variants[v];
    if (candidate->workspace_bytes > limit) continue;
    if (best < 0 || candidate->time_ns < variants[best].time_ns ||
        (candidate->time_ns == variants[best].time_ns && planc_variant_precedes(candidate, &variants[best]))) {
      best = v;
    }
  }
  return best;
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

static planc_status sort_batches(int32_t n_batches, const int64_t *batches, int64_t *out, int32_t *out_count);
static planc_status fill(const planc_profile *profile, const planc_costs *costs, index_list *first, variant_list *all);
static planc_status fill_along(const planc_profile *profile, const planc_costs *costs, pl_reuse *reuse,
                               index_list *first, variant_list *all);
static planc_status add_variants(const planc_profile *profile, const planc_graph *graph, const op_costs *of,
                                 int64_t batch, variant_list *out);
static void order_variants(planc_variant *of, int32_t count);

planc_status planc_costs_make(const planc_profile *profile, const planc_graph *graph, int32_t n_batches,
                              const int64_t *batches, planc_costs **out) {
  *out = NULL;
  planc_costs *costs = calloc(1, sizeof *costs);
  int64_t *sorted = n_batches > 0 ? calloc((size_t)n_batches, sizeof *sorted) : NULL;
  index_list first = {0};
  variant_list all = {0};
  planc_status status = NULL;
  if (!costs || (n_batches > 0 && !sorted)) {
    status = planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
    free(sorted);
    free(costs);
    return status;
  }
  *costs = (planc_costs){.graph = graph, .profile = profile, .device = profile->device, .batches = sorted};
  if (sorted) status = sort_batches(n_batches, batches, sorted, &costs->n_batches);
  if (!status) status = fill(profile, costs, &first, &all);
  costs->first = first.data;
  costs->variants = all.data;
  if (status) {
    planc_costs_free(costs);
    return status;
  }
  *out = costs;
  return NULL;
}

void planc_costs_free(planc_costs *costs) {
  if (!costs) return;
  free((void *)costs->batches);
  free((void *)costs->first);
  free((void *)costs->variants);
  free(costs);
}

int32_t planc_costs_batch(const planc_costs *costs, int64_t batch) {
  int32_t low = 0;
  int32_t high = costs->n_batches;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (costs->batches[middle] < batch) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < costs->n_batches && costs->batches[low] == batch ? low : -1;
}

/* Sorted, without doubles. */
static planc_status sort_batches(int32_t n_batches, const int64_t *batches, int64_t *out, int32_t *out_count) {
  int32_t count = 0;
  for (int32_t b = 0; b < n_batches; b++) {
    if (batches[b] <= 0) return planc_error(PLANC_BAD_INPUT, "batch %" PRId64 ": must be positive", batches[b]);
    out[b] = batches[b];
  }
  qsort(out, (size_t)n_batches, sizeof *out, pl_ascending);
  for (int32_t b = 0; b < n_batches; b++) {
    if (b == 0 || out[b] != out[b - 1]) out[count++] = out[b];
  }
  *out_count = count;
  return NULL;
}

static planc_status fill(const planc_profile *profile, const planc_costs *costs, index_list *first, variant_list *all) {
  pl_arena arena = {0};
  pl_reuse reuse;
  planc_status status = pl_reuse_start(profile, costs->graph, costs->n_batches, costs->batches, &arena, &reuse);
  if (!status) status = fill_along(profile, costs, &reuse, first, all);
  pl_arena_free(&arena);
  return status;
}

static planc_status fill_along(const planc_profile *profile, const planc_costs *costs, pl_reuse *reuse,
                               index_list *first, variant_list *all) {
  const planc_graph *graph = costs->graph;
  int64_t cells = (int64_t)graph->n_ops * costs->n_batches;
  PLANC_TRY(VEC_RESERVE(first, cells + 1));
  PLANC_TRY(VEC_RESERVE(all, cells + 1));
  for (int32_t o = 0; o < graph->n_ops; o++) {
    op_costs of = op_costs_of(profile, graph, o);
    of.measured = pl_measured_find(&profile->measured, graph->ops[o].name);
    of.reuse = reuse;
    for (int32_t b = 0; b < costs->n_batches; b++) {
      int64_t start = all->len;
      VEC_PUSH(first, (int32_t)start);
      PLANC_TRY(add_variants(profile, graph, &of, costs->batches[b], all));
      for (int64_t v = start; v < all->len; v++) {
        if (all->data[v].time_ns > PL_JSON_MAX || all->data[v].workspace_bytes > PL_JSON_MAX) {
          return overflow(of.op, costs->batches[b]);
        }
      }
      if (all->len > INT32_MAX) return planc_error(PLANC_BAD_INPUT, "more than 2^31 costs");
      order_variants(all->data + start, (int32_t)(all->len - start));
      if (profile->baselines_only) all->len = start + 1;
    }
    pl_reuse_pass(reuse);
  }
  VEC_PUSH(first, (int32_t)all->len);
  return NULL;
}

/* Appends all variants of an op at `batch`, in no order. */
static planc_status add_variants(const planc_profile *profile, const planc_graph *graph, const op_costs *of,
                                 int64_t batch, variant_list *out) {
  if (of->measured) {
    int64_t before = out->len;
    for (int32_t v = 0; v < of->measured->n_variants; v++) {
      planc_variant at = pl_measured_at(&of->measured->variants[v], batch, of->scales, profile->compute.kernel_ns);
      if (at.workspace_bytes >= 0) VEC_PUSH(out, at);
    }
    if (out->len > before) return NULL;
    return planc_error(PLANC_BAD_INPUT, "op %s: the profile has no algorithm for batch %lld", of->op->name,
                       (long long)batch);
  }
  if (of->is_conv) {
    pl_conv_case at;
    if (!conv_case_of(graph, of, batch, &at)) return overflow(of->op, batch);
    planc_variant found[PL_MAX_CONV_VARIANTS];
    int32_t count = pl_conv_variants(profile, &at, found);
    for (int32_t v = 0; v < count; v++) VEC_PUSH(out, found[v]);
    return NULL;
  }
  planc_variant only;
  if (!stream_variant(profile, graph, of, batch, &only)) return overflow(of->op, batch);
  VEC_PUSH(out, only);
  return NULL;
}

/* Puts the baseline first and the others in order of name. */
static void order_variants(planc_variant *of, int32_t count) {
  assert(count > 0); /* an op without an algorithm has been refused */
  int32_t baseline = 0;
  for (int32_t v = 1; v < count; v++) {
    if (planc_variant_precedes(&of[v], &of[baseline])) baseline = v;
  }
  planc_variant first = of[baseline];
  of[baseline] = of[0];
  of[0] = first;
  for (int32_t v = 2; v < count; v++) {
    planc_variant moved = of[v];
    int32_t to = v;
    for (; to > 1 && strcmp(moved.algorithm, of[to - 1].algorithm) < 0; to--) of[to] = of[to - 1];
    of[to] = moved;
  }
}

/* --- Beside ops --------------------------------------------------------------------------------------------------- */

static int64_t pass_over(const planc_profile *profile, int64_t bytes, int32_t times);

int64_t planc_costs_add_ns(const planc_profile *profile, int64_t bytes) {
  return pass_over(profile, bytes, 3);
}

int64_t planc_costs_move_ns(const planc_profile *profile, int64_t bytes) {
  return pass_over(profile, bytes, 2);
}

/* Reads and writes `bytes` so many times in all. */
static int64_t pass_over(const planc_profile *profile, int64_t bytes, int32_t times) {
  pl_work work = {0};
  int64_t moved = pl_mul_saturate(bytes, times);
  pl_work_stream(&work, profile, PL_RATE_F32, 0, pl_traffic_of(profile, PLANC_CLASS_elementwise, moved),
                 pl_spread_of_bytes(profile, moved));
  return work.time_ns;
}

int64_t planc_link_ns(const planc_link *link, int64_t bytes) {
  return pl_add_saturate(link->latency_ns, pl_muldiv_ceil(bytes, PL_NS, link->bytes_per_second));
}
