#include "tests/support/sheet.h"

#include <check.h>
#include <stdlib.h>

#include "tests/support/unit.h"

sheet *sheet_of(const planc_plan *plan, int32_t n_periods) {
  sheet *s = calloc(1, sizeof *s);
  ck_assert(s != NULL);
  ck_assert_int_le(n_periods, SHEET_PERIODS);
  for (int32_t i = 0; i < plan->body.n; i++) {
    if (!planc_instr_is_timed(&plan->body.instrs[i])) continue;
    ck_assert_int_lt(s->timeline.n_timed, SHEET_TIMED);
    s->instrs[s->timeline.n_timed++] = i;
  }
  s->timeline.n_periods = n_periods;
  s->timeline.instrs = s->instrs;
  s->timeline.spans = s->spans;
  return s;
}

/* Where each instruction has its spans. */
typedef struct recording {
  sheet *sheet;
  int32_t *timed_of;
} recording;

static void record(void *user, const planc_plan *plan, const planc_instr *instr, int64_t start, int64_t end) {
  recording *r = user;
  r->sheet->spans[r->timed_of[instr - plan->body.instrs]] = (planc_span){start, end};
}

sheet *sheet_replay(const planc_plan *plan, planc_simulation *simulation) {
  sheet *s = sheet_of(plan, SHEET_REPLAYED);
  recording r = {s, calloc((size_t)plan->body.n + 1, sizeof(int32_t))};
  ck_assert(r.timed_of != NULL);
  int32_t n = s->timeline.n_timed;
  for (int32_t k = 0; k < n; k++) r.timed_of[s->instrs[k]] = k;
  planc_simulate_options options = {.settled = plan->n_jobs > 1, .visitor = record, .user = &r};
  ok(planc_simulate(plan, &options, simulation));
  for (int32_t p = 1; p < SHEET_REPLAYED; p++) {
    int64_t later_ns = p * simulation->period_ns;
    for (int32_t k = 0; k < n; k++)
      s->spans[p * n + k] = (planc_span){s->spans[k].start_ns + later_ns, s->spans[k].end_ns + later_ns};
  }
  free(r.timed_of);
  return s;
}
