/* Deadlines of mixes (deadlines.h). */
#include "planner/colocate/jobs/deadlines.h"

#include "util/math.h"
#include "util/size.h"

int64_t pl_deadline_of(const planc_mix *mix, int32_t job) {
  return mix->deadlines_ns ? mix->deadlines_ns[job] : 0;
}

bool planc_mix_has_deadlines(const planc_mix *mix) {
  for (int32_t j = 0; j < mix->n_jobs; j++)
    if (pl_deadline_of(mix, j) > 0) return true;
  return false;
}

/* --- How often ---------------------------------------------------------------------------------------------------- */

int64_t pl_longest_op(const planc_candidate *candidate) {
  const planc_schedule *s = candidate->schedule;
  const planc_command *commands = planc_schedule_commands(s);
  int64_t longest = 0;
  for (int32_t c = 0; c < planc_schedule_n_commands(s); c++) {
    if (commands[c].kind != PLANC_CMD_EXEC) continue;
    int64_t ns = planc_schedule_variant(s, &commands[c]).time_ns;
    if (ns > longest) longest = ns;
  }
  return longest;
}

/* How much of a job's deadline is left for one part of the work of jobs without a deadline. A request that has just
 * missed an iteration waits for that one and for its own, and in both for an iteration of each other job with a
 * deadline; the part may also end late by its longest op. Plans beside others may be slower than alone, so a fraction
 * of what is left stays unused. */
static int64_t left_between(const planc_mix *mix, const pl_deadline_job *jobs, int32_t job) {
  enum { KEPT = 8 };
  int64_t left = pl_deadline_of(mix, job), longest = 0;
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    bool requested = pl_deadline_of(mix, j) > 0;
    if (requested) left -= pl_mul_saturate(jobs[j].alone_ns, 2);
    if (!requested && jobs[j].longest_op_ns > longest) longest = jobs[j].longest_op_ns;
    if (left <= 0) return 0;
  }
  left -= longest;
  return left > 0 ? left - left / KEPT : 0;
}

static int32_t most_iterations(const planc_mix *mix) {
  return mix->max_ratio > 0 ? mix->max_ratio : PLANC_MIX_MAX_ITERATIONS;
}

void pl_deadlines_choose(const planc_mix *mix, const pl_deadline_job *jobs, int32_t *iterations) {
  int32_t most = most_iterations(mix);
  int64_t others = 0;
  for (int32_t j = 0; j < mix->n_jobs; j++)
    if (pl_deadline_of(mix, j) == 0) others = pl_add_saturate(others, pl_mul_saturate(jobs[j].alone_ns, iterations[j]));
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    if (pl_deadline_of(mix, j) == 0 || mix->iterations[j] > 0) continue;
    int64_t left = left_between(mix, jobs, j);
    if (left == 0) continue;
    int64_t n = others / left + (others % left > 0);
    iterations[j] = n < 1 ? 1 : n > most ? most : (int32_t)n;
  }
}

static int32_t raised(const planc_mix *mix, int32_t tried, const planc_mix_share *shares, int32_t job);

bool pl_deadlines_raise(const planc_mix *mix, int32_t tried, planc_mix_share *shares) {
  for (int32_t j = 0; j < mix->n_jobs; j++)
    if (planc_mix_is_late(&shares[j]) && raised(mix, tried, shares, j) == shares[j].iterations) return false;
  for (int32_t j = 0; j < mix->n_jobs; j++) shares[j].iterations = raised(mix, tried, shares, j);
  return true;
}

/* Iterations of a job come one after the other: a request that has just missed one waits for two, however many there
 * are. */
static bool is_hopeless(const planc_mix_share *share) {
  return pl_mul_saturate(share->alone_ns, 2) > share->deadline_ns;
}

/* More iterations where the job is late and may have more, else those that it has. */
static int32_t raised(const planc_mix *mix, int32_t tried, const planc_mix_share *shares, int32_t job) {
  enum { PARTS = 8 };
  int64_t deadline = shares[job].deadline_ns, most = most_iterations(mix);
  int32_t own = shares[job].iterations;
  if (!planc_mix_is_late(&shares[job]) || is_hopeless(&shares[job]) || mix->iterations[job] > 0) return own;
  int64_t n = pl_muldiv_ceil(own, shares[job].response_ns, deadline) + 1;
  n = pl_max(n, own + (int64_t)own * tried / PARTS);
  if (n > most) n = most;
  return n > own ? (int32_t)n : own;
}

/* --- In time ------------------------------------------------------------------------------------------------------ */

/* Whatever is late is told to the microsecond above, as which it is late. */
planc_status pl_deadlines_hold(const planc_mix *mix, const planc_mix_share *shares) {
  enum { NS_OF_US = 1000 };
  char taken[PL_SIZE_TEXT], asked[PL_SIZE_TEXT], alone[PL_SIZE_TEXT];
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    int64_t deadline = pl_deadline_of(mix, j);
    if (!planc_mix_is_late(&shares[j])) continue;
    return planc_error(
        PLANC_LATE,
        "job %d (%s): requests take up to %s, with %d iteration%s in a period; the deadline is %s, and two "
        "iterations take %s alone",
        j, planc_mix_job_name(mix, j), pl_time_format(pl_align_up(shares[j].response_ns, NS_OF_US), taken),
        shares[j].iterations, shares[j].iterations == 1 ? "" : "s", pl_time_format(deadline, asked),
        pl_time_format(pl_mul_saturate(shares[j].alone_ns, 2), alone));
  }
  return NULL;
}
