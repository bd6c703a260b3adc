/* Written bytes (coverage.h). */
#include "graph/coverage.h"

#include <stdlib.h>

#include "graph/byte_range.h"
#include "graph/law.h"

/* One end of the bytes of a tensor. */
typedef struct part_end {
  planc_law at;
  int32_t tensor, storage;
  bool upper;
} part_end;

static int compare_ends(const void *a, const void *b);
static int32_t number_pieces(pl_coverage *c, const part_end *ends, int64_t n);

planc_status pl_coverage_make(pl_arena *arena, const planc_graph *graph, pl_coverage *out) {
  *out = (pl_coverage){.graph = graph};
  PLANC_TRY(PL_NEW(arena, &out->first, graph->n_tensors));
  PLANC_TRY(PL_NEW(arena, &out->last, graph->n_tensors));
  PLANC_TRY(PL_NEW(arena, &out->mixed, graph->n_storages));
  part_end *ends = malloc(((size_t)graph->n_tensors * 2 + 1) * sizeof *ends);
  if (!ends) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  int64_t n = 0;
  for (int32_t t = 0; t < graph->n_tensors; t++) {
    int32_t storage = graph->tensors[t].storage;
    if (planc_kind_exists_before(graph->storages[storage].kind)) continue;
    pl_byte_range range = pl_byte_range_of(&graph->tensors[t]);
    ends[n++] = (part_end){range.begin, t, storage, false};
    ends[n++] = (part_end){range.end, t, storage, true};
  }
  qsort(ends, (size_t)n, sizeof *ends, compare_ends);
  int32_t n_pieces = number_pieces(out, ends, n);
  free(ends);
  PLANC_TRY(PL_NEW(arena, &out->unwritten, n_pieces));
  for (int32_t p = 0; p < n_pieces; p++) out->unwritten[p] = p;
  return NULL;
}

/* Ends are in this order at batch 1, and at every batch unless a later one grows more slowly. */
static int compare_ends(const void *a, const void *b) {
  const part_end *x = a, *y = b;
  int64_t at_x = x->at.fixed + x->at.per_sample, at_y = y->at.fixed + y->at.per_sample;
  if (x->storage != y->storage) return x->storage < y->storage ? -1 : 1;
  if (at_x != at_y) return at_x < at_y ? -1 : 1;
  return (x->at.per_sample > y->at.per_sample) - (x->at.per_sample < y->at.per_sample);
}

/* Gives the tensors on each storage their pieces. Behind a storage's last end is a piece that none of them has. */
static int32_t number_pieces(pl_coverage *c, const part_end *ends, int64_t n) {
  int32_t piece = -1;
  for (int64_t i = 0; i < n; i++) {
    const part_end *end = &ends[i], *before = i > 0 ? &ends[i - 1] : NULL;
    if (!before || before->storage != end->storage || !pl_law_equal(before->at, end->at)) piece++;
    if (before && before->storage == end->storage && end->at.per_sample < before->at.per_sample)
      c->mixed[end->storage] = true;
    *(end->upper ? &c->last[end->tensor] : &c->first[end->tensor]) = piece;
  }
  return piece + 1;
}

/* The first unwritten piece from `piece` on. Ways are halved as they are gone. */
static int32_t next_unwritten(pl_coverage *c, int32_t piece) {
  while (c->unwritten[piece] != piece) {
    c->unwritten[piece] = c->unwritten[c->unwritten[piece]];
    piece = c->unwritten[piece];
  }
  return piece;
}

bool pl_coverage_write(pl_coverage *c, int32_t tensor) {
  const planc_tensor *t = &c->graph->tensors[tensor];
  const planc_storage *storage = &c->graph->storages[t->storage];
  if (planc_kind_exists_before(storage->kind)) return true;
  if (c->mixed[t->storage] && !pl_law_equal(t->bytes, storage->bytes)) return false;
  int32_t last = c->last[tensor];
  for (int32_t p = next_unwritten(c, c->first[tensor]); p < last; p = next_unwritten(c, p)) c->unwritten[p] = p + 1;
  return true;
}

bool pl_coverage_has(pl_coverage *c, int32_t tensor) {
  const planc_tensor *t = &c->graph->tensors[tensor];
  if (planc_kind_exists_before(c->graph->storages[t->storage].kind)) return true;
  if (c->mixed[t->storage]) tensor = c->graph->storages[t->storage].tensor;
  return next_unwritten(c, c->first[tensor]) >= c->last[tensor];
}
