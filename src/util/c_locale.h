/* The C locale for what depends on one: the reading and printing of reals, cJSON. It holds for the calling thread
 * between enter and leave; the program's own locale and other threads are not touched. Between the two nothing may
 * return. */
#ifndef PLANC_UTIL_C_LOCALE_H
#define PLANC_UTIL_C_LOCALE_H

#include <locale.h>

typedef struct pl_c_locale {
  locale_t c, before;
} pl_c_locale;

pl_c_locale pl_c_locale_enter(void);
void pl_c_locale_leave(pl_c_locale locale);

#endif
