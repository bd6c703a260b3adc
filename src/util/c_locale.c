/* Entering the C locale, and leaving it (c_locale.h). */
#include "util/c_locale.h"

/* The C locale as a whole is an object that C libraries have ready: this takes no memory, and does not fail. */
pl_c_locale pl_c_locale_enter(void) {
  locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  return (pl_c_locale){.c = c, .before = uselocale(c)};
}

void pl_c_locale_leave(pl_c_locale locale) {
  uselocale(locale.before);
  if (locale.c) freelocale(locale.c);
}
