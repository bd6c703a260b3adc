/* Text that grows: what graphs, plans, profiles, traces and reports are printed with.
 *
 * The first failure (no memory, a value that the format has no form for) is kept, and whatever follows does nothing; so
 * a file is printed without a check after every value, and planc_emit_take tells at the end. */
#ifndef PLANC_UTIL_EMIT_H
#define PLANC_UTIL_EMIT_H

#include <stddef.h>
#include <stdint.h>

#include "planc/status.h"

typedef struct planc_emit {
  char *text;
  size_t length, capacity;
  planc_status failure;
} planc_emit;

void planc_emit_bytes(planc_emit *emit, const char *bytes, size_t length);
void planc_emit_text(planc_emit *emit, const char *text);
/* printf's, for integers and strings: reals would take the locale's point. */
void planc_emit_format(planc_emit *emit, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Integers as every reader of ours and of JSON takes them: beyond 2^53 on either side they fail. */
void planc_emit_int(planc_emit *emit, int64_t value);
void planc_emit_ints(planc_emit *emit, const int32_t *values, int64_t n);
void planc_emit_longs(planc_emit *emit, const int64_t *values, int64_t n);
/* In its shortest decimals; one that is not finite fails. */
void planc_emit_real(planc_emit *emit, double value);
/* As JSON has it, quoted and escaped; NULL is the empty string. */
void planc_emit_string(planc_emit *emit, const char *string);
/* Quoted, sixteen hexadecimal digits. */
void planc_emit_hash(planc_emit *emit, uint64_t hash);
/* Keeps `failure` unless there is one already. */
void planc_emit_fail(planc_emit *emit, planc_status failure);
/* The text with a NUL behind it, malloc'ed; or the failure, and NULL. Empties `emit`. */
planc_status planc_emit_take(planc_emit *emit, char **out_text, size_t *out_length);

#define EMIT(emit, literal) planc_emit_bytes((emit), "" literal, sizeof literal - 1)
/* A key with its punctuation and the integer after it. */
#define EMIT_INT(emit, key, value) (EMIT((emit), key), planc_emit_int((emit), (value)))

#endif
