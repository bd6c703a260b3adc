/* What runs of several jobs share: what they are fed, stand-in runs of a plan in all the ways in which streams may go
 * on, and what two of them came to. */
#ifndef TESTS_RUNS_H
#define TESTS_RUNS_H

#include "planrt/planrt.h"

typedef enum way { IN_ORDER, CONCURRENT, INTERLEAVED, N_WAYS } way;

/* A feed of f32 numbers below 1, and of int64 labels and tokens below 3. It does not depend on the job. */
planc_status feed_numbers(void *user, const planrt_feed_request *request);

/* Runs periods from initial values, verified, with poison, and concurrently with jitter. What is fed does not depend on
 * the job, so that one that runs alone gets the same. */
void run_periods(const planc_plan *plan, way how, uint64_t seed, int64_t periods, planrt_session **out);
/* What persists of the first job, which has that graph and batch, is the same in two sessions. */
void assert_first_job_same(const planrt_session *a, const planrt_session *b, const planc_graph *graph, int64_t batch,
                           const char *what);

#endif
