/* A walk goes through a trace in a candidate's order and states its schedule: `none`'s and vDNN's, and that of every
 * policy that states absences (absences.h). The walk leaves addresses blank, or asks an allocator for them that sees
 * data come and go. It counts the live bytes, so that it can choose algorithms by the room left for a workspace. */
#ifndef PLANC_CHOOSE_WALK_H
#define PLANC_CHOOSE_WALK_H

#include "planc/evaluator.h"
#include "planner/memory/bfc.h"
#include "util/arena.h"

/* Gives out addresses as data comes and goes, instead of lowering. A persistent buffer keeps its address. */
typedef struct pl_online {
  pl_bfc memory;
  VEC(int32_t) handles;   /* by residency */
  VEC(int64_t) addresses; /* by buffer: of what persists */
} pl_online;

planc_status pl_online_init(pl_online *online, const planc_problem *problem);
void pl_online_free(pl_online *online);

/* When the buffers for other replicas' gradients get memory; a copy into one cannot begin before that. Late: right
 * ahead of the op that reads it. Beside: as early as live bytes then stay below the most of the late walk by the size
 * of all these buffers. Early: as early as the walk's room lets. First: the same, with algorithms that leave room for
 * them. At once: before anything runs. */
typedef enum pl_reception {
  PL_RECEIVES_LATE,
  PL_RECEIVES_BESIDE,
  PL_RECEIVES_EARLY,
  PL_RECEIVES_FIRST,
  PL_RECEIVES_AT_ONCE
} pl_reception;

/* How much memory a walk may take, and when it takes it. */
typedef struct pl_walk_room {
  int64_t bytes; /* that live data and a workspace may fill together: PL_ROOM_..., the arena or less */
  pl_reception reception;
} pl_walk_room;

#define PL_ROOM_UNLIMITED INT64_MAX /* fastest algorithms ("performance-optimal") */
#define PL_ROOM_NONE 0              /* baseline algorithms ("memory-optimal") */

/* A buffer for what other replicas send, and the position ahead of which it is opened. */
typedef struct pl_received {
  int32_t buffer, from;
} pl_received;

typedef struct pl_walk {
  const planc_problem *problem;
  planc_candidate *candidate;
  planc_schedule *schedule; /* the candidate's */
  const planc_trace *trace;
  const planc_order *order;        /* of its instances, without recomputes */
  const planc_costs *const *costs; /* by job */
  const planc_device *device;
  planc_link links[PLANC_N_ROUTES]; /* the device's, as far as they are the job's */
  int64_t room;                     /* the walk's pl_walk_room */
  pl_reception reception;
  int64_t live;
  bool swaps, recomputes; /* what the user allows */
  int64_t host_room;      /* bytes that may be parked on the host or swapped out; INT64_MAX = not limited */
  pl_online *online;      /* NULL: addresses stay blank */
  int32_t position;       /* that the walk has reached */
  int64_t *live_at;       /* by position: the most bytes live, a workspace included; NULL = nobody asks */
  pl_received *received; /* what is not late, in the order of its readers; from `next_received` on it is not open yet */
  int32_t n_received, next_received;
} pl_walk;

/* Starts the candidate's schedule, anew if it has one, for a walk over the trace in its order. */
planc_status pl_walk_start(pl_walk *walk, const planc_problem *problem, pl_walk_room room, planc_candidate *candidate);
/* The same over rounds of `sub_batch` samples in the trace's order: all of `out` is made. */
planc_status pl_walk_start_rounds(pl_walk *walk, const planc_problem *problem, int64_t sub_batch, pl_walk_room room,
                                  planc_candidate *out);
/* Goes through the order, from the boundary to the schedule's end. */
typedef planc_status (*pl_walk_runner)(pl_walk *walk, void *context);
/* Call this behind pl_walk_start, once. It calls `run`, and does so twice where other replicas send and what they send
 * is received first, early or beside the rest. Before the second time the walk starts anew, so that all its fields but
 * `online` and what is received are those of pl_walk_start; `run` resets what it keeps in `context`. */
planc_status pl_walk_run(pl_walk *walk, pl_walk_runner run, void *context);

/* What a runner calls. The first states the boundary: buffer b starts the period on the host if away[b], else on the
 * device. `away` may be NULL. */
planc_status pl_walk_boundary(pl_walk *walk, const bool *away);
/* A runner calls this for each position, in ascending order, before it states anything for it. */
planc_status pl_walk_reach(pl_walk *walk, int32_t position);
/* The bytes that a residency of the buffer takes, its alignment included. */
int64_t pl_walk_bytes(const planc_buffer *buffer);
planc_status pl_walk_open(pl_walk *walk, int32_t buffer, int32_t *out_residency);
/* Opens the buffer of an access, if it is not open, and copies in what the access reads, if it has no content. */
planc_status pl_walk_make_ready(pl_walk *walk, const planc_access *access);
planc_status pl_walk_close(pl_walk *walk, int32_t residency);
/* Runs an instance with the fastest variant whose workspace finds room, else the baseline. */
planc_status pl_walk_exec(pl_walk *walk, int32_t instance, bool recompute);
/* Closes every buffer whose last use is at `position`. Results are delivered before. */
planc_status pl_walk_close_dead(pl_walk *walk, int32_t position);

/* The class of what an instance runs; sums of gradients are elementwise. */
planc_class pl_instance_class(const planc_trace *trace, int32_t instance);
/* Returns the buffer from which the gradient op of a convolution reads the gradient of the convolution's output, or -1:
 * an op of a foreign type may have other operands. */
int32_t pl_output_gradient(const planc_trace *trace, int32_t instance);

/* The variants of an instance of role OP; `costs` are by job. */
const planc_variant *pl_variants_of(const planc_costs *const *costs, const planc_instance *instance,
                                    int32_t *out_count);

/* Returns the fastest variant of an instance whose workspace is at most `limit`, else the baseline; 0 for instances
 * that are no ops. */
int32_t pl_fastest_variant(const planc_costs *const *costs, const planc_instance *instance, int64_t limit);

/* Returns that variant itself. */
planc_variant pl_walk_variant(const pl_walk *walk, int32_t instance, int64_t limit);

/* By position of the walk's order: the workspace of that variant, in memory of `arena`. */
planc_status pl_walk_workspaces(const pl_walk *walk, int64_t limit, pl_arena *arena, int64_t **out);

/* Makes a whole candidate by walking with the given room; `context` is the policy's own. */
typedef planc_status (*pl_walk_maker)(const planc_problem *problem, const void *context, pl_walk_room room,
                                      planc_candidate *out);
/* Replaces a candidate that fits and receives late by the fastest that fits of those that receive otherwise, if one is
 * faster; `room` is what it was made with, and then what it is made with. Nothing is done where nothing is received, or
 * where the first that fits will do. */
planc_status pl_walk_receive(const planc_evaluator *evaluator, pl_walk_maker maker, const void *context,
                             planc_candidate *late, pl_walk_room *room);
/* Makes a candidate and says whether it fits the budgets; if not, *out is empty. With PL_ROOM_UNLIMITED and
 * PL_ROOM_NONE it tries once. With any other room it tries again with less where fragmentation breaks the budget
 * (pl_room_search_down). *out_room is what it is made with. Of the ways to receive that fit the fastest is taken. */
planc_status pl_walk_try(const planc_evaluator *evaluator, pl_walk_maker maker, const void *context, int64_t room,
                         planc_candidate *out, pl_walk_room *out_room, bool *out_fits);

typedef struct pl_walk_attempt {
  const void *context;
  int64_t room;
  /* The maker's candidate has the fewest live bytes when it is made without room (PL_ROOM_NONE). It is made so first,
   * and if even that is above the budget, the attempt is left out. */
  bool least_without_room;
} pl_walk_attempt;
typedef struct pl_walk_found {
  int32_t number;    /* of the attempt */
  pl_walk_room room; /* with which the candidate is made */
} pl_walk_found;
/* Tries the attempts in their order, up to the first that fits when it receives late; where candidates receive, also
 * those behind it with the same `context` pointer, whose algorithms leave more room for what is received. Gives out the
 * fastest that fits of all that it tried, in whatever way it receives. Where none fits, the number is `n`: it tries the
 * last attempt's context without room and gives out what fits of that, or else what receives late, whose plan tells
 * what it needs and what binds. */
planc_status pl_walk_first(const planc_evaluator *evaluator, pl_walk_maker maker, const pl_walk_attempt *attempts,
                           int32_t n, planc_candidate *out, pl_walk_found *found);
/* pl_walk_first with the fastest algorithms, then algorithms by room, then baseline algorithms. */
planc_status pl_walk_fit(const planc_evaluator *evaluator, pl_walk_maker maker, const void *context,
                         planc_candidate *out);

#endif
