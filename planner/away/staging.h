/* How what is stored passes through the host: until when it stays there behind its offload, and from when on it is
 * there ahead of its reads. */
#ifndef PLANC_AWAY_STAGING_H
#define PLANC_AWAY_STAGING_H

#include "planner/away/contents.h"

typedef struct pl_staging {
  const planc_schedule *schedule;
  const planc_device *device;
  pl_contents *contents;
  int32_t host, storage;    /* their memories */
  planc_link stores, loads; /* that lead from the one to the other, and back */
  int32_t n_commands;
  int32_t *read_of; /* by command: which read of the host's contents it is; -1: none */
  int64_t *now;     /* by command: when the ops have come to it if nothing is stored; and one more */
  int64_t *ended;   /* by command: when a copy to or from the device has ended then */
  int64_t *live;    /* by position: bytes on the host */
  int64_t *done;    /* by content: when its copy to storage has ended */
  struct pl_passage *queue;
  int32_t *due; /* by step: how many of the queue must have left before it */
} pl_staging;

/* Everything is allocated in `arena`. */
planc_status pl_staging_make(pl_arena *arena, const planc_schedule *schedule, const pl_memories *memories,
                             const planc_device *device, pl_contents *contents, pl_staging *out);

/* What a content takes of the host. */
int64_t pl_staging_bytes(const pl_staging *staging, int32_t content);

/* How long a copy of a content over a link between host and storage takes. */
int64_t pl_staging_copy_ns(const pl_staging *staging, const planc_link *link, int32_t content);

/* Whether a content is stated on the host: only such pass through it to be kept in storage. */
static inline bool pl_staging_is_of_host(const pl_staging *staging, int32_t content) {
  return staging->contents->all[content].memory == staging->host;
}

/* Sets when the contents that are stored leave the host and come back, so that up to `room_bytes` live there, where
 * those that have to be there leave any. Returns how long a period takes then, about. */
int64_t pl_staging_pass(pl_staging *staging, int64_t room_bytes);

#endif
