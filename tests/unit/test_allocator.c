/* Virtual memory whose chunks small data shares: who gets which kind of chunk, by hand, and on random requests that no
 * byte of the arena is given out twice and that nothing is refused that there are chunks for. */
#include <check.h>
#include <stdlib.h>

#include "planner/memory/allocator.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

enum { CHUNK = 4096 };

/* -1 = there was no room, else the address. */
static int64_t take(pl_allocator *a, int64_t bytes, int32_t *handle) {
  int64_t address;
  ok(pl_allocator_take(a, bytes, handle, &address));
  return *handle < 0 ? -1 : address;
}

START_TEST(what_is_no_larger_than_a_chunk_shares_chunks) {
  pl_allocator a;
  int32_t x, y, z, w;
  ok(pl_allocator_init_vmm(&a, CHUNK, 4));
  ck_assert_int_eq(take(&a, 100, &x), 0);
  ck_assert_int_eq(take(&a, 1000, &y), 512);
  ck_assert_int_eq(take(&a, CHUNK, &z), CHUNK);
  ck_assert_int_eq(take(&a, CHUNK + 1, &w), 2 * CHUNK);
  ck_assert_int_eq(pl_allocator_arena(&a), 4 * CHUNK);
  ck_assert_int_eq(take(&a, CHUNK, &w), -1);
  ck_assert_int_eq(take(&a, 2000, &w), 1536);
  pl_allocator_free(&a);
}
END_TEST

START_TEST(either_side_gives_chunks_that_it_does_not_use) {
  pl_allocator a;
  int32_t x, y, z, w, v;
  ok(pl_allocator_init_vmm(&a, CHUNK, 4));
  take(&a, 3 * CHUNK, &x);
  take(&a, CHUNK, &y);
  ok(pl_allocator_give(&a, x));
  ck_assert_int_ge(take(&a, CHUNK, &z), 0);
  ck_assert_int_ge(take(&a, 10, &w), 0);
  ck_assert_int_ge(take(&a, 20, &v), 0);
  ck_assert_int_eq(take(&a, 2 * CHUNK, &x), -1);
  /* Of the chunks of y, z, w and v, the first two are free as a whole. */
  ok(pl_allocator_give(&a, y));
  ok(pl_allocator_give(&a, z));
  ok(pl_allocator_give(&a, v));
  ck_assert_int_eq(take(&a, 4 * CHUNK, &x), -1);
  ck_assert_int_ge(take(&a, 3 * CHUNK, &x), 0);
  ck_assert_int_eq(pl_allocator_arena(&a), 4 * CHUNK);
  pl_allocator_free(&a);
}
END_TEST

/* Caching rounds up: what is then larger than a chunk has chunks of its own. */
START_TEST(chunks_may_be_smaller_than_what_is_rounded_to) {
  pl_allocator a;
  int32_t x, y;
  ok(pl_allocator_init_vmm(&a, 256, 2));
  ck_assert_int_eq(take(&a, 100, &x), 0);
  ck_assert_int_eq(take(&a, 256, &y), 256);
  ck_assert_int_eq(take(&a, 1, &y), -1);
  ok(pl_allocator_give(&a, x));
  ck_assert_int_eq(take(&a, 1, &y), 0);
  pl_allocator_free(&a);
}
END_TEST

/* --- Random requests ---------------------------------------------------------------------------------------------- */

enum { MOST_LIVE = 60, STEPS = 3000, MOST_CHUNKS = 40 };

typedef struct request {
  int32_t handle;
  int64_t address, bytes;
} request;

typedef struct judge {
  pl_allocator a;
  uint64_t state;
  int64_t chunk_bytes;
  request live[MOST_LIVE];
  int n_live, refused;
} judge;

static bool small(const judge *j, int64_t bytes) {
  return pl_caching_size(bytes) <= j->chunk_bytes;
}

/* Where in the arena an address is. */
static int64_t arena_address(const judge *j, int64_t address) {
  return j->a.chunks.of.data[address / j->chunk_bytes] * j->chunk_bytes + address % j->chunk_bytes;
}

static int by_address(const void *a, const void *b) {
  const request *x = a, *y = b;
  return (x->address > y->address) - (x->address < y->address);
}

/* The chunks that something is in. No two pieces may share a byte, nor a large one its chunk. */
static int64_t chunks_in_use(const judge *j) {
  request pieces[MOST_LIVE * MOST_CHUNKS];
  int64_t n = 0, used = 0, last = -1;
  for (int i = 0; i < j->n_live; i++) {
    const request *it = &j->live[i];
    for (int64_t at = 0; at < it->bytes; at += j->chunk_bytes) {
      int64_t left = it->bytes - at, part = left < j->chunk_bytes ? left : j->chunk_bytes;
      if (small(j, it->bytes)) ck_assert_int_le(it->address % j->chunk_bytes + it->bytes, j->chunk_bytes);
      if (!small(j, it->bytes)) part = j->chunk_bytes;
      pieces[n++] = (request){.address = arena_address(j, it->address + at), .bytes = part};
    }
  }
  qsort(pieces, (size_t)n, sizeof *pieces, by_address);
  for (int64_t i = 0; i < n; i++) {
    if (i > 0) ck_assert_int_le(pieces[i - 1].address + pieces[i - 1].bytes, pieces[i].address);
    used += pieces[i].address / j->chunk_bytes != last;
    last = pieces[i].address / j->chunk_bytes;
  }
  ck_assert_int_le((last + 1) * j->chunk_bytes, pl_allocator_arena(&j->a));
  return used;
}

static void request_some(judge *j) {
  request *it = &j->live[j->n_live];
  bool large = rand_chance(&j->state, 30);
  it->bytes = 1 + rand_below(&j->state, large ? 9 * j->chunk_bytes : j->chunk_bytes);
  it->address = take(&j->a, it->bytes, &it->handle);
  if (it->address >= 0) {
    j->n_live++;
    return;
  }
  int64_t needed = small(j, it->bytes) ? 1 : pl_chunks_needed(&j->a.chunks, it->bytes);
  ck_assert_int_gt(chunks_in_use(j) + needed, j->a.chunks.most);
  j->refused++;
}

START_TEST(random_requests_are_refused_only_for_want_of_chunks) {
  static const int64_t chunks[] = {256, 512, 4096, 3 << 20};
  judge j = {.state = (uint64_t)_i, .chunk_bytes = chunks[_i % 4]};
  ok(pl_allocator_init_vmm(&j.a, j.chunk_bytes, 10 + rand_below(&j.state, MOST_CHUNKS - 10)));
  for (int step = 0; step < STEPS; step++) {
    if (j.n_live == MOST_LIVE || (j.n_live > 0 && rand_chance(&j.state, 45))) {
      int64_t gone = rand_below(&j.state, j.n_live);
      ok(pl_allocator_give(&j.a, j.live[gone].handle));
      j.live[gone] = j.live[--j.n_live];
    } else {
      request_some(&j);
    }
    chunks_in_use(&j);
    ck_assert_int_le(j.a.chunks.n_chunks, j.a.chunks.most);
  }
  ck_assert_int_gt(j.refused, 0);
  while (j.n_live > 0) ok(pl_allocator_give(&j.a, j.live[--j.n_live].handle));
  int32_t all;
  ck_assert_int_ge(take(&j.a, j.a.chunks.most * j.chunk_bytes, &all), 0); /* nothing is lost */
  pl_allocator_free(&j.a);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("allocator");
  TCase *tests = tcase_create("all");
  tcase_add_test(tests, what_is_no_larger_than_a_chunk_shares_chunks);
  tcase_add_test(tests, either_side_gives_chunks_that_it_does_not_use);
  tcase_add_test(tests, chunks_may_be_smaller_than_what_is_rounded_to);
  tcase_add_loop_test(tests, random_requests_are_refused_only_for_want_of_chunks, 0, 60);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
