/* Which graphs an iteration of parts computes as one of the whole batch does. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "graph/parts.h"
#include "planc/graph.h"
#include "planc/trace.h"
#include "tests/support/unit.h"

/* A layer and its gradient: what stands between that and the optimizer differs from case to case. */
static planc_graph *with_ops(const char *tensors, const char *ops) {
  char text[2048];
  planc_graph *graph;
  (void)snprintf(text, sizeof text,
                 "planc-graph: 1\nname: g\nloss: loss\ntensors:\n  x: input f32[N,4]\n  t: input f32[N,4]\n"
                 "  w: param f32[4,4]\n  y: f32[N,4]\n  dy: f32[N,4]\n  dw: temp f32[4,4]\n  g: grad f32[4,4]\n"
                 "  loss: f32[]\n%sops:\n"
                 "  - {op: fc, type: linear, in: [x, w], out: [y]}\n  - {op: l, type: mse, in: [y, t], out: [loss]}\n"
                 "  - {op: lg, type: mse_grad, phase: backward, in: [y, t], out: [dy]}\n"
                 "  - {op: wg, type: linear_wgrad, phase: backward, in: [x, dy], out: [dw]}\n%s"
                 "  - {op: u, type: sgd, phase: optimizer, in: [w, g], out: [w]}\n",
                 tensors, ops);
  ok(planc_graph_parse(text, strlen(text), "g", &graph));
  return graph;
}

static planc_status check(const planc_graph *graph) {
  pl_arena arena = {0};
  planc_status status = pl_parts_check(&arena, graph);
  pl_arena_free(&arena);
  return status;
}

#define BACKWARD ", phase: backward"

START_TEST(a_graph_without_samples_has_none) {
  static const char text[] =
      "planc-graph: 1\nname: g\nbatch: 4\ntensors:\n  w: param f32[4]\n  y: f32[4]\n  g: grad f32[4]\nops:\n"
      "  - {op: f, type: my.op, in: [w], out: [y]}\n  - {op: b, type: my.op, phase: backward, in: [y], out: [g]%s}\n"
      "  - {op: u, type: sgd, phase: optimizer, in: [w, g], out: [w]}\n";
  static const char *const laws[] = {"", ", flops: 5N", ", traffic: 9+5N", ", workspace: 5N"};
  for (int32_t i = 0; i < (int32_t)(sizeof laws / sizeof *laws); i++) {
    char whole[1024];
    planc_graph *graph;
    (void)snprintf(whole, sizeof whole, text, laws[i]);
    ok(planc_graph_parse(whole, strlen(whole), "g", &graph));
    planc_status status = planc_check_rounds(graph);
    ck_assert_int_eq(status == NULL, i > 0);
    ck_assert_int_eq(planc_graph_has_samples(graph), i > 0);
    if (status) ck_assert_ptr_nonnull(strstr(planc_status_message(status), "no size in it depends on N"));
    planc_status_free(status);
    planc_graph_free(graph);
  }
}
END_TEST

static const struct {
  const char *tensors, *ops;
  const char *why; /* NULL: it adds up */
} cases[] = {
    {"", "  - {op: o, type: cast" BACKWARD ", in: [dw], out: [g]}\n", NULL},
    {"", "  - {op: o, type: add" BACKWARD ", in: [dw, dw], out: [g]}\n", NULL},
    {"", "  - {op: o, type: mul" BACKWARD ", in: [dw, w], out: [g]}\n", NULL},
    {"", "  - {op: o, type: matmul_tn" BACKWARD ", in: [w, dw], out: [g]}\n", NULL},
    {"", "  - {op: o, type: tanh_grad" BACKWARD ", in: [w, dw], out: [g]}\n", NULL},
    {"", "  - {op: o, type: affine" BACKWARD ", in: [dw], out: [g], attrs: {scale: 2.0}}\n", NULL},
    {"", "  - {op: o, type: my.op" BACKWARD ", in: [dw, w], out: [g]}\n", NULL},
    {"  s: temp f32[4,4]\n",
     "  - {op: m, type: my.op" BACKWARD ", in: [dw], out: [s]}\n"
     "  - {op: o, type: add" BACKWARD ", in: [dw, s], out: [g]}\n",
     NULL},
    {"  v: temp f32[4,4]\n",
     "  - {op: m, type: relu" BACKWARD ", in: [w], out: [v]}\n"
     "  - {op: o, type: mul" BACKWARD ", in: [v, dw], out: [g]}\n",
     NULL},
    {"", "  - {op: o, type: add" BACKWARD ", in: [dw, w], out: [g]}\n", "op o: what it makes of dw, which is a sum"},
    {"", "  - {op: o, type: mul" BACKWARD ", in: [dw, dw], out: [g]}\n", "op o: what it makes of dw"},
    {"", "  - {op: o, type: relu" BACKWARD ", in: [dw], out: [g]}\n", "op o: what it makes of dw"},
    {"", "  - {op: o, type: affine" BACKWARD ", in: [dw], out: [g], attrs: {shift: 2.0}}\n",
     "op o: what it makes of dw"},
    {"", "  - {op: o, type: tanh_grad" BACKWARD ", in: [dw, w], out: [g]}\n", "op o: what it makes of dw"},
    {"  s: temp f32[4,4]\n",
     "  - {op: m, type: cast" BACKWARD ", in: [dw], out: [s]}\n"
     "  - {op: o, type: mul" BACKWARD ", in: [s, s], out: [g]}\n",
     "op o: what it makes of s"},
    {"", "  - {op: o, type: cast" BACKWARD ", in: [w], out: [g]}\n",
     "op o: the gradient g does not follow from samples"},
    {"  b: temp f32[4]\n  z: f32[N,4]\n",
     "  - {op: m, type: linear_bgrad" BACKWARD ", in: [dy], out: [b]}\n"
     "  - {op: s, type: bias" BACKWARD ", in: [dy, b], out: [z]}\n"
     "  - {op: o, type: linear_wgrad" BACKWARD ", in: [x, z], out: [g]}\n",
     "op s: what it makes of b"},
    {"  v: param f32[4]\n  s: temp f32[4,4]\n",
     "  - {op: m, type: linear" BACKWARD ", in: [w, dw, v], out: [s]}\n"
     "  - {op: o, type: cast" BACKWARD ", in: [s], out: [g]}\n",
     "op m: what it makes of dw"},
    {"  s: temp f32[4,4]\n",
     "  - {op: m, type: linear" BACKWARD ", in: [w, dw], out: [s]}\n"
     "  - {op: o, type: cast" BACKWARD ", in: [s], out: [g]}\n",
     NULL},
    {"  a: f32[1,4,2,2] of dw\n  k: param f32[4,4,1,1]\n  v: param f32[4]\n  c: temp f32[1,4,2,2]\n",
     "  - {op: m, type: conv2d" BACKWARD ", in: [a, k], out: [c]}\n"
     "  - {op: o, type: cast" BACKWARD ", in: [dw], out: [g]}\n",
     NULL},
    {"  a: f32[1,4,2,2] of dw\n  k: param f32[4,4,1,1]\n  v: param f32[4]\n  c: temp f32[1,4,2,2]\n",
     "  - {op: m, type: conv2d" BACKWARD ", in: [a, k, v], out: [c]}\n"
     "  - {op: o, type: cast" BACKWARD ", in: [dw], out: [g]}\n",
     "op m: what it makes of a"},
    {"  s: temp f32[4,4]\n",
     "  - {op: m, type: my.op" BACKWARD ", in: [w], out: [s]}\n"
     "  - {op: o, type: add" BACKWARD ", in: [s, w], out: [g]}\n",
     "op o: the gradient g does not add up"},
    {"  s: temp f32[4,4]\n  r: temp f32[4,4]\n",
     "  - {op: m, type: my.op" BACKWARD ", in: [w], out: [s]}\n"
     "  - {op: n, type: relu" BACKWARD ", in: [s], out: [r]}\n"
     "  - {op: o, type: cast" BACKWARD ", in: [r], out: [g]}\n",
     "op o: the gradient g does not add up"},
    {"  s: temp f32[4,4]\n",
     "  - {op: m, type: my.op" BACKWARD ", in: [w], out: [s]}\n"
     "  - {op: o, type: cast" BACKWARD ", in: [s], out: [g]}\n",
     NULL},
    {"  s: temp f32[4,4]\n  z: f32[N,4]\n",
     "  - {op: m, type: my.op" BACKWARD ", in: [w], out: [s]}\n"
     "  - {op: r, type: linear" BACKWARD ", in: [x, s], out: [z]}\n"
     "  - {op: o, type: linear_wgrad" BACKWARD ", in: [z, dy], out: [g]}\n",
     NULL},
    {"  d: temp f32[8,4]\n  d1: f32[4,4] of d\n  d2: f32[4,4] of d @ 64\n  d3: f32[4,4] of d @ 32\n",
     "  - {op: m, type: cast" BACKWARD ", in: [dw], out: [d1]}\n"
     "  - {op: n, type: relu" BACKWARD ", in: [w], out: [d2]}\n"
     "  - {op: o, type: cast" BACKWARD ", in: [d3], out: [g]}\n",
     "op o: the gradient g does not add up"},
    {"  d: temp f32[8,4]\n  d1: f32[4,4] of d\n  d2: f32[4,4] of d @ 64\n  d3: f32[4,4] of d @ 32\n",
     "  - {op: m, type: cast" BACKWARD ", in: [dw], out: [d1]}\n"
     "  - {op: n, type: cast" BACKWARD ", in: [dw], out: [d2]}\n"
     "  - {op: q, type: cast" BACKWARD ", in: [dw], out: [d3]}\n"
     "  - {op: o, type: cast" BACKWARD ", in: [d3], out: [g]}\n",
     NULL},
    {"  d: temp f32[8,4]\n  d1: f32[4,4] of d\n  h: state f32[8,4]\n",
     "  - {op: m, type: cast" BACKWARD ", in: [dw], out: [d1]}\n"
     "  - {op: n, type: relu" BACKWARD ", in: [h], out: [d]}\n"
     "  - {op: o, type: mul" BACKWARD ", in: [d1, dw], out: [g]}\n",
     NULL},
    {"  s: state f32[4,4]\n",
     "  - {op: m, type: cast" BACKWARD ", in: [w], out: [s]}\n"
     "  - {op: o, type: cast" BACKWARD ", in: [dw], out: [g]}\n",
     "op m: the state s is written in each part"},
    {"  s: temp f32[4,4]\n",
     "  - {op: m, type: dropout" BACKWARD ", in: [w], out: [s], attrs: {p: 0.5, seed: 1}}\n"
     "  - {op: o, type: mul" BACKWARD ", in: [dw, s], out: [g]}\n",
     "op m: s is drawn anew"},
    {"  s: temp f32[4,4]\n",
     "  - {op: m, type: mse_grad" BACKWARD ", in: [w, w], out: [s]}\n"
     "  - {op: o, type: add" BACKWARD ", in: [dw, s], out: [g]}\n",
     NULL},
    {"  a: input f32[1,N,4]\n  c: f32[1,N,4]\n",
     "  - {op: s, type: relu" BACKWARD ", in: [a], out: [c]}\n"
     "  - {op: o, type: cast" BACKWARD ", in: [dw], out: [g]}\n",
     NULL},
    {"  a: input f32[2N,4]\n  h: f32[N,4] of a\n  c: f32[N,4]\n",
     "  - {op: s, type: relu" BACKWARD ", in: [h], out: [c]}\n"
     "  - {op: o, type: cast" BACKWARD ", in: [dw], out: [g]}\n",
     "have bytes in common"},
    {"  a: input f32[N,4,4]\n  h: f32[4,4] of a\n", "  - {op: o, type: mul" BACKWARD ", in: [dw, h], out: [g]}\n",
     "op o: h is of some samples of a alone"},
    {"  a: input f32[2N,4]\n  b: f32[N,4]\n  c: f32[N,4]\n",
     "  - {op: s, type: split" BACKWARD ", in: [a], out: [b, c], attrs: {axis: 0}}\n"
     "  - {op: o, type: cast" BACKWARD ", in: [dw], out: [g]}\n",
     "op s: it joins or cuts a along the samples"},
    {"  a: input f32[N,8]\n  b: f32[N,4]\n  c: f32[N,4]\n",
     "  - {op: s, type: split" BACKWARD ", in: [a], out: [b, c], attrs: {axis: 1}}\n"
     "  - {op: o, type: cast" BACKWARD ", in: [dw], out: [g]}\n",
     NULL},
    {"  a: input f32[3,N,4]\n  c: f32[3,N,4]\n",
     "  - {op: s, type: relu" BACKWARD ", in: [a], out: [c]}\n"
     "  - {op: o, type: cast" BACKWARD ", in: [dw], out: [g]}\n",
     "op s: the samples of a are not its rows"},
    {"  a: input f32[N+1,4]\n  c: f32[N+1,4]\n",
     "  - {op: s, type: relu" BACKWARD ", in: [a], out: [c]}\n"
     "  - {op: o, type: cast" BACKWARD ", in: [dw], out: [g]}\n",
     "op s: the samples of a are not its rows"},
};
enum { N_CASES = sizeof cases / sizeof *cases };

START_TEST(only_what_adds_up_is_made_of_sums) {
  planc_graph *graph = with_ops(cases[_i].tensors, cases[_i].ops);
  planc_status status = check(graph);
  if (cases[_i].why) {
    ck_assert_int_eq(planc_status_code(status), PLANC_BAD_INPUT);
    ck_assert_msg(strstr(planc_status_message(status), cases[_i].why), "%s", planc_status_message(status));
  } else {
    ck_assert_msg(!status, "%s", status ? planc_status_message(status) : "");
  }
  planc_status_free(status);
  planc_graph_free(graph);
}
END_TEST

/* One part is the whole. */
START_TEST(one_part_is_not_judged) {
  planc_graph *graph = with_ops("", "  - {op: o, type: mul" BACKWARD ", in: [dw, dw], out: [g]}\n");
  static const int64_t whole[] = {4}, halves[] = {2, 2};
  planc_job job = {.graph = graph, .batch = 4, .n_rounds = 1, .rounds = whole, .iterations = 1};
  planc_trace *trace;
  ok(planc_expand(&job, 1, &trace));
  planc_trace_free(trace);
  job.replicas = 2;
  assert_fails(planc_expand(&job, 1, &trace), PLANC_BAD_INPUT, "op o: what it makes of dw");
  job = (planc_job){.graph = graph, .batch = 4, .n_rounds = 2, .rounds = halves, .iterations = 1};
  assert_fails(planc_expand(&job, 1, &trace), PLANC_BAD_INPUT, "op o: what it makes of dw");
  assert_fails(planc_check_rounds(graph), PLANC_BAD_INPUT, "op o: what it makes of dw");
  planc_graph_free(graph);
}
END_TEST

/* Ops that couple samples say so, and what they make of them is of the part alone. */
START_TEST(graphs_of_the_library_run_in_parts) {
  static const char *const names[] = {
      "graphs/lenet-digits.yaml", "graphs/resnet50.yaml",   "graphs/tiny-transformer.yaml", "graphs/vgg16.yaml",
      "graphs/bert-base.yaml",    "graphs/gnmt-small.yaml", "graphs/rhn-small.yaml"};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    planc_graph *graph;
    const char *derived;
    ok(planc_graph_prepare(names[k], NULL, false, &graph, &derived));
    ok(check(graph));
    planc_graph_free(graph);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("parts");
  TCase *all = tcase_create("parts");
  tcase_add_loop_test(all, only_what_adds_up_is_made_of_sums, 0, N_CASES);
  tcase_add_test(all, a_graph_without_samples_has_none);
  tcase_add_test(all, one_part_is_not_judged);
  tcase_add_test(all, graphs_of_the_library_run_in_parts);
  suite_add_tcase(suite, all);
  return run_suite(suite);
}
