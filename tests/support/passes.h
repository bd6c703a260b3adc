/* What tests measure: a small network, and the passes over its ops that measuring gives out. */
#ifndef TESTS_SUPPORT_PASSES_H
#define TESTS_SUPPORT_PASSES_H

#include "runtime/profile/measure.h"

typedef struct passes {
  rt_op_times times; /* of all */
  int32_t n, first, of;
} passes;

/* A convolution, its activation, pooling, a linear layer and a loss, with training by SGD. */
planc_graph *passes_graph(void);
/* What the host has for every op, with whatever times. */
void passes_list(const planc_graph *graph, int64_t batch, rt_op_times *out);
/* Measuring at batch 4, each op twice; passes are added to `into` in their order. */
rt_op_options passes_options(const planrt_backend *backend, const planc_graph *graph, passes *into);

#endif
