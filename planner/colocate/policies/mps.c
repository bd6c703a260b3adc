/* `mps`: what NVIDIA's Multi-Process Service with unified memory would do (papers/000, 7.1, and papers/003, 5.1, where
 * it is a baseline). There is no plan: each job is a process with a memory pool of its own, as large as the job needs
 * alone without swapping. As long as the pools fit, the jobs run side by side. Beyond that, pages migrate on demand: of
 * all bytes that ops touch, the part that is not on the device is the part of the pools that has no room there, and ops
 * wait while those bytes come over the link, at the part of its rate that paging reaches (planc_device.paging_ppm).
 * What the device reserves is no pool and never migrates. No paper gives a model; this one is ours. */
#include "planner/colocate/jobs/by_time.h"
#include "planner/colocate/jobs/in_job.h"
#include "planner/colocate/jobs/solo.h"
#include "planner/colocate/policies/mix_policies.h"
#include "util/math.h"
#include "util/size.h"

typedef struct processes {
  const planc_mix_evaluator *evaluator;
  const planc_mix *mix;
  const planc_mix_share *shares;
  pl_arena arena;
  pl_solos solos;
  planc_problem *problems;
  int32_t *iterations;
  int64_t pools_bytes, touched_bytes; /* of all jobs; in a period */
} processes;

/* More than any pool, and not too much for a plan. */
#define NO_BUDGET (INT64_C(1) << 50)

static planc_status estimate(processes *p, planc_mix_estimate *out);
static planc_status make_solos(processes *p);
static planc_status add_pools(processes *p);
static planc_status time_together(processes *p, int64_t *out_ns);
static planc_status migrate(processes *p, planc_mix_estimate *out);

planc_status pl_mix_mps(const planc_mix_evaluator *evaluator, const planc_mix_share *shares, planc_mix_estimate *out) {
  processes p = {.evaluator = evaluator, .mix = evaluator->mix, .shares = shares};
  planc_status status = estimate(&p, out);
  pl_solos_free(&p.solos);
  pl_arena_free(&p.arena);
  return status;
}

static planc_status estimate(processes *p, planc_mix_estimate *out) {
  PLANC_TRY(make_solos(p));
  PLANC_TRY(add_pools(p));
  PLANC_TRY(time_together(p, &out->period_ns));
  return migrate(p, out);
}

static planc_status make_solos(processes *p) {
  int32_t n = p->mix->n_jobs, failed;
  PLANC_TRY(PL_NEW(&p->arena, &p->problems, n));
  PLANC_TRY(PL_NEW(&p->arena, &p->iterations, n));
  for (int32_t j = 0; j < n; j++) {
    p->problems[j] = planc_mix_problem(p->mix, j);
    p->problems[j].terms.budgets[PLANC_MEMORY_DEVICE] = NO_BUDGET;
    p->problems[j].terms.budgets[PLANC_MEMORY_HOST] = -1;
    p->iterations[j] = p->shares[j].iterations;
  }
  planc_status status = pl_solos_make(p->evaluator, p->problems, planc_policy_find("none"), &p->solos, &failed);
  return status ? pl_in_job(p->mix, failed, status) : NULL;
}

/* --- Memory ------------------------------------------------------------------------------------------------------- */

static int64_t touched_by(const planc_trace *trace) {
  int64_t sum = 0;
  for (int32_t a = 0; a < trace->n_accesses; a++)
    sum = pl_add_saturate(sum, trace->buffers[trace->accesses[a].buffer].bytes);
  return sum;
}

/* What is reserved is there once: the service has one context for all. */
static planc_status add_pools(processes *p) {
  int64_t reserved = planc_mix_device(p->mix)->reserved_bytes, peak;
  for (int32_t j = 0; j < p->mix->n_jobs; j++) {
    const planc_evaluator alone = p->evaluator->alone(p->evaluator, &p->problems[j]);
    PLANC_TRY(alone.peak(&alone, &p->solos.candidates[j], &peak));
    p->pools_bytes = pl_add_saturate(p->pools_bytes, peak - reserved);
    int64_t touched = touched_by(p->solos.candidates[j].trace);
    p->touched_bytes = pl_add_saturate(p->touched_bytes, pl_mul_saturate(touched, p->iterations[j]));
  }
  return NULL;
}

/* --- Time --------------------------------------------------------------------------------------------------------- */

/* All that a job holds has a place of its own, so that memory never makes one job wait for another. Workspaces share
 * one, for a job's ops run one after the other. */
static planc_status give_places(processes *p, int32_t job, int64_t *next, int64_t **out_residencies,
                                int64_t **out_workspaces) {
  const planc_schedule *s = p->solos.candidates[job].schedule;
  const planc_command *commands = planc_schedule_commands(s);
  int64_t most = 0;
  PLANC_TRY(PL_NEW(&p->arena, out_residencies, planc_schedule_n_residencies(s)));
  PLANC_TRY(PL_NEW(&p->arena, out_workspaces, planc_schedule_n_commands(s)));
  for (int32_t r = 0; r < planc_schedule_n_residencies(s); r++) {
    if (planc_schedule_kind_of(s, r) != PLANC_MEMORY_DEVICE) continue;
    (*out_residencies)[r] = *next;
    *next = pl_align_up(pl_add_saturate(*next, planc_schedule_bytes(s, r)), PLANC_ALIGNMENT);
  }
  for (int32_t c = 0; c < planc_schedule_n_commands(s); c++) {
    if (commands[c].kind != PLANC_CMD_EXEC) continue;
    int64_t bytes = planc_schedule_variant(s, &commands[c]).workspace_bytes;
    (*out_workspaces)[c] = bytes > 0 ? *next : PLANC_BLANK;
    if (bytes > most) most = bytes;
  }
  *next = pl_align_up(pl_add_saturate(*next, most), PLANC_ALIGNMENT);
  return NULL;
}

static planc_status give_all_places(processes *p, pl_merge *merge) {
  int64_t **residencies, **workspaces, **all_residencies, **all_workspaces, next = 0;
  PLANC_TRY(PL_NEW(&p->arena, &residencies, merge->n_jobs));
  PLANC_TRY(PL_NEW(&p->arena, &workspaces, merge->n_jobs));
  for (int32_t j = 0; j < merge->n_jobs; j++) PLANC_TRY(give_places(p, j, &next, &residencies[j], &workspaces[j]));
  PLANC_TRY(pl_merge_repeat(&p->arena, merge->n_jobs, merge->iterations, residencies, &all_residencies));
  PLANC_TRY(pl_merge_repeat(&p->arena, merge->n_jobs, merge->iterations, workspaces, &all_workspaces));
  merge->residencies = all_residencies;
  merge->workspaces = all_workspaces;
  return NULL;
}

/* Side by side, each as fast as the others let it. */
static planc_status time_together(processes *p, int64_t *out_ns) {
  pl_merge merge = {.n_jobs = p->mix->n_jobs, .jobs = p->solos.candidates, .iterations = p->iterations};
  const planc_evaluator *evaluator = &p->evaluator->all;
  planc_candidate all = {0};
  pl_timing timing;
  PLANC_TRY(give_all_places(p, &merge));
  planc_status status = pl_merge_side_by_side(&p->arena, p->evaluator, p->problems, &merge, &timing, &all);
  if (!status) status = evaluator->time(evaluator, &all, out_ns);
  planc_candidate_free(&all);
  return status;
}

/* --- Beyond the device -------------------------------------------------------------------------------------------- */

static planc_status refuse(const planc_device *device, int64_t beyond) {
  char text[PL_SIZE_TEXT];
  planc_shortage shortage = {.memory = PLANC_MEMORY_HOST, .bytes = beyond};
  pl_size_format(beyond, text);
  if (device->paging_ppm == 0)
    return planc_infeasible((planc_shortage){0},
                            "%s of what the jobs hold have no room, and device %s is not said to "
                            "page on demand (paging_ppm)",
                            text, device->name);
  return planc_infeasible(shortage, "%s of what the jobs hold have no room, which is more than the host budget", text);
}

static planc_status refuse_device(const planc_device *device) {
  char text[PL_SIZE_TEXT];
  planc_shortage shortage = {.memory = PLANC_MEMORY_DEVICE, .bytes = pl_add_saturate(device->reserved_bytes, 1)};
  return planc_infeasible(shortage, "device %s reserves %s, beside which the budget leaves no room for the jobs",
                          device->name, pl_size_format(device->reserved_bytes, text));
}

static planc_status migrate(processes *p, planc_mix_estimate *out) {
  const int64_t *budgets = p->mix->terms.budgets;
  const planc_device *device = planc_mix_device(p->mix);
  int64_t room = budgets[PLANC_MEMORY_DEVICE] - device->reserved_bytes, beyond = p->pools_bytes - room;
  out->pools_bytes = pl_add_saturate(p->pools_bytes, device->reserved_bytes);
  if (room <= 0) return refuse_device(device);
  if (beyond <= 0) return NULL;
  if (device->paging_ppm == 0 || (budgets[PLANC_MEMORY_HOST] >= 0 && beyond > budgets[PLANC_MEMORY_HOST]))
    return refuse(device, beyond);
  out->migrated_bytes = pl_muldiv_floor(p->touched_bytes, beyond, p->pools_bytes);
  int64_t rate = pl_muldiv_floor(device->links[PLANC_ROUTE_H2D].bytes_per_second, device->paging_ppm, PL_PPM);
  out->period_ns = pl_add_saturate(out->period_ns, pl_muldiv_ceil(out->migrated_bytes, PL_NS, rate > 0 ? rate : 1));
  return NULL;
}
