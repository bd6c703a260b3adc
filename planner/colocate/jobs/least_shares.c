/* Least shares of mixes (least_shares.h). */
#include "planner/colocate/jobs/least_shares.h"

#include "util/math.h"

int64_t pl_least_share_of(const planc_mix *mix, int32_t job) {
  return mix->least_shares_ppm ? mix->least_shares_ppm[job] : 0;
}

/* --- How often ---------------------------------------------------------------------------------------------------- */

/* Parts of the period, in time alone, that jobs are to have: as their weights say, but no less than their least shares
 * take if the jobs together are as fast as in the plan that was tried. */
typedef struct wanted_parts {
  const planc_mix *mix;
  const planc_mix_share *shares;     /* of that plan */
  int64_t gain_ppm;                  /* what its iterations take alone one after the other, over its period */
  int64_t parts[PLANC_MIX_MAX_JOBS]; /* of WHOLE */
  bool needs[PLANC_MIX_MAX_JOBS];    /* it is for its least share that the part is as large as it is */
} wanted_parts;

typedef struct iteration_choice {
  int32_t iterations[PLANC_MIX_MAX_JOBS];
  int64_t met_ppm;   /* of the job that has the least part of its least share: that; at most all of it */
  int64_t lacks_ppm; /* the part of its own that the job lacks which lacks most, TOLERATED at least */
  int64_t period_ns; /* alone, one after the other */
} iteration_choice;

enum { WHOLE = 1 << 30, TOLERATED = PL_PPM / 10 /* as of ratios (ratio.c) */ };

static bool find_parts(wanted_parts *w);
static void fill(const wanted_parts *w, int64_t period_ns, bool favours, iteration_choice *out);
static bool is_better(const iteration_choice *a, const iteration_choice *b);

/* Periods that are tried have a whole number of iterations of some job in its part; of the others as many as come
 * nearest to theirs, or more where they need that, and less where not. */
bool pl_least_shares_choose(const planc_mix *mix, planc_mix_share *shares) {
  wanted_parts w = {.mix = mix, .shares = shares};
  iteration_choice best = {.met_ppm = -1}, next;
  int32_t most = planc_mix_most_chosen(mix);
  bool changes = false;
  if (!find_parts(&w)) return false;
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    for (int32_t k = 0; k < 2 * most; k++) {
      fill(&w, pl_muldiv_ceil(pl_mul_saturate(shares[j].alone_ns, 1 + k / 2), WHOLE, w.parts[j]), k % 2 == 1, &next);
      if (is_better(&next, &best)) best = next;
    }
  }
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    changes |= shares[j].iterations != best.iterations[j];
    shares[j].iterations = best.iterations[j];
  }
  return changes;
}

/* A job has what its least share takes or its weight times a level, whichever is more: of the level at which all have
 * the whole. False where nothing is known of a job. */
static bool find_parts(wanted_parts *w) {
  int64_t alone_ns = 0, needed[PLANC_MIX_MAX_JOBS], low = 0, high = WHOLE;
  const planc_mix_share *first = w->shares;
  int32_t n = w->mix->n_jobs;
  for (int32_t j = 0; j < n; j++) {
    const planc_mix_share *share = &w->shares[j];
    if (share->alone_ns <= 0 || share->whole_ns <= 0 || share->speed_ppm <= 0) return false;
    alone_ns = pl_add_saturate(alone_ns, pl_mul_saturate(share->alone_ns, share->iterations));
  }
  w->gain_ppm =
      pl_max(1, pl_muldiv_floor(alone_ns, first->speed_ppm, pl_mul_saturate(first->whole_ns, first->iterations)));
  for (int32_t j = 0; j < n; j++) {
    const planc_mix_share *share = &w->shares[j];
    needed[j] = pl_muldiv_ceil(pl_muldiv_ceil(share->least_ppm, share->alone_ns, share->whole_ns), WHOLE, w->gain_ppm);
  }
  while (high - low > 1) {
    int64_t level = low + (high - low) / 2, sum = 0;
    for (int32_t j = 0; j < n; j++) sum += pl_max(needed[j], level * planc_mix_weight(w->mix, j));
    *(sum < WHOLE ? &low : &high) = level;
  }
  for (int32_t j = 0; j < n; j++) {
    w->needs[j] = needed[j] > high * planc_mix_weight(w->mix, j);
    w->parts[j] = pl_max(needed[j], high * planc_mix_weight(w->mix, j));
  }
  return true;
}

static int32_t iterations_in(const wanted_parts *w, int32_t job, int64_t period_ns, bool favours) {
  int64_t alone_ns = w->shares[job].alone_ns, part_ns = pl_muldiv_floor(w->parts[job], period_ns, WHOLE);
  int64_t rounds_up_ns = !favours ? alone_ns / 2 : w->needs[job] ? alone_ns - 1 : 0;
  if (w->mix->iterations[job] > 0) return w->mix->iterations[job];
  return (int32_t)pl_clamp(pl_add_saturate(part_ns, rounds_up_ns) / alone_ns, 1, planc_mix_most_chosen(w->mix));
}

static void fill(const wanted_parts *w, int64_t period_ns, bool favours, iteration_choice *out) {
  int32_t n = w->mix->n_jobs;
  *out = (iteration_choice){.met_ppm = PL_PPM, .lacks_ppm = TOLERATED};
  for (int32_t j = 0; j < n; j++) {
    out->iterations[j] = iterations_in(w, j, period_ns, favours);
    out->period_ns = pl_add_saturate(out->period_ns, pl_mul_saturate(w->shares[j].alone_ns, out->iterations[j]));
  }
  for (int32_t j = 0; j < n; j++) {
    const planc_mix_share *share = &w->shares[j];
    int64_t done_ns = pl_mul_saturate(share->whole_ns, out->iterations[j]);
    int64_t speed_ppm = pl_muldiv_floor(done_ns, w->gain_ppm, out->period_ns);
    int64_t alone_ns = pl_mul_saturate(share->alone_ns, out->iterations[j]);
    int64_t has_ppm = pl_muldiv_floor(pl_muldiv_floor(alone_ns, WHOLE, out->period_ns), PL_PPM, w->parts[j]);
    if (share->least_ppm > 0) out->met_ppm = pl_min(out->met_ppm, pl_muldiv_floor(speed_ppm, PL_PPM, share->least_ppm));
    out->lacks_ppm = pl_max(out->lacks_ppm, PL_PPM - has_ppm);
  }
}

static bool is_better(const iteration_choice *a, const iteration_choice *b) {
  if (a->met_ppm != b->met_ppm) return a->met_ppm > b->met_ppm;
  return a->lacks_ppm != b->lacks_ppm ? a->lacks_ppm < b->lacks_ppm : a->period_ns < b->period_ns;
}

/* --- Whether it is enough ----------------------------------------------------------------------------------------- */

planc_status pl_least_shares_hold(const planc_mix *mix, const planc_mix_share *shares) {
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    if (!planc_mix_is_slow(&shares[j])) continue;
    return planc_error(PLANC_LATE,
                       "job %d (%s) runs at %.2f %% of what it does alone, with %d iteration%s in a period, and is to "
                       "run at %.2f %% at least",
                       j, planc_mix_job_name(mix, j), (double)shares[j].speed_ppm / PLANC_UNIT_PERCENT,
                       shares[j].iterations, shares[j].iterations == 1 ? "" : "s",
                       (double)shares[j].least_ppm / PLANC_UNIT_PERCENT);
  }
  return NULL;
}
