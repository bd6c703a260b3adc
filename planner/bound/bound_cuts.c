/* The dual simplex's columns (bound_cuts.h): let the highest point be x, its height h.
 *
 *   greatest h,  h - slopes . x <= height  for each cut,  lower <= x <= upper,  x_i + x_j <= 1 for each pair
 *
 * Its dual has a row for each number of x and one for h, and a column for each of these limits: what they cost is
 * least, the weights of cuts sum up to one. Prices of its rows are x and h. A basis has as many columns as rows: at
 * first one cut, and for each number of x the side of the box that the cut leans on. */
#include "planner/bound/bound_cuts.h"

#include <string.h>

#include "util/math.h"

enum { NONE = -1 };
static const double TINY = 1e-9;

typedef struct pl_bound_basis {
  int32_t n_rows;   /* the last is of h */
  int32_t *columns; /* by row: which column is basic there; NONE = there is no basis */
  double *amounts;  /* by row: of that column */
  double *inverse;  /* by row, n_rows each */
  double *prices;   /* by row: x and h */
  double *entering, *row;
} pl_bound_basis;

planc_status pl_bound_cuts_new(int32_t most_dims, int32_t most, pl_arena *arena, pl_bound_cuts *out) {
  int64_t rows = (int64_t)most_dims + 1;
  *out = (pl_bound_cuts){.most_dims = most_dims, .most = most};
  PLANC_TRY(PL_NEW(arena, &out->heights, most));
  PLANC_TRY(PL_NEW(arena, &out->weights, most));
  PLANC_TRY(PL_NEW(arena, &out->slopes, (int64_t)most * most_dims));
  PLANC_TRY(PL_NEW(arena, &out->basis, 1));
  PLANC_TRY(PL_NEW(arena, &out->basis->columns, rows));
  PLANC_TRY(PL_NEW(arena, &out->basis->amounts, rows));
  PLANC_TRY(PL_NEW(arena, &out->basis->inverse, rows * rows));
  PLANC_TRY(PL_NEW(arena, &out->basis->prices, rows));
  PLANC_TRY(PL_NEW(arena, &out->basis->entering, rows));
  return PL_NEW(arena, &out->basis->row, rows);
}

void pl_bound_cuts_begin(pl_bound_cuts *cuts, int32_t n_dims, int32_t first_pair, int32_t n_pairs) {
  cuts->n_dims = n_dims;
  cuts->first_pair = first_pair;
  cuts->n_pairs = n_pairs;
  cuts->n = 0;
  cuts->basis->n_rows = n_dims + 1;
  cuts->basis->columns[0] = NONE;
}

bool pl_bound_cuts_add(pl_bound_cuts *cuts, double height, const double *slopes) {
  if (cuts->n == cuts->most) return false;
  cuts->heights[cuts->n] = height;
  cuts->weights[cuts->n] = 0;
  memcpy(&cuts->slopes[(int64_t)cuts->n * cuts->n_dims], slopes, (size_t)cuts->n_dims * sizeof *slopes);
  cuts->n++;
  return true;
}

/* --- The simplex method ------------------------------------------------------------------------------------------- */

static void set_first_basis(pl_bound_cuts *cuts);
static double climb(pl_bound_cuts *cuts);

/* Where rounding has piled up so far that the cuts seem to be lower than each of them is at the center, it begins
 * anew. */
double pl_bound_cuts_highest(pl_bound_cuts *cuts, const double *center, double radius, double *out_point) {
  int32_t n = cuts->n_dims;
  double at_center = 0, found = 0;
  cuts->center = center;
  cuts->radius = radius;
  for (int32_t k = 0; k < cuts->n; k++) {
    double height = cuts->heights[k];
    for (int32_t d = 0; d < n; d++) height += cuts->slopes[(int64_t)k * n + d] * center[d];
    at_center = k == 0 || height < at_center ? height : at_center;
  }
  if (cuts->basis->columns[0] != NONE) found = climb(cuts);
  if (cuts->basis->columns[0] == NONE || found < at_center - TINY) {
    set_first_basis(cuts);
    found = climb(cuts);
  }
  for (int32_t d = 0; d < n; d++) out_point[d] = cuts->basis->prices[d];
  memset(cuts->weights, 0, (size_t)cuts->n * sizeof *cuts->weights);
  for (int32_t r = 0; r <= n; r++) {
    int32_t cut = cuts->basis->columns[r] - 2 * n - cuts->n_pairs;
    if (cut >= 0) cuts->weights[cut] = cuts->basis->amounts[r];
  }
  return found;
}

static void set_first_basis(pl_bound_cuts *cuts) {
  pl_bound_basis *b = cuts->basis;
  int32_t n = cuts->n_dims, rows = b->n_rows, newest = cuts->n - 1;
  const double *slopes = &cuts->slopes[(int64_t)newest * n];
  memset(b->inverse, 0, (size_t)rows * (size_t)rows * sizeof *b->inverse);
  for (int32_t d = 0; d < n; d++) {
    double sign = slopes[d] >= 0 ? 1 : -1;
    b->columns[d] = slopes[d] >= 0 ? d : n + d;
    b->amounts[d] = sign * slopes[d];
    b->inverse[(int64_t)d * rows + d] = sign;
    b->inverse[(int64_t)d * rows + n] = sign * slopes[d];
  }
  b->columns[n] = 2 * n + cuts->n_pairs + newest;
  b->amounts[n] = 1;
  b->inverse[(int64_t)n * rows + n] = 1;
}

static void find_prices(pl_bound_cuts *cuts);
static int32_t best_column(const pl_bound_cuts *cuts);
static void find_entering(const pl_bound_cuts *cuts, int32_t column);
static int32_t leaving_row(const pl_bound_cuts *cuts);
static void exchange(pl_bound_cuts *cuts, int32_t row, int32_t column);

/* The steps are limited: without better prices, but never for ever. */
static double climb(pl_bound_cuts *cuts) {
  enum { STEPS_OF_ROW = 20 };
  for (int32_t k = 0; k < STEPS_OF_ROW * cuts->basis->n_rows; k++) {
    find_prices(cuts);
    int32_t column = best_column(cuts);
    if (column == NONE) break;
    find_entering(cuts, column);
    int32_t row = leaving_row(cuts);
    if (row == NONE) break;
    exchange(cuts, row, column);
  }
  return cuts->basis->prices[cuts->n_dims];
}

static double cost_of(const pl_bound_cuts *cuts, int32_t column);
static double worth_of(const pl_bound_cuts *cuts, int32_t column);

static void find_prices(pl_bound_cuts *cuts) {
  pl_bound_basis *b = cuts->basis;
  int32_t rows = b->n_rows;
  memset(b->prices, 0, (size_t)rows * sizeof *b->prices);
  for (int32_t r = 0; r < rows; r++) {
    double cost = cost_of(cuts, b->columns[r]);
    const double *of = &b->inverse[(int64_t)r * rows];
    for (int32_t d = 0; d < rows; d++) b->prices[d] += cost * of[d];
  }
}

static int32_t best_column(const pl_bound_cuts *cuts) {
  int32_t n = 2 * cuts->n_dims + cuts->n_pairs + cuts->n, best = NONE;
  double most = TINY;
  for (int32_t column = 0; column < n; column++) {
    double gain = worth_of(cuts, column) - cost_of(cuts, column);
    if (gain <= most) continue;
    most = gain;
    best = column;
  }
  return best;
}

/* Of several that may leave the one that divides by most. */
static int32_t leaving_row(const pl_bound_cuts *cuts) {
  const pl_bound_basis *b = cuts->basis;
  int32_t found = NONE;
  double least = 0;
  for (int32_t r = 0; r < b->n_rows; r++) {
    if (b->entering[r] <= TINY) continue;
    double ratio = b->amounts[r] / b->entering[r];
    bool alike = found != NONE && ratio <= least + TINY && ratio >= least - TINY;
    if (found == NONE || (alike ? b->entering[r] > b->entering[found] : ratio < least)) {
      least = found == NONE || ratio < least ? ratio : least;
      found = r;
    }
  }
  return found;
}

static void exchange(pl_bound_cuts *cuts, int32_t row, int32_t column) {
  pl_bound_basis *b = cuts->basis;
  int32_t rows = b->n_rows;
  double by = b->entering[row], amount = b->amounts[row] / by;
  double *of = &b->inverse[(int64_t)row * rows];
  for (int32_t d = 0; d < rows; d++) of[d] /= by;
  for (int32_t r = 0; r < rows; r++) {
    double times = b->entering[r];
    if (r == row || times == 0) continue;
    double *other = &b->inverse[(int64_t)r * rows];
    for (int32_t d = 0; d < rows; d++) other[d] -= times * of[d];
    b->amounts[r] -= times * amount;
    if (b->amounts[r] < 0) b->amounts[r] = 0;
  }
  b->amounts[row] = amount;
  b->columns[row] = column;
}

/* --- Columns: the box's upper sides, its lower ones, pairs, cuts -------------------------------------------------- */

static double lower_side(const pl_bound_cuts *cuts, int32_t dim) {
  double side = cuts->center[dim] - cuts->radius;
  return side > 0 ? side : 0;
}

static double cost_of(const pl_bound_cuts *cuts, int32_t column) {
  int32_t n = cuts->n_dims;
  if (column < n) return cuts->center[column] + cuts->radius;
  if (column < 2 * n) return -lower_side(cuts, column - n);
  if (column < 2 * n + cuts->n_pairs) return 1;
  return cuts->heights[column - 2 * n - cuts->n_pairs];
}

/* What a column adds up to at the present prices of the rows. */
static double worth_of(const pl_bound_cuts *cuts, int32_t column) {
  const double *prices = cuts->basis->prices;
  int32_t n = cuts->n_dims, pair = column - 2 * n;
  if (column < n) return prices[column];
  if (column < 2 * n) return -prices[column - n];
  if (pair < cuts->n_pairs) return prices[cuts->first_pair + pair] + prices[cuts->first_pair + cuts->n_pairs + pair];
  const double *slopes = &cuts->slopes[(int64_t)(pair - cuts->n_pairs) * n];
  double sum = prices[n];
  for (int32_t d = 0; d < n; d++) sum -= slopes[d] * prices[d];
  return sum;
}

/* The column in terms of those of the basis. */
static void find_entering(const pl_bound_cuts *cuts, int32_t column) {
  pl_bound_basis *b = cuts->basis;
  int32_t n = cuts->n_dims, pair = column - 2 * n, rows = b->n_rows;
  const double *slopes = pair >= cuts->n_pairs ? &cuts->slopes[(int64_t)(pair - cuts->n_pairs) * n] : NULL;
  for (int32_t r = 0; r < rows; r++) {
    const double *of = &b->inverse[(int64_t)r * rows];
    double sum = 0;
    if (column < n)
      sum = of[column];
    else if (column < 2 * n)
      sum = -of[column - n];
    else if (!slopes)
      sum = of[cuts->first_pair + pair] + of[cuts->first_pair + cuts->n_pairs + pair];
    else {
      sum = of[n];
      for (int32_t d = 0; d < n; d++) sum -= of[d] * slopes[d];
    }
    b->entering[r] = sum;
  }
}
