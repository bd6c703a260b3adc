/* When a walk opens memory for what other GPUs send (walk.h, planc_receives). */
#include "planner/base/code.h"
#include "planner/choose/walk.h"
#include "util/math.h"

static planc_status run_twice(pl_walk *walk, pl_walk_runner run, void *context, pl_arena *arena);
static planc_status list_sent(pl_walk *walk, pl_arena *arena);
static planc_status find_froms(const pl_walk *walk, pl_arena *arena);
static int64_t live_limit(const pl_walk *walk);

planc_status pl_walk_run(pl_walk *walk, pl_walk_runner run, void *context) {
  bool receives = false;
  for (int32_t j = 0; j < walk->trace->n_jobs; j++) receives |= walk->trace->jobs[j].replicas > 1;
  if (!receives || walk->candidate->receives == PLANC_RECEIVES_LATE) return run(walk, context);
  pl_arena arena = {0};
  planc_status status = run_twice(walk, run, context, &arena);
  walk->live_at = NULL;
  walk->n_sent = 0;
  pl_arena_free(&arena);
  return status;
}

planc_status pl_walk_reach(pl_walk *walk, int32_t position) {
  int32_t residency;
  walk->position = position;
  for (; walk->next_sent < walk->n_sent && walk->sent[walk->next_sent].from <= position; walk->next_sent++)
    PLANC_TRY(pl_walk_open(walk, walk->sent[walk->next_sent].buffer, &residency));
  return NULL;
}

static planc_status run_twice(pl_walk *walk, pl_walk_runner run, void *context, pl_arena *arena) {
  PLANC_TRY(PL_NEW(arena, &walk->live_at, walk->order->n));
  PLANC_TRY(run(walk, context));
  PLANC_TRY(list_sent(walk, arena));
  PLANC_TRY(find_froms(walk, arena));
  pl_walk first = *walk;
  PLANC_TRY(pl_walk_start(walk, first.problem, first.room, first.candidate));
  walk->online = first.online;
  walk->sent = first.sent;
  walk->n_sent = first.n_sent;
  if (!walk->online) return run(walk, context);
  pl_online_free(walk->online);
  PLANC_TRY(pl_online_init(walk->online, walk->problem));
  return run(walk, context);
}

/* In the order of their readers, which is where they are opened at the latest. */
static planc_status list_sent(pl_walk *walk, pl_arena *arena) {
  PLANC_TRY(PL_NEW(arena, &walk->sent, walk->trace->n_buffers));
  for (int32_t p = 0; p < walk->order->n; p++) {
    const planc_instance *in = planc_order_instance(walk->order, p);
    for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
      int32_t buffer = walk->trace->accesses[a].buffer;
      if (walk->trace->buffers[buffer].peer >= 0) walk->sent[walk->n_sent++] = (pl_sent){.buffer = buffer, .from = p};
    }
  }
  return NULL;
}

static int64_t sent_bytes(const pl_walk *walk, int32_t k) {
  return pl_walk_bytes(&walk->trace->buffers[walk->sent[k].buffer]);
}

/* Each gets memory ahead of the first position from which on there is room for it and all that is read before it. */
static planc_status find_froms(const pl_walk *walk, pl_arena *arena) {
  int64_t *most_from, limit = live_limit(walk), read = 0, sent = 0;
  int32_t n = walk->order->n, from = 0;
  PLANC_TRY(PL_NEW(arena, &most_from, n)); /* by position: the most live there or later, less what is read by then */
  for (int32_t p = 0, k = 0; p < n; p++) {
    for (; k < walk->n_sent && walk->sent[k].from == p; k++) read = pl_add_saturate(read, sent_bytes(walk, k));
    most_from[p] = walk->live_at[p] - read;
  }
  for (int32_t p = n - 1; p > 0; p--)
    if (most_from[p] > most_from[p - 1]) most_from[p - 1] = most_from[p];
  for (int32_t k = 0; k < walk->n_sent; k++) {
    sent = pl_add_saturate(sent, sent_bytes(walk, k));
    while (from < walk->sent[k].from && pl_add_saturate(most_from[from], sent) > limit) from++;
    walk->sent[k].from = from;
  }
  return NULL;
}

/* What may be live with all that is sent. Up to the budget the algorithms find the room that they would without. Below
 * what is live anyway as much again as is sent stays free, since addresses rarely leave no gap. */
static int64_t live_limit(const pl_walk *walk) {
  int64_t arena = pl_arena_room(&walk->problem->terms, walk->problem->job.profile), most = 0;
  if (walk->candidate->receives == PLANC_RECEIVES_EARLY)
    return walk->room == PL_ROOM_NONE || walk->room > arena ? arena : walk->room;
  for (int32_t p = 0; p < walk->order->n; p++)
    if (walk->live_at[p] > most) most = walk->live_at[p];
  for (int32_t k = 0; k < walk->n_sent; k++) most -= sent_bytes(walk, k);
  return most;
}
