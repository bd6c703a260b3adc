/* Updating: what a run measured becomes the costs of the next plan (TENSILE, III-D and IV-E).
 *
 * The latency of each op, algorithm and batch that the plan runs is a moving average, weighted exponentially: what was
 * measured counts `weight`, what the plan was made with the rest. Measured is the median over the periods of a
 * timeline, less what the instruction lost to copies and to other ops beside it, which the simulator adds again; the
 * instructions that run the same count alike, those of several iterations too. Links, the storage's too, follow the
 * copies in the same way, hand-overs between streams included, which a link's latency has in profiles and the simulator
 * slows with it. All integers: the same inputs, the same profiles.
 *
 * Each job of a plan has a profile of its own, jobs that are alike (graph, rounds, profile that they were planned with)
 * one for all of them. The device is common to all: links follow the copies of all jobs. Of replicas, which all do the
 * same, the timeline has the first.
 */
#ifndef PLANC_UPDATE_H
#define PLANC_UPDATE_H

#include "planc/cost.h"
#include "planc/policy.h"
#include "planc/simulate.h"
#include "planc/timeline.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  PLANC_UPDATE_WEIGHT_PPM = 900000,   /* of what was measured, where nothing else is said */
  PLANC_UPDATE_THRESHOLD_PPM = 300000 /* the change up to which a plan is as good as a new one */
};

typedef struct planc_update_options {
  const planc_plan *plan;         /* that planc_update_check accepts */
  const planc_timeline *timeline; /* measured with it */
  /* By job. NULL: ops have the algorithms of the plan at the batches at which it ran them, and guesses at batches that
   * are not the plan's. Otherwise they have all that the job's profile, or the constants of a description, give them,
   * in proportion to what was measured: an algorithm's other batches as its measured ones, an op's other algorithms as
   * its measured ones, an op that the plan does not run as its class. */
  const planc_profile *const *profiles;
  int64_t weight_ppm; /* 0 to 1,000,000: of what was measured; PLANC_UPDATE_WEIGHT_PPM as a rule */
} planc_update_options;

/* Sums over a period. */
typedef struct planc_latency_sum {
  int32_t count; /* instructions */
  int64_t old_ns, measured_ns, new_ns;
} planc_latency_sum;

typedef struct planc_update {
  planc_latency_sum ops, copies[PLANC_N_ROUTES]; /* of all jobs */
  int64_t change_ppm;                            /* the greatest |new - old| of ops and routes, by the ops' old */
  const planc_latency_sum *jobs;                 /* by job: of its ops */
  /* By job: what to plan with next, the same one for jobs that share it; all live as long as the update. */
  const planc_profile *const *profiles;
} planc_update;

/* USAGE for plans that are not updated: those with several GPUs that do different things. */
planc_status planc_update_check(const planc_plan *plan);
/* USAGE when the plan is of such a form; INVALID_PLAN when it names what its graph does not have. */
planc_status planc_update_make(const planc_update_options *options, planc_update **out);
void planc_update_free(planc_update *update);
/* The text of a job's profile, planc-profile(5); malloc'ed and NUL-terminated. */
planc_status planc_update_print(const planc_update *update, int32_t job, char **out_text, size_t *out_length);

/* The plan to go on with: made anew or, where there is none in the budgets or only a worse one, the decisions of the
 * plan at hand, its times and predictions those of the problem's profile. */
typedef struct planc_replanned {
  planc_plan *made;   /* NULL: the policy has none in the budgets */
  planc_retimed kept; /* all zero where there was none to keep */
  bool keeps;         /* `kept` is the one to go on with */
} planc_replanned;

/* `old`, which must outlive the result and pass the checker, is the plan at hand; NULL where its decisions are not what
 * is asked for. INFEASIBLE when neither fits the problem's budgets, which `old` does where they are its own. */
planc_status planc_replan(const planc_problem *problem, const planc_policy *policy, const planc_plan *old,
                          planc_replanned *out);
/* The one to go on with, owned by `replanned`; NULL where nothing was planned. */
const planc_plan *planc_replanned_plan(const planc_replanned *replanned);
void planc_replanned_free(planc_replanned *replanned);

/* How many ops `after` runs with other algorithms than `before`; -1 where rounds are others. Only at 0 results are the
 * same to the bit. Both pass the checker and are of the same jobs but for their rounds and order. */
planc_status planc_update_other_algorithms(const planc_plan *before, const planc_plan *after, int32_t *out);

#ifdef __cplusplus
}
#endif

#endif
