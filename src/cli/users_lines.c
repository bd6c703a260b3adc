/* The user's line of ops and data by their names in what is printed. */
#include "cli/users_lines.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

/* The graph that a name is of, which is moved behind "job N: ". */
static const planc_graph *graph_of(const planc_plan *plan, const char **name) {
  static const char job[] = "job ";
  char *end;
  if (plan->n_jobs == 1) return plan->jobs[0].graph;
  if (strncmp(*name, job, strlen(job)) != 0) return NULL;
  long number = strtol(*name + strlen(job), &end, 10);
  if (number < 0 || number >= plan->n_jobs || strncmp(end, ": ", 2) != 0) return NULL;
  *name = end + 2;
  return plan->jobs[number].graph;
}

const char *cli_op_place(const planc_plan *plan, const char *name, char text[PL_PLACE_TEXT]) {
  const planc_graph *graph = graph_of(plan, &name);
  *text = 0;
  return graph ? pl_op_place_by_name(graph, name, text) : text;
}

static bool makes(const planc_graph *graph, const planc_op *op, int32_t storage) {
  for (int32_t k = 0; k < op->n_out; k++)
    if (graph->tensors[op->out[k]].storage == storage) return true;
  return false;
}

const char *cli_data_place(const planc_plan *plan, const char *name, char text[PL_PLACE_TEXT]) {
  const planc_graph *graph = graph_of(plan, &name);
  int32_t t = 0;
  *text = 0;
  if (!graph) return text;
  while (t < graph->n_tensors && strcmp(graph->tensors[t].name, name) != 0) t++;
  if (t == graph->n_tensors) return text;
  int32_t storage = graph->tensors[t].storage;
  planc_kind kind = graph->storages[storage].kind;
  if (kind == PLANC_KIND_param || kind == PLANC_KIND_state) return text;
  for (int32_t o = 0; o < graph->n_ops; o++)
    if (makes(graph, &graph->ops[o], storage)) return pl_op_place(&graph->ops[o], text);
  return text;
}

void cli_note_base(const planc_graph *graph) {
  char text[PL_PLACE_TEXT];
  if (graph->n_ops > 0 && *pl_op_place(&graph->ops[graph->n_ops - 1], text))
    cli_note(
        "percentages are over ideal, in which no op waits for its launch; those of planc torch over the step as it is");
}
