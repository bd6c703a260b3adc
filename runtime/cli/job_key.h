/* A job of a plan, as values of options say it: by its number, or by its name. */
#ifndef PLANRT_JOB_KEY_H
#define PLANRT_JOB_KEY_H

#include <stddef.h>

#include "planc/plan.h"

typedef struct run_job_key {
  int32_t row;      /* of the job in the plan; -1: not by number */
  const char *name; /* of the job, or of its graph where it has none, `length` long; NULL: not by name */
  size_t length;
} run_job_key;

/* Reads the key with which `text` begins, up to a colon or the end. Returns its length: 0 where text begins with none,
 * and *out is then neither number nor name. */
size_t run_job_key_read(const char *text, run_job_key *out);
/* The job that it names, -1 where the plan has none. USAGE, of that option, where two have the name. */
planc_status run_job_key_find(const planc_plan *plan, const char *option, const run_job_key *key, int32_t *out_row);

#endif
