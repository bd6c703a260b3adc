/* Blocks between guard pages: whatever touches a byte beyond a plan's arena ends there. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "runtime/host/memory.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/backend.h"
#include "util/math.h"

enum { PATTERN = 0xa5 };

static planc_status no_memory(const char *what, int64_t bytes) {
  return planc_error(PLANC_DEVICE, "host: no memory for %s of %lld bytes", what, (long long)bytes);
}

/* What lies between the first guard page and the block. */
static char *slack(const planrt_block *block, int64_t *out_bytes) {
  char *first = block->map + sysconf(_SC_PAGESIZE);
  *out_bytes = block->data - first;
  return first;
}

planc_status planrt_block_new(int64_t bytes, const char *what, planrt_block *out) {
  int64_t page = sysconf(_SC_PAGESIZE);
  if (bytes < 0 || bytes > INT64_MAX / 2) return no_memory(what, bytes);
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
  int64_t before;
  char *first = slack(&block, &before);
  if (before > 0) memset(first, PATTERN, (size_t)before);
  *out = block;
  return NULL;
}

void planrt_block_free(planrt_block *block) {
  if (block->map) munmap(block->map, (size_t)block->map_bytes);
  *block = (planrt_block){0};
}

planc_status planrt_block_check(const planrt_block *block, const char *what) {
  int64_t before;
  if (!block->map) return NULL;
  const char *first = slack(block, &before);
  for (int64_t i = 0; i < before; i++)
    if ((unsigned char)first[i] != PATTERN)
      return planc_error(PLANC_INTERNAL, "host: %s was written %lld bytes before its beginning", what,
                         (long long)(before - i));
  return NULL;
}
