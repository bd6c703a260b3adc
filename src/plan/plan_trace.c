/* The trace of a plan (plan_trace.h). */
#include "plan/plan_trace.h"

#include <stdlib.h>

#include "plan/layout.h"
#include "util/math.h"

/* What one iteration of a graph in one round needs at least: of round ops and of optimizer ops. */
typedef struct graph_needs {
  int64_t runs[2], uses[2];
  int64_t gradients; /* that a replica exchanges */
} graph_needs;

static planc_status bound_trace(const planc_plan *plan, pl_arena *scratch);
static planc_status measure_graph(const planc_plan *plan, const planc_graph *graph, graph_needs *out);

planc_status pl_plan_expand(const planc_plan *plan, planc_trace **out) {
  pl_arena scratch = {0};
  planc_status status = bound_trace(plan, &scratch);
  pl_arena_free(&scratch);
  if (!status) status = planc_expand(plan->jobs, plan->n_jobs, out);
  if (!status || planc_status_code(status) != PLANC_BAD_INPUT) return status;
  planc_status invalid = planc_error(PLANC_INVALID_PLAN, "jobs: %s", planc_status_message(status));
  planc_status_free(status);
  return invalid;
}

/* Jobs are a few numbers, the trace that they stand for can be beyond any memory. A right plan has a row for every
 * instance and a use for every access; so jobs that need more are refused before they are expanded. */
static planc_status bound_trace(const planc_plan *plan, pl_arena *scratch) {
  pl_plan_layout layout;
  int64_t instances = 0, accesses = 0, rounds;
  graph_needs *needs;
  PLANC_TRY(pl_plan_layout_make(plan, scratch, &layout));
  PLANC_TRY(PL_NEW(scratch, &needs, layout.n_graphs));
  for (int32_t g = 0; g < layout.n_graphs; g++) PLANC_TRY(measure_graph(plan, layout.graphs[g], &needs[g]));
  for (int32_t j = 0; j < plan->n_jobs; j++) {
    const planc_job *job = &plan->jobs[j];
    const graph_needs *need = &needs[layout.graph_of_job[j]];
    if (job->iterations < 1 || job->n_rounds < 1) {
      return planc_error(PLANC_INVALID_PLAN, "a job without iterations or rounds");
    }
    if (pl_mul_overflow(job->iterations, job->n_rounds, &rounds)) rounds = INT64_MAX;
    const int64_t times[2] = {rounds, job->iterations};
    for (int k = 0; k < 2; k++) {
      instances = pl_add_saturate(instances, pl_mul_saturate(need->runs[k], times[k]));
      accesses = pl_add_saturate(accesses, pl_mul_saturate(need->uses[k], times[k]));
    }
    if (job->replicas > 1) {
      int64_t exchanges = pl_mul_saturate(need->gradients, job->iterations);
      instances = pl_add_saturate(instances, exchanges);
      accesses = pl_add_saturate(accesses, pl_mul_saturate(exchanges, 2));
    }
    if (instances > plan->body.n || accesses > plan->n_uses) {
      return planc_error(PLANC_INVALID_PLAN,
                         "the jobs have at least %lld instances and %lld accesses, the body has %d "
                         "instructions and %d uses",
                         (long long)instances, (long long)accesses, plan->body.n, plan->n_uses);
    }
  }
  return NULL;
}

/* Accesses of an op: the distinct storages of its operands. `seen` is by storage, `mark` new for each op. */
static int64_t count_accesses(const planc_graph *graph, const planc_op *op, int32_t *seen, int32_t mark) {
  const int32_t *lists[] = {op->in, op->out, op->effects};
  const int32_t lengths[] = {op->n_in, op->n_out, op->n_effects};
  int64_t n = 0;
  for (int l = 0; l < 3; l++) {
    for (int32_t k = 0; k < lengths[l]; k++) {
      int32_t *at = &seen[graph->tensors[lists[l][k]].storage];
      n += *at != mark;
      *at = mark;
    }
  }
  return n;
}

/* Gradients that an op is the first to write. */
static int64_t count_gradients(const planc_graph *graph, const planc_op *op, int32_t *seen) {
  int64_t n = 0;
  for (int32_t k = 0; k < op->n_out; k++) {
    int32_t storage = graph->tensors[op->out[k]].storage;
    if (graph->storages[storage].kind != PLANC_KIND_grad || seen[storage]) continue;
    seen[storage] = -1;
    n++;
  }
  return n;
}

static planc_status measure_graph(const planc_plan *plan, const planc_graph *graph, graph_needs *out) {
  int32_t *seen = calloc((size_t)graph->n_storages + 1, sizeof *seen);
  if (!seen) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  *out = (graph_needs){0};
  for (int32_t o = 0; o < graph->n_ops && out->runs[0] + out->runs[1] <= plan->body.n; o++) {
    bool once = graph->ops[o].phase == PLANC_PHASE_optimizer;
    out->runs[once]++;
    if (!once) out->gradients += count_gradients(graph, &graph->ops[o], seen);
    out->uses[once] += count_accesses(graph, &graph->ops[o], seen, o + 1);
  }
  free(seen);
  if (out->runs[0] == 0) out->runs[0] = 1; /* a round takes time even if it is empty */
  return NULL;
}
