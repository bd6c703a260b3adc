/* Data parallelism: the schedule of one replica becomes that of all of them.
 *
 * Replicas do the same, each on its GPU, so their commands take turns: command c of the first, of the second and so on,
 * then command c + 1. What one gets of another, that one has then sent before. Papers: moDNN, IV ("partitioning a batch
 * into equal-sized parts") and V-C; TENSILE, IV-F ("the scheduling processes are the same with a single GPU"). */
#include "planner/lower/replicas.h"

#include <stdlib.h>

#include "util/arena.h"

typedef struct replication {
  const planc_schedule *one;
  const planc_trace *from, *to; /* of the one replica, and of all */
  planc_schedule *all;
  int32_t n;
  planc_arena arena;
  int32_t *buffer_of, *instance_of; /* of replica r the k-th: [r * how many one has + k] */
  int32_t *residency_of;            /* as buffer_of */
} replication;

static planc_status expand_all(const planc_trace *one, int32_t n, planc_trace **out) {
  planc_job *jobs = malloc((size_t)n * sizeof *jobs);
  if (!jobs) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  for (int32_t r = 0; r < n; r++) {
    jobs[r] = one->jobs[0];
    jobs[r].replica = r;
  }
  planc_status status = planc_expand(jobs, n, out);
  free(jobs);
  return status;
}

/* Replicas have the same instances and buffers in the same order. */
static planc_status make_maps(replication *m) {
  int32_t *n_buffers, *n_instances;
  PLANC_TRY(PLANC_NEW(&m->arena, &n_buffers, m->n));
  PLANC_TRY(PLANC_NEW(&m->arena, &n_instances, m->n));
  PLANC_TRY(PLANC_NEW(&m->arena, &m->buffer_of, m->to->n_buffers));
  PLANC_TRY(PLANC_NEW(&m->arena, &m->instance_of, m->to->n_instances));
  PLANC_TRY(PLANC_NEW(&m->arena, &m->residency_of, (int64_t)planc_schedule_n_residencies(m->one) * m->n));
  for (int32_t b = 0; b < m->to->n_buffers; b++) {
    int32_t r = m->to->buffers[b].job;
    m->buffer_of[r * m->from->n_buffers + n_buffers[r]++] = b;
  }
  for (int32_t i = 0; i < m->to->n_instances; i++) {
    int32_t r = m->to->instances[i].job;
    m->instance_of[r * m->from->n_instances + n_instances[r]++] = i;
  }
  return NULL;
}

static int32_t *residency_at(const replication *m, int32_t r, int32_t residency) {
  return &m->residency_of[(int64_t)r * planc_schedule_n_residencies(m->one) + residency];
}

static int32_t buffer_at(const replication *m, int32_t r, int32_t residency) {
  return m->buffer_of[r * m->from->n_buffers + planc_schedule_residencies(m->one)[residency].buffer];
}

/* States a command of the one replica for replica r. What is sent is sent without being stated. */
static planc_status restate(replication *m, const planc_command *command, int32_t r) {
  int32_t instance = r * m->from->n_instances + command->instance;
  int32_t *residency = residency_at(m, r, command->residency);
  switch (command->kind) {
    case PLANC_CMD_EXEC:
      return planc_schedule_exec(m->all, m->instance_of[instance], command->variant, command->address,
                                 command->recompute);
    case PLANC_CMD_ACQUIRE:
      return planc_schedule_acquire(m->all, buffer_at(m, r, command->residency), command->address, residency);
    case PLANC_CMD_RELEASE:
      return planc_schedule_release(m->all, *residency);
    case PLANC_CMD_OFFLOAD:
      if (command->sends) return NULL;
      return command->user ? planc_schedule_deliver(m->all, *residency) : planc_schedule_offload(m->all, *residency);
    case PLANC_CMD_PREFETCH:
      return planc_schedule_prefetch(m->all, *residency, command->version);
    case PLANC_CMD_AWAIT:
      return planc_schedule_await(m->all, command->stream % PLANC_N_STREAMS, *residency);
    case PLANC_CMD_MOVE:
      return planc_schedule_move(m->all, *residency, *residency_at(m, r, command->source));
  }
  return planc_error(PLANC_INTERNAL, "a command of unknown kind %d", (int)command->kind);
}

static planc_status state_all(replication *m) {
  const planc_residency *residencies = planc_schedule_residencies(m->one);
  const planc_command *commands = planc_schedule_commands(m->one);
  PLANC_TRY(make_maps(m));
  PLANC_TRY(planc_schedule_map(m->all, planc_schedule_memory(m->one)));
  for (int32_t b = 0; b < planc_schedule_n_boundary(m->one); b++) {
    bool parked = b < planc_schedule_n_parked(m->one);
    for (int32_t r = 0; r < m->n; r++) {
      int32_t buffer = buffer_at(m, r, b), *out = residency_at(m, r, b);
      PLANC_TRY(parked ? planc_schedule_park(m->all, buffer, out)
                       : planc_schedule_boundary(m->all, buffer, residencies[b].address, out));
    }
  }
  for (int32_t c = 0; c < planc_schedule_n_commands(m->one); c++) {
    for (int32_t r = 0; r < m->n; r++) PLANC_TRY(restate(m, &commands[c], r));
  }
  return NULL;
}

planc_status planc_replicate(planc_candidate *candidate) {
  int32_t n = candidate->trace->jobs[0].replicas;
  if (n < 2) return NULL;
  planc_candidate all = {.sub_batch = candidate->sub_batch};
  replication m = {.one = candidate->schedule, .from = candidate->trace, .n = n};
  planc_status status = expand_all(candidate->trace, n, &all.trace);
  if (!status) status = planc_schedule_new(all.trace, candidate->costs, &all.schedule);
  m.to = all.trace;
  m.all = all.schedule;
  if (!status) status = state_all(&m);
  planc_arena_free(&m.arena);
  if (status) {
    planc_candidate_free(&all);
    return planc_context(status, "replicas");
  }
  all.costs = candidate->costs;
  candidate->costs = NULL;
  planc_candidate_free(candidate);
  *candidate = all;
  return NULL;
}
