/* What comes before and after all bodies (lowering.h).
 *
 * The prologue copies in what persists, to where it is parked, and makes every stream wait for the others' copies; only
 * then does it record, as body -1, what body and epilogue wait on with lag 1, so that no stream touches the boundary
 * before it is there. The epilogue waits for the last body's writes, or where there was no body for the prologue's, and
 * copies the boundary back. */
#include "planner/lower/lowering.h"

/* --- Steps -------------------------------------------------------------------------------------------------------- */

static planc_status add_around(arounds *edge, planc_instr instr) {
  VEC_PUSH(edge, ((around){instr, NONE, NONE}));
  return NULL;
}

/* What a job has at the boundary is copied in, or back, in one step. */
static planc_status copy_boundary(lowering *l, arounds *edge, bool in, int32_t job) {
  int64_t first = edge->len;
  int16_t stream = stream_of(job, in ? PLANC_STREAM_H2D : PLANC_STREAM_D2H);
  planc_step step = {.stream = stream, .first_touch = (int32_t)l->touches.len, .await = NONE};
  for (int32_t r = 0; r < planc_schedule_n_boundary(l->schedule); r++) {
    if (job_of(l, r) != job) continue;
    PLANC_TRY(lowering_touch(l, r, in));
    PLANC_TRY(add_around(edge, copy_of(stream, in ? r : PLANC_USER, in ? PLANC_USER : r, bytes_of(l, r))));
  }
  if (first == edge->len) return NULL;
  edge->data[first].begins = edge->data[edge->len - 1].ends = l->n_steps;
  return lowering_end_step(l, step);
}

planc_status lowering_make_around(lowering *l) {
  int32_t n_parked = planc_schedule_n_parked(l->schedule), n_boundary = planc_schedule_n_boundary(l->schedule);
  int32_t n_jobs = l->trace->n_jobs;
  for (int32_t j = 0; j < n_jobs; j++) PLANC_TRY(copy_boundary(l, &l->after, false, j));
  for (int32_t r = 0; r < n_boundary; r++) PLANC_TRY(add_around(&l->after, release_of(r)));
  l->first_before = l->n_steps;
  for (int32_t r = 0; r < n_boundary; r++)
    PLANC_TRY(add_around(&l->before, r < n_parked ? acquire_slot(l, r) : acquire_of(l, r)));
  for (int32_t j = 0; j < n_jobs; j++) PLANC_TRY(copy_boundary(l, &l->before, true, j));
  return NULL;
}

/* --- Instructions ------------------------------------------------------------------------------------------------- */

/* Appends the instructions of an edge with the waits and records that their steps need. */
static void emit_around(const lowering *l, const arounds *edge, const planc_waits *waits, int64_t w, int32_t first_step,
                        planc_instr *instrs, int32_t *n) {
  for (int64_t i = 0; i < edge->len; i++) {
    const around *it = &edge->data[i];
    for (; it->begins != NONE && w < waits->len && waits->data[w].step + first_step == it->begins; w++) {
      instrs[(*n)++] = wait_of(l, &waits->data[w], first_step);
    }
    instrs[(*n)++] = it->instr;
    if (it->ends != NONE && l->event_of_step[it->ends] != NONE) instrs[(*n)++] = record_of(l, it->ends);
  }
}

/* Every stream waits for what the streams that copied the boundary in have done, also those of other jobs: what it
 * learns of the body before may have come by way of them. */
static void join_streams(lowering *l, planc_instr *instrs, int32_t *n) {
  int32_t n_jobs = l->trace->n_jobs, n_streams = l->plan->n_streams;
  if (planc_schedule_n_boundary(l->schedule) == 0) return;
  for (int32_t j = 0; j < n_jobs; j++) {
    int16_t stream = stream_of(j, PLANC_STREAM_H2D);
    instrs[(*n)++] = (planc_instr){.op = PLANC_INSTR_record, .stream = stream, .id = l->plan->n_events + j};
  }
  for (int32_t j = 0; j < n_jobs; j++) {
    for (int32_t t = 0; t < n_streams; t++) {
      if (t == stream_of(j, PLANC_STREAM_H2D)) continue;
      instrs[(*n)++] = (planc_instr){.op = PLANC_INSTR_wait, .stream = (int16_t)t, .id = l->plan->n_events + j};
    }
  }
  l->plan->n_events += n_jobs;
}

planc_status lowering_make_prologue(lowering *l) {
  bool *awaited; /* with lag 1, by step */
  planc_instr *instrs;
  int32_t n = 0;
  PLANC_TRY(PLANC_NEW(&l->arena, &awaited, l->n_steps));
  for (int64_t w = 0; w < l->waits.len; w++) awaited[l->waits.data[w].producer] |= l->waits.data[w].lag > 0;
  int64_t joins = (int64_t)l->trace->n_jobs * l->plan->n_streams;
  int64_t most = l->before.len + l->waits_before.len + joins + l->plan->n_events;
  PLANC_TRY(PLANC_NEW(l->memory, &instrs, most));
  emit_around(l, &l->before, &l->waits_before, 0, l->first_before, instrs, &n);
  join_streams(l, instrs, &n);
  for (int32_t i = 0; i < l->work.n_body; i++) {
    if (awaited[i]) instrs[n++] = record_of(l, i);
  }
  l->plan->prologue = (planc_section){n, instrs};
  return NULL;
}

planc_status lowering_make_epilogue(lowering *l) {
  planc_instr *instrs;
  int32_t n = 0;
  int64_t w = 0;
  while (w < l->waits.len && l->waits.data[w].step < l->work.n_body) w++;
  PLANC_TRY(PLANC_NEW(l->memory, &instrs, l->after.len + (l->waits.len - w) + l->plan->n_events));
  emit_around(l, &l->after, &l->waits, w, 0, instrs, &n);
  l->plan->epilogue = (planc_section){n, instrs};
  return NULL;
}
