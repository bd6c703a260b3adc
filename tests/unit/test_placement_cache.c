/* The cache of placements: what is recalled is what placing gives, of random items, also where much was forgotten, and
 * from several threads. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "planc/schedule.h"
#include "planner/memory/placement_cache.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

enum { MOST_ITEMS = 60, SETS = 40, THREADS = 4 };

typedef struct item_set {
  int32_t n;
  pl_item items[MOST_ITEMS];
} item_set;

static item_set draw(uint64_t *seed) {
  item_set set = {.n = 1 + (int32_t)(rand_next(seed) % MOST_ITEMS)};
  for (int32_t i = 0; i < set.n; i++) {
    int32_t start = (int32_t)(rand_next(seed) % 100), away = start + 1 + (int32_t)(rand_next(seed) % 20);
    set.items[i] = (pl_item){.bytes = (int64_t)(rand_next(seed) % 4096), .address = PLANC_BLANK};
    set.items[i].spans[0] = (pl_lifetime){start, away};
    if (rand_next(seed) % 4 == 0) set.items[i].spans[1] = (pl_lifetime){away + 5, away + 10};
  }
  return set;
}

static void assert_placed(planc_placement_cache *cache, const item_set *set) {
  item_set plain = *set, known = *set;
  int64_t plain_top, known_top;
  ok(pl_place(plain.items, plain.n, &plain_top, NULL));
  ok(pl_placement_cache_place(cache, known.items, known.n, &known_top, NULL));
  ck_assert_int_eq(plain_top, known_top);
  for (int32_t i = 0; i < set->n; i++) ck_assert_int_eq(plain.items[i].address, known.items[i].address);
}

START_TEST(what_is_recalled_is_what_placing_gives) {
  uint64_t seed = (uint64_t)_i;
  planc_placement_cache *cache;
  item_set sets[SETS];
  ok(pl_placement_cache_make(&cache));
  for (int32_t k = 0; k < SETS; k++) sets[k] = draw(&seed);
  for (int32_t k = 0; k < 4 * SETS; k++) assert_placed(cache, &sets[rand_next(&seed) % SETS]);
  pl_placement_cache_free(cache);
}
END_TEST

/* Each differs from the first in one number, and is not taken for it. */
START_TEST(every_number_counts) {
  uint64_t seed = 7;
  planc_placement_cache *cache;
  item_set first = draw(&seed);
  ok(pl_placement_cache_make(&cache));
  assert_placed(cache, &first);
  for (int32_t i = 0; i < first.n; i++) {
    item_set larger = first, longer = first, later = first, parted = first, fewer = first;
    larger.items[i].bytes += 256;
    longer.items[i].spans[0].end++; /* the second span is further away */
    later.items[i].spans[0].start = 0;
    parted.items[i].spans[1] = (pl_lifetime){200, 210};
    fewer.n = i;
    assert_placed(cache, &larger);
    assert_placed(cache, &longer);
    assert_placed(cache, &later);
    assert_placed(cache, &parted);
    assert_placed(cache, &fewer);
  }
  pl_placement_cache_free(cache);
}
END_TEST

/* Stated addresses that overlap are refused each time, and remembered never. */
START_TEST(refusals_are_not_known) {
  planc_placement_cache *cache;
  ok(pl_placement_cache_make(&cache));
  for (int k = 0; k < 3; k++) {
    pl_item items[] = {{512, 0, {{0, 4}, {0, 0}}}, {512, 256, {{3, 5}, {0, 0}}}};
    pl_overlap overlap = {-1, -1, -1};
    int64_t top;
    planc_status status = pl_placement_cache_place(cache, items, 2, &top, &overlap);
    ck_assert_int_eq(planc_status_code(status), PLANC_INTERNAL);
    ck_assert(overlap.item != overlap.other && overlap.item >= 0 && overlap.other >= 0 && overlap.position == 3);
    planc_status_free(status);
  }
  pl_placement_cache_free(cache);
}
END_TEST

/* More sets than a table has slots for. */
START_TEST(a_full_table_forgets) {
  planc_placement_cache *cache;
  ok(pl_placement_cache_make(&cache));
  for (int32_t k = 0; k < 10000; k++) {
    item_set set = {.n = 2};
    for (int32_t i = 0; i < 2; i++)
      set.items[i] = (pl_item){.bytes = 256 + k, .address = PLANC_BLANK, .spans = {{i, i + 2}, {0, 0}}};
    assert_placed(cache, &set);
  }
  pl_placement_cache_free(cache);
}
END_TEST

typedef struct worker {
  planc_placement_cache *cache;
  const item_set *sets;
  uint64_t seed;
  bool failed;
} worker;

static void *place_some(void *user) {
  worker *w = user;
  for (int32_t k = 0; k < 4 * SETS && !w->failed; k++) {
    item_set plain = w->sets[rand_next(&w->seed) % SETS], known = plain;
    int64_t plain_top = 0, known_top = 0;
    planc_status a = pl_place(plain.items, plain.n, &plain_top, NULL);
    planc_status b = pl_placement_cache_place(w->cache, known.items, known.n, &known_top, NULL);
    w->failed = a || b || plain_top != known_top;
    for (int32_t i = 0; i < plain.n; i++) w->failed = w->failed || plain.items[i].address != known.items[i].address;
    planc_status_free(a);
    planc_status_free(b);
  }
  return NULL;
}

START_TEST(threads_share_them) {
  uint64_t seed = 11;
  item_set sets[SETS];
  worker workers[THREADS];
  pthread_t threads[THREADS];
  planc_placement_cache *cache;
  ok(pl_placement_cache_make(&cache));
  for (int32_t k = 0; k < SETS; k++) sets[k] = draw(&seed);
  for (int32_t k = 0; k < THREADS; k++) {
    workers[k] = (worker){.cache = cache, .sets = sets, .seed = (uint64_t)k};
    ck_assert_int_eq(pthread_create(&threads[k], NULL, place_some, &workers[k]), 0);
  }
  for (int32_t k = 0; k < THREADS; k++) {
    ck_assert_int_eq(pthread_join(threads[k], NULL), 0);
    ck_assert(!workers[k].failed);
  }
  pl_placement_cache_free(cache);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("placement_cache");
  TCase *cases = tcase_create("all");
  tcase_add_loop_test(cases, what_is_recalled_is_what_placing_gives, 0, 20);
  tcase_add_test(cases, every_number_counts);
  tcase_add_test(cases, refusals_are_not_known);
  tcase_add_test(cases, a_full_table_forgets);
  tcase_add_test(cases, threads_share_them);
  suite_add_tcase(suite, cases);
  return run_suite(suite);
}
