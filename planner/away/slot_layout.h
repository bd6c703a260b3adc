/* Slots for contents, and their places. A content has one slot for as long as it lives, in the memory that it is kept
 * in. One of the host that is kept in storage has one more, on the host, for each time that it is there. */
#ifndef PLANC_AWAY_SLOT_LAYOUT_H
#define PLANC_AWAY_SLOT_LAYOUT_H

#include "planner/away/contents.h"

/* The slots that contents had when the layout was made, with the items that are placed for them. */
typedef struct pl_slot_layout {
  pl_slot *slots;
  pl_slot_copy *copies;
  pl_sides *of_command;
  int32_t *item_of;                /* by slot */
  pl_item *items[PL_MAX_MEMORIES]; /* of each memory but the device's and the user's */
  int32_t n_items[PL_MAX_MEMORIES];
  bool tight; /* a slot may be written again once what is copied from it has been stated; else
                 not before that copy has ended for sure, so that nothing waits for it */
  int32_t n, n_copies;
  int64_t host_bytes; /* that they take; at least, where that is more than they may */
} pl_slot_layout;

typedef struct pl_slot_maker {
  const planc_schedule *schedule;
  const pl_memories *memories;
  pl_contents contents;
  int32_t host; /* its memory */
  int32_t n_commands;
  int64_t most;             /* slots and copies that there can be */
  pl_slot_layout *out;      /* that is made */
  int32_t *item_of_content; /* -1: it has none yet */
} pl_slot_maker;

/* For layouts of a schedule's contents, of which nothing is stored yet. Everything is allocated in `arena`. */
planc_status pl_slot_maker_make(pl_arena *arena, const planc_schedule *schedule, const pl_memories *memories,
                                pl_slot_maker *out);
/* Makes room for a layout. */
planc_status pl_slot_layout_new(pl_arena *arena, const pl_slot_maker *maker, pl_slot_layout *out);
/* Makes slots of what the contents say now, and places none. */
void pl_slot_layout_make(pl_slot_maker *maker, pl_slot_layout *out);
/* Places those on the host, which are of use only where they take at most `room`. */
planc_status pl_slot_layout_place(const pl_slot_maker *maker, pl_slot_layout *layout, int64_t room);
/* The slots of a layout that is placed on the host: places those beyond. */
planc_status pl_slot_layout_finish(const pl_slot_maker *maker, const pl_slot_layout *layout, pl_slots *out);

#endif
