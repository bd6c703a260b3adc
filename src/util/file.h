/* Whole files: read into memory, written aside and renamed, so that an existing output survives a failed run. */
#ifndef PLANC_UTIL_FILE_H
#define PLANC_UTIL_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "planc/status.h"

/* Reads a file or a pipe (input.h) of at most `limit` bytes; *out is malloc'ed and NUL-terminated. BAD_INPUT names the
 * path. */
planc_status pl_file_read(const char *path, size_t limit, char **out, size_t *out_length);
/* The same for text: BAD_INPUT at the first NUL byte, however much would follow. */
planc_status pl_file_read_text(const char *path, size_t limit, char **out, size_t *out_length);
/* IO when `path`, if it is that of a regular file, cannot be written: found out before the work that it is for. */
planc_status pl_file_probe(const char *path);
/* Writes `parts`, one behind the other, to a temporary file beside `path` and renames it there; "-" is standard output.
 * A symbolic link stays one: the file that it leads to is written, with the temporary one beside that. IO names the
 * path. */
typedef struct pl_file_part {
  const char *data;
  size_t length;
} pl_file_part;
planc_status pl_file_write_parts(const char *path, const pl_file_part *parts, size_t n_parts);
/* The same for one part. */
planc_status pl_file_write(const char *path, const char *text, size_t length);

/* Files that belong together. */
typedef struct pl_file_text {
  const char *path;
  char *text;
  size_t length;
} pl_file_text;
/* Writes all of them. All stand aside before the first is renamed, so that none changes where one cannot be created or
 * has no room. Standard output, pipes and devices are written in between, in order. IO names the path. */
planc_status pl_files_write(const pl_file_text *files, size_t n);

#endif
