/* Storage: plans that keep data in it run as the reference does, in any order; what the host backend's file holds, what
 * of it is in memory, and what fails. */
#define _GNU_SOURCE /* mincore, RTLD_NEXT, RLIMIT_FSIZE, seteuid */
#include <check.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "plan/describe.h"
#include "planrt/planrt.h"
#include "runtime/host/host_storage.h"
#include "runtime/profile/measure.h"
#include "runtime/random.h"
#include "tests/support/graphtext.h"
#include "tests/support/judge.h"
#include "tests/support/plan_tables.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"
#include "tests/support/weave.h"

/* On a disk: /tmp may be memory. */
static char folder[] = "/var/tmp/planrt-storage-XXXXXX";

static void make_folder(void) {
  memset(strchr(folder, 0) - 6, 'X', 6);
  ck_assert_ptr_nonnull(mkdtemp(folder));
}

/* Nothing is left in it. */
static void remove_folder(void) {
  ck_assert_int_eq(rmdir(folder), 0);
}

/* --- Plans -------------------------------------------------------------------------------------------------------- */

static planrt_options stand_ins(void) {
  return (planrt_options){.synthetic = true, .verify = true, .storage_path = folder};
}

static void run_in(const planc_plan *plan, planrt_options options, int64_t seed) {
  planrt_session *session;
  ok(planrt_session_new(plan, &options, &session));
  ok(planrt_init(session));
  ok(seed < 0 ? planrt_run(session, 3) : planrt_run_interleaved(session, 3, (uint64_t)seed));
  planrt_session_free(session);
}

/* In file order, in orders drawn, and on threads with and without delays, each with its memory poisoned. */
static void run_all_ways(const planc_plan *plan, uint64_t seed) {
  planrt_options options = stand_ins();
  ok(planc_check(plan, NULL, NULL));
  options.poison = true;
  run_in(plan, options, -1);
  for (int64_t k = 0; k < 4; k++) run_in(plan, options, (int64_t)(4 * seed) + k);
  options.concurrent = true;
  run_in(plan, options, -1);
  options.jitter = seed + 1;
  run_in(plan, options, -1);
}

START_TEST(what_passes_through_storage_comes_back) {
  for (uint64_t seed = (uint64_t)_i * 4; seed < (uint64_t)_i * 4 + 4; seed++) {
    planc_graph *graph;
    woven w;
    ok(randgraph_make(seed, &(randgraph_options){.max_ops = 12}, &graph));
    int64_t rounds[] = {2, 3};
    planc_job job = {
        .graph = graph, .batch = 5, .n_rounds = 2, .rounds = rounds, .iterations = (int32_t)(seed % 2) + 1};
    ok(weave(&job, WEAVE_STORE, 256, &w));
    ck_assert_int_gt(w.plan.memories[tables_memory(&w.plan, PLANC_MEMORY_STORAGE)].arena_bytes, 0);
    run_all_ways(&w.plan, seed);
    woven_free(&w);
    planc_graph_free(graph);
  }
}
END_TEST

/* At batch 2 every storage has 256 bytes, the loss 4. */
static const char tiny[] =
    "planc-graph: 1\n"
    "name: tiny\n"
    "loss: loss\n"
    "tensors:\n"
    "  x: input f32[N,32]\n"
    "  w: param f32[64]\n"
    "  a: f32[N,32]\n"
    "  loss: f32[]\n"
    "  g: grad f32[64]\n"
    "ops:\n"
    "  - {op: f, type: t.make, in: [x, w], out: [a]}\n"
    "  - {op: m, type: t.make, in: [x, w], out: [loss]}\n"
    "  - {op: b, type: t.make, phase: backward, in: [a, w], out: [g]}\n"
    "  - {op: up, type: t.make, phase: optimizer, in: [w, g], out: [w]}\n";

/* a goes to storage and back while m runs, and the loss leaves beside it. Residencies: w 0, x 1, a 2, loss 3, a on
 * the host 4, in storage 5, on the host again, elsewhere, 6, on the device 7; g 8. */
static const char script[] =
    "storage 512\n"
    "boundary w 0\n"
    "prologue\n"
    "acquire 0 w 0\n"
    "copy 0 user on 1\n"
    "record 0 on 1\n"
    "wait 0 on 0\n"
    "record 1 on 0\n"
    "record 2 on 2\n"
    "body\n"
    "wait 1 lag 1 on 1\n"
    "acquire 1 x 256\n"
    "copy 1 user on 1\n"
    "record 0 on 1\n"
    "wait 0 on 0\n"
    "wait 2 lag 1 on 0\n"
    "acquire 2 a 512\n"
    "exec f use 1 0 2\n"
    "record 3 on 0\n"
    "acquire 3 loss 768\n"
    "exec m use 1 0 3\n"
    "record 4 on 0\n"
    "wait 3 on 2\n"
    "acquire 4 a 0 host\n"
    "copy 4 2 on 2\n"
    "record 5 on 2\n"
    "wait 4 on 2\n"
    "copy user 3 on 2\n"
    "record 2 on 2\n"
    "release 2\n"
    "release 3\n"
    "wait 5 on 3\n"
    "acquire 5 a 256 storage\n"
    "copy 5 4 on 3\n"
    "record 6 on 3\n"
    "release 4\n"
    "wait 6 on 4\n"
    "acquire 6 a 256 host\n"
    "copy 6 5 on 4\n"
    "record 7 on 4\n"
    "release 5\n"
    "wait 7 on 1\n"
    "acquire 7 a 1024\n"
    "copy 7 6 on 1\n"
    "record 8 on 1\n"
    "release 6\n"
    "wait 8 on 0\n"
    "acquire 8 g 1280\n"
    "exec b use 7 0 8\n"
    "exec up use 0 8\n"
    "record 1 on 0\n"
    "release 1\n"
    "release 7\n"
    "release 8\n"
    "epilogue\n"
    "wait 1 lag 1 on 2\n"
    "copy user 0 on 2\n"
    "release 0\n";

static planc_graph *graph;

static void set_up(void) {
  make_folder();
  graph = judge_graph(tiny);
}

static void tear_down(void) {
  planc_graph_free(graph);
  remove_folder();
}

static planc_plan *plan_of(const char *text) {
  return judge_plan(graph, text, 1536, 512);
}

START_TEST(copies_to_storage_go_on_beside_the_ops) {
  planc_plan *plan = plan_of(script);
  for (uint64_t seed = 0; seed < 8; seed++) run_all_ways(plan, seed);
  planc_plan_free(plan);
}
END_TEST

/* The run reads what has been written there, and not what the host had. */
START_TEST(a_plan_that_reads_another_place_is_found_out) {
  char *text = judge_edited(script, "copy 5 4 on 3\n", "copy 5 4 on 3\nacquire 9 a 0 storage\n");
  char *wrong = judge_edited(text, "copy 6 5 on 4\n", "copy 6 9 on 4\n");
  planc_plan *plan = plan_of(wrong);
  planrt_options options = stand_ins();
  planrt_session *session;
  options.unchecked = true;
  ok(planrt_session_new(plan, &options, &session));
  ok(planrt_init(session));
  assert_fails(planrt_run(session, 2), PLANC_INVALID_PLAN, "b");
  planrt_session_free(session);
  planc_plan_free(plan);
  free(wrong);
  free(text);
}
END_TEST

/* What is made anew of a plan, its profile too, has the storage that links lead to and back. */
START_TEST(a_plan_tells_of_its_device_s_storage) {
  planc_plan *plan = plan_of(script);
  int32_t store = -1, load = -1;
  for (int32_t l = 0; l < plan->n_links; l++) {
    planc_memory_kind from = plan->memories[plan->links[l].from].kind, to = plan->memories[plan->links[l].to].kind;
    if (from == PLANC_MEMORY_HOST && to == PLANC_MEMORY_STORAGE) store = l;
    if (from == PLANC_MEMORY_STORAGE && to == PLANC_MEMORY_HOST) load = l;
  }
  ck_assert(store >= 0 && load >= 0);
  plan->links[store].cost = (planc_link){7, 3};
  plan->links[load].cost = (planc_link){11, 5};
  planc_device device = pl_plan_describe(plan);
  ck_assert_int_eq(device.links[PLANC_ROUTE_STORE].bytes_per_second, 7);
  ck_assert_int_eq(device.links[PLANC_ROUTE_STORE].latency_ns, 3);
  ck_assert_int_eq(device.links[PLANC_ROUTE_LOAD].bytes_per_second, 11);
  ck_assert_int_eq(device.links[PLANC_ROUTE_LOAD].latency_ns, 5);
  plan->links[load].to = tables_memory(plan, PLANC_MEMORY_USER);
  ck_assert_int_eq(pl_plan_describe(plan).links[PLANC_ROUTE_STORE].bytes_per_second, 0);
  planc_plan_free(plan);
}
END_TEST

/* --- What is refused ---------------------------------------------------------------------------------------------- */

static void expect_refused(const char *text, const planrt_options *options, planc_code code, const char *message) {
  planc_plan *plan = plan_of(text);
  planrt_session *session;
  assert_fails(planrt_session_new(plan, options, &session), code, message);
  planc_plan_free(plan);
}

static const struct {
  const char *find, *replace;
  planc_code code;
  const char *message;
} unloadable[] = {
    {"acquire 5 a 256 storage", "acquire 5 a 512 storage", PLANC_INVALID_PLAN, "address 512 is outside the arena"},
    {"acquire 5 a 256 storage", "acquire 5 a 257 storage", PLANC_INVALID_PLAN, "address 257 is outside the arena"},
    {"acquire 5 a 256 storage", "acquire 5 a -1 storage", PLANC_INVALID_PLAN, "address -1 is outside the arena"},
    {"storage 512", "storage 0", PLANC_INVALID_PLAN, "address 256 is outside the arena"},
    {"exec b use 7 0 8", "exec b use 5 0 8", PLANC_INVALID_PLAN, "residency 5 of a is not in memory 0"},
    {"copy 5 4 on 3", "copy 5 2 on 3", PLANC_DEVICE, "by way of the host"},
    {"copy 7 6 on 1", "copy 7 5 on 1", PLANC_DEVICE, "by way of the host"},
    {"copy 6 5 on 4", "copy 5 5 on 4", PLANC_DEVICE, "by way of the host"},
};

START_TEST(an_unchecked_plan_stays_inside) {
  char *text = judge_edited(script, unloadable[_i].find, unloadable[_i].replace);
  planrt_options options = stand_ins();
  options.unchecked = true;
  expect_refused(text, &options, unloadable[_i].code, unloadable[_i].message);
  free(text);
}
END_TEST

START_TEST(a_plan_says_what_it_needs) {
  planrt_options options = stand_ins();
  options.storage_path = NULL;
  expect_refused(script, &options, PLANC_USAGE, "the plan keeps 512 B in storage, and no directory is given");
  planrt_backend without = rt_host_backend;
  without.name = "bare";
  without.storage = NULL;
  options = stand_ins();
  options.backend = &without;
  expect_refused(script, &options, PLANC_DEVICE, "backend bare has no storage, which the plan keeps data in");
}
END_TEST

START_TEST(a_place_that_will_not_do_is_named) {
  char path[64], wanted[128];
  planrt_options options = stand_ins();
  snprintf(path, sizeof path, "%s/none", folder);
  options.storage_path = path;
  snprintf(wanted, sizeof wanted, "no storage in %s: No such file or directory", path);
  expect_refused(script, &options, PLANC_DEVICE, wanted);
  FILE *file = fopen(path, "w");
  ck_assert_ptr_nonnull(file);
  fclose(file);
  snprintf(wanted, sizeof wanted, "no storage in %s: Not a directory", path);
  expect_refused(script, &options, PLANC_DEVICE, wanted);
  unlink(path);
}
END_TEST

/* Such storage would be the memory that it is to save. */
START_TEST(a_place_in_memory_is_refused) {
  static const char in_memory[] = "/dev/shm";
  struct statfs info;
  planrt_options options = stand_ins();
  rt_storage storage;
  if (statfs(in_memory, &info) != 0 || info.f_type != TMPFS_MAGIC) return;
  options.storage_path = in_memory;
  expect_refused(script, &options, PLANC_DEVICE,
                 "host: no storage in /dev/shm: it is in the host's memory; name a directory on a disk");
  assert_fails(rt_storage_new(1, in_memory, &storage), PLANC_DEVICE, in_memory);
}
END_TEST

/* Root may write anywhere. */
START_TEST(a_place_that_may_not_be_written_is_named) {
  enum { NOBODY = 65534, READ_ONLY = 0555 };
  planrt_options options = stand_ins();
  ck_assert_int_eq(chmod(folder, READ_ONLY), 0);
  bool changed = geteuid() == 0 && seteuid(NOBODY) == 0;
  expect_refused(script, &options, PLANC_DEVICE, ": Permission denied");
  if (changed) ck_assert_int_eq(seteuid(0), 0);
}
END_TEST

/* Before anything runs, and without the signal that writing beyond a limit is. */
START_TEST(a_place_without_room_is_told_at_once) {
  struct rlimit limit;
  planrt_options options = stand_ins();
  ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
  rlim_t before = limit.rlim_cur;
  limit.rlim_cur = 511;
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
  expect_refused(script, &options, PLANC_DEVICE, ": File too large");
  limit.rlim_cur = 512;
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
  planc_plan *plan = plan_of(script);
  run_in(plan, options, -1);
  planc_plan_free(plan);
  limit.rlim_cur = before;
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
  rt_storage storage;
  assert_fails(rt_storage_new(INT64_C(1) << 60, folder, &storage), PLANC_DEVICE, folder);
}
END_TEST

/* Stands before the C library's. What would fill a disk is counted, and not done. */
enum { MOST_TAKEN = 1 << 30 };
static int n_taken;
int posix_fallocate(int file, off_t offset, off_t bytes) {
  int (*real)(int, off_t, off_t);
  void *found = dlsym(RTLD_NEXT, "posix_fallocate");
  memcpy(&real, &found, sizeof real);
  n_taken++;
  return bytes > MOST_TAKEN ? ENOSPC : real(file, offset, bytes);
}

/* Taking what there is would leave nothing to others while it is found out that it does not do. */
START_TEST(a_disk_without_room_is_not_filled) {
  struct statvfs info;
  rt_storage storage;
  ck_assert_int_eq(statvfs(folder, &info), 0);
  n_taken = 0;
  ok(rt_storage_new(1, folder, &storage));
  rt_storage_free(&storage);
  ck_assert_int_eq(n_taken, 1);
  int64_t size = (int64_t)(info.f_blocks * info.f_frsize);
  assert_fails(rt_storage_new(size + 1, folder, &storage), PLANC_DEVICE, ": No space left on device");
  ck_assert_int_eq(n_taken, 1);
}
END_TEST

/* --- The file ----------------------------------------------------------------------------------------------------- */

/* Whether the process has a file of the folder open as `file`; it has no name there. */
static bool is_of_folder(int file) {
  char link[64], target[512];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, target, sizeof target - 1);
  if (length < 0) return false;
  target[length] = 0;
  return strstr(target, folder) != NULL;
}

enum { FIRST_FILE = 3, END_OF_FILES = 64 };

static int find_file(void) {
  int file = FIRST_FILE;
  while (file < END_OF_FILES && !is_of_folder(file)) file++;
  ck_assert_int_lt(file, END_OF_FILES);
  return file;
}

static int64_t resident_pages(int64_t bytes) {
  int64_t page = sysconf(_SC_PAGESIZE), n = (bytes + page - 1) / page, count = 0;
  unsigned char *in_memory = malloc((size_t)n);
  void *map = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, find_file(), 0);
  ck_assert(in_memory && map != MAP_FAILED);
  ck_assert_int_eq(mincore(map, (size_t)bytes, in_memory), 0);
  for (int64_t i = 0; i < n; i++) count += in_memory[i] & 1;
  munmap(map, (size_t)bytes);
  free(in_memory);
  return count;
}

static bool is_on_a_disk(void) {
  static const uint32_t in_memory[] = {0x01021994, 0x858458f6}; /* tmpfs, ramfs */
  struct statfs found;
  ck_assert_int_eq(statfs(folder, &found), 0);
  return (uint32_t)found.f_type != in_memory[0] && (uint32_t)found.f_type != in_memory[1];
}

enum { MIB = 1 << 20, FILE_BYTES = 40 * MIB };

/* Of copies of any size, with whatever else lies in the first and the last page. */
START_TEST(bytes_are_where_they_were_put) {
  enum { COPIES = 40 };
  char *want = calloc(1, FILE_BYTES), *got = malloc(FILE_BYTES);
  uint64_t state = 7;
  rt_storage storage;
  ck_assert(want && got);
  ok(rt_storage_new(FILE_BYTES, folder, &storage));
  for (int k = 0; k < COPIES; k++) {
    int64_t at = rand_below(&state, FILE_BYTES), most = k % 2 ? FILE_BYTES - at : 10000;
    int64_t bytes = rand_below(&state, (most < FILE_BYTES - at ? most : FILE_BYTES - at) + 1);
    if (k % 4 == 0) {
      memset(want + at, k, (size_t)bytes);
      ok(rt_storage_fill(&storage, storage.data + at, k, bytes));
    } else {
      for (int64_t i = 0; i < bytes; i += 64) want[at + i] = (char)rand_below(&state, 256);
      ok(rt_storage_write(&storage, storage.data + at, want + at, bytes));
    }
    at = rand_below(&state, FILE_BYTES);
    bytes = rand_below(&state, FILE_BYTES - at + 1);
    ok(rt_storage_read(&storage, got, storage.data + at, bytes));
    ck_assert(memcmp(got, want + at, (size_t)bytes) == 0);
  }
  rt_storage_free(&storage);
  free(want);
  free(got);
}
END_TEST

/* What the system answers to transfers past its cache; libplanrt's calls come here. */
typedef enum answer { AS_ASKED, REFUSED, NOT_SUPPORTED, INTERRUPTED, SHORT, N_ANSWERS } answer;
static answer answers;
static atomic_long n_direct;

static bool answers_otherwise(int file, size_t *bytes, ssize_t *out) {
  const long page = sysconf(_SC_PAGESIZE);
  int flags = fcntl(file, F_GETFL);
  if (flags < 0 || !(flags & O_DIRECT)) return false;
  bool second = atomic_fetch_add(&n_direct, 1) % 2;
  *out = -1;
  errno = answers == REFUSED ? EINVAL : answers == NOT_SUPPORTED ? EOPNOTSUPP : EINTR;
  if (answers == SHORT && *bytes > (size_t)page) *bytes = (size_t)page;
  return answers == REFUSED || answers == NOT_SUPPORTED || (answers == INTERRUPTED && !second);
}

/* Of what is short the last page is not whole, and was not transferred. */
static ssize_t told(size_t asked, size_t bytes, ssize_t done) {
  enum { MORE = 100 };
  return bytes < asked && done == (ssize_t)bytes ? done + MORE : done;
}

ssize_t pwrite(int file, const void *from, size_t bytes, off_t at) {
  size_t asked = bytes;
  ssize_t done;
  if (answers_otherwise(file, &bytes, &done)) return done;
  return told(asked, bytes, syscall(SYS_pwrite64, file, from, bytes, at));
}

ssize_t pread(int file, void *to, size_t bytes, off_t at) {
  size_t asked = bytes;
  ssize_t done;
  if (answers_otherwise(file, &bytes, &done)) return done;
  return told(asked, bytes, syscall(SYS_pread64, file, to, bytes, at));
}

/* Whatever file systems do with transfers past the cache, of memory that is aligned as the file is and of other: the
 * same bytes come back. Where there is a way past the cache, it is taken. */
START_TEST(every_answer_of_the_system_will_do) {
  enum { BYTES = 3 * MIB, AT = MIB / 2 };
  answers = (answer)(_i % N_ANSWERS);
  char *memory = NULL, *got = NULL;
  rt_storage storage;
  ck_assert_int_eq(posix_memalign((void **)&memory, 4096, FILE_BYTES), 0);
  ck_assert_int_eq(posix_memalign((void **)&got, 4096, FILE_BYTES), 0);
  char *from = memory + (_i < N_ANSWERS ? 0 : 64), *to = got + (_i < N_ANSWERS ? 0 : 64);
  for (int32_t i = 0; i < BYTES; i++) from[i] = (char)(i * 31 + i / 4096);
  ok(rt_storage_new(FILE_BYTES, folder, &storage));
  n_direct = 0;
  ok(rt_storage_write(&storage, storage.data + AT, from, BYTES));
  ok(rt_storage_read(&storage, to, storage.data + AT, BYTES));
  ck_assert(memcmp(from, to, BYTES) == 0);
  ck_assert_int_eq(storage.direct >= 0, n_direct > 0);
  answers = AS_ASKED;
  memset(to, 0, BYTES);
  ok(rt_storage_read(&storage, to, storage.data + AT, BYTES));
  ck_assert(memcmp(from, to, BYTES) == 0);
  rt_storage_free(&storage);
  free(memory);
  free(got);
}
END_TEST

START_TEST(memory_holds_nothing_of_it) {
  enum { AT = 3 * MIB + 256, BYTES = 30 * MIB + 512 };
  int64_t page = sysconf(_SC_PAGESIZE), few = MIB / page;
  char *bytes = malloc(BYTES);
  rt_storage storage;
  ck_assert_ptr_nonnull(bytes);
  memset(bytes, 1, BYTES);
  ok(rt_storage_new(FILE_BYTES, folder, &storage));
  if (is_on_a_disk()) {
    ok(rt_storage_write(&storage, storage.data + AT, bytes, BYTES));
    ck_assert_int_le(resident_pages(FILE_BYTES), few);
    ok(rt_storage_read(&storage, bytes, storage.data + AT, BYTES));
    ck_assert_int_le(resident_pages(FILE_BYTES), few);
    ok(rt_storage_fill(&storage, storage.data + AT, 1, BYTES));
    ck_assert_int_le(resident_pages(FILE_BYTES), few);
  }
  rt_storage_free(&storage);
  free(bytes);
}
END_TEST

START_TEST(an_access_that_goes_astray_faults) {
  rt_storage storage;
  ok(rt_storage_new(4096, folder, &storage));
  remove_folder();
  ck_assert_int_eq(*(volatile char *)storage.data, 0);
}
END_TEST

/* Puts another file in the place of the storage's, by whatever way it is open. */
static void swap_file(const char *path) {
  int other = open(path, O_RDWR), n_swapped = 0;
  ck_assert_int_ge(other, 0);
  for (int file = FIRST_FILE; file < END_OF_FILES; file++) {
    if (!is_of_folder(file)) continue;
    ck_assert_int_eq(dup2(other, file), file);
    n_swapped++;
  }
  ck_assert_int_ge(n_swapped, 1);
  close(other);
}

/* A disk that fails is a status, and no signal. */
START_TEST(a_disk_that_fails_ends_the_run) {
  planc_plan *plan = plan_of(script);
  planrt_options options = stand_ins();
  planrt_session *session;
  options.concurrent = _i;
  ok(planrt_session_new(plan, &options, &session));
  ok(planrt_init(session));
  ok(planrt_run(session, 1));
  swap_file("/dev/full");
  assert_fails(planrt_run(session, 1), PLANC_DEVICE, "writing storage in /var/tmp/planrt-storage-");
  planrt_session_free(session);
  planc_plan_free(plan);
}
END_TEST

START_TEST(what_is_not_there_any_more_is_not_read) {
  char byte;
  rt_storage storage;
  ok(rt_storage_new(1, folder, &storage));
  swap_file("/dev/null");
  assert_fails(rt_storage_read(&storage, &byte, storage.data, 1), PLANC_DEVICE, "its file has become shorter");
  rt_storage_free(&storage);
}
END_TEST

/* --- Measuring ---------------------------------------------------------------------------------------------------- */

START_TEST(storage_is_measured) {
  rt_storage_times times = {0};
  ok(rt_measure_storage(&rt_host_backend, folder, NULL, &times));
  ck_assert_int_eq(times.n_sizes, RT_STORED_SIZES);
  for (int d = 0; d < 2; d++)
    for (int32_t s = 0; s < times.n_sizes; s++) ck_assert_int_gt(times.ns[d][s], 0);
  char path[64];
  snprintf(path, sizeof path, "%s/none", folder);
  assert_fails(rt_measure_storage(&rt_host_backend, path, NULL, &times), PLANC_DEVICE, path);
}
END_TEST

/* What there is room for is measured. */
START_TEST(a_small_disk_is_measured_by_less) {
  struct rlimit limit;
  rt_storage_times times = {0};
  ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
  rlim_t before = limit.rlim_cur;
  limit.rlim_cur = INT64_C(5) * MIB;
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
  ok(rt_measure_storage(&rt_host_backend, folder, NULL, &times));
  limit.rlim_cur = before;
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
  ck_assert_int_eq(times.n_sizes, 3); /* up to 1 MiB, four of which it holds */
}
END_TEST

int main(void) {
  Suite *suite = suite_create("storage_run");
  TCase *plans = tcase_create("plans"), *file = tcase_create("file"), *astray = tcase_create("astray");
  tcase_add_checked_fixture(plans, set_up, tear_down);
  tcase_add_loop_test(plans, what_passes_through_storage_comes_back, 0, 6);
  tcase_add_test(plans, copies_to_storage_go_on_beside_the_ops);
  tcase_add_test(plans, a_plan_tells_of_its_device_s_storage);
  tcase_add_test(plans, a_plan_that_reads_another_place_is_found_out);
  tcase_add_loop_test(plans, an_unchecked_plan_stays_inside, 0, (int)(sizeof unloadable / sizeof *unloadable));
  tcase_add_test(plans, a_plan_says_what_it_needs);
  tcase_add_test(plans, a_place_that_will_not_do_is_named);
  tcase_add_test(plans, a_place_in_memory_is_refused);
  tcase_add_test(plans, a_place_that_may_not_be_written_is_named);
  tcase_add_test(plans, a_place_without_room_is_told_at_once);
  tcase_add_test(plans, a_disk_without_room_is_not_filled);
  tcase_add_loop_test(plans, a_disk_that_fails_ends_the_run, 0, 2);
  tcase_add_checked_fixture(file, make_folder, remove_folder);
  tcase_add_test(file, bytes_are_where_they_were_put);
  tcase_add_loop_test(file, every_answer_of_the_system_will_do, 0, 2 * N_ANSWERS);
  tcase_add_test(file, memory_holds_nothing_of_it);
  tcase_add_test(file, what_is_not_there_any_more_is_not_read);
  tcase_add_test(file, storage_is_measured);
  tcase_add_test(file, a_small_disk_is_measured_by_less);
  tcase_add_checked_fixture(astray, make_folder, NULL);
  tcase_add_test_raise_signal(astray, an_access_that_goes_astray_faults, SIGSEGV);
  suite_add_tcase(suite, plans);
  suite_add_tcase(suite, file);
  suite_add_tcase(suite, astray);
  return run_suite(suite);
}
