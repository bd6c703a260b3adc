/* The rehearsal of a walk (rehearsal.h), position by position as planner/choose/absences.c goes. */
#include "planner/auto/rehearsal.h"

#include <string.h>

#include "util/math.h"

enum { NONE = -1 };

planc_status pl_rehearsal_new(const pl_auto_gaps *gaps, pl_arena *arena, pl_rehearsal *out) {
  const planc_trace *trace = gaps->trace;
  int64_t n = gaps->order->n;
  *out = (pl_rehearsal){.gaps = gaps};
  PLANC_TRY(pl_rehearsal_tables_make(gaps, arena, &out->tables));
  PLANC_TRY(pl_auto_wants_new(gaps->order, gaps->items, gaps->n, gaps->latest, arena, &out->wants));
  PLANC_TRY(PL_NEW(arena, &out->first_late, n));
  PLANC_TRY(PL_NEW(arena, &out->also_late, trace->n_buffers));
  PLANC_TRY(PL_NEW(arena, &out->held, n));
  PLANC_TRY(PL_NEW(arena, &out->op_ns, n));
  PLANC_TRY(PL_NEW(arena, &out->again_ns, n));
  PLANC_TRY(PL_NEW(arena, &out->workspace, n));
  PLANC_TRY(PL_NEW(arena, &out->need, gaps->n));
  PLANC_TRY(PL_NEW(arena, &out->since, gaps->n));
  PLANC_TRY(PL_NEW(arena, &out->back, gaps->n));
  PLANC_TRY(PL_NEW(arena, &out->sends, gaps->n));
  PLANC_TRY(PL_NEW(arena, &out->apart, gaps->n));
  PLANC_TRY(PL_NEW(arena, &out->on_host, out->tables.first_version[trace->n_buffers]));
  PLANC_TRY(PL_NEW(arena, &out->resident, trace->n_buffers));
  PLANC_TRY(PL_NEW(arena, &out->opened, trace->n_buffers));
  PLANC_TRY(PL_NEW(arena, &out->next, trace->n_buffers));
  PLANC_TRY(PL_NEW(arena, &out->stone_of, trace->n_buffers));
  PLANC_TRY(PL_NEW(arena, &out->stones, trace->n_accesses));
  PLANC_TRY(PL_NEW(arena, &out->runs, trace->n_accesses));
  return PL_NEW(arena, &out->stack, trace->n_accesses);
}

int64_t pl_rehearsal_work(const pl_rehearsal *r) {
  return (int64_t)r->gaps->trace->n_accesses + r->gaps->n + r->gaps->order->n;
}

static void open_boundary(pl_rehearsal *r);
static bool has_inputs(const pl_rehearsal *r, int32_t instance);
static void fetch_inputs(pl_rehearsal *r, int32_t instance);
static void restore_inputs(pl_rehearsal *r, int32_t instance);
static void keep_or_close(pl_rehearsal *r);
static void run_op(pl_rehearsal *r, int32_t instance);
static void leave_behind(pl_rehearsal *r);
static void leave_until_written(pl_rehearsal *r, int32_t instance);

void pl_rehearse(pl_rehearsal *r, const uint8_t *ways) {
  const planc_order *order = r->gaps->order;
  int32_t n_buffers = r->gaps->trace->n_buffers;
  r->ways = ways;
  r->works = true;
  r->steps += pl_rehearsal_work(r);
  r->n_stones = r->n_runs = r->depth = 0;
  memset(r->on_host, 0, (size_t)r->tables.first_version[n_buffers] * sizeof *r->on_host);
  for (int32_t b = 0; b < n_buffers; b++) r->stone_of[b] = NONE;
  memset(r->sends, 0, (size_t)r->gaps->n * sizeof *r->sends);
  memset(r->apart, 0, (size_t)r->gaps->n * sizeof *r->apart);
  for (int32_t g = 0; g < r->gaps->n; g++) r->need[g] = r->back[g] = NONE;
  if (r->has_tails) {
    memset(r->first_late, 0xFF, (size_t)order->n * sizeof *r->first_late);
    pl_auto_wants_find(&r->wants, ways);
  }
  open_boundary(r);
  for (int32_t p = 0; p < order->n && r->works; p++) {
    int32_t instance = order->runs[p].instance;
    r->position = p;
    r->held[p] = r->again_ns[p] = 0;
    if (!has_inputs(r, instance)) {
      fetch_inputs(r, instance);
      restore_inputs(r, instance);
      keep_or_close(r);
    }
    run_op(r, instance);
    leave_behind(r);
    leave_until_written(r, instance);
  }
}

/* --- What is where ------------------------------------------------------------------------------------------------ */

static int32_t number_of(const pl_rehearsal *r, int32_t buffer, int32_t version) {
  return r->tables.first_version[buffer] + version;
}

static pl_stone *find_stone(const pl_rehearsal *r, int32_t buffer, int32_t version) {
  for (int32_t k = r->stone_of[buffer]; k != NONE; k = r->stones[k].is.below)
    if (r->stones[k].is.version == version) return &r->stones[k].is;
  return NULL;
}

static bool is_resident(const pl_rehearsal *r, int32_t buffer, int32_t version) {
  return r->resident[buffer] == version || find_stone(r, buffer, version);
}

/* What other replicas send is there, too, although the user does not hold it. */
static bool is_on_host(const pl_rehearsal *r, int32_t buffer, int32_t version) {
  bool is_fed = version == 0 && r->gaps->trace->buffers[buffer].flags & PLANC_BUFFER_FED;
  return r->on_host[number_of(r, buffer, version)] || is_fed;
}

static void put_on_host(pl_rehearsal *r, int32_t buffer, int32_t version) {
  r->on_host[number_of(r, buffer, version)] = true;
  r->on_host_now += r->tables.bytes[buffer];
  r->host_bytes = pl_max(r->host_bytes, r->on_host_now);
}

/* The copy is there still, but nothing is expected to ask for it. */
static void forget_on_host(pl_rehearsal *r, int32_t buffer, int32_t version) {
  if (r->on_host[number_of(r, buffer, version)]) r->on_host_now -= r->tables.bytes[buffer];
}

static const planc_access *next_access(const pl_rehearsal *r, int32_t buffer) {
  const planc_order *order = r->gaps->order;
  return r->next[buffer] < order->first_use[buffer + 1] ? planc_order_access(order, r->next[buffer]) : NULL;
}

/* It is counted already. */
static void keep(pl_rehearsal *r, int32_t buffer, int32_t version) {
  if (r->resident[buffer] != NONE) r->works = false; /* no policy's ways lead there */
  r->resident[buffer] = version;
  r->opened[buffer] = r->position;
}

static void hold(pl_rehearsal *r, int32_t buffer, int32_t version) {
  keep(r, buffer, version);
  r->live += r->tables.bytes[buffer];
}

static void drop(pl_rehearsal *r, int32_t buffer) {
  if (r->resident[buffer] == NONE) return;
  r->resident[buffer] = NONE;
  r->live -= r->tables.bytes[buffer];
}

/* Comes from the host, or from the user: for the gap that it is in, or, where no use is ahead, for a recompute alone,
 * which waits for it. Returns whether it is for a gap. */
static bool come_from_host(pl_rehearsal *r, int32_t buffer, int32_t version) {
  const planc_access *next = next_access(r, buffer);
  int32_t gap = next && next->read == version ? r->gaps->of_use[r->next[buffer]] : NONE;
  const planc_buffer *it = &r->gaps->trace->buffers[buffer];
  if (gap != NONE)
    r->need[gap] = r->position;
  else if (!planc_user_holds(it, version))
    r->again_ns[r->position] += planc_link_ns(&r->gaps->walk->links[PLANC_ROUTE_H2D], it->bytes);
  return gap != NONE;
}

static void note_held(pl_rehearsal *r, int64_t workspace) {
  int64_t *held = &r->held[r->position];
  if (r->live + workspace > *held) *held = r->live + workspace;
}

static void open_boundary(pl_rehearsal *r) {
  const planc_order *order = r->gaps->order;
  r->live = r->on_host_now = r->host_bytes = 0;
  r->position = 0;
  for (int32_t b = 0; b < r->gaps->trace->n_buffers; b++) {
    bool persists = r->gaps->trace->buffers[b].flags & PLANC_BUFFER_PERSISTENT;
    r->next[b] = order->first_use[b];
    int32_t gap = persists && r->next[b] < order->first_use[b + 1] ? r->gaps->of_use[r->next[b]] : NONE;
    bool away = gap != NONE && r->ways[gap] != PL_AUTO_STAYS;
    r->resident[b] = NONE;
    if (away) put_on_host(r, b, 0);
    if (persists && !away) hold(r, b, 0);
  }
}

static bool has_inputs(const pl_rehearsal *r, int32_t instance) {
  const planc_trace *trace = r->gaps->trace;
  const planc_instance *in = &trace->instances[instance];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &trace->accesses[a];
    if (access->read >= 0 && r->resident[access->buffer] != access->read) return false;
  }
  return true;
}

static void take_from_host(pl_rehearsal *r, const planc_access *access);

/* What gaps of the op's inputs end with a copy of, and what the first op is fed, is there ahead of what runs again for
 * it; what a later one is fed is there when it runs. */
static void fetch_inputs(pl_rehearsal *r, int32_t instance) {
  const planc_trace *trace = r->gaps->trace;
  const planc_instance *in = &trace->instances[instance];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &trace->accesses[a];
    bool is_ahead = r->position == 0 || r->gaps->of_use[r->next[access->buffer]] != NONE;
    if (is_ahead) take_from_host(r, access);
  }
}

static void take_from_host(pl_rehearsal *r, const planc_access *access) {
  if (access->read < 0 || is_resident(r, access->buffer, access->read) || !is_on_host(r, access->buffer, access->read))
    return;
  (void)come_from_host(r, access->buffer, access->read);
  hold(r, access->buffer, access->read);
}

/* --- Running again ------------------------------------------------------------------------------------------------ */

static void ask_for_inputs(pl_rehearsal *r, int32_t instance, bool again);
static bool is_restored(const pl_rehearsal *r, int32_t instance);
static void run_again(pl_rehearsal *r, int32_t instance);

static void restore_inputs(pl_rehearsal *r, int32_t instance) {
  ask_for_inputs(r, instance, false);
  while (r->depth > 0 && r->works) {
    int32_t top = r->stack[r->depth - 1], asked = top < 0 ? -1 - top : top;
    r->steps += r->gaps->trace->instances[asked].n_accesses;
    if (is_restored(r, asked)) {
      r->depth--;
    } else if (top < 0) {
      r->depth--;
      run_again(r, asked);
    } else {
      r->stack[r->depth - 1] = -1 - asked;
      ask_for_inputs(r, asked, true);
    }
  }
}

static void ask_for_inputs(pl_rehearsal *r, int32_t instance, bool again) {
  const planc_trace *trace = r->gaps->trace;
  const planc_instance *in = &trace->instances[instance];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &trace->accesses[a];
    if ((again && access->effect) || access->read < 0 || is_resident(r, access->buffer, access->read) ||
        is_on_host(r, access->buffer, access->read))
      continue;
    int32_t writer = r->tables.writer[number_of(r, access->buffer, access->read)];
    r->works &= writer != NONE && r->depth < trace->n_accesses;
    if (!r->works) return;
    r->stack[r->depth++] = writer;
  }
}

static bool is_restored(const pl_rehearsal *r, int32_t instance) {
  const planc_trace *trace = r->gaps->trace;
  const planc_instance *in = &trace->instances[instance];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &trace->accesses[a];
    if (access->write >= 0 && !access->effect && !is_resident(r, access->buffer, access->write)) return false;
  }
  return true;
}

static bool finds_place(const pl_rehearsal *r, const planc_access *access, pl_stone **out_stone);
static void open_stone(pl_rehearsal *r, const planc_access *access);
static void write_in_place(pl_rehearsal *r, const planc_access *access);

static void run_again(pl_rehearsal *r, int32_t instance) {
  const planc_trace *trace = r->gaps->trace;
  const planc_instance *in = &trace->instances[instance];
  int32_t first = r->gaps->order->first[instance], end = in->first_access + in->n_accesses;
  r->works &= r->n_runs < trace->n_accesses;
  for (int32_t a = in->first_access; r->works && a < end; a++) {
    const planc_access *access = &trace->accesses[a];
    pl_stone *stone;
    if (access->effect || finds_place(r, access, &stone)) continue;
    if (stone)
      stone->last = r->n_runs;
    else
      open_stone(r, access);
  }
  if (!r->works) return;
  r->runs[r->n_runs++] = (pl_rehearsed_run){r->workspace[first], r->n_stones, NONE};
  r->again_ns[r->position] += r->op_ns[first];
  for (int32_t a = in->first_access; a < end; a++) {
    const planc_access *access = &trace->accesses[a];
    if (!access->effect && access->read >= 0 && access->write >= 0) write_in_place(r, access);
  }
}

/* What it reads, or what is open for what it writes: that is the residency opened last. Whether it is no stone. */
static bool finds_place(const pl_rehearsal *r, const planc_access *access, pl_stone **out_stone) {
  int32_t top = r->stone_of[access->buffer], version = access->read >= 0 ? access->read : access->write;
  bool only_writes = access->read < 0 && top != NONE;
  *out_stone = NULL;
  if (!only_writes && r->resident[access->buffer] == version) return true;
  if (!only_writes)
    *out_stone = find_stone(r, access->buffer, version);
  else if (r->stones[top].is.version == version)
    *out_stone = &r->stones[top].is;
  return false;
}

static void open_stone(pl_rehearsal *r, const planc_access *access) {
  int32_t buffer = access->buffer, version = access->read >= 0 ? access->read : access->write;
  bool is_ahead = access->read >= 0 && come_from_host(r, buffer, version);
  r->works &= r->n_stones < r->gaps->trace->n_accesses;
  if (!r->works) return;
  r->stones[r->n_stones] =
      (pl_rehearsed_stone){{buffer, version, NONE, r->n_runs, r->stone_of[buffer]}, is_ahead, NONE};
  r->stone_of[buffer] = r->n_stones++;
}

/* What is changed in place has the version that it is changed to. */
static void write_in_place(pl_rehearsal *r, const planc_access *access) {
  pl_stone *stone = find_stone(r, access->buffer, access->read);
  if (stone)
    stone->version = access->write;
  else
    r->resident[access->buffer] = access->write;
}

static bool stays(pl_rehearsal *r, const pl_stone *stone);

/* What is read later stays; the rest of what recomputes open goes behind the last that needs it. */
static void keep_or_close(pl_rehearsal *r) {
  for (int32_t k = 0; k < r->n_stones; k++) {
    pl_rehearsed_stone *stone = &r->stones[k];
    r->stone_of[stone->is.buffer] = NONE;
    if (stone->is_ahead) r->live += r->tables.bytes[stone->is.buffer];
    if (stays(r, &stone->is)) continue;
    stone->also_closing = r->runs[stone->is.last].first_closing;
    r->runs[stone->is.last].first_closing = k;
  }
  for (int32_t k = 0, opened = 0; k < r->n_runs; k++) {
    for (; opened < r->runs[k].n_stones; opened++)
      if (!r->stones[opened].is_ahead) r->live += r->tables.bytes[r->stones[opened].is.buffer];
    note_held(r, r->runs[k].workspace);
    for (int32_t c = r->runs[k].first_closing; c != NONE; c = r->stones[c].also_closing)
      r->live -= r->tables.bytes[r->stones[c].is.buffer];
  }
  r->n_stones = r->n_runs = 0;
}

static bool stays(pl_rehearsal *r, const pl_stone *stone) {
  int32_t buffer = stone->buffer, version = stone->version;
  const planc_access *next = next_access(r, buffer);
  if (r->resident[buffer] == version || !next || next->read != version) return false;
  int32_t gap = r->gaps->of_use[r->next[buffer]];
  bool is_for_other = gap != NONE && r->gaps->items[gap].to != r->position;
  if (is_for_other && r->ways[gap] == PL_AUTO_TWICE && !is_on_host(r, buffer, version)) {
    r->apart[gap] = true;
    return false;
  }
  keep(r, buffer, version);
  if (gap != NONE) r->back[gap] = r->position;
  return true;
}

/* --- The op itself, and what goes behind it ----------------------------------------------------------------------- */

static const pl_op_choice *choice_within(const pl_rehearsal *r, int64_t room) {
  int32_t k = r->tables.first_choice[r->position], last = r->tables.first_choice[r->position + 1] - 1;
  while (k < last && r->tables.choices[k].workspace_bytes > room) k++;
  return &r->tables.choices[k];
}

static void run_op(pl_rehearsal *r, int32_t instance) {
  const planc_trace *trace = r->gaps->trace;
  const planc_instance *in = &trace->instances[instance];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &trace->accesses[a];
    int32_t *resident = &r->resident[access->buffer];
    if (*resident != access->read) take_from_host(r, access);
    if (access->read < 0 && *resident == NONE) hold(r, access->buffer, access->write);
    if (access->write >= 0) {
      if (access->read >= 0) forget_on_host(r, access->buffer, access->read);
      *resident = access->write;
      r->opened[access->buffer] = r->position;
    }
    r->next[access->buffer]++;
  }
  const pl_op_choice *choice = choice_within(r, r->limit - r->live);
  r->op_ns[r->position] = choice->ns;
  r->workspace[r->position] = choice->workspace_bytes;
  note_held(r, choice->workspace_bytes);
}

static void leave_behind(pl_rehearsal *r) {
  const pl_auto_gaps *gaps = r->gaps;
  for (int32_t g = gaps->first_from[r->position]; g < gaps->first_from[r->position + 1]; g++) {
    const pl_auto_gap *gap = &gaps->items[g];
    if (r->ways[g] == PL_AUTO_STAYS) continue;
    if (r->ways[g] == PL_AUTO_COPIED && !is_on_host(r, gap->buffer, gap->version)) {
      r->sends[g] = true;
      put_on_host(r, gap->buffer, gap->version);
      r->since[g] = r->opened[gap->buffer];
    }
    drop(r, gap->buffer);
  }
}

static void leave_until_written(pl_rehearsal *r, int32_t instance) {
  const planc_trace *trace = r->gaps->trace;
  const planc_instance *in = &trace->instances[instance];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    if (r->tables.leaves[a]) drop(r, trace->accesses[a].buffer);
  }
  for (int32_t k = r->tables.first_death[r->position]; k < r->tables.first_death[r->position + 1]; k++) {
    int32_t dead = r->tables.deaths[k], last = trace->buffers[dead].last_version;
    int32_t until = pl_rehearsal_until(r, dead);
    forget_on_host(r, dead, last);
    if (until > r->position) {
      r->also_late[dead] = r->first_late[until];
      r->first_late[until] = dead;
    } else {
      drop(r, dead);
    }
  }
  for (int32_t b = r->has_tails ? r->first_late[r->position] : NONE; b != NONE; b = r->also_late[b]) drop(r, b);
}

bool pl_rehearsal_wants(const pl_rehearsal *r, int32_t tail) {
  const pl_auto_gap *gap = &r->gaps->items[tail];
  return r->wants.until[number_of(r, gap->buffer, gap->version)] > gap->from;
}

int32_t pl_rehearsal_until(const pl_rehearsal *r, int32_t buffer) {
  int32_t version = number_of(r, buffer, r->gaps->trace->buffers[buffer].last_version);
  int32_t tail = r->wants.tail[version], last = planc_order_last(r->gaps->order, buffer);
  return !r->has_tails || tail == NONE || r->ways[tail] != PL_AUTO_STAYS
             ? last
             : (int32_t)pl_max(last, r->wants.until[version]);
}
