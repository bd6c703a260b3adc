/* Every policy on random graphs: whatever is planned passes the checker, keeps its budget, is the same twice, and runs
 * to the reference's bits, in file order, in any order its events allow, and with its streams running at once under
 * random delays. On tiny graphs no policy beats the best of
 * all schedules. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost/profile.h"
#include "planc/analysis.h"
#include "planc/check.h"
#include "planc/needs.h"
#include "planc/policy.h"
#include "planrt/planrt.h"
#include "tests/support/graphtext.h"
#include "tests/support/least.h"
#include "tests/support/nets.h"
#include "tests/support/plan_view.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

enum { GRAPHS = 100, GRAPHS_RUN = 48, GRAPHS_ON_GPUS = 24, INTERLEAVINGS = 20 };

static void ok_for(planc_status status, const char *what, const char *policy, int seed) {
  ck_assert_msg(!status, "%s: %s, graph %d: %s", what, policy, seed, planc_status_message(status));
}

static planc_profile *profile;

static void read_profile(void) {
  ok_for(planc_profile_read("profiles/k40m.json", &profile), "profile", "k40m", 0);
}
static void free_profile(void) {
  planc_profile_free(profile);
}

/* The plan runs to the reference's bits; a session with `verify` fails at the first difference. */
static void runs_right(const planc_plan *plan, const char *policy, int seed) {
  planrt_options options = {.seed = (uint64_t)seed, .synthetic = true, .verify = true, .poison = true};
  planrt_session *session;
  ok_for(planrt_session_new(plan, &options, &session), "session", policy, seed);
  ok_for(planrt_init(session), "init", policy, seed);
  ok_for(planrt_run(session, 3), "run", policy, seed);
  planrt_session_free(session);
  options.concurrent = true;
  options.jitter = (uint64_t)seed + 1;
  ok_for(planrt_session_new(plan, &options, &session), "session", policy, seed);
  ok_for(planrt_init(session), "init", policy, seed);
  ok_for(planrt_run(session, 2), "concurrent", policy, seed);
  planrt_session_free(session);
  options.concurrent = options.poison = false;
  options.jitter = 0;
  ok_for(planrt_session_new(plan, &options, &session), "session", policy, seed);
  ok_for(planrt_init(session), "init", policy, seed);
  for (int i = 0; i < INTERLEAVINGS; i++) {
    ok_for(planrt_run_interleaved(session, 2, (uint64_t)(seed * INTERLEAVINGS + i)), "interleaved", policy, seed);
  }
  planrt_session_free(session);
}

static void is_deterministic(const planc_problem *problem, const planc_policy *policy, const planc_plan *plan,
                             int seed) {
  planc_plan *again;
  ok_for(planc_make_plan(problem, policy, &again), "plan again", policy->name, seed);
  char *a, *b;
  size_t a_length, b_length;
  ok_for(planc_plan_print(plan, &a, &a_length), "print", policy->name, seed);
  ok_for(planc_plan_print(again, &b, &b_length), "print", policy->name, seed);
  ck_assert_msg(a_length == b_length && memcmp(a, b, a_length) == 0, "%s, graph %d: other bytes", policy->name, seed);
  free(a);
  free(b);
  planc_plan_free(again);
}

/* Virtual memory loses less than a chunk for each piece of data larger than one (papers: out-of-core, Eqs. 1 and 2). */
static void loses_less_than_the_bound(const planc_plan *plan, const planc_policy *policy, int seed) {
  planc_fragmentation lost;
  ok_for(planc_fragmentation_of(plan, &lost), "fragmentation", policy->name, seed);
  ck_assert_int_eq(lost.live_bytes + lost.lost_bytes, device_of(plan)->arena_bytes);
  if (device_of(plan)->chunk_bytes == 0) return;
  ck_assert_int_le(lost.shared_bytes, device_of(plan)->arena_bytes);
  if (lost.most_at_once == 0) ck_assert_int_eq(lost.inside_bytes, 0);
  if (lost.most_at_once == 0) return;
  ck_assert_msg(lost.inside_bytes < lost.bound_bytes, "%s, graph %d: %lld bytes lost inside chunks, the bound is %lld",
                policy->name, seed, (long long)lost.inside_bytes, (long long)lost.bound_bytes);
}

/* Plans at `budget`; false when that is not feasible. */
static bool plan_is_right(planc_problem problem, int64_t budget, const planc_policy *policy, int seed) {
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = budget;
  planc_plan *plan;
  planc_status status = planc_make_plan(&problem, policy, &plan);
  if (planc_status_code(status) == PLANC_INFEASIBLE) {
    planc_status_free(status);
    return false;
  }
  ok_for(status, "plan", policy->name, seed);
  planc_check_report report;
  ok_for(planc_check(plan, NULL, &report), "check", policy->name, seed);
  ck_assert_int_le(report.peak_bytes[PLANC_MEMORY_DEVICE], budget);
  ck_assert_int_eq(report.peak_bytes[PLANC_MEMORY_DEVICE], plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE]);
  loses_less_than_the_bound(plan, policy, seed);
  is_deterministic(&problem, policy, plan, seed);
  runs_right(plan, policy->name, seed);
  planc_plan_free(plan);
  return true;
}

/* The plans of these follow the budget, so that a few do not settle which is the least. */
static bool is_searched(const planc_policy *policy) {
  static const char *const names[] = {"best", "vdnn+", "modnn", "lms", "tensile", "window", "auto", "priced"};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    if (strcmp(policy->name, names[k]) == 0) return true;
  return false;
}

/* At the least budget, just below it, and above it. There are thousands of plans, so that searches are short. */
static void policy_is_right(planc_problem problem, const planc_policy *policy, int seed) {
  planc_least found;
  if (policy->supports & PLANC_POLICY_SEARCHES) problem.terms.settings.effort = 1;
  ok_for(planc_find_least(&problem, policy, PLANC_MEMORY_DEVICE, NULL, &found), "least budget", policy->name, seed);
  int64_t least = found.bytes;
  planc_plan_free(found.plan);
  ck_assert_msg(found.is_least || is_searched(policy), "%s, graph %d: not settled", policy->name, seed);
  ck_assert_msg(plan_is_right(problem, least, policy, seed), "%s, graph %d: least budget fails", policy->name, seed);
  ck_assert_msg(!found.is_least || !plan_is_right(problem, least - PLANC_ALIGNMENT, policy, seed),
                "%s, graph %d: less than least fits", policy->name, seed);
  plan_is_right(problem, least + least / 8, policy, seed);
  plan_is_right(problem, 2 * least, policy, seed);
}

START_TEST(plans_of_random_graphs_are_right) {
  int seed = _i;
  planc_graph *graph;
  randgraph_options options = {.max_ops = 24,
                               .max_elements = seed % 8 == 1 ? 2048 : 0,
                               .allow_batch_coupled = seed % 4 == 0,
                               .unsplittable = seed % 4 == 2};
  ok_for(randgraph_make((uint64_t)seed, &options, &graph), "graph", "", seed);
  planc_problem problem = {
      .job.graph = graph, .job.profile = profile, .job.batch = 1 + seed % 7, .terms.budgets[PLANC_MEMORY_HOST] = -1};
  for (const planc_policy *policy = planc_policies(); policy->name; policy++) {
    if (policy->supports & PLANC_POLICY_SIMULATED) continue;
    if (policy->supports & PLANC_POLICY_CHOOSES && seed % 3 > 0) continue; /* it makes the plans of all others */
    policy_is_right(problem, policy, seed);
    bool has_chunks = policy->supports & PLANC_POLICY_VMM, has_pages = policy->supports & PLANC_POLICY_PAGED;
    if (!has_chunks && !has_pages) continue;
    planc_problem mapped = problem;
    mapped.terms.placement = has_pages && (seed % 3 == 0 || !has_chunks) ? PLANC_PLACEMENT_PAGED : PLANC_PLACEMENT_VMM;
    mapped.terms.chunk_bytes = 4096;
    policy_is_right(mapped, policy, seed);
  }
  planc_graph_free(graph);
}
END_TEST

/* What is left of the last page of a budget is of no use, and in nobody's way. */
START_TEST(a_budget_counts_whole_pages) {
  enum { PAGE = 64 << 10 };
  static const int64_t budgets[] = {12 * PAGE, 13 * PAGE - 256};
  int64_t ns[2];
  planc_graph *forward, *graph;
  ok(planc_graph_read("graphs/lenet-digits.yaml", &forward));
  ok(planc_graph_train(forward, PLANC_SGD, &graph));
  planc_graph_free(forward);
  for (int k = 0; k < 2; k++) {
    planc_plan *plan;
    planc_problem problem = {.job.graph = graph,
                             .job.profile = profile,
                             .job.batch = 64,
                             .terms.placement = PLANC_PLACEMENT_PAGED,
                             .terms.chunk_bytes = PAGE,
                             .terms.budgets = {budgets[k], -1}};
    ok(planc_make_plan(&problem, planc_policy_find("priced"), &plan));
    ns[k] = plan->predicted.period_ns;
    planc_plan_free(plan);
  }
  ck_assert_int_eq(ns[1], ns[0]);
  planc_graph_free(graph);
}
END_TEST

/* On two and three GPUs: at the least budget and above it. */
START_TEST(plans_for_several_gpus_are_right) {
  int seed = 3000 + _i;
  planc_graph *graph;
  randgraph_options options = {.max_ops = 12, .max_elements = seed % 8 == 1 ? 1024 : 0};
  ok_for(randgraph_make((uint64_t)seed, &options, &graph), "graph", "", seed);
  planc_problem problem = {.job.graph = graph,
                           .job.profile = profile,
                           .job.batch = 1 + seed % 3,
                           .terms.gpus = 2 + _i % 2,
                           .terms.budgets[PLANC_MEMORY_HOST] = -1};
  problem.terms.chunk_bytes = 4096;
  problem.terms.shared_link = _i % 4 < 2;
  for (const planc_policy *policy = planc_policies(); policy->name; policy++) {
    if (policy->supports & PLANC_POLICY_SIMULATED) continue;
    problem.terms.settings.effort = policy->supports & PLANC_POLICY_SEARCHES ? 1 : 0;
    problem.terms.placement = PLANC_PLACEMENT_BEST_FIT;
    if (_i % 3 == 0 && (policy->supports & PLANC_POLICY_PAGED)) problem.terms.placement = PLANC_PLACEMENT_PAGED;
    if (_i % 6 == 0 && (policy->supports & PLANC_POLICY_VMM)) problem.terms.placement = PLANC_PLACEMENT_VMM;
    int64_t least;
    ok_for(find_least_bytes(&problem, policy, &least), "least budget", policy->name, seed);
    ck_assert_msg(plan_is_right(problem, least, policy, seed), "%s, graph %d: least budget fails", policy->name, seed);
    plan_is_right(problem, 2 * least, policy, seed);
  }
  planc_graph_free(graph);
}
END_TEST

/* A plan without swaps that is faster states what the user asked for, and not how it was found. */
START_TEST(a_plan_without_swaps_states_what_was_asked) {
  planc_graph *forward, *graph;
  planc_plan *plan;
  ok(planc_graph_read("graphs/lenet-digits.yaml", &forward));
  ok(planc_graph_train(forward, PLANC_MOMENTUM, &graph));
  planc_graph_free(forward);
  planc_problem problem = {.job.graph = graph,
                           .job.profile = profile,
                           .job.batch = 16,
                           .job.swap_rate = 100000,
                           .terms.gpus = 4,
                           .terms.shared_link = true,
                           .terms.budgets = {280 << 10, -1}};
  ok(planc_make_plan(&problem, planc_policy_find("tensile"), &plan));
  ck_assert_ptr_nonnull(strstr(plan->explanation, "without swaps"));
  ck_assert_int_eq(plan->settings.swap_rate, 100000);
  ck_assert_int_eq(plan->settings.no_swap, 0);
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

/* These let params and state leave the device. */
static bool parks(const planc_policy *policy) {
  static const char *const names[] = {"best", "tensile", "window", "auto", "priced"};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    if (strcmp(policy->name, names[k]) == 0) return true;
  return false;
}

/* Nobody can run an op without its operands; where what persists stays as well, Eq. 2 (without workspace) says what
 * they are. */
START_TEST(no_policy_goes_below_the_lower_bound) {
  int seed = 1000 + _i;
  planc_graph *graph;
  randgraph_options options = {.max_ops = 12};
  ok_for(randgraph_make((uint64_t)seed, &options, &graph), "graph", "", seed);
  planc_problem problem = {
      .job.graph = graph, .job.profile = profile, .job.batch = 1, .terms.budgets[PLANC_MEMORY_HOST] = -1};
  planc_job job = {.graph = graph, .batch = 1, .n_rounds = 1, .rounds = &problem.job.batch, .iterations = 1};
  planc_trace *trace;
  ok_for(planc_expand(&job, 1, &trace), "expand", "", seed);
  int64_t persistent = 0, largest = 0, largest_of_all = 0;
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    if (trace->buffers[b].flags & PLANC_BUFFER_PERSISTENT) persistent += trace->buffers[b].bytes;
  }
  for (int32_t i = 0; i < trace->n_instances; i++) {
    const planc_instance *instance = &trace->instances[i];
    int64_t bytes = planc_instance_bytes(trace, i), of_all = 0;
    for (int32_t a = 0; a < instance->n_accesses; a++)
      of_all += trace->buffers[trace->accesses[instance->first_access + a].buffer].bytes;
    if (bytes > largest) largest = bytes;
    if (of_all > largest_of_all) largest_of_all = of_all;
  }
  planc_trace_free(trace);
  for (const planc_policy *policy = planc_policies(); policy->name; policy++) {
    if (policy->supports & PLANC_POLICY_SIMULATED) continue;
    int64_t least, bound = parks(policy) ? largest_of_all : persistent + largest;
    ok_for(find_least_bytes(&problem, policy, &least), "least budget", policy->name, seed);
    ck_assert_msg(least >= bound, "%s, graph %d: %lld below %lld", policy->name, seed, (long long)least,
                  (long long)bound);
  }
  planc_graph_free(graph);
}
END_TEST

static int64_t room_of(const planc_buffer *buffer) {
  int64_t bytes = buffer->bytes > 0 ? buffer->bytes : 1;
  return (bytes + PLANC_ALIGNMENT - 1) / PLANC_ALIGNMENT * PLANC_ALIGNMENT;
}

/* moDNN promises a schedule for every budget from Eq. 2 on (IV-A): counted in aligned sizes, that is its least budget.
 */
START_TEST(modnn_reaches_its_lower_bound) {
  int seed = 2000 + _i;
  planc_graph *graph;
  randgraph_options options = {.max_ops = 16};
  ok_for(randgraph_make((uint64_t)seed, &options, &graph), "graph", "", seed);
  planc_problem problem = {
      .job.graph = graph, .job.profile = profile, .job.batch = 1, .terms.budgets[PLANC_MEMORY_HOST] = -1};
  planc_job job = {.graph = graph, .batch = 1, .n_rounds = 1, .rounds = &problem.job.batch, .iterations = 1};
  planc_trace *trace;
  ok_for(planc_expand(&job, 1, &trace), "expand", "", seed);
  int64_t resident = 0, largest = 0, least;
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    bool stays = planc_kind_persists(buffer->kind) || buffer->kind == PLANC_KIND_grad;
    if (stays) resident += room_of(buffer);
  }
  for (int32_t i = 0; i < trace->n_instances; i++) {
    const planc_instance *instance = &trace->instances[i];
    int64_t bytes = 0;
    for (int32_t a = instance->first_access; a < instance->first_access + instance->n_accesses; a++) {
      const planc_buffer *buffer = &trace->buffers[trace->accesses[a].buffer];
      bool stays = planc_kind_persists(buffer->kind) || buffer->kind == PLANC_KIND_grad;
      if (!stays) bytes += room_of(buffer);
    }
    if (bytes > largest) largest = bytes;
  }
  planc_trace_free(trace);
  ok_for(find_least_bytes(&problem, planc_policy_find("modnn"), &least), "least budget", "modnn", seed);
  ck_assert_msg(least <= resident + largest, "graph %d: least budget %lld, Eq. 2 says %lld", seed, (long long)least,
                (long long)(resident + largest));
  planc_graph_free(graph);
}
END_TEST

/* Where links are slow, prefetches must start thousands of ops ahead: looking that far before each op would not end. */
START_TEST(modnn_does_not_look_ahead_without_end) {
  static const char text[] =
      "planc-graph: 1\nname: g\nlayout: NCHW\noptimizer: adam\noutputs: [probs]\nloss: loss\ntensors:\n"
      "  x: input f32[N,4,8,8]\n  labels: input i64[N]\n  w1: param f32[16,4,5,5]\n  y1: f32[N,16,8,8]\n"
      "  y3: f32[N,16,8,8]\n  y4: f32[N,16,8,8]\n  flat: f32[N,1024] of y4\n  f.w: param f32[10,1024]\n"
      "  f.b: param f32[10]\n  f.y: f32[N,10]\n  loss: f32[]\n  probs: f32[N,10]\nops:\n"
      "  - {op: conv1, type: conv2d, in: [x, w1], out: [y1], attrs: {stride: [1, 1], pad: [2, 2]}}\n"
      "  - {op: relu3, type: relu, in: [y1], out: [y3]}\n  - {op: add4, type: add, in: [y3, y1], out: [y4]}\n"
      "  - {op: fc, type: linear, in: [flat, f.w, f.b], out: [f.y]}\n"
      "  - {op: loss, type: softmax_xent, in: [f.y, labels], out: [loss, probs]}\n";
  planc_graph *forward = graph_of(text), *graph;
  planc_profile slow = *profile;
  planc_plan *plan;
  ok(planc_graph_train(forward, PLANC_ADAM, &graph));
  slow.device.links[PLANC_ROUTE_H2D] = slow.device.links[PLANC_ROUTE_D2H] =
      (planc_link){.bytes_per_second = 10000000, .latency_ns = 100};
  planc_problem problem = {.job.graph = graph,
                           .job.profile = &slow,
                           .job.batch = 10000,
                           .terms.budgets[PLANC_MEMORY_DEVICE] = 2794440,
                           .terms.budgets[PLANC_MEMORY_HOST] = -1};
  ok(planc_make_plan(&problem, planc_policy_find("modnn"), &plan));
  ok(planc_check(plan, NULL, NULL));
  planc_plan_free(plan);
  planc_graph_free(graph);
  planc_graph_free(forward);
}
END_TEST

/* Numbers that no plan can hold. */
static void expect_refused(const planc_problem *problem, const char *why) {
  planc_plan *plan;
  for (const planc_policy *policy = planc_policies(); policy->name; policy++)
    assert_fails(planc_make_plan(problem, policy, &plan), PLANC_USAGE, why);
}

START_TEST(what_no_plan_can_hold_is_refused) {
  planc_graph *graph = graph_of(WIDE_NET);
  const planc_problem may = {.job.graph = graph,
                             .job.profile = profile,
                             .job.batch = 4,
                             .terms.budgets[PLANC_MEMORY_DEVICE] = 1 << 30,
                             .terms.budgets[PLANC_MEMORY_HOST] = -1};
#define REFUSED(field, value, why) \
  do {                             \
    planc_problem problem = may;   \
    problem.field = (value);       \
    expect_refused(&problem, why); \
  } while (0)
  REFUSED(job.batch, INT64_MAX, "a batch of 9223372036854775807: from 1 to 2^53");
  REFUSED(job.batch, 0, "a batch of 0: from 1 to 2^53");
  REFUSED(job.sub_batch, -3, "a sub-batch of -3");
  REFUSED(job.link_ppm, -1, "-1 parts per million of a link");
  REFUSED(job.priority, PLANC_MAX_PRIORITY + 1, "a priority of 6: from 0 to 5");
  REFUSED(terms.gpus, -5, "-5 GPUs");
  REFUSED(terms.budgets[PLANC_MEMORY_DEVICE], (INT64_C(1) << 53) + 1,
          "a budget of 9007199254740993 bytes: from 0 to 2^53");
  REFUSED(terms.budgets[PLANC_MEMORY_DEVICE], -1, "a budget of -1 bytes: from 0 to 2^53");
  REFUSED(terms.budgets[PLANC_MEMORY_HOST], -2, "a budget of -2 bytes: from 0 to 2^53, or -1 for none");
  REFUSED(terms.budgets[PLANC_MEMORY_STORAGE], -1, "the profile of device k40m says nothing of storage");
  REFUSED(terms.code_bytes, -1, "code of -1 bytes");
  REFUSED(terms.beat_ns, -1, "a period to beat of -1 ns");
  REFUSED(terms.placement, (planc_placement)7, "placement 7");
#undef REFUSED
  planc_graph_free(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("policies");
  TCase *tests = tcase_create("all");
  tcase_set_timeout(tests, 300);
  tcase_add_unchecked_fixture(tests, read_profile, free_profile);
  tcase_add_loop_test(tests, plans_of_random_graphs_are_right, 0, sampled(GRAPHS_RUN));
  tcase_add_test(tests, a_plan_without_swaps_states_what_was_asked);
  tcase_add_test(tests, a_budget_counts_whole_pages);
  tcase_add_loop_test(tests, plans_for_several_gpus_are_right, 0, sampled(GRAPHS_ON_GPUS));
  tcase_add_loop_test(tests, no_policy_goes_below_the_lower_bound, 0, sampled(GRAPHS));
  tcase_add_loop_test(tests, modnn_reaches_its_lower_bound, 0, sampled(GRAPHS));
  tcase_add_test(tests, modnn_does_not_look_ahead_without_end);
  tcase_add_test(tests, what_no_plan_can_hold_is_refused);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
