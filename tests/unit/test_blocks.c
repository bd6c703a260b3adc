/* Making room among blocks: every move is carried out, one after the other, on a map of the bytes; each must find its
 * place free, leave nothing where it was, and at the end what was asked for is clear. */
#include <check.h>
#include <string.h>

#include "planc/schedule.h"
#include "planner/memory/blocks.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"
#include "util/math.h"

enum { MOST = 24, ROOM = 120, FREE = -1 };
static const int64_t UNIT = PLANC_ALIGNMENT;

typedef struct layout {
  int32_t owner[ROOM]; /* of each unit */
  int64_t bytes[MOST]; /* by owner; 0: it is not there */
  bool fixed[MOST];
} layout;

static pl_arena arena;

/* Blocks at random places, some of them fixed. */
static void fill(uint64_t *state, pl_blocks *blocks, layout *of) {
  memset(of, 0, sizeof *of);
  for (int32_t u = 0; u < ROOM; u++) of->owner[u] = FREE;
  ok(pl_blocks_make(&arena, MOST, (int64_t)ROOM * UNIT, blocks));
  int32_t largest = (int32_t)rand_below(state, 12) + 1, n = (int32_t)rand_below(state, MOST);
  for (int32_t k = 0; k < n; k++) {
    int64_t units = rand_below(state, largest) + 1, at = rand_below(state, ROOM - units + 1);
    if (!pl_blocks_are_free(blocks, at * UNIT, units * UNIT)) continue;
    of->bytes[k] = units * UNIT;
    of->fixed[k] = rand_chance(state, 10);
    for (int64_t u = at; u < at + units; u++) of->owner[u] = k;
    int64_t cost = of->fixed[k] ? -1 : units * UNIT;
    pl_blocks_put(blocks, (pl_block){.address = at * UNIT, .bytes = units * UNIT, .owner = k, .cost = cost});
  }
}

static bool are_free(const layout *of, int64_t address, int64_t bytes) {
  if (address < 0 || address + bytes > (int64_t)ROOM * UNIT) return false;
  for (int64_t u = address / UNIT; u < (address + bytes) / UNIT; u++)
    if (of->owner[u] != FREE) return false;
  return true;
}

/* Blocks say what the map does. */
static void assert_same(const pl_blocks *blocks, const layout *of) {
  int64_t taken = 0;
  for (int32_t u = 0; u < ROOM; u++) taken += of->owner[u] != FREE;
  for (int32_t k = 0; k < blocks->n; k++) {
    const pl_block *block = &blocks->items[k];
    ck_assert_int_eq(block->bytes, of->bytes[block->owner]);
    for (int64_t u = block->address / UNIT; u < (block->address + block->bytes) / UNIT; u++)
      ck_assert_int_eq(of->owner[u], block->owner);
    taken -= block->bytes / UNIT;
  }
  ck_assert_int_eq(taken, 0);
}

static void carry_out(pl_block_move move, layout *of) {
  ck_assert(!of->fixed[move.owner]);
  ck_assert(are_free(of, move.to, of->bytes[move.owner]));
  for (int32_t u = 0; u < ROOM; u++)
    if (of->owner[u] == move.owner) of->owner[u] = FREE;
  for (int64_t u = move.to / UNIT; u < (move.to + of->bytes[move.owner]) / UNIT; u++) of->owner[u] = move.owner;
}

static int64_t tightest_of_all(const layout *of, int64_t bytes) {
  int64_t best = PL_NO_ADDRESS, best_units = ROOM + 1;
  for (int64_t from = 0, to; from < ROOM; from = to + 1) {
    for (to = from; to < ROOM && of->owner[to] == FREE;) to++;
    if ((to - from) * UNIT < bytes || to - from >= best_units) continue;
    best = from * UNIT;
    best_units = to - from;
  }
  return best;
}

START_TEST(room_is_made_by_moves_that_can_be_made) {
  enum { CASES = 3000 };
  int32_t n_cleared = 0, n_moves = 0, n_failed = 0;
  for (uint64_t seed = 0; seed < CASES; seed++) {
    uint64_t state = seed;
    pl_blocks blocks;
    layout of;
    fill(&state, &blocks, &of);
    int64_t bytes = (rand_below(&state, 70) + 1) * UNIT;
    int64_t address = pl_blocks_clear(&blocks, bytes);
    if (address == PL_NO_ADDRESS) {
      ck_assert_int_eq(tightest_of_all(&of, bytes), PL_NO_ADDRESS);
      n_failed++;
    } else {
      for (int32_t k = 0; k < blocks.n_moves; k++) carry_out(blocks.moves[k], &of);
      ck_assert(are_free(&of, address, bytes));
      ck_assert(pl_blocks_are_free(&blocks, address, bytes));
      n_cleared++;
      n_moves += blocks.n_moves;
    }
    assert_same(&blocks, &of);
    pl_arena_free(&arena);
  }
  ck_assert_int_gt(n_cleared, CASES / 2);
  ck_assert_int_gt(n_moves, CASES / 4);
  ck_assert_int_gt(n_failed, 0);
}
END_TEST

START_TEST(room_is_made_at_an_address) {
  enum { CASES = 3000 };
  int32_t n_cleared = 0, n_moves = 0, n_failed = 0;
  for (uint64_t seed = 0; seed < CASES; seed++) {
    uint64_t state = seed;
    pl_blocks blocks;
    layout of;
    fill(&state, &blocks, &of);
    int64_t bytes = (rand_below(&state, 40) + 1) * UNIT, address = rand_below(&state, ROOM + 1) * UNIT;
    bool was_free = are_free(&of, address, bytes), is_cleared = pl_blocks_clear_at(&blocks, address, bytes);
    if (address + bytes > ROOM * UNIT) ck_assert(!is_cleared);
    if (was_free) ck_assert(is_cleared && blocks.n_moves == 0);
    if (!is_cleared) ck_assert_int_eq(blocks.n_moves, 0);
    for (int32_t k = 0; k < blocks.n_moves; k++) carry_out(blocks.moves[k], &of);
    if (is_cleared) ck_assert(are_free(&of, address, bytes));
    assert_same(&blocks, &of);
    n_cleared += is_cleared;
    n_moves += blocks.n_moves;
    n_failed += !is_cleared;
    pl_arena_free(&arena);
  }
  ck_assert_int_gt(n_cleared, CASES / 4);
  ck_assert_int_gt(n_moves, CASES / 4);
  ck_assert_int_gt(n_failed, CASES / 20);
}
END_TEST

/* Of two windows the one with less in its way, and what is in it goes to the tightest hole. */
START_TEST(the_cheapest_moves) {
  const pl_block blocks[] = {{0, 2 * UNIT, 0, 2 * UNIT},         {4 * UNIT, 4 * UNIT, 1, 4 * UNIT},
                             {8 * UNIT, 1 * UNIT, 2, 1 * UNIT},  {11 * UNIT, 4 * UNIT, 3, 4 * UNIT},
                             {16 * UNIT, 4 * UNIT, 4, 4 * UNIT}, {20 * UNIT, 4 * UNIT, 5, -1}};
  pl_blocks all;
  ok(pl_blocks_make(&arena, 6, 24 * UNIT, &all));
  for (int k = 0; k < 6; k++) pl_blocks_put(&all, blocks[k]);
  ck_assert_int_eq(pl_blocks_clear(&all, 3 * UNIT), 8 * UNIT);
  ck_assert_int_eq(all.n_moves, 1);
  ck_assert_int_eq(all.moves[0].owner, 2);
  ck_assert_int_eq(all.moves[0].to, 15 * UNIT);
  pl_arena_free(&arena);
}
END_TEST

/* By the number of an address, whoever lies there: at the lower side of any hole there is least to be had. */
static int64_t as_high_as_can_be(const void *user, int32_t owner, int64_t address) {
  (void)owner;
  return pl_min(address, *(const int64_t *)user);
}

/* What is in the way goes where it may stay longest, into whichever side of whichever hole that is; and of holes that
 * are alike in that into the tightest. */
START_TEST(where_it_may_stay) {
  const pl_block blocks[] = {{0, 2 * UNIT, 0, -1},
                             {5 * UNIT, 1 * UNIT, 1, 1 * UNIT},
                             {9 * UNIT, 1 * UNIT, 2, -1},
                             {14 * UNIT, 1 * UNIT, 3, -1},
                             {17 * UNIT, 1 * UNIT, 4, -1}};
  const int64_t most[] = {100 * UNIT, 12 * UNIT}, expected[] = {19 * UNIT, 15 * UNIT};
  for (int k = 0; k < 2; k++) {
    pl_blocks all;
    ok(pl_blocks_make(&arena, 5, 20 * UNIT, &all));
    for (int b = 0; b < 5; b++) pl_blocks_put(&all, blocks[b]);
    all.until = as_high_as_can_be;
    all.user = &most[k];
    ck_assert(pl_blocks_clear_at(&all, 3 * UNIT, 5 * UNIT));
    ck_assert_int_eq(all.n_moves, 1);
    ck_assert_int_eq(all.moves[0].owner, 1);
    ck_assert_int_eq(all.moves[0].to, expected[k]);
    pl_arena_free(&arena);
  }
}
END_TEST

/* A place for what is in the way is made in turn. */
START_TEST(room_is_made_for_what_moves) {
  pl_blocks all;
  ok(pl_blocks_make(&arena, 3, 10 * UNIT, &all));
  pl_blocks_put(&all, (pl_block){2 * UNIT, 2 * UNIT, 0, 2 * UNIT}); /* two units free on both of its sides */
  pl_blocks_put(&all, (pl_block){6 * UNIT, 1 * UNIT, 1, 1 * UNIT});
  pl_blocks_put(&all, (pl_block){9 * UNIT, 1 * UNIT, 2, -1});
  int64_t address = pl_blocks_clear(&all, 6 * UNIT);
  ck_assert_int_ne(address, PL_NO_ADDRESS);
  ck_assert(pl_blocks_are_free(&all, address, 6 * UNIT));
  pl_arena_free(&arena);
}
END_TEST

/* No block has another place to go, but one after the other moves along. */
START_TEST(a_hole_wanders) {
  pl_blocks all;
  ok(pl_blocks_make(&arena, 5, 25 * UNIT, &all));
  for (int k = 0; k < 5; k++) pl_blocks_put(&all, (pl_block){UNIT * 5 * k, 3 * UNIT, k, k == 0 ? -1 : 3 * UNIT});
  ck_assert_int_eq(pl_blocks_clear(&all, 10 * UNIT), PL_NO_ADDRESS); /* no hole has 3 units */
  ck_assert_int_eq(all.n_moves, 0);
  pl_blocks_take(&all, 20 * UNIT);
  pl_blocks_put(&all, (pl_block){22 * UNIT, 3 * UNIT, 4, -1}); /* 4 units below it are free */
  int64_t address = pl_blocks_clear(&all, 10 * UNIT);
  ck_assert_int_eq(address, 3 * UNIT);
  ck_assert_int_eq(all.n_moves, 3);
  for (int k = 0; k < 3; k++) {
    ck_assert_int_eq(all.moves[k].owner, 3 - k);
    ck_assert_int_eq(all.moves[k].to, (19 - 3 * k) * UNIT);
  }
  ck_assert(pl_blocks_are_free(&all, address, 10 * UNIT));
  pl_arena_free(&arena);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("blocks");
  TCase *tests = tcase_create("all");
  tcase_add_test(tests, room_is_made_by_moves_that_can_be_made);
  tcase_add_test(tests, room_is_made_at_an_address);
  tcase_add_test(tests, the_cheapest_moves);
  tcase_add_test(tests, where_it_may_stay);
  tcase_add_test(tests, room_is_made_for_what_moves);
  tcase_add_test(tests, a_hole_wanders);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
