/* From the addresses of a plan with virtual memory to the bytes of its arena. */
#ifndef PLANC_PLAN_MAPPING_H
#define PLANC_PLAN_MAPPING_H

#include "planc/plan.h"
#include "util/arena.h"

/* INVALID_PLAN when a memory's mappings do not map whole chunks of its range to whole chunks of its arena. */
planc_status pl_mappings_check(const planc_plan *plan);
/* How many bytes the addresses of a memory range over; its mappings are right. */
int64_t pl_memory_range(const planc_plan *plan, int32_t memory);

typedef struct pl_translation {
  int64_t chunk_bytes;
  int32_t n;
  const planc_mapping *mappings;
  int64_t *starts; /* by mapping: where it begins in the range; and the range's end */
} pl_translation;

/* `mappings` is borrowed; without any, addresses are the arena's. The mappings are right. */
planc_status pl_translation_make(int64_t chunk_bytes, const planc_mapping *mappings, int32_t n, pl_arena *arena,
                                 pl_translation *out);

/* The mapping that `address` is in; there must be one. */
int32_t pl_translation_find(const pl_translation *translation, int64_t address);

/* A stretch of the arena. */
typedef struct pl_piece {
  int64_t address, bytes;
} pl_piece;

/* Where the first bytes of [address, address + bytes), which is inside the range, are: as many as are in one piece. */
pl_piece pl_translate(const pl_translation *translation, int64_t address, int64_t bytes);

#endif
