/* Peaks, and sums of a plan's body (derived.h). */
#include "plan/derived.h"

#include "cost/routes.h"
#include "plan/memories.h"
#include "util/math.h"

planc_status pl_plan_derive(planc_plan *plan) {
  pl_arena scratch = {0};
  pl_acquired *acquired;
  pl_plan_find_peaks(plan);
  planc_status status = pl_plan_acquired(plan, &scratch, &acquired);
  if (!status) pl_plan_count_body(plan, acquired, plan->predicted.jobs);
  pl_arena_free(&scratch);
  return status;
}

void pl_plan_find_peaks(planc_plan *plan) {
  for (int32_t kind = 0; kind < PLANC_N_MEMORY_KINDS; kind++)
    plan->predicted.peak_bytes[kind] = pl_plan_peak(plan, (planc_memory_kind)kind);
}

static void clear(planc_job_predictions *job);
static int32_t job_of(const planc_plan *plan, const planc_instr *instr);
static void count_copy(const planc_plan *plan, const pl_acquired *acquired, const planc_instr *copy,
                       planc_job_predictions *job);
static void scale(planc_job_predictions *job, int32_t replicas, int32_t gpus);

void pl_plan_count_body(const planc_plan *plan, const pl_acquired *acquired, planc_job_predictions *jobs) {
  int32_t replicas = planc_plan_replicas(plan), gpus = planc_plan_gpus(plan);
  for (int32_t j = 0; j < plan->n_jobs; j++) clear(&jobs[j]);
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    int32_t j = job_of(plan, instr);
    if (j < 0) continue;
    if (instr->op == PLANC_INSTR_copy) {
      count_copy(plan, acquired, instr, &jobs[j]);
    } else if (instr->recompute) {
      jobs[j].recompute_ns = pl_add_saturate(jobs[j].recompute_ns, instr->time_ns);
    }
  }
  for (int32_t j = 0; j < plan->n_jobs; j++) scale(&jobs[j], replicas, gpus);
}

/* --- The body ----------------------------------------------------------------------------------------------------- */

/* The job of an instruction's stream; -1 = it has none. */
static int32_t job_of(const planc_plan *plan, const planc_instr *instr) {
  bool queued = instr->op == PLANC_INSTR_exec || instr->op == PLANC_INSTR_copy;
  if (!queued || instr->stream < 0 || instr->stream >= plan->n_streams) return -1;
  int32_t job = plan->streams[instr->stream].job;
  return job < plan->n_jobs ? job : -1;
}

/* What stays in its memory crosses no link. */
static void count_copy(const planc_plan *plan, const pl_acquired *acquired, const planc_instr *copy,
                       planc_job_predictions *job) {
  if (pl_memory_of_side(plan, acquired, copy->aux) == pl_memory_of_side(plan, acquired, copy->id)) return;
  int64_t bytes = pl_mul_saturate(copy->bytes, copy->peers ? planc_plan_replicas(plan) - 1 : 1);
  for (int r = 0; r < PLANC_N_ROUTES; r++) {
    int32_t end = pl_routes[r].arrives ? copy->id : copy->aux;
    if (!pl_side_is_in(plan, acquired, end, pl_routes[r].memory)) continue;
    job->copied_bytes[r] = pl_add_saturate(job->copied_bytes[r], bytes);
  }
}

static void clear(planc_job_predictions *job) {
  for (int r = 0; r < PLANC_N_ROUTES; r++) job->copied_bytes[r] = 0;
  job->recompute_ns = 0;
}

/* What all replicas copy, and one GPU recomputes. */
static void scale(planc_job_predictions *job, int32_t replicas, int32_t gpus) {
  for (int r = 0; r < PLANC_N_ROUTES; r++) job->copied_bytes[r] = pl_mul_saturate(job->copied_bytes[r], replicas);
  if (gpus > 1) job->recompute_ns /= gpus;
}

/* --- All jobs ----------------------------------------------------------------------------------------------------- */

/* What a file can say, as each of the parts. */
static int64_t add_exact(int64_t a, int64_t b) {
  int64_t sum = pl_add_saturate(a, b);
  return sum < PL_EXACT_MAX ? sum : PL_EXACT_MAX;
}

planc_job_predictions planc_plan_predicted_total(const planc_plan *plan) {
  planc_job_predictions total = {0};
  for (int32_t j = 0; j < plan->n_jobs; j++) {
    const planc_job_predictions *job = &plan->predicted.jobs[j];
    total.ideal_ns = add_exact(total.ideal_ns, job->ideal_ns);
    total.busy_ns = add_exact(total.busy_ns, job->busy_ns);
    total.stall_ns = add_exact(total.stall_ns, job->stall_ns);
    for (int r = 0; r < PLANC_N_ROUTES; r++)
      total.copied_bytes[r] = add_exact(total.copied_bytes[r], job->copied_bytes[r]);
    total.recompute_ns = add_exact(total.recompute_ns, job->recompute_ns);
  }
  return total;
}
