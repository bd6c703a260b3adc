/* Loading: the plan's instructions become actions whose addresses are resolved once, before the first run. A plan that
 * the checker has passed cannot fail here but for want of a kernel; the range checks keep an unchecked one inside the
 * session's memory. */
#include <string.h>

#include "runtime/places.h"

typedef struct loader {
  planrt_session *session;
  const planc_plan *plan;
  const planc_trace *trace;
  int32_t n_replicas;
  planrt_places places;
  bool *fresh;   /* by replica and residency: acquired, and nothing loaded since uses it */
  void **memory; /* scratch: of one instance's accesses */

  planrt_part *part; /* being loaded */
  bool body;         /* it is the body */
  int32_t replica;   /* whose instruction is being loaded */
  int32_t handovers; /* of the body, loaded */
} loader;

/* --- Actions ------------------------------------------------------------------------------------------------------ */

static const planrt_place *place_of(const loader *l, int32_t residency) {
  return planrt_place_of(&l->places, residency);
}

static char *data_of(const loader *l, int32_t replica, const planrt_place *at) {
  return planrt_data_of(&l->places, replica, at);
}

static bool *freshness_of(const loader *l, int32_t replica, const planrt_place *at) {
  return &l->fresh[(int64_t)replica * l->plan->n_residencies + (at - l->places.places)];
}

/* Whether it takes time by itself. */
static bool is_timed(const planrt_action *action) {
  return action->kind == PLANRT_CALL || action->kind == PLANRT_COPY || action->kind == PLANRT_FEED ||
         action->kind == PLANRT_DELIVER;
}

/* Appends an action to the part, which has room (room_for). */
static void emit(loader *l, const planrt_action *action) {
  planrt_action *made = &l->part->actions[l->part->n++];
  *made = *action;
  made->replica = (int16_t)l->replica;
  made->span = l->body && l->replica == 0 && is_timed(made) ? l->session->n_spans++ : -1;
}

/* A residency is poisoned where it is first used, on the stream that uses it: only there is everything over that was
 * done to the memory before. */
static void use(loader *l, int32_t replica, const planrt_place *at, const planrt_action *by) {
  bool *fresh = freshness_of(l, replica, at);
  planrt_action action = {.kind = PLANRT_POISON,
                          .stream = by->stream,
                          .instr = by->instr,
                          .to = data_of(l, replica, at),
                          .bytes = l->trace->buffers[at->buffer].bytes};
  if (*fresh && l->session->options.poison) emit(l, &action);
  *fresh = false;
}

/* --- Instructions --------------------------------------------------------------------------------------------- */

/* The memory that the ops of a stream work in. */
static planc_status find_workplace(const loader *l, int32_t stream, int32_t *out_memory) {
  const planc_stream *on = &l->plan->streams[stream];
  const planrt_region *in = on->kind == PLANC_STREAM_KIND_compute ? planrt_region_of(&l->places, on->on) : NULL;
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
    const planrt_place *at = place_of(l, residency);
    if (!at) return planrt_no_residency(residency);
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

static planc_status load_exec(loader *l, const planc_instr *instr, planrt_action *out) {
  planrt_session *session = l->session;
  int32_t memory;
  if (instr->id < 0 || instr->id >= l->trace->n_instances)
    return planc_error(PLANC_INVALID_PLAN, "no instance %d", instr->id);
  if (instr->aux < 0 || instr->aux >= l->plan->n_algorithms)
    return planc_error(PLANC_INVALID_PLAN, "no algorithm %d", instr->aux);
  PLANC_TRY(find_workplace(l, instr->stream, &memory));
  if (!planrt_is_inside(planrt_region_of(&l->places, memory), instr->address, instr->bytes))
    return planc_error(PLANC_INVALID_PLAN, "the workspace is outside the arena");
  PLANC_TRY(find_operands(l, instr, memory, out));

  planrt_call *call;
  PLANC_TRY(PLANC_NEW(&session->loaded, &call, 1));
  PLANC_TRY(planrt_call_make(&session->loaded, l->trace, l->replica, instr->id, l->memory, call));
  call->algorithm = l->plan->algorithms[instr->aux];
  call->workspace = planrt_address(&l->places, l->replica, memory, instr->address);
  call->workspace_bytes = instr->bytes;
  out->kind = PLANRT_CALL;
  out->call = call;
  return planc_context(session->backend->prepare(session->device, call), "op %s, algorithm %s", call->op->name,
                       call->algorithm);
}

/* The user's side of a copy: in the body samples come and results leave, around it persistent buffers come from and go
 * to their home. `at` is the other side. */
static planc_status load_user(loader *l, const planrt_place *at, bool delivers, planrt_action *out) {
  bool body = l->body;
  const planc_buffer *buffer = &l->trace->buffers[at->buffer];
  uint32_t needed = !body ? PLANC_BUFFER_PERSISTENT : delivers ? PLANC_BUFFER_RESULT : PLANC_BUFFER_FED;
  if (!(buffer->flags & needed) || buffer->peer >= 0)
    return planc_error(PLANC_INVALID_PLAN, "%s is not the user's", planc_trace_buffer_name(l->trace, at->buffer));
  out->kind = !body ? PLANRT_COPY : delivers ? PLANRT_DELIVER : PLANRT_FEED;
  if (body) out->handover = l->handovers++;
  char *user = body ? NULL : planrt_home(l->session, l->replica, buffer->job, buffer->storage);
  if (out->kind == PLANRT_FEED && l->session->options.same_samples) {
    out->kind = PLANRT_COPY;
    user = l->session->samples[(int64_t)l->replica * l->trace->n_buffers + at->buffer];
  }
  if (out->kind == PLANRT_FEED) user = l->session->samples[out->handover];
  if (delivers)
    out->to = user;
  else
    out->from = user;
  return NULL;
}

/* One side of a copy; NULL where that is the user. */
static planc_status find_side(const loader *l, const planc_instr *instr, int32_t residency, const planrt_place **out) {
  const planrt_place *at = *out = place_of(l, residency);
  if (!at) return residency == PLANC_USER ? NULL : planrt_no_residency(residency);
  int64_t bytes = l->trace->buffers[at->buffer].bytes;
  if (instr->bytes == bytes || (instr->peers && residency == instr->id)) return NULL;
  return planc_error(PLANC_INVALID_PLAN, "%s has %lld bytes, not %lld", planc_trace_buffer_name(l->trace, at->buffer),
                     (long long)bytes, (long long)instr->bytes);
}

/* The other replicas' gradients are copied to the buffer that an exchange has for them. */
static bool may_be_copied(const loader *l, const planc_instr *instr, const planrt_place *from, const planrt_place *to) {
  return (instr->peers ? l->trace->buffers[to->buffer].peer : to->buffer) == from->buffer;
}

/* What the user has is host memory, too. */
static planc_status find_direction(const loader *l, const planrt_place *from, const planrt_place *to, uint8_t *out) {
  enum { NONE = UINT8_MAX };
  static const uint8_t directions[3][3] = {
      [PLANC_MEMORY_DEVICE] = {PLANRT_D2D, PLANRT_D2H, NONE},
      [PLANC_MEMORY_HOST] = {PLANRT_H2D, PLANRT_H2H, PLANRT_H2S},
      [PLANC_MEMORY_STORAGE] = {NONE, PLANRT_S2H, NONE},
  };
  *out = directions[from ? l->places.regions[from->memory].kind : PLANC_MEMORY_HOST]
                   [to ? l->places.regions[to->memory].kind : PLANC_MEMORY_HOST];
  if (*out != NONE) return NULL;
  return planc_error(PLANC_DEVICE, "no backend copies to or from storage but by way of the host");
}

/* From each other replica to its place. */
static void emit_peer_copies(loader *l, const planrt_place *from, const planrt_place *to, planrt_action *copy) {
  char *into = data_of(l, l->replica, to);
  use(l, l->replica, to, copy);
  for (int32_t other = 0; other < l->n_replicas; other++) {
    if (other == l->replica) continue;
    use(l, other, from, copy);
    copy->from = data_of(l, other, from);
    copy->to = into;
    emit(l, copy);
    into += planc_other_stride(copy->bytes);
  }
}

static planc_status load_copy(loader *l, const planc_instr *instr, planrt_action *out) {
  const planrt_place *to, *from;
  PLANC_TRY(find_side(l, instr, instr->aux, &from));
  PLANC_TRY(find_side(l, instr, instr->id, &to));
  if (!to && !from) return planc_error(PLANC_INVALID_PLAN, "a copy from the user to the user");
  if (instr->peers && (!to || !from))
    return planc_error(PLANC_INVALID_PLAN, "a copy between the user and other replicas");
  if (to && from && !may_be_copied(l, instr, from, to))
    return planc_error(PLANC_INVALID_PLAN, "residencies %d and %d hold different buffers", instr->id, instr->aux);
  out->kind = PLANRT_COPY;
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

static planc_status load_event(loader *l, const planc_instr *instr, planrt_action *out) {
  if (instr->id < 0 || instr->id >= l->plan->n_events) return planc_error(PLANC_INVALID_PLAN, "no event %d", instr->id);
  out->kind = instr->op == PLANC_INSTR_record ? PLANRT_RECORD : PLANRT_WAIT;
  bool of_others = out->kind == PLANRT_WAIT && instr->peers;
  for (int32_t r = 0; r < l->n_replicas; r++) {
    if ((r == l->replica) == of_others) continue;
    out->id = r * l->plan->n_events + instr->id;
    if (!l->session->options.bare) emit(l, out);
  }
  return NULL;
}

/* In file order a residency is poisoned when it is released as well; among streams that run at once no place in the
 * plan is certainly behind its last use and before the memory's next. */
static planc_status load_release(loader *l, const planc_instr *instr, planrt_action *out) {
  const planrt_place *at = place_of(l, instr->id);
  if (!at) return planrt_no_residency(instr->id);
  out->kind = PLANRT_POISON;
  out->to = data_of(l, l->replica, at);
  out->bytes = l->trace->buffers[at->buffer].bytes;
  if (l->session->options.poison && !l->session->options.concurrent) emit(l, out);
  return NULL;
}

static planc_status load_acquire(loader *l, const planc_instr *instr) {
  if (!l->body) PLANC_TRY(planrt_place_residency(&l->places, instr));
  const planrt_place *at = place_of(l, instr->id);
  if (!at) return planrt_no_residency(instr->id);
  *freshness_of(l, l->replica, at) = true;
  return NULL;
}

static planc_status load_on_stream(loader *l, const planc_instr *instr, planrt_action *out) {
  if (instr->stream < 0 || instr->stream >= l->plan->n_streams)
    return planc_error(PLANC_INVALID_PLAN, "no stream %d", instr->stream);
  out->stream = l->session->options.bare ? 0 : l->replica * l->plan->n_streams + instr->stream;
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

/* An instruction of one replica. */
static planc_status load_instr(loader *l, const planc_instr *instr, int32_t index) {
  planrt_action action = {.stream = -1, .lag = instr->lag, .instr = index, .id = instr->id};
  if (instr->op == PLANC_INSTR_acquire) return load_acquire(l, instr);
  if (instr->op == PLANC_INSTR_release) return load_release(l, instr, &action);
  return load_on_stream(l, instr, &action);
}

/* --- Parts ---------------------------------------------------------------------------------------------------- */

/* Lists each stream's actions. */
static planc_status thread(loader *l, planrt_part *part) {
  int32_t n_streams = l->session->n_streams;
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

/* As many actions as a section can make: for each replica one of each instruction, an acquire the poisoning of its
 * residency; what looks at the others one for each of them. */
static int64_t room_for(const loader *l, const planc_section *section) {
  int64_t n = 0;
  for (int32_t i = 0; i < section->n; i++) n += section->instrs[i].peers ? l->n_replicas : 1;
  return n * l->n_replicas;
}

static planc_status load_part(loader *l, const planc_section *section, const char *name, planrt_part *part) {
  int64_t room = room_for(l, section);
  *part = (planrt_part){.name = name};
  l->part = part;
  l->body = section == &l->plan->body;
  if (room > INT32_MAX) return planc_error(PLANC_DEVICE, "%s: more than 2^31 instructions of all replicas", name);
  PLANC_TRY(PLANC_NEW(&l->session->loaded, &part->actions, room));
  memset(l->fresh, 0, (size_t)l->n_replicas * (size_t)l->plan->n_residencies * sizeof *l->fresh);
  for (int32_t i = 0; i < section->n; i++)
    for (l->replica = 0; l->replica < l->n_replicas; l->replica++)
      PLANC_TRY(planc_context(load_instr(l, &section->instrs[i], i), "%s[%d]", name, i));
  return thread(l, part);
}

planc_status planrt_load(planrt_session *session) {
  loader l = {.session = session,
              .plan = session->plan,
              .trace = session->trace,
              .n_replicas = planc_trace_replicas(session->trace)};
  session->n_spans = 0;
  PLANC_TRY(PLANC_NEW(&session->loaded, &l.memory, planrt_most_accesses(l.trace)));
  PLANC_TRY(PLANC_NEW(&session->loaded, &session->cursors, session->n_streams));
  PLANC_TRY(PLANC_NEW(&session->loaded, &l.fresh, (int64_t)l.n_replicas * l.plan->n_residencies));
  PLANC_TRY(planrt_places_make(session, &session->loaded, &l.places));
  PLANC_TRY(load_part(&l, &l.plan->prologue, "prologue", &session->parts[PLANRT_PROLOGUE]));
  PLANC_TRY(load_part(&l, &l.plan->body, "body", &session->parts[PLANRT_BODY]));
  return load_part(&l, &l.plan->epilogue, "epilogue", &session->parts[PLANRT_EPILOGUE]);
}
