/* What a follower does between two calls (follower.h): it carries out the plan's instructions, where that is needed. */
#include <string.h>

#include "runtime/follower.h"

static planc_status release(planrt_follow *f, int32_t residency, rt_next_use next);

planc_status rt_follow_act(planrt_follow *f, const planc_instr *instr, rt_next_use next) {
  switch ((planc_instr_op)instr->op) {
    case PLANC_INSTR_acquire:
      rt_follow_open(f, instr->id);
      return rt_follow_find_room(f, 0);
    case PLANC_INSTR_release:
      return release(f, instr->id, next);
    case PLANC_INSTR_copy:
      return rt_follow_copy(f, instr, next);
    case PLANC_INSTR_exec:
      return rt_follow_repeat(f, instr);
    case PLANC_INSTR_record:
      return rt_order_record(f, instr->id, f->numbers[instr->stream]);
    case PLANC_INSTR_wait:
      PLANC_TRY(rt_order_wait(f, instr->id, f->numbers[instr->stream]));
      return f->numbers[instr->stream] == PLANRT_CALLS ? rt_follow_sweep(f) : NULL;
  }
  return NULL;
}

void rt_follow_open(planrt_follow *f, int32_t residency) {
  rt_followed_place *at = &f->places[residency];
  rt_content *of = &f->contents[at->buffer];
  at->open = true;
  at->version = RT_NOTHING;
  if (rt_follow_memory(f, residency) == PLANC_MEMORY_DEVICE) {
    of->places++;
    f->open_bytes += f->trace->buffers[at->buffer].bytes;
  }
  if (rt_follow_memory(f, residency) != PLANC_MEMORY_HOST) return;
  at->below = of->host;
  of->host = residency;
}

/* Whether what persists may leave the device: the host has it, or gets it now where it could not be had before. */
static planc_status is_safe(planrt_follow *f, int32_t buffer, bool *out) {
  const rt_content *of = &f->contents[buffer];
  rt_followed_place *host = of->host == RT_NOTHING ? NULL : &f->places[of->host];
  if (host && host->version == RT_NOTHING) PLANC_TRY(rt_follow_copy_out_now(f, of->host));
  *out = host && host->version == of->version;
  return NULL;
}

void rt_follow_close(planrt_follow *f, int32_t residency) {
  int32_t buffer = f->places[residency].buffer;
  rt_content *of = &f->contents[buffer];
  f->places[residency].open = false;
  if (rt_follow_memory(f, residency) == PLANC_MEMORY_DEVICE) f->open_bytes -= f->trace->buffers[buffer].bytes;
  while (of->host != RT_NOTHING && !f->places[of->host].open) of->host = f->places[of->host].below;
}

/* To the place that the plan has the data in besides the one that it gives up. */
static planc_status move_over(planrt_follow *f, int32_t left) {
  const rt_followed_place *at = &f->places[left];
  if (!f->waits && f->addresses[at->buffer] != at->address) return NULL;
  for (int32_t r = 0; r < f->plan->n_residencies; r++)
    if (r != left && f->places[r].open && f->places[r].buffer == at->buffer &&
        rt_follow_memory(f, r) == PLANC_MEMORY_DEVICE)
      return f->waits ? rt_address_wait(f, r) : rt_address_seat(f, r);
  return NULL;
}

static planc_status release(planrt_follow *f, int32_t residency, rt_next_use next) {
  rt_followed_place *at = &f->places[residency];
  rt_content *of = &f->contents[at->buffer];
  bool may_go = true;
  rt_follow_close(f, residency);
  if (rt_follow_memory(f, residency) != PLANC_MEMORY_DEVICE) return NULL;
  if (--of->places > 0) return of->present ? move_over(f, residency) : NULL;
  if (!of->present) {
    rt_late_drop(f, residency);
    return NULL;
  }
  if (!rt_follow_address(f, at->buffer)) return NULL;
  if (rt_follow_persists(f, at->buffer) && next == RT_NEXT_READ) PLANC_TRY(is_safe(f, at->buffer, &may_go));
  return may_go ? rt_follow_give_back(f, at->buffer, next == RT_NEXT_NONE) : NULL;
}

/* What comes in for no call is for the user, who had it when it was given back for the last time. */
planc_status rt_follow_copy(planrt_follow *f, const planc_instr *instr, rt_next_use next) {
  planc_memory_kind from = rt_follow_memory(f, instr->aux), to = rt_follow_memory(f, instr->id);
  int32_t stream = f->numbers[instr->stream];
  if (from == PLANC_MEMORY_DEVICE && to == PLANC_MEMORY_HOST) return rt_follow_copy_out(f, stream, instr->id);
  if (from == PLANC_MEMORY_HOST && to == PLANC_MEMORY_DEVICE) {
    const rt_followed_place *source = &f->places[instr->aux];
    if (next == RT_NEXT_NONE || f->contents[source->buffer].present) return NULL;
    bool waits = f->waits && rt_follow_persists(f, source->buffer);
    return waits ? rt_late_add(f, instr->aux, instr->id) : rt_follow_copy_in(f, stream, instr->aux, source, instr->id);
  }
  if (from == PLANC_MEMORY_HOST && to == PLANC_MEMORY_HOST) {
    const rt_followed_place *old = &f->places[instr->aux];
    rt_followed_place *new = &f->places[instr->id];
    new->version = old->version;
    PLANC_TRY(rt_late_bring_from(f, new->address, f->trace->buffers[old->buffer].bytes));
    PLANC_TRY(rt_order_finish(f));
    if (f->host) memmove(f->host + new->address, f->host + old->address, (size_t)f->trace->buffers[old->buffer].bytes);
  }
  return NULL; /* within the device, and to the user: the framework has the data where it wants them */
}

/* --- Calls -------------------------------------------------------------------------------------------------------- */

planc_status rt_follow_check_reads(const planrt_follow *f, int32_t instance, const int32_t *uses) {
  const planc_access *access;
  for (int32_t k = RT_NOTHING; (access = rt_follow_access(f, instance, uses, &k));) {
    const rt_content *of = &f->contents[access->buffer];
    if (access->read < 0 || (of->present && of->version == access->read)) continue;
    return planc_error(PLANC_INTERNAL, "%s reads version %d of %s, which is not on the device",
                       planc_trace_op(f->trace, instance)->name, access->read, rt_follow_name(f, access->buffer));
  }
  return NULL;
}

planc_status rt_follow_order_call(planrt_follow *f, int32_t instance, const int32_t *uses) {
  const planc_access *access;
  for (int32_t k = RT_NOTHING; (access = rt_follow_access(f, instance, uses, &k));)
    PLANC_TRY(rt_order_before(f, PLANRT_CALLS, access->buffer, access->write >= 0));
  return NULL;
}

/* Gives memory to what a call overwrites, of what has none. */
planc_status rt_follow_make_room(planrt_follow *f, int32_t instance, const int32_t *uses) {
  const planc_access *access;
  for (int32_t k = RT_NOTHING; (access = rt_follow_access(f, instance, NULL, &k));) {
    bool overwrites = access->read < 0 && !rt_follow_makes(f, access);
    if (overwrites && !f->contents[access->buffer].present) PLANC_TRY(rt_follow_allocate(f, access->buffer, uses[k]));
  }
  return NULL;
}

void rt_follow_write_results(planrt_follow *f, int32_t instance, const int32_t *uses) {
  const planc_access *access;
  for (int32_t k = RT_NOTHING; (access = rt_follow_access(f, instance, uses, &k));) {
    rt_content *of = &f->contents[access->buffer];
    rt_order_after(f, PLANRT_CALLS, access->buffer, access->write >= 0 || !of->touched);
    of->touched = true; /* who uses what persists for the first time has just made it */
    if (access->write < 0) continue;
    of->present = true;
    of->version = access->write;
    if (!uses) of->made = access->write;
  }
}

planc_status rt_follow_repeat(planrt_follow *f, const planc_instr *instr) {
  const int32_t *uses = &f->plan->uses[instr->first_use];
  const planc_access *access;
  int32_t n = 0;
  PLANC_TRY(rt_address_seat_late(f));
  PLANC_TRY(rt_late_bring(f));
  PLANC_TRY(rt_follow_check_reads(f, instr->id, uses));
  for (int32_t k = RT_NOTHING; (access = rt_follow_access(f, instr->id, uses, &k));) {
    const rt_content *of = &f->contents[access->buffer];
    if (of->leaving && access->read < 0)
      PLANC_TRY(of->version == access->write ? rt_follow_stay(f, access->buffer) : rt_follow_let_go(f, access->buffer));
    bool is_there = access->read < 0 && of->present;
    if (is_there && of->version != access->write)
      return planc_error(PLANC_USAGE, "the plan has two versions of %s on the device at once; a framework has one",
                         rt_follow_name(f, access->buffer));
    if (access->write < 0 || is_there) continue;
    if (access->read < 0 && !rt_follow_makes(f, access)) PLANC_TRY(rt_follow_allocate(f, access->buffer, uses[k]));
    f->wanted[n++] = access->buffer;
  }
  if (n == 0) return NULL;
  PLANC_TRY(rt_address_seat_operands(f, instr->id, uses));
  PLANC_TRY(rt_follow_order_call(f, instr->id, uses));
  PLANC_TRY(rt_follow_find_room(f, instr->bytes));
  PLANC_TRY(rt_address_find_rooms(f, instr, f->wanted, n));
  if (f->framework.repeat(f->framework.user, instr->id, f->wanted, n, &f->rooms))
    return planc_error(PLANC_DEVICE, "the framework could not run %s again", planc_trace_op(f->trace, instr->id)->name);
  rt_address_take_rooms(f);
  f->counts.repeats++;
  rt_follow_write_results(f, instr->id, uses);
  return NULL;
}
