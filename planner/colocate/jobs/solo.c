/* Jobs alone (solo.h). */
#include "planner/colocate/jobs/solo.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cost/ideal.h"
#include "plan/one_job.h"
#include "planc/needs.h"
#include "planner/base/if_fits.h"
#include "planner/choose/sub_batch.h"
#include "planner/means.h"
#include "util/math.h"

static planc_status make_resident(const planc_mix_evaluator *evaluator, const planc_problem *problem, pl_solo *out,
                                  bool *out_will_do);
static planc_status make_by(const planc_mix_evaluator *evaluator, const planc_problem *problem,
                            const planc_policy *policy, pl_solo *out);

planc_status pl_solo_make(const planc_mix_evaluator *evaluator, const planc_problem *problem, pl_solo *out) {
  const planc_policy *policy;
  bool will_do;
  PLANC_TRY(make_resident(evaluator, problem, out, &will_do));
  if (will_do) return NULL;
  planc_status status = evaluator->fastest(evaluator, problem, &policy);
  bool is_made = !status && out->candidate.trace && out->policy == policy->name;
  if (!is_made) pl_solo_free(out);
  if (!status && !is_made) status = make_by(evaluator, problem, policy, out);
  if (status) return status;
  out->asked_bytes = problem->terms.budgets[PLANC_MEMORY_DEVICE];
  return NULL;
}

static bool has_slow_algorithms(const planc_candidate *candidate);

/* By `none`; empty where that does not fit. */
static planc_status make_resident(const planc_mix_evaluator *evaluator, const planc_problem *problem, pl_solo *out,
                                  bool *out_will_do) {
  bool fits;
  *out = (pl_solo){0};
  PLANC_TRY(pl_if_fits(make_by(evaluator, problem, planc_policy_find("none"), out), &fits));
  *out_will_do = fits && (problem->terms.first_will_do || !has_slow_algorithms(&out->candidate));
  return NULL;
}

/* Whether another policy would be preferred to it that has its ops in the time of the fastest algorithms that the
 * device has. */
static bool has_slow_algorithms(const planc_candidate *candidate) {
  const planc_job *job = pl_trace_job(candidate->trace);
  const planc_schedule *s = candidate->schedule;
  const planc_command *commands = planc_schedule_commands(s);
  int64_t ideal_ns = pl_ideal_in_rounds(candidate->costs[0], job->graph, job->batch, candidate->sub_batch), ns = 0;
  for (int32_t c = 0; c < planc_schedule_n_commands(s); c++)
    if (commands[c].kind == PLANC_CMD_EXEC && candidate->trace->instances[commands[c].instance].role == PLANC_ROLE_OP)
      ns = pl_add_saturate(ns, planc_schedule_variant(s, &commands[c]).time_ns);
  return planc_is_preferred(ideal_ns, "none", ns);
}

void pl_solo_free(pl_solo *solo) {
  planc_candidate_free(&solo->candidate);
  *solo = (pl_solo){0};
}

static bool is_same_job(const planc_workload *a, const planc_workload *b) {
  bool same = true;
#define X(name, ...) same = same && a->name == b->name;
  PLANC_EACH_SETTINGS(X)
#undef X
  return same && a->graph == b->graph && a->profile == b->profile && a->batch == b->batch &&
         a->sub_batch == b->sub_batch && a->link_ppm == b->link_ppm && a->priority == b->priority &&
         a->side_by_side == b->side_by_side && a->split_batch_norm == b->split_batch_norm;
}

int32_t planc_mix_first_same(const planc_mix *mix, int32_t job) {
  int32_t same = 0;
  while (!is_same_job(&mix->jobs[same], &mix->jobs[job])) same++;
  return same;
}

static int32_t find_same(const planc_problem *problems, int32_t job);

void pl_solos_share(const planc_problem *problems, pl_solos *solos) {
  for (int32_t j = 0; j < solos->n; j++) solos->candidates[j] = solos->made[find_same(problems, j)].candidate;
}

static bool are_same_terms(const planc_terms *a, const planc_terms *b) {
  for (int32_t m = 0; m < PLANC_N_BUDGETS; m++)
    if (a->budgets[m] != b->budgets[m]) return false;
  return a->gpus == b->gpus && a->placement == b->placement && a->code_bytes == b->code_bytes &&
         a->chunk_bytes == b->chunk_bytes && a->beat_ns == b->beat_ns && a->shared_link == b->shared_link &&
         a->first_will_do == b->first_will_do && a->own_rounds == b->own_rounds &&
         planc_settings_are_same(&a->settings, &b->settings);
}

static bool is_same_problem(const planc_problem *a, const planc_problem *b) {
  return are_same_terms(&a->terms, &b->terms) && is_same_job(&a->job, &b->job);
}

static planc_status make_by(const planc_mix_evaluator *evaluator, const planc_problem *problem,
                            const planc_policy *policy, pl_solo *out) {
  const planc_evaluator alone = evaluator->alone(evaluator, problem);
  PLANC_TRY(pl_check_means(problem, policy));
  planc_status status = policy->make(&alone, &out->candidate);
  if (!status) status = alone.hold(&alone, &out->candidate);
  if (status) {
    pl_solo_free(out);
    return status;
  }
  out->policy = policy->name;
  return NULL;
}

static int32_t find_same(const planc_problem *problems, int32_t job) {
  int32_t same = 0;
  while (!is_same_problem(&problems[same], &problems[job])) same++;
  return same;
}

static planc_status make_all(const planc_mix_evaluator *evaluator, const planc_problem *problems,
                             const planc_policy *policy, pl_solos *out, int32_t *out_failed) {
  for (int32_t j = 0; j < out->n; j++) {
    *out_failed = j;
    if (find_same(problems, j) < j) continue;
    PLANC_TRY(policy ? make_by(evaluator, &problems[j], policy, &out->made[j])
                     : pl_solo_make(evaluator, &problems[j], &out->made[j]));
  }
  pl_solos_share(problems, out);
  return NULL;
}

static planc_status new_solos(int32_t n, pl_solos *out) {
  *out = (pl_solos){.n = n};
  out->made = calloc((size_t)n, sizeof *out->made);
  out->candidates = calloc((size_t)n, sizeof *out->candidates);
  return out->made && out->candidates ? NULL : planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
}

planc_status pl_solos_make(const planc_mix_evaluator *evaluator, const planc_problem *problems,
                           const planc_policy *policy, pl_solos *out, int32_t *out_failed) {
  *out_failed = 0;
  PLANC_TRY(new_solos(evaluator->mix->n_jobs, out));
  return make_all(evaluator, problems, policy, out, out_failed);
}

/* What a job's candidate was made as, which may be an earlier job's. */
static const pl_solo *made_as(const pl_solos *solos, int32_t job) {
  int32_t made = 0;
  while (made < job && solos->made[made].candidate.schedule != solos->candidates[job].schedule) made++;
  assert(solos->made[made].candidate.schedule == solos->candidates[job].schedule);
  return &solos->made[made];
}

static planc_status make_again(const planc_mix_evaluator *evaluator, const planc_problem *problem,
                               const pl_solo *before, pl_solo *out) {
  enum { LITTLE = 64 };
  int64_t asked = before->asked_bytes, budget = problem->terms.budgets[PLANC_MEMORY_DEVICE];
  if (asked == 0 || budget < asked - asked / LITTLE) return pl_solo_make(evaluator, problem, out);
  planc_status status = make_by(evaluator, problem, planc_policy_find(before->policy), out);
  out->asked_bytes = asked;
  if (planc_status_code(status) != PLANC_INFEASIBLE) return status;
  planc_status_free(status);
  return pl_solo_make(evaluator, problem, out);
}

planc_status pl_solos_remake(const planc_mix_evaluator *evaluator, const planc_problem *problems, pl_solos *solos,
                             int32_t *out_failed) {
  pl_solos before = *solos;
  *out_failed = 0;
  planc_status status = new_solos(before.n, solos);
  for (int32_t j = 0; !status && j < before.n; j++) {
    *out_failed = j;
    if (find_same(problems, j) == j) status = make_again(evaluator, &problems[j], made_as(&before, j), &solos->made[j]);
  }
  if (!status) pl_solos_share(problems, solos);
  pl_solos_free(&before);
  return status;
}

void pl_solos_free(pl_solos *solos) {
  for (int32_t j = 0; solos->made && j < solos->n; j++) pl_solo_free(&solos->made[j]);
  free(solos->made);
  free(solos->candidates);
  *solos = (pl_solos){0};
}

planc_status pl_solo_kept(const planc_problem *problem, int64_t *out_bytes) {
  planc_candidate candidate = {0};
  planc_memory_needs needs = {0};
  planc_status status = planc_candidate_rounds(problem, pl_sub_batch_asked(problem), &candidate);
  if (!status) status = planc_memory_needs_of(candidate.order, &needs);
  planc_candidate_free(&candidate);
  *out_bytes = needs.persistent_bytes;
  return status;
}
