/* The emulated cuBLASLt: products against sums in double, with every order, transposition, batch and algorithm. */
#include <cublasLt.h>
#include <math.h>
#include <stdbool.h>

#include "tests/cuda/emulated.h"

static void blas_ok(cublasStatus_t status) {
  ck_assert_int_eq(status, CUBLAS_STATUS_SUCCESS);
}

enum { PART = 1 << 14, MAX_ALGOS = 4 };

/* One operand as it lies in memory. */
typedef struct matrix {
  int64_t rows, cols, ld, batch_stride;
  bool by_row;
  cublasLtMatrixLayout_t layout;
  char *device;
  double values[PART];
} matrix;

static uint64_t random_state;
static int64_t below(int64_t n) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (int64_t)((random_state >> 33) % (uint64_t)n);
}

static int64_t at(const matrix *m, int64_t batch, int64_t row, int64_t col) {
  return batch * m->batch_stride + (m->by_row ? row * m->ld + col : col * m->ld + row);
}

/* With gaps between rows and between matrices, and numbers that fit bf16. */
static void make(matrix *m, int64_t rows, int64_t cols, int32_t batch, cudaDataType type, int part, char *memory) {
  m->rows = rows;
  m->cols = cols;
  m->by_row = below(2) == 1;
  m->ld = (m->by_row ? cols : rows) + below(3);
  m->batch_stride = m->ld * (m->by_row ? rows : cols) + below(3);
  m->device = memory + part * 4 * PART;
  blas_ok(cublasLtMatrixLayoutCreate(&m->layout, type, (uint64_t)rows, (uint64_t)cols, m->ld));
  int32_t order = m->by_row ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL;
  blas_ok(cublasLtMatrixLayoutSetAttribute(m->layout, CUBLASLT_MATRIX_LAYOUT_ORDER, &order, sizeof order));
  blas_ok(cublasLtMatrixLayoutSetAttribute(m->layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch));
  blas_ok(cublasLtMatrixLayoutSetAttribute(m->layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &m->batch_stride,
                                           sizeof m->batch_stride));
  ck_assert_int_le(m->batch_stride * batch, PART);
  for (int k = 0; k < PART; k++) m->values[k] = (double)(below(33) - 16) / 8;
}

static void upload(cudaStream_t stream, const matrix *m, bool f32) {
  char host[4 * PART];
  for (int k = 0; k < PART; k++) {
    float f = (float)m->values[k];
    memcpy(host + (f32 ? 4 : 2) * k, (const char *)&f + (f32 ? 0 : 2), f32 ? 4 : 2);
  }
  cuda_ok(cudaMemcpyAsync(m->device, host, sizeof host, cudaMemcpyHostToDevice, stream));
}

static void download(cudaStream_t stream, const matrix *m, bool f32, double *out) {
  char host[4 * PART];
  cuda_ok(cudaMemcpyAsync(host, m->device, sizeof host, cudaMemcpyDeviceToHost, stream));
  for (int k = 0; k < PART; k++) {
    float f = 0;
    memcpy((char *)&f + (f32 ? 0 : 2), host + (f32 ? 4 : 2) * k, f32 ? 4 : 2);
    out[k] = f;
  }
}

static double bf16(double value) {
  float f = (float)value;
  uint32_t bits;
  memcpy(&bits, &f, 4);
  bits = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000;
  memcpy(&f, &bits, 4);
  return f;
}

static matrix a, b, c;
static double expected[PART], result[PART];

typedef struct library {
  cudaStream_t stream;
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t product;
  cublasLtMatmulPreference_t preference;
  char *memory;
} library;

static library open_library(cublasComputeType_t compute) {
  library l = {.stream = new_stream(), .memory = new_memory(5 * 4 * PART)};
  blas_ok(cublasLtCreate(&l.handle));
  blas_ok(cublasLtMatmulDescCreate(&l.product, compute, CUDA_R_32F));
  blas_ok(cublasLtMatmulPreferenceCreate(&l.preference));
  return l;
}

static void close_library(library *l) {
  matrix *const all[] = {&a, &b, &c};
  for (int i = 0; i < 3; i++) blas_ok(cublasLtMatrixLayoutDestroy(all[i]->layout));
  blas_ok(cublasLtMatmulPreferenceDestroy(l->preference));
  blas_ok(cublasLtMatmulDescDestroy(l->product));
  blas_ok(cublasLtDestroy(l->handle));
  cuda_ok(cudaFree(l->memory));
  free_stream(l->stream);
}

static int algorithms(const library *l, uint64_t workspace, cublasLtMatmulHeuristicResult_t out[MAX_ALGOS]) {
  int n;
  blas_ok(cublasLtMatmulPreferenceSetAttribute(l->preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                               sizeof workspace));
  blas_ok(cublasLtMatmulAlgoGetHeuristic(l->handle, l->product, a.layout, b.layout, c.layout, c.layout, l->preference,
                                         MAX_ALGOS, out, &n));
  return n;
}

static cublasStatus_t multiply(const library *l, float alpha, float beta, const cublasLtMatmulAlgo_t *algo,
                               size_t workspace) {
  return cublasLtMatmul(l->handle, l->product, &alpha, a.device, a.layout, b.device, b.layout, &beta, c.device,
                        c.layout, c.device, c.layout, algo, l->memory + 4 * 4 * PART, workspace, l->stream);
}

START_TEST(every_algorithm_gives_the_product) {
  random_state = (uint64_t)_i;
  library l = open_library(CUBLAS_COMPUTE_32F);
  bool f32 = below(2) == 0, f32_out = f32 || below(2) == 0;
  int32_t batch = 1 + (int32_t)below(3), ops[2] = {(int32_t)below(2), (int32_t)below(2)};
  int64_t m = 1 + below(9), n = 1 + below(9), k = 1 + below(20);
  float alpha = below(2) == 0 ? 1 : 0.5F, beta = below(2) == 0 ? 0 : 2;
  cudaDataType in = f32 ? CUDA_R_32F : CUDA_R_16BF, out = f32_out ? CUDA_R_32F : CUDA_R_16BF;
  make(&a, ops[0] ? k : m, ops[0] ? m : k, batch, in, 0, l.memory);
  make(&b, ops[1] ? n : k, ops[1] ? k : n, batch, in, 1, l.memory);
  make(&c, m, n, batch, out, 2, l.memory);
  blas_ok(cublasLtMatmulDescSetAttribute(l.product, CUBLASLT_MATMUL_DESC_TRANSA, &ops[0], sizeof ops[0]));
  blas_ok(cublasLtMatmulDescSetAttribute(l.product, CUBLASLT_MATMUL_DESC_TRANSB, &ops[1], sizeof ops[1]));
  matrix bias = {.device = l.memory + 3 * 4 * PART};
  bool biased = below(2) == 0;
  for (int r = 0; r < m; r++) bias.values[r] = biased ? (double)r / 4 : 0;
  upload(l.stream, &bias, f32_out);
  if (biased) {
    uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    blas_ok(cublasLtMatmulDescSetAttribute(l.product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
    blas_ok(
        cublasLtMatmulDescSetAttribute(l.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias.device, sizeof bias.device));
  }

  memcpy(expected, c.values, sizeof expected); /* gaps stay */
  for (int32_t i = 0; i < batch; i++)
    for (int64_t row = 0; row < m; row++)
      for (int64_t col = 0; col < n; col++) {
        double sum = 0;
        for (int64_t p = 0; p < k; p++)
          sum += a.values[ops[0] ? at(&a, i, p, row) : at(&a, i, row, p)] *
                 b.values[ops[1] ? at(&b, i, col, p) : at(&b, i, p, col)];
        int64_t to = at(&c, i, row, col);
        expected[to] = alpha * sum + beta * c.values[to] + bias.values[row];
        if (!f32_out) expected[to] = bf16(expected[to]);
        if (beta == 0) c.values[to] = NAN; /* not to be read */
      }

  cublasLtMatmulHeuristicResult_t found[MAX_ALGOS];
  uint64_t split = (uint64_t)(batch * m * n) * 4;
  ck_assert_int_eq(algorithms(&l, split - 1, found), 1);
  ck_assert_uint_eq(found[0].workspaceSize, 0);
  int n_found = algorithms(&l, split, found);
  ck_assert_int_eq(n_found, 2);
  for (int i = 0; i < n_found; i++) {
    upload(l.stream, &a, f32);
    upload(l.stream, &b, f32);
    upload(l.stream, &c, f32_out);
    cuda_ok(cudaMemsetAsync(l.memory + 4 * 4 * PART, 0x11, 4 * PART, l.stream));
    size_t workspace = found[i].workspaceSize;
    if (workspace > 0)
      ck_assert_int_eq(multiply(&l, alpha, beta, &found[i].algo, workspace - 1), CUBLAS_STATUS_INVALID_VALUE);
    blas_ok(multiply(&l, alpha, beta, &found[i].algo, workspace));
    download(l.stream, &c, f32_out, result);
    for (int p = 0; p < PART; p++) ck_assert_double_eq_tol(result[p], expected[p], 1e-9); /* sums are exact */
    char tail;
    cuda_ok(cudaMemcpyAsync(&tail, l.memory + 4 * 4 * PART + workspace, 1, cudaMemcpyDeviceToHost, l.stream));
    ck_assert_int_eq(tail, 0x11);
  }
  close_library(&l);
  ck_assert_int_eq(emulator_misuses(), 0);
}
END_TEST

START_TEST(tf32_rounds_its_operands) {
  double errors[2];
  const cublasComputeType_t types[] = {CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32};
  for (int t = 0; t < 2; t++) {
    random_state = 1;
    library l = open_library(types[t]);
    make(&a, 8, 30, 1, CUDA_R_32F, 0, l.memory);
    make(&b, 30, 8, 1, CUDA_R_32F, 1, l.memory);
    make(&c, 8, 8, 1, CUDA_R_32F, 2, l.memory);
    for (int k = 0; k < PART; k++) a.values[k] = (float)(b.values[k] = (double)below(1 << 20) / (1 << 20));
    upload(l.stream, &a, true);
    upload(l.stream, &b, true);
    upload(l.stream, &c, true);
    blas_ok(multiply(&l, 1, 0, NULL, 0));
    download(l.stream, &c, true, result);
    errors[t] = 0;
    for (int64_t row = 0; row < 8; row++)
      for (int64_t col = 0; col < 8; col++) {
        double sum = 0;
        for (int64_t p = 0; p < 30; p++) sum += a.values[at(&a, 0, row, p)] * b.values[at(&b, 0, p, col)];
        errors[t] = fmax(errors[t], fabs(sum - result[at(&c, 0, row, col)]));
      }
    close_library(&l);
  }
  ck_assert_double_lt(errors[0], 1e-5);
  ck_assert(errors[1] > 1e-5 && errors[1] < 1e-1);
}
END_TEST

START_TEST(shapes_types_and_memory_are_checked) {
  library l = open_library(CUBLAS_COMPUTE_32F);
  make(&a, 4, 5, 1, CUDA_R_32F, 0, l.memory);
  make(&b, 5, 6, 1, CUDA_R_32F, 1, l.memory);
  make(&c, 4, 6, 1, CUDA_R_32F, 2, l.memory);
  blas_ok(multiply(&l, 1, 0, NULL, 0));
  uint64_t rows = 4;
  blas_ok(cublasLtMatrixLayoutSetAttribute(b.layout, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, sizeof rows));
  ck_assert_int_eq(multiply(&l, 1, 0, NULL, 0), CUBLAS_STATUS_INVALID_VALUE);
  rows = 5;
  ck_assert_int_eq(cublasLtMatrixLayoutSetAttribute(b.layout, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, 4),
                   CUBLAS_STATUS_INVALID_VALUE);
  blas_ok(cublasLtMatrixLayoutSetAttribute(b.layout, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, sizeof rows));
  ck_assert_int_eq(emulator_misuses(), 0);
  char *right = a.device;
  a.device = c.device;
  ck_assert_int_eq(multiply(&l, 1, 0, NULL, 0), CUBLAS_STATUS_INVALID_VALUE);
  a.device = l.memory + 5 * 4 * PART - 4;
  ck_assert_int_eq(multiply(&l, 1, 0, NULL, 0), CUBLAS_STATUS_INVALID_VALUE);
  a.device = right;
  ck_assert_int_eq(emulator_misuses(), 2);
  cuda_ok(cudaStreamSynchronize(l.stream));
  close_library(&l);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("emulator_cublaslt");
  TCase *products = tcase_create("products");
  tcase_add_loop_test(products, every_algorithm_gives_the_product, 0, 60);
  tcase_add_test(products, tf32_rounds_its_operands);
  tcase_add_test(products, shapes_types_and_memory_are_checked);
  suite_add_tcase(suite, products);
  return run_suite(suite);
}
