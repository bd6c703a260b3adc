/* Recompute: what a policy does not keep leaves behind its last forward access, and is restored by running its writer
 * again (absences.h). */
#include "planner/choose/recompute.h"

#include "planner/choose/absences.h"

/* An op with one output to keep keeps all: it would have to run again for the others. */
static void keep_whole_ops(const planc_trace *trace, bool *keep) {
  for (int32_t i = 0; i < trace->n_instances; i++) {
    if (planc_trace_phase(trace, i) != PLANC_PHASE_forward) continue;
    const planc_instance *in = &trace->instances[i];
    bool any = false;
    for (int32_t pass = 0; pass < 2; pass++) {
      for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
        const planc_access *access = &trace->accesses[a];
        if (access->write < 0 || access->effect) continue;
        any |= keep[access->buffer];
        if (pass == 1) keep[access->buffer] |= any;
      }
    }
  }
}

/* A kept buffer lives until its last access, and until the last access of whatever is dropped and restored from it. */
static void mark_ends(const planc_trace *trace, const bool *keep, int32_t *until) {
  for (int32_t b = 0; b < trace->n_buffers; b++) until[b] = planc_last_instance(trace, b);
  for (int32_t i = trace->n_instances - 1; i >= 0; i--) {
    const planc_instance *in = &trace->instances[i];
    if (planc_trace_phase(trace, i) != PLANC_PHASE_forward) continue;
    int32_t needed = -1;
    for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
      const planc_access *access = &trace->accesses[a];
      bool dropped = access->write >= 0 && !access->effect && !keep[access->buffer];
      if (dropped && until[access->buffer] > needed) needed = until[access->buffer];
    }
    for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
      const planc_access *access = &trace->accesses[a];
      bool read = access->read >= 0 && !access->effect;
      if (read && needed > until[access->buffer]) until[access->buffer] = needed;
    }
  }
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    if (!keep[b]) until[b] = planc_last_instance(trace, b);
  }
}

planc_status planc_mark_drops(const planc_trace *trace, planc_arena *arena, bool *keep, int32_t *until) {
  int32_t *latest;
  PLANC_TRY(PLANC_NEW(arena, &latest, trace->n_instances));
  PLANC_TRY(planc_mark_restorable(trace, true, arena, latest));
  keep_whole_ops(trace, keep);
  for (int32_t b = 0; b < trace->n_buffers; b++) keep[b] |= !planc_can_drop(trace, latest, b);
  mark_ends(trace, keep, until);
  return NULL;
}

/* What is not kept is away from its last forward access to the next that reads. */
static planc_status drop(const planc_trace *trace, const bool *keep, planc_arena *arena, planc_absences *out) {
  planc_absence *items;
  PLANC_TRY(PLANC_NEW(arena, &items, trace->n_accesses));
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    for (int32_t i = buffer->first_access + 1; !keep[b] && i < buffer->first_access + buffer->n_accesses; i++) {
      const planc_access *from = &trace->accesses[trace->by_buffer[i - 1]], *to = &trace->accesses[trace->by_buffer[i]];
      if (planc_trace_phase(trace, from->instance) != PLANC_PHASE_forward ||
          planc_trace_phase(trace, to->instance) == PLANC_PHASE_forward || to->read < 0)
        continue;
      items[out->n++] = (planc_absence){
          .buffer = b, .version = to->read, .copy = PLANC_NO_COPY, .leave = from->instance, .fetch = to->instance};
    }
  }
  out->items = items;
  return NULL;
}

static planc_status choose(const void *context, const planc_walk *walk, planc_arena *arena, planc_absences *out) {
  const planc_keep_rule *rule = context;
  bool *keep;
  int32_t *until;
  PLANC_TRY(PLANC_NEW(arena, &keep, walk->trace->n_buffers));
  PLANC_TRY(PLANC_NEW(arena, &until, walk->trace->n_buffers));
  PLANC_TRY((*rule)(walk->trace, keep));
  PLANC_TRY(planc_mark_drops(walk->trace, arena, keep, until));
  out->until = until;
  return drop(walk->trace, keep, arena, out);
}

planc_status planc_recompute_plan(const planc_problem *problem, planc_keep_rule rule, planc_candidate *out) {
  planc_absence_rule absence_rule = {.choose = choose, .context = &rule};
  return planc_walk_fit(problem, planc_make_absences, &absence_rule, out);
}
