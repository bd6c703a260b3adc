/* Algorithms of a plan that its backend does not have: the plan was made for another device, or from the description of
 * one, and the backend's plainest stand in for them. */
#ifndef PLANRT_FOREIGN_H
#define PLANRT_FOREIGN_H

#include "planrt/planrt.h"
#include "util/vec.h"

typedef VEC(const char *) rt_names;

/* Adds each of them that an op of the body runs, once, borrowed from the session's plan. One that a library would have
 * to build first is taken to be the backend's. */
planc_status rt_foreign_find(const planrt_session *session, rt_names *out);

#endif
