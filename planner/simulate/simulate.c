/* The simulator: a plan's program on the machine until its bodies repeat themselves, and what that says of the plan.
 *
 * Bodies repeat themselves when the machine is at the end of one in the state that it was in at the end of one before
 * (sim_machine.h). Where it never is, within so many bodies, the second half of them is averaged.
 *
 * In a long prologue a dispatcher launches bodies ahead. Where launching a body takes it a little longer than the GPU
 * takes to run it, that lead lasts for very many bodies, and they end faster than the dispatcher launches them. It
 * cannot stay so. Such bodies are run anew from rest: the dispatcher begins to launch the first one when the prologue
 * has ended. It has no lead to use up then, and bodies take from the beginning what they take for ever. */
#include "planc/simulate.h"

#include <assert.h>
#include <stdlib.h>

#include "cost/routes.h"
#include "planner/analysis/remap.h"
#include "planner/simulate/program_of_plan.h"
#include "planner/simulate/sim_busy.h"
#include "planner/simulate/totals_of_plan.h"
#include "util/math.h"

/* The last bodies are not like others: nothing comes behind them, and one of several jobs may have the GPU for itself.
 */
enum { LAST_BODIES = 2 };
/* Bodies behind those that repeat, where one of them is shown: so many that the end disturbs it nowhere. */
enum { BODIES_BEHIND = 6 };

typedef struct simulation {
  const planc_plan *plan;
  sim_program program;
  sim_state state;
  pl_arena arena;
  planc_simulate_options options;
  sim_busy busy;       /* where jobs' predictions are asked for */
  sim_state *ends;     /* by body: the state at its end */
  bool repeats;        /* bodies do, the one after `from` as the one after `until` */
  int32_t from, until; /* what lies between the ends of these is averaged */
  int32_t shown;       /* the body that visitors see */
  int64_t origin;
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

/* Looks for a body before this one whose end was like its own. */
static planc_status note_end(simulation *s, int32_t body) {
  PLANC_TRY(sim_state_make(&s->program, &s->arena, &s->ends[body]));
  sim_state_copy(&s->program, &s->ends[body], &s->state);
  for (int32_t before = body - 1; before > 0 && !s->repeats; before--) {
    if (!s->ends[before].lanes) continue; /* it ended together with a later one */
    s->repeats = sim_is_repeated(&s->program, &s->ends[before], before, &s->ends[body], body);
    s->from = before;
  }
  if (!s->repeats) return NULL;
  s->until = s->shown = body;
  s->state.last_body =
      s->state.n_entered - 1; /* no further ones: in a state that repeats no dispatcher is past bodies */
  if (s->options.settled && body + BODIES_BEHIND <= SIM_MAX_BODIES) {
    s->shown = body + 1;
    s->state.last_body = body + BODIES_BEHIND;
  }
  assert(s->state.last_body <= SIM_MAX_BODIES);
  return NULL;
}

static planc_status run_until_repeated(simulation *s) {
  const sim_observer busy = {.ended = sim_busy_note_end, .user = &s->busy};
  bool over = false;
  sim_state_begin(&s->program, &s->state);
  s->state.last_body = SIM_MAX_BODIES;
  PLANC_TRY(PL_NEW(&s->arena, &s->ends, (int64_t)SIM_MAX_BODIES + 1));
  if (s->options.jobs) PLANC_TRY(sim_busy_make(&s->program, &s->state, &s->arena, &s->busy));
  while (!over) {
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

/* A dispatcher needs the time of its launches for each body: if bodies end faster, they were launched ahead. */
static bool lives_on_lead(const simulation *s) {
  int64_t ns = s->state.stages[s->until].end - s->state.stages[s->from].end;
  for (int32_t k = 0; k < s->program.n_launchers && !s->repeats; k++)
    if (pl_mul_saturate(sim_dispatcher_ns(&s->program, s->program.launchers[k]), s->until - s->from) > ns) return true;
  return false;
}

static void visit(const simulation *s, planc_simulation_visitor visitor, int32_t stage, int32_t step, int64_t start,
                  int64_t end) {
  const planc_instr *instr = &s->plan->body.instrs[step];
  if (stage == s->shown) visitor(s->options.user, s->plan, instr, start - s->origin, end - s->origin);
}

static void visit_end(void *user, int32_t stage, int32_t step, int64_t start, int64_t end) {
  const simulation *s = user;
  if (s->options.visitor) visit(s, s->options.visitor, stage, step, start, end);
}

static void visit_launch(void *user, int32_t stage, int32_t step, int64_t start, int64_t end) {
  const simulation *s = user;
  if (s->options.launch_visitor) visit(s, s->options.launch_visitor, stage, step, start, end);
}

/* The last state in which no dispatcher had come to the body that is shown, so that all of it is still to be launched.
 */
static void go_back(simulation *s) {
  int32_t body = s->until;
  while (body > 0 && (!s->ends[body].lanes || s->ends[body].n_entered > s->shown)) body--;
  if (body > 0) {
    sim_state_copy(&s->program, &s->state, &s->ends[body]);
  } else {
    sim_state_begin(&s->program, &s->state);
  }
}

/* Which bodies repeat themselves is known only behind them: the last of them again, watched, or the next. */
static planc_status show(simulation *s) {
  const sim_observer visitors = {.ended = visit_end, .launched = visit_launch, .user = s};
  bool over = false;
  int32_t last_body = s->state.last_body;
  s->origin = s->state.stages[s->shown].start;
  go_back(s);
  s->state.last_body = last_body;
  while (!over) PLANC_TRY(sim_advance(&s->program, &s->state, &visitors, &over));
  return NULL;
}

/* Of each cause a GPU's mean. What a division leaves over goes on to the next cause, and to the first what is left of
 * the time computed: so the causes add up to the period less the time computed, to the ns. */
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

/* What the bodies that are averaged copied, lost and missed, each the mean of them. */
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
  out->epilogue_ns = stages[epilogue].end - stages[epilogue - 1].end;
  out->slowdown_ns = mean.lost_ns / n_gpus;
  out->misses = mean.misses;
  report_stalls(s, n_gpus, out);
  for (int r = 0; r < PLANC_N_ROUTES; r++)
    out->copy_ns[r] = mean.copy_ns[r] / (pl_routes[r].memory == PLANC_MEMORY_DEVICE ? n_gpus : 1);
}

/* Over the bodies that are averaged. Of several GPUs a job has the mean. */
static void report_jobs(const simulation *s, int64_t period_ns) {
  for (int32_t j = 0; j < s->program.n_jobs; j++) {
    planc_job_predictions *job = &s->options.jobs[j];
    job->busy_ns = sim_busy_of_job(&s->busy, j, s->from, s->until);
    job->stall_ns = s->busy.n_gpus[j] > 0 ? period_ns - job->busy_ns : 0;
  }
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

static planc_status check_options(const planc_plan *plan, const planc_simulate_options *options) {
  bool of_dispatchers = options->one_dispatcher || options->track_ns > 0 || options->in_flight > 0 || options->apart;
  if (options->captured && of_dispatchers)
    return planc_error(PLANC_USAGE, "a body that is replayed as a whole is launched at once, and nothing is tracked");
  if (!options->maps_in_step || planc_plan_gpus(plan) <= 1) return NULL;
  return planc_error(PLANC_USAGE, "mapping in the step is simulated on one GPU only");
}
