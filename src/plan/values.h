/* Writing the values of rows: plan/row.h in the other direction, on util/emit.h. */
#ifndef PLANC_PLAN_VALUES_H
#define PLANC_PLAN_VALUES_H

#include "planc/graph.h"
#include "util/emit.h"

/* Integers beyond 2^53 on either side fail. */
void planc_emit_int(planc_emit *emit, int64_t value);
void planc_emit_ints(planc_emit *emit, const int32_t *values, int64_t n);
void planc_emit_longs(planc_emit *emit, const int64_t *values, int64_t n);
void planc_emit_law(planc_emit *emit, planc_law law);

/* A key with its punctuation and the integer after it. */
#define EMIT_INT(emit, key, value) (EMIT((emit), key), planc_emit_int((emit), (value)))

#endif
