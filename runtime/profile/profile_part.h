/* Pieces of a profile (profile_file.h) that outlive an interrupted run, in a file beside the output, OUTPUT.part. It
 * has a line that says what they belong to, then a line for each, then one for what the process is at, as long as it is
 * at it. A process that came to its end there has left that line, and it counts as a piece from then on. */
#ifndef PLANRT_PROFILE_PART_H
#define PLANRT_PROFILE_PART_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "planc/status.h"

#define RT_PART_SUFFIX ".part"

typedef struct rt_kept {
  char *path;    /* malloc'ed; NULL: in memory only */
  int file;      /* -1 where there is none */
  int64_t end;   /* of the pieces in the file */
  cJSON *pieces; /* an array */
} rt_kept;

/* Reads what a run that had the same `head`, an object, has left; a line that it did not end is dropped. `output` may
 * be NULL. STALE, saying what differs, when the head was another, BAD_INPUT when a line is damaged. To be closed after
 * a failure too. */
planc_status rt_kept_open(rt_kept *kept, const char *output, const cJSON *head);
/* Takes the piece; OUT_OF_MEMORY when it is spoilt (util/json_tree.h). What the process was at is over. */
planc_status rt_kept_add(rt_kept *kept, cJSON *piece);
/* Says what the process is at, in place of what it was at before; OUT_OF_MEMORY as above. The end of the
 * process leaves the line there; `durable`: that of the machine too. */
planc_status rt_kept_mark(const rt_kept *kept, const cJSON *mark, bool durable);
/* The process is at nothing. May be called in a signal handler. */
void rt_kept_unmark(const rt_kept *kept);
planc_status rt_kept_remove(const rt_kept *kept);
void rt_kept_close(rt_kept *kept);

#endif
