/* When a walk opens memory for what other replicas send (walk.h). A first run notes the live bytes by position. From
 * the last one back it is then known from where on there is room, and a second run opens each buffer there. Buffers are
 * opened in the order of their readers, since their copies share one engine. */
#include <assert.h>

#include "planner/base/code.h"
#include "planner/choose/walk.h"
#include "util/math.h"

static planc_status run_received(pl_walk *walk, pl_walk_runner run, void *context, pl_arena *arena);
static planc_status list_received(pl_walk *walk, pl_arena *arena);
static planc_status run_without(pl_walk *walk, pl_walk_runner run, void *context, int64_t room);
static planc_status find_froms(const pl_walk *walk, pl_arena *arena);
static int64_t live_limit(const pl_walk *walk);
static planc_status start_anew(pl_walk *walk);
static int64_t received_bytes(const pl_walk *walk, int32_t first, int32_t end);

planc_status pl_walk_run(pl_walk *walk, pl_walk_runner run, void *context) {
  pl_arena arena = {0};
  planc_status status = run_received(walk, run, context, &arena);
  walk->live_at = NULL;
  walk->received = NULL;
  walk->n_received = walk->next_received = 0;
  pl_arena_free(&arena);
  return status;
}

planc_status pl_walk_reach(pl_walk *walk, int32_t position) {
  int32_t residency;
  walk->position = position;
  for (; walk->next_received < walk->n_received; walk->next_received++) {
    const pl_received *next = &walk->received[walk->next_received];
    if (next->from > position) break;
    PLANC_TRY(pl_walk_open(walk, next->buffer, &residency));
  }
  return NULL;
}

static planc_status run_received(pl_walk *walk, pl_walk_runner run, void *context, pl_arena *arena) {
  if (walk->reception == PL_RECEIVES_LATE) return run(walk, context);
  PLANC_TRY(list_received(walk, arena));
  if (walk->reception == PL_RECEIVES_AT_ONCE || walk->n_received == 0) return run(walk, context);
  PLANC_TRY(PL_NEW(arena, &walk->live_at, walk->order->n));
  bool first = walk->reception == PL_RECEIVES_FIRST && walk->room != PL_ROOM_UNLIMITED;
  int64_t room = walk->room - (first ? received_bytes(walk, 0, walk->n_received) : 0);
  PLANC_TRY(run_without(walk, run, context, room > 0 ? room : PL_ROOM_NONE));
  PLANC_TRY(find_froms(walk, arena));
  PLANC_TRY(start_anew(walk));
  return run(walk, context);
}

/* Each is read once, ahead of which it is to be opened at the latest. */
static planc_status list_received(pl_walk *walk, pl_arena *arena) {
  bool at_once = walk->reception == PL_RECEIVES_AT_ONCE;
  PLANC_TRY(PL_NEW(arena, &walk->received, walk->trace->n_buffers));
  for (int32_t p = 0; p < walk->order->n; p++) {
    const planc_instance *in = planc_order_instance(walk->order, p);
    for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
      int32_t buffer = walk->trace->accesses[a].buffer;
      if (walk->trace->buffers[buffer].peer < 0) continue;
      assert(walk->n_received < walk->trace->n_buffers);
      walk->received[walk->n_received++] = (pl_received){.buffer = buffer, .from = at_once ? 0 : p};
    }
  }
  return NULL;
}

/* Receives late, in another room, so that `live_at` tells what is live then. */
static planc_status run_without(pl_walk *walk, pl_walk_runner run, void *context, int64_t room) {
  int64_t whole = walk->room;
  walk->room = room;
  walk->next_received = walk->n_received;
  planc_status status = run(walk, context);
  walk->room = whole;
  return status;
}

static int64_t received_bytes(const pl_walk *walk, int32_t first, int32_t end) {
  int64_t sum = 0;
  for (int32_t k = first; k < end; k++)
    sum = pl_add_saturate(sum, pl_walk_bytes(&walk->trace->buffers[walk->received[k].buffer]));
  return sum;
}

/* Each is opened ahead of the first position from which on there is room for it and all that is read before it. */
static planc_status find_froms(const pl_walk *walk, pl_arena *arena) {
  int64_t *most_from, limit = live_limit(walk), read = 0, open = 0;
  int32_t n = walk->order->n, from = 0;
  PLANC_TRY(PL_NEW(arena, &most_from, n)); /* by position: the most live there or later, less what is read by then */
  for (int32_t p = 0, k = 0; p < n; p++) {
    for (; k < walk->n_received && walk->received[k].from == p; k++)
      read = pl_add_saturate(read, received_bytes(walk, k, k + 1));
    most_from[p] = walk->live_at[p] - read;
  }
  for (int32_t p = n - 1; p > 0; p--)
    if (most_from[p] > most_from[p - 1]) most_from[p - 1] = most_from[p];
  for (int32_t k = 0; k < walk->n_received; k++) {
    open = pl_add_saturate(open, received_bytes(walk, k, k + 1));
    while (from < walk->received[k].from && pl_add_saturate(most_from[from], open) > limit) from++;
    walk->received[k].from = from;
  }
  return NULL;
}

/* The most bytes that may be live with what is received. First and early: the room, so that the algorithms are those of
 * the first run at least. Beside: less than the most of the first run by all that is received, since addresses rarely
 * leave no gap. */
static int64_t live_limit(const pl_walk *walk) {
  int64_t arena = pl_arena_room(&walk->problem->terms, walk->problem->job.profile), most = 0;
  if (walk->reception != PL_RECEIVES_BESIDE)
    return walk->room == PL_ROOM_NONE || walk->room > arena ? arena : walk->room;
  for (int32_t p = 0; p < walk->order->n; p++)
    if (walk->live_at[p] > most) most = walk->live_at[p];
  return most - received_bytes(walk, 0, walk->n_received);
}

static planc_status start_anew(pl_walk *walk) {
  pl_walk first = *walk;
  PLANC_TRY(pl_walk_start(walk, first.problem, (pl_walk_room){first.room, first.reception}, first.candidate));
  walk->online = first.online;
  walk->received = first.received;
  walk->n_received = first.n_received;
  if (!walk->online) return NULL;
  pl_online_free(walk->online);
  return pl_online_init(walk->online, walk->problem);
}
