/* Prints predictions and models as profiles, planc-profile(5). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost/predict_model.h"
#include "cost/profile_print.h"

/* The variants of an op, a batch behind the other. */
typedef struct op_variants {
  const planc_predicted_costs *of;
  const planc_op *op;
  const pl_measured_op *listed; /* or NULL */
  const int32_t *first;         /* of each batch, and behind the last */
  pl_point *points;             /* scratch, one for each batch */
} op_variants;

static void emit_op(pl_emit *emit, const op_variants *o);
static const planc_variant *find(const op_variants *o, int32_t batch_index, const char *algorithm);
static void emit_variant(pl_emit *emit, const op_variants *o, int32_t from, const planc_variant *variant);
static int32_t collect(const op_variants *o, int32_t from, const char *algorithm);
static void emit_point(pl_emit *emit, const pl_point *at);
static void emit_workspaces(pl_emit *emit, const op_variants *o, const pl_measured_variant *points);

planc_status planc_predicted_costs_print(const planc_predicted_costs *costs, char **out_text, size_t *out_length) {
  const planc_profile *listed = costs->listed;
  pl_emit emit = {0};
  pl_point *points = calloc((size_t)costs->n_batches + 1, sizeof *points);
  if (!points) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  char origin[128];
  snprintf(origin, sizeof origin,
           "predicted by planc %s, for a device that others keep busy for %" PRId64 " ppm of the time",
           costs->profile->model ? "from a model" : "from the constants", costs->load_ppm);
  pl_profile_emit_head(&emit, costs->profile, NULL, "ops", origin);
  pl_profile_emit_graph(&emit, planc_graph_hash(costs->graph));
  EMIT(&emit, "\"ops\":[");
  for (int32_t o = 0; o < costs->graph->n_ops; o++) {
    op_variants variants = {.of = costs,
                            .op = &costs->graph->ops[o],
                            .listed = listed ? pl_measured_find(&listed->measured, costs->graph->ops[o].name) : NULL,
                            .first = &costs->first[(int64_t)o * costs->n_batches],
                            .points = points};
    if (o > 0) EMIT(&emit, ",");
    EMIT(&emit, "\n ");
    emit_op(&emit, &variants);
  }
  EMIT(&emit, "]}\n");
  free(points);
  return pl_emit_take(&emit, out_text, out_length);
}

static void emit_op(pl_emit *emit, const op_variants *o) {
  EMIT(emit, "{\"op\":");
  pl_emit_string(emit, o->op->name);
  EMIT(emit, ",\"variants\":[");
  bool some = false;
  for (int32_t b = 0; b < o->of->n_batches; b++) {
    for (int32_t v = o->first[b]; v < o->first[b + 1]; v++) {
      const planc_variant *variant = &o->of->variants[v];
      bool seen = false;
      for (int32_t a = 0; a < b && !seen; a++) seen = find(o, a, variant->algorithm);
      if (seen) continue;
      if (some) EMIT(emit, ",");
      emit_variant(emit, o, b, variant);
      some = true;
    }
  }
  EMIT(emit, "]}");
}

/* An algorithm from the batch on where it is first met. */
static void emit_variant(pl_emit *emit, const op_variants *o, int32_t from, const planc_variant *variant) {
  pl_measured_variant points = {
      .algorithm = variant->algorithm, .n_points = collect(o, from, variant->algorithm), .points = o->points};
  EMIT(emit, "{\"algorithm\":");
  pl_emit_string(emit, variant->algorithm);
  if (variant->deterministic) {
    EMIT(emit, ",\"deterministic\":true,\"predicted\":true,\"points\":[");
  } else {
    EMIT(emit, ",\"deterministic\":false,\"predicted\":true,\"points\":[");
  }
  for (int32_t k = 0; k < points.n_points; k++) {
    if (k > 0) EMIT(emit, ",");
    emit_point(emit, &points.points[k]);
  }
  EMIT(emit, "]");
  emit_workspaces(emit, o, &points);
  EMIT(emit, "}");
}

/* --- Predictions -------------------------------------------------------------------------------------------------- */

static const planc_variant *find(const op_variants *o, int32_t batch_index, const char *algorithm) {
  for (int32_t v = o->first[batch_index]; v < o->first[batch_index + 1]; v++)
    if (strcmp(o->of->variants[v].algorithm, algorithm) == 0) return &o->of->variants[v];
  return NULL;
}

/* The points of an algorithm from batch index `from` on. */
static int32_t collect(const op_variants *o, int32_t from, const char *algorithm) {
  int32_t n = 0;
  for (int32_t b = from; b < o->of->n_batches; b++) {
    const planc_variant *at = find(o, b, algorithm);
    if (!at) continue;
    o->points[n++] = (pl_point){.batch = o->of->batches[b],
                                .time_ns = at->time_ns,
                                .workspace_bytes = at->workspace_bytes,
                                .busy_ppm = at->busy_ppm};
  }
  return n;
}

static void emit_point(pl_emit *emit, const pl_point *at) {
  EMIT_INT(emit, "{\"batch\":", at->batch);
  EMIT_INT(emit, ",\"time_ns\":", at->time_ns);
  EMIT_INT(emit, ",\"workspace_bytes\":", at->workspace_bytes);
  EMIT_INT(emit, ",\"busy_ppm\":", at->busy_ppm);
  EMIT(emit, "}");
}

static const pl_measured_variant *listed_variant(const op_variants *o, const char *algorithm) {
  for (int32_t v = 0; o->listed && v < o->listed->n_variants; v++)
    if (strcmp(o->listed->variants[v].algorithm, algorithm) == 0) return &o->listed->variants[v];
  return NULL;
}

/* What is listed for batches up to the largest, where a reader's line between the points is another. */
static void emit_workspaces(pl_emit *emit, const op_variants *o, const pl_measured_variant *points) {
  enum { MAX_BATCHES = 4096 };
  const pl_measured_variant *listed = listed_variant(o, points->algorithm);
  int64_t most = o->of->batches[o->of->n_batches - 1];
  bool scales = o->op->flops.per_sample != 0 || o->op->traffic.per_sample != 0, some = false;
  for (int64_t batch = 1; listed && batch <= most && batch <= MAX_BATCHES; batch++) {
    int64_t bytes = pl_measured_at(listed, batch, scales, 1).workspace_bytes;
    if (pl_measured_at(points, batch, scales, 1).workspace_bytes == bytes) continue;
    if (some) EMIT(emit, ",");
    if (!some) EMIT(emit, ",\"workspaces\":[");
    EMIT_INT(emit, "{\"batch\":", batch);
    EMIT_INT(emit, ",\"bytes\":", bytes);
    EMIT(emit, "}");
    some = true;
  }
  if (some) EMIT(emit, "]");
}

/* --- Models ------------------------------------------------------------------------------------------------------- */

static void emit_sample(pl_emit *emit, const pl_model_sample *sample) {
  int64_t row[PL_N_FEATURES + 3];
  memcpy(row, sample->features.at, sizeof sample->features.at);
  row[PL_N_FEATURES] = sample->residual;
  row[PL_N_FEATURES + 1] = sample->workspace_bytes;
  row[PL_N_FEATURES + 2] = sample->busy_ppm;
  EMIT(emit, "\n   ");
  pl_emit_longs(emit, row, PL_N_FEATURES + 3);
}

static void emit_group(pl_emit *emit, const pl_model_group *group) {
  EMIT(emit, "{\"type\":");
  pl_emit_string(emit, group->type);
  EMIT(emit, ",\"algorithm\":");
  pl_emit_string(emit, group->algorithm);
  if (group->deterministic) {
    EMIT(emit, ",\"deterministic\":true");
  } else {
    EMIT(emit, ",\"deterministic\":false");
  }
  EMIT_INT(emit, ",\"bias\":", group->bias);
  EMIT_INT(emit, ",\"low\":", group->low);
  EMIT_INT(emit, ",\"high\":", group->high);
  EMIT(emit, ",\n  \"mean\":");
  pl_emit_longs(emit, group->mean, PL_N_FEATURES);
  EMIT(emit, ",\n  \"weights\":");
  pl_emit_longs(emit, group->weights, PL_N_FEATURES);
  EMIT(emit, ",\n  \"samples\":[");
  for (int32_t s = 0; s < group->n_samples; s++) {
    if (s > 0) EMIT(emit, ",");
    emit_sample(emit, &group->samples[s]);
  }
  EMIT(emit, "]}");
}

planc_status planc_model_print(const planc_profile *base, const planc_model *model, const char *name, char **out_text,
                               size_t *out_length) {
  pl_emit emit = {0};
  pl_profile_emit_head(&emit, base, name, "model", "fitted by planc predict --fit");
  EMIT(&emit, "\"model\":{\"features\":[");
  for (int32_t f = 0; f < PL_N_FEATURES; f++) {
    if (f > 0) EMIT(&emit, ",");
    pl_emit_string(&emit, pl_feature_names[f]);
  }
  EMIT(&emit, "],\n\"groups\":[");
  for (int32_t g = 0; g < model->n_groups; g++) {
    if (g > 0) EMIT(&emit, ",");
    EMIT(&emit, "\n ");
    emit_group(&emit, &model->groups[g]);
  }
  EMIT(&emit, "]}}\n");
  return pl_emit_take(&emit, out_text, out_length);
}
