/* Messages about what has no place: their words, and the moment that they tell of (no_place.h). */
#include "planner/memory/no_place.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "graph/op_place.h"
#include "util/arena.h"
#include "util/emit.h"
#include "util/math.h"

enum { NAME_TEXT = 256 + PL_PLACE_TEXT };

static const char *name_of(const planc_trace *trace, int32_t what, char text[NAME_TEXT]);
static void emit_moment(pl_emit *emit, const planc_trace *trace, int32_t instance);
static void emit_largest(pl_emit *emit, const pl_no_place *it);

planc_status pl_no_place_tell(const pl_no_place *it, char **out_text) {
  pl_emit emit = {0};
  char name[NAME_TEXT];
  size_t length;
  int64_t left = it->room - it->beside;
  pl_emit_text(&emit, ": ");
  if (it->gpus > 1) pl_emit_format(&emit, "on each of %d GPUs ", (int)it->gpus);
  pl_emit_format(&emit, "%s of %lld bytes finds no place", name_of(it->trace, it->unplaced.what, name),
                 (long long)it->unplaced.bytes);
  emit_moment(&emit, it->trace, it->instance);
  if (it->beside > 0) pl_emit_format(&emit, " beside %lld bytes", (long long)it->beside);
  emit_largest(&emit, it);
  if (left >= it->unplaced.bytes)
    pl_emit_format(&emit, "; %lld are free then, in pieces that do not fit", (long long)left);
  return pl_emit_take(&emit, out_text, &length);
}

void pl_no_place_beside(pl_no_place *it, pl_occupant occupant) {
  it->beside = pl_add_saturate(it->beside, occupant.bytes);
  int32_t k = it->n_largest;
  while (k > 0 && it->largest[k - 1].bytes < occupant.bytes) k--;
  if (k == PL_NAMED_OCCUPANTS) return;
  if (it->n_largest < PL_NAMED_OCCUPANTS) it->n_largest++;
  for (int32_t m = it->n_largest - 1; m > k; m--) it->largest[m] = it->largest[m - 1];
  it->largest[k] = occupant;
}

/* --- Words -------------------------------------------------------------------------------------------------------- */

static const char *name_of(const planc_trace *trace, int32_t what, char text[NAME_TEXT]) {
  char place[PL_PLACE_TEXT];
  if (what >= 0) {
    (void)snprintf(text, NAME_TEXT, "%s%s", planc_trace_buffer_whose(trace, what),
                   planc_trace_buffer_name(trace, what));
  } else {
    const planc_op *op = planc_trace_op(trace, -1 - what);
    (void)snprintf(text, NAME_TEXT, "the workspace of op %s%s", op->name, pl_op_place(op, place));
  }
  return text;
}

static void emit_moment(pl_emit *emit, const planc_trace *trace, int32_t instance) {
  char place[PL_PLACE_TEXT];
  if (instance < 0) {
    pl_emit_text(emit, " at the end of the period");
  } else {
    const planc_op *op = planc_trace_op(trace, instance);
    pl_emit_format(emit, " at op %s%s", op->name, pl_op_place(op, place));
  }
}

static void emit_largest(pl_emit *emit, const pl_no_place *it) {
  char name[NAME_TEXT];
  for (int32_t k = 0; k < it->n_largest; k++) {
    pl_emit_format(emit, "%s%s of %lld", k > 0 ? " and " : ", the largest ",
                   name_of(it->trace, it->largest[k].what, name), (long long)it->largest[k].bytes);
  }
}

/* --- The moment --------------------------------------------------------------------------------------------------- */

static planc_status find_fullest_position(const pl_occupants *o, int64_t room, pl_arena *arena, int32_t *out);
static planc_status tell_at(const pl_occupants *o, int64_t room, int32_t position, char **out_text);

planc_status pl_occupants_tell(const pl_occupants *occupants, int64_t room, char **out_text) {
  pl_arena arena = {0};
  int32_t position;
  planc_status status = find_fullest_position(occupants, room, &arena, &position);
  pl_arena_free(&arena);
  if (status) return status;
  if (position >= 0) return tell_at(occupants, room, position, out_text);
  *out_text = calloc(1, 1);
  return *out_text ? NULL : planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
}

planc_status pl_occupants_overlap(const pl_occupants *o, pl_overlap overlap) {
  char item[NAME_TEXT], other[NAME_TEXT];
  const pl_item *a = &o->items[overlap.item], *b = &o->items[overlap.other];
  int32_t instance = o->instance_at[overlap.position];
  return planc_error(PLANC_INTERNAL, "%s of %lld bytes at address %lld overlaps %s of %lld at %lld %s%s",
                     name_of(o->trace, o->what[overlap.item], item), (long long)a->bytes, (long long)a->address,
                     name_of(o->trace, o->what[overlap.other], other), (long long)b->bytes, (long long)b->address,
                     instance < 0 ? "at the end of the period" : "at op ",
                     instance < 0 ? "" : planc_trace_op(o->trace, instance)->name);
}

static bool ends_above(const pl_item *item, int64_t room) {
  return item->bytes > 0 && pl_add_saturate(item->address, item->bytes) > room;
}

static bool lives_at(const pl_item *item, int32_t position) {
  return item->bytes > 0 && pl_item_meets(item, (pl_lifetime){position, position + 1});
}

/* Of the positions at which something lives that ends above `room`, the one with the most bytes; -1 = there is none. */
static planc_status find_fullest_position(const pl_occupants *o, int64_t room, pl_arena *arena, int32_t *out) {
  int64_t *live, *above, most = -1;
  pl_item *high; /* items, of which those that end above have a byte */
  PLANC_TRY(pl_items_live(arena, o->items, o->n, o->n_positions, &live));
  PLANC_TRY(PL_NEW(arena, &high, o->n));
  for (int32_t i = 0; i < o->n; i++) {
    high[i] = o->items[i];
    high[i].bytes = ends_above(&o->items[i], room);
  }
  PLANC_TRY(pl_items_live(arena, high, o->n, o->n_positions, &above));
  *out = -1;
  for (int32_t p = 0; p < o->n_positions; p++) {
    if (above[p] == 0 || live[p] <= most) continue;
    *out = p;
    most = live[p];
  }
  return NULL;
}

/* The largest of those that end above has no place. */
static planc_status tell_at(const pl_occupants *o, int64_t room, int32_t position, char **out_text) {
  int32_t unplaced = -1;
  for (int32_t i = 0; i < o->n; i++) {
    if (!ends_above(&o->items[i], room) || !lives_at(&o->items[i], position)) continue;
    if (unplaced < 0 || o->items[i].bytes > o->items[unplaced].bytes) unplaced = i;
  }
  assert(unplaced >= 0); /* the one that ends highest does so somewhere */
  pl_no_place it = {.trace = o->trace,
                    .unplaced = {o->what[unplaced], o->items[unplaced].bytes},
                    .instance = o->instance_at[position],
                    .room = room,
                    .gpus = o->gpus};
  for (int32_t i = 0; i < o->n; i++) {
    if (i != unplaced && lives_at(&o->items[i], position))
      pl_no_place_beside(&it, (pl_occupant){o->what[i], o->items[i].bytes});
  }
  return pl_no_place_tell(&it, out_text);
}
