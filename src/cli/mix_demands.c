/* What plans of a mix are held to, from the command line (mix_setup.h). */
#include <math.h>

#include "cli/mix_setup.h"
#include "util/real.h"

static planc_status read_deadlines(const prog_arguments *arguments, cli_mix *mix);
static planc_status read_least_shares(const prog_arguments *arguments, cli_mix *mix);

planc_status cli_mix_read_demands(const prog_arguments *arguments, cli_mix *mix) {
  bool any_open = false;
  PLANC_TRY(read_deadlines(arguments, mix));
  PLANC_TRY(read_least_shares(arguments, mix));
  for (int32_t j = 0; j < mix->n; j++) any_open |= mix->iterations[j] == 0;
  if (prog_option_given(arguments, "weight") && !any_open)
    return planc_error(PLANC_USAGE, "--weight: the iterations of every job are given, so that weights choose nothing");
  return NULL;
}

/* --- Deadlines ---------------------------------------------------------------------------------------------------- */

static planc_status read_own(int32_t job, const char *text, cli_mix *mix);
static planc_status read_of_inference(const char *text, cli_mix *mix);

static planc_status read_deadlines(const prog_arguments *arguments, cli_mix *mix) {
  const char *text, *of_inference = NULL;
  for (int32_t k = 0; (text = prog_option_repeated(arguments, "deadline", k)); k++) {
    int32_t job;
    const char *time;
    PLANC_TRY(planc_context(cli_mix_read_job(text, mix, &job, &time), "--deadline %s", text));
    if (job >= 0) {
      PLANC_TRY(planc_context(read_own(job, time, mix), "--deadline %s", text));
    } else if (of_inference) {
      return planc_error(PLANC_USAGE, "--deadline %s and %s: one of all jobs for inference", of_inference, text);
    } else {
      of_inference = text;
    }
  }
  return of_inference ? planc_context(read_of_inference(of_inference, mix), "--deadline %s", of_inference) : NULL;
}

static planc_status read_time(const char *text, int64_t *out_ns) {
  PLANC_TRY(pl_time_parse(text, out_ns));
  return *out_ns > 0 ? NULL : planc_error(PLANC_USAGE, "no request takes no time");
}

static planc_status read_own(int32_t job, const char *text, cli_mix *mix) {
  int64_t ns;
  PLANC_TRY(read_time(text, &ns));
  if (mix->deadlines_ns[job] > 0) return planc_error(PLANC_USAGE, "job %d has a deadline already", job);
  mix->deadlines_ns[job] = ns;
  return NULL;
}

/* Of all jobs for inference that have no deadline of their own. */
static planc_status read_of_inference(const char *text, cli_mix *mix) {
  int64_t ns;
  bool any = false;
  PLANC_TRY(read_time(text, &ns));
  for (int32_t j = 0; j < mix->n; j++) {
    if (!mix->operands[j].inference) continue;
    if (mix->deadlines_ns[j] == 0) mix->deadlines_ns[j] = ns;
    any = true;
  }
  return any ? NULL : planc_error(PLANC_USAGE, "no job is for inference: say whose it is, as in 1:50ms");
}

/* --- Least shares ------------------------------------------------------------------------------------------------- */

static planc_status read_share(const char *text, int64_t *out_ppm);

static planc_status read_least_shares(const prog_arguments *arguments, cli_mix *mix) {
  const char *text, *of_all = NULL;
  int64_t of_all_ppm = 0;
  for (int32_t k = 0; (text = prog_option_repeated(arguments, "min-share", k)); k++) {
    int32_t job;
    int64_t ppm = 0;
    const char *share;
    PLANC_TRY(planc_context(cli_mix_read_job(text, mix, &job, &share), "--min-share %s", text));
    PLANC_TRY(planc_context(read_share(share, &ppm), "--min-share %s", text));
    if (job < 0 && of_all) return planc_error(PLANC_USAGE, "--min-share %s and %s: one of all jobs", of_all, text);
    if (job < 0) {
      of_all = text;
      of_all_ppm = ppm;
      continue;
    }
    if (mix->least_shares_ppm[job] > 0)
      return planc_error(PLANC_USAGE, "--min-share %s: job %d has a least share already", text, job);
    mix->least_shares_ppm[job] = ppm;
  }
  for (int32_t j = 0; j < mix->n && of_all; j++)
    if (mix->least_shares_ppm[j] == 0) mix->least_shares_ppm[j] = of_all_ppm;
  return NULL;
}

static planc_status read_share(const char *text, int64_t *out_ppm) {
  enum { MOST = 100 };
  double percent;
  if (!pl_real_parse(text, &percent) || !(percent >= 1.0 / PLANC_UNIT_PERCENT && percent <= MOST))
    return planc_error(PLANC_USAGE, "not a number of percent, more than 0 and at most %d", MOST);
  *out_ppm = llround(percent * PLANC_UNIT_PERCENT);
  return NULL;
}
