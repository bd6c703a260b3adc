/* A call: one op instance with everything it touches resolved to memory. What a plan, the reference and the inference
 * pass execute are all calls; what a backend launches is one. */
#ifndef PLANRT_CALL_H
#define PLANRT_CALL_H

#include "planc/trace.h"
#include "planrt/planrt.h"
#include "util/arena.h"

typedef struct rt_operand {
  void *data; /* NULL: a side effect that a recompute skips */
  planc_dtype dtype;
  int32_t rank;
  int64_t dims[PLANC_MAX_RANK];
  int64_t elements, bytes;
  int64_t offset;  /* within its buffer */
  bool accumulate; /* of an output: added to what is there (beta = 1) */
} rt_operand;

typedef struct rt_call {
  const planc_trace *trace;
  const planc_graph *graph;
  const planc_op *op;        /* its operand lists are those below, but for other roles than OP */
  int32_t replica, instance; /* whose call it is; 0 where the job trains alone */
  /* ACCUMULATE: in[0] is added to out[0]; EXCHANGE: out[0], which is in[replica], is the sum of in[]; all flat */
  planc_role role;
  int64_t batch, job_batch, sample_offset; /* samples of the round, of the whole iteration; the round's first */
  int32_t iteration, iterations;           /* within the period; per period */
  int32_t n_in, n_out, n_effects;
  rt_operand *in, *out, *effects;
  void **memory; /* of the instance's k-th access: its whole buffer; NULL: skipped */
  const char *algorithm;
  void *workspace;
  int64_t workspace_bytes;
  const void *handle; /* the backend's, set by its `prepare` */
} rt_call;

/* The most accesses that an instance has: room for `memory` below. */
int32_t rt_most_accesses(const planc_trace *trace);
/* Makes a replica's call of `instance` with the buffer of its k-th access at memory[k]. Workspace, algorithm and handle
 * are left to the caller. INTERNAL when an operand does not lie inside its buffer. */
planc_status rt_call_make(pl_arena *arena, const planc_trace *trace, int32_t replica, int32_t instance,
                          void *const *memory, rt_call *out);

/* What changes from one launch of a call to the next. */
typedef struct rt_launch {
  planrt_step step;     /* of the body the launch belongs to */
  const int64_t *ahead; /* by job: by how much its iterations are ahead of the step's; NULL: 0 of all */
  uint64_t seed;
  bool inference; /* running statistics, no dropout */
  bool
      measured; /* its own time is wanted, whatever it takes to launch it: it may be held back until more is enqueued */
} rt_launch;

/* The number of a call's job in its trace. */
static inline int32_t rt_call_job(const rt_call *call) {
  return call->trace->instances[call->instance].job;
}

/* By how much the iterations of a launch's job are ahead of its periods. */
static inline int64_t rt_launch_ahead(const rt_call *call, const rt_launch *launch) {
  return launch->ahead ? launch->ahead[rt_call_job(call)] : 0;
}

/* The iteration of its job that a launch belongs to, counted over all runs. */
static inline int64_t rt_iteration(const rt_call *call, const rt_launch *launch) {
  return launch->step.period * call->iterations + call->iteration + rt_launch_ahead(call, launch);
}

#endif
