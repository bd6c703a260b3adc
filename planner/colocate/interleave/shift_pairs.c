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

static int64_t least_of(const pl_areas *areas, int32_t n_jobs, int32_t first, int32_t end);

/* A pair has what its larger job needs, and of what is left beyond that of all pairs a part by what its other job
 * does. */
static int64_t part_of(const pl_areas *areas, int32_t n_jobs, int32_t pair, int64_t bytes) {
  int32_t first = pair * PL_JOBS_OF_PAIR, end = first + PL_JOBS_OF_PAIR;
  int64_t least = least_of(areas, n_jobs, first, end), least_of_all = pl_pairs_least(areas, n_jobs);
  int64_t more = most_of(areas, n_jobs, first, end) - least,
          more_of_all = most_of(areas, n_jobs, 0, n_jobs) - least_of_all;
  if (n_jobs <= PL_JOBS_OF_PAIR) return bytes;
  if (bytes < least_of_all) return pl_muldiv_floor(bytes, least, least_of_all);
  return more_of_all > 0 ? pl_add_saturate(least, pl_muldiv_floor(bytes - least_of_all, more, more_of_all)) : least;
}

static int64_t least_of(const pl_areas *areas, int32_t n_jobs, int32_t first, int32_t end) {
  int64_t least = 0;
  for (int32_t j = first; j < end && j < n_jobs; j++)
    if (areas->jobs[j].most_bytes > least) least = areas->jobs[j].most_bytes;
  return least;
}

static int64_t most_of(const pl_areas *areas, int32_t n_jobs, int32_t first, int32_t end) {
  int64_t sum = 0;
  for (int32_t j = first; j < end && j < n_jobs; j++) sum = pl_add_saturate(sum, areas->jobs[j].most_bytes);
  return sum;
}

int64_t pl_pairs_least(const pl_areas *areas, int32_t n_jobs) {
  int64_t least = 0;
  for (int32_t first = 0; first < n_jobs; first += PL_JOBS_OF_PAIR)
    least = pl_add_saturate(least, least_of(areas, n_jobs, first, first + PL_JOBS_OF_PAIR));
  return least;
}

int64_t pl_pairs_most(const pl_areas *areas, int32_t n_jobs, int64_t region_bytes) {
  enum { PIECES = 4 };
  int64_t most = most_of(areas, n_jobs, 0, n_jobs);
  return pl_add_saturate(pl_add_saturate(most, most / PIECES), pl_mul_saturate(pl_n_owners(n_jobs), region_bytes));
}
