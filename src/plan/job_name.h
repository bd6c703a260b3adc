/* Names of jobs, by which a job is the same in another plan: `planc colocate NAME=GRAPH` gives them. */
#ifndef PLANC_PLAN_JOB_NAME_H
#define PLANC_PLAN_JOB_NAME_H

#include <stddef.h>

enum { PL_JOB_NAME_MAX = 63 };

/* How long the name is that `text` begins with: a letter, and behind it letters, digits, - and _. 0: it begins with
 * none. So no name is a number, or has what separates it from what is behind it. */
size_t pl_job_name_length(const char *text);
/* What is wrong with a name, "has ...", or NULL. */
const char *pl_job_name_fault(const char *name);

#endif
