/* The toy device of tests/data/profile, for which figures are worked out by hand, and costs on it. */
#ifndef TESTS_TOY_H
#define TESTS_TOY_H

#include "planc/cost.h"
#include "tests/support/graphtext.h"

/* A product, an op that streams, and three of types that planc does not know. */
extern const char toy_graph[];

planc_profile *profile_of(const char *path);
planc_profile *toy(void);
/* The toy profile with `families` among its products and `sections` among its sections. */
planc_profile *toy_with(const char *families, const char *sections);
planc_costs *costs_of(const planc_profile *profile, const planc_graph *graph, int32_t n, const int64_t *batches);
/* NULL where there is none. */
const planc_variant *find_variant(const planc_variant *variants, int32_t count, const char *algorithm);

#endif
