/* Reading and writing sizes and times (size.h). */
#include "util/size.h"

#include <stdio.h>
#include <string.h>

#include "util/math.h"

/* A number as people write it: 1.5 is 1 and 5 of 10. */
typedef struct decimal {
  int64_t whole, fraction, scale;
  bool digits, overflow;
} decimal;

static const char *read_decimal(const char *at, decimal *out);
static int64_t unit_of(const char *text);
static bool scale_to(const decimal *number, int64_t unit, int64_t *out);

planc_status pl_size_parse(const char *text, int64_t *out_bytes) {
  decimal number;
  const char *at = read_decimal(text, &number);
  int64_t unit = number.digits ? unit_of(at) : 0, bytes;
  if (!*text) return planc_error(PLANC_USAGE, "no size is given (examples: 12G, 12GiB, 12GB, 400K, 1.5G)");
  if (!unit) return planc_error(PLANC_USAGE, "%s is not a size (examples: 12G, 12GiB, 12GB, 400K, 1.5G)", text);
  if (!scale_to(&number, unit, &bytes)) return planc_error(PLANC_USAGE, "%s is beyond the largest size", text);
  *out_bytes = bytes;
  return NULL;
}

planc_status pl_time_parse(const char *text, int64_t *out_ns) {
  static const struct {
    const char *name;
    int64_t ns;
  } units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
  decimal number;
  const char *at = read_decimal(text, &number);
  int64_t ns;
  bool nothing = number.digits && !*at && number.whole == 0 && number.fraction == 0 && !number.overflow;
  if (nothing) at = units[0].name; /* it is nothing in any unit */
  for (size_t u = 0; number.digits && u < sizeof units / sizeof *units; u++) {
    if (strcmp(units[u].name, at) != 0) continue;
    if (!scale_to(&number, units[u].ns, &ns)) return planc_error(PLANC_USAGE, "%s is beyond the longest time", text);
    *out_ns = ns;
    return NULL;
  }
  if (!*text) return planc_error(PLANC_USAGE, "no time is given (examples: 50ms, 1.5s, 200us)");
  return planc_error(PLANC_USAGE, "%s is not a time (examples: 50ms, 1.5s, 200us)", text);
}

/* Returns where it ends. */
static const char *read_decimal(const char *at, decimal *out) {
  *out = (decimal){.scale = 1};
  for (; *at >= '0' && *at <= '9'; at++, out->digits = true)
    out->overflow |=
        pl_mul_overflow(out->whole, 10, &out->whole) || pl_add_overflow(out->whole, *at - '0', &out->whole);
  if (*at != '.') return at;
  for (at++; *at >= '0' && *at <= '9'; at++, out->digits = true) {
    if (out->scale >= INT64_C(1000000000000000000)) continue; /* less than a millionth of the smallest unit */
    out->fraction = out->fraction * 10 + (*at - '0');
    out->scale *= 10;
  }
  return at;
}

/* Rounds down. False where that is beyond 64 bits. */
static bool scale_to(const decimal *number, int64_t unit, int64_t *out) {
  return !number->overflow && !pl_mul_overflow(number->whole, unit, out) &&
         !pl_add_overflow(*out, pl_muldiv_floor(number->fraction, unit, number->scale), out);
}

static int64_t unit_of(const char *text) {
  static const char letters[] = "KMGT";
  if (strcmp(text, "") == 0 || strcmp(text, "B") == 0) return 1;
  const char *letter = strchr(letters, text[0]);
  if (!letter) return 0;
  bool of_tens = strcmp(text + 1, "B") == 0;
  if (!of_tens && strcmp(text + 1, "") != 0 && strcmp(text + 1, "iB") != 0) return 0;
  int64_t unit = 1;
  for (const char *l = letters; l <= letter; l++) unit *= of_tens ? 1000 : 1024;
  return unit;
}

const char *pl_size_format(int64_t bytes, char buffer[PL_SIZE_TEXT]) {
  static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) {
    snprintf(buffer, PL_SIZE_TEXT, "%lld B", (long long)bytes);
    return buffer;
  }
  int32_t unit = 0;
  int64_t size = 1024;
  while (unit < 3 && bytes / size >= 1024) {
    size *= 1024;
    unit++;
  }
  int64_t hundredths = (pl_muldiv_floor(bytes, 200, size) + 1) / 2;
  if (hundredths == 102400 && unit < 3) { /* what rounds up to the next unit is one of it */
    hundredths = 100;
    unit++;
  }
  snprintf(buffer, PL_SIZE_TEXT, "%lld.%02lld %s", (long long)(hundredths / 100), (long long)(hundredths % 100),
           units[unit]);
  return buffer;
}

const char *pl_time_format(int64_t ns, char buffer[PL_SIZE_TEXT]) {
  int64_t us = ns / 1000;
  snprintf(buffer, PL_SIZE_TEXT, "%lld.%03lld ms", (long long)(us / 1000), (long long)(us % 1000));
  return buffer;
}
