/* Slots for what is away (slots.h): all of it on the host, where it has room there. Else the search is for what to
 * store beyond the host, and when, such that the rest fits there once it is placed. */
#include "planner/away/slots.h"

#include "cost/routes.h"
#include "planner/away/slot_layout.h"
#include "planner/away/spill.h"

/* Placement may leave free ranges: then more is stored than would have to be, or less room is used to be in time. */
typedef struct slot_search {
  pl_slot_maker *maker;
  pl_spilling spilling;
  int64_t all, budget;  /* what would be on the host at once without storage, and what may */
  pl_slot_layout *fits; /* NULL: none yet */
} slot_search;

/* Choices of what to store, one after the other, each with less room on the host. pl_spill takes two sizes: what may
 * have to live on the host, and up to where copies may take room there. Choices `for_all` lower the first, others leave
 * it at the budget; choices `with_room` lower the second, others leave copies no room. Sizes are parts of what would be
 * on the host without storage, each smaller by a 32nd, or by an 8th where only the second is lowered: so a larger
 * budget tries what a smaller one does, and is not the slower one because it was unlucky with free ranges. */
typedef struct retreat {
  bool for_all, with_room;
  int64_t part; /* that is tried next */
  int32_t n_left;
  bool at_end;          /* nothing is made of it any more */
  pl_slot_layout *made; /* of the part before */
  pl_spill_cost cost;
} retreat;

static planc_status memories_of(const planc_schedule *schedule, const planc_terms *terms, const planc_profile *profile,
                                pl_memories *out);
static planc_status lay_out_kept(pl_slot_maker *m, int64_t budget, bool stores, bool tight, pl_slot_layout *out);
static planc_status require_links(const pl_memories *memories, int32_t storage, const planc_device *device);
static planc_status spill(pl_arena *arena, pl_slot_maker *m, const planc_device *device, int64_t budget,
                          pl_slot_layout layouts[2], pl_slot_layout **out);
static planc_status store(slot_search *s, pl_slot_layout layouts[2], pl_slot_layout **out);
static planc_status try_with_room(slot_search *s, pl_slot_layout layouts[2]);
static planc_status try_without_room(slot_search *s, pl_slot_layout *it);
static pl_spill_cost lay_out_stored(slot_search *s, int64_t host, int64_t room, pl_slot_layout *out);
static planc_status try_one(slot_search *s, int64_t host, int64_t room, pl_slot_layout *it);
static retreat retreat_from(const slot_search *s, retreat w);
static planc_status try_retreats(slot_search *s, retreat *retreats, int32_t n);

planc_status pl_slots_make(pl_arena *arena, const planc_schedule *schedule, const planc_terms *terms,
                           const planc_profile *profile, bool roomy, pl_slots *out) {
  pl_memories memories;
  pl_slot_maker m;
  pl_slot_layout layouts[2] = {0}, *made = &layouts[0];
  *out = (pl_slots){0};
  PLANC_TRY(memories_of(schedule, terms, profile, &memories));
  int64_t budget = memories.rows[planc_schedule_host(schedule)].budget_bytes;
  int32_t storage = pl_memories_behind_host(&memories);
  bool stores = budget >= 0 && storage >= 0;
  if (budget >= 0) budget = planc_share(terms, budget);
  PLANC_TRY(pl_slot_maker_make(arena, schedule, &memories, &m));
  PLANC_TRY(pl_slot_layout_new(arena, &m, made));
  PLANC_TRY(lay_out_kept(&m, budget, stores, !roomy, made));
  bool states = storage >= 0 && made->n_items[storage] > 0;
  const planc_device *device = profile ? planc_profile_device(profile) : NULL;
  if (device && (stores || states)) PLANC_TRY(require_links(&memories, storage, device));
  if (stores) PLANC_TRY(spill(arena, &m, device, budget, layouts, &made));
  return pl_slot_layout_finish(&m, made, out);
}

/* Everything on the host; tight where it need be. */
static planc_status lay_out_kept(pl_slot_maker *m, int64_t budget, bool stores, bool tight, pl_slot_layout *out) {
  if (!tight) {
    pl_slot_layout_make(m, out);
    PLANC_TRY(pl_slot_layout_place(m, out, budget < 0 ? INT64_MAX : budget));
    if (budget < 0 || out->host_bytes <= budget) return NULL;
  }
  out->tight = true;
  pl_slot_layout_make(m, out);
  return pl_slot_layout_place(m, out, stores ? budget : INT64_MAX);
}

/* Those that a schedule is lowered to: those of `terms`, or of the schedule itself, without limits, where that is
 * NULL. A memory of the schedule has the same number there; a policy may have been asked not to count on storage, which
 * lowering may use nevertheless. INTERNAL where the terms lack one of the schedule's. */
static planc_status memories_of(const planc_schedule *schedule, const planc_terms *terms, const planc_profile *profile,
                                pl_memories *out) {
  int32_t n;
  const planc_memory *rows = planc_schedule_memories(schedule, &n);
  pl_memories own = {.n = n};
  for (int32_t m = 0; m < n; m++) {
    own.rows[m] = rows[m];
    own.rows[m].budget_bytes = -1;
  }
  *out = terms ? pl_memories_of(terms, profile) : own;
  bool has = true;
  for (int32_t m = 0; m < n; m++)
    has &= rows[m].kind == PLANC_MEMORY_USER || (m < out->n && out->rows[m].kind == rows[m].kind);
  return has ? NULL : planc_error(PLANC_INTERNAL, "the schedule was stated for memories that the terms lack");
}

static planc_status require_links(const pl_memories *memories, int32_t storage, const planc_device *device) {
  if (pl_device_reaches(device, memories->rows[storage].kind)) return NULL;
  return planc_error(PLANC_USAGE, "the profile of device %s says nothing of storage", device->name);
}

static planc_status spill(pl_arena *arena, pl_slot_maker *m, const planc_device *device, int64_t budget,
                          pl_slot_layout layouts[2], pl_slot_layout **out) {
  slot_search s = {.maker = m, .all = layouts[0].host_bytes, .budget = budget};
  *out = &layouts[0];
  if (s.all <= s.budget) return NULL;
  PLANC_TRY(pl_slot_layout_new(arena, m, &layouts[1]));
  layouts[1].tight = true;
  PLANC_TRY(pl_spilling_make(arena, m->schedule, m->memories, device, &m->contents, &s.spilling));
  return store(&s, layouts, out);
}

/* Where nothing fits, that is made which needs least of the host at once. */
static planc_status store(slot_search *s, pl_slot_layout layouts[2], pl_slot_layout **out) {
  PLANC_TRY(try_with_room(s, layouts));
  if (!s->fits) PLANC_TRY(try_without_room(s, &layouts[0]));
  *out = s->fits ? s->fits : &layouts[0];
  if (s->fits) return NULL;
  (void)lay_out_stored(s, 0, 0, *out);
  return pl_slot_layout_place(s->maker, *out, INT64_MAX);
}

static planc_status try_with_room(slot_search *s, pl_slot_layout layouts[2]) {
  PLANC_TRY(try_one(s, s->budget, s->budget, &layouts[0]));
  if (s->fits) return NULL;
  retreat retreats[] = {retreat_from(s, (retreat){.for_all = true, .with_room = true, .made = &layouts[0]}),
                        retreat_from(s, (retreat){.for_all = false, .with_room = true, .made = &layouts[1]})};
  return try_retreats(s, retreats, 2);
}

static planc_status try_without_room(slot_search *s, pl_slot_layout *it) {
  PLANC_TRY(try_one(s, s->budget, 0, it));
  if (s->fits) return NULL;
  retreat less = retreat_from(s, (retreat){.for_all = true, .with_room = false, .made = it});
  return try_retreats(s, &less, 1);
}

/* --- Retreats ----------------------------------------------------------------------------------------------------- */

enum { MAX_TRIES = 24 };

static void make_smaller(retreat *w) {
  w->part -= w->part / (w->for_all ? 32 : 8) + 1;
}

static retreat retreat_from(const slot_search *s, retreat w) {
  w.n_left = MAX_TRIES;
  w.part = s->all;
  while (w.part >= s->budget && w.part > 0) make_smaller(&w);
  return w;
}

static pl_spill_cost lay_out_stored(slot_search *s, int64_t host, int64_t room, pl_slot_layout *out) {
  pl_spill_cost cost = pl_spill(&s->spilling, host, room);
  pl_slot_layout_make(s->maker, out);
  return cost;
}

static void go_on(slot_search *s, retreat *w) {
  w->at_end = w->n_left == 0 || w->part <= 0;
  if (w->at_end) return;
  w->cost = lay_out_stored(s, w->for_all ? w->part : s->budget, w->with_room ? w->part : 0, w->made);
  w->n_left--;
  make_smaller(w);
}

static planc_status try_layout(slot_search *s, pl_slot_layout *it) {
  PLANC_TRY(pl_slot_layout_place(s->maker, it, s->budget));
  if (it->host_bytes <= s->budget) s->fits = it;
  return NULL;
}

/* Follows the retreats side by side, so that what costs less is placed first: as less of the host costs more, the first
 * that fits costs least. */
static planc_status try_retreats(slot_search *s, retreat *retreats, int32_t n) {
  for (int32_t k = 0; k < n; k++) go_on(s, &retreats[k]);
  while (!s->fits) {
    retreat *next = NULL;
    for (int32_t k = 0; k < n; k++) {
      if (!retreats[k].at_end && (!next || pl_spill_is_cheaper(retreats[k].cost, next->cost))) next = &retreats[k];
    }
    if (!next) return NULL;
    PLANC_TRY(try_layout(s, next->made));
    if (!s->fits) go_on(s, next);
  }
  return NULL;
}

static planc_status try_one(slot_search *s, int64_t host, int64_t room, pl_slot_layout *it) {
  (void)lay_out_stored(s, host, room, it);
  return try_layout(s, it);
}
