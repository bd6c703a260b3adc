/* Policies: functions from a problem to a candidate. One file and one table entry each. */
#ifndef PLANC_POLICY_H
#define PLANC_POLICY_H

#include "planc/candidate.h"
#include "planc/evaluator.h"
#include "planc/problem.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  PLANC_POLICY_ROUNDS = 1,     /* splits the batch */
  PLANC_POLICY_RECOMPUTES = 2, /* drops and recomputes */
  PLANC_POLICY_SIMULATED = 4,  /* has no plan, only a simulation: `ideal` */
  PLANC_POLICY_VMM = 8,        /* can place in chunks of virtual memory */
  PLANC_POLICY_WINDOW = 16,    /* has a window and limits workspaces */
  PLANC_POLICY_SWAP_RATE = 32, /* may be told how many tensors to swap */
  PLANC_POLICY_CHOOSES = 64,   /* makes no schedule: is the fastest of the others, `auto` and `best` */
  PLANC_POLICY_SWAPS = 128,    /* swaps; one that has this alone, or only recomputes, has no choice */
  PLANC_POLICY_RESIDENT = 256, /* keeps everything on the device, within its budget: `none` */
  PLANC_POLICY_SEARCHES = 512, /* for as long as it is told: `priced`, and what asks it as well, `auto` */
  PLANC_POLICY_PAGED = 1024    /* can place in pages of virtual memory */
};

typedef struct planc_policy {
  const char *name, *summary;
  uint32_t supports;
  /* A schedule for the budget of the evaluator's problem, or INFEASIBLE with a message naming the op that binds and
   * what is live there. *out is empty; the caller frees it, whatever the outcome. NULL where it CHOOSES. */
  planc_status (*make)(const planc_evaluator *evaluator, planc_candidate *out);
} planc_policy;

/* All policies, ended by one without a name. */
const planc_policy *planc_policies(void);
const planc_policy *planc_policy_find(const char *name);
/* Whether the policy of a name is RESIDENT; the name may be one of no policy of these. */
bool planc_policy_is_resident(const char *name);
/* Whether its plans may be placed so; a simulation alone has no places. */
bool planc_policy_places(const planc_policy *policy, planc_placement placement);

/* The whole way from a problem to a plan: policy, lowering, budgets, simulation. INFEASIBLE when it does not fit one of
 * the budgets, with what it needs (planc_status_shortage); a SIMULATED policy's plan is not held to them. Where the
 * profile lists what the code of algorithms takes, the plan is charged with that of its own, and the fastest of several
 * attempts is given out. Of a policy that CHOOSES the plan is the one that the fastest of the others makes, and has
 * its name. The plan's explanation is the policy's, and of one that CHOOSES behind its own. */
planc_status planc_make_plan(const planc_problem *problem, const planc_policy *policy, planc_plan **out);

/* Whether a plan of `ns` is preferred to one of `incumbent_ns` of a policy that stands before it in the table: it must
 * be faster, and where the other is RESIDENT by more than a thousandth. */
bool planc_is_preferred(int64_t ns, const char *incumbent, int64_t incumbent_ns);

enum { PLANC_LEAST_PLANS = 8 };
typedef struct planc_least {
  int64_t bytes;    /* the least budget that was found, of those for which planc_make_plan succeeds */
  bool is_least;    /* one alignment unit less was tried and fails */
  int32_t tried;    /* budgets, a whole plan each: at most PLANC_LEAST_PLANS */
  planc_plan *plan; /* for that budget; the caller's */
} planc_least;
/* The least budget of a memory for which the policy has a plan, the device's with what is reserved. The other memories
 * keep the problem's budgets. The search begins with what the smallest plans need, as far as the policy makes or knows
 * them.
 * `failed` is an INFEASIBLE status of the problem, borrowed; NULL: none is known. INFEASIBLE when nothing fits. */
planc_status planc_find_least(const planc_problem *problem, const planc_policy *policy, planc_memory_kind memory,
                              planc_status failed, planc_least *out);
/* The device's alone: with a host without limit and no storage, whatever the problem has. `failed` as above. */
planc_status planc_find_least_device(const planc_problem *problem, const planc_policy *policy, planc_status failed,
                                     planc_least *out);
/* Which memory's budget is too small where planning the problem has `failed`, and the least for it: the host's also
 * where what has no room there is too much for the device, else as planc_find_least, the device's as
 * planc_find_least_device. *out_memory is set whatever the outcome. */
planc_status planc_find_lacking(const planc_problem *problem, const planc_policy *policy, planc_status failed,
                                planc_memory_kind *out_memory, planc_least *out);
/* A host budget with which the policy has a plan for the problem's others: its own, else what `plan` takes, which was
 * made for a host without limit, or, with storage or where that is not enough, the least that can be found. INFEASIBLE
 * where none was. */
planc_status planc_find_host_beside(const planc_problem *problem, const planc_policy *policy, const planc_plan *plan,
                                    int64_t *out_bytes);

typedef struct planc_largest_batch {
  int64_t batch;        /* the largest that has a plan; 0: not even one sample has */
  bool unbounded;       /* larger ones than `batch` have one as well, in more rounds or with no more memory; not where
                           the problem's own batch is larger and has none */
  int64_t iteration_ns; /* as predicted at `batch` */
  int64_t fails_at;     /* a smaller batch that has no plan, so that feasibility is not monotone; 0: none was met */
  int32_t tried;        /* batches */
} planc_largest_batch;
/* Called before each batch is tried. */
typedef void (*planc_batch_visitor)(void *user, int64_t batch);
/* The largest batch that the policy can plan for the problem's budgets. None is smaller than the problem's sub-batch;
 * its own batch is one of those that are tried. `visitor` may be NULL. */
planc_status planc_find_largest_batch(const planc_problem *problem, const planc_policy *policy,
                                      planc_batch_visitor visitor, void *user, planc_largest_batch *out);

#ifdef __cplusplus
}
#endif

#endif
