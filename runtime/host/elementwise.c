/* Ops that treat every element by itself, and the copies of concatenation. All may work in place. */
#include <math.h>
#include <string.h>

#include "runtime/host/host_kernels.h"
#include "runtime/random.h"

void rt_relu(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  const float *x = call->in[0].data;
  float *y = call->out[0].data;
  int64_t n = call->out[0].elements;
  for (int64_t i = 0; i < n; i++) {
    float value = x[i];
    y[i] = value > 0.0F ? value : 0.0F;
  }
}

void rt_relu_grad(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  const float *y = call->in[0].data, *dy = call->in[1].data;
  float *dx = call->out[0].data;
  int64_t n = call->out[0].elements;
  /* The gradient is loaded in any case: a load under a condition keeps compilers from vector code. */
  for (int64_t i = 0; i < n; i++) {
    float gradient = dy[i];
    dx[i] = y[i] > 0.0F ? gradient : 0.0F;
  }
}

/* x times the standard normal distribution below x. */
void rt_gelu(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  const float *x = call->in[0].data;
  float *y = call->out[0].data;
  int64_t n = call->out[0].elements;
  for (int64_t i = 0; i < n; i++) y[i] = 0.5F * x[i] * (1.0F + erff(x[i] * 0.70710678F));
}

void rt_gelu_grad(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  const float *x = call->in[0].data, *dy = call->in[1].data;
  float *dx = call->out[0].data;
  int64_t n = call->out[0].elements;
  for (int64_t i = 0; i < n; i++) {
    float below = 0.5F * (1.0F + erff(x[i] * 0.70710678F)), density = 0.39894228F * expf(-0.5F * x[i] * x[i]);
    dx[i] = dy[i] * (below + x[i] * density);
  }
}

void rt_sigmoid(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  const float *x = call->in[0].data;
  float *y = call->out[0].data;
  int64_t n = call->out[0].elements;
  for (int64_t i = 0; i < n; i++) y[i] = 1.0F / (1.0F + expf(-x[i]));
}

void rt_sigmoid_grad(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  const float *y = call->in[0].data, *dy = call->in[1].data;
  float *dx = call->out[0].data;
  int64_t n = call->out[0].elements;
  for (int64_t i = 0; i < n; i++) dx[i] = dy[i] * (y[i] * (1.0F - y[i]));
}

void rt_tanh(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  const float *x = call->in[0].data;
  float *y = call->out[0].data;
  int64_t n = call->out[0].elements;
  for (int64_t i = 0; i < n; i++) y[i] = tanhf(x[i]);
}

void rt_tanh_grad(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  const float *y = call->in[0].data, *dy = call->in[1].data;
  float *dx = call->out[0].data;
  int64_t n = call->out[0].elements;
  for (int64_t i = 0; i < n; i++) dx[i] = dy[i] * (1.0F - y[i] * y[i]);
}

static void scale_and_shift(const rt_call *call, float shift) {
  const float *x = call->in[0].data;
  float *y = call->out[0].data, scale = (float)planc_op_real(call->op, "scale", 1.0);
  int64_t n = call->out[0].elements;
  for (int64_t i = 0; i < n; i++) y[i] = x[i] * scale + shift;
}

void rt_affine(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  scale_and_shift(call, (float)planc_op_real(call->op, "shift", 0.0));
}

void rt_affine_grad(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  scale_and_shift(call, 0);
}

void rt_mul(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  const float *a = call->in[0].data, *b = call->in[1].data;
  float *y = call->out[0].data;
  int64_t n = call->out[0].elements;
  for (int64_t i = 0; i < n; i++) y[i] = a[i] * b[i];
}

void rt_add(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  const float *a = call->in[0].data, *b = call->in[1].data;
  float *y = call->out[0].data;
  int64_t n = call->out[0].elements;
  for (int64_t i = 0; i < n; i++) y[i] = a[i] + b[i];
}

/* A round's gradient from its temporary into the iteration's. */
static void accumulate(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  const float *round = call->in[0].data;
  float *sum = call->out[0].data;
  for (int64_t i = 0; i < call->out[0].elements; i++) sum[i] += round[i];
}

const rt_kernel rt_accumulate_kernel = {accumulate};

/* The replicas' gradients in their order, so that all get the same bits. */
static void exchange(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  float *y = call->out[0].data;
  for (int64_t i = 0; i < call->out[0].elements; i++) {
    float sum = 0;
    for (int32_t k = 0; k < call->n_in; k++) {
      float part = ((const float *)call->in[k].data)[i];
      sum = k ? sum + part : part;
    }
    y[i] = sum;
  }
}

const rt_kernel rt_exchange_kernel = {exchange};

void rt_bias(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  rt_channels shape = rt_channels_of(call, &call->in[0]);
  const float *x = call->in[0].data, *b = call->in[1].data;
  float *y = call->out[0].data;
  int64_t i = 0;
  for (int64_t o = 0; o < shape.outer; o++)
    for (int64_t c = 0; c < shape.channels; c++)
      for (int64_t k = 0; k < shape.inner; k++, i++) y[i] = x[i] + b[c];
}

/* Also conv2d_bgrad. */
void rt_bias_grad(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  rt_channels shape = rt_channels_of(call, &call->in[0]);
  const float *dy = call->in[0].data;
  for (int64_t c = 0; c < shape.channels; c++) {
    double sum = 0;
    for (int64_t o = 0; o < shape.outer; o++)
      for (int64_t k = 0; k < shape.inner; k++) sum += (double)dy[(o * shape.channels + c) * shape.inner + k];
    rt_put(&call->out[0], c, (float)sum);
  }
}

/* --- Dropout ------------------------------------------------------------------------------------------------------ */

/* Forward and backward alike: what the counter (global sample, element within it) drops becomes 0, the rest is scaled.
 * No mask is stored, and a round draws what the whole batch would. */
void rt_dropout(const rt_call *call, const rt_launch *launch) {
  const float *x = call->in[0].data;
  float *y = call->out[0].data;
  int64_t elements = call->out[0].elements;
  if (launch->inference) {
    if (y != x) memmove(y, x, (size_t)elements * sizeof *y);
    return;
  }
  float p = (float)planc_op_real(call->op, "p", 0.0), scale = 1.0F / (1.0F - p);
  uint64_t key = rt_mix(launch->seed ^ rt_mix((uint64_t)planc_op_int(call->op, "seed", 0, 0) + 1));
  int64_t per_sample = call->batch > 0 ? elements / call->batch : elements;
  int64_t first = rt_iteration(call, launch) * call->job_batch + call->sample_offset;
  uint64_t counter = (uint64_t)(first * per_sample);
  for (int64_t i = 0; i < elements; i++) y[i] = rt_uniform(key, counter + (uint64_t)i) < p ? 0.0F : x[i] * scale;
}

/* --- Concatenation ------------------------------------------------------------------------------------------------ */

/* A tensor seen along one axis: `outer` runs of dims[axis] * inner elements. */
typedef struct element_runs {
  int64_t outer, inner;
} element_runs;

static element_runs runs_of(const rt_operand *operand, int64_t axis) {
  element_runs r = {1, 1};
  for (int32_t d = 0; d < operand->rank; d++) {
    if (d < axis) r.outer *= operand->dims[d];
    if (d > axis) r.inner *= operand->dims[d];
  }
  return r;
}

void rt_concat(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  int64_t axis = planc_op_int(call->op, "axis", 0, 1);
  const rt_operand *y = &call->out[0];
  element_runs r = runs_of(y, axis);
  int64_t offset = 0, stride = y->dims[axis] * r.inner;
  for (int32_t k = 0; k < call->n_in; k++) {
    const float *part = call->in[k].data;
    int64_t length = call->in[k].dims[axis] * r.inner;
    for (int64_t o = 0; o < r.outer; o++)
      memcpy((float *)y->data + o * stride + offset, part + o * length, (size_t)length * sizeof *part);
    offset += length;
  }
}

/* The part of `whole` that starts at `offset`, in elements of a run, to `part`. */
static void take_part(const rt_operand *whole, const rt_operand *part, int64_t axis, int64_t offset) {
  element_runs r = runs_of(whole, axis);
  int64_t stride = whole->dims[axis] * r.inner, length = part->dims[axis] * r.inner;
  for (int64_t o = 0; o < r.outer; o++)
    memcpy((float *)part->data + o * length, (const float *)whole->data + o * stride + offset,
           (size_t)length * sizeof(float));
}

void rt_concat_grad(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  const rt_operand *dy = &call->in[0];
  int64_t axis = planc_op_int(call->op, "axis", 0, 1);
  take_part(dy, &call->out[0], axis, planc_op_int(call->op, "offset", 0, 0) * runs_of(dy, axis).inner);
}

void rt_split(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  const rt_operand *x = &call->in[0];
  int64_t axis = planc_op_int(call->op, "axis", 0, 1), offset = 0;
  for (int32_t k = 0; k < call->n_out; k++) {
    take_part(x, &call->out[k], axis, offset);
    offset += call->out[k].dims[axis] * runs_of(x, axis).inner;
  }
}
