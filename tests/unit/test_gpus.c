/* Several GPUs: replicas in the trace, the gradient exchange in hand-made plans, numerics against one GPU, a shared
 * link. What policies make for several GPUs is tested with the policies. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planc/check.h"
#include "planc/policy.h"
#include "planc/simulate.h"
#include "planrt/planrt.h"
#include "runtime/backend.h"
#include "tests/support/graphtext.h"
#include "tests/support/judge.h"
#include "tests/support/randgraph.h"
#include "tests/support/script.h"
#include "tests/support/tables.h"
#include "tests/support/unit.h"

static const int64_t two[] = {2}, one_and_one[] = {1, 1};

/* --- The trace ---------------------------------------------------------------------------------------------------- */

static const char pair_text[] =
    "planc-graph: 1\n"
    "name: pair\n"
    "tensors:\n"
    "  x: input f32[N,32]\n"
    "  w: param f32[64]\n"
    "  dw: grad f32[64]\n"
    "ops:\n"
    "  - {op: g, type: t.g, phase: backward, in: [x], out: [dw], flags: [accumulates]}\n"
    "  - {op: u, type: t.u, phase: optimizer, in: [w, dw], out: [w]}\n";

/* "g" of job 0 as "g0", what sums as "=g0"; an access as (buffer read>write), a buffer by its number. */
static const char *line(const planc_trace *trace) {
  static char text[4096];
  size_t length = 0;
  for (int32_t i = 0; i < trace->n_instances; i++) {
    const planc_instance *instance = &trace->instances[i];
    length += (size_t)snprintf(text + length, sizeof text - length, "%s%s%s%d", i ? " " : "",
                               instance->role == PLANC_ROLE_EXCHANGE ? "=" : "", planc_trace_op(trace, i)->name,
                               instance->job);
    for (int32_t a = instance->first_access; a < instance->first_access + instance->n_accesses; a++) {
      const planc_access *access = &trace->accesses[a];
      char write[16] = "";
      if (access->write >= 0) snprintf(write, sizeof write, ">%d", access->write);
      length += (size_t)snprintf(text + length, sizeof text - length, "(%d %d%s)", access->buffer, access->read, write);
    }
    ck_assert_uint_lt(length, sizeof text);
  }
  return text;
}

static planc_job replica(const planc_graph *graph, int32_t index, int32_t of) {
  return (planc_job){
      .graph = graph, .batch = 2, .n_rounds = 1, .rounds = two, .iterations = 1, .replica = index, .replicas = of};
}

/* Replica 1 in two rounds, the other in one: rounds are each replica's own. Buffers: 0 x, 1 dw of job 0; 2 x, 3 dw, 4 x
 * of job 1; 5 is 3 as job 0 gets it, 6 w; 7 is 1 as job 1 gets it, 8 w. */
START_TEST(replicas_run_their_rounds_then_exchange) {
  planc_graph *graph = judge_graph(pair_text);
  planc_job jobs[] = {replica(graph, 0, 2), replica(graph, 1, 2)};
  jobs[1].n_rounds = 2;
  jobs[1].rounds = one_and_one;
  planc_trace *trace;
  ok(planc_expand(jobs, 2, &trace));
  ck_assert_str_eq(line(trace),
                   "g0(0 0)(1 -1>1) g1(2 0)(3 -1>1) g1(4 0)(3 1>2) =g0(1 1>2)(5 0) u0(6 0>1)(1 2) =g1(7 0)(3 2>3) u1(8 "
                   "0>1)(3 3)");
  ck_assert_int_eq(trace->buffers[1].sent, 1);
  ck_assert_int_eq(trace->buffers[3].sent, 2);
  ck_assert_int_eq(trace->buffers[5].peer, 3);
  ck_assert_int_eq(trace->buffers[7].peer, 1);
  ck_assert_int_eq(trace->buffers[5].flags, PLANC_BUFFER_FED);
  ck_assert_int_eq(trace->buffers[5].kind, PLANC_KIND_temp);
  static const int64_t offsets[] = {0, 2, 3, 0, 0, 2, 2};
  for (int32_t i = 0; i < 7; i++) {
    ck_assert_int_eq(trace->instances[i].sample_offset, offsets[i]);
    ck_assert_int_eq(planc_trace_recomputable(trace, i), 0);
  }
  ck_assert_int_eq(planc_job_whole_batch(&trace->jobs[1]), 4);
  planc_trace_free(trace);
  planc_graph_free(graph);
}
END_TEST

/* Two iterations, three replicas, and a job beside them that trains alone. */
START_TEST(every_iteration_has_its_exchange) {
  planc_graph *graph = judge_graph(pair_text);
  planc_job jobs[] = {replica(graph, 0, 0), replica(graph, 0, 3), replica(graph, 1, 3), replica(graph, 2, 3)};
  for (int j = 1; j < 4; j++) jobs[j].iterations = 2;
  planc_trace *trace;
  ok(planc_expand(jobs, 4, &trace));
  ck_assert_int_eq(trace->n_instances, 2 + 2 * 3 * 3);
  int32_t n = 0;
  for (int32_t i = 0; i < trace->n_instances; i++) {
    const planc_instance *instance = &trace->instances[i];
    if (instance->role != PLANC_ROLE_EXCHANGE) continue;
    n++;
    ck_assert_str_eq(planc_trace_type(trace, i), "exchange");
    ck_assert_int_eq(instance->n_accesses, 3);
    for (int32_t k = 0; k < 3; k++) {
      const planc_access *access = &trace->accesses[instance->first_access + k];
      const planc_buffer *buffer = &trace->buffers[access->buffer];
      ck_assert_int_eq(buffer->job, instance->job);
      ck_assert_int_eq(access->write >= 0, k + 1 == instance->job);
      if (k + 1 == instance->job) continue;
      ck_assert_int_eq(trace->buffers[buffer->peer].job, k + 1);
      ck_assert_int_eq(trace->buffers[buffer->peer].iteration, instance->iteration);
    }
  }
  ck_assert_int_eq(n, 6);
  planc_trace_free(trace);
  planc_graph_free(graph);
}
END_TEST

START_TEST(a_lone_replica_stands_for_the_others) {
  planc_graph *graph = judge_graph(pair_text);
  planc_job job = replica(graph, 0, 3);
  planc_trace *trace;
  ok(planc_expand_replica(&job, &trace));
  ck_assert_str_eq(line(trace), "g0(0 0)(1 -1>1) =g0(1 1>2)(2 0)(3 0) u0(4 0>1)(1 2)");
  ck_assert_int_eq(trace->buffers[2].peer, 1);
  ck_assert_int_eq(trace->buffers[3].peer, 1);
  planc_trace_free(trace);
  planc_graph_free(graph);
}
END_TEST

START_TEST(replicas_stand_together) {
  planc_graph *graph = judge_graph(pair_text), *other = judge_graph(pair_text);
  static const struct {
    int32_t replica[3], replicas[3];
    const char *message;
  } cases[] = {
      {{0, 0, 0}, {2, 2, 0}, "job 0: it is replica 0 of 2, and the others are not beside it"},
      {{0, 1, 0}, {2, 3, 0}, "job 0: it is replica 0 of 2"},
      {{0, 1, 0}, {3, 3, 3}, "job 1: it is replica 1 of 3"},
      {{0, 1, 0}, {2, 2, 2}, "job 2: it is replica 0 of 2"},
      {{1, 0, 1}, {2, 2, 2}, "job 0: it is replica 1 of 2"},
      {{0, 0, 1}, {0, 3, 3}, "job 2: it is replica 1 of 3"},
      {{0, 1, 2}, {2, 2, 2}, "job 2: it is replica 2 of 2"},
      {{0, 0, -1}, {0, 0, 0}, "job 2: it is replica -1"},
      {{3, 0, 0}, {INT32_MAX, 0, 0}, "job 0: it is replica 3"},
  };
  planc_trace *trace;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    planc_job jobs[3];
    for (int j = 0; j < 3; j++) jobs[j] = replica(graph, cases[c].replica[j], cases[c].replicas[j]);
    assert_fails(planc_expand(jobs, 3, &trace), PLANC_BAD_INPUT, cases[c].message);
  }
  for (int field = 0; field < 3; field++) {
    planc_job jobs[] = {replica(graph, 0, 2), replica(graph, 1, 2)};
    static const int64_t three[] = {3};
    if (field == 0) jobs[1].graph = other;
    if (field == 1) jobs[1].iterations = 2;
    if (field == 2) jobs[1].batch = 3, jobs[1].rounds = three;
    assert_fails(planc_expand(jobs, 2, &trace), PLANC_BAD_INPUT, "job 1: replica 1 of 2 differs");
  }
  planc_graph_free(graph);
  planc_graph_free(other);
}
END_TEST

/* Where among the buffers of its job a buffer comes. */
static int32_t place_of(const planc_trace *trace, int32_t buffer) {
  int32_t place = 0;
  for (int32_t b = 0; b < buffer; b++) place += trace->buffers[b].job == trace->buffers[buffer].job;
  return place;
}

/* Instance i of a replica does what instance k of a lone one does; an exchange has its own gradient where it comes. */
static void is_alike(const planc_trace *all, int32_t i, const planc_trace *lone, int32_t k) {
  const planc_instance *a = &all->instances[i], *b = &lone->instances[k];
  int32_t own = a->role == PLANC_ROLE_EXCHANGE ? a->job : 0;
  ck_assert_int_eq(a->op, b->op);
  ck_assert_int_eq(a->role, b->role);
  ck_assert_int_eq(a->iteration, b->iteration);
  ck_assert_int_eq(a->round, b->round);
  ck_assert_int_eq(a->batch, b->batch);
  ck_assert_int_eq(a->sample_offset, b->sample_offset + a->job * all->jobs[0].batch);
  ck_assert_int_eq(a->accumulates, b->accumulates);
  ck_assert_int_eq(a->n_accesses, b->n_accesses);
  for (int32_t n = 0; n < a->n_accesses; n++) {
    int32_t same = n < own ? n + 1 : n == own ? 0 : n; /* the lone one's comes first */
    if (a->role != PLANC_ROLE_EXCHANGE) same = n;
    const planc_access *x = &all->accesses[a->first_access + n], *y = &lone->accesses[b->first_access + same];
    const planc_buffer *of = &all->buffers[x->buffer];
    ck_assert_int_eq(x->read, y->read);
    ck_assert_int_eq(x->write, y->write);
    ck_assert_int_eq(x->effect, y->effect);
    ck_assert_int_eq(place_of(all, x->buffer), y->buffer);
    ck_assert_int_eq(of->sent, lone->buffers[y->buffer].sent);
    ck_assert_int_eq(of->bytes, lone->buffers[y->buffer].bytes);
    ck_assert_int_eq(of->flags, lone->buffers[y->buffer].flags);
    if (of->peer < 0) continue;
    ck_assert_int_eq(place_of(all, of->peer), lone->buffers[y->buffer].peer);
    ck_assert_int_eq(all->buffers[of->peer].job, n);
  }
}

/* That one replica is planned for all rests on this. What is read of another must have been made before. */
START_TEST(replicas_are_alike) {
  static const int64_t rounds[] = {3, 2};
  planc_graph *graph;
  ok(randgraph_make(UINT64_C(9000) + (uint64_t)_i, NULL, &graph));
  planc_job jobs[3];
  int32_t n = 2 + _i % 2, at[3] = {0};
  for (int32_t j = 0; j < n; j++) {
    jobs[j] = (planc_job){.graph = graph, .rounds = rounds, .replica = j, .replicas = n};
    jobs[j].n_rounds = 1 + _i / 2 % 2;
    jobs[j].batch = jobs[j].n_rounds == 1 ? 3 : 5;
    jobs[j].iterations = 1 + _i / 4 % 2;
  }
  planc_trace *all, *lone;
  ok(planc_expand(jobs, n, &all));
  ok(planc_expand_replica(&jobs[0], &lone));
  ck_assert_int_eq(all->n_instances, n * lone->n_instances);
  ck_assert_int_eq(all->n_buffers, n * lone->n_buffers);
  int32_t *made = calloc((size_t)all->n_buffers + 1, sizeof *made); /* the newest version so far */
  ck_assert_ptr_nonnull(made);
  for (int32_t i = 0; i < all->n_instances; i++) {
    const planc_instance *instance = &all->instances[i];
    is_alike(all, i, lone, at[instance->job]++);
    for (int32_t a = instance->first_access; a < instance->first_access + instance->n_accesses; a++) {
      const planc_access *access = &all->accesses[a];
      int32_t peer = all->buffers[access->buffer].peer;
      if (peer >= 0) ck_assert_int_ge(made[peer], all->buffers[peer].sent);
      if (access->write >= 0) made[access->buffer] = access->write;
    }
  }
  free(made);
  planc_trace_free(lone);
  planc_trace_free(all);
  planc_graph_free(graph);
}
END_TEST

/* An optimizer op that reads what one replica made of its samples is none of the whole batch. */
START_TEST(what_cannot_be_split_has_no_replicas) {
  planc_graph *graph = judge_graph(
      "planc-graph: 1\nname: part\ntensors:\n  x: input f32[N,4]\n  g: grad f32[4]\n  y: f32[N,4]\nops:\n"
      "  - {op: b, type: t.b, phase: backward, in: [x], out: [g, y]}\n"
      "  - {op: s, type: t.s, phase: optimizer, in: [g, y]}\n");
  planc_job jobs[] = {replica(graph, 0, 2), replica(graph, 1, 2)};
  planc_trace *trace;
  assert_fails(planc_expand(jobs, 2, &trace), PLANC_BAD_INPUT, "op s runs once for all rounds but touches y");
  planc_graph_free(graph);
}
END_TEST

/* --- The checker -------------------------------------------------------------------------------------------------- */

/* Both replicas of the graph above. Events: 0, 1 the input is there; 2, 3 the gradient is made; 4, 5 it is sent; 6, 7
 * the other's has come; 8, 9 the optimizer has run; 10, 11 the boundary is there. */
static const char exchange[] =
    "boundary w#0 0\n"
    "boundary w#1 0\n"
    "prologue\n"
    "acquire 0 w#0 0\n"
    "acquire 1 w#1 0\n"
    "copy 0 user on 1\n"
    "copy 1 user on 4\n"
    "record 10 on 1\n"
    "record 11 on 4\n"
    "wait 10 on 0\n"
    "wait 11 on 3\n"
    "record 6 on 1\n"
    "record 7 on 4\n"
    "record 8 on 0\n"
    "record 9 on 3\n"
    "body\n"
    "wait 8 lag 1 on 1\n"
    "acquire 2 x#0 256\n"
    "copy 2 user on 1\n"
    "record 0 on 1\n"
    "wait 0 on 0\n"
    "acquire 3 dw#0 512\n"
    "exec g#0 use 2 3\n"
    "record 2 on 0\n"
    "wait 2 on 2\n"
    "wait 7 lag 1 on 2\n"
    "acquire 4 dw#0 0 host\n"
    "copy 4 3 on 2\n"
    "record 4 on 2\n"
    "wait 9 lag 1 on 4\n"
    "acquire 5 x#1 256\n"
    "copy 5 user on 4\n"
    "record 1 on 4\n"
    "wait 1 on 3\n"
    "acquire 6 dw#1 512\n"
    "exec g#1 on 3 use 5 6\n"
    "record 3 on 3\n"
    "wait 3 on 5\n"
    "wait 6 lag 1 on 5\n"
    "acquire 7 dw#1 256 host\n"
    "copy 7 6 on 5\n"
    "record 5 on 5\n"
    "acquire 8 dw#2 768\n"
    "wait 5 on 1\n"
    "copy 8 7 on 1\n"
    "record 6 on 1\n"
    "wait 6 on 0\n"
    "wait 4 on 0\n"
    "exec g#2 use 3 8\n"
    "exec u#0 use 0 3\n"
    "record 8 on 0\n"
    "acquire 9 dw#3 768\n"
    "wait 4 on 4\n"
    "copy 9 4 on 4\n"
    "record 7 on 4\n"
    "wait 7 on 3\n"
    "wait 5 on 3\n"
    "exec g#3 on 3 use 9 6\n"
    "exec u#1 on 3 use 1 6\n"
    "record 9 on 3\n"
    "release 2\n"
    "release 3\n"
    "release 4\n"
    "release 5\n"
    "release 6\n"
    "release 7\n"
    "release 8\n"
    "release 9\n"
    "epilogue\n"
    "wait 8 lag 1 on 2\n"
    "wait 9 lag 1 on 5\n"
    "copy user 0 on 2\n"
    "copy user 1 on 5\n"
    "release 0\n"
    "release 1\n";

static const struct {
  const char *find, *replace, *message;
} exchanges[] = {
    {"exec g#2 use 3 8\n", "", "the jobs have at least 6 instances and 12 accesses"},
    {"exec g#2 use 3 8\nexec u#0 use 0 3\n", "exec u#0 use 0 3\nexec g#2 use 3 8\n",
     "exec u of job 0: reads version 2 of dw of job 0, but residency 3 holds version 1"},
    {"exec g#2 use 3 8\n", "exec g#2 use 8 3\n",
     "exec the exchange of g of job 0: wants dw of job 0, but residency 8 is of the copy in job 0 of dw of job 1"},
    {"exec g#2 use 3 8\n", "exec g#2 use 3 3\n", "wants the copy in job 0 of dw of job 1, but residency 3 is of dw of"},
    {"exec g#2 use 3 8\n", "exec g#2 use 3 8\nexec g#2 re use 3 8\n", "cannot be recomputed"},
    {"exec g#2 use 3 8\n", "exec g#2 on 3 use 3 8\n", "stream 3 belongs to job 1, the data to job 0"},
    {"wait 5 on 1\n", "", "prefetch the copy in job 0 of dw of job 1: reads dw of job 1, which offload at line "},
    {"wait 6 lag 1 on 5\n", "", "offload dw of job 1: writes dw of job 1, whose bytes prefetch at line "},
    {"wait 4 on 0\n", "", "exec the exchange of g of job 0: writes dw of job 0, whose bytes offload at line "},
    {"wait 6 on 0\n", "",
     "exec the exchange of g of job 0: reads the copy in job 0 of dw of job 1, which prefetch at line"},
    {"copy 8 7 on 1\n", "copy 8 4 on 1\n", "prefetch the copy in job 0 of dw of job 1: residency 4 is of dw of job 0"},
    {"copy 8 7 on 1\n", "copy 8 user on 1\n", "is not a buffer that the user feeds"},
    {"copy 8 7 on 1\n", "copy 8 7 on 4\n", "stream 4 does not copy from memory 2 to memory 0"},
    {"copy 8 7 on 1\n", "copy 8 6 on 1\n", "stream 1 does not copy from memory 1 to memory 0"},
    {"copy 8 7 on 1\n", "copy 8 6 on 0\n", "stream 0 does not copy from memory 1 to memory 0"},
    {"acquire 7 dw#1 256 host\n", "acquire 7 dw#1 512 host\n", "are not inside the arena of 512 bytes"},
    {"acquire 7 dw#1 256 host\n", "acquire 7 dw#1 0 host\n", "overlaps dw of job 0 in residency 4"},
    {"acquire 8 dw#2 768\n", "acquire 8 dw#2 768 in 1\n", "stream 1 does not copy from memory 2 to memory 1"},
    {"copy 7 6 on 5\n", "", "residency 7 holds nothing yet"},
    {"copy 7 6 on 5\n", "copy 7 5 on 5\n", "residency 5 is of x of job 1"},
    {"copy 7 6 on 5\n", "copy 7 6 on 2\n", "stream 2 does not copy from memory 1 to memory 2"},
    /* What was sent once more after the exchange is another version, and the copy of a copy is none of the gradient. */
    {"wait 4 on 4\n", "wait 8 on 2\ncopy 4 3 on 2\nrecord 12 on 2\nwait 12 on 4\n",
     "prefetch the copy in job 1 of dw of job 0: gets version 2 of dw of job 0, not what is sent, version 1"},
    {"wait 4 on 4\n", "wait 6 on 2\ncopy 4 8 on 2\nrecord 12 on 2\nwait 12 on 4\n",
     "offload dw of job 0: residency 8 is of the copy in job 0 of dw of job 1"},
};

static planc_plan *exchange_plan(const planc_graph *graph, const char *text) {
  const planc_job jobs[] = {replica(graph, 0, 2), replica(graph, 1, 2)};
  planc_plan *plan;
  ok(script_make(text, jobs, 2, 1024, 512, &plan));
  return plan;
}

START_TEST(an_exchange_is_whole_and_in_order) {
  planc_graph *graph = judge_graph(pair_text);
  char *text = judge_edited(exchange, exchanges[_i].find, exchanges[_i].replace);
  planc_plan *plan = exchange_plan(graph, exchange);
  ck_assert_int_eq(planc_plan_gpus(plan), 2);
  judge_expect(plan, PLANC_OK, "ok", "before the change");
  planc_plan_free(plan);
  plan = exchange_plan(graph, text);
  judge_expect(plan, PLANC_INVALID_PLAN, exchanges[_i].message, exchanges[_i].find);
  planc_plan_free(plan);
  free(text);
  planc_graph_free(graph);
}
END_TEST

/* A few numbers stand for a trace that no memory holds: refused before it is made. */
START_TEST(jobs_beyond_the_plan_are_refused_early) {
  planc_graph *graph = judge_graph(pair_text);
  planc_plan *plan = exchange_plan(graph, exchange);
  static planc_job jobs[PLANC_PLAN_MAX_JOBS];
  for (int32_t j = 0; j < PLANC_PLAN_MAX_JOBS; j++) jobs[j] = replica(graph, j, PLANC_PLAN_MAX_JOBS);
  plan->jobs = jobs;
  plan->n_jobs = PLANC_PLAN_MAX_JOBS;
  assert_fails(planc_check(plan, NULL, NULL), PLANC_INVALID_PLAN, "the jobs have at least");
  /* Of two replicas, the exchanges are counted as well: four instances without, of two more than stand there. */
  plan->n_jobs = 2;
  jobs[0] = replica(graph, 0, 2);
  jobs[1] = replica(graph, 1, 2);
  plan->n_uses = 11;
  assert_fails(planc_check(plan, NULL, NULL), PLANC_INVALID_PLAN, "at least 6 instances and 12 accesses");
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

/* The GPUs' engines of one way share a bus. */
static void share_links(planc_plan *plan) {
  for (int32_t l = 0; l < plan->n_links; l++) plan->links[l].bus = plan->links[l].engine % 2;
}

/* The form of jobs and of the tables: what is written is read again, and twice the same. */
START_TEST(plans_of_several_gpus_are_read_as_written) {
  planc_graph *graph = judge_graph(pair_text);
  planc_plan *plan = exchange_plan(graph, exchange), *again;
  char *text, *text_again;
  size_t length, length_again;
  share_links(plan);
  ok(planc_plan_print(plan, &text, &length));
  ck_assert_ptr_nonnull(strstr(text, "\"memories\":4,\"links\":12,\"graphs\":1"));
  ck_assert_ptr_nonnull(strstr(text, "{\"link\":[2,1],\"engine\":2,\"rate\":1000000000,\"latency\":0,\"bus\":0}\n"));
  ck_assert_ptr_nonnull(strstr(text, "\"iterations\":1,\"replica\":1,\"replicas\":2}\n"));
  ok(planc_plan_parse(text, length, "x.plan", &again));
  for (int32_t l = 0; l < plan->n_links; l++) ck_assert_int_eq(again->links[l].bus, plan->links[l].bus);
  ck_assert_int_eq(again->jobs[1].replica, 1);
  ck_assert_int_eq(again->jobs[1].replicas, 2);
  ok(planc_plan_print(again, &text_again, &length_again));
  ck_assert_str_eq(text, text_again);
  planc_plan_free(again);
  free(text_again);
  char *other = judge_edited(text, "\"replicas\":2", "\"replicas\":1");
  assert_fails(planc_plan_parse(other, length, "x.plan", &again), PLANC_BAD_INPUT, "1 is not between 2 and 4096");
  free(other);
  free(text);
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

/* --- Numerics ----------------------------------------------------------------------------------------------------- */

static const char net_text[] =
    "planc-graph: 1\nname: net\nloss: loss\ntensors:\n"
    "  x: input f32[N,1,6,6]\n  labels: input i64[N]\n"
    "  c.w: param f32[4,1,3,3]\n  c.b: param f32[4]\n  c: f32[N,4,6,6]\n  r: f32[N,4,6,6] of c\n"
    "  p: f32[N,4,3,3]\n  flat: f32[N,36] of p\n  d: f32[N,36]\n"
    "  f.w: param f32[3,36]\n  f.b: param f32[3]\n  z: f32[N,3]\n  loss: f32[]\n  probs: f32[N,3]\n"
    "ops:\n"
    "  - {op: c, type: conv2d, in: [x, c.w, c.b], out: [c], attrs: {pad: [1, 1]}}\n"
    "  - {op: r, type: relu, in: [c], out: [r]}\n"
    "  - {op: p, type: maxpool2d, in: [r], out: [p], attrs: {kernel: [2, 2], stride: [2, 2]}}\n"
    "  - {op: d, type: dropout, in: [flat], out: [d], attrs: {p: 0.25, seed: 1}}\n"
    "  - {op: f, type: linear, in: [d, f.w, f.b], out: [z]}\n"
    "  - {op: l, type: softmax_xent, in: [z, labels], out: [loss, probs]}\n";

enum { ITERATIONS = 8, BATCH = 12, WEIGHTS = 3 * 36 };

typedef struct outcome {
  float losses[ITERATIONS];
  float weights[3][WEIGHTS]; /* by replica */
} outcome;

static planc_status add_loss(void *user, const planrt_result *result) {
  outcome *to = user;
  to->losses[result->iteration] += *(const float *)result->data;
  return NULL;
}

/* Trains on `gpus`, each with a twelfth of its part of the batch as a round; everything is verified against the
 * reference. */
static void run_net(const planc_graph *graph, const planc_profile *profile, const char *policy, int32_t gpus,
                    outcome *out) {
  planc_problem problem = {.graph = graph,
                           .profile = profile,
                           .batch = BATCH / gpus,
                           .gpus = gpus,
                           .sub_batch = strcmp(policy, "modnn") == 0 ? 2 : 0,
                           .budget_bytes = 1 << 20,
                           .host_budget_bytes = -1};
  planc_plan *plan;
  ok_in(planc_make_plan(&problem, planc_policy_find(policy), &plan), policy);
  ck_assert_int_eq(planc_plan_gpus(plan), gpus);
  ok_in(planc_check(plan, NULL, NULL), policy);
  *out = (outcome){0};
  planrt_options options = {.sink = add_loss, .user = out, .verify = true, .poison = true};
  planrt_session *session;
  ok_in(planrt_session_new(plan, &options, &session), policy);
  ok(planrt_init(session));
  planrt_set_step(session, (planrt_step){.learning_rate = 0.05});
  ok_in(planrt_run(session, ITERATIONS), policy);
  for (int32_t t = 0; t < graph->n_tensors; t++) {
    if (strcmp(graph->tensors[t].name, "f.w") != 0) continue;
    for (int32_t j = 0; j < gpus; j++)
      ok(planrt_read(session, j, graph->tensors[t].storage, out->weights[j], sizeof out->weights[j]));
  }
  planrt_session_free(session);
  planc_plan_free(plan);
}

/* The same samples, dropout masks, means and updates as on one GPU; all replicas have the same bits after them. */
START_TEST(several_gpus_train_as_one_does) {
  static const char *const policies[] = {"none", "modnn", "vdnn-all", "window", "cheap"};
  planc_graph *forward = graph_of(net_text), *graph;
  planc_profile *profile;
  ok(planc_profile_read("profiles/k40m.json", &profile));
  ok(planc_graph_train(forward, PLANC_MOMENTUM, &graph));
  outcome one, several;
  run_net(graph, profile, "none", 1, &one);
  ck_assert_float_lt(one.losses[ITERATIONS - 1], one.losses[0]);
  for (int32_t gpus = 2; gpus <= 3; gpus++) {
    run_net(graph, profile, policies[_i], gpus, &several);
    for (int32_t j = 1; j < gpus; j++)
      ck_assert_mem_eq(several.weights[j], several.weights[0], sizeof several.weights[0]);
    for (int k = 0; k < ITERATIONS; k++) ck_assert_float_eq_tol(several.losses[k], one.losses[k], 1e-5F);
    for (int k = 0; k < WEIGHTS; k++) ck_assert_float_eq_tol(several.weights[0][k], one.weights[0][k], 1e-5F);
  }
  planc_profile_free(profile);
  planc_graph_free(graph);
  planc_graph_free(forward);
}
END_TEST

/* Nobody runs a plan for several GPUs on a backend that has one. */
START_TEST(one_device_is_not_several) {
  planc_graph *graph = judge_graph(pair_text);
  planc_plan *plan = exchange_plan(graph, exchange);
  planrt_backend single = planrt_host_backend;
  single.parts = false;
  planrt_options options = {.backend = &single, .synthetic = true};
  planrt_session *session;
  assert_fails(planrt_session_new(plan, &options, &session), PLANC_DEVICE, "the plan is for 2 GPUs, backend host runs");
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

/* --- The simulator ------------------------------------------------------------------------------------------------ */

/* Both GPUs copy in at once, 256 bytes in 256 + 100 ns. */
static planc_simulation simulate_copies(const planc_graph *graph, const char *text, bool shared, int64_t duplex_ppm) {
  planc_plan *plan = exchange_plan(graph, text);
  plan->device.in_flight = 1000;
  plan->device.duplex_ppm = duplex_ppm;
  const planc_link link = {.bytes_per_second = 1000000000, .latency_ns = 100};
  tables_links(plan, link, link);
  if (shared) share_links(plan);
  planc_simulation s;
  ok(planc_simulate(plan, NULL, NULL, &s));
  planc_plan_free(plan);
  return s;
}

START_TEST(gpus_share_a_link_or_do_not) {
  planc_graph *graph = judge_graph(pair_text);
  static const char in[] = "body\nacquire 0 x#0 0\nacquire 1 x#1 0\ncopy 0 user on 1\ncopy 1 user on 4\n";
  static const char both[] =
      "body\nacquire 0 x#0 0\nacquire 1 x#1 0\nacquire 2 x#1 0 host\ncopy 0 user on 1\ncopy 2 1 on 5\n";
  planc_simulation s = simulate_copies(graph, in, false, 1000000);
  ck_assert_int_eq(s.iteration_ns, 356);
  ck_assert_int_eq(s.h2d_bytes, 512);
  ck_assert_int_eq(s.h2d_ns, 356); /* the mean of both engines */
  s = simulate_copies(graph, in, true, 1000000);
  ck_assert_int_eq(s.iteration_ns, 2 * 356);
  ck_assert_int_eq(s.h2d_ns, 2 * 356);
  /* Copies in the other direction slow down those of the same link only. */
  ck_assert_int_eq(simulate_copies(graph, both, false, 500000).iteration_ns, 356);
  ck_assert_int_eq(simulate_copies(graph, both, true, 500000).iteration_ns, 2 * 356);
  planc_graph_free(graph);
}
END_TEST

/* GPU 0 computes 3000 ns, GPU 1 1000: times on a GPU are means, and what is live is counted on each. */
START_TEST(times_are_means_over_gpus) {
  planc_graph *graph = judge_graph(pair_text);
  planc_plan *plan = exchange_plan(graph,
                                   "body\nacquire 0 x#0 0\nacquire 1 dw#0 256\nacquire 2 x#1 0\nacquire 3 dw#1 256\n"
                                   "exec g#0 use 0 1\nexec g#1 on 3 use 2 3\n"
                                   "release 0\nrelease 1\nrelease 2\nrelease 3\n");
  plan->device = (planc_plan_device){.duplex_ppm = 1000000, .in_flight = 1000};
  planc_instr *instrs = (planc_instr *)plan->body.instrs;
  instrs[4].time_ns = 3000;
  instrs[5].time_ns = 1000;
  planc_simulation s;
  ok(planc_simulate(plan, NULL, NULL, &s));
  ck_assert_int_eq(s.iteration_ns, 3000);
  ck_assert_int_eq(s.compute_ns, 2000);
  ck_assert_int_eq(s.live_peak_bytes, 512);
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("gpus");
  TCase *tests = tcase_create("all");
  tcase_set_timeout(tests, 60);
  tcase_add_test(tests, replicas_run_their_rounds_then_exchange);
  tcase_add_test(tests, every_iteration_has_its_exchange);
  tcase_add_test(tests, a_lone_replica_stands_for_the_others);
  tcase_add_loop_test(tests, replicas_are_alike, 0, 40);
  tcase_add_test(tests, replicas_stand_together);
  tcase_add_test(tests, what_cannot_be_split_has_no_replicas);
  tcase_add_loop_test(tests, an_exchange_is_whole_and_in_order, 0, sizeof exchanges / sizeof *exchanges);
  tcase_add_test(tests, jobs_beyond_the_plan_are_refused_early);
  tcase_add_test(tests, plans_of_several_gpus_are_read_as_written);
  tcase_add_loop_test(tests, several_gpus_train_as_one_does, 0, 5);
  tcase_add_test(tests, one_device_is_not_several);
  tcase_add_test(tests, gpus_share_a_link_or_do_not);
  tcase_add_test(tests, times_are_means_over_gpus);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
