/* The order: what runs, one after the other. A place in it, a position, is a time: what is asked about times (when data
 * is first and last accessed, what lies between two accesses, what is live) is asked over an order.
 *
 * The trace's own order runs every instance once, at the position of its number; whoever keeps to it may take the one
 * for the other (planc_order_is_of_trace). Another one may run instances in another order, and again to restore what
 * they made. */
#ifndef PLANC_ORDER_H
#define PLANC_ORDER_H

#include <stdbool.h>

#include "planc/schedule.h"
#include "planc/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct planc_order_run {
  int32_t instance;
  bool recompute; /* it has run before, and restores what it made */
} planc_order_run;

/* What a run does with one buffer. */
typedef struct planc_order_use {
  int32_t position;
  int32_t access; /* of the trace */
} planc_order_use;

typedef struct planc_order {
  const planc_trace *trace; /* borrowed */
  int32_t n;
  const planc_order_run *runs; /* by position */
  const int32_t *first;        /* by instance: the position of its first run, -1 = it never runs */
  /* Uses of buffer b, from first to last: uses[first_use[b]] up to, not including, uses[first_use[b + 1]]. Side effects
   * that a recompute skips are not among them. */
  const int32_t *first_use;
  const planc_order_use *uses;
} planc_order;

planc_status planc_order_of_trace(const planc_trace *trace, planc_order **out);
/* Every instance once, in the order of these n_instances numbers. BAD_INPUT where they are not those of all instances,
 * or one would meet another version of a buffer than in the trace. */
planc_status planc_order_of_instances(const planc_trace *trace, const int32_t *numbers, planc_order **out);
/* What the commands of a whole schedule run, recomputes included. */
planc_status planc_order_of_schedule(const planc_schedule *schedule, planc_order **out);
void planc_order_free(planc_order *order);
/* Whether it is the trace's own, so that the numbers of instances are positions. */
bool planc_order_is_of_trace(const planc_order *order);

/* Position of a buffer's first use and of its last one, -1 where it has none. */
static inline int32_t planc_order_first(const planc_order *order, int32_t buffer) {
  int32_t use = order->first_use[buffer];
  return use < order->first_use[buffer + 1] ? order->uses[use].position : -1;
}
static inline int32_t planc_order_last(const planc_order *order, int32_t buffer) {
  int32_t end = order->first_use[buffer + 1];
  return order->first_use[buffer] < end ? order->uses[end - 1].position : -1;
}
/* A buffer's first use at a position or behind it; first_use[buffer + 1] where it has none. */
int32_t planc_order_use_from(const planc_order *order, int32_t buffer, int32_t position);
static inline const planc_access *planc_order_access(const planc_order *order, int32_t use) {
  return &order->trace->accesses[order->uses[use].access];
}
/* What runs at a position, and the phase that it is of. */
static inline const planc_instance *planc_order_instance(const planc_order *order, int32_t position) {
  return &order->trace->instances[order->runs[position].instance];
}
static inline planc_phase planc_order_phase(const planc_order *order, int32_t position) {
  return planc_trace_phase(order->trace, order->runs[position].instance);
}

#ifdef __cplusplus
}
#endif

#endif
