/* When and what the swapping baselines swap, on ResNet-34, whose blocks branch: the rules stated at the head of
 * naive.c, prefetch_one.c, lms.c, superneurons.c and capuchin.c, told here from the trace and the plan alone. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "cost/profile.h"
#include "graph/optypes.h"
#include "planc/policy.h"
#include "planner/base/code.h"
#include "planner/choose/absences.h"
#include "planner/choose/restorable.h"
#include "planner/evaluate.h"
#include "planner/policies/capuchin.h"
#include "planner/policies/policies.h"
#include "tests/support/graphtext.h"
#include "tests/support/judge.h"
#include "tests/support/least.h"
#include "tests/support/lower_for.h"
#include "tests/support/plan_view.h"
#include "tests/support/unit.h"
#include "util/file.h"

enum { BATCH = 16 };

static planc_profile *profile;
static planc_graph *graph;
static planc_trace *trace;

static void set_up(void) {
  planc_graph *forward;
  ok(planc_profile_read("profiles/k40m.json", &profile));
  ok(planc_graph_read("graphs/resnet34.yaml", &forward));
  ok(planc_graph_train(forward, PLANC_SGD, &graph));
  planc_graph_free(forward);
  static const int64_t rounds[] = {BATCH};
  planc_job job = {.graph = graph, .batch = BATCH, .n_rounds = 1, .rounds = rounds, .iterations = 1};
  ok(planc_expand(&job, 1, &trace));
}

static void tear_down(void) {
  planc_trace_free(trace);
  planc_graph_free(graph);
  planc_profile_free(profile);
}

static planc_problem problem_of(int64_t budget) {
  return (planc_problem){.job.graph = graph,
                         .job.profile = profile,
                         .job.batch = BATCH,
                         .terms.budgets[PLANC_MEMORY_DEVICE] = budget,
                         .terms.budgets[PLANC_MEMORY_HOST] = -1};
}

/* A plan in `percent` of what it takes with everything resident. */
static planc_plan *make(const char *policy, int64_t percent) {
  int64_t least;
  planc_problem problem = problem_of(0);
  ok(find_least_bytes(&problem, planc_policy_find("none"), &least));
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = least / 100 * percent;
  planc_plan *plan;
  ok(planc_make_plan(&problem, planc_policy_find(policy), &plan));
  return plan;
}

static planc_phase phase_of(int32_t instance) {
  return planc_trace_op(trace, instance)->phase;
}
static planc_class class_of(int32_t instance) {
  return pl_op_class(planc_trace_op(trace, instance));
}
static const planc_access *access_at(const planc_buffer *buffer, int32_t k) {
  return &trace->accesses[trace->by_buffer[buffer->first_access + k]];
}

/* --- What a plan does --------------------------------------------------------------------------------------------- */

/* A residency of the body on the device. Times are instances: something happens at t behind instance t - 1 and ahead of
 * t. */
typedef struct stay {
  int32_t buffer; /* -1: it is not on the device */
  int32_t opened, closed;
  int32_t offloaded, fetched; /* -1 = not */
} stay;

typedef struct stays {
  int32_t n;
  stay *all;   /* by residency */
  bool *again; /* per instance: runs again */
} stays;

static stays read_stays(const planc_plan *plan) {
  stays s = {plan->n_residencies, calloc((size_t)plan->n_residencies, sizeof *s.all),
             calloc((size_t)trace->n_instances, sizeof *s.again)};
  int32_t now = 0;
  for (int32_t r = 0; r < s.n; r++) s.all[r] = (stay){-1, 0, trace->n_instances, -1, -1};
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (acquires_on_device(plan, instr)) {
      s.all[instr->id].buffer = instr->aux;
      s.all[instr->id].opened = now;
    } else if (instr->op == PLANC_INSTR_release) {
      s.all[instr->id].closed = now;
    } else if (swaps_out(plan, instr)) {
      s.all[instr->aux].offloaded = now;
    } else if (copies_on(plan, instr, "h2d")) {
      s.all[instr->id].fetched = now;
    } else if (instr->op == PLANC_INSTR_exec && instr->recompute) {
      s.again[instr->id] = true;
    } else if (instr->op == PLANC_INSTR_exec) {
      now = instr->id + 1;
    }
  }
  return s;
}

static void free_stays(stays *s) {
  free(s->all);
  free(s->again);
}

/* The stay of the buffer that is open while an instance runs, or NULL. */
static const stay *stay_at(const stays *s, int32_t buffer, int32_t instance) {
  for (int32_t r = 0; r < s->n; r++) {
    const stay *of = &s->all[r];
    if (of->buffer == buffer && of->opened <= instance && of->closed > instance) return of;
  }
  return NULL;
}

static int32_t count_offloads(const stays *s) {
  int32_t n = 0;
  for (int32_t r = 0; r < s->n; r++) n += s->all[r].offloaded >= 0;
  return n;
}

static int32_t count_recomputes(const stays *s) {
  int32_t n = 0;
  for (int32_t i = 0; i < trace->n_instances; i++) n += s->again[i];
  return n;
}

/* --- Swapping alone ----------------------------------------------------------------------------------------------- */

/* Nothing but parameters outlasts an op. */
START_TEST(naive_swaps_around_every_op) {
  planc_plan *plan = make("naive", 60);
  stays s = read_stays(plan);
  int32_t n = 0;
  for (int32_t r = plan->n_boundary; r < s.n; r++) {
    if (s.all[r].buffer < 0 || trace->buffers[s.all[r].buffer].flags & PLANC_BUFFER_PERSISTENT) continue;
    ck_assert_msg(s.all[r].closed == s.all[r].opened + 1, "%s stays from %d to %d",
                  planc_trace_buffer_name(trace, s.all[r].buffer), s.all[r].opened, s.all[r].closed);
    n++;
  }
  ck_assert_int_gt(n, trace->n_instances);
  free_stays(&s);
  planc_plan_free(plan);
}
END_TEST

START_TEST(prefetch_1_fetches_one_op_ahead) {
  planc_plan *plan = make("prefetch-1", 60);
  stays s = read_stays(plan);
  int32_t swapped = 0, branches = 0;
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    if (buffer->kind != PLANC_KIND_activation) continue;
    for (int32_t k = 1; k < buffer->n_accesses; k++) {
      int32_t from = access_at(buffer, k - 1)->instance, to = access_at(buffer, k)->instance;
      const stay *before = stay_at(&s, b, from), *after = stay_at(&s, b, to);
      bool leaves = phase_of(from) == PLANC_PHASE_forward && phase_of(to) == PLANC_PHASE_backward && to - from > 2;
      ck_assert_ptr_nonnull(before);
      ck_assert_msg((before != after) == leaves, "%s between %d and %d", planc_trace_buffer_name(trace, b), from, to);
      if (!leaves) continue;
      ck_assert_int_eq(before->offloaded, from + 1);
      ck_assert_int_eq(before->closed, from + 2);
      ck_assert_int_eq(after->fetched, to - 1);
      swapped++;
      branches += k > 2;
    }
  }
  ck_assert_int_gt(swapped, 60);
  ck_assert_int_gt(branches, 10);
  free_stays(&s);
  planc_plan_free(plan);
}
END_TEST

/* Levels from their definition. */
static int32_t *find_levels(void) {
  int32_t *level = calloc((size_t)trace->n_instances, sizeof *level);
  int32_t *writer = calloc((size_t)trace->n_buffers, sizeof *writer);
  for (int32_t b = 0; b < trace->n_buffers; b++) writer[b] = -1;
  for (int32_t a = 0; a < trace->n_accesses; a++) {
    const planc_access *access = &trace->accesses[a];
    int32_t w = access->read >= 0 ? writer[access->buffer] : -1;
    if (w >= 0 && level[w] + 1 > level[access->instance]) level[access->instance] = level[w] + 1;
    bool last = a + 1 == trace->n_accesses || trace->accesses[a + 1].instance != access->instance;
    for (int32_t k = trace->instances[access->instance].first_access; last && k <= a; k++) {
      if (trace->accesses[k].write >= 0) writer[trace->accesses[k].buffer] = access->instance;
    }
  }
  free(writer);
  return level;
}

/* Of the writers of what an instance reads, but not `except`, the last one; -1 = none. */
static int32_t latest_input(int32_t instance, int32_t except) {
  const planc_instance *in = &trace->instances[instance];
  int32_t latest = -1;
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    int32_t w =
        trace->accesses[a].read < 0 ? -1 : pl_writer_of(trace, trace->accesses[a].buffer, trace->accesses[a].read);
    if (w != except && w > latest) latest = w;
  }
  return latest;
}

/* In the least budget all is synchronised: what is swapped in comes when the reader's other inputs have been made,
 * which is earlier than right ahead of it where branches join. */
START_TEST(lms_waits_for_the_other_inputs) {
  planc_problem problem = problem_of(0);
  planc_plan *plan;
  ok(find_least_bytes(&problem, planc_policy_find("lms"), &problem.terms.budgets[PLANC_MEMORY_DEVICE]));
  ok(planc_make_plan(&problem, planc_policy_find("lms"), &plan));
  stays s = read_stays(plan);
  int32_t fetched = 0, early = 0;
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    for (int32_t k = 1; k < buffer->n_accesses; k++) {
      int32_t from = access_at(buffer, k - 1)->instance, to = access_at(buffer, k)->instance;
      const stay *after = stay_at(&s, b, to);
      if (after == stay_at(&s, b, from) || after->fetched < 0) continue;
      int32_t writer = pl_writer_of(trace, b, access_at(buffer, k)->read), latest = latest_input(to, writer);
      ck_assert_msg(after->fetched == (latest > writer ? latest + 1 : to), "%s for %s comes at %d, not after %d",
                    planc_trace_buffer_name(trace, b), planc_trace_op(trace, to)->name, after->fetched, latest);
      fetched++;
      early += after->fetched < to;
    }
  }
  ck_assert_int_gt(fetched, 100);
  ck_assert_int_gt(early, 2);
  free_stays(&s);
  planc_plan_free(plan);
}
END_TEST

/* s is away while `big` runs although its reader's highest input is there before: a lower one is made later. */
START_TEST(lms_waits_for_the_last_input) {
  planc_graph *late = graph_of(
      "planc-graph: 1\nname: late\ntensors:\n  x: input f32[N,16]\n  s: f32[N,262144]\n  c1: f32[N,16]\n  c2: "
      "f32[N,16]\n"
      "  c3: f32[N,16]\n  d: f32[N,786432]\n  e: f32[N,16]\n  b: f32[N,16]\n  out: f32[N,16]\n"
      "ops:\n  - {op: s, type: t.s, in: [x], out: [s], traffic: 0}\n  - {op: c1, type: t.c, in: [x], out: [c1], "
      "traffic: 0}\n"
      "  - {op: c2, type: t.c, in: [c1], out: [c2], traffic: 0}\n  - {op: c3, type: t.c, in: [c2], out: [c3], traffic: "
      "0}\n"
      "  - {op: big, type: t.d, in: [x], out: [d], traffic: 0}\n  - {op: e, type: t.e, in: [d], out: [e], traffic: 0}\n"
      "  - {op: b, type: t.b, in: [x], out: [b], traffic: 0}\n"
      "  - {op: join, type: t.j, in: [s, c3, b], out: [out], traffic: 0}\noutputs: [out]\n");
  planc_problem problem = {
      .job.graph = late, .job.profile = profile, .job.batch = 1, .terms.budgets[PLANC_MEMORY_HOST] = -1};
  int64_t least, reserved = planc_profile_device(profile)->reserved_bytes;
  ok(find_least_bytes(&problem, planc_policy_find("lms"), &least));
  ck_assert_int_lt(least - reserved, 4 * 900000);
  planc_graph_free(late);
}
END_TEST

/* Some threshold parts the distances of first readers that find the data on the device from those that have it swapped
 * in; what is swapped out leaves as soon as it is made; vectors and inputs never do. */
START_TEST(lms_swaps_beyond_a_distance) {
  planc_plan *plan = make("lms", 70);
  stays s = read_stays(plan);
  int32_t *level = find_levels();
  int32_t longest_stay = 0, shortest_swap = INT32_MAX, swapped = 0;
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    bool vector = graph->tensors[graph->storages[buffer->storage].tensor].rank < 2, away = false;
    int32_t writer = -1;
    for (int32_t k = 1; k < buffer->n_accesses; k++) {
      const planc_access *from = access_at(buffer, k - 1), *to = access_at(buffer, k);
      if (from->write >= 0) {
        writer = from->instance;
        away = false;
      }
      if (stay_at(&s, b, from->instance) != stay_at(&s, b, to->instance)) {
        ck_assert_msg(!vector && buffer->kind == PLANC_KIND_activation, "%s is swapped",
                      planc_trace_buffer_name(trace, b));
        const stay *first = stay_at(&s, b, writer);
        if (!away) ck_assert_int_eq(first->offloaded, writer + 1);
        if (level[to->instance] - level[writer] < shortest_swap) shortest_swap = level[to->instance] - level[writer];
        away = true;
        swapped++;
      } else if (!vector && buffer->kind == PLANC_KIND_activation && to->read >= 0 && !away &&
                 level[to->instance] - level[writer] > longest_stay) {
        longest_stay = level[to->instance] - level[writer];
      }
    }
  }
  ck_assert_int_gt(swapped, 20);
  ck_assert_int_lt(longest_stay, shortest_swap);
  free(level);
  free_stays(&s);
  planc_plan_free(plan);
}
END_TEST

START_TEST(what_fits_is_not_swapped) {
  static const char *const names[] = {"lms", "capuchin", "superneurons"};
  for (int i = 0; i < 3; i++) {
    planc_plan *plan = make(names[i], 130);
    stays s = read_stays(plan);
    ck_assert_int_eq(count_offloads(&s), 0);
    ck_assert_msg(i == 2 || count_recomputes(&s) == 0, "%s computes again", names[i]);
    free_stays(&s);
    planc_plan_free(plan);
  }
}
END_TEST

/* --- SuperNeurons ------------------------------------------------------------------------------------------------- */

static bool dear(int32_t instance) {
  return class_of(instance) == PLANC_CLASS_conv || class_of(instance) == PLANC_CLASS_gemm;
}

/* Convolutions run once; what a restore reads was made in its segment, or is kept. */
START_TEST(superneurons_restores_segments) {
  planc_plan *plan = make("superneurons", 60);
  stays s = read_stays(plan);
  int32_t *segment = calloc((size_t)trace->n_instances, sizeof *segment);
  int32_t *writer = calloc((size_t)trace->n_buffers, sizeof *writer);
  for (int32_t i = 0; i < trace->n_instances && phase_of(i) == PLANC_PHASE_forward; i++) {
    segment[i] = (i ? segment[i - 1] : 0) + dear(i);
    ck_assert_msg(!(s.again[i] && dear(i)), "%s runs again", planc_trace_op(trace, i)->name);
    const planc_instance *in = &trace->instances[i];
    for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
      const planc_access *access = &trace->accesses[a];
      int32_t w = writer[access->buffer];
      bool made =
          access->read > 0 || (access->read == 0 && !planc_kind_exists_before(trace->buffers[access->buffer].kind));
      if (s.again[i] && made && !access->effect && s.again[w]) ck_assert_int_eq(segment[w], segment[i]);
      if (access->write >= 0) writer[access->buffer] = i;
    }
  }
  ck_assert_int_gt(count_recomputes(&s), 30);
  free(writer);
  free(segment);
  free_stays(&s);
  planc_plan_free(plan);
}
END_TEST

/* Of the outputs of convolutions those leave that were last used first, and no more than a budget asks for. */
START_TEST(superneurons_swaps_what_was_used_longest_ago) {
  int32_t before = 0;
  static const int64_t percents[] = {78, 68, 63};
  for (int i = 0; i < 3; i++) {
    planc_plan *plan = make("superneurons", percents[i]);
    stays s = read_stays(plan);
    int32_t last_swapped = -1, first_kept = INT32_MAX;
    for (int32_t b = 0; b < trace->n_buffers; b++) {
      const planc_buffer *buffer = &trace->buffers[b];
      bool by_conv = buffer->n_accesses > 0 && access_at(buffer, 0)->write >= 0 &&
                     class_of(access_at(buffer, 0)->instance) == PLANC_CLASS_conv;
      int32_t k = 0;
      while (by_conv && k < buffer->n_accesses && phase_of(access_at(buffer, k)->instance) == PLANC_PHASE_forward) k++;
      if (k == 0 || k == buffer->n_accesses || buffer->kind != PLANC_KIND_activation) continue;
      int32_t use = access_at(buffer, k - 1)->instance, to = access_at(buffer, k)->instance;
      bool swapped = stay_at(&s, b, use) != stay_at(&s, b, to);
      if (swapped && use > last_swapped) last_swapped = use;
      if (!swapped && use < first_kept) first_kept = use;
      if (swapped) ck_assert_int_lt(stay_at(&s, b, to)->fetched, to);
    }
    ck_assert_int_lt(last_swapped, first_kept);
    ck_assert_int_gt(count_offloads(&s), before);
    before = count_offloads(&s);
    free_stays(&s);
    planc_plan_free(plan);
  }
}
END_TEST

/* A chain of `n` cheap ops, and its backward pass. */
static planc_graph *make_chain(int n) {
  char text[4096];
  int at = snprintf(text, sizeof text, "planc-graph: 1\nname: chain\noutputs: [g1]\ntensors:\n  a0: input f32[N,64]\n");
  for (int i = 1; i <= n; i++) at += snprintf(&text[at], sizeof text - (size_t)at, "  a%d: f32[N,64]\n", i);
  for (int i = 1; i <= n; i++) at += snprintf(&text[at], sizeof text - (size_t)at, "  g%d: f32[N,64]\n", i);
  at += snprintf(&text[at], sizeof text - (size_t)at,
                 "  g%d: f32[N,64]\nops:\n  - {op: f1, type: my.op, in: [a0], out: [a1]}\n", n + 1);
  for (int i = 2; i <= n; i++)
    at += snprintf(&text[at], sizeof text - (size_t)at, "  - {op: f%d, type: my.op, in: [a%d], out: [a%d]}\n", i, i - 1,
                   i);
  at += snprintf(&text[at], sizeof text - (size_t)at, "  - {op: top, type: my.op, in: [a%d], out: [g%d]}\n", n, n + 1);
  for (int i = n; i >= 1; i--)
    at += snprintf(&text[at], sizeof text - (size_t)at,
                   "  - {op: b%d, type: my.op, phase: backward, in: [a%d, g%d], out: [g%d]}\n", i, i, i + 1, i);
  return graph_of(text);
}

/* Whatever the budget, also one that nothing fits. */
static int times_again(const planc_problem *problem, int32_t instance) {
  planc_plan *plan;
  planc_candidate candidate = {0};
  planc_evaluator evaluator = pl_evaluator_of(problem);
  ok(pl_policy_superneurons(&evaluator, &candidate));
  ok(lower_for(problem, "superneurons", &candidate, &plan));
  planc_candidate_free(&candidate);
  int times = 0;
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    times += instr->op == PLANC_INSTR_exec && instr->recompute && instr->id == instance;
  }
  planc_plan_free(plan);
  return times;
}

/* A backward op touches three tensors. A segment of as many, the top's output among them, is restored once; a larger
 * one for every backward op anew; nothing where all fits. */
START_TEST(superneurons_restores_large_segments_each_time) {
  static const struct { int length, times; } cases[] = {{2, 1}, {3, 3}, {6, 6}};
  for (int i = 0; i < 3; i++) {
    planc_graph *chain = make_chain(cases[i].length);
    planc_problem problem = {.job.graph = chain,
                             .job.profile = profile,
                             .job.batch = 4,
                             .terms.budgets[PLANC_MEMORY_DEVICE] = 1,
                             .terms.budgets[PLANC_MEMORY_HOST] = -1};
    ck_assert_int_eq(times_again(&problem, 0), cases[i].times);
    problem.terms.settings.no_recompute = true;
    ck_assert_int_eq(times_again(&problem, 0), 0);
    problem.terms.settings.no_recompute = false;
    problem.terms.budgets[PLANC_MEMORY_DEVICE] = 1 << 20;
    ck_assert_int_eq(times_again(&problem, 0), 0);
    planc_graph_free(chain);
  }
}
END_TEST

/* --- Capuchin ----------------------------------------------------------------------------------------------------- */

/* Candidates in the room there is: a schedule without feedback. */
static planc_candidate choose(const planc_problem *problem, int64_t room, const int64_t *leads) {
  capuchin of = {.leads = leads};
  pl_absence_rule rule = {.choose = pl_capuchin_choose, .context = &of};
  planc_candidate candidate = {0};
  ok(pl_make_absences(problem, &rule, (pl_walk_room){.bytes = room}, &candidate));
  return candidate;
}

/* b and c are both away from the forward to the backward pass, around an op that needs memory. To restore c takes f3,
 * to restore b f2 and f1, since a is dead by then. */
static const char forked[] =
    "planc-graph: 1\n"
    "name: forked\n"
    "outputs: [gb]\n"
    "tensors:\n"
    "  x: input f32[N,64]\n"
    "  a: f32[N,64]\n"
    "  b: f32[N,64]\n"
    "  c: f32[N,64]\n"
    "  d: f32[N,1]\n"
    "  big: f32[N,512]\n"
    "  e: f32[N,1]\n"
    "  gc: f32[N,64]\n"
    "  gb: f32[N,64]\n"
    "ops:\n"
    "  - {op: f1, type: my.op, in: [x], out: [a]}\n"
    "  - {op: f2, type: my.op, in: [a], out: [b]}\n"
    "  - {op: f3, type: my.op, in: [b], out: [c]}\n"
    "  - {op: f4, type: my.op, in: [c], out: [d]}\n"
    "  - {op: m1, type: my.op, in: [d], out: [big]}\n"
    "  - {op: m2, type: my.op, in: [big], out: [e]}\n"
    "  - {op: g3, type: my.op, phase: backward, in: [c, e], out: [gc]}\n"
    "  - {op: g2, type: my.op, phase: backward, in: [b, gc], out: [gb]}\n";

/* Bit k is set when instance k runs again. */
static int runs_again(const planc_candidate *candidate) {
  int again = 0;
  for (int32_t c = 0; c < planc_schedule_n_commands(candidate->schedule); c++) {
    const planc_command *command = &planc_schedule_commands(candidate->schedule)[c];
    if (command->kind == PLANC_CMD_EXEC && command->recompute) again |= 1 << command->instance;
  }
  return again;
}

/* On a link with 10 us of latency ops of 3 us are computed again rather than swapped: first the one that takes no
 * chain; where one is not enough, the other with its chain. */
START_TEST(capuchin_counts_chains) {
  planc_graph *g = graph_of(forked);
  planc_problem problem = {
      .job.graph = g, .job.profile = profile, .job.batch = 4, .terms.budgets[PLANC_MEMORY_HOST] = -1};
  int64_t tensor = 1024, big = 8 * tensor, peak = big + 2 * tensor + 256;
  planc_candidate candidate = choose(&problem, peak, NULL);
  ck_assert_int_eq(runs_again(&candidate), 0);
  planc_candidate_free(&candidate);
  candidate = choose(&problem, peak - 256, NULL);
  ck_assert_int_eq(runs_again(&candidate), 1 << 2);
  planc_candidate_free(&candidate);
  candidate = choose(&problem, peak - tensor - 256, NULL);
  ck_assert_int_eq(runs_again(&candidate), 1 << 0 | 1 << 1 | 1 << 2);
  planc_candidate_free(&candidate);
  planc_graph_free(g);
}
END_TEST

/* Where every swap can be hidden nothing is computed again, and the tensor away for longest is among those swapped;
 * with a link that is a million times slower only statistics are swapped. */
START_TEST(capuchin_prefers_what_is_hidden) {
  planc_plan *plan = make("capuchin", 90);
  stays s = read_stays(plan);
  ck_assert_int_gt(count_offloads(&s), 0);
  ck_assert_int_eq(count_recomputes(&s), 0);
  free_stays(&s);
  planc_plan_free(plan);

  planc_profile *fast = profile;
  char *text;
  size_t length;
  ok(pl_file_read("profiles/k40m.json", 1 << 20, &text, &length));
  char *slow = judge_edited(text, "10040000000", "10040");
  ok(planc_profile_parse(slow, strlen(slow), "slow", &profile));
  plan = make("capuchin", 90);
  s = read_stays(plan);
  ck_assert_int_gt(count_recomputes(&s), 0);
  for (int32_t r = 0; r < s.n; r++) {
    if (s.all[r].offloaded >= 0) ck_assert_int_lt(trace->buffers[s.all[r].buffer].bytes, 8192);
  }
  free_stays(&s);
  planc_plan_free(plan);
  planc_profile_free(profile);
  profile = fast;
  free(slow);
  free(text);
}
END_TEST

static int32_t fetch_time(const planc_candidate *candidate, const planc_access *of) {
  int32_t now = 0, fetched = -1;
  for (int32_t c = 0; c < planc_schedule_n_commands(candidate->schedule); c++) {
    const planc_command *command = &planc_schedule_commands(candidate->schedule)[c];
    if (command->kind == PLANC_CMD_EXEC) now = command->instance + 1;
    bool fetches = command->kind == PLANC_CMD_COPY && !planc_schedule_gives(candidate->schedule, command);
    if (!fetches || now > of->instance) continue;
    if (planc_schedule_buffer(candidate->schedule, command) == of->buffer) fetched = now;
  }
  return fetched;
}

/* With a lead on every swap-in none begins later, and most begin earlier. */
START_TEST(capuchin_moves_in_triggers) {
  planc_problem problem = problem_of(INT64_C(1) << 40);
  int64_t room = INT64_C(500) << 20;
  int64_t *leads = calloc((size_t)trace->n_accesses, sizeof *leads);
  for (int32_t a = 0; a < trace->n_accesses; a++) leads[a] = 3000000;
  planc_candidate on_time = choose(&problem, room, NULL), ahead = choose(&problem, room, leads);
  int32_t earlier = 0, n = 0;
  for (int32_t a = 0; a < trace->n_accesses; a++) {
    const planc_access *access = &trace->accesses[a];
    if (trace->buffers[access->buffer].kind != PLANC_KIND_activation || access->read < 0) continue;
    int32_t before = fetch_time(&on_time, access), after = fetch_time(&ahead, access);
    if (before < 0 || after < 0) continue;
    ck_assert_int_le(after, before);
    n++;
    earlier += after < before;
  }
  ck_assert_int_gt(n, 0);
  ck_assert_int_gt(earlier, n / 2);
  planc_candidate_free(&on_time);
  planc_candidate_free(&ahead);
  free(leads);
}
END_TEST

/* a, b and c are away while `big` needs memory, and twelve ops of equal length run. */
enum { MIDDLE = 12 };

static planc_graph *make_queued(int64_t traffic) {
  char text[4096];
  int n = snprintf(
      text, sizeof text,
      "planc-graph: 1\nname: queued\noutputs: [ga]\ntensors:\n  x: input f32[N,1]\n  a: f32[N,16384]\n"
      "  b: f32[N,16384]\n  c: f32[N,16384]\n  big: f32[N,65536]\n  gc: f32[N,1]\n  gb: f32[N,1]\n  ga: f32[N,1]\n");
  for (int m = 0; m < MIDDLE; m++) n += snprintf(text + n, sizeof text - (size_t)n, "  m%d: f32[N,1]\n", m);
  n += snprintf(text + n, sizeof text - (size_t)n,
                "ops:\n  - {op: a, type: my.op, in: [x], out: [a]}\n  - {op: b, type: my.op, in: [x], out: [b]}\n"
                "  - {op: c, type: my.op, in: [x], out: [c]}\n  - {op: big, type: my.op, in: [x], out: [big]}\n");
  for (int m = 0; m < MIDDLE; m++) {
    n += snprintf(text + n, sizeof text - (size_t)n,
                  "  - {op: m%d, type: my.op, in: [big], out: [m%d], traffic: %lld}\n", m, m, (long long)traffic);
  }
  (void)snprintf(text + n, sizeof text - (size_t)n,
                 "  - {op: gc, type: my.op, phase: backward, in: [c, big], out: [gc]}\n"
                 "  - {op: gb, type: my.op, phase: backward, in: [b, gc], out: [gb]}\n"
                 "  - {op: ga, type: my.op, phase: backward, in: [a, gb], out: [ga]}\n");
  return graph_of(text);
}

/* How many activations are swapped, and how many computed again, with the link as it is or each swap alone on it. */
static void count_choices(const planc_problem *problem, int64_t room, bool alone, int *out_swaps, int *out_again) {
  capuchin of = {.alone = alone};
  pl_absence_rule rule = {.choose = pl_capuchin_choose, .context = &of};
  planc_candidate candidate = {0};
  ok(pl_make_absences(problem, &rule, (pl_walk_room){.bytes = room}, &candidate));
  *out_swaps = *out_again = 0;
  for (int32_t c = 0; c < planc_schedule_n_commands(candidate.schedule); c++) {
    const planc_command *command = &planc_schedule_commands(candidate.schedule)[c];
    if (planc_schedule_copies(candidate.schedule, command, PLANC_MEMORY_DEVICE, PLANC_MEMORY_HOST)) {
      int32_t buffer = planc_schedule_buffer(candidate.schedule, command);
      *out_swaps += candidate.trace->buffers[buffer].kind == PLANC_KIND_activation &&
                    !(candidate.trace->buffers[buffer].flags & PLANC_BUFFER_RESULT);
    }
    *out_again += command->kind == PLANC_CMD_EXEC && command->recompute;
  }
  planc_candidate_free(&candidate);
}

/* Each of three swaps would be hidden if the link were its own. With time for n of them on the link n are swapped, and
 * what else has to leave is computed again, which takes less than a swap that waits. */
START_TEST(capuchin_counts_the_link) {
  int64_t tensor = INT64_C(4) * 65536, room = 4 * tensor + tensor + 1024;
  int64_t copy = planc_link_ns(&profile->device.links[PLANC_ROUTE_H2D], tensor);
  for (int n = 1; n <= 3; n++) {
    double ns = (2 * n + 1) * (double)copy / MIDDLE - (double)profile->compute.kernel_ns;
    double share = (double)profile->efficiency_ppm[PLANC_CLASS_elementwise] / 1e6;
    planc_graph *g = make_queued((int64_t)(ns * 1e-9 * (double)profile->compute.memory_bytes_per_second * share));
    planc_problem problem = {
        .job.graph = g, .job.profile = profile, .job.batch = 4, .terms.budgets[PLANC_MEMORY_HOST] = -1};
    int swaps, again;
    count_choices(&problem, room, true, &swaps, &again);
    ck_assert_int_eq(swaps, 3);
    ck_assert_int_eq(again, 0);
    count_choices(&problem, room, false, &swaps, &again);
    ck_assert_int_eq(swaps, n);
    ck_assert_int_eq(again, 3 - n);
    planc_graph_free(g);
  }
}
END_TEST

/* What feedback changes makes the iteration shorter, and it finds something to change where swaps wait for each other
 * on the link. */
START_TEST(capuchin_learns_from_waiting) {
  int32_t shorter = 0;
  for (int64_t percent = 40; percent <= 48; percent += 4) {
    planc_plan *plan = make("capuchin", percent);
    planc_problem problem = problem_of(device_of(plan)->budget_bytes);
    pl_walk_room room;
    int64_t ns;
    bool fits;
    capuchin of = {.alone = true};
    pl_absence_rule rule = {.choose = pl_capuchin_choose, .context = &of};
    planc_candidate candidate = {0};
    planc_evaluator evaluator = pl_evaluator_of(&problem);
    ok(pl_walk_try(&evaluator, pl_make_absences, &rule, pl_arena_room(&problem.terms, problem.job.profile), &candidate,
                   &room, &fits));
    ck_assert(fits);
    ok(evaluator.time(&evaluator, &candidate, &ns));
    ck_assert_int_le(plan->predicted.period_ns, ns);
    shorter += plan->predicted.period_ns < ns;
    planc_candidate_free(&candidate);
    planc_plan_free(plan);
  }
  ck_assert_int_gt(shorter, 0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("swaps");
  TCase *tests = tcase_create("all");
  tcase_set_timeout(tests, 60);
  tcase_add_unchecked_fixture(tests, set_up, tear_down);
  tcase_add_test(tests, naive_swaps_around_every_op);
  tcase_add_test(tests, prefetch_1_fetches_one_op_ahead);
  tcase_add_test(tests, lms_swaps_beyond_a_distance);
  tcase_add_test(tests, lms_waits_for_the_other_inputs);
  tcase_add_test(tests, lms_waits_for_the_last_input);
  tcase_add_test(tests, what_fits_is_not_swapped);
  tcase_add_test(tests, superneurons_restores_segments);
  tcase_add_test(tests, superneurons_swaps_what_was_used_longest_ago);
  tcase_add_test(tests, superneurons_restores_large_segments_each_time);
  tcase_add_test(tests, capuchin_counts_chains);
  tcase_add_test(tests, capuchin_prefers_what_is_hidden);
  tcase_add_test(tests, capuchin_moves_in_triggers);
  tcase_add_test(tests, capuchin_counts_the_link);
  tcase_add_test(tests, capuchin_learns_from_waiting);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
