/* What the follower knows of a plan (planrt/follow.h): whether it can be followed, where residencies are, and what is
 * done next with their data. */
#include <stdlib.h>

#include "planc/check.h"
#include "runtime/follower.h"

static planc_status build(planrt_follow *f);
static planc_status rehearse(planrt_follow *f);

planc_status planrt_follow_new(const planc_plan *plan, const planrt_framework *framework, planrt_follow **out) {
  planrt_follow *f = calloc(1, sizeof *f);
  if (!f) return planc_error(PLANC_OUT_OF_MEMORY, "follower");
  *f = (planrt_follow){.plan = plan, .framework = *framework};
  planc_status status = planc_check(plan, NULL, NULL);
  if (!status) status = build(f);
  if (!status) status = rehearse(f);
  if (!status)
    status = rt_order_host_alloc(f, planc_plan_memory(plan, PLANC_MEMORY_HOST)->arena_bytes, (void *)&f->host);
  if (status)
    planrt_follow_free(f);
  else
    *out = f;
  return status;
}

void planrt_follow_free(planrt_follow *f) {
  if (!f) return;
  if (f->host) planc_status_free(rt_order_finish(f)); /* copies may still run to and from the arena */
  rt_order_host_free(f, f->host);
  rt_follow_free_kept(f);
  planc_trace_free(f->trace);
  pl_arena_free(&f->memory);
  free(f);
}

const planc_trace *planrt_follow_trace(const planrt_follow *f) {
  return f->trace;
}

bool planrt_follow_repeats(const planrt_follow *f, int32_t call) {
  return call >= 0 && call < f->trace->n_instances && f->repeats[call];
}

int32_t planrt_follow_buffer(const planrt_follow *f, int32_t tensor) {
  const planc_graph *graph = f->plan->jobs[0].graph;
  if (tensor < 0 || tensor >= graph->n_tensors) return RT_NOTHING;
  return f->buffers[graph->tensors[tensor].storage];
}

int64_t planrt_follow_bytes(const planrt_follow *f, int32_t buffer) {
  return buffer >= 0 && buffer < f->trace->n_buffers ? f->trace->buffers[buffer].bytes : 0;
}

bool planrt_follow_persists(const planrt_follow *f, int32_t buffer) {
  return buffer >= 0 && buffer < f->trace->n_buffers && rt_follow_persists(f, buffer);
}

planrt_follow_counts planrt_follow_counted(const planrt_follow *f) {
  return f->counts;
}

/* --- What the plan says ------------------------------------------------------------------------------------------- */

static planc_status check_form(const planrt_follow *f);
static planc_status check_buffers(const planrt_follow *f);
static void number_streams(planrt_follow *f);
static void find_places(planrt_follow *f);
static void find_uses(planrt_follow *f, rt_next_use *next);

static planc_status build(planrt_follow *f) {
  const planc_plan *plan = f->plan;
  rt_next_use *next;
  PLANC_TRY(check_form(f));
  PLANC_TRY(planc_expand(plan->jobs, plan->n_jobs, &f->trace));
  PLANC_TRY(check_buffers(f));
  int32_t n = f->trace->n_buffers;
  PLANC_TRY(PL_NEW(&f->memory, &f->places, plan->n_residencies));
  PLANC_TRY(PL_NEW(&f->memory, &f->contents, n));
  PLANC_TRY(PL_NEW(&f->memory, &f->next_uses, plan->body.n));
  PLANC_TRY(PL_NEW(&f->memory, &f->ends, plan->n_boundary));
  PLANC_TRY(PL_NEW(&f->memory, &f->repeats, f->trace->n_instances));
  PLANC_TRY(PL_NEW(&f->memory, &f->wanted, n));
  PLANC_TRY(PL_NEW(&f->memory, &f->seen, n));
  PLANC_TRY(PL_NEW(&f->memory, &f->needed, plan->body.n));
  PLANC_TRY(PL_NEW(&f->memory, &f->kept, n));
  PLANC_TRY(PL_NEW(&f->memory, &f->late, plan->body.n));
  PLANC_TRY(PL_NEW(&f->memory, &f->leaving, n));
  PLANC_TRY(PL_NEW(&f->memory, &f->numbers, plan->n_streams));
  PLANC_TRY(PL_NEW(&f->memory, &next, n));
  PLANC_TRY(rt_order_prepare(f));
  PLANC_TRY(rt_address_prepare(f));
  PLANC_TRY(PL_NEW(&f->memory, &f->buffers, plan->jobs[0].graph->n_storages));
  for (int32_t s = 0; s < plan->jobs[0].graph->n_storages; s++) f->buffers[s] = RT_NOTHING;
  for (int32_t b = 0; b < n; b++) f->buffers[f->trace->buffers[b].storage] = b;
  number_streams(f);
  find_places(f);
  find_uses(f, next);
  rt_follow_start(f);
  return NULL;
}

static planc_status check_form(const planrt_follow *f) {
  const planc_plan *plan = f->plan;
  const planc_job *job = &plan->jobs[0];
  int32_t n_computing = 0;
  for (int32_t s = 0; s < plan->n_streams; s++) n_computing += plan->streams[s].kind == PLANC_STREAM_KIND_compute;
  const char *what = plan->n_jobs != 1                                             ? "several jobs"
                     : planc_plan_replicas(plan) > 1 || planc_plan_gpus(plan) != 1 ? "several GPUs"
                     : job->iterations != 1                                        ? "several iterations in a period"
                     : job->n_rounds != 1                                          ? "several rounds"
                     : job->order                                                  ? "another order than the graph"
                     : n_computing > 1                                             ? "several compute streams"
                                                                                   : NULL;
  if (what) return planc_error(PLANC_USAGE, "a plan with %s cannot be followed", what);
  for (int32_t m = 0; m < plan->n_memories; m++)
    if (plan->memories[m].kind == PLANC_MEMORY_STORAGE && plan->memories[m].arena_bytes > 0)
      return planc_error(PLANC_USAGE, "a plan that keeps data in storage cannot be followed");
  return NULL;
}

static planc_status check_buffers(const planrt_follow *f) {
  for (int32_t b = 0; b < f->trace->n_buffers; b++)
    if (f->trace->buffers[b].flags & PLANC_BUFFER_FED)
      return planc_error(PLANC_USAGE, "the plan brings input %s, which is the framework's", rt_follow_name(f, b));
  return NULL;
}

/* The stream of the calls is the framework's first. Copies that are not the plan's go by the way of one that is. */
static void number_streams(planrt_follow *f) {
  const planc_plan *plan = f->plan;
  int32_t n = PLANRT_CALLS;
  for (int32_t s = 0; s < plan->n_streams; s++) {
    if (plan->streams[s].kind == PLANC_STREAM_KIND_compute) continue;
    f->numbers[s] = ++n;
    f->out_stream = f->in_stream = n;
  }
  for (int32_t l = 0; l < plan->n_links; l++) {
    const planc_plan_link *link = &plan->links[l];
    for (int32_t s = 0; s < plan->n_streams; s++) {
      if (plan->streams[s].kind == PLANC_STREAM_KIND_compute || plan->streams[s].on != link->engine) continue;
      if (plan->memories[link->from].kind == PLANC_MEMORY_DEVICE) f->out_stream = f->numbers[s];
      if (plan->memories[link->to].kind == PLANC_MEMORY_DEVICE) f->in_stream = f->numbers[s];
    }
  }
}

/* Where each residency is, and which of them are at the boundary when the body ends. */
static void find_places(planrt_follow *f) {
  const planc_plan *plan = f->plan;
  for (int32_t row = 0; row < plan->n_boundary; row++) {
    const planc_boundary *at = &plan->boundary[row];
    f->places[row] = (rt_followed_place){at->buffer, at->memory, at->address, RT_NOTHING, RT_NOTHING, true};
  }
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (instr->op == PLANC_INSTR_acquire)
      f->places[instr->id] =
          (rt_followed_place){instr->aux, instr->memory, instr->address, RT_NOTHING, RT_NOTHING, true};
    if (instr->op == PLANC_INSTR_release) f->places[instr->id].open = false;
    if (instr->op == PLANC_INSTR_exec && instr->recompute) f->repeats[instr->id] = true;
  }
  for (int32_t r = 0; r < plan->n_residencies; r++)
    if (f->places[r].open) f->wanted[f->places[r].buffer] = r;
  for (int32_t row = 0; row < plan->n_boundary; row++) f->ends[row] = f->wanted[f->places[row].buffer];
}

/* From the end of the body to its beginning: what is done next with each buffer, in the next body where this one does
 * nothing more. */
static void find_uses(planrt_follow *f, rt_next_use *next) {
  const planc_section *body = &f->plan->body;
  for (int32_t pass = 0; pass < 2; pass++) {
    for (int32_t b = 0; b < f->trace->n_buffers; b++)
      if (!rt_follow_persists(f, b)) next[b] = RT_NEXT_NONE;
    for (int32_t i = body->n - 1; i >= 0; i--) {
      const planc_instr *instr = &body->instrs[i];
      const planc_access *access;
      if (instr->op == PLANC_INSTR_release || (instr->op == PLANC_INSTR_copy && instr->id != PLANC_USER))
        f->next_uses[i] = (uint8_t)next[f->places[instr->id].buffer];
      if (instr->op != PLANC_INSTR_exec) continue;
      for (int32_t k = RT_NOTHING;
           (access = rt_follow_access(f, instr->id, instr->recompute ? &f->plan->uses[instr->first_use] : NULL, &k));)
        next[access->buffer] = access->read >= 0 ? RT_NEXT_READ : RT_NEXT_WRITE;
    }
  }
}

/* --- Rehearsal ---------------------------------------------------------------------------------------------------- */

static planc_status rehearse_iteration(planrt_follow *f);
static planc_status refused(planc_status status);
static void *rehearsed_address(void *user, int32_t buffer);
static int rehearsed_allocate(void *user, int32_t buffer, int64_t address);
static int rehearsed_release(void *user, int32_t buffer, bool last);
static int rehearsed_repeat(void *user, int32_t call, const int32_t *wanted, int32_t n, const planrt_rooms *rooms);

/* Runs the body until it begins as it ends, with nothing in it: a plan that this finds nothing wrong with can be
 * followed. */
static planc_status rehearse(planrt_follow *f) {
  enum { ITERATIONS = 3 };
  planrt_framework framework = f->framework;
  planc_status status = NULL;
  f->framework = (planrt_framework){.user = f,
                                    .address = rehearsed_address,
                                    .allocate = rehearsed_allocate,
                                    .release = rehearsed_release,
                                    .repeat = rehearsed_repeat};
  for (int32_t i = 0; i < ITERATIONS && !status; i++) status = rehearse_iteration(f);
  f->framework = framework;
  rt_follow_start(f);
  if (planc_status_code(status) == PLANC_INTERNAL) status = refused(status);
  return planc_context(status, "the plan cannot be followed");
}

static planc_status rehearse_iteration(planrt_follow *f) {
  PLANC_TRY(planrt_follow_begin(f));
  for (int32_t call = 0; call < f->trace->n_instances; call++) {
    int32_t next;
    PLANC_TRY(planrt_follow_next(f, &next));
    PLANC_TRY(planrt_follow_done(f));
  }
  return planrt_follow_end(f);
}

/* What would be missing in an iteration is no defect of the follower's before the first one. */
static planc_status refused(planc_status status) {
  planc_status refusal = planc_error(PLANC_USAGE, "%s", planc_status_message(status));
  planc_status_free(status);
  return refusal;
}

/* A framework without data. In the first iteration it does not know what persists. */
static void *rehearsed_address(void *user, int32_t buffer) {
  planrt_follow *f = user;
  return f->counts.iterations == 0 && rt_follow_persists(f, buffer) ? NULL : f;
}

static int rehearsed_allocate(void *user, int32_t buffer, int64_t address) {
  (void)user, (void)buffer, (void)address;
  return 0;
}

static int rehearsed_release(void *user, int32_t buffer, bool last) {
  (void)user, (void)buffer, (void)last;
  return 0;
}

static int rehearsed_repeat(void *user, int32_t call, const int32_t *wanted, int32_t n, const planrt_rooms *rooms) {
  (void)user, (void)call, (void)wanted, (void)n, (void)rooms;
  return 0;
}
