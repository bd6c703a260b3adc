/* The rows of a plan that hold a graph: a row for the graph itself, then one for each tensor and each op. */
#ifndef PLANC_PLAN_GRAPH_ROWS_H
#define PLANC_PLAN_GRAPH_ROWS_H

#include "plan/row.h"
#include "planc/graph.h"
#include "util/emit.h"

/* Rows that graphs still may take, from the header; reading takes what it uses. */
typedef struct pl_graph_budget {
  int32_t tensors, ops;
} pl_graph_budget;

void pl_graph_rows_emit(pl_emit *emit, const planc_graph *graph);
planc_status pl_graph_rows_read(pl_row *row, pl_graph_budget *budget, planc_graph **out);

#endif
