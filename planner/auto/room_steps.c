/* Steps of the room that a search goes on in (room_steps.h). */
#include "planner/auto/room_steps.h"

#include "planc/plan.h"
#include "util/math.h"

enum { MOST_BACK = 4 };

static bool is_beyond_cliff(const pl_room_steps *steps, int64_t ns);
static void go_back(pl_room_steps *steps);
static void keep_from_cliff(pl_room_steps *steps);
static void step(pl_room_steps *steps, const pl_room_outcome *outcome);

/* Larger steps at once find what is slower. */
pl_room_steps pl_room_steps_in(int64_t room) {
  enum { FIRST_STEP = 256, FINEST = 1024 }; /* parts of the room */
  return (pl_room_steps){.step = room / FIRST_STEP,
                         .finest = pl_max(room / FINEST, PLANC_ALIGNMENT),
                         .too_much = INT64_MAX,
                         .kept_ns = INT64_MAX,
                         .cliff = INT64_MAX};
}

bool pl_is_much_slower(int64_t ns, int64_t than_ns) {
  enum { MUCH = 33 };
  return ns - ns / MUCH > than_ns;
}

void pl_room_steps_on(pl_room_steps *steps, const pl_room_outcome *outcome) {
  steps->goes_back = is_beyond_cliff(steps, outcome->ns);
  steps->keeps =
      !steps->goes_back && outcome->ns < INT64_MAX && !outcome->holds && steps->lacking >= steps->kept_lacking;
  if (steps->goes_back) {
    go_back(steps);
    return;
  }
  if (steps->keeps) {
    steps->kept_lacking = steps->lacking;
    steps->kept_ns = outcome->ns;
  }
  step(steps, outcome);
  keep_from_cliff(steps);
}

/* --- Cliffs ------------------------------------------------------------------------------------------------------- */

/* In a little less room what is found may be much slower, as a large tensor finds no place in it any more. */
static bool is_beyond_cliff(const pl_room_steps *steps, int64_t ns) {
  if (ns == INT64_MAX || steps->kept_ns == INT64_MAX || steps->n_back == MOST_BACK) return false;
  return steps->lacking > steps->kept_lacking && pl_is_much_slower(ns, steps->kept_ns);
}

/* To what is kept, without a quarter of the step that led beyond. */
static void go_back(pl_room_steps *steps) {
  enum { PART = 4 };
  steps->n_back++;
  steps->cliff = steps->lacking;
  steps->step = pl_max((steps->cliff - steps->kept_lacking) / PART, PLANC_ALIGNMENT);
  steps->lacking = steps->kept_lacking + steps->step;
}

/* Half the way there in place of beyond it. */
static void keep_from_cliff(pl_room_steps *steps) {
  if (steps->lacking < steps->cliff || steps->n_back == MOST_BACK) return;
  steps->n_back++;
  steps->lacking = steps->kept_lacking + (steps->cliff - steps->kept_lacking) / 2;
}

/* --- Steps -------------------------------------------------------------------------------------------------------- */

/* The search is to be without more where what it has found does not hold, and without less where that holds, is too
 * slow to be tried, or nothing is found. More comes in small steps, which double after every few, since what is found
 * in much less room at once is slower; once less has been wanted, steps are halved. Pages lack no more than what they
 * have come to `beyond` the room. One search that finds nothing decides nothing: the next one, which is longer, is in
 * the same room, and only if that finds nothing either the room lacks too much. */
static void step(pl_room_steps *steps, const pl_room_outcome *outcome) {
  enum { MOST_MISSED = 2, ALIKE = 3 };
  const bool found = outcome->ns < INT64_MAX, less = !found || !outcome->is_tried || outcome->holds;
  if (!found && ++steps->missed < MOST_MISSED) return;
  if (!found) steps->too_much = steps->lacking;
  steps->missed = 0;
  steps->bracketed |= less;
  if (steps->bracketed) steps->step = pl_max(steps->step / 2, steps->finest);
  if (outcome->beyond > 0 && !less) steps->step = pl_min(steps->step, outcome->beyond);
  if (less)
    steps->lacking = pl_max(steps->lacking - steps->step, 0);
  else if (steps->lacking + steps->step < steps->too_much)
    steps->lacking += steps->step;
  if (!steps->bracketed && ++steps->n_more % ALIKE == 0) steps->step *= 2;
}
