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

/* Going back from the end, what is known of the version that a buffer holds there. */
typedef struct present {
  int32_t there;       /* the instance up to which it is there, if it is kept */
  int32_t first, last; /* ahead of which it may have to be restored, `first` behind the forward pass */
} present;

static const present unread = {.there = -1, .first = PLANC_NEVER, .last = -1};

/* Something asks for the version ahead of the instances `first` to `last`. */
static void ask(present *version, int32_t first, int32_t last) {
  if (last <= version->there) return;
  if (first <= version->there) first = version->there + 1;
  if (first < version->first) version->first = first;
  if (last > version->last) version->last = last;
}

/* When an instance runs again. */
static present reruns(const planc_trace *trace, const present *versions, int32_t instance) {
  const planc_instance *in = &trace->instances[instance];
  present all = unread;
  if (planc_trace_phase(trace, instance) != PLANC_PHASE_forward || !planc_trace_recomputable(trace, instance))
    return all;
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &trace->accesses[a];
    const present *made = &versions[access->buffer];
    if (access->write >= 0 && !access->effect) ask(&all, made->first, made->last);
  }
  return all;
}

/* A kept buffer lives until its last access, and until the last recompute that reads its last version. Of its earlier
 * versions nothing is left behind their last readers: they are restored like what is dropped. */
static void mark_ends(const planc_trace *trace, present *versions, planc_drops *drops) {
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    drops->until[b] = planc_last_instance(trace, b);
    versions[b] = unread;
    if (drops->keep[b]) versions[b].there = trace->n_instances;
  }
  for (int32_t i = trace->n_instances - 1; i >= 0; i--) {
    const planc_instance *in = &trace->instances[i];
    bool forward = planc_trace_phase(trace, i) == PLANC_PHASE_forward;
    present again = reruns(trace, versions, i);
    drops->again[i] = again.first;
    for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
      const planc_access *access = &trace->accesses[a];
      present *version = &versions[access->buffer];
      int32_t *until = &drops->until[access->buffer];
      bool kept = drops->keep[access->buffer];
      if (access->write >= 0) *version = unread;
      if (access->read < 0) continue;
      if (kept && version->there < i) version->there = i;
      ask(version, forward ? PLANC_NEVER : i, i);
      if (access->effect) continue;
      ask(version, again.first, again.last);
      bool last = access->read == trace->buffers[access->buffer].last_version;
      if (kept && last && *until < again.last) *until = again.last;
    }
  }
}

planc_status planc_drops_new(const planc_trace *trace, planc_arena *arena, planc_drops *out) {
  PLANC_TRY(PLANC_NEW(arena, &out->keep, trace->n_buffers));
  PLANC_TRY(PLANC_NEW(arena, &out->until, trace->n_buffers));
  return PLANC_NEW(arena, &out->again, trace->n_instances);
}

planc_status planc_mark_drops(const planc_trace *trace, planc_arena *arena, planc_drops *drops) {
  int32_t *latest;
  present *versions;
  PLANC_TRY(PLANC_NEW(arena, &latest, trace->n_instances));
  PLANC_TRY(PLANC_NEW(arena, &versions, trace->n_buffers));
  PLANC_TRY(planc_mark_restorable(trace, true, arena, latest));
  keep_whole_ops(trace, drops->keep);
  for (int32_t b = 0; b < trace->n_buffers; b++) drops->keep[b] |= !planc_can_drop(trace, latest, b);
  mark_ends(trace, versions, drops);
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
  planc_drops drops;
  PLANC_TRY(planc_drops_new(walk->trace, arena, &drops));
  PLANC_TRY((*rule)(walk->trace, drops.keep));
  PLANC_TRY(planc_mark_drops(walk->trace, arena, &drops));
  out->until = drops.until;
  return drop(walk->trace, drops.keep, arena, out);
}

planc_status planc_recompute_plan(const planc_evaluator *evaluator, planc_keep_rule rule, planc_candidate *out) {
  planc_absence_rule absence_rule = {.choose = choose, .context = &rule};
  return planc_walk_fit(evaluator, planc_make_absences, &absence_rule, out);
}
