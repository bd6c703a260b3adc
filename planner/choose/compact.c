/* Compaction (compact.h). What is large gets places within the room, as if the rest took none but what is on the device
 * all the time, and the rest gets places around it, as if there were more room. The commands are then stated again one
 * after the other, over what lies where: what has no such place within the room, or finds it taken, gets another one,
 * and where there is none room is made by moves ahead of the command. What is large keeps to its places: others make
 * way for it. What persists goes back to where it began behind the last command.
 *
 * What is large may be less or more; at last nothing is, and all are placed as if there were more room. */
#include "planner/choose/compact.h"

#include <assert.h>

#include "planner/base/copy_ns.h"
#include "planner/choose/later_places.h"
#include "planner/memory/blocks.h"
#include "util/math.h"

enum { NONE = -1, ATTEMPTS = 4 };

typedef struct compacting {
  const planc_schedule *from;
  planc_schedule *to;
  int64_t room;
  int64_t large; /* what has so many bytes has the place that is preferred, if others in it can be moved */
  pl_arena arena;
  int64_t *preferred, *preferred_workspaces; /* addresses by residency and by command of `from` */
  pl_later_places later;                     /* that are preferred */
  pl_blocks blocks;                          /* owners are residencies of `from` */
  int64_t *bytes;                            /* by residency of `from`, rounded up; 0 of what is away */
  int64_t *address;                          /* where it lies now */
  int32_t *residency;                        /* of `to` that it is now */
  int32_t *first;                            /* of `to` that it was when it was opened */
  int32_t *end;                              /* command */
  int64_t *home;                             /* at the end, of what persists: the address that it began at */
  int32_t *n_open;                           /* by buffer, on the device */
  int64_t now_ns,
      free_ns[PLANC_N_ROUTES]; /* what ops have taken, and when each link has made its copies, if none waits */
  int64_t *copied_ns;          /* by buffer: when its last copy has been made */
  int32_t command;
} compacting;

static bool can_compact(const planc_evaluator *evaluator, const planc_candidate *candidate);
static planc_status try_compacting(const planc_evaluator *evaluator, int64_t room, int64_t large,
                                   const planc_candidate *candidate, planc_schedule **out);
static planc_status prepare(compacting *c);
static planc_status find_preferred(compacting *c, const planc_evaluator *evaluator, const planc_candidate *candidate,
                                   bool *out_found);
static int64_t free_until(const void *user, int32_t owner, int64_t address);
static planc_status state_again(compacting *c, const planc_evaluator *evaluator, const planc_candidate *candidate,
                                planc_schedule **out);
static planc_status compact(compacting *c, bool *out_fits);
static void find_ends(compacting *c);
static int64_t workspace_of(const compacting *c, int32_t command);
static planc_status open_boundary(compacting *c, bool *out_fits);
static planc_status state_command(compacting *c, bool *out_fits);
static planc_status go_home(compacting *c, bool *out_fits);

/* From how few bytes on something is large, as a part of the room; the last: nothing is. */
static int64_t large_at(int64_t room, int32_t attempt) {
  static const int32_t of_room[] = {256, 64, 16};
  return attempt < ATTEMPTS - 1 ? pl_align_up(pl_max(room / of_room[attempt], 1), PLANC_ALIGNMENT) : INT64_MAX;
}

/* The first attempt that finds a way; of a short schedule the one that is fastest, as all of them take little there. */
planc_status pl_compact(const planc_evaluator *evaluator, int64_t room, planc_candidate *candidate, bool *out_fits) {
  enum { SHORT = 2000 /* commands */ };
  planc_schedule *best = NULL;
  int64_t best_ns = INT64_MAX;
  planc_status status = NULL;
  *out_fits = false;
  if (!can_compact(evaluator, candidate)) return NULL;
  const bool is_short = planc_schedule_n_commands(candidate->schedule) <= SHORT;
  for (int32_t k = 0; !status && k < ATTEMPTS && (!best || is_short); k++) {
    planc_candidate found = *candidate;
    int64_t ns = 0;
    found.schedule = NULL;
    if (k > 0 && large_at(room, k) == large_at(room, k - 1)) continue;
    status = try_compacting(evaluator, room, large_at(room, k), candidate, &found.schedule);
    if (!status && found.schedule && is_short) status = evaluator->time(evaluator, &found, &ns);
    bool is_faster = !status && found.schedule && ns < best_ns;
    planc_schedule_free(is_faster ? best : found.schedule);
    if (!is_faster) continue;
    best = found.schedule;
    best_ns = ns;
  }
  *out_fits = !status && best;
  planc_schedule_free(*out_fits ? candidate->schedule : best);
  if (*out_fits) candidate->schedule = best;
  return planc_context(status, "compacting");
}

/* *out is NULL where it finds no way. */
static planc_status try_compacting(const planc_evaluator *evaluator, int64_t room, int64_t large,
                                   const planc_candidate *candidate, planc_schedule **out) {
  compacting c = {.from = candidate->schedule, .room = room / PLANC_ALIGNMENT * PLANC_ALIGNMENT, .large = large};
  bool found = true;
  planc_status status = prepare(&c);
  if (!status) status = find_preferred(&c, evaluator, candidate, &found);
  if (!status && found) status = state_again(&c, evaluator, candidate, out);
  pl_arena_free(&c.arena);
  return status;
}

static planc_status state_again(compacting *c, const planc_evaluator *evaluator, const planc_candidate *candidate,
                                planc_schedule **out) {
  planc_candidate stated = *candidate;
  bool fits = false;
  stated.schedule = NULL;
  planc_status status = planc_candidate_schedule(evaluator->problem, &stated);
  c->to = stated.schedule;
  if (!status) status = compact(c, &fits);
  if (!status && fits)
    *out = stated.schedule;
  else
    planc_schedule_free(stated.schedule);
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

static planc_status prepare(compacting *c) {
  const planc_schedule *s = c->from;
  int32_t n = planc_schedule_n_residencies(s), n_commands = planc_schedule_n_commands(s);
  PLANC_TRY(PL_NEW(&c->arena, &c->preferred, n));
  PLANC_TRY(PL_NEW(&c->arena, &c->preferred_workspaces, n_commands));
  PLANC_TRY(pl_blocks_make(&c->arena, n, c->room, &c->blocks));
  c->blocks.until = free_until;
  c->blocks.user = c;
  PLANC_TRY(PL_NEW(&c->arena, &c->address, n));
  PLANC_TRY(PL_NEW(&c->arena, &c->residency, n));
  PLANC_TRY(PL_NEW(&c->arena, &c->first, n));
  PLANC_TRY(PL_NEW(&c->arena, &c->n_open, planc_schedule_trace(s)->n_buffers));
  PLANC_TRY(PL_NEW(&c->arena, &c->copied_ns, planc_schedule_trace(s)->n_buffers));
  PLANC_TRY(PL_NEW(&c->arena, &c->end, n));
  PLANC_TRY(PL_NEW(&c->arena, &c->bytes, n));
  for (int32_t r = 0; r < n; r++) {
    c->residency[r] = NONE;
    if (!planc_schedule_is_away(s, r))
      c->bytes[r] =
          pl_align_up(planc_schedule_trace(s)->buffers[planc_schedule_residencies(s)[r].buffer].bytes, PLANC_ALIGNMENT);
  }
  find_ends(c);
  return NULL;
}

static void find_ends(compacting *c) {
  const int32_t n_commands = planc_schedule_n_commands(c->from);
  for (int32_t r = 0; r < planc_schedule_n_residencies(c->from); r++) c->end[r] = n_commands;
  for (int32_t k = 0; k < n_commands; k++) {
    const planc_command *command = &planc_schedule_commands(c->from)[k];
    if (command->kind == PLANC_CMD_RELEASE) c->end[command->residency] = k;
  }
}

/* False where there are no places within the room for what is large. */
static planc_status find_preferred(compacting *c, const planc_evaluator *evaluator, const planc_candidate *candidate,
                                   bool *out_found) {
  planc_candidate placed = *candidate;
  planc_placing what = {.large_bytes = c->large};
  int64_t top;
  *out_found = true;
  if (c->large < INT64_MAX) {
    placed.room = c->room;
    PLANC_TRY(evaluator->place(evaluator, &placed, what, c->preferred, c->preferred_workspaces, &top));
    *out_found = top <= c->room;
    if (!*out_found) return NULL;
    what.rest = true;
  } else {
    placed.room = what.large_bytes = 0;
  }
  PLANC_TRY(evaluator->place(evaluator, &placed, what, c->preferred, c->preferred_workspaces, &top));
  return pl_later_places_make(c->from, c->preferred, c->preferred_workspaces, &c->arena, &c->later);
}

/* 0 of what is no exec. */
static int64_t workspace_of(const compacting *c, int32_t command) {
  const planc_command *it = &planc_schedule_commands(c->from)[command];
  if (it->kind != PLANC_CMD_EXEC) return 0;
  return pl_align_up(planc_schedule_variant(c->from, it).workspace_bytes, PLANC_ALIGNMENT);
}

static planc_status compact(compacting *c, bool *out_fits) {
  *out_fits = true;
  c->command = NONE;
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

static bool put_boundary(compacting *c, bool placed);

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

static int32_t open_of(const compacting *c, int32_t boundary);

/* Either what was placed within the room, which is what is large or never leaves, or the rest; false where not all
 * finds a place. */
static bool put_boundary(compacting *c, bool placed) {
  for (int32_t r = 0; r < planc_schedule_n_boundary(c->from); r++) {
    bool is_placed = c->bytes[r] >= c->large || open_of(c, r) == r;
    if (c->bytes[r] == 0 || is_placed != placed) continue;
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

/* What lies there until then is in nobody's way. */
static int64_t free_until(const void *user, int32_t owner, int64_t address) {
  const compacting *c = user;
  return pl_later_places_until(&c->later, c->command, address, c->bytes[owner], c->end[owner]);
}

/* Where it is preferred, or else where it may stay for longest until something later is preferred there. */
static int64_t place_for(const compacting *c, int64_t preferred, int64_t bytes, int32_t end) {
  enum { LOOKED_AT = 64 };
  const pl_blocks *blocks = &c->blocks;
  if (pl_blocks_are_free(blocks, preferred, bytes)) return preferred;
  int64_t best = PL_NO_ADDRESS, start = 0;
  int32_t looked_at = 0, latest = 0;
  for (int32_t k = 0; k <= blocks->n && looked_at < LOOKED_AT && latest < end; k++) {
    int64_t hole_end = k < blocks->n ? blocks->items[k].address : blocks->room;
    if (hole_end - start >= bytes) {
      int64_t sides[] = {start, hole_end - bytes};
      for (int i = 0; i < 2; i++) {
        int32_t until = pl_later_places_until(&c->later, c->command, sides[i], bytes, end);
        if (until <= latest) continue;
        latest = until;
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

static void find_homes(compacting *c);
static planc_status move_home(compacting *c);
static void hold_who_is_home(compacting *c);

/* As long as a home is free somebody moves there; then who is in the way of the first that is not at home moves aside,
 * but nobody who is. */
static planc_status go_home(compacting *c, bool *out_fits) {
  PLANC_TRY(PL_NEW(&c->arena, &c->home, planc_schedule_n_residencies(c->from)));
  c->blocks.until = NULL;
  find_homes(c);
  PLANC_TRY(move_home(c));
  for (int32_t r = planc_schedule_n_away(c->from); r < planc_schedule_n_boundary(c->from); r++) {
    const int32_t open = open_of(c, r);
    if (c->bytes[r] == 0 || c->address[open] == c->home[open]) continue;
    hold_who_is_home(c);
    *out_fits = pl_blocks_clear_at(&c->blocks, c->home[open], c->bytes[r]);
    if (!*out_fits) return NULL;
    for (int32_t k = 0; k < c->blocks.n_moves; k++) PLANC_TRY(move(c, c->blocks.moves[k].owner, c->blocks.moves[k].to));
    PLANC_TRY(move_home(c));
  }
  return NULL;
}

/* The residency of `from` in which a boundary buffer ends. */
static int32_t open_of(const compacting *c, int32_t boundary) {
  return planc_schedule_open(c->from, planc_schedule_residencies(c->from)[boundary].buffer);
}

static void find_homes(compacting *c) {
  for (int32_t r = planc_schedule_n_away(c->from); r < planc_schedule_n_boundary(c->from); r++)
    c->home[open_of(c, r)] = planc_schedule_residencies(c->to)[c->first[r]].address;
}

/* All whose home is free, one after the other; none may overlap where it lies. */
static planc_status move_home(compacting *c) {
  for (bool moves = true; moves;) {
    moves = false;
    for (int32_t r = planc_schedule_n_away(c->from); r < planc_schedule_n_boundary(c->from); r++) {
      const int32_t open = open_of(c, r);
      const int64_t home = c->home[open];
      if (c->bytes[r] == 0 || c->address[open] == home || !pl_blocks_are_free(&c->blocks, home, c->bytes[r])) continue;
      pl_blocks_take(&c->blocks, c->address[open]);
      PLANC_TRY(move(c, open, home));
      put(c, open, home);
      moves = true;
    }
  }
  return NULL;
}

static void hold_who_is_home(compacting *c) {
  for (int32_t k = 0; k < c->blocks.n; k++) {
    pl_block *block = &c->blocks.items[k];
    block->cost = block->address == c->home[block->owner] ? -1 : block->bytes;
  }
}
