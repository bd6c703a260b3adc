#include "tests/support/updates.h"

#include <check.h>
#include <stdlib.h>

#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

const char *const updated_policies[N_UPDATED_POLICIES] = {"vdnn-all", "modnn", "none", "chen", "naive", "tensile"};

planc_problem roomy_problem(const planc_graph *graph, const planc_profile *profile, int64_t batch) {
  return (planc_problem){.job.graph = graph,
                         .job.profile = profile,
                         .job.batch = batch,
                         .terms.budgets[PLANC_MEMORY_DEVICE] = INT64_C(1) << 40,
                         .terms.budgets[PLANC_MEMORY_HOST] = -1};
}

planc_plan *plan_of(const planc_problem *problem, const char *policy) {
  planc_plan *plan;
  ok(planc_make_plan(problem, planc_policy_find(policy), &plan));
  plan->device.launch_ns = 0;
  return plan;
}

sheet *run_of(const planc_plan *plan) {
  planc_simulation simulation;
  return sheet_replay(plan, &simulation);
}

planc_update *update_of(const planc_plan *plan, const sheet *run, const planc_profile *profile, int64_t weight_ppm) {
  planc_update *update;
  const planc_profile *profiles[PLANC_PLAN_MAX_JOBS];
  for (int32_t j = 0; j < plan->n_jobs; j++) profiles[j] = profile;
  planc_update_options options = {
      .plan = plan, .timeline = &run->timeline, .profiles = profile ? profiles : NULL, .weight_ppm = weight_ppm};
  ok(planc_update_make(&options, &update));
  return update;
}

planc_plan *on_another_machine(const planc_plan *plan, const int64_t *percent) {
  char *text;
  size_t length;
  planc_plan *out;
  planc_trace *trace;
  ok(planc_plan_print(plan, &text, &length));
  ok(planc_plan_parse(text, length, "copy", &out));
  free(text);
  ok(planc_expand(out->jobs, out->n_jobs, &trace));
  int32_t n_ops = out->jobs[0].graph->n_ops;
  for (int32_t i = 0; i < out->body.n; i++) {
    planc_instr *instr = (planc_instr *)&out->body.instrs[i];
    if (instr->op != PLANC_INSTR_exec) continue;
    const planc_instance *instance = &trace->instances[instr->id];
    instr->time_ns = instr->time_ns * percent[instance->role == PLANC_ROLE_OP ? instance->op : n_ops] / 100;
  }
  for (int32_t l = 0; l < out->n_links; l++) {
    planc_link *link = &out->links[l].cost;
    int64_t takes = percent[n_ops + 1 + out->links[l].engine];
    link->bytes_per_second = link->bytes_per_second * 100 / takes;
    link->latency_ns = link->latency_ns * takes / 100;
  }
  planc_trace_free(trace);
  return out;
}

int64_t *draw_percents(uint64_t *state, const planc_graph *graph, int64_t least, int64_t most) {
  int32_t n = graph->n_ops + 1 + PLANC_N_ROUTES;
  int64_t *percent = calloc((size_t)n, sizeof *percent);
  ck_assert(percent != NULL);
  for (int32_t o = 0; o < n; o++) percent[o] = least + rand_below(state, most - least + 1);
  return percent;
}

const planc_link *link_of(const planc_plan *plan, planc_route route) {
  int32_t l = 0;
  while (l < plan->n_links && plan->links[l].engine != (int32_t)route) l++;
  ck_assert_int_lt(l, plan->n_links);
  return &plan->links[l].cost;
}
