/* The jobs take turns instead (temporal.c): where a policy finds nothing else, or nothing as fast. */
#ifndef PLANC_COLOCATE_INSTEAD_H
#define PLANC_COLOCATE_INSTEAD_H

#include "planc/colocate.h"

/* `out` is what was found, or empty; `found_ns` its period. Puts turns in its place where it is empty, or they fit and
 * are faster, and says why; `sought` is what was not found, as in "no shift at which they fit". Where it is empty and
 * turns fail, that is the failure. *out_taken says whether `out` holds turns. */
planc_status pl_turns_instead(const planc_mix_evaluator *evaluator, const planc_mix_share *shares, const char *sought,
                              int64_t found_ns, planc_candidate *out, bool *out_taken);

#endif
