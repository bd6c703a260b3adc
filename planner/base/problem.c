/* What the terms of a problem allow (problem.h). */
#include "planc/problem.h"

#include "util/math.h"

int64_t planc_away_budget(const planc_terms *terms) {
  const int64_t *budgets = terms->budgets;
  if (budgets[PLANC_MEMORY_HOST] < 0 || budgets[PLANC_MEMORY_STORAGE] < 0) return -1;
  return pl_add_saturate(budgets[PLANC_MEMORY_HOST], budgets[PLANC_MEMORY_STORAGE]);
}

bool planc_is_within(const planc_terms *terms, const int64_t peak_bytes[PLANC_N_BUDGETS]) {
  for (int32_t m = 0; m < PLANC_N_BUDGETS; m++)
    if (terms->budgets[m] >= 0 && peak_bytes[m] > terms->budgets[m]) return false;
  return true;
}
