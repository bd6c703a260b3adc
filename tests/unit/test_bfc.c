/* TensorFlow's allocator: its rules by hand, and random requests beside a slow allocator that looks at every chunk of
 * the region in order. */
#include <check.h>
#include <string.h>

#include "planner/memory/bfc.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

#define KIB INT64_C(1024)
#define MIB (1024 * KIB)

static int64_t take(pl_bfc *b, int64_t bytes, int32_t *handle) {
  int64_t address;
  ok(pl_bfc_take(b, bytes, handle, &address));
  return address;
}

START_TEST(chunks_are_split_where_much_is_left) {
  pl_bfc b;
  int32_t a, c, d, e;
  ok(pl_bfc_init(&b, 1024 * MIB));
  ck_assert_int_eq(take(&b, 100 * MIB, &a), 0);
  ck_assert_int_eq(take(&b, 1, &c), 100 * MIB);
  ck_assert_int_eq(take(&b, 300 * MIB, &d), 100 * MIB + 256); /* bytes come in multiples of 256 */
  ok(pl_bfc_give(&b, a));
  ck_assert_int_eq(take(&b, 51 * MIB, &a), 0); /* less than twice as large, less than 128 MiB left: it is not split */
  ck_assert_int_eq(take(&b, 40 * MIB, &e), 400 * MIB + 256);
  ok(pl_bfc_give(&b, a));
  ck_assert_int_eq(take(&b, 50 * MIB, &a), 0); /* twice as large */
  ok(pl_bfc_give(&b, d));
  ck_assert_int_eq(take(&b, 40 * MIB, &d), 50 * MIB);         /* the best fit */
  ck_assert_int_eq(take(&b, 172 * MIB, &d), 100 * MIB + 256); /* 128 MiB are left */
  ck_assert_int_eq(take(&b, 128 * MIB, &d), 272 * MIB + 256);
  pl_bfc_free(&b);
}
END_TEST

START_TEST(neighbours_coalesce) {
  pl_bfc b;
  int32_t a, c, d;
  ok(pl_bfc_init(&b, 300 * MIB));
  take(&b, 100 * MIB, &a);
  take(&b, 100 * MIB, &c);
  take(&b, 100 * MIB, &d);
  ck_assert(!pl_bfc_fits(&b, 1));
  ok(pl_bfc_give(&b, a));
  ok(pl_bfc_give(&b, d));
  ck_assert(pl_bfc_fits(&b, 100 * MIB));
  ck_assert(!pl_bfc_fits(&b, 100 * MIB + 1));
  ok(pl_bfc_give(&b, c));
  ck_assert_int_eq(take(&b, 300 * MIB, &a), 0);
  pl_bfc_free(&b);
}
END_TEST

START_TEST(what_finds_no_place_lies_beyond) {
  pl_bfc b;
  int32_t a, c, d;
  ok(pl_bfc_init(&b, 100 * MIB));
  ck_assert_int_eq(take(&b, 50 * MIB, &a), 0);
  ck_assert_int_eq(take(&b, 60 * MIB, &c), 100 * MIB);
  ck_assert_int_eq(take(&b, 60 * MIB, &d), 160 * MIB);
  ok(pl_bfc_give(&b, c));
  ck_assert_int_eq(take(&b, 30 * MIB, &c), 50 * MIB);
  ck_assert_int_eq(take(&b, 45 * MIB, &c), 100 * MIB);
  assert_fails(pl_bfc_take(&b, INT64_MAX / 3, &c, &(int64_t){0}), PLANC_BAD_INPUT, "overflow");
  pl_bfc_free(&b);
}
END_TEST

/* --- A slow allocator with the same rules ------------------------------------------------------------------------- */

enum { MOST_CHUNKS = 200, MOST_LIVE = 40, STEPS = 2000 };
#define CAPACITY (2048 * MIB)

typedef struct chunk {
  int64_t bytes;
  bool used;
} chunk;

typedef struct slow {
  chunk of[MOST_CHUNKS]; /* in order of addresses */
  int n;
} slow;

static int64_t slow_take(slow *s, int64_t bytes) {
  int best = -1;
  bytes = (bytes + 255) / 256 * 256;
  for (int i = 0; i < s->n; i++) {
    if (s->of[i].used || s->of[i].bytes < bytes) continue;
    if (best < 0 || s->of[i].bytes < s->of[best].bytes) best = i;
  }
  if (best < 0) return -1;
  int64_t rest = s->of[best].bytes - bytes, address = 0;
  if (s->of[best].bytes >= 2 * bytes || rest >= 128 * MIB) {
    memmove(&s->of[best + 1], &s->of[best], (size_t)(s->n++ - best) * sizeof s->of[0]);
    s->of[best].bytes = bytes;
    s->of[best + 1] = (chunk){rest, false};
  }
  s->of[best].used = true;
  for (int i = 0; i < best; i++) address += s->of[i].bytes;
  return address;
}

static void slow_give(slow *s, int64_t address) {
  int i = 0, kept = 0;
  for (; address > 0; i++) address -= s->of[i].bytes;
  s->of[i].used = false;
  for (int k = 1; k < s->n; k++) {
    if (!s->of[kept].used && !s->of[k].used) {
      s->of[kept].bytes += s->of[k].bytes;
    } else {
      s->of[++kept] = s->of[k];
    }
  }
  s->n = kept + 1;
}

START_TEST(random_requests_go_where_the_rules_say) {
  uint64_t state = (uint64_t)_i;
  pl_bfc b;
  slow s = {.of = {{CAPACITY, false}}, .n = 1};
  struct {
    int64_t at;
    int32_t handle;
  } live[MOST_LIVE];
  int n_live = 0, refused = 0;
  ok(pl_bfc_init(&b, CAPACITY));
  for (int step = 0; step < STEPS; step++) {
    if (n_live == MOST_LIVE || (n_live > 0 && rand_chance(&state, 40))) {
      int64_t gone = rand_below(&state, n_live);
      ok(pl_bfc_give(&b, live[gone].handle));
      slow_give(&s, live[gone].at);
      live[gone] = live[--n_live];
      continue;
    }
    int64_t bytes = 1 + rand_below(&state, rand_chance(&state, 30) ? 400 * MIB : 40 * MIB);
    int64_t expected = slow_take(&s, bytes);
    ck_assert_int_eq(pl_bfc_fits(&b, bytes), expected >= 0);
    if (expected < 0) {
      refused++;
      continue;
    }
    live[n_live].at = take(&b, bytes, &live[n_live].handle);
    ck_assert_int_eq(live[n_live].at, expected);
    n_live++;
  }
  ck_assert_int_gt(refused, 0);
  pl_bfc_free(&b);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("bfc");
  TCase *tests = tcase_create("all");
  tcase_add_test(tests, chunks_are_split_where_much_is_left);
  tcase_add_test(tests, neighbours_coalesce);
  tcase_add_test(tests, what_finds_no_place_lies_beyond);
  tcase_add_loop_test(tests, random_requests_go_where_the_rules_say, 0, 40);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
