/* Deadlines of a mix from the command line (mix_setup.h). */
#include "cli/mix_setup.h"

static planc_status read_own(int32_t job, const char *text, cli_mix *mix);
static planc_status read_of_inference(const char *text, cli_mix *mix);

planc_status cli_mix_read_deadlines(const prog_arguments *arguments, cli_mix *mix) {
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
