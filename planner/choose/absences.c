/* Absences: every instance first finds what it reads. A version that is not resident comes from the host where there is
 * a copy; otherwise its writer runs again, whose own inputs may first have to be restored. What a recompute brings back
 * stays when the rest of the iteration reads it; where it was only a stepping stone it goes behind the last that needs
 * it.
 *
 * A buffer whose next access only writes holds nothing worth its place, and leaves until then; but where restores may
 * read it what it was given stays, and whatever a persistent buffer holds, as no recompute would bring them back. */
#include "planner/choose/absences.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "planner/choose/restores.h"
#include "planner/choose/sub_batch.h"
#include "util/vec.h"

enum { NONE = -1 };

/* Absences and buffers by the position at which something is to be done about them: the first, others by `also`. */
typedef struct agenda {
  int32_t *first; /* per position */
  int32_t *also;  /* per absence or buffer */
} agenda;

typedef struct run {
  bool restores; /* instances may run again */
  pl_walk *walk;
  const planc_trace *trace;
  const planc_order *order;
  planc_schedule *schedule;
  const pl_absences *absences;
  agenda copies, leaves, fetches; /* of absences */
  agenda deaths;                  /* of buffers */
  int32_t *held;              /* per buffer: the residency that stays until the buffer is away or dead, NONE = none */
  int32_t *next;              /* per buffer: its next use in the order */
  pl_restores ahead;          /* of the instance at hand */
  VEC(int32_t) stones;        /* residencies that restores opened, by stone */
  VEC(int32_t) first_closing; /* by run of the restores: a stone that it is the last to need and that does not stay */
  VEC(int32_t) also_closing;  /* by stone: another such, NONE = none */
  VEC(int32_t) staying;       /* stones that do */
} run;

static planc_status run_order(pl_walk *walk, void *context);
static planc_status run_positions(run *r, pl_arena *arena);
static planc_status open_boundary(run *r, pl_arena *arena);
static planc_status make_agendas(run *r, pl_arena *arena);
static planc_status run_position(run *r, int32_t position);
static planc_status feed(run *r, const planc_instance *first);
static planc_status fetch_ahead(run *r, int32_t position);
static planc_status restore_inputs(run *r, int32_t instance);
static planc_status exec(run *r, int32_t instance);
static planc_status copy_out(run *r, int32_t position);
static planc_status leave_after(run *r, int32_t position);
static planc_status close_dead(run *r, int32_t position);

planc_status pl_make_absences(const planc_problem *problem, const void *rule, pl_walk_room room, planc_candidate *out) {
  const pl_absence_rule *of = rule;
  pl_walk walk;
  PLANC_TRY(pl_walk_start_rounds(&walk, problem, pl_sub_batch_asked(problem), room, out));
  pl_arena arena = {0};
  pl_absences absences = {0};
  pl_online online = {.handles = {0}};
  planc_status status = of->choose(of->context, &walk, &arena, &absences);
  if (of->online) walk.online = &online;
  if (!status && of->online) status = pl_online_init(&online, problem);
  if (!status) status = pl_walk_absences(&walk, &absences);
  if (!status && absences.reason) status = planc_candidate_explain(out, "%s", absences.reason);
  pl_online_free(&online);
  pl_arena_free(&arena);
  return status;
}

planc_status pl_walk_absences(pl_walk *walk, const pl_absences *absences) {
  return pl_walk_run(walk, run_order, &absences);
}

static planc_status run_order(pl_walk *walk, void *context) {
  const pl_absences *absences = *(const pl_absences *const *)context;
  run r = {.restores = pl_absences_restore(absences),
           .walk = walk,
           .trace = walk->trace,
           .order = walk->order,
           .schedule = walk->schedule,
           .absences = absences};
  pl_arena arena = {0};
  planc_status status = run_positions(&r, &arena);
  pl_arena_free(&arena);
  pl_restores_free(&r.ahead);
  VEC_FREE(&r.stones);
  VEC_FREE(&r.first_closing);
  VEC_FREE(&r.also_closing);
  VEC_FREE(&r.staying);
  return status;
}

static planc_status run_positions(run *r, pl_arena *arena) {
  PLANC_TRY(open_boundary(r, arena));
  PLANC_TRY(PL_NEW(arena, &r->held, r->trace->n_buffers));
  PLANC_TRY(PL_NEW(arena, &r->next, r->trace->n_buffers));
  PLANC_TRY(make_agendas(r, arena));
  PLANC_TRY(pl_restores_new(r->trace, r->schedule, arena, &r->ahead));
  for (int32_t b = 0; b < r->trace->n_buffers; b++) {
    r->held[b] = planc_schedule_open(r->schedule, b);
    r->next[b] = r->order->first_use[b];
  }
  for (int32_t p = 0; p < r->order->n; p++) PLANC_TRY(run_position(r, p));
  return planc_schedule_finish(r->schedule);
}

static planc_status run_position(run *r, int32_t position) {
  int32_t instance = r->order->runs[position].instance;
  const planc_instance *in = &r->trace->instances[instance];
  assert(!r->order->runs[position].recompute); /* those are added here */
  PLANC_TRY(pl_walk_reach(r->walk, position));
  if (position == 0 && r->absences->fetched) PLANC_TRY(feed(r, in));
  PLANC_TRY(fetch_ahead(r, position));
  PLANC_TRY(restore_inputs(r, instance));
  PLANC_TRY(exec(r, instance));
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    r->next[r->trace->accesses[a].buffer]++;
  }
  PLANC_TRY(copy_out(r, position));
  PLANC_TRY(leave_after(r, position));
  return close_dead(r, position);
}

/* --- Finding what an instance reads ------------------------------------------------------------------------------- */

static bool resident(const run *r, const planc_access *access) {
  return planc_schedule_resident(r->schedule, access->buffer, access->read) >= 0;
}

/* Whether `access` finds its residency: the version it reads, or room for what it writes. */
static bool has_place(const run *r, const planc_access *access) {
  return access->read >= 0 ? resident(r, access) : planc_schedule_open(r->schedule, access->buffer) >= 0;
}

/* The residency that is open for what other replicas send and has nothing of it yet, NONE = none. */
static int32_t open_for_received(const run *r, int32_t buffer) {
  int32_t open = r->trace->buffers[buffer].peer < 0 ? NONE : planc_schedule_open(r->schedule, buffer);
  return open < 0 || planc_schedule_content(r->schedule, open) >= 0 ? NONE : open;
}

static planc_status exec(run *r, int32_t instance) {
  const planc_instance *in = &r->trace->instances[instance];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &r->trace->accesses[a];
    if (has_place(r, access)) continue;
    int32_t residency = open_for_received(r, access->buffer);
    if (residency < 0) PLANC_TRY(pl_walk_open(r->walk, access->buffer, &residency));
    if (access->read >= 0) PLANC_TRY(planc_schedule_prefetch(r->schedule, residency, access->read));
    r->held[access->buffer] = residency;
  }
  return pl_walk_exec(r->walk, instance, false);
}

/* The next access to the buffer, or NULL. */
static const planc_access *next_access(const run *r, int32_t buffer) {
  int32_t next = r->next[buffer];
  return next < r->order->first_use[buffer + 1] ? planc_order_access(r->order, next) : NULL;
}

static bool stays(const run *r, int32_t number, int32_t instance);
static planc_status find_closing(run *r, int32_t instance);
static planc_status exec_again(run *r, const pl_restoring_run *again);
static planc_status close_behind(run *r, int64_t number);

static planc_status restore_inputs(run *r, int32_t instance) {
  PLANC_TRY(pl_restores_plan(&r->ahead, instance));
  PLANC_TRY(find_closing(r, instance));
  r->stones.len = 0;
  for (int64_t k = 0; k < r->ahead.runs.len; k++) {
    PLANC_TRY(exec_again(r, &r->ahead.runs.data[k]));
    PLANC_TRY(close_behind(r, k));
  }
  for (int64_t k = 0; k < r->staying.len; k++) {
    int32_t stone = r->staying.data[k];
    r->held[r->ahead.stones.data[stone].buffer] = r->stones.data[stone];
  }
  return NULL;
}

/* What the residency holds behind the restores that has been open since before them; NONE = there is none. */
static int32_t held_version(const run *r, int32_t buffer) {
  if (r->held[buffer] < 0) return NONE;
  int32_t changed = r->ahead.instead[buffer];
  return changed != PL_UNCHANGED ? changed : planc_schedule_content(r->schedule, r->held[buffer]);
}

/* Whether what a stone holds in the end is kept for its next use: that is of the instance, or of a later one. */
static bool stays(const run *r, int32_t number, int32_t instance) {
  const pl_stone *stone = &r->ahead.stones.data[number];
  const planc_access *next = next_access(r, stone->buffer);
  if (!next || next->read != stone->version || held_version(r, stone->buffer) == stone->version) return false;
  for (int32_t k = stone->below; k != NONE; k = r->ahead.stones.data[k].below)
    if (r->ahead.stones.data[k].version == stone->version) return false;
  const bool *apart = r->absences->apart;
  return next->instance == instance || !apart || !apart[r->next[stone->buffer]];
}

static planc_status find_closing(run *r, int32_t instance) {
  r->first_closing.len = r->also_closing.len = r->staying.len = 0;
  for (int64_t k = 0; k < r->ahead.runs.len; k++) VEC_PUSH(&r->first_closing, NONE);
  for (int32_t k = 0; k < r->ahead.stones.len; k++) {
    int32_t *first = &r->first_closing.data[r->ahead.stones.data[k].last];
    bool closes = !stays(r, k, instance);
    VEC_PUSH(&r->also_closing, closes ? *first : NONE);
    if (closes)
      *first = k;
    else
      VEC_PUSH(&r->staying, k);
  }
  return NULL;
}

/* What it opens may have been open for others of other replicas before: that has nothing yet. */
static planc_status exec_again(run *r, const pl_restoring_run *again) {
  while (r->stones.len < again->n_stones) {
    const pl_stone *stone = &r->ahead.stones.data[r->stones.len];
    int32_t residency = open_for_received(r, stone->buffer);
    if (residency < 0) PLANC_TRY(pl_walk_open(r->walk, stone->buffer, &residency));
    if (stone->fetched >= 0) PLANC_TRY(planc_schedule_prefetch(r->schedule, residency, stone->fetched));
    VEC_PUSH(&r->stones, residency);
  }
  return pl_walk_exec(r->walk, again->instance, true);
}

static planc_status close_behind(run *r, int64_t number) {
  for (int32_t k = r->first_closing.data[number]; k != NONE; k = r->also_closing.data[k])
    PLANC_TRY(pl_walk_close(r->walk, r->stones.data[k]));
  return NULL;
}

/* --- Coming and going --------------------------------------------------------------------------------------------- */

static planc_status fetch_ahead(run *r, int32_t position) {
  for (int32_t k = r->fetches.first[position]; k != NONE; k = r->fetches.also[k]) {
    const pl_absence *absence = &r->absences->items[k];
    int32_t version = pl_absence_wraps(absence) ? 0 : absence->version;
    const planc_access *next = next_access(r, absence->buffer);
    bool is_overwritten = next && next->read < 0;
    if (is_overwritten || r->held[absence->buffer] >= 0 ||
        !planc_schedule_on_host(r->schedule, absence->buffer, version))
      continue;
    PLANC_TRY(pl_walk_open(r->walk, absence->buffer, &r->held[absence->buffer]));
    PLANC_TRY(planc_schedule_prefetch(r->schedule, r->held[absence->buffer], version));
  }
  return NULL;
}

/* What the first op is fed comes in ahead of all else: that may have to wait for the end of the period before. */
static planc_status feed(run *r, const planc_instance *first) {
  for (int32_t a = first->first_access; a < first->first_access + first->n_accesses; a++) {
    const planc_access *access = &r->trace->accesses[a];
    if (access->read != 0 || !planc_user_holds(&r->trace->buffers[access->buffer], 0)) continue;
    PLANC_TRY(pl_walk_open(r->walk, access->buffer, &r->held[access->buffer]));
    PLANC_TRY(planc_schedule_prefetch(r->schedule, r->held[access->buffer], 0));
  }
  return NULL;
}

static planc_status copy_out(run *r, int32_t position) {
  for (int32_t k = r->copies.first[position]; k != NONE; k = r->copies.also[k]) {
    const pl_absence *absence = &r->absences->items[k];
    if (planc_schedule_on_host(r->schedule, absence->buffer, absence->version)) continue;
    int32_t residency = r->held[absence->buffer];
    PLANC_TRY(planc_schedule_offload(r->schedule, residency, planc_schedule_host(r->schedule)));
    if (!absence->wait) continue;
    PLANC_TRY(planc_schedule_await(r->schedule, PLANC_STREAM_COMPUTE, residency));
    PLANC_TRY(planc_schedule_await(r->schedule, PLANC_ROUTE_H2D, residency));
  }
  return NULL;
}

static planc_status leave(run *r, int32_t buffer) {
  if (r->held[buffer] < 0) return NULL;
  PLANC_TRY(pl_walk_close(r->walk, r->held[buffer]));
  r->held[buffer] = NONE;
  return NULL;
}

static planc_status leave_after(run *r, int32_t position) {
  for (int32_t k = r->leaves.first[position]; k != NONE; k = r->leaves.also[k]) {
    PLANC_TRY(leave(r, r->absences->items[k].buffer));
  }
  const planc_instance *in = planc_order_instance(r->order, position);
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &r->trace->accesses[a], *next = next_access(r, access->buffer);
    if (pl_leaves_until_written(r->trace, r->restores, access, next)) PLANC_TRY(leave(r, access->buffer));
  }
  return NULL;
}

static planc_status close_dead(run *r, int32_t position) {
  for (int32_t b = r->deaths.first[position]; b != NONE; b = r->deaths.also[b]) {
    if (r->trace->buffers[b].flags & PLANC_BUFFER_PERSISTENT) continue;
    int32_t residency = planc_schedule_open(r->schedule, b);
    if (residency < 0) continue;
    if (r->trace->buffers[b].flags & PLANC_BUFFER_RESULT) PLANC_TRY(planc_schedule_deliver(r->schedule, residency));
    PLANC_TRY(pl_walk_close(r->walk, residency));
    r->held[b] = NONE;
  }
  return NULL;
}

/* --- Agendas and the boundary ------------------------------------------------------------------------------------- */

static planc_status new_agenda(agenda *a, pl_arena *arena, int32_t n_positions, int64_t n_items) {
  PLANC_TRY(PL_NEW(arena, &a->first, n_positions));
  for (int32_t p = 0; p < n_positions; p++) a->first[p] = NONE;
  return PL_NEW(arena, &a->also, n_items);
}

static void enter(agenda *a, int32_t position, int32_t item) {
  a->also[item] = a->first[position];
  a->first[position] = item;
}

/* Entered last to first, so that every position meets its items in their order. */
static planc_status make_agendas(run *r, pl_arena *arena) {
  const pl_absences *absences = r->absences;
  int32_t n = r->order->n;
  if (absences->n > INT32_MAX) return planc_error(PLANC_INTERNAL, "more than %d absences", INT32_MAX);
  PLANC_TRY(new_agenda(&r->copies, arena, n, absences->n));
  PLANC_TRY(new_agenda(&r->leaves, arena, n, absences->n));
  PLANC_TRY(new_agenda(&r->fetches, arena, n, absences->n));
  PLANC_TRY(new_agenda(&r->deaths, arena, n, r->trace->n_buffers));
  for (int32_t k = (int32_t)absences->n - 1; k >= 0; k--) {
    const pl_absence *absence = &absences->items[k];
    if (absence->copy != PL_NO_COPY) enter(&r->copies, absence->copy, k);
    if (absence->leave != NONE) enter(&r->leaves, absence->leave, k);
    int32_t fetched = absences->fetched ? absences->fetched[k] : k;
    enter(&r->fetches, absences->items[fetched].fetch, fetched);
  }
  for (int32_t b = r->trace->n_buffers - 1; b >= 0; b--) {
    int32_t last = absences->until ? absences->until[b] : planc_order_last(r->order, b);
    if (last != NONE) enter(&r->deaths, last, b);
  }
  return NULL;
}

static planc_status open_boundary(run *r, pl_arena *arena) {
  bool *away;
  PLANC_TRY(PL_NEW(arena, &away, r->trace->n_buffers));
  for (int64_t k = 0; k < r->absences->n; k++) {
    if (pl_absence_wraps(&r->absences->items[k])) away[r->absences->items[k].buffer] = true;
  }
  return pl_walk_boundary(r->walk, away);
}

/* --- For those who choose ----------------------------------------------------------------------------------------- */

planc_status pl_absences_explain(pl_absences *absences, pl_arena *arena, const char *format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return pl_arena_strndup(arena, text, strlen(text), &absences->reason);
}

planc_status pl_absences_of_gaps(const planc_order *order, pl_gap_rule rule, pl_arena *arena, pl_absences *out) {
  planc_gaps *gaps;
  pl_absence *items;
  PLANC_TRY(planc_gaps_make(order, &gaps));
  planc_status status = PL_NEW(arena, &items, gaps->n);
  for (int32_t k = 0; !status && k < gaps->n; k++) {
    const planc_gap *gap = &gaps->gaps[k];
    pl_absence *item = &items[out->n];
    *item = (pl_absence){.buffer = gap->buffer, .version = gap->version};
    out->n += rule(order, gap, item);
  }
  if (!status) out->items = items;
  planc_gaps_free(gaps);
  return status;
}
