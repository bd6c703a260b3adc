/* Casts between f32 and bf16. */
#include "runtime/bf16.h"
#include "runtime/host/host_kernels.h"

void rt_cast(const rt_call *call, const rt_launch *launch) {
  (void)launch;
  const rt_operand *x = &call->in[0], *y = &call->out[0];
  for (int64_t i = 0; i < y->elements; i++) {
    float value = rt_real_at(x->dtype, x->data, i);
    if (y->accumulate) value += rt_real_at(y->dtype, y->data, i);
    rt_real_put(y->dtype, y->data, i, value);
  }
}
