/* The schedule's builder. A command that is stated is first checked against what the residencies hold by then, so that
 * one that would read a wrong version is refused. Then it changes what they hold. */
#include <stdarg.h>
#include <stdio.h>

#include "cost/routes.h"
#include "planner/base/schedule_state.h"

static planc_status require_persistent(const planc_schedule *s, const char *verb, int32_t buffer);
static planc_status require_away(const planc_schedule *s, const char *verb, int32_t buffer, int32_t memory);
static planc_status require_blank(const planc_schedule *s, const char *verb, int32_t buffer, int64_t address);
static planc_status require_address(const planc_schedule *s, const char *verb, int32_t buffer, int64_t address);
static planc_status require_content(const planc_schedule *s, const char *verb, int32_t residency);
static planc_status require_empty(const planc_schedule *s, const char *verb, int32_t residency);
static planc_status require_on_device(const planc_schedule *s, const char *verb, int32_t residency);
static planc_status require_open(const planc_schedule *s, const char *verb, int32_t residency);
static planc_status require_residency(const planc_schedule *s, const char *verb, int32_t residency);
static planc_status require_buffer(const planc_schedule *s, const char *verb, int32_t buffer);
static planc_status refuse_buffer(const planc_schedule *s, const char *verb, int32_t buffer, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static planc_status refuse_instance(const planc_schedule *s, int32_t instance, const char *what);
static planc_status start_away(planc_schedule *s, int32_t buffer, int32_t memory, int64_t address, int32_t *out);
static planc_status open_away(planc_schedule *s, int32_t buffer, int32_t memory, int32_t content, int32_t *out);
static planc_status open_residency(planc_schedule *s, int32_t buffer, int64_t address, int32_t content, int32_t *out);
static planc_status add_residency(planc_schedule *s, planc_residency residency, schedule_residency state, int32_t *out);
static planc_status state_command(planc_schedule *s, planc_command command);

planc_status planc_schedule_boundary(planc_schedule *s, int32_t buffer, int32_t memory, int64_t address,
                                     int32_t *out_residency) {
  PLANC_TRY(require_persistent(s, "boundary", buffer));
  if (memory != planc_schedule_device(s)) {
    PLANC_TRY(start_away(s, buffer, memory, address, out_residency));
  } else {
    PLANC_TRY(require_address(s, "boundary", buffer, address));
    PLANC_TRY(open_residency(s, buffer, address, 0, out_residency));
  }
  s->buffers[buffer].boundary = true;
  s->n_boundary++;
  return NULL;
}

static planc_status start_away(planc_schedule *s, int32_t buffer, int32_t memory, int64_t address, int32_t *out) {
  PLANC_TRY(require_away(s, "boundary", buffer, memory));
  PLANC_TRY(require_blank(s, "boundary", buffer, address));
  if (s->n_away < s->n_boundary) return refuse_buffer(s, "boundary", buffer, "stated after what is resident");
  if (s->trace->buffers[buffer].n_accesses == 0) return refuse_buffer(s, "boundary", buffer, "nothing asks for it");
  PLANC_TRY(open_away(s, buffer, memory, 0, out));
  s->buffers[buffer].starts_away = *out;
  s->n_away++;
  return NULL;
}

planc_status planc_schedule_acquire(planc_schedule *s, int32_t buffer, int32_t memory, int64_t address,
                                    int32_t *out_residency) {
  PLANC_TRY(require_buffer(s, "acquire", buffer));
  if (memory != planc_schedule_device(s)) {
    PLANC_TRY(require_away(s, "acquire", buffer, memory));
    PLANC_TRY(require_blank(s, "acquire", buffer, address));
    return open_away(s, buffer, memory, SCHEDULE_EMPTY, out_residency);
  }
  PLANC_TRY(require_address(s, "acquire", buffer, address));
  PLANC_TRY(open_residency(s, buffer, address, SCHEDULE_EMPTY, out_residency));
  return state_command(s, (planc_command){.kind = PLANC_CMD_ACQUIRE, .residency = *out_residency, .address = address});
}

planc_status planc_schedule_release(planc_schedule *s, int32_t residency) {
  PLANC_TRY(require_on_device(s, "release", residency));
  schedule_residency *state = &s->states.data[residency];
  if (state->newer == SCHEDULE_NONE) {
    s->buffers[s->residencies.data[residency].buffer].newest_open = state->older;
  } else {
    s->states.data[state->newer].older = state->older;
  }
  if (state->older != SCHEDULE_NONE) s->states.data[state->older].newer = state->newer;
  state->open = false;
  state->content = SCHEDULE_EMPTY;
  return state_command(s, (planc_command){.kind = PLANC_CMD_RELEASE, .residency = residency});
}

/* --- Execution ---------------------------------------------------------------------------------------------------- */

static planc_status require_variant(const planc_schedule *s, int32_t instance, int32_t variant);
static planc_status resolve_use(const planc_schedule *s, const planc_access *access, int32_t *out);
static planc_status send(planc_schedule *s, const planc_access *access, int32_t residency);

planc_status planc_schedule_exec(planc_schedule *s, int32_t instance, int32_t variant, int64_t workspace_address,
                                 bool recompute) {
  if (instance < 0 || instance >= s->trace->n_instances) {
    return planc_error(PLANC_INTERNAL, "command %lld: exec: no instance %d", (long long)s->commands.len, instance);
  }
  if (s->ran[instance] != SCHEDULE_NONE && !recompute) return refuse_instance(s, instance, "it has run before");
  if (s->ran[instance] == SCHEDULE_NONE && recompute)
    return refuse_instance(s, instance, "a recompute before its first run");
  if (recompute && !planc_trace_recomputable(s->trace, instance)) {
    return refuse_instance(s, instance, "running it again would not restore what it wrote");
  }
  if (workspace_address != PLANC_BLANK && (workspace_address < 0 || workspace_address % PLANC_ALIGNMENT != 0)) {
    return refuse_instance(s, instance, "its workspace is not aligned");
  }
  PLANC_TRY(require_variant(s, instance, variant));
  if (recompute && variant != s->ran[instance]) {
    return refuse_instance(s, instance, "a recompute with another algorithm than its first run");
  }

  const planc_instance *it = &s->trace->instances[instance];
  const planc_access *accesses = &s->trace->accesses[it->first_access];
  int64_t first_use = s->uses.len;
  if (first_use > INT32_MAX - it->n_accesses) return planc_error(PLANC_INTERNAL, "more than %d uses", INT32_MAX);
  PLANC_TRY(VEC_RESERVE(&s->uses, first_use + it->n_accesses));
  int32_t *uses = &s->uses.data[first_use];
  for (int32_t k = 0; k < it->n_accesses; k++) {
    uses[k] = SCHEDULE_NONE;
    if (!(recompute && accesses[k].effect)) PLANC_TRY(resolve_use(s, &accesses[k], &uses[k]));
  }
  for (int32_t k = 0; k < it->n_accesses; k++) {
    if (uses[k] != SCHEDULE_NONE && accesses[k].write >= 0) s->states.data[uses[k]].content = accesses[k].write;
  }
  s->uses.len += it->n_accesses;
  s->n_executed += !recompute;
  s->ran[instance] = variant;
  PLANC_TRY(state_command(s, (planc_command){.kind = PLANC_CMD_EXEC,
                                             .stream = (int16_t)planc_schedule_compute(s, it->job, it->round),
                                             .recompute = recompute,
                                             .instance = instance,
                                             .variant = variant,
                                             .first_use = (int32_t)first_use,
                                             .address = workspace_address}));
  for (int32_t k = 0; k < it->n_accesses; k++) PLANC_TRY(send(s, &accesses[k], s->uses.data[first_use + k]));
  return NULL;
}

static planc_status require_variant(const planc_schedule *s, int32_t instance, int32_t variant) {
  const planc_instance *it = &s->trace->instances[instance];
  int32_t count = 1;
  if (it->role == PLANC_ROLE_OP) {
    const planc_costs *costs = s->costs[it->job];
    int32_t batch = planc_costs_batch(costs, it->batch);
    if (batch < 0) return refuse_instance(s, instance, "the costs lack its batch");
    (void)planc_costs_variants(costs, it->op, batch, &count);
  }
  if (variant >= 0 && variant < count) return NULL;
  return refuse_instance(s, instance, "no such variant");
}

/* The residency that serves an access: for a read the one that holds the version, for a pure write the one opened
 * last. */
static planc_status resolve_use(const planc_schedule *s, const planc_access *access, int32_t *out) {
  *out = access->read >= 0 ? planc_schedule_resident(s, access->buffer, access->read)
                           : planc_schedule_open(s, access->buffer);
  if (*out >= 0) return NULL;
  char verb[256];
  (void)snprintf(verb, sizeof verb, "exec of instance %d, op %.180s (round %d)", access->instance,
                 planc_trace_op(s->trace, access->instance)->name, s->trace->instances[access->instance].round);
  if (access->read < 0) return refuse_buffer(s, verb, access->buffer, "nothing is acquired to write to");
  return refuse_buffer(s, verb, access->buffer, "version %d is not resident", access->read);
}

/* Offloads what an instance wrote that other replicas get. */
static planc_status send(planc_schedule *s, const planc_access *access, int32_t residency) {
  if (access->write < 0 || access->write != s->trace->buffers[access->buffer].sent) return NULL;
  PLANC_TRY(planc_schedule_offload(s, residency, planc_schedule_host(s)));
  s->commands.data[s->commands.len - 1].sends = true;
  return NULL;
}

/* --- Copies ------------------------------------------------------------------------------------------------------- */

static planc_status require_link(const planc_schedule *s, const char *verb, planc_memory_kind from,
                                 planc_memory_kind to, int32_t buffer);
static planc_status state_copy(planc_schedule *s, int32_t to, int32_t from, int32_t version);
static int32_t stream_of(const planc_schedule *s, int32_t buffer, planc_route route);

planc_status planc_schedule_offload(planc_schedule *s, int32_t residency, int32_t memory) {
  int32_t away;
  PLANC_TRY(require_content(s, "offload", residency));
  int32_t version = s->states.data[residency].content, buffer = s->residencies.data[residency].buffer;
  PLANC_TRY(require_away(s, "offload", buffer, memory));
  PLANC_TRY(require_link(s, "offload", planc_schedule_kind_of(s, residency), s->memories.rows[memory].kind, buffer));
  PLANC_TRY(open_away(s, buffer, memory, version, &away));
  return state_copy(s, away, residency, version);
}

planc_status planc_schedule_deliver(planc_schedule *s, int32_t residency) {
  PLANC_TRY(require_on_device(s, "deliver", residency));
  PLANC_TRY(require_content(s, "deliver", residency));
  int32_t buffer = s->residencies.data[residency].buffer;
  int32_t version = s->states.data[residency].content;
  const planc_buffer *it = &s->trace->buffers[buffer];
  if (!(it->flags & PLANC_BUFFER_RESULT)) return refuse_buffer(s, "deliver", buffer, "it is not a result");
  if (version != it->last_version) {
    return refuse_buffer(s, "deliver", buffer, "residency %d holds version %d, the last is %d", residency, version,
                         it->last_version);
  }
  if (s->buffers[buffer].delivered) return refuse_buffer(s, "deliver", buffer, "delivered twice");
  s->buffers[buffer].delivered = true;
  return state_copy(s, PLANC_USER, residency, version);
}

planc_status planc_schedule_prefetch(planc_schedule *s, int32_t residency, int32_t version) {
  PLANC_TRY(require_on_device(s, "prefetch", residency));
  PLANC_TRY(require_empty(s, "prefetch", residency));
  int32_t buffer = s->residencies.data[residency].buffer;
  bool user = pl_schedule_user_holds(s, buffer, version);
  int32_t source = user ? PLANC_USER : pl_schedule_find_source(s, buffer, version);
  if (!user && source == SCHEDULE_NONE)
    return refuse_buffer(s, "prefetch", buffer, "version %d is not on the host", version);
  return state_copy(s, residency, source, version);
}

planc_status planc_schedule_move(planc_schedule *s, int32_t destination, int32_t source) {
  PLANC_TRY(require_empty(s, "move", destination));
  PLANC_TRY(require_content(s, "move", source));
  int32_t buffer = s->residencies.data[destination].buffer;
  if (s->residencies.data[source].buffer != buffer) {
    return refuse_buffer(s, "move", buffer, "residency %d is of another buffer", source);
  }
  PLANC_TRY(require_link(s, "move", planc_schedule_kind_of(s, source), planc_schedule_kind_of(s, destination), buffer));
  return state_copy(s, destination, source, s->states.data[source].content);
}

planc_status planc_schedule_await(planc_schedule *s, planc_route route, int32_t residency) {
  PLANC_TRY(require_residency(s, "await", residency));
  int32_t buffer = s->residencies.data[residency].buffer, stream = stream_of(s, buffer, route);
  if (stream < 0) return refuse_buffer(s, "await", buffer, "no stream for route %d", (int)route);
  if (!s->states.data[residency].copied) {
    return refuse_buffer(s, "await", buffer, "no copy was started on residency %d", residency);
  }
  return state_command(s, (planc_command){.kind = PLANC_CMD_AWAIT, .stream = (int16_t)stream, .residency = residency});
}

planc_status planc_schedule_follow(planc_schedule *s, planc_route route, int32_t job, int32_t leader) {
  bool known = job >= 0 && job < s->trace->n_jobs && leader >= 0 && leader < s->trace->n_jobs;
  if (!known || job == leader)
    return planc_error(PLANC_INTERNAL, "command %lld: follow: no job %d that follows job %d",
                       (long long)s->commands.len, job, leader);
  int32_t stream = planc_schedule_stream(s, job, route);
  if (stream < 0)
    return planc_error(PLANC_INTERNAL, "command %lld: follow: no stream for route %d", (long long)s->commands.len,
                       (int)route);
  if (s->n_compute[job] > 1 || s->n_compute[leader] > 1)
    return planc_error(PLANC_INTERNAL, "command %lld: follow: rounds of job %d or %d run side by side",
                       (long long)s->commands.len, job, leader);
  return state_command(
      s, (planc_command){
             .kind = PLANC_CMD_FOLLOW, .stream = (int16_t)stream, .residency = SCHEDULE_NONE, .source = leader});
}

static planc_status require_link(const planc_schedule *s, const char *verb, planc_memory_kind from,
                                 planc_memory_kind to, int32_t buffer) {
  if (pl_memories_linked(from, to) || (from == PLANC_MEMORY_DEVICE && to == PLANC_MEMORY_DEVICE)) return NULL;
  return refuse_buffer(s, verb, buffer, "no link leads from the one memory to the other");
}

/* The one way to copy. The sides hold, and may hold, what they must, and a link leads from the one to the other. */
static planc_status state_copy(planc_schedule *s, int32_t to, int32_t from, int32_t version) {
  planc_command copy = {.kind = PLANC_CMD_COPY, .residency = to, .source = from, .version = version};
  planc_memory_kind target = planc_schedule_kind_of(s, to), source = planc_schedule_kind_of(s, from);
  planc_route route = target == source ? PLANC_STREAM_COMPUTE : pl_route_between(source, target);
  copy.stream = (int16_t)stream_of(s, planc_schedule_buffer(s, &copy), route);
  if (to != PLANC_USER) s->states.data[to].content = version;
  if (target == PLANC_MEMORY_DEVICE) s->states.data[to].copied = true;
  if (source == PLANC_MEMORY_DEVICE) s->states.data[from].copied = true;
  return state_command(s, copy);
}

/* A job's stream for a route; of several compute streams that of the buffer's round. -1 = none. */
static int32_t stream_of(const planc_schedule *s, int32_t buffer, planc_route route) {
  const planc_buffer *of = &s->trace->buffers[buffer];
  if (route == PLANC_STREAM_COMPUTE) return planc_schedule_compute(s, of->job, of->round);
  return planc_schedule_stream(s, of->job, route);
}

/* --- The whole ---------------------------------------------------------------------------------------------------- */

static planc_status finish_buffer(const planc_schedule *s, int32_t buffer);

planc_status planc_schedule_finish(planc_schedule *s) {
  for (int32_t i = 0; s->n_executed < s->trace->n_instances && i < s->trace->n_instances; i++) {
    if (s->ran[i] == SCHEDULE_NONE) return refuse_instance(s, i, "it never runs");
  }
  for (int32_t b = 0; b < s->trace->n_buffers; b++) PLANC_TRY(finish_buffer(s, b));
  return NULL;
}

static planc_status finish_buffer(const planc_schedule *s, int32_t buffer) {
  const planc_buffer *it = &s->trace->buffers[buffer];
  const schedule_buffer *state = &s->buffers[buffer];
  if ((it->flags & PLANC_BUFFER_RESULT) && !state->delivered) {
    return refuse_buffer(s, "finish", buffer, "the result was not delivered");
  }
  if ((it->flags & PLANC_BUFFER_PERSISTENT) && it->n_accesses > 0 && !state->boundary) {
    return refuse_buffer(s, "finish", buffer, "it persists and is not in the boundary");
  }
  int32_t open = state->newest_open;
  bool away = state->starts_away != SCHEDULE_NONE;
  if (away && s->states.data[planc_schedule_away_at_end(s, buffer)].content != it->last_version) {
    return refuse_buffer(s, "finish", buffer, "its last version, %d, is not where the boundary has it",
                         it->last_version);
  }
  if (!state->boundary || away) {
    return open == SCHEDULE_NONE ? NULL : refuse_buffer(s, "finish", buffer, "residency %d is not released", open);
  }
  if (open == SCHEDULE_NONE || s->states.data[open].content != it->last_version) {
    return refuse_buffer(s, "finish", buffer, "its last version, %d, is not resident at the end", it->last_version);
  }
  if (s->states.data[open].older != SCHEDULE_NONE) {
    return refuse_buffer(s, "finish", buffer, "residency %d is not released", s->states.data[open].older);
  }
  return NULL;
}

/* --- Residencies and commands ------------------------------------------------------------------------------------- */

static planc_status open_away(planc_schedule *s, int32_t buffer, int32_t memory, int32_t content, int32_t *out) {
  int32_t older = s->buffers[buffer].newest_away;
  planc_residency residency = {buffer, memory, PLANC_BLANK};
  schedule_residency state = {.content = content, .older = older, .newer = SCHEDULE_NONE, .open = true};
  PLANC_TRY(add_residency(s, residency, state, out));
  s->buffers[buffer].newest_away = *out;
  return NULL;
}

static planc_status open_residency(planc_schedule *s, int32_t buffer, int64_t address, int32_t content, int32_t *out) {
  int32_t older = s->buffers[buffer].newest_open;
  planc_residency residency = {buffer, planc_schedule_device(s), address};
  schedule_residency state = {.content = content, .older = older, .newer = SCHEDULE_NONE, .open = true};
  PLANC_TRY(add_residency(s, residency, state, out));
  if (older != SCHEDULE_NONE) s->states.data[older].newer = *out;
  s->buffers[buffer].newest_open = *out;
  return NULL;
}

static planc_status add_residency(planc_schedule *s, planc_residency residency, schedule_residency state,
                                  int32_t *out) {
  *out = (int32_t)s->residencies.len;
  if (*out == INT32_MAX) return planc_error(PLANC_INTERNAL, "more than %d residencies", INT32_MAX);
  VEC_PUSH(&s->residencies, residency);
  VEC_PUSH(&s->states, state);
  return NULL;
}

/* Appends a command; every count of the schedule must stay an int32. */
static planc_status state_command(planc_schedule *s, planc_command command) {
  if (s->commands.len >= INT32_MAX) return planc_error(PLANC_INTERNAL, "more than %d commands", INT32_MAX);
  VEC_PUSH(&s->commands, command);
  return NULL;
}

/* --- Refusals ----------------------------------------------------------------------------------------------------- */

static planc_status require_persistent(const planc_schedule *s, const char *verb, int32_t buffer) {
  PLANC_TRY(require_buffer(s, verb, buffer));
  if (s->commands.len > 0) return refuse_buffer(s, verb, buffer, "stated after the first command");
  if (!(s->trace->buffers[buffer].flags & PLANC_BUFFER_PERSISTENT)) {
    return refuse_buffer(s, verb, buffer, "it does not persist");
  }
  return s->buffers[buffer].boundary ? refuse_buffer(s, verb, buffer, "stated twice") : NULL;
}

static planc_status require_away(const planc_schedule *s, const char *verb, int32_t buffer, int32_t memory) {
  bool known = memory >= 0 && memory < s->memories.n;
  if (known && pl_memories_is_away(&s->memories, memory)) return NULL;
  return refuse_buffer(s, verb, buffer, "memory %d is no memory away from the device", memory);
}

static planc_status require_blank(const planc_schedule *s, const char *verb, int32_t buffer, int64_t address) {
  if (address == PLANC_BLANK) return NULL;
  return refuse_buffer(s, verb, buffer, "an address away from the device");
}

static planc_status require_address(const planc_schedule *s, const char *verb, int32_t buffer, int64_t address) {
  if (address == PLANC_BLANK || (address >= 0 && address % PLANC_ALIGNMENT == 0)) return NULL;
  return refuse_buffer(s, verb, buffer, "address %lld is not a multiple of %d", (long long)address, PLANC_ALIGNMENT);
}

static planc_status require_content(const planc_schedule *s, const char *verb, int32_t residency) {
  PLANC_TRY(require_open(s, verb, residency));
  int32_t buffer = s->residencies.data[residency].buffer;
  if (s->states.data[residency].content == SCHEDULE_EMPTY)
    return refuse_buffer(s, verb, buffer, "residency %d is empty", residency);
  if (pl_schedule_is_there(s, residency)) return NULL;
  return refuse_buffer(s, verb, buffer, "the last version has taken the place of residency %d", residency);
}

static planc_status require_empty(const planc_schedule *s, const char *verb, int32_t residency) {
  PLANC_TRY(require_open(s, verb, residency));
  int32_t content = s->states.data[residency].content;
  if (content == SCHEDULE_EMPTY) return NULL;
  return refuse_buffer(s, verb, s->residencies.data[residency].buffer, "residency %d already holds version %d",
                       residency, content);
}

static planc_status require_on_device(const planc_schedule *s, const char *verb, int32_t residency) {
  PLANC_TRY(require_open(s, verb, residency));
  if (!planc_schedule_is_away(s, residency)) return NULL;
  return refuse_buffer(s, verb, s->residencies.data[residency].buffer, "residency %d is not on the device", residency);
}

static planc_status require_open(const planc_schedule *s, const char *verb, int32_t residency) {
  PLANC_TRY(require_residency(s, verb, residency));
  if (s->states.data[residency].open) return NULL;
  return refuse_buffer(s, verb, s->residencies.data[residency].buffer, "residency %d is released", residency);
}

static planc_status require_residency(const planc_schedule *s, const char *verb, int32_t residency) {
  if (residency >= 0 && residency < s->residencies.len) return NULL;
  return planc_error(PLANC_INTERNAL, "command %lld: %s: no residency %d", (long long)s->commands.len, verb, residency);
}

static planc_status require_buffer(const planc_schedule *s, const char *verb, int32_t buffer) {
  if (buffer >= 0 && buffer < s->trace->n_buffers) return NULL;
  return planc_error(PLANC_INTERNAL, "command %lld: %s: no buffer %d", (long long)s->commands.len, verb, buffer);
}

/* "command 7: acquire: buffer conv1.y (round 2): what is wrong" */
static planc_status refuse_buffer(const planc_schedule *s, const char *verb, int32_t buffer, const char *format, ...) {
  char what[256];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(what, sizeof what, format, args);
  va_end(args);
  return planc_error(PLANC_INTERNAL, "command %lld: %s: buffer %s (round %d): %s", (long long)s->commands.len, verb,
                     planc_trace_buffer_name(s->trace, buffer), s->trace->buffers[buffer].round, what);
}

static planc_status refuse_instance(const planc_schedule *s, int32_t instance, const char *what) {
  return planc_error(PLANC_INTERNAL, "command %lld: exec: instance %d, op %s (round %d): %s",
                     (long long)s->commands.len, instance, planc_trace_op(s->trace, instance)->name,
                     s->trace->instances[instance].round, what);
}
