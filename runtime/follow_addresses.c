/* Where memory of the framework's is to be, in an arena of the plan's size (planrt/follow.h): at the addresses of the
 * plan's residencies. In an iteration that is as the plan has it nothing else is there; but data may have stayed of
 * which there is no copy, the user may have put memory elsewhere, and copies may still run from what has left. For
 * these the calls' stream waits, and the rest is moved beside the arena.
 *
 * Memory that is where it should not be is moved where an iteration begins and where a call is next to use it. What the
 * plan moves after the last call waits as what comes in then does (rt_late): what this one left its user may lie there.
 */
#include "runtime/follower.h"

planc_status rt_address_prepare(planrt_follow *f) {
  int32_t n = f->trace->n_buffers;
  PLANC_TRY(PL_NEW(&f->memory, &f->addresses, n));
  PLANC_TRY(PL_NEW(&f->memory, &f->placed, n));
  PLANC_TRY(PL_NEW(&f->memory, &f->moves, f->plan->body.n));
  PLANC_TRY(PL_NEW(&f->memory, &f->room_buffers, n));
  PLANC_TRY(PL_NEW(&f->memory, &f->room_addresses, n));
  for (int32_t b = 0; b < n; b++) f->addresses[b] = RT_NOTHING;
  f->rooms.buffers = f->room_buffers;
  f->rooms.addresses = f->room_addresses;
  return NULL;
}

/* --- The arena ---------------------------------------------------------------------------------------------------- */

int64_t planrt_follow_arena_bytes(const planrt_follow *f) {
  const planc_memory *memory = planc_plan_memory(f->plan, PLANC_MEMORY_DEVICE);
  return memory->chunk_bytes > 0 ? 0 : memory->arena_bytes;
}

planc_status planrt_follow_place(planrt_follow *f, void *arena) {
  if (f->within) return planc_error(PLANC_USAGE, "an iteration is under way");
  if (planrt_follow_arena_bytes(f) == 0) return planc_error(PLANC_USAGE, "the plan has no addresses in an arena");
  f->arena = arena;
  for (int32_t b = 0; b < f->trace->n_buffers; b++) rt_address_set(f, b, RT_NOTHING);
  return NULL;
}

void rt_address_look(planrt_follow *f) {
  int64_t size = planrt_follow_arena_bytes(f);
  if (!f->arena) return;
  for (int32_t b = 0; b < f->trace->n_buffers; b++) rt_address_set(f, b, RT_NOTHING);
  for (int32_t b = 0; b < f->trace->n_buffers; b++) {
    bool has_memory = rt_follow_persists(f, b) && (f->contents[b].present || f->contents[b].leaving);
    const char *data = has_memory ? rt_follow_address(f, b) : NULL;
    bool within = data && data >= f->arena && data + f->trace->buffers[b].bytes <= f->arena + size;
    rt_address_set(f, b, within ? data - f->arena : RT_NOTHING);
  }
}

/* --- Making room -------------------------------------------------------------------------------------------------- */

static planc_status move(planrt_follow *f, int32_t buffer, int64_t address);

/* Makes an extent free for `buffer`, or for none. */
static planc_status vacate(planrt_follow *f, int32_t buffer, int64_t address, int64_t bytes) {
  for (int32_t k = rt_address_first_behind(f, address); k < f->n_placed; k = rt_address_first_behind(f, address)) {
    int32_t other = f->placed[k];
    if (other == buffer) other = ++k < f->n_placed ? f->placed[k] : RT_NOTHING;
    if (other == RT_NOTHING || f->addresses[other] >= address + bytes) break;
    if (f->contents[other].leaving)
      PLANC_TRY(rt_follow_let_go(f, other));
    else if (!rt_follow_address(f, other)) /* the framework has put it elsewhere */
      rt_address_set(f, other, RT_NOTHING);
    else
      PLANC_TRY(move(f, other, RT_NOTHING));
  }
  return NULL;
}

static planc_status move(planrt_follow *f, int32_t buffer, int64_t address) {
  PLANC_TRY(rt_order_before(f, PLANRT_CALLS, buffer, true));
  if (f->framework.move(f->framework.user, buffer, address)) return rt_follow_failed(f, buffer, "move it");
  rt_order_after(f, PLANRT_CALLS, buffer, true);
  rt_address_set(f, buffer, address);
  return NULL;
}

planc_status rt_address_for(planrt_follow *f, int32_t residency, int64_t *out) {
  *out = RT_NOTHING;
  if (!f->arena || f->left || residency < 0 || rt_follow_memory(f, residency) != PLANC_MEMORY_DEVICE) return NULL;
  const rt_followed_place *at = &f->places[residency];
  int64_t bytes = f->trace->buffers[at->buffer].bytes;
  if (bytes == 0) return NULL;
  PLANC_TRY(vacate(f, at->buffer, at->address, bytes));
  *out = at->address;
  return NULL;
}

/* --- Memory that comes -------------------------------------------------------------------------------------------- */

planc_status rt_follow_allocate(planrt_follow *f, int32_t buffer, int32_t residency) {
  int64_t address;
  if (f->contents[buffer].leaving) PLANC_TRY(rt_follow_let_go(f, buffer));
  PLANC_TRY(rt_address_for(f, residency, &address));
  if (f->framework.allocate(f->framework.user, buffer, address)) return rt_follow_failed(f, buffer, "allocate it");
  rt_address_set(f, buffer, address);
  f->contents[buffer].present = true;
  return NULL;
}

/* --- Memory that is there ----------------------------------------------------------------------------------------- */

planc_status rt_address_seat(planrt_follow *f, int32_t residency) {
  if (!f->arena || residency < 0 || rt_follow_memory(f, residency) != PLANC_MEMORY_DEVICE) return NULL;
  int32_t buffer = f->places[residency].buffer;
  int64_t address;
  if (f->addresses[buffer] == f->places[residency].address || !f->contents[buffer].present) return NULL;
  if (!rt_follow_address(f, buffer)) return NULL;
  PLANC_TRY(rt_address_for(f, residency, &address));
  return address == RT_NOTHING ? NULL : move(f, buffer, address);
}

static planc_status seat_lasting(planrt_follow *f) {
  for (int32_t row = 0; row < f->plan->n_boundary; row++)
    if (f->places[row].open) PLANC_TRY(rt_address_seat(f, row));
  return NULL;
}

planc_status rt_address_begin(planrt_follow *f) {
  f->seats_late = f->waits;
  if (f->waits) return NULL;
  f->n_moves = 0;
  return seat_lasting(f);
}

planc_status rt_address_wait(planrt_follow *f, int32_t residency) {
  f->moves[f->n_moves++] = residency;
  return NULL;
}

planc_status rt_address_seat_late(planrt_follow *f) {
  if (!f->seats_late) return NULL;
  f->seats_late = false;
  for (int32_t k = 0; k < f->n_moves; k++) PLANC_TRY(rt_address_seat(f, f->moves[k]));
  f->n_moves = 0;
  return seat_lasting(f);
}

planc_status rt_address_seat_operands(planrt_follow *f, int32_t instance, const int32_t *uses) {
  int32_t n = f->arena ? f->trace->instances[instance].n_accesses : 0;
  for (int32_t k = 0; k < n; k++) PLANC_TRY(rt_address_seat(f, uses[k]));
  return NULL;
}

static bool is_taken(const planrt_follow *f, int64_t address, int64_t bytes);
static bool is_place_taken(const planrt_follow *f, int32_t residency);
static bool can_be_beside(const planrt_follow *f, int32_t buffer);

planc_status rt_address_seat_if_taken(planrt_follow *f, const planc_instr *instr) {
  const planc_access *access;
  if (!f->seats_late || !f->arena) return NULL;
  bool taken = instr->bytes > 0 && is_taken(f, instr->address, instr->bytes);
  for (int32_t k = RT_NOTHING; (access = rt_follow_access(f, instr->id, NULL, &k));)
    taken |= !can_be_beside(f, access->buffer) && is_place_taken(f, f->plan->uses[instr->first_use + k]);
  return taken ? rt_address_seat_late(f) : NULL;
}

static bool is_taken(const planrt_follow *f, int64_t address, int64_t bytes) {
  int32_t k = rt_address_first_behind(f, address);
  return k < f->n_placed && f->addresses[f->placed[k]] < address + bytes;
}

static bool is_place_taken(const planrt_follow *f, int32_t residency) {
  const rt_followed_place *place = &f->places[residency];
  return is_taken(f, place->address, f->trace->buffers[place->buffer].bytes);
}

/* A number for which nothing needs to be moved, as it may as well be beside the arena until a call uses it: PyTorch
 * makes one ahead of what clears gradients. As large as planc_torch takes a number to be (memory.py). */
static bool can_be_beside(const planrt_follow *f, int32_t buffer) {
  enum { NUMBER = 16 };
  return f->seats_late && f->trace->buffers[buffer].bytes <= NUMBER;
}

/* --- Memory that a call takes ------------------------------------------------------------------------------------- */

static bool is_among(const int32_t *buffers, int32_t n, int32_t buffer) {
  for (int32_t k = 0; k < n; k++)
    if (buffers[k] == buffer) return true;
  return false;
}

/* Of one that is made for the first time all that it makes is wanted. */
planc_status rt_address_find_rooms(planrt_follow *f, const planc_instr *instr, const int32_t *wanted, int32_t n) {
  const int32_t *uses = &f->plan->uses[instr->first_use];
  const planc_access *access;
  planrt_rooms *rooms = &f->rooms;
  rooms->n = 0;
  rooms->workspace = rooms->workspace_bytes = 0;
  if (!f->arena) return NULL;
  for (int32_t k = RT_NOTHING; (access = rt_follow_access(f, instr->id, uses, &k));) {
    if (access->write < 0 || !rt_follow_makes(f, access) || (wanted && !is_among(wanted, n, access->buffer))) continue;
    int64_t *address = &f->room_addresses[rooms->n];
    f->room_buffers[rooms->n++] = access->buffer;
    *address = RT_NOTHING;
    if (!can_be_beside(f, access->buffer) || !is_place_taken(f, uses[k]))
      PLANC_TRY(rt_address_for(f, uses[k], address));
  }
  if (instr->bytes == 0 || f->left) return NULL;
  PLANC_TRY(vacate(f, RT_NOTHING, instr->address, instr->bytes));
  rooms->workspace = instr->address;
  rooms->workspace_bytes = instr->bytes;
  return NULL;
}

const planrt_rooms *planrt_follow_rooms(const planrt_follow *f) {
  return &f->rooms;
}

void rt_address_take_rooms(planrt_follow *f) {
  for (int32_t k = 0; k < f->rooms.n; k++) rt_address_set(f, f->rooms.buffers[k], f->rooms.addresses[k]);
  f->rooms.n = 0;
}
