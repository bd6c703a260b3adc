/* The rehearsal of a walk (rehearsal.h), position by position as planner/choose/absences.c goes. */
#include <string.h>

#include "planner/auto/rehearsal_state.h"

planc_status pl_rehearsal_new(const pl_auto_gaps *gaps, pl_arena *arena, pl_rehearsal *out) {
  const planc_trace *trace = gaps->trace;
  int64_t n = gaps->order->n;
  *out = (pl_rehearsal){.gaps = gaps};
  PLANC_TRY(pl_rehearsal_tables_make(gaps, arena, &out->tables));
  PLANC_TRY(
      pl_auto_wants_new(gaps->order, gaps->first_version, gaps->items, gaps->n, gaps->latest, arena, &out->wants));
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
  PLANC_TRY(PL_NEW(arena, &out->on_host, gaps->first_version[trace->n_buffers]));
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
  memset(r->on_host, 0, (size_t)r->gaps->first_version[n_buffers] * sizeof *r->on_host);
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
      pl_rehearsal_restore(r, instance);
    }
    run_op(r, instance);
    leave_behind(r);
    leave_until_written(r, instance);
  }
}

/* --- Ahead of the op ---------------------------------------------------------------------------------------------- */

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
