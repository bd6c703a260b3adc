/* Zico's shifts against a reading of the paper by hand: the steady period is followed moment by moment for several
 * periods. Nothing ever exceeds the budget, no iteration begins before the one before it ends, and none could begin at
 * a release before it does. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "planc/schedule.h"
#include "planner/colocate/interleave/shift.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

/* --- Jobs that are nothing but what they hold --------------------------------------------------------------------- */

enum { MOST_STEPS = 12, MOST_ITERATIONS = 3, JOBS = 2 };

typedef struct made {
  uint64_t seed;
  int32_t iterations[JOBS];
  pl_demand_step steps[JOBS][MOST_STEPS];
  pl_job_areas jobs[JOBS];
  pl_areas areas;
  int64_t at[JOBS * MOST_ITERATIONS][MOST_STEPS];
  pl_pass passes[JOBS * MOST_ITERATIONS];
  int32_t first[JOBS];
  pl_timing timing;
} made;

/* Holds more and more, then less and less, as feature maps do; commands are numbered as steps. */
static void make_job(made *m, int32_t job) {
  int32_t n = 2 * (int32_t)(1 + rand_below(&m->seed, MOST_STEPS / 2));
  int64_t held = 0, sizes[MOST_STEPS / 2];
  for (int32_t k = 0; k < n / 2; k++) {
    sizes[k] = 1 + rand_below(&m->seed, 9);
    held += sizes[k];
    m->steps[job][k] = (pl_demand_step){k, held};
  }
  m->jobs[job] = (pl_job_areas){.n_steps = n, .steps = m->steps[job], .most_bytes = held};
  for (int32_t k = n / 2; k < n; k++) {
    held -= sizes[n - 1 - k];
    m->steps[job][k] = (pl_demand_step){k, held};
  }
}

static void make_pass(made *m, int32_t job, int32_t pass) {
  int64_t at = 0;
  for (int32_t k = 0; k < m->jobs[job].n_steps; k++) {
    m->at[pass][k] = at;
    at += rand_below(&m->seed, 40);
  }
  m->passes[pass] = (pl_pass){.at_ns = m->at[pass], .ns = m->at[pass][m->jobs[job].n_steps - 1] + 1};
}

static void make(int seed, made *m) {
  *m = (made){.seed = (uint64_t)seed};
  m->timing = (pl_timing){.n_jobs = JOBS, .iterations = m->iterations, .first = m->first, .passes = m->passes};
  for (int32_t j = 0; j < JOBS; j++) {
    m->iterations[j] = 1 + (int32_t)rand_below(&m->seed, MOST_ITERATIONS);
    m->first[j] = m->timing.n_passes;
    make_job(m, j);
    for (int32_t k = 0; k < m->iterations[j]; k++) make_pass(m, j, m->timing.n_passes++);
  }
  m->areas = (pl_areas){.region_bytes = 1, .jobs = m->jobs};
}

/* --- Moment by moment --------------------------------------------------------------------------------------------- */

/* What a pass that starts at `start` holds at a moment. */
static int64_t held_by(const made *m, int32_t job, int32_t pass, int64_t start, int64_t now) {
  int64_t held = 0;
  for (int32_t k = 0; k < m->jobs[job].n_steps; k++)
    if (start + m->at[pass][k] <= now) held = m->steps[job][k].bytes;
  return held;
}

/* What the jobs hold at a moment of the steady run. */
static int64_t held_at(const made *m, int64_t now) {
  int64_t sum = 0;
  for (int32_t j = 0; j < JOBS; j++) {
    for (int32_t p = m->first[j]; p < m->first[j] + m->iterations[j]; p++)
      for (int64_t q = -2; q <= 4; q++) sum += held_by(m, j, p, q * m->timing.period_ns + m->passes[p].start_ns, now);
  }
  return sum;
}

static void assert_within(const made *m, int64_t budget) {
  for (int64_t now = 0; now < 2 * m->timing.period_ns; now++) ck_assert_int_le(held_at(m, now), budget);
}

static void assert_in_turn(const made *m) {
  for (int32_t j = 0; j < JOBS; j++) {
    const pl_pass *passes = &m->passes[m->first[j]];
    ck_assert_int_ge(passes[0].start_ns, 0);
    for (int32_t k = 0; k + 1 < m->iterations[j]; k++)
      ck_assert_int_le(passes[k].start_ns + passes[k].ns, passes[k + 1].start_ns);
    int32_t last = m->iterations[j] - 1;
    ck_assert_int_le(passes[last].start_ns + passes[last].ns, m->timing.period_ns + passes[0].start_ns);
  }
  ck_assert_int_eq(m->passes[m->first[0]].start_ns, 0);
}

/* The most that a pass holds alone: what it gives back at the moment when it takes it, it does not hold. */
static int64_t most_held(const made *m) {
  int64_t most = 0;
  for (int32_t j = 0; j < JOBS; j++)
    for (int32_t p = m->first[j]; p < m->first[j] + m->iterations[j]; p++)
      for (int64_t now = 0; now < m->passes[p].ns; now++)
        if (held_by(m, j, p, 0, now) > most) most = held_by(m, j, p, 0, now);
  return most;
}

static const int32_t both[JOBS] = {0, 1};

START_TEST(shifts_keep_the_budget) {
  static made m;
  bool fits;
  make(_i, &m);
  int64_t least = most_held(&m);
  int64_t all = m.jobs[0].most_bytes + m.jobs[1].most_bytes, alone = 0, longest = 0, before = INT64_MAX;
  for (int32_t j = 0; j < JOBS; j++) {
    int64_t ns = 0;
    for (int32_t p = m.first[j]; p < m.first[j] + m.iterations[j]; p++) ns += m.passes[p].ns;
    alone += ns;
    longest = ns > longest ? ns : longest;
  }
  for (int64_t budget = least; budget <= all; budget++) {
    ok(pl_shift(&m.timing, &m.areas, both, JOBS, budget, &fits));
    ck_assert(fits);
    assert_within(&m, budget);
    assert_in_turn(&m);
    ck_assert_int_ge(m.timing.period_ns, longest);
    ck_assert_int_le(m.timing.period_ns, 2 * alone);
    before = m.timing.period_ns;
  }
  ck_assert_int_eq(before, longest); /* with room for both nothing is shifted but by the longer job */
  ok(pl_shift(&m.timing, &m.areas, both, JOBS, least - 1, &fits));
  ck_assert(!fits);
}
END_TEST

/* Periods that stand apart are as long as what is in them. */
START_TEST(nothing_reaches_into_the_next_period) {
  static made m;
  bool fits;
  make(_i, &m);
  m.timing.apart = true;
  for (int64_t budget = most_held(&m); budget <= m.jobs[0].most_bytes + m.jobs[1].most_bytes; budget++) {
    int64_t end = 0;
    ok(pl_shift(&m.timing, &m.areas, both, JOBS, budget, &fits));
    ck_assert(fits);
    assert_within(&m, budget);
    assert_in_turn(&m);
    for (int32_t p = 0; p < m.timing.n_passes; p++)
      if (m.passes[p].start_ns + m.passes[p].ns > end) end = m.passes[p].start_ns + m.passes[p].ns;
    ck_assert_int_eq(m.timing.period_ns, end);
  }
}
END_TEST

/* Two jobs that are alike, of one triangle each: of the height 4 in a budget of 6 the second begins when the first has
 * given back as much as it lacks. */
START_TEST(a_shift_is_to_a_release) {
  static made m;
  static const int64_t held[] = {1, 2, 3, 4, 3, 2, 1, 0};
  bool fits;
  m = (made){.timing = {.n_jobs = JOBS, .iterations = m.iterations, .first = m.first, .passes = m.passes}};
  m.timing.n_passes = JOBS;
  m.areas.jobs = m.jobs;
  for (int32_t j = 0; j < JOBS; j++) {
    m.iterations[j] = 1;
    m.first[j] = j;
    m.jobs[j] = (pl_job_areas){.n_steps = 8, .steps = m.steps[j], .most_bytes = 4};
    for (int32_t k = 0; k < 8; k++) {
      m.steps[j][k] = (pl_demand_step){k, held[k]};
      m.at[j][k] = 10 * k;
    }
    m.passes[j] = (pl_pass){.at_ns = m.at[j], .ns = 70};
  }
  static const struct {
    int64_t budget, start, period;
  } cases[] = {{8, 0, 70}, {7, 10, 70}, {6, 20, 70}, {5, 30, 70}, {4, 40, 80}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    ok(pl_shift(&m.timing, &m.areas, both, JOBS, cases[c].budget, &fits));
    ck_assert(fits);
    ck_assert_msg(m.timing.period_ns == cases[c].period && m.passes[1].start_ns == cases[c].start,
                  "budget %lld: %lld of %lld", (long long)cases[c].budget, (long long)m.passes[1].start_ns,
                  (long long)m.timing.period_ns);
  }
}
END_TEST

/* Of one iteration each in a period, the second job's first one is the earliest that fits beside the first job's. */
START_TEST(no_earlier_moment_would_do) {
  static made m;
  bool fits;
  make(_i, &m);
  m.iterations[0] = m.iterations[1] = 1;
  m.first[1] = m.timing.n_passes - 1;
  int64_t least = most_held(&m), all = m.jobs[0].most_bytes + m.jobs[1].most_bytes;
  for (int64_t budget = least; budget <= all; budget++) {
    ok(pl_shift(&m.timing, &m.areas, both, JOBS, budget, &fits));
    ck_assert(fits);
    int64_t start = 0;
    for (bool good = false; !good; start += !good) {
      good = true;
      for (int64_t now = start; good && now < m.passes[0].ns; now++)
        good = held_by(&m, 0, 0, 0, now) + held_by(&m, 1, m.first[1], start, now) <= budget;
    }
    /* Later in the run the first job's next iteration may wait for the second, which is then shifted less or more. */
    ck_assert_int_le(m.passes[m.first[1]].start_ns, m.passes[0].ns + m.passes[m.first[1]].ns);
    if (m.passes[m.first[1]].ns + start <= m.passes[0].ns) ck_assert_int_eq(m.passes[m.first[1]].start_ns, start);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("shift");
  TCase *tests = tcase_create("tests");
  tcase_set_timeout(tests, 0);
  tcase_add_loop_test(tests, shifts_keep_the_budget, 0, 60);
  tcase_add_loop_test(tests, no_earlier_moment_would_do, 0, 60);
  tcase_add_loop_test(tests, nothing_reaches_into_the_next_period, 0, 60);
  tcase_add_test(tests, a_shift_is_to_a_release);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
