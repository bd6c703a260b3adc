/* Iterations of a graph with everything resident, run back to back and timed op by op. */
#ifndef PLANRT_ITERATIONS_H
#define PLANRT_ITERATIONS_H

#include "runtime/profile/measure.h"
#include "runtime/session.h"

typedef struct rt_iterations {
  const rt_op_options *options;
  planrt_session session; /* trace, homes and samples: enough for a resident executor */
  rt_span *spans;         /* [repetition][instance] */
  int64_t *times;         /* [instance][repetition] */
  bool *slow;             /* by instance: timed once only */
  /* Told of each op where ops run apart, and with -1 before they run back to back. Or NULL: they never run apart. */
  planc_status (*before)(void *user, int32_t instance);
  void *user;
  bool apart; /* every iteration, not only the first one */
} rt_iterations;

/* To be closed after a failure too. */
planc_status rt_iterations_open(const rt_op_options *options, rt_iterations *out);
void rt_iterations_close(rt_iterations *iterations);

/* Brings parameters and samples to a resident executor of the trace: once, iterations find them there. */
planc_status rt_iterations_load(const rt_iterations *iterations, rt_resident *resident);
/* Runs iterations for as long as the options say, one at least, and behind them without a pause those that are timed.
 * With `before` the very first has its ops apart, each over before the next begins: what fails is then known. An op
 * that took long in it runs once more only, in the last that is timed: others are not to wait for an algorithm of no
 * use. *out_whole is false when it was stopped: then nothing has been measured. */
planc_status rt_iterations_time(rt_iterations *iterations, rt_resident *resident, bool *out_whole);
/* Of what was timed last; once only. */
rt_statistic rt_iterations_statistic(const rt_iterations *iterations, int32_t instance);

#endif
