/* What is away from the devices: each version that a period offloads and fetches again, or that waits parked. */
#ifndef PLANC_LOWER_CONTENTS_H
#define PLANC_LOWER_CONTENTS_H

#include "planner/lower/slots.h"

/* A read of a content by a prefetch. */
typedef struct planc_read {
  int32_t command;
  int32_t load; /* of what is stored: it is copied to the host ahead of this command, behind the read before */
} planc_read;

typedef struct planc_content {
  int32_t buffer;
  int32_t written;             /* by this offload; PLANC_AT_BOUNDARY */
  int32_t until;               /* the last command that reads it; PLANC_AT_BOUNDARY: none does; PLANC_STAYS */
  int32_t first_read, n_reads; /* slice of reads, in order */
  int32_t twin;                /* of what is parked: its other content, at the other end of the period; else itself */
  bool stored;                 /* in storage, but for a while behind `written` and ahead of each read */
  int32_t stored_by;           /* what is stored is on the host as well until behind this command */
} planc_content;

typedef struct planc_contents {
  planc_content *all; /* those of what is parked come first, by residency */
  int32_t n;
  planc_read *reads;
  int32_t *of_offload; /* by command */
} planc_contents;

planc_status planc_contents_find(planc_arena *arena, const planc_schedule *schedule, planc_contents *out);

/* Chooses what is stored, so that what lives on the host at a time is at most `host_bytes`, as far as that can be had:
 * the versions that nothing reads for the longest time. Up to `room_bytes` of the host are used for copies to storage
 * that take longer than the offloads before them, and for copies back ahead of time. */
planc_status planc_contents_spill(planc_arena *arena, const planc_schedule *schedule, const planc_device *device,
                                  int64_t host_bytes, int64_t room_bytes, planc_contents *contents);

#endif
