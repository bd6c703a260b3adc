/* Storages that are written in parts: what is read was written to the last byte, or the graph is refused where the
 * first byte is missing; and what one part's write leaves of the others comes along through every plan. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost/profile.h"
#include "planc/check.h"
#include "planc/policy.h"
#include "planrt/planrt.h"
#include "tests/support/accesses.h"
#include "tests/support/graphtext.h"
#include "tests/support/least.h"
#include "tests/support/plan_view.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"
#include "tests/support/weave.h"

/* --- Every byte --------------------------------------------------------------------------------------------------- */

/* What has been written of each storage at one batch, byte by byte. */
typedef struct bytes {
  const planc_graph *graph;
  int64_t batch;
  bool **written;
} bytes;

static void start_bytes(bytes *b, const planc_graph *graph, int64_t batch) {
  *b = (bytes){graph, batch, calloc((size_t)graph->n_storages, sizeof *b->written)};
  ck_assert_ptr_nonnull(b->written);
  for (int32_t s = 0; s < graph->n_storages; s++) {
    size_t size = (size_t)planc_law_at(graph->storages[s].bytes, batch);
    b->written[s] = malloc(size);
    ck_assert_ptr_nonnull(b->written[s]);
    memset(b->written[s], planc_kind_exists_before(graph->storages[s].kind), size);
  }
}

static void stop_bytes(bytes *b) {
  for (int32_t s = 0; s < b->graph->n_storages; s++) free(b->written[s]);
  free(b->written);
}

static bool *bytes_of(const bytes *b, int32_t tensor, size_t *out_size) {
  const planc_tensor *t = &b->graph->tensors[tensor];
  *out_size = (size_t)planc_law_at(t->bytes, b->batch);
  return b->written[t->storage] + planc_law_at(t->offset, b->batch);
}

static bool all_written(const bytes *b, int32_t tensor) {
  size_t size;
  const bool *at = bytes_of(b, tensor, &size);
  return !memchr(at, false, size);
}

/* Gradients that ops up to `end` write, and not to the last byte; -1 if there are none, else the last op that does. */
static int32_t part_of_gradient(const bytes *b, int32_t end) {
  const planc_graph *g = b->graph;
  for (int32_t s = 0; s < g->n_storages; s++) {
    if (g->storages[s].kind != PLANC_KIND_grad || all_written(b, g->storages[s].tensor)) continue;
    for (int32_t o = end; o-- > 0;)
      if (op_writes(g, &g->ops[o], s)) return o;
  }
  return -1;
}

/* The op that is at fault, n_ops where a result is, -1 for none. */
static int32_t first_fault(bytes *b) {
  const planc_graph *g = b->graph;
  for (int32_t o = 0; o < g->n_ops; o++) {
    const planc_op *op = &g->ops[o];
    for (int32_t k = 0; k < op->n_in; k++)
      if (!all_written(b, op->in[k])) return o;
    for (int32_t k = 0; k < op->n_out; k++) {
      size_t size;
      bool *at = bytes_of(b, op->out[k], &size);
      memset(at, true, size);
    }
    bool last = op->phase != PLANC_PHASE_optimizer && (o + 1 == g->n_ops || op[1].phase == PLANC_PHASE_optimizer);
    if (last && part_of_gradient(b, o + 1) >= 0) return part_of_gradient(b, o + 1);
  }
  for (int32_t k = g->loss >= 0 ? -1 : 0; k < g->n_outputs; k++) {
    const planc_tensor *result = &g->tensors[k < 0 ? g->loss : g->outputs[k]];
    if (!all_written(b, g->storages[result->storage].tensor)) return g->n_ops;
  }
  return -1;
}

static int32_t fault_at(const planc_graph *graph, int64_t batch) {
  bytes b;
  start_bytes(&b, graph, batch);
  int32_t fault = first_fault(&b);
  stop_bytes(&b);
  return fault;
}

/* --- Graphs that write less, or read more ------------------------------------------------------------------------- */

/* Another tensor on the same storage. */
static int32_t other_tensor(const planc_graph *g, int32_t tensor, uint64_t *random) {
  int32_t n = 0, chosen = tensor;
  for (int32_t t = 0; t < g->n_tensors; t++)
    if (g->tensors[t].storage == g->tensors[tensor].storage && rand_below(random, ++n) == 0) chosen = t;
  return chosen;
}

/* A copy of the graph whose operands are drawn anew now and then from those on the same storage; some results are not
 * written. `ops` holds as many as the graph has and borrows from it, but for the operands in `operands`. */
static void mutate(const planc_graph *g, uint64_t random, int32_t percent, planc_op *ops, int32_t *operands) {
  for (int32_t o = 0; o < g->n_ops; o++) {
    planc_op *op = &ops[o];
    *op = g->ops[o];
    int32_t *in = operands, *out = in + op->n_in;
    operands = out + op->n_out;
    for (int32_t k = 0; k < op->n_in; k++)
      in[k] = rand_chance(&random, percent) ? other_tensor(g, op->in[k], &random) : op->in[k];
    int32_t n = 0;
    for (int32_t k = 0; k < op->n_out; k++) {
      if (rand_chance(&random, percent / 4)) continue;
      out[n++] = rand_chance(&random, percent) ? other_tensor(g, op->out[k], &random) : op->out[k];
    }
    op->in = in;
    op->out = out;
    op->n_out = n;
  }
}

/* Builds the graph with other ops. */
static planc_status build(const planc_graph *g, const planc_op *ops, planc_graph **out, int32_t *out_op) {
  planc_graph_builder *builder;
  ok(planc_graph_builder_new(&builder));
  ok(planc_graph_builder_header(builder, g->name, g->layout, g->batch, NULL, NULL, NULL, NULL));
  for (int32_t t = 0; t < g->n_tensors; t++) {
    const planc_tensor *tensor = &g->tensors[t];
    const planc_storage *storage = &g->storages[tensor->storage];
    ok(planc_graph_builder_tensor(builder, tensor->name, storage->kind, tensor->dtype, tensor->rank, tensor->dims,
                                  storage->tensor == t ? -1 : storage->tensor, tensor->offset, NULL));
  }
  for (int32_t o = 0; o < g->n_ops; o++) ok(planc_graph_builder_op(builder, &ops[o]));
  if (g->loss >= 0) ok(planc_graph_builder_loss(builder, g->loss));
  for (int32_t k = 0; k < g->n_outputs; k++) ok(planc_graph_builder_output(builder, g->outputs[k]));
  planc_status status = planc_graph_builder_finish(builder, out, out_op, NULL);
  planc_graph_builder_free(builder);
  return status;
}

static void runs_right(const planc_plan *plan, uint64_t seed) {
  planrt_options options = {.seed = seed, .synthetic = true, .verify = true, .poison = true};
  planrt_session *session;
  ok(planrt_session_new(plan, &options, &session));
  ok(planrt_init(session));
  ok(planrt_run(session, 2));
  planrt_session_free(session);
}

static planc_profile *profile;

static void read_profile(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
}
static void free_profile(void) {
  planc_profile_free(profile);
}

/* Every policy's tightest plan is valid and computes the same bits. */
static void is_planned_right(const planc_graph *graph, int64_t batch, uint64_t seed) {
  planc_problem problem = {
      .job.graph = graph, .job.profile = profile, .job.batch = batch, .terms.budgets[PLANC_MEMORY_HOST] = -1};
  for (const planc_policy *policy = planc_policies(); policy->name; policy++) {
    if (policy->supports & PLANC_POLICY_SIMULATED) continue;
    planc_plan *plan;
    ok_in(find_least_bytes(&problem, policy, &problem.terms.budgets[PLANC_MEMORY_DEVICE]), policy->name);
    ok_in(planc_make_plan(&problem, policy, &plan), policy->name);
    ok_in(planc_check(plan, NULL, NULL), policy->name);
    runs_right(plan, seed);
    planc_plan_free(plan);
  }
}

enum { GRAPHS = 60, MUTANTS = 25 };

/* The reader's verdict is that of the bytes, at every batch, and names the op. */
START_TEST(mutants_are_refused_at_the_first_byte_missing) {
  int32_t refused = 0, accepted = 0;
  uint64_t graphs = (uint64_t)sampled(GRAPHS);
  for (uint64_t seed = 0; seed < graphs; seed++) {
    planc_graph *g;
    ok(randgraph_make(UINT64_C(7000) + seed, &(randgraph_options){.max_ops = 16, .inference = seed % 4 == 3}, &g));
    int64_t n_operands = 0;
    for (int32_t o = 0; o < g->n_ops; o++) n_operands += (int64_t)g->ops[o].n_in + g->ops[o].n_out;
    planc_op *ops = malloc((size_t)g->n_ops * sizeof *ops);
    int32_t *operands = malloc((size_t)n_operands * sizeof *operands + 1);
    ck_assert(ops && operands);
    bool planned = false;
    for (uint64_t m = 0; m < MUTANTS; m++) {
      mutate(g, seed * MUTANTS + m, 1 + (int32_t)(m % 3) * 20, ops, operands);
      planc_graph changed = *g, *built;
      changed.ops = ops;
      int32_t at, fault = fault_at(&changed, 1);
      for (int64_t batch = 2; batch < 5; batch++) ck_assert_int_eq(fault_at(&changed, batch), fault);
      planc_status status = build(g, ops, &built, &at);
      if (fault < 0) {
        ok(status);
        accepted++;
        if (!planned && seed % 3 == 0) is_planned_right(built, 1 + (int64_t)(seed % 4), seed);
        planned = true;
        planc_graph_free(built);
        continue;
      }
      refused++;
      ck_assert_int_eq(planc_status_code(status), PLANC_BAD_INPUT);
      ck_assert_msg(at == (fault < g->n_ops ? fault : -1), "seed %d, mutant %d: op %d is at fault: %s", (int)seed,
                    (int)m, fault, planc_status_message(status));
      planc_status_free(status);
    }
    free(operands);
    free(ops);
    planc_graph_free(g);
  }
  uint64_t least = 5 * graphs;
  ck_assert_msg((uint64_t)accepted > least && (uint64_t)refused > least, "%d accepted, %d refused", accepted, refused);
}
END_TEST

/* --- By hand ------------------------------------------------------------------------------------------------------ */

#define HEAD(tensors) \
  "planc-graph: 1\nname: g\noutputs: [y]\ntensors:\n  x: input f32[N,4]\n  y: f32[N,4]\n" tensors "ops:\n"
#define OP(name, in, out) "  - {op: " name ", type: t.f, in: [" in "], out: [" out "]}\n"

/* Parts may be written in any order, overlap, and meet at ends that grow with the batch in different ways. */
START_TEST(parts_that_make_up_the_whole_are_read) {
  static const char *const texts[] = {
      HEAD("  k: f32[12N]\n  a: f32[4N] of k\n  b: f32[4N] of k @ 16N\n  c: f32[4N] of k @ 32N\n") OP("1", "x", "c")
          OP("2", "x", "a") OP("3", "x", "b") OP("4", "k", "y"),
      HEAD("  k: f32[12N]\n  a: f32[8N] of k\n  b: f32[8N] of k @ 16N\n  m: f32[10N] of k @ 4N\n") OP("1", "x", "b")
          OP("2", "x", "a") OP("3", "m", "y"),
      HEAD("  k: f32[8+4N]\n  a: f32[8] of k\n  b: f32[4N] of k @ 32\n  m: f32[1+N] of k @ 28\n") OP("1", "x", "b")
          OP("2", "x", "a") OP("3", "m", "y"),
      /* Written whole, views may lie as they like. */
      HEAD("  k: f32[8+N]\n  a: f32[N] of k\n  b: f32[4] of k\n") OP("1", "x", "k") OP("2", "a, b", "y"),
      HEAD("  k: f32[8+N]\n  a: f32[N] of k\n  b: f32[4] of k\n  k2: f32[8+N] of k\n") OP("1", "x", "k2")
          OP("2", "a, b", "y"),
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    planc_graph *g = graph_of(texts[i]);
    is_planned_right(g, 3, 1);
    planc_graph_free(g);
  }
}
END_TEST

/* A hundred thousand parts, written in an order that suits nobody. */
START_TEST(many_parts_take_no_longer_than_as_many_storages) {
  enum { PARTS = 100000, STEP = 61803 };
  planc_graph_builder *builder;
  planc_graph *g;
  int32_t whole, first, x;
  const planc_law one = {1, 0}, derived = {-1, -1};
  ok(planc_graph_builder_new(&builder));
  ok(planc_graph_builder_header(builder, "g", PLANC_LAYOUT_NCHW, 0, NULL, NULL, NULL, NULL));
  ok(planc_graph_builder_tensor(builder, "x", PLANC_KIND_input, PLANC_DTYPE_f32, 1, &one, -1, (planc_law){0}, &x));
  ok(planc_graph_builder_tensor(builder, "k", PLANC_KIND_activation, PLANC_DTYPE_f32, 1, &(planc_law){PARTS, 0}, -1,
                                (planc_law){0}, &whole));
  first = whole + 1;
  for (int64_t p = 0; p < PARTS; p++) {
    char name[32];
    snprintf(name, sizeof name, "part%d", (int)p);
    ok(planc_graph_builder_tensor(builder, name, PLANC_KIND_activation, PLANC_DTYPE_f32, 1, &one, whole,
                                  (planc_law){p * 4, 0}, NULL));
  }
  for (int64_t p = 0; p < PARTS; p++) {
    char name[32];
    int32_t part = first + (int32_t)(p * STEP % PARTS);
    snprintf(name, sizeof name, "op%d", (int)p);
    planc_op op = {.name = name, .type = "t.f", .n_in = 1, .in = &x, .n_out = 1, .out = &part};
    op.flops = op.traffic = derived;
    ok(planc_graph_builder_op(builder, &op));
  }
  planc_op last = {.name = "last", .type = "t.f", .n_in = 1, .in = &whole, .flops = derived, .traffic = derived};
  ok(planc_graph_builder_op(builder, &last));
  ok(planc_graph_builder_finish(builder, &g, NULL, NULL));
  ck_assert_int_eq(g->n_ops, PARTS + 1);
  planc_graph_free(g);
  planc_graph_builder_free(builder);
}
END_TEST

/* --- What a write leaves ------------------------------------------------------------------------------------------ */

/* Without the copy that brings the rest of a storage back before a part of it is written: not valid, and run all the
 * same it does not compute the reference's bits. */
START_TEST(what_a_part_leaves_must_be_there) {
  planc_graph *g = graph_of(HEAD("  k: f32[8N]\n  a: f32[4N] of k\n  b: f32[4N] of k @ 16N\n  z: f32[N,4]\n")
                                OP("1", "x", "a") OP("2", "x", "z") OP("3", "x", "b") OP("4", "k, z", "y"));
  int64_t batch = 2;
  planc_job job = {.graph = g, .batch = batch, .n_rounds = 1, .rounds = &batch, .iterations = 1};
  woven w;
  ok(weave(&job, WEAVE_SWAP, 0, &w));
  ok(planc_check(&w.plan, NULL, NULL));
  runs_right(&w.plan, 1);
  int32_t part = -1;
  for (int32_t i = 0; i < w.plan.body.n && part < 0; i++) {
    const planc_instr *at = &w.sections[1].data[i];
    if (at->op != PLANC_INSTR_exec || strcmp(planc_trace_op(w.trace, at->id)->name, "3") != 0) continue;
    for (part = i; !swaps_in(&w.plan, &w.sections[1].data[part]);) part--;
  }
  ck_assert_int_ge(part, 0);
  memmove(&w.sections[1].data[part], &w.sections[1].data[part + 1],
          (size_t)(w.plan.body.n - part - 1) * sizeof *w.sections[1].data);
  w.plan.body.n--;
  assert_fails(planc_check(&w.plan, NULL, NULL), PLANC_INVALID_PLAN, "exec 3: reads k in residency");
  planrt_options options = {.seed = 1, .synthetic = true, .verify = true, .poison = true, .unchecked = true};
  planrt_session *session;
  ok(planrt_session_new(&w.plan, &options, &session));
  ok(planrt_init(session));
  assert_fails(planrt_run(session, 1), PLANC_INVALID_PLAN, "what op 4 puts out differs");
  planrt_session_free(session);
  woven_free(&w);
  planc_graph_free(g);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("coverage");
  TCase *c = tcase_create("coverage");
  tcase_set_timeout(c, 0);
  tcase_add_unchecked_fixture(c, read_profile, free_profile);
  tcase_add_test(c, mutants_are_refused_at_the_first_byte_missing);
  tcase_add_test(c, parts_that_make_up_the_whole_are_read);
  tcase_add_test(c, many_parts_take_no_longer_than_as_many_storages);
  tcase_add_test(c, what_a_part_leaves_must_be_there);
  suite_add_tcase(suite, c);
  return run_suite(suite);
}
