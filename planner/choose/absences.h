/* Running a trace while chosen versions are away from the device for a while: they leave after one instance and are
 * back for a later one, from the host or by running their writers again. Which, when and how is the policy's choice;
 * stating that, and what a recompute pulls in, is this. What is not away stays from its first access to its last, and
 * from period to period if it persists. */
#ifndef PLANC_CHOOSE_ABSENCES_H
#define PLANC_CHOOSE_ABSENCES_H

#include "planner/choose/walk.h"
#include "util/arena.h"

/* `version` of `buffer` is away behind instance `leave` and before instance `fetch`. Where `fetch` is not behind
 * `leave` the absence wraps around the period: a persistent buffer's last version is away behind its last access,
 * parked on the host at the boundary, and back, as version 0, for the next period's `fetch`. */
typedef struct planc_absence {
  int32_t buffer, version;
  int32_t copy;  /* the instance behind which it is copied to the host, from its writer to `leave`; PLANC_NO_COPY where
                    the host has it, or its writer is to run again. Version 0 of what is parked is there */
  int32_t leave; /* not before the last access ahead of the absence */
  int32_t
      fetch; /* copying in begins ahead of this instance; the next reader itself where nothing is to be ahead of it */
  bool wait; /* compute and copies in wait for the copy out as soon as it has begun */
} planc_absence;

static inline bool planc_absence_wraps(const planc_absence *absence) {
  return absence->fetch <= absence->leave;
}

#define PLANC_NO_COPY (-1)

typedef struct planc_absences {
  int64_t n;
  const planc_absence *items; /* those of one buffer do not overlap; one at most wraps */
  const int32_t *until;       /* per buffer: the instance after which it is dropped, where that is later than its last
                                 access because recomputes read it; NULL = nowhere later */
  const bool *brief;          /* per buffer: a recompute brings it back for the next instance alone; NULL = for none */
} planc_absences;

/* States the boundary where planc_walk_start left the walk, runs all instances and finishes the schedule. */
planc_status planc_walk_absences(planc_walk *walk, const planc_absences *absences);

/* What a policy has to state: its absences, in memory of `arena`. */
typedef struct planc_absence_rule {
  planc_status (*choose)(const void *context, const planc_walk *walk, planc_arena *arena, planc_absences *out);
  const void *context;
  bool online; /* addresses are given as data comes and goes */
} planc_absence_rule;

/* A planc_walk_maker for a planc_absence_rule: rounds of the user's sub-batch, else the whole batch. */
planc_status planc_make_absences(const planc_problem *problem, const void *rule, int64_t room, planc_candidate *out);

/* live[i]: bytes open while instance i runs, workspace and what recomputes open on their way left out. */
planc_status planc_absences_live(const planc_trace *trace, const planc_absences *absences, int64_t *live);

/* latest[i]: the last instance ahead of which instance i can be run again, one that is not forward never, which is -1:
 * until then what it reads of persistent and fed buffers is the same, and of others the writer can be run again. The
 * number of instances where that is so to the end. Whoever `keeps` what it cannot drop, for as long as something is to
 * be restored from it, can read the last version of that to the end as well. */
planc_status planc_mark_restorable(const planc_trace *trace, bool keeps, planc_arena *arena, int32_t *latest);
/* Whether every writer of the buffer can be run again until the last access to it, and nothing asks for it once the
 * iteration has ended. */
bool planc_can_drop(const planc_trace *trace, const int32_t *latest, int32_t buffer);
/* The instance that writes `version` of `buffer`; -1 if none does. */
int32_t planc_writer_of(const planc_trace *trace, int32_t buffer, int32_t version);
/* The instance of the buffer's last access; -1 where it is never accessed. */
int32_t planc_last_instance(const planc_trace *trace, int32_t buffer);

#endif
