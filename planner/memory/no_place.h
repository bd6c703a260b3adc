/* Who has no place and who is in the way, in words: for a message of one sentence. All of this is done only where
 * something has failed. */
#ifndef PLANC_MEMORY_NO_PLACE_H
#define PLANC_MEMORY_NO_PLACE_H

#include "planc/trace.h"
#include "planner/memory/placement.h"

/* What takes up memory: a buffer, by its number, or the workspace of an instance. */
static inline int32_t pl_workspace_of(int32_t instance) {
  return -1 - instance;
}

typedef struct pl_occupant {
  int32_t what;
  int64_t bytes;
} pl_occupant;

enum { PL_NAMED_OCCUPANTS = 2 };

/* A moment at which something finds no place. */
typedef struct pl_no_place {
  const planc_trace *trace;
  pl_occupant unplaced;
  int32_t instance; /* that runs then, or next; -1 = none does before the period ends */
  int64_t room;     /* all bytes that there are */
  int64_t beside;   /* bytes of what is there */
  pl_occupant largest[PL_NAMED_OCCUPANTS];
  int32_t n_largest;
  int32_t gpus; /* how many have the same for themselves in a memory of all of them, where a message tells what all
                   need; 0 and 1: none is told */
} pl_no_place;

/* Counts something that is there at that moment. */
void pl_no_place_beside(pl_no_place *it, pl_occupant occupant);
/* ": conv2.y of 4096 bytes finds no place at op relu2 beside 8192 bytes, ...", malloc'ed; with several GPUs ": on each
 * of 4 GPUs conv2.y ...". */
planc_status pl_no_place_tell(const pl_no_place *it, char **out_text);

/* Items that have addresses. */
typedef struct pl_occupants {
  const planc_trace *trace;
  const pl_item *items;
  const int32_t *what; /* by item */
  int32_t n;
  const int32_t *instance_at; /* by position; as in pl_no_place */
  int32_t n_positions;        /* all spans end there or before */
  int32_t gpus;               /* as in pl_no_place */
} pl_occupants;

/* The same of items that were placed as if there were more than `room`: at the fullest moment at which one of those
 * lives that end above it. Empty where none does. */
planc_status pl_occupants_tell(const pl_occupants *occupants, int64_t room, char **out_text);

/* INTERNAL: two items that live at the same time were given the same bytes. */
planc_status pl_occupants_overlap(const pl_occupants *occupants, pl_overlap overlap);

#endif
