/* Deadlines of mixes (deadlines.h). */
#include "planner/colocate/deadlines.h"

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
  return mix->max_ratio > 0 ? mix->max_ratio : PLANC_MIX_MOST_ITERATIONS;
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

bool pl_deadlines_raise(const planc_mix *mix, planc_mix_share *shares) {
  bool all = true;
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    int64_t deadline = pl_deadline_of(mix, j), most = most_iterations(mix);
    if (deadline == 0 || shares[j].response_ns <= deadline) continue;
    int64_t n = pl_muldiv_ceil(shares[j].iterations, shares[j].response_ns, deadline) + 1;
    if (n > most) n = most;
    if (mix->iterations[j] > 0 || n <= shares[j].iterations)
      all = false;
    else
      shares[j].iterations = (int32_t)n;
  }
  return all;
}

/* --- In time ------------------------------------------------------------------------------------------------------ */

planc_status pl_deadlines_hold(const planc_mix *mix, const planc_mix_share *shares) {
  char taken[PL_SIZE_TEXT], asked[PL_SIZE_TEXT], alone[PL_SIZE_TEXT];
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    int64_t deadline = pl_deadline_of(mix, j);
    if (deadline == 0 || shares[j].response_ns <= deadline) continue;
    return planc_error(
        PLANC_LATE,
        "job %d (%s): requests take up to %s, with %d iterations in a period; the deadline is %s, and two "
        "iterations take %s alone",
        j, mix->jobs[j].graph->name, pl_time_format(shares[j].response_ns, taken), shares[j].iterations,
        pl_time_format(deadline, asked), pl_time_format(pl_mul_saturate(shares[j].alone_ns, 2), alone));
  }
  return NULL;
}
