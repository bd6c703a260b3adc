/* Casts between f32 and bf16. */
#include "runtime/bf16.h"
#include "runtime/host/host_kernels.h"

void planrt_cast(const planrt_call *call, const planrt_launch *launch) {
  (void)launch;
  const planrt_operand *x = &call->in[0], *y = &call->out[0];
  for (int64_t i = 0; i < y->elements; i++) {
    float value = planrt_real_at(x->dtype, x->data, i);
    if (y->accumulate) value += planrt_real_at(y->dtype, y->data, i);
    planrt_real_put(y->dtype, y->data, i, value);
  }
}
