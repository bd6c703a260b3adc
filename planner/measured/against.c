/* Predicted against measured: what the simulator says of a plan's body beside a timeline of it.
 *
 * Both sides are spans of the same instructions and are summed up by the same code: the simulator's steady period is
 * one before which the same has run. A predicted copy takes its link's latency, in which profiles count the hand-overs
 * around it: the measured ones are given theirs (handovers.h). An idle time of a compute stream is put down to what it
 * waited for by walking back from the instruction after it: to the last to end of what that one awaits (its stream's
 * instruction before it, and those before the records of the events that it waits for), from there to what that one
 * awaited, up to its start. Streams do one thing at a time, so the walks of one stream's idle times meet each
 * instruction about once. */
#include <stdlib.h>
#include <string.h>

#include "plan/plan_trace.h"
#include "planc/simulate.h"
#include "planc/timeline.h"
#include "planner/analysis/plan_streams.h"
#include "planner/measured/alone.h"
#include "planner/measured/awaited.h"
#include "planner/measured/handovers.h"
#include "util/map.h"
#include "util/math.h"
#include "util/median.h"

typedef struct made {
  planc_comparison comparison; /* first: what is given out */
  pl_arena arena;
  planc_class_times *classes;
  planc_stream_times *streams;
} made;

typedef struct work {
  const planc_plan *plan;
  const planc_timeline *timeline;
  made *made;
  pl_arena arena;
  pl_acquired *acquired;
  pl_awaited awaited;
  int32_t *class_of;  /* by timed instruction */
  int32_t *column_of; /* by stream: where its columns start, -1 where it does not compute */
  int32_t n_columns;
  pl_predicted predicted;
  planc_span *measured; /* the timeline's, copies with their hand-overs */
} work;

/* The spans of a period, and those of the one before, from which `shift` is to be taken off. NULL: not known. */
typedef struct period {
  const planc_span *spans, *before;
  int64_t shift;
} period;

static planc_status compare(work *w);
static planc_status measure(work *w, int64_t *medians);
static planc_status find_classes(work *w);
static planc_status find_columns(work *w);
static void sum_up(const work *w, const period *p, int64_t *row);
static planc_status predict_as_measured(work *w);
static void measure_periods(const work *w, int64_t *values);
static void fill(const work *w, const int64_t *predicted, const int64_t *measured);

planc_status planc_timeline_compare(const planc_plan *plan, const planc_timeline *timeline, planc_comparison **out) {
  *out = NULL;
  made *memory = calloc(1, sizeof *memory);
  if (!memory) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  work w = {.plan = plan, .timeline = timeline, .made = memory};
  planc_status status = compare(&w);
  pl_awaited_free(&w.awaited);
  pl_arena_free(&w.arena);
  if (status) {
    planc_comparison_free(&memory->comparison);
  } else {
    *out = &memory->comparison;
  }
  return status;
}

static planc_status compare(work *w) {
  int32_t *timed_of; /* by instruction of the body, -1 where it is not timed */
  int64_t *predicted, *measured;
  PLANC_TRY(pl_plan_acquired(w->plan, &w->arena, &w->acquired));
  PLANC_TRY(pl_simulated_spans(w->plan, w->timeline, &w->arena, &w->predicted)); /* which checks streams and events */
  w->made->comparison.predicted_ns = w->predicted.period_ns;
  PLANC_TRY(predict_as_measured(w));
  PLANC_TRY(pl_timed_of(w->plan, w->timeline, &w->arena, &timed_of));
  PLANC_TRY(pl_awaited_find(w->plan, w->timeline, timed_of, &w->awaited));
  PLANC_TRY(find_classes(w));
  PLANC_TRY(find_columns(w));
  PLANC_TRY(PL_NEW(&w->arena, &predicted, w->n_columns));
  PLANC_TRY(PL_NEW(&w->arena, &measured, w->n_columns));
  const planc_span *spans = w->predicted.spans;
  sum_up(w, &(period){.spans = spans, .before = spans, .shift = w->predicted.period_ns}, predicted);
  PLANC_TRY(measure(w, measured));
  fill(w, predicted, measured);
  return NULL;
}

/* Medians of all columns over the periods whose predecessor is known, or over the only one. */
static planc_status measure(work *w, int64_t *medians) {
  int32_t first = planc_timeline_first_steady(w->timeline), n = w->timeline->n_periods - first;
  int64_t *rows, *values, size;
  if (pl_mul_overflow(n, w->n_columns, &size)) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  PLANC_TRY(PL_NEW(&w->arena, &rows, size));
  PLANC_TRY(PL_NEW(&w->arena, &values, n));
  PLANC_TRY(pl_handovers_add(w->timeline, w->plan, &w->predicted, &w->arena, &w->measured));
  for (int32_t p = 0; p < n; p++) {
    const planc_span *spans = &w->measured[(int64_t)(first + p) * w->timeline->n_timed];
    period now = {.spans = spans, .before = first + p > 0 ? spans - w->timeline->n_timed : NULL};
    sum_up(w, &now, &rows[(int64_t)p * w->n_columns]);
  }
  for (int32_t c = 0; c < w->n_columns; c++) {
    for (int32_t p = 0; p < n; p++) values[p] = rows[(int64_t)p * w->n_columns + c];
    medians[c] = pl_median(values, n);
  }
  measure_periods(w, values);
  return NULL;
}

void planc_comparison_free(planc_comparison *comparison) {
  if (!comparison) return;
  made *memory = (made *)comparison;
  pl_arena_free(&memory->arena);
  free(memory);
}

static const planc_instr *instr_at(const work *w, int32_t timed) {
  return &w->plan->body.instrs[w->timeline->instrs[timed]];
}

/* --- Classes and streams ------------------------------------------------------------------------------------------ */

/* What is summed up of a period is a row of numbers: a column for each class, then for each compute stream the time
 * that it was busy and its idle times by cause. */
enum { STREAM_COLUMNS = 1 + PLANC_N_IDLE_CAUSES };

static planc_status classify(work *w, const planc_trace *trace, pl_map *map);
static planc_status class_name(const work *w, const planc_instr *instr, const planc_trace *trace, const char **out);
static const char *copy_name(const work *w, const planc_instr *instr);

static planc_status find_classes(work *w) {
  planc_trace *trace;
  pl_map map = {0};
  PLANC_TRY(pl_plan_expand(w->plan, &trace));
  planc_status status = classify(w, trace, &map);
  pl_map_free(&map);
  planc_trace_free(trace);
  return status;
}

static planc_status classify(work *w, const planc_trace *trace, pl_map *map) {
  planc_comparison *c = &w->made->comparison;
  int32_t n = w->timeline->n_timed;
  PLANC_TRY(PL_NEW(&w->arena, &w->class_of, n));
  PLANC_TRY(PL_NEW(&w->made->arena, &w->made->classes, n));
  for (int32_t k = 0; k < n; k++) {
    const char *name = "";
    PLANC_TRY(class_name(w, instr_at(w, k), trace, &name));
    int32_t class_ = pl_map_get(map, name, strlen(name));
    if (class_ < 0) {
      class_ = c->n_classes++;
      w->made->classes[class_].name = name;
      PLANC_TRY(pl_map_put(map, name, strlen(name), class_));
    }
    w->made->classes[class_].count++;
    w->class_of[k] = class_;
  }
  return NULL;
}

static planc_status class_name(const work *w, const planc_instr *instr, const planc_trace *trace, const char **out) {
  if (instr->op != PLANC_INSTR_exec) {
    *out = copy_name(w, instr);
    return NULL;
  }
  if (instr->id < 0 || instr->id >= trace->n_instances)
    return planc_error(PLANC_INVALID_PLAN, "there is no instance %d", instr->id);
  *out = planc_trace_type(trace, instr->id);
  return NULL;
}

static const char *copy_name(const work *w, const planc_instr *instr) {
  static const char *const names[PL_N_COPY_WAYS] = {
      [PL_COPY_IN] = "copy in", [PL_COPY_OUT] = "copy out", [PL_COPY_WITHIN] = "move", [PL_COPY_PAST] = "copy"};
  planc_route route = pl_instr_route(w->plan, w->acquired, instr);
  if (route == PLANC_ROUTE_STORE) return "copy to storage";
  return route == PLANC_ROUTE_LOAD ? "copy from storage" : names[pl_way_of_copy(w->plan, w->acquired, instr)];
}

static planc_status find_columns(work *w) {
  const planc_plan *plan = w->plan;
  planc_comparison *c = &w->made->comparison;
  w->n_columns = c->n_classes;
  PLANC_TRY(PL_NEW(&w->arena, &w->column_of, plan->n_streams));
  PLANC_TRY(PL_NEW(&w->made->arena, &w->made->streams, plan->n_streams));
  for (int32_t s = 0; s < plan->n_streams; s++) {
    w->column_of[s] = plan->streams[s].kind == PLANC_STREAM_KIND_compute ? w->n_columns : -1;
    if (w->column_of[s] < 0) continue;
    w->made->streams[c->n_streams++].stream = s;
    w->n_columns += STREAM_COLUMNS;
  }
  return NULL;
}

/* --- A period ----------------------------------------------------------------------------------------------------- */

static bool span_of(const period *p, pl_awaited_node of, planc_span *out);
static void explain_idle(const work *w, const period *p, int64_t start, int32_t timed, int64_t *idle_ns);
static pl_awaited_node last_awaited(const work *w, const period *p, pl_awaited_node of, planc_span *out);
static planc_idle_cause cause_of(const work *w, pl_awaited_node at);

static void sum_up(const work *w, const period *p, int64_t *row) {
  for (int32_t k = 0; k < w->timeline->n_timed; k++) {
    const planc_instr *instr = instr_at(w, k);
    int64_t busy = p->spans[k].end_ns - p->spans[k].start_ns, *of_class = &row[w->class_of[k]];
    *of_class = pl_add_saturate(*of_class, busy);
    if (w->column_of[instr->stream] < 0) continue;
    int64_t *of_stream = &row[w->column_of[instr->stream]];
    of_stream[0] = pl_add_saturate(of_stream[0], busy);
    planc_span before;
    if (span_of(p, w->awaited.nodes.data[w->awaited.first[k]], &before))
      explain_idle(w, p, before.end_ns, k, &of_stream[1]);
  }
}

/* False when the node's span is not known. */
static bool span_of(const period *p, pl_awaited_node of, planc_span *out) {
  const planc_span *spans = of.back ? p->before : p->spans;
  if (of.timed < 0 || !spans) return false;
  *out = spans[of.timed];
  if (!of.back) return true;
  out->start_ns -= p->shift;
  out->end_ns -= p->shift;
  return true;
}

/* Adds the time from `start` on until `timed` begins to what it was spent on. */
static void explain_idle(const work *w, const period *p, int64_t start, int32_t timed, int64_t *idle_ns) {
  pl_awaited_node at = {timed, 0};
  int64_t until = p->spans[timed].start_ns;
  while (until > start) {
    planc_span span;
    at = last_awaited(w, p, at, &span);
    if (at.timed < 0 || span.end_ns <= start) break;
    int64_t end = span.end_ns < until ? span.end_ns : until;
    int64_t begin = span.start_ns > end ? end : span.start_ns > start ? span.start_ns : start;
    idle_ns[PLANC_IDLE_OTHER] += until - end;
    idle_ns[cause_of(w, at)] += end - begin;
    until = begin;
  }
  idle_ns[PLANC_IDLE_OTHER] += until > start ? until - start : 0;
}

/* The last to end of what a node awaits, and its span. What a node of the period before awaited in the one before that
 * is not known. */
static pl_awaited_node last_awaited(const work *w, const period *p, pl_awaited_node of, planc_span *out) {
  pl_awaited_node last = {.timed = -1};
  *out = (planc_span){0, 0};
  for (int64_t i = w->awaited.first[of.timed]; i < w->awaited.first[of.timed + 1]; i++) {
    pl_awaited_node candidate = {w->awaited.nodes.data[i].timed, w->awaited.nodes.data[i].back + of.back};
    planc_span span;
    if (candidate.back > 1 || !span_of(p, candidate, &span)) continue;
    if (last.timed >= 0 && span.end_ns <= out->end_ns) continue;
    last = candidate;
    *out = span;
  }
  return last;
}

static planc_idle_cause cause_of(const work *w, pl_awaited_node at) {
  return (planc_idle_cause)pl_instr_route(w->plan, w->acquired, instr_at(w, at.timed));
}

/* --- Predicted ---------------------------------------------------------------------------------------------------- */

/* What a period takes if its ops take what they took in the run: the rest of the difference is not theirs. */
static planc_status predict_as_measured(work *w) {
  planc_plan plan = *w->plan;
  planc_instr *instrs;
  int64_t *times_ns;
  planc_simulation simulation;
  PLANC_TRY(PL_NEW(&w->arena, &times_ns, w->timeline->n_timed));
  PLANC_TRY(PL_NEW(&w->arena, &instrs, plan.body.n));
  memcpy(instrs, plan.body.instrs, (size_t)plan.body.n * sizeof *instrs);
  PLANC_TRY(pl_alone_times(w->timeline, w->plan, times_ns));
  for (int32_t k = 0; k < w->timeline->n_timed; k++) instrs[w->timeline->instrs[k]].time_ns = times_ns[k];
  plan.body.instrs = instrs;
  PLANC_TRY(planc_simulate(&plan, NULL, &simulation));
  w->made->comparison.predicted_as_measured_ns = simulation.period_ns;
  return NULL;
}

/* --- Measured ----------------------------------------------------------------------------------------------------- */

static int64_t start_of(const work *w, int32_t p);
static const planc_span *spans_of(const work *w, int32_t p);
static int64_t end_of(const work *w, int32_t p);

/* The steady periods that another one follows; where there is none, the last one. */
static void measure_periods(const work *w, int64_t *values) {
  planc_comparison *c = &w->made->comparison;
  int32_t last = w->timeline->n_periods - 1, n = 0;
  for (int32_t p = planc_timeline_first_steady(w->timeline); p < last; p++)
    values[n++] = start_of(w, p + 1) - start_of(w, p);
  if (n == 0) values[n++] = end_of(w, last) - start_of(w, last);
  c->measured_ns = pl_median(values, n);
  c->least_ns = values[0];
  c->most_ns = values[n - 1];
}

/* When the period's first work on a compute stream begins; where there is none, on any. */
static int64_t start_of(const work *w, int32_t p) {
  int64_t compute = INT64_MAX, any = INT64_MAX;
  for (int32_t k = 0; k < w->timeline->n_timed; k++) {
    int64_t begin = spans_of(w, p)[k].start_ns;
    if (begin < any) any = begin;
    if (begin < compute && w->column_of[instr_at(w, k)->stream] >= 0) compute = begin;
  }
  return compute < INT64_MAX ? compute : any;
}

static const planc_span *spans_of(const work *w, int32_t p) {
  return &w->timeline->spans[(int64_t)p * w->timeline->n_timed];
}

static int64_t end_of(const work *w, int32_t p) {
  int64_t end = 0;
  for (int32_t k = 0; k < w->timeline->n_timed; k++)
    if (spans_of(w, p)[k].end_ns > end) end = spans_of(w, p)[k].end_ns;
  return end;
}

/* --- What is told ------------------------------------------------------------------------------------------------- */

/* Longest predicted first; equal ones by name. */
static int compare_classes(const void *a, const void *b) {
  const planc_class_times *x = a, *y = b;
  if (x->predicted_ns != y->predicted_ns) return x->predicted_ns < y->predicted_ns ? 1 : -1;
  return strcmp(x->name, y->name);
}

static void fill(const work *w, const int64_t *predicted, const int64_t *measured) {
  made *m = w->made;
  planc_comparison *c = &m->comparison;
  for (int32_t k = 0; k < c->n_classes; k++) {
    m->classes[k].predicted_ns = predicted[k];
    m->classes[k].measured_ns = measured[k];
  }
  for (int32_t s = 0; s < c->n_streams; s++) {
    planc_stream_times *stream = &m->streams[s];
    int32_t column = w->column_of[stream->stream];
    stream->predicted_busy_ns = predicted[column];
    stream->measured_busy_ns = measured[column];
    memcpy(stream->predicted_idle_ns, &predicted[column + 1], sizeof stream->predicted_idle_ns);
    memcpy(stream->measured_idle_ns, &measured[column + 1], sizeof stream->measured_idle_ns);
  }
  qsort(m->classes, (size_t)c->n_classes, sizeof *m->classes, compare_classes);
  c->classes = m->classes;
  c->streams = m->streams;
}
