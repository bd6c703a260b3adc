/* The room that a search goes on in. Placement may need more than the search counts with, so what is found in all of
 * the room may not hold: then the search goes on without some of it, until something holds. The loop around it is the
 * caller's, who searches, tries what is found, and tells the outcome. */
#ifndef PLANC_AUTO_ROOM_STEPS_H
#define PLANC_AUTO_ROOM_STEPS_H

#include <stdbool.h>
#include <stdint.h>

/* All but times are bytes. What is written ahead of the private part is to be read after each step. */
typedef struct pl_room_steps {
  int64_t lacking; /* that the search is to be without next */
  bool keeps;      /* what it has found last is to be kept, in place of what was kept before */
  bool goes_back;  /* it goes on from what is kept, in place of what it has found last */
  int64_t finest;  /* step at least; the caller may make it finer */

  int64_t step;                  /* by which `lacking` changes next */
  int64_t too_much;              /* nothing is found without so much */
  bool bracketed;                /* less has been wanted at least once: the step is halved from then on */
  int32_t n_more;                /* how often more has been wanted until then */
  int32_t missed;                /* how often in turn nothing has been found */
  int64_t kept_lacking, kept_ns; /* of what is kept, which did not hold; INT64_MAX ns = nothing is */
  int64_t cliff;                 /* lacking from which on what is found is much slower than that */
  int32_t n_back;                /* how often the search has kept from there */
} pl_room_steps;

/* What a search has come to without what it was to lack. */
typedef struct pl_room_outcome {
  int64_t ns;     /* of what it has found, as the search has it; INT64_MAX = nothing */
  bool is_tried;  /* that was placed and simulated, and is not too slow for it */
  bool holds;     /* it fits then, in little more time */
  int64_t beyond; /* bytes that the pages of what was tried came to beyond the room; 0 in one piece */
} pl_room_outcome;

/* Begins in all of the room. */
pl_room_steps pl_room_steps_in(int64_t room);
void pl_room_steps_on(pl_room_steps *steps, const pl_room_outcome *outcome);
/* A 33rd slower, or more. */
bool pl_is_much_slower(int64_t ns, int64_t than_ns);

#endif
