/* Which ops another plan of the same jobs computes otherwise (planc/update.h). */
#include <string.h>

#include "planc/update.h"
#include "util/arena.h"

/* By job, op, iteration and round, optimizer ops in a row of their own: the algorithm, NULL where the op does not run.
 */
typedef struct ran {
  const planc_job *jobs;
  int64_t *first;    /* by job: its first algorithm */
  int64_t *first_op; /* by job: its first op, of those of all jobs */
  const char **algorithms;
} ran;

static bool have_same_rounds(const planc_plan *a, const planc_plan *b);
static planc_status compare(const planc_plan *before, const planc_plan *after, pl_arena *arena, int32_t *out);
static planc_status make_room(const planc_plan *plan, pl_arena *arena, ran *r, bool **out_differs);
static void note_algorithms(const planc_plan *plan, const planc_trace *trace, const ran *r);
static int32_t count_others(const planc_plan *plan, const planc_trace *trace, const ran *before, bool *differs);

planc_status planc_update_other_algorithms(const planc_plan *before, const planc_plan *after, int32_t *out) {
  pl_arena arena = {0};
  *out = -1;
  if (!have_same_rounds(before, after)) return NULL;
  planc_status status = compare(before, after, &arena, out);
  pl_arena_free(&arena);
  return status;
}

static planc_status compare(const planc_plan *before, const planc_plan *after, pl_arena *arena, int32_t *out) {
  ran r = {.jobs = before->jobs};
  planc_trace *trace;
  bool *differs;
  PLANC_TRY(make_room(before, arena, &r, &differs));
  PLANC_TRY(planc_expand(before->jobs, before->n_jobs, &trace));
  note_algorithms(before, trace, &r);
  planc_trace_free(trace);
  PLANC_TRY(planc_expand(after->jobs, after->n_jobs, &trace)); /* in an order of its own */
  *out = count_others(after, trace, &r, differs);
  planc_trace_free(trace);
  return NULL;
}

static planc_status make_room(const planc_plan *plan, pl_arena *arena, ran *r, bool **out_differs) {
  int64_t n = 0, n_ops = 0;
  PLANC_TRY(PL_NEW(arena, &r->first, plan->n_jobs));
  PLANC_TRY(PL_NEW(arena, &r->first_op, plan->n_jobs));
  for (int32_t j = 0; j < plan->n_jobs; j++) {
    const planc_job *job = &plan->jobs[j];
    r->first[j] = n;
    r->first_op[j] = n_ops;
    n += (int64_t)job->graph->n_ops * job->iterations * (job->n_rounds + 1);
    n_ops += job->graph->n_ops;
  }
  PLANC_TRY(PL_NEW(arena, &r->algorithms, n));
  return PL_NEW(arena, out_differs, n_ops);
}

static const char **algorithm_at(const ran *r, const planc_instance *instance) {
  const planc_job *job = &r->jobs[instance->job];
  int64_t row = (int64_t)instance->op * job->iterations + instance->iteration;
  return &r->algorithms[r->first[instance->job] + row * (job->n_rounds + 1) + instance->round + 1];
}

static bool have_same_rounds(const planc_plan *a, const planc_plan *b) {
  bool same = a->n_jobs == b->n_jobs;
  for (int32_t j = 0; j < a->n_jobs && same; j++) {
    const planc_job *one = &a->jobs[j], *other = &b->jobs[j];
    same = one->graph->n_ops == other->graph->n_ops && one->iterations == other->iterations &&
           planc_job_same_rounds(one, other);
  }
  return same;
}

/* The op's instance that an instruction runs; NULL where it is none. A recompute has the algorithm of its first run. */
static const planc_instance *op_of(const planc_trace *trace, const planc_instr *instr) {
  if (instr->op != PLANC_INSTR_exec) return NULL;
  const planc_instance *instance = &trace->instances[instr->id];
  return instance->role == PLANC_ROLE_OP ? instance : NULL;
}

static void note_algorithms(const planc_plan *plan, const planc_trace *trace, const ran *r) {
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instance *instance = op_of(trace, &plan->body.instrs[i]);
    if (instance) *algorithm_at(r, instance) = plan->algorithms[plan->body.instrs[i].aux];
  }
}

static int32_t count_others(const planc_plan *plan, const planc_trace *trace, const ran *before, bool *differs) {
  int32_t n = 0;
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instance *instance = op_of(trace, &plan->body.instrs[i]);
    if (!instance) continue;
    bool *other = &differs[before->first_op[instance->job] + instance->op];
    if (*other) continue;
    const char *was = *algorithm_at(before, instance), *is = plan->algorithms[plan->body.instrs[i].aux];
    if (was && strcmp(was, is) == 0) continue;
    *other = true;
    n++;
  }
  return n;
}
