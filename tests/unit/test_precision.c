/* Graphs put in another precision: their text, what stays as it is, how large they become, and that they train. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/graphtext.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

static planc_graph *converted(const planc_graph *forward, planc_precision precision) {
  planc_graph *graph;
  ok(planc_graph_convert(forward, precision, &graph));
  return graph;
}

static void assert_converted(const char *text, planc_precision precision, const char *expected) {
  planc_graph *forward = graph_of(text), *graph = converted(forward, precision);
  char *got = text_of(graph);
  ck_assert_str_eq(got, expected);
  free(got);
  planc_graph_free(graph);
  planc_graph_free(forward);
}

/* --- What becomes bf16 -------------------------------------------------------------------------------------------- */

/* One copy of a weight for all its readers; views and results in place; statistics, probabilities, losses and their
 * sums stay; a name that is taken gets a number; FLOPs that the file states are kept. */
START_TEST(known_ops) {
  assert_converted(
      "planc-graph: 1\nname: heads\nloss: loss\noutputs: [probs2]\n"
      "tensors:\n  x: input f32[N,4]\n  labels: input i64[N]\n  w: param f32[4,4]\n  b: param f32[4]\n"
      "  w.bf16: f32[N,4]\n  both: f32[2N,4]\n  first: f32[N,4] of both\n"
      "  second: f32[N,4] of both @ 16N\n  n: f32[N,4]\n  gamma: param f32[4]\n  beta: param f32[4]\n"
      "  mean: f32[4]\n  invstd: f32[4]\n  rm: state f32[4]\n  rv: state f32[4]\n"
      "  loss1: f32[]\n  probs1: f32[N,4]\n  loss2: f32[]\n  probs2: f32[N,4]\n  sum: f32[]\n"
      "  loss: f32[]\n  loss3: f32[]\n  probs3: f32[N,4]\nops:\n"
      "  - {op: in, type: relu, in: [x], out: [w.bf16]}\n"
      "  - {op: w.bf16.2, type: linear, in: [w.bf16, w, b], out: [first], flops: 77N}\n"
      "  - {op: l2, type: linear, in: [first, w, b], out: [second]}\n"
      "  - {op: n, type: batchnorm, in: [second, gamma, beta], out: [n, mean, invstd], effects: [rm, rv]}\n"
      "  - {op: r, type: relu, in: [n], out: [n]}\n"
      "  - {op: one, type: softmax_xent, in: [n, labels], out: [loss1, probs1]}\n"
      "  - {op: two, type: softmax_xent, in: [first, labels], out: [loss2, probs2]}\n"
      "  - {op: three, type: softmax_xent, in: [x, labels], out: [loss3, probs3]}\n"
      "  - {op: sum, type: add, in: [loss1, loss2], out: [sum]}\n"
      "  - {op: loss, type: add, in: [sum, loss3], out: [loss]}\n",
      PLANC_BF16,
      "planc-graph: 1\nname: heads\nloss: loss\noutputs: [probs2]\ntensors:\n  x: input f32[N,4]\n"
      "  labels: input i64[N]\n  w: param f32[4,4]\n  b: param f32[4]\n  w.bf16: bf16[N,4]\n"
      "  both: bf16[2N,4]\n  first: bf16[N,4] of both\n  second: bf16[N,4] of both @ 8N\n"
      "  n: bf16[N,4]\n  gamma: param f32[4]\n  beta: param f32[4]\n  mean: f32[4]\n  invstd: f32[4]\n"
      "  rm: state f32[4]\n  rv: state f32[4]\n  loss1: f32[]\n  probs1: f32[N,4]\n  loss2: f32[]\n"
      "  probs2: f32[N,4]\n  sum: f32[]\n  loss: f32[]\n  loss3: f32[]\n  probs3: f32[N,4]\n"
      "  x.bf16: bf16[N,4]\n  w.bf16.3: bf16[4,4]\nops:\n"
      "  - {op: x.bf16, type: cast, in: [x], out: [x.bf16]}\n"
      "  - {op: in, type: relu, in: [x.bf16], out: [w.bf16]}\n"
      "  - {op: w.bf16.3, type: cast, in: [w], out: [w.bf16.3]}\n"
      "  - {op: w.bf16.2, type: linear, in: [w.bf16, w.bf16.3, b], out: [first], flops: 77N}\n"
      "  - {op: l2, type: linear, in: [first, w.bf16.3, b], out: [second]}\n"
      "  - {op: n, type: batchnorm, in: [second, gamma, beta], out: [n, mean, invstd], effects: [rm, rv]}\n"
      "  - {op: r, type: relu, in: [n], out: [n]}\n"
      "  - {op: one, type: softmax_xent, in: [n, labels], out: [loss1, probs1]}\n"
      "  - {op: two, type: softmax_xent, in: [first, labels], out: [loss2, probs2]}\n"
      "  - {op: three, type: softmax_xent, in: [x, labels], out: [loss3, probs3]}\n"
      "  - {op: sum, type: add, in: [loss1, loss2], out: [sum]}\n"
      "  - {op: loss, type: add, in: [sum, loss3], out: [loss]}\n");
}
END_TEST

/* Ops of unknown type read and write f32; what lies in their storages is f32 for all, and copies of what is written
 * later are made again. */
START_TEST(unknown_ops) {
  assert_converted(
      "planc-graph: 1\nname: islands\noutputs: [z]\ntensors:\n"
      "  x: input f32[N,4]\n  u: param f32[4]\n  a: f32[N,4]\n  i: f32[N,4]\n  c: f32[N,4]\n"
      "  d: f32[N,4]\n  e: f32[N,4]\n  k: i32[N]\n  w: param f32[4,4]\n  z: f32[N,4]\nops:\n"
      "  - {op: a, type: gelu, in: [x], out: [a]}\n"
      "  - {op: i, type: my.op, in: [a, u, x], out: [i, k], loop: l, step: 2}\n"
      "  - {op: c, type: linear, in: [i, w], out: [c]}\n"
      "  - {op: r, type: relu, in: [i], out: [i]}\n"
      "  - {op: e, type: gelu, in: [i], out: [e]}\n"
      "  - {op: count, type: my.count, in: [a, c], effects: [w]}\n"
      "  - {op: a2, type: relu, in: [a], out: [a]}\n"
      "  - {op: d, type: linear, in: [c, w], out: [d]}\n"
      "  - {op: last, type: my.op, in: [a, d, k], out: [i]}\n"
      "  - {op: z, type: add, in: [i, e], out: [z]}\n",
      PLANC_BF16,
      "planc-graph: 1\nname: islands\noutputs: [z]\ntensors:\n  x: input f32[N,4]\n  u: param f32[4]\n"
      "  a: bf16[N,4]\n  i: f32[N,4]\n  c: bf16[N,4]\n  d: bf16[N,4]\n  e: bf16[N,4]\n  k: i32[N]\n"
      "  w: param f32[4,4]\n  z: bf16[N,4]\n  x.bf16: bf16[N,4]\n  a.f32: f32[N,4]\n"
      "  i.bf16: bf16[N,4]\n  w.bf16: bf16[4,4]\n  i.bf16.2: bf16[N,4]\n  c.f32: f32[N,4]\n"
      "  w.bf16.2: bf16[4,4]\n  a.f32.2: f32[N,4]\n  d.f32: f32[N,4]\n  i.bf16.3: bf16[N,4]\nops:\n"
      "  - {op: x.bf16, type: cast, in: [x], out: [x.bf16]}\n"
      "  - {op: a, type: gelu, in: [x.bf16], out: [a]}\n"
      "  - {op: a.f32, type: cast, in: [a], out: [a.f32], loop: l, step: 2}\n"
      "  - {op: i, type: my.op, in: [a.f32, u, x], out: [i, k], loop: l, step: 2}\n"
      "  - {op: i.bf16, type: cast, in: [i], out: [i.bf16]}\n"
      "  - {op: w.bf16, type: cast, in: [w], out: [w.bf16]}\n"
      "  - {op: c, type: linear, in: [i.bf16, w.bf16], out: [c]}\n"
      "  - {op: r, type: relu, in: [i], out: [i]}\n"
      "  - {op: i.bf16.2, type: cast, in: [i], out: [i.bf16.2]}\n"
      "  - {op: e, type: gelu, in: [i.bf16.2], out: [e]}\n"
      "  - {op: c.f32, type: cast, in: [c], out: [c.f32]}\n"
      "  - {op: count, type: my.count, in: [a.f32, c.f32], effects: [w]}\n"
      "  - {op: a2, type: relu, in: [a], out: [a]}\n"
      "  - {op: w.bf16.2, type: cast, in: [w], out: [w.bf16.2]}\n"
      "  - {op: d, type: linear, in: [c, w.bf16.2], out: [d]}\n"
      "  - {op: a.f32.2, type: cast, in: [a], out: [a.f32.2]}\n"
      "  - {op: d.f32, type: cast, in: [d], out: [d.f32]}\n"
      "  - {op: last, type: my.op, in: [a.f32.2, d.f32, k], out: [i]}\n"
      "  - {op: i.bf16.3, type: cast, in: [i], out: [i.bf16.3]}\n"
      "  - {op: z, type: add, in: [i.bf16.3, e], out: [z]}\n");
}
END_TEST

START_TEST(tf32) {
  assert_converted(
      "planc-graph: 1\nname: g\ntensors:\n  x: input f32[N,4,8,8]\n  w: param f32[4,4,3,3]\n"
      "  y: f32[N,4,8,8]\n  z: f32[N,4,8,8]\n  v: param f32[8,8]\n  s: f32[N,4,8,8]\nops:\n"
      "  - {op: c, type: conv2d, in: [x, w], out: [y], attrs: {pad: [1, 1]}}\n"
      "  - {op: r, type: relu, in: [y], out: [y]}\n"
      "  - {op: l, type: linear, in: [y, v], out: [z], attrs: {tf32: 0}}\n"
      "  - {op: m, type: matmul, in: [y, z], out: [s], attrs: {scale: 2.0}}\n"
      "  - {op: u, type: my.op, in: [s], out: [y]}\n",
      PLANC_TF32,
      "planc-graph: 1\nname: g\ntensors:\n  x: input f32[N,4,8,8]\n  w: param f32[4,4,3,3]\n"
      "  y: f32[N,4,8,8]\n  z: f32[N,4,8,8]\n  v: param f32[8,8]\n  s: f32[N,4,8,8]\nops:\n"
      "  - {op: c, type: conv2d, in: [x, w], out: [y], attrs: {pad: [1, 1], tf32: 1}}\n"
      "  - {op: r, type: relu, in: [y], out: [y]}\n"
      "  - {op: l, type: linear, in: [y, v], out: [z], attrs: {tf32: 0}}\n"
      "  - {op: m, type: matmul, in: [y, z], out: [s], attrs: {scale: 2.0, tf32: 1}}\n"
      "  - {op: u, type: my.op, in: [s], out: [y]}\n");
}
END_TEST

START_TEST(refused) {
  planc_graph *forward, *mixed, *trained, *none;
  planc_precision precision;
  ok(planc_graph_read("graphs/lenet-digits.yaml", &forward));
  mixed = converted(forward, PLANC_BF16);
  ok(planc_graph_train(mixed, PLANC_SGD, &trained));
  assert_fails(planc_graph_convert(mixed, PLANC_BF16, &none), PLANC_BAD_INPUT,
               "precision: graph lenet-digits has its own mixed precision: tensor conv1.y is bf16");
  ck_assert_ptr_null(none);
  assert_fails(planc_graph_convert(trained, PLANC_TF32, &none), PLANC_BAD_INPUT,
               "has backward or optimizer ops already, and a precision is of the forward graph");
  assert_fails(planc_precision_parse("f16", &precision), PLANC_USAGE, "f32, tf32 and bf16 are");
  planc_graph_free(trained);
  planc_graph_free(mixed);
  planc_graph_free(forward);
}
END_TEST

/* --- Any graph ---------------------------------------------------------------------------------------------------- */

/* A graph of unknown ops has nothing to convert, unless it has half precision of its own; f32 is a copy. */
START_TEST(random_graphs) {
  randgraph_options options = {.inference = true, .max_ops = 3};
  int copies = 0;
  for (uint64_t seed = 1; seed <= 2000; seed++) {
    planc_graph *forward, *graph;
    ok(randgraph_make(seed, &options, &forward));
    char *want = text_of(forward);
    bool half = strstr(want, "f16[") != NULL;
    for (int precision = PLANC_F32; precision <= PLANC_BF16; precision++) {
      planc_status status = planc_graph_convert(forward, (planc_precision)precision, &graph);
      ck_assert_int_eq(planc_status_code(status), half && precision == PLANC_BF16 ? PLANC_BAD_INPUT : PLANC_OK);
      planc_status_free(status);
      if (!graph) continue;
      char *got = text_of(graph);
      ck_assert_str_eq(got, want);
      free(got);
      planc_graph_free(graph);
      copies += precision == PLANC_BF16;
    }
    free(want);
    planc_graph_free(forward);
  }
  ck_assert_int_gt(copies, 50);
}
END_TEST

/* --- The models --------------------------------------------------------------------------------------------------- */

static const char *const models[] = {"graphs/lenet-digits.yaml", "graphs/resnet50.yaml", "graphs/vgg16.yaml",
                                     "graphs/fcn.yaml", "graphs/tiny-transformer.yaml"};
enum { N_MODELS = sizeof models / sizeof *models, BATCH = 24 };

static bool is_of(const planc_op *op, const char *type) {
  return strcmp(op->type, type) == 0;
}

/* Results that stay f32, by type. */
static int32_t first_f32_result(const planc_op *op) {
  if (is_of(op, "softmax_xent")) return 0;
  return is_of(op, "batchnorm") || is_of(op, "layernorm") ? 1 : op->n_out;
}

static int64_t activation_bytes(const planc_graph *graph) {
  int64_t sum = 0;
  for (int32_t s = 0; s < graph->n_storages; s++)
    if (graph->storages[s].kind == PLANC_KIND_activation) sum += planc_law_at(graph->storages[s].bytes, BATCH);
  return sum;
}

/* Weights of convolutions, linear layers, embeddings and positions, and images: all that gets a copy, each once. */
static int64_t copied_bytes(const planc_graph *graph) {
  int64_t sum = 0;
  for (int32_t o = 0; o < graph->n_ops; o++) {
    const planc_op *op = &graph->ops[o];
    bool weighs = is_of(op, "conv2d") || is_of(op, "linear") || is_of(op, "embedding") || is_of(op, "position");
    if (weighs) sum += planc_law_at(graph->tensors[op->in[1]].bytes, BATCH);
    const planc_tensor *x = &graph->tensors[op->in[0]];
    if (graph->storages[x->storage].kind == PLANC_KIND_input && x->dtype == PLANC_DTYPE_f32)
      sum += planc_law_at(x->bytes, BATCH);
  }
  return sum;
}

START_TEST(activations_halve) {
  planc_graph *forward, *graph;
  ok(planc_graph_read(models[_i], &forward));
  graph = converted(forward, PLANC_BF16);
  int64_t stays = 0, before = activation_bytes(forward);
  for (int32_t o = 0; o < forward->n_ops; o++)
    for (int32_t i = first_f32_result(&forward->ops[o]); i < forward->ops[o].n_out; i++)
      stays += planc_law_at(forward->tensors[forward->ops[o].out[i]].bytes, BATCH);
  ck_assert_int_eq(activation_bytes(graph), (before - stays) / 2 + stays + copied_bytes(forward) / 2);
  for (int32_t s = 0; s < forward->n_storages; s++) {
    bool halves = forward->storages[s].kind == PLANC_KIND_activation &&
                  graph->tensors[graph->storages[s].tensor].dtype == PLANC_DTYPE_bf16;
    ck_assert_int_eq(graph->storages[s].kind, forward->storages[s].kind);
    ck_assert_int_eq(planc_law_at(graph->storages[s].bytes, BATCH) * (halves ? 2 : 1),
                     planc_law_at(forward->storages[s].bytes, BATCH));
  }
  planc_graph_free(graph);
  planc_graph_free(forward);
}
END_TEST

/* Gradients of parameters, and all that an optimizer touches, are f32; nothing that f32 trains is left out. */
START_TEST(master_weights_train) {
  for (int optimizer = PLANC_SGD; optimizer <= PLANC_ADAM; optimizer++) {
    planc_graph *forward, *graph, *trained, *f32;
    ok(planc_graph_read(models[_i], &forward));
    graph = converted(forward, PLANC_BF16);
    ok(planc_graph_train(graph, (planc_optimizer)optimizer, &trained));
    ok(planc_graph_train(forward, (planc_optimizer)optimizer, &f32));
    int32_t updates = 0;
    for (int32_t o = 0; o < trained->n_ops; o++) {
      const planc_op *op = &trained->ops[o];
      for (int32_t i = 0; i < op->n_in + op->n_out; i++) {
        const planc_tensor *tensor = &trained->tensors[i < op->n_in ? op->in[i] : op->out[i - op->n_in]];
        planc_kind kind = trained->storages[tensor->storage].kind;
        if (op->phase == PLANC_PHASE_optimizer || kind == PLANC_KIND_grad || kind == PLANC_KIND_param)
          ck_assert_int_eq(tensor->dtype, PLANC_DTYPE_f32);
        if (kind == PLANC_KIND_grad && op->phase == PLANC_PHASE_backward)
          ck_assert_msg(op->flags & PLANC_OP_ACCUMULATES, "%s", op->name);
      }
      updates += op->phase == PLANC_PHASE_optimizer;
    }
    for (int32_t o = 0; o < f32->n_ops; o++) updates -= f32->ops[o].phase == PLANC_PHASE_optimizer;
    ck_assert_int_eq(updates, 0);
    planc_graph_free(f32);
    planc_graph_free(trained);
    planc_graph_free(graph);
    planc_graph_free(forward);
  }
}
END_TEST

/* Every convolution and product of the training graph says it, derivatives included. */
START_TEST(tf32_is_inherited) {
  planc_graph *forward, *graph, *trained;
  ok(planc_graph_read(models[_i], &forward));
  graph = converted(forward, PLANC_TF32);
  ok(planc_graph_train(graph, PLANC_SGD, &trained));
  for (int32_t o = 0; o < trained->n_ops; o++) {
    const planc_op *op = &trained->ops[o];
    const planc_op given = o < forward->n_ops ? forward->ops[o] : *op;
    bool bias = strstr(op->type, "_bgrad") != NULL;
    bool multiplies = strncmp(op->type, "conv2d", 6) == 0 || strncmp(op->type, "linear", 6) == 0 ||
                      strncmp(op->type, "matmul", 6) == 0;
    ck_assert_str_eq(op->name, given.name);
    ck_assert_int_eq(planc_op_int(op, "tf32", 0, 0), multiplies && !bias);
  }
  planc_graph_free(trained);
  planc_graph_free(graph);
  planc_graph_free(forward);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("precision");
  TCase *tests = tcase_create("all");
  tcase_set_timeout(tests, 60);
  tcase_add_test(tests, known_ops);
  tcase_add_test(tests, unknown_ops);
  tcase_add_test(tests, tf32);
  tcase_add_test(tests, refused);
  tcase_add_test(tests, random_graphs);
  tcase_add_loop_test(tests, activations_halve, 0, N_MODELS);
  tcase_add_loop_test(tests, master_weights_train, 0, N_MODELS);
  tcase_add_loop_test(tests, tf32_is_inherited, 0, N_MODELS);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
