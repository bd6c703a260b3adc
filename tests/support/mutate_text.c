/* Changes of a plan's text (mutate.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/mutate.h"
#include "tests/support/randgraph.h"
#include "util/vec.h"

typedef VEC(char) buffer;

static planc_status append(buffer *to, const char *from, size_t n) {
  PLANC_TRY(VEC_RESERVE(to, to->len + (int64_t)n + 1));
  memcpy(to->data + to->len, from, n);
  to->len += (int64_t)n;
  to->data[to->len] = '\0';
  return NULL;
}

static size_t line_start(const char *text, size_t at) {
  while (at > 0 && text[at - 1] != '\n') at--;
  return at;
}

static size_t line_end(const char *text, size_t length, size_t at) {
  while (at < length && text[at] != '\n') at++;
  return at < length ? at + 1 : length;
}

/* Puts `middle` in the place of text[from .. to). */
static planc_status splice(const char *text, size_t length, size_t from, size_t to, const char *middle, size_t n,
                           buffer *out) {
  PLANC_TRY(append(out, text, from));
  PLANC_TRY(append(out, middle, n));
  return append(out, text + to, length - to);
}

static planc_status change_digits(uint64_t *random, const char *text, size_t length, size_t at, buffer *out) {
  while (at < length && (text[at] < '0' || text[at] > '9')) at++;
  size_t to = at;
  while (to < length && text[to] >= '0' && text[to] <= '9') to++;
  char number[32];
  static const char *const odd[] = {"0", "-1", "1", "9007199254740993", "99999999999999999999", "07", "1.5", "1e9"};
  if (rand_below(random, 2)) {
    snprintf(number, sizeof number, "%s", odd[rand_below(random, sizeof odd / sizeof *odd)]);
  } else {
    snprintf(number, sizeof number, "%lld", strtoll(text + at, NULL, 10) + (rand_below(random, 2) ? 1 : -1));
  }
  return splice(text, length, at, to, number, strlen(number), out);
}

static planc_status change_text(uint64_t *random, const char *text, size_t length, buffer *out, const char **what) {
  size_t at = (size_t)rand_below(random, (int64_t)length);
  size_t start = line_start(text, at), end = line_end(text, length, at), next = line_end(text, length, end);
  switch (rand_below(random, 7)) {
    case 0:
      *what = "cut at a line's end";
      return append(out, text, start);
    case 1:
      *what = "cut";
      return append(out, text, at);
    case 2:
      *what = "line dropped";
      return splice(text, length, start, end, "", 0, out);
    case 3:
      *what = "line doubled";
      return splice(text, length, end, end, text + start, end - start, out);
    case 4:
      *what = "lines swapped";
      PLANC_TRY(append(out, text, start));
      PLANC_TRY(append(out, text + end, next - end));
      PLANC_TRY(append(out, text + start, end - start));
      return append(out, text + next, length - next);
    case 5:
      *what = "number changed";
      return change_digits(random, text, length, at, out);
    default: {
      *what = "byte changed";
      char byte = (char)rand_below(random, 256);
      return splice(text, length, at, at + 1, &byte, 1, out);
    }
  }
}

planc_status mutate_text(const char *text, size_t length, uint64_t seed, char **out, size_t *out_length,
                         char *description, size_t size) {
  buffer made = {0};
  const char *what = "";
  *out = NULL;
  if (length == 0) return planc_error(PLANC_INTERNAL, "no text");
  planc_status status = change_text(&seed, text, length, &made, &what);
  if (status) {
    VEC_FREE(&made);
    return status;
  }
  snprintf(description, size, "%s", what);
  *out = made.data;
  *out_length = (size_t)made.len;
  return NULL;
}
