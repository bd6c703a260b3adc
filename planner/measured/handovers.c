/* Hand-overs between streams around copies (handovers.h). */
#include "planner/measured/handovers.h"

#include <stdlib.h>

#include "planner/analysis/plan_streams.h"
#include "planner/measured/awaited.h"
#include "util/math.h"
#include "util/median.h"

typedef VEC(int64_t) time_list;

enum { NONE = -1 };

typedef struct handover_search {
  const planc_plan *plan;
  const planc_timeline *timeline;
  pl_awaited awaited;
  planc_route *route_of;      /* by timed instruction; PLANC_NO_ROUTE of all but copies from a memory to another */
  int64_t *predicted_idle_ns; /* by timed instruction */
  int64_t *behind; /* by span: of a copy, the copy of another stream that its engine made before; else NONE */
  pl_arena scratch;
  time_list times[PLANC_N_ROUTES]; /* for medians */
} handover_search;

static planc_status add(handover_search *s, const pl_predicted *predicted, pl_arena *arena, planc_span **out);
static planc_status prepare(handover_search *s);
static planc_status predict_idle(handover_search *s, const pl_predicted *predicted);
static planc_status find_behind(handover_search *s, const planc_span *spans, int32_t n_periods, int64_t **out);
static int64_t number(const handover_search *s, int32_t period, int32_t timed);
static planc_status lengthen_ends(handover_search *s, planc_span *spans);
static planc_status lengthen_begins(handover_search *s, planc_span *spans);
static planc_status find_after(handover_search *s, int64_t **out);
static planc_status find_medians(handover_search *s, const int64_t *known, int64_t out[PLANC_N_ROUTES]);
static void end_awaited(const handover_search *s, int32_t period, int32_t timed, planc_span *spans);
static int64_t last_awaited(const handover_search *s, const planc_span *spans, const int64_t *behind, int32_t period,
                            int32_t timed, int64_t *out_idle_ns);
static int64_t beyond(const handover_search *s, int64_t idle_ns, int32_t timed);
static bool is_fed(const handover_search *s, int32_t timed);

planc_status pl_handovers_add(const planc_timeline *timeline, const planc_plan *plan, const pl_predicted *predicted,
                              pl_arena *arena, planc_span **out) {
  handover_search s = {.plan = plan, .timeline = timeline};
  planc_status status = add(&s, predicted, arena, out);
  for (int r = 0; r < PLANC_N_ROUTES; r++) VEC_FREE(&s.times[r]);
  pl_awaited_free(&s.awaited);
  pl_arena_free(&s.scratch);
  return status;
}

static planc_status add(handover_search *s, const pl_predicted *predicted, pl_arena *arena, planc_span **out) {
  const planc_timeline *timeline = s->timeline;
  PLANC_TRY(prepare(s));
  if (predicted) PLANC_TRY(predict_idle(s, predicted));
  PLANC_TRY(find_behind(s, timeline->spans, timeline->n_periods, &s->behind));
  PLANC_TRY(pl_arena_copy(arena, timeline->spans, number(s, timeline->n_periods, 0), sizeof **out, (void *)out));
  PLANC_TRY(lengthen_ends(s, *out));
  return lengthen_begins(s, *out);
}

static planc_status lengthen_ends(handover_search *s, planc_span *spans) {
  const planc_timeline *timeline = s->timeline;
  int64_t *after, medians[PLANC_N_ROUTES];
  PLANC_TRY(find_after(s, &after));
  PLANC_TRY(find_medians(s, after, medians));
  for (int32_t p = 0; p < timeline->n_periods; p++) {
    for (int32_t k = 0; k < timeline->n_timed; k++) {
      int64_t i = number(s, p, k);
      if (s->route_of[k] == PLANC_NO_ROUTE) continue;
      spans[i].end_ns = pl_add_saturate(spans[i].end_ns, after[i] >= 0 ? after[i] : medians[s->route_of[k]]);
    }
  }
  for (int32_t p = 0; p < timeline->n_periods; p++)
    for (int32_t k = 0; k < timeline->n_timed; k++) end_awaited(s, p, k, spans);
  return NULL;
}

/* What is left behind the hand-overs of what a copy awaits. */
static planc_status lengthen_begins(handover_search *s, planc_span *spans) {
  const planc_timeline *timeline = s->timeline;
  int64_t *before, *unfed, medians[PLANC_N_ROUTES], n_spans = number(s, timeline->n_periods, 0);
  PLANC_TRY(PL_NEW(&s->scratch, &before, n_spans));
  PLANC_TRY(PL_NEW(&s->scratch, &unfed, n_spans));
  for (int32_t p = 0; p < timeline->n_periods; p++) {
    for (int32_t k = 0; k < timeline->n_timed; k++) {
      int64_t idle_ns, i = number(s, p, k), last = last_awaited(s, spans, s->behind, p, k, &idle_ns);
      before[i] = last < 0 ? NONE : beyond(s, idle_ns, k);
      unfed[i] = is_fed(s, k) ? NONE : before[i];
    }
  }
  PLANC_TRY(find_medians(s, unfed, medians));
  for (int64_t i = 0; i < n_spans; i++) {
    int32_t k = (int32_t)(i % timeline->n_timed);
    if (s->route_of[k] == PLANC_NO_ROUTE) continue;
    int64_t median_ns = medians[s->route_of[k]];
    spans[i].start_ns -= unfed[i] >= 0 ? unfed[i] : before[i] >= 0 && before[i] < median_ns ? before[i] : median_ns;
  }
  return NULL;
}

static planc_status prepare(handover_search *s) {
  const planc_timeline *timeline = s->timeline;
  int32_t *timed_of;
  pl_acquired *acquired;
  PLANC_TRY(pl_plan_acquired(s->plan, &s->scratch, &acquired));
  PLANC_TRY(pl_timed_of(s->plan, timeline, &s->scratch, &timed_of));
  PLANC_TRY(PL_NEW(&s->scratch, &s->predicted_idle_ns, timeline->n_timed));
  PLANC_TRY(PL_NEW(&s->scratch, &s->route_of, timeline->n_timed));
  for (int32_t k = 0; k < timeline->n_timed; k++)
    s->route_of[k] = pl_instr_route(s->plan, acquired, &s->plan->body.instrs[timeline->instrs[k]]);
  return pl_awaited_find(s->plan, timeline, timed_of, &s->awaited);
}

/* --- Idle times --------------------------------------------------------------------------------------------------- */

/* Spans go by their number: those of a period by timed instruction, period after period. */
static int64_t number(const handover_search *s, int32_t period, int32_t timed) {
  return (int64_t)period * s->timeline->n_timed + timed;
}

/* The span that is the last to end of what an instruction of a period awaits, and the idle time behind it; NONE where
 * that is not known. */
static int64_t last_awaited(const handover_search *s, const planc_span *spans, const int64_t *behind, int32_t period,
                            int32_t timed, int64_t *out_idle_ns) {
  int64_t last = behind[number(s, period, timed)];
  *out_idle_ns = 0;
  for (int64_t i = s->awaited.first[timed]; i < s->awaited.first[timed + 1]; i++) {
    pl_awaited_node node = s->awaited.nodes.data[i];
    if (node.timed < 0 || node.back > period) continue;
    int64_t span = number(s, period - node.back, node.timed);
    if (last < 0 || spans[span].end_ns > spans[last].end_ns) last = span;
  }
  if (last < 0) return NONE;
  int64_t idle_ns = spans[number(s, period, timed)].start_ns - spans[last].end_ns;
  if (idle_ns > 0) *out_idle_ns = idle_ns;
  return last;
}

typedef struct engine_copy {
  int32_t engine, stream;
  int64_t start_ns, span;
} engine_copy;

static int by_engine(const void *left, const void *right) {
  const engine_copy *a = left, *b = right;
  if (a->engine != b->engine) return a->engine < b->engine ? -1 : 1;
  if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns ? -1 : 1;
  return (a->span > b->span) - (a->span < b->span);
}

/* Streams of several jobs share an engine without an event between them: what it copies first the others await. */
static planc_status find_behind(handover_search *s, const planc_span *spans, int32_t n_periods, int64_t **out) {
  int64_t n_spans = number(s, n_periods, 0), n = 0;
  engine_copy *copies;
  PLANC_TRY(PL_NEW(&s->scratch, out, n_spans));
  PLANC_TRY(PL_NEW(&s->scratch, &copies, n_spans));
  for (int64_t i = 0; i < n_spans; i++) {
    const planc_instr *instr = &s->plan->body.instrs[s->timeline->instrs[i % s->timeline->n_timed]];
    (*out)[i] = NONE;
    if (!pl_instr_is_copy(s->plan, instr)) continue;
    copies[n++] = (engine_copy){s->plan->streams[instr->stream].on, instr->stream, spans[i].start_ns, i};
  }
  if (n > 0) qsort(copies, (size_t)n, sizeof *copies, by_engine);
  for (int64_t c = 1; c < n; c++)
    if (copies[c].engine == copies[c - 1].engine && copies[c].stream != copies[c - 1].stream)
      (*out)[copies[c].span] = copies[c - 1].span;
  return NULL;
}

/* In the prediction's period, the same before it. */
static planc_status predict_idle(handover_search *s, const pl_predicted *predicted) {
  int32_t n = s->timeline->n_timed;
  int64_t *behind;
  planc_span *spans;
  PLANC_TRY(PL_NEW(&s->scratch, &spans, 2 * (int64_t)n));
  for (int32_t k = 0; k < n; k++) {
    planc_span span = predicted->spans[k];
    spans[k] = span;
    spans[n + k] = (planc_span){span.start_ns + predicted->period_ns, span.end_ns + predicted->period_ns};
  }
  PLANC_TRY(find_behind(s, spans, 2, &behind));
  for (int32_t k = 0; k < n; k++) (void)last_awaited(s, spans, behind, 1, k, &s->predicted_idle_ns[k]);
  return NULL;
}

/* What of an idle time is not predicted. */
static int64_t beyond(const handover_search *s, int64_t idle_ns, int32_t timed) {
  int64_t predicted_ns = s->predicted_idle_ns[timed];
  return idle_ns > predicted_ns ? idle_ns - predicted_ns : 0;
}

static int64_t median_of(const time_list *times) {
  return times->len > 0 ? pl_median(times->data, (int32_t)times->len) : 0;
}

/* Adds the hand-overs of a copy where most periods know one: what only the others tell is out of the ordinary. */
static planc_status add_known(handover_search *s, const int64_t *known, int32_t timed) {
  const planc_timeline *timeline = s->timeline;
  int32_t first = planc_timeline_first_steady(timeline), n = 0;
  for (int32_t p = first; p < timeline->n_periods; p++) n += known[number(s, p, timed)] >= 0;
  if (2 * (int64_t)n <= timeline->n_periods - first) return NULL;
  for (int32_t p = first; p < timeline->n_periods; p++) {
    int64_t handover_ns = known[number(s, p, timed)];
    if (handover_ns >= 0) VEC_PUSH(&s->times[s->route_of[timed]], handover_ns);
  }
  return NULL;
}

/* By route. */
static planc_status find_medians(handover_search *s, const int64_t *known, int64_t out[PLANC_N_ROUTES]) {
  for (int r = 0; r < PLANC_N_ROUTES; r++) s->times[r].len = 0;
  for (int32_t k = 0; k < s->timeline->n_timed; k++)
    if (s->route_of[k] < PLANC_N_ROUTES) PLANC_TRY(add_known(s, known, k));
  for (int r = 0; r < PLANC_N_ROUTES; r++) out[r] = median_of(&s->times[r]);
  return NULL;
}

/* --- Behind copies ------------------------------------------------------------------------------------------------ */

/* Until the first begins of the ops that awaited nothing longer. */
static planc_status find_after(handover_search *s, int64_t **out) {
  const planc_timeline *timeline = s->timeline;
  int64_t n_spans = number(s, timeline->n_periods, 0), *after;
  PLANC_TRY(PL_NEW(&s->scratch, &after, n_spans));
  for (int64_t i = 0; i < n_spans; i++) after[i] = NONE;
  for (int32_t p = 0; p < timeline->n_periods; p++) {
    for (int32_t k = 0; k < timeline->n_timed; k++) {
      int64_t idle_ns, last = last_awaited(s, timeline->spans, s->behind, p, k, &idle_ns);
      if (last < 0 || s->route_of[k] < PLANC_N_ROUTES) continue;
      idle_ns = beyond(s, idle_ns, k);
      if (after[last] < 0 || idle_ns < after[last]) after[last] = idle_ns;
    }
  }
  *out = after;
  return NULL;
}

static void end_before(const handover_search *s, int64_t span, int64_t start_ns, planc_span *spans) {
  int64_t end_ns = s->timeline->spans[span].end_ns;
  if (end_ns < start_ns) end_ns = start_ns;
  if (spans[span].end_ns > end_ns) spans[span].end_ns = end_ns;
}

/* What an instruction of a period awaits has ended when it begins. */
static void end_awaited(const handover_search *s, int32_t period, int32_t timed, planc_span *spans) {
  int64_t own = number(s, period, timed), start_ns = s->timeline->spans[own].start_ns;
  if (s->behind[own] >= 0) end_before(s, s->behind[own], start_ns, spans);
  for (int64_t i = s->awaited.first[timed]; i < s->awaited.first[timed + 1]; i++) {
    pl_awaited_node node = s->awaited.nodes.data[i];
    if (node.timed < 0 || node.back > period) continue;
    end_before(s, number(s, period - node.back, node.timed), start_ns, spans);
  }
}

/* --- What feeds a copy -------------------------------------------------------------------------------------------- */

/* Before a copy from the user's memory its samples are made, which is no matter of the link. */
static bool is_fed(const handover_search *s, int32_t timed) {
  return s->plan->body.instrs[s->timeline->instrs[timed]].aux == PLANC_USER;
}
