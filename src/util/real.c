#include "util/real.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/c_locale.h"

static const char *skip_digits(const char *p, bool *any) {
  for (; *p >= '0' && *p <= '9'; p++) *any = true;
  return p;
}

planc_number planc_number_kind(const char *text) {
  bool digits = false, real = false;
  const char *p = skip_digits(*text == '-' ? text + 1 : text, &digits);
  if (*p == '.') {
    real = true;
    p = skip_digits(p + 1, &digits);
  }
  if (!digits) return PLANC_NUMBER_NONE;
  if (*p == 'e' || *p == 'E') {
    real = true;
    digits = false;
    p += p[1] == '-' || p[1] == '+' ? 2 : 1;
    p = skip_digits(p, &digits);
  }
  if (!digits || *p) return PLANC_NUMBER_NONE;
  return real ? PLANC_NUMBER_REAL : PLANC_NUMBER_INT;
}

bool planc_real_parse(const char *text, double *out) {
  if (planc_number_kind(text) == PLANC_NUMBER_NONE) return false;
  planc_c_locale locale = planc_c_locale_enter();
  *out = strtod(text, NULL);
  planc_c_locale_leave(locale);
  return true;
}

const char *planc_real_text(double value, char buffer[PLANC_NUMBER_TEXT]) {
  planc_c_locale locale = planc_c_locale_enter();
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(buffer, PLANC_NUMBER_TEXT, "%.*g", digits, value);
    if (strtod(buffer, NULL) == value) break;
  }
  planc_c_locale_leave(locale);
  if (planc_number_kind(buffer) == PLANC_NUMBER_INT) memcpy(buffer + strlen(buffer), ".0", sizeof ".0");
  return buffer;
}

const char *planc_real_rounded(double value, int digits, char buffer[PLANC_NUMBER_TEXT]) {
  planc_c_locale locale = planc_c_locale_enter();
  snprintf(buffer, PLANC_NUMBER_TEXT, "%.*g", digits, value);
  planc_c_locale_leave(locale);
  return buffer;
}
