/* Binary heaps: nobody in one stands above an item that goes before it. They lie in an array of the caller's. */
#ifndef PLANC_UTIL_HEAP_H
#define PLANC_UTIL_HEAP_H

#include <stdint.h>

/* For heaps of `item` whose `goes_before(context, a, b)` is a strict order, defines what mends the one place where a
 * heap of n is none: name_rise where that is its last item, name_sink where it is its first. So an item is added by
 * appending it and name_rise, and the first one is taken by having the last one in its place and name_sink. */
#define PL_HEAP(name, item, context, goes_before)                                                                  \
  static inline void name##_rise(const context *of, item *heap, int64_t n) {                                       \
    item moved = heap[n - 1];                                                                                      \
    int64_t at = n - 1;                                                                                            \
    for (; at > 0 && goes_before(of, moved, heap[(at - 1) / 2]); at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2]; \
    heap[at] = moved;                                                                                              \
  }                                                                                                                \
  static inline void name##_sink(const context *of, item *heap, int64_t n) {                                       \
    if (n == 0) return;                                                                                            \
    item moved = heap[0];                                                                                          \
    int64_t at = 0;                                                                                                \
    for (int64_t child = 1; child < n; child = 2 * at + 1) {                                                       \
      if (child + 1 < n && goes_before(of, heap[child + 1], heap[child])) child++;                                 \
      if (!goes_before(of, heap[child], moved)) break;                                                             \
      heap[at] = heap[child];                                                                                      \
      at = child;                                                                                                  \
    }                                                                                                              \
    heap[at] = moved;                                                                                              \
  }

#endif
