/* From the addresses of a plan with virtual memory to the bytes of its arena. */
#ifndef PLANC_PLAN_MAPPING_H
#define PLANC_PLAN_MAPPING_H

#include "planc/plan.h"
#include "util/arena.h"

/* INVALID_PLAN when a memory's mappings do not map whole chunks of its range to whole chunks of its arena. */
planc_status planc_mappings_check(const planc_plan *plan);
/* How many bytes the addresses of a memory range over; its mappings are right. */
int64_t planc_memory_range(const planc_plan *plan, int32_t memory);

typedef struct planc_translation {
  int64_t chunk_bytes;
  int32_t n;
  const planc_mapping *mappings;
  int64_t *starts; /* by mapping: where it begins in the range; and the range's end */
} planc_translation;

/* `mappings` is borrowed; without any, addresses are the arena's. The mappings are right. */
planc_status planc_translation_make(int64_t chunk_bytes, const planc_mapping *mappings, int32_t n, planc_arena *arena,
                                    planc_translation *out);

/* The mapping that `address` is in; there must be one. */
int32_t planc_translation_find(const planc_translation *translation, int64_t address);

/* A stretch of the arena. */
typedef struct planc_piece {
  int64_t address, bytes;
} planc_piece;

/* Where the first bytes of [address, address + bytes), which is inside the range, are: as many as are in one piece. */
planc_piece planc_translate(const planc_translation *translation, int64_t address, int64_t bytes);

#endif
