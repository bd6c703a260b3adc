/* Text that grows (emit.h). */
#include "util/emit.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/math.h"
#include "util/real.h"

void pl_emit_fail(pl_emit *emit, planc_status failure) {
  if (emit->failure) {
    planc_status_free(failure);
  } else {
    emit->failure = failure;
  }
}

/* Where `length` bytes can be written; NULL after a failure. */
static char *room(pl_emit *emit, size_t length) {
  if (emit->failure) return NULL;
  if (emit->capacity - emit->length < length) {
    size_t capacity = emit->capacity ? emit->capacity : 4096;
    while (capacity - emit->length < length && capacity <= SIZE_MAX / 4) capacity *= 2;
    char *text = capacity - emit->length < length ? NULL : realloc(emit->text, capacity);
    if (!text) {
      pl_emit_fail(emit, planc_error(PLANC_OUT_OF_MEMORY, "out of memory"));
      return NULL;
    }
    emit->text = text;
    emit->capacity = capacity;
  }
  return emit->text + emit->length;
}

void pl_emit_bytes(pl_emit *emit, const char *bytes, size_t length) {
  char *to = room(emit, length);
  if (!to) return;
  memcpy(to, bytes, length);
  emit->length += length;
}

void pl_emit_text(pl_emit *emit, const char *text) {
  pl_emit_bytes(emit, text, strlen(text));
}

void pl_emit_format(pl_emit *emit, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  char *to = length < 0 ? NULL : room(emit, (size_t)length + 1);
  if (length < 0) pl_emit_fail(emit, planc_error(PLANC_OUT_OF_MEMORY, "out of memory"));
  if (!to) return;
  va_start(arguments, format);
  vsnprintf(to, (size_t)length + 1, format, arguments);
  va_end(arguments);
  emit->length += (size_t)length;
}

void pl_emit_int(pl_emit *emit, int64_t value) {
  if (value < -PL_EXACT_MAX || value > PL_EXACT_MAX) {
    pl_emit_fail(emit, planc_error(PLANC_BAD_INPUT, "%lld cannot be written: it is beyond 2^53", (long long)value));
    return;
  }
  enum { DIGITS = 20 };
  char text[DIGITS];
  size_t first = DIGITS;
  uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  do {
    text[--first] = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest);
  if (value < 0) text[--first] = '-';
  pl_emit_bytes(emit, &text[first], DIGITS - first);
}

void pl_emit_ints(pl_emit *emit, const int32_t *values, int64_t n) {
  EMIT(emit, "[");
  for (int64_t i = 0; i < n; i++) {
    if (i) EMIT(emit, ",");
    pl_emit_int(emit, values[i]);
  }
  EMIT(emit, "]");
}

void pl_emit_longs(pl_emit *emit, const int64_t *values, int64_t n) {
  EMIT(emit, "[");
  for (int64_t i = 0; i < n; i++) {
    if (i) EMIT(emit, ",");
    pl_emit_int(emit, values[i]);
  }
  EMIT(emit, "]");
}

void pl_emit_string(pl_emit *emit, const char *string) {
  EMIT(emit, "\"");
  for (const char *at = string ? string : ""; *at;) {
    size_t plain = 0;
    while ((unsigned char)at[plain] >= 0x20 && at[plain] != '"' && at[plain] != '\\') plain++;
    pl_emit_bytes(emit, at, plain);
    at += plain;
    if (!*at) break;
    char escape[8];
    int length = snprintf(escape, sizeof escape, (unsigned char)*at < 0x20 ? "\\u%04x" : "\\%c", (unsigned char)*at);
    pl_emit_bytes(emit, escape, (size_t)length);
    at++;
  }
  EMIT(emit, "\"");
}

void pl_emit_hash(pl_emit *emit, uint64_t hash) {
  static const char hex[] = "0123456789abcdef";
  EMIT(emit, "\"");
  for (int shift = 60; shift >= 0; shift -= 4) pl_emit_bytes(emit, &hex[hash >> shift & 15], 1);
  EMIT(emit, "\"");
}

void pl_emit_real(pl_emit *emit, double value) {
  if (!isfinite(value)) {
    pl_emit_fail(emit, planc_error(PLANC_BAD_INPUT, "a real number that is not finite has no text"));
    return;
  }
  char text[PL_NUMBER_TEXT];
  pl_emit_text(emit, pl_real_text(value, text));
}

planc_status pl_emit_take(pl_emit *emit, char **out_text, size_t *out_length) {
  pl_emit_bytes(emit, "", 1);
  planc_status failure = emit->failure;
  if (failure) free(emit->text);
  *out_text = failure ? NULL : emit->text;
  *out_length = failure ? 0 : emit->length - 1;
  *emit = (pl_emit){0};
  return failure;
}
