/* Optimizer steps, in place on weights and state. */
#include <math.h>

#include "runtime/host/host_kernels.h"

static float learning_rate(const rt_call *call, const rt_launch *launch, double fallback) {
  if (!isnan(launch->step.learning_rate)) return (float)launch->step.learning_rate;
  return (float)planc_op_real(call->op, "lr", fallback);
}

void rt_sgd(const rt_call *call, const rt_launch *launch) {
  float rate = learning_rate(call, launch, 0.01);
  const float *grad = call->in[1].data;
  float *w = call->out[0].data;
  for (int64_t i = 0; i < call->out[0].elements; i++) w[i] -= rate * grad[i];
}

void rt_momentum(const rt_call *call, const rt_launch *launch) {
  float rate = learning_rate(call, launch, 0.01), decay = (float)planc_op_real(call->op, "momentum", 0.9);
  const float *grad = call->in[1].data;
  float *w = call->out[0].data, *v = call->out[1].data;
  for (int64_t i = 0; i < call->out[0].elements; i++) {
    v[i] = decay * v[i] + grad[i];
    w[i] -= rate * v[i];
  }
}

/* Kingma and Ba, Algorithm 1; the step is the iteration counted from 1. */
void rt_adam(const rt_call *call, const rt_launch *launch) {
  double beta1 = planc_op_real(call->op, "beta1", 0.9), beta2 = planc_op_real(call->op, "beta2", 0.999);
  double step = (double)rt_iteration(call, launch) + 1.0;
  float rate = (float)((double)learning_rate(call, launch, 0.001) / (1.0 - pow(beta1, step)));
  float correction = (float)(1.0 / sqrt(1.0 - pow(beta2, step)));
  float epsilon = (float)planc_op_real(call->op, "epsilon", 1e-8), b1 = (float)beta1, b2 = (float)beta2;
  const float *grad = call->in[1].data;
  float *w = call->out[0].data, *m = call->out[1].data, *v = call->out[2].data;
  for (int64_t i = 0; i < call->out[0].elements; i++) {
    m[i] = b1 * m[i] + (1.0F - b1) * grad[i];
    v[i] = b2 * v[i] + (1.0F - b2) * grad[i] * grad[i];
    w[i] -= rate * m[i] / (sqrtf(v[i]) * correction + epsilon);
  }
}
