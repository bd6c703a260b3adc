/* Reals as text (real.h): as few digits as read back the same. */
#include "util/real.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/c_locale.h"

static const char *skip_digits(const char *p, bool *any) {
  for (; *p >= '0' && *p <= '9'; p++) *any = true;
  return p;
}

pl_number pl_number_kind(const char *text) {
  bool digits = false, real = false;
  const char *p = skip_digits(*text == '-' ? text + 1 : text, &digits);
  if (*p == '.') {
    real = true;
    p = skip_digits(p + 1, &digits);
  }
  if (!digits) return PL_NUMBER_NONE;
  if (*p == 'e' || *p == 'E') {
    real = true;
    digits = false;
    p += p[1] == '-' || p[1] == '+' ? 2 : 1;
    p = skip_digits(p, &digits);
  }
  if (!digits || *p) return PL_NUMBER_NONE;
  return real ? PL_NUMBER_REAL : PL_NUMBER_INT;
}

bool pl_real_parse(const char *text, double *out) {
  if (pl_number_kind(text) == PL_NUMBER_NONE) return false;
  pl_c_locale locale = pl_c_locale_enter();
  *out = strtod(text, NULL);
  pl_c_locale_leave(locale);
  return true;
}

const char *pl_real_text(double value, char buffer[PL_NUMBER_TEXT]) {
  pl_c_locale locale = pl_c_locale_enter();
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(buffer, PL_NUMBER_TEXT, "%.*g", digits, value);
    if (strtod(buffer, NULL) == value) break;
  }
  pl_c_locale_leave(locale);
  if (pl_number_kind(buffer) == PL_NUMBER_INT) memcpy(buffer + strlen(buffer), ".0", sizeof ".0");
  return buffer;
}

const char *pl_real_rounded(double value, int digits, char buffer[PL_NUMBER_TEXT]) {
  pl_c_locale locale = pl_c_locale_enter();
  snprintf(buffer, PL_NUMBER_TEXT, "%.*g", digits, value);
  pl_c_locale_leave(locale);
  return buffer;
}
