/* Which job of a mix an option's value is for (mix_setup.h). */
#include <stdlib.h>
#include <string.h>

#include "cli/mix_setup.h"

static int32_t find_named(const cli_mix *mix, const char *name, size_t length);

planc_status cli_mix_read_job(const char *text, const cli_mix *mix, int32_t *out_job, const char **out_value) {
  const char *colon = strchr(text, ':');
  char *end;
  *out_job = -1;
  *out_value = text;
  if (!colon) return NULL;
  *out_value = colon + 1;
  long number = strtol(text, &end, 10);
  bool is_number = *text >= '0' && *text <= '9' && end == colon;
  *out_job = !is_number ? find_named(mix, text, (size_t)(colon - text)) : number < mix->n ? (int32_t)number : -1;
  if (*out_job >= 0) return NULL;
  return planc_error(PLANC_USAGE,
                     "the jobs are numbered from 0 to %d, or go by the names that they were given as NAME=GRAPH",
                     mix->n - 1);
}

/* The job that has the name, -1 where none has. */
static int32_t find_named(const cli_mix *mix, const char *name, size_t length) {
  for (int32_t j = 0; j < mix->n; j++)
    if (mix->names[j] && strlen(mix->names[j]) == length && memcmp(mix->names[j], name, length) == 0) return j;
  return -1;
}
