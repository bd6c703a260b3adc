/* Fuzzing the plan reader and the checker: whatever the bytes, reading ends in a plan or an error; a plan that was read
 * prints as the bytes it came from; and it can be checked. */
#include <stdlib.h>
#include <string.h>

#include "planc/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  planc_plan *plan;
  planc_status status = planc_plan_parse((const char *)data, size, "fuzz", &plan);
  if (status) {
    planc_status_free(status);
    return 0;
  }
  char *text;
  size_t length;
  status = planc_plan_print(plan, &text, &length);
  if (status || length != size || memcmp(text, data, size) != 0) abort();
  free(text);
  planc_status_free(planc_check(plan, NULL, NULL));
  planc_plan_free(plan);
  return 0;
}
