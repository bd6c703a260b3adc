/* Latencies of a plan's ops and copies, before and after a run (latencies.h). */
#include "planner/measured/latencies.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plan/describe.h"
#include "plan/plan_trace.h"
#include "planner/analysis/plan_streams.h"
#include "util/math.h"

static planc_status take_all(const planc_update_options *options, const planc_trace *trace, const pl_acquired *acquired,
                             const int64_t *times_ns, pl_latency_tables *out);
static void join(pl_latencies *l);
static planc_latency_sum sum_of(int64_t old_ns, int64_t measured_ns, int64_t weight_ppm);
static planc_status take_exec(const planc_plan *plan, const planc_trace *trace, const planc_instr *instr,
                              const planc_latency_sum *sum, pl_latency_tables *out);

planc_status pl_latencies_find(const planc_update_options *options, const pl_acquired *acquired,
                               const int64_t *times_ns, pl_latency_tables *out) {
  planc_trace *trace;
  int32_t n_jobs = options->plan->n_jobs;
  for (int32_t j = 0; j < n_jobs; j++) out->tables[out->table_of[j]].least_ns = INT64_MAX;
  PLANC_TRY(pl_plan_expand(options->plan, &trace));
  planc_status status = take_all(options, trace, acquired, times_ns, out);
  planc_trace_free(trace);
  if (status) return status;
  for (int32_t j = 0, joined = 0; j < n_jobs; j++)
    if (out->table_of[j] == joined) join(&out->tables[joined++]);
  return NULL;
}

int64_t pl_copy_ns(const planc_plan *plan, const planc_link *link, const planc_instr *copy) {
  return pl_mul_saturate(planc_link_ns(link, copy->bytes), copy->peers ? planc_plan_replicas(plan) - 1 : 1);
}

static planc_status take_all(const planc_update_options *options, const planc_trace *trace, const pl_acquired *acquired,
                             const int64_t *times_ns, pl_latency_tables *out) {
  const planc_plan *plan = options->plan;
  planc_device device = pl_plan_describe(plan);
  for (int32_t k = 0; k < options->timeline->n_timed; k++) {
    const planc_instr *instr = &plan->body.instrs[options->timeline->instrs[k]];
    planc_route route = pl_instr_route(plan, acquired, instr);
    if (route < PLANC_N_ROUTES) {
      int64_t old_ns = pl_copy_ns(plan, &device.links[route], instr);
      planc_latency_sum sum = sum_of(old_ns, times_ns[k], options->weight_ppm);
      pl_latency_sum_add(&out->copies[route], &sum);
    } else if (instr->op == PLANC_INSTR_exec) {
      planc_latency_sum sum = sum_of(instr->time_ns, times_ns[k], options->weight_ppm);
      PLANC_TRY(
          planc_context(take_exec(plan, trace, instr, &sum, out), "body[%" PRId32 "]", options->timeline->instrs[k]));
    }
  }
  return NULL;
}

void pl_latencies_free(pl_latencies *latencies) {
  VEC_FREE(&latencies->ops);
}

/* The exponentially weighted moving average, rounded to the nearest. */
static int64_t weigh(int64_t measured_ns, int64_t old_ns, int64_t weight_ppm) {
  pl_wide sum = (pl_wide)measured_ns * (pl_wide)weight_ppm + (pl_wide)old_ns * (pl_wide)(PL_PPM - weight_ppm);
  return (int64_t)((sum + PL_PPM / 2) / PL_PPM);
}

void pl_latency_sum_add(planc_latency_sum *to, const planc_latency_sum *what) {
  to->count += what->count;
  to->old_ns = pl_add_saturate(to->old_ns, what->old_ns);
  to->measured_ns = pl_add_saturate(to->measured_ns, what->measured_ns);
  to->new_ns = pl_add_saturate(to->new_ns, what->new_ns);
}

static planc_latency_sum sum_of(int64_t old_ns, int64_t measured_ns, int64_t weight_ppm) {
  return (planc_latency_sum){1, old_ns, measured_ns, weigh(measured_ns, old_ns, weight_ppm)};
}

/* --- Instructions ------------------------------------------------------------------------------------------------- */

static void note_least(int64_t ns, pl_latencies *out) {
  if (ns < out->least_ns) out->least_ns = ns;
}

static void take_add(const planc_trace *trace, const planc_instance *instance, const planc_latency_sum *sum,
                     pl_latencies *out) {
  int32_t others = planc_trace_replicas(trace) - 1;
  int64_t n = instance->role == PLANC_ROLE_EXCHANGE && others > 1 ? others : 1;
  const planc_access *access = &trace->accesses[instance->first_access];
  out->n_adds += n;
  out->add_bytes = pl_add_saturate(out->add_bytes, pl_mul_saturate(trace->buffers[access->buffer].bytes, n));
  pl_latency_sum_add(&out->adds, sum);
  note_least(sum->new_ns / n, out);
}

static planc_status take_exec(const planc_plan *plan, const planc_trace *trace, const planc_instr *instr,
                              const planc_latency_sum *sum, pl_latency_tables *out) {
  if (instr->id < 0 || instr->id >= trace->n_instances || instr->aux < 0 || instr->aux >= plan->n_algorithms)
    return planc_error(PLANC_INVALID_PLAN, "there is no instance %" PRId32 ", or no algorithm %" PRId32, instr->id,
                       instr->aux);
  const planc_instance *instance = &trace->instances[instr->id];
  pl_latencies *table = &out->tables[out->table_of[instance->job]];
  pl_latency_sum_add(&out->jobs[instance->job], sum);
  pl_latency_sum_add(&table->all, sum);
  if (instance->role != PLANC_ROLE_OP) {
    take_add(trace, instance, sum, table);
    return NULL;
  }
  note_least(sum->new_ns, table);
  pl_latency latency = {.op = instance->op,
                        .algorithm = plan->algorithms[instr->aux],
                        .batch = instance->batch,
                        .sum = *sum,
                        .workspace_bytes = instr->bytes,
                        .busy_ppm = instr->busy_ppm};
  VEC_PUSH(&table->ops, latency);
  return NULL;
}

/* --- What is measured of the same --------------------------------------------------------------------------------- */

static int by_key(const void *left, const void *right) {
  const pl_latency *a = left, *b = right;
  if (a->op != b->op) return a->op < b->op ? -1 : 1;
  int order = strcmp(a->algorithm, b->algorithm);
  return order ? order : (a->batch > b->batch) - (a->batch < b->batch);
}

/* Rounds, iterations and recomputes of the same become one. */
static void join(pl_latencies *l) {
  int64_t n = 0;
  if (l->ops.len > 0) qsort(l->ops.data, (size_t)l->ops.len, sizeof *l->ops.data, by_key);
  for (int64_t i = 0; i < l->ops.len; i++) {
    const pl_latency *next = &l->ops.data[i];
    if (n == 0 || by_key(&l->ops.data[n - 1], next) != 0) {
      l->ops.data[n++] = *next;
      continue;
    }
    pl_latency *last = &l->ops.data[n - 1];
    pl_latency_sum_add(&last->sum, &next->sum);
    if (next->workspace_bytes > last->workspace_bytes) last->workspace_bytes = next->workspace_bytes;
    if (next->busy_ppm > last->busy_ppm) last->busy_ppm = next->busy_ppm;
  }
  l->ops.len = n;
  for (int64_t i = 0; i < n; i++) {
    pl_latency *latency = &l->ops.data[i];
    latency->new_ns = pl_add_saturate(latency->sum.new_ns, latency->sum.count / 2) / latency->sum.count;
  }
}
