/* `tensile` for several jobs (papers/002): each job swaps and computes again as its own plan by TENSILE has it
 * (planner/policies/tensile.c), the jobs run side by side, and memory never goes from one to the other.
 *
 * Jobs run asynchronously, so that the peak that counts is the sum of theirs, and which of the tensors at the peaks is
 * swapped first is no matter while each job may swap as many as its rate allows: the rates are the jobs' priorities,
 * the lower the higher (IV-C). Where the peaks are too much for the budget, what is too much is shared among the jobs,
 * which then compute again. There is one link for all. The authors' program plans as if each job had one of its own;
 * here each counts on an equal part.
 *
 * A job that is not alone takes longer, which leaves its copies more time. As with measured latencies (IV-E), the jobs
 * are planned again with the times that they are simulated to take together: once in any case, and again while they
 * change by more than 0.3, new times counting for 0.9 (papers/NOTES, 1c). The fastest is kept. */
#include "planner/code.h"
#include "planner/colocate/merge.h"
#include "planner/colocate/mix_policies.h"
#include "planner/colocate/share_regions.h"
#include "planner/colocate/solo.h"
#include "planner/evaluate.h"
#include "planner/lower/addresses.h"
#include "util/math.h"
#include "util/size.h"

enum { MILLION = 1000000, NEW_PPM = 900000, CHANGED_PPM = 300000, MOST_ROUNDS = 6, MOST_TRIES = 8 };

typedef struct tensile_mix {
  const planc_mix *mix;
  const planc_evaluator *evaluator;
  pl_arena arena, round; /* what lasts, and what a round needs */
  int32_t *iterations;
  planc_problem *problems;     /* by job: with its part of the link, and of the budget */
  planc_evaluator *alone;      /* by job */
  planc_candidate *candidates; /* by job, of this round */
  int64_t *arenas;             /* by job: bytes that it has to itself */
  int64_t *floors;             /* by job: it is not asked to do with less */
  int64_t *slowdown_ppm;       /* by job: its iteration over what it takes alone */
  planc_candidate best;
  int64_t best_ns, best_bytes;
} tensile_mix;

/* --- Each job ----------------------------------------------------------------------------------------------------- */

static void free_candidates(tensile_mix *t) {
  for (int32_t j = 0; t->candidates && j < t->mix->n_jobs; j++) planc_candidate_free(&t->candidates[j]);
}

static planc_status plan_job(tensile_mix *t, int32_t job) {
  const planc_policy *policy = planc_policy_find("tensile");
  planc_evaluator *alone = &t->alone[job];
  planc_candidate_free(&t->candidates[job]);
  planc_status status = policy->make(alone, &t->candidates[job]);
  if (!status) status = alone->hold(alone, &t->candidates[job]);
  return planc_context(status, "job %d (%s)", job, t->mix->jobs[job].graph->name);
}

/* Places of a job by itself, `base` bytes behind the beginning. */
static planc_status place_job(tensile_mix *t, int32_t job, int64_t base, int64_t **out_residencies,
                              int64_t **out_workspaces) {
  const planc_schedule *s = t->candidates[job].schedule;
  pl_addresses addresses = {0};
  int32_t n_residencies = planc_schedule_n_residencies(s), n_commands = planc_schedule_n_commands(s);
  PLANC_TRY(PL_NEW(&t->round, out_residencies, n_residencies));
  PLANC_TRY(PL_NEW(&t->round, out_workspaces, n_commands));
  PLANC_TRY(pl_assign_device_addresses(&t->round, s, &addresses));
  for (int32_t r = 0; r < n_residencies; r++)
    (*out_residencies)[r] = r < planc_schedule_n_parked(s) ? PLANC_BLANK : base + addresses.residencies[r];
  for (int32_t c = 0; c < n_commands; c++) (*out_workspaces)[c] = base + addresses.workspaces[c];
  t->arenas[job] = pl_align_up(addresses.arena_bytes, PLANC_ALIGNMENT);
  return NULL;
}

static planc_status place_jobs(tensile_mix *t, pl_merge *merge, int64_t *out_bytes) {
  int64_t **residencies, **workspaces;
  int32_t n_passes = 0, pass = 0;
  *out_bytes = 0;
  for (int32_t j = 0; j < t->mix->n_jobs; j++) n_passes += t->iterations[j];
  PLANC_TRY(PL_NEW(&t->round, &residencies, n_passes));
  PLANC_TRY(PL_NEW(&t->round, &workspaces, n_passes));
  for (int32_t j = 0; j < t->mix->n_jobs; j++) {
    int64_t *own_residencies, *own_workspaces;
    PLANC_TRY(place_job(t, j, *out_bytes, &own_residencies, &own_workspaces));
    for (int32_t k = 0; k < t->iterations[j]; k++, pass++) {
      residencies[pass] = own_residencies;
      workspaces[pass] = own_workspaces;
    }
    *out_bytes = pl_add_saturate(*out_bytes, t->arenas[j]);
  }
  merge->residencies = residencies;
  merge->workspaces = (const int64_t *const *)workspaces;
  return NULL;
}

/* --- All within the budget ---------------------------------------------------------------------------------------- */

static int64_t reserved_for(const planc_problem *problem) {
  return problem->budget_bytes - pl_arena_room(problem);
}

/* Each job that may need less is asked to take its part less of what is too much than it takes now. False where none
 * may. */
static bool ask_for_less(tensile_mix *t, int64_t excess) {
  int32_t n = 0;
  for (int32_t j = 0; j < t->mix->n_jobs; j++) n += t->arenas[j] > t->floors[j];
  for (int32_t j = 0; j < t->mix->n_jobs; j++) {
    int64_t less = t->arenas[j] - (n > 0 ? excess / n + 1 : 0);
    if (less < t->floors[j]) less = t->floors[j];
    t->problems[j].budget_bytes = pl_add_saturate(less, reserved_for(&t->mix->jobs[j]));
  }
  return n > 0;
}

/* A job that cannot do with what it was asked to gets what it says that it needs, and is not asked for less again. */
static planc_status plan_or_raise(tensile_mix *t, int32_t job) {
  planc_status status = plan_job(t, job);
  planc_shortage shortage = planc_status_shortage(status);
  int64_t asked = t->problems[job].budget_bytes, most = t->mix->jobs[job].budget_bytes;
  if (planc_status_code(status) != PLANC_INFEASIBLE || shortage.memory != PLANC_MEMORY_DEVICE ||
      shortage.bytes <= asked || shortage.bytes > most)
    return status;
  planc_status_free(status);
  t->floors[job] = shortage.bytes - reserved_for(&t->mix->jobs[job]);
  t->problems[job].budget_bytes = shortage.bytes;
  return plan_job(t, job);
}

static planc_status refuse(const tensile_mix *t, int64_t bytes) {
  char needs[PL_SIZE_TEXT], budget[PL_SIZE_TEXT];
  const planc_problem *problem = t->evaluator->problem;
  planc_shortage shortage = {PLANC_MEMORY_DEVICE, pl_add_saturate(bytes, reserved_for(problem))};
  return planc_infeasible(shortage, "the peaks of all jobs come to %s, and the budget is %s",
                          pl_size_format(shortage.bytes, needs), pl_size_format(problem->budget_bytes, budget));
}

/* Plans all jobs so that their peaks together fit. */
static planc_status plan_jobs(tensile_mix *t, pl_merge *merge) {
  int64_t bytes = 0, room = pl_arena_room(t->evaluator->problem);
  for (int32_t j = 0; j < t->mix->n_jobs; j++) {
    t->problems[j].budget_bytes = t->mix->jobs[j].budget_bytes;
    t->floors[j] = 0;
  }
  for (int32_t k = 0; k < MOST_TRIES; k++) {
    for (int32_t j = 0; j < t->mix->n_jobs; j++) PLANC_TRY(plan_or_raise(t, j));
    PLANC_TRY(place_jobs(t, merge, &bytes));
    if (bytes <= room) return NULL;
    if (!ask_for_less(t, bytes - room)) break;
  }
  return refuse(t, bytes);
}

/* --- Rounds ------------------------------------------------------------------------------------------------------- */

static planc_status keep_faster(tensile_mix *t, const pl_timing *timing, planc_candidate *candidate) {
  if (t->best.trace && timing->period_ns >= t->best_ns) return NULL;
  planc_candidate_free(&t->best);
  t->best = *candidate;
  *candidate = (planc_candidate){0};
  t->best_ns = timing->period_ns;
  t->best_bytes = 0;
  for (int32_t j = 0; j < t->mix->n_jobs; j++) t->best_bytes = pl_add_saturate(t->best_bytes, t->arenas[j]);
  return NULL;
}

/* The mean of a job's passes. */
static int64_t pass_ns(const pl_timing *timing, int32_t job) {
  int64_t sum = 0;
  for (int32_t k = 0; k < timing->iterations[job]; k++)
    sum = pl_add_saturate(sum, timing->passes[timing->first[job] + k].ns);
  return sum / timing->iterations[job];
}

/* Takes over how much longer jobs take together than alone; the most by which that has changed. */
static int64_t follow_times(tensile_mix *t, const pl_timing *alone, const pl_timing *together) {
  int64_t most = 0;
  for (int32_t j = 0; j < t->mix->n_jobs; j++) {
    int64_t own = pass_ns(alone, j), before = t->slowdown_ppm[j];
    int64_t now = pl_muldiv_floor(pass_ns(together, j), MILLION, own > 0 ? own : 1);
    int64_t change = pl_muldiv_floor(now > before ? now - before : before - now, MILLION, before);
    if (change > most) most = change;
    t->slowdown_ppm[j] = pl_muldiv_floor(now, NEW_PPM, MILLION) + pl_muldiv_floor(before, MILLION - NEW_PPM, MILLION);
    t->slowdown_ppm[j] += t->slowdown_ppm[j] == 0;
  }
  return most;
}

/* Begins all jobs at once, each as fast as it is alone; how fast together is simulated. */
static planc_status run_together(tensile_mix *t, pl_merge *merge, const pl_timing *alone, pl_timing *together) {
  planc_candidate all = {0};
  for (int32_t j = 0; j < t->mix->n_jobs; j++)
    for (int32_t k = 0; k < t->iterations[j]; k++)
      alone->passes[alone->first[j] + k].start_ns = k * alone->passes[alone->first[j]].ns;
  PLANC_TRY(pl_turns_by_time(&t->round, alone, &merge->turns, &merge->n_turns));
  planc_status status = pl_merge_candidates(merge, &all);
  if (!status) status = pl_timing_together(t->evaluator, &all, together);
  if (!status) status = keep_faster(t, together, &all);
  planc_candidate_free(&all);
  return status;
}

static planc_status play_round(tensile_mix *t, int64_t *out_change) {
  pl_merge merge = {.n_jobs = t->mix->n_jobs, .jobs = t->candidates, .iterations = t->iterations};
  pl_timing alone, together;
  pl_arena_free(&t->round);
  t->round = (pl_arena){0};
  for (int32_t j = 0; j < t->mix->n_jobs; j++) t->problems[j].link_ppm = t->slowdown_ppm[j] / t->mix->n_jobs + 1;
  PLANC_TRY(plan_jobs(t, &merge));
  PLANC_TRY(pl_timing_new(&t->round, t->mix->n_jobs, t->candidates, t->iterations, &alone));
  PLANC_TRY(pl_timing_alone(t->alone, &alone));
  PLANC_TRY(pl_timing_copy(&t->round, &alone, &together));
  PLANC_TRY(run_together(t, &merge, &alone, &together));
  *out_change = follow_times(t, &alone, &together);
  return NULL;
}

/* What later rounds find no room for, the first has. */
static planc_status play_rounds(tensile_mix *t) {
  int64_t change = MILLION;
  for (int32_t round = 0; round < MOST_ROUNDS && (round < 2 || change > CHANGED_PPM); round++) {
    planc_status status = play_round(t, &change);
    if (!status) continue;
    if (!t->best.trace || planc_status_code(status) != PLANC_INFEASIBLE) return status;
    planc_status_free(status);
    return NULL;
  }
  return NULL;
}

/* --- All ---------------------------------------------------------------------------------------------------------- */

static planc_status start(tensile_mix *t, const planc_mix_share *shares) {
  int32_t n = t->mix->n_jobs;
  PLANC_TRY(PL_NEW(&t->arena, &t->iterations, n));
  PLANC_TRY(PL_NEW(&t->arena, &t->problems, n));
  PLANC_TRY(PL_NEW(&t->arena, &t->alone, n));
  PLANC_TRY(PL_NEW(&t->arena, &t->candidates, n));
  PLANC_TRY(PL_NEW(&t->arena, &t->arenas, n));
  PLANC_TRY(PL_NEW(&t->arena, &t->floors, n));
  PLANC_TRY(PL_NEW(&t->arena, &t->slowdown_ppm, n));
  for (int32_t j = 0; j < n; j++) {
    t->iterations[j] = shares[j].iterations;
    t->problems[j] = t->mix->jobs[j];
    t->alone[j] = pl_evaluator_of(&t->problems[j]);
    t->slowdown_ppm[j] = MILLION;
  }
  return NULL;
}

/* The sum of the peaks, which is what the jobs have, beside what they hold at a time if they run as predicted. */
static planc_status explain(const tensile_mix *t, planc_candidate *out) {
  char sum[PL_SIZE_TEXT], merged[PL_SIZE_TEXT];
  int64_t live, reserved = reserved_for(t->evaluator->problem);
  PLANC_TRY(t->evaluator->live(t->evaluator, out, &live));
  return planc_candidate_explain(out, "side by side, each with memory of its own: %s together, of which %s at a time",
                                 pl_size_format(t->best_bytes, sum), pl_size_format(live - reserved, merged));
}

planc_status pl_mix_tensile(const planc_mix *mix, const planc_mix_share *shares, const planc_evaluator *evaluator,
                            planc_candidate *out) {
  tensile_mix t = {.mix = mix, .evaluator = evaluator};
  planc_status status = start(&t, shares);
  if (!status) status = play_rounds(&t);
  if (!status) status = explain(&t, &t.best);
  if (!status) {
    *out = t.best;
    t.best = (planc_candidate){0};
  }
  planc_candidate_free(&t.best);
  free_candidates(&t);
  pl_arena_free(&t.round);
  pl_arena_free(&t.arena);
  return status;
}
