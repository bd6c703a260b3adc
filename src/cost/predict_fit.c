/* Fits models to measured times, and judges them by what they were not fitted to (predict_model.h).
 *
 * The line is a ridge regression on the logarithm of time over roofline: features are taken from their means, and the
 * penalty draws weights to 0, which is the roofline with a constant factor, where few samples say otherwise. Only sums,
 * products and square roots are used, so that IEEE arithmetic gives the same model everywhere. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cost/predict_model.h"
#include "cost/predict_samples.h"
#include "cost/profile.h"
#include "util/ascending.h"
#include "util/math.h"

/* What a fit leaves out: the samples of one fold, of one graph, or nothing. */
typedef struct left_out {
  enum { OUT_NOTHING, OUT_FOLD, OUT_GRAPH } kind;
  int32_t index;
} left_out;

typedef VEC(int64_t) numbers;

typedef struct judging {
  planc_fit_error *error;
  numbers model, roofline; /* relative errors, in ppm */
} judging;

static planc_status fit_and_judge(const pl_samples *all, int32_t n_cases, planc_model *model, planc_fit_report *report);
static planc_status judge(const pl_samples *all, left_out out_of, int32_t n, planc_fit_error *out);
static planc_status judge_without(const pl_samples *all, const left_out *out_of, judging *j);
static bool is_out(const left_out *out, const pl_sample *sample);
static planc_status fit(const pl_samples *all, const left_out *out_of, planc_model *model);
static const pl_model_group *find_group(const planc_model *model, const pl_sample *sample);
static int64_t relative_ppm(int64_t predicted, int64_t measured);
static int64_t quantile(numbers *of, int percent);
static planc_status judge_repeats(const pl_samples *all, planc_fit_report *report);
static int32_t find_same(const planc_fit_case *cases, int32_t of);

planc_status planc_model_fit(const planc_profile *base, const planc_fit_case *cases, int32_t n_cases, planc_model **out,
                             planc_fit_report *report) {
  *out = NULL;
  *report = (planc_fit_report){0};
  planc_model *model = calloc(1, sizeof *model);
  if (!model) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  pl_samples all = {0};
  planc_status status = NULL;
  int32_t n_graphs = 0;
  for (int32_t c = 0; !status && c < n_cases; c++) {
    int32_t graph = find_same(cases, c);
    n_graphs += graph == c;
    status = pl_samples_collect(base, &cases[c], graph, &all);
  }
  pl_samples_sort(&all);
  report->n_graphs = n_graphs;
  if (!status) status = fit_and_judge(&all, n_cases, model, report);
  VEC_FREE(&all);
  if (status) {
    planc_model_free(model);
    return status;
  }
  *out = model;
  return NULL;
}

static planc_status fit_and_judge(const pl_samples *all, int32_t n_cases, planc_model *model,
                                  planc_fit_report *report) {
  if (all->len == 0) return planc_error(PLANC_BAD_INPUT, "the profiles have no measured times");
  report->n_times = all->len;
  PLANC_TRY(judge_repeats(all, report));
  PLANC_TRY(judge(all, (left_out){.kind = OUT_FOLD}, PL_FOLDS, &report->ops));
  if (report->n_graphs > 1) PLANC_TRY(judge(all, (left_out){.kind = OUT_GRAPH}, n_cases, &report->graphs));
  PLANC_TRY(fit(all, &(left_out){.kind = OUT_NOTHING}, model));
  report->n_groups = model->n_groups;
  return NULL;
}

static planc_status judge(const pl_samples *all, left_out out_of, int32_t n, planc_fit_error *out) {
  judging j = {.error = out};
  planc_status status = NULL;
  for (out_of.index = 0; !status && out_of.index < n; out_of.index++) status = judge_without(all, &out_of, &j);
  out->n = j.model.len;
  out->median_ppm = quantile(&j.model, 50);
  out->p90_ppm = quantile(&j.model, 90);
  out->roofline_median_ppm = quantile(&j.roofline, 50);
  VEC_FREE(&j.model);
  VEC_FREE(&j.roofline);
  return status;
}

static planc_status judge_without(const pl_samples *all, const left_out *out_of, judging *j) {
  planc_model model = {0};
  planc_status status = fit(all, out_of, &model);
  for (int64_t s = 0; !status && s < all->len; s++) {
    const pl_sample *sample = &all->data[s];
    if (!is_out(out_of, sample)) continue;
    const pl_model_group *group = find_group(&model, sample);
    j->error->n_unknown += !group;
    if (!group) continue;
    int64_t roofline_ns = pl_exp2_fixed(sample->features.at[PL_FEATURE_roofline]);
    status = VEC_RESERVE(&j->model, j->model.len + 1);
    if (!status) status = VEC_RESERVE(&j->roofline, j->roofline.len + 1);
    if (status) break;
    int64_t time_ns = pl_model_variant(group, &sample->features).time_ns;
    j->model.data[j->model.len++] = relative_ppm(time_ns, sample->time_ns);
    j->roofline.data[j->roofline.len++] = relative_ppm(roofline_ns, sample->time_ns);
  }
  pl_arena_free(&model.arena);
  return status;
}

static bool is_out(const left_out *out, const pl_sample *sample) {
  return (out->kind == OUT_FOLD && sample->fold == out->index) ||
         (out->kind == OUT_GRAPH && sample->graph == out->index);
}

/* --- Groups ------------------------------------------------------------------------------------------------------- */

static planc_status fit_group(const pl_samples *all, int64_t from, int64_t to, const left_out *out_of,
                              planc_model *model, pl_model_group *group);
static void thin_out(pl_model_group *group, pl_model_sample *samples);
static int64_t merge_shape(const pl_samples *all, int64_t from, const left_out *out_of, pl_model_sample *out,
                           int64_t *out_n);
static void fit_line(pl_model_group *group, pl_model_sample *samples);

/* Fills an empty model. */
static planc_status fit(const pl_samples *all, const left_out *out_of, planc_model *model) {
  VEC(pl_model_group) groups = {0};
  planc_status status = NULL;
  for (int64_t from = 0, to; !status && from < all->len; from = to) {
    for (to = from + 1; to < all->len && pl_samples_same_group(&all->data[from], &all->data[to]);) to++;
    status = VEC_RESERVE(&groups, groups.len + 1);
    if (!status) status = fit_group(all, from, to, out_of, model, &groups.data[groups.len]);
    if (!status) groups.len += groups.data[groups.len].n_samples > 0;
  }
  pl_model_group *kept = NULL;
  if (!status && groups.len > PL_MODEL_MAX_GROUPS)
    status = planc_error(PLANC_BAD_INPUT, "more than %d types and algorithms", PL_MODEL_MAX_GROUPS);
  if (!status) status = PL_NEW(&model->arena, &kept, groups.len);
  if (!status && groups.len > 0) memcpy(kept, groups.data, (size_t)groups.len * sizeof *kept);
  model->groups = kept;
  model->n_groups = (int32_t)groups.len;
  VEC_FREE(&groups);
  return status;
}

/* One group from the samples at [from, to). */
static planc_status fit_group(const pl_samples *all, int64_t from, int64_t to, const left_out *out_of,
                              planc_model *model, pl_model_group *group) {
  const pl_sample *first = &all->data[from];
  pl_model_sample *samples;
  *group = (pl_model_group){.deterministic = true};
  PLANC_TRY(PL_NEW(&model->arena, &samples, to - from));
  for (int64_t s = from, n; s < to;) {
    s = merge_shape(all, s, out_of, &samples[group->n_samples], &n);
    group->n_samples += n > 0;
  }
  for (int64_t s = from; s < to; s++) group->deterministic &= all->data[s].deterministic;
  if (group->n_samples == 0) return NULL;
  PLANC_TRY(pl_arena_strndup(&model->arena, first->type, strlen(first->type), &group->type));
  PLANC_TRY(pl_arena_strndup(&model->arena, first->algorithm, strlen(first->algorithm), &group->algorithm));
  thin_out(group, samples);
  group->samples = samples;
  fit_line(group, samples);
  return NULL;
}

/* Of more shapes than a model holds those in between are left out, evenly. */
static void thin_out(pl_model_group *group, pl_model_sample *samples) {
  int32_t n = group->n_samples;
  if (n <= PL_MODEL_MAX_SAMPLES) return;
  for (int32_t s = 0; s < PL_MODEL_MAX_SAMPLES; s++) samples[s] = samples[pl_muldiv_floor(s, n, PL_MODEL_MAX_SAMPLES)];
  group->n_samples = PL_MODEL_MAX_SAMPLES;
}

/* --- Shapes ------------------------------------------------------------------------------------------------------- */

/* The samples of one shape as one: the mean of their logarithms, the most of their workspaces and busy shares. Gives
 * the index behind them; out->residual is the logarithm of time over roofline, *out_n how many there were. */
static int64_t merge_shape(const pl_samples *all, int64_t from, const left_out *out_of, pl_model_sample *out,
                           int64_t *out_n) {
  const pl_sample *first = &all->data[from];
  *out = (pl_model_sample){.features = first->features};
  *out_n = 0;
  int64_t sum = 0, s = from;
  for (; s < all->len && pl_samples_same_shape(first, &all->data[s]); s++) {
    const pl_sample *sample = &all->data[s];
    if (is_out(out_of, sample)) continue;
    sum += pl_log2_fixed(sample->time_ns) - sample->features.at[PL_FEATURE_roofline];
    if (sample->workspace_bytes > out->workspace_bytes) out->workspace_bytes = sample->workspace_bytes;
    if (sample->busy_ppm > out->busy_ppm) out->busy_ppm = sample->busy_ppm;
    ++*out_n;
  }
  if (*out_n > 0) out->residual = sum / *out_n;
  return s;
}

/* --- The line ----------------------------------------------------------------------------------------------------- */

enum { N = PL_N_FEATURES };

/* Sums of products of distances from the means: a symmetric, positive definite system. */
typedef struct normal {
  double matrix[N][N], right[N];
} normal;

static void find_means(pl_model_group *group);
static void add_sample(normal *to, const pl_model_group *group, const pl_model_sample *sample);
static double real(int64_t log);
static void solve(normal *of);
static int64_t fixed(double value, int64_t most);

/* From the samples' times over their rooflines to the line, and what then remains. */
static void fit_line(pl_model_group *group, pl_model_sample *samples) {
  const double penalty = 10.0;
  find_means(group);
  normal system = {0};
  for (int32_t f = 0; f < N; f++) system.matrix[f][f] = penalty;
  for (int32_t s = 0; s < group->n_samples; s++) add_sample(&system, group, &samples[s]);
  solve(&system);
  for (int32_t f = 0; f < N; f++) group->weights[f] = fixed(system.right[f], PL_MODEL_MAX_WEIGHT);
  for (int32_t s = 0; s < group->n_samples; s++)
    samples[s].residual += samples[s].features.at[PL_FEATURE_roofline] - pl_model_line(group, &samples[s].features);
}

static void find_means(pl_model_group *group) {
  int64_t sums[N] = {0}, sum = 0;
  group->low = INT64_MAX, group->high = INT64_MIN;
  for (int32_t s = 0; s < group->n_samples; s++) {
    const pl_model_sample *sample = &group->samples[s];
    for (int32_t f = 0; f < N; f++) sums[f] += sample->features.at[f];
    sum += sample->residual;
    if (sample->residual < group->low) group->low = sample->residual;
    if (sample->residual > group->high) group->high = sample->residual;
  }
  for (int32_t f = 0; f < N; f++) group->mean[f] = sums[f] / group->n_samples;
  group->bias = sum / group->n_samples;
  /* What was seen and a factor of 2 beyond it. */
  group->low -= PL_LOG_ONE;
  group->high += PL_LOG_ONE;
}

static void add_sample(normal *to, const pl_model_group *group, const pl_model_sample *sample) {
  double from_mean[N];
  for (int32_t f = 0; f < N; f++) from_mean[f] = real(sample->features.at[f] - group->mean[f]);
  double above = real(sample->residual - group->bias);
  for (int32_t f = 0; f < N; f++) {
    to->right[f] += from_mean[f] * above;
    for (int32_t g = 0; g <= f; g++) to->matrix[f][g] += from_mean[f] * from_mean[g];
  }
}

static double real(int64_t log) {
  return (double)log / PL_LOG_ONE;
}

/* Solves the system by Cholesky's decomposition, in place; the solution is in `right`. */
static void solve(normal *of) {
  for (int32_t f = 0; f < N; f++) {
    for (int32_t g = 0; g <= f; g++) {
      double sum = of->matrix[f][g];
      for (int32_t k = 0; k < g; k++) sum -= of->matrix[f][k] * of->matrix[g][k];
      of->matrix[f][g] = f == g ? sqrt(sum) : sum / of->matrix[g][g];
    }
    for (int32_t k = 0; k < f; k++) of->right[f] -= of->matrix[f][k] * of->right[k];
    of->right[f] /= of->matrix[f][f];
  }
  for (int32_t f = N - 1; f >= 0; f--) {
    for (int32_t k = f + 1; k < N; k++) of->right[f] -= of->matrix[k][f] * of->right[k];
    of->right[f] /= of->matrix[f][f];
  }
}

static int64_t fixed(double value, int64_t most) {
  double scaled = value * PL_LOG_ONE;
  if (!(scaled > -(double)most)) return -most;
  return scaled < (double)most ? (int64_t)floor(scaled + 0.5) : most;
}

/* --- Judging ------------------------------------------------------------------------------------------------------ */

static const pl_model_group *find_group(const planc_model *model, const pl_sample *sample) {
  int32_t count, first = pl_model_groups_of(model, sample->type, &count);
  for (int32_t g = first; g < first + count; g++)
    if (strcmp(model->groups[g].algorithm, sample->algorithm) == 0) return &model->groups[g];
  return NULL;
}

static int64_t relative_ppm(int64_t predicted, int64_t measured) {
  return pl_muldiv_floor(llabs(predicted - measured), PL_PPM, measured);
}

/* The value below which `percent` of the numbers lie. */
static int64_t quantile(numbers *of, int percent) {
  if (of->len == 0) return 0;
  qsort(of->data, (size_t)of->len, sizeof *of->data, pl_ascending);
  return of->data[(of->len - 1) * percent / 100];
}

/* The distances of times from the median of the other times of their shape; a shape's times stand in ascending order.
 */
static planc_status add_repeats(const pl_samples *all, numbers *out) {
  for (int64_t from = 0, to; from < all->len; from = to) {
    for (to = from + 1; to < all->len && pl_samples_same_shape(&all->data[from], &all->data[to]);) to++;
    for (int64_t s = from; s < to && to - from > 1; s++) {
      int64_t middle = from + (to - from - 1) / 2;
      const pl_sample *other = &all->data[middle < s ? middle : middle + 1];
      VEC_PUSH(out, relative_ppm(other->time_ns, all->data[s].time_ns));
    }
  }
  return NULL;
}

static planc_status judge_repeats(const pl_samples *all, planc_fit_report *report) {
  numbers apart = {0};
  planc_status status = add_repeats(all, &apart);
  report->n_repeated = apart.len;
  report->repeat_median_ppm = quantile(&apart, 50);
  VEC_FREE(&apart);
  return status;
}

/* --- Cases of one graph ------------------------------------------------------------------------------------------- */

/* The first case of the same graph: what was measured of one graph twice is left out together. */
static int32_t find_same(const planc_fit_case *cases, int32_t of) {
  int32_t c = 0;
  while (!planc_graph_equal(cases[c].graph, cases[of].graph)) c++;
  return c;
}
