/* What ops compute, in double and written from the definitions, to hold kernels against. */
#ifndef PLANC_TESTS_FORMULAS_H
#define PLANC_TESTS_FORMULAS_H

#include <check.h>
#include <math.h>

#include "runtime/call.h"

/* Index of element (n, c, h, w) of a rank-4 tensor in the graph's layout, and its sizes. */
int64_t formula_at(const rt_call *call, const rt_operand *t, int64_t n, int64_t c, int64_t h, int64_t w);
int64_t formula_channels_of(const rt_call *call, const rt_operand *t);
int64_t formula_height_of(const rt_call *call, const rt_operand *t);
int64_t formula_width_of(const rt_call *call, const rt_operand *t);
/* Channel of element i of a tensor of any rank. */
int64_t formula_channel_at(const rt_call *call, const rt_operand *t, int64_t i);

/* out[0] of a forward call from its inputs. pool is max or average by the op's type, batchnorm with the batch's or, for
 * batchnorm_infer, the running statistics, matmul with the operand transposed that the type says. */
typedef void (*formula)(const rt_call *call, double *const *in, double *out);
void formula_conv2d(const rt_call *call, double *const *in, double *out);
void formula_linear(const rt_call *call, double *const *in, double *out);
void formula_bias(const rt_call *call, double *const *in, double *out);
void formula_relu(const rt_call *call, double *const *in, double *out);
void formula_add(const rt_call *call, double *const *in, double *out);
void formula_pool(const rt_call *call, double *const *in, double *out);
void formula_batchnorm(const rt_call *call, double *const *in, double *out);
void formula_upsample(const rt_call *call, double *const *in, double *out);
void formula_gelu(const rt_call *call, double *const *in, double *out);
void formula_sigmoid(const rt_call *call, double *const *in, double *out);
void formula_tanh(const rt_call *call, double *const *in, double *out);
void formula_affine(const rt_call *call, double *const *in, double *out);
void formula_expand(const rt_call *call, double *const *in, double *out);
void formula_mul(const rt_call *call, double *const *in, double *out);
void formula_layernorm(const rt_call *call, double *const *in, double *out);
void formula_matmul(const rt_call *call, double *const *in, double *out);
void formula_softmax(const rt_call *call, double *const *in, double *out);
void formula_position(const rt_call *call, double *const *in, double *out);
void formula_mean(const rt_call *call, double *const *in, double *out);
void formula_transpose(const rt_call *call, double *const *in, double *out);

/* Central differences of formulas use this step. Results of kernels, f32 sums of some dozens of terms, are near what a
 * formula gives when they differ by at most 1e-4 of the larger of 1 and the value. */
#define FORMULA_STEP 1e-5
static inline void assert_near(double got, double want, const char *what, int64_t index) {
  double scale = fabs(want) > 1 ? fabs(want) : 1;
  ck_assert_msg(fabs(got - want) <= 1e-4 * scale, "%s[%ld]: %.9g, should be %.9g", what, (long)index, got, want);
}

#endif
