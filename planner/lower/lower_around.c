/* What comes before and after all bodies (lowering.h).
 *
 * The prologue copies what persists from the user to where the boundary has it. Then every stream waits for these
 * copies, and only after that the prologue records, as body -1, the events that body and epilogue wait on with lag 1:
 * so no stream touches the boundary before it is there. The epilogue waits for what the last body wrote, or where there
 * was no body for the prologue, and copies the boundary back to the user. */
#include <assert.h>

/* What comes before and after all bodies (lowering.h).
 *
 * The prologue copies what persists from the user to where the boundary has it. Then every stream waits for these
 * copies, and only after that the prologue records, as body -1, the events that body and epilogue wait on with lag 1:
 * so no stream touches the boundary before it is there. The epilogue waits for what the last body wrote, or where there
 * was no body for the prologue, and copies the boundary back to the user. */
#include <assert.h>

#include "plan/memories.h"
#include "planner/lower/lowering.h"

static planc_status copy_boundary(lowering *l, lower_arounds *arounds, bool in);
static planc_status add_around(lower_arounds *arounds, planc_instr instr);

planc_status lower_make_around(lowering *l) {
  int32_t n_boundary = l->plan->n_boundary;
  PLANC_TRY(copy_boundary(l, &l->after, false));
  for (int32_t r = 0; r < n_boundary; r++) PLANC_TRY(add_around(&l->after, lower_release_of(r)));
  l->first_before = l->n_steps;
  for (int32_t r = 0; r < n_boundary; r++)
    PLANC_TRY(add_around(&l->before, lower_acquire_of(l, r, l->plan->boundary[r])));
  return copy_boundary(l, &l->before, true);
}

/* --- Steps -------------------------------------------------------------------------------------------------------- */

static planc_status copy_share(lowering *l, lower_arounds *arounds, bool in, int16_t stream, int32_t first,
                               const int32_t *next);
static planc_route route_around(const lowering *l, int32_t memory, bool in);

/* Makes the steps: one for what each job copies by each route. */
static planc_status copy_boundary(lowering *l, lower_arounds *arounds, bool in) {
  int32_t n_jobs = l->trace->n_jobs, n_shares = n_jobs * PLANC_N_ROUTES, *first, *next;
  PLANC_TRY(PL_NEW(&l->arena, &first, n_shares));
  PLANC_TRY(PL_NEW(&l->arena, &next, l->plan->n_boundary));
  for (int32_t e = 0; e < n_shares; e++) first[e] = LOWER_NONE;
  for (int32_t r = l->plan->n_boundary - 1; r >= 0; r--) {
    int32_t *share = &first[(int32_t)route_around(l, l->plan->boundary[r].memory, in) * n_jobs + lower_job_of(l, r)];
    next[r] = *share;
    *share = r;
  }
  for (int32_t e = 0; e < n_shares; e++)
    PLANC_TRY(copy_share(l, arounds, in, lower_stream_of(l, e % n_jobs, e / n_jobs), first[e], next));
  return NULL;
}

/* What one stream copies in, or back, is one step: it is waited for as a whole. */
static planc_status copy_share(lowering *l, lower_arounds *arounds, bool in, int16_t stream, int32_t first,
                               const int32_t *next) {
  if (first == LOWER_NONE) return NULL;
  int32_t n_away = planc_schedule_n_away(l->schedule);
  int64_t begins = arounds->len;
  pl_step step = {.stream = stream, .first_touch = (int32_t)l->touches.len, .await = LOWER_NONE};
  for (int32_t r = first; r != LOWER_NONE; r = next[r]) {
    PLANC_TRY(lower_touch(l, r < n_away ? lower_touched_slot(l, r) : r, in));
    PLANC_TRY(
        add_around(arounds, lower_copy_of(stream, in ? r : PLANC_USER, in ? PLANC_USER : r, lower_bytes_of(l, r))));
  }
  arounds->data[begins].begins = arounds->data[arounds->len - 1].ends = l->n_steps;
  return lower_end_step(l, step);
}

/* By which route what is in a memory comes from the user or goes back. */
static planc_route route_around(const lowering *l, int32_t memory, bool in) {
  int32_t user = pl_user_memory(l->plan);
  return in ? pl_memories_route(&l->addresses.away.memories, user, memory)
            : pl_memories_route(&l->addresses.away.memories, memory, user);
}

static planc_status add_around(lower_arounds *arounds, planc_instr instr) {
  VEC_PUSH(arounds, ((lower_around){instr, LOWER_NONE, LOWER_NONE}));
  return NULL;
}

/* --- Instructions ------------------------------------------------------------------------------------------------- */

static int32_t list_copying(const lowering *l, int16_t *streams);
static void emit_around(const lowering *l, const lower_arounds *arounds, const pl_waits *waits, int64_t w,
                        int32_t first_step, planc_instr *instrs, int32_t *n);
static void join_streams(lowering *l, const int16_t *copying, int32_t n_copying, planc_instr *instrs, int32_t *n);

planc_status lower_make_prologue(lowering *l) {
  bool *awaited; /* with lag 1, by step */
  planc_instr *instrs;
  int16_t *copying;
  int32_t n = 0;
  PLANC_TRY(PL_NEW(&l->arena, &awaited, l->n_steps));
  PLANC_TRY(PL_NEW(&l->arena, &copying, l->plan->n_streams));
  for (int64_t w = 0; w < l->waits.len; w++) awaited[l->waits.data[w].producer] |= l->waits.data[w].lag > 0;
  int32_t n_copying = list_copying(l, copying);
  int64_t joins = 2 * (int64_t)n_copying + l->plan->n_streams;
  int64_t most = l->before.len + l->waits_before.len + joins + l->plan->n_events;
  PLANC_TRY(PL_NEW(l->memory, &instrs, most));
  emit_around(l, &l->before, &l->waits_before, 0, l->first_before, instrs, &n);
  join_streams(l, copying, n_copying, instrs, &n);
  for (int32_t i = 0; i < l->work.n_body; i++) {
    if (awaited[i]) instrs[n++] = lower_record_of(l, i);
  }
  assert(n <= most);
  l->plan->prologue = (planc_section){n, instrs};
  return NULL;
}

planc_status lower_make_epilogue(lowering *l) {
  planc_instr *instrs;
  int32_t n = 0;
  int64_t w = 0;
  while (w < l->waits.len && l->waits.data[w].step < l->work.n_body) w++;
  PLANC_TRY(PL_NEW(l->memory, &instrs, l->after.len + (l->waits.len - w) + l->plan->n_events));
  emit_around(l, &l->after, &l->waits, w, 0, instrs, &n);
  l->plan->epilogue = (planc_section){n, instrs};
  return NULL;
}

/* The streams that copy in what persists: each job's for the routes that lead from the user to some memory. */
static int32_t list_copying(const lowering *l, int16_t *streams) {
  int32_t n = 0;
  for (int32_t e = 0; e < PLANC_N_ROUTES * l->trace->n_jobs; e++) {
    int32_t job = e % l->trace->n_jobs, route = e / l->trace->n_jobs;
    bool leads_in = false;
    for (int32_t m = 0; m < pl_user_memory(l->plan); m++) leads_in |= (int32_t)route_around(l, m, true) == route;
    if (leads_in && lower_stream_of(l, job, route) >= 0) streams[n++] = lower_stream_of(l, job, route);
  }
  return n;
}

/* Appends the instructions of prologue or epilogue with the waits and records that their steps need. `w` is the first
 * such wait. */
static void emit_around(const lowering *l, const lower_arounds *arounds, const pl_waits *waits, int64_t w,
                        int32_t first_step, planc_instr *instrs, int32_t *n) {
  for (int64_t i = 0; i < arounds->len; i++) {
    const lower_around *it = &arounds->data[i];
    for (; it->begins != LOWER_NONE && w < waits->len && waits->data[w].step + first_step == it->begins; w++) {
      instrs[(*n)++] = lower_wait_of(l, &waits->data[w], first_step);
    }
    instrs[(*n)++] = it->instr;
    if (it->ends != LOWER_NONE && l->event_of_step[it->ends] != LOWER_NONE)
      instrs[(*n)++] = lower_record_of(l, it->ends);
  }
}

/* Every stream waits for the streams that copied the boundary in, also those of other jobs: what it learns of the body
 * before may have come by way of them. The first of them waits for the others and all wait for the first, so that there
 * are no more waits than twice the streams. */
static void join_streams(lowering *l, const int16_t *copying, int32_t n_copying, planc_instr *instrs, int32_t *n) {
  if (l->plan->n_boundary == 0) return;
  assert(n_copying > 0); /* what persists came by one of these */
  int32_t joined = l->plan->n_events + n_copying - 1;
  int16_t first = copying[0];
  for (int32_t e = 1; e < n_copying; e++) {
    int32_t event = l->plan->n_events + e - 1;
    instrs[(*n)++] = (planc_instr){.op = PLANC_INSTR_record, .stream = copying[e], .id = event};
    instrs[(*n)++] = (planc_instr){.op = PLANC_INSTR_wait, .stream = first, .id = event};
  }
  instrs[(*n)++] = (planc_instr){.op = PLANC_INSTR_record, .stream = first, .id = joined};
  for (int32_t t = 0; t < l->plan->n_streams; t++) {
    if (t != first) instrs[(*n)++] = (planc_instr){.op = PLANC_INSTR_wait, .stream = (int16_t)t, .id = joined};
  }
  l->plan->n_events += n_copying;
}
