/* How many iterations of each job make a period, from how long each takes alone. */
#include "planner/colocate/ratio.h"

#include <stdbool.h>

#include "util/math.h"

/* A period is good enough where the shortest job lacks at most a tenth of the longest. */
enum { PARTS = 10 };

static int32_t find_longest(const pl_ratio_job *jobs, int32_t n, bool *out_given);
static void fill(const pl_ratio_job *jobs, int32_t n, int64_t period_ns, int32_t most, int32_t *out);
static int64_t total(const pl_ratio_job *job, int32_t iterations);
static int64_t imbalance(const pl_ratio_job *jobs, int32_t n, const int32_t *iterations);

void pl_choose_ratio(const pl_ratio_job *jobs, int32_t n, int32_t most, int32_t *out) {
  bool given;
  int32_t longest = find_longest(jobs, n, &given), best = 1;
  if (given) {
    fill(jobs, n, total(&jobs[longest], jobs[longest].iterations), most, out);
    return;
  }
  int64_t least = INT64_MAX;
  for (int32_t k = 1; k <= most && least > PL_PPM / PARTS; k++) {
    fill(jobs, n, total(&jobs[longest], k), most, out);
    int64_t now = imbalance(jobs, n, out);
    if (now >= least) continue;
    least = now;
    best = k;
  }
  fill(jobs, n, total(&jobs[longest], best), most, out);
}

static int64_t total(const pl_ratio_job *job, int32_t iterations) {
  return pl_mul_saturate(job->alone_ns, iterations);
}

static int32_t rounded(int64_t period_ns, int64_t alone_ns, int32_t most) {
  int64_t n = alone_ns > 0 ? period_ns / alone_ns + (period_ns % alone_ns >= alone_ns - alone_ns / 2) : most;
  return n < 1 ? 1 : n > most ? most : (int32_t)n;
}

/* Gives those that are free as many iterations as fill a period. */
static void fill(const pl_ratio_job *jobs, int32_t n, int64_t period_ns, int32_t most, int32_t *out) {
  for (int32_t j = 0; j < n; j++)
    out[j] = jobs[j].iterations > 0 ? jobs[j].iterations : rounded(period_ns, jobs[j].alone_ns, most);
}

/* By how much the shortest job is shorter than the longest, in parts per million of that. */
static int64_t imbalance(const pl_ratio_job *jobs, int32_t n, const int32_t *iterations) {
  int64_t least = INT64_MAX, longest = 0;
  for (int32_t j = 0; j < n; j++) {
    int64_t ns = total(&jobs[j], iterations[j]);
    if (ns < least) least = ns;
    if (ns > longest) longest = ns;
  }
  return longest > 0 ? pl_muldiv_ceil(longest - least, PL_PPM, longest) : 0;
}

/* The longest of the jobs whose iterations are given, or, with none given, the slowest. */
static int32_t find_longest(const pl_ratio_job *jobs, int32_t n, bool *out_given) {
  int32_t longest = -1;
  *out_given = false;
  for (int32_t j = 0; j < n; j++) *out_given |= jobs[j].iterations > 0;
  for (int32_t j = 0; j < n; j++) {
    if (*out_given && jobs[j].iterations == 0) continue;
    int32_t at = longest < 0 ? j : longest;
    if (longest < 0 ||
        total(&jobs[j], *out_given ? jobs[j].iterations : 1) > total(&jobs[at], *out_given ? jobs[at].iterations : 1))
      longest = j;
  }
  return longest;
}
