/* Windows: byte ranges of a storage whose ends are laws in the batch size, and sets of them. A relation holds when it
 * holds for every batch of at least 1; of two windows whose order depends on the batch neither "disjoint" nor "covers"
 * holds, so what is built on these is right for every batch. */
#ifndef PLANC_GRAPH_BYTE_WINDOW_H
#define PLANC_GRAPH_BYTE_WINDOW_H

#include "graph/law.h"
#include "util/vec.h"

typedef struct planc_window {
  planc_law begin, end;
} planc_window;

typedef VEC(planc_window) planc_windows;

planc_window planc_window_of(const planc_tensor *tensor);
bool planc_window_equal(planc_window a, planc_window b);
bool planc_window_disjoint(planc_window a, planc_window b);
/* `a` holds all of `b`. */
bool planc_window_covers(planc_window a, planc_window b);

/* True when some window of the set may share bytes with `window`. */
bool planc_windows_touch(const planc_windows *set, planc_window window);
/* True when one window of the set holds all of `window`; windows that meet have been made one. */
bool planc_windows_cover(const planc_windows *set, planc_window window);
planc_status planc_windows_add(planc_windows *set, planc_window window);
/* Takes `window` away. A window of the set that `window` overlaps in part, or in a way that depends on the batch, stays
 * whole. */
planc_status planc_windows_remove(planc_windows *set, planc_window window);

#endif
