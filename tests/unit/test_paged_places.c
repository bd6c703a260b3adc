/* Offline placement in pages of virtual memory: by hand, and on random items that no byte of the arena is two items' at
 * a time, and that what needs whole pages once takes no more of them than live at a time. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "plan/mapping.h"
#include "planner/memory/paged_places.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

enum { POSITIONS = 40, MOST_ITEMS = 60 };
static const int64_t PAGE = 1024;

static pl_item item(int64_t bytes, int32_t start, int32_t end) {
  return (pl_item){.bytes = bytes, .address = PLANC_BLANK, .spans = {{start, end}, {0, 0}}};
}

/* Places items and holds them against each other, byte by byte of each position. Returns the arena's pages. */
static int64_t place(pl_item *items, int32_t n) {
  pl_arena arena = {0};
  planc_virtual_memory memory;
  pl_translation translation;
  bool is_placed;
  ok(pl_place_in_pages(&arena, items, n, PAGE, &is_placed, &memory));
  ck_assert(is_placed);
  ok(pl_translation_make(PAGE, memory.mappings, memory.n, &arena, &translation));
  ck_assert(memory.paged);
  ck_assert_int_eq(memory.chunk_bytes, PAGE);
  ck_assert_int_eq(memory.arena_bytes % PAGE, 0);
  for (int32_t m = 0; m < memory.n; m++) {
    ck_assert_int_ge(memory.mappings[m].first, 0);
    ck_assert_int_le((memory.mappings[m].first + memory.mappings[m].n) * PAGE, memory.arena_bytes);
  }
  unsigned char *taken = malloc((size_t)memory.arena_bytes + 1);
  ck_assert_ptr_nonnull(taken);
  for (int32_t p = 0; p < POSITIONS; p++) {
    memset(taken, 0, (size_t)memory.arena_bytes);
    for (int32_t i = 0; i < n; i++) {
      const pl_lifetime *spans = items[i].spans;
      bool lives = (p >= spans[0].start && p < spans[0].end) || (p >= spans[1].start && p < spans[1].end);
      ck_assert_int_ge(items[i].address, 0);
      ck_assert_int_eq(items[i].address % PLANC_ALIGNMENT, 0);
      for (int64_t at = 0; lives && at < items[i].bytes;) {
        pl_piece piece = pl_translate(&translation, items[i].address + at, items[i].bytes - at);
        for (int64_t b = piece.address; b < piece.address + piece.bytes; b++) {
          ck_assert_msg(!taken[b], "position %d: item %d, of %lld bytes, has byte %lld of another", p, i,
                        (long long)items[i].bytes, (long long)b);
          taken[b] = 1;
        }
        at += piece.bytes;
      }
    }
  }
  free(taken);
  pl_arena_free(&arena);
  return memory.arena_bytes / PAGE;
}

START_TEST(nothing_needs_nothing) {
  ck_assert_int_eq(place(NULL, 0), 0);
  pl_item items[] = {item(0, 0, 5), item(5 * PAGE, 3, 3)};
  ck_assert_int_eq(place(items, 2), 0);
}
END_TEST

/* Two of two pages end beside one that stays between them in one piece of memory: four pages are free then, which no
 * range of four is. */
START_TEST(an_item_has_pages_that_are_apart) {
  pl_item items[] = {item(2 * PAGE, 0, 3), item(2 * PAGE, 1, 9), item(2 * PAGE, 2, 4), item(4 * PAGE, 5, 8)};
  ck_assert_int_eq(place(items, 4), 6);
}
END_TEST

/* One page and a half each: the halves are of one page. */
START_TEST(two_items_have_parts_of_a_page) {
  pl_item items[] = {item(3 * PAGE / 2, 1, 5), item(3 * PAGE / 2, 2, 6)};
  ck_assert_int_eq(place(items, 2), 3);
}
END_TEST

/* It comes back to its pages, so that what lives longer has others while it is away, and what does not has these. */
START_TEST(what_comes_back_finds_its_pages) {
  pl_item items[] = {item(2 * PAGE, 0, 2), item(2 * PAGE, 3, 6), item(2 * PAGE, 4, 9)};
  items[0].spans[1] = (pl_lifetime){7, 10};
  ck_assert_int_eq(place(items, 3), 4);
  pl_item again[] = {item(2 * PAGE, 0, 2), item(2 * PAGE, 3, 6)};
  again[0].spans[1] = (pl_lifetime){7, 10};
  ck_assert_int_eq(place(again, 2), 2);
}
END_TEST

/* The pages of what is small are others' while nothing small is on them. */
START_TEST(pages_that_are_shared_are_lent) {
  pl_item items[] = {item(PAGE / 2, 0, 2), item(PAGE / 2, 0, 3), item(2 * PAGE, 4, 6)};
  ck_assert_int_eq(place(items, 3), 2);
}
END_TEST

START_TEST(too_many_pages_are_refused) {
  pl_arena arena = {0};
  planc_virtual_memory memory;
  pl_item items[] = {item((INT64_C(1) << 23) * PAGE, 1, 2)};
  bool is_placed;
  ok(pl_place_in_pages(&arena, items, 1, PAGE, &is_placed, &memory));
  ck_assert(!is_placed);
  assert_fails(pl_map_one_piece(&arena, PAGE, items[0].bytes, &memory), PLANC_USAGE, "8388608 pages");
  pl_arena_free(&arena);
}
END_TEST

static pl_item random_item(uint64_t *state, bool whole) {
  int32_t start = (int32_t)rand_below(state, POSITIONS - 1),
          end = start + 1 + (int32_t)rand_below(state, POSITIONS - start);
  pl_item out = item(whole ? PAGE * (2 + rand_below(state, 5)) : rand_below(state, 6 * PAGE), start, end);
  if (whole || rand_below(state, 4) > 0 || end >= POSITIONS - 1) return out;
  int32_t back = end + (int32_t)rand_below(state, POSITIONS - end);
  out.spans[1] = (pl_lifetime){back, back + 1 + (int32_t)rand_below(state, POSITIONS - back)};
  return out;
}

START_TEST(random_items_have_no_byte_in_common) {
  uint64_t state = 77 + (uint64_t)_i;
  pl_item items[MOST_ITEMS];
  int32_t n = 1 + (int32_t)rand_below(&state, MOST_ITEMS);
  for (int32_t i = 0; i < n; i++) items[i] = random_item(&state, false);
  place(items, n);
}
END_TEST

START_TEST(whole_pages_that_live_once_are_packed_without_loss) {
  uint64_t state = 1077 + (uint64_t)_i;
  pl_item items[MOST_ITEMS];
  pl_arena arena = {0};
  int64_t *live, most = 0;
  int32_t n = 1 + (int32_t)rand_below(&state, MOST_ITEMS);
  for (int32_t i = 0; i < n; i++) items[i] = random_item(&state, true);
  ok(pl_items_live(&arena, items, n, POSITIONS, &live));
  for (int32_t p = 0; p < POSITIONS; p++) most = live[p] > most ? live[p] : most;
  ck_assert_int_eq(place(items, n), most / PAGE);
  pl_arena_free(&arena);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("paged places");
  TCase *tests = tcase_create("paged places");
  tcase_add_test(tests, nothing_needs_nothing);
  tcase_add_test(tests, an_item_has_pages_that_are_apart);
  tcase_add_test(tests, two_items_have_parts_of_a_page);
  tcase_add_test(tests, what_comes_back_finds_its_pages);
  tcase_add_test(tests, pages_that_are_shared_are_lent);
  tcase_add_test(tests, too_many_pages_are_refused);
  tcase_add_loop_test(tests, random_items_have_no_byte_in_common, 0, sampled(800));
  tcase_add_loop_test(tests, whole_pages_that_live_once_are_packed_without_loss, 0, sampled(800));
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
