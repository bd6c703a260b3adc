/* Expands jobs into a trace (trace.h).
 *
 * What the jobs of a graph, and the rounds of a job, have in common is worked out once (jobplan.h). Then the rounds are
 * played one after the other, and the version of every buffer is counted along. The sizes of all arrays are known
 * before the play, so everything is linear in the graphs and the trace's length. */
#include <assert.h>
#include <stdlib.h>

#include "graph/jobplan.h"
#include "planc/trace.h"
#include "util/arena.h"
#include "util/math.h"

/* A trace with the memory it owns. */
typedef struct trace_memory {
  planc_trace trace;
  pl_arena arena;
} trace_memory;

typedef struct expansion {
  pl_arena scratch;
  trace_memory *memory;
  pl_touches *graphs; /* of the distinct graphs */
  int32_t n_graphs;
  pl_job_plan *plans;                 /* of the jobs */
  int32_t *newest, *newest_temporary; /* by slot of the job that is played: the buffer made last, -1 if none yet */
  planc_instance *instances;
  planc_access *accesses;
  planc_buffer *buffers;
  pl_trace_size size;                         /* of these arrays */
  int32_t n_instances, n_accesses, n_buffers; /* made so far */
} expansion;

/* The place in the trace where an op is being run. */
typedef struct place {
  int32_t job, iteration, round; /* round is -1 in the optimizer phase */
  int64_t batch, sample_offset;
} place;

static planc_status expand(expansion *e, const planc_job *jobs, int32_t n_jobs);
static planc_status copy_job(pl_arena *arena, const planc_job *job, planc_job *out);
static planc_status plan_job(expansion *e, const planc_job *job, pl_job_plan *out);
static planc_status allocate(expansion *e);
static planc_status index_buffers(expansion *e);
static planc_status play(expansion *e, int32_t job);

planc_status planc_expand(const planc_job *jobs, int32_t n_jobs, planc_trace **out) {
  expansion e = {0};
  *out = NULL;
  e.memory = calloc(1, sizeof *e.memory);
  if (!e.memory) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  planc_status status = expand(&e, jobs, n_jobs);
  pl_arena_free(&e.scratch);
  if (status) {
    planc_trace_free(&e.memory->trace);
    return status;
  }
  *out = &e.memory->trace;
  return NULL;
}

void planc_trace_free(planc_trace *trace) {
  if (!trace) return;
  trace_memory *memory = (trace_memory *)trace;
  pl_arena_free(&memory->arena);
  free(memory);
}

planc_status planc_check_rounds(const planc_graph *graph) {
  static const int64_t rounds[] = {1, 1};
  planc_job job = {.graph = graph, .batch = 2, .n_rounds = 2, .rounds = rounds, .iterations = 1};
  pl_arena scratch = {0};
  pl_touches touches;
  pl_job_plan plan = {0};
  planc_status status = pl_touches_make(&scratch, graph, &touches);
  if (!status) status = pl_job_plan_make(&scratch, &job, &touches, &plan);
  pl_arena_free(&scratch);
  return status;
}

static planc_status check_replicas(const planc_job *jobs, int32_t j) {
  int64_t samples;
  if (planc_job_replicas(&jobs[j]) != planc_job_replicas(&jobs[0]))
    return planc_error(PLANC_BAD_INPUT, "%d replicas train it, and %d job 0", planc_job_replicas(&jobs[j]),
                       planc_job_replicas(&jobs[0]));
  if (pl_mul_overflow(jobs[j].batch, planc_job_replicas(&jobs[j]), &samples))
    return planc_error(PLANC_BAD_INPUT, "%d replicas have more than 2^63 samples", jobs[j].replicas);
  return NULL;
}

static planc_status expand(expansion *e, const planc_job *jobs, int32_t n_jobs) {
  if (n_jobs < 1) return planc_error(PLANC_BAD_INPUT, "there is no job");
  planc_job *copies;
  PLANC_TRY(PL_NEW(&e->memory->arena, &copies, n_jobs));
  e->memory->trace.jobs = copies;
  e->memory->trace.n_jobs = n_jobs;
  PLANC_TRY(PL_NEW(&e->scratch, &e->graphs, n_jobs));
  PLANC_TRY(PL_NEW(&e->scratch, &e->plans, n_jobs));
  for (int32_t j = 0; j < n_jobs; j++) {
    planc_status status = check_replicas(jobs, j);
    if (!status) status = copy_job(&e->memory->arena, &jobs[j], &copies[j]);
    if (!status) status = plan_job(e, &copies[j], &e->plans[j]);
    if (status) return n_jobs > 1 ? planc_context(status, "job %d", j) : status;
  }
  PLANC_TRY(allocate(e));
  for (int32_t j = 0; j < n_jobs; j++) {
    planc_status status = play(e, j);
    if (status) return n_jobs > 1 ? planc_context(status, "job %d", j) : status;
  }
  return index_buffers(e);
}

/* Copies a job after checking its numbers. */
static planc_status copy_job(pl_arena *arena, const planc_job *job, planc_job *out) {
  if (job->iterations < 1) return planc_error(PLANC_BAD_INPUT, "a period has %d iterations", job->iterations);
  if (job->n_rounds < 1) return planc_error(PLANC_BAD_INPUT, "an iteration has %d rounds", job->n_rounds);
  int64_t samples = 0;
  for (int32_t r = 0; r < job->n_rounds; r++) {
    if (job->rounds[r] < 1)
      return planc_error(PLANC_BAD_INPUT, "round %d has %lld samples", r, (long long)job->rounds[r]);
    samples = pl_add_saturate(samples, job->rounds[r]);
  }
  if (samples != job->batch)
    return planc_error(PLANC_BAD_INPUT, "the rounds have %lld samples, the batch %lld", (long long)samples,
                       (long long)job->batch);
  *out = *job;
  int64_t *rounds;
  PLANC_TRY(PL_NEW(arena, &rounds, job->n_rounds));
  for (int32_t r = 0; r < job->n_rounds; r++) rounds[r] = job->rounds[r];
  out->rounds = rounds;
  if (job->order) {
    int32_t *order;
    PLANC_TRY(PL_NEW(arena, &order, job->graph->n_ops));
    for (int32_t o = 0; o < job->graph->n_ops; o++) order[o] = job->order[o];
    out->order = order;
  }
  return NULL;
}

static planc_status plan_job(expansion *e, const planc_job *job, pl_job_plan *out) {
  int32_t g = 0;
  while (g < e->n_graphs && e->graphs[g].graph != job->graph) g++;
  if (g == e->n_graphs) {
    PLANC_TRY(pl_touches_make(&e->scratch, job->graph, &e->graphs[g]));
    e->n_graphs++;
  }
  return pl_job_plan_make(&e->scratch, job, &e->graphs[g], out);
}

/* --- The trace ---------------------------------------------------------------------------------------------------- */

static planc_status allocate(expansion *e) {
  pl_trace_size size = {0};
  for (int32_t j = 0; j < e->memory->trace.n_jobs; j++) pl_job_plan_count(&e->plans[j], &size);
  e->size = size;
  if (size.instances > INT32_MAX || size.accesses > INT32_MAX || size.buffers > INT32_MAX)
    return planc_error(PLANC_BAD_INPUT, "with these rounds and iterations a trace has more than %d accesses or ops",
                       INT32_MAX);
  pl_arena *arena = &e->memory->arena;
  PLANC_TRY(PL_NEW(arena, &e->instances, size.instances));
  PLANC_TRY(PL_NEW(arena, &e->accesses, size.accesses));
  return PL_NEW(arena, &e->buffers, size.buffers);
}

/* Groups the accesses by buffer and hands everything to the trace. */
static planc_status index_buffers(expansion *e) {
  int32_t *by_buffer;
  assert(e->n_instances == e->size.instances && e->n_accesses == e->size.accesses && e->n_buffers == e->size.buffers);
  PLANC_TRY(PL_NEW(&e->memory->arena, &by_buffer, e->n_accesses));
  for (int32_t a = 0; a < e->n_accesses; a++) e->buffers[e->accesses[a].buffer].n_accesses++;
  int32_t first = 0;
  for (int32_t b = 0; b < e->n_buffers; b++) {
    e->buffers[b].first_access = first;
    first += e->buffers[b].n_accesses;
    e->buffers[b].n_accesses = 0;
  }
  for (int32_t a = 0; a < e->n_accesses; a++) {
    planc_buffer *buffer = &e->buffers[e->accesses[a].buffer];
    by_buffer[buffer->first_access + buffer->n_accesses++] = a;
  }
  planc_trace *trace = &e->memory->trace;
  trace->n_instances = e->n_instances;
  trace->n_accesses = e->n_accesses;
  trace->n_buffers = e->n_buffers;
  trace->instances = e->instances;
  trace->accesses = e->accesses;
  trace->by_buffer = by_buffer;
  trace->buffers = e->buffers;
  return NULL;
}

/* --- Playing the rounds ------------------------------------------------------------------------------------------- */

static planc_status start_job(expansion *e, int32_t job);
static planc_status play_rounds(expansion *e, int32_t job, int32_t iteration);
static planc_status play_optimizer(expansion *e, const place *at);
static planc_status run_op(expansion *e, int32_t o, const place *at);
static planc_status add_gradients(expansion *e, int32_t o, int32_t position, const place *at);
static planc_status exchange_gradients(expansion *e, const place *at);

static planc_status play(expansion *e, int32_t job) {
  PLANC_TRY(start_job(e, job));
  for (int32_t iteration = 0; iteration < e->plans[job].job->iterations; iteration++) {
    place behind_rounds = {.job = job, .iteration = iteration, .round = -1, .batch = e->plans[job].job->batch};
    PLANC_TRY(play_rounds(e, job, iteration));
    if (e->plans[job].job->replicas > 1) PLANC_TRY(exchange_gradients(e, &behind_rounds));
    PLANC_TRY(play_optimizer(e, &behind_rounds));
  }
  return NULL;
}

static planc_status start_job(expansion *e, int32_t job) {
  int32_t n_slots = e->plans[job].of->n_slots;
  PLANC_TRY(PL_NEW(&e->scratch, &e->newest, n_slots));
  PLANC_TRY(PL_NEW(&e->scratch, &e->newest_temporary, n_slots));
  for (int32_t s = 0; s < n_slots; s++) e->newest[s] = e->newest_temporary[s] = -1;
  return NULL;
}

static planc_status play_rounds(expansion *e, int32_t job, int32_t iteration) {
  const pl_job_plan *plan = &e->plans[job];
  place at = {.job = job, .iteration = iteration};
  for (; at.round < plan->job->n_rounds; at.round++) {
    at.batch = plan->job->rounds[at.round];
    for (int32_t position = 0; position < plan->of->n_round_ops; position++) {
      PLANC_TRY(run_op(e, plan->order[position], &at));
      if (at.round > 0) PLANC_TRY(add_gradients(e, plan->order[position], position, &at));
    }
    at.sample_offset += at.batch;
  }
  return NULL;
}

static planc_status play_optimizer(expansion *e, const place *at) {
  const pl_job_plan *plan = &e->plans[at->job];
  for (int32_t position = plan->of->n_round_ops; position < plan->job->graph->n_ops; position++)
    PLANC_TRY(run_op(e, plan->order[position], at));
  return NULL;
}

/* Gives out the buffer that the storage of `slot` means at a place, and makes it at its first access. The gradient
 * itself is asked for with `redirect` false. */
static planc_status buffer_at(expansion *e, int32_t slot, const place *at, bool redirect, int32_t *out) {
  const pl_job_plan *plan = &e->plans[at->job];
  const pl_storage_use *use = &plan->uses[slot];
  redirect = redirect && use->redirected && at->round > 0;
  int32_t iteration = use->scope == PL_SCOPE_PERIOD ? -1 : at->iteration;
  int32_t round = -1;
  if (redirect || use->scope == PL_SCOPE_ROUND) round = at->round < 0 ? 0 : at->round;
  int32_t *newest = redirect ? &e->newest_temporary[slot] : &e->newest[slot];
  *out = *newest;
  if (*newest >= 0 && e->buffers[*newest].iteration == iteration && e->buffers[*newest].round == round) return NULL;

  const planc_storage *of = pl_slot_storage(plan, slot);
  int64_t batch = round < 0 ? plan->job->batch : plan->job->rounds[round];
  planc_buffer buffer = {.job = at->job,
                         .storage = plan->of->storages[slot],
                         .iteration = iteration,
                         .round = round,
                         .kind = redirect ? PLANC_KIND_temp : of->kind,
                         .bytes = planc_law_at(of->bytes, batch),
                         .sent = -1,
                         .peer = -1};
  if (buffer.bytes < 0)
    return planc_error(PLANC_BAD_INPUT, "the size of %s at batch %lld overflows",
                       plan->job->graph->tensors[of->tensor].name, (long long)batch);
  if (use->scope == PL_SCOPE_PERIOD) buffer.flags |= PLANC_BUFFER_PERSISTENT;
  if (of->kind == PLANC_KIND_input) buffer.flags |= PLANC_BUFFER_FED;
  if (plan->of->results[slot] && !redirect) buffer.flags |= PLANC_BUFFER_RESULT;
  *out = *newest = e->n_buffers;
  e->buffers[e->n_buffers++] = buffer;
  return NULL;
}

static bool has_content(const planc_buffer *buffer) {
  return buffer->last_version > 0 || (buffer->flags & (PLANC_BUFFER_PERSISTENT | PLANC_BUFFER_FED));
}

static planc_instance *new_instance(expansion *e, int32_t o, planc_role role, const place *at) {
  planc_instance *instance = &e->instances[e->n_instances++];
  *instance = (planc_instance){.job = at->job,
                               .iteration = at->iteration,
                               .round = at->round,
                               .op = o,
                               .role = role,
                               .batch = at->batch,
                               .sample_offset = at->sample_offset,
                               .first_access = e->n_accesses};
  return instance;
}

/* Appends an access of the newest instance to the present version of `buffer`. */
static void add_access(expansion *e, int32_t buffer, bool read, bool write, bool effect) {
  planc_buffer *of = &e->buffers[buffer];
  planc_access access = {.instance = e->n_instances - 1, .buffer = buffer, .read = -1, .write = -1, .effect = effect};
  if (read) access.read = of->last_version;
  if (write) access.write = ++of->last_version;
  e->accesses[e->n_accesses++] = access;
  e->instances[access.instance].n_accesses++;
}

static planc_status run_op(expansion *e, int32_t o, const place *at) {
  const pl_job_plan *plan = &e->plans[at->job];
  const planc_graph *graph = plan->job->graph;
  planc_instance *instance = new_instance(e, o, PLANC_ROLE_OP, at);
  /* What is read comes first. An access that reads in the first pass does so in the second, too: content stays. */
  for (int32_t pass = 0; pass < 2; pass++) {
    for (int32_t t = plan->of->first_touch[o]; t < plan->of->first_touch[o + 1]; t++) {
      const pl_touch *with = &plan->of->touches[t];
      int32_t buffer;
      PLANC_TRY(buffer_at(e, with->slot, at, true, &buffer));
      bool adds = at->round > 0 && e->buffers[buffer].kind == PLANC_KIND_grad;
      bool content = has_content(&e->buffers[buffer]);
      bool reads =
          (with->how & (PL_TOUCH_READ | PL_TOUCH_EFFECT)) || adds || (content && (with->how & PL_TOUCH_PARTIAL));
      if (reads != (pass == 0)) continue;
      if (reads && !content)
        return planc_error(PLANC_BAD_INPUT, "op %s reads %s before anything is written to it", graph->ops[o].name,
                           graph->tensors[pl_slot_storage(plan, with->slot)->tensor].name);
      instance->accumulates |= adds;
      add_access(e, buffer, reads, pl_touch_writes(with), with->how == PL_TOUCH_EFFECT);
    }
  }
  return NULL;
}

/* Adds a round's temporary gradients that op `o` is the last to touch. */
static planc_status add_gradients(expansion *e, int32_t o, int32_t position, const place *at) {
  const pl_job_plan *plan = &e->plans[at->job];
  for (int32_t t = plan->of->first_touch[o]; t < plan->of->first_touch[o + 1]; t++) {
    int32_t slot = plan->of->touches[t].slot;
    const pl_storage_use *use = &plan->uses[slot];
    if (!use->redirected || use->last_position != position) continue;
    int32_t temporary, gradient;
    PLANC_TRY(buffer_at(e, slot, at, true, &temporary));
    PLANC_TRY(buffer_at(e, slot, at, false, &gradient));
    new_instance(e, use->last_writer, PLANC_ROLE_ACCUMULATE, at);
    add_access(e, temporary, true, false, false);
    add_access(e, gradient, true, true, false);
  }
  return NULL;
}

/* The buffer that the other replicas' gradients arrive in. */
static planc_status others_of(expansion *e, int32_t gradient, int32_t replicas, int32_t *out) {
  const planc_buffer *own = &e->buffers[gradient];
  planc_buffer others = {.job = own->job,
                         .storage = own->storage,
                         .iteration = own->iteration,
                         .round = own->round,
                         .kind = PLANC_KIND_temp,
                         .flags = PLANC_BUFFER_FED,
                         .sent = -1,
                         .peer = gradient};
  if (own->bytes > INT64_MAX - PLANC_OTHER_ALIGNMENT ||
      pl_mul_overflow(planc_other_stride(own->bytes), replicas - 1, &others.bytes))
    return planc_error(PLANC_BAD_INPUT, "the size of what %d other replicas send overflows", replicas - 1);
  *out = e->n_buffers;
  e->buffers[e->n_buffers++] = others;
  return NULL;
}

/* The gradient in `slot` becomes the sum over all replicas. */
static planc_status exchange(expansion *e, int32_t slot, const place *at) {
  const pl_job_plan *plan = &e->plans[at->job];
  int32_t gradient, others;
  PLANC_TRY(buffer_at(e, slot, at, false, &gradient));
  PLANC_TRY(others_of(e, gradient, plan->job->replicas, &others));
  e->buffers[gradient].sent = e->buffers[gradient].last_version;
  new_instance(e, plan->uses[slot].last_writer, PLANC_ROLE_EXCHANGE, at);
  add_access(e, gradient, true, true, false);
  add_access(e, others, true, false, false);
  return NULL;
}

/* Of each gradient that the rounds made, in the order in which they were done with them. */
static planc_status exchange_gradients(expansion *e, const place *at) {
  const pl_job_plan *plan = &e->plans[at->job];
  for (int32_t position = 0; position < plan->of->n_round_ops; position++) {
    int32_t o = plan->order[position];
    for (int32_t t = plan->of->first_touch[o]; t < plan->of->first_touch[o + 1]; t++) {
      int32_t slot = plan->of->touches[t].slot;
      const pl_storage_use *use = &plan->uses[slot];
      if (use->n_touches > 0 && use->last_position == position) PLANC_TRY(exchange(e, slot, at));
    }
  }
  return NULL;
}
