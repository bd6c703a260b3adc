/* Passive swapping: iterations of a tiny graph whose times are worked out by hand; against a plain list of who was used
 * when on random graphs; and what more memory never makes worse. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planc/passive.h"
#include "planc/policy.h"
#include "planc/simulate.h"
#include "tests/support/graphtext.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

/* --- By hand ------------------------------------------------------------------------------------------------------ */

/* A device whose copies take 100 ns and one for each byte. What is measured of ops is filled in. */
static const char profile_text[] =
    "{\"planc-profile\":1,\"device\":{\"name\":\"hand\",\"memory_bytes\":1000000,\"reserved_bytes\":%d,"
    "\"launch_ns\":%d,\"in_flight\":%d,\"h2d\":{\"bytes_per_second\":1000000000,\"latency_ns\":100},"
    "\"d2h\":{\"bytes_per_second\":1000000000,\"latency_ns\":100},\"duplex_ppm\":500000,\"slowdown_ppm\":100000},"
    "\"compute\":{\"flops_per_second\":1000000000000,\"half_flops_per_second\":1000000000000,"
    "\"memory_bytes_per_second\":100000000000,\"processors\":10,\"kernel_ns\":1000,\"split_depth\":8},"
    "\"efficiency\":{\"conv\":1000000,\"gemm\":1000000,\"elementwise\":1000000,\"reduction\":1000000,"
    "\"norm\":1000000,\"pool\":1000000,\"optimizer\":1000000,\"copy\":1000000},\"multiply\":{"
    "\"linear\":{\"flops_ppm\":500000,\"tile\":16,\"depth_overhead\":0},"
    "\"implicit-gemm\":{\"flops_ppm\":250000,\"tile\":16,\"depth_overhead\":16},"
    "\"gemm\":{\"flops_ppm\":500000,\"tile\":16,\"depth_overhead\":0},"
    "\"winograd\":{\"flops_ppm\":500000,\"tile\":16,\"depth_overhead\":0},"
    "\"fft\":{\"flops_ppm\":500000,\"tile\":16,\"depth_overhead\":0}},\"origin\":{\"device\":\"made "
    "up\"},\"ops\":[%s]}";

#define VARIANT(algorithm, time, workspace)                                                             \
  "{\"algorithm\":\"" algorithm "\",\"deterministic\":true,\"points\":[{\"batch\":4,\"time_ns\":" #time \
  ",\"workspace_bytes\":" #workspace ",\"busy_ppm\":1000000}]}"
#define OP(name, variants) "{\"op\":\"" name "\",\"variants\":[" variants "]}"
#define PLAIN(name) OP(name, VARIANT("default", 1000, 0))
#define ALL_BUT_SECOND \
  PLAIN("first")       \
  "," PLAIN("last") "," PLAIN("last.grad") "," PLAIN("second.grad") "," PLAIN("first.grad") "," PLAIN("step")
#define ALL_OPS ALL_BUT_SECOND "," PLAIN("second")

typedef struct hand {
  int reserved, launch_ns, in_flight;
  const char *ops;
  int64_t budget, host_budget; /* 0: none */
} hand;

static planc_status simulate_graph(const planc_graph *graph, hand h, planc_passive *out) {
  char text[8192];
  int length = snprintf(text, sizeof text, profile_text, h.reserved, h.launch_ns, h.in_flight ? h.in_flight : 100,
                        h.ops ? h.ops : ALL_OPS);
  planc_profile *profile;
  ok(planc_profile_parse(text, (size_t)length, "hand", &profile));
  planc_problem problem = {.job.graph = graph,
                           .job.profile = profile,
                           .job.batch = 4,
                           .terms.budgets[PLANC_MEMORY_DEVICE] = h.budget,
                           .terms.budgets[PLANC_MEMORY_HOST] = h.host_budget ? h.host_budget : -1};
  planc_status status = planc_simulate_passive(&problem, out);
  planc_profile_free(profile);
  return status;
}

/* At a batch of 4, x and a hold 4 KiB, b 8 KiB, their gradients as much, w and its gradient 1 KiB, the loss 4 bytes. */
static planc_status simulate_tiny(hand h, planc_passive *out) {
  planc_graph *graph;
  ok(planc_graph_read("tests/golden/inputs/tiny.yaml", &graph));
  planc_status status = simulate_graph(graph, h, out);
  planc_graph_free(graph);
  return status;
}

static planc_passive passive_of(hand h) {
  planc_passive out;
  ok(simulate_tiny(h, &out));
  return out;
}

static int64_t sum_of(const planc_passive_iteration *i) {
  return i->compute_ns + i->evict_ns + i->swap_in_ns + i->user_ns + i->launch_ns;
}

/* Seven ops; x comes in 100 + 4096 ns, the loss leaves in 100 + 4. */
START_TEST(with_room_for_all_nothing_is_swapped) {
  planc_passive p = passive_of((hand){.budget = 25600});
  ck_assert_int_eq(p.prologue_ns, 100 + 1024);
  ck_assert_int_eq(p.first.time_ns, 7000 + 4196 + 104);
  ck_assert_int_eq(p.first.compute_ns, 7000);
  ck_assert_int_eq(p.first.user_ns, 4196 + 104);
  ck_assert_int_eq(p.first.evictions + p.first.swap_ins + p.first.copied_out, 0);
  ck_assert_int_eq(p.first.copied_bytes[PLANC_ROUTE_H2D], 4096);
  ck_assert_int_eq(p.first.copied_bytes[PLANC_ROUTE_D2H], 4);
  ck_assert(memcmp(&p.first, &p.steady, sizeof p.first) == 0);
  ck_assert_int_eq(p.peak_bytes, 25600);
  ck_assert_int_eq(p.host_peak_bytes, 0);
}
END_TEST

/* At last.grad x and then w, which were used least recently, make room for b.grad. The user has x; w has been written
 * since the second iteration. Both come back when first.grad and step read them. */
START_TEST(what_was_used_least_recently_leaves) {
  planc_passive p = passive_of((hand){.budget = 20480});
  ck_assert_int_eq(p.first.evictions, 2);
  ck_assert_int_eq(p.first.copied_out, 0);
  ck_assert_int_eq(p.first.evict_ns, 0);
  ck_assert_int_eq(p.first.swap_ins, 2);
  ck_assert_int_eq(p.first.swapped_in_bytes, 4096 + 1024);
  ck_assert_int_eq(p.first.swap_in_ns, 4196 + 1124);
  ck_assert_int_eq(p.first.time_ns, 7000 + 4300 + 5320);
  ck_assert_int_eq(p.steady.evictions, 2);
  ck_assert_int_eq(p.steady.copied_out, 1);
  ck_assert_int_eq(p.steady.evicted_bytes, 1024);
  ck_assert_int_eq(p.steady.evict_ns, 1124);
  ck_assert_int_eq(p.steady.time_ns, 7000 + 4300 + 5320 + 1124);
  ck_assert_int_eq(p.steady.copied_bytes[PLANC_ROUTE_H2D], 4096 + 5120);
  ck_assert_int_eq(p.steady.copied_bytes[PLANC_ROUTE_D2H], 4 + 1024);
  ck_assert_int_eq(p.peak_bytes, 20480);
  ck_assert_int_eq(p.host_peak_bytes, 1024);
}
END_TEST

/* Even a, which second.grad reads next, has to leave: 8 KiB of b and of b.grad are all that there is room for. */
START_TEST(the_least_budget_is_that_of_the_largest_op) {
  planc_passive p = passive_of((hand){.budget = 16384});
  ck_assert_int_eq(p.first.evictions, 3);
  ck_assert_int_eq(p.first.copied_out, 1);
  ck_assert_int_eq(p.first.evict_ns, 4196);
  ck_assert_int_eq(p.first.time_ns, 7000 + 4300 + 5320 + 2 * 4196);
  ck_assert_int_eq(p.peak_bytes, 16384);
  planc_passive none;
  assert_fails(simulate_tiny((hand){.budget = 16383}, &none), PLANC_INFEASIBLE,
               "op last.grad alone needs 16384 bytes of operands, 8192 of them for b, and 0 of workspace: no");
  assert_fails(simulate_tiny((hand){.budget = 17383, .reserved = 1000}, &none), PLANC_INFEASIBLE,
               "no budget below 17384 bytes will do, 1000 reserved by the device included");
  ck_assert_int_eq(passive_of((hand){.budget = 17384, .reserved = 1000}).peak_bytes, 17384);
}
END_TEST

START_TEST(the_host_budget_binds) {
  planc_passive none;
  assert_fails(simulate_tiny((hand){.budget = 20480, .host_budget = 1023}, &none), PLANC_INFEASIBLE,
               "it needs 1024 bytes of host memory");
  passive_of((hand){.budget = 20480, .host_budget = 1024});
}
END_TEST

/* The host runs ahead of the ops but not of copies: the feed and the first op behind each copy wait for a launch. Later
 * the feed's launch is hidden by the last op of the iteration before. */
START_TEST(launches_are_hidden_by_ops_but_not_by_copies) {
  planc_passive p = passive_of((hand){.budget = 25600, .launch_ns = 500});
  ck_assert_int_eq(p.first.launch_ns, 1500);
  ck_assert_int_eq(p.steady.launch_ns, 1000);
  ck_assert_int_eq(p.steady.time_ns, sum_of(&p.steady));
  /* With one op in flight each of the seven waits for its launch; copies are launched beside the op before. */
  p = passive_of((hand){.budget = 25600, .launch_ns = 500, .in_flight = 1});
  ck_assert_int_eq(p.first.launch_ns, 4000);
  ck_assert_int_eq(p.steady.launch_ns, 3500);
}
END_TEST

#define SECOND_FAST ALL_BUT_SECOND "," OP("second", VARIANT("slow", 1000, 0) "," VARIANT("fast", 200, 8192))
#define SECOND_LARGE ALL_BUT_SECOND "," OP("second", VARIANT("default", 1000, 12288))

/* Beside x, w, a and b, 17 KiB in all, 8 KiB of workspace have to be free: nothing is evicted for speed. */
START_TEST(fast_algorithms_take_what_room_there_is) {
  ck_assert_int_eq(passive_of((hand){.budget = 25600, .ops = SECOND_FAST}).first.compute_ns, 6200);
  planc_passive p = passive_of((hand){.budget = 25599, .ops = SECOND_FAST});
  ck_assert_int_eq(p.first.compute_ns, 7000);
  /* For the least workspace there is, x has to go. */
  p = passive_of((hand){.budget = 25600, .ops = SECOND_LARGE});
  ck_assert_int_eq(p.first.evictions, 1);
  ck_assert_int_eq(p.first.swap_in_ns, 4196);
  planc_passive none;
  assert_fails(simulate_tiny((hand){.budget = 24575, .ops = SECOND_LARGE}, &none), PLANC_INFEASIBLE,
               "op second alone needs 12288 bytes of operands, 8192 of them for b, and 12288 of workspace");
}
END_TEST

/* Behind q nothing reads t before s writes over it: when r needs the room it goes without a copy, and s allocates. */
START_TEST(what_nothing_reads_is_not_copied) {
  planc_graph *graph = graph_of(
      "planc-graph: 1\nname: over\nloss: z\ntensors:\n  x: input f32[N,64]\n  t: f32[N,256]\n  u: f32[N,64]\n"
      "  v: f32[N,512]\n  t2: f32[N,256] of t\n  z: f32[]\nops:\n"
      "  - {op: p, type: t.a, in: [x], out: [t]}\n  - {op: q, type: t.a, in: [t], out: [u]}\n"
      "  - {op: r, type: t.a, in: [u], out: [v]}\n  - {op: s, type: t.a, in: [v], out: [t2]}\n"
      "  - {op: e, type: t.a, in: [t2], out: [z]}\n");
  hand h = {.budget = 12288, .ops = PLAIN("p") "," PLAIN("q") "," PLAIN("r") "," PLAIN("s") "," PLAIN("e")};
  planc_passive p;
  ok(simulate_graph(graph, h, &p));
  planc_graph_free(graph);
  ck_assert_int_eq(p.first.evictions, 1);
  ck_assert_int_eq(p.first.copied_out + p.first.swap_ins, 0);
  ck_assert_int_eq(p.first.time_ns, 5000 + 1124 + 104);
  ck_assert_int_eq(p.peak_bytes, 12288);
}
END_TEST

/* --- On random graphs --------------------------------------------------------------------------------------------- */

enum { GRAPHS = 60, BUDGETS = 12, PERIODS = 8 };

static planc_profile *profile;

static void read_profile(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
}
static void free_profile(void) {
  planc_profile_free(profile);
}

static int64_t aligned(int64_t bytes) {
  return (bytes + PLANC_ALIGNMENT - 1) / PLANC_ALIGNMENT * PLANC_ALIGNMENT;
}

/* The same by a table of when each buffer was used last, searched from one end to the other. */
typedef struct table {
  const planc_trace *trace;
  int64_t capacity, live, clock;
  int64_t *used; /* by buffer: when it was, -1 = not resident */
  bool *stale;   /* the host does not have it */
  bool *slot;    /* it has host memory */
  int64_t host, host_peak;
  int32_t *position;
  planc_passive_iteration now;
} table;

static const planc_access *next_of(const table *t, int32_t buffer) {
  const planc_buffer *b = &t->trace->buffers[buffer];
  return &t->trace->accesses[t->trace->by_buffer[b->first_access + t->position[buffer]]];
}

static bool done_with(const table *t, int32_t buffer) {
  return t->position[buffer] == t->trace->buffers[buffer].n_accesses;
}

static void evict_one(table *t) {
  int32_t oldest = -1;
  for (int32_t b = 0; b < t->trace->n_buffers; b++)
    if (t->used[b] >= 0 && (oldest < 0 || t->used[b] < t->used[oldest])) oldest = b;
  ck_assert_int_ge(oldest, 0);
  const planc_buffer *b = &t->trace->buffers[oldest];
  bool read = done_with(t, oldest) || next_of(t, oldest)->read >= 0;
  if (t->stale[oldest] && read) {
    t->now.copied_out++;
    t->now.evicted_bytes += b->bytes;
    t->stale[oldest] = false;
    if (!t->slot[oldest]) t->host += aligned(b->bytes);
    t->slot[oldest] = true;
    if (t->host > t->host_peak) t->host_peak = t->host;
  }
  t->now.evictions++;
  t->live -= aligned(b->bytes);
  t->used[oldest] = -1;
}

static void run_instance(table *t, const planc_instance *in) {
  int32_t n_in = 0, in_buffers[64];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &t->trace->accesses[a];
    const planc_buffer *b = &t->trace->buffers[access->buffer];
    if (t->used[access->buffer] < 0) {
      t->live += aligned(b->bytes);
      bool anywhere = t->position[access->buffer] > 0 || (b->flags & PLANC_BUFFER_PERSISTENT);
      if (access->read >= 0 && anywhere) in_buffers[n_in++] = access->buffer;
    }
    t->used[access->buffer] = t->clock++;
  }
  while (t->live > t->capacity) evict_one(t);
  for (int32_t k = 0; k < n_in; k++) t->now.swapped_in_bytes += t->trace->buffers[in_buffers[k]].bytes;
  t->now.swap_ins += n_in;
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &t->trace->accesses[a];
    const planc_buffer *b = &t->trace->buffers[access->buffer];
    t->position[access->buffer]++;
    if (access->write >= 0) t->stale[access->buffer] = true;
    if (!done_with(t, access->buffer) || (b->flags & PLANC_BUFFER_PERSISTENT)) continue;
    t->live -= aligned(b->bytes);
    t->used[access->buffer] = -1;
    t->stale[access->buffer] = false;
    if (t->slot[access->buffer]) t->host -= aligned(b->bytes);
    t->slot[access->buffer] = false;
  }
}

static int64_t first_use(const planc_trace *trace, int32_t buffer) {
  const planc_buffer *b = &trace->buffers[buffer];
  return b->n_accesses ? trace->by_buffer[b->first_access] : INT64_C(1) << 40 | buffer;
}

/* Persistent buffers by first use, the first of them as if used last, until one does not fit. */
static void load(table *t) {
  for (int64_t clock = 1 << 20, last = -1;; clock--) {
    int32_t next = -1;
    for (int32_t b = 0; b < t->trace->n_buffers; b++) {
      if (!(t->trace->buffers[b].flags & PLANC_BUFFER_PERSISTENT) || first_use(t->trace, b) <= last) continue;
      if (next < 0 || first_use(t->trace, b) < first_use(t->trace, next)) next = b;
    }
    if (next < 0 || t->live + aligned(t->trace->buffers[next].bytes) > t->capacity) break;
    last = first_use(t->trace, next);
    t->live += aligned(t->trace->buffers[next].bytes);
    t->used[next] = clock;
  }
  t->clock = (1 << 20) + 1;
}

static void same_swaps(const planc_passive_iteration *a, const planc_passive_iteration *b) {
  ck_assert_int_eq(a->evictions, b->evictions);
  ck_assert_int_eq(a->copied_out, b->copied_out);
  ck_assert_int_eq(a->evicted_bytes, b->evicted_bytes);
  ck_assert_int_eq(a->swap_ins, b->swap_ins);
  ck_assert_int_eq(a->swapped_in_bytes, b->swapped_in_bytes);
}

static void same_as_table(const planc_problem *problem, const planc_passive *p) {
  static const int64_t rounds[] = {1, 1, 1};
  planc_job job = {
      .graph = problem->job.graph, .batch = 3, .n_rounds = 1, .rounds = &problem->job.batch, .iterations = 1};
  if (problem->job.sub_batch) {
    job.n_rounds = 3;
    job.rounds = rounds;
  }
  planc_trace *trace;
  ok(planc_expand(&job, 1, &trace));
  size_t n = (size_t)trace->n_buffers + 1;
  table t = {.trace = trace, .used = malloc(n * sizeof *t.used), .stale = calloc(n, sizeof *t.stale)};
  t.slot = calloc(n, sizeof *t.slot);
  t.position = malloc(n * sizeof *t.position);
  t.capacity = (problem->terms.budgets[PLANC_MEMORY_DEVICE] - planc_profile_device(profile)->reserved_bytes) /
               PLANC_ALIGNMENT * PLANC_ALIGNMENT;
  for (size_t b = 0; b < n; b++) t.used[b] = -1;
  load(&t);
  for (int period = 0; period < PERIODS; period++) {
    memset(t.position, 0, n * sizeof *t.position);
    t.now = (planc_passive_iteration){0};
    for (int32_t i = 0; i < trace->n_instances; i++) run_instance(&t, &trace->instances[i]);
    if (period == 0) same_swaps(&t.now, &p->first);
  }
  same_swaps(&t.now, &p->steady);
  ck_assert_int_eq(t.host_peak, p->host_peak_bytes);
  free(t.used);
  free(t.stale);
  free(t.slot);
  free(t.position);
  planc_trace_free(trace);
}

/* `less` had more memory. */
static void no_worse(const planc_passive_iteration *less, const planc_passive_iteration *more) {
  ck_assert_int_eq(less->compute_ns, more->compute_ns);
  ck_assert_int_eq(less->user_ns, more->user_ns);
  ck_assert_int_le(less->evictions, more->evictions);
  ck_assert_int_le(less->copied_out, more->copied_out);
  ck_assert_int_le(less->evicted_bytes, more->evicted_bytes);
  ck_assert_int_le(less->evict_ns, more->evict_ns);
  ck_assert_int_le(less->swap_ins, more->swap_ins);
  ck_assert_int_le(less->swapped_in_bytes, more->swapped_in_bytes);
  ck_assert_int_le(less->swap_in_ns, more->swap_in_ns);
}

static void adds_up(const planc_problem *problem, const planc_passive *p) {
  ck_assert_int_eq(p->first.time_ns, sum_of(&p->first));
  ck_assert_int_eq(p->steady.time_ns, sum_of(&p->steady));
  ck_assert_int_le(p->peak_bytes, problem->terms.budgets[PLANC_MEMORY_DEVICE]);
}

/* With room for all it computes as the simulator does of the plan that keeps everything, and swaps nothing. */
static void is_resident(const planc_problem *problem, const planc_passive *p) {
  planc_plan *plan;
  planc_simulation s;
  ok(planc_make_plan(problem, planc_policy_find("ideal"), &plan));
  ok(planc_simulate(plan, NULL, &s));
  planc_plan_free(plan);
  ck_assert_int_eq(p->first.evictions + p->first.swap_ins + p->host_peak_bytes, 0);
  ck_assert_int_eq(p->steady.compute_ns, s.compute_ns);
  ck_assert_int_eq(p->steady.copied_bytes[PLANC_ROUTE_H2D], s.copied_bytes[PLANC_ROUTE_H2D]);
  ck_assert_int_eq(p->steady.copied_bytes[PLANC_ROUTE_D2H], s.copied_bytes[PLANC_ROUTE_D2H]);
  ck_assert_int_le(p->steady.time_ns - p->steady.launch_ns - p->steady.user_ns, s.period_ns);
}

/* The ops of random graphs have one variant each and no workspace. A third of the graphs runs in rounds. */
START_TEST(more_memory_is_no_worse) {
  planc_graph *graph;
  ok(randgraph_make((uint64_t)_i, NULL, &graph));
  planc_problem problem = {.job.graph = graph,
                           .job.profile = profile,
                           .job.batch = 3,
                           .terms.budgets[PLANC_MEMORY_DEVICE] = INT64_C(1) << 40,
                           .terms.budgets[PLANC_MEMORY_HOST] = -1,
                           .job.sub_batch = _i % 3 == 0};
  planc_passive whole, more;
  ok(planc_simulate_passive(&problem, &whole));
  is_resident(&problem, &whole);
  more = whole;
  int32_t feasible = 0;
  for (int k = 0; k < BUDGETS; k++) {
    planc_passive p;
    problem.terms.budgets[PLANC_MEMORY_DEVICE] = whole.peak_bytes - whole.peak_bytes * k / BUDGETS;
    planc_status status = planc_simulate_passive(&problem, &p);
    if (status) {
      assert_fails(status, PLANC_INFEASIBLE, "alone needs");
      break;
    }
    feasible++;
    adds_up(&problem, &p);
    if (k > 0 || p.first.evictions > 0) ck_assert_int_le(p.peak_bytes, whole.peak_bytes);
    no_worse(&more.first, &p.first);
    no_worse(&more.steady, &p.steady);
    same_as_table(&problem, &p);
    more = p;
  }
  ck_assert_int_ge(feasible, 1);
  planc_graph_free(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("passive");
  TCase *by_hand = tcase_create("by hand");
  tcase_add_test(by_hand, with_room_for_all_nothing_is_swapped);
  tcase_add_test(by_hand, what_was_used_least_recently_leaves);
  tcase_add_test(by_hand, the_least_budget_is_that_of_the_largest_op);
  tcase_add_test(by_hand, the_host_budget_binds);
  tcase_add_test(by_hand, launches_are_hidden_by_ops_but_not_by_copies);
  tcase_add_test(by_hand, fast_algorithms_take_what_room_there_is);
  tcase_add_test(by_hand, what_nothing_reads_is_not_copied);
  suite_add_tcase(suite, by_hand);
  TCase *random = tcase_create("random");
  tcase_add_checked_fixture(random, read_profile, free_profile);
  tcase_add_loop_test(random, more_memory_is_no_worse, 0, sampled(GRAPHS));
  tcase_set_timeout(random, 60);
  suite_add_tcase(suite, random);
  return run_suite(suite);
}
