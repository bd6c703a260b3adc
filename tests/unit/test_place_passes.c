/* Places for a period of a mix, handed out as time goes on or all at once, against the circle of the period moment by
 * moment: what lives at one time lies apart, in the bytes that there are, and what is private is apart from all. */
#include <check.h>
#include <stdlib.h>

#include "planner/colocate/jobs/by_time.h"
#include "planner/colocate/jobs/solo.h"
#include "planner/colocate/memory/place_passes.h"
#include "planner/colocate/memory/share_regions.h"
#include "planner/colocate/mix_evaluate.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

enum { CASES = 40, JOBS = 2 };

typedef struct made {
  uint64_t seed;
  pl_arena arena;
  planc_profile *profile;
  planc_graph *graphs[JOBS];
  planc_problem problems[JOBS];
  planc_mix mix;
  planc_mix_evaluator evaluator;
  int32_t iterations[JOBS];
  pl_solos solos;
  pl_areas areas;
  pl_timing timing;
} made;

/* The jobs as they are where there is room, or in the least of a few budgets, where they swap. */
static void make_solos(made *m, bool tight) {
  int32_t failed;
  int64_t peaks[JOBS];
  ok(pl_solos_make(&m->evaluator, m->problems, NULL, &m->solos, &failed));
  for (int32_t j = 0; j < JOBS; j++) {
    const planc_evaluator alone = m->evaluator.alone(&m->evaluator, &m->problems[j]);
    ok(alone.peak(&alone, &m->solos.candidates[j], &peaks[j]));
  }
  for (int64_t tenths = 4; tight && tenths <= 10; tenths++) {
    pl_solos_free(&m->solos);
    for (int32_t j = 0; j < JOBS; j++) m->problems[j].terms.budgets[PLANC_MEMORY_DEVICE] = peaks[j] * tenths / 10;
    planc_status status = pl_solos_make(&m->evaluator, m->problems, NULL, &m->solos, &failed);
    tight = status != NULL;
    planc_status_free(status);
  }
}

/* Two jobs that start wherever it is, in a period that is long enough for each. */
static void make(int number, made *m) {
  *m = (made){.seed = (uint64_t)number};
  ok(planc_profile_read("profiles/k40m.json", &m->profile));
  for (int32_t j = 0; j < JOBS; j++) {
    ok(randgraph_make(rand_next(&m->seed), &(randgraph_options){.max_ops = 20}, &m->graphs[j]));
    m->iterations[j] = 1 + (int32_t)rand_below(&m->seed, 3);
    m->problems[j] = (planc_problem){.job.graph = m->graphs[j],
                                     .job.profile = m->profile,
                                     .job.batch = 1 + rand_below(&m->seed, 9),
                                     .terms.budgets[PLANC_MEMORY_DEVICE] = INT64_C(1) << 40,
                                     .terms.budgets[PLANC_MEMORY_HOST] = -1};
  }
  m->mix.n_jobs = JOBS;
  const planc_target all = {.terms = &m->mix.terms, .profile = m->profile};
  m->evaluator = pl_mix_evaluator_of(&m->mix, &all);
  make_solos(m, number % 3 == 0);
  ok(pl_areas_make(&m->arena, JOBS, m->solos.candidates, number % 2 ? 0 : 512, &m->areas));
  ok(pl_timing_new(&m->arena, JOBS, m->solos.candidates, m->iterations, &m->timing));
  ok(pl_timing_alone(&m->evaluator, m->problems, &m->timing));
  for (int32_t j = 0; j < JOBS; j++) {
    int64_t at = j == 0 ? 0 : rand_below(&m->seed, m->timing.passes[0].ns);
    for (int32_t p = m->timing.first[j]; p < m->timing.first[j] + m->iterations[j]; p++) {
      m->timing.passes[p].start_ns = at;
      at += m->timing.passes[p].ns + rand_below(&m->seed, 1000);
    }
    int64_t own = at - m->timing.passes[m->timing.first[j]].start_ns;
    if (own > m->timing.period_ns) m->timing.period_ns = own;
  }
}

static void free_made(made *m) {
  pl_solos_free(&m->solos);
  pl_arena_free(&m->arena);
  for (int32_t j = 0; j < JOBS; j++) planc_graph_free(m->graphs[j]);
  planc_profile_free(m->profile);
}

/* A residency of a pass. */
typedef struct tensor {
  int64_t address, bytes, from_ns, to_ns;
} tensor;

static int32_t list_tensors(const made *m, int64_t *const *addresses, tensor *out) {
  int32_t n = 0;
  for (int32_t j = 0; j < JOBS; j++) {
    const planc_schedule *s = m->solos.candidates[j].schedule;
    for (int32_t p = m->timing.first[j]; p < m->timing.first[j] + m->iterations[j]; p++) {
      const pl_pass *pass = &m->timing.passes[p];
      for (int32_t r = planc_schedule_n_boundary(s); r < planc_schedule_n_residencies(s); r++) {
        if (planc_schedule_kind_of(s, r) != PLANC_MEMORY_DEVICE) continue;
        tensor t = {.address = addresses[p][r]};
        t.bytes = m->solos.candidates[j].trace->buffers[planc_schedule_residencies(s)[r].buffer].bytes;
        for (int32_t c = 0; c < planc_schedule_n_commands(s); c++) {
          const planc_command *command = &planc_schedule_commands(s)[c];
          if (command->residency != r) continue;
          if (command->kind == PLANC_CMD_ACQUIRE) t.from_ns = pass->start_ns + pass->at_ns[c];
          if (command->kind == PLANC_CMD_RELEASE) t.to_ns = pass->start_ns + pass->at_ns[c];
        }
        out[n++] = t;
      }
    }
  }
  return n;
}

/* Whether two live at one time in some period. */
static bool meet(const tensor *a, const tensor *b, int64_t period) {
  for (int64_t shift = -3; shift <= 3; shift++)
    if (a->from_ns + shift * period < b->to_ns && b->from_ns < a->to_ns + shift * period) return true;
  return false;
}

static void assert_apart(const made *m, int64_t *const *addresses, int64_t capacity) {
  static tensor tensors[4096];
  int32_t n = list_tensors(m, addresses, tensors);
  ck_assert_int_gt(n, 0);
  for (int32_t a = 0; a < n; a++) {
    ck_assert_int_ge(tensors[a].address, 0);
    ck_assert_int_le(tensors[a].address + tensors[a].bytes, m->areas.private_bytes + capacity);
    for (int32_t b = 0; b < a; b++) {
      bool apart = tensors[a].address + tensors[a].bytes <= tensors[b].address ||
                   tensors[b].address + tensors[b].bytes <= tensors[a].address;
      ck_assert_msg(apart || !meet(&tensors[a], &tensors[b], m->timing.period_ns), "tensors %d and %d", a, b);
    }
  }
}

/* The same in the order in which a plan states its commands, in which much happens at one time. */
static void assert_apart_as_stated(const made *m, int64_t *const *addresses) {
  static tensor open[4096];
  int32_t n = 0;
  const pl_turn *turns;
  int64_t n_turns;
  pl_arena arena = {0};
  ok(pl_turns_by_time(&arena, &m->timing, &turns, &n_turns));
  for (int64_t k = 0; k < n_turns; k++) {
    const planc_candidate *of = &m->solos.candidates[turns[k].job];
    const planc_command *command = &planc_schedule_commands(of->schedule)[turns[k].first];
    if (command->kind != PLANC_CMD_ACQUIRE && command->kind != PLANC_CMD_RELEASE) continue;
    tensor t = {.address = addresses[m->timing.first[turns[k].job] + turns[k].iteration][command->residency]};
    t.bytes = of->trace->buffers[planc_schedule_residencies(of->schedule)[command->residency].buffer].bytes;
    int32_t at = 0;
    while (at < n && open[at].address != t.address) at++;
    if (command->kind == PLANC_CMD_RELEASE) {
      ck_assert_int_lt(at, n);
      open[at] = open[--n];
      continue;
    }
    for (int32_t o = 0; o < n; o++)
      ck_assert(open[o].address + open[o].bytes <= t.address || t.address + t.bytes <= open[o].address);
    open[n++] = t;
  }
  ck_assert_int_eq(n, 0);
  pl_arena_free(&arena);
}

/* At the least bytes that will do, which are no more than all tensors together take, and more than none. */
START_TEST(tensors_that_meet_are_apart) {
  made m;
  int64_t **addresses;
  bool fits;
  make(_i, &m);
  int64_t low = -1, high = INT64_C(1) << 22;
  ok(pl_place_passes(&m.arena, &m.timing, &m.areas, high, &addresses, &fits));
  ck_assert(fits);
  while (high - low > 256) {
    int64_t middle = low + (high - low) / 2;
    ok(pl_place_passes(&m.arena, &m.timing, &m.areas, middle, &addresses, &fits));
    if (fits) assert_apart(&m, addresses, middle);
    if (fits) assert_apart_as_stated(&m, addresses);
    *(fits ? &high : &low) = middle;
  }
  int64_t live =
      m.areas.jobs[0].most_bytes > m.areas.jobs[1].most_bytes ? m.areas.jobs[0].most_bytes : m.areas.jobs[1].most_bytes;
  if (m.areas.region_bytes == 0) ck_assert_int_gt(high, live - PLANC_ALIGNMENT);
  free_made(&m);
}
END_TEST

/* What is handed out as time goes on is so, too, where it is the same in every period. */
START_TEST(regions_that_repeat_are_apart) {
  made m;
  int64_t **addresses;
  bool fits;
  make(_i, &m);
  ok(pl_share_regions(&m.arena, &m.timing, &m.areas, INT64_C(1) << 22, &addresses, &fits));
  ck_assert(fits);
  assert_apart(&m, addresses, INT64_C(1) << 22);
  assert_apart_as_stated(&m, addresses);
  ok(pl_share_regions(&m.arena, &m.timing, &m.areas, 0, &addresses, &fits));
  ck_assert(!fits || (m.areas.jobs[0].most_bytes == 0 && m.areas.jobs[1].most_bytes == 0));
  free_made(&m);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("place_passes");
  TCase *tests = tcase_create("tests");
  tcase_set_timeout(tests, 0);
  tcase_add_loop_test(tests, tensors_that_meet_are_apart, 0, CASES);
  tcase_add_loop_test(tests, regions_that_repeat_are_apart, 0, CASES);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
