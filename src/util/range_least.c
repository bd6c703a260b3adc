/* The least of a range (range_least.h). */
#include "util/range_least.h"

#include <assert.h>

planc_status pl_range_least_new(pl_arena *arena, int32_t n, pl_range_least *out) {
  *out = (pl_range_least){.n = n};
  PLANC_TRY(PL_NEW(arena, &out->least, 2 * (int64_t)n));
  for (int32_t i = 0; i < n; i++) out->least[n + i] = i;
  return NULL;
}

static int32_t lesser(const pl_range_least *tree, int32_t a, int32_t b) {
  return tree->values[b] < tree->values[a] ? b : a;
}

void pl_range_least_build(pl_range_least *tree, const int64_t *values) {
  tree->values = values;
  for (int64_t k = tree->n - 1; k > 0; k--) tree->least[k] = lesser(tree, tree->least[2 * k], tree->least[2 * k + 1]);
}

int32_t pl_range_least_of(const pl_range_least *tree, int32_t first, int32_t end) {
  assert(0 <= first && first < end && end <= tree->n);
  int32_t best = first;
  for (int32_t l = first + tree->n, r = end + tree->n; l < r; l /= 2, r /= 2) {
    if (l & 1) best = lesser(tree, best, tree->least[l++]);
    if (r & 1) best = lesser(tree, best, tree->least[--r]);
  }
  return best;
}
