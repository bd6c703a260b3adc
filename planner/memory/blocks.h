/* What lies in a memory at one moment, and how room is made in it: by moving what is in the way to other places, as
 * cheaply as a short search finds. Sizes and addresses are multiples of PLANC_ALIGNMENT. */
#ifndef PLANC_MEMORY_BLOCKS_H
#define PLANC_MEMORY_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "util/arena.h"

typedef struct pl_block {
  int64_t address, bytes;
  int32_t owner; /* the caller's number */
  int64_t cost;  /* of moving it, in bytes; below 0: it cannot be moved */
} pl_block;

/* A block leaves its place for another one, which is free by then and does not overlap the one that it leaves. */
typedef struct pl_block_move {
  int32_t owner;
  int64_t to;
} pl_block_move;

/* For how long a block may lie at an address until it is in the way there, as the caller counts. */
typedef int64_t (*pl_block_until)(const void *user, int32_t owner, int64_t address);

typedef struct pl_blocks {
  int64_t room; /* no block ends above it */
  int32_t n, most;
  pl_block *items;      /* by address */
  pl_block_move *moves; /* of the last pl_blocks_clear or pl_blocks_clear_at */
  int32_t n_moves;
  pl_block *spare;      /* of that, by depth */
  int64_t *cost_before; /* by block: of all below it */
  int32_t *fixed_before;
  struct pl_window *windows;
  pl_block_until until; /* the caller's, NULL at first: what moves into a hole goes where that is longest, and of holes
                           that are alike into the tightest */
  const void *user;
} pl_blocks;

enum { PL_NO_ADDRESS = -1 };

/* Holds up to `most` blocks, and is empty. Everything is in `arena`. */
planc_status pl_blocks_make(pl_arena *arena, int32_t most, int64_t room, pl_blocks *out);
/* The place is free. */
void pl_blocks_put(pl_blocks *blocks, pl_block block);
/* Takes out the block that begins at an address. */
void pl_blocks_take(pl_blocks *blocks, int64_t address);

bool pl_blocks_are_free(const pl_blocks *blocks, int64_t address, int64_t bytes);
/* Moves blocks so that `bytes` are free from the address that it gives, and says in `moves` which, in their order;
 * PL_NO_ADDRESS: it has found no way, and all is as it was. */
int64_t pl_blocks_clear(pl_blocks *blocks, int64_t bytes);
/* The same for `bytes` from an address on; whether it has found a way. */
bool pl_blocks_clear_at(pl_blocks *blocks, int64_t address, int64_t bytes);

#endif
