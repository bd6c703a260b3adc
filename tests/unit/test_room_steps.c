/* Steps of room, beside searches that are made up: what they find holds from some lack of room on, and is much slower
 * from another one on. */
#include <check.h>

#include "planc/plan.h"
#include "planner/auto/room_steps.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

enum { ROUNDS = 12 };
static const int64_t ROOM = (int64_t)1 << 30, FAST = 1000, SLOW = 1200;

typedef struct search {
  int64_t holds_from, slow_from, nothing_from; /* lacking */
} search;

static pl_room_outcome outcome_of(const search *of, int64_t lacking) {
  const bool found = lacking < of->nothing_from;
  return (pl_room_outcome){.ns = !found                     ? INT64_MAX
                                 : lacking >= of->slow_from ? SLOW
                                                            : FAST,
                           .is_tried = found,
                           .holds = found && lacking >= of->holds_from};
}

/* Goes on until something holds that takes at most `ns`; whether it comes to that. What has become slow stays so, until
 * the search goes back. */
static bool comes_to(const search *of, int64_t ns) {
  pl_room_steps steps = pl_room_steps_in(ROOM);
  bool stays_slow = false;
  for (int k = 0; k < ROUNDS; k++) {
    pl_room_outcome outcome = outcome_of(of, steps.lacking);
    if (stays_slow) outcome.ns = SLOW;
    if (outcome.holds && outcome.ns <= ns) return true;
    pl_room_steps_on(&steps, &outcome);
    stays_slow = outcome.ns == SLOW && !steps.goes_back;
  }
  return false;
}

START_TEST(begins_in_all_of_the_room_and_comes_to_what_holds) {
  uint64_t state = 1;
  ck_assert_int_eq(pl_room_steps_in(ROOM).lacking, 0);
  for (int k = 0; k < 1000; k++) {
    const search of = {.holds_from = rand_below(&state, ROOM / 16), .slow_from = INT64_MAX, .nothing_from = INT64_MAX};
    ck_assert(comes_to(&of, FAST));
  }
}
END_TEST

START_TEST(finds_what_holds_ahead_of_a_cliff) {
  uint64_t state = 2;
  for (int k = 0; k < 1000; k++) {
    const int64_t holds = rand_below(&state, ROOM / 1024) + 1;
    const search of = {.holds_from = holds,
                       .slow_from = ROOM / 1024 + 1 + rand_below(&state, ROOM / 256 - ROOM / 1024),
                       .nothing_from = INT64_MAX};
    ck_assert(comes_to(&of, FAST));
  }
}
END_TEST

START_TEST(goes_beyond_a_cliff_where_nothing_holds_ahead_of_it) {
  uint64_t state = 3;
  for (int k = 0; k < 1000; k++) {
    const int64_t cliff = 1 + rand_below(&state, ROOM / 256);
    const search of = {.holds_from = cliff, .slow_from = cliff, .nothing_from = INT64_MAX};
    ck_assert(!comes_to(&of, FAST));
    ck_assert(comes_to(&of, SLOW));
  }
}
END_TEST

START_TEST(goes_back_to_what_is_kept_from_more_room) {
  uint64_t state = 4;
  int32_t n_back = 0;
  for (int k = 0; k < 1000; k++) {
    const search of = {.holds_from = rand_below(&state, ROOM / 32),
                       .slow_from = rand_below(&state, ROOM / 64),
                       .nothing_from = ROOM / 64 + rand_below(&state, ROOM / 32)};
    pl_room_steps steps = pl_room_steps_in(ROOM);
    int64_t kept = INT64_MAX, kept_ns = INT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
      const int64_t lacking = steps.lacking;
      const pl_room_outcome outcome = outcome_of(&of, lacking);
      pl_room_steps_on(&steps, &outcome);
      ck_assert_int_ge(steps.lacking, 0);
      ck_assert(!steps.keeps || !steps.goes_back);
      if (steps.goes_back) {
        ck_assert_int_lt(kept, steps.lacking);
        ck_assert_int_lt(steps.lacking, lacking);
        ck_assert(pl_is_much_slower(outcome.ns, kept_ns));
        n_back++;
      }
      if (!steps.keeps) continue;
      ck_assert(outcome.ns < INT64_MAX && !outcome.holds);
      kept = lacking;
      kept_ns = outcome.ns;
    }
  }
  ck_assert_int_gt(n_back, 100);
}
END_TEST

START_TEST(lacks_less_where_twice_in_turn_nothing_is_found) {
  const pl_room_outcome does_not_hold = {.ns = FAST, .is_tried = true}, nothing = {.ns = INT64_MAX};
  pl_room_steps steps = pl_room_steps_in(ROOM);
  for (int k = 0; k < 3; k++) pl_room_steps_on(&steps, &does_not_hold);
  const int64_t lacking = steps.lacking;
  pl_room_steps_on(&steps, &nothing);
  ck_assert_int_eq(steps.lacking, lacking);
  pl_room_steps_on(&steps, &nothing);
  ck_assert_int_lt(steps.lacking, lacking);
  for (int k = 0; k < 3 * ROUNDS; k++) {
    pl_room_steps_on(&steps, &does_not_hold);
    ck_assert_int_lt(steps.lacking, lacking);
  }
}
END_TEST

START_TEST(lacks_no_more_at_once_than_what_pages_came_to_beyond) {
  const pl_room_outcome beyond = {.ns = FAST, .is_tried = true, .beyond = 2 << 20};
  pl_room_steps steps = pl_room_steps_in(ROOM);
  pl_room_steps_on(&steps, &beyond);
  ck_assert_int_eq(steps.lacking, 2 << 20);
}
END_TEST

START_TEST(steps_of_a_small_room_are_no_finer_than_addresses) {
  const pl_room_outcome does_not_hold = {.ns = FAST, .is_tried = true},
                        holds = {.ns = FAST, .is_tried = true, .holds = true};
  pl_room_steps steps = pl_room_steps_in((int64_t)1 << 17);
  for (int k = 0; k < ROUNDS; k++) {
    const int64_t before = steps.lacking;
    pl_room_steps_on(&steps, k % 2 ? &holds : &does_not_hold);
    ck_assert_int_ge(before < steps.lacking ? steps.lacking - before : before - steps.lacking, PLANC_ALIGNMENT);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("room_steps");
  TCase *tests = tcase_create("all");
  tcase_add_test(tests, begins_in_all_of_the_room_and_comes_to_what_holds);
  tcase_add_test(tests, finds_what_holds_ahead_of_a_cliff);
  tcase_add_test(tests, goes_beyond_a_cliff_where_nothing_holds_ahead_of_it);
  tcase_add_test(tests, goes_back_to_what_is_kept_from_more_room);
  tcase_add_test(tests, lacks_less_where_twice_in_turn_nothing_is_found);
  tcase_add_test(tests, lacks_no_more_at_once_than_what_pages_came_to_beyond);
  tcase_add_test(tests, steps_of_a_small_room_are_no_finer_than_addresses);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
