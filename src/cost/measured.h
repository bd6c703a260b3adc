/* Measured tables: times and workspaces of an op by algorithm and batch. Between two measured batches they are linear,
 * beyond the ends they go on from the last two; results are rounded up and never negative. */
#ifndef PLANC_COST_MEASURED_H
#define PLANC_COST_MEASURED_H

#include "cost/json.h"
#include "planc/cost.h"
#include "util/arena.h"
#include "util/map.h"

typedef struct planc_point {
  int64_t batch, time_ns, workspace_bytes, busy_ppm;
  int64_t spread_ns; /* median distance of the measurements from time_ns; 0 where it is not told */
} planc_point;

/* The exact workspace at a batch where the line between the points does not give it. */
typedef struct planc_measured_workspace {
  int64_t batch, bytes; /* -1: the algorithm does not run at this batch */
} planc_measured_workspace;

typedef struct planc_measured_variant {
  const char *algorithm;
  bool deterministic;
  bool predicted; /* its times are no measurements */
  int32_t n_points;
  const planc_point *points; /* by batch, ascending */
  int32_t n_workspaces;
  const planc_measured_workspace *workspaces; /* by batch, ascending */
  bool sampled; /* workspaces are known at the batches of points and `workspaces` only, not on the line between them */
} planc_measured_variant;

typedef struct planc_measured_op {
  const char *name;
  int32_t n_variants;
  const planc_measured_variant *variants;
} planc_measured_op;

typedef struct planc_measured {
  int32_t n_ops;
  const planc_measured_op *ops;
  planc_map by_name;
} planc_measured;

/* Reads the "ops" section into memory of `arena`. */
planc_status planc_measured_read(const planc_json *at, planc_arena *arena, planc_measured *out);
void planc_measured_free(planc_measured *measured);
/* The op's tables, or NULL when it was not measured. */
const planc_measured_op *planc_measured_find(const planc_measured *measured, const char *op);
/* The variant at `batch`; its workspace is -1 when it does not run there. Where workspaces are sampled it is not less
 * than at the next larger batch that is known: a library's is often a step function, which rounds up. From a single
 * point, the part of the time above `kernel_ns` and the workspace grow with the batch, unless the op does not depend on
 * it (`scales` is false). */
planc_variant planc_measured_at(const planc_measured_variant *variant, int64_t batch, bool scales, int64_t kernel_ns);
/* False when the workspace at `batch` is a guess, although the table tells more than a line about others. */
bool planc_measured_is_listed(const planc_measured_variant *variant, int64_t batch);

#endif
