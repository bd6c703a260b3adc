/* Knots and breaks (bound_space.h). */
#include "planner/bound/bound_space.h"

#include <string.h>

enum { BREAKS_OF_KNOT = 2 };

planc_status pl_bound_space_new(const pl_bound_model *model, double unit, int32_t most_knots, pl_arena *arena,
                                pl_bound_space *out) {
  *out = (pl_bound_space){.model = model, .unit = unit, .most_knots = most_knots};
  PLANC_TRY(PL_NEW(arena, &out->knots, most_knots));
  return PL_NEW(arena, &out->breaks, (int64_t)BREAKS_OF_KNOT * most_knots);
}

int32_t pl_bound_space_most(int32_t most_knots) {
  return most_knots + 2 * (BREAKS_OF_KNOT * most_knots + 1);
}

int32_t pl_bound_space_first(const pl_bound_space *space, int32_t stretch) {
  if (stretch == 0) return 0;
  return stretch <= space->n_breaks ? space->breaks[stretch - 1] : 2 * space->model->n;
}

/* --- Knots -------------------------------------------------------------------------------------------------------- */

/* Where the first number is that is not smaller. */
static int32_t find(const int32_t *numbers, int32_t n, int32_t number) {
  int32_t low = 0, high = n;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (numbers[middle] < number)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

bool pl_bound_space_has(const pl_bound_space *space, int32_t position) {
  int32_t at = find(space->knots, space->n_knots, position);
  return at < space->n_knots && space->knots[at] == position;
}

static void insert(int32_t *numbers, int32_t *n, int32_t number);
static void add_break(pl_bound_space *space, int32_t slot);
static int32_t most_breaks(const pl_bound_space *space);

bool pl_bound_space_add(pl_bound_space *space, int32_t position) {
  if (pl_bound_space_has(space, position) || space->n_knots == space->most_knots) return false;
  if (space->n_breaks + BREAKS_OF_KNOT > most_breaks(space)) return false;
  insert(space->knots, &space->n_knots, position);
  for (int32_t k = 0; k < BREAKS_OF_KNOT; k++) add_break(space, 2 * (position + k));
  return true;
}

void pl_bound_space_add_all(pl_bound_space *space) {
  for (int32_t p = 0; p < space->model->n; p++) pl_bound_space_add(space, p);
  for (int32_t slot = 1; slot < 2 * space->model->n && space->n_breaks < most_breaks(space); slot++)
    add_break(space, slot);
}

static void insert(int32_t *numbers, int32_t *n, int32_t number) {
  int32_t at = find(numbers, *n, number);
  if (at < *n && numbers[at] == number) return;
  memmove(&numbers[at + 1], &numbers[at], (size_t)(*n - at) * sizeof *numbers);
  numbers[at] = number;
  ++*n;
}

static int32_t most_breaks(const pl_bound_space *space) {
  return BREAKS_OF_KNOT * space->most_knots;
}

static void add_break(pl_bound_space *space, int32_t slot) {
  if (slot > 0 && slot < 2 * space->model->n) insert(space->breaks, &space->n_breaks, slot);
}

void pl_bound_space_drop_idle(pl_bound_space *space, const pl_bound_prices *prices) {
  enum { HARDLY = 10000 };
  const int64_t least = PL_PRICE_ONE / HARDLY;
  const double least_of_byte = space->unit * (double)least;
  int32_t n_knots = 0, n_breaks = 0;
  for (int32_t k = 0; k < space->n_knots; k++)
    if ((double)prices->byte[space->knots[k]] > least_of_byte) space->knots[n_knots++] = space->knots[k];
  for (int32_t k = 0; k < space->n_breaks; k++) {
    int32_t slot = space->breaks[k];
    int64_t in = prices->in[slot] - prices->in[slot - 1], out = prices->out[slot] - prices->out[slot - 1];
    if (pl_max(in, -in) > least || pl_max(out, -out) > least) space->breaks[n_breaks++] = slot;
  }
  space->n_knots = n_knots;
  space->n_breaks = n_breaks;
}

/* --- Points ------------------------------------------------------------------------------------------------------- */

static int64_t price_of(double number, int64_t most) {
  double price = number * (double)PL_PRICE_ONE;
  if (!(price > 0)) return 0;
  return price < (double)most ? (int64_t)price : most;
}

void pl_bound_space_prices(const pl_bound_space *space, const double *point, pl_bound_prices *out) {
  const int32_t n = space->model->n, stretches = pl_bound_space_stretches(space);
  const double *in = &point[space->n_knots], *outward = &in[stretches];
  memset(out->byte, 0, (size_t)n * sizeof *out->byte);
  for (int32_t k = 0; k < space->n_knots; k++)
    out->byte[space->knots[k]] = price_of(point[k] * space->unit, pl_bound_most_price(space->model));
  for (int32_t t = 0; t < stretches; t++)
    for (int32_t slot = pl_bound_space_first(space, t); slot < pl_bound_space_first(space, t + 1); slot++) {
      out->in[slot] = price_of(in[t], PL_PRICE_ONE);
      out->out[slot] = price_of(outward[t], PL_PRICE_ONE - out->in[slot]);
    }
}

void pl_bound_space_point(const pl_bound_space *space, const pl_bound_prices *prices, double *out) {
  const int32_t stretches = pl_bound_space_stretches(space);
  double *in = &out[space->n_knots], *outward = &in[stretches];
  for (int32_t k = 0; k < space->n_knots; k++)
    out[k] = (double)prices->byte[space->knots[k]] / (double)PL_PRICE_ONE / space->unit;
  for (int32_t t = 0; t < stretches; t++) {
    in[t] = (double)prices->in[pl_bound_space_first(space, t)] / (double)PL_PRICE_ONE;
    outward[t] = (double)prices->out[pl_bound_space_first(space, t)] / (double)PL_PRICE_ONE;
  }
}

void pl_bound_space_slopes(const pl_bound_space *space, const float *slopes, double *out) {
  const int32_t n = space->model->n, stretches = pl_bound_space_stretches(space);
  for (int32_t k = 0; k < space->n_knots; k++) out[k] = (double)slopes[space->knots[k]] * space->unit;
  for (int32_t t = 0; t < stretches; t++) {
    double in = 0, outward = 0;
    for (int32_t slot = pl_bound_space_first(space, t); slot < pl_bound_space_first(space, t + 1); slot++) {
      in += (double)slopes[n + slot];
      outward += (double)slopes[3 * (int64_t)n + slot];
    }
    out[space->n_knots + t] = in;
    out[space->n_knots + stretches + t] = outward;
  }
}
