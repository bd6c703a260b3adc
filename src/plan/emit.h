/* Writing the values of a plan's rows: row.h in the other direction.
 *
 * The first failure (no memory, a value that the format has no form for) is kept, and whatever follows does nothing; so
 * rows are written without a check after every value, and one at the end tells. */
#ifndef PLANC_PLAN_EMIT_H
#define PLANC_PLAN_EMIT_H

#include <stddef.h>
#include <stdint.h>

#include "planc/graph.h"

typedef struct planc_emit {
  char *text;
  size_t length, capacity;
  planc_status failure;
} planc_emit;

void planc_emit_bytes(planc_emit *emit, const char *bytes, size_t length);
/* Integers beyond 2^53 on either side fail. */
void planc_emit_int(planc_emit *emit, int64_t value);
void planc_emit_ints(planc_emit *emit, const int32_t *values, int64_t n);
void planc_emit_longs(planc_emit *emit, const int64_t *values, int64_t n);
/* Quoted and escaped; NULL is the empty string. */
void planc_emit_string(planc_emit *emit, const char *string);
/* Quoted, sixteen hexadecimal digits. */
void planc_emit_hash(planc_emit *emit, uint64_t hash);
void planc_emit_real(planc_emit *emit, double value);
void planc_emit_law(planc_emit *emit, planc_law law);
/* Keeps `failure` unless there is one already. */
void planc_emit_fail(planc_emit *emit, planc_status failure);

#define EMIT(emit, literal) planc_emit_bytes((emit), "" literal, sizeof literal - 1)
/* A key with its punctuation and the integer after it. */
#define EMIT_INT(emit, key, value) (EMIT((emit), key), planc_emit_int((emit), (value)))

#endif
