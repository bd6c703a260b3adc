/* What awaits what (awaited.h). */
#include "planner/measured/awaited.h"

typedef struct pending {
  pl_awaited_node awaited;
  int32_t next; /* of the same stream, -1 after the last */
} pending;

typedef struct walk {
  pl_awaited_node *last;     /* by stream: its last timed instruction */
  pl_awaited_node *recorded; /* by event: the one before its last record */
  int32_t *waiting;          /* by stream: the first of what it waits for since `last`, -1 if nothing */
  pending *pending;
  int32_t n_pending;
} walk;

static planc_status make_walk(const planc_plan *plan, pl_arena *arena, walk *out);
static planc_status list_awaited(pl_awaited *out, const walk *at, const planc_instr *instr, int32_t timed);

/* Goes over the body twice, as the period before and as the one looked at. An event's last record is the one that a
 * wait means, for waits with lag 1 stand before the record. */
planc_status pl_awaited_find(const planc_plan *plan, const planc_timeline *timeline, const int32_t *timed_of,
                             pl_awaited *out) {
  const planc_section *body = &plan->body;
  walk at = {0};
  PLANC_TRY(make_walk(plan, &out->arena, &at));
  PLANC_TRY(PL_NEW(&out->arena, &out->first, (int64_t)timeline->n_timed + 1));
  for (int32_t back = 1; back >= 0; back--) {
    for (int32_t i = 0; i < body->n; i++) {
      const planc_instr *instr = &body->instrs[i];
      if (timed_of[i] >= 0) {
        if (back == 0) PLANC_TRY(list_awaited(out, &at, instr, timed_of[i]));
        at.last[instr->stream] = (pl_awaited_node){timed_of[i], back};
        at.waiting[instr->stream] = -1;
      } else if (instr->op == PLANC_INSTR_record) {
        at.recorded[instr->id] = at.last[instr->stream];
      } else if (instr->op == PLANC_INSTR_wait && at.recorded[instr->id].timed >= 0) {
        at.pending[at.n_pending] = (pending){at.recorded[instr->id], at.waiting[instr->stream]};
        at.waiting[instr->stream] = at.n_pending++;
      }
    }
  }
  return NULL;
}

void pl_awaited_free(pl_awaited *awaited) {
  VEC_FREE(&awaited->nodes);
  pl_arena_free(&awaited->arena);
}

planc_status pl_timed_of(const planc_plan *plan, const planc_timeline *timeline, pl_arena *arena, int32_t **out) {
  PLANC_TRY(PL_NEW(arena, out, plan->body.n));
  for (int32_t i = 0; i < plan->body.n; i++) (*out)[i] = -1;
  for (int32_t k = 0; k < timeline->n_timed; k++) (*out)[timeline->instrs[k]] = k;
  return NULL;
}

static planc_status make_walk(const planc_plan *plan, pl_arena *arena, walk *out) {
  PLANC_TRY(PL_NEW(arena, &out->last, plan->n_streams));
  PLANC_TRY(PL_NEW(arena, &out->recorded, plan->n_events));
  PLANC_TRY(PL_NEW(arena, &out->waiting, plan->n_streams));
  PLANC_TRY(PL_NEW(arena, &out->pending, 2 * (int64_t)plan->body.n));
  for (int32_t s = 0; s < plan->n_streams; s++) {
    out->last[s].timed = -1;
    out->waiting[s] = -1;
  }
  for (int32_t e = 0; e < plan->n_events; e++) out->recorded[e].timed = -1;
  return NULL;
}

static planc_status list_awaited(pl_awaited *out, const walk *at, const planc_instr *instr, int32_t timed) {
  VEC_PUSH(&out->nodes, at->last[instr->stream]);
  for (int32_t p = at->waiting[instr->stream]; p >= 0; p = at->pending[p].next)
    VEC_PUSH(&out->nodes, at->pending[p].awaited);
  out->first[timed + 1] = out->nodes.len;
  return NULL;
}
