/* What the checker knows of every byte: who wrote it last, who has read it since, and, on the host, what it holds.
 *
 * Memory is a sequence of intervals of equal history. An access splits intervals at its ends; a write makes everything
 * between one interval again. So each write leaves at most two intervals more than before, and all of a plan's accesses
 * together cost about as much as there are of them. */
#ifndef PLANC_CHECK_MEMORY_H
#define PLANC_CHECK_MEMORY_H

#include <stdbool.h>

#include "check/extents.h"
#include "check/rank_set.h"
#include "util/vec.h"

/* An access: the epoch-th command on its stream, in file order `instr`. */
typedef struct planc_mark {
  int32_t instr, epoch, stream; /* stream -1: none */
} planc_mark;

/* What a copy left in host memory. */
typedef struct planc_content {
  int32_t buffer, version, body;
} planc_content;

typedef struct planc_history {
  planc_mark write;
  int32_t readers; /* list in memory->readers, at most one per stream; -1 = none */
  planc_content content;
} planc_history;

typedef struct planc_reader {
  planc_mark mark;
  int32_t next;
} planc_reader;

typedef struct planc_memory {
  int32_t n_ranks;
  planc_rank_set starts;    /* of intervals */
  planc_history *histories; /* by start */
  VEC(planc_reader) readers;
  int32_t free_readers;
} planc_memory;

/* An access that the present one is not ordered after. */
typedef struct planc_conflict {
  bool found, with_write;
  planc_mark with;
} planc_conflict;

/* Memory that nobody has touched. */
planc_status planc_memory_make(planc_arena *arena, int32_t n_ranks, planc_memory *out);
void planc_memory_free(planc_memory *memory);
/* An access to `extent` by `mark`, whose stream has seen the streams' epochs up to clock[stream]. Where it conflicts
 * with an earlier one *out says so, and the memory stays as it was. */
planc_status planc_memory_read(planc_memory *memory, planc_extent extent, planc_mark mark, const int32_t *clock,
                               planc_conflict *out);
planc_status planc_memory_write(planc_memory *memory, planc_extent extent, planc_mark mark, const int32_t *clock,
                                planc_conflict *out);
/* States what was written to `extent` just now. */
void planc_memory_fill(planc_memory *memory, planc_extent extent, planc_content content);
/* What `extent` holds; NULL when it was not written as a whole. */
const planc_content *planc_memory_content(const planc_memory *memory, planc_extent extent);

#endif
