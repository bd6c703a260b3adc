/* Memory that flows from pair to pair (Waterwave) in random mixes: every command has its turn once and in order, what
 * is taken lies behind what is kept, within the capacity and apart from all that is held; with barriers whoever is in a
 * pair waits for all of the pair before, and nothing is taken that the other job of the pair has let go in it but
 * behind a wait for that. */
#include <check.h>
#include <stdlib.h>

#include "cost/profile.h"
#include "planner/colocate/interleave/flow.h"
#include "planner/colocate/memory/kept.h"
#include "planner/colocate/mix_evaluate.h"
#include "planner/evaluate.h"
#include "planner/policies/policies.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

enum { MIXES = 120, MOST_JOBS = 4, MOST_ITERATIONS = 2, MOST_PASSES = MOST_JOBS * MOST_ITERATIONS, MOST_CHUNKS = 4096 };

static planc_profile *profile;
static void read_profile(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
}
static void free_profile(void) {
  planc_profile_free(profile);
}

typedef struct made {
  uint64_t seed;
  pl_arena arena;
  int32_t n_jobs, n_passes;
  planc_graph *graphs[MOST_JOBS];
  planc_problem problems[MOST_JOBS];
  planc_candidate candidates[MOST_JOBS];
  int32_t iterations[MOST_JOBS];
  pl_timing timing;
  pl_node_groups groups[MOST_JOBS];
  pl_pairing_pass passes[MOST_PASSES];
  pl_pairs pairs;
  int64_t *kept[MOST_JOBS];
  pl_flow flow;
  pl_merge merge;
} made;

static void make_job(made *m, int32_t job) {
  randgraph_options options = {.max_ops = 40, .inference = rand_chance(&m->seed, 10)};
  ok(randgraph_make(rand_next(&m->seed), &options, &m->graphs[job]));
  m->problems[job] = (planc_problem){.job.graph = m->graphs[job],
                                     .job.profile = profile,
                                     .job.batch = 1 + rand_below(&m->seed, 20),
                                     .terms.budgets[PLANC_MEMORY_DEVICE] = planc_profile_device(profile)->memory_bytes,
                                     .terms.budgets[PLANC_MEMORY_HOST] = -1};
  const planc_evaluator evaluator = pl_evaluator_of(&m->problems[job]);
  ok(pl_make_resident(&evaluator, m->problems[job].job.batch, NULL, &m->candidates[job]));
  m->iterations[job] = 1 + (int32_t)rand_below(&m->seed, MOST_ITERATIONS);
}

static void cut_jobs(made *m) {
  for (int32_t j = 0; j < m->n_jobs; j++) {
    pl_cut cut = {.where = PL_CUT_BY_SIZE, .split_bytes = 1 + rand_below(&m->seed, 20000)};
    int32_t n = planc_schedule_n_residencies(m->candidates[j].schedule);
    cut.release_bytes = cut.split_bytes;
    ok(pl_node_groups_make(&m->arena, &m->candidates[j], &m->timing.passes[m->timing.first[j]], &cut, &m->groups[j]));
    for (int32_t k = 0; k < m->iterations[j]; k++)
      m->passes[m->n_passes++] = (pl_pairing_pass){j, k, m->iterations[j], &m->groups[j]};
    ok(PL_NEW(&m->arena, &m->kept[j], n));
    for (int32_t r = 0; r < n; r++) m->kept[j][r] = PLANC_BLANK;
    ok(pl_place_kept(&m->arena, &m->candidates[j], m->kept[j], &m->flow.kept_bytes));
  }
  pl_sort_passes(m->passes, m->n_passes);
}

static bool make(int number, made *m) {
  int64_t most = 0;
  bool fits;
  *m = (made){.seed = (uint64_t)number};
  m->n_jobs = 2 + (int32_t)rand_below(&m->seed, MOST_JOBS - 1);
  for (int32_t j = 0; j < m->n_jobs; j++) make_job(m, j);
  ok(pl_timing_new(&m->arena, m->n_jobs, m->candidates, m->iterations, &m->timing));
  const planc_target target = planc_target_of(m->problems);
  const planc_mix_evaluator evaluator = pl_mix_evaluator_of(&(planc_mix){.n_jobs = m->n_jobs}, &target);
  ok(pl_timing_alone(&evaluator, m->problems, &m->timing));
  cut_jobs(m);
  for (int32_t j = 0; j < m->n_jobs; j++)
    if (m->groups[j].most_bytes > most) most = m->groups[j].most_bytes;
  pl_pairing_rule rule = {most + rand_below(&m->seed, most + 1), 1 + rand_below(&m->seed, 20000),
                          rand_chance(&m->seed, 50)};
  ok(pl_pair_groups(&m->arena, m->passes, m->n_passes, &rule, &m->pairs));
  m->flow.timing = &m->timing;
  m->flow.passes = m->passes;
  m->flow.pairs = &m->pairs;
  m->flow.kept = (const int64_t *const *)m->kept;
  m->flow.capacity_bytes = rule.limit_bytes + rule.limit_bytes / 4;
  m->flow.barriers = rand_chance(&m->seed, 60);
  ok(pl_flow_make(&m->arena, &m->flow, &m->merge, &fits));
  return fits;
}

static void free_made(made *m) {
  for (int32_t j = 0; j < m->n_jobs; j++) {
    planc_candidate_free(&m->candidates[j]);
    planc_graph_free(m->graphs[j]);
  }
  pl_arena_free(&m->arena);
}

/* --- Turn by turn ------------------------------------------------------------------------------------------------- */

/* A place that was taken: held, or let go. */
typedef struct chunk {
  int32_t pass, residency, job, pair;
  int64_t low, high;
  bool held;
  bool waited[MOST_JOBS]; /* by job, whether it has waited for the one that let it go since */
} chunk;

typedef struct replay {
  const made *m;
  int32_t next[MOST_PASSES]; /* commands, by pass of the timing */
  int32_t pair, group_of[MOST_PASSES];
  int32_t n, n_reused;
  chunk chunks[MOST_CHUNKS];
} replay;

static int32_t timing_pass(const made *m, int32_t job, int32_t iteration) {
  return m->timing.first[job] + iteration;
}

static void take(replay *r, int32_t job, int32_t pass, int32_t residency, int64_t address, int64_t bytes, bool held) {
  chunk c = {.pass = pass, .residency = residency, .job = job, .pair = r->pair, .low = address, .held = held};
  c.high = address + (bytes + PLANC_ALIGNMENT - 1) / PLANC_ALIGNMENT * PLANC_ALIGNMENT;
  ck_assert_int_ge(c.low, r->m->flow.kept_bytes);
  ck_assert_int_le(c.high, r->m->flow.kept_bytes + r->m->flow.capacity_bytes);
  for (int32_t k = 0; k < r->n; k++) {
    const chunk *other = &r->chunks[k];
    if (other->high <= c.low || c.high <= other->low) continue;
    ck_assert(!other->held);
    if (!r->m->flow.barriers || other->job == job || other->pair != r->pair) continue;
    ck_assert(other->waited[job]);
    r->n_reused++;
  }
  ck_assert_int_lt(r->n, MOST_CHUNKS);
  r->chunks[r->n++] = c;
}

static void give(replay *r, int32_t pass, int32_t residency) {
  for (int32_t k = 0; k < r->n; k++) {
    chunk *c = &r->chunks[k];
    if (!c->held || c->pass != pass || c->residency != residency) continue;
    c->held = false;
    c->pair = r->pair;
  }
}

static void run_command(replay *r, const pl_turn *turn) {
  const made *m = r->m;
  const planc_schedule *s = m->candidates[turn->job].schedule;
  const planc_command *command = &planc_schedule_commands(s)[turn->first];
  int32_t pass = timing_pass(m, turn->job, turn->iteration);
  int64_t workspace;
  ck_assert_int_eq(turn->first, r->next[pass]);
  r->next[pass] = turn->end;
  switch (command->kind) {
    case PLANC_CMD_EXEC:
      workspace = planc_schedule_variant(s, command).workspace_bytes;
      if (workspace > 0) take(r, turn->job, pass, -1, m->merge.workspaces[pass][turn->first], workspace, false);
      break;
    case PLANC_CMD_ACQUIRE:
      if (m->kept[turn->job][command->residency] == PLANC_BLANK)
        take(r, turn->job, pass, command->residency, m->merge.residencies[pass][command->residency],
             planc_schedule_bytes(s, command->residency), true);
      break;
    case PLANC_CMD_RELEASE:
      give(r, pass, command->residency);
      break;
    default:
      break;
  }
}

static void wait_for(replay *r, const pl_turn *turn) {
  ck_assert_int_ne(turn->leader, turn->job);
  for (int32_t k = 0; k < r->n; k++)
    if (!r->chunks[k].held && r->chunks[k].job == turn->leader) r->chunks[k].waited[turn->job] = true;
}

/* The pair whose group a command is of. */
static int32_t pair_of(const made *m, const pl_turn *turn) {
  for (int32_t p = 0; p < m->pairs.n; p++)
    for (int32_t s = 0; s < PL_PAIR; s++) {
      const pl_paired *of = &m->pairs.pairs[p][s];
      if (of->pass < 0 || m->passes[of->pass].job != turn->job || m->passes[of->pass].iteration != turn->iteration)
        continue;
      const pl_node_group *group = &m->passes[of->pass].groups->groups[of->group];
      if (turn->first >= group->first && turn->first < group->end) return p;
    }
  ck_abort_msg("no pair");
  return -1;
}

static bool is_in_pair(const made *m, int32_t pair, int32_t job) {
  for (int32_t s = 0; s < PL_PAIR; s++)
    if (m->pairs.pairs[pair][s].pass >= 0 && m->passes[m->pairs.pairs[pair][s].pass].job == job) return true;
  return false;
}

/* The waits between the last command of a pair and the first of the next are of each job there for each of those here.
 */
static void assert_waits(const made *m, int32_t pair, int64_t from, int64_t to) {
  bool waits[MOST_JOBS][MOST_JOBS] = {{false}};
  int32_t before = (pair > 0 ? pair : m->pairs.n) - 1;
  for (int64_t k = from; k < to; k++) waits[m->merge.turns[k].job][m->merge.turns[k].leader] = true;
  for (int32_t a = 0; a < m->n_jobs; a++)
    for (int32_t b = 0; b < m->n_jobs; b++)
      if (m->flow.barriers && a != b && is_in_pair(m, pair, a) && is_in_pair(m, before, b)) ck_assert(waits[a][b]);
}

START_TEST(memory_flows_from_pair_to_pair) {
  static made m;
  static replay r;
  if (make(_i, &m)) {
    int64_t from = 0;
    r = (replay){.m = &m, .pair = -1};
    for (int64_t k = 0; k < m.merge.n_turns; k++) {
      const pl_turn *turn = &m.merge.turns[k];
      if (turn->leader >= 0) {
        ck_assert(m.flow.barriers);
        ck_assert_int_eq(turn->first, turn->end);
        wait_for(&r, turn);
        continue;
      }
      ck_assert_int_eq(turn->end, turn->first + 1);
      int32_t pair = pair_of(&m, turn);
      ck_assert(pair == r.pair || pair == r.pair + 1);
      if (pair != r.pair) assert_waits(&m, pair, from, k);
      r.pair = pair;
      run_command(&r, turn);
      from = k + 1;
    }
    ck_assert_int_eq(r.pair, m.pairs.n - 1);
    for (int32_t j = 0; j < m.n_jobs; j++)
      for (int32_t k = 0; k < m.iterations[j]; k++)
        ck_assert_int_eq(r.next[timing_pass(&m, j, k)], planc_schedule_n_commands(m.candidates[j].schedule));
  }
  free_made(&m);
}
END_TEST

/* Most mixes have places, and in some of them a job takes what the other has let go in the same pair. */
START_TEST(flows_are_not_trivial) {
  int32_t n_fit = 0;
  for (int number = 0; number < MIXES; number++) {
    static made m;
    n_fit += make(number, &m);
    free_made(&m);
  }
  ck_assert_int_ge(n_fit, MIXES / 2);
}
END_TEST

/* Behind barriers pairs take what their ops need at the least; the simulator's rates round by a hundred-thousandth. */
static void assert_least(made *m, int64_t *n_tight) {
  enum { ROUNDING = 100000, CLOSE = 10 };
  planc_taken taken;
  planc_candidate all = {0};
  const planc_target target = planc_target_of(m->problems);
  const planc_evaluator evaluator = pl_evaluator_of_all(&target);
  int64_t least_ns = pl_pairs_least_ns(m->candidates, m->passes, &m->pairs);
  m->merge.n_jobs = m->n_jobs;
  m->merge.jobs = m->candidates;
  m->merge.iterations = m->iterations;
  ok(pl_merge_candidates(&m->merge, &all));
  ok(evaluator.simulate(&evaluator, &all, NULL, NULL, &taken));
  planc_candidate_free(&all);
  ck_assert_int_ge(taken.period_ns, least_ns - least_ns / ROUNDING);
  *n_tight += taken.period_ns - least_ns < taken.period_ns / CLOSE;
}

START_TEST(barriers_take_the_least_at_least) {
  int64_t n_tight = 0, n = 0;
  for (int number = 0; number < MIXES; number++) {
    made m;
    if (make(number, &m) && m.flow.barriers) {
      assert_least(&m, &n_tight);
      n++;
    }
    free_made(&m);
  }
  ck_assert_int_gt(n_tight, n / 2);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("flow");
  TCase *flows = tcase_create("flows");
  tcase_add_unchecked_fixture(flows, read_profile, free_profile);
  tcase_add_loop_test(flows, memory_flows_from_pair_to_pair, 0, sampled(MIXES));
  tcase_add_test(flows, flows_are_not_trivial);
  tcase_add_test(flows, barriers_take_the_least_at_least);
  suite_add_tcase(suite, flows);
  return run_suite(suite);
}
