/* `tensile` for several jobs (papers/002): each job swaps and computes again as its own plan by TENSILE has it
 * (planner/policies/tensile.c), the jobs run side by side, and memory never goes from one to the other.
 *
 * Jobs run asynchronously, so that the peak that counts is the sum of theirs. A job's rate is its priority, the lower
 * the higher (IV-C): as in the authors' program it is the share of the job's own tensors that may be swapped, and so a
 * job's swaps do not depend on the others', in whatever order the tensors at the peaks are tried. (The paper's rate is
 * a share of all that the system swaps.) Where the peaks are too much for the budget, what is too much is shared among
 * the jobs, which then compute again.
 *
 * There is one link for all. The authors' program plans as if each job had one of its own (papers/NOTES, 18); here each
 * counts on an equal part, as it has an equal part of the host's memory. A job's ops take longer when it is not alone,
 * which leaves its copies more time. As with measured latencies (IV-E), the jobs are planned again with what their ops
 * are simulated to take together: once in any case, and again while that changes by more than 0.3, new times counting
 * for 0.9 (papers/NOTES, 1c). The fastest is kept. */
#include "planner/base/code.h"
#include "planner/base/if_fits.h"
#include "planner/colocate/jobs/by_time.h"
#include "planner/colocate/jobs/in_job.h"
#include "planner/colocate/jobs/solo.h"
#include "planner/colocate/memory/own_memory.h"
#include "planner/colocate/policies/mix_policies.h"
#include "util/math.h"
#include "util/size.h"

enum { NEW_PPM = 900000, CHANGED_PPM = 300000, MAX_ROUNDS = 6, MAX_TRIES = 16 };

typedef struct tensile_mix {
  const planc_mix_evaluator *evaluator;
  const planc_mix *mix;
  const planc_evaluator *all; /* of the evaluator */
  pl_arena arena, round;      /* what lasts, and what a round needs */
  int32_t *iterations;
  planc_problem *problems; /* by job: with its part of the link, and of the budgets */
  pl_solos solos;          /* of this round */
  int64_t *arenas;         /* by job: bytes that it has to itself, when it was last planned */
  int64_t *fits;           /* by job: the budget that it was planned for then; 0 = it was not yet */
  bool *floor;             /* by job: it cannot do with less */
  int64_t *slowdown_ppm;   /* by job: what its ops take over what they take alone */
  planc_candidate best;
  int64_t best_ns, best_bytes;
} tensile_mix;

static planc_status play_rounds(tensile_mix *t);
static planc_status play_round(tensile_mix *t, int64_t *out_change);
static planc_status plan_jobs(tensile_mix *t, pl_merge *merge);
static int64_t follow_times(tensile_mix *t, const pl_timing *alone, const pl_timing *together);
static planc_status run_together(tensile_mix *t, pl_merge *merge, pl_timing *alone, pl_timing *together);
static planc_status start(tensile_mix *t, const planc_mix_share *shares);
static planc_status explain(const tensile_mix *t, planc_candidate *out);

planc_status pl_mix_tensile(const planc_mix_evaluator *evaluator, const planc_mix_share *shares, planc_candidate *out) {
  tensile_mix t = {.evaluator = evaluator, .mix = evaluator->mix, .all = &evaluator->all};
  planc_status status = start(&t, shares);
  if (!status) status = play_rounds(&t);
  if (!status) status = explain(&t, &t.best);
  if (!status) {
    *out = t.best;
    t.best = (planc_candidate){0};
  }
  planc_candidate_free(&t.best);
  pl_solos_free(&t.solos);
  pl_arena_free(&t.round);
  pl_arena_free(&t.arena);
  return status;
}

/* What later rounds find no room for, the first has. */
static planc_status play_rounds(tensile_mix *t) {
  int64_t change = PL_PPM;
  for (int32_t round = 0; round < MAX_ROUNDS && (round < 2 || change > CHANGED_PPM); round++) {
    planc_status status = play_round(t, &change);
    bool fits = true;
    if (round == 0) {
      PLANC_TRY(status);
    } else {
      PLANC_TRY(pl_if_fits(status, &fits));
    }
    if (!fits) return NULL;
  }
  return NULL;
}

static planc_status play_round(tensile_mix *t, int64_t *out_change) {
  pl_merge merge = {.n_jobs = t->mix->n_jobs, .iterations = t->iterations};
  pl_timing alone, together;
  pl_arena_free(&t->round);
  t->round = (pl_arena){0};
  PLANC_TRY(plan_jobs(t, &merge));
  PLANC_TRY(run_together(t, &merge, &alone, &together));
  *out_change = follow_times(t, &alone, &together);
  return NULL;
}

/* --- All within the budget ---------------------------------------------------------------------------------------- */

static void start_round(tensile_mix *t);
static planc_status plan_all(tensile_mix *t);
static bool ask_for_less(tensile_mix *t, int64_t excess);
static planc_status refuse(const tensile_mix *t, int64_t bytes);

/* Plans all jobs so that their peaks together fit. */
static planc_status plan_jobs(tensile_mix *t, pl_merge *merge) {
  int64_t bytes = 0, room = pl_arena_room(t->all->target.terms, t->all->target.profile);
  start_round(t);
  for (int32_t k = 0; k < MAX_TRIES; k++) {
    PLANC_TRY(plan_all(t));
    merge->jobs = t->solos.candidates;
    PLANC_TRY(pl_own_memory_place(&t->round, t->evaluator, t->problems, merge, t->arenas, &bytes));
    if (bytes <= room) return NULL;
    for (int32_t j = 0; j < t->mix->n_jobs; j++) t->fits[j] = t->problems[j].terms.budgets[PLANC_MEMORY_DEVICE];
    if (!ask_for_less(t, bytes - room)) break;
  }
  return refuse(t, bytes);
}

/* Every job has an equal part of the host. */
static void start_round(tensile_mix *t) {
  for (int32_t j = 0; j < t->mix->n_jobs; j++) {
    int64_t host = t->mix->terms.budgets[PLANC_MEMORY_HOST], link = t->slowdown_ppm[j] / t->mix->n_jobs;
    t->problems[j].terms.budgets[PLANC_MEMORY_DEVICE] = t->mix->terms.budgets[PLANC_MEMORY_DEVICE];
    t->problems[j].terms.budgets[PLANC_MEMORY_HOST] = host > 0 ? host / t->mix->n_jobs : host;
    t->problems[j].job.link_ppm = link > 0 ? link : 1;
    t->fits[j] = 0;
    t->floor[j] = false;
  }
}

/* Plans each job. A job that fails at its smaller budget gets its last good budget back and keeps it. */
static planc_status plan_all(tensile_mix *t) {
  for (;;) {
    int32_t failed;
    pl_solos_free(&t->solos);
    planc_status status = pl_solos_make(t->evaluator, t->problems, planc_policy_find("tensile"), &t->solos, &failed);
    if (!status) return NULL;
    if (planc_status_code(status) != PLANC_INFEASIBLE || t->floor[failed] || t->fits[failed] == 0)
      return pl_in_job(t->mix, failed, status);
    planc_status_free(status);
    t->floor[failed] = true;
    t->problems[failed].terms.budgets[PLANC_MEMORY_DEVICE] = t->fits[failed];
  }
}

/* Each job that may need less is asked to take its part less of what is too much than it takes now. False where none
 * may. */
static bool ask_for_less(tensile_mix *t, int64_t excess) {
  int32_t n = 0;
  for (int32_t j = 0; j < t->mix->n_jobs; j++) n += !t->floor[j];
  for (int32_t j = 0; j < t->mix->n_jobs; j++) {
    int64_t less = n > 0 ? t->arenas[j] - excess / n - 1 : 0;
    if (t->floor[j]) continue;
    planc_problem *problem = &t->problems[j];
    problem->terms.budgets[PLANC_MEMORY_DEVICE] =
        pl_add_saturate(less > 0 ? less : 0, pl_reserved(&problem->terms, problem->job.profile));
  }
  return n > 0;
}

static planc_status refuse(const tensile_mix *t, int64_t bytes) {
  char needs[PL_SIZE_TEXT], budget[PL_SIZE_TEXT], own[PL_SIZE_TEXT];
  int32_t largest = 0;
  for (int32_t j = 1; j < t->mix->n_jobs; j++)
    if (t->arenas[j] > t->arenas[largest]) largest = j;
  const planc_target *target = &t->all->target;
  planc_shortage shortage = {PLANC_MEMORY_DEVICE, pl_add_saturate(bytes, pl_reserved(target->terms, target->profile))};
  return planc_infeasible(shortage, "the peaks of all jobs come to %s, %s of it job %d's (%s), and the budget is %s",
                          pl_size_format(shortage.bytes, needs), pl_size_format(t->arenas[largest], own), largest,
                          planc_mix_job_name(t->mix, largest),
                          pl_size_format(target->terms->budgets[PLANC_MEMORY_DEVICE], budget));
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

/* What the ops of a job take in all its passes. */
static int64_t busy_ns(const pl_timing *timing, int32_t job) {
  int64_t sum = 0;
  for (int32_t k = 0; k < timing->iterations[job]; k++)
    sum = pl_add_saturate(sum, timing->passes[timing->first[job] + k].busy_ns);
  return sum;
}

/* Takes over how much longer ops take together than alone; the most by which that has changed. */
static int64_t follow_times(tensile_mix *t, const pl_timing *alone, const pl_timing *together) {
  int64_t most = 0;
  for (int32_t j = 0; j < t->mix->n_jobs; j++) {
    int64_t own = busy_ns(alone, j), before = t->slowdown_ppm[j];
    int64_t now = pl_muldiv_floor(busy_ns(together, j), PL_PPM, own > 0 ? own : 1);
    int64_t change = pl_muldiv_floor(now > before ? now - before : before - now, PL_PPM, before);
    if (change > most) most = change;
    t->slowdown_ppm[j] = pl_muldiv_floor(now, NEW_PPM, PL_PPM) + pl_muldiv_floor(before, PL_PPM - NEW_PPM, PL_PPM);
    t->slowdown_ppm[j] += t->slowdown_ppm[j] == 0;
  }
  return most;
}

/* How fast the jobs are beside each other is simulated. */
static planc_status run_together(tensile_mix *t, pl_merge *merge, pl_timing *alone, pl_timing *together) {
  planc_candidate all = {0};
  planc_status status = pl_merge_side_by_side(&t->round, t->evaluator, t->problems, merge, alone, &all);
  if (!status) status = pl_timing_copy(&t->round, alone, together);
  if (!status) status = pl_timing_together(t->all, &all, together);
  if (!status) status = keep_faster(t, together, &all);
  planc_candidate_free(&all);
  return status;
}

/* --- Start, and what is told -------------------------------------------------------------------------------------- */

static planc_status start(tensile_mix *t, const planc_mix_share *shares) {
  int32_t n = t->mix->n_jobs;
  PLANC_TRY(PL_NEW(&t->arena, &t->iterations, n));
  PLANC_TRY(PL_NEW(&t->arena, &t->problems, n));
  PLANC_TRY(PL_NEW(&t->arena, &t->arenas, n));
  PLANC_TRY(PL_NEW(&t->arena, &t->fits, n));
  PLANC_TRY(PL_NEW(&t->arena, &t->floor, n));
  PLANC_TRY(PL_NEW(&t->arena, &t->slowdown_ppm, n));
  for (int32_t j = 0; j < n; j++) {
    t->iterations[j] = shares[j].iterations;
    t->problems[j] = planc_mix_problem(t->mix, j);
    t->slowdown_ppm[j] = PL_PPM;
  }
  return NULL;
}

/* The sum of the peaks, which is what the jobs have, beside what they hold at a time if they run as predicted. */
static planc_status explain(const tensile_mix *t, planc_candidate *out) {
  char sum[PL_SIZE_TEXT], merged[PL_SIZE_TEXT];
  int64_t live, reserved = pl_reserved(t->all->target.terms, t->all->target.profile);
  PLANC_TRY(t->all->live(t->all, out, &live));
  return planc_candidate_explain(out, "side by side, each with memory of its own: %s together, of which %s at a time",
                                 pl_size_format(t->best_bytes, sum), pl_size_format(live - reserved, merged));
}
