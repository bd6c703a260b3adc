/* Best fit with caching: its rules by hand, and on random requests that what is given out never overlaps or leaves the
 * device, and that a request is only refused where no block could be had. */
#include <check.h>
#include <stdlib.h>

#include "planner/caching.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

enum { UNIT = 256 };

/* Takes `n` units; -1 = there was no room, else the unit at which they begin. */
static int64_t take(planc_caching *c, int64_t n, int32_t *segment) {
  int64_t address;
  ok(planc_caching_take(c, n * UNIT, segment, &address));
  return *segment < 0 ? -1 : address / UNIT;
}

START_TEST(blocks_are_split_and_merged_within_themselves) {
  planc_caching c;
  int32_t a, b, d, e;
  ok(planc_caching_init(&c, INT64_C(100) * UNIT));
  ck_assert_int_eq(take(&c, 10, &a), 0);
  ck_assert_int_eq(take(&c, 6, &b), 10);
  ok(planc_caching_give(&c, a));
  ck_assert_int_eq(take(&c, 4, &a), 0); /* a part of the free block */
  ck_assert_int_eq(take(&c, 5, &d), 4); /* the best fit is the rest of it */
  ok(planc_caching_give(&c, a));
  ok(planc_caching_give(&c, d));
  ck_assert_int_eq(take(&c, 10, &a), 0); /* whole again */
  ok(planc_caching_give(&c, a));
  ok(planc_caching_give(&c, b));
  ck_assert_int_eq(take(&c, 16, &e), 16); /* two free neighbours, but two blocks */
  ck_assert_int_eq(c.top, INT64_C(32) * UNIT);
  planc_caching_free(&c);
}
END_TEST

START_TEST(idle_blocks_go_back_when_there_is_no_room) {
  planc_caching c;
  int32_t a, b, d;
  ok(planc_caching_init(&c, INT64_C(20) * UNIT));
  ck_assert_int_eq(take(&c, 10, &a), 0);
  ck_assert_int_eq(take(&c, 6, &b), 10);
  ok(planc_caching_give(&c, a));
  ok(planc_caching_give(&c, b));
  ck_assert_int_eq(take(&c, 18, &d), 0);
  ck_assert_int_eq(take(&c, 3, &a), -1);
  ck_assert_int_eq(take(&c, 2, &a), 18);
  ok(planc_caching_give(&c, d));
  /* The block of 18 is split: a part in use keeps it from going back. */
  ck_assert_int_eq(take(&c, 1, &b), 0);
  ck_assert_int_eq(take(&c, 18, &d), -1);
  ck_assert_int_eq(take(&c, 17, &d), 1);
  planc_caching_free(&c);
}
END_TEST

typedef struct request {
  int32_t segment;
  int64_t first, n;
} request;

enum { MOST_LIVE = 30, STEPS = 3000, CAPACITY = 400 };

START_TEST(random_requests_never_overlap) {
  uint64_t state = (uint64_t)_i;
  planc_caching c;
  request live[MOST_LIVE];
  bool used[CAPACITY] = {false};
  int64_t n_live = 0, refused = 0;
  ok(planc_caching_init(&c, INT64_C(1) * CAPACITY * UNIT));
  for (int step = 0; step < STEPS; step++) {
    bool full = n_live == MOST_LIVE;
    if (full || (n_live > 0 && rand_chance(&state, 40))) {
      request *gone = &live[rand_below(&state, n_live)];
      for (int64_t k = 0; k < gone->n; k++) used[gone->first + k] = false;
      ok(planc_caching_give(&c, gone->segment));
      *gone = live[--n_live];
      continue;
    }
    request *it = &live[n_live];
    it->n = 1 + rand_below(&state, rand_chance(&state, 20) ? 80 : 12);
    it->first = take(&c, it->n, &it->segment);
    if (it->first < 0) {
      refused++;
      continue;
    }
    n_live++;
    ck_assert_int_le(it->first + it->n, CAPACITY);
    for (int64_t k = 0; k < it->n; k++) {
      ck_assert_msg(!used[it->first + k], "bytes are given out twice");
      used[it->first + k] = true;
    }
  }
  ck_assert_int_gt(refused, 0);
  while (n_live > 0) ok(planc_caching_give(&c, live[--n_live].segment));
  int32_t all;
  ck_assert_int_eq(take(&c, CAPACITY, &all), 0); /* nothing is lost */
  planc_caching_free(&c);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("caching");
  TCase *tests = tcase_create("all");
  tcase_add_test(tests, blocks_are_split_and_merged_within_themselves);
  tcase_add_test(tests, idle_blocks_go_back_when_there_is_no_room);
  tcase_add_loop_test(tests, random_requests_never_overlap, 0, 40);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
