/* Expand's rules, one by one, on small graphs checked by hand. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "planc/trace.h"
#include "tests/support/unit.h"

static planc_graph *parse(const char *text) {
  planc_graph *graph = NULL;
  ok(planc_graph_parse(text, strlen(text), "test.yaml", &graph));
  return graph;
}

/* Expands `graph` into rounds of 2 samples. */
static planc_trace *expand_rounds(const planc_graph *graph, int32_t n_rounds, int32_t iterations) {
  int64_t rounds[4] = {2, 2, 2, 2};
  planc_job job = {
      .graph = graph, .batch = INT64_C(2) * n_rounds, .n_rounds = n_rounds, .rounds = rounds, .iterations = iterations};
  planc_trace *trace = NULL;
  ok(planc_expand(&job, 1, &trace));
  return trace;
}

/* The trace on one line: an instance is its op, + where it accumulates, add-op for ACCUMULATE; an access is
 * (storage read>write), ~ before a temporary, ! after a side effect. */
static const char *line(const planc_trace *trace) {
  static char text[8192];
  size_t length = 0;
  text[0] = '\0';
  for (int32_t i = 0; i < trace->n_instances; i++) {
    const planc_instance *instance = &trace->instances[i];
    length += (size_t)snprintf(text + length, sizeof text - length, "%s%s%s%s", i ? " " : "",
                               instance->role == PLANC_ROLE_ACCUMULATE ? "add-" : "", planc_trace_op(trace, i)->name,
                               instance->accumulates ? "+" : "");
    for (int32_t a = instance->first_access; a < instance->first_access + instance->n_accesses; a++) {
      const planc_access *access = &trace->accesses[a];
      const planc_buffer *buffer = &trace->buffers[access->buffer];
      char read[12] = "", write[12] = "";
      if (access->read >= 0) snprintf(read, sizeof read, "%d", access->read);
      if (access->write >= 0) snprintf(write, sizeof write, ">%d", access->write);
      bool temporary = buffer->kind == PLANC_KIND_temp;
      length +=
          (size_t)snprintf(text + length, sizeof text - length, "(%s%s %s%s%s)", temporary ? "~" : "",
                           planc_trace_buffer_name(trace, access->buffer), read, write, access->effect ? "!" : "");
    }
    ck_assert_uint_lt(length, sizeof text);
  }
  return text;
}

static void expect(const char *tensors, const char *ops, int32_t n_rounds, int32_t iterations, const char *expected) {
  char text[4096];
  snprintf(text, sizeof text, "planc-graph: 1\nname: case\ntensors:\n%s\nops:\n%s\n", tensors, ops);
  planc_graph *graph = parse(text);
  planc_trace *trace = expand_rounds(graph, n_rounds, iterations);
  ck_assert_str_eq(line(trace), expected);
  planc_trace_free(trace);
  planc_graph_free(graph);
}

START_TEST(a_single_accumulating_writer_adds_in_place) {
  expect("  x: input f32[N,4]\n  w: param f32[4]\n  y: f32[N,4]\n  g: grad f32[4]",
         "  - {op: f, type: t.f, in: [x, w], out: [y]}\n"
         "  - {op: b, type: t.b, phase: backward, in: [x, y], out: [g], flags: [accumulates]}\n"
         "  - {op: s, type: t.s, phase: optimizer, in: [w, g], out: [w]}",
         3, 2,
         "f(x 0)(w 0)(y >1) b(x 0)(y 1)(g >1) f(x 0)(w 0)(y >1) b+(x 0)(y 1)(g 1>2) "
         "f(x 0)(w 0)(y >1) b+(x 0)(y 1)(g 2>3) s(w 0>1)(g 3) "
         "f(x 0)(w 1)(y >1) b(x 0)(y 1)(g >1) f(x 0)(w 1)(y >1) b+(x 0)(y 1)(g 1>2) "
         "f(x 0)(w 1)(y >1) b+(x 0)(y 1)(g 2>3) s(w 1>2)(g 3)");
}
END_TEST

START_TEST(a_writer_that_cannot_add_goes_through_a_temporary) {
  expect("  x: input f32[N,4]\n  w: param f32[4]\n  g: grad f32[4]",
         "  - {op: b, type: t.b, phase: backward, in: [x], out: [g]}\n"
         "  - {op: s, type: t.s, phase: optimizer, in: [w, g], out: [w]}",
         3, 1, "b(x 0)(g >1) b(x 0)(~g >1) add-b(~g 1)(g 1>2) b(x 0)(~g >1) add-b(~g 1)(g 2>3) s(w 0>1)(g 3)");
}
END_TEST

START_TEST(a_gradient_that_is_read_in_the_round_goes_through_a_temporary) {
  expect("  x: input f32[N,4]\n  g: grad f32[4]\n  n: f32[]",
         "  - {op: b, type: t.b, phase: backward, in: [x], out: [g], flags: [accumulates]}\n"
         "  - {op: m, type: t.m, phase: backward, in: [g], out: [n]}\n"
         "  - {op: z, type: t.z, phase: backward, in: [x]}",
         2, 1, "b(x 0)(g >1) m(g 1)(n >1) z(x 0) b(x 0)(~g >1) m(~g 1)(n >1) add-b(~g 1)(g 1>2) z(x 0)");
}
END_TEST

START_TEST(an_op_accumulates_all_its_gradients_or_none) {
  const char *tensors = "  x: input f32[N,4]\n  g: grad f32[4]\n  h: grad f32[4]\n  y: f32[N,4]";
  const char *both = "  - {op: b, type: t.b, phase: backward, in: [x], out: [y, g, h], flags: [accumulates]}";
  expect(tensors, both, 2, 1, "b(x 0)(y >1)(g >1)(h >1) b+(x 0)(g 1>2)(h 1>2)(y >1)");
  char ops[512];
  snprintf(ops, sizeof ops, "%s\n  - {op: c, type: t.c, phase: backward, in: [x, h], out: [h]}", both);
  expect(tensors, ops, 2, 1,
         "b(x 0)(y >1)(g >1)(h >1) c(x 0)(h 1>2) "
         "b(x 0)(y >1)(~g >1)(~h >1) add-b(~g 1)(g 1>2) c(x 0)(~h 1>2) add-c(~h 2)(h 2>3)");
}
END_TEST

START_TEST(several_writers_of_a_gradient_go_through_a_temporary) {
  expect("  x: input f32[N,4]\n  g: grad f32[4]\n  lo: f32[2] of g\n  hi: f32[2] of g @ 8",
         "  - {op: b, type: t.b, phase: backward, in: [x], out: [lo], flags: [accumulates]}\n"
         "  - {op: c, type: t.c, phase: backward, in: [x], out: [hi], flags: [accumulates]}\n"
         "  - {op: s, type: t.s, phase: optimizer, in: [g]}",
         2, 1, "b(x 0)(g >1) c(x 0)(g 1>2) b(x 0)(~g >1) c(x 0)(~g 1>2) add-c(~g 2)(g 2>3) s(g 3)");
}
END_TEST

START_TEST(statistics_are_updated_every_round_as_a_side_effect) {
  const char *text =
      "planc-graph: 1\nname: case\ntensors:\n  x: input f32[N,4]\n  m: state f32[4]\n  y: f32[N,4]\nops:\n"
      "  - {op: f, type: t.f, in: [x], out: [y], effects: [m]}\n"
      "  - {op: r, type: t.r, in: [y, m], out: [y]}\n"
      "  - {op: u, type: t.u, in: [m], out: [m]}\n";
  planc_graph *graph = parse(text);
  planc_trace *trace = expand_rounds(graph, 2, 1);
  ck_assert_str_eq(line(trace),
                   "f(x 0)(m 0>1!)(y >1) r(y 1>2)(m 1) u(m 1>2) f(x 0)(m 2>3!)(y >1) r(y 1>2)(m 3) u(m 3>4)");
  for (int32_t i = 0; i < 6; i++) ck_assert_int_eq(planc_trace_recomputable(trace, i), i % 3 != 2);
  planc_trace_free(trace);
  planc_graph_free(graph);
}
END_TEST

START_TEST(a_partial_write_keeps_the_rest) {
  expect("  x: input f32[N,4]\n  y: f32[N,8]\n  lo: f32[N,4] of y\n  hi: f32[N,4] of y @ 16N",
         "  - {op: a, type: t.a, in: [x], out: [lo]}\n"
         "  - {op: b, type: t.b, in: [lo], out: [hi]}\n"
         "  - {op: c, type: t.c, in: [x], out: [y]}",
         1, 1, "a(x 0)(y >1) b(y 1>2) c(x 0)(y >3)");
}
END_TEST

START_TEST(buffers_last_as_long_as_their_kind_says) {
  const char *text =
      "planc-graph: 1\nname: case\nloss: l\noutputs: [n]\ntensors:\n  x: input f32[N,4]\n  w: param f32[4]\n"
      "  g: grad f32[4]\n  l: f32[]\n  n: temp f32[]\n  unused: f32[N]\nops:\n"
      "  - {op: f, type: t.f, in: [x, w], out: [l]}\n"
      "  - {op: b, type: t.b, phase: backward, in: [x], out: [g], flags: [accumulates]}\n"
      "  - {op: n, type: t.n, phase: optimizer, in: [g], out: [n]}\n"
      "  - {op: s, type: t.s, phase: optimizer, in: [w, g, n], out: [w]}\n";
  planc_graph *graph = parse(text);
  planc_trace *trace = expand_rounds(graph, 3, 2);
  int32_t count[6] = {0};
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    count[buffer->storage]++;
    ck_assert_int_eq(buffer->iteration >= 0, buffer->storage != 1);
    ck_assert_int_eq(buffer->round >= 0, buffer->storage == 0 || buffer->storage == 3);
    ck_assert_int_eq((buffer->flags & PLANC_BUFFER_RESULT) != 0, buffer->storage == 3 || buffer->storage == 4);
    ck_assert_int_eq(buffer->bytes, buffer->storage == 0 ? 32 : buffer->storage < 3 ? 16 : 4);
  }
  const int32_t expected[] = {6, 1, 2, 6, 2, 0};
  for (int32_t s = 0; s < 6; s++) ck_assert_int_eq(count[s], expected[s]);
  planc_trace_free(trace);
  planc_graph_free(graph);
}
END_TEST

/* --- What expand refuses ------------------------------------------------------------------------------------------ */

START_TEST(jobs_that_make_no_sense_are_refused) {
  planc_graph *graph = parse(
      "planc-graph: 1\nname: case\ntensors:\n  x: input f32[N,4]\n  y: f32[N,4]\n  g: grad f32[4]\nops:\n"
      "  - {op: f, type: t.f, in: [x], out: [y]}\n"
      "  - {op: e, type: t.e, in: [x]}\n"
      "  - {op: b, type: t.b, phase: backward, in: [x, y], out: [g]}\n"
      "  - {op: c, type: t.c, phase: backward, in: [x], out: [y]}\n");
  int64_t rounds[] = {2, 2};
  int32_t order[] = {1, 0, 2, 3};
  planc_job good = {.graph = graph, .batch = 4, .n_rounds = 2, .rounds = rounds, .iterations = 1, .order = order};
  planc_trace *trace;
  ok(planc_expand(&good, 1, &trace));
  planc_trace_free(trace);

  assert_fails(planc_expand(&good, 0, &trace), PLANC_BAD_INPUT, "no job");
  ck_assert_ptr_null(trace);
  planc_job job = good;
  job.iterations = 0;
  assert_fails(planc_expand(&job, 1, &trace), PLANC_BAD_INPUT, "0 iterations");
  job = good;
  job.n_rounds = 0;
  assert_fails(planc_expand(&job, 1, &trace), PLANC_BAD_INPUT, "0 rounds");
  job = good;
  job.batch = 5;
  assert_fails(planc_expand(&job, 1, &trace), PLANC_BAD_INPUT, "the rounds have 4 samples, the batch 5");
  job = good;
  job.rounds = (int64_t[]){4, 0};
  assert_fails(planc_expand(&job, 1, &trace), PLANC_BAD_INPUT, "round 1 has 0 samples");
  job.rounds = (int64_t[]){INT64_MAX, INT64_MAX};
  assert_fails(planc_expand(&job, 1, &trace), PLANC_BAD_INPUT, "the batch 4");
  job.batch = INT64_MAX;
  job.n_rounds = 1;
  assert_fails(planc_expand(&job, 1, &trace), PLANC_BAD_INPUT, "the size of x at batch 9223372036854775807 overflows");
  job = good;
  job.iterations = INT32_MAX;
  assert_fails(planc_expand(&job, 1, &trace), PLANC_BAD_INPUT, "more than 2147483647 accesses");

  static const struct {
    int32_t order[4];
    const char *why;
  } bad[] = {{{0, 1, 2, 2}, "position 3: 2 is not"},
             {{0, 1, 2, 4}, "position 3: 4 is not"},
             {{-1, 1, 2, 3}, "position 0: -1 is not"},
             {{0, 2, 1, 3}, "op e of the forward phase comes after a backward op"},
             {{1, 2, 0, 3}, "op b comes before a write of y that it must follow"},
             {{0, 1, 3, 2}, "op b comes after a write of y that it must precede"}};
  for (int32_t k = 0; k < 6; k++) {
    job = good;
    job.order = bad[k].order;
    assert_fails(planc_expand(&job, 1, &trace), PLANC_BAD_INPUT, bad[k].why);
  }
  planc_job jobs[] = {good, job};
  assert_fails(planc_expand(jobs, 2, &trace), PLANC_BAD_INPUT, "job 1: order: op b");
  planc_graph_free(graph);
}
END_TEST

START_TEST(a_graph_that_rounds_would_break_is_not_split) {
  static const char *const cases[][2] = {
      {"  - {op: f, type: t.f, in: [x], out: [y]}\n  - {op: s, type: t.s, phase: optimizer, in: [y]}\n",
       "op s runs once for all rounds but touches y"},
      {"  - {op: s, type: t.s, phase: optimizer, in: [x]}\n", "op s runs once for all rounds but touches x"},
      {"  - {op: f, type: t.f, in: [h], out: [y]}\n",
       "op f: the rounds share the state h, but its size depends on the batch"}};
  for (int32_t k = 0; k < 3; k++) {
    char text[1024];
    snprintf(text, sizeof text,
             "planc-graph: 1\nname: case\ntensors:\n  x: input f32[N,4]\n  y: f32[N,4]\n"
             "  h: state f32[N,4]\nops:\n%s",
             cases[k][0]);
    planc_graph *graph = parse(text);
    planc_trace_free(expand_rounds(graph, 1, 2));
    int64_t rounds[] = {1, 1};
    planc_job job = {.graph = graph, .batch = 2, .n_rounds = 2, .rounds = rounds, .iterations = 1};
    planc_trace *trace;
    assert_fails(planc_expand(&job, 1, &trace), PLANC_BAD_INPUT, cases[k][1]);
    assert_fails(planc_check_rounds(graph), PLANC_BAD_INPUT, cases[k][1]);
    planc_graph_free(graph);
  }
}
END_TEST

/* Of a gradient of 2^60 bytes seven other replicas' have room in 2^63, eight others' have not. */
START_TEST(what_the_others_send_does_not_overflow) {
  planc_graph *graph = parse(
      "planc-graph: 1\nname: large\ntensors:\n  x: input f32[N]\n  g: grad f32[1073741824,268435456]\nops:\n"
      "  - {op: b, type: t.b, phase: backward, in: [x], out: [g]}\n");
  static const int64_t rounds[] = {1};
  planc_job job = {.graph = graph, .batch = 1, .n_rounds = 1, .rounds = rounds, .iterations = 1, .replicas = 8};
  planc_trace *trace;
  ok(planc_expand(&job, 1, &trace));
  ck_assert_int_eq(trace->buffers[2].bytes, INT64_C(7) << 60);
  planc_trace_free(trace);
  job.replicas = 9;
  assert_fails(planc_expand(&job, 1, &trace), PLANC_BAD_INPUT, "the size of what 8 other replicas send overflows");
  planc_graph_free(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("expand");
  TCase *cases = tcase_create("all");
  tcase_add_test(cases, a_single_accumulating_writer_adds_in_place);
  tcase_add_test(cases, a_writer_that_cannot_add_goes_through_a_temporary);
  tcase_add_test(cases, a_gradient_that_is_read_in_the_round_goes_through_a_temporary);
  tcase_add_test(cases, an_op_accumulates_all_its_gradients_or_none);
  tcase_add_test(cases, several_writers_of_a_gradient_go_through_a_temporary);
  tcase_add_test(cases, statistics_are_updated_every_round_as_a_side_effect);
  tcase_add_test(cases, a_partial_write_keeps_the_rest);
  tcase_add_test(cases, buffers_last_as_long_as_their_kind_says);
  tcase_add_test(cases, jobs_that_make_no_sense_are_refused);
  tcase_add_test(cases, a_graph_that_rounds_would_break_is_not_split);
  tcase_add_test(cases, what_the_others_send_does_not_overflow);
  suite_add_tcase(suite, cases);
  return run_suite(suite);
}
