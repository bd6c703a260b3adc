/* A piece of work for a stream of the host backend, and the streams that take it. */
#ifndef PLANRT_HOST_WORK_H
#define PLANRT_HOST_WORK_H

#include "runtime/backend.h"

typedef enum rt_work_kind {
  RT_WORK_CALL,
  RT_WORK_COPY,
  RT_WORK_HOST,
  RT_WORK_DIGEST,
  RT_WORK_POISON,
  RT_WORK_RECORD,
  RT_WORK_WAIT
} rt_work_kind;

typedef struct rt_work {
  uint8_t kind, direction;
  int32_t event;
  int64_t generation; /* record, wait; of host work the period */
  int64_t bytes;
  void *to;         /* of a digest the uint64_t */
  const void *from; /* of host work what it is about */
  const rt_call *call;
  rt_launch launch;
  rt_host_work host;
  void *user;
  rt_span *span;
} rt_work;

typedef struct rt_streams rt_streams;

/* Performs one piece of work other than RECORD and WAIT. */
typedef planc_status (*rt_performer)(void *user, int32_t stream, const rt_work *work);

/* Starts `n_streams` threads, each performing what it is given in order. DEVICE when there are not so many. */
planc_status rt_streams_new(int32_t n_streams, int32_t n_events, rt_performer perform, void *user, rt_streams **out);
/* Drops what has not begun and ends the threads. */
void rt_streams_free(rt_streams *streams);
/* Waits while the stream has too much to do already. INVALID_PLAN for a wait whose record has not been enqueued. */
planc_status rt_streams_enqueue(rt_streams *streams, int32_t stream, const rt_work *work);
bool rt_streams_reached(const rt_streams *streams, int32_t event, int64_t generation);
void rt_streams_forget(rt_streams *streams);
/* What has been enqueued since the last call is a lap: waits while laps before the last RT_AHEAD are not over. */
void rt_streams_end_lap(rt_streams *streams);
planc_status rt_streams_synchronize(rt_streams *streams);

#endif
