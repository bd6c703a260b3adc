/* The rows of a plan that hold its tables: device, memories, links, predictions, jobs, streams, algorithms, boundary,
 * mappings. What is read is within the counts that `plan` states already; whether the rows of a table go together is
 * for their reader to say. */
#ifndef PLANC_PLAN_TABLE_ROWS_H
#define PLANC_PLAN_TABLE_ROWS_H

#include "plan/row.h"
#include "planc/plan.h"
#include "util/emit.h"

void pl_device_emit(pl_emit *emit, const planc_plan_device *device);
planc_status pl_device_read(pl_row *row, planc_plan_device *out);

void pl_memory_emit(pl_emit *emit, const planc_memory *memory);
/* Memory `m` of the plan, whose mappings begin at `first_mapping`. */
planc_status pl_memory_read(pl_row *row, const planc_plan *plan, int32_t m, int32_t first_mapping, planc_memory *out);

void pl_link_emit(pl_emit *emit, const planc_plan_link *link);
planc_status pl_link_read(pl_row *row, const planc_plan *plan, planc_plan_link *out);

/* Of all jobs together. */
void pl_predictions_emit(pl_emit *emit, const planc_predictions *predicted);
planc_status pl_predictions_read(pl_row *row, planc_predictions *out);

/* `graph` is the number of the job's graph, of which reading takes one of the first n_graphs. What `of_all` says no job
 * has of its own. */
void pl_job_emit(pl_emit *emit, const planc_job *job, int32_t graph, const planc_job_predictions *predicted);
planc_status pl_job_read(pl_row *row, planc_graph *const *graphs, int32_t n_graphs, const planc_settings *of_all,
                         int32_t *out_graph, planc_job *out, planc_job_predictions *out_predicted);

void pl_stream_emit(pl_emit *emit, const planc_stream *stream);
planc_status pl_stream_read(pl_row *row, const planc_plan *plan, planc_stream *out);

void pl_algorithm_emit(pl_emit *emit, const char *algorithm);
planc_status pl_algorithm_read(pl_row *row, const char **out);

void pl_boundary_emit(pl_emit *emit, const planc_boundary *boundary);
planc_status pl_boundary_read(pl_row *row, const planc_plan *plan, planc_boundary *out);

void pl_mapping_emit(pl_emit *emit, const planc_mapping *mapping);
planc_status pl_mapping_read(pl_row *row, planc_mapping *out);

#endif
