/* The graph's reader, writer, builder and hash. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/op_place.h"
#include "tests/support/graphtext.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

static void assert_bad_input(planc_status status, const char *message) {
  ck_assert_int_eq(planc_status_code(status), PLANC_BAD_INPUT);
  ck_assert_str_eq(planc_status_message(status), message);
  planc_status_free(status);
}

/* --- Malformed files ---------------------------------------------------------------------------------------------- */

/* Every file of tests/data/graph starts with "# LINE:COLUMN: MESSAGE", the error it must end in. */
START_TEST(malformed_files_are_told_at_their_place) {
  static const char folder[] = "tests/data/graph";
  DIR *dir = opendir(folder);
  ck_assert_ptr_nonnull(dir);
  int files = 0;
  for (const struct dirent *entry; (entry = readdir(dir));) {
    if (!strstr(entry->d_name, ".yaml")) continue;
    char path[512], line[512], expected[1024 + 512];
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_nonnull(fgets(line, sizeof line, file));
    fclose(file);
    line[strcspn(line, "\n")] = '\0';
    snprintf(expected, sizeof expected, "%s:%s", path, line + 2);
    planc_graph *graph;
    planc_status status = planc_graph_read(path, &graph);
    ck_assert_ptr_null(graph);
    assert_bad_input(status, expected);
    files++;
  }
  closedir(dir);
  ck_assert_int_ge(files, 100);
}
END_TEST

START_TEST(malformed_bytes_are_told_at_their_place) {
  static const struct {
    const char *text, *message;
    size_t length;
  } cases[] = {
      {"", "g:1:1: expected a graph, found an empty file", 0},
      {"\n# nothing\n", "g:3:1: expected a graph, found an empty file", 11},
      {"planc-graph: 1\nname: \xff\n", "g:2:7: invalid leading UTF-8 octet", 23},
      {"planc-graph: 1\nname: g\xc3", "g:2:8: incomplete UTF-8 octet sequence", 23},
      {"planc-graph: 1\nname: a\0b\n", "g:2:8: control characters are not allowed", 25},
      {"planc-graph: 1\nname: \"a\\0b\"\n", "g:2:7: the character 0 is not supported", 28},
      {"planc-graph: 1\nname: \x1b[31m\n", "g:2:7: control characters are not allowed", 28},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    planc_graph *graph;
    assert_bad_input(planc_graph_parse(cases[i].text, cases[i].length, "g", &graph), cases[i].message);
  }
  planc_graph *graph;
  assert_bad_input(planc_graph_parse("", ((size_t)1 << 30) + 1, "g", &graph), "g: has more than 1 GiB");
  assert_bad_input(planc_graph_read("tests/data/nowhere", &graph), "tests/data/nowhere: No such file or directory");
  assert_bad_input(planc_graph_read("tests/data", &graph), "tests/data: is a directory");
}
END_TEST

START_TEST(nesting_ends_at_once) {
  enum { DEPTH = 1 << 20 };
  char *text = malloc(DEPTH + 32);
  ck_assert_ptr_nonnull(text);
  int length = sprintf(text, "planc-graph: 1\nname: ");
  memset(text + length, '[', DEPTH);
  planc_graph *graph;
  assert_bad_input(planc_graph_parse(text, (size_t)length + DEPTH, "g", &graph), "g:2:7: expected a scalar");
  free(text);
}
END_TEST

static const char sample[] =
    "# comment\n"
    "planc-graph: 1\n"
    "layout: NCHW\n"
    "name: sample\n"
    "outputs: [p]\n"
    "loss: loss\n"
    "batch: 32\n"
    "origin: 'it''s \"free\" \\ text, \xc3\xa9\xe6\xbc\xa2\xf0\x9f\x98\x80'\n"
    "policy: modnn\n"
    "device: k40m\n"
    "tensors:\n"
    "  x: input f32[N,4]\n"
    "  labels: input i64[N]\n"
    "  'w': param f32[3,4]\n"
    "  dw: grad f32[3,4]\n"
    "  m: state f32[3,4]\n"
    "  y: activation f32[N,3]\n"
    "  z: f32[N,3] of y\n"
    "  half: u8[6N] of z @ 6N\n"
    "  quarter: u8[3N] of half @ 9N\n"
    "  p: f32[N,3]\n"
    "  loss: f32[]\n"
    "  t: temp bool[400N+16,2]\n"
    "ops:\n"
    "  - {op: fc, type: linear, out: [y], in: [x, w], phase: forward, flops: 24N, traffic: 1, loop: l, step: 2}\n"
    "  - op: relu\n"
    "    type: relu\n"
    "    in: [y]\n"
    "    out: [z]\n"
    "    flops: 3+N\n"
    "  - {op: view, type: my.view, in: [quarter], out: [t], attrs: {b: [], a: [1, -2], r: 2.50, e: 1e-30, i: -7,\n"
    "     s: text, q: 'a, b', n: \"12\", z: 1.2.3, t: true, u: ''}, flags: [stochastic], traffic: 100N, workspace: "
    "9+2N}\n"
    "  - {op: xent, type: softmax_xent, in: [z, labels], out: [loss, p], flags: [batch-mean, stochastic]}\n"
    "  - {op: wgrad, type: linear_wgrad, phase: backward, in: [x, y], out: [dw], flags: [accumulates]}\n"
    "  - {op: step, type: momentum, phase: optimizer, in: [w, dw, m], out: [w, m], attrs: {momentum: 0.9, lr: 1}}\n";

static const char canonical[] =
    "planc-graph: 1\n"
    "name: sample\n"
    "batch: 32\n"
    "device: k40m\n"
    "policy: modnn\n"
    "origin: \"it's \\\"free\\\" \\\\ text, \\u00E9\\u6F22\\U0001F600\"\n"
    "loss: loss\n"
    "outputs: [p]\n"
    "tensors:\n"
    "  x: input f32[N,4]\n"
    "  labels: input i64[N]\n"
    "  w: param f32[3,4]\n"
    "  dw: grad f32[3,4]\n"
    "  m: state f32[3,4]\n"
    "  y: f32[N,3]\n"
    "  z: f32[N,3] of y\n"
    "  half: u8[6N] of y @ 6N\n"
    "  quarter: u8[3N] of y @ 9N\n"
    "  p: f32[N,3]\n"
    "  loss: f32[]\n"
    "  t: temp bool[16+400N,2]\n"
    "ops:\n"
    "  - {op: fc, type: linear, in: [x, w], out: [y], traffic: 1, loop: l, step: 2}\n"
    "  - {op: relu, type: relu, in: [y], out: [z], flops: 3+N}\n"
    "  - {op: view, type: my.view, in: [quarter], out: [t], attrs: {a: [1, -2], b: [], e: 1e-30, i: -7, n: \"12\", "
    "q: \"a, b\", r: 2.5, s: text, t: true, u: \"\", z: 1.2.3}, traffic: 100N, workspace: 9+2N, flags: [stochastic]}\n"
    "  - {op: xent, type: softmax_xent, in: [z, labels], out: [loss, p], flags: [stochastic]}\n"
    "  - {op: wgrad, type: linear_wgrad, phase: backward, in: [x, y], out: [dw]}\n"
    "  - {op: step, type: momentum, phase: optimizer, in: [w, dw, m], out: [w, m], attrs: {lr: 1, momentum: 0.9}}\n";

/* "g:LINE:COLUMN: ..." */
static bool has_place(const char *message) {
  char *end;
  if (strncmp(message, "g:", 2) != 0 || strtol(message + 2, &end, 10) < 1 || *end != ':') return false;
  return strtol(end + 1, &end, 10) >= 1 && strncmp(end, ": ", 2) == 0;
}

START_TEST(no_truncation_or_mutation_breaks_the_reader) {
  uint64_t random = 1;
  size_t length = strlen(sample), rejected = 0;
  enum { MUTANTS = 20000 };
  for (size_t i = 0; i < length + MUTANTS; i++) {
    char text[sizeof sample];
    memcpy(text, sample, sizeof sample);
    size_t used = i < length ? i : length;
    for (int64_t k = i < length ? 0 : 1 + rand_below(&random, 3); k > 0; k--) {
      static const char symbols[] = "\n [],{}:-#&*!|>'\"%@`N+0\\";
      text[rand_below(&random, (int64_t)length)] = symbols[rand_below(&random, (int64_t)sizeof symbols)];
    }
    planc_graph *graph;
    planc_status status = planc_graph_parse(text, used, "g", &graph);
    ck_assert_int_eq(!status, graph != NULL);
    if (status) {
      ck_assert_int_eq(planc_status_code(status), PLANC_BAD_INPUT);
      ck_assert_msg(has_place(planc_status_message(status)), "%s", planc_status_message(status));
      rejected++;
    }
    planc_status_free(status);
    planc_graph_free(graph);
  }
  ck_assert_uint_gt(rejected, MUTANTS / 2);
}
END_TEST

/* --- Reading and writing ------------------------------------------------------------------------------------------ */

START_TEST(a_file_is_read_as_it_says) {
  planc_graph *g = graph_of(sample);
  ck_assert_str_eq(g->name, "sample");
  ck_assert_str_eq(g->origin, "it's \"free\" \\ text, \xc3\xa9\xe6\xbc\xa2\xf0\x9f\x98\x80");
  ck_assert(g->batch == 32 && g->layout == PLANC_LAYOUT_NCHW && !g->optimizer);
  ck_assert(g->n_tensors == 12 && g->n_storages == 9 && g->n_ops == 6 && g->n_outputs == 1);
  ck_assert_str_eq(g->tensors[g->loss].name, "loss");
  ck_assert_str_eq(g->tensors[g->outputs[0]].name, "p");

  const planc_tensor *y = &g->tensors[5], *quarter = &g->tensors[8], *t = &g->tensors[11];
  ck_assert(quarter->storage == y->storage && g->storages[y->storage].tensor == 5);
  ck_assert(quarter->offset.per_sample == 9 && quarter->bytes.per_sample == 3 && quarter->offset.fixed == 0);
  ck_assert(t->bytes.fixed == 32 && t->bytes.per_sample == 800);
  ck_assert_int_eq(g->storages[t->storage].kind, PLANC_KIND_temp);

  const planc_op *fc = &g->ops[0], *view = &g->ops[2];
  ck_assert(fc->flops.per_sample == 24 && fc->traffic.fixed == 1 && fc->loop_step == 2);
  ck_assert_str_eq(fc->loop, "l");
  ck_assert_int_eq(g->ops[1].traffic.per_sample, 24);
  ck_assert_int_eq(g->ops[3].flags, PLANC_OP_BATCH_MEAN | PLANC_OP_STOCHASTIC);
  ck_assert_int_eq(g->ops[4].flags, PLANC_OP_ACCUMULATES);
  ck_assert_int_eq(planc_op_int(view, "a", 1, 5), -2);
  ck_assert_int_eq(planc_op_int(view, "a", 2, 5), 5);
  ck_assert_int_eq(planc_op_int(view, "s", 0, 5), 5);
  ck_assert_int_eq(planc_op_int(view, "i", 0, 5), -7);
  ck_assert_double_eq(planc_op_real(view, "r", 0), 2.5);
  ck_assert_double_eq(planc_op_real(view, "i", 0), -7);
  ck_assert_double_eq(planc_op_real(view, "nothing", 0.5), 0.5);
  ck_assert_int_eq(planc_op_attr(view, "n")->type, PLANC_ATTR_STRING);
  ck_assert_str_eq(planc_op_attr(view, "z")->value.string, "1.2.3");
  ck_assert_ptr_null(planc_op_attr(view, "c"));
  ck_assert(planc_graph_has_backward(g) && !planc_graph_is_batch_coupled(g));
  planc_graph_free(g);
}
END_TEST

START_TEST(writing_is_canonical) {
  planc_graph *g = graph_of(sample), *again = graph_of(canonical);
  char *text = text_of(g), *text_again = text_of(again);
  ck_assert_str_eq(text, canonical);
  ck_assert_str_eq(text_again, canonical);
  free(text);
  free(text_again);
  planc_graph_free(g);
  planc_graph_free(again);
}
END_TEST

START_TEST(laws_are_values_until_they_overflow) {
  ck_assert_int_eq(planc_law_at((planc_law){3, 50}, 7), 353);
  ck_assert_int_eq(planc_law_at((planc_law){0, INT64_MAX / 2}, 2), INT64_MAX - 1);
  ck_assert_int_eq(planc_law_at((planc_law){1, INT64_MAX / 2}, 2), INT64_MAX);
  ck_assert_int_eq(planc_law_at((planc_law){2, INT64_MAX / 2}, 2), -1);
  ck_assert_int_eq(planc_law_at((planc_law){0, INT64_MAX / 2}, 3), -1);
}
END_TEST

/* --- Where an op comes from --------------------------------------------------------------------------------------- */

START_TEST(a_recorded_op_has_its_users_line) {
  static const char *const places[][2] = {
      {"call: aten.mm, line: '/home/me/train.py:41'", " (train.py:41)"},
      {"call: aten.mm, line: 'train.py:41 (backward)'", " (train.py:41, backward)"},
      {"call: aten.mm, line: '/a (b)/train.py:41 (backward)'", " (train.py:41, backward)"},
      {"call: aten.mm, line: ''", ""},
      {"call: aten.mm, line: 41", ""},
      {"line: 'train.py:41'", ""},
      {"call: aten.mm", ""}};
  char text[512], place[PL_PLACE_TEXT];
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    snprintf(text, sizeof text,
             "planc-graph: 1\nname: g\ntensors: {x: 'input f32[N]', y: 'f32[N]'}\nops:\n"
             "  - {op: a, type: aten.mm, in: [x], out: [y], attrs: {%s}}\n",
             places[i][0]);
    planc_graph *g = graph_of(text);
    ck_assert_str_eq(pl_op_place(&g->ops[0], place), places[i][1]);
    ck_assert_str_eq(pl_op_place_by_name(g, "a", place), places[i][1]);
    ck_assert_str_eq(pl_op_place_by_name(g, "b", place), "");
    planc_graph_free(g);
  }
}
END_TEST

/* --- The hash ----------------------------------------------------------------------------------------------------- */

START_TEST(the_hash_is_of_the_content) {
  static const char *const same[][2] = {{"# comment\n", ""},
                                        {"batch: 32\n", "batch: 33\n"},
                                        {"policy: modnn\n", ""},
                                        {"name: sample\n", "name: other\n"}};
  static const char *const changes[][2] = {{"layout: NCHW", "layout: NHWC"},
                                           {"outputs: [p]\n", ""},
                                           {"loss: loss\n", ""},
                                           {"loss: loss\n", "loss: z\n"},
                                           {"op: relu\n", "op: relv\n"},
                                           {"flops: 3+N", "flops: 4+N"},
                                           {"flops: 3+N", "flops: 3+2N"},
                                           {"traffic: 1,", "traffic: 2,"},
                                           {"workspace: 9+2N", "workspace: 8+2N"},
                                           {", workspace: 9+2N", ""},
                                           {"step: 2}", "step: 3}"},
                                           {"loop: l,", "loop: k,"},
                                           {"[1, -2]", "[1, -3]"},
                                           {"r: 2.50", "r: 2.51"},
                                           {"i: -7", "i: -8"},
                                           {"i: -7", "i: -7.0"},
                                           {"s: text", "s: test"},
                                           {"[stochastic], traffic", "[], traffic"},
                                           {"temp bool", "bool"},
                                           {"temp bool", "temp u8"},
                                           {"@ 9N", "@ 8N"},
                                           {"half: u8[6N]", "half: bool[6N]"},
                                           {"[400N+16,2]", "[2,400N+16]"},
                                           {"type: my.view", "type: my.vieW"},
                                           {"out: [t], attrs", "out: [t], effects: [m], attrs"},
                                           {"in: [quarter]", "in: [half]"}};
  planc_graph *first = graph_of(sample), *g;
  ck_assert(planc_graph_equal(first, first));
  size_t n_same = sizeof same / sizeof *same, n_changes = sizeof changes / sizeof *changes;
  for (size_t i = 0; i < n_same + n_changes; i++) {
    const char *const *change = i < n_same ? same[i] : changes[i - n_same];
    const char *at = strstr(sample, change[0]);
    char text[sizeof sample + 64];
    ck_assert_ptr_nonnull(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - sample), sample, change[1], at + strlen(change[0]));
    g = graph_of(text);
    ck_assert_msg((planc_graph_hash(g) == planc_graph_hash(first)) == (i < n_same), "%s to %s", change[0], change[1]);
    ck_assert_msg(planc_graph_equal(first, g) == (i < n_same), "%s to %s", change[0], change[1]);
    ck_assert_msg(planc_graph_equal(g, first) == (i < n_same), "%s to %s", change[0], change[1]);
    planc_graph_free(g);
  }
  planc_graph_free(first);
}
END_TEST

/* --- The builder -------------------------------------------------------------------------------------------------- */

START_TEST(the_builder_names_what_is_at_fault) {
  planc_graph_builder *builder;
  planc_graph *graph;
  int32_t x, y, op, tensor;
  const planc_law none = {0}, four = {4, 0}, minus = {-1, 0}, derived = {-1, -1};
  ok(planc_graph_builder_new(&builder));
  assert_bad_input(planc_graph_builder_finish(builder, &graph, &op, &tensor), "the graph has no name");
  assert_bad_input(planc_graph_builder_header(builder, "g", PLANC_LAYOUT_NCHW, 0, NULL, NULL, NULL, "\xff"),
                   "origin is not UTF-8");
  ok(planc_graph_builder_header(builder, "g", PLANC_LAYOUT_NCHW, 0, NULL, NULL, NULL, NULL));
  ok(planc_graph_builder_tensor(builder, "x", PLANC_KIND_input, PLANC_DTYPE_f32, 1, &four, -1, none, &x));
  ok(planc_graph_builder_tensor(builder, "y", PLANC_KIND_temp, PLANC_DTYPE_f32, 1, &four, -1, none, &y));
  assert_bad_input(
      planc_graph_builder_tensor(builder, "z", PLANC_KIND_temp, PLANC_DTYPE_f32, 1, &minus, -1, none, NULL),
      "tensor z: dimension 0 is negative");
  assert_bad_input(planc_graph_builder_tensor(builder, "z", PLANC_KIND_temp, PLANC_DTYPE_f32, 1, &four, 2, none, NULL),
                   "tensor z: there is no tensor 2");
  assert_bad_input(planc_graph_builder_tensor(builder, "z", PLANC_KIND_temp, PLANC_DTYPE_f32, 9, &four, -1, none, NULL),
                   "tensor z: rank 9 is not from 0 to 8");
  assert_bad_input(planc_graph_builder_output(builder, 2), "there is no tensor 2");
  ck_assert_int_eq(planc_graph_builder_find(builder, "y"), y);
  ck_assert_int_eq(planc_graph_builder_find(builder, "z"), -1);

  char name[] = "a";
  planc_op a = {.name = name, .type = "t.t", .n_in = 1, .in = &x, .flops = derived, .traffic = derived};
  ok(planc_graph_builder_op(builder, &a));
  assert_bad_input(planc_graph_builder_op(builder, &a), "op a is given twice");
  *name = 'b';
  planc_op b = {.name = name, .type = "t.t", .n_in = 1, .in = &y, .flops = {-1, 0}, .traffic = derived};
  assert_bad_input(planc_graph_builder_op(builder, &b), "op b: FLOPs are negative");
  planc_attr attrs[] = {{.key = "k", .type = PLANC_ATTR_REAL, .value.real = INFINITY}};
  b.flops = derived;
  b.n_attrs = 1;
  b.attrs = attrs;
  assert_bad_input(planc_graph_builder_op(builder, &b), "op b: attribute k is not finite");
  b.n_attrs = 0;
  ok(planc_graph_builder_op(builder, &b));
  ok(planc_graph_builder_loss(builder, y));
  assert_bad_input(planc_graph_builder_finish(builder, &graph, &op, &tensor), "op b: tensor y is never produced");
  ck_assert(op == 1 && tensor == -1 && !graph);
  planc_graph_builder_free(builder);
}
END_TEST

START_TEST(a_finished_builder_is_empty) {
  planc_graph_builder *builder;
  planc_graph *graphs[2];
  ok(planc_graph_builder_new(&builder));
  for (int i = 0; i < 2; i++) {
    int32_t y, op, tensor;
    planc_op a = {.name = "a", .type = "t.t", .n_out = 1, .out = &y, .flops = {-1, -1}, .traffic = {-1, -1}};
    planc_law size = {4, i};
    ok(planc_graph_builder_header(builder, "g", PLANC_LAYOUT_NCHW, 0, NULL, NULL, NULL, NULL));
    ok(planc_graph_builder_tensor(builder, "y", PLANC_KIND_temp, PLANC_DTYPE_f32, 1, &size, -1, (planc_law){0}, &y));
    ok(planc_graph_builder_op(builder, &a));
    ok(planc_graph_builder_loss(builder, y));
    ok(planc_graph_builder_finish(builder, &graphs[i], &op, &tensor));
    ck_assert(op == -1 && tensor == -1);
  }
  planc_graph_builder_free(builder);
  ck_assert_int_eq(graphs[0]->ops[0].traffic.fixed, 16);
  ck_assert_int_eq(graphs[1]->ops[0].traffic.per_sample, 4);
  planc_graph_free(graphs[0]);
  planc_graph_free(graphs[1]);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("graph");
  TCase *cases = tcase_create("all");
  tcase_set_timeout(cases, 60);
  tcase_add_test(cases, malformed_files_are_told_at_their_place);
  tcase_add_test(cases, malformed_bytes_are_told_at_their_place);
  tcase_add_test(cases, nesting_ends_at_once);
  tcase_add_test(cases, no_truncation_or_mutation_breaks_the_reader);
  tcase_add_test(cases, a_file_is_read_as_it_says);
  tcase_add_test(cases, writing_is_canonical);
  tcase_add_test(cases, laws_are_values_until_they_overflow);
  tcase_add_test(cases, a_recorded_op_has_its_users_line);
  tcase_add_test(cases, the_hash_is_of_the_content);
  tcase_add_test(cases, the_builder_names_what_is_at_fault);
  tcase_add_test(cases, a_finished_builder_is_empty);
  suite_add_tcase(suite, cases);
  return run_suite(suite);
}
