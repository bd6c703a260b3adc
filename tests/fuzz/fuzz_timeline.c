/* Fuzz target: any bytes as a run trace of tests/data/timeline/tiny.plan. What is accepted holds every timed
 * instruction in every period, one after the other on each stream, and updates the plan with a profile that can be
 * read. */
#include <stdlib.h>

#include "planc/update.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const planc_plan *the_plan(void) {
  static planc_plan *plan;
  if (!plan && planc_plan_read("tests/data/timeline/tiny.plan", &plan)) abort();
  return plan;
}

static void update(const planc_plan *plan, const planc_timeline *timeline) {
  planc_update_options options = {.plan = plan, .timeline = timeline, .weight_ppm = PLANC_UPDATE_WEIGHT_PPM};
  planc_update *made;
  planc_profile *read;
  char *text;
  size_t length;
  if (planc_update_make(&options, &made) || planc_update_print(made, 0, &text, &length)) abort();
  if (planc_profile_parse(text, length, "update", &read)) abort();
  planc_profile_free(read);
  free(text);
  planc_update_free(made);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const planc_plan *plan = the_plan();
  planc_timeline *timeline;
  planc_status status = planc_timeline_parse((const char *)data, size, "fuzz", plan, &timeline);
  if (status) {
    planc_status_free(status);
    return 0;
  }
  int64_t free_at[PLANC_PLAN_MAX_STREAMS] = {0};
  for (int64_t i = 0; i < (int64_t)timeline->n_periods * timeline->n_timed; i++) {
    const planc_span *span = &timeline->spans[i];
    int64_t *end = &free_at[plan->body.instrs[timeline->instrs[i % timeline->n_timed]].stream];
    if (span->start_ns < *end || span->end_ns < span->start_ns) abort();
    *end = span->end_ns;
  }
  update(plan, timeline);
  planc_timeline_free(timeline);
  return 0;
}
