/* A plan's instructions as steps of the machine (program_of_plan.h). Replicas do the same at the same time, so only
 * one of them is run: where it waits for records of the others, these happen when its own do. */
#include "planner/simulate/program_of_plan.h"

#include <assert.h>
#include <string.h>

#include "plan/link_index.h"
#include "plan/tables.h"
#include "planner/analysis/plan_streams.h"
#include "util/math.h"

typedef struct making {
  const planc_plan *plan;
  const pl_acquired *acquired;
  pl_link_index links;
  pl_arena *arena;
} making;

static planc_status make_steps(const making *m, const planc_section *from, const int64_t *mapped, sim_section *out);

planc_status sim_program_of_plan(const planc_plan *plan, const pl_acquired *acquired, const int64_t *mapped,
                                 pl_arena *arena, sim_program *out) {
  const planc_section *from[] = {&plan->prologue, &plan->body, &plan->epilogue};
  making m = {.plan = plan, .acquired = acquired, .arena = arena};
  PLANC_TRY(pl_tables_check(plan));
  PLANC_TRY(pl_link_index_make(plan, arena, &m.links));
  PLANC_TRY(sim_machine_of_plan(plan, arena, out));
  out->n_jobs = plan->n_jobs;
  out->n_events = plan->n_events;
  for (int k = 0; k < SIM_N_SECTIONS; k++)
    PLANC_TRY(make_steps(&m, from[k], k == SIM_BODY ? mapped : NULL, &out->sections[k]));
  return sim_prepare(out, arena);
}

/* A GPU goes by the number of its memory. */
planc_status sim_machine_of_plan(const planc_plan *plan, pl_arena *arena, sim_program *out) {
  sim_stream *streams;
  *out = (sim_program){.device = plan->device, .n_streams = plan->n_streams, .n_gpus = planc_plan_gpus(plan)};
  PLANC_TRY(PL_NEW(arena, &streams, plan->n_streams));
  for (int32_t s = 0; s < plan->n_streams; s++) {
    const planc_stream *from = &plan->streams[s];
    streams[s] = (sim_stream){.computes = from->kind == PLANC_STREAM_KIND_compute,
                              .job = from->job,
                              .dispatcher = from->job,
                              .on = from->on,
                              .priority = plan->jobs[from->job].priority};
    if (streams[s].priority > out->most_priority) out->most_priority = streams[s].priority;
  }
  out->streams = streams;
  return sim_engines_of_plan(plan, arena, out);
}

/* --- Steps -------------------------------------------------------------------------------------------------------- */

static planc_status make_step(const making *m, const planc_instr *instr, sim_step *step);
static planc_status make_copy(const making *m, const planc_instr *instr, sim_step *step);
static planc_status check_time(const planc_plan_device *device, const sim_step *step);

static planc_status make_steps(const making *m, const planc_section *from, const int64_t *mapped, sim_section *out) {
  sim_step *steps;
  PLANC_TRY(PL_NEW(m->arena, &steps, from->n));
  for (int32_t i = 0; i < from->n; i++) {
    if (!pl_instr_has_stream(&from->instrs[i])) {
      steps[i].stream = -1;
      continue;
    }
    PLANC_TRY(make_step(m, &from->instrs[i], &steps[i]));
    if (mapped) steps[i].chunks = mapped[i];
  }
  *out = (sim_section){.steps = steps, .n = from->n};
  return NULL;
}

static planc_status make_step(const making *m, const planc_instr *instr, sim_step *step) {
  PLANC_TRY(pl_stream_instr_check(m->plan, instr));
  *step = (sim_step){.stream = instr->stream, .lag = instr->lag};
  if (instr->op == PLANC_INSTR_wait || instr->op == PLANC_INSTR_record) {
    step->kind = instr->op == PLANC_INSTR_wait ? SIM_WAIT : SIM_RECORD;
    step->event = instr->id;
  } else if (pl_instr_is_copy(m->plan, instr)) {
    PLANC_TRY(make_copy(m, instr, step));
  } else {
    step->kind = SIM_KERNEL;
    step->op = instr->op == PLANC_INSTR_exec;
    step->time_ns = instr->time_ns;
    step->busy_ppm = sim_busy_ppm(instr);
  }
  return check_time(&m->plan->device, step);
}

static planc_status make_copy(const making *m, const planc_instr *instr, sim_step *step) {
  int32_t from = pl_memory_of_side(m->plan, m->acquired, instr->aux);
  int32_t to = pl_memory_of_side(m->plan, m->acquired, instr->id);
  int32_t link = pl_link_find(&m->links, m->plan->streams[instr->stream].on, from, to);
  if (link < 0)
    return planc_error(PLANC_INVALID_PLAN, "stream %d has no link from memory %d to memory %d", instr->stream, from,
                       to);
  step->kind = SIM_COPY;
  step->route = pl_instr_route(m->plan, m->acquired, instr);
  assert(step->route < PLANC_N_ROUTES); /* a link leads from a memory to another */
  step->to_gpu = m->plan->memories[to].kind == PLANC_MEMORY_DEVICE;
  step->time_ns = planc_link_ns(&m->plan->links[link].cost, instr->bytes);
  if (instr->peers) step->time_ns = pl_mul_saturate(step->time_ns, planc_plan_replicas(m->plan) - 1);
  return NULL;
}

/* The machine counts the work of a step, which is its time multiplied (sim_machine.h). */
static planc_status check_time(const planc_plan_device *device, const sim_step *step) {
  int64_t work;
  if (!pl_mul_overflow(step->time_ns, PL_PPM + device->slowdown_ppm, &work)) return NULL;
  return planc_error(PLANC_BAD_INPUT, "a time of %lld ns is too long to simulate", (long long)step->time_ns);
}

/* --- Tracking ----------------------------------------------------------------------------------------------------- */

static void mark(const planc_plan *plan, int64_t every_bytes, int64_t *acquired, sim_step *steps,
                 const sim_program *program);

planc_status sim_track(const planc_plan *plan, int64_t track_ns, int64_t every_bytes, pl_arena *arena,
                       sim_program *program) {
  sim_section *body = &program->sections[SIM_BODY];
  sim_step *steps;
  int64_t *acquired;
  PLANC_TRY(PL_NEW(arena, &steps, body->n));
  PLANC_TRY(PL_NEW(arena, &acquired, plan->n_jobs));
  if (body->n > 0) memcpy(steps, body->steps, (size_t)body->n * sizeof *steps);
  mark(plan, every_bytes, acquired, steps, program);
  body->steps = steps;
  program->track_ns = track_ns;
  return NULL;
}

/* Marks the kernels behind which a dispatcher notes what is in use. Memory that is acquired counts for the next kernel
 * in the plan's order, and for its job. */
static void mark(const planc_plan *plan, int64_t every_bytes, int64_t *acquired, sim_step *steps,
                 const sim_program *program) {
  int64_t next = 0;
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (instr->op == PLANC_INSTR_acquire && plan->memories[instr->memory].kind == PLANC_MEMORY_DEVICE)
      next = pl_add_saturate(next, instr->bytes);
    if (steps[i].stream < 0 || steps[i].kind != SIM_KERNEL) continue;
    int64_t *sum = &acquired[program->streams[steps[i].stream].job];
    *sum = pl_add_saturate(*sum, next);
    next = 0;
    steps[i].tracked = *sum >= every_bytes;
    if (steps[i].tracked) *sum = 0;
  }
}
