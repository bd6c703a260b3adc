/* The rounds of Eq. 3 (moDNN, IV-A), for each budget one line: the sub-batch, 0 where no rounds will do.
 *
 *   eq3_rounds GRAPH PROFILE BATCH BUDGET...       budgets in bytes; a batch that is coupled may be split */
#include <stdio.h>
#include <stdlib.h>

#include "planc/cost.h"
#include "planc/graph.h"
#include "planner/choose/sub_batch.h"

static void ok(planc_status status) {
  if (!status) return;
  fprintf(stderr, "eq3_rounds: %s\n", planc_status_message(status));
  exit(1);
}

int main(int argc, char **argv) {
  if (argc < 5) return 2;
  planc_graph *graph;
  planc_profile *profile;
  const char *derived;
  ok(planc_graph_prepare(argv[1], NULL, false, &graph, &derived));
  ok(planc_profile_read(argv[2], &profile));
  planc_problem problem = {.job.graph = graph,
                           .job.profile = profile,
                           .job.batch = strtoll(argv[3], NULL, 10),
                           .terms.budgets[PLANC_MEMORY_HOST] = -1,
                           .job.split_batch_norm = true};
  for (int i = 4; i < argc; i++) {
    int64_t sub_batch = 0;
    problem.terms.budgets[PLANC_MEMORY_DEVICE] = strtoll(argv[i], NULL, 10);
    planc_status status = pl_sub_batch_select(&problem, &sub_batch);
    if (planc_status_code(status) != PLANC_INFEASIBLE) ok(status);
    planc_status_free(status);
    printf("%lld\n", (long long)sub_batch);
  }
  planc_profile_free(profile);
  planc_graph_free(graph);
  return 0;
}
