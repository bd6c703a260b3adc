/* Sums over all of a channel, for many channels at once, on two levels: blocks gather slices of channels, and a second
 * kernel merges the slices. How many slices there are, the shape alone decides.
 *
 * What is summed up is a Source:
 *   using Gather = TotalsOf<N> or MomentsOf
 *   template <int W> void terms(int64_t i, int64_t row, int64_t channel, float (&to)[Gather::TERMS][W])
 * `terms` is asked of elements i .. i + W - 1. They are of one channel where the channels' runs are longer than 1,
 * else of channels `channel` and on, in row `row`.
 * What becomes of the sums is a Finish: void operator()(int64_t channel, const Gather::Part &). */
#ifndef RT_CUDA_REDUCE_CUH
#define RT_CUDA_REDUCE_CUH

#include "channels.cuh"
#include "merge.cuh"

namespace planrt {

/* --- Slices ------------------------------------------------------------------------------------------------------- */

/* Runs of one element: a block takes `lanes` vectors of neighbouring channels, and as many rows at a time as it has
 * threads left. */
inline int lanes_of(int64_t channels) {
  int64_t vectors = channels / width_of(channels);
  int lanes = 1;
  while (lanes < WARP && lanes < vectors) lanes *= 2;
  return lanes;
}

/* Enough slices to fill a large device, but none shorter than is worth a block. */
inline int64_t slices_of(const rt_cuda_channels &shape) {
  constexpr int64_t BLOCKS = limit(2048, 128), LIMIT = limit(1024, 70), STEPS = limit(8, 1);
  int64_t across, steps;
  if (shape.inner == 1) {
    int lanes = lanes_of(shape.channels);
    across = divide_up(shape.channels, static_cast<int64_t>(lanes) * width_of(shape.channels));
    steps = divide_up(shape.outer, BLOCK / lanes);
  } else {
    across = shape.channels;
    steps = divide_up(shape.outer * shape.inner, static_cast<int64_t>(BLOCK) * width_of(shape.inner));
  }
  int64_t wanted = across > 0 ? divide_up(BLOCKS, across) : 1, worth = divide_up(steps, STEPS);
  int64_t slices = wanted < worth ? wanted : worth;
  return slices < 1 ? 1 : slices > LIMIT ? LIMIT : slices;
}

/* Bytes of workspace that `reduce` touches. */
template <typename Gather>
int64_t parts_bytes(const rt_cuda_channels &shape) {
  return slices_of(shape) * shape.channels * static_cast<int64_t>(sizeof(typename Gather::Part));
}

/* --- Kernels ------------------------------------------------------------------------------------------------------ */

/* The block's part of `count` things. */
struct Slice {
  int64_t begin, end;
  __device__ explicit Slice(int64_t count) {
    int64_t each = count / gridDim.y + (count % gridDim.y != 0);
    begin = blockIdx.y * each < count ? blockIdx.y * each : count;
    end = begin + each < count ? begin + each : count;
  }
};

/* A block for every channel and slice. */
template <int W, typename Source>
__global__ void __launch_bounds__(BLOCK)
    reduce_runs_kernel(Source source, Channels shape, int64_t positions, typename Source::Gather::Part *parts) {
  Slice slice(positions / W);
  int64_t c = blockIdx.x;
  typename Source::Gather gather;
  for (int64_t p = slice.begin + threadIdx.x; p < slice.end; p += BLOCK) {
    int64_t within = p * W, o = shape.by_inner.split(within);
    float terms[Source::Gather::TERMS][W];
    source.template terms<W>((o * shape.channels + c) * shape.inner + within, o, c, terms);
    gather.add(terms);
  }
  auto part = merged<BLOCK>(gather.part());
  if (threadIdx.x == 0) parts[blockIdx.y * shape.channels + c] = part;
}

/* A block for every `lanes` vectors of channels and every slice of rows. */
template <int W, typename Source>
__global__ void __launch_bounds__(BLOCK) reduce_columns_kernel(Source source, int64_t rows, int64_t channels, int lanes,
                                                               typename Source::Gather::Part *parts) {
  using Gather = typename Source::Gather;
  Slice slice(rows);
  int x = static_cast<int>(threadIdx.x) % lanes, y = static_cast<int>(threadIdx.x) / lanes, deep = BLOCK / lanes;
  int64_t first = static_cast<int64_t>(blockIdx.x) * lanes * W, c = first + x * W;
  Gather gather[W];
  for (int64_t r = slice.begin + y; r < slice.end && c < channels; r += deep) {
    float terms[Gather::TERMS][W], own[Gather::TERMS][1];
    source.template terms<W>(r * channels + c, r, c, terms);
    for (int k = 0; k < W; k++) {
      for (int t = 0; t < Gather::TERMS; t++) own[t][0] = terms[t][k];
      gather[k].add(own);
    }
  }
  RT_SHARED(typename Gather::Part, all, BLOCK * W);
  for (int k = 0; k < W; k++) all[threadIdx.x * W + k] = gather[k].part();
  __syncthreads();
  int columns = lanes * W, column = static_cast<int>(threadIdx.x);
  if (column >= columns || first + column >= channels) return;
  auto part = all[column];
  for (int k = 1; k < deep; k++) part.merge(all[k * columns + column]);
  parts[blockIdx.y * channels + first + column] = part;
}

/* Merges the slices of MERGED channels a block. */
constexpr int MERGED = 8;

template <typename Part, typename Finish>
__global__ void __launch_bounds__(BLOCK)
    merge_slices_kernel(const Part *parts, int64_t channels, int64_t slices, Finish finish) {
  constexpr int DEEP = BLOCK / MERGED;
  int x = static_cast<int>(threadIdx.x) % MERGED, y = static_cast<int>(threadIdx.x) / MERGED;
  int64_t c = static_cast<int64_t>(blockIdx.x) * MERGED + x;
  RT_SHARED(Part, all, BLOCK);
  if (c < channels && y < slices) {
    Part part = parts[y * channels + c];
    for (int64_t s = y + DEEP; s < slices; s += DEEP) part.merge(parts[s * channels + c]);
    all[threadIdx.x] = part;
  }
  __syncthreads();
  if (y > 0 || c >= channels) return;
  Part part = all[x];
  for (int k = 1; k < DEEP && k < slices; k++) part.merge(all[k * MERGED + x]);
  finish(c, part);
}

/* --- Launching ---------------------------------------------------------------------------------------------------- */

template <typename Source, typename Finish>
cudaError_t reduce(cudaStream_t stream, const rt_cuda_channels &shape, const Source &source, const Finish &finish,
                   void *workspace) {
  using Part = typename Source::Gather::Part;
  if (shape.channels <= 0) return cudaSuccess;
  if (shape.channels > INT32_MAX) return cudaErrorInvalidValue;
  Part *parts = static_cast<Part *>(workspace);
  int64_t slices = slices_of(shape);
  cudaError_t code = with_width(shape.inner == 1 ? shape.channels : shape.inner, [&](auto width) {
    constexpr int W = decltype(width)::value;
    if (shape.inner == 1) {
      int lanes = lanes_of(shape.channels);
      dim3 grid(static_cast<unsigned>(divide_up(shape.channels, lanes * W)), static_cast<unsigned>(slices));
      auto kernel = &reduce_columns_kernel<W, Source>;
      return RT_LAUNCH(kernel, grid, BLOCK, 0, stream, source, shape.outer, shape.channels, lanes, parts);
    }
    dim3 grid(static_cast<unsigned>(shape.channels), static_cast<unsigned>(slices));
    auto kernel = &reduce_runs_kernel<W, Source>;
    return RT_LAUNCH(kernel, grid, BLOCK, 0, stream, source, Channels(shape), shape.outer * shape.inner, parts);
  });
  if (code != cudaSuccess) return code;
  unsigned blocks = static_cast<unsigned>(divide_up(shape.channels, MERGED));
  auto kernel = &merge_slices_kernel<Part, Finish>;
  return RT_LAUNCH(kernel, blocks, BLOCK, 0, stream, parts, shape.channels, slices, finish);
}

}  // namespace planrt

#endif
