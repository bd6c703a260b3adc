/* cuBLASLt's matrix products: D = epilogue(alpha op(A) op(B) + beta C), batched, in row or column order. */
#include <cublasLt.h>

#include <algorithm>
#include <cstring>

#include "internal.h"
#include "numbers.h"

namespace emulator {

namespace {

constexpr int64_t handle_bytes = int64_t{8} << 20, product_code_bytes = int64_t{3} << 20;

struct Handle {
  static constexpr const char *kind = "cuBLASLt handle";
};

struct Matrix {
  static constexpr const char *kind = "matrix layout";
  cudaDataType type;
  uint64_t rows, cols;
  int64_t ld;
  int32_t order = CUBLASLT_ORDER_COL, batch = 1;
  int64_t batch_stride = 0;
};

struct Product {
  static constexpr const char *kind = "matrix product descriptor";
  int32_t compute, scale_type;
  int32_t pointer_mode = CUBLASLT_POINTER_MODE_HOST, transposed_a = CUBLAS_OP_N, transposed_b = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const char *bias = nullptr;
  int32_t bias_type = -1;  // as D
};

struct Preference {
  static constexpr const char *kind = "preference";
  uint64_t workspace = 0;
  uint32_t alignment = 256, reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
};

/* Algorithm 0 sums in order and needs no workspace. Algorithm 1 splits the sum and has one partial result each half. */
struct Algorithm {
  uint64_t id, workspace;
};

Algorithm unpack(const cublasLtMatmulAlgo_t &algo) {
  return {algo.data[0], algo.data[1]};
}

bool type_of(int type, Number *out) {
  *out = type == CUDA_R_16BF ? Number::bf16 : Number::f32;
  return type == CUDA_R_32F || type == CUDA_R_16BF;
}

struct Operand {
  Number type;
  int64_t rows, cols, row_stride, col_stride, batch_stride;
  char *at;

  int64_t index(int64_t batch, int64_t row, int64_t col) const {
    return batch * batch_stride + row * row_stride + col * col_stride;
  }
};

/* NULL handles and shapes that are none give false. */
bool operand_of(const std::shared_ptr<Matrix> &m, Operand *out) {
  if (m == nullptr || m->rows == 0 || m->cols == 0 || !type_of(m->type, &out->type)) return false;
  auto rows = static_cast<int64_t>(m->rows), cols = static_cast<int64_t>(m->cols);
  bool by_row = m->order == CUBLASLT_ORDER_ROW;
  if (m->ld < (by_row ? cols : rows)) return false;
  *out = {out->type, rows, cols, by_row ? m->ld : 1, by_row ? 1 : m->ld, m->batch_stride, nullptr};
  return true;
}

void transpose(Operand *operand) {
  std::swap(operand->rows, operand->cols);
  std::swap(operand->row_stride, operand->col_stride);
}

struct Job {
  Operand a, b, c, d;  // a and b as they are multiplied
  int64_t batch;
  bool tf32, relu;
  const char *bias;  // one number for each row; NULL: none
  Number bias_type;
  float alpha, beta;
};

cublasStatus_t job_of(const std::shared_ptr<Product> &p, const std::shared_ptr<Matrix> &a,
                      const std::shared_ptr<Matrix> &b, const std::shared_ptr<Matrix> &c,
                      const std::shared_ptr<Matrix> &d, Job *out) {
  if (p == nullptr || !operand_of(a, &out->a) || !operand_of(b, &out->b) || !operand_of(c, &out->c) ||
      !operand_of(d, &out->d))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (p->transposed_a != CUBLAS_OP_N) transpose(&out->a);
  if (p->transposed_b != CUBLAS_OP_N) transpose(&out->b);
  const Operand &to = out->d;
  if (out->a.rows != to.rows || out->b.cols != to.cols || out->a.cols != out->b.rows || out->c.rows != to.rows ||
      out->c.cols != to.cols || a->batch != d->batch || b->batch != d->batch || c->batch != d->batch || d->batch < 1)
    return CUBLAS_STATUS_INVALID_VALUE;
  bool compute = p->compute == CUBLAS_COMPUTE_32F || p->compute == CUBLAS_COMPUTE_32F_PEDANTIC ||
                 p->compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  bool epilogue = p->epilogue == CUBLASLT_EPILOGUE_DEFAULT || p->epilogue == CUBLASLT_EPILOGUE_RELU ||
                  p->epilogue == CUBLASLT_EPILOGUE_BIAS || p->epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
  if (!compute || !epilogue || p->scale_type != CUDA_R_32F || p->pointer_mode != CUBLASLT_POINTER_MODE_HOST ||
      out->a.type != out->b.type || out->c.type != out->d.type ||
      (out->a.type == Number::f32 && to.type != Number::f32))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  out->batch = d->batch;
  out->tf32 = p->compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  out->relu = (p->epilogue & CUBLASLT_EPILOGUE_RELU) != 0;
  out->bias = (p->epilogue & CUBLASLT_EPILOGUE_BIAS) != 0 ? p->bias : nullptr;
  if (!type_of(p->bias_type < 0 ? d->type : p->bias_type, &out->bias_type)) return CUBLAS_STATUS_NOT_SUPPORTED;
  return CUBLAS_STATUS_SUCCESS;
}

uint64_t split_workspace(const Job &job) {
  return static_cast<uint64_t>(job.batch * job.d.rows * job.d.cols) * 4;
}

float partial_sum(const Job &job, int64_t batch, int64_t row, int64_t col, int64_t from, int64_t to) {
  float sum = 0;
  for (int64_t k = from; k < to; k++) {
    float a = load(job.a.type, job.a.at, job.a.index(batch, row, k));
    float b = load(job.b.type, job.b.at, job.b.index(batch, k, col));
    if (job.tf32 && job.a.type == Number::f32) {
      a = to_tf32(a);
      b = to_tf32(b);
    }
    sum += a * b;
  }
  return sum;
}

void multiply(const Job &job, bool split, char *workspace, size_t workspace_bytes) {
  if (workspace_bytes > 0) fill_ends(workspace, 0xff, workspace_bytes);
  int64_t half = split ? job.a.cols / 2 : 0, n = 0;
  if (split)
    for (int64_t i = 0; i < job.batch; i++)
      for (int64_t row = 0; row < job.d.rows; row++)
        for (int64_t col = 0; col < job.d.cols; col++)
          store(Number::f32, workspace, n++, partial_sum(job, i, row, col, 0, half));
  n = 0;
  for (int64_t i = 0; i < job.batch; i++)
    for (int64_t row = 0; row < job.d.rows; row++)
      for (int64_t col = 0; col < job.d.cols; col++) {
        float value = partial_sum(job, i, row, col, half, job.a.cols);
        if (split) value += load(Number::f32, workspace, n++);
        value *= job.alpha;
        if (job.beta != 0) value += job.beta * load(job.c.type, job.c.at, job.c.index(i, row, col));
        if (job.bias != nullptr) value += load(job.bias_type, job.bias, row);
        if (job.relu && value < 0) value = 0;
        store(job.d.type, job.d.at, job.d.index(i, row, col), value);
      }
  if (workspace_bytes > 0) fill_ends(workspace, 0x7f, workspace_bytes);
}

int64_t bytes_of(const Job &job, const Operand &operand) {
  return (operand.index(job.batch - 1, operand.rows - 1, operand.cols - 1) + 1) * size_of(operand.type);
}

bool overlap(const char *a, int64_t a_bytes, const char *b, int64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

/* Memory that a product reads. */
struct Source {
  const char *at;
  int64_t bytes;
  bool may_be_output;
};

/* Whether all memory is the device's and nothing that is written is read elsewhere; C may be D. */
bool memory_is_right(const Job &job, const char *workspace, size_t workspace_bytes) {
  bool in_place = job.c.at == job.d.at && job.c.row_stride == job.d.row_stride &&
                  job.c.col_stride == job.d.col_stride && job.c.batch_stride == job.d.batch_stride;
  std::vector<Source> sources = {{job.a.at, bytes_of(job, job.a), false}, {job.b.at, bytes_of(job, job.b), false}};
  if (job.beta != 0) sources.push_back({job.c.at, bytes_of(job, job.c), in_place});
  if (job.bias != nullptr) sources.push_back({job.bias, job.d.rows * size_of(job.bias_type), false});
  const int64_t out = bytes_of(job, job.d), space = static_cast<int64_t>(workspace_bytes);
  bool right = on_device(job.d.at, static_cast<size_t>(out)) &&
               (space == 0 || (on_device(workspace, workspace_bytes) && !overlap(workspace, space, job.d.at, out)));
  for (const Source &source : sources)
    right = right && on_device(source.at, static_cast<size_t>(source.bytes)) &&
            !overlap(source.at, source.bytes, workspace, space) &&
            (source.may_be_output || !overlap(source.at, source.bytes, job.d.at, out));
  if (!right) misuse("an operand or the workspace is not device memory, or overlaps the output or the workspace");
  return right;
}

/* An attribute as an integer or pointer of its own size. */
template <class T>
cublasStatus_t assign(T *to, const void *from, size_t bytes) {
  if (from == nullptr || bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  memcpy(to, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

}  // namespace emulator

using namespace emulator;

#define CUBLAS_CALL(...)                      \
  Call call(__func__, unsigned{__VA_ARGS__}); \
  if (call.error() != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED

const char *cublasLtGetStatusName(cublasStatus_t status) {
  switch (static_cast<int>(status)) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
  }
}

const char *cublasLtGetStatusString(cublasStatus_t status) {
  return cublasLtGetStatusName(status);
}

size_t cublasLtGetVersion(void) {
  return CUBLAS_VERSION;
}

size_t cublasLtGetCudartVersion(void) {
  return CUDART_VERSION;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *out) {
  CUBLAS_CALL(allocates);
  take_device_bytes(handle_bytes);
  *out = static_cast<cublasLtHandle_t>(hold(std::make_shared<Handle>()));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  CUBLAS_CALL(allocates);
  if (held<Handle>(handle) == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  take_device_bytes(-handle_bytes);
  drop_label(handle);
  return CUBLAS_STATUS_SUCCESS;
}

/* --- Descriptors -------------------------------------------------------------------------------------------------- */

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute, cudaDataType_t scale) {
  CUBLAS_CALL(anywhere);
  auto product = std::make_shared<Product>();
  product->compute = compute;
  product->scale_type = scale;
  *out = static_cast<cublasLtMatmulDesc_t>(hold(product));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t handle) {
  CUBLAS_CALL(anywhere);
  if (held<Product>(handle) == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  drop_label(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t attribute,
                                              const void *from, size_t bytes) {
  CUBLAS_CALL(anywhere);
  auto p = held<Product>(handle);
  if (p == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  switch (static_cast<int>(attribute)) {
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE:
      return assign(&p->compute, from, bytes);
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE:
      return assign(&p->scale_type, from, bytes);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE:
      return assign(&p->pointer_mode, from, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return assign(&p->transposed_a, from, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return assign(&p->transposed_b, from, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return assign(&p->epilogue, from, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return assign(&p->bias, from, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return assign(&p->bias_type, from, bytes);
    default:
      misuse("attribute %d is not emulated", attribute);
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type, uint64_t rows, uint64_t cols,
                                          int64_t ld) {
  CUBLAS_CALL(anywhere);
  auto matrix = std::make_shared<Matrix>();
  matrix->type = type;
  matrix->rows = rows;
  matrix->cols = cols;
  matrix->ld = ld;
  *out = static_cast<cublasLtMatrixLayout_t>(hold(matrix));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t handle) {
  CUBLAS_CALL(anywhere);
  if (held<Matrix>(handle) == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  drop_label(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t handle,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void *from,
                                                size_t bytes) {
  CUBLAS_CALL(anywhere);
  auto m = held<Matrix>(handle);
  if (m == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  switch (static_cast<int>(attribute)) {
    case CUBLASLT_MATRIX_LAYOUT_ORDER:
      return assign(&m->order, from, bytes);
    case CUBLASLT_MATRIX_LAYOUT_ROWS:
      return assign(&m->rows, from, bytes);
    case CUBLASLT_MATRIX_LAYOUT_COLS:
      return assign(&m->cols, from, bytes);
    case CUBLASLT_MATRIX_LAYOUT_LD:
      return assign(&m->ld, from, bytes);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      return assign(&m->batch, from, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return assign(&m->batch_stride, from, bytes);
    default:
      misuse("attribute %d is not emulated", attribute);
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out) {
  CUBLAS_CALL(anywhere);
  *out = static_cast<cublasLtMatmulPreference_t>(hold(std::make_shared<Preference>()));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t handle) {
  CUBLAS_CALL(anywhere);
  if (held<Preference>(handle) == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  drop_label(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void *from,
                                                    size_t bytes) {
  CUBLAS_CALL(anywhere);
  auto p = held<Preference>(handle);
  if (p == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  switch (static_cast<int>(attribute)) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return assign(&p->workspace, from, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return assign(&p->reductions, from, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return assign(&p->alignment, from, bytes);
    default:
      misuse("attribute %d is not emulated", attribute);
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

/* --- Products ----------------------------------------------------------------------------------------------------- */

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t *results, int *returned) {
  CUBLAS_CALL();
  *returned = 0;
  Job job;
  auto wish = held<Preference>(preference);
  if (held<Handle>(handle) == nullptr || wish == nullptr || requested < 1) return CUBLAS_STATUS_INVALID_VALUE;
  cublasStatus_t status =
      job_of(held<Product>(product), held<Matrix>(a), held<Matrix>(b), held<Matrix>(c), held<Matrix>(d), &job);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  std::vector<Algorithm> found;
  if (split_workspace(job) <= wish->workspace && wish->reductions != CUBLASLT_REDUCTION_SCHEME_NONE)
    found.push_back({1, split_workspace(job)});
  found.push_back({0, 0});
  for (const Algorithm &algorithm : found) {
    if (*returned == requested) break;
    cublasLtMatmulHeuristicResult_t *result = &results[(*returned)++];
    *result = {};
    result->algo.data[0] = algorithm.id;
    result->algo.data[1] = algorithm.workspace;
    result->workspaceSize = algorithm.workspace;
    result->state = CUBLAS_STATUS_SUCCESS;
    result->wavesCount = 1;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute, void *to,
                                                    size_t bytes, size_t *written) {
  CUBLAS_CALL(anywhere);
  auto split = static_cast<int32_t>(unpack(*algo).id);
  int32_t value = 0;
  switch (static_cast<int>(attribute)) {
    case CUBLASLT_ALGO_CONFIG_ID:
      value = split;
      break;
    case CUBLASLT_ALGO_CONFIG_SPLITK_NUM:
      value = split == 1 ? 2 : 1;
      break;
    case CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME:
      value = split == 1 ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE : CUBLASLT_REDUCTION_SCHEME_NONE;
      break;
    default:
      break;
  }
  if (written != nullptr) *written = sizeof value;
  if (to == nullptr) return CUBLAS_STATUS_SUCCESS;
  if (bytes != sizeof value) return CUBLAS_STATUS_INVALID_VALUE;
  memcpy(to, &value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

/* Without an algorithm, the split one where the workspace is enough. */
cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout,
                              const void *beta, const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t workspace_bytes, cudaStream_t to) {
  CUBLAS_CALL();
  Job job;
  if (held<Handle>(handle) == nullptr || alpha == nullptr || beta == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  cublasStatus_t status = job_of(held<Product>(product), held<Matrix>(a_layout), held<Matrix>(b_layout),
                                 held<Matrix>(c_layout), held<Matrix>(d_layout), &job);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  memcpy(&job.alpha, alpha, sizeof job.alpha);
  memcpy(&job.beta, beta, sizeof job.beta);
  job.a.at = static_cast<char *>(const_cast<void *>(a));
  job.b.at = static_cast<char *>(const_cast<void *>(b));
  job.c.at = static_cast<char *>(const_cast<void *>(c));
  job.d.at = static_cast<char *>(d);
  uint64_t needed = split_workspace(job);
  Algorithm chosen = algo != nullptr ? unpack(*algo) : Algorithm{needed <= workspace_bytes ? 1u : 0u, 0};
  bool split = chosen.id == 1;
  if (chosen.id > 1 || (split && needed > workspace_bytes)) return CUBLAS_STATUS_INVALID_VALUE;
  size_t used = split ? needed : 0;
  if (!memory_is_right(job, static_cast<char *>(workspace), used)) return CUBLAS_STATUS_INVALID_VALUE;
  auto stream = stream_of(to);
  if (stream == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (!load_code(split ? "matrix product, split" : "matrix product", product_code_bytes))
    return CUBLAS_STATUS_ALLOC_FAILED;
  auto work = [=] { multiply(job, split, static_cast<char *>(workspace), used); };
  return submit(call, *stream, Work{"matrix product", {work}, Kind::kernel}) == cudaSuccess
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_EXECUTION_FAILED;
}
