/* A schedule's state (schedule_state.h): made, freed and looked at. The commands of schedule.c change it. */
#include "planner/base/schedule_state.h"

#include <stdlib.h>

#include "util/math.h"

static planc_status take_memories(const planc_memory *memories, int32_t n_memories, pl_memories *out);
static planc_status require_streams(const planc_schedule *s);

planc_status planc_schedule_new(const planc_trace *trace, const planc_costs *const *costs, const planc_memory *memories,
                                int32_t n_memories, planc_schedule **out) {
  pl_memories own;
  *out = NULL;
  PLANC_TRY(take_memories(memories, n_memories, &own));
  if (trace->n_jobs > PLANC_PLAN_MAX_JOBS)
    return planc_error(PLANC_INTERNAL, "%d jobs, and a plan has at most %d", trace->n_jobs, PLANC_PLAN_MAX_JOBS);
  planc_schedule *s = calloc(1, sizeof *s);
  if (s) {
    s->trace = trace;
    s->memories = own;
    s->costs = malloc((size_t)trace->n_jobs * sizeof *s->costs);
    s->n_compute = malloc((size_t)trace->n_jobs * sizeof *s->n_compute);
    s->buffers = malloc(((size_t)trace->n_buffers + 1) * sizeof *s->buffers);
    s->ran = malloc(((size_t)trace->n_instances + 1) * sizeof *s->ran);
  }
  if (!s || !s->costs || !s->n_compute || !s->buffers || !s->ran) {
    planc_schedule_free(s);
    return planc_error(PLANC_OUT_OF_MEMORY, "schedule of %d instances", trace->n_instances);
  }
  for (int32_t j = 0; j < trace->n_jobs; j++) {
    s->costs[j] = costs[j];
    s->n_compute[j] = 1;
  }
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    s->buffers[b] =
        (schedule_buffer){.newest_open = SCHEDULE_NONE, .newest_away = SCHEDULE_NONE, .starts_away = SCHEDULE_NONE};
  }
  for (int32_t i = 0; i < trace->n_instances; i++) s->ran[i] = SCHEDULE_NONE;
  planc_status status = require_streams(s);
  if (status) {
    planc_schedule_free(s);
    return status;
  }
  *out = s;
  return NULL;
}

static planc_status take_memories(const planc_memory *memories, int32_t n_memories, pl_memories *out) {
  int32_t n_of[PLANC_N_MEMORY_KINDS] = {0};
  *out = pl_memories_of(NULL, NULL);
  if (!memories) return NULL;
  *out = (pl_memories){.n = n_memories};
  bool known = n_memories >= 0 && n_memories <= PL_MAX_MEMORIES;
  for (int32_t m = 0; known && m < n_memories; m++) {
    out->rows[m] = memories[m];
    n_of[memories[m].kind]++;
  }
  if (known && n_of[PLANC_MEMORY_DEVICE] == 1 && n_of[PLANC_MEMORY_HOST] == 1) return NULL;
  return planc_error(PLANC_INTERNAL, "a schedule of %d memories, and not of one device and one host", n_memories);
}

static planc_status require_streams(const planc_schedule *s) {
  int32_t streams = planc_schedule_n_streams(s);
  if (streams <= PLANC_PLAN_MAX_STREAMS) return NULL;
  return planc_error(PLANC_INTERNAL, "%d streams, and a plan has at most %d", streams, PLANC_PLAN_MAX_STREAMS);
}

void planc_schedule_free(planc_schedule *schedule) {
  if (!schedule) return;
  free(schedule->costs);
  free(schedule->n_compute);
  VEC_FREE(&schedule->commands);
  VEC_FREE(&schedule->residencies);
  VEC_FREE(&schedule->states);
  VEC_FREE(&schedule->uses);
  VEC_FREE(&schedule->mappings);
  free(schedule->buffers);
  free(schedule->ran);
  free(schedule);
}

planc_status planc_schedule_map(planc_schedule *s, const planc_virtual_memory *memory) {
  s->mappings.len = 0;
  for (int32_t m = 0; m < memory->n; m++) VEC_PUSH(&s->mappings, memory->mappings[m]);
  s->memory = *memory;
  s->memory.mappings = s->mappings.data;
  return NULL;
}

planc_status planc_schedule_side_by_side(planc_schedule *s, int32_t job, int32_t n) {
  if (job < 0 || job >= s->trace->n_jobs || n < 1 || n > PLANC_PLAN_MAX_STREAMS)
    return planc_error(PLANC_INTERNAL, "no job %d with %d compute streams", job, n);
  if (s->residencies.len > 0) return planc_error(PLANC_INTERNAL, "rounds side by side stated behind residencies");
  s->n_compute[job] = n;
  return require_streams(s);
}

/* --- Streams ------------------------------------------------------------------------------------------------------ */

/* What the streams that every job has are for. */
static const planc_route routes[PLANC_N_STREAMS] = {PLANC_STREAM_COMPUTE, PLANC_ROUTE_H2D, PLANC_ROUTE_D2H};

/* Behind the streams that every job has, those that the jobs before this one have more. */
static int32_t first_more(const planc_schedule *s, int32_t job) {
  int32_t first = s->trace->n_jobs * PLANC_N_STREAMS;
  for (int32_t j = 0; j < job; j++) first += s->n_compute[j] - 1;
  return first;
}

int32_t planc_schedule_n_streams(const planc_schedule *s) {
  planc_route more[PL_ROUTES_BEHIND_HOST];
  int32_t n_more = pl_memories_routes_behind_host(&s->memories, more);
  return planc_schedule_first_storage_stream(s) + s->trace->n_jobs * n_more;
}

int32_t planc_schedule_first_storage_stream(const planc_schedule *s) {
  return first_more(s, s->trace->n_jobs);
}

int32_t planc_schedule_n_compute(const planc_schedule *s, int32_t job) {
  return s->n_compute[job];
}

int32_t planc_schedule_compute(const planc_schedule *s, int32_t job, int32_t round) {
  int32_t k = round < 0 ? 0 : round % s->n_compute[job];
  return k == 0 ? planc_schedule_stream(s, job, PLANC_STREAM_COMPUTE) : first_more(s, job) + k - 1;
}

int32_t planc_schedule_stream(const planc_schedule *s, int32_t job, planc_route route) {
  if (job < 0 || job >= s->trace->n_jobs) return -1;
  for (int32_t k = 0; k < PLANC_N_STREAMS; k++)
    if (routes[k] == route) return job * PLANC_N_STREAMS + k;
  planc_route more[PL_ROUTES_BEHIND_HOST];
  int32_t n_more = pl_memories_routes_behind_host(&s->memories, more);
  for (int32_t k = 0; k < n_more; k++)
    if (more[k] == route) return planc_schedule_first_storage_stream(s) + job * n_more + k;
  return -1;
}

planc_route planc_schedule_route(const planc_schedule *s, int32_t stream) {
  planc_route more[PL_ROUTES_BEHIND_HOST];
  int32_t n_more = pl_memories_routes_behind_host(&s->memories, more), first = planc_schedule_first_storage_stream(s);
  if (n_more > 0 && stream >= first) return more[(stream - first) % n_more];
  return stream < first_more(s, 0) ? routes[stream % PLANC_N_STREAMS] : PLANC_STREAM_COMPUTE;
}

/* Execs behind a command, by their commands: the next of each stream, the next of each job, and the first of the job
 * that is behind all of its rounds or of its next iteration. */
typedef struct execs_behind {
  int32_t of_stream[PLANC_PLAN_MAX_STREAMS], of_job[PLANC_PLAN_MAX_JOBS], behind_rounds[PLANC_PLAN_MAX_JOBS];
} execs_behind;

static bool is_behind_rounds(const planc_schedule *s, const planc_instance *it, int32_t next) {
  if (next == planc_schedule_n_commands(s)) return true;
  const planc_instance *other = &s->trace->instances[s->commands.data[next].instance];
  return other->round < 0 || other->iteration != it->iteration;
}

static int32_t end_of_workspace(const planc_schedule *s, int32_t c, execs_behind *behind) {
  const planc_command *command = &s->commands.data[c];
  const planc_instance *it = &s->trace->instances[command->instance];
  int32_t next = behind->of_job[it->job], own = behind->of_stream[command->stream];
  if (is_behind_rounds(s, it, next)) behind->behind_rounds[it->job] = next;
  behind->of_job[it->job] = behind->of_stream[command->stream] = c;
  if (s->n_compute[it->job] == 1) return c + 1;
  return own < behind->behind_rounds[it->job] ? own : behind->behind_rounds[it->job];
}

void planc_schedule_workspace_ends(const planc_schedule *s, int32_t *ends) {
  execs_behind behind;
  int32_t n_commands = planc_schedule_n_commands(s);
  for (int32_t t = 0; t < planc_schedule_n_streams(s); t++) behind.of_stream[t] = n_commands;
  for (int32_t j = 0; j < s->trace->n_jobs; j++) behind.of_job[j] = behind.behind_rounds[j] = n_commands;
  for (int32_t c = n_commands - 1; c >= 0; c--)
    ends[c] = s->commands.data[c].kind == PLANC_CMD_EXEC ? end_of_workspace(s, c, &behind) : c + 1;
}

/* --- What is away ------------------------------------------------------------------------------------------------- */

int32_t planc_schedule_away(const planc_schedule *s, int32_t buffer, int32_t memory, int32_t version) {
  int32_t r = s->buffers[buffer].newest_away;
  while (r != SCHEDULE_NONE && (s->states.data[r].content != version || s->residencies.data[r].memory != memory))
    r = s->states.data[r].older;
  return r;
}

bool pl_schedule_is_there(const planc_schedule *s, int32_t residency) {
  int32_t buffer = s->residencies.data[residency].buffer;
  return residency != s->buffers[buffer].starts_away || planc_schedule_away_at_end(s, buffer) == residency;
}

int32_t pl_schedule_find_source(const planc_schedule *s, int32_t buffer, int32_t version) {
  int32_t host = planc_schedule_host(s), peer = s->trace->buffers[buffer].peer;
  int32_t away = planc_schedule_away(s, buffer, host, version);
  if (away != SCHEDULE_NONE && pl_schedule_is_there(s, away)) return away;
  return peer >= 0 && version == 0 ? planc_schedule_away(s, peer, host, s->trace->buffers[peer].sent) : SCHEDULE_NONE;
}

bool pl_schedule_user_holds(const planc_schedule *s, int32_t buffer, int32_t version) {
  return planc_user_holds(&s->trace->buffers[buffer], version);
}

/* --- Looking ------------------------------------------------------------------------------------------------------ */

const planc_memory *planc_schedule_memories(const planc_schedule *s, int32_t *out_n) {
  *out_n = s->memories.n;
  return s->memories.rows;
}

int32_t planc_schedule_first_of(const planc_schedule *s, planc_memory_kind kind) {
  return pl_memories_first(&s->memories, kind);
}

int32_t planc_schedule_device(const planc_schedule *s) {
  return planc_schedule_first_of(s, PLANC_MEMORY_DEVICE);
}

int32_t planc_schedule_host(const planc_schedule *s) {
  return planc_schedule_first_of(s, PLANC_MEMORY_HOST);
}

int32_t planc_schedule_resident(const planc_schedule *s, int32_t buffer, int32_t version) {
  int32_t r = s->buffers[buffer].newest_open;
  while (r != SCHEDULE_NONE && s->states.data[r].content != version) r = s->states.data[r].older;
  return r;
}

int32_t planc_schedule_open(const planc_schedule *s, int32_t buffer) {
  return s->buffers[buffer].newest_open;
}

int32_t planc_schedule_content(const planc_schedule *s, int32_t residency) {
  return s->states.data[residency].content;
}

bool planc_schedule_on_host(const planc_schedule *s, int32_t buffer, int32_t version) {
  return pl_schedule_user_holds(s, buffer, version) || pl_schedule_find_source(s, buffer, version) != SCHEDULE_NONE;
}

planc_memory_kind planc_schedule_kind_of(const planc_schedule *s, int32_t residency) {
  if (residency == PLANC_USER) return PLANC_MEMORY_USER;
  return s->memories.rows[s->residencies.data[residency].memory].kind;
}

bool planc_schedule_is_away(const planc_schedule *s, int32_t residency) {
  return residency != PLANC_USER && pl_memories_is_away(&s->memories, s->residencies.data[residency].memory);
}

bool planc_schedule_copies(const planc_schedule *s, const planc_command *command, planc_memory_kind from,
                           planc_memory_kind to) {
  return command->kind == PLANC_CMD_COPY && planc_schedule_kind_of(s, command->source) == from &&
         planc_schedule_kind_of(s, command->residency) == to;
}

bool planc_schedule_gives(const planc_schedule *s, const planc_command *command) {
  if (command->kind != PLANC_CMD_COPY) return command->kind == PLANC_CMD_RELEASE;
  return planc_schedule_kind_of(s, command->residency) > planc_schedule_kind_of(s, command->source);
}

int32_t planc_schedule_buffer(const planc_schedule *s, const planc_command *command) {
  bool to_user = command->kind == PLANC_CMD_COPY && command->residency == PLANC_USER;
  return s->residencies.data[to_user ? command->source : command->residency].buffer;
}

const planc_virtual_memory *planc_schedule_virtual_memory(const planc_schedule *s) {
  return &s->memory;
}
const planc_trace *planc_schedule_trace(const planc_schedule *s) {
  return s->trace;
}
int64_t planc_schedule_bytes(const planc_schedule *s, int32_t residency) {
  return s->trace->buffers[planc_schedule_residencies(s)[residency].buffer].bytes;
}
const planc_costs *planc_schedule_costs(const planc_schedule *s, int32_t job) {
  return s->costs[job];
}
int32_t planc_schedule_n_commands(const planc_schedule *s) {
  return (int32_t)s->commands.len;
}
const planc_command *planc_schedule_commands(const planc_schedule *s) {
  return s->commands.data;
}
int32_t planc_schedule_n_residencies(const planc_schedule *s) {
  return (int32_t)s->residencies.len;
}
const planc_residency *planc_schedule_residencies(const planc_schedule *s) {
  return s->residencies.data;
}
int32_t planc_schedule_n_boundary(const planc_schedule *s) {
  return s->n_boundary;
}
int32_t planc_schedule_n_away(const planc_schedule *s) {
  return s->n_away;
}
int32_t planc_schedule_away_at_end(const planc_schedule *s, int32_t buffer) {
  int32_t last = s->trace->buffers[buffer].last_version, first = s->buffers[buffer].starts_away;
  if (last == 0 || first == SCHEDULE_NONE) return first;
  int32_t away = planc_schedule_away(s, buffer, s->residencies.data[first].memory, last);
  return away == SCHEDULE_NONE ? first : away;
}
const int32_t *planc_schedule_uses(const planc_schedule *s) {
  return s->uses.data;
}

int32_t planc_schedule_ran(const planc_schedule *s, int32_t instance) {
  return s->ran[instance];
}
planc_variant planc_adding_variant(const planc_trace *trace, const planc_profile *profile, int32_t instance) {
  const planc_instance *it = &trace->instances[instance];
  int64_t add_ns = planc_costs_add_ns(profile, trace->buffers[trace->accesses[it->first_access].buffer].bytes);
  int32_t n_added = it->role == PLANC_ROLE_EXCHANGE ? planc_trace_replicas(trace) - 1 : 1;
  return (planc_variant){
      .algorithm = "add", .time_ns = pl_mul_saturate(add_ns, n_added), .busy_ppm = 1000000, .deterministic = true};
}

planc_variant planc_schedule_variant(const planc_schedule *s, const planc_command *command) {
  const planc_instance *it = &s->trace->instances[command->instance];
  const planc_costs *costs = s->costs[it->job];
  if (it->role != PLANC_ROLE_OP) return planc_adding_variant(s->trace, costs->profile, command->instance);
  int32_t count;
  return planc_costs_variants(costs, it->op, planc_costs_batch(costs, it->batch), &count)[command->variant];
}
