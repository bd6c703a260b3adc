/* Where a concave function may be highest, by what is known of it: at some points its value and its slopes, each of
 * which says that it is nowhere above a plane (a cut; Kelley, "The Cutting-Plane Method for Solving Convex Programs",
 * 1960). The highest point below all cuts within a box is that of a linear program. Its dual has one column for each
 * cut and a basis that stays feasible while cuts are added and the box moves, so that each program begins where the one
 * before ended. Numbers are floating-point: a point that is a little off is still a point. */
#ifndef PLANC_BOUND_BOUND_CUTS_H
#define PLANC_BOUND_BOUND_CUTS_H

#include <stdbool.h>

#include "util/arena.h"

typedef struct pl_bound_cuts {
  int32_t n_dims;              /* of a point; none of its numbers is negative */
  int32_t first_pair, n_pairs; /* number first_pair + k and number first_pair + n_pairs + k are together 1 at most */
  int32_t most_dims, most, n;  /* cuts */
  double *heights, *slopes;    /* by cut: at 0; and slopes, of some cuts for each dimension (bound_cuts.c) */
  double *weights;      /* by cut: with these, slopes sum up to nothing but for what the box and the pairs hold */
  const double *center; /* of the box, borrowed while it is looked at */
  double radius;
  struct pl_bound_basis *basis;
} pl_bound_cuts;

/* Room for so many numbers of a point and cuts, in memory of `arena`. */
planc_status pl_bound_cuts_new(int32_t most_dims, int32_t most, pl_arena *arena, pl_bound_cuts *out);
/* Forgets all cuts: points have so many numbers from now on. */
void pl_bound_cuts_begin(pl_bound_cuts *cuts, int32_t n_dims, int32_t first_pair, int32_t n_pairs);
/* False where there is no room for another. */
bool pl_bound_cuts_add(pl_bound_cuts *cuts, double height, const double *slopes);
/* The highest point within `radius` of `center`, which holds the pairs, and its height under the cuts, of which there
 * is at least one. */
double pl_bound_cuts_highest(pl_bound_cuts *cuts, const double *center, double radius, double *out_point);

#endif
