/* Measured tables: times and workspaces of an op by algorithm and batch. Between two measured batches they are linear,
 * beyond the ends they go on from the last two; results are rounded up and never negative. */
#ifndef PLANC_COST_MEASURED_H
#define PLANC_COST_MEASURED_H

#include "cost/json.h"
#include "planc/cost.h"
#include "util/arena.h"
#include "util/map.h"

typedef struct pl_point {
  int64_t batch, time_ns, workspace_bytes, busy_ppm;
  int64_t spread_ns;   /* median distance of the measurements from time_ns; 0 where it is not told */
  int64_t scaled_from; /* the batch whose time and workspace these are, in proportion; 0: they are the point's own */
} pl_point;

/* The exact workspace at a batch where the line between the points does not give it. */
typedef struct pl_measured_workspace {
  int64_t batch, bytes; /* -1: the algorithm does not run at this batch */
} pl_measured_workspace;

typedef struct pl_measured_variant {
  const char *algorithm;
  bool deterministic;
  bool predicted; /* its times are no measurements */
  int32_t n_points;
  const pl_point *points; /* by batch, ascending */
  int32_t n_workspaces;
  const pl_measured_workspace *workspaces; /* by batch, ascending */
  bool sampled; /* workspaces are known at the batches of points of their own and `workspaces` only, not on the line */
} pl_measured_variant;

typedef struct pl_measured_op {
  const char *name;
  int32_t n_variants;
  const pl_measured_variant *variants;
} pl_measured_op;

typedef struct pl_measured {
  int32_t n_ops;
  const pl_measured_op *ops;
  pl_map by_name;
} pl_measured;

/* Reads the "ops" section into memory of `arena`. */
planc_status pl_measured_read(const pl_json *at, pl_arena *arena, pl_measured *out);
void pl_measured_free(pl_measured *measured);
/* The op's tables, or NULL when it was not measured. */
const pl_measured_op *pl_measured_find(const pl_measured *measured, const char *op);
/* The variant at `batch`; its workspace is -1 when it does not run there. Where workspaces are sampled it is not less
 * than at the next larger batch that is known: a library's is often a step function, which rounds up. From a single
 * point, the part of the time above `kernel_ns` and the workspace grow with the batch, unless the op does not depend on
 * it (`scales` is false). */
planc_variant pl_measured_at(const pl_measured_variant *variant, int64_t batch, bool scales, int64_t kernel_ns);
/* False when the workspace at `batch` is a guess, although the table tells more than a line about others. */
bool pl_measured_is_listed(const pl_measured_variant *variant, int64_t batch);

#endif
