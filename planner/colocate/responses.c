/* Requests in a steady period (responses.h). */
#include "planner/colocate/responses.h"

#include "plan/copies.h"
#include "plan/plan_trace.h"
#include "planc/simulate.h"
#include "util/arena.h"
#include "util/math.h"

/* An iteration of a job in a steady period, from its first op or copy to its last. */
typedef struct iteration_span {
  bool seen;
  int64_t start_ns, end_ns;
} iteration_span;

typedef struct finding_responses {
  const planc_plan *plan;
  const planc_trace *trace;
  pl_arena arena;
  pl_acquired *acquired;  /* by residency */
  iteration_span **spans; /* by job and iteration */
} finding_responses;

static planc_status find(finding_responses *f, int64_t *out_ns);
static planc_status set_up(finding_responses *f);
static void see(void *user, const planc_plan *plan, const planc_instr *instr, int64_t start_ns, int64_t end_ns);

planc_status pl_responses_find(const planc_plan *plan, int64_t *out_ns) {
  finding_responses f = {.plan = plan};
  planc_trace *trace;
  PLANC_TRY(pl_plan_expand(plan, &trace));
  f.trace = trace;
  planc_status status = find(&f, out_ns);
  pl_arena_free(&f.arena);
  planc_trace_free(trace);
  return planc_context(status, "how long requests take");
}

/* A request that comes just when an iteration has begun waits for the next one. */
static int64_t longest_response(const iteration_span *spans, int32_t n, int64_t period_ns) {
  int64_t longest = 0;
  for (int32_t k = 0; k < n; k++) {
    int64_t end_ns = pl_add_saturate(spans[(k + 1) % n].end_ns, k + 1 == n ? period_ns : 0);
    if (end_ns - spans[k].start_ns > longest) longest = end_ns - spans[k].start_ns;
  }
  return longest;
}

static planc_status find(finding_responses *f, int64_t *out_ns) {
  planc_simulation simulation;
  PLANC_TRY(set_up(f));
  PLANC_TRY(
      planc_simulate(f->plan, &(planc_simulate_options){.settled = true, .visitor = see, .user = f}, &simulation));
  for (int32_t j = 0; j < f->plan->n_jobs; j++)
    out_ns[j] = longest_response(f->spans[j], f->plan->jobs[j].iterations, simulation.period_ns);
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
  iteration_span *span = &f->spans[job][iteration];
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
