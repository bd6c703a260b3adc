/* What a policy may ask of a candidate while it chooses: its memory, its addresses and its time. */
#ifndef PLANC_EVALUATOR_H
#define PLANC_EVALUATOR_H

#include "planc/candidate.h"

#ifdef __cplusplus
extern "C" {
#endif

/* When something runs in a steady period, in nanoseconds from its start. */
typedef struct planc_run_time {
  int32_t instr; /* of the plan's body */
  int64_t start_ns, end_ns;
} planc_run_time;

/* What a candidate does in time. */
typedef struct planc_simulated {
  const planc_plan *plan;
  const int64_t *end_ns;       /* by instruction of its body: of execs and copies, others have 0 */
  const planc_order *order;    /* what it runs, recomputes included */
  const planc_run_time *times; /* by position */
} planc_simulated;
/* All of it is borrowed for the time of the call. */
typedef planc_status (*planc_candidate_visitor)(void *user, const planc_simulated *simulated);

/* What the plan of a candidate takes. */
typedef struct planc_taken {
  int64_t peak_bytes[PLANC_N_BUDGETS]; /* by kind of memory, as in planc_predictions */
  int64_t period_ns;
  bool fits; /* on the device; where not, nothing but its peak is known, and all else is 0 */
} planc_taken;

/* Judges candidates for the policy that makes them and chooses among them. Bytes of the device are those of one GPU,
 * with what is reserved on it; bytes of the host and of storage are those of all GPUs together, as their budgets are.
 * Times are nanoseconds. A candidate must have its whole schedule, and stays the caller's. Calls may run at the same
 * time, but not for the same candidate. Outputs are set on success; only the two that hold a candidate to budgets
 * return INFEASIBLE, and every other failure ends the planning. */
typedef struct planc_evaluator planc_evaluator;
struct planc_evaluator {
  const planc_problem *problem; /* of which they are; borrowed. NULL: they are of several jobs */
  planc_target target;          /* what they are lowered for; what it borrows, and the problem, outlive the evaluator */
  /* A lower bound of its peak, in linear time: what is open at a time, with nothing free between. */
  planc_status (*live)(const planc_evaluator *evaluator, const planc_candidate *candidate, int64_t *out_bytes);
  /* The physical peak that its plan would have, which takes a placement. */
  planc_status (*peak)(const planc_evaluator *evaluator, const planc_candidate *candidate, int64_t *out_bytes);
  /* INFEASIBLE, with what it needs, where it takes more than the device's budget or the host's, or than that of the
   * host alone: for policies that can choose another candidate. */
  planc_status (*hold)(const planc_evaluator *evaluator, const planc_candidate *candidate);
  planc_status (*hold_to_host)(const planc_evaluator *evaluator, const planc_candidate *candidate);
  /* Addresses of the device: of all, those that its plan would have, with those that it states; or of a part of what
   * states none, in one piece. residencies[] by residency, 0 for what is away; workspaces[] by command, of execs. Both
   * are the caller's, and where the rest is placed they have the addresses of what is large already; then places are
   * kept as in a room, but none is searched for. */
  planc_status (*place)(const planc_evaluator *evaluator, const planc_candidate *candidate, planc_placing what,
                        int64_t *residencies, int64_t *workspaces, int64_t *out_arena_bytes);
  /* How long its period takes by the simulator, whether it fits or not. */
  planc_status (*time)(const planc_evaluator *evaluator, const planc_candidate *candidate, int64_t *out_ns);
  /* Peaks and time at once, placed and lowered once. Where it fits on the device `visitor`, unless that is NULL, is
   * called once; where it does not, it is not even lowered. */
  planc_status (*simulate)(const planc_evaluator *evaluator, const planc_candidate *candidate,
                           planc_candidate_visitor visitor, void *user, planc_taken *out);
};

#ifdef __cplusplus
}
#endif

#endif
