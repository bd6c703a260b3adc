/* Whole schedules by brute force, for tiny traces: every decision of every gap, what it needs at the least and how fast
 * it could be at best. Nothing here comes from the planner but the builder that a chosen schedule is stated with.
 *
 * The space: the trace's order; params, state and gradients stay; whatever else waits through a gap stays or is away,
 * and one that is away comes back right before any instance of the gap; every algorithm of every instance that no other
 * beats in both time and workspace. A gap without an instance inside is none: being away there saves nothing. */
#ifndef PLANC_TESTS_BRUTE_H
#define PLANC_TESTS_BRUTE_H

#include "planc/policy.h"

enum { BRUTE_MAX_GAPS = 16, BRUTE_MAX_INSTANCES = 48, BRUTE_MAX_VARIANTS = 8 };

typedef struct brute_gap {
  int32_t buffer;
  int32_t from, to; /* instances that use the buffer; from = -1: fed data before its first use, always away */
  int32_t version;  /* what comes back; -1: nothing, `to` writes it anew */
  int32_t written;  /* the instance that wrote the version, -1: the user did */
} brute_gap;

typedef struct brute_space {
  const planc_trace *trace;
  const planc_costs *costs;
  int32_t n_gaps;
  brute_gap gaps[BRUTE_MAX_GAPS];
  int32_t n_variants[BRUTE_MAX_INSTANCES];
  int32_t variants[BRUTE_MAX_INSTANCES][BRUTE_MAX_VARIANTS];
} brute_space;

/* A point of the space. */
typedef struct brute_choice {
  int32_t back[BRUTE_MAX_GAPS]; /* the instance before which it is back; 0 = it stays (no gap ends at instance 0 but fed
                                   data's, which cannot stay) */
  int32_t variant[BRUTE_MAX_INSTANCES]; /* index into space->variants[instance] */
} brute_choice;

/* False when the trace is too large. */
bool brute_space_of(const planc_trace *trace, const planc_costs *costs, brute_space *out);
/* How many choices there are, with every moment of coming back and (`moments` false) with the last one only. */
double brute_count(const brute_space *space, bool moments);
void brute_first(const brute_space *space, bool moments, brute_choice *out);
bool brute_next(const brute_space *space, bool moments, brute_choice *choice);

/* Most bytes, in whole alignment units, that the choice has on the device at one instance when run in order. */
int64_t brute_peak(const brute_space *space, const brute_choice *choice);
/* The least of all choices. No legal schedule of the trace in its order needs less: it holds every instance's operands,
 * params, state and the gradients made. */
int64_t brute_least_peak(const brute_space *space);

/* What an instance needs for its operands and its least workspace, at the most: no schedule needs less, not even one
 * outside the space that lets params, state and gradients leave as well. */
int64_t brute_least_instance(const brute_space *space);

/* A time per iteration that no plan of these stays and variants beats in `arena` bytes, wherever its addresses are,
 * in whatever order and however early its copies start; INT64_MAX when it cannot run. Moments are ignored. */
int64_t brute_bound_ns(const brute_space *space, const brute_choice *choice, int64_t arena);

/* States the choice: what goes out does so as soon as it is written. With `apart` every residency has an address that
 * nothing else ever uses, else all addresses are blank. */
planc_status brute_schedule(const brute_space *space, const brute_choice *choice, bool apart, planc_schedule **out);

#endif
