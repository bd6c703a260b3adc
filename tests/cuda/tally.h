/* What compare_backends has compared, by kind of call: op type, operands' types, layout, and how it writes. */
#ifndef TESTS_CUDA_TALLY_H
#define TESTS_CUDA_TALLY_H

#include "runtime/call.h"
#include "tests/cuda/tolerance.h"

enum { TALLY_NAME = 192 };

typedef struct tally_kind {
  const char *type, *layout;
  char dtypes[TALLY_NAME]; /* "f32,f32>f32", side effects behind a second ">" */
  bool accumulates, in_place, tf32;
  int64_t calls, algorithms, left_out, failures;
  int64_t not_run; /* of the failures: calls that no algorithm could be run for */
  difference worst;
} tally_kind;

typedef struct tally {
  tally_kind *kinds;
  int32_t n, room;
} tally;

/* The kind of a call, added where it is new; NULL where memory runs out. Valid until the next is asked for. */
tally_kind *tally_of(tally *all, const rt_call *call);
/* All kinds together; its words are not set. */
tally_kind tally_sum(const tally *all);
/* A line of text, or of JSON: the sum, and for each kind the same. */
void tally_print(const tally *all, const char *graph, bool json);
void tally_free(tally *all);

#endif
