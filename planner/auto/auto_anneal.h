/* How a search for ways (auto_search.h) goes on: ways are changed at random, some of them to those of the plan that the
 * bound's prices pay for, and a change that is worse is kept with a chance that falls (simulated annealing,
 * Kirkpatrick, Gelatt and Vecchi, 1983). */
#ifndef PLANC_AUTO_AUTO_ANNEAL_H
#define PLANC_AUTO_AUTO_ANNEAL_H

#include "planner/auto/auto_search.h"

/* By so many changes, whether they are kept or not. At first one that is slower may be kept where it loses about one
 * part in `first_part` of the ideal time, later on less. */
void pl_auto_search_improve(pl_auto_search *s, int64_t n_changes, int64_t first_part);
/* The same so many times, each time from the present ways and the first prices, with other random numbers; then the
 * ways are the fastest of all that were found. */
void pl_auto_search_improve_often(pl_auto_search *s, int32_t times, int64_t n_changes, int64_t first_part);
/* From the fastest that was found: forces one gap after the other into another way, the heaviest first, makes so many
 * changes beside it and keeps the outcome if it is faster. Where tensors are large one alone that leaves or comes back
 * is slower, and only others beside it make it faster. Ends after so many `times`; where nothing was found, at once. */
void pl_auto_search_force(pl_auto_search *s, int64_t times, int64_t n_changes, int64_t first_part);

#endif
