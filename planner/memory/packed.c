/* Items that packing has placed (packed.h). */
#include "planner/memory/packed.h"

#include <assert.h>
#include <string.h>

#include "planc/schedule.h"
#include "util/math.h"

enum { MOST_OF_BLOCK = 64, HALF_OF_BLOCK = MOST_OF_BLOCK / 2 };

/* When items live, as two arrays: from the first step to behind the last one. */
typedef struct spans {
  int16_t from[MOST_OF_BLOCK], until[MOST_OF_BLOCK];
} spans;

/* Items by address. Each field has an array of its own, as only times are read of most items. Times are empty behind
 * the last item, and where an item has no second span. */
struct pl_packed_block {
  int32_t n;
  bool has_second; /* some item has two spans */
  spans spans[2];
  int64_t start[MOST_OF_BLOCK], end[MOST_OF_BLOCK]; /* addresses */
};

/* Meets none. */
static const pl_steps no_span = {INT16_MAX, INT16_MIN};

static planc_status count_steps(pl_arena *arena, const pl_item *items, int32_t n, int32_t horizon, pl_packed *out);
static void empty_behind(pl_packed_block *block, int32_t n);
static void set_span(spans *of, int32_t k, pl_steps span);

planc_status pl_packed_make(pl_arena *arena, const pl_item *items, int32_t n, int32_t horizon, int32_t most,
                            pl_packed *out) {
  int32_t n_blocks = most / HALF_OF_BLOCK + 1; /* a block that is full is cut in two halves */
  pl_packed_block *blocks;
  *out = (pl_packed){.items = items};
  PLANC_TRY(count_steps(arena, items, n, horizon, out));
  PLANC_TRY(PL_NEW(arena, &blocks, n_blocks));
  PLANC_TRY(PL_NEW(arena, &out->blocks, n_blocks));
  for (int32_t b = 0; b < n_blocks; b++) out->blocks[b] = &blocks[b];
  out->n_blocks = 1;
  empty_behind(out->blocks[0], 0);
  return NULL;
}

void pl_packed_copy(pl_packed *to, const pl_packed *from) {
  to->n_blocks = from->n_blocks;
  for (int32_t b = 0; b < from->n_blocks; b++) *to->blocks[b] = *from->blocks[b];
}

static void empty_behind(pl_packed_block *block, int32_t n) {
  block->n = n;
  block->has_second &= n > 0;
  for (int32_t k = n; k < MOST_OF_BLOCK; k++) {
    for (int32_t i = 0; i < PL_SPANS; i++) set_span(&block->spans[i], k, no_span);
  }
}

static void set_span(spans *of, int32_t k, pl_steps span) {
  of->from[k] = span.start;
  of->until[k] = span.end;
}

/* --- Steps -------------------------------------------------------------------------------------------------------- */

/* before[p]: how many steps begin ahead of p. An item with an address may begin and end within steps, and has all of
 * these; or behind the last one, where it meets nothing. */
static pl_steps steps_of(const int32_t *before, pl_lifetime span) {
  if (pl_lifetime_is_empty(span)) return no_span;
  return (pl_steps){(int16_t)(before[span.start + 1] - 1), (int16_t)pl_min(before[span.end], INT16_MAX)};
}

static planc_status count_steps(pl_arena *arena, const pl_item *items, int32_t n, int32_t horizon, pl_packed *out) {
  _Static_assert(4 * PL_MOST_PACKED - 1 <= INT16_MAX,
                 "each item may begin and end twice; the last step begins no item");
  int32_t *before;
  pl_packed_life *lives;
  PLANC_TRY(PL_NEW(arena, &before, (int64_t)horizon + 2));
  PLANC_TRY(PL_NEW(arena, &lives, n));
  for (int32_t i = 0; i < n; i++) {
    for (int32_t k = 0; k < 2; k++) {
      if (items[i].address != PLANC_BLANK || pl_lifetime_is_empty(items[i].spans[k])) continue;
      before[items[i].spans[k].start + 1] = 1;
      before[items[i].spans[k].end + 1] = 1;
    }
  }
  for (int32_t p = 0; p <= horizon; p++) before[p + 1] += before[p];
  for (int32_t i = 0; i < n; i++)
    for (int32_t k = 0; k < 2; k++) lives[i].spans[k] = steps_of(before, items[i].spans[k]);
  out->lives = lives;
  return NULL;
}

/* --- Finding an address ------------------------------------------------------------------------------------------- */

static uint64_t find_meeting(const pl_packed_block *block, const pl_steps *own, int32_t n_own);

static bool is_empty(pl_steps span) {
  return span.start >= span.end;
}

int64_t pl_packed_find(const pl_packed *packed, int32_t item, bool tightest, int64_t *visits) {
  const int64_t needed = packed->items[item].bytes;
  int64_t address = 0, found = PLANC_BLANK, found_bytes = INT64_MAX;
  pl_steps own[2] = {no_span, no_span};
  int32_t n_own = 0;
  for (int32_t i = 0; i < PL_SPANS; i++)
    if (!is_empty(packed->lives[item].spans[i])) own[n_own++] = packed->lives[item].spans[i];
  for (int32_t b = 0; b < packed->n_blocks; b++) {
    const pl_packed_block *block = packed->blocks[b];
    for (uint64_t meeting = find_meeting(block, own, n_own); meeting; meeting &= meeting - 1) {
      int32_t k = __builtin_ctzll(meeting);
      int64_t bytes = block->start[k] - address;
      if (bytes >= needed && bytes < found_bytes) {
        found = address;
        found_bytes = bytes;
        if (!tightest) {
          *visits += k;
          return found;
        }
      }
      if (block->end[k] > address) address = block->end[k];
    }
    *visits += block->n;
  }
  return found == PLANC_BLANK ? address : found;
}

static uint64_t compare_all(const pl_packed_block *block, int32_t n_spans, const pl_steps *own, int32_t n_own);

/* A bit for each of a block's items that lives at the same time as an item with these spans. */
static uint64_t find_meeting(const pl_packed_block *block, const pl_steps *own, int32_t n_own) {
  if (n_own < 2) return block->has_second ? compare_all(block, 2, own, 1) : compare_all(block, 1, own, 1);
  return block->has_second ? compare_all(block, 2, own, 2) : compare_all(block, 1, own, 2);
}

enum { AT_ONCE = 16 };
_Static_assert(MOST_OF_BLOCK <= 64 && MOST_OF_BLOCK % AT_ONCE == 0, "a bit for each of a block's items");
static uint32_t compare(const pl_packed_block *block, int32_t first, int32_t n_spans, const pl_steps *own,
                        int32_t n_own);

static inline uint64_t compare_all(const pl_packed_block *block, int32_t n_spans, const pl_steps *own, int32_t n_own) {
  uint64_t meeting = 0;
  for (int32_t first = 0; first < block->n; first += AT_ONCE)
    meeting |= (uint64_t)compare(block, first, n_spans, own, n_own) << first;
  return meeting;
}

static inline bool meets(const spans *of, int32_t k, pl_steps span) {
  return (of->from[k] < span.end) & (span.start < of->until[k]);
}

/* Of AT_ONCE items. The loop has no branches and always the same length, and its callers' numbers are constants: so the
 * compiler makes instructions of it that compare several items each. */
static inline uint32_t compare(const pl_packed_block *block, int32_t first, int32_t n_spans, const pl_steps *own,
                               int32_t n_own) {
  static const uint16_t bits[AT_ONCE] = {1U << 0, 1U << 1, 1U << 2,  1U << 3,  1U << 4,  1U << 5,  1U << 6,  1U << 7,
                                         1U << 8, 1U << 9, 1U << 10, 1U << 11, 1U << 12, 1U << 13, 1U << 14, 1U << 15};
  uint16_t meeting = 0;
  for (int32_t k = 0; k < AT_ONCE; k++) {
    bool is = meets(&block->spans[0], first + k, own[0]);
    if (n_own > 1) is |= meets(&block->spans[0], first + k, own[1]);
    if (n_spans > 1) is |= meets(&block->spans[1], first + k, own[0]);
    if (n_spans > 1 && n_own > 1) is |= meets(&block->spans[1], first + k, own[1]);
    meeting |= (uint16_t)(is ? bits[k] : 0);
  }
  return meeting;
}

/* --- Adding an item ----------------------------------------------------------------------------------------------- */

static int32_t find_block(const pl_packed *packed, int64_t address);
static pl_packed_block *cut_block(pl_packed *packed, int32_t b, int64_t address);
static void set_spans(pl_packed_block *block, int32_t k, const pl_packed_life *of);
static void move_items(pl_packed_block *to, int32_t at, const pl_packed_block *from, int32_t first, int32_t n);

/* Before the items that start at its address or behind it. */
void pl_packed_add(pl_packed *packed, int32_t item, int64_t address) {
  int32_t b = find_block(packed, address), k = 0;
  pl_packed_block *block = packed->blocks[b];
  if (block->n == MOST_OF_BLOCK) block = cut_block(packed, b, address);
  while (k < block->n && block->start[k] < address) k++;
  move_items(block, k + 1, block, k, block->n - k);
  set_spans(block, k, &packed->lives[item]);
  block->start[k] = address;
  block->end[k] = address + packed->items[item].bytes;
  block->n++;
}

static void set_spans(pl_packed_block *block, int32_t k, const pl_packed_life *of) {
  for (int32_t i = 0; i < PL_SPANS; i++) set_span(&block->spans[i], k, is_empty(of->spans[i]) ? no_span : of->spans[i]);
  block->has_second |= !is_empty(of->spans[1]);
}

/* The first block with an item at `address` or behind it; the last one where there is none. */
static int32_t find_block(const pl_packed *packed, int64_t address) {
  int32_t first = 0, last = packed->n_blocks - 1;
  while (first < last) {
    int32_t middle = first + (last - first) / 2;
    const pl_packed_block *block = packed->blocks[middle];
    if (block->start[block->n - 1] < address) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first;
}

/* Moves the second half of a full block to a free one behind it; returns the one of the two in which `address` goes. */
static pl_packed_block *cut_block(pl_packed *packed, int32_t b, int64_t address) {
  pl_packed_block *block = packed->blocks[b], *second = packed->blocks[packed->n_blocks];
  memmove(&packed->blocks[b + 2], &packed->blocks[b + 1], (size_t)(packed->n_blocks - b - 1) * sizeof(void *));
  packed->blocks[b + 1] = second;
  packed->n_blocks++;
  move_items(second, 0, block, HALF_OF_BLOCK, HALF_OF_BLOCK);
  empty_behind(second, HALF_OF_BLOCK);
  empty_behind(block, HALF_OF_BLOCK);
  return block->start[HALF_OF_BLOCK - 1] < address ? second : block;
}

/* Moves items `first`, ..., first + n - 1 to places `at` and behind. */
static void move_items(pl_packed_block *to, int32_t at, const pl_packed_block *from, int32_t first, int32_t n) {
  assert(n >= 0 && at + n <= MOST_OF_BLOCK);
  size_t count = (size_t)n;
  for (int32_t i = 0; i < PL_SPANS; i++) {
    memmove(&to->spans[i].from[at], &from->spans[i].from[first], count * sizeof *to->spans[i].from);
    memmove(&to->spans[i].until[at], &from->spans[i].until[first], count * sizeof *to->spans[i].until);
  }
  memmove(&to->start[at], &from->start[first], count * sizeof *to->start);
  memmove(&to->end[at], &from->end[first], count * sizeof *to->end);
  to->has_second |= from->has_second;
}
