/* What the baselines do at branches, on ResNet-34: a block's input is read by its first convolution and by the
 * shortcut. The rules are those stated at the head of vdnn.c, chen.c and cheap.c, told here from the trace alone. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "graph/optypes.h"
#include "planc/policy.h"
#include "tests/support/plan_view.h"
#include "tests/support/unit.h"

static planc_profile *profile;
static planc_graph *graph;
static planc_trace *trace;

static void set_up(void) {
  planc_graph *forward;
  ok(planc_profile_read("profiles/k40m.json", &profile));
  ok(planc_graph_read("graphs/resnet34.yaml", &forward));
  ok(planc_graph_train(forward, PLANC_SGD, &graph));
  planc_graph_free(forward);
  static const int64_t rounds[] = {2};
  planc_job job = {.graph = graph, .batch = 2, .n_rounds = 1, .rounds = rounds, .iterations = 1};
  ok(planc_expand(&job, 1, &trace));
}

static void tear_down(void) {
  planc_trace_free(trace);
  planc_graph_free(graph);
  planc_profile_free(profile);
}

static planc_plan *make(const char *policy) {
  planc_problem problem = {.job.graph = graph,
                           .job.profile = profile,
                           .job.batch = 2,
                           .terms.budgets[PLANC_MEMORY_DEVICE] = INT64_C(8) << 30,
                           .terms.budgets[PLANC_MEMORY_HOST] = -1};
  planc_plan *plan;
  ok(planc_make_plan(&problem, planc_policy_find(policy), &plan));
  return plan;
}

static planc_phase phase_of(int32_t instance) {
  return planc_trace_op(trace, instance)->phase;
}
static planc_class class_of(int32_t instance) {
  return pl_op_class(planc_trace_op(trace, instance));
}

/* Forward readers of a buffer: how many, the last, whether one is a convolution; and whether backward reads it. */
typedef struct use {
  int32_t readers, last_reader;
  bool by_conv, in_backward;
} use;

static use use_of(int32_t buffer) {
  use u = {.last_reader = -1};
  const planc_buffer *b = &trace->buffers[buffer];
  for (int32_t i = b->first_access; i < b->first_access + b->n_accesses; i++) {
    const planc_access *access = &trace->accesses[trace->by_buffer[i]];
    if (phase_of(access->instance) == PLANC_PHASE_backward) u.in_backward |= access->read >= 0;
    if (phase_of(access->instance) != PLANC_PHASE_forward || access->read < 0 || access->write >= 0) continue;
    u.readers++;
    u.last_reader = access->instance;
    u.by_conv |= class_of(access->instance) == PLANC_CLASS_conv;
  }
  return u;
}

/* For every buffer the forward instance during which a plan offloads it to the host: the one whose exec stands next.
 * Afterwards the buffer must be gone before another op runs. */
static void find_offloads(const planc_plan *plan, int32_t *during) {
  int32_t *buffer_of = calloc((size_t)plan->n_residencies, sizeof *buffer_of);
  for (int32_t b = 0; b < trace->n_buffers; b++) during[b] = -1;
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (instr->op == PLANC_INSTR_acquire) buffer_of[instr->id] = instr->aux;
    if (!swaps_out(plan, instr)) continue;
    int32_t buffer = buffer_of[instr->aux], execs = 0;
    ck_assert_msg(during[buffer] == -1, "%s is offloaded twice", planc_trace_buffer_name(trace, buffer));
    for (int32_t k = i + 1; execs < 2; k++) {
      const planc_instr *next = &plan->body.instrs[k];
      if (next->op == PLANC_INSTR_release && next->id == instr->aux) break;
      if (next->op != PLANC_INSTR_exec) continue;
      if (++execs == 1) during[buffer] = next->id;
    }
    ck_assert_msg(execs == 1, "%s outlives the layer that offloads it", planc_trace_buffer_name(trace, buffer));
  }
  free(buffer_of);
}

static void offloads_by_the_rule(const char *policy, bool only_conv) {
  planc_plan *plan = make(policy);
  int32_t *during = calloc((size_t)trace->n_buffers, sizeof *during);
  find_offloads(plan, during);
  int32_t last_layer = -1, branches = 0, offloaded = 0;
  for (int32_t i = 0; i < trace->n_instances && phase_of(i) == PLANC_PHASE_forward; i++) {
    if (class_of(i) == PLANC_CLASS_conv || class_of(i) == PLANC_CLASS_gemm) last_layer = i;
  }
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    use u = use_of(b);
    bool data = trace->buffers[b].kind == PLANC_KIND_activation;
    bool leaves =
        data && u.in_backward && u.last_reader >= 0 && u.last_reader != last_layer && (u.by_conv || !only_conv);
    ck_assert_msg((during[b] >= 0) == leaves, "%s: %s %s", policy, planc_trace_buffer_name(trace, b),
                  leaves ? "stays" : "is offloaded");
    if (!leaves) continue;
    ck_assert_int_eq(during[b], u.last_reader);
    offloaded++;
    branches += u.readers > 1;
  }
  ck_assert_int_gt(offloaded, 30);
  ck_assert_int_gt(branches, 10); /* ResNet-34 has 16 blocks */
  free(during);
  planc_plan_free(plan);
}

START_TEST(vdnn_offloads_at_the_last_reader) {
  offloads_by_the_rule("vdnn-all", false);
  offloads_by_the_rule("vdnn-conv", true);
}
END_TEST

/* Recomputed instances of a plan. */
static bool *find_recomputed(const planc_plan *plan) {
  bool *again = calloc((size_t)trace->n_instances, sizeof *again);
  for (int32_t i = 0; i < plan->body.n; i++) {
    if (plan->body.instrs[i].op == PLANC_INSTR_exec && plan->body.instrs[i].recompute) {
      again[plan->body.instrs[i].id] = true;
    }
  }
  return again;
}

START_TEST(cheap_never_runs_a_convolution_again) {
  planc_plan *plan = make("cheap");
  bool *again = find_recomputed(plan);
  int32_t norms = 0;
  for (int32_t i = 0; i < trace->n_instances; i++) {
    bool dear = class_of(i) == PLANC_CLASS_conv || class_of(i) == PLANC_CLASS_gemm;
    ck_assert_msg(!(again[i] && dear), "%s runs again", planc_trace_op(trace, i)->name);
    norms += again[i] && class_of(i) == PLANC_CLASS_norm;
  }
  ck_assert_int_gt(norms, 30); /* of 36 */
  free(again);
  planc_plan_free(plan);
}
END_TEST

/* What is alive across a cut is kept: its writer runs once. Nothing runs more than twice. */
START_TEST(chen_keeps_what_crosses_a_cut) {
  planc_plan *plan = make("chen");
  bool *again = find_recomputed(plan);
  int32_t n = 0, length = 1, recomputed = 0;
  while (phase_of(n) == PLANC_PHASE_forward) n++;
  while (length * length < n) length++;
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    use u = use_of(b);
    const planc_access *first = &trace->accesses[trace->by_buffer[trace->buffers[b].first_access]];
    bool kept = first->write >= 0 && u.last_reader >= 0 && first->instance / length != u.last_reader / length;
    if (kept && u.in_backward && trace->buffers[b].kind == PLANC_KIND_activation) {
      int32_t times = 0;
      for (int32_t i = 0; i < plan->body.n; i++) {
        times += acquires_on_device(plan, &plan->body.instrs[i]) && plan->body.instrs[i].aux == b;
      }
      ck_assert_msg(times == 1, "%s crosses a cut and is acquired %d times", planc_trace_buffer_name(trace, b), times);
    }
  }
  for (int32_t i = 0; i < n; i++) recomputed += again[i];
  ck_assert_int_gt(recomputed, n / 2);
  ck_assert(!again[n - 1]);
  free(again);
  planc_plan_free(plan);
}
END_TEST

/* Gradients of an iteration of one round come and go: no policy may count all of them before it tries, nor take rounds
 * that do not fit instead. */
START_TEST(a_policy_does_with_what_its_plan_takes) {
  static const char *const names[] = {"none", "vdnn-dyn", "vdnn+", "modnn", "chen", "cheap"};
  planc_graph *recorded;
  ok(planc_graph_read("graphs/recorded/lstm4.yaml", &recorded));
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    planc_problem problem = {.job.graph = recorded,
                             .job.profile = profile,
                             .job.batch = 16,
                             .terms.budgets[PLANC_MEMORY_DEVICE] = INT64_C(1) << 42,
                             .terms.budgets[PLANC_MEMORY_HOST] = -1};
    planc_plan *plan;
    ok(planc_make_plan(&problem, planc_policy_find(names[k]), &plan));
    int64_t peak = plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE];
    planc_plan_free(plan);
    for (int percent = 0; percent < 4; percent++) {
      problem.terms.budgets[PLANC_MEMORY_DEVICE] = peak + peak / 100 * percent;
      ok_in(planc_make_plan(&problem, planc_policy_find(names[k]), &plan), names[k]);
      ck_assert_int_le(plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE], problem.terms.budgets[PLANC_MEMORY_DEVICE]);
      planc_plan_free(plan);
    }
  }
  planc_graph_free(recorded);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("baselines");
  TCase *tests = tcase_create("all");
  tcase_add_unchecked_fixture(tests, set_up, tear_down);
  tcase_add_test(tests, vdnn_offloads_at_the_last_reader);
  tcase_add_test(tests, cheap_never_runs_a_convolution_again);
  tcase_add_test(tests, chen_keeps_what_crosses_a_cut);
  tcase_add_test(tests, a_policy_does_with_what_its_plan_takes);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
