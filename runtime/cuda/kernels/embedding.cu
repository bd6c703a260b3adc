/* The gradient of an embedding's table: for every entry the sum of its rows' gradients. Rows are sorted by entry first,
 * by a radix sort that keeps the order of equals: every block counts its digits, the counts are added up, and every
 * block puts its rows where the counts say. */
#include <utility>

#include "merge.cuh"

namespace planrt {
namespace {

constexpr int DIGITS = 16, DIGIT_BITS = 4;
constexpr int ROWS_PER_THREAD = 8, ROWS_PER_BLOCK = BLOCK * ROWS_PER_THREAD;
constexpr int COUNTERS = DIGITS * BLOCK, COUNTERS_PER_THREAD = COUNTERS / BLOCK;

/* A row and its entry; ids outside the table are of an entry behind its last. */
struct Row {
  uint32_t entry, row;
};

/* --- Sorting ------------------------------------------------------------------------------------------------------ */

/* What the threads before this one have in sum. For whole blocks. */
__device__ inline uint32_t sum_before(uint32_t own) {
  RT_SHARED(uint32_t, of_warp, BLOCK / WARP);
  uint32_t sum = own, lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  for (uint32_t distance = 1; distance < WARP; distance *= 2) {
    uint32_t other = __shfl_up_sync(~0U, sum, distance);
    if (lane >= distance) sum += other;
  }
  __syncthreads();
  if (lane == WARP - 1) of_warp[warp] = sum;
  __syncthreads();
  for (uint32_t w = 0; w < warp; w++) sum += of_warp[w];
  return sum - own;
}

/* The block's rows, ROWS_PER_THREAD neighbours a thread. */
struct Rows {
  const int64_t *ids; /* of the first pass; later passes have rows */
  const Row *rows;
  uint32_t entries;
  int shift;
  int64_t count;
  __device__ int64_t begin() const {
    return static_cast<int64_t>(blockIdx.x) * ROWS_PER_BLOCK + threadIdx.x * ROWS_PER_THREAD;
  }
  __device__ int64_t end() const { return begin() + ROWS_PER_THREAD < count ? begin() + ROWS_PER_THREAD : count; }
  __device__ Row at(int64_t i) const {
    if (rows) return rows[i];
    int64_t id = ids[i];
    return {id >= 0 && id < entries ? static_cast<uint32_t>(id) : entries, static_cast<uint32_t>(i)};
  }
  __device__ uint32_t digit(const Row &row) const { return row.entry >> shift & (DIGITS - 1); }
};

/* counters[d * BLOCK + t]: rows of this block with a smaller digit than d, or with d in threads before t. */
__device__ inline void count_digits(const Rows &of, uint32_t *counters) {
  for (int d = 0; d < DIGITS; d++) counters[d * BLOCK + threadIdx.x] = 0;
  for (int64_t i = of.begin(); i < of.end(); i++) counters[of.digit(of.at(i)) * BLOCK + threadIdx.x]++;
  __syncthreads();
  uint32_t *mine = counters + threadIdx.x * COUNTERS_PER_THREAD, sum = 0;
  for (int k = 0; k < COUNTERS_PER_THREAD; k++) sum += mine[k];
  sum = sum_before(sum);
  for (int k = 0; k < COUNTERS_PER_THREAD; k++) {
    uint32_t count = mine[k];
    mine[k] = sum;
    sum += count;
  }
  __syncthreads();
}

/* counts[d * blocks + b]: rows with digit d in block b. */
__global__ void __launch_bounds__(BLOCK) count_kernel(Rows of, uint32_t *counts) {
  RT_SHARED(uint32_t, counters, COUNTERS);
  count_digits(of, counters);
  int64_t first = static_cast<int64_t>(blockIdx.x) * ROWS_PER_BLOCK;
  uint32_t all = static_cast<uint32_t>(of.count - first < ROWS_PER_BLOCK ? of.count - first : ROWS_PER_BLOCK);
  uint32_t d = threadIdx.x;
  if (d < DIGITS)
    counts[d * gridDim.x + blockIdx.x] = (d + 1 < DIGITS ? counters[(d + 1) * BLOCK] : all) - counters[d * BLOCK];
}

/* Turns counts into sums of those before. One block. */
__global__ void __launch_bounds__(BLOCK) sum_counts_kernel(uint32_t *counts, int64_t n) {
  int64_t each = n / BLOCK + (n % BLOCK != 0), begin = each * threadIdx.x, end = begin + each < n ? begin + each : n;
  uint32_t sum = 0;
  for (int64_t i = begin; i < end; i++) sum += counts[i];
  sum = sum_before(sum);
  for (int64_t i = begin; i < end; i++) {
    uint32_t count = counts[i];
    counts[i] = sum;
    sum += count;
  }
}

__global__ void __launch_bounds__(BLOCK) place_kernel(Rows of, const uint32_t *counts, Row *sorted) {
  RT_SHARED(uint32_t, counters, COUNTERS);
  RT_SHARED(uint32_t, starts, DIGITS);
  count_digits(of, counters);
  if (threadIdx.x < DIGITS) starts[threadIdx.x] = counters[threadIdx.x * BLOCK];
  __syncthreads();
  for (int64_t i = of.begin(); i < of.end(); i++) {
    Row row = of.at(i);
    uint32_t d = of.digit(row), rank = counters[d * BLOCK + threadIdx.x]++ - starts[d];
    sorted[counts[d * gridDim.x + blockIdx.x] + rank] = row;
  }
}

/* --- Summing up --------------------------------------------------------------------------------------------------- */

/* The first of the sorted rows whose entry is not below `entry`. */
__device__ inline int64_t lower_bound(const Row *sorted, int64_t count, uint32_t entry) {
  int64_t low = 0;
  while (count > 0) {
    int64_t half = count / 2;
    if (sorted[low + half].entry < entry) {
      low += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return low;
}

/* How a block's threads stand on an entry's rows: `across` of them side by side on a row's columns, W at a time, and as
 * many such lanes as there is room for, each on every `lanes`th row. There are several only where they are done with a
 * row in one step. */
struct Team {
  int across, lanes;
  Team(int64_t width, int at_a_time) : across(1) {
    while (across < BLOCK && static_cast<int64_t>(across) * at_a_time < width) across *= 2;
    lanes = BLOCK / across;
  }
};

/* A block takes an entry. What its lanes have is added up along a tree, so that the order depends on sizes alone. */
template <int W, typename T, typename P>
__global__ void __launch_bounds__(BLOCK)
    sum_rows_kernel(const Row *sorted, int64_t rows, int64_t entries, int64_t width, Team of, const T *grads, P *table,
                    bool accumulate, bool vector, bool vector_table) {
  RT_SHARED(float, parts, BLOCK *W);
  int column = static_cast<int>(threadIdx.x) % of.across, lane = static_cast<int>(threadIdx.x) / of.across;
  float *mine = parts + static_cast<int>(threadIdx.x) * W;
  for (int64_t e = blockIdx.x; e < entries; e += gridDim.x) {
    int64_t begin = lower_bound(sorted, rows, static_cast<uint32_t>(e));
    int64_t end = begin + lower_bound(sorted + begin, rows - begin, static_cast<uint32_t>(e + 1));
    if (accumulate && begin == end) continue;
    for (int64_t first = 0; first < width; first += static_cast<int64_t>(of.across) * W) {
      int64_t c = first + static_cast<int64_t>(column) * W;
      float sum[W] = {}, v[W];
      for (int64_t s = begin + lane; c < width && s < end; s += of.lanes) {
        load<W>(grads + static_cast<int64_t>(sorted[s].row) * width + c, vector, v);
        for (int k = 0; k < W; k++) sum[k] += v[k];
      }
      for (int k = 0; k < W; k++) mine[k] = sum[k];
      for (int half = of.lanes / 2; half > 0; half /= 2) {
        __syncthreads();
        for (int k = 0; k < W && lane < half; k++) mine[k] += mine[half * of.across * W + k];
      }
      if (lane > 0 || c >= width) continue;
      for (int k = 0; k < W; k++) sum[k] = mine[k];
      if (accumulate) {
        load<W>(table + e * width + c, vector_table, v);
        for (int k = 0; k < W; k++) sum[k] += v[k];
      }
      store<W>(table + e * width + c, vector_table, sum);
    }
    __syncthreads();
  }
}

/* The workspace: rows before and after a pass, then the counts. */
int64_t blocks_of(int64_t rows) {
  return rows / ROWS_PER_BLOCK + (rows % ROWS_PER_BLOCK != 0);
}

}  // namespace
}  // namespace planrt

using namespace planrt;

int64_t rt_cuda_embedding_grad_workspace(int64_t rows) {
  return 2 * rows * static_cast<int64_t>(sizeof(Row)) +
         DIGITS * blocks_of(rows) * static_cast<int64_t>(sizeof(uint32_t));
}

cudaError_t rt_cuda_embedding_grad(cudaStream_t stream, rt_cuda_dtype dtype, rt_cuda_dtype table_dtype, int64_t rows,
                                   int64_t entries, int64_t width, const int64_t *ids, const void *grads, void *table,
                                   bool accumulate, void *workspace) {
  if (entries <= 0 || width <= 0) return cudaSuccess;
  if (rows > INT32_MAX || entries > INT32_MAX) return cudaErrorInvalidValue;
  Row *sorted = static_cast<Row *>(workspace), *other = sorted + rows;
  uint32_t *counts = reinterpret_cast<uint32_t *>(sorted + 2 * rows);
  unsigned blocks = static_cast<unsigned>(blocks_of(rows));
  Rows of{ids, nullptr, static_cast<uint32_t>(entries), 0, rows};
  for (; blocks > 0 && of.shift < 32 && (entries >> of.shift) > 0; of.shift += DIGIT_BITS) {
    cudaError_t code = RT_LAUNCH(count_kernel, blocks, BLOCK, 0, stream, of, counts);
    if (code != cudaSuccess) return code;
    code = RT_LAUNCH(sum_counts_kernel, 1, BLOCK, 0, stream, counts, static_cast<int64_t>(DIGITS) * blocks);
    if (code != cudaSuccess) return code;
    code = RT_LAUNCH(place_kernel, blocks, BLOCK, 0, stream, of, counts, other);
    if (code != cudaSuccess) return code;
    std::swap(sorted, other);
    of.rows = sorted;
  }
  return with_types(dtype, table_dtype, [&](auto tag, auto table_tag) {
    using T = decltype(tag);
    using P = decltype(table_tag);
    return with_width(width, [&](auto constant) {
      auto kernel = &sum_rows_kernel<decltype(constant)::value, T, P>;
      return RT_LAUNCH(kernel, blocks_for(entries, 1), BLOCK, 0, stream, sorted, rows, entries, width,
                       Team(width, decltype(constant)::value), static_cast<const T *>(grads), static_cast<P *>(table),
                       accumulate, aligned(grads), aligned(table));
    });
  });
}
