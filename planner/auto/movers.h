/* What moves in a rehearsal (rehearsal.h): buffers that are away in ways that were rehearsed, all that are as large as
 * one of these, and what users or other replicas feed. The others rest: when they are on the device is the same
 * whatever is decided. Their bytes are added up once, by position, and a rehearsal goes through the uses of what moves
 * alone. */
#ifndef PLANC_AUTO_MOVERS_H
#define PLANC_AUTO_MOVERS_H

#include "planner/auto/rehearsal_tables.h"

/* A use of a buffer that moves. */
typedef struct pl_mover_use {
  int32_t buffer, read, write; /* versions, -1 = none */
} pl_mover_use;

/* A buffer that moves goes behind its last use, unless a tail stays. */
typedef struct pl_mover_death {
  int32_t buffer;
  int32_t version; /* its last one's number among all */
} pl_mover_death;

typedef struct pl_movers {
  const pl_auto_gaps *gaps; /* borrowed, as the next two, which are of pl_rehearsal_tables */
  const int64_t *bytes;
  const bool *leaves;
  int64_t least;    /* buffers with a gap of so many bytes or more move */
  uint8_t *at_rest; /* by gap: its way if its buffer rests */
  uint8_t *rests;   /* by gap: whether its buffer does: 0 or 0xFF */
  bool *moves;      /* by buffer */
  int32_t *buffers; /* that move */
  int32_t n_buffers;
  /* By position and one more: gaps of these that begin there, their uses, those of them that leave behind it until they
   * are written next, and those that are used there last and do not persist. */
  int32_t *first_gap, *first_use, *first_leaving, *first_death;
  int32_t *of_gaps;
  int32_t *leaving; /* a buffer for each such use */
  pl_mover_death *deaths;
  pl_mover_use *uses;
  int32_t n_gaps;
  /* Of the others, bytes: on the device when a period begins; by position, that come with its op and that go behind
   * it. */
  int64_t at_first, *come, *go;
} pl_movers;

/* In memory of `arena`; borrows both. Nothing moves yet but what is fed. */
planc_status pl_movers_new(const pl_auto_gaps *gaps, const pl_rehearsal_tables *tables, pl_arena *arena,
                           pl_movers *out);
/* Has what is away in these ways move, too. */
void pl_movers_widen(pl_movers *m, const uint8_t *ways);
/* The version of a buffer that rests which is on the device ahead of a position, -1 = none. */
int32_t pl_movers_resting(const pl_movers *m, int32_t buffer, int32_t position);

#endif
