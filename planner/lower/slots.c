/* Slots for what is away (slots.h): on the host each content has one for as long as it lives; a stored one has a slot
 * in storage for that time, and on the host one for each time that it is there. */
#include "planner/lower/slots.h"

#include <stdlib.h>

#include "planner/lower/spill.h"
#include "planner/memory/placement.h"
#include "util/math.h"
#include "util/vec.h"

/* What is handed out; there are two, so that one can be kept while the other is made. */
typedef struct result {
  pl_slot *slots;
  pl_tier_copy *copies;
  int32_t *of_command;
} result;

typedef struct making {
  const planc_schedule *schedule;
  pl_contents contents;
  pl_arena *arena;
  int32_t n_commands;
  result results[2];
  int32_t which;     /* of them is made */
  int32_t *item_of;  /* by slot */
  pl_item *items[2]; /* on the host; in storage */
  int32_t n_items[2];
  int32_t n, n_copies;
  int32_t *item_of_content; /* -1: it has none yet */
} making;

/* --- Slots -------------------------------------------------------------------------------------------------------- */

static int32_t add_slot(making *m, int32_t number, pl_slot slot, int32_t item) {
  m->results[m->which].slots[number] = slot;
  m->item_of[number] = item;
  return number;
}

static int32_t add_item(making *m, bool stored, int32_t buffer, pl_lifetime span) {
  int64_t bytes = planc_schedule_trace(m->schedule)->buffers[buffer].bytes;
  if (stored) bytes = pl_align_up(bytes, PL_STORAGE_ALIGNMENT);
  m->items[stored][m->n_items[stored]] = (pl_item){.bytes = bytes, .address = PLANC_BLANK, .spans = {span, {0, 0}}};
  return m->n_items[stored]++;
}

/* The slot in which a content lives: that of what is parked has the number of its residency and the place of its twin.
 */
static int32_t add_place(making *m, int32_t k) {
  const pl_content *it = &m->contents.all[k];
  pl_lifetime span = pl_slot_lifetime(it->written, it->until, m->n_commands);
  int32_t item = it->twin < k ? m->item_of_content[it->twin] : -1;
  if (item >= 0) {
    m->items[it->stored][item].spans[1] = span;
  } else {
    item = add_item(m, it->stored, it->buffer, span);
  }
  m->item_of_content[k] = item;
  int32_t number = k < planc_schedule_n_parked(m->schedule) ? k : m->n++;
  return add_slot(m, number, (pl_slot){it->buffer, it->stored, 0, it->written, it->until}, item);
}

/* A slot on the host for a stored content, for one time that it is there. */
static int32_t add_stop(making *m, const pl_content *it, int32_t opens, int32_t closes) {
  int32_t item = add_item(m, false, it->buffer, pl_slot_lifetime(opens, closes, m->n_commands));
  return add_slot(m, m->n++, (pl_slot){it->buffer, false, 0, opens, closes}, item);
}

static void add_stored(making *m, int32_t k) {
  const pl_content *it = &m->contents.all[k];
  const pl_read *reads = &m->contents.reads[it->first_read];
  int32_t stored = add_place(m, k), stop = PL_NO_SLOT, *of_command = m->results[m->which].of_command;
  pl_tier_copy *copies = m->results[m->which].copies;
  if (it->written != PL_AT_BOUNDARY) {
    of_command[it->written] = stop = add_stop(m, it, it->written, it->stored_by);
    copies[m->n_copies++] = (pl_tier_copy){stop, stored, it->written, false};
  }
  for (int32_t r = 0; r < it->n_reads; r++) {
    if (reads[r].loaded) {
      stop = add_stop(m, it, reads[r].load, pl_staging_stay(&m->contents, it, r));
      copies[m->n_copies++] = (pl_tier_copy){stored, stop, reads[r].load, true};
    }
    of_command[reads[r].command] = stop;
  }
}

static void add_kept(making *m, int32_t k) {
  const pl_content *it = &m->contents.all[k];
  int32_t slot = add_place(m, k), *of_command = m->results[m->which].of_command;
  if (it->written != PL_AT_BOUNDARY) of_command[it->written] = slot;
  for (int32_t r = 0; r < it->n_reads; r++) of_command[m->contents.reads[it->first_read + r].command] = slot;
}

static int compare(const void *a, const void *b) {
  const pl_tier_copy *x = a, *y = b;
  if (x->command != y->command) return x->command < y->command ? -1 : 1;
  if (x->load != y->load) return x->load ? -1 : 1;
  return (x->to > y->to) - (x->to < y->to);
}

static planc_status prepare(making *m) {
  int64_t most = 2 * (int64_t)m->contents.n;
  for (int32_t k = 0; k < m->contents.n; k++) most += m->contents.all[k].n_reads;
  if (most > INT32_MAX) return planc_error(PLANC_INTERNAL, "too many copies");
  for (int32_t k = 0; k < 2; k++) {
    PLANC_TRY(PL_NEW(m->arena, &m->results[k].slots, most));
    PLANC_TRY(PL_NEW(m->arena, &m->results[k].copies, most));
    PLANC_TRY(PL_NEW(m->arena, &m->results[k].of_command, m->n_commands));
    PLANC_TRY(PL_NEW(m->arena, &m->items[k], most));
  }
  PLANC_TRY(PL_NEW(m->arena, &m->item_of, most));
  return PL_NEW(m->arena, &m->item_of_content, m->contents.n);
}

/* Slots of the contents as they are, placed. */
static planc_status place(making *m, pl_slots *out) {
  result *made = &m->results[m->which];
  m->n_items[0] = m->n_items[1] = m->n_copies = 0;
  m->n = planc_schedule_n_parked(m->schedule);
  for (int32_t c = 0; c < m->n_commands; c++) made->of_command[c] = PL_NO_SLOT;
  for (int32_t k = 0; k < m->contents.n; k++) m->item_of_content[k] = -1;
  for (int32_t k = 0; k < m->contents.n; k++) {
    if (m->contents.all[k].stored) {
      add_stored(m, k);
    } else {
      add_kept(m, k);
    }
  }
  if (m->n_copies > 0) qsort(made->copies, (size_t)m->n_copies, sizeof *made->copies, compare);
  PLANC_TRY(planc_context(pl_place(m->items[0], m->n_items[0], &out->host_bytes, NULL), "host slots"));
  PLANC_TRY(planc_context(pl_place(m->items[1], m->n_items[1], &out->storage_bytes, NULL), "storage slots"));
  for (int32_t s = 0; s < m->n; s++) made->slots[s].address = m->items[made->slots[s].stored][m->item_of[s]].address;
  out->slots = made->slots;
  out->n = m->n;
  out->of_command = made->of_command;
  out->copies = made->copies;
  out->n_copies = m->n_copies;
  return NULL;
}

/* --- Storage ------------------------------------------------------------------------------------------------------ */

/* Placement may leave gaps: then more is stored than would have to be, or less room is used to be in time. Of what has
 * been tried and fits, that is kept which costs least. */
typedef struct search {
  making *making;
  pl_spilling spilling;
  int64_t budget;
  pl_slots best, last;
  pl_spill_cost least; /* of the best; of INT64_MAX where nothing fits */
} search;

static bool any_fits(const search *s) {
  return s->least.ns < INT64_MAX;
}

/* *out_worse: whatever its slots take, it costs as much as the best or more, and is not placed. */
static planc_status try_one(search *s, int64_t host, int64_t room, bool *out_worse) {
  making *m = s->making;
  pl_spill_cost cost = pl_spill(&s->spilling, host, room);
  *out_worse = any_fits(s) && !pl_spill_is_cheaper(cost, s->least);
  if (*out_worse) return NULL;
  PLANC_TRY(place(m, &s->last));
  if (s->last.host_bytes > s->budget) return NULL;
  s->best = s->last;
  s->least = cost;
  m->which = 1 - m->which;
  return NULL;
}

/* With less of the host, for all or to be in time only, until that costs more than what fits. What is tried are parts
 * of what would be there without storage, each smaller by a 32nd, or by an 8th where only the time is at stake, so that
 * a larger budget tries what a smaller one does, and is not the slower one because it was unlucky with gaps. */
static planc_status try_parts(search *s, int64_t all, bool for_all, bool with_room) {
  enum { MOST_TRIES = 24 };
  int64_t step = for_all ? 32 : 8, part = all;
  bool worse = false;
  while (part >= s->budget && part > 0) part -= part / step + 1;
  for (int32_t k = 0; k < MOST_TRIES && part > 0 && !worse; k++, part -= part / step + 1)
    PLANC_TRY(try_one(s, for_all ? part : s->budget, with_room ? part : 0, &worse));
  return NULL;
}

static planc_status spill(making *m, const planc_problem *problem, pl_slots *out) {
  const planc_device *device = planc_profile_device(problem->profile);
  search s = {.making = m,
              .budget = planc_share(problem, problem->host_budget_bytes),
              .least = {.ns = INT64_MAX, .bytes = INT64_MAX}};
  int64_t all = out->host_bytes;
  bool worse;
  if (device->store.bytes_per_second < 1 || device->load.bytes_per_second < 1)
    return planc_error(PLANC_USAGE, "the profile of device %s says nothing of storage", device->name);
  if (all <= s.budget) return NULL;
  PLANC_TRY(pl_spilling_make(m->arena, m->schedule, device, &m->contents, &s.spilling));
  PLANC_TRY(try_one(&s, s.budget, s.budget, &worse));
  if (!any_fits(&s)) {
    PLANC_TRY(try_parts(&s, all, true, true));
    PLANC_TRY(try_parts(&s, all, false, true));
  }
  if (!any_fits(&s)) PLANC_TRY(try_one(&s, s.budget, 0, &worse));
  if (!any_fits(&s)) PLANC_TRY(try_parts(&s, all, true, false));
  if (!any_fits(&s)) PLANC_TRY(try_one(&s, 0, 0, &worse));
  *out = any_fits(&s) ? s.best : s.last;
  return NULL;
}

planc_status pl_slots_make(pl_arena *arena, const planc_schedule *schedule, const planc_problem *problem,
                           pl_slots *out) {
  making m = {.schedule = schedule, .arena = arena, .n_commands = planc_schedule_n_commands(schedule)};
  *out = (pl_slots){0};
  PLANC_TRY(pl_contents_find(arena, schedule, &m.contents));
  PLANC_TRY(prepare(&m));
  PLANC_TRY(place(&m, out));
  if (!problem || problem->storage_budget_bytes <= 0 || problem->host_budget_bytes < 0) return NULL;
  return spill(&m, problem, out);
}
