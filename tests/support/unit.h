/* What unit tests share: statuses that have to be a success or a failure, and the end of main. */
#ifndef PLANC_TESTS_UNIT_H
#define PLANC_TESTS_UNIT_H

#include <check.h>
#include <stdbool.h>

#include "planc/status.h"

void ok(planc_status status);
/* The same; `what` tells cases apart in the message. */
void ok_in(planc_status status, const char *what);
/* The failure is of this kind, and `part` is in what it says. Frees it. */
void assert_fails(planc_status status, planc_code code, const char *part);

/* How many of so many random cases are tried: the first eighth, but no fewer than 4; with SAMPLES=all in the
 * environment (make fuzz) all. tests/python/sampling.py has the same for Python tests. */
int sampled(int cases);
/* Whether case `number` of a series that is alike, and not random, is tried: each part-th is; with SAMPLES=all each. */
bool is_sampled(int number, int part);

/* Runs the suite, prints what failed, and gives main's exit code. CK_VERBOSITY=verbose names every test. */
int run_suite(Suite *suite);

#endif
