/* `zico`: jobs run side by side, each iteration shifted until what it holds fits beside the others (papers/000).
 *
 * Each job is first looked at alone: its tensors have classes, and of those that are shared it is known how many
 * regions it holds when (areas.h). Then, in the informed phase (5.3), the shifts are searched (shift.h), regions are
 * handed out as time goes on (shared_places.h), and what comes of it is simulated: iterations side by side take longer,
 * so the search goes on with their new times until these change by less than a twentieth, in a few rounds. It begins
 * with less than the budget, so that the first times are of jobs that hardly disturb each other, and comes to all of it
 * in eight steps of at most two rounds each; for jobs that are alike it begins with all. What is tried at the whole
 * budget is kept where it is the fastest so far.
 *
 * More than two jobs are paired, and each pair has its own budget in the search (shift_pairs.h).
 *
 * A plan does not state a shift as a delay: where a region goes from one job to another, the second waits for the
 * first's last op that uses it, however long that takes.
 *
 * Rounds of a job that are to run side by side (2.2) do so in the job's own iteration (side_by_side.h), which is then
 * shifted as a whole; where all goes faster with every job's rounds one after the other, they run so. A job that is the
 * only one has nobody to share regions with (only_job.h).
 *
 * What the paper has and a plan does not: there jobs take turns once one has overrun its predicted memory twice. A plan
 * waits for memory and cannot overrun it.
 *
 * What the paper does differently: there a job alone holds all that it needs, and here it may swap, compute again or
 * split the batch where it would not fit else (solo.h). There the backward pass begins where a job holds most, and here
 * the graph says which ops it has (planc_tensor_class). So all tensors of a job for inference are temporaries, which
 * share nothing unless they fill a region (areas.h).
 *
 * What the paper does not have: where regions that are handed out one by one do not suffice for a shift, tensors are
 * placed at once (place_passes.h); where no shift is found with its regions of 64 MB, or only one of jobs that swap or
 * compute again, its smaller ones and tensors are tried, and where these do not suffice either, each job is asked to
 * take less; memory that makes it faster by no more than a thousandth is given up in the end; and the jobs take turns
 * (temporal.c) not only where no shift is found, but also where that is faster. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "planner/base/code.h"
#include "planner/base/if_fits.h"
#include "planner/colocate/interleave/shift_pairs.h"
#include "planner/colocate/interleave/side_by_side.h"
#include "planner/colocate/jobs/solo.h"
#include "planner/colocate/memory/shared_places.h"
#include "planner/colocate/policies/instead.h"
#include "planner/colocate/policies/mix_policies.h"
#include "planner/colocate/policies/only_job.h"
#include "util/emit.h"
#include "util/math.h"
#include "util/size.h"

enum { MAX_SOLOS = 8, MAX_SEARCHES = 3, STEPS = 8, ROUNDS_ON_THE_WAY = 2, ROUNDS_AT_LAST = 8, STEADY_PPM = 50000 };

/* What a round has tried: how passes are arranged, and the candidate that comes of it, its own, until someone keeps it.
 * A round that arranges them as the one before comes to the same. */
typedef struct tried {
  bool fits;
  pl_timing arranged;
  planc_candidate candidate;
} tried;

typedef struct zico {
  const planc_mix_evaluator *evaluator;
  const planc_mix *mix;
  const planc_mix_share *shares;
  const planc_evaluator *all; /* of the evaluator */
  bool one_round_at_a_time;
  pl_arena arena, round, before; /* what stays, what the present round of the search needs, and the one before it */
  pl_solos solos;
  int32_t n_searches; /* for shifts */
  int32_t *iterations;
  planc_problem *problems;
  pl_areas areas;
  int64_t region_bytes; /* the unit in which memory goes from job to job */
  int64_t capacity;     /* bytes for regions that may be used */
  int64_t least;        /* and the fewest that are tried: each pair's part of them holds either of its jobs alone */
  pl_timing timing;
  tried now, earlier; /* in this round and in the one before */
  planc_candidate best;
  pl_timing best_timing;                 /* as it was arranged */
  int64_t best_ns;                       /* the period */
  int64_t begins_ns[PLANC_MIX_MAX_JOBS]; /* when each job begins in it */
  bool any;
} zico;

static planc_status choose(zico *z, planc_candidate *out);
static planc_status find_best_of_rounds(zico *z);
static bool is_region_asked(const zico *z);
static planc_status try_smaller_regions(zico *z);
static planc_status suggest_other_regions(const zico *z, planc_candidate *out);
static zico begin(const planc_mix_evaluator *evaluator, const planc_mix_share *shares);
static void end(zico *z);
static void forget_rounds(zico *z);
static bool has_rounds_side_by_side(const zico *z);
static planc_status compare_one_at_a_time(zico *z);
static planc_status find_best(zico *z);
static planc_status try_jobs(zico *z, bool *out_made);
static planc_status search(zico *z);
static planc_status tighten(zico *z);
static planc_status start(zico *z);
static planc_status explain(const zico *z, planc_candidate *out);

planc_status pl_mix_zico(const planc_mix_evaluator *evaluator, const planc_mix_share *shares, planc_candidate *out) {
  if (evaluator->mix->n_jobs == 1) return pl_only_job_make(evaluator, shares->iterations, out);
  zico z = begin(evaluator, shares);
  planc_status status = choose(&z, out);
  end(&z);
  return status;
}

static planc_status choose(zico *z, planc_candidate *out) {
  bool turns;
  PLANC_TRY(find_best_of_rounds(z));
  if (!is_region_asked(z)) PLANC_TRY(try_smaller_regions(z));
  *out = z->best;
  z->best = (planc_candidate){0};
  PLANC_TRY(
      pl_turns_instead(z->evaluator, z->shares, "no shift at which they fit side by side", z->best_ns, out, &turns));
  if (!turns) return explain(z, out);
  return !z->any && is_region_asked(z) ? suggest_other_regions(z, out) : NULL;
}

static planc_status find_best_of_rounds(zico *z) {
  PLANC_TRY(find_best(z));
  return has_rounds_side_by_side(z) ? compare_one_at_a_time(z) : NULL;
}

static void swap(zico *a, zico *b) {
  zico taken = *a;
  *a = *b;
  *b = taken;
}

static bool is_region_asked(const zico *z) {
  return z->mix->terms.settings.region > 0;
}

/* Whether something was found for which every job keeps all on the device. */
static bool is_all_resident(const zico *z) {
  bool resident = z->any;
  for (int32_t j = 0; j < z->solos.n; j++)
    resident = resident && (!z->solos.made[j].policy || planc_policy_is_resident(z->solos.made[j].policy));
  return resident;
}

/* The paper's other granularities (7.4), its small regions and tensors: where nothing was found, or only for jobs that
 * do without some of their memory, of which smaller regions lose less. */
static planc_status try_smaller_regions(zico *z) {
  static const int64_t smaller[] = {INT64_C(512) << 10, PLANC_ALIGNMENT};
  for (size_t k = 0; k < sizeof smaller / sizeof *smaller && !is_all_resident(z); k++) {
    if (smaller[k] >= z->region_bytes) continue;
    zico other = begin(z->evaluator, z->shares);
    other.region_bytes = smaller[k];
    planc_status status = find_best_of_rounds(&other);
    if (!status && other.any && (!z->any || other.best_ns < z->best_ns)) swap(z, &other);
    end(&other);
    PLANC_TRY(status);
  }
  return NULL;
}

/* Whether they would do takes a search to know, which nobody has asked for. */
static planc_status suggest_other_regions(const zico *z, planc_candidate *out) {
  char asked[PL_SIZE_TEXT];
  if (z->region_bytes <= PLANC_ALIGNMENT) return NULL;
  return planc_candidate_explain(out, "regions of another size than %s may do", pl_size_format(z->region_bytes, asked));
}

static zico begin(const planc_mix_evaluator *evaluator, const planc_mix_share *shares) {
  int64_t region = evaluator->mix->terms.settings.region;
  return (zico){.evaluator = evaluator,
                .mix = evaluator->mix,
                .shares = shares,
                .all = &evaluator->all,
                .region_bytes = region > 0 ? region : PLANC_STANDARD_region};
}

static void end(zico *z) {
  planc_candidate_free(&z->best);
  forget_rounds(z);
  pl_solos_free(&z->solos);
  pl_arena_free(&z->arena);
}

static bool has_rounds_side_by_side(const zico *z) {
  for (int32_t j = 0; j < z->solos.n; j++)
    if (z->solos.candidates[j].trace && planc_schedule_n_compute(z->solos.candidates[j].schedule, 0) > 1) return true;
  return false;
}

/* Tries every job's rounds one after the other, and takes that if it is faster. */
static planc_status compare_one_at_a_time(zico *z) {
  zico other = begin(z->evaluator, z->shares);
  other.region_bytes = z->region_bytes;
  other.one_round_at_a_time = true;
  planc_status status = find_best(&other);
  if (!status && other.any && (!z->any || other.best_ns < z->best_ns)) swap(z, &other);
  end(&other);
  return status;
}

static planc_status find_best(zico *z) {
  bool made = true;
  PLANC_TRY(start(z));
  for (int32_t k = 0; made && !z->any && k < MAX_SOLOS; k++) PLANC_TRY(try_jobs(z, &made));
  return z->any ? tighten(z) : NULL;
}

/* --- Each job alone ----------------------------------------------------------------------------------------------- */

static planc_status make_solos(zico *z);
static planc_status may_win(const zico *z, bool *out);
static int64_t find_excess(const zico *z);
static bool is_last_resort(const zico *z);
static planc_status ask_for_less(zico *z, int64_t bytes);
static planc_status look_for_shifts(zico *z);

/* Looks for shifts of the jobs as they are within their budgets, and asks them for less memory where these are too
 * large to fit beside each other or, and smaller regions are no way out, no places were found. *out_made is false where
 * the jobs cannot be planned or would be too slow, and where nothing more can be asked. */
static planc_status try_jobs(zico *z, bool *out_made) {
  enum { PARTS = 32 };
  PLANC_TRY(pl_if_fits(make_solos(z), out_made));
  if (*out_made) PLANC_TRY(may_win(z, out_made));
  if (!*out_made) return NULL;
  int64_t less = find_excess(z);
  if (less <= 0) {
    PLANC_TRY(look_for_shifts(z));
    less = pl_arena_room(z->all->target.terms, z->all->target.profile) / PARTS;
    *out_made = is_last_resort(z) && ++z->n_searches < MAX_SEARCHES;
  }
  return z->any || !*out_made ? NULL : ask_for_less(z, less);
}

static planc_status look_for_shifts(zico *z) {
  bool fit;
  forget_rounds(z); /* they are of other plans of the jobs */
  int64_t room = pl_arena_room(z->all->target.terms, z->all->target.profile) - z->areas.private_bytes;
  int64_t most = pl_pairs_most(&z->areas, z->mix->n_jobs, z->region_bytes);
  z->least = pl_pairs_least(&z->areas, z->mix->n_jobs);
  z->capacity = room < most ? room : most;
  PLANC_TRY(pl_timing_new(&z->arena, z->mix->n_jobs, z->solos.candidates, z->iterations, &z->timing));
  PLANC_TRY(pl_if_fits(pl_timing_alone(z->evaluator, z->problems, &z->timing), &fit));
  if (!fit) return NULL;
  return search(z);
}

static bool is_last_resort(const zico *z) {
  return z->region_bytes <= PLANC_ALIGNMENT || is_region_asked(z);
}

static planc_status make_solos(zico *z) {
  int32_t failed;
  PLANC_TRY(z->solos.n > 0 ? pl_solos_remake(z->evaluator, z->problems, &z->solos, &failed)
                           : pl_solos_make(z->evaluator, z->problems, NULL, &z->solos, &failed));
  if (!z->one_round_at_a_time) PLANC_TRY(pl_solos_side_by_side(z->evaluator, z->problems, &z->solos));
  /* Regions of the least size are tensors. */
  int64_t region_bytes = z->region_bytes > PLANC_ALIGNMENT ? z->region_bytes : 0;
  return pl_areas_make(&z->arena, z->mix->n_jobs, z->solos.candidates, region_bytes, &z->areas);
}

/* Side by side a period takes no less than the iterations of any job alone. Where that is as much as by turns, what is
 * left to ask for is in vain. */
static planc_status may_win(const zico *z, bool *out) {
  int64_t longest = 0, turns = 0;
  for (int32_t j = 0; j < z->mix->n_jobs; j++) {
    int64_t ns;
    const planc_evaluator alone = z->evaluator->alone(z->evaluator, &z->problems[j]);
    PLANC_TRY(alone.time(&alone, &z->solos.candidates[j], &ns));
    longest = pl_max(longest, pl_mul_saturate(ns, z->iterations[j]));
    turns = pl_add_saturate(turns, pl_mul_saturate(z->shares[j].alone_ns, z->iterations[j]));
  }
  *out = longest < turns;
  return NULL;
}

/* By how much the bytes that there are are too few for some job of each pair alone; not positive where they suffice. */
static int64_t find_excess(const zico *z) {
  int64_t least = pl_pairs_least(&z->areas, z->mix->n_jobs);
  return pl_add_saturate(least, z->areas.private_bytes) - pl_arena_room(z->all->target.terms, z->all->target.profile);
}

/* Asks the jobs to take so much less than they take now, each in proportion to it. */
static planc_status ask_for_less(zico *z, int64_t bytes) {
  int64_t peaks[PLANC_MIX_MAX_JOBS], sum = 0;
  for (int32_t j = 0; j < z->mix->n_jobs; j++) {
    const planc_evaluator alone = z->evaluator->alone(z->evaluator, &z->problems[j]);
    PLANC_TRY(alone.peak(&alone, &z->solos.candidates[j], &peaks[j]));
    sum = pl_add_saturate(sum, peaks[j]);
  }
  for (int32_t j = 0; j < z->mix->n_jobs && sum > 0; j++) {
    int64_t part = pl_muldiv_floor(bytes, peaks[j], sum) + 1;
    z->problems[j].terms.budgets[PLANC_MEMORY_DEVICE] = peaks[j] > part ? peaks[j] - part : 0;
  }
  return NULL;
}

/* --- The informed phase ------------------------------------------------------------------------------------------- */

static bool are_alike(const planc_mix *mix);
static planc_status settle(zico *z, int64_t bytes, int32_t most_rounds);
static void begin_round(zico *z);
static void forget(tried *round, pl_arena *arena);
static planc_status step(zico *z, int64_t bytes, bool *out_fit, bool *out_steady);
static planc_status try_round(zico *z, const pl_timing *before, int64_t bytes, bool *out_fit);
static planc_status arrange(zico *z, int64_t bytes, int64_t ***out_addresses, bool *out_again, bool *out_fit);
static planc_status keep(zico *z);

/* The timing is that of the candidate's simulation. */
static void make_best(zico *z, planc_candidate *candidate) {
  planc_candidate_free(&z->best);
  z->best = *candidate;
  *candidate = (planc_candidate){0};
  z->best_ns = z->timing.period_ns;
  for (int32_t j = 0; j < z->mix->n_jobs; j++) z->begins_ns[j] = z->timing.passes[z->timing.first[j]].start_ns;
  z->any = true;
}

static planc_status search(zico *z) {
  int64_t more = (z->capacity - z->least) / STEPS + 1;
  if (more < z->region_bytes) more = z->region_bytes;
  for (int64_t bytes = z->least; !are_alike(z->mix) && bytes < z->capacity; bytes += more)
    PLANC_TRY(settle(z, bytes, ROUNDS_ON_THE_WAY));
  return settle(z, z->capacity, ROUNDS_AT_LAST);
}

/* The same graph at the same costs, so that the jobs disturb each other alike. */
static bool are_alike(const planc_mix *mix) {
  for (int32_t j = 1; j < mix->n_jobs; j++)
    if (planc_mix_first_same(mix, j) > 0) return false;
  return true;
}

/* Rounds within a budget, until times are steady. */
static planc_status settle(zico *z, int64_t bytes, int32_t most_rounds) {
  bool fit = true, steady = false;
  for (int32_t round = 0; round < most_rounds && fit && !steady; round++) PLANC_TRY(step(z, bytes, &fit, &steady));
  return NULL;
}

/* Tries a round and tells whether times are steady. */
static planc_status step(zico *z, int64_t bytes, bool *out_fit, bool *out_steady) {
  pl_timing before;
  begin_round(z);
  PLANC_TRY(pl_timing_copy(&z->round, &z->timing, &before));
  PLANC_TRY(try_round(z, &before, bytes, out_fit));
  if (*out_fit && bytes >= z->capacity) PLANC_TRY(keep(z));
  *out_steady = !*out_fit || pl_timing_change(&z->timing, &before) < STEADY_PPM;
  return NULL;
}

static void begin_round(zico *z) {
  forget(&z->earlier, &z->before);
  z->earlier = z->now;
  z->before = z->round;
  z->now = (tried){0};
  z->round = (pl_arena){0};
}

static void forget_rounds(zico *z) {
  forget(&z->earlier, &z->before);
  forget(&z->now, &z->round);
}

static void forget(tried *round, pl_arena *arena) {
  planc_candidate_free(&round->candidate);
  pl_arena_free(arena);
  *round = (tried){0};
}

/* One round: shifts, places, simulation. The timing, which is `before`, is then that of the simulation. */
static planc_status try_round(zico *z, const pl_timing *before, int64_t bytes, bool *out_fit) {
  int64_t **addresses;
  bool again;
  PLANC_TRY(arrange(z, bytes, &addresses, &again, out_fit));
  if (!*out_fit) return NULL;
  PLANC_TRY(pl_timing_copy(&z->round, &z->timing, &z->now.arranged));
  if (again) {
    z->now.candidate = z->earlier.candidate;
    z->earlier.candidate = (planc_candidate){0};
    pl_timing_assign(&z->timing, before);
  } else {
    PLANC_TRY(pl_shared_places_merge(&z->round, &z->timing, &z->areas, addresses, &z->now.candidate));
    PLANC_TRY(pl_if_fits(pl_timing_together(z->all, &z->now.candidate, &z->timing), out_fit));
    if (*out_fit) PLANC_TRY(pl_if_fits(z->all->hold_to_host(z->all, &z->now.candidate), out_fit));
  }
  z->now.fits = *out_fit;
  return NULL;
}

/* Shifts within `bytes`, and in less and less while there are no places for them. *out_again says that these are those
 * of the round before, whose places were found. */
static planc_status arrange(zico *z, int64_t bytes, int64_t ***out_addresses, bool *out_again, bool *out_fit) {
  enum { PARTS = 32 };
  int64_t within = bytes, less = bytes > z->least ? (bytes - z->least) / PARTS : 0;
  for (less = less > z->region_bytes ? less : z->region_bytes;; less *= 2) {
    PLANC_TRY(pl_shift_pairs(&z->timing, &z->areas, within, out_fit));
    *out_again = *out_fit && z->earlier.fits && pl_timing_is_same(&z->timing, &z->earlier.arranged);
    if (!*out_fit || *out_again) return NULL;
    PLANC_TRY(pl_shared_places_find(&z->round, &z->timing, &z->areas, z->capacity, out_addresses, out_fit));
    if (*out_fit || within <= z->least) return NULL;
    within = bytes - less > z->least ? bytes - less : z->least;
  }
}

/* Keeps what was tried if it is the fastest so far; the timing is that of its simulation. */
static planc_status keep(zico *z) {
  if (z->any && z->timing.period_ns >= z->best_ns) return NULL;
  assert(z->now.candidate.trace); /* what was kept before is not faster than itself */
  make_best(z, &z->now.candidate);
  return pl_timing_copy(&z->arena, &z->now.arranged, &z->best_timing);
}

/* --- No more memory than it takes --------------------------------------------------------------------------------- */

/* Takes over places in `bytes` if they make it slower by a thousandth at the most. */
static planc_status try_places(zico *z, int64_t bytes, bool *out_taken) {
  enum { WORTH = 1000 };
  int64_t **addresses;
  planc_candidate candidate = {0};
  PLANC_TRY(pl_shared_places_find(&z->round, &z->best_timing, &z->areas, bytes, &addresses, out_taken));
  if (!*out_taken) return NULL;
  planc_status status = pl_shared_places_merge(&z->round, &z->best_timing, &z->areas, addresses, &candidate);
  if (!status) status = pl_if_fits(pl_timing_together(z->all, &candidate, &z->timing), out_taken);
  *out_taken = !status && *out_taken && z->timing.period_ns <= z->best_ns + z->best_ns / WORTH;
  if (*out_taken) make_best(z, &candidate);
  planc_candidate_free(&candidate);
  return status;
}

/* The fewest, of a few, that make it hardly slower. */
static planc_status tighten(zico *z) {
  enum { TRIES = 4 };
  int64_t fewest;
  bool taken = false;
  PLANC_TRY(pl_shared_places_fewest(&z->round, &z->best_timing, &z->areas, z->region_bytes, z->capacity, &fewest));
  for (int64_t k = 0; !taken && k < TRIES && fewest < z->capacity; k++)
    PLANC_TRY(try_places(z, fewest + (z->capacity - fewest) / TRIES * k, &taken));
  return NULL;
}

/* --- Start, and what is told -------------------------------------------------------------------------------------- */

static planc_status explain_shifts(const zico *z, planc_candidate *out);
static void emit_shift(const zico *z, int32_t first, pl_emit *emit);
static planc_status explain_rounds(const zico *z, planc_candidate *out);

static planc_status start(zico *z) {
  int32_t n = z->mix->n_jobs;
  PLANC_TRY(PL_NEW(&z->arena, &z->problems, n));
  PLANC_TRY(PL_NEW(&z->arena, &z->iterations, n));
  for (int32_t j = 0; j < n; j++) {
    z->iterations[j] = z->shares[j].iterations;
    z->problems[j] = planc_mix_problem(z->mix, j);
  }
  return NULL;
}

static planc_status explain(const zico *z, planc_candidate *out) {
  PLANC_TRY(explain_shifts(z, out));
  return explain_rounds(z, out);
}

/* By how much one job of each pair begins later in every period. */
static planc_status explain_shifts(const zico *z, planc_candidate *out) {
  char size[PL_SIZE_TEXT], regions[64] = "", *text;
  size_t length;
  pl_emit emit = {0};
  if (z->region_bytes > PLANC_ALIGNMENT)
    (void)snprintf(regions, sizeof regions, " in regions of %s", pl_size_format(z->region_bytes, size));
  else
    (void)snprintf(regions, sizeof regions, " tensor by tensor");
  pl_emit_format(&emit, "side by side%s%s: in every period ", regions,
                 z->mix->n_jobs == PL_JOBS_OF_PAIR ? "" : ", in pairs");
  for (int32_t j = 0; j + 1 < z->mix->n_jobs; j += PL_JOBS_OF_PAIR) emit_shift(z, j, &emit);
  PLANC_TRY(pl_emit_take(&emit, &text, &length));
  planc_status status = planc_candidate_explain(out, "%s", text);
  free(text);
  return status;
}

/* As periods repeat, a job that begins late behind the other begins shortly ahead of its next period. */
static void emit_shift(const zico *z, int32_t first, pl_emit *emit) {
  char text[PL_SIZE_TEXT];
  int32_t second = first + 1;
  int64_t later = z->best_ns > 0 ? (z->begins_ns[second] - z->begins_ns[first]) % z->best_ns : 0;
  if (later < 0) later += z->best_ns;
  bool ahead = later > z->best_ns - later;
  pl_emit_format(emit, "%sjob %d begins %s after job %d", first > 0 ? ", " : "", ahead ? first : second,
                 pl_time_format(ahead ? z->best_ns - later : later, text), ahead ? second : first);
}

/* Of each job that was asked to run rounds side by side, whether they do. */
static planc_status explain_rounds(const zico *z, planc_candidate *out) {
  for (int32_t j = 0; j < z->mix->n_jobs; j++) {
    const char *why = z->one_round_at_a_time ? "rounds one after the other, which is faster beside other jobs"
                                             : z->solos.candidates[j].explanation;
    if (z->mix->jobs[j].side_by_side > 1) PLANC_TRY(planc_candidate_explain(out, "job %d: %s", j, why));
  }
  return NULL;
}
