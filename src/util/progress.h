/* One line of progress on a terminal, overwritten as work goes on; nothing where the stream is no terminal. For the
 * programs: the libraries never print. */
#ifndef PLANC_UTIL_PROGRESS_H
#define PLANC_UTIL_PROGRESS_H

#include <stdio.h>

void pl_progress(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Takes the line away again. */
void pl_progress_end(FILE *stream);

#endif
