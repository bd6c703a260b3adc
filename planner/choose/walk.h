/* Walking a trace in order while stating its schedule, addresses blank or as an allocator gives them that sees what
 * comes and goes: what the policies share that decide per tensor and not per address (`none`, vDNN's, the recomputing
 * ones). A walk follows how many bytes are live, so that algorithms can be chosen by the room that is left for their
 * workspace. */
#ifndef PLANC_CHOOSE_WALK_H
#define PLANC_CHOOSE_WALK_H

#include "planc/policy.h"
#include "planner/memory/bfc.h"

/* Addresses that are given as data comes and goes, not by lowering. What persists keeps its place. */
typedef struct planc_online {
  planc_bfc memory;
  VEC(int32_t) handles;   /* by residency */
  VEC(int64_t) addresses; /* by buffer: of what persists */
} planc_online;

planc_status planc_online_init(planc_online *online, const planc_problem *problem);
void planc_online_free(planc_online *online);

typedef struct planc_walk {
  planc_schedule *schedule;
  const planc_trace *trace;
  const planc_costs *costs;
  int64_t room; /* bytes that live data and a workspace may fill together: PLANC_ROOM_..., or the arena */
  int64_t live;
  bool swaps, recomputes; /* what the user allows */
  int64_t host_room;      /* bytes that may be on the host at home or swapped out; INT64_MAX = not limited */
  planc_online *online;   /* NULL: addresses stay blank */
} planc_walk;

#define PLANC_ROOM_UNLIMITED INT64_MAX /* fastest algorithms ("performance-optimal") */
#define PLANC_ROOM_NONE 0              /* baseline algorithms ("memory-optimal") */

/* Starts a walk over rounds of `sub_batch` samples: trace, costs and schedule in `out`. */
planc_status planc_walk_start(planc_walk *walk, const planc_problem *problem, int64_t sub_batch, int64_t room,
                              planc_candidate *out);
/* Comes next: persistent buffers are open but for those that are at home between periods; home[b] says so of buffer b,
 * NULL of none. */
planc_status planc_walk_boundary(planc_walk *walk, const bool *home);
/* The bytes that a residency of the buffer takes, its alignment included. */
int64_t planc_walk_room(const planc_buffer *buffer);
planc_status planc_walk_open(planc_walk *walk, int32_t buffer, int32_t *out_residency);
planc_status planc_walk_close(planc_walk *walk, int32_t residency);
/* Runs an instance with the fastest variant whose workspace finds room, else the baseline. */
planc_status planc_walk_exec(planc_walk *walk, int32_t instance, bool recompute);
/* Closes what `instance` used last; results are delivered first. */
planc_status planc_walk_close_dead(planc_walk *walk, int32_t instance);

/* The buffer that the gradient of a convolution reads as the gradient of what the convolution made, -1 if there is
 * none: an op of a foreign type may have other operands. */
int32_t planc_output_gradient(const planc_trace *trace, int32_t instance);

/* The fastest variant of an instance whose workspace is at most `limit`, else the baseline; 0 for other roles than OP.
 */
int32_t planc_fastest_variant(const planc_costs *costs, const planc_instance *instance, int64_t limit);

/* That variant of an instance. */
planc_variant planc_walk_variant(const planc_walk *walk, int32_t instance, int64_t limit);

/* Makes a whole candidate by walking with the given room; `context` is the policy's own. */
typedef planc_status (*planc_walk_maker)(const planc_problem *problem, const void *context, int64_t room,
                                         planc_candidate *out);
/* Makes a candidate and says whether its physical peaks fit. With any other room than the two constants it starts from
 * what the budget leaves and, where fragmentation breaks the budget, tries again with as much less as was too much,
 * and, where little is missing in the end, with a 32nd less still. Without a fit *out is empty. */
planc_status planc_walk_try(const planc_problem *problem, planc_walk_maker maker, const void *context, int64_t room,
                            planc_candidate *out, bool *out_fits);
/* The first of fastest algorithms, algorithms by room, and baseline algorithms that fits; the last if none does. */
planc_status planc_walk_fit(const planc_problem *problem, planc_walk_maker maker, const void *context,
                            planc_candidate *out);

#endif
