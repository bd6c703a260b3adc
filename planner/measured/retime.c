/* A plan at the times of another profile (simulate.h). */
#include <stdlib.h>
#include <string.h>

#include "cost/ideal.h"
#include "cost/profile.h"
#include "cost/routes.h"
#include "plan/derived.h"
#include "plan/plan_trace.h"
#include "plan/tables.h"
#include "planc/schedule.h"
#include "planc/simulate.h"
#include "planner/analysis/plan_live.h"
#include "util/arena.h"
#include "util/math.h"

typedef struct retiming {
  const planc_profile *const *profiles; /* by job */
  const planc_trace *trace;
  planc_costs **costs; /* by job */
  bool **kept;         /* by job and op: a run of it has the plan's time */
  planc_retimed *out;
  pl_arena arena;
} retiming;

static planc_status retime(retiming *r, const planc_plan *plan);
static void retime_body(retiming *r);
static void take(const planc_variant *variant, planc_instr *exec);
static const planc_variant *listed(const retiming *r, const planc_instr *exec);
static bool is_listed(const retiming *r, int32_t job, int32_t op);
static planc_status retime_ideal(retiming *r, const planc_plan *plan);
static void retime_device(retiming *r);
static planc_status make_costs(const planc_profile *profile, const planc_job *job, planc_costs **out);
static planc_status copy_tables(const planc_plan *plan, planc_retimed *out);

planc_status planc_retime(const planc_plan *plan, const planc_profile *profile, planc_retimed *out) {
  const planc_profile *profiles[PLANC_PLAN_MAX_JOBS];
  for (int32_t j = 0; j < plan->n_jobs; j++) profiles[j] = profile;
  return planc_retime_jobs(plan, profiles, out);
}

planc_status planc_retime_jobs(const planc_plan *plan, const planc_profile *const *profiles, planc_retimed *out) {
  planc_trace *trace;
  *out = (planc_retimed){.plan = *plan};
  PLANC_TRY(pl_plan_expand(plan, &trace));
  retiming r = {.profiles = profiles, .trace = trace, .out = out};
  planc_status status = retime(&r, plan);
  for (int32_t j = 0; r.costs && j < plan->n_jobs; j++) planc_costs_free(r.costs[j]);
  pl_arena_free(&r.arena);
  planc_trace_free(trace);
  if (status) planc_retimed_free(out);
  return status;
}

static planc_status retime(retiming *r, const planc_plan *plan) {
  PLANC_TRY(pl_plan_check_names(plan, r->trace));
  PLANC_TRY(PL_NEW(&r->arena, &r->costs, plan->n_jobs));
  PLANC_TRY(PL_NEW(&r->arena, &r->kept, plan->n_jobs));
  for (int32_t j = 0; j < plan->n_jobs; j++) {
    PLANC_TRY(make_costs(r->profiles[j], &plan->jobs[j], &r->costs[j]));
    PLANC_TRY(PL_NEW(&r->arena, &r->kept[j], plan->jobs[j].graph->n_ops));
  }
  PLANC_TRY(copy_tables(plan, r->out));
  retime_body(r);
  if (r->out->n_kept == r->out->n_ops)
    return planc_error(PLANC_STALE, "the profile has no times for the plan's ops with the plan's algorithms");
  retime_device(r);
  PLANC_TRY(retime_ideal(r, plan));
  return pl_plan_derive(&r->out->plan);
}

void planc_retimed_free(planc_retimed *retimed) {
  free(retimed->instrs);
  free(retimed->memories);
  free(retimed->links);
  free(retimed->jobs);
  *retimed = (planc_retimed){0};
}

static bool *kept_of(const retiming *r, const planc_instr *exec) {
  const planc_instance *in = &r->trace->instances[exec->id];
  return &r->kept[in->job][in->op];
}

static void retime_body(retiming *r) {
  planc_retimed *out = r->out;
  for (int32_t i = 0; i < out->plan.body.n; i++) {
    planc_instr *instr = &out->instrs[i];
    if (instr->time_ns > 0 && instr->op == PLANC_INSTR_copy)
      instr->time_ns = planc_costs_move_ns(r->profiles[out->plan.streams[instr->stream].job], instr->bytes);
    if (instr->op != PLANC_INSTR_exec) continue;
    const planc_instance *instance = &r->trace->instances[instr->id];
    if (instance->role != PLANC_ROLE_OP) {
      planc_variant adding = planc_adding_variant(r->trace, r->profiles[instance->job], instr->id);
      take(&adding, instr);
      continue;
    }
    const planc_variant *variant = listed(r, instr);
    out->n_ops++;
    out->n_kept += !variant;
    if (variant) {
      take(variant, instr);
    } else {
      *kept_of(r, instr) = true;
    }
  }
}

static void take(const planc_variant *variant, planc_instr *exec) {
  exec->time_ns = variant->time_ns;
  exec->busy_ppm = variant->busy_ppm;
}

/* The profile's figures for the op that an exec runs, or NULL. */
static const planc_variant *listed(const retiming *r, const planc_instr *exec) {
  const planc_instance *in = &r->trace->instances[exec->id];
  const planc_costs *costs = r->costs[in->job];
  if (!is_listed(r, in->job, in->op)) return NULL;
  int32_t count;
  const planc_variant *variants = planc_costs_variants(costs, in->op, planc_costs_batch(costs, in->batch), &count);
  for (int32_t v = 0; v < count; v++)
    if (strcmp(variants[v].algorithm, r->out->plan.algorithms[exec->aux]) == 0) return &variants[v];
  return NULL;
}

/* Whether the profile knows the op of a job at all; constants give figures to any. */
static bool is_listed(const retiming *r, int32_t job, int32_t op) {
  return pl_measured_find(&r->profiles[job]->measured, r->costs[job]->graph->ops[op].name) != NULL;
}

/* --- The ideal ---------------------------------------------------------------------------------------------------- */

/* Adds what the plan's rounds take of ops that keep the plan's times, but for recomputes: nothing else is known. */
static planc_status add_kept_ideal(retiming *r) {
  const planc_section *body = &r->out->plan.body;
  bool *ran;
  PLANC_TRY(PL_NEW(&r->arena, &ran, r->trace->n_instances));
  for (int32_t i = 0; i < body->n; i++) {
    const planc_instr *instr = &body->instrs[i];
    if (instr->op != PLANC_INSTR_exec || ran[instr->id]) continue;
    const planc_instance *in = &r->trace->instances[instr->id];
    ran[instr->id] = true;
    int64_t *ideal_ns = &r->out->jobs[in->job].ideal_ns;
    if (in->role == PLANC_ROLE_OP && *kept_of(r, instr)) *ideal_ns = pl_add_saturate(*ideal_ns, instr->time_ns);
  }
  return NULL;
}

/* An op has in the ideal what it has in the body: the profile's time, once at the whole batch, or the plan's. */
static planc_status retime_ideal(retiming *r, const planc_plan *plan) {
  for (int32_t j = 0; j < plan->n_jobs; j++) {
    const planc_job *job = &r->out->plan.jobs[j];
    int64_t once_ns = pl_ideal_but_for(r->costs[j], job->graph, job->batch, r->kept[j]);
    r->out->jobs[j].ideal_ns = pl_mul_saturate(once_ns, job->iterations);
  }
  PLANC_TRY(add_kept_ideal(r));
  for (int32_t j = 0; j < plan->n_jobs; j++) PLANC_TRY(pl_tables_check_predicted(r->out->jobs[j].ideal_ns));
  return NULL;
}

/* --- The device, costs and copies --------------------------------------------------------------------------------- */

static void retime_links(planc_device device, planc_retimed *out);

static void retime_device(retiming *r) {
  planc_plan *plan = &r->out->plan;
  const planc_device *device = planc_profile_device(r->profiles[0]);
  plan->device.launch_ns = device->launch_ns;
  plan->device.in_flight = device->in_flight;
  plan->device.duplex_ppm = device->duplex_ppm;
  plan->device.slowdown_ppm = device->slowdown_ppm;
  retime_links(*device, r->out);
}

/* A profile need not tell of storage. */
static void retime_links(planc_device device, planc_retimed *out) {
  for (int32_t l = 0; l < out->plan.n_links; l++) {
    planc_plan_link *link = &out->links[l];
    planc_memory_kind from = out->plan.memories[link->from].kind, to = out->plan.memories[link->to].kind;
    const planc_link *cost = &device.links[pl_route_between(from, to)];
    if (cost->bytes_per_second > 0) link->cost = *cost;
  }
}

/* At the batches of its rounds, and at the whole one, which its optimizer has. */
static planc_status make_costs(const planc_profile *profile, const planc_job *job, planc_costs **out) {
  int64_t *batches = malloc(((size_t)job->n_rounds + 1) * sizeof *batches);
  if (!batches) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  memcpy(batches, job->rounds, (size_t)job->n_rounds * sizeof *batches);
  batches[job->n_rounds] = job->batch;
  planc_status status = planc_costs_make(profile, job->graph, job->n_rounds + 1, batches, out);
  free(batches);
  return status;
}

/* NULL when out of memory. */
static void *copy_of(const void *from, int32_t n, size_t size) {
  void *copy = calloc((size_t)n + 1, size);
  if (copy && n > 0) memcpy(copy, from, (size_t)n * size);
  return copy;
}

/* Copies the tables that retiming changes. */
static planc_status copy_tables(const planc_plan *plan, planc_retimed *out) {
  out->instrs = copy_of(plan->body.instrs, plan->body.n, sizeof *out->instrs);
  out->memories = copy_of(plan->memories, plan->n_memories, sizeof *out->memories);
  out->links = copy_of(plan->links, plan->n_links, sizeof *out->links);
  out->jobs = copy_of(plan->predicted.jobs, plan->n_jobs, sizeof *out->jobs);
  if (!out->instrs || !out->memories || !out->links || !out->jobs)
    return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  out->plan.body.instrs = out->instrs;
  out->plan.memories = out->memories;
  out->plan.links = out->links;
  out->plan.predicted.jobs = out->jobs;
  return NULL;
}
