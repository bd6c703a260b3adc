/* What transformers need beside products: normalisation and softmax of rows, embeddings, positions, sums over tokens,
 * exchanged dimensions. Sums in double. */
#include <math.h>
#include <string.h>

#include "graph/optypes.h"
#include "runtime/host/host_kernels.h"

/* An operand as rows of its last dimension. */
typedef struct rows {
  int64_t count, width;
} rows;

static rows rows_of(const rt_operand *operand) {
  int64_t width = operand->dims[operand->rank - 1];
  return (rows){width > 0 ? operand->elements / width : 0, width};
}

/* --- Layer normalisation ------------------------------------------------------------------------------------------ */

void rt_layernorm(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  rows shape = rows_of(&call->in[0]);
  const float *gamma = call->in[1].data, *beta = call->in[2].data;
  float *means = call->out[1].data, *invstds = call->out[2].data;
  double epsilon = planc_op_real(call->op, "epsilon", 1e-5);
  for (int64_t r = 0; r < shape.count; r++) {
    const float *x = (const float *)call->in[0].data + r * shape.width;
    float *y = (float *)call->out[0].data + r * shape.width;
    double sum = 0, squares = 0;
    for (int64_t c = 0; c < shape.width; c++) sum += (double)x[c];
    double mean = sum / (double)shape.width;
    for (int64_t c = 0; c < shape.width; c++) squares += ((double)x[c] - mean) * ((double)x[c] - mean);
    means[r] = (float)mean;
    invstds[r] = (float)(1.0 / sqrt(squares / (double)shape.width + epsilon));
    for (int64_t c = 0; c < shape.width; c++) y[c] = (x[c] - means[r]) * invstds[r] * gamma[c] + beta[c];
  }
}

/* dx = invstd (g - mean(g) - n mean(g n)) with n the normalised row and g = gamma dy. */
void rt_layernorm_grad(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  rows shape = rows_of(&call->in[0]);
  const float *all_x = call->in[0].data, *gamma = call->in[1].data, *means = call->in[2].data;
  const float *invstds = call->in[3].data, *all_dy = call->in[4].data;
  for (int64_t r = 0; r < shape.count; r++) {
    const float *x = all_x + r * shape.width, *dy = all_dy + r * shape.width;
    float *dx = (float *)call->out[0].data + r * shape.width;
    double sum = 0, along = 0, width = (double)shape.width;
    for (int64_t c = 0; c < shape.width; c++) {
      double g = (double)gamma[c] * (double)dy[c];
      sum += g;
      along += g * (double)((x[c] - means[r]) * invstds[r]);
    }
    for (int64_t c = 0; c < shape.width; c++) {
      double normal = (double)((x[c] - means[r]) * invstds[r]), g = (double)gamma[c] * (double)dy[c];
      dx[c] = (float)((double)invstds[r] * (g - sum / width - normal * along / width));
    }
  }
  for (int64_t c = 0; c < shape.width; c++) {
    double dgamma = 0, dbeta = 0;
    for (int64_t r = 0; r < shape.count; r++) {
      int64_t at = r * shape.width + c;
      dgamma += (double)all_dy[at] * (double)((all_x[at] - means[r]) * invstds[r]);
      dbeta += (double)all_dy[at];
    }
    rt_put(&call->out[1], c, (float)dgamma);
    rt_put(&call->out[2], c, (float)dbeta);
  }
}

/* --- Softmax ------------------------------------------------------------------------------------------------------ */

void rt_softmax(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  rows shape = rows_of(&call->in[0]);
  for (int64_t r = 0; r < shape.count; r++) {
    const float *x = (const float *)call->in[0].data + r * shape.width;
    float *y = (float *)call->out[0].data + r * shape.width, largest = x[0];
    double sum = 0;
    for (int64_t c = 1; c < shape.width; c++) largest = x[c] > largest ? x[c] : largest;
    for (int64_t c = 0; c < shape.width; c++) {
      y[c] = expf(x[c] - largest);
      sum += (double)y[c];
    }
    for (int64_t c = 0; c < shape.width; c++) y[c] = (float)((double)y[c] / sum);
  }
}

void rt_softmax_grad(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  rows shape = rows_of(&call->in[0]);
  for (int64_t r = 0; r < shape.count; r++) {
    const float *y = (const float *)call->in[0].data + r * shape.width;
    const float *dy = (const float *)call->in[1].data + r * shape.width;
    float *dx = (float *)call->out[0].data + r * shape.width;
    double sum = 0;
    for (int64_t c = 0; c < shape.width; c++) sum += (double)y[c] * (double)dy[c];
    for (int64_t c = 0; c < shape.width; c++) dx[c] = (float)((double)y[c] * ((double)dy[c] - sum));
  }
}

/* --- Embedding ---------------------------------------------------------------------------------------------------- */

/* An id outside the table gives a row of zeros, and no gradient. */
void rt_embedding(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  const int64_t *ids = call->in[0].data;
  const float *table = call->in[1].data;
  rows shape = rows_of(&call->out[0]);
  int64_t entries = call->in[1].dims[0];
  size_t bytes = (size_t)shape.width * sizeof(float);
  for (int64_t r = 0; r < shape.count; r++) {
    float *y = (float *)call->out[0].data + r * shape.width;
    if (ids[r] >= 0 && ids[r] < entries)
      memcpy(y, table + ids[r] * shape.width, bytes);
    else
      memset(y, 0, bytes);
  }
}

/* How many sums of gradients are held at a time: the table is gone through in tiles, the ids once for each. */
enum { MAX_SUMS = 4096 };

/* The gradients of `count` entries from `entry` on, in `width` columns from `column` on. */
static void embedding_tile(const rt_call *call, int64_t entry, int64_t count, int64_t column, int64_t width) {
  const int64_t *ids = call->in[0].data;
  rows shape = rows_of(&call->in[1]);
  double sums[MAX_SUMS] = {0};
  for (int64_t r = 0; r < shape.count; r++) {
    if (ids[r] < entry || ids[r] - entry >= count) continue;
    const float *dy = (const float *)call->in[1].data + r * shape.width + column;
    for (int64_t c = 0; c < width; c++) sums[(ids[r] - entry) * width + c] += (double)dy[c];
  }
  for (int64_t e = 0; e < count; e++)
    for (int64_t c = 0; c < width; c++)
      rt_put(&call->out[0], (entry + e) * shape.width + column + c, (float)sums[e * width + c]);
}

void rt_embedding_grad(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  int64_t entries = call->out[0].dims[0], columns = call->out[0].dims[1];
  int64_t width = columns < MAX_SUMS ? columns : MAX_SUMS;
  int64_t height = width > 0 ? MAX_SUMS / width : MAX_SUMS;
  for (int64_t entry = 0; entry < entries; entry += height)
    for (int64_t column = 0; column < columns; column += width)
      embedding_tile(call, entry, entry + height < entries ? height : entries - entry, column,
                     column + width < columns ? width : columns - column);
}

/* --- Positions and tokens ----------------------------------------------------------------------------------------- */

void rt_position(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  const float *x = call->in[0].data, *p = call->in[1].data;
  float *y = call->out[0].data;
  int64_t width = call->in[1].elements, samples = width > 0 ? call->in[0].elements / width : 0;
  for (int64_t n = 0; n < samples; n++)
    for (int64_t i = 0; i < width; i++) y[n * width + i] = x[n * width + i] + p[i];
}

void rt_position_grad(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  const float *dy = call->in[0].data;
  int64_t width = call->out[0].elements, samples = width > 0 ? call->in[0].elements / width : 0;
  for (int64_t i = 0; i < width; i++) {
    double sum = 0;
    for (int64_t n = 0; n < samples; n++) sum += (double)dy[n * width + i];
    rt_put(&call->out[0], i, (float)sum);
  }
}

/* Of a tensor (outer, tokens, width). */
typedef struct host_tokens {
  int64_t outer, count, width;
} host_tokens;

static void gather_tokens(const rt_call *call, double by);
static host_tokens tokens_of(const rt_operand *operand);
static void spread_tokens(const rt_call *call, float share);

void rt_mean(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  gather_tokens(call, (double)tokens_of(&call->in[0]).count);
}

void rt_mean_grad(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  int64_t count = tokens_of(&call->out[0]).count;
  spread_tokens(call, 1.0F / (float)(count > 0 ? count : 1));
}

void rt_expand(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  spread_tokens(call, 1);
}

void rt_expand_grad(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  gather_tokens(call, 1);
}

static host_tokens tokens_of(const rt_operand *operand) {
  host_tokens out = {.count = operand->dims[operand->rank - 2], .width = operand->dims[operand->rank - 1]};
  out.outer = out.count * out.width > 0 ? operand->elements / (out.count * out.width) : 0;
  return out;
}

/* y = the sum over tokens, divided by `by`. */
static void gather_tokens(const rt_call *call, double by) {
  host_tokens shape = tokens_of(&call->in[0]);
  for (int64_t o = 0; o < shape.outer; o++)
    for (int64_t c = 0; c < shape.width; c++) {
      const float *x = (const float *)call->in[0].data + o * shape.count * shape.width + c;
      double sum = 0;
      for (int64_t t = 0; t < shape.count; t++) sum += (double)x[t * shape.width];
      ((float *)call->out[0].data)[o * shape.width + c] = (float)(sum / by);
    }
}

/* Every token gets x, times `share`. */
static void spread_tokens(const rt_call *call, float share) {
  host_tokens shape = tokens_of(&call->out[0]);
  for (int64_t o = 0; o < shape.outer; o++)
    for (int64_t t = 0; t < shape.count; t++)
      for (int64_t c = 0; c < shape.width; c++)
        ((float *)call->out[0].data)[(o * shape.count + t) * shape.width + c] =
            ((const float *)call->in[0].data)[o * shape.width + c] * share;
}

/* --- Exchanged dimensions ----------------------------------------------------------------------------------------- */

void rt_transpose(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  const rt_operand *x = &call->in[0];
  int64_t axis = planc_op_int(call->op, "axis", 0, 1), outer = 1, inner = 1;
  for (int64_t d = 0; d < axis; d++) outer *= x->dims[d];
  for (int64_t d = axis + 2; d < x->rank; d++) inner *= x->dims[d];
  int64_t rows_in = x->dims[axis], columns_in = x->dims[axis + 1];
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 0; i < rows_in; i++)
      for (int64_t j = 0; j < columns_in; j++)
        memcpy((float *)call->out[0].data + ((o * columns_in + j) * rows_in + i) * inner,
               (const float *)x->data + ((o * rows_in + i) * columns_in + j) * inner, (size_t)inner * sizeof(float));
}
