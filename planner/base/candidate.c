/* What every policy starts from: the trace and the costs of rounds, and a schedule over the problem's memories. */
#include "planc/candidate.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/base/memory_table.h"

static planc_status check_length(const planc_problem *problem, int64_t sub_batch, int64_t n_rounds);
static planc_status expand_rounds(const planc_problem *problem, int64_t sub_batch, int64_t *rounds, int32_t n_rounds,
                                  planc_candidate *out);

planc_status planc_candidate_rounds(const planc_problem *problem, int64_t sub_batch, planc_candidate *out) {
  if (sub_batch < 1 || sub_batch > problem->job.batch) {
    return planc_error(PLANC_USAGE, "a sub-batch of %lld does not divide a batch of %lld into rounds",
                       (long long)sub_batch, (long long)problem->job.batch);
  }
  bool parted = sub_batch < problem->job.batch || problem->terms.gpus > 1;
  if (parted && planc_graph_is_batch_coupled(problem->job.graph) && !problem->job.split_batch_norm) {
    return planc_refusal(PLANC_USAGE, PLANC_REMEDY_SPLIT_BATCH_NORM,
                         "graph %s has ops that couple the samples of a batch (batch normalisation): running it in %s "
                         "changes its results",
                         problem->job.graph->name, problem->terms.gpus > 1 ? "parts on several GPUs" : "sub-batches");
  }
  int64_t n_rounds = (problem->job.batch - 1) / sub_batch + 1;
  PLANC_TRY(check_length(problem, sub_batch, n_rounds));
  int64_t *rounds = malloc((size_t)n_rounds * sizeof *rounds);
  if (!rounds) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  out->sub_batch = sub_batch;
  planc_status status = expand_rounds(problem, sub_batch, rounds, (int32_t)n_rounds, out);
  free(rounds);
  return status;
}

/* MAX_INSTANCES: more than any plan file holds. MAX_CHOSEN: the limit where a policy chooses rounds, since it makes
 * many traces. */
enum { MAX_INSTANCES = 16 << 20, MAX_CHOSEN = 1 << 18 };

int32_t planc_most_instances(const planc_problem *problem) {
  return problem->job.sub_batch ? MAX_INSTANCES : MAX_CHOSEN;
}

/* Rounds that the user asked for are his mistake; those of a policy come from a budget that allows no larger ones. */
static planc_status check_length(const planc_problem *problem, int64_t sub_batch, int64_t n_rounds) {
  int32_t most = planc_most_instances(problem);
  if (n_rounds <= most / problem->job.graph->n_ops || n_rounds == 1) return NULL;
  return planc_error(problem->job.sub_batch ? PLANC_USAGE : PLANC_INFEASIBLE,
                     "sub-batches of %lld make %lld rounds of %d ops, which are more than %d op instances",
                     (long long)sub_batch, (long long)n_rounds, problem->job.graph->n_ops, most);
}

static planc_status make_costs(const planc_problem *problem, const planc_job *job, planc_candidate *out) {
  const int64_t batches[] = {job->rounds[0], job->rounds[job->n_rounds - 1], job->batch};
  planc_costs *costs;
  out->costs = calloc(1, sizeof *out->costs);
  if (!out->costs) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  PLANC_TRY(planc_costs_make(problem->job.profile, job->graph, 3, batches, &costs));
  out->costs[0] = costs;
  return NULL;
}

static planc_status expand_rounds(const planc_problem *problem, int64_t sub_batch, int64_t *rounds, int32_t n_rounds,
                                  planc_candidate *out) {
  for (int32_t r = 0; r < n_rounds; r++) rounds[r] = sub_batch;
  rounds[n_rounds - 1] = problem->job.batch - sub_batch * (n_rounds - 1);
  planc_job job = {.graph = problem->job.graph,
                   .batch = problem->job.batch,
                   .n_rounds = n_rounds,
                   .rounds = rounds,
                   .iterations = 1};
  job.replicas = problem->terms.gpus;
  job.priority = problem->job.priority;
  PLANC_TRY(planc_expand(&job, 1, &out->trace));
  PLANC_TRY(planc_order_of_trace(out->trace, &out->order));
  return make_costs(problem, &job, out);
}

/* --- Beside the rounds -------------------------------------------------------------------------------------------- */

void planc_candidate_free(planc_candidate *candidate) {
  free(candidate->explanation);
  planc_schedule_free(candidate->schedule);
  for (int32_t j = 0; candidate->costs && j < candidate->trace->n_jobs; j++)
    planc_costs_free((planc_costs *)candidate->costs[j]);
  free(candidate->costs);
  planc_order_free(candidate->order);
  planc_trace_free(candidate->trace);
  *candidate = (planc_candidate){0};
}

planc_status planc_candidate_explain(planc_candidate *candidate, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int length = vsnprintf(NULL, 0, format, args);
  va_end(args);
  size_t said = candidate->explanation ? strlen(candidate->explanation) : 0;
  char *text = length < 0 ? NULL : realloc(candidate->explanation, said + sizeof "; " + (size_t)length);
  if (!text) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  candidate->explanation = text;
  if (said > 0) said += (size_t)sprintf(text + said, "; ");
  va_start(args, format);
  (void)vsnprintf(text + said, (size_t)length + 1, format, args);
  va_end(args);
  return NULL;
}

planc_status planc_candidate_schedule(const planc_problem *problem, planc_candidate *candidate) {
  pl_memories memories = pl_memories_of(&problem->terms, problem->job.profile);
  planc_schedule_free(candidate->schedule);
  return planc_schedule_new(candidate->trace, candidate->costs, memories.rows, memories.n, &candidate->schedule);
}
