/* What may not run again: policies that recompute keep what they cannot bring back, version by version. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "planc/check.h"
#include "planc/policy.h"
#include "planrt/planrt.h"
#include "tests/support/graphtext.h"
#include "tests/support/least.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

static planc_profile *profile;

static void read_profile(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
}
static void free_profile(void) {
  planc_profile_free(profile);
}

static void runs_right(const planc_plan *plan, const char *policy) {
  planrt_options options = {.seed = 1, .synthetic = true, .verify = true, .poison = true};
  planrt_session *session;
  ok_in(planc_check(plan, NULL, NULL), policy);
  ok_in(planrt_session_new(plan, &options, &session), policy);
  ok_in(planrt_init(session), policy);
  ok_in(planrt_run(session, 2), policy);
  planrt_session_free(session);
}

/* The plan at `budget`, which has run; NULL where that does not suffice. Nothing else may go wrong. */
static planc_plan *plan_at(planc_problem problem, const planc_policy *policy, int64_t budget) {
  planc_plan *plan;
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = budget;
  problem.terms.settings.effort = 1; /* short searches: there are very many plans */
  planc_status status = planc_make_plan(&problem, policy, &plan);
  if (planc_status_code(status) == PLANC_INFEASIBLE) {
    planc_status_free(status);
    return NULL;
  }
  ok_in(status, policy->name);
  runs_right(plan, policy->name);
  return plan;
}

/* From where all data fits down to where little does. */
static void plans_are_right(const planc_graph *graph, int32_t number) {
  planc_problem problem = {
      .job.graph = graph, .job.profile = profile, .job.batch = 1 + number % 5, .terms.budgets[PLANC_MEMORY_HOST] = -1};
  int64_t all;
  ok(find_least_bytes(&problem, planc_policy_find("none"), &all));
  for (const planc_policy *policy = planc_policies(); policy->name; policy++) {
    if (policy->supports & PLANC_POLICY_SIMULATED) continue;
    if (policy->supports & PLANC_POLICY_CHOOSES && number % 4 > 0) continue; /* it makes the plans of all others */
    for (int64_t percent = 120; percent >= 30; percent -= 15) {
      problem.terms.budgets[PLANC_MEMORY_HOST] = percent % 2 == 0 ? -1 : 0;
      planc_plan_free(plan_at(problem, policy, all / 100 * percent));
    }
  }
}

/* --- What is overwritten ------------------------------------------------------------------------------------------ */

/* How often op `op` runs again in the policy's plan. */
static int times_again(const char *text, const char *policy, int32_t op) {
  planc_graph *graph = graph_of(text);
  planc_problem problem = {
      .job.graph = graph, .job.profile = profile, .job.batch = 16, .terms.budgets[PLANC_MEMORY_HOST] = -1};
  planc_plan *plan = plan_at(problem, planc_policy_find(policy), INT64_C(1) << 30);
  ck_assert_ptr_nonnull(plan);
  int times = 0;
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    times += instr->op == PLANC_INSTR_exec && instr->recompute && instr->id == op;
  }
  planc_plan_free(plan);
  planc_graph_free(graph);
  return times;
}

/* k crosses a cut and is kept, but ow overwrites it; g needs e, which is made of k's first version, and that of a. */
static const char kept_but_overwritten[] =
    "planc-graph: 1\n"
    "name: g\n"
    "loss: loss\n"
    "tensors:\n"
    "  x: input f32[N,1000]\n"
    "  a: f32[N,1000]\n"
    "  b: f32[N,1000]\n"
    "  k: f32[N,1000]\n"
    "  e: f32[N,1000]\n"
    "  f: f32[N,1000]\n"
    "  loss: f32[]\n"
    "  wg: grad f32[10]\n"
    "ops:\n"
    "  - {op: a, type: my.op, in: [x], out: [a], flags: [no-recompute]}\n"
    "  - {op: b, type: my.op, in: [a], out: [b]}\n"
    "  - {op: k, type: my.op, in: [b], out: [k]}\n"
    "  - {op: e, type: my.op, in: [k], out: [e]}\n"
    "  - {op: f, type: my.op, in: [x], out: [f]}\n"
    "  - {op: f2, type: my.op, in: [x], out: [f]}\n"
    "  - {op: ow, type: my.op, in: [f], out: [k]}\n"
    "  - {op: l0, type: my.op, in: [k], out: [loss]}\n"
    "  - {op: l, type: my.op, in: [k], out: [loss]}\n"
    "  - {op: g, type: my.op, phase: backward, in: [e], out: [wg]}\n";

START_TEST(a_kept_buffer_does_not_keep_what_was_overwritten) {
  for (int32_t op = 0; op < 4; op++) ck_assert_int_eq(times_again(kept_but_overwritten, "chen", op), op > 0);
}
END_TEST

/* y is made of what a leaves in a state, which is overwritten, unread, only when y has been restored. */
static const char state_overwritten[] =
    "planc-graph: 1\n"
    "name: g\n"
    "loss: loss\n"
    "tensors:\n"
    "  x: input f32[N,1000]\n"
    "  st: state f32[1000]\n"
    "  y: f32[N,1000]\n"
    "  loss: f32[]\n"
    "  wg: grad f32[10]\n"
    "ops:\n"
    "  - {op: a, type: my.op, in: [x], out: [st]}\n"
    "  - {op: y, type: my.op, in: [st], out: [y]}\n"
    "  - {op: l, type: my.op, in: [y], out: [loss]}\n"
    "  - {op: g, type: my.op, phase: backward, in: [y], out: [wg]}\n"
    "  - {op: h, type: my.op, phase: backward, in: [y], out: [st]}\n";

START_TEST(what_persists_stays_until_it_is_overwritten) {
  ck_assert_int_eq(times_again(state_overwritten, "cheap", 0), 0);
  ck_assert_int_eq(times_again(state_overwritten, "cheap", 1), 1);
}
END_TEST

/* --- Random graphs ------------------------------------------------------------------------------------------------ */

START_TEST(what_may_run_only_once_is_kept) {
  planc_graph *graph;
  randgraph_options options = {.once_percent = 10 + 10 * (_i % 4), .max_elements = _i % 2 == 0 ? 2048 : 0};
  ok(randgraph_make(UINT64_C(11000) + (uint64_t)_i, &options, &graph));
  plans_are_right(graph, _i);
  planc_graph_free(graph);
}
END_TEST

/* A graph of which much is overwritten unread, state as well, little is read by the backward pass, and some may run
 * only once: a line of text per op. */
typedef struct rewriter {
  uint64_t random;
  bool written[16]; /* s0 .. are activations, t0 .. states */
  FILE *text;
} rewriter;

enum { ACTIVATIONS = 8, STATES = 2 };

static bool yes(rewriter *r, int32_t percent) {
  return rand_chance(&r->random, percent);
}

/* An activation that is written; -1 where the choice is of one that is not. */
static int pick(rewriter *r) {
  int of = (int)rand_below(&r->random, ACTIVATIONS);
  return r->written[of] ? of : -1;
}

static void print_op(rewriter *r, int number, const char *phase) {
  int in = pick(r), also = yes(r, 30) ? pick(r) : -1, out = (int)rand_below(&r->random, ACTIVATIONS);
  fprintf(r->text, "  - {op: o%d, type: my.op, phase: %s, in: [", number, phase);
  if (in >= 0) fprintf(r->text, "s%d", in);
  if (in < 0) fprintf(r->text, yes(r, 70) ? "x" : "t%d", (int)rand_below(&r->random, STATES));
  if (also >= 0 && also != in) fprintf(r->text, ", s%d", also);
  if (phase[0] == 'f' && yes(r, 10)) {
    fprintf(r->text, "], out: [t%d]", (int)rand_below(&r->random, STATES));
  } else if (phase[0] == 'f' || yes(r, 30)) {
    fprintf(r->text, "], out: [s%d]", out);
    r->written[out] = true;
  } else {
    fprintf(r->text, "], out: [d%d]", number);
  }
  fprintf(r->text, "%s%s}\n", yes(r, 25) ? ", flags: [no-recompute]" : "", yes(r, 30) ? ", class: gemm" : "");
}

static planc_graph *rewriting_graph(int seed) {
  enum { FORWARD = 12, ALL = 17 };
  rewriter r = {.random = (uint64_t)seed};
  char *text;
  size_t length;
  r.text = open_memstream(&text, &length);
  fprintf(r.text, "planc-graph: 1\nname: g\nloss: loss\ntensors:\n  x: input f32[N,64]\n  loss: f32[]\n");
  for (int k = 0; k < ACTIVATIONS; k++) fprintf(r.text, "  s%d: f32[N,%d]\n", k, 64 + (int)rand_below(&r.random, 400));
  for (int k = 0; k < STATES; k++) fprintf(r.text, "  t%d: state f32[300]\n", k);
  for (int k = FORWARD; k < ALL; k++) fprintf(r.text, "  d%d: f32[N,64]\n", k);
  fprintf(r.text, "ops:\n");
  for (int k = 0; k < FORWARD; k++) print_op(&r, k, "forward");
  fprintf(r.text, "  - {op: loss, type: my.op, in: [x], out: [loss], flags: [batch-mean]}\n");
  for (int k = FORWARD; k < ALL; k++) print_op(&r, k, "backward");
  fclose(r.text);
  planc_graph *graph = graph_of(text);
  free(text);
  return graph;
}

START_TEST(what_is_overwritten_is_restored) {
  planc_graph *graph = rewriting_graph(_i);
  plans_are_right(graph, _i);
  planc_graph_free(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("recompute");
  TCase *tests = tcase_create("all");
  tcase_set_timeout(tests, 60);
  tcase_add_unchecked_fixture(tests, read_profile, free_profile);
  tcase_add_test(tests, a_kept_buffer_does_not_keep_what_was_overwritten);
  tcase_add_test(tests, what_persists_stays_until_it_is_overwritten);
  tcase_add_loop_test(tests, what_may_run_only_once_is_kept, 0, sampled(40));
  tcase_add_loop_test(tests, what_is_overwritten_is_restored, 0, sampled(200));
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
