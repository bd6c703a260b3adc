/* Plans as files: one canonical form, read back exactly. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/derived.h"
#include "planc/check.h"
#include "planc/policy.h"
#include "tests/support/randgraph.h"
#include "tests/support/script.h"
#include "tests/support/unit.h"
#include "util/file.h"

static const char small_path[] = "tests/data/plan/small.plan";

static char *read_small(size_t *out_length) {
  char *text;
  ok(pl_file_read(small_path, 1 << 20, &text, out_length));
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
    ck_assert_int_eq(x->peers, y->peers);
    ck_assert_int_eq(x->recompute, y->recompute);
    ck_assert_int_eq(x->stream, y->stream);
    ck_assert_int_eq(x->memory, y->memory);
    ck_assert_int_eq(x->aux, y->aux);
    ck_assert_int_eq(x->first_use, y->first_use);
    ck_assert_int_eq(x->address, y->address);
    ck_assert_int_eq(x->bytes, y->bytes);
    ck_assert_int_eq(x->time_ns, y->time_ns);
    ck_assert_int_eq(x->busy_ppm, y->busy_ppm);
  }
}

static void same_memories(const planc_plan *a, const planc_plan *b) {
  ck_assert_int_eq(a->n_memories, b->n_memories);
  for (int32_t m = 0; m < a->n_memories; m++) {
    const planc_memory *x = &a->memories[m], *y = &b->memories[m];
    ck_assert_int_eq(x->kind, y->kind);
    ck_assert_int_eq(x->gpu, y->gpu);
    ck_assert_int_eq(x->bytes, y->bytes);
    ck_assert_int_eq(x->budget_bytes, y->budget_bytes);
    ck_assert_int_eq(x->reserved_bytes, y->reserved_bytes);
    ck_assert_int_eq(x->arena_bytes, y->arena_bytes);
    ck_assert_int_eq(x->alignment, y->alignment);
    ck_assert_int_eq(x->chunk_bytes, y->chunk_bytes);
    ck_assert_int_eq(x->paged, y->paged);
    ck_assert_int_eq(x->first_mapping, y->first_mapping);
    ck_assert_int_eq(x->n_mappings, y->n_mappings);
  }
  ck_assert_int_eq(a->n_mappings, b->n_mappings);
  for (int32_t m = 0; m < a->n_mappings; m++) {
    ck_assert_int_eq(a->mappings[m].first, b->mappings[m].first);
    ck_assert_int_eq(a->mappings[m].n, b->mappings[m].n);
  }
}

static void same_links(const planc_plan *a, const planc_plan *b) {
  ck_assert_int_eq(a->n_links, b->n_links);
  for (int32_t l = 0; l < a->n_links; l++) {
    const planc_plan_link *x = &a->links[l], *y = &b->links[l];
    ck_assert_int_eq(x->from, y->from);
    ck_assert_int_eq(x->to, y->to);
    ck_assert_int_eq(x->engine, y->engine);
    ck_assert_int_eq(x->bus, y->bus);
    ck_assert_int_eq(x->cost.bytes_per_second, y->cost.bytes_per_second);
    ck_assert_int_eq(x->cost.latency_ns, y->cost.latency_ns);
  }
}

static void same_header(const planc_plan *a, const planc_plan *b) {
  ck_assert_str_eq(a->name, b->name);
  ck_assert_str_eq(a->policy, b->policy);
  ck_assert_mem_eq(&a->settings, &b->settings, sizeof a->settings);
  ck_assert_str_eq(a->device.name, b->device.name);
  ck_assert_int_eq(a->device.launch_ns, b->device.launch_ns);
  ck_assert_int_eq(a->device.in_flight, b->device.in_flight);
  ck_assert_int_eq(a->device.duplex_ppm, b->device.duplex_ppm);
  ck_assert_int_eq(a->device.slowdown_ppm, b->device.slowdown_ppm);
  ck_assert_int_eq(a->predicted.period_ns, b->predicted.period_ns);
  ck_assert_int_eq(a->predicted.bound_ns, b->predicted.bound_ns);
  ck_assert_mem_eq(a->predicted.peak_bytes, b->predicted.peak_bytes, sizeof a->predicted.peak_bytes);
  ck_assert_int_eq(a->n_events, b->n_events);
  ck_assert_int_eq(a->n_residencies, b->n_residencies);
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
    ck_assert_int_eq(x->replicas, y->replicas);
    ck_assert_mem_eq(&a->predicted.jobs[j], &b->predicted.jobs[j], sizeof *a->predicted.jobs);
    ck_assert_int_eq(x->n_rounds, y->n_rounds);
    ck_assert_mem_eq(x->rounds, y->rounds, (size_t)x->n_rounds * sizeof *x->rounds);
    ck_assert_int_eq(!x->order, !y->order);
    if (x->order) ck_assert_mem_eq(x->order, y->order, (size_t)x->graph->n_ops * sizeof *x->order);
  }
}

static void same_plans(const planc_plan *a, const planc_plan *b) {
  same_header(a, b);
  same_memories(a, b);
  same_links(a, b);
  same_jobs(a, b);
  ck_assert_int_eq(a->n_streams, b->n_streams);
  for (int32_t s = 0; s < a->n_streams; s++) {
    ck_assert_int_eq(a->streams[s].kind, b->streams[s].kind);
    ck_assert_int_eq(a->streams[s].job, b->streams[s].job);
    ck_assert_int_eq(a->streams[s].on, b->streams[s].on);
  }
  ck_assert_int_eq(a->n_algorithms, b->n_algorithms);
  for (int32_t i = 0; i < a->n_algorithms; i++) ck_assert_str_eq(a->algorithms[i], b->algorithms[i]);
  ck_assert_int_eq(a->n_boundary, b->n_boundary);
  for (int32_t i = 0; i < a->n_boundary; i++) {
    ck_assert_int_eq(a->boundary[i].buffer, b->boundary[i].buffer);
    ck_assert_int_eq(a->boundary[i].address, b->boundary[i].address);
    ck_assert_int_eq(a->boundary[i].memory, b->boundary[i].memory);
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
  ck_assert_str_eq(plan->device.name, "toy");
  ck_assert_int_eq(plan->device.in_flight, 2);
  ck_assert_int_eq(plan->device.slowdown_ppm, 30000);
  ck_assert_int_eq(plan->n_memories, 3);
  ck_assert_int_eq(plan->memories[0].kind, PLANC_MEMORY_DEVICE);
  ck_assert_int_eq(plan->memories[0].gpu, 0);
  ck_assert_int_eq(plan->memories[0].bytes, 4096);
  ck_assert_int_eq(plan->memories[0].budget_bytes, 2560);
  ck_assert_int_eq(plan->memories[0].reserved_bytes, 512);
  ck_assert_int_eq(plan->memories[0].arena_bytes, 2048);
  ck_assert_int_eq(plan->memories[0].alignment, 256);
  ck_assert_int_eq(plan->memories[1].kind, PLANC_MEMORY_HOST);
  ck_assert_int_eq(plan->memories[1].gpu, -1);
  ck_assert_int_eq(plan->memories[1].budget_bytes, -1);
  ck_assert_int_eq(plan->memories[1].arena_bytes, 256);
  ck_assert_int_eq(plan->memories[2].kind, PLANC_MEMORY_USER);
  ck_assert_int_eq(plan->memories[2].arena_bytes, 0);
  ck_assert_int_eq(plan->n_links, 6);
  ck_assert_int_eq(plan->links[3].from, 0);
  ck_assert_int_eq(plan->links[3].to, 1);
  ck_assert_int_eq(plan->links[3].engine, 1);
  ck_assert_int_eq(plan->links[3].bus, -1);
  ck_assert_int_eq(plan->links[3].cost.bytes_per_second, 2000);
  ck_assert_int_eq(plan->links[3].cost.latency_ns, 20);
  ck_assert_int_eq(plan->links[2].bus, 0);
  ck_assert_int_eq(plan->predicted.period_ns, 1);
  ck_assert_int_eq(plan->predicted.jobs[0].stall_ns, 9);
  ck_assert_int_eq(plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE], 2560);
  ck_assert_int_eq(plan->predicted.peak_bytes[PLANC_MEMORY_HOST], 256);
  ck_assert_int_eq(plan->n_streams, 3);
  ck_assert_int_eq(plan->streams[0].kind, PLANC_STREAM_KIND_compute);
  ck_assert_int_eq(plan->streams[0].on, 0);
  ck_assert_int_eq(plan->streams[2].kind, PLANC_STREAM_KIND_copy);
  ck_assert_int_eq(plan->streams[2].on, 1);
  ck_assert_str_eq(plan->algorithms[1], "gemm");
  ck_assert_int_eq(plan->boundary[1].buffer, 3);
  ck_assert_int_eq(plan->boundary[1].memory, 0);
  ck_assert_int_eq(plan->boundary[1].address, 256);

  const planc_instr *exec = &plan->body.instrs[7];
  ck_assert_int_eq(exec->op, PLANC_INSTR_exec);
  ck_assert_int_eq(exec->recompute, 1);
  ck_assert_int_eq(exec->address, 1536);
  ck_assert_int_eq(exec->bytes, 256);
  ck_assert_int_eq(exec->first_use, 4);
  ck_assert_int_eq(plan->uses[exec->first_use + 2], -1);
  ck_assert_int_eq(plan->body.instrs[0].lag, 1);
  ck_assert_int_eq(plan->body.instrs[10].memory, 1);
  ck_assert_int_eq(plan->body.instrs[11].id, 4);
  ck_assert_int_eq(plan->body.instrs[11].aux, 3);
  ck_assert_int_eq(plan->body.instrs[25].id, PLANC_USER);
  ck_assert_int_eq(plan->body.instrs[25].aux, 6);
  ck_assert_int_eq(plan->body.instrs[2].aux, PLANC_USER);

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
  planc_problem problem = {.job.graph = graph,
                           .job.profile = profile,
                           .job.batch = 4,
                           .terms.budgets[PLANC_MEMORY_DEVICE] = INT64_C(1) << 50,
                           .terms.budgets[PLANC_MEMORY_HOST] = -1};
  static const char *const names[] = {"none", "vdnn-all", "modnn"};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    planc_plan *plan;
    ok(planc_make_plan(&problem, planc_policy_find(names[k]), &plan));
    round_trip(plan);
    planc_plan_free(plan);
  }
  problem.terms.chunk_bytes = 256;
  problem.terms.settings = (planc_settings){.window = 4096,
                                            .workspace_limit = 1,
                                            .window_per_use = true,
                                            .swap_rate = 1 + _i % 1000000,
                                            .no_recompute = _i % 2 == 0,
                                            .region = 256};
  for (int paged = 0; paged < 2; paged++) {
    planc_plan *mapped;
    problem.terms.placement = paged ? PLANC_PLACEMENT_PAGED : PLANC_PLACEMENT_VMM;
    ok(planc_make_plan(&problem, planc_policy_find("window"), &mapped));
    ck_assert_int_gt(mapped->n_mappings, 0);
    ck_assert_int_eq(mapped->memories[0].paged, paged);
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
      {.graph = graphs[0], .batch = 6, .n_rounds = 1, .rounds = whole, .iterations = 1, .swap_rate = 10000},
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

/* Of all jobs, whatever their graphs are; and the others in rows. */
START_TEST(replicas_come_back) {
  static const int64_t whole[] = {2};
  planc_graph *graph;
  ok(randgraph_make(3, NULL, &graph));
  planc_job job = {.graph = graph, .batch = 2, .n_rounds = 1, .rounds = whole, .iterations = 1};
  for (int32_t replicas = 0; replicas <= PLANC_PLAN_MAX_REPLICAS; replicas += PLANC_PLAN_MAX_REPLICAS / 4) {
    job.replicas = replicas;
    const planc_job jobs[] = {job, job};
    planc_plan *plan;
    ok(
        script_make("prologue\nwait 0 peers on 0\nbody\nacquire 0 0 0\nwait 0 lag 1 peers on 1\ncopy 0 0 peers on 2\n"
                    "copy 0 user on 1\n",
                    jobs, 2, 2048, 1024, &plan));
    ck_assert_int_eq(planc_plan_replicas(plan), replicas ? replicas : 1);
    ck_assert_int_eq(plan->predicted.peak_bytes[PLANC_MEMORY_HOST], 1024 * (replicas ? replicas : 1));
    round_trip(plan);
    planc_plan_free(plan);
  }
  planc_graph_free(graph);
}
END_TEST

/* Several GPUs, each with chunks of its own, storage, buses, and other alignments. */
START_TEST(memories_and_links_come_back) {
  static const int64_t whole[] = {2};
  static const planc_mapping mappings[] = {{0, 2}, {0, 1}, {3, 1}, {1, 3}};
  planc_graph *graph;
  ok(randgraph_make(3, NULL, &graph));
  planc_job jobs[2];
  for (int32_t j = 0; j < 2; j++)
    jobs[j] = (planc_job){.graph = graph, .batch = 2, .n_rounds = 1, .rounds = whole, .iterations = 1};
  planc_plan *plan;
  ok(
      script_make("gpus 0 1\nstorage 512\nboundary 0 256 storage\nboundary 1 512 host\nboundary 2 0 in 1\nprologue\n"
                  "acquire 0 0 256 storage\nacquire 1 1 512 host\nacquire 2 2 0 in 1\ncopy 0 user on 4\nbody\n",
                  jobs, 2, 2048, 1024, &plan));
  round_trip(plan);
  ck_assert_int_eq(plan->n_memories, 5);
  for (int32_t m = 0; m < 4; m++) {
    plan->memories[m].alignment = 256 << m;
    plan->memories[m].bytes = m - 1;
    plan->memories[m].budget_bytes = 3 - m;
    plan->memories[m].reserved_bytes = 10 * m;
  }
  for (int32_t l = 0; l < plan->n_links; l++) {
    plan->links[l].bus = plan->links[l].engine - 1;
    plan->links[l].cost = (planc_link){.bytes_per_second = 1 + l, .latency_ns = l};
  }
  plan->memories[0].chunk_bytes = 512;
  plan->memories[0].n_mappings = 3;
  plan->memories[1].chunk_bytes = 1024;
  plan->memories[1].paged = true;
  plan->memories[1].first_mapping = 3;
  plan->memories[1].n_mappings = 1;
  for (int32_t m = 2; m < plan->n_memories; m++) plan->memories[m].first_mapping = 4;
  plan->mappings = mappings;
  plan->n_mappings = 4;
  pl_plan_find_peaks(plan);
  round_trip(plan);
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

/* --- Predictions -------------------------------------------------------------------------------------------------- */

static const char shares_script[] =
    "gpus 0 1\n"
    "storage 512\n"
    "prologue\n"
    "copy user user on 1 bytes 1000000\n"
    "body\n"
    "acquire 0 0 0\n"
    "acquire 1 0 256\n"
    "acquire 2 0 0 host\n"
    "acquire 3 0 0 storage\n"
    "acquire 4 0 0 in 1\n"
    "copy 0 user on 1 bytes 1\n"      /* to a GPU */
    "copy user 1 on 2 bytes 20\n"     /* from a GPU */
    "copy 4 1 on 2 bytes 300\n"       /* both */
    "copy 0 1 on 0 bytes 4000\n"      /* inside a GPU's memory: neither */
    "copy 3 2 on 6 bytes 50000\n"     /* past the GPUs: neither */
    "copy 4 user on 4 bytes 600000\n" /* of the other job */
    "exec 0 re on 0 use\n"
    "exec 1 on 0 use\n"
    "exec 2 re on 3 use\n"
    "epilogue\n"
    "copy user 0 on 2 bytes 7000000\n";

/* A job's are those of its streams, in the body; bytes are those of all replicas, times are means of the GPUs. */
START_TEST(bytes_and_recomputes_of_jobs_follow_from_the_body) {
  static const int64_t whole[] = {2};
  planc_graph *graph;
  ok(randgraph_make(3, NULL, &graph));
  planc_job jobs[2];
  for (int32_t j = 0; j < 2; j++)
    jobs[j] = (planc_job){.graph = graph, .batch = 2, .n_rounds = 1, .rounds = whole, .iterations = 1};
  for (int32_t replicas = 1; replicas <= 3; replicas += 2) {
    planc_plan *plan;
    jobs[0].replicas = jobs[1].replicas = replicas > 1 ? replicas : 0;
    ok(script_make(shares_script, jobs, 2, 2048, 1024, &plan));
    planc_instr *instrs = (planc_instr *)plan->body.instrs;
    for (int32_t i = 0; i < plan->body.n; i++)
      if (instrs[i].op == PLANC_INSTR_exec) instrs[i].time_ns = 10 * i;
    plan->predicted.jobs[0] = (planc_job_predictions){.ideal_ns = 1, .busy_ns = 20, .stall_ns = 300};
    plan->predicted.jobs[1] = (planc_job_predictions){.ideal_ns = 4000, .busy_ns = 50000, .stall_ns = 600000};
    ok(pl_plan_derive(plan));
    const planc_job_predictions *of = plan->predicted.jobs;
    ck_assert_int_eq(of[0].copied_bytes[PLANC_ROUTE_H2D], replicas * (1 + 300));
    ck_assert_int_eq(of[0].copied_bytes[PLANC_ROUTE_D2H], replicas * (20 + 300));
    ck_assert_int_eq(of[0].recompute_ns, 110 / 2);
    ck_assert_int_eq(of[1].copied_bytes[PLANC_ROUTE_H2D], replicas * 600000);
    ck_assert_int_eq(of[1].copied_bytes[PLANC_ROUTE_D2H], 0);
    ck_assert_int_eq(of[1].recompute_ns, 130 / 2);
    planc_job_predictions total = planc_plan_predicted_total(plan);
    ck_assert_int_eq(total.ideal_ns, 4001);
    ck_assert_int_eq(total.busy_ns, 50020);
    ck_assert_int_eq(total.stall_ns, 600300);
    ck_assert_int_eq(total.copied_bytes[PLANC_ROUTE_H2D], replicas * (301 + 600000));
    ck_assert_int_eq(total.copied_bytes[PLANC_ROUTE_D2H], replicas * 320);
    ck_assert_int_eq(total.recompute_ns, 120);
    round_trip(plan);
    planc_plan_free(plan);
  }
  planc_graph_free(graph);
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
  int64_t *budget = &plan->memories[0].budget_bytes;
  *budget = (INT64_C(1) << 53) + 1;
  unprintable(plan, PLANC_INVALID_PLAN, "memory 0: its bytes or budget are out of range");
  *budget = INT64_MIN;
  unprintable(plan, PLANC_INVALID_PLAN, "memory 0: its bytes or budget are out of range");
  *budget = 0;
  plan->device.duplex_ppm = 0;
  unprintable(plan, PLANC_INVALID_PLAN, "device: a duplex of 0");
  plan->device.duplex_ppm = 1;
  instr->time_ns = (INT64_C(1) << 53) + 1;
  unprintable(plan, PLANC_BAD_INPUT, "9007199254740993 cannot be written: it is beyond 2^53");
  instr->time_ns = 0;
  instr->first_use = -1;
  unprintable(plan, PLANC_INTERNAL, "a plan whose uses are not in the order of its execs");
  instr->first_use = INT32_MAX;
  unprintable(plan, PLANC_INTERNAL, "a plan whose uses are not in the order of its execs");
  planc_job jobs[] = {plan->jobs[0], plan->jobs[0]};
  plan->jobs = jobs;
  plan->n_jobs = 2;
  jobs[1].replicas = 3;
  unprintable(plan, PLANC_INVALID_PLAN, "job 1 has 3 replicas, job 0 has 1");
  jobs[0].replicas = jobs[1].replicas = PLANC_PLAN_MAX_REPLICAS + 1;
  unprintable(plan, PLANC_INVALID_PLAN, "4097 replicas, at most 4096 are allowed");
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
  tcase_add_test(cases, replicas_come_back);
  tcase_add_test(cases, memories_and_links_come_back);
  tcase_add_test(cases, bytes_and_recomputes_of_jobs_follow_from_the_body);
  tcase_add_test(cases, what_has_no_form_is_not_written);
  tcase_add_test(cases, reals_that_are_not_finite_are_not_written);
  suite_add_tcase(suite, cases);
  return run_suite(suite);
}
