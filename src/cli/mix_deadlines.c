/* Deadlines of a mix from the command line (mix_setup.h). */
#include <stdlib.h>
#include <string.h>

#include "cli/mix_setup.h"

static planc_status read_deadline(const char *text, cli_mix *mix);
static planc_status read_job(const char *text, const cli_mix *mix, int32_t *out);
static planc_status set(cli_mix *mix, int32_t job, int64_t ns);

planc_status cli_mix_read_deadlines(const pl_arguments *arguments, cli_mix *mix) {
  const char *text;
  for (int32_t k = 0; (text = pl_option_repeated(arguments, "deadline", k)); k++)
    PLANC_TRY(planc_context(read_deadline(text, mix), "--deadline %s", text));
  return NULL;
}

static planc_status read_deadline(const char *text, cli_mix *mix) {
  const char *colon = strchr(text, ':');
  int32_t job = -1, n = 0;
  int64_t ns;
  if (colon) PLANC_TRY(read_job(text, mix, &job));
  PLANC_TRY(pl_time_parse(colon ? colon + 1 : text, &ns));
  if (ns == 0) return planc_error(PLANC_USAGE, "no request takes no time");
  if (job >= 0) return set(mix, job, ns);
  for (int32_t j = 0; j < mix->n; j++) {
    if (!mix->operands[j].inference) continue;
    PLANC_TRY(set(mix, j, ns));
    n++;
  }
  return n > 0 ? NULL : planc_error(PLANC_USAGE, "no job is for inference: say whose it is, as in 1:50ms");
}

static planc_status read_job(const char *text, const cli_mix *mix, int32_t *out) {
  char *end;
  long job = strtol(text, &end, 10);
  if (*text < '0' || *text > '9' || *end != ':' || job >= mix->n)
    return planc_error(PLANC_USAGE, "the jobs are numbered from 0 to %d", mix->n - 1);
  *out = (int32_t)job;
  return NULL;
}

static planc_status set(cli_mix *mix, int32_t job, int64_t ns) {
  if (mix->deadlines_ns[job] > 0) return planc_error(PLANC_USAGE, "job %d has a deadline already", job);
  mix->deadlines_ns[job] = ns;
  return NULL;
}
