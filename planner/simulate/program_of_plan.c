/* A plan's instructions as steps of the machine (sim_program.h). */
#include "planner/simulate/plan_streams.h"
#include "planner/simulate/sim_program.h"
#include "util/math.h"

enum { PPM = 1000000 };

static planc_status check_device(const planc_device *device) {
  if (device->launch_ns < 0 || device->duplex_ppm <= 0 || device->duplex_ppm > PPM || device->slowdown_ppm < 0 ||
      device->slowdown_ppm > INT32_MAX || device->h2d.bytes_per_second <= 0 || device->d2h.bytes_per_second <= 0 ||
      device->h2d.latency_ns < 0 || device->d2h.latency_ns < 0)
    return planc_error(PLANC_INVALID_PLAN, "the device's constants are out of range");
  return NULL;
}

/* Work is time in parts per million, faster alone than beside a copy (sim_machine.c). */
static planc_status check_time(const planc_device *device, const sim_step *step) {
  int64_t work;
  if (!planc_mul_overflow(step->time_ns, PPM + device->slowdown_ppm, &work)) return NULL;
  return planc_error(PLANC_BAD_INPUT, "a time of %lld ns is too long to simulate", (long long)step->time_ns);
}

static sim_step step_of(const planc_plan *plan, const planc_instr *instr) {
  sim_step step = {.stream = instr->stream, .lag = instr->lag};
  if (instr->op == PLANC_INSTR_wait || instr->op == PLANC_INSTR_record) {
    step.kind = instr->op == PLANC_INSTR_wait ? SIM_WAIT : SIM_RECORD;
    step.event = instr->id;
  } else if (planc_instr_is_copy(instr)) {
    bool out = planc_instr_direction(instr);
    step.kind = out ? SIM_COPY_OUT : SIM_COPY_IN;
    step.time_ns = planc_link_ns(out ? &plan->device.d2h : &plan->device.h2d, instr->bytes);
  } else {
    step.kind = SIM_KERNEL;
    step.op = instr->op == PLANC_INSTR_exec;
    step.time_ns = instr->time_ns;
    step.busy_ppm = instr->busy_ppm < 0 ? 0 : instr->busy_ppm > PPM ? PPM : (int32_t)instr->busy_ppm;
  }
  return step;
}

static planc_status make_steps(const planc_plan *plan, const planc_section *from, const int64_t *mapped,
                               planc_arena *arena, sim_section *out) {
  sim_step *steps;
  PLANC_TRY(PLANC_NEW(arena, &steps, from->n));
  for (int32_t i = 0; i < from->n; i++) {
    if (!planc_instr_has_stream(&from->instrs[i])) {
      steps[i].stream = -1;
      continue;
    }
    PLANC_TRY(planc_stream_instr_check(plan, &from->instrs[i]));
    steps[i] = step_of(plan, &from->instrs[i]);
    if (mapped) steps[i].chunks = mapped[i];
    PLANC_TRY(check_time(&plan->device, &steps[i]));
  }
  *out = (sim_section){.steps = steps, .n = from->n};
  return NULL;
}

/* Streams name their GPUs by numbers of the plan's; here they have those of their first appearance. */
static planc_status make_streams(const planc_plan *plan, planc_arena *arena, sim_program *out) {
  sim_stream *streams;
  PLANC_TRY(planc_streams_check(plan));
  PLANC_TRY(PLANC_NEW(arena, &streams, plan->n_streams));
  for (int32_t s = 0; s < plan->n_streams; s++) {
    const planc_stream *stream = &plan->streams[s];
    int32_t twin = 0;
    while (plan->streams[twin].gpu != stream->gpu) twin++;
    streams[s] = (sim_stream){.computes = stream->kind == PLANC_STREAM_KIND_compute, .job = stream->job};
    streams[s].gpu = twin < s ? streams[twin].gpu : out->n_gpus++;
  }
  out->streams = streams;
  return NULL;
}

planc_status sim_program_of_plan(const planc_plan *plan, const int64_t *mapped, planc_arena *arena, sim_program *out) {
  const planc_section *from[] = {&plan->prologue, &plan->body, &plan->epilogue};
  *out = (sim_program){.device = plan->device, .shared_link = plan->shared_link, .n_streams = plan->n_streams};
  out->n_jobs = plan->n_jobs;
  out->n_events = plan->n_events;
  PLANC_TRY(check_device(&plan->device));
  PLANC_TRY(make_streams(plan, arena, out));
  for (int k = 0; k < SIM_N_SECTIONS; k++)
    PLANC_TRY(make_steps(plan, from[k], k == SIM_BODY ? mapped : NULL, arena, &out->sections[k]));
  return sim_prepare(out, arena);
}
