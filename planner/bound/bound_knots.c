/* Knots come and go (bound_knots.h). */
#include "planner/bound/bound_knots.h"

#include <string.h>

#include "util/math.h"

enum { NONE = -1 };

planc_status pl_bound_knots_new(pl_bound_space *space, pl_arena *arena, pl_bound_knots *out) {
  *out = (pl_bound_knots){.space = space};
  return PL_NEW(arena, &out->tried, space->model->n);
}

static bool add(pl_bound_knots *knots, int32_t position);

void pl_bound_knots_begin(pl_bound_knots *knots, const int64_t *beyond) {
  /* Of the most that is beyond the room. */
  static const int32_t percent[PL_FIRST_KNOTS] = {5, 20, 50};
  const int32_t n = knots->space->model->n;
  int32_t top = 0, first[PL_FIRST_KNOTS], last[PL_FIRST_KNOTS];
  for (int32_t p = 1; p < n; p++)
    if (beyond[p] > beyond[top]) top = p;
  if (beyond[top] <= 0) return;
  for (int k = 0; k < PL_FIRST_KNOTS; k++) {
    int64_t least = pl_muldiv_floor(beyond[top], percent[k], 100);
    for (first[k] = 0; beyond[first[k]] < least; first[k]++) continue;
    for (last[k] = n - 1; beyond[last[k]] < least; last[k]--) continue;
  }
  add(knots, top);
  add(knots, last[0]);
  for (int k = 1; k < PL_FIRST_KNOTS; k++) knots->first[knots->n_first++] = last[k];
  for (int k = 0; k < PL_FIRST_KNOTS; k++) knots->first[knots->n_first++] = first[k];
}

static bool add(pl_bound_knots *knots, int32_t position) {
  if (knots->tried[position] || !pl_bound_space_add(knots->space, position)) return false;
  knots->tried[position] = true;
  return true;
}

void pl_bound_knots_forget(pl_bound_knots *knots) {
  knots->all = false;
  memset(knots->tried, 0, (size_t)knots->space->model->n * sizeof *knots->tried);
}

/* --- Others ------------------------------------------------------------------------------------------------------- */

enum { MOST_AT_ONCE = 4 };

/* What asks for a knot at a position: ns of the period, in parts of the ideal time. */
typedef struct knot_reason {
  double much;
  int32_t position;
  enum { MEMORY, IN, OUT } kind;
} knot_reason;

typedef struct knot_reasons {
  const pl_bound_knots *knots;
  const double *mean;
  knot_reason chosen[MOST_AT_ONCE];
  int32_t n_chosen;
  knot_reason best;
} knot_reasons;

static int32_t add_first_ones(pl_bound_knots *knots);
static void find_best(knot_reasons *r);
static bool add_all(pl_bound_knots *knots);

bool pl_bound_knots_change(pl_bound_knots *knots, const pl_bound_prices *prices, const double *mean) {
  enum { LEAST = 2 };
  knot_reasons r = {.knots = knots, .mean = mean};
  pl_bound_space_drop_idle(knots->space, prices);
  int32_t most = (int32_t)pl_clamp(knots->space->n_knots, LEAST, MOST_AT_ONCE), n_added = add_first_ones(knots);
  for (; n_added < most; n_added++) {
    find_best(&r);
    if (r.best.position == NONE || !add(knots, r.best.position)) break;
    r.chosen[r.n_chosen++] = r.best;
  }
  return n_added > 0 || add_all(knots);
}

/* Where there are few, once. */
static bool add_all(pl_bound_knots *knots) {
  pl_bound_space *space = knots->space;
  if (knots->all || space->model->n > space->most_knots) return false;
  pl_bound_space_add_all(space);
  return knots->all = true;
}

static int32_t add_first_ones(pl_bound_knots *knots) {
  enum { AT_ONCE = 2 };
  int32_t n = 0;
  while (knots->next_first < knots->n_first && n < AT_ONCE) n += add(knots, knots->first[knots->next_first++]);
  return n;
}

static bool may_be_knot(const knot_reasons *r, knot_reason reason);
static void look_at_stretch(knot_reasons *r, int32_t stretch, bool out);

static void find_best(knot_reasons *r) {
  const double hardly = 1e-6;
  const pl_bound_space *space = r->knots->space;
  r->best = (knot_reason){hardly, NONE, MEMORY};
  for (int32_t p = 0; p < space->model->n; p++) {
    knot_reason reason = {r->mean[p] * space->unit, p, MEMORY};
    if (reason.much > r->best.much && may_be_knot(r, reason)) r->best = reason;
  }
  for (int32_t t = 0; t < pl_bound_space_stretches(space); t++) {
    look_at_stretch(r, t, false);
    look_at_stretch(r, t, true);
  }
}

/* The slot up to which what is copied is farthest from an even flow through the stretch. */
static void look_at_stretch(knot_reasons *r, int32_t stretch, bool out) {
  const pl_bound_space *space = r->knots->space;
  const int32_t first = pl_bound_space_first(space, stretch), end = pl_bound_space_first(space, stretch + 1);
  const double *mean = &r->mean[(out ? 3 : 1) * (int64_t)space->model->n];
  double sum = 0, before = 0;
  knot_reason most = {0, NONE, out ? OUT : IN};
  for (int32_t slot = first; slot < end; slot++) sum += mean[slot];
  for (int32_t slot = first; slot < end - 1; slot++) {
    before += mean[slot];
    double beyond = before - sum * (double)(slot + 1 - first) / (double)(end - first);
    if (beyond < 0) beyond = -beyond;
    if (beyond > most.much) most = (knot_reason){beyond, slot / 2, most.kind};
  }
  if (most.much > r->best.much && may_be_knot(r, most)) r->best = most;
}

/* It has been none, and those that are chosen for the same reason are not near. */
static bool may_be_knot(const knot_reasons *r, knot_reason reason) {
  enum { PARTS = 8 };
  const pl_bound_space *space = r->knots->space;
  int32_t apart = (int32_t)pl_max(space->model->n / (PARTS * ((int64_t)space->n_knots + 1)), 1);
  if (r->knots->tried[reason.position]) return false;
  for (int32_t k = 0; k < r->n_chosen; k++) {
    int32_t distance = reason.position - r->chosen[k].position;
    if (r->chosen[k].kind == reason.kind && (distance < 0 ? -distance : distance) < apart) return false;
  }
  return !pl_bound_space_has(space, reason.position);
}
