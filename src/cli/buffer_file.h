/* Files of buffers: one line each with its name, its time and its size, below a line that names the columns. */
#ifndef CLI_BUFFER_FILE_H
#define CLI_BUFFER_FILE_H

#include "planc/place.h"
#include "util/arena.h"

typedef struct cli_buffer_file {
  pl_arena memory;
  int32_t n;
  planc_place_buffer *buffers;
  const char **names; /* the ids, as they stand there */
} cli_buffer_file;

/* Columns in any order, in CSV without quotes: id, lower, upper, size, and offset, which is not looked at. BAD_INPUT
 * names the path and the line. */
planc_status cli_buffer_file_read(const char *path, cli_buffer_file *out);
/* The same lines with the addresses in the last column, offset; "-" is standard output. */
planc_status cli_buffer_file_write(const cli_buffer_file *file, const char *path);
void cli_buffer_file_free(cli_buffer_file *file);

#endif
