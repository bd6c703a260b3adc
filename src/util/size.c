#include "util/size.h"

#include <stdio.h>
#include <string.h>

#include "util/math.h"

static int64_t unit_of(const char *text) {
  static const char letters[] = "KMGT";
  if (strcmp(text, "") == 0 || strcmp(text, "B") == 0) return 1;
  const char *letter = strchr(letters, text[0]);
  if (!letter) return 0;
  bool decimal = strcmp(text + 1, "B") == 0;
  if (!decimal && strcmp(text + 1, "") != 0 && strcmp(text + 1, "iB") != 0) return 0;
  int64_t unit = 1;
  for (const char *l = letters; l <= letter; l++) unit *= decimal ? 1000 : 1024;
  return unit;
}

planc_status pl_size_parse(const char *text, int64_t *out_bytes) {
  const char *at = text;
  int64_t whole = 0, fraction = 0, scale = 1;
  bool overflow = false, digits = false;
  for (; *at >= '0' && *at <= '9'; at++, digits = true) {
    overflow |= pl_mul_overflow(whole, 10, &whole) || pl_add_overflow(whole, *at - '0', &whole);
  }
  if (*at == '.') {
    for (at++; *at >= '0' && *at <= '9'; at++, digits = true) {
      if (scale >= INT64_C(1000000000000000000)) continue; /* less than a millionth of a byte, of any unit */
      fraction = fraction * 10 + (*at - '0');
      scale *= 10;
    }
  }
  int64_t unit = digits ? unit_of(at) : 0;
  if (!unit) return planc_error(PLANC_USAGE, "%s is not a size (examples: 12G, 12GiB, 12GB, 400K, 1.5G)", text);
  int64_t bytes;
  overflow |=
      pl_mul_overflow(whole, unit, &bytes) || pl_add_overflow(bytes, pl_muldiv_floor(fraction, unit, scale), &bytes);
  if (overflow) return planc_error(PLANC_USAGE, "%s is beyond the largest size", text);
  *out_bytes = bytes;
  return NULL;
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
