/* `vdnn-conv` and `capuchin` for several jobs: the baselines of TENSILE (papers/002, V-A). Each job is planned as if it
 * were alone on the GPU and on the link, by that policy of single jobs, and they run side by side, each with memory of
 * its own.
 *
 * Each job's part of the budget is in proportion to what it needs where it neither swaps nor computes again. Where the
 * budget is what `tensile` leaves, that is the budget that the paper gives Capuchin (V-E): all jobs save the same part.
 * A job that cannot save as much has what it takes, and the others have less, in the same proportion. */
#include "planner/base/code.h"
#include "planner/colocate/jobs/by_time.h"
#include "planner/colocate/jobs/in_job.h"
#include "planner/colocate/jobs/solo.h"
#include "planner/colocate/memory/own_memory.h"
#include "planner/colocate/policies/mix_policies.h"
#include "util/math.h"
#include "util/size.h"

typedef struct jobs_apart {
  const planc_mix_evaluator *evaluator;
  const planc_mix *mix;
  const planc_policy *policy; /* of single jobs */
  pl_arena arena;
  planc_problem *problems; /* by job: with its part of the budgets */
  int64_t *needs;          /* by job: bytes that it holds at most where everything stays */
  int64_t *least;          /* by job: of them, what it has failed with less than; 0 = it has not */
  int64_t *arenas;         /* by job: bytes that it has */
  int32_t *iterations;
  pl_solos solos;
} jobs_apart;

static planc_status make_apart(const char *policy, const planc_mix_evaluator *evaluator, const planc_mix_share *shares,
                               planc_candidate *out);
static planc_status start(jobs_apart *a, const planc_mix_share *shares);
static planc_status find_needs(jobs_apart *a);
static planc_status plan_jobs(jobs_apart *a, const planc_target *all);
static planc_status run_side_by_side(jobs_apart *a, planc_candidate *out);

planc_status pl_mix_vdnn_conv(const planc_mix_evaluator *evaluator, const planc_mix_share *shares,
                              planc_candidate *out) {
  return make_apart("vdnn-conv", evaluator, shares, out);
}

planc_status pl_mix_capuchin(const planc_mix_evaluator *evaluator, const planc_mix_share *shares,
                             planc_candidate *out) {
  return make_apart("capuchin", evaluator, shares, out);
}

static planc_status make_apart(const char *policy, const planc_mix_evaluator *evaluator, const planc_mix_share *shares,
                               planc_candidate *out) {
  jobs_apart a = {.evaluator = evaluator, .mix = evaluator->mix, .policy = planc_policy_find(policy)};
  planc_status status = start(&a, shares);
  if (!status) status = find_needs(&a);
  if (!status) status = plan_jobs(&a, &evaluator->all.target);
  if (!status) status = run_side_by_side(&a, out);
  pl_solos_free(&a.solos);
  pl_arena_free(&a.arena);
  return status;
}

static planc_status start(jobs_apart *a, const planc_mix_share *shares) {
  int32_t n = a->mix->n_jobs;
  PLANC_TRY(PL_NEW(&a->arena, &a->problems, n));
  PLANC_TRY(PL_NEW(&a->arena, &a->needs, n));
  PLANC_TRY(PL_NEW(&a->arena, &a->least, n));
  PLANC_TRY(PL_NEW(&a->arena, &a->arenas, n));
  PLANC_TRY(PL_NEW(&a->arena, &a->iterations, n));
  for (int32_t j = 0; j < n; j++) {
    int64_t host = a->mix->terms.budgets[PLANC_MEMORY_HOST];
    a->problems[j] = planc_mix_problem(a->mix, j);
    a->problems[j].terms.budgets[PLANC_MEMORY_HOST] = host > 0 ? host / n : host;
    a->iterations[j] = shares[j].iterations;
  }
  return NULL;
}

/* --- Budgets ------------------------------------------------------------------------------------------------------ */

/* Without what is reserved and the code of its algorithms, which its peak has. */
static planc_status find_need(const planc_evaluator *alone, int64_t *out_bytes) {
  const planc_profile *profile = alone->target.profile;
  planc_candidate candidate = {0};
  int64_t code = 0;
  planc_status status = planc_policy_find("none")->make(alone, &candidate);
  if (!status) status = pl_code_of_schedule(profile, candidate.schedule, &code);
  if (!status) status = alone->peak(alone, &candidate, out_bytes);
  planc_candidate_free(&candidate);
  *out_bytes -= planc_profile_device(profile)->reserved_bytes + code;
  return status;
}

static planc_status find_needs(jobs_apart *a) {
  for (int32_t j = 0; j < a->mix->n_jobs; j++) {
    int32_t same = planc_mix_first_same(a->mix, j);
    const planc_evaluator alone = a->evaluator->alone(a->evaluator, &a->problems[j]);
    if (same < j)
      a->needs[j] = a->needs[same];
    else
      PLANC_TRY(pl_in_job(a->mix, j, find_need(&alone, &a->needs[j])));
  }
  return NULL;
}

/* --- Plans -------------------------------------------------------------------------------------------------------- */

static void part_budgets(jobs_apart *a, const planc_target *all);
static bool know_least(jobs_apart *a, int32_t job, planc_status refused);
static bool is_too_much(const jobs_apart *a, const planc_target *all);
static int64_t least_together(const jobs_apart *a);
static planc_status refuse(const jobs_apart *a, const planc_target *all, int32_t job, planc_status status);

static planc_status plan_jobs(jobs_apart *a, const planc_target *all) {
  enum { MOST_PLANS = 4 * PLANC_MIX_MAX_JOBS };
  for (int32_t k = 1;; k++) {
    int32_t failed;
    part_budgets(a, all);
    planc_status status = pl_solos_make(a->evaluator, a->problems, a->policy, &a->solos, &failed);
    if (planc_status_code(status) != PLANC_INFEASIBLE) return pl_in_job(a->mix, failed, status);
    if (!know_least(a, failed, status) || is_too_much(a, all) || k == MOST_PLANS) return refuse(a, all, failed, status);
    planc_status_free(status);
    pl_solos_free(&a->solos);
  }
}

/* In bytes of the arena. */
static int64_t part_of(const jobs_apart *a, int32_t job) {
  const planc_problem *problem = &a->problems[job];
  return problem->terms.budgets[PLANC_MEMORY_DEVICE] - pl_reserved(&problem->terms, problem->job.profile);
}

static void set_part(jobs_apart *a, int32_t job, int64_t bytes) {
  planc_problem *problem = &a->problems[job];
  problem->terms.budgets[PLANC_MEMORY_DEVICE] =
      pl_add_saturate(bytes - bytes % PLANC_ALIGNMENT, pl_reserved(&problem->terms, problem->job.profile));
}

/* The jobs whose part would be less than they have failed with have that; the others part the rest. */
static void part_budgets(jobs_apart *a, const planc_target *all) {
  bool is_set[PLANC_MIX_MAX_JOBS] = {false}, again = true;
  int64_t room = pl_max(pl_arena_room(all->terms, all->profile), 0);
  while (again) {
    int64_t sum = 0;
    again = false;
    for (int32_t j = 0; j < a->mix->n_jobs; j++)
      if (!is_set[j]) sum = pl_add_saturate(sum, a->needs[j]);
    for (int32_t j = 0; j < a->mix->n_jobs && !again; j++) {
      if (is_set[j]) continue;
      int64_t part = sum > 0 ? pl_muldiv_floor(room, a->needs[j], sum) : 0;
      again = is_set[j] = part < a->least[j];
      set_part(a, j, again ? a->least[j] : part);
      if (again) room = pl_max(room - a->least[j], 0);
    }
  }
}

/* Learns from a refusal what the job takes, if that is more than it had, and it says so. */
static bool know_least(jobs_apart *a, int32_t job, planc_status refused) {
  const planc_problem *problem = &a->problems[job];
  planc_shortage shortage = planc_status_shortage(refused);
  int64_t bytes = shortage.bytes - pl_reserved(&problem->terms, problem->job.profile);
  if (shortage.memory != PLANC_MEMORY_DEVICE || shortage.bytes == 0 || bytes <= part_of(a, job)) return false;
  int32_t same = planc_mix_first_same(a->mix, job);
  for (int32_t j = 0; j < a->mix->n_jobs; j++)
    if (planc_mix_first_same(a->mix, j) == same) a->least[j] = pl_align_up(bytes, PLANC_ALIGNMENT);
  return true;
}

static bool is_too_much(const jobs_apart *a, const planc_target *all) {
  return least_together(a) > pl_arena_room(all->terms, all->profile);
}

/* Of the jobs that have failed. */
static int64_t least_together(const jobs_apart *a) {
  int64_t sum = 0;
  for (int32_t j = 0; j < a->mix->n_jobs; j++) sum = pl_add_saturate(sum, a->least[j]);
  return sum;
}

/* Says what the budget of all must be so that this job has what it takes. */
static planc_status refuse(const jobs_apart *a, const planc_target *all, int32_t job, planc_status status) {
  planc_shortage shortage = planc_status_shortage(status);
  if (shortage.memory != PLANC_MEMORY_DEVICE || shortage.bytes == 0) return pl_in_job(a->mix, job, status);
  char part[PL_SIZE_TEXT], least[PL_SIZE_TEXT];
  const planc_problem *problem = &a->problems[job];
  int64_t lacking = shortage.bytes - problem->terms.budgets[PLANC_MEMORY_DEVICE];
  int64_t more = pl_max(lacking, least_together(a) - pl_arena_room(all->terms, all->profile));
  planc_status refused = planc_infeasible(
      (planc_shortage){PLANC_MEMORY_DEVICE, pl_add_saturate(all->terms->budgets[PLANC_MEMORY_DEVICE], pl_max(more, 0))},
      "the part of the budget that is left to it is %s, and it takes %s",
      pl_size_format(problem->terms.budgets[PLANC_MEMORY_DEVICE], part), pl_size_format(shortage.bytes, least));
  planc_status_free(status);
  return pl_in_job(a->mix, job, refused);
}

static planc_status run_side_by_side(jobs_apart *a, planc_candidate *out) {
  pl_merge merge = {.n_jobs = a->mix->n_jobs, .jobs = a->solos.candidates, .iterations = a->iterations};
  pl_timing timing;
  int64_t bytes;
  char sum[PL_SIZE_TEXT];
  PLANC_TRY(pl_own_memory_place(&a->arena, a->evaluator, a->problems, &merge, a->arenas, &bytes));
  PLANC_TRY(pl_merge_side_by_side(&a->arena, a->evaluator, a->problems, &merge, &timing, out));
  return planc_candidate_explain(out, "each planned as if alone, side by side with memory of its own: %s together",
                                 pl_size_format(bytes, sum));
}
