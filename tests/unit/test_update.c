/* Updating: weights and sums against arithmetic written out; runs invented by the simulator on a device whose speeds
 * are known, which an update must find again; what it does not measure goes along in proportion; extremes. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cost/profile.h"
#include "tests/support/plan_tables.h"
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

/* --- Weights ------------------------------------------------------------------------------------------------------ */

/* Instructions one after the other, so that none is slowed. The first period is out of the ordinary as runs' first
 * ones are, and so is one of the three behind it. */
static void invent(sheet *s, const int64_t *durations) {
  int64_t now = 0;
  for (int32_t p = 0; p < SHEET_REPLAYED; p++) {
    for (int32_t k = 0; k < s->timeline.n_timed; k++) {
      int64_t took = p % 2 == 0 ? durations[k] * 100 + 7 : durations[k];
      s->spans[p * s->timeline.n_timed + k] = (planc_span){now, now + took};
      now += took;
    }
  }
}

static int64_t mean(int64_t old_ns, int64_t measured_ns, int64_t weight_ppm) {
  return llround((double)measured_ns * (double)weight_ppm / PPM + (double)old_ns * (double)(PPM - weight_ppm) / PPM);
}

static double apart(const planc_latency_sum *sum) {
  return fabs((double)sum->new_ns - (double)sum->old_ns);
}

static void assert_sums(const planc_plan *plan, const sheet *s, const int64_t *durations, int64_t weight_ppm,
                        const planc_update *update) {
  planc_latency_sum ops = {0}, copies[PLANC_N_ROUTES] = {0};
  for (int32_t k = 0; k < s->timeline.n_timed; k++) {
    const planc_instr *instr = &plan->body.instrs[s->instrs[k]];
    planc_route route = copies_on(plan, instr, "h2d") ? PLANC_ROUTE_H2D : PLANC_ROUTE_D2H;
    bool exec = instr->op == PLANC_INSTR_exec;
    planc_latency_sum *sum = exec ? &ops : &copies[route];
    int64_t old_ns = exec ? instr->time_ns : planc_link_ns(link_of(plan, route), instr->bytes);
    sum->count++;
    sum->old_ns += old_ns;
    sum->measured_ns += durations[k];
    sum->new_ns += mean(old_ns, durations[k], weight_ppm);
  }
  ck_assert_mem_eq(&ops, &update->ops, sizeof ops);
  double most = apart(&update->ops);
  for (int r = 0; r < PLANC_N_ROUTES; r++) { /* hand-overs come on top */
    const planc_latency_sum *found = &update->copies[r];
    ck_assert_int_eq(found->count, copies[r].count);
    ck_assert_int_eq(found->old_ns, copies[r].old_ns);
    ck_assert_int_ge(found->measured_ns, copies[r].measured_ns);
    ck_assert_int_le(llabs(found->new_ns - mean(found->old_ns, found->measured_ns, weight_ppm)), 4);
    most = fmax(most, apart(found));
  }
  ck_assert_int_eq(update->change_ppm, (int64_t)floor(most * PPM / (double)ops.old_ns));
}

START_TEST(weights_are_what_they_say) {
  static const int64_t weights[] = {0, 1, 250000, 900000, 1000000};
  uint64_t state = (uint64_t)_i;
  planc_plan *plan;
  ok(planc_plan_read("tests/data/timeline/tiny.plan", &plan));
  sheet *s = sheet_of(plan, SHEET_REPLAYED);
  int64_t *durations = calloc((size_t)s->timeline.n_timed, sizeof *durations);
  ck_assert(durations != NULL);
  for (int32_t k = 0; k < s->timeline.n_timed; k++) durations[k] = rand_below(&state, 20000);
  invent(s, durations);
  for (size_t w = 0; w < sizeof weights / sizeof *weights; w++) {
    planc_update *update = update_of(plan, s, NULL, weights[w]);
    planc_costs *costs;
    ok(planc_costs_make(update->profiles[0], plan->jobs[0].graph, 1, &plan->jobs[0].batch, &costs));
    for (int32_t k = 0; k < s->timeline.n_timed; k++) {
      const planc_instr *instr = &plan->body.instrs[s->instrs[k]];
      if (instr->op != PLANC_INSTR_exec) continue;
      const planc_variant *cost = cost_of(costs, instr->id, plan->jobs[0].batch, "default");
      ck_assert_int_eq(cost->time_ns, mean(instr->time_ns, durations[k], weights[w]));
      ck_assert_int_eq(cost->busy_ppm, instr->busy_ppm);
    }
    assert_sums(plan, s, durations, weights[w], update);
    planc_costs_free(costs);
    planc_update_free(update);
  }
  free(durations);
  free(s);
  planc_plan_free(plan);
}
END_TEST

/* In this trace every copy takes 2 ns a byte, with half a microsecond before everything. Every copy has that behind it;
 * ahead of it only the first one out, for the others begin behind what a copy before them has, or are the user's. */
START_TEST(hand_overs_count_with_copies) {
  planc_plan *plan;
  planc_timeline *timeline;
  planc_update *update;
  ok(planc_plan_read("tests/data/timeline/tiny.plan", &plan));
  ok(planc_timeline_read("tests/data/timeline/tiny.json", plan, &timeline));
  planc_update_options options = {.plan = plan, .timeline = timeline, .weight_ppm = PPM};
  ok(planc_update_make(&options, &update));
  ck_assert_int_le(llabs(update->copies[PLANC_ROUTE_H2D].measured_ns -
                         (2 * plan->predicted.jobs[0].copied_bytes[PLANC_ROUTE_H2D] + 4 * 500)),
                   100);
  ck_assert_int_le(llabs(update->copies[PLANC_ROUTE_D2H].measured_ns -
                         (2 * plan->predicted.jobs[0].copied_bytes[PLANC_ROUTE_D2H] + 4 * 500)),
                   100);
  planc_update_free(update);
  planc_timeline_free(timeline);
  planc_plan_free(plan);
}
END_TEST
/* --- Machines that are known -------------------------------------------------------------------------------------- */

START_TEST(another_machine_is_found) {
  uint64_t state = (uint64_t)_i + 1;
  planc_graph *graph;
  ok(randgraph_make((uint64_t)_i, &(randgraph_options){.max_ops = 24, .max_elements = 4096}, &graph));
  for (int32_t p = 0; p < N_UPDATED_POLICIES; p++) {
    planc_problem problem = roomy_problem(graph, k40m, 64);
    problem.job.sub_batch = _i % 3 == 0 ? 24 : 0;
    problem.terms.gpus = 1 + _i % 4 % 3; /* of which the run shows one */
    problem.terms.shared_link = _i % 8 > 3 && problem.terms.gpus > 1;
    planc_plan *plan = plan_of(&problem, updated_policies[p]);
    ck_assert_int_eq(planc_plan_replicas(plan), problem.terms.gpus);
    int64_t *percent = draw_percents(&state, plan, 30, 600);
    planc_plan *other = on_another_machine(plan, percent);
    sheet *run = run_of(other);
    planc_update *update = update_of(plan, run, NULL, PPM);
    assert_found(other, update);
    planc_update_free(update);
    update = update_of(plan, run, k40m, PPM);
    assert_found(other, update);
    planc_update_free(update);
    free(run);
    free(percent);
    planc_plan_free(other);
    planc_plan_free(plan);
  }
  planc_graph_free(graph);
}
END_TEST

static bool has_origin(const planc_profile *profile, const char *of) {
  for (int32_t o = 0; o < profile->n_origins; o++)
    if (strcmp(profile->origins[o].of, of) == 0) return true;
  return false;
}

/* A plan that stores half of what it offloads, on a machine whose storage is another, too. */
START_TEST(another_storage_is_found) {
  int32_t n_stores = 0;
  planc_profile *with_storage;
  ok(planc_profile_read("profiles/k40m.json", &with_storage));
  with_storage->device.links[PLANC_ROUTE_STORE] = (planc_link){.bytes_per_second = 1000000000, .latency_ns = 20000};
  with_storage->device.links[PLANC_ROUTE_LOAD] = (planc_link){.bytes_per_second = 2000000000, .latency_ns = 10000};
  for (uint64_t seed = 0; seed < 20; seed++) {
    uint64_t state = seed + 1;
    planc_graph *graph;
    ok(randgraph_make(seed, &(randgraph_options){.max_ops = 24, .max_elements = 4096}, &graph));
    planc_problem problem = roomy_problem(graph, with_storage, 64);
    planc_plan *whole = plan_of(&problem, "naive");
    problem.terms.budgets[PLANC_MEMORY_HOST] = host_of(whole)->arena_bytes / 2;
    problem.terms.budgets[PLANC_MEMORY_STORAGE] = INT64_C(1) << 40;
    planc_plan *plan = NULL;
    planc_status status = planc_make_plan(&problem, planc_policy_find("naive"), &plan);
    if (!status) {
      plan->device.launch_ns = 0;
      int64_t *percent = draw_percents(&state, plan, 30, 600);
      planc_plan *other = on_another_machine(plan, percent);
      sheet *run = run_of(other);
      for (int with_base = 0; with_base < 2; with_base++) {
        planc_update *update = update_of(plan, run, with_base ? with_storage : NULL, PPM);
        assert_found(other, update);
        n_stores += update->copies[PLANC_ROUTE_STORE].count;
        ck_assert_int_eq(has_origin(update->profiles[0], "device.storage"),
                         update->copies[PLANC_ROUTE_STORE].count + update->copies[PLANC_ROUTE_LOAD].count > 0);
        planc_update_free(update);
      }
      free(run);
      free(percent);
      planc_plan_free(other);
      planc_plan_free(plan);
    }
    planc_status_free(status);
    planc_plan_free(whole);
    planc_graph_free(graph);
  }
  ck_assert_int_gt(n_stores, 40);
  planc_profile_free(with_storage);
}
END_TEST
/* --- Copies against each other ------------------------------------------------------------------------------------ */

static bool is_slowed(const planc_plan *plan, const planc_instr *instr, planc_span span) {
  if (instr->op != PLANC_INSTR_copy) return false;
  planc_route route = copies_on(plan, instr, "h2d") ? PLANC_ROUTE_H2D : PLANC_ROUTE_D2H;
  return span.end_ns - span.start_ns > planc_link_ns(link_of(plan, route), instr->bytes) + 1;
}

/* A plan of copies that often run against each other, each to less than half as fast. */
static planc_plan *duplex_plan(const planc_problem *problem, const char *policy, int64_t launch_ns) {
  planc_plan *plan = plan_of(problem, policy);
  plan->device.launch_ns = launch_ns;
  plan->device.duplex_ppm = 450000;
  plan->device.slowdown_ppm = 0;
  tables_links(plan, (planc_link){2000000000, 5000}, (planc_link){1500000000, 7000});
  return plan;
}

/* A run as predicted, whatever its launches, tells what the plan was made with, and tells it again. */
START_TEST(what_is_predicted_is_found_again) {
  static const int64_t launches[] = {0, 3000, 40000};
  int32_t n_slowed = 0;
  for (int seed = 0; seed < 12; seed++) {
    planc_graph *graph;
    ok(randgraph_make((uint64_t)seed, &(randgraph_options){.max_ops = 24, .max_elements = 4096}, &graph));
    planc_problem problem = roomy_problem(graph, k40m, 64);
    for (int p = 0; p < N_UPDATED_POLICIES; p++) {
      planc_plan *plan = duplex_plan(&problem, updated_policies[p], launches[_i]);
      sheet *run = run_of(plan);
      planc_update *update = update_of(plan, run, NULL, PPM);
      assert_links(plan, update);
      assert_near_ns(update->ops.new_ns, update->ops.old_ns, 0, 0);
      ck_assert_int_lt(update->change_ppm, 1000);
      for (int32_t k = 0; k < run->timeline.n_timed; k++)
        n_slowed += is_slowed(plan, &plan->body.instrs[run->instrs[k]], run->spans[k]);
      planc_update_free(update);
      free(run);
      planc_plan_free(plan);
    }
    planc_graph_free(graph);
  }
  ck_assert_int_gt(n_slowed, 50);
}
END_TEST

/* In a run the latency is around the copies, where a trace does not show that copies slow each other: here behind those
 * in, ahead of those out. */
static void show_handovers(const planc_plan *plan, sheet *run) {
  for (int32_t i = 0; i < run->timeline.n_periods * run->timeline.n_timed; i++) {
    const planc_instr *instr = &plan->body.instrs[run->instrs[i % run->timeline.n_timed]];
    if (instr->op != PLANC_INSTR_copy) continue;
    if (copies_on(plan, instr, "h2d"))
      run->spans[i].end_ns -= link_of(plan, PLANC_ROUTE_H2D)->latency_ns;
    else
      run->spans[i].start_ns += link_of(plan, PLANC_ROUTE_D2H)->latency_ns;
  }
}

/* The plan at the times that a run of it told takes what the run took, and a second update changes nothing. */
static void assert_settles(const planc_plan *plan, const planc_plan *machine, const sheet *run) {
  planc_retimed retimed;
  planc_simulation predicted, ran;
  planc_update *update = update_of(plan, run, NULL, PPM);
  assert_links(machine, update);
  ok(planc_retime(plan, update->profiles[0], &retimed));
  ok(planc_simulate(&retimed.plan, NULL, &predicted));
  ok(planc_simulate(machine, NULL, &ran));
  assert_near_ns(predicted.period_ns, ran.period_ns, 2e-3, 100);
  planc_update_free(update);
  update = update_of(&retimed.plan, run, NULL, PPM);
  assert_links(&retimed.plan, update);
  ck_assert_int_lt(update->change_ppm, 2000);
  planc_update_free(update);
  planc_retimed_free(&retimed);
}

/* The policy waits for every copy, so that each hand-over can be seen. */
START_TEST(hand_overs_are_slowed_as_copies_are) {
  uint64_t state = (uint64_t)_i + 1;
  planc_graph *graph;
  ok(randgraph_make((uint64_t)_i, &(randgraph_options){.max_ops = 24, .max_elements = 4096}, &graph));
  planc_problem problem = roomy_problem(graph, k40m, 64);
  planc_plan *plan = duplex_plan(&problem, "naive", 0);
  int64_t *percent = draw_percents(&state, plan, 50, 200);
  planc_plan *machine = on_another_machine(plan, percent);
  sheet *run = run_of(machine);
  show_handovers(machine, run);
  assert_settles(plan, machine, run);
  free(run);
  free(percent);
  planc_plan_free(machine);
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

/* --- In proportion ------------------------------------------------------------------------------------------------ */

/* Algorithms and batches that did not run become as much slower as their op. */
START_TEST(what_did_not_run_goes_along) {
  static const int64_t batches[] = {1, 4, 16, 32};
  static const char *const sources[] = {"profiles/k40m.json", "tests/data/profile/toy.json"};
  uint64_t state = (uint64_t)_i;
  planc_graph *graph;
  planc_profile *base;
  const char *derived;
  planc_plan *plan;
  planc_costs *before, *after;
  ok(planc_profile_read(sources[_i % 2], &base));
  ok(planc_graph_prepare("graphs/vgg16.yaml", NULL, false, &graph, &derived));
  planc_problem problem = roomy_problem(graph, base, 32);
  plan = plan_of(&problem, "vdnn-all");
  int64_t *percent = draw_percents(&state, plan, 50, 300);
  planc_plan *other = on_another_machine(plan, percent);
  sheet *run = run_of(other);
  planc_update *update = update_of(plan, run, base, PPM);
  ok(planc_costs_make(base, graph, 4, batches, &before));
  ok(planc_costs_make(update->profiles[0], graph, 4, batches, &after));
  for (int32_t o = 0; o < graph->n_ops; o++) {
    for (int32_t b = 0; b < 4; b++) {
      int32_t n, m;
      const planc_variant *was = planc_costs_variants(before, o, b, &n);
      (void)planc_costs_variants(after, o, b, &m);
      ck_assert_int_eq(n, m);
      for (int32_t v = 0; v < n; v++) {
        const planc_variant *is = cost_of(after, o, batches[b], was[v].algorithm);
        assert_near_ns(is->time_ns, was[v].time_ns * percent[o] / 100, 1e-3, 2);
        ck_assert_int_eq(is->workspace_bytes, was[v].workspace_bytes);
        ck_assert_int_eq(is->busy_ppm, was[v].busy_ppm);
      }
    }
  }
  planc_costs_free(before);
  planc_costs_free(after);
  planc_update_free(update);
  free(run);
  free(percent);
  planc_plan_free(other);
  planc_plan_free(plan);
  planc_profile_free(base);
  planc_graph_free(graph);
}
END_TEST
/* --- What cannot be updated --------------------------------------------------------------------------------------- */

START_TEST(other_plans_are_refused) {
  planc_plan *plan;
  planc_update *update;
  ok(planc_plan_read("tests/data/timeline/tiny.plan", &plan));
  sheet *run = run_of(plan);
  planc_update_options options = {.plan = plan, .timeline = &run->timeline, .weight_ppm = PPM + 1};
  assert_fails(planc_update_make(&options, &update), PLANC_USAGE, "weight");
  options.weight_ppm = PPM;
  planc_plan two = *plan;
  planc_memory memories[] = {plan->memories[0], plan->memories[0], plan->memories[1], plan->memories[2]};
  planc_plan_link links[6];
  ck_assert_int_eq(plan->n_links, 6);
  for (int32_t l = 0; l < 6; l++) {
    links[l] = plan->links[l];
    links[l].from += links[l].from > 0;
    links[l].to += links[l].to > 0;
  }
  two.n_memories = 4;
  two.memories = memories;
  two.links = links;
  ck_assert_int_eq(planc_plan_gpus(&two), 2);
  options.plan = &two;
  assert_fails(planc_update_make(&options, &update), PLANC_USAGE, "GPUs that do different things");
  options.plan = plan;
  tables_links(plan, (planc_link){0}, *link_of(plan, PLANC_ROUTE_D2H));
  assert_fails(planc_update_make(&options, &update), PLANC_INVALID_PLAN, "k40m");
  tables_links(plan, (planc_link){.bytes_per_second = 1}, *link_of(plan, PLANC_ROUTE_D2H));
  for (int32_t i = 0; i < plan->body.n; i++)
    if (plan->body.instrs[i].op == PLANC_INSTR_exec) ((planc_instr *)&plan->body.instrs[i])->id = 1 << 20;
  assert_fails(planc_update_make(&options, &update), PLANC_INVALID_PLAN, "no instance");
  free(run);
  planc_plan_free(plan);
}
END_TEST

/* Whatever a trace may say, and a plan as well, gives a profile that can be read again. */
START_TEST(extremes_stay_within_the_format) {
  static const int64_t extremes[] = {0, 1, 2, PLANC_TIMELINE_MAX_NS / 7, PLANC_TIMELINE_MAX_NS};
  enum { N = sizeof extremes / sizeof *extremes };
  uint64_t state = (uint64_t)_i;
  planc_plan *plan;
  planc_profile *read;
  ok(planc_plan_read("tests/data/timeline/tiny.plan", &plan));
  for (int32_t i = 0; i < plan->body.n; i++)
    if (plan->body.instrs[i].op == PLANC_INSTR_exec && rand_chance(&state, 50))
      ((planc_instr *)&plan->body.instrs[i])->time_ns = (INT64_C(1) << 53) - rand_below(&state, 2);
  if (rand_chance(&state, 30)) tables_links(plan, (planc_link){1, INT64_C(1) << 53}, *link_of(plan, PLANC_ROUTE_D2H));
  if (rand_chance(&state, 30)) plan->device.slowdown_ppm = 1000 * (int64_t)PPM;
  sheet *s = sheet_of(plan, SHEET_REPLAYED);
  for (int32_t i = 0; i < SHEET_REPLAYED * s->timeline.n_timed; i++) {
    int64_t begin = extremes[rand_below(&state, N)];
    s->spans[i] = (planc_span){begin, begin + extremes[rand_below(&state, N)]};
  }
  for (int with_base = 0; with_base < 2; with_base++) {
    planc_update *update = update_of(plan, s, with_base ? k40m : NULL, rand_below(&state, PPM + 1));
    char *text;
    size_t length;
    ok(planc_update_print(update, 0, &text, &length));
    ok(planc_profile_parse(text, length, "update", &read));
    planc_profile_free(read);
    free(text);
    ck_assert_int_ge(update->change_ppm, 0);
    ck_assert_int_ge(update->ops.new_ns, 0);
    planc_update_free(update);
  }
  free(s);
  planc_plan_free(plan);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("update");
  TCase *all = tcase_create("all");
  tcase_add_unchecked_fixture(all, set_up, tear_down);
  tcase_set_timeout(all, 60);
  tcase_add_loop_test(all, weights_are_what_they_say, 0, 10);
  tcase_add_test(all, hand_overs_count_with_copies);
  tcase_add_loop_test(all, another_machine_is_found, 0, 30);
  tcase_add_test(all, another_storage_is_found);
  tcase_add_loop_test(all, what_is_predicted_is_found_again, 0, 3);
  tcase_add_loop_test(all, hand_overs_are_slowed_as_copies_are, 0, 30);
  tcase_add_loop_test(all, what_did_not_run_goes_along, 0, 2);
  tcase_add_test(all, other_plans_are_refused);
  tcase_add_loop_test(all, extremes_stay_within_the_format, 0, 200);
  suite_add_tcase(suite, all);
  return run_suite(suite);
}
