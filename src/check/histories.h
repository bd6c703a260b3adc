/* What the checker knows of every byte: who wrote it last and who has read it since.
 *
 * Memory is a sequence of intervals of equal history. An access splits intervals at its ends; a write makes everything
 * between one interval again. So each write leaves at most two intervals more than before, and all of a plan's accesses
 * together cost about as much as there are of them. */
#ifndef PLANC_CHECK_HISTORIES_H
#define PLANC_CHECK_HISTORIES_H

#include <stdbool.h>

#include "check/extents.h"
#include "util/number_set.h"
#include "util/vec.h"

/* An access: the epoch-th command on its stream, in file order `instr`. Streams of other replicas are numbered from the
 * plan's number of streams on. */
typedef struct planc_mark {
  int32_t instr, epoch, stream; /* stream -1: none */
} planc_mark;

typedef struct planc_history {
  planc_mark write;
  int32_t readers; /* list in memory->readers, at most one per stream; -1 = none */
} planc_history;

typedef struct planc_reader {
  planc_mark mark;
  int32_t next;
} planc_reader;

typedef struct planc_histories {
  int32_t n_ranks;
  planc_number_set starts;  /* of intervals */
  planc_history *histories; /* by start */
  VEC(planc_reader) readers;
  int32_t free_readers;
} planc_histories;

/* An access that the present one is not ordered after. */
typedef struct planc_conflict {
  bool found, with_write;
  planc_mark with;
} planc_conflict;

/* Memory that nobody has touched. */
planc_status planc_histories_make(planc_arena *arena, int32_t n_ranks, planc_histories *out);
void planc_histories_free(planc_histories *memory);
/* An access to `extent` by `mark`, whose stream has seen the streams' epochs up to clock[stream]. Where it conflicts
 * with an earlier one *out says so, and the memory stays as it was. */
planc_status planc_histories_read(planc_histories *memory, planc_extent extent, planc_mark mark, const int32_t *clock,
                                  planc_conflict *out);
planc_status planc_histories_write(planc_histories *memory, planc_extent extent, planc_mark mark, const int32_t *clock,
                                   planc_conflict *out);
#endif
