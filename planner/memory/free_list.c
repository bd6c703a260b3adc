/* Free address ranges in a treap (free_list.h). */
#include "planner/memory/free_list.h"

#include <assert.h>

#include "planner/memory/treap_rank.h"

enum { NONE = -1 };

static planc_status insert_range(pl_free_list *list, pl_range range);

planc_status pl_free_list_reset(pl_free_list *list) {
  list->nodes.len = 0;
  list->spare.len = 0;
  list->root = NONE;
  list->seed = PL_RANK_SEED;
  return insert_range(list, (pl_range){0, INT64_MAX});
}

planc_status pl_free_list_reset_from(pl_free_list *list, int64_t address) {
  PLANC_TRY(pl_free_list_reset(list));
  return address > 0 ? pl_free_list_take_free(list, (pl_range){0, address}) : NULL;
}

void pl_free_list_free(pl_free_list *list) {
  VEC_FREE(&list->nodes);
  VEC_FREE(&list->spare);
}

static int64_t longest_of(const pl_free_list *list, int32_t n) {
  return n == NONE ? 0 : list->nodes.data[n].longest;
}

static void update_longest(pl_free_list *list, int32_t n) {
  struct pl_free_range *it = &list->nodes.data[n];
  int64_t longest = it->range.end - it->range.start;
  if (longest_of(list, it->left) > longest) longest = longest_of(list, it->left);
  if (longest_of(list, it->right) > longest) longest = longest_of(list, it->right);
  it->longest = longest;
}

/* --- The treap: nodes by address, heap by rank -------------------------------------------------------------------- */

/* Cuts tree `n` into ranges that begin below `address` and the others. */
static void split(pl_free_list *list, int32_t n, int64_t address, int32_t *out_below, int32_t *out_above) {
  if (n == NONE) {
    *out_below = *out_above = NONE;
    return;
  }
  struct pl_free_range *it = &list->nodes.data[n];
  if (it->range.start < address) {
    split(list, it->right, address, &it->right, out_above);
    *out_below = n;
  } else {
    split(list, it->left, address, out_below, &it->left);
    *out_above = n;
  }
  update_longest(list, n);
}

/* Joins two trees, all of `below` before all of `above`. */
static int32_t join(pl_free_list *list, int32_t below, int32_t above) {
  if (below == NONE) return above;
  if (above == NONE) return below;
  struct pl_free_range *a = &list->nodes.data[below], *b = &list->nodes.data[above];
  int32_t top = a->rank >= b->rank ? below : above;
  if (top == below) {
    a->right = join(list, a->right, above);
  } else {
    b->left = join(list, below, b->left);
  }
  update_longest(list, top);
  return top;
}

static int32_t insert_node(pl_free_list *list, int32_t n, int32_t fresh) {
  struct pl_free_range *it = &list->nodes.data[fresh];
  if (n == NONE || list->nodes.data[n].rank < it->rank) {
    split(list, n, it->range.start, &it->left, &it->right);
    n = fresh;
  } else {
    struct pl_free_range *parent = &list->nodes.data[n];
    int32_t *side = it->range.start < parent->range.start ? &parent->left : &parent->right;
    *side = insert_node(list, *side, fresh);
  }
  update_longest(list, n);
  return n;
}

static planc_status insert_range(pl_free_list *list, pl_range range) {
  int32_t fresh = (int32_t)list->nodes.len;
  if (list->spare.len > 0) {
    fresh = list->spare.data[--list->spare.len];
  } else {
    VEC_PUSH(&list->nodes, (struct pl_free_range){0});
    /* Room for every node, so that removing one needs no memory. */
    PLANC_TRY(VEC_RESERVE(&list->spare, list->nodes.len));
  }
  list->nodes.data[fresh] =
      (struct pl_free_range){.range = range, .left = NONE, .right = NONE, .rank = pl_next_rank(&list->seed)};
  list->root = insert_node(list, list->root, fresh);
  return NULL;
}

/* Makes the range that begins at `start` into `range`, which keeps its place in the order; an empty one goes. */
static int32_t change_range(pl_free_list *list, int32_t n, int64_t start, pl_range range) {
  struct pl_free_range *it = &list->nodes.data[n];
  if (start < it->range.start) {
    it->left = change_range(list, it->left, start, range);
  } else if (start > it->range.start) {
    it->right = change_range(list, it->right, start, range);
  } else if (range.start == range.end) {
    list->spare.data[list->spare.len++] = n;
    return join(list, it->left, it->right);
  } else {
    it->range = range;
  }
  update_longest(list, n);
  return n;
}

/* The node of the last range that begins at or below `address`, or NONE. */
static int32_t find_at(const pl_free_list *list, int64_t address) {
  int32_t found = NONE;
  for (int32_t n = list->root; n != NONE;) {
    if (list->nodes.data[n].range.start <= address) {
      found = n;
      n = list->nodes.data[n].right;
    } else {
      n = list->nodes.data[n].left;
    }
  }
  return found;
}

/* --- Calls -------------------------------------------------------------------------------------------------------- */

static int32_t find_first(const pl_free_list *list, int32_t n, int64_t address, int64_t bytes) {
  if (longest_of(list, n) < bytes) return NONE;
  const struct pl_free_range *it = &list->nodes.data[n];
  if (it->range.end <= address) return find_first(list, it->right, address, bytes);
  int32_t found = it->range.start > address ? find_first(list, it->left, address, bytes) : NONE;
  if (found != NONE) return found;
  int64_t start = it->range.start > address ? it->range.start : address;
  if (it->range.end - start >= bytes) return n;
  return find_first(list, it->right, address, bytes);
}

pl_range pl_free_list_first(const pl_free_list *list, int64_t address, int64_t bytes) {
  int32_t found = find_first(list, list->root, address, bytes > 0 ? bytes : 1);
  return found == NONE ? (pl_range){INT64_MAX, INT64_MAX} : list->nodes.data[found].range;
}

static int32_t find_last(const pl_free_list *list, int32_t n, int64_t address, int64_t bytes) {
  if (longest_of(list, n) < bytes) return NONE;
  const struct pl_free_range *it = &list->nodes.data[n];
  if (it->range.start >= address) return find_last(list, it->left, address, bytes);
  int32_t found = it->range.end < address ? find_last(list, it->right, address, bytes) : NONE;
  if (found != NONE) return found;
  int64_t end = it->range.end < address ? it->range.end : address;
  if (end - it->range.start >= bytes) return n;
  return find_last(list, it->left, address, bytes);
}

pl_range pl_free_list_last(const pl_free_list *list, int64_t address, int64_t bytes, bool *out_found) {
  int32_t found = find_last(list, list->root, address, bytes > 0 ? bytes : 1);
  *out_found = found != NONE;
  return found == NONE ? (pl_range){0, 0} : list->nodes.data[found].range;
}

planc_status pl_free_list_take(pl_free_list *list, pl_range range, bool *out_taken) {
  int32_t found = find_at(list, range.start);
  *out_taken = found != NONE && list->nodes.data[found].range.end >= range.end;
  if (!*out_taken) return NULL;
  pl_range whole = list->nodes.data[found].range;
  pl_range below = {whole.start, range.start}, above = {range.end, whole.end};
  bool keeps_below = below.start < below.end;
  list->root = change_range(list, list->root, whole.start, keeps_below ? below : above);
  return keeps_below && above.start < above.end ? insert_range(list, above) : NULL;
}

planc_status pl_free_list_take_free(pl_free_list *list, pl_range range) {
  bool taken;
  PLANC_TRY(pl_free_list_take(list, range, &taken));
  assert(taken);
  (void)taken;
  return NULL;
}

planc_status pl_free_list_give(pl_free_list *list, pl_range range) {
  int32_t below = find_at(list, range.start), above = find_at(list, range.end);
  bool joins_below = below != NONE && list->nodes.data[below].range.end == range.start;
  bool joins_above = above != NONE && list->nodes.data[above].range.start == range.end;
  pl_range low = joins_below ? list->nodes.data[below].range : range;
  pl_range high = joins_above ? list->nodes.data[above].range : range;
  if (joins_below && joins_above) list->root = change_range(list, list->root, high.start, (pl_range){0, 0});
  if (joins_below) {
    list->root = change_range(list, list->root, low.start, (pl_range){low.start, high.end});
  } else if (joins_above) {
    list->root = change_range(list, list->root, high.start, (pl_range){range.start, high.end});
  } else {
    return insert_range(list, range);
  }
  return NULL;
}
