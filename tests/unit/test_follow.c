/* The follower under a framework that is made up (tests/support/framework.h), with streams and without. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planc/policy.h"
#include "planrt/follow.h"
#include "tests/support/framework.h"
#include "tests/support/graphtext.h"
#include "tests/support/least.h"
#include "tests/support/lower_for.h"
#include "tests/support/randgraph.h"
#include "tests/support/randschedule.h"
#include "tests/support/script.h"
#include "tests/support/unit.h"
#include "tests/support/weave.h"

static planc_profile *profile;

static void read_profile(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
}
static void free_profile(void) {
  planc_profile_free(profile);
}

/* All that the follower says of the plan is what the trace and the file say. */
static void assert_tables(const fake *f) {
  const planc_graph *graph = f->trace->jobs[0].graph;
  int32_t *buffers = fake_zeroed(graph->n_tensors, sizeof *buffers);
  for (int32_t t = 0; t < graph->n_tensors; t++) buffers[t] = -1;
  for (int32_t b = 0; b < f->trace->n_buffers; b++) {
    for (int32_t t = 0; t < graph->n_tensors; t++)
      if (graph->tensors[t].storage == fake_buffer(f, b)->storage) buffers[t] = b;
    ck_assert_int_eq(planrt_follow_bytes(f->follow, b), fake_buffer(f, b)->bytes);
    ck_assert_int_eq(planrt_follow_persists(f->follow, b), fake_persists(f, b));
  }
  for (int32_t t = 0; t < graph->n_tensors; t++) ck_assert_int_eq(planrt_follow_buffer(f->follow, t), buffers[t]);
  ck_assert_int_eq(planrt_follow_buffer(f->follow, -1), -1);
  ck_assert_int_eq(planrt_follow_buffer(f->follow, graph->n_tensors), -1);
  for (int32_t i = 0; i < f->trace->n_instances; i++)
    ck_assert_int_eq(planrt_follow_repeats(f->follow, i), f->again[i]);
  free(buffers);
}

/* Bytes that the body copies between device and host: in [0] out, in [1] in. */
static void count_copies(const planc_plan *plan, int64_t bytes[2]) {
  int32_t *memory = fake_zeroed(plan->n_residencies, sizeof *memory);
  for (int32_t r = 0; r < plan->n_boundary; r++) memory[r] = plan->boundary[r].memory;
  bytes[0] = bytes[1] = 0;
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (instr->op == PLANC_INSTR_acquire) memory[instr->id] = instr->memory;
    if (instr->op != PLANC_INSTR_copy || instr->id == PLANC_USER || instr->aux == PLANC_USER) continue;
    bytes[0] += memory[instr->aux] == 0 && memory[instr->id] != 0 ? instr->bytes : 0;
    bytes[1] += memory[instr->aux] != 0 && memory[instr->id] == 0 ? instr->bytes : 0;
  }
  free(memory);
}

/* The second iteration begins with all of it known: from then on no more is copied than the plan says. */
static void run_faithfully(fake *f) {
  int64_t most[2];
  count_copies(f->plan, most);
  for (int32_t k = 0; k < 2; k++) ok(fake_iterate(f, NEVER));
  for (int32_t k = 2; k < ITERATIONS; k++) {
    planrt_follow_counts before = planrt_follow_counted(f->follow), after;
    ok(fake_iterate(f, NEVER));
    after = planrt_follow_counted(f->follow);
    ck_assert_int_le(after.out_bytes - before.out_bytes, most[0]);
    ck_assert_int_le(after.in_bytes - before.in_bytes, most[1]);
  }
}

/* Runs a plan that was taken in one of the manners. */
static void run_taken(fake *f, manner how) {
  assert_tables(f);
  if (how == FAITHFUL)
    run_faithfully(f);
  else
    ok(fake_run(f, how));
  planrt_follow_counts counts = planrt_follow_counted(f->follow);
  ck_assert_int_eq(counts.iterations, ITERATIONS);
  ck_assert_int_eq(counts.left, f->n_left);
  ck_assert_int_eq(counts.repeats, f->n_repeats);
  ok(planrt_follow_bring_all(f->follow));
  for (int32_t b = 0; b < f->trace->n_buffers; b++)
    if (fake_persists(f, b)) fake_assert_has(f, b);
}

/* --- Which plans are taken ---------------------------------------------------------------------------------------- */

typedef struct place {
  int32_t buffer, memory, version;
  bool open;
} place;

/* Whether a buffer is on the device in two versions at a time, by the rows of the body. */
static bool has_two_versions(const planc_plan *plan, const planc_trace *trace) {
  place *places = fake_zeroed(plan->n_residencies, sizeof *places);
  int32_t *opened = fake_zeroed(plan->n_residencies, sizeof *opened), n_opened = plan->n_boundary;
  bool found = false;
  for (int32_t r = 0; r < plan->n_boundary; r++) {
    places[r] = (place){plan->boundary[r].buffer, plan->boundary[r].memory, 0, true};
    opened[r] = r;
  }
  for (int32_t i = 0; i < plan->body.n && !found; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (instr->op == PLANC_INSTR_acquire) {
      places[instr->id] = (place){instr->aux, instr->memory, -1, true};
      opened[n_opened++] = instr->id;
    } else if (instr->op == PLANC_INSTR_release) {
      places[instr->id].open = false;
    } else if (instr->op == PLANC_INSTR_copy && instr->id != PLANC_USER) {
      places[instr->id].version = instr->aux == PLANC_USER ? 0 : places[instr->aux].version;
    } else if (instr->op == PLANC_INSTR_exec) {
      const planc_instance *instance = &trace->instances[instr->id];
      for (int32_t k = 0; k < instance->n_accesses; k++) {
        const planc_access *access = &trace->accesses[instance->first_access + k];
        int32_t r = plan->uses[instr->first_use + k];
        if (r >= 0 && access->write >= 0) places[r].version = access->write;
      }
    }
    for (int32_t j = 0; j < n_opened; j++) {
      const place *a = &places[opened[j]];
      if (!a->open) {
        opened[j--] = opened[--n_opened];
        continue;
      }
      for (int32_t k = 0; k < j; k++) {
        const place *b = &places[opened[k]];
        found = found || (b->open && a->buffer == b->buffer && a->memory == 0 && b->memory == 0 && a->version >= 0 &&
                          b->version >= 0 && a->version != b->version);
      }
    }
  }
  free(places);
  free(opened);
  return found;
}

typedef struct tally {
  int32_t made, refused;
} tally;

/* Follows a plan in all manners, if it is taken. A refusal has to be for what the header says. */
static void try_plan(const planc_plan *plan, uint64_t seed, const char *what, tally *count) {
  planc_trace *trace;
  ok(planc_expand(plan->jobs, plan->n_jobs, &trace));
  bool twice = has_two_versions(plan, trace);
  planc_trace_free(trace);
  count->made++;
  for (int32_t way = 0; way < FAKE_KINDS * MANNERS; way++) {
    manner how = (manner)(way / FAKE_KINDS);
    fake f;
    fake_start(&f, plan, way % FAKE_KINDS, fake_mixed(seed, how));
    planc_status status = fake_follow(&f);
    if (!status) {
      run_taken(&f, how);
    } else {
      ck_assert_msg(twice, "%s, seed %lu: refused: %s", what, (unsigned long)seed, planc_status_message(status));
      count->refused += way == 0;
      assert_fails(status, PLANC_USAGE, "");
    }
    fake_free(&f);
  }
}

static void assert_most_taken(const tally *count, const char *what) {
  ck_assert_int_gt(count->made, 0);
  ck_assert_msg(count->refused * 2 < count->made, "%s: %d of %d plans are refused", what, count->refused, count->made);
}

/* A random graph that is not fed: what would be is state. */
static planc_graph *random_graph(uint64_t seed, int32_t max_ops) {
  randgraph_options options = {.max_ops = max_ops, .max_elements = seed % 2 ? 64 : 16, .once_percent = 10};
  options.inference = seed % 11 == 5;
  planc_graph *fed;
  ok(randgraph_make(seed, &options, &fed));
  char *text = text_of(fed);
  for (char *at = text; (at = strstr(at, ": input ")) != NULL;) memcpy(at, ": state ", 8);
  planc_graph *graph = graph_of(text);
  free(text);
  planc_graph_free(fed);
  return graph;
}

/* --- Plans of policies -------------------------------------------------------------------------------------------- */

static const struct {
  const char *policy;
  planc_placement placement;
  int32_t graphs, max_ops;
} kinds[] = {{"none", PLANC_PLACEMENT_BEST_FIT, 8, 24},      {"naive", PLANC_PLACEMENT_BEST_FIT, 12, 16},
             {"vdnn-all", PLANC_PLACEMENT_BEST_FIT, 12, 24}, {"vdnn-conv", PLANC_PLACEMENT_BEST_FIT, 12, 24},
             {"vdnn-dyn", PLANC_PLACEMENT_BEST_FIT, 12, 24}, {"vdnn+", PLANC_PLACEMENT_BEST_FIT, 12, 16},
             {"modnn", PLANC_PLACEMENT_BEST_FIT, 12, 24},    {"prefetch-1", PLANC_PLACEMENT_BEST_FIT, 12, 24},
             {"lms", PLANC_PLACEMENT_BEST_FIT, 12, 16},      {"capuchin", PLANC_PLACEMENT_BEST_FIT, 12, 24},
             {"tensile", PLANC_PLACEMENT_BEST_FIT, 12, 24},  {"superneurons", PLANC_PLACEMENT_BEST_FIT, 12, 24},
             {"chen", PLANC_PLACEMENT_BEST_FIT, 12, 24},     {"cheap", PLANC_PLACEMENT_BEST_FIT, 12, 24},
             {"window", PLANC_PLACEMENT_BEST_FIT, 12, 24},   {"window", PLANC_PLACEMENT_VMM, 4, 16},
             {"window", PLANC_PLACEMENT_PAGED, 4, 16},       {"best", PLANC_PLACEMENT_BEST_FIT, 3, 14},
             {"priced", PLANC_PLACEMENT_BEST_FIT, 5, 20},    {"auto", PLANC_PLACEMENT_BEST_FIT, 3, 14}};
enum { N_KINDS = sizeof kinds / sizeof *kinds, PARTS = 3 };

/* In one round: at the least budget of the policy, and at some between that and everything resident. */
static void try_policy(int kind, const planc_graph *graph, uint64_t seed, tally *count) {
  const planc_policy *policy = planc_policy_find(kinds[kind].policy), *none = planc_policy_find("none");
  int64_t batch = 1 + (int64_t)(seed % 3), least, resident;
  planc_problem problem = {.job = {.graph = graph, .profile = profile, .batch = batch, .sub_batch = batch},
                           .terms = {.budgets[PLANC_MEMORY_HOST] = -1,
                                     .placement = kinds[kind].placement,
                                     .settings.effort = policy->supports & PLANC_POLICY_SEARCHES ? 1 : 0,
                                     .chunk_bytes = 4096}};
  ok_in(find_least_bytes(&problem, policy, &least), "least budget");
  problem.terms.placement = PLANC_PLACEMENT_BEST_FIT;
  ok_in(find_least_bytes(&problem, none, &resident), "resident");
  problem.terms.placement = kinds[kind].placement;
  for (int32_t part = 0; part < PARTS; part++) {
    planc_plan *plan;
    problem.terms.budgets[PLANC_MEMORY_DEVICE] = least + (resident - least) * part / PARTS;
    if (part > 0 && resident <= least) break;
    planc_status status = planc_make_plan(&problem, policy, &plan);
    if (part > 0 && planc_status_code(status) == PLANC_INFEASIBLE) {
      planc_status_free(status);
      continue;
    }
    ok_in(status, kinds[kind].policy);
    try_plan(plan, seed, kinds[kind].policy, count);
    planc_plan_free(plan);
  }
}

START_TEST(plans_of_policies) {
  tally count = {0};
  for (int32_t g = 0; g < kinds[_i].graphs; g++) {
    uint64_t seed = (uint64_t)_i * 100 + (uint64_t)g;
    planc_graph *graph = random_graph(seed, kinds[_i].max_ops);
    try_policy(_i, graph, seed, &count);
    planc_graph_free(graph);
  }
  assert_most_taken(&count, kinds[_i].policy);
}
END_TEST

/* --- Plans of schedules ------------------------------------------------------------------------------------------- */

static void make_scheduled(uint64_t seed, planc_graph **graph, planc_plan **plan) {
  randcase c;
  *graph = random_graph(seed, 10 + (int32_t)(seed % 10));
  ok_in(randcase_make(seed, *graph, profile, 1, &c), "case");
  ok_in(randschedule_make(seed, NULL, &c), "schedule");
  ok_in(lower_for(&c.problem, "random", &c.candidate, plan), "plan");
  randcase_free(&c);
}

START_TEST(plans_of_random_schedules) {
  tally count = {0};
  for (uint64_t seed = (uint64_t)_i * 100; seed < (uint64_t)_i * 100 + 100; seed++) {
    planc_graph *graph;
    planc_plan *plan;
    make_scheduled(seed, &graph, &plan);
    try_plan(plan, seed, "random schedule", &count);
    planc_plan_free(plan);
    planc_graph_free(graph);
  }
  assert_most_taken(&count, "random schedule");
}
END_TEST

static void weave_plan(const planc_graph *graph, weave_mode mode, woven *w) {
  static const int64_t rounds[] = {2};
  planc_job job = {.graph = graph, .batch = 2, .n_rounds = 1, .rounds = rounds, .iterations = 1};
  ok(weave(&job, mode, 256, w));
}

START_TEST(woven_plans) {
  tally count = {0};
  for (uint64_t seed = 0; seed < 60; seed++) {
    planc_graph *graph = random_graph(seed, 20);
    woven w;
    weave_plan(graph, seed % 4 ? WEAVE_SWAP : WEAVE_RESIDENT, &w);
    try_plan(&w.plan, seed, "woven", &count);
    woven_free(&w);
    planc_graph_free(graph);
  }
  assert_most_taken(&count, "woven");
}
END_TEST

/* --- What is refused ---------------------------------------------------------------------------------------------- */

/* Two forward ops that may change places. */
static const char small_text[] =
    "planc-graph: 1\n"
    "name: small\n"
    "outputs: [z]\n"
    "tensors:\n"
    "  w: param f32[64]\n"
    "  x: f32[N,32]\n"
    "  y: f32[N,32]\n"
    "  z: f32[N,32]\n"
    "ops:\n"
    "  - {op: f1, type: t.make, in: [w], out: [x]}\n"
    "  - {op: f2, type: t.make, in: [w], out: [y]}\n"
    "  - {op: f3, type: t.make, in: [x, y, w], out: [z]}\n";

static const int64_t one_round[] = {2}, two_rounds[] = {1, 1};
static const int32_t other_order[] = {1, 0, 2};

static planc_job small_job(const planc_graph *graph) {
  return (planc_job){.graph = graph, .batch = 2, .n_rounds = 1, .rounds = one_round, .iterations = 1};
}

static planc_status try_to_follow(const planc_plan *plan) {
  fake f;
  fake_start(&f, plan, FAKE_PLAIN, 1);
  planc_status status = fake_follow(&f);
  fake_free(&f);
  return status;
}

static void assert_refused(planc_status status, const char *what) {
  ck_assert_msg(status != NULL, "%s: taken", what);
  ck_assert_msg(planc_status_code(status) == PLANC_USAGE, "%s: code %d: %s", what, planc_status_code(status),
                planc_status_message(status));
  ck_assert(strlen(planc_status_message(status)) > 0);
  planc_status_free(status);
}

/* The job woven; taken only where nothing is the matter. */
static void weave_and_try(const planc_job *job, weave_mode mode, bool is_taken, const char *what) {
  woven w;
  ok(weave(job, mode, 0, &w));
  planc_status status = try_to_follow(&w.plan);
  if (is_taken) {
    ok_in(status, what);
  } else {
    assert_refused(status, what);
  }
  woven_free(&w);
}

START_TEST(what_cannot_be_followed_is_refused) {
  planc_graph *graph = graph_of(small_text);
  planc_job job = small_job(graph);
  weave_and_try(&job, WEAVE_RESIDENT, true, "resident");
  weave_and_try(&job, WEAVE_SWAP, true, "swapped");
  weave_and_try(&job, WEAVE_STORE, false, "storage");
  job.iterations = 2;
  weave_and_try(&job, WEAVE_SWAP, false, "iterations");
  job = small_job(graph);
  job.n_rounds = 2;
  job.rounds = two_rounds;
  weave_and_try(&job, WEAVE_SWAP, false, "rounds");
  job = small_job(graph);
  job.order = other_order;
  weave_and_try(&job, WEAVE_SWAP, false, "order");
  job = small_job(graph);
  job.replicas = 2;
  weave_and_try(&job, WEAVE_SWAP, false, "replicas");
  planc_graph_free(graph);
}
END_TEST

START_TEST(fed_graphs_are_refused) {
  for (uint64_t seed = 0; seed < 10; seed++) {
    planc_graph *graph;
    ok(randgraph_make(seed, NULL, &graph));
    bool is_fed = false;
    planc_job job = small_job(graph);
    planc_trace *trace;
    ok(planc_expand(&job, 1, &trace));
    for (int32_t b = 0; b < trace->n_buffers; b++) is_fed = is_fed || (trace->buffers[b].flags & PLANC_BUFFER_FED);
    planc_trace_free(trace);
    if (is_fed) weave_and_try(&job, seed % 2 ? WEAVE_SWAP : WEAVE_RESIDENT, false, "fed");
    planc_graph_free(graph);
  }
}
END_TEST

static const char chain_text[] =
    "planc-graph: 1\n"
    "name: chain\n"
    "tensors:\n"
    "  w: param f32[64]\n"
    "  x: f32[64]\n"
    "ops:\n"
    "  - {op: f, type: t.make, in: [w], out: [x]}\n";
static const char chain_script[] =
    "boundary w 0\n"
    "prologue\nacquire 0 w 0\ncopy 0 user on 1\nrecord 0 on 1\nwait 0 on 0\nrecord 1 on 0\n"
    "body\nacquire 1 x 256\nexec f use 0 1\nrelease 1\nrecord 1 on 0\n"
    "epilogue\nwait 1 lag 1 on 2\ncopy user 0 on 2\nrelease 0\n";

START_TEST(several_jobs_and_gpus_are_refused) {
  static const char two_jobs[] =
      "boundary w 0\nboundary w#1 512\n"
      "prologue\nacquire 0 w 0\nacquire 1 w#1 512\ncopy 0 user on 1\nrecord 0 on 1\nwait 0 on 0\nrecord 2 on 0\n"
      "copy 1 user on 4\nrecord 1 on 4\nwait 1 on 3\nrecord 3 on 3\n"
      "body\nacquire 2 x 256\nexec f use 0 2\nrelease 2\nrecord 2 on 0\n"
      "acquire 3 x#1 768\nexec f#1 on 3 use 1 3\nrelease 3\nrecord 3 on 3\n"
      "epilogue\nwait 2 lag 1 on 2\ncopy user 0 on 2\nrelease 0\n"
      "wait 3 lag 1 on 5\ncopy user 1 on 5\nrelease 1\n";
  planc_graph *graph = graph_of(chain_text);
  planc_job jobs[] = {small_job(graph), small_job(graph)};
  char *text = NULL;
  planc_plan *plan;
  ok(script_make(chain_script, jobs, 1, 1024, 1024, &plan));
  ok_in(try_to_follow(plan), "one job");
  planc_plan_free(plan);
  ok(script_make(two_jobs, jobs, 2, 1024, 1024, &plan));
  assert_refused(try_to_follow(plan), "two jobs");
  planc_plan_free(plan);
  text = malloc(sizeof chain_script + 16);
  ck_assert(text);
  snprintf(text, sizeof chain_script + 16, "gpus 1\n%s", chain_script);
  ok(script_make(text, jobs, 1, 1024, 1024, &plan));
  ck_assert_int_eq(planc_plan_gpus(plan), 2);
  assert_refused(try_to_follow(plan), "two GPUs");
  planc_plan_free(plan);
  free(text);
  planc_graph_free(graph);
}
END_TEST

START_TEST(wrong_plans_are_refused_as_the_checker_does) {
  planc_graph *graph = graph_of(small_text);
  woven w;
  weave_plan(graph, WEAVE_SWAP, &w);
  w.plan.memories[0].budget_bytes = w.plan.memories[0].arena_bytes - 1;
  assert_fails(try_to_follow(&w.plan), PLANC_INFEASIBLE, "");
  w.plan.memories[0].budget_bytes = -1;
  for (int64_t i = 0; i < w.sections[1].len; i++) {
    planc_instr *instr = &w.sections[1].data[i], kept = *instr;
    if (instr->op != PLANC_INSTR_exec) continue;
    instr->id = w.trace->n_instances - 1 - instr->id;
    if (instr->id != kept.id) assert_fails(try_to_follow(&w.plan), PLANC_INVALID_PLAN, "");
    *instr = kept;
  }
  ok(try_to_follow(&w.plan));
  woven_free(&w);
  planc_graph_free(graph);
}
END_TEST

/* --- Leaving ------------------------------------------------------------------------------------------------------ */

/* x is changed in place, and dropped; what is read later is made again, some of it from the older x. */
static const char again_text[] =
    "planc-graph: 1\n"
    "name: again\n"
    "tensors:\n"
    "  w: param f32[64]\n"
    "  x: f32[64]\n"
    "  y: f32[64]\n"
    "  a: f32[64]\n"
    "  b: f32[64]\n"
    "  c: f32[64]\n"
    "ops:\n"
    "  - {op: f1, type: t.make, in: [w], out: [x]}\n"
    "  - {op: g, type: t.make, in: [x], out: [y]}\n"
    "  - {op: f2, type: t.make, in: [x], out: [x]}\n"
    "  - {op: h, type: t.make, in: [w], out: [a]}\n"
    "  - {op: u, type: t.make, in: [x, a], out: [b]}\n"
    "  - {op: v, type: t.make, in: [x, y, b], out: [c]}\n";

#define AGAIN_PROLOGUE \
  "boundary w 0\n"     \
  "prologue\nacquire 0 w 0\ncopy 0 user on 1\nrecord 0 on 1\nwait 0 on 0\nrecord 1 on 0\nbody\n"
#define AGAIN_EPILOGUE "record 1 on 0\nepilogue\nwait 1 lag 1 on 2\ncopy user 0 on 2\nrelease 0\n"
static const char *const again_scripts[] = {
    /* x is made again for u, and once more for v. */
    AGAIN_PROLOGUE
    "acquire 1 x 256\nexec f1 use 0 1\nacquire 2 y 512\nexec g use 1 2\nexec f2 use 1\nrelease 1\n"
    "acquire 3 a 768\nexec h use 0 3\n"
    "acquire 4 x 256\nexec f1 re use 0 4\nexec f2 re use 4\n"
    "acquire 5 b 1024\nexec u use 4 3 5\nrelease 4\n"
    "acquire 6 x 256\nexec f1 re use 0 6\nexec f2 re use 6\n"
    "acquire 7 c 1280\nexec v use 6 2 5 7\n"
    "release 2\nrelease 3\nrelease 5\nrelease 6\nrelease 7\n" AGAIN_EPILOGUE,
    /* y is made again from the older x while the newer one, which v reads as well, has been made again for u. */
    AGAIN_PROLOGUE
    "acquire 1 x 256\nexec f1 use 0 1\nacquire 2 y 512\nexec g use 1 2\nexec f2 use 1\nrelease 1\n"
    "release 2\nacquire 3 a 768\nexec h use 0 3\n"
    "acquire 4 x 256\nexec f1 re use 0 4\nexec f2 re use 4\n"
    "acquire 5 b 1024\nexec u use 4 3 5\nrelease 4\n"
    "acquire 6 x 256\nexec f1 re use 0 6\nacquire 7 y 512\nexec g re use 6 7\nexec f2 re use 6\n"
    "acquire 8 c 1280\nexec v use 6 7 5 8\n"
    "release 3\nrelease 5\nrelease 6\nrelease 7\nrelease 8\n" AGAIN_EPILOGUE,
    /* The same, and v's x comes from the host, where it went before y was made again. */
    AGAIN_PROLOGUE
    "acquire 1 x 256\nexec f1 use 0 1\nacquire 2 y 512\nexec g use 1 2\nexec f2 use 1\nrelease 1\n"
    "release 2\nacquire 3 a 768\nexec h use 0 3\n"
    "acquire 4 x 256\nexec f1 re use 0 4\nexec f2 re use 4\n"
    "acquire 5 b 1024\nexec u use 4 3 5\nrecord 2 on 0\nwait 2 on 2\nacquire 6 x 0 host\n"
    "copy 6 4 on 2\nrecord 3 on 2\nwait 3 on 0\nwait 3 on 1\nrelease 4\n"
    "acquire 7 x 256\nexec f1 re use 0 7\nacquire 8 y 512\nexec g re use 7 8\nrelease 7\n"
    "acquire 9 x 1536\ncopy 9 6 on 1\nrelease 6\nrecord 4 on 1\nwait 4 on 0\n"
    "acquire 10 c 1280\nexec v use 9 8 5 10\n"
    "release 3\nrelease 5\nrelease 8\nrelease 9\nrelease 10\n" AGAIN_EPILOGUE,
    /* The same, and x is made again, elsewhere, before its copy has gone to the host for sure. */
    AGAIN_PROLOGUE
    "acquire 1 x 256\nexec f1 use 0 1\nacquire 2 y 512\nexec g use 1 2\nexec f2 use 1\nrelease 1\n"
    "release 2\nacquire 3 a 768\nexec h use 0 3\n"
    "acquire 4 x 256\nexec f1 re use 0 4\nexec f2 re use 4\n"
    "acquire 5 b 1024\nexec u use 4 3 5\nrecord 2 on 0\nwait 2 on 2\nacquire 6 x 0 host\n"
    "copy 6 4 on 2\nrecord 3 on 2\nrelease 4\n"
    "acquire 7 x 1792\nexec f1 re use 0 7\nwait 3 on 0\nwait 3 on 1\nacquire 8 y 512\nexec g re use 7 8\nrelease 7\n"
    "acquire 9 x 1536\ncopy 9 6 on 1\nrelease 6\nrecord 4 on 1\nwait 4 on 0\n"
    "acquire 10 c 1280\nexec v use 9 8 5 10\n"
    "release 3\nrelease 5\nrelease 8\nrelease 9\nrelease 10\n" AGAIN_EPILOGUE};

START_TEST(left_where_data_is_made_again) {
  planc_graph *graph = graph_of(again_text);
  planc_job job = small_job(graph);
  planc_plan *plan;
  ok(script_make(again_scripts[_i], &job, 1, 2048, 1024, &plan));
  for (uint64_t seed = 0; seed < 16; seed++) {
    fake f;
    fake_start(&f, plan, (int)(seed % FAKE_KINDS), seed);
    ok(fake_follow(&f));
    for (int32_t leave_at = 0; leave_at <= f.trace->n_instances; leave_at++) {
      ok(fake_iterate(&f, leave_at));
      ok(fake_iterate(&f, NEVER));
    }
    fake_free(&f);
  }
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

/* --- Leaving memory ----------------------------------------------------------------------------------------------- */

/* a goes to the host, and y comes in its place, before the calls' stream has waited for either. */
static const char full_text[] =
    "planc-graph: 1\n"
    "name: full\n"
    "tensors:\n"
    "  w: param f32[64]\n"
    "  x: f32[64]\n"
    "  y: f32[64]\n"
    "  a: f32[64]\n"
    "  b: f32[64]\n"
    "ops:\n"
    "  - {op: f, type: t.make, in: [w], out: [x]}\n"
    "  - {op: g, type: t.make, in: [x], out: [y]}\n"
    "  - {op: h, type: t.make, in: [w], out: [a]}\n"
    "  - {op: u, type: t.make, in: [x, a], out: [b]}\n"
    "  - {op: v, type: t.make, in: [x, y, b], out: [b]}\n";
static const char full_script[] = AGAIN_PROLOGUE
    "acquire 1 x 256\nexec f use 0 1\nacquire 2 y 512\nexec g use 1 2\nrecord 2 on 0\nwait 2 on 2\n"
    "acquire 3 y 0 host\ncopy 3 2 on 2\nrecord 3 on 2\nwait 3 on 0\nrelease 2\n"
    "acquire 4 a 512\nexec h use 0 4\nacquire 5 b 768\nexec u use 1 4 5\nrecord 4 on 0\nwait 4 on 2\n"
    "acquire 6 a 256 host\ncopy 6 4 on 2\nrecord 5 on 2\nrelease 4\n"
    "wait 5 on 1\nacquire 7 y 512\ncopy 7 3 on 1\nrecord 6 on 1\nwait 6 on 0\n"
    "exec v use 1 7 5\nrelease 1\nrelease 3\nrelease 5\nrelease 6\nrelease 7\n" AGAIN_EPILOGUE;

START_TEST(what_leaves_is_within_the_plan_s_size) {
  planc_graph *graph = graph_of(full_text);
  planc_job job = small_job(graph);
  planc_plan *plan;
  ok(script_make(full_script, &job, 1, 1024, 1024, &plan));
  ck_assert_int_eq(plan->memories[0].arena_bytes, 1024);
  for (uint64_t seed = 0; seed < 16; seed++) {
    fake f;
    fake_start(&f, plan, seed % 2 ? FAKE_STREAMS | FAKE_ARENA : FAKE_STREAMS, seed);
    ok(fake_follow(&f));
    for (int32_t k = 0; k < ITERATIONS; k++) ok(fake_iterate(&f, NEVER));
    fake_free(&f);
  }
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

/* --- Misuse and failures ------------------------------------------------------------------------------------------ */

START_TEST(misuse) {
  planc_graph *graph = graph_of(small_text);
  woven w;
  fake f;
  int32_t call, n;
  weave_plan(graph, WEAVE_SWAP, &w);
  fake_start(&f, &w.plan, FAKE_PLAIN, 1);
  ok(fake_follow(&f));
  n = f.trace->n_instances;
  assert_fails(planrt_follow_done(f.follow), PLANC_USAGE, "");
  assert_fails(planrt_follow_end(f.follow), PLANC_USAGE, "");
  assert_fails(planrt_follow_bring(f.follow, -1), PLANC_USAGE, "");
  assert_fails(planrt_follow_bring(f.follow, f.trace->n_buffers), PLANC_USAGE, "");
  for (int32_t b = -1; b <= f.trace->n_buffers; b++)
    if (b < 0 || b == f.trace->n_buffers || !fake_persists(&f, b))
      assert_fails(planrt_follow_renew(f.follow, b), PLANC_USAGE, "that persists");
  ck_assert(!planrt_follow_has(f.follow, -1) && !planrt_follow_has(f.follow, f.trace->n_buffers));
  ok(planrt_follow_next(f.follow, &call));
  ck_assert_int_eq(call, -1);
  for (int32_t k = 0; k < 2; k++) {
    ok(fake_begin(&f));
    for (int32_t i = 0; i < n; i++) {
      assert_fails(planrt_follow_begin(f.follow), PLANC_USAGE, "");
      assert_fails(planrt_follow_renew(f.follow, 0), PLANC_USAGE, "an iteration is under way");
      assert_fails(planrt_follow_end(f.follow), PLANC_USAGE, "");
      assert_fails(planrt_follow_done(f.follow), PLANC_USAGE, "");
      ok(planrt_follow_next(f.follow, &call));
      ck_assert_int_eq(call, i);
      assert_fails(planrt_follow_begin(f.follow), PLANC_USAGE, "");
      assert_fails(planrt_follow_end(f.follow), PLANC_USAGE, "");
      fake_call(&f, i, "call");
      ok(planrt_follow_done(f.follow));
    }
    assert_fails(planrt_follow_done(f.follow), PLANC_USAGE, "");
    ok(fake_end(&f, false));
    assert_fails(planrt_follow_end(f.follow), PLANC_USAGE, "");
  }
  ok(fake_begin(&f));
  ok(fake_leave(&f, 0));
  assert_fails(planrt_follow_done(f.follow), PLANC_USAGE, "");
  assert_fails(planrt_follow_begin(f.follow), PLANC_USAGE, "");
  for (int32_t i = 0; i < n; i++) fake_call(&f, i, "call outside the plan");
  ok(fake_end(&f, true));
  fake_free(&f);
  woven_free(&w);
  planc_graph_free(graph);
}
END_TEST

/* Whether the next call that touches a buffer overwrites it: the plan need not keep it until then. */
static bool is_overwritten_next(const fake *f, int32_t b) {
  const planc_buffer *buffer = fake_buffer(f, b);
  for (int32_t k = 0; k < buffer->n_accesses; k++) {
    const planc_access *access = &f->trace->accesses[f->trace->by_buffer[buffer->first_access + k]];
    if (!f->called[access->instance]) return access->read < 0;
  }
  return false;
}

/* What the user had is there in the version of the calls that were made, and one may go on with that. Whether the
 * failed iteration is ended makes no difference. */
static void go_on(fake *f, bool ended) {
  int32_t call;
  f->fail_in = f->limit = -1;
  ok(planrt_follow_next(f->follow, &call));
  ck_assert_int_eq(call, -1);
  ok(planrt_follow_bring_all(f->follow));
  for (int32_t b = 0; b < f->trace->n_buffers; b++) {
    if (f->held[b].memory && !fake_persists(f, b)) fake_give(f, b);
    if (!fake_persists(f, b) || !f->held[b].known) continue;
    ck_assert(f->held[b].memory);
    if (!is_overwritten_next(f, b)) fake_assert_holds(f, b, f->held[b].now, "after a failure");
    f->held[b].base = fake_stamp_of(f, b, f->held[b].now);
    fake_stamp(f, b, 0);
    f->held[b].now = 0;
  }
  if (ended) {
    planc_status status = planrt_follow_end(f->follow); /* of none, where an iteration could not begin */
    if (status) assert_fails(status, PLANC_USAGE, "");
  }
  f->iteration++;
  ok(fake_iterate(f, NEVER));
  ok(fake_use_between(f));
  ok(fake_iterate(f, NEVER));
}

/* Each function of the framework fails in turn. What persists is not lost by that. */
static void fail_everywhere(const planc_plan *plan, uint64_t seed, manner how, int32_t *n_failed) {
  for (int64_t fail_in = 0;; fail_in++) {
    fake f;
    fake_start(&f, plan, (int)(seed % FAKE_KINDS), seed);
    planc_status status = fake_follow(&f);
    if (status) {
      fake_free(&f);
      planc_status_free(status);
      return;
    }
    f.fail_in = fail_in;
    status = fake_run(&f, how);
    ck_assert_int_eq(f.failed, status != NULL);
    bool failed = status != NULL;
    if (failed) {
      assert_fails(status, PLANC_DEVICE, "");
      assert_fails(planrt_follow_done(f.follow), PLANC_USAGE, "");
      if (fail_in % 2) go_on(&f, fail_in % 4 == 1);
      ++*n_failed;
    }
    fake_free(&f);
    if (!failed) return;
  }
}

START_TEST(frameworks_that_fail) {
  int32_t n_failed = 0;
  for (uint64_t seed = 0; seed < 24; seed++) {
    planc_graph *graph;
    planc_plan *plan;
    make_scheduled(seed, &graph, &plan);
    fail_everywhere(plan, seed, seed % MANNERS, &n_failed);
    planc_plan_free(plan);
    planc_graph_free(graph);
  }
  ck_assert_int_gt(n_failed, 500);
}
END_TEST

/* A framework may go in the middle of an iteration. */
START_TEST(freed_within_an_iteration) {
  planc_graph *graph = graph_of(small_text);
  woven w;
  weave_plan(graph, WEAVE_SWAP, &w);
  for (int32_t stop = 0; stop <= 7; stop++) {
    fake f;
    int32_t call;
    fake_start(&f, &w.plan, stop > 3 ? FAKE_STREAMS | FAKE_ARENA : FAKE_PLAIN, 1);
    ok(fake_follow(&f));
    ok(fake_iterate(&f, NEVER));
    ok(fake_begin(&f));
    for (int32_t i = 0; i < stop % 4; i++) {
      ok(planrt_follow_next(f.follow, &call));
      fake_call(&f, i, "call");
      ok(planrt_follow_done(f.follow));
    }
    fake_free(&f);
  }
  planrt_follow_free(NULL);
  woven_free(&w);
  planc_graph_free(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("follow");
  TCase *cases = tcase_create("all");
  tcase_add_checked_fixture(cases, read_profile, free_profile);
  tcase_add_loop_test(cases, plans_of_policies, 0, N_KINDS);
  tcase_add_loop_test(cases, plans_of_random_schedules, 0, 5);
  tcase_add_test(cases, woven_plans);
  tcase_add_test(cases, what_cannot_be_followed_is_refused);
  tcase_add_test(cases, fed_graphs_are_refused);
  tcase_add_test(cases, several_jobs_and_gpus_are_refused);
  tcase_add_test(cases, wrong_plans_are_refused_as_the_checker_does);
  tcase_add_loop_test(cases, left_where_data_is_made_again, 0, 4);
  tcase_add_test(cases, what_leaves_is_within_the_plan_s_size);
  tcase_add_test(cases, misuse);
  tcase_add_test(cases, frameworks_that_fail);
  tcase_add_test(cases, freed_within_an_iteration);
  suite_add_tcase(suite, cases);
  return run_suite(suite);
}
