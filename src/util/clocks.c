/* Clocks as persistent radix trees (clocks.h). */
#include "util/clocks.h"

#include <stdbool.h>
#include <string.h>

enum { BITS = PL_CLOCK_BITS, CHILDREN = 1 << BITS };

pl_clocks pl_clocks_of(int32_t n_streams) {
  pl_clocks clocks = {.top = 0};
  while (((int64_t)n_streams - 1) >> (clocks.top + BITS) > 0) clocks.top += BITS;
  return clocks;
}

void pl_clocks_free(pl_clocks *clocks) {
  VEC_FREE(&clocks->nodes);
}

static int32_t child_at(int32_t stream, int32_t level) {
  return stream >> level & (CHILDREN - 1);
}

int32_t pl_clock_at(const pl_clocks *clocks, int32_t clock, int32_t stream) {
  for (int32_t level = clocks->top; clock >= 0 && level >= 0; level -= BITS)
    clock = clocks->nodes.data[clock].children[child_at(stream, level)];
  return clock;
}

static planc_status add_node(pl_clocks *clocks, struct pl_clock_node made, int32_t *out) {
  if (clocks->nodes.len >= INT32_MAX) return planc_error(PLANC_OUT_OF_MEMORY, "what streams know of one another");
  *out = (int32_t)clocks->nodes.len;
  VEC_PUSH(&clocks->nodes, made);
  return NULL;
}

static planc_status copy_node(pl_clocks *clocks, int32_t from, int32_t *out) {
  struct pl_clock_node copy;
  if (from >= 0) {
    copy = clocks->nodes.data[from];
  } else {
    for (int32_t k = 0; k < CHILDREN; k++) copy.children[k] = PL_CLOCK_NONE;
  }
  return add_node(clocks, copy, out);
}

/* Copies the nodes from the root to the step, and nothing else. */
planc_status pl_clock_set(pl_clocks *clocks, int32_t *clock, int32_t stream, int32_t step) {
  PLANC_TRY(copy_node(clocks, *clock, clock));
  int32_t at = *clock;
  for (int32_t level = clocks->top; level > 0; level -= BITS) {
    int32_t copy = PL_CLOCK_NONE;
    PLANC_TRY(copy_node(clocks, clocks->nodes.data[at].children[child_at(stream, level)], &copy));
    clocks->nodes.data[at].children[child_at(stream, level)] = copy;
    at = copy;
  }
  clocks->nodes.data[at].children[child_at(stream, 0)] = step;
  return NULL;
}

static planc_status join(pl_clocks *clocks, int32_t a, int32_t b, int32_t level, int32_t *out);

planc_status pl_clock_join(pl_clocks *clocks, int32_t *clock, int32_t other) {
  return join(clocks, *clock, other, clocks->top, clock);
}

static int32_t later(int32_t a, int32_t b) {
  return a > b ? a : b; /* an empty one is below any other */
}

static bool is_same(const struct pl_clock_node *a, const struct pl_clock_node *b) {
  return memcmp(a, b, sizeof *a) == 0;
}

/* Of two nodes of a level. What comes out as one of the two is that one. */
static planc_status join(pl_clocks *clocks, int32_t a, int32_t b, int32_t level, int32_t *out) {
  *out = later(a, b);
  if (a == b || a < 0 || b < 0) return NULL;
  struct pl_clock_node of_a = clocks->nodes.data[a], of_b = clocks->nodes.data[b], joined;
  if (level == 0) {
    for (int32_t k = 0; k < CHILDREN; k++) joined.children[k] = later(of_a.children[k], of_b.children[k]);
  } else {
    for (int32_t k = 0; k < CHILDREN; k++)
      PLANC_TRY(join(clocks, of_a.children[k], of_b.children[k], level - BITS, &joined.children[k]));
  }
  *out = is_same(&joined, &of_a) ? a : b;
  return *out == a || is_same(&joined, &of_b) ? NULL : add_node(clocks, joined, out);
}
