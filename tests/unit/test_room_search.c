/* The search for the largest room whose result fits: on made-up results that grow with the room, it ends near the
 * largest that fits; what does not follow the room still ends with the least. The search for the first that fits: it
 * follows fragmentation and gives up where there is more to it. */
#include <check.h>

#include "planner/choose/room_search.h"
#include "tests/support/unit.h"

enum { ROOM = 1 << 20, UNIT = 16 };

typedef struct found {
  int64_t fits, least_tried, tries;
} found;

/* Tries rooms up to `limit` with success; others miss by `excess` bytes, or by as much as they are larger with 0. */
static found search(int64_t least, int64_t limit, int64_t excess) {
  pl_room_search s = pl_room_search_from(ROOM, least, UNIT);
  found out = {.least_tried = ROOM};
  bool more;
  do {
    int64_t over = s.room > limit ? (excess ? excess : s.room - limit) : 0;
    out.tries++;
    if (s.room < out.least_tried) out.least_tried = s.room;
    ck_assert_int_ge(s.room, least);
    ck_assert_int_le(s.room, ROOM);
    more = pl_room_search_on(&s, over);
  } while (more);
  out.fits = s.fits;
  return out;
}

START_TEST(what_fits_at_once_is_taken) {
  found f = search(0, ROOM, 0);
  ck_assert_int_eq(f.fits, ROOM);
  ck_assert_int_eq(f.tries, 1);
}
END_TEST

START_TEST(an_excess_that_says_all_is_followed) {
  found f = search(100, 70000, 0);
  ck_assert_int_le(f.fits, 70000);
  ck_assert_int_gt(f.fits, 70000 - UNIT);
}
END_TEST

/* The excess says too little to come down to the limit, or far too much. */
START_TEST(bisection_raises_what_fits) {
  for (int64_t limit = ROOM / 16; limit < ROOM; limit += ROOM / 16) {
    static const int64_t excesses[] = {UNIT, ROOM / 40, 2 * ROOM};
    for (int i = 0; i < 3; i++) {
      found f = search(100, limit, excesses[i]);
      ck_assert_int_ge(f.fits, limit - ROOM / 64);
      ck_assert_int_le(f.fits, limit);
    }
  }
}
END_TEST

START_TEST(the_least_is_tried_before_giving_up) {
  for (int64_t excess = UNIT; excess < 4 * (int64_t)ROOM; excess *= 4) {
    found f = search(100, 99, excess);
    ck_assert_int_eq(f.fits, -1);
    ck_assert_int_eq(f.least_tried, 100);
  }
  ck_assert_int_eq(search(100, 100, UNIT).fits >= 100, 1);
}
END_TEST

/* --- The first that fits ------------------------------------------------------------------------------------------ */

/* What is made for a room takes `more` bytes, and a thousandth of the room, beyond it. Returns the tries. */
static int go_down(int64_t room, int64_t budget, int64_t more, int64_t *out_room) {
  pl_room_search s = pl_room_search_from(room, 0, UNIT);
  for (int tries = 1;; tries++) {
    int64_t excess = s.room + s.room / 1000 + more - budget;
    *out_room = s.room;
    if (excess <= 0 || !pl_room_search_down(&s, excess)) return excess <= 0 ? tries : -tries;
    ck_assert_int_ge(s.room, 0);
    ck_assert_int_le(s.room, *out_room - excess);
  }
}

START_TEST(fragmentation_is_followed_to_the_first_room_that_fits) {
  for (int64_t more = 0; more < ROOM / 2; more += ROOM / 16) {
    int64_t room;
    ck_assert_int_gt(go_down(ROOM, ROOM, more, &room), 0);
    ck_assert_int_gt(room, ROOM - more - ROOM / 500);
  }
}
END_TEST

/* What is always too much by as much ends after seven tries where that is little, after six where it is more than a
 * 32nd of the room; and no room is below the least. */
START_TEST(what_does_not_follow_the_room_is_given_up) {
  static const struct {
    int64_t excess;
    int tries;
  } cases[] = {{UNIT, 7}, {ROOM / 20, 6}, {ROOM / 2, 3}, {ROOM + 1, 1}};
  for (int i = 0; i < 4; i++) {
    pl_room_search s = pl_room_search_from(ROOM, 0, UNIT);
    int tries = 1;
    while (pl_room_search_down(&s, cases[i].excess)) tries++;
    ck_assert_int_eq(tries, cases[i].tries);
  }
}
END_TEST

/* What always gets a little less is tried ten times. */
START_TEST(what_follows_slowly_is_given_up) {
  pl_room_search s = pl_room_search_from(ROOM, 0, UNIT);
  int tries = 1;
  while (pl_room_search_down(&s, 1000 - tries)) tries++;
  ck_assert_int_eq(tries, 10);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("room search");
  TCase *tests = tcase_create("all");
  tcase_add_test(tests, what_fits_at_once_is_taken);
  tcase_add_test(tests, an_excess_that_says_all_is_followed);
  tcase_add_test(tests, bisection_raises_what_fits);
  tcase_add_test(tests, the_least_is_tried_before_giving_up);
  tcase_add_test(tests, fragmentation_is_followed_to_the_first_room_that_fits);
  tcase_add_test(tests, what_does_not_follow_the_room_is_given_up);
  tcase_add_test(tests, what_follows_slowly_is_given_up);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
