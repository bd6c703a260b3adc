/* A framework that is made up, for tests of the follower: it holds memory for each buffer, makes the calls of random
 * graphs, and stamps all bytes of what they write, so that each read tells whether it has what the trace says. What is
 * expected comes from the header, the trace and the plan's file alone.
 *
 * With an arena memory is where the follower has it, and never two buffers' at a time. With streams calls and copies
 * run some time after they are enqueued, and memory that is given back is used by others from there on in the order of
 * the calls' stream. */
#ifndef PLANC_TESTS_FRAMEWORK_H
#define PLANC_TESTS_FRAMEWORK_H

#include "planrt/follow.h"
#include "tests/support/made_up_streams.h"

enum { ITERATIONS = 4, NEVER = -1 };

/* What a framework has, by bits. */
enum { FAKE_PLAIN = 0, FAKE_STREAMS = 1, FAKE_ARENA = 2, FAKE_KINDS = 4 };

/* By buffer. */
typedef struct holding {
  unsigned char *memory; /* NULL: it has none */
  uint64_t base;         /* stamp of its version 0; of what persists it goes from one iteration to the next */
  int32_t now;           /* version by the calls that were made */
  bool known;            /* there is a tensor of it: one that persists, or one made in this iteration */
  bool gone;             /* released for the last time in this iteration */
  bool delivered;        /* the user has its last version */
} holding;

typedef struct fake {
  const planc_plan *plan;
  const planc_trace *trace;
  planrt_follow *follow;
  streams *streams;     /* NULL: the host does all at once */
  unsigned char *arena; /* NULL: memory is anywhere */
  int64_t arena_bytes;
  bool has_arena, left; /* `left`: in this iteration */
  void **slots;         /* with streams: memory that somebody else may use by now */
  int32_t n_slots;
  uint64_t random;
  holding *held;
  bool *called, *again; /* by call: in this iteration; whether the plan has it more than once */
  int64_t bytes, limit; /* held now, and the most that may be; -1 = any */
  int64_t iteration, n_repeats, n_left;
  int64_t fail_in; /* functions of the framework until one fails, -1 = none does */
  bool failed;
} fake;

uint64_t fake_mixed(uint64_t a, uint64_t b);
void *fake_zeroed(int64_t count, size_t size);
const planc_buffer *fake_buffer(const fake *f, int32_t b);
bool fake_persists(const fake *f, int32_t b);

/* Until fake_free. */
void fake_start(fake *f, const planc_plan *plan, int kind, uint64_t seed);
/* Takes the plan, or says why it is not taken. Some of what persists is there before the first iteration. */
planc_status fake_follow(fake *f);
void fake_free(fake *f);

/* Bytes of a buffer of the framework's: written; whether they are those of a version, now or when the calls' stream has
 * come so far; given back. */
uint64_t fake_stamp_of(const fake *f, int32_t b, int32_t version);
void fake_stamp(fake *f, int32_t b, int32_t version);
void fake_assert_holds(const fake *f, int32_t b, int32_t version, const char *when);
void fake_give(fake *f, int32_t b);

/* An iteration, whole or in parts. It leaves the plan before call `leave_at`, where that is one, or after the last. */
planc_status fake_iterate(fake *f, int32_t leave_at);
planc_status fake_begin(fake *f);
/* A call of the graph. What persists comes into being where it is first used. */
void fake_call(fake *f, int32_t call, const char *how);
planc_status fake_leave(fake *f, int32_t next);
planc_status fake_end(fake *f, bool left);
/* What a user does between iterations with what persists: reads some, writes some, puts some elsewhere,
 * and has others in the place of some. */
planc_status fake_use_between(fake *f);
void fake_assert_has(const fake *f, int32_t b);

typedef enum manner { FAITHFUL, LEAVING, MEDDLING, BOTH, MANNERS } manner;
/* ITERATIONS iterations. */
planc_status fake_run(fake *f, manner how);

#endif
