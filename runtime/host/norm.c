/* Batch normalisation over all positions of a channel; sums in double. */
#include <math.h>

#include "runtime/host/host_kernels.h"

/* Every element of channel c, by its index i. */
#define FOR_CHANNEL(shape, c, i)                             \
  for (int64_t outer_ = 0; outer_ < (shape).outer; outer_++) \
    for (int64_t i = (outer_ * (shape).channels + (c)) * (shape).inner, end_ = i + (shape).inner; i < end_; i++)

typedef struct statistics {
  double mean, variance, unbiased;
} statistics;

static statistics statistics_of(const rt_channels *shape, int64_t c, const float *x);
static float invstd_of(const planc_op *op, double variance);
static void normalise(const rt_channels *shape, int64_t c, const float *x, float *y, float mean, float invstd,
                      float gamma, float beta);

/* In an inference pass the running statistics, its side effects, stand for the batch's. A recompute has no side
 * effects. */
void rt_batchnorm(const rt_call *call, const rt_launch *launch) {
  rt_channels shape = rt_channels_of(call, &call->in[0]);
  const float *x = call->in[0].data, *gamma = call->in[1].data, *beta = call->in[2].data;
  float *y = call->out[0].data, *means = call->out[1].data, *invstds = call->out[2].data;
  float *running_mean = call->effects[0].data, *running_var = call->effects[1].data;
  float momentum = (float)planc_op_real(call->op, "momentum", 0.1);
  for (int64_t c = 0; c < shape.channels; c++) {
    statistics of = launch->inference
                        ? (statistics){.mean = (double)running_mean[c], .variance = (double)running_var[c]}
                        : statistics_of(&shape, c, x);
    means[c] = (float)of.mean;
    invstds[c] = invstd_of(call->op, of.variance);
    normalise(&shape, c, x, y, means[c], invstds[c], gamma[c], beta[c]);
    if (launch->inference || !running_mean) continue;
    running_mean[c] += momentum * ((float)of.mean - running_mean[c]);
    running_var[c] += momentum * ((float)of.unbiased - running_var[c]);
  }
}

void rt_batchnorm_infer(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  rt_channels shape = rt_channels_of(call, &call->in[0]);
  const float *gamma = call->in[1].data, *beta = call->in[2].data;
  const float *mean = call->in[3].data, *variance = call->in[4].data;
  for (int64_t c = 0; c < shape.channels; c++)
    normalise(&shape, c, call->in[0].data, call->out[0].data, mean[c], invstd_of(call->op, (double)variance[c]),
              gamma[c], beta[c]);
}

void rt_batchnorm_grad(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  rt_channels shape = rt_channels_of(call, &call->in[0]);
  const float *x = call->in[0].data, *gamma = call->in[1].data, *means = call->in[2].data;
  const float *invstds = call->in[3].data, *dy = call->in[4].data;
  float *dx = call->out[0].data;
  double count = (double)(shape.outer * shape.inner);
  for (int64_t c = 0; c < shape.channels; c++) {
    double mean = (double)means[c], invstd = (double)invstds[c], sum = 0, product = 0;
    FOR_CHANNEL(shape, c, i) {
      sum += (double)dy[i];
      product += (double)dy[i] * ((double)x[i] - mean) * invstd;
    }
    float scale = gamma[c] * invstds[c], mean_dy = (float)(sum / count), mean_product = (float)(product / count);
    FOR_CHANNEL(shape, c, i) dx[i] = scale * (dy[i] - mean_dy - (x[i] - means[c]) * invstds[c] * mean_product);
    rt_put(&call->out[1], c, (float)product);
    rt_put(&call->out[2], c, (float)sum);
  }
}

static void normalise(const rt_channels *shape, int64_t c, const float *x, float *y, float mean, float invstd,
                      float gamma, float beta) {
  FOR_CHANNEL(*shape, c, i) y[i] = (x[i] - mean) * invstd * gamma + beta;
}

static float invstd_of(const planc_op *op, double variance) {
  return (float)(1.0 / sqrt(variance + planc_op_real(op, "epsilon", 1e-5)));
}

static statistics statistics_of(const rt_channels *shape, int64_t c, const float *x) {
  double count = (double)(shape->outer * shape->inner), sum = 0, squares = 0;
  FOR_CHANNEL(*shape, c, i) sum += (double)x[i];
  double mean = sum / count;
  FOR_CHANNEL(*shape, c, i) squares += ((double)x[i] - mean) * ((double)x[i] - mean);
  return (statistics){mean, squares / count, count > 1 ? squares / (count - 1) : squares / count};
}
