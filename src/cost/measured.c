/* Measured tables (measured.h). */
#include "cost/measured.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cost/profile.h"
#include "util/math.h"

/* An op has few algorithms in any honest file; the limit keeps the search for doubles from going quadratic. */
enum { MAX_VARIANTS = 256 };

/* --- Reading ------------------------------------------------------------------------------------------------------ */

static planc_status read_op(const pl_json *at, pl_arena *arena, pl_measured_op *out);
static planc_status read_variant(const pl_json *at, pl_arena *arena, pl_measured_variant *out);
static planc_status read_points(const pl_json *at, pl_arena *arena, pl_measured_variant *variant);
static planc_status read_workspaces(const pl_json *at, pl_arena *arena, pl_measured_variant *variant);
static planc_status copy_name(const pl_json *at, pl_arena *arena, const char **out);
static planc_status check_notes(const pl_json *at);
static planc_status check_workspace(const pl_json *at, const pl_measured_variant *variant);

planc_status pl_measured_read(const pl_json *at, pl_arena *arena, pl_measured *out) {
  PLANC_TRY(pl_json_array(at, &out->n_ops));
  pl_measured_op *ops;
  PLANC_TRY(PL_NEW(arena, &ops, out->n_ops));
  out->ops = ops;
  for (pl_json item = pl_json_first(at); item.value; pl_json_next(&item)) {
    pl_measured_op *op = &ops[item.index];
    PLANC_TRY(read_op(&item, arena, op));
    int32_t other = pl_map_get(&out->by_name, op->name, strlen(op->name));
    if (other >= 0) {
      return pl_json_error(&item, "op %s is measured twice, also in ops[%" PRId32 "]", op->name, other);
    }
    PLANC_TRY(pl_map_put(&out->by_name, op->name, strlen(op->name), item.index));
  }
  return NULL;
}

static planc_status read_op(const pl_json *at, pl_arena *arena, pl_measured_op *out) {
  enum { OP, VARIANTS, N };
  static const pl_json_key keys[N] = {{"op", false}, {"variants", false}};
  pl_json members[N];
  PLANC_TRY(pl_json_members(at, keys, N, members));
  PLANC_TRY(copy_name(&members[OP], arena, &out->name));
  PLANC_TRY(pl_json_array(&members[VARIANTS], &out->n_variants));
  if (out->n_variants > MAX_VARIANTS) return pl_json_error(&members[VARIANTS], "has more than %d", MAX_VARIANTS);
  pl_measured_variant *variants;
  PLANC_TRY(PL_NEW(arena, &variants, out->n_variants));
  out->variants = variants;
  for (pl_json item = pl_json_first(&members[VARIANTS]); item.value; pl_json_next(&item)) {
    PLANC_TRY(read_variant(&item, arena, &variants[item.index]));
    for (int32_t other = 0; other < item.index; other++) {
      if (strcmp(variants[other].algorithm, variants[item.index].algorithm) == 0) {
        return pl_json_error(&item, "algorithm %s is measured twice, also in variants[%" PRId32 "]",
                             variants[other].algorithm, other);
      }
    }
  }
  return NULL;
}

static planc_status read_variant(const pl_json *at, pl_arena *arena, pl_measured_variant *out) {
  enum { ALGORITHM, DETERMINISTIC, POINTS, WORKSPACES, PREDICTED, NOTES, WORKSPACE, SAMPLED, N };
  static const pl_json_key keys[N] = {{"algorithm", false},      {"deterministic", false}, {"points", false},
                                      {"workspaces", true},      {"predicted", true},      {"notes", true},
                                      {"workspace_bytes", true}, {"sampled", true}};
  pl_json members[N];
  PLANC_TRY(pl_json_members(at, keys, N, members));
  PLANC_TRY(copy_name(&members[ALGORITHM], arena, &out->algorithm));
  PLANC_TRY(pl_json_bool(&members[DETERMINISTIC], &out->deterministic));
  if (members[WORKSPACES].value) PLANC_TRY(read_workspaces(&members[WORKSPACES], arena, out));
  if (members[SAMPLED].value) PLANC_TRY(pl_json_bool(&members[SAMPLED], &out->sampled));
  if (members[PREDICTED].value) PLANC_TRY(pl_json_bool(&members[PREDICTED], &out->predicted));
  if (members[NOTES].value) PLANC_TRY(check_notes(&members[NOTES]));
  PLANC_TRY(read_points(&members[POINTS], arena, out));
  return members[WORKSPACE].value ? check_workspace(&members[WORKSPACE], out) : NULL;
}

static planc_status check_batch(const pl_json *at, int64_t batch, int64_t before) {
  if (batch > before) return NULL;
  return pl_json_error(at, "batch %" PRId64 " follows batch %" PRId64 ": batches must ascend", batch, before);
}

static planc_status read_points(const pl_json *at, pl_arena *arena, pl_measured_variant *variant) {
  static const pl_json_field fields[] = {
      {"batch", offsetof(pl_point, batch), 1, PL_JSON_MAX},
      {"time_ns", offsetof(pl_point, time_ns), 0, PL_JSON_MAX},
      {"workspace_bytes", offsetof(pl_point, workspace_bytes), 0, PL_JSON_MAX},
      {"busy_ppm", offsetof(pl_point, busy_ppm), 1, PL_PPM},
      {"spread_ns", offsetof(pl_point, spread_ns), 0, PL_JSON_MAX},
      {"scaled_from", offsetof(pl_point, scaled_from), 1, PL_JSON_MAX},
  };
  enum { REQUIRED = 4 };
  PLANC_TRY(pl_json_array(at, &variant->n_points));
  pl_point *points;
  PLANC_TRY(PL_NEW(arena, &points, variant->n_points));
  variant->points = points;
  for (pl_json item = pl_json_first(at); item.value; pl_json_next(&item)) {
    pl_point *point = &points[item.index];
    PLANC_TRY(pl_json_struct_partly(&item, fields, REQUIRED, sizeof fields / sizeof *fields, point));
    PLANC_TRY(check_batch(&item, point->batch, item.index > 0 ? point[-1].batch : 0));
  }
  return NULL;
}

static planc_status read_workspaces(const pl_json *at, pl_arena *arena, pl_measured_variant *variant) {
  static const pl_json_field fields[] = {
      {"batch", offsetof(pl_measured_workspace, batch), 1, PL_JSON_MAX},
      {"bytes", offsetof(pl_measured_workspace, bytes), -1, PL_JSON_MAX},
  };
  PLANC_TRY(pl_json_array(at, &variant->n_workspaces));
  pl_measured_workspace *workspaces;
  PLANC_TRY(PL_NEW(arena, &workspaces, variant->n_workspaces));
  variant->workspaces = workspaces;
  for (pl_json item = pl_json_first(at); item.value; pl_json_next(&item)) {
    pl_measured_workspace *workspace = &workspaces[item.index];
    PLANC_TRY(pl_json_struct(&item, fields, sizeof fields / sizeof *fields, workspace));
    PLANC_TRY(check_batch(&item, workspace->batch, item.index > 0 ? workspace[-1].batch : 0));
  }
  return NULL;
}

static planc_status copy_name(const pl_json *at, pl_arena *arena, const char **out) {
  const char *name;
  PLANC_TRY(pl_json_name(at, &name));
  return pl_arena_strndup(arena, name, strlen(name), out);
}

/* What a library says of an algorithm; told, not planned with. */
static planc_status check_notes(const pl_json *at) {
  const char *text;
  if (!cJSON_IsArray(at->value)) return pl_json_error(at, "must be an array");
  for (pl_json item = pl_json_first(at); item.value; pl_json_next(&item)) PLANC_TRY(pl_json_string(&item, &text));
  return NULL;
}

/* Of a variant: the largest of its points. */
static planc_status check_workspace(const pl_json *at, const pl_measured_variant *variant) {
  int64_t bytes, most = 0;
  PLANC_TRY(pl_json_int(at, 0, PL_JSON_MAX, &bytes));
  for (int32_t i = 0; i < variant->n_points; i++)
    if (variant->points[i].workspace_bytes > most) most = variant->points[i].workspace_bytes;
  return bytes == most ? NULL : pl_json_error(at, "must be the largest of the points', %" PRId64, most);
}

/* --- Finding and freeing ------------------------------------------------------------------------------------------ */

const pl_measured_op *pl_measured_find(const pl_measured *measured, const char *op) {
  if (measured->n_ops == 0) return NULL;
  int32_t index = pl_map_get(&measured->by_name, op, strlen(op));
  return index < 0 ? NULL : &measured->ops[index];
}

void pl_measured_free(pl_measured *measured) {
  pl_map_free(&measured->by_name);
}

/* --- Interpolation ------------------------------------------------------------------------------------------------ */

static planc_variant interpolate(const pl_measured_variant *variant, int64_t batch, bool scales, int64_t kernel_ns);
static const pl_point *segment_end(const pl_measured_variant *variant, int64_t batch);
static int64_t line_at(int64_t x0, int64_t y0, int64_t x1, int64_t y1, int64_t x);
static const pl_measured_workspace *find_workspace(const pl_measured_variant *variant, int64_t batch);
static bool knows_samples_only(const pl_measured_variant *variant, int64_t batch);
static bool has_point(const pl_measured_variant *variant, int64_t batch);
static int64_t workspace_above(const pl_measured_variant *variant, int64_t batch);

planc_variant pl_measured_at(const pl_measured_variant *variant, int64_t batch, bool scales, int64_t kernel_ns) {
  planc_variant out = interpolate(variant, batch, scales, kernel_ns);
  const pl_measured_workspace *exact = find_workspace(variant, batch);
  if (exact) {
    out.workspace_bytes = exact->bytes;
  } else if (knows_samples_only(variant, batch) && !has_point(variant, batch)) {
    int64_t above = workspace_above(variant, batch);
    if (above > out.workspace_bytes) out.workspace_bytes = above;
  }
  return out;
}

bool pl_measured_is_listed(const pl_measured_variant *variant, int64_t batch) {
  return find_workspace(variant, batch) || has_point(variant, batch) || !knows_samples_only(variant, batch);
}

/* Whether the line through the points does not tell the workspaces that are not listed: where some are, nobody was
 * asked about others beyond the last point. */
static bool knows_samples_only(const pl_measured_variant *variant, int64_t batch) {
  return variant->sampled || (variant->n_workspaces > 0 && batch > variant->points[variant->n_points - 1].batch);
}

static planc_variant interpolate(const pl_measured_variant *variant, int64_t batch, bool scales, int64_t kernel_ns) {
  planc_variant out = {
      .algorithm = variant->algorithm, .deterministic = variant->deterministic, .measured = !variant->predicted};
  if (variant->n_points == 1) {
    const pl_point *only = variant->points;
    int64_t fixed = only->time_ns < kernel_ns ? only->time_ns : kernel_ns;
    int64_t at = scales ? batch : only->batch;
    out.time_ns = pl_add_saturate(fixed, pl_muldiv_ceil(only->time_ns - fixed, at, only->batch));
    out.workspace_bytes = pl_muldiv_ceil(only->workspace_bytes, at, only->batch);
    out.busy_ppm = only->busy_ppm;
    return out;
  }
  const pl_point *b = segment_end(variant, batch);
  const pl_point *a = b - 1;
  int64_t within = pl_clamp(batch, a->batch, b->batch);
  out.time_ns = line_at(a->batch, a->time_ns, b->batch, b->time_ns, batch);
  /* A smaller batch takes no less for each of its samples: what the line says there is the points' noise. */
  if (batch < a->batch) out.time_ns = pl_max(out.time_ns, pl_muldiv_ceil(a->time_ns, batch, a->batch));
  out.workspace_bytes = line_at(a->batch, a->workspace_bytes, b->batch, b->workspace_bytes, batch);
  out.busy_ppm = line_at(a->batch, a->busy_ppm, b->batch, b->busy_ppm, within);
  return out;
}

/* The second point of the segment that holds `batch`, or of the one nearest to it. */
static const pl_point *segment_end(const pl_measured_variant *variant, int64_t batch) {
  assert(variant->n_points > 1);
  int32_t low = 1;
  int32_t high = variant->n_points - 1;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (variant->points[middle].batch < batch) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return &variant->points[low];
}

/* The line through (x0, y0) and (x1, y1) at x, rounded up, at least 0, saturating. */
static int64_t line_at(int64_t x0, int64_t y0, int64_t x1, int64_t y1, int64_t x) {
  pl_signed_wide numerator = (pl_signed_wide)y0 * (x1 - x) + (pl_signed_wide)y1 * (x - x0);
  pl_signed_wide denominator = x1 - x0;
  if (numerator <= 0) return 0;
  pl_signed_wide value = (numerator + denominator - 1) / denominator;
  return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

static int compare_workspaces(const void *batch, const void *workspace) {
  int64_t wanted = *(const int64_t *)batch, there = ((const pl_measured_workspace *)workspace)->batch;
  return (wanted > there) - (wanted < there);
}

/* NULL: none is listed for the batch. */
static const pl_measured_workspace *find_workspace(const pl_measured_variant *variant, int64_t batch) {
  if (variant->n_workspaces == 0) return NULL;
  return bsearch(&batch, variant->workspaces, (size_t)variant->n_workspaces, sizeof *variant->workspaces,
                 compare_workspaces);
}

static bool is_own(const pl_point *point) {
  return point->scaled_from == 0;
}

static bool has_point(const pl_measured_variant *variant, int64_t batch) {
  for (int32_t p = 0; p < variant->n_points; p++)
    if (variant->points[p].batch == batch) return is_own(&variant->points[p]);
  return false;
}

/* What is known for the next larger batch at which the algorithm runs; 0: there is none. */
static int64_t workspace_above(const pl_measured_variant *variant, int64_t batch) {
  int32_t p = 0, w = 0;
  while (p < variant->n_points && (variant->points[p].batch <= batch || !is_own(&variant->points[p]))) p++;
  while (w < variant->n_workspaces && (variant->workspaces[w].batch <= batch || variant->workspaces[w].bytes < 0)) w++;
  const pl_point *point = p < variant->n_points ? &variant->points[p] : NULL;
  const pl_measured_workspace *workspace = w < variant->n_workspaces ? &variant->workspaces[w] : NULL;
  if (workspace && (!point || workspace->batch <= point->batch)) return workspace->bytes;
  return point ? point->workspace_bytes : 0;
}
