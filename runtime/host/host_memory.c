/* Blocks between guard pages: whatever touches a byte beyond a plan's arena ends there. */
#define _GNU_SOURCE /* MAP_ANONYMOUS, memfd_create */
#include "runtime/host/host_memory.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/backend.h"
#include "util/math.h"

enum { PATTERN = 0xa5 };

typedef struct slack_bytes {
  char *before, *behind;
  int64_t n_before, n_behind;
} slack_bytes;

static planc_status check_size(int64_t bytes, const char *what);
static planc_status reserve(int64_t bytes, const char *what, rt_block *out);
static planc_status no_memory(const char *what, int64_t bytes);
static slack_bytes slack_of(const rt_block *block);

planc_status rt_block_new(int64_t bytes, const char *what, rt_block *out) {
  int64_t page = sysconf(_SC_PAGESIZE);
  rt_block block = {0};
  PLANC_TRY(check_size(bytes, what));
  PLANC_TRY(reserve(bytes, what, &block));
  int64_t usable = block.map_bytes - 2 * page;
  if (usable > 0 && mprotect(block.map + page, (size_t)usable, PROT_READ | PROT_WRITE) != 0) {
    rt_block_free(&block);
    return no_memory(what, bytes);
  }
  slack_bytes slack = slack_of(&block);
  if (slack.n_before > 0) memset(slack.before, PATTERN, (size_t)slack.n_before);
  if (slack.n_behind > 0) memset(slack.behind, PATTERN, (size_t)slack.n_behind);
  *out = block;
  return NULL;
}

static planc_status no_memory(const char *what, int64_t bytes) {
  return planc_error(PLANC_DEVICE, "host: no memory for %s of %lld bytes", what, (long long)bytes);
}

/* The bytes between the guard pages that are not the block's: before it and, where its size is no multiple of the
 * alignment, behind it. */
static slack_bytes slack_of(const rt_block *block) {
  char *first = block->map + sysconf(_SC_PAGESIZE), *last = block->map + block->map_bytes - sysconf(_SC_PAGESIZE);
  char *end = block->data + block->bytes;
  return (slack_bytes){.before = first, .n_before = block->data - first, .behind = end, .n_behind = last - end};
}

/* Reserves addresses for `bytes` between guard pages. */
static planc_status reserve(int64_t bytes, const char *what, rt_block *out) {
  int64_t page = sysconf(_SC_PAGESIZE), usable = pl_align_up(bytes, page);
  rt_block block = {.bytes = bytes, .map_bytes = usable + 2 * page};
  void *map = mmap(NULL, (size_t)block.map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return no_memory(what, bytes);
  block.map = map;
  block.data = block.map + page + usable - pl_align_up(bytes, RT_ALIGNMENT);
  *out = block;
  return NULL;
}

/* The system may promise more than there is and end the program when it is touched. */
static planc_status check_size(int64_t bytes, const char *what) {
  if (bytes >= 0 && bytes / sysconf(_SC_PAGESIZE) < sysconf(_SC_PHYS_PAGES)) return NULL;
  return no_memory(what, bytes);
}

/* Maps chunks of file `fd` into the addresses from `at` on. */
static planc_status map_chunks(int fd, char *at, int64_t chunk_bytes, const planc_mapping *mappings, int32_t n) {
  for (int32_t m = 0; m < n; m++) {
    size_t bytes = (size_t)(mappings[m].n * chunk_bytes);
    void *map =
        mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)(mappings[m].first * chunk_bytes));
    if (map == MAP_FAILED) {
      return planc_error(PLANC_DEVICE, "host: mapping %d of %d failed; the system may allow fewer (vm.max_map_count)",
                         m, n);
    }
    at += bytes;
  }
  return NULL;
}

planc_status rt_block_map(int64_t bytes, int64_t chunk_bytes, const planc_mapping *mappings, int32_t n,
                          const char *what, rt_block *out) {
  int64_t range = 0, page = sysconf(_SC_PAGESIZE);
  if (chunk_bytes % page != 0) {
    return planc_error(PLANC_DEVICE, "host: chunks of %lld bytes are not whole pages of %lld", (long long)chunk_bytes,
                       (long long)page);
  }
  PLANC_TRY(check_size(bytes, what));
  for (int32_t m = 0; m < n; m++) range += mappings[m].n * chunk_bytes;
  rt_block block = {0};
  PLANC_TRY(reserve(range, what, &block));
  int fd = memfd_create("planrt", MFD_CLOEXEC);
  planc_status status = fd < 0 || ftruncate(fd, (off_t)bytes) != 0 ? no_memory(what, bytes) : NULL;
  if (!status) status = map_chunks(fd, block.data, chunk_bytes, mappings, n);
  if (fd >= 0) close(fd);
  if (status) {
    rt_block_free(&block);
    return status;
  }
  *out = block;
  return NULL;
}

void rt_block_free(rt_block *block) {
  if (block->map) munmap(block->map, (size_t)block->map_bytes);
  *block = (rt_block){0};
}

/* The first byte that is not as it was; -1: none. Where the first is, and each the same as the one behind it, all are.
 */
static int64_t find_change(const char *bytes, int64_t count) {
  if (count > 0 && (unsigned char)*bytes == PATTERN && memcmp(bytes, bytes + 1, (size_t)count - 1) == 0) return -1;
  for (int64_t i = 0; i < count; i++)
    if ((unsigned char)bytes[i] != PATTERN) return i;
  return -1;
}

planc_status rt_block_check(const rt_block *block, const char *what) {
  if (!block->map) return NULL;
  slack_bytes slack = slack_of(block);
  int64_t before = find_change(slack.before, slack.n_before), behind = find_change(slack.behind, slack.n_behind);
  if (before >= 0)
    return planc_error(PLANC_INTERNAL, "host: %s was written %lld bytes before its beginning", what,
                       (long long)(slack.n_before - before));
  if (behind >= 0)
    return planc_error(PLANC_INTERNAL, "host: %s was written %lld bytes behind its end", what, (long long)behind);
  return NULL;
}
