/* Analysis of traces against brute force, and moDNN's numbers on a graph worked out by hand. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "planc/needs.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

/* --- Brute force -------------------------------------------------------------------------------------------------- */

static const planc_access *access_to(const planc_trace *trace, int32_t instance, int32_t buffer) {
  const planc_instance *of = &trace->instances[instance];
  for (int32_t a = of->first_access; a < of->first_access + of->n_accesses; a++)
    if (trace->accesses[a].buffer == buffer) return &trace->accesses[a];
  return NULL;
}

static planc_memory_needs needs_of(const planc_trace *trace) {
  planc_order *order;
  planc_memory_needs needs;
  ok(planc_order_of_trace(trace, &order));
  ok(planc_memory_needs_of(order, &needs));
  planc_order_free(order);
  return needs;
}

static planc_gaps *gaps_of(const planc_trace *trace) {
  planc_order *order;
  planc_gaps *gaps;
  ok(planc_order_of_trace(trace, &order));
  ok(planc_gaps_make(order, &gaps));
  planc_order_free(order);
  return gaps;
}

/* Live: persistent, or accessed at or before the instance and at or after it. */
static bool is_live(const planc_trace *trace, int32_t buffer, int32_t instance) {
  if (trace->buffers[buffer].flags & PLANC_BUFFER_PERSISTENT) return true;
  bool before = false, after = false;
  for (int32_t i = 0; i < trace->n_instances; i++) {
    if (!access_to(trace, i, buffer)) continue;
    before |= i <= instance;
    after |= i >= instance;
  }
  return before && after;
}

static int64_t live_bytes(const planc_trace *trace, int32_t instance) {
  int64_t bytes = 0;
  for (int32_t b = 0; b < trace->n_buffers; b++)
    if (is_live(trace, b, instance)) bytes += trace->buffers[b].bytes;
  return bytes;
}

static void check_live(const planc_trace *trace) {
  planc_memory_needs needs = needs_of(trace);
  int64_t sum = 0, persistent = 0, peak = -1;
  int32_t where = -1;
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    sum += trace->buffers[b].bytes;
    if (trace->buffers[b].flags & PLANC_BUFFER_PERSISTENT) persistent += trace->buffers[b].bytes;
  }
  for (int32_t i = 0; i < trace->n_instances; i++) {
    int64_t bytes = live_bytes(trace, i);
    if (bytes > peak) {
      peak = bytes;
      where = i;
    }
  }
  ck_assert_int_eq(needs.sum_bytes, sum);
  ck_assert_int_eq(needs.persistent_bytes, persistent);
  ck_assert_int_eq(needs.liveness_bytes, peak);
  ck_assert_int_eq(needs.liveness_instance, where);
}

/* The next instance after `from` that accesses the buffer, going round the period once; -1 if there is none. */
static int32_t next_access(const planc_trace *trace, int32_t buffer, int32_t from) {
  for (int32_t step = 1; step <= trace->n_instances; step++) {
    int32_t i = (from + step) % trace->n_instances;
    if (access_to(trace, i, buffer)) return i;
  }
  return -1;
}

static void check_gaps(const planc_trace *trace) {
  planc_gaps *gaps = gaps_of(trace);
  int32_t n = 0;
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    bool persistent = trace->buffers[b].flags & PLANC_BUFFER_PERSISTENT;
    for (int32_t from = 0; from < trace->n_instances; from++) {
      const planc_access *at = access_to(trace, from, b);
      if (!at) continue;
      int32_t to = next_access(trace, b, from);
      bool wraps = to <= from;
      if (wraps ? !persistent : access_to(trace, to, b)->read < 0) continue;
      if (n == gaps->n) ck_abort_msg("only %d gaps", n);
      const planc_gap *gap = &gaps->gaps[n++];
      bool same = gap->buffer == b && gap->version == (at->write >= 0 ? at->write : at->read) && gap->from == from &&
                  gap->to == to && gap->wraps == wraps;
      if (!same) ck_abort_msg("gap %d after instance %d differs", n - 1, from);
    }
  }
  ck_assert_int_eq(gaps->n, n);
  planc_gaps_free(gaps);
}

/* Eq. 2 from the graph alone, every storage of an op once. */
static void check_lower_bound(const planc_graph *g) {
  bool *used = calloc((size_t)g->n_storages, sizeof *used), *seen = calloc((size_t)g->n_storages, sizeof *seen);
  ck_assert(used && seen);
  int64_t most = -1, resident = 0;
  int32_t most_op = -1;
  for (int32_t o = 0; o < g->n_ops; o++) {
    const planc_op *op = &g->ops[o];
    const int32_t *lists[] = {op->in, op->out, op->effects}, counts[] = {op->n_in, op->n_out, op->n_effects};
    memset(seen, 0, (size_t)g->n_storages * sizeof *seen);
    for (int32_t list = 0; list < 3; list++)
      for (int32_t k = 0; k < counts[list]; k++) seen[g->tensors[lists[list][k]].storage] = true;
    int64_t bytes = 0;
    for (int32_t s = 0; s < g->n_storages; s++) {
      used[s] |= seen[s];
      planc_kind kind = g->storages[s].kind;
      bool moves = kind == PLANC_KIND_input || kind == PLANC_KIND_activation || kind == PLANC_KIND_temp;
      if (seen[s] && moves) bytes += planc_law_at(g->storages[s].bytes, 1);
    }
    if (bytes > most) {
      most = bytes;
      most_op = o;
    }
  }
  for (int32_t s = 0; s < g->n_storages; s++) {
    planc_kind kind = g->storages[s].kind;
    if (used[s] && kind >= PLANC_KIND_param && kind <= PLANC_KIND_grad) resident += g->storages[s].bytes.fixed;
  }
  int64_t bound;
  int32_t op;
  ok(planc_lower_bound(g, &bound, &op));
  ck_assert_int_eq(bound, resident + most);
  ck_assert_int_eq(op, most_op);
  free(used);
  free(seen);
}

START_TEST(analysis_agrees_with_brute_force) {
  uint64_t random = (uint64_t)_i;
  for (int32_t seed = 25 * _i; seed < 25 * (_i + 1); seed++) {
    planc_graph *graphs[2];
    planc_job jobs[2];
    int64_t rounds[2][3];
    randgraph_options options = {.max_ops = 4 + seed % 29, .inference = seed % 7 == 6};
    for (int32_t j = 0; j < 2; j++) {
      ok(randgraph_make((uint64_t)1000 + 2 * (uint64_t)seed + (uint64_t)j, &options, &graphs[j]));
      jobs[j] = (planc_job){.graph = graphs[j], .rounds = rounds[j]};
      jobs[j].n_rounds = 1 + (int32_t)rand_below(&random, 3);
      jobs[j].iterations = 1 + (int32_t)rand_below(&random, 2);
      for (int32_t r = 0; r < jobs[j].n_rounds; r++) jobs[j].batch += rounds[j][r] = 1 + rand_below(&random, 5);
      check_lower_bound(graphs[j]);
    }
    planc_trace *trace;
    ok(planc_expand(jobs, 1 + seed % 2, &trace));
    check_live(trace);
    check_gaps(trace);
    planc_trace_free(trace);
    for (int32_t j = 0; j < 2; j++) planc_graph_free(graphs[j]);
  }
}
END_TEST

/* --- By hand ------------------------------------------------------------------------------------------------------ */

static const char two_layers[] =
    "planc-graph: 1\nname: case\ntensors:\n  x: input f32[N,100]\n  w: param f32[10]\n  m: state f32[5]\n"
    "  g: grad f32[10]\n  a: f32[N,50]\n  b: f32[N,20]\n  d: f32[N,50]\nops:\n"
    "  - {op: f1, type: t.f, in: [x, w], out: [a]}\n"
    "  - {op: f2, type: t.f, in: [a], out: [b]}\n"
    "  - {op: b2, type: t.b, phase: backward, in: [b], out: [d]}\n"
    "  - {op: b1, type: t.b, phase: backward, in: [x, a, d], out: [g]}\n"
    "  - {op: s, type: t.s, phase: optimizer, in: [w, g, m], out: [w, m]}\n";

START_TEST(a_small_graph_by_hand) {
  planc_graph *graph;
  ok(planc_graph_parse(two_layers, strlen(two_layers), "test.yaml", &graph));
  int64_t rounds[] = {3, 2};
  planc_job job = {.graph = graph, .batch = 5, .n_rounds = 2, .rounds = rounds, .iterations = 2};
  planc_trace *trace;
  ok(planc_expand(&job, 1, &trace));

  /* Of an iteration: two rounds of x, a, b, d, the gradient and the second round's temporary gradient. */
  planc_memory_needs needs = needs_of(trace);
  ck_assert_int_eq(needs.persistent_bytes, 60);
  ck_assert_int_eq(needs.sum_bytes, 60 + INT64_C(2) * (5 * 4 * 220 + 40 + 40));
  /* At b2 of the first round: its b and d, and x and a, which b1 will read. */
  ck_assert_int_eq(needs.liveness_bytes, 60 + INT64_C(3) * 4 * 220);
  ck_assert_int_eq(needs.liveness_instance, 2);

  ck_assert_int_eq(planc_instance_bytes(trace, 0), INT64_C(3) * 4 * 150);
  ck_assert_int_eq(planc_instance_bytes(trace, 7), INT64_C(2) * 4 * 200 + 40); /* b1 of the second round: a temporary */
  ck_assert_int_eq(planc_instance_bytes(trace, 9), 0);                         /* s */

  int64_t bound;
  int32_t op;
  ok(planc_lower_bound(graph, &bound, &op));
  ck_assert_int_eq(bound, 100 + 4 * 200);
  ck_assert_int_eq(op, 3);

  /* w in an iteration: f1 of two rounds and s; from there to the next iteration's, and round the period. */
  planc_gaps *gaps = gaps_of(trace);
  static const planc_gap expected[] = {
      {.version = 0, .from = 0, .to = 4},   {.version = 0, .from = 4, .to = 9},
      {.version = 1, .from = 9, .to = 10},  {.version = 1, .from = 10, .to = 14},
      {.version = 1, .from = 14, .to = 19}, {.version = 2, .from = 19, .to = 0, .wraps = true}};
  int32_t n = 0;
  for (int32_t k = 0; k < gaps->n; k++) {
    const planc_gap *gap = &gaps->gaps[k];
    if (strcmp(planc_trace_buffer_name(trace, gap->buffer), "w") != 0) continue;
    ck_assert_int_lt(n, 6);
    ck_assert_int_eq(gap->version, expected[n].version);
    ck_assert_int_eq(gap->from, expected[n].from);
    ck_assert_int_eq(gap->to, expected[n].to);
    ck_assert_int_eq(gap->wraps, expected[n].wraps);
    n++;
  }
  ck_assert_int_eq(n, 6);
  planc_gaps_free(gaps);
  planc_trace_free(trace);
  planc_graph_free(graph);
}
END_TEST

START_TEST(sums_that_overflow_are_bad_input) {
  static const char text[] =
      "planc-graph: 1\nname: case\ntensors:\n  x: input u8[N,4000000000000]\n  y: u8[N,4000000000000]\nops:\n"
      "  - {op: f, type: t.f, in: [x], out: [y], flops: 1, traffic: 1}\n";
  planc_graph *graph;
  ok(planc_graph_parse(text, strlen(text), "test.yaml", &graph));
  int64_t batch = 2000000;
  planc_job job = {.graph = graph, .batch = batch, .n_rounds = 1, .rounds = &batch, .iterations = 1};
  planc_trace *trace;
  ok(planc_expand(&job, 1, &trace));
  planc_order *order;
  planc_memory_needs needs;
  ok(planc_order_of_trace(trace, &order));
  planc_status status = planc_memory_needs_of(order, &needs);
  planc_order_free(order);
  ck_assert_int_eq(planc_status_code(status), PLANC_BAD_INPUT);
  planc_status_free(status);
  ck_assert_int_eq(planc_instance_bytes(trace, 0), INT64_MAX);
  planc_trace_free(trace);
  planc_graph_free(graph);
}
END_TEST

START_TEST(a_trace_without_ops_needs_nothing) {
  planc_graph graph = {.loss = -1};
  int64_t batch = 1;
  planc_job job = {.graph = &graph, .batch = 1, .n_rounds = 1, .rounds = &batch, .iterations = 1};
  planc_trace *trace;
  ok(planc_expand(&job, 1, &trace));
  planc_memory_needs needs = needs_of(trace);
  ck_assert_int_eq(needs.sum_bytes + needs.liveness_bytes + needs.persistent_bytes, 0);
  ck_assert_int_eq(needs.liveness_instance, -1);
  planc_gaps *gaps = gaps_of(trace);
  ck_assert_int_eq(gaps->n, 0);
  planc_gaps_free(gaps);
  int64_t bound;
  int32_t op;
  ok(planc_lower_bound(&graph, &bound, &op));
  ck_assert_int_eq(bound, 0);
  ck_assert_int_eq(op, -1);
  planc_trace_free(trace);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("analysis");
  TCase *cases = tcase_create("all");
  tcase_add_loop_test(cases, analysis_agrees_with_brute_force, 0, 4);
  tcase_add_test(cases, a_small_graph_by_hand);
  tcase_add_test(cases, sums_that_overflow_are_bad_input);
  tcase_add_test(cases, a_trace_without_ops_needs_nothing);
  suite_add_tcase(suite, cases);
  return run_suite(suite);
}
