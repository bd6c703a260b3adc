/* Copies that change the order of things: rows with gaps between them, pixels with gaps between them, exchanged
 * dimensions, rows by number. Bytes move in the largest units that sizes and addresses allow. */
#include "common.cuh"

namespace planrt {
namespace {

/* --- Units -------------------------------------------------------------------------------------------------------- */

/* Calls `launch` with a value of a type of 16, 8, 4 or 2 bytes of which every one of `multiples` is a multiple. */
template <typename F, typename... Multiples>
cudaError_t with_unit(F launch, Multiples... multiples) {
  uint64_t all = (static_cast<uint64_t>(multiples) | ...);
  if (all % 16 == 0) return launch(uint4());
  if (all % 8 == 0) return launch(uint64_t());
  if (all % 4 == 0) return launch(uint32_t());
  return launch(uint16_t());
}

uint64_t address(const void *pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

/* --- Rows --------------------------------------------------------------------------------------------------------- */

template <typename Unit>
__global__ void __launch_bounds__(BLOCK) copy_rows_kernel(Unit *to, int64_t to_stride, const Unit *from,
                                                          int64_t from_stride, int64_t units, Divisor by_length) {
  for (int64_t i = first_thread(); i < units; i += all_threads()) {
    int64_t within = i, row = by_length.split(within);
    to[row * to_stride + within] = from[row * from_stride + within];
  }
}

/* A row of the table for every id, zeros for one that it does not have. */
template <typename Unit>
__global__ void __launch_bounds__(BLOCK) gather_rows_kernel(Unit *to, const Unit *table, const int64_t *ids,
                                                            int64_t entries, int64_t units, Divisor by_length) {
  for (int64_t i = first_thread(); i < units; i += all_threads()) {
    int64_t within = i, row = by_length.split(within), id = ids[row];
    to[i] = id >= 0 && id < entries ? table[id * static_cast<int64_t>(by_length.divisor) + within] : Unit();
  }
}

/* --- Pixels ------------------------------------------------------------------------------------------------------- */

/* Units of a pixel, pixels of a row and rows of a plane, of what is dense. */
struct Dense {
  Divisor by_length, by_columns, by_rows;
};

template <typename Unit>
__global__ void __launch_bounds__(BLOCK)
    pick_kernel(Unit *to, const Unit *from, int64_t units, rt_cuda_lattice of, Dense dense) {
  for (int64_t i = first_thread(); i < units; i += all_threads()) {
    int64_t k = i, column = dense.by_length.split(k), row = dense.by_columns.split(column);
    int64_t plane = dense.by_rows.split(row);
    int64_t pixel = (plane * of.h + row * of.stride_h) * of.w + column * of.stride_w;
    to[i] = from[pixel * static_cast<int64_t>(dense.by_length.divisor) + k];
  }
}

template <typename Unit>
__global__ void __launch_bounds__(BLOCK) set_apart_kernel(Unit *to, const Unit *from, int64_t units, rt_cuda_lattice of,
                                                          Dense dense, Divisor by_stride_w, Divisor by_stride_h) {
  for (int64_t i = first_thread(); i < units; i += all_threads()) {
    int64_t k = i, column = dense.by_length.split(k), row = dense.by_columns.split(column);
    int64_t plane = dense.by_rows.split(row), q = by_stride_w.split(column), p = by_stride_h.split(row);
    int64_t pixel = (plane * of.rows + p) * of.columns + q;
    to[i] = column == 0 && row == 0 ? from[pixel * static_cast<int64_t>(dense.by_length.divisor) + k] : Unit();
  }
}

/* --- Exchanged dimensions ----------------------------------------------------------------------------------------- */

/* to[o, j, i, k] = from[o, i, j, k] where k counts the units of an element. */
template <typename Unit>
__global__ void __launch_bounds__(BLOCK) transpose_kernel(Unit *to, const Unit *from, int64_t units, Divisor by_length,
                                                          Divisor by_rows, Divisor by_columns) {
  int64_t rows = static_cast<int64_t>(by_rows.divisor), columns = static_cast<int64_t>(by_columns.divisor);
  for (int64_t at = first_thread(); at < units; at += all_threads()) {
    int64_t k = at, i = by_length.split(k), j = by_rows.split(i), o = by_columns.split(j);
    to[at] = from[((o * rows + i) * columns + j) * static_cast<int64_t>(by_length.divisor) + k];
  }
}

constexpr int TILE = WARP;

/* The same for elements of one unit, through tiles in shared memory: neighbours are read and neighbours are written. */
template <typename Unit>
__global__ void __launch_bounds__(BLOCK)
    transpose_tiles_kernel(Unit *to, const Unit *from, int64_t outer, int64_t rows, int64_t columns,
                           int64_t tiles_across, int64_t tiles_down) {
  RT_SHARED(Unit, tile, TILE * (TILE + 1)); /* a column more, so that a column's elements lie in different banks */
  int x = static_cast<int>(threadIdx.x) % TILE, y = static_cast<int>(threadIdx.x) / TILE;
  for (int64_t t = blockIdx.x; t < outer * tiles_across * tiles_down; t += gridDim.x) {
    int64_t column = t % tiles_across * TILE, row = t / tiles_across % tiles_down * TILE;
    int64_t first = t / tiles_across / tiles_down * rows * columns;
    for (int k = y; k < TILE && row + k < rows; k += BLOCK / TILE)
      if (column + x < columns) tile[k * (TILE + 1) + x] = from[first + (row + k) * columns + column + x];
    __syncthreads();
    for (int k = y; k < TILE && column + k < columns; k += BLOCK / TILE)
      if (row + x < rows) to[first + (column + k) * rows + row + x] = tile[x * (TILE + 1) + k];
    __syncthreads();
  }
}

}  // namespace
}  // namespace planrt

using namespace planrt;

cudaError_t rt_cuda_copy_rows(cudaStream_t stream, void *to, int64_t to_stride, const void *from, int64_t from_stride,
                              int64_t rows, int64_t bytes) {
  if (rows <= 0 || bytes <= 0) return cudaSuccess;
  return with_unit(
      [&](auto tag) {
        using Unit = decltype(tag);
        constexpr int64_t SIZE = sizeof(Unit);
        int64_t units = rows * (bytes / SIZE);
        auto kernel = &copy_rows_kernel<Unit>;
        return RT_LAUNCH(kernel, blocks_for(units), BLOCK, 0, stream, static_cast<Unit *>(to), to_stride / SIZE,
                         static_cast<const Unit *>(from), from_stride / SIZE, units, Divisor(bytes / SIZE));
      },
      bytes, to_stride, from_stride, address(to), address(from));
}

cudaError_t rt_cuda_gather_rows(cudaStream_t stream, void *to, const void *table, const int64_t *ids, int64_t rows,
                                int64_t entries, int64_t bytes) {
  if (rows <= 0 || bytes <= 0) return cudaSuccess;
  return with_unit(
      [&](auto tag) {
        using Unit = decltype(tag);
        constexpr int64_t SIZE = sizeof(Unit);
        int64_t units = rows * (bytes / SIZE);
        auto kernel = &gather_rows_kernel<Unit>;
        return RT_LAUNCH(kernel, blocks_for(units), BLOCK, 0, stream, static_cast<Unit *>(to),
                         static_cast<const Unit *>(table), ids, entries, units, Divisor(bytes / SIZE));
      },
      bytes, address(to), address(table));
}

cudaError_t rt_cuda_pick(cudaStream_t stream, const rt_cuda_lattice *of, const void *from, void *to) {
  int64_t bytes = of->bytes;
  if (of->planes <= 0 || of->rows <= 0 || of->columns <= 0 || bytes <= 0) return cudaSuccess;
  return with_unit(
      [&](auto tag) {
        using Unit = decltype(tag);
        int64_t length = bytes / static_cast<int64_t>(sizeof(Unit)),
                units = of->planes * of->rows * of->columns * length;
        auto kernel = &pick_kernel<Unit>;
        Dense dense{Divisor(length), Divisor(of->columns), Divisor(of->rows)};
        return RT_LAUNCH(kernel, blocks_for(units), BLOCK, 0, stream, static_cast<Unit *>(to),
                         static_cast<const Unit *>(from), units, *of, dense);
      },
      bytes, address(to), address(from));
}

cudaError_t rt_cuda_set_apart(cudaStream_t stream, const rt_cuda_lattice *of, const void *from, void *to) {
  int64_t bytes = of->bytes;
  if (of->planes <= 0 || of->h <= 0 || of->w <= 0 || bytes <= 0) return cudaSuccess;
  return with_unit(
      [&](auto tag) {
        using Unit = decltype(tag);
        int64_t length = bytes / static_cast<int64_t>(sizeof(Unit)), units = of->planes * of->h * of->w * length;
        auto kernel = &set_apart_kernel<Unit>;
        Dense dense{Divisor(length), Divisor(of->w), Divisor(of->h)};
        return RT_LAUNCH(kernel, blocks_for(units), BLOCK, 0, stream, static_cast<Unit *>(to),
                         static_cast<const Unit *>(from), units, *of, dense, Divisor(of->stride_w),
                         Divisor(of->stride_h));
      },
      bytes, address(to), address(from));
}

cudaError_t rt_cuda_transpose(cudaStream_t stream, int64_t outer, int64_t rows, int64_t columns, int64_t bytes,
                              const void *from, void *to) {
  if (outer <= 0 || rows <= 0 || columns <= 0 || bytes <= 0) return cudaSuccess;
  return with_unit(
      [&](auto tag) {
        using Unit = decltype(tag);
        constexpr int64_t SIZE = sizeof(Unit);
        Unit *y = static_cast<Unit *>(to);
        const Unit *x = static_cast<const Unit *>(from);
        if (bytes == SIZE) {
          int64_t across = (columns + TILE - 1) / TILE, down = (rows + TILE - 1) / TILE;
          auto kernel = &transpose_tiles_kernel<Unit>;
          return RT_LAUNCH(kernel, blocks_for(outer * across * down, 1), BLOCK, 0, stream, y, x, outer, rows, columns,
                           across, down);
        }
        int64_t units = outer * rows * columns * (bytes / SIZE);
        auto kernel = &transpose_kernel<Unit>;
        return RT_LAUNCH(kernel, blocks_for(units), BLOCK, 0, stream, y, x, units, Divisor(bytes / SIZE), Divisor(rows),
                         Divisor(columns));
      },
      bytes, address(from), address(to));
}
