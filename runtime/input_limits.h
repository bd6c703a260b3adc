/* What values ops take of integer inputs. */
#ifndef PLANRT_INPUT_LIMITS_H
#define PLANRT_INPUT_LIMITS_H

#include "planc/graph.h"

/* Whether an op limits an integer input: labels have classes, ids of an embedding have entries. That input is tensor
 * *out_input, and its values are below *out_limit. */
bool rt_limits_input(const planc_graph *graph, const planc_op *op, int32_t *out_input, int64_t *out_limit);

#endif
