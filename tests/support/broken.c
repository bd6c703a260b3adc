#include "tests/support/broken.h"

int broken_failures;

planc_status broken_down(void) {
  broken_failures++;
  return planc_error(PLANC_INTERNAL, "broken");
}

static planc_status no_bytes(const planc_evaluator *evaluator, const planc_candidate *candidate, int64_t *out_bytes) {
  (void)evaluator;
  (void)candidate;
  (void)out_bytes;
  return broken_down();
}
static planc_status no_hold(const planc_evaluator *evaluator, const planc_candidate *candidate) {
  (void)evaluator;
  (void)candidate;
  return broken_down();
}
static planc_status no_place(const planc_evaluator *evaluator, const planc_candidate *candidate, planc_placing what,
                             int64_t *residencies, int64_t *workspaces, int64_t *out_arena_bytes) {
  (void)evaluator;
  (void)candidate;
  (void)what;
  (void)residencies;
  (void)workspaces;
  (void)out_arena_bytes;
  return broken_down();
}
static planc_status not_simulated(const planc_evaluator *evaluator, const planc_candidate *candidate,
                                  planc_candidate_visitor visitor, void *user, planc_taken *out) {
  (void)evaluator;
  (void)candidate;
  (void)visitor;
  (void)user;
  (void)out;
  return broken_down();
}

void broken_make(broken_function function, planc_evaluator *evaluator) {
  if (function == BROKEN_LIVE) evaluator->live = no_bytes;
  if (function == BROKEN_PEAK) evaluator->peak = no_bytes;
  if (function == BROKEN_HOLD) evaluator->hold = no_hold;
  if (function == BROKEN_HOLD_TO_HOST) evaluator->hold_to_host = no_hold;
  if (function == BROKEN_PLACE) evaluator->place = no_place;
  if (function == BROKEN_TIME) evaluator->time = no_bytes;
  if (function == BROKEN_SIMULATE) evaluator->simulate = not_simulated;
}
