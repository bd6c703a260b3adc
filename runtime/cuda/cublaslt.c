/* Matrix products by cuBLASLt: linear ops, batched products, their gradients.
 *
 * Its heuristics choose a kernel for a limit on the workspace, and an algorithm's name states the limit:
 * "cublaslt-4194304". cuBLASLt's matrices are stored by columns and ours by rows, so that each of ours is the transpose
 * of its own; the product is computed transposed, its factors exchanged. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda/cuda.h"
#include "runtime/shape.h"

struct rt_cublas {
  cublasLtHandle_t handle;
};

struct rt_cublas_plan {
  cublasLtMatmulDesc_t product;
  cublasLtMatrixLayout_t left, right, result; /* as cuBLASLt has them */
  cublasLtMatmulAlgo_t algorithm;
  const void *left_data, *right_data;
  void *result_data;
  float alpha, beta;
  int64_t workspace_bytes;
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

/* result[rows, columns] = first[rows, depth] second[depth, columns], `count` times; transposed: stored the other way
 * round. */
typedef struct product {
  const rt_operand *first, *second, *result, *bias;
  bool first_transposed, second_transposed;
  int64_t rows, columns, depth, count;
} product;

static bool product_of(const rt_call *call, product *out);
static bool data_type_of(planc_dtype dtype, cudaDataType_t *out);

bool rt_cublas_takes(const rt_call *call) {
  product p;
  cudaDataType_t unused;
  if (!product_of(call, &p) || p.rows <= 0 || p.columns <= 0 || p.depth <= 0 || p.count <= 0) return false;
  return data_type_of(p.first->dtype, &unused) && data_type_of(p.second->dtype, &unused) &&
         data_type_of(p.result->dtype, &unused);
}

/* --- The product of a call ---------------------------------------------------------------------------------------- */

/* Everything before the last two dimensions. */
static int64_t matrices_of(const rt_operand *operand) {
  int64_t count = 1;
  for (int32_t d = 0; d + 2 < operand->rank; d++) count *= operand->dims[d];
  return count;
}

/* The last dimension but `back`. */
static int64_t edge(const rt_operand *operand, int32_t back) {
  return operand->dims[operand->rank - 1 - back];
}

static bool batched(const rt_call *call, bool first_transposed, bool second_transposed, product *out) {
  const rt_operand *a = &call->in[0], *b = &call->in[1];
  *out = (product){.first = a,
                   .second = b,
                   .result = &call->out[0],
                   .first_transposed = first_transposed,
                   .second_transposed = second_transposed,
                   .rows = edge(a, first_transposed ? 0 : 1),
                   .depth = edge(a, first_transposed ? 1 : 0),
                   .columns = edge(b, second_transposed ? 1 : 0),
                   .count = matrices_of(a)};
  return true;
}

static bool product_of(const rt_call *call, product *out) {
  pl_optype_id type = pl_optype_of(call->op);
  if (call->role != PLANC_ROLE_OP || call->n_in < 2 || call->n_out < 1) return false;
  if (type == PL_OPTYPE_matmul) return batched(call, false, false, out);
  if (type == PL_OPTYPE_matmul_nt) return batched(call, false, true, out);
  if (type == PL_OPTYPE_matmul_tn) return batched(call, true, false, out);
  const rt_operand *first = &call->in[0], *second = &call->in[1], *result = &call->out[0];
  if (type == PL_OPTYPE_linear) {
    *out = (product){.first = first, .second = second, .second_transposed = true, .columns = second->dims[0]};
    out->bias = call->n_in > 2 ? &call->in[2] : NULL;
    out->depth = second->dims[1];
    out->rows = out->depth > 0 ? first->elements / out->depth : 0;
  } else if (type == PL_OPTYPE_linear_dgrad) {
    *out = (product){.first = second, .second = first, .columns = first->dims[1], .depth = first->dims[0]};
    out->rows = out->depth > 0 ? second->elements / out->depth : 0;
  } else if (type == PL_OPTYPE_linear_wgrad) {
    *out = (product){.first = second, .second = first, .first_transposed = true};
    out->rows = result->dims[0], out->columns = result->dims[1];
    out->depth = out->rows > 0 ? second->elements / out->rows : 0;
  } else {
    return false;
  }
  out->result = result;
  out->count = 1;
  return true;
}

static bool data_type_of(planc_dtype dtype, cudaDataType_t *out) {
  *out = dtype == PLANC_DTYPE_bf16 ? CUDA_R_16BF : dtype == PLANC_DTYPE_f16 ? CUDA_R_16F : CUDA_R_32F;
  return dtype == PLANC_DTYPE_bf16 || dtype == PLANC_DTYPE_f16 || dtype == PLANC_DTYPE_f32;
}

/* --- Algorithms --------------------------------------------------------------------------------------------------- */

static const char prefix[] = "cublaslt-";

void rt_cublas_variants(const rt_call *call, rt_variant *out, int32_t *out_count) {
  static const int64_t limits[] = {0, 4 << 20, 32 << 20};
  *out_count = rt_cublas_takes(call) ? (int32_t)(sizeof limits / sizeof *limits) : 0;
  for (int32_t i = 0; i < *out_count; i++) {
    out[i] = (rt_variant){.workspace_bytes = limits[i], .deterministic = true, .rank = *out_count - 1 - i};
    snprintf(out[i].algorithm, sizeof out[i].algorithm, "%s%lld", prefix, (long long)limits[i]);
  }
}

/* --- Plans -------------------------------------------------------------------------------------------------------- */

static int64_t limit_of(const char *algorithm);
static planc_status make_plan(const rt_cublas *cublas, const rt_call *call, const product *p, rt_cublas_plan *plan);
static planc_status make_product(const rt_call *call, const product *p, rt_cublas_plan *plan);
static planc_status make_layout(const rt_operand *operand, int64_t rows, int64_t columns, int64_t count,
                                cublasLtMatrixLayout_t *out);
static planc_status choose(const rt_cublas *cublas, const product *p, int64_t limit, rt_cublas_plan *plan);

planc_status rt_cublas_prepare(rt_cublas *cublas, const rt_call *call, rt_cublas_plan **out) {
  product p;
  *out = NULL;
  if (!product_of(call, &p)) return planc_error(PLANC_INTERNAL, "not a product");
  int64_t limit = limit_of(call->algorithm);
  if (call->workspace_bytes < limit)
    return planc_error(PLANC_DEVICE, "needs a workspace of %lld bytes, has %lld", (long long)limit,
                       (long long)call->workspace_bytes);
  rt_cublas_plan *plan = calloc(1, sizeof *plan);
  if (!plan) return planc_error(PLANC_OUT_OF_MEMORY, "cuBLASLt plan");
  planc_status status = make_plan(cublas, call, &p, plan);
  if (status)
    rt_cublas_plan_free(plan);
  else
    *out = plan;
  return status;
}

static planc_status make_plan(const rt_cublas *cublas, const rt_call *call, const product *p, rt_cublas_plan *plan) {
  int64_t rows = p->rows, columns = p->columns, depth = p->depth;
  PLANC_TRY(make_product(call, p, plan));
  PLANC_TRY(make_layout(p->second, p->second_transposed ? columns : depth, p->second_transposed ? depth : columns,
                        p->count, &plan->left));
  PLANC_TRY(make_layout(p->first, p->first_transposed ? depth : rows, p->first_transposed ? rows : depth, p->count,
                        &plan->right));
  PLANC_TRY(make_layout(p->result, rows, columns, p->count, &plan->result));
  plan->left_data = p->second->data;
  plan->right_data = p->first->data;
  plan->result_data = p->result->data;
  plan->alpha = (float)planc_op_real(call->op, "scale", 1.0);
  plan->beta = p->result->accumulate ? 1.0F : 0.0F;
  return choose(cublas, p, limit_of(call->algorithm), plan);
}

planc_status rt_cublas_run(const rt_cublas *cublas, const rt_cublas_plan *plan, const rt_call *call,
                           cudaStream_t stream) {
  PLANC_TRY(rt_cublas_status(
      cublasLtMatmul(cublas->handle, plan->product, &plan->alpha, plan->left_data, plan->left, plan->right_data,
                     plan->right, &plan->beta, plan->result_data, plan->result, plan->result_data, plan->result,
                     &plan->algorithm, call->workspace, (size_t)plan->workspace_bytes, stream),
      "product"));
  if (!plan->bias) return NULL;
  rt_channels shape = {.channels = edge(&call->out[0], 0), .inner = 1};
  shape.outer = call->out[0].elements / shape.channels;
  return rt_cuda_status(rt_cuda_add_bias(stream, call->out[0].dtype, call->out[0].data, plan->bias->data,
                                         plan->bias->dtype, shape.outer, shape.channels, shape.inner),
                        "bias");
}

void rt_cublas_plan_free(rt_cublas_plan *plan) {
  if (!plan) return;
  if (plan->left) cublasLtMatrixLayoutDestroy(plan->left);
  if (plan->right) cublasLtMatrixLayoutDestroy(plan->right);
  if (plan->result) cublasLtMatrixLayoutDestroy(plan->result);
  if (plan->product) cublasLtMatmulDescDestroy(plan->product);
  free(plan);
}

/* The limit that an algorithm's name states; 0 for one that is not ours. */
static int64_t limit_of(const char *algorithm) {
  if (strncmp(algorithm, prefix, sizeof prefix - 1) != 0) return 0;
  long long limit = strtoll(algorithm + sizeof prefix - 1, NULL, 10);
  return limit > 0 ? limit : 0;
}

/* One of our matrices of rows x columns as it is stored: to cuBLASLt it has `columns` rows. */
static planc_status make_layout(const rt_operand *operand, int64_t rows, int64_t columns, int64_t count,
                                cublasLtMatrixLayout_t *out) {
  cudaDataType_t type;
  data_type_of(operand->dtype, &type);
  CUBLAS_TRY(cublasLtMatrixLayoutCreate(out, type, (uint64_t)columns, (uint64_t)rows, columns));
  if (count == 1) return NULL;
  int32_t n = (int32_t)count;
  int64_t stride = rows * columns;
  CUBLAS_TRY(cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &n, sizeof n));
  CUBLAS_TRY(
      cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
  return NULL;
}

static planc_status make_product(const rt_call *call, const product *p, rt_cublas_plan *plan) {
  bool tf32 = planc_op_int(call->op, "tf32", 0, 0) != 0;
  cublasComputeType_t compute = tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  cublasOperation_t left = p->second_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  cublasOperation_t right = p->first_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  CUBLAS_TRY(cublasLtMatmulDescCreate(&plan->product, compute, CUDA_R_32F));
  CUBLAS_TRY(cublasLtMatmulDescSetAttribute(plan->product, CUBLASLT_MATMUL_DESC_TRANSA, &left, sizeof left));
  CUBLAS_TRY(cublasLtMatmulDescSetAttribute(plan->product, CUBLASLT_MATMUL_DESC_TRANSB, &right, sizeof right));
  plan->bias = p->bias;
  if (!p->bias || p->bias->dtype != p->result->dtype) return NULL;
  const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
  CUBLAS_TRY(cublasLtMatmulDescSetAttribute(plan->product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
  CUBLAS_TRY(cublasLtMatmulDescSetAttribute(plan->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p->bias->data,
                                            sizeof p->bias->data));
  plan->bias = NULL;
  return NULL;
}

static planc_status set_preference(cublasLtMatmulPreference_t preference, const product *p, int64_t limit);
static uint32_t reductions_of(const rt_operand *result);
static uint32_t alignment_of(const rt_operand *operand);

static planc_status choose(const rt_cublas *cublas, const product *p, int64_t limit, rt_cublas_plan *plan) {
  cublasLtMatmulPreference_t preference;
  cublasLtMatmulHeuristicResult_t found = {0};
  int count = 0;
  CUBLAS_TRY(cublasLtMatmulPreferenceCreate(&preference));
  planc_status status = set_preference(preference, p, limit);
  if (!status)
    status = rt_cublas_status(cublasLtMatmulAlgoGetHeuristic(cublas->handle, plan->product, plan->left, plan->right,
                                                             plan->result, plan->result, preference, 1, &found, &count),
                              "heuristics");
  cublasLtMatmulPreferenceDestroy(preference);
  PLANC_TRY(status);
  if (count == 0 || found.state != CUBLAS_STATUS_SUCCESS)
    return planc_error(PLANC_DEVICE, "cuBLASLt has no kernel for this product");
  plan->algorithm = found.algo;
  plan->workspace_bytes = (int64_t)found.workspaceSize;
  return NULL;
}

static planc_status set_preference(cublasLtMatmulPreference_t preference, const product *p, int64_t limit) {
  uint64_t most = (uint64_t)limit;
  const uint32_t reductions = reductions_of(p->result);
  const uint32_t left = alignment_of(p->second), right = alignment_of(p->first), result = alignment_of(p->result);
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
static uint32_t reductions_of(const rt_operand *result) {
  return result->dtype == PLANC_DTYPE_f32 ? CUBLASLT_REDUCTION_SCHEME_MASK : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
}

/* Operands begin at multiples of RT_ALIGNMENT, views where their storage has them. */
static uint32_t alignment_of(const rt_operand *operand) {
  uint32_t bytes = RT_ALIGNMENT;
  while (operand->offset % bytes) bytes /= 2;
  return bytes;
}
