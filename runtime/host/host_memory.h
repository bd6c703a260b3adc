/* Blocks of memory that nothing else shares a page with. */
#ifndef PLANRT_HOST_MEMORY_H
#define PLANRT_HOST_MEMORY_H

#include <stdint.h>

#include "planc/plan.h"

/* A block between two pages that cannot be touched. It ends where the second page begins, but for what the alignment of
 * its first byte leaves, so that an access beyond it faults; what is left of its own pages around it holds a pattern
 * that rt_block_check looks at. */
typedef struct rt_block {
  char *data;    /* `bytes` bytes, zeros; at a multiple of RT_ALIGNMENT where `bytes` is one */
  int64_t bytes; /* of addresses */
  char *map;     /* all of it; NULL: none */
  int64_t map_bytes;
} rt_block;

/* DEVICE when there is not that much; `what` names it in messages. */
planc_status rt_block_new(int64_t bytes, const char *what, rt_block *out);
/* The same with `bytes` in chunks that `mappings` map to a range of addresses, which `data` is the first of, one chunk
 * to any number of them. */
planc_status rt_block_map(int64_t bytes, int64_t chunk_bytes, const planc_mapping *mappings, int32_t n,
                          const char *what, rt_block *out);
void rt_block_free(rt_block *block);
/* INTERNAL when something wrote just before or behind the block. */
planc_status rt_block_check(const rt_block *block, const char *what);

#endif
