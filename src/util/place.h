/* Where a path leads: through symbolic links, and also where there is no file yet. */
#ifndef PLANC_UTIL_PLACE_H
#define PLANC_UTIL_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "planc/status.h"

typedef struct planc_place {
  bool known;       /* false: there is not even a folder */
  bool exists;      /* a file is there; else its folder is told, and its name in it */
  struct stat file; /* of the file or the folder */
  char name[NAME_MAX + 1];
} planc_place;

void planc_place_find(const char *path, planc_place *out);
/* Whether writing to one overwrites the other. A device or a pipe keeps nothing that could be overwritten. */
bool planc_place_is_same(const planc_place *a, const planc_place *b);

/* The path of what writing to `path` replaces: its links followed, malloc'ed. A link to an open file of this process
 * (/dev/stdout) stays one, for the file may have no path. IO when links lead in a circle. */
planc_status planc_place_target(const char *path, char **out);

#endif
