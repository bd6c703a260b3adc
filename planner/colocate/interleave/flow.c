/* The flow of memory (flow.h). */
#include "planner/colocate/interleave/flow.h"

#include "planner/colocate/memory/stream_chunks.h"
#include "util/vec.h"

typedef struct flowing {
  const pl_flow *of;
  pl_arena *arena;
  pl_stream_chunks chunks;
  VEC(pl_turn) turns;
  int64_t **residencies; /* by pass of the timing */
  int64_t **workspaces;
  bool fits;
} flowing;

/* A group that is gone through. */
typedef struct group_cursor {
  const pl_pairing_pass *pass; /* NULL: none */
  int32_t next, end;           /* commands */
  int64_t from_ns;
} group_cursor;

static planc_status flow_through(flowing *f, pl_merge *merge);
static planc_status start(flowing *f);
static planc_status go_through(flowing *f, int32_t pair);
static group_cursor cursor_at(const flowing *f, int32_t pair, int32_t stream);
static planc_status begin_pair(flowing *f, int32_t pair);
static int32_t find_next(const flowing *f, const group_cursor *cursors);
static planc_status allocate(flowing *f, const group_cursor *own, const group_cursor *other);

planc_status pl_flow_make(pl_arena *arena, const pl_flow *flow, pl_merge *merge, bool *out_fits) {
  flowing f = {.of = flow, .arena = arena, .fits = true};
  planc_status status = flow_through(&f, merge);
  *out_fits = !status && f.fits;
  pl_stream_chunks_free(&f.chunks);
  VEC_FREE(&f.turns);
  return status;
}

static planc_status flow_through(flowing *f, pl_merge *merge) {
  PLANC_TRY(start(f));
  for (int32_t pair = 0; f->fits && pair < f->of->pairs->n; pair++) PLANC_TRY(go_through(f, pair));
  merge->n_turns = f->turns.len;
  merge->residencies = f->of->blank ? NULL : f->residencies;
  merge->workspaces = f->of->blank ? NULL : f->workspaces;
  return pl_arena_copy(f->arena, f->turns.data, f->turns.len, sizeof *f->turns.data, (void *)&merge->turns);
}

static planc_status go_through(flowing *f, int32_t pair) {
  group_cursor cursors[PL_PAIR] = {cursor_at(f, pair, 0), cursor_at(f, pair, 1)};
  int32_t s;
  PLANC_TRY(begin_pair(f, pair));
  while (f->fits && (s = find_next(f, cursors)) >= 0) {
    group_cursor *own = &cursors[s];
    PLANC_TRY(allocate(f, own, &cursors[1 - s]));
    VEC_PUSH(&f->turns, ((pl_turn){own->pass->job, own->pass->iteration, own->next, own->next + 1, -1, false}));
    own->next++;
  }
  return NULL;
}

static planc_status start(flowing *f) {
  const pl_timing *t = f->of->timing;
  PLANC_TRY(PL_NEW(f->arena, &f->residencies, t->n_passes));
  PLANC_TRY(PL_NEW(f->arena, &f->workspaces, t->n_passes));
  for (int32_t j = 0; j < t->n_jobs; j++) {
    int32_t n = planc_schedule_n_residencies(t->jobs[j].schedule);
    for (int32_t p = t->first[j]; p < t->first[j] + t->iterations[j]; p++) {
      PLANC_TRY(pl_arena_copy(f->arena, f->of->kept[j], n, sizeof(int64_t), (void *)&f->residencies[p]));
      PLANC_TRY(PL_NEW(f->arena, &f->workspaces[p], planc_schedule_n_commands(t->jobs[j].schedule)));
    }
  }
  return pl_stream_chunks_init(&f->chunks, t->n_jobs, f->of->capacity_bytes);
}

/* --- Waiting ------------------------------------------------------------------------------------------------------ */

static planc_status wait_for(flowing *f, const pl_pairing_pass *pass, int32_t command, int32_t leader) {
  if (leader == pass->job) return NULL;
  VEC_PUSH(&f->turns, ((pl_turn){pass->job, pass->iteration, command, command, leader, false}));
  return NULL;
}

static const pl_pairing_pass *pass_at(const flowing *f, int32_t pair, int32_t stream) {
  int32_t pass = f->of->pairs->pairs[pair][stream].pass;
  return pass >= 0 ? &f->of->passes[pass] : NULL;
}

static int32_t command_at(const flowing *f, int32_t pair, int32_t stream) {
  const pl_paired *of = &f->of->pairs->pairs[pair][stream];
  return f->of->passes[of->pass].groups->groups[of->group].first;
}

/* Whoever is in a pair waits for the pair before, at last for the one that the period before has ended with. */
static planc_status wait_for_pair(flowing *f, int32_t pair) {
  int32_t before = (pair > 0 ? pair : f->of->pairs->n) - 1;
  for (int32_t s = 0; s < PL_PAIR; s++) {
    for (int32_t t = 0; t < PL_PAIR && pass_at(f, pair, s); t++)
      if (pass_at(f, before, t))
        PLANC_TRY(wait_for(f, pass_at(f, pair, s), command_at(f, pair, s), pass_at(f, before, t)->job));
  }
  return NULL;
}

static planc_status begin_pair(flowing *f, int32_t pair) {
  PLANC_TRY(pl_stream_chunks_sync(&f->chunks));
  return f->of->barriers ? wait_for_pair(f, pair) : NULL;
}

/* The allocator has synchronised the streams. */
static planc_status wait_for_each_other(flowing *f, const group_cursor *own, const group_cursor *other) {
  if (!f->of->barriers || !other->pass) return NULL;
  PLANC_TRY(wait_for(f, own->pass, own->next, other->pass->job));
  return wait_for(f, other->pass, other->next, own->pass->job);
}

/* --- Commands ----------------------------------------------------------------------------------------------------- */

static planc_status take_workspace(flowing *f, const group_cursor *own, const group_cursor *other, int64_t bytes,
                                   int64_t *out);
static planc_status take(flowing *f, const group_cursor *own, const group_cursor *other, int64_t bytes, int64_t *out);
static planc_status give(flowing *f, const group_cursor *own, int64_t address, int64_t bytes);

static planc_status allocate(flowing *f, const group_cursor *own, const group_cursor *other) {
  const pl_timing *t = f->of->timing;
  const planc_schedule *s = t->jobs[own->pass->job].schedule;
  const planc_command *command = &planc_schedule_commands(s)[own->next];
  int32_t pass = t->first[own->pass->job] + own->pass->iteration, r = command->residency;
  if (f->of->blank) return NULL;
  if (command->kind == PLANC_CMD_EXEC)
    return take_workspace(f, own, other, planc_schedule_variant(s, command).workspace_bytes,
                          &f->workspaces[pass][own->next]);
  if (command->kind != PLANC_CMD_ACQUIRE && command->kind != PLANC_CMD_RELEASE) return NULL;
  if (f->of->kept[own->pass->job][r] != PLANC_BLANK) return NULL;
  int64_t bytes = planc_schedule_bytes(s, r), *address = &f->residencies[pass][r];
  return command->kind == PLANC_CMD_ACQUIRE ? take(f, own, other, bytes, address) : give(f, own, *address, bytes);
}

static planc_status take_workspace(flowing *f, const group_cursor *own, const group_cursor *other, int64_t bytes,
                                   int64_t *out) {
  *out = PLANC_BLANK;
  if (bytes == 0) return NULL;
  PLANC_TRY(take(f, own, other, bytes, out));
  return f->fits ? give(f, own, *out, bytes) : NULL;
}

static planc_status take(flowing *f, const group_cursor *own, const group_cursor *other, int64_t bytes, int64_t *out) {
  bool synced;
  PLANC_TRY(pl_stream_chunks_take(&f->chunks, own->pass->job, bytes, out, &synced));
  f->fits = f->fits && *out >= 0;
  if (!f->fits) return NULL;
  *out += f->of->kept_bytes;
  return synced ? wait_for_each_other(f, own, other) : NULL;
}

static planc_status give(flowing *f, const group_cursor *own, int64_t address, int64_t bytes) {
  return pl_stream_chunks_give(&f->chunks, own->pass->job, address - f->of->kept_bytes, bytes);
}

/* --- Pairs -------------------------------------------------------------------------------------------------------- */

static const pl_pass *times_of(const flowing *f, const group_cursor *c) {
  return &f->of->timing->passes[f->of->timing->first[c->pass->job] + c->pass->iteration];
}

static group_cursor cursor_at(const flowing *f, int32_t pair, int32_t stream) {
  group_cursor c = {.pass = pass_at(f, pair, stream)};
  if (!c.pass) return c;
  const pl_node_group *group = &c.pass->groups->groups[f->of->pairs->pairs[pair][stream].group];
  c.next = group->first;
  c.end = group->end;
  c.from_ns = c.next < c.end ? times_of(f, &c)->at_ns[c.next] : 0;
  return c;
}

/* Which of the two has its next command first, when both begin together and each is as fast as alone; -1 = both have
 * ended. */
static int32_t find_next(const flowing *f, const group_cursor *cursors) {
  int32_t best = -1;
  int64_t earliest = 0;
  for (int32_t s = 0; s < PL_PAIR; s++) {
    const group_cursor *c = &cursors[s];
    if (!c->pass || c->next == c->end) continue;
    int64_t at = times_of(f, c)->at_ns[c->next] - c->from_ns;
    if (best >= 0 && at >= earliest) continue;
    best = s;
    earliest = at;
  }
  return best;
}
