/* Blocks double in size, so that the number of allocations grows with the logarithm of what is stored. */
#include "util/arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

struct pl_arena_block {
  struct pl_arena_block *next;
  size_t used, size;
  alignas(max_align_t) unsigned char data[];
};

enum { FIRST_BLOCK = 4096, LARGEST_STEP = 1 << 22 };

planc_status pl_arena_alloc(pl_arena *arena, int64_t count, size_t size, void *out_pointer) {
  size_t bytes;
  if (count < 0 || __builtin_mul_overflow((size_t)count, size, &bytes) || bytes > SIZE_MAX / 4) {
    return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  }
  bytes = (bytes + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
  struct pl_arena_block *block = arena->blocks;
  if (!block || block->size - block->used < bytes) {
    size_t step = block ? block->size * 2 : FIRST_BLOCK;
    if (step > LARGEST_STEP) step = LARGEST_STEP;
    if (step < bytes) step = bytes;
    struct pl_arena_block *fresh = calloc(1, sizeof *fresh + step);
    if (!fresh) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
    fresh->size = step;
    fresh->next = block;
    arena->blocks = block = fresh;
  }
  *(void **)out_pointer = block->data + block->used;
  block->used += bytes;
  return NULL;
}

planc_status pl_arena_copy(pl_arena *arena, const void *from, int64_t count, size_t size, void *out_pointer) {
  void *copy = NULL;
  PLANC_TRY(pl_arena_alloc(arena, count, size, (void *)&copy));
  if (copy && count > 0) memcpy(copy, from, (size_t)count * size);
  *(void **)out_pointer = copy;
  return NULL;
}

planc_status pl_arena_strndup(pl_arena *arena, const char *text, size_t length, const char **out) {
  char *copy = NULL;
  PLANC_TRY(pl_arena_alloc(arena, (int64_t)length + 1, 1, (void *)&copy));
  for (size_t i = 0; copy && i < length; i++) copy[i] = text[i];
  *out = copy;
  return NULL;
}

void pl_arena_free(pl_arena *arena) {
  struct pl_arena_block *block = arena->blocks;
  while (block) {
    struct pl_arena_block *next = block->next;
    free(block);
    block = next;
  }
  arena->blocks = NULL;
}
