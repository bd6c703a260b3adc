/* Arithmetic of size laws. As in util/math.h, the functions that compute return true on overflow. */
#ifndef PLANC_GRAPH_LAW_H
#define PLANC_GRAPH_LAW_H

#include "planc/graph.h"
#include "util/math.h"

static inline planc_law pl_law_constant(int64_t value) {
  return (planc_law){.fixed = value};
}

static inline bool pl_law_equal(planc_law a, planc_law b) {
  return a.fixed == b.fixed && a.per_sample == b.per_sample;
}

static inline bool pl_law_is_zero(planc_law law) {
  return law.fixed == 0 && law.per_sample == 0;
}

static inline bool pl_law_add_overflow(planc_law a, planc_law b, planc_law *out) {
  return pl_add_overflow(a.fixed, b.fixed, &out->fixed) ||
         pl_add_overflow(a.per_sample, b.per_sample, &out->per_sample);
}

static inline bool pl_law_scale_overflow(planc_law a, int64_t factor, planc_law *out) {
  return pl_mul_overflow(a.fixed, factor, &out->fixed) || pl_mul_overflow(a.per_sample, factor, &out->per_sample);
}

/* a * b; a product of two laws that both depend on N is no law and counts as overflow. */
static inline bool pl_law_mul_overflow(planc_law a, planc_law b, planc_law *out) {
  if (a.per_sample && b.per_sample) return true;
  return b.per_sample ? pl_law_scale_overflow(b, a.fixed, out) : pl_law_scale_overflow(a, b.fixed, out);
}

/* a(N) <= b(N) for every N >= 1. */
static inline bool pl_law_at_most(planc_law a, planc_law b) {
  if (a.per_sample > b.per_sample) return false;
  return a.fixed <= b.fixed || a.fixed - b.fixed <= b.per_sample - a.per_sample;
}

#endif
