/* Updates of plans of several jobs, and of several iterations: runs invented by the simulator on a machine whose speeds
 * are known, which an update must find again; jobs that are alike and jobs that are not; the plan to go on with. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "cost/profile.h"
#include "planc/check.h"
#include "planc/colocate.h"
#include "tests/support/plan_view.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"
#include "tests/support/updates.h"

static planc_profile *k40m;

static void set_up(void) {
  ok(planc_profile_read("profiles/k40m.json", &k40m));
}
static void tear_down(void) {
  planc_profile_free(k40m);
}

/* --- Mixes -------------------------------------------------------------------------------------------------------- */

/* One graph at two batches, another graph, and the first job again. */
enum { MOST_JOBS = 4, N_GRAPHS = 2 };

typedef struct mixed {
  planc_graph *graphs[N_GRAPHS];
  planc_workload jobs[MOST_JOBS];
  int32_t iterations[MOST_JOBS];
  const char *names[MOST_JOBS];
  int64_t deadlines_ns[MOST_JOBS];
  planc_mix mix;
} mixed;

static void mixed_make(uint64_t seed, int32_t n_jobs, mixed *m) {
  static const int64_t batches[MOST_JOBS] = {64, 16, 32, 64};
  static const int32_t iterations[MOST_JOBS] = {2, 3, 1, 2};
  static const char *const names[MOST_JOBS] = {"a", NULL, "c", "d"};
  *m = (mixed){0};
  for (int32_t g = 0; g < N_GRAPHS; g++)
    ok(randgraph_make(2 * seed + (uint64_t)g, &(randgraph_options){.max_ops = 16, .max_elements = 4096},
                      &m->graphs[g]));
  for (int32_t j = 0; j < n_jobs; j++) {
    m->jobs[j] = (planc_workload){.graph = m->graphs[j == 2], .profile = k40m, .batch = batches[j]};
    m->jobs[j].priority = j % 2;
    m->iterations[j] = iterations[j];
    m->names[j] = names[j];
  }
  m->mix = (planc_mix){.n_jobs = n_jobs,
                       .jobs = m->jobs,
                       .iterations = m->iterations,
                       .names = m->names,
                       .deadlines_ns = m->deadlines_ns};
  m->mix.terms.budgets[PLANC_MEMORY_DEVICE] = planc_profile_device(k40m)->memory_bytes;
  m->mix.terms.budgets[PLANC_MEMORY_HOST] = -1;
}

static void mixed_free(mixed *m) {
  for (int32_t g = 0; g < N_GRAPHS; g++) planc_graph_free(m->graphs[g]);
}

/* Without launches, as plan_of has them. */
static planc_plan *mixed_plan(const mixed *m, const char *policy) {
  planc_mix_share shares[MOST_JOBS];
  planc_plan *plan;
  ok(planc_mix_resolve(&m->mix, shares));
  ok_in(planc_colocate(&m->mix, planc_mix_policy_find(policy), shares, &plan), policy);
  plan->device.launch_ns = 0;
  return plan;
}

/* The mix again, with what an update tells of its jobs. */
static void take_profiles(const planc_update *update, const planc_plan *plan, bool with_base, mixed *m) {
  for (int32_t j = 0; j < m->mix.n_jobs; j++) {
    m->jobs[j].profile = update->profiles[j];
    m->jobs[j].sub_batch = with_base ? 0 : plan->jobs[j].rounds[0];
  }
}

/* --- Machines that are known -------------------------------------------------------------------------------------- */

/* Every op takes so much of the GPU. */
static void set_busy(planc_plan *plan, int64_t busy_ppm) {
  for (int32_t i = 0; i < plan->body.n; i++) {
    planc_instr *instr = (planc_instr *)&plan->body.instrs[i];
    if (instr->op == PLANC_INSTR_exec) instr->busy_ppm = busy_ppm;
  }
}

static void assert_machine_found(const planc_plan *plan, const int64_t *percent) {
  planc_plan *other = on_another_machine(plan, percent);
  sheet *run = run_of(other);
  const planc_profile *const bases[] = {NULL, k40m};
  for (int b = 0; b < 2; b++) {
    planc_update *update = update_of(plan, run, bases[b], PPM);
    assert_found(other, update);
    planc_update_free(update);
  }
  free(run);
  planc_plan_free(other);
}

/* Jobs that take turns, and jobs side by side whose ops together do not take the whole GPU: each op and each link has
 * become as much slower or faster as it likes. */
START_TEST(another_machine_is_found) {
  static const char *const policies[] = {"temporal", "zico", "tensile", "vdnn-conv"};
  uint64_t state = (uint64_t)_i + 1;
  for (int32_t n_jobs = 1; n_jobs <= MOST_JOBS; n_jobs++) {
    mixed m;
    mixed_make((uint64_t)_i, n_jobs, &m);
    planc_plan *plan = mixed_plan(&m, policies[_i % 4]);
    set_busy(plan, 1000 + PPM / MOST_JOBS / 2);
    int64_t *percent = draw_percents(&state, plan, 30, 600);
    assert_machine_found(plan, percent);
    free(percent);
    planc_plan_free(plan);
    mixed_free(&m);
  }
}
END_TEST

/* Two rounds of one job, or of the first of three, run at once, each with half of what the GPU has. */
START_TEST(rounds_side_by_side_are_found) {
  uint64_t state = (uint64_t)_i + 1;
  mixed m;
  mixed_make((uint64_t)_i, _i % 2 == 0 ? 1 : 3, &m);
  m.jobs[0].side_by_side = 2;
  m.jobs[0].sub_batch = m.jobs[0].batch / 2;
  planc_plan *plan = mixed_plan(&m, "zico");
  int32_t n = 0;
  for (int32_t k = 0; k < plan->n_streams; k++) n += plan->streams[k].kind == PLANC_STREAM_KIND_compute;
  ck_assert_int_eq(n, m.mix.n_jobs + 1);
  set_busy(plan, PPM / (m.mix.n_jobs + 1));
  int64_t *percent = draw_percents(&state, plan, 30, 600);
  assert_machine_found(plan, percent);
  free(percent);
  planc_plan_free(plan);
  mixed_free(&m);
}
END_TEST

/* Where ops of several jobs take more than the whole GPU, how they share it follows the times that the plan knows: ops
 * that have all become slower alike are found as they are. */
START_TEST(ops_that_crowd_each_other_are_taken_apart) {
  static const char *const policies[] = {"zico", "vdnn-conv", "tensile"};
  int64_t slowed = 0;
  for (int64_t percent = 50; percent <= 400; percent *= 2) {
    mixed m;
    mixed_make((uint64_t)_i, 3, &m);
    planc_plan *plan = mixed_plan(&m, policies[_i % 3]);
    set_busy(plan, 700000);
    uint64_t state = 1;
    int64_t *percents = draw_percents(&state, plan, percent, percent);
    planc_plan *other = on_another_machine(plan, percents);
    sheet *run = run_of(other);
    planc_update *update = update_of(plan, run, NULL, PPM);
    for (int32_t k = 0; k < run->timeline.n_timed; k++) {
      const planc_instr *instr = &other->body.instrs[run->instrs[k]];
      if (instr->op == PLANC_INSTR_exec) slowed += run->spans[k].end_ns - run->spans[k].start_ns - instr->time_ns;
    }
    assert_near_ns(update->ops.measured_ns, update->ops.old_ns * percent / 100, 2e-3, update->ops.count);
    assert_links(other, update);
    planc_update_free(update);
    free(run);
    free(percents);
    planc_plan_free(other);
    planc_plan_free(plan);
    mixed_free(&m);
  }
  ck_assert_int_gt(slowed, 10000);
}
END_TEST

/* --- Tables and sums ---------------------------------------------------------------------------------------------- */

START_TEST(jobs_that_are_alike_share_a_table) {
  mixed m;
  mixed_make(1, 4, &m);
  planc_plan *plan = mixed_plan(&m, "temporal");
  sheet *run = run_of(plan);
  planc_profile another = *k40m;
  const planc_profile *const bases[2][MOST_JOBS] = {{k40m, k40m, k40m, k40m}, {k40m, k40m, k40m, &another}};
  for (int b = 0; b < 2; b++) {
    planc_update *update;
    planc_update_options options = {.plan = plan, .timeline = &run->timeline, .profiles = bases[b], .weight_ppm = PPM};
    ok(planc_update_make(&options, &update));
    const planc_profile *const *made = update->profiles;
    ck_assert(made[0] != made[1] && made[1] != made[2] && made[0] != made[2]);
    ck_assert_int_eq(made[3] == made[0], b == 0);
    ck_assert(made[2]->graph_hash == planc_graph_hash(m.graphs[1]));
    planc_update_free(update);
  }
  free(run);
  planc_plan_free(plan);
  mixed_free(&m);
}
END_TEST

/* The sum that is compared is that of all jobs' ops. */
START_TEST(change_is_of_all_jobs_together) {
  mixed m;
  mixed_make(2, 3, &m);
  planc_plan *plan = mixed_plan(&m, "temporal");
  uint64_t state = 1;
  int64_t *percent = draw_percents(&state, plan, 100, 100);
  for (int32_t o = 0; o <= m.graphs[0]->n_ops; o++) percent[o] = 300; /* of the first job */
  planc_plan *other = on_another_machine(plan, percent);
  sheet *run = run_of(other);
  planc_update *update = update_of(plan, run, NULL, PPM);
  planc_latency_sum sum = {0};
  for (int32_t j = 0; j < 3; j++) {
    sum.count += update->jobs[j].count;
    sum.old_ns += update->jobs[j].old_ns;
    sum.new_ns += update->jobs[j].new_ns;
    assert_near_ns(update->jobs[j].measured_ns, update->jobs[j].old_ns * (j == 0 ? 3 : 1), 0, update->jobs[j].count);
  }
  ck_assert_int_eq(sum.count, update->ops.count);
  ck_assert_int_eq(sum.old_ns, update->ops.old_ns);
  ck_assert_int_eq(sum.new_ns, update->ops.new_ns);
  assert_near_ns(update->change_ppm, 2 * PPM * update->jobs[0].old_ns / sum.old_ns, 1e-3, 1);
  planc_update_free(update);
  free(run);
  free(percent);
  planc_plan_free(other);
  planc_plan_free(plan);
  mixed_free(&m);
}
END_TEST

/* Profiles that tell of code, each otherwise, or of none: what is reserved beside it is the same for all, and what is
 * planned with the update's profiles reserves what the plan did. */
START_TEST(code_stays_apart_from_what_is_reserved) {
  static const pl_labelled little[] = {{"default", 4096}, {"gemm", 70000}}, much[] = {{"default", 8192}};
  planc_profile with[] = {*k40m, *k40m, *k40m};
  const planc_profile *bases[] = {&with[0], &with[1], &with[2]};
  mixed m;
  mixed_make(1, 3, &m);
  with[0].code = (pl_labels){2, little};
  with[1].code = (pl_labels){1, much};
  for (int32_t j = 0; j < 3; j++) {
    with[j].device.reserved_bytes = 12345;
    m.jobs[j].profile = bases[j];
  }
  planc_plan *plan = mixed_plan(&m, "temporal");
  ck_assert_int_ge(device_of(plan)->reserved_bytes, 12345 + 8192);
  sheet *run = run_of(plan);
  planc_update *update;
  planc_update_options options = {.plan = plan, .timeline = &run->timeline, .profiles = bases, .weight_ppm = PPM};
  ok(planc_update_make(&options, &update));
  for (int32_t j = 0; j < 3; j++) {
    ck_assert_int_eq(planc_profile_device(update->profiles[j])->reserved_bytes, 12345);
    ck_assert_int_eq(planc_profile_code_of_all(update->profiles[j]), planc_profile_code_of_all(bases[j]));
  }
  take_profiles(update, plan, true, &m);
  planc_plan *next = mixed_plan(&m, "temporal");
  ck_assert_int_eq(device_of(next)->reserved_bytes, device_of(plan)->reserved_bytes);
  planc_plan_free(next);
  planc_update_free(update);
  free(run);
  planc_plan_free(plan);
  mixed_free(&m);
}
END_TEST

/* --- The plan to go on with --------------------------------------------------------------------------------------- */

static void assert_same_jobs(const planc_plan *a, const planc_plan *b) {
  ck_assert_int_eq(a->n_jobs, b->n_jobs);
  for (int32_t j = 0; j < a->n_jobs; j++) {
    const planc_job *one = &a->jobs[j], *other = &b->jobs[j];
    ck_assert_ptr_eq(one->graph, other->graph);
    ck_assert_int_eq(one->batch, other->batch);
    ck_assert_int_eq(one->iterations, other->iterations);
    ck_assert_int_eq(one->priority, other->priority);
    ck_assert(one->name == other->name || strcmp(one->name, other->name) == 0);
  }
}

typedef struct endings {
  int32_t anew, kept;
} endings;

static void assert_at_worst_the_old(const mixed *m, const planc_plan *plan, const planc_mix_policy *policy,
                                    endings *seen) {
  planc_replanned next;
  planc_retimed retimed;
  planc_simulation simulated;
  planc_mix_share shares[MOST_JOBS];
  const planc_profile *profiles[MOST_JOBS];
  ok_in(planc_mix_replan(&m->mix, policy, plan, shares, &next), policy->name);
  const planc_plan *chosen = planc_replanned_plan(&next);
  ok(planc_check(chosen, NULL, NULL));
  assert_same_jobs(chosen, plan);
  ck_assert_int_le(chosen->predicted.peak_bytes[PLANC_MEMORY_DEVICE], m->mix.terms.budgets[PLANC_MEMORY_DEVICE]);
  for (int32_t j = 0; j < m->mix.n_jobs; j++) profiles[j] = m->jobs[j].profile;
  ok(planc_retime_jobs(plan, profiles, &retimed));
  ok(planc_simulate(&retimed.plan, NULL, &simulated));
  ck_assert_int_le(chosen->predicted.period_ns, simulated.period_ns);
  if (next.keeps) ck_assert_int_eq(chosen->predicted.period_ns, simulated.period_ns);
  for (int32_t j = 0; j < m->mix.n_jobs; j++) {
    ck_assert_int_eq(shares[j].iterations, m->iterations[j]);
    double speed = (double)shares[j].whole_ns * m->iterations[j] / (double)chosen->predicted.period_ns;
    ck_assert_int_le(llabs(shares[j].speed_ppm - (int64_t)(speed * PPM)), 1);
  }
  seen->anew += !next.keeps;
  seen->kept += next.keeps;
  planc_retimed_free(&retimed);
  planc_replanned_free(&next);
}

/* In the budget that the plan takes, on a machine where every op and copy takes up to 20 times as long or short. */
START_TEST(an_update_is_at_worst_the_old_decisions) {
  static const char *const policies[] = {"zico", "waterwave", "waterwave-s", "tensile", "temporal"};
  enum { N = 20 };
  uint64_t state = 1;
  endings seen = {0};
  for (int n = 0; n < N; n++) {
    mixed m;
    const planc_mix_policy *policy = planc_mix_policy_find(policies[n % 5]);
    mixed_make((uint64_t)n, 1 + n % 3, &m);
    planc_plan *plan = mixed_plan(&m, policy->name);
    for (int with_base = 0; with_base < 2; with_base++) {
      int64_t *percent = draw_percents(&state, plan, 5, 2000);
      planc_plan *other = on_another_machine(plan, percent);
      sheet *run = run_of(other);
      planc_update *update = update_of(plan, run, with_base ? k40m : NULL, PPM);
      take_profiles(update, plan, with_base, &m);
      m.mix.terms.budgets[PLANC_MEMORY_DEVICE] = plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE];
      assert_at_worst_the_old(&m, plan, policy, &seen);
      planc_update_free(update);
      free(run);
      free(percent);
      planc_plan_free(other);
    }
    planc_plan_free(plan);
    mixed_free(&m);
  }
  ck_assert_msg(seen.anew > 0 && seen.kept > 0, "%d anew, %d kept", seen.anew, seen.kept);
}
END_TEST

/* A plan that is late is none, be it new or at hand; in less memory than it takes neither is there. */
START_TEST(deadlines_and_budgets_hold) {
  mixed m;
  mixed_make(3, 2, &m);
  planc_replanned next;
  planc_mix_share shares[MOST_JOBS];
  m.deadlines_ns[1] = INT64_C(1) << 40;
  planc_plan *plan = mixed_plan(&m, "preemptive");
  sheet *run = run_of(plan);
  planc_update *update = update_of(plan, run, NULL, PPM);
  take_profiles(update, plan, false, &m);
  const planc_mix_policy *policy = planc_mix_policy_find("preemptive");
  ok(planc_mix_replan(&m.mix, policy, plan, shares, &next));
  ck_assert_int_gt(shares[1].response_ns, 0);
  m.deadlines_ns[1] = shares[1].response_ns;
  planc_replanned_free(&next);
  ok(planc_mix_replan(&m.mix, policy, plan, shares, &next));
  planc_replanned_free(&next);
  m.deadlines_ns[1] = 2;
  assert_fails(planc_mix_replan(&m.mix, policy, plan, shares, &next), PLANC_LATE, "job 1");
  ck_assert_ptr_null(planc_replanned_plan(&next));
  m.deadlines_ns[1] = 0;
  assert_fails(planc_mix_replan(&m.mix, policy, plan, shares, &next), PLANC_USAGE, "deadlines");
  m.deadlines_ns[1] = INT64_C(1) << 40;
  m.mix.terms.budgets[PLANC_MEMORY_DEVICE] = 4096;
  assert_fails(planc_mix_replan(&m.mix, policy, plan, shares, &next), PLANC_INFEASIBLE, "4096");
  planc_update_free(update);
  free(run);
  planc_plan_free(plan);
  mixed_free(&m);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("update_mixes");
  TCase *all = tcase_create("all");
  tcase_add_unchecked_fixture(all, set_up, tear_down);
  tcase_set_timeout(all, 60);
  tcase_add_loop_test(all, another_machine_is_found, 0, 12);
  tcase_add_loop_test(all, rounds_side_by_side_are_found, 0, 8);
  tcase_add_loop_test(all, ops_that_crowd_each_other_are_taken_apart, 0, 6);
  tcase_add_test(all, jobs_that_are_alike_share_a_table);
  tcase_add_test(all, change_is_of_all_jobs_together);
  tcase_add_test(all, code_stays_apart_from_what_is_reserved);
  tcase_add_test(all, an_update_is_at_worst_the_old_decisions);
  tcase_add_test(all, deadlines_and_budgets_hold);
  suite_add_tcase(suite, all);
  return run_suite(suite);
}
