/* The lesser of two reasons why nothing fits (reasons.h). */
#include "planner/choose/reasons.h"

#include <stdbool.h>

/* A host that is too small comes before a device that is, and storage before both: the others' budgets are then met. */
static bool asks_for_less(planc_shortage a, planc_shortage b) {
  if (a.memory != b.memory) return a.memory > b.memory;
  return a.bytes > 0 && (b.bytes == 0 || a.bytes < b.bytes);
}

void pl_keep_lesser(planc_status *kept, planc_status reason) {
  bool keep = !*kept || asks_for_less(planc_status_shortage(reason), planc_status_shortage(*kept));
  planc_status_free(keep ? *kept : reason);
  if (keep) *kept = reason;
}
