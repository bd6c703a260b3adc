/* Complete search for addresses: on tiny cases it is held to the optimum of all orders, from both sides; on larger ones
 * to a placement that is known to exist, as the items were cut out of it. */
#include <check.h>
#include <string.h>

#include "planc/schedule.h"
#include "planner/memory/placement_search.h"
#include "tests/support/placements.h"
#include "tests/support/unit.h"

static pl_verdict search(pl_item *items, int32_t n, int64_t room) {
  int64_t visits = INT64_C(1) << 40;
  pl_verdict verdict;
  ok(pl_placement_search(items, NULL, n, room, &visits, &verdict));
  ck_assert_int_lt(visits, INT64_C(1) << 40);
  return verdict;
}

static int64_t top_of(const pl_item *items, int32_t n) {
  int64_t top = 0;
  for (int32_t i = 0; i < n; i++)
    if (items[i].address + items[i].bytes > top) top = items[i].address + items[i].bytes;
  return top;
}

/* Within the optimum addresses are found, within a byte less it is shown that there are none. */
START_TEST(tiny_cases_are_decided) {
  uint64_t seed = (uint64_t)_i + 1;
  for (int32_t c = 0; c < 100; c++) {
    pl_item items[7], copy[7];
    int32_t n = 1 + (int32_t)draw_below(&seed, 7);
    for (int32_t i = 0; i < n; i++) items[i] = random_item(&seed, 10, 9, draw_below(&seed, 2) > 0);
    memcpy(copy, items, sizeof copy);
    int64_t least = least_top(copy, n);
    ck_assert_int_eq(search(items, n, least - 1), PL_IMPOSSIBLE);
    for (int32_t i = 0; i < n; i++) ck_assert_int_eq(items[i].address, PLANC_BLANK);
    ck_assert_int_eq(search(items, n, least), PL_PLACED);
    assert_valid(items, n, least);
  }
}
END_TEST

/* Positions start, ..., end - 1 and addresses from `low` to before `high`, cut into pieces that fill them. */
typedef struct piece {
  pl_lifetime span;
  int64_t low, high;
} piece;

static int32_t cut(uint64_t *seed, piece *pieces, int32_t n, int32_t most) {
  while (n < most) {
    piece *p = &pieces[draw_below(seed, (uint32_t)n)], other = *p;
    int32_t length = p->span.end - p->span.start, units = (int32_t)((p->high - p->low) / PLANC_ALIGNMENT);
    if (length < 2 && units < 2) continue;
    if (length >= 2 && (units < 2 || draw_below(seed, 2))) {
      p->span.end = other.span.start = p->span.start + 1 + (int32_t)draw_below(seed, (uint32_t)length - 1);
    } else {
      p->high = other.low = p->low + (int64_t)PLANC_ALIGNMENT * (1 + draw_below(seed, (uint32_t)units - 1));
    }
    pieces[n++] = other;
  }
  return n;
}

/* Without a byte to spare at any time. */
START_TEST(what_was_cut_fits_again) {
  enum { N = 60, POSITIONS = 40, UNITS = 64 };
  uint64_t seed = (uint64_t)_i + 1;
  piece pieces[N] = {{{0, POSITIONS}, 0, (int64_t)UNITS * PLANC_ALIGNMENT}};
  pl_item items[N];
  int32_t n = cut(&seed, pieces, 1, N);
  for (int32_t i = 0; i < n; i++)
    items[i] = (pl_item){pieces[i].high - pieces[i].low, PLANC_BLANK, {pieces[i].span, {0, 0}}};
  ck_assert_int_eq(search(items, n, (int64_t)UNITS * PLANC_ALIGNMENT), PL_PLACED);
  assert_valid(items, n, (int64_t)UNITS * PLANC_ALIGNMENT);
}
END_TEST

/* Sizes of one byte and of all bits but the first. */
START_TEST(sizes_are_any) {
  pl_item odd[] = {
      {1, PLANC_BLANK, {{0, 2}, {0, 0}}}, {7, PLANC_BLANK, {{1, 3}, {0, 0}}}, {2, PLANC_BLANK, {{2, 4}, {0, 0}}}};
  ck_assert_int_eq(search(odd, 3, 8), PL_IMPOSSIBLE);
  ck_assert_int_eq(search(odd, 3, 9), PL_PLACED);
  ck_assert_int_eq(top_of(odd, 3), 9);
  pl_item large[] = {{INT64_MAX / 4, PLANC_BLANK, {{0, 2}, {0, 0}}}, {INT64_MAX / 4, PLANC_BLANK, {{1, 3}, {0, 0}}}};
  ck_assert_int_eq(search(large, 2, INT64_MAX / 4 * 2 - 1), PL_IMPOSSIBLE);
  ck_assert_int_eq(search(large, 2, INT64_MAX / 4 * 2), PL_PLACED);
  int64_t visits = 100;
  pl_verdict verdict;
  ok(pl_placement_search(NULL, NULL, 0, 0, &visits, &verdict));
  ck_assert_int_eq(verdict, PL_PLACED);
}
END_TEST

/* With few visits nothing is decided and nothing is touched; twice the same is the same. */
START_TEST(visits_end) {
  enum { N = 60 };
  uint64_t seed = 7;
  pl_item items[N], again[N];
  for (int32_t i = 0; i < N; i++) items[i] = random_item(&seed, 30, 20, false);
  int64_t bound = lower_bound(items, N), visits = 10, few = 5000, same = 5000;
  pl_verdict verdict, other;
  ok(pl_placement_search(items, NULL, N, bound, &visits, &verdict));
  ck_assert_int_eq(verdict, PL_UNDECIDED);
  ck_assert_int_le(visits, 0);
  for (int32_t i = 0; i < N; i++) ck_assert_int_eq(items[i].address, PLANC_BLANK);
  memcpy(again, items, sizeof again);
  ok(pl_placement_search(items, NULL, N, bound + bound / 4, &few, &verdict));
  ok(pl_placement_search(again, NULL, N, bound + bound / 4, &same, &other));
  ck_assert(verdict == other && few == same);
  ck_assert_mem_eq(items, again, sizeof items);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("placement_search");
  TCase *tests = tcase_create("placement_search");
  tcase_set_timeout(tests, 120);
  tcase_add_loop_test(tests, tiny_cases_are_decided, 0, 20);
  tcase_add_loop_test(tests, what_was_cut_fits_again, 0, 20);
  tcase_add_test(tests, sizes_are_any);
  tcase_add_test(tests, visits_end);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
