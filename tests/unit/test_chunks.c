/* Virtual memory in chunks (papers: out-of-core, 4): the allocator's rules by hand, and on random requests that it
 * never needs more chunks than are in use at a time, and that what is lost inside them stays below Eqs. 1 and 2. */
#include <check.h>
#include <stdlib.h>

#include "planner/memory/chunks.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

enum { CHUNK = 100 };

/* Takes `n` chunks and holds them against `expected`, which is ended by -1. */
static int32_t take(pl_chunks *c, int64_t n, const int64_t *expected) {
  int32_t range;
  int64_t address;
  ok(pl_chunks_take(c, n * CHUNK - 1, &range, &address));
  const pl_chunk_range *it = &c->ranges.data[range];
  ck_assert_int_eq(it->n, n);
  ck_assert_int_eq(address, it->first * CHUNK);
  for (int64_t k = 0; k < n; k++) ck_assert_int_eq(c->of.data[it->first + k], expected[k]);
  return range;
}

#define CHUNKS(...) ((const int64_t[]){__VA_ARGS__})

START_TEST(a_free_range_of_the_size_is_taken_again) {
  pl_chunks c = {.chunk_bytes = CHUNK};
  int32_t a = take(&c, 2, CHUNKS(0, 1)), b = take(&c, 2, CHUNKS(2, 3));
  ok(pl_chunks_give(&c, b));
  ok(pl_chunks_give(&c, a));
  ck_assert_int_eq(take(&c, 2, CHUNKS(2, 3)), b); /* the oldest first */
  ck_assert_int_eq(take(&c, 2, CHUNKS(0, 1)), a);
  ck_assert_int_eq(c.n_mapped, 4);
  ck_assert_int_eq(c.n_unmapped, 0);
  pl_chunks_free(&c);
}
END_TEST

START_TEST(the_largest_smaller_range_grows) {
  pl_chunks c = {.chunk_bytes = CHUNK};
  int32_t a = take(&c, 1, CHUNKS(0)), b = take(&c, 3, CHUNKS(1, 2, 3)), d = take(&c, 2, CHUNKS(4, 5));
  ok(pl_chunks_give(&c, a));
  ok(pl_chunks_give(&c, b));
  ok(pl_chunks_give(&c, d));
  /* 3 of b, then the smallest range that has the one that is missing; nothing is new. */
  take(&c, 4, CHUNKS(1, 2, 3, 0));
  ck_assert_int_eq(c.n_mapped, 6 + 1);
  ck_assert_int_eq(c.n_unmapped, 1);
  /* 2 of d, then new ones. */
  take(&c, 4, CHUNKS(4, 5, 6, 7));
  ck_assert_int_eq(c.n_chunks, 8);
  pl_chunks_free(&c);
}
END_TEST

START_TEST(the_smallest_larger_range_gives_its_chunks) {
  pl_chunks c = {.chunk_bytes = CHUNK};
  int32_t a = take(&c, 5, CHUNKS(0, 1, 2, 3, 4)), b = take(&c, 3, CHUNKS(5, 6, 7));
  ok(pl_chunks_give(&c, a));
  ok(pl_chunks_give(&c, b));
  take(&c, 2, CHUNKS(5, 6));
  ck_assert_int_eq(c.n_unmapped, 3);
  /* So does the next one, though a chunk is loose; where there are no ranges loose chunks come before new ones. */
  a = take(&c, 4, CHUNKS(0, 1, 2, 3));
  ck_assert_int_eq(c.n_unmapped, 8);
  b = take(&c, 3, CHUNKS(7, 4, 8));
  ck_assert_int_eq(c.n_unmapped, 8);
  /* Where no range has enough several are taken apart, the largest first, and at last chunks are new. */
  int32_t d = take(&c, 1, CHUNKS(9));
  ok(pl_chunks_give(&c, a));
  ok(pl_chunks_give(&c, b));
  ok(pl_chunks_give(&c, d));
  take(&c, 9, CHUNKS(0, 1, 2, 3, 7, 4, 8, 9, 10));
  ck_assert_int_eq(c.n_unmapped, 8 + 3 + 1);
  pl_chunks_free(&c);
}
END_TEST

START_TEST(no_more_chunks_are_used_than_there_are) {
  pl_chunks c = {.chunk_bytes = CHUNK, .most = 4};
  int32_t a = take(&c, 3, CHUNKS(0, 1, 2)), none;
  int64_t address;
  ok(pl_chunks_take(&c, CHUNK + 1, &none, &address));
  ck_assert_int_eq(none, -1);
  take(&c, 1, CHUNKS(3));
  ok(pl_chunks_give(&c, a));
  ok(pl_chunks_take(&c, 3 * CHUNK + 1, &none, &address));
  ck_assert_int_eq(none, -1);
  take(&c, 3, CHUNKS(0, 1, 2)); /* what was refused left everything as it was */
  ck_assert_int_eq(c.n_mapped, 4);
  pl_chunks_free(&c);
}
END_TEST

START_TEST(ranges_are_mapped_in_the_order_of_addresses) {
  pl_chunks c = {.chunk_bytes = CHUNK};
  pl_mappings mappings = {0};
  int32_t a = take(&c, 2, CHUNKS(0, 1));
  take(&c, 1, CHUNKS(2));
  ok(pl_chunks_give(&c, a));
  take(&c, 1, CHUNKS(0));
  ok(pl_chunks_map(&c, &mappings));
  ck_assert_int_eq(mappings.len, 2);
  ck_assert_int_eq(mappings.data[0].first, 0);
  ck_assert_int_eq(mappings.data[0].n, 3);
  ck_assert_int_eq(mappings.data[1].first, 0);
  ck_assert_int_eq(mappings.data[1].n, 1);
  VEC_FREE(&mappings);
  pl_chunks_free(&c);
}
END_TEST

typedef struct request {
  int32_t range;
  int64_t bytes;
} request;

enum { MOST_LIVE = 40, STEPS = 2000 };

START_TEST(random_requests_lose_nothing_outside_their_chunks) {
  uint64_t state = (uint64_t)_i;
  pl_chunks c = {.chunk_bytes = 1 + rand_below(&state, 300)};
  request live[MOST_LIVE];
  bool *used = calloc((size_t)MOST_LIVE * 1000, sizeof *used); /* by chunk of the arena */
  int64_t n_live = 0, n_used = 0, most_used = 0, lost = 0;
  for (int step = 0; step < STEPS; step++) {
    if (n_live == MOST_LIVE || (n_live > 0 && rand_chance(&state, 45))) {
      request *gone = &live[rand_below(&state, n_live)];
      const pl_chunk_range *range = &c.ranges.data[gone->range];
      for (int64_t k = 0; k < range->n; k++) used[c.of.data[range->first + k]] = false;
      n_used -= range->n;
      lost -= range->n * c.chunk_bytes - gone->bytes;
      ok(pl_chunks_give(&c, gone->range));
      *gone = live[--n_live];
    } else {
      request *it = &live[n_live++];
      int64_t address;
      it->bytes = 1 + rand_below(&state, rand_chance(&state, 20) ? 999 : 200);
      ok(pl_chunks_take(&c, it->bytes, &it->range, &address));
      const pl_chunk_range *range = &c.ranges.data[it->range];
      ck_assert_int_ge(range->n * c.chunk_bytes, it->bytes);
      ck_assert_int_lt(range->n * c.chunk_bytes - it->bytes, c.chunk_bytes); /* Eq. 1 */
      for (int64_t k = 0; k < range->n; k++) {
        bool *chunk = &used[c.of.data[range->first + k]];
        ck_assert_msg(!*chunk, "a chunk is given out twice");
        *chunk = true;
      }
      n_used += range->n;
      lost += range->n * c.chunk_bytes - it->bytes;
    }
    if (n_used > most_used) most_used = n_used;
    ck_assert_int_eq(c.n_chunks, most_used);
    if (n_live > 0) ck_assert_int_lt(lost, n_live * c.chunk_bytes); /* Eq. 2 */
  }
  free(used);
  pl_chunks_free(&c);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("chunks");
  TCase *tests = tcase_create("all");
  tcase_add_test(tests, a_free_range_of_the_size_is_taken_again);
  tcase_add_test(tests, the_largest_smaller_range_grows);
  tcase_add_test(tests, the_smallest_larger_range_gives_its_chunks);
  tcase_add_test(tests, no_more_chunks_are_used_than_there_are);
  tcase_add_test(tests, ranges_are_mapped_in_the_order_of_addresses);
  tcase_add_loop_test(tests, random_requests_lose_nothing_outside_their_chunks, 0, 50);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
