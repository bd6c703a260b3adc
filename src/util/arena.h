/* A bump allocator: what belongs to one graph, trace or plan is allocated together and freed together. */
#ifndef PLANC_UTIL_ARENA_H
#define PLANC_UTIL_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "planc/status.h"

typedef struct planc_arena {
  struct planc_arena_block *blocks; /* newest first */
} planc_arena;

/* Zeroed memory for `count` elements of `size` bytes, aligned for any type; valid until planc_arena_free. A zeroed
 * planc_arena is ready for use. Fails with OUT_OF_MEMORY, also when count * size overflows. */
planc_status planc_arena_alloc(planc_arena *arena, int64_t count, size_t size, void *out_pointer);
/* A copy of `count` elements of `size` bytes at `from`, which may be NULL where there are none. */
planc_status planc_arena_copy(planc_arena *arena, const void *from, int64_t count, size_t size, void *out_pointer);
/* A NUL-terminated copy of `length` bytes of `text`. */
planc_status planc_arena_strndup(planc_arena *arena, const char *text, size_t length, const char **out);
void planc_arena_free(planc_arena *arena);

/* Allocates `count` elements of *pointer's type. */
#define PLANC_NEW(arena, pointer, count) planc_arena_alloc((arena), (count), sizeof **(pointer), (void *)(pointer))

#endif
