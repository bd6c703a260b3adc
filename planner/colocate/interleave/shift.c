/* Time shifts (shift.h). Iterations are started one after the other, each where it fits, until a period is like the one
 * before: what follows from the beginning, when nothing is under way, is then over. Where that takes too long (periods
 * may alternate for ever), the last one stands alone: nothing of it reaches into the next. */
#include "planner/colocate/interleave/shift.h"

#include <assert.h>

#include "planc/colocate.h"
#include "util/math.h"

enum { MAX_PERIODS = 512, KEPT = 4 };

/* An iteration that was started: pass `pass` of its job. */
typedef struct started {
  int32_t pass;
  int64_t at_ns;
} started;

/* A job of the group, which starts one iteration after the other. */
typedef struct runner {
  int32_t job;
  int64_t n_started; /* of all periods */
  started *newest;   /* the iterations of the last KEPT periods, by number modulo as many */
  int64_t ready_ns;  /* when its last iteration ends */
} runner;

typedef struct shift_search {
  pl_timing *timing;
  const pl_areas *areas;
  pl_arena arena;
  runner *runners;
  int32_t n;
  int64_t budget_bytes;
} shift_search;

static planc_status begin(shift_search *s, const int32_t *jobs);
static bool start_next(shift_search *s);
static int64_t find_start(const shift_search *s, const runner *own);
static int32_t iterations_of(const shift_search *s, const runner *r);
static started *nth(const shift_search *s, const runner *r, int64_t number);
static int32_t pass_of(const shift_search *s, const runner *r, int64_t number);
static int64_t lateness(const shift_search *s, const runner *own, int64_t at_ns);
static bool may_start(const shift_search *s, const runner *own);
static int64_t earliest(const shift_search *s, const runner *own);
static bool is_steady(const shift_search *s, int64_t open);
static void set_starts(shift_search *s, int64_t open, bool steady);

planc_status pl_shift(pl_timing *timing, const pl_areas *areas, const int32_t *jobs, int32_t n, int64_t budget_bytes,
                      bool *out_fits) {
  shift_search s = {.timing = timing, .areas = areas, .n = n, .budget_bytes = budget_bytes};
  planc_status status = begin(&s, jobs);
  bool steady = false;
  int64_t open = 0;
  *out_fits = !status;
  while (*out_fits && !steady && open < MAX_PERIODS) {
    *out_fits = start_next(&s);
    bool opens = s.runners[0].n_started == (open + 1) * iterations_of(&s, &s.runners[0]) + 1;
    if (*out_fits && opens) steady = is_steady(&s, ++open);
  }
  if (*out_fits) set_starts(&s, open, steady);
  pl_arena_free(&s.arena);
  return status;
}

static planc_status begin(shift_search *s, const int32_t *jobs) {
  PLANC_TRY(PL_NEW(&s->arena, &s->runners, s->n));
  for (int32_t k = 0; k < s->n; k++) {
    s->runners[k].job = jobs[k];
    PLANC_TRY(PL_NEW(&s->arena, &s->runners[k].newest, (int64_t)KEPT * s->timing->iterations[jobs[k]]));
  }
  return NULL;
}

/* Starts the iteration that can start first; of several, the one that is ready first, then the first job's. */
static bool start_next(shift_search *s) {
  runner *best = NULL;
  int64_t at = 0;
  for (int32_t k = 0; k < s->n; k++) {
    runner *own = &s->runners[k];
    if (!may_start(s, own)) continue;
    int64_t start = find_start(s, own);
    if (start == INT64_MAX) return false;
    if (best && (start > at || (start == at && own->ready_ns >= best->ready_ns))) continue;
    best = own;
    at = start;
  }
  assert(best);
  *nth(s, best, best->n_started) = (started){pass_of(s, best, best->n_started), at};
  best->ready_ns = at + s->timing->passes[pass_of(s, best, best->n_started)].ns;
  best->n_started++;
  return true;
}

/* When the job's next iteration can start; INT64_MAX where it never can. */
static int64_t find_start(const shift_search *s, const runner *own) {
  int64_t at = earliest(s, own), late;
  while ((late = lateness(s, own, at)) > 0) {
    if (late == INT64_MAX) return INT64_MAX;
    at += late;
  }
  return at;
}

static int32_t iterations_of(const shift_search *s, const runner *r) {
  return s->timing->iterations[r->job];
}

static int64_t period_of(const shift_search *s, const runner *r) {
  return r->n_started / iterations_of(s, r);
}

static started *nth(const shift_search *s, const runner *r, int64_t number) {
  return &r->newest[number % ((int64_t)KEPT * iterations_of(s, r))];
}

static int32_t pass_of(const shift_search *s, const runner *r, int64_t number) {
  return s->timing->first[r->job] + (int32_t)(number % iterations_of(s, r));
}

/* --- Who holds what and when -------------------------------------------------------------------------------------- */

/* A pass that starts at a time, read step by step. */
typedef struct demand_reader {
  const pl_job_areas *areas;
  const pl_pass *pass;
  int64_t at_ns;
  int32_t next;
} demand_reader;

/* The iterations of other jobs that are under way at a time. */
typedef struct under_way {
  int32_t n;
  demand_reader of[PLANC_MIX_MAX_JOBS];
} under_way;

static demand_reader reader_of(const shift_search *s, const runner *r, int32_t pass, int64_t at_ns);
static under_way others_at(const shift_search *s, const runner *own, int64_t ns);
static int64_t read_all(demand_reader *mine, under_way *others, int64_t now, int64_t *out_next);
static void read_to(demand_reader *r, int64_t ns);
static int64_t time_of_next(const demand_reader *r);
static int64_t held(const demand_reader *r);
static int64_t next_release(const under_way *others);
static int64_t held_since(const demand_reader *mine);

/* By how much the iteration has to start later than at `at_ns` at the least to fit: 0 where it fits. INT64_MAX where it
 * never does. What is given back at a moment is there for who takes then.
 *
 * At a moment with too much, the iteration has held its part since some earlier time, and the others hold theirs until
 * the next release. As long as a shift does not bring that earlier time to the release, both parts still meet, and
 * there is still too much. */
static int64_t lateness(const shift_search *s, const runner *own, int64_t at_ns) {
  demand_reader mine = reader_of(s, own, pass_of(s, own, own->n_started), at_ns);
  under_way others = others_at(s, own, at_ns);
  for (int64_t now = at_ns, next; now != INT64_MAX; now = next) {
    if (read_all(&mine, &others, now, &next) <= s->budget_bytes) continue;
    int64_t release = mine.next > 0 ? next_release(&others) : INT64_MAX;
    return release == INT64_MAX ? INT64_MAX : release - held_since(&mine);
  }
  return 0;
}

static demand_reader reader_of(const shift_search *s, const runner *r, int32_t pass, int64_t at_ns) {
  return (demand_reader){.areas = &s->areas->jobs[r->job], .pass = &s->timing->passes[pass], .at_ns = at_ns};
}

/* Starts only go up, so that of each job only the last one can be. */
static under_way others_at(const shift_search *s, const runner *own, int64_t ns) {
  under_way others = {0};
  for (int32_t k = 0; k < s->n; k++) {
    const runner *r = &s->runners[k];
    if (r == own || r->n_started == 0 || r->ready_ns <= ns) continue;
    const started *it = nth(s, r, r->n_started - 1);
    others.of[others.n++] = reader_of(s, r, it->pass, it->at_ns);
  }
  return others;
}

/* What is held at a moment, when everything is read to it; *out_next is when that changes. */
static int64_t read_all(demand_reader *mine, under_way *others, int64_t now, int64_t *out_next) {
  read_to(mine, now);
  int64_t sum = held(mine);
  *out_next = time_of_next(mine);
  for (int32_t k = 0; k < others->n; k++) {
    read_to(&others->of[k], now);
    sum += held(&others->of[k]);
    if (time_of_next(&others->of[k]) < *out_next) *out_next = time_of_next(&others->of[k]);
  }
  return sum;
}

static void read_to(demand_reader *r, int64_t ns) {
  while (time_of_next(r) <= ns) r->next++;
}

static int64_t time_of_next(const demand_reader *r) {
  if (r->next == r->areas->n_steps) return INT64_MAX;
  return r->at_ns + r->pass->at_ns[r->areas->steps[r->next].command];
}

static int64_t held(const demand_reader *r) {
  return r->next == 0 ? 0 : r->areas->steps[r->next - 1].bytes;
}

/* When one of them lets go of something, behind the moment that they are read to; INT64_MAX where none ever does. */
static int64_t next_release(const under_way *others) {
  int64_t first = INT64_MAX;
  for (int32_t k = 0; k < others->n; k++) {
    demand_reader r = others->of[k];
    while (time_of_next(&r) != INT64_MAX && r.areas->steps[r.next].bytes >= held(&r)) r.next++;
    if (time_of_next(&r) < first) first = time_of_next(&r);
  }
  return first;
}

/* Since when the iteration has held at least what it holds now. */
static int64_t held_since(const demand_reader *mine) {
  int32_t step = mine->next - 1;
  while (step > 0 && mine->areas->steps[step - 1].bytes >= held(mine)) step--;
  return mine->at_ns + mine->pass->at_ns[mine->areas->steps[step].command];
}

/* --- Who may start ------------------------------------------------------------------------------------------------ */

/* The first job opens each period, once all others have begun all of the one before. */
static bool may_start(const shift_search *s, const runner *own) {
  bool opens = own == &s->runners[0] && own->n_started % iterations_of(s, own) == 0;
  if (own != &s->runners[0]) return s->runners[0].n_started > period_of(s, own) * iterations_of(s, &s->runners[0]);
  for (int32_t k = 1; opens && k < s->n; k++)
    if (period_of(s, &s->runners[k]) < period_of(s, own)) return false;
  return true;
}

/* Not before its last iteration ends, nor before what may_start says has begun. */
static int64_t earliest(const shift_search *s, const runner *own) {
  const runner *first = &s->runners[0];
  int64_t at = own->ready_ns;
  if (own != first) return pl_max(at, nth(s, first, period_of(s, own) * iterations_of(s, first))->at_ns);
  bool opens = own->n_started % iterations_of(s, own) == 0;
  for (int32_t k = 1; opens && own->n_started > 0 && k < s->n; k++) {
    const runner *other = &s->runners[k];
    at = pl_max(at, s->timing->apart ? other->ready_ns : nth(s, other, other->n_started - 1)->at_ns);
  }
  return at;
}

/* --- The steady period -------------------------------------------------------------------------------------------- */

static int64_t opened_at(const shift_search *s, int64_t period) {
  return nth(s, &s->runners[0], period * iterations_of(s, &s->runners[0]))->at_ns;
}

/* When an iteration of a period starts, counted from when the period opens. */
static int64_t start_in(const shift_search *s, const runner *r, int64_t period, int32_t iteration) {
  return nth(s, r, period * iterations_of(s, r) + iteration)->at_ns - opened_at(s, period);
}

/* Whether the period before the one that is open is like the one before it. */
static bool is_steady(const shift_search *s, int64_t open) {
  if (open < KEPT - 1) return false;
  if (opened_at(s, open) - opened_at(s, open - 1) != opened_at(s, open - 1) - opened_at(s, open - 2)) return false;
  for (int32_t k = 0; k < s->n; k++)
    for (int32_t i = 0; i < iterations_of(s, &s->runners[k]); i++)
      if (start_in(s, &s->runners[k], open - 1, i) != start_in(s, &s->runners[k], open - 2, i)) return false;
  return true;
}

static void set_starts(shift_search *s, int64_t open, bool steady) {
  int64_t end = 0;
  for (int32_t k = 0; k < s->n; k++) {
    const runner *r = &s->runners[k];
    for (int32_t i = 0; i < iterations_of(s, r); i++) {
      pl_pass *pass = &s->timing->passes[s->timing->first[r->job] + i];
      pass->start_ns = start_in(s, r, open - 1, i);
      end = pl_max(end, pass->start_ns + pass->ns);
    }
  }
  s->timing->period_ns = steady ? opened_at(s, open) - opened_at(s, open - 1) : end;
}
