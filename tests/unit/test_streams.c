/* The host backend with concurrent streams: order within a stream and by events, failures, paced copies, and arenas
 * that end where they end. */
#include <check.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/backend.h"
#include "runtime/host/host_memory.h"
#include "tests/support/graphtext.h"
#include "tests/support/unit.h"

static const planrt_backend *const host = &rt_host_backend;

static rt_device *open_streams(rt_device_options options) {
  rt_device *device;
  options.concurrent = true;
  ok(host->open(&options, &device));
  return device;
}

/* --- Order -------------------------------------------------------------------------------------------------------- */

enum { STEPS = 5000, ENTRIES = 2 * STEPS };

/* What host work saw: never two at once, each stream's in order. */
typedef struct journal {
  atomic_int inside;
  int32_t n;
  struct {
    int32_t stream;
    int64_t step;
  } entries[ENTRIES];
} journal;

static const int32_t streams[] = {0, 1};

static planc_status write_journal(void *user, const void *what, int64_t step) {
  journal *j = user;
  if (atomic_fetch_add(&j->inside, 1) != 0) return planc_error(PLANC_INTERNAL, "two at once");
  j->entries[j->n].stream = *(const int32_t *)what;
  j->entries[j->n++].step = step;
  atomic_fetch_sub(&j->inside, 1);
  return NULL;
}

/* Many times more work than a stream takes at once. */
START_TEST(streams_keep_their_order) {
  rt_device *device = open_streams((rt_device_options){.n_streams = 2});
  journal *j = calloc(1, sizeof *j);
  for (int64_t step = 0; step < STEPS; step++)
    for (int32_t s = 0; s < 2; s++) ok(host->host(device, s, write_journal, j, &streams[s], step));
  ok(host->synchronize(device));
  ck_assert_int_eq(j->n, ENTRIES);
  int64_t next[2] = {0};
  for (int32_t i = 0; i < j->n; i++) ck_assert_int_eq(j->entries[i].step, next[j->entries[i].stream]++);
  host->close(device);
  free(j);
}
END_TEST

/* Two streams hand a turn to and fro: with jitter nothing but the events keeps them in step. */
START_TEST(events_order_streams) {
  rt_device *device = open_streams((rt_device_options){.n_streams = 2, .n_events = 2, .jitter = 11});
  journal *j = calloc(1, sizeof *j);
  enum { TURNS = 300, BOTH = 600 };
  ok(host->record(device, 1, 1, -1));
  for (int64_t turn = 0; turn < TURNS; turn++) {
    ok(host->wait(device, 0, 1, turn - 1));
    ok(host->host(device, 0, write_journal, j, &streams[0], turn));
    ok(host->record(device, 0, 0, turn));
    ok(host->wait(device, 1, 0, turn));
    ok(host->host(device, 1, write_journal, j, &streams[1], turn));
    ok(host->record(device, 1, 1, turn));
  }
  ok(host->synchronize(device));
  ck_assert_int_eq(j->n, BOTH);
  for (int32_t i = 0; i < j->n; i++) {
    ck_assert_int_eq(j->entries[i].stream, i % 2);
    ck_assert_int_eq(j->entries[i].step, i / 2);
  }
  ck_assert(host->reached(device, 1, TURNS - 1) && !host->reached(device, 1, TURNS));
  host->forget(device);
  ck_assert(!host->reached(device, 1, -1));
  host->close(device);
  free(j);
}
END_TEST

/* --- Failures ----------------------------------------------------------------------------------------------------- */

static planc_status fail_at(void *user, const void *what, int64_t step) {
  (void)what;
  atomic_fetch_add((atomic_int *)user, 1);
  return step < 0 ? planc_error(PLANC_IO, "step %lld", (long long)step) : NULL;
}

START_TEST(a_failure_drops_the_rest) {
  rt_device *device = open_streams((rt_device_options){.n_streams = 2, .n_events = 1});
  atomic_int done = 0;
  ok(host->host(device, 0, fail_at, &done, NULL, 1));
  ok(host->host(device, 0, fail_at, &done, NULL, -7));
  for (int i = 0; i < 100; i++) ok(host->host(device, 0, fail_at, &done, NULL, -8));
  ok(host->record(device, 0, 0, 0));
  ok(host->wait(device, 1, 0, 0)); /* its record is dropped: the wait must end all the same */
  ok(host->host(device, 1, fail_at, &done, NULL, -9));
  assert_fails(host->synchronize(device), PLANC_IO, "step -7");
  ck_assert_int_eq(atomic_load(&done), 2);
  ok(host->synchronize(device));
  ok(host->host(device, 1, fail_at, &done, NULL, 2));
  ok(host->synchronize(device));
  ck_assert_int_eq(atomic_load(&done), 3);
  host->close(device);
}
END_TEST

START_TEST(a_wait_for_nothing_is_refused) {
  rt_device *device = open_streams((rt_device_options){.n_streams = 2, .n_events = 1});
  assert_fails(host->wait(device, 1, 0, 0), PLANC_INVALID_PLAN, "event 0");
  ok(host->record(device, 0, 0, 4));
  ok(host->wait(device, 1, 0, 4));
  assert_fails(host->wait(device, 1, 0, 5), PLANC_INVALID_PLAN, "event 0");
  ok(host->synchronize(device));
  host->close(device);
}
END_TEST

/* So long that all of them together do not end before the device is closed, however late that is. */
static planc_status linger(void *user, const void *what, int64_t step) {
  nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
  return fail_at(user, what, step);
}

START_TEST(closing_does_not_wait_for_the_rest) {
  rt_device *device = open_streams((rt_device_options){.n_streams = 3, .n_events = 1, .jitter = 5});
  atomic_int done = 0;
  for (int i = 0; i < 900; i++) ok(host->host(device, 0, linger, &done, NULL, 1));
  ok(host->record(device, 0, 0, 0));
  ok(host->wait(device, 1, 0, 0));
  host->close(device);
  ck_assert_int_lt(atomic_load(&done), 900);
}
END_TEST

/* --- Copies ------------------------------------------------------------------------------------------------------- */

START_TEST(copies_are_paced) {
  enum { BYTES = 100000, RATE = 1000000 };
  rt_device_options options = {
      .arena_bytes = 1 << 17, .host_arena_bytes = 1 << 17, .n_streams = 3, .link_bytes_per_s = RATE};
  rt_device *device = open_streams(options);
  rt_span out, in, within;
  char *arena = host->arena(device), *slots = host->host_arena(device);
  memset(arena, 7, BYTES);
  ok(host->copy(device, 0, RT_D2H, slots, arena, BYTES, &out));
  ok(host->synchronize(device));
  ck_assert_mem_eq(slots, arena, BYTES);
  ok(host->copy(device, 1, RT_H2D, arena, slots, BYTES, &in));
  ok(host->copy(device, 2, RT_D2D, arena + BYTES, arena + BYTES, 256, &within));
  ok(host->synchronize(device));
  ck_assert_int_ge(out.end_ns - out.start_ns, 100000000);
  ck_assert_int_ge(in.end_ns - in.start_ns, 100000000);
  ck_assert_int_ge(in.start_ns, out.end_ns);
  ck_assert_int_ge(within.end_ns, within.start_ns);
  host->close(device);
}
END_TEST

/* --- Memory ------------------------------------------------------------------------------------------------------- */

static const int64_t sizes[] = {0, 256, 4096, 4352, 1 << 20};

START_TEST(blocks_are_whole) {
  rt_block block;
  ok(rt_block_new(sizes[_i], "a block", &block));
  ck_assert_int_eq((int64_t)((uintptr_t)block.data % RT_ALIGNMENT), 0);
  for (int64_t i = 0; i < sizes[_i]; i++) ck_assert_int_eq(block.data[i], 0);
  memset(block.data, 1, (size_t)sizes[_i]);
  ok(rt_block_check(&block, "block"));
  rt_block_free(&block);
}
END_TEST

/* Four addresses for three pages: the first and the last are the same. */
START_TEST(pages_have_several_addresses) {
  int64_t page = sysconf(_SC_PAGESIZE);
  const planc_mapping mappings[] = {{2, 1}, {0, 2}, {2, 1}};
  rt_block block;
  ok(rt_block_map(3 * page, page, mappings, 3, "a block", &block));
  ck_assert_int_eq(block.bytes, 4 * page);
  for (int64_t i = 0; i < block.bytes; i++) ck_assert_int_eq(block.data[i], 0);
  block.data[5] = 1;
  block.data[page + 5] = 2;
  block.data[3 * page - 1] = 3;
  ck_assert_int_eq(block.data[3 * page + 5], 1);
  ck_assert_int_eq(block.data[3 * page + 6], 0);
  ck_assert_int_eq(block.data[page + 5], 2);
  ck_assert_int_eq(block.data[4 * page - 1], 0);
  ok(rt_block_check(&block, "block"));
  rt_block_free(&block);
  assert_fails(rt_block_map(3 * page, page / 2, mappings, 3, "a block", &block), PLANC_DEVICE, "not whole pages");
}
END_TEST

START_TEST(a_byte_beyond_mapped_pages_faults) {
  int64_t page = sysconf(_SC_PAGESIZE);
  const planc_mapping mapping = {0, 1};
  rt_block block;
  ok(rt_block_map(2 * page, page, &mapping, 1, "a block", &block));
  *(volatile char *)(block.data + (_i ? page : -1)) = 1;
}
END_TEST

static void touch_beyond(int64_t bytes) {
  rt_block block;
  ok(rt_block_new(bytes, "a block", &block));
  *(volatile char *)(block.data + bytes) = 1;
}
START_TEST(a_byte_beyond_faults) {
  touch_beyond(sizes[_i]);
}
END_TEST

START_TEST(bytes_around_a_block_are_noticed) {
  rt_block block;
  ok(rt_block_new(300, "a block", &block));
  block.data[300] = 0;
  assert_fails(rt_block_check(&block, "the block"), PLANC_INTERNAL, "the block was written 0 bytes behind");
  block.data[-3] = 0;
  assert_fails(rt_block_check(&block, "the block"), PLANC_INTERNAL, "the block was written 3 bytes before");
  rt_block_free(&block);
}
END_TEST

START_TEST(too_much_memory_is_refused) {
  rt_device *device;
  rt_device_options options = {.arena_bytes = INT64_C(1) << 60};
  assert_fails(host->open(&options, &device), PLANC_DEVICE, "no memory for an arena of 1152921504606846976 bytes");
  options.arena_bytes = sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
  assert_fails(host->open(&options, &device), PLANC_DEVICE, "no memory for an arena");
}
END_TEST

int main(void) {
  Suite *suite = suite_create("streams");
  TCase *c = tcase_create("streams");
  tcase_set_timeout(c, 120);
  tcase_add_test(c, streams_keep_their_order);
  tcase_add_test(c, events_order_streams);
  tcase_add_test(c, a_failure_drops_the_rest);
  tcase_add_test(c, a_wait_for_nothing_is_refused);
  tcase_add_test(c, closing_does_not_wait_for_the_rest);
  tcase_add_test(c, copies_are_paced);
  tcase_add_loop_test(c, blocks_are_whole, 0, 5);
  tcase_add_loop_test_raise_signal(c, a_byte_beyond_faults, SIGSEGV, 0, 5);
  tcase_add_test(c, pages_have_several_addresses);
  tcase_add_loop_test_raise_signal(c, a_byte_beyond_mapped_pages_faults, SIGSEGV, 0, 2);
  tcase_add_test(c, bytes_around_a_block_are_noticed);
  tcase_add_test(c, too_much_memory_is_refused);
  suite_add_tcase(suite, c);
  return run_suite(suite);
}
