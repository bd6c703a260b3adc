/* Times alone (alone.h): goes through the measured spans in the order in which they begin and end, and asks the
 * simulator at each moment how fast what runs then goes (sim_rates.h). What a span did at these rates is its work, and
 * that at the full rate is its time alone. */
#include "planner/measured/alone.h"

#include <assert.h>
#include <stdlib.h>

#include "planner/analysis/plan_streams.h"
#include "planner/simulate/program_of_plan.h"
#include "planner/simulate/sim_rates.h"
#include "util/arena.h"
#include "util/math.h"
#include "util/median.h"

/* A span begins or ends. Spans are numbered period after period, by timed instruction. */
typedef struct turn {
  int64_t at, span;
  bool begins;
} turn;

typedef struct running {
  int64_t span;
  pl_wide work; /* done so far */
} running;

typedef struct replay {
  const planc_timeline *timeline;
  const planc_plan *plan;
  pl_arena arena;
  sim_program program; /* its device, engines and GPUs */
  sim_activity activity;
  int32_t *copying;   /* by engine: copies that run, of several streams perhaps */
  int32_t *computing; /* by stream: kernels that run, more than one where a clock is wrong */
  running *running;
  int64_t n_running;
  int64_t *place;    /* by span that runs: where it is in `running` */
  int64_t *alone_ns; /* by span */
} replay;

static planc_status find_times(replay *r, int64_t *out_ns);
static planc_status make_machine(replay *r, int64_t n_spans);
static planc_status replay_spans(replay *r, int64_t n_spans);
static planc_status make_turns(replay *r, int64_t n_spans, turn **out, int64_t *out_n);
static void work(replay *r, int64_t ns);
static void begin(replay *r, int64_t span);
static void end(replay *r, int64_t span);

planc_status pl_alone_times(const planc_timeline *timeline, const planc_plan *plan, int64_t *out_ns) {
  replay r = {.timeline = timeline, .plan = plan};
  planc_status status = find_times(&r, out_ns);
  pl_arena_free(&r.arena);
  return status;
}

static planc_status find_times(replay *r, int64_t *out_ns) {
  const planc_timeline *timeline = r->timeline;
  int32_t first = planc_timeline_first_steady(timeline), n = timeline->n_periods - first;
  int64_t n_spans = (int64_t)timeline->n_periods * timeline->n_timed, *values;
  PLANC_TRY(make_machine(r, n_spans));
  PLANC_TRY(PL_NEW(&r->arena, &values, n));
  PLANC_TRY(replay_spans(r, n_spans));
  for (int32_t k = 0; k < timeline->n_timed; k++) {
    for (int32_t p = 0; p < n; p++) values[p] = r->alone_ns[(int64_t)(first + p) * timeline->n_timed + k];
    out_ns[k] = pl_median(values, n);
  }
  return NULL;
}

static planc_status replay_spans(replay *r, int64_t n_spans) {
  turn *turns;
  int64_t n;
  PLANC_TRY(make_turns(r, n_spans, &turns, &n));
  for (int64_t t = 0; t < n; t++) {
    if (t > 0) work(r, turns[t].at - turns[t - 1].at);
    if (turns[t].begins) {
      begin(r, turns[t].span);
    } else {
      end(r, turns[t].span);
    }
  }
  assert(r->n_running == 0);
  return NULL;
}

/* --- What runs ---------------------------------------------------------------------------------------------------- */

static const planc_instr *instr_of(const replay *r, int64_t span) {
  return &r->plan->body.instrs[r->timeline->instrs[span % r->timeline->n_timed]];
}

/* The GPU or engine. */
static int32_t on_of(const replay *r, const planc_instr *instr) {
  return r->plan->streams[instr->stream].on;
}

static void set_running(replay *r, const planc_instr *instr, bool runs) {
  int32_t on = on_of(r, instr);
  if (!pl_instr_is_copy(r->plan, instr)) {
    sim_kernel kernel = {.time_ns = instr->time_ns, .busy_ppm = sim_busy_ppm(instr)};
    int32_t before = r->computing[instr->stream];
    r->computing[instr->stream] += runs ? 1 : -1;
    if (before == 0 || r->computing[instr->stream] == 0)
      sim_occupy(&r->program, &r->activity, instr->stream, runs ? &kernel : NULL);
    return;
  }
  int32_t before = r->copying[on];
  r->copying[on] += runs ? 1 : -1;
  if (before == 0 || r->copying[on] == 0) sim_turn(&r->program, &r->activity, on, runs);
}

static void begin(replay *r, int64_t span) {
  r->place[span] = r->n_running;
  r->running[r->n_running++] = (running){.span = span};
  set_running(r, instr_of(r, span), true);
}

static void end(replay *r, int64_t span) {
  const planc_instr *instr = instr_of(r, span);
  int64_t place = r->place[span];
  bool copies = pl_instr_is_copy(r->plan, instr);
  int64_t full = copies ? sim_full_copy_rate() : sim_full_kernel_rate(&r->program);
  assert(r->running[place].span == span);
  r->alone_ns[span] = (int64_t)(r->running[place].work / (pl_wide)full);
  r->running[place] = r->running[--r->n_running];
  r->place[r->running[place].span] = place;
  set_running(r, instr, false);
}

/* An engine makes one copy at a time: where spans of several streams overlap on it, they had equal parts of its time.
 */
static void work(replay *r, int64_t ns) {
  for (int64_t i = 0; i < r->n_running && ns > 0; i++) {
    const planc_instr *instr = instr_of(r, r->running[i].span);
    int32_t on = on_of(r, instr);
    int64_t rate = pl_instr_is_copy(r->plan, instr) ? sim_copy_rate(&r->program, &r->activity, on) / r->copying[on]
                                                    : sim_kernel_rate(&r->program, &r->activity, instr->stream);
    r->running[i].work += (pl_wide)rate * (pl_wide)ns;
  }
}

/* --- In the order of time ----------------------------------------------------------------------------------------- */

/* What ends at a time is gone when others begin. */
static int by_time(const void *left, const void *right) {
  const turn *a = left, *b = right;
  if (a->at != b->at) return a->at < b->at ? -1 : 1;
  if (a->begins != b->begins) return a->begins ? 1 : -1;
  return (a->span > b->span) - (a->span < b->span);
}

/* Spans without length did nothing. */
static planc_status make_turns(replay *r, int64_t n_spans, turn **out, int64_t *out_n) {
  PLANC_TRY(PL_NEW(&r->arena, out, 2 * n_spans));
  *out_n = 0;
  for (int64_t s = 0; s < n_spans; s++) {
    planc_span span = r->timeline->spans[s];
    if (span.end_ns <= span.start_ns) continue;
    (*out)[(*out_n)++] = (turn){span.start_ns, s, true};
    (*out)[(*out_n)++] = (turn){span.end_ns, s, false};
  }
  if (*out_n > 0) qsort(*out, (size_t)*out_n, sizeof **out, by_time);
  return NULL;
}

/* --- Set-up ------------------------------------------------------------------------------------------------------- */

static planc_status make_machine(replay *r, int64_t n_spans) {
  const planc_plan *plan = r->plan;
  PLANC_TRY(pl_section_check(plan, &plan->body));
  PLANC_TRY(sim_machine_of_plan(plan, &r->arena, &r->program));
  PLANC_TRY(sim_activity_make(&r->program, &r->arena, &r->activity));
  PLANC_TRY(PL_NEW(&r->arena, &r->copying, r->program.n_engines));
  PLANC_TRY(PL_NEW(&r->arena, &r->computing, plan->n_streams));
  PLANC_TRY(PL_NEW(&r->arena, &r->running, n_spans));
  PLANC_TRY(PL_NEW(&r->arena, &r->place, n_spans));
  return PL_NEW(&r->arena, &r->alone_ns, n_spans);
}
