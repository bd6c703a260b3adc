/* Clocks as persistent radix trees (clocks.h). */
#include "util/clocks.h"

#include <stdbool.h>

typedef struct pl_clock_node node;

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

static planc_status add_node(pl_clocks *clocks, node made, int32_t *out) {
  if (clocks->nodes.len >= INT32_MAX) return planc_error(PLANC_OUT_OF_MEMORY, "what streams know of one another");
  *out = (int32_t)clocks->nodes.len;
  VEC_PUSH(&clocks->nodes, made);
  return NULL;
}

static planc_status copy_node(pl_clocks *clocks, int32_t from, int32_t *out) {
  node copy;
  for (int32_t k = 0; k < CHILDREN; k++)
    copy.children[k] = from >= 0 ? clocks->nodes.data[from].children[k] : PL_CLOCK_NONE;
  return add_node(clocks, copy, out);
}

/* Copies the nodes from the root to the step, and nothing else. */
planc_status pl_clock_set(pl_clocks *clocks, int32_t *clock, int32_t stream, int32_t step) {
  PLANC_TRY(copy_node(clocks, *clock, clock));
  int32_t at = *clock;
  for (int32_t level = clocks->top; level > 0; level -= BITS) {
    int32_t copy;
    PLANC_TRY(copy_node(clocks, clocks->nodes.data[at].children[child_at(stream, level)], &copy));
    clocks->nodes.data[at].children[child_at(stream, level)] = copy;
    at = copy;
  }
  clocks->nodes.data[at].children[child_at(stream, 0)] = step;
  return NULL;
}

/* Of two nodes of a level, or of two steps below the lowest one. What comes out as one of the two is that one. */
static planc_status join(pl_clocks *clocks, int32_t a, int32_t b, int32_t level, int32_t *out) {
  if (a == b || a < 0 || b < 0 || level < 0) {
    *out = a > b ? a : b; /* an empty one is below any other */
    return NULL;
  }
  node joined;
  bool is_a = true, is_b = true;
  for (int32_t k = 0; k < CHILDREN; k++) {
    int32_t of_a = clocks->nodes.data[a].children[k], of_b = clocks->nodes.data[b].children[k];
    PLANC_TRY(join(clocks, of_a, of_b, level - BITS, &joined.children[k]));
    is_a = is_a && joined.children[k] == of_a;
    is_b = is_b && joined.children[k] == of_b;
  }
  *out = is_a ? a : b;
  return is_a || is_b ? NULL : add_node(clocks, joined, out);
}

planc_status pl_clock_join(pl_clocks *clocks, int32_t *clock, int32_t other) {
  return join(clocks, *clock, other, clocks->top, clock);
}
