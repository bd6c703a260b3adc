#include "tests/support/updates.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "planc/schedule.h"
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

static bool are_alike(const planc_job *a, const planc_job *b) {
  return a->graph == b->graph && a->batch == b->batch && a->n_rounds == b->n_rounds;
}

/* Where the percentages of a job are; of the job behind the last, those of routes. */
static int32_t first_percent(const planc_plan *plan, int32_t job) {
  int32_t same = 0, first = 0;
  while (same < job && (job == plan->n_jobs || !are_alike(&plan->jobs[same], &plan->jobs[job]))) same++;
  for (int32_t j = 0; j < same; j++) first += plan->jobs[j].graph->n_ops + 1;
  return first;
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
  for (int32_t i = 0; i < out->body.n; i++) {
    planc_instr *instr = (planc_instr *)&out->body.instrs[i];
    if (instr->op != PLANC_INSTR_exec) continue;
    const planc_instance *instance = &trace->instances[instr->id];
    int32_t n_ops = out->jobs[instance->job].graph->n_ops;
    const int64_t *own = &percent[first_percent(out, instance->job)];
    instr->time_ns = instr->time_ns * own[instance->role == PLANC_ROLE_OP ? instance->op : n_ops] / 100;
  }
  for (int32_t l = 0; l < out->n_links; l++) {
    planc_link *link = &out->links[l].cost;
    int64_t takes = percent[first_percent(out, out->n_jobs) + out->links[l].engine];
    link->bytes_per_second = link->bytes_per_second * 100 / takes;
    link->latency_ns = link->latency_ns * takes / 100;
  }
  planc_trace_free(trace);
  return out;
}

int64_t *draw_percents(uint64_t *state, const planc_plan *plan, int64_t least, int64_t most) {
  int32_t n = first_percent(plan, plan->n_jobs) + PLANC_N_ROUTES;
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

const planc_variant *cost_of(const planc_costs *costs, int32_t op, int64_t batch, const char *algorithm) {
  int32_t count;
  const planc_variant *variants = planc_costs_variants(costs, op, planc_costs_batch(costs, batch), &count);
  for (int32_t v = 0; v < count; v++)
    if (strcmp(variants[v].algorithm, algorithm) == 0) return &variants[v];
  ck_abort_msg("op %d: no algorithm %s", op, algorithm);
  return NULL;
}

void assert_near_ns(int64_t got, int64_t want, double share, int64_t ns) {
  ck_assert_msg(llabs(got - want) <= ns + (int64_t)(share * (double)want), "%lld instead of %lld", (long long)got,
                (long long)want);
}

void assert_links(const planc_plan *want, const planc_update *update) {
  for (int32_t j = 0; j < want->n_jobs; j++) {
    const planc_device *device = planc_profile_device(update->profiles[j]);
    for (int r = 0; r < PLANC_N_ROUTES; r++) {
      if (update->copies[r].count == 0) continue;
      const planc_link *link = link_of(want, (planc_route)r);
      assert_near_ns(device->links[r].bytes_per_second, link->bytes_per_second, 1e-3, 1);
      assert_near_ns(device->links[r].latency_ns, link->latency_ns, 1e-3, 2);
    }
  }
}

static void assert_job_found(const planc_plan *other, const planc_trace *trace, int32_t j,
                             const planc_profile *profile) {
  int64_t adds_ns = 0, wanted_ns = 0, adds = 0;
  const planc_job *job = &other->jobs[j];
  planc_costs *costs;
  int64_t batches[] = {job->batch, job->rounds[0], job->rounds[job->n_rounds - 1]};
  ok(planc_costs_make(profile, job->graph, 3, batches, &costs));
  for (int32_t i = 0; i < other->body.n; i++) {
    const planc_instr *instr = &other->body.instrs[i];
    if (instr->op != PLANC_INSTR_exec || trace->instances[instr->id].job != j) continue;
    const planc_instance *instance = &trace->instances[instr->id];
    if (instance->role != PLANC_ROLE_OP) {
      adds_ns += planc_adding_variant(trace, profile, instr->id).time_ns;
      wanted_ns += instr->time_ns;
      adds += planc_job_replicas(job);
    } else {
      const planc_variant *cost = cost_of(costs, instance->op, instance->batch, other->algorithms[instr->aux]);
      assert_near_ns(cost->time_ns, instr->time_ns, 0, 2);
      ck_assert_int_eq(cost->busy_ppm, instr->busy_ppm);
      ck_assert_int_eq(cost->workspace_bytes, instr->bytes);
    }
  }
  assert_near_ns(adds_ns, wanted_ns, 1e-3, 3 * adds);
  planc_costs_free(costs);
}

void assert_found(const planc_plan *other, const planc_update *update) {
  planc_trace *trace;
  ok(planc_expand(other->jobs, other->n_jobs, &trace));
  for (int32_t j = 0; j < other->n_jobs; j++) assert_job_found(other, trace, j, update->profiles[j]);
  assert_links(other, update);
  planc_trace_free(trace);
}
