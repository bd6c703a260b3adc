/* Max and average pooling over windows of a padded image. Gradients are gathered: every input adds up, in the order of
 * the outputs, what the windows that it lies in give it. */
#include <algorithm>

#include "images.cuh"

namespace planrt {
namespace {

template <typename Index>
struct Range {
  Index begin, end;
};

/* One direction of the images. KERNEL and STRIDE are constants that loops over windows unroll by, or 0: any. */
template <typename Index, int KERNEL, int STRIDE>
struct Axis {
  Index any_kernel, any_stride, any_holders, pad, inputs, outputs;
  DivisorOf<Index> by_stride;
  Axis(int64_t kernel_, int64_t stride_, int64_t pad_, int64_t inputs_, int64_t outputs_)
      : any_kernel(static_cast<Index>(kernel_)),
        any_stride(static_cast<Index>(stride_)),
        any_holders(static_cast<Index>(divide_up(kernel_, stride_))),
        pad(static_cast<Index>(pad_)),
        inputs(static_cast<Index>(inputs_)),
        outputs(static_cast<Index>(outputs_)),
        by_stride(stride_) {}
  __device__ Index kernel() const { return KERNEL > 0 ? KERNEL : any_kernel; }
  __device__ Index stride() const { return STRIDE > 0 ? STRIDE : any_stride; }
  /* The most outputs whose windows hold an input. */
  __device__ Index most_holders() const { return STRIDE > 0 ? (KERNEL + STRIDE - 1) / STRIDE : any_holders; }
  /* Where an output's window begins, which may be in front of the image. */
  __device__ Index corner(Index output) const { return output * stride() - pad; }
  /* The part of an output's window that lies in the image. */
  __device__ Range<Index> window(Index output) const {
    Index begin = corner(output), end = begin + kernel();
    return {begin > 0 ? begin : 0, end < inputs ? end : inputs};
  }
  __device__ Index strides_in(Index distance) const {
    using Word = std::make_unsigned_t<Index>;
    return STRIDE > 0 ? static_cast<Index>(static_cast<Word>(distance) / STRIDE) : by_stride.quotient(distance);
  }
  /* The outputs whose windows hold an input. */
  __device__ Range<Index> holders(Index input) const {
    Index last = input + pad, past = last - kernel() + stride(), end = strides_in(last) + 1;
    return {past > 0 ? strides_in(past) : 0, end < outputs ? end : outputs};
  }
};

template <typename Index, int KERNEL = 0, int STRIDE = 0>
struct Pooling {
  Axis<Index, KERNEL, STRIDE> rows, columns;
  Strides<Index> in, out;
  explicit Pooling(const rt_cuda_pooling &of)
      : rows(of.kernel_h, of.stride_h, of.pad_h, of.in.h, of.out.h),
        columns(of.kernel_w, of.stride_w, of.pad_w, of.in.w, of.out.w),
        in(of.in, of.channels_last),
        out(of.out, of.channels_last) {}
};

bool small_windows(const rt_cuda_pooling &of) {
  return std::max({of.kernel_h, of.kernel_w, of.stride_h, of.stride_w, of.pad_h, of.pad_w}) <= SMALL;
}

bool few(const rt_cuda_pooling &of) {
  return few_elements(of.in, of.out) && small_windows(of);
}

/* --- Largest ------------------------------------------------------------------------------------------------------ */

template <typename T, typename Index>
struct MaxPool {
  Pooling<Index> of;
  const T *x;
  T *y;
  template <int W>
  __device__ void apply(Index n, Index c, Index p, Index q, bool vector) const {
    Range<Index> rows = of.rows.window(p), columns = of.columns.window(q);
    float best[W], v[W];
    load<W>(x + of.in.at(n, c, rows.begin, columns.begin), vector, best);
    for (Index i = rows.begin; i < rows.end; i++)
      for (Index j = columns.begin; j < columns.end; j++) {
        load<W>(x + of.in.at(n, c, i, j), vector, v);
        for (int k = 0; k < W; k++) best[k] = v[k] > best[k] ? v[k] : best[k];
      }
    store<W>(y + of.out.at(n, c, p, q), vector, best);
  }
};

/* An input gets a window's gradient when it is the first that equals the window's maximum; one that is not a number is
 * the window's first element, which nothing was larger than. */
template <typename T, typename Index>
struct MaxPoolGrad {
  Pooling<Index> of;
  const T *x, *y, *dy;
  T *dx;

  template <int W>
  __device__ void apply(Index n, Index c, Index row, Index column, bool vector) const {
    Range<Index> rows = of.rows.holders(row), columns = of.columns.holders(column);
    float sum[W] = {}, own[W], most[W], v[W];
    load<W>(x + of.in.at(n, c, row, column), vector, own);
    for (Index p = rows.begin; p < rows.end; p++)
      for (Index q = columns.begin; q < columns.end; q++) {
        Range<Index> down = of.rows.window(p), across = of.columns.window(q);
        bool begins = row == down.begin && column == across.begin, takes[W], any = false;
        load<W>(y + of.out.at(n, c, p, q), vector, most);
        for (int k = 0; k < W; k++) any |= takes[k] = isnan(most[k]) ? begins : own[k] == most[k];
        if (!any) continue;
        for (Index i = down.begin; i <= row; i++)
          for (Index j = across.begin; j < (i < row ? across.end : column); j++) {
            load<W>(x + of.in.at(n, c, i, j), vector, v);
            for (int k = 0; k < W; k++) takes[k] &= v[k] != most[k];
          }
        load<W>(dy + of.out.at(n, c, p, q), vector, v);
        for (int k = 0; k < W; k++) sum[k] += takes[k] ? v[k] : 0.0F; /* no sum is -0, which that would change */
      }
    store<W>(dx + of.in.at(n, c, row, column), vector, sum);
  }
};

/* --- Largest, in tiles -------------------------------------------------------------------------------------------- */

/* Where a channel has a plane of its own, a block takes a tile of its inputs. It finds the first maximum of each window
 * that touches the tile once, where the kernel above does for each of the window's inputs, and leaves in shared memory
 * where in the window it is. */
constexpr int TILE_ROWS = 32, TILE_WINDOWS = 5120, MOST_PLACES = 255;

struct Tile {
  int32_t row, column;
  Range<int32_t> p, q; /* the windows that touch it */
};

template <typename T, int KERNEL, int STRIDE>
struct MaxPoolTiles {
  Pooling<int32_t, KERNEL, STRIDE> of;
  SmallDivisor by_tiles, by_windows, by_width; /* tiles in a row of them; windows in a row of a tile, and inputs */
  int32_t rows_at_a_time;
  int64_t planes;
  const T *x, *dy;
  T *dx;

  __device__ Tile tile(int32_t number) const {
    int32_t row = by_tiles.split(number) * TILE_ROWS, width = static_cast<int32_t>(by_width.divisor);
    int32_t column = number * width;
    return {row,
            column,
            {of.rows.holders(row).begin, of.rows.holders(row + TILE_ROWS - 1).end},
            {of.columns.holders(column).begin, of.columns.holders(column + width - 1).end}};
  }

  /* The place of a window's first maximum, in the window as if none of it lay outside the image. A first element that
   * is not a number stays; outside there is nothing that is greater than anything. */
  __device__ int32_t largest(const T *plane, int32_t p, int32_t q) const {
    int32_t top = of.rows.corner(p), left = of.columns.corner(q);
    int32_t i = top < 0 ? -top : 0, j = left < 0 ? -left : 0, place = i * of.columns.kernel() + j;
    float best = to_float(plane[(top + i) * of.in.w + left + j]);
    for (i = 0; i < of.rows.kernel(); i++)
      for (j = 0; j < of.columns.kernel(); j++) {
        bool inside = top + i >= 0 && top + i < of.in.h && left + j >= 0 && left + j < of.in.w;
        float v = inside ? to_float(plane[(top + i) * of.in.w + left + j]) : -INFINITY;
        if (v > best) best = v, place = i * of.columns.kernel() + j;
      }
    return place;
  }

  __device__ void find(const Tile &tile, const T *plane, uint8_t *places) const {
    int32_t windows = (tile.p.end - tile.p.begin) * static_cast<int32_t>(by_windows.divisor);
    for (int32_t w = static_cast<int32_t>(threadIdx.x); w < windows; w += BLOCK) {
      int32_t q = w, p = by_windows.split(q);
      q += tile.q.begin;
      if (q < tile.q.end) places[w] = static_cast<uint8_t>(largest(plane, tile.p.begin + p, q));
    }
  }

  /* What an input gets of the windows p and q that hold it. */
  __device__ float sum(const Tile &tile, const T *outputs, const uint8_t *places, int32_t row, int32_t column,
                       Range<int32_t> q) const {
    Range<int32_t> p = of.rows.holders(row);
    int32_t windows = static_cast<int32_t>(by_windows.divisor);
    int32_t window = (p.begin - tile.p.begin) * windows + q.begin - tile.q.begin, at = p.begin * of.out.w + q.begin;
    int32_t place = (row - of.rows.corner(p.begin)) * of.columns.kernel() + column - of.columns.corner(q.begin);
    float sum = 0.0F;
    for (int32_t i = 0; i < of.rows.most_holders(); i++)
      for (int32_t j = 0; j < of.columns.most_holders(); j++) {
        int32_t there = place - i * of.rows.stride() * of.columns.kernel() - j * of.columns.stride();
        bool holds = p.begin + i < p.end && q.begin + j < q.end;
        bool takes = places[window + i * windows + j] == there && holds; /* in this order there is no branch */
        sum += takes ? to_float(outputs[at + i * of.out.w + j]) : 0.0F;  /* no sum is -0, which that would change */
      }
    return sum;
  }

  __device__ void gather(const Tile &tile, const T *outputs, const uint8_t *places, T *inputs) const {
    int32_t x = static_cast<int32_t>(threadIdx.x), y = by_width.split(x);
    int32_t column = tile.column + x;
    if (column >= of.in.w) return;
    Range<int32_t> q = of.columns.holders(column);
    for (int32_t row = tile.row + y; row < tile.row + TILE_ROWS && row < of.in.h; row += rows_at_a_time)
      inputs[row * of.in.w + column] = from_float<T>(sum(tile, outputs, places, row, column, q));
  }
};

template <typename Op, typename T>
__global__ void __launch_bounds__(BLOCK) maxpool_tiles_kernel(Op op) {
  RT_SHARED(uint8_t, places, TILE_WINDOWS);
  Tile tile = op.tile(static_cast<int32_t>(blockIdx.x));
  int64_t in = op.of.in.sc, out = op.of.out.sc;
  const T *x = op.x + blockIdx.y * in, *dy = op.dy + blockIdx.y * out;
  T *dx = op.dx + blockIdx.y * in;
  for (int64_t plane = blockIdx.y; plane < op.planes; plane += gridDim.y) {
    op.find(tile, x, places);
    __syncthreads();
    op.gather(tile, dy, places, dx);
    __syncthreads(); /* all places have been read */
    x += gridDim.y * in, dy += gridDim.y * out, dx += gridDim.y * in;
  }
}

/* --- Average ------------------------------------------------------------------------------------------------------ */

template <typename T, typename Index>
struct AvgPool {
  Pooling<Index> of;
  const T *x;
  T *y;
  float area;
  template <int W>
  __device__ void apply(Index n, Index c, Index p, Index q, bool vector) const {
    Range<Index> rows = of.rows.window(p), columns = of.columns.window(q);
    float sum[W] = {}, v[W];
    for (Index i = rows.begin; i < rows.end; i++)
      for (Index j = columns.begin; j < columns.end; j++) {
        load<W>(x + of.in.at(n, c, i, j), vector, v);
        for (int k = 0; k < W; k++) sum[k] += v[k];
      }
    for (int k = 0; k < W; k++) sum[k] /= area;
    store<W>(y + of.out.at(n, c, p, q), vector, sum);
  }
};

template <typename T, typename Index>
struct AvgPoolGrad {
  Pooling<Index> of;
  const T *dy;
  T *dx;
  float area;
  template <int W>
  __device__ void apply(Index n, Index c, Index row, Index column, bool vector) const {
    Range<Index> rows = of.rows.holders(row), columns = of.columns.holders(column);
    float sum[W] = {}, v[W];
    for (Index p = rows.begin; p < rows.end; p++)
      for (Index q = columns.begin; q < columns.end; q++) {
        load<W>(dy + of.out.at(n, c, p, q), vector, v);
        for (int k = 0; k < W; k++) sum[k] += v[k] / area;
      }
    store<W>(dx + of.in.at(n, c, row, column), vector, sum);
  }
};

float area_of(const rt_cuda_pooling &of) {
  return static_cast<float>(of.kernel_h * of.kernel_w);
}

/* --- Tiles -------------------------------------------------------------------------------------------------------- */

int64_t tile_width(const rt_cuda_pooling &of) {
  return of.in.w <= 16 ? 16 : of.in.w <= 32 ? 32 : 64;
}

/* The most windows that touch `inputs` neighbours. */
int64_t windows_of(int64_t inputs, int64_t kernel, int64_t stride) {
  return divide_up(inputs + kernel - 1, stride);
}

/* Whether places of windows, and as many behind the last as an input looks at, fit into the array. */
bool has_tiles(const rt_cuda_pooling &of) {
  if (of.channels_last || !small_windows(of) || of.kernel_h * of.kernel_w > MOST_PLACES) return false;
  if (std::max(of.in.h * of.in.w, of.out.h * of.out.w) >= COUNTABLE) return false;
  int64_t down = windows_of(TILE_ROWS, of.kernel_h, of.stride_h) + divide_up(of.kernel_h, of.stride_h) + 1;
  return down * windows_of(tile_width(of), of.kernel_w, of.stride_w) <= TILE_WINDOWS;
}

template <typename Op, typename T>
cudaError_t maxpool_tiles(cudaStream_t stream, const rt_cuda_pooling &of, const T *x, const T *dy, T *dx) {
  constexpr int64_t MOST_DOWN = 65535; /* blocks of a grid's y */
  int64_t planes = of.in.n * of.in.c, width = tile_width(of);
  int64_t across = divide_up(of.in.w, width), tiles = across * divide_up(of.in.h, TILE_ROWS);
  if (planes <= 0 || tiles <= 0) return cudaSuccess;
  int64_t down = std::min({planes, MOST_DOWN, std::max<int64_t>(MOST_BLOCKS / tiles, 1)});
  SmallDivisor by_windows(windows_of(width, of.kernel_w, of.stride_w));
  Op op{decltype(Op::of)(of),
        SmallDivisor(across),
        by_windows,
        SmallDivisor(width),
        static_cast<int32_t>(BLOCK / width),
        planes,
        x,
        dy,
        dx};
  auto kernel = &maxpool_tiles_kernel<Op, T>;
  dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(down));
  return RT_LAUNCH(kernel, grid, BLOCK, 0, stream, op);
}

bool is_square(const rt_cuda_pooling &of, int64_t kernel, int64_t stride) {
  return of.kernel_h == kernel && of.kernel_w == kernel && of.stride_h == stride && of.stride_w == stride;
}

}  // namespace
}  // namespace planrt

using namespace planrt;

cudaError_t rt_cuda_maxpool(cudaStream_t stream, rt_cuda_dtype dtype, const rt_cuda_pooling *of, const void *x,
                            void *y) {
  return with_numbers(dtype, few(*of), [&](auto tag, auto index) {
    using T = decltype(tag);
    using Index = decltype(index);
    MaxPool<T, Index> op{Pooling<Index>(*of), static_cast<const T *>(x), static_cast<T *>(y)};
    return for_image<vector_width<T>(), Index>(stream, of->out, of->channels_last, aligned(x, y), op);
  });
}

cudaError_t rt_cuda_maxpool_grad(cudaStream_t stream, rt_cuda_dtype dtype, const rt_cuda_pooling *of, const void *x,
                                 const void *y, const void *dy, void *dx) {
  if (has_tiles(*of))
    return with_type(dtype, [&](auto tag) {
      using T = decltype(tag);
      const T *in = static_cast<const T *>(x), *from = static_cast<const T *>(dy);
      T *to = static_cast<T *>(dx);
      if (is_square(*of, 2, 2)) return maxpool_tiles<MaxPoolTiles<T, 2, 2>>(stream, *of, in, from, to);
      if (is_square(*of, 3, 1)) return maxpool_tiles<MaxPoolTiles<T, 3, 1>>(stream, *of, in, from, to);
      if (is_square(*of, 3, 2)) return maxpool_tiles<MaxPoolTiles<T, 3, 2>>(stream, *of, in, from, to);
      return maxpool_tiles<MaxPoolTiles<T, 0, 0>>(stream, *of, in, from, to);
    });
  return with_numbers(dtype, few(*of), [&](auto tag, auto index) {
    using T = decltype(tag);
    using Index = decltype(index);
    MaxPoolGrad<T, Index> op{Pooling<Index>(*of), static_cast<const T *>(x), static_cast<const T *>(y),
                             static_cast<const T *>(dy), static_cast<T *>(dx)};
    return for_image<vector_width<T>(), Index>(stream, of->in, of->channels_last, aligned(x, y, dy, dx), op);
  });
}

cudaError_t rt_cuda_avgpool(cudaStream_t stream, rt_cuda_dtype dtype, const rt_cuda_pooling *of, const void *x,
                            void *y) {
  return with_numbers(dtype, few(*of), [&](auto tag, auto index) {
    using T = decltype(tag);
    using Index = decltype(index);
    AvgPool<T, Index> op{Pooling<Index>(*of), static_cast<const T *>(x), static_cast<T *>(y), area_of(*of)};
    return for_image<vector_width<T>(), Index>(stream, of->out, of->channels_last, aligned(x, y), op);
  });
}

cudaError_t rt_cuda_avgpool_grad(cudaStream_t stream, rt_cuda_dtype dtype, const rt_cuda_pooling *of, const void *dy,
                                 void *dx) {
  return with_numbers(dtype, few(*of), [&](auto tag, auto index) {
    using T = decltype(tag);
    using Index = decltype(index);
    AvgPoolGrad<T, Index> op{Pooling<Index>(*of), static_cast<const T *>(dy), static_cast<T *>(dx), area_of(*of)};
    return for_image<vector_width<T>(), Index>(stream, of->in, of->channels_last, aligned(dy, dx), op);
  });
}
