/* The scanner of the plan reader.
 *
 * A plan has one form only: fixed keys in fixed order, no blanks, no exponents in numbers. So reading is pulling: the
 * caller says which literal comes next and which value follows it, and the file is right or an error. A general JSON
 * library would build a tree of every row, take about ten times as long and then leave the same questions (which keys,
 * in which order, what range) to be asked; a file that such a library accepts may still not be the bytes that the
 * writer would write, which `planc check` must be able to rely on. */
#ifndef PLANC_PLAN_ROW_H
#define PLANC_PLAN_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "planc/graph.h"
#include "util/arena.h"
#include "util/math.h"

#define PLANC_ROW_MAX PLANC_EXACT_MAX /* of any integer */

typedef struct planc_row {
  const char *path;     /* for messages */
  const char *at, *end; /* the next byte; the text's end */
  const char *line;     /* where the present line starts */
  int64_t number;       /* of the present line, from 1 */
  planc_arena *arena;   /* where strings go */
} planc_row;

/* BAD_INPUT: "path:line:column: ..." for the byte at `place`. */
planc_status planc_row_error(const planc_row *row, const char *place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Passes over `literal` if it comes next. */
static inline bool planc_row_accepts(planc_row *row, const char *literal, size_t length) {
  if ((size_t)(row->end - row->at) < length || memcmp(row->at, literal, length) != 0) return false;
  row->at += length;
  return true;
}
/* The value of a hexadecimal digit in lower case, or -1. */
static inline int planc_row_hex(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}
planc_status planc_row_literal(planc_row *row, const char *literal, size_t length);
/* A key with its punctuation, such as ",\"at\":", and the integer after it. */
planc_status planc_row_int64(planc_row *row, const char *key, size_t length, int64_t min, int64_t max, int64_t *out);
planc_status planc_row_int32(planc_row *row, const char *key, size_t length, int32_t min, int32_t max, int32_t *out);
planc_status planc_row_int(planc_row *row, int64_t min, int64_t max, int64_t *out);
/* A quoted string, copied to the row's arena. */
planc_status planc_row_string(planc_row *row, const char **out);
/* A number with a point or an exponent. */
planc_status planc_row_real(planc_row *row, double *out);
/* A size law: an integer, or a string such as "N", "25N", "3+50N". */
planc_status planc_row_law(planc_row *row, planc_law *out);
/* A quoted word out of `n` words; *out is its index. */
planc_status planc_row_word(planc_row *row, const char *const *words, int32_t n, int32_t *out);
/* The end of a row: `rest` and the line's end. */
planc_status planc_row_end(planc_row *row, const char *rest, size_t length);

/* The same with a string literal. */
#define ROW_ACCEPTS(row, literal) planc_row_accepts((row), "" literal, sizeof literal - 1)
#define ROW_LITERAL(row, literal) planc_row_literal((row), "" literal, sizeof literal - 1)
#define ROW_INT64(row, key, min, max, out) planc_row_int64((row), "" key, sizeof key - 1, (min), (max), (out))
#define ROW_INT32(row, key, min, max, out) planc_row_int32((row), "" key, sizeof key - 1, (min), (max), (out))
#define ROW_END(row, rest) planc_row_end((row), "" rest, sizeof rest - 1)

#endif
