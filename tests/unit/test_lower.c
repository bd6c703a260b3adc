/* Lowering: random legal schedules of random graphs become plans, which an oracle of its own judges: the happens-before
 * relation of prologue, three bodies and epilogue, taken from streams and events alone, must order every two accesses
 * of the same bytes of which one writes; run in file order, every read must find its version. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planc/policy.h"
#include "tests/support/randgraph.h"
#include "tests/support/randschedule.h"
#include "tests/support/unit.h"

enum { BODIES = 3, SECTIONS = BODIES + 2, UNIT = PLANC_ALIGNMENT };

static const planc_policy POLICY = {.name = "random"};
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

/* --- The run: sections unrolled ------------------------------------------------------------------------------------
 */

typedef struct touch {
  int64_t start, end;
  bool host, write;
} touch;

typedef struct event {
  const planc_instr *instr;
  int32_t section;
  int32_t first_touch, n_touches;
} event;

typedef struct run {
  const planc_plan *plan;
  const planc_trace *trace;
  int64_t *address; /* of residencies */
  int64_t *bytes;
  event *events;
  int32_t n;
  touch *touches;
  int32_t n_touches;
  uint64_t *before; /* before[i]: bit set of the events that happen before event i */
  int32_t words;
} run;

static planc_section section_of(const planc_plan *plan, int32_t section) {
  if (section == 0) return plan->prologue;
  return section == SECTIONS - 1 ? plan->epilogue : plan->body;
}

static void add_touch(run *r, int64_t address, int64_t bytes, bool host, bool write) {
  if (bytes > 0) r->touches[r->n_touches++] = (touch){address, address + bytes, host, write};
}

static void add_residency(run *r, int32_t residency, bool write) {
  add_touch(r, r->address[residency], r->bytes[residency], false, write);
}

static void add_touches(run *r, const planc_instr *it) {
  if (it->op == PLANC_INSTR_exec) {
    const planc_instance *instance = &r->trace->instances[it->id];
    for (int32_t k = 0; k < instance->n_accesses; k++) {
      int32_t use = r->plan->uses[it->first_use + k];
      if (use >= 0) add_residency(r, use, r->trace->accesses[instance->first_access + k].write >= 0);
    }
    add_touch(r, it->address, it->bytes, false, true);
  } else if (it->op == PLANC_INSTR_offload || it->op == PLANC_INSTR_prefetch) {
    add_residency(r, it->id, it->op == PLANC_INSTR_prefetch);
    if (it->address != PLANC_USER) add_touch(r, it->address, it->bytes, true, it->op == PLANC_INSTR_offload);
  } else if (it->op == PLANC_INSTR_move) {
    add_residency(r, it->aux, false);
    add_residency(r, it->id, true);
  }
}

static void start_run(const planc_plan *plan, const planc_trace *trace, run *r) {
  int32_t n = plan->prologue.n + BODIES * plan->body.n + plan->epilogue.n;
  *r = (run){.plan = plan, .trace = trace, .words = n / 64 + 1};
  r->address = calloc((size_t)plan->n_residencies + 1, sizeof *r->address);
  r->bytes = calloc((size_t)plan->n_residencies + 1, sizeof *r->bytes);
  r->events = calloc((size_t)n + 1, sizeof *r->events);
  r->touches = calloc(((size_t)n + (size_t)trace->n_accesses) * 8, sizeof *r->touches);
  r->before = calloc((size_t)n * (size_t)r->words + 1, sizeof *r->before);
  ck_assert(r->address && r->bytes && r->events && r->touches && r->before);
  for (int32_t s = 0; s < SECTIONS; s++) {
    planc_section section = section_of(plan, s);
    for (int32_t i = 0; i < section.n; i++) {
      const planc_instr *it = &section.instrs[i];
      if (it->op == PLANC_INSTR_acquire) {
        r->address[it->id] = it->address;
        r->bytes[it->id] = it->bytes;
      }
      event *e = &r->events[r->n++];
      *e = (event){.instr = it, .section = s, .first_touch = r->n_touches};
      add_touches(r, it);
      e->n_touches = r->n_touches - e->first_touch;
    }
  }
}

static void end_run(run *r) {
  free(r->address);
  free(r->bytes);
  free(r->events);
  free(r->touches);
  free(r->before);
}

/* --- Happens before -------------------------------------------------------------------------------------------------
 */

/* The record that a wait means, or -1. */
static int32_t record_for(const run *r, int32_t wait) {
  int32_t section = r->events[wait].section - r->events[wait].instr->lag;
  for (int32_t i = 0; i < r->n; i++) {
    const event *e = &r->events[i];
    if (e->section == section && e->instr->op == PLANC_INSTR_record && e->instr->id == r->events[wait].instr->id) {
      return i;
    }
  }
  return -1;
}

static bool runs_on_stream(const planc_instr *it) {
  return it->op != PLANC_INSTR_acquire && it->op != PLANC_INSTR_release;
}

/* Fills r->before; `without` is an instruction to leave out, or NULL. */
static void order_events(run *r, const planc_instr *without) {
  int32_t last[PLANC_N_STREAMS];
  memset(last, -1, sizeof last);
  memset(r->before, 0, (size_t)r->n * (size_t)r->words * sizeof *r->before);
  for (int32_t i = 0; i < r->n; i++) {
    const planc_instr *it = r->events[i].instr;
    if (it == without || !runs_on_stream(it)) continue;
    int32_t after[2] = {last[it->stream], it->op == PLANC_INSTR_wait ? record_for(r, i) : -1};
    for (int k = 0; k < 2; k++) {
      if (after[k] < 0) continue;
      ck_assert_int_lt(after[k], i);
      for (int32_t w = 0; w < r->words; w++) {
        r->before[(int64_t)i * r->words + w] |= r->before[(int64_t)after[k] * r->words + w];
      }
      r->before[(int64_t)i * r->words + after[k] / 64] |= UINT64_C(1) << after[k] % 64;
    }
    last[it->stream] = i;
  }
}

static bool conflicts(const run *r, const event *a, const event *b) {
  for (int32_t i = a->first_touch; i < a->first_touch + a->n_touches; i++) {
    for (int32_t j = b->first_touch; j < b->first_touch + b->n_touches; j++) {
      const touch *x = &r->touches[i], *y = &r->touches[j];
      if (x->host == y->host && (x->write || y->write) && x->start < y->end && y->start < x->end) return true;
    }
  }
  return false;
}

/* How many conflicting pairs are not ordered; `first` is one of them. */
static int32_t count_races(const run *r, int32_t first[2]) {
  int32_t races = 0;
  for (int32_t i = 0; i < r->n; i++) {
    for (int32_t j = 0; j < i; j++) {
      if (r->before[(int64_t)i * r->words + j / 64] >> j % 64 & 1) continue;
      if (!conflicts(r, &r->events[j], &r->events[i]) || races++) continue;
      first[0] = j;
      first[1] = i;
    }
  }
  return races;
}

static void assert_ordered(run *r) {
  int32_t pair[2] = {-1, -1};
  order_events(r, NULL);
  ck_assert_msg(count_races(r, pair) == 0, "events %d and %d are not ordered", pair[0], pair[1]);
}

/* --- Events' form ----------------------------------------------------------------------------------------------------
 */

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

/* --- Contents --------------------------------------------------------------------------------------------------------
 */

/* What a unit of memory holds. The body counts for what does not persist. */
typedef struct content {
  int32_t buffer, version, section;
} content;

typedef struct memory {
  content *device, *host;
  int64_t n_device, n_host; /* units */
} memory;

static void set_content(content *units, int64_t n, int64_t address, int64_t bytes, content value) {
  for (int64_t u = address / UNIT; u < (address + bytes + UNIT - 1) / UNIT; u++) {
    ck_assert_int_lt(u, n);
    units[u] = value;
  }
}

static void assert_content(const content *units, int64_t address, int64_t bytes, content value) {
  for (int64_t u = address / UNIT; u < (address + bytes + UNIT - 1) / UNIT; u++) {
    ck_assert_msg(
        units[u].buffer == value.buffer && units[u].version == value.version && units[u].section == value.section,
        "buffer %d version %d expected, buffer %d version %d found", value.buffer, value.version, units[u].buffer,
        units[u].version);
  }
}

/* Versions of persistent buffers count on from body to body. */
static content content_of(const planc_trace *trace, int32_t buffer, int32_t version, int32_t section) {
  const planc_buffer *b = &trace->buffers[buffer];
  if (!(b->flags & PLANC_BUFFER_PERSISTENT)) return (content){buffer, version, section};
  int32_t body = section == 0 ? 0 : section - 1;
  return (content){buffer, b->last_version * body + version, 0};
}

/* Runs the events in file order. */
static void assert_contents(const run *r, const planc_residency *residencies) {
  const planc_trace *trace = r->trace;
  const planc_plan *plan = r->plan;
  memory m = {.n_device = plan->arena_bytes / UNIT + 1, .n_host = plan->host_arena_bytes / UNIT + 1};
  m.device = malloc((size_t)m.n_device * sizeof *m.device);
  m.host = malloc((size_t)m.n_host * sizeof *m.host);
  int32_t *delivered = calloc((size_t)trace->n_buffers * SECTIONS + 1, sizeof *delivered);
  int32_t *executed = calloc((size_t)trace->n_instances * SECTIONS + 1, sizeof *executed);
  ck_assert(m.device && m.host && delivered && executed);
  memset(m.device, -1, (size_t)m.n_device * sizeof *m.device);
  memset(m.host, -1, (size_t)m.n_host * sizeof *m.host);
  for (int32_t i = 0; i < r->n; i++) {
    const event *e = &r->events[i];
    const planc_instr *it = e->instr;
    if (it->op == PLANC_INSTR_exec) {
      const planc_instance *instance = &trace->instances[it->id];
      const planc_access *accesses = &trace->accesses[instance->first_access];
      const int32_t *uses = &plan->uses[it->first_use];
      for (int32_t k = 0; k < instance->n_accesses; k++) {
        ck_assert(uses[k] >= 0 || (it->recompute && accesses[k].effect));
        if (uses[k] < 0 || accesses[k].read < 0) continue;
        assert_content(m.device, r->address[uses[k]], r->bytes[uses[k]],
                       content_of(trace, accesses[k].buffer, accesses[k].read, e->section));
      }
      set_content(m.device, m.n_device, it->address, it->bytes, (content){-1, -1, -1});
      for (int32_t k = 0; k < instance->n_accesses; k++) {
        if (uses[k] < 0 || accesses[k].write < 0) continue;
        set_content(m.device, m.n_device, r->address[uses[k]], r->bytes[uses[k]],
                    content_of(trace, accesses[k].buffer, accesses[k].write, e->section));
      }
      if (!it->recompute) executed[it->id * SECTIONS + e->section]++;
    } else if (it->op == PLANC_INSTR_move && it->bytes > 0) {
      set_content(m.device, m.n_device, r->address[it->id], it->bytes, m.device[r->address[it->aux] / UNIT]);
    } else if (it->op == PLANC_INSTR_prefetch && it->bytes > 0) {
      content value = it->address == PLANC_USER ? content_of(trace, residencies[it->id].buffer, 0, e->section)
                                                : m.host[it->address / UNIT];
      if (it->address != PLANC_USER) assert_content(m.host, it->address, it->bytes, value);
      set_content(m.device, m.n_device, r->address[it->id], it->bytes, value);
    } else if (it->op == PLANC_INSTR_offload && it->bytes > 0) {
      int32_t buffer = residencies[it->id].buffer;
      if (it->address != PLANC_USER) {
        set_content(m.host, m.n_host, it->address, it->bytes, m.device[r->address[it->id] / UNIT]);
      } else if (e->section == SECTIONS - 1) {
        assert_content(m.device, r->address[it->id], it->bytes, content_of(trace, buffer, 0, e->section));
      } else {
        delivered[buffer * SECTIONS + e->section]++;
        assert_content(m.device, r->address[it->id], it->bytes,
                       content_of(trace, buffer, trace->buffers[buffer].last_version, e->section));
      }
    }
  }
  for (int32_t s = 1; s <= BODIES; s++) {
    for (int32_t i = 0; i < trace->n_instances; i++) ck_assert_int_eq(executed[i * SECTIONS + s], 1);
    for (int32_t b = 0; b < trace->n_buffers; b++) {
      bool leaves = trace->buffers[b].flags & PLANC_BUFFER_RESULT && trace->buffers[b].bytes > 0;
      ck_assert_int_eq(delivered[b * SECTIONS + s], leaves);
    }
  }
  free(m.device);
  free(m.host);
  free(delivered);
  free(executed);
}

/* Each arena is as long as its highest touch needs. */
static void assert_arenas(const run *r) {
  int64_t top[2] = {0, 0};
  for (int32_t i = 0; i < r->n_touches; i++) {
    if (r->touches[i].end > top[r->touches[i].host]) top[r->touches[i].host] = r->touches[i].end;
  }
  for (int32_t k = 0; k < r->plan->n_residencies; k++) {
    ck_assert_int_eq(r->address[k] % PLANC_ALIGNMENT, 0);
    if (r->address[k] + r->bytes[k] > top[0]) top[0] = r->address[k] + r->bytes[k];
  }
  ck_assert_int_eq(top[0], r->plan->arena_bytes);
  ck_assert_int_eq(top[1], r->plan->host_arena_bytes);
  ck_assert_int_eq(r->plan->predicted.host_peak_bytes, top[1]);
}

/* --- Tests
 * ------------------------------------------------------------------------------------------------------------ */

typedef struct tally {
  int32_t recomputes, offloads, prefetches, moves, lags, waits;
} tally;

static void count_kinds(const planc_plan *plan, tally *t) {
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *it = &plan->body.instrs[i];
    t->recomputes += it->op == PLANC_INSTR_exec && it->recompute;
    t->offloads += it->op == PLANC_INSTR_offload && it->address != PLANC_USER;
    t->prefetches += it->op == PLANC_INSTR_prefetch && it->address != PLANC_USER;
    t->moves += it->op == PLANC_INSTR_move;
    t->waits += it->op == PLANC_INSTR_wait;
    t->lags += it->op == PLANC_INSTR_wait && it->lag;
  }
}

static void make_case(int32_t seed, const randgraph_options *options, planc_graph **graph, randcase *c) {
  ck_ok(randgraph_make((uint64_t)seed, options, graph));
  ck_ok(randcase_make((uint64_t)seed, *graph, profile, 1 + seed % 3, c));
}

static void assert_plan(const planc_plan *plan, const randcase *c) {
  run r;
  start_run(plan, c->candidate.trace, &r);
  assert_events(plan);
  assert_ordered(&r);
  assert_contents(&r, planc_schedule_residencies(c->candidate.schedule));
  assert_arenas(&r);
  end_run(&r);
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
    ck_ok(planc_lower(&c.problem, &POLICY, &c.candidate, &plan));
    assert_plan(plan, &c);
    count_kinds(plan, &t);

    /* Half of the addresses stated: they stay, and the rest is placed around them. */
    int64_t *addresses = malloc((size_t)plan->n_residencies * sizeof *addresses);
    ck_assert_ptr_nonnull(addresses);
    uint64_t state = (uint64_t)seed;
    for (int32_t k = 0; k < plan->n_residencies; k++) addresses[k] = PLANC_BLANK;
    for (int32_t s = 0; s < 2; s++) {
      planc_section section = section_of(plan, s);
      for (int32_t i = 0; i < section.n; i++) {
        const planc_instr *it = &section.instrs[i];
        if (it->op == PLANC_INSTR_acquire && rand_chance(&state, 50)) addresses[it->id] = it->address;
      }
    }
    planc_plan_free(plan);
    randschedule_options stated = {.addresses = addresses};
    ck_ok(randschedule_make((uint64_t)seed, &stated, &c));
    ck_ok(planc_lower(&c.problem, &POLICY, &c.candidate, &plan));
    assert_plan(plan, &c);
    for (int32_t s = 0; s < 2; s++) {
      planc_section section = section_of(plan, s);
      for (int32_t i = 0; i < section.n; i++) {
        const planc_instr *it = &section.instrs[i];
        bool passes = it->id < plan->n_boundary && plan->boundary[it->id].home;
        if (it->op != PLANC_INSTR_acquire || addresses[it->id] == PLANC_BLANK || it->bytes == 0 || passes) continue;
        ck_assert_int_eq(it->address, addresses[it->id]);
      }
    }
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

/* Without any one of the waits that lowering found, some access is no longer ordered. */
START_TEST(no_wait_is_superfluous) {
  for (int32_t seed = 1000; seed < 1012; seed++) {
    randgraph_options options = {.max_ops = 12};
    planc_graph *graph;
    randcase c;
    planc_plan *plan;
    make_case(seed, &options, &graph, &c);
    ck_ok(randschedule_make((uint64_t)seed, &(randschedule_options){.no_awaits = true}, &c));
    ck_ok(planc_lower(&c.problem, &POLICY, &c.candidate, &plan));
    run r;
    start_run(plan, c.candidate.trace, &r);
    for (int32_t s = 1; s < SECTIONS; s += SECTIONS - 2) {
      planc_section section = section_of(plan, s);
      for (int32_t i = 0; i < section.n; i++) {
        if (section.instrs[i].op != PLANC_INSTR_wait) continue;
        int32_t pair[2];
        order_events(&r, &section.instrs[i]);
        ck_assert_msg(count_races(&r, pair) > 0, "seed %d: wait %d of section %d is superfluous", seed, i, s);
      }
    }
    end_run(&r);
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
    ck_ok(planc_lower(&c.problem, &POLICY, &c.candidate, &plans[k]));
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
  tcase_add_test(tests, no_wait_is_superfluous);
  tcase_add_test(tests, lowering_is_deterministic);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
