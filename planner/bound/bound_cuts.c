/* The dual simplex's columns (bound_cuts.h): let the highest point be x, its height h.
 *
 *   greatest h,  h - slopes . x <= height  for each cut,  lower <= x <= upper,  x_i + x_j <= 1 for each pair
 *
 * Its dual has a row for each number of x and one for h, and a column for each of these limits: what they cost is
 * least, the weights of cuts sum up to one. Prices of its rows are x and h. A basis has as many columns as rows: at
 * first one cut, and for each number of x the side of the box that the cut leans on.
 *
 * Each sum takes its terms in the order of their numbers, so that it is the same on every machine, and leaves out those
 * that are exactly 0. There are many: where a side of the box is basic, the inverse's column has 1 or -1 in the row of
 * the side and 0 in the others. */
#include "planner/bound/bound_cuts.h"

#include <string.h>

#include "util/math.h"

enum {
  NONE = -1,
  ABREAST = 8 /* sums that are made at once: none waits for the terms of another */
};
static const double TINY = 1e-9;

/* Of a sum, and not 0. */
typedef struct pl_bound_term {
  int32_t at;
  double times;
} pl_bound_term;

typedef struct pl_bound_basis {
  int32_t n_rows;   /* the last is of h */
  int32_t *columns; /* by row: which column is basic there; NONE = there is no basis */
  double *amounts;  /* by row: of that column */
  double *inverse;  /* by column, n_rows each */
  double *prices;   /* by row: x and h */
  double *entering; /* by row */
  int32_t *side_at; /* by number of x: the row in which a side of the box is basic, NONE = in none */
  pl_bound_term *terms;
  double *worth; /* by cut */
} pl_bound_basis;

planc_status pl_bound_cuts_new(int32_t most_dims, int32_t most, pl_arena *arena, pl_bound_cuts *out) {
  int64_t rows = (int64_t)most_dims + 1;
  int64_t blocks = ((int64_t)most + ABREAST - 1) / ABREAST;
  *out = (pl_bound_cuts){.most_dims = most_dims, .most = most};
  PLANC_TRY(PL_NEW(arena, &out->heights, most));
  PLANC_TRY(PL_NEW(arena, &out->weights, most));
  PLANC_TRY(PL_NEW(arena, &out->slopes, blocks * ABREAST * most_dims));
  PLANC_TRY(PL_NEW(arena, &out->basis, 1));
  PLANC_TRY(PL_NEW(arena, &out->basis->columns, rows));
  PLANC_TRY(PL_NEW(arena, &out->basis->amounts, rows));
  PLANC_TRY(PL_NEW(arena, &out->basis->inverse, rows * rows));
  PLANC_TRY(PL_NEW(arena, &out->basis->prices, rows));
  PLANC_TRY(PL_NEW(arena, &out->basis->entering, rows));
  PLANC_TRY(PL_NEW(arena, &out->basis->side_at, rows));
  PLANC_TRY(PL_NEW(arena, &out->basis->terms, rows));
  return PL_NEW(arena, &out->basis->worth, blocks * ABREAST);
}

void pl_bound_cuts_begin(pl_bound_cuts *cuts, int32_t n_dims, int32_t first_pair, int32_t n_pairs) {
  cuts->n_dims = n_dims;
  cuts->first_pair = first_pair;
  cuts->n_pairs = n_pairs;
  cuts->n = 0;
  cuts->basis->n_rows = n_dims + 1;
  cuts->basis->columns[0] = NONE;
}

/* A cut's first; those of its other dimensions are ABREAST numbers apart. */
static double *slopes_of(const pl_bound_cuts *cuts, int32_t cut) {
  return &cuts->slopes[((int64_t)(cut / ABREAST) * cuts->n_dims) * ABREAST + cut % ABREAST];
}

bool pl_bound_cuts_add(pl_bound_cuts *cuts, double height, const double *slopes) {
  if (cuts->n == cuts->most) return false;
  cuts->heights[cuts->n] = height;
  cuts->weights[cuts->n] = 0;
  double *to = slopes_of(cuts, cuts->n);
  for (int32_t d = 0; d < cuts->n_dims; d++) to[(int64_t)d * ABREAST] = slopes[d];
  cuts->n++;
  return true;
}

/* --- The simplex method ------------------------------------------------------------------------------------------- */

static void add_slopes(const pl_bound_cuts *cuts, const double *point, double times, double *sums);
static void set_first_basis(pl_bound_cuts *cuts);
static double climb(pl_bound_cuts *cuts);

/* Where rounding has piled up so far that the cuts seem to be lower than each of them is at the center, it begins
 * anew. */
double pl_bound_cuts_highest(pl_bound_cuts *cuts, const double *center, double radius, double *out_point) {
  int32_t n = cuts->n_dims;
  double at_center = 0, found = 0;
  cuts->center = center;
  cuts->radius = radius;
  double *at = cuts->basis->worth;
  memcpy(at, cuts->heights, (size_t)cuts->n * sizeof *at);
  add_slopes(cuts, center, 1, at);
  for (int32_t k = 0; k < cuts->n; k++) at_center = k == 0 || at[k] < at_center ? at[k] : at_center;
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

/* To the sum of each cut, `times` what its slopes come to at a point. */
static void add_slopes(const pl_bound_cuts *cuts, const double *point, double times, double *sums) {
  pl_bound_term *terms = cuts->basis->terms;
  int32_t n_terms = 0;
  for (int32_t d = 0; d < cuts->n_dims; d++)
    if (point[d] != 0) terms[n_terms++] = (pl_bound_term){d * ABREAST, times * point[d]};
  for (int32_t k = 0; k < cuts->n; k += ABREAST) {
    const double *slopes = slopes_of(cuts, k);
    double sum[ABREAST];
    memcpy(sum, &sums[k], sizeof sum);
    for (int32_t t = 0; t < n_terms; t++)
      for (int32_t j = 0; j < ABREAST; j++) sum[j] += slopes[terms[t].at + j] * terms[t].times;
    memcpy(&sums[k], sum, sizeof sum);
  }
}

static void set_first_basis(pl_bound_cuts *cuts) {
  pl_bound_basis *b = cuts->basis;
  int32_t n = cuts->n_dims, rows = b->n_rows, newest = cuts->n - 1;
  const double *slopes = slopes_of(cuts, newest);
  memset(b->inverse, 0, (size_t)rows * (size_t)rows * sizeof *b->inverse);
  for (int32_t d = 0; d < n; d++) {
    double slope = slopes[(int64_t)d * ABREAST], sign = slope >= 0 ? 1 : -1;
    b->columns[d] = slope >= 0 ? d : n + d;
    b->amounts[d] = sign * slope;
    b->inverse[(int64_t)d * rows + d] = sign;
    b->inverse[(int64_t)n * rows + d] = sign * slope;
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

/* Which sides are basic, and in which row. */
static void find_sides(const pl_bound_cuts *cuts) {
  pl_bound_basis *b = cuts->basis;
  int32_t n = cuts->n_dims;
  for (int32_t d = 0; d < b->n_rows; d++) b->side_at[d] = NONE;
  for (int32_t r = 0; r < b->n_rows; r++)
    if (b->columns[r] < 2 * n) b->side_at[b->columns[r] < n ? b->columns[r] : b->columns[r] - n] = r;
}

/* The prices of several rows. */
static void sum_costs(pl_bound_basis *b, int32_t n_terms, const int32_t *of, int32_t n) {
  const double *columns[ABREAST];
  double sums[ABREAST] = {0};
  for (int32_t j = 0; j < ABREAST; j++) columns[j] = &b->inverse[(int64_t)of[j < n ? j : 0] * b->n_rows];
  for (int32_t t = 0; t < n_terms; t++)
    for (int32_t j = 0; j < ABREAST; j++) sums[j] += b->terms[t].times * columns[j][b->terms[t].at];
  for (int32_t j = 0; j < n; j++) b->prices[of[j]] = sums[j];
}

static void find_prices(pl_bound_cuts *cuts) {
  pl_bound_basis *b = cuts->basis;
  int32_t rows = b->n_rows, n_terms = 0, n = 0, others[ABREAST];
  find_sides(cuts);
  for (int32_t r = 0; r < rows; r++) {
    double cost = cost_of(cuts, b->columns[r]);
    if (cost != 0) b->terms[n_terms++] = (pl_bound_term){r, cost};
  }
  for (int32_t d = 0; d < rows; d++) {
    int32_t at = b->side_at[d];
    if (at == NONE)
      others[n++] = d;
    else
      b->prices[d] = 0 + cost_of(cuts, b->columns[at]) * b->inverse[(int64_t)d * rows + at];
    if (n < ABREAST && d < rows - 1) continue;
    sum_costs(b, n_terms, others, n);
    n = 0;
  }
}

static int32_t best_column(const pl_bound_cuts *cuts) {
  int32_t n = 2 * cuts->n_dims + cuts->n_pairs, best = NONE;
  double most = TINY, *worth = cuts->basis->worth;
  for (int32_t k = 0; k < cuts->n; k++) worth[k] = cuts->basis->prices[cuts->n_dims];
  add_slopes(cuts, cuts->basis->prices, -1, worth);
  for (int32_t column = 0; column < n + cuts->n; column++) {
    double gain = (column < n ? worth_of(cuts, column) : worth[column - n]) - cost_of(cuts, column);
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
  for (int32_t d = 0; d < rows; d++) {
    double *of = &b->inverse[(int64_t)d * rows], in_row = of[row] / by;
    for (int32_t r = 0; in_row != 0 && r < rows; r++) of[r] -= b->entering[r] * in_row;
    of[row] = in_row;
  }
  for (int32_t r = 0; r < rows; r++) {
    double times = b->entering[r];
    if (r == row || times == 0) continue;
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

/* What a column that is of no cut adds up to at the present prices of the rows. */
static double worth_of(const pl_bound_cuts *cuts, int32_t column) {
  const double *prices = cuts->basis->prices;
  int32_t n = cuts->n_dims, pair = cuts->first_pair + column - 2 * n;
  if (column < n) return prices[column];
  if (column < 2 * n) return -prices[column - n];
  return prices[pair] + prices[pair + cuts->n_pairs];
}

static void enter_cut(const pl_bound_cuts *cuts, const double *slopes);

/* The column in terms of those of the basis. */
static void find_entering(const pl_bound_cuts *cuts, int32_t column) {
  pl_bound_basis *b = cuts->basis;
  int32_t n = cuts->n_dims, pair = column - 2 * n, rows = b->n_rows;
  if (column < n) {
    memcpy(b->entering, &b->inverse[(int64_t)column * rows], (size_t)rows * sizeof *b->entering);
  } else if (column < 2 * n) {
    const double *of = &b->inverse[(int64_t)(column - n) * rows];
    for (int32_t r = 0; r < rows; r++) b->entering[r] = -of[r];
  } else if (pair < cuts->n_pairs) {
    const double *one = &b->inverse[(int64_t)(cuts->first_pair + pair) * rows];
    const double *other = one + (int64_t)cuts->n_pairs * rows;
    for (int32_t r = 0; r < rows; r++) b->entering[r] = one[r] + other[r];
  } else {
    enter_cut(cuts, slopes_of(cuts, pair - cuts->n_pairs));
  }
}

static void enter_cut(const pl_bound_cuts *cuts, const double *slopes) {
  pl_bound_basis *b = cuts->basis;
  int32_t n = cuts->n_dims, rows = b->n_rows;
  memcpy(b->entering, &b->inverse[(int64_t)n * rows], (size_t)rows * sizeof *b->entering);
  for (int32_t d = 0; d < n; d++) {
    const double *of = &b->inverse[(int64_t)d * rows];
    double slope = slopes[(int64_t)d * ABREAST];
    int32_t at = b->side_at[d];
    if (at != NONE)
      b->entering[at] -= of[at] * slope;
    else if (slope != 0)
      for (int32_t r = 0; r < rows; r++) b->entering[r] -= of[r] * slope;
  }
}
