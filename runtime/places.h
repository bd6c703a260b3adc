/* Where in a session's device a plan's data are: the memories of each replica, and in them residencies. Range checks
 * keep a plan that nobody has checked inside them. */
#ifndef PLANRT_PLACES_H
#define PLANRT_PLACES_H

#include "runtime/session.h"

/* Where a memory of the plan is, and how many bytes its addresses range over. */
typedef struct rt_region {
  planc_memory_kind kind;
  char *data;     /* of the first replica */
  int64_t stride; /* from a replica's to the next one's */
  int64_t bytes;  /* -1: nothing lies there */
} rt_region;

/* Where a residency is, in each replica. */
typedef struct rt_place {
  int32_t buffer; /* -1: never acquired */
  int32_t memory;
  int64_t address;
} rt_place;

typedef struct rt_places {
  const planc_plan *plan;
  const planc_trace *trace;
  rt_region *regions; /* by memory */
  rt_place *places;   /* by residency */
} rt_places;

/* For a session that has its device: the residencies of the boundary and of the body. */
planc_status rt_places_make(const planrt_session *session, pl_arena *arena, rt_places *out);
/* Puts a residency elsewhere, as an acquire of the prologue does. */
planc_status rt_place_residency(rt_places *places, const planc_instr *acquire);

/* The region of a memory; NULL when there is none. */
const rt_region *rt_region_of(const rt_places *places, int32_t memory);
bool rt_is_inside(const rt_region *region, int64_t address, int64_t bytes);
/* Where a residency is; NULL when there is none. */
const rt_place *rt_place_of(const rt_places *places, int32_t residency);
planc_status rt_no_residency(int32_t residency);

/* In the memory of a replica. */
static inline char *rt_address(const rt_places *places, int32_t replica, int32_t memory, int64_t address) {
  const rt_region *in = &places->regions[memory];
  return in->data + replica * in->stride + address;
}
static inline char *rt_data_of(const rt_places *places, int32_t replica, const rt_place *at) {
  return rt_address(places, replica, at->memory, at->address);
}

#endif
