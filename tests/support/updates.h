/* Updates of plans from runs on machines whose speeds are known. */
#ifndef PLANC_TESTS_UPDATES_H
#define PLANC_TESTS_UPDATES_H

#include "planc/policy.h"
#include "planc/update.h"
#include "tests/support/sheet.h"

enum { PPM = 1000000 };

/* Policies that differ in what they do, one of each kind. */
enum { N_UPDATED_POLICIES = 6 };
extern const char *const updated_policies[N_UPDATED_POLICIES];

/* With a budget that everything fits. */
planc_problem roomy_problem(const planc_graph *graph, const planc_profile *profile, int64_t batch);
/* Without launches: what waits for them cannot be told from what waits for a hand-over. */
planc_plan *plan_of(const planc_problem *problem, const char *policy);
/* What the simulator says of a plan, period after period. The caller frees it with free(). */
sheet *run_of(const planc_plan *plan);
/* `profile` may be NULL, as in planc_update_options. */
planc_update *update_of(const planc_plan *plan, const sheet *run, const planc_profile *profile, int64_t weight_ppm);

/* The same plan for a machine where things take percentages of their time: each job's ops, in order, and behind them
 * its sums of gradients, job after job, of jobs that are alike those of the first; then copies by each route. */
planc_plan *on_another_machine(const planc_plan *plan, const int64_t *percent);
/* As many percentages as that takes, each from `least` to `most`. The caller frees them with free(). */
int64_t *draw_percents(uint64_t *state, const planc_plan *plan, int64_t least, int64_t most);
/* What copies by a route cost: plans that are made have an engine for each, in the order of routes. */
const planc_link *link_of(const planc_plan *plan, planc_route route);

/* An op's costs by an algorithm, which must be there. */
const planc_variant *cost_of(const planc_costs *costs, int32_t op, int64_t batch, const char *algorithm);
/* Within a share of what is wanted, and so many ns more. */
void assert_near_ns(int64_t got, int64_t want, double share, int64_t ns);
/* An update's profiles have the links by which `want` copies. */
void assert_links(const planc_plan *want, const planc_update *update);
/* The times that the other machine's plan has are those that an update of this one's gives. */
void assert_found(const planc_plan *other, const planc_update *update);

#endif
