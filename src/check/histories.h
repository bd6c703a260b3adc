/* What the checker knows of every byte: who wrote it last and who has read it since.
 *
 * A residency's bytes are always accessed together: each access is to all of them, and while the residency is open no
 * other one has any of them. The first access is a write, since before it the residency holds nothing to be read. That
 * write comes after all that was done to these bytes before, and gives them one history. So every later access takes
 * the same time, however many pieces of an arena the residency consists of. A workspace is written once, in the same
 * way.
 *
 * Bytes with the same history form intervals. A first write makes one of each of its pieces and splits the intervals at
 * their ends, so it adds at most two for a piece. Hence all accesses of a plan together take time in proportion to
 * their number and to that of the pieces that are opened, but for the readers that a history keeps, at most twice as
 * many as there are streams. */
#ifndef PLANC_CHECK_HISTORIES_H
#define PLANC_CHECK_HISTORIES_H

#include <stdbool.h>

#include "check/extents.h"
#include "check/seen.h"
#include "util/number_set.h"
#include "util/vec.h"

/* An access: the epoch-th command on its stream, in file order `instr`. Streams of other replicas are numbered from the
 * plan's number of streams on. */
typedef struct pl_mark {
  int32_t instr, epoch, stream; /* stream -1: none */
} pl_mark;

typedef struct pl_history {
  pl_mark write;
  pl_mark passed;                  /* a write that was found to come after all of it, the last such */
  int32_t readers;                 /* list in pl_histories.readers; -1 = none */
  int32_t n_readers, most_readers; /* in the list; before it is thinned to the latest of each stream */
  int32_t n_intervals;             /* that have it */
  int32_t next_free;               /* where none has */
} pl_history;

typedef struct pl_read_mark {
  pl_mark mark;
  int32_t next;
} pl_read_mark;

typedef struct pl_histories {
  int32_t n_ranks;
  pl_number_set starts; /* of intervals */
  int32_t *at;          /* by start: the interval's history */
  VEC(pl_history) of;
  int32_t free_history; /* -1 = none */
  VEC(pl_read_mark) readers;
  int32_t free_readers;
  int32_t *kept; /* by stream, those of other replicas as well: -1; while a list is thinned what stays of it */
} pl_histories;

/* An access that the present one is not ordered after. */
typedef struct pl_conflict {
  bool found, with_write;
  pl_mark with;
} pl_conflict;

/* Memory that nobody has touched. */
planc_status pl_histories_make(pl_arena *arena, int32_t n_ranks, int32_t n_streams, pl_histories *out);
void pl_histories_free(pl_histories *histories);

/* Three kinds of access `mark`. Where it conflicts with an earlier one, which its stream has not seen end, *out says
 * so, and the histories stay as they were. */

/* The first write to `place`, whose extents do not overlap. *out_history is what its bytes have from now on, until
 * another first write takes some of them. */
planc_status pl_histories_write_first(pl_histories *histories, const pl_interval_place *place, pl_mark mark,
                                      const pl_seen *seen, int32_t *out_history, pl_conflict *out);
/* A further write to all bytes that have the history, none of which was taken. */
void pl_histories_write(pl_histories *histories, int32_t history, pl_mark mark, const pl_seen *seen, pl_conflict *out);
planc_status pl_histories_read(pl_histories *histories, int32_t history, pl_mark mark, const pl_seen *seen,
                               pl_conflict *out);
#endif
