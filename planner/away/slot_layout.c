/* Slots for contents, wherever each is kept (slot_layout.h). */
#include "planner/away/slot_layout.h"

#include <stdlib.h>

#include "util/math.h"

static void add_stored(const pl_slot_maker *m, int32_t k);
static void add_kept(const pl_slot_maker *m, int32_t k);
static int compare(const void *a, const void *b);

planc_status pl_slot_maker_make(pl_arena *arena, const planc_schedule *schedule, const pl_memories *memories,
                                pl_slot_maker *out) {
  *out = (pl_slot_maker){.schedule = schedule,
                         .memories = memories,
                         .host = planc_schedule_host(schedule),
                         .n_commands = planc_schedule_n_commands(schedule)};
  PLANC_TRY(pl_contents_find(arena, schedule, &out->contents));
  out->most = 2 * (int64_t)out->contents.n;
  for (int32_t k = 0; k < out->contents.n; k++) out->most += out->contents.all[k].n_reads;
  if (out->most > INT32_MAX) return planc_error(PLANC_INTERNAL, "too many copies");
  return PL_NEW(arena, &out->item_of_content, out->contents.n);
}

planc_status pl_slot_layout_new(pl_arena *arena, const pl_slot_maker *m, pl_slot_layout *out) {
  PLANC_TRY(PL_NEW(arena, &out->slots, m->most));
  PLANC_TRY(PL_NEW(arena, &out->copies, m->most));
  PLANC_TRY(PL_NEW(arena, &out->of_command, m->n_commands));
  for (int32_t k = 0; k < m->memories->n; k++)
    if (pl_memories_is_away(m->memories, k)) PLANC_TRY(PL_NEW(arena, &out->items[k], m->most));
  return PL_NEW(arena, &out->item_of, m->most);
}

void pl_slot_layout_make(pl_slot_maker *m, pl_slot_layout *out) {
  m->out = out;
  out->n_copies = 0;
  for (int32_t k = 0; k < PL_MAX_MEMORIES; k++) out->n_items[k] = 0;
  out->n = planc_schedule_n_away(m->schedule);
  for (int32_t c = 0; c < m->n_commands; c++) out->of_command[c] = (pl_sides){PL_NO_SIDE, PL_NO_SIDE};
  for (int32_t k = 0; k < m->contents.n; k++) m->item_of_content[k] = -1;
  for (int32_t k = 0; k < m->contents.n; k++) {
    if (pl_is_stored(&m->contents.all[k])) {
      add_stored(m, k);
    } else {
      add_kept(m, k);
    }
  }
}

planc_status pl_slot_layout_place(const pl_slot_maker *m, pl_slot_layout *layout, int64_t room) {
  return planc_context(pl_place_within(layout->items[m->host], layout->n_items[m->host], room, &layout->host_bytes),
                       "host slots");
}

planc_status pl_slot_layout_finish(const pl_slot_maker *m, const pl_slot_layout *layout, pl_slots *out) {
  *out = (pl_slots){.memories = *m->memories,
                    .slots = layout->slots,
                    .n = layout->n,
                    .of_command = layout->of_command,
                    .copies = layout->copies,
                    .n_copies = layout->n_copies};
  out->arena_bytes[m->host] = layout->host_bytes;
  if (layout->n_copies > 0) qsort(layout->copies, (size_t)layout->n_copies, sizeof *layout->copies, compare);
  for (int32_t k = 0; k < m->memories->n; k++) {
    if (k == m->host || !pl_memories_is_away(m->memories, k)) continue;
    PLANC_TRY(planc_context(pl_place(layout->items[k], layout->n_items[k], &out->arena_bytes[k], NULL),
                            "slots of memory %d", k));
  }
  for (int32_t s = 0; s < layout->n; s++)
    layout->slots[s].address = layout->items[layout->slots[s].memory][layout->item_of[s]].address;
  return NULL;
}

/* --- Slots of a content ------------------------------------------------------------------------------------------- */

static int32_t add_slot(const pl_slot_maker *m, int32_t number, pl_slot slot, int32_t item) {
  m->out->slots[number] = slot;
  m->out->item_of[number] = item;
  return number;
}

/* Placement aligns addresses alike in all memories; where blocks are larger, items are whole blocks. */
static int32_t add_item(const pl_slot_maker *m, int32_t memory, int32_t buffer, pl_lifetime span) {
  int64_t bytes = planc_schedule_trace(m->schedule)->buffers[buffer].bytes;
  int64_t alignment = m->memories->rows[memory].alignment;
  if (alignment > PLANC_ALIGNMENT) bytes = pl_align_up(bytes, alignment);
  m->out->items[memory][m->out->n_items[memory]] =
      (pl_item){.bytes = bytes, .address = PLANC_BLANK, .spans = {span, {0, 0}}};
  return m->out->n_items[memory]++;
}

/* The slot in which a content lives: that of what starts the period away has the number of its
 * residency and the place of its twin. */
static int32_t add_place(const pl_slot_maker *m, int32_t k) {
  const pl_content *it = &m->contents.all[k];
  pl_lifetime span = pl_slot_lifetime(it->written, m->out->tight ? it->until : it->in_use, m->n_commands);
  int32_t item = it->twin < k ? m->item_of_content[it->twin] : -1;
  if (item >= 0) {
    m->out->items[it->lies_in][item].spans[1] = span;
  } else {
    item = add_item(m, it->lies_in, it->buffer, span);
  }
  m->item_of_content[k] = item;
  int32_t number = k < planc_schedule_n_away(m->schedule) ? k : m->out->n++;
  return add_slot(m, number, (pl_slot){it->buffer, it->lies_in, 0, it->written, it->until}, item);
}

/* A slot on the host for a stored content, for one time that it is there. */
static int32_t add_stop(const pl_slot_maker *m, const pl_content *it, int32_t opens, int32_t closes) {
  int32_t item = add_item(m, it->memory, it->buffer, pl_slot_lifetime(opens, closes, m->n_commands));
  return add_slot(m, m->out->n++, (pl_slot){it->buffer, it->memory, 0, opens, closes}, item);
}

static void add_stored(const pl_slot_maker *m, int32_t k) {
  const pl_content *it = &m->contents.all[k];
  const pl_read *reads = &m->contents.reads[it->first_read];
  int32_t stored = add_place(m, k), stop = PL_NO_SIDE;
  pl_sides *of_command = m->out->of_command;
  pl_slot_copy *copies = m->out->copies;
  if (it->written != PL_AT_BOUNDARY) {
    of_command[it->written].target = stop = add_stop(m, it, it->written, it->stored_by);
    copies[m->out->n_copies++] = (pl_slot_copy){stop, stored, it->written, false};
  }
  for (int32_t r = 0; r < it->n_reads; r++) {
    if (reads[r].loaded) {
      stop = add_stop(m, it, reads[r].load, pl_content_stay(&m->contents, it, r));
      copies[m->out->n_copies++] = (pl_slot_copy){stored, stop, reads[r].load, true};
    }
    of_command[reads[r].command].source = stop;
  }
}

static void add_kept(const pl_slot_maker *m, int32_t k) {
  const pl_content *it = &m->contents.all[k];
  int32_t slot = add_place(m, k);
  pl_sides *of_command = m->out->of_command;
  if (it->written != PL_AT_BOUNDARY) of_command[it->written].target = slot;
  for (int32_t r = 0; r < it->n_reads; r++) of_command[m->contents.reads[it->first_read + r].command].source = slot;
}

static int compare(const void *a, const void *b) {
  const pl_slot_copy *x = a, *y = b;
  if (x->command != y->command) return x->command < y->command ? -1 : 1;
  if (x->load != y->load) return x->load ? -1 : 1;
  return (x->to > y->to) - (x->to < y->to);
}
