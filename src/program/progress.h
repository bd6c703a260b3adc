/* One line of progress on a terminal, overwritten as work goes on; nothing where the stream is no terminal. */
#ifndef PROGRAM_PROGRESS_H
#define PROGRAM_PROGRESS_H

#include <stdio.h>

void prog_progress(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Takes the line away again. */
void prog_progress_end(FILE *stream);

#endif
