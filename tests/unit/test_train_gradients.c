/* Derived gradients against finite differences of the loss, on random graphs full of views, in-place ops and branches.
 * A small machine runs them in double precision. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/forward.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

/* The machine, at batch 2. What was never written is NaN. */
enum { BATCH = 2, WIDTH = 4, CLASSES = 3 };

typedef struct machine {
  const planc_graph *graph;
  double **storages;
} machine;

typedef struct view {
  double *at;
  int64_t size, columns; /* elements; of the last dimension */
} view;

static view view_of(const machine *m, int32_t index) {
  const planc_tensor *t = &m->graph->tensors[index];
  int64_t unit = planc_dtype_bytes(t->dtype);
  return (view){m->storages[t->storage] + planc_law_at(t->offset, BATCH) / unit, planc_law_at(t->bytes, BATCH) / unit,
                t->rank ? planc_law_at(t->dims[t->rank - 1], BATCH) : 1};
}

/* c[i][j] (+)= sum over k of a[i][k] * b[k][j], by strides. */
static void product(double *c, int64_t rows, int64_t columns, int64_t inner, const double *a, int64_t ai, int64_t ak,
                    const double *b, int64_t bk, int64_t bj) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) {
      double sum = 0;
      for (int64_t k = 0; k < inner; k++) sum += a[i * ai + k * ak] * b[k * bk + j * bj];
      c[i * columns + j] = sum;
    }
}

static void run_xent(view logits, view labels, view loss, view probs) {
  loss.at[0] = 0;
  for (int64_t n = 0; n < BATCH; n++) {
    double total = 0;
    for (int64_t c = 0; c < CLASSES; c++) total += exp(logits.at[n * CLASSES + c]);
    for (int64_t c = 0; c < CLASSES; c++) probs.at[n * CLASSES + c] = exp(logits.at[n * CLASSES + c]) / total;
    loss.at[0] -= log(probs.at[n * CLASSES + (int64_t)labels.at[n]]) / BATCH;
  }
}

static void run_split(view x, const view *parts, int32_t n_parts) {
  for (int64_t row = 0; row < x.size / x.columns; row++)
    for (int64_t k = 0, column = 0; k < n_parts; column += parts[k++].columns)
      for (int64_t c = 0; c < parts[k].columns; c++)
        parts[k].at[row * parts[k].columns + c] = x.at[row * x.columns + column + c];
}

static void run_op(const machine *m, const planc_op *o) {
  view in[3], out[2];
  for (int32_t i = 0; i < 3; i++) in[i] = view_of(m, o->in[i < o->n_in ? i : 0]);
  for (int32_t i = 0; i < 2; i++) out[i] = view_of(m, o->out[i < o->n_out ? i : 0]);
  double *a = in[0].at, *b = in[1].at, *y = out[0].at;
  int64_t n = out[0].size;
  if (!strcmp(o->type, "relu")) {
    for (int64_t i = 0; i < n; i++) y[i] = a[i] > 0 ? a[i] : a[i] * 0;
  } else if (!strcmp(o->type, "relu_grad")) {
    for (int64_t i = 0; i < n; i++) y[i] = a[i] > 0 ? b[i] : a[i] * b[i] * 0;
  } else if (!strcmp(o->type, "dropout") || !strcmp(o->type, "dropout_grad")) {
    for (int64_t i = 0; i < n; i++) y[i] = a[i] * (double)((i * 7 + planc_op_int(o, "seed", 0, 0)) % 3);
  } else if (!strcmp(o->type, "bias")) {
    for (int64_t i = 0; i < n; i++) y[i] = a[i] + b[i % in[1].size];
  } else if (!strcmp(o->type, "bias_grad") || !strcmp(o->type, "linear_bgrad")) {
    for (int64_t i = 0; i < n; i++) y[i] = 0;
    for (int64_t i = 0; i < in[0].size; i++) y[i % n] += a[i];
  } else if (!strcmp(o->type, "add")) {
    for (int64_t i = 0; i < n; i++) y[i] = a[i] + b[i];
  } else if (!strcmp(o->type, "mul")) {
    for (int64_t i = 0; i < n; i++) y[i] = a[i] * b[i];
  } else if (!strcmp(o->type, "sigmoid")) {
    for (int64_t i = 0; i < n; i++) y[i] = 1 / (1 + exp(-a[i]));
  } else if (!strcmp(o->type, "sigmoid_grad")) {
    for (int64_t i = 0; i < n; i++) y[i] = a[i] * (1 - a[i]) * b[i];
  } else if (!strcmp(o->type, "tanh")) {
    for (int64_t i = 0; i < n; i++) y[i] = tanh(a[i]);
  } else if (!strcmp(o->type, "tanh_grad")) {
    for (int64_t i = 0; i < n; i++) y[i] = (1 - a[i] * a[i]) * b[i];
  } else if (!strcmp(o->type, "affine") || !strcmp(o->type, "affine_grad")) {
    double shift = !strcmp(o->type, "affine") ? planc_op_real(o, "shift", 0) : 0;
    for (int64_t i = 0; i < n; i++) y[i] = planc_op_real(o, "scale", 1) * a[i] + shift;
  } else if (!strcmp(o->type, "split")) {
    run_split(in[0], out, o->n_out);
  } else if (!strcmp(o->type, "cast")) {
    for (int64_t i = 0; i < n; i++) y[i] = a[i];
  } else if (!strcmp(o->type, "linear")) {
    product(y, n / out[0].columns, out[0].columns, in[0].columns, a, in[0].columns, 1, b, 1, in[1].columns);
    for (int64_t i = 0; i < n && o->n_in == 3; i++) y[i] += in[2].at[i % in[2].size];
  } else if (!strcmp(o->type, "linear_dgrad")) {
    product(y, n / out[0].columns, out[0].columns, in[1].columns, b, in[1].columns, 1, a, in[0].columns, 1);
  } else if (!strcmp(o->type, "linear_wgrad")) {
    product(y, in[1].columns, in[0].columns, in[0].size / in[0].columns, b, 1, in[1].columns, a, in[0].columns, 1);
  } else if (!strcmp(o->type, "concat")) {
    for (int64_t i = 0; i < n; i++) {
      int64_t row = i / out[0].columns, column = i % out[0].columns;
      y[i] = column < in[0].columns ? a[row * in[0].columns + column] : b[row * in[1].columns + column - in[0].columns];
    }
  } else if (!strcmp(o->type, "concat_grad")) {
    int64_t axis = planc_op_int(o, "axis", 0, 0), offset = planc_op_int(o, "offset", 0, 0);
    for (int64_t i = 0; i < n; i++)
      y[i] = axis ? a[i / out[0].columns * in[0].columns + offset + i % out[0].columns] : a[i + offset];
  } else if (!strcmp(o->type, "softmax_xent")) {
    run_xent(in[0], in[1], out[0], out[1]);
  } else if (!strcmp(o->type, "softmax_xent_grad")) {
    for (int64_t i = 0; i < n; i++) y[i] = (a[i] - (b[i / CLASSES] == (double)(i % CLASSES))) / BATCH;
  } else {
    ck_abort_msg("no machine for %s", o->type);
  }
}

static int64_t size_of(const planc_graph *g, int32_t storage) {
  const planc_storage *s = &g->storages[storage];
  return planc_law_at(s->bytes, BATCH) / planc_dtype_bytes(g->tensors[s->tensor].dtype);
}

/* Runs forward and backward from given params and inputs; the loss. */
static double run(const machine *m, double *const *given) {
  const planc_graph *g = m->graph;
  for (int32_t i = 0; i < g->n_storages; i++) {
    bool exists = planc_kind_exists_before(g->storages[i].kind);
    for (int64_t k = 0; k < size_of(g, i); k++) m->storages[i][k] = exists ? given[i][k] : NAN;
  }
  for (int32_t i = 0; i < g->n_ops; i++)
    if (g->ops[i].phase != PLANC_PHASE_optimizer) run_op(m, &g->ops[i]);
  return view_of(m, g->loss).at[0];
}

static double **make_storages(const planc_graph *g, uint64_t *seed) {
  double **storages = calloc((size_t)g->n_storages, sizeof *storages);
  if (!storages) abort();
  for (int32_t i = 0; i < g->n_storages; i++) {
    planc_dtype dtype = g->tensors[g->storages[i].tensor].dtype;
    storages[i] = calloc((size_t)size_of(g, i), sizeof **storages);
    if (!storages[i]) abort();
    for (int64_t k = 0; k < size_of(g, i); k++)
      storages[i][k] =
          dtype == PLANC_DTYPE_i64 ? (double)rand_below(seed, CLASSES) : (double)rand_below(seed, 2000001) / 1e6 - 1;
  }
  return storages;
}

static void free_storages(const planc_graph *g, double **storages) {
  for (int32_t i = 0; i < g->n_storages; i++) free(storages[i]);
  free(storages);
}

static int32_t gradient_of(const planc_graph *g, int32_t param) {
  for (int32_t i = 0; i < g->n_ops; i++)
    if (g->ops[i].phase == PLANC_PHASE_optimizer && g->ops[i].in[0] == param) return g->ops[i].in[1];
  return -1;
}

/* Every parameter's gradient against the central difference of the loss; one that gets none must not matter. */
static void assert_gradients(const planc_graph *g, uint64_t *seed) {
  const double step = 1e-5;
  double **given = make_storages(g, seed), **work = make_storages(g, seed), **gradients = make_storages(g, seed);
  machine m = {g, work};
  (void)run(&(machine){g, gradients}, given);
  for (int32_t i = 0; i < g->n_storages; i++) {
    if (g->storages[i].kind != PLANC_KIND_param) continue;
    int32_t gradient = gradient_of(g, g->storages[i].tensor);
    for (int64_t k = 0; k < size_of(g, i); k++) {
      double value = given[i][k];
      given[i][k] = value + step;
      double above = run(&m, given);
      given[i][k] = value - step;
      double below = run(&m, given);
      given[i][k] = value;
      double expected = (above - below) / (2 * step);
      double derived = gradient < 0 ? 0 : gradients[g->tensors[gradient].storage][k];
      ck_assert_msg(fabs(derived - expected) <= 1e-6 + 1e-4 * fabs(expected), "%s[%d]: %g, expected %g",
                    g->tensors[g->storages[i].tensor].name, (int)k, derived, expected);
    }
  }
  free_storages(g, given);
  free_storages(g, work);
  free_storages(g, gradients);
}

/* What random ops can work on: tensors of WIDTH numbers for every sample, or for every sample twice. */
typedef struct pool {
  char names[256][24];
  bool twice[256];
  int32_t count, made;
  uint64_t seed;
} pool;

static const char *add_to_pool(pool *p, bool twice, const char *of, bool second_half) {
  char spec[96], *name = p->names[p->count];
  (void)snprintf(name, sizeof p->names[0], "t%d", p->made++);
  (void)snprintf(spec, sizeof spec, "f32[%s,%d]%s%s%s", twice ? "2N" : "N", WIDTH, of ? " of " : "", of ? of : "",
                 second_half ? " @ 16N" : "");
  forward_tensor(name, spec);
  p->twice[p->count++] = twice;
  return name;
}

static int32_t pick(pool *p, bool twice) {
  for (;;) {
    int32_t i = (int32_t)rand_below(&p->seed, p->count);
    if (p->twice[i] == twice) return i;
  }
}

static void add_linear(pool *p, const char *x, const char *y, int inner, int outer) {
  char name[24], w[32], b[32], in[160], spec[64];
  (void)snprintf(name, sizeof name, "l%d", p->made++);
  /* Sometimes the first weight is used again. */
  bool shared = inner == WIDTH && outer == WIDTH && rand_chance(&p->seed, 30);
  (void)snprintf(w, sizeof w, "%s.w", shared ? "shared" : name);
  (void)snprintf(b, sizeof b, "%s.b", name);
  (void)snprintf(spec, sizeof spec, "param f32[%d,%d]", outer, inner);
  if (!shared) forward_tensor(w, spec);
  (void)snprintf(spec, sizeof spec, "param f32[%d]", outer);
  forward_tensor(b, spec);
  (void)snprintf(in, sizeof in, "%s %s %s", x, w, rand_chance(&p->seed, 50) ? b : "");
  forward_op(name, "linear", in, y, "");
}

/* An op on single elements of tensors of the pool, sometimes in place. */
static void add_elementwise(pool *p) {
  bool twice = rand_chance(&p->seed, 30), in_place = rand_chance(&p->seed, 30);
  int32_t x = pick(p, twice), other = pick(p, twice);
  char name[24], in[96], attrs[48];
  (void)snprintf(name, sizeof name, "e%d", p->made++);
  int64_t which = rand_below(&p->seed, 8);
  if (which == 3 && x == other) in_place = false;
  if (which == 4)
    in_place = x != other && rand_chance(&p->seed, 5); /* mostly refused: the gradient needs the factors */
  /* In place under the same name, so that tensors keep naming what they hold. */
  const char *y = in_place ? p->names[x] : add_to_pool(p, twice, NULL, false);
  if (which == 0) {
    forward_op(name, "relu", p->names[x], y, "");
  } else if (which == 1) {
    (void)snprintf(attrs, sizeof attrs, "p=0.5 seed=%d", p->made);
    forward_op(name, "dropout", p->names[x], y, attrs);
  } else if (which == 2) {
    char b[32];
    (void)snprintf(b, sizeof b, "%s.b", name);
    forward_tensor(b, "param f32[4]");
    (void)snprintf(in, sizeof in, "%s %s", p->names[x], b);
    forward_op(name, "bias", in, y, "");
  } else if (which <= 4) {
    (void)snprintf(in, sizeof in, "%s %s", p->names[x], p->names[other]);
    forward_op(name, which == 3 ? "add" : "mul", in, y, "");
  } else if (which <= 6) {
    forward_op(name, which == 5 ? "sigmoid" : "tanh", p->names[x], y, "");
  } else {
    forward_op(name, "affine", p->names[x], y, "scale=-0.5 shift=1.5");
  }
}

static void add_random_op(pool *p) {
  char in[96], name[24], c[24];
  switch (rand_below(&p->seed, 8)) {
    case 0: { /* a layer */
      bool twice = rand_chance(&p->seed, 30);
      const char *x = p->names[pick(p, twice)];
      add_linear(p, x, add_to_pool(p, twice, NULL, false), WIDTH, WIDTH);
      break;
    }
    case 1: { /* two parts made apart, seen as one */
      const char *x = p->names[pick(p, false)], *x1 = p->names[pick(p, false)];
      const char *both = add_to_pool(p, true, NULL, false);
      const char *first = add_to_pool(p, false, both, false), *second = add_to_pool(p, false, both, true);
      add_linear(p, x, first, WIDTH, WIDTH);
      add_linear(p, x1, second, WIDTH, WIDTH);
      break;
    }
    case 2: { /* one made, seen as two parts */
      const char *x = p->names[pick(p, true)], *both = add_to_pool(p, true, NULL, false);
      add_linear(p, x, both, WIDTH, WIDTH);
      (void)add_to_pool(p, false, both, false);
      (void)add_to_pool(p, false, both, true);
      break;
    }
    case 3: { /* concat, then back to the width */
      const char *x = p->names[pick(p, false)], *x1 = p->names[pick(p, false)];
      (void)snprintf(name, sizeof name, "cat%d", p->made);
      (void)snprintf(c, sizeof c, "c%d", p->made++);
      forward_tensor(c, "f32[N,8]");
      (void)snprintf(in, sizeof in, "%s %s", x, x1);
      forward_op(name, "concat", in, c, "axis=1");
      add_linear(p, c, add_to_pool(p, false, NULL, false), 2 * WIDTH, WIDTH);
      break;
    }
    case 4: { /* twice the width, cut in two */
      const char *x = p->names[pick(p, false)];
      (void)snprintf(name, sizeof name, "cut%d", p->made);
      (void)snprintf(c, sizeof c, "c%d", p->made++);
      forward_tensor(c, "f32[N,8]");
      add_linear(p, x, c, WIDTH, 2 * WIDTH);
      const char *first = add_to_pool(p, false, NULL, false), *second = add_to_pool(p, false, NULL, false);
      (void)snprintf(in, sizeof in, "%s %s", first, second);
      forward_op(name, "split", c, in, "axis=1");
      (void)snprintf(name, sizeof name, "both%d", p->made);
      if (rand_chance(&p->seed, 70)) forward_op(name, "mul", in, add_to_pool(p, false, NULL, false), "");
      break;
    }
    default:
      add_elementwise(p);
  }
}

static planc_graph *random_forward(uint64_t seed) {
  pool p = {.seed = seed};
  forward_begin();
  forward_tensor("x", "input f32[N,4]");
  forward_tensor("x2", "input f32[2N,4]");
  forward_tensor("shared.w", "param f32[4,4]");
  add_linear(&p, "x", add_to_pool(&p, false, NULL, false), WIDTH, WIDTH);
  add_linear(&p, "x2", add_to_pool(&p, true, NULL, false), WIDTH, WIDTH);
  for (int64_t left = rand_below(&p.seed, 24); left > 0; left--) add_random_op(&p);
  const char *last = p.names[pick(&p, false)];
  for (int i = 0; i < 3; i++) {
    char name[24], in[96];
    (void)snprintf(name, sizeof name, "last%d", i);
    (void)snprintf(in, sizeof in, "%s %s", last, p.names[pick(&p, false)]);
    last = add_to_pool(&p, false, NULL, false);
    forward_op(name, "add", in, last, "");
  }
  forward_classifier(last, WIDTH);
  return forward_finish();
}

START_TEST(gradients_match_finite_differences) {
  int derived = 0, refused = 0;
  for (uint64_t seed = 1; seed <= 2000; seed++) {
    uint64_t state = seed;
    planc_graph *forward = random_forward(seed), *g, *again;
    planc_status status = planc_graph_train(forward, PLANC_SGD, &g);
    if (status) {
      /* Only for what is gone, or for views that have gradients apart, never for want of a rule. */
      const char *message = planc_status_message(status);
      bool expected = strstr(message, "overwrites") || strstr(message, "only part of") ||
                      strstr(message, "overlaps in part") || strstr(message, "does not lead to the loss, as others do");
      ck_assert_msg(expected, "seed %d: %s", (int)seed, message);
      planc_status_free(status);
      refused++;
    } else {
      assert_gradients(g, &state);
      ok(planc_graph_train(forward, PLANC_SGD, &again));
      ck_assert_uint_eq(planc_graph_hash(g), planc_graph_hash(again));
      planc_graph_free(again);
      planc_graph_free(g);
      derived++;
    }
    planc_graph_free(forward);
  }
  ck_assert_int_gt(derived, 500);
  ck_assert_int_gt(refused, 100);
}
END_TEST

/* Without rounding a graph in mixed precision has the gradients of the one it was made from: the machine computes in
 * double whatever a tensor's type says. */
static void assert_equal_gradients(const planc_graph *g, const planc_graph *mixed, uint64_t *seed) {
  double **given = make_storages(g, seed), **work = make_storages(g, seed), **mixed_work = make_storages(mixed, seed);
  double loss = run(&(machine){g, work}, given), mixed_loss = run(&(machine){mixed, mixed_work}, given);
  ck_assert_double_eq(loss, mixed_loss);
  for (int32_t i = 0; i < g->n_storages; i++) {
    if (g->storages[i].kind != PLANC_KIND_param) continue;
    int32_t gradient = gradient_of(g, g->storages[i].tensor), same = gradient_of(mixed, g->storages[i].tensor);
    ck_assert_int_eq(gradient < 0, same < 0);
    for (int64_t k = 0; gradient >= 0 && k < size_of(g, i); k++) {
      double expected = work[g->tensors[gradient].storage][k], derived = mixed_work[mixed->tensors[same].storage][k];
      ck_assert_msg(fabs(derived - expected) <= 1e-12 * (1 + fabs(expected)), "%s[%d]: %g, expected %g",
                    g->tensors[g->storages[i].tensor].name, (int)k, derived, expected);
    }
  }
  free_storages(g, given);
  free_storages(g, work);
  free_storages(mixed, mixed_work);
}

START_TEST(mixed_precision_changes_no_gradient) {
  int derived = 0, casts = 0;
  for (uint64_t seed = 1; seed <= 800; seed++) {
    uint64_t state = seed;
    planc_graph *forward = random_forward(seed), *converted, *g, *mixed;
    ok(planc_graph_convert(forward, PLANC_BF16, &converted));
    planc_status status = planc_graph_train(forward, PLANC_SGD, &g), other;
    other = planc_graph_train(converted, PLANC_SGD, &mixed);
    ck_assert_int_eq(planc_status_code(status), planc_status_code(other));
    if (!status) {
      assert_equal_gradients(g, mixed, &state);
      for (int32_t i = 0; i < mixed->n_ops; i++) casts += !strcmp(mixed->ops[i].type, "cast");
      derived++;
    }
    planc_status_free(status);
    planc_status_free(other);
    planc_graph_free(g);
    planc_graph_free(mixed);
    planc_graph_free(converted);
    planc_graph_free(forward);
  }
  ck_assert_int_gt(derived, 250);
  ck_assert_int_gt(casts, 1000);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("train_gradients");
  TCase *tests = tcase_create("all");
  tcase_set_timeout(tests, 120);
  tcase_add_test(tests, gradients_match_finite_differences);
  tcase_add_test(tests, mixed_precision_changes_no_gradient);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
