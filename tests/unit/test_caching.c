/* Best fit with caching: its rules by hand, and random requests beside a slow allocator that follows the same rules
 * over a list of all segments. */
#include <check.h>
#include <stdlib.h>

#include "planner/memory/caching.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

#define KIB INT64_C(1024)
#define MIB (1024 * KIB)

/* -1 = there was no room, else the address. */
static int64_t take(pl_caching *c, int64_t bytes, int32_t *handle) {
  int64_t address;
  ok(pl_caching_take(c, bytes, handle, &address));
  return *handle < 0 ? -1 : address;
}

START_TEST(blocks_are_split_and_merged_within_themselves) {
  pl_caching c;
  int32_t a, b, d, e;
  ok(pl_caching_init(&c, 100 * MIB));
  ck_assert_int_eq(take(&c, 20 * MIB, &a), 0);
  ck_assert_int_eq(take(&c, 12 * MIB, &b), 20 * MIB);
  ok(pl_caching_give(&c, a));
  ck_assert_int_eq(take(&c, 8 * MIB, &a), 0);        /* a part of the free block */
  ck_assert_int_eq(take(&c, 10 * MIB, &d), 8 * MIB); /* the best fit is the rest of it */
  ok(pl_caching_give(&c, a));
  ok(pl_caching_give(&c, d));
  ck_assert_int_eq(take(&c, 20 * MIB, &a), 0); /* whole again */
  ok(pl_caching_give(&c, a));
  ok(pl_caching_give(&c, b));
  ck_assert_int_eq(take(&c, 32 * MIB, &e), 32 * MIB); /* two free neighbours, but two blocks */
  ck_assert_int_eq(c.top, 64 * MIB);
  pl_caching_free(&c);
}
END_TEST

START_TEST(idle_blocks_go_back_when_there_is_no_room) {
  pl_caching c;
  int32_t a, b, d;
  ok(pl_caching_init(&c, 40 * MIB));
  ck_assert_int_eq(take(&c, 20 * MIB, &a), 0);
  ck_assert_int_eq(take(&c, 12 * MIB, &b), 20 * MIB);
  ok(pl_caching_give(&c, a));
  ok(pl_caching_give(&c, b));
  ck_assert_int_eq(take(&c, 36 * MIB, &d), 0);
  ck_assert_int_eq(take(&c, 6 * MIB, &a), -1);
  ck_assert_int_eq(take(&c, 4 * MIB, &a), 36 * MIB);
  ok(pl_caching_give(&c, d));
  /* The block of 36 is split: a part in use keeps it from going back. */
  ck_assert_int_eq(take(&c, 2 * MIB, &b), 0);
  ck_assert_int_eq(take(&c, 36 * MIB, &d), -1);
  ck_assert_int_eq(take(&c, 34 * MIB, &d), 2 * MIB);
  pl_caching_free(&c);
}
END_TEST

START_TEST(small_requests_share_blocks) {
  pl_caching c;
  int32_t a, b, d, e;
  ok(pl_caching_init(&c, 5 * MIB));
  ck_assert_int_eq(take(&c, 1, &a), 0);
  ck_assert_int_eq(take(&c, 700, &b), 512); /* rounded up to 512 bytes */
  ck_assert_int_eq(take(&c, MIB, &d), MIB); /* still small: a block that it fills */
  ck_assert_int_eq(take(&c, 100 * KIB, &e), 1536);
  ok(pl_caching_give(&c, e));
  ck_assert_int_eq(take(&c, MIB + 1, &e), 2 * MIB); /* large: a block of its own, a multiple of 128 KiB */
  ck_assert_int_eq(c.top, 3 * MIB + 128 * KIB);
  ok(pl_caching_give(&c, e));
  ck_assert_int_eq(take(&c, MIB, &e), 3 * MIB + 128 * KIB); /* not of a large block, free as it is */
  pl_caching_free(&c);
}
END_TEST

/* Of a large block no piece of up to 1 MiB is split off. */
START_TEST(large_blocks_leave_no_small_rest) {
  pl_caching c;
  int32_t a, b;
  ok(pl_caching_init(&c, 16 * MIB));
  ck_assert_int_eq(take(&c, 4 * MIB, &a), 0);
  ok(pl_caching_give(&c, a));
  ck_assert_int_eq(take(&c, 3 * MIB, &a), 0);
  ck_assert_int_eq(take(&c, 2 * MIB, &b), 4 * MIB); /* nothing is left of the first */
  ok(pl_caching_give(&c, a));
  ck_assert_int_eq(take(&c, 3 * MIB - 128 * KIB, &a), 0);
  ok(pl_caching_give(&c, b));
  ck_assert_int_eq(take(&c, MIB + 128 * KIB, &b), 3 * MIB - 128 * KIB); /* its rest is more than 1 MiB */
  pl_caching_free(&c);
}
END_TEST

START_TEST(a_small_device_has_blocks_of_the_size_of_requests) {
  pl_caching c;
  int32_t a, b;
  ok(pl_caching_init(&c, 8 * KIB));
  ck_assert_int_eq(take(&c, 3 * KIB, &a), 0);
  ck_assert_int_eq(take(&c, 5 * KIB, &b), 3 * KIB);
  ok(pl_caching_give(&c, a));
  ck_assert_int_eq(take(&c, 4 * KIB, &a), -1);
  pl_caching_free(&c);
}
END_TEST

/* --- A slow allocator with the same rules ------------------------------------------------------------------------- */

enum { MOST_SEGMENTS = 400, MOST_LIVE = 30, STEPS = 1500 };

typedef struct segment {
  int64_t at, bytes, block_at, block_bytes;
  bool small, used;
} segment;

typedef struct slow {
  segment of[MOST_SEGMENTS]; /* in no order */
  int n;
  int64_t region; /* bytes of the device in one piece: all of it, or a chunk */
  int64_t n_regions, most_regions;
} slow;

static int best_free(const slow *s, bool small, int64_t bytes) {
  int best = -1;
  for (int i = 0; i < s->n; i++) {
    const segment *it = &s->of[i];
    if (it->used || it->small != small || it->bytes < bytes) continue;
    if (best < 0 || it->bytes < s->of[best].bytes || (it->bytes == s->of[best].bytes && it->at < s->of[best].at))
      best = i;
  }
  return best;
}

/* The smallest stretch between blocks, the lowest of several; -1 = none. */
static int64_t best_stretch(const slow *s, int64_t bytes) {
  int64_t best = -1, best_bytes = INT64_MAX;
  for (int64_t at = 0; at < s->n_regions * s->region;) {
    int64_t end = (at / s->region + 1) * s->region, next = -1;
    for (int i = 0; i < s->n; i++) {
      const segment *it = &s->of[i];
      if (it->block_at == at) next = at + it->block_bytes;
      if (it->block_at > at && it->block_at < end) end = it->block_at;
    }
    if (next < 0 && end - at >= bytes && end - at < best_bytes) {
      best = at;
      best_bytes = end - at;
    }
    at = next >= 0 ? next : end;
  }
  return best;
}

static int64_t slow_block(slow *s, bool small, int64_t bytes) {
  int64_t at = best_stretch(s, bytes);
  for (int i = 0; at < 0 && i < s->n;) {
    bool idle = !s->of[i].used && s->of[i].bytes == s->of[i].block_bytes;
    if (idle) s->of[i] = s->of[--s->n];
    i += !idle;
  }
  if (at < 0) at = best_stretch(s, bytes);
  if (at < 0 && s->n_regions < s->most_regions) at = s->region * s->n_regions++;
  if (at < 0) return -1;
  ck_assert_int_lt(s->n, MOST_SEGMENTS);
  s->of[s->n++] = (segment){at, bytes, at, bytes, small, false};
  return at;
}

static int64_t slow_take(slow *s, int64_t bytes) {
  bool small = bytes <= MIB;
  int64_t unit = small ? 512 : 128 * KIB, shared = MIB < s->region ? MIB : s->region;
  bytes = (bytes + unit - 1) / unit * unit;
  int found = best_free(s, small, bytes);
  if (found < 0 && slow_block(s, small, small ? shared : bytes) < 0 && (!small || slow_block(s, small, bytes) < 0))
    return -1;
  if (found < 0) found = best_free(s, small, bytes);
  segment *it = &s->of[found];
  it->used = true;
  int64_t rest = it->bytes - bytes;
  if (rest >= (small ? 512 : MIB + 1)) {
    ck_assert_int_lt(s->n, MOST_SEGMENTS);
    s->of[s->n++] = (segment){it->at + bytes, rest, it->block_at, it->block_bytes, small, false};
    it->bytes = bytes;
  }
  return it->at;
}

static void slow_give(slow *s, int64_t at) {
  for (int i = 0; i < s->n; i++) {
    if (s->of[i].at == at) s->of[i].used = false;
  }
  for (int i = 0; i < s->n; i++) {
    for (int k = 0; k < s->n; k++) {
      segment *left = &s->of[i], *right = &s->of[k];
      if (left->used || right->used || left->block_at != right->block_at || left->at + left->bytes != right->at)
        continue;
      left->bytes += right->bytes;
      *right = s->of[--s->n];
      i = k = -1;
      break;
    }
    if (i < 0) continue;
  }
}

static int64_t random_bytes(uint64_t *state) {
  if (rand_chance(state, 40)) return 1 + rand_below(state, rand_chance(state, 50) ? 3000 : MIB);
  return MIB + 1 + rand_below(state, (rand_chance(state, 20) ? 24 : 3) * MIB);
}

static void go_where_the_rules_say(pl_caching *c, slow *s, int seed) {
  uint64_t state = (uint64_t)seed;
  struct {
    int64_t at;
    int32_t handle;
  } live[MOST_LIVE];
  int n_live = 0, refused = 0;
  for (int step = 0; step < STEPS; step++) {
    if (n_live == MOST_LIVE || (n_live > 0 && rand_chance(&state, 40))) {
      int64_t gone = rand_below(&state, n_live);
      ok(pl_caching_give(c, live[gone].handle));
      slow_give(s, live[gone].at);
      live[gone] = live[--n_live];
      continue;
    }
    int64_t bytes = random_bytes(&state);
    if (bytes > s->region) bytes = 1 + bytes % s->region;
    int64_t at = take(c, bytes, &live[n_live].handle);
    ck_assert_int_eq(at, slow_take(s, bytes));
    live[n_live].at = at;
    if (at < 0) {
      refused++;
    } else {
      n_live++;
    }
  }
  ck_assert_int_gt(refused, 0);
  while (n_live > 0) ok(pl_caching_give(c, live[--n_live].handle));
}

START_TEST(random_requests_go_where_the_rules_say) {
  pl_caching c;
  static slow s;
  s = (slow){.region = 60 * MIB, .n_regions = 1, .most_regions = 1};
  int32_t all;
  ok(pl_caching_init(&c, s.region));
  go_where_the_rules_say(&c, &s, _i);
  ck_assert_int_eq(take(&c, s.region, &all), 0); /* nothing is lost */
  pl_caching_free(&c);
}
END_TEST

START_TEST(random_requests_go_where_the_rules_say_in_chunks) {
  static const int64_t sizes[] = {10 * MIB, 2 * MIB, 512 * KIB, 130 * KIB};
  pl_caching c;
  pl_chunks chunks = {.chunk_bytes = sizes[_i % 4], .most = 6};
  static slow s;
  s = (slow){.region = chunks.chunk_bytes, .most_regions = chunks.most};
  ok(pl_caching_init_chunks(&c, &chunks));
  go_where_the_rules_say(&c, &s, _i);
  ck_assert_int_eq(chunks.n_used, s.n_regions);
  ok(pl_caching_drain(&c));
  ck_assert_int_eq(chunks.n_used, 0);
  pl_caching_free(&c);
  pl_chunks_free(&chunks);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("caching");
  TCase *tests = tcase_create("all");
  tcase_add_test(tests, blocks_are_split_and_merged_within_themselves);
  tcase_add_test(tests, idle_blocks_go_back_when_there_is_no_room);
  tcase_add_test(tests, small_requests_share_blocks);
  tcase_add_test(tests, large_blocks_leave_no_small_rest);
  tcase_add_test(tests, a_small_device_has_blocks_of_the_size_of_requests);
  tcase_add_loop_test(tests, random_requests_go_where_the_rules_say, 0, 40);
  tcase_add_loop_test(tests, random_requests_go_where_the_rules_say_in_chunks, 0, 40);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
