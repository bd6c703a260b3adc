/* Making room among blocks (blocks.h). Every place that begins or ends beside a block is a window that could be
 * cleared; those with the fewest bytes in them are tried first. What is in a window goes to a hole outside it, the
 * largest first; where there is none, room for it is made in turn, a few times deep. Where that finds no way, a hole
 * wanders from block to block and takes up the holes between them. */
#include "planner/memory/blocks.h"

#include <assert.h>
#include <string.h>

#include "util/math.h"

enum { DEPTH = 3, TRIES = 12 };

/* A place that could be cleared, and the cost of all that is in its way. */
typedef struct pl_window {
  int64_t address, cost;
} pl_window;

/* Places that are being cleared, of which nothing may be taken. */
typedef struct clearing {
  pl_blocks *blocks;
  int64_t starts[DEPTH], ends[DEPTH];
} clearing;

static int32_t first_ending_above(const pl_blocks *blocks, int64_t address);
static int64_t clear(clearing *c, int64_t bytes, int32_t depth);
static int64_t slide_best(pl_blocks *blocks, int64_t bytes);
static void sum_up(pl_blocks *blocks);
static int64_t cost_of(const clearing *c, int64_t address, int64_t bytes);
static bool empty_window(clearing *c, int32_t depth, pl_block *out_stuck);

planc_status pl_blocks_make(pl_arena *arena, int32_t most, int64_t room, pl_blocks *out) {
  *out = (pl_blocks){.room = room, .most = most};
  PLANC_TRY(PL_NEW(arena, &out->items, most));
  PLANC_TRY(PL_NEW(arena, &out->cost_before, (int64_t)most + 1));
  PLANC_TRY(PL_NEW(arena, &out->fixed_before, (int64_t)most + 1));
  PLANC_TRY(PL_NEW(arena, &out->moves, (int64_t)most * DEPTH));
  PLANC_TRY(PL_NEW(arena, &out->spare, (int64_t)most * DEPTH));
  return PL_NEW(arena, &out->windows, (2 * (int64_t)most + 1) * DEPTH);
}

void pl_blocks_put(pl_blocks *blocks, pl_block block) {
  int32_t at = first_ending_above(blocks, block.address);
  assert(blocks->n < blocks->most && pl_blocks_are_free(blocks, block.address, block.bytes));
  memmove(&blocks->items[at + 1], &blocks->items[at], (size_t)(blocks->n - at) * sizeof *blocks->items);
  blocks->items[at] = block;
  blocks->n++;
}

void pl_blocks_take(pl_blocks *blocks, int64_t address) {
  int32_t at = first_ending_above(blocks, address);
  assert(at < blocks->n && blocks->items[at].address == address);
  blocks->n--;
  memmove(&blocks->items[at], &blocks->items[at + 1], (size_t)(blocks->n - at) * sizeof *blocks->items);
}

bool pl_blocks_are_free(const pl_blocks *blocks, int64_t address, int64_t bytes) {
  int32_t at = first_ending_above(blocks, address);
  if (address < 0 || address > blocks->room - bytes) return false;
  return at == blocks->n || blocks->items[at].address >= address + bytes;
}

int64_t pl_blocks_clear(pl_blocks *blocks, int64_t bytes) {
  clearing c = {.blocks = blocks};
  int64_t free_bytes = blocks->room;
  blocks->n_moves = 0;
  for (int32_t k = 0; k < blocks->n; k++) free_bytes -= blocks->items[k].bytes;
  if (free_bytes < bytes) return PL_NO_ADDRESS;
  int64_t address = clear(&c, bytes, 0);
  return address == PL_NO_ADDRESS ? slide_best(blocks, bytes) : address;
}

bool pl_blocks_clear_at(pl_blocks *blocks, int64_t address, int64_t bytes) {
  clearing c = {.blocks = blocks, .starts[0] = address, .ends[0] = address + bytes};
  const int32_t n_before = blocks->n;
  pl_block stuck;
  blocks->n_moves = 0;
  sum_up(blocks);
  if (cost_of(&c, address, bytes) < 0) return false;
  memcpy(blocks->spare, blocks->items, (size_t)n_before * sizeof *blocks->items);
  if (empty_window(&c, 0, &stuck)) return true;
  memcpy(blocks->items, blocks->spare, (size_t)n_before * sizeof *blocks->items);
  blocks->n = n_before;
  blocks->n_moves = 0;
  return false;
}

/* The first block, by address, that ends above `address`, or how many there are. */
static int32_t first_ending_above(const pl_blocks *blocks, int64_t address) {
  int32_t low = 0, high = blocks->n;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (blocks->items[middle].address + blocks->items[middle].bytes > address)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/* --- Windows ------------------------------------------------------------------------------------------------------ */

static int32_t list_windows(const clearing *c, int64_t bytes, int32_t depth);
static const pl_window *next_window(const pl_window *windows, int32_t n, const pl_window *last);
static bool has_any_of(pl_window window, int64_t bytes, const pl_block *blocks, int32_t n);

/* Clears a window beyond those of the levels above. */
static int64_t clear(clearing *c, int64_t bytes, int32_t depth) {
  pl_blocks *blocks = c->blocks;
  pl_window *windows = &blocks->windows[(int64_t)depth * (2 * (int64_t)blocks->most + 1)];
  const pl_window *window = NULL;
  pl_block *before = &blocks->spare[(int64_t)depth * blocks->most];
  int32_t n_before = blocks->n, n_moves = blocks->n_moves, n = list_windows(c, bytes, depth);
  pl_block stuck[TRIES];
  int32_t n_stuck = 0;
  memcpy(before, blocks->items, (size_t)n_before * sizeof *before);
  while (n_stuck < TRIES && (window = next_window(windows, n, window))) {
    if (has_any_of(*window, bytes, stuck, n_stuck)) continue;
    c->starts[depth] = window->address;
    c->ends[depth] = window->address + bytes;
    if (empty_window(c, depth, &stuck[n_stuck])) return window->address;
    memcpy(blocks->items, before, (size_t)n_before * sizeof *before);
    blocks->n = n_before;
    blocks->n_moves = n_moves;
    n_stuck++;
  }
  return PL_NO_ADDRESS;
}

static bool is_cheaper(const pl_window *a, const pl_window *b) {
  return a->cost != b->cost ? a->cost < b->cost : a->address < b->address;
}

/* Few are tried, so that they are not sorted: the cheapest, or that behind the last one; NULL: there is none. */
static const pl_window *next_window(const pl_window *windows, int32_t n, const pl_window *last) {
  const pl_window *next = NULL;
  for (const pl_window *w = windows; w < windows + n; w++)
    if ((!next || is_cheaper(w, next)) && (!last || is_cheaper(last, w))) next = w;
  return next;
}

static int64_t cost_between(const clearing *c, int64_t address, int64_t bytes, int32_t depth, int32_t first,
                            int32_t end);

/* Those that begin where a block ends, or that end where one begins: so only their other ends are looked for. */
static int32_t list_windows(const clearing *c, int64_t bytes, int32_t depth) {
  pl_blocks *blocks = c->blocks;
  pl_window *windows = &blocks->windows[(int64_t)depth * (2 * (int64_t)blocks->most + 1)];
  int32_t n = 0, first = 0, end = 0;
  sum_up(blocks);
  for (int32_t k = -1; k < blocks->n; k++) {
    int64_t start = k < 0 ? 0 : blocks->items[k].address, top = k < 0 ? 0 : start + blocks->items[k].bytes;
    while (end < blocks->n && blocks->items[end].address < top + bytes) end++;
    windows[n] = (pl_window){top, cost_between(c, top, bytes, depth, k + 1, end)};
    n += windows[n].cost >= 0;
    if (start < bytes) continue;
    while (blocks->items[first].address + blocks->items[first].bytes <= start - bytes) first++;
    windows[n] = (pl_window){start - bytes, cost_between(c, start - bytes, bytes, depth, first, k)};
    n += windows[n].cost >= 0;
  }
  return n;
}

/* What it costs to empty a window of the first level; -1: a block in it is fixed, or it is not within the room. */
static int64_t cost_of(const clearing *c, int64_t address, int64_t bytes) {
  const pl_blocks *blocks = c->blocks;
  int32_t first = first_ending_above(blocks, address), end = first_ending_above(blocks, address + bytes);
  if (end < blocks->n && blocks->items[end].address < address + bytes) end++;
  return cost_between(c, address, bytes, 0, first, end);
}

/* The same at any level, where it is known that blocks from `first` to the one before `end` are in it; -1 also where a
 * level above has something of it. */
static int64_t cost_between(const clearing *c, int64_t address, int64_t bytes, int32_t depth, int32_t first,
                            int32_t end) {
  const pl_blocks *blocks = c->blocks;
  if (address < 0 || address > blocks->room - bytes) return -1;
  for (int32_t d = 0; d < depth; d++)
    if (address < c->ends[d] && address + bytes > c->starts[d]) return -1;
  if (blocks->fixed_before[end] > blocks->fixed_before[first]) return -1;
  return blocks->cost_before[end] - blocks->cost_before[first];
}

/* Sums of costs and of fixed blocks up to each block. */
static void sum_up(pl_blocks *blocks) {
  for (int32_t k = 0; k < blocks->n; k++) {
    int64_t cost = blocks->items[k].cost;
    blocks->fixed_before[k + 1] = blocks->fixed_before[k] + (cost < 0);
    blocks->cost_before[k + 1] = pl_add_saturate(blocks->cost_before[k], pl_max(cost, 0));
  }
}

/* Where a block has no place to go, a window that it is in as well would fail like this one. */
static bool has_any_of(pl_window window, int64_t bytes, const pl_block *blocks, int32_t n) {
  for (int32_t k = 0; k < n; k++)
    if (blocks[k].address < window.address + bytes && blocks[k].address + blocks[k].bytes > window.address) return true;
  return false;
}

static pl_block *next_in_the_way(const clearing *c, int32_t depth);
static int64_t place_of(const clearing *c, const pl_block *block, int32_t depth);

static bool empty_window(clearing *c, int32_t depth, pl_block *out_stuck) {
  pl_blocks *blocks = c->blocks;
  int64_t most = (int64_t)blocks->most * DEPTH;
  for (pl_block *next; (next = next_in_the_way(c, depth));) {
    pl_block moved = *next;
    int64_t to = place_of(c, &moved, depth + 1);
    next->cost = -1; /* as long as room is made for it */
    if (to < 0 && depth + 1 < DEPTH) to = clear(c, moved.bytes, depth + 1);
    if (to < 0 || blocks->n_moves == most) {
      *out_stuck = moved;
      return false;
    }
    pl_blocks_take(blocks, moved.address);
    blocks->moves[blocks->n_moves++] = (pl_block_move){moved.owner, to};
    moved.address = to;
    pl_blocks_put(blocks, moved);
  }
  return true;
}

/* The largest block that is in the way; NULL: none is. */
static pl_block *next_in_the_way(const clearing *c, int32_t depth) {
  const pl_blocks *blocks = c->blocks;
  pl_block *largest = NULL;
  for (int32_t k = first_ending_above(blocks, c->starts[depth]); k < blocks->n; k++) {
    pl_block *block = &blocks->items[k];
    if (block->address >= c->ends[depth]) break;
    if (!largest || block->bytes > largest->bytes) largest = block;
  }
  return largest;
}

/* --- Holes -------------------------------------------------------------------------------------------------------- */

typedef struct free_range {
  int64_t address, bytes;
} free_range;

/* A place in a hole. */
typedef struct hole_place {
  int64_t address, hole_bytes, until;
} hole_place;

static void cut(const clearing *c, const pl_block *block, free_range of, int32_t first, int32_t depth,
                hole_place *best);
static void compare(const pl_blocks *blocks, const pl_block *block, free_range of, hole_place *best);

/* Where a block may go that leaves its place, PL_NO_ADDRESS = nowhere: no window of a level above `depth` has anything
 * of it. */
static int64_t place_of(const clearing *c, const pl_block *block, int32_t depth) {
  const pl_blocks *blocks = c->blocks;
  hole_place best = {PL_NO_ADDRESS, 0, -1};
  int64_t start = 0;
  for (int32_t k = 0; k <= blocks->n; k++) {
    int64_t end = k < blocks->n ? blocks->items[k].address : blocks->room;
    if (end - start >= block->bytes) cut(c, block, (free_range){start, end - start}, 0, depth, &best);
    if (k < blocks->n) start = end + blocks->items[k].bytes;
  }
  return best.address;
}

/* Compares the parts of a hole that no window from `first` to the one before `depth` has anything of. */
static void cut(const clearing *c, const pl_block *block, free_range of, int32_t first, int32_t depth,
                hole_place *best) {
  for (int32_t d = first; d < depth; d++) {
    int64_t end = of.address + of.bytes;
    if (c->starts[d] >= end || c->ends[d] <= of.address) continue;
    cut(c, block, (free_range){of.address, c->starts[d] - of.address}, d + 1, depth, best);
    of = (free_range){c->ends[d], end - c->ends[d]};
  }
  if (of.bytes >= block->bytes) compare(c->blocks, block, of, best);
}

static void compare(const pl_blocks *blocks, const pl_block *block, free_range of, hole_place *best) {
  const int64_t sides[] = {of.address, of.address + of.bytes - block->bytes};
  for (int k = 0; k < 2; k++) {
    int64_t until = blocks->until ? blocks->until(blocks->user, block->owner, sides[k]) : 0;
    bool is_tighter = until == best->until && of.bytes < best->hole_bytes;
    if (until > best->until || is_tighter) *best = (hole_place){sides[k], of.bytes, until};
  }
}

/* --- Sliding ------------------------------------------------------------------------------------------------------ */

/* A hole that wanders: the block at one of its ends moves to the other, if the hole holds it, and what is free behind
 * the block is the hole's as well. */
typedef struct sliding {
  int64_t start, end;
  int32_t next; /* the block that moves next */
} sliding;

static bool slide(pl_blocks *blocks, sliding *hole, bool up, int64_t bytes, bool moves, int64_t *out_cost);

/* The hole and the way that cost least until the hole has so many bytes. */
static int64_t slide_best(pl_blocks *blocks, int64_t bytes) {
  sliding best = {0};
  bool best_up = false;
  int64_t least = INT64_MAX, cost;
  for (int32_t k = 0; k <= blocks->n; k++) {
    int64_t start = k > 0 ? blocks->items[k - 1].address + blocks->items[k - 1].bytes : 0;
    int64_t end = k < blocks->n ? blocks->items[k].address : blocks->room;
    for (int up = 0; up <= 1 && start < end; up++) {
      sliding hole = {start, end, up ? k : k - 1};
      if (!slide(blocks, &hole, up, bytes, false, &cost) || cost >= least) continue;
      least = cost;
      best = (sliding){start, end, up ? k : k - 1};
      best_up = up;
    }
  }
  if (least == INT64_MAX) return PL_NO_ADDRESS;
  slide(blocks, &best, best_up, bytes, true, &cost);
  return best.start;
}

/* False where a block in the way is too large for the hole, or fixed. Blocks keep their order. */
static bool slide(pl_blocks *blocks, sliding *hole, bool up, int64_t bytes, bool moves, int64_t *out_cost) {
  *out_cost = 0;
  for (int32_t step = up ? 1 : -1; hole->end - hole->start < bytes; hole->next += step) {
    if (hole->next < 0 || hole->next >= blocks->n) return false;
    pl_block *block = &blocks->items[hole->next];
    if (block->cost < 0 || block->bytes > hole->end - hole->start) return false;
    int64_t to = up ? hole->start : hole->end - block->bytes;
    *out_cost = pl_add_saturate(*out_cost, block->cost);
    if (up) {
      bool last = hole->next + 1 == blocks->n;
      hole->start += block->bytes;
      hole->end = last ? blocks->room : blocks->items[hole->next + 1].address;
    } else {
      const pl_block *below = hole->next > 0 ? block - 1 : NULL;
      hole->end -= block->bytes;
      hole->start = below ? below->address + below->bytes : 0;
    }
    if (!moves) continue;
    block->address = to;
    blocks->moves[blocks->n_moves++] = (pl_block_move){block->owner, to};
  }
  return true;
}
