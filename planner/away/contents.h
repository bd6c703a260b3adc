/* What is away from the devices: each version that a period copies there and from there, or that the boundary has
 * there. */
#ifndef PLANC_AWAY_CONTENTS_H
#define PLANC_AWAY_CONTENTS_H

#include "planc/schedule.h"
#include "planner/away/slots.h"

/* A read of a content by a copy to another memory. */
typedef struct pl_read {
  int32_t command;
  bool loaded;  /* of what is stored: it has left the host before, and comes back; else it is there still */
  int32_t load; /* the command ahead of which it is copied to the host then, behind the read before */
} pl_read;

typedef struct pl_content {
  int32_t buffer;
  int32_t written;             /* by this copy; PL_AT_BOUNDARY */
  int32_t until;               /* the last command that reads it; PL_AT_BOUNDARY: none does; PL_STAYS */
  int32_t in_use;              /* the first exec that needs what that command copies, so that the copy has ended ahead
                                  of what the exec makes; `until` where no exec does */
  int32_t first_read, n_reads; /* slice of reads, in order */
  int32_t twin;                /* of what starts the period away: its content at the other end; else itself */
  int32_t memory;              /* in which the schedule states it */
  int32_t lies_in;   /* the same, or, of what is stated on the host, the storage in which spill.h puts it: then it
                        is on the host only when it is written and read */
  int32_t stored_by; /* when it leaves the host first: behind this command; none where it is there already */
} pl_content;

/* Whether a content of the host is kept in storage. */
static inline bool pl_is_stored(const pl_content *content) {
  return content->lies_in != content->memory;
}

typedef struct pl_contents {
  pl_content *all; /* those of what starts the period away come first, by residency */
  int32_t n;
  pl_read *reads;
  pl_sides *of_command; /* target: none where nobody reads what would be written */
} pl_contents;

/* The last command for which a stored content is on the host from `read` on (-1: from when it is written) without
 * leaving it. */
int32_t pl_content_stay(const pl_contents *contents, const pl_content *content, int32_t read);

/* Everything is allocated in `arena`; fails with OUT_OF_MEMORY alone. */
planc_status pl_contents_find(pl_arena *arena, const planc_schedule *schedule, pl_contents *out);

#endif
