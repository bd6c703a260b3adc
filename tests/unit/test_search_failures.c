/* The table of failures of a search for addresses, against one that has all its places from the start. */
#include <check.h>
#include <stdlib.h>

#include "planner/memory/search_failures.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

enum { PLACES = 1 << 20, MOST = 3 * PLACES };

/* Few keys, with places of their own or in common, and so many that every place is used. */
static const struct {
  int32_t n_kept;
  uint64_t n_keys, step;
} tables[] = {{400, 100, 1}, {400, 100, PLACES}, {400, 90, PLACES / 8}, {MOST, UINT64_C(1) << 40, 977}};
enum { N_TABLES = sizeof tables / sizeof *tables };

START_TEST(it_knows_what_a_whole_table_knows) {
  pl_failure *whole = calloc(PLACES, sizeof *whole);
  pl_failures table = {0};
  int32_t n_known = 0;
  ck_assert_ptr_nonnull(whole);
  uint64_t rng = (uint64_t)_i;
  for (int32_t i = 0; i < tables[_i].n_kept; i++) {
    uint64_t key = 1 + rand_next(&rng) % tables[_i].n_keys * tables[_i].step;
    const pl_failure failed = {key, rand_below(&rng, 50)}, asked = {key, rand_below(&rng, 50)};
    pl_failure *place = &whole[key % PLACES];
    bool is_known = place->key == key && place->address <= asked.address;
    ck_assert_int_eq(pl_failures_know(&table, &asked), is_known);
    n_known += is_known;
    ok(pl_failures_keep(&table, &failed));
    if (place->key != key || place->address > failed.address) *place = failed;
  }
  if (_i < N_TABLES - 1) ck_assert_int_gt(n_known, 0);
  ck_assert_int_le(table.n_slots, _i < N_TABLES - 1 ? 256 : PLACES);
  pl_failures_free(&table);
  free(whole);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("search failures");
  TCase *tests = tcase_create("all");
  tcase_add_loop_test(tests, it_knows_what_a_whole_table_knows, 0, N_TABLES);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
