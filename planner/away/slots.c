/* Slots for what is away (slots.h): all of it on the host, where it has room there. Else the search is for what to
 * store beyond the host, and when, such that the rest fits there once it is placed. */
#include "planner/away/slots.h"

#include "cost/routes.h"
#include "planner/away/slot_layout.h"
#include "planner/away/spill.h"

/* Placement may leave gaps: then more is stored than would have to be, or less room is used to be in time. */
typedef struct slot_search {
  pl_slot_maker *maker;
  pl_spilling spilling;
  int64_t all, budget;  /* what would be on the host at once without storage, and what may */
  pl_slot_layout *fits; /* NULL: none yet */
} slot_search;

/* A way to have less of the host: for all, or to be in time only. What is tried are parts of what would be there
 * without storage, each smaller by a 32nd, or by an 8th where only the time is at stake, so that a larger budget tries
 * what a smaller one does, and is not the slower one because it was unlucky with gaps. */
typedef struct way {
  bool for_all, with_room;
  int64_t part; /* that is tried next */
  int32_t n_left;
  bool at_end;          /* nothing is made of it any more */
  pl_slot_layout *made; /* of the part before */
  pl_spill_cost cost;
} way;

static planc_status spill(pl_arena *arena, pl_slot_maker *m, const planc_problem *problem, pl_slot_layout layouts[2],
                          pl_slot_layout **out);
static planc_status store(slot_search *s, pl_slot_layout layouts[2], pl_slot_layout **out);
static planc_status try_with_room(slot_search *s, pl_slot_layout layouts[2]);
static planc_status try_without_room(slot_search *s, pl_slot_layout *it);
static pl_spill_cost lay_out_stored(slot_search *s, int64_t host, int64_t room, pl_slot_layout *out);
static planc_status try_one(slot_search *s, int64_t host, int64_t room, pl_slot_layout *it);
static way way_from(const slot_search *s, way w);
static planc_status try_ways(slot_search *s, way *ways, int32_t n);

planc_status pl_slots_make(pl_arena *arena, const planc_schedule *schedule, const planc_problem *problem,
                           pl_slots *out) {
  pl_tiers tiers = pl_tiers_of(problem);
  int64_t budget = tiers.memories[PL_TIER_HOST].budget_bytes;
  bool stores = budget >= 0 && tiers.n - 1 > PL_TIER_HOST + 1; /* there is one before the user's */
  pl_slot_maker m;
  pl_slot_layout layouts[2] = {0}, *made = &layouts[0];
  *out = (pl_slots){0};
  PLANC_TRY(pl_slot_maker_make(arena, schedule, &tiers, &m));
  PLANC_TRY(pl_slot_layout_new(arena, &m, made));
  pl_slot_layout_make(&m, made);
  PLANC_TRY(pl_slot_layout_place(made, stores ? planc_share(&problem->terms, budget) : INT64_MAX));
  if (stores) PLANC_TRY(spill(arena, &m, problem, layouts, &made));
  return pl_slot_layout_finish(&m, made, out);
}

static planc_status spill(pl_arena *arena, pl_slot_maker *m, const planc_problem *problem, pl_slot_layout layouts[2],
                          pl_slot_layout **out) {
  const planc_device *device = planc_profile_device(problem->job.profile);
  int64_t budget = planc_share(&problem->terms, m->tiers->memories[PL_TIER_HOST].budget_bytes);
  slot_search s = {.maker = m, .all = layouts[0].host_bytes, .budget = budget};
  *out = &layouts[0];
  if (!pl_device_reaches(device, PLANC_MEMORY_STORAGE))
    return planc_error(PLANC_USAGE, "the profile of device %s says nothing of storage", device->name);
  if (s.all <= s.budget) return NULL;
  PLANC_TRY(pl_slot_layout_new(arena, m, &layouts[1]));
  PLANC_TRY(pl_spilling_make(arena, m->schedule, device, &m->contents, &s.spilling));
  return store(&s, layouts, out);
}

/* Where nothing fits, that is made which needs least of the host at once. */
static planc_status store(slot_search *s, pl_slot_layout layouts[2], pl_slot_layout **out) {
  PLANC_TRY(try_with_room(s, layouts));
  if (!s->fits) PLANC_TRY(try_without_room(s, &layouts[0]));
  *out = s->fits ? s->fits : &layouts[0];
  if (s->fits) return NULL;
  (void)lay_out_stored(s, 0, 0, *out);
  return pl_slot_layout_place(*out, INT64_MAX);
}

static planc_status try_with_room(slot_search *s, pl_slot_layout layouts[2]) {
  PLANC_TRY(try_one(s, s->budget, s->budget, &layouts[0]));
  if (s->fits) return NULL;
  way ways[] = {way_from(s, (way){.for_all = true, .with_room = true, .made = &layouts[0]}),
                way_from(s, (way){.for_all = false, .with_room = true, .made = &layouts[1]})};
  return try_ways(s, ways, 2);
}

static planc_status try_without_room(slot_search *s, pl_slot_layout *it) {
  PLANC_TRY(try_one(s, s->budget, 0, it));
  if (s->fits) return NULL;
  way less = way_from(s, (way){.for_all = true, .with_room = false, .made = it});
  return try_ways(s, &less, 1);
}

/* --- Ways --------------------------------------------------------------------------------------------------------- */

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

static pl_spill_cost lay_out_stored(slot_search *s, int64_t host, int64_t room, pl_slot_layout *out) {
  pl_spill_cost cost = pl_spill(&s->spilling, host, room);
  pl_slot_layout_make(s->maker, out);
  return cost;
}

static void go_on(slot_search *s, way *w) {
  w->at_end = w->n_left == 0 || w->part <= 0;
  if (w->at_end) return;
  w->cost = lay_out_stored(s, w->for_all ? w->part : s->budget, w->with_room ? w->part : 0, w->made);
  w->n_left--;
  make_smaller(w);
}

static planc_status try_layout(slot_search *s, pl_slot_layout *it) {
  PLANC_TRY(pl_slot_layout_place(it, s->budget));
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

static planc_status try_one(slot_search *s, int64_t host, int64_t room, pl_slot_layout *it) {
  (void)lay_out_stored(s, host, room, it);
  return try_layout(s, it);
}
