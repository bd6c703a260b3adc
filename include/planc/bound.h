/* A certified lower bound on what plans take. */
#ifndef PLANC_BOUND_H
#define PLANC_BOUND_H

#include "planc/problem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of every plan of a job whose ops run once in the graph's order, in given rounds, within a device budget: whatever it
 * copies to the host and back, parameters and state included, computes again, with whatever algorithms and addresses,
 * and however much the host holds. Where the user rules out swaps or recomputes (planc/settings.h), of plans without.
 */
typedef struct planc_bound {
  int64_t time_ns;     /* no period is shorter, as planc_simulate finds it */
  int64_t gib_ns;      /* for each GiB that the device's budget is larger the time that is certified is less by no more,
                          rounded up */
  int64_t ideal_ns;    /* the same within any budget: the ops alone, with their fastest algorithms */
  int64_t least_bytes; /* no device budget is smaller, with what is reserved */
  const char *binds;   /* the graph's op that takes them; borrowed from the graph, "" = the graph has none */
  int64_t sub_batch;   /* samples of a round */
  int32_t n_rounds;
  int64_t values; /* prices looked at */
} planc_bound;

/* An effort is counted in work, four times as much as the one below has: 50 ms for a thousand ops at effort 1, and
 * longer where the graph is so large that the least of what is looked at takes longer. A greater one certifies no
 * less. */
enum { PLANC_BOUND_MOST_EFFORT = 3, PLANC_BOUND_EFFORT = 2 /* if nothing is said */ };

/* The bound of the problem's job, in rounds of its sub_batch, else the whole batch. It is the same each time, on every
 * machine. Of several GPUs it is that of each. INFEASIBLE where no plan fits the device's budget, with what is needed;
 * *out has then all but the time. Other budgets make no difference. */
planc_status planc_bound_make(const planc_problem *problem, int32_t effort, planc_bound *out);
/* The same in the rounds and order of a plan that was made of the problem, by whatever policy. */
planc_status planc_bound_of_plan(const planc_problem *problem, int32_t effort, const planc_plan *plan,
                                 planc_bound *out);
/* States it in the plan, unless its policy has stated a higher one, or none where there is none. */
planc_status planc_bound_plan(const planc_problem *problem, int32_t effort, planc_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
