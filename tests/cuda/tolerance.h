/* How far a backend's results may be from the host's.
 *
 * What both compute by the same operations in the same order has the same bits. Sums have not: each side rounds n
 * additions in an order of its own, which by the probabilistic bound (Higham and Mary, A new approach to probabilistic
 * rounding error analysis, 2019) is an error of some sqrt(n) roundings of the terms' size. bf16 results may be rounded
 * to neighbours, and TF32 rounds factors. */
#ifndef TESTS_CUDA_TOLERANCE_H
#define TESTS_CUDA_TOLERANCE_H

#include "runtime/backend.h"

/* An element may differ by share * scale + each * |element|. */
typedef struct tolerance {
  double share, scale, each;
} tolerance;

typedef struct difference {
  double error;   /* the largest, as a share of the scale */
  double allowed; /* the largest as a share of what is allowed; infinite where NaNs or infinities differ */
} difference;

/* A call's results: its outputs, then its side effects. */
static inline int32_t call_results(const rt_call *call) {
  return call->n_out + call->n_effects;
}
static inline const rt_operand *call_result(const rt_call *call, int32_t index) {
  return index < call->n_out ? &call->out[index] : &call->effects[index - call->n_out];
}

/* Of result `index` of the host's call, whose operands are as before it ran; want[k]: what its k-th result was after.
 * False for an op type that is not known here. */
bool tolerance_of(const rt_call *host, int32_t index, char *const *want, tolerance *out);
/* The same for an algorithm with these notes. */
tolerance tolerance_noted(tolerance of, uint32_t notes);
difference tolerance_compare(const tolerance *of, const rt_operand *result, const char *want, const char *got);

#endif
