/* What runs again ahead of an instance, so that it finds what it reads, planned before any of it is stated: only then
 * is it known which of them is the last to need what they bring. */
#ifndef PLANC_CHOOSE_RESTORES_H
#define PLANC_CHOOSE_RESTORES_H

#include "planc/schedule.h"
#include "util/arena.h"
#include "util/vec.h"

/* A residency that they open, a stepping stone: what an instance that runs again makes, or reads from the host. */
typedef struct pl_stone {
  int32_t buffer;
  int32_t version; /* that it holds in the end: it may be changed in place */
  int32_t fetched; /* that it is opened for to come from the host, -1 = none: it is written */
  int32_t last;    /* the number of the last run that needs it */
  int32_t below;   /* the stone of the buffer that is opened before it, -1 = none */
} pl_stone;

typedef struct pl_restoring_run {
  int32_t instance;
  int32_t n_stones; /* that have been opened ahead of it, those for itself included */
} pl_restoring_run;

typedef struct pl_restores {
  const planc_trace *trace;
  const planc_schedule *schedule;
  VEC(pl_restoring_run) runs;
  VEC(pl_stone) stones; /* in the order in which they are opened */
  VEC(int32_t) stack;   /* instances that are to run again; -1 - i: those whose inputs have been asked for */
  VEC(int32_t) changed; /* buffers whose residency that is open ahead of all of them is written */
  int32_t *stone_of;    /* by buffer: the one that is opened last, -1 = none */
  int32_t *instead;     /* by buffer: what that residency holds then; PL_UNCHANGED: what it held */
} pl_restores;

enum { PL_UNCHANGED = -2 };

/* Borrows trace and schedule; `arena` has what is by buffer. */
planc_status pl_restores_new(const planc_trace *trace, const planc_schedule *schedule, pl_arena *arena,
                             pl_restores *out);
void pl_restores_free(pl_restores *r);
/* Plans for an instance and the schedule as it stands. What is resident is taken, else what has a copy on the host; of
 * the rest the writer runs again. INTERNAL where nothing writes it. */
planc_status pl_restores_plan(pl_restores *r, int32_t instance);

#endif
