/* What the checker knows of every byte: who wrote it last and who has read it since.
 *
 * Bytes that have the same history form an interval. An access splits the intervals at its ends. A write gives all
 * bytes between its ends the same history, so they become one interval. Hence a write adds at most two intervals, and
 * all accesses of a plan together take time in proportion to their number, but for the readers that an interval keeps
 * when it is split, at most twice as many as there are streams. */
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
  int32_t readers;                 /* list in pl_histories.readers; -1 = none */
  int32_t n_readers, most_readers; /* in the list; before it is thinned to the latest of each stream */
} pl_history;

typedef struct pl_read_mark {
  pl_mark mark;
  int32_t next;
} pl_read_mark;

typedef struct pl_histories {
  int32_t n_ranks;
  pl_number_set starts; /* of intervals */
  pl_history *of;       /* by start */
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
/* The access `mark` to `extent`. Where it conflicts with an earlier one, which its stream has not seen end, *out says
 * so, and the histories stay as they were. */
planc_status pl_histories_read(pl_histories *histories, pl_extent extent, pl_mark mark, const pl_seen *seen,
                               pl_conflict *out);
planc_status pl_histories_write(pl_histories *histories, pl_extent extent, pl_mark mark, const pl_seen *seen,
                                pl_conflict *out);
#endif
