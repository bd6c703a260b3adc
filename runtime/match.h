/* Which job of a training a job of another plan, or of a checkpoint, is. */
#ifndef PLANRT_MATCH_H
#define PLANRT_MATCH_H

#include <stdbool.h>

#include "runtime/split.h"

/* By what a job is known. */
typedef struct rt_identity {
  const char *name;    /* that a plan gives it; NULL: none */
  const char *graph;   /* its graph's name */
  const char *content; /* of its graph, without name and defaults, as text: equal texts, equal content */
  rt_split split;
} rt_identity;

enum { RT_JOINS = -1 };

/* out[j] is the number among `known` of job j of a plan, RT_JOINS where the training did not have it so far. A name
 * makes two jobs one; where one of them has none, equal content does. STALE where
 * - a job of the same name, or of none and the same graph name, has other content, batch or replicas;
 * - several jobs are alike, and not as many in the training as in the plan: only names tell which is which;
 * - none is known.
 * The words are those for a training that has the plan's jobs and reads the known ones where `resumes`, and else for
 * one that has the known ones and is given the plan. */
planc_status rt_match(const rt_identity *known, int32_t n_known, const rt_identity *jobs, int32_t n_jobs, bool resumes,
                      int32_t *out);

#endif
