/* What a choice of ways does to memory, found without a schedule: the walk of absences.h, gone through with sizes
 * alone. Every version leaves right behind its last use ahead of a gap and is back right when it is needed, and what a
 * tail keeps goes behind the op that it may last be of use to, so that the walk has no fewer bytes with these ways. */
#ifndef PLANC_AUTO_REHEARSAL_H
#define PLANC_AUTO_REHEARSAL_H

#include "planner/auto/auto_wants.h"
#include "planner/auto/movers.h"
#include "planner/choose/restores.h"

/* What runs again ahead of a position, as far as its memory goes. */
typedef struct pl_rehearsed_run {
  int64_t workspace;
  int32_t n_stones;      /* that are open when it runs, or were */
  int32_t first_closing; /* the stone that goes behind it, -1 = none */
} pl_rehearsed_run;

typedef struct pl_rehearsed_stone {
  pl_stone is;
  bool is_ahead;        /* it comes from the host for a gap, which it does ahead of all that runs again */
  int32_t also_closing; /* the next one that goes behind the same run, -1 = none */
} pl_rehearsed_stone;

typedef struct pl_rehearsal {
  const pl_auto_gaps *gaps; /* borrowed */
  const uint8_t *ways;      /* borrowed while it walks: by gap */
  bool has_tails;           /* else none of them stays, whatever its way */
  int64_t limit; /* the bytes that there may be, but for an op that takes more by itself. Algorithms are chosen by it:
                    the fastest whose workspace finds room, else that with the least */
  pl_rehearsal_tables tables;
  pl_movers movers;
  pl_auto_wants wants; /* found for these ways: until when a tail that stays does */
  /* What it finds. By position: the most bytes while it runs, with a workspace; how long its op takes, and what runs
   * again ahead of it. */
  int64_t *held, *op_ns, *again_ns;
  /* By gap: the position ahead of which the host's copy is needed on the device, -1 = never; whether the version is
   * copied out at its beginning, and since what position it has been on the device then. */
  int32_t *need, *since;
  int32_t *back; /* by gap: the position ahead of which its writer has run again, -1 = it has not */
  bool *sends;
  bool *apart;        /* by gap: its writer has run again for another op, and it did not stay */
  int64_t host_bytes; /* the most that the host has at a time, at most */
  bool works;         /* whatever is read can be had */
  /* The state of the walk; of buffers only those that move. */
  int32_t position;
  int64_t live, on_host_now;
  bool *on_host;                   /* by version */
  int32_t *resident;               /* by buffer: the version that is held, -1 = none */
  int32_t *opened;                 /* by buffer: the position at which it came */
  int32_t *next;                   /* by buffer: its next use */
  int32_t *stone_of;               /* by buffer: the one that was opened last, -1 = none */
  pl_rehearsed_stone *stones;      /* what recomputes for this position open */
  pl_rehearsed_run *runs;          /* and what these are */
  int64_t *workspace;              /* by position, of its op */
  int32_t *stack;                  /* instances that are to run again; -1 - i: those whose inputs have been asked for */
  int32_t *first_late, *also_late; /* by position, by buffer: tails that end there, -1 = none; */
  pl_number_set late;              /* and positions with some */
  int32_t n_stones, n_runs, depth;
  int32_t *chosen; /* positions of ops with several algorithms */
  int32_t n_chosen;
  int64_t steps; /* of all walks: pl_rehearsal_work of each, and what recomputes went through in addition */
  int64_t work;  /* of the last one: accesses that it went through. All others are passed, which takes a part of that */
} pl_rehearsal;

/* In memory of `arena`; borrows `gaps`. */
planc_status pl_rehearsal_new(const pl_auto_gaps *gaps, pl_arena *arena, pl_rehearsal *out);
/* `ways` is by gap, of those that are open. */
void pl_rehearse(pl_rehearsal *r, const uint8_t *ways);
/* The position behind which a buffer that is used goes for good. */
int32_t pl_rehearsal_until(const pl_rehearsal *r, int32_t buffer);
/* Whether what runs again reads what a tail may keep, behind its beginning. */
bool pl_rehearsal_wants(const pl_rehearsal *r, int32_t tail);
/* How many bytes a position that holds so many has beyond what there may be; less than 0: it has room for so many. */
static inline int64_t pl_rehearsal_excess(const pl_rehearsal *r, int64_t held, int32_t position) {
  int64_t alone = r->gaps->alone[position];
  return held - (alone > r->limit ? alone : r->limit);
}
static inline int64_t pl_rehearsal_beyond(const pl_rehearsal *r, int32_t position) {
  return pl_rehearsal_excess(r, r->held[position], position);
}
/* Of a walk that is rehearsed, at most but for recomputes: all accesses, gaps and positions. */
int64_t pl_rehearsal_work(const pl_rehearsal *r);

#endif
