/* Random legal schedules: any trace is run in order, its rounds on one compute stream or several, while versions are
 * offloaded, dropped, prefetched, moved and recomputed at random. The same seed gives the same schedule on every
 * machine. */
#ifndef PLANC_TESTS_RANDSCHEDULE_H
#define PLANC_TESTS_RANDSCHEDULE_H

#include "planc/policy.h"

typedef struct randschedule_options {
  const int64_t *addresses; /* stated by residency, PLANC_BLANK where not; NULL = all blank */
  bool no_awaits;
  bool stores; /* some of what is offloaded is copied on to storage, which the case's problem must have, and comes back
                  by way of the host; some of what persists is parked there */
} randschedule_options;

/* Everything that a plan of `graph` is made from. Every op has one to three variants with random workspaces. */
typedef struct randcase {
  planc_problem problem;
  planc_candidate candidate; /* freed with the case, as the rest, which its costs are made of */
  planc_costs *costs;
  planc_variant *variants;
  int32_t *first;
  int64_t *batches;
} randcase;

/* Trace and costs for `n_rounds` rounds; graph and profile are borrowed. */
planc_status randcase_make(uint64_t seed, const planc_graph *graph, const planc_profile *profile, int32_t n_rounds,
                           randcase *out);
void randcase_free(randcase *c);
/* (Re)places the case's schedule; `options` may be NULL. */
planc_status randschedule_make(uint64_t seed, const randschedule_options *options, randcase *c);

#endif
