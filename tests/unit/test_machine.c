/* The machine as a value: random programs, stopped anywhere, copied and run on; and programs of which a part is edited
 * that a state has not come to. */
#include <check.h>
#include <string.h>

#include "planner/simulate/sim_machine.h"
#include "runtime/random.h"
#include "tests/support/unit.h"

enum { STREAMS = 3, MOST_STEPS = 40, BODIES = 4, MOST_ENDS = 4096 };

/* What a run shows, in order. */
typedef struct ended {
  int32_t stage, step;
  int64_t start, end;
} ended;
typedef struct shown {
  ended ends[MOST_ENDS];
  int32_t n;
} shown;

static void note(void *user, int32_t stage, int32_t step, int64_t start, int64_t end) {
  shown *l = user;
  ck_assert_int_lt(l->n, MOST_ENDS);
  memset(&l->ends[l->n], 0, sizeof l->ends[l->n]);
  l->ends[l->n++] = (ended){stage, step, start, end};
}

typedef struct fixture {
  pl_arena arena;
  sim_program program;
  sim_step *body;
  sim_stream streams[2 * STREAMS];
} fixture;

/* Of one GPU: what copies in and what copies out, against each other. */
static const int32_t gpu_0[] = {0}, against_in[] = {1}, against_out[] = {0};
static const sim_engine engines[] = {
    {.bus = 0, .sharers = 1, .n_gpus = 1, .gpus = gpu_0, .n_against = 1, .against = against_in},
    {.bus = 1, .sharers = 1, .n_gpus = 1, .gpus = gpu_0, .n_against = 1, .against = against_out}};

/* A job's streams: one for kernels, one on each engine. */
static sim_stream stream_of(int32_t s) {
  int32_t kind = s % STREAMS;
  return (sim_stream){.computes = kind == 0, .job = s / STREAMS, .on = kind == 0 ? 0 : kind - 1};
}

static uint64_t draw(uint64_t seed, uint64_t *n, uint64_t below) {
  return rt_random(seed, (*n)++) % below;
}

/* Of one or two jobs, each with a stream for kernels and one for copies in each direction. Event e is recorded by step
 * e of the body, if that is a record; the prologue records all. */
static void make_random(fixture *f, uint64_t seed) {
  uint64_t n = 0;
  int32_t jobs = 1 + (int32_t)draw(seed, &n, 2), n_body = 1 + (int32_t)draw(seed, &n, MOST_STEPS), n_events = 0;
  sim_step *prologue;
  *f = (fixture){
      .program = {.n_jobs = jobs, .n_streams = STREAMS * jobs, .n_gpus = 1, .n_engines = 2, .engines = engines}};
  f->program.device = (planc_plan_device){.launch_ns = (int64_t)draw(seed, &n, 3) * 40,
                                          .in_flight = 1 + (int32_t)draw(seed, &n, 12),
                                          .duplex_ppm = 700000,
                                          .slowdown_ppm = 50000};
  f->program.captured = draw(seed, &n, 4) == 0;
  f->program.apart = draw(seed, &n, 4) == 0;
  for (int32_t s = 0; s < f->program.n_streams; s++) f->streams[s] = stream_of(s);
  f->program.streams = f->streams;
  ok(PL_NEW(&f->arena, &f->body, n_body));
  ok(PL_NEW(&f->arena, &prologue, n_body));
  for (int32_t i = 0; i < n_body; i++) {
    sim_step *step = &f->body[i];
    step->stream = (int32_t)draw(seed, &n, (uint64_t)f->program.n_streams);
    uint64_t what = draw(seed, &n, 4);
    if (what == 0) {
      *step = (sim_step){.kind = SIM_RECORD, .stream = step->stream, .event = n_events};
      prologue[n_events] = *step;
      n_events++;
    } else if (what == 1 && n_events > 0) {
      step->kind = SIM_WAIT;
      step->event = (int32_t)draw(seed, &n, (uint64_t)n_events);
    } else {
      int32_t kind = step->stream % STREAMS;
      step->kind = kind == 0 ? SIM_KERNEL : SIM_COPY;
      step->route = kind == 1 ? PLANC_ROUTE_H2D : PLANC_ROUTE_D2H;
      step->time_ns = (int64_t)draw(seed, &n, 300);
      step->busy_ppm = kind == 0 ? 300000 + (int32_t)draw(seed, &n, 700001) : 0;
      step->op = kind == 0;
    }
  }
  f->program.n_events = n_events;
  f->program.sections[SIM_PROLOGUE] = (sim_section){.steps = prologue, .n = n_events};
  f->program.sections[SIM_BODY] = (sim_section){.steps = f->body, .n = n_body};
  ok(sim_prepare(&f->program, &f->arena));
}

/* Runs a state on for at most `steps` times; how many it took. */
static int32_t run_on(const fixture *f, sim_state *state, int32_t steps, shown *out) {
  bool over = false;
  int32_t taken = 0;
  for (; taken < steps && !over; taken++)
    ok(sim_advance(&f->program, state, &(sim_observer){.ended = note, .user = out}, &over));
  return taken;
}

static sim_state begun(fixture *f) {
  sim_state state;
  ok(sim_state_make(&f->program, &f->arena, &state));
  state.last_body = BODIES;
  return state;
}

static void assert_same(const shown *a, const shown *b, const sim_state *x, const sim_state *y) {
  ck_assert_int_eq(a->n, b->n);
  ck_assert_mem_eq(a->ends, b->ends, (size_t)a->n * sizeof *a->ends);
  ck_assert_int_eq(x->now, y->now);
  ck_assert_mem_eq(x->stall_ns, y->stall_ns, sizeof x->stall_ns);
  ck_assert_int_eq(x->n_closed, y->n_closed);
  for (int32_t k = 0; k < x->n_closed; k++) {
    ck_assert_int_eq(x->stages[k].end, y->stages[k].end);
    ck_assert_int_eq(x->stages[k].lost_ns, y->stages[k].lost_ns);
    ck_assert_int_eq(x->stages[k].misses, y->stages[k].misses);
  }
}

static shown whole, parted, thrown;

/* By stage and step: when its launch ended; by stage the last end in it. */
typedef struct launches {
  const fixture *f;
  int64_t until[BODIES + 2][MOST_STEPS];
  int64_t last_ns[BODIES + 2];
  int32_t n, n_ended;
} launches;

static void note_launch(void *user, int32_t stage, int32_t step, int64_t start, int64_t end) {
  launches *l = user;
  bool captured = l->f->program.captured;
  if (captured) ck_assert(end - start == 0 || end - start == l->f->program.device.launch_ns);
  if (!captured) ck_assert_int_eq(end - start, l->f->program.device.launch_ns);
  if (l->f->program.apart) ck_assert_int_ge(start, l->last_ns[stage - 1]);
  ck_assert_int_eq(l->until[stage][step], -1);
  l->until[stage][step] = end;
  l->n++;
}

static void note_ended(void *user, int32_t stage, int32_t step, int64_t start, int64_t end) {
  launches *l = user;
  ck_assert_int_ge(l->until[stage][step], 0);
  ck_assert_int_ge(start, l->until[stage][step]);
  l->last_ns[stage] = end;
  l->n_ended++;
}

/* Each step is launched once, and before it begins; where bodies are apart, when nothing of the one before runs. */
START_TEST(launches_are_told) {
  for (uint64_t seed = 0; seed < 400; seed++) {
    static launches l;
    fixture f;
    bool over = false;
    make_random(&f, seed);
    sim_state state = begun(&f);
    l = (launches){.f = &f};
    for (int32_t p = 0; p < BODIES + 2; p++)
      for (int32_t i = 0; i < MOST_STEPS; i++) l.until[p][i] = -1;
    const sim_observer observer = {.ended = note_ended, .launched = note_launch, .user = &l};
    while (!over) ok(sim_advance(&f.program, &state, &observer, &over));
    ck_assert_int_eq(l.n, l.n_ended);
    ck_assert_int_eq(l.n, BODIES * f.program.sections[SIM_BODY].n_timed);
    pl_arena_free(&f.arena);
  }
}
END_TEST

/* Stopped after so many steps, copied over a state that has gone elsewhere, and run on. */
START_TEST(a_copy_goes_on_as_its_origin) {
  for (uint64_t seed = 0; seed < 400; seed++) {
    fixture f;
    make_random(&f, seed);
    sim_state one = begun(&f), two = begun(&f), copy = begun(&f);
    whole.n = parted.n = thrown.n = 0;
    int32_t steps = run_on(&f, &one, INT32_MAX, &whole);
    for (int32_t at = 0; at <= steps; at += 1 + steps / 5) {
      sim_state_begin(&f.program, &two);
      two.last_body = BODIES;
      parted.n = 0;
      ck_assert_int_eq(run_on(&f, &two, at, &parted), at);
      sim_state_copy(&f.program, &copy, &two);
      run_on(&f, &two, 3, &thrown);
      thrown.n = 0;
      run_on(&f, &copy, INT32_MAX, &parted);
      assert_same(&whole, &parted, &one, &copy);
    }
    pl_arena_free(&f.arena);
  }
}
END_TEST

/* All that was begun is complete: each stage's kernels and copies, each in its time. */
START_TEST(everything_runs_once_in_its_order) {
  for (uint64_t seed = 0; seed < 400; seed++) {
    fixture f;
    int32_t last[2 * STREAMS], n_timed[BODIES + 2] = {0};
    make_random(&f, seed);
    sim_state state = begun(&f);
    whole.n = 0;
    run_on(&f, &state, INT32_MAX, &whole);
    ck_assert_int_eq(state.n_closed, BODIES + 2);
    for (int32_t s = 0; s < f.program.n_streams; s++) last[s] = -1;
    for (int32_t k = 0; k < whole.n; k++) {
      const ended *e = &whole.ends[k];
      const sim_step *step = &f.body[e->step];
      int32_t number = e->stage * f.program.sections[SIM_BODY].n + e->step;
      ck_assert_int_gt(number, last[step->stream]);
      last[step->stream] = number;
      ck_assert_int_ge(e->end - e->start, step->time_ns);
      if (k > 0) ck_assert_int_ge(e->end, whole.ends[k - 1].end);
      n_timed[e->stage]++;
    }
    for (int32_t k = 1; k <= BODIES; k++) ck_assert_int_eq(n_timed[k], f.program.sections[SIM_BODY].n_timed);
    pl_arena_free(&f.arena);
  }
}
END_TEST

enum { MANY = 48, NEAR_END = 8 };

/* Where the ends of two bodies are alike, what lay between them comes again until dispatchers come to the end. */
START_TEST(what_is_alike_repeats_itself) {
  int32_t n_alike = 0, n_late = 0;
  for (uint64_t seed = 0; seed < 600; seed++) {
    fixture f;
    sim_state ends[MANY + 1];
    bool over = false;
    make_random(&f, seed);
    sim_state state = begun(&f);
    for (int32_t k = 0; k <= MANY; k++) ends[k] = begun(&f);
    state.last_body = MANY;
    while (!over) {
      int32_t closed = state.n_closed;
      ok(sim_advance(&f.program, &state, NULL, &over));
      for (int32_t k = closed; k < state.n_closed && k <= MANY; k++) sim_state_copy(&f.program, &ends[k], &state);
    }
    int32_t from = 0, until = 1;
    bool alike = false;
    while (!alike && ++until < MANY - NEAR_END)
      for (from = until - 1; from > 0; from--)
        if ((alike = sim_is_repeated(&f.program, &ends[from], from, &ends[until], until))) break;
    n_alike += alike;
    n_late += alike && until > 4;
    int64_t cycle = state.stages[until].end - state.stages[from].end;
    for (int32_t k = from; alike && k + until - from < MANY - NEAR_END; k++)
      ck_assert_msg(state.stages[k + until - from].end - state.stages[k].end == cycle,
                    "program %d: %d to %d take %lld, %d to %d %lld", (int)seed, from, until, (long long)cycle, k,
                    k + until - from, (long long)(state.stages[k + until - from].end - state.stages[k].end));
    pl_arena_free(&f.arena);
  }
  ck_assert_int_gt(n_alike, 500);
  ck_assert_int_gt(n_late, 20);
}
END_TEST

/* A dispatcher in the epilogue will launch other things than one in a body, wherever both are: here both sections are
 * the same. */
START_TEST(the_epilogue_is_like_no_body) {
  int32_t n_compared = 0;
  for (uint64_t seed = 0; seed < 600; seed++) {
    fixture f;
    bool over = false;
    make_random(&f, seed);
    f.program.sections[SIM_EPILOGUE] = f.program.sections[SIM_BODY];
    sim_state state = begun(&f), before = begun(&f);
    while (!over) {
      int32_t closed = state.n_closed, body = closed;
      ok(sim_advance(&f.program, &state, NULL, &over));
      if (state.n_closed != closed + 1 || body == 0 || body > BODIES) continue;
      const sim_dispatcher *first = &state.dispatchers[f.program.dispatchers[0]];
      if (body > 1 && first->section == SIM_EPILOGUE) {
        ck_assert(!sim_is_repeated(&f.program, &before, body - 1, &state, body));
        n_compared++;
      }
      sim_state_copy(&f.program, &before, &state);
    }
    pl_arena_free(&f.arena);
  }
  ck_assert_int_gt(n_compared, 100);
}
END_TEST

enum { CHAIN = 1000, KEPT = 900, QUEUE = 8 };

/* A chain of kernels, each other one behind a copy. */
static void make_chain(fixture *f) {
  uint64_t n = 0;
  *f = (fixture){
      .program = {
          .n_jobs = 1, .n_streams = STREAMS, .n_gpus = 1, .n_engines = 2, .engines = engines, .n_events = CHAIN}};
  f->program.device =
      (planc_plan_device){.launch_ns = 10, .in_flight = QUEUE, .duplex_ppm = 700000, .slowdown_ppm = 50000};
  for (int32_t s = 0; s < STREAMS; s++) f->streams[s] = stream_of(s);
  f->program.streams = f->streams;
  ok(PL_NEW(&f->arena, &f->body, 4 * CHAIN));
  for (int32_t i = 0; i < CHAIN; i++) {
    int64_t time_ns = 100 + (int64_t)draw(7, &n, 200);
    f->body[4 * i] = (sim_step){.kind = SIM_COPY, .stream = i % 2 ? -1 : 1, .time_ns = time_ns};
    f->body[4 * i + 1] = (sim_step){.kind = SIM_RECORD, .stream = 1, .event = i};
    f->body[4 * i + 2] = (sim_step){.kind = SIM_WAIT, .stream = 0, .event = i};
    f->body[4 * i + 3] = (sim_step){.kind = SIM_KERNEL, .stream = 0, .time_ns = time_ns, .busy_ppm = 1000000};
  }
  f->program.sections[SIM_BODY] = (sim_section){.steps = f->body, .n = 4 * CHAIN};
  ok(sim_prepare(&f->program, &f->arena));
}

/* Editing the last tenth and running on from where its dispatcher had not come to it costs a tenth, and the part of a
 * queue. */
START_TEST(a_tenth_costs_a_tenth) {
  fixture f;
  bool over = false;
  int32_t steps = 0, again;
  make_chain(&f);
  sim_state state = begun(&f), kept = begun(&f), fresh = begun(&f);
  state.last_body = kept.last_body = fresh.last_body = 1;
  for (; !over; steps++) {
    if (state.dispatchers[0].stage == 0 ||
        (state.dispatchers[0].stage == 1 && state.dispatchers[0].launched < 4 * (KEPT - 1)))
      sim_state_copy(&f.program, &kept, &state);
    ok(sim_advance(&f.program, &state, NULL, &over));
  }
  ck_assert_int_eq(kept.dispatchers[0].stage, 1);
  for (int32_t i = KEPT; i < CHAIN; i++) f.body[4 * i + 3].time_ns += 50 + i % 7;
  ok(sim_list_steps(&f.program, &f.arena, &f.program.sections[SIM_BODY]));
  whole.n = parted.n = 0;
  run_on(&f, &fresh, INT32_MAX, &whole);
  again = run_on(&f, &kept, INT32_MAX, &parted);
  ck_assert_int_eq(kept.now, fresh.now);
  ck_assert_int_ne(kept.now, state.now);
  ck_assert_mem_eq(parted.ends, &whole.ends[whole.n - parted.n], (size_t)parted.n * sizeof *parted.ends);
  ck_assert_int_ge(again, 1);
  ck_assert_int_le(again * 100LL, steps * (10LL + 100 * (QUEUE + 1) / CHAIN + 1));
  pl_arena_free(&f.arena);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("machine");
  TCase *tests = tcase_create("all");
  tcase_add_test(tests, launches_are_told);
  tcase_add_test(tests, a_copy_goes_on_as_its_origin);
  tcase_add_test(tests, everything_runs_once_in_its_order);
  tcase_add_test(tests, what_is_alike_repeats_itself);
  tcase_add_test(tests, the_epilogue_is_like_no_body);
  tcase_add_test(tests, a_tenth_costs_a_tenth);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
