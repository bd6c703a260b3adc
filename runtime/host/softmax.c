/* The losses, averaged over the iteration's batch: a round contributes with 1 / batch, so that rounds add up. Of a
 * softmax with cross-entropy a label outside the classes is ignored: no loss, no gradient. */
#include <math.h>

#include "runtime/host/host_kernels.h"

/* 1 / positions in the whole batch: N, or N * H * W. Of what does not depend on N, a part has its share. */
static double mean_scale(const rt_call *call, const rt_operand *labels) {
  double per_sample = call->batch > 0 ? (double)labels->elements / (double)call->batch : 1;
  return 1.0 / ((double)call->job_batch * per_sample);
}

void rt_softmax_xent(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  rt_channels shape = rt_channels_of(call, &call->in[0]);
  const float *logits = call->in[0].data;
  const int64_t *labels = call->in[1].data;
  float *probs = call->out[1].data;
  double loss = 0;
  for (int64_t o = 0; o < shape.outer; o++)
    for (int64_t k = 0; k < shape.inner; k++) {
      const float *z = logits + o * shape.channels * shape.inner + k;
      float *p = probs + o * shape.channels * shape.inner + k;
      double largest = (double)z[0], sum = 0;
      for (int64_t c = 1; c < shape.channels; c++)
        if ((double)z[c * shape.inner] > largest) largest = (double)z[c * shape.inner];
      for (int64_t c = 0; c < shape.channels; c++) sum += exp((double)z[c * shape.inner] - largest);
      int64_t label = labels[o * shape.inner + k];
      if (label >= 0 && label < shape.channels) loss += log(sum) + largest - (double)z[label * shape.inner];
      for (int64_t c = 0; c < shape.channels; c++)
        p[c * shape.inner] = (float)(exp((double)z[c * shape.inner] - largest) / sum);
    }
  *(float *)call->out[0].data = (float)(loss * mean_scale(call, &call->in[1]));
}

void rt_softmax_xent_grad(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  rt_channels shape = rt_channels_of(call, &call->in[0]);
  const float *probs = call->in[0].data;
  const int64_t *labels = call->in[1].data;
  float *grads = call->out[0].data, scale = (float)mean_scale(call, &call->in[1]);
  for (int64_t o = 0; o < shape.outer; o++)
    for (int64_t k = 0; k < shape.inner; k++) {
      int64_t at = o * shape.channels * shape.inner + k, label = labels[o * shape.inner + k];
      bool counts = label >= 0 && label < shape.channels;
      for (int64_t c = 0; c < shape.channels; c++) {
        float target = c == label ? 1.0F : 0.0F;
        grads[at + c * shape.inner] = counts ? (probs[at + c * shape.inner] - target) * scale : 0.0F;
      }
    }
}

void rt_mse(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  const float *x = call->in[0].data, *target = call->in[1].data;
  double sum = 0;
  for (int64_t i = 0; i < call->in[0].elements; i++) {
    double off = (double)x[i] - (double)target[i];
    sum += off * off;
  }
  *(float *)call->out[0].data = (float)(sum * mean_scale(call, &call->in[1]));
}

void rt_mse_grad(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  const float *x = call->in[0].data, *target = call->in[1].data;
  float *dx = call->out[0].data, scale = (float)(2 * mean_scale(call, &call->in[1]));
  for (int64_t i = 0; i < call->in[0].elements; i++) dx[i] = (x[i] - target[i]) * scale;
}
