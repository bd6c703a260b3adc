/* The random graphs that the property tests of every part stand on: what they are said to have must be there. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "planc/trace.h"
#include "tests/support/accesses.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

START_TEST(random_graphs_are_rich) {
  enum {
    IN_PLACE_ADD,
    REDIRECTED_ADD,
    EFFECT,
    PARTIAL,
    IN_PLACE,
    OVERWRITE,
    STOCHASTIC,
    COUPLED,
    SHARED_PARAM,
    DEAD,
    OPTIMIZER_TEMP,
    EMPTY_OP,
    WINDOW_READ,
    LONG_GAP,
    N_FEATURES
  };
  int32_t seen[N_FEATURES] = {0};
  for (uint64_t seed = 0; seed < 300; seed++) {
    planc_graph *graph;
    ok(randgraph_make(seed, &(randgraph_options){.allow_batch_coupled = true}, &graph));
    ck_assert_int_le(graph->n_ops, 40);
    bool has[N_FEATURES] = {false};
    int64_t rounds[] = {2, 1};
    planc_job job = {.graph = graph, .batch = 3, .n_rounds = 2, .rounds = rounds, .iterations = 1};
    planc_trace *trace;
    ok(planc_expand(&job, 1, &trace));
    for (int32_t i = 0; i < trace->n_instances; i++) {
      const planc_instance *instance = &trace->instances[i];
      const planc_op *op = planc_trace_op(trace, i);
      has[IN_PLACE_ADD] |= instance->accumulates;
      has[REDIRECTED_ADD] |= instance->role == PLANC_ROLE_ACCUMULATE;
      has[STOCHASTIC] |= (op->flags & PLANC_OP_STOCHASTIC) != 0;
      has[COUPLED] |= (op->flags & PLANC_OP_BATCH_COUPLED) != 0;
      has[EMPTY_OP] |= instance->n_accesses == 0;
      for (int32_t k = 0; k < op->n_in; k++) has[WINDOW_READ] |= graph->tensors[op->in[k]].offset.per_sample > 0;
      for (int32_t a = instance->first_access; a < instance->first_access + instance->n_accesses; a++) {
        const planc_access *access = &trace->accesses[a];
        const planc_buffer *buffer = &trace->buffers[access->buffer];
        bool data = buffer->kind == PLANC_KIND_activation;
        has[EFFECT] |= access->effect;
        has[PARTIAL] |=
            access->read >= 0 && access->write >= 0 && !instance->accumulates && !op_reads(graph, op, buffer->storage);
        has[IN_PLACE] |= data && access->write >= 0 && op_reads(graph, op, buffer->storage);
        has[OVERWRITE] |= data && access->read < 0 && access->write > 1;
      }
    }
    for (int32_t b = 0; b < trace->n_buffers; b++) {
      const planc_buffer *buffer = &trace->buffers[b];
      const int32_t *accesses = &trace->by_buffer[buffer->first_access];
      has[DEAD] |= buffer->kind == PLANC_KIND_activation && buffer->n_accesses == 1 && !buffer->flags;
      has[OPTIMIZER_TEMP] |= buffer->kind == PLANC_KIND_temp && buffer->round < 0;
      int32_t n_forward = 0;
      for (int32_t k = 0; k < buffer->n_accesses; k++) {
        int32_t i = trace->accesses[accesses[k]].instance;
        n_forward += trace->instances[i].round == 0 && planc_trace_op(trace, i)->phase == PLANC_PHASE_forward;
        int32_t gap = k > 0 ? i - trace->accesses[accesses[k - 1]].instance : 0;
        has[LONG_GAP] |= buffer->kind == PLANC_KIND_activation && gap > graph->n_ops / 3;
      }
      has[SHARED_PARAM] |= buffer->kind == PLANC_KIND_param && n_forward > 1;
    }
    for (int32_t k = 0; k < N_FEATURES; k++) seen[k] += has[k];
    planc_trace_free(trace);
    planc_graph_free(graph);
  }
  for (int32_t k = 0; k < N_FEATURES; k++) ck_assert_msg(seen[k] >= 9, "feature %d is in %d graphs of 300", k, seen[k]);
}
END_TEST

/* The bytes of a tensor within those of its storage at a batch. */
static bool *bytes_of(const planc_graph *g, bool **written, int32_t tensor, int64_t batch, int64_t *out_size) {
  const planc_tensor *t = &g->tensors[tensor];
  *out_size = planc_law_at(t->bytes, batch);
  return written[t->storage] + planc_law_at(t->offset, batch);
}

static bool all_written(const planc_graph *g, bool **written, int32_t tensor, int64_t batch) {
  int64_t size;
  const bool *bytes = bytes_of(g, written, tensor, batch, &size);
  return !memchr(bytes, false, (size_t)size);
}

START_TEST(what_is_read_or_leaves_was_written_to_the_last_byte) {
  for (uint64_t seed = 0; seed < 300; seed++) {
    planc_graph *g;
    ok(randgraph_make(seed, &(randgraph_options){.inference = seed % 5 == 4, .unsplittable = seed % 5 == 3}, &g));
    int64_t batch = 1 + (int64_t)seed % 3;
    bool **written = malloc((size_t)g->n_storages * sizeof *written);
    ck_assert_ptr_nonnull(written);
    for (int32_t s = 0; s < g->n_storages; s++) {
      size_t size = (size_t)planc_law_at(g->storages[s].bytes, batch);
      written[s] = malloc(size);
      ck_assert_ptr_nonnull(written[s]);
      memset(written[s], planc_kind_exists_before(g->storages[s].kind), size);
    }
    for (int32_t o = 0; o < g->n_ops; o++) {
      const planc_op *op = &g->ops[o];
      for (int32_t k = 0; k < op->n_in; k++)
        if (!all_written(g, written, op->in[k], batch)) ck_abort_msg("%s reads what nobody wrote", op->name);
      for (int32_t k = 0; k < op->n_out; k++) {
        int64_t size;
        bool *bytes = bytes_of(g, written, op->out[k], batch, &size);
        memset(bytes, true, (size_t)size);
      }
    }
    if (g->loss >= 0) ck_assert(all_written(g, written, g->loss, batch));
    for (int32_t k = 0; k < g->n_outputs; k++) ck_assert(all_written(g, written, g->outputs[k], batch));
    for (int32_t s = 0; s < g->n_storages; s++) free(written[s]);
    free(written);
    planc_graph_free(g);
  }
}
END_TEST

START_TEST(random_graphs_depend_on_the_seed_only) {
  uint64_t hashes[20];
  for (uint64_t seed = 0; seed < 20; seed++) {
    for (int32_t again = 0; again < 2; again++) {
      planc_graph *graph;
      ok(randgraph_make(seed, NULL, &graph));
      uint64_t hash = planc_graph_hash(graph);
      if (again) ck_assert_uint_eq(hash, hashes[seed]);
      hashes[seed] = hash;
      planc_graph_free(graph);
    }
    for (uint64_t other = 0; other < seed; other++) ck_assert_uint_ne(hashes[seed], hashes[other]);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("randgraph");
  TCase *cases = tcase_create("all");
  tcase_add_test(cases, random_graphs_are_rich);
  tcase_add_test(cases, what_is_read_or_leaves_was_written_to_the_last_byte);
  tcase_add_test(cases, random_graphs_depend_on_the_seed_only);
  suite_add_tcase(suite, cases);
  return run_suite(suite);
}
