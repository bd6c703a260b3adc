/* Prices that certify much (bound_certify.h).
 *
 * With a few knots a linear program finds the highest point under the cuts within a box around the best point; the
 * value there is a cut more. Where the program promises little more than has been reached, other knots follow
 * (bound_knots.h). */
#include "planner/bound/bound_certify.h"

#include <string.h>

#include "planner/bound/bound_cuts.h"
#include "planner/bound/bound_knots.h"

enum {
  MOST_KNOTS = 32,
  MOST_CUTS = 256,
  MOST_KEPT = MOST_CUTS / 2,
  LEAST_STEPS = 30, /* under one set of knots */
  NONE = -1
};
static const double FIRST_RADIUS = 0.3, LEAST_RADIUS = 0.01, NEXT_RADIUS = 0.1, MOST_RADIUS = 4;

/* A value that was looked at, whatever the knots: they change, and it stays a cut. */
typedef struct kept_cut {
  double height; /* without prices, by its slopes */
  float *slopes; /* by position and slot (pl_bound_slopes), of the value in parts of the ideal time */
  uint8_t *ways; /* by gap: of the decisions that are least at the cut's prices (pl_bound_way) */
} kept_cut;

typedef struct certifier {
  const pl_bound_model *model;
  pl_bound_value value;
  pl_bound_space space;
  pl_bound_cuts cuts;
  pl_bound_prices now, *best;
  pl_signed_wide best_value;
  int64_t ideal_ns; /* the value without prices */
  int64_t values, most_values;
  kept_cut *kept; /* a ring: the oldest gives way, and is a cut until the knots change, but no part of the mean */
  int32_t n_kept, next_kept, most_kept;
  int32_t *cut_of; /* by kept cut: of the present knots, NONE = none */
  double radius;
  double *center, *point, *reduced;
  double *mean; /* of the slopes of the cuts, by their weights */
  pl_bound_knots knots;
  pl_signed_wide when_forgotten; /* the best value when knots that had been tried were open again */
} certifier;

static planc_status start(certifier *c, int64_t room, pl_arena *arena);
static void climb(certifier *c);
static void find_shares(const certifier *c, pl_bound_shares *out);

planc_status pl_bound_certify(const pl_bound_model *model, int64_t room, int64_t most_values, pl_arena *arena,
                              pl_bound_prices *out_prices, pl_bound_found *out, pl_bound_shares *out_shares) {
  certifier c = {.model = model, .best = out_prices, .most_values = most_values};
  PLANC_TRY(start(&c, room, arena));
  if (room > 0 && c.ideal_ns > 0) {
    pl_bound_knots_begin(&c.knots, c.value.slopes.byte);
    climb(&c);
  }
  if (out_shares) find_shares(&c, out_shares);
  *out = pl_bound_found_of(model, out_prices, c.best_value, c.ideal_ns, c.values);
  return NULL;
}

/* --- Memory ------------------------------------------------------------------------------------------------------- */

static double unit_of(const certifier *c);
static planc_status new_kept(certifier *c, pl_arena *arena);

static planc_status start(certifier *c, int64_t room, pl_arena *arena) {
  const pl_bound_model *model = c->model;
  int32_t most = pl_bound_space_most(MOST_KNOTS);
  PLANC_TRY(pl_bound_value_new(model, room, arena, &c->value));
  PLANC_TRY(pl_bound_prices_new(model, arena, &c->now));
  PLANC_TRY(pl_bound_prices_new(model, arena, c->best));
  pl_bound_value_find(&c->value, &c->now);
  c->values = 1;
  c->best_value = c->when_forgotten = c->value.value;
  c->ideal_ns = (int64_t)(c->value.value >> PL_PRICE_BITS);
  PLANC_TRY(pl_bound_space_new(model, unit_of(c), MOST_KNOTS, arena, &c->space));
  PLANC_TRY(pl_bound_cuts_new(most, MOST_CUTS, arena, &c->cuts));
  PLANC_TRY(PL_NEW(arena, &c->center, most));
  PLANC_TRY(PL_NEW(arena, &c->point, most));
  PLANC_TRY(PL_NEW(arena, &c->reduced, most));
  PLANC_TRY(PL_NEW(arena, &c->mean, pl_bound_slopes(model)));
  PLANC_TRY(pl_bound_knots_new(&c->space, arena, &c->knots));
  return new_kept(c, arena);
}

/* What a byte costs where copies take all of the time, or where all of the room costs the whole period: the less. */
static double unit_of(const certifier *c) {
  static const planc_route routes[] = {PLANC_ROUTE_H2D, PLANC_ROUTE_D2H};
  double unit = c->value.room > 0 ? (double)c->ideal_ns / (double)c->value.room : 1;
  for (size_t k = 0; k < sizeof routes / sizeof *routes; k++) {
    double rate = (double)c->model->device.links[routes[k]].bytes_per_second;
    if (rate > 0 && (double)PL_NS / rate < unit) unit = (double)PL_NS / rate;
  }
  return unit > 0 ? unit : 1;
}

/* As many as 64 MiB hold; a few in any case. */
static planc_status new_kept(certifier *c, pl_arena *arena) {
  enum { FEWEST = 8 };
  const int64_t most_bytes = INT64_C(1) << 26, n_gaps = c->model->n_gaps;
  const int64_t bytes = pl_bound_slopes(c->model) * (int64_t)sizeof(float) + n_gaps;
  c->most_kept = (int32_t)pl_clamp(most_bytes / (bytes + 1), FEWEST, MOST_KEPT);
  PLANC_TRY(PL_NEW(arena, &c->kept, c->most_kept));
  PLANC_TRY(PL_NEW(arena, &c->cut_of, c->most_kept));
  for (int32_t k = 0; k < c->most_kept; k++) {
    PLANC_TRY(PL_NEW(arena, &c->kept[k].slopes, pl_bound_slopes(c->model)));
    PLANC_TRY(PL_NEW(arena, &c->kept[k].ways, n_gaps));
  }
  return NULL;
}

/* --- Climbing ----------------------------------------------------------------------------------------------------- */

static void begin_cuts(certifier *c);
static bool climb_here(certifier *c);
static bool change_knots(certifier *c);

/* Some sets of knots take no value: they are limited as well. */
static void climb(certifier *c) {
  for (int64_t k = 0; k < c->most_values && c->values < c->most_values; k++) {
    begin_cuts(c);
    if (!climb_here(c) || !change_knots(c)) return;
  }
}

/* --- Under one set of knots --------------------------------------------------------------------------------------- */

static void add_cut(certifier *c, int32_t kept);
static void look(certifier *c);

static void begin_cuts(certifier *c) {
  int32_t stretches = pl_bound_space_stretches(&c->space);
  pl_bound_cuts_begin(&c->cuts, pl_bound_space_dims(&c->space), c->space.n_knots, stretches);
  for (int32_t k = 0; k < c->n_kept; k++) add_cut(c, k);
  if (c->n_kept == 0) look(c);
}

static void add_cut(certifier *c, int32_t kept) {
  pl_bound_space_slopes(&c->space, c->kept[kept].slopes, c->reduced);
  c->cut_of[kept] = c->cuts.n;
  if (!pl_bound_cuts_add(&c->cuts, c->kept[kept].height, c->reduced)) c->cut_of[kept] = NONE;
}

static double in_ideal(const certifier *c, pl_signed_wide value) {
  return (double)value / (double)PL_PRICE_ONE / (double)c->ideal_ns;
}

static bool keep_better(certifier *c);
static bool is_inside(const certifier *c);

/* Steps to the highest point, as far as little more is promised. A step that brought at least half of what it promised
 * is a reason to go farther, one that led down by as much to stay nearer. False where no value is left to look at. */
static bool climb_here(certifier *c) {
  enum { NEAR = 1000, LITTLE = 100 };
  const double half = 0.5, wider = 1.5, nearer = 0.6, much_wider = 4;
  c->radius = c->n_kept < 2 ? FIRST_RADIUS : NEXT_RADIUS;
  pl_bound_space_point(&c->space, c->best, c->center);
  for (int32_t k = 0; k < pl_max(c->cuts.n_dims, LEAST_STEPS) && c->cuts.n < MOST_CUTS; k++) {
    double reached = in_ideal(c, c->best_value), beyond = reached - 1;
    double promised = pl_bound_cuts_highest(&c->cuts, c->center, c->radius, c->point) - reached;
    if (promised < (beyond > 1.0 / LITTLE ? beyond : 1.0 / LITTLE) / NEAR) {
      if (c->radius >= MOST_RADIUS || is_inside(c)) return true;
      c->radius *= much_wider;
      continue;
    }
    if (c->values >= c->most_values) return false;
    pl_bound_space_prices(&c->space, c->point, &c->now);
    look(c);
    double brought = in_ideal(c, c->value.value) - reached;
    if (keep_better(c)) {
      if (brought > half * promised) c->radius *= wider;
      memcpy(c->center, c->point, (size_t)c->cuts.n_dims * sizeof *c->center);
    } else if (brought < -half * promised) {
      c->radius = c->radius * nearer > LEAST_RADIUS ? c->radius * nearer : LEAST_RADIUS;
    }
  }
  return true;
}

/* No side of the box keeps the highest point where it is. */
static bool is_inside(const certifier *c) {
  const double nearly = 0.999 * c->radius;
  for (int32_t d = 0; d < c->cuts.n_dims; d++) {
    double away = c->point[d] - c->center[d];
    if (away > nearly || away < -nearly) return false;
  }
  return true;
}

static bool keep_better(certifier *c) {
  if (c->value.value <= c->best_value) return false;
  c->best_value = c->value.value;
  pl_bound_prices_copy(c->model, &c->now, c->best);
  return true;
}

/* At the prices `now`, which are those of a point: the value, and the cut that it is. */
static void look(certifier *c) {
  const pl_bound_prices *slopes = &c->value.slopes;
  int32_t n = c->model->n, kept = c->next_kept;
  kept_cut *cut = &c->kept[kept];
  double ideal = (double)c->ideal_ns, sum = 0;
  if (c->n_kept > 0) {
    pl_bound_value_find(&c->value, &c->now);
    c->values++;
  }
  for (int32_t p = 0; p < n; p++) cut->slopes[p] = (float)((double)slopes->byte[p] / ideal);
  for (int32_t slot = 0; slot < 2 * n; slot++) {
    cut->slopes[n + slot] = (float)((double)slopes->in[slot] / ideal);
    cut->slopes[3 * (int64_t)n + slot] = (float)((double)slopes->out[slot] / ideal);
  }
  for (int32_t g = 0; g < c->model->n_gaps; g++) cut->ways[g] = (uint8_t)c->value.ways[g];
  pl_bound_space_slopes(&c->space, cut->slopes, c->reduced);
  pl_bound_space_point(&c->space, &c->now, c->point);
  for (int32_t d = 0; d < c->cuts.n_dims; d++) sum += c->reduced[d] * c->point[d];
  cut->height = in_ideal(c, c->value.value) - sum;
  c->next_kept = (kept + 1) % c->most_kept;
  c->n_kept = c->n_kept < c->most_kept ? c->n_kept + 1 : c->most_kept;
  add_cut(c, kept);
}

/* --- Other knots -------------------------------------------------------------------------------------------------- */

static void find_mean(certifier *c);

/* Knots that were of no use may be when others have changed. False where none asks for more. */
static bool change_knots(certifier *c) {
  find_mean(c);
  if (pl_bound_knots_change(&c->knots, c->best, c->mean)) return true;
  if (c->best_value <= c->when_forgotten) return false;
  c->when_forgotten = c->best_value;
  pl_bound_knots_forget(&c->knots);
  return pl_bound_knots_change(&c->knots, c->best, c->mean);
}

static double weight_of(const certifier *c, int32_t kept) {
  return c->cut_of[kept] == NONE ? 0 : c->cuts.weights[c->cut_of[kept]];
}

/* The plan that the prices pay for: at the highest point of the program the cuts that meet there have weights. */
static void find_mean(certifier *c) {
  const int64_t n = pl_bound_slopes(c->model);
  memset(c->mean, 0, (size_t)n * sizeof *c->mean);
  for (int32_t k = 0; k < c->n_kept; k++) {
    double weight = weight_of(c, k);
    for (int64_t i = 0; weight > 0 && i < n; i++) c->mean[i] += weight * (double)c->kept[k].slopes[i];
  }
}

/* Shares are rounded down, and together they are no more than the whole though weights are reals that add up to
 * about 1. */
static void find_shares(const certifier *c, pl_bound_shares *out) {
  int32_t left = PL_BOUND_WHOLE;
  memset(out, 0, (size_t)c->model->n_gaps * sizeof *out);
  for (int32_t k = 0; k < c->n_kept; k++) {
    double parts = weight_of(c, k) * PL_BOUND_WHOLE;
    int32_t share = parts > 0 ? (int32_t)(parts < left ? parts : left) : 0;
    left -= share;
    for (int32_t g = 0; share > 0 && g < c->model->n_gaps; g++)
      out[g].of[c->kept[k].ways[g]] = (uint16_t)(out[g].of[c->kept[k].ways[g]] + share);
  }
}
