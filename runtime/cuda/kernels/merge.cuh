/* Sums of many numbers along fixed trees: what a thread gathers, and how threads' parts are merged. Which thread takes
 * which number depends on shapes alone, so equal operands give equal bits. */
#ifndef RT_CUDA_MERGE_CUH
#define RT_CUDA_MERGE_CUH

#include <type_traits>

#include "common.cuh"

namespace planrt {

/* --- Parts -------------------------------------------------------------------------------------------------------- */

/* N sums side by side. */
template <int N>
struct Totals {
  float at[N];
  __device__ void merge(const Totals &other) {
    for (int k = 0; k < N; k++) at[k] += other.at[k];
  }
};

/* Mean and sum of squares about it (Chan, Golub and LeVeque, Updating Formulae and a Pairwise Algorithm for Computing
 * Sample Variances, 1979, 2.1). The mean is pivot + shift: where it is large beside the deviation, means are told apart
 * by their shifts. */
struct Moments {
  float count, pivot, shift, squares;
  __device__ void merge(const Moments &other) {
    float sum = count + other.count;
    if (count == 0.0F) pivot = other.pivot;
    float share = sum > 0.0F ? other.count / sum : 0.0F, delta = other.pivot - pivot + (other.shift - shift);
    shift += delta * share;
    squares += other.squares + delta * delta * count * share;
    count = sum;
  }
  __device__ float mean() const { return pivot + shift; }
};

/* The sum of exp(x - largest). */
struct Exponentials {
  float largest, sum;
  __device__ void merge(const Exponentials &other) {
    float most = fmaxf(largest, other.largest);
    sum = sum * expf(largest - most) + other.sum * expf(other.largest - most);
    largest = most;
  }
};

/* --- What one thread gathers -------------------------------------------------------------------------------------- */

/* Takes N terms of W elements at a time. */
template <int N>
struct TotalsOf {
  using Part = Totals<N>;
  static constexpr int TERMS = N;
  Totals<N> sum = {};
  template <int W>
  __device__ void add(const float (&terms)[N][W]) {
    for (int n = 0; n < N; n++)
      for (int k = 0; k < W; k++) sum.at[n] += terms[n][k];
  }
  __device__ Part part() const { return sum; }
};

/* Sums of distances from a pivot, the mean of the first W elements. With n elements in all, those W alone make the
 * squares about the true mean at least W times the pivot's squared error: what cancels when that is taken out is never
 * more than n / W times what remains. */
struct MomentsOf {
  using Part = Moments;
  static constexpr int TERMS = 1;
  int32_t count = 0;
  float pivot = 0.0F, sum = 0.0F, squares = 0.0F;
  template <int W>
  __device__ void add(const float (&terms)[1][W]) {
    if (count == 0) {
      for (int k = 0; k < W; k++) pivot += terms[0][k];
      pivot /= W;
    }
    count += W;
    for (int k = 0; k < W; k++) {
      float distance = terms[0][k] - pivot;
      sum += distance;
      squares += distance * distance;
    }
  }
  __device__ Part part() const {
    if (count == 0) return {0.0F, 0.0F, 0.0F, 0.0F};
    float n = static_cast<float>(count), shift = sum / n, rest = squares - sum * shift;
    return {n, pivot, shift, rest < 0.0F ? 0.0F : rest};
  }
};

/* Starts below every number but infinity, so that a thread without numbers, or with infinities alone, adds nothing. */
struct ExponentialsOf {
  using Part = Exponentials;
  static constexpr int TERMS = 1;
  float largest = -3.402823466e38F, sum = 0.0F;
  template <int W>
  __device__ void add(const float (&terms)[1][W]) {
    float most = largest;
    for (int k = 0; k < W; k++) most = fmaxf(most, terms[0][k]);
    if (most > largest) sum *= expf(largest - most);
    largest = most;
    for (int k = 0; k < W; k++) sum += expf(terms[0][k] - most);
  }
  __device__ Part part() const { return {largest, sum}; }
};

/* --- Groups of threads -------------------------------------------------------------------------------------------- */

template <typename Part>
__device__ inline Part shuffled(const Part &part, int distance, bool down) {
  constexpr int WORDS = sizeof(Part) / sizeof(float);
  float words[WORDS];
  Part out;
  memcpy(words, &part, sizeof part);
  for (int k = 0; k < WORDS; k++)
    words[k] = down ? __shfl_down_sync(~0U, words[k], distance) : __shfl_sync(~0U, words[k], distance);
  memcpy(&out, words, sizeof out);
  return out;
}

/* Of a warp. */
template <typename Part>
__device__ inline Part merged_lanes(Part part) {
  for (int distance = WARP / 2; distance > 0; distance /= 2) part.merge(shuffled(part, distance, true));
  return shuffled(part, 0, false);
}

/* Of a block. */
template <typename Part>
__device__ inline Part merged_warps(Part part) {
  constexpr int WARPS = BLOCK / WARP;
  RT_SHARED(Part, of_warp, WARPS);
  __syncthreads(); /* the last result has been read */
  if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = part;
  __syncthreads();
  part = of_warp[0];
  for (int w = 1; w < WARPS; w++) part.merge(of_warp[w]);
  return part;
}

/* Merges the parts of a group of threads, one, a warp or a block; all of them get the same result. To be called by
 * whole groups. */
template <int GROUP, typename Part>
__device__ inline Part merged(const Part &part) {
  static_assert(GROUP == 1 || GROUP == WARP || GROUP == BLOCK, "a thread, a warp or a block");
  if constexpr (GROUP == 1) {
    return part;
  } else if constexpr (GROUP == WARP) {
    return merged_lanes(part);
  } else {
    return merged_warps(merged_lanes(part));
  }
}

/* --- Widths ------------------------------------------------------------------------------------------------------- */

/* Elements that a thread takes at a time from runs of `length`: a divisor of it, so that the order of sums does not
 * depend on where the runs lie. */
inline int width_of(int64_t length) {
  return length % 8 == 0 ? 8 : length % 4 == 0 ? 4 : 1;
}

/* Calls `launch` with width_of(length) as a constant. */
template <typename F>
cudaError_t with_width(int64_t length, F launch) {
  switch (width_of(length)) {
    case 8:
      return launch(std::integral_constant<int, 8>());
    case 4:
      return launch(std::integral_constant<int, 4>());
    default:
      return launch(std::integral_constant<int, 1>());
  }
}

}  // namespace planrt

#endif
