/* Merging (merge.h). A job's commands are stated again, for each iteration, over the buffers and instances that the
 * trace of all jobs has in place of its own. */
#include "planner/colocate/jobs/merge.h"

#include <assert.h>
#include <stdlib.h>

#include "plan/one_job.h"

/* An iteration of a job in the trace of all jobs. Iterations of a job share the buffers of which a period has only
 * one. */
typedef struct part {
  const planc_candidate *of;
  int32_t first_instance;
  int32_t *buffers;         /* by the job's own: that of all */
  int32_t *versions;        /* by the job's own buffer: how many versions earlier iterations made of it */
  int32_t *residencies;     /* by the job's own */
  const int64_t *addresses; /* by the job's own residency, and by its command, of workspaces; NULL = blank */
  const int64_t *workspaces;
  bool begun;
} part;

typedef struct merging {
  const pl_merge *merge;
  pl_arena arena;
  int32_t *first_part; /* by job */
  part *parts;
  planc_candidate *out;
} merging;

static planc_status merge_all(merging *m);
static planc_status begin_schedule(const merging *m);
static planc_status set_compute_streams(const merging *m);
static planc_status make_trace(merging *m);
static planc_status make_costs(merging *m);
static planc_status make_parts(merging *m);
static planc_status state_boundary(merging *m, bool away);
static planc_status take_turn(const merging *m, const pl_turn *turn);

planc_status pl_merge_candidates(const pl_merge *merge, planc_candidate *out) {
  merging m = {.merge = merge, .out = out};
  planc_status status = merge_all(&m);
  pl_arena_free(&m.arena);
  return planc_context(status, "merging jobs");
}

static planc_status merge_all(merging *m) {
  PLANC_TRY(make_trace(m));
  PLANC_TRY(make_costs(m));
  PLANC_TRY(make_parts(m));
  PLANC_TRY(begin_schedule(m));
  PLANC_TRY(set_compute_streams(m));
  PLANC_TRY(state_boundary(m, true));
  PLANC_TRY(state_boundary(m, false));
  for (int64_t t = 0; t < m->merge->n_turns; t++) PLANC_TRY(take_turn(m, &m->merge->turns[t]));
  PLANC_TRY(planc_schedule_finish(m->out->schedule));
  return planc_order_of_schedule(m->out->schedule, &m->out->order);
}

/* Jobs' own schedules are over the same memories. */
static planc_status begin_schedule(const merging *m) {
  int32_t n;
  const planc_memory *memories = planc_schedule_memories(m->merge->jobs[0].schedule, &n);
  planc_schedule_free(m->out->schedule);
  return planc_schedule_new(m->out->trace, m->out->costs, memories, n, &m->out->schedule);
}

static planc_status set_compute_streams(const merging *m) {
  assert(m->merge->n_compute == 0 || m->merge->n_jobs == 1);
  for (int32_t j = 0; j < m->merge->n_jobs; j++) {
    int32_t own = planc_schedule_n_compute(m->merge->jobs[j].schedule, 0);
    PLANC_TRY(planc_schedule_side_by_side(m->out->schedule, j, m->merge->n_compute > 0 ? m->merge->n_compute : own));
  }
  return NULL;
}

planc_status pl_merge_repeat(pl_arena *arena, int32_t n_jobs, const int32_t *iterations, int64_t *const *by_job,
                             int64_t ***out) {
  int64_t n_passes = 0, pass = 0;
  for (int32_t j = 0; j < n_jobs; j++) n_passes += iterations[j];
  PLANC_TRY(PL_NEW(arena, out, n_passes));
  for (int32_t j = 0; j < n_jobs; j++)
    for (int32_t k = 0; k < iterations[j]; k++) (*out)[pass++] = by_job[j];
  return NULL;
}

/* --- Trace and costs ---------------------------------------------------------------------------------------------- */

static planc_status make_trace(merging *m) {
  planc_job *jobs;
  PLANC_TRY(PL_NEW(&m->arena, &jobs, m->merge->n_jobs));
  for (int32_t j = 0; j < m->merge->n_jobs; j++) {
    jobs[j] = *pl_trace_job(m->merge->jobs[j].trace);
    jobs[j].iterations = m->merge->iterations[j];
  }
  return planc_expand(jobs, m->merge->n_jobs, &m->out->trace);
}

static planc_status make_costs(merging *m) {
  m->out->costs = calloc((size_t)m->merge->n_jobs, sizeof *m->out->costs);
  if (!m->out->costs) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  for (int32_t j = 0; j < m->merge->n_jobs; j++) {
    const planc_costs *own = m->merge->jobs[j].costs[0];
    planc_costs *costs;
    PLANC_TRY(planc_costs_make(own->profile, own->graph, own->n_batches, own->batches, &costs));
    m->out->costs[j] = costs;
  }
  return NULL;
}

/* --- Parts -------------------------------------------------------------------------------------------------------- */

/* Maps the job's own buffers to those of the trace of all jobs. An iteration accesses them as the job alone does, at
 * later versions. Every buffer is accessed. */
static void follow_accesses(const merging *m, part *p) {
  const planc_trace *own = p->of->trace, *all = m->out->trace;
  for (int32_t i = 0; i < own->n_instances; i++) {
    const planc_access *from = &own->accesses[own->instances[i].first_access];
    const planc_access *to = &all->accesses[all->instances[p->first_instance + i].first_access];
    assert(own->instances[i].n_accesses == all->instances[p->first_instance + i].n_accesses);
    for (int32_t k = 0; k < own->instances[i].n_accesses; k++) {
      p->buffers[from[k].buffer] = to[k].buffer;
      p->versions[from[k].buffer] = from[k].read >= 0 ? to[k].read - from[k].read : to[k].write - from[k].write;
    }
  }
}

static planc_status make_part(merging *m, int32_t job, int32_t first_instance, part *p) {
  const planc_candidate *of = &m->merge->jobs[job];
  *p = (part){.of = of, .first_instance = first_instance};
  PLANC_TRY(PL_NEW(&m->arena, &p->buffers, of->trace->n_buffers));
  PLANC_TRY(PL_NEW(&m->arena, &p->versions, of->trace->n_buffers));
  PLANC_TRY(PL_NEW(&m->arena, &p->residencies, planc_schedule_n_residencies(of->schedule)));
  for (int32_t r = 0; r < planc_schedule_n_residencies(of->schedule); r++) p->residencies[r] = -1;
  follow_accesses(m, p);
  return NULL;
}

static planc_status make_parts(merging *m) {
  int64_t n_parts = 0;
  int32_t instance = 0;
  PLANC_TRY(PL_NEW(&m->arena, &m->first_part, m->merge->n_jobs));
  for (int32_t j = 0; j < m->merge->n_jobs; j++) n_parts += m->merge->iterations[j];
  PLANC_TRY(PL_NEW(&m->arena, &m->parts, n_parts));
  int32_t next = 0;
  for (int32_t j = 0; j < m->merge->n_jobs; j++) {
    m->first_part[j] = next;
    for (int32_t k = 0; k < m->merge->iterations[j]; k++) {
      PLANC_TRY(make_part(m, j, instance, &m->parts[next]));
      if (m->merge->residencies) m->parts[next].addresses = m->merge->residencies[next];
      if (m->merge->workspaces) m->parts[next].workspaces = m->merge->workspaces[next];
      next++;
      instance += m->merge->jobs[j].trace->n_instances;
    }
  }
  assert(instance == m->out->trace->n_instances);
  return NULL;
}

/* --- Commands ----------------------------------------------------------------------------------------------------- */

static void begin(const merging *m, part *p);
static bool feeds(const part *p, int32_t c);
static planc_status state_command(const merging *m, part *p, int32_t c);
static planc_status state_acquire(const merging *m, part *p, const planc_command *command);
static planc_status state_copy(const merging *m, const part *p, const planc_command *command);
static int32_t source_of(const merging *m, const part *p, const planc_command *command, int32_t version);

static int64_t address_of(const part *p, int32_t residency) {
  return p->addresses ? p->addresses[residency] : PLANC_BLANK;
}

/* Boundaries of all jobs: what is away from the device stands first. */
static planc_status state_boundary(merging *m, bool away) {
  for (int32_t j = 0; j < m->merge->n_jobs; j++) {
    part *p = &m->parts[m->first_part[j]];
    const planc_schedule *own = p->of->schedule;
    int32_t n_away = planc_schedule_n_away(own);
    int32_t first = away ? 0 : n_away, end = away ? n_away : planc_schedule_n_boundary(own);
    for (int32_t r = first; r < end; r++) {
      const planc_residency *it = &planc_schedule_residencies(own)[r];
      int32_t buffer = p->buffers[it->buffer], *out = &p->residencies[r];
      int64_t address = away ? PLANC_BLANK : address_of(p, r);
      PLANC_TRY(planc_schedule_boundary(m->out->schedule, buffer, it->memory, address, out));
    }
  }
  return NULL;
}

static planc_status take_turn(const merging *m, const pl_turn *turn) {
  part *p = &m->parts[m->first_part[turn->job] + turn->iteration];
  if (turn->iteration > 0 && !p->begun) begin(m, p);
  if (turn->leader >= 0)
    PLANC_TRY(planc_schedule_follow(m->out->schedule, PLANC_STREAM_COMPUTE, turn->job, turn->leader));
  for (int32_t c = turn->first; c < turn->end; c++) {
    if (turn->feeds_late && turn->leader >= 0 && feeds(p, c))
      PLANC_TRY(planc_schedule_follow(m->out->schedule, PLANC_ROUTE_H2D, turn->job, turn->leader));
    PLANC_TRY(state_command(m, p, c));
  }
  return NULL;
}

/* A later iteration finds what persists where the one before has left it. */
static void begin(const merging *m, part *p) {
  const planc_schedule *own = p->of->schedule;
  for (int32_t r = planc_schedule_n_away(own); r < planc_schedule_n_boundary(own); r++) {
    int32_t buffer = p->buffers[planc_schedule_residencies(own)[r].buffer];
    p->residencies[r] = planc_schedule_open(m->out->schedule, buffer);
  }
  p->begun = true;
}

static bool feeds(const part *p, int32_t c) {
  return planc_schedule_copies(p->of->schedule, &planc_schedule_commands(p->of->schedule)[c], PLANC_MEMORY_USER,
                               PLANC_MEMORY_DEVICE);
}

static planc_status state_command(const merging *m, part *p, int32_t c) {
  const planc_command *command = &planc_schedule_commands(p->of->schedule)[c];
  planc_schedule *all = m->out->schedule;
  switch (command->kind) {
    case PLANC_CMD_EXEC:
      return planc_schedule_exec(all, p->first_instance + command->instance, command->variant,
                                 p->workspaces ? p->workspaces[c] : PLANC_BLANK, command->recompute);
    case PLANC_CMD_ACQUIRE:
      return state_acquire(m, p, command);
    case PLANC_CMD_RELEASE:
      return planc_schedule_release(all, p->residencies[command->residency]);
    case PLANC_CMD_COPY:
      return state_copy(m, p, command);
    default:
      assert(command->kind == PLANC_CMD_AWAIT);
      return planc_schedule_await(all, planc_schedule_route(p->of->schedule, command->stream),
                                  p->residencies[command->residency]);
  }
}

static planc_status state_acquire(const merging *m, part *p, const planc_command *command) {
  const planc_residency *it = &planc_schedule_residencies(p->of->schedule)[command->residency];
  return planc_schedule_acquire(m->out->schedule, p->buffers[it->buffer], it->memory, address_of(p, command->residency),
                                &p->residencies[command->residency]);
}

/* What an exec sends it has stated itself. */
static planc_status state_copy(const merging *m, const part *p, const planc_command *command) {
  const planc_schedule *own = p->of->schedule;
  planc_schedule *all = m->out->schedule;
  if (command->sends) return NULL;
  if (command->residency == PLANC_USER) return planc_schedule_deliver(all, p->residencies[command->source]);
  int32_t version = p->versions[planc_schedule_buffer(own, command)] + command->version;
  if (planc_schedule_is_away(own, command->residency))
    return planc_schedule_offload(all, source_of(m, p, command, version),
                                  planc_schedule_residencies(own)[command->residency].memory);
  int32_t to = p->residencies[command->residency];
  if (planc_schedule_kind_of(own, command->source) == PLANC_MEMORY_DEVICE)
    return planc_schedule_move(all, to, p->residencies[command->source]);
  return planc_schedule_prefetch(all, to, version);
}

/* The residency of a copy's source in the mix: what is away was opened by a copy of its own. */
static int32_t source_of(const merging *m, const part *p, const planc_command *command, int32_t version) {
  const planc_residency *it = &planc_schedule_residencies(p->of->schedule)[command->source];
  if (!planc_schedule_is_away(p->of->schedule, command->source)) return p->residencies[command->source];
  return planc_schedule_away(m->out->schedule, p->buffers[it->buffer], it->memory, version);
}
