/* The time of a link (link_time.h). */
#include "planner/choose/link_time.h"

#include "util/math.h"

planc_status planc_link_time_reset(planc_link_time *link) {
  return planc_free_list_reset(&link->open);
}

void planc_link_time_free(planc_link_time *link) {
  planc_free_list_free(&link->open);
}

bool planc_link_time_earliest(const planc_link_time *link, int64_t from, int64_t to, int64_t ns, int64_t *out_start) {
  *out_start = from;
  if (ns == 0) return true;
  if (to < ns || to - ns < from) return false;
  int64_t start = planc_free_list_first(&link->open, from, ns).start;
  *out_start = start > from ? start : from;
  return *out_start <= to - ns;
}

bool planc_link_time_latest(const planc_link_time *link, int64_t from, int64_t to, int64_t ns, int64_t *out_start) {
  bool found;
  *out_start = to;
  if (ns == 0) return true;
  planc_range gap = planc_free_list_last(&link->open, to, ns, &found);
  *out_start = (gap.end < to ? gap.end : to) - ns;
  return found && *out_start >= from;
}

planc_status planc_link_time_take(planc_link_time *link, int64_t start, int64_t ns) {
  bool taken;
  if (ns == 0) return NULL;
  PLANC_TRY(planc_free_list_take(&link->open, (planc_range){start, start + ns}, &taken));
  return taken ? NULL : planc_error(PLANC_INTERNAL, "two copies at a time on one link");
}

int64_t planc_fetch_ns(const planc_link *h2d, const planc_trace *trace, int32_t buffer) {
  const planc_buffer *it = &trace->buffers[buffer];
  if (it->peer < 0) return planc_link_ns(h2d, it->bytes);
  return planc_muldiv_ceil(planc_link_ns(h2d, trace->buffers[it->peer].bytes), trace->jobs[it->job].replicas - 1, 1);
}
