/* The simulator: runs a plan's program on the machine until its bodies repeat themselves, and tells what that says of
 * the plan.
 *
 * Bodies repeat themselves once the machine, at the end of a body, is in the same state as at the end of an earlier one
 * (sim_machine.h). Where that does not happen within SIM_MAX_BODIES, the second half of these bodies is averaged.
 *
 * In a long prologue a dispatcher launches bodies ahead. Where launching a body takes it a little longer than the GPU
 * takes to run it, that lead lasts for very many bodies, which end faster than the dispatcher launches them. They
 * cannot do so for ever. Such a program is run anew from rest: the dispatcher begins to launch the first body when the
 * prologue has ended. It has no lead to use up then, and bodies take from the beginning what they take for ever. */
#include "planc/simulate.h"

#include <assert.h>
#include <stdlib.h>

#include "cost/routes.h"
#include "planner/analysis/remap.h"
#include "planner/simulate/program_of_plan.h"
#include "planner/simulate/sim_busy.h"
#include "planner/simulate/totals_of_plan.h"
#include "util/math.h"

/* The last bodies are not averaged: nothing comes behind them, and one of several jobs may have the GPU for itself. */
enum { LAST_BODIES = 2 };
/* Where the body behind those that repeat is shown, so many bodies run on: enough that the end does not disturb it. */
enum { BODIES_BEHIND = 6 };

typedef struct simulation {
  const planc_plan *plan;
  sim_program program;
  sim_state state;
  pl_arena arena;
  planc_simulate_options options;
  sim_busy busy;       /* where jobs' predictions are asked for */
  sim_state *ends;     /* by body: the state at its end; without lanes where another body ended at the same time */
  bool repeats;        /* bodies do: the one behind `until` is like the one behind `from` */
  int32_t from, until; /* bodies: what lies between their ends is averaged */
  int32_t shown;       /* the body that visitors see */
  int64_t origin;      /* the time that visitors are told as 0: the beginning of that body */
} simulation;

static planc_status check_options(const planc_plan *plan, const planc_simulate_options *options);
static planc_status simulate(simulation *s, planc_simulation *out);
static planc_status make_program(simulation *s, const pl_acquired *acquired, planc_simulation *out);
static planc_status run_until_repeated(simulation *s);
static bool lives_on_lead(const simulation *s);
static void report_beginning(const simulation *s, planc_simulation *out);
static void report(const simulation *s, planc_simulation *out);
static void report_jobs(const simulation *s, int64_t period_ns);
static planc_status show(simulation *s);

planc_status planc_simulate(const planc_plan *plan, const planc_simulate_options *options, planc_simulation *out) {
  simulation s = {.plan = plan, .options = options ? *options : (planc_simulate_options){0}};
  *out = (planc_simulation){0};
  PLANC_TRY(check_options(plan, &s.options));
  planc_status status = simulate(&s, out);
  pl_arena_free(&s.arena);
  return planc_context(status, "simulation");
}

static planc_status check_options(const planc_plan *plan, const planc_simulate_options *options) {
  bool of_dispatchers = options->one_dispatcher || options->track_ns > 0 || options->in_flight > 0 || options->apart;
  if (options->captured && of_dispatchers)
    return planc_error(PLANC_USAGE, "a body that is replayed as a whole is launched at once, and nothing is tracked");
  if (!options->maps_in_step || planc_plan_gpus(plan) <= 1) return NULL;
  return planc_error(PLANC_USAGE, "mapping in the step is simulated on one GPU only");
}

static planc_status simulate(simulation *s, planc_simulation *out) {
  pl_acquired *acquired;
  PLANC_TRY(pl_plan_acquired(s->plan, &s->arena, &acquired));
  PLANC_TRY(make_program(s, acquired, out));
  PLANC_TRY(pl_plan_totals(s->plan, acquired, out));
  PLANC_TRY(sim_state_make(&s->program, &s->arena, &s->state));
  PLANC_TRY(run_until_repeated(s));
  report_beginning(s, out);
  if (lives_on_lead(s)) {
    s->program.from_rest = true;
    PLANC_TRY(run_until_repeated(s));
  }
  report(s, out);
  if (s->options.jobs) report_jobs(s, out->period_ns);
  return s->options.visitor || s->options.launch_visitor ? show(s) : NULL;
}

static planc_status make_program(simulation *s, const pl_acquired *acquired, planc_simulation *out) {
  int64_t *mapped = NULL;
  if (s->options.maps_in_step) PLANC_TRY(pl_count_mappings(s->plan, &mapped, &out->mapped_chunks));
  planc_status status = sim_program_of_plan(s->plan, acquired, mapped, &s->arena, &s->program);
  free(mapped);
  s->program.captured = s->options.captured;
  s->program.apart = s->options.apart;
  s->program.chunk_ns = s->options.chunk_ns;
  if (s->options.in_flight > 0) s->program.device.in_flight = s->options.in_flight;
  if (!status && s->options.one_dispatcher) status = sim_share_dispatcher(&s->program, &s->arena);
  if (!status && s->options.track_ns > 0)
    status = sim_track(s->plan, s->options.track_ns, s->options.track_bytes, &s->arena, &s->program);
  return status;
}

/* --- Until bodies repeat themselves ------------------------------------------------------------------------------- */

static bool is_shown_over(const simulation *s);
static planc_status note_end(simulation *s, int32_t body);

static planc_status run_until_repeated(simulation *s) {
  const sim_observer busy = {.ended = sim_busy_note_end, .user = &s->busy};
  bool over = false;
  sim_state_begin(&s->program, &s->state);
  s->state.last_body = SIM_MAX_BODIES;
  PLANC_TRY(PL_NEW(&s->arena, &s->ends, (int64_t)SIM_MAX_BODIES + 1));
  if (s->options.jobs) PLANC_TRY(sim_busy_make(&s->program, &s->state, &s->arena, &s->busy));
  while (!over && !(s->options.steady_only && is_shown_over(s))) {
    int32_t closed = s->state.n_closed;
    int64_t now = s->state.now;
    PLANC_TRY(sim_advance(&s->program, &s->state, s->options.jobs ? &busy : NULL, &over));
    int32_t body = s->state.n_closed - 1;
    if (s->options.jobs) sim_busy_note_step(&s->busy, s->state.now - now, closed);
    bool ended = s->state.n_closed > closed && body > 0 && body < s->state.epilogue_stage;
    if (ended && !s->repeats) PLANC_TRY(note_end(s, body));
  }
  if (s->repeats) return NULL;
  s->from = SIM_MAX_BODIES / 2;
  s->until = s->shown = SIM_MAX_BODIES - LAST_BODIES;
  return NULL;
}

/* Whether bodies repeat themselves, and the one that visitors see has ended. */
static bool is_shown_over(const simulation *s) {
  return s->repeats && s->state.n_closed > s->shown;
}

/* Keeps the state at the end of a body, and looks for an earlier body at whose end the state was the same. */
static planc_status note_end(simulation *s, int32_t body) {
  PLANC_TRY(sim_state_make(&s->program, &s->arena, &s->ends[body]));
  sim_state_copy(&s->program, &s->ends[body], &s->state);
  for (int32_t before = body - 1; before > 0 && !s->repeats; before--) {
    if (!s->ends[before].lanes) continue;
    s->repeats = sim_is_repeated(&s->program, &s->ends[before], before, &s->ends[body], body);
    s->from = before;
  }
  if (!s->repeats) return NULL;
  s->until = s->shown = body;
  /* The last body is one that a dispatcher has come to. None has come to the epilogue: such states do not repeat. */
  s->state.last_body = s->state.n_entered - 1;
  if (s->options.settled && body + BODIES_BEHIND <= SIM_MAX_BODIES) {
    s->shown = body + 1;
    s->state.last_body = body + BODIES_BEHIND;
  }
  assert(s->state.last_body <= SIM_MAX_BODIES);
  return NULL;
}

/* Whether bodies end faster than some dispatcher can launch them, which they can only while it has launched some ahead.
 * Bodies that repeat themselves do not: a lead becomes shorter from body to body. */
static bool lives_on_lead(const simulation *s) {
  int64_t ns = s->state.stages[s->until].end - s->state.stages[s->from].end;
  for (int32_t k = 0; k < s->program.n_dispatchers && !s->repeats; k++)
    if (pl_mul_saturate(sim_dispatcher_ns(&s->program, s->program.dispatchers[k]), s->until - s->from) > ns)
      return true;
  return false;
}

/* --- What is reported --------------------------------------------------------------------------------------------- */

static sim_stage mean_of_bodies(const simulation *s);
static void report_stalls(const simulation *s, int64_t n_gpus, planc_simulation *out);

static void report_beginning(const simulation *s, planc_simulation *out) {
  const sim_stage *stages = s->state.stages;
  out->prologue_ns = stages[0].end;
  out->first_period_ns = stages[1].end - stages[0].end;
}

static void report(const simulation *s, planc_simulation *out) {
  const sim_stage *stages = s->state.stages, *last = &stages[s->until], *first = &stages[s->from];
  int32_t n_gpus = s->program.n_gpus > 0 ? s->program.n_gpus : 1, epilogue = s->state.epilogue_stage;
  sim_stage mean = mean_of_bodies(s);
  out->period_ns = (last->end - first->end) / (s->until - s->from);
  out->averaged = s->repeats ? 0 : s->until - s->from;
  if (s->state.n_closed > epilogue) out->epilogue_ns = stages[epilogue].end - stages[epilogue - 1].end;
  out->slowdown_ns = mean.lost_ns / n_gpus;
  out->misses = mean.misses;
  report_stalls(s, n_gpus, out);
  for (int r = 0; r < PLANC_N_ROUTES; r++)
    out->copy_ns[r] = mean.copy_ns[r] / (pl_routes[r].memory == PLANC_MEMORY_DEVICE ? n_gpus : 1);
}

/* How long the bodies that are averaged copied, what they lost and how many ops they missed, each as a mean. */
static sim_stage mean_of_bodies(const simulation *s) {
  sim_stage mean = {0};
  int64_t n = s->until - s->from;
  for (int32_t b = s->from + 1; b <= s->until; b++) {
    const sim_stage *body = &s->state.stages[b];
    for (int r = 0; r < PLANC_N_ROUTES; r++) mean.copy_ns[r] = pl_add_saturate(mean.copy_ns[r], body->copy_ns[r]);
    mean.lost_ns = pl_add_saturate(mean.lost_ns, body->lost_ns);
    mean.misses += body->misses;
  }
  for (int r = 0; r < PLANC_N_ROUTES; r++) mean.copy_ns[r] /= n;
  mean.lost_ns /= n;
  mean.misses = (mean.misses + n / 2) / n;
  return mean;
}

/* For how long a GPU waited for each cause, in the mean of bodies and GPUs. All causes and the time in which something
 * computes add up to the period, to the ns: so what is left over when one cause is divided is added to the next one,
 * and what is left over of the time computed to the first. */
static void report_stalls(const simulation *s, int64_t n_gpus, planc_simulation *out) {
  const sim_stage *last = &s->state.stages[s->until], *first = &s->state.stages[s->from];
  int64_t n = s->until - s->from, parts = n * n_gpus, rest = (last->end - first->end) % n * n_gpus;
  for (int i = 0; i < PLANC_N_STALLS; i++) rest -= (last->stall_ns[i] - first->stall_ns[i]) % parts;
  rest = (rest % parts + parts) % parts;
  for (int i = 0; i < PLANC_N_STALLS; i++) {
    int64_t all = last->stall_ns[i] - first->stall_ns[i];
    rest += all % parts;
    out->stall_ns[i] = all / parts + rest / parts;
    rest %= parts;
  }
}

/* What each job computed and waited in the mean of the bodies that are averaged, and of its GPUs. */
static void report_jobs(const simulation *s, int64_t period_ns) {
  for (int32_t j = 0; j < s->program.n_jobs; j++) {
    planc_job_predictions *job = &s->options.jobs[j];
    job->busy_ns = sim_busy_of_job(&s->busy, j, s->from, s->until);
    job->stall_ns = s->busy.n_gpus[j] > 0 ? period_ns - job->busy_ns : 0;
  }
}

/* --- What visitors are told --------------------------------------------------------------------------------------- */

static void go_back(simulation *s);
static void visit_end(void *user, int32_t stage, int32_t step, int64_t start, int64_t end);
static void visit_launch(void *user, int32_t stage, int32_t step, int64_t start, int64_t end);
static void visit(const simulation *s, planc_simulation_visitor visitor, int32_t stage, int32_t step, int64_t start,
                  int64_t end);

/* Which body is shown is known only when it has run: so it runs again, and visitors are told of it. */
static planc_status show(simulation *s) {
  const sim_observer visitors = {.ended = visit_end, .launched = visit_launch, .user = s};
  bool over = false;
  int32_t last_body = s->state.last_body;
  s->origin = s->state.stages[s->shown].start;
  go_back(s);
  s->state.last_body = last_body;
  while (!over && s->state.n_closed <= s->shown) PLANC_TRY(sim_advance(&s->program, &s->state, &visitors, &over));
  return NULL;
}

/* Goes back to the last state that was kept in which no dispatcher had come to the body that is shown: all of that body
 * is still to be launched. */
static void go_back(simulation *s) {
  int32_t body = s->until;
  while (body > 0 && (!s->ends[body].lanes || s->ends[body].n_entered > s->shown)) body--;
  if (body > 0) {
    sim_state_copy(&s->program, &s->state, &s->ends[body]);
  } else {
    sim_state_begin(&s->program, &s->state);
  }
}

static void visit_end(void *user, int32_t stage, int32_t step, int64_t start, int64_t end) {
  const simulation *s = user;
  if (s->options.visitor) visit(s, s->options.visitor, stage, step, start, end);
}

static void visit_launch(void *user, int32_t stage, int32_t step, int64_t start, int64_t end) {
  const simulation *s = user;
  if (s->options.launch_visitor) visit(s, s->options.launch_visitor, stage, step, start, end);
}

static void visit(const simulation *s, planc_simulation_visitor visitor, int32_t stage, int32_t step, int64_t start,
                  int64_t end) {
  const planc_instr *instr = &s->plan->body.instrs[step];
  if (stage == s->shown) visitor(s->options.user, s->plan, instr, start - s->origin, end - s->origin);
}
