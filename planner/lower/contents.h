/* What is away from the devices: each version that a period offloads and fetches again, or that waits parked. */
#ifndef PLANC_LOWER_CONTENTS_H
#define PLANC_LOWER_CONTENTS_H

#include "planner/lower/slots.h"

/* A read of a content by a prefetch. */
typedef struct planc_read {
  int32_t command;
  bool loaded;  /* of what is stored: it has left the host before, and comes back; else it is there still */
  int32_t load; /* the command ahead of which it is copied to the host then, behind the read before */
} planc_read;

typedef struct planc_content {
  int32_t buffer;
  int32_t written;             /* by this offload; PLANC_AT_BOUNDARY */
  int32_t until;               /* the last command that reads it; PLANC_AT_BOUNDARY: none does; PLANC_STAYS */
  int32_t first_read, n_reads; /* slice of reads, in order */
  int32_t twin;                /* of what is parked: its other content, at the other end of the period; else itself */
  bool stored;                 /* in storage, from `written` to `until`; now and then on the host as well */
  int32_t stored_by;           /* when it leaves the host first: behind this command; none where it is there already */
} planc_content;

typedef struct planc_contents {
  planc_content *all; /* those of what is parked come first, by residency */
  int32_t n;
  planc_read *reads;
  int32_t *of_offload; /* by command */
} planc_contents;

planc_status planc_contents_find(planc_arena *arena, const planc_schedule *schedule, planc_contents *out);

#endif
