/* Loading: the plan's instructions become actions whose addresses are resolved once, before the first run. A plan that
 * the checker has passed cannot fail here but for want of a kernel; the range checks keep an unchecked one inside the
 * session's memory. */
#include <assert.h>
#include <string.h>

#include "runtime/places.h"

typedef struct loader {
  planrt_session *session;
  const planc_plan *plan;
  const planc_trace *trace;
  int32_t n_replicas;
  rt_places places;
  bool *fresh;   /* by replica and residency: acquired, and nothing loaded since uses it */
  void **memory; /* scratch: of one instance's accesses */

  rt_part *part;     /* being loaded */
  int64_t room;      /* for its actions */
  bool body;         /* it is the body */
  int32_t replica;   /* whose instruction is being loaded */
  int32_t handovers; /* of the body, loaded */
} loader;

static planc_status load_part(loader *l, const planc_section *section, const char *name, rt_part *part);
static int64_t room_for(const loader *l, const planc_section *section);
static planc_status load_instr(loader *l, const planc_instr *instr, int32_t index);
static planc_status list_by_stream(loader *l, rt_part *part);
static planc_status load_acquire(loader *l, const planc_instr *instr);
static planc_status load_release(loader *l, const planc_instr *instr, rt_action *out);
static planc_status load_on_stream(loader *l, const planc_instr *instr, rt_action *out);
static planc_status load_exec(loader *l, const planc_instr *instr, rt_action *out);
static void emit(loader *l, const rt_action *action);
static planc_status load_copy(loader *l, const planc_instr *instr, rt_action *out);
static planc_status load_event(loader *l, const planc_instr *instr, rt_action *out);

planc_status rt_load(planrt_session *session) {
  loader l = {.session = session,
              .plan = session->plan,
              .trace = session->trace,
              .n_replicas = planc_trace_replicas(session->trace)};
  session->n_spans = 0;
  PLANC_TRY(PL_NEW(&session->loaded, &l.memory, rt_most_accesses(l.trace)));
  PLANC_TRY(PL_NEW(&session->loaded, &session->cursors, session->n_streams));
  PLANC_TRY(PL_NEW(&session->loaded, &l.fresh, (int64_t)l.n_replicas * l.plan->n_residencies));
  PLANC_TRY(rt_places_make(session, &session->loaded, &l.places));
  PLANC_TRY(load_part(&l, &l.plan->prologue, "prologue", &session->parts[RT_PROLOGUE]));
  PLANC_TRY(load_part(&l, &l.plan->body, "body", &session->parts[RT_BODY]));
  return load_part(&l, &l.plan->epilogue, "epilogue", &session->parts[RT_EPILOGUE]);
}

static planc_status load_part(loader *l, const planc_section *section, const char *name, rt_part *part) {
  l->room = room_for(l, section);
  *part = (rt_part){.name = name};
  l->part = part;
  l->body = section == &l->plan->body;
  if (l->room > INT32_MAX) return planc_error(PLANC_DEVICE, "%s: more than 2^31 instructions of all replicas", name);
  PLANC_TRY(PL_NEW(&l->session->loaded, &part->actions, l->room));
  memset(l->fresh, 0, (size_t)l->n_replicas * (size_t)l->plan->n_residencies * sizeof *l->fresh);
  for (int32_t i = 0; i < section->n; i++)
    for (l->replica = 0; l->replica < l->n_replicas; l->replica++)
      PLANC_TRY(planc_context(load_instr(l, &section->instrs[i], i), "%s[%d]", name, i));
  return list_by_stream(l, part);
}

/* An instruction of one replica. */
static planc_status load_instr(loader *l, const planc_instr *instr, int32_t index) {
  rt_action action = {.stream = -1, .lag = instr->lag, .instr = index, .id = instr->id, .repeats = 1};
  if (instr->op == PLANC_INSTR_acquire) return load_acquire(l, instr);
  if (instr->op == PLANC_INSTR_release) return load_release(l, instr, &action);
  return load_on_stream(l, instr, &action);
}

static planc_status load_on_stream(loader *l, const planc_instr *instr, rt_action *out) {
  if (instr->stream < 0 || instr->stream >= l->plan->n_streams)
    return planc_error(PLANC_INVALID_PLAN, "no stream %d", instr->stream);
  out->stream = l->session->options.bare ? 0 : l->replica * l->plan->n_streams + instr->stream;
  out->job = (int16_t)l->plan->streams[instr->stream].job;
  switch ((planc_instr_op)instr->op) {
    case PLANC_INSTR_exec:
      PLANC_TRY(load_exec(l, instr, out));
      emit(l, out);
      return NULL;
    case PLANC_INSTR_copy:
      return load_copy(l, instr, out);
    default:
      return load_event(l, instr, out);
  }
}

/* --- Actions ------------------------------------------------------------------------------------------------------ */

static const rt_place *place_of(const loader *l, int32_t residency) {
  return rt_place_of(&l->places, residency);
}

static char *data_of(const loader *l, int32_t replica, const rt_place *at) {
  return rt_data_of(&l->places, replica, at);
}

static bool *freshness_of(const loader *l, int32_t replica, const rt_place *at) {
  return &l->fresh[(int64_t)replica * l->plan->n_residencies + (at - l->places.places)];
}

/* Whether it takes time by itself. */
static bool is_timed(const rt_action *action) {
  return action->kind == RT_CALL || action->kind == RT_COPY || action->kind == RT_FEED || action->kind == RT_DELIVER;
}

/* Appends an action to the part. */
static void emit(loader *l, const rt_action *action) {
  assert(l->part->n < l->room); /* room_for has counted it */
  rt_action *made = &l->part->actions[l->part->n++];
  *made = *action;
  made->replica = (int16_t)l->replica;
  made->span = l->body && l->replica == 0 && is_timed(made) ? l->session->n_spans++ : -1;
}

/* A residency is poisoned where it is first used, on the stream that uses it: only there is everything over that was
 * done to the memory before. */
static void use(loader *l, int32_t replica, const rt_place *at, const rt_action *by) {
  bool *fresh = freshness_of(l, replica, at);
  rt_action action = {.kind = RT_POISON,
                      .job = by->job,
                      .stream = by->stream,
                      .instr = by->instr,
                      .repeats = 1,
                      .to = data_of(l, replica, at),
                      .bytes = l->trace->buffers[at->buffer].bytes};
  if (*fresh && l->session->options.poison) emit(l, &action);
  *fresh = false;
}

/* --- Instructions ------------------------------------------------------------------------------------------------- */

/* The memory that the ops of a stream work in. */
static planc_status find_workplace(const loader *l, int32_t stream, int32_t *out_memory) {
  const planc_stream *on = &l->plan->streams[stream];
  const rt_region *in = on->kind == PLANC_STREAM_KIND_compute ? rt_region_of(&l->places, on->on) : NULL;
  if (!in || in->kind != PLANC_MEMORY_DEVICE)
    return planc_error(PLANC_INVALID_PLAN, "stream %d is not one that runs ops", stream);
  *out_memory = on->on;
  return NULL;
}

/* The residencies an exec uses become the memory of its accesses. */
static planc_status find_operands(loader *l, const planc_instr *instr, int32_t memory, const rt_action *action) {
  const planc_instance *instance = &l->trace->instances[instr->id];
  if (instr->first_use < 0 || instr->first_use > l->plan->n_uses - instance->n_accesses)
    return planc_error(PLANC_INVALID_PLAN, "uses %d.. are not in the plan", instr->first_use);
  for (int32_t k = 0; k < instance->n_accesses; k++) {
    const planc_access *access = &l->trace->accesses[instance->first_access + k];
    int32_t residency = l->plan->uses[instr->first_use + k];
    l->memory[k] = NULL;
    if (residency < 0 && access->effect && instr->recompute) continue;
    const rt_place *at = place_of(l, residency);
    if (!at) return rt_no_residency(residency);
    if (at->buffer != access->buffer)
      return planc_error(PLANC_INVALID_PLAN, "residency %d holds %s, not %s", residency,
                         planc_trace_buffer_name(l->trace, at->buffer),
                         planc_trace_buffer_name(l->trace, access->buffer));
    if (at->memory != memory)
      return planc_error(PLANC_INVALID_PLAN, "residency %d of %s is not in memory %d", residency,
                         planc_trace_buffer_name(l->trace, at->buffer), memory);
    l->memory[k] = data_of(l, l->replica, at);
    use(l, l->replica, at, action);
  }
  return NULL;
}

static planc_status load_exec(loader *l, const planc_instr *instr, rt_action *out) {
  planrt_session *session = l->session;
  int32_t memory;
  if (instr->id < 0 || instr->id >= l->trace->n_instances)
    return planc_error(PLANC_INVALID_PLAN, "no instance %d", instr->id);
  if (instr->aux < 0 || instr->aux >= l->plan->n_algorithms)
    return planc_error(PLANC_INVALID_PLAN, "no algorithm %d", instr->aux);
  PLANC_TRY(find_workplace(l, instr->stream, &memory));
  if (!rt_is_inside(rt_region_of(&l->places, memory), instr->address, instr->bytes))
    return planc_error(PLANC_INVALID_PLAN, "the workspace is outside the arena");
  PLANC_TRY(find_operands(l, instr, memory, out));

  rt_call *call;
  PLANC_TRY(PL_NEW(&session->loaded, &call, 1));
  PLANC_TRY(rt_call_make(&session->loaded, l->trace, l->replica, instr->id, l->memory, call));
  call->algorithm = l->plan->algorithms[instr->aux];
  call->workspace = rt_address(&l->places, l->replica, memory, instr->address);
  call->workspace_bytes = instr->bytes;
  out->kind = RT_CALL;
  out->call = call;
  return planc_context(session->backend->prepare(session->device, call), "op %s, algorithm %s", call->op->name,
                       call->algorithm);
}

static planc_status find_side(const loader *l, const planc_instr *instr, int32_t residency, const rt_place **out);
static bool may_be_copied(const loader *l, const planc_instr *instr, const rt_place *from, const rt_place *to);
static planc_status find_direction(const loader *l, const rt_place *from, const rt_place *to, uint8_t *out);
static void emit_peer_copies(loader *l, const rt_place *from, const rt_place *to, rt_action *copy);
static void emit_copies_of(loader *l, const rt_place *from, int32_t first, int32_t end, char *into, rt_action *copy);
static planc_status load_user(loader *l, const rt_place *at, bool delivers, rt_action *out);

static planc_status load_copy(loader *l, const planc_instr *instr, rt_action *out) {
  const rt_place *to, *from;
  PLANC_TRY(find_side(l, instr, instr->aux, &from));
  PLANC_TRY(find_side(l, instr, instr->id, &to));
  if (!to && !from) return planc_error(PLANC_INVALID_PLAN, "a copy from the user to the user");
  if (instr->peers && (!to || !from))
    return planc_error(PLANC_INVALID_PLAN, "a copy between the user and other replicas");
  if (to && from && !may_be_copied(l, instr, from, to))
    return planc_error(PLANC_INVALID_PLAN, "residencies %d and %d hold different buffers", instr->id, instr->aux);
  out->kind = RT_COPY;
  PLANC_TRY(find_direction(l, from, to, &out->direction));
  out->id = to ? to->buffer : from->buffer;
  out->bytes = instr->bytes;
  if (instr->peers) {
    emit_peer_copies(l, from, to, out);
    return NULL;
  }
  if (from) use(l, l->replica, from, out);
  if (to) use(l, l->replica, to, out);
  out->to = to ? data_of(l, l->replica, to) : NULL;
  out->from = from ? data_of(l, l->replica, from) : NULL;
  if (!to || !from) PLANC_TRY(load_user(l, to ? to : from, !to, out));
  emit(l, out);
  return NULL;
}

/* One side of a copy; NULL where that is the user. */
static planc_status find_side(const loader *l, const planc_instr *instr, int32_t residency, const rt_place **out) {
  const rt_place *at = *out = place_of(l, residency);
  if (!at) return residency == PLANC_USER ? NULL : rt_no_residency(residency);
  int64_t bytes = l->trace->buffers[at->buffer].bytes;
  if (instr->bytes == bytes || (instr->peers && residency == instr->id)) return NULL;
  return planc_error(PLANC_INVALID_PLAN, "%s has %lld bytes, not %lld", planc_trace_buffer_name(l->trace, at->buffer),
                     (long long)bytes, (long long)instr->bytes);
}

/* The other replicas' gradients are copied to the buffer that an exchange has for them. */
static bool may_be_copied(const loader *l, const planc_instr *instr, const rt_place *from, const rt_place *to) {
  return (instr->peers ? l->trace->buffers[to->buffer].peer : to->buffer) == from->buffer;
}

/* What the user has is host memory, too. */
static planc_status find_direction(const loader *l, const rt_place *from, const rt_place *to, uint8_t *out) {
  enum { NONE = UINT8_MAX };
  static const uint8_t directions[3][3] = {
      [PLANC_MEMORY_DEVICE] = {RT_D2D, RT_D2H, NONE},
      [PLANC_MEMORY_HOST] = {RT_H2D, RT_H2H, RT_H2S},
      [PLANC_MEMORY_STORAGE] = {NONE, RT_S2H, NONE},
  };
  *out = directions[from ? l->places.regions[from->memory].kind : PLANC_MEMORY_HOST]
                   [to ? l->places.regions[to->memory].kind : PLANC_MEMORY_HOST];
  if (*out != NONE) return NULL;
  return planc_error(PLANC_DEVICE, "no backend copies to or from storage but by way of the host");
}

/* From each other replica to its place. Where copies have spans each has its own. */
static void emit_peer_copies(loader *l, const rt_place *from, const rt_place *to, rt_action *copy) {
  char *into = data_of(l, l->replica, to);
  int64_t step = planc_other_stride(copy->bytes);
  int32_t own = l->replica, n = l->n_replicas;
  use(l, own, to, copy);
  for (int32_t other = 0; other < n; other++)
    if (other != own) use(l, other, from, copy);
  copy->from_step = l->places.regions[from->memory].stride;
  if (l->body && own == 0) {
    for (int32_t other = 1; other < n; other++)
      emit_copies_of(l, from, other, other + 1, into + (other - 1) * step, copy);
  } else {
    emit_copies_of(l, from, 0, own, into, copy);
    emit_copies_of(l, from, own + 1, n, into + own * step, copy);
  }
}

/* From replicas [first, end), each to its place, of which `into` is the first's. */
static void emit_copies_of(loader *l, const rt_place *from, int32_t first, int32_t end, char *into, rt_action *copy) {
  if (first == end) return;
  copy->from = data_of(l, first, from);
  copy->to = into;
  copy->repeats = end - first;
  emit(l, copy);
}

/* The user's side of a copy: in the body samples come and results leave, around it persistent buffers come from and go
 * to their home. `at` is the other side. */
static planc_status load_user(loader *l, const rt_place *at, bool delivers, rt_action *out) {
  bool body = l->body;
  const planc_buffer *buffer = &l->trace->buffers[at->buffer];
  uint32_t needed = !body ? PLANC_BUFFER_PERSISTENT : delivers ? PLANC_BUFFER_RESULT : PLANC_BUFFER_FED;
  if (!(buffer->flags & needed) || buffer->peer >= 0)
    return planc_error(PLANC_INVALID_PLAN, "%s is not the user's", planc_trace_buffer_name(l->trace, at->buffer));
  out->kind = !body ? RT_COPY : delivers ? RT_DELIVER : RT_FEED;
  if (body) out->handover = l->handovers++;
  char *user = body ? NULL : rt_home(l->session, l->replica, buffer->job, buffer->storage);
  if (out->kind == RT_FEED && l->session->options.same_samples) {
    out->kind = RT_COPY;
    user = l->session->samples[(int64_t)l->replica * l->trace->n_buffers + at->buffer];
  }
  if (out->kind == RT_FEED) user = l->session->samples[out->handover];
  if (delivers)
    out->to = user;
  else
    out->from = user;
  return NULL;
}

/* Waits for an event of replicas [first, end). */
static void emit_waits_for(loader *l, int32_t event, int32_t first, int32_t end, rt_action *wait) {
  if (first == end || l->session->options.bare) return;
  wait->id = first * l->plan->n_events + event;
  wait->repeats = end - first;
  emit(l, wait);
}

static planc_status load_event(loader *l, const planc_instr *instr, rt_action *out) {
  if (instr->id < 0 || instr->id >= l->plan->n_events) return planc_error(PLANC_INVALID_PLAN, "no event %d", instr->id);
  out->kind = instr->op == PLANC_INSTR_record ? RT_RECORD : RT_WAIT;
  if (out->kind == RT_WAIT && instr->peers) {
    emit_waits_for(l, instr->id, 0, l->replica, out);
    emit_waits_for(l, instr->id, l->replica + 1, l->n_replicas, out);
    return NULL;
  }
  out->id = l->replica * l->plan->n_events + instr->id;
  if (!l->session->options.bare) emit(l, out);
  return NULL;
}

/* In file order a residency is poisoned when it is released as well; among streams that run at once no place in the
 * plan is certainly behind its last use and before the memory's next. */
static planc_status load_release(loader *l, const planc_instr *instr, rt_action *out) {
  const rt_place *at = place_of(l, instr->id);
  if (!at) return rt_no_residency(instr->id);
  out->kind = RT_POISON;
  out->job = (int16_t)l->trace->buffers[at->buffer].job;
  out->to = data_of(l, l->replica, at);
  out->bytes = l->trace->buffers[at->buffer].bytes;
  if (l->session->options.poison && !l->session->options.concurrent) emit(l, out);
  return NULL;
}

static planc_status load_acquire(loader *l, const planc_instr *instr) {
  if (!l->body) PLANC_TRY(rt_place_residency(&l->places, instr));
  const rt_place *at = place_of(l, instr->id);
  if (!at) return rt_no_residency(instr->id);
  *freshness_of(l, l->replica, at) = true;
  return NULL;
}

/* --- Parts -------------------------------------------------------------------------------------------------------- */

/* Lists each stream's actions, in two passes: how many each has, then which. */
static planc_status list_by_stream(loader *l, rt_part *part) {
  int32_t n_streams = l->session->n_streams;
  PLANC_TRY(PL_NEW(&l->session->loaded, &part->first, (int64_t)n_streams + 1));
  PLANC_TRY(PL_NEW(&l->session->loaded, &part->by_stream, part->n));
  for (int32_t i = 0; i < part->n; i++)
    if (part->actions[i].stream >= 0) part->first[part->actions[i].stream + 1]++;
  for (int32_t s = 0; s < n_streams; s++) part->first[s + 1] += part->first[s];
  for (int32_t i = 0; i < part->n; i++)
    if (part->actions[i].stream >= 0) part->by_stream[part->first[part->actions[i].stream]++] = i;
  for (int32_t s = n_streams; s > 0; s--) part->first[s] = part->first[s - 1];
  part->first[0] = 0;
  return NULL;
}

/* As many actions as a section can make: for each replica one of each instruction, an acquire the poisoning of its
 * residency; what looks at the others two, or for the first replica one for each of them. */
static int64_t room_for(const loader *l, const planc_section *section) {
  int64_t n = 0;
  for (int32_t i = 0; i < section->n; i++) n += section->instrs[i].peers ? 3 : 1;
  return n * l->n_replicas;
}
