/* Plans as files: one canonical form, read back exactly, and everything else refused with its place. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planc/check.h"
#include "planc/policy.h"
#include "tests/support/mutate.h"
#include "tests/support/randgraph.h"
#include "tests/support/script.h"
#include "tests/support/unit.h"
#include "util/file.h"

static const char small_path[] = "tests/data/plan/small.plan";

static char *read_small(size_t *out_length) {
  char *text;
  ok(planc_file_read(small_path, 1 << 20, &text, out_length));
  return text;
}

static planc_plan *parse(const char *text, size_t length) {
  planc_plan *plan;
  ok(planc_plan_parse(text, length, "x.plan", &plan));
  return plan;
}

/* --- Equality ----------------------------------------------------------------------------------------------------- */

static void same_instrs(const planc_section *a, const planc_section *b) {
  ck_assert_int_eq(a->n, b->n);
  for (int32_t i = 0; i < a->n; i++) {
    const planc_instr *x = &a->instrs[i], *y = &b->instrs[i];
    ck_assert_int_eq(x->op, y->op);
    ck_assert_int_eq(x->id, y->id);
    ck_assert_int_eq(x->lag, y->lag);
    ck_assert_int_eq(x->recompute, y->recompute);
    ck_assert_int_eq(x->stream, y->stream);
    ck_assert_int_eq(x->aux, y->aux);
    ck_assert_int_eq(x->first_use, y->first_use);
    ck_assert_int_eq(x->address, y->address);
    ck_assert_int_eq(x->bytes, y->bytes);
    ck_assert_int_eq(x->time_ns, y->time_ns);
    ck_assert_int_eq(x->busy_ppm, y->busy_ppm);
  }
}

static void same_header(const planc_plan *a, const planc_plan *b) {
  ck_assert_str_eq(a->name, b->name);
  ck_assert_str_eq(a->policy, b->policy);
  ck_assert_str_eq(a->device.name, b->device.name);
  planc_device x = a->device, y = b->device;
  x.name = y.name = NULL;
  ck_assert_mem_eq(&x, &y, sizeof x);
  ck_assert_mem_eq(&a->predicted, &b->predicted, sizeof a->predicted);
  ck_assert_int_eq(a->budget_bytes, b->budget_bytes);
  ck_assert_int_eq(a->host_budget_bytes, b->host_budget_bytes);
  ck_assert_int_eq(a->arena_bytes, b->arena_bytes);
  ck_assert_int_eq(a->host_arena_bytes, b->host_arena_bytes);
  ck_assert_int_eq(a->gpus, b->gpus);
  ck_assert_uint_eq(a->graph_hash, b->graph_hash);
  ck_assert_int_eq(a->n_events, b->n_events);
  ck_assert_int_eq(a->n_residencies, b->n_residencies);
  ck_assert_int_eq(a->chunk_bytes, b->chunk_bytes);
  ck_assert_int_eq(a->n_mappings, b->n_mappings);
  for (int32_t m = 0; m < a->n_mappings; m++) {
    ck_assert_int_eq(a->mappings[m].first, b->mappings[m].first);
    ck_assert_int_eq(a->mappings[m].n, b->mappings[m].n);
  }
}

static void same_jobs(const planc_plan *a, const planc_plan *b) {
  ck_assert_int_eq(a->n_jobs, b->n_jobs);
  for (int32_t j = 0; j < a->n_jobs; j++) {
    const planc_job *x = &a->jobs[j], *y = &b->jobs[j];
    ck_assert_uint_eq(planc_graph_hash(x->graph), planc_graph_hash(y->graph));
    ck_assert_str_eq(x->graph->name, y->graph->name);
    ck_assert_int_eq(x->graph->layout, y->graph->layout);
    for (int32_t i = 0; i < j; i++) {
      ck_assert_int_eq(x->graph == a->jobs[i].graph, y->graph == b->jobs[i].graph);
    }
    ck_assert_int_eq(x->batch, y->batch);
    ck_assert_int_eq(x->iterations, y->iterations);
    ck_assert_int_eq(x->n_rounds, y->n_rounds);
    ck_assert_mem_eq(x->rounds, y->rounds, (size_t)x->n_rounds * sizeof *x->rounds);
    ck_assert_int_eq(!x->order, !y->order);
    if (x->order) ck_assert_mem_eq(x->order, y->order, (size_t)x->graph->n_ops * sizeof *x->order);
  }
}

static void same_plans(const planc_plan *a, const planc_plan *b) {
  same_header(a, b);
  same_jobs(a, b);
  ck_assert_int_eq(a->n_streams, b->n_streams);
  for (int32_t s = 0; s < a->n_streams; s++) {
    ck_assert_int_eq(a->streams[s].kind, b->streams[s].kind);
    ck_assert_int_eq(a->streams[s].job, b->streams[s].job);
    ck_assert_int_eq(a->streams[s].gpu, b->streams[s].gpu);
  }
  ck_assert_int_eq(a->n_algorithms, b->n_algorithms);
  for (int32_t i = 0; i < a->n_algorithms; i++) ck_assert_str_eq(a->algorithms[i], b->algorithms[i]);
  ck_assert_int_eq(a->n_boundary, b->n_boundary);
  for (int32_t i = 0; i < a->n_boundary; i++) {
    ck_assert_int_eq(a->boundary[i].buffer, b->boundary[i].buffer);
    ck_assert_int_eq(a->boundary[i].address, b->boundary[i].address);
    ck_assert_int_eq(a->boundary[i].home, b->boundary[i].home);
  }
  same_instrs(&a->prologue, &b->prologue);
  same_instrs(&a->body, &b->body);
  same_instrs(&a->epilogue, &b->epilogue);
  ck_assert_int_eq(a->n_uses, b->n_uses);
  if (a->n_uses) ck_assert_mem_eq(a->uses, b->uses, (size_t)a->n_uses * sizeof *a->uses);
}

/* parse(print(p)) == p, and print gives the same bytes again. */
static void round_trip(const planc_plan *plan) {
  char *text, *again;
  size_t length, length_again;
  ok(planc_plan_print(plan, &text, &length));
  ck_assert_uint_eq(strlen(text), length);
  planc_plan *read = parse(text, length);
  same_plans(plan, read);
  ok(planc_plan_print(read, &again, &length_again));
  ck_assert_uint_eq(length, length_again);
  ck_assert_mem_eq(text, again, length);
  planc_plan_free(read);
  free(text);
  free(again);
}

/* --- The form ----------------------------------------------------------------------------------------------------- */

START_TEST(a_file_is_read_as_what_it_says) {
  size_t length, length_again;
  char *text = read_small(&length), *again;
  planc_plan *plan;
  ok(planc_plan_read(small_path, &plan));
  ck_assert_str_eq(plan->policy, "hand");
  ck_assert_int_eq(plan->budget_bytes, 2560);
  ck_assert_int_eq(plan->host_budget_bytes, -1);
  ck_assert_int_eq(plan->device.d2h.bytes_per_second, 2000);
  ck_assert_int_eq(plan->device.d2h.latency_ns, 20);
  ck_assert_int_eq(plan->device.slowdown_ppm, 30000);
  ck_assert_int_eq(plan->predicted.iteration_ns, 1);
  ck_assert_int_eq(plan->predicted.stall_ns, 9);
  ck_assert_int_eq(plan->n_streams, 3);
  ck_assert_int_eq(plan->streams[1].kind, PLANC_STREAM_KIND_h2d);
  ck_assert_str_eq(plan->algorithms[1], "gemm");
  ck_assert_int_eq(plan->boundary[1].buffer, 3);
  ck_assert_int_eq(plan->boundary[1].address, 256);

  const planc_instr *exec = &plan->body.instrs[7];
  ck_assert_int_eq(exec->op, PLANC_INSTR_exec);
  ck_assert_int_eq(exec->recompute, 1);
  ck_assert_int_eq(exec->address, 1536);
  ck_assert_int_eq(exec->bytes, 256);
  ck_assert_int_eq(exec->first_use, 4);
  ck_assert_int_eq(plan->uses[exec->first_use + 2], -1);
  ck_assert_int_eq(plan->body.instrs[0].lag, 1);
  ck_assert_int_eq(plan->body.instrs[23].address, PLANC_USER);
  ck_assert_int_eq(plan->body.instrs[18].aux, 4);

  const planc_graph *graph = plan->jobs[0].graph;
  ck_assert_int_eq(graph->layout, PLANC_LAYOUT_NHWC);
  ck_assert_int_eq(graph->tensors[4].offset.per_sample, 24);
  ck_assert_int_eq(graph->tensors[4].storage, graph->tensors[3].storage);
  ck_assert_int_eq(graph->ops[0].flops.fixed, 3);
  ck_assert_int_eq(graph->ops[0].flops.per_sample, 50);
  ck_assert_uint_eq(graph->ops[0].flags, PLANC_OP_STOCHASTIC | PLANC_OP_BATCH_MEAN);
  ck_assert_str_eq(graph->ops[0].loop, "lstm");
  ck_assert_int_eq(planc_op_int(&graph->ops[0], "list", 1, 0), -2);
  ck_assert(planc_op_real(&graph->ops[0], "small", 0) == 1e-5);
  ck_assert_str_eq(planc_op_attr(&graph->ops[0], "word")->value.string, "same");
  ck_assert_int_eq(planc_op_attr(&graph->ops[0], "whole")->type, PLANC_ATTR_REAL);

  ok(planc_plan_print(plan, &again, &length_again));
  ck_assert_str_eq(text, again);
  ok(planc_check(plan, NULL, NULL));
  planc_plan_free(plan);
  free(text);
  free(again);
}
END_TEST

START_TEST(plans_of_random_graphs_come_back) {
  planc_profile *profile;
  planc_graph *graph;
  ok(planc_profile_read("profiles/k40m.json", &profile));
  ok(randgraph_make((uint64_t)_i, NULL, &graph));
  planc_problem problem = {
      .graph = graph, .profile = profile, .batch = 4, .budget_bytes = INT64_C(1) << 50, .host_budget_bytes = -1};
  static const char *const names[] = {"none", "vdnn-all", "modnn"};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    planc_plan *plan;
    ok(planc_make_plan(&problem, planc_policy_find(names[k]), &plan));
    round_trip(plan);
    planc_plan_free(plan);
  }
  problem.chunk_bytes = 256;
  problem.settings = (planc_settings){.window = 4096,
                                      .workspace_limit = 1,
                                      .window_per_use = true,
                                      .swap_rate = 1 + _i % 1000000,
                                      .no_recompute = _i % 2 == 0};
  for (int paged = 0; paged < 2; paged++) {
    planc_plan *mapped;
    problem.placement = paged ? PLANC_PLACEMENT_PAGED : PLANC_PLACEMENT_VMM;
    ok(planc_make_plan(&problem, planc_policy_find("window"), &mapped));
    ck_assert_int_gt(mapped->n_mappings, 0);
    ck_assert_int_eq(mapped->paged, paged);
    round_trip(mapped);
    planc_plan_free(mapped);
  }
  planc_graph_free(graph);
  planc_profile_free(profile);
}
END_TEST

/* Several jobs, of which two share a graph, with rounds, orders and iterations; names that need escapes. */
START_TEST(jobs_and_names_come_back) {
  planc_graph *graphs[2];
  ok(randgraph_make(1, NULL, &graphs[0]));
  ok(randgraph_make(2, NULL, &graphs[1]));
  static const int64_t whole[] = {6}, uneven[] = {4, 2};
  int32_t *order = malloc((size_t)graphs[1]->n_ops * sizeof *order);
  ck_assert_ptr_nonnull(order);
  for (int32_t o = 0; o < graphs[1]->n_ops; o++) order[o] = o;
  const planc_job jobs[] = {
      {.graph = graphs[0], .batch = 6, .n_rounds = 2, .rounds = uneven, .iterations = 2},
      {.graph = graphs[1], .batch = 6, .n_rounds = 1, .rounds = whole, .iterations = 1, .order = order},
      {.graph = graphs[0], .batch = 6, .n_rounds = 1, .rounds = whole, .iterations = 1},
  };
  planc_plan *plan;
  ok(script_make("prologue\nbody\nepilogue\n", jobs, 3, 1000, 0, &plan));
  plan->name = "a.name/of_2+graphs=1~$^()";
  plan->policy = "-";
  round_trip(plan);
  planc_plan_free(plan);
  free(order);
  planc_graph_free(graphs[0]);
  planc_graph_free(graphs[1]);
}
END_TEST

/* --- Refused ------------------------------------------------------------------------------------------------------ */

/* The first `find` after the start of line `line` becomes `replace`. */
static const struct {
  int line;
  const char *find, *replace, *message;
} edits[] = {
    /* Header. */
    {1, "\"planc-plan\":1", "\"planc-plan\":2", "x.plan:1:15: plan format 2 is not known; this planc reads format 1"},
    {1, "\"name\"", "\"Name\"", "x.plan:1:18: expected ...name\""},
    {1, "{\"planc", "{ \"planc", "x.plan:1:1: no plan"},
    {1, "71786e", "71786E", "x.plan:1:62: expected 16 hexadecimal digits"},
    {1, "71786e", "71786f", "x.plan:1:1: the header's hash 71786f"},
    {1, "\"budget\":2560", "\"budget\":-1", "x.plan:1:84: -1 is not between 0 and 9007199254740992"},
    {1, "\"budget\":2560", "\"budget\":9007199254740993", "x.plan:1:84: the number is beyond 2^53"},
    {1, "\"budget\":2560", "\"budget\":99999999999999999999999", "x.plan:1:84: the number is beyond 2^53"},
    {1, "\"budget\":2560", "\"budget\":02560", "x.plan:1:84: the number is not in its shortest form"},
    {1, "\"budget\":2560", "\"budget\":-0", "x.plan:1:84: the number is not in its shortest form"},
    {1, "\"budget\":2560", "\"budget\":2560.0", "x.plan:1:88: expected ,\"host_budget\":"},
    {1, "\"budget\":2560", "\"budget\":", "x.plan:1:84: expected an integer"},
    {1, "\"gpus\":1", "\"gpus\":0", "0 is not between 1 and 256"},
    {1, "\"graphs\":1", "\"graphs\":2", "x.plan:1:1: the header counts 65 rows, the file has 64 lines"},
    {1, "\"tensors\":6", "\"tensors\":7", "x.plan:1:1: the header counts 65 rows, the file has 64 lines"},
    {1, "\"jobs\":1", "\"jobs\":5000", "5000 is not between 1 and 4096"},
    {1, "\"streams\":3", "\"streams\":300", "300 is not between 0 and 256"},
    {1, "\"body\":31", "\"body\":2147483647", "x.plan:1:1: the header counts 2147483680 rows, the file has 64 lines"},
    {1, "\"body\":31", "\"body\":2147483648", "2147483648 is not between 0 and 2147483647"},
    {1, "\"uses\":10", "\"uses\":2147483647", "x.plan:1:1: the header counts more than the file has room for"},
    {1, "\"uses\":10", "\"uses\":9", "x.plan:49:79: more uses than the header's 9"},
    {1, "\"uses\":10", "\"uses\":11", "the execs have 10 uses, the header counts 11"},
    {1, "\"residencies\":7", "\"residencies\":2147483647", "the header's residencies and events do not go with"},
    {1, "\"residencies\":7", "\"residencies\":1", "the header's residencies and events do not go with"},
    {1, "\"events\":7", "\"events\":45", "the header's residencies and events do not go with"},
    {1, "\"events\":7", "\"events\":6", "x.plan:50:19: 6 is not between 0 and 5"},
    {1, "\"prologue\":8,\"body\":31", "\"body\":31,\"prologue\":8", "expected ...prologue"},
    {1, "\"epilogue\":5}", "\"epilogue\":5,\"more\":1}", "expected }"},
    {1, "\"epilogue\":5}", "\"epilogue\":5} ", "expected the line's end"},
    {1, "\"script\"", "\"scr\\ipt\"", "x.plan:1:28: an escape other than"},
    {1, "\"script\"", "\"scr\\u0041ipt\"", "x.plan:1:28: an escape other than"},
    {1, "\"script\"", "\"scr\\u0000ipt\"", "x.plan:1:28: an escape other than"},
    {1, "\"script\"", "\"scr\xffipt\"", "x.plan:1:28: a string with a byte that is neither text nor an escape"},
    {1, "\"script\"", "\"scr\xc0\x80ipt\"", "neither text nor an escape"},
    {1, "\"script\"", "\"scr\xed\xa0\x80ipt\"", "neither text nor an escape"},
    {1, "\"script\"", "\"scr\tipt\"", "neither text nor an escape"},
    /* Device and graph. */
    {2, "\"in_flight\":2", "\"in_flight\":2147483648", "x.plan:2:"},
    {4, "\"NHWC\"", "\"NHCW\"", "x.plan:4:28: not one of the words that may stand here, such as \"NCHW\""},
    {4, "\"loss\":5", "\"loss\":6", "x.plan:4:"},
    {4, "\"tensors\":6", "\"tensors\":5", "x.plan:4:61: 5 is not between -1 and 4"},
    {4, "\"ops\":2", "\"ops\":1", "x.plan:10:1: loss loss: is never produced"},
    {5, "\"x\"", "\"w\"", "x.plan:6:1: "},
    {5, "\"N\"", "\"1N\"", "x.plan:5:54: 1N is written N"},
    {5, "\"N\"", "\"8\"", "x.plan:5:55: expected N\""},
    {9, "\"of\":3", "\"of\":4", "x.plan:9:20: 4 is not between 0 and 3"},
    {9, "\"at\":\"24N\"", "\"at\":\"28N\"", "x.plan:9:1: "},
    {11, "\"in\":[0,1]", "\"in\":[0,6]", "x.plan:11:54: 6 is not between 0 and 5"},
    {11, "\"in\":[0,1]", "\"in\":[0,1,]", "x.plan:11:56: expected an integer"},
    {11, "\"axis\":-1", "\"x\":-1", "attributes stand in the order of their keys, each once"},
    {11, "\"list\"", "\"axis\"", "attributes stand in the order of their keys, each once"},
    {11, "0.5", "0.50", "not the shortest decimal of a real number"},
    {11, "0.5", "5e-1", "not the shortest decimal of a real number"},
    {11, "0.5", "1e999", "not the shortest decimal of a real number"},
    {11, "2.0", "2", "the header's hash"},
    {11, "\"flags\":6", "\"flags\":32", "32 is not between 0 and 31"},
    {11, "\"flags\":6", "\"flags\":6,\"class\":\"dear\"", "not one of the words"},
    {11, "\"flags\":6", "\"flags\":4", "the header's hash"},
    {12, "\"in\":[4]", "\"in\":[5]", "x.plan:12:1: "},
    /* Jobs, streams, boundary. */
    {13, "\"job\":0", "\"job\":1", "x.plan:13:8: 1 is not between 0 and 0"},
    {13, "[2]", "[3]", "x.plan:13:30: 3 is not between 1 and 2"},
    {13, "\"iterations\":1}", "\"iterations\":1,\"order\":[0,0]}", "x.plan:13:59: op 0 stands twice"},
    {13, "\"iterations\":1}", "\"iterations\":1,\"order\":[0]}", "x.plan:13:58: expected ,"},
    {13, "\"iterations\":1}", "\"iterations\":0}", "0 is not between 1 and"},
    {14, "\"compute\"", "\"computer\"", "x.plan:14:12: not one of the words"},
    {15, "\"gpu\":0", "\"gpu\":1", "1 is not between 0 and 0"},
    {19, "\"boundary\":1", "\"boundary\":-1", "x.plan:19:13: -1 is not between 0 and"},
    /* Instructions. */
    {21, "acquire", "require", "x.plan:21:7: not an instruction"},
    {21, "\"r\":0", "\"r\":7", "x.plan:21:20: 7 is not between 0 and 6"},
    {35, "\"a\":0", "\"a\":2", "2 is not between 0 and 1"},
    {35, "\"s\":0", "\"s\":3", "3 is not between 0 and 2"},
    {35, "[2,0,1,3]", "[2,0,1,7]", "7 is not between -1 and 6"},
    {35, "[2,0,1,3]", "[2, 0,1,3]", "expected an integer"},
    {35, "\"a\":0", "\"re\":0,\"a\":0", "expected ...a\":"},
    {36, "\"re\":1", "\"re\":2", "expected ...a\":"},
    {39, "\"h\":0", "\"h\":-2", "-2 is not between -1 and"},
    {29, "\"lag\":1", "\"lag\":2", "2 is not between 0 and 1"},
    {64, "{\"i\"", "\n{\"i\"", "x.plan:1:1: the header counts 64 rows, the file has 65 lines"},
};

START_TEST(a_zero_byte_is_part_of_no_number) {
  size_t length;
  char *text = read_small(&length);
  size_t before = 0;
  while (before < length && strncmp(text + before, "1e-05,", 6) != 0) before++;
  ck_assert_uint_lt(before, length);
  before += 5;
  char *changed = calloc(length + 1, 1);
  ck_assert_ptr_nonnull(changed);
  memcpy(changed, text, before);
  memcpy(changed + before + 1, text + before, length - before);
  planc_plan *plan;
  assert_fails(planc_plan_parse(changed, length + 1, "x.plan", &plan), PLANC_BAD_INPUT, "x.plan:11:");
  free(changed);
  free(text);
}
END_TEST

START_TEST(an_edit_is_refused_with_its_place) {
  size_t length;
  char *text = read_small(&length), *line = text;
  for (int n = 1; n < edits[_i].line; n++) line = strchr(line, '\n') + 1;
  char *at = strstr(line, edits[_i].find);
  ck_assert_ptr_nonnull(at);
  size_t size = length + strlen(edits[_i].replace) + 1;
  char *changed = malloc(size);
  ck_assert_ptr_nonnull(changed);
  int made =
      snprintf(changed, size, "%.*s%s%s", (int)(at - text), text, edits[_i].replace, at + strlen(edits[_i].find));
  planc_plan *plan;
  planc_status status = planc_plan_parse(changed, (size_t)made, "x.plan", &plan);
  ck_assert_ptr_null(plan);
  assert_fails(status, PLANC_BAD_INPUT, edits[_i].message);
  free(changed);
  free(text);
}
END_TEST

START_TEST(a_part_of_a_file_is_refused) {
  size_t length;
  char *text = read_small(&length);
  for (size_t n = 0; n < length; n++) {
    planc_plan *plan;
    /* Nothing behind the part may be read, which a copy of just its size lets the sanitizers see. */
    char *part = malloc(n + 1);
    ck_assert_ptr_nonnull(part);
    memcpy(part, text, n);
    planc_status status = planc_plan_parse(part, n, "x.plan", &plan);
    ck_assert_msg(planc_status_code(status) == PLANC_BAD_INPUT, "the first %zu bytes are read as a plan", n);
    planc_status_free(status);
    free(part);
  }
  free(text);
}
END_TEST

/* There is one form: whatever is read prints as the bytes that were read. */
START_TEST(changed_text_is_refused_or_canonical) {
  size_t length;
  char *text = read_small(&length);
  int accepted = 0, refused = 0;
  for (uint64_t seed = 0; seed < 20000; seed++) {
    char *changed, *again, description[64];
    size_t changed_length, again_length;
    planc_plan *plan;
    ok(mutate_text(text, length, seed, &changed, &changed_length, description, sizeof description));
    planc_status status = planc_plan_parse(changed, changed_length, "x.plan", &plan);
    if (!status) {
      accepted++;
      ok(planc_plan_print(plan, &again, &again_length));
      ck_assert_uint_eq(changed_length, again_length);
      ck_assert_mem_eq(changed, again, again_length);
      planc_status_free(planc_check(plan, NULL, NULL));
      planc_plan_free(plan);
      free(again);
    } else {
      refused++;
      ck_assert_int_eq(planc_status_code(status), PLANC_BAD_INPUT);
      ck_assert_msg(strncmp(planc_status_message(status), "x.plan:", 7) == 0, "%s", planc_status_message(status));
    }
    planc_status_free(status);
    free(changed);
  }
  ck_assert_int_gt(accepted, 1000);
  ck_assert_int_gt(refused, 10000);
  free(text);
}
END_TEST

START_TEST(files_that_cannot_be_read_are_named) {
  planc_plan *plan;
  const char *const paths[] = {"tests/data/plan/absent.plan", "tests/data"};
  for (int i = 0; i < 2; i++) {
    planc_status status = planc_plan_read(paths[i], &plan);
    assert_fails(status, PLANC_BAD_INPUT, paths[i]);
  }
}
END_TEST

/* --- What cannot be written --------------------------------------------------------------------------------------- */

static void unprintable(const planc_plan *plan, planc_code code, const char *message) {
  char *text;
  size_t length;
  planc_status status = planc_plan_print(plan, &text, &length);
  ck_assert_ptr_null(text);
  assert_fails(status, code, message);
}

START_TEST(what_has_no_form_is_not_written) {
  size_t length;
  char *text = read_small(&length);
  planc_plan *plan = parse(text, length);
  planc_instr *instr = (planc_instr *)&plan->body.instrs[7];
  plan->budget_bytes = (INT64_C(1) << 53) + 1;
  unprintable(plan, PLANC_BAD_INPUT, "a plan cannot hold 9007199254740993, which is beyond 2^53");
  plan->budget_bytes = INT64_MIN;
  unprintable(plan, PLANC_BAD_INPUT, "a plan cannot hold -9223372036854775808");
  plan->budget_bytes = 0;
  instr->first_use = -1;
  unprintable(plan, PLANC_INTERNAL, "a plan whose uses are not in the order of its execs");
  instr->first_use = INT32_MAX;
  unprintable(plan, PLANC_INTERNAL, "a plan whose uses are not in the order of its execs");
  planc_plan_free(plan);
  free(text);
}
END_TEST

START_TEST(reals_that_are_not_finite_are_not_written) {
  size_t length;
  char *text = read_small(&length);
  planc_plan *plan = parse(text, length);
  planc_attr *attrs = (planc_attr *)plan->jobs[0].graph->ops[0].attrs;
  attrs[3].value.real = INFINITY;
  unprintable(plan, PLANC_BAD_INPUT, "a real number that is not finite");
  planc_plan_free(plan);
  free(text);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("plan");
  TCase *cases = tcase_create("all");
  tcase_set_timeout(cases, 60);
  tcase_add_test(cases, a_file_is_read_as_what_it_says);
  tcase_add_loop_test(cases, plans_of_random_graphs_come_back, 0, 40);
  tcase_add_test(cases, jobs_and_names_come_back);
  tcase_add_loop_test(cases, an_edit_is_refused_with_its_place, 0, sizeof edits / sizeof *edits);
  tcase_add_test(cases, a_zero_byte_is_part_of_no_number);
  tcase_add_test(cases, a_part_of_a_file_is_refused);
  tcase_add_test(cases, changed_text_is_refused_or_canonical);
  tcase_add_test(cases, files_that_cannot_be_read_are_named);
  tcase_add_test(cases, what_has_no_form_is_not_written);
  tcase_add_test(cases, reals_that_are_not_finite_are_not_written);
  suite_add_tcase(suite, cases);
  return run_suite(suite);
}
