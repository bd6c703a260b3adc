/* Which job is meant (job_key.h). */
#include "runtime/cli/job_key.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "plan/job_name.h"

enum { MAX_DIGITS = 3 };

static bool ends_at(const char *text, size_t length);

size_t run_job_key_read(const char *text, run_job_key *out) {
  size_t digits = strspn(text, "0123456789"), length = pl_job_name_length(text);
  *out = (run_job_key){.row = -1};
  if (digits <= MAX_DIGITS && ends_at(text, digits)) {
    out->row = (int32_t)strtol(text, NULL, 10);
    return digits;
  }
  if (!ends_at(text, length)) return 0;
  out->name = text;
  out->length = length;
  return length;
}

static bool ends_at(const char *text, size_t length) {
  return length > 0 && (text[length] == ':' || text[length] == '\0');
}

static bool is_called(const planc_job *job, const run_job_key *key) {
  const char *name = job->name ? job->name : job->graph->name;
  return strlen(name) == key->length && memcmp(name, key->name, key->length) == 0;
}

planc_status run_job_key_find(const planc_plan *plan, const char *option, const run_job_key *key, int32_t *out_row) {
  *out_row = key->row < plan->n_jobs ? key->row : -1;
  for (int32_t j = 0; key->name && j < plan->n_jobs; j++) {
    if (!is_called(&plan->jobs[j], key)) continue;
    if (*out_row >= 0)
      return planc_error(PLANC_USAGE, "--%s: jobs %d and %d are both called %.*s: say which by its number", option,
                         *out_row, j, (int)key->length, key->name);
    *out_row = j;
  }
  return NULL;
}
