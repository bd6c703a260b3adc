/* A piece of work for a stream of the host backend, and the streams that take it. */
#ifndef PLANRT_HOST_WORK_H
#define PLANRT_HOST_WORK_H

#include "runtime/backend.h"

typedef enum planrt_work_kind {
  PLANRT_WORK_CALL,
  PLANRT_WORK_COPY,
  PLANRT_WORK_HOST,
  PLANRT_WORK_DIGEST,
  PLANRT_WORK_POISON,
  PLANRT_WORK_RECORD,
  PLANRT_WORK_WAIT
} planrt_work_kind;

typedef struct planrt_work {
  uint8_t kind, direction;
  int32_t event;
  int64_t generation; /* record, wait; of host work the period */
  int64_t bytes;
  void *to;         /* of a digest the uint64_t */
  const void *from; /* of host work what it is about */
  const planrt_call *call;
  planrt_launch launch;
  planrt_host_work host;
  void *user;
  planrt_span *span;
} planrt_work;

typedef struct planrt_streams planrt_streams;

/* Performs one piece of work other than RECORD and WAIT. */
typedef planc_status (*planrt_performer)(void *user, int32_t stream, const planrt_work *work);

/* Starts `n_streams` threads, each performing what it is given in order. DEVICE when there are not so many. */
planc_status planrt_streams_new(int32_t n_streams, int32_t n_events, planrt_performer perform, void *user,
                                planrt_streams **out);
/* Drops what has not begun and ends the threads. */
void planrt_streams_free(planrt_streams *streams);
/* Waits while the stream has too much to do already. INVALID_PLAN for a wait whose record has not been enqueued. */
planc_status planrt_streams_enqueue(planrt_streams *streams, int32_t stream, const planrt_work *work);
bool planrt_streams_reached(const planrt_streams *streams, int32_t event, int64_t generation);
void planrt_streams_forget(planrt_streams *streams);
planc_status planrt_streams_synchronize(planrt_streams *streams);

#endif
