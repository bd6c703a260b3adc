/* Sentences about budgets that are too small (shortage.h). */
#include "planner/shortage.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

int64_t pl_shortage_room(const pl_shortage *shortage) {
  bool device = shortage->needs.memory == PLANC_MEMORY_DEVICE;
  return device ? shortage->budget - shortage->beside : shortage->budget / shortage->replicas;
}

const char *pl_shortage_format(const pl_shortage *shortage, char text[PL_SHORTAGE_TEXT]) {
  static const char *const names[PLANC_N_MEMORY_KINDS] = {
      [PLANC_MEMORY_DEVICE] = "device memory", [PLANC_MEMORY_HOST] = "host memory", [PLANC_MEMORY_STORAGE] = "storage"};
  planc_memory_kind memory = shortage->needs.memory;
  const char *part = memory == PLANC_MEMORY_DEVICE ? "reserved" : names[PLANC_MEMORY_STORAGE];
  int length = snprintf(text, PL_SHORTAGE_TEXT, "%lld bytes of %s, the budget is %lld",
                        (long long)shortage->needs.bytes, names[memory], (long long)shortage->budget);
  if (shortage->beside > shortage->budget)
    (void)snprintf(text + length, PL_SHORTAGE_TEXT - (size_t)length, ", less than the %lld %s",
                   (long long)shortage->beside, part);
  else if (shortage->beside > 0)
    (void)snprintf(text + length, PL_SHORTAGE_TEXT - (size_t)length, ", %lld of it %s", (long long)shortage->beside,
                   part);
  return text;
}

planc_status pl_shortage_status(const pl_shortage *shortage, const char *who, char *why) {
  char text[PL_SHORTAGE_TEXT];
  planc_status status = planc_infeasible(shortage->needs, "%s %s%s", who, pl_shortage_format(shortage, text),
                                         pl_shortage_room(shortage) < 0 ? "" : why);
  free(why);
  return status;
}
