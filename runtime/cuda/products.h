/* Calls that are matrix products. */
#ifndef PLANRT_CUDA_PRODUCTS_H
#define PLANRT_CUDA_PRODUCTS_H

#include "runtime/call.h"
#include "runtime/cuda/cuda_kernels.h"

/* result[rows, columns] = first[rows, depth] second[depth, columns], `count` times; transposed: stored the other way
 * round. */
typedef struct rt_product {
  const rt_operand *first, *second, *result;
  const rt_operand *bias; /* NULL: none */
  bool bias_by_row;       /* an element of it for each row of the result, not for each column */
  bool first_transposed, second_transposed;
  bool first_shared; /* one first factor for all `count` products */
  bool summed;       /* one result, the sum of all `count` products */
  /* The factor of which only a lattice takes part, or the result of which the rest is zero; NULL: none. */
  const rt_operand *sparse;
  rt_cuda_lattice lattice;
  int64_t rows, columns, depth, count;
} rt_product;

/* True for linear ops, batched products, their gradients, and convolutions of single pixels (1x1, no padding, one
 * group) in all three directions: a product of weights and channels, in NCHW one for each image. */
bool rt_product_of(const rt_call *call, rt_product *out);

#endif
