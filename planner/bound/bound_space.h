/* Prices of a few numbers (bound_value.h): memory has a price at some positions (knots), and what links cost changes at
 * some slots (breaks) only. It takes few: data have to be away where memory is short and copies come between such
 * positions, all at about the same price, since what is dearer than elsewhere is copied elsewhere.
 *
 * A point has a number for the memory of each knot, in parts of `unit`, then one for copies in of each stretch between
 * breaks, from the first slot on, and then one for copies out: of a ns. */
#ifndef PLANC_BOUND_BOUND_SPACE_H
#define PLANC_BOUND_BOUND_SPACE_H

#include "planner/bound/bound_value.h"

typedef struct pl_bound_space {
  const pl_bound_model *model; /* borrowed */
  double unit;                 /* ns of a byte */
  int32_t n_knots, n_breaks, most_knots;
  int32_t *knots, *breaks; /* ascending */
} pl_bound_space;

/* Without knots, with room for so many, in memory of `arena`. */
planc_status pl_bound_space_new(const pl_bound_model *model, double unit, int32_t most_knots, pl_arena *arena,
                                pl_bound_space *out);
/* How many numbers points of so many knots have at most. */
int32_t pl_bound_space_most(int32_t most_knots);

static inline int32_t pl_bound_space_stretches(const pl_bound_space *space) {
  return space->n_breaks + 1;
}
static inline int32_t pl_bound_space_dims(const pl_bound_space *space) {
  return space->n_knots + 2 * pl_bound_space_stretches(space);
}
/* The first slot of a stretch, and of the one behind the last. */
int32_t pl_bound_space_first(const pl_bound_space *space, int32_t stretch);

/* False where there is no room, or it is one. What is needed right behind the op there can only be copied in while it
 * runs or behind it: these two slots become a stretch. */
bool pl_bound_space_add(pl_bound_space *space, int32_t position);
/* Each position, and each slot as a stretch of its own, as far as there is room. */
void pl_bound_space_add_all(pl_bound_space *space);
/* Without knots and breaks at which prices have nothing and do not change. */
void pl_bound_space_drop_idle(pl_bound_space *space, const pl_bound_prices *prices);
bool pl_bound_space_has(const pl_bound_space *space, int32_t position);

/* The prices of a point, rounded down; and the point of prices that are of this space. */
void pl_bound_space_prices(const pl_bound_space *space, const double *point, pl_bound_prices *out);
void pl_bound_space_point(const pl_bound_space *space, const pl_bound_prices *prices, double *out);

/* Slopes by position and by slot, as numbers that are added up: n of memory, 2 n of copies in, 2 n of copies out. */
static inline int64_t pl_bound_slopes(const pl_bound_model *model) {
  return 5 * (int64_t)model->n;
}
/* Of a point's numbers. */
void pl_bound_space_slopes(const pl_bound_space *space, const float *slopes, double *out);

#endif
