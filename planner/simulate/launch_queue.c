/* Sorting a section's instructions by stream and by job (launch_queue.h). */
#include "planner/simulate/launch_queue.h"

#include <stdlib.h>

static planc_status check_streams(const planc_plan *plan) {
  for (int32_t s = 0; s < plan->n_streams; s++)
    if (plan->streams[s].job < 0 || plan->streams[s].job >= plan->n_jobs)
      return planc_error(PLANC_INVALID_PLAN, "stream %d: there is no job %d", s, plan->streams[s].job);
  return NULL;
}

static planc_status check_instr(const planc_plan *plan, const planc_instr *instr) {
  bool event = instr->op == PLANC_INSTR_record || instr->op == PLANC_INSTR_wait;
  if (instr->stream < 0 || instr->stream >= plan->n_streams)
    return planc_error(PLANC_INVALID_PLAN, "there is no stream %d", instr->stream);
  if (event && (instr->id < 0 || instr->id >= plan->n_events))
    return planc_error(PLANC_INVALID_PLAN, "there is no event %d", instr->id);
  if (instr->time_ns < 0 || instr->bytes < 0) return planc_error(PLANC_INVALID_PLAN, "a time or a size is negative");
  return NULL;
}

static planc_status sort_by_stream(const planc_plan *plan, planc_launch_queue *q) {
  const planc_section *section = q->section;
  for (int32_t i = 0; i < section->n; i++) {
    const planc_instr *instr = &section->instrs[i];
    if (!planc_instr_has_stream(instr)) continue;
    PLANC_TRY(check_instr(plan, instr));
    q->first[instr->stream + 2]++;
    q->n_timed += planc_instr_is_copy(instr) || planc_instr_is_kernel(instr);
  }
  for (int32_t s = 1; s <= plan->n_streams; s++) q->first[s + 1] += q->first[s];
  for (int32_t i = 0; i < section->n; i++)
    if (planc_instr_has_stream(&section->instrs[i])) q->order[q->first[section->instrs[i].stream + 1]++] = i;
  return NULL;
}

static void link_by_job(const planc_plan *plan, planc_launch_queue *q) {
  for (int32_t j = 0; j < plan->n_jobs; j++) q->first_launch[j] = q->section->n;
  for (int32_t i = q->section->n - 1; i >= 0; i--) {
    const planc_instr *instr = &q->section->instrs[i];
    if (!planc_instr_is_copy(instr) && !planc_instr_is_kernel(instr)) continue;
    int32_t *first = &q->first_launch[plan->streams[instr->stream].job];
    q->next_launch[i] = *first;
    *first = i;
  }
}

planc_status planc_launch_queue_make(const planc_plan *plan, const planc_section *section, planc_launch_queue *out) {
  *out = (planc_launch_queue){.section = section};
  out->first = calloc((size_t)plan->n_streams + 2, sizeof *out->first);
  out->order = calloc((size_t)section->n + 1, sizeof *out->order);
  out->first_launch = calloc((size_t)plan->n_jobs + 1, sizeof *out->first_launch);
  out->next_launch = calloc((size_t)section->n + 1, sizeof *out->next_launch);
  if (!out->first || !out->order || !out->first_launch || !out->next_launch)
    return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  PLANC_TRY(check_streams(plan));
  PLANC_TRY(sort_by_stream(plan, out));
  link_by_job(plan, out);
  return NULL;
}

void planc_launch_queue_free(planc_launch_queue *queue) {
  free(queue->first);
  free(queue->order);
  free(queue->first_launch);
  free(queue->next_launch);
}
