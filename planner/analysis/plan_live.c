/* Where a plan's body is fullest, what things in it are called, and whether it names what is there (plan_live.h). */
#include "planner/analysis/plan_live.h"

#include <stdio.h>
#include <string.h>

#include "plan/memories.h"
#include "util/math.h"

static bool is_known(const planc_plan *plan, int32_t residency) {
  return residency >= 0 && residency < plan->n_residencies;
}

int32_t pl_memory_at(const planc_plan *plan, const pl_acquired *acquired, const planc_instr *instr) {
  int32_t memory = -1;
  if (instr->op == PLANC_INSTR_acquire || instr->op == PLANC_INSTR_release) {
    if (is_known(plan, instr->id)) memory = acquired[instr->id].memory;
  } else if (instr->op == PLANC_INSTR_exec && instr->stream >= 0 && instr->stream < plan->n_streams) {
    if (plan->streams[instr->stream].kind == PLANC_STREAM_KIND_compute) memory = plan->streams[instr->stream].on;
  }
  return memory < plan->n_memories ? memory : -1;
}

/* --- The fullest moment ------------------------------------------------------------------------------------------- */

/* The prologue leads to what is live at the boundary. */
planc_status pl_find_fullest(const planc_plan *plan, planc_memory_kind kind, const pl_acquired *acquired,
                             pl_arena *arena, pl_fullest *out) {
  int64_t *bytes, *live; /* by residency; by memory */
  *out = (pl_fullest){.memory = -1};
  PLANC_TRY(PL_NEW(arena, &bytes, plan->n_residencies));
  PLANC_TRY(PL_NEW(arena, &live, plan->n_memories));
  const planc_section *sections[] = {&plan->prologue, &plan->body};
  for (int32_t k = 0; k < 2; k++) {
    for (int32_t i = 0; i < sections[k]->n; i++) {
      const planc_instr *instr = &sections[k]->instrs[i];
      int32_t memory = pl_memory_at(plan, acquired, instr);
      if (memory < 0 || plan->memories[memory].kind != kind) continue;
      int64_t *here = &live[memory], now = *here;
      if (instr->op == PLANC_INSTR_exec) {
        now = pl_add_saturate(now, instr->bytes);
      } else {
        if (instr->op == PLANC_INSTR_acquire) bytes[instr->id] = instr->bytes;
        now = *here = instr->op == PLANC_INSTR_acquire ? pl_add_saturate(now, instr->bytes) : now - bytes[instr->id];
      }
      if (k == 1 && now > out->bytes) *out = (pl_fullest){.bytes = now, .instr = i, .memory = memory};
    }
    for (int32_t m = 0; m < plan->n_memories && k == 0; m++)
      if (live[m] > out->bytes) *out = (pl_fullest){.bytes = live[m], .memory = m};
  }
  return NULL;
}

/* --- Names -------------------------------------------------------------------------------------------------------- */

/* `whose` goes before the name. */
static planc_status name_of(const planc_plan *plan, int32_t job, const char *whose, const char *name, pl_arena *arena,
                            const char **out) {
  enum { NUMBER = 32 };
  char *text;
  size_t size = strlen(whose) + strlen(name) + NUMBER;
  *out = name;
  if (plan->n_jobs == 1 && !*whose) return NULL;
  PLANC_TRY(PL_NEW(arena, &text, (int64_t)size));
  if (plan->n_jobs == 1)
    snprintf(text, size, "%s%s", whose, name);
  else
    snprintf(text, size, "job %d: %s%s", job, whose, name);
  *out = text;
  return NULL;
}

planc_status pl_buffer_in_plan(const planc_plan *plan, const planc_trace *trace, int32_t buffer, pl_arena *arena,
                               const char **out) {
  return name_of(plan, trace->buffers[buffer].job, planc_trace_buffer_whose(trace, buffer),
                 planc_trace_buffer_name(trace, buffer), arena, out);
}

planc_status pl_op_in_plan(const planc_plan *plan, const planc_trace *trace, int32_t instance, pl_arena *arena,
                           const char **out) {
  return name_of(plan, trace->instances[instance].job, "", planc_trace_op(trace, instance)->name, arena, out);
}

static bool names_what_is_there(const planc_plan *plan, const planc_trace *trace, const planc_instr *instr) {
  bool residency = instr->id >= 0 && instr->id < plan->n_residencies;
  if (instr->op == PLANC_INSTR_exec) return instr->id >= 0 && instr->id < trace->n_instances;
  if (instr->op == PLANC_INSTR_acquire) return residency && instr->aux >= 0 && instr->aux < trace->n_buffers;
  return residency || instr->op != PLANC_INSTR_release;
}

planc_status pl_plan_check_names(const planc_plan *plan, const planc_trace *trace) {
  for (int32_t b = 0; b < plan->n_boundary; b++) {
    if (plan->boundary[b].buffer >= 0 && plan->boundary[b].buffer < trace->n_buffers) continue;
    return planc_error(PLANC_INVALID_PLAN, "boundary: row %d: there is no buffer %d", b, plan->boundary[b].buffer);
  }
  for (int32_t i = 0; i < plan->body.n; i++) {
    if (names_what_is_there(plan, trace, &plan->body.instrs[i])) continue;
    return planc_error(PLANC_INVALID_PLAN, "body: instruction %d names what there is not", i);
  }
  return NULL;
}
