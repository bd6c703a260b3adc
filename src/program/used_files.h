/* The files that a command reads and those that it writes. No output may be what is read, or another output: one of the
 * two would be lost. */
#ifndef PROGRAM_USED_FILES_H
#define PROGRAM_USED_FILES_H

#include "util/arena.h"
#include "util/file_id.h"
#include "util/vec.h"

typedef struct prog_used_file {
  const char *path;
  bool written;
  pl_file_id id;
} prog_used_file;

typedef struct prog_used_files {
  pl_arena memory;
  VEC(prog_used_file) used;
} prog_used_files;

/* Each takes a path, NULL for none, and returns USAGE where an output would overwrite an input or another output. */
planc_status prog_used_files_read(prog_used_files *files, const char *path);
/* "-" is standard output. */
planc_status prog_used_files_write(prog_used_files *files, const char *path);
/* The two may be one file: it is read to its end before it is written. */
planc_status prog_used_files_renew(prog_used_files *files, const char *from, const char *to);
/* IO when one that is to be written cannot be: told before the work that it is for. */
planc_status prog_used_files_probe(const prog_used_files *files);
void prog_used_files_free(prog_used_files *files);

#endif
