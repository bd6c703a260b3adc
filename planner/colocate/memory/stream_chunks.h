/* Waterwave's allocator (papers/003, 4.2): memory that work in several streams takes and gives back in the order in
 * which it is scheduled. For who takes, what is free is of three kinds. What was given back in the same stream is used
 * first. What is synchronised any stream may have. For what was given back in other streams since the last
 * synchronisation, the streams are synchronised. Free chunks of one kind that lie behind each other become one; those
 * of different kinds only when the streams are synchronised.
 *
 * A chunk is filed under the stream that used it last. The paper files it under the one that took it, where a job whose
 * groups change streams would find it too early (papers/NOTES, 31). */
#ifndef PLANC_COLOCATE_STREAM_CHUNKS_H
#define PLANC_COLOCATE_STREAM_CHUNKS_H

#include "planner/memory/free_list.h"

typedef struct pl_stream_chunks {
  int64_t capacity;
  pl_free_list synced;
  int32_t n_streams;
  pl_free_list *unsynced; /* by stream */
} pl_stream_chunks;

/* Addresses 0, ..., capacity - 1, synchronised. Freed with pl_stream_chunks_free, also after a failure. */
planc_status pl_stream_chunks_init(pl_stream_chunks *chunks, int32_t n_streams, int64_t capacity);
void pl_stream_chunks_free(pl_stream_chunks *chunks);

/* The lowest place of the first kind that has one; -1 where none has. *out_synced says whether the streams had to be
 * synchronised. */
planc_status pl_stream_chunks_take(pl_stream_chunks *chunks, int32_t stream, int64_t bytes, int64_t *out_address,
                                   bool *out_synced);
/* `stream` is the one that used it last. */
planc_status pl_stream_chunks_give(pl_stream_chunks *chunks, int32_t stream, int64_t address, int64_t bytes);
/* All streams have waited for each other. */
planc_status pl_stream_chunks_sync(pl_stream_chunks *chunks);

#endif
