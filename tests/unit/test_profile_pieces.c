/* Profiles of pieces: what was measured is in them, whatever order the pieces came in. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "planc/cost.h"
#include "runtime/profile/profile_file.h"
#include "runtime/profile/profile_json.h"
#include "runtime/profile/profile_part.h"
#include "tests/support/passes.h"
#include "tests/support/unit.h"
#include "util/json_tree.h"

static void add_ops(cJSON *pieces, const planc_graph *graph, int64_t load_ppm, int64_t batch) {
  rt_op_times times = {0};
  passes_list(graph, batch, &times);
  for (int64_t i = 0; i < times.len; i++) {
    times.data[i].time = (rt_statistic){.median_ns = 1000 * batch * batch + i, .spread_ns = 7};
    times.data[i].predicted = false;
  }
  cJSON_AddItemToArray(pieces, rt_piece_of_ops(graph, load_ppm, batch, &times, NULL));
  VEC_FREE(&times);
}

static void add_links(cJSON *pieces) {
  rt_link_times times = {
      .n_sizes = 7, .memory_bytes_per_s = 1000000000, .both_ns = {99, 98}, .under_load_ns = {97, 96}};
  for (int d = 0; d < 2; d++)
    for (int32_t s = 0; s < times.n_sizes; s++) times.alone_ns[d][s] = 1000 + rt_link_sizes[s] / 10;
  cJSON_AddItemToArray(pieces, rt_piece_of_links(&times, &(rt_run_costs){90, 30000}));
}

static planc_profile *parse(const cJSON *tree) {
  char *text = cJSON_Print(tree);
  planc_profile *profile;
  ok(planc_profile_parse(text, strlen(text), "composed", &profile));
  cJSON_free(text);
  return profile;
}

static int64_t load_at(const cJSON *loads, int index) {
  return (int64_t)cJSON_GetNumberValue(cJSON_GetObjectItem(cJSON_GetArrayItem(loads, index), "load_ppm"));
}

/* However sittings have left their pieces, a profile has each load once, with all that was measured under it. */
START_TEST(loads_stand_once) {
  planc_graph *graph = passes_graph();
  cJSON *pieces = cJSON_CreateArray(), *tree;
  add_links(pieces);
  add_ops(pieces, graph, 0, 4);
  add_ops(pieces, graph, 500000, 4);
  add_ops(pieces, graph, 250000, 4);
  add_ops(pieces, graph, 500000, 12);
  rt_profile_head head = {.name = "host", .machine = "a machine", .memory_bytes = INT64_C(1) << 34};
  ok(rt_profile_compose(&head, graph, pieces, &tree));
  const cJSON *loads = cJSON_GetObjectItem(tree, "loads");
  ck_assert_int_eq(cJSON_GetArraySize(loads), 2);
  ck_assert_int_eq(load_at(loads, 0), 500000);
  ck_assert_int_eq(load_at(loads, 1), 250000);
  planc_profile_free(parse(tree));
  cJSON_AddItemToArray(cJSON_GetObjectItem(tree, "loads"), cJSON_Duplicate(cJSON_GetArrayItem(loads, 0), true));
  char *text = cJSON_Print(tree);
  planc_profile *profile;
  assert_fails(planc_profile_parse(text, strlen(text), "composed", &profile), PLANC_BAD_INPUT, "twice");
  cJSON_free(text);
  cJSON_Delete(tree);
  cJSON_Delete(pieces);
  planc_graph_free(graph);
}
END_TEST

/* What planc reads at measured batches is what was measured, whatever order the pieces came in. */
START_TEST(profiles_hold_what_was_measured) {
  planc_graph *graph = passes_graph();
  cJSON *pieces = cJSON_CreateArray(), *tree;
  if (_i) add_links(pieces);
  add_ops(pieces, graph, 0, _i ? 20 : 4);
  add_ops(pieces, graph, 500000, 4);
  add_ops(pieces, graph, 0, _i ? 4 : 20);
  add_ops(pieces, graph, 0, 12);
  if (!_i) add_links(pieces);
  rt_profile_head head = {.name = "host", .machine = "a machine", .memory_bytes = INT64_C(1) << 34};
  ok(rt_profile_compose(&head, graph, pieces, &tree));
  ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(tree, "loads")), 1);
  planc_profile *profile = parse(tree);
  const cJSON *alone = cJSON_GetObjectItem(cJSON_GetObjectItem(cJSON_GetObjectItem(tree, "links"), "d2h"), "alone");
  ck_assert_int_eq(cJSON_GetArraySize(alone), 7);
  ck_assert_int_eq(planc_profile_device(profile)->launch_ns, 90);
  ck_assert_int_eq(planc_profile_device(profile)->slowdown_ppm, 30000);
  for (int64_t batch = 4; batch <= 20; batch += 8) {
    planc_costs *costs;
    rt_op_times listed = {0};
    ok(planc_costs_make(profile, graph, 1, &batch, &costs));
    passes_list(graph, batch, &listed);
    for (int64_t i = 0; i < listed.len; i++) {
      int32_t count, found = 0;
      const planc_variant *variants = planc_costs_variants(costs, listed.data[i].op, 0, &count);
      for (int32_t v = 0; v < count; v++) {
        if (strcmp(variants[v].algorithm, listed.data[i].variant.algorithm) != 0) continue;
        found++;
        ck_assert_int_eq(variants[v].time_ns, 1000 * batch * batch + i);
        ck_assert_int_eq(variants[v].workspace_bytes, listed.data[i].variant.workspace_bytes);
      }
      ck_assert_int_eq(found, 1);
    }
    VEC_FREE(&listed);
    planc_costs_free(costs);
  }
  planc_profile_free(profile);
  cJSON_Delete(tree);
  cJSON_Delete(pieces);
  planc_graph_free(graph);
}
END_TEST

/* Storage is in the profile where it was measured: the line, the times, and where both are from. */
START_TEST(storage_is_told_where_it_was_measured) {
  static const planc_link want[2] = {[RT_STORE] = {500000000, 40000}, [RT_LOAD] = {2000000000, 9000}};
  planc_graph *graph = passes_graph();
  cJSON *pieces = cJSON_CreateArray(), *tree;
  rt_storage_times times = {.n_sizes = _i == 2 ? 2 : RT_STORED_SIZES};
  for (int d = 0; d < 2; d++)
    for (int32_t s = 0; s < times.n_sizes; s++)
      times.ns[d][s] = planc_link_ns(&want[d], rt_link_sizes[RT_FIRST_STORED + s]);
  if (_i) cJSON_AddItemToArray(pieces, rt_piece_of_storage(&times));
  add_ops(pieces, graph, 0, 4);
  add_links(pieces);
  rt_profile_head head = {.name = "host", .machine = "a machine", .memory_bytes = INT64_C(1) << 34};
  ok(rt_profile_compose(&head, graph, pieces, &tree));
  planc_profile *profile = parse(tree);
  const planc_link *got[2] = {[RT_STORE] = &planc_profile_device(profile)->links[PLANC_ROUTE_STORE],
                              [RT_LOAD] = &planc_profile_device(profile)->links[PLANC_ROUTE_LOAD]};
  for (int d = 0; d < 2; d++) {
    int64_t rate = _i ? want[d].bytes_per_second : 0, latency = _i ? want[d].latency_ns : 0, off = _i ? 10 : 0;
    ck_assert_int_le(llabs(got[d]->bytes_per_second - rate), rate / 1000);
    ck_assert_int_le(llabs(got[d]->latency_ns - latency), latency / 1000 + off);
  }
  const cJSON *told = cJSON_GetObjectItem(cJSON_GetObjectItem(tree, "links"), "storage");
  ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(told, "read")), _i ? times.n_sizes : 0);
  ck_assert_int_eq(cJSON_HasObjectItem(cJSON_GetObjectItem(tree, "origin"), "device.storage"), _i != 0);
  planc_profile_free(profile);
  cJSON_Delete(tree);
  cJSON_Delete(pieces);
  planc_graph_free(graph);
}
END_TEST

/* A pass as it is kept: each op's algorithm of that number, where it has so many. */
static cJSON *pass_of(const planc_graph *graph, int32_t number, int32_t of, const cJSON *refused) {
  rt_op_times all = {0}, times = {0};
  passes_list(graph, 4, &all);
  for (int64_t i = 0; i < all.len; i++) {
    rt_op_time *time = &all.data[i];
    int64_t place = i;
    while (place > 0 && all.data[place - 1].op == time->op) place--;
    if (i - place != number) continue;
    time->time = (rt_statistic){.median_ns = 1000 - 10 * number};
    time->predicted = false;
    ck_assert_ptr_null(VEC_RESERVE(&times, times.len + 1));
    times.data[times.len++] = *time;
  }
  cJSON *piece = rt_piece_of_ops(graph, 0, 4, &times, 0);
  rt_piece_of_pass(piece, number, of, refused);
  VEC_FREE(&all);
  VEC_FREE(&times);
  return piece;
}

/* Passes make the same profile in whatever order they come: that with the second algorithms lacks most ops. Each
 * refusal is told once. */
START_TEST(passes_are_merged) {
  planc_graph *graph = passes_graph();
  char *texts[2];
  for (int turn = 0; turn < 2; turn++) {
    cJSON *pieces = cJSON_CreateArray(), *tree;
    cJSON *refused = cJSON_Parse("[{\"op\":\"c\",\"algorithm\":\"x\",\"batch\":4,\"reason\":\"a \\\"why\\\"\"}]");
    ck_assert_int_eq(rt_pieces_next_pass(pieces, 0, 4), 0);
    for (int32_t k = 0; k < 2; k++) {
      cJSON_AddItemToArray(pieces, pass_of(graph, turn ? 1 - k : k, 2, refused));
      if (!turn) ck_assert_int_eq(rt_pieces_next_pass(pieces, 0, 4), k == 0 ? 1 : -1);
    }
    ck_assert_int_eq(rt_pieces_next_pass(pieces, 0, 8), 0);
    ck_assert_int_eq(rt_pieces_next_pass(pieces, 500000, 4), 0);
    rt_op_times fastest = {0};
    ok(rt_pieces_fastest(pieces, graph, 4, &fastest));
    ck_assert_int_eq(fastest.len, graph->n_ops);
    for (int64_t i = 0; i < fastest.len; i++) ck_assert_int_eq(fastest.data[i].op, i);
    VEC_FREE(&fastest);
    add_links(pieces);
    rt_profile_head head = {.name = "host", .machine = "a machine", .memory_bytes = INT64_C(1) << 34};
    ok(rt_profile_compose(&head, graph, pieces, &tree));
    planc_profile_free(parse(tree));
    ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(tree, "refused")), 1);
    texts[turn] = cJSON_Print(tree);
    cJSON_Delete(refused);
    cJSON_Delete(tree);
    cJSON_Delete(pieces);
  }
  ck_assert_str_eq(texts[0], texts[1]);
  for (int turn = 0; turn < 2; turn++) cJSON_free(texts[turn]);
  planc_graph_free(graph);
}
END_TEST

/* Nothing is kept of what found no memory, with a file or without: a refusal, a mark, a piece. */
START_TEST(what_found_no_memory_is_not_kept) {
  planc_graph *graph = passes_graph();
  cJSON *refused = cJSON_CreateArray();
  pl_json_add(refused, NULL, NULL);
  cJSON *piece = pass_of(graph, 0, 1, refused);
  ck_assert(!pl_json_is_whole(piece));
  cJSON_Delete(piece);
  char folder[] = "/tmp/planrt-kept-XXXXXX", output[64], part[80];
  ck_assert_ptr_nonnull(mkdtemp(folder));
  snprintf(output, sizeof output, "%s/out", folder);
  snprintf(part, sizeof part, "%s.part", output);
  for (int on_disk = 0; on_disk < 2; on_disk++) {
    rt_kept kept = {.file = -1};
    cJSON *head = cJSON_CreateObject();
    ok(rt_kept_open(&kept, on_disk ? output : NULL, head));
    int64_t end = kept.end;
    assert_fails(rt_kept_mark(&kept, NULL, false), PLANC_OUT_OF_MEMORY, "");
    assert_fails(rt_kept_add(&kept, pass_of(graph, 0, 1, refused)), PLANC_OUT_OF_MEMORY, "");
    ck_assert_int_eq(kept.end, end);
    rt_kept_close(&kept);
    cJSON_Delete(head);
  }
  ck_assert_int_eq(unlink(part), 0);
  ck_assert_int_eq(rmdir(folder), 0);
  cJSON_Delete(refused);
  planc_graph_free(graph);
}
END_TEST

/* An algorithm that ended a process at an op is no variant of it, and is told as refused; one that did so at two ops is
 * tried with none. Without an algorithm, or where there was no other, nothing is left out and the pass is run with
 * care. */
START_TEST(ends_of_processes_are_pieces) {
  static const rt_trial trials[] = {
      {.pass = 1, .op = "c", .algorithm = "dnnl-direct"}, {.pass = 2}, {.op = "r", .algorithm = "host", .only = true}};
  planc_graph *graph = passes_graph();
  cJSON *pieces = cJSON_CreateArray(), *tree;
  add_ops(pieces, graph, 0, 4);
  add_links(pieces);
  for (int t = 0; t < 3; t++) cJSON_AddItemToArray(pieces, rt_piece_of_trial(0, 4, &trials[t]));
  ck_assert(rt_pieces_leave_out(pieces, "c", "dnnl-direct"));
  ck_assert(!rt_pieces_leave_out(pieces, "z", "dnnl-direct"));
  ck_assert(!rt_pieces_leave_out(pieces, "r", "host"));
  ck_assert(rt_pieces_ended_in(pieces, 0, 4, 2) && rt_pieces_ended_in(pieces, 0, 4, 0));
  ck_assert(!rt_pieces_ended_in(pieces, 0, 4, 1) && !rt_pieces_ended_in(pieces, 0, 8, 2));
  rt_profile_head head = {.name = "host", .machine = "a machine", .memory_bytes = INT64_C(1) << 34};
  ok(rt_profile_compose(&head, graph, pieces, &tree));
  planc_profile_free(parse(tree));
  const cJSON *refused = cJSON_GetObjectItem(tree, "refused"), *op, *variant;
  ck_assert_int_eq(cJSON_GetArraySize(refused), 1);
  ck_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(refused, 0), "op")), "c");
  int32_t n_direct = 0;
  cJSON_ArrayForEach(op, cJSON_GetObjectItem(tree, "ops")) {
    cJSON_ArrayForEach(variant, cJSON_GetObjectItem(op, "variants")) {
      bool direct = strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(variant, "algorithm")), "dnnl-direct") == 0;
      ck_assert(!direct || strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(op, "op")), "c") != 0);
      n_direct += direct;
    }
  }
  ck_assert_int_gt(n_direct, 0);
  cJSON_AddItemToArray(pieces, rt_piece_of_trial(0, 4, &(rt_trial){.op = "c.wgrad", .algorithm = "dnnl-direct"}));
  ck_assert(rt_pieces_leave_out(pieces, "z", "dnnl-direct"));
  ck_assert(!rt_pieces_ended_at(pieces, "z", "dnnl-direct"));
  cJSON_Delete(tree);
  cJSON_Delete(pieces);
  planc_graph_free(graph);
}
END_TEST

/* A profile of ops that were measured at `measured`, and of which workspaces are added at that and at `beyond`, if that
 * is more, and at the sizes of their rounds, which become *out_sizes. */
static planc_profile *profile_with_workspaces(const planrt_backend *backend, const planc_graph *graph, int64_t measured,
                                              int64_t beyond, rt_batches *out_sizes) {
  cJSON *pieces = cJSON_CreateArray(), *tree;
  add_ops(pieces, graph, 0, measured);
  add_links(pieces);
  rt_profile_head head = {.name = "host", .machine = "a machine", .memory_bytes = INT64_C(1) << 34};
  ok(rt_profile_compose(&head, graph, pieces, &tree));
  rt_device *device;
  rt_device_options nothing = {0};
  ok(rt_round_sizes(beyond > measured ? 2 : 1, (int64_t[]){measured, beyond}, out_sizes));
  out_sizes->all_up_to = measured;
  ok(backend->open(&nothing, &device));
  rt_list_options how = {.backend = backend, .device = device, .graph = graph};
  ok(rt_profile_add_workspaces(tree, &how, out_sizes));
  backend->close(device);
  planc_profile *profile = parse(tree);
  cJSON_Delete(tree);
  cJSON_Delete(pieces);
  return profile;
}

/* The profile has the backend's workspaces at a batch. */
static void hold_workspaces(const planc_profile *profile, const planc_graph *graph, int64_t batch) {
  planc_costs *costs;
  rt_op_times listed = {0};
  int32_t compared = 0;
  ok(planc_costs_make(profile, graph, 1, &batch, &costs));
  passes_list(graph, batch, &listed);
  for (int32_t o = 0; o < graph->n_ops; o++) {
    int32_t count;
    const planc_variant *variants = planc_costs_variants(costs, o, 0, &count);
    for (int32_t v = 0; v < count; v++)
      for (int64_t i = 0; i < listed.len; i++) {
        const char *algorithm = variants[v].algorithm;
        if (listed.data[i].op != o || strcmp(listed.data[i].variant.algorithm, algorithm) != 0) continue;
        ck_assert_int_eq(variants[v].workspace_bytes, listed.data[i].variant.workspace_bytes);
        ck_assert(planc_profile_lists_workspace(profile, graph->ops[o].name, algorithm, batch));
        compared++;
      }
  }
  ck_assert_int_ge(compared, graph->n_ops);
  VEC_FREE(&listed);
  planc_costs_free(costs);
}

/* What a profile gives at a batch is enough. */
static void hold_no_less(const planc_profile *profile, const planc_graph *graph, int64_t batch) {
  planc_costs *costs;
  rt_op_times listed = {0};
  ok(planc_costs_make(profile, graph, 1, &batch, &costs));
  passes_list(graph, batch, &listed);
  for (int64_t i = 0; i < listed.len; i++) {
    int32_t count;
    const planc_variant *variants = planc_costs_variants(costs, listed.data[i].op, 0, &count);
    for (int32_t v = 0; v < count; v++)
      if (strcmp(listed.data[i].variant.algorithm, variants[v].algorithm) == 0)
        ck_assert_int_ge(variants[v].workspace_bytes, listed.data[i].variant.workspace_bytes);
  }
  VEC_FREE(&listed);
  planc_costs_free(costs);
}

/* With one point the line gives many workspaces wrongly; afterwards every batch has the backend's. */
START_TEST(workspaces_are_exact_at_every_batch) {
  enum { MOST = 24 };
  planc_graph *graph = passes_graph();
  rt_batches sizes;
  planc_profile *profile = profile_with_workspaces(&rt_host_backend, graph, MOST, 0, &sizes);
  for (int64_t batch = 1; batch <= MOST; batch++) hold_workspaces(profile, graph, batch);
  free(sizes.sizes);
  planc_profile_free(profile);
  planc_graph_free(graph);
}
END_TEST

/* Off every line at one batch. */
enum { ODD = 3 };
static planc_status add_at_odd(rt_device *device, const rt_call *call, int64_t *out_bytes) {
  PLANC_TRY(rt_host_backend.workspace(device, call, out_bytes));
  if (call->batch == ODD && *out_bytes > 0) *out_bytes += 64;
  return NULL;
}

/* A batch that was not measured and the sizes of its rounds have the backend's as well, also where the line is right
 * there and wrong elsewhere; of those between nothing is claimed then. */
START_TEST(workspaces_of_a_batch_that_does_not_fit) {
  enum { MEASURED = 8, BEYOND = 40, BETWEEN = 33 };
  planc_graph *graph = passes_graph();
  planrt_backend backend = rt_host_backend;
  backend.workspace = add_at_odd;
  rt_batches sizes;
  planc_profile *profile = profile_with_workspaces(&backend, graph, MEASURED, BEYOND, &sizes);
  ck_assert_int_eq(sizes.sizes[sizes.n - 1], BEYOND);
  for (int32_t i = 0; i < sizes.n; i++)
    if (sizes.sizes[i] != ODD) hold_workspaces(profile, graph, sizes.sizes[i]);
  for (int64_t batch = 1; batch <= MEASURED; batch++)
    if (batch != ODD) hold_workspaces(profile, graph, batch);
  ck_assert(!planc_profile_lists_workspace(profile, "c", "dnnl-direct", BETWEEN));
  for (int64_t batch = MEASURED + 1; batch < BEYOND; batch++) hold_no_less(profile, graph, batch);
  free(sizes.sizes);
  planc_profile_free(profile);
  planc_graph_free(graph);
}
END_TEST

static volatile sig_atomic_t stop;

static planc_status stop_at_c(rt_device *device, const rt_call *call, int64_t *out_bytes) {
  stop = strcmp(call->op->name, "c") == 0 && call->batch == 3;
  return rt_host_backend.workspace(device, call, out_bytes);
}

/* Of what was not asked before it was stopped there is no answer. */
START_TEST(workspaces_that_are_stopped_are_not_known) {
  planc_graph *graph = passes_graph();
  planc_costs *costs;
  planrt_backend backend = rt_host_backend;
  rt_device *device;
  rt_device_options nothing = {0};
  cJSON *pieces = cJSON_CreateArray(), *tree;
  const int64_t batch = 3;
  add_ops(pieces, graph, 0, 4);
  add_links(pieces);
  rt_profile_head head = {.name = "host", .machine = "a machine", .memory_bytes = INT64_C(1) << 34};
  ok(rt_profile_compose(&head, graph, pieces, &tree));
  planc_profile *profile = parse(tree);
  ok(planc_costs_make(profile, graph, 1, &batch, &costs));
  int64_t *answers = calloc((size_t)costs->first[graph->n_ops], sizeof *answers);
  backend.workspace = stop_at_c;
  stop = 0;
  ok(backend.open(&nothing, &device));
  rt_list_options how = {.backend = &backend, .device = device, .graph = graph, .stop = &stop};
  ok(rt_list_workspaces(&how, costs, true, answers));
  backend.close(device);
  int32_t asked = 0;
  while (strcmp(graph->ops[asked].name, "c") != 0) asked++;
  ck_assert_int_lt(asked, graph->n_ops - 1);
  for (int32_t v = 0; v < costs->first[graph->n_ops]; v++)
    ck_assert_int_eq(answers[v] == RT_NOT_ASKED, v >= costs->first[asked + 1]);
  free(answers);
  planc_costs_free(costs);
  planc_profile_free(profile);
  cJSON_Delete(tree);
  cJSON_Delete(pieces);
  planc_graph_free(graph);
}
END_TEST

static int64_t says;

static const cJSON *variant_of(const cJSON *tree, const char *op, const char *algorithm) {
  const cJSON *at, *variant;
  cJSON_ArrayForEach(at, cJSON_GetObjectItem(tree, "ops")) {
    if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(at, "op")), op) != 0) continue;
    cJSON_ArrayForEach(variant, cJSON_GetObjectItem(at, "variants")) {
      if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(variant, "algorithm")), algorithm) == 0) return variant;
    }
  }
  return NULL;
}

/* At one measured batch, of an op's algorithm; of all else what is needed. */
static planc_status say_other(rt_device *device, const rt_call *call, int64_t *out_bytes) {
  PLANC_TRY(rt_host_backend.workspace(device, call, out_bytes));
  if (strcmp(call->op->name, "c") == 0 && strcmp(call->algorithm, "dnnl-direct") == 0 && call->batch == 4)
    *out_bytes = says;
  return NULL;
}

/* A variant of which the device that is asked says otherwise than was measured, less, more or that it does not run, is
 * known at its points alone: other answers, which the line does not give, are not believed. */
START_TEST(answers_that_measurements_contradict) {
  planc_graph *graph = passes_graph();
  cJSON *pieces = cJSON_CreateArray(), *tree;
  add_ops(pieces, graph, 0, 4);
  add_ops(pieces, graph, 0, 24);
  add_links(pieces);
  rt_profile_head head = {.name = "host", .machine = "a machine", .memory_bytes = INT64_C(1) << 34};
  ok(rt_profile_compose(&head, graph, pieces, &tree));
  planrt_backend backend = rt_host_backend;
  rt_batches batches;
  rt_device *device;
  rt_device_options nothing = {0};
  backend.workspace = say_other;
  says = (int64_t[]){-1, 1, INT64_C(1) << 30}[_i];
  ok(rt_round_sizes(2, (int64_t[]){4, 24}, &batches));
  ok(rt_host_backend.open(&nothing, &device));
  rt_list_options how = {.backend = &backend, .device = device, .graph = graph};
  ok(rt_profile_add_workspaces(tree, &how, &batches));
  rt_host_backend.close(device);
  free(batches.sizes);
  planc_profile_free(parse(tree));
  const cJSON *variant = variant_of(tree, "c", "dnnl-direct"), *point = cJSON_GetObjectItem(variant, "points")->child;
  const cJSON *workspace = cJSON_GetObjectItem(variant, "workspaces")->child;
  ck_assert(cJSON_IsTrue(cJSON_GetObjectItem(variant, "sampled")));
  for (; point; point = point->next, workspace = workspace->next) {
    ck_assert_ptr_nonnull(workspace);
    ck_assert_int_eq(rt_get_int(workspace, "batch"), rt_get_int(point, "batch"));
    ck_assert_int_eq(rt_get_int(workspace, "bytes"), rt_get_int(point, "workspace_bytes"));
  }
  ck_assert_ptr_null(workspace);
  ck_assert(!cJSON_HasObjectItem(variant_of(tree, "c.wgrad", "dnnl-direct"), "sampled"));
  cJSON_Delete(tree);
  cJSON_Delete(pieces);
  planc_graph_free(graph);
}
END_TEST

/* Every way to cut a batch into equal rounds, evenly or with a shorter last one, has its sizes among them, and nothing
 * is there that no cut has. */
START_TEST(rounds_have_these_sizes) {
  for (int64_t most = 1; most < 300; most++) {
    rt_batches batches;
    bool wanted[301] = {0};
    ok(rt_round_sizes(2, (int64_t[]){most, 1 + most / 2}, &batches));
    for (int64_t k = 1; k <= most; k++) wanted[(most + k - 1) / k] = wanted[most / k] = true;
    for (int64_t k = 1, other = 1 + most / 2; k <= other; k++) wanted[(other + k - 1) / k] = wanted[other / k] = true;
    for (int32_t i = 0; i < batches.n; i++) {
      if (i > 0) ck_assert_int_gt(batches.sizes[i], batches.sizes[i - 1]);
      ck_assert_int_ge(batches.sizes[i], 1);
      ck_assert_int_le(batches.sizes[i], most);
      wanted[batches.sizes[i]] = false;
    }
    for (int64_t size = 1; size <= most; size++) ck_assert_msg(!wanted[size], "%d of %d", (int)size, (int)most);
    ck_assert_int_le(batches.n, 4 * 18 + 4 * 13);
    free(batches.sizes);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("profile_pieces");
  TCase *c = tcase_create("profile_pieces");
  tcase_set_timeout(c, 120);
  tcase_add_test(c, ends_of_processes_are_pieces);
  tcase_add_loop_test(c, storage_is_told_where_it_was_measured, 0, 3);
  tcase_add_test(c, passes_are_merged);
  tcase_add_test(c, what_found_no_memory_is_not_kept);
  tcase_add_test(c, loads_stand_once);
  tcase_add_loop_test(c, profiles_hold_what_was_measured, 0, 2);
  tcase_add_test(c, workspaces_are_exact_at_every_batch);
  tcase_add_test(c, workspaces_of_a_batch_that_does_not_fit);
  tcase_add_test(c, workspaces_that_are_stopped_are_not_known);
  tcase_add_loop_test(c, answers_that_measurements_contradict, 0, 3);
  tcase_add_test(c, rounds_have_these_sizes);
  suite_add_tcase(suite, c);
  return run_suite(suite);
}
