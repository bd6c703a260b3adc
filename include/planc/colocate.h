/* Several jobs that share one GPU: one plan for a mix of them, in which each runs a number of iterations per period and
 * memory goes from job to job by events only. Policies for mixes are a table of their own, one file and one entry each.
 */
#ifndef PLANC_COLOCATE_H
#define PLANC_COLOCATE_H

#include "planc/policy.h"
#include "planc/update.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  PLANC_MIX_MAX_JOBS = 64,
  PLANC_MIX_MAX_ITERATIONS = 1024, /* of a job in a period */
  PLANC_MIX_MAX_ROUNDS = 64,       /* of a job side by side */
  PLANC_MIX_MAX_WEIGHT = 1000,     /* of a job beside others */
  PLANC_MIX_MAX_RATIO = 8          /* where the mix does not say how many may be chosen */
};

/* Jobs that are to share a GPU. Everything is borrowed. */
typedef struct planc_mix {
  planc_terms terms;          /* on which all jobs are planned */
  int32_t n_jobs;             /* at least 1 */
  const planc_workload *jobs; /* their device is planc_mix_device, but for what is reserved, the most that any of their
                                 profiles says, and by how much copies slow ops down, the mean of what they say */
  const int32_t *iterations;  /* by job: in a period; 0 = chosen */
  int32_t max_ratio;        /* the most iterations that are chosen for a job; 0 = PLANC_MIX_MAX_RATIO, or for a job with
                               a deadline PLANC_MIX_MAX_ITERATIONS */
  const char *const *names; /* by job: as planc_job has it, NULL of those that have none; NULL = none has */
  const int64_t *deadlines_ns; /* by job: the longest that a request may take, see planc_mix_share.response_ns; 0 = it
                                  has no deadline; NULL = none has */
  const int32_t *weights;      /* by job: the time of the GPU that it is to have beside the others, 1 to
                                  PLANC_MIX_MAX_WEIGHT; NULL = all have 1 */
  const int64_t *least_shares_ppm; /* by job: the least that its speed may be, see planc_mix_share.speed_ppm; 0 = it may
                                      be any; NULL = all may */
} planc_mix;

/* The most iterations in a period that are chosen for a job without a deadline. */
static inline int32_t planc_mix_most_chosen(const planc_mix *mix) {
  return mix->max_ratio > 0 ? mix->max_ratio : PLANC_MIX_MAX_RATIO;
}

static inline int32_t planc_mix_weight(const planc_mix *mix, int32_t job) {
  return mix->weights ? mix->weights[job] : 1;
}

/* What they share, as the first one's profile has it. */
static inline const planc_device *planc_mix_device(const planc_mix *mix) {
  return planc_profile_device(mix->jobs[0].profile);
}

/* What messages call a job beside its number: the name that it was given, else its graph's. */
static inline const char *planc_mix_job_name(const planc_mix *mix, int32_t job) {
  return mix->names && mix->names[job] ? mix->names[job] : mix->jobs[job].graph->name;
}

/* A job by itself, on the mix's terms, in rounds that jobs of mixes can have. */
static inline planc_problem planc_mix_problem(const planc_mix *mix, int32_t job) {
  planc_problem problem = {.terms = mix->terms, .job = mix->jobs[job]};
  problem.terms.own_rounds = true;
  return problem;
}

/* The first job of the mix that is the same to every policy: the job itself where none before it is. */
int32_t planc_mix_first_same(const planc_mix *mix, int32_t job);

/* One job of a mix beside what it would do alone. */
typedef struct planc_mix_share {
  int32_t iterations;       /* in a period */
  int64_t alone_ns;         /* an iteration where it has the GPU and the whole budget, its rounds one after the other:
                               by policy none where that fits with algorithms as fast as the device has them, else by
                               the fastest that fits */
  const char *alone_policy; /* which that is; static */
  int64_t whole_ns;         /* the same with all memory of the device, whatever the budget; alone_ns where the budget is
                               no less, or nothing is found there */
  const char *whole_policy; /* which that is; static */
  int64_t deadline_ns;      /* the mix's, 0 = none */
  int64_t response_ns; /* the longest that a request takes in the steady period, whenever it comes: it waits for the
                          next iteration to begin, and for that to end */
  int64_t speed_ppm;   /* what it does in a period, in time alone on the whole device, over the period (Zico, 7:
                          normalised throughput) */
  int64_t least_ppm;   /* the mix's, 0 = none */
} planc_mix_share;

/* Whether its requests take longer than they may. */
static inline bool planc_mix_is_late(const planc_mix_share *share) {
  return share->deadline_ns > 0 && share->response_ns > share->deadline_ns;
}

/* Whether the job is slower than it may be. */
static inline bool planc_mix_is_slow(const planc_mix_share *share) {
  return share->speed_ppm < share->least_ppm;
}

/* What a policy for mixes supports, beside the bits of planc_policy. */
enum {
  PLANC_MIX_REGIONS = 1 << 16,   /* has regions, whose size may be asked for */
  PLANC_MIX_GROUPS = 1 << 17,    /* cuts iterations into node groups */
  PLANC_MIX_BARRIERS = 1 << 18,  /* pairs these, and may be asked to have barriers between the pairs */
  PLANC_MIX_DEADLINES = 1 << 19, /* is for mixes in which jobs have deadlines, and for no others */
  PLANC_MIX_ROUNDS = 1 << 20,    /* may run rounds of a job side by side; others run them one after the other */
  PLANC_MIX_TURNS = 1 << 21,     /* ops of two jobs never run at a time, so that priorities bear on nothing */
  PLANC_MIX_CHOOSES = 1 << 22    /* takes the best plan of all others, which names its policy; `make` has the first that
                                    fits */
};

/* What jobs do that share a GPU without a plan. */
typedef struct planc_mix_estimate {
  int64_t period_ns;
  int64_t pools_bytes;    /* what they hold together, with what is reserved; beyond the budget it is on the host */
  int64_t migrated_bytes; /* to the device on demand, in a period */
} planc_mix_estimate;

/* Judges for a policy for mixes, as planc_evaluator for one for a job and by the same rules: candidates of all jobs
 * together, and those of each job alone. */
typedef struct planc_mix_evaluator planc_mix_evaluator;
typedef struct planc_mix_policy planc_mix_policy;
struct planc_mix_evaluator {
  const planc_mix *mix;             /* borrowed; outlives the evaluator */
  const planc_mix_policy *policies; /* all there are, ended by one without a name: for one that CHOOSES */
  planc_evaluator all;              /* without a problem: its target is that of all jobs together */
  /* Of candidates of a job alone: one of the mix's jobs, on the mix's terms or others. The problem is borrowed, and
   * outlives what is returned. */
  planc_evaluator (*alone)(const planc_mix_evaluator *evaluator, const planc_problem *problem);
  /* The policy that makes the fastest plan of such a job. INFEASIBLE where none fits. */
  planc_status (*fastest)(const planc_mix_evaluator *evaluator, const planc_problem *problem, const planc_policy **out);
  /* The longest that a request takes, by job, when a candidate of all jobs runs: planc_mix_share.response_ns. */
  planc_status (*respond)(const planc_mix_evaluator *evaluator, const planc_candidate *all, int64_t *out_ns);
};

struct planc_mix_policy {
  const char *name, *summary;
  uint32_t supports;
  const char *falls_back; /* the policy whose plan it gives where it finds no other; NULL = none */
  /* A schedule of the evaluator's whole mix, or INFEASIBLE with a message that tells who has no room. A schedule that
   * does not fit is told of by whoever holds it to the budgets. `shares` are by job, speeds not known yet. *out is
   * empty; the caller frees it, whatever the outcome. NULL: it has no plan. */
  planc_status (*make)(const planc_mix_evaluator *evaluator, const planc_mix_share *shares, planc_candidate *out);
  /* Of one that has no plan, for comparisons; NULL where there is `make`. *out is empty. */
  planc_status (*estimate)(const planc_mix_evaluator *evaluator, const planc_mix_share *shares,
                           planc_mix_estimate *out);
};

/* All policies for mixes, ended by one without a name. */
const planc_mix_policy *planc_mix_policies(void);
const planc_mix_policy *planc_mix_policy_find(const char *name);

bool planc_mix_has_deadlines(const planc_mix *mix);

/* How fast each job is alone, and how many iterations of it a period has: where the mix leaves that open, such that all
 * take about as long alone for their weights, in the shortest such period within max_ratio; of a job with a deadline as
 * many as it takes for the others' work between two of them to leave time enough. `shares` are by job. USAGE for what
 * is no mix: jobs of different devices, iterations out of range. INFEASIBLE where a job does not even fit alone. */
planc_status planc_mix_resolve(const planc_mix *mix, planc_mix_share *shares);
/* How many iterations of each job would make a period at the times that `shares` have of each alone, none of which is
 * 0, if the mix gave none and no job had a deadline. */
void planc_mix_choose_ratio(const planc_mix *mix, const planc_mix_share *shares, int32_t *out_iterations);

/* The whole way from a mix to a plan, as planc_make_plan for one job: *out is held to the budgets and simulated, and
 * to the deadlines and least shares: LATE tells of the job whose requests take longer, or that is slower. `shares` are
 * those of planc_mix_resolve; their speeds and responses are set, and of jobs that would be late or too slow with the
 * iterations that were chosen, more of these.
 * USAGE for a policy that has no plan, or that is for deadlines where there are none; INFEASIBLE, with what it needs,
 * where the mix does not fit a budget. *out is the caller's, and NULL after any failure. */
planc_status planc_colocate(const planc_mix *mix, const planc_mix_policy *policy, planc_mix_share *shares,
                            planc_plan **out);

/* The plan to go on with after an update (planc_replan), of jobs whose iterations the mix gives as the plan at hand has
 * them: made anew, in the mix's deadlines, or the decisions of `old` where these are faster, or nothing else fits or is
 * in time. `shares` become those of the one to go on with; alone_ns 0: a job does not fit alone any more. INFEASIBLE or
 * LATE when neither will do. */
planc_status planc_mix_replan(const planc_mix *mix, const planc_mix_policy *policy, const planc_plan *old,
                              planc_mix_share *shares, planc_replanned *out);

/* What the jobs do by a policy without a plan. INFEASIBLE where the budgets do not even suffice for that. */
planc_status planc_mix_estimate_by(const planc_mix *mix, const planc_mix_policy *policy, planc_mix_share *shares,
                                   planc_mix_estimate *out);

/* The least budget of a memory for which the policy has a plan for the mix, as planc_find_least, in as many plans.
 * `shares`: the iterations are those; NULL: those that planc_mix_resolve chooses at that budget. `failed` is an
 * INFEASIBLE status of planc_colocate or planc_mix_resolve, borrowed, or NULL. USAGE for what is no mix. */
planc_status planc_mix_find_least(const planc_mix *mix, const planc_mix_policy *policy, const planc_mix_share *shares,
                                  planc_memory_kind memory, planc_status failed, planc_least *out);

/* The same, of the device's budget, of a policy that falls back to one whose least budget is known, with the same
 * shares, or none for both: in two plans more. */
planc_status planc_mix_find_least_beside(const planc_mix *mix, const planc_mix_policy *policy,
                                         const planc_mix_share *shares, const planc_least *fall_back, planc_least *out);

/* Aggregate throughput: the sum of the jobs' speeds, whatever their weights. */
int64_t planc_mix_throughput(const planc_mix_share *shares, int32_t n_jobs);

/* What plans of a mix are chosen by: the same with a job of twice the weight counted twice, while all together count
 * for as many as they are. */
int64_t planc_mix_weighted_throughput(const planc_mix *mix, const planc_mix_share *shares);
/* Whether the weights tell jobs apart. */
bool planc_mix_has_weights(const planc_mix *mix);

#ifdef __cplusplus
}
#endif

#endif
