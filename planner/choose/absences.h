/* Running an order while chosen versions are away from the device for a while: they leave after one position and are
 * back for a later one, from the host or by running their writers again. Which, when and how is the policy's choice;
 * stating that, and what a recompute pulls in, is this. What is not away stays from its first access to its last, and
 * from period to period if it persists. */
#ifndef PLANC_CHOOSE_ABSENCES_H
#define PLANC_CHOOSE_ABSENCES_H

#include "planc/needs.h"
#include "planner/choose/walk.h"
#include "util/arena.h"

/* `version` of `buffer` is away behind position `leave` of the walk's order and before position `fetch`. Where `fetch`
 * is not behind `leave` the absence wraps around the period: a persistent buffer's last version is away behind its last
 * access, parked on the host at the boundary, and back, as version 0, for the next period's `fetch`. */
typedef struct pl_absence {
  int32_t buffer, version;
  int32_t copy;  /* the position behind which it is copied to the host, from its writer to `leave`; PL_NO_COPY where
                    the host has it, or its writer is to run again. Version 0 of what the boundary has there is there */
  int32_t leave; /* not before the last use ahead of the absence; -1: it comes for the first time, from the user */
  int32_t fetch; /* copying in begins ahead of this position; the next use itself where nothing is to be ahead of it, or
                    where that only writes: nothing is copied in then */
  bool wait;     /* compute and copies in wait for the copy out as soon as it has begun */
} pl_absence;

static inline bool pl_absence_wraps(const pl_absence *absence) {
  return absence->fetch <= absence->leave;
}

#define PL_NO_COPY (-1)

typedef struct pl_absences {
  int64_t n;
  const pl_absence *items; /* those of one buffer do not overlap; one at most wraps */
  const int32_t *fetched; /* numbers of all items, in the order in which those with one `fetch` come in, and behind what
                             the first op is fed; NULL = their own order, and ahead of that */
  const int32_t *until;   /* per buffer: the position after which it is dropped, where that is later than its last
                             use because recomputes read it; NULL = nowhere later */
  const bool *apart;      /* by use of the order: what a recompute for another op brings back does not stay for it;
                             NULL = for none */
  bool restores;          /* something may be computed again, whatever the items say */
  const char *reason;     /* for people: why these; NULL = none */
} pl_absences;

/* Sets their reason, in memory of `arena`; format is printf's. */
planc_status pl_absences_explain(pl_absences *absences, pl_arena *arena, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* States the boundary where pl_walk_start left the walk, runs its order and finishes the schedule; it may do so twice
 * (pl_walk_run). */
planc_status pl_walk_absences(pl_walk *walk, const pl_absences *absences);

/* What a policy has to state: its absences, in memory of `arena`. */
typedef struct pl_absence_rule {
  planc_status (*choose)(const void *context, const pl_walk *walk, pl_arena *arena, pl_absences *out);
  const void *context;
  bool online; /* addresses are given as data comes and goes */
} pl_absence_rule;

/* A pl_walk_maker for a pl_absence_rule: rounds of the user's sub-batch, else the whole batch. */
planc_status pl_make_absences(const planc_problem *problem, const void *rule, pl_walk_room room, planc_candidate *out);

/* Fills in how a version is away during a gap (planc_gaps), but for which version; false where it stays. */
typedef bool (*pl_gap_rule)(const planc_order *order, const planc_gap *gap, pl_absence *absence);
/* The absences of all gaps by one rule, in memory of `arena`. */
planc_status pl_absences_of_gaps(const planc_order *order, pl_gap_rule rule, pl_arena *arena, pl_absences *out);

/* Whether anything is to be computed again. */
bool pl_absences_restore(const pl_absences *absences);
/* Whether a buffer leaves between an access and its next one (NULL = none), because that only writes. */
bool pl_leaves_until_written(const planc_trace *trace, bool restores, const planc_access *from,
                             const planc_access *next);

/* held[p]: bytes open while position p of the order runs, workspace and what recomputes open on their way left out. */
planc_status pl_absences_held(const planc_order *order, const pl_absences *absences, int64_t *held);
/* Whether what they leave fits in `room` at every position beside the workspace there (pl_walk_workspaces). `held` is
 * scratch, by position. */
planc_status pl_absences_fit(const planc_order *order, const pl_absences *absences, const int64_t *workspace,
                             int64_t room, int64_t *held, bool *out_fit);

#endif
