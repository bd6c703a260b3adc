/* Compaction (compact.h). Greedy placement gives every residency a place to be preferred, as if there were more room.
 * The commands are then stated again one after the other, over what lies where: what has no such place within the room,
 * or finds it taken, gets another one, and where there is none room is made by moves ahead of the command. What
 * persists goes back to where it began behind the last command.
 *
 * Where that finds no way, what is large gets places within the room, as if the rest took none, and keeps to them: what
 * is small makes way for it. */
#include "planner/choose/compact.h"

#include <assert.h>

#include "planner/base/copy_ns.h"
#include "planner/memory/blocks.h"
#include "util/math.h"

enum { NONE = -1 };

typedef struct compacting {
  const planc_schedule *from;
  planc_schedule *to;
  int64_t room;
  int64_t large; /* what has so many bytes has the place that is preferred, if others in it can be moved */
  pl_arena arena;
  int64_t *preferred, *preferred_workspaces; /* addresses by residency and by command of `from` */
  pl_blocks blocks;                          /* owners are residencies of `from` */
  int64_t *bytes;                            /* by residency of `from`, rounded up; 0 of what is away */
  int64_t *address;                          /* where it lies now */
  int32_t *residency;                        /* of `to` that it is now */
  int32_t *first;                            /* of `to` that it was when it was opened */
  int32_t *start, *end;                      /* commands */
  int32_t *opened;                           /* by command: how many residencies lower ones have opened */
  int32_t *in_order;                         /* all that are opened, in their order */
  int32_t *n_open;                           /* by buffer, on the device */
  int64_t now_ns,
      free_ns[PLANC_N_ROUTES]; /* what ops have taken, and when each link has made its copies, if none waits */
  int64_t *copied_ns;          /* by buffer: when its last copy has been made */
  int32_t command;
} compacting;

static bool can_compact(const planc_evaluator *evaluator, const planc_candidate *candidate);
static planc_status try_compacting(const planc_evaluator *evaluator, int64_t room, int64_t large,
                                   planc_candidate *candidate, bool *out_fits);
static planc_status prepare(compacting *c, const planc_evaluator *evaluator, const planc_candidate *candidate);
static planc_status prefer_large(compacting *c, const planc_evaluator *evaluator, const planc_candidate *candidate,
                                 bool *out_found);
static planc_status state_again(compacting *c, const planc_evaluator *evaluator, planc_candidate *candidate,
                                bool *out_fits);
static planc_status compact(compacting *c, bool *out_fits);
static void list_commands(compacting *c);
static int64_t workspace_of(const compacting *c, int32_t command);
static planc_status open_boundary(compacting *c, bool *out_fits);
static planc_status state_command(compacting *c, bool *out_fits);
static planc_status go_home(compacting *c, bool *out_fits);

planc_status pl_compact(const planc_evaluator *evaluator, int64_t room, planc_candidate *candidate, bool *out_fits) {
  static const int32_t of_room[] = {256, 64, 16}; /* parts of it that are large */
  *out_fits = false;
  if (!can_compact(evaluator, candidate)) return NULL;
  PLANC_TRY(try_compacting(evaluator, room, INT64_MAX, candidate, out_fits));
  for (size_t k = 0; !*out_fits && k < sizeof of_room / sizeof *of_room; k++)
    PLANC_TRY(try_compacting(evaluator, room, pl_max(room / of_room[k], PLANC_ALIGNMENT), candidate, out_fits));
  return NULL;
}

static planc_status try_compacting(const planc_evaluator *evaluator, int64_t room, int64_t large,
                                   planc_candidate *candidate, bool *out_fits) {
  compacting c = {.from = candidate->schedule, .room = room / PLANC_ALIGNMENT * PLANC_ALIGNMENT, .large = large};
  bool found = true;
  planc_status status = prepare(&c, evaluator, candidate);
  if (!status && large < INT64_MAX) status = prefer_large(&c, evaluator, candidate, &found);
  if (!status && found) status = state_again(&c, evaluator, candidate, out_fits);
  pl_arena_free(&c.arena);
  return planc_context(status, "compacting");
}

/* The candidate keeps the schedule that it had where that fails or finds no way. */
static planc_status state_again(compacting *c, const planc_evaluator *evaluator, planc_candidate *candidate,
                                bool *out_fits) {
  planc_schedule *before = candidate->schedule;
  candidate->schedule = NULL;
  planc_status status = planc_candidate_schedule(evaluator->problem, candidate);
  c->to = candidate->schedule;
  if (!status) status = compact(c, out_fits);
  if (status || !*out_fits) {
    planc_schedule_free(candidate->schedule);
    candidate->schedule = before;
  } else {
    planc_schedule_free(before);
  }
  return status;
}

static bool can_compact(const planc_evaluator *evaluator, const planc_candidate *candidate) {
  const planc_schedule *s = candidate->schedule;
  if (evaluator->target.terms->placement != PLANC_PLACEMENT_BEST_FIT) return false; /* any chunks will do there */
  if (candidate->trace->n_jobs != 1 || planc_trace_replicas(candidate->trace) != 1) return false;
  if (planc_schedule_n_compute(s, 0) != 1) return false;
  for (int32_t r = 0; r < planc_schedule_n_residencies(s); r++)
    if (!planc_schedule_is_away(s, r) && planc_schedule_residencies(s)[r].address != PLANC_BLANK) return false;
  return true;
}

static planc_status prepare(compacting *c, const planc_evaluator *evaluator, const planc_candidate *candidate) {
  const planc_schedule *s = c->from;
  int32_t n = planc_schedule_n_residencies(s), n_commands = planc_schedule_n_commands(s);
  planc_candidate in_any_room = *candidate;
  int64_t top;
  PLANC_TRY(PL_NEW(&c->arena, &c->preferred, n));
  PLANC_TRY(PL_NEW(&c->arena, &c->preferred_workspaces, n_commands));
  in_any_room.room = 0;
  PLANC_TRY(evaluator->place(evaluator, &in_any_room, 0, c->preferred, c->preferred_workspaces, &top));
  PLANC_TRY(pl_blocks_make(&c->arena, n, c->room, &c->blocks));
  PLANC_TRY(PL_NEW(&c->arena, &c->address, n));
  PLANC_TRY(PL_NEW(&c->arena, &c->residency, n));
  PLANC_TRY(PL_NEW(&c->arena, &c->first, n));
  PLANC_TRY(PL_NEW(&c->arena, &c->start, n));
  PLANC_TRY(PL_NEW(&c->arena, &c->n_open, planc_schedule_trace(s)->n_buffers));
  PLANC_TRY(PL_NEW(&c->arena, &c->copied_ns, planc_schedule_trace(s)->n_buffers));
  PLANC_TRY(PL_NEW(&c->arena, &c->end, n));
  PLANC_TRY(PL_NEW(&c->arena, &c->bytes, n));
  PLANC_TRY(PL_NEW(&c->arena, &c->in_order, n));
  PLANC_TRY(PL_NEW(&c->arena, &c->opened, (int64_t)n_commands + 1));
  for (int32_t r = 0; r < n; r++) {
    c->residency[r] = NONE;
    c->end[r] = n_commands;
    if (!planc_schedule_is_away(s, r))
      c->bytes[r] =
          pl_align_up(planc_schedule_trace(s)->buffers[planc_schedule_residencies(s)[r].buffer].bytes, PLANC_ALIGNMENT);
  }
  list_commands(c);
  return NULL;
}

/* False where there are no such places. */
static planc_status prefer_large(compacting *c, const planc_evaluator *evaluator, const planc_candidate *candidate,
                                 bool *out_found) {
  const planc_schedule *s = c->from;
  planc_candidate in_room = *candidate;
  int64_t *residencies, *workspaces, top;
  PLANC_TRY(PL_NEW(&c->arena, &residencies, planc_schedule_n_residencies(s)));
  PLANC_TRY(PL_NEW(&c->arena, &workspaces, planc_schedule_n_commands(s)));
  in_room.room = c->room;
  PLANC_TRY(evaluator->place(evaluator, &in_room, c->large, residencies, workspaces, &top));
  *out_found = top <= c->room;
  for (int32_t r = 0; r < planc_schedule_n_residencies(s); r++)
    if (c->bytes[r] >= c->large) c->preferred[r] = residencies[r];
  for (int32_t k = 0; k < planc_schedule_n_commands(s); k++)
    if (workspace_of(c, k) >= c->large) c->preferred_workspaces[k] = workspaces[k];
  return NULL;
}

static void list_commands(compacting *c) {
  int32_t n = 0, n_commands = planc_schedule_n_commands(c->from);
  for (int32_t k = 0; k < n_commands; k++) {
    const planc_command *command = &planc_schedule_commands(c->from)[k];
    c->opened[k] = n;
    if (command->kind == PLANC_CMD_RELEASE) c->end[command->residency] = k;
    if (command->kind != PLANC_CMD_ACQUIRE) continue;
    c->start[command->residency] = k;
    c->in_order[n++] = command->residency;
  }
  c->opened[n_commands] = n;
}

/* 0 of what is no exec. */
static int64_t workspace_of(const compacting *c, int32_t command) {
  const planc_command *it = &planc_schedule_commands(c->from)[command];
  if (it->kind != PLANC_CMD_EXEC) return 0;
  return pl_align_up(planc_schedule_variant(c->from, it).workspace_bytes, PLANC_ALIGNMENT);
}

static planc_status compact(compacting *c, bool *out_fits) {
  *out_fits = true;
  PLANC_TRY(open_boundary(c, out_fits));
  for (c->command = 0; *out_fits && c->command < planc_schedule_n_commands(c->from); c->command++)
    PLANC_TRY(state_command(c, out_fits));
  if (*out_fits) PLANC_TRY(go_home(c, out_fits));
  return *out_fits ? planc_schedule_finish(c->to) : NULL;
}

/* --- Commands ----------------------------------------------------------------------------------------------------- */

static int64_t place_for(const compacting *c, int64_t preferred, int64_t bytes, int32_t end);
static planc_status find_place(compacting *c, int64_t preferred, int64_t bytes, int32_t end, int64_t *out_address);
static planc_status move(compacting *c, int32_t residency, int64_t to);
static void put(compacting *c, int32_t residency, int64_t address);

static bool put_boundary(compacting *c, bool large);

/* Nothing moves ahead of the first command: what persists has the place that is preferred, or any. */
static planc_status open_boundary(compacting *c, bool *out_fits) {
  const planc_schedule *s = c->from;
  *out_fits = put_boundary(c, true) && put_boundary(c, false);
  for (int32_t r = 0; *out_fits && r < planc_schedule_n_boundary(s); r++) {
    const planc_residency *of = &planc_schedule_residencies(s)[r];
    int64_t address = planc_schedule_is_away(s, r) ? PLANC_BLANK : c->address[r];
    PLANC_TRY(planc_schedule_boundary(c->to, of->buffer, of->memory, address, &c->residency[r]));
    c->first[r] = c->residency[r];
    c->n_open[of->buffer] += !planc_schedule_is_away(s, r);
  }
  return NULL;
}

/* Either what is large or what is not; false where not all finds a place. */
static bool put_boundary(compacting *c, bool large) {
  for (int32_t r = 0; r < planc_schedule_n_boundary(c->from); r++) {
    if (c->bytes[r] == 0 || (c->bytes[r] >= c->large) != large) continue;
    int64_t address = place_for(c, c->preferred[r], c->bytes[r], planc_schedule_n_commands(c->from));
    if (address == PL_NO_ADDRESS) return false;
    put(c, r, address);
  }
  return true;
}

static planc_status state_acquire(compacting *c, const planc_command *command, bool *out_fits);
static planc_status state_exec(compacting *c, const planc_command *command, bool *out_fits);
static planc_status state_copy(compacting *c, const planc_command *command);

static planc_status state_command(compacting *c, bool *out_fits) {
  const planc_command *command = &planc_schedule_commands(c->from)[c->command];
  switch (command->kind) {
    case PLANC_CMD_EXEC:
      return state_exec(c, command, out_fits);
    case PLANC_CMD_ACQUIRE:
      return state_acquire(c, command, out_fits);
    case PLANC_CMD_RELEASE:
      if (c->bytes[command->residency] > 0) pl_blocks_take(&c->blocks, c->address[command->residency]);
      c->n_open[planc_schedule_residencies(c->from)[command->residency].buffer]--;
      return planc_schedule_release(c->to, c->residency[command->residency]);
    case PLANC_CMD_COPY:
      return state_copy(c, command);
    default:
      assert(command->kind == PLANC_CMD_AWAIT);
      return planc_schedule_await(c->to, planc_schedule_route(c->from, command->stream), c->first[command->residency]);
  }
}

static planc_status state_acquire(compacting *c, const planc_command *command, bool *out_fits) {
  int32_t r = command->residency;
  const planc_residency *of = &planc_schedule_residencies(c->from)[r];
  int64_t address = 0;
  if (c->bytes[r] > 0) {
    PLANC_TRY(find_place(c, c->preferred[r], c->bytes[r], c->end[r], &address));
    *out_fits = address != PL_NO_ADDRESS;
    if (!*out_fits) return NULL;
    put(c, r, address);
  }
  PLANC_TRY(planc_schedule_acquire(c->to, of->buffer, of->memory, address, &c->residency[r]));
  c->first[r] = c->residency[r];
  c->n_open[of->buffer]++;
  return NULL;
}

static planc_status state_exec(compacting *c, const planc_command *command, bool *out_fits) {
  int64_t bytes = workspace_of(c, c->command), address = 0;
  if (bytes > 0) {
    PLANC_TRY(find_place(c, c->preferred_workspaces[c->command], bytes, c->command + 1, &address));
    *out_fits = address != PL_NO_ADDRESS;
    if (!*out_fits) return NULL;
  }
  c->now_ns = pl_add_saturate(c->now_ns, planc_schedule_variant(c->from, command).time_ns);
  return planc_schedule_exec(c->to, command->instance, command->variant, address, command->recompute);
}

static int32_t source_of(const compacting *c, const planc_command *command) {
  const planc_residency *it = &planc_schedule_residencies(c->from)[command->source];
  if (!planc_schedule_is_away(c->from, command->source)) return c->residency[command->source];
  return planc_schedule_away(c->to, it->buffer, it->memory, command->version);
}

static void note_copy(compacting *c, const planc_command *command) {
  planc_route route = planc_schedule_route(c->from, command->stream);
  if (route >= PLANC_N_ROUTES) return;
  int64_t ns = pl_copy_ns(c->from, command, route);
  c->free_ns[route] = pl_add_saturate(pl_max(c->free_ns[route], c->now_ns), ns);
  c->copied_ns[planc_schedule_buffer(c->from, command)] = c->free_ns[route];
}

static planc_status state_copy(compacting *c, const planc_command *command) {
  const planc_schedule *s = c->from;
  note_copy(c, command);
  if (command->residency == PLANC_USER) return planc_schedule_deliver(c->to, c->residency[command->source]);
  if (planc_schedule_is_away(s, command->residency))
    return planc_schedule_offload(c->to, source_of(c, command),
                                  planc_schedule_residencies(s)[command->residency].memory);
  if (command->source != PLANC_USER && planc_schedule_kind_of(s, command->source) == PLANC_MEMORY_DEVICE)
    return planc_schedule_move(c->to, c->residency[command->residency], c->residency[command->source]);
  return planc_schedule_prefetch(c->to, c->residency[command->residency], command->version);
}

/* --- Places ------------------------------------------------------------------------------------------------------- */

static planc_status make_room(compacting *c, int64_t at, int64_t bytes, int64_t *out_address);
static void fix_blocks(compacting *c, bool waits);

/* Finds a place for what is opened ahead of the command and lives until command `end`; *out_address is
 * PL_NO_ADDRESS where there is none. */
static planc_status find_place(compacting *c, int64_t preferred, int64_t bytes, int32_t end, int64_t *out_address) {
  *out_address = PL_NO_ADDRESS;
  if (bytes >= c->large) PLANC_TRY(make_room(c, preferred, bytes, out_address));
  if (*out_address == PL_NO_ADDRESS) *out_address = place_for(c, preferred, bytes, end);
  return *out_address == PL_NO_ADDRESS ? make_room(c, PL_NO_ADDRESS, bytes, out_address) : NULL;
}

/* How many bytes of what is opened later, while it lives, would be preferred where it lies. */
static int64_t taken_from_later(const compacting *c, int64_t address, int64_t bytes, int32_t end) {
  int64_t sum = 0;
  for (int32_t k = c->opened[c->command]; k < c->opened[end]; k++) {
    int32_t r = c->in_order[k];
    int64_t other = c->preferred[r];
    if (c->start[r] > c->command && other < address + bytes && address < other + c->bytes[r]) sum += c->bytes[r];
  }
  return sum;
}

static int64_t place_for(const compacting *c, int64_t preferred, int64_t bytes, int32_t end) {
  enum { LOOKED_AT = 16 };
  const pl_blocks *blocks = &c->blocks;
  if (pl_blocks_are_free(blocks, preferred, bytes)) return preferred;
  int64_t best = PL_NO_ADDRESS, least = INT64_MAX, start = 0;
  int32_t looked_at = 0;
  for (int32_t k = 0; k <= blocks->n && looked_at < LOOKED_AT && least > 0; k++) {
    int64_t hole_end = k < blocks->n ? blocks->items[k].address : blocks->room;
    if (hole_end - start >= bytes) {
      int64_t sides[] = {start, hole_end - bytes};
      for (int i = 0; i < (start < hole_end - bytes ? 2 : 1); i++) {
        int64_t taken = taken_from_later(c, sides[i], bytes, end);
        if (taken >= least) continue;
        least = taken;
        best = sides[i];
      }
      looked_at++;
    }
    if (k < blocks->n) start = hole_end + blocks->items[k].bytes;
  }
  return best;
}

/* At an address, or wherever it takes least: PL_NO_ADDRESS. */
static planc_status make_room(compacting *c, int64_t at, int64_t bytes, int64_t *out_address) {
  for (int waits = 0; waits <= 1 && (waits == 0 || *out_address == PL_NO_ADDRESS); waits++) {
    fix_blocks(c, waits);
    if (at == PL_NO_ADDRESS)
      *out_address = pl_blocks_clear(&c->blocks, bytes);
    else if (pl_blocks_clear_at(&c->blocks, at, bytes))
      *out_address = at;
  }
  for (int32_t k = 0; *out_address != PL_NO_ADDRESS && k < c->blocks.n_moves; k++)
    PLANC_TRY(move(c, c->blocks.moves[k].owner, c->blocks.moves[k].to));
  return NULL;
}

/* What holds nothing yet cannot move; nor does what is open twice, as the one that was opened last is written. Ops
 * would wait for what is just being copied: it moves where there is no other way, and then as little of it as can be.
 * The launch of a move takes as long as some bytes more. */
static void fix_blocks(compacting *c, bool waits) {
  enum { PER_MOVE = 4 << 20, WAITING = 16 };
  for (int32_t k = 0; k < c->blocks.n; k++) {
    pl_block *block = &c->blocks.items[k];
    int32_t buffer = planc_schedule_residencies(c->from)[block->owner].buffer, of = c->residency[block->owner];
    bool copied = c->copied_ns[buffer] > c->now_ns;
    bool fixed = planc_schedule_content(c->to, of) < 0 || c->n_open[buffer] > 1 || (copied && !waits);
    block->cost = fixed ? -1 : pl_mul_saturate(block->bytes + PER_MOVE, copied ? WAITING : 1);
  }
}

/* States the move of a block that `blocks` has at its new place. */
static planc_status move(compacting *c, int32_t residency, int64_t to) {
  int32_t before = c->residency[residency], *now = &c->residency[residency];
  const planc_residency *of = &planc_schedule_residencies(c->to)[before];
  PLANC_TRY(planc_schedule_acquire(c->to, of->buffer, of->memory, to, now));
  PLANC_TRY(planc_schedule_move(c->to, *now, before));
  c->address[residency] = to;
  return planc_schedule_release(c->to, before);
}

static void put(compacting *c, int32_t residency, int64_t address) {
  c->address[residency] = address;
  pl_blocks_put(&c->blocks, (pl_block){.address = address, .bytes = c->bytes[residency], .owner = residency});
}

/* --- The end ------------------------------------------------------------------------------------------------------ */

static bool move_home(compacting *c, planc_status *out_status);
static int32_t open_of(const compacting *c, int32_t boundary);

/* As long as a home is free somebody moves there; then one of those who stand in the way of others moves aside. */
static planc_status go_home(compacting *c, bool *out_fits) {
  const planc_schedule *s = c->from;
  planc_status status = NULL;
  int32_t most = 2 * planc_schedule_n_boundary(s);
  for (int32_t n = 0; n <= most; n++) {
    int32_t away = NONE;
    while (!status && move_home(c, &status)) continue;
    PLANC_TRY(status);
    for (int32_t r = planc_schedule_n_away(s); r < planc_schedule_n_boundary(s) && away == NONE; r++)
      if (c->bytes[r] > 0 && c->address[open_of(c, r)] != planc_schedule_residencies(c->to)[c->first[r]].address)
        away = open_of(c, r);
    if (away == NONE) return NULL;
    int64_t to = pl_blocks_tightest(&c->blocks, c->bytes[away]);
    if (to == PL_NO_ADDRESS) break;
    pl_blocks_take(&c->blocks, c->address[away]);
    PLANC_TRY(move(c, away, to));
    put(c, away, to);
  }
  *out_fits = false;
  return NULL;
}

/* The residency of `from` in which a boundary buffer ends. */
static int32_t open_of(const compacting *c, int32_t boundary) {
  return planc_schedule_open(c->from, planc_schedule_residencies(c->from)[boundary].buffer);
}

/* Moves one buffer to its home, if one is free; it may not overlap where it lies. */
static bool move_home(compacting *c, planc_status *out_status) {
  for (int32_t r = planc_schedule_n_away(c->from); r < planc_schedule_n_boundary(c->from); r++) {
    int32_t open = open_of(c, r);
    int64_t home = planc_schedule_residencies(c->to)[c->first[r]].address;
    if (c->bytes[r] == 0 || c->address[open] == home || !pl_blocks_are_free(&c->blocks, home, c->bytes[r])) continue;
    pl_blocks_take(&c->blocks, c->address[open]);
    *out_status = move(c, open, home);
    if (*out_status) return false;
    put(c, open, home);
    return true;
  }
  return false;
}
