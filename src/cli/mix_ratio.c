/* What a mix's limit of iterations does to a job (mix_setup.h). */
#include "cli/mix_setup.h"
#include "util/math.h"

static int64_t total_of(const planc_mix_share *share);
static int64_t weighted(const planc_mix *mix, const planc_mix_share *shares, int32_t job);
static int32_t find_longest(const planc_mix *mix, const planc_mix_share *shares);
static void note_job(const planc_mix *mix, const planc_mix_share *shares, int32_t job, int32_t longest);

/* A job is starved where its iterations were chosen, are as many as may be, and take less than half as long as those of
 * the longest job, for their weights. A job with a deadline runs as often as that takes, whatever the others do. */
void cli_mix_note_ratio(const planc_mix *mix, const planc_mix_share *shares) {
  enum { FAR_BELOW = 2 };
  int32_t most = planc_mix_most_chosen(mix), longest = find_longest(mix, shares);
  if (longest < 0) return;
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    bool limited = mix->iterations[j] == 0 && shares[j].deadline_ns == 0 && shares[j].iterations >= most;
    if (limited && weighted(mix, shares, j) < weighted(mix, shares, longest) / FAR_BELOW)
      note_job(mix, shares, j, longest);
  }
}

/* Of a period, as the jobs take it alone. */
static int64_t total_of(const planc_mix_share *share) {
  return pl_mul_saturate(share->alone_ns, share->iterations);
}

/* The same over the job's weight, in parts. */
static int64_t weighted(const planc_mix *mix, const planc_mix_share *shares, int32_t job) {
  return pl_muldiv_floor(total_of(&shares[job]), PLANC_MIX_MAX_WEIGHT, planc_mix_weight(mix, job));
}

/* Of those without a deadline; -1: all have one. */
static int32_t find_longest(const planc_mix *mix, const planc_mix_share *shares) {
  int32_t longest = -1;
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    bool is_longer = longest < 0 || weighted(mix, shares, j) > weighted(mix, shares, longest);
    if (shares[j].deadline_ns == 0 && is_longer) longest = j;
  }
  return longest;
}

static void note_job(const planc_mix *mix, const planc_mix_share *shares, int32_t job, int32_t longest) {
  char own[PL_SIZE_TEXT], other[PL_SIZE_TEXT];
  int32_t most = shares[job].iterations;
  int64_t enough = shares[job].alone_ns > 0 ? pl_muldiv_floor(total_of(&shares[longest]), planc_mix_weight(mix, job),
                                                              planc_mix_weight(mix, longest)) /
                                                  shares[job].alone_ns
                                            : PLANC_MIX_MAX_ITERATIONS;
  if (enough > PLANC_MIX_MAX_ITERATIONS) enough = PLANC_MIX_MAX_ITERATIONS;
  cli_note(
      "job %d (%s) has the most iterations in a period that may be chosen, %d, and they take %s alone where those of "
      "job %d (%s) take %s: with --max-ratio %lld it has more of the GPU",
      job, planc_mix_job_name(mix, job), most, pl_time_format(total_of(&shares[job]), own), longest,
      planc_mix_job_name(mix, longest), pl_time_format(total_of(&shares[longest]), other), (long long)enough);
}
