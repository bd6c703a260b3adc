/* Tensors with a channel dimension: element (o, c, i) is number (o * channels + c) * inner + i. */
#ifndef RT_CUDA_CHANNELS_CUH
#define RT_CUDA_CHANNELS_CUH

#include "common.cuh"

namespace planrt {

struct Channels {
  int64_t channels, inner;
  Divisor by_channels, by_inner;
  explicit Channels(const rt_cuda_channels &shape)
      : channels(shape.channels), inner(shape.inner), by_channels(shape.channels), by_inner(shape.inner) {}
};

inline int64_t elements_of(const rt_cuda_channels &shape) {
  return shape.outer * shape.channels * shape.inner;
}

/* Which channels W neighbours from element i on belong to. WITHIN: always to one, as runs are multiples of W and i is.
 */
template <int W, bool WITHIN>
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
    if (WITHIN) {
      float value = to_float(of[channel]);
      for (int k = 0; k < W; k++) to[k] = value;
      return;
    }
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

/* Calls `launch` with whether vectors of W elements are of one channel each, as a constant. */
template <int W, typename F>
cudaError_t with_within(const rt_cuda_channels &shape, F launch) {
  return shape.inner % W == 0 ? launch(std::true_type()) : launch(std::false_type());
}

}  // namespace planrt

#endif
