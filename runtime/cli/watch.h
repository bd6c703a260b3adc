/* Watching a file for plans. */
#ifndef PLANRT_WATCH_H
#define PLANRT_WATCH_H

#include <sys/stat.h>

#include "planrt/planrt.h"

typedef struct run_watch {
  const char *path;
  struct stat seen; /* all zero: there was no file */
  bool was_there;   /* at some time there was one */
} run_watch;

/* From now on: what `path` holds already is not looked at. USAGE for a directory, which no file takes the place of. */
planc_status run_watch_start(run_watch *watch, const char *path);
/* Costs one call of stat while nothing has changed. A file that has appeared or changed since is looked at once: *out
 * is its plan, if the session, which runs `runs`, can adopt it and it is another one, else NULL and the status says
 * why.
 */
planc_status run_watch_look(run_watch *watch, const planrt_session *session, const planc_plan *runs, planc_plan **out);

#endif
