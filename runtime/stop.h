/* A flag by which a signal's handler, or whoever else asks for it, ends long work early. */
#ifndef PLANRT_STOP_H
#define PLANRT_STOP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* NULL: nobody ever asks. */
static inline bool rt_is_stopped(const volatile sig_atomic_t *stop) {
  return stop != NULL && *stop != 0;
}

#endif
