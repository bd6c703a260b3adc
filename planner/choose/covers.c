/* A segment tree: a span is at the nodes that together are its positions, in a heap at each. What a span has left stays
 * in the heaps until it comes to the top. */
#include "planner/choose/covers.h"

#include "util/heap.h"

bool pl_cover_is_around(pl_cover cover, int32_t position) {
  bool behind = cover.behind < position, ahead = position < cover.ahead;
  return cover.behind < cover.ahead ? behind && ahead : behind || ahead;
}

planc_status pl_covers_make(pl_arena *arena, int32_t n_positions, int32_t n, pl_covers *covers) {
  *covers = (pl_covers){.n_positions = n_positions, .leaves = 1};
  while (covers->leaves < n_positions) covers->leaves *= 2;
  PLANC_TRY(PL_NEW(arena, &covers->of, n));
  PLANC_TRY(PL_NEW(arena, &covers->present, n));
  return PL_NEW(arena, &covers->nodes, 2 * (int64_t)covers->leaves);
}

void pl_covers_free(pl_covers *covers) {
  for (int32_t node = 0; covers->nodes && node < 2 * covers->leaves; node++) VEC_FREE(&covers->nodes[node]);
}

static planc_status add_span(pl_covers *covers, int32_t place, int32_t first, int32_t last);
static void pop(pl_cover_heap *heap);

planc_status pl_covers_set(pl_covers *covers, int32_t place, pl_cover cover) {
  pl_cover *was = &covers->of[place];
  if (covers->present[place] && was->behind == cover.behind && was->ahead == cover.ahead) return NULL;
  covers->present[place] = true;
  *was = cover;
  if (cover.behind < cover.ahead) return add_span(covers, place, cover.behind + 1, cover.ahead - 1);
  PLANC_TRY(add_span(covers, place, 0, cover.ahead - 1));
  return add_span(covers, place, cover.behind + 1, covers->n_positions - 1);
}

void pl_covers_remove(pl_covers *covers, int32_t place) {
  covers->present[place] = false;
}

int32_t pl_covers_first(pl_covers *covers, int32_t position) {
  int32_t first = -1;
  for (int32_t node = covers->leaves + position; node > 0; node /= 2) {
    pl_cover_heap *heap = &covers->nodes[node];
    while (heap->len > 0 &&
           !(covers->present[heap->data[0]] && pl_cover_is_around(covers->of[heap->data[0]], position)))
      pop(heap);
    if (heap->len > 0 && (first < 0 || heap->data[0] < first)) first = heap->data[0];
  }
  return first;
}

/* --- Heaps -------------------------------------------------------------------------------------------------------- */

static bool goes_before(const pl_cover_heap *heap, int32_t a, int32_t b) {
  (void)heap;
  return a < b;
}

PL_HEAP(places, int32_t, pl_cover_heap, goes_before)

static planc_status push(pl_cover_heap *heap, int32_t place) {
  VEC_PUSH(heap, place);
  places_rise(heap, heap->data, heap->len);
  return NULL;
}

static void pop(pl_cover_heap *heap) {
  heap->data[0] = heap->data[--heap->len];
  places_sink(heap, heap->data, heap->len);
}

/* --- A cover's span, as nodes of the tree ------------------------------------------------------------------------- */

static planc_status add_span(pl_covers *covers, int32_t place, int32_t first, int32_t last) {
  int32_t low = first + covers->leaves, high = last + covers->leaves + 1;
  for (; low < high; low /= 2, high /= 2) {
    if (low % 2) PLANC_TRY(push(&covers->nodes[low++], place));
    if (high % 2) PLANC_TRY(push(&covers->nodes[--high], place));
  }
  return NULL;
}
