/* The structure of derived training graphs, held to their text. Their numbers: test_train_gradients.c. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/forward.h"
#include "tests/support/unit.h"

/* --- Deriving ----------------------------------------------------------------------------------------------------- */

static void batchnorm(const char *name, const char *x, const char *y) {
  char names[6][64], in[256], out[256], effects[256];
  static const char *const suffixes[] = {"gamma", "beta", "mean", "invstd", "rmean", "rvar"};
  static const char *const kinds[] = {"param ", "param ", "", "", "state ", "state "};
  for (int i = 0; i < 6; i++) {
    char spec[64];
    (void)snprintf(names[i], sizeof names[i], "%s.%s", name, suffixes[i]);
    (void)snprintf(spec, sizeof spec, "%sf32[4]", kinds[i]);
    forward_tensor(names[i], spec);
  }
  (void)snprintf(in, sizeof in, "%s %s %s", x, names[0], names[1]);
  (void)snprintf(out, sizeof out, "%s %s %s", y, names[2], names[3]);
  (void)snprintf(effects, sizeof effects, "%s %s", names[4], names[5]);
  forward_op_in_loop(name, "batchnorm", in, out, effects, "epsilon=0.001", NULL, 0);
}

static planc_graph *train(planc_optimizer optimizer) {
  planc_graph *forward = forward_finish(), *trained;
  ok(planc_graph_train(forward, optimizer, &trained));
  planc_graph_free(forward);
  return trained;
}

static void assert_refused(const char *text) {
  planc_graph *forward = forward_finish(), *trained;
  planc_status status = planc_graph_train(forward, PLANC_SGD, &trained);
  ck_assert_ptr_null(trained);
  assert_fails(status, PLANC_BAD_INPUT, text);
  planc_graph_free(forward);
}

/* --- Reading derived graphs --------------------------------------------------------------------------------------- */

static void write_tensors(FILE *to, const planc_graph *graph, const int32_t *tensors, int32_t count) {
  for (int32_t i = 0; i < count; i++) (void)fprintf(to, " %s", graph->tensors[tensors[i]].name);
}

/* The ops of a phase, one a line: "NAME TYPE IN... > OUT...". */
static void assert_ops(const planc_graph *graph, planc_phase phase, const char *expected) {
  char *text;
  size_t length;
  FILE *to = open_memstream(&text, &length);
  for (int32_t i = 0; i < graph->n_ops; i++) {
    const planc_op *each = &graph->ops[i];
    if (each->phase != phase) continue;
    (void)fprintf(to, "%s %s", each->name, each->type);
    write_tensors(to, graph, each->in, each->n_in);
    (void)fprintf(to, " >");
    write_tensors(to, graph, each->out, each->n_out);
    (void)fprintf(to, "\n");
  }
  (void)fclose(to);
  ck_assert_str_eq(text, expected);
  free(text);
}

static const planc_op *op_of(const planc_graph *graph, const char *name) {
  for (int32_t i = 0; i < graph->n_ops; i++)
    if (!strcmp(graph->ops[i].name, name)) return &graph->ops[i];
  ck_abort_msg("no op %s", name);
}

static const planc_tensor *tensor_of(const planc_graph *graph, const char *name) {
  for (int32_t i = 0; i < graph->n_tensors; i++)
    if (!strcmp(graph->tensors[i].name, name)) return &graph->tensors[i];
  ck_abort_msg("no tensor %s", name);
}

static planc_kind kind_of(const planc_graph *graph, const char *name) {
  return graph->storages[tensor_of(graph, name)->storage].kind;
}

/* --- Structure ---------------------------------------------------------------------------------------------------- */

static void lenet(void) {
  forward_begin();
  forward_tensor("x", "input f32[N,1,8,8]");
  forward_tensor("conv.w", "param f32[4,1,3,3]");
  forward_tensor("conv.b", "param f32[4]");
  forward_tensor("conv.y", "f32[N,4,8,8]");
  forward_tensor("conv.z", "f32[N,4,8,8] of conv.y");
  forward_tensor("pool.y", "f32[N,4,4,4]");
  forward_op("conv", "conv2d", "x conv.w conv.b", "conv.y", "pad=1,1");
  forward_op("relu", "relu", "conv.y", "conv.z", "");
  forward_op("pool", "maxpool2d", "conv.z", "pool.y", "kernel=2,2 stride=2,2");
  forward_classifier("pool.y", 64);
  forward_output("probs");
}

START_TEST(lenet_is_derived) {
  lenet();
  planc_graph *g = train(PLANC_SGD);
  /* relu_grad works on conv's gradient in place; the gradient of flat is a view of pool's; x has none. */
  assert_ops(g, PLANC_PHASE_backward,
             "xent.grad softmax_xent_grad probs labels > d.logits\n"
             "fc.wgrad linear_wgrad flat d.logits > fc.w.grad\n"
             "fc.dgrad linear_dgrad fc.w d.logits > d.flat\n"
             "pool.grad maxpool2d_grad conv.z pool.y d.pool.y > d.conv.y\n"
             "relu.grad relu_grad conv.z d.conv.y > d.conv.y\n"
             "conv.bgrad conv2d_bgrad d.conv.y > conv.b.grad\n"
             "conv.wgrad conv2d_wgrad x d.conv.y > conv.w.grad\n");
  assert_ops(g, PLANC_PHASE_optimizer,
             "conv.w.sgd sgd conv.w conv.w.grad > conv.w\n"
             "conv.b.sgd sgd conv.b conv.b.grad > conv.b\n"
             "fc.w.sgd sgd fc.w fc.w.grad > fc.w\n");
  ck_assert_int_eq(tensor_of(g, "d.flat")->storage, tensor_of(g, "d.pool.y")->storage);
  ck_assert_int_eq(kind_of(g, "d.pool.y"), PLANC_KIND_activation);
  ck_assert_int_eq(kind_of(g, "conv.w.grad"), PLANC_KIND_grad);
  ck_assert_int_eq(planc_op_int(op_of(g, "conv.wgrad"), "pad", 1, 0), 1);
  ck_assert_int_eq(planc_op_int(op_of(g, "pool.grad"), "kernel", 0, 0), 2);
  ck_assert_ptr_null(planc_op_attr(op_of(g, "conv.bgrad"), "pad"));
  ck_assert_str_eq(g->name, "test");
  ck_assert_str_eq(g->device, "k40m");
  ck_assert_str_eq(g->policy, "modnn");
  ck_assert_str_eq(g->optimizer, "sgd");
  ck_assert_int_eq(g->batch, 32);
  ck_assert_str_eq(g->tensors[g->loss].name, "loss");
  ck_assert_int_eq(g->n_outputs, 1);
  ck_assert_str_eq(g->tensors[g->outputs[0]].name, "probs");
  planc_graph_free(g);
}
END_TEST

START_TEST(optimizers_have_their_state) {
  lenet();
  planc_graph *g = train(PLANC_MOMENTUM);
  assert_ops(g, PLANC_PHASE_optimizer,
             "conv.w.momentum momentum conv.w conv.w.grad conv.w.v > conv.w conv.w.v\n"
             "conv.b.momentum momentum conv.b conv.b.grad conv.b.v > conv.b conv.b.v\n"
             "fc.w.momentum momentum fc.w fc.w.grad fc.w.v > fc.w fc.w.v\n");
  ck_assert_int_eq(kind_of(g, "fc.w.v"), PLANC_KIND_state);
  ck_assert_double_eq(planc_op_real(op_of(g, "fc.w.momentum"), "momentum", 0), 0.9);
  planc_graph_free(g);
  lenet();
  g = train(PLANC_ADAM);
  assert_ops(g, PLANC_PHASE_optimizer,
             "conv.w.adam adam conv.w conv.w.grad conv.w.m conv.w.v > conv.w conv.w.m conv.w.v\n"
             "conv.b.adam adam conv.b conv.b.grad conv.b.m conv.b.v > conv.b conv.b.m conv.b.v\n"
             "fc.w.adam adam fc.w fc.w.grad fc.w.m fc.w.v > fc.w fc.w.m fc.w.v\n");
  ck_assert_double_eq(planc_op_real(op_of(g, "fc.w.adam"), "lr", 0), 0.001);
  planc_graph_free(g);

  planc_optimizer optimizer;
  ok(planc_optimizer_parse("adam", &optimizer));
  ck_assert_int_eq(optimizer, PLANC_ADAM);
  planc_status status = planc_optimizer_parse("adamw", &optimizer);
  ck_assert_int_eq(planc_status_code(status), PLANC_BAD_INPUT);
  planc_status_free(status);
}
END_TEST

/* A stem, then a block with a skip: the add is in place on bn2's output and the relu on the add's. */
static void residual(void) {
  forward_begin();
  forward_tensor("x", "input f32[N,4,4,4]");
  forward_tensor("w0", "param f32[4,4,1,1]");
  forward_tensor("w1", "param f32[4,4,3,3]");
  forward_tensor("w2", "param f32[4,4,3,3]");
  forward_tensor("stem", "f32[N,4,4,4]");
  forward_tensor("y1", "f32[N,4,4,4]");
  forward_tensor("n1", "f32[N,4,4,4]");
  forward_tensor("z1", "f32[N,4,4,4] of n1");
  forward_tensor("y2", "f32[N,4,4,4]");
  forward_tensor("n2", "f32[N,4,4,4]");
  forward_op("conv0", "conv2d", "x w0", "stem", "");
  forward_op("conv1", "conv2d", "stem w1", "y1", "pad=1,1");
  batchnorm("bn1", "y1", "n1");
  forward_op("relu1", "relu", "n1", "z1", "");
  forward_op("conv2", "conv2d", "z1 w2", "y2", "pad=1,1");
  batchnorm("bn2", "y2", "n2");
  forward_op("skip", "add", "n2 stem", "n2", "");
  forward_op("relu2", "relu", "n2", "n2", "");
  forward_classifier("n2", 64);
}

START_TEST(residual_block_is_derived) {
  residual();
  planc_graph *g = train(PLANC_SGD);
  /* The add's gradient is one tensor for both branches; stem's second gradient is added to it once bn2 has read it. */
  assert_ops(g, PLANC_PHASE_backward,
             "xent.grad softmax_xent_grad probs labels > d.logits\n"
             "fc.wgrad linear_wgrad flat d.logits > fc.w.grad\n"
             "fc.dgrad linear_dgrad fc.w d.logits > d.flat\n"
             "relu2.grad relu_grad n2 d.n2 > d.n2\n"
             "bn2.grad batchnorm_grad y2 bn2.gamma bn2.mean bn2.invstd d.n2 > d.y2 bn2.gamma.grad bn2.beta.grad\n"
             "conv2.wgrad conv2d_wgrad z1 d.y2 > w2.grad\n"
             "conv2.dgrad conv2d_dgrad w2 d.y2 > d.n1\n"
             "relu1.grad relu_grad z1 d.n1 > d.n1\n"
             "bn1.grad batchnorm_grad y1 bn1.gamma bn1.mean bn1.invstd d.n1 > d.y1 bn1.gamma.grad bn1.beta.grad\n"
             "conv1.wgrad conv2d_wgrad stem d.y1 > w1.grad\n"
             "conv1.dgrad conv2d_dgrad w1 d.y1 > d.stem\n"
             "conv1.sum.1 add d.n2 d.stem > d.n2\n"
             "conv0.wgrad conv2d_wgrad x d.n2 > w0.grad\n");
  ck_assert_int_eq(op_of(g, "bn1")->n_effects, 2);
  planc_graph_free(g);
}
END_TEST

/* In a block whose skip is the relu's own input, relu_grad may not write over what the skip still needs. */
START_TEST(shared_gradients_are_not_written_over) {
  forward_begin();
  forward_tensor("x", "input f32[N,8]");
  forward_tensor("w", "param f32[8,8]");
  forward_tensor("y", "f32[N,8]");
  forward_tensor("r", "f32[N,8]");
  forward_tensor("s", "f32[N,8]");
  forward_op("a", "linear", "x w", "y", "");
  forward_op("relu", "relu", "y", "r", "");
  forward_op("skip", "add", "r y", "s", "");
  forward_classifier("s", 8);
  planc_graph *g = train(PLANC_SGD);
  assert_ops(g, PLANC_PHASE_backward,
             "xent.grad softmax_xent_grad probs labels > d.logits\n"
             "fc.wgrad linear_wgrad flat d.logits > fc.w.grad\n"
             "fc.dgrad linear_dgrad fc.w d.logits > d.s\n"
             "relu.grad relu_grad r d.s > d.y\n"
             "relu.sum.1 add d.y d.s > d.y\n"
             "a.wgrad linear_wgrad x d.y > w.grad\n");
  planc_graph_free(g);
}
END_TEST

START_TEST(every_rule) {
  forward_begin();
  forward_tensor("x", "input f32[N,4,4,4]");
  forward_tensor("w", "param f32[4,4,1,1]");
  forward_tensor("b", "param f32[4]");
  forward_tensor("y", "f32[N,4,4,4]");
  forward_tensor("p", "f32[N,4,2,2]");
  forward_tensor("u", "f32[N,4,4,4]");
  forward_tensor("c", "f32[N,12,4,4]");
  forward_op("conv", "conv2d", "x w", "y", "");
  forward_op("bias", "bias", "y b", "y", "");
  forward_op("drop", "dropout", "y", "y", "p=0.5 seed=7");
  forward_op("pool", "avgpool2d", "y", "p", "kernel=2,2 stride=2,2");
  forward_op("up", "upsample", "p", "u", "scale=2 mode=bilinear");
  forward_op("cat", "concat", "u x y", "c", "axis=1");
  forward_classifier("c", 192);
  planc_graph *g = train(PLANC_SGD);
  assert_ops(g, PLANC_PHASE_backward,
             "xent.grad softmax_xent_grad probs labels > d.logits\n"
             "fc.wgrad linear_wgrad flat d.logits > fc.w.grad\n"
             "fc.dgrad linear_dgrad fc.w d.logits > d.flat\n"
             "cat.grad.1 concat_grad d.c > d.u\n"
             "cat.grad.3 concat_grad d.c > d.y\n"
             "up.grad upsample_grad d.u > d.p\n"
             "pool.grad avgpool2d_grad d.p > d.y.2\n"
             "pool.sum.1 add d.y d.y.2 > d.y\n"
             "drop.grad dropout_grad d.y > d.y\n"
             "bias.bgrad bias_grad d.y > b.grad\n"
             "conv.wgrad conv2d_wgrad x d.y > w.grad\n");
  ck_assert_int_eq(planc_op_int(op_of(g, "cat.grad.3"), "offset", 0, -1), 8);
  ck_assert_int_eq(planc_op_int(op_of(g, "cat.grad.3"), "axis", 0, -1), 1);
  ck_assert_int_eq(planc_op_int(op_of(g, "drop.grad"), "seed", 0, -1), 7);
  ck_assert_str_eq(planc_op_attr(op_of(g, "up.grad"), "mode")->value.string, "bilinear");
  ck_assert(op_of(g, "xent.grad")->flags & PLANC_OP_BATCH_MEAN);
  ck_assert(op_of(g, "drop.grad")->flags & PLANC_OP_STOCHASTIC);
  ck_assert(op_of(g, "conv.wgrad")->flags & PLANC_OP_ACCUMULATES);
  planc_graph_free(g);
}
END_TEST

/* A weight of three ops, unrolled from a loop: the first gradient met is the sum, later ones are added to it. */
START_TEST(shared_parameters_accumulate) {
  forward_begin();
  forward_tensor("h0", "input f32[N,8]");
  forward_tensor("w", "param f32[8,8]");
  for (int i = 0; i < 3; i++) {
    char y[32], name[32], in[32];
    (void)snprintf(y, sizeof y, "h%d", i + 1);
    (void)snprintf(in, sizeof in, "h%d w", i);
    (void)snprintf(name, sizeof name, "step%d", i);
    forward_tensor(y, "f32[N,8]");
    forward_op_in_loop(name, "linear", in, y, "", "", "rnn", i);
  }
  forward_classifier("h3", 8);
  planc_graph *g = train(PLANC_SGD);
  assert_ops(g, PLANC_PHASE_backward,
             "xent.grad softmax_xent_grad probs labels > d.logits\n"
             "fc.wgrad linear_wgrad flat d.logits > fc.w.grad\n"
             "fc.dgrad linear_dgrad fc.w d.logits > d.h3\n"
             "step2.wgrad linear_wgrad h2 d.h3 > w.grad\n"
             "step2.dgrad linear_dgrad w d.h3 > d.h2\n"
             "step1.wgrad linear_wgrad h1 d.h2 > w.grad.2\n"
             "step1.sum.2 add w.grad w.grad.2 > w.grad\n"
             "step1.dgrad linear_dgrad w d.h2 > d.h1\n"
             "step0.wgrad linear_wgrad h0 d.h1 > w.grad.3\n"
             "step0.sum.2 add w.grad w.grad.3 > w.grad\n");
  ck_assert_int_eq(kind_of(g, "w.grad"), PLANC_KIND_grad);
  ck_assert_int_eq(kind_of(g, "w.grad.2"), PLANC_KIND_temp);
  ck_assert_str_eq(op_of(g, "step1.sum.2")->loop, "rnn");
  ck_assert_int_eq(op_of(g, "step1.sum.2")->loop_step, 1);
  ck_assert_int_eq(op_of(g, "step2.dgrad")->loop_step, 2);
  ck_assert_ptr_null(op_of(g, "fc.dgrad")->loop);
  planc_graph_free(g);
}
END_TEST

/* Three parts of one projection, used apart: each one's gradient is its part of one storage. */
START_TEST(views_have_views_of_one_gradient) {
  forward_begin();
  forward_tensor("x", "input f32[N,4]");
  forward_tensor("w", "param f32[12,4]");
  forward_tensor("qkv", "f32[N,12]");
  forward_tensor("q", "f32[N,4] of qkv");
  forward_tensor("k", "f32[N,4] of qkv @ 16N");
  forward_tensor("v", "f32[N,4] of qkv @ 32N");
  forward_tensor("kr", "f32[N,4]");
  forward_tensor("a", "f32[N,4]");
  forward_tensor("s", "f32[N,4]");
  forward_op("proj", "linear", "x w", "qkv", "");
  forward_op("relu", "relu", "k", "kr", "");
  forward_op("add1", "add", "q kr", "a", "");
  forward_op("add2", "add", "a v", "s", "");
  forward_classifier("s", 4);
  planc_graph *g = train(PLANC_SGD);
  assert_ops(g, PLANC_PHASE_backward,
             "xent.grad softmax_xent_grad probs labels > d.logits\n"
             "fc.wgrad linear_wgrad flat d.logits > fc.w.grad\n"
             "fc.dgrad linear_dgrad fc.w d.logits > d.s\n"
             "add2.copy.2 concat_grad d.s > d.v\n"
             "add1.copy.1 concat_grad d.s > d.q\n"
             "relu.grad relu_grad kr d.s > d.k\n"
             "proj.wgrad linear_wgrad x d.qkv > w.grad\n");
  for (int i = 0; i < 3; i++) {
    const planc_tensor *part = tensor_of(g, (const char *[]){"d.q", "d.k", "d.v"}[i]);
    ck_assert_int_eq(part->storage, tensor_of(g, "d.qkv")->storage);
    ck_assert_int_eq(part->offset.per_sample, (int64_t)16 * i);
  }
  planc_graph_free(g);
}
END_TEST

/* --- What is left out --------------------------------------------------------------------------------------------- */

START_TEST(work_nobody_needs_is_dropped) {
  forward_begin();
  forward_tensor("x", "input f32[N,8]");
  forward_tensor("t", "f32[N,8]"); /* from the input alone */
  forward_tensor("w", "param f32[8,8]");
  forward_tensor("y", "f32[N,8]");
  forward_tensor("s", "f32[N,8]");
  forward_tensor("dead.w", "param f32[8,8]");
  forward_tensor("dead", "f32[N,8]"); /* leads to no loss */
  forward_tensor("odd", "f32[N,8]");  /* of a type without a derivative, beside the way to the loss */
  forward_op("relu0", "relu", "x", "t", "");
  forward_op("odd", "my.type", "t", "odd", "");
  forward_op("a", "linear", "t w", "y", "");
  forward_op("dead", "linear", "y dead.w", "dead", "");
  forward_op("odd2", "my.type", "dead", "dead", "");
  forward_op("add", "add", "y odd", "s", "");
  forward_classifier("s", 8);
  planc_graph *g = train(PLANC_ADAM);
  assert_ops(g, PLANC_PHASE_backward,
             "xent.grad softmax_xent_grad probs labels > d.logits\n"
             "fc.wgrad linear_wgrad flat d.logits > fc.w.grad\n"
             "fc.dgrad linear_dgrad fc.w d.logits > d.s\n"
             "a.wgrad linear_wgrad t d.s > w.grad\n");
  assert_ops(g, PLANC_PHASE_optimizer,
             "w.adam adam w w.grad w.m w.v > w w.m w.v\n"
             "fc.w.adam adam fc.w fc.w.grad fc.w.m fc.w.v > fc.w fc.w.m fc.w.v\n");
  planc_graph_free(g);
}
END_TEST

/* batchnorm_grad makes all three gradients at once: the one of the input goes nowhere. */
START_TEST(unwanted_results_go_to_scratch) {
  forward_begin();
  forward_tensor("x", "input f32[N,4,2,2]");
  forward_tensor("n", "f32[N,4,2,2]");
  batchnorm("bn", "x", "n");
  forward_classifier("n", 16);
  planc_graph *g = train(PLANC_SGD);
  assert_ops(g, PLANC_PHASE_backward,
             "xent.grad softmax_xent_grad probs labels > d.logits\n"
             "fc.wgrad linear_wgrad flat d.logits > fc.w.grad\n"
             "fc.dgrad linear_dgrad fc.w d.logits > d.flat\n"
             "bn.grad batchnorm_grad x bn.gamma bn.mean bn.invstd d.n > d.x bn.gamma.grad bn.beta.grad\n");
  ck_assert_int_eq(kind_of(g, "d.x"), PLANC_KIND_temp);
  planc_graph_free(g);
}
END_TEST

/* Two heads: the loss is a sum, of which both have gradient 1. */
START_TEST(a_loss_may_be_a_sum) {
  forward_begin();
  forward_tensor("x", "input f32[N,8]");
  forward_tensor("w", "param f32[3,8]");
  forward_tensor("y", "f32[N,3]");
  forward_tensor("loss1", "f32[]");
  forward_tensor("probs1", "f32[N,3]");
  forward_tensor("total", "f32[]");
  forward_classifier("x", 8);
  forward_op("aux", "linear", "x w", "y", "");
  forward_op("xent1", "softmax_xent", "y labels", "loss1 probs1", "");
  forward_op("sum", "add", "loss loss1", "total", "");
  forward_loss("total");
  planc_graph *g = train(PLANC_SGD);
  assert_ops(g, PLANC_PHASE_backward,
             "xent1.grad softmax_xent_grad probs1 labels > d.y\n"
             "aux.wgrad linear_wgrad x d.y > w.grad\n"
             "xent.grad softmax_xent_grad probs labels > d.logits\n"
             "fc.wgrad linear_wgrad flat d.logits > fc.w.grad\n");
  planc_graph_free(g);
}
END_TEST

/* The gradient of what is split is its parts' side by side. */
START_TEST(a_split_joins_gradients) {
  forward_begin();
  forward_tensor("x", "input f32[N,8]");
  forward_tensor("w", "param f32[12,8]");
  forward_tensor("y", "f32[N,12]");
  for (int i = 0; i < 3; i++) forward_tensor((const char *[]){"a", "b", "c"}[i], "f32[N,4]");
  forward_tensor("ab", "f32[N,4]");
  forward_tensor("s", "f32[N,4]");
  forward_op("l", "linear", "x w", "y", "");
  forward_op("cut", "split", "y", "a b c", "axis=1");
  forward_op("both", "mul", "a b", "ab", "");
  forward_op("add", "add", "ab c", "s", "");
  forward_classifier("s", 4);
  planc_graph *g = train(PLANC_SGD);
  assert_ops(g, PLANC_PHASE_backward,
             "xent.grad softmax_xent_grad probs labels > d.logits\n"
             "fc.wgrad linear_wgrad flat d.logits > fc.w.grad\n"
             "fc.dgrad linear_dgrad fc.w d.logits > d.s\n"
             "both.bgrad mul d.s a > d.b\n"
             "both.agrad mul d.s b > d.a\n"
             "cut.grad concat d.a d.b d.s > d.y\n"
             "l.wgrad linear_wgrad x d.y > w.grad\n");
  planc_graph_free(g);
}
END_TEST

/* What is to be met may be computed as well. */
START_TEST(a_square_error_has_two_gradients) {
  forward_begin();
  forward_tensor("x", "input f32[N,8]");
  for (int i = 0; i < 2; i++) {
    forward_tensor((const char *[]){"w", "v"}[i], "param f32[4,8]");
    forward_tensor((const char *[]){"y", "z"}[i], "f32[N,4]");
  }
  forward_tensor("loss", "f32[]");
  forward_op("a", "linear", "x w", "y", "");
  forward_op("b", "linear", "x v", "z", "");
  forward_op("off", "mse", "y z", "loss", "");
  forward_loss("loss");
  planc_graph *g = train(PLANC_SGD);
  assert_ops(g, PLANC_PHASE_backward,
             "off.grad mse_grad y z > d.y\n"
             "off.tgrad mse_grad z y > d.z\n"
             "b.wgrad linear_wgrad x d.z > v.grad\n"
             "a.wgrad linear_wgrad x d.y > w.grad\n");
  planc_graph_free(g);
}
END_TEST

/* --- Refusals ----------------------------------------------------------------------------------------------------- */

START_TEST(overwritten_values_are_refused) {
  forward_begin();
  forward_tensor("x", "input f32[N,4,2,2]");
  forward_tensor("w", "param f32[4,4,1,1]");
  forward_tensor("y", "f32[N,4,2,2]");
  forward_tensor("n", "f32[N,4,2,2]");
  forward_tensor("s", "f32[N,4,2,2]");
  forward_op("conv", "conv2d", "x w", "y", "");
  batchnorm("bn", "y", "n");
  forward_op("relu", "relu", "y", "y", "");
  forward_op("add", "add", "n y", "s", "");
  forward_classifier("s", 16);
  assert_refused("op bn: its batchnorm_grad needs y, which op relu overwrites");

  /* An input that is gone before its op is another matter: bn reads what relu wrote. */
  forward_begin();
  forward_tensor("x", "input f32[N,4,2,2]");
  forward_tensor("w", "param f32[4,4,1,1]");
  forward_tensor("y", "f32[N,4,2,2]");
  forward_tensor("n", "f32[N,4,2,2]");
  forward_op("conv", "conv2d", "x w", "y", "");
  forward_op("relu", "relu", "y", "y", "");
  batchnorm("bn", "y", "n");
  forward_classifier("n", 16);
  planc_graph_free(train(PLANC_SGD));

  /* relu's output goes on in place: relu_grad would read dropout's. */
  forward_begin();
  forward_tensor("x", "input f32[N,8]");
  forward_tensor("w", "param f32[8,8]");
  forward_tensor("y", "f32[N,8]");
  forward_op("a", "linear", "x w", "y", "");
  forward_op("relu", "relu", "y", "y", "");
  forward_op("drop", "dropout", "y", "y", "p=0.5 seed=1");
  forward_op("bias", "relu", "y", "y", "");
  forward_classifier("y", 8);
  assert_refused("op relu: its relu_grad needs y, which op drop overwrites");
}
END_TEST

START_TEST(what_has_no_derivative_is_refused) {
  forward_begin();
  forward_tensor("x", "input f32[N,8]");
  forward_tensor("w", "param f32[8,8]");
  forward_tensor("y", "f32[N,8]");
  forward_tensor("z", "f32[N,8]");
  forward_op("a", "linear", "x w", "y", "");
  forward_op("odd", "my.type", "y", "z", "");
  forward_classifier("z", 8);
  assert_refused("op odd: type my.type has no derivative");

  lenet();
  planc_graph *g = train(PLANC_SGD), *again;
  planc_status status = planc_graph_train(g, PLANC_SGD, &again);
  assert_fails(status, PLANC_BAD_INPUT, "has backward or optimizer ops already: op xent.grad");
  planc_graph_free(g);

  forward_begin();
  forward_tensor("x", "input f32[N,8]");
  forward_tensor("y", "f32[N,8]");
  forward_op("relu", "relu", "x", "y", "");
  assert_refused("has no loss");

  forward_begin();
  forward_tensor("x", "input f32[N,3]");
  forward_tensor("labels", "input i64[N]");
  forward_tensor("loss", "f32[]");
  forward_tensor("probs", "f32[N,3]");
  forward_op("xent", "softmax_xent", "x labels", "loss probs", "");
  forward_loss("loss");
  assert_refused("no parameter leads to the loss");

  /* The gradient of probs. */
  forward_begin();
  forward_tensor("x", "input f32[N,8]");
  forward_tensor("w", "param f32[3,8]");
  forward_tensor("y", "f32[N,3]");
  forward_tensor("l", "f32[]");
  forward_tensor("p", "f32[N,3]");
  forward_tensor("labels1", "input i64[N]");
  forward_op("a", "linear", "x w", "y", "");
  forward_op("first", "softmax_xent", "y labels1", "l p", "");
  forward_classifier("p", 3);
  assert_refused("op first: a gradient reaches p, its output 2");

  /* A part that leads nowhere. */
  forward_begin();
  forward_tensor("x", "input f32[N,8]");
  forward_tensor("w", "param f32[8,8]");
  forward_tensor("y", "f32[N,8]");
  forward_tensor("a", "f32[N,4]");
  forward_tensor("b", "f32[N,4]");
  forward_op("l", "linear", "x w", "y", "");
  forward_op("cut", "split", "y", "a b", "axis=1");
  forward_classifier("b", 4);
  assert_refused("op cut: its part a does not lead to the loss, as others do");

  /* An activation in place whose derivative needs what it read. */
  forward_begin();
  forward_tensor("x", "input f32[N,8]");
  forward_tensor("w", "param f32[8,8]");
  forward_tensor("y", "f32[N,8]");
  forward_op("l", "linear", "x w", "y", "");
  forward_op("g", "gelu", "y", "y", "");
  forward_classifier("y", 8);
  assert_refused("op g: its gelu_grad needs y, which op g overwrites");

  /* A loss that is scaled. */
  forward_begin();
  forward_tensor("x", "input f32[N,8]");
  forward_tensor("twice", "f32[]");
  forward_classifier("x", 8);
  forward_op("double", "add", "loss loss", "twice", "");
  forward_loss("twice");
  assert_refused("op double");

  forward_begin();
  forward_tensor("x", "input f32[N,8]");
  forward_tensor("r", "f32[]");
  forward_classifier("x", 8);
  forward_op("clip", "relu", "loss", "r", "");
  forward_loss("r");
  assert_refused("op clip: only adds");

  /* One part of y leads to the loss, the other nowhere. */
  forward_begin();
  forward_tensor("x", "input f32[N,8]");
  forward_tensor("w", "param f32[8,8]");
  forward_tensor("y", "f32[N,8]");
  forward_tensor("part", "f32[N,4] of y");
  forward_tensor("r", "f32[N,4]");
  forward_op("a", "linear", "x w", "y", "");
  forward_op("relu", "relu", "part", "r", "");
  forward_classifier("r", 4);
  assert_refused("op a: only part of y has a gradient");
}
END_TEST

int main(void) {
  Suite *suite = suite_create("train");
  TCase *tests = tcase_create("all");
  tcase_set_timeout(tests, 120);
  tcase_add_test(tests, lenet_is_derived);
  tcase_add_test(tests, optimizers_have_their_state);
  tcase_add_test(tests, residual_block_is_derived);
  tcase_add_test(tests, shared_gradients_are_not_written_over);
  tcase_add_test(tests, every_rule);
  tcase_add_test(tests, shared_parameters_accumulate);
  tcase_add_test(tests, views_have_views_of_one_gradient);
  tcase_add_test(tests, work_nobody_needs_is_dropped);
  tcase_add_test(tests, unwanted_results_go_to_scratch);
  tcase_add_test(tests, a_loss_may_be_a_sum);
  tcase_add_test(tests, a_split_joins_gradients);
  tcase_add_test(tests, a_square_error_has_two_gradients);
  tcase_add_test(tests, overwritten_values_are_refused);
  tcase_add_test(tests, what_has_no_derivative_is_refused);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
