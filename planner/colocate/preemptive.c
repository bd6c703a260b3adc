/* `preemptive`: jobs with a deadline run at once, each iteration alone on the GPU, at even distances in the period. The
 * others take turns (temporal.c), and are interrupted for that between two ops: what they hold stays where it is, and
 * whoever has a deadline takes the rest of the memory and gives it back. (Clockwork, OSDI 2020, 4: a GPU that does one
 * thing at a time is predictable; PipeSwitch, OSDI 2020, 4: jobs with a deadline preempt training.) */
#include "planner/colocate/deadlines.h"
#include "planner/colocate/mix_policies.h"
#include "planner/colocate/timing.h"
#include "planner/colocate/turns.h"
#include "planner/evaluate.h"
#include "util/math.h"

typedef struct interrupting {
  const pl_turn_takers *of;
  pl_timing timing;  /* each job alone */
  int64_t others_ns; /* of the jobs without a deadline, together */
  int32_t *begun;    /* by job: iterations listed so far */
  /* Where the jobs without a deadline are: */
  int32_t job, iteration, command;
  int64_t before_ns; /* how long they take up to the iteration's begin */
  pl_turn *turns;
  int64_t n_turns;
} interrupting;

static planc_status list_turns(const pl_turn_takers *of, pl_arena *arena, pl_merge *merge);
static planc_status find_lateness(const pl_turn_takers *of, const planc_evaluator *evaluator,
                                  const planc_candidate *all, int64_t *out_ns);

planc_status pl_mix_preemptive(const planc_mix *mix, const planc_mix_share *shares, const planc_evaluator *evaluator,
                               planc_candidate *out) {
  static const pl_turn_rules rules = {.list = list_turns, .lateness = find_lateness};
  return pl_turns_make(mix, shares, evaluator, &rules, out);
}

static planc_status time_jobs(interrupting *i, pl_arena *arena);
static int32_t next_request(const interrupting *i);
static int64_t due_ns(const interrupting *i, int32_t job);
static void go_on_until(interrupting *i, int64_t ns);
static void take(interrupting *i, int32_t job, int32_t iteration, int32_t first, int32_t end);

static planc_status list_turns(const pl_turn_takers *of, pl_arena *arena, pl_merge *merge) {
  interrupting i = {.of = of};
  int64_t n_requests = 0, n_others = 0;
  for (int32_t j = 0; j < of->mix->n_jobs; j++)
    *(pl_deadline_of(of->mix, j) > 0 ? &n_requests : &n_others) += of->iterations[j];
  PLANC_TRY(time_jobs(&i, arena));
  PLANC_TRY(PL_NEW(arena, &i.begun, of->mix->n_jobs));
  PLANC_TRY(PL_NEW(arena, &i.turns, 2 * n_requests + n_others));
  for (int32_t job; (job = next_request(&i)) >= 0;) {
    go_on_until(&i, due_ns(&i, job));
    take(&i, job, i.begun[job]++, 0, planc_schedule_n_commands(of->jobs[job].schedule));
  }
  go_on_until(&i, INT64_MAX);
  int32_t last = i.turns[i.n_turns - 1].job;
  i.turns[0].leader = last != i.turns[0].job ? last : -1;
  merge->turns = i.turns;
  merge->n_turns = i.n_turns;
  return NULL;
}

/* --- Requests ----------------------------------------------------------------------------------------------------- */

static planc_status time_jobs(interrupting *i, pl_arena *arena) {
  const pl_turn_takers *of = i->of;
  planc_evaluator *evaluators;
  PLANC_TRY(PL_NEW(arena, &evaluators, of->mix->n_jobs));
  for (int32_t j = 0; j < of->mix->n_jobs; j++) evaluators[j] = pl_evaluator_of(&of->problems[j]);
  PLANC_TRY(pl_timing_new(arena, of->mix->n_jobs, of->jobs, of->iterations, &i->timing));
  PLANC_TRY(pl_timing_alone(evaluators, &i->timing));
  for (int32_t j = 0; j < of->mix->n_jobs; j++)
    if (pl_deadline_of(of->mix, j) == 0)
      i->others_ns =
          pl_add_saturate(i->others_ns, pl_muldiv_floor(i->timing.passes[i->timing.first[j]].ns, of->iterations[j], 1));
  return NULL;
}

/* Whose next iteration is due first; -1: all of them are listed. */
static int32_t next_request(const interrupting *i) {
  int32_t first = -1;
  for (int32_t j = 0; j < i->of->mix->n_jobs; j++) {
    if (pl_deadline_of(i->of->mix, j) == 0 || i->begun[j] == i->of->iterations[j]) continue;
    if (first < 0 || (int64_t)i->begun[j] * i->of->iterations[first] < (int64_t)i->begun[first] * i->of->iterations[j])
      first = j;
  }
  return first;
}

/* When the next iteration of a job begins, in the time of those without a deadline. */
static int64_t due_ns(const interrupting *i, int32_t job) {
  return pl_muldiv_floor(i->others_ns, i->begun[job], i->of->iterations[job]);
}

/* --- The others --------------------------------------------------------------------------------------------------- */

static const pl_pass *pass_of(const interrupting *i) {
  return &i->timing.passes[i->timing.first[i->job] + i->iteration];
}

static void next_iteration(interrupting *i) {
  i->before_ns = pl_add_saturate(i->before_ns, pass_of(i)->ns);
  i->command = 0;
  if (++i->iteration < i->of->iterations[i->job]) return;
  i->iteration = 0;
  i->job++;
}

/* The last command before which one may interrupt, up to a time in the iteration: where an op has ended, and what is
 * given back behind it. */
static int32_t find_cut(const interrupting *i, int64_t ns) {
  const planc_schedule *s = i->of->jobs[i->job].schedule;
  const planc_command *commands = planc_schedule_commands(s);
  int32_t cut = i->command, n = planc_schedule_n_commands(s);
  bool ran = false;
  for (int32_t c = i->command; c < n; c++) {
    bool gives = commands[c].kind == PLANC_CMD_RELEASE || commands[c].kind == PLANC_CMD_OFFLOAD;
    if (ran && !gives) {
      if (pass_of(i)->at_ns[c] > ns) return cut;
      cut = c;
      ran = false;
    }
    ran |= commands[c].kind == PLANC_CMD_EXEC;
  }
  return pass_of(i)->ns > ns ? cut : n;
}

static void go_on_until(interrupting *i, int64_t ns) {
  for (; i->job < i->of->mix->n_jobs; next_iteration(i)) {
    while (i->job < i->of->mix->n_jobs && pl_deadline_of(i->of->mix, i->job) > 0) i->job++;
    if (i->job == i->of->mix->n_jobs) return;
    int32_t cut = find_cut(i, ns - i->before_ns), n = planc_schedule_n_commands(i->of->jobs[i->job].schedule);
    if (cut > i->command) take(i, i->job, i->iteration, i->command, cut);
    i->command = cut;
    if (cut < n) return;
  }
}

static void take(interrupting *i, int32_t job, int32_t iteration, int32_t first, int32_t end) {
  int32_t before = i->n_turns > 0 ? i->turns[i->n_turns - 1].job : job;
  i->turns[i->n_turns++] = (pl_turn){.job = job,
                                     .iteration = iteration,
                                     .first = first,
                                     .end = end,
                                     .leader = before != job ? before : -1,
                                     .feeds_late = pl_deadline_of(i->of->mix, job) > 0};
}

/* --- In time ------------------------------------------------------------------------------------------------------ */

static planc_status find_response(const pl_timing *timing, int32_t job, pl_arena *arena, int64_t *out_ns) {
  const pl_pass *passes = &timing->passes[timing->first[job]];
  int32_t n = timing->iterations[job];
  pl_iteration_span *spans;
  PLANC_TRY(PL_NEW(arena, &spans, n));
  for (int32_t k = 0; k < n; k++)
    spans[k] = (pl_iteration_span){true, passes[k].start_ns, passes[k].start_ns + passes[k].ns};
  *out_ns = pl_longest_response(spans, n, timing->period_ns);
  return NULL;
}

static planc_status find_lateness(const pl_turn_takers *of, const planc_evaluator *evaluator,
                                  const planc_candidate *all, int64_t *out_ns) {
  pl_arena arena = {0};
  pl_timing timing;
  *out_ns = INT64_MIN;
  planc_status status = pl_timing_new(&arena, of->mix->n_jobs, of->jobs, of->iterations, &timing);
  if (!status) status = pl_timing_together(evaluator, all, &timing);
  for (int32_t j = 0; !status && j < of->mix->n_jobs; j++) {
    int64_t deadline = pl_deadline_of(of->mix, j), response;
    if (deadline == 0) continue;
    status = find_response(&timing, j, &arena, &response);
    if (!status && response - deadline > *out_ns) *out_ns = response - deadline;
  }
  pl_arena_free(&arena);
  return status;
}
