/* Where in a session's device a plan's data are: the memories of each replica, and in them residencies. Range checks
 * keep a plan that nobody has checked inside them. */
#ifndef PLANRT_PLACES_H
#define PLANRT_PLACES_H

#include "runtime/session.h"

/* Where a memory of the plan is, and how many bytes its addresses range over. */
typedef struct planrt_region {
  planc_memory_kind kind;
  char *data;     /* of the first replica */
  int64_t stride; /* from a replica's to the next one's */
  int64_t bytes;  /* -1: nothing lies there */
} planrt_region;

/* Where a residency is, in each replica. */
typedef struct planrt_place {
  int32_t buffer; /* -1: never acquired */
  int32_t memory;
  int64_t address;
} planrt_place;

typedef struct planrt_places {
  const planc_plan *plan;
  const planc_trace *trace;
  planrt_region *regions; /* by memory */
  planrt_place *places;   /* by residency */
} planrt_places;

/* For a session that has its device: the residencies of the boundary and of the body. */
planc_status planrt_places_make(const planrt_session *session, planc_arena *arena, planrt_places *out);
/* Puts a residency elsewhere, as an acquire of the prologue does. */
planc_status planrt_place_residency(planrt_places *places, const planc_instr *acquire);

/* The region of a memory; NULL when there is none. */
const planrt_region *planrt_region_of(const planrt_places *places, int32_t memory);
bool planrt_is_inside(const planrt_region *region, int64_t address, int64_t bytes);
/* Where a residency is; NULL when there is none. */
const planrt_place *planrt_place_of(const planrt_places *places, int32_t residency);
planc_status planrt_no_residency(int32_t residency);

/* In the memory of a replica. */
static inline char *planrt_address(const planrt_places *places, int32_t replica, int32_t memory, int64_t address) {
  const planrt_region *in = &places->regions[memory];
  return in->data + replica * in->stride + address;
}
static inline char *planrt_data_of(const planrt_places *places, int32_t replica, const planrt_place *at) {
  return planrt_address(places, replica, at->memory, at->address);
}

#endif
