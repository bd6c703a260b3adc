/* Deadlines of mixes (deadlines.h). */
#include "planner/colocate/deadlines.h"

#include "plan/copies.h"
#include "plan/plan_trace.h"
#include "planc/simulate.h"
#include "util/math.h"
#include "util/size.h"

int64_t pl_deadline_of(const planc_mix *mix, int32_t job) {
  return mix->deadlines_ns ? mix->deadlines_ns[job] : 0;
}

bool planc_mix_has_deadlines(const planc_mix *mix) {
  for (int32_t j = 0; j < mix->n_jobs; j++)
    if (pl_deadline_of(mix, j) > 0) return true;
  return false;
}

/* --- How often ---------------------------------------------------------------------------------------------------- */

int64_t pl_longest_op(const planc_candidate *candidate) {
  const planc_schedule *s = candidate->schedule;
  const planc_command *commands = planc_schedule_commands(s);
  int64_t longest = 0;
  for (int32_t c = 0; c < planc_schedule_n_commands(s); c++) {
    if (commands[c].kind != PLANC_CMD_EXEC) continue;
    int64_t ns = planc_schedule_variant(s, &commands[c]).time_ns;
    if (ns > longest) longest = ns;
  }
  return longest;
}

/* How much of a job's deadline is left for one part of the work of jobs without a deadline. A request that has just
 * missed an iteration waits for that one and for its own, and in both for an iteration of each other job with a
 * deadline; the part may also end late by its longest op. Plans beside others may be slower than alone, so a fraction
 * of what is left stays unused. */
static int64_t left_between(const planc_mix *mix, const pl_deadline_job *jobs, int32_t job) {
  enum { KEPT = 8 };
  int64_t left = pl_deadline_of(mix, job), longest = 0;
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    bool requested = pl_deadline_of(mix, j) > 0;
    if (requested) left -= pl_mul_saturate(jobs[j].alone_ns, 2);
    if (!requested && jobs[j].longest_op_ns > longest) longest = jobs[j].longest_op_ns;
    if (left <= 0) return 0;
  }
  left -= longest;
  return left > 0 ? left - left / KEPT : 0;
}

static int32_t most_iterations(const planc_mix *mix) {
  return mix->max_ratio > 0 ? mix->max_ratio : PLANC_MIX_MOST_ITERATIONS;
}

void pl_deadlines_choose(const planc_mix *mix, const pl_deadline_job *jobs, int32_t *iterations) {
  int32_t most = most_iterations(mix);
  int64_t others = 0;
  for (int32_t j = 0; j < mix->n_jobs; j++)
    if (pl_deadline_of(mix, j) == 0) others = pl_add_saturate(others, pl_mul_saturate(jobs[j].alone_ns, iterations[j]));
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    if (pl_deadline_of(mix, j) == 0 || mix->iterations[j] > 0) continue;
    int64_t left = left_between(mix, jobs, j);
    if (left == 0) continue;
    int64_t n = others / left + (others % left > 0);
    iterations[j] = n < 1 ? 1 : n > most ? most : (int32_t)n;
  }
}

bool pl_deadlines_raise(const planc_mix *mix, planc_mix_share *shares) {
  bool all = true;
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    int64_t deadline = pl_deadline_of(mix, j), most = most_iterations(mix);
    if (deadline == 0 || shares[j].response_ns <= deadline) continue;
    int64_t n = pl_muldiv_ceil(shares[j].iterations, shares[j].response_ns, deadline) + 1;
    if (n > most) n = most;
    if (mix->iterations[j] > 0 || n <= shares[j].iterations)
      all = false;
    else
      shares[j].iterations = (int32_t)n;
  }
  return all;
}

/* --- How long requests take --------------------------------------------------------------------------------------- */

/* A request that comes just when an iteration has begun waits for the next one. */
int64_t pl_longest_response(const pl_iteration_span *spans, int32_t n, int64_t period_ns) {
  int64_t longest = 0;
  for (int32_t k = 0; k < n; k++) {
    int64_t end_ns = pl_add_saturate(spans[(k + 1) % n].end_ns, k + 1 == n ? period_ns : 0);
    if (end_ns - spans[k].start_ns > longest) longest = end_ns - spans[k].start_ns;
  }
  return longest;
}

typedef struct finding_responses {
  const planc_plan *plan;
  const planc_trace *trace;
  pl_arena arena;
  pl_acquired *acquired;     /* by residency */
  pl_iteration_span **spans; /* by job and iteration */
} finding_responses;

static planc_status find(finding_responses *f, planc_mix_share *shares);
static planc_status set_up(finding_responses *f);
static void see(void *user, const planc_plan *plan, const planc_instr *instr, int64_t start_ns, int64_t end_ns);

planc_status pl_responses_find(const planc_plan *plan, planc_mix_share *shares) {
  finding_responses f = {.plan = plan};
  planc_trace *trace;
  PLANC_TRY(pl_plan_expand(plan, &trace));
  f.trace = trace;
  planc_status status = find(&f, shares);
  pl_arena_free(&f.arena);
  planc_trace_free(trace);
  return planc_context(status, "how long requests take");
}

static planc_status find(finding_responses *f, planc_mix_share *shares) {
  planc_simulation simulation;
  PLANC_TRY(set_up(f));
  PLANC_TRY(
      planc_simulate(f->plan, &(planc_simulate_options){.settled = true, .visitor = see, .user = f}, &simulation));
  for (int32_t j = 0; j < f->plan->n_jobs; j++)
    shares[j].response_ns = pl_longest_response(f->spans[j], f->plan->jobs[j].iterations, simulation.iteration_ns);
  return NULL;
}

static planc_status set_up(finding_responses *f) {
  PLANC_TRY(pl_plan_acquired(f->plan, &f->arena, &f->acquired));
  PLANC_TRY(PL_NEW(&f->arena, &f->spans, f->plan->n_jobs));
  for (int32_t j = 0; j < f->plan->n_jobs; j++) PLANC_TRY(PL_NEW(&f->arena, &f->spans[j], f->plan->jobs[j].iterations));
  return NULL;
}

static void note(const finding_responses *f, int32_t job, int32_t iteration, int64_t start_ns, int64_t end_ns) {
  if (iteration < 0) return; /* a copy of what spans all of them */
  pl_iteration_span *span = &f->spans[job][iteration];
  if (!span->seen || start_ns < span->start_ns) span->start_ns = start_ns;
  if (!span->seen || end_ns > span->end_ns) span->end_ns = end_ns;
  span->seen = true;
}

static void see(void *user, const planc_plan *plan, const planc_instr *instr, int64_t start_ns, int64_t end_ns) {
  const finding_responses *f = user;
  if (instr < plan->body.instrs || instr >= plan->body.instrs + plan->body.n) return;
  if (instr->op == PLANC_INSTR_exec) {
    const planc_instance *instance = &f->trace->instances[instr->id];
    note(f, instance->job, instance->iteration, start_ns, end_ns);
    return;
  }
  int32_t side = instr->id >= 0 ? instr->id : instr->aux, buffer = side >= 0 ? f->acquired[side].buffer : -1;
  if (buffer < 0) return;
  const planc_buffer *of = &f->trace->buffers[buffer];
  note(f, of->job, of->iteration, start_ns, end_ns);
}

/* Whatever is late is told to the microsecond above, as which it is late. */
planc_status pl_deadlines_hold(const planc_mix *mix, const planc_mix_share *shares) {
  enum { NS_OF_US = 1000 };
  char taken[PL_SIZE_TEXT], asked[PL_SIZE_TEXT], alone[PL_SIZE_TEXT];
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    int64_t deadline = pl_deadline_of(mix, j);
    if (deadline == 0 || shares[j].response_ns <= deadline) continue;
    return planc_error(
        PLANC_LATE,
        "job %d (%s): requests take up to %s, with %d iteration%s in a period; the deadline is %s, and two "
        "iterations take %s alone",
        j, mix->jobs[j].graph->name, pl_time_format(pl_align_up(shares[j].response_ns, NS_OF_US), taken),
        shares[j].iterations, shares[j].iterations == 1 ? "" : "s", pl_time_format(deadline, asked),
        pl_time_format(pl_mul_saturate(shares[j].alone_ns, 2), alone));
  }
  return NULL;
}
