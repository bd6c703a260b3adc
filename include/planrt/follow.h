/* Following a plan under a framework that runs the ops itself, as PyTorch does.
 *
 * The framework makes the calls of one training iteration in its own time and in the plan's order. Between two calls
 * the follower carries out what the plan has there: it gives memory back, copies data out and in, and has calls run
 * again. Data of the device are the framework's; what leaves them lies in a host arena of exactly the plan's size.
 *
 *   planrt_follow_begin                        before the first call
 *   planrt_follow_next, (the call), _done      for each call: everything it reads is there, then what it wrote is known
 *   planrt_follow_end                          after the last one
 *
 * Whoever makes other calls than the plan's leaves it (planrt_follow_leave): everything that is still needed comes
 * back, and the rest of the iteration runs as it would without a plan.
 *
 * What persists between iterations (params, optimizer state) may be at home on the host at their boundary. The
 * framework need not know it before its first use: until then it stays where it is. Whoever reads or writes it between
 * iterations asks for it first (planrt_follow_bring).
 *
 * Memory of the framework's is read and written by the host, or, on a device with streams, by copies that the framework
 * enqueues (planrt_streams): the host goes on meanwhile, and events order streams as the plan says. Memory is then the
 * calls' stream's, as a caching allocator has it: what is released is used again by whatever comes next on this stream.
 * So data that leave on another stream are released when the calls' stream has waited for that, which it does where the
 * plan has it wait or, before that, where memory within the plan's size is short.
 *
 * A framework that can put memory where it is told may have it at the addresses that the plan states
 * (planrt_follow_place): it has an arena of the plan's size, and each time memory is to be had is told where in it, in
 * bytes from its beginning, or -1 for memory beside the arena. Where it is told to put memory there is none that it was
 * told of before and has not been asked to give back; what its user has kept of what was released for good is the
 * framework's to move away. While the framework does not know all that persists, after a failure or once the plan is
 * left, some memory lies beside the arena that otherwise would not.
 *
 * Buffers are numbered as in the plan's trace (planc/trace.h), calls as the ops of its graph. One thread at a time. */
#ifndef PLANRT_FOLLOW_H
#define PLANRT_FOLLOW_H

#include "planc/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct planrt_follow planrt_follow;

/* Streams of a device. PLANRT_CALLS is where calls run, among them those that are run again; the others are the plan's
 * copy streams, numbered from 1 on. Events are numbered from 0 on; each is recorded again and again, and a wait is for
 * the last record of it, if there is one. Functions that give an int give other than 0 where they fail. */
enum { PLANRT_CALLS = 0 };
typedef struct planrt_streams {
  /* Host memory that copies may run from and to while the host goes on: the arena, and what is kept while a plan is
   * left. NULL where there is none. */
  void *(*host_alloc)(void *user, int64_t bytes);
  void (*host_free)(void *user, void *memory);
  /* Enqueues a copy of all bytes of a buffer that has memory: out to `host`, within what host_alloc gave, or in from
   * there. */
  int (*copy)(void *user, int32_t stream, int32_t buffer, void *host, bool out);
  int (*record)(void *user, int32_t event, int32_t stream);
  /* What is enqueued on the stream from now on starts after the event's record. */
  int (*wait)(void *user, int32_t event, int32_t stream);
  /* The host waits for all that was enqueued on all streams. */
  int (*finish)(void *user);
} planrt_streams;

/* Where memory is to be that a call takes, in the arena. */
typedef struct planrt_rooms {
  int32_t n;                          /* buffers that it makes */
  const int32_t *buffers;             /* which */
  const int64_t *addresses;           /* of each, or -1 */
  int64_t workspace, workspace_bytes; /* what it may use until it has run; 0 bytes: nothing */
} planrt_rooms;

/* What the framework does when it is asked, without calling the follower in turn. A function that fails gives other
 * than 0; the follower then fails with DEVICE, and the iteration is over: there is no next call, what later calls read
 * may not be there, and planrt_follow_end or the next planrt_follow_begin has everything back that persists. */
typedef struct planrt_framework {
  void *user; /* first argument of all */
  /* Where the data of a buffer are that has memory; NULL: the framework does not know the buffer yet, or its memory is
   * to stay where it is. */
  void *(*address)(void *user, int32_t buffer);
  /* Gives memory to a buffer that has none, at an address of the arena or, where that is -1, beside it; its bytes are
   * undefined. */
  int (*allocate)(void *user, int32_t buffer, int64_t address);
  /* Moves the memory of a buffer, with its data, to an address of the arena, which the old one may overlap, or beside
   * it. Used with an arena only. */
  int (*move)(void *user, int32_t buffer, int64_t address);
  /* Takes the memory of a buffer back. `last`: the plan has no use for the buffer any more, which the framework keeps
   * if its user does. */
  int (*release)(void *user, int32_t buffer, bool last);
  /* Runs a call of this iteration again, without its side effects, so that `n` of the buffers that it wrote hold the
   * same bytes again. Those that it makes have no memory yet, and get it as `rooms` has it; those that it changes or
   * overwrites have. */
  int (*repeat)(void *user, int32_t call, const int32_t *wanted, int32_t n, const planrt_rooms *rooms);
  const planrt_streams *streams; /* NULL: the host reads and writes memory at the addresses; else copied */
} planrt_framework;

/* Checks the plan (planc_check with its own budgets) and that it can be followed: of one job, one GPU, one round, in
 * the graph's order, its calls on one stream, its input not fed by the plan, and at no time with two versions of a
 * buffer on the device. `plan` is borrowed, `framework` is copied. INVALID_PLAN or INFEASIBLE from the checker, USAGE
 * where it cannot be followed.
 */
planc_status planrt_follow_new(const planc_plan *plan, const planrt_framework *framework, planrt_follow **out);
/* What is at home on the host is lost: planrt_follow_bring_all comes first. */
void planrt_follow_free(planrt_follow *follow);

/* The plan's trace; an instance is a call. */
const planc_trace *planrt_follow_trace(const planrt_follow *follow);
/* The buffer that a tensor of the plan's graph lies in; -1: there is no such tensor, or nothing touches it. */
int32_t planrt_follow_buffer(const planrt_follow *follow, int32_t tensor);
int64_t planrt_follow_bytes(const planrt_follow *follow, int32_t buffer);
/* Whether a buffer persists from one iteration to the next. */
bool planrt_follow_persists(const planrt_follow *follow, int32_t buffer);
/* Whether the plan runs a call again: until the end of the iteration the framework needs to know how. */
bool planrt_follow_repeats(const planrt_follow *follow, int32_t call);

/* Bytes of the arena for memory at the plan's addresses; 0: the plan's are of virtual memory, and none are told. */
int64_t planrt_follow_arena_bytes(const planrt_follow *follow);
/* From now on memory is to be in `arena`, which has that many bytes, begins at a multiple of the alignment of the
 * plan's memory and is the framework's; NULL: beside an arena, as at first. USAGE within an iteration, and where the
 * plan has no such addresses. */
planc_status planrt_follow_place(planrt_follow *follow, void *arena);

/* Starts an iteration: what is at home on the host goes there. USAGE within one that has not failed. */
planc_status planrt_follow_begin(planrt_follow *follow);
/* The call that the plan has next, for which all is ready; -1 after the last one and outside the plan. What the plan
 * brings between the last call and the first one comes with the first that takes anything: until then the user may have
 * what the iteration before left to him, and lets go of it when a new one begins. INTERNAL if something that it reads
 * is not there, which no plan that was taken leads to. */
planc_status planrt_follow_next(planrt_follow *follow, int32_t *out_call);
/* Where that call's memory is to be, until planrt_follow_done. */
const planrt_rooms *planrt_follow_rooms(const planrt_follow *follow);
/* The framework has made that call. */
planc_status planrt_follow_done(planrt_follow *follow);
/* Brings back all that later calls read and leaves the plan for the rest of the iteration. `made`: the framework has
 * made the call that it was given by planrt_follow_next, though its results are not the plan's; USAGE where there was
 * none. */
planc_status planrt_follow_leave(planrt_follow *follow, bool made);
/* Ends the iteration. USAGE when calls are missing and the plan was not left. */
planc_status planrt_follow_end(planrt_follow *follow);

/* Gives what persists its memory and data back, one buffer or all of them, for the user to read and write: between two
 * iterations; within one it may have memory alone (planrt_follow_is_lost). Of any buffer that the framework has the
 * stream of calls then waits for the copies, so that calls that are not the plan's may use it. */
planc_status planrt_follow_bring(planrt_follow *follow, int32_t buffer);
planc_status planrt_follow_bring_all(planrt_follow *follow);
/* What persists has been replaced by its user, who has let go of the memory that the framework knew: whatever the plan
 * has of it on the host is nothing any more, and the framework, which is asked to take that memory back if the plan
 * still has it in use, need not know the new one before its first use, as before the first iteration. USAGE within an
 * iteration, and of what does not persist. */
planc_status planrt_follow_renew(planrt_follow *follow, int32_t buffer);
/* Whether a buffer has its data in the framework's memory for good, or the framework does not know it yet. */
bool planrt_follow_has(const planrt_follow *follow, int32_t buffer);
/* Whether, since the plan was left in this iteration, a buffer has memory but no data: the plan has it overwritten
 * next, and has kept none. The framework does not let anything read it before. */
bool planrt_follow_is_lost(const planrt_follow *follow, int32_t buffer);

/* Bytes copied out and in, and calls run again, since the follower was made. */
typedef struct planrt_follow_counts {
  int64_t out_bytes, in_bytes, repeats, iterations, left; /* `left`: iterations that left the plan */
} planrt_follow_counts;
planrt_follow_counts planrt_follow_counted(const planrt_follow *follow);

#ifdef __cplusplus
}
#endif

#endif
