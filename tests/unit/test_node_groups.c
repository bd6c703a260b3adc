/* Node groups (Waterwave) of random graphs against what a candidate's commands say one by one, and the order of depths
 * against a search for the longest way. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "cost/profile.h"
#include "planner/colocate/interleave/depth_order.h"
#include "planner/colocate/interleave/node_groups.h"
#include "planner/colocate/mix_evaluate.h"
#include "planner/evaluate.h"
#include "planner/policies/policies.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

enum { GRAPHS = 200 };

static planc_profile *profile;
static void read_profile(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
}
static void free_profile(void) {
  planc_profile_free(profile);
}

typedef struct job {
  uint64_t seed;
  planc_graph *graph;
  planc_problem problem;
  planc_evaluator evaluator;
  planc_candidate candidate;
  pl_arena arena;
  pl_timing timing;
  int32_t iterations, n_commands;
  int64_t *held, *during; /* by command: behind it, and while it runs */
} job;

static int64_t aligned(int64_t bytes) {
  return (bytes + PLANC_ALIGNMENT - 1) / PLANC_ALIGNMENT * PLANC_ALIGNMENT;
}

static void count_held(job *j) {
  const planc_schedule *s = j->candidate.schedule;
  int64_t held = 0;
  j->n_commands = planc_schedule_n_commands(s);
  j->held = calloc((size_t)j->n_commands + 1, sizeof *j->held);
  j->during = calloc((size_t)j->n_commands + 1, sizeof *j->during);
  for (int32_t c = 0; c < j->n_commands; c++) {
    const planc_command *command = &planc_schedule_commands(s)[c];
    int64_t before = held, sign = command->kind == PLANC_CMD_ACQUIRE ? 1 : command->kind == PLANC_CMD_RELEASE ? -1 : 0;
    if (sign) {
      const planc_residency *residency = &planc_schedule_residencies(s)[command->residency];
      const planc_buffer *buffer = &j->candidate.trace->buffers[residency->buffer];
      if (!(buffer->flags & PLANC_BUFFER_PERSISTENT)) held += sign * aligned(buffer->bytes);
    }
    j->held[c] = held;
    j->during[c] = held > before ? held : before;
    if (command->kind == PLANC_CMD_EXEC) j->during[c] += aligned(planc_schedule_variant(s, command).workspace_bytes);
  }
}

static void make_job(uint64_t seed, job *out) {
  *out = (job){.seed = seed, .iterations = 1};
  randgraph_options options = {.max_ops = 60, .inference = rand_chance(&out->seed, 10)};
  ok(randgraph_make(rand_next(&out->seed), &options, &out->graph));
  out->problem = (planc_problem){.job.graph = out->graph,
                                 .job.profile = profile,
                                 .job.batch = 1 + rand_below(&out->seed, 40),
                                 .terms.budgets[PLANC_MEMORY_DEVICE] = planc_profile_device(profile)->memory_bytes,
                                 .terms.budgets[PLANC_MEMORY_HOST] = -1};
  out->evaluator = pl_evaluator_of(&out->problem);
}

/* A stretch of ops becomes a recurrence. */
static void make_loop(job *j) {
  int32_t first = (int32_t)rand_below(&j->seed, j->graph->n_ops), n = (int32_t)rand_below(&j->seed, 8);
  for (int32_t k = first; k < first + n && k < j->graph->n_ops; k++) ((planc_op *)j->graph->ops)[k].loop = "rnn";
}

static void plan_job(pl_orderer orderer, job *j) {
  ok(pl_make_resident(&j->evaluator, j->problem.job.batch, orderer, &j->candidate));
  ok(pl_timing_new(&j->arena, 1, &j->candidate, &j->iterations, &j->timing));
  const planc_target target = planc_target_of(&j->problem);
  const planc_mix_evaluator evaluator = pl_mix_evaluator_of(&(planc_mix){.n_jobs = 1}, &target);
  ok(pl_timing_alone(&evaluator, &j->problem, &j->timing));
  count_held(j);
}

static void free_job(job *j) {
  free(j->held);
  free(j->during);
  planc_candidate_free(&j->candidate);
  pl_arena_free(&j->arena);
  planc_graph_free(j->graph);
}

/* --- Groups ------------------------------------------------------------------------------------------------------- */

static int64_t held_at(const job *j, int32_t end) {
  return end > 0 ? j->held[end - 1] : 0;
}

static int64_t most_in(const job *j, int32_t first, int32_t end) {
  int64_t most = held_at(j, first);
  for (int32_t c = first; c < end; c++)
    if (j->during[c] > most) most = j->during[c];
  return most;
}

/* The recurrence that a command is of, and the phase; NULL where it is of none. */
static const char *loop_of(const job *j, int32_t c, planc_phase *out_phase) {
  const planc_command *command = &planc_schedule_commands(j->candidate.schedule)[c];
  if (command->kind != PLANC_CMD_EXEC) return NULL;
  *out_phase = planc_trace_phase(j->candidate.trace, command->instance);
  return planc_trace_op(j->candidate.trace, command->instance)->loop;
}

/* Whether some recurrence has ops of one phase before `end` and behind it. */
static bool cuts_loop(const job *j, int32_t end) {
  for (int32_t c = 0; c < end; c++) {
    planc_phase phase, other;
    const char *loop = loop_of(j, c, &phase);
    for (int32_t d = end; loop && d < j->n_commands; d++) {
      const char *behind = loop_of(j, d, &other);
      if (behind && strcmp(loop, behind) == 0 && phase == other) return true;
    }
  }
  return false;
}

static bool gives(const job *j, int32_t c) {
  const planc_schedule *s = j->candidate.schedule;
  const planc_command *command = &planc_schedule_commands(s)[c];
  return command->kind == PLANC_CMD_RELEASE ||
         planc_schedule_copies(s, command, PLANC_MEMORY_DEVICE, PLANC_MEMORY_HOST) ||
         planc_schedule_copies(s, command, PLANC_MEMORY_DEVICE, PLANC_MEMORY_USER);
}

/* Whether a group may end there: behind an op and what it gives back. */
static bool may_cut(const job *j, int32_t end) {
  const planc_command *commands = planc_schedule_commands(j->candidate.schedule);
  bool ran = false;
  if (end == j->n_commands) return true;
  if (gives(j, end)) return false;
  for (int32_t c = end - 1; c >= 0 && !ran; c--) {
    if (commands[c].kind == PLANC_CMD_EXEC)
      ran = true;
    else if (!gives(j, c))
      return false;
  }
  return ran && !cuts_loop(j, end);
}

static void assert_groups(const job *j, const pl_node_groups *groups) {
  int32_t at = 0;
  ck_assert_int_ge(groups->n_allocating, 1);
  ck_assert_int_le(groups->n_allocating, groups->n);
  for (int32_t g = 0; g < groups->n; g++) {
    const pl_node_group *group = &groups->groups[g];
    ck_assert_int_eq(group->first, at);
    ck_assert_int_gt(group->end, group->first);
    ck_assert(may_cut(j, group->end));
    ck_assert_int_eq(group->held_bytes, held_at(j, group->end));
    ck_assert_int_eq(group->most_bytes, most_in(j, group->first, group->end));
    at = group->end;
  }
  ck_assert_int_eq(at, j->n_commands);
  ck_assert_int_eq(groups->most_bytes, most_in(j, 0, j->n_commands));
}

/* Whether the op whose commands begin there has more than the size alone. */
static bool is_large(const job *j, int32_t first, bool allocates, int64_t bytes) {
  const planc_command *commands = planc_schedule_commands(j->candidate.schedule);
  int32_t end = first;
  while (end < j->n_commands && commands[end].kind != PLANC_CMD_EXEC) end++;
  for (end++; end < j->n_commands && gives(j, end);) end++;
  int64_t change = held_at(j, end < j->n_commands ? end : j->n_commands) - held_at(j, first);
  return (allocates ? change : -change) > bytes;
}

/* Whether some op of the group is such. */
static bool has_large(const job *j, const pl_node_group *group, bool allocates, int64_t bytes) {
  for (int32_t first = group->first; first < group->end; first++)
    if ((first == group->first || may_cut(j, first)) && is_large(j, first, allocates, bytes)) return true;
  return false;
}

/* All but the last of either kind have their size, and would not have it were they to end sooner. */
static void assert_sizes(const job *j, const pl_node_groups *groups, const pl_cut *cut) {
  for (int32_t g = 0; g < groups->n; g++) {
    const pl_node_group *group = &groups->groups[g];
    bool allocates = g < groups->n_allocating, last = g == groups->n - 1 || g == groups->n_allocating - 1;
    int64_t bytes = allocates ? cut->split_bytes : cut->release_bytes;
    int64_t size = (allocates ? 1 : -1) * (group->held_bytes - held_at(j, group->first));
    if (last) {
      bool only = g == 0 || g == groups->n_allocating;
      ck_assert(only || size >= bytes - bytes / 2 || size < 0 || has_large(j, group, allocates, bytes));
      continue;
    }
    if (size < bytes && is_large(j, groups->groups[g + 1].first, allocates, bytes)) continue;
    ck_assert_int_ge(size, bytes);
    for (int32_t end = group->first + 1; end < group->end; end++)
      if (may_cut(j, end)) ck_assert_int_lt((allocates ? 1 : -1) * (held_at(j, end) - held_at(j, group->first)), bytes);
  }
}

/* Up to the fullest moment groups allocate: no group behind is fuller. */
static void assert_fullest(const job *j, const pl_node_groups *groups) {
  int32_t end = groups->groups[groups->n_allocating - 1].end;
  int64_t before = most_in(j, 0, end);
  ck_assert_int_ge(before, most_in(j, end, j->n_commands));
}

static void cut(const job *j, const pl_cut *how, pl_node_groups *out) {
  ok(pl_node_groups_make((pl_arena *)&j->arena, &j->candidate, &j->timing.passes[0], how, out));
  if (j->n_commands > 0) assert_groups(j, out);
}

static bool groups_could_end_anywhere(const job *j) {
  for (int32_t k = 0; k < j->graph->n_ops; k++)
    if (j->graph->ops[k].loop) return false;
  return true;
}

START_TEST(groups_have_their_sizes) {
  job j;
  pl_node_groups groups;
  make_job((uint64_t)_i, &j);
  if (rand_chance(&j.seed, 50)) make_loop(&j);
  plan_job(_i % 2 == 0 ? NULL : pl_depth_order, &j);
  int64_t most = most_in(&j, 0, j.n_commands);
  for (int k = 0; k < 6; k++) {
    pl_cut how = {.where = PL_CUT_BY_SIZE,
                  .split_bytes = 1 + rand_below(&j.seed, most + 1),
                  .release_bytes = 1 + rand_below(&j.seed, most + 1)};
    cut(&j, &how, &groups);
    assert_sizes(&j, &groups, &how);
    if (groups_could_end_anywhere(&j)) assert_fullest(&j, &groups);
    how.relaxed = true;
    cut(&j, &how, &groups);
    how.sizes = (const int64_t[]){1 + rand_below(&j.seed, most + 1), 0};
    how.n_sizes = 2;
    cut(&j, &how, &groups);
  }
  free_job(&j);
}
END_TEST

/* Where the commands of the last op begin: behind those that give back what the one before was the last to use. */
static int32_t last_op(const job *j) {
  int32_t at = j->n_commands;
  while (at > 0 && !may_cut(j, at - 1)) at--;
  return at > 0 ? at - 1 : 0;
}

static bool has_backward(const job *j) {
  planc_phase phase = PLANC_PHASE_forward, last = PLANC_PHASE_forward;
  for (int32_t c = 0; c < j->n_commands; c++)
    if (planc_schedule_commands(j->candidate.schedule)[c].kind == PLANC_CMD_EXEC) {
      (void)loop_of(j, c, &phase);
      last = phase;
    }
  return last != PLANC_PHASE_forward;
}

START_TEST(halves_are_two) {
  job j;
  pl_node_groups groups;
  planc_phase phase = PLANC_PHASE_forward;
  make_job((uint64_t)_i, &j);
  plan_job(NULL, &j);
  cut(&j, &(pl_cut){.where = PL_CUT_AT_PEAK}, &groups);
  ck_assert_int_le(groups.n, 2);
  if (groups_could_end_anywhere(&j)) assert_fullest(&j, &groups);
  if (most_in(&j, 0, last_op(&j)) > most_in(&j, last_op(&j), j.n_commands)) ck_assert_int_eq(groups.n, 2);
  cut(&j, &(pl_cut){.where = PL_CUT_AT_PHASES}, &groups);
  ck_assert_int_eq(groups.n, groups_could_end_anywhere(&j) && has_backward(&j) ? 2 : groups.n);
  for (int32_t c = 0; c < j.n_commands && groups.n == 2; c++) {
    (void)loop_of(&j, c, &phase);
    if (c >= groups.groups[0].end && planc_schedule_commands(j.candidate.schedule)[c].kind == PLANC_CMD_EXEC)
      ck_assert_int_ne(phase, PLANC_PHASE_forward);
  }
  free_job(&j);
}
END_TEST

/* --- Depths ------------------------------------------------------------------------------------------------------- */

/* Whether one instance has to run before another: it makes what that one reads, or meets what that one replaces. */
static bool is_before(const planc_trace *trace, int32_t a, int32_t b) {
  const planc_instance *x = &trace->instances[a], *y = &trace->instances[b];
  for (int32_t k = x->first_access; k < x->first_access + x->n_accesses; k++) {
    for (int32_t l = y->first_access; l < y->first_access + y->n_accesses; l++) {
      const planc_access *p = &trace->accesses[k], *q = &trace->accesses[l];
      if (p->buffer != q->buffer) continue;
      if (p->write >= 0 && q->read >= p->write) return true;
      if (q->write >= 0 && (p->read >= 0 ? p->read < q->write : p->write < q->write)) return true;
    }
  }
  return false;
}

START_TEST(depths_are_the_longest_ways) {
  job j;
  planc_trace *trace;
  planc_order *order;
  make_job((uint64_t)_i, &j);
  planc_candidate rounds = {0};
  ok(planc_candidate_rounds(&j.problem, j.problem.job.batch, &rounds));
  trace = rounds.trace;
  int32_t *depth = calloc((size_t)trace->n_instances + 1, sizeof *depth);
  for (int32_t b = 0; b < trace->n_instances; b++)
    for (int32_t a = 0; a < b; a++)
      if (is_before(trace, a, b) && depth[a] >= depth[b]) depth[b] = depth[a] + 1;
  ok(pl_depth_order(trace, &order));
  for (int32_t p = 1; p < order->n; p++) {
    int32_t before = order->runs[p - 1].instance, now = order->runs[p].instance;
    ck_assert(depth[before] < depth[now] || (depth[before] == depth[now] && before < now));
  }
  free(depth);
  planc_order_free(order);
  planc_candidate_free(&rounds);
  free_job(&j);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("node_groups");
  TCase *groups = tcase_create("groups"), *depths = tcase_create("depths");
  tcase_add_unchecked_fixture(groups, read_profile, free_profile);
  tcase_add_unchecked_fixture(depths, read_profile, free_profile);
  tcase_add_loop_test(groups, groups_have_their_sizes, 0, GRAPHS);
  tcase_add_loop_test(groups, halves_are_two, 0, GRAPHS);
  tcase_add_loop_test(depths, depths_are_the_longest_ways, 0, GRAPHS);
  suite_add_tcase(suite, groups);
  suite_add_tcase(suite, depths);
  return run_suite(suite);
}
