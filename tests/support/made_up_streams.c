#include "tests/support/made_up_streams.h"

#include <check.h>
#include <string.h>

#include "tests/support/randgraph.h"
#include "tests/support/unit.h"
#include "util/vec.h"

typedef enum kind { WORK, RECORD, WAIT } kind;
enum { MOST_STREAMS = 8, MOST_BYTES = 64 };

typedef struct task {
  kind kind;
  int64_t record; /* RECORD: this one; WAIT: for that one. The records are numbered as they are enqueued, from 1 on */
  void (*work)(void *what);
  char what[MOST_BYTES];
} task;

typedef struct stream {
  VEC(task) tasks;
  int64_t at;
} stream;

struct streams {
  uint64_t random;
  stream streams[MOST_STREAMS];
  VEC(int64_t) last; /* by event: its last record; 0: there is none */
  VEC(bool) reached; /* by record */
};

streams *streams_new(uint64_t random) {
  streams *all = calloc(1, sizeof *all);
  ck_assert(all);
  all->random = random;
  ok(VEC_RESERVE(&all->reached, 1));
  all->reached.data[all->reached.len++] = true;
  return all;
}

void streams_free(streams *all) {
  if (!all) return;
  for (int32_t s = 0; s < MOST_STREAMS; s++) VEC_FREE(&all->streams[s].tasks);
  VEC_FREE(&all->last);
  VEC_FREE(&all->reached);
  free(all);
}

/* --- Enqueueing --------------------------------------------------------------------------------------------------- */

static void add(streams *all, int32_t number, task made) {
  ck_assert(number >= 0 && number < MOST_STREAMS);
  stream *to = &all->streams[number];
  ok(VEC_RESERVE(&to->tasks, to->tasks.len + 1));
  to->tasks.data[to->tasks.len++] = made;
}

void streams_enqueue(streams *all, int32_t number, void (*work)(void *what), const void *what, size_t bytes) {
  task made = {.kind = WORK, .work = work};
  ck_assert(bytes <= MOST_BYTES);
  memcpy(made.what, what, bytes);
  add(all, number, made);
}

static int64_t *last_record(streams *all, int32_t event) {
  ck_assert_int_ge(event, 0);
  ok(VEC_RESERVE(&all->last, (int64_t)event + 1));
  while (all->last.len <= event) all->last.data[all->last.len++] = 0;
  return &all->last.data[event];
}

void streams_record(streams *all, int32_t event, int32_t number) {
  ok(VEC_RESERVE(&all->reached, all->reached.len + 1));
  *last_record(all, event) = all->reached.len;
  add(all, number, (task){.kind = RECORD, .record = all->reached.len});
  all->reached.data[all->reached.len++] = false;
}

void streams_wait(streams *all, int32_t event, int32_t number) {
  add(all, number, (task){.kind = WAIT, .record = *last_record(all, event)});
}

/* --- Running ------------------------------------------------------------------------------------------------------ */

/* Runs the next task of a stream, if there is one that can run. */
static bool step(streams *all, stream *on) {
  if (on->at == on->tasks.len) return false;
  task *next = &on->tasks.data[on->at];
  if (next->kind == WAIT && !all->reached.data[next->record]) return false;
  if (next->kind == RECORD) all->reached.data[next->record] = true;
  if (next->kind == WORK) next->work(next->what);
  if (++on->at == on->tasks.len) on->at = on->tasks.len = 0;
  return true;
}

/* The streams are unlike fast, and another one is the fastest each time. */
void streams_go_on(streams *all) {
  stream *fastest = &all->streams[rand_below(&all->random, MOST_STREAMS)];
  for (int64_t n = rand_below(&all->random, 12); n > 0; n--)
    if (!step(all, fastest)) break;
}

bool streams_are_done(const streams *all) {
  for (int32_t s = 0; s < MOST_STREAMS; s++)
    if (all->streams[s].tasks.len > 0) return false;
  return true;
}

void streams_finish(streams *all) {
  bool went_on = true;
  while (went_on) {
    went_on = false;
    for (int32_t s = 0; s < MOST_STREAMS; s++) went_on = step(all, &all->streams[s]) || went_on;
  }
  ck_assert_msg(streams_are_done(all), "streams wait for one another");
}
