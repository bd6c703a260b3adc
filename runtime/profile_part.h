/* Pieces of a profile (profile_file.h) that outlive an interrupted run, in a file beside the output, OUTPUT.part: a
 * line that says what they belong to, then a line for each. */
#ifndef PLANRT_PROFILE_PART_H
#define PLANRT_PROFILE_PART_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "planc/status.h"

typedef struct planrt_kept {
  char *path;    /* malloc'ed; NULL: in memory only */
  FILE *file;    /* NULL before it is opened */
  cJSON *pieces; /* an array */
} planrt_kept;

/* Reads what a run that had the same `head` has left; a line that it did not end is dropped. `output` may be NULL.
 * STALE when the head was another, BAD_INPUT when a line is damaged. To be closed after a failure too. */
planc_status planrt_kept_open(planrt_kept *kept, const char *output, const char *head);
/* Takes the piece; OUT_OF_MEMORY when it is spoilt (util/json_tree.h). */
planc_status planrt_kept_add(planrt_kept *kept, cJSON *piece);
planc_status planrt_kept_remove(const planrt_kept *kept);
void planrt_kept_close(planrt_kept *kept);

#endif
