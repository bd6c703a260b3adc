/* A candidate: a trace with costs, an order and a schedule, which is all that lowering makes a plan of. */
#ifndef PLANC_CANDIDATE_H
#define PLANC_CANDIDATE_H

#include "planc/order.h"
#include "planc/problem.h"
#include "planc/schedule.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a policy gives out; freed with planc_candidate_free. Of several GPUs it plans one, and whatever it does the
 * others do as well. */
typedef struct planc_candidate {
  planc_trace *trace;
  planc_order *order;        /* in which its instances run: of one job each once, by the trace or as the policy
                                chooses; of several what the schedule runs, recomputes included */
  const planc_costs **costs; /* by job of the trace; its own, as all of this */
  planc_schedule *schedule;
  int64_t sub_batch; /* samples of a full round */
  int64_t bound_ns;  /* certified lower bound on its period, 0 = none */
  int64_t room;      /* of the arena: lowering searches for addresses within it where greedy orders find none, and keeps
                        places and slots free so that copies need not wait; 0 = it does neither */
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

/* Fills the blanks of a schedule: addresses (offline placement), host slots, streams, events. `policy` is the name in
 * the plan. */
planc_status planc_lower(const planc_target *target, const char *policy, const planc_candidate *candidate,
                         planc_plan **out);

/* What an evaluator places of the data of a candidate (evaluator.h): what is large, as if the rest took no room; or the
 * rest, around what is large. With 0 bytes all is large. */
typedef struct planc_placing {
  int64_t large_bytes; /* what is large has so many at least, or is on the device all the time */
  bool rest;           /* the addresses of what is large are given, and stay so */
} planc_placing;

#ifdef __cplusplus
}
#endif

#endif
