/* The follower's parts (planrt/follow.h), which its files share: what it knows of the plan and of the framework's data.
 */
#ifndef PLANRT_FOLLOWER_H
#define PLANRT_FOLLOWER_H

#include "planrt/follow.h"
#include "util/arena.h"

enum { RT_NOTHING = -1 };

/* What becomes of a buffer's data when its last place on the device is released. */
typedef enum rt_next_use {
  RT_NEXT_NONE,  /* nothing uses them any more */
  RT_NEXT_WRITE, /* they are overwritten first */
  RT_NEXT_READ
} rt_next_use;

/* What becomes of memory that the plan has released while a copy may still run from or to it. */
typedef enum rt_leave {
  RT_STAYS,
  RT_LEAVES,
  RT_LEAVES_FOR_GOOD /* the plan has no use for the buffer any more */
} rt_leave;

/* A residency. */
typedef struct rt_followed_place {
  int32_t buffer, memory;
  int64_t address;
  int32_t version; /* on the host, of what lies there; RT_NOTHING: nothing does */
  int32_t below;   /* on the host, of the buffer's places there the one that was opened before; RT_NOTHING: none */
  bool open;
} rt_followed_place;

/* Where a buffer's data are. */
typedef struct rt_content {
  bool touched;    /* by a call, since there was an iteration that was not left */
  bool present;    /* in memory of the framework's; what is leaving is not */
  bool lost;       /* the plan was left, and has the data overwritten next: its memory holds none */
  uint8_t leaving; /* rt_leave: the framework has the memory until the calls' stream has waited for all copies */
  int32_t version; /* which the framework has, where it is present */
  int32_t made;    /* by the calls that were made */
  int32_t places;  /* residencies that are open on the device */
  int32_t host;    /* of those on the host the one that was opened last; RT_NOTHING: none is open */
} rt_content;

/* What the plan brings after the last call, for the next iteration: it waits until that has a call that takes anything,
 * since the user has until then what this one left him, gradients say. */
typedef struct rt_late {
  int32_t residency; /* on the host */
  int32_t to;        /* on the device */
  rt_followed_place from;
} rt_late;

/* When a stream did something: the n-th thing that it did. */
typedef struct rt_moment {
  int32_t stream;
  int64_t time;
} rt_moment;

struct planrt_follow {
  const planc_plan *plan;
  planrt_framework framework;
  planc_trace *trace;
  pl_arena memory;
  char *host;                /* the arena of the host; NULL in a rehearsal */
  rt_followed_place *places; /* by residency */
  rt_content *contents;      /* by buffer */
  int32_t *buffers;          /* by storage of the graph; RT_NOTHING: nothing touches it */
  uint8_t *next_uses;        /* by instruction of the body, of releases and copies: rt_next_use */
  int32_t *ends;             /* by row of the boundary: the residency that is there at the end of the body */
  bool *repeats;             /* by instance */
  int32_t *wanted;           /* of one call */
  bool *seen;                /* by buffer, while the plan is left, as the following ones */
  bool *needed;              /* by instruction of the body */
  char **kept;               /* by buffer: a copy of data that made room for an older version; NULL: there is none */
  rt_late *late;
  int32_t n_late;
  int32_t *leaving; /* buffers, since when they are */
  int32_t n_leaving;
  int64_t leaving_bytes, open_bytes; /* of these; of residencies that are open on the device */
  char *arena;                       /* follow_addresses.c; NULL: memory comes without addresses */
  int64_t *addresses;                /* by buffer: of its memory in the arena; RT_NOTHING: it has none there */
  int32_t *placed;                   /* buffers that have, in the order of their addresses */
  int32_t n_placed;
  int32_t *moves; /* residencies, to which what waits is moved */
  int32_t n_moves;
  bool seats_late;    /* the iteration has begun, and they still wait */
  planrt_rooms rooms; /* of the next call, or of one that is made again */
  int32_t *room_buffers;
  int64_t *room_addresses;
  int32_t n_streams;             /* follow_order.c */
  int32_t *numbers;              /* by stream of the plan: the framework's */
  int32_t out_stream, in_stream; /* for copies that are not the plan's */
  int64_t *clocks;               /* by stream and event, the plan's and one of each stream, of all streams */
  rt_moment *writes;             /* by buffer and residency */
  int64_t *reads;                /* by buffer and residency, on all streams */
  int32_t at, call;              /* where the iteration is: the next instruction, the next instance */
  bool within, left;
  bool waits; /* what comes in does */
  bool asked; /* the framework was told the next call */
  bool over;  /* the iteration has failed, and was left by that */
  planrt_follow_counts counts;
};

static inline bool rt_follow_persists(const planrt_follow *f, int32_t buffer) {
  return f->trace->buffers[buffer].flags & PLANC_BUFFER_PERSISTENT;
}
static inline planc_memory_kind rt_follow_memory(const planrt_follow *f, int32_t residency) {
  return residency == PLANC_USER ? PLANC_MEMORY_USER : f->plan->memories[f->places[residency].memory].kind;
}
static inline const char *rt_follow_name(const planrt_follow *f, int32_t buffer) {
  return planc_trace_buffer_name(f->trace, buffer);
}
static inline void *rt_follow_address(const planrt_follow *f, int32_t buffer) {
  return f->framework.address(f->framework.user, buffer);
}

/* Accesses of a call, all of them or, of one that is made again, those that it has a place for: k = RT_NOTHING; while
 * ((access = rt_follow_access(...))). NULL after the last one. */
static inline const planc_access *rt_follow_access(const planrt_follow *f, int32_t instance, const int32_t *uses,
                                                   int32_t *k) {
  const planc_instance *of = &f->trace->instances[instance];
  while (++*k < of->n_accesses)
    if (!uses || uses[*k] >= 0) return &f->trace->accesses[of->first_access + *k];
  return NULL;
}
/* Whether a call makes a buffer, as others write one that there is already. */
static inline bool rt_follow_makes(const planrt_follow *f, const planc_access *access) {
  return access->read < 0 && access->write == 1 && !rt_follow_persists(f, access->buffer);
}

/* --- follow.c ----------------------------------------------------------------------------------------------------- */

/* Puts the follower before its first iteration, when all that persists is the framework's. */
void rt_follow_start(planrt_follow *f);

/* --- follow_acts.c ------------------------------------------------------------------------------------------------ */

/* Carries out an instruction that is no call. `next`: what is done next with the data that it moves. */
planc_status rt_follow_act(planrt_follow *f, const planc_instr *instr, rt_next_use next);
/* Opens and closes a residency. */
void rt_follow_open(planrt_follow *f, int32_t residency);
void rt_follow_close(planrt_follow *f, int32_t residency);
planc_status rt_follow_copy(planrt_follow *f, const planc_instr *instr, rt_next_use next);
/* Has a call run again, where that is needed. USAGE when the framework has another version of what it makes. */
planc_status rt_follow_repeat(planrt_follow *f, const planc_instr *instr);
/* Of a call, all accesses or those with a place in `uses`: that what it reads is there; that its stream comes after all
 * that was done with them; memory for what it overwrites; that it has written. */
planc_status rt_follow_check_reads(const planrt_follow *f, int32_t instance, const int32_t *uses);
planc_status rt_follow_order_call(planrt_follow *f, int32_t instance, const int32_t *uses);
planc_status rt_follow_make_room(planrt_follow *f, int32_t instance, const int32_t *uses);
void rt_follow_write_results(planrt_follow *f, int32_t instance, const int32_t *uses);

/* --- follow_memory.c ---------------------------------------------------------------------------------------------- */

/* Gives memory back, at once where the calls' stream has waited for all copies from and to it, else after that. */
planc_status rt_follow_give_back(planrt_follow *f, int32_t buffer, bool last);
/* The memory of a buffer that is leaving stays, with its data; or it is given back now, for which the calls' stream
 * waits.
 */
planc_status rt_follow_stay(planrt_follow *f, int32_t buffer);
planc_status rt_follow_let_go(planrt_follow *f, int32_t buffer);
/* Gives back what leaves and can by now. */
planc_status rt_follow_sweep(planrt_follow *f);
/* Has the calls' stream wait until `bytes` more are within the plan's size. */
planc_status rt_follow_find_room(planrt_follow *f, int64_t bytes);
/* What leaves and does not persist is the framework's again: the iteration is over. */
void rt_follow_forget(planrt_follow *f);
/* Has the calls' stream wait for all that leaves or, without `lasting`, for what does not persist. */
planc_status rt_follow_settle(planrt_follow *f, bool lasting);

/* --- follow_placed.c -----------------------------------------------------------------------------------------------
 */

/* Among those that are placed, the first that ends behind an address, or how many there are. */
int32_t rt_address_first_behind(const planrt_follow *f, int64_t address);
/* A buffer's memory is at an address, or no longer at any. */
void rt_address_set(planrt_follow *f, int32_t buffer, int64_t address);

/* --- follow_addresses.c ------------------------------------------------------------------------------------------- */

planc_status rt_address_prepare(planrt_follow *f);
/* Looks up where the framework has what persists, which the user may have put elsewhere. */
void rt_address_look(planrt_follow *f);
/* `residency`: what the memory is for; RT_NOTHING: for none. */
planc_status rt_follow_allocate(planrt_follow *f, int32_t buffer, int32_t residency);
/* The address for memory of a residency, where nothing is from now on; RT_NOTHING: it has none. */
planc_status rt_address_for(planrt_follow *f, int32_t residency, int64_t *out);
/* Memory that is there is moved to where the plan has a residency of it. */
planc_status rt_address_seat(planrt_follow *f, int32_t residency);
/* Where an iteration begins: the same for all that is on the device at the boundary, or later what waits. */
planc_status rt_address_begin(planrt_follow *f);
/* The move to a residency waits, as what comes in does (rt_late); then all that waits is moved, in order, at the latest
 * where the results of a call, which takes nothing, are to lie there. */
planc_status rt_address_wait(planrt_follow *f, int32_t residency);
planc_status rt_address_seat_late(planrt_follow *f);
planc_status rt_address_seat_if_taken(planrt_follow *f, const planc_instr *instr);
/* The same for all that a call reads and changes. `uses`: the residencies of its accesses. */
planc_status rt_address_seat_operands(planrt_follow *f, int32_t instance, const int32_t *uses);
/* Of a call that is about to be made: where `n` of the buffers are to be that it makes, and its workspace. Then that
 * they are there. */
planc_status rt_address_find_rooms(planrt_follow *f, const planc_instr *instr, const int32_t *wanted, int32_t n);
void rt_address_take_rooms(planrt_follow *f);

/* --- follow_copies.c ---------------------------------------------------------------------------------------------- */

/* Copies what the framework has to a place on the host, and the other way round. `from`: what the residency is, or was
 * when the plan had the copy; `place`: what that is for, on the device. */
planc_status rt_follow_copy_out(planrt_follow *f, int32_t stream, int32_t residency);
planc_status rt_follow_copy_in(planrt_follow *f, int32_t stream, int32_t residency, const rt_followed_place *from,
                               int32_t place);
/* Where the plan has no such copy. */
planc_status rt_follow_copy_out_now(planrt_follow *f, int32_t residency);
planc_status rt_follow_copy_in_now(planrt_follow *f, int32_t residency, const rt_followed_place *from);

/* What a residency on the host has waits for the next iteration. */
planc_status rt_late_add(planrt_follow *f, int32_t residency, int32_t to);
/* What waits for a place that the plan has given up again: the host has it still, so it need not come. */
void rt_late_drop(planrt_follow *f, int32_t to);
/* Nothing of a buffer is to come any more. */
void rt_late_forget(planrt_follow *f, int32_t buffer);
/* Brings what waits: all of it, that of a buffer, or that in these bytes of the host's, which are about to be written.
 */
planc_status rt_late_bring(planrt_follow *f);
planc_status rt_late_bring_buffer(planrt_follow *f, int32_t buffer);
planc_status rt_late_bring_from(planrt_follow *f, int64_t address, int64_t bytes);

/* --- follow_order.c ----------------------------------------------------------------------------------------------- */

planc_status rt_order_prepare(planrt_follow *f);
/* The framework could not do something with a buffer. */
planc_status rt_follow_failed(const planrt_follow *f, int32_t buffer, const char *what);
planc_status rt_order_record(planrt_follow *f, int32_t event, int32_t stream);
planc_status rt_order_wait(planrt_follow *f, int32_t event, int32_t stream);
/* Each stream waits for all others; the host waits for all. */
planc_status rt_order_fence(planrt_follow *f);
planc_status rt_order_finish(planrt_follow *f);
/* The calls' stream does what is not told. */
void rt_order_advance(planrt_follow *f);
/* A stream is to come after all that the calls' has done: memory of this one is free for it. */
planc_status rt_order_after_calls(planrt_follow *f, int32_t stream);
/* A stream is to read or write a resource: a buffer or, from n_buffers on, a residency. Then it has. */
planc_status rt_order_before(planrt_follow *f, int32_t stream, int32_t resource, bool writes);
void rt_order_after(planrt_follow *f, int32_t stream, int32_t resource, bool writes);
/* Whether the calls' stream comes after all that was done with a resource. */
bool rt_order_is_quiet(planrt_follow *f, int32_t resource);
/* Copies a buffer's data; its places in time are the caller's. */
planc_status rt_order_copy(planrt_follow *f, int32_t stream, int32_t buffer, void *host, bool out);
planc_status rt_order_host_alloc(planrt_follow *f, int64_t bytes, void *out_pointer);
void rt_order_host_free(planrt_follow *f, void *memory);

/* --- follow_leave.c ----------------------------------------------------------------------------------------------- */

/* Brings back what later calls read, and gives memory to what they overwrite. */
planc_status rt_follow_bring_missing(planrt_follow *f);
/* Of what made room while the plan was left, the copies that could not be put back. No copy runs from them. */
void rt_follow_free_kept(planrt_follow *f);

#endif
