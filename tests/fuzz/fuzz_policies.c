/* Fuzzing the policies: whatever graph is read, each of them makes a plan that passes the checker, or says why not;
 * that it has met what cannot be is no reason. Needs the repository as its folder, for the device. */
#include <stdio.h>
#include <stdlib.h>

#include "planc/check.h"
#include "planc/needs.h"
#include "planc/policy.h"
#include "util/math.h"

enum { MOST_OPS = 48, MOST_TENSORS = 128, MOST_ROUNDS = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const planc_profile *device(void) {
  static planc_profile *profile;
  if (!profile && planc_profile_read("profiles/k40m.json", &profile)) abort();
  return profile;
}

static void fail(const planc_policy *policy, planc_status status) {
  fprintf(stderr, "%s: %s\n", policy->name, planc_status_message(status));
  abort();
}

static void plan(const planc_problem *problem, const planc_policy *policy) {
  planc_plan *made;
  planc_status status = planc_make_plan(problem, policy, &made);
  if (planc_status_code(status) == PLANC_INTERNAL) fail(policy, status);
  if (!status) {
    planc_status invalid = planc_check(made, NULL, NULL);
    if (invalid) fail(policy, invalid);
    planc_plan_free(made);
  }
  planc_status_free(status);
}

/* Under a budget that all fits, and half of what the first plan takes. */
static void plan_all(const planc_graph *graph) {
  planc_problem problem = {.job.graph = graph, .job.profile = device(), .job.batch = graph->batch ? graph->batch : 2};
  problem.terms.budgets[PLANC_MEMORY_HOST] = -1;
  for (const planc_policy *policy = planc_policies(); policy->name; policy++) {
    bool rounds = policy->supports & PLANC_POLICY_ROUNDS;
    if ((policy->supports & PLANC_POLICY_SIMULATED) || (rounds && problem.job.batch > MOST_ROUNDS)) continue;
    int64_t reserved = planc_profile_device(problem.job.profile)->reserved_bytes;
    planc_memory_needs needs;
    planc_candidate whole = {0};
    planc_status status = planc_candidate_rounds(&problem, problem.job.batch, &whole);
    if (!status) status = planc_memory_needs_of(whole.order, &needs);
    planc_candidate_free(&whole);
    planc_status_free(status);
    if (status) return;
    problem.terms.budgets[PLANC_MEMORY_DEVICE] = pl_add_saturate(needs.sum_bytes, reserved);
    plan(&problem, policy);
    problem.terms.budgets[PLANC_MEMORY_DEVICE] = reserved + needs.liveness_bytes / 2;
    plan(&problem, policy);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  planc_graph *graph;
  planc_status status = planc_graph_parse((const char *)data, size, "fuzz", &graph);
  if (graph && graph->n_ops <= MOST_OPS && graph->n_tensors <= MOST_TENSORS) plan_all(graph);
  planc_status_free(status);
  planc_graph_free(graph);
  return 0;
}
