/* What comes in for the next iteration waits until that takes it (follower.h). */
#include "runtime/follower.h"

planc_status rt_late_add(planrt_follow *f, int32_t residency) {
  const rt_followed_place *from = &f->places[residency];
  if (from->version == RT_NOTHING)
    return planc_error(PLANC_INTERNAL, "%s is neither here nor on the host", rt_follow_name(f, from->buffer));
  f->late[f->n_late++] = (rt_late){residency, *from};
  return NULL;
}

static planc_status bring(planrt_follow *f, int32_t i) {
  const rt_late *late = &f->late[i];
  if (!f->contents[late->from.buffer].present) PLANC_TRY(rt_follow_copy_in_now(f, late->residency, &late->from));
  f->late[i] = f->late[--f->n_late];
  return NULL;
}

planc_status rt_late_bring(planrt_follow *f) {
  while (f->n_late > 0) PLANC_TRY(bring(f, f->n_late - 1));
  return NULL;
}

planc_status rt_late_bring_buffer(planrt_follow *f, int32_t buffer) {
  for (int32_t i = f->n_late - 1; i >= 0; i--)
    if (f->late[i].from.buffer == buffer) PLANC_TRY(bring(f, i));
  return NULL;
}

planc_status rt_late_bring_from(planrt_follow *f, int64_t address, int64_t bytes) {
  for (int32_t i = f->n_late - 1; i >= 0; i--) {
    const rt_followed_place *from = &f->late[i].from;
    bool apart = from->address + f->trace->buffers[from->buffer].bytes <= address || address + bytes <= from->address;
    if (!apart) PLANC_TRY(bring(f, i));
  }
  return NULL;
}
