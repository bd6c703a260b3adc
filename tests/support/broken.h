/* Evaluators of which one function fails, each time with INTERNAL: whoever asks it is to pass that on, and to ask no
 * more. */
#ifndef PLANC_TESTS_BROKEN_H
#define PLANC_TESTS_BROKEN_H

#include "planc/policy.h"

typedef enum broken_function {
  BROKEN_PEAK,
  BROKEN_HOLD,
  BROKEN_HOLD_TO_HOST,
  BROKEN_PLACE,
  BROKEN_TIME,
  BROKEN_SIMULATE,
  BROKEN_LIVE,
  BROKEN_N_FUNCTIONS
} broken_function;

/* How often anything has failed; set it to 0 before a test. */
extern int broken_failures;

/* Has the function fail. */
void broken_make(broken_function function, planc_evaluator *evaluator);
/* Fails; for functions of other evaluators. */
planc_status broken_down(void);

#endif
