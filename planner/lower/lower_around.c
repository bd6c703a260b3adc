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

static bool is_stored(const lowering *l, int32_t residency) {
  return residency < planc_schedule_n_parked(l->schedule) && slot_at(l, residency)->stored;
}

/* What a job has at the boundary is copied in, or back, in one step; what it has in storage in another one. */
static planc_status copy_boundary(lowering *l, arounds *edge, bool in, int32_t job, bool stored) {
  int64_t first = edge->len;
  int16_t stream = stream_of(job, in ? PLANC_STREAM_H2D : PLANC_STREAM_D2H);
  if (stored) stream = storage_stream_of(l, job, !in);
  int32_t n_parked = planc_schedule_n_parked(l->schedule);
  planc_step step = {.stream = stream, .first_touch = (int32_t)l->touches.len, .await = NONE};
  for (int32_t r = 0; r < planc_schedule_n_boundary(l->schedule); r++) {
    if (job_of(l, r) != job || is_stored(l, r) != stored) continue;
    PLANC_TRY(lowering_touch(l, r < n_parked ? touched_slot(l, r) : r, in));
    PLANC_TRY(add_around(edge, copy_of(stream, in ? r : PLANC_USER, in ? PLANC_USER : r, bytes_of(l, r))));
  }
  if (first == edge->len) return NULL;
  edge->data[first].begins = edge->data[edge->len - 1].ends = l->n_steps;
  return lowering_end_step(l, step);
}

planc_status lowering_make_around(lowering *l) {
  int32_t n_parked = planc_schedule_n_parked(l->schedule), n_boundary = planc_schedule_n_boundary(l->schedule);
  int32_t n_jobs = l->trace->n_jobs;
  for (int32_t j = 0; j < n_jobs; j++) PLANC_TRY(copy_boundary(l, &l->after, false, j, false));
  for (int32_t j = 0; j < n_jobs; j++) PLANC_TRY(copy_boundary(l, &l->after, false, j, true));
  for (int32_t r = 0; r < n_boundary; r++) PLANC_TRY(add_around(&l->after, release_of(r)));
  l->first_before = l->n_steps;
  for (int32_t r = 0; r < n_boundary; r++)
    PLANC_TRY(add_around(&l->before, r < n_parked ? acquire_slot(l, r) : acquire_of(l, r)));
  for (int32_t j = 0; j < n_jobs; j++) PLANC_TRY(copy_boundary(l, &l->before, true, j, false));
  for (int32_t j = 0; j < n_jobs; j++) PLANC_TRY(copy_boundary(l, &l->before, true, j, true));
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

/* The streams that copy the boundary in: of each job the one to its device, then the one to the storage. */
static int16_t copying_stream(const lowering *l, int32_t e) {
  int32_t n_jobs = l->trace->n_jobs;
  if (e < n_jobs) return stream_of(e, PLANC_STREAM_H2D);
  return storage_stream_of(l, e - n_jobs, false);
}

/* Every stream waits for what the streams that copied the boundary in have done, also those of other jobs: what it
 * learns of the body before may have come by way of them. */
static void join_streams(lowering *l, planc_instr *instrs, int32_t *n) {
  int32_t n_jobs = l->trace->n_jobs, n_copying = planc_has_storage(&l->addresses) ? 2 * n_jobs : n_jobs;
  if (planc_schedule_n_boundary(l->schedule) == 0) return;
  for (int32_t e = 0; e < n_copying; e++) {
    instrs[(*n)++] =
        (planc_instr){.op = PLANC_INSTR_record, .stream = copying_stream(l, e), .id = l->plan->n_events + e};
  }
  for (int32_t e = 0; e < n_copying; e++) {
    for (int32_t t = 0; t < l->plan->n_streams; t++) {
      if (t == copying_stream(l, e)) continue;
      instrs[(*n)++] = (planc_instr){.op = PLANC_INSTR_wait, .stream = (int16_t)t, .id = l->plan->n_events + e};
    }
  }
  l->plan->n_events += n_copying;
}

planc_status lowering_make_prologue(lowering *l) {
  bool *awaited; /* with lag 1, by step */
  planc_instr *instrs;
  int32_t n = 0;
  PLANC_TRY(PLANC_NEW(&l->arena, &awaited, l->n_steps));
  for (int64_t w = 0; w < l->waits.len; w++) awaited[l->waits.data[w].producer] |= l->waits.data[w].lag > 0;
  int64_t joins = 2 * (int64_t)l->trace->n_jobs * l->plan->n_streams;
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
