/* What everything else is built from: statuses, arithmetic, memory, tables, files. */
#define _GNU_SOURCE /* syscall */
#include <check.h>
#include <fcntl.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "planc/status.h"
#include "tests/support/unit.h"
#include "util/arena.h"
#include "util/file.h"
#include "util/heap.h"
#include "util/map.h"
#include "util/math.h"
#include "util/median.h"
#include "util/vec.h"

static uint64_t next_random(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 11;
}

/* --- Statuses ----------------------------------------------------------------------------------------------------- */

START_TEST(a_status_grows_by_context) {
  planc_status status = planc_error(PLANC_STALE, "tensor %s is %d", "t7", 41);
  status = planc_context(status, "op %s", "conv3");
  status = planc_context(status, "%s:%d", "x.yaml", 7);
  ck_assert_str_eq(planc_status_message(status), "x.yaml:7: op conv3: tensor t7 is 41");
  ck_assert_int_eq(planc_status_code(status), PLANC_STALE);
  planc_status_free(status);
}
END_TEST

START_TEST(contexts_keep_what_a_status_knows) {
  planc_status status = planc_refusal(PLANC_USAGE, PLANC_REMEDY_SPLIT_BATCH_NORM, "batch %d", 3);
  ck_assert_int_eq(planc_status_remedy(status), PLANC_REMEDY_SPLIT_BATCH_NORM);
  status = planc_context(status, "none");
  ck_assert_int_eq(planc_status_remedy(status), PLANC_REMEDY_SPLIT_BATCH_NORM);
  ck_assert_str_eq(planc_status_message(status), "none: batch 3");
  planc_status_free(status);
  planc_shortage host = {.memory = PLANC_MEMORY_HOST, .bytes = 7};
  status = planc_context(planc_infeasible(host, "short"), "none");
  ck_assert_int_eq(planc_status_shortage(status).memory, PLANC_MEMORY_HOST);
  ck_assert_int_eq(planc_status_shortage(status).bytes, 7);
  ck_assert_int_eq(planc_status_remedy(status), PLANC_REMEDY_NONE);
  planc_status_free(status);
}
END_TEST

START_TEST(success_is_null_and_stays_null) {
  ck_assert_ptr_null(planc_context(NULL, "no context for %s", "success"));
  ck_assert_int_eq(planc_status_code(NULL), PLANC_OK);
  ck_assert_str_eq(planc_status_message(NULL), "ok");
  planc_status_free(NULL);
}
END_TEST

START_TEST(a_message_may_be_long_and_hold_percent_signs) {
  char text[5000];
  memset(text, '%', sizeof text - 1);
  text[sizeof text - 1] = 0;
  planc_status status = planc_context(planc_error(PLANC_BAD_INPUT, "%s", text), "%s", text);
  const char *message = planc_status_message(status);
  ck_assert_uint_eq(strlen(message), 2 * strlen(text) + 2);
  ck_assert_int_eq(strncmp(message + strlen(text), ": %", 3), 0);
  planc_status_free(status);
}
END_TEST

START_TEST(exit_codes_are_the_documented_ones) {
  static const struct {
    planc_code code;
    int exit;
  } codes[] = {{PLANC_OK, 0},        {PLANC_INFEASIBLE, 1}, {PLANC_INVALID_PLAN, 1}, {PLANC_USAGE, 2},
               {PLANC_BAD_INPUT, 3}, {PLANC_STALE, 4},      {PLANC_INTERNAL, 5},     {PLANC_OUT_OF_MEMORY, 5},
               {PLANC_IO, 5},        {PLANC_DEVICE, 6}};
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
    ck_assert_int_eq(planc_exit_code(codes[i].code), codes[i].exit);
  }
}
END_TEST

static int calls_after_try;
static planc_status try_it(planc_status first) {
  PLANC_TRY(first);
  calls_after_try++;
  return NULL;
}

START_TEST(try_returns_failures_only) {
  calls_after_try = 0;
  ck_assert_ptr_null(try_it(NULL));
  ck_assert_int_eq(calls_after_try, 1);
  planc_status failure = planc_error(PLANC_IO, "no");
  ck_assert_ptr_eq(try_it(failure), failure);
  ck_assert_int_eq(calls_after_try, 1);
  planc_status_free(failure);
}
END_TEST

/* --- Arithmetic --------------------------------------------------------------------------------------------------- */

/* Small operands against plain division; large ones by the definition, q c <= a b < (q + 1) c, modulo 2^64. */
START_TEST(muldiv_is_exact) {
  uint64_t state = 3;
  for (int i = 0; i < 100000; i++) {
    int64_t a = (int64_t)(next_random(&state) >> (next_random(&state) % 53));
    int64_t b = (int64_t)(next_random(&state) >> (next_random(&state) % 53));
    int64_t c = (int64_t)(next_random(&state) >> (next_random(&state) % 53)) + 1;
    int64_t floor = pl_muldiv_floor(a, b, c), ceil = pl_muldiv_ceil(a, b, c);
    long double real = (long double)a * (long double)b / (long double)c;
    if (real > 9.3e18L) {
      ck_assert_int_eq(floor, INT64_MAX);
      ck_assert_int_eq(ceil, INT64_MAX);
    } else if (real < 9.2e18L) {
      uint64_t rest = (uint64_t)a * (uint64_t)b - (uint64_t)floor * (uint64_t)c;
      ck_assert_uint_lt(rest, (uint64_t)c);
      ck_assert_int_eq(ceil, floor + (rest != 0));
      ck_assert((long double)floor <= real * (1 + 1e-18L) + 1 && (long double)floor >= real * (1 - 1e-18L) - 1);
    }
  }
}
END_TEST

START_TEST(sums_products_and_alignment_end_at_the_limit) {
  int64_t out;
  ck_assert(!pl_add_overflow(INT64_MAX - 1, 1, &out) && out == INT64_MAX);
  ck_assert(pl_add_overflow(INT64_MAX, 1, &out));
  ck_assert(pl_add_overflow(INT64_MIN, -1, &out));
  ck_assert(!pl_mul_overflow(INT64_C(1) << 31, INT64_C(1) << 31, &out) && out == INT64_C(1) << 62);
  ck_assert(pl_mul_overflow(INT64_C(1) << 32, INT64_C(1) << 31, &out));
  ck_assert_int_eq(pl_add_saturate(INT64_MAX, 1), INT64_MAX);
  ck_assert_int_eq(pl_add_saturate(2, 3), 5);
  ck_assert_int_eq(pl_muldiv_floor(INT64_MAX, INT64_MAX, 1), INT64_MAX);
  ck_assert_int_eq(pl_muldiv_floor(INT64_MAX, INT64_MAX, INT64_MAX), INT64_MAX);
  ck_assert_int_eq(pl_muldiv_ceil(1, 1, INT64_MAX), 1);
  ck_assert_int_eq(pl_muldiv_floor(0, INT64_MAX, 1), 0);
  for (int64_t value = 0; value < 1000; value++) {
    int64_t aligned = pl_align_up(value, 256);
    ck_assert(aligned >= value && aligned < value + 256 && aligned % 256 == 0);
  }
  ck_assert_int_eq(pl_align_up(INT64_MAX, 256), INT64_MAX / 256 * 256);
}
END_TEST

/* --- Arena -------------------------------------------------------------------------------------------------------- */

START_TEST(a_median_is_in_the_middle) {
  ck_assert_int_eq(pl_median((int64_t[]){7}, 1), 7);
  ck_assert_int_eq(pl_median((int64_t[]){1825, 1119}, 2), 1472);
  ck_assert_int_eq(pl_median((int64_t[]){9, 2, 100}, 3), 9);
  ck_assert_int_eq(pl_median((int64_t[]){40, 10, 31, 20}, 4), 25);
  ck_assert_int_eq(pl_median((int64_t[]){-4, -7}, 2), -6); /* rounded down */
  ck_assert_int_eq(pl_median((int64_t[]){INT64_MIN, INT64_MAX}, 2), -1);
}
END_TEST

START_TEST(arena_memory_is_zeroed_aligned_and_apart) {
  enum { N = 2000 };
  pl_arena arena = {0};
  unsigned char *blocks[N];
  int64_t sizes[N];
  uint64_t state = 5;
  for (int i = 0; i < N; i++) {
    sizes[i] = (int64_t)(next_random(&state) % (i % 100 ? 200 : 20000));
    ck_assert_ptr_null(pl_arena_alloc(&arena, sizes[i], 1, (void *)&blocks[i]));
    ck_assert_ptr_nonnull(blocks[i]);
    ck_assert_uint_eq((uintptr_t)blocks[i] % alignof(max_align_t), 0);
    for (int64_t k = 0; k < sizes[i]; k++) ck_assert_int_eq(blocks[i][k], 0);
    memset(blocks[i], i % 255 + 1, (size_t)sizes[i]);
  }
  for (int i = 0; i < N; i++) {
    for (int64_t k = 0; k < sizes[i]; k++) ck_assert_int_eq(blocks[i][k], i % 255 + 1);
  }
  pl_arena_free(&arena);
  ck_assert_ptr_null(arena.blocks);
  pl_arena_free(&arena);
}
END_TEST

START_TEST(arena_refuses_what_cannot_be) {
  static const struct {
    int64_t count;
    size_t size;
  } requests[] = {{-1, 8}, {INT64_MAX, 8}, {INT64_MAX, SIZE_MAX}, {1, SIZE_MAX}, {INT64_MAX / 2, 1}};
  pl_arena arena = {0};
  for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
    void *pointer;
    planc_status status = pl_arena_alloc(&arena, requests[i].count, requests[i].size, (void *)&pointer);
    ck_assert_int_eq(planc_status_code(status), PLANC_OUT_OF_MEMORY);
    planc_status_free(status);
  }
  int64_t *numbers; /* and is still of use */
  ck_assert_ptr_null(PL_NEW(&arena, &numbers, 3));
  numbers[2] = 1;
  pl_arena_free(&arena);
}
END_TEST

START_TEST(arena_copies_text) {
  pl_arena arena = {0};
  const char *copy;
  ck_assert_ptr_null(pl_arena_strndup(&arena, "tensor", 4, &copy));
  ck_assert_str_eq(copy, "tens");
  ck_assert_ptr_null(pl_arena_strndup(&arena, "", 0, &copy));
  ck_assert_str_eq(copy, "");
  pl_arena_free(&arena);
}
END_TEST

/* --- Vectors ------------------------------------------------------------------------------------------------------ */

typedef VEC(int32_t) numbers;

static planc_status push(numbers *vec, int32_t value) {
  VEC_PUSH(vec, value);
  return NULL;
}

START_TEST(a_vector_keeps_what_is_pushed) {
  numbers vec = {0};
  int64_t moves = 0, cap = 0;
  for (int32_t i = 0; i < 100000; i++) {
    ck_assert_ptr_null(push(&vec, i * 7));
    moves += vec.cap != cap;
    cap = vec.cap;
  }
  ck_assert_int_eq(vec.len, 100000);
  ck_assert_int_lt(moves, 20); /* doubling */
  for (int32_t i = 0; i < 100000; i++) ck_assert_int_eq(vec.data[i], i * 7);
  VEC_FREE(&vec);
  ck_assert_int_eq(vec.len, 0);
  ck_assert_ptr_null(push(&vec, 5));
  ck_assert_int_eq(vec.data[0], 5);
  VEC_FREE(&vec);
}
END_TEST

START_TEST(a_vector_refuses_what_cannot_be) {
  numbers vec = {0};
  ck_assert_ptr_null(push(&vec, 5));
  planc_status status = VEC_RESERVE(&vec, INT64_MAX);
  ck_assert_int_eq(planc_status_code(status), PLANC_OUT_OF_MEMORY);
  planc_status_free(status);
  ck_assert_int_eq(vec.len, 1);
  ck_assert_int_eq(vec.data[0], 5);
  VEC_FREE(&vec);
}
END_TEST

/* --- Map ---------------------------------------------------------------------------------------------------------- */

static bool is_smaller(const int32_t *values, int32_t a, int32_t b) {
  return values[a] != values[b] ? values[a] < values[b] : a < b;
}

PL_HEAP(smallest, int32_t, int32_t, is_smaller)

/* Beside a search through everything that is in it. */
START_TEST(a_heap_gives_out_the_first_of_what_it_holds) {
  enum { N = 200 };
  int32_t values[N], heap[N];
  int64_t n = 0;
  bool in[N] = {false};
  uint32_t random = 1;
  for (int32_t next = 0; next < N || n > 0;) {
    random = random * 1664525u + 1013904223u;
    if (next < N && (n == 0 || random >> 31)) {
      values[next] = (int32_t)(random >> 20 & 63);
      heap[n++] = next;
      smallest_rise(values, heap, n);
      in[next++] = true;
    } else {
      for (int32_t i = 0; i < next; i++) ck_assert(!in[i] || i == heap[0] || is_smaller(values, heap[0], i));
      ck_assert(in[heap[0]]);
      in[heap[0]] = false;
      heap[0] = heap[--n];
      smallest_sink(values, heap, n);
    }
  }
  for (int32_t i = 0; i < N; i++) ck_assert(!in[i]);
}
END_TEST

START_TEST(a_map_finds_what_was_put_last) {
  enum { N = 20000 };
  static char names[N][12];
  pl_map map = {0};
  ck_assert_int_eq(pl_map_get(&map, "nothing", 7), -1);
  for (int32_t i = 0; i < N; i++) {
    snprintf(names[i], sizeof names[i], "op%d", i);
    ck_assert_ptr_null(pl_map_put(&map, names[i], strlen(names[i]), i));
  }
  for (int32_t i = 0; i < N; i += 3) ck_assert_ptr_null(pl_map_put(&map, names[i], strlen(names[i]), i + N));
  ck_assert_int_eq(map.count, N);
  for (int32_t i = 0; i < N; i++) {
    ck_assert_int_eq(pl_map_get(&map, names[i], strlen(names[i])), i % 3 ? i : i + N);
  }
  ck_assert_int_eq(pl_map_get(&map, "op20000", 7), -1);
  pl_map_free(&map);
  ck_assert_int_eq(pl_map_get(&map, "op1", 3), -1);
}
END_TEST

/* Names go by length, so they may be parts of a text, empty, or hold any byte. */
START_TEST(a_map_goes_by_length) {
  pl_map map = {0};
  ck_assert_ptr_null(pl_map_put(&map, "conv1.w", 7, 1));
  ck_assert_ptr_null(pl_map_put(&map, "conv1.w", 5, 2));
  ck_assert_ptr_null(pl_map_put(&map, "", 0, 3));
  ck_assert_ptr_null(pl_map_put(&map, "\0", 1, 4));
  ck_assert_int_eq(pl_map_get(&map, "conv1.w", 7), 1);
  ck_assert_int_eq(pl_map_get(&map, "conv1", 5), 2);
  ck_assert_int_eq(pl_map_get(&map, "conv1.", 6), -1);
  ck_assert_int_eq(pl_map_get(&map, "x", 0), 3);
  ck_assert_int_eq(pl_map_get(&map, "\0", 1), 4);
  pl_map_free(&map);
}
END_TEST

/* --- Files -------------------------------------------------------------------------------------------------------- */

static char folder[] = "/tmp/planc-test-XXXXXX", path[64];

static void make_folder(void) {
  strcpy(folder + sizeof folder - 7, "XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/file", folder);
}

static void remove_folder(void) {
  unlink(path);
  ck_assert_int_eq(rmdir(folder), 0); /* nothing else was left there */
}

static void assert_holds(const char *text, size_t length) {
  char *seen;
  size_t seen_length;
  ck_assert_ptr_null(pl_file_read(path, 1 << 20, &seen, &seen_length));
  ck_assert_uint_eq(seen_length, length);
  ck_assert_mem_eq(seen, text, length);
  ck_assert_int_eq(seen[length], 0);
  free(seen);
}

START_TEST(what_is_written_is_read) {
  static const size_t lengths[] = {0, 1, 65535, 65536, 65537, 300000};
  char *text = malloc(300000);
  ck_assert_ptr_nonnull(text);
  uint64_t state = 11;
  for (int i = 0; i < 300000; i++) text[i] = (char)next_random(&state);
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    ck_assert_ptr_null(pl_file_write(path, text, lengths[i]));
    assert_holds(text, lengths[i]);
  }
  free(text);
}
END_TEST

START_TEST(a_file_has_the_mode_that_the_umask_leaves) {
  mode_t before = umask(027);
  ck_assert_ptr_null(pl_file_write(path, "x", 1));
  struct stat info;
  ck_assert_int_eq(stat(path, &info), 0);
  ck_assert_uint_eq(info.st_mode & 0777, 0640);
  ck_assert_int_eq(chmod(path, 0600), 0);
  ck_assert_ptr_null(pl_file_write(path, "y", 1));
  ck_assert_int_eq(stat(path, &info), 0);
  ck_assert_uint_eq(info.st_mode & 0777, 0600);
  ck_assert_int_eq(unlink(path), 0);
  ck_assert_uint_eq(umask(before), 027);
}
END_TEST

/* A process reads its umask by setting it, for all of its threads: this counts who does. */
static int umask_calls;

mode_t umask(mode_t mask) {
  umask_calls++;
  return (mode_t)syscall(SYS_umask, mask);
}

START_TEST(the_umask_of_other_threads_is_left_alone) {
  umask_calls = 0;
  ck_assert_ptr_null(pl_file_probe(path));
  ck_assert_ptr_null(pl_file_write(path, "x", 1));
  ck_assert_int_eq(umask_calls, 0);
}
END_TEST

START_TEST(a_failed_write_names_the_path_and_leaves_nothing) {
  ck_assert_ptr_null(pl_file_write(path, "old", 3));
  char inside[80];
  snprintf(inside, sizeof inside, "%s/none/file", folder);
  planc_status status = pl_file_write(inside, "new", 3);
  assert_fails(status, PLANC_IO, inside);
  status = pl_file_write(folder, "new", 3); /* cannot be renamed to a folder */
  ck_assert_int_eq(planc_status_code(status), PLANC_IO);
  planc_status_free(status);
  assert_holds("old", 3);
}
END_TEST

START_TEST(files_that_belong_together_change_together) {
  char second[80], inside[80];
  snprintf(second, sizeof second, "%s/second", folder);
  snprintf(inside, sizeof inside, "%s/none/file", folder);
  pl_file_text files[] = {{path, "one", 3}, {"/dev/null", "two", 3}, {second, "three", 5}};
  ck_assert_ptr_null(pl_file_write(path, "old", 3));
  files[2].path = inside;
  assert_fails(pl_files_write(files, 3), PLANC_IO, inside);
  assert_holds("old", 3);
  files[2].path = second;
  files[1].path = "/dev/full";
  assert_fails(pl_files_write(files, 3), PLANC_IO, "/dev/full");
  assert_holds("old", 3);
  ck_assert_int_ne(access(second, F_OK), 0);
  files[1].path = "/dev/null";
  ck_assert_ptr_null(pl_files_write(files, 3));
  assert_holds("one", 3);
  ck_assert_int_eq(unlink(second), 0);
}
END_TEST

START_TEST(what_cannot_be_read_is_bad_input) {
  char *text;
  size_t length;
  planc_status status = pl_file_read(path, 10, &text, &length);
  assert_fails(status, PLANC_BAD_INPUT, path);
  status = pl_file_read(folder, 10, &text, &length);
  assert_fails(status, PLANC_BAD_INPUT, "directory");
}
END_TEST

START_TEST(a_file_may_be_as_large_as_the_limit_and_no_larger) {
  ck_assert_ptr_null(pl_file_write(path, "0123456789", 10));
  char *text;
  size_t length;
  ck_assert_ptr_null(pl_file_read(path, 10, &text, &length));
  free(text);
  planc_status status = pl_file_read(path, 9, &text, &length);
  ck_assert_int_eq(planc_status_code(status), PLANC_BAD_INPUT);
  planc_status_free(status);
}
END_TEST

int main(void) {
  TCase *statuses = tcase_create("status");
  tcase_add_test(statuses, a_status_grows_by_context);
  tcase_add_test(statuses, contexts_keep_what_a_status_knows);
  tcase_add_test(statuses, success_is_null_and_stays_null);
  tcase_add_test(statuses, a_message_may_be_long_and_hold_percent_signs);
  tcase_add_test(statuses, exit_codes_are_the_documented_ones);
  tcase_add_test(statuses, try_returns_failures_only);
  TCase *math = tcase_create("math");
  tcase_add_test(math, muldiv_is_exact);
  tcase_add_test(math, sums_products_and_alignment_end_at_the_limit);
  tcase_add_test(math, a_median_is_in_the_middle);
  TCase *memory = tcase_create("memory");
  tcase_add_test(memory, arena_memory_is_zeroed_aligned_and_apart);
  tcase_add_test(memory, arena_refuses_what_cannot_be);
  tcase_add_test(memory, arena_copies_text);
  tcase_add_test(memory, a_vector_keeps_what_is_pushed);
  tcase_add_test(memory, a_vector_refuses_what_cannot_be);
  tcase_add_test(memory, a_heap_gives_out_the_first_of_what_it_holds);
  tcase_add_test(memory, a_map_finds_what_was_put_last);
  tcase_add_test(memory, a_map_goes_by_length);
  TCase *files = tcase_create("file");
  tcase_add_checked_fixture(files, make_folder, remove_folder);
  tcase_add_test(files, what_is_written_is_read);
  tcase_add_test(files, a_file_has_the_mode_that_the_umask_leaves);
  tcase_add_test(files, the_umask_of_other_threads_is_left_alone);
  tcase_add_test(files, a_failed_write_names_the_path_and_leaves_nothing);
  tcase_add_test(files, files_that_belong_together_change_together);
  tcase_add_test(files, what_cannot_be_read_is_bad_input);
  tcase_add_test(files, a_file_may_be_as_large_as_the_limit_and_no_larger);
  Suite *suite = suite_create("util");
  suite_add_tcase(suite, statuses);
  suite_add_tcase(suite, math);
  suite_add_tcase(suite, memory);
  suite_add_tcase(suite, files);
  return run_suite(suite);
}
