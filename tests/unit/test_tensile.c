/* `tensile` (tensile.c) on graphs whose times are set by hand, and against a plain reading of its rules on random ones:
 * which tensor each round swaps, when its copies have the link, and between which ops it is away. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost/profile.h"
#include "planc/check.h"
#include "planc/needs.h"
#include "planc/policy.h"
#include "planner/policies/tensile.h"
#include "planrt/planrt.h"
#include "tests/support/graphtext.h"
#include "tests/support/judge.h"
#include "tests/support/least.h"
#include "tests/support/plan_view.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"
#include "util/file.h"
#include "util/math.h"

static planc_profile *profile;

/* A byte takes a nanosecond on the link, and nothing else takes time there. */
static void set_links(planc_profile *of, int64_t bytes_per_second) {
  of->device.links[PLANC_ROUTE_H2D] = of->device.links[PLANC_ROUTE_D2H] = (planc_link){bytes_per_second, 0};
  of->device.launch_ns = 0;
  of->device.slowdown_ppm = 0;
  of->device.duplex_ppm = 1000000;
}

static void read_profile(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
  set_links(profile, 1000000000);
}
static void free_profile(void) {
  planc_profile_free(profile);
}

/* --- The rules, read plainly -------------------------------------------------------------------------------------- */

enum { MOST_COPIES = 4096 };

typedef struct naive {
  const pl_walk *walk;
  const planc_trace *trace;
  planc_gaps *gaps;
  bool *taken; /* per gap */
  int64_t *start, *live;
  int64_t busy[MOST_COPIES][2];
  int32_t n_busy;
  int64_t **host_ns; /* per buffer and version, -1 = not on the host */
} naive;

typedef struct choice {
  int32_t version, copy, leave, fetch;
  int64_t out_start, in_start; /* out_start -1 = no swap-out */
  int32_t gap;
  bool across;
} choice;

static bool is_free(const naive *n, int64_t from, int64_t to) {
  for (int32_t i = 0; i < n->n_busy; i++) {
    if (n->busy[i][0] < to && from < n->busy[i][1]) return false;
  }
  return true;
}

static void occupy(naive *n, int64_t from, int64_t ns) {
  ck_assert(is_free(n, from, from + ns));
  ck_assert_int_lt(n->n_busy, MOST_COPIES);
  n->busy[n->n_busy][0] = from;
  n->busy[n->n_busy++][1] = from + ns;
}

/* A copy begins where its window does or where another copy ends. */
static int64_t first_time(const naive *n, int64_t from, int64_t to, int64_t ns) {
  int64_t best = -1;
  for (int32_t i = -1; i < n->n_busy; i++) {
    int64_t at = i < 0 ? from : n->busy[i][1];
    if (at >= from && at + ns <= to && is_free(n, at, at + ns) && (best < 0 || at < best)) best = at;
  }
  return best;
}

static int64_t last_time(const naive *n, int64_t from, int64_t to, int64_t ns) {
  int64_t best = -1;
  for (int32_t i = -1; i < n->n_busy; i++) {
    int64_t at = (i < 0 ? to : n->busy[i][0]) - ns;
    if (at >= from && at + ns <= to && is_free(n, at, at + ns) && at > best) best = at;
  }
  return best;
}

/* A swap-out of a version between two of its accesses, the first of which is no later than instance `from`. */
static int64_t first_out(const naive *n, int32_t buffer, int32_t version, int32_t from, int64_t ns) {
  const planc_buffer *b = &n->trace->buffers[buffer];
  int64_t behind = version == 0 ? n->start[1] : -1;
  for (int32_t k = 0; k < b->n_accesses; k++) {
    const planc_access *access = &n->trace->accesses[n->trace->by_buffer[b->first_access + k]];
    int64_t at = behind < 0 ? -1 : first_time(n, behind, n->start[access->instance], ns);
    if (at >= 0) return at;
    if (access->instance > from) return -1;
    bool accesses = access->read == version || access->write == version;
    behind = accesses && (access->write < 0 || access->write == version) ? n->start[access->instance + 1] : -1;
  }
  return behind < 0 ? -1 : first_time(n, behind, n->start[n->trace->n_instances], ns);
}

static int64_t link_time(const planc_link *link, int64_t bytes) {
  int64_t ns = planc_link_ns(link, bytes);
  return ns > 0 ? ns : 1;
}

/* Plans `version` of a buffer to be away between instances `from` and `to`, of which the latter is in the next period
 * where `across`. False where the copies find no time, or there is nothing in between. */
static bool plan(const naive *n, const planc_gap *gap, int32_t version, bool across, choice *c) {
  const planc_device *device = n->walk->device;
  const planc_buffer *buffer = &n->trace->buffers[gap->buffer];
  int32_t last = n->trace->n_instances - 1;
  bool next = gap->wraps && !across, home = across && version == 0;
  int64_t in_ns = link_time(&device->links[PLANC_ROUTE_H2D], buffer->bytes),
          out_ns = link_time(&device->links[PLANC_ROUTE_D2H], buffer->bytes);
  int64_t host_ns = home ? 0 : n->host_ns[gap->buffer][version];
  *c = (choice){.version = version, .copy = PL_NO_COPY, .out_start = -1};
  c->in_start = last_time(n, n->start[gap->wraps ? 1 : gap->from + 1], n->start[gap->to], in_ns);
  if (c->in_start < 0) return false;
  if (host_ns < 0) {
    c->out_start = first_out(n, gap->buffer, version, next ? -1 : gap->from, out_ns);
    if (c->out_start < 0) return false;
    host_ns = c->out_start + out_ns;
    while (n->start[c->copy + 2] <= c->out_start) c->copy++;
  }
  c->leave = next ? 0 : gap->from;
  while (c->leave < last && n->start[c->leave + 1] < host_ns) c->leave++;
  c->fetch = 0;
  while (c->fetch < gap->to && n->start[c->fetch + 1] <= c->in_start) c->fetch++;
  return across || c->leave + 1 < c->fetch;
}

static void add_live(naive *n, int32_t from, int32_t to, int64_t bytes) {
  for (int32_t i = from; i <= to; i++) n->live[i] += bytes;
}

static void take(naive *n, int32_t k, const choice *c, bool across) {
  const planc_gap *gap = &n->gaps->gaps[k];
  const planc_device *device = n->walk->device;
  const planc_buffer *buffer = &n->trace->buffers[gap->buffer];
  int64_t bytes = pl_walk_bytes(buffer), out_ns = link_time(&device->links[PLANC_ROUTE_D2H], buffer->bytes);
  n->taken[k] = true;
  occupy(n, c->in_start, link_time(&device->links[PLANC_ROUTE_H2D], buffer->bytes));
  if (c->out_start >= 0) {
    occupy(n, c->out_start, out_ns);
    n->host_ns[gap->buffer][c->version] = c->out_start + out_ns;
  }
  add_live(n, c->leave + 1, across ? n->trace->n_instances - 1 : c->fetch - 1, -bytes);
  if (!across) return;
  add_live(n, 0, c->fetch - 1, -bytes);
  n->host_ns[gap->buffer][0] = 0;
}

/* Once a version is on the host all its other stretches are tried. */
static void take_rest(naive *n, int32_t buffer, int32_t version) {
  for (int32_t k = 0; k < n->gaps->n; k++) {
    const planc_gap *gap = &n->gaps->gaps[k];
    choice c;
    if (gap->buffer != buffer || gap->version != version || gap->wraps || n->taken[k]) continue;
    if (n->host_ns[buffer][version] >= 0 && plan(n, gap, version, false, &c)) take(n, k, &c, false);
  }
}

static bool relieves(const choice *c, bool across, int32_t peak) {
  return across ? peak > c->leave || peak < c->fetch : c->leave < peak && peak < c->fetch;
}

static int32_t naive_peak(const naive *n) {
  int32_t peak = 0;
  for (int32_t i = 0; i < n->trace->n_instances; i++) {
    if (n->live[i] >= n->live[peak]) peak = i;
  }
  return peak;
}

/* The swap across iterations of gap k's buffer, if that makes it need a swap-in alone to relieve the peak. */
static bool may_go_home(const naive *n, int32_t k, int32_t peak, choice *c) {
  const planc_gap *gap = &n->gaps->gaps[k];
  int32_t w = k;
  if (gap->wraps || gap->version > 0 || n->host_ns[gap->buffer][0] >= 0) return false;
  while (w < n->gaps->n && n->gaps->gaps[w].buffer == gap->buffer && !n->gaps->gaps[w].wraps) w++;
  if (w == n->gaps->n || n->gaps->gaps[w].buffer != gap->buffer || n->taken[w]) return false;
  int64_t in_ns = link_time(&n->walk->device->links[PLANC_ROUTE_H2D], n->trace->buffers[gap->buffer].bytes);
  int64_t at = last_time(n, n->start[gap->from + 1], n->start[gap->to], in_ns);
  if (at < n->start[peak + 1] || !plan(n, &n->gaps->gaps[w], n->gaps->gaps[w].version, true, c)) return false;
  c->gap = w;
  c->across = true;
  return gap->from < peak && peak < gap->to;
}

/* Whether gap k can relieve the peak, and how. */
static bool may_take(const naive *n, int32_t k, int32_t peak, choice *c) {
  const planc_gap *gap = &n->gaps->gaps[k];
  bool there = n->trace->buffers[gap->buffer].flags & (PLANC_BUFFER_PERSISTENT | PLANC_BUFFER_FED);
  if (n->taken[k] || (gap->version == 0 && !there)) return false;
  if (may_go_home(n, k, peak, c)) return true;
  bool possible = plan(n, gap, gap->version, gap->wraps, c);
  c->gap = k;
  c->across = gap->wraps;
  if (possible && relieves(c, gap->wraps, peak)) return true;
  possible = gap->wraps && plan(n, gap, 0, false, c);
  c->gap = k;
  c->across = false;
  return possible && relieves(c, false, peak);
}

/* One round: the largest tensor whose swap relieves the peak, the first of several; false if there is none. */
static bool naive_round(naive *n, choice *c) {
  int32_t peak = naive_peak(n);
  int64_t best = -1;
  for (int32_t k = 0; k < n->gaps->n; k++) {
    choice of;
    int64_t bytes = pl_walk_bytes(&n->trace->buffers[n->gaps->gaps[k].buffer]);
    if (bytes <= best || !may_take(n, k, peak, &of)) continue;
    best = bytes;
    *c = of;
  }
  if (best < 0) return false;
  const planc_gap *gap = &n->gaps->gaps[c->gap];
  take(n, c->gap, c, c->across);
  take_rest(n, gap->buffer, c->version);
  if (gap->wraps) take_rest(n, gap->buffer, 0);
  return true;
}

static void naive_make(const pl_walk *walk, naive *n) {
  const planc_trace *trace = walk->trace;
  const planc_device *device = walk->device;
  pl_absences none = {0};
  *n = (naive){.walk = walk, .trace = trace};
  ok(planc_gaps_make(walk->order, &n->gaps));
  n->taken = calloc((size_t)n->gaps->n + 1, sizeof *n->taken);
  n->start = calloc((size_t)trace->n_instances + 1, sizeof *n->start);
  n->live = calloc((size_t)trace->n_instances, sizeof *n->live);
  n->host_ns = calloc((size_t)trace->n_buffers, sizeof *n->host_ns);
  ok(pl_absences_held(walk->order, &none, n->live));
  for (int32_t i = 0; i < trace->n_instances; i++) {
    planc_variant fastest = pl_walk_variant(walk, i, INT64_MAX);
    n->start[i + 1] = n->start[i] + fastest.time_ns;
    n->live[i] += fastest.workspace_bytes;
  }
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    n->host_ns[b] = calloc((size_t)buffer->last_version + 1, sizeof **n->host_ns);
    for (int32_t v = 0; v <= buffer->last_version; v++) n->host_ns[b][v] = -1;
    if (buffer->flags & PLANC_BUFFER_FED) n->host_ns[b][0] = 0;
    if (buffer->n_accesses == 0) continue;
    int64_t in_ns = link_time(&device->links[PLANC_ROUTE_H2D], buffer->bytes),
            out_ns = link_time(&device->links[PLANC_ROUTE_D2H], buffer->bytes);
    int64_t end = n->start[trace->n_instances], at = -1;
    int64_t first = n->start[trace->accesses[trace->by_buffer[buffer->first_access]].instance];
    if (buffer->flags & PLANC_BUFFER_FED) at = last_time(n, 0, first > 0 ? first : end, in_ns);
    if (at >= 0) occupy(n, at, in_ns);
    at = -1;
    if (buffer->flags & PLANC_BUFFER_RESULT)
      at = first_time(n, n->start[planc_order_last(walk->order, b) + 1], end, out_ns);
    if (at >= 0) occupy(n, at, out_ns);
  }
}

static void naive_free(naive *n) {
  for (int32_t b = 0; b < n->trace->n_buffers; b++) free(n->host_ns[b]);
  free(n->host_ns);
  free(n->taken);
  free(n->start);
  free(n->live);
  planc_gaps_free(n->gaps);
}

/* The same gap of `tensile`; both are by buffer, in time order. */
static const tensile_gap *tensile_gap_of(const tensile *t, const planc_gap *gap) {
  for (int32_t i = 0; i < t->n; i++) {
    const tensile_gap *s = &t->gaps[i];
    const tensile_version *version = &t->versions[s->version];
    if (version->buffer == gap->buffer && s->from == gap->from && s->wraps == gap->wraps) return s;
  }
  return NULL;
}

static int64_t n_swaps, n_across, n_next, n_shared;

/* Round by round the same. */
static void agree(const pl_walk *walk, int seed) {
  naive n;
  pl_arena arena = {0};
  tensile t = {.walk = walk, .trace = walk->trace, .order = walk->order, .rate_ppm = 1000000};
  naive_make(walk, &n);
  ok(tensile_make_unswapped(&t, &arena));
  ok(tensile_set_up_swaps(&t, &arena));
  for (bool taken = true; taken;) {
    choice c;
    ck_assert_msg(tensile_peak(&t) == naive_peak(&n), "graph %d: peak at %d, not at %d", seed, tensile_peak(&t),
                  naive_peak(&n));
    bool expected = naive_round(&n, &c);
    ok(tensile_swap(&t, tensile_peak(&t), &taken));
    ck_assert_msg(taken == expected, "graph %d: %s is swapped", seed, expected ? "nothing" : "something");
    for (int32_t g = 0; g < n.gaps->n; g++) {
      const tensile_gap *s = tensile_gap_of(&t, &n.gaps->gaps[g]);
      ck_assert_msg(s ? (s->state == TENSILE_TAKEN) == n.taken[g] : !n.taken[g], "graph %d: gap %d", seed, g);
    }
    if (!taken) break;
    const tensile_gap *s = tensile_gap_of(&t, &n.gaps->gaps[c.gap]);
    const pl_absence *a = &s->absence;
    bool same = a->version == c.version && a->leave == c.leave && a->fetch == c.fetch && s->in_start == c.in_start;
    ck_assert_msg(same && (c.out_start < 0 || a->copy == c.copy),
                  "graph %d: version %d away %d-%d from %d, expected %d away %d-%d from %d", seed, a->version, a->leave,
                  a->fetch, a->copy, c.version, c.leave, c.fetch, c.copy);
    ck_assert_int_eq(t.unswapped.peaks.most[1], n.live[naive_peak(&n)]);
    n_swaps++;
    n_across += s->wraps && a->fetch <= a->leave;
    n_next += s->wraps && a->fetch > a->leave;
    n_shared += c.out_start < 0;
  }
  tensile_free(&t);
  pl_arena_free(&arena);
  naive_free(&n);
}

START_TEST(rounds_are_those_of_the_rules) {
  static const int64_t speeds[] = {1000000000, 100000000, 20000000, 5000000};
  for (int seed = 0; seed < 400; seed++) {
    planc_graph *graph;
    randgraph_options options = {.max_ops = 40, .inference = seed % 10 == 9};
    ok(randgraph_make(UINT64_C(9000) + (uint64_t)seed, &options, &graph));
    set_links(profile, speeds[seed % 4]);
    planc_problem problem = {
        .job.graph = graph, .job.profile = profile, .job.batch = 1 + seed % 5, .terms.budgets[PLANC_MEMORY_HOST] = -1};
    planc_candidate candidate = {0};
    pl_walk walk;
    ok(pl_walk_start_rounds(&walk, &problem, problem.job.batch, (pl_walk_room){.bytes = PL_ROOM_UNLIMITED},
                            &candidate));
    agree(&walk, seed);
    planc_candidate_free(&candidate);
    planc_graph_free(graph);
  }
  set_links(profile, 1000000000);
  ck_assert_int_gt(n_swaps, 500);
  ck_assert_int_gt(n_across, 20);
  ck_assert_int_gt(n_next, 20);
  ck_assert_int_gt(n_shared, 20);
}
END_TEST

/* --- Times set by hand -------------------------------------------------------------------------------------------- */

/* a is made by f1, read by f2 and g1; b is made by f2, read by g2. Between them are four ops, at the third of which
 * most lives. All tensors are so many bytes as their names say in units of 1,024 (batch 4): a and e 1, b 2, big 8. */
static const char hill[] =
    "planc-graph: 1\n"
    "name: hill\n"
    "outputs: [h]\n"
    "tensors:\n"
    "  x: input f32[N,1]\n"
    "  a: f32[N,64]\n"
    "  b: f32[N,128]\n"
    "  c1: f32[N,1]\n"
    "  big: f32[N,512]\n"
    "  c2: f32[N,64]\n"
    "  c3: f32[N,1]\n"
    "  c4: f32[N,1]\n"
    "  g: f32[N,1]\n"
    "  h: f32[N,1]\n"
    "ops:\n"
    "  - {op: f1, type: my.op, in: [x], out: [a]}\n"
    "  - {op: f2, type: my.op, in: [a], out: [b, c1]}\n"
    "  - {op: m1, type: my.op, in: [c1], out: [c3]}\n"
    "  - {op: m2, type: my.op, in: [c3], out: [big]}\n"
    "  - {op: m3, type: my.op, in: [big], out: [c2]}\n"
    "  - {op: m4, type: my.op, in: [c2], out: [c4]}\n"
    "  - {op: g1, type: my.op, phase: backward, in: [a, c4], out: [g]}\n"
    "  - {op: g2, type: my.op, phase: backward, in: [b, g], out: [h]}\n";
enum { HILL_OPS = 8, HILL_BATCH = 4 };
static const char *const hill_ops[HILL_OPS] = {"f1", "f2", "m1", "m2", "m3", "m4", "g1", "g2"};

/* The profile with measured times for the ops of hill. */
static planc_profile *timed(const int64_t times[HILL_OPS]) {
  char ops[2048] = "\"ops\": [", *text;
  size_t length;
  for (int i = 0; i < HILL_OPS; i++) {
    size_t at = strlen(ops);
    (void)snprintf(&ops[at], sizeof ops - at,
                   "%s{\"op\": \"%s\", \"variants\": [{\"algorithm\": \"only\", \"deterministic\": true, \"points\": "
                   "[{\"batch\": %d, \"time_ns\": %lld, \"workspace_bytes\": 0, \"busy_ppm\": 1000000}]}]}",
                   i ? ", " : "", hill_ops[i], HILL_BATCH, (long long)times[i]);
  }
  (void)strncat(ops, "], \"device\"", sizeof ops - strlen(ops) - 1);
  ok(pl_file_read("profiles/k40m.json", 1 << 20, &text, &length));
  char *edited = judge_edited(text, "\"device\"", ops);
  planc_profile *of;
  ok(planc_profile_parse(edited, strlen(edited), "timed", &of));
  set_links(of, 1000000000);
  free(edited);
  free(text);
  return of;
}

typedef struct swapped {
  int32_t copy, leave, fetch; /* ops; leave 0 = never away */
  bool again;                 /* it is computed again */
} swapped;

/* What becomes of a tensor of hill in the room there is, read from the schedule. */
static swapped swap_of(const planc_problem *problem, int64_t room, const char *tensor) {
  planc_candidate candidate = {0};
  pl_absence_rule rule = {.choose = tensile_choose, .context = problem};
  swapped s = {.copy = PL_NO_COPY};
  ok(pl_make_absences(problem, &rule, (pl_walk_room){.bytes = room}, &candidate));
  const planc_schedule *schedule = candidate.schedule;
  int32_t now = -1, opened = 0;
  for (int32_t c = 0; c < planc_schedule_n_commands(candidate.schedule); c++) {
    const planc_command *command = &planc_schedule_commands(candidate.schedule)[c];
    if (command->kind == PLANC_CMD_EXEC) {
      if (!command->recompute) now = command->instance;
      continue;
    }
    const char *name = planc_trace_buffer_name(candidate.trace, planc_schedule_buffer(schedule, command));
    if (strcmp(name, tensor) != 0) continue;
    bool copies = command->kind == PLANC_CMD_COPY, gives = planc_schedule_gives(schedule, command);
    if (copies && gives) s.copy = now;
    if (command->kind == PLANC_CMD_RELEASE && opened == 1) s.leave = now;
    if (command->kind == PLANC_CMD_ACQUIRE && ++opened == 2) s.fetch = now + 1;
    s.again |= opened == 2 && command->kind == PLANC_CMD_ACQUIRE;
    if (copies && !gives) s.again = false;
  }
  if (opened < 2) s.leave = 0;
  planc_candidate_free(&candidate);
  return s;
}

static void expect(const planc_problem *problem, int64_t room, const char *tensor, swapped expected) {
  swapped s = swap_of(problem, room, tensor);
  bool same = s.copy == expected.copy && s.leave == expected.leave && s.again == expected.again;
  ck_assert_msg(same && (!expected.leave || s.fetch == expected.fetch), "%s: copied behind %d, away %d to %d%s", tensor,
                s.copy, s.leave, s.fetch, s.again ? ", again" : "");
}

static const swapped stays = {.copy = PL_NO_COPY};

/* b, which is larger, has the link first: out from the end of f2, in until g2. a's copy out stands behind that. Both
 * are away only where both copies are over by the end of an op. */
START_TEST(the_largest_goes_first) {
  planc_graph *graph = graph_of(hill);
  planc_problem problem = {.job.graph = graph, .job.batch = HILL_BATCH, .terms.budgets[PLANC_MEMORY_HOST] = -1};
  /* In: b from 20,000 to 22,048 within g1 at the latest, but g1 begins at 16,000; a from 14,976 within m4. */
  problem.job.profile = timed((int64_t[]){4000, 4000, 2048, 1024, 1024, 4000, 6000, 1000});
  expect(&problem, PL_ROOM_UNLIMITED, "b", (swapped){.copy = 1, .leave = 2, .fetch = 6});
  expect(&problem, PL_ROOM_UNLIMITED, "a", (swapped){.copy = 2, .leave = 3, .fetch = 5});
  planc_profile_free((planc_profile *)problem.job.profile);
  /* One nanosecond less in m1, and b's copy is over within m2, a's within m3: at m4 a has to be on its way back. */
  problem.job.profile = timed((int64_t[]){4000, 4000, 2047, 1024, 1024, 4000, 6000, 1000});
  expect(&problem, PL_ROOM_UNLIMITED, "b", (swapped){.copy = 1, .leave = 3, .fetch = 6});
  expect(&problem, PL_ROOM_UNLIMITED, "a", stays);
  planc_profile_free((planc_profile *)problem.job.profile);
  planc_graph_free(graph);
}
END_TEST

/* The rate counts tensors: of ten one may be swapped at 10 %, none below. */
START_TEST(the_rate_limits_tensors) {
  planc_graph *graph = graph_of(hill);
  planc_problem problem = {.job.graph = graph, .job.batch = HILL_BATCH, .terms.budgets[PLANC_MEMORY_HOST] = -1};
  problem.job.profile = timed((int64_t[]){4000, 4000, 2048, 1024, 1024, 4000, 6000, 1000});
  problem.job.swap_rate = 100000;
  expect(&problem, PL_ROOM_UNLIMITED, "b", (swapped){.copy = 1, .leave = 2, .fetch = 6});
  expect(&problem, PL_ROOM_UNLIMITED, "a", stays);
  problem.job.swap_rate = 99999;
  expect(&problem, PL_ROOM_UNLIMITED, "b", stays);
  expect(&problem, PL_ROOM_UNLIMITED, "a", stays);
  planc_profile_free((planc_profile *)problem.job.profile);
  planc_graph_free(graph);
}
END_TEST

/* g2 reads a, too, so that b can be computed again from it; a cannot, since x is dead by then. b is too large to leave
 * before m3. Recompute is only where the room asks for it, and only while a never leaves. */
START_TEST(recompute_is_the_last_resort) {
  char *text = judge_edited(hill, "in: [b, g]", "in: [a, b, g]");
  planc_graph *graph = graph_of(text);
  planc_problem problem = {
      .job.graph = graph, .job.batch = HILL_BATCH, .terms.budgets[PLANC_MEMORY_HOST] = -1, .job.swap_rate = 1};
  problem.job.profile = timed((int64_t[]){4000, 4000, 500, 1000, 1024, 4000, 6000, 1000});
  int64_t peak = INT64_C(1024) * (8 + 1 + 1 + 2); /* at m3 */
  expect(&problem, PL_ROOM_UNLIMITED, "b", stays);
  expect(&problem, peak, "b", stays);
  expect(&problem, peak - 1, "b", (swapped){.copy = PL_NO_COPY, .leave = 1, .fetch = 7, .again = true});
  expect(&problem, peak - 1, "a", stays);
  problem.job.swap_rate = 0;
  swapped a = {.copy = 1, .leave = 3, .fetch = 5};
  expect(&problem, peak, "a", a);
  expect(&problem, peak - 1024 - 1, "a", a);
  expect(&problem, peak - 1024 - 1, "b", stays);
  planc_profile_free((planc_profile *)problem.job.profile);
  planc_graph_free(graph);
  free(text);
}
END_TEST

/* --- Plans -------------------------------------------------------------------------------------------------------- */

/* Valid, in the budget, and the reference's bits in any order that the events allow. Returns how many buffers are on
 * the host when a period begins. */
static int32_t plan_is_right(const planc_problem *problem, uint64_t seed) {
  planc_plan *plan;
  ok(planc_make_plan(problem, planc_policy_find("tensile"), &plan));
  ok(planc_check(plan, NULL, NULL));
  planrt_options options = {.seed = seed, .synthetic = true, .verify = true};
  planrt_session *session;
  ok(planrt_session_new(plan, &options, &session));
  ok(planrt_init(session));
  ok(planrt_run(session, 2));
  for (uint64_t order = 0; order < 5; order++) ok(planrt_run_interleaved(session, 2, order));
  planrt_session_free(session);
  int32_t parked = 0;
  for (int32_t b = 0; b < plan->n_boundary; b++) parked += is_parked(plan, &plan->boundary[b]);
  planc_plan_free(plan);
  return parked;
}

START_TEST(plans_of_random_graphs_are_right) {
  int32_t parking = 0;
  for (int seed = 0; seed < 100; seed++) {
    planc_graph *graph;
    randgraph_options options = {.max_ops = 30, .max_elements = seed % 2 ? 512 : 0, .inference = seed % 10 == 9};
    ok(randgraph_make(UINT64_C(9500) + (uint64_t)seed, &options, &graph));
    planc_problem problem = {
        .job.graph = graph, .job.profile = profile, .job.batch = 1 + seed % 5, .terms.budgets[PLANC_MEMORY_HOST] = -1};
    problem.terms.budgets[PLANC_MEMORY_DEVICE] = INT64_C(1) << 40;
    parking += plan_is_right(&problem, (uint64_t)seed) > 0;
    ok(find_least_bytes(&problem, planc_policy_find("tensile"), &problem.terms.budgets[PLANC_MEMORY_DEVICE]));
    parking += plan_is_right(&problem, (uint64_t)seed) > 0;
    planc_graph_free(graph);
  }
  ck_assert_int_gt(parking, 20);
}
END_TEST

/* A network whose parameters and Adam's state are most of its memory: they are not on the device between iterations
 * and less is at the peak than they take; and a plan does not depend on a budget that is large enough. */
START_TEST(parameters_leave_between_iterations) {
  forward_begin();
  forward_tensor("x", "input f32[N,64]");
  char in[16] = "x";
  for (int i = 0; i < 6; i++) {
    char w[16], y[16], op[16];
    (void)snprintf(w, sizeof w, "w%d", i);
    (void)snprintf(y, sizeof y, "y%d", i);
    (void)snprintf(op, sizeof op, "fc%d", i);
    char operands[40];
    (void)snprintf(operands, sizeof operands, "%s %s", in, w);
    forward_tensor(w, "param f32[64,64]");
    forward_tensor(y, "f32[N,64]");
    forward_op(op, "linear", operands, y, "");
    (void)snprintf(in, sizeof in, "%s", y);
  }
  forward_classifier(in, 64);
  planc_graph *forward = forward_finish(), *graph;
  ok(planc_graph_train(forward, PLANC_ADAM, &graph));
  planc_graph_free(forward);
  set_links(profile, INT64_C(20000000000));
  planc_problem problem = {
      .job.graph = graph, .job.profile = profile, .job.batch = 32, .terms.budgets[PLANC_MEMORY_HOST] = -1};
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = INT64_C(1) << 30;
  ck_assert_int_gt(plan_is_right(&problem, 1), 6);
  planc_plan *plan, *none, *other;
  ok(planc_make_plan(&problem, planc_policy_find("tensile"), &plan));
  ok(planc_make_plan(&problem, planc_policy_find("none"), &none));
  ck_assert_int_lt(device_of(plan)->arena_bytes, device_of(none)->arena_bytes / 4 * 3);
  ck_assert_int_lt(plan->predicted.period_ns, none->predicted.period_ns / 100 * 103);
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = device_of(plan)->arena_bytes;
  ok(planc_make_plan(&problem, planc_policy_find("tensile"), &other));
  ck_assert_int_eq(plan->body.n, other->body.n);
  ck_assert_int_eq(device_of(plan)->arena_bytes, device_of(other)->arena_bytes);
  planc_plan_free(plan);
  planc_plan_free(none);
  planc_plan_free(other);
  planc_graph_free(graph);
  set_links(profile, 1000000000);
}
END_TEST

/* --- When rounds end ---------------------------------------------------------------------------------------------- */

enum { SMALL_TENSORS = 150 };

/* How many of so many tensors of 4 * `elements` bytes are swapped around one of 64 MiB. */
static int32_t count_swaps(int elements) {
  static char text[1 << 15];
  size_t at = (size_t)snprintf(text, sizeof text,
                               "planc-graph: 1\nname: g\noutputs: [h]\ntensors:\n  x: input f32[N,64]\n  e: f32[N,64]\n"
                               "  e2: f32[N,64]\n  h: f32[N,64]\n  big: f32[N,%d]\n",
                               1 << 24);
  for (int i = 0; i < SMALL_TENSORS; i++)
    at += (size_t)snprintf(&text[at], sizeof text - at, "  t%d: f32[N,%d]\n", i, elements);
  at += (size_t)snprintf(&text[at], sizeof text - at, "ops:\n");
  for (int i = 0; i < SMALL_TENSORS; i++)
    at += (size_t)snprintf(&text[at], sizeof text - at, "  - {op: f%d, type: my.op, in: [x], out: [t%d]}\n", i, i);
  at += (size_t)snprintf(
      &text[at], sizeof text - at,
      "  - {op: m1, type: my.op, in: [x], out: [big]}\n  - {op: m2, type: my.op, in: [big], out: [e]}\n"
      "  - {op: m3, type: my.op, in: [e], out: [e2]}\n"
      "  - {op: g, type: my.op, phase: backward, out: [h], in: [e2");
  for (int i = 0; i < SMALL_TENSORS; i++) at += (size_t)snprintf(&text[at], sizeof text - at, ", t%d", i);
  (void)snprintf(&text[at], sizeof text - at, "]}\n");
  planc_graph *graph = graph_of(text);
  planc_problem problem = {
      .job.graph = graph, .job.profile = profile, .job.batch = 1, .terms.budgets[PLANC_MEMORY_HOST] = -1};
  pl_absence_rule rule = {.choose = tensile_choose, .context = &problem};
  planc_candidate candidate = {0};
  int32_t n = 0;
  set_links(profile, INT64_C(1000000000000000));
  ok(pl_make_absences(&problem, &rule, (pl_walk_room){.bytes = PL_ROOM_UNLIMITED}, &candidate));
  for (int32_t c = 0; c < planc_schedule_n_commands(candidate.schedule); c++) {
    const planc_command *command = &planc_schedule_commands(candidate.schedule)[c];
    n += planc_schedule_copies(candidate.schedule, command, PLANC_MEMORY_DEVICE, PLANC_MEMORY_HOST);
  }
  set_links(profile, 1000000000);
  planc_candidate_free(&candidate);
  planc_graph_free(graph);
  return n;
}

/* 0.05 % of 64 MiB is between what a hundred tensors of 256 and of 512 bytes take. */
START_TEST(rounds_end_where_little_is_gained) {
  ck_assert_int_eq(count_swaps(64), 100);
  ck_assert_int_eq(count_swaps(128), SMALL_TENSORS);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("tensile");
  TCase *tests = tcase_create("all");
  tcase_set_timeout(tests, 120);
  tcase_add_unchecked_fixture(tests, read_profile, free_profile);
  tcase_add_test(tests, rounds_are_those_of_the_rules);
  tcase_add_test(tests, plans_of_random_graphs_are_right);
  tcase_add_test(tests, parameters_leave_between_iterations);
  tcase_add_test(tests, the_largest_goes_first);
  tcase_add_test(tests, rounds_end_where_little_is_gained);
  tcase_add_test(tests, the_rate_limits_tensors);
  tcase_add_test(tests, recompute_is_the_last_resort);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
