/* Chunks of several streams (stream_chunks.h). */
#include "planner/colocate/memory/stream_chunks.h"

#include <stdlib.h>

#include "planc/schedule.h"
#include "util/math.h"

planc_status pl_stream_chunks_init(pl_stream_chunks *chunks, int32_t n_streams, int64_t capacity) {
  *chunks = (pl_stream_chunks){.n_streams = n_streams};
  chunks->capacity = capacity > 0 ? capacity / PLANC_ALIGNMENT * PLANC_ALIGNMENT : 0;
  chunks->unsynced = calloc((size_t)n_streams, sizeof *chunks->unsynced);
  if (!chunks->unsynced) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  PLANC_TRY(pl_free_list_reset(&chunks->synced));
  for (int32_t s = 0; s < n_streams; s++) PLANC_TRY(pl_free_list_reset_from(&chunks->unsynced[s], chunks->capacity));
  return NULL;
}

void pl_stream_chunks_free(pl_stream_chunks *chunks) {
  for (int32_t s = 0; chunks->unsynced && s < chunks->n_streams; s++) pl_free_list_free(&chunks->unsynced[s]);
  pl_free_list_free(&chunks->synced);
  free(chunks->unsynced);
  *chunks = (pl_stream_chunks){0};
}

static int64_t whole(int64_t bytes) {
  return pl_align_up(bytes > 0 ? bytes : 1, PLANC_ALIGNMENT);
}

static planc_status take_from(const pl_stream_chunks *chunks, pl_free_list *list, int64_t bytes, int64_t *out) {
  int64_t start = pl_free_list_first(list, 0, bytes).start;
  *out = start <= chunks->capacity - bytes ? start : -1;
  return *out < 0 ? NULL : pl_free_list_take_free(list, (pl_range){start, start + bytes});
}

planc_status pl_stream_chunks_take(pl_stream_chunks *chunks, int32_t stream, int64_t bytes, int64_t *out_address,
                                   bool *out_synced) {
  *out_synced = false;
  PLANC_TRY(take_from(chunks, &chunks->unsynced[stream], whole(bytes), out_address));
  if (*out_address < 0) PLANC_TRY(take_from(chunks, &chunks->synced, whole(bytes), out_address));
  if (*out_address >= 0) return NULL;
  *out_synced = true;
  PLANC_TRY(pl_stream_chunks_sync(chunks));
  return take_from(chunks, &chunks->synced, whole(bytes), out_address);
}

planc_status pl_stream_chunks_give(pl_stream_chunks *chunks, int32_t stream, int64_t address, int64_t bytes) {
  return pl_free_list_give(&chunks->unsynced[stream], (pl_range){address, address + whole(bytes)});
}

planc_status pl_stream_chunks_sync(pl_stream_chunks *chunks) {
  for (int32_t s = 0; s < chunks->n_streams; s++) {
    pl_free_list *list = &chunks->unsynced[s];
    for (;;) {
      pl_range range = pl_free_list_first(list, 0, 1);
      if (range.start >= chunks->capacity) break;
      if (range.end > chunks->capacity) range.end = chunks->capacity;
      PLANC_TRY(pl_free_list_take_free(list, range));
      PLANC_TRY(pl_free_list_give(&chunks->synced, range));
    }
  }
  return NULL;
}
