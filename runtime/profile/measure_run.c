/* What a run costs beside its ops (measure.h): the host's time to launch them, and what copies take from them. */
#include <math.h>

#include "runtime/profile/iterations.h"
#include "runtime/stop.h"
#include "util/clock.h"

typedef struct bench {
  const rt_op_options *options;
  rt_iterations iterations;
  rt_resident *resident;
} bench;

static planc_status measure(bench *b, const rt_op_times *chosen, int64_t link_bytes_per_s, rt_run_costs *out);
static void tear_down(bench *b);
static planc_status set_up(bench *b, const rt_op_times *chosen);
static planc_status time_ops(bench *b, double *out_ns);
static planc_status time_launches(const bench *b, int64_t *out_ns);
static planc_status time_beside_copies(bench *b, int64_t link_bytes_per_s, double *out_ns);

planc_status rt_measure_run(const rt_op_options *options, const rt_op_times *chosen, int64_t link_bytes_per_s,
                            rt_run_costs *out) {
  bench b = {.options = options};
  *out = (rt_run_costs){0};
  planc_status status = measure(&b, chosen, link_bytes_per_s, out);
  tear_down(&b);
  return planc_context(status, "batch %lld", (long long)options->batch);
}

static planc_status measure(bench *b, const rt_op_times *chosen, int64_t link_bytes_per_s, rt_run_costs *out) {
  double alone, beside;
  PLANC_TRY(set_up(b, chosen));
  PLANC_TRY(time_ops(b, &alone));
  if (rt_is_stopped(b->options->stop)) return NULL;
  PLANC_TRY(time_launches(b, &out->launch_ns));
  PLANC_TRY(time_beside_copies(b, link_bytes_per_s, &beside));
  out->slowdown_ppm = beside > alone && alone > 0 ? llround(1e6 * (beside / alone - 1)) : 0;
  return NULL;
}

static planc_status set_up(bench *b, const rt_op_times *chosen) {
  rt_choice *choices;
  PLANC_TRY(rt_iterations_open(b->options, &b->iterations));
  const planc_trace *trace = b->iterations.session.trace;
  PLANC_TRY(PL_NEW(&b->iterations.session.memory, &choices, trace->n_instances));
  for (int32_t i = 0; i < trace->n_instances; i++)
    for (int64_t c = 0; c < chosen->len; c++) {
      const rt_variant *variant = &chosen->data[c].variant;
      if (chosen->data[c].op == trace->instances[i].op)
        choices[i] = (rt_choice){variant->algorithm, variant->workspace_bytes};
    }
  /* On the host, too, launching is then to put work into a stream's queue, as in a run. */
  rt_resident_options how = {.backend = b->options->backend,
                             .trace = trace,
                             .choices = choices,
                             .deterministic = b->options->deterministic,
                             .timed = true,
                             .streams = 2};
  PLANC_TRY(rt_resident_new(&how, &b->resident));
  return rt_iterations_load(&b->iterations, b->resident);
}

static void tear_down(bench *b) {
  rt_resident_free(b->resident);
  rt_iterations_close(&b->iterations);
}

/* Few at a time: nothing waits for a place in the queue. */
static planc_status launch_all(const bench *b, int64_t *out_ns) {
  enum { FEW = 64 };
  int32_t n = b->iterations.session.trace->n_instances;
  rt_launch launch = {.step = {.learning_rate = 0.0}};
  *out_ns = 0;
  for (int32_t first = 0; first < n; first += FEW) {
    int64_t begin = pl_now_ns();
    PLANC_TRY(rt_resident_enqueue(b->resident, first, n - first < FEW ? n - first : FEW, &launch, NULL, NULL));
    *out_ns += pl_now_ns() - begin;
    PLANC_TRY(rt_resident_synchronize(b->resident));
  }
  return NULL;
}

/* The mean over an iteration's ops; of iterations the median. */
static planc_status time_launches(const bench *b, int64_t *out_ns) {
  int32_t n = b->iterations.session.trace->n_instances, repetitions = b->options->repetitions;
  for (int32_t r = 0; r < repetitions; r++) PLANC_TRY(launch_all(b, &b->iterations.times[r]));
  *out_ns = rt_statistic_of(b->iterations.times, repetitions).median_ns / (n > 0 ? n : 1);
  return NULL;
}

/* What all ops of an iteration take; 0 when stopped. */
static planc_status time_ops(bench *b, double *out_ns) {
  bool whole;
  *out_ns = 0;
  PLANC_TRY(rt_iterations_time(&b->iterations, b->resident, &whole));
  for (int32_t i = 0; whole && i < b->iterations.session.trace->n_instances; i++)
    *out_ns += (double)rt_iterations_statistic(&b->iterations, i).median_ns;
  return NULL;
}

static planc_status time_beside_copies(bench *b, int64_t link_bytes_per_s, double *out_ns) {
  rt_background *copies[2] = {NULL, NULL};
  planc_status status = NULL;
  for (int d = 0; !status && d < 2; d++)
    status = rt_background_copy(b->options->backend, d == 0 ? RT_H2D : RT_D2H, link_bytes_per_s, &copies[d]);
  if (!status) status = time_ops(b, out_ns);
  for (int d = 0; d < 2; d++) {
    planc_status stopped = rt_background_stop(copies[d]);
    if (status)
      planc_status_free(stopped);
    else
      status = stopped;
  }
  return status;
}
