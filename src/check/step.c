/* The rules of planc-plan(5), "What makes a plan valid", instruction by instruction.
 *
 * Each instruction has a function that runs it. The function first checks the instruction itself, then the versions
 * that it reads, and then that events order it behind every access that it conflicts with. */
#include <assert.h>
#include <stdio.h>

#include "check/machine.h"
#include "plan/layout.h"
#include "plan/mapping.h"
#include "plan/memories.h"

static planc_status step_exec(pl_machine *m);
static planc_status step_acquire(pl_machine *m);
static planc_status step_release(pl_machine *m);
static planc_status step_copy(pl_machine *m);
static planc_status step_record(pl_machine *m);
static planc_status step_wait(pl_machine *m);

enum { IN_PROLOGUE = 1, IN_BODY = 2, IN_EPILOGUE = 4 };

/* By instruction: the sections in which it may stand, and the function that runs it. */
static const struct {
  uint32_t sections;
  bool on_stream;
  planc_status (*step)(pl_machine *m);
} rules[] = {
    [PLANC_INSTR_exec] = {IN_BODY, true, step_exec},
    [PLANC_INSTR_acquire] = {IN_PROLOGUE | IN_BODY, false, step_acquire},
    [PLANC_INSTR_release] = {IN_PROLOGUE | IN_BODY | IN_EPILOGUE, false, step_release},
    [PLANC_INSTR_copy] = {IN_PROLOGUE | IN_BODY | IN_EPILOGUE, true, step_copy},
    [PLANC_INSTR_record] = {IN_PROLOGUE | IN_BODY | IN_EPILOGUE, true, step_record},
    [PLANC_INSTR_wait] = {IN_PROLOGUE | IN_BODY | IN_EPILOGUE, true, step_wait},
};

planc_status pl_machine_step(pl_machine *m) {
  static const uint32_t section_of[] = {IN_PROLOGUE, IN_BODY, IN_EPILOGUE};
  static const char *const section_names[] = {"prologue", "body", "epilogue"};
  const planc_instr *instr = m->instr;
  if (instr->op >= sizeof rules / sizeof *rules) return pl_machine_fault(m, "is not an instruction");
  if (!(rules[instr->op].sections & section_of[m->section])) {
    return pl_machine_fault(m, "must not stand in the %s", section_names[m->section]);
  }
  if (rules[instr->op].on_stream && (instr->stream < 0 || instr->stream >= m->plan->n_streams)) {
    return pl_machine_fault(m, "there is no stream %d", instr->stream);
  }
  return rules[instr->op].step(m);
}

static const planc_buffer *buffer_of(const pl_machine *m, const pl_residency_state *state) {
  return &m->trace->buffers[state->buffer];
}

/* Returns the residency if it is open, else NULL. */
static pl_residency_state *open_residency(const pl_machine *m, int32_t id) {
  bool open = id >= 0 && id < m->plan->n_residencies && m->residencies[id].open;
  return open ? &m->residencies[id] : NULL;
}

static planc_status not_open(const pl_machine *m, int32_t id) {
  return pl_machine_fault(m, "residency %d is not open", id);
}

/* What several rules need, at the end of the file. */
static planc_status check_job(const pl_machine *m, int32_t job);
static planc_status check_bytes(const pl_machine *m, int32_t buffer);
static planc_status check_interval(const pl_machine *m, const char *what, int32_t memory);
static planc_status check_peers(const pl_machine *m, const char *does);
static pl_mark new_mark(pl_machine *m);
static planc_status access_residency(pl_machine *m, pl_mark mark, pl_residency_state *state, bool writes);
static planc_status access_named(pl_machine *m, pl_mark mark, pl_residency_state *state, bool writes, const char *name);
static void touch(pl_machine *m, int32_t memory, const pl_interval_place *place);
static planc_status open_place(pl_machine *m, const pl_interval_place *place, int32_t residency);
static void close_place(pl_machine *m, const pl_interval_place *place);

/* --- exec --------------------------------------------------------------------------------------------------------- */

static planc_status check_turn(const pl_machine *m);
static planc_status run_workspace(pl_machine *m, pl_mark mark);
static planc_status run_access(pl_machine *m, pl_mark mark, const planc_access *access, int32_t residency);

static planc_status step_exec(pl_machine *m) {
  const planc_instr *instr = m->instr;
  if (instr->id < 0 || instr->id >= m->trace->n_instances) {
    return pl_machine_fault(m, "the jobs have %d instances", m->trace->n_instances);
  }
  const planc_instance *instance = &m->trace->instances[instr->id];
  if (m->plan->streams[instr->stream].kind != PLANC_STREAM_KIND_compute)
    return pl_machine_fault(m, "stream %d is not a compute stream", instr->stream);
  PLANC_TRY(check_job(m, instance->job));
  if (instr->aux < 0 || instr->aux >= m->plan->n_algorithms) {
    return pl_machine_fault(m, "there is no algorithm %d", instr->aux);
  }
  if (instr->time_ns < 0 || instr->busy_ppm < 0 || instr->busy_ppm > 1000000) {
    return pl_machine_fault(m, "its time or its share of the GPU is out of range");
  }
  PLANC_TRY(check_turn(m));
  int32_t n_uses = pl_plan_uses_at(m->plan, m->index);
  if (instr->first_use != m->next_use) return pl_machine_fault(m, "its residencies are not where they must be");
  if (n_uses != instance->n_accesses) {
    return pl_machine_fault(m, "names %d residencies for its %d accesses", n_uses, instance->n_accesses);
  }
  m->next_use += n_uses;

  pl_mark mark = new_mark(m);
  PLANC_TRY(run_workspace(m, mark));
  for (int32_t k = 0; k < instance->n_accesses; k++) {
    PLANC_TRY(
        run_access(m, mark, &m->trace->accesses[instance->first_access + k], m->plan->uses[instr->first_use + k]));
  }
  m->executed[instr->id] = m->body;
  if (!instr->recompute) m->algorithm[instr->id] = instr->aux;
  m->n_executed += !instr->recompute;
  m->n_recomputed += instr->recompute;
  return NULL;
}

/* Every instance runs once in a body. After that it may only be recomputed, and with the same algorithm: another one
 * may not make the same bits. */
static planc_status check_turn(const pl_machine *m) {
  const planc_instr *instr = m->instr;
  bool ran = m->executed[instr->id] == m->body;
  if (!instr->recompute) return ran ? pl_machine_fault(m, "runs twice, and not to recompute") : NULL;
  if (!ran) return pl_machine_fault(m, "recomputes what has not run before");
  if (m->algorithm[instr->id] != instr->aux) {
    return pl_machine_fault(m, "recomputes with algorithm %s what ran with %s", m->plan->algorithms[instr->aux],
                            m->plan->algorithms[m->algorithm[instr->id]]);
  }
  if (planc_trace_recomputable(m->trace, instr->id)) return NULL;
  return pl_machine_fault(
      m, "cannot be recomputed: it writes a persistent buffer, changes a gradient, or is marked no-recompute");
}

static planc_status run_workspace(pl_machine *m, pl_mark mark) {
  const planc_instr *instr = m->instr;
  const pl_interval_place *place = &m->extents.of[m->index];
  if (instr->bytes == 0 && instr->address == 0) return NULL;
  if (instr->bytes <= 0) return pl_machine_fault(m, "the workspace has an address but no bytes");
  int32_t memory = m->plan->streams[instr->stream].on;
  PLANC_TRY(check_interval(m, "workspace address", memory));
  PLANC_TRY(open_place(m, place, -1));
  close_place(m, place);
  touch(m, memory, place);
  pl_conflict conflict;
  int32_t history;
  PLANC_TRY(pl_histories_write_first(&m->histories, place, mark, &m->seen, &history, &conflict));
  return conflict.found ? pl_machine_race(m, &conflict, true, "its workspace") : NULL;
}

static planc_status run_access(pl_machine *m, pl_mark mark, const planc_access *access, int32_t residency) {
  char label[PL_LABEL];
  if (m->instr->recompute && access->effect) {
    if (residency == -1) return NULL;
    return pl_machine_fault(m, "a recompute must skip the side effect on %s",
                            pl_buffer_label(m, access->buffer, label));
  }
  if (residency == -1) {
    return pl_machine_fault(m, "has no residency for %s", pl_buffer_label(m, access->buffer, label));
  }
  pl_residency_state *state = open_residency(m, residency);
  if (!state) return not_open(m, residency);
  if (state->buffer != access->buffer) {
    char other[PL_LABEL];
    return pl_machine_fault(m, "wants %s, but residency %d is of %s", pl_buffer_label(m, access->buffer, label),
                            residency, pl_buffer_label(m, state->buffer, other));
  }
  if (state->memory != m->plan->streams[m->instr->stream].on) {
    return pl_machine_fault(m, "wants %s, but residency %d is in memory %d", pl_buffer_label(m, access->buffer, label),
                            residency, state->memory);
  }
  if (access->read >= 0 && state->version != access->read) {
    pl_buffer_label(m, access->buffer, label);
    if (state->version < 0) {
      return pl_machine_fault(m, "reads %s in residency %d, which holds nothing yet", label, residency);
    }
    return pl_machine_fault(m, "reads version %d of %s, but residency %d holds version %d", access->read, label,
                            residency, state->version);
  }
  PLANC_TRY(access_residency(m, mark, state, access->write >= 0));
  if (access->write >= 0) state->version = access->write;
  return NULL;
}

/* --- acquire, release --------------------------------------------------------------------------------------------- */

static planc_status check_boundary_row(const pl_machine *m);

static planc_status step_acquire(pl_machine *m) {
  const planc_instr *instr = m->instr;
  int32_t limit = m->section == PL_PROLOGUE ? m->plan->n_boundary : m->plan->n_residencies;
  if (instr->id != m->next_residency || instr->id >= limit) {
    return pl_machine_fault(m, "residency %d comes where %d is due, of %d", instr->id, m->next_residency, limit);
  }
  if (instr->aux < 0 || instr->aux >= m->trace->n_buffers) {
    return pl_machine_fault(m, "the jobs have %d buffers", m->trace->n_buffers);
  }
  if (instr->memory < 0 || instr->memory >= m->plan->n_memories ||
      m->plan->memories[instr->memory].kind == PLANC_MEMORY_USER)
    return pl_machine_fault(m, "memory %d has no arena", instr->memory);
  PLANC_TRY(check_bytes(m, instr->aux));
  PLANC_TRY(check_interval(m, "address", instr->memory));
  const pl_interval_place *place = &m->extents.of[m->index];
  PLANC_TRY(open_place(m, place, instr->id));
  if (m->section == PL_PROLOGUE) PLANC_TRY(check_boundary_row(m));
  m->residencies[instr->id] = (pl_residency_state){.buffer = instr->aux,
                                                   .version = -1,
                                                   .history = -1,
                                                   .memory = instr->memory,
                                                   .place = *place,
                                                   .address = instr->address,
                                                   .open = true};
  m->next_residency++;
  return NULL;
}

static planc_status check_boundary_row(const pl_machine *m) {
  const planc_boundary *row = &m->plan->boundary[m->instr->id];
  bool right = m->instr->aux == row->buffer && m->instr->memory == row->memory && m->instr->address == row->address;
  return right ? NULL : pl_machine_fault(m, "is not what row %d of the boundary says", m->instr->id);
}

static planc_status step_release(pl_machine *m) {
  pl_residency_state *state = open_residency(m, m->instr->id);
  if (!state) return not_open(m, m->instr->id);
  state->open = false;
  close_place(m, &state->place);
  return NULL;
}

/* --- copy --------------------------------------------------------------------------------------------------------- */

static planc_status check_way(const pl_machine *m, int32_t from, int32_t to);
static planc_status check_copied(pl_machine *m, const pl_residency_state *from, const pl_residency_state *to,
                                 int32_t *out_version);
static planc_status check_sent(const pl_machine *m, const pl_residency_state *from, const pl_residency_state *to);
static planc_status give_to_user(pl_machine *m, const pl_residency_state *from);
static planc_status check_content(const pl_machine *m, const pl_residency_state *from, const pl_residency_state *to,
                                  int32_t *out_version);
static planc_status get_from_user(const pl_machine *m, const pl_residency_state *to);
static planc_status read_peers(pl_machine *m, pl_mark mark, pl_residency_state *from);

static planc_status step_copy(pl_machine *m) {
  const planc_instr *instr = m->instr;
  pl_residency_state *to = open_residency(m, instr->id), *from = open_residency(m, instr->aux);
  int32_t user = pl_user_memory(m->plan), version;
  if (instr->peers) PLANC_TRY(check_peers(m, "copies from"));
  if (instr->peers && (instr->id == PLANC_USER || instr->aux == PLANC_USER))
    return pl_machine_fault(m, "copies between peers and the user");
  if (!to && instr->id != PLANC_USER) return not_open(m, instr->id);
  if (!from && instr->aux != PLANC_USER) return not_open(m, instr->aux);
  if (to == from)
    return from ? pl_machine_fault(m, "copies residency %d to itself", instr->id)
                : pl_machine_fault(m, "copies from the user to the user");
  PLANC_TRY(check_way(m, from ? from->memory : user, to ? to->memory : user));
  PLANC_TRY(check_job(m, buffer_of(m, to ? to : from)->job));
  PLANC_TRY(check_bytes(m, (to && !instr->peers ? to : from)->buffer));
  PLANC_TRY(check_copied(m, from, to, &version));
  pl_mark mark = new_mark(m);
  if (from) PLANC_TRY(instr->peers ? read_peers(m, mark, from) : access_residency(m, mark, from, false));
  if (!to) return NULL;
  PLANC_TRY(access_residency(m, mark, to, true));
  to->version = version;
  return NULL;
}

/* A copy inside a memory runs where ops do; between two memories an engine must have a link for it. */
static planc_status check_way(const pl_machine *m, int32_t from, int32_t to) {
  const planc_stream *stream = &m->plan->streams[m->instr->stream];
  if (from == to) {
    bool there = stream->kind == PLANC_STREAM_KIND_compute && stream->on == to;
    if (there && m->instr->time_ns < 0) return pl_machine_fault(m, "its time is out of range");
    return there ? NULL : pl_machine_fault(m, "stream %d does not compute in memory %d", m->instr->stream, to);
  }
  bool linked = stream->kind == PLANC_STREAM_KIND_copy && pl_link_find(&m->links, stream->on, from, to) >= 0;
  if (linked && m->instr->time_ns != 0) return pl_machine_fault(m, "says a time, but its link tells that");
  if (linked) return NULL;
  char a[PL_LABEL], b[PL_LABEL];
  return pl_machine_fault(m, "stream %d does not copy from %s to %s", m->instr->stream, pl_memory_label(m, from, a),
                          pl_memory_label(m, to, b));
}

/* Whether this may be copied, and which version that makes there. */
static planc_status check_copied(pl_machine *m, const pl_residency_state *from, const pl_residency_state *to,
                                 int32_t *out_version) {
  *out_version = 0;
  if (from && from->version < 0) return pl_machine_fault(m, "residency %d holds nothing yet", m->instr->aux);
  if (m->instr->peers) return check_sent(m, from, to);
  if (!to) return give_to_user(m, from);
  return from ? check_content(m, from, to, out_version) : get_from_user(m, to);
}

/* A copy from the other replicas gets their gradients for the exchange, which adds them up. A gradient is sent when all
 * rounds have added to it; and only out of memory that all replicas can reach, which no device's is. */
static planc_status check_sent(const pl_machine *m, const pl_residency_state *from, const pl_residency_state *to) {
  char label[PL_LABEL];
  pl_buffer_label(m, from->buffer, label);
  if (buffer_of(m, to)->peer != from->buffer) {
    return pl_machine_fault(m, "is not what %s of other replicas goes to", label);
  }
  if (m->plan->memories[from->memory].kind == PLANC_MEMORY_DEVICE) {
    return pl_machine_fault(m, "gets %s out of memory %d, which is another replica's own", label, from->memory);
  }
  int32_t sent = buffer_of(m, from)->sent;
  if (from->version == sent) return NULL;
  return pl_machine_fault(m, "gets version %d of %s, not what is sent, version %d", from->version, label, sent);
}

/* The body sends results to the user, each in its last version. The epilogue sends what persists. */
static planc_status give_to_user(pl_machine *m, const pl_residency_state *from) {
  const planc_buffer *buffer = buffer_of(m, from);
  if (m->section == PL_PROLOGUE) return pl_machine_fault(m, "nothing leaves for the user in the prologue");
  bool persists = m->section == PL_EPILOGUE;
  if (!(buffer->flags & (persists ? PLANC_BUFFER_PERSISTENT : PLANC_BUFFER_RESULT))) {
    return pl_machine_fault(m, "is not %s", persists ? "a persistent buffer" : "a result that leaves for the user");
  }
  int32_t last = persists ? 0 : buffer->last_version;
  if (from->version != last) {
    return pl_machine_fault(m, "leaves as version %d, not as its last, %d", from->version, last);
  }
  if (m->delivered[from->buffer] == m->body) return pl_machine_fault(m, "leaves twice");
  m->delivered[from->buffer] = m->body;
  return NULL;
}

/* A copy inside a replica: both residencies are of one buffer, whose version goes along. */
static planc_status check_content(const pl_machine *m, const pl_residency_state *from, const pl_residency_state *to,
                                  int32_t *out_version) {
  char label[PL_LABEL];
  *out_version = from->version;
  if (m->section != PL_BODY) return pl_machine_fault(m, "prologue and epilogue copy from and to the user only");
  if (from->buffer == to->buffer) return NULL;
  return pl_machine_fault(m, "residency %d is of %s", m->instr->aux, pl_buffer_label(m, from->buffer, label));
}

/* The prologue gets persistent buffers from the user, the body gets its inputs. Both arrive as version 0. */
static planc_status get_from_user(const pl_machine *m, const pl_residency_state *to) {
  if (m->section == PL_EPILOGUE) return pl_machine_fault(m, "nothing comes from the user in the epilogue");
  bool persists = m->section == PL_PROLOGUE;
  const planc_buffer *buffer = buffer_of(m, to);
  bool fed = (buffer->flags & PLANC_BUFFER_FED) && buffer->peer < 0;
  if (persists ? (buffer->flags & PLANC_BUFFER_PERSISTENT) != 0 : fed) return NULL;
  return pl_machine_fault(m, "is not %s", persists ? "a persistent buffer" : "a buffer that the user feeds");
}

/* All replicas make this copy at once. While this one reads the others' bytes, each other one reads the same bytes
 * here, by the same stream of its own. The read of our bytes is what must be in order. */
static planc_status read_peers(pl_machine *m, pl_mark mark, pl_residency_state *from) {
  char label[PL_LABEL], name[PL_LABEL + sizeof " of another replica"];
  mark.stream += m->plan->n_streams;
  snprintf(name, sizeof name, "%s of another replica", pl_buffer_label(m, from->buffer, label));
  return access_named(m, mark, from, false, name);
}

/* --- Events ------------------------------------------------------------------------------------------------------- */

static planc_status check_event(const pl_machine *m);

static planc_status step_record(pl_machine *m) {
  const planc_instr *instr = m->instr;
  PLANC_TRY(check_event(m));
  const pl_event *event = &m->seen.events[instr->id];
  if (event->body == m->body) return pl_machine_fault(m, "is recorded twice");
  if (event->body != PL_NO_BODY && event->stream != instr->stream) {
    return pl_machine_fault(m, "is recorded on stream %d here and on stream %d before", instr->stream, event->stream);
  }
  pl_seen_record(&m->seen, instr->id, instr->stream, m->body);
  return NULL;
}

/* A wait with lag 0 needs a record earlier in this body, one with lag 1 a record in the body before. A lag-1 wait
 * behind this body's record fails here as well: the record has made the event one of this body. */
static planc_status step_wait(pl_machine *m) {
  const planc_instr *instr = m->instr;
  PLANC_TRY(check_event(m));
  if (instr->lag > 1) return pl_machine_fault(m, "a lag is 0 or 1");
  if (instr->peers) PLANC_TRY(check_peers(m, "waits for"));
  const pl_event *event = &m->seen.events[instr->id];
  int32_t was = event->body, due = m->body - instr->lag;
  if (was != due || due == PL_NO_BODY) {
    if (instr->lag == 0) return pl_machine_fault(m, "nothing before this line records it");
    if (was == m->body) {
      return pl_machine_fault(m, "a wait with lag 1 must stand before the record of the same body");
    }
    return pl_machine_fault(m, due == PL_BODY_OF_PROLOGUE ? "the prologue does not record it, as the body before would"
                                                          : "the body before does not record it");
  }
  return pl_seen_wait(&m->seen, instr);
}

static planc_status check_event(const pl_machine *m) {
  if (m->instr->id >= 0 && m->instr->id < m->plan->n_events) return NULL;
  return pl_machine_fault(m, "there are %d events", m->plan->n_events);
}

/* --- What several rules need -------------------------------------------------------------------------------------- */

/* The instruction's stream must belong to the job whose data the instruction touches. */
static planc_status check_job(const pl_machine *m, int32_t job) {
  const planc_stream *stream = &m->plan->streams[m->instr->stream];
  if (stream->job == job) return NULL;
  return pl_machine_fault(m, "stream %d belongs to job %d, the data to job %d", m->instr->stream, stream->job, job);
}

static planc_status check_bytes(const pl_machine *m, int32_t buffer) {
  int64_t bytes = m->trace->buffers[buffer].bytes;
  char label[PL_LABEL];
  if (m->instr->bytes == bytes) return NULL;
  return pl_machine_fault(m, "says %lld bytes, but %s has %lld", (long long)m->instr->bytes,
                          pl_buffer_label(m, buffer, label), (long long)bytes);
}

/* The instruction's address must be aligned, and its bytes must lie inside the arena of `memory`. */
static planc_status check_interval(const pl_machine *m, const char *what, int32_t memory) {
  const planc_instr *instr = m->instr;
  int64_t alignment = m->plan->memories[memory].alignment;
  if (instr->address % alignment != 0) {
    return pl_machine_fault(m, "%s %lld is not a multiple of %lld", what, (long long)instr->address,
                            (long long)alignment);
  }
  if (m->extents.of[m->index].n > 0) return NULL;
  return pl_machine_fault(m, "%lld bytes from %s %lld on are not inside the arena of %lld bytes",
                          (long long)instr->bytes, what, (long long)instr->address,
                          (long long)pl_memory_range(m->plan, memory));
}

/* An instruction with `peers` needs other replicas. */
static planc_status check_peers(const pl_machine *m, const char *does) {
  if (planc_plan_replicas(m->plan) > 1) return NULL;
  return pl_machine_fault(m, "%s peers, but the plan has no other replicas", does);
}

/* The instruction is the next command of its stream, and all its accesses are that command's. */
static pl_mark new_mark(pl_machine *m) {
  int32_t stream = m->instr->stream, epoch = ++m->seen.epochs[stream];
  return (pl_mark){.instr = (int32_t)m->index, .epoch = epoch, .stream = stream};
}

static planc_status access_residency(pl_machine *m, pl_mark mark, pl_residency_state *state, bool writes) {
  return access_named(m, mark, state, writes, NULL);
}

/* Records an access to the bytes of a residency and fails if no event orders it behind an earlier access that it
 * conflicts with. The message calls the bytes `name`, or by their buffer. */
static planc_status access_named(pl_machine *m, pl_mark mark, pl_residency_state *state, bool writes,
                                 const char *name) {
  pl_conflict conflict = {0};
  touch(m, state->memory, &state->place);
  if (state->history < 0) {
    assert(writes); /* there is no version to read */
    PLANC_TRY(pl_histories_write_first(&m->histories, &state->place, mark, &m->seen, &state->history, &conflict));
  } else if (writes) {
    pl_histories_write(&m->histories, state->history, mark, &m->seen, &conflict);
  } else {
    PLANC_TRY(pl_histories_read(&m->histories, state->history, mark, &m->seen, &conflict));
  }
  if (!conflict.found) return NULL;
  char label[PL_LABEL];
  return pl_machine_race(m, &conflict, writes, name ? name : pl_buffer_label(m, state->buffer, label));
}

/* Notes up to which byte an arena is used. */
static void touch(pl_machine *m, int32_t memory, const pl_interval_place *place) {
  int64_t *touched = &m->touched[m->plan->memories[memory].kind];
  if (place->end > *touched) *touched = place->end;
}

/* Opens the bytes of `place` for a residency, or for a workspace (-1). No open residency may have any of them. */
static planc_status open_place(pl_machine *m, const pl_interval_place *place, int32_t residency) {
  char label[PL_LABEL];
  for (int64_t k = 0; k < place->n; k++) {
    pl_extent extent = pl_place_extent(place, k);
    int32_t start = pl_number_set_below(&m->open, extent.hi - 1);
    if (start >= 0 && m->open_to[start] > extent.lo) {
      int32_t id = m->open_at[start];
      if (id == residency) return pl_machine_fault(m, "lies twice on the same bytes of the arena");
      const pl_residency_state *there = &m->residencies[id];
      return pl_machine_fault(m, "overlaps %s in residency %d, which is open at %lld",
                              pl_buffer_label(m, there->buffer, label), id, (long long)there->address);
    }
    m->open_at[extent.lo] = residency;
    m->open_to[extent.lo] = extent.hi;
    pl_number_set_add(&m->open, extent.lo);
  }
  return NULL;
}

/* Closes the bytes of an open residency, or of the workspace that was opened last. */
static void close_place(pl_machine *m, const pl_interval_place *place) {
  for (int64_t k = 0; k < place->n; k++) pl_number_set_remove(&m->open, pl_place_extent(place, k).lo);
}
