/* Virtual memory in chunks of one size (papers: out-of-core, 4): a request gets a range of addresses of its own, to
 * which chunks of the arena are mapped in any order. What is given back stays mapped for the next request of its size.
 *
 * A plan maps all of this before its first step: every range keeps its addresses, and a chunk is mapped to as many
 * ranges as it serves, one after the other. `mapped` and `unmapped` count what an allocator that has no plan would do
 * within the step. */
#ifndef PLANC_MEMORY_CHUNKS_H
#define PLANC_MEMORY_CHUNKS_H

#include "planc/schedule.h"
#include "util/vec.h"

typedef struct pl_chunk_range {
  int64_t first, n; /* its chunks among those of all addresses */
  int32_t next;     /* among the free ranges of its size, oldest first; -1 = none */
} pl_chunk_range;

/* The free ranges of one size. */
typedef struct pl_chunk_queue {
  int32_t oldest, newest; /* -1 = none */
} pl_chunk_queue;

typedef struct pl_chunks {
  int64_t chunk_bytes;
  int64_t most; /* chunks that the arena can have; 0 = no limit */
  VEC(pl_chunk_range) ranges;
  VEC(int64_t) of;              /* by chunk of the addresses: the chunk of the arena */
  VEC(pl_chunk_queue) sizes;    /* by number of chunks */
  VEC(uint64_t) present;        /* bit n: there are free ranges of n chunks; for a pl_number_set they have no bound */
  VEC(int64_t) loose;           /* chunks that no range has, oldest first */
  int64_t n_taken;              /* of them that are in use again */
  int64_t n_chunks;             /* of the arena */
  int64_t n_used;               /* of them by ranges that are not free */
  int64_t n_mapped, n_unmapped; /* chunks, by an allocator without a plan */
} pl_chunks;

/* A zeroed `chunks` with `chunk_bytes` set, and `most` where there is a limit, is empty. */
void pl_chunks_free(pl_chunks *chunks);
int64_t pl_chunks_needed(const pl_chunks *chunks, int64_t bytes);
/* A range for `bytes`, and its address; *out_range is -1 when too few chunks are left. The arena grows where no chunk
 * is free. */
planc_status pl_chunks_take(pl_chunks *chunks, int64_t bytes, int32_t *out_range, int64_t *out_address);
planc_status pl_chunks_give(pl_chunks *chunks, int32_t range);
/* Appends how the addresses of all ranges so far are mapped. */
typedef VEC(planc_mapping) pl_mappings;
planc_status pl_chunks_map(const pl_chunks *chunks, pl_mappings *out);

#endif
