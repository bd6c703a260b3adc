/* Gaps of plans (planc/plan_gaps.h) against what the body says of each by itself: which ops use the data, in which
 * residencies, what is live at every op, and when things run. Plans are those of random graphs by every policy, for one
 * GPU and for several, and of random schedules. */
#include <check.h>
#include <stdlib.h>

#include "planc/plan_gaps.h"
#include "planc/policy.h"
#include "planc/simulate.h"
#include "planc/timeline.h"
#include "tests/support/randplan.h"
#include "tests/support/unit.h"

static planc_profile *profile;
static void read_profile(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
}
static void free_profile(void) {
  planc_profile_free(profile);
}

typedef struct body {
  const planc_plan *plan;
  planc_trace *trace;
  planc_span *spans;   /* by instruction */
  int64_t *free_bytes; /* by instruction, of execs */
  int64_t period_ns;
  int32_t *buffer_of; /* by residency; -1 = it is not on the device */
  int32_t *filled;    /* by residency: the copy into it from another memory, -1 = none */
  int32_t *first;     /* by residency: the one whose data came to it by moves on the device, itself without moves */
} body;

static const planc_instr *at(const body *b, int32_t instr) {
  return &b->plan->body.instrs[instr];
}

static void see(void *user, const planc_plan *plan, const planc_instr *instr, int64_t start_ns, int64_t end_ns) {
  body *b = user;
  if (instr >= plan->body.instrs && instr < plan->body.instrs + plan->body.n)
    b->spans[instr - plan->body.instrs] = (planc_span){start_ns, end_ns};
}

static bool is_device(const planc_plan *plan, int32_t memory) {
  return plan->memories[memory].kind == PLANC_MEMORY_DEVICE;
}

static body read_body(const planc_plan *plan) {
  const planc_memory *device = planc_plan_memory(plan, PLANC_MEMORY_DEVICE);
  planc_simulation simulation;
  body b = {.plan = plan};
  ok(planc_expand(plan->jobs, plan->n_jobs, &b.trace));
  b.spans = calloc((size_t)plan->body.n + 1, sizeof *b.spans);
  b.free_bytes = calloc((size_t)plan->body.n + 1, sizeof *b.free_bytes);
  b.buffer_of = calloc((size_t)plan->n_residencies + 1, sizeof *b.buffer_of);
  b.filled = calloc((size_t)plan->n_residencies + 1, sizeof *b.filled);
  b.first = calloc((size_t)plan->n_residencies + 1, sizeof *b.first);
  ok(planc_simulate(plan, &(planc_simulate_options){.visitor = see, .user = &b, .settled = true}, &simulation));
  b.period_ns = simulation.period_ns;
  int64_t live = 0;
  for (int32_t r = 0; r < plan->n_residencies; r++) b.buffer_of[r] = b.filled[r] = -1, b.first[r] = r;
  for (int32_t r = 0; r < plan->n_boundary; r++) {
    if (!is_device(plan, plan->boundary[r].memory)) continue;
    b.buffer_of[r] = plan->boundary[r].buffer;
    live += b.trace->buffers[b.buffer_of[r]].bytes;
  }
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = at(&b, i);
    if (instr->op == PLANC_INSTR_acquire && is_device(plan, instr->memory)) {
      b.buffer_of[instr->id] = instr->aux;
      live += b.trace->buffers[instr->aux].bytes;
    } else if (instr->op == PLANC_INSTR_release && b.buffer_of[instr->id] >= 0) {
      live -= b.trace->buffers[b.buffer_of[instr->id]].bytes;
    } else if (instr->op == PLANC_INSTR_exec) {
      b.free_bytes[i] = device->budget_bytes - device->reserved_bytes - live - instr->bytes;
    } else if (instr->op == PLANC_INSTR_copy && instr->id >= 0 && b.buffer_of[instr->id] >= 0) {
      bool from_device = instr->aux >= 0 && b.buffer_of[instr->aux] >= 0;
      if (from_device) b.first[instr->id] = b.first[instr->aux];
      if (!from_device) b.filled[instr->id] = i;
    }
  }
  return b;
}

static void free_body(body *b) {
  planc_trace_free(b->trace);
  free(b->spans);
  free(b->free_bytes);
  free(b->buffer_of);
  free(b->filled);
  free(b->first);
}

typedef struct used {
  bool is, reads, restores; /* restores: an op that runs again writes it anew */
  int32_t residency;        /* the first of those that hand its data on */
} used;

/* What an instruction does with a buffer. */
static used use_of(const body *b, int32_t i, int32_t buffer) {
  const planc_instr *instr = at(b, i);
  if (instr->op != PLANC_INSTR_exec) return (used){0};
  const planc_instance *instance = &b->trace->instances[instr->id];
  for (int32_t k = 0; k < instance->n_accesses; k++) {
    const planc_access *access = &b->trace->accesses[instance->first_access + k];
    int32_t residency = b->plan->uses[instr->first_use + k];
    if (access->buffer == buffer && residency >= 0)
      return (used){true, access->read >= 0, instr->recompute && access->write >= 0 && access->read < 0,
                    b->first[residency]};
  }
  return (used){0};
}

/* By instruction, into `held`: in how many residencies on the device a buffer is while it runs. */
static void count_held(const body *b, int32_t buffer, int32_t *held) {
  int32_t n = 0;
  for (int32_t r = 0; r < b->plan->n_boundary; r++) n += b->buffer_of[r] == buffer;
  for (int32_t i = 0; i < b->plan->body.n; i++) {
    const planc_instr *instr = at(b, i);
    bool is_of_it =
        (instr->op == PLANC_INSTR_acquire || instr->op == PLANC_INSTR_release) && b->buffer_of[instr->id] == buffer;
    if (is_of_it) n += instr->op == PLANC_INSTR_acquire ? 1 : -1;
    held[i] = n;
  }
}

/* The instruction behind one, around the period. */
static int32_t behind(const body *b, int32_t i) {
  return i + 1 < b->plan->body.n ? i + 1 : 0;
}

/* What is kept is on the device all along. */
static void assert_held(const body *b, const planc_plan_gap *gap) {
  int32_t *held = calloc((size_t)b->plan->body.n, sizeof *held);
  bool all_along = true;
  count_held(b, gap->buffer, held);
  for (int32_t i = gap->from; i != gap->to; i = behind(b, i)) all_along &= held[i] > 0;
  ck_assert(gap->way != PLANC_GAP_KEPT || all_along);
  free(held);
}

static void assert_gap(const body *b, const planc_plan_gap *gap) {
  used from = use_of(b, gap->from, gap->buffer), to = use_of(b, gap->to, gap->buffer);
  const planc_buffer *buffer = &b->trace->buffers[gap->buffer];
  bool around = gap->to <= gap->from, is_again = false;
  assert_held(b, gap);
  ck_assert(from.is && to.is && to.reads);
  ck_assert_str_eq(gap->name, planc_trace_buffer_name(b->trace, gap->buffer));
  ck_assert_str_eq(gap->from_op, planc_trace_op(b->trace, at(b, gap->from)->id)->name);
  ck_assert_str_eq(gap->to_op, planc_trace_op(b->trace, at(b, gap->to)->id)->name);
  ck_assert_int_eq(gap->bytes, buffer->bytes);
  ck_assert_int_eq(gap->job, buffer->job);
  if (around) ck_assert(buffer->flags & PLANC_BUFFER_PERSISTENT);
  /* Of ops on several streams one may begin before the other has ended. */
  int64_t between_ns = b->spans[gap->to].start_ns - b->spans[gap->from].end_ns + (around ? b->period_ns : 0);
  ck_assert_int_eq(gap->between_ns, between_ns > 0 ? between_ns : 0);
  int64_t least = INT64_MAX;
  for (int32_t i = behind(b, gap->from); i != gap->to; i = behind(b, i)) {
    used other = use_of(b, i, gap->buffer);
    if (at(b, i)->op == PLANC_INSTR_exec) least = b->free_bytes[i] < least ? b->free_bytes[i] : least;
    if (!other.is) continue;
    /* Only what restores it for `to`, or for nothing, uses it in between. */
    ck_assert(at(b, i)->recompute);
    is_again |= other.restores && other.residency == to.residency;
  }
  ck_assert_int_eq(gap->way == PLANC_GAP_AGAIN, is_again);
  bool stayed = from.residency == to.residency;
  if (gap->way == PLANC_GAP_KEPT) {
    ck_assert(stayed || around || b->filled[to.residency] < 0);
    ck_assert_int_eq(gap->free_bytes, least);
    ck_assert_int_eq(gap->away_ns, 0);
    ck_assert_int_eq(gap->waited_ns, 0);
  } else {
    ck_assert(!stayed || around);
    ck_assert_int_ge(gap->free_bytes, gap->free_op ? least : 0);
    ck_assert_int_le(gap->away_ns, gap->between_ns);
    ck_assert_int_ge(gap->away_ns, 0);
    ck_assert_int_le(gap->waited_ns, gap->between_ns);
  }
  if (gap->way == PLANC_GAP_COPIED && !around) ck_assert_int_ge(b->filled[to.residency], 0);
  if (gap->way == PLANC_GAP_AGAIN) ck_assert_int_ge(gap->again_ns, 0);
}

/* How many gaps a buffer has: uses that read it and are not next to the one before. */
static int32_t count_gaps(const body *b, int32_t buffer) {
  int32_t n = 0, position = 0, first = -1, last = -1, restored = -1, n_execs = 0;
  for (int32_t i = 0; i < b->plan->body.n; i++) n_execs += at(b, i)->op == PLANC_INSTR_exec;
  for (int32_t i = 0; i < b->plan->body.n; i++) {
    if (at(b, i)->op != PLANC_INSTR_exec) continue;
    used use = use_of(b, i, buffer);
    const planc_instance *instance = &b->trace->instances[at(b, i)->id];
    bool writes = false;
    for (int32_t k = 0; k < instance->n_accesses; k++) {
      const planc_access *access = &b->trace->accesses[instance->first_access + k];
      writes |= access->buffer == buffer && access->write >= 0;
    }
    if (use.restores || (use.is && at(b, i)->recompute && writes && use.residency == restored)) {
      restored = use.residency;
    } else if (use.is) {
      n += last >= 0 && use.reads && last + 1 < position;
      if (first < 0) first = position;
      last = position;
      restored = -1;
    }
    position++;
  }
  bool goes_on = b->trace->buffers[buffer].flags & PLANC_BUFFER_PERSISTENT && first >= 0 && n_execs > 1;
  return n + (goes_on && (last + 1) != n_execs + first);
}

START_TEST(gaps_are_what_the_body_says) {
  planc_graph *graph;
  planc_plan *plan;
  planc_plan_gaps *gaps;
  randplan_make(_i, profile, &graph, &plan);
  body b = read_body(plan);
  ok(planc_plan_gaps_of(plan, &gaps));
  int32_t expected = 0, *found = calloc((size_t)b.trace->n_buffers + 1, sizeof *found);
  for (int32_t g = 0; g < gaps->n; g++) {
    assert_gap(&b, &gaps->gaps[g]);
    found[gaps->gaps[g].buffer]++;
    if (g == 0) continue;
    const planc_plan_gap *one = &gaps->gaps[g - 1], *other = &gaps->gaps[g];
    ck_assert((double)one->bytes * (double)one->between_ns >=
              (double)other->bytes * (double)other->between_ns * 0.999999);
  }
  for (int32_t k = 0; k < b.trace->n_buffers; k++) {
    int32_t n = count_gaps(&b, k);
    expected += n;
    ck_assert_int_eq(found[k], n);
  }
  ck_assert_int_eq(gaps->n, expected);
  free(found);
  planc_plan_gaps_free(gaps);
  free_body(&b);
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("plan_gaps");
  TCase *gaps = tcase_create("gaps");
  tcase_add_unchecked_fixture(gaps, read_profile, free_profile);
  tcase_add_loop_test(gaps, gaps_are_what_the_body_says, 0, RANDPLANS);
  suite_add_tcase(suite, gaps);
  return run_suite(suite);
}
