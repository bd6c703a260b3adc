/* The best fit of a memory list, against a walk over all of its segments. */
#include <check.h>

#include "planc/schedule.h"
#include "planner/memory/memory_list.h"
#include "tests/support/unit.h"

static uint64_t seed;
static int32_t draw(int32_t below) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (int32_t)((seed >> 33) % (uint32_t)below);
}

static int32_t smallest_of_all(const pl_memory_list *list, int64_t bytes) {
  int32_t best = -1;
  for (int32_t i = list->first; i >= 0; i = list->segments.data[i].next) {
    const pl_segment *s = &list->segments.data[i];
    bool fits = s->owner == PL_NO_OWNER && s->bytes >= bytes;
    if (fits && (best < 0 || s->bytes < list->segments.data[best].bytes)) best = i;
  }
  return best;
}

/* Few sizes, so that many segments are of the same: then it is the lowest. */
START_TEST(the_best_is_that_of_all) {
  enum { MOST = 100 };
  pl_memory_list list;
  int32_t taken[MOST], n = 0;
  seed = (uint64_t)_i;
  ok(pl_memory_list_init(&list, 300 * PLANC_ALIGNMENT));
  for (int32_t step = 0; step < 3000; step++) {
    int64_t bytes = (int64_t)(1 + draw(_i % 2 ? 3 : 12)) * PLANC_ALIGNMENT - draw(PLANC_ALIGNMENT);
    int32_t best = pl_memory_list_best_fit(&list, bytes);
    ck_assert_int_eq(best, smallest_of_all(&list, bytes));
    if (best >= 0 && n < MOST && draw(2)) {
      int64_t address = list.segments.data[best].address;
      ok(pl_memory_list_take(&list, best, address, bytes, 0, &taken[n++]));
    } else if (n > 0) {
      int32_t k = draw(n);
      ok(pl_memory_list_release(&list, taken[k], NULL));
      taken[k] = taken[--n];
    }
  }
  pl_memory_list_free(&list);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("memory_list");
  TCase *tests = tcase_create("all");
  tcase_add_loop_test(tests, the_best_is_that_of_all, 0, 20);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
