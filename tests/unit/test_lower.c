/* Lowering: random legal schedules of random graphs become plans, which an oracle of its own judges: of runs of none to
 * three bodies the happens-before relation (unroll.h) must order every two accesses of the same bytes of which one
 * writes; run in file order, every read must find its version. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planc/policy.h"
#include "tests/support/lower_for.h"
#include "tests/support/plan_view.h"
#include "tests/support/randgraph.h"
#include "tests/support/randschedule.h"
#include "tests/support/unit.h"
#include "tests/support/unroll.h"
#include "util/math.h"

enum { MOST_BODIES = 3, UNIT = PLANC_ALIGNMENT };

static planc_profile *profile;

static void load_profile(void) {
  ck_assert_ptr_null(planc_profile_read("profiles/k40m.json", &profile));
}
static void free_profile(void) {
  planc_profile_free(profile);
}

static void ck_ok(planc_status status) {
  ck_assert_msg(!status, "%s", planc_status_message(status));
}

static void assert_ordered(unrolled *u) {
  int64_t pair[2], missing = unrolled_order(u, NULL);
  ck_assert_msg(missing < 0, "%d bodies: node %lld waits for what nobody records", u->bodies, (long long)missing);
  if (unrolled_race(u, pair))
    ck_abort_msg("%d bodies: nodes %lld and %lld are not ordered", u->bodies, (long long)pair[0], (long long)pair[1]);
}

/* --- Events' form ------------------------------------------------------------------------------------------------- */

static int32_t find_record(planc_section section, int32_t id) {
  int32_t found = -1;
  for (int32_t i = 0; i < section.n; i++) {
    if (section.instrs[i].op != PLANC_INSTR_record || section.instrs[i].id != id) continue;
    ck_assert_msg(found < 0, "event %d is recorded twice", id);
    found = i;
  }
  return found;
}

static void assert_events(const planc_plan *plan) {
  for (int32_t e = 0; e < plan->n_events; e++) {
    int32_t at = find_record(plan->body, e), before = find_record(plan->prologue, e);
    ck_assert(at >= 0 || before >= 0 || find_record(plan->epilogue, e) >= 0);
    if (at >= 0 && before >= 0) ck_assert_int_eq(plan->body.instrs[at].stream, plan->prologue.instrs[before].stream);
  }
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *it = &plan->body.instrs[i];
    if (it->op != PLANC_INSTR_wait) continue;
    int32_t at = find_record(plan->body, it->id);
    ck_assert_int_ge(at, 0);
    ck_assert_int_ne(plan->body.instrs[at].stream, it->stream);
    ck_assert(it->lag ? i < at : at < i);
    if (it->lag) ck_assert_int_ge(find_record(plan->prologue, it->id), 0);
  }
  for (int32_t i = 0; i < plan->epilogue.n; i++) {
    const planc_instr *it = &plan->epilogue.instrs[i];
    if (it->op != PLANC_INSTR_wait) continue;
    if (it->lag == 0) {
      int32_t at = find_record(plan->epilogue, it->id);
      ck_assert(at >= 0 && at < i);
      continue;
    }
    ck_assert_int_ge(find_record(plan->prologue, it->id), 0);
    ck_assert_int_ge(find_record(plan->body, it->id), 0);
  }
}

/* --- Contents ----------------------------------------------------------------------------------------------------- */

/* What a unit of memory holds. The body counts for what does not persist. */
typedef struct content {
  int32_t buffer, version, body;
} content;

typedef struct memory {
  content *units;
  int64_t n;
} memory;

static void set_content(memory *m, int64_t address, int64_t bytes, content value) {
  for (int64_t u = address / UNIT; u < (address + bytes + UNIT - 1) / UNIT; u++) {
    ck_assert_int_lt(u, m->n);
    m->units[u] = value;
  }
}

static void assert_content(const memory *m, int64_t address, int64_t bytes, content value) {
  for (int64_t u = address / UNIT; u < (address + bytes + UNIT - 1) / UNIT; u++) {
    const content *found = &m->units[u];
    ck_assert_msg(found->buffer == value.buffer && found->version == value.version && found->body == value.body,
                  "buffer %d version %d expected, buffer %d version %d found", value.buffer, value.version,
                  found->buffer, found->version);
  }
}

/* Versions of persistent buffers count on from body to body. */
static content content_of(const planc_trace *trace, int32_t buffer, int32_t version, int32_t body) {
  const planc_buffer *b = &trace->buffers[buffer];
  if (!(b->flags & PLANC_BUFFER_PERSISTENT)) return (content){buffer, version, body};
  return (content){buffer, b->last_version * (body < 0 ? 0 : body) + version, 0};
}

/* What a run has done so far, and what lies where, by memory. */
typedef struct machine {
  const unrolled *r;
  memory *memories;
  int32_t *delivered, *executed; /* by buffer and by instance, of each body */
} machine;

static void fill(const machine *m, int32_t residency, content value) {
  const planc_instr *at = m->r->acquired[residency];
  if (at->bytes > 0) set_content(&m->memories[at->memory], at->address, at->bytes, value);
}

static void assert_holds(const machine *m, int32_t residency, content value) {
  const planc_instr *at = m->r->acquired[residency];
  if (at->bytes > 0) assert_content(&m->memories[at->memory], at->address, at->bytes, value);
}

static void run_exec(machine *m, const unroll_node *e) {
  const planc_trace *trace = m->r->trace;
  const planc_instr *it = e->instr;
  const planc_instance *instance = &trace->instances[it->id];
  const planc_access *accesses = &trace->accesses[instance->first_access];
  const int32_t *uses = &m->r->plan->uses[it->first_use];
  int32_t on = m->r->plan->streams[it->stream].on;
  for (int32_t k = 0; k < instance->n_accesses; k++) {
    ck_assert(uses[k] >= 0 || (it->recompute && accesses[k].effect));
    if (uses[k] < 0) continue;
    ck_assert_int_eq(m->r->acquired[uses[k]]->memory, on);
    if (accesses[k].read >= 0)
      assert_holds(m, uses[k], content_of(trace, accesses[k].buffer, accesses[k].read, e->body));
  }
  set_content(&m->memories[on], it->address, it->bytes, (content){-1, -1, -1});
  for (int32_t k = 0; k < instance->n_accesses; k++) {
    if (uses[k] >= 0 && accesses[k].write >= 0)
      fill(m, uses[k], content_of(trace, accesses[k].buffer, accesses[k].write, e->body));
  }
  if (!it->recompute) m->executed[it->id * MOST_BODIES + e->body]++;
}

static void run_copy(machine *m, const unroll_node *e) {
  const planc_trace *trace = m->r->trace;
  const planc_instr *it = e->instr;
  if (it->bytes == 0) return;
  if (it->aux == PLANC_USER) {
    fill(m, it->id, content_of(trace, m->r->acquired[it->id]->aux, 0, e->body));
    return;
  }
  const planc_instr *from = m->r->acquired[it->aux];
  content value = m->memories[from->memory].units[from->address / UNIT];
  if (it->id == PLANC_USER) {
    bool result = e->body < m->r->bodies;
    value = content_of(trace, from->aux, result ? trace->buffers[from->aux].last_version : 0, e->body);
    if (result) m->delivered[from->aux * MOST_BODIES + e->body]++;
  }
  assert_holds(m, it->aux, value);
  if (it->id != PLANC_USER) fill(m, it->id, value);
}

/* Runs the nodes in file order. */
static void assert_contents(const unrolled *r) {
  const planc_trace *trace = r->trace;
  machine m = {.r = r,
               .memories = calloc((size_t)r->plan->n_memories, sizeof *m.memories),
               .delivered = calloc((size_t)trace->n_buffers * MOST_BODIES + 1, sizeof *m.delivered),
               .executed = calloc((size_t)trace->n_instances * MOST_BODIES + 1, sizeof *m.executed)};
  ck_assert(m.memories && m.delivered && m.executed);
  for (int32_t k = 0; k < r->plan->n_memories; k++) {
    memory *at = &m.memories[k];
    at->n = r->plan->memories[k].arena_bytes / UNIT + 1;
    at->units = malloc((size_t)at->n * sizeof *at->units);
    ck_assert_ptr_nonnull(at->units);
    memset(at->units, -1, (size_t)at->n * sizeof *at->units);
  }
  for (int64_t i = 0; i < r->nodes.len; i++) {
    const unroll_node *e = &r->nodes.data[i];
    if (e->instr->op == PLANC_INSTR_exec) run_exec(&m, e);
    if (e->instr->op == PLANC_INSTR_copy) run_copy(&m, e);
  }
  for (int32_t k = 0; k < r->bodies; k++) {
    for (int32_t i = 0; i < trace->n_instances; i++) ck_assert_int_eq(m.executed[i * MOST_BODIES + k], 1);
    for (int32_t b = 0; b < trace->n_buffers; b++) {
      bool leaves = trace->buffers[b].flags & PLANC_BUFFER_RESULT && trace->buffers[b].bytes > 0;
      ck_assert_int_eq(m.delivered[b * MOST_BODIES + k], leaves);
    }
  }
  for (int32_t k = 0; k < r->plan->n_memories; k++) free(m.memories[k].units);
  free(m.memories);
  free(m.delivered);
  free(m.executed);
}

/* Each arena is as long as its highest touch needs. */
static void assert_arenas(const unrolled *r) {
  int64_t top[3] = {0};
  ck_assert_int_eq(r->plan->n_memories, 3);
  for (int64_t i = 0; i < r->touches.len; i++) {
    const unroll_touch *touch = &r->touches.data[i];
    if (touch->to > top[touch->memory]) top[touch->memory] = touch->to;
  }
  for (int32_t k = 0; k < r->plan->n_residencies; k++) {
    const planc_instr *at = r->acquired[k];
    ck_assert_int_eq(at->address % PLANC_ALIGNMENT, 0);
    if (at->address + at->bytes > top[at->memory]) top[at->memory] = at->address + at->bytes;
  }
  for (int32_t k = 0; k < 3; k++) ck_assert_int_eq(top[k], r->plan->memories[k].arena_bytes);
  ck_assert_int_eq(r->plan->predicted.peak_bytes[PLANC_MEMORY_HOST], host_of(r->plan)->arena_bytes);
}

/* --- Tests -------------------------------------------------------------------------------------------------------- */

typedef struct tally {
  int32_t recomputes, offloads, prefetches, moves, lags, waits;
} tally;

static void count_kinds(const planc_plan *plan, tally *t) {
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *it = &plan->body.instrs[i];
    t->recomputes += it->op == PLANC_INSTR_exec && it->recompute;
    t->offloads += swaps_out(plan, it);
    t->prefetches += swaps_in(plan, it);
    t->moves += copies_own(plan, it, "compute");
    t->waits += it->op == PLANC_INSTR_wait;
    t->lags += it->op == PLANC_INSTR_wait && it->lag;
  }
}

static void make_case(int32_t seed, const randgraph_options *options, planc_graph **graph, randcase *c) {
  ck_ok(randgraph_make((uint64_t)seed, options, graph));
  ck_ok(randcase_make((uint64_t)seed, *graph, profile, 1 + seed % 3, c));
}

/* The schedule's number of what is acquired on the device, which it acquires in the same order. -1 for others. */
static void number_as_scheduled(const planc_plan *plan, const planc_schedule *schedule, int32_t *out) {
  int32_t n = plan->n_boundary;
  for (int32_t r = 0; r < plan->n_boundary; r++) out[r] = is_parked(plan, &plan->boundary[r]) ? -1 : r;
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *it = &plan->body.instrs[i];
    if (it->op != PLANC_INSTR_acquire) continue;
    out[it->id] = -1;
    if (!acquires_on_device(plan, it)) continue;
    while (planc_schedule_kind_of(schedule, n) != PLANC_MEMORY_DEVICE) n++;
    out[it->id] = n++;
  }
}

static void assert_plan(const planc_plan *plan, const randcase *c) {
  assert_events(plan);
  for (int32_t bodies = 0; bodies <= MOST_BODIES; bodies++) {
    unrolled r;
    unroll(plan, c->candidate.trace, bodies, &r);
    assert_ordered(&r);
    assert_contents(&r);
    if (bodies > 0) assert_arenas(&r);
    unrolled_free(&r);
  }
}

START_TEST(random_schedules_are_safe) {
  tally t = {0};
  for (int32_t seed = 0; seed < 150; seed++) {
    randgraph_options options = {.max_ops = 24, .inference = seed % 5 == 4};
    planc_graph *graph;
    randcase c;
    planc_plan *plan;
    make_case(seed, &options, &graph, &c);
    ck_ok(randschedule_make((uint64_t)seed, NULL, &c));
    ck_ok(lower_for(&c.problem, "random", &c.candidate, &plan));
    assert_plan(plan, &c);
    count_kinds(plan, &t);

    /* Half of the addresses stated: they stay, and the rest is placed around them. */
    int32_t n_scheduled = planc_schedule_n_residencies(c.candidate.schedule);
    int64_t *addresses = malloc((size_t)n_scheduled * sizeof *addresses);
    int32_t *number = malloc((size_t)plan->n_residencies * sizeof *number);
    ck_assert(addresses && number);
    uint64_t state = (uint64_t)seed;
    number_as_scheduled(plan, c.candidate.schedule, number);
    for (int32_t k = 0; k < n_scheduled; k++) addresses[k] = PLANC_BLANK;
    for (int32_t s = 0; s < 2; s++) {
      planc_section section = s == 0 ? plan->prologue : plan->body;
      for (int32_t i = 0; i < section.n; i++) {
        const planc_instr *it = &section.instrs[i];
        if (acquires_on_device(plan, it) && rand_chance(&state, 50)) addresses[number[it->id]] = it->address;
      }
    }
    planc_plan_free(plan);
    randschedule_options stated = {.addresses = addresses};
    ck_ok(randschedule_make((uint64_t)seed, &stated, &c));
    ck_ok(lower_for(&c.problem, "random", &c.candidate, &plan));
    assert_plan(plan, &c);
    for (int32_t s = 0; s < 2; s++) {
      planc_section section = s == 0 ? plan->prologue : plan->body;
      for (int32_t i = 0; i < section.n; i++) {
        const planc_instr *it = &section.instrs[i];
        if (!acquires_on_device(plan, it) || addresses[number[it->id]] == PLANC_BLANK || it->bytes == 0) continue;
        ck_assert_int_eq(it->address, addresses[number[it->id]]);
      }
    }
    free(number);
    free(addresses);
    planc_plan_free(plan);
    randcase_free(&c);
    planc_graph_free(graph);
  }
  /* The schedules do exercise everything. */
  ck_assert_int_gt(t.recomputes, 50);
  ck_assert_int_gt(t.offloads, 500);
  ck_assert_int_gt(t.prefetches, t.offloads - 1);
  ck_assert_int_gt(t.moves, 5);
  ck_assert_int_gt(t.lags, 50);
  ck_assert_int_gt(t.waits, 2000);
}
END_TEST

/* The number of residencies on the device from before the body to behind it that the body never releases. *out_lowest:
 * no other has an address below where they all would end, one behind the other. */
static int32_t count_lasting(const planc_plan *plan, bool *out_lowest) {
  bool *lasts = calloc((size_t)plan->n_residencies + 1, sizeof *lasts);
  int64_t bytes = 0, top = 0;
  int32_t n = 0;
  ck_assert_ptr_nonnull(lasts);
  for (int32_t i = 0; i < plan->prologue.n; i++) {
    const planc_instr *it = &plan->prologue.instrs[i];
    if (it->op == PLANC_INSTR_release || acquires_on_device(plan, it)) lasts[it->id] = it->op == PLANC_INSTR_acquire;
  }
  for (int32_t i = 0; i < plan->body.n; i++)
    if (plan->body.instrs[i].op == PLANC_INSTR_release) lasts[plan->body.instrs[i].id] = false;
  for (int32_t i = 0; i < plan->prologue.n; i++) {
    const planc_instr *it = &plan->prologue.instrs[i];
    if (!acquires_on_device(plan, it) || !lasts[it->id] || it->bytes == 0) continue;
    int64_t size = pl_align_up(it->bytes, PLANC_ALIGNMENT);
    bytes += size;
    if (it->address + size > top) top = it->address + size;
    n++;
  }
  *out_lowest = top == bytes;
  free(lasts);
  return n;
}

/* So that it is in nobody's way; in a room of one byte all greedy orders are over, and the search as well. */
START_TEST(what_lives_all_the_time_lies_lowest_in_a_room) {
  int32_t n_lowest[2] = {0}, n_cases = 0;
  for (int32_t seed = 0; seed < 60; seed++) {
    planc_graph *graph;
    randcase c;
    make_case(seed, NULL, &graph, &c);
    for (int64_t room = 0; room < 2; room++) {
      planc_plan *plan;
      bool lowest;
      ck_ok(randschedule_make((uint64_t)seed, NULL, &c));
      c.candidate.room = room;
      ck_ok(lower_for(&c.problem, "random", &c.candidate, &plan));
      assert_plan(plan, &c);
      n_cases += count_lasting(plan, &lowest) > 1;
      n_lowest[room] += lowest;
      if (room > 0) ck_assert_msg(lowest, "seed %d", seed);
      planc_plan_free(plan);
    }
    randcase_free(&c);
    planc_graph_free(graph);
  }
  ck_assert_int_gt(n_cases, 20);
  ck_assert_int_lt(n_lowest[0], n_lowest[1]);
}
END_TEST

/* Without any one of the waits that lowering found, some access is no longer ordered. */
START_TEST(no_wait_is_superfluous) {
  for (int32_t seed = 1000; seed < 1012; seed++) {
    randgraph_options options = {.max_ops = 12};
    planc_graph *graph;
    randcase c;
    planc_plan *plan;
    make_case(seed, &options, &graph, &c);
    ck_ok(randschedule_make((uint64_t)seed, &(randschedule_options){.no_awaits = true}, &c));
    ck_ok(lower_for(&c.problem, "random", &c.candidate, &plan));
    unrolled r;
    unroll(plan, c.candidate.trace, MOST_BODIES, &r);
    const planc_section *sections[] = {&plan->body, &plan->epilogue};
    for (int32_t s = 0; s < 2; s++) {
      for (int32_t i = 0; i < sections[s]->n; i++) {
        if (sections[s]->instrs[i].op != PLANC_INSTR_wait) continue;
        int64_t pair[2];
        unrolled_order(&r, &sections[s]->instrs[i]);
        if (!unrolled_race(&r, pair)) ck_abort_msg("seed %d: wait %d of section %d is superfluous", seed, i, s);
      }
    }
    unrolled_free(&r);
    planc_plan_free(plan);
    randcase_free(&c);
    planc_graph_free(graph);
  }
}
END_TEST

START_TEST(lowering_is_deterministic) {
  planc_graph *graph;
  randcase c;
  planc_plan *plans[2];
  char *texts[2];
  size_t lengths[2];
  make_case(7, NULL, &graph, &c);
  for (int k = 0; k < 2; k++) {
    ck_ok(randschedule_make(7, NULL, &c));
    ck_ok(lower_for(&c.problem, "random", &c.candidate, &plans[k]));
    ck_ok(planc_plan_print(plans[k], &texts[k], &lengths[k]));
  }
  ck_assert_int_eq(lengths[0], lengths[1]);
  ck_assert_mem_eq(texts[0], texts[1], lengths[0]);
  for (int k = 0; k < 2; k++) {
    planc_plan_free(plans[k]);
    free(texts[k]);
  }
  randcase_free(&c);
  planc_graph_free(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("lower");
  TCase *tests = tcase_create("all");
  tcase_set_timeout(tests, 120);
  tcase_add_unchecked_fixture(tests, load_profile, free_profile);
  tcase_add_test(tests, random_schedules_are_safe);
  tcase_add_test(tests, what_lives_all_the_time_lies_lowest_in_a_room);
  tcase_add_test(tests, no_wait_is_superfluous);
  tcase_add_test(tests, lowering_is_deterministic);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
