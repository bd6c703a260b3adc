#include "util/emit.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/math.h"
#include "util/real.h"

void planc_emit_fail(planc_emit *emit, planc_status failure) {
  if (emit->failure) {
    planc_status_free(failure);
  } else {
    emit->failure = failure;
  }
}

/* Where `length` bytes can be written; NULL after a failure. */
static char *room(planc_emit *emit, size_t length) {
  if (emit->failure) return NULL;
  if (emit->capacity - emit->length < length) {
    size_t capacity = emit->capacity ? emit->capacity : 4096;
    while (capacity - emit->length < length && capacity <= SIZE_MAX / 4) capacity *= 2;
    char *text = capacity - emit->length < length ? NULL : realloc(emit->text, capacity);
    if (!text) {
      planc_emit_fail(emit, planc_error(PLANC_OUT_OF_MEMORY, "out of memory"));
      return NULL;
    }
    emit->text = text;
    emit->capacity = capacity;
  }
  return emit->text + emit->length;
}

void planc_emit_bytes(planc_emit *emit, const char *bytes, size_t length) {
  char *to = room(emit, length);
  if (!to) return;
  memcpy(to, bytes, length);
  emit->length += length;
}

void planc_emit_text(planc_emit *emit, const char *text) {
  planc_emit_bytes(emit, text, strlen(text));
}

void planc_emit_format(planc_emit *emit, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  char *to = length < 0 ? NULL : room(emit, (size_t)length + 1);
  if (length < 0) planc_emit_fail(emit, planc_error(PLANC_OUT_OF_MEMORY, "out of memory"));
  if (!to) return;
  va_start(arguments, format);
  vsnprintf(to, (size_t)length + 1, format, arguments);
  va_end(arguments);
  emit->length += (size_t)length;
}

void planc_emit_int(planc_emit *emit, int64_t value) {
  if (value < -PLANC_EXACT_MAX || value > PLANC_EXACT_MAX) {
    planc_emit_fail(emit, planc_error(PLANC_BAD_INPUT, "%lld cannot be written: it is beyond 2^53", (long long)value));
    return;
  }
  enum { DIGITS = 20 };
  char reversed[DIGITS];
  size_t n = 0;
  uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  for (; n == 0 || rest; rest /= 10) reversed[n++] = (char)('0' + rest % 10);
  if (value < 0) reversed[n++] = '-';
  char *to = room(emit, n);
  if (!to) return;
  for (size_t i = 0; i < n; i++) to[i] = reversed[n - 1 - i];
  emit->length += n;
}

void planc_emit_ints(planc_emit *emit, const int32_t *values, int64_t n) {
  EMIT(emit, "[");
  for (int64_t i = 0; i < n; i++) {
    if (i) EMIT(emit, ",");
    planc_emit_int(emit, values[i]);
  }
  EMIT(emit, "]");
}

void planc_emit_longs(planc_emit *emit, const int64_t *values, int64_t n) {
  EMIT(emit, "[");
  for (int64_t i = 0; i < n; i++) {
    if (i) EMIT(emit, ",");
    planc_emit_int(emit, values[i]);
  }
  EMIT(emit, "]");
}

void planc_emit_string(planc_emit *emit, const char *string) {
  EMIT(emit, "\"");
  for (const char *at = string ? string : ""; *at;) {
    size_t plain = 0;
    while ((unsigned char)at[plain] >= 0x20 && at[plain] != '"' && at[plain] != '\\') plain++;
    planc_emit_bytes(emit, at, plain);
    at += plain;
    if (!*at) break;
    char escape[8];
    int length = snprintf(escape, sizeof escape, (unsigned char)*at < 0x20 ? "\\u%04x" : "\\%c", (unsigned char)*at);
    planc_emit_bytes(emit, escape, (size_t)length);
    at++;
  }
  EMIT(emit, "\"");
}

void planc_emit_hash(planc_emit *emit, uint64_t hash) {
  static const char hex[] = "0123456789abcdef";
  EMIT(emit, "\"");
  for (int shift = 60; shift >= 0; shift -= 4) planc_emit_bytes(emit, &hex[hash >> shift & 15], 1);
  EMIT(emit, "\"");
}

void planc_emit_real(planc_emit *emit, double value) {
  if (!isfinite(value)) {
    planc_emit_fail(emit, planc_error(PLANC_BAD_INPUT, "a real number that is not finite has no text"));
    return;
  }
  char text[PLANC_NUMBER_TEXT];
  planc_emit_text(emit, planc_real_text(value, text));
}

planc_status planc_emit_take(planc_emit *emit, char **out_text, size_t *out_length) {
  planc_emit_bytes(emit, "", 1);
  planc_status failure = emit->failure;
  if (failure) free(emit->text);
  *out_text = failure ? NULL : emit->text;
  *out_length = failure ? 0 : emit->length - 1;
  *emit = (planc_emit){0};
  return failure;
}
