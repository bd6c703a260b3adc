/* Pairs of jobs (shift_pairs.h). */
#include "planner/colocate/interleave/shift_pairs.h"

#include "planner/colocate/interleave/shift.h"
#include "util/math.h"

static int64_t part_of(const pl_areas *areas, int32_t n_jobs, int32_t pair, int64_t bytes);
static int64_t most_of(const pl_areas *areas, int32_t n_jobs, int32_t first, int32_t end);

planc_status pl_shift_pairs(pl_timing *timing, const pl_areas *areas, int64_t bytes, bool *out_fit) {
  int64_t longest = 0;
  *out_fit = true;
  for (int32_t pair = 0; *out_fit && pair * PL_JOBS_OF_PAIR < timing->n_jobs; pair++) {
    int32_t jobs[PL_JOBS_OF_PAIR] = {pair * PL_JOBS_OF_PAIR, pair * PL_JOBS_OF_PAIR + 1};
    int32_t n = jobs[1] < timing->n_jobs ? PL_JOBS_OF_PAIR : 1;
    PLANC_TRY(pl_shift(timing, areas, jobs, n, part_of(areas, timing->n_jobs, pair, bytes), out_fit));
    if (timing->period_ns > longest) longest = timing->period_ns;
  }
  timing->period_ns = longest;
  return NULL;
}

/* A pair's part of the bytes. */
static int64_t part_of(const pl_areas *areas, int32_t n_jobs, int32_t pair, int64_t bytes) {
  int64_t all = most_of(areas, n_jobs, 0, n_jobs);
  return all > 0
             ? pl_muldiv_floor(bytes, most_of(areas, n_jobs, pair * PL_JOBS_OF_PAIR, (pair + 1) * PL_JOBS_OF_PAIR), all)
             : bytes;
}

static int64_t most_of(const pl_areas *areas, int32_t n_jobs, int32_t first, int32_t end) {
  int64_t sum = 0;
  for (int32_t j = first; j < end && j < n_jobs; j++) sum = pl_add_saturate(sum, areas->jobs[j].most_bytes);
  return sum;
}

int64_t pl_pairs_least(const pl_areas *areas, int32_t n_jobs) {
  int64_t all = most_of(areas, n_jobs, 0, n_jobs), least = 0;
  for (int32_t j = 0; j < n_jobs; j++) {
    int64_t pair =
        most_of(areas, n_jobs, j / PL_JOBS_OF_PAIR * PL_JOBS_OF_PAIR, (j / PL_JOBS_OF_PAIR + 1) * PL_JOBS_OF_PAIR);
    int64_t bytes = pair > 0 ? pl_muldiv_ceil(areas->jobs[j].most_bytes, all, pair) : 0;
    if (bytes > least) least = bytes;
  }
  return least;
}

int64_t pl_pairs_most(const pl_areas *areas, int32_t n_jobs, int64_t region_bytes) {
  enum { PIECES = 4 };
  int64_t most = most_of(areas, n_jobs, 0, n_jobs);
  return pl_add_saturate(pl_add_saturate(most, most / PIECES), pl_mul_saturate(pl_n_owners(n_jobs), region_bytes));
}
