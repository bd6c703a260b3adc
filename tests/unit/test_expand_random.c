/* Expand on random graphs against a slow reference that follows trace.h word by word. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "planc/trace.h"
#include "tests/support/accesses.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"
#include "util/vec.h"

/* --- The reference ------------------------------------------------------------------------------------------------ */

typedef struct ref_buffer {
  int32_t storage, iteration, round;
  bool temporary;
  int32_t version;
} ref_buffer;

typedef struct reference {
  const planc_job *job;
  struct facts {
    bool per_round, temporary;
    int32_t last_touch, last_writer; /* positions in the order */
  } * facts;                         /* by storage */
  VEC(ref_buffer) buffers;
  const planc_trace *trace; /* compared on the way */
  int32_t job_index, instance;
} reference;

static int32_t storage_of(const planc_graph *g, int32_t tensor) {
  return g->tensors[tensor].storage;
}

static bool in_round(const planc_op *op) {
  return op->phase != PLANC_PHASE_optimizer;
}

static bool is_grad(const planc_graph *g, int32_t storage) {
  return g->storages[storage].kind == PLANC_KIND_grad;
}

/* The one op of a round that touches the gradient, if it only writes it and can add; else NULL. */
static const planc_op *single_writer(const planc_graph *g, int32_t storage) {
  const planc_op *only = NULL;
  for (int32_t o = 0; o < g->n_ops; o++) {
    const planc_op *op = &g->ops[o];
    if (!in_round(op) || (!op_reads(g, op, storage) && !op_writes(g, op, storage))) continue;
    if (only) return NULL;
    only = op;
  }
  return only && !op_reads(g, only, storage) && (only->flags & PLANC_OP_ACCUMULATES) ? only : NULL;
}

static bool works_on_temporary(const planc_graph *g, int32_t storage) {
  const planc_op *writer = single_writer(g, storage);
  if (!writer) return true;
  for (int32_t k = 0; k < writer->n_out; k++) {
    int32_t other = storage_of(g, writer->out[k]);
    if (is_grad(g, other) && !single_writer(g, other)) return true;
  }
  return false;
}

/* The position in the order of the last op of a round that touches (or writes) the storage. */
static int32_t last_touch(const planc_job *job, int32_t storage, bool writes) {
  const planc_graph *g = job->graph;
  for (int32_t position = g->n_ops - 1; position >= 0; position--) {
    const planc_op *op = &g->ops[job->order ? job->order[position] : position];
    if (in_round(op) && (op_writes(g, op, storage) || (!writes && op_reads(g, op, storage)))) return position;
  }
  return -1;
}

static bool is_per_round(const planc_graph *g, int32_t storage) {
  planc_kind kind = g->storages[storage].kind;
  if (kind == PLANC_KIND_input) return true;
  if (planc_kind_persists(kind) || kind == PLANC_KIND_grad) return false;
  for (int32_t o = 0; o < g->n_ops; o++)
    if (in_round(&g->ops[o]) && (op_reads(g, &g->ops[o], storage) || op_writes(g, &g->ops[o], storage))) return true;
  return false;
}

static void find_facts(reference *ref) {
  const planc_graph *g = ref->job->graph;
  free(ref->facts);
  ref->facts = calloc((size_t)g->n_storages + 1, sizeof *ref->facts);
  ck_assert_ptr_nonnull(ref->facts);
  for (int32_t s = 0; s < g->n_storages; s++)
    ref->facts[s] = (struct facts){.per_round = is_per_round(g, s),
                                   .temporary = is_grad(g, s) && works_on_temporary(g, s),
                                   .last_touch = last_touch(ref->job, s, false),
                                   .last_writer = last_touch(ref->job, s, true)};
}

static ref_buffer *ref_buffer_of(reference *ref, int32_t storage, int32_t iteration, int32_t round, bool temporary) {
  const planc_graph *g = ref->job->graph;
  ref_buffer want = {.storage = storage, .iteration = iteration, .round = -1, .temporary = temporary};
  if (planc_kind_persists(g->storages[storage].kind)) want.iteration = -1;
  if (ref->facts[storage].per_round || temporary) want.round = round < 0 ? 0 : round;
  for (int64_t k = 0; k < ref->buffers.len; k++) {
    ref_buffer *b = &ref->buffers.data[k];
    if (b->storage == want.storage && b->iteration == want.iteration && b->round == want.round &&
        b->temporary == want.temporary)
      return b;
  }
  ok(VEC_RESERVE(&ref->buffers, ref->buffers.len + 1));
  ref->buffers.data[ref->buffers.len] = want;
  return &ref->buffers.data[ref->buffers.len++];
}

/* Plays one access and compares it with the trace's. */
static void ref_access(const reference *ref, int32_t access, ref_buffer *buffer, bool read, bool write, bool effect) {
  const planc_access *got = &ref->trace->accesses[access];
  const planc_buffer *of = &ref->trace->buffers[got->buffer];
  planc_kind kind = buffer->temporary ? PLANC_KIND_temp : ref->job->graph->storages[buffer->storage].kind;
  bool same = got->instance == ref->instance && of->job == ref->job_index && of->storage == buffer->storage &&
              of->iteration == buffer->iteration && of->round == buffer->round && of->kind == kind &&
              got->read == (read ? buffer->version : -1) && got->write == (write ? buffer->version + 1 : -1) &&
              got->effect == effect;
  if (!same) ck_abort_msg("access %d to %s differs", access, planc_trace_buffer_name(ref->trace, got->buffer));
  if (write) buffer->version++;
}

static void ref_instance(const reference *ref, int32_t op, planc_role role, int32_t iteration, int32_t round,
                         bool accumulates, int32_t n_accesses) {
  if (ref->instance >= ref->trace->n_instances) ck_abort_msg("the trace ends early");
  const planc_instance *got = &ref->trace->instances[ref->instance];
  int64_t offset = 0;
  for (int32_t r = 0; r < round; r++) offset += ref->job->rounds[r];
  bool same = got->job == ref->job_index && got->op == op && got->role == role && got->iteration == iteration &&
              got->round == round && got->accumulates == accumulates && got->n_accesses == n_accesses &&
              got->batch == (round < 0 ? ref->job->batch : ref->job->rounds[round]) && got->sample_offset == offset;
  if (!same) ck_abort_msg("instance %d differs", ref->instance);
}

static bool writes_part(const planc_graph *g, const planc_op *op, int32_t storage) {
  for (int32_t k = 0; k < op->n_out; k++) {
    if (storage_of(g, op->out[k]) != storage) continue;
    for (int64_t n = 1; n <= 2; n++)
      if (planc_law_at(g->tensors[op->out[k]].bytes, n) < planc_law_at(g->storages[storage].bytes, n)) return true;
  }
  return false;
}

enum { MAX_OPERANDS = 64 };

static int32_t storages_of(const planc_graph *g, const planc_op *op, int32_t *out) {
  int32_t n = 0, n_all = op->n_in + op->n_out + op->n_effects;
  if (n_all > MAX_OPERANDS) ck_abort_msg("op %s has %d operands", op->name, n_all);
  for (int32_t k = 0; k < n_all; k++) {
    int32_t tensor = k < op->n_in               ? op->in[k]
                     : k < op->n_in + op->n_out ? op->out[k - op->n_in]
                                                : op->effects[k - op->n_in - op->n_out];
    bool known = false;
    for (int32_t seen = 0; seen < n; seen++) known |= out[seen] == storage_of(g, tensor);
    if (!known) out[n++] = storage_of(g, tensor);
  }
  return n;
}

static void ref_op(reference *ref, int32_t position, int32_t iteration, int32_t round) {
  const planc_graph *g = ref->job->graph;
  int32_t o = ref->job->order ? ref->job->order[position] : position;
  const planc_op *op = &g->ops[o];
  int32_t storages[MAX_OPERANDS], n = storages_of(g, op, storages);
  bool accumulates = false, reads[MAX_OPERANDS];
  for (int32_t k = 0; k < n; k++) {
    bool later = round > 0 && is_grad(g, storages[k]), temporary = later && ref->facts[storages[k]].temporary;
    const ref_buffer *b = ref_buffer_of(ref, storages[k], iteration, round, temporary);
    bool content = b->version > 0 || planc_kind_exists_before(g->storages[storages[k]].kind);
    bool adds = later && !temporary;
    reads[k] = op_reads(g, op, storages[k]) || adds || (writes_part(g, op, storages[k]) && content);
    accumulates |= adds;
  }
  ref_instance(ref, o, PLANC_ROLE_OP, iteration, round, accumulates, n);
  int32_t access = ref->trace->instances[ref->instance].first_access;
  for (int32_t pure_writes = 0; pure_writes < 2; pure_writes++) {
    for (int32_t k = 0; k < n; k++) {
      if (reads[k] == pure_writes) continue;
      bool temporary = round > 0 && ref->facts[storages[k]].temporary;
      bool effect =
          !any_in_storage(g, op->in, op->n_in, storages[k]) && !any_in_storage(g, op->out, op->n_out, storages[k]);
      ref_access(ref, access++, ref_buffer_of(ref, storages[k], iteration, round, temporary), reads[k],
                 op_writes(g, op, storages[k]), effect);
    }
  }
  ref->instance++;
  for (int32_t k = 0; k < n && round > 0; k++) {
    const struct facts *facts = &ref->facts[storages[k]];
    if (!facts->temporary || facts->last_touch != position) continue;
    int32_t writer = facts->last_writer;
    ref_instance(ref, ref->job->order ? ref->job->order[writer] : writer, PLANC_ROLE_ACCUMULATE, iteration, round,
                 false, 2);
    access = ref->trace->instances[ref->instance].first_access;
    ref_access(ref, access, ref_buffer_of(ref, storages[k], iteration, round, true), true, false, false);
    ref_access(ref, access + 1, ref_buffer_of(ref, storages[k], iteration, round, false), true, true, false);
    ref->instance++;
  }
}

/* What a buffer's flags and size are, and that its accesses are listed in time order. */
static void check_buffers(const planc_trace *trace) {
  int32_t n_listed = 0;
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    const planc_job *job = &trace->jobs[buffer->job];
    const planc_graph *g = job->graph;
    const planc_storage *storage = &g->storages[buffer->storage];
    bool temporary = buffer->kind != storage->kind, result = false;
    if (g->loss >= 0) result = storage_of(g, g->loss) == buffer->storage;
    result |= any_in_storage(g, g->outputs, g->n_outputs, buffer->storage);
    uint32_t flags = 0;
    if (planc_kind_persists(storage->kind)) flags |= PLANC_BUFFER_PERSISTENT;
    if (storage->kind == PLANC_KIND_input) flags |= PLANC_BUFFER_FED;
    if (result && !temporary) flags |= PLANC_BUFFER_RESULT;
    int64_t batch = buffer->round < 0 ? job->batch : job->rounds[buffer->round];
    bool right = buffer->flags == flags && buffer->bytes == planc_law_at(storage->bytes, batch) &&
                 buffer->n_accesses > 0 && buffer->first_access == n_listed;
    n_listed += buffer->n_accesses;
    int32_t version = 0, before = -1;
    for (int32_t k = 0; k < buffer->n_accesses; k++) {
      int32_t a = trace->by_buffer[buffer->first_access + k];
      right &= a > before && trace->accesses[a].buffer == b;
      if (trace->accesses[a].write >= 0) version = trace->accesses[a].write;
      before = a;
    }
    right &= buffer->last_version == version;
    right &= strcmp(planc_trace_buffer_name(trace, b), g->tensors[storage->tensor].name) == 0;
    if (!right) ck_abort_msg("buffer %d of %s is wrong", b, g->tensors[storage->tensor].name);
  }
  ck_assert_int_eq(n_listed, trace->n_accesses);
}

static void check_lookups(const planc_trace *trace) {
  for (int32_t i = 0; i < trace->n_instances; i++) {
    const planc_op *op = planc_trace_op(trace, i);
    const planc_instance *instance = &trace->instances[i];
    const planc_graph *g = trace->jobs[instance->job].graph;
    bool right = op == &g->ops[instance->op], lasting = false;
    for (int32_t k = 0; k < op->n_out && instance->role == PLANC_ROLE_OP; k++) {
      int32_t a = planc_trace_access_of(trace, i, op->out[k]);
      right &= a >= instance->first_access && a < instance->first_access + instance->n_accesses;
      const planc_buffer *buffer = &trace->buffers[trace->accesses[a].buffer];
      right &= buffer->storage == storage_of(g, op->out[k]);
      bool changes = buffer->kind == PLANC_KIND_grad && trace->accesses[a].read >= 0;
      lasting |= planc_kind_persists(buffer->kind) || changes;
    }
    if (instance->role == PLANC_ROLE_ACCUMULATE) lasting = true;
    right &= planc_trace_recomputable(trace, i) != lasting;
    if (!right) ck_abort_msg("a look-up of instance %d is wrong", i);
  }
}

static void check_trace(const planc_trace *trace) {
  reference ref = {.trace = trace};
  for (int32_t j = 0; j < trace->n_jobs; j++) {
    ref.job = &trace->jobs[j];
    ref.job_index = j;
    ref.buffers.len = 0;
    find_facts(&ref);
    const planc_graph *g = ref.job->graph;
    for (int32_t iteration = 0; iteration < ref.job->iterations; iteration++) {
      for (int32_t round = 0; round <= ref.job->n_rounds; round++) {
        bool rounds_over = round == ref.job->n_rounds;
        for (int32_t position = 0; position < g->n_ops; position++) {
          const planc_op *op = &g->ops[ref.job->order ? ref.job->order[position] : position];
          if (in_round(op) != rounds_over) ref_op(&ref, position, iteration, rounds_over ? -1 : round);
        }
      }
    }
  }
  ck_assert_int_eq(ref.instance, trace->n_instances);
  VEC_FREE(&ref.buffers);
  free(ref.facts);
  check_buffers(trace);
  check_lookups(trace);
}

/* --- Random graphs ------------------------------------------------------------------------------------------------ */

enum { MAX_ROUNDS = 4 };

/* 1 to 4 rounds, mostly uneven, and 1 to 3 iterations. */
static planc_job random_job(uint64_t *random, const planc_graph *graph, int64_t *rounds) {
  planc_job job = {.graph = graph, .rounds = rounds, .iterations = 1 + (int32_t)rand_below(random, 3)};
  job.n_rounds = 1 + (int32_t)rand_below(random, MAX_ROUNDS);
  for (int32_t r = 0; r < job.n_rounds; r++) job.batch += rounds[r] = 1 + rand_below(random, 7);
  return job;
}

/* True when the ops cannot change places: one writes what the other touches. */
static bool conflict(const planc_graph *g, const planc_op *a, const planc_op *b) {
  for (int32_t s = 0; s < g->n_storages; s++) {
    bool a_writes = op_writes(g, a, s), b_writes = op_writes(g, b, s);
    if ((a_writes && (b_writes || op_reads(g, b, s))) || (b_writes && op_reads(g, a, s))) return true;
  }
  return a->phase != b->phase;
}

START_TEST(random_graphs_expand_as_the_reference_says) {
  uint64_t random = (uint64_t)_i;
  for (int32_t seed = 60 * _i; seed < 60 * (_i + 1); seed += 2) {
    randgraph_options options = {.allow_batch_coupled = seed % 3 == 0, .inference = seed % 20 == 18};
    options.max_ops = 4 + seed % 57;
    planc_graph *graphs[2];
    int64_t rounds[2][MAX_ROUNDS];
    planc_job jobs[2];
    for (int32_t j = 0; j < 2; j++) {
      ok(randgraph_make((uint64_t)seed + (uint64_t)j, &options, &graphs[j]));
      jobs[j] = random_job(&random, graphs[j], rounds[j]);
    }
    for (int32_t n_jobs = 1; n_jobs <= 2; n_jobs++) {
      planc_trace *trace;
      ok(planc_expand(jobs, n_jobs, &trace));
      check_trace(trace);
      planc_trace_free(trace);
    }
    for (int32_t j = 0; j < 2; j++) planc_graph_free(graphs[j]);
  }
}
END_TEST

START_TEST(an_order_is_legal_when_no_conflicting_ops_change_places) {
  uint64_t random = (uint64_t)_i;
  int32_t n_legal = 0, n_illegal = 0;
  for (int32_t seed = 15 * _i; seed < 15 * (_i + 1); seed++) {
    planc_graph *graph;
    ok(randgraph_make((uint64_t)seed, NULL, &graph));
    int64_t rounds[MAX_ROUNDS];
    planc_job job = random_job(&random, graph, rounds);
    int32_t n = graph->n_ops, *order = calloc((size_t)n + 1, sizeof *order);
    ck_assert_ptr_nonnull(order);
    for (int32_t k = 0; k < n; k++) order[k] = k;
    job.order = order;
    for (int32_t swap = 0; swap < 60 && n > 1; swap++) {
      int32_t at = (int32_t)rand_below(&random, n - 1), first = order[at], second = order[at + 1];
      bool legal = !conflict(graph, &graph->ops[first], &graph->ops[second]);
      order[at] = second;
      order[at + 1] = first;
      planc_trace *trace;
      planc_status status = planc_expand(&job, 1, &trace);
      if (legal) {
        ok(status);
        if (n_legal++ % 8 == 0) check_trace(trace);
        planc_trace_free(trace);
      } else {
        n_illegal++;
        assert_fails(status, PLANC_BAD_INPUT, "order: op ");
        order[at] = first;
        order[at + 1] = second;
      }
    }
    free(order);
    planc_graph_free(graph);
  }
  ck_assert_int_gt(n_legal, 100);
  ck_assert_int_gt(n_illegal, 100);
}
END_TEST

START_TEST(unsplittable_graphs_expand_in_one_round_only) {
  int32_t n_refused = 0;
  for (uint64_t seed = 0; seed < 40; seed++) {
    planc_graph *graph;
    ok(randgraph_make(seed, &(randgraph_options){.unsplittable = true}, &graph));
    int64_t whole = 4, halves[] = {2, 2};
    planc_job job = {.graph = graph, .batch = 4, .n_rounds = 1, .rounds = &whole, .iterations = 2};
    planc_trace *trace;
    ok(planc_expand(&job, 1, &trace));
    check_trace(trace);
    planc_trace_free(trace);
    job.n_rounds = 2;
    job.rounds = halves;
    bool reads_rounds = false;
    for (int32_t o = 0; o < graph->n_ops; o++) {
      const planc_op *op = &graph->ops[o];
      for (int32_t k = 0; k < op->n_in && !in_round(op); k++)
        reads_rounds |= graph->storages[storage_of(graph, op->in[k])].kind == PLANC_KIND_activation;
    }
    planc_status status = planc_expand(&job, 1, &trace);
    if (reads_rounds) {
      n_refused++;
      assert_fails(status, PLANC_BAD_INPUT, "runs once for all rounds but touches");
    } else if (status) {
      assert_fails(status, PLANC_BAD_INPUT, "runs once for all rounds but touches"); /* a temp of the backward pass */
    } else {
      planc_trace_free(trace);
    }
    planc_graph_free(graph);
  }
  ck_assert_int_gt(n_refused, 10);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("expand on random graphs");
  TCase *cases = tcase_create("all");
  tcase_add_loop_test(cases, random_graphs_expand_as_the_reference_says, 0, 4);
  tcase_add_loop_test(cases, an_order_is_legal_when_no_conflicting_ops_change_places, 0, 4);
  tcase_add_test(cases, unsplittable_graphs_expand_in_one_round_only);
  suite_add_tcase(suite, cases);
  return run_suite(suite);
}
