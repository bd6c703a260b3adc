/* The line of progress (progress.h). */
#include "program/progress.h"

#include <stdarg.h>
#include <unistd.h>

#include "program/print.h"

#define ERASE_LINE "\r\033[K"

void prog_progress(FILE *stream, const char *format, ...) {
  if (!isatty(fileno(stream))) return;
  va_list arguments;
  va_start(arguments, format);
  fputs(ERASE_LINE, stream);
  prog_vprint(stream, format, arguments);
  va_end(arguments);
  fflush(stream);
}

void prog_progress_end(FILE *stream) {
  if (isatty(fileno(stream))) fputs(ERASE_LINE, stream);
}
