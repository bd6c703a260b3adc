/* The scanner of the plan reader.
 *
 * A plan has one form only: fixed keys in fixed order, no blanks, no exponents in numbers. So reading is pulling: the
 * caller says which literal comes next and which value follows it, and the file is right or an error. A general JSON
 * library would build a tree of every row and take about ten times as long. It would then leave the same questions to
 * be asked: which keys, in which order, what range. And a file that it accepts need not be the bytes that the writer
 * would write, which `planc check` relies on. */
#ifndef PLANC_PLAN_ROW_H
#define PLANC_PLAN_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "planc/graph.h"
#include "util/arena.h"
#include "util/math.h"

#define PL_ROW_MAX PL_EXACT_MAX /* of any integer */

typedef struct pl_row {
  const char *path;     /* for messages */
  const char *at, *end; /* the next byte; the text's end */
  const char *line;     /* where the present line starts */
  int64_t number;       /* of the present line, from 1 */
  pl_arena *arena;      /* where strings go */
} pl_row;

/* BAD_INPUT: "path:line:column: ..." for the byte at `place`. */
planc_status pl_row_error(const pl_row *row, const char *place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Passes over `literal` if it comes next. */
static inline bool pl_row_accepts(pl_row *row, const char *literal, size_t length) {
  if ((size_t)(row->end - row->at) < length || memcmp(row->at, literal, length) != 0) return false;
  row->at += length;
  return true;
}
/* The value of a hexadecimal digit in lower case, or -1. */
static inline int pl_row_hex(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}
planc_status pl_row_literal(pl_row *row, const char *literal, size_t length);
/* A key with its punctuation, such as ",\"at\":", and the integer after it. */
planc_status pl_row_int64(pl_row *row, const char *key, size_t length, int64_t min, int64_t max, int64_t *out);
planc_status pl_row_int32(pl_row *row, const char *key, size_t length, int32_t min, int32_t max, int32_t *out);
planc_status pl_row_int(pl_row *row, int64_t min, int64_t max, int64_t *out);
/* 16 hexadecimal digits. */
planc_status pl_row_hash(pl_row *row, uint64_t *out);
/* A quoted string, copied to the row's arena. */
planc_status pl_row_string(pl_row *row, const char **out);
/* The same of a name, which people see: what terminals and logs would obey is none. `fault_of` says what is wrong with
 * it, or NULL. */
planc_status pl_row_name(pl_row *row, const char *(*fault_of)(const char *), const char **out);
/* A number with a point or an exponent. */
planc_status pl_row_real(pl_row *row, double *out);
/* A size law: an integer, or a string such as "N", "25N", "3+50N". */
planc_status pl_row_law(pl_row *row, planc_law *out);
/* A quoted word out of `n` words; *out is its index. */
planc_status pl_row_word(pl_row *row, const char *const *words, int32_t n, int32_t *out);
/* The end of a row: `rest` and the line's end. */
planc_status pl_row_end(pl_row *row, const char *rest, size_t length);

/* The same with a string literal. */
#define ROW_ACCEPTS(row, literal) pl_row_accepts((row), "" literal, sizeof literal - 1)
#define ROW_LITERAL(row, literal) pl_row_literal((row), "" literal, sizeof literal - 1)
#define ROW_INT64(row, key, min, max, out) pl_row_int64((row), "" key, sizeof key - 1, (min), (max), (out))
#define ROW_INT32(row, key, min, max, out) pl_row_int32((row), "" key, sizeof key - 1, (min), (max), (out))
#define ROW_END(row, rest) pl_row_end((row), "" rest, sizeof rest - 1)

#endif
