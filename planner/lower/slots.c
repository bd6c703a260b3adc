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
  planc_slot *slots;
  planc_tier_copy *copies;
  int32_t *of_command;
} result;

typedef struct making {
  const planc_schedule *schedule;
  planc_contents contents;
  planc_arena *arena;
  int32_t n_commands;
  result results[2];
  int32_t which;        /* of them is made */
  int32_t *item_of;     /* by slot */
  planc_item *items[2]; /* on the host; in storage */
  int32_t n_items[2];
  int32_t n, n_copies;
  int32_t *item_of_content; /* -1: it has none yet */
} making;

/* --- Slots -------------------------------------------------------------------------------------------------------- */

/* Command c stands at position c + 1, the boundary at 0 and behind all. */
static planc_lifetime lifetime_of(const making *m, int32_t opens, int32_t closes) {
  int32_t end = closes == PLANC_STAYS ? m->n_commands + 2 : closes == PLANC_AT_BOUNDARY ? 1 : closes + 2;
  return (planc_lifetime){opens == PLANC_AT_BOUNDARY ? 0 : opens + 1, end};
}

static int32_t add_slot(making *m, int32_t number, planc_slot slot, int32_t item) {
  m->results[m->which].slots[number] = slot;
  m->item_of[number] = item;
  return number;
}

static int32_t add_item(making *m, bool stored, int32_t buffer, planc_lifetime span) {
  int64_t bytes = planc_schedule_trace(m->schedule)->buffers[buffer].bytes;
  if (stored) bytes = planc_align_up(bytes, PLANC_STORAGE_ALIGNMENT);
  m->items[stored][m->n_items[stored]] = (planc_item){.bytes = bytes, .address = PLANC_BLANK, .spans = {span, {0, 0}}};
  return m->n_items[stored]++;
}

/* The slot in which a content lives: that of what is parked has the number of its residency and the place of its twin.
 */
static int32_t add_place(making *m, int32_t k) {
  const planc_content *it = &m->contents.all[k];
  planc_lifetime span = lifetime_of(m, it->written, it->until);
  int32_t item = it->twin < k ? m->item_of_content[it->twin] : -1;
  if (item >= 0) {
    m->items[it->stored][item].spans[1] = span;
  } else {
    item = add_item(m, it->stored, it->buffer, span);
  }
  m->item_of_content[k] = item;
  int32_t number = k < planc_schedule_n_parked(m->schedule) ? k : m->n++;
  return add_slot(m, number, (planc_slot){it->buffer, it->stored, 0, it->written, it->until}, item);
}

/* A slot on the host for a stored content, for one time that it is there. */
static int32_t add_stop(making *m, const planc_content *it, int32_t opens, int32_t closes) {
  int32_t item = add_item(m, false, it->buffer, lifetime_of(m, opens, closes));
  return add_slot(m, m->n++, (planc_slot){it->buffer, false, 0, opens, closes}, item);
}

static void add_stored(making *m, int32_t k) {
  const planc_content *it = &m->contents.all[k];
  const planc_read *reads = &m->contents.reads[it->first_read];
  int32_t stored = add_place(m, k), stop = PLANC_NO_SLOT, *of_command = m->results[m->which].of_command;
  planc_tier_copy *copies = m->results[m->which].copies;
  if (it->written != PLANC_AT_BOUNDARY) {
    of_command[it->written] = stop = add_stop(m, it, it->written, it->stored_by);
    copies[m->n_copies++] = (planc_tier_copy){stop, stored, it->written, false};
  }
  for (int32_t r = 0; r < it->n_reads; r++) {
    if (reads[r].loaded) {
      stop = add_stop(m, it, reads[r].load, planc_staging_stay(&m->contents, it, r));
      copies[m->n_copies++] = (planc_tier_copy){stored, stop, reads[r].load, true};
    }
    of_command[reads[r].command] = stop;
  }
}

static void add_kept(making *m, int32_t k) {
  const planc_content *it = &m->contents.all[k];
  int32_t slot = add_place(m, k), *of_command = m->results[m->which].of_command;
  if (it->written != PLANC_AT_BOUNDARY) of_command[it->written] = slot;
  for (int32_t r = 0; r < it->n_reads; r++) of_command[m->contents.reads[it->first_read + r].command] = slot;
}

static int compare(const void *a, const void *b) {
  const planc_tier_copy *x = a, *y = b;
  if (x->command != y->command) return x->command < y->command ? -1 : 1;
  if (x->load != y->load) return x->load ? -1 : 1;
  return (x->to > y->to) - (x->to < y->to);
}

static planc_status prepare(making *m) {
  int64_t most = 2 * (int64_t)m->contents.n;
  for (int32_t k = 0; k < m->contents.n; k++) most += m->contents.all[k].n_reads;
  if (most > INT32_MAX) return planc_error(PLANC_INTERNAL, "too many copies");
  for (int32_t k = 0; k < 2; k++) {
    PLANC_TRY(PLANC_NEW(m->arena, &m->results[k].slots, most));
    PLANC_TRY(PLANC_NEW(m->arena, &m->results[k].copies, most));
    PLANC_TRY(PLANC_NEW(m->arena, &m->results[k].of_command, m->n_commands));
    PLANC_TRY(PLANC_NEW(m->arena, &m->items[k], most));
  }
  PLANC_TRY(PLANC_NEW(m->arena, &m->item_of, most));
  return PLANC_NEW(m->arena, &m->item_of_content, m->contents.n);
}

/* Slots of the contents as they are, placed. */
static planc_status place(making *m, planc_slots *out) {
  result *made = &m->results[m->which];
  m->n_items[0] = m->n_items[1] = m->n_copies = 0;
  m->n = planc_schedule_n_parked(m->schedule);
  for (int32_t c = 0; c < m->n_commands; c++) made->of_command[c] = PLANC_NO_SLOT;
  for (int32_t k = 0; k < m->contents.n; k++) m->item_of_content[k] = -1;
  for (int32_t k = 0; k < m->contents.n; k++) {
    if (m->contents.all[k].stored) {
      add_stored(m, k);
    } else {
      add_kept(m, k);
    }
  }
  if (m->n_copies > 0) qsort(made->copies, (size_t)m->n_copies, sizeof *made->copies, compare);
  PLANC_TRY(planc_context(planc_place(m->items[0], m->n_items[0], &out->host_bytes), "host slots"));
  PLANC_TRY(planc_context(planc_place(m->items[1], m->n_items[1], &out->storage_bytes), "storage slots"));
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
 * been tried and fits, that is kept which takes the least time. */
typedef struct search {
  making *making;
  planc_spilling spilling;
  int64_t budget;
  planc_slots best, last;
  int64_t best_ns; /* INT64_MAX: nothing fits */
  int64_t excess;  /* of the last one over the budget */
} search;

static planc_status try_one(search *s, int64_t host, int64_t room) {
  making *m = s->making;
  int64_t ns = planc_spill(&s->spilling, host, room);
  PLANC_TRY(place(m, &s->last));
  s->excess = s->last.host_bytes - s->budget;
  if (s->excess > 0 || ns >= s->best_ns) return NULL;
  s->best = s->last;
  s->best_ns = ns;
  m->which = 1 - m->which;
  return NULL;
}

enum { MOST_TRIES = 4 };

/* Less of the host than the last one had, by what was too much and by more each time. */
static planc_status try_less(search *s, bool with_room) {
  int64_t host = s->budget;
  for (int32_t k = 0; k < MOST_TRIES && s->excess > 0; k++) {
    int64_t least = host >> (MOST_TRIES - k + 2);
    if (s->excess > host) return NULL;
    host -= s->excess > least ? s->excess : least;
    PLANC_TRY(try_one(s, host, with_room ? host : 0));
  }
  return NULL;
}

/* The most room with which everything that may live on the host can be placed. */
static planc_status try_rooms(search *s) {
  int64_t low = 0, high = s->budget;
  for (int32_t k = 0; k < MOST_TRIES; k++) {
    int64_t room = low + (high - low) / 2;
    PLANC_TRY(try_one(s, s->budget, room));
    if (s->excess > 0) {
      high = room;
    } else {
      low = room;
    }
  }
  return NULL;
}

static planc_status spill(making *m, const planc_problem *problem, planc_slots *out) {
  const planc_device *device = planc_profile_device(problem->profile);
  search s = {.making = m, .budget = planc_share(problem, problem->host_budget_bytes), .best_ns = INT64_MAX};
  if (device->store.bytes_per_second < 1 || device->load.bytes_per_second < 1)
    return planc_error(PLANC_USAGE, "the profile of device %s says nothing of storage", device->name);
  if (out->host_bytes <= s.budget) return NULL;
  PLANC_TRY(planc_spilling_make(m->arena, m->schedule, device, &m->contents, &s.spilling));
  PLANC_TRY(try_one(&s, s.budget, s.budget));
  if (s.excess > 0) {
    PLANC_TRY(try_less(&s, true));
    PLANC_TRY(try_rooms(&s));
  }
  if (s.best_ns == INT64_MAX) {
    PLANC_TRY(try_one(&s, s.budget, 0));
    PLANC_TRY(try_less(&s, false));
  }
  if (s.best_ns == INT64_MAX) PLANC_TRY(try_one(&s, 0, 0));
  *out = s.best_ns < INT64_MAX ? s.best : s.last;
  return NULL;
}

planc_status planc_slots_make(planc_arena *arena, const planc_schedule *schedule, const planc_problem *problem,
                              planc_slots *out) {
  making m = {.schedule = schedule, .arena = arena, .n_commands = planc_schedule_n_commands(schedule)};
  *out = (planc_slots){0};
  PLANC_TRY(planc_contents_find(arena, schedule, &m.contents));
  PLANC_TRY(prepare(&m));
  PLANC_TRY(place(&m, out));
  if (!problem || problem->storage_budget_bytes <= 0 || problem->host_budget_bytes < 0) return NULL;
  return spill(&m, problem, out);
}
