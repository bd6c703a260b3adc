/* The rehearsal of a walk (rehearsal.h), position by position as planner/choose/absences.c goes. */
#include <string.h>

#include "planner/auto/rehearsal_state.h"

static planc_status set_positions(pl_rehearsal *r, pl_arena *arena);

planc_status pl_rehearsal_new(const pl_auto_gaps *gaps, pl_arena *arena, pl_rehearsal *out) {
  const planc_trace *trace = gaps->trace;
  int64_t n = gaps->order->n;
  *out = (pl_rehearsal){.gaps = gaps};
  PLANC_TRY(pl_rehearsal_tables_make(gaps, arena, &out->tables));
  PLANC_TRY(pl_movers_new(gaps, &out->tables, arena, &out->movers));
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
  PLANC_TRY(PL_NEW(arena, &out->stack, trace->n_accesses));
  PLANC_TRY(pl_number_set_make(arena, gaps->order->n, &out->late));
  return set_positions(out, arena);
}

/* What no rehearsal changes where an op has one algorithm, and no tail ends. */
static planc_status set_positions(pl_rehearsal *r, pl_arena *arena) {
  const int32_t n = r->gaps->order->n;
  PLANC_TRY(PL_NEW(arena, &r->chosen, n));
  for (int32_t p = 0; p < n; p++) {
    const int32_t first = r->tables.first_choice[p];
    if (r->tables.first_choice[p + 1] - first > 1) r->chosen[r->n_chosen++] = p;
    r->op_ns[p] = r->tables.choices[first].ns;
    r->workspace[p] = r->tables.choices[first].workspace_bytes;
    r->first_late[p] = NONE;
  }
  return NULL;
}

int64_t pl_rehearsal_work(const pl_rehearsal *r) {
  return (int64_t)r->gaps->trace->n_accesses + r->gaps->n + r->gaps->order->n;
}

static void forget(pl_rehearsal *r);
static void open_boundary(pl_rehearsal *r);
static int32_t next_position(const pl_rehearsal *r, int32_t position);
static void pass_resting(pl_rehearsal *r, int32_t end, int32_t *chosen);
static void go_through(pl_rehearsal *r);

/* Where nothing that moves is used, nothing is decided but algorithms. */
void pl_rehearse(pl_rehearsal *r, const uint8_t *ways) {
  enum { PASSED_AT_ONCE = 8 };
  const int32_t n = r->gaps->order->n;
  int32_t chosen = 0;
  r->ways = ways;
  r->steps += pl_rehearsal_work(r);
  r->work = (n + r->gaps->n) / PASSED_AT_ONCE;
  pl_movers_set(&r->movers, ways);
  forget(r);
  if (r->has_tails) pl_auto_wants_find(&r->wants, ways);
  open_boundary(r);
  while (r->works && r->position < n) {
    pass_resting(r, next_position(r, r->position), &chosen);
    if (r->position == n) break;
    go_through(r);
    r->position++;
  }
}

/* What the rehearsal before has found, but for what is found anew anyway. */
static void forget(pl_rehearsal *r) {
  const int32_t n_buffers = r->gaps->trace->n_buffers, n = r->gaps->order->n;
  r->works = true;
  r->n_stones = r->n_runs = r->depth = 0;
  memset(r->again_ns, 0, (size_t)n * sizeof *r->again_ns);
  memset(r->on_host, 0, (size_t)r->gaps->first_version[n_buffers] * sizeof *r->on_host);
  memset(r->stone_of, 0xFF, (size_t)n_buffers * sizeof *r->stone_of);
  memset(r->sends, 0, (size_t)r->gaps->n * sizeof *r->sends);
  memset(r->apart, 0, (size_t)r->gaps->n * sizeof *r->apart);
  memset(r->need, 0xFF, (size_t)r->gaps->n * sizeof *r->need);
  memset(r->back, 0xFF, (size_t)r->gaps->n * sizeof *r->back);
  for (int32_t p = 0; r->has_tails && (p = pl_number_set_above(&r->late, p)) != NONE;) {
    r->first_late[p] = NONE;
    pl_number_set_remove(&r->late, p);
  }
}

/* The next one from there on at which something that moves is used or goes, or the number of all. */
static int32_t next_position(const pl_rehearsal *r, int32_t position) {
  int32_t busy = pl_number_set_above(&r->movers.busy, position);
  int32_t late = r->has_tails ? pl_number_set_above(&r->late, position) : NONE;
  if (busy == NONE) busy = r->gaps->order->n;
  return late == NONE || busy < late ? busy : late;
}

static void choose(pl_rehearsal *r, int32_t position, int64_t live);

/* Goes on to position `end`. *chosen: of `chosen`, the first that may be ahead. */
static void pass_resting(pl_rehearsal *r, int32_t end, int32_t *chosen) {
  const pl_movers *m = &r->movers;
  int64_t live = r->live;
  for (int32_t p = r->position; p < end; p++) {
    live += m->come[p];
    r->held[p] = live + r->workspace[p];
    live -= m->go[p];
  }
  while (*chosen < r->n_chosen && r->chosen[*chosen] < r->position) ++*chosen;
  for (; *chosen < r->n_chosen && r->chosen[*chosen] < end; ++*chosen) {
    const int32_t p = r->chosen[*chosen];
    const int64_t live_there = r->held[p] - r->workspace[p];
    choose(r, p, live_there);
    r->held[p] = live_there + r->workspace[p];
  }
  r->live = live;
  r->position = end;
}

static bool has_inputs(const pl_rehearsal *r);
static void fetch_inputs(pl_rehearsal *r);
static void run_op(pl_rehearsal *r);
static void leave_behind(pl_rehearsal *r);
static void leave_until_written(pl_rehearsal *r);

/* A position at which something that moves is used or goes. */
static void go_through(pl_rehearsal *r) {
  const int32_t p = r->position;
  r->work += 1 + r->movers.first_use[p + 1] - r->movers.first_use[p];
  r->held[p] = 0;
  if (!has_inputs(r)) {
    fetch_inputs(r);
    pl_rehearsal_restore(r, r->gaps->order->runs[p].instance);
  }
  run_op(r);
  leave_behind(r);
  leave_until_written(r);
}

/* --- Ahead of the op ---------------------------------------------------------------------------------------------- */

static void open_boundary(pl_rehearsal *r) {
  const planc_order *order = r->gaps->order;
  r->live = r->movers.at_first;
  r->on_host_now = r->host_bytes = 0;
  r->position = 0;
  for (int32_t k = 0; k < r->movers.n_buffers; k++) {
    int32_t b = r->movers.buffers[k];
    bool persists = r->gaps->trace->buffers[b].flags & PLANC_BUFFER_PERSISTENT;
    r->next[b] = order->first_use[b];
    int32_t gap = persists && r->next[b] < order->first_use[b + 1] ? r->gaps->of_use[r->next[b]] : NONE;
    bool away = gap != NONE && r->ways[gap] != PL_AUTO_STAYS;
    r->resident[b] = NONE;
    if (away) put_on_host(r, b, 0);
    if (persists && !away) hold(r, b, 0);
  }
}

typedef struct use_range {
  const pl_mover_use *first, *end;
} use_range;

static inline use_range uses_here(const pl_rehearsal *r) {
  const pl_movers *m = &r->movers;
  return (use_range){&m->uses[m->first_use[r->position]], &m->uses[m->first_use[r->position + 1]]};
}

static bool has_inputs(const pl_rehearsal *r) {
  use_range uses = uses_here(r);
  for (const pl_mover_use *use = uses.first; use < uses.end; use++)
    if (r->movers.moves[use->buffer] && use->read >= 0 && r->resident[use->buffer] != use->read) return false;
  return true;
}

static void take_from_host(pl_rehearsal *r, const pl_mover_use *use);

/* What gaps of the op's inputs end with a copy of, and what the first op is fed, is there ahead of what runs again for
 * it; what a later one is fed is there when it runs. */
static void fetch_inputs(pl_rehearsal *r) {
  use_range uses = uses_here(r);
  for (const pl_mover_use *use = uses.first; use < uses.end; use++) {
    if (!r->movers.moves[use->buffer]) continue;
    bool is_ahead = r->position == 0 || r->gaps->of_use[r->next[use->buffer]] != NONE;
    if (is_ahead) take_from_host(r, use);
  }
}

static void take_from_host(pl_rehearsal *r, const pl_mover_use *use) {
  if (use->read < 0 || is_resident(r, use->buffer, use->read) || !is_on_host(r, use->buffer, use->read)) return;
  (void)come_from_host(r, use->buffer, use->read);
  hold(r, use->buffer, use->read);
}

/* --- The op itself, and what goes behind it ----------------------------------------------------------------------- */

/* The fastest algorithm of an op that finds room beside so much, or else the one with the least workspace. */
static void choose(pl_rehearsal *r, int32_t position, int64_t live) {
  const int64_t room = r->limit - live;
  int32_t k = r->tables.first_choice[position], last = r->tables.first_choice[position + 1] - 1;
  while (k < last && r->tables.choices[k].workspace_bytes > room) k++;
  r->op_ns[position] = r->tables.choices[k].ns;
  r->workspace[position] = r->tables.choices[k].workspace_bytes;
}

static void run_op(pl_rehearsal *r) {
  use_range uses = uses_here(r);
  for (const pl_mover_use *use = uses.first; use < uses.end; use++) {
    int32_t *resident = &r->resident[use->buffer];
    if (!r->movers.moves[use->buffer]) continue;
    if (*resident != use->read) take_from_host(r, use);
    if (use->read < 0 && *resident == NONE) hold(r, use->buffer, use->write);
    if (use->write >= 0) {
      if (use->read >= 0) forget_on_host(r, use->buffer, use->read);
      *resident = use->write;
      r->opened[use->buffer] = r->position;
    }
    r->next[use->buffer]++;
  }
  r->live += r->movers.come[r->position];
  choose(r, r->position, r->live);
  note_held(r, r->workspace[r->position]);
}

static void leave_behind(pl_rehearsal *r) {
  const int32_t *first_from = r->gaps->first_from;
  for (int32_t g = first_from[r->position]; g < first_from[r->position + 1]; g++) {
    const pl_auto_gap *gap = &r->gaps->items[g];
    if (r->ways[g] == PL_AUTO_STAYS || !r->movers.moves[gap->buffer]) continue;
    if (r->ways[g] == PL_AUTO_COPIED && !is_on_host(r, gap->buffer, gap->version)) {
      r->sends[g] = true;
      put_on_host(r, gap->buffer, gap->version);
      r->since[g] = r->opened[gap->buffer];
    }
    drop(r, gap->buffer);
  }
}

/* The position behind which the buffer of a last version goes, which is used last at `last`. */
static inline int32_t until_for(const pl_rehearsal *r, int32_t version, int32_t last) {
  if (!r->has_tails) return last;
  int32_t tail = r->wants.tail[version];
  return tail == NONE || r->ways[tail] != PL_AUTO_STAYS ? last : (int32_t)pl_max(last, r->wants.until[version]);
}

static void let_go(pl_rehearsal *r, pl_mover_death death);

static void leave_until_written(pl_rehearsal *r) {
  const pl_movers *m = &r->movers;
  const int32_t p = r->position;
  for (int32_t k = m->first_leaving[p]; k < m->first_leaving[p + 1]; k++)
    if (m->moves[m->leaving[k]]) drop(r, m->leaving[k]);
  for (int32_t k = m->first_death[p]; k < m->first_death[p + 1]; k++)
    if (m->moves[m->deaths[k].buffer]) let_go(r, m->deaths[k]);
  for (int32_t b = r->has_tails ? r->first_late[p] : NONE; b != NONE; b = r->also_late[b]) drop(r, b);
  r->live -= m->go[p];
}

/* Behind the last use, or for good later. */
static void let_go(pl_rehearsal *r, pl_mover_death death) {
  int32_t until = until_for(r, death.version, r->position);
  if (r->on_host[death.version]) r->on_host_now -= r->tables.bytes[death.buffer];
  if (until <= r->position) {
    drop(r, death.buffer);
    return;
  }
  r->also_late[death.buffer] = r->first_late[until];
  r->first_late[until] = death.buffer;
  pl_number_set_add(&r->late, until);
}

bool pl_rehearsal_wants(const pl_rehearsal *r, int32_t tail) {
  const pl_auto_gap *gap = &r->gaps->items[tail];
  return r->wants.until[number_of(r, gap->buffer, gap->version)] > gap->from;
}

int32_t pl_rehearsal_until(const pl_rehearsal *r, int32_t buffer) {
  int32_t last_version = r->gaps->trace->buffers[buffer].last_version;
  return until_for(r, number_of(r, buffer, last_version), planc_order_last(r->gaps->order, buffer));
}
