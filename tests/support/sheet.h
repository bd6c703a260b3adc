/* Timelines made by hand, and those of runs that go as the simulator says. */
#ifndef PLANC_TESTS_SHEET_H
#define PLANC_TESTS_SHEET_H

#include "planc/simulate.h"
#include "planc/timeline.h"

enum { SHEET_TIMED = 8192, SHEET_PERIODS = 8, SHEET_REPLAYED = 4 };

/* spans[p * timeline.n_timed + k] */
typedef struct sheet {
  planc_timeline timeline;
  int32_t instrs[SHEET_TIMED];
  planc_span spans[SHEET_TIMED * SHEET_PERIODS];
} sheet;

/* Of the plan's instructions that have a time, with spans of 0. The caller frees it with free(). */
sheet *sheet_of(const planc_plan *plan, int32_t n_periods);
/* The same with SHEET_REPLAYED periods as the simulator has them, one behind the other. */
sheet *sheet_replay(const planc_plan *plan, planc_simulation *simulation);

#endif
