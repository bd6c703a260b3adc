/* Hand-written scanners over NUL-terminated text: a large graph has a spec for every tensor, and a fault is told by its
 * very character. */
#include "graph/spec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/math.h"

const char *const pl_flag_names[PL_N_FLAGS] = {"batch-coupled", "stochastic", "batch-mean", "accumulates",
                                               "no-recompute"};

const char *pl_name_fault(const char *name) {
  if (!name || !*name) return "is empty";
  if (strchr("-?:;", *name)) return "starts with one of - ? : ;";
  size_t length = 0;
  for (const char *p = name; *p; p++, length++) {
    if (*p < 33 || *p > 126) return "has a character that is not printable ASCII";
    if (strchr("\"\\,[]{}#&*!|>'%@`", *p)) return "has one of \" \\ , [ ] { } # & * ! | > ' % @ `";
  }
  if (name[length - 1] == ':') return "ends in ':'"; /* YAML would take it for a key */
  return length > PL_NAME_MAX ? "is longer than 255 bytes" : NULL;
}

const char *pl_shown(const char *text, char buffer[PL_SHOWN_TEXT]) {
  size_t length = 0;
  for (; text[length] && length < PL_SHOWN_TEXT - 1; length++) {
    buffer[length] = (char)(text[length] >= 32 && text[length] <= 126 ? text[length] : '?');
  }
  buffer[length] = '\0';
  if (text[length]) memcpy(buffer + PL_SHOWN_TEXT - 4, "...", 4);
  return buffer;
}

/* --- Laws --------------------------------------------------------------------------------------------------------- */

const char *pl_law_text(planc_law law, char buffer[PL_LAW_TEXT]) {
  char *p = buffer;
  size_t room = PL_LAW_TEXT;
  if (law.fixed || !law.per_sample) {
    int n = snprintf(p, room, "%" PRId64 "%s", law.fixed, law.per_sample ? "+" : "");
    p += n;
    room -= (size_t)n;
  }
  if (law.per_sample == 1) {
    snprintf(p, room, "N");
  } else if (law.per_sample) {
    snprintf(p, room, "%" PRId64 "N", law.per_sample);
  }
  return buffer;
}

static planc_status scan_law(const char **text, planc_law *out, const char **out_at);
static planc_status fault(const char **out_at, const char *at, const char *what);

planc_status pl_law_parse(const char *text, planc_law *out, const char **out_at) {
  PLANC_TRY(scan_law(&text, out, out_at));
  return *text ? fault(out_at, text, "expected the end of the size") : NULL;
}

static planc_status fault(const char **out_at, const char *at, const char *what) {
  *out_at = at;
  char shown[PL_SHOWN_TEXT];
  if (!*at) return planc_error(PLANC_BAD_INPUT, "%s, found the end", what);
  return planc_error(PLANC_BAD_INPUT, "%s, found \"%s\"", what, pl_shown(at, shown));
}

/* Reads INT at *text and steps over it. */
static planc_status scan_integer(const char **text, int64_t *out, const char **out_at) {
  const char *p = *text;
  if (*p < '0' || *p > '9') return fault(out_at, p, "expected a size");
  if (*p == '0' && p[1] >= '0' && p[1] <= '9') return fault(out_at, p, "expected a size without leading zeros");
  int64_t value = 0;
  for (; *p >= '0' && *p <= '9'; p++) {
    if (pl_mul_overflow(value, 10, &value) || pl_add_overflow(value, *p - '0', &value)) {
      return fault(out_at, *text, "size does not fit 64 bits");
    }
  }
  *text = p;
  *out = value;
  return NULL;
}

/* Reads one term: INT, N or INT N. */
static planc_status scan_term(const char **text, int64_t *out, bool *out_per_sample, const char **out_at) {
  *out = 1;
  if (**text != 'N') PLANC_TRY(scan_integer(text, out, out_at));
  *out_per_sample = **text == 'N';
  if (*out_per_sample) (*text)++;
  return NULL;
}

static planc_status scan_law(const char **text, planc_law *out, const char **out_at) {
  int64_t first, second = 0;
  bool first_is_per_sample, second_is_per_sample;
  PLANC_TRY(scan_term(text, &first, &first_is_per_sample, out_at));
  if (**text == '+') {
    (*text)++;
    const char *start = *text;
    PLANC_TRY(scan_term(text, &second, &second_is_per_sample, out_at));
    if (first_is_per_sample == second_is_per_sample) {
      return fault(out_at, start, first_is_per_sample ? "expected a size without N" : "expected a size times N");
    }
  }
  *out = first_is_per_sample ? (planc_law){.fixed = second, .per_sample = first}
                             : (planc_law){.fixed = first, .per_sample = second};
  return NULL;
}

/* --- Specs -------------------------------------------------------------------------------------------------------- */

static bool scan_kind(const char **text, planc_kind *out);
static bool scan_dtype(const char **text, planc_dtype *out);
static bool skip(const char **text, const char *word);

planc_status pl_spec_parse(const char *text, pl_spec *out, const char **out_at) {
  *out = (pl_spec){.kind = PLANC_KIND_activation};
  out->has_kind = scan_kind(&text, &out->kind);
  if (!scan_dtype(&text, &out->dtype)) {
    return fault(out_at, text,
                 out->has_kind ? "expected a type and its dimensions, like f32[N,8]"
                               : "expected a kind or a type and its dimensions, like f32[N,8]");
  }
  while (!skip(&text, "]")) {
    if (out->rank == PLANC_MAX_RANK) return fault(out_at, text, "expected at most 8 dimensions");
    if (out->rank && !skip(&text, ",")) return fault(out_at, text, "expected ',' or ']'");
    PLANC_TRY(scan_law(&text, &out->dims[out->rank++], out_at));
  }
  if (!*text) return NULL;
  if (!skip(&text, " of ")) return fault(out_at, text, "expected the end or \" of TENSOR\"");
  out->of = text;
  out->of_length = strcspn(text, " ");
  text += out->of_length;
  if (!*text) return NULL;
  if (!skip(&text, " @ ")) return fault(out_at, text, "expected the end or \" @ OFFSET\"");
  return pl_law_parse(text, &out->offset, out_at);
}

/* Steps over `word` at *text. */
static bool skip(const char **text, const char *word) {
  size_t length = strlen(word);
  if (strncmp(*text, word, length) != 0) return false;
  *text += length;
  return true;
}

static bool scan_kind(const char **text, planc_kind *out) {
#define X(name, what) \
  if (skip(text, #name " ")) return *out = PLANC_KIND_##name, true;
  PLANC_KINDS(X)
#undef X
  return false;
}

static bool scan_dtype(const char **text, planc_dtype *out) {
#define X(name, bytes) \
  if (skip(text, #name "[")) return *out = PLANC_DTYPE_##name, true;
  PLANC_DTYPES(X)
#undef X
  return false;
}

/* --- Numbers ------------------------------------------------------------------------------------------------------ */

bool pl_integer_parse(const char *text, int64_t *out) {
  errno = 0;
  *out = strtoll(text, NULL, 10);
  return errno == 0;
}
