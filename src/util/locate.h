/* Finding the files that come with the programs. */
#ifndef PLANC_UTIL_LOCATE_H
#define PLANC_UTIL_LOCATE_H

#include <stddef.h>

#include "planc/status.h"

/* The file about device `name`: a path (something with a slash, or with .json in it) as it is, else NAME`suffix` in
 * $PLANC_PROFILES or beside the program (build tree or installed). BAD_INPUT when there is none. */
planc_status planc_locate_device(const char *name, const char *suffix, char *out, size_t room);

#endif
