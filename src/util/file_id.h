/* Which file a path leads to: through symbolic links, and also where there is none yet. */
#ifndef PLANC_UTIL_FILE_ID_H
#define PLANC_UTIL_FILE_ID_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "planc/status.h"

typedef struct pl_file_id {
  bool known;       /* false: there is not even a folder */
  bool exists;      /* a file is there; else its folder is told, and its name in it */
  struct stat file; /* of the file or the folder */
  char name[NAME_MAX + 1];
} pl_file_id;

void pl_file_id_find(const char *path, pl_file_id *out);
/* Whether writing to one overwrites the other. A device or a pipe keeps nothing that could be overwritten. */
bool pl_file_id_is_same(const pl_file_id *a, const pl_file_id *b);

/* The path of what writing to `path` replaces: its links followed, malloc'ed. A link to an open file of this process
 * (/dev/stdout) stays one, for the file may have no path. IO when links lead in a circle. */
planc_status pl_link_target(const char *path, char **out);

#endif
