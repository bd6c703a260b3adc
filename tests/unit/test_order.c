/* Orders: what they say of positions, uses, gaps and live bytes is what a search through what runs finds, for the
 * trace's order, others of its instances, and those of random schedules with their recomputes. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "planc/needs.h"
#include "planc/order.h"
#include "tests/support/graphtext.h"
#include "tests/support/randgraph.h"
#include "tests/support/randorder.h"
#include "tests/support/randschedule.h"
#include "tests/support/unit.h"

static planc_profile *profile;

static void read_profile(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
}
static void free_profile(void) {
  planc_profile_free(profile);
}

/* --- By search ---------------------------------------------------------------------------------------------------- */

/* What the run at a position does with a buffer; NULL if nothing. */
static const planc_access *access_at(const planc_order *order, int32_t position, int32_t buffer) {
  const planc_order_run *run = &order->runs[position];
  const planc_instance *in = &order->trace->instances[run->instance];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &order->trace->accesses[a];
    if (access->buffer == buffer) return run->recompute && access->effect ? NULL : access;
  }
  return NULL;
}

static void check_uses(const planc_order *order) {
  for (int32_t b = 0; b < order->trace->n_buffers; b++) {
    int32_t u = order->first_use[b], first = -1, last = -1;
    for (int32_t p = 0; p < order->n; p++) {
      const planc_access *access = access_at(order, p, b);
      if (!access) continue;
      ck_assert_int_lt(u, order->first_use[b + 1]);
      ck_assert_int_eq(order->uses[u].position, p);
      ck_assert_ptr_eq(planc_order_access(order, u++), access);
      if (first < 0) first = p;
      last = p;
    }
    ck_assert_int_eq(u, order->first_use[b + 1]);
    ck_assert_int_eq(planc_order_first(order, b), first);
    ck_assert_int_eq(planc_order_last(order, b), last);
  }
  for (int32_t i = 0; i < order->trace->n_instances; i++) {
    int32_t first = -1;
    for (int32_t p = order->n - 1; p >= 0; p--)
      if (order->runs[p].instance == i) first = p;
    ck_assert_int_eq(order->first[i], first);
    ck_assert(!order->runs[first].recompute);
  }
}

/* The last position before `before` at which the version is read or made; -1 if there is none. */
static int32_t last_with(const planc_order *order, int32_t buffer, int32_t version, int32_t before) {
  for (int32_t p = before - 1; p >= 0; p--) {
    const planc_access *access = access_at(order, p, buffer);
    if (access && (access->read == version || access->write == version)) return p;
  }
  return -1;
}

static void check_gaps(const planc_order *order) {
  planc_gaps *gaps;
  ok(planc_gaps_make(order, &gaps));
  int32_t n = 0;
  for (int32_t b = 0; b < order->trace->n_buffers; b++) {
    const planc_buffer *buffer = &order->trace->buffers[b];
    for (int32_t to = 0; to < order->n; to++) {
      const planc_access *access = access_at(order, to, b);
      int32_t from = access && access->read >= 0 ? last_with(order, b, access->read, to) : -1;
      if (from < 0) continue;
      ck_assert_int_lt(n, gaps->n);
      const planc_gap *gap = &gaps->gaps[n++];
      ck_assert_msg(
          gap->buffer == b && gap->version == access->read && gap->from == from && gap->to == to && !gap->wraps,
          "gap %d ahead of position %d", n - 1, to);
    }
    int32_t first = planc_order_first(order, b);
    if (!(buffer->flags & PLANC_BUFFER_PERSISTENT) || first < 0) continue;
    ck_assert_int_lt(n, gaps->n);
    const planc_gap *gap = &gaps->gaps[n++];
    ck_assert(gap->buffer == b && gap->version == buffer->last_version && gap->to == first && gap->wraps);
    ck_assert_int_eq(gap->from, last_with(order, b, buffer->last_version, order->n));
  }
  ck_assert_int_eq(gaps->n, n);
  planc_gaps_free(gaps);
}

static bool is_live(const planc_order *order, int32_t buffer, int32_t position) {
  bool before = false, after = false;
  if (order->trace->buffers[buffer].flags & PLANC_BUFFER_PERSISTENT) return true;
  for (int32_t p = 0; p < order->n; p++) {
    if (!access_at(order, p, buffer)) continue;
    before |= p <= position;
    after |= p >= position;
  }
  return before && after;
}

static void check_live(const planc_order *order) {
  planc_memory_needs needs;
  ok(planc_memory_needs_of(order, &needs));
  int64_t peak = -1;
  int32_t where = -1;
  for (int32_t p = 0; p < order->n; p++) {
    int64_t bytes = 0;
    for (int32_t b = 0; b < order->trace->n_buffers; b++)
      if (is_live(order, b, p)) bytes += order->trace->buffers[b].bytes;
    if (bytes <= peak) continue;
    peak = bytes;
    where = order->runs[p].instance;
  }
  ck_assert_int_eq(needs.liveness_bytes, peak);
  ck_assert_int_eq(needs.liveness_instance, where);
}

static void check(const planc_order *order) {
  check_uses(order);
  check_gaps(order);
  check_live(order);
}

/* --- Random ones -------------------------------------------------------------------------------------------------- */

static planc_trace *draw_trace(int number, planc_graph **graphs, int32_t n_jobs) {
  planc_job jobs[2];
  int64_t rounds[2][3];
  uint64_t state = (uint64_t)number;
  for (int32_t j = 0; j < n_jobs; j++) {
    randgraph_options options = {.max_ops = 4 + number % 12, .inference = number % 7 == 6};
    ok(randgraph_make(UINT64_C(9000) + 2 * (uint64_t)number + (uint64_t)j, &options, &graphs[j]));
    jobs[j] = (planc_job){.graph = graphs[j], .rounds = rounds[j]};
    jobs[j].n_rounds = 1 + (int32_t)rand_below(&state, 3);
    jobs[j].iterations = 1 + (int32_t)rand_below(&state, 2);
    for (int32_t r = 0; r < jobs[j].n_rounds; r++) jobs[j].batch += rounds[j][r] = 1 + rand_below(&state, 4);
  }
  planc_trace *trace;
  ok(planc_expand(jobs, n_jobs, &trace));
  return trace;
}

START_TEST(orders_of_instances_are_found_by_search) {
  planc_graph *graphs[2];
  int32_t n_jobs = 1 + _i % 2;
  planc_trace *trace = draw_trace(_i, graphs, n_jobs);
  planc_order *order;
  ok(planc_order_of_trace(trace, &order));
  ck_assert_int_eq(order->n, trace->n_instances);
  for (int32_t i = 0; i < trace->n_instances; i++) ck_assert(order->first[i] == i && !order->runs[i].recompute);
  check(order);
  planc_order_free(order);
  uint64_t state = (uint64_t)_i;
  for (int k = 0; k < 3; k++) {
    ok(randorder_make(trace, &state, &order));
    check(order);
    planc_order_free(order);
  }
  planc_trace_free(trace);
  for (int32_t j = 0; j < n_jobs; j++) planc_graph_free(graphs[j]);
}
END_TEST

/* Whether the instances, each once, meet the versions that they meet in the trace. */
static bool is_legal(const planc_trace *trace, const int32_t *instances) {
  bool legal = true;
  int32_t *current = calloc((size_t)trace->n_buffers + 1, sizeof *current);
  for (int32_t p = 0; p < trace->n_instances; p++) {
    const planc_instance *in = &trace->instances[instances[p]];
    for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
      const planc_access *access = &trace->accesses[a];
      if (access->read >= 0) legal &= current[access->buffer] == access->read;
      if (access->write >= 0) legal &= current[access->buffer] == access->write - 1;
      if (access->write >= 0) current[access->buffer] = access->write;
    }
  }
  free(current);
  return legal;
}

static void refused(const planc_trace *trace, const int32_t *instances, const char *why) {
  planc_order *order;
  planc_status status = planc_order_of_instances(trace, instances, &order);
  ck_assert_int_eq(planc_status_code(status), PLANC_BAD_INPUT);
  ck_assert_msg(strstr(planc_status_message(status), why) != NULL, "%s", planc_status_message(status));
  ck_assert_ptr_null(order);
  planc_status_free(status);
}

/* Of a legal order in which two instances change places: taken where it is legal still, else refused. */
START_TEST(orders_that_change_versions_are_refused) {
  planc_graph *graphs[2];
  planc_trace *trace = draw_trace(_i, graphs, 1);
  uint64_t state = (uint64_t)_i;
  int32_t n = trace->n_instances, *instances = calloc((size_t)n + 1, sizeof *instances);
  for (int k = 0; k < 20; k++) {
    randorder_draw(trace, &state, instances);
    int32_t a = (int32_t)rand_below(&state, n), b = (int32_t)rand_below(&state, n), was = instances[a];
    instances[a] = instances[b];
    instances[b] = was;
    if (is_legal(trace, instances)) {
      planc_order *order;
      bool same = true;
      for (int32_t i = 0; i < n; i++) same = same && instances[i] == i;
      ok(planc_order_of_instances(trace, instances, &order));
      ck_assert(planc_order_is_of_trace(order) == same);
      planc_order_free(order);
      ok(planc_order_of_trace(trace, &order));
      ck_assert(planc_order_is_of_trace(order));
      planc_order_free(order);
    } else {
      refused(trace, instances, "meets version");
    }
  }
  instances[n - 1] = n;
  refused(trace, instances, "the trace has no instance");
  instances[n - 1] = -1;
  refused(trace, instances, "the trace has no instance");
  randorder_draw(trace, &state, instances);
  if (n > 1) instances[n - 1] = instances[0];
  if (n > 1) refused(trace, instances, "has run before");
  free(instances);
  planc_trace_free(trace);
  planc_graph_free(graphs[0]);
}
END_TEST

static int n_recomputes; /* of all random schedules */

START_TEST(orders_of_schedules_are_found_by_search) {
  planc_graph *graph;
  randcase c;
  planc_order *order;
  randgraph_options options = {.max_ops = 25};
  n_recomputes = 0;
  for (uint64_t seed = 0; seed < 60; seed++) {
    ok(randgraph_make(UINT64_C(400) + seed, &options, &graph));
    ok(randcase_make(seed, graph, profile, 1 + (int32_t)(seed % 3), &c));
    ok(randschedule_make(seed, NULL, &c));
    ok(planc_order_of_schedule(c.candidate.schedule, &order));
    int32_t position = 0;
    for (int32_t k = 0; k < planc_schedule_n_commands(c.candidate.schedule); k++) {
      const planc_command *command = &planc_schedule_commands(c.candidate.schedule)[k];
      if (command->kind != PLANC_CMD_EXEC) continue;
      ck_assert_int_lt(position, order->n);
      ck_assert_int_eq(order->runs[position].instance, command->instance);
      ck_assert_int_eq(order->runs[position++].recompute, command->recompute);
      n_recomputes += command->recompute;
    }
    ck_assert_int_eq(position, order->n);
    check(order);
    planc_order_free(order);
    randcase_free(&c);
    planc_graph_free(graph);
  }
  ck_assert_int_gt(n_recomputes, 50);
}
END_TEST

/* --- By hand ------------------------------------------------------------------------------------------------------ */

/* Two branches, of which the trace runs one after the other. */
static const char branches[] =
    "planc-graph: 1\nname: branches\noutputs: [z]\ntensors:\n  x: input f32[N,64]\n  a: f32[N,640]\n  b: f32[N,640]\n"
    "  c: f32[N,64]\n  d: f32[N,64]\n  z: f32[N,64]\nops:\n"
    "  - {op: a, type: t.a, in: [x], out: [a]}\n  - {op: b, type: t.b, in: [x], out: [b]}\n"
    "  - {op: c, type: t.c, in: [a], out: [c]}\n  - {op: d, type: t.d, in: [b], out: [d]}\n"
    "  - {op: z, type: t.z, in: [c, d], out: [z]}\n";

/* One branch after the other takes less memory than both side by side. */
START_TEST(another_order_may_take_less) {
  static const int32_t instances[] = {0, 2, 1, 3, 4};
  int64_t one = 1;
  planc_graph *graph = graph_of(branches);
  planc_job job = {.graph = graph, .batch = 1, .n_rounds = 1, .rounds = &one, .iterations = 1};
  planc_trace *trace;
  planc_order *order;
  planc_memory_needs needs;
  ok(planc_expand(&job, 1, &trace));
  ok(planc_order_of_trace(trace, &order));
  ok(planc_memory_needs_of(order, &needs));
  ck_assert_int_eq(needs.liveness_bytes, INT64_C(4) * (640 + 640 + 64)); /* a, b, and x or c */
  planc_order_free(order);
  ok(planc_order_of_instances(trace, instances, &order));
  ok(planc_memory_needs_of(order, &needs));
  ck_assert_int_eq(needs.liveness_bytes, INT64_C(4) * (640 + 64 + 64)); /* a or b, and two more */
  planc_order_free(order);
  planc_trace_free(trace);
  planc_graph_free(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("order");
  TCase *tests = tcase_create("all");
  tcase_set_timeout(tests, 60);
  tcase_add_unchecked_fixture(tests, read_profile, free_profile);
  tcase_add_loop_test(tests, orders_of_instances_are_found_by_search, 0, 40);
  tcase_add_loop_test(tests, orders_that_change_versions_are_refused, 0, 40);
  tcase_add_test(tests, orders_of_schedules_are_found_by_search);
  tcase_add_test(tests, another_order_may_take_less);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
