/* A bump allocator: what belongs to one graph, trace or plan is allocated together and freed together. */
#ifndef PLANC_UTIL_ARENA_H
#define PLANC_UTIL_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "planc/status.h"

typedef struct pl_arena {
  struct pl_arena_block *blocks; /* newest first */
} pl_arena;

/* Zeroed memory for `count` elements of `size` bytes, aligned for any type; valid until pl_arena_free. A zeroed
 * pl_arena is ready for use. Fails with OUT_OF_MEMORY, also when count * size overflows. */
planc_status pl_arena_alloc(pl_arena *arena, int64_t count, size_t size, void *out_pointer);
/* A copy of `count` elements of `size` bytes at `from`, which may be NULL where there are none. */
planc_status pl_arena_copy(pl_arena *arena, const void *from, int64_t count, size_t size, void *out_pointer);
/* A NUL-terminated copy of `length` bytes of `text`. */
planc_status pl_arena_strndup(pl_arena *arena, const char *text, size_t length, const char **out);
void pl_arena_free(pl_arena *arena);

/* Allocates `count` elements of *pointer's type. */
#define PL_NEW(arena, pointer, count) pl_arena_alloc((arena), (count), sizeof **(pointer), (void *)(pointer))

#endif
