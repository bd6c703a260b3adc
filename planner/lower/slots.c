/* Slots for what is away (slots.h): on the host each content has one for as long as it lives; a stored one has a slot
 * in storage for that time, and on the host one behind its offload and one ahead of its reads. */
#include "planner/lower/slots.h"

#include <stdlib.h>

#include "planner/lower/contents.h"
#include "planner/memory/placement.h"
#include "util/math.h"
#include "util/vec.h"

typedef struct making {
  const planc_schedule *schedule;
  planc_contents contents;
  planc_arena *arena;
  int32_t n_commands;
  planc_slot *slots;
  planc_tier_copy *copies;
  int32_t *item_of;     /* by slot */
  planc_item *items[2]; /* on the host; in storage */
  int32_t n_items[2];
  int32_t n, n_copies;
  int32_t *of_command;
  int32_t *item_of_content; /* -1: it has none yet */
} making;

/* --- Slots -------------------------------------------------------------------------------------------------------- */

/* Command c stands at position c + 1, the boundary at 0 and behind all. */
static planc_lifetime lifetime_of(const making *m, int32_t opens, int32_t closes) {
  int32_t end = closes == PLANC_STAYS ? m->n_commands + 2 : closes == PLANC_AT_BOUNDARY ? 1 : closes + 2;
  return (planc_lifetime){opens == PLANC_AT_BOUNDARY ? 0 : opens + 1, end};
}

static int32_t add_slot(making *m, int32_t number, planc_slot slot, int32_t item) {
  m->slots[number] = slot;
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

/* A slot on the host for a stored content. */
static int32_t add_stop(making *m, const planc_content *it, int32_t opens, int32_t closes) {
  int32_t item = add_item(m, false, it->buffer, lifetime_of(m, opens, closes));
  return add_slot(m, m->n++, (planc_slot){it->buffer, false, 0, opens, closes}, item);
}

static void add_stored(making *m, int32_t k) {
  const planc_content *it = &m->contents.all[k];
  const planc_read *reads = &m->contents.reads[it->first_read];
  int32_t home = add_place(m, k);
  if (it->written != PLANC_AT_BOUNDARY) {
    int32_t stop = add_stop(m, it, it->written, it->stored_by);
    m->of_command[it->written] = stop;
    m->copies[m->n_copies++] = (planc_tier_copy){stop, home, it->written, false};
  }
  for (int32_t r = 0; r < it->n_reads; r++) {
    int32_t stop = add_stop(m, it, reads[r].load, reads[r].command);
    m->copies[m->n_copies++] = (planc_tier_copy){home, stop, reads[r].load, true};
    m->of_command[reads[r].command] = stop;
  }
}

static void add_kept(making *m, int32_t k) {
  const planc_content *it = &m->contents.all[k];
  int32_t slot = add_place(m, k);
  if (it->written != PLANC_AT_BOUNDARY) m->of_command[it->written] = slot;
  for (int32_t r = 0; r < it->n_reads; r++) m->of_command[m->contents.reads[it->first_read + r].command] = slot;
}

static int compare(const void *a, const void *b) {
  const planc_tier_copy *x = a, *y = b;
  if (x->command != y->command) return x->command < y->command ? -1 : 1;
  if (x->load != y->load) return x->load ? -1 : 1;
  return (x->to > y->to) - (x->to < y->to);
}

static planc_status reset(making *m) {
  int64_t n_reads = 0;
  for (int32_t k = 0; k < m->contents.n; k++) n_reads += m->contents.all[k].n_reads;
  int64_t most = 2 * (int64_t)m->contents.n + n_reads;
  if (most > INT32_MAX) return planc_error(PLANC_INTERNAL, "too many copies");
  PLANC_TRY(PLANC_NEW(m->arena, &m->slots, most));
  PLANC_TRY(PLANC_NEW(m->arena, &m->item_of, most));
  PLANC_TRY(PLANC_NEW(m->arena, &m->copies, most));
  PLANC_TRY(PLANC_NEW(m->arena, &m->items[0], most));
  PLANC_TRY(PLANC_NEW(m->arena, &m->items[1], most));
  PLANC_TRY(PLANC_NEW(m->arena, &m->of_command, m->n_commands));
  PLANC_TRY(PLANC_NEW(m->arena, &m->item_of_content, m->contents.n));
  for (int32_t c = 0; c < m->n_commands; c++) m->of_command[c] = PLANC_NO_SLOT;
  for (int32_t k = 0; k < m->contents.n; k++) m->item_of_content[k] = -1;
  m->n_items[0] = m->n_items[1] = m->n_copies = 0;
  m->n = planc_schedule_n_parked(m->schedule);
  return NULL;
}

/* Slots of the contents as they are, placed. */
static planc_status place(making *m, planc_slots *out) {
  PLANC_TRY(reset(m));
  for (int32_t k = 0; k < m->contents.n; k++) {
    if (m->contents.all[k].stored) {
      add_stored(m, k);
    } else {
      add_kept(m, k);
    }
  }
  if (m->n_copies > 0) qsort(m->copies, (size_t)m->n_copies, sizeof *m->copies, compare);
  PLANC_TRY(planc_context(planc_place(m->items[0], m->n_items[0], &out->host_bytes), "host slots"));
  PLANC_TRY(planc_context(planc_place(m->items[1], m->n_items[1], &out->storage_bytes), "storage slots"));
  for (int32_t s = 0; s < m->n; s++) m->slots[s].address = m->items[m->slots[s].stored][m->item_of[s]].address;
  out->slots = m->slots;
  out->n = m->n;
  out->of_command = m->of_command;
  out->copies = m->copies;
  out->n_copies = m->n_copies;
  return NULL;
}

/* --- Storage ------------------------------------------------------------------------------------------------------ */

/* Placement may leave gaps: then less room is used to be in time, and in the end less is asked for. */
static planc_status spill(making *m, const planc_problem *problem, planc_slots *out) {
  enum { WITH_ROOM = 4, MOST_TRIES = 8 };
  const planc_device *device = planc_profile_device(problem->profile);
  int64_t aim = problem->host_budget_bytes, room = aim;
  if (device->store.bytes_per_second < 1 || device->load.bytes_per_second < 1)
    return planc_error(PLANC_USAGE, "the profile of device %s says nothing of storage", device->name);
  for (int32_t k = 0; k < MOST_TRIES && aim >= 0 && out->host_bytes > problem->host_budget_bytes; k++) {
    PLANC_TRY(planc_contents_spill(m->arena, m->schedule, device, aim, room, &m->contents));
    PLANC_TRY(place(m, out));
    int64_t excess = out->host_bytes - problem->host_budget_bytes;
    if (room == 0) aim -= excess;
    room = k + 1 < WITH_ROOM && room > excess ? room - excess : 0;
  }
  return NULL;
}

planc_status planc_slots_make(planc_arena *arena, const planc_schedule *schedule, const planc_problem *problem,
                              planc_slots *out) {
  making m = {.schedule = schedule, .arena = arena, .n_commands = planc_schedule_n_commands(schedule)};
  *out = (planc_slots){0};
  PLANC_TRY(planc_contents_find(arena, schedule, &m.contents));
  PLANC_TRY(place(&m, out));
  if (!problem || problem->storage_budget_bytes <= 0 || problem->host_budget_bytes < 0) return NULL;
  return spill(&m, problem, out);
}
