/* Live bytes of a plan as a framework's allocator has them, which knows no plan (planc/lifespans.h). */
#include <assert.h>
#include <stdlib.h>

#include "plan/plan_trace.h"
#include "planc/lifespans.h"
#include "planner/analysis/plan_live.h"
#include "util/arena.h"
#include "util/math.h"

/* When memory is taken or given back. What happens at one time is in the order in which the simulator tells of it. */
typedef struct footprint_moment {
  int64_t ns;
  int64_t told; /* number of what the simulator told; -1 = it has not */
} footprint_moment;

/* A place on the device that the body takes or gives back, with a workspace for each op behind them. */
typedef struct footprint_place {
  int64_t bytes;
  bool from_before, for_good; /* at the boundary it is there already; the body does not give it back */
  footprint_moment taken, freed;
} footprint_place;

typedef struct change {
  footprint_moment at;
  int64_t bytes; /* less than 0: given back */
} change;

typedef struct footprint_making {
  const planc_plan *plan;
  const planc_trace *trace;
  planc_free_at free_at;
  pl_arena arena;
  footprint_place *places; /* by residency, then by instruction of the body its workspace */
  int64_t told;
  int64_t start_ns, end_ns, backward_ns; /* of the first launch; of the last end; of the first backward op */
  int64_t always_bytes;
  change *changes;
  int64_t n_changes;
} footprint_making;

static planc_status measure(footprint_making *m, const planc_simulate_options *options, planc_footprint *out);
static planc_status check_options(const planc_plan *plan, const planc_simulate_options *options);
static void see_launch(void *user, const planc_plan *plan, const planc_instr *instr, int64_t start_ns, int64_t end_ns);
static void see_end(void *user, const planc_plan *plan, const planc_instr *instr, int64_t start_ns, int64_t end_ns);
static planc_status list_places(footprint_making *m);
static planc_status list_changes(footprint_making *m);
static void follow(const footprint_making *m, planc_footprint *out);

planc_status planc_footprint_of(const planc_plan *plan, const planc_simulate_options *options, planc_free_at free_at,
                                planc_footprint *out) {
  footprint_making m = {.plan = plan, .free_at = free_at, .backward_ns = INT64_MAX, .start_ns = INT64_MAX};
  planc_trace *trace;
  *out = (planc_footprint){0};
  PLANC_TRY(check_options(plan, options));
  PLANC_TRY(pl_plan_expand(plan, &trace));
  m.trace = trace;
  planc_status status = measure(&m, options, out);
  pl_arena_free(&m.arena);
  planc_trace_free(trace);
  return status;
}

static planc_status check_options(const planc_plan *plan, const planc_simulate_options *options) {
  assert(!options->visitor && !options->launch_visitor);
  if (options->captured || options->maps_in_step)
    return planc_error(
        PLANC_USAGE,
        "an allocator without a plan goes neither with a body replayed as a whole nor with mappings in it");
  if (planc_plan_gpus(plan) <= 1) return NULL;
  return planc_error(PLANC_USAGE, "an allocator without a plan is simulated on one GPU only");
}

static planc_status measure(footprint_making *m, const planc_simulate_options *options, planc_footprint *out) {
  planc_simulation simulation;
  planc_simulate_options watched = *options;
  watched.apart = true;
  watched.visitor = see_end;
  watched.launch_visitor = see_launch;
  watched.user = m;
  PLANC_TRY(pl_plan_check_names(m->plan, m->trace));
  PLANC_TRY(list_places(m));
  PLANC_TRY(planc_simulate(m->plan, &watched, &simulation));
  PLANC_TRY(list_changes(m));
  follow(m, out);
  return NULL;
}

/* --- What is taken and given back when ---------------------------------------------------------------------------- */

static planc_status list_places(footprint_making *m) {
  const planc_plan *plan = m->plan;
  pl_acquired *acquired;
  PLANC_TRY(pl_plan_acquired(plan, &m->arena, &acquired));
  PLANC_TRY(PL_NEW(&m->arena, &m->places, (int64_t)plan->n_residencies + plan->body.n));
  for (int64_t p = 0; p < (int64_t)plan->n_residencies + plan->body.n; p++)
    m->places[p] = (footprint_place){.taken.told = -1, .freed.told = -1, .for_good = p < plan->n_residencies};
  for (int32_t r = 0; r < plan->n_boundary; r++) m->places[r].from_before = true;
  for (int32_t i = 0; i < plan->prologue.n; i++) {
    const planc_instr *instr = &plan->prologue.instrs[i];
    if (instr->op == PLANC_INSTR_acquire && instr->id >= 0 && instr->id < plan->n_boundary)
      m->places[instr->id].bytes = instr->bytes;
  }
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (instr->op == PLANC_INSTR_acquire) m->places[instr->id].bytes = instr->bytes;
    if (instr->op == PLANC_INSTR_release) m->places[instr->id].for_good = false;
    if (instr->op == PLANC_INSTR_exec) m->places[(int64_t)plan->n_residencies + i].bytes = instr->bytes;
  }
  for (int32_t r = 0; r < plan->n_residencies; r++) {
    int32_t memory = acquired[r].memory;
    if (memory < 0 || plan->memories[memory].kind != PLANC_MEMORY_DEVICE) m->places[r].bytes = 0;
  }
  return NULL;
}

static bool precedes(footprint_moment a, footprint_moment b) {
  return a.ns != b.ns ? a.ns < b.ns : a.told < b.told;
}

static void take(footprint_place *of, footprint_moment at) {
  if (of->taken.told < 0 || precedes(at, of->taken)) of->taken = at;
}
static void give_back(footprint_place *of, footprint_moment at) {
  if (of->freed.told < 0 || precedes(of->freed, at)) of->freed = at;
}

/* Calls `what` for the places of an instruction of the body. */
static void for_places(footprint_making *m, const planc_instr *instr,
                       void (*what)(footprint_place *of, footprint_moment at), footprint_moment at) {
  const planc_plan *plan = m->plan;
  if (instr->op != PLANC_INSTR_exec) {
    if (instr->id >= 0) what(&m->places[instr->id], at);
    if (instr->aux >= 0) what(&m->places[instr->aux], at);
    return;
  }
  for (int32_t k = 0; k < m->trace->instances[instr->id].n_accesses; k++) {
    int32_t residency = plan->uses[instr->first_use + k];
    if (residency >= 0) what(&m->places[residency], at);
  }
  what(&m->places[plan->n_residencies + (instr - plan->body.instrs)], at);
}

static void see_launch(void *user, const planc_plan *plan, const planc_instr *instr, int64_t start_ns, int64_t end_ns) {
  footprint_making *m = user;
  (void)plan;
  if (start_ns < m->start_ns) m->start_ns = start_ns;
  for_places(m, instr, take, (footprint_moment){start_ns, m->told});
  if (m->free_at == PLANC_FREE_AT_SCHEDULE) for_places(m, instr, give_back, (footprint_moment){end_ns, m->told});
  m->told++;
}

static void see_end(void *user, const planc_plan *plan, const planc_instr *instr, int64_t start_ns, int64_t end_ns) {
  footprint_making *m = user;
  (void)plan;
  if (end_ns > m->end_ns) m->end_ns = end_ns;
  bool backward = instr->op == PLANC_INSTR_exec && planc_trace_op(m->trace, instr->id)->phase == PLANC_PHASE_backward;
  if (backward && start_ns < m->backward_ns) m->backward_ns = start_ns;
  if (m->free_at == PLANC_FREE_AT_COMPLETION) for_places(m, instr, give_back, (footprint_moment){end_ns, m->told});
  m->told++;
}

/* --- Over time ---------------------------------------------------------------------------------------------------- */

/* What one launch takes comes before what it gives back. */
static int compare_changes(const void *left, const void *right) {
  const change *a = left, *b = right;
  if (a->at.ns != b->at.ns) return a->at.ns < b->at.ns ? -1 : 1;
  if (a->at.told != b->at.told) return a->at.told < b->at.told ? -1 : 1;
  return (a->bytes < 0) - (b->bytes < 0);
}

/* What nothing uses takes no part, but for what is there all the time. */
static planc_status list_changes(footprint_making *m) {
  int64_t n = (int64_t)m->plan->n_residencies + m->plan->body.n;
  PLANC_TRY(PL_NEW(&m->arena, &m->changes, 2 * n));
  for (int64_t p = 0; p < n; p++) {
    const footprint_place *of = &m->places[p];
    bool used = of->taken.told >= 0;
    if (of->from_before && (used || of->for_good)) m->always_bytes = pl_add_saturate(m->always_bytes, of->bytes);
    if (!used || of->bytes == 0) continue;
    if (!of->from_before) m->changes[m->n_changes++] = (change){of->taken, of->bytes};
    if (!of->for_good) m->changes[m->n_changes++] = (change){of->freed, -of->bytes};
  }
  if (m->n_changes > 0) qsort(m->changes, (size_t)m->n_changes, sizeof *m->changes, compare_changes);
  return NULL;
}

/* Notes that so many bytes are live over a stretch of time, from the period's start. */
static void note(int64_t bytes, int64_t from_ns, int64_t to_ns, planc_footprint *out) {
  enum { PARTS = PLANC_FOOTPRINT_PARTS };
  if (bytes > out->peak_bytes) {
    out->peak_bytes = bytes;
    out->peak_ns = from_ns;
  }
  if (out->period_ns == 0) return;
  out->mean_bytes += pl_muldiv_floor(bytes, to_ns - from_ns, out->period_ns);
  int64_t first = pl_muldiv_floor(from_ns, PARTS, out->period_ns), last = pl_muldiv_floor(to_ns, PARTS, out->period_ns);
  for (int64_t k = first; k <= last && k < PARTS; k++)
    if (bytes > out->most_bytes[k]) out->most_bytes[k] = bytes;
}

static void follow(const footprint_making *m, planc_footprint *out) {
  int64_t start_ns = m->start_ns == INT64_MAX ? 0 : m->start_ns, live = m->always_bytes, since = 0;
  out->period_ns = m->end_ns - start_ns;
  out->backward_ns = m->backward_ns == INT64_MAX ? -1 : m->backward_ns - start_ns;
  for (int64_t k = 0; k < m->n_changes; k++) {
    int64_t now = m->changes[k].at.ns - start_ns;
    note(live, since, now, out);
    live = pl_add_saturate(live, m->changes[k].bytes);
    since = now;
  }
  note(live, since, out->period_ns, out);
}
