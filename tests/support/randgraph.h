/* Random numbers and random valid graphs for the tests. The same seed gives the same graph on every machine.
 *
 * A graph runs forward, then backward over what the forward ops made, newest first, then an optimizer. Its ops are of
 * types that planc does not know ("rand.*"); they do what an op can do to storages: branch and join, write in place
 * under the same or a second name, read and write views at offsets, share parameters, make gradients in one or many
 * steps, update running statistics, make what nobody reads. Whatever an op reads, all its bytes were written before,
 * and so were all bytes of what leaves and of gradients; and every graph can be cut into rounds unless an option says
 * otherwise. */
#ifndef PLANC_TESTS_RANDGRAPH_H
#define PLANC_TESTS_RANDGRAPH_H

#include "planc/graph.h"

/* splitmix64: the state may start anywhere. */
static inline uint64_t rand_next(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
/* 0 .. n-1; 0 where n is not positive. */
static inline int64_t rand_below(uint64_t *state, int64_t n) {
  return n > 0 ? (int64_t)(rand_next(state) % (uint64_t)n) : 0;
}
/* True in `percent` of 100 cases. */
static inline bool rand_chance(uint64_t *state, int32_t percent) {
  return rand_below(state, 100) < percent;
}

/* All zero: up to 40 ops of small tensors that train. */
typedef struct randgraph_options {
  int32_t max_ops;          /* 0 = 40; the number of ops is random */
  int32_t max_elements;     /* of a tensor per sample; 0 = 64 */
  bool inference;           /* forward ops only */
  bool allow_batch_coupled; /* some graphs then are */
  bool whole;               /* the first write of every storage is of all its bytes */
  int32_t once_percent;     /* of the forward ops may not run again */
  bool unsplittable;        /* an optimizer op may read what a round made: more than one round is then BAD_INPUT */
} randgraph_options;

/* `options` may be NULL: all zero. */
planc_status randgraph_make(uint64_t seed, const randgraph_options *options, planc_graph **out);

#endif
