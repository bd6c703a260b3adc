/* How trainings differ (split.h). */
#include "runtime/split.h"

#include <inttypes.h>
#include <stddef.h>

planc_status rt_split_tell(const rt_split *run, const rt_split *other) {
  const struct {
    const char *one, *many;
    uint64_t run, other;
  } numbers[] = {{"replica", "replicas", run->replicas, other->replicas},
                 {"sample in a batch", "samples in a batch", run->batch, other->batch}};
  for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
    if (numbers[k].run == numbers[k].other) continue;
    return planc_error(PLANC_STALE, "made for %" PRIu64 " %s, the run has %" PRIu64, numbers[k].other,
                       numbers[k].other == 1 ? numbers[k].one : numbers[k].many, numbers[k].run);
  }
  return NULL;
}
