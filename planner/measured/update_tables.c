/* Tables of an updated profile (update_tables.h). What was measured stands in them as it is; what else is known of an
 * op goes along in proportion, by the nearest of: its algorithm, the op, the op's class, everything. */
#include "planner/measured/update_tables.h"

#include <string.h>

#include "util/math.h"

/* The latencies of an op or of one of its algorithms. */
typedef struct latency_slice {
  const pl_latency *of;
  int64_t n;
} latency_slice;

typedef struct tables {
  const planc_profile *base; /* or NULL */
  const planc_job *job;
  const planc_graph *graph; /* its */
  const pl_latencies *latencies;
  planc_profile *made;
  pl_arena scratch;
  latency_slice *measured; /* by op */
  pl_measured_op *known;   /* by op: without what was measured */
  pl_update_ratio *of_op;
  pl_update_ratio of_class[PL_N_CLASSES], all;
} tables;

static bool scales(const planc_op *op) {
  return op->flops.per_sample != 0 || op->traffic.per_sample != 0;
}

/* --- Tables ------------------------------------------------------------------------------------------------------- */

static planc_status make_ops(tables *t);
static planc_status make_op(tables *t, int32_t op, pl_measured_op *out);
static bool is_known(const pl_measured_op *op, const char *algorithm);
static planc_status make_variant(tables *t, int32_t op, const pl_measured_variant *known, pl_measured_variant *out);
static latency_slice slice_of(latency_slice op, const char *algorithm);
static bool runs_beyond(const pl_measured_variant *known, latency_slice measured);
static void find_ratios(tables *t);
static planc_status find_measured(tables *t);
static planc_status find_known(tables *t, planc_costs **costs);
static planc_status make_points(tables *t, int32_t op, const pl_measured_variant *known, latency_slice measured,
                                pl_measured_variant *out);
static planc_status make_workspaces(tables *t, int32_t op, const pl_measured_variant *known, latency_slice measured,
                                    pl_measured_variant *out);

planc_status pl_update_tables(const planc_profile *base, const planc_job *job, const pl_latencies *latencies,
                              planc_profile *made, pl_update_ratio *out_elementwise) {
  planc_costs *costs = NULL;
  tables t = {.base = base, .job = job, .graph = job->graph, .latencies = latencies, .made = made};
  planc_status status = find_measured(&t);
  if (!status) status = find_known(&t, &costs);
  if (!status) {
    find_ratios(&t);
    *out_elementwise = t.of_class[PLANC_CLASS_elementwise];
    status = make_ops(&t);
  }
  planc_costs_free(costs);
  pl_arena_free(&t.scratch);
  return status;
}

static planc_status make_ops(tables *t) {
  pl_measured *measured = &t->made->measured;
  pl_measured_op *ops;
  PLANC_TRY(PL_NEW(&t->made->arena, &ops, t->graph->n_ops));
  measured->ops = ops;
  for (int32_t o = 0; o < t->graph->n_ops; o++) {
    if (t->known[o].n_variants == 0 && t->measured[o].n == 0) continue;
    pl_measured_op *op = &ops[measured->n_ops];
    PLANC_TRY(make_op(t, o, op));
    PLANC_TRY(pl_map_put(&measured->by_name, op->name, strlen(op->name), measured->n_ops++));
  }
  return NULL;
}

static planc_status make_op(tables *t, int32_t op, pl_measured_op *out) {
  const pl_measured_op *known = &t->known[op];
  const char *name = t->graph->ops[op].name;
  latency_slice measured = t->measured[op];
  pl_measured_variant *variants;
  PLANC_TRY(pl_arena_strndup(&t->made->arena, name, strlen(name), &out->name));
  PLANC_TRY(PL_NEW(&t->made->arena, &variants, known->n_variants + measured.n));
  out->variants = variants;
  for (int32_t v = 0; v < known->n_variants; v++)
    PLANC_TRY(make_variant(t, op, &known->variants[v], &variants[out->n_variants++]));
  for (int64_t m = 0; m < measured.n; m++) {
    const char *algorithm = measured.of[m].algorithm;
    if (is_known(known, algorithm) || (m > 0 && strcmp(algorithm, measured.of[m - 1].algorithm) == 0)) continue;
    pl_measured_variant unknown = {.algorithm = algorithm};
    PLANC_TRY(make_variant(t, op, &unknown, &variants[out->n_variants++]));
  }
  return NULL;
}

static bool is_known(const pl_measured_op *op, const char *algorithm) {
  for (int32_t v = 0; v < op->n_variants; v++)
    if (strcmp(op->variants[v].algorithm, algorithm) == 0) return true;
  return false;
}

static planc_status make_variant(tables *t, int32_t op, const pl_measured_variant *known, pl_measured_variant *out) {
  latency_slice measured = slice_of(t->measured[op], known->algorithm);
  *out = *known;
  out->predicted = known->predicted && measured.n == 0;
  out->sampled = known->sampled || known->n_points == 0 || runs_beyond(known, measured);
  PLANC_TRY(pl_arena_strndup(&t->made->arena, known->algorithm, strlen(known->algorithm), &out->algorithm));
  PLANC_TRY(make_points(t, op, known, measured, out));
  return make_workspaces(t, op, known, measured, out);
}

static latency_slice slice_of(latency_slice op, const char *algorithm) {
  while (op.n > 0 && strcmp(op.of[0].algorithm, algorithm) != 0) op.of++, op.n--;
  int64_t n = 0;
  while (n < op.n && strcmp(op.of[n].algorithm, algorithm) == 0) n++;
  return (latency_slice){op.of, n};
}

/* A table that lists workspaces has them up to its last point: not between that and a larger batch that ran. */
static bool runs_beyond(const pl_measured_variant *known, latency_slice measured) {
  return known->n_workspaces > 0 && measured.n > 0 &&
         measured.of[measured.n - 1].batch > known->points[known->n_points - 1].batch;
}

/* --- Ratios ------------------------------------------------------------------------------------------------------- */

static pl_update_ratio ratio_of_op(const tables *t, int32_t op);
static pl_update_ratio ratio_of(const tables *t, int32_t op, const pl_measured_variant *known);
static void add(pl_update_ratio *to, int64_t new_ns, int64_t base_ns);

static void find_ratios(tables *t) {
  for (int32_t o = 0; o < t->graph->n_ops; o++) {
    t->of_op[o] = ratio_of_op(t, o);
    add(&t->of_class[pl_op_class(&t->graph->ops[o])], t->of_op[o].new_ns, t->of_op[o].base_ns);
    add(&t->all, t->of_op[o].new_ns, t->of_op[o].base_ns);
  }
}

/* Where none of the algorithms that ran is known, the plan's own times stand for what was. */
static pl_update_ratio ratio_of_op(const tables *t, int32_t op) {
  pl_update_ratio sum = {0};
  for (int32_t v = 0; v < t->known[op].n_variants; v++) {
    pl_update_ratio of = ratio_of(t, op, &t->known[op].variants[v]);
    add(&sum, of.new_ns, of.base_ns);
  }
  for (int64_t i = 0; i < t->measured[op].n && sum.base_ns == 0; i++)
    add(&sum, t->measured[op].of[i].sum.new_ns, t->measured[op].of[i].sum.old_ns);
  return sum;
}

static pl_update_ratio nearest_ratio(const tables *t, int32_t op, const pl_measured_variant *known) {
  pl_update_ratio of = ratio_of(t, op, known);
  if (of.base_ns == 0) of = t->of_op[op];
  if (of.base_ns == 0) of = t->of_class[pl_op_class(&t->graph->ops[op])];
  return of.base_ns == 0 ? t->all : of;
}

/* How much longer an algorithm takes at the batches at which it was measured. */
static pl_update_ratio ratio_of(const tables *t, int32_t op, const pl_measured_variant *known) {
  latency_slice measured = slice_of(t->measured[op], known->algorithm);
  int64_t kernel_ns = t->made->compute.kernel_ns;
  pl_update_ratio sum = {0};
  for (int64_t i = 0; i < measured.n && known->n_points > 0; i++) {
    planc_variant at = pl_measured_at(known, measured.of[i].batch, scales(&t->graph->ops[op]), kernel_ns);
    add(&sum, measured.of[i].new_ns, at.time_ns);
  }
  return sum;
}

static void add(pl_update_ratio *to, int64_t new_ns, int64_t base_ns) {
  to->new_ns = pl_add_saturate(to->new_ns, new_ns);
  to->base_ns = pl_add_saturate(to->base_ns, base_ns);
}

int64_t pl_update_scale(int64_t ns, pl_update_ratio by) {
  int64_t scaled = by.base_ns > 0 ? pl_muldiv_floor(ns, by.new_ns, by.base_ns) : ns;
  return scaled < PL_JSON_MAX ? scaled : PL_JSON_MAX;
}

/* --- What is known ------------------------------------------------------------------------------------------------ */

static planc_status describe_op(tables *t, const planc_costs *costs, int32_t op, pl_measured_op *out);
static planc_status make_costs(const tables *t, planc_costs **out);

static planc_status find_measured(tables *t) {
  const pl_latencies *l = t->latencies;
  PLANC_TRY(PL_NEW(&t->scratch, &t->measured, t->graph->n_ops));
  PLANC_TRY(PL_NEW(&t->scratch, &t->known, t->graph->n_ops));
  PLANC_TRY(PL_NEW(&t->scratch, &t->of_op, t->graph->n_ops));
  for (int64_t i = 0; i < l->ops.len; i++) {
    latency_slice *slice = &t->measured[l->ops.data[i].op];
    if (slice->n++ == 0) slice->of = &l->ops.data[i];
  }
  return NULL;
}

static planc_status find_known(tables *t, planc_costs **costs) {
  const planc_profile *base = t->base;
  for (int32_t o = 0; base && o < t->graph->n_ops; o++) {
    const pl_measured_op *measured = pl_measured_find(&base->measured, t->graph->ops[o].name);
    if (!measured && !*costs) PLANC_TRY(make_costs(t, costs));
    if (measured)
      t->known[o] = *measured;
    else
      PLANC_TRY(describe_op(t, *costs, o, &t->known[o]));
  }
  return NULL;
}

static planc_status describe_op(tables *t, const planc_costs *costs, int32_t op, pl_measured_op *out) {
  const int32_t *first = &costs->first[(int64_t)op * costs->n_batches];
  pl_measured_variant *variants;
  PLANC_TRY(PL_NEW(&t->scratch, &variants, first[costs->n_batches] - first[0]));
  *out = (pl_measured_op){.name = t->graph->ops[op].name, .variants = variants};
  for (int32_t b = 0; b < costs->n_batches; b++) {
    for (int32_t i = first[b]; i < first[b + 1]; i++) {
      const planc_variant *at = &costs->variants[i];
      int32_t v = 0;
      while (v < out->n_variants && strcmp(variants[v].algorithm, at->algorithm) != 0) v++;
      pl_point *points = (pl_point *)variants[v].points;
      if (v == out->n_variants) {
        PLANC_TRY(PL_NEW(&t->scratch, &points, costs->n_batches));
        variants[out->n_variants++] = (pl_measured_variant){
            .algorithm = at->algorithm, .deterministic = at->deterministic, .predicted = true, .points = points};
      }
      points[variants[v].n_points++] = (pl_point){.batch = costs->batches[b],
                                                  .time_ns = at->time_ns,
                                                  .workspace_bytes = at->workspace_bytes,
                                                  .busy_ppm = at->busy_ppm};
    }
  }
  return NULL;
}

/* Constants tell of an op at the powers of two and the plan's own batches. */
static planc_status make_costs(const tables *t, planc_costs **out) {
  enum { MOST = 64 + 3 };
  const planc_job *job = t->job;
  int64_t batches[MOST];
  int32_t n = 0;
  for (int64_t b = 1; b < job->batch && n < 64 - 2; b *= 2) batches[n++] = b;
  batches[n++] = job->batch;
  batches[n++] = job->rounds[0];
  batches[n++] = job->rounds[job->n_rounds - 1];
  planc_profile bare = *t->base;
  bare.measured = (pl_measured){0};
  return planc_costs_make(&bare, t->graph, n, batches, out);
}

/* --- Points and workspaces ---------------------------------------------------------------------------------------- */

static pl_point point_of(const tables *t, int32_t op, const pl_measured_variant *known, const pl_latency *latency);
static int64_t workspace_on_line(const tables *t, int32_t op, const pl_measured_variant *known,
                                 const pl_latency *latency);
static void add_whole_batch(const tables *t, const planc_op *op, pl_measured_variant *variant, pl_point *points);
static int64_t next_batch(latency_slice op, int64_t after);
static const pl_latency *latency_at(latency_slice measured, int64_t batch);

/* What was measured, and between that what is known, in proportion. */
static planc_status make_points(tables *t, int32_t op, const pl_measured_variant *known, latency_slice measured,
                                pl_measured_variant *out) {
  pl_update_ratio by = nearest_ratio(t, op, known);
  pl_point *points;
  int64_t m = 0;
  PLANC_TRY(PL_NEW(&t->made->arena, &points, known->n_points + measured.n + 1));
  out->points = points;
  out->n_points = 0;
  for (int32_t k = 0; k < known->n_points; k++) {
    pl_point at = known->points[k];
    while (m < measured.n && measured.of[m].batch < at.batch)
      points[out->n_points++] = point_of(t, op, known, &measured.of[m++]);
    if (m < measured.n && measured.of[m].batch == at.batch) continue;
    at.time_ns = pl_update_scale(at.time_ns, by);
    at.spread_ns = pl_update_scale(at.spread_ns, by);
    points[out->n_points++] = at;
  }
  while (m < measured.n) points[out->n_points++] = point_of(t, op, known, &measured.of[m++]);
  if (known->n_points == 0) add_whole_batch(t, &t->graph->ops[op], out, points);
  return NULL;
}

static pl_point point_of(const tables *t, int32_t op, const pl_measured_variant *known, const pl_latency *latency) {
  int64_t time_ns = latency->new_ns < PL_JSON_MAX ? latency->new_ns : PL_JSON_MAX;
  return (pl_point){.batch = latency->batch,
                    .time_ns = time_ns,
                    .workspace_bytes = workspace_on_line(t, op, known, latency),
                    .busy_ppm = latency->busy_ppm > 0 ? latency->busy_ppm : 1};
}

/* What the line between the points known gives, which those between them rest on; of an algorithm that nothing is known
 * of, what it ran with. */
static int64_t workspace_on_line(const tables *t, int32_t op, const pl_measured_variant *known,
                                 const pl_latency *latency) {
  if (known->n_points == 0) return latency->workspace_bytes;
  pl_measured_variant line = *known;
  line.n_workspaces = 0;
  line.sampled = false;
  int64_t bytes =
      pl_measured_at(&line, latency->batch, scales(&t->graph->ops[op]), t->made->compute.kernel_ns).workspace_bytes;
  return bytes < PL_JSON_MAX ? bytes : PL_JSON_MAX;
}

/* Only the batches of the plan's rounds are known; the whole batch takes as long as rounds of the largest, and its
 * workspace is a guess. */
static void add_whole_batch(const tables *t, const planc_op *op, pl_measured_variant *variant, pl_point *points) {
  int64_t batch = t->job->batch;
  pl_point last = points[variant->n_points - 1];
  if (last.batch >= batch) return;
  int64_t times = scales(op) ? batch : last.batch;
  last.time_ns = pl_update_scale(last.time_ns, (pl_update_ratio){times, last.batch});
  last.workspace_bytes = pl_update_scale(last.workspace_bytes, (pl_update_ratio){times, last.batch});
  last.scaled_from = last.batch;
  last.batch = batch;
  points[variant->n_points++] = last;
}

/* The workspaces that the points do not give: what ran had enough, the rest is as known. What only the plan tells of
 * is not offered at those of its batches at which it ran others: how much it needs there is not known. */
static planc_status make_workspaces(tables *t, int32_t op, const pl_measured_variant *known, latency_slice measured,
                                    pl_measured_variant *out) {
  latency_slice all = t->measured[op];
  pl_measured_workspace *list;
  int32_t k = 0;
  PLANC_TRY(PL_NEW(&t->made->arena, &list, known->n_workspaces + all.n));
  out->workspaces = list;
  out->n_workspaces = 0;
  for (int64_t batch = 0;;) {
    int64_t ran = next_batch(all, batch);
    bool is_listed = k < known->n_workspaces && known->workspaces[k].batch <= ran;
    if (!is_listed && ran == INT64_MAX) return NULL;
    batch = is_listed ? known->workspaces[k].batch : ran;
    const pl_latency *latency = latency_at(measured, batch);
    if (latency && latency->workspace_bytes != workspace_on_line(t, op, known, latency))
      list[out->n_workspaces++] = (pl_measured_workspace){batch, latency->workspace_bytes};
    else if (!latency && is_listed)
      list[out->n_workspaces++] = known->workspaces[k];
    else if (!latency && known->n_points == 0)
      list[out->n_workspaces++] = (pl_measured_workspace){batch, -1};
    k += is_listed;
  }
}

/* The least batch above `after` at which the op ran; INT64_MAX: there is none. */
static int64_t next_batch(latency_slice op, int64_t after) {
  int64_t least = INT64_MAX;
  for (int64_t i = 0; i < op.n; i++)
    if (op.of[i].batch > after && op.of[i].batch < least) least = op.of[i].batch;
  return least;
}

static const pl_latency *latency_at(latency_slice measured, int64_t batch) {
  for (int64_t m = 0; m < measured.n; m++)
    if (measured.of[m].batch == batch) return &measured.of[m];
  return NULL;
}
