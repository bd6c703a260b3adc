/* The checker's answer about order against an oracle that has none of its machinery: all accesses of a prologue, one or
 * four bodies and an epilogue, all pairs that conflict, and the full relation of what events and streams order. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planc/check.h"
#include "planc/policy.h"
#include "tests/support/judge.h"
#include "tests/support/mutate.h"
#include "tests/support/randgraph.h"
#include "tests/support/script.h"
#include "tests/support/unit.h"
#include "util/vec.h"

enum { MANY = 4, HOST = -1, PLANS = 30, PLANS_OF_TWO = 9 };

/* --- The oracle --------------------------------------------------------------------------------------------------- */

/* A command and the bytes it touches: those of touches[first .. first + n). */
typedef struct node {
  int64_t first, n;
} node;

typedef struct byte_range {
  int32_t memory; /* the GPU's, or HOST */
  int64_t from, to;
  bool writes;
} byte_range;

typedef struct oracle {
  const planc_plan *plan;
  planc_trace *trace;
  VEC(node) nodes;
  VEC(byte_range) touches;
  int64_t row;          /* words of a node's row in `before` */
  uint64_t *before;     /* bit j of node i's row: j has ended when i starts */
  int64_t *newest;      /* by stream: its newest node, -1 = none */
  int64_t *recorded[2]; /* by event: the node that recorded it in this section and in the one before, -1 = none */
  int64_t *address;     /* by residency */
  int64_t *bytes;
} oracle;

static int64_t *filled(int64_t n, int64_t value) {
  int64_t *values = malloc((size_t)(n + 1) * sizeof *values);
  ck_assert_ptr_nonnull(values);
  for (int64_t i = 0; i < n; i++) values[i] = value;
  return values;
}

static void touch(oracle *o, int32_t memory, int64_t from, int64_t bytes, bool writes) {
  byte_range range = {memory, from, from + bytes, writes};
  ck_assert(!VEC_RESERVE(&o->touches, o->touches.len + 1));
  o->touches.data[o->touches.len++] = range;
  o->nodes.data[o->nodes.len - 1].n++;
}

static void touch_residency(oracle *o, int32_t gpu, int32_t r, bool writes) {
  touch(o, gpu, o->address[r], o->bytes[r], writes);
}

/* Node i starts after node j, and after whatever j started after. */
static void order(const oracle *o, int64_t i, int64_t j) {
  if (j < 0) return;
  for (int64_t w = 0; w < o->row; w++) o->before[i * o->row + w] |= o->before[j * o->row + w];
  o->before[i * o->row + j / 64] |= UINT64_C(1) << (j % 64);
}

static void run(oracle *o, const planc_instr *instr) {
  if (instr->op == PLANC_INSTR_acquire) {
    o->address[instr->id] = instr->address;
    o->bytes[instr->id] = instr->bytes;
  }
  if (instr->op == PLANC_INSTR_acquire || instr->op == PLANC_INSTR_release) return;
  int64_t i = o->nodes.len++;
  o->nodes.data[i] = (node){.first = o->touches.len};
  int32_t gpu = o->plan->streams[instr->stream].gpu;
  order(o, i, o->newest[instr->stream]);
  o->newest[instr->stream] = i;
  switch (instr->op) {
    case PLANC_INSTR_exec: {
      const planc_instance *instance = &o->trace->instances[instr->id];
      if (instr->bytes > 0) touch(o, gpu, instr->address, instr->bytes, true);
      for (int32_t k = 0; k < instance->n_accesses; k++) {
        int32_t use = o->plan->uses[instr->first_use + k];
        if (use >= 0) touch_residency(o, gpu, use, o->trace->accesses[instance->first_access + k].write >= 0);
      }
      break;
    }
    case PLANC_INSTR_move:
      touch_residency(o, gpu, instr->aux, false);
      touch_residency(o, gpu, instr->id, true);
      break;
    case PLANC_INSTR_record:
      o->recorded[0][instr->id] = i;
      break;
    case PLANC_INSTR_wait:
      order(o, i, o->recorded[instr->lag][instr->id]);
      break;
    default: {
      bool offload = instr->op == PLANC_INSTR_offload;
      touch_residency(o, gpu, instr->id, !offload);
      if (instr->address >= 0) touch(o, HOST, instr->address, instr->bytes, offload);
    }
  }
}

static void run_section(oracle *o, const planc_section *section) {
  int64_t *before = o->recorded[1];
  o->recorded[1] = o->recorded[0];
  o->recorded[0] = before;
  for (int32_t e = 0; e < o->plan->n_events; e++) o->recorded[0][e] = -1;
  for (int32_t i = 0; i < section->n; i++) run(o, &section->instrs[i]);
  for (int32_t b = 0; b < o->plan->n_boundary; b++) {
    if (!o->plan->boundary[b].home) o->address[b] = o->plan->boundary[b].address;
  }
}

static bool overlap(const byte_range *a, const byte_range *b) {
  return (a->writes || b->writes) && a->memory == b->memory && a->from < b->to && b->from < a->to;
}

static bool has_race(const oracle *o) {
  for (int64_t i = 0; i < o->nodes.len; i++) {
    for (int64_t j = 0; j < i; j++) {
      if (o->before[i * o->row + j / 64] >> (j % 64) & 1) continue;
      for (int64_t a = 0; a < o->nodes.data[i].n; a++) {
        for (int64_t b = 0; b < o->nodes.data[j].n; b++) {
          if (overlap(&o->touches.data[o->nodes.data[i].first + a], &o->touches.data[o->nodes.data[j].first + b]))
            return true;
        }
      }
    }
  }
  return false;
}

/* True when some accesses of a run of so many bodies that conflict are not ordered. The plan must be right in all else.
 */
static bool races_in(const planc_plan *plan, int bodies) {
  oracle o = {.plan = plan};
  ok_in(planc_expand(plan->jobs, plan->n_jobs, &o.trace), "expand");
  int64_t n = (int64_t)plan->prologue.n + bodies * (int64_t)plan->body.n + plan->epilogue.n;
  o.row = n / 64 + 1;
  o.before = calloc((size_t)(n * o.row + 1), sizeof *o.before);
  ck_assert_ptr_nonnull(o.before);
  ck_assert(!VEC_RESERVE(&o.nodes, n + 1));
  o.newest = filled(plan->n_streams, -1);
  o.recorded[0] = filled(plan->n_events, -1);
  o.recorded[1] = filled(plan->n_events, -1);
  o.address = filled(plan->n_residencies, 0);
  o.bytes = filled(plan->n_residencies, 0);
  run_section(&o, &plan->prologue);
  for (int k = 0; k < bodies; k++) run_section(&o, &plan->body);
  run_section(&o, &plan->epilogue);
  bool found = has_race(&o);
  planc_trace_free(o.trace);
  VEC_FREE(&o.nodes);
  VEC_FREE(&o.touches);
  free(o.before);
  free(o.newest);
  free(o.recorded[0]);
  free(o.recorded[1]);
  free(o.address);
  free(o.bytes);
  return found;
}

static bool races(const planc_plan *plan) {
  return races_in(plan, 1) || races_in(plan, MANY);
}

/* --- Plans -------------------------------------------------------------------------------------------------------- */

static planc_profile *profile;
static planc_graph *graph;
static planc_plan *plan;

/* A plan of a small random graph under a budget that makes its policy work; the last ones for two GPUs. */
static void make_plan(int number) {
  static const char *const names[] = {"modnn", "vdnn-all", "vdnn+", "tensile"};
  const planc_policy *policy = planc_policy_find(names[number % 4]);
  randgraph_options options = {.max_ops = number >= PLANS ? 8 : 12, .max_elements = 400};
  ok_in(planc_profile_read("profiles/k40m.json", &profile), "profile");
  ok_in(randgraph_make(700 + (uint64_t)number, &options, &graph), "graph");
  planc_problem problem = {.graph = graph, .profile = profile, .batch = 3, .host_budget_bytes = -1};
  problem.gpus = number >= PLANS ? 2 : 1;
  ok_in(planc_least_budget(&problem, policy, &problem.budget_bytes), "least budget");
  ok_in(planc_make_plan(&problem, policy, &plan), "plan");
}

static void free_plan(void) {
  planc_plan_free(plan);
  planc_graph_free(graph);
  planc_profile_free(profile);
}

/* Where the checker goes through to the end, or stops at a race, the oracle must agree. */
static int judge(const planc_plan *mutant, const char *description) {
  planc_status status = planc_check(mutant, NULL, NULL);
  bool valid = !status, race = status && strstr(planc_status_message(status), " may still be ");
  if (valid || race) {
    ck_assert_msg(races(mutant) == race, "%s: the checker says %s", description, planc_status_message(status));
  }
  planc_status_free(status);
  return race;
}

/* The plan without body instruction i. */
static int judge_without(int32_t i) {
  planc_plan mutant = *plan;
  planc_instr *instrs = malloc((size_t)plan->body.n * sizeof *instrs);
  ck_assert_ptr_nonnull(instrs);
  memcpy(instrs, plan->body.instrs, (size_t)i * sizeof *instrs);
  memcpy(&instrs[i], &plan->body.instrs[i + 1], (size_t)(plan->body.n - i - 1) * sizeof *instrs);
  mutant.body = (planc_section){plan->body.n - 1, instrs};
  int race = judge(&mutant, "a wait is dropped");
  free(instrs);
  return race;
}

START_TEST(every_wait_is_needed_or_not_as_the_oracle_says) {
  make_plan(_i);
  ck_assert(!judge(plan, "nothing is changed"));
  int n_waits = 0, n_races = 0;
  for (int32_t i = 0; i < plan->body.n; i++) {
    if (plan->body.instrs[i].op != PLANC_INSTR_wait) continue;
    n_waits++;
    n_races += judge_without(i);
  }
  ck_assert_msg(n_waits == 0 || n_races > 0, "none of %d waits is needed", n_waits);
  free_plan();
}
END_TEST

START_TEST(mutants_race_when_the_oracle_says_so) {
  make_plan(_i);
  int n_races = 0;
  for (uint64_t seed = 0; seed < 400; seed++) {
    planc_plan *mutant;
    char description[256];
    ok_in(mutate_plan(plan, seed, &mutant, description, sizeof description), "mutate");
    n_races += judge(mutant, description);
    planc_plan_free(mutant);
  }
  ck_assert_int_gt(n_races, 0);
  free_plan();
}
END_TEST

/* The epilogue's copy is ordered after the prologue's by way of two bodies: compute, or the stream that made the copy,
 * tells in the first body what the second waits for. */
static const char *const by_two_bodies[] = {"wait 0 lag 1 on 2\n", "wait 2 lag 1 on 2\n"};

START_TEST(one_body_alone_must_be_safe_too) {
  static const char text[] =
      "planc-graph: 1\n"
      "name: tiny\n"
      "tensors:\n"
      "  x: input f32[N,32]\n"
      "  w: param f32[64]\n"
      "  y: f32[N,32]\n"
      "ops:\n"
      "  - {op: f, type: t.make, in: [x, w], out: [y]}\n";
  static const char script[] =
      "boundary w 0\n"
      "prologue\n"
      "acquire 0 w 0\n"
      "record 0 on 0\n"
      "record 2 on 1\n"
      "prefetch 0 user on 1\n"
      "body\n"
      "WAIT\n"
      "wait 0 lag 1 on 1\n"
      "acquire 1 x 256\n"
      "prefetch 1 user on 1\n"
      "record 1 on 1\n"
      "record 2 on 1\n"
      "wait 1 on 0\n"
      "acquire 2 y 512\n"
      "exec f use 1 0 2\n"
      "record 0 on 0\n"
      "release 1\n"
      "release 2\n"
      "epilogue\n"
      "offload 0 user on 2\n"
      "release 0\n";
  static const int64_t rounds[] = {2};
  graph = judge_graph(text);
  planc_job job = {.graph = graph, .batch = 2, .n_rounds = 1, .rounds = rounds, .iterations = 1};
  char *one = judge_edited(script, "WAIT\n", by_two_bodies[_i]), epilogue[64];
  ok_in(script_make(one, &job, 1, 768, 0, &plan), "script");
  ck_assert(races_in(plan, 1) && !races_in(plan, 2));
  judge_expect(plan, PLANC_INVALID_PLAN, "offload w: reads w, which prefetch at line", "no wait in the epilogue");
  planc_plan_free(plan);
  snprintf(epilogue, sizeof epilogue, "epilogue\n%s", by_two_bodies[_i]);
  char *two = judge_edited(one, "epilogue\n", epilogue);
  ok_in(script_make(two, &job, 1, 768, 0, &plan), "script");
  judge_expect(plan, PLANC_OK, "ok", "the epilogue waits");
  planc_plan_free(plan);
  free(one);
  free(two);
  planc_graph_free(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("check_races");
  TCase *cases = tcase_create("all");
  tcase_set_timeout(cases, 120);
  tcase_add_loop_test(cases, every_wait_is_needed_or_not_as_the_oracle_says, 0, PLANS + PLANS_OF_TWO);
  tcase_add_loop_test(cases, mutants_race_when_the_oracle_says_so, 0, PLANS + PLANS_OF_TWO);
  tcase_add_loop_test(cases, one_body_alone_must_be_safe_too, 0, 2);
  suite_add_tcase(suite, cases);
  return run_suite(suite);
}
