/* What the files of expected_calls.h share: one derives the calls, one compares them, one looks into an exec's call. */
#ifndef PLANC_TESTS_EXPECTED_PARTS_H
#define PLANC_TESTS_EXPECTED_PARTS_H

#include "tests/support/expected_calls.h"
#include "util/vec.h"

/* Memories of the plan. */
enum { DEVICE, HOST };
/* Results wait in one row for each period that may be compared at once, and one more of a captured body. */
enum { CAPTURED_ROW = PLANRT_VERIFY_PERIODS, ROWS };
/* Without comparison they wait in so many rows, in turn. */
enum { ROWS_IN_TURN = 2 };
/* What the user brings and gets has streams of its own behind the plan's. Each of a body's copies from and to him has
 * events behind the plan's: something is ready, and, of this body or the one before, it has been taken. */
enum { LANE_IN, LANE_OUT, N_LANES };
enum { READY, TAKEN, N_HANDOVER_EVENTS = TAKEN + ROWS_IN_TURN };

/* A call that must come. Where the host's side is the user's memory its address is not known beforehand, but must be
 * the same each time: `place` says which piece it is, -1 none. */
typedef struct expected_call {
  recorded_call call;
  int32_t place;
  int32_t exec; /* prepare, launch, digest: which of the body's execs; else -1 */
  bool timed;   /* it has a span */
} expected_call;

/* A piece of the user's memory. */
typedef struct piece {
  const char *at; /* NULL: not met yet */
  int64_t bytes;
} piece;

struct expected_calls {
  const planc_plan *plan;
  const planrt_options *options;
  planc_trace *trace;
  VEC(expected_call) calls;
  bool interleaved; /* what was appended last */
  int64_t compared; /* so many of the recording */
  /* By residency. */
  int32_t *buffer, *memory;
  int64_t *address;
  bool *fresh; /* acquired, and not used since */
  /* By exec of the body. */
  const planc_instr **execs;
  const rt_call **prepared;
  int32_t n_execs;
  piece *places; /* homes by buffer, samples by copy from the user, results by buffer and row */
  int32_t n_places, n_handovers;
  int32_t handover;      /* of the section being expanded: how many of its copies from and to the user are behind us */
  const char *arenas[2]; /* by memory */
  const char *pinned;
  int64_t pinned_bytes;
};

/* Where a residency is. */
static inline const char *expected_residency(const expected_calls *e, int32_t residency) {
  return e->arenas[e->memory[residency]] + e->address[residency];
}

/* What differs between an exec's call and the plan's instruction; NULL if nothing does. */
const char *expected_call_difference(const expected_calls *e, const planc_instr *exec, const rt_call *got);

#endif
