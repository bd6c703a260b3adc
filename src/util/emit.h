/* Text that grows: what graphs, plans, profiles, traces and reports are printed with.
 *
 * The first failure (no memory, a value that the format has no form for) is kept, and whatever follows does nothing; so
 * a file is printed without a check after every value, and pl_emit_take tells at the end. */
#ifndef PLANC_UTIL_EMIT_H
#define PLANC_UTIL_EMIT_H

#include <stddef.h>
#include <stdint.h>

#include "planc/status.h"

typedef struct pl_emit {
  char *text;
  size_t length, capacity;
  planc_status failure;
} pl_emit;

void pl_emit_bytes(pl_emit *emit, const char *bytes, size_t length);
void pl_emit_text(pl_emit *emit, const char *text);
/* printf's, for integers and strings: reals would take the locale's point. */
void pl_emit_format(pl_emit *emit, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Integers as every reader of ours and of JSON takes them: beyond 2^53 on either side they fail. */
void pl_emit_int(pl_emit *emit, int64_t value);
void pl_emit_ints(pl_emit *emit, const int32_t *values, int64_t n);
void pl_emit_longs(pl_emit *emit, const int64_t *values, int64_t n);
/* In its shortest decimals; one that is not finite fails. */
void pl_emit_real(pl_emit *emit, double value);
/* As JSON has it, quoted and escaped; NULL is the empty string. */
void pl_emit_string(pl_emit *emit, const char *string);
/* Quoted, sixteen hexadecimal digits. */
void pl_emit_hash(pl_emit *emit, uint64_t hash);
/* Keeps `failure` unless there is one already. */
void pl_emit_fail(pl_emit *emit, planc_status failure);
/* The text with a NUL behind it, malloc'ed; or the failure, and NULL. Empties `emit`. */
planc_status pl_emit_take(pl_emit *emit, char **out_text, size_t *out_length);

#define EMIT(emit, literal) pl_emit_bytes((emit), "" literal, sizeof literal - 1)
/* A key with its punctuation and the integer after it. */
#define EMIT_INT(emit, key, value) (EMIT((emit), key), pl_emit_int((emit), (value)))

#endif
