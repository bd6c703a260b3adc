#include "plan/values.h"

#include "plan/row.h"

void planc_emit_int(planc_emit *emit, int64_t value) {
  if (value >= -PLANC_ROW_MAX && value <= PLANC_ROW_MAX) {
    planc_emit_integer(emit, value);
    return;
  }
  planc_emit_fail(emit,
                  planc_error(PLANC_BAD_INPUT, "a plan cannot hold %lld, which is beyond 2^53", (long long)value));
}

void planc_emit_ints(planc_emit *emit, const int32_t *values, int64_t n) {
  EMIT(emit, "[");
  for (int64_t i = 0; i < n; i++) {
    if (i) EMIT(emit, ",");
    planc_emit_int(emit, values[i]);
  }
  EMIT(emit, "]");
}

void planc_emit_longs(planc_emit *emit, const int64_t *values, int64_t n) {
  EMIT(emit, "[");
  for (int64_t i = 0; i < n; i++) {
    if (i) EMIT(emit, ",");
    planc_emit_int(emit, values[i]);
  }
  EMIT(emit, "]");
}

void planc_emit_law(planc_emit *emit, planc_law law) {
  if (law.per_sample == 0) {
    planc_emit_int(emit, law.fixed);
    return;
  }
  EMIT(emit, "\"");
  if (law.fixed) {
    planc_emit_int(emit, law.fixed);
    EMIT(emit, "+");
  }
  if (law.per_sample != 1) planc_emit_int(emit, law.per_sample);
  EMIT(emit, "N\"");
}
