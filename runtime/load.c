/* Loading: the plan's instructions become actions whose addresses are resolved once, before the first run. A plan that
 * the checker has passed cannot fail here but for want of a kernel; the range checks keep an unchecked one inside the
 * session's memory. */
#include "plan/mapping.h"
#include "runtime/session.h"
#include "util/math.h"

/* Where a memory of the plan is, and how many bytes its addresses range over. */
typedef struct region {
  planc_memory_kind kind;
  char *data;
  int64_t bytes; /* -1: nothing lies there */
} region;

/* Where a residency is. */
typedef struct place {
  int32_t buffer; /* -1: never acquired */
  int32_t memory;
  char *data;
  bool fresh; /* acquired, and nothing loaded since uses it */
} place;

typedef struct loader {
  planrt_session *session;
  const planc_plan *plan;
  const planc_trace *trace;
  region *regions;   /* by memory */
  place *places;     /* by residency */
  void **memory;     /* scratch: of one instance's accesses */
  planrt_part *part; /* being loaded */
  int32_t handovers; /* of the body, loaded */
} loader;

static bool inside(int64_t address, int64_t bytes, int64_t size) {
  int64_t end;
  return address >= 0 && bytes >= 0 && !planc_add_overflow(address, bytes, &end) && end <= size;
}

/* The GPUs' parts of the device's memory follow each other, and the arenas of host and storage are all of their own. */
static planc_status find_regions(loader *l) {
  const planrt_session *session = l->session;
  char *device = session->backend->arena(session->device);
  int32_t gpus = planc_plan_gpus(l->plan);
  int64_t at = 0;
  PLANC_TRY(PLANC_NEW(&l->session->loaded, &l->regions, l->plan->n_memories));
  for (int32_t m = 0; m < l->plan->n_memories; m++) {
    const planc_memory *memory = &l->plan->memories[m];
    l->regions[m] = (region){.kind = memory->kind, .bytes = -1};
    if (m < gpus) {
      l->regions[m] = (region){PLANC_MEMORY_DEVICE, device + at, planc_memory_range(l->plan, m)};
      at += planc_align_up(l->regions[m].bytes, PLANRT_ALIGNMENT);
    } else if (memory == planc_plan_memory(l->plan, PLANC_MEMORY_HOST)) {
      l->regions[m] = (region){PLANC_MEMORY_HOST, session->backend->host_arena(session->device), memory->arena_bytes};
    } else if (memory == planc_plan_memory(l->plan, PLANC_MEMORY_STORAGE) && memory->arena_bytes > 0) {
      l->regions[m] = (region){PLANC_MEMORY_STORAGE, session->backend->storage(session->device), memory->arena_bytes};
    }
  }
  return NULL;
}

/* The region of a memory; NULL when there is none. */
static const region *region_of(const loader *l, int32_t memory) {
  return memory >= 0 && memory < l->plan->n_memories ? &l->regions[memory] : NULL;
}

/* --- Residencies ---------------------------------------------------------------------------------------------- */

static planc_status no_residency(int32_t residency) {
  return planc_error(PLANC_INVALID_PLAN, "no residency %d", residency);
}

static planc_status locate(loader *l, int32_t residency, int32_t buffer, int32_t memory, int64_t address) {
  const region *in = region_of(l, memory);
  if (buffer < 0 || buffer >= l->trace->n_buffers)
    return planc_error(PLANC_INVALID_PLAN, "residency %d: no buffer %d", residency, buffer);
  if (residency < 0 || residency >= l->plan->n_residencies) return no_residency(residency);
  if (!in) return planc_error(PLANC_INVALID_PLAN, "residency %d: no memory %d", residency, memory);
  if (!inside(address, l->trace->buffers[buffer].bytes, in->bytes))
    return planc_error(PLANC_INVALID_PLAN, "residency %d of %s: address %lld is outside the arena", residency,
                       planc_trace_buffer_name(l->trace, buffer), (long long)address);
  l->places[residency] = (place){.buffer = buffer, .memory = memory, .data = in->data + address};
  return NULL;
}

static planc_status locate_all(loader *l) {
  PLANC_TRY(PLANC_NEW(&l->session->loaded, &l->places, l->plan->n_residencies));
  for (int32_t r = 0; r < l->plan->n_residencies; r++) l->places[r].buffer = -1;
  for (int32_t b = 0; b < l->plan->n_boundary; b++) {
    const planc_boundary *row = &l->plan->boundary[b];
    PLANC_TRY(locate(l, b, row->buffer, row->memory, row->address));
  }
  for (int32_t i = 0; i < l->plan->body.n; i++) {
    const planc_instr *instr = &l->plan->body.instrs[i];
    if (instr->op != PLANC_INSTR_acquire) continue;
    if (instr->id < l->plan->n_boundary)
      return planc_error(PLANC_INVALID_PLAN, "body[%d]: acquires residency %d of the boundary", i, instr->id);
    PLANC_TRY(planc_context(locate(l, instr->id, instr->aux, instr->memory, instr->address), "body[%d]", i));
  }
  return NULL;
}

/* Where an instruction's residency is; NULL when there is none. */
static place *place_of(const loader *l, int32_t residency) {
  if (residency < 0 || residency >= l->plan->n_residencies || l->places[residency].buffer < 0) return NULL;
  return &l->places[residency];
}

/* Appends an action to the part: each instruction makes one at most, an acquire the poisoning of its residency. */
static void emit(loader *l, const planrt_action *action) {
  l->part->actions[l->part->n++] = *action;
}

/* A residency is poisoned where it is first used, on the stream that uses it: only there is everything over that was
 * done to the memory before. */
static void use(loader *l, place *at, const planrt_action *by) {
  if (!at->fresh) return;
  at->fresh = false;
  planrt_action action = {.kind = PLANRT_POISON,
                          .stream = by->stream,
                          .instr = by->instr,
                          .to = at->data,
                          .bytes = l->trace->buffers[at->buffer].bytes};
  if (l->session->options.poison) emit(l, &action);
}

/* --- Instructions --------------------------------------------------------------------------------------------- */

/* The memory that the ops of a stream work in. */
static planc_status find_workplace(const loader *l, int32_t stream, int32_t *out_memory) {
  const planc_stream *on = &l->plan->streams[stream];
  const region *in = on->kind == PLANC_STREAM_KIND_compute ? region_of(l, on->on) : NULL;
  if (!in || in->kind != PLANC_MEMORY_DEVICE)
    return planc_error(PLANC_INVALID_PLAN, "stream %d is not one that runs ops", stream);
  *out_memory = on->on;
  return NULL;
}

/* The residencies an exec uses become the memory of its accesses. */
static planc_status find_operands(loader *l, const planc_instr *instr, int32_t memory, const planrt_action *action) {
  const planc_instance *instance = &l->trace->instances[instr->id];
  if (instr->first_use < 0 || instr->first_use > l->plan->n_uses - instance->n_accesses)
    return planc_error(PLANC_INVALID_PLAN, "uses %d.. are not in the plan", instr->first_use);
  for (int32_t k = 0; k < instance->n_accesses; k++) {
    const planc_access *access = &l->trace->accesses[instance->first_access + k];
    int32_t residency = l->plan->uses[instr->first_use + k];
    l->memory[k] = NULL;
    if (residency < 0 && access->effect && instr->recompute) continue;
    place *at = place_of(l, residency);
    if (!at) return no_residency(residency);
    if (at->buffer != access->buffer)
      return planc_error(PLANC_INVALID_PLAN, "residency %d holds %s, not %s", residency,
                         planc_trace_buffer_name(l->trace, at->buffer),
                         planc_trace_buffer_name(l->trace, access->buffer));
    if (at->memory != memory)
      return planc_error(PLANC_INVALID_PLAN, "residency %d of %s is not in memory %d", residency,
                         planc_trace_buffer_name(l->trace, at->buffer), memory);
    l->memory[k] = at->data;
    use(l, at, action);
  }
  return NULL;
}

static planc_status load_exec(loader *l, const planc_instr *instr, planrt_action *out) {
  planrt_session *session = l->session;
  int32_t memory;
  if (instr->id < 0 || instr->id >= l->trace->n_instances)
    return planc_error(PLANC_INVALID_PLAN, "no instance %d", instr->id);
  if (instr->aux < 0 || instr->aux >= l->plan->n_algorithms)
    return planc_error(PLANC_INVALID_PLAN, "no algorithm %d", instr->aux);
  PLANC_TRY(find_workplace(l, instr->stream, &memory));
  if (!inside(instr->address, instr->bytes, l->regions[memory].bytes))
    return planc_error(PLANC_INVALID_PLAN, "the workspace is outside the arena");
  PLANC_TRY(find_operands(l, instr, memory, out));

  planrt_call *call;
  PLANC_TRY(PLANC_NEW(&session->loaded, &call, 1));
  PLANC_TRY(planrt_call_make(&session->loaded, l->trace, instr->id, l->memory, call));
  call->algorithm = l->plan->algorithms[instr->aux];
  call->workspace = l->regions[memory].data + instr->address;
  call->workspace_bytes = instr->bytes;
  out->kind = PLANRT_CALL;
  out->call = call;
  return planc_context(session->backend->prepare(session->device, call), "op %s: %s", call->op->name, call->algorithm);
}

/* The user's side of a copy: in the body samples come and results leave, around it persistent buffers come from and go
 * to their home. `at` is the other side. */
static planc_status load_user(loader *l, const place *at, bool delivers, bool body, planrt_action *out) {
  const planc_buffer *buffer = &l->trace->buffers[at->buffer];
  uint32_t needed = !body ? PLANC_BUFFER_PERSISTENT : delivers ? PLANC_BUFFER_RESULT : PLANC_BUFFER_FED;
  if (!(buffer->flags & needed) || buffer->peer >= 0)
    return planc_error(PLANC_INVALID_PLAN, "%s is not the user's", planc_trace_buffer_name(l->trace, at->buffer));
  out->kind = !body ? PLANRT_COPY : delivers ? PLANRT_DELIVER : PLANRT_FEED;
  if (body) out->handover = l->handovers++;
  char *user = body ? NULL : planrt_home(l->session, buffer);
  if (out->kind == PLANRT_FEED && l->session->options.same_samples) {
    out->kind = PLANRT_COPY;
    user = l->session->samples[at->buffer];
  }
  if (out->kind == PLANRT_FEED) user = l->session->samples[out->handover];
  if (delivers)
    out->to = user;
  else
    out->from = user;
  return NULL;
}

/* One side of a copy; NULL where that is the user. */
static planc_status find_side(loader *l, const planc_instr *instr, int32_t residency, place **out) {
  place *at = *out = place_of(l, residency);
  if (!at) return residency == PLANC_USER ? NULL : no_residency(residency);
  int64_t bytes = l->trace->buffers[at->buffer].bytes;
  if (instr->bytes == bytes) return NULL;
  return planc_error(PLANC_INVALID_PLAN, "%s has %lld bytes, not %lld", planc_trace_buffer_name(l->trace, at->buffer),
                     (long long)bytes, (long long)instr->bytes);
}

/* Another replica's gradient is copied to the buffer that an exchange has for it. */
static bool may_be_copied(const loader *l, const place *from, const place *to) {
  return to->buffer == from->buffer || l->trace->buffers[to->buffer].peer == from->buffer;
}

/* What the user has is host memory, too. */
static planc_status find_direction(const loader *l, const place *from, const place *to, uint8_t *out) {
  enum { NONE = UINT8_MAX };
  static const uint8_t directions[3][3] = {
      [PLANC_MEMORY_DEVICE] = {PLANRT_D2D, PLANRT_D2H, NONE},
      [PLANC_MEMORY_HOST] = {PLANRT_H2D, PLANRT_H2H, PLANRT_H2S},
      [PLANC_MEMORY_STORAGE] = {NONE, PLANRT_S2H, NONE},
  };
  *out = directions[from ? l->regions[from->memory].kind : PLANC_MEMORY_HOST]
                   [to ? l->regions[to->memory].kind : PLANC_MEMORY_HOST];
  if (*out != NONE) return NULL;
  return planc_error(PLANC_DEVICE, "no backend copies to or from storage but by way of the host");
}

static planc_status load_copy(loader *l, const planc_instr *instr, bool body, planrt_action *out) {
  place *to, *from;
  PLANC_TRY(find_side(l, instr, instr->aux, &from));
  PLANC_TRY(find_side(l, instr, instr->id, &to));
  if (!to && !from) return planc_error(PLANC_INVALID_PLAN, "a copy from the user to the user");
  if (from) use(l, from, out);
  if (to) use(l, to, out);
  if (to && from && !may_be_copied(l, from, to))
    return planc_error(PLANC_INVALID_PLAN, "residencies %d and %d hold different buffers", instr->id, instr->aux);
  out->kind = PLANRT_COPY;
  PLANC_TRY(find_direction(l, from, to, &out->direction));
  out->id = to ? to->buffer : from->buffer;
  out->to = to ? to->data : NULL;
  out->from = from ? from->data : NULL;
  out->bytes = instr->bytes;
  return to && from ? NULL : load_user(l, to ? to : from, !to, body, out);
}

/* In file order a residency is poisoned when it is released as well; among streams that run at once no place in the
 * plan is certainly behind its last use and before the memory's next. */
static planc_status load_release(loader *l, const planc_instr *instr, planrt_action *out) {
  place *at = place_of(l, instr->id);
  if (!at) return no_residency(instr->id);
  out->kind = PLANRT_POISON;
  out->to = at->data;
  out->bytes = l->trace->buffers[at->buffer].bytes;
  if (l->session->options.poison && !l->session->options.concurrent) emit(l, out);
  return NULL;
}

static planc_status load_on_stream(loader *l, const planc_instr *instr, bool body, planrt_action *out) {
  if (instr->stream < 0 || instr->stream >= l->plan->n_streams)
    return planc_error(PLANC_INVALID_PLAN, "no stream %d", instr->stream);
  switch ((planc_instr_op)instr->op) {
    case PLANC_INSTR_exec:
      return load_exec(l, instr, out);
    case PLANC_INSTR_copy:
      return load_copy(l, instr, body, out);
    default:
      if (instr->id < 0 || instr->id >= l->plan->n_events)
        return planc_error(PLANC_INVALID_PLAN, "no event %d", instr->id);
      out->kind = instr->op == PLANC_INSTR_record ? PLANRT_RECORD : PLANRT_WAIT;
      return NULL;
  }
}

static planc_status load_instr(loader *l, const planc_instr *instr, int32_t index, bool body) {
  planrt_action action = {.stream = -1, .lag = instr->lag, .instr = index, .id = instr->id};
  if (instr->op == PLANC_INSTR_acquire) {
    if (!body) PLANC_TRY(locate(l, instr->id, instr->aux, instr->memory, instr->address));
    place *at = place_of(l, instr->id);
    if (!at) return no_residency(instr->id);
    at->fresh = true;
    return NULL;
  }
  if (instr->op == PLANC_INSTR_release) return load_release(l, instr, &action);
  bool bare = l->session->options.bare;
  action.stream = instr->stream;
  if (bare) action.stream = 0;
  PLANC_TRY(load_on_stream(l, instr, body, &action));
  if (!bare || (action.kind != PLANRT_RECORD && action.kind != PLANRT_WAIT)) emit(l, &action);
  return NULL;
}

/* --- Parts ---------------------------------------------------------------------------------------------------- */

/* Lists each stream's actions. */
static planc_status thread(loader *l, planrt_part *part) {
  int32_t n_streams = l->plan->n_streams;
  PLANC_TRY(PLANC_NEW(&l->session->loaded, &part->first, (int64_t)n_streams + 1));
  PLANC_TRY(PLANC_NEW(&l->session->loaded, &part->by_stream, part->n));
  for (int32_t i = 0; i < part->n; i++)
    if (part->actions[i].stream >= 0) part->first[part->actions[i].stream + 1]++;
  for (int32_t s = 0; s < n_streams; s++) part->first[s + 1] += part->first[s];
  for (int32_t i = 0; i < part->n; i++)
    if (part->actions[i].stream >= 0) part->by_stream[part->first[part->actions[i].stream]++] = i;
  for (int32_t s = n_streams; s > 0; s--) part->first[s] = part->first[s - 1];
  part->first[0] = 0;
  return NULL;
}

static planc_status load_part(loader *l, const planc_section *section, const char *name, planrt_part *part) {
  *part = (planrt_part){.name = name};
  l->part = part;
  PLANC_TRY(PLANC_NEW(&l->session->loaded, &part->actions, section->n));
  for (int32_t r = 0; r < l->plan->n_residencies; r++) l->places[r].fresh = false;
  bool body = section == &l->plan->body;
  for (int32_t i = 0; i < section->n; i++)
    PLANC_TRY(planc_context(load_instr(l, &section->instrs[i], i, body), "%s[%d]", name, i));
  return thread(l, part);
}

planc_status planrt_load(planrt_session *session) {
  loader l = {.session = session, .plan = session->plan, .trace = session->trace};
  PLANC_TRY(PLANC_NEW(&session->loaded, &l.memory, planrt_most_accesses(l.trace)));
  PLANC_TRY(PLANC_NEW(&session->loaded, &session->cursors, l.plan->n_streams));
  PLANC_TRY(find_regions(&l));
  PLANC_TRY(locate_all(&l));
  PLANC_TRY(load_part(&l, &l.plan->prologue, "prologue", &session->parts[PLANRT_PROLOGUE]));
  PLANC_TRY(load_part(&l, &l.plan->body, "body", &session->parts[PLANRT_BODY]));
  return load_part(&l, &l.plan->epilogue, "epilogue", &session->parts[PLANRT_EPILOGUE]);
}
