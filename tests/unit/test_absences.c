/* Absences: schedules made from random ones, in the trace's order and in others, are right and hold what is said
 * beforehand, position by position; the tree that policies choose with is held to a plain array; and what a recompute
 * brings back stays or goes as it should. */
#include <check.h>
#include <stdlib.h>

#include "planc/check.h"
#include "planc/needs.h"
#include "planc/policy.h"
#include "planner/choose/absences.h"
#include "planner/choose/peaks.h"
#include "planner/choose/recompute.h"
#include "planner/choose/restorable.h"
#include "planner/policies/capuchin.h"
#include "planner/policies/tensile.h"
#include "planrt/planrt.h"
#include "tests/support/graphtext.h"
#include "tests/support/lower_for.h"
#include "tests/support/plan_view.h"
#include "tests/support/randgraph.h"
#include "tests/support/randorder.h"
#include "tests/support/unit.h"

static planc_profile *profile;
static const pl_walk_room unlimited = {.bytes = PL_ROOM_UNLIMITED};

static void read_profile(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
}
static void free_profile(void) {
  planc_profile_free(profile);
}

/* --- Random absences ---------------------------------------------------------------------------------------------- */

typedef struct random_rule {
  uint64_t seed;
  bool recomputes;
  int64_t *held; /* what pl_absences_held says; freed by the caller */
} random_rule;

/* Away in a random part of the gap, copied at its start or at the writer before it, or to be computed again. */
static pl_absence draw(const planc_order *order, const planc_gap *gap, bool recompute, uint64_t *state) {
  pl_absence absence = {
      .buffer = gap->buffer, .version = gap->version, .copy = gap->from, .wait = rand_chance(state, 30)};
  int32_t writer = pl_writer_of(order->trace, gap->buffer, gap->version);
  if (writer >= 0 && rand_chance(state, 50)) absence.copy = order->first[writer];
  if (recompute || (gap->wraps && writer < 0)) absence.copy = PL_NO_COPY;
  if (gap->wraps) {
    absence.leave = gap->from + (int32_t)rand_below(state, order->n - gap->from);
    absence.fetch = (int32_t)rand_below(state, gap->to + 1);
    return absence;
  }
  absence.leave = gap->from + (int32_t)rand_below(state, gap->to - gap->from);
  absence.fetch = absence.leave + 1 + (int32_t)rand_below(state, gap->to - absence.leave);
  if (recompute) absence.fetch = gap->to;
  return absence;
}

static planc_status choose(const void *context, const pl_walk *walk, pl_arena *arena, pl_absences *out) {
  random_rule *rule = *(random_rule *const *)context;
  const planc_trace *trace = walk->trace;
  const planc_order *order = walk->order;
  uint64_t state = rule->seed;
  planc_gaps *gaps;
  pl_absence *items;
  int32_t *latest;
  ok(planc_gaps_make(order, &gaps));
  ok(PL_NEW(arena, &items, gaps->n));
  ok(PL_NEW(arena, &latest, trace->n_instances));
  ok(pl_mark_restorable(order, PL_KEPT_NOTHING, arena, latest));
  for (int32_t k = 0; k < gaps->n; k++) {
    const planc_gap *gap = &gaps->gaps[k];
    if (!rand_chance(&state, 60)) continue;
    bool recompute =
        rule->recomputes && !gap->wraps && pl_can_drop(order, latest, gap->buffer) && rand_chance(&state, 50);
    items[out->n++] = draw(order, gap, recompute, &state);
  }
  out->items = items;
  planc_gaps_free(gaps);
  rule->held = malloc(((size_t)order->n + 1) * sizeof *rule->held);
  ok(pl_absences_held(order, out, rule->held));
  return NULL;
}

/* In the trace's order, or in another one. */
static void make(const planc_problem *problem, random_rule *rule, pl_walk_room room, bool shuffled,
                 planc_candidate *out) {
  random_rule *context = rule;
  pl_absences absences = {0};
  pl_arena arena = {0};
  pl_walk walk;
  uint64_t state = rule->seed;
  ok(planc_candidate_rounds(problem, problem->job.batch, out));
  if (shuffled) {
    planc_order_free(out->order);
    ok(randorder_make(out->trace, &state, &out->order));
  }
  ok(pl_walk_start(&walk, problem, room, out));
  ok(choose(&context, &walk, &arena, &absences));
  ok(pl_walk_absences(&walk, &absences));
  pl_arena_free(&arena);
}

static planc_graph *draw_graph(int number) {
  planc_graph *graph;
  randgraph_options options = {.max_ops = 30};
  ok(randgraph_make(UINT64_C(7000) + (uint64_t)number, &options, &graph));
  return graph;
}

START_TEST(writers_are_found) {
  planc_graph *graph = draw_graph(_i);
  planc_job job = {.graph = graph, .batch = 8, .n_rounds = 2, .rounds = (const int64_t[]){4, 4}, .iterations = 2};
  planc_trace *trace;
  ok(planc_expand(&job, 1, &trace));
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    for (int32_t version = 0; version <= buffer->last_version + 1; version++) {
      int32_t expected = -1;
      for (int32_t a = 0; a < trace->n_accesses; a++)
        if (trace->accesses[a].buffer == b && trace->accesses[a].write == version)
          expected = trace->accesses[a].instance;
      ck_assert_int_eq(pl_writer_of(trace, b, version), expected);
    }
  }
  planc_trace_free(trace);
  planc_graph_free(graph);
}
END_TEST

/* What is open while each position runs is what is held; with recompute, and what that opens on its way. */
static void check_held(const planc_candidate *candidate, const random_rule *rule, int *n_recomputes) {
  const planc_schedule *s = candidate->schedule;
  const planc_command *commands = planc_schedule_commands(s);
  int64_t live = 0;
  for (int32_t r = planc_schedule_n_away(s); r < planc_schedule_n_boundary(s); r++) {
    live += pl_walk_bytes(&candidate->trace->buffers[planc_schedule_residencies(s)[r].buffer]);
  }
  for (int32_t c = 0; c < planc_schedule_n_commands(s); c++) {
    if (commands[c].kind == PLANC_CMD_EXEC) {
      int64_t held = rule->held[candidate->order->first[commands[c].instance]];
      *n_recomputes += commands[c].recompute;
      if (!rule->recomputes) ck_assert_int_eq(live, held);
      if (!commands[c].recompute) ck_assert_int_ge(live, held);
    }
    if (commands[c].kind != PLANC_CMD_ACQUIRE && commands[c].kind != PLANC_CMD_RELEASE) continue;
    int32_t buffer = planc_schedule_residencies(s)[commands[c].residency].buffer;
    int64_t bytes = pl_walk_bytes(&candidate->trace->buffers[buffer]);
    live += commands[c].kind == PLANC_CMD_ACQUIRE ? bytes : -bytes;
  }
}

START_TEST(held_bytes_are_those_of_the_schedule) {
  int n_recomputes = 0;
  for (int number = 20 * _i; number < 20 * (_i + 1); number++) {
    planc_graph *graph = draw_graph(number);
    planc_problem problem = {.job.graph = graph,
                             .job.profile = profile,
                             .job.batch = 1 + number % 3,
                             .terms.budgets[PLANC_MEMORY_HOST] = -1};
    for (int way = 0; way < 4; way++) {
      random_rule rule = {.seed = (uint64_t)number, .recomputes = way % 2};
      planc_candidate candidate = {0};
      make(&problem, &rule, unlimited, way / 2, &candidate);
      check_held(&candidate, &rule, &n_recomputes);
      free(rule.held);
      planc_candidate_free(&candidate);
    }
    planc_graph_free(graph);
  }
  ck_assert_int_gt(n_recomputes, 20);
}
END_TEST

/* The plan is valid, and has the reference's bits in any order that the events allow. */
static void check_plan(const planc_problem *problem, const planc_candidate *candidate, uint64_t seed) {
  planc_plan *plan;
  ok(lower_for(problem, "none", candidate, &plan));
  device_of(plan)->budget_bytes = device_of(plan)->arena_bytes + device_of(plan)->reserved_bytes;
  ok(planc_check(plan, NULL, NULL));
  planrt_options options = {.seed = seed, .synthetic = true, .verify = true, .poison = true};
  planrt_session *session;
  ok(planrt_session_new(plan, &options, &session));
  ok(planrt_init(session));
  ok(planrt_run(session, 2));
  planrt_session_free(session);
  options.poison = false;
  ok(planrt_session_new(plan, &options, &session));
  ok(planrt_init(session));
  for (uint64_t k = 0; k < 10; k++) ok(planrt_run_interleaved(session, 2, k));
  planrt_session_free(session);
  planc_plan_free(plan);
}

/* With recompute as well. */
START_TEST(random_absences_are_right) {
  planc_graph *graph = draw_graph(_i);
  planc_problem problem = {
      .job.graph = graph, .job.profile = profile, .job.batch = 1 + _i % 3, .terms.budgets[PLANC_MEMORY_HOST] = -1};
  random_rule rule = {.seed = (uint64_t)_i, .recomputes = true};
  planc_candidate candidate = {0};
  make(&problem, &rule, unlimited, _i % 2 == 1, &candidate);
  check_plan(&problem, &candidate, (uint64_t)_i);
  free(rule.held);
  planc_candidate_free(&candidate);
  planc_graph_free(graph);
}
END_TEST

/* --- What other replicas send ------------------------------------------------------------------------------------- */

typedef struct opened {
  int64_t most;    /* bytes open at once while something runs, its workspace included */
  int32_t buffers; /* for what other replicas send */
  int32_t at_once; /* those of them that are open before anything runs */
  int64_t waits;   /* how many runs there are ahead of each, of all together */
  int64_t bytes;   /* of them all */
  int64_t ahead;   /* the most open while something runs and one of them is open that it does not read */
} opened;

static int32_t count_read(const planc_trace *trace, int32_t instance) {
  const planc_instance *in = &trace->instances[instance];
  int32_t count = 0;
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++)
    count += trace->buffers[trace->accesses[a].buffer].peer >= 0;
  return count;
}

static opened find_opened(const planc_candidate *candidate) {
  const planc_schedule *s = candidate->schedule;
  const planc_residency *residencies = planc_schedule_residencies(s);
  int64_t live = 0;
  int32_t runs = 0, n_open = 0;
  opened o = {0};
  for (int32_t r = planc_schedule_n_away(s); r < planc_schedule_n_boundary(s); r++)
    live += pl_walk_bytes(&candidate->trace->buffers[residencies[r].buffer]);
  for (int32_t c = 0; c < planc_schedule_n_commands(s); c++) {
    const planc_command *command = &planc_schedule_commands(s)[c];
    if (command->kind == PLANC_CMD_EXEC) {
      int64_t bytes = live + planc_schedule_variant(s, command).workspace_bytes;
      o.most = bytes > o.most ? bytes : o.most;
      if (n_open > count_read(candidate->trace, command->instance)) o.ahead = bytes > o.ahead ? bytes : o.ahead;
      runs++;
    }
    if (command->kind != PLANC_CMD_ACQUIRE && command->kind != PLANC_CMD_RELEASE) continue;
    const planc_buffer *buffer = &candidate->trace->buffers[residencies[command->residency].buffer];
    bool acquire = command->kind == PLANC_CMD_ACQUIRE;
    live += acquire ? pl_walk_bytes(buffer) : -pl_walk_bytes(buffer);
    if (buffer->peer < 0) continue;
    n_open += acquire ? 1 : -1;
    if (!acquire) continue;
    o.buffers++;
    o.bytes += pl_walk_bytes(buffer);
    o.at_once += runs == 0;
    o.waits += runs;
  }
  return o;
}

/* `arena` is what the budget leaves. */
static opened open_for(planc_problem problem, random_rule rule, pl_walk_room room, int64_t arena) {
  planc_candidate candidate = {0};
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = arena + planc_profile_device(problem.job.profile)->reserved_bytes;
  make(&problem, &rule, room, rule.seed % 2 == 1, &candidate);
  check_plan(&problem, &candidate, rule.seed);
  opened o = find_opened(&candidate);
  free(rule.held);
  planc_candidate_free(&candidate);
  return o;
}

static void stays_within(opened found, opened late, int64_t arena) {
  ck_assert_int_le(found.most, arena > late.most ? arena : late.most);
  ck_assert_int_eq(found.buffers, late.buffers);
  ck_assert_int_le(found.waits, late.waits);
}

/* What is received has memory before anything runs where there is enough, and otherwise as early as there is: never is
 * more live than fits, or than is live when each buffer is opened for its reader alone. */
START_TEST(what_is_received_fits_beside_the_rest) {
  int64_t late_waits = 0, beside_waits = 0, early_waits = 0, first_waits = 0;
  for (int number = 10 * _i; number < 10 * (_i + 1); number++) {
    planc_graph *graph = draw_graph(number);
    planc_problem problem = {.job.graph = graph,
                             .job.profile = profile,
                             .job.batch = 1 + number % 3,
                             .terms.gpus = 2 + number % 4,
                             .terms.budgets[PLANC_MEMORY_HOST] = -1};
    random_rule rule = {.seed = (uint64_t)number, .recomputes = number % 4 < 2};
    opened late = open_for(problem, rule, unlimited, 0), before = late;
    opened beside = open_for(problem, rule, (pl_walk_room){PL_ROOM_UNLIMITED, PL_RECEIVES_BESIDE}, 0);
    stays_within(beside, late, 0);
    if (beside.ahead > 0) ck_assert_int_le(beside.ahead, late.most - late.bytes);
    late_waits += late.waits;
    beside_waits += beside.waits;
    for (int64_t percent = 90; percent <= 150; percent += 20) {
      int64_t arena = late.most * percent / 100;
      opened early = open_for(problem, rule, (pl_walk_room){PL_ROOM_UNLIMITED, PL_RECEIVES_EARLY}, arena);
      stays_within(early, late, arena);
      ck_assert_int_le(early.waits, before.waits);
      before = early;
      opened in_room = open_for(problem, rule, (pl_walk_room){arena, PL_RECEIVES_LATE}, arena);
      opened first = open_for(problem, rule, (pl_walk_room){arena, PL_RECEIVES_FIRST}, arena);
      early = open_for(problem, rule, (pl_walk_room){arena, PL_RECEIVES_EARLY}, arena);
      stays_within(first, in_room, arena);
      stays_within(early, in_room, arena);
      first_waits += first.waits;
      early_waits += early.waits;
      stays_within(open_for(problem, rule, (pl_walk_room){PL_ROOM_NONE, PL_RECEIVES_FIRST}, arena), late, arena);
    }
    opened ample = open_for(problem, rule, (pl_walk_room){PL_ROOM_UNLIMITED, PL_RECEIVES_EARLY}, 10 * late.most);
    ck_assert_int_eq(ample.at_once, ample.buffers);
    opened all = open_for(problem, rule, (pl_walk_room){PL_ROOM_UNLIMITED, PL_RECEIVES_AT_ONCE}, 0);
    ck_assert_int_eq(all.at_once, late.buffers);
    planc_graph_free(graph);
  }
  ck_assert_int_lt(beside_waits, late_waits);
  ck_assert_int_le(first_waits, early_waits);
}
END_TEST

/* --- Choices over other orders ------------------------------------------------------------------------------------ */

/* All that the forward pass makes and can be made again is dropped behind it. */
static planc_status drop_forward(const void *context, const pl_walk *walk, pl_arena *arena, pl_absences *out) {
  (void)context;
  const planc_order *order = walk->order;
  pl_drops drops;
  planc_gaps *gaps;
  pl_absence *items;
  ok(pl_drops_new(order->trace, arena, &drops));
  ok(pl_mark_drops(order, arena, &drops));
  ok(planc_gaps_make(order, &gaps));
  ok(PL_NEW(arena, &items, gaps->n));
  for (int32_t k = 0; k < gaps->n; k++) {
    const planc_gap *gap = &gaps->gaps[k];
    if (drops.keep[gap->buffer] || planc_order_phase(order, gap->from) != PLANC_PHASE_forward ||
        planc_order_phase(order, gap->to) == PLANC_PHASE_forward)
      continue;
    items[out->n++] = (pl_absence){
        .buffer = gap->buffer, .version = gap->version, .copy = PL_NO_COPY, .leave = gap->from, .fetch = gap->to};
  }
  planc_gaps_free(gaps);
  out->items = items;
  out->until = drops.until;
  return NULL;
}

static int64_t most_of(const pl_walk *walk) {
  pl_absences none = {0};
  int64_t *held = malloc(((size_t)walk->order->n + 1) * sizeof *held), most = 0;
  ok(pl_absences_held(walk->order, &none, held));
  for (int32_t p = 0; p < walk->order->n; p++) most = held[p] > most ? held[p] : most;
  free(held);
  return most;
}

/* What is chosen for another order of the instances is right in that one. */
START_TEST(other_orders_are_chosen_for) {
  planc_problem problem = {.job.profile = profile, .terms.budgets[PLANC_MEMORY_HOST] = -1};
  capuchin by = {0};
  const struct {
    planc_status (*choose)(const void *context, const pl_walk *walk, pl_arena *arena, pl_absences *out);
    const void *context;
  } rules[] = {{drop_forward, NULL}, {pl_capuchin_choose, &by}, {tensile_choose, &problem}};
  int64_t n_chosen = 0;
  for (int number = 5 * _i; number < 5 * (_i + 1); number++) {
    planc_graph *graph = draw_graph(number);
    uint64_t state = (uint64_t)number;
    problem.job.graph = graph;
    problem.job.batch = 1 + number % 3;
    for (int r = 0; r < 3; r++) {
      planc_candidate candidate = {0};
      pl_absences absences = {0};
      pl_arena arena = {0};
      pl_walk walk;
      ok(planc_candidate_rounds(&problem, problem.job.batch, &candidate));
      planc_order_free(candidate.order);
      ok(randorder_make(candidate.trace, &state, &candidate.order));
      ok(pl_walk_start(&walk, &problem, unlimited, &candidate));
      walk.room = most_of(&walk) / 10 * 8;
      ok(rules[r].choose(rules[r].context, &walk, &arena, &absences));
      ok(pl_walk_absences(&walk, &absences));
      check_plan(&problem, &candidate, (uint64_t)number);
      n_chosen += absences.n;
      pl_arena_free(&arena);
      planc_candidate_free(&candidate);
    }
    planc_graph_free(graph);
  }
  ck_assert_int_gt(n_chosen, 10);
}
END_TEST

/* --- Stepping stones ---------------------------------------------------------------------------------------------- */

/* All that f1 and f2 make is dropped behind the forward pass; to restore c for g1 takes b, which g2 and g3 read. */
static const char chain[] =
    "planc-graph: 1\n"
    "name: chain\n"
    "outputs: [h]\n"
    "tensors:\n"
    "  x: input f32[N,64]\n"
    "  b: f32[N,64]\n"
    "  c: f32[N,64]\n"
    "  d: f32[N,64]\n"
    "  e: f32[N,64]\n"
    "  h: f32[N,64]\n"
    "ops:\n"
    "  - {op: f1, type: my.op, in: [x], out: [b]}\n"
    "  - {op: f2, type: my.op, in: [b], out: [c]}\n"
    "  - {op: g1, type: my.op, phase: backward, in: [c], out: [d]}\n"
    "  - {op: g2, type: my.op, phase: backward, in: [b, d], out: [e]}\n"
    "  - {op: g3, type: my.op, phase: backward, in: [b, e], out: [h]}\n";

static planc_status drop_all(const void *context, const pl_walk *walk, pl_arena *arena, pl_absences *out) {
  const bool *all_apart = context;
  const planc_trace *trace = walk->trace;
  pl_absence *items;
  bool *apart;
  ok(PL_NEW(arena, &items, trace->n_accesses));
  ok(PL_NEW(arena, &apart, walk->order->first_use[trace->n_buffers]));
  for (int32_t u = 0; u < walk->order->first_use[trace->n_buffers]; u++) apart[u] = true;
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    if (buffer->kind != PLANC_KIND_activation) continue;
    for (int32_t k = 1; k < buffer->n_accesses; k++) {
      const planc_access *from = &trace->accesses[trace->by_buffer[buffer->first_access + k - 1]];
      const planc_access *to = &trace->accesses[trace->by_buffer[buffer->first_access + k]];
      bool first = planc_trace_op(trace, from->instance)->phase == PLANC_PHASE_forward;
      if (planc_trace_op(trace, to->instance)->phase == PLANC_PHASE_forward || !(first || *all_apart)) continue;
      items[out->n++] = (pl_absence){
          .buffer = b, .version = to->read, .copy = PL_NO_COPY, .leave = from->instance, .fetch = to->instance};
    }
  }
  out->items = items;
  if (*all_apart) out->apart = apart;
  return NULL;
}

/* How often instance 0, the writer of b, runs again. */
static int recomputes_of_b(bool apart) {
  planc_graph *graph = graph_of(chain);
  planc_problem problem = {
      .job.graph = graph, .job.profile = profile, .job.batch = 2, .terms.budgets[PLANC_MEMORY_HOST] = -1};
  pl_absence_rule rule = {.choose = drop_all, .context = &apart};
  planc_candidate candidate = {0};
  ok(pl_make_absences(&problem, &rule, (pl_walk_room){.bytes = PL_ROOM_NONE}, &candidate));
  int times = 0;
  for (int32_t c = 0; c < planc_schedule_n_commands(candidate.schedule); c++) {
    const planc_command *command = &planc_schedule_commands(candidate.schedule)[c];
    times += command->kind == PLANC_CMD_EXEC && command->recompute && command->instance == 0;
  }
  planc_candidate_free(&candidate);
  planc_graph_free(graph);
  return times;
}

/* b is restored on the way to c. It stays for g2 and g3, unless it does not for uses of other ops. */
START_TEST(what_is_restored_stays_unless_uses_are_apart) {
  ck_assert_int_eq(recomputes_of_b(false), 1);
  ck_assert_int_eq(recomputes_of_b(true), 3);
}
END_TEST

/* What e is made of goes in the forward pass; to restore it for g all of that is made again. */
static const char long_chain[] =
    "planc-graph: 1\n"
    "name: long-chain\n"
    "outputs: [h]\n"
    "tensors:\n"
    "  x: input f32[N,64]\n"
    "  a: f32[N,64]\n"
    "  b: f32[N,64]\n"
    "  c: f32[N,64]\n"
    "  d: f32[N,64]\n"
    "  e: f32[N,64]\n"
    "  loss: f32[N,64]\n"
    "  h: f32[N,64]\n"
    "ops:\n"
    "  - {op: f1, type: my.op, in: [x], out: [a]}\n"
    "  - {op: f2, type: my.op, in: [a], out: [b]}\n"
    "  - {op: f3, type: my.op, in: [b], out: [c]}\n"
    "  - {op: f4, type: my.op, in: [c], out: [d]}\n"
    "  - {op: f5, type: my.op, in: [d], out: [e]}\n"
    "  - {op: f6, type: my.op, in: [e], out: [loss]}\n"
    "  - {op: g, type: my.op, phase: backward, in: [e], out: [h]}\n";

/* Two at a time are enough: what an op reads, and what it makes. */
START_TEST(stepping_stones_go_behind_the_last_that_needs_them) {
  enum { G = 6, BATCH = 2 };
  planc_graph *graph = graph_of(long_chain);
  planc_problem problem = {
      .job.graph = graph, .job.profile = profile, .job.batch = BATCH, .terms.budgets[PLANC_MEMORY_HOST] = -1};
  planc_candidate candidate = {0};
  pl_arena arena = {0};
  pl_walk walk;
  pl_absences absences = {0};
  int64_t live[G + 1] = {0};
  bool all_apart = false;
  ok(pl_walk_start_rounds(&walk, &problem, BATCH, (pl_walk_room){.bytes = PL_ROOM_NONE}, &candidate));
  ok(drop_all(&all_apart, &walk, &arena, &absences));
  ck_assert_int_eq(absences.n, 1);
  walk.live_at = live;
  ok(pl_walk_absences(&walk, &absences));
  ck_assert_int_eq(live[G], 2 * pl_walk_bytes(&candidate.trace->buffers[absences.items[0].buffer]));
  planc_candidate_free(&candidate);
  pl_arena_free(&arena);
  planc_graph_free(graph);
}
END_TEST

/* --- The tree ----------------------------------------------------------------------------------------------------- */

START_TEST(peaks_are_those_of_an_array) {
  uint64_t state = (uint64_t)_i;
  int64_t live[70];
  int32_t n = 1 + (int32_t)rand_below(&state, 70);
  for (int32_t i = 0; i < n; i++) live[i] = rand_below(&state, 100);
  pl_arena arena = {0};
  pl_peaks peaks;
  ok(pl_peaks_make(&arena, live, n, &peaks));
  for (int step = 0; step < 200; step++) {
    int32_t first = (int32_t)rand_below(&state, n), last = (int32_t)rand_below(&state, n);
    int64_t bytes = rand_below(&state, 40) - 20, limit = rand_below(&state, 100);
    pl_peaks_add(&peaks, first, last, bytes);
    for (int32_t i = first; i <= last; i++) live[i] += bytes;
    int32_t expected = -1;
    first = (int32_t)rand_below(&state, n);
    last = (int32_t)rand_below(&state, n);
    for (int32_t i = first; i <= last; i++) expected = live[i] > limit ? i : expected;
    ck_assert_int_eq(pl_peaks_last_above(&peaks, first, last, limit), expected);
  }
  pl_arena_free(&arena);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("absences");
  TCase *tests = tcase_create("all");
  tcase_set_timeout(tests, 60);
  tcase_add_unchecked_fixture(tests, read_profile, free_profile);
  tcase_add_loop_test(tests, writers_are_found, 0, sampled(100));
  tcase_add_loop_test(tests, held_bytes_are_those_of_the_schedule, 0, 10);
  tcase_add_loop_test(tests, random_absences_are_right, 0, sampled(200));
  tcase_add_loop_test(tests, what_is_received_fits_beside_the_rest, 0, 6);
  tcase_add_loop_test(tests, other_orders_are_chosen_for, 0, 10);
  tcase_add_test(tests, what_is_restored_stays_unless_uses_are_apart);
  tcase_add_test(tests, stepping_stones_go_behind_the_last_that_needs_them);
  tcase_add_loop_test(tests, peaks_are_those_of_an_array, 0, sampled(50));
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
