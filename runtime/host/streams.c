/* Streams as threads: each takes its work from a ring and performs it in order; waits block on the events' generations.
 *
 * A plan's file order is a legal sequential execution, so whatever a wait needs has been enqueued before it: no wait
 * can block for ever, however short the rings are. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/host/work.h"

/* The rings of all streams take ALL_RINGS bytes, but for the bounds of each: where one is full, whoever fills it and
 * who empties it wait for each other. The longest has room for what most plans do in RT_AHEAD periods, so that a job
 * that is slower than its plan says does not keep others from being given their work. */
enum { LONGEST_RING = 65536, SHORTEST_RING = 256, ALL_RINGS = 1 << 29, UNRECORDED = -2, NONE = -1 };

typedef struct stream {
  rt_streams *of;
  int32_t index;
  pthread_t thread;
  bool started;
  pthread_mutex_t lock;       /* head, tail, quit */
  pthread_cond_t more, fewer; /* the ring has become longer, or shorter */
  pthread_cond_t caught_up;   /* `done` has reached `awaited` */
  pthread_cond_t recorded;    /* the event that it sleeps on */
  int32_t sleeps_on;          /* an event, or NONE; under the lock of all streams */
  int64_t head, tail;         /* next free, next to perform */
  int64_t done, awaited;      /* pieces of work performed in all; how many of them one waits for */
  int64_t laps[RT_AHEAD];     /* how many pieces of work were enqueued by the end of each of the last laps */
  bool quit;
  rt_work *ring;
} stream;

struct rt_streams {
  rt_performer perform;
  void *user;
  int32_t n_streams, n_events;
  stream *streams;
  rt_work *rings; /* one behind the other */
  int64_t room;   /* of a ring */
  int64_t n_laps;

  _Atomic int64_t *generations; /* by event: of its last record */
  _Atomic int32_t *sleepers;    /* by event: streams that sleep on it, or are about to */
  int64_t *promised;            /* by event: of its last record enqueued */
  pthread_mutex_t lock;         /* failure, and who sleeps on what */
  atomic_bool failed;
  planc_status failure;
};

/* --- Making ------------------------------------------------------------------------------------------------------- */

static planc_status fill_streams(rt_streams *streams, int32_t n_streams);
static int64_t room_of_ring(int32_t n_streams);
static planc_status start(rt_streams *streams, int32_t index);
static void *run_stream(void *argument);
static void fail(rt_streams *streams, planc_status status);

planc_status rt_streams_new(int32_t n_streams, int32_t n_events, rt_performer performer, void *user, rt_streams **out) {
  rt_streams *streams = calloc(1, sizeof *streams);
  if (!streams) return planc_error(PLANC_OUT_OF_MEMORY, "streams");
  pthread_mutex_init(&streams->lock, NULL);
  streams->perform = performer;
  streams->user = user;
  streams->n_events = n_events;
  planc_status status = fill_streams(streams, n_streams);
  if (status)
    rt_streams_free(streams);
  else
    *out = streams;
  return status;
}

static planc_status fill_streams(rt_streams *streams, int32_t n_streams) {
  streams->streams = calloc((size_t)n_streams + 1, sizeof *streams->streams);
  streams->room = room_of_ring(n_streams);
  streams->rings = calloc((size_t)n_streams * (size_t)streams->room + 1, sizeof *streams->rings);
  streams->generations = calloc((size_t)streams->n_events + 1, sizeof *streams->generations);
  streams->sleepers = calloc((size_t)streams->n_events + 1, sizeof *streams->sleepers);
  streams->promised = calloc((size_t)streams->n_events + 1, sizeof *streams->promised);
  if (!streams->streams || !streams->rings || !streams->generations || !streams->sleepers || !streams->promised)
    return planc_error(PLANC_OUT_OF_MEMORY, "streams");
  rt_streams_forget(streams);
  for (int32_t i = 0; i < n_streams; i++) PLANC_TRY(start(streams, i));
  return NULL;
}

static int64_t room_of_ring(int32_t n_streams) {
  int64_t room = ALL_RINGS / (int64_t)sizeof(rt_work) / (n_streams > 0 ? n_streams : 1);
  return room > LONGEST_RING ? LONGEST_RING : room < SHORTEST_RING ? SHORTEST_RING : room;
}

static planc_status start(rt_streams *streams, int32_t index) {
  stream *s = &streams->streams[index];
  s->of = streams;
  s->index = index;
  s->ring = streams->rings + index * streams->room;
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->more, NULL);
  pthread_cond_init(&s->fewer, NULL);
  pthread_cond_init(&s->caught_up, NULL);
  pthread_cond_init(&s->recorded, NULL);
  s->sleeps_on = NONE;
  streams->n_streams++;
  if (pthread_create(&s->thread, NULL, run_stream, s) != 0)
    return planc_error(PLANC_DEVICE, "host: no thread for stream %d", index);
  s->started = true;
  return NULL;
}

static void stop(stream *s) {
  if (s->started) {
    pthread_mutex_lock(&s->lock);
    s->quit = true;
    pthread_cond_signal(&s->more);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
  }
  pthread_mutex_destroy(&s->lock);
  pthread_cond_destroy(&s->more);
  pthread_cond_destroy(&s->fewer);
  pthread_cond_destroy(&s->caught_up);
  pthread_cond_destroy(&s->recorded);
}

void rt_streams_free(rt_streams *streams) {
  if (!streams) return;
  /* Dropping what is left, which wakes those that wait for what will never come. */
  fail(streams, NULL);
  for (int32_t i = 0; i < streams->n_streams; i++) stop(&streams->streams[i]);
  planc_status_free(streams->failure);
  pthread_mutex_destroy(&streams->lock);
  free(streams->streams);
  free(streams->rings);
  free((void *)streams->generations);
  free((void *)streams->sleepers);
  free(streams->promised);
  free(streams);
}

/* --- A stream's thread -------------------------------------------------------------------------------------------- */

static void perform(stream *s, const rt_work *work);
static void await(stream *s, int32_t event, int64_t generation);
static void wake_sleepers(rt_streams *streams, int32_t event);
static bool has_room(const stream *s);

static void *run_stream(void *argument) {
  stream *s = argument;
  const rt_streams *streams = s->of;
  pthread_mutex_lock(&s->lock);
  for (;;) {
    while (s->tail == s->head && !s->quit) pthread_cond_wait(&s->more, &s->lock);
    if (s->tail == s->head) break;
    const rt_work *work = &s->ring[s->tail % streams->room];
    pthread_mutex_unlock(&s->lock);
    perform(s, work);
    pthread_mutex_lock(&s->lock);
    s->tail++;
    if (++s->done == s->awaited) pthread_cond_signal(&s->caught_up);
    if (s->tail == s->head) s->tail = s->head = 0; /* memory behind what was ever needed stays untouched */
    if (has_room(s)) pthread_cond_signal(&s->fewer);
  }
  pthread_mutex_unlock(&s->lock);
  return NULL;
}

static void perform(stream *s, const rt_work *work) {
  rt_streams *streams = s->of;
  if (atomic_load(&streams->failed)) return;
  if (work->kind == RT_WORK_WAIT) {
    await(s, work->event, work->generation);
  } else if (work->kind == RT_WORK_RECORD) {
    atomic_store(&streams->generations[work->event], work->generation);
    wake_sleepers(streams, work->event);
  } else {
    planc_status status = streams->perform(streams->user, s->index, work);
    if (status) fail(streams, status);
  }
}

static void await(stream *s, int32_t event, int64_t generation) {
  rt_streams *streams = s->of;
  if (rt_streams_reached(streams, event, generation)) return;
  pthread_mutex_lock(&streams->lock);
  atomic_fetch_add(&streams->sleepers[event], 1);
  s->sleeps_on = event;
  while (!rt_streams_reached(streams, event, generation) && !atomic_load(&streams->failed))
    pthread_cond_wait(&s->recorded, &streams->lock);
  s->sleeps_on = NONE;
  atomic_fetch_sub(&streams->sleepers[event], 1);
  pthread_mutex_unlock(&streams->lock);
}

/* Only those that sleep on it: many streams wait most of the time, and would take processors from those that work. */
static void wake_sleepers(rt_streams *streams, int32_t event) {
  if (atomic_load(&streams->sleepers[event]) == 0) return;
  pthread_mutex_lock(&streams->lock);
  for (int32_t i = 0; i < streams->n_streams; i++)
    if (streams->streams[i].sleeps_on == event) pthread_cond_signal(&streams->streams[i].recorded);
  pthread_mutex_unlock(&streams->lock);
}

/* Keeps the first failure; from now on work is dropped. */
static void fail(rt_streams *streams, planc_status status) {
  pthread_mutex_lock(&streams->lock);
  if (streams->failure)
    planc_status_free(status);
  else
    streams->failure = status;
  atomic_store(&streams->failed, true);
  for (int32_t i = 0; i < streams->n_streams; i++) pthread_cond_signal(&streams->streams[i].recorded);
  pthread_mutex_unlock(&streams->lock);
}

/* Whoever fills the ring, and found it full, goes on once half of it is empty: woken for each piece it would take
 * longer than the piece. Who waits for all to be done is woken as well. */
static bool has_room(const stream *s) {
  int64_t n = s->head - s->tail;
  return n == 0 || n == s->of->room / 2;
}

/* --- What the interpreter's thread does --------------------------------------------------------------------------- */

planc_status rt_streams_enqueue(rt_streams *streams, int32_t stream_index, const rt_work *work) {
  if (work->kind == RT_WORK_RECORD) streams->promised[work->event] = work->generation;
  if (work->kind == RT_WORK_WAIT && streams->promised[work->event] < work->generation)
    return planc_error(PLANC_INVALID_PLAN, "stream %d waits for event %d before it is recorded", stream_index,
                       work->event);
  stream *s = &streams->streams[stream_index];
  pthread_mutex_lock(&s->lock);
  while (s->head - s->tail == streams->room) pthread_cond_wait(&s->fewer, &s->lock);
  s->ring[s->head++ % streams->room] = *work;
  pthread_cond_signal(&s->more);
  pthread_mutex_unlock(&s->lock);
  return NULL;
}

bool rt_streams_reached(const rt_streams *streams, int32_t event, int64_t generation) {
  return atomic_load(&streams->generations[event]) >= generation;
}

void rt_streams_forget(rt_streams *streams) {
  for (int32_t e = 0; e < streams->n_events; e++) {
    atomic_store(&streams->generations[e], UNRECORDED);
    streams->promised[e] = UNRECORDED;
  }
}

/* Work that was dropped after a failure counts as done. */
static void end_lap(stream *s, int64_t lap) {
  int64_t *end = &s->laps[lap % RT_AHEAD];
  pthread_mutex_lock(&s->lock);
  s->awaited = *end;
  *end = s->done + s->head - s->tail;
  while (s->done < s->awaited) pthread_cond_wait(&s->caught_up, &s->lock);
  pthread_mutex_unlock(&s->lock);
}

void rt_streams_end_lap(rt_streams *streams) {
  for (int32_t i = 0; i < streams->n_streams; i++) end_lap(&streams->streams[i], streams->n_laps);
  streams->n_laps++;
}

planc_status rt_streams_synchronize(rt_streams *streams) {
  for (int32_t i = 0; i < streams->n_streams; i++) {
    stream *s = &streams->streams[i];
    pthread_mutex_lock(&s->lock);
    while (s->head != s->tail) pthread_cond_wait(&s->fewer, &s->lock);
    pthread_mutex_unlock(&s->lock);
  }
  planc_status failure = streams->failure;
  streams->failure = NULL;
  atomic_store(&streams->failed, false);
  return failure;
}
