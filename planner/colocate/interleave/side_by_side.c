/* Rounds side by side (side_by_side.h). The rounds are treated as Zico treats jobs: each is shifted as a whole until
 * what it holds fits beside the rounds before it (shift.h), what comes of it is simulated, and the search goes on with
 * the new times while they change. What the rounds have in common (parameters, gradients, state) is there for all of
 * them.
 *
 * All commands are then put in the order of their times, so that one round can take what another lets go; lowering
 * finds the places. Where rounds add to a gradient or to a running statistic, the trace's order holds as well: a
 * round's addition comes behind that of the round before. */
#include "planner/colocate/interleave/side_by_side.h"

#include <assert.h>

#include "plan/one_job.h"
#include "planc/colocate.h"
#include "planner/base/held.h"
#include "planner/choose/room_search.h"
#include "planner/colocate/interleave/shift.h"
#include "planner/colocate/jobs/by_time.h"
#include "planner/colocate/jobs/merge.h"
#include "util/math.h"
#include "util/size.h"

/* Commands of the candidate: those of a round, or those behind all rounds. */
typedef struct strand {
  int32_t n, next; /* the first that does not stand yet */
  int32_t *commands;
} strand;

typedef struct rounds {
  const planc_evaluator *evaluator;
  planc_candidate *from;
  pl_arena arena;
  int32_t n;
  strand *strands;    /* by round, then that behind them */
  pl_pass_runs *runs; /* by round: of the last that was simulated */
  pl_timing timing;   /* a round is a job of one pass */
  pl_areas areas;
  int64_t least, most; /* bytes: of the round that holds most, of all together */
  int32_t *position;   /* by access of the trace: among those of its buffer */
  int32_t *done;       /* by buffer: how many accesses stand */
  int32_t *version;    /* by buffer: that they have come to */
  planc_candidate best;
  int64_t best_ns, apart_ns; /* of the best: by how much the second round begins later than the first */
  bool any;                  /* some fit, faster or not */
} rounds;

static planc_status put_side_by_side(const planc_mix_evaluator *evaluator, const planc_problem *problem, pl_solo *made);
static planc_status replace(const planc_evaluator *evaluator, planc_candidate *candidate);
static planc_status run(rounds *r);
static planc_status take_best(rounds *r);
static planc_status split(rounds *r);
static planc_status find_demand(rounds *r);
static planc_status time_from(rounds *r, const planc_candidate *candidate, planc_taken *out);
static planc_status search(rounds *r);
static planc_status index_accesses(rounds *r);

planc_status pl_solos_side_by_side(const planc_mix_evaluator *evaluator, const planc_problem *problems,
                                   pl_solos *solos) {
  for (int32_t j = 0; j < solos->n; j++)
    if (problems[j].job.side_by_side > 1 && solos->made[j].policy)
      PLANC_TRY(put_side_by_side(evaluator, &problems[j], &solos->made[j]));
  pl_solos_share(problems, solos);
  return NULL;
}

static planc_status put_side_by_side(const planc_mix_evaluator *evaluator, const planc_problem *problem,
                                     pl_solo *made) {
  const planc_evaluator alone = evaluator->alone(evaluator, problem);
  if (planc_policy_is_resident(made->policy)) return replace(&alone, &made->candidate);
  return planc_candidate_explain(
      &made->candidate, "rounds one after the other, as policy %s has data away from the device", made->policy);
}

static planc_status replace(const planc_evaluator *evaluator, planc_candidate *candidate) {
  rounds r = {.evaluator = evaluator, .from = candidate, .n = pl_trace_job(candidate->trace)->n_rounds};
  assert(pl_trace_job(candidate->trace)->iterations == 1);
  planc_status status = r.n > 1 ? run(&r) : NULL;
  planc_candidate_free(&r.best);
  pl_arena_free(&r.arena);
  return planc_context(status, "rounds side by side");
}

static planc_status run(rounds *r) {
  PLANC_TRY(split(r));
  PLANC_TRY(index_accesses(r));
  PLANC_TRY(find_demand(r));
  planc_taken taken;
  PLANC_TRY(time_from(r, r->from, &taken));
  assert(taken.fits);
  r->best_ns = taken.period_ns;
  PLANC_TRY(search(r));
  if (r->best.trace) return take_best(r);
  return planc_candidate_explain(r->from, "rounds one after the other, side by side they %s",
                                 r->any ? "are no faster" : "do not fit");
}

static planc_status take_best(rounds *r) {
  char text[PL_SIZE_TEXT];
  r->best.sub_batch = r->from->sub_batch;
  r->best.explanation = r->from->explanation;
  r->from->explanation = NULL;
  planc_candidate_free(r->from);
  *r->from = r->best;
  r->best = (planc_candidate){0};
  return planc_candidate_explain(r->from, "%d rounds side by side, the second begins %s after the first", r->n,
                                 pl_time_format(r->apart_ns, text));
}

static const planc_command *command_at(const rounds *r, int32_t c) {
  return &planc_schedule_commands(r->from->schedule)[c];
}

/* --- Strands ------------------------------------------------------------------------------------------------------ */

static void find_rounds(const rounds *r, int32_t *round_of);
static int32_t round_of_exec(const rounds *r, int32_t c);
static int32_t round_of_buffer(const rounds *r, int32_t c);

static planc_status split(rounds *r) {
  int32_t n_commands = planc_schedule_n_commands(r->from->schedule), *round_of;
  PLANC_TRY(PL_NEW(&r->arena, &round_of, n_commands));
  PLANC_TRY(PL_NEW(&r->arena, &r->strands, r->n + 1));
  find_rounds(r, round_of);
  for (int32_t c = 0; c < n_commands; c++) r->strands[round_of[c]].n++;
  for (int32_t k = 0; k <= r->n; k++) {
    PLANC_TRY(PL_NEW(&r->arena, &r->strands[k].commands, r->strands[k].n));
    r->strands[k].n = 0;
  }
  for (int32_t c = 0; c < n_commands; c++) {
    strand *of = &r->strands[round_of[c]];
    of->commands[of->n++] = c;
  }
  return NULL;
}

/* Sets each command's round; n: behind all rounds. A command of a buffer that rounds share is of the round of the exec
 * it serves: one that gives of the exec before it, any other command of the next one. */
static void find_rounds(const rounds *r, int32_t *round_of) {
  int32_t n_commands = planc_schedule_n_commands(r->from->schedule), round = r->n;
  for (int32_t c = n_commands - 1; c >= 0; c--) {
    if (command_at(r, c)->kind == PLANC_CMD_EXEC) round = round_of_exec(r, c) < 0 ? r->n : round_of_exec(r, c);
    round_of[c] = round;
  }
  round = 0;
  for (int32_t c = 0; c < n_commands; c++) {
    if (command_at(r, c)->kind == PLANC_CMD_EXEC) {
      round = round_of[c];
    } else if (round_of_buffer(r, c) >= 0) {
      round_of[c] = round_of_buffer(r, c);
    } else if (planc_schedule_gives(r->from->schedule, command_at(r, c))) {
      round_of[c] = round;
    }
  }
}

static int32_t round_of_exec(const rounds *r, int32_t c) {
  return r->from->trace->instances[command_at(r, c)->instance].round;
}

static int32_t round_of_buffer(const rounds *r, int32_t c) {
  return r->from->trace->buffers[planc_schedule_buffer(r->from->schedule, command_at(r, c))].round;
}

/* --- What a round holds ------------------------------------------------------------------------------------------- */

/* What a round holds is counted in about PARTS units: the search for a shift goes from release to release, and skips
 * those of less than a unit. */
enum { PARTS = 256 };

static bool is_of_a_round(const planc_buffer *buffer) {
  return buffer->round >= 0;
}

/* Counts in whole units; the last step holds none. An exec's workspace counts until the next exec of the round. */
static void list_steps(const rounds *r, const strand *of, int64_t unit, pl_demand_step *steps, pl_job_areas *out) {
  pl_held all = {.schedule = r->from->schedule, .unit = PLANC_ALIGNMENT, .counts = is_of_a_round};
  int64_t workspace = 0, before = 0;
  for (int32_t k = 0; k < of->n; k++) {
    const planc_command *command = command_at(r, of->commands[k]);
    pl_held_follow(&all, command);
    if (command->kind == PLANC_CMD_EXEC) workspace = all.workspace;
    int64_t held = k + 1 < of->n ? pl_align_up(pl_add_saturate(all.data, workspace), unit) : 0;
    if (held > out->most_bytes) out->most_bytes = held;
    if (held != before) steps[out->n_steps++] = (pl_demand_step){k, held};
    before = held;
  }
  out->steps = steps;
}

static planc_status find_demand(rounds *r) {
  pl_job_areas *jobs;
  PLANC_TRY(PL_NEW(&r->arena, &jobs, r->n));
  for (int32_t k = 0; k < r->n; k++) {
    const strand *of = &r->strands[k];
    pl_demand_step *steps;
    pl_job_areas exact = {0};
    PLANC_TRY(PL_NEW(&r->arena, &steps, of->n));
    list_steps(r, of, 1, steps, &exact);
    list_steps(r, of, exact.most_bytes / PARTS + 1, steps, &jobs[k]);
    if (jobs[k].most_bytes > r->least) r->least = jobs[k].most_bytes;
    r->most = pl_add_saturate(r->most, jobs[k].most_bytes);
  }
  r->areas.jobs = jobs;
  return NULL;
}

/* --- Times -------------------------------------------------------------------------------------------------------- */

static planc_status new_timing(rounds *r) {
  int32_t *iterations;
  pl_timing *t = &r->timing;
  *t = (pl_timing){.n_jobs = r->n, .n_passes = r->n, .apart = true};
  PLANC_TRY(PL_NEW(&r->arena, &iterations, r->n));
  PLANC_TRY(PL_NEW(&r->arena, &t->first, r->n));
  PLANC_TRY(PL_NEW(&r->arena, &t->passes, r->n));
  PLANC_TRY(PL_NEW(&r->arena, &r->runs, r->n));
  for (int32_t k = 0; k < r->n; k++) {
    iterations[k] = 1;
    t->first[k] = k;
    PLANC_TRY(PL_NEW(&r->arena, &t->passes[k].at_ns, r->strands[k].n));
    PLANC_TRY(PL_NEW(&r->arena, &r->runs[k].of, r->strands[k].n));
  }
  t->iterations = iterations;
  return NULL;
}

/* Sorts what ran by rounds. */
static planc_status read_runs(void *user, const planc_simulated *simulated) {
  rounds *r = user;
  const planc_trace *trace = simulated->order->trace;
  for (int32_t k = 0; k < r->n; k++) r->runs[k].n = 0;
  for (int32_t p = 0; p < simulated->order->n; p++) {
    int32_t round = trace->instances[simulated->order->runs[p].instance].round;
    if (round >= 0) r->runs[round].of[r->runs[round].n++] = simulated->times[p];
  }
  return NULL;
}

/* Sets times of rounds to those of the candidate, where that fits. */
static planc_status time_from(rounds *r, const planc_candidate *candidate, planc_taken *out) {
  if (!r->runs) PLANC_TRY(new_timing(r));
  PLANC_TRY(r->evaluator->simulate(r->evaluator, candidate, read_runs, r, out));
  for (int32_t k = 0; out->fits && k < r->n; k++)
    pl_pass_time(r->from->schedule, r->strands[k].commands, r->strands[k].n, &r->runs[k], &r->timing.passes[k]);
  return NULL;
}

/* --- The search --------------------------------------------------------------------------------------------------- */

/* MAX_TRIES: attempts of the whole search. MAX_SETTLING: attempts in one room until times are steady, which they are
 * when they change by at most STEADY_PPM. */
enum { MAX_TRIES = 20, MAX_SETTLING = 4, STEADY_PPM = 20000 };

static planc_status step(rounds *r, pl_room_search *room, pl_turn *turns, int32_t *settling, bool *out_go_on);
static planc_status try_room(rounds *r, int64_t room, pl_turn *turns, bool *out_fit, int64_t *out_excess);
static planc_status shift(rounds *r, int64_t room, bool *out_fit);
static void keep(rounds *r, int64_t ns, int64_t apart_ns, planc_candidate *candidate);
static planc_status weave(rounds *r, pl_turn *turns, planc_candidate *out);

/* Begins with as much room as all rounds hold together, in which they begin at once. */
static planc_status search(rounds *r) {
  pl_room_search room = pl_room_search_from(r->most, r->least, r->least / PARTS + 1);
  pl_turn *turns;
  int32_t settling = 0;
  bool go_on = true;
  PLANC_TRY(PL_NEW(&r->arena, &turns, planc_schedule_n_commands(r->from->schedule)));
  for (int32_t k = 0; go_on && k < MAX_TRIES; k++) PLANC_TRY(step(r, &room, turns, &settling, &go_on));
  return NULL;
}

/* Makes one attempt in the next room. Where it fits, the same room is tried again with the new times until they are
 * steady, and then more room; where it does not fit, less. */
static planc_status step(rounds *r, pl_room_search *room, pl_turn *turns, int32_t *settling, bool *out_go_on) {
  int64_t excess = 0;
  pl_timing before = r->timing;
  PLANC_TRY(pl_arena_copy(&r->arena, before.passes, r->n, sizeof *before.passes, (void *)&before.passes));
  PLANC_TRY(try_room(r, room->room, turns, out_go_on, &excess));
  if (!*out_go_on) return NULL;
  bool changed = excess <= 0 && pl_timing_change(&r->timing, &before) > STEADY_PPM;
  if (changed && ++*settling < MAX_SETTLING) return NULL;
  *settling = 0;
  *out_go_on = pl_room_search_on(room, excess > 0 ? excess : 0);
  return NULL;
}

/* Shifts within `room`. *out_excess is by how much the result exceeds the budget. Where it fits, the rounds' times
 * become those of the result. */
static planc_status try_room(rounds *r, int64_t room, pl_turn *turns, bool *out_fit, int64_t *out_excess) {
  planc_taken taken = {0};
  planc_candidate candidate = {0};
  PLANC_TRY(shift(r, room, out_fit));
  if (!*out_fit) return NULL;
  int64_t apart_ns = r->timing.passes[1].start_ns - r->timing.passes[0].start_ns;
  planc_status status = weave(r, turns, &candidate);
  if (!status) status = time_from(r, &candidate, &taken);
  *out_excess = taken.peak_bytes[PLANC_MEMORY_DEVICE] - r->evaluator->problem->terms.budgets[PLANC_MEMORY_DEVICE];
  r->any |= taken.fits;
  if (!status && taken.fits) keep(r, taken.period_ns, apart_ns, &candidate);
  planc_candidate_free(&candidate);
  return status;
}

static planc_status shift(rounds *r, int64_t room, bool *out_fit) {
  int32_t jobs[PLANC_MIX_MAX_ROUNDS];
  for (int32_t k = 0; k < r->n; k++) jobs[k] = k;
  return pl_shift(&r->timing, &r->areas, jobs, r->n, room, out_fit);
}

/* Keeps the fastest so far. Rounds side by side take more memory than one after the other, so they are preferred only
 * where they are clearly faster (planc_is_preferred). */
static void keep(rounds *r, int64_t ns, int64_t apart_ns, planc_candidate *candidate) {
  if (r->best.trace ? ns >= r->best_ns : !planc_is_preferred(ns, "none", r->best_ns)) return;
  planc_candidate_free(&r->best);
  r->best = *candidate;
  *candidate = (planc_candidate){0};
  r->best_ns = ns;
  r->apart_ns = apart_ns;
}

/* --- All commands in the order of their times --------------------------------------------------------------------- */

static void start_order(rounds *r);
static int32_t find_next(const rounds *r);
static bool may_stand(const rounds *r, const planc_command *command);
static bool may_access(const rounds *r, int32_t a);
static void stand(rounds *r, const planc_command *command);
static pl_turn turn_of(int32_t command);

static planc_status index_accesses(rounds *r) {
  const planc_trace *trace = r->from->trace;
  PLANC_TRY(PL_NEW(&r->arena, &r->position, trace->n_accesses));
  PLANC_TRY(PL_NEW(&r->arena, &r->done, trace->n_buffers));
  PLANC_TRY(PL_NEW(&r->arena, &r->version, trace->n_buffers));
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    for (int32_t k = 0; k < buffer->n_accesses; k++) r->position[trace->by_buffer[buffer->first_access + k]] = k;
  }
  return NULL;
}

static planc_status weave(rounds *r, pl_turn *turns, planc_candidate *out) {
  static const int32_t once[] = {1};
  const strand *behind = &r->strands[r->n];
  int64_t n = 0;
  start_order(r);
  for (int32_t k; (k = find_next(r)) >= 0;) {
    int32_t command = r->strands[k].commands[r->strands[k].next++];
    stand(r, command_at(r, command));
    turns[n++] = turn_of(command);
  }
  for (int32_t k = 0; k < behind->n; k++) turns[n++] = turn_of(behind->commands[k]);
  assert(n == planc_schedule_n_commands(r->from->schedule));
  pl_merge merge = {.n_jobs = 1, .jobs = r->from, .iterations = once, .n_compute = r->n, .n_turns = n, .turns = turns};
  return pl_merge_candidates(&merge, out);
}

static void start_order(rounds *r) {
  for (int32_t k = 0; k <= r->n; k++) r->strands[k].next = 0;
  for (int32_t b = 0; b < r->from->trace->n_buffers; b++) r->done[b] = r->version[b] = 0;
}

/* Of the rounds whose next command may come now, the one whose command is the earliest; of several at one time one that
 * gives back, then the first round; -1 where none is left. The next command of the first round that is not through may
 * always come. */
static int32_t find_next(const rounds *r) {
  int32_t best = -1;
  pl_due first = {0};
  for (int32_t k = 0; k < r->n; k++) {
    const strand *of = &r->strands[k];
    if (of->next == of->n) continue;
    const planc_command *command = command_at(r, of->commands[of->next]);
    const pl_pass *pass = &r->timing.passes[k];
    pl_due due = {pass->start_ns + pass->at_ns[of->next], command->kind == PLANC_CMD_RELEASE};
    if (best >= 0 && !pl_is_due_before(due, first)) continue;
    if (!may_stand(r, command)) continue;
    best = k;
    first = due;
  }
  return best;
}

static bool may_stand(const rounds *r, const planc_command *command) {
  if (command->kind != PLANC_CMD_EXEC) return true;
  const planc_instance *it = &r->from->trace->instances[command->instance];
  for (int32_t a = it->first_access; a < it->first_access + it->n_accesses; a++)
    if (!may_access(r, a)) return false;
  return true;
}

/* Whether all that an access comes after in the trace is in the order already: what it reads has been made, what it
 * overwrites has been read. */
static bool may_access(const rounds *r, int32_t a) {
  const planc_access *access = &r->from->trace->accesses[a];
  if (access->write < 0) return r->version[access->buffer] == access->read;
  return r->done[access->buffer] == r->position[a];
}

static void stand(rounds *r, const planc_command *command) {
  if (command->kind != PLANC_CMD_EXEC) return;
  const planc_instance *it = &r->from->trace->instances[command->instance];
  for (int32_t a = it->first_access; a < it->first_access + it->n_accesses; a++) {
    const planc_access *access = &r->from->trace->accesses[a];
    r->done[access->buffer]++;
    if (access->write >= 0) r->version[access->buffer] = access->write;
  }
}

static pl_turn turn_of(int32_t command) {
  return (pl_turn){.first = command, .end = command + 1, .leader = -1};
}
