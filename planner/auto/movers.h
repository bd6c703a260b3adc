/* What moves in a rehearsal (rehearsal.h): buffers of which a gap is not spent as at rest, and what users or other
 * replicas feed. The others rest: when they are on the device is the same whatever is decided. Their bytes are added up
 * by position, and a rehearsal goes through the positions alone at which what moves is used, which are few. */
#ifndef PLANC_AUTO_MOVERS_H
#define PLANC_AUTO_MOVERS_H

#include "planner/auto/rehearsal_tables.h"
#include "util/number_set.h"

/* A use of a buffer. */
typedef struct pl_mover_use {
  int32_t buffer, read, write; /* versions, -1 = none */
} pl_mover_use;

/* A buffer goes behind its last use, unless a tail stays. */
typedef struct pl_mover_death {
  int32_t buffer;
  int32_t version; /* its last one's number among all */
} pl_mover_death;

typedef struct pl_movers {
  const pl_auto_gaps *gaps; /* borrowed, as the next two, which are of pl_rehearsal_tables */
  const int64_t *bytes;
  const bool *leaves;
  /* By position and one more, of all buffers: their uses, those of them that leave behind it until they are written
   * next, and those that are used there last and do not persist. */
  int32_t *first_use, *first_leaving, *first_death;
  int32_t *leaving; /* a buffer for each such use */
  pl_mover_death *deaths;
  pl_mover_use *uses;
  uint8_t *at_rest;   /* by gap: its way if its buffer rests */
  uint8_t *ways;      /* by gap: as they were set last */
  pl_number_set away; /* gaps, but tails, that are not spent on the device */
  int32_t *n_away;    /* by buffer: gaps that are not spent as at rest, and one more where it is fed */
  bool *moves;        /* by buffer */
  int32_t *buffers;   /* that move, in any order */
  int32_t *place;     /* by buffer that moves: where it is among these */
  int32_t n_buffers;
  int32_t *n_uses;    /* by position: uses of buffers that move, */
  pl_number_set busy; /* and positions with some */
  /* Of the others, bytes: on the device when a period begins; by position, that come with its op and that go behind
   * it. */
  int64_t at_first, *come, *go;
} pl_movers;

/* In memory of `arena`; borrows both. Nothing moves yet but what is fed. */
planc_status pl_movers_new(const pl_auto_gaps *gaps, const pl_rehearsal_tables *tables, pl_arena *arena,
                           pl_movers *out);
/* Has that move, and nothing else, which does with these ways by gap. What has not changed since the last ways takes no
 * time. */
void pl_movers_set(pl_movers *m, const uint8_t *ways);
/* The version of a buffer that rests which is on the device ahead of a position, -1 = none. */
int32_t pl_movers_resting(const pl_movers *m, int32_t buffer, int32_t position);

#endif
