/* Real numbers as text: decimals with a point, whatever the locale of the program that calls. */
#ifndef PLANC_UTIL_REAL_H
#define PLANC_UTIL_REAL_H

#include <stdbool.h>

enum { PLANC_NUMBER_TEXT = 32 };

/* What a text looks like: digits with a sign, a point and an exponent where wanted, and nothing beside them. */
typedef enum planc_number { PLANC_NUMBER_NONE, PLANC_NUMBER_INT, PLANC_NUMBER_REAL } planc_number;
planc_number planc_number_kind(const char *text);

/* A number of either kind, as the nearest double; infinite where it is beyond them. False: the text is none. */
bool planc_real_parse(const char *text, double *out);
/* The shortest text that reads back as `value`, which must be finite; always of kind REAL. */
const char *planc_real_text(double value, char buffer[PLANC_NUMBER_TEXT]);
/* `value` in so many significant digits at most, 17 or less: %g. */
const char *planc_real_rounded(double value, int digits, char buffer[PLANC_NUMBER_TEXT]);

#endif
