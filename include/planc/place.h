/* Addresses for buffers whose lifetimes and sizes are known: dynamic storage allocation, offline. No two that live at
 * the same time overlap, and the highest end is kept low. Finding the lowest is NP-hard; what is found says how far
 * from it it can be. */
#ifndef PLANC_PLACE_H
#define PLANC_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "planc/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Lives from `lower` to before `upper`, in any unit of time. */
typedef struct planc_place_buffer {
  int64_t bytes, lower, upper;
  int64_t address; /* found: a multiple of the alignment */
} planc_place_buffer;

typedef struct planc_place_terms {
  int64_t alignment; /* 1 at least; sizes count rounded up to it, and a capacity rounded down */
  int64_t capacity;  /* how much will do; 0 = as little as is found */
  int32_t effort;    /* of the search behind what is found at once: 0 = none, to PLANC_PLACE_MOST_EFFORT */
} planc_place_terms;

/* An effort is counted in steps, ten times as many as the one below has: 3e8 at effort 1, a third of a second. A search
 * ends before where it has what it looks for or has shown that it is not there. */
enum { PLANC_PLACE_MOST_EFFORT = 3, PLANC_PLACE_EFFORT = 2 /* if nothing is said */ };

typedef struct planc_placed {
  int64_t bytes;       /* the highest end */
  int64_t least_bytes; /* no addresses end below: so much lives at a time, or a search has shown it */
  int64_t live_bytes;  /* the most that lives at a time */
  bool too_many;       /* a search was asked for, and there are more buffers than are searched */
} planc_placed;

/* Gives each buffer its address, the same ones each time; a buffer of no bytes has address 0. USAGE for terms that are
 * none; BAD_INPUT for a buffer that does not live or has negative bytes (names its index), and where all together
 * exceed 64 bits; INFEASIBLE where nothing within the capacity was found, which says whether there is anything, with
 * the least capacity known. */
planc_status planc_place(planc_place_buffer *buffers, int32_t n, const planc_place_terms *terms, planc_placed *out);

#ifdef __cplusplus
}
#endif

#endif
