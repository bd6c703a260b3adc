/* Graphs from elsewhere: ops of foreign types whose class and whether they may run again the file says, optimizers
 * between the backward ops, and what steers the policies that may swap or recompute: both switches and the host's
 * budget. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "graph/optypes.h"
#include "planc/check.h"
#include "planc/policy.h"
#include "tests/support/graphtext.h"
#include "tests/support/least.h"
#include "tests/support/plan_view.h"
#include "tests/support/unit.h"
#include "util/file.h"

enum { LAYERS = 6, TEXT = 8192 };

static planc_profile *profile;

static void read_profile(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
}
static void free_profile(void) {
  planc_profile_free(profile);
}

/* A chain of layers, each a dear op and a cheap one on it. The backward op of a layer reads what both made and is
 * followed by the layer's update, so that all but the last backward op stand among the optimizer's. `of_dear` and
 * `of_cheap` are further keys of the forward ops. */
static planc_graph *make_net(const char *of_dear, const char *of_cheap) {
  char text[TEXT];
  size_t at = 0;
#define PUT(...) at += (size_t)snprintf(&text[at], sizeof text - at, __VA_ARGS__)
  PUT("planc-graph: 1\nname: net\ntensors:\n  c0: input f32[N,16384]\n");
  for (int i = 1; i <= LAYERS; i++) {
    PUT("  w%d: param f32[64]\n  d%d: f32[N,16384]\n  c%d: f32[N,16384]\n  g%d: f32[N,16384]\n", i, i, i, i);
  }
  PUT("  g%d: f32[N,16384]\nops:\n", LAYERS + 1);
  for (int i = 1; i <= LAYERS; i++) {
    PUT("  - {op: dear%d, type: sim.conv, in: [c%d, w%d], out: [d%d]%s}\n", i, i - 1, i, i, of_dear);
    PUT("  - {op: cheap%d, type: sim.add, in: [d%d], out: [c%d]%s}\n", i, i, i, of_cheap);
  }
  PUT("  - {op: top, type: sim.loss, in: [c%d], out: [g%d]}\n", LAYERS, LAYERS + 1);
  for (int i = LAYERS; i >= 1; i--) {
    PUT("  - {op: back%d, type: sim.back, phase: %s, in: [c%d, d%d, w%d, g%d], out: [g%d]}\n", i,
        i < LAYERS ? "optimizer" : "backward", i, i, i, i + 1, i);
    PUT("  - {op: step%d, type: sim.step, phase: optimizer, in: [w%d, g%d], out: [w%d]}\n", i, i, i, i);
  }
#undef PUT
  ck_assert_uint_lt(at, sizeof text);
  return graph_of(text);
}

static planc_problem problem_of(const planc_graph *graph) {
  return (planc_problem){.job.graph = graph,
                         .job.profile = profile,
                         .job.batch = 8,
                         .terms.budgets[PLANC_MEMORY_DEVICE] = INT64_C(1) << 40,
                         .terms.budgets[PLANC_MEMORY_HOST] = -1};
}

/* The policy's plan, which must be right, in a share of what `none` takes. */
static planc_plan *plan_in(planc_problem problem, const char *policy, int64_t percent) {
  planc_plan *plan;
  int64_t all;
  ok(find_least_bytes(&problem, planc_policy_find("none"), &all));
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = all * percent / 100;
  ok_in(planc_make_plan(&problem, planc_policy_find(policy), &plan), policy);
  planc_check_options options = {
      .budgets = {problem.terms.budgets[PLANC_MEMORY_DEVICE], problem.terms.budgets[PLANC_MEMORY_HOST]}};
  ok_in(planc_check(plan, &options, NULL), policy);
  return plan;
}

typedef struct counts {
  int recomputed, recomputed_dear, recomputed_cheap, swapped;
} counts;

static counts count(planc_plan *plan) {
  counts out = {0};
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    out.swapped += swaps_out(plan, instr);
    if (instr->op != PLANC_INSTR_exec || !instr->recompute) continue;
    out.recomputed++;
    out.recomputed_dear += instr->id % 2 == 0 && instr->id < 2 * LAYERS;
    out.recomputed_cheap += instr->id % 2 == 1 && instr->id < 2 * LAYERS;
  }
  planc_plan_free(plan);
  return out;
}

/* --- What the file says ------------------------------------------------------------------------------------------- */

START_TEST(a_class_and_once_come_back) {
  planc_graph *graph = make_net(", flags: [no-recompute], class: conv", ", flops: 8N, class: elementwise");
  ck_assert_int_eq(pl_op_class(&graph->ops[0]), PLANC_CLASS_conv);
  ck_assert_int_eq(pl_op_class(&graph->ops[1]), PLANC_CLASS_elementwise);
  ck_assert_uint_eq(graph->ops[0].flags, PLANC_OP_NO_RECOMPUTE);
  char *text = text_of(graph);
  ck_assert_ptr_nonnull(strstr(text, "flags: [no-recompute], class: conv}"));
  planc_graph *again = graph_of(text);
  char *same = text_of(again);
  ck_assert_str_eq(text, same);
  ck_assert_uint_eq(planc_graph_hash(graph), planc_graph_hash(again));
  planc_graph *other = make_net(", flags: [no-recompute], class: pool", ", flops: 8N, class: elementwise");
  ck_assert_uint_ne(planc_graph_hash(graph), planc_graph_hash(other));
  free(text);
  free(same);
  planc_graph_free(other);
  planc_graph_free(again);
  planc_graph_free(graph);
}
END_TEST

/* What goes without saying is not written: a foreign op with FLOPs is a gemm, one without elementwise. */
START_TEST(a_class_is_written_where_it_says_something) {
  planc_graph *graph = make_net(", flops: 8N, class: gemm", ", class: elementwise");
  char *text = text_of(graph);
  ck_assert_ptr_null(strstr(text, "class"));
  free(text);
  planc_graph_free(graph);
}
END_TEST

static void is_refused(const char *op, const char *why) {
  char text[512];
  (void)snprintf(text, sizeof text,
                 "planc-graph: 1\nname: g\noutputs: [y]\ntensors:\n  x: input f32[N,4]\n  y: f32[N,4]\n"
                 "ops:\n  - {op: o, %s, in: [x], out: [y]}\n",
                 op);
  planc_graph *graph;
  planc_status status = planc_graph_parse(text, strlen(text), "g", &graph);
  ck_assert_int_eq(planc_status_code(status), PLANC_BAD_INPUT);
  ck_assert_msg(strstr(planc_status_message(status), why), "%s", planc_status_message(status));
  planc_status_free(status);
}

/* What the kernels of planc's own types do is not the graph's to say. */
START_TEST(flags_of_own_types_are_true) {
  is_refused("type: relu, flags: [accumulates]", "flag accumulates: ops of type relu do not do that");
  is_refused("type: relu, flags: [batch-mean]", "flag batch-mean: ops of type relu do not do that");
}
END_TEST

START_TEST(foreign_types_have_a_prefix) {
  is_refused("type: swish", "g:8:5: op o: type swish is none of planc's");
  is_refused("type: .swish", "is none of planc's");
  is_refused("type: swish.", "is none of planc's");
  is_refused("type: relu, class: conv", "is of class conv, which type relu is not");
  is_refused("type: my.relu, class: cnv", "unknown class");
  int32_t n;
  const planc_optype *types = pl_optypes(&n);
  for (int32_t i = 0; i < n; i++) ck_assert_ptr_null(strchr(types[i].name, '.'));
}
END_TEST

/* --- What may run again ------------------------------------------------------------------------------------------- */

static const char *const choosing[] = {"capuchin", "tensile", "superneurons"};
enum { N_CHOOSING = sizeof choosing / sizeof *choosing };

START_TEST(a_class_tells_what_is_dear) {
  planc_graph *graph = make_net(", class: conv", "");
  counts cheap = count(plan_in(problem_of(graph), "cheap", 150));
  ck_assert_int_gt(cheap.recomputed, 0);
  ck_assert_int_eq(cheap.recomputed_dear, 0);
  planc_graph_free(graph);
  graph = make_net("", "");
  ck_assert_int_gt(count(plan_in(problem_of(graph), "cheap", 150)).recomputed_dear, 0);
  planc_graph_free(graph);
}
END_TEST

START_TEST(what_must_not_run_again_does_not) {
  planc_graph *graph = make_net("", ", flags: [no-recompute]");
  for (const planc_policy *policy = planc_policies(); policy->name; policy++) {
    if (policy->supports & PLANC_POLICY_SIMULATED) continue;
    counts c = count(plan_in(problem_of(graph), policy->name, 100));
    ck_assert_int_eq(c.recomputed_cheap, 0);
  }
  planc_graph_free(graph);
}
END_TEST

/* What such an op made is kept, and what is made from it is restored from there. */
START_TEST(recompute_goes_on_behind_what_must_not_run_again) {
  planc_graph *graph = make_net(", flags: [no-recompute], class: conv", "");
  counts c = count(plan_in(problem_of(graph), "cheap", 100));
  ck_assert_int_gt(c.recomputed, 0);
  ck_assert_int_eq(c.recomputed_dear, 0);
  planc_graph_free(graph);
}
END_TEST

/* What a policy drops is restored in the optimizer's phase too, until the update of what it is made from; c6 and d6 are
 * the only ones that nothing but the backward phase reads. */
START_TEST(recompute_goes_on_among_updates) {
  planc_graph *graph = make_net("", "");
  planc_problem problem = problem_of(graph);
  problem.terms.settings.no_swap = true;
  ck_assert_int_gt(count(plan_in(problem, "chen", 100)).recomputed, 2);
  ck_assert_int_gt(count(plan_in(problem, "capuchin", 80)).recomputed, 2);
  planc_graph_free(graph);
}
END_TEST

/* --- What steers -------------------------------------------------------------------------------------------------- */

START_TEST(what_fits_is_neither_swapped_nor_recomputed) {
  planc_graph *graph = make_net(", class: conv", "");
  counts c = count(plan_in(problem_of(graph), "superneurons", 100));
  ck_assert_int_eq(c.recomputed + c.swapped, 0);
  planc_graph_free(graph);
}
END_TEST

START_TEST(switches_and_the_host_steer) {
  planc_graph *graph = make_net(", class: conv", "");
  for (int p = 0; p < N_CHOOSING; p++) {
    planc_problem problem = problem_of(graph);
    problem.terms.settings.no_swap = true;
    counts c = count(plan_in(problem, choosing[p], 80));
    ck_assert_msg(c.swapped == 0 && c.recomputed > 0, "%s: %d swapped", choosing[p], c.swapped);
    problem.terms.settings = (planc_settings){.no_recompute = true};
    problem.terms.budgets[PLANC_MEMORY_HOST] = -1;
    planc_plan *plan;
    int64_t all;
    ok(find_least_bytes(&problem, planc_policy_find("none"), &all));
    problem.terms.budgets[PLANC_MEMORY_DEVICE] = all * 80 / 100;
    planc_status status = planc_make_plan(&problem, planc_policy_find(choosing[p]), &plan);
    if (!status) ck_assert_int_eq(count(plan).recomputed, 0);
    planc_status_free(status);
    problem.terms.settings = (planc_settings){0};
    problem.terms.budgets[PLANC_MEMORY_HOST] = 0;
    c = count(plan_in(problem, choosing[p], 80));
    ck_assert_msg(c.swapped == 0 && c.recomputed > 0, "%s: %d swapped to no host", choosing[p], c.swapped);
    problem.terms.budgets[PLANC_MEMORY_HOST] = 600 << 10; /* one of the buffers of 512 KiB */
    c = count(plan_in(problem, choosing[p], 80));
    ck_assert_int_le(c.swapped, 2);
  }
  planc_graph_free(graph);
}
END_TEST

/* Smaller rounds need less, and no host. */
START_TEST(switches_and_the_host_steer_to_rounds) {
  planc_graph *graph;
  const char *derived;
  ok(planc_graph_prepare("graphs/lenet-digits.yaml", NULL, false, &graph, &derived));
  for (const planc_policy *policy = planc_policies(); policy->name; policy++) {
    if (!(policy->supports & PLANC_POLICY_ROUNDS)) continue;
    for (int64_t host = -1; host <= 0; host++) {
      planc_problem problem = problem_of(graph);
      problem.job.batch = 64;
      problem.terms.settings.no_swap = host < 0;
      problem.terms.settings.no_recompute = true;
      problem.terms.budgets[PLANC_MEMORY_HOST] = host;
      planc_plan *plan = plan_in(problem, policy->name, 60);
      ck_assert_int_gt(plan->jobs[0].n_rounds, 1);
      ck_assert_int_eq(host_of(plan)->arena_bytes, 0);
      ck_assert_int_eq(count(plan).swapped, 0);
    }
  }
  planc_graph_free(graph);
}
END_TEST

START_TEST(a_policy_without_a_choice_says_so) {
  planc_graph *graph = make_net("", "");
  for (const planc_policy *policy = planc_policies(); policy->name; policy++) {
    if (policy->supports & PLANC_POLICY_SIMULATED) continue;
    for (int swap = 0; swap < 2; swap++) {
      planc_problem problem = problem_of(graph);
      planc_plan *plan;
      problem.terms.settings = swap ? (planc_settings){.no_swap = true} : (planc_settings){.no_recompute = true};
      uint32_t means = policy->supports & (PLANC_POLICY_SWAPS | PLANC_POLICY_RECOMPUTES | PLANC_POLICY_ROUNDS);
      planc_status status = planc_make_plan(&problem, policy, &plan);
      bool rounds = policy->supports & PLANC_POLICY_ROUNDS;
      if (means == (swap ? PLANC_POLICY_SWAPS : PLANC_POLICY_RECOMPUTES) && !rounds) {
        ck_assert_int_eq(planc_status_code(status), PLANC_USAGE);
        ck_assert_ptr_nonnull(strstr(planc_status_message(status), "has no other choice"));
        planc_status_free(status);
        continue;
      }
      ok_in(status, policy->name);
      counts c = count(plan);
      ck_assert_int_eq(swap ? c.swapped : c.recomputed, 0);
    }
  }
  planc_graph_free(graph);
}
END_TEST

/* --- Workspaces that the profile states --------------------------------------------------------------------------- */

/* The device with workspaces of different sizes for the backward ops. */
static planc_profile *profile_with_workspaces(void) {
  char ops[TEXT];
  char *whole;
  size_t at = (size_t)snprintf(ops, sizeof ops, "{\"planc-profile\": 1, \"ops\": ["), length;
  for (int i = 1; i <= LAYERS; i++) {
    at +=
        (size_t)snprintf(&ops[at], sizeof ops - at,
                         "%s{\"op\": \"back%d\", \"variants\": [{\"algorithm\": \"default\", \"deterministic\": true, "
                         "\"points\": [{\"batch\": 8, \"time_ns\": 5000, \"workspace_bytes\": %d, \"busy_ppm\": "
                         "1000000}]}]}",
                         i > 1 ? ", " : "", i, (i * 300) << 10);
  }
  at += (size_t)snprintf(&ops[at], sizeof ops - at, "],");
  ok(pl_file_read("profiles/k40m.json", 1 << 20, &whole, &length));
  static const char first[] = "\"planc-profile\": 1,";
  const char *rest = strstr(whole, first) + sizeof first - 1;
  size_t left = length - (size_t)(rest - whole);
  char *text = malloc(at + left);
  ck_assert_ptr_nonnull(text);
  memcpy(text, ops, at);
  memcpy(text + at, rest, left);
  planc_profile *made;
  ok(planc_profile_parse(text, at + left, "k40m", &made));
  free(text);
  free(whole);
  return made;
}

/* A workspace finds room wherever operands lie: what is left beside them is enough. */
START_TEST(modnn_makes_room_for_workspaces) {
  planc_graph *graph = make_net("", "");
  planc_profile *measured = profile_with_workspaces();
  planc_problem problem = problem_of(graph);
  problem.job.profile = measured;
  int64_t operands = 4 * (INT64_C(512) << 10), resident = LAYERS * INT64_C(256);
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = operands + resident + ((INT64_C(300) * LAYERS) << 10);
  planc_plan *plan;
  ok(planc_make_plan(&problem, planc_policy_find("modnn"), &plan));
  ok(planc_check(plan, &(planc_check_options){.budgets = {problem.terms.budgets[PLANC_MEMORY_DEVICE], -1}}, NULL));
  planc_plan_free(plan);
  planc_profile_free(measured);
  planc_graph_free(graph);
}
END_TEST

/* Data whose addresses are given out as the ops come leaves free ranges in what is exactly enough for all of it. */
START_TEST(modnn_moves_nothing_where_all_fits) {
  planc_graph *graph = graph_of(
      "planc-graph: 1\nname: ranges\ntensors:\n"
      "  f0: f32[N,49152]\n  f1: f32[N,8192]\n  f2: f32[N,24576]\n"
      "  b0: f32[N,49152]\n  b1: f32[N,8192]\n  b2: f32[N,24576]\nops:\n"
      "  - {op: make0, type: sim.f, out: [f0]}\n"
      "  - {op: make1, type: sim.f, in: [f0], out: [f1]}\n"
      "  - {op: make2, type: sim.f, in: [f1], out: [f2]}\n"
      "  - {op: back2, type: sim.b, phase: backward, in: [f2, f1], out: [b2]}\n"
      "  - {op: back1, type: sim.b, phase: backward, in: [b2, f1, f0], out: [b1]}\n"
      "  - {op: back0, type: sim.b, phase: backward, in: [b1, f0], out: [b0]}\n");
  planc_problem problem = problem_of(graph);
  problem.job.sub_batch = problem.job.batch;
  counts c = count(plan_in(problem, "modnn", 100));
  ck_assert_int_eq(c.swapped, 0);
  planc_graph_free(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("foreign");
  TCase *all = tcase_create("all");
  tcase_add_unchecked_fixture(all, read_profile, free_profile);
  tcase_set_timeout(all, 0);
  tcase_add_test(all, a_class_and_once_come_back);
  tcase_add_test(all, a_class_is_written_where_it_says_something);
  tcase_add_test(all, foreign_types_have_a_prefix);
  tcase_add_test(all, flags_of_own_types_are_true);
  tcase_add_test(all, a_class_tells_what_is_dear);
  tcase_add_test(all, what_must_not_run_again_does_not);
  tcase_add_test(all, recompute_goes_on_behind_what_must_not_run_again);
  tcase_add_test(all, recompute_goes_on_among_updates);
  tcase_add_test(all, what_fits_is_neither_swapped_nor_recomputed);
  tcase_add_test(all, switches_and_the_host_steer);
  tcase_add_test(all, switches_and_the_host_steer_to_rounds);
  tcase_add_test(all, a_policy_without_a_choice_says_so);
  tcase_add_test(all, modnn_makes_room_for_workspaces);
  tcase_add_test(all, modnn_moves_nothing_where_all_fits);
  suite_add_tcase(suite, all);
  return run_suite(suite);
}
