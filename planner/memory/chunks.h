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

typedef struct planc_chunk_range {
  int64_t first, n; /* its chunks among those of all addresses */
  int32_t next;     /* among the free ranges of its size, oldest first; -1 = none */
} planc_chunk_range;

typedef struct planc_free_ranges {
  int32_t oldest, newest; /* -1 = none */
} planc_free_ranges;

typedef struct planc_chunks {
  int64_t chunk_bytes;
  int64_t most; /* chunks that the arena can have; 0 = no limit */
  VEC(planc_chunk_range) ranges;
  VEC(int64_t) of;              /* by chunk of the addresses: the chunk of the arena */
  VEC(planc_free_ranges) sizes; /* by number of chunks */
  VEC(uint64_t) present;        /* bit n: there are free ranges of n chunks */
  VEC(int64_t) loose;           /* chunks that no range has, oldest first */
  int64_t n_taken;              /* of them that are in use again */
  int64_t n_chunks;             /* of the arena */
  int64_t n_used;               /* of them by ranges that are not free */
  int64_t n_mapped, n_unmapped; /* chunks, by an allocator without a plan */
} planc_chunks;

/* A zeroed `chunks` with `chunk_bytes` set, and `most` where there is a limit, is empty. */
void planc_chunks_free(planc_chunks *chunks);
int64_t planc_chunks_needed(const planc_chunks *chunks, int64_t bytes);
/* A range for `bytes`, and its address; *out_range is -1 when too few chunks are left. The arena grows where no chunk
 * is free. */
planc_status planc_chunks_take(planc_chunks *chunks, int64_t bytes, int32_t *out_range, int64_t *out_address);
planc_status planc_chunks_give(planc_chunks *chunks, int32_t range);
/* Appends how the addresses of all ranges so far are mapped. */
typedef VEC(planc_mapping) planc_mappings;
planc_status planc_chunks_map(const planc_chunks *chunks, planc_mappings *out);

#endif
