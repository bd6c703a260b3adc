/* Scanning the values of a plan's rows (row.h). */
#include "plan/row.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/real.h"
#include "util/utf8.h"

planc_status pl_row_error(const pl_row *row, const char *place, const char *format, ...) {
  char what[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  long long column = place - row->line + 1;
  return planc_error(PLANC_BAD_INPUT, "%s:%lld:%lld: %s", row->path, (long long)row->number, column, what);
}

planc_status pl_row_literal(pl_row *row, const char *literal, size_t length) {
  if (pl_row_accepts(row, literal, length)) return NULL;
  /* The place to name is the first byte that differs, not where the literal starts. */
  size_t same = 0;
  while (row->at + same < row->end && same < length && row->at[same] == literal[same]) same++;
  return pl_row_error(row, row->at + same, "expected %s%.*s", same ? "..." : "", (int)(length - same), literal + same);
}

planc_status pl_row_int(pl_row *row, int64_t min, int64_t max, int64_t *out) {
  const char *start = row->at, *at = start;
  bool negative = at < row->end && *at == '-';
  at += negative;
  const char *digits = at;
  int64_t value = 0;
  for (; at < row->end && *at >= '0' && *at <= '9'; at++) {
    value = value * 10 + (*at - '0');
    if (value > PL_ROW_MAX) return pl_row_error(row, start, "the number is beyond 2^53");
  }
  if (at == digits) return pl_row_error(row, at, "expected an integer");
  if (*digits == '0' && (negative || at - digits > 1)) {
    return pl_row_error(row, start, "the number is not in its shortest form");
  }
  if (negative) value = -value;
  if (value < min || value > max) {
    return pl_row_error(row, start, "%lld is not between %lld and %lld", (long long)value, (long long)min,
                        (long long)max);
  }
  row->at = at;
  *out = value;
  return NULL;
}

planc_status pl_row_int64(pl_row *row, const char *key, size_t length, int64_t min, int64_t max, int64_t *out) {
  PLANC_TRY(pl_row_literal(row, key, length));
  return pl_row_int(row, min, max, out);
}

planc_status pl_row_int32(pl_row *row, const char *key, size_t length, int32_t min, int32_t max, int32_t *out) {
  int64_t value;
  PLANC_TRY(pl_row_int64(row, key, length, min, max, &value));
  *out = (int32_t)value;
  return NULL;
}

/* --- Strings ------------------------------------------------------------------------------------------------------ */

/* The control character that \u00xx at `at` stands for; -1 if it is none. */
static int escaped_control(const char *at, const char *end) {
  if (end - at < 6 || memcmp(at, "\\u00", 4) != 0 || (at[4] != '0' && at[4] != '1')) return -1;
  int low = pl_row_hex(at[5]), value = (at[4] - '0') * 16 + low;
  return low < 0 || value == 0 ? -1 : value; /* a string cannot hold a NUL */
}

planc_status pl_row_hash(pl_row *row, uint64_t *out) {
  *out = 0;
  for (int i = 0; i < 16; i++, row->at++) {
    int digit = row->at < row->end ? pl_row_hex(*row->at) : -1;
    if (digit < 0) return pl_row_error(row, row->at, "expected 16 hexadecimal digits");
    *out = *out << 4 | (uint64_t)digit;
  }
  return NULL;
}

planc_status pl_row_string(pl_row *row, const char **out) {
  PLANC_TRY(ROW_LITERAL(row, "\""));
  const char *start = row->at, *at = start;
  int64_t escapes = 0;
  while (at < row->end && *at != '"') {
    if (*at == '\\') {
      bool plain = row->end - at >= 2 && (at[1] == '"' || at[1] == '\\');
      if (!plain && escaped_control(at, row->end) < 0) {
        return pl_row_error(row, at, "an escape other than \\\", \\\\ and \\u0001 to \\u001f");
      }
      at += plain ? 2 : 6;
      escapes++;
      continue;
    }
    int length = (unsigned char)*at < 0x20 ? 0 : pl_utf8_length(at, row->end);
    if (length == 0) return pl_row_error(row, at, "a string with a byte that is neither text nor an escape");
    at += length;
  }
  if (at == row->end) return pl_row_error(row, at, "a string without an end");
  row->at = at + 1;
  if (escapes == 0) return pl_arena_strndup(row->arena, start, (size_t)(at - start), out);

  char *copy, *to;
  PLANC_TRY(pl_arena_alloc(row->arena, at - start + 1, 1, (void *)&copy));
  to = copy;
  while (start < at) {
    if (*start != '\\') {
      *to++ = *start++;
    } else if (start[1] == 'u') {
      *to++ = (char)escaped_control(start, at);
      start += 6;
    } else {
      *to++ = start[1];
      start += 2;
    }
  }
  *out = copy;
  return NULL;
}

static planc_status not_one_of(const pl_row *row, const char *const *words, int32_t n) {
  enum { FEW = 8 };
  char list[FEW * PL_NUMBER_TEXT] = "";
  size_t length = 0;
  if (n > FEW) return pl_row_error(row, row->at, "not one of the words that may stand here, such as \"%s\"", words[0]);
  for (int32_t i = 0; i < n && length < sizeof list; i++)
    length += (size_t)snprintf(list + length, sizeof list - length, "%s\"%s\"",
                               i == 0      ? ""
                               : i < n - 1 ? ", "
                                           : " or ",
                               words[i]);
  return pl_row_error(row, row->at, "not %s", list);
}

planc_status pl_row_word(pl_row *row, const char *const *words, int32_t n, int32_t *out) {
  PLANC_TRY(ROW_LITERAL(row, "\""));
  const char *stop = row->at;
  while (stop < row->end && *stop != '"' && *stop != '\n') stop++;
  for (int32_t i = 0; i < n; i++) {
    size_t length = strlen(words[i]);
    if ((size_t)(stop - row->at) != length || memcmp(row->at, words[i], length) != 0) continue;
    row->at = stop;
    *out = i;
    return ROW_LITERAL(row, "\"");
  }
  return not_one_of(row, words, n);
}

planc_status pl_row_name(pl_row *row, const char *(*fault_of)(const char *), const char **out) {
  const char *place = row->at;
  PLANC_TRY(pl_row_string(row, out));
  const char *fault = fault_of(*out);
  return fault ? pl_row_error(row, place, "the name %s", fault) : NULL;
}

/* --- Reals and laws ----------------------------------------------------------------------------------------------- */

planc_status pl_row_real(pl_row *row, double *out) {
  char text[PL_NUMBER_TEXT], canonical[PL_NUMBER_TEXT];
  size_t length = 0;
  while (row->at + length < row->end && length < sizeof text - 1 && row->at[length] &&
         strchr("+-.0123456789e", row->at[length])) {
    text[length] = row->at[length];
    length++;
  }
  text[length] = '\0';
  /* One form only: a number is right when the writer would have written it so. */
  if (!pl_real_parse(text, out) || !isfinite(*out) || strcmp(text, pl_real_text(*out, canonical)) != 0) {
    return pl_row_error(row, row->at, "not the shortest decimal of a real number");
  }
  row->at += length;
  return NULL;
}

planc_status pl_row_law(pl_row *row, planc_law *out) {
  *out = (planc_law){0};
  if (!ROW_ACCEPTS(row, "\"")) return pl_row_int(row, 0, PL_ROW_MAX, &out->fixed);
  out->per_sample = 1;
  if (ROW_ACCEPTS(row, "N\"")) return NULL;
  const char *start = row->at;
  PLANC_TRY(pl_row_int(row, 1, PL_ROW_MAX, &out->per_sample));
  if (ROW_ACCEPTS(row, "+")) {
    out->fixed = out->per_sample;
    out->per_sample = 1;
    if (ROW_ACCEPTS(row, "N\"")) return NULL;
    start = row->at;
    PLANC_TRY(pl_row_int(row, 1, PL_ROW_MAX, &out->per_sample));
  }
  if (out->per_sample == 1) return pl_row_error(row, start, "1N is written N");
  return ROW_LITERAL(row, "N\"");
}

planc_status pl_row_end(pl_row *row, const char *rest, size_t length) {
  PLANC_TRY(pl_row_literal(row, rest, length));
  if (row->at == row->end || *row->at != '\n') return pl_row_error(row, row->at, "expected the line's end");
  row->line = ++row->at;
  row->number++;
  return NULL;
}
