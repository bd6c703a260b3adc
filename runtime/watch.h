/* Watching a file for plans. */
#ifndef PLANRT_WATCH_H
#define PLANRT_WATCH_H

#include <sys/stat.h>

#include "planrt/planrt.h"

typedef struct rt_watch {
  const char *path;
  struct stat seen; /* all zero: there was no file */
} rt_watch;

/* From now on: what `path` holds already is not looked at. */
void rt_watch_start(rt_watch *watch, const char *path);
/* Costs one call of stat while nothing has changed. A file that has appeared or changed since is looked at once: *out
 * is its plan, if the session can adopt it and does not run it already, else NULL and the status says why. */
planc_status rt_watch_look(rt_watch *watch, const planrt_session *session, planc_plan **out);

#endif
