/* The evaluator that policies for mixes are handed. */
#ifndef PLANC_COLOCATE_MIX_EVALUATE_H
#define PLANC_COLOCATE_MIX_EVALUATE_H

#include "planc/colocate.h"

/* Of a mix whose jobs have one device; `all` is the target of all jobs together, on the mix's terms. The mix is
 * borrowed, as what the target borrows is, and there is nothing to free. */
planc_mix_evaluator pl_mix_evaluator_of(const planc_mix *mix, const planc_target *all);

#endif
