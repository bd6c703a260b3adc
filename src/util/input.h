/* Opening what is read: regular files, and pipes that somebody writes to. A device may have no end, and a pipe without
 * a writer would be waited for without a word. */
#ifndef PLANC_UTIL_INPUT_H
#define PLANC_UTIL_INPUT_H

#include <stdbool.h>

#include "planc/status.h"

/* BAD_INPUT names the path. `pipes` says whether pipes will do: what is read twice must be a file. */
planc_status pl_input_open(const char *path, bool pipes, int *out_file);

#endif
