/* The search for prices (bound_ascent.h).
 *
 * The value is concave and has corners: a step along its slopes may lead down. Each step goes as far as would reach a
 * target a little above the best value found, if the slopes stayed (Polyak's step), along a mean of this slope and
 * those before (Camerini, Fratta and Maffioli, 1975). Where steps find nothing better the search goes back to the best
 * prices with a nearer target.
 *
 * Prices of memory and of links have units of their own. How large a step of the one is beside that of the other
 * decides how soon the search ends, and which is best differs from graph to graph: so the search takes turns with
 * four. */
#include "planner/bound/bound_ascent.h"

#include <string.h>

enum {
  FEWEST_GROUPS = 16,
  FINER = 4,  /* times as many groups in the next level */
  CYCLES = 2, /* through all units, in each level */
  FEWEST_STEPS = 32,
  N_UNITS = 4,
  PATIENCE = 15, /* steps without something better until the target comes nearer */
  N_PUSHES = 4   /* of the links: in and out, in slots of ops and behind them */
};

typedef struct fraction {
  int32_t of, parts;
} fraction;

/* Of the price of a byte at which all of the room costs the whole period. */
static const fraction of_room[N_UNITS] = {{1, 1}, {3, 10}, {1, 10}, {3, 100}};

typedef struct ascent {
  const pl_bound_model *model;
  pl_arena *arena;
  pl_bound_value value;
  pl_bound_prices now, *best;
  pl_signed_wide best_value;
  int64_t ideal_ns; /* the value without prices */
  int64_t values;   /* that were looked at */
  int64_t unit;     /* parts of a ns for a byte */
  int64_t units[N_UNITS];
  int32_t n_groups;
  int32_t *group;      /* by position */
  int32_t *top;        /* by group: where most would be live if everything stayed, -1 = it has no op */
  int64_t *beyond;     /* by position: bytes live beyond the room if everything stayed */
  int64_t *byte_push;  /* by group: along which the search goes, in ns */
  int64_t *byte_slope; /* by group, in ns */
  int64_t *link_push[N_PUSHES], *link_slope[N_PUSHES]; /* by group, in ns */
} ascent;

static planc_status start(ascent *a, int64_t room);
static void climb_levels(ascent *a, int64_t most_values);
static void set_units(ascent *a);
static int64_t n_climbs(const ascent *a);
static void set_groups(ascent *a, int32_t n_groups);
static void climb(ascent *a, int64_t unit, bool again, int64_t most_values);

planc_status pl_bound_ascend(const pl_bound_model *model, int64_t room, int64_t most_values, pl_arena *arena,
                             pl_bound_prices *out_prices, pl_bound_found *out) {
  ascent a = {.model = model, .arena = arena, .best = out_prices};
  PLANC_TRY(start(&a, room));
  if (room > 0 && model->n > 0) climb_levels(&a, most_values);
  *out = pl_bound_found_of(model, out_prices, a.best_value, a.ideal_ns, a.values);
  return NULL;
}

/* From few prices to one for each op. */
static void climb_levels(ascent *a, int64_t most_values) {
  int32_t n = a->model->n;
  set_units(a);
  int64_t each = pl_max(most_values / n_climbs(a), FEWEST_STEPS);
  for (int64_t groups = FEWEST_GROUPS, last = 0; last < n; groups *= FINER) {
    last = groups;
    set_groups(a, (int32_t)pl_min(groups, n));
    for (int32_t c = 0; c < CYCLES * N_UNITS && a->values < most_values; c++)
      climb(a, a->units[c % N_UNITS], c >= N_UNITS, pl_min(each, most_values - a->values));
  }
}

static void look(ascent *a) {
  pl_bound_value_find(&a->value, &a->now);
  a->values++;
}

static planc_status start(ascent *a, int64_t room) {
  int32_t n = a->model->n;
  PLANC_TRY(pl_bound_value_new(a->model, room, a->arena, &a->value));
  PLANC_TRY(pl_bound_prices_new(a->model, a->arena, &a->now));
  PLANC_TRY(pl_bound_prices_new(a->model, a->arena, a->best));
  PLANC_TRY(PL_NEW(a->arena, &a->group, n));
  PLANC_TRY(PL_NEW(a->arena, &a->top, n));
  PLANC_TRY(PL_NEW(a->arena, &a->beyond, n));
  PLANC_TRY(PL_NEW(a->arena, &a->byte_push, n));
  PLANC_TRY(PL_NEW(a->arena, &a->byte_slope, n));
  for (int k = 0; k < N_PUSHES; k++) {
    PLANC_TRY(PL_NEW(a->arena, &a->link_push[k], n));
    PLANC_TRY(PL_NEW(a->arena, &a->link_slope[k], n));
  }
  look(a);
  a->best_value = a->value.value;
  a->ideal_ns = (int64_t)(a->value.value >> PL_PRICE_BITS);
  memcpy(a->beyond, a->value.slopes.byte, (size_t)n * sizeof *a->beyond);
  return NULL;
}

static int64_t n_climbs(const ascent *a) {
  int64_t n_levels = 1;
  for (int64_t groups = FEWEST_GROUPS; groups < a->model->n; groups *= FINER) n_levels++;
  return n_levels * CYCLES * N_UNITS;
}

static void set_units(ascent *a) {
  int64_t room = pl_muldiv_floor(a->ideal_ns, PL_PRICE_ONE, a->value.room);
  for (int32_t k = 0; k < N_UNITS; k++)
    a->units[k] = pl_add_saturate(pl_muldiv_floor(room, of_room[k].of, of_room[k].parts), 1);
}

/* Stretches of about equal time. */
static void set_groups(ascent *a, int32_t n_groups) {
  int64_t before = 0;
  a->n_groups = n_groups;
  for (int32_t q = 0; q < n_groups; q++) a->top[q] = -1;
  for (int32_t p = 0; p < a->model->n; p++) {
    bool each = n_groups == a->model->n;
    int32_t q = each ? p : (int32_t)pl_muldiv_floor(n_groups, before, pl_add_saturate(a->ideal_ns, 1));
    q = (int32_t)pl_min(q, n_groups - 1);
    a->group[p] = q;
    if (a->top[q] < 0 || a->beyond[p] > a->beyond[a->top[q]]) a->top[q] = p;
    before = pl_add_saturate(before, pl_bound_op_ns(&a->model->ops[p]));
  }
}

/* --- Steps -------------------------------------------------------------------------------------------------------- */

static void forget_pushes(ascent *a);
static bool keep_better(ascent *a, int64_t delta_ns, pl_signed_wide *reached);
static void go_back(ascent *a);
static bool find_push(ascent *a, pl_signed_wide *out_length);
static void step(ascent *a, int64_t lacking_ns, pl_signed_wide length);

/* How far the first target is: a part of what the prices certify beyond the ops' own time. */
static int64_t first_delta(const ascent *a, bool again) {
  enum { UNKNOWN = 20, FAR = 3, NEAR = 10, LEAST = 10000 };
  int64_t gained = (int64_t)((a->best_value >> PL_PRICE_BITS) - a->ideal_ns);
  int64_t delta = gained > 0 ? gained / (again ? NEAR : FAR) : a->ideal_ns / UNKNOWN;
  return pl_max(delta, a->ideal_ns / LEAST + 1);
}

static void climb(ascent *a, int64_t unit, bool again, int64_t most_values) {
  enum { GROWTH = 4 };
  int64_t delta_ns = first_delta(a, again);
  int32_t waited = 0;
  pl_signed_wide reached = -1;
  a->unit = unit;
  go_back(a);
  for (int64_t k = 0; k < most_values; k++) {
    pl_signed_wide length;
    look(a);
    bool better = keep_better(a, delta_ns, &reached);
    waited = better ? 0 : waited + 1;
    if (better) delta_ns = pl_add_saturate(delta_ns, delta_ns / GROWTH);
    if (waited > PATIENCE) {
      delta_ns -= pl_muldiv_floor(delta_ns, 3, 10);
      waited = 0;
      go_back(a);
      continue;
    }
    if (!find_push(a, &length)) return;
    pl_signed_wide target =
        (reached > a->best_value ? reached : a->best_value) + ((pl_signed_wide)delta_ns << PL_PRICE_BITS);
    pl_signed_wide lacking_ns = (target - a->value.value) >> PL_PRICE_BITS;
    step(a, lacking_ns > INT64_MAX ? INT64_MAX : (int64_t)lacking_ns, length);
  }
}

static void forget_pushes(ascent *a) {
  size_t size = (size_t)a->model->n * sizeof *a->byte_push;
  memset(a->byte_push, 0, size);
  for (int k = 0; k < N_PUSHES; k++) memset(a->link_push[k], 0, size);
}

static void go_back(ascent *a) {
  pl_bound_prices_copy(a->model, a->best, &a->now);
  forget_pushes(a);
}

/* Whether it is better, in this climb, by something. */
static bool keep_better(ascent *a, int64_t delta_ns, pl_signed_wide *reached) {
  enum { SOMETHING = 50 };
  pl_signed_wide value = a->value.value;
  bool better = value > *reached + (((pl_signed_wide)delta_ns << PL_PRICE_BITS) / SOMETHING);
  if (value > *reached) *reached = value;
  if (value > a->best_value) {
    a->best_value = value;
    pl_bound_prices_copy(a->model, &a->now, a->best);
  }
  return better;
}

/* --- Along which it goes ------------------------------------------------------------------------------------------ */

#define MOST_SLOPE (INT64_C(1) << 50)

static void sum_slopes(ascent *a);
static int64_t *link_price(const ascent *a, int32_t kind, int32_t position);

/* Adds a slope to three quarters of the push before it, but where a price that is 0 would fall: there is none. */
static void turn(int64_t slope, int64_t price, int64_t *push, pl_signed_wide *length, pl_signed_wide *along) {
  enum { OLD = 3, OF = 4 };
  if (price <= 0 && slope < 0) {
    *push = 0;
    return;
  }
  *push = slope + *push / OF * OLD;
  *length += (pl_signed_wide)slope * slope;
  *along += (pl_signed_wide)slope * *push;
}

/* False where no price can be better. */
static bool find_push(ascent *a, pl_signed_wide *out_length) {
  pl_signed_wide length = 0, along = 0;
  sum_slopes(a);
  for (int32_t q = 0; q < a->n_groups; q++) {
    int32_t p = a->top[q];
    if (p < 0) continue;
    turn(a->byte_slope[q], a->now.byte[p], &a->byte_push[q], &length, &along);
    for (int k = 0; k < N_PUSHES; k++)
      turn(a->link_slope[k][q], *link_price(a, k, p), &a->link_push[k][q], &length, &along);
  }
  *out_length = along > length ? along : length;
  return *out_length > 0;
}

static void sum_slopes(ascent *a) {
  const pl_bound_prices *slopes = &a->value.slopes;
  for (int32_t q = 0; q < a->n_groups; q++) {
    int64_t bytes = a->top[q] < 0 ? 0 : slopes->byte[a->top[q]];
    int64_t ns = pl_min(pl_muldiv_floor(bytes < 0 ? -bytes : bytes, a->unit, PL_PRICE_ONE), MOST_SLOPE);
    a->byte_slope[q] = bytes < 0 ? -ns : ns;
    for (int k = 0; k < N_PUSHES; k++) a->link_slope[k][q] = 0;
  }
  for (int32_t p = 0; p < a->model->n; p++) {
    int32_t q = a->group[p];
    int64_t slot = 2 * (int64_t)p;
    a->link_slope[0][q] += slopes->in[slot];
    a->link_slope[1][q] += slopes->out[slot];
    a->link_slope[2][q] += slopes->in[slot + 1];
    a->link_slope[3][q] += slopes->out[slot + 1];
  }
  for (int32_t q = 0; q < a->n_groups; q++)
    for (int k = 0; k < N_PUSHES; k++) a->link_slope[k][q] = pl_clamp(a->link_slope[k][q], -MOST_SLOPE, MOST_SLOPE);
}

static int64_t *link_price(const ascent *a, int32_t kind, int32_t position) {
  int32_t slot = 2 * position + kind / 2;
  return kind % 2 == 0 ? &a->now.in[slot] : &a->now.out[slot];
}

/* --- How far ------------------------------------------------------------------------------------------------------ */

static int64_t moved(int64_t lacking_ns, int64_t push, pl_signed_wide length);
static void move_links(ascent *a, int32_t slot, int64_t in, int64_t out);

static void step(ascent *a, int64_t lacking_ns, pl_signed_wide length) {
  int64_t most = pl_bound_most_price(a->model);
  for (int32_t q = 0; q < a->n_groups; q++) {
    int32_t p = a->top[q];
    if (p < 0) continue;
    pl_signed_wide price =
        a->now.byte[p] + (((pl_signed_wide)moved(lacking_ns, a->byte_push[q], length) * a->unit) >> PL_PRICE_BITS);
    a->now.byte[p] = price < 0 ? 0 : price > most ? most : (int64_t)price;
    for (int k = 0; k < N_PUSHES; k++) a->link_push[k][q] = pl_clamp(a->link_push[k][q], -MOST_SLOPE, MOST_SLOPE);
  }
  for (int32_t p = 0; p < a->model->n; p++) {
    int32_t q = a->group[p];
    move_links(a, 2 * p, moved(lacking_ns, a->link_push[0][q], length), moved(lacking_ns, a->link_push[1][q], length));
    move_links(a, 2 * p + 1, moved(lacking_ns, a->link_push[2][q], length),
               moved(lacking_ns, a->link_push[3][q], length));
  }
}

/* lacking * push / length, in parts of one; as much as a price may ever have, where it is more. */
static int64_t moved(int64_t lacking_ns, int64_t push, pl_signed_wide length) {
  const pl_signed_wide most = (pl_signed_wide)PL_PRICE_ONE << 8;
  pl_signed_wide product = (pl_signed_wide)lacking_ns * push, scaled;
  while (length >= (pl_signed_wide)1 << 94) {
    length >>= 1;
    product >>= 1;
  }
  if (__builtin_mul_overflow(product, (pl_signed_wide)PL_PRICE_ONE, &scaled))
    return (int64_t)(product < 0 ? -most : most);
  pl_signed_wide quotient = scaled / length;
  return (int64_t)(quotient < -most ? -most : quotient > most ? most : quotient);
}

/* Two prices that are not negative and together not more than one. */
static void move_links(ascent *a, int32_t slot, int64_t in, int64_t out) {
  in = pl_max(a->now.in[slot] + in, 0);
  out = pl_max(a->now.out[slot] + out, 0);
  int64_t beyond = in + out - PL_PRICE_ONE;
  if (beyond > 0) {
    in = pl_clamp(in - beyond / 2, 0, PL_PRICE_ONE);
    out = pl_clamp(out - (beyond - beyond / 2), 0, PL_PRICE_ONE);
    if (in + out > PL_PRICE_ONE) *(in > out ? &in : &out) -= in + out - PL_PRICE_ONE;
  }
  a->now.in[slot] = in;
  a->now.out[slot] = out;
}
