/* `preemptive`: iterations of jobs with a deadline stand at even distances in the period, each alone on the GPU. The
 * others take turns (temporal.c), and are interrupted for that between two ops: what they hold stays where it is, and
 * whoever has a deadline takes the rest of the memory and gives it back. (Clockwork, OSDI 2020, 4: a GPU that does one
 * thing at a time is predictable; PipeSwitch, OSDI 2020, 4: jobs with a deadline preempt training.) */
#include "planner/colocate/interleave/turns.h"
#include "planner/colocate/jobs/deadlines.h"
#include "planner/colocate/jobs/timing.h"
#include "planner/colocate/policies/mix_policies.h"
#include "util/math.h"

typedef struct turn_listing {
  const pl_turn_takers *of;
  pl_timing timing;  /* each job alone */
  int64_t others_ns; /* of the jobs without a deadline, together */
  int32_t *begun;    /* by job: iterations listed so far */
  /* Where the jobs without a deadline are: */
  int32_t job, iteration, command;
  int64_t before_ns; /* how long they take up to the iteration's begin */
  pl_turn *turns;
  int64_t n_turns;
} turn_listing;

static planc_status find_lateness(const pl_turn_takers *of, const planc_candidate *all, int64_t *out_ns);
static planc_status list_turns(const pl_turn_takers *of, pl_arena *arena, pl_merge *merge);
static void add_turn(turn_listing *l, int32_t job, int32_t iteration, int32_t first, int32_t end);
static planc_status time_jobs(turn_listing *l, pl_arena *arena);
static int32_t next_request(const turn_listing *l);
static int64_t due_ns(const turn_listing *l, int32_t job);
static void go_on_until(turn_listing *l, int64_t ns);

planc_status pl_mix_preemptive(const planc_mix_evaluator *evaluator, const planc_mix_share *shares,
                               planc_candidate *out) {
  static const pl_turn_rules rules = {.list = list_turns, .lateness = find_lateness};
  return pl_turns_make(evaluator, shares, &rules, out);
}

static planc_status find_lateness(const pl_turn_takers *of, const planc_candidate *all, int64_t *out_ns) {
  int64_t responses_ns[PLANC_MIX_MAX_JOBS];
  PLANC_TRY(of->evaluator->respond(of->evaluator, all, responses_ns));
  *out_ns = INT64_MIN;
  for (int32_t j = 0; j < of->mix->n_jobs; j++) {
    int64_t deadline = pl_deadline_of(of->mix, j);
    if (deadline > 0 && responses_ns[j] - deadline > *out_ns) *out_ns = responses_ns[j] - deadline;
  }
  return NULL;
}

static planc_status list_turns(const pl_turn_takers *of, pl_arena *arena, pl_merge *merge) {
  turn_listing l = {.of = of};
  int64_t n_requests = 0, n_others = 0;
  for (int32_t j = 0; j < of->mix->n_jobs; j++)
    *(pl_deadline_of(of->mix, j) > 0 ? &n_requests : &n_others) += of->iterations[j];
  PLANC_TRY(time_jobs(&l, arena));
  PLANC_TRY(PL_NEW(arena, &l.begun, of->mix->n_jobs));
  PLANC_TRY(PL_NEW(arena, &l.turns, 2 * n_requests + n_others));
  for (int32_t job; (job = next_request(&l)) >= 0;) {
    go_on_until(&l, due_ns(&l, job));
    add_turn(&l, job, l.begun[job]++, 0, planc_schedule_n_commands(of->jobs[job].schedule));
  }
  go_on_until(&l, INT64_MAX);
  int32_t last = l.turns[l.n_turns - 1].job;
  l.turns[0].leader = last != l.turns[0].job ? last : -1;
  merge->turns = l.turns;
  merge->n_turns = l.n_turns;
  return NULL;
}

static void add_turn(turn_listing *l, int32_t job, int32_t iteration, int32_t first, int32_t end) {
  int32_t before = l->n_turns > 0 ? l->turns[l->n_turns - 1].job : job;
  l->turns[l->n_turns++] = (pl_turn){.job = job,
                                     .iteration = iteration,
                                     .first = first,
                                     .end = end,
                                     .leader = before != job ? before : -1,
                                     .feeds_late = pl_deadline_of(l->of->mix, job) > 0};
}

/* --- Requests ----------------------------------------------------------------------------------------------------- */

static planc_status time_jobs(turn_listing *l, pl_arena *arena) {
  const pl_turn_takers *of = l->of;
  PLANC_TRY(pl_timing_new(arena, of->mix->n_jobs, of->jobs, of->iterations, &l->timing));
  PLANC_TRY(pl_timing_alone(of->evaluator, of->problems, &l->timing));
  for (int32_t j = 0; j < of->mix->n_jobs; j++)
    if (pl_deadline_of(of->mix, j) == 0)
      l->others_ns =
          pl_add_saturate(l->others_ns, pl_mul_saturate(l->timing.passes[l->timing.first[j]].ns, of->iterations[j]));
  return NULL;
}

/* Whose next iteration is due first; -1: all of them are listed. */
static int32_t next_request(const turn_listing *l) {
  int32_t first = -1;
  for (int32_t j = 0; j < l->of->mix->n_jobs; j++) {
    if (pl_deadline_of(l->of->mix, j) == 0 || l->begun[j] == l->of->iterations[j]) continue;
    if (first < 0 || (int64_t)l->begun[j] * l->of->iterations[first] < (int64_t)l->begun[first] * l->of->iterations[j])
      first = j;
  }
  return first;
}

/* When the next iteration of a job begins, in the time of those without a deadline. */
static int64_t due_ns(const turn_listing *l, int32_t job) {
  return pl_muldiv_floor(l->others_ns, l->begun[job], l->of->iterations[job]);
}

/* --- The others --------------------------------------------------------------------------------------------------- */

static void next_iteration(turn_listing *l);
static const pl_pass *pass_of(const turn_listing *l);
static int32_t find_cut(const turn_listing *l, int64_t ns);

static void go_on_until(turn_listing *l, int64_t ns) {
  for (; l->job < l->of->mix->n_jobs; next_iteration(l)) {
    while (l->job < l->of->mix->n_jobs && pl_deadline_of(l->of->mix, l->job) > 0) l->job++;
    if (l->job == l->of->mix->n_jobs) return;
    int32_t cut = find_cut(l, ns - l->before_ns), n = planc_schedule_n_commands(l->of->jobs[l->job].schedule);
    if (cut > l->command) add_turn(l, l->job, l->iteration, l->command, cut);
    l->command = cut;
    if (cut < n) return;
  }
}

static void next_iteration(turn_listing *l) {
  l->before_ns = pl_add_saturate(l->before_ns, pass_of(l)->ns);
  l->command = 0;
  if (++l->iteration < l->of->iterations[l->job]) return;
  l->iteration = 0;
  l->job++;
}

static const pl_pass *pass_of(const turn_listing *l) {
  return &l->timing.passes[l->timing.first[l->job] + l->iteration];
}

/* The last command before which one may interrupt, up to a time in the iteration: where an op has ended, and what is
 * given back behind it. */
static int32_t find_cut(const turn_listing *l, int64_t ns) {
  const planc_schedule *s = l->of->jobs[l->job].schedule;
  const planc_command *commands = planc_schedule_commands(s);
  int32_t cut = l->command, n = planc_schedule_n_commands(s);
  bool ran = false;
  for (int32_t c = l->command; c < n; c++) {
    if (ran && !planc_schedule_gives(s, &commands[c])) {
      if (pass_of(l)->at_ns[c] > ns) return cut;
      cut = c;
      ran = false;
    }
    ran |= commands[c].kind == PLANC_CMD_EXEC;
  }
  return pass_of(l)->ns > ns ? cut : n;
}
