/* Policies know candidates by their evaluator alone. The planner's own says of a candidate what lowering and the
 * simulator say of its plan; and what others say, evaluators of a test's own, decides what policies choose. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planc/policy.h"
#include "planc/simulate.h"
#include "planner/choose/walk.h"
#include "planner/evaluate.h"
#include "planner/policies/policies.h"
#include "tests/support/broken.h"
#include "tests/support/least.h"
#include "tests/support/lower_for.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

enum { GRAPHS = 12, BATCH = 8 };

static planc_profile *profile;
static planc_graph *graph; /* LeNet */
static planc_problem problem;

static void set_up(void) {
  planc_graph *forward;
  ok(planc_profile_read("profiles/k40m.json", &profile));
  ok(planc_graph_read("graphs/lenet-digits.yaml", &forward));
  ok(planc_graph_train(forward, PLANC_SGD, &graph));
  planc_graph_free(forward);
  problem = (planc_problem){.job.graph = graph,
                            .job.profile = profile,
                            .job.batch = BATCH,
                            .terms.budgets[PLANC_MEMORY_DEVICE] = 1 << 30,
                            .terms.budgets[PLANC_MEMORY_HOST] = -1};
}

static void tear_down(void) {
  planc_graph_free(graph);
  planc_profile_free(profile);
}

/* --- The planner's own -------------------------------------------------------------------------------------------- */

typedef struct seen {
  const planc_plan *plan; /* the same candidate's, lowered here */
  int64_t starts[1 << 12], ends[1 << 12];
  int calls;
} seen;

static void note(void *user, const planc_plan *plan, const planc_instr *instr, int64_t start_ns, int64_t end_ns) {
  seen *s = user;
  if (instr < plan->body.instrs || instr >= plan->body.instrs + plan->body.n) return;
  s->starts[instr - plan->body.instrs] = start_ns;
  s->ends[instr - plan->body.instrs] = end_ns;
}

static int n_timed_recomputes;

/* Positions are the execs of the body, recomputes as well, and run when those do. */
static void compare_runs(const planc_simulated *simulated, const seen *s) {
  int32_t position = 0;
  for (int32_t i = 0; i < s->plan->body.n; i++) {
    const planc_instr *instr = &s->plan->body.instrs[i];
    if (instr->op != PLANC_INSTR_exec) continue;
    ck_assert_int_lt(position, simulated->order->n);
    const planc_run_time *at = &simulated->times[position];
    ck_assert_int_eq(at->instr, i);
    ck_assert_int_eq(at->start_ns, s->starts[i]);
    ck_assert_int_eq(at->end_ns, s->ends[i]);
    ck_assert_int_eq(simulated->order->runs[position].instance, instr->id);
    ck_assert_int_eq(simulated->order->runs[position].recompute, instr->recompute);
    n_timed_recomputes += instr->recompute;
    if (position++ > 0) ck_assert_int_ge(at->start_ns, at[-1].end_ns);
  }
  ck_assert_int_eq(position, simulated->order->n);
}

static planc_status compare(void *user, const planc_simulated *simulated) {
  seen *s = user;
  s->calls++;
  ck_assert_int_eq(simulated->plan->body.n, s->plan->body.n);
  ck_assert(memcmp(simulated->end_ns, s->ends, (size_t)s->plan->body.n * sizeof *s->ends) == 0);
  compare_runs(simulated, s);
  return NULL;
}

static planc_status refuse(void *user, const planc_simulated *simulated) {
  (void)user;
  (void)simulated;
  return planc_error(PLANC_INTERNAL, "refused");
}

/* Holding succeeds or says what is too small. */
static void held(planc_status status, bool fits, planc_memory_kind memory, int64_t bytes, const char *what) {
  ck_assert_msg(fits == !status, "%s", what);
  if (status) {
    ck_assert_int_eq(planc_status_code(status), PLANC_INFEASIBLE);
    ck_assert_int_eq(planc_status_shortage(status).memory, memory);
    ck_assert_int_eq(planc_status_shortage(status).bytes, bytes);
    char said[64];
    snprintf(said, sizeof said, " took %lld bytes of ", (long long)bytes);
    ck_assert_msg(strstr(planc_status_message(status), said) != NULL, "%s", planc_status_message(status));
  }
  planc_status_free(status);
}

/* Of what is too much for the device only that is known. */
static void check_taken(const planc_taken *taken, bool too_much, const planc_plan *plan, int64_t ns) {
  ck_assert_int_eq(taken->fits, !too_much);
  ck_assert_int_eq(taken->period_ns, too_much ? 0 : ns);
  for (int32_t m = 0; m < PLANC_N_BUDGETS; m++)
    ck_assert_int_eq(taken->peak_bytes[m], too_much && m != PLANC_MEMORY_DEVICE ? 0 : plan->predicted.peak_bytes[m]);
}

/* Addresses of a body are those of `place`; its arena is the device's. */
static void check_places(const planc_evaluator *evaluator, const planc_candidate *candidate, const planc_plan *plan) {
  const planc_schedule *s = candidate->schedule;
  int64_t residencies[1 << 12], workspaces[1 << 12], arena_bytes;
  int32_t n = planc_schedule_n_residencies(s), c = 0;
  ck_assert_int_le(n, 1 << 12);
  ck_assert_int_le(planc_schedule_n_commands(s), 1 << 12);
  ok(evaluator->place(evaluator, candidate, (planc_placing){0}, residencies, workspaces, &arena_bytes));
  ck_assert_int_eq(arena_bytes, planc_plan_memory(plan, PLANC_MEMORY_DEVICE)->arena_bytes);
  for (int32_t r = 0; r < planc_schedule_n_boundary(s); r++)
    if (r >= planc_schedule_n_away(s)) ck_assert_int_eq(residencies[r], plan->boundary[r].address);
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (instr->op != PLANC_INSTR_exec) continue;
    while (planc_schedule_commands(s)[c].kind != PLANC_CMD_EXEC) c++;
    if (instr->bytes > 0) ck_assert_int_eq(workspaces[c], instr->address);
    c++;
  }
}

static void check_against_plan(planc_problem *of, const planc_candidate *candidate, const char *what) {
  planc_evaluator evaluator = pl_evaluator_of(of);
  planc_simulation simulation;
  planc_plan *plan;
  seen s = {0};
  int64_t live, peak, ns;
  planc_taken taken;
  ok_in(lower_for(of, "", candidate, &plan), what);
  s.plan = plan;
  ck_assert_int_le(plan->body.n, 1 << 12);
  ok_in(planc_simulate(plan, &(planc_simulate_options){.visitor = note, .user = &s}, &simulation), what);
  int64_t host = plan->predicted.peak_bytes[PLANC_MEMORY_HOST];
  ok_in(evaluator.live(&evaluator, candidate, &live), what);
  ok_in(evaluator.peak(&evaluator, candidate, &peak), what);
  ok_in(evaluator.time(&evaluator, candidate, &ns), what);
  check_places(&evaluator, candidate, plan);
  ck_assert_int_le(live, peak);
  ck_assert_int_eq(peak, plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE]);
  ck_assert_int_eq(ns, simulation.period_ns);
  for (int64_t short_of = 0; short_of < 2; short_of++) {
    of->terms.budgets[PLANC_MEMORY_DEVICE] = peak - short_of;
    s.calls = 0;
    ok_in(evaluator.simulate(&evaluator, candidate, compare, &s, &taken), what);
    ck_assert_int_eq(s.calls, !short_of);
    check_taken(&taken, short_of, plan, ns);
    ok_in(evaluator.simulate(&evaluator, candidate, NULL, NULL, &taken), what);
    check_taken(&taken, short_of, plan, ns);
    held(evaluator.hold(&evaluator, candidate), !short_of, PLANC_MEMORY_DEVICE, peak, what);
    if (!short_of) assert_fails(evaluator.simulate(&evaluator, candidate, refuse, NULL, &taken), PLANC_INTERNAL, "");
    if (host == 0) continue;
    of->terms.budgets[PLANC_MEMORY_DEVICE] = peak;
    of->terms.budgets[PLANC_MEMORY_HOST] = host - short_of;
    held(evaluator.hold(&evaluator, candidate), !short_of, PLANC_MEMORY_HOST, host, what);
    held(evaluator.hold_to_host(&evaluator, candidate), !short_of, PLANC_MEMORY_HOST, host, what);
    of->terms.budgets[PLANC_MEMORY_HOST] = -1;
  }
  planc_plan_free(plan);
}

START_TEST(it_says_what_plans_say) {
  planc_graph *random;
  int64_t most;
  randgraph_options options = {.max_ops = 20, .max_elements = 2048};
  ok(randgraph_make(7700 + (uint64_t)_i, &options, &random));
  planc_problem of = {
      .job.graph = random, .job.profile = profile, .job.batch = 1 + _i % 5, .terms.budgets[PLANC_MEMORY_HOST] = -1};
  ok(find_least_bytes(&of, planc_policy_find("none"), &most));
  for (const planc_policy *policy = planc_policies(); policy->name; policy++) {
    if (policy->supports & PLANC_POLICY_CHOOSES) continue;
    planc_candidate candidate = {0};
    of.terms.budgets[PLANC_MEMORY_DEVICE] = most / 100 * (60 + 10 * (_i % 5));
    planc_evaluator evaluator = pl_evaluator_of(&of);
    planc_status status = policy->make(&evaluator, &candidate);
    if (status) {
      ck_assert_int_eq(planc_status_code(status), PLANC_INFEASIBLE);
      planc_status_free(status);
    } else {
      check_against_plan(&of, &candidate, policy->name);
    }
    planc_candidate_free(&candidate);
  }
  planc_graph_free(random);
}
END_TEST

START_TEST(recomputes_have_a_time) {
  planc_candidate candidate = {0};
  planc_evaluator evaluator = pl_evaluator_of(&problem);
  ok(pl_policy_chen(&evaluator, &candidate));
  check_against_plan(&problem, &candidate, "chen");
  ck_assert_int_gt(n_timed_recomputes, 0);
  planc_candidate_free(&candidate);
}
END_TEST

/* --- Others ------------------------------------------------------------------------------------------------------- */

/* What an evaluator that knows no plans answers. */
static struct {
  bool (*fits)(const planc_candidate *candidate);
  int64_t (*ns)(const planc_candidate *candidate);
  int n_simulated;
} says;

static planc_status say_live(const planc_evaluator *evaluator, const planc_candidate *candidate, int64_t *out_bytes) {
  (void)evaluator;
  (void)candidate;
  *out_bytes = 0;
  return NULL;
}

static planc_status say_peak(const planc_evaluator *evaluator, const planc_candidate *candidate, int64_t *out_bytes) {
  *out_bytes = evaluator->problem->terms.budgets[PLANC_MEMORY_DEVICE] + !says.fits(candidate);
  return NULL;
}

static planc_status say_held(const planc_evaluator *evaluator, const planc_candidate *candidate) {
  (void)evaluator;
  planc_shortage shortage = {.memory = PLANC_MEMORY_HOST, .bytes = 1};
  return says.fits(candidate) ? NULL : planc_infeasible(shortage, "does not fit");
}

static planc_status say_time(const planc_evaluator *evaluator, const planc_candidate *candidate, int64_t *out_ns) {
  (void)evaluator;
  *out_ns = says.ns(candidate);
  return NULL;
}

static planc_status say_simulated(const planc_evaluator *evaluator, const planc_candidate *candidate,
                                  planc_candidate_visitor visitor, void *user, planc_taken *out) {
  (void)visitor;
  (void)user;
  says.n_simulated++;
  *out = (planc_taken){.fits = says.fits(candidate)};
  return say_time(evaluator, candidate, &out->period_ns);
}

static const planc_evaluator sayer = {.problem = &problem,
                                      .live = say_live,
                                      .peak = say_peak,
                                      .hold = say_held,
                                      .hold_to_host = say_held,
                                      .time = say_time,
                                      .simulate = say_simulated};

static bool any_fits(const planc_candidate *candidate) {
  (void)candidate;
  return true;
}

/* Longer than LeNet's ops take, and more the farther rounds are from the favourite's. */
static int64_t favourite;
static int64_t by_rounds(const planc_candidate *candidate) {
  int64_t apart = candidate->sub_batch - favourite;
  return (INT64_C(1) << 50) + (apart < 0 ? -apart : apart);
}
static bool favourite_fits(const planc_candidate *candidate) {
  return candidate->sub_batch == favourite;
}

START_TEST(modnn_takes_the_rounds_that_are_said_to_be_fastest) {
  for (favourite = 1; favourite <= BATCH; favourite *= 2) {
    planc_candidate candidate = {0};
    says.fits = any_fits;
    says.ns = by_rounds;
    ok(pl_policy_modnn(&sayer, &candidate));
    ck_assert_int_eq(candidate.sub_batch, favourite);
    ck_assert_ptr_eq(strstr(candidate.explanation, "the fastest of rounds of 8"), candidate.explanation);
    planc_candidate_free(&candidate);
    says.fits = favourite_fits;
    ok(pl_policy_modnn(&sayer, &candidate));
    ck_assert_int_eq(candidate.sub_batch, favourite);
    planc_candidate_free(&candidate);
  }
}
END_TEST

static int offloads_of(const planc_candidate *candidate) {
  const planc_command *commands = planc_schedule_commands(candidate->schedule);
  int n = 0;
  for (int32_t i = 0; i < planc_schedule_n_commands(candidate->schedule); i++)
    n += planc_schedule_copies(candidate->schedule, &commands[i], PLANC_MEMORY_DEVICE, PLANC_MEMORY_HOST);
  return n;
}

static bool has_workspaces(const planc_candidate *candidate) {
  const planc_schedule *s = candidate->schedule;
  for (int32_t i = 0; i < planc_schedule_n_commands(s); i++) {
    const planc_command *command = &planc_schedule_commands(s)[i];
    if (command->kind == PLANC_CMD_EXEC && planc_schedule_variant(s, command).workspace_bytes > 0) return true;
  }
  return false;
}

static int asked_offloads;
static bool asked_workspaces;
static bool as_asked(const planc_candidate *candidate) {
  return offloads_of(candidate) == asked_offloads && has_workspaces(candidate) == asked_workspaces;
}

static int first_offloads(planc_status (*policy)(const planc_evaluator *, planc_candidate *)) {
  planc_candidate candidate = {0};
  says.fits = any_fits;
  ok(policy(&sayer, &candidate));
  int n = offloads_of(&candidate);
  planc_candidate_free(&candidate);
  return n;
}

START_TEST(vdnn_dyn_takes_the_first_attempt_that_is_said_to_fit) {
  int convs = first_offloads(pl_policy_vdnn_conv), all = first_offloads(pl_policy_vdnn_all);
  ck_assert_int_gt(convs, 0);
  ck_assert_int_gt(all, convs);
  const struct {
    int offloads;
    bool workspaces;
    const char *attempt;
  } cases[] = {{0, true, "attempt 1 of 7"},
               {convs, true, "attempt 2 of 7"},
               {all, true, "attempt 3 of 7"},
               {convs, false, "attempt 6 of 7"},
               {all, false, "attempt 7 of 7"}};
  for (int i = 0; i < 5; i++) {
    planc_candidate candidate = {0};
    asked_offloads = cases[i].offloads;
    asked_workspaces = cases[i].workspaces;
    says.fits = as_asked;
    ok(pl_policy_vdnn_dyn(&sayer, &candidate));
    ck_assert(as_asked(&candidate));
    ck_assert_ptr_nonnull(strstr(candidate.explanation, cases[i].attempt));
    planc_candidate_free(&candidate);
  }
}
END_TEST

/* --- Ways to receive ---------------------------------------------------------------------------------------------- */

/* Candidates that say by `sub_batch` with what they are made. */
enum { ROOM_UNLIMITED, ROOM_LIMITED, ROOM_NONE, N_ROOMS, N_WAYS = PL_RECEIVES_FIRST + 1 };

static planc_status make_tagged(const planc_problem *of, const void *context, pl_walk_room room, planc_candidate *out) {
  (void)of;
  (void)context;
  int kind = room.bytes == PL_ROOM_UNLIMITED ? ROOM_UNLIMITED : room.bytes == PL_ROOM_NONE ? ROOM_NONE : ROOM_LIMITED;
  *out = (planc_candidate){.sub_batch = kind * N_WAYS + (int)room.reception};
  return NULL;
}

static unsigned fitting; /* a bit for each tag */
static bool is_fitting(const planc_candidate *candidate) {
  return fitting >> candidate->sub_batch & 1;
}

static int64_t way_ns[N_WAYS]; /* by reception */
static int64_t by_way(const planc_candidate *candidate) {
  return way_ns[candidate->sub_batch % N_WAYS];
}

/* Which of those that fit in a kind of room: the fastest; of equal ones, or where the first will do, the first in the
 * order in which they are tried. -1: none. */
static int expected_way(int kind, bool first_will_do) {
  static const int order[] = {PL_RECEIVES_LATE, PL_RECEIVES_FIRST, PL_RECEIVES_EARLY, PL_RECEIVES_BESIDE};
  int found = -1;
  for (int k = 0; k < N_WAYS; k++) {
    bool fits = fitting >> (kind * N_WAYS + order[k]) & 1;
    if (!fits || (order[k] == PL_RECEIVES_FIRST && kind != ROOM_LIMITED)) continue;
    if (found < 0 || (!first_will_do && way_ns[order[k]] < way_ns[found])) found = order[k];
  }
  return found;
}

/* Of several GPUs, whichever of the ways fit, also where what is received late does not. */
START_TEST(the_fastest_way_to_receive_that_fits_is_taken) {
  static const int64_t rooms[N_ROOMS] = {PL_ROOM_UNLIMITED, 1 << 20, PL_ROOM_NONE};
  problem.terms.gpus = 2;
  problem.terms.first_will_do = _i / N_ROOMS;
  says.fits = is_fitting;
  says.ns = by_way;
  for (unsigned ways = 0; ways < 1u << N_WAYS; ways++) {
    for (int times = 0; times < 256; times++) {
      planc_candidate candidate = {0};
      pl_walk_room room;
      bool fits;
      for (int w = 0; w < N_WAYS; w++) way_ns[w] = 1 + (times >> (2 * w) & 3);
      fitting = ways << (_i % N_ROOMS * N_WAYS);
      int way = expected_way(_i % N_ROOMS, problem.terms.first_will_do);
      ok(pl_walk_try(&sayer, make_tagged, NULL, rooms[_i % N_ROOMS], &candidate, &room, &fits));
      ck_assert_int_eq(fits, way >= 0);
      if (fits) ck_assert_int_eq(candidate.sub_batch % N_WAYS, way);
      if (fits) ck_assert_int_eq((int)room.reception, way);
      planc_candidate_free(&candidate);
    }
  }
}
END_TEST

/* Of one GPU what is received late is all that there is. */
START_TEST(one_gpu_receives_nothing) {
  says.fits = is_fitting;
  says.ns = by_way;
  for (int w = 0; w < N_WAYS; w++) way_ns[w] = 10 - w;
  for (unsigned ways = 0; ways < 1u << N_WAYS; ways++) {
    planc_candidate candidate = {0};
    pl_walk_room room;
    bool fits;
    fitting = ways << (ROOM_LIMITED * N_WAYS);
    ok(pl_walk_try(&sayer, make_tagged, NULL, 1 << 20, &candidate, &room, &fits));
    ck_assert_int_eq(fits, ways >> PL_RECEIVES_LATE & 1);
    planc_candidate_free(&candidate);
  }
}
END_TEST

/* The last resort is baseline algorithms, with whatever way to receive fits, else late, of which it is told. */
START_TEST(without_room_another_way_to_receive_may_fit) {
  static const pl_reception ways[] = {PL_RECEIVES_LATE, PL_RECEIVES_EARLY, PL_RECEIVES_BESIDE, PL_RECEIVES_LATE};
  problem.terms.gpus = 2;
  says.fits = is_fitting;
  says.ns = by_way;
  for (int k = 0; k < 4; k++) {
    planc_candidate candidate = {0};
    fitting = k < 3 ? 1u << (ROOM_NONE * N_WAYS + (int)ways[k]) : 0;
    ok(pl_walk_fit(&sayer, make_tagged, NULL, &candidate));
    ck_assert_int_eq(candidate.sub_batch, ROOM_NONE * N_WAYS + (int)ways[k]);
    ck_assert_str_eq(candidate.explanation,
                     "ops have their baseline algorithms, as no choice of faster ones that was tried fits");
    planc_candidate_free(&candidate);
  }
}
END_TEST

/* --- Feedback ----------------------------------------------------------------------------------------------------- */

static const int64_t *turns;
static int64_t by_turns(const planc_candidate *candidate) {
  (void)candidate;
  return turns[says.n_simulated - 1];
}

/* Feedback goes on while the iteration is said to get shorter, and no more than four times. */
START_TEST(capuchin_learns_while_it_is_said_to_help) {
  static const struct {
    int64_t ns[8];
    int simulated, helped;
  } cases[] = {{{5, 5}, 2, 0}, {{5, 4, 4}, 3, 1}, {{5, 4, 3, 6}, 4, 2}, {{8, 7, 6, 5, 4, 3, 2}, 5, 4}};
  for (int i = 0; i < 4; i++) {
    planc_candidate candidate = {0};
    says.fits = any_fits;
    says.ns = by_turns;
    says.n_simulated = 0;
    turns = cases[i].ns;
    ok(pl_policy_capuchin(&sayer, &candidate));
    ck_assert_int_eq(says.n_simulated, cases[i].simulated);
    char text[64];
    snprintf(text, sizeof text, "feedback has made the iteration shorter %d time", cases[i].helped);
    bool told = candidate.explanation && strstr(candidate.explanation, text) != NULL;
    ck_assert_msg(told == (cases[i].helped > 0), "%s", candidate.explanation);
    planc_candidate_free(&candidate);
  }
}
END_TEST

/* --- What goes wrong, and what plans are told --------------------------------------------------------------------- */

static planc_evaluator own;

/* Whichever of an evaluator's functions fails: a policy that calls it fails with that, and calls it once. */
START_TEST(failures_are_passed_on) {
  int used = 0;
  int64_t all;
  ok(find_least_bytes(&problem, planc_policy_find("none"), &all));
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = all / 4 * 3;
  for (int broken = 0; broken < BROKEN_N_FUNCTIONS; broken++) {
    if (broken == BROKEN_PLACE) continue; /* policies for a job never ask for that */
    own = pl_evaluator_of(&problem);
    broken_make((broken_function)broken, &own);
    int before = used;
    for (const planc_policy *policy = planc_policies(); policy->name; policy++) {
      if (policy->supports & PLANC_POLICY_CHOOSES) continue;
      planc_candidate candidate = {0};
      broken_failures = 0;
      planc_status status = policy->make(&own, &candidate);
      ck_assert_msg((planc_status_code(status) == PLANC_INTERNAL) == (broken_failures > 0), "%s", policy->name);
      ck_assert_int_le(broken_failures, 1);
      used += broken_failures;
      planc_status_free(status);
      planc_candidate_free(&candidate);
    }
    ck_assert_msg(used > before, "nobody asks for %d", broken);
  }
}
END_TEST

enum { BOUND_NS = 123 };
static planc_status make_bounded(const planc_evaluator *evaluator, planc_candidate *out) {
  planc_status status = pl_policy_none(evaluator, out);
  out->bound_ns = BOUND_NS;
  return status;
}

START_TEST(plans_have_the_bounds_of_their_candidates) {
  const planc_policy bounded = {.name = "bounded", .make = make_bounded};
  planc_plan *plan;
  ok(planc_make_plan(&problem, &bounded, &plan));
  ck_assert_int_eq(plan->predicted.bound_ns, BOUND_NS);
  planc_plan_free(plan);
  ok(planc_make_plan(&problem, planc_policy_find("none"), &plan));
  ck_assert_int_eq(plan->predicted.bound_ns, 0);
  planc_plan_free(plan);
}
END_TEST

/* Policies that choose say why: where all fits, and in the least that each can do with. */
START_TEST(plans_say_why_they_were_chosen) {
  static const struct {
    const char *policy, *all, *least;
  } cases[] = {
      {"none", "every op has its fastest algorithm", "ops have the fastest algorithms that find room beside the data"},
      {"vdnn-dyn", "attempt 1 of 7 is the first that fits: it offloads nothing", "attempt "},
      {"vdnn+", "rounds of 8 are the largest", "are the largest of those tried that fit"},
      {"modnn", "rounds of 8", "rounds of"},
      {"lms", "nothing is swapped", "swapped"},
      {"capuchin", "0 times tensors are swapped, 0 times computed again", "times tensors are swapped"},
      {"tensile", "tensors are swapped, as far as the link has time for, and 0 computed again", "computed again"},
      {"superneurons", "0 of 5 segments are computed again and 0 outputs swapped", "segments are computed again"},
      {"window", "the most found that fits", "the most found that fits"},
      {"best", "no other policy that fits is faster by more than a thousandth; none: every op", "no other policy"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const planc_policy *policy = planc_policy_find(cases[i].policy);
    int64_t least;
    planc_plan *plan;
    ok(find_least_bytes(&problem, policy, &least));
    for (int tight = 0; tight < 2; tight++) {
      planc_problem of = problem;
      if (tight) of.terms.budgets[PLANC_MEMORY_DEVICE] = least;
      ok_in(planc_make_plan(&of, policy, &plan), cases[i].policy);
      ck_assert_ptr_nonnull(plan->explanation);
      ck_assert_msg(strstr(plan->explanation, tight ? cases[i].least : cases[i].all) != NULL, "%s: %s", cases[i].policy,
                    plan->explanation);
      planc_plan_free(plan);
    }
  }
}
END_TEST

/* What is said later stands behind what was said before. */
START_TEST(explanations_follow_each_other) {
  planc_candidate candidate = {0};
  ok(planc_candidate_explain(&candidate, "%d of %s", 3, "four"));
  ck_assert_str_eq(candidate.explanation, "3 of four");
  ok(planc_candidate_explain(&candidate, "none"));
  ck_assert_str_eq(candidate.explanation, "3 of four; none");
  planc_candidate_free(&candidate);
}
END_TEST

/* --- Jobs --------------------------------------------------------------------------------------------------------- */

/* Two jobs of other graphs and batches, each with costs of its own: an instance has those of its job. */
START_TEST(instances_have_the_costs_of_their_job) {
  planc_graph *graphs[] = {graph, NULL};
  randgraph_options options = {.max_ops = 12};
  ok(randgraph_make(3, &options, &graphs[1]));
  const int64_t batches[] = {BATCH, 5};
  planc_job jobs[2];
  planc_candidate candidate = {.costs = calloc(2, sizeof *candidate.costs)};
  for (int32_t j = 0; j < 2; j++) {
    jobs[j] =
        (planc_job){.graph = graphs[j], .batch = batches[j], .n_rounds = 1, .rounds = &batches[j], .iterations = 1};
    planc_costs *costs;
    ok(planc_costs_make(profile, graphs[j], 1, &batches[j], &costs));
    candidate.costs[j] = costs;
  }
  ok(planc_expand(jobs, 2, &candidate.trace));
  ok(planc_schedule_new(candidate.trace, candidate.costs, NULL, 0, &candidate.schedule));
  int32_t n_of[2] = {0};
  for (int32_t i = 0; i < candidate.trace->n_instances; i++) {
    const planc_instance *instance = &candidate.trace->instances[i];
    int32_t count, expected;
    if (instance->role != PLANC_ROLE_OP) continue;
    const planc_variant *variants = pl_variants_of(candidate.costs, instance, &count);
    ck_assert_ptr_eq(variants, planc_costs_variants(candidate.costs[instance->job], instance->op, 0, &expected));
    ck_assert_int_eq(count, expected);
    ck_assert_ptr_eq(planc_schedule_costs(candidate.schedule, instance->job), candidate.costs[instance->job]);
    n_of[instance->job]++;
  }
  ck_assert(n_of[0] > 0 && n_of[1] > 0);
  planc_candidate_free(&candidate);
  planc_graph_free(graphs[1]);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("evaluator");
  TCase *tests = tcase_create("all");
  tcase_set_timeout(tests, 60);
  tcase_add_checked_fixture(tests, set_up, tear_down);
  tcase_add_loop_test(tests, it_says_what_plans_say, 0, sampled(GRAPHS));
  tcase_add_test(tests, recomputes_have_a_time);
  tcase_add_test(tests, modnn_takes_the_rounds_that_are_said_to_be_fastest);
  tcase_add_test(tests, vdnn_dyn_takes_the_first_attempt_that_is_said_to_fit);
  tcase_add_loop_test(tests, the_fastest_way_to_receive_that_fits_is_taken, 0, 2 * N_ROOMS);
  tcase_add_test(tests, one_gpu_receives_nothing);
  tcase_add_test(tests, without_room_another_way_to_receive_may_fit);
  tcase_add_test(tests, capuchin_learns_while_it_is_said_to_help);
  tcase_add_test(tests, failures_are_passed_on);
  tcase_add_test(tests, plans_have_the_bounds_of_their_candidates);
  tcase_add_test(tests, plans_say_why_they_were_chosen);
  tcase_add_test(tests, explanations_follow_each_other);
  tcase_add_test(tests, instances_have_the_costs_of_their_job);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
