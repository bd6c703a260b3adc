/* Hand-overs between streams around copies (handovers.h). */
#include "planner/measured/handovers.h"

#include "planner/measured/awaited.h"
#include "planner/simulate/plan_streams.h"
#include "util/median.h"

typedef VEC(int64_t) time_list;

typedef struct search {
  const planc_timeline *timeline;
  const planc_plan *plan;
  pl_awaited awaited;
  pl_acquired *acquired;
  pl_arena scratch;
  time_list before[PLANC_N_ROUTES], after[PLANC_N_ROUTES];
} search;

static const planc_instr *instr_at(const search *s, int32_t timed) {
  return &s->plan->body.instrs[s->timeline->instrs[timed]];
}

/* The last to end of what an instruction of a period awaits, and when that is; -1 where it is not known. */
static int32_t last_awaited(const search *s, int32_t period, int32_t timed, int64_t *out_ns) {
  int32_t last = -1;
  for (int64_t i = s->awaited.first[timed]; i < s->awaited.first[timed + 1]; i++) {
    pl_awaited_node node = s->awaited.nodes.data[i];
    if (node.timed < 0 || node.back > period) continue;
    int64_t end_ns = s->timeline->spans[(int64_t)(period - node.back) * s->timeline->n_timed + node.timed].end_ns;
    if (last >= 0 && end_ns <= *out_ns) continue;
    last = node.timed;
    *out_ns = end_ns;
  }
  return last;
}

/* Before a copy from the user's memory its samples are made, which is no matter of the link. */
static planc_status take(search *s, int32_t period, int32_t timed) {
  const planc_instr *instr = instr_at(s, timed);
  int64_t ready_ns = 0;
  int32_t last = last_awaited(s, period, timed, &ready_ns);
  if (last < 0) return NULL;
  int64_t gap_ns = s->timeline->spans[(int64_t)period * s->timeline->n_timed + timed].begin_ns - ready_ns;
  if (gap_ns < 0) gap_ns = 0;
  planc_route own = pl_instr_route(s->plan, s->acquired, instr);
  planc_route awaited = pl_instr_route(s->plan, s->acquired, instr_at(s, last));
  bool copies = own < PLANC_N_ROUTES, fed = copies && instr->aux == PLANC_USER;
  if (copies && !fed) VEC_PUSH(&s->before[own], gap_ns);
  if (awaited < PLANC_N_ROUTES && !copies) VEC_PUSH(&s->after[awaited], gap_ns);
  return NULL;
}

static int64_t median_of(time_list *times) {
  return times->len > 0 ? pl_median(times->data, (int32_t)times->len) : 0;
}

static planc_status find(search *s, pl_handover out[PLANC_N_ROUTES]) {
  int32_t *timed_of, first = planc_timeline_first_steady(s->timeline);
  PLANC_TRY(pl_plan_acquired(s->plan, &s->scratch, &s->acquired));
  PLANC_TRY(pl_timed_of(s->plan, s->timeline, &s->scratch, &timed_of));
  PLANC_TRY(pl_awaited_find(s->plan, s->timeline, timed_of, &s->awaited));
  for (int32_t p = first; p < s->timeline->n_periods; p++)
    for (int32_t k = 0; k < s->timeline->n_timed; k++) PLANC_TRY(take(s, p, k));
  for (int r = 0; r < PLANC_N_ROUTES; r++) out[r] = (pl_handover){median_of(&s->before[r]), median_of(&s->after[r])};
  return NULL;
}

planc_status pl_handovers_find(const planc_timeline *timeline, const planc_plan *plan,
                               pl_handover out[PLANC_N_ROUTES]) {
  search s = {.timeline = timeline, .plan = plan};
  planc_status status = find(&s, out);
  for (int r = 0; r < PLANC_N_ROUTES; r++) {
    VEC_FREE(&s.before[r]);
    VEC_FREE(&s.after[r]);
  }
  pl_awaited_free(&s.awaited);
  pl_arena_free(&s.scratch);
  return status;
}
