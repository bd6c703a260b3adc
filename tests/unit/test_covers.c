/* The first span of an order around an instance, against passing over all of them. */
#include <check.h>

#include "planner/choose/covers.h"
#include "tests/support/unit.h"

static uint64_t seed;
static int32_t draw(int32_t below) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (int32_t)((seed >> 33) % (uint32_t)below);
}

enum { N = 80 };

static int32_t first_of_all(const pl_cover *covers, const bool *present, int32_t instance) {
  for (int32_t place = 0; place < N; place++) {
    int32_t behind = covers[place].behind, ahead = covers[place].ahead;
    bool wraps = ahead <= behind,
         around = wraps ? instance > behind || instance < ahead : instance > behind && instance < ahead;
    if (present[place] && around) return place;
  }
  return -1;
}

START_TEST(the_first_is_that_of_all) {
  seed = (uint64_t)_i;
  pl_arena arena = {0};
  pl_covers covers = {0};
  pl_cover of[N];
  bool present[N] = {false};
  int32_t n_instances = 1 + draw(70);
  ok(pl_covers_make(&arena, n_instances, N, &covers));
  for (int32_t step = 0; step < 2000; step++) {
    int32_t place = draw(N), instance = draw(n_instances);
    if (draw(3) == 0) {
      present[place] = false;
      pl_covers_remove(&covers, place);
    } else if (draw(2) == 0) {
      present[place] = true;
      of[place] = (pl_cover){draw(n_instances), draw(n_instances)};
      ok(pl_covers_set(&covers, place, of[place]));
    }
    ck_assert_int_eq(pl_covers_first(&covers, instance), first_of_all(of, present, instance));
  }
  pl_covers_free(&covers);
  pl_arena_free(&arena);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("covers");
  TCase *tests = tcase_create("all");
  tcase_add_loop_test(tests, the_first_is_that_of_all, 0, 50);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
