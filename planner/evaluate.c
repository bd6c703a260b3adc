/* What a policy may ask of a candidate while it chooses: bounds by one pass over its commands, its peak by placing it,
 * its time by simulating its plan. */
#include "planner/evaluate.h"

#include <assert.h>
#include <stdio.h>

#include "planc/simulate.h"
#include "planner/base/code.h"
#include "planner/base/goes_on.h"
#include "planner/base/held.h"
#include "planner/lower/lower.h"
#include "planner/lower/occupants.h"
#include "planner/shortage.h"
#include "util/math.h"

enum { ROUNDS_TEXT = 48 };

static planc_status live(const planc_evaluator *evaluator, const planc_candidate *candidate, int64_t *out_bytes);
static planc_status peak(const planc_evaluator *evaluator, const planc_candidate *candidate, int64_t *out_bytes);
static planc_status hold(const planc_evaluator *evaluator, const planc_candidate *candidate);
static planc_status hold_to_host(const planc_evaluator *evaluator, const planc_candidate *candidate);
static planc_status period_time(const planc_evaluator *evaluator, const planc_candidate *candidate, int64_t *out_ns);
static planc_status place(const planc_evaluator *evaluator, const planc_candidate *candidate, planc_placing what,
                          int64_t *residencies, int64_t *workspaces, int64_t *out_arena_bytes);
static planc_status simulate(const planc_evaluator *evaluator, const planc_candidate *candidate,
                             planc_candidate_visitor visitor, void *user, planc_taken *out);

planc_evaluator pl_evaluator_of(const planc_problem *problem) {
  const planc_target target = planc_target_of(problem);
  planc_evaluator evaluator = pl_evaluator_of_all(&target);
  evaluator.problem = problem;
  return evaluator;
}

planc_evaluator pl_evaluator_of_all(const planc_target *target) {
  return (planc_evaluator){.target = *target,
                           .live = live,
                           .peak = peak,
                           .hold = hold,
                           .hold_to_host = hold_to_host,
                           .place = place,
                           .time = period_time,
                           .simulate = simulate};
}

int64_t pl_candidate_least_time(const planc_candidate *candidate) {
  const planc_command *commands = planc_schedule_commands(candidate->schedule);
  int64_t sum = 0;
  for (int32_t c = 0; c < planc_schedule_n_commands(candidate->schedule); c++) {
    if (commands[c].kind == PLANC_CMD_EXEC)
      sum = pl_add_saturate(sum, planc_schedule_variant(candidate->schedule, &commands[c]).time_ns);
  }
  return sum;
}

/* --- Peak --------------------------------------------------------------------------------------------------------- */

/* What lowering charges the candidate's plan for. */
static planc_status reserved_of(const planc_profile *profile, const planc_candidate *candidate, int64_t *out_bytes) {
  PLANC_TRY(pl_code_of_schedule(profile, candidate->schedule, out_bytes));
  *out_bytes = pl_add_saturate(*out_bytes, planc_profile_device(profile)->reserved_bytes);
  return NULL;
}

/* What placing the candidate takes, of the device and, with what storage would take over, of the host. */
typedef struct places {
  pl_arena arena;
  pl_addresses addresses;
  int64_t arena_bytes, host_bytes;
} places;

static const pl_placing everything = {0};

static planc_status place_device(const planc_evaluator *evaluator, const planc_candidate *candidate,
                                 const pl_placing *placing, places *out) {
  PLANC_TRY(pl_check_goes_on(evaluator->target.terms->watch));
  PLANC_TRY(planc_schedule_finish(candidate->schedule));
  PLANC_TRY(pl_assign_device_addresses(&out->arena, candidate->schedule, evaluator->target.terms, candidate->room,
                                       placing, &out->addresses));
  out->arena_bytes = out->addresses.arena_bytes;
  return NULL;
}

static planc_status place_away(const planc_candidate *candidate, places *out) {
  PLANC_TRY(planc_schedule_finish(candidate->schedule));
  PLANC_TRY(pl_slots_make(&out->arena, candidate->schedule, NULL, NULL, false, &out->addresses.away));
  int64_t host_bytes = out->addresses.away.arena_bytes[planc_schedule_host(candidate->schedule)];
  out->host_bytes = pl_mul_saturate(host_bytes, planc_trace_replicas(candidate->trace));
  return NULL;
}

static planc_status peak(const planc_evaluator *evaluator, const planc_candidate *candidate, int64_t *out_bytes) {
  int64_t reserved;
  places placed = {0};
  PLANC_TRY(reserved_of(evaluator->target.profile, candidate, &reserved));
  planc_status status = place_device(evaluator, candidate, &everything, &placed);
  *out_bytes = pl_add_saturate(placed.arena_bytes, reserved);
  pl_arena_free(&placed.arena);
  return status;
}

static planc_status place(const planc_evaluator *evaluator, const planc_candidate *candidate, planc_placing what,
                          int64_t *residencies, int64_t *workspaces, int64_t *out_arena_bytes) {
  const planc_schedule *s = candidate->schedule;
  const pl_placing placing = {what, residencies, workspaces};
  places placed = {0};
  planc_status status = place_device(evaluator, candidate, &placing, &placed);
  for (int32_t r = 0; !status && r < planc_schedule_n_residencies(s); r++)
    residencies[r] = placed.addresses.residencies[r];
  for (int32_t c = 0; !status && c < planc_schedule_n_commands(s); c++) workspaces[c] = placed.addresses.workspaces[c];
  *out_arena_bytes = placed.arena_bytes;
  pl_arena_free(&placed.arena);
  return status;
}

/* Says who has no place within the budget. */
static planc_status too_much(const planc_candidate *candidate, const places *placed, const pl_shortage *shortage) {
  char *why, who[ROUNDS_TEXT];
  snprintf(who, sizeof who, "an attempt in rounds of %lld took", (long long)candidate->sub_batch);
  PLANC_TRY(pl_schedule_no_place(candidate->schedule, &placed->addresses, shortage->needs.memory,
                                 pl_shortage_room(shortage), &why));
  return pl_shortage_status(shortage, who, why);
}

/* What storage may take over is the host's to have room for: not all may leave it. */
static planc_status hold_host(const planc_terms *terms, const planc_candidate *candidate, places *placed) {
  int64_t away = planc_away_budget(terms);
  if (away < 0) return NULL;
  PLANC_TRY(place_away(candidate, placed));
  if (placed->host_bytes <= away) return NULL;
  pl_shortage shortage = {.needs = {PLANC_MEMORY_HOST, placed->host_bytes},
                          .budget = away,
                          .beside = terms->budgets[PLANC_MEMORY_STORAGE],
                          .replicas = planc_trace_replicas(candidate->trace)};
  return too_much(candidate, placed, &shortage);
}

static planc_status hold_to_host(const planc_evaluator *evaluator, const planc_candidate *candidate) {
  places placed = {0};
  planc_status status = hold_host(evaluator->target.terms, candidate, &placed);
  pl_arena_free(&placed.arena);
  return status;
}

static planc_status hold(const planc_evaluator *evaluator, const planc_candidate *candidate) {
  const planc_terms *terms = evaluator->target.terms;
  int64_t reserved;
  places placed = {0};
  PLANC_TRY(reserved_of(evaluator->target.profile, candidate, &reserved));
  planc_status status = place_device(evaluator, candidate, &everything, &placed);
  pl_shortage shortage = {.needs = {PLANC_MEMORY_DEVICE, pl_add_saturate(placed.arena_bytes, reserved)},
                          .budget = terms->budgets[PLANC_MEMORY_DEVICE],
                          .beside = reserved};
  if (!status && shortage.needs.bytes > shortage.budget) {
    status = too_much(candidate, &placed, &shortage);
  } else if (!status) {
    status = hold_host(terms, candidate, &placed);
  }
  pl_arena_free(&placed.arena);
  return status;
}

/* --- Bounds ------------------------------------------------------------------------------------------------------- */

static planc_status live(const planc_evaluator *evaluator, const planc_candidate *candidate, int64_t *out_bytes) {
  const planc_schedule *s = candidate->schedule;
  pl_held held = {.schedule = s, .unit = 1};
  int64_t most, reserved;
  PLANC_TRY(reserved_of(evaluator->target.profile, candidate, &reserved));
  pl_held_start(&held);
  most = pl_held_bytes(&held);
  for (int32_t c = 0; c < planc_schedule_n_commands(s); c++) {
    pl_held_follow(&held, &planc_schedule_commands(s)[c]);
    if (pl_held_bytes(&held) > most) most = pl_held_bytes(&held);
  }
  *out_bytes = pl_add_saturate(most, reserved);
  return NULL;
}

/* --- Time --------------------------------------------------------------------------------------------------------- */

static planc_status simulate_steady(const planc_plan *plan, planc_simulation_visitor visitor, void *user,
                                    int64_t *out_ns);

static planc_status period_time(const planc_evaluator *evaluator, const planc_candidate *candidate, int64_t *out_ns) {
  planc_plan *plan;
  PLANC_TRY(pl_check_goes_on(evaluator->target.terms->watch));
  PLANC_TRY(planc_lower(&evaluator->target, "", candidate, &plan));
  planc_status status = simulate_steady(plan, NULL, NULL, out_ns);
  planc_plan_free(plan);
  return status;
}

static planc_status simulate_steady(const planc_plan *plan, planc_simulation_visitor visitor, void *user,
                                    int64_t *out_ns) {
  planc_simulate_options options = {.steady_only = true, .visitor = visitor, .user = user};
  planc_simulation simulation;
  planc_status status = planc_simulate(plan, &options, &simulation);
  *out_ns = status ? 0 : simulation.period_ns;
  return status;
}

static planc_status simulate_placed(const planc_evaluator *evaluator, const planc_candidate *candidate,
                                    const places *placed, planc_candidate_visitor visitor, void *user,
                                    planc_taken *out);
static planc_status show(const planc_plan *plan, const planc_candidate *candidate, planc_candidate_visitor visitor,
                         void *user, int64_t *out_ns);
static planc_status show_in_order(const planc_plan *plan, const planc_order *order, planc_candidate_visitor visitor,
                                  void *user, int64_t *out_ns);

static planc_status simulate(const planc_evaluator *evaluator, const planc_candidate *candidate,
                             planc_candidate_visitor visitor, void *user, planc_taken *out) {
  const planc_terms *terms = evaluator->target.terms;
  int64_t reserved;
  places placed = {0};
  *out = (planc_taken){0};
  PLANC_TRY(reserved_of(evaluator->target.profile, candidate, &reserved));
  planc_status status = place_device(evaluator, candidate, &everything, &placed);
  int64_t peak = out->peak_bytes[PLANC_MEMORY_DEVICE] = pl_add_saturate(placed.arena_bytes, reserved);
  out->fits = !status && peak <= terms->budgets[PLANC_MEMORY_DEVICE];
  if (out->fits) status = simulate_placed(evaluator, candidate, &placed, visitor, user, out);
  pl_arena_free(&placed.arena);
  return status;
}

static planc_status simulate_placed(const planc_evaluator *evaluator, const planc_candidate *candidate,
                                    const places *placed, planc_candidate_visitor visitor, void *user,
                                    planc_taken *out) {
  planc_plan *plan;
  PLANC_TRY(pl_lower_placed(&evaluator->target, "", candidate, &placed->addresses, &plan));
  for (int32_t m = 0; m < PLANC_N_BUDGETS; m++) out->peak_bytes[m] = plan->predicted.peak_bytes[m];
  planc_status status = visitor ? show(plan, candidate, visitor, user, &out->period_ns)
                                : simulate_steady(plan, NULL, NULL, &out->period_ns);
  planc_plan_free(plan);
  return status;
}

static planc_status show(const planc_plan *plan, const planc_candidate *candidate, planc_candidate_visitor visitor,
                         void *user, int64_t *out_ns) {
  planc_order *order;
  PLANC_TRY(planc_order_of_schedule(candidate->schedule, &order));
  planc_status status = show_in_order(plan, order, visitor, user, out_ns);
  planc_order_free(order);
  return status;
}

/* By instruction of a plan's body. */
typedef struct body_times {
  int64_t *start_ns, *end_ns;
} body_times;

static void note_times(void *user, const planc_plan *plan, const planc_instr *instr, int64_t start_ns, int64_t end_ns) {
  const body_times *of = user;
  if (instr < plan->body.instrs || instr >= plan->body.instrs + plan->body.n) return;
  of->start_ns[instr - plan->body.instrs] = start_ns;
  of->end_ns[instr - plan->body.instrs] = end_ns;
}

/* Lowering leaves execs in the order of their commands. */
static void time_runs(const planc_plan *plan, const planc_order *order, const body_times *of, planc_run_time *times) {
  int32_t position = 0;
  for (int32_t i = 0; i < plan->body.n && position < order->n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (instr->op != PLANC_INSTR_exec) continue;
    assert(order->runs[position].instance == instr->id);
    times[position++] = (planc_run_time){.instr = i, .start_ns = of->start_ns[i], .end_ns = of->end_ns[i]};
  }
  assert(position == order->n);
}

static planc_status show_in_order(const planc_plan *plan, const planc_order *order, planc_candidate_visitor visitor,
                                  void *user, int64_t *out_ns) {
  pl_arena arena = {0};
  body_times of = {0};
  planc_run_time *times = NULL;
  planc_status status = PL_NEW(&arena, &of.start_ns, plan->body.n);
  if (!status) status = PL_NEW(&arena, &of.end_ns, plan->body.n);
  if (!status) status = PL_NEW(&arena, &times, order->n);
  if (!status) status = simulate_steady(plan, note_times, &of, out_ns);
  if (!status) {
    time_runs(plan, order, &of, times);
    status = visitor(user, &(planc_simulated){.plan = plan, .end_ns = of.end_ns, .order = order, .times = times});
  }
  pl_arena_free(&arena);
  return status;
}
