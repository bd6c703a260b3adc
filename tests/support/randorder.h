/* Random legal orders of a trace's instances: every instance meets the versions that it meets in the trace. */
#ifndef PLANC_TESTS_RANDORDER_H
#define PLANC_TESTS_RANDORDER_H

#include "planc/order.h"

/* Fills `instances`, which has room for all of the trace's; *state is a seed, and moves on. */
void randorder_draw(const planc_trace *trace, uint64_t *state, int32_t *instances);
/* An order of such instances. */
planc_status randorder_make(const planc_trace *trace, uint64_t *state, planc_order **out);

#endif
