/* A walk goes through a trace in order and states its schedule. Policies that decide per tensor and not per address use
 * it: `none`, vDNN's, and those that recompute. The walk leaves addresses blank, or asks an allocator for them that
 * sees data come and go. It counts the live bytes, so that it can choose algorithms by the room left for a workspace.
 */
#ifndef PLANC_CHOOSE_WALK_H
#define PLANC_CHOOSE_WALK_H

#include "planc/policy.h"
#include "planner/memory/bfc.h"

/* Gives out addresses as data comes and goes, instead of lowering. A persistent buffer keeps its address. */
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
  int64_t host_room;      /* bytes that may be parked on the host or swapped out; INT64_MAX = not limited */
  planc_online *online;   /* NULL: addresses stay blank */
} planc_walk;

#define PLANC_ROOM_UNLIMITED INT64_MAX /* fastest algorithms ("performance-optimal") */
#define PLANC_ROOM_NONE 0              /* baseline algorithms ("memory-optimal") */

/* Starts a walk over rounds of `sub_batch` samples: trace, costs and schedule in `out`. */
planc_status planc_walk_start(planc_walk *walk, const planc_problem *problem, int64_t sub_batch, int64_t room,
                              planc_candidate *out);
/* Call this next. It opens the persistent buffers, but not those that are parked on the host between periods: buffer b
 * is if parked[b]; `parked` may be NULL. */
planc_status planc_walk_boundary(planc_walk *walk, const bool *parked);
/* The bytes that a residency of the buffer takes, its alignment included. */
int64_t planc_walk_room(const planc_buffer *buffer);
planc_status planc_walk_open(planc_walk *walk, int32_t buffer, int32_t *out_residency);
planc_status planc_walk_close(planc_walk *walk, int32_t residency);
/* Runs an instance with the fastest variant whose workspace finds room, else the baseline. */
planc_status planc_walk_exec(planc_walk *walk, int32_t instance, bool recompute);
/* Closes every buffer whose last access `instance` makes. Results are delivered before. */
planc_status planc_walk_close_dead(planc_walk *walk, int32_t instance);

/* Returns the buffer from which the gradient op of a convolution reads the gradient of the convolution's output, or -1:
 * an op of a foreign type may have other operands. */
int32_t planc_output_gradient(const planc_trace *trace, int32_t instance);

/* Returns the fastest variant of an instance whose workspace is at most `limit`, else the baseline; 0 for instances
 * that are no ops. */
int32_t planc_fastest_variant(const planc_costs *costs, const planc_instance *instance, int64_t limit);

/* Returns that variant itself. */
planc_variant planc_walk_variant(const planc_walk *walk, int32_t instance, int64_t limit);

/* Makes a whole candidate by walking with the given room; `context` is the policy's own. */
typedef planc_status (*planc_walk_maker)(const planc_problem *problem, const void *context, int64_t room,
                                         planc_candidate *out);
/* Makes a candidate and says whether it fits both budgets; if not, *out is empty. With PLANC_ROOM_UNLIMITED and
 * PLANC_ROOM_NONE it tries once. With any other room it tries again with less where fragmentation breaks the budget
 * (planc_room_search_down). */
planc_status planc_walk_try(const planc_evaluator *evaluator, planc_walk_maker maker, const void *context, int64_t room,
                            planc_candidate *out, bool *out_fits);

typedef struct planc_walk_attempt {
  const void *context;
  int64_t room;
  bool
      least_without_room; /* no room leaves less live than none, with which it is seen beforehand whether all is lost */
} planc_walk_attempt;
/* Gives out the first attempt that fits, and its number. Where none does, that is `n`, and the candidate is that of the
 * last attempt's context without room: its plan tells what it needs and what binds. */
planc_status planc_walk_first(const planc_evaluator *evaluator, planc_walk_maker maker,
                              const planc_walk_attempt *attempts, int32_t n, planc_candidate *out, int32_t *out_number);
/* Tries the fastest algorithms, then algorithms by room, then baseline algorithms. Gives out the first candidate that
 * fits, or the last one if none does. */
planc_status planc_walk_fit(const planc_evaluator *evaluator, planc_walk_maker maker, const void *context,
                            planc_candidate *out);

#endif
