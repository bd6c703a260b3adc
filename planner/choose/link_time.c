/* The time of a link (link_time.h). */
#include "planner/choose/link_time.h"

planc_status pl_link_time_reset(pl_link_time *link) {
  return pl_free_list_reset(&link->idle);
}

void pl_link_time_free(pl_link_time *link) {
  pl_free_list_free(&link->idle);
}

bool pl_link_time_earliest(const pl_link_time *link, int64_t from, int64_t to, int64_t ns, int64_t *out_start) {
  *out_start = from;
  if (ns == 0) return true;
  if (to < ns || to - ns < from) return false;
  int64_t start = pl_free_list_first(&link->idle, from, ns).start;
  *out_start = start > from ? start : from;
  return *out_start <= to - ns;
}

bool pl_link_time_latest(const pl_link_time *link, int64_t from, int64_t to, int64_t ns, int64_t *out_start) {
  bool found;
  *out_start = to;
  if (ns == 0) return true;
  pl_range idle = pl_free_list_last(&link->idle, to, ns, &found);
  *out_start = (idle.end < to ? idle.end : to) - ns;
  return found && *out_start >= from;
}

planc_status pl_link_time_take(pl_link_time *link, int64_t start, int64_t ns) {
  bool taken;
  if (ns == 0) return NULL;
  PLANC_TRY(pl_free_list_take(&link->idle, (pl_range){start, start + ns}, &taken));
  return taken ? NULL : planc_error(PLANC_INTERNAL, "two copies at a time on one link");
}
