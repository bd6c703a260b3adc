/* Real numbers as text: decimals with a point, whatever the locale of the program that calls. */
#ifndef PLANC_UTIL_REAL_H
#define PLANC_UTIL_REAL_H

#include <stdbool.h>

enum { PL_NUMBER_TEXT = 32 };

/* What a text looks like: digits with a sign, a point and an exponent where wanted, and nothing beside them. */
typedef enum pl_number { PL_NUMBER_NONE, PL_NUMBER_INT, PL_NUMBER_REAL } pl_number;
pl_number pl_number_kind(const char *text);

/* A number of either kind, as the nearest double; infinite where it is beyond them. False: the text is none. */
bool pl_real_parse(const char *text, double *out);
/* The shortest text that reads back as `value`, which must be finite; always of kind REAL. */
const char *pl_real_text(double value, char buffer[PL_NUMBER_TEXT]);
/* `value` in so many significant digits at most, 17 or less: %g. */
const char *pl_real_rounded(double value, int digits, char buffer[PL_NUMBER_TEXT]);

#endif
