/* Policies: functions from (graph, costs, budget, options) to a trace and a schedule. One file and one table entry
 * each. */
#ifndef PLANC_POLICY_H
#define PLANC_POLICY_H

#include "planc/order.h"
#include "planc/plan.h"
#include "planc/schedule.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Who gives out addresses. */
typedef enum planc_placement {
  PLANC_PLACEMENT_BEST_FIT, /* with caching; what policies leave blank is placed offline */
  PLANC_PLACEMENT_PAGED,    /* best fit with caching, of blocks that consist of pages of virtual memory */
  PLANC_PLACEMENT_VMM       /* virtual memory in chunks; data of at most one chunk shares them, with caching */
} planc_placement;

/* What is asked of a plan, be it of one job or of several. */
typedef struct planc_terms {
  int32_t gpus; /* which train together, each on a batch of its own; 0 = 1 */
  planc_placement placement;
  int64_t budgets[PLANC_N_BUDGETS]; /* bytes by kind of memory; -1 = not limited, which the device's never is. Of the
                                       device: the peak of each GPU, reserved bytes included. Of the storage, which is
                                       for what the host's budget has no room for: 0 = there is none */
  int64_t code_bytes;               /* beside what the profile reserves; planc_make_plan finds it */
  int64_t chunk_bytes;              /* of virtual memory, a multiple of PLANC_ALIGNMENT; 0 = 40 MiB, pages 2 MiB */
  int64_t beat_ns; /* a plan whose iteration takes as long or longer is not wanted, as if it did not fit; 0 = any
                      is */
  planc_settings settings; /* but for PLANC_EACH_SETTINGS, which are a job's own: 0 here */
  bool shared_link;        /* to the host */
  bool first_will_do;      /* of a policy that CHOOSES: the first of the others that fits, not the fastest */
} planc_terms;

/* A job that is to be planned, whatever is asked of its plan. */
typedef struct planc_workload {
  const planc_graph *graph; /* with backward ops, unless planned for inference */
  const planc_profile *profile;
  int64_t batch;                   /* of each GPU */
  int64_t sub_batch;               /* fixed by the user; 0 = the policy chooses */
#define X(name, ...) int64_t name; /* the setting of that name */
  PLANC_EACH_SETTINGS(X)
#undef X
  int64_t link_ppm; /* the part of the links' rates that policies with a SWAP_RATE count on, in parts per million, where
                       other jobs have the rest or ops take longer than they do alone; 0 = all of them */
  int32_t priority; /* of the job beside others, see planc_job */
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

/* How many bytes may be away from the devices, on the host and in storage; -1 = not limited. */
int64_t planc_away_budget(const planc_terms *terms);

/* Whether peaks, by kind of memory, are within the budgets. */
bool planc_is_within(const planc_terms *terms, const int64_t peak_bytes[PLANC_N_BUDGETS]);

/* What each GPU has of memory that is there for all of them; -1, not limited, stays so. */
static inline int64_t planc_share(const planc_terms *terms, int64_t bytes) {
  return terms->gpus > 1 && bytes > 0 ? bytes / terms->gpus : bytes;
}

/* What a policy gives out; freed with planc_candidate_free. Of several GPUs it plans one, and whatever it does the
 * others do as well. */
typedef struct planc_candidate {
  planc_trace *trace;
  planc_order *order;        /* in which its instances run, once each: the trace's, or the policy's own */
  const planc_costs **costs; /* by job of the trace; its own, as all of this */
  planc_schedule *schedule;
  int64_t sub_batch; /* samples of a full round */
  int64_t bound_ns;  /* certified lower bound on its iteration, 0 = none */
  char *explanation; /* for people: planc_candidate_explain; its own, NULL = none */
} planc_candidate;
void planc_candidate_free(planc_candidate *candidate);

/* Says in a sentence for people why the candidate was chosen, without a full stop; format is printf's. What is said
 * later follows behind a semicolon. */
planc_status planc_candidate_explain(planc_candidate *candidate, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Ops times rounds: no more are planned, and fewer where the policy chooses the rounds than where the user does. */
int32_t planc_most_instances(const planc_problem *problem);
/* Makes trace, order and costs of one job, for rounds of `sub_batch` samples, the last one smaller. INFEASIBLE, or
 * USAGE where the user chose them, for more than planc_most_instances. */
planc_status planc_candidate_rounds(const planc_problem *problem, int64_t sub_batch, planc_candidate *out);
/* Begins the schedule of a candidate that has trace and costs, anew if it has one, over the memories of `problem`. */
planc_status planc_candidate_schedule(const planc_problem *problem, planc_candidate *candidate);

/* When something runs in a steady period, in nanoseconds from its start. */
typedef struct planc_run_time {
  int32_t instr; /* of the plan's body */
  int64_t start_ns, end_ns;
} planc_run_time;

/* What a candidate does in time. */
typedef struct planc_followed {
  const planc_plan *plan;
  const int64_t *end_ns;       /* by instruction of its body: of execs and copies, others have 0 */
  const planc_order *order;    /* what it runs, recomputes included */
  const planc_run_time *times; /* by position */
} planc_followed;
/* All that is followed is borrowed for the time of the call. */
typedef planc_status (*planc_candidate_visitor)(void *user, const planc_followed *followed);

/* What the plan of a candidate takes. */
typedef struct planc_taken {
  int64_t peak_bytes[PLANC_N_BUDGETS]; /* by kind of memory, as in planc_predictions */
  int64_t iteration_ns;
  bool fits; /* on the device; where not, nothing but its peak is known, and all else is 0 */
} planc_taken;

/* Judges candidates of one problem for the policy that makes them and chooses among them. Bytes are those of one GPU,
 * with what is reserved on it; times are nanoseconds. A candidate must have its whole schedule, and stays the caller's.
 * Calls may run at the same time, but not for the same candidate. Outputs are set on success; only the two that hold a
 * candidate to budgets return INFEASIBLE, and every other failure ends the planning. */
typedef struct planc_evaluator planc_evaluator;
struct planc_evaluator {
  const planc_problem *problem; /* borrowed; outlives the evaluator */
  /* A lower bound of its peak, in linear time: what is open at a time, without gaps between. */
  planc_status (*live)(const planc_evaluator *evaluator, const planc_candidate *candidate, int64_t *out_bytes);
  /* The physical peak that its plan would have, which takes a placement. */
  planc_status (*peak)(const planc_evaluator *evaluator, const planc_candidate *candidate, int64_t *out_bytes);
  /* INFEASIBLE, with what it needs, where it takes more than the device's budget or the host's, or than that of the
   * host alone: for policies that can choose another candidate. */
  planc_status (*hold)(const planc_evaluator *evaluator, const planc_candidate *candidate);
  planc_status (*hold_to_host)(const planc_evaluator *evaluator, const planc_candidate *candidate);
  /* The addresses of the device that its plan would have, with those that it states: residencies[] by residency, 0 for
   * what is away; workspaces[] by command, of execs. Both are the caller's. */
  planc_status (*place)(const planc_evaluator *evaluator, const planc_candidate *candidate, int64_t *residencies,
                        int64_t *workspaces, int64_t *out_arena_bytes);
  /* How long its iteration takes by the simulator, whether it fits or not. */
  planc_status (*time)(const planc_evaluator *evaluator, const planc_candidate *candidate, int64_t *out_ns);
  /* Peaks and time at once, placed and lowered once. Where it fits on the device `visitor`, unless that is NULL, is
   * called once; where it does not, it is not even lowered. */
  planc_status (*follow)(const planc_evaluator *evaluator, const planc_candidate *candidate,
                         planc_candidate_visitor visitor, void *user, planc_taken *out);
};

enum {
  PLANC_POLICY_ROUNDS = 1,     /* splits the batch */
  PLANC_POLICY_RECOMPUTES = 2, /* drops and recomputes */
  PLANC_POLICY_SIMULATED = 4,  /* has no plan, only a simulation: `ideal` */
  PLANC_POLICY_VMM = 8,        /* can place in virtual memory */
  PLANC_POLICY_WINDOW = 16,    /* has a window and limits workspaces */
  PLANC_POLICY_SWAP_RATE = 32, /* may be told how many tensors to swap */
  PLANC_POLICY_SWAPS = 128,    /* swaps; one that has this alone, or only recomputes, has no choice */
  PLANC_POLICY_CHOOSES = 64    /* makes no schedule: is the fastest of the others, `best` */
};

typedef struct planc_policy {
  const char *name, *summary;
  uint32_t supports;
  /* A schedule for the budget of the evaluator's problem, or INFEASIBLE with a message naming the op that binds and
   * what is live there. *out is empty; the caller frees it, whatever the outcome. */
  planc_status (*make)(const planc_evaluator *evaluator, planc_candidate *out);
} planc_policy;

/* All policies, ended by one without a name. */
const planc_policy *planc_policies(void);
const planc_policy *planc_policy_find(const char *name);

/* The whole way from a problem to a plan: policy, lowering, budgets, simulation. INFEASIBLE when it does not fit one of
 * the budgets, with what it needs (planc_status_shortage); a SIMULATED policy's plan is not held to them. Where the
 * profile lists what the code of algorithms takes, the plan is charged with that of its own, and the fastest of several
 * attempts is given out. Of a policy that CHOOSES the plan is the one that the fastest of the others makes, and has
 * its name. The plan's explanation is the policy's, and of one that CHOOSES behind its own. */
planc_status planc_make_plan(const planc_problem *problem, const planc_policy *policy, planc_plan **out);

/* Whether a plan of `ns` is preferred to one of `incumbent_ns` of a policy that stands before it in the table: it must
 * be faster, and where the other keeps everything on the device (`none`) by more than a thousandth. */
bool planc_is_preferred(int64_t ns, const char *incumbent, int64_t incumbent_ns);

enum { PLANC_LEAST_PLANS = 8 };
typedef struct planc_least {
  int64_t bytes;    /* the least budget that was found, of those for which planc_make_plan succeeds */
  bool is_least;    /* one alignment unit less was tried and fails */
  int32_t tried;    /* budgets, a whole plan each: at most PLANC_LEAST_PLANS */
  planc_plan *plan; /* for that budget; the caller's */
} planc_least;
/* The least budget of a memory for which the policy has a plan, the device's with what is reserved, the problem's other
 * budget as it is. The search begins with what the smallest plans need, as far as the policy makes or knows them.
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
/* planc_find_least for the device, without the plan. */
planc_status planc_least_budget(const planc_problem *problem, const planc_policy *policy, int64_t *out_bytes);

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

/* Fills the blanks of a schedule: addresses (offline placement), host slots, streams, events. `policy` is the name in
 * the plan. Of the problem its terms count, and the job's profile and swap rate: of several jobs those of all together.
 */
planc_status planc_lower(const planc_problem *problem, const char *policy, const planc_candidate *candidate,
                         planc_plan **out);

#ifdef __cplusplus
}
#endif

#endif
