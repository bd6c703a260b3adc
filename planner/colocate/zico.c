/* `zico`: jobs run side by side, each iteration shifted until what it holds fits beside the others (papers/000).
 *
 * Each job is first looked at alone: its tensors have classes, and of those that are shared it is known how many
 * regions it holds when (areas.h). Then, in the informed phase (5.3), the shifts are searched (shift.h), regions are
 * handed out as time goes on (share_regions.h), and what comes of it is simulated: iterations side by side take longer,
 * so the search goes on with their new times until they no longer change. It begins with less than the budget, so that
 * the first times are of jobs that hardly disturb each other, and comes to all of it in eight steps; for jobs that are
 * alike it begins with all. What is tried at the whole budget is kept where it is the fastest so far.
 *
 * More than two jobs are paired in their order, and each pair has its own budget: its part of the regions by what its
 * jobs hold at the most.
 *
 * A shift is no delay in the plan: where a region goes from one job to another, the one waits for the op of the other
 * that is the last to use it, and so never starts its work in it sooner, however long that takes. Where no shift is
 * found, the jobs take turns (temporal.c). Where regions that are handed out one by one do not suffice for a shift,
 * tensors are placed at once (place_passes.h), which the paper does not. In the end memory is given up that makes it no
 * faster (7.3). */
#include <stdio.h>

#include "planner/code.h"
#include "planner/colocate/merge.h"
#include "planner/colocate/mix_policies.h"
#include "planner/colocate/place_passes.h"
#include "planner/colocate/share_regions.h"
#include "planner/colocate/shift.h"
#include "planner/colocate/solo.h"
#include "planner/evaluate.h"
#include "util/math.h"
#include "util/size.h"

enum { PAIR = 2, STEPS = 8, MOST_ROUNDS = 24, MOST_SOLOS = 4, STEADY_PPM = 50000 };
#define REGION_BYTES (INT64_C(64) << 20) /* where none are asked for (6.3) */

typedef struct zico {
  const planc_mix *mix;
  const planc_mix_share *shares;
  const planc_evaluator *evaluator;
  pl_arena arena;
  pl_solos solos;
  int32_t *iterations;
  planc_evaluator *alone; /* by job */
  planc_problem *problems;
  pl_areas areas;
  int64_t region_bytes;    /* the unit in which it is taken */
  int64_t capacity, least; /* bytes for regions: that there are, and that some job needs alone, or pairs of jobs */
  pl_timing timing;
  planc_candidate best;
  pl_timing best_timing;
  int64_t best_ns;
  bool any;
} zico;

/* --- Each job alone ----------------------------------------------------------------------------------------------- */

/* Whether the regions that there are suffice for each job alone; else by how much they are too few. */
static int64_t find_excess(const zico *z) {
  int64_t most = 0;
  for (int32_t j = 0; j < z->mix->n_jobs; j++)
    if (z->areas.jobs[j].most_bytes > most) most = z->areas.jobs[j].most_bytes;
  return pl_add_saturate(most, z->areas.private_bytes) - pl_arena_room(z->evaluator->problem);
}

static planc_status make_solos(zico *z, int64_t less) {
  int32_t failed;
  pl_solos_free(&z->solos);
  for (int32_t j = 0; j < z->mix->n_jobs; j++) {
    z->problems[j] = z->mix->jobs[j];
    z->problems[j].budget_bytes -= less;
    z->alone[j] = pl_evaluator_of(&z->problems[j]);
  }
  PLANC_TRY(pl_solos_make(z->problems, z->mix->n_jobs, &z->solos, &failed));
  return pl_areas_make(&z->arena, z->mix->n_jobs, z->solos.candidates,
                       z->region_bytes > PLANC_ALIGNMENT ? z->region_bytes : 0, &z->areas);
}

/* What others have to themselves is missing for a job's workspaces and regions: it is planned for so much less. */
static planc_status look_at_jobs(zico *z, bool *out_fit) {
  int64_t less = 0, excess;
  int32_t tries = 0;
  do {
    planc_status status = make_solos(z, less);
    *out_fit = !status;
    if (planc_status_code(status) == PLANC_INFEASIBLE) {
      planc_status_free(status);
      return NULL;
    }
    PLANC_TRY(status);
    excess = find_excess(z);
    *out_fit = excess <= 0;
    less = pl_add_saturate(less, excess);
  } while (!*out_fit && ++tries < MOST_SOLOS);
  z->capacity = pl_arena_room(z->evaluator->problem) - z->areas.private_bytes;
  return NULL;
}

/* --- Pairs -------------------------------------------------------------------------------------------------------- */

static int64_t most_of(const zico *z, int32_t first, int32_t end) {
  int64_t sum = 0;
  for (int32_t j = first; j < end && j < z->mix->n_jobs; j++) sum = pl_add_saturate(sum, z->areas.jobs[j].most_bytes);
  return sum;
}

/* A pair's part of the bytes for regions. */
static int64_t part_of(const zico *z, int32_t pair, int64_t bytes) {
  int64_t all = most_of(z, 0, z->mix->n_jobs);
  return all > 0 ? pl_muldiv_floor(bytes, most_of(z, pair * PAIR, (pair + 1) * PAIR), all) : bytes;
}

/* The least bytes of which each pair's part is enough for each of its jobs alone. */
static int64_t find_least(const zico *z) {
  int64_t all = most_of(z, 0, z->mix->n_jobs), least = 0;
  for (int32_t j = 0; j < z->mix->n_jobs; j++) {
    int64_t pair = most_of(z, j / PAIR * PAIR, (j / PAIR + 1) * PAIR), own = z->areas.jobs[j].most_bytes;
    int64_t bytes = pair > 0 ? pl_muldiv_ceil(own, all, pair) : 0;
    if (bytes > least) least = bytes;
  }
  return least;
}

/* The pairs' periods become one, the longest. */
static planc_status shift_pairs(zico *z, int64_t bytes, bool *out_fit) {
  int64_t longest = 0;
  *out_fit = true;
  for (int32_t pair = 0; *out_fit && pair * PAIR < z->mix->n_jobs; pair++) {
    int32_t jobs[PAIR] = {pair * PAIR, pair * PAIR + 1};
    int32_t n = jobs[1] < z->mix->n_jobs ? PAIR : 1;
    PLANC_TRY(pl_shift(&z->timing, &z->areas, jobs, n, part_of(z, pair, bytes), out_fit));
    if (z->timing.period_ns > longest) longest = z->timing.period_ns;
  }
  z->timing.period_ns = longest;
  return NULL;
}

/* --- The informed phase ------------------------------------------------------------------------------------------- */

static planc_status merge(zico *z, int64_t *const *addresses, planc_candidate *out) {
  const int64_t **workspaces;
  pl_merge merge = {
      .n_jobs = z->mix->n_jobs, .jobs = z->solos.candidates, .iterations = z->iterations, .residencies = addresses};
  PLANC_TRY(PL_NEW(&z->arena, &workspaces, z->mix->n_jobs));
  for (int32_t j = 0; j < z->mix->n_jobs; j++) workspaces[j] = z->areas.jobs[j].workspaces;
  merge.workspaces = workspaces;
  PLANC_TRY(pl_turns_by_time(&z->arena, &z->timing, &merge.turns, &merge.n_turns));
  return pl_merge_candidates(&merge, out);
}

/* In regions as time goes on, or else all at once. */
static planc_status find_places(zico *z, const pl_timing *timing, int64_t capacity, int64_t ***out_addresses,
                                bool *out_fit) {
  PLANC_TRY(pl_share_regions(&z->arena, timing, &z->areas, capacity, out_addresses, out_fit));
  return *out_fit ? NULL : pl_place_passes(&z->arena, timing, &z->areas, capacity, out_addresses, out_fit);
}

/* Shifts within `bytes`, and in less and less while regions that lie apart do not suffice. */
static planc_status arrange(zico *z, int64_t bytes, int64_t ***out_addresses, bool *out_fit) {
  enum { PARTS = 32 };
  int64_t within = bytes, less = bytes > z->least ? (bytes - z->least) / PARTS : 0;
  for (less = less > z->region_bytes ? less : z->region_bytes;; less *= 2) {
    PLANC_TRY(shift_pairs(z, within, out_fit));
    if (!*out_fit) return NULL;
    PLANC_TRY(find_places(z, &z->timing, z->capacity, out_addresses, out_fit));
    if (*out_fit || within <= z->least) return NULL;
    within = bytes - less > z->least ? bytes - less : z->least;
  }
}

static planc_status keep(zico *z, const pl_timing *arranged, planc_candidate *candidate) {
  bool better = !z->any || z->timing.period_ns < z->best_ns;
  if (!better) {
    planc_candidate_free(candidate);
    return NULL;
  }
  planc_candidate_free(&z->best);
  z->best = *candidate;
  z->best_ns = z->timing.period_ns;
  z->best_timing = *arranged;
  z->any = true;
  return NULL;
}

/* One round: shifts, regions, simulation. The timing is then that of the simulation. */
static planc_status try_round(zico *z, int64_t bytes, bool all, bool *out_fit) {
  int64_t **addresses;
  planc_candidate candidate = {0};
  pl_timing arranged;
  PLANC_TRY(arrange(z, bytes, &addresses, out_fit));
  if (!*out_fit) return NULL;
  PLANC_TRY(pl_timing_copy(&z->arena, &z->timing, &arranged));
  planc_status status = merge(z, addresses, &candidate);
  if (!status) status = pl_timing_together(z->evaluator, &candidate, &z->timing);
  if (!status && all) return keep(z, &arranged, &candidate);
  planc_candidate_free(&candidate);
  return status;
}

static bool are_alike(const planc_mix *mix) {
  for (int32_t j = 1; j < mix->n_jobs; j++)
    if (mix->jobs[j].graph != mix->jobs[0].graph || mix->jobs[j].batch != mix->jobs[0].batch) return false;
  return true;
}

/* The budgets go up whenever times are steady, and the search ends when they are at the whole one. */
static planc_status search(zico *z) {
  pl_timing before;
  int64_t step = (z->capacity - z->least) / STEPS, bytes = z->capacity;
  if (step < z->region_bytes) step = z->region_bytes;
  if (!are_alike(z->mix) && z->least < bytes) bytes = z->least;
  for (int32_t round = 0; round < MOST_ROUNDS; round++) {
    bool fit, all = bytes >= z->capacity;
    PLANC_TRY(pl_timing_copy(&z->arena, &z->timing, &before));
    PLANC_TRY(try_round(z, bytes, all, &fit));
    if (!fit && all) break;
    if (fit && pl_timing_change(&z->timing, &before) >= STEADY_PPM) continue;
    if (all) break;
    bytes = bytes > z->capacity - step ? z->capacity : bytes + step;
  }
  return NULL;
}

/* --- No more memory than it takes --------------------------------------------------------------------------------- */

/* Addresses in the fewest regions in which the best shifts still fit, by bisection; NULL where all are needed. Each
 * job begins at an end of them, so that of more more would be taken. */
static planc_status find_capacity(zico *z, int64_t ***out_addresses) {
  int64_t fails = 0, fits = z->capacity / z->region_bytes;
  *out_addresses = NULL;
  while (fits - fails > 1) {
    int64_t middle = fails + (fits - fails) / 2, **addresses;
    bool fit;
    PLANC_TRY(find_places(z, &z->best_timing, middle * z->region_bytes, &addresses, &fit));
    if (!fit) {
      fails = middle;
      continue;
    }
    fits = middle;
    *out_addresses = addresses;
  }
  return NULL;
}

/* Gives up memory that makes it no faster. */
static planc_status tighten(zico *z) {
  enum { WORTH = 1000 };
  int64_t **addresses, ns;
  planc_candidate candidate = {0};
  PLANC_TRY(find_capacity(z, &addresses));
  if (!addresses) return NULL;
  z->timing = z->best_timing;
  planc_status status = merge(z, addresses, &candidate);
  if (!status) status = z->evaluator->time(z->evaluator, &candidate, &ns);
  bool better = !status && ns <= z->best_ns + z->best_ns / WORTH;
  planc_candidate_free(better ? &z->best : &candidate);
  if (better) z->best = candidate;
  return status;
}

/* --- All ---------------------------------------------------------------------------------------------------------- */

static planc_status start(zico *z) {
  int32_t n = z->mix->n_jobs;
  PLANC_TRY(PL_NEW(&z->arena, &z->alone, n));
  PLANC_TRY(PL_NEW(&z->arena, &z->problems, n));
  PLANC_TRY(PL_NEW(&z->arena, &z->iterations, n));
  for (int32_t j = 0; j < n; j++) z->iterations[j] = z->shares[j].iterations;
  return NULL;
}

static planc_status find_best(zico *z) {
  bool fit;
  PLANC_TRY(start(z));
  PLANC_TRY(look_at_jobs(z, &fit));
  if (!fit) return NULL;
  z->least = find_least(z);
  PLANC_TRY(pl_timing_new(&z->arena, z->mix->n_jobs, z->solos.candidates, z->iterations, &z->timing));
  PLANC_TRY(pl_timing_alone(z->alone, &z->timing));
  PLANC_TRY(search(z));
  return z->any ? tighten(z) : NULL;
}

/* By how much a job's iterations are shifted in a period. */
static int64_t shift_of(const zico *z, int32_t job) {
  int64_t ns = z->best_timing.period_ns;
  for (int32_t k = 0; k < z->iterations[job]; k++) ns -= z->best_timing.passes[z->best_timing.first[job] + k].ns;
  return ns;
}

static planc_status explain(const zico *z, planc_candidate *out) {
  for (int32_t j = 0; j < z->mix->n_jobs; j++) {
    char shift[PL_SIZE_TEXT];
    PLANC_TRY(
        planc_candidate_explain(out, "job %d is shifted by %s in a period", j, pl_time_format(shift_of(z, j), shift)));
  }
  return NULL;
}

static planc_status take_turns(const zico *z, planc_candidate *out) {
  PLANC_TRY(pl_mix_temporal(z->mix, z->shares, z->evaluator, out));
  return planc_candidate_explain(out, "the jobs take turns, for they do not fit side by side at any shift");
}

planc_status pl_mix_zico(const planc_mix *mix, const planc_mix_share *shares, const planc_evaluator *evaluator,
                         planc_candidate *out) {
  int64_t region = mix->jobs[0].settings.region;
  zico z = {.mix = mix, .shares = shares, .evaluator = evaluator, .region_bytes = region > 0 ? region : REGION_BYTES};
  planc_status status = find_best(&z);
  if (!status && z.any) {
    *out = z.best;
    z.best = (planc_candidate){0};
    status = explain(&z, out);
  } else if (!status) {
    status = take_turns(&z, out);
  }
  planc_candidate_free(&z.best);
  pl_solos_free(&z.solos);
  pl_arena_free(&z.arena);
  return status;
}
