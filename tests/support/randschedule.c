#include "randschedule.h"

#include <stdlib.h>

#include "randgraph.h"
#include "util/vec.h"

enum { DEPTH = 3 /* of recomputes */ };

/* --- The case ----------------------------------------------------------------------------------------------------- */

static planc_status make_costs(uint64_t *seed, const planc_profile *profile, const planc_graph *graph, randcase *c) {
  static const char *const names[] = {"default", "gemm", "winograd"};
  const planc_job *job = &c->candidate.trace->jobs[0];
  planc_costs *costs = c->costs = calloc(1, sizeof *costs);
  c->candidate.costs = calloc(1, sizeof *c->candidate.costs);
  c->batches = malloc(((size_t)job->n_rounds + 1) * sizeof *c->batches);
  c->first = malloc(((size_t)graph->n_ops * ((size_t)job->n_rounds + 1) + 1) * sizeof *c->first);
  c->variants = malloc(((size_t)graph->n_ops * ((size_t)job->n_rounds + 1) * 3 + 1) * sizeof *c->variants);
  if (!costs || !c->candidate.costs || !c->batches || !c->first || !c->variants)
    return planc_error(PLANC_OUT_OF_MEMORY, "costs");
  c->candidate.costs[0] = costs;
  *costs = (planc_costs){
      .profile = profile, .graph = graph, .batches = c->batches, .first = c->first, .variants = c->variants};
  costs->device = *planc_profile_device(profile);
  /* Rounds differ by one sample at most: few distinct batches, the whole batch last. */
  for (int64_t batch = 1; batch <= job->batch; batch++) {
    bool used = batch == job->batch;
    for (int32_t r = 0; r < job->n_rounds; r++) used |= job->rounds[r] == batch;
    if (used) c->batches[costs->n_batches++] = batch;
  }
  int32_t n = 0;
  for (int32_t k = 0; k < graph->n_ops * costs->n_batches; k++) {
    c->first[k] = n;
    int32_t count = 1 + (int32_t)rand_below(seed, 3);
    for (int32_t v = 0; v < count; v++) {
      c->variants[n++] = (planc_variant){.algorithm = names[v],
                                         .time_ns = 1 + rand_below(seed, 100000),
                                         .workspace_bytes = rand_chance(seed, 50) ? 0 : rand_below(seed, 3000),
                                         .busy_ppm = 1000000,
                                         .deterministic = true};
    }
  }
  c->first[graph->n_ops * costs->n_batches] = n;
  return NULL;
}

static planc_status fill_case(uint64_t seed, const planc_graph *graph, const planc_profile *profile, int32_t n_rounds,
                              randcase *out) {
  enum { MAX_ROUNDS = 8 };
  int64_t rounds[MAX_ROUNDS], batch = 0;
  if (n_rounds > MAX_ROUNDS) return planc_error(PLANC_USAGE, "at most %d rounds", MAX_ROUNDS);
  for (int32_t r = 0; r < n_rounds; r++) batch += rounds[r] = n_rounds > 1 && r == n_rounds - 1 ? 1 : 2;
  planc_job job = {.graph = graph, .batch = batch, .n_rounds = n_rounds, .rounds = rounds, .iterations = 1};
  PLANC_TRY(planc_expand(&job, 1, &out->candidate.trace));
  out->problem = (planc_problem){.job.graph = graph,
                                 .job.profile = profile,
                                 .job.batch = batch,
                                 .terms.budgets[PLANC_MEMORY_DEVICE] = INT64_C(1) << 40,
                                 .terms.budgets[PLANC_MEMORY_HOST] = -1};
  out->candidate.sub_batch = rounds[0];
  return make_costs(&seed, profile, graph, out);
}

planc_status randcase_make(uint64_t seed, const planc_graph *graph, const planc_profile *profile, int32_t n_rounds,
                           randcase *out) {
  *out = (randcase){0};
  planc_status status = fill_case(seed, graph, profile, n_rounds, out);
  if (status) randcase_free(out);
  return status;
}

void randcase_free(randcase *c) {
  planc_schedule_free(c->candidate.schedule);
  planc_trace_free(c->candidate.trace);
  free(c->candidate.costs);
  free(c->costs);
  free(c->variants);
  free(c->first);
  free(c->batches);
  *c = (randcase){0};
}

/* --- The schedule ------------------------------------------------------------------------------------------------- */

typedef struct maker {
  uint64_t seed;
  const randschedule_options *options;
  const planc_trace *trace;
  planc_schedule *s;
  int32_t *current;  /* version by buffer */
  bool *delivered;   /* by buffer */
  bool *parked;      /* by buffer: on the host between periods */
  VEC(int32_t) open; /* residencies */
} maker;

static int64_t address_of(const maker *m, int32_t residency) {
  return m->options && m->options->addresses ? m->options->addresses[residency] : PLANC_BLANK;
}

static planc_status acquire(maker *m, int32_t buffer, int32_t *out) {
  PLANC_TRY(planc_schedule_acquire(m->s, buffer, planc_schedule_device(m->s),
                                   address_of(m, planc_schedule_n_residencies(m->s)), out));
  VEC_PUSH(&m->open, *out);
  return NULL;
}

/* Releases the residency at `index` of m->open. */
static planc_status release(maker *m, int64_t index) {
  int32_t residency = m->open.data[index];
  m->open.data[index] = m->open.data[--m->open.len];
  return planc_schedule_release(m->s, residency);
}

static planc_status maybe_await(maker *m, int32_t residency) {
  bool wanted = rand_chance(&m->seed, 20);
  static const planc_route routes[] = {PLANC_STREAM_COMPUTE, PLANC_ROUTE_H2D, PLANC_ROUTE_D2H};
  planc_route route = routes[rand_below(&m->seed, PLANC_N_STREAMS)];
  if (!wanted || (m->options && m->options->no_awaits)) return NULL;
  return planc_schedule_await(m->s, route, residency);
}

/* --- Storage ------------------------------------------------------------------------------------------------------ */

/* Where the schedule may copy to storage, -1 = nowhere. */
static int32_t storage_of(const maker *m) {
  return m->options && m->options->stores ? planc_schedule_first_of(m->s, PLANC_MEMORY_STORAGE) : -1;
}

static bool is_stored(const maker *m, int32_t buffer, int32_t version) {
  return storage_of(m) >= 0 && planc_schedule_away(m->s, buffer, storage_of(m), version) >= 0;
}

/* Copies a version from one memory away from the device to another, in one of the two ways that there are. */
static planc_status pass_on(maker *m, int32_t buffer, int32_t version, int32_t from, int32_t to) {
  int32_t source = planc_schedule_away(m->s, buffer, from, version), residency;
  if (rand_chance(&m->seed, 50)) return planc_schedule_offload(m->s, source, to);
  PLANC_TRY(planc_schedule_acquire(m->s, buffer, to, PLANC_BLANK, &residency));
  return planc_schedule_move(m->s, residency, source);
}

static planc_status maybe_store(maker *m, int32_t buffer, int32_t version) {
  if (storage_of(m) < 0 || !rand_chance(&m->seed, 50)) return NULL;
  return pass_on(m, buffer, version, planc_schedule_host(m->s), storage_of(m));
}

/* What is only in storage has to come to the host; else it may. */
static planc_status load(maker *m, int32_t buffer, int32_t version) {
  if (!is_stored(m, buffer, version)) return NULL;
  if (planc_schedule_on_host(m->s, buffer, version) && rand_chance(&m->seed, 50)) return NULL;
  return pass_on(m, buffer, version, storage_of(m), planc_schedule_host(m->s));
}

static bool is_away(const maker *m, int32_t buffer, int32_t version) {
  return planc_schedule_on_host(m->s, buffer, version) || is_stored(m, buffer, version);
}

/* --- The device --------------------------------------------------------------------------------------------------- */

/* The access that makes `version` (at least 1) of `buffer`. */
static const planc_access *producer_of(const maker *m, int32_t buffer, int32_t version) {
  const planc_buffer *b = &m->trace->buffers[buffer];
  for (int32_t k = 0; k < b->n_accesses; k++) {
    const planc_access *access = &m->trace->accesses[m->trace->by_buffer[b->first_access + k]];
    if (access->write == version) return access;
  }
  return NULL;
}

/* True when a version that exists can always be had again: it is away, or can be recomputed from such versions.
 */
static bool recoverable(const maker *m, int32_t buffer, int32_t version, int32_t depth) {
  if (is_away(m, buffer, version)) return true;
  if (depth == 0 || version == 0) return false;
  const planc_access *made = producer_of(m, buffer, version);
  int32_t instance = made->instance;
  if (made->effect || !planc_trace_recomputable(m->trace, instance)) return false;
  const planc_instance *it = &m->trace->instances[instance];
  for (int32_t k = 0; k < it->n_accesses; k++) {
    const planc_access *access = &m->trace->accesses[it->first_access + k];
    if (access->effect || access->read < 0) continue;
    if (!recoverable(m, access->buffer, access->read, depth - 1)) return false;
  }
  return true;
}

static int32_t random_variant(maker *m, int32_t instance) {
  const planc_instance *it = &m->trace->instances[instance];
  if (it->role == PLANC_ROLE_ACCUMULATE) return 0;
  const planc_costs *costs = planc_schedule_costs(m->s, it->job);
  int32_t count;
  (void)planc_costs_variants(costs, it->op, planc_costs_batch(costs, it->batch), &count);
  return (int32_t)rand_below(&m->seed, count);
}

/* Makes `version` of `buffer` resident. */
static planc_status ensure(maker *m, int32_t buffer, int32_t version) {
  int32_t residency;
  if (planc_schedule_resident(m->s, buffer, version) >= 0) return NULL;
  if (is_away(m, buffer, version)) {
    PLANC_TRY(load(m, buffer, version));
    PLANC_TRY(acquire(m, buffer, &residency));
    PLANC_TRY(planc_schedule_prefetch(m->s, residency, version));
    return maybe_await(m, residency);
  }
  const planc_access *made = producer_of(m, buffer, version);
  if (!made) return planc_error(PLANC_INTERNAL, "version %d of buffer %d is lost", version, buffer);
  const planc_instance *it = &m->trace->instances[made->instance];
  const planc_access *accesses = &m->trace->accesses[it->first_access];
  for (int32_t k = 0; k < it->n_accesses; k++) {
    if (!accesses[k].effect && accesses[k].read >= 0) PLANC_TRY(ensure(m, accesses[k].buffer, accesses[k].read));
  }
  for (int32_t k = 0; k < it->n_accesses; k++) {
    if (accesses[k].effect || accesses[k].write < 0) continue;
    int32_t source = accesses[k].read < 0 ? -1 : planc_schedule_resident(m->s, accesses[k].buffer, accesses[k].read);
    PLANC_TRY(acquire(m, accesses[k].buffer, &residency));
    /* What is overwritten in place may still be needed: a copy of it is. */
    if (source >= 0) PLANC_TRY(planc_schedule_move(m->s, residency, source));
  }
  return planc_schedule_exec(m->s, made->instance, planc_schedule_ran(m->s, made->instance), PLANC_BLANK, true);
}

static bool is_dead(const maker *m, int32_t buffer, int32_t instance) {
  const planc_buffer *b = &m->trace->buffers[buffer];
  if (b->flags & PLANC_BUFFER_PERSISTENT) return false;
  if ((b->flags & PLANC_BUFFER_RESULT) && !m->delivered[buffer]) return false;
  return b->n_accesses == 0 ||
         m->trace->accesses[m->trace->by_buffer[b->first_access + b->n_accesses - 1]].instance <= instance;
}

static planc_status deliver(maker *m, int32_t buffer) {
  int32_t last = m->trace->buffers[buffer].last_version;
  PLANC_TRY(ensure(m, buffer, last));
  m->delivered[buffer] = true;
  int32_t residency = planc_schedule_resident(m->s, buffer, last);
  PLANC_TRY(planc_schedule_deliver(m->s, residency));
  return maybe_await(m, residency);
}

/* Offloads, delivers or releases an open residency, each at random and where nothing is lost by it. */
static planc_status disturb(maker *m, int64_t index, int32_t instance) {
  int32_t residency = m->open.data[index];
  int32_t buffer = planc_schedule_residencies(m->s)[residency].buffer;
  int32_t content = planc_schedule_content(m->s, residency);
  const planc_buffer *b = &m->trace->buffers[buffer];
  if ((b->flags & PLANC_BUFFER_RESULT) && !m->delivered[buffer] && content == b->last_version &&
      rand_chance(&m->seed, 50)) {
    PLANC_TRY(deliver(m, buffer));
  }
  /* Parked the last version takes the place of what a recompute may still need. */
  bool replaces = m->parked[buffer] && content == b->last_version && content > 0;
  if (content >= 0 && rand_chance(&m->seed, 30) && !replaces) {
    PLANC_TRY(planc_schedule_offload(m->s, residency, planc_schedule_host(m->s)));
    PLANC_TRY(maybe_await(m, residency));
    PLANC_TRY(maybe_store(m, buffer, content));
  }
  bool needed = content == m->current[buffer] && !is_dead(m, buffer, instance);
  if (needed && !recoverable(m, buffer, content, DEPTH)) return NULL;
  return rand_chance(&m->seed, 60) ? release(m, index) : NULL;
}

static planc_status run_instance(maker *m, int32_t instance) {
  const planc_instance *it = &m->trace->instances[instance];
  const planc_access *accesses = &m->trace->accesses[it->first_access];
  for (int32_t k = 0; k < it->n_accesses; k++) {
    int32_t residency;
    if (accesses[k].read >= 0) {
      PLANC_TRY(ensure(m, accesses[k].buffer, accesses[k].read));
    } else if (planc_schedule_open(m->s, accesses[k].buffer) < 0 || rand_chance(&m->seed, 10)) {
      PLANC_TRY(acquire(m, accesses[k].buffer, &residency));
    }
  }
  PLANC_TRY(planc_schedule_exec(m->s, instance, random_variant(m, instance), PLANC_BLANK, false));
  for (int32_t k = 0; k < it->n_accesses; k++) {
    if (accesses[k].write >= 0) m->current[accesses[k].buffer] = accesses[k].write;
  }
  for (int64_t k = m->open.len - 1; k >= 0; k--) {
    if (rand_chance(&m->seed, 15)) PLANC_TRY(disturb(m, k, instance));
  }
  return NULL;
}

static planc_status park_again(maker *m, int32_t buffer) {
  int32_t last = m->trace->buffers[buffer].last_version, host = planc_schedule_host(m->s);
  int32_t home = planc_schedule_residencies(m->s)[planc_schedule_away_at_end(m->s, buffer)].memory;
  if (last == 0) return NULL;
  PLANC_TRY(planc_schedule_offload(m->s, planc_schedule_resident(m->s, buffer, last), host));
  return home == host ? NULL : pass_on(m, buffer, last, host, home);
}

/* Delivers what is left, brings the boundary back and closes everything else. */
static planc_status tidy(maker *m) {
  const planc_trace *trace = m->trace;
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    if ((trace->buffers[b].flags & PLANC_BUFFER_RESULT) && !m->delivered[b]) PLANC_TRY(deliver(m, b));
    if (trace->buffers[b].flags & PLANC_BUFFER_PERSISTENT) PLANC_TRY(ensure(m, b, trace->buffers[b].last_version));
  }
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    if (m->parked[b]) PLANC_TRY(park_again(m, b));
  }
  for (int64_t k = m->open.len - 1; k >= 0; k--) {
    int32_t buffer = planc_schedule_residencies(m->s)[m->open.data[k]].buffer;
    const planc_buffer *b = &trace->buffers[buffer];
    bool kept = (b->flags & PLANC_BUFFER_PERSISTENT) && !m->parked[buffer] &&
                planc_schedule_resident(m->s, buffer, b->last_version) == m->open.data[k];
    if (!kept) PLANC_TRY(release(m, k));
  }
  return planc_schedule_finish(m->s);
}

/* A third of what persists is parked on the host, or half of that in storage. */
static planc_status choose_homes(maker *m) {
  for (int32_t b = 0; b < m->trace->n_buffers; b++) {
    const planc_buffer *buffer = &m->trace->buffers[b];
    bool may = (buffer->flags & PLANC_BUFFER_PERSISTENT) && buffer->n_accesses > 0;
    m->parked[b] = may && rand_chance(&m->seed, 33);
    int32_t residency;
    if (!m->parked[b]) continue;
    bool stored = storage_of(m) >= 0 && rand_chance(&m->seed, 50);
    int32_t memory = stored ? storage_of(m) : planc_schedule_host(m->s);
    PLANC_TRY(planc_schedule_boundary(m->s, b, memory, PLANC_BLANK, &residency));
  }
  return NULL;
}

/* Rounds run one after the other, or on any number of compute streams. */
static planc_status choose_streams(maker *m) {
  int32_t n_rounds = m->trace->jobs[0].n_rounds;
  return planc_schedule_side_by_side(m->s, 0, 1 + (int32_t)rand_below(&m->seed, n_rounds));
}

static planc_status make_schedule(maker *m) {
  PLANC_TRY(choose_streams(m));
  PLANC_TRY(choose_homes(m));
  for (int32_t b = 0; b < m->trace->n_buffers; b++) {
    if (!(m->trace->buffers[b].flags & PLANC_BUFFER_PERSISTENT) || m->parked[b]) continue;
    int32_t residency;
    PLANC_TRY(planc_schedule_boundary(m->s, b, planc_schedule_device(m->s),
                                      address_of(m, planc_schedule_n_residencies(m->s)), &residency));
    VEC_PUSH(&m->open, residency);
  }
  for (int64_t k = m->open.len - 1; k >= 0; k--) {
    if (rand_chance(&m->seed, 30)) PLANC_TRY(disturb(m, k, -1));
  }
  for (int32_t i = 0; i < m->trace->n_instances; i++) PLANC_TRY(run_instance(m, i));
  return tidy(m);
}

planc_status randschedule_make(uint64_t seed, const randschedule_options *options, randcase *c) {
  maker m = {.seed = seed, .options = options, .trace = c->candidate.trace};
  PLANC_TRY(planc_candidate_schedule(&c->problem, &c->candidate));
  m.s = c->candidate.schedule;
  m.current = calloc((size_t)m.trace->n_buffers + 1, sizeof *m.current);
  m.delivered = calloc((size_t)m.trace->n_buffers + 1, sizeof *m.delivered);
  m.parked = calloc((size_t)m.trace->n_buffers + 1, sizeof *m.parked);
  planc_status status =
      m.current && m.delivered && m.parked ? make_schedule(&m) : planc_error(PLANC_OUT_OF_MEMORY, "schedule");
  free(m.current);
  free(m.delivered);
  free(m.parked);
  VEC_FREE(&m.open);
  return status;
}
