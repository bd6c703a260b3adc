/* Ranks of treap nodes: pseudo-random (xorshift) from a fixed seed, so that a tree's shape, and nothing else, depends
 * on them. */
#ifndef PLANC_MEMORY_TREAP_RANK_H
#define PLANC_MEMORY_TREAP_RANK_H

#include <stdint.h>

#define PL_RANK_SEED UINT32_C(0x9e3779b9)

static inline uint32_t pl_next_rank(uint32_t *seed) {
  *seed ^= *seed << 13;
  *seed ^= *seed >> 17;
  *seed ^= *seed << 5;
  return *seed;
}

#endif
