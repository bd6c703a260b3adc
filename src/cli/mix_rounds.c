/* Rounds side by side from the command line (mix_setup.h). */
#include "cli/mix_setup.h"

static planc_status set_all(int32_t n, cli_mix *mix);
static void set(planc_workload *job, int32_t n);

/* One of its own counts for a job, wherever it stands. */
planc_status cli_mix_read_rounds(const prog_arguments *arguments, cli_mix *mix) {
  const char *text, *number;
  int64_t of_all = 0;
  for (int32_t k = 0; (text = prog_option_repeated(arguments, "accumulate", k)); k++) {
    int32_t job;
    int64_t n;
    PLANC_TRY(planc_context(cli_mix_read_job(text, mix, &job, &number), "--accumulate %s", text));
    PLANC_TRY(prog_option_int_of("accumulate", number, 1, PLANC_MIX_MAX_ROUNDS, &n));
    bool twice = job < 0 ? of_all > 0 : mix->jobs[job].side_by_side > 0;
    if (twice) return planc_error(PLANC_USAGE, "--accumulate %s: given already", text);
    if (job < 0) of_all = n;
    if (job >= 0) set(&mix->jobs[job], (int32_t)n);
  }
  return of_all > 0 ? set_all((int32_t)of_all, mix) : NULL;
}

/* A number that does not divide the batch is refused by whoever plans. */
static void set(planc_workload *job, int32_t n) {
  job->side_by_side = n;
  job->sub_batch = job->batch / n;
}

/* Of all jobs that train and have no number of their own. */
static planc_status set_all(int32_t n, cli_mix *mix) {
  bool any = false;
  for (int32_t j = 0; j < mix->n; j++) {
    if (mix->operands[j].inference) continue;
    if (mix->jobs[j].side_by_side == 0) set(&mix->jobs[j], n);
    any = true;
  }
  return any ? NULL : planc_error(PLANC_USAGE, "--accumulate: no job trains, so that none accumulates gradients");
}

planc_status cli_mix_check_rounds(const prog_arguments *arguments, uint32_t supports) {
  const planc_mix_policy *policy = planc_mix_policies();
  if (!prog_option_given(arguments, "accumulate") || (supports & PLANC_MIX_ROUNDS)) return NULL;
  while (!(policy->supports & PLANC_MIX_ROUNDS)) policy++;
  return planc_error(PLANC_USAGE, "--accumulate is for policy %s: others run rounds one after the other", policy->name);
}
