/* Matrix products: fully connected layers, whose leading dimensions are rows, and batched products of activations. */
#include "graph/optypes.h"
#include "runtime/host/host_kernels.h"

enum { TILE = 8 };

/* Element (i, j) is data[i * row + j * column]. */
typedef struct matrix {
  const float *data;
  int64_t row, column;
} matrix;

static int64_t last_dim(const rt_operand *operand);
static void multiply(const rt_operand *out, matrix a, matrix b, int64_t m, int64_t n, int64_t depth, const float *bias);
static int64_t rows_of(const rt_operand *operand);

void rt_linear(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  const rt_operand *x = &call->in[0], *w = &call->in[1], *y = &call->out[0];
  int64_t inputs = last_dim(x), outputs = last_dim(y);
  multiply(y, (matrix){x->data, inputs, 1}, (matrix){w->data, 1, inputs}, rows_of(y), outputs, inputs,
           call->n_in > 2 ? call->in[2].data : NULL);
}

void rt_linear_dgrad(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  const rt_operand *w = &call->in[0], *dy = &call->in[1], *dx = &call->out[0];
  int64_t inputs = last_dim(dx), outputs = last_dim(dy);
  multiply(dx, (matrix){dy->data, outputs, 1}, (matrix){w->data, inputs, 1}, rows_of(dx), inputs, outputs, NULL);
}

void rt_linear_wgrad(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  const rt_operand *x = &call->in[0], *dy = &call->in[1], *dw = &call->out[0];
  int64_t inputs = last_dim(x), outputs = last_dim(dy);
  multiply(dw, (matrix){dy->data, 1, outputs}, (matrix){x->data, inputs, 1}, outputs, inputs, rows_of(dy), NULL);
}

void rt_linear_bgrad(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  const rt_operand *dy = &call->in[0];
  const float *grads = dy->data;
  int64_t outputs = last_dim(dy), rows = rows_of(dy);
  for (int64_t o = 0; o < outputs; o++) {
    double sum = 0;
    for (int64_t i = 0; i < rows; i++) sum += (double)grads[i * outputs + o];
    rt_put(&call->out[0], o, (float)sum);
  }
}

/* out (m x n, rows one behind the other, from element `first`) = scale a (m x depth) b (depth x n) + bias, in tiles of
 * TILE x TILE sums. */
static void multiply_scaled(const rt_operand *out, int64_t first, float scale, matrix a, matrix b, int64_t m, int64_t n,
                            int64_t depth, const float *bias) {
  for (int64_t i0 = 0; i0 < m; i0 += TILE)
    for (int64_t j0 = 0; j0 < n; j0 += TILE) {
      int64_t rows = m - i0 < TILE ? m - i0 : TILE, columns = n - j0 < TILE ? n - j0 : TILE;
      float sum[TILE][TILE] = {{0}}, line[TILE] = {0};
      for (int64_t d = 0; d < depth; d++) {
        for (int64_t j = 0; j < columns; j++) line[j] = b.data[d * b.row + (j0 + j) * b.column];
        for (int64_t i = 0; i < rows; i++) {
          float factor = a.data[(i0 + i) * a.row + d * a.column];
          for (int j = 0; j < TILE; j++) sum[i][j] += factor * line[j];
        }
      }
      for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
          rt_put(out, first + (i0 + i) * n + j0 + j, bias ? scale * sum[i][j] + bias[j0 + j] : scale * sum[i][j]);
    }
}

static void multiply(const rt_operand *out, matrix a, matrix b, int64_t m, int64_t n, int64_t depth,
                     const float *bias) {
  multiply_scaled(out, 0, 1.0F, a, b, m, n, depth, bias);
}

static int64_t last_dim(const rt_operand *operand) {
  return operand->dims[operand->rank - 1];
}

static int64_t rows_of(const rt_operand *operand) {
  return last_dim(operand) > 0 ? operand->elements / last_dim(operand) : 0;
}

/* --- Batched products --------------------------------------------------------------------------------------------- */

/* y = scale op(a) op(b) for every pair of matrices, where an operand that is transposed lies as (columns, rows). */
static void multiply_batched(const rt_call *call, bool a_transposed, bool b_transposed) {
  const rt_operand *a = &call->in[0], *b = &call->in[1], *y = &call->out[0];
  int64_t m = y->dims[y->rank - 2], n = last_dim(y), depth = a_transposed ? a->dims[a->rank - 2] : last_dim(a);
  int64_t batches = m * n > 0 ? y->elements / (m * n) : 0;
  float scale = (float)planc_op_real(call->op, "scale", 1.0);
  for (int64_t i = 0; i < batches; i++) {
    const float *left = (const float *)a->data + i * m * depth, *right = (const float *)b->data + i * depth * n;
    multiply_scaled(y, i * m * n, scale, a_transposed ? (matrix){left, 1, m} : (matrix){left, depth, 1},
                    b_transposed ? (matrix){right, 1, depth} : (matrix){right, n, 1}, m, n, depth, NULL);
  }
}

void rt_matmul(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  multiply_batched(call, false, false);
}
void rt_matmul_nt(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  multiply_batched(call, false, true);
}
void rt_matmul_tn(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  multiply_batched(call, true, false);
}
