/* Copies between the framework's memory and the host (follower.h): those of the plan, those that it does not have where
 * they are made, and those for the next iteration, which wait until that takes what they bring. */
#include "runtime/follower.h"

/* A residency among what streams read and write. */
static int32_t resource_of(const planrt_follow *f, int32_t residency) {
  return f->trace->n_buffers + residency;
}

planc_status rt_follow_copy_out(planrt_follow *f, int32_t stream, int32_t residency) {
  rt_followed_place *to = &f->places[residency];
  const rt_content *from = &f->contents[to->buffer];
  PLANC_TRY(rt_late_bring_buffer(f, to->buffer));
  PLANC_TRY(rt_late_bring_from(f, to->address, f->trace->buffers[to->buffer].bytes));
  to->version = RT_NOTHING;
  if (!from->present || !rt_follow_address(f, to->buffer)) return NULL;
  if (f->host) {
    PLANC_TRY(rt_order_before(f, stream, to->buffer, false));
    PLANC_TRY(rt_order_before(f, stream, resource_of(f, residency), true));
    PLANC_TRY(rt_order_copy(f, stream, to->buffer, f->host + to->address, true));
    rt_order_after(f, stream, to->buffer, false);
    rt_order_after(f, stream, resource_of(f, residency), true);
  }
  to->version = from->version;
  return NULL;
}

static planc_status copy_to_memory(planrt_follow *f, int32_t stream, int32_t residency, const rt_followed_place *from);

planc_status rt_follow_copy_in(planrt_follow *f, int32_t stream, int32_t residency, const rt_followed_place *from,
                               int32_t place) {
  int32_t buffer = from->buffer;
  rt_content *to = &f->contents[buffer];
  if (from->version == RT_NOTHING)
    return planc_error(PLANC_INTERNAL, "%s is neither here nor on the host", rt_follow_name(f, buffer));
  if (to->leaving && to->version == from->version) {
    PLANC_TRY(rt_follow_stay(f, buffer));
    return rt_address_seat(f, place);
  }
  if (!to->present) PLANC_TRY(rt_follow_allocate(f, buffer, place));
  planc_status status = f->host ? copy_to_memory(f, stream, residency, from) : NULL;
  if (!status) {
    to->version = from->version;
  } else { /* what the memory holds is nothing that anybody may see */
    f->framework.release(f->framework.user, buffer, false);
    rt_address_set(f, buffer, RT_NOTHING);
    to->present = false;
  }
  return status;
}

static planc_status copy_to_memory(planrt_follow *f, int32_t stream, int32_t residency, const rt_followed_place *from) {
  PLANC_TRY(rt_order_after_calls(f, stream));
  PLANC_TRY(rt_order_before(f, stream, from->buffer, true));
  PLANC_TRY(rt_order_before(f, stream, resource_of(f, residency), false));
  PLANC_TRY(rt_order_copy(f, stream, from->buffer, f->host + from->address, false));
  rt_order_after(f, stream, from->buffer, true);
  rt_order_after(f, stream, resource_of(f, residency), false);
  return NULL;
}

/* A copy that the plan does not have at this place, so that its events do not tell whose turn it is. */
planc_status rt_follow_copy_out_now(planrt_follow *f, int32_t residency) {
  PLANC_TRY(rt_order_fence(f));
  PLANC_TRY(rt_follow_copy_out(f, f->out_stream, residency));
  return rt_order_fence(f);
}

planc_status rt_follow_copy_in_now(planrt_follow *f, int32_t residency, const rt_followed_place *from) {
  PLANC_TRY(rt_order_fence(f));
  PLANC_TRY(rt_follow_copy_in(f, f->in_stream, residency, from, RT_NOTHING));
  return rt_order_fence(f);
}

/* --- What waits for the next iteration ---------------------------------------------------------------------------- */

planc_status rt_late_add(planrt_follow *f, int32_t residency, int32_t to) {
  const rt_followed_place *from = &f->places[residency];
  if (from->version == RT_NOTHING)
    return planc_error(PLANC_INTERNAL, "%s is neither here nor on the host", rt_follow_name(f, from->buffer));
  f->late[f->n_late++] = (rt_late){residency, to, *from};
  return NULL;
}

void rt_late_drop(planrt_follow *f, int32_t to) {
  for (int32_t i = f->n_late - 1; i >= 0; i--) {
    const rt_late *late = &f->late[i];
    int32_t host = f->contents[late->from.buffer].host;
    bool is_there = host != RT_NOTHING && f->places[host].version == late->from.version;
    if (late->to == to && is_there) f->late[i] = f->late[--f->n_late];
  }
}

void rt_late_forget(planrt_follow *f, int32_t buffer) {
  for (int32_t i = f->n_late - 1; i >= 0; i--)
    if (f->late[i].from.buffer == buffer) f->late[i] = f->late[--f->n_late];
}

static planc_status bring(planrt_follow *f, int32_t i) {
  const rt_late *late = &f->late[i];
  if (!f->contents[late->from.buffer].present)
    PLANC_TRY(rt_follow_copy_in(f, f->in_stream, late->residency, &late->from, late->to));
  f->late[i] = f->late[--f->n_late];
  return NULL;
}

/* All of it between two fences, as any copy that the plan does not have at this place. */
planc_status rt_late_bring(planrt_follow *f) {
  if (f->n_late == 0) return NULL;
  PLANC_TRY(rt_order_fence(f));
  while (f->n_late > 0) PLANC_TRY(bring(f, f->n_late - 1));
  return rt_order_fence(f);
}

static planc_status bring_now(planrt_follow *f, int32_t i) {
  PLANC_TRY(rt_order_fence(f));
  PLANC_TRY(bring(f, i));
  return rt_order_fence(f);
}

planc_status rt_late_bring_buffer(planrt_follow *f, int32_t buffer) {
  for (int32_t i = f->n_late - 1; i >= 0; i--)
    if (f->late[i].from.buffer == buffer) PLANC_TRY(bring_now(f, i));
  return NULL;
}

planc_status rt_late_bring_from(planrt_follow *f, int64_t address, int64_t bytes) {
  for (int32_t i = f->n_late - 1; i >= 0; i--) {
    const rt_followed_place *from = &f->late[i].from;
    bool apart = from->address + f->trace->buffers[from->buffer].bytes <= address || address + bytes <= from->address;
    if (!apart) PLANC_TRY(bring_now(f, i));
  }
  return NULL;
}
