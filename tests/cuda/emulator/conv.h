/* Convolutions by definition, on tensors with any strides. */
#ifndef TESTS_CUDA_EMULATOR_CONV_H
#define TESTS_CUDA_EMULATOR_CONV_H

#include <functional>

#include "numbers.h"

namespace emulator {

enum { max_spatial = 3 };

struct Tensor {
  Number type;
  int64_t dims[2 + max_spatial], strides[2 + max_spatial];  // missing spatial ones: 1 and 0
};

/* One element after the last that the tensor has. */
inline int64_t extent(const Tensor &tensor) {
  int64_t last = 0;
  for (int i = 0; i < 2 + max_spatial; i++) last += (tensor.dims[i] - 1) * tensor.strides[i];
  return last + 1;
}

enum class Direction { forward, backward_data, backward_filter };

/* In the order of the sum's terms engines differ, and so in the last bits of what they give. */
enum class Order { plain, reversed, random };

struct Conv {
  Direction direction;
  Tensor x, w, y;  // y: of forward's output
  int64_t pre[max_spatial], post[max_spatial], strides[max_spatial], dilations[max_spatial];
  bool flipped;  // a convolution proper, not a cross-correlation
  float alpha, beta;
};

/* Whether the tensors' shapes go with each other. */
bool shapes_fit(const Conv &conv);

/* out = alpha * conv(...) + beta * out, `out` being the tensor that the direction computes; sums in f32. `draw` gives a
 * number below its argument, for the random order. */
void convolve(const Conv &conv, Order order, bool tf32, char *x, char *w, char *y,
              const std::function<uint64_t(uint64_t)> &draw);

}  // namespace emulator

#endif
