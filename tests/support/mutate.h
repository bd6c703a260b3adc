/* Mutants of valid plans: each has one change that could break it. The same seed gives the same mutant. */
#ifndef PLANC_TESTS_MUTATE_H
#define PLANC_TESTS_MUTATE_H

#include "planc/plan.h"

/* A copy of `plan` with one change: an instruction is moved, dropped, swapped or doubled, or one of its numbers (event,
 * lag, peers, stream, memory, address, size, use, id) or one of the plan's tables (memories, links, streams, boundary,
 * mappings, jobs) or counts is another. It shares with `plan` what did not change and must not outlive it.
 * `description` says what was done. What a plan may state freely (predictions, what copies cost, which of its
 * algorithms an exec takes) stays. */
planc_status mutate_plan(const planc_plan *plan, uint64_t seed, planc_plan **out, char *description, size_t size);

/* The same, where the change is to what keeps several jobs apart: a wait of one for another is moved, dropped, swapped
 * or doubled, or has another event or lag, or the record is that it waits for; or data is put where another job's are.
 * USAGE for a plan whose jobs share nothing. */
planc_status mutate_between_jobs(const planc_plan *plan, uint64_t seed, planc_plan **out, char *description,
                                 size_t size);

/* A plan's text with one change: cut at a line's end or anywhere, a line dropped, doubled or swapped with the next, a
 * number or a byte changed. *out is malloc'ed. */
planc_status mutate_text(const char *text, size_t length, uint64_t seed, char **out, size_t *out_length,
                         char *description, size_t size);

#endif
