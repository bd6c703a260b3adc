/* Which ops another plan of the same job computes otherwise (planc/update.h). */
#include <string.h>

#include "planc/update.h"
#include "util/arena.h"

/* By op and round, optimizer ops in a row of their own: the algorithm, NULL where the op does not run. */
typedef struct ran {
  int32_t n_rounds;
  const char **algorithms;
} ran;

static bool has_same_rounds(const planc_job *a, const planc_job *b);
static planc_status compare(const planc_plan *before, const planc_plan *after, pl_arena *arena, int32_t *out);
static void note_algorithms(const planc_plan *plan, const planc_trace *trace, ran *r);
static int32_t count_others(const planc_plan *plan, const planc_trace *trace, const ran *before, bool *differs);

planc_status planc_update_other_algorithms(const planc_plan *before, const planc_plan *after, int32_t *out) {
  pl_arena arena = {0};
  *out = -1;
  if (!has_same_rounds(before->jobs, after->jobs)) return NULL;
  planc_status status = compare(before, after, &arena, out);
  pl_arena_free(&arena);
  return status;
}

static planc_status compare(const planc_plan *before, const planc_plan *after, pl_arena *arena, int32_t *out) {
  const planc_job *job = before->jobs;
  ran r = {.n_rounds = job->n_rounds};
  planc_trace *trace;
  bool *differs;
  PLANC_TRY(PL_NEW(arena, &r.algorithms, (int64_t)job->graph->n_ops * (job->n_rounds + 1)));
  PLANC_TRY(PL_NEW(arena, &differs, job->graph->n_ops));
  PLANC_TRY(planc_expand(before->jobs, before->n_jobs, &trace));
  note_algorithms(before, trace, &r);
  planc_trace_free(trace);
  PLANC_TRY(planc_expand(after->jobs, after->n_jobs, &trace)); /* in an order of its own */
  *out = count_others(after, trace, &r, differs);
  planc_trace_free(trace);
  return NULL;
}

static const char **algorithm_at(const ran *r, const planc_instance *instance) {
  return &r->algorithms[(int64_t)instance->op * (r->n_rounds + 1) + instance->round + 1];
}

static bool has_same_rounds(const planc_job *a, const planc_job *b) {
  return a->graph->n_ops == b->graph->n_ops && a->n_rounds == b->n_rounds &&
         memcmp(a->rounds, b->rounds, (size_t)a->n_rounds * sizeof *a->rounds) == 0;
}

/* The op's instance that an instruction runs; NULL where it is none. A recompute has the algorithm of its first run. */
static const planc_instance *op_of(const planc_trace *trace, const planc_instr *instr) {
  if (instr->op != PLANC_INSTR_exec) return NULL;
  const planc_instance *instance = &trace->instances[instr->id];
  return instance->role == PLANC_ROLE_OP ? instance : NULL;
}

static void note_algorithms(const planc_plan *plan, const planc_trace *trace, ran *r) {
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instance *instance = op_of(trace, &plan->body.instrs[i]);
    if (instance) *algorithm_at(r, instance) = plan->algorithms[plan->body.instrs[i].aux];
  }
}

static int32_t count_others(const planc_plan *plan, const planc_trace *trace, const ran *before, bool *differs) {
  int32_t n = 0;
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instance *instance = op_of(trace, &plan->body.instrs[i]);
    if (!instance || differs[instance->op]) continue;
    const char *was = *algorithm_at(before, instance), *is = plan->algorithms[plan->body.instrs[i].aux];
    if (was && strcmp(was, is) == 0) continue;
    differs[instance->op] = true;
    n++;
  }
  return n;
}
