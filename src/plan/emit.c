/* Writing the values of a plan's rows (emit.h). */
#include "plan/emit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/spec.h"
#include "plan/row.h"

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

void planc_emit_int(planc_emit *emit, int64_t value) {
  enum { DIGITS = 20 };
  if (value < -PLANC_ROW_MAX || value > PLANC_ROW_MAX) {
    planc_emit_fail(emit,
                    planc_error(PLANC_BAD_INPUT, "a plan cannot hold %lld, which is beyond 2^53", (long long)value));
    return;
  }
  char *to = room(emit, DIGITS);
  if (!to) return;
  char reversed[DIGITS];
  size_t n = 0;
  for (int64_t rest = value < 0 ? -value : value; n == 0 || rest; rest /= 10) reversed[n++] = (char)('0' + rest % 10);
  if (value < 0) reversed[n++] = '-';
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
    planc_emit_fail(emit, planc_error(PLANC_BAD_INPUT, "a plan cannot hold a real number that is not finite"));
    return;
  }
  char text[PLANC_NUMBER_TEXT];
  planc_real_text(value, text);
  planc_emit_bytes(emit, text, strlen(text));
}

void planc_emit_law(planc_emit *emit, planc_law law) {
  if (law.per_sample == 0) {
    planc_emit_int(emit, law.fixed);
    return;
  }
  EMIT(emit, "\"");
  if (law.fixed) {
    planc_emit_int(emit, law.fixed);
    EMIT(emit, "+");
  }
  if (law.per_sample != 1) planc_emit_int(emit, law.per_sample);
  EMIT(emit, "N\"");
}
