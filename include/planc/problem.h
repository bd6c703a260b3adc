/* What is to be planned: jobs, and the terms on which a plan is asked for. */
#ifndef PLANC_PROBLEM_H
#define PLANC_PROBLEM_H

#include "planc/cost.h"
#include "planc/plan.h"
#include "planc/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Who gives out addresses. */
typedef enum planc_placement {
  PLANC_PLACEMENT_BEST_FIT, /* with caching; what policies leave blank is placed offline */
  PLANC_PLACEMENT_PAGED, /* pages of virtual memory; blocks of them where a policy allocates as data comes and goes */
  PLANC_PLACEMENT_VMM    /* virtual memory in chunks; data of at most one chunk shares them, with caching */
} planc_placement;

/* Placements that a planning has found already (planner/memory/placement_cache.h). */
typedef struct planc_placement_cache planc_placement_cache;

/* Who waits for a plan. Both are called by whichever threads make it, at any time, until it is made. */
typedef struct planc_watch {
  void *user;
  /* A policy, whose name is static, is asked, and has done so many parts per million of what it may do at most, if it
   * searches. The fastest plan so far takes that long, 0: there is none. May be NULL. */
  void (*asks)(void *user, const char *policy, int64_t done_ppm, int64_t fastest_ns);
  /* Whether the planning is to go on. Where not, it ends soon with the best plan that was found, which then depends on
   * when it was asked; as INTERRUPTED where there is none. The answer stays the same from then on. */
  bool (*goes_on)(void *user);
} planc_watch;

/* What is asked of a plan, be it of one job or of several. */
typedef struct planc_terms {
  int32_t gpus; /* which train together, each on a batch of its own; 0 = 1 */
  planc_placement placement;
  int64_t budgets[PLANC_N_BUDGETS]; /* bytes by kind of memory, at most 2^53; -1 = not limited, which the device's never
                                       is. Of the device: the peak of each GPU, reserved bytes included. Of the storage,
                                       which is for what the host's budget has no room for: 0 = there is none */
  int64_t code_bytes;               /* beside what the profile reserves; planc_make_plan finds it */
  bool code_is_given;               /* code_bytes are a mix's, one of whose jobs is planned, and not to be found */
  int64_t chunk_bytes;              /* of virtual memory, a multiple of PLANC_ALIGNMENT; 0 = 40 MiB, pages 2 MiB */
  int64_t beat_ns; /* a plan whose period takes at least as long is not wanted, as if it did not fit; 0 = any is */
  planc_settings settings; /* but for PLANC_EACH_SETTINGS, which are a job's own: 0 here */
  bool shared_link;        /* to the host */
  bool first_will_do;      /* the first plan that fits, not the fastest: of a policy that CHOOSES, the first other's */
  bool own_rounds;         /* of a policy that CHOOSES: the others are not asked in smaller rounds than they choose */
  /* Borrowed, and filled as plans are made, by several threads if need be. NULL, as for all outside the planner: each
   * planning has its own. */
  planc_placement_cache *placement_cache;
  const planc_watch *watch; /* borrowed; NULL: nobody waits */
} planc_terms;

/* A job that is to be planned, whatever is asked of its plan. */
typedef struct planc_workload {
  const planc_graph *graph; /* with backward ops, unless planned for inference */
  const planc_profile *profile;
  int64_t batch;                   /* of each GPU, at most 2^53 */
  int64_t sub_batch;               /* fixed by the user; 0 = the policy chooses */
#define X(name, ...) int64_t name; /* the setting of that name */
  PLANC_EACH_SETTINGS(X)
#undef X
  int64_t link_ppm; /* the part of the links' rates that policies with a SWAP_RATE count on, in parts per million, where
                       other jobs have the rest or ops take longer than they do alone; 0 = all of them */
  int32_t priority; /* of the job beside others, 0 to PLANC_MAX_PRIORITY, see planc_job */
  int32_t side_by_side;  /* so many rounds, of sub_batch each and all there are, may run side by side, which is for
                            mixes; 0 and 1 = they run one after the other */
  bool split_batch_norm; /* the user allows splitting a batch-coupled graph */
} planc_workload;

/* A job to plan on terms. */
typedef struct planc_problem {
  planc_terms terms;
  planc_workload job;
} planc_problem;

/* What is asked of policies, as a plan keeps it. */
static inline planc_settings planc_settings_asked(const planc_problem *problem) {
  planc_settings settings = problem->terms.settings;
#define X(name, ...) settings.name = problem->job.name;
  PLANC_EACH_SETTINGS(X)
#undef X
  return settings;
}
static inline void planc_ask_settings(planc_problem *problem, const planc_settings *settings) {
  problem->terms.settings = *settings;
#define X(name, ...)                \
  problem->terms.settings.name = 0; \
  problem->job.name = settings->name;
  PLANC_EACH_SETTINGS(X)
#undef X
}

/* What a candidate is lowered for, be it of one job or of several: the device that its profile tells of, and what is
 * asked there. */
typedef struct planc_target {
  const planc_terms *terms; /* borrowed, as the profile is; their settings are among those below */
  const planc_profile *profile;
  planc_settings settings; /* what the plan keeps of what policies were asked */
} planc_target;

/* That of a job alone. */
static inline planc_target planc_target_of(const planc_problem *problem) {
  planc_target target = {&problem->terms, problem->job.profile, planc_settings_asked(problem)};
  return target;
}

/* How many bytes may be away from the devices, on the host and in storage; -1 = not limited. */
int64_t planc_away_budget(const planc_terms *terms);

/* Whether peaks, by kind of memory, are within the budgets. */
bool planc_is_within(const planc_terms *terms, const int64_t peak_bytes[PLANC_N_BUDGETS]);

/* What each GPU has of memory that is there for all of them; -1, not limited, stays so. */
static inline int64_t planc_share(const planc_terms *terms, int64_t bytes) {
  return terms->gpus > 1 && bytes > 0 ? bytes / terms->gpus : bytes;
}

#ifdef __cplusplus
}
#endif

#endif
