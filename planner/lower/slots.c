/* Slots for what is away (slots.h): each content has one for as long as it lives, in its tier; where that is beyond the
 * next one to the device, it has one there for each time that it is there. */
#include "planner/lower/slots.h"

#include <stdlib.h>

#include "planner/lower/spill.h"
#include "planner/memory/placement.h"
#include "util/math.h"
#include "util/vec.h"

/* Slots of the contents as they were, with the items that are placed for them. */
typedef struct layout {
  pl_slot *slots;
  pl_tier_copy *copies;
  int32_t *of_command;
  int32_t *item_of;              /* by slot */
  pl_item *items[PL_MOST_TIERS]; /* of each tier but the device and the user */
  int32_t n_items[PL_MOST_TIERS];
  int32_t n, n_copies;
  int64_t host_bytes; /* that they take of the next tier; at least, where that is more than they may */
} layout;

typedef struct making_slots {
  const planc_schedule *schedule;
  pl_tiers tiers;
  pl_contents contents;
  pl_arena *arena;
  int32_t n_commands;
  int64_t most;             /* slots and copies that there can be */
  layout *out;              /* that is made */
  int32_t *item_of_content; /* -1: it has none yet */
} making_slots;

/* Placement may leave gaps: then more is stored than would have to be, or less room is used to be in time. */
typedef struct slot_search {
  making_slots *making;
  pl_spilling spilling;
  int64_t all, budget; /* what would be on the host at once without storage, and what may */
  layout *fits;        /* NULL: none yet */
} slot_search;

/* A way to have less of the host: for all, or to be in time only. What is tried are parts of what would be there
 * without storage, each smaller by a 32nd, or by an 8th where only the time is at stake, so that a larger budget tries
 * what a smaller one does, and is not the slower one because it was unlucky with gaps. */
typedef struct way {
  bool for_all, with_room;
  int64_t part; /* that is tried next */
  int32_t n_left;
  bool at_end;  /* nothing is made of it any more */
  layout *made; /* of the part before */
  pl_spill_cost cost;
} way;

static planc_status prepare(const making_slots *m, layout *out);
static void lay_out(making_slots *m, layout *out);
static planc_status place_host(layout *it, int64_t room);
static planc_status spill(making_slots *m, const planc_problem *problem, layout layouts[2], layout **out);
static planc_status finish(const making_slots *m, const layout *it, pl_slots *out);
static planc_status store(slot_search *s, layout layouts[2], layout **out);
static planc_status try_with_room(slot_search *s, layout layouts[2]);
static planc_status try_without_room(slot_search *s, layout *it);
static pl_spill_cost lay_out_stored(slot_search *s, int64_t host, int64_t room, layout *out);
static planc_status try_one(slot_search *s, int64_t host, int64_t room, layout *it);
static way way_from(const slot_search *s, way w);
static planc_status try_ways(slot_search *s, way *ways, int32_t n);

planc_status pl_slots_make(pl_arena *arena, const planc_schedule *schedule, const planc_problem *problem,
                           pl_slots *out) {
  making_slots m = {.schedule = schedule,
                    .tiers = pl_tiers_of(problem),
                    .arena = arena,
                    .n_commands = planc_schedule_n_commands(schedule)};
  int64_t budget = m.tiers.memories[PL_TIER_NEXT].budget_bytes;
  bool stores = pl_tiers_have_more(&m.tiers) && budget >= 0;
  layout layouts[2] = {0}, *made = &layouts[0];
  *out = (pl_slots){0};
  PLANC_TRY(pl_contents_find(arena, schedule, &m.contents));
  m.most = 2 * (int64_t)m.contents.n;
  for (int32_t k = 0; k < m.contents.n; k++) m.most += m.contents.all[k].n_reads;
  if (m.most > INT32_MAX) return planc_error(PLANC_INTERNAL, "too many copies");
  PLANC_TRY(PL_NEW(arena, &m.item_of_content, m.contents.n));
  PLANC_TRY(prepare(&m, made));
  lay_out(&m, made);
  PLANC_TRY(place_host(made, stores ? planc_share(&problem->terms, budget) : INT64_MAX));
  if (stores) PLANC_TRY(spill(&m, problem, layouts, &made));
  return finish(&m, made, out);
}

static planc_status spill(making_slots *m, const planc_problem *problem, layout layouts[2], layout **out) {
  const planc_device *device = planc_profile_device(problem->job.profile);
  int64_t budget = planc_share(&problem->terms, m->tiers.memories[PL_TIER_NEXT].budget_bytes);
  slot_search s = {.making = m, .all = layouts[0].host_bytes, .budget = budget};
  *out = &layouts[0];
  if (device->store.bytes_per_second < 1 || device->load.bytes_per_second < 1)
    return planc_error(PLANC_USAGE, "the profile of device %s says nothing of storage", device->name);
  if (s.all <= s.budget) return NULL;
  PLANC_TRY(prepare(m, &layouts[1]));
  PLANC_TRY(pl_spilling_make(m->arena, m->schedule, device, &m->contents, &s.spilling));
  return store(&s, layouts, out);
}

/* Where nothing fits, that is made which needs least of the host at once. */
static planc_status store(slot_search *s, layout layouts[2], layout **out) {
  PLANC_TRY(try_with_room(s, layouts));
  if (!s->fits) PLANC_TRY(try_without_room(s, &layouts[0]));
  *out = s->fits ? s->fits : &layouts[0];
  if (s->fits) return NULL;
  (void)lay_out_stored(s, 0, 0, *out);
  return place_host(*out, INT64_MAX);
}

static planc_status try_with_room(slot_search *s, layout layouts[2]) {
  PLANC_TRY(try_one(s, s->budget, s->budget, &layouts[0]));
  if (s->fits) return NULL;
  way ways[] = {way_from(s, (way){.for_all = true, .with_room = true, .made = &layouts[0]}),
                way_from(s, (way){.for_all = false, .with_room = true, .made = &layouts[1]})};
  return try_ways(s, ways, 2);
}

static planc_status try_without_room(slot_search *s, layout *it) {
  PLANC_TRY(try_one(s, s->budget, 0, it));
  if (s->fits) return NULL;
  way less = way_from(s, (way){.for_all = true, .with_room = false, .made = it});
  return try_ways(s, &less, 1);
}

/* --- Slots -------------------------------------------------------------------------------------------------------- */

static int32_t add_slot(const making_slots *m, int32_t number, pl_slot slot, int32_t item) {
  m->out->slots[number] = slot;
  m->out->item_of[number] = item;
  return number;
}

/* Placement aligns addresses alike in all memories; where blocks are larger, items are whole blocks. */
static int32_t add_item(const making_slots *m, int32_t memory, int32_t buffer, pl_lifetime span) {
  int64_t bytes = planc_schedule_trace(m->schedule)->buffers[buffer].bytes;
  int64_t alignment = m->tiers.memories[memory].alignment;
  if (alignment > PLANC_ALIGNMENT) bytes = pl_align_up(bytes, alignment);
  m->out->items[memory][m->out->n_items[memory]] =
      (pl_item){.bytes = bytes, .address = PLANC_BLANK, .spans = {span, {0, 0}}};
  return m->out->n_items[memory]++;
}

/* The slot in which a content lives: that of what is parked has the number of its residency and the place of its twin.
 */
static int32_t add_place(const making_slots *m, int32_t k) {
  const pl_content *it = &m->contents.all[k];
  pl_lifetime span = pl_slot_lifetime(it->written, it->until, m->n_commands);
  int32_t item = it->twin < k ? m->item_of_content[it->twin] : -1;
  if (item >= 0) {
    m->out->items[it->memory][item].spans[1] = span;
  } else {
    item = add_item(m, it->memory, it->buffer, span);
  }
  m->item_of_content[k] = item;
  int32_t number = k < planc_schedule_n_parked(m->schedule) ? k : m->out->n++;
  return add_slot(m, number, (pl_slot){it->buffer, it->memory, 0, it->written, it->until}, item);
}

/* A slot in the next tier for a stored content, for one time that it is there. */
static int32_t add_stop(const making_slots *m, const pl_content *it, int32_t opens, int32_t closes) {
  int32_t item = add_item(m, PL_TIER_NEXT, it->buffer, pl_slot_lifetime(opens, closes, m->n_commands));
  return add_slot(m, m->out->n++, (pl_slot){it->buffer, PL_TIER_NEXT, 0, opens, closes}, item);
}

static void add_stored(const making_slots *m, int32_t k) {
  const pl_content *it = &m->contents.all[k];
  const pl_read *reads = &m->contents.reads[it->first_read];
  int32_t stored = add_place(m, k), stop = PL_NO_SLOT, *of_command = m->out->of_command;
  pl_tier_copy *copies = m->out->copies;
  if (it->written != PL_AT_BOUNDARY) {
    of_command[it->written] = stop = add_stop(m, it, it->written, it->stored_by);
    copies[m->out->n_copies++] = (pl_tier_copy){stop, stored, it->written, false};
  }
  for (int32_t r = 0; r < it->n_reads; r++) {
    if (reads[r].loaded) {
      stop = add_stop(m, it, reads[r].load, pl_staging_stay(&m->contents, it, r));
      copies[m->out->n_copies++] = (pl_tier_copy){stored, stop, reads[r].load, true};
    }
    of_command[reads[r].command] = stop;
  }
}

static void add_kept(const making_slots *m, int32_t k) {
  const pl_content *it = &m->contents.all[k];
  int32_t slot = add_place(m, k), *of_command = m->out->of_command;
  if (it->written != PL_AT_BOUNDARY) of_command[it->written] = slot;
  for (int32_t r = 0; r < it->n_reads; r++) of_command[m->contents.reads[it->first_read + r].command] = slot;
}

static int compare(const void *a, const void *b) {
  const pl_tier_copy *x = a, *y = b;
  if (x->command != y->command) return x->command < y->command ? -1 : 1;
  if (x->load != y->load) return x->load ? -1 : 1;
  return (x->to > y->to) - (x->to < y->to);
}

static planc_status prepare(const making_slots *m, layout *out) {
  PLANC_TRY(PL_NEW(m->arena, &out->slots, m->most));
  PLANC_TRY(PL_NEW(m->arena, &out->copies, m->most));
  PLANC_TRY(PL_NEW(m->arena, &out->of_command, m->n_commands));
  for (int32_t k = PL_TIER_NEXT; k < m->tiers.n - 1; k++) PLANC_TRY(PL_NEW(m->arena, &out->items[k], m->most));
  return PL_NEW(m->arena, &out->item_of, m->most);
}

/* Slots of the contents as they are, not placed. */
static void lay_out(making_slots *m, layout *out) {
  m->out = out;
  out->n_copies = 0;
  for (int32_t k = 0; k < PL_MOST_TIERS; k++) out->n_items[k] = 0;
  out->n = planc_schedule_n_parked(m->schedule);
  for (int32_t c = 0; c < m->n_commands; c++) out->of_command[c] = PL_NO_SLOT;
  for (int32_t k = 0; k < m->contents.n; k++) m->item_of_content[k] = -1;
  for (int32_t k = 0; k < m->contents.n; k++) {
    if (pl_is_stored(&m->contents.all[k])) {
      add_stored(m, k);
    } else {
      add_kept(m, k);
    }
  }
}

static planc_status place_host(layout *it, int64_t room) {
  return planc_context(pl_place_within(it->items[PL_TIER_NEXT], it->n_items[PL_TIER_NEXT], room, &it->host_bytes),
                       "host slots");
}

/* Of slots that are placed on the host. */
static planc_status finish(const making_slots *m, const layout *it, pl_slots *out) {
  *out = (pl_slots){.tiers = m->tiers,
                    .slots = it->slots,
                    .n = it->n,
                    .of_command = it->of_command,
                    .copies = it->copies,
                    .n_copies = it->n_copies,
                    .arena_bytes = {[PL_TIER_NEXT] = it->host_bytes}};
  if (it->n_copies > 0) qsort(it->copies, (size_t)it->n_copies, sizeof *it->copies, compare);
  for (int32_t k = PL_TIER_NEXT + 1; k < m->tiers.n - 1; k++)
    PLANC_TRY(planc_context(pl_place(it->items[k], it->n_items[k], &out->arena_bytes[k], NULL), "slots of tier %d", k));
  for (int32_t s = 0; s < it->n; s++) it->slots[s].address = it->items[it->slots[s].memory][it->item_of[s]].address;
  return NULL;
}

/* --- Storage ------------------------------------------------------------------------------------------------------ */

enum { MOST_TRIES = 24 };

static void make_smaller(way *w) {
  w->part -= w->part / (w->for_all ? 32 : 8) + 1;
}

static way way_from(const slot_search *s, way w) {
  w.n_left = MOST_TRIES;
  w.part = s->all;
  while (w.part >= s->budget && w.part > 0) make_smaller(&w);
  return w;
}

static pl_spill_cost lay_out_stored(slot_search *s, int64_t host, int64_t room, layout *out) {
  pl_spill_cost cost = pl_spill(&s->spilling, host, room);
  lay_out(s->making, out);
  return cost;
}

static void go_on(slot_search *s, way *w) {
  w->at_end = w->n_left == 0 || w->part <= 0;
  if (w->at_end) return;
  w->cost = lay_out_stored(s, w->for_all ? w->part : s->budget, w->with_room ? w->part : 0, w->made);
  w->n_left--;
  make_smaller(w);
}

static planc_status try_layout(slot_search *s, layout *it) {
  PLANC_TRY(place_host(it, s->budget));
  if (it->host_bytes <= s->budget) s->fits = it;
  return NULL;
}

/* Goes the ways side by side, so that what costs less is placed first: as less of the host costs more, the first that
 * fits costs least. */
static planc_status try_ways(slot_search *s, way *ways, int32_t n) {
  for (int32_t k = 0; k < n; k++) go_on(s, &ways[k]);
  while (!s->fits) {
    way *next = NULL;
    for (int32_t k = 0; k < n; k++) {
      if (!ways[k].at_end && (!next || pl_spill_is_cheaper(ways[k].cost, next->cost))) next = &ways[k];
    }
    if (!next) return NULL;
    PLANC_TRY(try_layout(s, next->made));
    if (!s->fits) go_on(s, next);
  }
  return NULL;
}

static planc_status try_one(slot_search *s, int64_t host, int64_t room, layout *it) {
  (void)lay_out_stored(s, host, room, it);
  return try_layout(s, it);
}
