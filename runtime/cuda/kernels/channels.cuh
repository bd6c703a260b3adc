/* Tensors with a channel dimension: element (o, c, i) is number (o * channels + c) * inner + i. */
#ifndef PLANRT_CUDA_CHANNELS_CUH
#define PLANRT_CUDA_CHANNELS_CUH

#include "common.cuh"

namespace planrt {

struct Channels {
  int64_t channels, inner;
  Divisor by_channels, by_inner;
  explicit Channels(const planrt_cuda_channels &shape)
      : channels(shape.channels), inner(shape.inner), by_channels(shape.channels), by_inner(shape.inner) {}
};

inline int64_t elements_of(const planrt_cuda_channels &shape) {
  return shape.outer * shape.channels * shape.inner;
}

/* Which channels W neighbours from element i on belong to. */
template <int W>
struct ChannelsAt {
  const Channels &shape;
  int64_t channel, left; /* of the first, and elements of its run from here on */
  bool neighbours;       /* theirs are W neighbours that begin at a multiple of W */

  __device__ ChannelsAt(const Channels &of, int64_t i) : shape(of) {
    int64_t rest = i, plane = of.by_inner.split(rest);
    left = of.inner - rest;
    of.by_channels.split(plane);
    channel = plane;
    neighbours = of.inner == 1 && of.channels % W == 0;
  }

  /* Each one's value of an array by channel; `vector`: the array is aligned. */
  template <typename P>
  __device__ void values(const P *of, bool vector, float (&to)[W]) const {
    if (neighbours) {
      load<W>(of + channel, vector, to);
      return;
    }
    int64_t c = channel, run = left;
    to[0] = to_float(of[c]);
    for (int k = 1; k < W; k++) {
      to[k] = to[k - 1];
      if (k < run) continue;
      run += shape.inner;
      c = c + 1 < shape.channels ? c + 1 : 0;
      to[k] = to_float(of[c]);
    }
  }
};

}  // namespace planrt

#endif
