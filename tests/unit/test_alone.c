/* Times alone: what the simulator slows by what runs beside it is found again, by hand and on plans of every kind. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "planner/measured/alone.h"
#include "planner/simulate/program_of_plan.h"
#include "planner/simulate/sim_machine.h"
#include "tests/support/graphtext.h"
#include "tests/support/plan_tables.h"
#include "tests/support/randgraph.h"
#include "tests/support/script.h"
#include "tests/support/unit.h"
#include "tests/support/weave.h"

enum { MOST_TIMED = 1024, MOST_PERIODS = 9 };

/* A timeline made by hand: spans[p * n_timed + k]. */
typedef struct sheet {
  planc_timeline timeline;
  int32_t instrs[MOST_TIMED];
  planc_span spans[MOST_TIMED * MOST_PERIODS];
} sheet;

static void list_timed(const planc_plan *plan, int32_t n_periods, sheet *out) {
  out->timeline = (planc_timeline){.n_periods = n_periods, .instrs = out->instrs, .spans = out->spans};
  for (int32_t i = 0; i < plan->body.n; i++) {
    if (!planc_instr_is_timed(&plan->body.instrs[i])) continue;
    ck_assert_int_lt(out->timeline.n_timed, MOST_TIMED);
    out->instrs[out->timeline.n_timed++] = i;
  }
}

/* --- By hand ------------------------------------------------------------------------------------------------------ */

static const char graph_text[] =
    "planc-graph: 1\nname: chain\nloss: z\ntensors:\n"
    "  x: input f32[N,256]\n  y: f32[N,1]\n  z: f32[]\n"
    "ops:\n"
    "  - {op: a, type: t.a, in: [x], out: [y], traffic: 0}\n"
    "  - {op: b, type: t.b, in: [y], out: [z], traffic: 0}\n";

static const int64_t one[] = {1};

/* Compute is slowed by a quarter while an engine of its GPU copies, copies to half while one copies against them. */
static planc_plan *plan_of(const planc_graph *graph, int32_t n_jobs, const char *script) {
  planc_job job = {.graph = graph, .batch = 1, .n_rounds = 1, .rounds = one, .iterations = 1};
  planc_plan *plan;
  ok(script_make(script, (planc_job[]){job, job}, n_jobs, 1 << 20, 1 << 20, &plan));
  plan->device.slowdown_ppm = 250000;
  plan->device.duplex_ppm = 500000;
  for (int32_t i = 0; i < plan->body.n; i++) ((planc_instr *)plan->body.instrs)[i].busy_ppm = 800000;
  return plan;
}

#define OPERANDS "body\nacquire 0 x 0\nacquire 1 y 8192\nacquire 2 z 9216\n"

static const struct {
  const char *script;
  int32_t n_jobs, n_timed;
  planc_span spans[3];
  int64_t alone_ns[3];
} rows[] = {
    /* Beside a copy to the GPU for 500 of its 1000. */
    {OPERANDS "copy 0 user on 1\nexec a use 0 1\n", 1, 2, {{0, 500}, {0, 1000}}, {500, 500 + 400}},
    /* The engine also copies from the user to the host, and slows as much. */
    {OPERANDS "acquire 3 x 0 host\ncopy 3 user on 1\nexec a use 0 1\n", 1, 2, {{0, 500}, {0, 1000}}, {500, 500 + 400}},
    /* Storage's engines are of no GPU: neither compute nor the other engines know of them. */
    {"storage 65536\n" OPERANDS
     "acquire 3 x 0 host\nacquire 4 x 0 storage\ncopy 4 3 on 3\nexec a use 0 1\ncopy 0 user on 1\n",
     1,
     3,
     {{0, 500}, {1000, 2000}, {100, 400}},
     {500, 1000, 300}},
    /* Storage's own engines copy against each other. */
    {"storage 65536\n" OPERANDS
     "acquire 3 x 0 host\nacquire 4 x 0 storage\nacquire 5 x 8192 storage\nacquire 6 x 8192 host\n"
     "copy 4 3 on 3\ncopy 6 5 on 4\n",
     1,
     2,
     {{0, 500}, {100, 400}},
     {200 + 150, 150}},
    /* From the GPU, against a copy to it. */
    {OPERANDS "acquire 3 x 0 host\ncopy 0 user on 1\ncopy 3 0 on 2\n", 1, 2, {{0, 500}, {300, 700}}, {300 + 100, 300}},
    /* To the host from the user is the way to the GPU: against one from there. */
    {OPERANDS "acquire 3 x 0 host\ncopy 3 user on 1\ncopy user 0 on 2\n", 1, 2, {{0, 500}, {300, 700}}, {400, 300}},
    /* Two jobs' copies on one engine, which makes one at a time. */
    {"body\nacquire 0 x 0\nacquire 1 x#1 8192\ncopy 0 user on 1\ncopy 1 user on 4\n",
     2,
     2,
     {{0, 1000}, {200, 1200}},
     {200 + 400, 400 + 200}},
    /* Two jobs' kernels of 80 % each, together 160 % of the GPU, for 800 of their time. */
    {"body\nacquire 0 x 0\nacquire 1 y 8192\nacquire 2 x#1 16384\nacquire 3 y#1 24576\n"
     "exec a use 0 1\nexec a#1 on 3 use 2 3\n",
     2,
     2,
     {{0, 1000}, {200, 1600}},
     {200 + 500, 500 + 600}},
};

START_TEST(what_slows_is_taken_back) {
  planc_graph *graph = graph_of(graph_text);
  planc_plan *plan = plan_of(graph, rows[_i].n_jobs, rows[_i].script);
  static sheet s;
  int64_t alone_ns[3];
  list_timed(plan, 1, &s);
  ck_assert_int_eq(s.timeline.n_timed, rows[_i].n_timed);
  memcpy(s.spans, rows[_i].spans, sizeof rows[_i].spans);
  ok(pl_alone_times(&s.timeline, plan, alone_ns));
  for (int32_t k = 0; k < rows[_i].n_timed; k++) ck_assert_int_eq(alone_ns[k], rows[_i].alone_ns[k]);
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

/* Medians of what is behind the first period, which counts where there is no other. */
START_TEST(a_first_period_counts_where_it_is_the_only_one) {
  enum { N = 4 };
  static const int64_t took[N] = {9000, 100, 120, 110}, median[N] = {9000, 100, 110, 110};
  planc_graph *graph = graph_of(graph_text);
  planc_plan *plan = plan_of(graph, 1, OPERANDS "exec a use 0 1\n");
  static sheet s;
  for (int32_t n = 1; n <= N; n++) {
    int64_t alone_ns;
    list_timed(plan, n, &s);
    for (int32_t p = 0; p < n; p++) s.spans[p] = (planc_span){10000 * p, 10000 * p + took[p]};
    ok(pl_alone_times(&s.timeline, plan, &alone_ns));
    ck_assert_int_eq(alone_ns, median[n - 1]);
  }
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

/* --- The simulator's own runs ------------------------------------------------------------------------------------- */

static void record(void *user, int32_t stage, int32_t step, int64_t start, int64_t end) {
  sheet *s = user;
  int32_t k = 0;
  if (stage < 1 || stage > MOST_PERIODS) return;
  while (s->instrs[k] != step) k++;
  s->spans[(int64_t)(stage - 1) * s->timeline.n_timed + k] = (planc_span){start, end};
}

/* So many bodies as the machine runs them. */
static void run_on_machine(const planc_plan *plan, sheet *out) {
  pl_arena arena = {0};
  pl_acquired *acquired;
  sim_program program;
  sim_state state;
  bool over = false;
  list_timed(plan, MOST_PERIODS, out);
  ok(pl_plan_acquired(plan, &arena, &acquired));
  ok(sim_program_of_plan(plan, acquired, NULL, &arena, &program));
  ok(sim_state_make(&program, &arena, &state));
  state.last_body = MOST_PERIODS;
  while (!over) ok(sim_advance(&program, &state, &(sim_observer){.ended = record, .user = out}, &over));
  pl_arena_free(&arena);
}

/* A woven plan, with some of its chain let go so that streams run beside each other, goes to storage and back. */
START_TEST(what_the_simulator_slows_is_found_again) {
  static sheet s;
  int64_t slowed = 0;
  for (uint64_t seed = 0; seed < 40; seed++) {
    planc_graph *graph;
    woven w;
    int64_t rounds[] = {2, 3}, alone_ns[MOST_TIMED];
    ok(randgraph_make(seed, &(randgraph_options){.max_ops = 12, .max_elements = 256}, &graph));
    planc_job job = {.graph = graph, .batch = 5, .n_rounds = 2, .rounds = rounds, .iterations = 1};
    ok(weave(&job, WEAVE_STORE, 0, &w));
    planc_plan *plan = &w.plan;
    plan->device = (planc_plan_device){
        .name = "toy", .in_flight = 1000, .duplex_ppm = 700000, .slowdown_ppm = 50000 + (int64_t)seed * 10000};
    for (int32_t i = 0; i < plan->body.n; i++) {
      planc_instr *instr = (planc_instr *)&plan->body.instrs[i];
      if (instr->op == PLANC_INSTR_exec) instr->time_ns = 100 + i * 37 % 5000;
      if (instr->op == PLANC_INSTR_exec) instr->busy_ppm = 1000000;
      if (instr->op == PLANC_INSTR_wait && i % 3 > 0) instr->lag = 1;
    }
    run_on_machine(plan, &s);
    ok(pl_alone_times(&s.timeline, plan, alone_ns));
    for (int32_t k = 0; k < s.timeline.n_timed; k++) {
      const planc_instr *instr = &plan->body.instrs[s.instrs[k]];
      int64_t want = instr->op == PLANC_INSTR_exec ? instr->time_ns : instr->bytes; /* a byte takes a ns */
      planc_span middle = s.spans[MOST_PERIODS / 2 * s.timeline.n_timed + k];
      slowed += middle.end_ns - middle.start_ns > want;
      ck_assert_msg(llabs(alone_ns[k] - want) <= 1, "seed %d, body[%d]: %lld instead of %lld", (int)seed, s.instrs[k],
                    (long long)alone_ns[k], (long long)want);
    }
    woven_free(&w);
    planc_graph_free(graph);
  }
  ck_assert_int_gt(slowed, 100);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("alone");
  TCase *all = tcase_create("all");
  tcase_add_loop_test(all, what_slows_is_taken_back, 0, sizeof rows / sizeof *rows);
  tcase_add_test(all, a_first_period_counts_where_it_is_the_only_one);
  tcase_add_test(all, what_the_simulator_slows_is_found_again);
  tcase_set_timeout(all, 60);
  suite_add_tcase(suite, all);
  return run_suite(suite);
}
