#include "conv.h"

#include <algorithm>
#include <vector>

namespace emulator {

namespace {

struct Position {
  int64_t at[max_spatial];
};

/* Calls for every position of a box. */
template <class Body>
void each(const int64_t *dims, Body body) {
  for (int64_t i = 0; i < dims[0]; i++)
    for (int64_t j = 0; j < dims[1]; j++)
      for (int64_t k = 0; k < dims[2]; k++) body(Position{{i, j, k}});
}

int64_t index(const Tensor &t, int64_t n, int64_t c, const Position &p) {
  int64_t at = n * t.strides[0] + c * t.strides[1];
  for (int i = 0; i < max_spatial; i++) at += p.at[i] * t.strides[2 + i];
  return at;
}

/* What two tensors have to be multiplied at: offsets in both. */
struct Pair {
  int64_t first, second;
};

struct Terms {
  const Conv &conv;
  bool tf32;
  const char *x, *w, *y;
  std::vector<float> values;
  std::vector<Pair> along[max_spatial], pairs; /* along one dimension; every combination of these */
  float *next;                                 /* of the values */

  float read(const Tensor &tensor, const char *base, int64_t at) const {
    float value = load(tensor.type, base, at);
    return tf32 && tensor.type == Number::f32 ? to_tf32(value) : value;
  }

  /* Where tap r of output position o lies in x along dimension d, which may be in the padding. */
  int64_t input_of(int d, int64_t o, int64_t r) const {
    int64_t tap = conv.flipped ? conv.w.dims[2 + d] - 1 - r : r;
    return o * conv.strides[d] - conv.pre[d] + tap * conv.dilations[d];
  }

  bool in_x(int d, int64_t at) const { return at >= 0 && at < conv.x.dims[2 + d]; }

  void forward(int64_t n, int64_t k, const Position &o) {
    for (int d = 0; d < max_spatial; d++) {
      along[d].clear();
      for (int64_t r = 0; r < conv.w.dims[2 + d]; r++)
        if (int64_t at = input_of(d, o.at[d], r); in_x(d, at))
          along[d].push_back({at * conv.x.strides[2 + d], r * conv.w.strides[2 + d]});
    }
    int64_t group = k / (conv.w.dims[0] / (conv.x.dims[1] / conv.w.dims[1]));
    combine(conv.w.dims[1]);
    for (int64_t c = 0; c < conv.w.dims[1]; c++) multiply(conv.x, x, n, group * conv.w.dims[1] + c, conv.w, w, k, c);
  }

  void backward_data(int64_t n, int64_t c, const Position &i) {
    for (int d = 0; d < max_spatial; d++) {
      along[d].clear();
      for (int64_t r = 0; r < conv.w.dims[2 + d]; r++)
        if (int64_t o; output_of(d, i.at[d], r, &o))
          along[d].push_back({o * conv.y.strides[2 + d], r * conv.w.strides[2 + d]});
    }
    int64_t in_group = conv.w.dims[1], outputs = conv.w.dims[0] / (conv.x.dims[1] / in_group);
    combine(outputs);
    for (int64_t k = c / in_group * outputs; k < (c / in_group + 1) * outputs; k++)
      multiply(conv.y, y, n, k, conv.w, w, k, c % in_group);
  }

  /* The output position whose tap r is at i; false: there is none. */
  bool output_of(int d, int64_t i, int64_t r, int64_t *out) const {
    int64_t tap = conv.flipped ? conv.w.dims[2 + d] - 1 - r : r;
    int64_t at = i + conv.pre[d] - tap * conv.dilations[d];
    *out = at / conv.strides[d];
    return at >= 0 && at % conv.strides[d] == 0 && *out < conv.y.dims[2 + d];
  }

  void backward_filter(int64_t k, int64_t c, const Position &r) {
    for (int d = 0; d < max_spatial; d++) {
      along[d].clear();
      for (int64_t o = 0; o < conv.y.dims[2 + d]; o++)
        if (int64_t at = input_of(d, o, r.at[d]); in_x(d, at))
          along[d].push_back({at * conv.x.strides[2 + d], o * conv.y.strides[2 + d]});
    }
    int64_t group = k / (conv.w.dims[0] / (conv.x.dims[1] / conv.w.dims[1]));
    combine(conv.x.dims[0]);
    for (int64_t n = 0; n < conv.x.dims[0]; n++) multiply(conv.x, x, n, group * conv.w.dims[1] + c, conv.y, y, n, k);
  }

  /* Makes pairs of those along each dimension, and has room for the products of so many times all. */
  void combine(int64_t times) {
    pairs.clear();
    for (const Pair &i : along[0])
      for (const Pair &j : along[1])
        for (const Pair &k : along[2]) pairs.push_back({i.first + j.first + k.first, i.second + j.second + k.second});
    values.resize(pairs.size() * static_cast<size_t>(times));
    next = values.data();
  }

  /* The products of all pairs, at one place of the first two dimensions of each tensor. */
  void multiply(const Tensor &first, const char *of_first, int64_t a, int64_t b, const Tensor &second,
                const char *of_second, int64_t c, int64_t d) {
    int64_t at = a * first.strides[0] + b * first.strides[1], by = c * second.strides[0] + d * second.strides[1];
    if (first.type == Number::f32 && second.type == Number::f32 && !tf32) {  // as most are: without a question each
      for (const Pair &pair : pairs)
        *next++ = load(Number::f32, of_first, at + pair.first) * load(Number::f32, of_second, by + pair.second);
      return;
    }
    for (const Pair &pair : pairs)
      *next++ = read(first, of_first, at + pair.first) * read(second, of_second, by + pair.second);
  }

  float sum(Order order, const std::function<uint64_t(uint64_t)> &draw) {
    if (order == Order::reversed) std::reverse(values.begin(), values.end());
    if (order == Order::random)
      for (size_t i = values.size(); i > 1; i--) std::swap(values[i - 1], values[draw(i)]);
    float total = 0;
    for (float value : values) total += value;
    return total;
  }
};

}  // namespace

bool shapes_fit(const Conv &conv) {
  const int64_t *x = conv.x.dims, *w = conv.w.dims, *y = conv.y.dims;
  if (x[0] != y[0] || w[0] != y[1] || x[1] % w[1] != 0 || w[0] % (x[1] / w[1]) != 0) return false;
  for (int i = 0; i < max_spatial; i++) {
    int64_t space = x[2 + i] + conv.pre[i] + conv.post[i] - (w[2 + i] - 1) * conv.dilations[i] - 1;
    if (space < 0 || y[2 + i] != space / conv.strides[i] + 1) return false;
  }
  return true;
}

void convolve(const Conv &conv, Order order, bool tf32, char *x, char *w, char *y,
              const std::function<uint64_t(uint64_t)> &draw) {
  Terms terms{conv, tf32, x, w, y, {}, {}, {}, nullptr};
  const Tensor &out = conv.direction == Direction::forward         ? conv.y
                      : conv.direction == Direction::backward_data ? conv.x
                                                                   : conv.w;
  char *to = conv.direction == Direction::forward ? y : conv.direction == Direction::backward_data ? x : w;
  for (int64_t n = 0; n < out.dims[0]; n++)
    for (int64_t c = 0; c < out.dims[1]; c++)
      each(out.dims + 2, [&](const Position &p) {
        switch (conv.direction) {
          case Direction::forward:
            terms.forward(n, c, p);
            break;
          case Direction::backward_data:
            terms.backward_data(n, c, p);
            break;
          case Direction::backward_filter:
            terms.backward_filter(n, c, p);
            break;
        }
        int64_t at = index(out, n, c, p);
        float value = conv.alpha * terms.sum(order, draw);
        /* What is not to be added to is not read: it may be no number. */
        store(out.type, to, at, conv.beta == 0 ? value : value + conv.beta * load(out.type, to, at));
      });
}

}  // namespace emulator
