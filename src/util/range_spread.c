/* What is given to ranges (range_spread.h). A range is a few nodes of the tree: what they are given is passed on once,
 * for all ranges together. Which numbers of a node are about the least is counted from its own least, so that what a
 * range's nodes have is in part a little more than about its least: it need not be exact. */
#include "util/range_spread.h"

#include <string.h>

#include "util/math.h"

planc_status pl_range_spread_new(pl_arena *arena, int32_t n, pl_range_spread *out) {
  *out = (pl_range_spread){0};
  PLANC_TRY(PL_NEW(arena, &out->near, 2 * (int64_t)n));
  PLANC_TRY(PL_NEW(arena, &out->given, 2 * (int64_t)n));
  for (int32_t i = 0; i < n; i++) out->near[n + i] = 1;
  return NULL;
}

/* How many of a node count where something is the least; without a branch, which nobody could foretell. */
static int32_t near(const pl_range_spread *spread, int64_t node, int64_t least) {
  return spread->near[node] * (spread->of->values[spread->of->least[node]] <= least + spread->about);
}

void pl_range_spread_build(pl_range_spread *spread, const pl_range_least *of, int64_t about) {
  spread->of = of;
  spread->about = about;
  for (int64_t k = of->n - 1; k > 0; k--) {
    int64_t least = of->values[of->least[k]];
    spread->near[k] = near(spread, 2 * k, least) + near(spread, 2 * k + 1, least);
  }
  memset(spread->given, 0, 2 * (size_t)of->n * sizeof *spread->given);
}

void pl_range_spread_give(pl_range_spread *spread, int32_t first, int32_t end, int32_t least, int64_t amount) {
  const pl_range_least *of = spread->of;
  int64_t value = of->values[least], rest = amount, all = 0, nodes[2 * 31];
  int32_t n = 0;
  for (int64_t l = (int64_t)first + of->n, r = (int64_t)end + of->n; l < r; l /= 2, r /= 2) {
    if (l & 1) nodes[n++] = l++;
    if (r & 1) nodes[n++] = --r;
  }
  for (int32_t k = 0; k < n; k++) all += near(spread, nodes[k], value);
  for (int32_t k = 0; k < n; k++) {
    int64_t count = near(spread, nodes[k], value);
    if (count == 0) continue;
    int64_t share = pl_muldiv_floor(rest, count, all);
    spread->given[nodes[k]] += share;
    rest -= share;
    all -= count;
  }
}

void pl_range_spread_settle(pl_range_spread *spread) {
  for (int64_t k = 1; k < spread->of->n; k++) {
    int64_t given = spread->given[k], least = spread->of->values[spread->of->least[k]];
    if (given == 0) continue;
    int64_t left = pl_muldiv_floor(given, near(spread, 2 * k, least), spread->near[k]);
    spread->given[2 * k] += left;
    spread->given[2 * k + 1] += given - left;
  }
}
