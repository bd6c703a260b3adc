/* What random graphs are put together from (randgraph.h): storages cut into tiles, tensors on them, ops. The maker
 * knows which tiles are written, and lets an op read only tensors all of whose tiles are. */
#ifndef PLANC_TESTS_RANDPARTS_H
#define PLANC_TESTS_RANDPARTS_H

#include "tests/support/randgraph.h"
#include "util/vec.h"

enum { RAND_MAX_TILES = 3, RAND_MAX_OPERANDS = 12, RAND_MAX_PARAMS = 3 };

typedef struct rand_storage {
  planc_kind kind;
  planc_dtype dtype;
  planc_law tile; /* elements of each tile; the root has n_tiles times as many */
  int32_t n_tiles, root;
  int32_t tiles[RAND_MAX_TILES]; /* tensors of the tiles; the root where there is only one tile */
  uint32_t written;              /* bit per tile */
  int32_t grad;                  /* of a param: the gradient's storage, -1 if none yet */
} rand_storage;

typedef struct rand_tensor {
  int32_t storage;
  uint32_t covers; /* tiles that a write to it writes */
  uint32_t needs;  /* tiles that must be written before it is read */
} rand_tensor;

/* An op being put together. */
typedef struct rand_op {
  planc_phase phase;
  uint32_t flags;
  int32_t n_in, n_out, n_effects;
  int32_t in[RAND_MAX_OPERANDS], out[RAND_MAX_OPERANDS], effects[RAND_MAX_OPERANDS];
} rand_op;

/* What a forward op leaves for the backward pass. */
typedef struct rand_saved {
  int32_t n_data, n_params;
  int32_t data[RAND_MAX_OPERANDS];
  int32_t params[RAND_MAX_PARAMS]; /* storages */
} rand_saved;

typedef struct rand_maker {
  uint64_t random;
  randgraph_options options;
  planc_graph_builder *builder;
  int32_t n_ops, max_ops, loop_step;
  int32_t unfinished; /* a storage of which some tiles are still to be written, or -1 */
  int32_t loss;       /* tensor, or -1 */
  int32_t delta;      /* tensor: the newest gradient of an activation */
  VEC(rand_storage) storages;
  VEC(rand_tensor) tensors; /* as in the graph */
  VEC(int32_t) data;        /* tensors that forward ops read: inputs and what forward ops made */
  VEC(int32_t) deltas;      /* tensors that backward ops made */
  VEC(int32_t) params;      /* storages */
  VEC(int32_t) states;      /* storages */
  VEC(rand_saved) saved;
} rand_maker;

static inline bool rand_yes(rand_maker *m, int32_t percent) {
  return rand_chance(&m->random, percent);
}
static inline int32_t rand_index(rand_maker *m, int64_t n) {
  return (int32_t)rand_below(&m->random, n);
}

/* Adds a storage of `n_tiles` tiles of `tile` elements, with its tensors. */
planc_status rand_add_storage(rand_maker *m, planc_kind kind, planc_dtype dtype, planc_law tile, int32_t n_tiles,
                              int32_t *out);
/* Something a round makes: mostly proportional to the batch, at times with a fixed part, or a scalar. */
planc_status rand_add_made(rand_maker *m, planc_kind kind, int32_t *out_storage);
/* Something whose size does not depend on the batch. */
planc_status rand_add_fixed(rand_maker *m, planc_kind kind, int32_t *out_storage);
/* A new view inside a tile of the tensor's storage; the tensor itself where the tile is too small. */
planc_status rand_add_view(rand_maker *m, int32_t tensor, int32_t *out_view);

rand_storage *rand_storage_of(rand_maker *m, int32_t tensor);
bool rand_readable(rand_maker *m, int32_t tensor);
/* A tensor on `storage`: the whole or, at times, a tile. */
int32_t rand_whole_or_tile(rand_maker *m, int32_t storage);
/* A readable tensor of the list, more often a new one than an old one; -1 where a few tries find none. */
int32_t rand_pick(rand_maker *m, const int32_t *list, int64_t n);

/* Adds an input if the tensor can be read. */
void rand_read_from(rand_maker *m, rand_op *op, int32_t tensor);
/* Adds an output unless the op writes that storage already. */
bool rand_write_to(rand_maker *m, rand_op *op, int32_t tensor);
/* Writes over what is there, under the tensor's own name or a new one. */
planc_status rand_write_in_place(rand_maker *m, rand_op *op, int32_t tensor, int32_t *out_tensor);
/* Adds the op to the graph; what it writes is then written. */
planc_status rand_add_op(rand_maker *m, const rand_op *op);

#endif
