/* Blocks between guard pages: whatever touches a byte beyond a plan's arena ends there. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "runtime/host/memory.h"

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

static planc_status no_memory(const char *what, int64_t bytes) {
  return planc_error(PLANC_DEVICE, "host: no memory for %s of %lld bytes", what, (long long)bytes);
}

/* The bytes between the guard pages that are not the block's: before it and, where its size is no multiple of the
 * alignment, behind it. */
static slack_bytes slack_of(const planrt_block *block) {
  char *first = block->map + sysconf(_SC_PAGESIZE), *last = block->map + block->map_bytes - sysconf(_SC_PAGESIZE);
  char *end = block->data + block->bytes;
  return (slack_bytes){.before = first, .n_before = block->data - first, .behind = end, .n_behind = last - end};
}

planc_status planrt_block_new(int64_t bytes, const char *what, planrt_block *out) {
  int64_t page = sysconf(_SC_PAGESIZE);
  /* The system may promise more than there is and end the program when it is touched. */
  if (bytes < 0 || bytes / page >= sysconf(_SC_PHYS_PAGES)) return no_memory(what, bytes);
  int64_t usable = planc_align_up(bytes, page);
  planrt_block block = {.bytes = bytes, .map_bytes = usable + 2 * page};
  void *map = mmap(NULL, (size_t)block.map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return no_memory(what, bytes);
  block.map = map;
  if (usable > 0 && mprotect(block.map + page, (size_t)usable, PROT_READ | PROT_WRITE) != 0) {
    planrt_block_free(&block);
    return no_memory(what, bytes);
  }
  block.data = block.map + page + usable - planc_align_up(bytes, PLANRT_ALIGNMENT);
  slack_bytes slack = slack_of(&block);
  if (slack.n_before > 0) memset(slack.before, PATTERN, (size_t)slack.n_before);
  if (slack.n_behind > 0) memset(slack.behind, PATTERN, (size_t)slack.n_behind);
  *out = block;
  return NULL;
}

void planrt_block_free(planrt_block *block) {
  if (block->map) munmap(block->map, (size_t)block->map_bytes);
  *block = (planrt_block){0};
}

/* The first byte that is not as it was; -1: none. */
static int64_t find_change(const char *bytes, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if ((unsigned char)bytes[i] != PATTERN) return i;
  return -1;
}

planc_status planrt_block_check(const planrt_block *block, const char *what) {
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
