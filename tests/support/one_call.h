/* One op of planc-graph(5) as a call on the host backend, for tests of kernels. */
#ifndef PLANC_TESTS_ONE_CALL_H
#define PLANC_TESTS_ONE_CALL_H

#include "runtime/backend.h"

enum { ONE_CALL_MAX_ACCESSES = 16 };

typedef struct one_call {
  planc_graph *graph;
  planc_trace *trace;
  pl_arena arena;
  rt_device *device;
  void *memory[ONE_CALL_MAX_ACCESSES]; /* by access, of exactly the buffer's bytes, zeroed */
  rt_call call;
} one_call;

/* Makes the call of the only op of a graph given by `tensors` ("x: input f32[N,3]", one a line) and `op` ("type: relu,
 * in: [x], out: [y]") at a batch. `layout` is "NCHW" or "NHWC". Fails the test on any error. */
void one_call_open(one_call *one, const char *layout, const char *tensors, const char *op, int64_t batch,
                   bool synthetic);
void one_call_close(one_call *one);

/* A launch of iteration 0 with seed 7. */
rt_launch one_call_launch(void);
void one_call_run(one_call *one, const rt_launch *launch);

/* Fills an f32 operand with numbers uniform in [low, high). */
void one_call_fill(const rt_operand *operand, uint64_t seed, float low, float high);

#endif
