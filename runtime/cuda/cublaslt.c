/* Matrix products by cuBLASLt: linear ops, batched products, convolutions of single pixels, their gradients.
 *
 * Its heuristics choose a kernel for a limit on the workspace, and an algorithm's name states the limit:
 * "cublaslt-4194304". cuBLASLt's matrices are stored by columns and ours by rows, so that each of ours is the transpose
 * of its own; the product is computed transposed, its factors exchanged.
 *
 * A result that is the sum of many products has its partial sums in the workspace, in f32: "cublaslt-parts-16" has 16
 * of them, to which the products are added 16 at a time. A kernel of our own adds the parts up in a fixed order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda/cuda.h"
#include "runtime/cuda/op_families.h"
#include "runtime/cuda/products.h"
#include "runtime/shape.h"
#include "util/math.h"

struct rt_cublas {
  cublasLtHandle_t handle;
};

/* One call of cuBLASLt, which may be made several times. */
typedef struct multiplication {
  cublasLtMatmulDesc_t product;
  cublasLtMatrixLayout_t left, right, result; /* as cuBLASLt has them */
  cublasLtMatmulAlgo_t algorithm;
  int64_t workspace_bytes;
} multiplication;

/* A sum of products, in lots of `parts`, the last perhaps with fewer. */
typedef struct partial_sums {
  int64_t parts, lots;           /* parts 0: no sum; lots: whole ones */
  int64_t left_step, right_step; /* bytes from one lot to the next */
} partial_sums;

struct rt_cublas_plan {
  multiplication all, rest; /* rest: of a sum's last lot, if that has fewer parts */
  bool has_rest;
  partial_sums sums;
  rt_product of;
  float alpha;
  const rt_operand *bias; /* added by a kernel of our own; or NULL */
};

planc_status rt_cublas_status(cublasStatus_t code, const char *what) {
  if (code == CUBLAS_STATUS_SUCCESS) return NULL;
  return planc_error(code == CUBLAS_STATUS_ALLOC_FAILED ? PLANC_OUT_OF_MEMORY : PLANC_DEVICE, "cuBLASLt: %s: %s", what,
                     cublasLtGetStatusString(code));
}

#define CUBLAS_TRY(call) PLANC_TRY(rt_cublas_status((call), #call))

planc_status rt_cublas_open(bool present, rt_cublas **out) {
  *out = NULL;
  rt_cublas *cublas = calloc(1, sizeof *cublas);
  if (!cublas) return planc_error(PLANC_OUT_OF_MEMORY, "cuBLASLt");
  planc_status status = present ? rt_cublas_status(cublasLtCreate(&cublas->handle), "cublasLtCreate") : NULL;
  if (status)
    rt_cublas_close(cublas);
  else
    *out = cublas;
  return status;
}

void rt_cublas_close(rt_cublas *cublas) {
  if (!cublas) return;
  if (cublas->handle) cublasLtDestroy(cublas->handle);
  free(cublas);
}

/* --- Algorithms --------------------------------------------------------------------------------------------------- */

static const char prefix[] = "cublaslt-", parts_prefix[] = "cublaslt-parts-";

static void list(rt_variant *variant, int32_t rank, const char *head, int64_t number, int64_t workspace);
static int64_t sums_workspace(const rt_product *p, int64_t parts);
static int64_t lattice_bytes(const rt_product *p);
static int64_t parts_of(const char *algorithm);
static int64_t limit_of(const char *algorithm);

bool rt_cublas_has(const char *algorithm) {
  return strncmp(algorithm, prefix, sizeof prefix - 1) == 0;
}

bool rt_cublas_takes(const rt_call *call) {
  rt_product p;
  return rt_product_of(call, &p);
}

/* The more parts, the more of the device a lot fills, and the more room and adding up they take: beyond the first of
 * these numbers no more than twice what the factors have. */
void rt_cublas_variants(const rt_call *call, rt_variant *out, int32_t *out_count) {
  static const int64_t limits[] = {0, 4 << 20, 32 << 20}, parts[] = {16, 64, 256};
  rt_product p;
  *out_count = 0;
  if (!rt_product_of(call, &p)) return;
  for (int32_t i = 0; i < (int32_t)(sizeof parts / sizeof *parts) && p.summed; i++) {
    int64_t workspace = sums_workspace(&p, parts[i]);
    if (i == 0 || (parts[i - 1] < p.count && workspace <= 2 * (p.first->bytes + p.second->bytes)))
      list(&out[(*out_count)++], i, parts_prefix, parts[i], workspace);
  }
  int32_t n_limits = (int32_t)(sizeof limits / sizeof *limits);
  for (int32_t i = 0; i < n_limits && !p.summed; i++)
    list(&out[(*out_count)++], n_limits - 1 - i, prefix, limits[i], lattice_bytes(&p) + limits[i]);
}

static void list(rt_variant *variant, int32_t rank, const char *head, int64_t number, int64_t workspace) {
  *variant = (rt_variant){.workspace_bytes = workspace, .deterministic = true, .rank = rank};
  snprintf(variant->algorithm, sizeof variant->algorithm, "%s%lld", head, (long long)number);
}

int64_t rt_cublas_workspace(const rt_call *call, const char *algorithm) {
  rt_product p;
  if (!rt_product_of(call, &p)) return -1;
  int64_t number = p.summed ? parts_of(algorithm) : limit_of(algorithm);
  if (number < (p.summed ? 1 : 0)) return -1;
  return p.summed ? sums_workspace(&p, number) : lattice_bytes(&p) + number;
}

static rt_cuda_channels parts_shape(const rt_product *p, int64_t parts) {
  return (rt_cuda_channels){.outer = pl_min(parts, p->count), .channels = p->rows * p->columns, .inner = 1};
}

/* What the workspace of a sum holds, one behind the other: the parts; their sum, where the result is not f32; what
 * adding up takes. */
static int64_t parts_bytes(const rt_product *p, int64_t parts) {
  rt_cuda_channels shape = parts_shape(p, parts);
  return pl_align_up(shape.outer * shape.channels * (int64_t)sizeof(float), RT_ALIGNMENT);
}

static int64_t sum_bytes(const rt_product *p) {
  return p->result->dtype == PLANC_DTYPE_f32 ? 0 : parts_bytes(p, 1);
}

static int64_t sums_workspace(const rt_product *p, int64_t parts) {
  return lattice_bytes(p) + parts_bytes(p, parts) + sum_bytes(p) +
         rt_cuda_channel_sums_workspace(parts_shape(p, parts));
}

static int64_t lattice_bytes(const rt_product *p) {
  const rt_cuda_lattice *of = &p->lattice;
  return p->sparse ? pl_align_up(of->planes * of->rows * of->columns * of->bytes, RT_ALIGNMENT) : 0;
}

/* The number that an algorithm's name states; -1 where it is no such name. */
static int64_t number_behind(const char *algorithm, const char *head) {
  enum { DIGITS = 12 }; /* as many as no workspace has */
  size_t length = strlen(head);
  if (strncmp(algorithm, head, length) != 0) return -1;
  const char *digits = algorithm + length;
  size_t n = strspn(digits, "0123456789");
  return n > 0 && n <= DIGITS && digits[n] == 0 ? strtoll(digits, NULL, 10) : -1;
}

static int64_t parts_of(const char *algorithm) {
  return number_behind(algorithm, parts_prefix);
}

static int64_t limit_of(const char *algorithm) {
  return number_behind(algorithm, prefix);
}

/* --- Plans -------------------------------------------------------------------------------------------------------- */

static planc_status make_plan(const rt_cublas *cublas, const rt_call *call, rt_cublas_plan *plan);
static planc_status make_multiplication(const rt_cublas *cublas, const rt_call *call, const rt_product *p,
                                        int64_t limit, multiplication *out);
static planc_status make_layout(planc_dtype dtype, int64_t rows, int64_t columns, int64_t count, bool shared,
                                cublasLtMatrixLayout_t *out);
static planc_status make_product(const rt_call *call, const rt_product *p, cublasLtMatmulDesc_t *out);
static bool adds_bias(const rt_product *p);
static planc_status choose(const rt_cublas *cublas, const rt_product *p, int64_t limit, multiplication *of);
static planc_status multiply(const rt_cublas *cublas, const rt_cublas_plan *plan, const multiplication *of, int64_t lot,
                             bool adds, const rt_call *call, cudaStream_t stream);
static planc_status run_sums(const rt_cublas *cublas, const rt_cublas_plan *plan, const rt_call *call,
                             cudaStream_t stream);
static planc_status add_up(const rt_product *p, int64_t parts, char *workspace, cudaStream_t stream);
static planc_status run_bias(const rt_cublas_plan *plan, const rt_call *call, cudaStream_t stream);
static void free_multiplication(multiplication *of);

planc_status rt_cublas_prepare(rt_cublas *cublas, const rt_call *call, rt_cublas_plan **out) {
  *out = NULL;
  int64_t need = rt_cublas_workspace(call, call->algorithm);
  if (need < 0 && rt_cublas_has(call->algorithm))
    return planc_error(PLANC_DEVICE, "cuBLASLt has no such algorithm for this op");
  if (call->workspace_bytes < need)
    return planc_error(PLANC_DEVICE, "needs a workspace of %lld bytes, has %lld", (long long)need,
                       (long long)call->workspace_bytes);
  rt_cublas_plan *plan = calloc(1, sizeof *plan);
  if (!plan) return planc_error(PLANC_OUT_OF_MEMORY, "cuBLASLt plan");
  planc_status status = make_plan(cublas, call, plan);
  if (status)
    rt_cublas_plan_free(plan);
  else
    *out = plan;
  return status;
}

/* Bytes of a sum's factor from one product to the next, `edge` being its size beside the depth; else 0. */
static int64_t step_of(const rt_product *p, const rt_operand *factor, int64_t edge) {
  return p->summed ? factor->bytes / factor->elements * edge * p->depth : 0;
}

static planc_status make_plan(const rt_cublas *cublas, const rt_call *call, rt_cublas_plan *plan) {
  if (!rt_product_of(call, &plan->of)) return planc_error(PLANC_INTERNAL, "not a product");
  rt_product p = plan->of;
  plan->alpha = (float)planc_op_real(call->op, "scale", 1.0);
  plan->bias = p.bias && !adds_bias(&p) ? p.bias : NULL;
  /* Algorithms of device descriptions are not ours: such a plan has no workspace for them. */
  if (!p.summed) return make_multiplication(cublas, call, &p, pl_max(0, limit_of(call->algorithm)), &plan->all);
  int64_t count = p.count, parts = pl_min(parts_of(call->algorithm), count);
  if (parts < 1) return planc_error(PLANC_DEVICE, "names no number of parts");
  plan->sums = (partial_sums){.parts = parts,
                              .lots = count / parts,
                              .left_step = parts * step_of(&p, p.second, p.columns),
                              .right_step = parts * step_of(&p, p.first, p.rows)};
  plan->has_rest = count % parts > 0;
  p.count = parts;
  PLANC_TRY(make_multiplication(cublas, call, &p, 0, &plan->all));
  p.count = count % parts;
  return plan->has_rest ? make_multiplication(cublas, call, &p, 0, &plan->rest) : NULL;
}

static planc_status make_multiplication(const rt_cublas *cublas, const rt_call *call, const rt_product *p,
                                        int64_t limit, multiplication *out) {
  int64_t rows = p->rows, columns = p->columns, depth = p->depth;
  planc_dtype result = p->summed ? PLANC_DTYPE_f32 : p->result->dtype;
  PLANC_TRY(make_product(call, p, &out->product));
  PLANC_TRY(make_layout(p->second->dtype, p->second_transposed ? columns : depth,
                        p->second_transposed ? depth : columns, p->count, false, &out->left));
  PLANC_TRY(make_layout(p->first->dtype, p->first_transposed ? depth : rows, p->first_transposed ? rows : depth,
                        p->count, p->first_shared, &out->right));
  PLANC_TRY(make_layout(result, rows, columns, p->count, false, &out->result));
  return choose(cublas, p, limit, out);
}

planc_status rt_cublas_run(const rt_cublas *cublas, const rt_cublas_plan *plan, const rt_call *call,
                           cudaStream_t stream) {
  const rt_product *p = &plan->of;
  if (p->sparse && p->sparse != p->result)
    PLANC_TRY(rt_cuda_status(rt_cuda_pick(stream, &p->lattice, p->sparse->data, call->workspace), "lattice"));
  if (p->summed) return run_sums(cublas, plan, call, stream);
  PLANC_TRY(multiply(cublas, plan, &plan->all, 0, p->result->accumulate, call, stream));
  if (p->sparse == p->result)
    return rt_cuda_status(rt_cuda_set_apart(stream, &p->lattice, call->workspace, p->result->data), "lattice");
  return plan->bias ? run_bias(plan, call, stream) : NULL;
}

/* Where an operand's data is when it is multiplied. */
static char *data_of(const rt_product *p, const rt_operand *operand, const rt_call *call) {
  return operand == p->sparse ? call->workspace : operand->data;
}

static planc_status multiply(const rt_cublas *cublas, const rt_cublas_plan *plan, const multiplication *of, int64_t lot,
                             bool adds, const rt_call *call, cudaStream_t stream) {
  const rt_product *p = &plan->of;
  const char *left = data_of(p, p->second, call) + lot * plan->sums.left_step;
  const char *right = data_of(p, p->first, call) + lot * plan->sums.right_step;
  char *room = (char *)call->workspace + lattice_bytes(p), *to = p->summed ? room : data_of(p, p->result, call);
  const float beta = adds ? 1.0F : 0.0F;
  return rt_cublas_status(cublasLtMatmul(cublas->handle, of->product, &plan->alpha, left, of->left, right, of->right,
                                         &beta, to, of->result, to, of->result, &of->algorithm,
                                         of->workspace_bytes > 0 ? room : NULL, (size_t)of->workspace_bytes, stream),
                          "product");
}

static planc_status run_sums(const rt_cublas *cublas, const rt_cublas_plan *plan, const rt_call *call,
                             cudaStream_t stream) {
  const partial_sums *sums = &plan->sums;
  for (int64_t lot = 0; lot < sums->lots; lot++)
    PLANC_TRY(multiply(cublas, plan, &plan->all, lot, lot > 0, call, stream));
  if (plan->has_rest) PLANC_TRY(multiply(cublas, plan, &plan->rest, sums->lots, true, call, stream));
  return add_up(&plan->of, plan->sums.parts, (char *)call->workspace + lattice_bytes(&plan->of), stream);
}

static planc_status add_up(const rt_product *p, int64_t parts, char *workspace, cudaStream_t stream) {
  const rt_operand *result = p->result;
  rt_cuda_channels shape = parts_shape(p, parts);
  bool exact = result->dtype == PLANC_DTYPE_f32;
  char *sum = workspace + parts_bytes(p, parts), *room = sum + sum_bytes(p);
  PLANC_TRY(rt_cuda_status(rt_cuda_channel_sums(stream, RT_CUDA_F32, RT_CUDA_F32, shape, workspace,
                                                exact ? result->data : sum, exact && result->accumulate, room),
                           "sum of products"));
  if (exact) return NULL;
  return rt_cuda_status(rt_cuda_convert(stream, RT_CUDA_F32, rt_cuda_dtype_of(result->dtype), shape.channels, sum,
                                        result->data, result->accumulate),
                        "sum of products");
}

static planc_status run_bias(const rt_cublas_plan *plan, const rt_call *call, cudaStream_t stream) {
  const rt_operand *to = plan->of.result;
  rt_channels shape = {.channels = plan->of.columns, .inner = 1};
  if (plan->of.bias_by_row) shape = (rt_channels){.channels = plan->of.rows, .inner = plan->of.columns};
  shape.outer = to->elements / (shape.channels * shape.inner);
  return rt_cuda_status(rt_cuda_add_bias(stream, to->dtype, call->out[0].data, plan->bias->data, plan->bias->dtype,
                                         shape.outer, shape.channels, shape.inner),
                        "bias");
}

void rt_cublas_plan_free(rt_cublas_plan *plan) {
  if (!plan) return;
  free_multiplication(&plan->all);
  free_multiplication(&plan->rest);
  free(plan);
}

static void free_multiplication(multiplication *of) {
  if (of->left) cublasLtMatrixLayoutDestroy(of->left);
  if (of->right) cublasLtMatrixLayoutDestroy(of->right);
  if (of->result) cublasLtMatrixLayoutDestroy(of->result);
  if (of->product) cublasLtMatmulDescDestroy(of->product);
}

/* --- Descriptors -------------------------------------------------------------------------------------------------- */

static cudaDataType_t data_type_of(planc_dtype dtype) {
  return dtype == PLANC_DTYPE_bf16 ? CUDA_R_16BF : dtype == PLANC_DTYPE_f16 ? CUDA_R_16F : CUDA_R_32F;
}

/* One of our matrices of rows x columns as it is stored: to cuBLASLt it has `columns` rows. */
static planc_status make_layout(planc_dtype dtype, int64_t rows, int64_t columns, int64_t count, bool shared,
                                cublasLtMatrixLayout_t *out) {
  CUBLAS_TRY(cublasLtMatrixLayoutCreate(out, data_type_of(dtype), (uint64_t)columns, (uint64_t)rows, columns));
  if (count == 1) return NULL;
  int32_t n = (int32_t)count;
  int64_t stride = shared ? 0 : rows * columns;
  CUBLAS_TRY(cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &n, sizeof n));
  CUBLAS_TRY(
      cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
  return NULL;
}

static planc_status make_product(const rt_call *call, const rt_product *p, cublasLtMatmulDesc_t *out) {
  bool tf32 = planc_op_int(call->op, "tf32", 0, 0) != 0;
  cublasComputeType_t compute = tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  cublasOperation_t left = p->second_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  cublasOperation_t right = p->first_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  CUBLAS_TRY(cublasLtMatmulDescCreate(out, compute, CUDA_R_32F));
  CUBLAS_TRY(cublasLtMatmulDescSetAttribute(*out, CUBLASLT_MATMUL_DESC_TRANSA, &left, sizeof left));
  CUBLAS_TRY(cublasLtMatmulDescSetAttribute(*out, CUBLASLT_MATMUL_DESC_TRANSB, &right, sizeof right));
  if (!adds_bias(p)) return NULL;
  const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
  CUBLAS_TRY(cublasLtMatmulDescSetAttribute(*out, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
  CUBLAS_TRY(
      cublasLtMatmulDescSetAttribute(*out, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p->bias->data, sizeof p->bias->data));
  return NULL;
}

/* Whether cuBLASLt adds the bias: to what is a row of its result, and a column of ours. */
static bool adds_bias(const rt_product *p) {
  return p->bias && !p->bias_by_row && p->bias->dtype == p->result->dtype;
}

static planc_status set_preference(cublasLtMatmulPreference_t preference, const rt_product *p, int64_t limit);
static uint32_t reductions_of(const rt_product *p);
static uint32_t alignment_of(const rt_operand *operand, int64_t step);

static planc_status choose(const rt_cublas *cublas, const rt_product *p, int64_t limit, multiplication *of) {
  cublasLtMatmulPreference_t preference;
  cublasLtMatmulHeuristicResult_t found = {0};
  int count = 0;
  CUBLAS_TRY(cublasLtMatmulPreferenceCreate(&preference));
  planc_status status = set_preference(preference, p, limit);
  if (!status)
    status = rt_cublas_status(cublasLtMatmulAlgoGetHeuristic(cublas->handle, of->product, of->left, of->right,
                                                             of->result, of->result, preference, 1, &found, &count),
                              "heuristics");
  cublasLtMatmulPreferenceDestroy(preference);
  PLANC_TRY(status);
  if (count == 0 || found.state != CUBLAS_STATUS_SUCCESS)
    return planc_error(PLANC_DEVICE, "cuBLASLt has no kernel for this product");
  of->algorithm = found.algo;
  of->workspace_bytes = (int64_t)found.workspaceSize;
  return NULL;
}

static planc_status set_preference(cublasLtMatmulPreference_t preference, const rt_product *p, int64_t limit) {
  uint64_t most = (uint64_t)limit;
  const uint32_t reductions = reductions_of(p);
  const uint32_t left = alignment_of(p->second, step_of(p, p->second, p->columns));
  const uint32_t right = alignment_of(p->first, step_of(p, p->first, p->rows));
  const uint32_t result = p->summed ? RT_ALIGNMENT : alignment_of(p->result, 0);
  CUBLAS_TRY(
      cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most));
  CUBLAS_TRY(
      cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &left, sizeof left));
  CUBLAS_TRY(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions,
                                                  sizeof reductions));
  CUBLAS_TRY(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &right,
                                                  sizeof right));
  CUBLAS_TRY(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &result,
                                                  sizeof result));
  CUBLAS_TRY(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &result,
                                                  sizeof result));
  return NULL;
}

/* Sums that are put together from parts stay f32 until they are whole. */
static uint32_t reductions_of(const rt_product *p) {
  return p->summed || p->result->dtype == PLANC_DTYPE_f32 ? CUBLASLT_REDUCTION_SCHEME_MASK
                                                          : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
}

/* Operands begin at multiples of RT_ALIGNMENT, views where their storage has them; a sum's later lots at a multiple of
 * one matrix. */
static uint32_t alignment_of(const rt_operand *operand, int64_t step) {
  uint32_t bytes = RT_ALIGNMENT;
  while (operand->offset % bytes || step % bytes) bytes /= 2;
  return bytes;
}
