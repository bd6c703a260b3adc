/* Recompute: what a policy does not keep leaves behind its last forward access, and is restored by running its writer
 * again (absences.h). */
#include "planner/choose/recompute.h"

#include "planner/choose/gaps.h"
#include "planner/choose/restorable.h"

/* Going back from the end, what is known of the version that a buffer holds there. */
typedef struct present {
  int32_t there;       /* the position up to which it is there, if it is kept */
  int32_t first, last; /* ahead of which it may have to be restored, `first` behind the forward pass */
} present;

static void keep_whole_ops(const planc_trace *trace, bool *keep);
static void mark_ends(const planc_order *order, present *versions, pl_drops *drops);
static planc_status choose(const void *context, const pl_walk *walk, pl_arena *arena, pl_absences *out);

planc_status pl_recompute_plan(const planc_evaluator *evaluator, pl_keep_rule rule, planc_candidate *out) {
  pl_absence_rule absence_rule = {.choose = choose, .context = &rule};
  return pl_walk_fit(evaluator, pl_make_absences, &absence_rule, out);
}

static planc_status choose(const void *context, const pl_walk *walk, pl_arena *arena, pl_absences *out) {
  const pl_keep_rule *rule = context;
  pl_drops drops;
  pl_absence *items;
  PLANC_TRY(PL_NEW(arena, &items, walk->trace->n_accesses));
  PLANC_TRY(pl_drops_new(walk->trace, arena, &drops));
  PLANC_TRY((*rule)(walk->order, drops.keep));
  PLANC_TRY(pl_mark_drops(walk->order, arena, &drops));
  *out = (pl_absences){.items = items, .until = drops.until};
  out->n = pl_drop(walk->order, &drops, NULL, items);
  return NULL;
}

/* --- What is dropped ---------------------------------------------------------------------------------------------- */

planc_status pl_drops_new(const planc_trace *trace, pl_arena *arena, pl_drops *out) {
  PLANC_TRY(PL_NEW(arena, &out->keep, trace->n_buffers));
  PLANC_TRY(PL_NEW(arena, &out->until, trace->n_buffers));
  return PL_NEW(arena, &out->again, trace->n_instances);
}

planc_status pl_mark_drops(const planc_order *order, pl_arena *arena, pl_drops *drops) {
  const planc_trace *trace = order->trace;
  int32_t *latest;
  present *versions;
  PLANC_TRY(PL_NEW(arena, &latest, trace->n_instances));
  PLANC_TRY(PL_NEW(arena, &versions, trace->n_buffers));
  PLANC_TRY(pl_mark_restorable(order, PL_KEPT_UNDROPPED, arena, latest));
  keep_whole_ops(trace, drops->keep);
  for (int32_t b = 0; b < trace->n_buffers; b++) drops->keep[b] |= !pl_can_drop(order, latest, b);
  mark_ends(order, versions, drops);
  return NULL;
}

int32_t pl_drop(const planc_order *order, const pl_drops *drops, const bool *brief, pl_absence *items) {
  int32_t n = 0;
  for (int32_t b = 0; b < order->trace->n_buffers; b++) {
    for (int32_t u = order->first_use[b] + 1; !drops->keep[b] && u < order->first_use[b + 1]; u++) {
      planc_gap gap;
      if (!pl_gap_ends(order, b, u, &gap) || planc_order_phase(order, gap.to) == PLANC_PHASE_forward) continue;
      if (planc_order_phase(order, gap.from) != PLANC_PHASE_forward && !(brief && brief[b])) continue;
      items[n++] =
          (pl_absence){.buffer = b, .version = gap.version, .copy = PL_NO_COPY, .leave = gap.from, .fetch = gap.to};
    }
  }
  return n;
}

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

static const present unread = {.there = -1, .first = PL_NEVER, .last = -1};

/* Something asks for the version ahead of the positions `first` to `last`. */
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
static void mark_ends(const planc_order *order, present *versions, pl_drops *drops) {
  const planc_trace *trace = order->trace;
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    drops->until[b] = planc_order_last(order, b);
    versions[b] = unread;
    if (drops->keep[b]) versions[b].there = order->n;
  }
  for (int32_t p = order->n - 1; p >= 0; p--) {
    const planc_instance *in = planc_order_instance(order, p);
    bool forward = planc_order_phase(order, p) == PLANC_PHASE_forward;
    present again = reruns(trace, versions, order->runs[p].instance);
    drops->again[order->runs[p].instance] = again.first;
    for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
      const planc_access *access = &trace->accesses[a];
      present *version = &versions[access->buffer];
      int32_t *until = &drops->until[access->buffer];
      bool kept = drops->keep[access->buffer];
      if (access->write >= 0) *version = unread;
      if (access->read < 0) continue;
      if (kept && version->there < p) version->there = p;
      ask(version, forward ? PL_NEVER : p, p);
      if (access->effect) continue;
      ask(version, again.first, again.last);
      bool last = access->read == trace->buffers[access->buffer].last_version;
      if (kept && last && *until < again.last) *until = again.last;
    }
  }
}
